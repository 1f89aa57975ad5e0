"""Parquet files, read by pyarrow: a fresh stream for each pass.

Parquet has no type for categories. Arrow's writers keep the types of their columns as a schema in the
metadata, by which pyarrow reads categories of text as such, and all others as plain values: those are made
categories again here.
"""

import base64
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING

import pyarrow as pa

from ferrank import _core
from ferrank.data.categories import as_dictionaries, is_plain, values_of
from ferrank.data.opening import Folder, Passes, reading
from ferrank.data.readers import Reader
from ferrank.data.tables import readable
from ferrank.errors import DataError

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

__all__ = ["READER"]

_BATCH_ROWS = 1 << 16
_BATCH_VALUES = 1 << 20
_BUFFER_BYTES = 1 << 16
_VALUE_BYTES = 8
_COLUMN_BYTES = 4 << 20
_BYTES = 64 << 20
_PART_BYTES = 24 << 20
# Each is a file that is open.
_PARTS = 256
_END_BYTES = 8
"""The length of the footer and the mark that a file ends with."""


def _open(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Passes:
    def scan() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, _parquet_batches(path, temp_dir))

    with reading(path):
        with _parquet_file(path) as file:
            schema, rows = readable(file.schema_arrow), file.metadata.num_rows
            kept = _categories(file)
            _sizes(file, path)
        return as_dictionaries(Passes(schema, scan, str, str(path), rows), kept)


def _parquet_file(path: Path) -> "ParquetFile":
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path, buffer_size=_BUFFER_BYTES, pre_buffer=False)


def _categories(file: "ParquetFile") -> dict[int, pa.DataType]:
    """Return the columns that were categories when the file was written, but are plain values in the file.

    The result maps the position of a column to the type of its categories. This type is that of the values in
    the file, because the schema in the metadata may be wrong.
    """
    given = (file.metadata.metadata or {}).get(b"ARROW:schema")
    if given is None:
        return {}
    written = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(given)))
    return {
        place: _values(own.type, other.type.value_type)
        for place, (own, other) in enumerate(zip(file.schema_arrow, written, strict=False))
        if own.name == other.name and pa.types.is_dictionary(other.type) and is_plain(own.type)
    }


def _values(own: pa.DataType, written: pa.DataType) -> pa.DataType:
    """Return the type of categories that the file has as ``own``, and which were ``written``."""
    # Parquet has no durations.
    if own == pa.int64() and pa.types.is_duration(written):
        return written
    return values_of(own)


def _parquet_batches(path: Path, temp_dir: Folder) -> Iterator[pa.RecordBatch]:
    """Yield the rows, row group by row group.

    Reading all columns side by side holds a page of each, and its dictionary: much where there are many. Then
    a few columns of a row group are read at a time, and kept until all are there: in memory where that is
    little, else in files in ``temp_dir``.
    """
    with _parquet_file(path) as file:
        schema = file.schema_arrow
        names = schema.names
        for number, sizes in enumerate(_sizes(file, path)):
            parts = [names[part] for part in _parts(sizes)]
            read = partial(file.iter_batches, row_groups=[number])
            if sum(sizes) <= _BYTES:
                yield from _part_by_part(read, schema, parts, _held)
            elif sum(map(_while_read, sizes)) <= _BYTES:
                yield from read(_BATCH_VALUES // len(sizes))
            else:
                with ExitStack() as stack:
                    yield from _part_by_part(
                        read, schema, parts, lambda batches: stack.enter_context(_spooled(batches, temp_dir))
                    )
            # What pyarrow's pool keeps would count within a memory limit.
            pa.default_memory_pool().release_unused()


def _sizes(file: "ParquetFile", path: Path) -> Iterator[list[int]]:
    """Return about how many bytes each top-level column of each row group takes once it is read.

    Raises
    ------
    DataError
        The footer is damaged; pyarrow would end the process where it has no metadata of a column.
    """
    with path.open("rb") as bytes_of_file:
        bytes_of_file.seek(-_END_BYTES, os.SEEK_END)
        length = int.from_bytes(bytes_of_file.read(_END_BYTES)[:4], "little")
        bytes_of_file.seek(-_END_BYTES - length, os.SEEK_END)
        groups = _core.parquet_sizes(bytes_of_file.read(length))
    positions = {name: position for position, name in enumerate(file.schema_arrow.names)}
    # Names may hold dots, too; the column is the longest beginning that is one.
    tops = []
    for number in range(len(file.schema)):
        name = file.schema.column(number).path
        while name not in positions:
            if "." not in name:
                raise DataError(f"{path}: the column '{name}' is not in the schema; write the file anew")
            name = name[: name.rindex(".")]
        tops.append(positions[name])
    if len(groups) != file.metadata.num_row_groups or any(len(leaves) != len(tops) for _, leaves in groups):
        raise DataError(f"{path}: the footer is damaged; write the file anew")
    return (_by_column(rows, leaves, tops, len(positions)) for rows, leaves in groups)


def _by_column(rows: int, leaves: list[int], tops: list[int], n_columns: int) -> list[int]:
    sizes = [0] * n_columns
    for top, size in zip(tops, leaves, strict=True):
        # A value that repeats takes next to nothing in the file.
        sizes[top] += max(size, rows * _VALUE_BYTES)
    return sizes


def _parts(sizes: list[int]) -> list[slice]:
    """Return which columns of these sizes are read at a time."""
    taken = [_while_read(size) for size in sizes]
    most = max(_PART_BYTES, sum(taken) // _PARTS)
    parts, first, size = [], 0, 0
    for column, added in enumerate(taken):
        if column > first and size + added > most:
            parts.append(slice(first, column))
            first, size = column, 0
        size += added
    return [*parts, slice(first, len(sizes))]


def _while_read(size: int) -> int:
    """Return the bytes that a column of ``size`` takes while it is read beside others.

    These are a page, its dictionary, and both unpacked.
    """
    return min(3 * size, _COLUMN_BYTES)


def _part_by_part(
    read: Callable[..., Iterator[pa.RecordBatch]],
    schema: pa.Schema,
    parts: list[list[str]],
    keep: Callable[[Iterator[pa.RecordBatch]], Iterable[pa.RecordBatch]],
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a row group, of which ``read`` gives some columns and ``keep`` keeps them."""
    # "a" asks for "a.b" as well.
    kept = [keep(batch.select(names) for batch in read(_BATCH_ROWS, columns=names)) for names in parts]
    for together in zip(*kept, strict=True):
        arrays = [array for batch in together for array in batch.columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _held(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Keep the batches in memory, each until it is asked for."""
    held = deque(batches)
    return (held.popleft() for _ in range(len(held)))


@contextmanager
def _spooled(batches: Iterator[pa.RecordBatch], temp_dir: Folder) -> Iterator[pa.RecordBatchReader]:
    """Keep the batches, of which there is one, in a file, which is mapped."""
    import mmap
    import tempfile

    with tempfile.TemporaryFile(dir=temp_dir) as spool:
        _write(batches, spool)
        yield pa.ipc.open_stream(pa.py_buffer(mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ)))


def _write(batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> None:
    first = next(batches)
    with pa.ipc.new_stream(file, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch)
    file.flush()


READER = Reader(_open, (".parquet", ".pq"), marks={b"PAR1": ".parquet"})
