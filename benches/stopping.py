"""The best features of `until="stable"` beside those of all trees: `python benches/stopping.py --help`.

Six kinds of data on which trees of few rows rank otherwise than trees of many, each with strengths drawn
anew for each seed, and noise. A run is right if its best features are those of a run with all trees on all
rows.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd

import ferrank as fr

Table = tuple[dict[str, np.ndarray], np.ndarray]
Rng = np.random.Generator
SMALL = {"n_estimators": 32, "max_samples": 1_000, "standard_errors": False}


def numbered(name: str, columns: np.ndarray) -> dict[str, np.ndarray]:
    return {f"{name}{i}": column for i, column in enumerate(columns.T)}


def words(rng: Rng, rows: int, values: int) -> np.ndarray:
    return np.array([f"v{i}" for i in range(values)])[rng.integers(0, values, rows)]


def exclusive_or(rng: Rng, rows: int) -> Table:
    """A main effect, and two features that tell nothing alone."""
    x, n = rng.random((rows, 3)), rng.random((rows, int(rng.choice([5, 12, 20]))))
    y = rng.uniform(0.5, 1.7) * x[:, 0] + ((x[:, 1] > 0.5) ^ (x[:, 2] > 0.5))
    return numbered("x", x) | numbered("n", n), y


def product(rng: Rng, rows: int) -> Table:
    """Two main effects and a product."""
    x, n = rng.normal(size=(rows, 4)), rng.normal(size=(rows, int(rng.choice([5, 12, 20]))))
    y = rng.uniform(0.5, 1.1) * x[:, 0] + 0.3 * x[:, 3] + x[:, 1] * x[:, 2] + 0.5 * rng.normal(size=rows)
    return numbered("x", x) | numbered("n", n), y


def rare_class(rng: Rng, rows: int) -> Table:
    """A class of 1 to 3 %, by a main effect and two features together."""
    x, n, least = rng.normal(size=(rows, 3)), rng.normal(size=(rows, 6)), rng.uniform(1.2, 2.0)
    both = (x[:, 1] > least) & (x[:, 2] > least)
    share = np.where(both, 0.6, np.minimum(0.006 * np.exp(rng.uniform(0.5, 1.3) * x[:, 0]), 1.0))
    return numbered("x", x) | numbered("n", n), np.where(rng.random(rows) < share, "rare", "usual")


def cardinality(rng: Rng, rows: int) -> Table:
    """Two binary effects, and noise of 30 to 200 values."""
    effect, bits = rng.uniform(0.5, 2.0), rng.integers(0, 2, (rows, 2)).astype(float)
    noise = {f"k{values}": words(rng, rows, values) for values in (30, 100, 200)}
    y = effect * (bits[:, 0] + 0.8 * bits[:, 1]) + 0.5 * rng.normal(size=rows)
    return numbered("x", bits) | noise | numbered("n", rng.normal(size=(rows, 2))), y


def rare_category(rng: Rng, rows: int) -> Table:
    """A strong effect within a category of 0.2 to 1 % of the rows."""
    share = rng.choice([0.002, 0.005, 0.01])
    category = rng.choice(5, rows, p=[*np.full(4, (1 - share) / 4), share])
    x, n = rng.normal(size=(rows, 2)), rng.normal(size=(rows, 5))
    strong = rng.uniform(0.3, 0.6) / share**0.5 * (category == 4) * x[:, 1]
    y = strong + 0.3 * x[:, 0] + 0.3 * rng.normal(size=rows)
    return {"c": np.array(list("abcde"))[category]} | numbered("x", x) | numbered("n", n), y


def waves(rng: Rng, rows: int) -> Table:
    """A step, which few rows show in full, and a square wave of 20 to 80 edges."""
    x, n = rng.random((rows, 2)), rng.random((rows, 6))
    wave = np.sign(np.sin(rng.choice([20, 40, 80]) * np.pi * x[:, 1]))
    y = (x[:, 0] > 0.5) + rng.uniform(0.7, 1.5) * wave + 0.3 * rng.normal(size=rows)
    return numbered("x", x) | numbered("n", n), y


def noise(rng: Rng, rows: int) -> Table:
    """Noise with few and many values."""
    many = {f"k{values}": words(rng, rows, values) for values in (2, 20, 100)}
    return many | numbered("n", rng.normal(size=(rows, 4))), rng.normal(size=rows)


MISLEADING = (exclusive_or, product, rare_class, cardinality, rare_category, waves)
KINDS: dict[str, Callable[[Rng, int], Table]] = {kind.__name__: kind for kind in (*MISLEADING, noise)}


def trial(kind: str, seed: int, rows: int, score: str) -> tuple[str, bool, bool]:
    """The reason, whether what it settled on is wrong, and whether small bags are."""
    columns, y = KINDS[kind](np.random.default_rng(seed), rows)
    X, top = pd.DataFrame(columns), 1 + seed % 3

    ranker, scores = (fr.ReliefRanker, None) if score == "relief" else (fr.ForestRanker, (score,))

    def ranked(**settings: object) -> fr.Ranking:
        chosen = settings if scores is None else {"scores": scores, **settings}
        return ranker(random_state=seed, n_jobs=1, **chosen).fit(X, y).result_

    found = ranked(until="stable", stable_top=top)
    assert found.stopped is not None
    whole = ranked() if found.stopped.reason == "settled" else found
    small = whole if scores is None else ranked(**SMALL)
    best = set(whole.top(top))
    return found.stopped.reason, set(found.top(top)) != best, set(small.top(top)) != best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--score", default="genie3", help="of the forest, or relief")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    print(f"{'kind':<14} settled  as all say  small bags are wrong  otherwise")
    for kind in arguments.kinds:
        with ThreadPoolExecutor(arguments.jobs) as pool:
            seeds = range(arguments.seeds)
            found = list(pool.map(lambda s, k=kind: trial(k, s, arguments.rows, arguments.score), seeds))
        reasons = Counter(reason for reason, *_ in found)
        settled = [wrong for reason, wrong, *_ in found if reason == "settled"]
        right = f"{100 - 100 * np.mean(settled):.0f} %" if settled else "–"
        small = f"{100 * np.mean([misled for *_, misled in found]):.0f} %"
        others = {reason: n for reason, n in reasons.items() if reason != "settled"}
        print(f"{kind:<14} {len(settled):>7}  {right:>10}  {small:>20}  {others}", flush=True)


if __name__ == "__main__":
    main()
