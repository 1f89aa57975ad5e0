"""What a call costs: CPU seconds, wall seconds, memory."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RUNS = 3
ENOUGH = 2.0  # seconds of runs


@dataclass(frozen=True)
class Cost:
    cpu: float  # seconds, all threads of the process
    wall: float  # seconds


def cost(call: Callable[[], object]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    call()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def fastest(*calls: Callable[[], object], long: float = math.inf) -> list[Cost]:
    """The least that each call costs, in turn with the others: what else the machine does slows down all.

    Of `RUNS`, of more while they are short, of one where one takes `long` seconds.
    """
    turns: list[list[Cost]] = []
    longest = spent = 0.0
    while not turns or ((len(turns) < RUNS or spent < ENOUGH * len(calls)) and longest < long):
        turns.append([cost(call) for call in calls])
        longest = max(longest, *(run.wall for run in turns[-1]))
        spent += sum(run.wall for run in turns[-1])
    return [
        Cost(min(run.cpu for run in runs), min(run.wall for run in runs)) for runs in zip(*turns, strict=True)
    ]


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
