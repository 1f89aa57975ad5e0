"""Sparse matrices and arrays of SciPy, as the engine reads them: compressed rows, never made dense."""

from typing import Any

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank.errors import ColumnTypeError, DataError, ResourceError

__all__ = ["check_sparse", "compressed_rows", "issparse"]


def issparse(data: Any) -> bool:
    """Return whether ``data`` is of SciPy, which takes long to import, by what it can do."""
    return hasattr(data, "tocsr")


def compressed_rows(matrix: Any, what: str) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return ``indptr``, ``indices`` and ``data`` of ``matrix``, columns in order and once in a row.

    What is in this form already is not copied; ``matrix`` itself is left as it is. Entries given twice add
    up, as everywhere in SciPy.
    """
    check_sparse(matrix, what)
    if matrix.dtype.kind not in "biuf":
        raise ColumnTypeError(f"{what}: a sparse array of {matrix.dtype}; use numbers or booleans")
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


def check_sparse(matrix: Any, what: str) -> None:
    """Raise an error if ``matrix`` is damaged or too large: SciPy may crash or fill the memory with it."""
    if matrix.ndim != 2:
        raise DataError(f"{what}: a sparse array of {matrix.ndim} dimensions; use (n_rows, n_columns)")
    _check_size(matrix, what)
    _check_places(matrix, what)


def _check_places(matrix: Any, what: str) -> None:
    """Raise an error if ``matrix`` has values outside itself: SciPy would write them to other memory."""
    try:
        if matrix.format in ("csr", "csc", "bsr"):
            starts = matrix.indptr
            _check_integers(starts, matrix.indices)
            if not len(starts) or starts[0] != 0:
                raise ValueError("the rows do not begin at 0")
            if (starts[1:] < starts[:-1]).any() or starts[-1] > len(matrix.indices):
                raise ValueError("the rows do not begin one after the other")
            matrix.check_format(full_check=True)
        elif matrix.format == "coo":
            _check_integers(matrix.row, matrix.col)
            if not len(matrix.row) == len(matrix.col) == len(matrix.data):
                raise ValueError(
                    f"{len(matrix.row)} rows and {len(matrix.col)} columns of {len(matrix.data)} values"
                )
            for places, size in zip((matrix.row, matrix.col), matrix.shape, strict=True):
                if len(places) and not 0 <= places.min() <= places.max() < size:
                    raise ValueError(f"a place {places.max()} or {places.min()} where there are {size}")
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise DataError(f"{what}: the sparse array is damaged: {error}; make it anew") from error


def _check_integers(*places: Any) -> None:
    for given in places:
        if given.dtype.kind not in "iu":
            raise ValueError(f"its places are of {given.dtype}, not integers")


_ROW_BYTES, _COLUMN_BYTES = 16, 2_000
"""Memory that a row takes while rows are compressed, and the description of a column."""


def _check_size(matrix: Any, what: str) -> None:
    """Raise an error if a few values claim more rows or columns than can be described in memory."""
    n_rows, n_columns = matrix.shape
    n_bytes = n_columns * _COLUMN_BYTES + (0 if matrix.format == "csr" else n_rows * _ROW_BYTES)
    most = _core.default_memory(1)
    if most is not None and n_bytes > most:
        raise ResourceError(
            f"{what}: a sparse array of {n_rows:,} rows and {n_columns:,} columns takes about "
            f"{n_bytes >> 20:,} MiB of memory, beside its values, and {most >> 20:,} MiB are free; leave out "
            "rows and columns without values"
        )
