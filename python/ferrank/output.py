"""Files that are written: checked before the work, and there once they are whole."""

import os
from collections.abc import Callable
from pathlib import Path

from ferrank.errors import ResourceError, SettingError

__all__ = ["check_folder", "check_path", "replace"]


def check_path(path: str | os.PathLike[str], suffixes: tuple[str, ...]) -> Path:
    """Return ``path`` if a file with one of ``suffixes`` could be written there.

    Raises
    ------
    SettingError
        Its suffix is another one.
    ResourceError
        Its folder does not exist or cannot be written to, or it is a folder.
    """
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise SettingError(f"{path}: unknown suffix '{path.suffix}'; use one of {', '.join(suffixes)}")
    if path.is_dir():
        raise ResourceError(f"{path}: is a folder; name a file")
    if path.exists() and not path.is_file():
        raise ResourceError(f"{path}: is a device or a pipe; name a file")
    check_folder(path)
    if not os.access(path.parent, os.W_OK):
        raise ResourceError(f"{path}: the folder {path.parent} cannot be written to")
    return path


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise an error if the folder that ``path`` is in does not exist."""
    folder = Path(path).parent
    if not folder.is_dir():
        raise ResourceError(f"{path}: the folder {folder} does not exist; make it first")


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path``, and put it there once it is whole."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        partial = Path(folder) / path.name
        try:
            write(partial)
            partial.replace(path)
        except OSError as error:
            raise ResourceError(f"{path}: {error}") from error
