"""Folders of Hive partitions: files below folders such as ``year=2024``, whose names are columns."""

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from ferrank._core import Source
from ferrank.errors import DataError, ResourceError

__all__ = ["dataset_source", "is_partitioned", "open_partitioned"]

_BATCH_ROWS = 1 << 16
_FORMATS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "ipc",
    ".feather": "ipc",
    ".orc": "orc",
    ".csv": "csv",
}


def is_partitioned(data: Any) -> bool:
    """Return whether ``data`` is a folder that has one like ``year=2024`` in it."""
    if not isinstance(data, str | os.PathLike) or not Path(data).is_dir():
        return False
    return any("=" in one.name and one.is_dir() for one in Path(data).iterdir())


def open_partitioned(path: Path) -> Source:
    """Open the files below ``path``; the partitions that they are in are columns."""
    from pyarrow import dataset

    found = {file.suffix.lower() for file in path.rglob("*=*/*") if file.is_file()} & _FORMATS.keys()
    if not found:
        raise ResourceError(f"{path}: no data file is in its partitions; use {', '.join(_FORMATS)} files")
    if len({_FORMATS[suffix] for suffix in found}) > 1:
        raise DataError(f"{path}: files of several formats: {', '.join(sorted(found))}; use one format")
    try:
        opened = dataset.dataset(path, format=_FORMATS[found.pop()], partitioning="hive")
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"{path}: {error}") from error
    return dataset_source(opened, str(path))


def dataset_source(dataset: Any, name: str) -> Source:
    """Return a pyarrow data set as a source that scans it in each pass, a few batches at a time."""

    def scan() -> pa.RecordBatchReader:
        scanner = dataset.scanner(batch_size=_BATCH_ROWS, batch_readahead=1, fragment_readahead=1)
        return scanner.to_reader()

    return Source.factory(dataset.schema, scan, str, name, None)
