"""What workers do with partitions, and with all rows. In and out go bytes, tables and plain numbers.

Dask's dashboard shows the tasks under the names of these functions.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ferrank import _core
from ferrank.data.classes import IntegerTargets, integer_targets
from ferrank.distributed.process import Asked, coder_of, finish_of, hold, source_of, to_bytes, turn_of
from ferrank.distributed.relief_apart import draw
from ferrank.distributed.resources import TaskResources
from ferrank.distributed.tables import Batch, refuse_written_lists, unchanged
from ferrank.errors import FerrankError
from ferrank.run import finish

__all__ = [
    "Count",
    "Description",
    "code",
    "codes_of",
    "contribute",
    "count",
    "derive_cuts",
    "describe",
    "grow",
    "merge_accumulators",
    "merge_profiles",
    "pack",
    "profile",
    "search",
]


@dataclass(frozen=True)
class Count:
    """What is learnt first of partitions with the same columns."""

    schema: pa.Schema
    kept: int
    """rows that take part"""
    size: int
    """bytes"""
    integer_targets: IntegerTargets
    """of their rows"""
    checksums: tuple[int, ...]
    """of each partition"""


@dataclass(frozen=True)
class Description:
    """What a client must know of the profile of all partitions."""

    n_keys: int
    """contributions of a complete run"""
    lacking: list[int]
    """n_targets; rows that lack each"""
    in_memory: int = 0
    """bytes that a forest takes in a process that has the codes of all rows"""
    over_parts: int = 0
    """bytes that a forest takes in each process where partitions keep their codes"""
    obstacle: str | None = None
    """why a worker must hold all rows, or their codes; None if none must"""
    n_listed: int = 0
    """most rows that count for Relief's queries"""
    of_all: Sequence[str] = ()
    """columns that Relief must know of all rows: targets and groups"""
    ranked: Sequence[str] = ()
    """features that Relief ranks among all rows"""
    rounds: Sequence[tuple[int, int]] = ()
    """trees that grow together where no worker must hold all codes, by their numbers"""


def count(batch: Batch, roles: dict[str, Any], settings: dict[str, Any], alone: int | None) -> list[Count]:
    """Return what is learnt of partitions first."""

    def count_of(table: pa.Table, name: str) -> tuple[int, IntegerTargets]:
        source = source_of(table, name)
        _, kept = finish(_core.count(source, roles, settings, alone))
        return kept, integer_targets(source, roles)

    for number, table in batch.numbered():
        refuse_written_lists(table, number)
    try:
        # One by one, 62 partitions of 200 rows take 83 ms of CPU time in the place of 56.
        found = [count_of(table, batch.name) for table in batch.tables]
    except FerrankError:
        # One of them raises, and is named.
        for number, table in batch.numbered():
            count_of(table, f"partition {number}")
        raise
    checksums = iter(batch.checksums)
    return [
        Count(table.schema, kept, table.nbytes, of_targets, tuple(itertools.islice(checksums, len(lengths))))
        for table, lengths, (kept, of_targets) in zip(batch.tables, batch.lengths, found, strict=True)
    ]


@unchanged
def profile(batch: Batch, asked: Asked, first_row: int, of_rows: int | None, alone: int | None) -> bytes:
    """Return the profile of partitions.

    Their rows that take part are numbered from ``first_row`` on. Where it is known of how many in all, the
    sample that goes with the profile holds only rows that stay in the sample of all.
    """
    schema, roles, settings = asked
    source = source_of(batch.conform(schema), batch.name)
    data: bytes = finish(_core.profile(source, roles, settings, first_row, 1, alone, of_rows))
    return data


def merge_profiles(*parts: bytes) -> bytes:
    """Return the profile of all parts."""
    return _core.merge_profiles(parts)


def derive_cuts(whole: bytes) -> bytes:
    """Return the profile of all rows with cut points in the place of its samples, which are large."""
    return _core.derive_cuts(whole)


