"""``ferrank evaluate``."""

import argparse
import json
from pathlib import Path
from typing import Any

from ferrank.cli.options import add_data, add_hierarchy, add_roles, columns_of, examples, positive
from ferrank.cli.progress import message, progress_line
from ferrank.output import check_optional

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "evaluate",
        help="judge rankings",
        description="Judge rankings by the predictions of nearest neighbours, whose distances they weigh: "
        "neighbours are rows of DATA, predictions those for TEST. Unweighted ones stand beside them.",
        epilog=examples(
            "ferrank evaluate train.csv --test test.csv --target class --ranking ranking.parquet",
            "ferrank evaluate train.csv --test test.csv -t class --ranking a.json --report page.html",
        ),
    )
    add_data(parser)
    parser.add_argument(
        "--test", required=True, metavar="TEST", help="the rows to predict, with the same columns"
    )
    add_hierarchy(add_roles(parser, weights=False))
    group = parser.add_argument_group("judgement")
    group.add_argument(
        "--ranking",
        action="append",
        default=[],
        metavar="FILE",
        help="what rank --output saved; every score in it is judged; can be repeated",
    )
    group.add_argument("--neighbors", type=positive, default=15, metavar="K", help="default: 15")
    group.add_argument(
        "--conventions",
        choices=["textbook", "clus"],
        default="textbook",
        help="how values are scaled, what missing ones differ by, and what one error, coverage and ranking "
        "loss are: as in textbooks (default), or as in the system of the papers",
    )
    group.add_argument(
        "--threshold",
        type=float,
        default=0.5,
        metavar="T",
        help="labels that at least this share of the neighbors has are predicted; default: 0.5",
    )
    group.add_argument(
        "--unlabelled", choices=["error", "ignore"], default="error", help="rows without any target"
    )
    group.add_argument("--threads", type=positive, metavar="N", help="default: all cores")
    group = parser.add_argument_group("results")
    group.add_argument(
        "-o", "--output", metavar="FILE", help="save the table as .csv, .parquet or .arrow, or all as .json"
    )
    group.add_argument(
        "--report", metavar="FILE.html", help="write a page with the rankings and their measures"
    )
    group.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.evaluate import evaluate, report
    from ferrank.evaluate.evaluation import EVALUATION_SUFFIXES
    from ferrank.ranking.page import PAGE_SUFFIXES

    output = check_optional(chosen.output, EVALUATION_SUFFIXES)
    page = check_optional(chosen.report, PAGE_SUFFIXES)
    with progress_line() as progress:
        found = evaluate(
            chosen.data,
            chosen.ranking,
            test=chosen.test,
            **columns_of(chosen, "hierarchy_decay"),
            n_neighbors=chosen.neighbors,
            conventions=chosen.conventions,
            threshold=chosen.threshold,
            unlabelled=chosen.unlabelled,
            n_jobs=chosen.threads,
            progress=progress,
        )
    if output is not None:
        found.save(output)
        message(f"saved {output}")
    if page is not None:
        name = Path(getattr(chosen.data, "path", chosen.data)).name
        report(page, chosen.ranking or None, evaluation=found, title=f"Rankings of {name}")
        message(f"wrote {page}")
    print(json.dumps(found.to_dict(), allow_nan=False) if chosen.json else found.to_text())
