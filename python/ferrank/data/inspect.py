"""Description of the columns of a data set."""

import os
from typing import Any

from ferrank import _core
from ferrank.data.source import open_source
from ferrank.progress import Progress, check_function
from ferrank.run import finish

__all__ = ["inspect"]


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
        ``name``, ``type``, ``kind`` ("numeric", "nominal", "boolean", "label", "hierarchical", "index" of a
        pandas frame, or "unsupported"), ``missing`` (rows), ``range`` (lowest, highest), ``distinct`` (None
        if not counted), ``top`` (most frequent categories or labels with counts) and ``task`` (that it makes
        as a target).

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
    check_function(progress)
    result: dict[str, Any] = finish(_core.inspect(open_source(data, labels=labels)), progress)
    return result
