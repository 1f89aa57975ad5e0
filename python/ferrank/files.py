"""Parquet and CSV files, read by pyarrow: a fresh stream for each pass."""

import glob
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from ferrank._core import Source
from ferrank.errors import DataError, ResourceError

__all__ = ["READERS", "Folder", "members", "suffix_of"]

Folder = str | os.PathLike[str] | None
"""Of scratch files; None: the system's temporary one."""

_BATCH_ROWS = 1 << 16
_PARQUET_BUFFER_BYTES = 1 << 16
# What a column takes while it is read beside others: a page, its dictionary, and both unpacked.
_PARQUET_COLUMN_BYTES = 4 << 20
_PARQUET_BYTES = 64 << 20
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
        No file is found.
    """
    if isinstance(data, list | tuple) and data and all(isinstance(part, str | os.PathLike) for part in data):
        return [file for part in data for file in members(part) or [Path(part)]]
    if not isinstance(data, str | os.PathLike):
        return None
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


def _parquet(path: Path, as_text: Iterable[str], scratch: Folder) -> Source:
    try:
        with _parquet_file(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (OSError, pa.ArrowInvalid) as error:
        raise _opening(path, error) from error

    def scan() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, _parquet_batches(path, scratch))

    return Source.factory(schema, scan, str, str(path), rows)


def _parquet_file(path: Path) -> pa.parquet.ParquetFile:
    return pa.parquet.ParquetFile(path, buffer_size=_PARQUET_BUFFER_BYTES, pre_buffer=False)


def _parquet_batches(path: Path, scratch: Folder) -> Iterator[pa.RecordBatch]:
    """Yield the rows, row group by row group.

    Reading all columns side by side holds a page of each, and its dictionary: much where there are many. Then
    a few columns of a row group are read at a time, and kept in files in ``scratch`` until all are there.
    """
    with _parquet_file(path) as file:
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            sizes = [0] * len(file.schema_arrow)
            top_level = {name: position for position, name in enumerate(file.schema_arrow.names)}
            for column in map(group.column, range(group.num_columns)):
                sizes[top_level[column.path_in_schema.split(".")[0]]] += column.total_uncompressed_size
            if sum(min(size, _PARQUET_COLUMN_BYTES) for size in sizes) <= _PARQUET_BYTES:
                yield from file.iter_batches(_BATCH_ROWS, row_groups=[number])
            else:
                yield from _spooled(file, number, sizes, scratch)
    # What a pass leaves in pyarrow's pool would count within a memory limit, and be of no use until the next.
    pa.default_memory_pool().release_unused()


def _spooled(
    file: pa.parquet.ParquetFile, number: int, sizes: list[int], scratch: Folder
) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a row group whose columns, of these sizes, are read a few at a time."""
    names = file.schema_arrow.names
    with ExitStack() as stack:
        readers, first = [], 0
        while first < len(names):
            last, size = first + 1, sizes[first]
            while last < len(names) and size + sizes[last] <= _PARQUET_BYTES // 2:
                size += sizes[last]
                last += 1
            spool = stack.enter_context(tempfile.TemporaryFile(dir=scratch))
            columns = file.iter_batches(_BATCH_ROWS, row_groups=[number], columns=names[first:last])
            with pa.ipc.new_stream(spool, pa.schema(list(file.schema_arrow)[first:last])) as writer:
                for batch in columns:
                    writer.write_batch(batch)
            spool.seek(0)
            readers.append(pa.ipc.open_stream(spool))
            first = last
        for batches in zip(*readers, strict=True):
            arrays = [array for batch in batches for array in batch.columns]
            yield pa.RecordBatch.from_arrays(arrays, schema=file.schema_arrow)


def _csv(path: Path, as_text: Iterable[str], scratch: Folder, delimiter: str = ",") -> Source:
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
    schema = pa.schema([pa.field(f.name, types[f.name]) for f in schema])
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
