"""The tasks of a ranking, in three rounds: rows are counted, then profiled, then contribute."""

import itertools
import logging
import os
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Literal

import dask
from dask.callbacks import Callback
from dask.system import CPU_COUNT

from ferrank import _core
from ferrank.data.classes import roles_of
from ferrank.distributed import association_apart, forests_apart, process, relief_apart, tasks
from ferrank.distributed.drift import drift
from ferrank.distributed.partitions import Partitions
from ferrank.distributed.resources import SPILL_FRACTION, TaskResources
from ferrank.distributed.tables import columns_of
from ferrank.errors import (
    DataError,
    DriftWarning,
    FerrankError,
    ResourceError,
    SettingError,
)
from ferrank.progress import Progress
from ferrank.ranking import Ranking

__all__ = ["rank"]

_log = logging.getLogger("ferrank.distributed")

_FAN = 8
"""Profiles or accumulators that are merged by one task."""
_TASKS_A_WORKER = 4
_TOGETHER = 16
"""Share of a worker's memory for the rows that queries searched together need: one in so many."""
_RANK_BYTES = 64
"""Of a value that is ranked among all rows: values and counts, as they arrive and together, places, ranks."""
_FEW = 32
"""So many partitions are worked on one by one."""
_SIZED = 8
"""Partitions whose sizes say how many are worked on together."""
_BATCH_BYTES = 32 << 20
"""Most bytes of partitions that are worked on together."""
_HELD = 8
"""Share of the memory of all workers for the partitions that are read once and held: one in so many."""
_DRIFTED_NAMED = 3


def rank(
    partitions: Partitions,
    settings: dict[str, Any],
    roles: dict[str, Any],
    resources: tuple[int, int | None, str | os.PathLike[str] | None],
    scope: Literal["global", "partition"] = "global",
    progress: Progress | None = None,
) -> Ranking:
    """Rank the features of a collection.

    Raises
    ------
    DataError, ColumnTypeError, SettingError, ResourceError
        The message names the partition, the column or the setting.
    """
    if scope not in ("global", "partition"):
        raise SettingError(f"scope: {scope!r} is neither 'global' nor 'partition'")
    if scope == "partition" and settings["ranker"] == "association":
        raise SettingError("scope: tests of association need all rows; use scope='global'")
    if scope == "partition" and "myopic" in settings.get("scores", ()):
        raise SettingError("scores: myopic compares all rows at once; use scope='global', or leave it out")
    threads, memory, folder = resources
    temp_dir = None if folder is None else os.fspath(folder)
    started = time.perf_counter()
    run = _Run(partitions, settings, TaskResources(threads, memory, temp_dir, _processes()), progress)
    try:
        run.profile(roles | (partitions.roles or {}), compare=scope == "partition")
        data = run.whole() if scope == "global" else run.by_partition()
    except FerrankError as error:
        run.release(stop=True)
        # The calls of the scheduler and of the worker say nothing about the data.
        raise error.with_traceback(None) from None
    except BaseException:
        run.release(stop=True)
        raise
    run.release(stop=False)
    accumulator = _core.Accumulator.from_bytes(data, "the workers' contributions")
    return Ranking.from_core(accumulator.ranking(), settings, time.perf_counter() - started)


