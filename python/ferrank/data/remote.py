"""What is not in a file of this machine: URLs, object stores, standard input, open files.

It is copied to a temporary folder once, because a ranking reads its rows several times.
"""

import fnmatch
import io
import os
import re
import shutil
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path, PurePosixPath
from typing import IO, Any

import pyarrow as pa
from pyarrow import fs

from ferrank.data.files import readers
from ferrank.data.opening import TempFolder, scheme_of
from ferrank.errors import DataError, ResourceError

__all__ = ["fetched", "spooled"]

_TIMEOUT = 60
_BLOCK = 1 << 24
"""Bytes that are asked for at once: object stores take some tens of milliseconds to answer each time."""
_STREAMS = 4
"""Requests at once: an object store gives each a part of what the network does."""
_MAGIC = {
    b"ARROW1": ".arrow",
    b"\xff\xff\xff\xff": ".arrows",
    b"@": ".arff",
    b"%": ".arff",
}
"""Of the formats that the engine reads; readers have their own."""


def fetched(url: str, folder: TempFolder) -> Path | list[Path]:
    """Copy what a URL names to ``folder``; return the file, or the files of a folder or pattern there.

    ``http`` and ``https`` are read by Python, object stores (``s3``, ``gs``, ``abfs`` …) by pyarrow, others
    by fsspec, if it is installed.

    Raises
    ------
    ResourceError
        It cannot be read; the message names the URL.
    """
    scheme = scheme_of(url)
    try:
        if scheme in {"http", "https"}:
            return _download(url, folder)
        return _copied(*store_of(url), url, folder)
    except (OSError, ValueError, pa.ArrowException) as error:
        if isinstance(error, ResourceError):
            raise
        raise ResourceError(f"{url}: {error}") from error


def _download(url: str, folder: TempFolder) -> Path:
    with urllib.request.urlopen(url, timeout=_TIMEOUT) as answer:
        name = PurePosixPath(urllib.parse.urlparse(url).path).name or "data"
        return _kept(answer, folder.path / name)


def store_of(url: str) -> tuple[fs.FileSystem, str]:
    """Return the store that a URL is of, and its path there."""
    try:
        store, path = fs.FileSystem.from_uri(url)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError):
        return _by_fsspec(url, scheme_of(url))
    return store, path


def _by_fsspec(url: str, scheme: str | None) -> tuple[fs.FileSystem, str]:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError as error:
        raise ResourceError(f"{url}: '{scheme}' needs fsspec; pip install fsspec") from error
    try:
        store, path = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise ResourceError(f"{url}: {error}") from error
    return fs.PyFileSystem(fs.FSSpecHandler(store)), path


def _copied(store: fs.FileSystem, path: str, url: str, folder: TempFolder) -> Path | list[Path]:
    found = store.get_file_info(path)
    if found.type == fs.FileType.File:
        target = folder.path / PurePosixPath(path).name
        _fetch(store, [(found, target)])
        return target
    if found.type == fs.FileType.Directory:
        pattern, parent = None, path
    else:
        pattern, parent = path, _before_magic(path)
    inside = store.get_file_info(fs.FileSelector(parent, recursive=True, allow_not_found=True))
    files = sorted((one for one in inside if one.type == fs.FileType.File), key=lambda one: str(one.path))
    wanted = [
        (one, folder.path / os.path.relpath(one.path, parent))
        for one in files
        if pattern is None or fnmatch.fnmatch(one.path.lstrip("/"), pattern.lstrip("/"))
    ]
    if not wanted:
        raise ResourceError(f"{url}: no such file")
    for _, target in wanted:
        target.parent.mkdir(parents=True, exist_ok=True)
    _fetch(store, wanted)
    return folder.path if pattern is None else [target for _, target in wanted]


def _fetch(store: fs.FileSystem, wanted: Sequence[tuple[fs.FileInfo, Path]]) -> None:
    """Copy files of a store, several at once, or several blocks of few files at once."""

    def whole(one: tuple[fs.FileInfo, Path]) -> None:
        _kept(store.open_input_stream(one[0].path, compression=None), one[1])

    # Files of other stores than pyarrow's own are for one thread.
    if isinstance(store, fs.PyFileSystem):
        for one in wanted:
            whole(one)
        return
    with ThreadPoolExecutor(_STREAMS) as pool:
        try:
            if len(wanted) >= _STREAMS:
                list(pool.map(whole, wanted))
                return
            for info, target in wanted:
                _fetch_blocks(store, info, target, pool)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _fetch_blocks(store: fs.FileSystem, info: fs.FileInfo, target: Path, pool: ThreadPoolExecutor) -> None:
    with store.open_input_file(info.path) as stream, target.open("wb") as file:

        def block(at: int) -> None:
            size = min(_BLOCK, info.size - at)
            data = stream.read_at(size, at)
            if len(data) < size:
                raise ResourceError(f"{info.path}: the file has become shorter while it was read")
            with target.open("r+b") as part:
                part.seek(at)
                part.write(data)

        file.truncate(info.size)
        list(pool.map(block, range(0, info.size, _BLOCK)))


def _before_magic(path: str) -> str:
    parts = path.split("/")
    plain = next((n for n, part in enumerate(parts) if re.search(r"[*?\[]", part)), len(parts) - 1)
    return "/".join(parts[:plain])


def _kept(stream: Any, target: Path) -> Path:
    with stream, target.open("wb") as file:
        shutil.copyfileobj(stream, file, _BLOCK)
    return target


def spooled(data: Any, folder: TempFolder) -> Path:
    """Copy standard input ("-") or an open file to ``folder``, under a suffix that its first bytes tell."""
    stream: IO[bytes] = sys.stdin.buffer if data == "-" else data
    blocks = _blocks(stream)
    first = next(blocks, b"")
    marks = [*_MAGIC.items(), *(known for reader in readers() for known in reader.marks.items())]
    suffix = next((suffix for mark, suffix in marks if first.lstrip().startswith(mark)), ".csv")
    if first.startswith(b"PK"):
        suffix = ".xlsx" if b"[Content_Types].xml" in first or b"xl/" in first else ".npz"
    target = folder.path / f"data{suffix}"
    with target.open("wb") as file:
        file.write(first)
        file.writelines(blocks)
    return target


def _blocks(stream: Any) -> Iterator[bytes]:
    is_text = isinstance(stream, io.TextIOBase)

    def read() -> Any:
        try:
            return stream.read(_BLOCK)
        except (TypeError, UnicodeError) as error:
            name = type(stream).__name__
            raise DataError(
                f"the open file: {name}.read: {error}; open it for reading bytes, 'rb', or give its path"
            ) from error

    while block := read():
        yield block.encode() if is_text else block
