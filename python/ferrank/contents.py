"""What a data set holds: its columns, described, and its rows, written to an Arrow file."""

import os
from typing import Any

from ferrank import _core
from ferrank.run import Progress, finish
from ferrank.source import open_source

__all__ = ["convert", "inspect"]


def inspect(
    data: Any, *, labels: str | os.PathLike[str] | None = None, progress: Progress | None = None
) -> dict[str, Any]:
    """Describe the columns of a data set, in one pass.

    Parameters
    ----------
    data, labels, progress
        As in :func:`rank`.

    Returns
    -------
    dict
        ``rows``; ``labels``, the columns that the file marks as labels; and ``columns``, for each a dict with
        ``name``, ``type``, ``kind``, ``missing`` (rows), ``range`` (lowest, highest), ``distinct`` (None if
        not counted), ``top`` (most frequent categories or labels with counts) and ``task`` (that it makes as
        a target).

    Raises
    ------
    DataError, ColumnTypeError, ResourceError
        The message names the file or the column.

    Examples
    --------
    >>> import ferrank
    >>> [column] = ferrank.inspect({"a": [1.0, None, 3.0]})["columns"]
    >>> column["kind"], column["missing"], column["range"]
    ('numeric', 1, (1.0, 3.0))
    """
    result: dict[str, Any] = finish(_core.inspect(open_source(data, labels=labels)), progress)
    return result


def convert(
    data: Any,
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
) -> int:
    """Write a data set to an Arrow file, batch by batch, and return the number of rows.

    Parameters
    ----------
    data, labels, progress
        As in :func:`rank`.
    path : path
        The file, which appears once it is complete.

    Returns
    -------
    int

    Raises
    ------
    DataError, ColumnTypeError, ResourceError
        The message names the file or the column.

    Examples
    --------
    >>> import ferrank, tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ferrank.convert({"a": [1, 2, 3]}, pathlib.Path(folder) / "a.arrow")
    3
    """
    rows: int = finish(_core.convert(open_source(data, labels=labels), path), progress)
    return rows
