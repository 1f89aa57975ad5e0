"""NumPy files, of which the large ones are read block by block.

They are not mapped: a mapped file that is cut short ends the process where it is read next.
"""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank._core import Source
from ferrank.data.arrays import array_source
from ferrank.data.opening import (
    CHANGED,
    Folder,
    TempFolder,
    explain_change,
    numbered,
    reading,
    state_of,
    suffix_of,
)
from ferrank.data.readers import Reader
from ferrank.data.tables import check_names
from ferrank.errors import DataError

__all__ = ["READER"]

_HELD_BYTES = 8 << 20
"""Of the arrays of a file that are held in memory."""
_BLOCK_VALUES = 1 << 19
_COPY_BYTES = 1 << 20


@dataclass
class _Stored:
    """An array of numbers of shape (n_rows, n_columns) in a file."""

    path: Path
    offset: int
    shape: tuple[int, int]
    ndim: int
    dtype: np.dtype[Any]
    is_by_column: bool
    known: tuple[int, int]

    def rows(self, first: int, end: int) -> np.ndarray[Any, Any]:
        """Return rows as an array of shape (n_columns, n_rows)."""
        n_rows, n_columns = self.shape
        size = self.dtype.itemsize
        with self.path.open("rb", buffering=0) as file:
            if self.is_by_column:
                block = np.empty((n_columns, end - first), self.dtype)
                for column, values in enumerate(block):
                    _fill(file, self.offset + (column * n_rows + first) * size, values)
            else:
                read = np.empty((end - first, n_columns), self.dtype)
                _fill(file, self.offset + first * n_columns * size, read)
                block = np.ascontiguousarray(read.T)
        if state_of(self.path) != self.known:
            raise DataError(CHANGED)
        return block.astype(self.dtype.newbyteorder("="), copy=False)


def _fill(file: Any, place: int, values: np.ndarray[Any, Any]) -> None:
    file.seek(place)
    rest = values.reshape(-1).view(np.uint8).data
    while rest:
        read = file.readinto(rest)
        if not read:
            raise DataError(CHANGED)
        rest = rest[read:]


def _array(path: Path, what: str) -> np.ndarray[Any, Any] | _Stored:
    """Return the array in a file: itself if it is small or not of numbers, else where it is.

    Errors call it ``what``.
    """
    known = state_of(path)
    # What is mapped is not looked at.
    mapped = np.load(path, mmap_mode="r", allow_pickle=False)
    if not mapped.nbytes:
        # A header of 128 bytes may claim any number of rows or columns that take no space.
        none = "rows" if 0 in mapped.shape[:1] else "columns" if 0 in mapped.shape else "bytes in its values"
        raise DataError(f"{what}: there are no {none} ({mapped.dtype.str}, shape {mapped.shape})")
    is_small = mapped.nbytes <= _HELD_BYTES
    if is_small or mapped.dtype.kind not in "biuf" or mapped.dtype.itemsize > 8 or mapped.ndim not in (1, 2):
        array: np.ndarray[Any, Any] = np.load(path, allow_pickle=False)
        return array
    shape = (len(mapped), 1 if mapped.ndim == 1 else mapped.shape[1])
    return _Stored(
        path, mapped.offset, shape, mapped.ndim, mapped.dtype, not mapped.flags.c_contiguous, known
    )


def _open(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
    with reading(path):
        return _npz_source(path, temp_dir) if suffix_of(path) == ".npz" else _npy_source(path)


def _npy_source(path: Path) -> Source:
    """Return an array of shape (n_rows, n_columns) in a file as a source."""
    array = _array(path, str(path))
    if isinstance(array, np.ndarray):
        return array_source(array, str(path))
    if array.ndim != 2:
        raise DataError(f"{path}: an array of {array.ndim} dimensions; use (n_rows, n_columns)")
    return _blocks({"X": array}, path)


def _npz_source(path: Path, temp_dir: Folder) -> Source:
    """Return the arrays in a file, side by side; large ones are unpacked to ``temp_dir``.

    The columns of a two-dimensional array ``X`` are called ``x0``, ``x1`` …, those of others after the array.
    """
    import zipfile

    parts: dict[str, np.ndarray[Any, Any] | _Stored] = {}
    folder = TempFolder(temp_dir)
    with zipfile.ZipFile(path) as members:
        names = [member.removesuffix(".npy") for member in members.namelist()]
        check_names(names, str(path), "arrays")
        for name, member in zip(names, members.infolist(), strict=True):
            unpacked = folder.path / f"{len(parts)}.npy"
            with members.open(member) as packed, unpacked.open("wb") as file:
                shutil.copyfileobj(packed, file, _COPY_BYTES)
            array = _array(unpacked, f"{path}: the array '{name}'")
            if isinstance(array, np.ndarray):
                unpacked.unlink()
                if array.ndim not in (1, 2):
                    raise DataError(f"{path}: the array '{name}' has {array.ndim} dimensions; use one or two")
            parts[name] = array
    if len({array.shape[0] for array in parts.values()}) > 1:
        raise DataError(f"{path}: its arrays have different numbers of rows; use one number")
    check_names((column for name, array in parts.items() for column in _names(name, array)), str(path))
    if any(isinstance(array, _Stored) for array in parts.values()):
        return _blocks(parts, path).keeping(folder, str(path))
    columns: dict[str, np.ndarray[Any, Any]] = {}
    for name, array in parts.items():
        assert isinstance(array, np.ndarray)
        values = [array] if array.ndim == 1 else array.T
        columns |= dict(zip(_names(name, array), values, strict=True))
    return Source.table(pa.table(columns), str(path))


def _names(name: str, array: np.ndarray[Any, Any] | _Stored) -> list[str]:
    """Return the names of the columns of an array called ``name``."""
    if array.ndim == 1:
        return [name]
    return numbered(array.shape[1]) if name == "X" else [f"{name}{n}" for n in range(array.shape[1])]


def _blocks(parts: dict[str, np.ndarray[Any, Any] | _Stored], path: Path) -> Source:
    """Return arrays with as many rows side by side, read block by block in each pass."""
    n_rows = next(iter(parts.values())).shape[0]
    names = [column for name, array in parts.items() for column in _names(name, array)]
    step = max(1, _BLOCK_VALUES // len(names))

    def block(first: int, end: int) -> pa.RecordBatch:
        columns: list[Any] = []
        for array in parts.values():
            if isinstance(array, _Stored):
                columns += list(array.rows(first, end))
            else:
                rows = array[first:end]
                columns += [rows] if rows.ndim == 1 else list(rows.T)
        return pa.RecordBatch.from_arrays([pa.array(column) for column in columns], names)

    def blocks() -> Iterator[pa.RecordBatch]:
        for first in range(0, n_rows, step):
            yield block(first, min(n_rows, first + step))

    schema = block(0, min(n_rows, 1)).schema

    def scan() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, blocks())

    return Source.factory(schema, scan, explain_change, str(path), n_rows)


READER = Reader(_open, (".npy", ".npz"), marks={b"\x93NUMPY": ".npy"})
