"""``ferrank compare``."""

import argparse
import json
from typing import Any

from ferrank.cli.options import examples
from ferrank.cli.progress import message
from ferrank.output import check_optional

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "compare",
        help="compare methods over data sets",
        description="Compare methods by their results on several data sets: RESULTS has a row for each data "
        "set and a column for each method.",
        epilog=examples(
            "ferrank compare accuracies.csv",
            "ferrank compare errors.csv --lower-is-better --control forest --plot differences.svg",
        ),
    )
    parser.add_argument("results", metavar="RESULTS", help="a CSV or Parquet file")
    parser.add_argument("--lower-is-better", action="store_true", help="the results are errors")
    parser.add_argument("--control", metavar="METHOD", help="compare the others with it")
    parser.add_argument("--alpha", type=float, default=0.05, metavar="P", help="level; default: 0.05")
    parser.add_argument("--plot", metavar="FILE", help="draw critical differences as .png, .svg or .pdf")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the text")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.evaluate.compare import compare
    from ferrank.ranking.plot import PLOT_SUFFIXES, need_matplotlib

    plot = check_optional(chosen.plot, PLOT_SUFFIXES)
    if plot is not None:
        need_matplotlib()
    found = compare(
        chosen.results, lower_is_better=chosen.lower_is_better, control=chosen.control, alpha=chosen.alpha
    )
    if plot is not None:
        found.plot(plot)
        message(f"drew {plot}")
    print(json.dumps(found.to_dict(), allow_nan=False) if chosen.json else found.to_text())
