"""``ferrank merge``."""

import argparse
import json
from typing import Any

from ferrank.cli.options import examples, positive
from ferrank.cli.progress import message
from ferrank.output import check_optional

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "merge",
        help="merge parts of a run",
        description="Merge PARTS of one run, files that Accumulator.save or --resume wrote, and print the "
        "ranking that they give together. What comes twice counts once.",
        epilog=examples(
            "ferrank merge one.arrow two.arrow --output ranking.parquet",
            "ferrank merge 'parts/*.arrow' --save all.arrow",
        ),
    )
    parser.add_argument("parts", nargs="+", metavar="PART", help="a file, or a quoted pattern")
    parser.add_argument("--save", metavar="FILE", help="save the contributions of all parts as one part")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="save the ranking as .csv, .parquet, .arrow or .json"
    )
    parser.add_argument(
        "-n", "--top", type=positive, default=20, metavar="K", help="rows of the table; default: 20"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.rankers.accumulator import merge
    from ferrank.ranking.storage import SUFFIXES

    output = check_optional(chosen.output, SUFFIXES)
    whole = check_optional(chosen.save)
    merged = merge(chosen.parts)
    ranking = merged.ranking()
    if whole is not None:
        merged.save(whole)
        message(f"saved {len(merged):,} of {merged.n_keys:,} contributions to {whole}")
    if output is not None:
        ranking.save(output)
        message(f"saved {output}")
    if len(merged) < merged.n_keys:
        message(f"{len(merged):,} of {merged.n_keys:,} contributions are there; the others are missing")
    print(json.dumps(ranking.to_dict(), allow_nan=False) if chosen.json else ranking.to_text(chosen.top))
