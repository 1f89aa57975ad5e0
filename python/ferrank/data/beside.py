"""Targets, weights and groups that are given as values beside the features, not as names of columns."""

import os
from collections.abc import Container, Mapping, Sequence, Set
from numbers import Number
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank._core import Source
from ferrank.data.source import is_lazy
from ferrank.data.tables import arrow_table
from ferrank.data.values import Numbered, label_sets
from ferrank.errors import DataError, SettingError

__all__ = ["join_values", "target_names", "values_beside"]


def target_names(data: Any, target: Any) -> list[str] | None:
    """Return the names of the targets; None if ``target`` is their values, or None.

    Raises
    ------
    SettingError
        ``target`` is neither.
    """
    if target is None:
        return None
    if isinstance(target, str):
        return [target]
    if isinstance(target, Set):
        return sorted(target)
    if getattr(getattr(data, "columns", None), "nlevels", 1) > 1:  # in pandas, tuples can be names
        given = [target] if isinstance(target, tuple) else target
        if isinstance(given, list) and all(
            isinstance(name, tuple) and name in data.columns for name in given
        ):
            return [str(name) for name in given]
    if isinstance(target, Number) and hasattr(data, "columns") and target in list(data.columns):
        return [str(target)]  # in pandas, numbers can be names
    if not hasattr(target, "__len__") and np.ndim(target) == 0:
        raise SettingError(
            f"target: {target!r} is neither the name of a column nor the values of the target; the columns "
            "of an array are called x0, x1 …, and target_last=1 is the last one"
        )
    is_table = isinstance(target, Mapping) or getattr(target, "ndim", 1) != 1
    if is_lazy(target) or is_table or not all(isinstance(name, str) for name in target):
        return None
    # A class for each row looks like names of columns, but these occur once; of no rows there are none.
    n_rows, names = (None, ()) if is_lazy(data) else _rows_and_names(data)
    if n_rows == len(target) == 0:
        return None
    are_names = len(set(target)) == len(target) and all(name in names for name in target)
    return list(target) if are_names or len(target) != n_rows else None


def _rows_and_names(data: Any) -> tuple[int | None, Container[str]]:
    """Return the number of rows of data in memory, None for others, and the names of their columns."""
    if isinstance(data, Mapping):
        return len(next(iter(data.values()), ())), set(map(str, data))
    if isinstance(data, list | tuple):
        is_rows = bool(data) and not isinstance(data[0], str | os.PathLike | Mapping)
        return (len(data), Numbered(np.size(data[0]))) if is_rows else (None, ())
    n_rows, n_columns = (*getattr(data, "shape", (None,)), 0)[:2]
    names = getattr(data, "column_names", getattr(data, "columns", None))
    return n_rows, Numbered(n_columns) if names is None else {str(name) for name in names}


def values_beside(data: Any, **given: Any) -> dict[str, Any]:
    """Return those of ``given`` that are values, and not None or the name of a column.

    Raises
    ------
    SettingError
        There are values, and ``data`` are files, in which only columns can be found.
    """
    values = {
        name: value for name, value in given.items() if value is not None and not isinstance(value, str)
    }
    is_in_files = isinstance(data, str | os.PathLike | Source) or (
        isinstance(data, list | tuple) and any(isinstance(part, str | os.PathLike) for part in data)
    )
    for name in values:
        if is_in_files:
            raise SettingError(f"{name}: values go with data in memory; give the name of a column")
    return values


def join_values(X: Any, values: Mapping[str, Any], *, is_labels: bool) -> tuple[Source, dict[str, Any]]:
    """Return a source of the features and the ``values`` beside them, and the names of the latter.

    Parameters
    ----------
    X : array, frame, table or mapping of columns
        The features, of shape (n_rows, n_features).
    values : mapping
        Of ``target``, ``sample_weight`` and ``groups`` those that are given.
    is_labels : bool
        Whether each value of the target is a set of labels.

    Raises
    ------
    DataError, ColumnTypeError
        The numbers of rows differ, or values are of a type that cannot be ranked.
    """
    # scikit-learn takes longer to import than a small table to be ranked.
    from ferrank.data.validation import Rows, join

    y = values.get("target")
    if isinstance(X, Mapping) or (isinstance(X, Sequence) and X and isinstance(X[0], Mapping)):
        X = arrow_table(X)
    if isinstance(X, np.ndarray | pa.Table) and X.shape[0] == 0:
        raise DataError("data: there are no rows (0 samples)")
    if isinstance(X, np.ndarray) and X.ndim != 2:
        raise DataError(f"data: an array of {X.ndim} dimensions; use (n_rows, n_columns)")
    source, names = join(
        Rows(has_target=y is not None),
        X,
        label_sets(y) if is_labels else y,
        values.get("sample_weight"),
        values.get("groups"),
    )
    return source, {"target": names["target"], "sample_weight": names["weight"], "groups": names["groups"]}
