"""Bytes in temporary files of workers, which dask neither counts nor spills."""

import mmap
import os
import pickle
import tempfile
import weakref
from pathlib import Path
from typing import Any

from ferrank.errors import ResourceError

__all__ = ["FileBytes"]


class FileBytes:
    """Bytes in a temporary file, which is removed with the object.

    What dask spills, it reads and writes in the event loop of a worker, whole and each time anew. With codes
    in files, four trees on 4M rows of 100 features and four workers of 520 MB take 0.7 of the CPU time.

    Parameters
    ----------
    data : memoryview
        At least one.
    folder : str, optional
        Where the file is; the system's temporary folder if that is None, or of another machine.
    """

    def __init__(self, data: memoryview | pickle.PickleBuffer, folder: str | None) -> None:
        self._folder = folder
        try:
            file, path = tempfile.mkstemp(dir=folder if folder and Path(folder).is_dir() else None)
            # Not held open: a process may have few files open, and many partitions.
            self._path = Path(path)
            weakref.finalize(self, self._path.unlink, missing_ok=True)
            with os.fdopen(file, "wb") as written:
                written.write(data)
        except OSError as error:
            place = folder or tempfile.gettempdir()
            raise ResourceError(f"{place}: {error}; the codes of partitions are kept there") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return FileBytes, (pickle.PickleBuffer(self.map()), self._folder)

    def map(self) -> mmap.mmap:
        """Return the bytes; they are in memory as far as they are read, and as long as they are held."""
        with self._path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
