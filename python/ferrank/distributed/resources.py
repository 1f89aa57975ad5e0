"""What a task may use of the process that it runs in: threads, memory, a folder for temporary files.

Several tasks may run in a process at a time, and several processes on a machine. Those that hold much, which
grow trees or look for neighbours, take turns in a process, with all of its threads; so a limit to the memory
of each process is one to each of these tasks.
"""

import multiprocessing
import os
from dataclasses import dataclass
from typing import Any

from ferrank import _core

__all__ = ["BESIDE_FRACTION", "SPILL_FRACTION", "Room", "TaskResources"]

BESIDE_FRACTION = 0.9
"""Share of a worker's limit up to which a task goes that has the worker's own partitions beside it."""
SPILL_FRACTION = 0.7
"""Share of a worker's memory limit above which dask writes data to disk, unless configured otherwise."""
PAUSE_FRACTION = 0.8
"""Share of a worker's memory limit above which dask gives it no new tasks, unless configured otherwise."""


@dataclass(frozen=True)
class Room:
    """The memory of a worker."""

    limit: int
    """bytes that it may hold"""
    held: int
    """bytes that it holds, and dask cannot spill"""
    spillable: int = 0
    """bytes that it holds, and dask can spill"""

    def left(self, share: float) -> int:
        """Return the bytes that are left until it holds ``share`` of its limit."""
        return int(share * self.limit) - self.held


@dataclass(frozen=True)
class TaskResources:
    """What a task may use."""

    threads: int
    """with a local scheduler of threads; other tasks have those of their process"""
    memory: int | None
    """bytes that a process may hold; None leaves it to the process"""
    temp_dir: str | None
    """folder; None is a worker's own, or the system's temporary one"""
    processes: int
    """that work on one machine"""

    def n_threads(self) -> int:
        """Return the number of threads for a task."""
        worker = _worker()
        if worker is not None:
            return int(worker.state.nthreads)
        return 1 if multiprocessing.parent_process() is not None else self.threads

    def limit(self) -> int | None:
        """Return the most bytes that the process may hold, so that dask need not spill a worker's data."""
        worker = _worker()
        most = None if worker is None else worker.memory_manager.memory_limit
        if not most:
            return _core.default_memory(self.processes) if self.memory is None else self.memory
        share = int(most * (worker.memory_manager.memory_spill_fraction or SPILL_FRACTION))
        return share if self.memory is None else min(share, self.memory)

    def limit_beside(self) -> int | None:
        """Return the most bytes that the process may hold while dask spills the partitions it keeps there."""
        worker = _worker()
        most = None if worker is None else worker.memory_manager.memory_limit
        if not most:
            return self.limit()
        beside = int(most * BESIDE_FRACTION)
        return beside if self.memory is None else min(beside, self.memory)

    def limit_amid(self) -> int | None:
        """Return the most bytes that the process may hold if half of what is left is for other tasks.

        Dask spills the data that it keeps there when it has to. A limit that was set is one to the process.
        """
        worker, limit = _worker(), self.limit_beside()
        if worker is None or limit is None or self.memory is not None:
            return limit
        held = int(worker.monitor.get_process_memory())
        manager = worker.memory_manager
        paused = int((manager.memory_limit or limit) * (manager.memory_pause_fraction or PAUSE_FRACTION))
        spilled = getattr(worker.data, "spilled_total", None)
        kept = int(worker.state.nbytes) - (0 if spilled is None else int(spilled.memory))
        left = min(paused, limit) - max(held - kept, 0)
        return held + max(left, 0) // 2

    def folder(self) -> str | None:
        """Return the folder for temporary files; a worker has one of its own."""
        worker = _worker()
        return (
            self.temp_dir
            if self.temp_dir is not None or worker is None
            else os.fspath(worker.local_directory)
        )


def _worker() -> Any:
    """Return the worker of a cluster that runs this task, or None where a local scheduler does."""
    try:
        from distributed import get_worker

        return get_worker()
    except (ImportError, ValueError):
        return None
