"""File formats that Python opens: a module for each, whose ``READER`` says how files are known and opened.

``ferrank.data.files`` finds the modules by listing this package, and imports one after the other until one
knows the file: what is slow to import is imported where a file of the format is read. Modules whose names
begin with an underscore are no readers.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ferrank._core import Source
from ferrank.data.opening import Folder, Passes

__all__ = ["Reader"]


@dataclass(frozen=True)
class Reader:
    """How files of a format are known and opened.

    Parameters
    ----------
    open : callable
        Given the path, the columns that are not to be converted from text, and the folder for temporary
        files, returns the source, or the passes that one is made of. Within ``ferrank.data.opening.reading``,
        any error but a FerrankError gets the path in front; a FerrankError names the file itself. ``Passes``
        and a ``Source.factory`` put the path in front of all errors while rows are read. A reader that opens
        the file anew in each pass finds out by ``state_of`` whether the file was changed in between.
    suffixes : tuple of str
        Suffixes in lower case of files that are named, and of data files in a folder.
    only_by_name : tuple of str, optional
        Suffixes of files that are named; in folders such files may be anything.
    marks : mapping of bytes to str, optional
        What files begin with, and the suffix that it stands for: for streams, which have no name.
    is_self_describing : bool, optional
        Whether a file says how it is written, as CSV does not.
    unpacks : bool, optional
        Whether it reads compressed files; else they are refused before they are opened.
    open_part : callable, optional
        Opens one of several files, as ``open`` does, but that a column without any value has the type null,
        which joins all others. By default it is ``open``.
    """

    open: Callable[[Path, Iterable[str], Folder], Source | Passes]
    suffixes: tuple[str, ...]
    only_by_name: tuple[str, ...] = ()
    marks: Mapping[bytes, str] = field(default_factory=dict)
    is_self_describing: bool = True
    unpacks: bool = False
    open_part: Callable[[Path, Iterable[str], Folder], Source | Passes] | None = None
