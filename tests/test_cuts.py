"""Where a cut lies between the values of a node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

import ferrank as fr

N_ROWS, N_FEATURES = 400, 9


def features(seed: int, *, is_sparse: bool = False, gaps: bool = False) -> np.ndarray:
    """Return numbers of many and of few values, some zero or missing, shape (n_rows, n_features)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N_ROWS, N_FEATURES)) ** 3
    X[:, 1::3] = rng.integers(0, 12, size=X[:, 1::3].shape) ** 2
    if is_sparse:
        X[rng.random(X.shape) < 0.8] = 0.0
    if gaps:
        X[rng.random(X.shape) < 0.15] = np.nan
    return X


def targets(kind: str, X: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(7)
    sums = np.nan_to_num(X[:, :3]).sum(axis=1) + rng.normal(size=len(X))
    match kind:
        case "number":
            return sums
        case "numbers":
            return np.column_stack([sums, rng.normal(size=len(X)), sums**2])
        case "classes":
            return np.digitize(sums, [-1.0, 0.0, 2.0]).astype(str)
        case "labels":
            return sums[:, None] > np.arange(-4, 5)
    raise ValueError(kind)


def middles(nodes: list[dict[str, Any]], X: np.ndarray, rank: Any) -> int:
    """Check the cuts of a tree whose bag is all rows of `X`; return how many have a gap of several values.

    `rank` maps the positions of the highest value on the left and of the lowest on the right, among the
    distinct values of the feature, to the position of the value below the cut.
    """
    scales = [np.unique(column[~np.isnan(column)]) for column in X.T]
    n_wide, pending = 0, [(0, np.arange(len(X)))]
    while pending:
        number, rows = pending.pop()
        node = nodes[number]
        if node["feature"] is None:
            continue
        values, scale = X[rows, node["feature"]], scales[node["feature"]]
        left = values <= node["cut"]
        if np.isfinite(node["cut"]):
            low, high = np.searchsorted(scale, (values[left].max(), np.nanmin(values[~left])))
            below = rank(low, high)
            assert scale[below] <= node["cut"] < scale[below + 1], (number, low, high)
            n_wide += high > low + 1
        left |= np.isnan(values) & node["missing_left"]
        pending += [(number + 1, rows[left]), (node["right"], rows[~left])]
    return n_wide


@pytest.mark.parametrize("missing", [None, "informative", "ignore"])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["number", "numbers", "classes", "labels"])
def test_a_cut_lies_in_the_middle_of_the_values_that_it_may_lie_between(kind, weighted, is_sparse, missing):
    X = features(3, is_sparse=is_sparse, gaps=missing is not None)
    y = targets(kind, X)
    weight = np.random.default_rng(1).integers(1, 4, N_ROWS) / 4 if weighted else None
    settings = {
        "n_estimators": 2,
        "keep_trees": True,
        "bootstrap": False,
        "missing": missing or "informative",
    }
    for ties, rank in (("random", lambda low, high: (low + high) // 2), ("lowest", lambda low, _: low)):
        ranker = fr.ForestRanker(ties=ties, max_bins=65_535, **settings)
        ranker.fit(sparse.csr_array(X) if is_sparse else X, y, sample_weight=weight)
        for nodes in _trees(ranker):
            assert middles(nodes, X, rank) > 10


def _trees(ranker: fr.ForestRanker) -> list[list[dict[str, Any]]]:
    nodes = ranker.forest_.nodes().select(["tree", "feature", "cut", "missing_left", "right"]).to_pylist()
    return [[node for node in nodes if node["tree"] == tree] for tree in range(2)]


@pytest.mark.parametrize("score", ["genie3", "mdi_oob", "permutation"])
def test_importances_do_not_depend_on_the_scale_of_features(score):
    X = features(4)
    y = targets("number", X)
    settings = {"scores": score, "max_bins": 65_535, "n_estimators": 20, "random_state": 0}
    plain, changed = (
        fr.ForestRanker(**settings).fit(data, y).result_.importances(score)
        for data in (X, np.sign(X) * np.abs(X) ** 0.2 - 3)
    )
    np.testing.assert_array_equal(plain, changed)
