"""The rankers that are compared, each on one thread unless said otherwise, and their cost per tree."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from measure import fastest
from sklearn.ensemble import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from workloads import Workload, labels, regression

import ferrank as fr

NOISE = 0.1  # of a run: what two alike may differ by

PEERS = {
    "RandomForestRegressor": RandomForestRegressor,
    "RandomForestClassifier": RandomForestClassifier,
    "ExtraTreesRegressor": ExtraTreesRegressor,
    "ExtraTreesClassifier": ExtraTreesClassifier,
}


@cache
def peers(name: str) -> dict[str, Callable[..., object]]:
    """Return the classes called ``name`` of scikit-learn and, where it is installed, scikit-learn-intelex."""
    try:
        from sklearnex import ensemble
    except ImportError:
        print("scikit-learn-intelex is not installed, and left out", file=sys.stderr)
        return {name: PEERS[name]}
    return {name: PEERS[name], f"{name}, intelex": getattr(ensemble, name)}


@dataclass(frozen=True)
class Size:
    rows: int
    features: int
    targets: int
    labels: bool = False

    def __str__(self) -> str:
        kind = "label" if self.labels else "target"
        return f"{self.rows:,} x {self.features}, {self.targets} {kind}{'s' if self.targets > 1 else ''}"

    def workload(self) -> Workload:
        make = labels if self.labels else regression
        return make(self.rows, self.features, self.targets)

    @property
    def max_features(self) -> int:
        return math.ceil(math.sqrt(self.features))


def ferrank(size: Size, n_trees: int, n_jobs: int = 1, **settings) -> fr.ForestRanker:
    settings = {"max_features": size.max_features, "min_samples_leaf": 2, "random_state": 0} | settings
    return fr.ForestRanker(n_estimators=n_trees, n_jobs=n_jobs, **settings)


@dataclass(frozen=True)
class PerTree:
    tree: float  # CPU seconds for each tree
    setup: float  # CPU seconds before the first

    def of_forest(self, n_trees: int) -> float:
        return self.setup + n_trees * self.tree


class MeasureError(Exception):
    """The difference of two runs drowns in their noise."""


def per_tree(fit: Callable[[int], object], n_trees: int) -> PerTree:
    """What `fit`, told how many trees, costs; told apart by one tree and `n_trees` more."""
    few, many = (run.cpu for run in fastest(partial(fit, 1), partial(fit, n_trees + 1)))
    return told_apart(few, many, n_trees)


def told_apart(few: float, many: float, n_trees: int) -> PerTree:
    """The cost of each tree, of the CPU seconds for one tree and for `n_trees` more."""
    if many - few <= NOISE * few:
        raise MeasureError(f"{n_trees + 1} trees take no longer than one; time more trees")
    tree = (many - few) / n_trees
    return PerTree(tree, max(few - tree, 0.0))


def ferrank_cost(size: Size, n_trees: int, **settings) -> PerTree:
    return per_tree(fitting(size, **settings), n_trees)


def side_by_side(
    size: Size, peer: str, n_peer_trees: int, n_trees: int, **settings
) -> tuple[float, float, float]:
    """CPU seconds of scikit-learn for a tree, and of ferrank for one tree and for `n_trees` more.

    They are run in turn, so that whatever else slows down the machine slows down both.
    scikit-learn's setup is small and counted in.
    """
    fit, work = fitting(size, **settings), size.workload()
    forest = PEERS[peer](
        n_estimators=n_peer_trees,
        max_features=size.max_features,
        min_samples_leaf=2,
        n_jobs=1,
        random_state=0,
    )
    calls = partial(fit, 1), partial(fit, n_trees + 1), lambda: forest.fit(work.X, work.y)
    few, many, theirs = (run.cpu for run in fastest(*calls))
    return theirs / n_peer_trees, few, many


def fitting(size: Size, **settings) -> Callable[[int], object]:
    """Fits ferrank with so many trees, the data at hand."""
    work = size.workload()
    return lambda n_trees: ferrank(size, n_trees, **settings).fit(work.X, work.y)


def auc(importance: np.ndarray, relevant: np.ndarray) -> float:
    """Chance that a relevant feature stands above an irrelevant one."""
    above = importance[relevant][:, None] - importance[~relevant]
    return float(((above > 0) + 0.5 * (above == 0)).mean())
