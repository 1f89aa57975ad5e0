"""ORC files: a process of its own reads each once and copies it to a temporary Arrow file."""

import os
import signal
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from ferrank._core import Source
from ferrank.data.opening import Folder, TempFolder, reading
from ferrank.data.readers import Reader
from ferrank.errors import DataError, ResourceError

__all__ = ["READER"]

_LEAST_BYTES = 1 << 30
_GROWTH = 8
"""Bytes of memory that reading may take: so many for each byte of the file, beside the least."""
_SECONDS_WITHOUT_ROWS = 120.0
_POLL_SECONDS = 0.05


def _open(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
    with reading(path):
        return _orc_source(path, temp_dir)


def _orc_source(path: Path, temp_dir: Folder) -> Source:
    """Return the rows of an ORC file, kept in a temporary file in ``temp_dir``.

    Raises
    ------
    DataError, ResourceError
        The file is damaged, or takes more memory or time than reading it may take.
    """
    if not sys.executable or "python" not in Path(sys.executable).stem.lower():
        raise ResourceError(
            f"{path}: an ORC file is read by a Python interpreter of its own, and this program names none "
            "(sys.executable); save it as Parquet"
        )
    n_bytes = _LEAST_BYTES + _GROWTH * path.stat().st_size
    folder = TempFolder(temp_dir)
    target = folder.path / "rows.arrows"
    with target.open("wb") as rows, (folder.path / "said.txt").open("w+b") as said:
        code = _run([str(path), str(n_bytes)], rows, said)
        said.seek(0)
        what = said.read().decode(errors="replace").strip()
    if code != 0:
        raise _error(path, code, what, n_bytes)
    return Source.arrow(target, str(path)).keeping(folder, str(path))


def _run(arguments: list[str], rows: IO[bytes], said: IO[bytes]) -> int | None:
    """Run the reader; return its exit code, or none where no rows came for a long time."""
    import subprocess

    # Numbers of threads, because the stack of each counts as memory.
    environment = {
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder),
    }
    script = Path(__file__).with_name("_orc_to_arrow.py")
    process = subprocess.Popen(
        # -P: modules of this folder must not hide those of Python.
        [sys.executable, "-P", str(script), *arguments],
        stdin=subprocess.DEVNULL,
        stdout=rows,
        stderr=said,
        env=os.environ | environment,
    )
    try:
        size, since = 0, time.monotonic()
        while process.poll() is None:
            time.sleep(_POLL_SECONDS)
            now = os.fstat(rows.fileno()).st_size
            if now > size:
                size, since = now, time.monotonic()
            elif time.monotonic() - since > _SECONDS_WITHOUT_ROWS:
                return None
        return process.returncode
    finally:
        # Also where Ctrl-C, or anything else, ends the wait.
        process.kill()
        process.wait()


def _error(path: Path, code: int | None, what: str, n_bytes: int) -> Exception:
    if code is None:
        return DataError(
            f"{path}: no rows came for {_SECONDS_WITHOUT_ROWS:.0f} s; is it damaged? Write it anew"
        )
    if "MemoryError" in what or "bad_alloc" in what or "malloc" in what:
        return ResourceError(
            f"{path}: reading it takes more than {n_bytes >> 20} MiB of memory; write it with smaller "
            "stripes, or save it as Parquet"
        )
    if "No space left" in what or "Disk quota" in what:
        return ResourceError(f"{path}: its rows do not fit into the temporary folder; {what}")
    if code < 0:
        name = signal.Signals(-code).name
        return DataError(f"{path}: the file is damaged: its reader was ended by {name}; write it anew")
    return DataError(f"{path}: {what or f'its reader ended with code {code}'}")


READER = Reader(_open, (".orc",), marks={b"ORC": ".orc"})
