"""Tables of other libraries that are not Arrow tables, told by their types: nothing is imported for it."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ferrank._core import Source
from ferrank.data.opening import Folder, TempFolder
from ferrank.data.partitioned import dataset_source
from ferrank.data.streams import kept_stream
from ferrank.data.tables import arrow_table, as_table
from ferrank.errors import DataError

__all__ = ["from_library"]


def from_library(data: Any, temp_dir: Folder) -> Source | None:
    """Return ``data`` as a source if it is one of these, else None.

    pyarrow data sets are scanned in each pass. Lazy frames of polars, scanners, tables of Ibis and iterators
    of tables are computed once, batch by batch, into a temporary file. Data sets of Hugging Face and frames
    of narwhals are the Arrow tables or the frames in them.
    """
    kind, module = type(data).__name__, type(data).__module__
    if module.startswith("pyarrow._dataset"):
        return (
            kept_stream(data.to_reader(), temp_dir) if kind == "Scanner" else dataset_source(data, "data set")
        )
    if kind == "LazyFrame" and module.startswith("polars"):
        return _from_lazy(data, temp_dir)
    if hasattr(data, "to_pyarrow_batches"):
        return kept_stream(data.to_pyarrow_batches(), temp_dir)
    if hasattr(data, "with_format") and hasattr(data, "features"):
        return Source.table(data.with_format("arrow")[:], "data set")
    if module.startswith("narwhals"):
        native = data.to_native()
        return from_library(native, temp_dir) or Source.table(as_table(native), "table")
    is_iterator = hasattr(data, "__next__") and not hasattr(data, "read_next_batch")
    return kept_stream(_reader(data), temp_dir) if is_iterator else None


def _from_lazy(frame: Any, temp_dir: Folder) -> Source:
    folder = TempFolder(temp_dir)
    path = folder.path / "data.arrow"
    frame.sink_ipc(path, compression="uncompressed")
    return Source.open(path).keeping(folder, "lazy frame")


def _reader(tables: Iterator[Any]) -> pa.RecordBatchReader:
    """Return batches, tables or frames that come one by one as a reader."""
    first = _table(next(tables, None))

    def batches() -> Iterator[pa.RecordBatch]:
        yield from first.to_batches()
        for table in tables:
            yield from _table(table).select(first.column_names).cast(first.schema).to_batches()

    return pa.RecordBatchReader.from_batches(first.schema, batches())


def _table(part: Any) -> pa.Table:
    if part is None:
        raise DataError("data: an iterator without a table; give one at least")
    return arrow_table(part)
