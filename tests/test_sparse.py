"""Sparse arrays rank as the dense ones that they stand for, to the bit."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import ferrank as fr

RANKERS = [
    fr.ForestRanker(n_estimators=5, scores=("genie3", "permutation")),
    fr.ReliefRanker(n_neighbors=(2, 7)),
    fr.ReliefRanker(n_neighbors=3, n_iterations=20, sigma=2.0),
    fr.ReliefRanker(n_neighbors=3, scaling="rank", missing="informative"),
]


def example(n_rows: int = 80, n_columns: int = 200, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Few values, some alike, some columns without any, and a target that follows from the first two."""
    rng = np.random.default_rng(seed)
    X = np.where(rng.random((n_rows, n_columns)) < 0.04, rng.integers(-3, 9, (n_rows, n_columns)) / 4, 0.0)
    X[:, :2] += rng.integers(0, 2, (n_rows, 2))
    X[7] = 0
    X[:, 11] = 0
    return X, X[:, 0] + 2 * X[:, 1]


def assert_same(ranker: Any, sparse: Any, dense: np.ndarray, y: np.ndarray) -> None:
    found = ranker.fit(sparse, y).result_
    expected = ranker.fit(dense, y).result_
    assert found.features == expected.features
    assert found.model_error == expected.model_error
    for name, score in expected.scores.items():
        np.testing.assert_array_equal(found.scores[name].importance, score.importance, strict=True)
        np.testing.assert_array_equal(
            found.scores[name].monte_carlo_error, score.monte_carlo_error, strict=True
        )


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize(
    "container", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_matrix]
)
def test_as_dense(ranker: Any, classes: bool, container: Callable[[Any], Any]) -> None:
    X, y = example()
    assert_same(ranker, container(X), X, (y > np.median(y)).astype(str) if classes else y)


@pytest.mark.parametrize("ranker", RANKERS)
@pytest.mark.parametrize("dtype", [bool, "i1", "u2", "i4", "i8", "f4", "f8", "longdouble"])
def test_types(ranker: Any, dtype: Any) -> None:
    X, y = example(seed=1)
    X = X.astype(dtype)
    assert_same(ranker, sp.csr_array(X), X, y)


@pytest.mark.parametrize("ranker", RANKERS)
def test_missing_values(ranker: Any) -> None:
    X, y = example(seed=2)
    X[::9, 3] = np.nan
    X[5, 20:30] = np.nan
    assert_same(ranker, sp.csr_array(X), X, y)


@pytest.mark.parametrize("ranker", RANKERS)
def test_explicit_zeros_disorder_and_duplicates(ranker: Any) -> None:
    X, y = example(seed=3)
    rows, columns = X.nonzero()
    values = X[rows, columns]
    rows, columns = np.r_[rows, rows, 0, 7], np.r_[columns, columns, 50, 3]
    values = np.r_[values / 2, values / 2, 0, 0]
    shuffled = np.random.default_rng(0).permutation(len(rows))
    shuffled = shuffled[np.argsort(rows[shuffled], kind="stable")]
    starts = np.r_[0, np.cumsum(np.bincount(rows, minlength=len(X)))]
    sparse = sp.csr_array((values[shuffled], columns[shuffled], starts), shape=X.shape)
    before = sparse.indices.copy()
    assert_same(ranker, sparse, X, y)
    np.testing.assert_array_equal(sparse.indices, before)


def test_myopic() -> None:
    X, y = example()
    X[::7, 5] = np.nan
    ranker = fr.ReliefRanker(n_neighbors=3, scores=("relief", "myopic"))
    assert_same(ranker, sp.csr_array(X), X, (y > np.median(y)).astype(str))


@pytest.mark.parametrize("ranker", RANKERS)
def test_many_columns(ranker: Any) -> None:
    X = sp.random_array((150, 50_000), density=0.001, rng=np.random.default_rng(4), format="csr")
    y = X[:, :500].sum(axis=1)
    assert_same(ranker, X, X.toarray(), y)


def test_negative_values_and_no_zeros() -> None:
    X, y = example(seed=5)
    X[:, 0] -= 5
    X[:, 4] = 3
    for ranker in RANKERS:
        assert_same(ranker, sp.csr_array(X), X, y)


