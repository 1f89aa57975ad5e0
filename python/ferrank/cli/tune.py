"""``ferrank tune``."""

import argparse
import json
from typing import Any

from ferrank.cli.options import (
    add_data,
    add_hierarchy,
    add_rankers,
    add_roles,
    columns_of,
    examples,
    positive,
)
from ferrank.cli.progress import message, progress_line
from ferrank.output import check_optional

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "tune",
        help="choose how much rows without a target count",
        description="Try levels of supervision of the forest, or influences and numbers of neighbours "
        "of relief, by cross-validation over the rows of DATA with a target, and rank by the best.",
        epilog=examples(
            "ferrank tune assays.csv --target activity",
            "ferrank tune assays.csv -t activity --ranker relief --folds 10 -o best.parquet",
        ),
    )
    add_data(parser)
    add_hierarchy(add_roles(parser, weights=False))
    add_rankers(parser)
    group = parser.add_argument_group("judgement")
    group.add_argument("--folds", type=positive, default=4, metavar="N", help="default: 4")
    group.add_argument(
        "--judge-neighbors", type=positive, default=20, metavar="K", help="that judge a ranking; default: 20"
    )
    group = parser.add_argument_group("results")
    group.add_argument("-o", "--output", metavar="FILE", help="save the best ranking, as rank does")
    group.add_argument(
        "-n", "--top", type=positive, default=20, metavar="K", help="rows of the table; default: 20"
    )
    group.add_argument("--json", action="store_true", help="print one JSON object instead of tables")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.cli.rankers import make_plan
    from ferrank.model_selection.tuning import tune
    from ferrank.ranking.storage import SUFFIXES

    output = check_optional(chosen.output, SUFFIXES)
    with progress_line() as progress:
        found = tune(
            chosen.data,
            **columns_of(chosen),
            ranker=make_plan(chosen),
            folds=chosen.folds,
            n_neighbors=chosen.judge_neighbors,
            progress=progress,
        )
    if output is not None:
        found.ranking.save(output)
        message(f"saved {output}")
    print(json.dumps(found.to_dict(), allow_nan=False) if chosen.json else found.to_text(chosen.top))
