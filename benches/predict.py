"""Predictions of kept forests beside scikit-learn's, and the cost of keeping trees: see `--help`.

Both have grown 100 trees with at least two rows in a leaf and the square root of the features as candidates.
They predict the same rows, in turn, on one thread. The ratio is scikit-learn's CPU time over ferrank's; of
"growing", that without `keep_trees` over that with it.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np
from measure import fastest
from recording import Record, add_option
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import ferrank as fr

N_FEATURES = 20
TREES = 100
ROW = "{:<40} {:>18} {:>12} {:>7}"


def data(n_rows: int, seed: int, *, classes: bool) -> tuple[np.ndarray, np.ndarray]:
    """One feature by itself, two together, and as much noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, N_FEATURES)).astype(np.float32)
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n_rows)
    return X, (y > 0).astype(int) if classes else y


def ours(task: str, *, keep_trees: bool = True) -> fr.ForestRanker:
    return fr.ForestRanker(task, n_estimators=TREES, keep_trees=keep_trees, standard_errors=False, n_jobs=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows to predict")
    parser.add_argument("--trained", type=int, nargs="+", default=[20_000, 100_000], help="rows to grow from")
    add_option(parser)
    chosen = parser.parse_args()
    record = Record("predict")
    print(ROW.format("case", "baseline, CPU s", "CPU s", "ratio"))

    def add(case: str, baseline: str, theirs: float, own: float) -> None:
        print(ROW.format(case, f"{theirs:.3f}", f"{own:.3f}", f"{theirs / own:.2f}"))
        record.add(
            case=case,
            size=f"{chosen.rows:,} x {N_FEATURES}",
            baseline=baseline,
            baseline_value=round(theirs, 3),
            value=round(own, 3),
            ratio=round(theirs / own, 2),
        )

    for task, peer in (("regression", RandomForestRegressor), ("classification", RandomForestClassifier)):
        X, _ = data(chosen.rows, 0, classes=False)
        for n_trained in chosen.trained:
            rows = data(n_trained, 1, classes=task == "classification")
            mine = ours(task).fit(*rows)
            theirs = peer(TREES, max_features="sqrt", min_samples_leaf=2, random_state=0).fit(*rows)
            costs = fastest(partial(theirs.predict, X), partial(mine.predict, X), long=20)
            add(f"{task}, grown from {n_trained:,} rows", peer.__name__, *(one.cpu for one in costs))
            calls = [partial(ours(task, keep_trees=kept).fit, *rows) for kept in (False, True)]
            costs = fastest(*calls)
            add(f"growing, {task}, {n_trained:,} rows", "without keep_trees", *(one.cpu for one in costs))
    if chosen.record is not None:
        print(record.write(chosen.record))


if __name__ == "__main__":
    main()
