"""``ferrank predict``."""

import argparse
from typing import Any

from ferrank.cli.options import add_data, examples, positive
from ferrank.cli.progress import message, progress_line
from ferrank.escape import visible
from ferrank.output import check_apart, check_optional

__all__ = ["add_to"]

_SHOWN = 10
"""Rows that are printed without a file to write to."""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "predict",
        help="predict the rows of a table with a forest that was kept",
        description="Predict the targets of the rows of DATA with the forest in FOREST, a file that "
        "ferrank rank --keep wrote. Columns are found by their names.",
        epilog=examples(
            "ferrank predict houses.ferrank new.csv",
            "ferrank predict houses.ferrank new.parquet -o prices.parquet",
        ),
    )
    parser.add_argument("forest", metavar="FOREST", help="file of a forest")
    add_data(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="write predictions to .parquet, .arrow or .csv"
    )
    parser.add_argument(
        "--shares", action="store_true", help="the share of each class and label instead of the most probable"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        default=0.5,
        metavar="T",
        help="labels whose share is above it are predicted; default: 0.5",
    )
    parser.add_argument(
        "-j", "--threads", type=positive, metavar="N", help="number of threads; default: all cores"
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.rankers.kept import PREDICTION_SUFFIXES, Forest

    output = check_optional(chosen.output, PREDICTION_SUFFIXES)
    if output is not None:
        check_apart(output, chosen.forest)
    forest = Forest.load(chosen.forest)
    settings = {"n_jobs": chosen.threads, "threshold": chosen.threshold}
    with progress_line() as progress:
        if output is not None:
            n_rows = forest.predict_to(
                chosen.data, output, shares=chosen.shares, progress=progress, **settings
            )
            message(f"saved {output} ({n_rows} rows)")
            return
        if chosen.shares:
            table = forest.predict_proba(chosen.data, n_jobs=chosen.threads, progress=progress)
        else:
            table = forest.predict(chosen.data, progress=progress, **settings)
    rows = table.slice(0, _SHOWN).to_pylist()
    print("  ".join(visible(name) for name in table.column_names))
    for row in rows:
        print("  ".join(_cell(value) for value in row.values()))
    if table.num_rows > _SHOWN:
        message(f"{table.num_rows - _SHOWN:,} more rows; --output writes all of them")


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return visible(", ".join(value) if isinstance(value, list) else str(value))
