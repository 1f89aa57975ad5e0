"""Parquet and CSV files, read by pyarrow: a fresh stream for each pass."""

import glob
import mmap
import os
import re
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ferrank._core import Source
from ferrank.errors import DataError, ResourceError

__all__ = ["READERS", "Folder", "members", "suffix_of"]

Folder = str | os.PathLike[str] | None
"""Of temporary files; None: the system's temporary one."""

_BATCH_ROWS = 1 << 16
_BATCH_VALUES = 1 << 20
_INTEGERS = "ferrank:integers"
"""Metadata key of columns of a CSV file that begin with integers and are read as float64."""
_PARQUET_BUFFER_BYTES = 1 << 16
_VALUE_BYTES = 8
_PARQUET_COLUMN_BYTES = 4 << 20
_PARQUET_BYTES = 64 << 20
_PARQUET_PART_BYTES = 24 << 20
# Each is a file that is open.
_PARQUET_PARTS = 256
_CSV_BLOCK_BYTES = 4 << 20
_CSV_LINES_IN_BLOCK = 64
_CSV_MISSING = ["", "?", "NA", "N/A", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "<NA>"]


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the format, without that of a compressor.

    >>> suffix_of(Path("genes.CSV.gz"))
    '.csv'
    """
    name = path.with_suffix("") if path.suffix.lower() in {".gz", ".bz2", ".zst", ".lz4"} else path
    return name.suffix.lower()


def members(data: Any) -> list[Path] | None:
    """Return the files of the data set that ``data`` names: a folder, a pattern, or a sequence of paths.

    A folder stands for the data files in it and below, in the order of their names; hidden ones, and those
    that begin with an underscore, are left out. None: ``data`` names a single file, or is no name.

    Raises
    ------
    ResourceError
        No file is found, or the path is empty.
    """
    if isinstance(data, list | tuple) and data and all(isinstance(part, str | os.PathLike) for part in data):
        return [file for part in data for file in members(part) or [Path(part)]]
    if not isinstance(data, str | os.PathLike):
        return None
    if not os.fspath(data):
        raise ResourceError("data: the path is empty; name a file, a folder or a pattern")
    path = Path(data)
    if path.is_dir():
        found = [
            file for file in sorted(path.rglob("*")) if file.is_file() and _is_data(file.relative_to(path))
        ]
        if not found:
            raise ResourceError(f"{path}: no data file is in this folder; use {', '.join(_SUFFIXES)} files")
        return found
    if glob.has_magic(str(path)) and not path.exists():
        # Path.glob wants a folder to start from, and a pattern may be absolute.
        found = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
        if not found:
            raise ResourceError(f"{path}: no file has a name like this")
        return [file for one in found for file in (members(one) if one.is_dir() else None) or [one]]
    return None


def _is_data(path: Path) -> bool:
    return suffix_of(path) in _SUFFIXES and not any(part.startswith((".", "_")) for part in path.parts)


def _parquet(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
    try:
        with _parquet_file(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (OSError, pa.ArrowInvalid) as error:
        raise _opening(path, error) from error

    def scan() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, _parquet_batches(path, temp_dir))

    return Source.factory(schema, scan, str, str(path), rows)


def _parquet_file(path: Path) -> pa.parquet.ParquetFile:
    return pa.parquet.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False)


def _parquet_batches(path: Path, temp_dir: Folder) -> Iterator[pa.RecordBatch]:
    """Yield the rows, row group by row group.

    Reading all columns side by side holds a page of each, and its dictionary: much where there are many. Then
    a few columns of a row group are read at a time, and kept until all are there: in memory where that is
    little, else in files in ``temp_dir``.
    """
    with _parquet_file(path) as file:
        schema = file.schema_arrow
        names = schema.names
        positions = {name: position for position, name in enumerate(names)}
        for number in range(file.metadata.num_row_groups):
            sizes = _column_sizes(file.metadata.row_group(number), positions)
            parts = [names[part] for part in _parts(sizes)]
            read = partial(file.iter_batches, row_groups=[number])
            if sum(sizes) <= _PARQUET_BYTES:
                yield from _part_by_part(read, schema, parts, _held)
            elif sum(map(_while_read, sizes)) <= _PARQUET_BYTES:
                yield from read(_BATCH_VALUES // len(sizes))
            else:
                with ExitStack() as stack:
                    yield from _part_by_part(
                        read, schema, parts, lambda batches: stack.enter_context(_spooled(batches, temp_dir))
                    )
            # What pyarrow's pool keeps would count within a memory limit.
            pa.default_memory_pool().release_unused()


def _column_sizes(group: pa.parquet.RowGroupMetaData, positions: Mapping[str, int]) -> list[int]:
    """Return about how many bytes each top-level column of a row group takes once it is read."""
    sizes = [0] * len(positions)
    for column in map(group.column, range(group.num_columns)):
        # Names may hold dots, too; the column is the longest beginning that is one.
        name = column.path_in_schema
        while name not in positions:
            name = name[: name.rindex(".")]
        # A value that repeats takes next to nothing in the file.
        sizes[positions[name]] += max(column.total_uncompressed_size, group.num_rows * _VALUE_BYTES)
    return sizes


def _parts(sizes: list[int]) -> list[slice]:
    """Return which columns of these sizes are read at a time."""
    taken = [_while_read(size) for size in sizes]
    most = max(_PARQUET_PART_BYTES, sum(taken) // _PARQUET_PARTS)
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
    return min(3 * size, _PARQUET_COLUMN_BYTES)


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
    with tempfile.TemporaryFile(dir=temp_dir) as spool:
        _write(batches, spool)
        yield pa.ipc.open_stream(pa.py_buffer(mmap.mmap(spool.fileno(), 0, access=mmap.ACCESS_READ)))


def _write(batches: Iterator[pa.RecordBatch], file: IO[bytes]) -> None:
    first = next(batches)
    with pa.ipc.new_stream(file, first.schema) as writer:
        for batch in chain([first], batches):
            writer.write_batch(batch)
    file.flush()


def _csv(path: Path, as_text: Iterable[str], temp_dir: Folder, delimiter: str = ",") -> Source:
    """Open a CSV file with a header; missing values are empty, ``?``, ``NA`` and the like.

    The types are those of the first block (at least 4 MiB and 64 lines) and then hold for the whole file;
    all numbers are read as float64, so that a column may begin with integers.
    """
    try:
        block = _csv_block_bytes(path)
        opened = _csv_stream(path, delimiter, block, {})
        schema = opened.schema
        opened.close()
    except (OSError, pa.ArrowInvalid) as error:
        raise _opening(path, error) from error
    texts = set(as_text)
    types = {f.name: pa.string() if f.name in texts else _csv_type(f.type) for f in schema}
    known = {f.name: {_INTEGERS: ""} for f in schema if pa.types.is_integer(f.type)}
    schema = pa.schema([pa.field(f.name, types[f.name], metadata=known.get(f.name)) for f in schema])
    make = partial(_csv_stream, path, delimiter, block, types)
    return Source.factory(schema, make, partial(_explain_csv, schema), str(path))


def _csv_type(inferred: pa.DataType) -> pa.DataType:
    number = pa.types.is_integer(inferred) or pa.types.is_null(inferred)
    return pa.float64() if number else inferred


def _csv_block_bytes(path: Path) -> int:
    with pa.input_stream(path, compression="detect") as stream:
        header = 0
        while piece := stream.read(1 << 20):
            end = piece.find(b"\n")
            header += len(piece) if end < 0 else end
            if end >= 0:
                break
    return min(max(_CSV_BLOCK_BYTES, _CSV_LINES_IN_BLOCK * header), (1 << 31) - 1)


def _csv_stream(
    path: Path, delimiter: str, block: int, types: dict[str, pa.DataType]
) -> pa.csv.CSVStreamingReader:
    return pa.csv.open_csv(
        path,
        read_options=pa.csv.ReadOptions(block_size=block),
        parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=types, null_values=_CSV_MISSING, strings_can_be_null=True
        ),
    )


def _explain_csv(schema: pa.Schema, message: str) -> str:
    """Word a conversion error for people: which column, which value, what to do."""
    found = re.search(r"CSV column #(\d+):.*?error to ([\w\[\]]+): (.*)", message, re.DOTALL)
    if found is None:
        return message
    column, wanted, what = found.groups()
    name = schema.names[int(column)]
    return (
        f"column '{name}' began with values of type {wanted}, but later: {what.strip()}; "
        "mend the value, or drop the column"
    )


def _opening(path: Path, error: Exception) -> Exception:
    """Return the exception for a file that cannot be opened."""
    if not path.exists():
        return ResourceError(f"{path}: no such file")
    if isinstance(error, OSError):
        return ResourceError(f"{path}: {error}")
    return DataError(f"{path}: {error}")


READERS: dict[str, Callable[[Path, Iterable[str], Folder], Source]] = {
    ".csv": _csv,
    ".tsv": partial(_csv, delimiter="\t"),
    ".parquet": _parquet,
    ".pq": _parquet,
}

_SUFFIXES = (".arrow", ".feather", ".ipc", ".arff", *READERS)
