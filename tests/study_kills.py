"""Studies that are killed at random moments and go on.

``python tests/study_kills.py --kills 10`` starts ``ferrank study`` with 20 data sets, 10 rankers and 10
splits, kills it with SIGKILL at random moments, and lets a last run complete it. Prints how many cells each
run found and left. Exits with 1 if a cell was computed twice, or if the numbers differ from those of a
study that was not killed.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.feather

N_DATA, N_SPLITS = 20, 10
RANKERS = {
    "genie3": 'scores = ["genie3"]',
    "symbolic": 'scores = ["symbolic"]',
    "permutation": 'scores = ["permutation"]',
    "mdi-oob": 'scores = ["mdi_oob"]',
    "bagging": 'ensemble = "bagging"',
    "extra-trees": 'ensemble = "extra_trees"',
    "shallow": "max_depth = 3",
    "drawn": 'random_state = "split"',
    "relief": 'ranker = "relief"',
    "relief-30": 'ranker = "relief"\nn_neighbors = 30',
}
KINDS = ("single", "pair", "parity_regression", "regression", "multilabel")


def plan() -> str:
    lines = ["[splits]", 'kind = "repeated"', f"n = {N_SPLITS}"]
    for name, settings in RANKERS.items():
        trees = "" if "relief" in name else "\nn_estimators = 50\nstandard_errors = false"
        lines += [f"[rankers.{name}]", settings + trees]
    for number in range(N_DATA):
        kind = KINDS[number % len(KINDS)]
        lines += [f"[data.set-{number}]", f'synthetic = "{kind}"', f"n_rows = {100 + 10 * number}"]
        lines += ["n_features = 20", f"random_state = {number}"]
        lines += ["n_targets = 3"] if kind == "multilabel" or (kind == "regression" and number % 2) else []
    return "\n".join(lines)


def study(file: Path, output: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "ferrank", "study", str(file), "--output", str(output), "--jobs", "2"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, start_new_session=True)


def cells(output: Path) -> dict[str, tuple[int, int]]:
    """Return what changes in a cell if it is written again, by the name of its file."""
    found = (output / "cells").glob("*.arrow")
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


def numbers(output: Path) -> pa.Table:
    return pyarrow.feather.read_table(output / "results.arrow").drop_columns(["ranking_seconds"])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="study-kills-") as folder:
        file, whole, parts = (Path(folder) / name for name in ("plan.toml", "whole", "parts"))
        file.write_text(plan())
        started = time.monotonic()
        if study(file, whole).wait() != 0:
            raise SystemExit("the study that is not killed fails")
        seconds = time.monotonic() - started
        print(f"not killed: {len(cells(whole)):,} cells in {seconds:.0f} s", flush=True)
        before: dict[str, tuple[int, int]] = {}
        twice = 0
        for kill in range(options.kills):
            process = study(file, parts)
            if rng.random() < 0.8:
                # After the start, which takes most of a run that ends soon.
                while process.poll() is None and len(cells(parts)) == len(before):
                    time.sleep(0.05)
            time.sleep(rng.uniform(0, seconds / options.kills))
            if rng.random() < 0.5:
                os.killpg(process.pid, signal.SIGKILL)
            else:
                process.kill()
            process.wait()
            now = cells(parts)
            twice += sum(now.get(name) != written for name, written in before.items())
            print(f"kill {kill + 1}: {len(before):,} cells found, {len(now):,} left", flush=True)
            before = now
        last = study(file, parts).wait()
        twice += sum(cells(parts).get(name) != written for name, written in before.items())
        same = last == 0 and numbers(parts).equals(numbers(whole))
        print(f"cells done twice: {twice}; numbers: {'the same' if same else 'OTHERS'}")
        return 0 if same and not twice else 1


if __name__ == "__main__":
    sys.exit(main())
