"""Runs in parts: killed and resumed, on dask clusters, by partition: `python benches/parts.py --help`.

Each case prints what it found and fails if a bit differs.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import workloads
from measure import peak_growth
from sklearn.metrics import roc_auc_score

import ferrank as fr

SCORES = ("genie3", "symbolic", "coverage", "permutation")


def table(n_rows: int, n_features: int, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """A numeric target and one with gaps, and which features are relevant."""
    data = workloads.regression(n_rows, n_features, 1, seed)
    frame = pd.DataFrame(data.X, columns=[f"x{number}" for number in range(n_features)])
    frame["y"] = data.y
    frame["z"] = np.where(np.random.default_rng(seed).random(n_rows) < 0.1, np.nan, data.y > 0)
    return frame, data.relevant


def rankers(n_rows: int) -> dict[str, fr.ForestRanker | fr.ReliefRanker]:
    return {
        "forest, all scores": fr.ForestRanker(n_estimators=40, scores=SCORES, by_target=True),
        "forest, per target": fr.ForestRanker(n_estimators=20, scores=SCORES, per_target=True),
        "relief": fr.ReliefRanker(n_iterations=min(n_rows, 3000)),
    }


def same(one: fr.Ranking, other: fr.Ranking) -> bool:
    return all(
        np.array_equal(a.importance, b.importance)
        and np.array_equal(a.monte_carlo_error, b.monte_carlo_error, equal_nan=True)
        for a, b in zip(one.scores.values(), other.scores.values(), strict=True)
    )


def resume(n_rows: int, kills: int, only: list[str] | None, memory: str | None) -> None:
    """Kill runs of the command line at random moments of their time, and resume them, within ``memory``."""
    frame, _ = table(n_rows, 30)
    options = {
        "forest, all scores": ["--trees", "40", "--by-target", *(o for s in SCORES for o in ("--score", s))],
        "forest, per target": ["--trees", "20", "--per-target", *(o for s in SCORES for o in ("--score", s))],
        "relief": ["--ranker", "relief", "--iterations", str(min(n_rows, 3000))],
    }
    moments = random.Random(0)
    with tempfile.TemporaryDirectory() as folder:
        data, path = Path(folder) / "data.arrow", Path(folder) / "run.ferrank"
        fr.convert(frame, data)
        for name, ranker in rankers(n_rows).items():
            if only and name not in only:
                continue
            whole = fr.rank(str(data), ["y", "z"], ranker=ranker)
            command = [
                sys.executable,
                "-m",
                "ferrank.cli",
                "rank",
                str(data),
                "--target",
                "y",
                "--target",
                "z",
            ]
            command += [*options[name], "--resume", str(path)]
            command += ["--memory", memory, "--temp-dir", folder] if memory else []
            started = time.perf_counter()
            subprocess.run(command, capture_output=True, check=True)
            seconds = time.perf_counter() - started
            path.unlink()
            done = finished = made = torn = 0
            while done < kills:
                process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                try:
                    process.communicate(timeout=moments.uniform(0, seconds))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.communicate()
                    done += 1
                if process.returncode == 0 or done == kills:
                    with warnings.catch_warnings(record=True) as caught:
                        warnings.simplefilter("always")
                        assert same(fr.rank(str(data), ["y", "z"], ranker=ranker, resume=path), whole)
                    torn += sum(warning.category is fr.ResumeWarning for warning in caught)
                    keys = [batch["key"][0].as_py() for batch in pa.ipc.open_stream(path)]
                    assert len(keys) == len(set(keys)) == fr.Accumulator.load(path).n_keys
                    made += len(keys)
                    finished += 1
                    path.unlink()
            left = {file.name for file in Path(folder).iterdir()} - {data.name}
            assert not left, left
            print(f"{name}: {done} kills, {finished} runs to the end, same bits", end="; ")
            print(f"{made} records, none twice, {torn} torn", flush=True)


def clusters(n_rows: int, partitions: list[int]) -> None:
    """The bits for numbers of partitions, of workers and of their threads."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    frame, _ = table(n_rows, 30)
    whole = {name: fr.rank(frame, ["y", "z"], ranker=ranker) for name, ranker in rankers(n_rows).items()}
    for n_workers, n_threads in [(1, 1), (1, 2), (4, 1), (4, 2)]:
        settings = {"dashboard_address": None, "processes": True, "memory_limit": None}
        with (
            LocalCluster(n_workers=n_workers, threads_per_worker=n_threads, **settings) as cluster,
            Client(cluster),
        ):
            for name, ranker in rankers(n_rows).items():
                for n_partitions in partitions:
                    started = time.perf_counter()
                    collection = dd.from_pandas(frame, npartitions=n_partitions, sort=False)
                    assert same(fr.rank(collection, ["y", "z"], ranker=ranker), whole[name])
                    seconds = time.perf_counter() - started
                    print(
                        f"{name}: {n_workers} workers of {n_threads} threads, {n_partitions} partitions: "
                        f"same bits, {seconds:.1f} s",
                        flush=True,
                    )


