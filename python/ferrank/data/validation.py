"""Features, targets, weights and groups as scikit-learn users hand them over, side by side as one source."""

from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags
from sklearn.utils.validation import _num_samples, validate_data

from ferrank._core import Source
from ferrank.data.libraries import from_library
from ferrank.data.opening import numbered
from ferrank.data.source import read_all
from ferrank.data.sparse import check_sparse, compressed_rows, issparse
from ferrank.data.tables import (
    arrow_table,
    as_matrix,
    check_names,
    checked,
    foreign,
    row_label_names,
    unmasked,
)
from ferrank.data.values import (
    Column,
    Names,
    Numbered,
    group_column,
    is_arrow,
    plain,
    target_columns,
    unlike,
)
from ferrank.errors import ColumnTypeError, DataError, Lines

__all__ = ["Rows", "features_alone", "join"]


class Rows(BaseEstimator):
    """An estimator to validate rows for, where there is no other."""

    def __init__(self, *, has_target: bool) -> None:
        self.has_target = has_target

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = self.has_target
        return tags


def join(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any,
    like: dict[str, Any] | None = None,
) -> tuple[Source, dict[str, Any]]:
    """Return a source of all columns, and which of them are the targets, the weights and the groups.

    ``X`` is validated for ``estimator``, which gets ``n_features_in_`` and ``feature_names_in_``. Where its
    tags say that it needs no target, ``y`` is not looked at. ``like`` says what the targets, weights
    and groups of the batches before are; ``X`` must then have the features that ``estimator`` knows, and
    targets are called as they were.
    """
    with foreign("X", Lines):
        return _join(estimator, X, y, sample_weight, groups, like)


def _join(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, like: dict[str, Any] | None
) -> tuple[Source, dict[str, Any]]:
    supervised = get_tags(estimator).target_tags.required
    y = y if supervised else None
    X = _in_memory(X)
    read = _frame if _is_frame(X) else _matrix
    features = read(estimator, X, y, reset=like is None)
    names = features[0]
    n_rows = _num_samples(X)
    if supervised and _num_samples(y) != n_rows:
        raise DataError(f"y: {_num_samples(y)} values for {n_rows} rows; give one for each row")
    targets = unlike(names, target_columns(y)) if supervised else []
    if like is not None:
        targets = _called(like["target"] or [], targets, y)
        _check_given("sample_weight", "weights", sample_weight, like["weight"])
        _check_given("groups", "groups", groups, like["groups"])
    weights: list[Column] = []
    if sample_weight is not None:
        weights = unlike(names, [("sample_weight", _weights(sample_weight, n_rows))], targets)
    group: list[Column] = []
    if groups is not None:
        column = group_column(groups)
        if len(column) != n_rows:
            raise DataError(f"groups: {len(column)} values for {n_rows} rows; give one for each row")
        group = unlike(names, [("groups", column)], targets + weights)
    source = _source(*features, targets + weights + group)
    return source, {
        "target": [name for name, _ in targets] or None,
        "weight": weights[0][0] if weights else None,
        "groups": group[0][0] if group else None,
    }


def features_alone(estimator: Any, X: Any) -> Source:
    """Return a source of the features of rows to predict, validated for the fitted ``estimator``."""
    with foreign("X", Lines):
        X = _in_memory(X)
        read = _frame if _is_frame(X) else _matrix
        return _source(*read(estimator, X, "no_validation", reset=False), [])


def _check_given(parameter: str, what: str, now: Any, before: str | None) -> None:
    """Raise an error if ``what`` is given with this batch and was not with those before, or the reverse."""
    if (now is None) != (before is None):
        here, there = ("are not", "were") if now is None else ("are", "were not")
        raise DataError(
            f"{parameter}: {what} {here} given with this batch and {there} with those before; give them "
            "with all batches or with none"
        )


