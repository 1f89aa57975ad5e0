"""Power of Relief's rules and of TuRF to find a pair of features that say nothing alone, and scikit-rebate's.

In each table the target is the exclusive or of two of its binary features, with a share of wrong labels.
Power is the share of tables whose two features are the best, or among the best 10. `--help` lists sizes.
scikit-rebate (`pip install '.[bench]'`) takes a minute or more for a table of 1,600 x 1,000; `--no-peer`
leaves it out. The importances of MultiSURF are equal in both.
"""

from __future__ import annotations

import argparse
import importlib
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from recording import Record, add_option

from ferrank import rebate

BEST = 10


def table(seed: int, n: int, n_features: int, noise: float) -> tuple[np.ndarray, np.ndarray, set[int]]:
    """Return features, classes and the two features that make them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, n_features)).astype(float)
    pair = rng.choice(n_features, 2, replace=False)
    y = (X[:, pair[0]] != X[:, pair[1]]) ^ (rng.random(n) < noise)
    return X, y.astype(int), set(pair.tolist())


def methods(module: Any) -> dict[str, Callable[[], Any]]:
    """Return the methods of ferrank.rebate or skrebate."""
    turf = {"pct": 0.5, "num_scores_to_return": BEST}
    return {
        "ReliefF, k = 10": lambda: module.ReliefF(n_neighbors=10),
        "ReliefF, k = 100": lambda: module.ReliefF(n_neighbors=100),
        "MultiSURF": module.MultiSURF,
        "TuRF of ReliefF, k = 10": lambda: module.TURF(module.ReliefF(n_neighbors=10), **turf),
        "TuRF of MultiSURF": lambda: module.TURF(module.MultiSURF(), **turf),
    }


def main() -> None:
    """Run the tables and print a row for each method."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1600)
    parser.add_argument("--features", type=int, default=1000)
    parser.add_argument("--noise", type=float, nargs="+", default=[0.1, 0.2, 0.3])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--no-peer", action="store_true", help="leave scikit-rebate out")
    add_option(parser)
    chosen = parser.parse_args()
    record = Record("epistasis")
    peers = {"ferrank": rebate}
    if not chosen.no_peer:
        peers["skrebate"] = importlib.import_module("skrebate")
    for noise in chosen.noise:
        for peer, module in peers.items():
            for name, make in methods(module).items():
                found, started = np.zeros(2), time.process_time()
                for seed in range(chosen.seeds):
                    X, y, pair = table(seed, chosen.rows, chosen.features, noise)
                    order = make().fit(X, y).top_features_
                    found += pair == set(order[:2].tolist()), pair <= set(order[:BEST].tolist())
                seconds = (time.process_time() - started) / chosen.seeds
                best, near = found / chosen.seeds
                size = f"{chosen.rows:,} x {chosen.features:,}, {noise:.0%} of the labels wrong"
                record.add(
                    case=f"{name} ({peer})", size=size, power_best=best, power_top_10=near, seconds=seconds
                )
                print(f"{size}  {name:25} {peer:9} {best:5.0%} {near:5.0%}  {seconds:7.2f} CPU s", flush=True)
    if chosen.record:
        print(record.write(chosen.record))


if __name__ == "__main__":
    main()
