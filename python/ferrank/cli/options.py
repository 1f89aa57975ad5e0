"""Options that several commands take, and the types of their values."""

import argparse
import math

__all__ = ["add_data", "add_forest", "add_roles", "count_or_share", "max_features", "positive"]


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


# argparse puts these names into its messages.
count_or_share.__name__ = "number or share"
max_features.__name__ = "sqrt, log2, all, number or share"
positive.__name__ = "whole number above 0"
_weight.__name__ = "weight"


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the data set."""
    parser.add_argument("data", metavar="DATA", help="an Arrow, ARFF, Parquet or CSV file")
    parser.add_argument("--labels", metavar="XML", help="MULAN label file of an ARFF file")


def add_roles(parser: argparse.ArgumentParser) -> None:
    """Add what says which columns are what."""
    group = parser.add_argument_group("columns")
    group.add_argument("--target", action="append", metavar="NAME", help="a target; can be repeated")
    group.add_argument("--target-last", type=int, metavar="N", help="the last N columns are the targets")
    group.add_argument("--drop", action="append", default=[], metavar="NAME", help="leave out; repeatable")
    group.add_argument("--weight", metavar="NAME", help="column of row weights")
    group.add_argument(
        "--task",
        choices=["classification", "regression", "multi-target", "multi-label"],
        help="by default told by the targets: strings and booleans are classes, numbers quantities",
    )
    group.add_argument(
        "--unlabelled", choices=["error", "ignore"], default="error", help="rows without any target"
    )
    group.add_argument(
        "--target-weight", action="append", type=_weight, metavar="W", help="one for each target, in order"
    )


def add_forest(parser: argparse.ArgumentParser) -> None:
    """Add the settings of the forest."""
    group = parser.add_argument_group("forest")
    group.add_argument(
        "--score",
        action="append",
        choices=["genie3", "symbolic", "coverage", "permutation"],
        help="can be repeated; the first orders the features (default: genie3)",
    )
    group.add_argument(
        "--ensemble", choices=["random_forest", "bagging", "extra_trees"], default="random_forest"
    )
    group.add_argument("--trees", type=int, default=100, metavar="N", help="default: 100")
    group.add_argument(
        "--max-features", type=max_features, metavar="F", help="sqrt, log2, all, number or share"
    )
    group.add_argument("--min-leaf", type=int, default=2, metavar="N", help="examples in a leaf; default: 2")
    group.add_argument("--max-depth", type=int, metavar="N")
    group.add_argument(
        "--max-samples", type=count_or_share, metavar="N", help="rows of a tree; number or share"
    )
    group.add_argument(
        "--max-bins", type=int, default=255, metavar="N", help="codes of a feature; default: 255"
    )
    group.add_argument(
        "--ties",
        choices=["random", "lowest"],
        default="random",
        help="which of equally good features is tested: one drawn (default), or the first",
    )
    group.add_argument(
        "--bootstrap", action=argparse.BooleanOptionalAction, help="draw rows with replacement"
    )
    group.add_argument("--decay", type=float, default=0.5, metavar="D", help="of symbolic; default: 0.5")
    group.add_argument("--per-target", action="store_true", help="an ensemble for each target, averaged")
    group.add_argument("--by-target", action="store_true", help="tell genie3 apart by target")
    group.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    group.add_argument("--threads", type=positive, metavar="N", help="default: all cores")
