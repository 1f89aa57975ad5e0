"""``ferrank tree``."""

import argparse
import json
from typing import Any

from ferrank.cli.options import add_data, columns_of, examples, number_or_none, positive
from ferrank.cli.progress import message, progress_line
from ferrank.output import check_optional

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "tree",
        help="grow a decision or regression tree that splits by Relief",
        description="Grow a decision or regression tree on DATA whose tests Relief chooses, and prune it.",
        epilog=examples(
            "ferrank tree iris.csv --target class --show",
            "ferrank tree houses.csv -t price --selector relief+mse --leaves linear -o tree.svg",
        ),
    )
    add_data(parser)
    group = parser.add_argument_group("columns")
    group.add_argument(
        "-t", "--target", metavar="NAME", action="append", help="the target; default: the last column"
    )
    group.add_argument(
        "-d",
        "--drop",
        action="append",
        default=[],
        metavar="NAME",
        help="a column to leave out; can be repeated",
    )
    group.add_argument(
        "--task",
        choices=["classification", "regression"],
        help="default: by the target; strings, booleans and few distinct integers are classes, other numbers "
        "quantities",
    )
    _add_settings(parser.add_argument_group("tree"))
    group = parser.add_argument_group("results")
    group.add_argument("--show", action="store_true", help="print the tree, each node with its selector")
    group.add_argument(
        "-o", "--output", metavar="FILE", help="save the tree as .txt, .dot, .svg, .json, .png or .pdf"
    )
    group.add_argument("--json", action="store_true", help="print the tree as one JSON object")
    parser.set_defaults(run=_run)


def _add_settings(group: Any) -> None:
    def setting(name: str, **options: Any) -> None:
        group.add_argument(name, default=argparse.SUPPRESS, **options)

    setting(
        "--selector",
        choices=[
            "relief",
            "myopic",
            "accuracy",
            "mse",
            "gini",
            "gain_ratio",
            "relief+accuracy",
            "relief+mse",
        ],
        help="what estimates the features of a node; default: relief. Combined ones start with Relief and go "
        "over to the other where both agree",
    )
    setting(
        "--leaves",
        choices=["majority", "mean", "linear"],
        help="what a leaf predicts; default: the majority class, or the mean",
    )
    setting(
        "--m",
        type=number_or_none,
        metavar="M",
        help="m of the m-estimate for pruning, or none for no pruning; default: 2",
    )
    setting(
        "--switch-at",
        type=float,
        metavar="R",
        help="correlation at which combined selectors go over; default: 0.8",
    )
    setting(
        "--neighbors",
        dest="n_neighbors",
        type=positive,
        metavar="K",
        help="neighbors of each row in Relief; default: 10 of each class, or 70 for numbers",
    )
    setting(
        "--sigma",
        type=float,
        metavar="S",
        help="weight exp(-(r/S)^2) for the neighbor of rank r; default: equal weights for classes, or 20",
    )
    setting(
        "--min-leaf",
        dest="min_samples_leaf",
        type=int,
        metavar="N",
        help="minimum rows in a leaf; default: 5",
    )
    setting(
        "--max-purity",
        type=float,
        metavar="P",
        help="share of rows of one class from which on a node is a leaf; default: 0.97",
    )
    setting("--unlabelled", choices=["error", "ignore"], help="rows without a target; default: error")
    setting("--threads", dest="n_jobs", type=positive, metavar="N", help="default: all cores")


def _run(chosen: argparse.Namespace) -> None:
    from inspect import signature

    from ferrank.data.dataset import Dataset
    from ferrank.ranking.plot import need_matplotlib
    from ferrank.trees import export
    from ferrank.trees.estimators import ReliefTree

    output = check_optional(chosen.output, export.TREE_SUFFIXES)
    if output is not None and output.suffix.lower() in (".png", ".pdf"):
        need_matplotlib()
    columns = columns_of(chosen)
    if chosen.target is None:
        columns = {**columns, "target": None, "target_last": 1}
    settings = signature(ReliefTree).parameters.keys() & vars(chosen).keys()
    tree = ReliefTree(**{name: getattr(chosen, name) for name in settings})
    with progress_line() as progress:
        tree.fit(Dataset(chosen.data, **columns), progress=progress)
    if output is not None:
        tree.save(output)
        message(f"saved {output}")
    if chosen.json:
        print(json.dumps(json.loads(tree.tree_.to_json()), allow_nan=False))
        return
    print(export.heading(tree.tree_))
    if chosen.show:
        print(tree)
