"""NumPy arrays as sources."""

from typing import Any

import numpy as np
import pyarrow as pa

from ferrank._core import Source
from ferrank.data.opening import numbered
from ferrank.data.tables import arrow_array
from ferrank.errors import ColumnTypeError, DataError, FerrankError

__all__ = ["array_source"]


def array_source(array: np.ndarray[Any, Any], name: str) -> Source:
    """Return an array of shape (n_rows, n_columns) as a source, whose columns are called ``x0``, ``x1`` …."""
    if array.ndim != 2:
        raise DataError(f"{name}: an array of {array.ndim} dimensions; use (n_rows, n_columns)")
    if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8 and not np.ma.is_masked(array):
        return Source.arrays([(None, array.astype(array.dtype.newbyteorder("="), copy=False))], name)
    names = numbered(array.shape[1])
    try:
        table = pa.table(
            {name: arrow_array(column, name) for name, column in zip(names, array.T, strict=True)}
        )
    except FerrankError:
        raise
    except (pa.ArrowException, OverflowError, ValueError, TypeError) as error:
        raise ColumnTypeError(
            f"{name}: an array of {array.dtype}; {error}; use numbers, booleans or strings"
        ) from error
    return Source.table(table, name)
