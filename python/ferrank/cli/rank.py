"""``ferrank rank``."""

import argparse
import json
from pathlib import Path
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
from ferrank.escape import visible
from ferrank.output import check_optional, check_path

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "rank",
        help="rank the features",
        description="Rank the features of DATA.",
        epilog=examples(
            "ferrank rank iris.csv --target class",
            "ferrank rank iris.csv -t class --select fdr=0.05 -o ranking.parquet --plot ranking.png",
            "ferrank rank genes.arff -t yield -t purity --ranker forest --trees 500 --score permutation",
            "ferrank rank iris.csv -t class --clusters 0.9 -o page.html",
            "cat measurements.csv | ferrank rank - -t y --json",
        ),
    )
    add_data(parser)
    add_hierarchy(add_roles(parser))
    add_rankers(parser, automatic=True)
    parser.add_argument(
        "--resume",
        metavar="FILE",
        help="keep contributions in FILE as they are made; a killed run goes on from there",
    )
    group = parser.add_argument_group("results")
    group.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="save all as .csv, .parquet, .arrow or .json, or as a page, .html",
    )
    group.add_argument(
        "--keep",
        dest="keep_trees",
        default=argparse.SUPPRESS,
        metavar="FILE",
        help="keep the trees of a forest in FILE, with which ferrank predict predicts; the forest is "
        "then the ranker, and gives no verdicts without --shadows",
    )
    group.add_argument("--plot", metavar="FILE", help="draw bars as .png, .svg or .pdf")
    group.add_argument(
        "-n", "--top", type=positive, default=20, metavar="K", help="rows of the table; default: 20"
    )
    group.add_argument(
        "--select",
        type=_rate,
        metavar="fdr=RATE",
        help="say which features are relevant, such that at most this share of them is expected to be "
        "irrelevant, and print these; default: fdr=0.1, without a selection",
    )
    group.add_argument(
        "--clusters",
        nargs="?",
        type=_association,
        const=True,
        metavar="A",
        help="cluster the 1,000 best features: any two of a cluster have an association of at least A; "
        "default: 0.7",
    )
    group.add_argument(
        "--representatives",
        action="store_true",
        help="print the best feature of each cluster, best first, one a line, instead of the table; with "
        "--select, those that are relevant",
    )
    group.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.set_defaults(run=_run)


def _rate(text: str) -> float:
    """Parse ``fdr=RATE``."""
    from ferrank.ranking.relevance import check_fdr

    name, _, rate = text.partition("=")
    if name != "fdr":
        raise ValueError(text)
    return check_fdr(float(rate))


_rate.__name__ = "fdr=RATE with a rate above 0 and below 1"


def _association(text: str) -> float:
    """Parse the least association within clusters."""
    from ferrank.ranking.clusters import check_association

    return check_association(float(text)) or 0.0


_association.__name__ = "number above 0 and below 1"


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.cli.rankers import make_plan
    from ferrank.rankers.rank import rank

    output, plot = _check_results(chosen)
    plan = make_plan(chosen)
    with progress_line() as progress:
        ranking = rank(
            chosen.data,
            **columns_of(chosen),
            sample_weight=chosen.sample_weight,
            ranker=plan,
            clusters=chosen.clusters or chosen.representatives,
            resume=chosen.resume,
            progress=progress,
        )
    if chosen.select is not None:
        ranking = ranking.at_rate(chosen.select)
    if output is not None:
        ranking.save(output)
        message(f"saved {output}")
    if plot is not None:
        ranking.plot(plot)
        message(f"drew {plot}")
    if chosen.json:
        print(json.dumps(ranking.to_dict(), allow_nan=False))
        return
    if chosen.representatives:
        print(*map(visible, ranking.representatives(chosen.select)), sep="\n")
        return
    print(ranking.to_text(chosen.top))
    if chosen.select is not None:
        names = ", ".join(map(visible, ranking.relevant(chosen.select)))
        print(f"\nrelevant at fdr={chosen.select:g}: {names or 'none'}")


def _check_results(chosen: argparse.Namespace) -> tuple[Path | None, Path | None]:
    """Return where to put results, checked before hours of work rather than after."""
    from ferrank.ranking.storage import SUFFIXES

    output = check_optional(chosen.output, SUFFIXES)
    if chosen.plot is None:
        return output, None
    from ferrank.ranking.plot import PLOT_SUFFIXES, need_matplotlib

    plot = check_path(chosen.plot, PLOT_SUFFIXES)
    need_matplotlib()
    return output, plot
