"""``ferrank check``."""

import argparse
import json
from typing import Any

from ferrank.cli.options import add_data, add_roles, columns_of, examples

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "check",
        help="look for what spoils rankings",
        description="Look for what spoils rankings of DATA: identifiers, leaks, copies, numbers in strings, "
        "codes that are numbers, imbalance and the like. Exit code 0 whatever is found.",
        epilog=examples(
            "ferrank check iris.csv --target class",
            "ferrank check measurements.parquet --target-last 2 --json",
        ),
    )
    add_data(parser)
    add_roles(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.data.check import check

    columns = {name: value for name, value in columns_of(chosen).items() if name != "hierarchy"}
    found = check(chosen.data, sample_weight=chosen.sample_weight, **columns)
    print(json.dumps(found.to_dict()) if chosen.json else found)