def test_rows_weigh_and_may_be_unlabelled() -> None:
    X, y = example(seed=6)
    y[::5] = np.nan
    weights = np.random.default_rng(0).random(len(X))
    sparse, dense = (
        fr.ForestRanker(n_estimators=4, unlabelled="ignore").fit(features, y, weights).feature_importances_
        for features in (sp.csr_array(X), X)
    )
    np.testing.assert_array_equal(sparse, dense)


def test_whole_tables() -> None:
    X, y = example(seed=7)
    table = np.c_[X, y]
    sparse, dense = (fr.rank(t, target_last=1, n_estimators=4) for t in (sp.csr_array(table), table))
    np.testing.assert_array_equal(sparse.importances(), dense.importances())
    assert fr.inspect(sp.csr_array(table)) == fr.inspect(table)


def test_transform_keeps_sparse() -> None:
    X, y = example()
    ranker = fr.ForestRanker(n_estimators=3, n_features_to_select=2)
    kept = ranker.fit_transform(sp.csr_array(X), y)
    assert sp.issparse(kept)
    assert kept.shape == (80, 2)


def broken(**parts: list[int]) -> sp.csr_array:
    matrix = sp.csr_array(np.eye(3))
    for name, value in parts.items():
        setattr(matrix, name, np.array(value, dtype=np.int32))
    matrix.has_canonical_format = True
    return matrix


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (sp.csr_array(np.eye(3) * 1j), "omplex"),
        (sp.csr_array(np.eye(4)), "values for [0-9]+ rows; give one for each"),
        (sp.csr_array((3, 0)), "0 feature"),
        (sp.coo_array(np.ones(3)), "2D|dimension"),
        (sp.csr_array(np.diag([1.0, np.inf, 0.0])), "x1.*inf"),
        (broken(indices=[0, 1, 3]), "indices must be < 3"),
        (broken(indices=[0, -1, 2]), "indices must be >= 0"),
        (broken(indptr=[0, 2, 1, 3]), "the rows do not begin one after the other"),
        (broken(indptr=[1, 1, 2, 3]), "the rows do not begin"),
    ],
)
@pytest.mark.parametrize("ranker", RANKERS[:2])
def test_errors(ranker: Any, X: Any, message: str) -> None:
    with pytest.raises((fr.DataError, ValueError), match=message):
        ranker.fit(X, [1.5, 2.5, 3.5])


def test_errors_of_whole_tables() -> None:
    with pytest.raises(fr.ColumnTypeError, match="complex"):
        fr.rank(sp.csr_array(np.eye(3) * 1j), target_last=1)
    with pytest.raises(fr.DataError, match="1 dimensions"):
        fr.rank(sp.coo_array(np.ones(3)), target_last=1)


def damaged(kind: str, **parts: Any) -> Any:
    """Return a sparse array of shape (2, 2) in which ``parts`` are other arrays than they were."""
    matrix = getattr(sp, f"{kind}_array")(np.eye(2))
    for name, values in parts.items():
        setattr(matrix, name, values)
    return matrix


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (damaged("csr", indptr=np.zeros(0, np.int32)), "the rows do not begin at 0"),
        (damaged("csc", indptr=np.zeros(0, np.int32)), "the rows do not begin at 0"),
        (damaged("csr", indices=np.array([0.5, 1.7])), "float64, not integers"),
        (damaged("csc", indptr=np.array([0.0, 1.0, 2.0])), "float64, not integers"),
        (damaged("coo", coords=(np.array([0]), np.array([0, 1]))), "1 rows and 2 columns of 2 values"),
        (damaged("coo", coords=(np.array([0, 2]), np.array([0, 1]))), "a place 2"),
    ],
)
def test_damaged_arrays(matrix: Any, message: str) -> None:
    for call in (fr.inspect, lambda X: fr.ForestRanker(n_estimators=2).fit(X, [0.5, 1.5])):
        with pytest.raises(fr.DataError, match=f"the sparse array is damaged: .*{message}"):
            call(matrix)


def test_arrays_that_claim_more_than_memory_holds() -> None:
    wide = sp.csr_array(([1.0, 2.0], ([0, 1], [0, 10**9])), shape=(3, 10**9 + 1))
    tall = sp.csc_array(np.eye(3))
    tall._shape = (10**12, 3)
    for matrix in (wide, tall):
        for call in (fr.inspect, lambda X: fr.ForestRanker(n_estimators=2).fit(X, [0.5, 1.5, 2.5])):
            with pytest.raises(fr.ResourceError, match="1,000,000,00.* MiB of memory"):
                call(matrix)


