"""``ferrank convert``."""

import argparse
from typing import Any

from ferrank.cli.options import add_data, examples
from ferrank.cli.progress import message, progress_line

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "convert",
        help="write an Arrow file",
        description="Write DATA to an Arrow file, which is read fastest.",
        epilog=examples(
            "ferrank convert iris.csv iris.arrow",
            "ferrank convert emotions.arff emotions.arrow --labels emotions.xml",
        ),
    )
    add_data(parser)
    parser.add_argument(
        "--categorical",
        dest="categorical_features",
        action="append",
        metavar="NAME",
        help="a column of categories whatever its type, such as a code; can be repeated",
    )
    parser.add_argument("destination", metavar="DST.arrow", help="the file to write")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.data.convert import convert

    with progress_line() as progress:
        rows = convert(
            chosen.data,
            chosen.destination,
            labels=chosen.labels,
            categorical_features=chosen.categorical_features,
            progress=progress,
        )
    message(f"wrote {rows:,} rows to {chosen.destination}")
