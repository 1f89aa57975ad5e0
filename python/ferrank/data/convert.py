"""Conversion of a data set to an Arrow file."""

import os
from typing import Any

from ferrank import _core
from ferrank.data.categories import CategoricalFeatures, is_from_dtype, with_categories
from ferrank.data.opening import Passes
from ferrank.data.source import open_source
from ferrank.data.tables import check_names
from ferrank.output import check_path
from ferrank.progress import Progress, check_function
from ferrank.run import finish

__all__ = ["convert"]


def convert(
    data: Any,
    path: str | os.PathLike[str],
    *,
    labels: str | os.PathLike[str] | None = None,
    categorical_features: CategoricalFeatures | None = None,
    progress: Progress | None = None,
) -> int:
    """Write a data set to an Arrow file, batch by batch, and return the number of rows.

    Parameters
    ----------
    data, labels, progress
        As in :func:`rank`.
    path : path
        The file, which appears once it is complete.
    categorical_features : sequence of str or int, or mask, optional
        Columns that are categories, whatever their type: names, positions, or a mask. The file keeps that.

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
    check_function(progress)
    check_path(path, (".arrow", ".feather", ".ipc"))
    source = open_source(data, labels=labels)
    check_names(source.columns, source.name)
    if not is_from_dtype(categorical_features):
        source = with_categories(Passes.of(source), categorical_features).source()
    rows: int = finish(_core.convert(source, path), progress)
    return rows
