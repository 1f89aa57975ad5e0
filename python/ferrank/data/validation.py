"""Features, targets, weights and groups as scikit-learn users hand them over, side by side as one source."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.utils import check_consistent_length, get_tags
from sklearn.utils.validation import _check_sample_weight, _num_samples, validate_data

from ferrank._core import Source
from ferrank.data.opening import numbered
from ferrank.data.sparse import compressed_rows, issparse
from ferrank.data.tables import as_table, checked
from ferrank.errors import ColumnTypeError, DataError, FerrankError

__all__ = [
    "Column",
    "features_alone",
    "group_column",
    "group_numbers",
    "join",
    "label_sets",
    "target_columns",
    "unlike",
]

Column = tuple[str, Any]
"""A name and a one-dimensional NumPy or Arrow array."""


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
    with _ours():
        return _join(estimator, X, y, sample_weight, groups, like)


@contextmanager
def _ours() -> Iterator[None]:
    """Raise what scikit-learn's checks raise as exceptions of ferrank."""
    try:
        yield
    except FerrankError:
        raise
    except ValueError as error:
        raise DataError(str(error)) from error
    except TypeError as error:
        raise ColumnTypeError(str(error)) from error


def _join(
    estimator: Any, X: Any, y: Any, sample_weight: Any, groups: Any, like: dict[str, Any] | None
) -> tuple[Source, dict[str, Any]]:
    supervised = get_tags(estimator).target_tags.required
    y = y if supervised else None
    read = _frame if _is_frame(X) else _matrix
    features = read(estimator, X, y, reset=like is None)
    names = features[0]
    check_consistent_length(X, y)
    targets = unlike(names, target_columns(y)) if supervised else []
    if like is not None:
        targets = _called(like["target"] or [], targets, y)
        _check_given("sample_weight", "weights", sample_weight, like["weight"])
        _check_given("groups", "groups", groups, like["groups"])
    weights: list[Column] = []
    if sample_weight is not None:
        taken = [*names, *(name for name, _ in targets)]
        weights = unlike(taken, [("sample_weight", _check_sample_weight(sample_weight, X, dtype=np.float64))])
    group: list[Column] = []
    if groups is not None:
        column, n_rows = group_column(groups), _num_samples(X)
        if len(column) != n_rows:
            raise DataError(f"groups: {len(column)} values for the {n_rows} rows of X; give one for each row")
        taken = [*names, *(name for name, _ in targets + weights)]
        group = unlike(taken, [("groups", column)])
    source = _source(*features, targets + weights + group)
    return source, {
        "target": [name for name, _ in targets] or None,
        "weight": weights[0][0] if weights else None,
        "groups": group[0][0] if group else None,
    }


def features_alone(estimator: Any, X: Any) -> Source:
    """Return a source of the features of rows to predict, validated for the fitted ``estimator``."""
    read = _frame if _is_frame(X) else _matrix
    with _ours():
        return _source(*read(estimator, X, "no_validation", reset=False), [])


def _check_given(parameter: str, what: str, now: Any, before: str | None) -> None:
    """Raise an error if ``what`` is given with this batch and was not with those before, or the reverse."""
    if (now is None) != (before is None):
        here, there = ("are not", "were") if now is None else ("are", "were not")
        raise DataError(
            f"{parameter}: {what} {here} given with this batch and {there} with those before; give them "
            "with all batches or with none"
        )


