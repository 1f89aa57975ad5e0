"""What can be ranked: files, frames, tables, streams and arrays, told apart by protocol."""

import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank.data.arrays import array_source
from ferrank.data.delimited import CSVFile, open_csv
from ferrank.data.files import members, open_file
from ferrank.data.libraries import from_library
from ferrank.data.opening import Folder, TempFolder, cause_of, is_remote, numbered
from ferrank.data.partitioned import is_partitioned, open_partitioned
from ferrank.data.sparse import compressed_rows, issparse
from ferrank.data.streams import kept_stream
from ferrank.data.tables import as_table, foreign
from ferrank.errors import ColumnTypeError, DataError, FerrankError, SettingError
from ferrank.escape import visible

__all__ = ["is_future", "is_lazy", "open_source", "read", "read_all"]


def is_lazy(data: Any) -> bool:
    """Return whether ``data`` is a dask collection, or a list of delayed partitions or of their futures."""
    parts = data if isinstance(data, list | tuple) and data else [data]
    return all(hasattr(part, "__dask_graph__") or is_future(part) for part in parts)


def is_future(data: Any) -> bool:
    """Return whether ``data`` is a future of ``dask.distributed``."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(data, distributed.Future)


def open_source(
    data: Any, *, labels: Any = None, as_text: Iterable[str] = (), temp_dir: Folder = None
) -> _core.Source:
    """Return a source that can be read again and again.

    Parameters
    ----------
    data : path or paths, URL, open file, frame, table, reader, array or mapping of columns
        A path to a file (Arrow, ARFF, Parquet, CSV, see :class:`CSVFile`, and others); a pattern such as
        ``"parts/*.arrow"``, a folder or a list of paths, whose files are one data set and have the same
        columns; a folder of Hive partitions, such as ``year=2024``, which are a column; a URL of these
        (``https``, ``s3``, ``gs`` …), ``"-"`` for standard input, or an open file, which are copied to
        temporary files; any object of the Arrow PyCapsule interface (pyarrow, pandas, polars, DuckDB …);
        pyarrow data sets, lazy frames of polars, tables of Ibis, data sets of Hugging Face; a NumPy array or
        a sparse one of SciPy, of shape (n_rows, n_columns), whose columns are called ``x0``, ``x1`` …. What
        can be read only once, such as a reader or an iterator of tables, is kept in a temporary file.
    labels : path, optional
        MULAN label XML of an ARFF file.
    as_text : iterable of str
        Columns whose values a CSV file is not made to convert: those that will be left out,
        groups, and label sets.
    temp_dir : path, optional
        Folder for temporary files; the system's temporary one by default.

    Raises
    ------
    ColumnTypeError
        ``data`` is none of these.
    DataError, ResourceError
        The file is malformed, or cannot be read.
    """
    if isinstance(data, _core.Source):
        return data
    with foreign("data"):
        return _opened(data, labels, as_text, temp_dir)


def _opened(data: Any, labels: Any, as_text: Iterable[str], temp_dir: Folder) -> _core.Source:
    if isinstance(data, CSVFile):
        return _from_csv(data, as_text, temp_dir)
    if is_remote(data) or (isinstance(data, list | tuple) and any(map(is_remote, data))):
        return _from_afar(data, labels, as_text, temp_dir)
    if is_partitioned(data):
        return open_partitioned(Path(data), as_text, temp_dir)
    if (found := from_library(data, temp_dir)) is not None:
        return found
    if (files := members(data)) is not None:
        name = f"{files[0]} …" if isinstance(data, list | tuple) else str(data)
        parts = [open_file(file, labels, as_text, temp_dir, is_part=True) for file in files]
        return _core.Source.joined(parts, name)
    if isinstance(data, str | os.PathLike):
        return open_file(Path(data), labels, as_text, temp_dir)
    if labels is not None:
        raise SettingError("labels: a label XML goes with a file; name the labels as targets instead")
    if _is_stream(data):
        return kept_stream(data, temp_dir)
    if isinstance(data, np.ndarray):
        return _from_array(data)
    if issparse(data):
        rows = compressed_rows(data, "data")
        return _core.Source.arrays([(numbered(data.shape[1]), rows)], "array")
    return _core.Source.table(as_table(data), "table")


def read(source: _core.Source) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """Return the columns of ``source``, and its rows batch by batch; views of strings become strings."""
    try:
        reader = pa.RecordBatchReader.from_stream(source)
    except pa.ArrowException as error:  # a name that cannot be handed over
        raise DataError(f"{source.name}: {error}") from None
    given = reader.schema
    schema = _without_views(given)

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from reader if schema is given else (batch.cast(schema) for batch in reader)
        except (pa.ArrowException, OSError) as error:
            # Arrow puts in front what kind of error the engine's is.
            text = str(error)
            raise DataError(text.partition("External error: ")[2] or text) from cause_of(error)

    return schema, batches()


def _without_views(schema: pa.Schema) -> pa.Schema:
    """Return ``schema`` with strings for views of strings, of which pyarrow cannot take rows."""
    for place, field in enumerate(schema):
        kind = field.type
        if kind == pa.string_view():
            schema = schema.set(place, field.with_type(pa.string()))
        elif pa.types.is_dictionary(kind) and kind.value_type == pa.string_view():
            kind = pa.dictionary(kind.index_type, pa.string(), kind.ordered)
            schema = schema.set(place, field.with_type(kind))
    return schema


def read_all(source: _core.Source) -> pa.Table:
    """Return the rows of ``source`` as a table in memory."""
    schema, batches = read(source)
    # Batch by batch, so that Ctrl-C is answered in between.
    return pa.Table.from_batches(list(batches), schema)


def _from_csv(file: CSVFile, as_text: Iterable[str], temp_dir: Folder) -> _core.Source:
    if not is_remote(file.path):
        return open_csv(file, as_text, temp_dir).source()
    folder = TempFolder(temp_dir)
    here = _here(file.path, folder)
    if not isinstance(here, Path):
        raise SettingError(f"{file.path}: names several files; a CSVFile is one")
    name = _name_of(file.path)
    with _known_as({here: name}):
        return open_csv(replace(file, path=here), as_text, temp_dir).source().keeping(folder, name)


def _from_afar(data: Any, labels: Any, as_text: Iterable[str], temp_dir: Folder) -> _core.Source:
    """Return a source of copies, which are kept as long as it is."""
    folders: list[TempFolder] = []
    here: list[Any] = []
    names: dict[Path, str] = {}
    for part in data if isinstance(data, list | tuple) else [data]:
        # A folder for each, because files may have the same names.
        within = TempFolder(temp_dir)
        folders.append(within)
        found = _here(part, within) if is_remote(part) else part
        here.append(found)
        if is_remote(part):
            names[found if isinstance(found, Path) else within.path] = _name_of(part)
    if isinstance(data, list | tuple):
        files = [file for found in here for file in (found if isinstance(found, list) else [found])]
        name = f"{_name_of(data[0])} …"
    else:
        files, name = here[0], _name_of(data)
    with _known_as(names):
        return open_source(files, labels=labels, as_text=as_text, temp_dir=temp_dir).keeping(folders, name)


def _name_of(data: Any) -> str:
    return str(data) if isinstance(data, str | os.PathLike) else "the open file"


@contextmanager
def _known_as(names: dict[Path, str]) -> Iterator[None]:
    """Call copies what the user calls them, in errors."""
    try:
        yield
    except FerrankError as error:
        text = str(error)
        for path, name in names.items():
            text = text.replace(visible(str(path)), name)
        raise type(error)(text) from error.__cause__


def _here(data: Any, folder: TempFolder) -> Path | list[Path]:
    """Copy what is not in a file of this machine to ``folder``."""
    from ferrank.data.remote import fetched, spooled

    return fetched(data, folder) if isinstance(data, str) and data != "-" else spooled(data, folder)


def _is_stream(data: Any) -> bool:
    """Whether ``data`` can be read only once: a record-batch reader, or the capsule of one."""
    return hasattr(data, "read_next_batch") or type(data).__name__ == "PyCapsule"


def _from_array(array: np.ndarray[Any, Any]) -> _core.Source:
    if array.ndim != 2:
        raise ColumnTypeError(f"data: an array of {array.ndim} dimensions; use (n_rows, n_columns)")
    return array_source(array, "array")
