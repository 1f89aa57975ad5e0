"""Files by their formats, and the files that a folder, a pattern or a list stands for."""

import glob
import os
from collections.abc import Iterable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from ferrank._core import Source
from ferrank.data import readers as package
from ferrank.data.opening import Folder, Passes, check_unpacked, regular, suffix_of
from ferrank.data.readers import Reader
from ferrank.errors import DataError, ResourceError, SettingError
from ferrank.escape import visible
from ferrank.output import is_folder, mode_of

__all__ = ["is_self_describing", "members", "open_file", "open_rows", "reader_of", "readers"]

_OF_ENGINE = (".arrow", ".arrows", ".feather", ".ipc", ".arff")
"""Suffixes of the file formats that the engine reads; it recognises them by the contents of a file."""


@cache
def _modules() -> list[str]:
    names = (name for _, name, _ in iter_modules(package.__path__) if not name.startswith("_"))
    return [f"{package.__name__}.{name}" for name in names]


def readers() -> Iterator[Reader]:
    """Yield the reader of each module in ``ferrank.data.readers``, imported when its turn comes."""
    for module in _modules():
        yield import_module(module).READER


def reader_of(suffix: str) -> Reader | None:
    """Return the reader of files with this suffix; None if the engine reads them, or if no reader has it."""
    if suffix in _OF_ENGINE:
        return None
    known = (reader for reader in readers() if suffix in (*reader.suffixes, *reader.only_by_name))
    return next(known, None)


def open_file(
    path: Path, labels: Any, as_text: Iterable[str], temp_dir: Folder, *, is_part: bool = False
) -> Source:
    """Return a file as a source; parameters as in :func:`open_rows`."""
    opened = open_rows(path, labels, as_text, temp_dir, is_part=is_part)
    return opened.source() if isinstance(opened, Passes) else opened


def open_rows(
    path: Path, labels: Any, as_text: Iterable[str], temp_dir: Folder, *, is_part: bool = False
) -> Source | Passes:
    """Open a file by its suffix; without a known one it is Arrow or ARFF, which tell themselves.

    ``is_part``: it is one of several, whose columns have to go together.
    """
    reader = reader_of(suffix_of(regular(path)))
    if reader is None:
        if labels is not None:
            regular(labels)
        return _arrow_or_arff(path, labels)
    if labels is not None:
        raise SettingError(f"labels: a label XML goes with an ARFF file, not with {path}")
    if not reader.unpacks:
        check_unpacked(path)
    opened = reader.open_part if is_part and reader.open_part is not None else reader.open
    return opened(path, as_text, temp_dir)


def _arrow_or_arff(path: Path, labels: Any) -> Source:
    try:
        return Source.open(path, labels)
    except DataError as error:
        if not str(error).startswith(visible(f"{path}: this looks like CSV")):
            raise
        raise DataError(
            f"{path}: looks like CSV or other text; CSV files are known by their names: rename it to .csv, "
            ".tsv or .txt, or give CSVFile(path, delimiter=',')"
        ) from error


def is_self_describing(path: str | os.PathLike[str]) -> bool:
    """Return True if the file is of a format that says how it is written, as CSV does not, by its suffix."""
    suffix = suffix_of(Path(path))
    reader = reader_of(suffix)
    return suffix in _OF_ENGINE if reader is None else reader.is_self_describing


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
    if is_folder(path):
        suffixes = (*_OF_ENGINE, *(suffix for reader in readers() for suffix in reader.suffixes))
        found = [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file() and suffix_of(file) in suffixes and _is_shown(file.relative_to(path))
        ]
        if not found:
            raise ResourceError(f"{path}: no data file is in this folder; use {', '.join(suffixes)} files")
        return found
    if glob.has_magic(str(path)) and mode_of(path) is None:
        # Path.glob wants a folder to start from, and a pattern may be absolute.
        found = [Path(name) for name in sorted(glob.glob(str(path), recursive=True))]  # noqa: PTH207
        if not found:
            raise ResourceError(f"{path}: no file has a name like this")
        return [file for one in found for file in (members(one) if one.is_dir() else None) or [one]]
    return None


def _is_shown(path: Path) -> bool:
    return not any(part.startswith((".", "_")) for part in path.parts)
