"""Rankings of data that no worker may hold: CPU time, bytes sent and memory of workers.

`python benches/cluster.py --rows 1000000 --features 50 --workers 1 2 4`. Partitions are made lazily, by
number, so that no process ever has all rows, except where one process ranks them for comparison (`--alone`).
"""

from __future__ import annotations

import argparse
import importlib
import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import dask
import dask.array as da
import numpy as np
import psutil
import pyarrow as pa
from dask.utils import parse_bytes
from distributed import Client, LocalCluster

import ferrank as fr

HEADER = (
    *("workers", "ranker", "CPU s", "of loops", "wall s"),
    *("sent, MiB", "model", "peak, MiB", "least", "client, MiB"),
)
ROW = "{:<8} {:<8} {:>8} {:>8} {:>8} {:>11} {:>10} {:>10} {:>8} {:>12}"
Result = TypeVar("Result")
BASE = 170 << 20
"""Bytes of a worker with dask, pyarrow and the engine, before it works."""
IN_BAG = 1 - math.exp(-1)
"""Share of the rows that are in a bag."""


def partition(number: int, n_rows: int, n_features: int) -> pa.Table:
    """Rows of a partition: numbers of 100 values, and a class that follows three of them."""
    rng = np.random.default_rng(number)
    X = rng.integers(0, 100, (n_features, n_rows), dtype=np.uint8).astype(np.float32)
    y = np.where(X[0] + X[1] * X[2] / 100 + 30 * rng.random(n_rows) > 90, "a", "b")
    return pa.table({f"x{i}": column for i, column in enumerate(X)} | {"y": y})


def import_all(name: str) -> None:
    """Import what a process needs, so that it is not measured; pyarrow imports pandas for a partition."""
    for module in (name, "pandas"):
        importlib.import_module(module)


def peak() -> float:
    """Return the most memory that this process has held, MiB."""
    with Path("/proc/self/status").open() as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def cpu() -> np.ndarray:
    """Return the CPU seconds of this process, and of its main thread, where the event loop of a worker runs.

    An event loop takes 2 to 3 % of a core even if nothing is to be done, and so more the longer others keep
    the cores.
    """
    process = psutil.Process()
    main = next(thread for thread in process.threads() if thread.id == process.pid)
    times = process.cpu_times()
    return np.array([times.user + times.system, main.user_time + main.system_time])


def sent() -> int:
    """Return the bytes that processes of this machine have sent to each other, or to themselves."""
    return sum(
        net.bytes_sent for name, net in psutil.net_io_counters(pernic=True).items() if name.startswith("lo")
    )


@dataclass(frozen=True)
class Model:
    """What a forest takes whose codes stay in their partitions; features of one byte, one nominal target."""

    n_rows: float
    n_features: int
    n_trees: int
    n_workers: int
    n_partitions: int
    out_of_bag: bool
    value_bytes: int = 2
    """of a target"""

    @property
    def in_bags(self) -> float:
        """Bytes of the rows of all bags, as codes with their numbers and multiplicities, which move once."""
        return self.n_trees * IN_BAG * self.n_rows * (self.n_features + 8)

    @property
    def out_of_bags(self) -> float:
        """Bytes of the rows out of the bags, which move once for each tree."""
        return self.n_trees * (1 - IN_BAG) * self.n_rows * self.n_features if self.out_of_bag else 0.0

    @property
    def moved(self) -> float:
        """Bytes between workers: a share of 1 / n_workers of the rows are where they are needed."""
        away = 1 - 1 / self.n_workers
        return (
            away * (self.in_bags + self.out_of_bags) + (self.n_workers - 1) * self.n_rows * self.value_bytes
        )

    @property
    def sums(self) -> float:
        """Bytes of the sums of one node in all partitions: of two components, 255 codes and two numbers."""
        return self.n_partitions * math.isqrt(self.n_features) * 256 * 3 * 8

    @property
    def least(self) -> float:
        """Bytes of a worker at least: codes are in files.

        Targets are needed of all rows, and for ``permutation`` the order of those out of a bag.
        """
        rows = self.n_rows * ((1 - IN_BAG) * 6 + 1 / 8) + (16 << 20) if self.out_of_bag else 0.0
        return BASE + self.n_rows * 2 * self.value_bytes + rows

    @property
    def codes(self) -> float:
        """Bytes of the codes of a worker."""
        return self.n_rows * self.n_features / self.n_workers

    def passes(self, limit: float) -> int:
        """Return the levels of nodes whose rows do not fit into half of what is left of ``limit``."""
        bytes_of_row = self.n_features + 100
        rows = max((limit - self.least) / 2 / bytes_of_row, 4096)
        return max(0, math.ceil(math.log2(IN_BAG * self.n_rows / rows)))

    def line(self, limit: float) -> str:
        """Return what a page says."""
        gib = 1 << 30
        return (
            f"{self.n_rows:.0e} rows x {self.n_features}, {self.n_trees} trees, {self.n_workers} workers: "
            f"moved {self.moved / gib:.1f} GiB, codes of a worker {self.codes / gib:.2f} GiB, a worker holds "
            f"{self.least / gib:.2f} GiB at least; with {limit / gib:.2f} GiB {self.passes(limit)} passes, "
            f"sums of a node {self.sums / (1 << 20):.1f} MiB"
        )


