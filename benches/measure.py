"""What a call costs: CPU seconds, wall seconds, memory."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    cpu: float  # seconds, all threads of the process
    wall: float  # seconds


def cost(call: Callable[[], object]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def anonymous_memory(process: int | str = "self") -> int:
    """Bytes that the process holds apart from file mappings; 0 if it has ended."""
    status = Path(f"/proc/{process}/status").read_text()
    for line in status.splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    if process != "self":
        return 0
    raise OSError("/proc/self/status has no RssAnon; measure memory on Linux")


def peak_growth(call: Callable[[], object]) -> int:
    """Most bytes that the process held during the call beyond what it held before."""
    before = peak = anonymous_memory()
    done = threading.Event()

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, anonymous_memory())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        done.set()
        watcher.join()
    return max(peak, anonymous_memory()) - before
