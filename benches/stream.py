"""`partial_fit` over many batches: `python benches/stream.py --help`.

Prints anonymous memory as the batches come, how far it moves after the first 50, CPU seconds a batch (of the
calls alone, not of making the data), and the AUC of the relevant features, beside that of `fit` on the rows
that one block and one reservoir hold.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from engines import auc
from measure import anonymous_memory
from recording import Record, add_option
from sklearn.base import clone

from ferrank import ForestRanker, ReliefRanker

WARM_UP = 50


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ranker", choices=["forest", "relief"], default="forest")
    parser.add_argument("--batches", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000, help="of a batch")
    parser.add_argument("--features", type=int, default=100)
    parser.add_argument("--relevant", type=int, default=20)
    parser.add_argument(
        "--noise", type=float, default=8.0, help="standard deviation; that of the signal is 1"
    )
    parser.add_argument("--trees", type=int, default=5, help="of a block")
    parser.add_argument("--queries", type=int, default=500, help="of a block")
    parser.add_argument("--half-life", type=float)
    parser.add_argument("--threads", type=int, default=2)
    add_option(parser)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    rng = np.random.default_rng(0)
    rankers = {
        "forest": ForestRanker(n_estimators=given.trees),
        "relief": ReliefRanker(n_iterations=given.queries),
    }
    ranker = rankers[given.ranker].set_params(n_jobs=given.threads, half_life=given.half_life)
    relevant = np.arange(given.features) < given.relevant
    X = np.empty((given.rows, given.features), dtype=np.float32)

    def make(rows: np.ndarray) -> np.ndarray:
        rng.standard_normal(out=rows, dtype=np.float32)
        signal = rows[:, : given.relevant].sum(axis=1) / given.relevant**0.5
        return signal + given.noise * rng.standard_normal(len(rows), dtype=np.float32)

    held, seconds = [], []
    for number in range(1, given.batches + 1):
        y = make(X)
        started = time.process_time()
        ranker.partial_fit(X, y)
        seconds.append(time.process_time() - started)
        held.append(anonymous_memory())
        if number in (1, WARM_UP) or number % 100 == 0:
            print(f"batch {number:5}: {held[-1] / 2**20:7.1f} MB", flush=True)
    later = held[WARM_UP:] or held
    print(f"after the first {WARM_UP}: {min(later) / 2**20:.1f} … {max(later) / 2**20:.1f} MB")
    print(f"CPU seconds a batch of {given.rows} x {given.features}: {np.mean(seconds):.3f}")
    print(f"AUC of {given.relevant} relevant features: {auc(ranker.feature_importances_, relevant):.4f}")
    rows = np.empty((ranker.block_rows + ranker.reservoir_rows, given.features), dtype=np.float32)
    fitted = clone(ranker).fit(rows, make(rows))
    print(f"fit on {len(rows)} rows: {auc(fitted.feature_importances_, relevant):.4f}")
    if given.record:
        record = Record("stream")
        record.add(
            case=f"partial_fit, {given.ranker}",
            size=f"{given.batches} x {given.rows:,} x {given.features}",
            baseline=f"fit on {len(rows):,} rows",
            value=round(float(np.mean(seconds)), 3),
            peak_mb=round(max(later) / 1e6),
            auc=round(auc(ranker.feature_importances_, relevant), 4),
            baseline_auc=round(auc(fitted.feature_importances_, relevant), 4),
        )
        print(record.write(given.record))


if __name__ == "__main__":
    main()
