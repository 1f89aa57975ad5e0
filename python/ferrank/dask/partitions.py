"""Collections as partitions, each a task that gives an Arrow table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dask
import numpy as np
import pyarrow as pa

from ferrank.errors import ColumnTypeError, DataError, FerrankError
from ferrank.examples import Column, target_columns, unlike
from ferrank.source import as_table

__all__ = ["Partitions", "columns_of"]


@dataclass(frozen=True)
class Partitions:
    """Partitions of a data set: delayed Arrow tables, and what its columns are."""

    tables: list[Any]
    """delayed; each gives a table"""
    roles: dict[str, Any] | None = None
    """which columns are targets and weights; None where the caller says so"""

    @classmethod
    def of(cls, data: Any) -> "Partitions":
        """Return the partitions of a data set whose targets are columns."""
        parts = _delayed(data, "data")
        table = dask.delayed(_whole, pure=True)
        return cls([table(part, number) for number, part in enumerate(parts)])

    @classmethod
    def joined(cls, X: Any, y: Any, sample_weight: Any) -> "Partitions":
        """Return the partitions of features, targets and weights, side by side."""
        features = _delayed(X, "X")
        sides = [_delayed(_like(y, X), "y")]
        if sample_weight is not None:
            sides.append(_delayed(_like(sample_weight, X), "sample_weight"))
        for name, side in zip(("y", "sample_weight"), sides, strict=False):
            if len(side) != len(features):
                raise DataError(
                    f"{name}: {len(side)} partitions, X has {len(features)}; partition them alike, as "
                    "columns of one collection are"
                )
        table = dask.delayed(_join, pure=True)
        names = dask.delayed(_side_names, pure=True)(features[0], *(side[0] for side in sides))
        joined = [table(number, *parts) for number, parts in enumerate(zip(features, *sides, strict=True))]
        targets, weight = dask.compute(names)[0]
        return cls(joined, {"target": targets, "weight": weight})


def _delayed(data: Any, what: str) -> list[Any]:
    """Return one delayed value for each partition."""
    if isinstance(data, list | tuple):
        return list(data)
    if hasattr(data, "rechunk"):
        if data.ndim > 2:
            raise ColumnTypeError(f"{what}: an array of {data.ndim} dimensions; use (n_rows, n_columns)")
        rows = data if data.ndim == 1 else data.rechunk({1: -1})
        return list(rows.to_delayed().ravel())
    if hasattr(data, "to_delayed"):
        return list(data.to_delayed())
    if not hasattr(data, "__dask_graph__"):
        kind = f"{type(data).__module__}.{type(data).__qualname__}"
        raise ColumnTypeError(
            f"{what}: a {kind} beside a dask collection; give a dask collection with the same partitions"
        )
    return [data]


def _like(side: Any, X: Any) -> Any:
    """Return an array of targets or weights in the row chunks of ``X``."""
    if hasattr(side, "rechunk") and hasattr(X, "rechunk") and len(side) == len(X):
        return side.rechunk({0: X.chunks[0]})
    return side


def _table(part: Any, what: str) -> pa.Table:
    """Return a partition as a table; a NumPy one has the columns ``x0``, ``x1`` …."""
    if isinstance(part, np.ndarray):
        if part.ndim != 2:
            raise ColumnTypeError(f"{what}: an array of {part.ndim} dimensions; use (n_rows, n_columns)")
        part = {f"x{number}": column for number, column in enumerate(part.T)}
    return pa.table(as_table(part))


def _whole(part: Any, number: int) -> pa.Table:
    with _Named(number):
        return _table(part, "data")


def _join(number: int, X: Any, *sides: Any) -> pa.Table:
    with _Named(number):
        table = _table(X, "X")
        for name, column in _side_columns(table, *sides):
            array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
            if len(array) != table.num_rows:
                raise DataError(
                    f"'{name}' has {len(array)} rows, X has {table.num_rows}; partition them alike"
                )
            table = table.append_column(name, array)
        return table


def _side_columns(table: pa.Table, y: Any, weights: Any = None) -> list[Column]:
    targets = unlike(table.column_names, target_columns(y))
    if weights is None:
        return targets
    taken = [*table.column_names, *(name for name, _ in targets)]
    return targets + unlike(taken, [("sample_weight", np.asarray(weights, dtype=np.float64).ravel())])


def _side_names(X: Any, *sides: Any) -> tuple[list[str], str | None]:
    names = [name for name, _ in _side_columns(_table(X, "X"), *sides)]
    return (names, None) if len(sides) == 1 else (names[:-1], names[-1])


class _Named:
    """Context in which messages begin with the number of the partition."""

    def __init__(self, number: int) -> None:
        self._name = f"partition {number}"

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if isinstance(error, FerrankError):
            raise type(error)(f"{self._name}: {error}") from error
        if isinstance(error, pa.ArrowException | TypeError | ValueError):
            raise DataError(f"{self._name}: {error}") from error


def columns_of(parts: Sequence[pa.Schema]) -> pa.Schema:
    """Return the schema to which all partitions can be brought.

    A partition without any value of a column may have it in another type, and one may lack categories that
    others have: dictionaries become plain columns, and types are widened.
    """
    plain = [_plain(schema) for schema in parts]
    for number, schema in enumerate(plain):
        if schema.names != plain[0].names:
            found = next(
                (name for name in schema.names if name not in plain[0].names),
                next((name for name in plain[0].names if name not in schema.names), None),
            )
            what = f"column '{found}' is not in both" if found else "the columns are in another order"
            raise DataError(f"partition {number}: its columns are not those of partition 0: {what}")
    try:
        return pa.unify_schemas(plain, promote_options="permissive")
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise ColumnTypeError(f"partitions: a column has types that do not go together: {error}") from error


def _plain(schema: pa.Schema) -> pa.Schema:
    def field(of: pa.Field) -> pa.Field:
        kind = of.type.value_type if pa.types.is_dictionary(of.type) else of.type
        return pa.field(of.name, kind)

    return pa.schema([field(of) for of in schema])
