"""The tasks of a ranking, in three rounds: rows are counted, then profiled, then contribute."""

import itertools
import logging
import math
import os
import time
import uuid
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import dask

from ferrank import _core
from ferrank.data.classes import roles_of
from ferrank.distributed import association_apart, forests_apart, process, relief_apart, tables, tasks
from ferrank.distributed.drift import drift
from ferrank.distributed.ledger import Ledger
from ferrank.distributed.partitions import Partitions
from ferrank.distributed.resources import BESIDE_FRACTION, SPILL_FRACTION, TaskResources
from ferrank.distributed.scheduler import ClusterScheduler, Scheduler, TaskError, at_worker, beside, task
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
_HELD = 2
"""Partitions are held if the free memory of all workers is at least this many times their size."""
_DRIFTED_NAMED = 3


def rank(
    partitions: Partitions,
    settings: dict[str, Any],
    roles: dict[str, Any],
    resources: tuple[int, int | None, str | os.PathLike[str] | None],
    scope: Literal["global", "partition"],
    scheduler: Scheduler,
    progress: Progress | None = None,
    resume: str | os.PathLike[str] | None = None,
) -> Ranking:
    """Rank the features of a collection; ``resume``: a folder that keeps what was contributed.

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
    of_tasks = TaskResources(threads, memory, temp_dir, scheduler.processes)
    run = _Run(partitions, settings, of_tasks, scheduler, progress)
    try:
        run.profile(roles | (partitions.roles or {}), compare=scope == "partition")
        run.resume(resume)
        data = run.whole() if scope == "global" else run.by_partition()
    except FerrankError as error:
        run.release(stop=True)
        # The calls of the scheduler and of the worker say nothing about the data.
        raise error.with_traceback(None) from error.__cause__
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
    _firsts: list[int]
    """number of the first partition of each batch"""
    _checksums: list[tuple[int, ...]]
    """of the partitions of each batch, as they were counted"""
    _where: list[str]
    """worker that holds each batch, or an empty string; without it, dask may have a batch of 60 MB moved to
    the worker that has a small profile: a tenth of all that moves"""
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
        resources: TaskResources,
        scheduler: Scheduler,
        progress: Progress | None,
    ) -> None:
        self._partitions, self._settings, self._resources = partitions, settings, resources
        self._scheduler, self._progress = scheduler, progress
        self._token = f"ferrank-{uuid.uuid4().hex}"
        self._ledger: Ledger | None = None
        self._are_held = False

    def profile(self, roles: dict[str, Any], *, compare: bool) -> None:
        """Count the rows, and learn what must be known of them; ``compare``: warn if partitions differ."""
        if not self._partitions.parts:
            raise DataError("data: the collection has no partitions")
        self._batches = self._batched(roles, alone=compare)
        n_batches, made_before = len(self._batches), None
        if self._are_held:
            made_before = n_batches, 2 * n_batches
            report = self._report("counting", n_batches, (0, 2 * n_batches))
            self._where = self._scheduler.holders(self._batches, report)
        counts = self._compute(self._counts(roles, None), "counting", within=made_before)
        in_order = roles["target_last"] is not None
        schemas = [count.schema for of_batch in counts for count in of_batch for _ in count.checksums]
        schema = columns_of(schemas, in_order=in_order)
        if roles["task"] is None:
            roles |= roles_of(count.integer_targets for of_batch in counts for count in of_batch)
        self._asked = (schema, roles, self._settings)
        self._kept = _kept(counts)
        self._checksums = [
            tuple(checksum for count in of_batch for checksum in count.checksums) for of_batch in counts
        ]
        self._size = sum(count.size for of_batch in counts for count in of_batch)
        if not self._can_hold(self._size):
            # Those that were sized are smaller than the others.
            self._let_go_of_partitions()
        full = _full(self._kept)
        # To compare them takes larger samples of each.
        profiles = self._profiles(self._kept, None, sampled_apart=compare)
        whole = _merged(tasks.merge_profiles, profiles)
        n_tests = len(full) * len(schema.names)
        compared = [task(drift, profiles[number], whole, n_tests) for number in full if compare]
        derived = task(tasks.derive_cuts, whole)
        self._profile_of_all, described, *compared = self._persist(
            [derived, task(tasks.describe, derived, self._asked), *compared], "profiling", profiles
        )
        [self._known, *found] = self._compute([described, *compared], "profiling")
        _warn_of_drift(dict(zip(full, found, strict=False)))

    def resume(self, folder: str | os.PathLike[str] | None) -> None:
        """Go on from the contributions in a folder, and add to them."""
        if folder is None:
            return
        schema, roles, settings = self._asked
        checksums = [checksum for of_batch in self._checksums for checksum in of_batch]
        self._ledger = Ledger(
            folder,
            [str(schema), roles, settings, checksums],
            n_workers=self._scheduler.n_workers,
        )

    def _share(self, keys: tuple[int, int], function: Callable[..., bytes], *arguments: Any) -> Any:
        """Return the task of the contributions ``keys``, which ``function`` makes if they are not kept."""
        if self._ledger is None:
            return task(function, *arguments)
        return self._ledger.share(keys, function, *arguments)

    def _batched(self, roles: dict[str, Any], *, alone: bool) -> list[Any]:
        """Return partitions as they are worked on together: many small ones, or each ``alone``.

        Partitions are read once and held if workers have the memory.
        """
        n_partitions, together = len(self._partitions.parts), 1
        are_held = False
        if not alone and (self._scheduler.rooms or n_partitions > _FEW):
            n_sized = _SIZED if n_partitions > _FEW else 1
            self._firsts = [number * n_partitions // n_sized for number in range(n_sized)]
            # Held, so that it need not be made again if all are.
            self._batches = self._scheduler.hold(self._partitions.batches([(n, n + 1) for n in self._firsts]))
            self._where = [""] * n_sized
            counts = self._compute(self._counts(roles, None), "counting")
            sizes = [count.size for of_batch in counts for count in of_batch]
            size = n_partitions * sum(sizes) // n_sized
            are_held = self._can_hold(size)
            if are_held:
                _log.info("memory plan: partitions take about %d MiB, and are read once", size >> 20)
            if n_partitions > _FEW:
                together = max(1, min(_BATCH_BYTES // max(*sizes, 1), n_partitions // self._n_tasks()))
                _log.info("%d partitions are worked on together", together)
            if not are_held or together > 1:
                self._scheduler.let_go(self._batches)
        self._firsts = list(range(0, n_partitions, together))
        self._are_held, self._where = are_held, [""] * len(self._firsts)
        return self._scheduler.hold(self._made()) if are_held else self._made()

    def _made(self) -> list[Any]:
        """Return the batches as they are made of their partitions."""
        ends = [*self._firsts[1:], len(self._partitions.parts)]
        spans = list(zip(self._firsts, ends, strict=True))
        # In this process a task for each partition costs no more.
        at_once = len(spans) < len(self._partitions.parts) and isinstance(self._scheduler, ClusterScheduler)
        return self._partitions.batches(spans, at_once=at_once)

    def _can_hold(self, size: int) -> bool:
        """Return whether workers may hold partitions of ``size`` bytes, beside what they hold and need."""
        rooms, own = self._scheduler.rooms, size if self._are_held else 0
        left = sum(room.left(SPILL_FRACTION) - room.spillable for room in rooms) + own
        return bool(rooms) and _HELD * size <= left

    def _let_go_of_partitions(self) -> None:
        """Let go of the partitions that are held; what reads them from now on makes them anew."""
        if self._are_held:
            self._scheduler.let_go(self._batches)
            self._batches, self._are_held = self._made(), False
            self._where = [""] * len(self._batches)

    def whole(self) -> bytes:
        """Return the contributions that all rows together make."""
        settings = self._asked[2]
        if settings["ranker"] == "association":
            return self._test_apart()
        reason = f" ({self._known.obstacle})" if self._known.obstacle else ""
        if settings["ranker"] == "relief":
            if not self._fits(self._size):
                if self._known.obstacle is None:
                    if self._known.ranked or self._known.of_all:
                        ranks = _RANK_BYTES * sum(self._kept)
                        self._check_room(ranks, "Relief: the ranks of a column of all rows")
                    return self._gather(self._search_apart())
                self._check_room(self._size, f"Relief: all rows{reason}")
            # All rows, for those that take no part are counted, too.
            every = range(len(self._batches))
            parts = self._read(every, lambda _, *read: task(tasks.pack, *read, self._asked))
            return self._gather(self._search(parts))
        if not self._fits(self._known.in_memory):
            if self._known.obstacle is None:
                self._check_room(
                    self._known.over_parts,
                    "forests: the targets of all rows, and what scores need of rows out of a bag,",
                )
                return self._grow_apart()
            self._check_room(self._known.in_memory, f"forests: the codes of all rows{reason}")
        if settings["per_target"]:
            return self._grow_per_target(settings["n_estimators"])
        codes = self._codes(self._kept, self._profile_of_all, None)
        if self._are_held:
            codes = self._persist(codes, "coding", codes)
            self._let_go_of_partitions()
        return self._gather(self._grow(codes, (0, self._known.n_keys), None))

    def by_partition(self) -> bytes:
        """Return the contributions that each partition makes of its own rows."""
        settings = self._asked[2]
        full = _full(self._kept)
        alone = settings["ranker"] == "forest" and settings["per_target"]
        n_ensembles = len(self._known.lacking) if alone else 1
        n_keys = self._known.n_keys // n_ensembles
        if n_keys < len(full):
            what = "trees" if settings["ranker"] == "forest" else "blocks of queries"
            raise SettingError(
                f"scope: {n_keys} {what} for {len(full)} partitions; use as many at least, or fewer parts"
            )
        ends = [0, *itertools.accumulate(_apportioned(n_keys, [self._kept[number] for number in full]))]
        of_number = dict(zip(full, itertools.pairwise(ends), strict=True))

        def contribute(number: int, *read: Any) -> Any:
            first, end = of_number[number]
            spans = [(target * n_keys + first, target * n_keys + end) for target in range(n_ensembles)]
            args = (self._token, self._asked, self._profile_of_all, spans, self._resources)
            return self._share((spans[0][0], spans[-1][1]), tasks.contribute, *read, *args)

        return self._gather(self._read(full, contribute))

    def release(self, *, stop: bool) -> None:
        """Let go of what workers hold, and with ``stop`` end what they do."""
        self._scheduler.close(self._token, stop=stop)

    def _fits(self, size: int) -> bool:
        """Whether any worker may hold ``size`` bytes, beside what it holds, so that dask need not spill."""
        return all(size <= room.left(SPILL_FRACTION) for room in self._scheduler.rooms)

    def _check_room(self, size: int, what: str) -> None:
        """Raise an error if a worker of a cluster may not hold ``what``, which takes ``size`` bytes.

        Dask spills the partitions that it keeps there, if it has to.
        """
        for room in self._scheduler.rooms:
            if size > room.left(BESIDE_FRACTION):
                least = (size + room.held) / BESIDE_FRACTION
                raise ResourceError(
                    f"memory: {what} take {-(-size >> 20)} MiB on each worker, beside {room.held >> 20} MiB "
                    f"that it holds; one may hold {room.limit >> 20} MiB: use workers of "
                    f"{math.ceil(least / 2**20)} MiB or more, or scope='partition'"
                )

    def _read(self, numbers: Iterable[int], work: Callable[[int, Any, Any], Any]) -> list[Any]:
        """Return what ``work`` makes of each batch, by its number, as it is read again, and its checksums.

        Tasks go to the worker that holds the batch.
        """
        made = []
        for number in numbers:
            with dask.annotate(**at_worker(self._where[number])):
                made.append(work(number, self._batches[number], self._checksums[number]))
        return made

    def _in_turn(self, numbers: Iterable[int], work: Callable[[int, Any], Any]) -> list[Any]:
        """Return what ``work`` makes of each batch, by its number and the task that it comes after.

        A thread of the worker that holds batches has one of them to work on at a time. Dask would have idle
        workers take over what waits for it, with 60 MB that move.
        """
        threads, turns = self._scheduler.threads, Counter[str]()
        made, last = [], dict[tuple[str, int], Any]()
        for number in numbers:
            at = self._where[number]
            turn = at, turns[at] % threads.get(at, 1)
            turns[at] += 1
            with dask.annotate(**at_worker(at)):
                made.append(work(number, last.get(turn)))
            if at:
                last[turn] = made[-1]
        return made

    def _counts(self, roles: dict[str, Any], alone: int | None) -> list[Any]:
        def count(number: int, after: Any) -> Any:
            return task(tasks.count, self._batches[number], roles, self._settings, alone, after=after)

        return self._in_turn(range(len(self._batches)), count)

    def _profiles(self, kept: Sequence[int], alone: int | None, *, sampled_apart: bool = False) -> list[Any]:
        *firsts, end = [0, *itertools.accumulate(kept)]
        of_rows = None if sampled_apart else end

        def profile(number: int, after: Any) -> Any:
            read = self._batches[number], self._checksums[number]
            return task(tasks.profile, *read, self._asked, firsts[number], of_rows, alone, after=after)

        return self._in_turn(range(len(kept)), profile)

    def _codes(self, kept: Sequence[int], profile: Any, alone: int | None) -> list[Any]:
        return self._coded(tasks.code, kept, profile, alone)

    def _coded(self, function: Callable[..., Any], kept: Sequence[int], *fixed: Any) -> list[Any]:
        """Return what ``function`` makes of the codes of each batch of which rows take part."""

        def code(number: int, after: Any) -> Any:
            read = self._batches[number], self._checksums[number]
            return task(function, *read, self._token, self._asked, *fixed, after=after)

        return self._in_turn(_full(kept), code)

    def _grow(self, parts: list[Any], keys: tuple[int, int], alone: Any) -> list[Any]:
        spans = _spans(*keys, self._n_tasks())
        fixed = (self._token, self._asked, self._profile_of_all)
        return [self._share(span, tasks.grow, *fixed, span, self._resources, alone, *parts) for span in spans]

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
            counts = self._counts(self._asked[1], target)
            kept = _kept(self._compute(counts, "counting"))
            profiles = self._profiles(kept, target)
            whole = task(tasks.derive_cuts, _merged(tasks.merge_profiles, profiles))
            [own] = self._persist([whole], "profiling", profiles)
            gathered.append(self._gather(self._grow(self._codes(kept, own, target), keys, (target, own))))
        if shares:
            gathered.append(self._gather(shares))
        return tasks.merge_accumulators(*gathered)

    def _search(self, parts: list[Any]) -> list[Any]:
        fixed = (self._token, self._asked, self._profile_of_all)
        return [
            self._share(span, tasks.search, *fixed, span, self._resources, *parts)
            for span in _spans(0, self._known.n_keys, self._n_tasks())
        ]

    def _grow_apart(self) -> bytes:
        """Grow trees over partitions that keep their codes; those that see the same shadows in one round."""
        _log.info("memory plan: a worker would need %d MiB for all rows", self._known.in_memory >> 20)
        _log.info("memory plan: codes stay in their partitions")
        known, kept = self._persist_codes()
        n_workers = self._n_workers()
        rounds = [_spans(*keys, n_workers) for keys in self._known.rounds]
        total = sum(len(spans) for spans in rounds)
        gathered: list[bytes] = []
        done = 0
        for spans in rounds:
            shadows = self._shadows(known, kept, spans[0][0]) if self._asked[2]["shadows"] else []
            names = forests_apart.Names(
                {at: copy.key for at, copy in known.items()},
                [part.key for part in kept],
                [part.key for part in shadows],
            )
            shares = []
            for span, (at, copy) in zip(spans, itertools.cycle(known.items()), strict=False):
                with dask.annotate(**at_worker(at)):
                    shares.append(self._share(span, forests_apart.grow_apart, copy, names, span))
            gathered.append(self._gather(shares, (done, total)))
            self._scheduler.let_go(shadows)
            done += len(spans)
        return tasks.merge_accumulators(*gathered)

    def _persist_codes(self) -> tuple[dict[str, Any], list[Any]]:
        """Return what all tasks know, for each worker by its address, and the codes.

        Workers keep both as long as the run goes on.
        """
        fixed = self._profile_of_all, None, self._resources
        made = self._coded(forests_apart.code, self._kept, *fixed)
        codes = self._persist(made, "coding", made)
        self._let_go_of_partitions()
        answers = []
        for at, part in zip(self._scheduler.holders(codes), codes, strict=True):
            with dask.annotate(**at_worker(at)):
                answers.append(task(forests_apart.answer, part))
        firsts = [0, *itertools.accumulate(rows for rows in self._kept if rows)][:-1]
        # What grows trees has the resources; what it asks of partitions would wait for them without an end.
        annotations = {name: value for name, value in dask.get_annotations().items() if name != "resources"}
        shared = self._token, self._asked, self._resources, firsts, self._profile_of_all, annotations
        known, addresses = [], self._scheduler.addresses
        for number, at in enumerate(addresses):
            with dask.annotate(**at_worker(at)):
                known.append(task(forests_apart.known, number, *shared, *answers))
        return dict(zip(addresses, self._scheduler.persist(known), strict=True)), codes

    def _shadows(self, known: dict[str, Any], codes: list[Any], tree: int) -> list[Any]:
        """Return the codes of the shadows that the trees from ``tree`` on see, in each partition."""
        parts = list(zip(self._beside(codes, known), codes, strict=True))
        spreads = [
            task(forests_apart.spread, copy, part, number, tree) for number, (copy, part) in enumerate(parts)
        ]
        shadows = [
            task(
                forests_apart.shadow,
                copy,
                part,
                number,
                tree,
                *(task(forests_apart.piece, pieces, number) for pieces in spreads),
            )
            for number, (copy, part) in enumerate(parts)
        ]
        return self._scheduler.persist(shadows)

    def _beside(self, codes: list[Any], known: dict[str, Any]) -> list[Any]:
        """Return for each of the persisted ``codes`` what its worker knows."""
        return [beside(at, known) for at in self._scheduler.holders(codes)]

    def _test_apart(self) -> bytes:
        """Test features over partitions that keep their codes, some features at a time."""
        known, kept = self._persist_codes()
        any_copy = next(iter(known.values()))
        [of_features] = self._compute([task(association_apart.ranges, any_copy)], "testing")
        copies = self._beside(kept, known)
        steps, sums = [], []
        for features in of_features:
            parts = [
                task(association_apart.counts, copy, part, number, features)
                for number, (copy, part) in enumerate(zip(copies, kept, strict=True))
            ]
            steps += parts
            sums.append(_merged(forests_apart.add_sums, parts))
        totals = self._persist(sums, "testing", steps)
        given: list[int] = []
        of_model = None
        for number in itertools.count():
            [more] = self._compute(
                [task(association_apart.next_given, any_copy, number, given, of_model, *totals)], "testing"
            )
            if more is None:
                break
            given = more
            parts = [
                task(association_apart.model, copy, part, place, given)
                for place, (copy, part) in enumerate(zip(copies, kept, strict=True))
            ]
            [of_model] = self._persist([_merged(forests_apart.add_sums, parts)], "testing", parts)
        last = task(association_apart.contribution, any_copy, given, of_model, *totals)
        [data] = self._compute([last], "testing")
        return bytes(data)

    def _search_apart(self) -> list[Any]:
        """Search each partition where it is, and bring together the rows that count.

        A row that counts for a query among all rows does so within its partition, and among any rows.
        """
        n_rows, limits = sum(self._kept), self._scheduler.limits
        listed = min(self._known.n_listed, n_rows) * -(-self._size // n_rows)
        # Each search prepares a partition anew: one for each of four workers took 2.6 times the CPU time for
        # 16 million rows of 100 features.
        n_searches = max(-(-self._n_workers() // len(self._batches)), -(-_TOGETHER * listed // min(limits)))
        searches = _spans(0, self._known.n_keys, n_searches)
        _log.info(
            "memory plan: rows take %d MiB, and stay in their partitions; %d searches of each",
            self._size >> 20,
            len(searches),
        )
        # Rows that take part are held themselves.
        self._let_go_of_partitions()
        parts = self._rows()
        of_all = self._targets(parts) if self._known.of_all else None
        parts = self._ranked(parts) if self._known.ranked else parts
        fixed = (self._token, self._asked, self._profile_of_all, self._resources)
        shares = []
        for keys in searches:
            drawn = task(relief_apart.draw, self._asked, self._profile_of_all, keys)
            queries = task(relief_apart.join, *(task(relief_apart.pick, rows, drawn) for rows in parts))
            found = [task(relief_apart.nearest, *fixed, queries, rows) for rows in parts]
            while len(found) > _FAN:
                together = (found[first : first + _FAN] for first in range(0, len(found), _FAN))
                found = [task(relief_apart.nearest, *fixed, queries, *rows) for rows in together]
            shares += [
                self._share(span, relief_apart.search_apart, *fixed, span, of_all, *found)
                for span in _spans(*keys, -(-self._n_workers() // len(searches)))
            ]
        return shares

    def _rows(self) -> list[Any]:
        """Return the rows of each partition that take part."""
        firsts = [0, *itertools.accumulate(self._kept)]

        def part(number: int, *read: Any) -> Any:
            return task(relief_apart.part, *read, self._asked, firsts[number])

        return self._read(_full(self._kept), part)

    def _targets(self, parts: list[Any]) -> Any:
        """Return the targets of all rows."""
        return task(
            relief_apart.join_targets,
            *(task(relief_apart.targets, rows, self._known.of_all) for rows in parts),
        )

    def _ranked(self, parts: list[Any]) -> list[Any]:
        """Return the partitions with ranks among all rows; some features at a time are brought together."""
        names, limits = self._known.ranked, self._scheduler.limits
        together = max(1, min(limits) // (_TOGETHER * _RANK_BYTES * sum(self._kept)))
        ends = _spans(0, len(names), max(-(-len(names) // together), len(limits)))
        groups = [names[first:end] for first, end in ends]
        of_groups = [
            [task(relief_apart.unique, rows, self._asked, group) for rows in parts] for group in groups
        ]
        ranks = [task(relief_apart.mid_ranks, *of_parts) for of_parts in of_groups]
        found = [
            [
                of_one
                for of_parts, of_all in zip(of_groups, ranks, strict=True)
                for of_one in (of_parts[number], task(forests_apart.piece, of_all, number))
            ]
            for number in range(len(parts))
        ]
        return [
            task(relief_apart.ranked, rows, self._asked, groups, *of_part)
            for rows, of_part in zip(parts, found, strict=True)
        ]

    def _n_tasks(self) -> int:
        return _TASKS_A_WORKER * max(self._n_workers(), 4)

    def _n_workers(self) -> int:
        return self._scheduler.n_workers if self._ledger is None else self._ledger.n_workers

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
        """Compute ``wanted``.

        ``steps`` are what progress counts, ``within`` the steps that were done before, and of how many; None
        if these are all.
        """
        steps = wanted if steps is None else steps
        try:
            return self._scheduler.compute(wanted, steps, self._report(phase, len(steps), within))
        except TaskError as error:
            raise self._named(error) from error.__cause__

    def _persist(self, wanted: list[Any], phase: str, steps: list[Any]) -> list[Any]:
        """Compute ``wanted`` and leave it where it is."""
        return self._scheduler.persist(wanted, steps, self._report(phase, len(steps), None))

    def _report(
        self, phase: str, n_steps: int, within: tuple[int, int] | None
    ) -> Callable[[int], None] | None:
        progress, (before, total) = self._progress, within or (0, n_steps)
        return None if progress is None else lambda done: progress(phase, before + done, total)

    def _named(self, error: TaskError) -> BaseException:
        """Return the error that names the partition which cannot be made, or what else failed."""
        cause = error.__cause__ or error
        if type(cause).__name__ == "KilledWorker":
            return ResourceError(
                f"client: workers died while they worked on this ranking, again and again ({cause}); most "
                "often they had too little memory: use larger workers, or fewer threads in each"
            )
        failed = self._scheduler.first_failed(self._batches)
        if failed is None:
            return cause
        number = self._firsts[failed]
        parts = self._partitions.parts[number : [*self._firsts, len(self._partitions.parts)][failed + 1]]
        if len(parts) > 1:
            number += self._scheduler.first_failed([task(tables.touch, *part) for part in parts]) or 0
        return DataError(f"partition {number}: {type(cause).__name__}: {cause}")


def _kept(counts: Sequence[Sequence[tasks.Count]]) -> list[int]:
    """Return how many rows of each batch take part."""
    return [sum(count.kept for count in of_batch) for of_batch in counts]


def _full(kept: Sequence[int]) -> list[int]:
    """Return the numbers of the batches of which rows take part."""
    return [number for number, rows in enumerate(kept) if rows]


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


def _merged(merge: Callable[..., Any], parts: list[Any]) -> Any:
    """Return the tasks that merge ``parts`` in a tree."""
    while len(parts) > 1:
        parts = [task(merge, *parts[first : first + _FAN]) for first in range(0, len(parts), _FAN)]
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
