"""CPU seconds of two versions of ferrank on the rows of forest.py and relief.py, in turns.

    python benches/versions.py OLD/python NEW/python [-k PART_OF_A_NAME] [--turns N]

Each folder holds a package `ferrank` with its compiled module. Each version has a process of its own,
which makes the data and then waits for its turns. Only names that both versions have are used. A ratio
above 1 means that the new version is slower.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

ROW = "{:<44} {:>9} {:>9} {:>7} {:>7}"
EXTRA = {"ensemble": "extra_trees"}


def cases() -> dict[str, dict]:
    """Return the rows, by name: what :func:`calling` takes."""
    found = {}
    for n_targets in (1, 16):
        for n_features in (20, 200):
            for n_rows in (100_000, 1_000_000):
                size = [n_rows, n_features, n_targets]
                trees = max(2, round(20_000_000 / (n_rows * math.sqrt(n_features * n_targets))))
                for name, settings in {
                    "forest": {},
                    "exact codes": {"max_bins": 65_535},
                    "extra trees": EXTRA,
                }.items():
                    row = f"{name}, {n_rows:,} x {n_features}, {n_targets} targets"
                    found[row] = {"size": size, "trees": trees, "settings": settings}
    labels = [20_000, 200, 100, True]
    found["labels, 20,000 x 200"] = {"size": labels, "trees": 5, "settings": {}}
    found["labels, extra trees, 20,000 x 200"] = {"size": labels, "trees": 5, "settings": EXTRA}
    scores = {"scores": ["genie3", "permutation"]}
    found["permutation, 100,000 x 200"] = {"size": [100_000, 200, 1], "trees": 20, "settings": scores}
    for n_rows, n_features in [(5_000, 100), (10_000, 100), (5_000, 1_000), (20_000, 100), (10_000, 1_000)]:
        found[f"Relief, {n_rows:,} x {n_features:,}"] = {"relief": [n_rows, n_features]}
    return found


def calling(case: dict) -> Callable[[], object]:
    """Return what a turn calls, with its data made."""
    from ferrank import ForestRanker

    # Older versions do not compute errors over samples of rows, which take trees and sums of their own.
    same = {"standard_errors": False} if hasattr(ForestRanker(), "standard_errors") else {}
    if "relief" in case:
        from relief import data, ferrank

        return partial(ferrank, *data(*case["relief"]), **same)
    from engines import Size, fitting

    return partial(fitting(Size(*case["size"]), **case["settings"], **same), case["trees"])


def work(case: dict) -> None:
    """Run a turn for each line of stdin, and print its CPU seconds."""
    from measure import cost

    warnings.simplefilter("ignore")
    call = calling(case)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(cost(call).cpu, flush=True)


def worker(folder: Path, case: dict) -> subprocess.Popen[str]:
    """Start the process of a version."""
    command = [sys.executable, __file__, "--worker", json.dumps(case)]
    environment = os.environ | {"PYTHONPATH": str(folder.resolve())}
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    process.stdout.readline()
    return process


def turn(process: subprocess.Popen[str]) -> float:
    """Let a version run once."""
    process.stdin.write("\n")
    process.stdin.flush()
    return float(process.stdout.readline())


def compared(folders: list[Path], case: dict, turns: int) -> tuple[float, float]:
    """Return the least CPU seconds of each version; the first turn of both is not counted."""
    processes = [worker(folder, case) for folder in folders]
    seconds = [[], []]
    for number in range(turns + 1):
        for version in (0, 1) if number % 2 else (1, 0):
            seconds[version].append(turn(processes[version]))
    for process in processes:
        process.communicate()
    return min(seconds[0][1:]), min(seconds[1][1:])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="FOLDER", help="of the old, of the new version"
    )
    parser.add_argument("-k", default="", help="run the rows whose names contain this")
    parser.add_argument("--turns", type=int, default=5, help="runs of each version that count; default: 5")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        work(args.worker)
        return
    if len(args.folders) != 2:
        parser.error("give two folders")
    print(ROW.format("row", "old, s", "new, s", "ratio", "mean"))
    ratios = []
    for name, case in cases().items():
        if args.k in name:
            old, new = compared(args.folders, case, args.turns)
            ratios.append(new / old)
            mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
            print(ROW.format(name, f"{old:.3f}", f"{new:.3f}", f"{new / old:.3f}", f"{mean:.3f}"), flush=True)


if __name__ == "__main__":
    main()
