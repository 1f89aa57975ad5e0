"""Options that several commands take, and the types of their values."""

import argparse
import math
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = [
    "add_data",
    "add_hierarchy",
    "add_rankers",
    "add_roles",
    "add_settings",
    "columns_of",
    "count_or_share",
    "max_features",
    "positive",
]


def count_or_share(text: str) -> int | float:
    """Read a number of things, or with a decimal point a share of them.

    >>> count_or_share("10"), count_or_share("0.5")
    (10, 0.5)
    """
    value = float(text)
    return int(text) if text.lstrip("+-").isdigit() else value


def max_features(text: str) -> str | int | float:
    """Read the value of ``--max-features``."""
    if text in {"sqrt", "log2", "all"}:
        return text
    return count_or_share(text)


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


def _weight(text: str) -> float:
    weight = float(text)
    if not math.isfinite(weight):
        raise ValueError(text)
    return weight


def _sigma(text: str) -> float | None:
    return None if text == "none" else _weight(text)


# argparse puts these names into its messages.
count_or_share.__name__ = "number or share"
max_features.__name__ = "sqrt, log2, all, number or share"
positive.__name__ = "whole number above 0"
_weight.__name__ = "weight"
_sigma.__name__ = "number or none"


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the data set."""
    parser.add_argument(
        "data", metavar="DATA", help="an Arrow, ARFF, Parquet or CSV file, a folder or a quoted pattern"
    )
    parser.add_argument("--labels", metavar="XML", help="MULAN label file of an ARFF file")


def add_roles(parser: argparse.ArgumentParser, *, weights: bool = True) -> Any:
    """Add what says which columns are what, with ``weights`` where rows can have some; give the group."""
    group = parser.add_argument_group("columns")
    group.add_argument("--target", action="append", metavar="NAME", help="a target; can be repeated")
    group.add_argument("--target-last", type=int, metavar="N", help="the last N columns are the targets")
    group.add_argument(
        "--drop", action="append", default=[], metavar="NAME", help="a column to leave out; can be repeated"
    )
    if weights:
        group.add_argument("--weight", metavar="NAME", help="column of row weights")
    group.add_argument(
        "--task",
        choices=[
            "classification",
            "regression",
            "multi-target",
            "multi-label",
            "hierarchical",
            "unsupervised",
        ],
        help="by default told by the targets: strings and booleans are classes, numbers quantities, lists of "
        "strings label sets",
    )
    group.add_argument(
        "--unsupervised",
        action="store_const",
        dest="task",
        const="unsupervised",
        help="there is no target: cluster the rows by the features (--task unsupervised)",
    )
    return group


def columns_of(chosen: argparse.Namespace, *others: str) -> dict[str, Any]:
    """Return what was said of the columns, as arguments of a function over a data set.

    These are :func:`add_data`'s and :func:`add_roles`'s, :func:`add_hierarchy`'s without the decay, which is
    a setting of rankers, and the ``others`` that were given.
    """
    names = ("target", "target_last", "labels", "task", "hierarchy", "drop", *others)
    return {name: value for name, value in vars(chosen).items() if name in names}


def add_hierarchy(group: Any) -> None:
    """Add what says how labels stand to each other, and what they weigh."""
    group.add_argument(
        "--hierarchy",
        metavar="CSV",
        help="edges of the target's labels, in columns parent and child; default: the labels are paths, "
        "or DATA tells",
    )
    group.add_argument(
        "--hierarchy-decay",
        type=float,
        default=argparse.SUPPRESS,
        metavar="D",
        help="weight of a label, as a share of the mean weight of its parents; default: 0.75",
    )


def add_rankers(parser: argparse.ArgumentParser) -> None:
    """Add the choice of a ranker, and the settings of rankers."""
    group = parser.add_argument_group("ranking")
    group.add_argument("--ranker", choices=["forest", "relief"], default="forest", help="default: forest")
    add_settings(parser, group)


def add_settings(parser: argparse.ArgumentParser, group: Any) -> None:
    """Add the settings of rankers, those that both have to ``group``.

    They have the names of the rankers' parameters, and no defaults: those are the rankers'.
    """
    setting = _settings(group)
    setting(
        "--score",
        dest="scores",
        action="append",
        metavar="NAME",
        help="of the forest: genie3 (default), symbolic, coverage, permutation; of relief: relief (default), "
        "myopic; can be repeated, the first orders the features",
    )
    setting(
        "--unlabelled",
        choices=["error", "ignore", "use"],
        help="rows without any target; default: error, or use where --supervision or --influence is given",
    )
    setting(
        "--target-weight",
        dest="target_weights",
        action="append",
        type=_weight,
        metavar="W",
        help="one for each target, in order",
    )
    setting("--per-target", action="store_true", help="rank for each target alone and average")
    setting(
        "--until",
        choices=["stable"],
        help="go no further than it takes for the best features to stand clear of all others; Ctrl-C once "
        "ends with what there is",
    )
    setting("--stable-top", type=positive, metavar="K", help="how many are to stand clear; default: 10")
    setting(
        "--confidence",
        type=float,
        metavar="C",
        help="probability that none of them does by chance; default: 0.95",
    )
    setting("--seed", dest="random_state", type=int, metavar="N", help="of all that is drawn; default: 0")
    setting("--threads", dest="n_jobs", type=positive, metavar="N", help="default: all cores")
    setting(
        "--memory",
        dest="memory_limit",
        metavar="SIZE",
        help="most memory to hold, such as 2GiB or 500MB; default: half of what is free",
    )
    setting("--temp-dir", metavar="DIR", help="folder for temporary files; default: the system's")
    _add_forest(parser)
    _add_relief(parser)


def _settings(group: Any) -> Callable[..., None]:
    return partial(group.add_argument, default=argparse.SUPPRESS)


def _add_forest(parser: argparse.ArgumentParser) -> None:
    setting = _settings(parser.add_argument_group("forest"))
    setting("--ensemble", choices=["random_forest", "bagging", "extra_trees"], help="default: random_forest")
    setting("--trees", dest="n_estimators", type=int, metavar="N", help="default: 100")
    setting(
        "--max-features",
        type=max_features,
        metavar="F",
        help="looked at in a node: sqrt, log2, all, number or share; default: sqrt in a random forest, "
        "else all",
    )
    setting(
        "--min-leaf", dest="min_samples_leaf", type=int, metavar="N", help="examples in a leaf; default: 2"
    )
    setting("--max-depth", type=int, metavar="N", help="of a tree, its root at 0; default: any")
    setting(
        "--max-samples",
        type=count_or_share,
        metavar="N",
        help="rows drawn for a tree; number or share; default: all",
    )
    setting("--max-bins", type=int, metavar="N", help="most codes of a numeric feature; default: 255")
    setting(
        "--ties",
        choices=["random", "lowest"],
        help="which of equally good features is tested: one drawn (default), or the first",
    )
    setting(
        "--bootstrap",
        action=argparse.BooleanOptionalAction,
        help="draw rows with replacement; default: yes, but for extra_trees",
    )
    setting("--decay", type=float, metavar="D", help="of symbolic; default: 0.5")
    setting(
        "--supervision",
        type=float,
        metavar="W",
        help="share of the targets in the impurity, 0 to 1; the features make up the rest, so that "
        "rows without a target help",
    )
    setting("--by-target", action="store_true", help="tell genie3 apart by target")


def _add_relief(parser: argparse.ArgumentParser) -> None:
    setting = _settings(parser.add_argument_group("relief"))
    setting(
        "--neighbors",
        dest="n_neighbors",
        action="append",
        type=positive,
        metavar="K",
        help="of each row, in classification of each class; can be repeated; default: 10",
    )
    setting(
        "--sigma",
        action="append",
        type=_sigma,
        metavar="S",
        help="the neighbour of rank r weighs exp(-(r/S)^2), or 1 (none, default); can be repeated",
    )
    setting(
        "--iterations",
        dest="n_iterations",
        type=count_or_share,
        metavar="M",
        help="rows whose neighbours count; number or share; default: all",
    )
    setting(
        "--influence",
        nargs=2,
        type=float,
        metavar=("W0", "W1"),
        help="how much rows without a target count, 0 to 1: the farthest from all that have one, and the "
        "nearest; default, where they take part: 0 1",
    )
    setting(
        "--target-distance",
        action="append",
        choices=["hamming", "accuracy", "f1", "subset"],
        help="between label sets; can be repeated; default: hamming",
    )
