"""What the features cost as components of the impurity, and what rows without a target are worth.

`--case cost`: CPU seconds of a semi-supervised tree beside a supervised one on fully labelled data, and the
rate at which sums of components are updated beside the rate at which memory can be read. `--case worth`:
rankings of the digits of scikit-learn with few labels, judged by 40 nearest neighbours (Petković et al.
2023, 6.4): among the rows with labels, of which 50 are hardly more than 40, or (`--judge all`) among all
rows but those of the test, whose labels the judge knows and the ranker does not.
"""

from __future__ import annotations

import argparse

import numpy as np
from engines import Size, ferrank, ferrank_cost, per_tree
from measure import fastest
from recording import Record, add_option
from sklearn.datasets import load_digits
from sklearn.metrics import f1_score
from sklearn.neighbors import KNeighborsClassifier
from threadpoolctl import threadpool_limits

import ferrank as fr

LABELLED = 0.05
SUPERVISION = 0.5
BYTES = 8  # of the value of a component
NUMBERS_OF_LABELS = (50, 100, 200, 350, 500)
NEIGHBOURS = 40
FOLDS = 10


def read_rate(n_bytes: int = 1 << 29) -> float:
    """Bytes that one thread reads from memory in a second: the best of some inner products."""
    values = np.ones(n_bytes // 8)
    with threadpool_limits(1):
        (run,) = fastest(lambda: values @ values)
    return n_bytes / run.wall


def partly_labelled(size: Size) -> tuple[np.ndarray, np.ndarray]:
    work = size.workload()
    y = work.y.astype(float).copy()
    y[np.random.default_rng(1).random(size.rows) >= LABELLED] = np.nan
    return work.X, y


def semi_supervised_cost(size: Size, n_trees: int, **settings) -> float:
    """CPU seconds of a tree."""
    X, y = partly_labelled(size)
    settings |= {"supervision": SUPERVISION}
    return per_tree(lambda n: ferrank(size, n, **settings).fit(X, y), n_trees).tree


def updates(size: Size) -> int:
    """Sums of components that the search of tests adds to in a tree over each row once."""
    X, y = partly_labelled(size)
    columns = {f"x{number}": column for number, column in enumerate(X.T)}
    tree = fr.grow_tree(
        columns | {"y": y}, "y", bootstrap=False, supervision=SUPERVISION, max_features=size.max_features
    )
    examples = tree["n_examples"].to_numpy()
    # A component for each feature, and value and weight of the target; smaller nodes are not searched.
    return int(examples[examples >= 4].sum()) * size.max_features * (size.features + 2)


def measure_cost(size: Size, n_trees: int, record: Record) -> None:
    supervised = ferrank_cost(size, 5 * n_trees).tree
    semi = semi_supervised_cost(size, n_trees)
    once = semi_supervised_cost(size, n_trees, bootstrap=False)
    rate, memory = updates(size) * BYTES / once, read_rate()
    print(f"{size}, {LABELLED:.0%} labelled, supervision {SUPERVISION}, random forest, one thread")
    print(f"  supervised tree, all labelled   {supervised * 1e3:8.1f} ms")
    print(
        f"  semi-supervised tree            {semi * 1e3:8.1f} ms   {semi / supervised:.1f} times; wanted 25"
    )
    print(f"  updates of components           {rate / BYTES / 1e9:8.2f} x 10^9 a second")
    print(f"  the same in bytes               {rate / 1e9:8.1f} GB/s, {rate / memory:.0%} of what memory")
    print(f"  gives                           {memory / 1e9:8.1f} GB/s; wanted 30 %")
    record.add(
        case="semi-supervised tree",
        size=str(size),
        baseline="supervised tree, all labelled",
        value=round(semi, 5),
        baseline_value=round(supervised, 5),
        ratio=round(semi / supervised, 1),
        share_of_memory_rate=round(rate / memory, 2),
    )


RANKERS = {
    "forest": (fr.ForestRanker(scores=("genie3", "symbolic", "permutation")), {"supervision": SUPERVISION}),
    "relief": (fr.ReliefRanker(n_neighbors=15), {"unlabelled": "use", "influence": (0.0, 1.0)}),
}


def judge(importance: np.ndarray, train: tuple, test: tuple) -> float:
    """Macro-averaged F1 of the neighbours by the distance whose squares are weighted by importance."""
    weights = np.maximum(importance, 0)
    weights = np.sqrt(weights if weights.any() else np.ones_like(weights))
    model = KNeighborsClassifier(min(NEIGHBOURS, len(train[0]))).fit(train[0] * weights, train[1])
    return f1_score(test[1], model.predict(test[0] * weights), average="macro")


def curves(
    ranker: fr.ForestRanker | fr.ReliefRanker, asked: dict, seed: int, n_folds: int, judge_all: bool
) -> dict:
    """F1 at each number of labels, by score: of the supervised ranking, and of the semi-supervised one."""
    X, y = load_digits(return_X_y=True)
    X = X / np.where(np.ptp(X, axis=0) > 0, np.ptp(X, axis=0), 1)
    order = np.random.default_rng(seed).permutation(len(y))
    found = {}
    for test in np.array_split(order, FOLDS)[:n_folds]:
        train = order[~np.isin(order, test)]
        for row, n_labels in enumerate(NUMBERS_OF_LABELS):
            labels = np.array([str(label) for label in y[train]], dtype=object)
            labels[n_labels:] = None
            known = train if judge_all else train[:n_labels]
            for column, settings in enumerate(({"unlabelled": "ignore"}, asked)):
                fresh = ranker.__class__(**ranker.get_params() | settings | {"random_state": seed})
                ranking = fresh.fit(X[train], labels).result_
                for score in ranking.scores:
                    heights = found.setdefault(score, np.zeros((len(NUMBERS_OF_LABELS), 2)))
                    height = judge(ranking.importances(score), (X[known], y[known]), (X[test], y[test]))
                    heights[row, column] += height / n_folds
    return found


def area(found: np.ndarray) -> np.ndarray:
    """Area under the curve over the numbers of labels, as a mean height."""
    return np.trapezoid(found, NUMBERS_OF_LABELS, axis=0) / (NUMBERS_OF_LABELS[-1] - NUMBERS_OF_LABELS[0])


def measure_worth(n_seeds: int, n_folds: int, judge_all: bool) -> None:
    among = "all rows" if judge_all else "labelled rows"
    print(f"digits, F1 of {NEIGHBOURS} neighbours among {among}, {n_seeds} seeds, {n_folds} folds each")
    numbers = "".join(f"{n:>16}" for n in NUMBERS_OF_LABELS)
    print(f"{'labels':<12}{numbers}            area, and its gain")
    for ranker, asked in RANKERS.values():
        by_seed = [curves(ranker, asked, seed, n_folds, judge_all) for seed in range(n_seeds)]
        for score in by_seed[0]:
            found = np.array([of_seed[score] for of_seed in by_seed])
            cells = "".join(f"   {supervised:.3f} → {semi:.3f}" for supervised, semi in found.mean(axis=0))
            areas = np.array([area(heights) for heights in found])
            gain = areas[:, 1] - areas[:, 0]
            error = gain.std(ddof=1) / np.sqrt(n_seeds)
            before, after = areas.mean(axis=0)
            print(
                f"{score:<12}{cells}   {before:.3f} → {after:.3f}, {gain.mean():+.4f} ± {error:.4f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", choices=["cost", "worth"], action="append")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--judge", choices=["labelled", "all"], default="labelled")
    add_option(parser)
    asked = parser.parse_args()
    cases = asked.case or ["cost", "worth"]
    if "cost" in cases:
        record = Record("semi_supervised")
        measure_cost(Size(asked.rows, asked.features, 1), asked.trees, record)
        if asked.record:
            print(record.write(asked.record))
    if "worth" in cases:
        measure_worth(asked.seeds, asked.folds, asked.judge == "all")


if __name__ == "__main__":
    main()