class _Run:
    """A data set, and the tasks that make contributions of it."""

    _asked: process.Asked
    _batches: list[Any]
    """delayed; partitions that are worked on together"""
    _kept: list[int]
    """rows of each batch that take part"""
    _size: int
    """bytes of all partitions"""
    _profile_of_all: Any
    """delayed"""
    _known: tasks.Description

    def __init__(
        self,
        partitions: Partitions,
        settings: dict[str, Any],
        means: TaskResources,
        progress: Progress | None,
    ) -> None:
        self._partitions, self._settings, self._means, self._progress = partitions, settings, means, progress
        self._token = f"ferrank-{uuid.uuid4().hex}"

    def profile(self, roles: dict[str, Any], *, compare: bool) -> None:
        """Count the rows, and learn what must be known of them; ``compare``: warn if partitions differ."""
        if not self._partitions.parts:
            raise DataError("data: the collection has no partitions")
        self._batches = self._batched(roles, alone=compare)
        counts = self._compute(self._counts(self._batches, roles, None), "counting")
        schema = columns_of([count.schema for of_batch in counts for count in of_batch])
        if roles["task"] is None:
            roles |= roles_of(count.integer_targets for of_batch in counts for count in of_batch)
        self._asked = (schema, roles, self._settings)
        self._kept = _kept(counts)
        self._size = sum(count.size for of_batch in counts for count in of_batch)
        full = [number for number, kept in enumerate(self._kept) if kept]
        # To compare them takes larger samples of each.
        profiles = self._profiles(self._kept, None, sampled_apart=compare)
        whole = _merged(tasks.merge_profiles, profiles)
        n_tests = len(full) * len(schema.names)
        compared = [_task(drift, profiles[number], whole, n_tests) for number in full if compare]
        self._profile_of_all, described, *compared = self._persist(
            [whole, _task(tasks.describe, whole, self._asked), *compared], "profiling", profiles
        )
        [self._known, *found] = self._compute([described, *compared], "profiling")
        _warn_of_drift(dict(zip(full, found, strict=False)))

    def _batched(self, roles: dict[str, Any], *, alone: bool) -> list[Any]:
        """Return partitions as they are worked on together: many small ones, or each ``alone``.

        Partitions that take little of the workers' memory are read once and held.
        """
        n_partitions, together = len(self._partitions.parts), 1
        if n_partitions > _FEW and not alone:
            some = [number * n_partitions // _SIZED for number in range(_SIZED)]
            batches = [self._partitions.batch(number, number + 1) for number in some]
            counts = self._compute(self._counts(batches, roles, None), "counting")
            sizes = [count.size for of_batch in counts for count in of_batch]
            together = max(1, min(_BATCH_BYTES // max(*sizes, 1), n_partitions // self._n_tasks()))
            limits = _limits()
            size = n_partitions * sum(sizes) // _SIZED
            held = bool(limits) and _HELD * size <= SPILL_FRACTION * sum(limits)
            _log.info("%d partitions are worked on together%s", together, ", and held" if held else "")
        else:
            held = False
        ends = range(0, n_partitions, together)
        batches = [self._partitions.batch(first, min(first + together, n_partitions)) for first in ends]
        return list(_client().persist(batches)) if held else batches

    def whole(self) -> bytes:
        """Return the contributions that all rows together make."""
        settings = self._asked[2]
        if settings["ranker"] == "association":
            return self._test_apart()
        reason = f" ({self._known.obstacle})" if self._known.obstacle else ""
        if settings["ranker"] == "relief":
            if not _fits(self._size) and self._known.obstacle is None:
                if self._known.ranked or self._known.of_all:
                    _check_room(_RANK_BYTES * sum(self._kept), "Relief: the ranks of a column of all rows")
                return self._gather(self._search_apart())
            _check_room(self._size, f"Relief: all rows{reason}")
            pack = _delayed(tasks.pack)
            # All rows, for those that take no part are counted, too.
            parts = [pack(batch, self._asked) for batch in self._batches]
            return self._gather(self._search(parts))
        size = sum(self._kept) * self._known.row_bytes
        if not _fits(size) and self._known.obstacle is None:
            return self._grow_apart(size)
        _check_room(size, f"forests: the codes of all rows{reason}")
        if settings["per_target"]:
            return self._grow_per_target(settings["n_estimators"])
        codes = self._codes(self._kept, self._profile_of_all, None)
        return self._gather(self._grow(codes, (0, self._known.n_keys), None))

    def by_partition(self) -> bytes:
        """Return the contributions that each partition makes of its own rows."""
        settings = self._asked[2]
        full = [number for number, kept in enumerate(self._kept) if kept]
        alone = settings["ranker"] == "forest" and settings["per_target"]
        n_ensembles = len(self._known.lacking) if alone else 1
        n_keys = self._known.n_keys // n_ensembles
        if n_keys < len(full):
            what = "trees" if settings["ranker"] == "forest" else "blocks of queries"
            raise SettingError(
                f"scope: {n_keys} {what} for {len(full)} partitions; use as many at least, or fewer parts"
            )
        ends = [0, *itertools.accumulate(_apportioned(n_keys, [self._kept[number] for number in full]))]
        contribute = _delayed(tasks.contribute)
        shares = []
        for number, first, end in zip(full, ends, ends[1:], strict=False):
            spans = [(target * n_keys + first, target * n_keys + end) for target in range(n_ensembles)]
            args = (self._batches[number], self._asked, self._profile_of_all, spans, self._means)
            shares.append(contribute(self._token, *args))
        return self._gather(shares)

    def release(self, *, stop: bool) -> None:
        """Let go of what workers hold, and with ``stop`` end what they do."""
        client = _client()
        if client is None:
            process.release(self._token, stop)
        elif client.status == "running":
            client.run(process.release, self._token, stop, on_error="ignore")

    def _counts(self, batches: list[Any], roles: dict[str, Any], alone: int | None) -> list[Any]:
        count = _delayed(tasks.count)
        return [count(batch, roles, self._settings, alone) for batch in batches]

    def _profiles(self, kept: Sequence[int], alone: int | None, *, sampled_apart: bool = False) -> list[Any]:
        profile = _delayed(tasks.profile)
        *firsts, end = [0, *itertools.accumulate(kept)]
        of_rows = None if sampled_apart else end
        return [
            profile(batch, self._asked, first, of_rows, alone)
            for batch, first in zip(self._batches, firsts, strict=True)
        ]

    def _codes(self, kept: Sequence[int], profile: Any, alone: int | None) -> list[Any]:
        code = _delayed(tasks.code)
        return [
            code(self._token, batch, self._asked, profile, alone)
            for batch, rows in zip(self._batches, kept, strict=True)
            if rows
        ]

    def _grow(self, parts: list[Any], keys: tuple[int, int], alone: Any) -> list[Any]:
        grow = _delayed(tasks.grow)
        spans = _spans(*keys, self._n_tasks())
        fixed = (self._token, self._asked, self._profile_of_all)
        return [grow(*fixed, span, self._means, alone, *parts) for span in spans]

    def _grow_per_target(self, n_trees: int) -> bytes:
        """Return the contributions of an ensemble for each target.

        Rows that lack a target take no part in its trees, unless they cluster. Such a target has codes of its
        own, and workers hold those of one at a time.
        """
        supervision = self._asked[2]["supervision"]
        clusters = supervision is not None and supervision < 1
        shares, gathered = [], []
        codes = self._codes(self._kept, self._profile_of_all, None)
        for target, lacking in enumerate(self._known.lacking):
            keys = (target * n_trees, (target + 1) * n_trees)
            if not lacking or clusters:
                shares += self._grow(codes, keys, None)
                continue
            counts = self._counts(self._batches, self._asked[1], target)
            kept = _kept(self._compute(counts, "counting"))
            profiles = self._profiles(kept, target)
            [own] = self._persist([_merged(tasks.merge_profiles, profiles)], "profiling", profiles)
            gathered.append(self._gather(self._grow(self._codes(kept, own, target), keys, (target, own))))
        if shares:
            gathered.append(self._gather(shares))
        return tasks.merge_accumulators(*gathered)

    def _search(self, parts: list[Any]) -> list[Any]:
        search = _delayed(tasks.search)
        fixed = (self._token, self._asked, self._profile_of_all)
        return [
            search(*fixed, span, self._means, *parts)
            for span in _spans(0, self._known.n_keys, self._n_tasks())
        ]

    def _grow_apart(self, size: int) -> bytes:
        """Grow trees over partitions that keep their codes; those that see the same shadows in one round."""
        _log.info("memory plan: codes take %d MiB, and stay in their partitions", size >> 20)
        known, kept = self._persist_codes()
        grow = _delayed(forests_apart.grow_apart)
        n_workers = len(_limits())
        rounds = [_spans(*keys, n_workers) for keys in self._known.rounds]
        total = sum(len(spans) for spans in rounds)
        gathered: list[bytes] = []
        done = 0
        for spans in rounds:
            shadows = self._shadows(known, kept, spans[0][0]) if self._asked[2]["shadows"] else []
            names = known.key, [part.key for part in kept], [part.key for part in shadows]
            shares = [grow(known, names, span) for span in spans]
            gathered.append(self._gather(shares, (done, total)))
            done += len(spans)
        return tasks.merge_accumulators(*gathered)

    def _persist_codes(self) -> tuple[Any, list[Any]]:
        """Return what all tasks know, and the codes, which partitions keep as long as these are here."""
        codes = self._codes(self._kept, self._profile_of_all, None)
        answer = _delayed(forests_apart.answer)
        answers = [answer(self._token, part, self._asked, self._profile_of_all) for part in codes]
        firsts = [0, *itertools.accumulate(rows for rows in self._kept if rows)][:-1]
        shared = self._token, self._asked, self._means, firsts, self._profile_of_all
        known, *kept = self._persist([_task(forests_apart.known, *shared, *answers), *codes], "coding", codes)
        return known, kept

    def _shadows(self, known: Any, codes: list[Any], tree: int) -> list[Any]:
        """Return the codes of the shadows that the trees from ``tree`` on see, in each partition."""
        spread, piece, shadow = (
            _delayed(forests_apart.spread),
            _delayed(forests_apart.piece),
            _delayed(forests_apart.shadow),
        )
        spreads = [spread(known, part, number, tree) for number, part in enumerate(codes)]
        shadows = [
            shadow(known, part, number, tree, *(piece(pieces, number) for pieces in spreads))
            for number, part in enumerate(codes)
        ]
        return list(_client().persist(shadows))

    def _test_apart(self) -> bytes:
        """Test features over partitions that keep their codes, some features at a time."""
        known, kept = self._persist_codes()
        tested, ranges, counts, contribution = (
            _delayed(association_apart.tested),
            _delayed(association_apart.ranges),
            _delayed(association_apart.counts),
            _delayed(association_apart.contribution),
        )
        [shared] = self._persist([tested(known)], "testing", [])
        [of_features] = self._compute([ranges(shared)], "testing")
        steps, totals = [], []
        for features in of_features:
            parts = [counts(shared, part, number, features) for number, part in enumerate(kept)]
            steps += parts
            totals.append(_merged(association_apart.add_counts, parts))
        [data] = self._compute([contribution(shared, *totals)], "testing", steps)
        return bytes(data)

    def _search_apart(self) -> list[Any]:
        """Search each partition where it is, and bring together the rows that count.

        A row that counts for a query among all rows does so within its partition, and among any rows.
        """
        n_rows, limits = sum(self._kept), _limits()
        listed = min(self._known.n_listed, n_rows) * -(-self._size // n_rows)
        n_spans = max(len(limits), -(-_TOGETHER * listed // min(limits)))
        spans = _spans(0, self._known.n_keys, n_spans)
        _log.info(
            "memory plan: rows take %d MiB, and stay in their partitions; %d searches of each",
            self._size >> 20,
            len(spans),
        )
        draw, pick = _delayed(relief_apart.draw), _delayed(relief_apart.pick)
        join, nearest, search = (
            _delayed(relief_apart.join),
            _delayed(relief_apart.nearest),
            _delayed(relief_apart.search_apart),
        )
        parts = self._rows()
        of_all = self._targets(parts) if self._known.of_all else None
        parts = self._ranked(parts) if self._known.ranked else parts
        fixed = (self._token, self._asked, self._profile_of_all, self._means)
        shares = []
        for span in spans:
            drawn = draw(self._asked, self._profile_of_all, span)
            queries = join(*(pick(rows, drawn) for rows in parts))
            found = [nearest(*fixed, queries, rows) for rows in parts]
            while len(found) > _FAN:
                together = (found[first : first + _FAN] for first in range(0, len(found), _FAN))
                found = [nearest(*fixed, queries, *rows) for rows in together]
            shares.append(search(*fixed, span, of_all, *found))
        return shares

    def _rows(self) -> list[Any]:
        """Return the rows of each partition that take part."""
        part = _delayed(relief_apart.part)
        firsts = [0, *itertools.accumulate(self._kept)]
        return [
            part(batch, self._asked, firsts[number])
            for number, batch in enumerate(self._batches)
            if self._kept[number]
        ]

    def _targets(self, parts: list[Any]) -> Any:
        """Return the targets of all rows."""
        targets, join = _delayed(relief_apart.targets), _delayed(relief_apart.join_targets)
        return join(*(targets(rows, self._known.of_all) for rows in parts))

    def _ranked(self, parts: list[Any]) -> list[Any]:
        """Return the partitions with ranks among all rows; some features at a time are brought together."""
        distinct, mid_ranks, piece, ranked = (
            _delayed(relief_apart.distinct),
            _delayed(relief_apart.mid_ranks),
            _delayed(forests_apart.piece),
            _delayed(relief_apart.ranked),
        )
        names, limits = self._known.ranked, _limits()
        together = max(1, min(limits) // (_TOGETHER * _RANK_BYTES * sum(self._kept)))
        ends = _spans(0, len(names), max(-(-len(names) // together), len(limits)))
        groups = [names[first:end] for first, end in ends]
        of_groups = [[distinct(rows, self._asked, group) for rows in parts] for group in groups]
        ranks = [mid_ranks(*of_parts) for of_parts in of_groups]
        found = [
            [
                of_one
                for of_parts, of_all in zip(of_groups, ranks, strict=True)
                for of_one in (of_parts[number], piece(of_all, number))
            ]
            for number in range(len(parts))
        ]
        return [
            ranked(rows, self._asked, groups, *of_part) for rows, of_part in zip(parts, found, strict=True)
        ]

    def _n_tasks(self) -> int:
        client = _client()
        return _TASKS_A_WORKER * max(len(client.nthreads()) if client else 1, 4)

    def _gather(self, shares: list[Any], within: tuple[int, int] | None = None) -> bytes:
        """Compute the contributions and merge them, in a tree; ``within`` as for ``_watch``."""
        merged = _merged(tasks.merge_accumulators, shares)
        phase = "growing" if self._asked[2]["ranker"] == "forest" else "searching"
        [data] = self._compute([merged], phase, shares, within)
        return bytes(data)

    def _compute(
        self,
        wanted: list[Any],
        phase: str,
        steps: list[Any] | None = None,
        within: tuple[int, int] | None = None,
    ) -> list[Any]:
        """Compute ``wanted``; ``steps`` are what progress counts, ``within`` as for ``_watch``."""
        keys = {step.key for step in (wanted if steps is None else steps)}
        client = _client()
        if client is None:
            with _Progress(self._progress, phase, keys):
                return list(dask.compute(*wanted))
        futures = client.compute(wanted)
        try:
            self._watch(client, futures, phase, keys, within)
            return list(client.gather(futures))
        except BaseException:
            client.cancel(futures)
            raise

    def _persist(self, wanted: list[Any], phase: str, steps: list[Any]) -> list[Any]:
        """Compute ``wanted`` and leave it where it is."""
        keys = {step.key for step in steps}
        client = _client()
        if client is None:
            with _Progress(self._progress, phase, keys):
                return list(dask.persist(*wanted))
        persisted = client.persist(wanted)
        futures = client.futures_of(persisted)
        try:
            self._watch(client, futures, phase, keys)
        except BaseException:
            client.cancel(futures)
            raise
        return list(persisted)

    def _watch(
        self,
        client: Any,
        futures: list[Any],
        phase: str,
        keys: set[str],
        within: tuple[int, int] | None = None,
    ) -> None:
        """Report how many of the tasks called ``keys`` a cluster has done, until ``futures`` are.

        ``within``: the tasks that were done before, and of how many; None if these are all.
        """
        from distributed import Future, wait

        if self._progress is None:
            return
        steps: list[Any] = [Future(key, client=client) for key in keys]
        before, total = within or (0, len(steps))
        while any(future.status == "pending" for future in futures):
            self._progress(phase, before + sum(step.status == "finished" for step in steps), total)
            try:
                wait(futures, timeout=0.2)
            except TimeoutError:
                continue
        self._progress(phase, before + len(steps), total)


class _Progress(Callback):
    """Counts the tasks that a local scheduler has done."""

    def __init__(self, progress: Progress | None, phase: str, keys: set[str]) -> None:
        self._report, self._phase, self._keys, self._done = progress, phase, keys, 0
        super().__init__()

    def _posttask(self, key: Any, *_: Any) -> None:
        if self._report is not None and key in self._keys:
            self._done += 1
            self._report(self._phase, self._done, len(self._keys))


def _kept(counts: Sequence[Sequence[tasks.Count]]) -> list[int]:
    """Return how many rows of each batch take part."""
    return [sum(count.kept for count in of_batch) for of_batch in counts]


def _warn_of_drift(found: dict[int, list[tuple[str, float]]]) -> None:
    """Warn of the columns that differ, by partition those that :func:`drift` found."""
    farthest: dict[str, tuple[float, int]] = {}
    for number, columns in found.items():
        for name, distance in columns:
            farthest[name] = max(farthest.get(name, (0.0, 0)), (distance, number))
    if not farthest:
        return
    order = sorted(farthest, key=lambda name: -farthest[name][0])
    named = ", ".join(
        "'{}' (by {:.2f}, partition {})".format(name, *farthest[name]) for name in order[:_DRIFTED_NAMED]
    )
    more = f" and {len(order) - _DRIFTED_NAMED} more" if len(order) > _DRIFTED_NAMED else ""
    warnings.warn(
        f"partitions differ in the distributions of {named}{more}, so what each finds on its own need not "
        "hold for all; shuffle the rows, or use scope='global'",
        DriftWarning,
        stacklevel=6,
    )


def _client() -> Any:
    """Return the client of the distributed scheduler that dask would use now, or None for a local one."""
    scheduler = dask.base.get_scheduler()
    owner = getattr(scheduler, "__self__", None)
    return owner if hasattr(owner, "scheduler_info") else None


def _processes() -> int:
    """Return how many processes work on one machine, as far as the client knows."""
    client = _client()
    if client is not None:
        workers = client.scheduler_info()["workers"].values()
        return max(Counter(worker["host"] for worker in workers).values(), default=1)
    if dask.base.get_scheduler() is dask.multiprocessing.get:
        return int(dask.config.get("num_workers", None) or CPU_COUNT)
    return 1


def _limits() -> list[int]:
    """Return the bytes that each worker of a cluster may hold, where that is limited."""
    client = _client()
    workers = client.scheduler_info()["workers"].values() if client is not None else ()
    return [worker["memory_limit"] for worker in workers if worker["memory_limit"]]


def _fits(size: int) -> bool:
    """Whether any worker may hold ``size`` bytes."""
    limits = _limits()
    return not limits or size <= SPILL_FRACTION * min(limits)


def _check_room(size: int, what: str) -> None:
    """Raise an error if a worker of a cluster may not hold ``what``, which takes ``size`` bytes."""
    if not _fits(size):
        limits = _limits()
        raise ResourceError(
            f"memory: {what} take {-(-size >> 20)} MiB on each worker, the least of which may hold "
            f"{int(SPILL_FRACTION * min(limits)) >> 20} MiB before dask spills; use larger workers, or "
            "scope='partition'"
        )


def _delayed(function: Callable[..., Any]) -> Any:
    return dask.delayed(function, pure=True, traverse=False)


def _task(function: Callable[..., Any], *arguments: Any) -> Any:
    return _delayed(function)(*arguments)


def _merged(merge: Callable[..., Any], parts: list[Any]) -> Any:
    """Return the tasks that merge ``parts`` in a tree."""
    step = _delayed(merge)
    while len(parts) > 1:
        parts = [step(*parts[first : first + _FAN]) for first in range(0, len(parts), _FAN)]
    return parts[0]


def _spans(first: int, end: int, n_spans: int) -> list[tuple[int, int]]:
    """Return ``first .. end`` cut into spans of about the same length."""
    n_keys = end - first
    n_spans = min(n_spans, n_keys)
    return [
        (first + number * n_keys // n_spans, first + (number + 1) * n_keys // n_spans)
        for number in range(n_spans)
    ]


def _apportioned(total: int, weights: Sequence[int]) -> list[int]:
    """Return ``total`` shared out by ``weights``, at least 1 each (largest remainders).

    >>> _apportioned(10, [50, 30, 1])
    [5, 4, 1]
    """
    free, whole = total - len(weights), sum(weights)
    exact = [free * weight / whole for weight in weights]
    shares = [int(share) for share in exact]
    by_rest = sorted(range(len(weights)), key=lambda number: (shares[number] - exact[number], number))
    for number in by_rest[: free - sum(shares)]:
        shares[number] += 1
    return [1 + share for share in shares]
