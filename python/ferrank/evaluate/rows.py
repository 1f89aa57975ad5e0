"""All rows of a source in memory, with their roles, and as numbers for scikit-learn's models.

Curves and baseline rankers look at all rows at once and are meant for data that fit; the rankers of the
engine are not bound to this.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array

from ferrank._core import Source
from ferrank.data.categories import categorical_names
from ferrank.data.hierarchy import Edge
from ferrank.data.labels import ClosedSets, closed_sets
from ferrank.data.parameters import decay_of
from ferrank.data.source import open_source, read_all
from ferrank.data.tables import as_table, numbers_of
from ferrank.data.values import group_numbers, unlike
from ferrank.errors import DataError

__all__ = ["MOST_CELLS", "Encoder", "Rows", "known_rows", "read_rows", "read_table", "unit_range"]

Array = np.ndarray[Any, Any]

MOST_CELLS = 1 << 28
"""Greatest number of numbers in an encoded table; 2 GiB."""
_NOMINAL_DIFFERENCE = np.sqrt(0.5)
"""Of an indicator, so that two categories are 1 apart, as the ends of a numeric feature's range."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their roles.

    Attributes
    ----------
    source : str
        How messages call the data.
    task : str
    features, targets : pyarrow.Table
        Columns in one piece; nominal ones are dictionaries, numeric ones float64, label sets as they came.
    hierarchy : list of Edge, optional
        What was said to stand above the labels of the target.
    labels : ClosedSets, optional
        The label sets of a hierarchy, closed, where they were asked for.
    groups : array of int, shape (n_rows,), optional
        The number of the group of each row.
    """

    source: str
    task: str
    features: pa.Table
    targets: pa.Table
    hierarchy: list[Edge] | None = None
    labels: ClosedSets | None = None
    groups: Array | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.features.num_rows)

    def take(self, chosen: Array) -> "Rows":
        """Return some of the rows."""
        numbers = pa.array(chosen)
        return replace(
            self,
            features=self.features.take(numbers),
            targets=self.targets.take(numbers),
            labels=None if self.labels is None else self.labels.take(chosen),
            groups=None if self.groups is None else self.groups[chosen],
        )

    def labelled(self) -> Array:
        """Return which rows have all their targets, of shape (n_rows,)."""
        known = [column.is_valid().to_numpy() for column in self.targets.columns]
        return np.asarray(np.logical_and.reduce([np.ones(self.n_rows, dtype=bool), *known]))

    def require_labels(self, who: str) -> None:
        """Refuse rows that lack a target."""
        missing = self.n_rows - int(self.labelled().sum())
        if missing:
            raise DataError(
                f"{self.source}: {missing:,} of {self.n_rows:,} rows lack a target, which {who} cannot use; "
                "leave them out"
            )

    def target_numbers(self) -> Array:
        """Return the targets, of shape (n_rows, n_targets): numbers, codes of categories, NaN if missing.

        Those of a hierarchy are the labels that some row has, 1 where a row has one or one below it.
        """
        if self.labels is not None:
            sets, _ = self.labels.occurring()
            return np.where(self.labels.known[:, None], sets, np.nan)
        return np.column_stack([_numbers(column) for column in self.targets.columns])

    def label_indicators(self) -> Array:
        """Return which labels rows have, of shape (n_rows, n_labels); False where that is not known.

        The targets are labels. As in the engine the second of a column's values means that a row has the
        label. Of a single value "1", "true" and "yes" do.

        Raises
        ------
        DataError
            A label has more than two values.
        """
        columns = []
        for name, column in zip(self.targets.column_names, self.targets.columns, strict=True):
            array = column.combine_chunks()
            values = array.dictionary.to_pylist()
            if len(values) > 2:
                raise DataError(
                    f"{self.source}: the label '{name}' has {len(values)} values; a label has two"
                )
            code = 0 if len(values) == 1 and str(values[0]).lower() in {"1", "true", "yes"} else 1
            columns.append(array.indices.to_numpy(zero_copy_only=False) == code)
        return np.column_stack(columns)

    def nominal_targets(self) -> list[bool]:
        """Return which of these are nominal."""
        if self.labels is not None:
            return [True] * int((self.labels.shares > 0).sum())
        return [pa.types.is_dictionary(field.type) for field in self.targets.schema]

    def ranked_by(self, ranker: Any) -> Any:
        """Return the ranking of these rows by ``ranker``, which gets their groups if it supports some."""
        table, names = self.features, self.features.column_names
        for field, column in zip(self.targets.schema, self.targets.columns, strict=True):
            table = table.append_column(field, column)
        group = None
        if self.groups is not None and ranker.supports_groups:
            [(group, column)] = unlike(table.column_names, [("groups", pa.array(self.groups))])
            table = table.append_column(group, column)
        roles = {
            "target": self.targets.column_names,
            "target_last": None,
            "task": self.task,
            "classes": [],
            "categorical_features": categorical_names(ranker.categorical_features, names),
            "drop": [],
            "weight": None,
            "groups": group,
            "hierarchy": self.hierarchy,
        }
        return ranker._rank_source(Source.table(table, self.source), roles)


def known_rows(table: pa.Table, targets: Sequence[str]) -> pa.Array:
    """Return which rows have some target, an array of booleans; NaN is none."""

    def known(name: str) -> np.ndarray[Any, Any]:
        nan_too = pa.types.is_floating(table[name].type)
        return ~np.asarray(table[name].is_null(nan_is_null=nan_too))

    return pa.array(np.any([known(name) for name in targets], axis=0))


def read_rows(source: Source, roles: Mapping[str, Any], hierarchy_decay: float | None = None) -> Rows:
    """Read all rows of ``source``, with closed label sets where there is a decay for their weights.

    Raises
    ------
    DataError, SettingError, ColumnTypeError
        Roles that do not fit the columns, weights, or no rows.
    """
    if roles.get("weight") is not None:
        raise DataError(f"{source.name}: row weights are for the rankers of the engine; leave them out")
    if hierarchy_decay is not None:
        hierarchy_decay = decay_of(hierarchy_decay)
    problem = source.resolve(roles)
    table = read_all(source)
    if table.num_rows == 0:
        raise DataError(f"{source.name}: has no rows")

    def columns(named: list[tuple[str, str]]) -> pa.Table:
        arrays = [_column(source.name, name, table[name], kind) for name, kind in named]
        # What a file says of a hierarchy stands with the field.
        fields = [
            table.field(name).with_type(array.type).with_nullable(True)
            for (name, _), array in zip(named, arrays, strict=True)
        ]
        return pa.Table.from_arrays(arrays, schema=pa.schema(fields))

    features, targets = columns(problem["features"]), columns(problem["targets"])
    labels = None
    if problem["task"] == "hierarchical" and hierarchy_decay is not None:
        labels = closed_sets(source, roles, hierarchy_decay)
    name = roles.get("groups")
    groups = None if name is None else group_numbers(table[name], source.name, name)
    return Rows(source.name, problem["task"], features, targets, roles.get("hierarchy"), labels, groups)


def _column(source: str, name: str, column: pa.ChunkedArray, kind: str) -> pa.Array:
    if kind == "labels":
        return column.combine_chunks()
    if kind == "numeric":
        values = numbers_of(column)
        if np.isinf(values).any():
            raise DataError(f"{source}: column '{name}' holds infinity; mend the value, or drop the column")
        return pa.array(values, mask=np.isnan(values))
    if pa.types.is_dictionary(column.type):
        return column.unify_dictionaries().combine_chunks()
    if pa.types.is_floating(column.type):
        column = pc.if_else(pc.is_nan(column), None, column)
    values = pc.unique(column).drop_null()
    values = values.take(
        pc.sort_indices(values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values)
    )
    codes = pc.index_in(column, value_set=values).combine_chunks()
    return pa.DictionaryArray.from_arrays(codes, values.cast(pa.string()))


def _numbers(column: pa.ChunkedArray) -> Array:
    array = column.combine_chunks()
    if pa.types.is_dictionary(array.type):
        array = array.indices.cast(pa.float64())
    numbers: Array = array.to_numpy(zero_copy_only=False)
    return numbers


def read_table(data: Any, name: str) -> tuple[str, dict[str, Array]]:
    """Return how messages call a small table, and its columns: float64, NaN where missing, or objects."""
    source = open_source(data) if isinstance(data, str | os.PathLike) else Source.table(as_table(data), name)
    table = read_all(source)
    columns = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        is_number = pa.types.is_floating(field.type) or pa.types.is_integer(field.type)
        values = pc.cast(column, pa.float64()) if is_number else column
        columns[field.name] = values.combine_chunks().to_numpy(zero_copy_only=False)
    return source.name, columns


class Encoder:
    """The features of rows as a matrix: numbers scaled, categories as indicators.

    Numeric features are scaled to [0, 1] over the rows that are given to :meth:`encode` as training rows, and
    missing values there become their mean. A category is an indicator of height √½, so that two categories
    are 1 apart; a missing one is none.

    Parameters
    ----------
    rows : Rows

    Attributes
    ----------
    owner : array of int, shape (n_columns,)
        Number of the feature that a column of the matrix belongs to; each has at least one.
    """

    def __init__(self, rows: Rows) -> None:
        columns = rows.features.columns
        widths = [
            max(len(column.combine_chunks().dictionary), 1) if pa.types.is_dictionary(column.type) else 1
            for column in columns
        ]
        self._rows = rows
        self._nominal = np.array([pa.types.is_dictionary(column.type) for column in columns])
        self._values = np.column_stack([_numbers(column) for column in columns])
        self._first = np.cumsum(widths) - widths
        self.owner: Array = np.repeat(np.arange(len(widths)), widths)

    def encode(self, training: Array | slice = slice(None)) -> Array:
        """Return the matrix of all rows, of shape (n_rows, n_columns), scaled by the ``training`` rows.

        Raises
        ------
        DataError
            It would have more numbers than memory should hold.
        """
        if len(self.owner) * self._rows.n_rows > MOST_CELLS:
            counts = np.bincount(self.owner)
            widest = int(counts.argmax())
            raise DataError(
                f"{self._rows.source}: {self._rows.n_rows:,} rows with a column for each category make more "
                f"than {MOST_CELLS:,} numbers, of which '{self._rows.features.column_names[widest]}' adds "
                f"{counts[widest]:,} a row; drop it, or take fewer rows"
            )
        return np.asarray(self.encode_sparse(training).toarray())

    def encode_sparse(self, training: Array | slice = slice(None)) -> csr_array:
        """Return the same matrix by what is not 0 in it: at most one entry for each row and feature."""
        values, nominal = self._values, self._nominal
        heights = np.where(np.isnan(values), 0.0, _NOMINAL_DIFFERENCE)
        scaled = unit_range(values[:, ~nominal], training)
        base = scaled[training]
        known = ~np.isnan(base)
        mean = np.where(known, base, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
        heights[:, ~nominal] = np.where(np.isnan(scaled), mean, scaled)
        row, feature = np.nonzero(heights)
        category = np.where(nominal, values, 0.0)[row, feature].astype(np.intp)
        # scikit-learn reads indices of 32 bits only.
        places = row.astype(np.int32), (self._first[feature] + category).astype(np.int32)
        return csr_array((heights[row, feature], places), shape=(len(values), len(self.owner)))


def unit_range(numbers: Array, training: Array | slice = slice(None)) -> Array:
    """Return ``numbers`` with each column's lowest at 0 and its highest at 1, among the ``training`` rows.

    A constant column is 0, NaN stays.
    """
    base = numbers[training]
    known = ~np.isnan(base)
    low = np.where(known, base, np.inf).min(axis=0, initial=np.inf)
    high = np.where(known, base, -np.inf).max(axis=0, initial=-np.inf)
    low, high = np.where(known.any(axis=0), (low, high), 0.0)
    # Halves, since the difference of two great numbers may not be a number.
    half = high / 2 - low / 2
    return np.asarray((numbers / 2 - low / 2) / np.where(half > 0, half, 1.0))
