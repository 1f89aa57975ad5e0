"""Sparse matrices and arrays of SciPy, as the engine reads them: compressed rows, never made dense."""

from typing import Any

import numpy as np
import pyarrow as pa

from ferrank.errors import ColumnTypeError, DataError

__all__ = ["compressed_rows", "issparse"]


def issparse(data: Any) -> bool:
    """Return whether ``data`` is of SciPy, which takes long to import, by what it can do."""
    return hasattr(data, "tocsr")


def compressed_rows(matrix: Any, what: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return ``indptr``, ``indices`` and ``data`` of ``matrix``, columns in order and once in a row.

    What is in this form already is not copied; ``matrix`` itself is left as it is. Entries given twice add
    up, as everywhere in SciPy.
    """
    if matrix.ndim != 2:
        raise DataError(f"{what}: a sparse array of {matrix.ndim} dimensions; use (n_rows, n_columns)")
    if matrix.dtype.kind not in "biuf":
        raise ColumnTypeError(f"{what}: a sparse array of {matrix.dtype}; use numbers or booleans")
    _check_places(matrix, what)
    rows = matrix.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy() if rows is matrix else rows
        rows.sum_duplicates()
    if rows.shape[1] > np.iinfo(np.int32).max:
        raise DataError(f"{what}: {rows.shape[1]} columns; at most {np.iinfo(np.int32).max} can be ranked")
    values = rows.data.astype(np.float64) if rows.dtype.itemsize > 8 else rows.data
    return (
        pa.array(rows.indptr.astype(np.int64, copy=False)),
        pa.array(rows.indices.astype(np.int32, copy=False)),
        pa.array(values.astype(values.dtype.newbyteorder("="), copy=False)),
    )


def _check_places(matrix: Any, what: str) -> None:
    """Raise an error if ``matrix`` has values outside itself: SciPy would write them to other memory."""
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            starts = matrix.indptr
            if starts[0] != 0 or (starts[1:] < starts[:-1]).any() or starts[-1] > len(matrix.indices):
                raise ValueError("the rows do not begin one after the other")
            matrix.check_format(full_check=True)
        elif matrix.format == "coo":
            for places, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
                if len(places) and not 0 <= places.min() <= places.max() < size:
                    raise ValueError(f"a place {places.max()} or {places.min()} where there are {size}")
    except ValueError as error:
        raise DataError(f"{what}: the sparse array is damaged: {error}; make it anew") from error
