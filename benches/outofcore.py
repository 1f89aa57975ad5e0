"""Data larger than memory: `python benches/outofcore.py --help`.

Each measurement runs in a process of its own, on a file that was dropped from the page cache first. A hard
cap (RLIMIT_DATA: what the process had mapped before, the limit, 64 MB) ends a run that takes more. A limit is
for the whole process, of which Python and its libraries take about 120 MB before anything is read.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from external import PEERS, Seconds
from measure import anonymous_memory
from recording import Record, add_option
from sklearn.metrics import roc_auc_score

MIB = 1 << 20
#: What a run may hold beyond the limit that it was told.
SLACK = 64 * MIB
#: Below this there is no room beside Python for a profile of 100 features and the top of a tree.
LEAST = 200 * MIB
BATCH = 65_536
#: Labels, and those of them that are rare.
N_LABELS, N_RARE = 100, 20
#: None stands above another.
ROOTS = {f"label {label}": None for label in range(N_LABELS)}
ROW = "{:<34} {:<10} {:>9} {:>9} {:>9} {:>9} {:>9}  {}"
#: The rows of this run.
RECORD = Record("outofcore")
HEADER = ("what", "format", "limit MB", "peak MB", "CPU s", "wall s", "ratio", "wanted")


def write(path: Path, n_rows: int, n_features: int) -> None:
    """Write float32 values that all differ, and a number and a class that follow ten of the features.

    A file that is there already is left as it is.
    """
    if path.exists():
        return
    rng = np.random.default_rng(0)
    weights = np.zeros(n_features, dtype=np.float32)
    weights[:10] = np.linspace(1, 0.2, 10)[:n_features]
    fields = [(f"x{i}", pa.float32()) for i in range(n_features)] + [
        ("y", pa.float32()),
        ("kind", pa.bool_()),
    ]
    schema = pa.schema(fields)
    is_parquet = path.suffix == ".parquet"
    with pq.ParquetWriter(path, schema) if is_parquet else pa.ipc.new_file(path, schema) as writer:
        for first in range(0, n_rows, BATCH):
            X = rng.standard_normal((n_features, min(BATCH, n_rows - first)), dtype=np.float32)
            y = weights @ X + rng.standard_normal(X.shape[1], dtype=np.float32)
            writer.write_batch(pa.record_batch([*X, y, y > 0], schema=schema))


def forget(path: Path) -> None:
    """Drop the file from the page cache."""
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def child(job: dict[str, Any]) -> dict[str, Any]:
    """Do `job` in this process, and say what it cost."""
    path = Path(job["path"])
    work = ferrank(job) if job["engine"] == "ferrank" else PEERS[job["engine"]](path, **job["settings"])
    forget(path)
    if job["limit"] is not None:
        mapped = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
        cap = mapped + job["limit"] + SLACK
        resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
    return work()


def ferrank(job: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    import ferrank as fr

    # Libraries are imported when they are first needed, and are not what the cap is for.
    fr.rank({"a": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]}, "y", ranker=job["ranker"])
    target = job["target"]
    phases: dict[str, tuple[float, float]] = {}

    def clock() -> tuple[float, float]:
        return time.process_time(), time.perf_counter()

    def progress(name: str, _done: int, _total: int) -> None:
        phases.setdefault(name, clock())

    def work() -> dict[str, Any]:
        started = clock()
        ranking = fr.rank(
            Path(job["path"]),
            target,
            drop=[name for name in ("y", "kind") if name != target] if target != "labels" else [],
            ranker=job["ranker"],
            progress=progress,
            memory_limit=job["limit"] or "1TB",
            temp_dir=Path(job["path"]).parent,
            **job["settings"],
        )
        ended = clock()
        grown = phases.get("growing", started)
        starts = [*phases.values(), ended]
        spent = [[b - a for a, b in zip(*pair, strict=True)] for pair in pairwise(starts)]
        scores = json.dumps(ranking.to_dict()["scores"], sort_keys=True)
        return {
            "setup_cpu": grown[0] - started[0],
            "setup_wall": grown[1] - started[1],
            "growing_cpu": ended[0] - grown[0],
            "growing_wall": ended[1] - grown[1],
            "passes": dict(zip(phases, spent, strict=True)),
            "importances": ranking.importances().tolist(),
            "bits": hashlib.sha256(scores.encode()).hexdigest(),
        }

    return work


def run(path: Path, ranker: str, limit: int | None, target: str = "y", **settings: Any) -> dict[str, Any]:
    job = {"engine": "ferrank", "path": str(path), "ranker": ranker, "target": target, "limit": limit}
    job["settings"] = settings
    found = start(job)
    if isinstance(found, str):
        raise SystemExit(f"{ranker} on {path}:\n{found}")
    return found


def start(job: dict[str, Any]) -> dict[str, Any] | str:
    """Return what `job` cost in a process of its own, or the end of what it said where it did not survive."""
    command = [sys.executable, __file__, "--child", json.dumps(job)]
    with (
        tempfile.TemporaryFile("w+") as said,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=said, text=True) as process,
    ):
        peak = 0
        while process.poll() is None:
            # Watched from here, so that its CPU seconds are its own.
            peak = max(peak, anonymous_memory(process.pid))
            time.sleep(0.01)
        said.seek(0)
        if process.returncode != 0:
            return f"exit status {process.returncode}\n{said.read()[-2000:]}"
        return {**json.loads(process.stdout.read()), "peak": peak}


def line(what: str, path: Path, limit: int | None, found: dict[str, Any], ratio: str, wanted: str) -> None:
    costs = [f"{found[f'setup_{clock}'] + found[f'growing_{clock}']:.1f}" for clock in ("cpu", "wall")]
    told = "" if limit is None else f"{limit / 1e6:.0f}"
    print(
        ROW.format(what, path.suffix[1:], told, f"{found['peak'] / 1e6:.0f}", *costs, ratio, wanted),
        flush=True,
    )
    RECORD.add(
        case=what,
        format=path.suffix[1:],
        limit_mb=told,
        peak_mb=f"{found['peak'] / 1e6:.0f}",
        cpu=costs[0],
        wall=costs[1],
        value=ratio,
        wanted=wanted,
    )


def judged(found: dict[str, Any], free: dict[str, Any], limit: int) -> str:
    peak = f"peak {'<=' if found['peak'] <= limit + SLACK else '> !'} limit + 64 MB"
    return f"{peak}, {'same bits' if found['bits'] == free['bits'] else 'OTHER BITS'}"


def compare(what: str, ours: Seconds, theirs: Seconds, trees: int, wanted: dict[str, str]) -> None:
    for clock in ("cpu", "wall"):
        each = [found[f"growing_{clock}"] / trees for found in (ours, theirs)]
        values = f"{each[0]:.2f} / {each[1]:.2f}"
        print(
            f"{what + f', {clock} s a tree':<45} {values:>19} {each[0] / each[1]:>27.2f}x  {wanted[clock]}",
            flush=True,
        )
        RECORD.add(
            case=f"{what}, {clock} s a tree",
            value=f"{each[0]:.3f}",
            baseline_value=f"{each[1]:.3f}",
            ratio=f"{each[0] / each[1]:.2f}",
            wanted=wanted[clock],
        )


def capped(args: argparse.Namespace, folder: Path) -> None:
    """Data of eight times the limit."""
    limit = max(LEAST, 4 * args.rows * args.features // 8)
    forest = {"n_estimators": args.trees, "scores": ["genie3", "permutation"]}
    for path in (folder / "data.arrow", folder / "data.parquet"):
        write(path, args.rows, args.features)
        relief = {"n_iterations": args.iterations, "target": "kind"}
        for ranker, settings in (("forest", forest), ("relief", relief)):
            found = run(path, ranker, limit, n_jobs=args.threads, **settings)
            free = run(path, ranker, None, n_jobs=args.threads, **settings)
            line(f"{ranker}, an eighth of the data", path, limit, found, "", judged(found, free, limit))
            line(f"{ranker}, in memory", path, None, free, "", "")


def cost(args: argparse.Namespace, folder: Path) -> None:
    """Compare a run with a limit of a third of the codes with a run in memory."""
    path = folder / "data.arrow"
    write(path, args.rows, args.features)
    limit = max(LEAST, args.rows * args.features // 3)
    settings = {"n_estimators": args.trees, "n_jobs": args.threads}
    found = run(path, "forest", limit, **settings)
    free = run(path, "forest", None, **settings)
    line("a third of the codes", path, limit, found, "", judged(found, free, limit))
    line("in memory", path, None, free, "", "")
    compare("out of core / in memory", found, free, args.trees, {"cpu": "<= 1.3x", "wall": "<= 2x"})


def reading(args: argparse.Namespace, folder: Path) -> None:
    """Compare reading profile and codes of an Arrow file with `cat` of it."""
    path = folder / "data.arrow"
    write(path, args.rows, args.features)
    size = path.stat().st_size / 1e6
    forget(path)
    started = time.perf_counter()
    subprocess.run(f"cat {path} | cat > /dev/null", shell=True, check=True)
    cat = size / (time.perf_counter() - started)
    found = run(path, "forest", None, n_estimators=1, max_depth=1, n_jobs=args.threads)
    rate = size / found["setup_wall"]
    line("reading", path, None, found, f"{rate:.0f} MB/s", f">= 400 MB/s or 60 % of cat ({cat:.0f} MB/s)")


def univariate(args: argparse.Namespace, folder: Path) -> None:
    """Compare the pass that scores single features with the profile pass, under a limit of 1 GiB.

    Passes are told apart to a tenth of a second, so that it takes millions of rows.
    """
    path = folder / "data.arrow"
    write(path, args.rows, args.features)
    for target, scores in (("kind", ["information_gain", "gain_ratio", "chi2", "accuracy"]), ("y", ["mse"])):
        settings = {"target": target, "n_jobs": args.threads, "scores": scores}
        found = run(path, "univariate", 1024 * MIB, **settings)
        for clock, place in (("CPU", 0), ("wall", 1)):
            profile, own = (found["passes"][name][place] for name in ("profiling", "coding"))
            what = f"univariate, {'classes' if target == 'kind' else 'numbers'}, rate, {clock} time"
            wanted = ">= 0.6x the rate of the profile pass"
            line(what, path, 1024 * MIB, found, f"{profile / own:.2f}x", wanted)


def peers(args: argparse.Namespace, folder: Path) -> None:
    """Trees of the same depth by others, under the same cap; without one where that ends them."""
    path = folder / "data.arrow"
    write(path, args.rows, args.features)
    limit = max(LEAST, 4 * args.rows * args.features // 8)
    ours = run(path, "forest", limit, n_estimators=args.trees, max_depth=args.depth, n_jobs=args.threads)
    line(f"depth {args.depth}", path, limit, ours, "", "")
    settings = {
        "target": "y",
        "other": "kind",
        "trees": args.trees,
        "depth": args.depth,
        "threads": args.threads,
    }
    for engine in PEERS:
        for cap in (limit, None):
            theirs = start({"engine": engine, "path": str(path), "limit": cap, "settings": settings})
            if not isinstance(theirs, str):
                line(f"{engine}, depth {args.depth}", path, cap, theirs, "", "")
                compare(
                    f"ferrank / {engine}",
                    ours,
                    theirs,
                    args.trees,
                    dict.fromkeys(("cpu", "wall"), "<= 0.33x"),
                )
                break
            print(
                f"{engine} does not survive: {' | '.join(theirs.splitlines()[:1] + theirs.splitlines()[-2:])}"
            )


def rare(args: argparse.Namespace, folder: Path) -> None:
    """Labels that a sample misses: the AUC of their features, of all rows and of a sample of 0.5 %."""
    whole, sample = folder / "rare.arrow", folder / "sample.arrow"
    write_labels(whole, sample, args.rows, args.features)
    for what, path in (("all rows", whole), ("a sample of 0.5 %", sample)):
        found = run(
            path, "forest", None, "labels", hierarchy=ROOTS, n_estimators=args.trees, n_jobs=args.threads
        )
        features = np.arange(args.features)
        judged = (features < N_RARE) | (features >= N_LABELS // 2)
        auc = roc_auc_score(features[judged] < N_RARE, np.array(found["importances"])[judged])
        line(
            f"rare labels, {what}", path, None, found, f"{auc:.4f}", "AUC of their features; all rows >= 0.95"
        )


def write_labels(whole: Path, sample: Path, n_rows: int, n_features: int) -> None:
    """Write label sets, and a sample of the rows.

    Each of the first labels is in one row of 20,000, one of 20 of those in which its own feature is highest;
    the others are common, and follow the features after these.
    """
    rng = np.random.default_rng(0)
    schema = pa.schema(
        [(f"x{i}", pa.float32()) for i in range(n_features)] + [("labels", pa.list_(pa.string()))]
    )
    names = np.array(list(ROOTS))
    with pa.ipc.new_file(whole, schema) as all_rows, pa.ipc.new_file(sample, schema) as some:
        for first in range(0, n_rows, BATCH):
            n = min(BATCH, n_rows - first)
            X = rng.random((n_features, n), dtype=np.float32)
            has = np.empty((n, N_LABELS), dtype=bool)
            for label in range(N_LABELS):
                if label < N_RARE:
                    has[:, label] = (X[label] > 0.999) & (rng.random(n) < 1 / 20)
                else:
                    follows = N_RARE + label % (N_LABELS // 2 - N_RARE)
                    has[:, label] = (X[follows] > 0.96) & (rng.random(n) < 0.5)
            rows, labels = has.nonzero()
            starts = pa.array(np.searchsorted(rows, np.arange(n + 1)), pa.int32())
            lists = pa.ListArray.from_arrays(starts, pa.array(names[labels]))
            batch = pa.record_batch([*X, lists], schema=schema)
            all_rows.write_batch(batch)
            some.write_batch(batch.take(pa.array(np.flatnonzero(rng.random(n) < 0.005))))


CASES = {
    "capped": capped,
    "cost": cost,
    "reading": reading,
    "univariate": univariate,
    "peers": peers,
    "rare": rare,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--trees", type=int, default=16)
    parser.add_argument("--depth", type=int, default=8, help="of trees beside those of others")
    parser.add_argument("--iterations", type=int, default=200, help="queries of Relief")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the data; default: the system's temporary folder")
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    add_option(parser)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(json.loads(args.child))))
        return
    if args.quick:
        args.rows, args.features, args.trees, args.iterations = 1_000_000, 100, 2, 20
    print(f"{args.rows:,} x {args.features}, {args.trees} trees, {args.threads} threads")
    print(ROW.format(*HEADER))
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for case in args.case:
            CASES[case](args, Path(folder))
    if args.record:
        for row in RECORD.rows:
            row["size"] = f"{args.rows:,} x {args.features}"
        print(RECORD.write(args.record))


if __name__ == "__main__":
    main()
