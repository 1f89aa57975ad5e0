"""Relief over partitions that keep their rows: each is searched where it is, and the rows that count move.

Dask's dashboard shows the tasks under the names of these functions.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank.distributed.process import Asked, Floats, finish_of, source_of, to_bytes, turn_of
from ferrank.distributed.resources import TaskResources
from ferrank.distributed.tables import Batch, unchanged
from ferrank.run import finish

__all__ = [
    "Rows",
    "draw",
    "join",
    "join_targets",
    "mid_ranks",
    "nearest",
    "part",
    "pick",
    "ranked",
    "search_apart",
    "targets",
    "unique",
]

Distinct = list[tuple[Floats, Floats]]
"""The values of each of some features, ascending, and how many rows have each."""


@dataclass(frozen=True)
class Rows:
    """Some of the rows that take part."""

    numbers: np.ndarray[Any, np.dtype[np.uint32]]
    """n_rows; ascending, the number of each among the rows of all partitions that take part"""
    table: pa.Table

    def __sizeof__(self) -> int:
        return int(self.numbers.nbytes + self.table.nbytes)

    def where(self, kept: Any) -> "Rows":
        """Return the rows at a slice or at places, which ascend."""
        if isinstance(kept, slice):
            first, end, _ = kept.indices(len(self.numbers))
            return Rows(self.numbers[kept], self.table.slice(first, max(end - first, 0)))
        return Rows(self.numbers[kept], self.table.take(kept))

    @classmethod
    def of(cls, parts: Sequence["Rows"]) -> "Rows":
        """Return the rows of all parts, each once."""
        numbers, places = np.unique(np.concatenate([part.numbers for part in parts]), return_index=True)
        table = pa.concat_tables(part.table for part in parts)
        in_order = np.array_equal(places, np.arange(table.num_rows))
        return cls(numbers, table if in_order else table.take(places))


@unchanged
def part(batch: Batch, asked: Asked, first_row: int) -> Rows:
    """Return the rows of partitions that take part, numbered from ``first_row`` on."""
    schema, roles, settings = asked
    table = batch.conform(schema)
    kept = finish(_core.taking_part(source_of(table, batch.name), roles, settings))
    rows = (table if kept.all() else table.filter(pa.array(kept))).drop_columns(roles["drop"])
    return Rows(np.arange(first_row, first_row + rows.num_rows, dtype=np.uint32), rows)


def unique(rows: Rows, asked: Asked, names: Sequence[str]) -> Distinct:
    """Return the known values of the features ``names`` in a partition, and how many rows have each."""
    found = (
        np.unique(values[~np.isnan(values)], return_counts=True) for values in _values(rows, asked, names)
    )
    return [(values, counts.astype(np.float64)) for values, counts in found]


def mid_ranks(*parts: Distinct) -> list[list[Floats]]:
    """Return, for each partition, the mid-ranks among all rows of the values of each feature, from 0 to 1."""
    by_feature = [_mid_ranks(of_feature) for of_feature in zip(*parts, strict=True)]
    return [list(of_part) for of_part in zip(*by_feature, strict=True)]


def _mid_ranks(parts: Sequence[tuple[Floats, Floats]]) -> list[Floats]:
    values, place = np.unique(np.concatenate([values for values, _ in parts]), return_inverse=True)
    counts = np.bincount(place, np.concatenate([counts for _, counts in parts]))
    # Twice a mid-rank is an integer, which has the same bits however it is computed.
    doubled = 2 * np.cumsum(counts) - counts - 1
    low, high = doubled[0], doubled[-1]
    ranks = (doubled - low) / (high - low) if low < high else np.zeros(len(values))
    return np.split(ranks[place], np.cumsum([len(values) for values, _ in parts])[:-1])


def ranked(rows: Rows, asked: Asked, groups: Sequence[Sequence[str]], *found: Any) -> Rows:
    """Return the rows with ranks in the place of the values of the features in ``groups``.

    ``found``: for each group what :func:`unique` and :func:`mid_ranks` returned for the partition.
    """
    table = rows.table
    for names, values_of, ranks_of in zip(groups, found[::2], found[1::2], strict=True):
        columns = zip(names, _values(rows, asked, names), values_of, ranks_of, strict=True)
        for name, column, (values, _), ranks in columns:
            known = ~np.isnan(column)
            of_rows = np.zeros(len(column))
            of_rows[known] = ranks[np.searchsorted(values, column[known])]
            place = table.schema.get_field_index(name)
            table = table.set_column(place, name, pa.array(of_rows, mask=~known))
    return Rows(rows.numbers, table)


def _values(rows: Rows, asked: Asked, names: Sequence[str]) -> list[Floats]:
    _, roles, settings = asked
    source = source_of(rows.table, "the rows")
    values: list[Floats] = finish(_core.values(source, {**roles, "drop": []}, settings, list(names)))
    return values


def targets(rows: Rows, names: Sequence[str]) -> pa.Table:
    """Return the columns ``names`` of a partition: its targets and groups."""
    return rows.table.select(list(names))


def join_targets(*parts: pa.Table) -> pa.Table:
    """Return the targets of all parts, in order."""
    return pa.concat_tables(parts)


def draw(asked: Asked, whole: bytes, keys: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the numbers of the rows that are queries of the blocks ``keys``."""
    schema, roles, settings = asked
    return _core.queries(source_of(schema.empty_table(), "the data set"), roles, settings, whole, keys)


def pick(rows: Rows, wanted: np.ndarray[Any, np.dtype[np.uint32]]) -> Rows:
    """Return the rows with the numbers ``wanted``, as far as they are among ``rows``."""
    return rows.where(np.flatnonzero(np.isin(rows.numbers, wanted, assume_unique=True)))


def join(*parts: Rows) -> Rows:
    """Return the rows of all parts, each once."""
    return Rows.of(parts)


def nearest(
    token: str,
    asked: Asked,
    whole: bytes,
    resources: TaskResources,
    queries: Rows,
    *parts: Rows,
) -> Rows:
    """Return ``queries``, and the rows of the parts that count for them if no other rows do."""
    _, roles, settings = asked
    with turn_of(token):
        if len(parts) == 1:
            # The rows of a partition follow each other, and stay where they are.
            first, end = np.searchsorted(queries.numbers, parts[0].numbers[[0, -1]] + np.array([0, 1]))
            rows = Rows.of([queries.where(slice(0, first)), parts[0], queries.where(slice(end, None))])
        else:
            rows = Rows.of([queries, *parts])
        found = _core.nearest(
            source_of(rows.table, "the rows"),
            {**roles, "drop": []},
            settings,
            resources.n_threads(),
            resources.limit_beside(),
            resources.folder(),
            whole,
            rows.numbers,
            queries.numbers,
        )
        return rows.where(finish_of(found, token))


def search_apart(
    token: str,
    asked: Asked,
    whole: bytes,
    resources: TaskResources,
    keys: tuple[int, int],
    of_all: pa.Table | None,
    *parts: Rows,
) -> bytes:
    """Return what the blocks of queries ``keys`` contribute, from the rows that count for them.

    ``of_all``: the targets of all rows, if these are needed.
    """
    _, roles, settings = asked
    rows = Rows.of(parts)
    with turn_of(token):
        run = _core.search(
            source_of(rows.table, "the rows"),
            {**roles, "drop": []},
            settings,
            resources.n_threads(),
            resources.limit_beside(),
            resources.folder(),
            whole,
            rows.numbers,
            keys,
            None if of_all is None else source_of(of_all, "the targets"),
        )
        return to_bytes(finish_of(run, token))
