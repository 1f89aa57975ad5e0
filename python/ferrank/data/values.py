"""Targets, groups and weights that lie beside a table, as columns."""

from collections.abc import Container
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank.data.tables import arrow_array, arrow_table
from ferrank.errors import ColumnTypeError, DataError

__all__ = [
    "Column",
    "Names",
    "Numbered",
    "group_column",
    "group_numbers",
    "holds_label_sets",
    "is_arrow",
    "label_sets",
    "plain",
    "target_columns",
    "unlike",
]

Column = tuple[str, Any]
"""A name and a one-dimensional NumPy or Arrow array."""


def group_column(groups: Any, name: str = "groups") -> Any:
    """Return a value for each row, such as its group, as an Arrow array; NaN and None are missing."""
    if not hasattr(groups, "__len__") and not is_arrow(groups) and np.ndim(groups) == 0:
        raise ColumnTypeError(f"{name}: {groups!r} is no array; give a value for each row, or name a column")
    try:
        if isinstance(groups, pa.Table):
            groups = groups.column(0)
        if is_arrow(groups):
            return groups
        if hasattr(groups, "__arrow_c_stream__") and not hasattr(groups, "iloc"):
            return pa.chunked_array(groups)
        return arrow_array(groups, name)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ColumnTypeError(
            f"{name}: {error}; use one value for each row, such as strings or integers"
        ) from error


def group_numbers(groups: pa.ChunkedArray, source: str, name: str) -> np.ndarray[Any, Any]:
    """Return the number of each row's group, of shape (n_rows,); column ``name`` of ``source`` has them."""
    from pyarrow import compute as pc

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
        table = arrow_table(y)
        return list(zip(table.column_names, table.columns, strict=True))
    if hasattr(y, "__arrow_c_stream__") or isinstance(y, pa.Array):
        name = getattr(y, "name", None)
        column = pa.array(y, from_pandas=True) if hasattr(y, "iloc") else pa.chunked_array(y)
        return [(str(name) if name else "y", column)]
    try:
        # Of a masked array, asarray drops the mask.
        array = np.asanyarray(y) if isinstance(y, np.ma.MaskedArray) else np.asarray(y)
    except ValueError as error:
        raise DataError(
            f"y: {error}; where each row has a list of labels, say task='hierarchical'"
        ) from error
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        return [(str(getattr(y, "name", None) or "y"), _target(array.ravel()))]
    if array.ndim != 2 or array.shape[1] == 0:
        raise DataError(f"y: an array of shape {array.shape}; use (n_rows,) or (n_rows, n_targets)")
    return [(f"y{number}", _target(column)) for number, column in enumerate(array.T)]


def holds_label_sets(task: str | None, hierarchy: Any, y: Any = None) -> bool:
    """Return True if the target holds a set of labels for each row, by what was given, or as ``y`` has it."""
    return task == "hierarchical" or (task is None and (hierarchy is not None or _are_sets(y)))


def _are_sets(y: Any) -> bool:
    """Return True if ``y`` has a list, tuple or set of strings for each row whose target is known."""
    if not isinstance(y, list | tuple):
        return False
    known = [row for row in y if row is not None and not isinstance(row, float)]
    return bool(known) and all(
        isinstance(row, list | tuple | set | frozenset) and all(isinstance(label, str) for label in row)
        for row in known
    )


def label_sets(y: Any) -> Any:
    """Return ``y``, a list of labels or one text for each row, as an Arrow array.

    Missing are None and NaN. Arrow arrays and columns of frames are taken as they are.
    """
    if y is None or hasattr(y, "columns") or is_arrow(y) or hasattr(y, "__arrow_c_stream__"):
        return y
    try:
        rows = [sorted(row) if isinstance(row, set | frozenset) else row for row in y]
        return arrow_array(rows, "y")
    except (pa.ArrowInvalid, TypeError) as error:
        raise ColumnTypeError(f"y: {error}; use a list of strings for each row") from error


def _target(column: np.ndarray[Any, Any]) -> Any:
    if column.dtype.kind not in "OUST" and not np.ma.is_masked(column):
        return plain(column, "y")
    try:
        return arrow_array(column, "y")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise ColumnTypeError(f"y: {error}; use one type: numbers, booleans or strings") from error


def plain(array: np.ndarray[Any, Any], what: str) -> np.ndarray[Any, Any]:
    """Return ``array`` in a type that the engine reads, without a copy where it is one already."""
    if array.dtype.kind not in "biuf":
        raise ColumnTypeError(f"{what}: an array of {array.dtype}; use numbers, booleans or strings")
    if array.dtype.itemsize > 8:
        return array.astype(np.float64)
    return array.astype(array.dtype.newbyteorder("="), copy=False)


class Numbered(Container[str]):
    """The names of ``n_columns`` columns that have none: ``x0``, ``x1`` …, which the engine makes.

    A list of 20,000 names takes as long as ten trees on 200 rows.
    """

    def __init__(self, n_columns: int) -> None:
        self.n_columns = n_columns

    def __contains__(self, name: object) -> bool:
        """Return True if a column has this name."""
        digits = str(name)[1:]
        is_numbered = digits.isascii() and digits.isdecimal() and name == f"x{int(digits)}"
        return is_numbered and int(digits) < self.n_columns


Names = list[str] | Numbered
"""The names of the columns of a matrix or table."""


def unlike(taken: Names, columns: list[Column], beside: list[Column] | None = None) -> list[Column]:
    """Return ``columns`` with underscores added to names that are taken, also by columns ``beside`` them."""
    known = taken if isinstance(taken, Numbered) else frozenset(taken)
    names = {name for name, _ in beside or []}
    renamed = []
    for name, column in columns:
        while name in known or name in names:
            name += "_"
        names.add(name)
        renamed.append((name, column))
    return renamed


def is_arrow(column: Any) -> bool:
    """Return whether ``column`` is an array of Arrow."""
    return isinstance(column, pa.Array | pa.ChunkedArray)
