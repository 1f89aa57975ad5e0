"""Rankings on a cluster whose workers are killed, at random moments of each phase.

    python tests/kills.py --kills 4

prints, for each kind of task, in how many rankings a worker was killed while it worked on one, and how many
of these had the bits of a run in one process; the others say what error they ended with.
"""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import random
import signal
import threading
import time
from typing import Any

import dask
import numpy as np
import pandas as pd
import sklearn
from distributed import Client, LocalCluster
from distributed.diagnostics.plugin import SchedulerPlugin

import ferrank as fr
from ferrank.distributed import plan

RANKERS: dict[str, Any] = {
    "forest": fr.ForestRanker(n_estimators=4, scores=("genie3", "permutation", "mdi_oob")),
    # Its nodes do not fit into what it may hold.
    "large": fr.ForestRanker(n_estimators=2, memory_limit="280MB"),
    "shadows": fr.ForestRanker(
        n_estimators=200, shadows=True, max_depth=2, scores=("permutation",), standard_errors=False
    ),
    "relief": fr.ReliefRanker(n_iterations=60, scaling="rank", missing="informative", target_draws=20),
}
PHASES = {
    "forest": {
        "profile": "profile",
        "codes": "code",
        "subtrees": "collect",
        "out-of-bag": "rows",
        "few rows": "rows-here",
        "growing": "grow-apart",
    },
    "large": {"tops": "sums-here"},
    "shadows": {"exchange": "shadow"},
    "relief": {
        "profile": "profile",
        "rows": "part",
        "ranks": "unique",
        "lists": "nearest",
        "sums": "search-apart",
    },
}
"""What tasks of a phase are called, by ranker."""
ROWS = {"large": 400_000}
"""Of a partition, if these are not 200."""


def rows(number: int, n_rows: int) -> pd.DataFrame:
    rng = np.random.default_rng(number)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 5)), columns=list("abcde"))
    return frame.assign(y=frame["a"] + frame["b"] * frame["c"])


class Killer(SchedulerPlugin):
    """Kills the worker that works on a task of some name, at a random moment from then on."""

    def __init__(self, cluster: Any, name: str, pids: dict[str, int], rng: random.Random) -> None:
        self._scheduler, self._name, self._pids = cluster.scheduler, name, pids
        # Some of these tasks may be done before.
        self._left, self._delay = rng.randrange(3), rng.random() * 0.05
        self.killed = False
        self._timer: threading.Timer | None = None

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        task = self._scheduler.tasks.get(key)
        if finish != "processing" or self.killed or task is None or task.prefix.name != self._name:
            return
        pid = self._pids.get(task.processing_on.address) if task.processing_on else None
        self._left -= 1
        if self._left < 0 and pid is not None:
            self.killed = True
            self._timer = threading.Timer(self._delay, kill, [pid])
            self._timer.start()

    def join(self) -> None:
        """Wait until the worker is killed, if one is to be."""
        if self._timer is not None:
            self._timer.join()


def kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def same(one: fr.Ranking, other: fr.Ranking) -> bool:
    pairs = zip(one.scores.values(), other.scores.values(), strict=True)
    return all(
        np.array_equal(a.importance, b.importance)
        and np.array_equal(a.monte_carlo_error, b.monte_carlo_error, equal_nan=True)
        for a, b in pairs
    )


def ranked_while_killed(
    cluster: Any, client: Any, ranker: str, task: str, whole: fr.Ranking, seed: int
) -> tuple[bool, str]:
    """Return whether a worker was killed, and "same", "other" or the error that the ranking ended with."""
    # The one that was killed before may still be starting.
    client.wait_for_workers(max(1, len(cluster.worker_spec) - 1), timeout="5 minutes")
    make = dask.delayed(rows, pure=True)
    parts = [make(number, ROWS.get(ranker, 200)) for number in range(4)]
    killer = Killer(cluster, f"ferrank-{task}", client.run(os.getpid, on_error="ignore"), random.Random(seed))
    cluster.scheduler.add_plugin(killer, name="killer")
    try:
        found = fr.rank(parts, "y", ranker=RANKERS[ranker], client=client)
        outcome = "same" if same(found, whole) else "other"
    except fr.FerrankError as error:
        outcome = str(error)
    finally:
        cluster.scheduler.remove_plugin("killer")
        killer.join()
    return killer.killed, outcome


def replace_workers() -> None:
    """Have workers start fast in the place of those that were killed, and be waited for on a busy machine."""
    dask.config.set(
        {
            "distributed.worker.multiprocessing-method": "forkserver",
            "distributed.deploy.lost-worker-timeout": "10 minutes",
        }
    )


def keep_apart() -> None:
    """Have rows and codes stay in their partitions, as if no worker could hold them."""
    plan.SPILL_FRACTION, plan._RANK_BYTES = 1e-6, 1


def whole_of(ranker: str) -> fr.Ranking:
    n_rows = ROWS.get(ranker, 200)
    # A process without a limit has the bits that those with one must have.
    whole = sklearn.clone(RANKERS[ranker]).set_params(memory_limit=None)
    return fr.rank(pd.concat([rows(number, n_rows) for number in range(4)]), "y", ranker=whole)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--kills", type=int, default=4, help="of each phase")
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--phases", nargs="+", help="of the rankers; all without it")
    parser.add_argument("--rankers", nargs="+", default=list(RANKERS), choices=list(RANKERS))
    asked = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    replace_workers()
    keep_apart()
    for ranker in asked.rankers:
        whole = whole_of(ranker)
        for phase, task in PHASES[ranker].items():
            if asked.phases and phase not in asked.phases:
                continue
            outcomes, started = [], time.monotonic()
            with (
                LocalCluster(
                    n_workers=asked.workers,
                    threads_per_worker=1,
                    memory_limit="2GB",
                    dashboard_address=None,
                    silence_logs=logging.CRITICAL,
                ) as cluster,
                Client(cluster) as client,
            ):
                for seed in range(asked.kills):
                    killed, outcome = ranked_while_killed(cluster, client, ranker, task, whole, seed)
                    outcomes += [outcome] if killed else []
            counts = f"killed {len(outcomes):>2}, same bits {outcomes.count('same'):>2}"
            line = f"{ranker:<8} {phase:<11} {counts}  {time.monotonic() - started:.0f} s"
            print(line, *sorted(set(outcomes) - {"same"}), sep="\n    ", flush=True)


if __name__ == "__main__":
    main()
