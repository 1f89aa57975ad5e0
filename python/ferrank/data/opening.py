"""What all readers share: where temporary files go, and what is said of files that do not open."""

import os
from pathlib import Path

from ferrank.errors import DataError, ResourceError

__all__ = ["Folder", "opening"]

Folder = str | os.PathLike[str] | None
"""Of temporary files; None: the system's temporary one."""


def opening(path: Path, error: Exception) -> Exception:
    """Return the exception for a file that cannot be opened."""
    if not path.exists():
        return ResourceError(f"{path}: no such file")
    if isinstance(error, OSError):
        return ResourceError(f"{path}: {error}")
    return DataError(f"{path}: {error}")
