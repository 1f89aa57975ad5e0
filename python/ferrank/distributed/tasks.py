"""What workers do. Everything that goes in and comes out is bytes, tables or plain numbers.

The names of these functions are those of the tasks on dask's dashboard.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank.distributed.resources import TaskResources
from ferrank.distributed.tables import conform, refuse_written_lists
from ferrank.run import finish

__all__ = [
    "Count",
    "Description",
    "add_sums",
    "answer",
    "code",
    "codes_of",
    "collect",
    "contribute",
    "count",
    "describe",
    "draw",
    "grow",
    "grow_apart",
    "join",
    "known",
    "merge_accumulators",
    "merge_profiles",
    "nearest",
    "pack",
    "part",
    "pick",
    "piece",
    "profile",
    "release",
    "search",
    "search_apart",
    "sums",
]

Asked = tuple[pa.Schema, dict[str, Any], dict[str, Any]]
"""The columns of all partitions, their roles, and the settings of the ranker."""

Floats = np.ndarray[Any, np.dtype[np.float64]]

_FAN = 8
"""Sums that are added up by one task."""
_FEW_INTEGERS = 20
_NARROW = 255
"""Most codes of a feature that is kept in one byte."""

# Of a process: one data set is held, and one task at a time works on it, with all threads of the worker.
_turn = threading.Lock()
_held: dict[str, Any] = {}
# What is known of partitions that keep their codes, of a run.
_aparts: dict[str, Any] = {}
_apart_lock = threading.Lock()
# Tokens of the runs that were given up.
_stopped: set[str] = set()


@dataclass(frozen=True)
class Count:
    """What is learnt of a partition first."""

    schema: pa.Schema
    kept: int
    """rows that take part"""
    size: int
    """bytes"""


@dataclass(frozen=True)
class Description:
    """What a client must know of the profile of all partitions."""

    n_keys: int
    """contributions of a complete run"""
    lacking: list[int]
    """n_targets; rows that lack each"""
    few: list[str]
    """targets of a few distinct integers"""
    row_bytes: int
    """of the codes of a row"""
    obstacle: str | None = None
    """why a worker must hold all rows, or their codes; None if none must"""
    n_listed: int = 0
    """most rows that count for Relief's queries"""


@dataclass(frozen=True)
class Rows:
    """Some of the rows that take part."""

    numbers: np.ndarray[Any, np.dtype[np.uint32]]
    """n_rows; ascending, the number of each among the rows of all partitions that take part"""
    table: pa.Table

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


def count(
    table: pa.Table, number: int, roles: dict[str, Any], settings: dict[str, Any], alone: int | None
) -> Count:
    """Return the columns of a partition, how many of its rows take part, and its size."""
    refuse_written_lists(table, number)
    _, kept = finish(_core.count(_source(table, f"partition {number}"), roles, settings, alone))
    return Count(table.schema, kept, table.nbytes)


def profile(
    table: pa.Table, number: int, asked: Asked, first_row: int, of_rows: int | None, alone: int | None
) -> bytes:
    """Return the profile of a partition.

    Its rows that take part are numbered from ``first_row`` on. Where it is known of how many in all, the
    sample that goes with the profile holds only rows that stay in the sample of all.
    """
    schema, roles, settings = asked
    source = _source(conform(table, schema, number), f"partition {number}")
    data: bytes = finish(_core.profile(source, roles, settings, first_row, 1, alone, of_rows))
    return data


def merge_profiles(*parts: bytes) -> bytes:
    """Return the profile of all parts."""
    return _core.merge_profiles(parts)


def describe(whole: bytes, asked: Asked) -> Description:
    """Return what a client must know of a profile."""
    schema, roles, settings = asked
    n_keys = _core.n_keys(_source(schema.empty_table(), "the data set"), roles, settings, whole)
    told = pa.ipc.open_stream(whole).read_all()
    columns = told.select(["name", "role", "missing", "distinct", "categories"]).to_pylist()
    targets = [column for column in columns if column["role"] == "target"]
    row_bytes = sum(_code_bytes(column, settings) for column in columns if column["role"] == "feature")
    few = [
        target["name"]
        for target in targets
        if pa.types.is_integer(schema.field(target["name"]).type)
        and target["distinct"] is not None
        and len(target["distinct"]) <= _FEW_INTEGERS
    ]
    lacking = [target["missing"] for target in targets]
    obstacle = _core.obstacle(_source(schema.empty_table(), "the data set"), roles, settings, whole)
    n_lists = max((len(target["categories"] or ()) for target in targets), default=1) or 1
    n_listed = 0
    if obstacle is None and settings["ranker"] == "relief":
        n_listed = len(draw(asked, whole, (0, n_keys))) * (1 + n_lists * (1 + max(settings["n_neighbors"])))
    return Description(n_keys, lacking, few, row_bytes, obstacle, n_listed)


