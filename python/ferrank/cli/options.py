"""Options shared by several commands, and the types of their values."""

import argparse
import json
import math
from collections.abc import Callable, Iterable
from csv import reader
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
    "examples",
    "max_features",
    "number_or_none",
    "positive",
    "with_csv",
]


def examples(*calls: str) -> str:
    """Return calls as they stand at the end of a command's help."""
    return "\n  ".join(["examples:", *calls])


def count_or_share(text: str) -> int | float:
    """Parse a number, or with a decimal point a share; neither is negative.

    >>> count_or_share("10"), count_or_share("0.5")
    (10, 0.5)
    """
    value = float(text)
    if not 0 <= value < math.inf:
        raise ValueError(text)
    return int(text) if text.lstrip("+-").isdigit() else value


def max_features(text: str) -> str | int | float:
    """Parse the value of ``--max-features``."""
    if text in {"sqrt", "log2", "auto", "all"}:
        return text
    return count_or_share(text)


def positive(text: str) -> int:
    """Parse an integer of at least 1."""
    count = int(text)
    if count < 1:
        raise ValueError(text)
    return count


def _weight(text: str) -> float:
    weight = float(text)
    if not math.isfinite(weight):
        raise ValueError(text)
    return weight


def number_or_none(text: str) -> float | None:
    """Parse a finite number, or ``none``."""
    return None if text == "none" else _weight(text)


def _priors(text: str) -> str | dict[str, float]:
    """Parse the name of a rule, or numbers by class."""
    if "=" not in text:
        return text
    parts = [part.rpartition("=") for part in text.split(",")]
    return {name: _weight(number) for name, _, number in parts}


def _names(text: str) -> list[str]:
    """Parse names of features; those with commas stand in double quotes.

    >>> _names("age,sex"), _names('"age, years",sex')
    (['age', 'sex'], ['age, years', 'sex'])
    """
    return next(reader([text])) or [""]


# argparse puts these names into its messages.
count_or_share.__name__ = "number or share"
max_features.__name__ = "sqrt, log2, auto, all, number or share"
positive.__name__ = "whole number above 0"
_weight.__name__ = "weight"


def _features_of_distance(text: str) -> list[str] | dict[str, float]:
    """Parse names of features, or weights by name.

    >>> _features_of_distance("a,b"), _features_of_distance("a=1,b=0.5")
    (['a', 'b'], {'a': 1.0, 'b': 0.5})
    """
    names = _names(text)
    parts = [name.rpartition("=") for name in names]
    plain = [name for name, (_, _, number) in zip(names, parts, strict=True) if not _is_number(number)]
    if len(plain) == len(names):
        return names
    if plain:
        raise argparse.ArgumentTypeError(
            f"{text}: '{plain[0]}' has no weight; give each feature one, such as {plain[0]}=1, or none"
        )
    return _with_weights({}, [(name, float(number)) for name, _, number in parts])


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _with_weights(known: dict[str, float], more: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Return the weights ``known`` and those that come later, of other features."""
    weights = dict(known)
    for name, weight in more:
        if name in weights:
            raise argparse.ArgumentTypeError(f"'{name}' is given twice; give it one weight")
        weights[name] = weight
    return weights


class _MoreFeatures(argparse.Action):
    """Adds the features of an option that is repeated to those before."""

    def __call__(self, parser: Any, namespace: argparse.Namespace, values: Any, option: Any = None) -> None:
        before = getattr(namespace, self.dest, None)
        if before is not None and type(before) is not type(values):
            raise argparse.ArgumentError(self, "features with weights and without; give all a weight or none")
        if isinstance(before, dict):
            try:
                values = _with_weights(before, values.items())
            except argparse.ArgumentTypeError as error:
                raise argparse.ArgumentError(self, str(error)) from None
        elif before is not None:
            values = [*before, *values]
        setattr(namespace, self.dest, values)


_features_of_distance.__name__ = "names, or weights by name"
_names.__name__ = "names"
_priors.__name__ = "empirical, uniform, or numbers by class"
number_or_none.__name__ = "number or none"


def add_data(parser: argparse.ArgumentParser) -> None:
    """Add the arguments for the data set."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a file (Arrow, ARFF, Parquet, CSV and others), a folder, a quoted pattern, a URL, or - for "
        "standard input",
    )
    csv = parser.add_argument_group("CSV files (detected from the file by default)")
    csv.add_argument("--delimiter", metavar="CHAR", help="what parts the fields")
    csv.add_argument(
        "--no-header",
        dest="header",
        action="store_const",
        const=False,
        help="the first line is a row; columns are called x0, x1 …",
    )
    csv.add_argument("--encoding", metavar="NAME", help="such as utf-8, cp1250 or utf-16")
    csv.add_argument("--decimal", metavar="CHAR", help="the decimal sign, . or ,")
    parser.add_argument("--labels", metavar="XML", help="MULAN label file of an ARFF file")


