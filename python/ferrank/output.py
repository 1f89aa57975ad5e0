"""Files that are written: checked before the work, and there once they are whole."""

import os
import stat
from collections.abc import Callable
from pathlib import Path

from ferrank.errors import FerrankError, ResourceError, SettingError

__all__ = [
    "check_apart",
    "check_optional",
    "check_path",
    "is_folder",
    "mode_of",
    "path_of",
    "replace",
]


def path_of(path: object, setting: str = "path") -> Path:
    """Return what is given for ``setting`` as a path.

    Raises
    ------
    SettingError
        It is no string and no path.
    """
    if not isinstance(path, str | os.PathLike):
        raise SettingError(f"{setting}: {path!r} is no path; use a string or a pathlib.Path")
    return Path(path)


def check_path(path: str | os.PathLike[str], suffixes: tuple[str, ...] | None = None) -> Path:
    """Return ``path`` if a file, with one of ``suffixes`` where they are given, could be written there.

    Raises
    ------
    SettingError
        It is no path, or its suffix is another one.
    ResourceError
        Its folder does not exist or cannot be written to, it is a folder, a device or a pipe, or its name
        cannot be that of a file.
    """
    _check_name(path)
    path = Path(path)
    if suffixes is not None and path.suffix.lower() not in suffixes:
        raise SettingError(f"{path}: unknown suffix '{path.suffix}'; use one of {', '.join(suffixes)}")
    mode = mode_of(path)
    if is_folder(path):
        raise ResourceError(f"{path}: is a folder; name a file")
    if mode is not None and not stat.S_ISREG(mode):
        raise ResourceError(f"{path}: is a device or a pipe; name a file")
    _check_folder(path)
    _check_writable(path)
    return path


def check_optional(
    path: str | os.PathLike[str] | None, suffixes: tuple[str, ...] | None = None
) -> Path | None:
    """Return None if no path is given, and otherwise as :func:`check_path`; an empty path is an error."""
    return None if path is None else check_path(path, suffixes)


def check_apart(path: str | os.PathLike[str], *read: object) -> None:
    """Raise an error if the file at ``path`` is one of those that are ``read``."""
    for name in read:
        if isinstance(name, str | os.PathLike) and _is_same(path, name):
            raise SettingError(f"{os.fspath(path)}: is the file that is read; name another one to write to")


def _is_same(path: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    try:
        return Path(path).samefile(other)
    except (OSError, ValueError):
        # One of them is not there, or is no file at all.
        return False


def _check_writable(path: Path) -> None:
    """Raise an error if no file can be made beside ``path``; what the system grants is no proof of it."""
    try:
        from tempfile import TemporaryFile

        TemporaryFile(dir=path.parent).close()
    except OSError as error:
        raise ResourceError(
            f"{path}: the folder {path.parent} cannot be written to: {error.strerror or error}"
        ) from error


def _check_folder(path: str | os.PathLike[str]) -> None:
    """Raise an error if the folder that ``path`` is in does not exist."""
    _check_name(path)
    folder = Path(path).parent
    if not is_folder(folder):
        raise ResourceError(f"{path}: the folder {folder} does not exist; make it first")


def _check_name(path: str | os.PathLike[str]) -> None:
    name = str(path_of(path))
    if not os.fspath(path):
        raise ResourceError("the path of a file to write is empty; name a file")
    try:
        name.encode()
    except UnicodeEncodeError:
        # Arrow takes names as UTF-8 only.
        raise ResourceError(f"{name}: {_NOT_UTF8}") from None


_NOT_UTF8 = "the name is not UTF-8; name another file"


def mode_of(path: Path) -> int | None:
    """Return the mode of the file or folder at ``path``, as ``stat`` has it; None if nothing is there.

    Raises
    ------
    ResourceError
        The name cannot be that of a file, or the system does not say what is there.
    """
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ResourceError(f"{path}: {error.strerror or error}; name another file") from error
    except UnicodeEncodeError:
        raise ResourceError(f"{path}: {_NOT_UTF8}") from None
    except ValueError as error:
        raise ResourceError(f"{path}: a null character is in the name; name another file") from error


def is_folder(path: Path) -> bool:
    """Return whether ``path`` is a folder; errors as of :func:`mode_of`."""
    mode = mode_of(path)
    return mode is not None and stat.S_ISDIR(mode)


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Let ``write`` make a file beside ``path``, and put it there once it is whole."""
    from tempfile import TemporaryDirectory

    check_path(path)
    try:
        # A short name: that of the file may be as long as names can be.
        with TemporaryDirectory(dir=path.parent, prefix=".ferrank-") as folder:
            partial = Path(folder) / path.name
            write(partial)
            partial.replace(path)
    except FerrankError:
        raise
    except OSError as error:
        raise ResourceError(f"{path}: {error}") from error