def _called(names: list[str], targets: list[Column], y: Any) -> list[Column]:
    """Return ``targets`` under the ``names`` that they had in the batches before."""
    if len(targets) != len(names):
        raise DataError(f"y: {len(targets)} targets, the batches before have {len(names)}; give the same")
    for name, (found, _) in zip(names, targets, strict=True):
        if hasattr(y, "columns") and len(names) > 1 and found != name:
            raise DataError(
                f"y: it has the target '{found}' where the batches before have '{name}'; give the same "
                "targets in the same order"
            )
    return [(name, column) for name, (_, column) in zip(names, targets, strict=True)]


def _weights(given: Any, n_rows: int) -> np.ndarray[Any, Any]:
    """Return the weight of each row."""
    try:
        weights = np.asarray(unmasked(given), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ColumnTypeError(f"sample_weight: {error}; use numbers") from error
    if weights.ndim == 0:
        raise DataError(
            f"sample_weight: {given!r} is a single number; give each row one weight, or leave it out"
        )
    if weights.shape != (n_rows,):
        raise DataError(
            f"sample_weight: an array of shape {weights.shape} for {n_rows} rows; give each row one weight"
        )
    refused = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(refused):
        raise DataError(
            f"sample_weight: {weights[refused[0]]} in row {refused[0]}; give finite weights of at least 0, "
            "or drop the row"
        )
    return weights


def _in_memory(X: Any) -> Any:
    """Return rows that are read once or when they are asked for, such as lazy frames, as a table."""
    if X is None:
        raise ColumnTypeError("X: None was given; give the rows, such as an array or a frame")
    if hasattr(X, "read_next_batch"):
        return X.read_all()
    if issparse(X):
        check_sparse(X, "X")
        return X
    lazy = from_library(X, None)
    return unmasked(X) if lazy is None else read_all(lazy)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__") or hasattr(X, "iloc")


def _frame(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[list[str], Any]:
    if (matrix := as_matrix(X)) is not None:
        validate_data(estimator, X, y, reset=reset, skip_check_array=True)
        return matrix[0], plain(matrix[1], "X")
    table = arrow_table(X)
    if row_labels := row_label_names(table.schema):
        X = table = table.drop_columns(row_labels)
    names = table.column_names  # a list that is made anew each time
    check_names(names, "X")
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    if 0 in table.shape:
        raise DataError(
            f"X: {table.shape[0]} rows and {table.shape[1]} columns; at least 1 of each is needed"
        )
    return names, table


def _matrix(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[Names, Any]:
    kind = getattr(np.asarray(X) if isinstance(X, list | tuple) else X, "dtype", np.dtype(float)).kind
    if kind == "c":
        raise DataError("X: Complex data not supported; use real numbers, such as X.real beside X.imag")
    text = kind in "OUST"
    # Missing values are welcome, and infinity is refused by the engine, which names the column.
    checks = {"dtype": None if text else "numeric", "ensure_all_finite": False, "accept_sparse": "csr"}
    checks["reset"] = reset
    if y is None:
        validate_data(estimator, X, y, **checks)
    X = validate_data(estimator, X, **checks)
    given = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    if text or issparse(X):
        names = given or numbered(X.shape[1])
        return names, arrow_table(dict(zip(names, X.T, strict=True))) if text else X
    return given or Numbered(X.shape[1]), plain(X, "X")


def _source(names: Names, features: Any, others: list[Column]) -> Source:
    if issparse(features):
        features = compressed_rows(features, "X")
    if isinstance(features, np.ndarray | tuple):
        columns: list[tuple[list[str] | None, Any]] = [([name], _upright(column)) for name, column in others]
        return Source.arrays([(None if isinstance(names, Numbered) else names, features), *columns], "X")
    for name, column in others:
        features = features.append_column(name, checked(column) if is_arrow(column) else pa.array(column))
    return Source.table(features, "X")


def _upright(column: Any) -> Any:
    """Return a NumPy column as a matrix, an Arrow one in one piece."""
    if not is_arrow(column):
        return column.reshape(-1, 1)
    column = checked(column)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