def with_csv(chosen: argparse.Namespace) -> argparse.Namespace:
    """Replace the names of data files by CSV files if it was said how they are written."""
    given = {name: vars(chosen).get(name) for name in ("delimiter", "header", "encoding", "decimal")}
    setting = next((name for name, value in given.items() if value is not None), None)
    if setting is not None:
        from ferrank.data.delimited import CSVFile
        from ferrank.data.files import is_self_describing
        from ferrank.errors import SettingError

        files = {
            name: vars(chosen)[name] for name in ("data", "test") if isinstance(vars(chosen).get(name), str)
        }
        csv = {name: path for name, path in files.items() if not is_self_describing(path)}
        if files and not csv:
            raise SettingError(
                f"{setting}: for CSV files, which {next(iter(files.values()))} is not; leave it out"
            )
        for name, path in csv.items():
            setattr(chosen, name, CSVFile(path, **given))
    return chosen


def add_roles(parser: argparse.ArgumentParser, *, weights: bool = True, groups: bool = True) -> Any:
    """Add the options for the roles of columns; return the group.

    ``weights`` and ``groups`` say whether row weights and groups of rows are among them.
    """
    group = parser.add_argument_group("columns")
    group.add_argument("-t", "--target", action="append", metavar="NAME", help="a target; can be repeated")
    group.add_argument("--target-last", type=int, metavar="N", help="the last N columns are the targets")
    group.add_argument(
        "-d",
        "--drop",
        action="append",
        default=[],
        metavar="NAME",
        help="a column to leave out; can be repeated",
    )
    if weights:
        group.add_argument("--weight", dest="sample_weight", metavar="NAME", help="column of row weights")
    if groups:
        group.add_argument(
            "--groups",
            metavar="NAME",
            help="column of groups, such as patients, whose rows stay together; it is not a feature",
        )
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
        help="default: by the targets; strings, booleans and few distinct integers are classes, other "
        "numbers quantities, lists of strings label sets",
    )
    group.add_argument(
        "--unsupervised",
        action="store_const",
        dest="task",
        const="unsupervised",
        help="no target: cluster the rows by the features (same as --task unsupervised)",
    )
    return group


def columns_of(chosen: argparse.Namespace, *others: str) -> dict[str, Any]:
    """Return the options for columns as arguments of functions that take a data set.

    These are the options of :func:`add_data`, :func:`add_roles` and :func:`add_hierarchy` without the decay,
    which is a setting of rankers, and the ``others`` that are named.
    """
    names = ("target", "target_last", "labels", "task", "hierarchy", "drop", "groups", *others)
    return {name: value for name, value in vars(chosen).items() if name in names}


def add_hierarchy(group: Any) -> None:
    """Add the options for the hierarchy of labels and their weights."""
    group.add_argument(
        "--hierarchy",
        metavar="CSV",
        help="edges of the hierarchy of labels, with columns parent and child; default: read from DATA, or "
        "from labels that are paths",
    )
    group.add_argument(
        "--hierarchy-decay",
        type=float,
        default=argparse.SUPPRESS,
        metavar="D",
        help="weight of a label relative to the mean weight of its parents; default: 0.75",
    )


def add_rankers(parser: argparse.ArgumentParser, *, automatic: bool = False) -> None:
    """Add the choice of the ranker and the settings of all rankers.

    ``automatic`` says whether it may be left to the settings, and be all rankers together.
    """
    group = parser.add_argument_group("ranking")
    if automatic:
        group.add_argument(
            "--preset",
            choices=["papers"],
            help="papers: the settings of Petković et al. 2020a, three scores of a forest of 100 trees, or "
            "with --ranker relief ten neighbors",
        )
        group.add_argument(
            "-r",
            "--ranker",
            choices=["auto", "joint", "forest", "relief", "association", "univariate"],
            default="auto",
            help="joint: a forest, Relief and tests of single features together, which say what is relevant; "
            "association: the tests alone; univariate: scores of single features; default: auto, which is "
            "joint unless settings that another one alone has are given",
        )
    else:
        group.add_argument(
            "-r",
            "--ranker",
            choices=["forest", "relief", "univariate"],
            default="forest",
            help="default: forest",
        )
    add_settings(parser, group)


