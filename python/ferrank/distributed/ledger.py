"""Contributions of a run on a cluster that a later run goes on from: a folder that all workers see."""

import hashlib
import json
import os
import posixpath
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyarrow import ArrowException, fs

from ferrank.data.opening import is_remote
from ferrank.data.remote import store_of
from ferrank.distributed.scheduler import task
from ferrank.errors import DataError, ResourceError

__all__ = ["Ledger", "load", "make", "save"]

_RUN = "run.json"
_SUFFIX = ".ferrank"


class Ledger:
    """A folder, or a URL of one in an object store, with a file for each contribution that is finished.

    Parameters
    ----------
    folder : path or URL
        It is made where it is not there.
    identity : object
        What makes the run, as JSON would have it; contributions of another run are refused.
    n_workers : int
        Number of workers, by which the run is split into tasks; a later run is split as the first was.
    """

    def __init__(self, folder: str | os.PathLike[str], identity: Any, *, n_workers: int) -> None:
        # Workers have a folder of their own that they are in.
        self._folder = os.fspath(folder) if is_remote(folder) else str(Path(folder).resolve())
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()
        run: dict[str, Any] = {"run": digest, "n_workers": n_workers}
        try:
            store, path = _at(self._folder)
            store.create_dir(path, recursive=True)
            entries = store.get_file_info(fs.FileSelector(path))
            self._there = {posixpath.basename(entry.path) for entry in entries}
            if _RUN in self._there:
                run = json.loads(load(self._file(_RUN)))
            elif self._there:
                raise DataError(f"resume: {self._folder} has files of something else; use a new folder")
            else:
                save(self._file(_RUN), json.dumps(run).encode())
            self.n_workers: int = int(run["n_workers"])
        except (OSError, ArrowException) as error:
            raise ResourceError(
                f"resume: {self._folder}: {error}; for a collection it is a folder that the client and all "
                "workers see, or a URL of one"
            ) from error
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(
                f"resume: {self._folder}/{_RUN} is damaged ({error}); remove the folder"
            ) from error
        if run["run"] != digest:
            raise DataError(
                f"resume: {self._folder} is of another run, with other data or settings; use a new folder"
            )

    def share(self, keys: tuple[int, int], function: Callable[..., bytes], *arguments: Any) -> Any:
        """Return the task of the contributions ``keys``: they are read, or ``function`` makes them."""
        name = f"{keys[0]}-{keys[1]}{_SUFFIX}"
        if name in self._there:
            return task(load, self._file(name))
        return task(make, self._file(name), function, *arguments, known_as=function)

    def _file(self, name: str) -> str:
        return posixpath.join(self._folder, name)


def make(file: str, function: Callable[..., bytes], *arguments: Any) -> bytes:
    """Return ``function`` of ``arguments``, and keep it in a file or URL."""
    return save(file, function(*arguments))


def save(file: str, data: bytes) -> bytes:
    """Write ``data`` to a file or URL, whole or not at all, and return it."""
    store, path = _at(file)
    # An object of a store is there when it is whole; a file is when it has its name.
    written = f"{path}.{uuid.uuid4().hex}" if isinstance(store, fs.LocalFileSystem) else path
    with store.open_output_stream(written) as out:
        out.write(data)
    if written != path:
        store.move(written, path)
    return data


def load(file: str) -> bytes:
    """Return the bytes of a file or of what a URL names."""
    store, path = _at(file)
    with store.open_input_file(path) as data:
        return bytes(data.read())


def _at(name: str) -> tuple[fs.FileSystem, str]:
    return store_of(name) if is_remote(name) else (fs.LocalFileSystem(), str(Path(name).resolve()))
