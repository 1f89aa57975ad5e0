"""Sparse arrays rank as the dense ones that they stand for, to the bit."""

from __future__ import annotations

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
        (sp.csr_array(np.eye(4)), "inconsistent numbers of samples"),
        (sp.csr_array((3, 0)), "0 feature"),
        (sp.coo_array(np.ones(3)), "2D|dimension"),
        (sp.csr_array(np.diag([1.0, np.inf, 0.0])), "x1.*inf"),
        (broken(indices=[0, 1, 3]), "an index is 3"),
        (broken(indices=[0, -1, 2]), "an index is -1"),
        (broken(indptr=[0, 2, 1, 3]), "indptr descends from 2 to 1"),
        (broken(indptr=[1, 1, 2, 3]), "indptr goes from"),
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