def _scores() -> str:
    """Return the names of the scores that can be chosen, by ranker."""
    from ferrank import _core

    names: dict[str, list[str]] = {}
    for ranker, name, _ in _core.score_definitions():
        names.setdefault(ranker, []).append(name)
    parts = []
    for ranker, own in names.items():
        if len(own) > 1:
            default = json.loads(_core.default_settings_json(ranker))["scores"]
            marked = (f"{name} (default)" if name in default else name for name in own)
            parts.append(f"{ranker}: {', '.join(marked)}")
    return "; ".join(parts)


def add_settings(parser: argparse.ArgumentParser, group: Any) -> None:
    """Add the settings of rankers; settings that all rankers have go to ``group``.

    Options have the names of the rankers' parameters and no defaults of their own.
    """
    setting = _settings(group)
    setting(
        "--score",
        dest="scores",
        action="append",
        metavar="NAME",
        help=f"{_scores()}; can be repeated, the first one orders the features",
    )
    setting(
        "--unlabelled",
        choices=["error", "ignore", "use"],
        help="how to treat rows without any target; default: error, or use with --supervision or --influence",
    )
    setting(
        "--missing",
        choices=["informative", "ignore", "expected"],
        help="missing values of features; forest: a split may tell them from known ones (informative, "
        "default), or they are left out of gains (ignore); relief: they differ from others as much as is "
        "expected (expected, default), or missing is a value of its own (informative)",
    )
    setting(
        "--categorical",
        dest="categorical_features",
        action="append",
        metavar="NAME",
        help="a feature that is nominal whatever its type, such as a code; can be repeated",
    )
    setting(
        "--target-weight",
        dest="target_weights",
        action="append",
        type=_weight,
        metavar="W",
        help="weight of a target; one for each target, in order",
    )
    setting(
        "--feature-weight",
        dest="feature_weights",
        action="append",
        type=_weight,
        metavar="W",
        help="forest with --supervision: weight of a feature in the impurity; one for each feature, in order",
    )
    setting(
        "--per-target",
        action="store_true",
        help="rank for each target on its own and average the importances",
    )
    setting(
        "--until",
        choices=["stable"],
        help="stop once the best features are separated from all others; Ctrl-C ends with the ranking so far",
    )
    setting(
        "--stable-top",
        type=positive,
        metavar="K",
        help="number of features that --until separates; default: 10",
    )
    setting(
        "--confidence",
        type=float,
        metavar="C",
        help="probability that none is separated by chance; default: 0.95",
    )
    setting("--seed", dest="random_state", type=int, metavar="N", help="seed of all random draws; default: 0")
    setting(
        "-j",
        "--threads",
        dest="n_jobs",
        type=positive,
        metavar="N",
        help="number of threads; default: all cores",
    )
    setting(
        "--memory",
        dest="memory_limit",
        metavar="SIZE",
        help="maximum memory, such as 2GiB or 500MB; default: half of the free memory",
    )
    setting("--temp-dir", metavar="DIR", help="folder for temporary files; default: the system's")
    _add_forest(parser)
    _add_relief(parser)
    univariate = _settings(parser.add_argument_group("univariate"))
    univariate(
        "--bins", dest="n_bins", type=int, metavar="N", help="maximum intervals of a number; default: 10"
    )


def _settings(group: Any) -> Callable[..., None]:
    return partial(group.add_argument, default=argparse.SUPPRESS)


