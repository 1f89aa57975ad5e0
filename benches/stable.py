"""`until="stable"` beside extra trees on a sample of the same file: `python benches/stable.py --help`.

Each side is a process of its own whose CPU seconds count whole: imports, reading, ranking. The file holds
float32 values, the target is the sum of the first features, which all weigh the same, and noise.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from engines import auc
from recording import Record, add_option

BATCH = 65_536


def write(path: Path, rows: int, features: int, relevant: int, noise: float) -> None:
    rng = np.random.default_rng(0)
    names = [*(f"x{i}" for i in range(features)), "y"]
    schema = pa.schema([(name, pa.float32()) for name in names])
    with pa.ipc.new_file(str(path), schema) as writer:
        for start in range(0, rows, BATCH):
            X = rng.standard_normal((features, min(BATCH, rows - start)), dtype=np.float32)
            y = X[:relevant].sum(axis=0) / relevant**0.5
            y += noise * rng.standard_normal(len(y), dtype=np.float32)
            writer.write(pa.record_batch([*X, y], schema=schema))


def ours(path: str, arguments: argparse.Namespace) -> np.ndarray:
    import ferrank as fr

    ranking = fr.rank(path, "y", until="stable", stable_top=arguments.relevant, n_jobs=arguments.threads)
    print(ranking.stopped, file=sys.stderr)
    return ranking.importances()


def theirs(path: str, arguments: argparse.Namespace) -> np.ndarray:
    from sklearn.ensemble import ExtraTreesRegressor

    rng, parts = np.random.default_rng(0), []
    with pa.memory_map(path) as file, pa.ipc.open_file(file) as reader:
        for number in range(reader.num_record_batches):
            batch = reader.get_batch(number)
            drawn = np.flatnonzero(rng.random(batch.num_rows) < arguments.share)
            parts.append(np.column_stack([column.to_numpy()[drawn] for column in batch.columns]))
    sample = np.concatenate(parts)
    trees = ExtraTreesRegressor(
        arguments.trees, max_features="sqrt", min_samples_leaf=2, n_jobs=arguments.threads, random_state=0
    )
    return trees.fit(sample[:, :-1], sample[:, -1]).feature_importances_


SIDES: dict[str, Callable[[str, argparse.Namespace], np.ndarray]] = {"ferrank": ours, "extra trees": theirs}


def timed(side: str, path: Path) -> tuple[float, np.ndarray]:
    """CPU seconds of a process that ranks, and the importances."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, __file__, *sys.argv[1:], "--side", side, "--file", str(path)]
    printed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, np.array(json.loads(printed))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--relevant", type=int, default=20)
    parser.add_argument("--noise", type=float, default=1.0, help="standard deviation; the signal's is 1")
    parser.add_argument("--share", type=float, default=0.005, help="of the rows, for extra trees")
    parser.add_argument("--trees", type=int, default=100, help="extra trees")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--file", help="an Arrow file written before; by default one is made and removed")
    parser.add_argument("--side", choices=SIDES, help="rank only, and print the importances")
    add_option(parser)
    arguments = parser.parse_args()
    if arguments.side:
        print(json.dumps(SIDES[arguments.side](arguments.file, arguments).tolist()))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(arguments.file or Path(folder) / "data.arrow")
        if not path.exists():
            write(path, arguments.rows, arguments.features, arguments.relevant, arguments.noise)
        found = {side: timed(side, path) for side in SIDES}
    relevant = np.arange(arguments.features) < arguments.relevant
    for side, (seconds, importances) in found.items():
        print(f"{side:<12} {seconds:6.2f} CPU s   AUC {auc(importances, relevant):.4f}")
    ours, theirs = found["ferrank"], found["extra trees"]
    print(f"ratio        {ours[0] / theirs[0]:6.2f}, wanted at most 1")
    if arguments.record:
        record = Record("stable")
        record.add(
            case='until="stable"',
            size=f"{arguments.rows:,} x {arguments.features}",
            baseline=f"extra trees on {arguments.share:.1%} of the rows",
            value=round(ours[0], 2),
            baseline_value=round(theirs[0], 2),
            ratio=round(ours[0] / theirs[0], 2),
            auc=round(auc(ours[1], relevant), 4),
            baseline_auc=round(auc(theirs[1], relevant), 4),
            wanted="<= 1",
        )
        print(record.write(arguments.record))


if __name__ == "__main__":
    main()