def _code_bytes(column: dict[str, Any], settings: dict[str, Any]) -> int:
    """Return the bytes of a code of a feature."""
    found = column["categories"] if column["distinct"] is None else column["distinct"]
    n_codes = settings.get("max_bins", 0) if found is None else len(found)
    return 1 if n_codes <= _NARROW else 2


def code(table: pa.Table, number: int, asked: Asked, whole: bytes, alone: int | None) -> bytes:
    """Return the codes of a partition."""
    schema, roles, settings = asked
    source = _source(conform(table, schema, number), f"partition {number}")
    data: bytes = finish(_core.code(source, roles, settings, whole, 1, alone))
    return data


def pack(table: pa.Table, number: int, asked: Asked) -> bytes:
    """Return the rows of a partition as an Arrow stream."""
    schema, roles, _ = asked
    kept = conform(table, schema, number).drop_columns(roles["drop"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, kept.schema) as stream:
        stream.write_table(kept)
    return bytes(sink.getvalue())


def part(table: pa.Table, number: int, asked: Asked, first_row: int) -> Rows:
    """Return the rows of a partition that take part, numbered from ``first_row`` on."""
    schema, roles, settings = asked
    table = conform(table, schema, number)
    kept = finish(_core.taking_part(_source(table, f"partition {number}"), roles, settings))
    rows = (table if kept.all() else table.filter(pa.array(kept))).drop_columns(roles["drop"])
    return Rows(np.arange(first_row, first_row + rows.num_rows, dtype=np.uint32), rows)


def draw(asked: Asked, whole: bytes, keys: tuple[int, int]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the numbers of the rows that are queries of the blocks ``keys``."""
    schema, roles, settings = asked
    return _core.queries(_source(schema.empty_table(), "the data set"), roles, settings, whole, keys)


def pick(rows: Rows, wanted: np.ndarray[Any, np.dtype[np.uint32]]) -> Rows:
    """Return those of ``rows`` whose numbers are ``wanted``."""
    return rows.where(np.flatnonzero(np.isin(rows.numbers, wanted, assume_unique=True)))


def join(*parts: Rows) -> Rows:
    """Return the rows of all parts, each once."""
    return Rows.of(parts)


def nearest(
    token: str,
    asked: Asked,
    whole: bytes,
    means: TaskResources,
    queries: Rows,
    *parts: Rows,
) -> Rows:
    """Return ``queries``, and the rows of the parts that count for them if no other rows do."""
    _, roles, settings = asked
    with _turn_of(token):
        if len(parts) == 1:
            # The rows of a partition follow each other, and stay where they are.
            first, end = np.searchsorted(queries.numbers, parts[0].numbers[[0, -1]] + np.array([0, 1]))
            rows = Rows.of([queries.where(slice(0, first)), parts[0], queries.where(slice(end, None))])
        else:
            rows = Rows.of([queries, *parts])
        found = _core.nearest(
            _source(rows.table, "the rows"),
            {**roles, "drop": []},
            settings,
            means.n_threads(),
            means.limit_beside(),
            means.folder(),
            whole,
            rows.numbers,
            queries.numbers,
        )
        return rows.where(_finish(found, token))


def search_apart(
    token: str, asked: Asked, whole: bytes, keys: tuple[int, int], means: TaskResources, *parts: Rows
) -> bytes:
    """Return what the blocks of queries ``keys`` contribute, from the rows that count for them."""
    _, roles, settings = asked
    rows = Rows.of(parts)
    with _turn_of(token):
        run = _core.search(
            _source(rows.table, "the rows"),
            {**roles, "drop": []},
            settings,
            means.n_threads(),
            means.limit_beside(),
            means.folder(),
            whole,
            rows.numbers,
            keys,
        )
        return _bytes(_finish(run, token))


def grow(
    token: str,
    asked: Asked,
    whole: bytes,
    keys: tuple[int, int],
    means: TaskResources,
    alone: tuple[int, bytes] | None,
    *parts: bytes,
) -> bytes:
    """Grow the trees ``keys`` over all rows.

    ``alone``: the target that alone counts, and the profile of the rows that have it.
    """
    schema, roles, settings = asked

    def assemble() -> _core.Coded:
        source = _source(schema.empty_table(), "the data set")
        target, own = alone or (None, None)
        within = means.n_threads(), means.limit(), means.folder()
        return _core.Coded.of(source, roles, settings, whole, parts, *within, target, own)

    with _turn_of(token):
        coded = _hold(f"{token}-{alone and alone[0]}", assemble)
        return _bytes(_finish(coded.accumulate(*keys, means.n_threads()), token))


def search(
    token: str, asked: Asked, whole: bytes, keys: tuple[int, int], means: TaskResources, *parts: bytes
) -> bytes:
    """Look for the neighbours of the blocks of queries ``keys`` among all rows."""
    _, roles, settings = asked

    def assemble() -> _core.Source:
        return _source(
            pa.concat_tables(pa.ipc.open_stream(part).read_all() for part in parts), "the data set"
        )

    with _turn_of(token):
        source = _hold(token, assemble)
        return _bytes(_accumulate(source, {**roles, "drop": []}, settings, whole, keys, means, token))


def contribute(
    token: str,
    table: pa.Table,
    number: int,
    asked: Asked,
    whole: bytes,
    spans: Sequence[tuple[int, int]],
    means: TaskResources,
) -> bytes:
    """Grow trees, or look for neighbours, among the rows of a partition alone."""
    schema, roles, settings = asked
    source = _source(conform(table, schema, number), f"partition {number}")
    with _turn_of(token):
        parts = [_accumulate(source, roles, settings, whole, span, means, token) for span in spans]
    return _bytes(parts[0].union(parts[1:]))


def answer(codes: bytes, asked: Asked, whole: bytes) -> bytes:
    """Return the targets and weights of a partition without its codes."""
    schema, roles, settings = asked
    return _core.answers(_source(schema.empty_table(), "the data set"), roles, settings, whole, codes)


def known(*parts: bytes) -> list[bytes]:
    """Return the targets and weights of all partitions."""
    return list(parts)


def sums(
    token: str,
    asked: Asked,
    whole: bytes,
    answers: list[bytes],
    codes: bytes,
    first: int,
    request: bytes,
    means: TaskResources,
) -> Floats:
    """Return the sums of the open nodes of some trees, over the rows of a partition."""
    apart = _apart(token, asked, whole, answers)
    found: Floats = _finish(apart.sums(codes, first, request, means.n_threads()), token)
    return found


def add_sums(*parts: Floats) -> Floats:
    """Return the sums of all parts; they are exact, so that any order gives the same bits."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def collect(
    token: str,
    asked: Asked,
    whole: bytes,
    answers: list[bytes],
    codes: bytes,
    first: int,
    request: bytes,
    means: TaskResources,
) -> list[bytes]:
    """Return the rows of a partition that reach each of some nodes, as codes."""
    apart = _apart(token, asked, whole, answers)
    found = apart.collect(codes, first, request, means.n_threads(), means.folder())
    buckets: list[bytes] = _finish(found, token)
    return buckets


def piece(buckets: list[bytes], number: int) -> bytes:
    """Return the rows that reach one of the nodes."""
    return buckets[number]


def codes_of(
    token: str,
    asked: Asked,
    whole: bytes,
    answers: list[bytes],
    codes: bytes,
    first: int,
    rows: np.ndarray[Any, np.dtype[np.uint64]],
) -> bytes:
    """Return the codes of those of ``rows`` that are in a partition."""
    found: bytes = _finish(_apart(token, asked, whole, answers).codes(codes, first, rows), token)
    return found


def grow_apart(
    token: str,
    asked: Asked,
    whole: bytes,
    answers: list[bytes],
    keys: tuple[int, int],
    means: TaskResources,
    names: tuple[str, str, Sequence[str]],
    firsts: Sequence[int],
) -> bytes:
    """Grow the trees ``keys`` over partitions that keep their codes.

    ``names``: those that the cluster has for ``whole``, ``answers``, and the codes of each partition, whose
    first rows are ``firsts``.
    """
    from distributed import worker_client

    # What is asked of partitions takes threads that this task must not.
    with worker_client() as client:
        parts = _Asking(client, token, asked, means, names, firsts)
        apart = _apart(token, asked, whole, answers)
        run = apart.accumulate(*keys, means.n_threads(), means.limit_beside(), parts)
        return _bytes(_finish(run, token))


class _Asking:
    """Asks the partitions on a cluster for what growth needs of them."""

    def __init__(
        self,
        client: Any,
        token: str,
        asked: Asked,
        means: TaskResources,
        names: tuple[str, str, Sequence[str]],
        firsts: Sequence[int],
    ) -> None:
        from distributed import Future

        whole, answers, codes = names
        known: Callable[..., Any] = Future
        future = partial(known, client=client)
        self._client, self._means, self._collected = client, means, []
        self._shared = (token, asked, future(whole), future(answers))
        self._parts = [(future(name), first) for name, first in zip(codes, firsts, strict=True)]

    _collected: list[Any]

    def sums(self, request: bytes) -> Floats:
        """Return the sums over the rows of all partitions."""
        found = self._of_each(sums, request, self._means)
        while len(found) > 1:
            groups = (found[first : first + _FAN] for first in range(0, len(found), _FAN))
            found = [self._client.submit(add_sums, *group, pure=False) for group in groups]
        total: Floats = self._client.gather(found[0])
        return total

    def collect(self, request: bytes) -> None:
        """Have the rows of some nodes collected, in place of those before."""
        self._collected = []
        self._collected = self._of_each(collect, request, self._means)

    def bucket(self, number: int) -> bytes:
        """Return the rows of one of the nodes."""
        pieces = [self._client.submit(piece, buckets, number, pure=False) for buckets in self._collected]
        return b"".join(self._client.gather(pieces))

    def codes(self, rows: np.ndarray[Any, np.dtype[np.uint64]]) -> bytes:
        """Return the codes of ``rows``."""
        return b"".join(self._client.gather(self._of_each(codes_of, rows)))

    def _of_each(self, function: Callable[..., Any], *wanted: Any) -> list[Any]:
        return [
            self._client.submit(function, *self._shared, codes, first, *wanted, pure=False)
            for codes, first in self._parts
        ]


def _apart(token: str, asked: Asked, whole: bytes, answers: list[bytes]) -> Any:
    """Return what each process knows of partitions that keep their codes."""
    schema, roles, settings = asked
    with _apart_lock:
        _check(token)
        if token not in _aparts:
            _aparts.clear()
            source = _source(schema.empty_table(), "the data set")
            _aparts[token] = _core.Apart.of(source, roles, settings, whole, answers)
        return _aparts[token]


def merge_accumulators(*parts: bytes) -> bytes:
    """Return the union of accumulators."""
    first, *rest = (_core.Accumulator.from_bytes(part, "a worker's contributions") for part in parts)
    return _bytes(first.union(rest))


def release(token: str, stop: bool) -> None:
    """Let go of what is held for a run, and with ``stop`` end what is at work for it."""
    if stop:
        _stopped.add(token)
    _aparts.pop(token, None)
    # While a task is at work, what is held is another run's, or let go of by that task.
    if _turn.acquire(blocking=False):
        _let_go(token)
        _turn.release()


class _StoppedError(Exception):
    """The run was given up."""


@contextmanager
def _turn_of(token: str) -> Iterator[None]:
    """Give the process to one task at a time."""
    with _turn:
        try:
            _check(token)
            yield
        finally:
            if token in _stopped:
                _let_go(token)


def _check(token: str) -> None:
    if token in _stopped:
        raise _StoppedError


def _let_go(token: str) -> None:
    if any(held.startswith(token) for held in _held):
        _held.clear()


def _hold(name: str, make: Callable[[], Any]) -> Any:
    if name not in _held:
        _held.clear()
        _held[name] = make()
    return _held[name]


def _accumulate(
    source: _core.Source,
    roles: dict[str, Any],
    settings: dict[str, Any],
    whole: bytes,
    keys: tuple[int, int],
    means: TaskResources,
    token: str,
) -> Any:
    within = means.n_threads(), means.limit(), means.folder()
    return _finish(_core.accumulate(source, roles, settings, *within, keys=keys, profile=whole), token)


def _finish(run: _core.Run, token: str) -> Any:
    """Return the outcome of ``run``, which ends early if the run of ``token`` is given up."""
    return finish(run, lambda *_: _check(token))


def _source(table: pa.Table, name: str) -> _core.Source:
    return _core.Source.table(table, name)


def _bytes(accumulator: _core.Accumulator) -> bytes:
    return accumulator.to_bytes()
