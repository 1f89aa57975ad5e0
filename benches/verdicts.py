"""CPU seconds of a verdict for each feature, ours beside BorutaPy: `python benches/verdicts.py --help`.

BorutaPy with its own limit of 100 makes 99 forests. With `--iterations` of fewer, its time is scaled to as
many. That is the most that it takes: from about the tenth forest on it leaves out features that it has
rejected, and it ends when none is undecided. All of its iterations (99) say what it takes.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings

import numpy as np
from arms import ARMS, sklearn_trees
from kinds import Simulated, classes, shuffled
from recording import Record, add_option
from threadpoolctl import threadpool_limits

ALL_ITERATIONS = 99
SIZES = {"tall": (20_000, 100), "wide": (200, 5_000), "small": (2_000, 100)}
N_RELEVANT = 20
ROW = "{:<16} {:>10} {:>22} {:>12} {:>7}"


def draw(size: tuple[int, int]) -> Simulated:
    """Standard normal features; twenty have effects from 1 to 0.15 on the log-odds of two classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=size)
    y = classes(rng, X[:, :N_RELEVANT] @ np.linspace(1, 0.15, N_RELEVANT))
    return shuffled(rng, X, y, N_RELEVANT)


def seconds_of_boruta(data: Simulated, iterations: int) -> float:
    from boruta import BorutaPy

    trees = sklearn_trees(data, "RandomForest", 0, max_depth=5, class_weight="balanced")
    # It counts from 1.
    selector = BorutaPy(trees, n_estimators="auto", random_state=0, max_iter=iterations + 1)
    started = time.process_time()
    selector.fit(data.X, data.y)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["tall", "wide"])
    parser.add_argument("--iterations", type=int, default=3, help=f"of BorutaPy, up to {ALL_ITERATIONS}")
    add_option(parser)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"
    threadpool_limits(1)
    record, iterations = Record("verdicts"), given.iterations
    scaled = "" if iterations == ALL_ITERATIONS else f"{iterations} of {ALL_ITERATIONS} iterations, scaled"
    print(ROW.format("size", "CPU s", "ranker", "BorutaPy", "ratio"))
    for name in given.sizes:
        data = draw(SIZES[name])
        theirs = seconds_of_boruta(data, iterations) * ALL_ITERATIONS / iterations
        for arm in ("ferrank", "ferrank forest with shadows"):
            started = time.process_time()
            ARMS[arm].rank(data, 0, 0.1)
            ours = time.process_time() - started
            print(ROW.format(data.size, f"{ours:.2f}", arm[-22:], f"{theirs:.1f}", f"{theirs / ours:.1f}"))
            record.add(
                case=f"verdicts, {arm}",
                size=data.size,
                baseline="BorutaPy, 100 iterations" + (f" ({scaled})" if scaled else ""),
                baseline_value=round(theirs, 1),
                value=round(ours, 3),
                ratio=round(theirs / ours, 1),
            )
    if given.record:
        print(record.write(given.record))


if __name__ == "__main__":
    main()