def _add_forest(parser: argparse.ArgumentParser) -> None:
    setting = _settings(parser.add_argument_group("forest"))
    setting("--ensemble", choices=["random_forest", "bagging", "extra_trees"], help="default: random_forest")
    setting(
        "--trees",
        dest="n_estimators",
        type=int,
        metavar="N",
        help="number of trees, of the joint ranker 600; default: 100",
    )
    setting(
        "--max-features",
        type=max_features,
        metavar="F",
        help="features considered in a node: sqrt, log2, auto (sqrt, or for numeric targets a third, at "
        "most 16, if that is more), all, number or share; default: sqrt for a "
        "random forest, auto for the joint ranker, else all",
    )
    setting(
        "--min-leaf",
        dest="min_samples_leaf",
        type=int,
        metavar="N",
        help="minimum rows in a leaf; default: 2, of the joint ranker 4",
    )
    setting(
        "--no-standard-errors",
        dest="standard_errors",
        action="store_false",
        help="leave out standard errors, which on a few thousand rows take up to as long as the trees, and "
        "with Relief up to two fifths of the time",
    )
    setting(
        "--shadows",
        action="store_true",
        help="say which features are relevant: trees also see each feature with its values in other rows; "
        "needs at least 200 trees",
    )
    setting(
        "--max-depth",
        type=int,
        metavar="N",
        help="maximum depth of a tree; the root has depth 0; default: no limit",
    )
    setting(
        "--max-samples",
        type=count_or_share,
        metavar="N",
        help="rows drawn for a tree, or with Relief rows that take part; number or share; default: all",
    )
    setting("--max-bins", type=int, metavar="N", help="maximum bins of a numeric feature; default: 255")
    setting(
        "--ties",
        choices=["random", "lowest"],
        help="choice between equally good features: at random (default), or the first column",
    )
    setting(
        "--bootstrap",
        action=argparse.BooleanOptionalAction,
        help="draw rows with replacement; default: yes, except for extra_trees",
    )
    setting(
        "--decay",
        action="append",
        type=float,
        metavar="D",
        help="decay of the score symbolic by depth; can be repeated; default: 0.5",
    )
    setting(
        "--permutation-measures",
        action="append",
        metavar="NAME",
        help="measure of label sets that the score permutation is relative to, such as pooled_auprc; can be "
        "repeated; default: the Hamming loss",
    )
    setting(
        "--supervision",
        type=float,
        metavar="W",
        help="share of the targets in the impurity, 0 to 1; the features have the rest, so that rows without "
        "a target contribute",
    )
    setting("--by-target", action="store_true", help="also split the scores genie3 and mdi_oob by target")


def _add_relief(parser: argparse.ArgumentParser) -> None:
    setting = _settings(parser.add_argument_group("relief"))
    setting(
        "--neighborhood",
        choices=["nearest", "surf", "surf_star", "multisurf", "multisurf_star"],
        help="which rows count as neighbors: the K nearest (default), all nearer than the mean distance "
        "(surf), or than that from the row less half of a standard deviation (multisurf); star: far rows "
        "count too, with the opposite sign",
    )
    setting(
        "--neighbors",
        dest="n_neighbors",
        action="append",
        type=positive,
        metavar="K",
        help="neighbors of each row, in classification of each class; can be repeated; of the joint ranker "
        "50; default: 10",
    )
    setting(
        "--sigma",
        action="append",
        type=number_or_none,
        metavar="S",
        help="weight exp(-(r/S)^2) for the neighbor of rank r, or 1 (none, the default); can be repeated",
    )
    setting(
        "--class-priors",
        type=_priors,
        metavar="P",
        help="weights of the misses of each class: empirical (default), uniform, or such as a=0.2,b=0.8",
    )
    setting(
        "--iterations",
        dest="n_iterations",
        action="append",
        type=count_or_share,
        metavar="M",
        help="rows whose neighbors are searched; number or share; can be repeated; default: all",
    )
    setting(
        "--turf",
        dest="turf_step",
        type=count_or_share,
        metavar="N",
        help="leave the worst features out and rank the others anew, in several iterations (TuRF): number, "
        "or share of those left, such as 0.5",
    )
    setting(
        "--turf-features",
        type=count_or_share,
        metavar="N",
        help="features in the last iteration of TuRF, number or share; default: 0.1",
    )
    setting(
        "--distance-features",
        action=_MoreFeatures,
        type=_features_of_distance,
        metavar="F",
        help="features whose differences say which rows are near, such as a,b, or weights, such as "
        "a=1,b=0.5; all features are ranked; can be repeated; default: all, with weight 1",
    )
    setting(
        "--covariates",
        action=_MoreFeatures,
        type=_names,
        metavar="C",
        help="features that importances are adjusted for, such as age,sex; they do not count in distances "
        "and are not ranked; can be repeated; without p-values",
    )
    setting(
        "--scaling",
        choices=["range", "rank"],
        help="how numbers are scaled: by the range of their feature (default), or by ranks, for which "
        "outliers do not matter",
    )
    setting(
        "--influence",
        nargs=2,
        type=float,
        metavar=("W0", "W1"),
        help="influence of rows without a target, 0 to 1: of the farthest from all rows with one, and of the "
        "nearest; default, if they are used: 0 1",
    )
    setting(
        "--target-draws",
        type=positive,
        metavar="B",
        help="say which features are relevant: importances are compared to those for targets drawn anew, B "
        "times; 60 are enough",
    )
    setting(
        "--target-distance",
        action="append",
        choices=["hamming", "accuracy", "f1", "subset"],
        help="distance between label sets; can be repeated; default: hamming",
    )
    setting(
        "--partial",
        action="store_true",
        help="association: features are also tested beside those found so far, by what they add to a linear "
        "model of ranks",
    )