def describe(whole: bytes, asked: Asked) -> Description:
    """Return what a client must know of a profile."""
    schema, roles, settings = asked
    n_keys = _core.n_keys(source_of(schema.empty_table(), "the data set"), roles, settings, whole)
    told = pa.ipc.open_stream(whole).read_all()
    columns = told.select(["name", "role", "missing", "categories"]).to_pylist()
    targets = [column for column in columns if column["role"] == "target"]
    lacking = [target["missing"] for target in targets]
    obstacle = _core.obstacle(source_of(schema.empty_table(), "the data set"), roles, settings, whole)
    n_lists = max((len(target["categories"] or ()) for target in targets), default=1) or 1
    described = Description(n_keys, lacking, obstacle=obstacle)
    empty = source_of(schema.empty_table(), "the data set")
    if settings["ranker"] == "forest":
        in_memory, over_parts = _core.needs(empty, roles, settings, whole)
        described = replace(described, in_memory=in_memory, over_parts=over_parts)
    if obstacle is not None:
        return described
    if settings["ranker"] == "forest":
        return replace(described, rounds=_core.rounds(empty, roles, settings, whole))
    n_listed = len(draw(asked, whole, (0, n_keys))) * (1 + n_lists * (1 + max(settings["n_neighbors"])))
    of_all, ranked = _core.beside(empty, roles, settings, whole)
    return replace(described, n_listed=n_listed, of_all=of_all, ranked=ranked)


def codes_of(batch: Batch, token: str, asked: Asked, whole: bytes, alone: int | None) -> NDArray[np.uint8]:
    """Return the codes of partitions."""
    source = source_of(batch.conform(asked[0]), batch.name)
    data: NDArray[np.uint8] = finish_of(coder_of(token, asked, whole, alone).code(source, 1), token)
    return data


@unchanged
def code(batch: Batch, token: str, asked: Asked, whole: bytes, alone: int | None) -> NDArray[np.uint8]:
    """Return the codes of partitions, as an array, which dask moves without a copy."""
    return codes_of(batch, token, asked, whole, alone)


@unchanged
def pack(batch: Batch, asked: Asked) -> bytes:
    """Return the rows of partitions as an Arrow stream."""
    schema, roles, _ = asked
    kept = batch.conform(schema).drop_columns(roles["drop"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, kept.schema) as stream:
        stream.write_table(kept)
    return bytes(sink.getvalue())


def grow(
    token: str,
    asked: Asked,
    whole: bytes,
    keys: tuple[int, int],
    resources: TaskResources,
    alone: tuple[int, bytes] | None,
    *parts: NDArray[np.uint8],
) -> bytes:
    """Grow the trees ``keys`` over all rows.

    ``alone``: the target that alone counts, and the profile of the rows that have it.
    """
    schema, roles, settings = asked

    def assemble() -> _core.Coded:
        source = source_of(schema.empty_table(), "the data set")
        target, own = alone or (None, None)
        within = resources.n_threads(), resources.limit(), resources.folder()
        return _core.Coded.of(source, roles, settings, whole, parts, *within, target, own)

    with turn_of(token):
        coded = hold(f"{token}-{alone and alone[0]}", assemble)
        return to_bytes(finish_of(coded.accumulate(*keys, resources.n_threads()), token))


def search(
    token: str, asked: Asked, whole: bytes, keys: tuple[int, int], resources: TaskResources, *parts: bytes
) -> bytes:
    """Look for the neighbours of the blocks of queries ``keys`` among all rows."""
    _, roles, settings = asked

    def assemble() -> _core.Source:
        return source_of(
            pa.concat_tables(pa.ipc.open_stream(part).read_all() for part in parts), "the data set"
        )

    with turn_of(token):
        source = hold(token, assemble)
        return to_bytes(_accumulate(source, {**roles, "drop": []}, settings, whole, keys, resources, token))


@unchanged
def contribute(
    batch: Batch,
    token: str,
    asked: Asked,
    whole: bytes,
    spans: Sequence[tuple[int, int]],
    resources: TaskResources,
) -> bytes:
    """Grow trees, or look for neighbours, among the rows of a partition alone."""
    schema, roles, settings = asked
    source = source_of(batch.conform(schema), batch.name)
    with turn_of(token):
        parts = [_accumulate(source, roles, settings, whole, span, resources, token) for span in spans]
    return to_bytes(parts[0].union(parts[1:]))


def merge_accumulators(*parts: bytes) -> bytes:
    """Return the union of accumulators."""
    first, *rest = (_core.Accumulator.from_bytes(part, "a worker's contributions") for part in parts)
    return to_bytes(first.union(rest))


def _accumulate(
    source: _core.Source,
    roles: dict[str, Any],
    settings: dict[str, Any],
    whole: bytes,
    keys: tuple[int, int],
    resources: TaskResources,
    token: str,
) -> Any:
    within = resources.n_threads(), resources.limit(), resources.folder()
    return finish_of(_core.accumulate(source, roles, settings, *within, keys=keys, profile=whole), token)