def features_and_class(number: int, n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of a partition as peers take them."""
    table = partition(number, n_rows, n_features)
    y = table["y"].to_numpy(zero_copy_only=False) == "a"
    return np.column_stack([table[f"x{i}"].to_numpy() for i in range(n_features)]), y.astype(np.int32)


def xgboost_forest(client: Client, X: Any, y: Any, n_trees: int, depth: int) -> None:
    from xgboost import dask as xgboost

    settings = {
        "objective": "binary:logistic",
        "tree_method": "hist",
        "max_depth": depth,
        "num_parallel_tree": n_trees,
        "subsample": IN_BAG,
        "colsample_bynode": X.shape[1] ** -0.5,
        "learning_rate": 1,
        "nthread": 1,
    }
    xgboost.train(client, settings, xgboost.DaskQuantileDMatrix(client, X, y), num_boost_round=1)


def lightgbm_forest(client: Client, X: Any, y: Any, n_trees: int, depth: int) -> None:
    import lightgbm

    lightgbm.DaskLGBMClassifier(
        client=client,
        boosting_type="rf",
        n_estimators=n_trees,
        max_depth=depth,
        num_leaves=2**depth,
        bagging_fraction=IN_BAG,
        bagging_freq=1,
        feature_fraction_bynode=X.shape[1] ** -0.5,
        verbosity=-1,
    ).fit(X, y)


PEERS = {"xgboost": xgboost_forest, "lightgbm": lightgbm_forest}
"""Random forests of trees of limited depth, with as many candidates and rows in a bag."""


def run_peer(n_workers: int, name: str, asked: argparse.Namespace) -> None:
    """Grow the forest of a peer on a new cluster, and print its row."""
    with cluster_of(n_workers, asked) as client:
        make = dask.delayed(features_and_class, pure=True, nout=2)
        part = asked.rows // asked.partitions
        parts = [make(number, part, asked.features) for number in range(asked.partitions)]
        X = da.concatenate([da.from_delayed(x, (part, asked.features), np.float32) for x, _ in parts])
        y = da.concatenate([da.from_delayed(target, (part,), np.int32) for _, target in parts])
        client.run(import_all, name)
        measured(client, n_workers, name, lambda: PEERS[name](client, X, y, asked.trees, asked.depth))


def measured(
    client: Client, n_workers: int, name: str, work: Callable[[], Result], model: tuple[Any, Any] = ("", "")
) -> Result:
    """Do the work, print its row, and return what it returns.

    ``model`` is what a model says of the MiB that are sent and that a worker holds.
    """
    before, before_sent, started = sum(client.run(cpu).values()), sent(), time.perf_counter()
    result = work()
    seconds = time.perf_counter() - started
    (used, of_loops), most = sum(client.run(cpu).values()) - before, max(client.run(peak).values())
    moved = (sent() - before_sent) >> 20
    times = (round(used, 1), round(of_loops, 1), round(seconds, 1))
    print(
        ROW.format(n_workers, name, *times, moved, model[0], round(most), model[1], round(peak())), flush=True
    )
    return result


@contextmanager
def cluster_of(n_workers: int, asked: argparse.Namespace) -> Iterator[Client]:
    with (
        LocalCluster(
            n_workers=n_workers, threads_per_worker=1, memory_limit=asked.memory, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--trees", type=int, default=4, help="of the joint ranker 200 at least")
    parser.add_argument("--scores", nargs="+", default=["genie3"], help="of the forest")
    parser.add_argument("--depth", type=int, help="of trees; full without it")
    parser.add_argument("--queries", type=int, default=500)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--memory", default="900MB", help="of a worker")
    parser.add_argument("--no-profiler", action="store_true", help="turn dask's profiler of workers off")
    parser.add_argument("--rankers", nargs="+", default=["forest", "relief"])
    parser.add_argument(
        "--keep", action="store_true", help="leave rows in partitions even where a worker holds all"
    )
    parser.add_argument(
        "--alone", action="store_true", help="rank in one process as well, and compare the bits"
    )
    parser.add_argument("--model", type=float, nargs=4, metavar=("ROWS", "FEATURES", "TREES", "WORKERS"))
    parser.add_argument(
        "--peers", nargs="+", choices=PEERS, default=[], help="forests beside ours, of trees of --depth"
    )
    asked = parser.parse_args()
    if asked.peers and not asked.depth:
        parser.error("--peers: their trees need a --depth")
    if asked.model:
        n_rows, n_features, n_trees, n_workers = asked.model
        counts = int(n_features), int(n_trees), int(n_workers), asked.partitions
        out_of_bag = "permutation" in asked.scores or "mdi_oob" in asked.scores
        print(Model(n_rows, *counts, out_of_bag).line(parse_bytes(asked.memory)))
        return
    rankers: dict[str, Any] = {
        "forest": fr.ForestRanker(
            n_estimators=asked.trees, max_depth=asked.depth, scores=tuple(asked.scores)
        ),
        "joint": fr.JointRanker(n_estimators=max(200, asked.trees), n_iterations=asked.queries),
        "relief": fr.ReliefRanker(n_iterations=asked.queries),
    }
    setting = "distributed.worker.profile.enabled"
    if asked.no_profiler:
        dask.config.set({setting: False})
    print(f"{setting}: {dask.config.get(setting)}")
    print(ROW.format(*HEADER))
    if asked.keep:
        from ferrank.distributed import plan

        plan.SPILL_FRACTION = 1e-9
    found: dict[str, fr.Ranking] = {}
    for n_workers in asked.workers:
        for name in asked.rankers:
            found[name] = run(n_workers, name, rankers[name], asked)
        for name in asked.peers:
            run_peer(n_workers, name, asked)
    if asked.alone:
        import_all("ferrank")
        before, part = cpu(), asked.rows // asked.partitions
        table = pa.concat_tables(partition(k, part, asked.features) for k in range(asked.partitions))
        (made, _) = cpu() - before
        for name in asked.rankers:
            before, started = cpu(), time.perf_counter()
            alone = fr.rank(table, "y", ranker=rankers[name])
            (used, _), seconds = cpu() - before, time.perf_counter() - started
            # Workers make the partitions, too.
            times = (round(made + used, 1), "", round(seconds, 1))
            print(ROW.format("alone", name, *times, "", "", round(peak()), "", ""))
            scores = zip(alone.scores.values(), found[name].scores.values(), strict=True)
            same = all(np.array_equal(a.importance, b.importance) for a, b in scores)
            print(f"{name}: the bits of one process: {same}")


def run(n_workers: int, name: str, ranker: Any, asked: argparse.Namespace) -> fr.Ranking:
    """Rank on a new cluster, and print its row."""
    with cluster_of(n_workers, asked) as client:
        make = dask.delayed(partition, pure=True)
        part = asked.rows // asked.partitions
        parts = [make(number, part, asked.features) for number in range(asked.partitions)]
        out_of_bag = "permutation" in asked.scores or "mdi_oob" in asked.scores
        model = Model(asked.rows, asked.features, asked.trees, n_workers, asked.partitions, out_of_bag)
        says = (round(model.moved) >> 20, round(model.least) >> 20) if name == "forest" else ("", "")
        client.run(import_all, "ferrank.distributed")
        return measured(client, n_workers, name, lambda: fr.rank(parts, "y", ranker=ranker), says)


if __name__ == "__main__":
    main()