def group_column(groups: Any, name: str = "groups") -> Any:
    """Return a value for each row, such as its group, as an Arrow array; NaN and None are missing."""
    try:
        if isinstance(groups, pa.Table):
            groups = groups.column(0)
        if _is_arrow(groups):
            return groups
        if hasattr(groups, "__arrow_c_stream__") and not hasattr(groups, "iloc"):
            return pa.chunked_array(groups)
        return pa.array(groups, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ColumnTypeError(
            f"{name}: {error}; use one value for each row, such as strings or integers"
        ) from error


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


def _is_frame(X: Any) -> bool:
    return hasattr(X, "__arrow_c_stream__") or hasattr(X, "__arrow_c_array__") or hasattr(X, "iloc")


def _frame(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[list[str], Any]:
    table = pa.table(as_table(X))
    for name in table.column_names:
        if table.schema.get_field_index(name) < 0:
            raise DataError(f"X: two columns are called '{name}'; rename one")
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    if 0 in table.shape:
        raise DataError(
            f"X: {table.shape[0]} rows and {table.shape[1]} columns; at least 1 of each is needed"
        )
    return list(table.column_names), table


def _matrix(estimator: Any, X: Any, y: Any, *, reset: bool) -> tuple[list[str], Any]:
    text = (
        getattr(np.asarray(X) if isinstance(X, list | tuple) else X, "dtype", np.dtype(float)).kind in "OUST"
    )
    # Missing values are welcome, and infinity is refused by the engine, which names the column.
    checks = {"dtype": None if text else "numeric", "ensure_all_finite": False, "accept_sparse": "csr"}
    checks["reset"] = reset
    if y is None:
        validate_data(estimator, X, y, **checks)
    X = validate_data(estimator, X, **checks)
    names = [str(name) for name in getattr(estimator, "feature_names_in_", ())]
    names = names or numbered(X.shape[1])
    if text:
        return names, pa.table(as_table(dict(zip(names, X.T, strict=True))))
    return names, X if issparse(X) else _plain(X, "X")


def _plain(array: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    """Return ``array`` in a type that the engine reads, without a copy where it is one already."""
    if array.dtype.kind not in "biuf":
        raise ColumnTypeError(f"{what}: an array of {array.dtype}; use numbers, booleans or strings")
    if array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def group_numbers(groups: pa.ChunkedArray, source: str, name: str) -> np.ndarray[Any, Any]:
    """Return the number of each row's group, of shape (n_rows,); column ``name`` of ``source`` has them."""
    missing = pc.sum(pc.is_null(groups, nan_is_null=True)).as_py() or 0
    if missing:
        raise DataError(
            f"{source}: column '{name}': {missing} of {len(groups)} rows have no group; leave these rows "
            "out, or give each of them a group of its own"
        )
    if pa.types.is_dictionary(groups.type):
        groups = groups.cast(groups.type.value_type)
    return np.asarray(pc.index_in(groups, value_set=pc.unique(groups)).to_numpy())


def target_columns(y: Any) -> list[Column]:
    """Return the targets as columns with names: their own, or ``y``, or ``y0``, ``y1`` …."""
    if hasattr(y, "columns"):
        table = pa.table(as_table(y))
        return list(zip(table.column_names, table.columns, strict=True))
    if hasattr(y, "__arrow_c_stream__") or isinstance(y, pa.Array):
        name = getattr(y, "name", None)
        column = pa.array(y, from_pandas=True) if hasattr(y, "iloc") else pa.chunked_array(y)
        return [(str(name) if name else "y", column)]
    try:
        array = np.asarray(y)
    except ValueError as error:
        raise DataError(
            f"y: {error}; where each row has a list of labels, say task='hierarchical'"
        ) from error
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        return [(str(getattr(y, "name", None) or "y"), _target(array.ravel()))]
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"y: an array of shape {array.shape}; use (n_rows,) or (n_rows, n_targets)")
    return [(f"y{number}", _target(column)) for number, column in enumerate(array.T)]


def label_sets(y: Any) -> Any:
    """Return ``y``, a list of labels or one text for each row, as an Arrow array.

    Missing are None and NaN. Arrow arrays and columns of frames are taken as they are.
    """
    if y is None or hasattr(y, "columns") or _is_arrow(y) or hasattr(y, "__arrow_c_stream__"):
        return y
    rows = [sorted(row) if isinstance(row, set | frozenset) else row for row in y]
    try:
        return pa.array(rows, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ColumnTypeError(f"y: {error}; use a list of strings for each row") from error


def _target(column: np.ndarray[Any, Any]) -> Any:
    if column.dtype.kind not in "OUST":
        return _plain(column, "y")
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ColumnTypeError(f"y: {error}; use one type: numbers, booleans or strings") from error


def unlike(taken: list[str], columns: list[Column]) -> list[Column]:
    """Return ``columns`` with underscores added to names that are taken."""
    names = set(taken)
    renamed = []
    for name, column in columns:
        while name in names:
            name += "_"
        names.add(name)
        renamed.append((name, column))
    return renamed


def _source(names: list[str], features: Any, others: list[Column]) -> Source:
    if issparse(features):
        features = compressed_rows(features, "X")
    if isinstance(features, np.ndarray | tuple):
        columns = [([name], _upright(column)) for name, column in others]
        return Source.arrays([(names, features), *columns], "X")
    for name, column in others:
        features = features.append_column(name, checked(column) if _is_arrow(column) else pa.array(column))
    return Source.table(features, "X")


def _is_arrow(column: Any) -> bool:
    return isinstance(column, pa.Array | pa.ChunkedArray)


def _upright(column: Any) -> Any:
    """Return a NumPy column as a matrix, an Arrow one in one piece."""
    if not _is_arrow(column):
        return column.reshape(-1, 1)
    column = checked(column)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
