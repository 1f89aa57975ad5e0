"""Folders of Hive partitions: files below folders such as ``year=2024``, whose names are columns.

Each file is read in the same way as a single file. Where a file lacks a column that other files have, for
example because the column was added later, the values of its rows are missing.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ferrank._core import Source
from ferrank.data.files import members, open_rows, reader_of
from ferrank.data.opening import Folder, Passes, reading, suffix_of
from ferrank.data.tables import check_names, readable
from ferrank.errors import DataError
from ferrank.output import is_folder

__all__ = ["dataset_source", "is_partitioned", "open_partitioned"]

_BATCH_ROWS = 1 << 16
_MISSING = "__HIVE_DEFAULT_PARTITION__"


def is_partitioned(data: Any) -> bool:
    """Return whether ``data`` is a folder that has one like ``year=2024`` in it."""
    if not isinstance(data, str | os.PathLike) or not is_folder(Path(data)):
        return False
    return any("=" in one.name and one.is_dir() for one in Path(data).iterdir())


def open_partitioned(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
    """Open the files below ``path``; the partitions that they are in are columns."""
    files = members(path) or []
    suffixes = sorted({suffix_of(file) for file in files})
    if any(reader_of(suffix) is not reader_of(suffixes[0]) for suffix in suffixes):
        raise DataError(f"{path}: files of several formats: {', '.join(suffixes)}; use one format")
    with reading(path):
        values = _partition_values([file.relative_to(path) for file in files])
    opened = [_passes(file, as_text, temp_dir) for file in files]
    names = dict.fromkeys(name for rows in opened for name in rows.schema.names if name not in values)
    parts = [
        _with_partitions(rows, list(names), {key: column[place] for key, column in values.items()}).source()
        for place, rows in enumerate(opened)
    ]
    return Source.joined(parts, str(path))


def _partition_values(files: list[Path]) -> dict[str, pa.Array]:
    """Return the value of each partition key for each of ``files``: int32 if all are integers, else text."""
    given = [
        {unquote(key): unquote(text) for key, text in map(_key_and_value, file.parent.parts) if key}
        for file in files
    ]
    values = {}
    for key in dict.fromkeys(key for keys in given for key in keys):
        texts = [keys.get(key, _MISSING) for keys in given]
        column = pa.array([None if text == _MISSING else text for text in texts], pa.string())
        try:
            values[key] = column.cast(pa.int32())
        except pa.ArrowInvalid:
            values[key] = column
    return values


def _key_and_value(folder: str) -> tuple[str, str]:
    key, equals, value = folder.partition("=")
    return (key, value) if equals else ("", "")


def _passes(file: Path, as_text: Iterable[str], temp_dir: Folder) -> Passes:
    opened = open_rows(file, None, as_text, temp_dir, is_part=True)
    if isinstance(opened, Source):
        opened = Passes.of(opened)
    check_names(opened.schema.names, str(file))
    return opened


def _with_partitions(rows: Passes, names: list[str], values: Mapping[str, pa.Scalar]) -> Passes:
    """Return ``rows`` with the columns ``names``, and a constant column for each key in ``values``."""
    places = [rows.schema.get_field_index(name) for name in names]
    own = [
        pa.field(name, pa.null()) if place < 0 else rows.schema.field(place)
        for name, place in zip(names, places, strict=True)
    ]
    schema = pa.schema(
        [*own, *(pa.field(key, value.type) for key, value in values.items())], rows.schema.metadata
    )

    def batches(stream: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in stream:
            n_rows = batch.num_rows
            columns = [pa.nulls(n_rows) if place < 0 else batch.column(place) for place in places]
            columns += [pa.repeat(value, n_rows) for value in values.values()]
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def scan() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, batches(rows.make()))

    return Passes(schema, scan, rows.explain, rows.name, rows.rows)


def dataset_source(dataset: Any, name: str) -> Source:
    """Return a pyarrow data set as a source that scans it in each pass, a few batches at a time."""

    def scan() -> pa.RecordBatchReader:
        scanner = dataset.scanner(batch_size=_BATCH_ROWS, batch_readahead=1, fragment_readahead=1)
        reader = scanner.to_reader()
        return reader if schema is given else pa.RecordBatchReader.from_batches(schema, reader)

    given = dataset.schema
    schema = readable(given)
    return Source.factory(schema, scan, str, name, None)
