"""Files by their formats, and the files that a folder, a pattern or a list stands for."""

import glob
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

from ferrank._core import Source
from ferrank.data.delimited import CSVFile, open_csv
from ferrank.data.opening import Folder, regular, suffix_of
from ferrank.errors import DataError, ResourceError, SettingError

__all__ = ["members", "open_file"]

Reader = Callable[[Path, Iterable[str], Folder], Source]


def _csv(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
    return open_csv(CSVFile(path), as_text, temp_dir)


def _in_module(module: str, name: str) -> Reader:
    """Return a reader whose module is imported when a file is read: many import what few files need."""

    def reader(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
        read: Reader = getattr(import_module(f"ferrank.data.{module}"), name)
        return read(path, as_text, temp_dir)

    return reader


_parquet = _in_module("parquet", "open_parquet")
_json = _in_module("formats", "open_json")
_READERS: dict[str, Reader] = {
    ".csv": _csv,
    ".tsv": _csv,
    ".parquet": _parquet,
    ".pq": _parquet,
    ".orc": _in_module("formats", "open_orc"),
    ".jsonl": _json,
    ".ndjson": _json,
    ".npy": _in_module("formats", "open_npy"),
    ".npz": _in_module("formats", "open_npz"),
    ".xlsx": _in_module("formats", "open_excel"),
}
_ONLY_BY_NAME: dict[str, Reader] = {".txt": _csv, ".data": _csv, ".dat": _csv, ".json": _json}
"""Formats of files that are named; in folders such files may be anything."""
_SUFFIXES = (".arrow", ".arrows", ".feather", ".ipc", ".arff", *_READERS)


def open_file(path: Path, labels: Any, as_text: Iterable[str], temp_dir: Folder) -> Source:
    """Open a file by its suffix; without a known one it is Arrow or ARFF, which tell themselves."""
    suffix = suffix_of(regular(path))
    reader = _READERS.get(suffix, _ONLY_BY_NAME.get(suffix))
    if reader is None:
        if labels is not None:
            regular(labels)
        return _arrow_or_arff(path, labels)
    if labels is not None:
        raise SettingError(f"labels: a label XML goes with an ARFF file, not with {path}")
    return reader(path, as_text, temp_dir)


def _arrow_or_arff(path: Path, labels: Any) -> Source:
    try:
        return Source.open(path, labels)
    except DataError as error:
        if not str(error).startswith(f"{path}: this looks like CSV"):
            raise
        raise DataError(
            f"{path}: looks like CSV or other text; CSV files are known by their names: rename it to .csv, "
            ".tsv or .txt, or give CSVFile(path, delimiter=',')"
        ) from error


def is_self_describing(path: str | os.PathLike[str]) -> bool:
    """Return True if the file is of a format that says how it is written, as CSV does not, by its suffix."""
    suffix = suffix_of(Path(path))
    return suffix == ".json" or (suffix in _SUFFIXES and _READERS.get(suffix) is not _csv)


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
