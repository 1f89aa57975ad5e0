"""Whether errors and intervals hold for the population: `python benches/intervals.py --help`.

Of each kind of data many samples of rows are drawn. The importance in the population is the mean over all of
them: what such a ranker says of such samples on average. Shown are, by score,

- coverage: the share of 95 % intervals (Student's t, importance +- standard error) that cover it, the mean
  over samples and features, and the least of a feature;
- ranks: the share of samples whose rank intervals all hold at once;
- error: standard error beside the spread over samples (root mean squares), the least and the greatest of a
  feature;
- surely: the share of samples in which some feature is said to be surely above another.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from recording import Record, add_option
from scipy import stats

import ferrank as fr

Array = np.ndarray
Rng = np.random.Generator
Table = tuple[Array, Array]  # X: rows x features, y: rows, or rows x targets

FOREST = ("genie3", "symbolic", "permutation", "mdi_oob")
TREES_A_SUBSAMPLE = 5
"""Consecutive trees of a forest whose companions share a subsample (rust/forest/src/companions.rs)."""
MOST_TREES = 200
"""Trees of a forest that have companions."""
GROUPS = 32
"""Groups of rows in the jackknife of Relief."""
ROW = "{:<12} {:<12} {:>9} {:>7} {:>6} {:>7} {:>7} {:>7}"


def linear(rng: Rng, rows: int) -> Table:
    X = rng.normal(size=(rows, 8))
    return X, X[:, :3] @ [1, 0.5, 0.25] + rng.normal(size=rows)


def friedman(rng: Rng, rows: int) -> Table:
    X = rng.random((rows, 10))
    signal = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, signal + rng.normal(size=rows)


def two_classes(rng: Rng, rows: int) -> Table:
    X, y = linear(rng, rows)
    return X, np.where(y > 0, "a", "b")


def three_classes(rng: Rng, rows: int) -> Table:
    X = rng.normal(size=(rows, 8))
    nearest = np.argmin(X[:, :3] + rng.normal(size=(rows, 3)), axis=1)
    return X, np.array(["a", "b", "c"])[nearest]


def correlated(rng: Rng, rows: int) -> Table:
    X = np.sqrt(0.8) * np.repeat(rng.normal(size=(rows, 2)), 4, axis=1) + np.sqrt(0.2) * rng.normal(
        size=(rows, 8)
    )
    return X, X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=rows)


def heavy_tails(rng: Rng, rows: int) -> Table:
    X = rng.standard_t(2, size=(rows, 8))
    return X, X[:, 0] + 0.5 * X[:, 1] + rng.standard_t(3, size=rows)


def noise(rng: Rng, rows: int) -> Table:
    """Numeric features of 2, 3, 5, 20 and many values, all independent of the target."""
    few_values = [rng.integers(0, k, rows) for k in (2, 3, 5, 20)]
    return np.column_stack([*few_values, *rng.normal(size=(3, rows))]), rng.normal(size=rows)


def three_targets(rng: Rng, rows: int) -> Table:
    X = rng.normal(size=(rows, 8))
    effects = np.array([[1, 0.5, 0, 0, 0], [0, 0, 1, 0.5, 0], [0.5, 0, 0.5, 0, 0.3]])
    return X, X[:, :5] @ effects.T + rng.normal(size=(rows, 3))


KINDS: dict[str, Callable[[Rng, int], Table]] = {
    kind.__name__: kind
    for kind in (linear, friedman, two_classes, three_classes, correlated, heavy_tails, noise, three_targets)
}


class Said(NamedTuple):
    """What a ranking says of its features."""

    importance: Array  # n_features
    standard_error: Array  # n_features
    rank_interval: Array  # n_features x 2
    width: float  # of a 95 % interval, to one side, in standard errors


def ranked(kind: str, seed: int, rows: int, trees: int) -> dict[str, Said]:
    X, y = KINDS[kind](np.random.default_rng([seed, list(KINDS).index(kind)]), rows)
    rankers = {
        "forest": fr.ForestRanker(scores=FOREST, n_estimators=trees, random_state=seed, n_jobs=1),
        "relief": fr.ReliefRanker(random_state=seed, n_jobs=1),
        "by ranks": fr.ReliefRanker(scaling="rank", random_state=seed, n_jobs=1),
    }
    found = {}
    for ranker_name, ranker in rankers.items():
        groups = min(trees, MOST_TREES) // TREES_A_SUBSAMPLE if ranker_name == "forest" else GROUPS
        width = stats.t.ppf(0.975, groups - 1)
        for score_name, score in ranker.fit(X, y).result_.scores.items():
            name = score_name if ranker_name == "forest" else ranker_name
            intervals = score.rank_interval.astype(int)
            found[name] = Said(score.importance, score.standard_error, intervals, width)
    return found


def possible_ranks(importances: Array) -> Array:
    """Return the best and worst rank that each feature may have in the population, n_features x 2.

    Features whose means over the samples (n_samples x n_features) are within two standard errors of their
    difference may have either order.
    """
    difference = importances[:, :, None] - importances[:, None, :]
    error = difference.std(axis=0, ddof=1) / np.sqrt(len(importances))
    above = difference.mean(axis=0) > 2 * error
    return np.column_stack([1 + above.sum(axis=0), importances.shape[1] - above.sum(axis=1)])


def judge(said: list[Said]) -> dict[str, float]:
    importances, errors = (
        np.array([one.importance for one in said]),
        np.array([one.standard_error for one in said]),
    )
    intervals = np.array([one.rank_interval for one in said])
    covered = (np.abs(importances - importances.mean(axis=0)) <= said[0].width * errors).mean(axis=0)
    best, worst = possible_ranks(importances).T
    hold = ((intervals[..., 0] <= worst) & (best <= intervals[..., 1])).all(axis=1)
    ratio = np.sqrt((errors**2).mean(axis=0)) / importances.std(axis=0, ddof=1)
    return {
        "coverage": covered.mean(),
        "least": covered.min(),
        "ranks": hold.mean(),
        "error": ratio.min(),
        "greatest": ratio.max(),
        "surely": (intervals != [1, importances.shape[1]]).any(axis=(1, 2)).mean(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--jobs", type=int, default=2)
    add_option(parser)
    given = parser.parse_args()
    record = Record("intervals")
    print(ROW.format("kind", "score", "coverage", "least", "ranks", "error", "to", "surely"))
    for kind in given.kinds:
        with ThreadPoolExecutor(given.jobs) as pool:
            asked = range(given.samples)
            found = list(pool.map(lambda seed, k=kind: ranked(k, seed, given.rows, given.trees), asked))
        for name in found[0]:
            judged = judge([one[name] for one in found])
            print(ROW.format(kind, name, *(f"{value:.3f}" for value in judged.values())), flush=True)
            known = {field: round(float(value), 4) for field, value in judged.items()}
            record.add(case=kind, size=f"{given.rows} rows", baseline=name, **known, samples=given.samples)
    if given.record:
        print(record.write(given.record))


if __name__ == "__main__":
    main()
