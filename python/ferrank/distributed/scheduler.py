"""The scheduler of a ranking's tasks: that of a cluster, or one of this process."""

import asyncio
import concurrent.futures
import contextvars
import inspect
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeVar

import dask
from dask.base import get_scheduler, tokenize
from dask.callbacks import Callback
from dask.system import CPU_COUNT

from ferrank.distributed import process
from ferrank.distributed.resources import Room
from ferrank.errors import FerrankError, ResourceError, SettingError

__all__ = [
    "ClusterScheduler",
    "LocalScheduler",
    "Scheduler",
    "TaskError",
    "at_either",
    "at_worker",
    "beside",
    "connected",
    "name_of",
    "on_scheduler",
    "task",
]

T = TypeVar("T")
Report = Callable[[int], None]
"""Called with the number of steps that are done."""
_POLL_SECONDS = 0.01


class TaskError(Exception):
    """A task raised its cause, which is no error of ours."""


def name_of(function: Callable[..., Any]) -> str:
    """Return what dask's dashboard calls the tasks of ``function``."""
    return "ferrank-" + function.__name__.strip("_").replace("_", "-")


def task(
    function: Callable[..., Any],
    *arguments: Any,
    known_as: Callable[..., Any] | None = None,
    after: Any = None,
) -> Any:
    """Return ``function`` of ``arguments`` as a delayed task, with the name of another function if given.

    It is done when ``after`` is, a task whose outcome is small, and the same without it.
    """
    key = f"{name_of(known_as or function)}-{tokenize(function, *arguments)}"
    if after is not None:
        function, arguments = _afterwards, (after, function, *arguments)
    return dask.delayed(function, pure=True, traverse=False)(*arguments, dask_key_name=key)


