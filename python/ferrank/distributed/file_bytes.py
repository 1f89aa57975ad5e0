"""Bytes in temporary files of workers, which dask neither counts nor spills."""

import mmap
import pickle
import tempfile
from pathlib import Path
from typing import Any

from ferrank.errors import ResourceError

__all__ = ["FileBytes"]


class FileBytes:
    """Bytes in a file without a name, which is gone with the object or its process.

    What dask spills, it reads and writes in the event loop of a worker, whole and each time anew.

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
            at = folder if folder is not None and Path(folder).is_dir() else None
            self._file = tempfile.TemporaryFile(dir=at)  # noqa: SIM115
            self._file.write(data)
            self._file.flush()
        except OSError as error:
            place = folder or tempfile.gettempdir()
            raise ResourceError(f"{place}: {error}; codes of partitions are kept there") from error

    def __reduce__(self) -> tuple[Any, ...]:
        return FileBytes, (pickle.PickleBuffer(self.map()), self._folder)

    def map(self) -> mmap.mmap:
        """Return the bytes; they are in memory as far as they are read, and as long as they are held."""
        return mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