def kills(n_rows: int, kills: int) -> None:
    """One of two workers killed at a random moment of a run."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    frame, _ = table(n_rows, 30)
    moments = random.Random(0)
    settings = {"dashboard_address": None, "processes": True, "memory_limit": None}
    for name, ranker in {
        "forest": fr.ForestRanker(n_estimators=60, scores=SCORES),
        "relief": fr.ReliefRanker(n_iterations=min(n_rows, 10_000)),
    }.items():
        whole, seconds = fr.rank(frame, ["y", "z"], ranker=ranker), 0.0
        for number in range(kills + 1):
            with (
                LocalCluster(n_workers=2, threads_per_worker=1, **settings) as cluster,
                Client(cluster) as client,
            ):
                collection = dd.from_pandas(frame, npartitions=6, sort=False)
                victim = moments.choice(list(client.run(os.getpid).values()))
                moment = moments.uniform(0, seconds)
                killer = threading.Timer(moment, os.kill, (victim, signal.SIGKILL))
                if number > 0:
                    killer.start()
                started = time.perf_counter()
                assert same(fr.rank(collection, ["y", "z"], ranker=ranker), whole)
                took = time.perf_counter() - started
                if number == 0:
                    seconds = took
                killer.cancel()
            what = f"kill {number} after {moment:.2f} s" if number else "no kill"
            print(f"{name}, {what}: same bits, {took:.2f} s", flush=True)


def made(number: int, n_rows: int) -> pd.DataFrame:
    """A partition of 100 float32 features and a target, made where it is needed."""
    x = np.random.default_rng(number).normal(size=(100, n_rows)).astype(np.float32)
    return pd.DataFrame(dict(enumerate(x))).rename(columns=str).assign(y=x[0] + x[1])


def traffic(n_rows: int) -> None:
    """What moves, and what the client holds, where partitions are made on two workers."""
    import dask
    from distributed import Client, LocalCluster

    def moved(dask_worker: object) -> tuple[int, int]:
        incoming = sum(entry["total"] for entry in dask_worker.transfer_incoming_log)
        return dask_worker.transfer_outgoing_bytes_total, incoming

    def peak() -> int:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

    parts = [dask.delayed(made)(number, n_rows // 16) for number in range(16)]
    mib = 1 << 20
    for name, ranker in [
        ("forest", fr.ForestRanker(n_estimators=8)),
        ("relief", fr.ReliefRanker(n_iterations=200)),
        ("forest by partition", fr.ForestRanker(n_estimators=32, scope="partition")),
    ]:
        settings = {"dashboard_address": None, "processes": True}
        with (
            LocalCluster(n_workers=2, threads_per_worker=1, **settings) as cluster,
            Client(cluster) as client,
        ):
            fr.rank([dask.delayed(made)(0, 100)], "y", n_estimators=2)
            before = client.run(moved)
            rank = lambda: fr.rank(parts, "y", ranker=ranker)  # noqa: B023, E731 - called at once
            grown = peak_growth(rank)
            after, peaks = client.run(moved), client.run(peak)
        outgoing, incoming = (
            sum(after[worker][way] - before[worker][way] for worker in after) for way in (0, 1)
        )
        print(
            f"{name}, {n_rows * 101 * 4 / mib:.0f} MiB of data: {incoming / mib:.1f} MiB between workers, "
            f"{(outgoing - incoming) / mib:.2f} MiB to the client, which grew by {grown / mib:.0f} MiB; "
            f"peak of workers {', '.join(f'{peak / mib:.0f}' for peak in peaks.values())} MiB",
            flush=True,
        )


def scopes(n_rows: int, seeds: int) -> None:
    """AUC of relevant features by scope, on four shuffled partitions; and whether drift is told."""
    import dask
    import dask.dataframe as dd

    differences = {}
    for seed in range(seeds):
        frame, relevant = table(n_rows, 60, seed)
        frame = frame.drop(columns="z")
        for name, kind in [("forest", fr.ForestRanker), ("relief", fr.ReliefRanker)]:
            for scope in ("global", "partition"):
                # A tree on a quarter of the rows takes a quarter of the time; so does a query.
                n = {"forest": {"n_estimators": 25 if scope == "global" else 100}, "relief": {}}[name]
                n |= {"n_iterations": 0.25 if scope == "global" else 1.0} if name == "relief" else {}
                ranker = kind(scope=scope, random_state=seed, **n)
                started = time.process_time()
                with dask.config.set(scheduler="threads"), warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    ranking = fr.rank(dd.from_pandas(frame, npartitions=4, sort=False), "y", ranker=ranker)
                told = sum(warning.category is fr.DriftWarning for warning in caught)
                auc = roc_auc_score(relevant, ranking.importances())
                differences.setdefault((name, scope), []).append((auc, time.process_time() - started, told))
    for (name, scope), found in differences.items():
        auc, seconds, told = np.array(found).T
        print(f"{name}, scope={scope}: AUC {auc.mean():.4f}, CPU {seconds.mean():.2f} s", end=", ")
        print(f"drift told in {told.sum():.0f} of {seeds}")
    with dask.config.set(scheduler="threads"), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sorted_rows = dd.from_pandas(frame.sort_values("y"), npartitions=4, sort=False)
        fr.rank(sorted_rows, "y", ranker=fr.ForestRanker(scope="partition"))
    print("sorted by the target:", *(w.message for w in caught if w.category is fr.DriftWarning))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", choices=["resume", "clusters", "kills", "traffic", "scopes"])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 3, 16])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--only", nargs="+", help="of resume: the names of rankers")
    parser.add_argument("--memory", help="of resume: a limit, so low that the rows do not fit")
    parser.add_argument("--seeds", type=int, default=5)
    chosen = parser.parse_args()
    match chosen.case:
        case "resume":
            resume(chosen.rows, chosen.kills, chosen.only, chosen.memory)
        case "clusters":
            clusters(chosen.rows, chosen.partitions)
        case "kills":
            kills(chosen.rows, chosen.kills)
        case "traffic":
            traffic(chosen.rows)
        case "scopes":
            scopes(chosen.rows, chosen.seeds)


if __name__ == "__main__":
    main()
