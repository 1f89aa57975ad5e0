"""The forest ranker beside the strongest forests there are, by kind of table: `benches/peers.py --help`.

Trees are fully grown with at least two rows in a leaf unless a case says otherwise, from bootstrap samples
or, if a peer has none, from 63 % of the rows. The candidates of a node are the square root of the features.
All run on one thread. The time of a tree is the difference between a fit of several trees and a fit of one
tree, over the number of further trees. Scores (R² or accuracy) are of predictions for held-out rows, with
the same number of trees for both; they have the noise of one seed, about 0.03. Memory is the most that the
process held during a fit, beyond what it held before.

It installs nothing: peers that are not installed are left out, with a message (`pip install '.[bench]'`).
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pandas as pd
from engines import MeasureError, told_apart
from measure import fastest, peak_growth
from recording import Record, add_option
from workloads import regression

import ferrank as fr

FIELDS = (
    "case",
    "size",
    "baseline",
    "baseline_value",
    "value",
    "ratio",
    "with_setup",
    "scores",
    "memory",
    "wanted",
)
HEADER = ("case", "size", "peer", "peer, CPU s", "CPU s", "ratio", "whole", "score", "memory, MB", "wanted")
ROW = "{:<22} {:<20} {:<16} {:>11} {:>9} {:>7} {:>7} {:>11} {:>12}  {}"
TEST_ROWS = 20_000
LONG = 8.0  # seconds of a run that is not done again
MEGABYTE = 1e6

Table = np.ndarray | pd.DataFrame


@dataclass(frozen=True)
class Case:
    """A shape of data, and what is grown on it."""

    rows: int
    features: int
    classes: int = 0  # 0 for numbers
    targets: int = 1
    categories: int = 0  # of each feature; 0 for numbers
    missing: float = 0.0  # share of the values
    max_depth: int | None = None
    trees: int = 10  # beyond the first
    peer_trees: int = 3
    whole: bool = False  # the whole call with `trees` trees is compared, not a tree
    wanted: float = 5.0
    # LightGBM and XGBoost grow deep trees a hundred times as slowly, in gigabytes.
    peers: tuple[str, ...] = ("scikit-learn", "intelex", "YDF")

    @property
    def size(self) -> str:
        return f"{self.rows:,} x {self.features}"

    @property
    def per_node(self) -> int:
        return math.ceil(math.sqrt(self.features))

    def draw(self) -> tuple[Table, np.ndarray, Table, np.ndarray]:
        """Features and targets of the rows to train on, and of others."""
        X, y = drawn(replace(self, wanted=0, peers=()))
        return X[: self.rows], y[: self.rows], X[self.rows :], y[self.rows :]


@cache
def drawn(case: Case) -> tuple[Table, np.ndarray]:
    work = regression(case.rows + TEST_ROWS, case.features, case.targets)
    X, y, rng = work.X, work.y, np.random.default_rng(1)
    if case.classes:
        y = np.digitize(y, np.quantile(y, np.arange(1, case.classes) / case.classes))
    if case.missing:
        X = np.where(rng.random(X.shape) < case.missing, np.nan, X).astype(np.float32)
    if case.categories:
        # The categories of a feature are ranges of its values in an order that is drawn.
        codes = np.minimum((X * case.categories).astype(int), case.categories - 1)
        names = np.array([f"c{number}" for number in range(case.categories)])
        columns = (rng.permutation(names)[column] for column in codes.T)
        X = pd.DataFrame({f"x{i}": pd.Categorical(column, names) for i, column in enumerate(columns)})
    return X, y


BOOSTED = (*Case(1, 1).peers, "LightGBM", "XGBoost")
CASES = {
    "regression": Case(100_000, 20, wanted=8),
    "2 classes": Case(100_000, 20, classes=2, wanted=8),
    "3 classes": Case(100_000, 20, classes=3),
    "5 classes": Case(100_000, 20, classes=5),
    "10 classes": Case(100_000, 20, classes=10),
    "3 classes, depth 8": Case(100_000, 20, classes=3, max_depth=8, trees=20, peers=BOOSTED),
    "regression, wider": Case(100_000, 200, wanted=8),
    "regression, depth 6": Case(100_000, 50, max_depth=6, trees=20, peer_trees=5, peers=BOOSTED),
    "10 categories": Case(100_000, 20, classes=2, categories=10, peers=("YDF", "XGBoost")),
    "100 categories": Case(100_000, 20, classes=2, categories=100, peers=("YDF", "XGBoost")),
    # YDF does not end within minutes.
    "1,000 categories": Case(100_000, 20, classes=2, categories=1_000, peers=("XGBoost",)),
    "10 % missing": Case(100_000, 20, missing=0.1),
    "10 % missing, 2 classes": Case(100_000, 20, classes=2, missing=0.1),
    "16 targets": Case(100_000, 20, targets=16, trees=3, peer_trees=1, peers=("scikit-learn", "extra trees")),
    "short": Case(500, 20, trees=100, whole=True),
    "regression, taller": Case(1_000_000, 20, wanted=8, trees=3, peer_trees=1),
    "regression, larger": Case(
        1_000_000, 200, wanted=8, trees=2, peer_trees=1, peers=("scikit-learn", "intelex")
    ),
}

Fit = Callable[[int], Callable[[Table], np.ndarray]]
"""Grows the given number of trees, and returns a function that predicts rows."""


def ferrank(case: Case, X: Table, y: np.ndarray, *, keep_trees: bool = False) -> Fit:
    target = y.astype(str) if case.classes else y

    def fit(n_trees: int) -> Callable[[Table], np.ndarray]:
        ranker = fr.ForestRanker(
            n_estimators=n_trees,
            max_features=case.per_node,
            max_depth=case.max_depth,
            min_samples_leaf=2,
            n_jobs=1,
            random_state=0,
            standard_errors=False,
            keep_trees=keep_trees,
        ).fit(X, target)
        return lambda rows: ranker.predict(rows)

    return fit


def of_sklearn(module: str, kind: str, case: Case, X: Table, y: np.ndarray) -> Fit:
    from importlib import import_module

    if isinstance(X, pd.DataFrame):
        raise NotSupportedError("no categories")
    make = getattr(import_module(module), kind + ("Classifier" if case.classes else "Regressor"))
    if "sklearnex" in module and case.missing:
        raise NotSupportedError("no missing values")

    def fit(n_trees: int) -> Callable[[Table], np.ndarray]:
        settings = {"max_features": case.per_node, "max_depth": case.max_depth, "min_samples_leaf": 2}
        return make(n_trees, n_jobs=1, random_state=0, **settings).fit(X, y).predict

    return fit


def lightgbm(case: Case, X: Table, y: np.ndarray) -> Fit:
    from lightgbm import LGBMClassifier, LGBMRegressor

    make = LGBMClassifier if case.classes else LGBMRegressor
    settings = {
        "boosting_type": "rf",
        "subsample": 0.632,
        "subsample_freq": 1,
        "num_leaves": 131_072 if case.max_depth is None else 2**case.max_depth,
        "max_depth": case.max_depth or -1,
        "feature_fraction_bynode": case.per_node / case.features,
        "min_child_samples": 2,
        "min_child_weight": 0.0,
        # Without these, a category of fewer than 100 rows of a node is not split off.
        "min_data_per_group": 1,
        "cat_smooth": 0.0,
        "cat_l2": 0.0,
        "max_cat_threshold": 1_000,
        "n_jobs": 1,
        "verbose": -1,
        "random_state": 0,
    }
    return lambda n_trees: make(n_estimators=n_trees, **settings).fit(X, y).predict


def xgboost(case: Case, X: Table, y: np.ndarray) -> Fit:
    from xgboost import XGBRFClassifier, XGBRFRegressor

    make = XGBRFClassifier if case.classes else XGBRFRegressor
    settings = {
        "tree_method": "hist",
        "max_depth": case.max_depth or 0,
        "grow_policy": "depthwise" if case.max_depth else "lossguide",
        "max_leaves": 0,
        "subsample": 0.632,
        "colsample_bynode": case.per_node / case.features,
        "min_child_weight": 0.0,
        "reg_lambda": 0.0,
        "enable_categorical": isinstance(X, pd.DataFrame),
        "n_jobs": 1,
        "random_state": 0,
    }
    return lambda n_trees: make(n_estimators=n_trees, **settings).fit(X, y).predict


def ydf(case: Case, X: Table, y: np.ndarray) -> Fit:
    import ydf as package

    package.verbose(0)

    def rows(X: Table) -> dict[str, np.ndarray]:
        if isinstance(X, pd.DataFrame):
            return {name: X[name].astype(str).to_numpy() for name in X}
        return {f"x{i}": column for i, column in enumerate(np.ascontiguousarray(X.T))}

    table = rows(X) | {"y": y.astype(str) if case.classes else y}

    def fit(n_trees: int) -> Callable[[Table], np.ndarray]:
        model = package.RandomForestLearner(
            label="y",
            task=package.Task.CLASSIFICATION if case.classes else package.Task.REGRESSION,
            num_trees=n_trees,
            max_depth=-1 if case.max_depth is None else case.max_depth + 1,
            min_examples=2,
            num_candidate_attributes=case.per_node,
            num_threads=1,
            compute_oob_performances=False,
            max_vocab_count=-1,
            random_seed=0,
        ).train(table)

        def predict(X: Table) -> np.ndarray:
            # The fast engine has no room for large trees.
            found = model.predict(rows(X), use_slow_engine=True)
            if not case.classes:
                return found
            best = (found > 0.5).astype(int) if found.ndim == 1 else found.argmax(axis=1)
            return np.array(model.label_classes())[best]

        return predict

    return fit


class NotSupportedError(Exception):
    """A peer has no trees for the case."""


PEERS: dict[str, tuple[str, Callable[..., Fit]]] = {
    "scikit-learn": ("sklearn", partial(of_sklearn, "sklearn.ensemble", "RandomForest")),
    "extra trees": ("sklearn", partial(of_sklearn, "sklearn.ensemble", "ExtraTrees")),
    "intelex": ("sklearnex", partial(of_sklearn, "sklearnex.ensemble", "RandomForest")),
    "YDF": ("ydf", ydf),
    "LightGBM": ("lightgbm", lightgbm),
    "XGBoost": ("xgboost", xgboost),
}
"""Package, and what makes the call that grows trees."""


def compared(name: str) -> Iterator[tuple]:
    """A row for each peer of the case, beside ferrank in the same run."""
    case = CASES[name]
    X, y, *_ = case.draw()
    mine = measured(name, "ferrank")
    for peer in case.peers:
        package, make = PEERS[peer]
        if find_spec(package) is None:
            print(f"{peer} is not installed, and left out", file=sys.stderr)
            continue
        try:
            grow = make(case, X, y)
        except NotSupportedError:
            continue
        times = costs(case, ferrank(case, X, y), grow)
        others = beside(measured(name, peer), mine)
        yield (name, case.size, peer, *times, *others, f">= {case.wanted:g}x")


def costs(case: Case, own: Fit, grow: Fit) -> tuple[str, str, str, str]:
    """CPU seconds of the peer and of ferrank, their ratio, and the ratio of whole calls of 100 trees."""
    if case.whole:
        theirs, ours = (run.cpu for run in fastest(partial(grow, case.trees), partial(own, case.trees)))
        return f"{theirs:.3f}", f"{ours:.4f}", f"{theirs / ours:.1f}x", ""
    calls = [
        partial(own, 1),
        partial(own, 1 + case.trees),
        partial(grow, 1),
        partial(grow, 1 + case.peer_trees),
    ]
    few, many, peer_few, peer_many = (run.cpu for run in fastest(*calls, long=LONG))
    try:
        ours, theirs = told_apart(few, many, case.trees), told_apart(peer_few, peer_many, case.peer_trees)
    except MeasureError:
        return "?", "?", "?", f"{peer_many / many:.1f}x"
    whole = theirs.of_forest(100) / ours.of_forest(100)
    return f"{theirs.tree:.4f}", f"{ours.tree:.4f}", f"{theirs.tree / ours.tree:.1f}x", f"{whole:.1f}x"


def beside(theirs: dict[str, float], ours: dict[str, float]) -> tuple[str, str]:
    scores = f"{theirs['score']:.3f}/{ours['score']:.3f}"
    return scores, f"{theirs['memory'] / MEGABYTE:.0f}/{ours['memory'] / MEGABYTE:.0f}"


def measured(name: str, peer: str) -> dict[str, float]:
    """The score and the memory of one fit, in a process of its own; NaN if that dies, as for memory."""
    command = [sys.executable, __file__, "--measure", name, peer]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        print(f"{name}, {peer}: no score: {run.stderr[-300:]}", file=sys.stderr)
        return {"score": math.nan, "memory": math.nan}
    return json.loads(run.stdout.splitlines()[-1])


def measure(name: str, peer: str) -> None:
    case = CASES[name]
    X, y, others, truth = case.draw()
    make = partial(ferrank, keep_trees=True) if peer == "ferrank" else PEERS[peer][1]
    # What is imported and compiled at the first call is not the fit's.
    first = slice(0, 200)
    make(case, X[first], y[first])(1)
    grow, n_trees = make(case, X, y), case.trees + (0 if case.whole else 1)
    predict: list[Any] = []
    memory = peak_growth(lambda: predict.append(grow(n_trees)))
    found = predict[0](others)
    if case.classes:
        score = float(np.mean(np.asarray(found).astype(str) == truth.astype(str)))
    else:
        score = float(
            1 - np.mean((np.asarray(found).reshape(truth.shape) - truth) ** 2) / np.mean(truth.var(axis=0))
        )
    print(json.dumps({"score": score, "memory": memory}))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    add_option(parser)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.measure:
        measure(*args.measure)
        return
    print(ROW.format(*HEADER))
    record = Record("peers")
    for name in args.case:
        for row in compared(name):
            print(ROW.format(*row), flush=True)
            record.add(**dict(zip(FIELDS, row, strict=True)))
        if args.record:
            record.write(args.record)


if __name__ == "__main__":
    main()