def many(n_rows: int = 400, n_columns: int = 1_500, seed: int = 0) -> sp.csr_array:
    """Return so many columns with few values that forests keep these alone, and some with more values."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_rows, n_columns), density=0.01, format="lil", rng=rng)
    X[:, :300] *= -8
    X[:, 7] = rng.integers(0, 3, (n_rows, 1))
    X[:, 900:903] = rng.normal(size=(n_rows, 3)) * (rng.random((n_rows, 3)) < 0.3)
    X[::50, 11] = np.nan
    X[::7, 1_400] = np.nan
    X[3] = 0
    rows = X.tocsr()
    # Some entries are 0.
    rows.data[::30] = 0
    return rows


def wide_targets(X: sp.csr_array) -> np.ndarray:
    known = np.nan_to_num(X.toarray())
    return np.c_[known[:, :40].sum(axis=1), known[:, 900] + known[:, 40:900].sum(axis=1)]


MANY = [
    {"scores": ("genie3", "symbolic", "permutation", "mdi_oob")},
    {"missing": "informative", "max_features": 0.2},
    {"ensemble": "extra_trees", "max_features": None},
    {"ensemble": "bagging", "min_samples_leaf": 4, "max_depth": 6},
    {"max_bins": 300, "max_features": 3},
]


@pytest.mark.parametrize("settings", MANY)
@pytest.mark.parametrize("target", ["number", "classes", "numbers", "labels"])
def test_many_sparse_features(settings: dict[str, Any], target: str) -> None:
    X = many()
    values = wide_targets(X)
    y = {
        "number": values[:, 0],
        "classes": np.digitize(values[:, 0], [-2, 0, 1]).astype(str),
        "numbers": values,
        "labels": values > 0,
    }[target]
    assert_same(fr.ForestRanker(n_estimators=6, **settings), X, X.toarray(), y)


def test_many_sparse_features_with_weights_groups_and_rows_left_out() -> None:
    X = many(seed=1)
    y = wide_targets(X)[:, 0]
    y[::5] = np.nan
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 3, len(y)).astype(float)
    groups = rng.integers(0, 60, len(y))
    results = [
        fr.ForestRanker(n_estimators=6, unlabelled="ignore").fit(features, y, weights, groups=groups).result_
        for features in (X, X.toarray())
    ]
    assert results[0].to_dict()["scores"] == results[1].to_dict()["scores"]
    assert results[0].model_error == results[1].model_error


@pytest.mark.slow
def test_shadows_of_many_sparse_features() -> None:
    X = many(seed=4)
    y = wide_targets(X)[:, 0]
    sparse, dense = (
        fr.ForestRanker(n_estimators=200, shadows=True, max_depth=5).fit(features, y).result_.to_dict()
        for features in (X, X.toarray())
    )
    del sparse["seconds"], dense["seconds"]
    assert sparse == dense


def test_a_value_that_is_not_finite_is_named() -> None:
    X = many(seed=5)
    X.data[X.indptr[8]] = np.inf
    for features in (X, X.toarray()):
        with pytest.raises(ValueError, match=rf"column 'x{X.indices[X.indptr[8]]}': the value inf"):
            fr.ForestRanker(n_estimators=2).fit(features, np.arange(X.shape[0]))


@pytest.mark.slow
def test_memory_follows_the_entries_and_not_the_cells() -> None:
    """10,000 rows and 200,000 columns would have 2 GB of codes."""
    script = """
import resource, numpy as np, scipy.sparse as sp, ferrank as fr
rng = np.random.default_rng(0)
columns, starts = rng.integers(0, 200_000, 100_000), np.arange(0, 100_001, 10)
X = sp.csr_array((np.ones(100_000), columns, starts), (10_000, 200_000))
y = X[:, :2_000].sum(axis=1)
fr.ForestRanker(n_estimators=1).fit(np.eye(5), np.arange(5))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
fr.ForestRanker(n_estimators=3, n_jobs=1).fit(X, y)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    grown = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout
    # About 900 bytes for each column, its name included, in Python and in the engine.
    assert int(grown) < 250_000
