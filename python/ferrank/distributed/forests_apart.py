"""Forests over partitions that keep their codes: what partitions do, and what workers do that grow trees.

Dask's dashboard shows the tasks under the names of these functions.
"""

import contextvars
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from mmap import mmap
from typing import Any, TypeVar

import dask
import numpy as np
from numpy.typing import NDArray

from ferrank import _core
from ferrank.distributed import tasks
from ferrank.distributed.file_bytes import FileBytes
from ferrank.distributed.process import (
    Asked,
    Floats,
    StoppedError,
    finish_of,
    know,
    source_of,
    to_bytes,
)
from ferrank.distributed.resources import TaskResources
from ferrank.distributed.scheduler import at_either, beside, connected, name_of
from ferrank.distributed.tables import Batch, unchanged

__all__ = [
    "Names",
    "Shared",
    "add_sums",
    "add_sums_here",
    "answer",
    "code",
    "collect",
    "grow_apart",
    "known",
    "piece",
    "rows",
    "rows_here",
    "shadow",
    "spread",
    "sums",
    "sums_here",
]

_FAN = 8
"""Sums that are added up by one task."""
_AHEAD = 4
"""Partitions whose rows are on their way at a time. An idle worker takes over what waits for others."""

Sums = TypeVar("Sums", Floats, NDArray[np.int64])

PartCodes = tuple[mmap, mmap | None, int]
"""The codes of a partition, the codes of its shadows if it has some, and the number of its first row."""

Part = tuple[FileBytes, FileBytes | None, int]
"""The codes of a partition, the codes of its shadows if it has some, and its number."""

SumsOfSome = tuple[Floats | None, list[int]]
"""Sums over the rows of some partitions, and the numbers of these partitions."""


@dataclass(frozen=True)
class Shared:
    """What all tasks on partitions that keep their codes share.

    Each worker holds a copy under a name of its own: dask drops what several workers hold under one name as
    soon as no task is at work with it, and would send it again for the next.
    """

    token: str
    asked: Asked
    resources: TaskResources
    firsts: Sequence[int]
    """the number of the first row of each partition"""
    whole: bytes
    """profile of all rows"""
    annotations: dict[str, Any]
    """of the tasks, as in :func:`dask.annotate`"""
    answers: Sequence[bytes]
    """targets and weights of each partition"""

    def __sizeof__(self) -> int:
        return len(self.whole) + sum(len(part) for part in self.answers)

    def apart(self) -> Any:
        """Return what this process knows of the data set."""
        schema, roles, settings = self.asked
        source = source_of(schema.empty_table(), "the data set")
        of = _core.TestsApart.of if settings["ranker"] == "association" else _core.Apart.of
        return know(
            self.token,
            "all rows",
            lambda: of(source, roles, settings, self.whole, list(self.answers)),
        )

    def finish(self, run: _core.Run) -> Any:
        """Return the outcome of ``run``."""
        return finish_of(run, self.token)


@dataclass(frozen=True)
class Names:
    """The names that the cluster has for what trees grow over.

    In an object dask does not take them for what they name.
    """

    shared: Mapping[str, str]
    """of the copy of each worker, by address"""
    codes: Sequence[str]
    """of each partition"""
    shadows: Sequence[str]
    """of each partition, if there are some"""


@dataclass(frozen=True)
class Places:
    """The names that the cluster has for the codes of some partitions, which a task looks up on its worker.

    If the codes were arguments of the task, dask would move them to any worker that it gives the task to. It
    takes codes for small, because they are in files: on 16M rows of 100 features, workers of 900 MB then
    held up to 832 MiB, and otherwise 500.
    """

    codes: Sequence[str]
    shadows: Sequence[str | None]
    numbers: Sequence[int]

    def here(self) -> Iterator[Part]:
        """Return the partitions that this worker holds."""
        from distributed import get_worker

        data = get_worker().data
        for codes, shadows, number in zip(self.codes, self.shadows, self.numbers, strict=True):
            part = data.get(codes), None if shadows is None else data.get(shadows), number
            if part[0] is not None and (part[1] is None) == (shadows is None):
                yield part


@unchanged
def code(
    batch: Batch, token: str, asked: Asked, whole: bytes, alone: int | None, resources: TaskResources
) -> FileBytes:
    """Return the codes of partitions, in a file of the worker."""
    return FileBytes(tasks.codes_of(batch, token, asked, whole, alone).data, resources.folder())


def answer(codes: FileBytes) -> bytes:
    """Return the targets and weights of a partition without its codes."""
    return _core.Coder.answers(codes.map())


def known(
    number: int,
    token: str,
    asked: Asked,
    resources: TaskResources,
    firsts: Sequence[int],
    whole: bytes,
    annotations: dict[str, Any],
    *answers: bytes,
) -> Shared:
    """Return copy ``number`` of what all tasks share."""
    return Shared(token, asked, resources, firsts, whole, annotations, answers)


