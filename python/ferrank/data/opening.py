"""What all readers share: where temporary files go, and what is said of files that do not open."""

import os
import re
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from ferrank._core import Source
from ferrank.errors import DataError, FerrankError, ResourceError
from ferrank.escape import without_traceback
from ferrank.output import mode_of, path_of

__all__ = [
    "CHANGED",
    "Folder",
    "Passes",
    "TempFolder",
    "cause_of",
    "check_arrow",
    "check_temp_dir",
    "check_unpacked",
    "explain_change",
    "is_remote",
    "numbered",
    "opening",
    "reading",
    "regular",
    "scheme_of",
    "state_of",
    "suffix_of",
    "unpacking",
]

CHANGED = "the file was changed while it was read; leave it alone, and rank again"


@dataclass(frozen=True)
class Passes:
    """Rows that are read anew in each pass: the arguments of ``Source.factory``."""

    schema: pa.Schema
    make: Callable[[], Any]
    explain: Callable[[str], str]
    name: str
    rows: int | None = None

    @classmethod
    def of(cls, source: Source) -> "Passes":
        """Return the passes of a source, in whose errors its name stands already."""

        def make() -> pa.RecordBatchReader:
            return pa.RecordBatchReader.from_stream(source)

        name = source.name
        return cls(make().schema, make, lambda error: error.rpartition(f"{name}: ")[2], name, source.rows)

    def source(self) -> Source:
        """Return the rows as a source of the engine."""

        def explain(message: str) -> str:
            return self.explain(without_traceback(message))

        return Source.factory(self.schema, self.make, explain, self.name, self.rows)


Folder = str | os.PathLike[str] | None
"""Of temporary files; None: the system's temporary one."""


def check_temp_dir(temp_dir: Folder) -> None:
    """Raise an error if no temporary file can be made in ``temp_dir``."""
    if temp_dir is None:
        return
    if not path_of(temp_dir, "temp_dir").is_dir():
        raise ResourceError(f"temp_dir: there is no folder {temp_dir}; make it first, or leave it out")
    if not os.access(temp_dir, os.W_OK):
        raise ResourceError(f"temp_dir: {temp_dir} cannot be written to; name another folder")


class TempFolder:
    """A temporary folder that is removed with this object, or when the interpreter ends."""

    def __init__(self, temp_dir: Folder) -> None:
        from shutil import rmtree
        from tempfile import mkdtemp

        check_temp_dir(temp_dir)
        self.path = Path(mkdtemp(prefix="ferrank-", dir=temp_dir))
        weakref.finalize(self, rmtree, self.path, True)


def scheme_of(name: str) -> str | None:
    """Return the scheme of a URL in lower case; None of any other name.

    >>> scheme_of("S3://bucket/table.parquet"), scheme_of("table.parquet")
    ('s3', None)
    """
    found = re.match(r"([a-zA-Z][a-zA-Z0-9+.-]+)://", name)
    return found[1].lower() if found else None


def is_remote(data: Any) -> bool:
    """Return whether ``data`` is a URL, "-" for standard input, or an open file."""
    if isinstance(data, str):
        return data == "-" or scheme_of(data) is not None
    return hasattr(data, "read") and not hasattr(data, "read_next_batch")


def numbered(n_columns: int) -> list[str]:
    """Return the names of columns that have none."""
    return [f"x{number}" for number in range(n_columns)]


def opening(path: Path, error: Exception) -> Exception:
    """Return the exception for a file that cannot be opened."""
    if not path.exists():
        return ResourceError(f"{path}: no such file")
    if isinstance(error, OSError):
        return ResourceError(f"{path}: {error}")
    return DataError(f"{path}: {error}")


def regular(path: str | os.PathLike[str]) -> Path:
    """Return ``path``, which is a regular file.

    To be asked before a file is opened: a pipe waits for a writer, and a device may never end.

    Raises
    ------
    ResourceError
        There is no such file, or it is a folder, a pipe or a device.
    """
    path = Path(path)
    mode = mode_of(path)
    if mode is None:
        raise ResourceError(f"{path}: no such file")
    if stat.S_ISDIR(mode):
        raise ResourceError(f"{path}: is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise ResourceError(
            f"{path}: is a pipe or a device; files are read more than once, so save it to a regular one first"
        )
    return path


def check_arrow(path: str | os.PathLike[str], what: str, made_by: str) -> Path:
    """Return ``path``, a regular file that begins as Arrow files and streams do.

    Raises
    ------
    SettingError
        It is no path.
    DataError
        It does not; the message says ``what`` it should be and what it is ``made_by``.
    """
    path = regular(path_of(path))
    with reading(path), path.open("rb") as file:
        start = file.read(len(_ARROW_FILE))
    # A file of a run that was killed may end anywhere.
    if not _ARROW_FILE.startswith(start) and start[:4] != _ARROW_STREAM[: len(start)]:
        raise DataError(f"{path}: is no {what}; name a file that {made_by} wrote")
    return path


_ARROW_FILE, _ARROW_STREAM = b"ARROW1", b"\xff\xff\xff\xff"


def state_of(path: Path) -> tuple[int, int]:
    """Return what differs once a file is changed: its size, and when it was written to."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def explain_change(what: str) -> str:
    """Return what an error of a stream says for people, which is ``CHANGED`` alone if it has that in it."""
    return CHANGED if CHANGED in what else what


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the format, without that of a compressor.

    >>> suffix_of(Path("genes.CSV.gz"))
    '.csv'
    """
    name = path.with_suffix("") if path.suffix.lower() in _COMPRESSORS else path
    return name.suffix.lower()


_COMPRESSORS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}


def unpacking(path: Path) -> pa.NativeFile:
    """Return a stream of what is in a file, unpacked by its suffix; pyarrow's own way wants lower case."""
    return pa.input_stream(path, compression=_COMPRESSORS.get(path.suffix.lower()))


def check_unpacked(path: Path) -> None:
    """Raise an error if the file is compressed, whatever its name is."""
    with reading(path), path.open("rb") as file:
        start = file.read(max(map(len, _COMPRESSED)))
    for mark, name in _COMPRESSED.items():
        if start.startswith(mark):
            raise DataError(f"{path}: this file is compressed with {name}; unpack it")


_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
"""What compressed files begin with."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Word for people whatever a reader that is not ours raises: damaged files make it raise anything."""
    try:
        yield
    except FerrankError:
        raise
    except MemoryError as error:
        raise ResourceError(f"{path}: does not fit into memory; {error}") from error
    except (AttributeError, TypeError, pa.ArrowTypeError) as error:
        raise DataError(f"{path}: holds no table; {error}") from cause_of(error)
    except Exception as error:
        raise opening(path, error) from cause_of(error)


def cause_of(error: Exception) -> Exception | None:
    """Return what an error that has the text of ``error`` is raised from; nothing if that is Arrow's.

    Arrow quotes files, and tracebacks print the text of other exceptions than ours with control characters.
    """
    return None if isinstance(error, pa.ArrowException) else error
