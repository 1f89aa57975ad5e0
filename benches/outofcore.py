"""Data larger than memory: `python benches/outofcore.py --help`.

Each measurement runs in a process of its own, on a file that was dropped from the page cache first. A hard
cap (RLIMIT_DATA: what the process had mapped before, the limit, 64 MB) ends a run that takes more.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from measure import anonymous_memory

MIB = 1 << 20
#: What a run may hold beyond the limit that it was told.
SLACK = 64 * MIB
BATCH = 65_536
ROW = "{:<34} {:<10} {:>9} {:>9} {:>9} {:>9} {:>9}  {}"
HEADER = ("what", "format", "limit MB", "peak MB", "CPU s", "wall s", "ratio", "wanted")


def write(path: Path, n_rows: int, n_features: int) -> None:
    """Write float32 values that all differ, and a number and a class that follow ten of the features."""
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
    """Do `job` in this process: rank, and say what it cost."""
    import resource

    import ferrank as fr

    path, limit = Path(job["path"]), job["limit"]
    forget(path)
    if limit is not None:
        mapped = int(re.search(r"VmData:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024
        cap = mapped + limit + SLACK
        resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
    target, other = ("kind", "y") if job["ranker"] == "relief" else ("y", "kind")
    peak, phases, done = 0, {}, threading.Event()
    phase = "profiling"

    def watch() -> None:
        nonlocal peak
        while not done.wait(0.005):
            peak = max(peak, anonymous_memory())

    def progress(name: str, _done: int, _total: int) -> None:
        nonlocal phase
        phase = name
        phases.setdefault(phase, (time.process_time(), time.perf_counter()))

    threading.Thread(target=watch, daemon=True).start()
    started = time.process_time(), time.perf_counter()
    ranking = fr.rank(
        path,
        target,
        drop=[other],
        ranker=job["ranker"],
        progress=progress,
        n_jobs=job["threads"],
        memory_limit=limit or "1TB",
        **job["settings"],
    )
    ended = time.process_time(), time.perf_counter()
    done.set()
    grown = phases.get("growing", started)
    scores = json.dumps(ranking.to_dict()["scores"], sort_keys=True)
    return {
        "peak": peak,
        "cpu": ended[0] - started[0],
        "wall": ended[1] - started[1],
        "growing_cpu": ended[0] - grown[0],
        "growing_wall": ended[1] - grown[1],
        "reading_wall": grown[1] - started[1],
        "bits": hashlib.sha256(scores.encode()).hexdigest(),
    }


def run(path: Path, ranker: str, limit: int | None, threads: int, **settings: Any) -> dict[str, Any]:
    job = {"path": str(path), "ranker": ranker, "limit": limit, "threads": threads, "settings": settings}
    command = [sys.executable, __file__, "--child", json.dumps(job)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        raise SystemExit(f"{ranker} on {path}:\n{found.stderr}")
    return json.loads(found.stdout)


def line(what: str, path: Path, limit: int | None, found: dict[str, Any], ratio: str, wanted: str) -> None:
    costs = (f"{found['cpu']:.1f}", f"{found['wall']:.1f}")
    told = "" if limit is None else f"{limit / 1e6:.0f}"
    print(
        ROW.format(what, path.suffix[1:], told, f"{found['peak'] / 1e6:.0f}", *costs, ratio, wanted),
        flush=True,
    )


def within(found: dict[str, Any], limit: int) -> str:
    return f"peak {'<=' if found['peak'] <= limit + SLACK else '> !'} limit + 64 MB"


def capped(args: argparse.Namespace, folder: Path) -> None:
    """Data of eight times the limit."""
    for suffix in (".arrow", ".parquet"):
        path = folder / f"data{suffix}"
        write(path, args.rows, args.features)
        limit = 4 * args.rows * args.features // 8
        forest = {"n_estimators": args.trees, "scores": args.scores}
        for ranker, settings in (("forest", forest), ("relief", {"n_iterations": args.iterations})):
            found = run(path, ranker, limit, args.threads, **settings)
            free = run(path, ranker, None, args.threads, **settings)
            same = "same bits" if found["bits"] == free["bits"] else "OTHER BITS"
            line(f"{ranker}, 8 times the limit", path, limit, found, "", f"{within(found, limit)}, {same}")
        path.unlink()


def cost(args: argparse.Namespace, folder: Path) -> None:
    """A limit of a third of the codes, told against a run in memory."""
    path = folder / "data.arrow"
    write(path, args.rows, args.features)
    limit = args.rows * args.features // 3
    settings = {"n_estimators": args.trees}
    free = run(path, "forest", None, args.threads, **settings)
    found = run(path, "forest", limit, args.threads, **settings)
    same = "same bits" if found["bits"] == free["bits"] else "OTHER BITS"
    line("in memory", path, None, free, "", "")
    line("a third of the codes", path, limit, found, "", f"{within(found, limit)}, {same}")
    for clock, wanted in (("cpu", "<= 1.3x"), ("wall", "<= 2x")):
        each = [found[f"growing_{clock}"] / args.trees, free[f"growing_{clock}"] / args.trees]
        values = f"{each[0]:.2f} / {each[1]:.2f}"
        print(f"{clock + ' s a tree':<34} {values:>30} {each[0] / each[1]:>27.2f}x  {wanted}", flush=True)
    path.unlink()


def reading(args: argparse.Namespace, folder: Path) -> None:
    """Profile and codes of an Arrow file, told against `cat` of it."""
    path = folder / "data.arrow"
    write(path, args.rows, args.features)
    size = path.stat().st_size / 1e6
    forget(path)
    started = time.perf_counter()
    subprocess.run(f"cat {path} | cat > /dev/null", shell=True, check=True)
    cat = size / (time.perf_counter() - started)
    found = run(path, "forest", None, args.threads, n_estimators=1, max_depth=1)
    rate = size / found["reading_wall"]
    line("reading", path, None, found, f"{rate:.0f} MB/s", f">= 400 MB/s or 60 % of cat ({cat:.0f} MB/s)")
    path.unlink()


CASES = {"capped": capped, "cost": cost, "reading": reading}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--trees", type=int, default=16)
    parser.add_argument("--scores", nargs="+", default=["genie3", "permutation"])
    parser.add_argument("--iterations", type=int, default=200, help="queries of Relief")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the data; default: the system's temporary folder")
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run?")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(json.dumps(child(json.loads(args.child))))
        return
    if args.quick:
        args.rows, args.features, args.trees, args.iterations = 1_500_000, 100, 2, 20
    print(f"{args.rows:,} x {args.features}, {args.trees} trees, {args.threads} threads")
    print(ROW.format(*HEADER))
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        for case in args.case:
            CASES[case](args, Path(folder))


if __name__ == "__main__":
    main()