def sums(shared: Shared, codes: FileBytes, shadows: FileBytes | None, number: int, request: bytes) -> Floats:
    """Return the sums of the open nodes of some trees, over the rows of a partition."""
    part = _part_codes(shared, codes, shadows, number)
    found: Floats = shared.finish(shared.apart().sums(part, request, shared.resources.n_threads()))
    return found


def sums_here(shared: Shared, places: Places, request: bytes) -> SumsOfSome:
    """Add up the sums of the partitions of ``places`` that this worker holds, and list these partitions."""
    total, numbers = None, []
    for part in places.here():
        found = sums(shared, *part, request)
        if total is None:
            total = found
        else:
            total += found
        numbers.append(part[-1])
    return total, numbers


def add_sums_here(*parts: SumsOfSome) -> SumsOfSome:
    """Return the sums of all parts; they are exact, so that any order gives the same bits."""
    totals = [total for total, _ in parts if total is not None]
    return add_sums(*totals) if totals else None, [number for _, numbers in parts for number in numbers]


def add_sums(*parts: Sums) -> Sums:
    """Return the sums of all parts; they are exact, so that any order gives the same bits."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def collect(
    shared: Shared, codes: FileBytes, shadows: FileBytes | None, number: int, request: bytes
) -> list[NDArray[np.uint8]]:
    """Return the rows of a partition that reach each of some nodes, as codes.

    Dask moves arrays without a copy, which bytes have where they arrive: 0.9 to 0.95 times the CPU time.
    """
    part = _part_codes(shared, codes, shadows, number)
    found = shared.apart().collect(part, request, shared.resources.n_threads())
    buckets: list[NDArray[np.uint8]] = shared.finish(found)
    return buckets


def piece(pieces: list[bytes], number: int) -> bytes:
    """Return one of the pieces, such as the codes for one of the partitions."""
    return pieces[number]


def rows(
    shared: Shared, codes: FileBytes, shadows: FileBytes | None, number: int, request: bytes
) -> NDArray[np.uint8]:
    """Return what is asked for of the rows of a partition, such as the codes of those out of a bag."""
    part = _part_codes(shared, codes, shadows, number)
    found: NDArray[np.uint8] = shared.finish(shared.apart().rows(part, request, shared.resources.n_threads()))
    return found


def rows_here(shared: Shared, places: Places, request: bytes) -> dict[int, NDArray[np.uint8]]:
    """Return what is asked for of the rows of each partition of ``places`` that this worker holds."""
    return {part[-1]: rows(shared, *part, request) for part in places.here()}


def spread(shared: Shared, codes: FileBytes, number: int, tree: int) -> list[bytes]:
    """Return, for each partition, the codes that its shadows have from rows of this one.

    ``tree``: the first that sees these shadows.
    """
    part = _part_codes(shared, codes, None, number)
    found = shared.apart().spread(part, tree, list(shared.firsts), number, shared.resources.n_threads())
    pieces: list[bytes] = shared.finish(found)
    return pieces


def shadow(shared: Shared, codes: FileBytes, number: int, tree: int, *pieces: bytes) -> FileBytes:
    """Return the codes of the shadows of a partition, from the pieces that all partitions spread for it."""
    part = _part_codes(shared, codes, None, number)
    found = shared.finish(shared.apart().shadows(part, tree, list(shared.firsts), number, list(pieces)))
    return FileBytes(found.data, shared.resources.folder())


def _part_codes(shared: Shared, codes: FileBytes, shadows: FileBytes | None, number: int) -> PartCodes:
    return codes.map(), None if shadows is None else shadows.map(), shared.firsts[number]


def grow_apart(shared: Shared, names: Names, keys: tuple[int, int]) -> bytes:
    """Grow the trees ``keys`` over partitions that keep their codes."""
    from distributed import get_worker, worker_client

    # What is asked of partitions takes threads that this task must not.
    with worker_client() as client:
        resources = shared.resources
        asking = _Asking(connected(client), get_worker().address, shared.annotations, names)
        try:
            run = shared.apart().accumulate(
                *keys, resources.n_threads(), resources.limit_amid(), resources.folder(), asking
            )
            return to_bytes(shared.finish(run))
        finally:
            asking.close()


class _Asking:
    """Asks the partitions on a cluster for what growth needs of them."""

    def __init__(self, client: Any, own: str, annotations: dict[str, Any], names: Names) -> None:
        """``own``: the address of the worker that asks."""
        from distributed import Future

        # What is asked for may be held by the traceback of an error that ends the run.
        self._futures: weakref.WeakValueDictionary[str, Any] = weakref.WeakValueDictionary()
        self._is_closed = False

        def future(name: str) -> Any:
            named = self._futures[name] = Future(name, client=client)
            return named

        self._client, self._own, self._annotations, self._names = client, own, annotations, names
        self._context = contextvars.copy_context()
        self._copies = {at: future(name) for at, name in names.shared.items()}
        self._codes = [future(name) for name in names.codes]
        self._shadows = [future(name) for name in names.shadows] or [None] * len(names.codes)

    def close(self) -> None:
        """Let go of all that was asked for, and ask for no more."""
        self._is_closed = True
        for future in list(self._futures.values()):
            future.release()

    def sums(self, request: bytes) -> Floats:
        """Return the sums over the rows of all partitions."""
        found = self._of_workers(sums_here, request)
        while len(found) > 1:
            groups = (found[first : first + _FAN] for first in range(0, len(found), _FAN))
            found = [self._submit(add_sums_here, *group, where="") for group in groups]
        total: Floats | None
        total, numbers = self._gather(found[0]) if found else (None, [])
        left = set(range(len(self._codes))) - set(numbers)
        for one in self._one_by_one(self._of_each(sums, request, left)):
            total = one if total is None else add_sums(total, one)
        assert total is not None
        return total

    def collect(self, request: bytes) -> Iterator[list[NDArray[np.uint8]]]:
        """Return the rows of each of some nodes, partition after partition."""
        return self._one_by_one(self._of_each(collect, request))

    def rows(self, request: bytes) -> Iterator[NDArray[np.uint8]]:
        """Return what is asked for of the rows, partition after partition."""
        return self._one_by_one(self._of_each(rows, request))

    def few_rows(self, request: bytes) -> Iterator[NDArray[np.uint8]]:
        """Return what is asked for of few rows, in the order of the partitions."""
        found: dict[int, NDArray[np.uint8]] = {}
        for of_worker in self._gather(self._of_workers(rows_here, request)):
            found |= of_worker
        left = sorted(set(range(len(self._codes))) - set(found))
        found |= zip(left, self._one_by_one(self._of_each(rows, request, left)), strict=True)
        return (found[number] for number in sorted(found))

    def _one_by_one(self, wanted: Iterable[Any]) -> Iterator[Any]:
        """Return what the futures ``wanted`` hold; only a few of them are made ahead."""
        ahead: deque[Any] = deque()
        for future in wanted:
            ahead.append(future)
            if len(ahead) == _AHEAD:
                yield self._gather(ahead.popleft())
        while ahead:
            yield self._gather(ahead.popleft())

    def _gather(self, futures: Any) -> Any:
        """Return what a future, or each of some, holds.

        Dask looks at what the worker itself holds if it is asked in the context of the task, and else has the
        worker send that to itself: 0.85 times the CPU time with two workers, and half of the bytes.
        """
        return self._context.copy().run(self._client.gather, futures)

    def _of_each(
        self, function: Callable[..., Any], request: bytes, numbers: Collection[int] | None = None
    ) -> Iterator[Any]:
        """Return a future of ``function`` for each partition, or these, to be run where its codes are."""
        for where, number in self._holders(numbers):
            part = self._codes[number], self._shadows[number], number
            yield self._submit(function, self._copy(where), *part, request, where=where)

    def _of_workers(self, function: Callable[..., Any], request: bytes) -> list[Any]:
        """Return futures of ``function``, one for all partitions of each worker.

        Some partitions may be missing from the result, if dask runs the task on another worker, or if a
        worker is lost. With four workers this takes 0.85 to 0.95 times the CPU time of a task for each of 16
        partitions.
        """
        of_workers: dict[str, list[int]] = {}
        for where, number in self._holders(None):
            if where:
                of_workers.setdefault(where, []).append(number)
        futures = []
        for where, numbers in of_workers.items():
            codes = [self._names.codes[number] for number in numbers]
            shadows = [self._names.shadows[number] if self._names.shadows else None for number in numbers]
            places = Places(codes, shadows, numbers)
            futures.append(self._submit(function, self._copy(where), places, request, where=where))
        return futures

    def _copy(self, where: str) -> Any:
        """Return the copy of what tasks share that is for the worker ``where``, or else any."""
        return beside(where, self._copies)

    def _holders(self, numbers: Collection[int] | None) -> Iterator[tuple[str, int]]:
        """Return the worker that has the codes of each partition, or these, or an empty string.

        Asked anew each time: after the loss of a worker its codes are elsewhere.
        """
        if numbers is not None and not numbers:
            return
        holders = self._client.who_has(self._codes)
        for number in range(len(self._codes)) if numbers is None else sorted(numbers):
            yield next(iter(holders.get(self._codes[number].key, ())), ""), number

    def _submit(self, function: Callable[..., Any], *arguments: Any, where: str) -> Any:
        """Return a future of ``function``, for the worker ``where`` or, if that is lost, this one.

        A task that goes to another takes codes along, which dask believes to be small: they are in files.
        """
        # The engine asks from a thread of its own, which has not the context of the task.
        with dask.annotate(**self._annotations | at_either(where, self._own)):
            key = f"{name_of(function)}-{uuid.uuid4().hex}"
            future = self._client.submit(function, *arguments, key=key)
        self._futures[key] = future
        if self._is_closed:
            future.release()
            raise StoppedError
        return future
