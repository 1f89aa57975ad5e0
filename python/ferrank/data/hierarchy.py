"""Label hierarchies as users hand them over, as the edges that the engine takes."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ferrank.data.opening import reading, regular
from ferrank.data.tables import arrow_table, check_names, foreign
from ferrank.errors import ColumnTypeError, DataError

__all__ = ["Edge", "edges_of"]

Edge = tuple[str | None, str]
"""A parent and a label below it; a label without a parent is a root."""

_COLUMNS = ["parent", "child"]


def edges_of(hierarchy: Any) -> list[Edge] | None:
    """Return the edges of ``hierarchy``.

    Parameters
    ----------
    hierarchy : path, mapping, frame, table or None
        A CSV file (``.tsv`` with tabs) or a table with the columns ``parent`` and ``child``; or a mapping of
        each label to its parent, to a sequence of its parents, or to None for a root. Where no label is
        said to be a root by an edge without a parent, all that have no parent are.

    Raises
    ------
    DataError, ColumnTypeError, ResourceError
        The columns are not there, the file cannot be read, or a label is no string.

    Examples
    --------
    >>> edges_of({"animal": None, "koala": "animal", "elephant": ["African", "Asian"]})
    [(None, 'animal'), ('animal', 'koala'), ('African', 'elephant'), ('Asian', 'elephant')]
    """
    if hierarchy is None:
        return None
    if isinstance(hierarchy, str | os.PathLike):
        return _of_table(_read(Path(hierarchy)), str(hierarchy))
    if isinstance(hierarchy, Mapping):
        return list(_of_mapping(hierarchy))
    if not any(hasattr(hierarchy, name) for name in ("__arrow_c_stream__", "__arrow_c_array__", "columns")):
        raise ColumnTypeError(
            f"hierarchy: {type(hierarchy).__qualname__!r} is no path, no mapping of labels to parents and no "
            "table with the columns 'parent' and 'child'"
        )
    with foreign("hierarchy"):
        table = arrow_table(hierarchy)
    return _of_table(table, "hierarchy")


def _of_mapping(parents: Mapping[Any, Any]) -> Iterator[Edge]:
    for label, above in parents.items():
        several = isinstance(above, Iterable) and not isinstance(above, str)
        for parent in (tuple(above) or (None,)) if several else (above,):
            if not isinstance(label, str) or not isinstance(parent, str | None):
                raise ColumnTypeError(
                    f"hierarchy: {label!r} below {parent!r}; use strings for labels, and None above a root"
                )
            yield parent, label


def _of_table(table: pa.Table, name: str) -> list[Edge]:
    if not set(_COLUMNS) <= set(table.column_names):
        raise DataError(
            f"{name}: has the columns {', '.join(map(repr, table.column_names))}; an edge table has "
            "'parent' and 'child'"
        )
    check_names(table.column_names, name)
    try:
        parents, labels = (table[column].cast(pa.string()).to_pylist() for column in _COLUMNS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ColumnTypeError(f"{name}: {error}; use strings for labels") from error
    # An edge without a child has no label: the engine says so.
    return [(parent or None, label or "") for parent, label in zip(parents, labels, strict=True)]


def _read(path: Path) -> pa.Table:
    with reading(path):
        table = pa.csv.read_csv(
            regular(path),
            parse_options=pa.csv.ParseOptions(delimiter="\t" if path.suffix.lower() == ".tsv" else ","),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(_COLUMNS, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
        # Names that are no UTF-8 are found when they are asked for.
        return table.rename_columns(table.column_names)
