"""A sample of the rows, whose columns are read as numbers or codes."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ferrank._core import Source
from ferrank.data.source import read
from ferrank.data.tables import numbers_of, values_of

__all__ = ["MOST_ROWS", "Column", "columns_of", "first_rows", "sampled"]

MOST_ROWS = 10_000
_LEAST_ROWS = 1_000
_CELLS = 10_000_000
_FEW_ROWS = 1_000
_LONGEST = 1_000
"""Number of characters of a category that are compared."""


@dataclass(frozen=True)
class Column:
    """A column of the sample."""

    name: str
    is_nominal: bool
    is_integer: bool
    """all numbers are whole"""
    values: NDArray[Any]
    """(n_rows,); numbers, NaN where missing, or positions in ``texts``, -1 where missing"""
    texts: list[str]
    """categories; none for numbers"""
    is_text: bool = False
    """strings, and neither a dictionary, which somebody made of them, nor named as categorical"""

    @cached_property
    def known(self) -> NDArray[np.bool_]:
        """Where there is a value, of shape (n_rows,)."""
        return self.values >= 0 if self.is_nominal else ~np.isnan(self.values)

    @cached_property
    def codes(self) -> NDArray[np.int64]:
        """The position of each value among the distinct ones, of shape (n_rows,); -1 where missing."""
        codes = np.full(len(self.values), -1)
        codes[self.known] = np.unique(self.values[self.known], return_inverse=True)[1]
        return codes

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Rows of each distinct value, of shape (n_distinct,)."""
        return np.bincount(self.codes[self.known])

    @property
    def n_distinct(self) -> int:
        """Number of distinct values."""
        return len(self.counts)


def first_rows(source: Source) -> pa.Table:
    """Return the first rows of ``source``, at most 10,000."""
    schema, batches = read(source)
    parts: list[pa.RecordBatch] = []
    for batch in batches:
        parts.append(batch)
        if sum(map(len, parts)) >= MOST_ROWS:
            break
    return pa.Table.from_batches(parts, schema)[:MOST_ROWS]


def sampled(source: Source) -> tuple[pa.Table, int]:
    """Return rows of ``source`` drawn by a hash of their number, and how many rows there are.

    As many rows as make 10 million cells, at least 1,000 and at most 10,000; all if there are fewer.
    """
    most = int(np.clip(_CELLS // max(len(source.columns), 1), _LEAST_ROWS, MOST_ROWS))
    parts: list[pa.RecordBatch] = []
    numbers: list[NDArray[np.int64]] = []
    n_rows, n_held, threshold = 0, 0, np.uint64(2**64 - 1)
    schema, batches = read(source)
    for batch in batches:
        here = np.arange(n_rows, n_rows + len(batch))
        n_rows += len(batch)
        drawn = _hash(here) <= threshold
        if not drawn.any():
            continue
        parts.append(batch if drawn.all() else batch.filter(pa.array(drawn)))
        numbers.append(here[drawn])
        n_held += int(drawn.sum())
        if n_held > 4 * most:
            hashes = np.sort(_hash(np.concatenate(numbers)))
            threshold = hashes[most - 1]
            kept = [_hash(part) <= threshold for part in numbers]
            parts = [part.filter(pa.array(keep)) for part, keep in zip(parts, kept, strict=True)]
            numbers = [part[keep] for part, keep in zip(numbers, kept, strict=True)]
            n_held = sum(map(len, numbers))
    table = pa.Table.from_batches(parts, schema)
    rows = np.concatenate([np.zeros(0, np.int64), *numbers])
    if n_held > most:
        keep = np.sort(np.argsort(_hash(rows), kind="stable")[:most])
        table = table.take(keep)
    return table, n_rows


def _hash(numbers: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return the finalizer of splitmix64 of each number (Steele, Lea and Flood 2014)."""
    z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def columns_of(table: pa.Table, kinds: dict[str, str], categorical: Collection[str] = ()) -> list[Column]:
    """Return the columns whose ``kinds`` are "numeric" or "nominal"; others are left out.

    Users have named ``categorical`` ones as such.
    """
    return [
        _column(name, table.column(name), is_nominal=kinds[name] == "nominal", is_named=name in categorical)
        for name in table.column_names
        if kinds.get(name) in {"numeric", "nominal"}
    ]


def _shortened(texts: Any) -> Any:
    """Return an array whose texts can be copied, or written out for each row, however long they are."""
    if not (pa.types.is_string(texts.type) or pa.types.is_large_string(texts.type)):
        return texts
    from pyarrow import compute as pc

    return pc.utf8_slice_codeunits(texts, 0, _LONGEST)


def _with_short_entries(chunk: pa.DictionaryArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(
        chunk.indices, _shortened(chunk.dictionary), ordered=chunk.type.ordered
    )


def _column(name: str, values: pa.ChunkedArray, *, is_nominal: bool, is_named: bool) -> Column:
    is_dictionary = pa.types.is_dictionary(values.type)
    if is_dictionary:
        chunks = [_with_short_entries(chunk) for chunk in values.chunks]
        values = pa.chunked_array(chunks, values.type).cast(values.type.value_type)
    if is_nominal:
        # pyarrow.compute takes longer to import than a small table to be ranked.
        if values.nbytes > _LONGEST * len(values):
            values = _shortened(values)
        codes, texts = _coded(values if values.type == pa.string() else values.cast(pa.string()))
        return Column(name, True, False, codes, texts, not (is_dictionary or is_named))
    numbers = numbers_of(values)
    known = numbers[np.isfinite(numbers)]
    return Column(name, False, bool(len(known) and (known == np.rint(known)).all()), numbers, [])


def _coded(values: pa.ChunkedArray) -> tuple[NDArray[np.int32], list[str]]:
    """Return the position of each string among the distinct ones, -1 where missing, and these."""
    if len(values) > _FEW_ROWS:
        encoded = values.combine_chunks().dictionary_encode()
        return values_of(pa.chunked_array([encoded.indices]), -1), encoded.dictionary.to_pylist()
    # pyarrow.compute, which encodes dictionaries, takes longer to import than a small table to be ranked.
    positions: dict[str | None, int] = {None: -1}
    codes = [positions.setdefault(text, len(positions) - 1) for text in values.to_pylist()]
    return np.array(codes, dtype=np.int32), [text for text in positions if text is not None]