def _afterwards(_: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def at_worker(address: str) -> dict[str, Any]:
    """Return the annotations of a task for the worker at ``address``, as long as it is there."""
    return {"workers": [address], "allow_other_workers": True} if address else {}


def at_either(address: str, other: str) -> dict[str, Any]:
    """Return the annotations of a task for the worker at ``address``, or else for one other only.

    Dask has any idle worker take over a task that may go to other workers.
    """
    return {"workers": [address, other], "allow_other_workers": False} if address else {}


def beside(address: str, copies: Mapping[str, T]) -> T:
    """Return the one of ``copies`` that is for the worker at ``address``, or else any."""
    return copies.get(address, next(iter(copies.values())))


class Scheduler(ABC):
    """What computes the tasks of a ranking."""

    limits: Sequence[int] = ()
    """bytes that each worker may hold, where that is limited"""
    rooms: Sequence[Room] = ()
    """the memory of each of these workers"""
    n_workers: int = 1
    processes: int = 1
    """processes that work on one machine, as far as is known"""

    @abstractmethod
    def compute(
        self, wanted: list[Any], steps: Sequence[Any] = (), report: Report | None = None
    ) -> list[Any]:
        """Return the values of ``wanted``; ``report`` is called as ``steps`` are done."""

    @abstractmethod
    def persist(
        self, wanted: list[Any], steps: Sequence[Any] = (), report: Report | None = None
    ) -> list[Any]:
        """Compute ``wanted`` and leave the values where they are, until :meth:`close`."""

    def hold(self, wanted: list[Any]) -> list[Any]:
        """Have ``wanted`` computed, and left where they are, if that is elsewhere."""
        return wanted

    @property
    def addresses(self) -> list[str]:
        """The workers to which tasks may be assigned, or an empty string if dask assigns them."""
        return [""]

    @property
    def threads(self) -> Mapping[str, int]:
        """Threads of the workers that are known, by address."""
        return {}

    def holders(self, persisted: list[Any], report: Report | None = None) -> list[str]:
        """Return for each of what was persisted the address of a worker that has it, or an empty string.

        ``report`` is called as they are done.
        """
        return [""] * len(persisted)

    def let_go(self, persisted: list[Any]) -> None:
        """Let go of some of what was persisted, where others than the caller hold it."""
        return

    def let_go_of_all(self) -> None:
        """Let go of all that was persisted, and of tasks that failed."""
        return

    @abstractmethod
    def first_failed(self, wanted: list[Any]) -> int | None:
        """Return the place of one of ``wanted`` that raises, None if there is none."""

    @abstractmethod
    def close(self, token: str, *, stop: bool) -> None:
        """Let go of all that is held for the run ``token``, and with ``stop`` end what is done for it."""


class LocalScheduler(Scheduler):
    """Threads or processes of dask on this machine, or none."""

    def __init__(self) -> None:
        if get_scheduler() is dask.multiprocessing.get:
            self.processes = int(dask.config.get("num_workers", None) or CPU_COUNT)

    def compute(
        self, wanted: list[Any], steps: Sequence[Any] = (), report: Report | None = None
    ) -> list[Any]:
        """Return the values of ``wanted``; ``report`` is called as ``steps`` are done."""
        with _Steps(steps, report) as counted:
            return list(counted.done_by(dask.compute, wanted))

    def persist(
        self, wanted: list[Any], steps: Sequence[Any] = (), report: Report | None = None
    ) -> list[Any]:
        """Compute ``wanted`` and leave the values where they are, until :meth:`close`."""
        with _Steps(steps, report) as counted:
            return list(counted.done_by(dask.persist, wanted))

    def first_failed(self, wanted: list[Any]) -> int | None:
        """Return the place of one of ``wanted`` that raises, None if there is none."""
        for number, one in enumerate(wanted):
            try:
                dask.compute(one)
            except Exception:
                return number
        return None

    def close(self, token: str, *, stop: bool) -> None:
        """Let go of all that is held for the run ``token``, and with ``stop`` end what is done for it."""
        process.release(token, stop)


class ClusterScheduler(Scheduler):
    """The scheduler of a client of a cluster.

    What a run has asked for is released at its end, never cancelled: another run of the same client may have
    asked for the same.
    """

    def __init__(self, client: Any) -> None:
        self.client = client
        self._held: list[Any] = []
        self._waiting: asyncio.Future[Any] | None = None
        self._is_stopped = False

    @property
    def _workers(self) -> dict[str, dict[str, Any]]:
        """What is known of the workers that tasks may go to, by address."""
        workers = self._all_workers()
        if not workers:
            # One that has died is being replaced, or a cluster that adapts starts workers when there is work.
            self._wait(lambda: self.client.gather(self.client.submit(name_of, task), asynchronous=True))
            workers = self._all_workers()
        wanted = dask.get_annotations().get("workers")
        if not isinstance(wanted, list):
            return workers
        named = {address: {address, worker["name"], worker["host"]} for address, worker in workers.items()}
        return {address: worker for address, worker in workers.items() if named[address] & set(wanted)}

    def _all_workers(self) -> dict[str, dict[str, Any]]:
        from distributed import Scheduler as DaskScheduler

        # What the client knows of workers may be of some time ago, and is nothing if it is asynchronous.
        takes_number = "n_workers" in inspect.signature(DaskScheduler.identity).parameters
        number = {"n_workers": -1} if takes_number else {}
        workers: dict[str, dict[str, Any]] = self._wait(lambda: self.client.scheduler.identity(**number))[
            "workers"
        ]
        return workers

    @property
    def limits(self) -> list[int]:  # type: ignore[override]
        """Bytes that each worker may hold, where that is limited."""
        return [worker["memory_limit"] for worker in self._workers.values() if worker["memory_limit"]]

    @property
    def rooms(self) -> list[Room]:  # type: ignore[override]
        """The memory of each worker, where that is limited."""
        return [_room(worker) for worker in self._workers.values() if worker["memory_limit"]]

    @property
    def n_workers(self) -> int:  # type: ignore[override]
        """Number of workers."""
        return len(self._workers)

    @property
    def processes(self) -> int:  # type: ignore[override]
        """Processes that work on one machine, as far as is known."""
        return max(Counter(worker["host"] for worker in self._workers.values()).values(), default=1)

    def compute(
        self, wanted: list[Any], steps: Sequence[Any] = (), report: Report | None = None
    ) -> list[Any]:
        """Return the values of ``wanted``; ``report`` is called as ``steps`` are done."""
        futures = self.client.compute([*wanted, *(steps if report else ())])
        futures, of_steps = futures[: len(wanted)], futures[len(wanted) :]
        self._held += futures
        self._watch(of_steps, report, {future.key for future in futures})
        found = list(self._wait(partial(self.client.gather, futures, asynchronous=True)))
        del self._held[-len(futures) :]
        _release(futures)
        return found

    def persist(
        self, wanted: list[Any], steps: Sequence[Any] = (), report: Report | None = None
    ) -> list[Any]:
        """Compute ``wanted`` and leave the values where they are, until :meth:`close`."""
        persisted = self.client.persist([*wanted, *(steps if report else ())])
        persisted, of_steps = persisted[: len(wanted)], self.client.futures_of(persisted[len(wanted) :])
        futures = self.client.futures_of(persisted)
        self._held += futures
        self._watch(of_steps, report, {future.key for future in futures})
        return list(persisted)

    def hold(self, wanted: list[Any]) -> list[Any]:
        """Have ``wanted`` computed, and left where they are."""
        persisted = list(self.client.persist(wanted))
        self._held += self.client.futures_of(persisted)
        return persisted

    @property
    def addresses(self) -> list[str]:
        """The workers to which tasks may be assigned, or an empty string if dask assigns them."""
        return (sorted(self._workers) if _may_assign() else []) or [""]

    @property
    def threads(self) -> Mapping[str, int]:
        """Threads of the workers, by address."""
        return {address: worker["nthreads"] for address, worker in self._workers.items()}

    def holders(self, persisted: list[Any], report: Report | None = None) -> list[str]:
        """Return for each of what was persisted the address of a worker that has it, or an empty string.

        ``report`` is called as they are done.
        """
        keys = [one.key for one in persisted]
        if not _may_assign():
            return [""] * len(keys)
        self._watch(self.client.futures_of(persisted), report or (lambda done: None), set(keys))
        found = self._wait(lambda: self.client.scheduler.who_has(keys=keys))
        return [next(iter(found.get(key, ())), "") for key in keys]

    def let_go(self, persisted: list[Any]) -> None:
        """Let go of some of what was persisted."""
        futures = self.client.futures_of(persisted)
        gone = {id(future) for future in futures}
        self._held = [future for future in self._held if id(future) not in gone]
        _release(futures)

    def let_go_of_all(self) -> None:
        """Let go of all that was persisted, and of tasks that failed."""
        _release(self._held)
        self._held = []

    def first_failed(self, wanted: list[Any]) -> int | None:
        """Return the place of one of ``wanted`` that raises, None if there is none."""
        from distributed import as_completed

        futures = self.client.compute(wanted)
        try:
            failed = (
                future for future in as_completed(futures, loop=self.client.loop) if future.status == "error"
            )
            first = next(failed, None)
            return None if first is None else futures.index(first)
        finally:
            _release(futures)

    def close(self, token: str, *, stop: bool) -> None:
        """Let go of all that is held for the run ``token``, and with ``stop`` end what is done for it."""
        self.let_go_of_all()
        if self.client.status == "running":
            self.client.run(process.release, token, stop, on_error="ignore")

    def stop(self) -> None:
        """End what the thread of the run waits for; called in the client's event loop."""
        self._is_stopped = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _watch(self, steps: list[Any], report: Report | None, kept: set[Any]) -> None:
        """Report how many of ``steps`` are done, until all are or one has failed.

        They are released but for those whose keys are in ``kept``.
        """
        from distributed import as_completed

        if report is None:
            return
        report(0)
        completed, done = as_completed(steps, loop=self.client.loop), 0
        steps.clear()
        try:
            while (first := self._wait(lambda: anext(completed, None))) is not None:
                batch = [first, *completed.next_batch(block=False)]
                if any(future.status != "finished" for future in batch):
                    # Gathering what was wanted says why.
                    return
                done += len(batch)
                _release([future for future in batch if future.key not in kept])
                report(done)
        finally:
            completed.clear()

    def _wait(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the outcome of ``work``, which the client's event loop does."""

        async def guarded() -> T:
            if self._is_stopped:
                raise process.StoppedError
            self._waiting = asyncio.ensure_future(work())
            try:
                found: T = await self._waiting
            except asyncio.CancelledError:
                raise process.StoppedError from None
            return found

        try:
            found: T = self.client.sync(guarded)
        except concurrent.futures.CancelledError:
            raise ResourceError(
                "client: the scheduler has no longer the tasks of this ranking; they were cancelled, or the "
                "cluster was restarted; rank again"
            ) from None
        except (FerrankError, process.StoppedError):
            raise
        except Exception as error:
            raise TaskError from error
        return found


def on_scheduler(client: Any, work: Callable[[Scheduler], T]) -> Any:
    """Return what ``work`` does on the scheduler of ``client``, or on the one that dask would use.

    Of an asynchronous client it is a coroutine, whose work is done on a thread. In a task of a worker, others
    get the task's thread meanwhile.

    Raises
    ------
    SettingError
        ``client`` is no client.
    """
    scheduler = _scheduler_of(client)

    def run() -> T:
        try:
            return work(scheduler)
        finally:
            scheduler.let_go_of_all()

    if isinstance(scheduler, ClusterScheduler) and scheduler.client.asynchronous:
        context = contextvars.copy_context()
        return _on_thread(scheduler, partial(context.run, run))
    with _outside_pool():
        return run()


def _scheduler_of(client: Any) -> Scheduler:
    if client is None:
        client = dask.config.get("scheduler", None)
        if isinstance(client, str) and client.lower() in {"distributed", "dask.distributed"}:
            client = None
        elif client is not None and not _is_client(client):
            return LocalScheduler()
    elif not _is_client(client):
        raise SettingError(f"client: {client!r} is not a dask.distributed.Client")
    if client is not None:
        return ClusterScheduler(client)
    try:
        from distributed import get_client

        return ClusterScheduler(connected(get_client()))
    except (ImportError, ValueError):
        return LocalScheduler()


def connected(client: Any) -> Any:
    """Return the ``client`` of a worker, once it is connected.

    The tasks of a worker share a client, which the second of them gets while the first still connects it.
    What is sent meanwhile is kept back and may be overtaken by what is sent afterwards (seen in distributed
    2026.8): the scheduler then does not know what a later task needs.
    """
    while client.status in ("newly-created", "connecting") and not client.asynchronous:
        time.sleep(_POLL_SECONDS)
    return client


def _may_assign() -> bool:
    """Whether the caller of dask leaves it to us which workers tasks go to, or names them."""
    wanted = dask.get_annotations().get("workers")
    return wanted is None or isinstance(wanted, list)


def _room(worker: dict[str, Any]) -> Room:
    metrics = worker["metrics"]
    spillable = metrics.get("managed_bytes", 0)
    return Room(worker["memory_limit"], max(metrics.get("memory", 0) - spillable, 0), spillable)


def _is_client(client: Any) -> bool:
    try:
        from distributed import Client
    except ImportError:
        return False
    return isinstance(client, Client)


async def _on_thread(scheduler: ClusterScheduler, run: Callable[[], T]) -> T:
    working = asyncio.ensure_future(asyncio.to_thread(run))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        scheduler.stop()
        await asyncio.wait([working])
        if not working.cancelled():
            # Seen, so that asyncio does not log it.
            working.exception()
        raise


@contextmanager
def _outside_pool() -> Iterator[None]:
    """Leave the thread of a worker that runs this as a task to other tasks."""
    try:
        from distributed import rejoin, secede

        secede()
    except (ImportError, ValueError, AttributeError, KeyError):
        # This is no task, or one that has left already.
        yield
        return
    try:
        yield
    finally:
        rejoin()


def _release(futures: list[Any]) -> None:
    for future in futures:
        future.release()


class _Steps(Callback):  # type: ignore[misc]
    """Counts the tasks that a local scheduler has done."""

    def __init__(self, steps: Sequence[Any], report: Report | None) -> None:
        self._report, self._keys, self._done = report, {step.key for step in steps}, 0
        self._is_task = True
        super().__init__()

    def done_by(self, compute: Callable[..., Sequence[Any]], wanted: list[Any]) -> Sequence[Any]:
        """Return what ``compute`` makes of ``wanted``."""
        try:
            return compute(*wanted)
        except (FerrankError, process.StoppedError):
            raise
        except Exception as error:
            if self._is_task:
                raise TaskError from error
            raise

    def _posttask(self, key: Any, *_: Any) -> None:
        if self._report is not None and key in self._keys:
            self._done += 1
            self._is_task = False
            self._report(self._done)
            self._is_task = True
