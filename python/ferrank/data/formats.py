"""Other formats: ORC, JSON, NumPy and Excel files."""

import json
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json

from ferrank import _core
from ferrank._core import Source
from ferrank.data.opening import Folder, numbered, reading
from ferrank.data.tables import as_table
from ferrank.errors import ColumnTypeError, DataError, ResourceError
from ferrank.run import finish

__all__ = ["array_source", "open_excel", "open_json", "open_npy", "open_npz", "open_orc"]

Reader = Callable[[Path, Iterable[str], Folder], Source]


def _named(read: Callable[[Path, Folder], Source]) -> Reader:
    """Return a reader whose errors name the file."""

    @wraps(read)
    def reader(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
        with reading(path):
            return read(path, temp_dir)

    return reader


@_named
def open_orc(path: Path, temp_dir: Folder) -> Source:
    """Open an ORC file, read stripe by stripe in each pass."""
    from pyarrow import orc

    opened = orc.ORCFile(path)

    def scan() -> pa.RecordBatchReader:
        file = orc.ORCFile(path)
        return pa.RecordBatchReader.from_batches(file.schema, map(file.read_stripe, range(file.nstripes)))

    return Source.factory(opened.schema, scan, str, str(path), opened.nrows)


@_named
def open_json(path: Path, temp_dir: Folder) -> Source:
    """Open JSON: an object on each line, copied to a temporary Arrow file, or one list of objects."""
    with pa.input_stream(path, compression="detect") as stream:
        is_list = stream.read(1 << 10).lstrip()[:1] == b"["
    with pa.input_stream(path, compression="detect") as stream:
        if is_list:
            return Source.table(pa.Table.from_pylist(json.loads(stream.read())), str(path))
        if not hasattr(pa.json, "open_json"):
            return Source.table(pa.json.read_json(stream), str(path))
        source: Source = finish(_core.spill(pa.json.open_json(stream), str(path), temp_dir))
        return source


@_named
def open_npy(path: Path, temp_dir: Folder) -> Source:
    """Open a NumPy array of shape (n_rows, n_columns), which is mapped, not read."""
    return array_source(np.load(path, mmap_mode="r", allow_pickle=False), str(path))


@_named
def open_npz(path: Path, temp_dir: Folder) -> Source:
    """Open several NumPy arrays with the same number of rows.

    The columns of a two-dimensional array ``X`` are called ``x0``, ``x1`` …, those of others after the array.
    """
    parts: dict[str, Any] = {}
    with np.load(path, allow_pickle=False) as arrays:
        for name in arrays.files:
            array = arrays[name]
            if array.ndim not in (1, 2):
                raise DataError(f"{path}: the array '{name}' has {array.ndim} dimensions; use one or two")
            prefix = "x" if name == "X" else name
            columns = (
                {name: array}
                if array.ndim == 1
                else {f"{prefix}{n}": array[:, n] for n in range(array.shape[1])}
            )
            parts |= columns
    if len({len(column) for column in parts.values()}) > 1:
        raise DataError(f"{path}: its arrays have different numbers of rows; use one number")
    return Source.table(pa.table(parts), str(path))


@_named
def open_excel(path: Path, temp_dir: Folder) -> Source:
    """Open the first sheet of an Excel file."""
    try:
        import pandas as pd

        frame = pd.read_excel(path)
    except ImportError as error:
        raise ResourceError(
            f"{path}: Excel files need pandas and openpyxl; pip install pandas openpyxl, or save it as CSV"
        ) from error
    return Source.table(as_table(frame), str(path))


def array_source(array: np.ndarray[Any, Any], name: str) -> Source:
    """Return an array of shape (n_rows, n_columns) as a source, whose columns are called ``x0``, ``x1`` …."""
    if array.ndim != 2:
        raise DataError(f"{name}: an array of {array.ndim} dimensions; use (n_rows, n_columns)")
    names = numbered(array.shape[1])
    if array.dtype.kind in "biuf" and array.dtype.itemsize <= 8:
        return Source.arrays([(names, array.astype(array.dtype.newbyteorder("="), copy=False))], name)
    try:
        table = pa.table({name: pa.array(column) for name, column in zip(names, array.T, strict=True)})
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise ColumnTypeError(
            f"{name}: an array of {array.dtype}; {error}; use numbers, booleans or strings"
        ) from error
    return Source.table(table, name)
