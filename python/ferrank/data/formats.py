"""Other formats: ORC, JSON, NumPy and Excel files."""

import shutil
import zipfile
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path

import pyarrow as pa

from ferrank import _core
from ferrank._core import Source
from ferrank.data.numpy_files import npy_source, npz_source
from ferrank.data.opening import Folder, TempFolder, check_temp_dir, reading, suffix_of
from ferrank.data.orc import orc_source
from ferrank.data.tables import as_table
from ferrank.errors import ResourceError
from ferrank.run import finish

__all__ = ["open_excel", "open_json", "open_npy", "open_npz", "open_orc"]

_BLOCK_BYTES = 1 << 20
_MOST_OF_EXCEL = 512 << 20

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
    """Open an ORC file, copied to a temporary Arrow file."""
    return orc_source(path, temp_dir)


@_named
def open_json(path: Path, temp_dir: Folder) -> Source:
    """Open JSON: an object on each line, or one list of objects, copied to a temporary Arrow file."""
    if suffix_of(path) == path.suffix.lower():
        return _json(path, str(path), temp_dir)
    folder = TempFolder(temp_dir)
    unpacked = folder.path / "unpacked.json"
    with pa.input_stream(path, compression="detect") as stream, unpacked.open("wb") as file:
        shutil.copyfileobj(stream, file, _BLOCK_BYTES)
    return _json(unpacked, str(path), temp_dir)


def _json(path: Path, name: str, temp_dir: Folder) -> Source:
    check_temp_dir(temp_dir)
    source: Source = finish(_core.read_json(path, name, temp_dir))
    return source


@_named
def open_npy(path: Path, temp_dir: Folder) -> Source:
    """Open a NumPy array of shape (n_rows, n_columns)."""
    return npy_source(path)


@_named
def open_npz(path: Path, temp_dir: Folder) -> Source:
    """Open several NumPy arrays with the same number of rows."""
    return npz_source(path, temp_dir)


@_named
def open_excel(path: Path, temp_dir: Folder) -> Source:
    """Open the first sheet of an Excel file."""
    with zipfile.ZipFile(path) as parts:
        n_bytes = sum(part.file_size for part in parts.infolist())
    if n_bytes > _MOST_OF_EXCEL:
        raise ResourceError(f"{path}: unpacks to {n_bytes >> 20} MiB, all of it in memory; save it as CSV")
    try:
        import pandas as pd

        frame = pd.read_excel(path)
    except ImportError as error:
        raise ResourceError(
            f"{path}: Excel files need pandas and openpyxl; pip install pandas openpyxl, or save it as CSV"
        ) from error
    return Source.table(as_table(frame), str(path))
