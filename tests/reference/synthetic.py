"""The synthetic sets of the error-curves paper (appendix 1): binary features, some tied to the target.

A relevant set of features is one feature that equals the target with probability p, or two whose XOR does.
Each relevant set is realised once and stands in the data three times, as itself and two redundant copies of
the same values. That is how "redundant copies" is read, since only of the irrelevant features the paper says
that they are realised independently of each other; with `redundant=False` the three are drawn independently.
Irrelevant features are sets of one with p = 0.5, for which a fair coin is the same. The relevant features
come first: the single ones, then the pairs, each from p = 0.8 to 0.6.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

N_FEATURES, N_COPIES = 100, 3
PROBABILITIES = (0.8, 0.7, 0.6)
KINDS = {"single": (1,), "pair": (2,), "combined": (1, 2)}  # sizes of the relevant sets


@dataclass(frozen=True)
class Synthetic:
    X: np.ndarray  # rows x 100; 0 or 1
    y: np.ndarray  # 0 or 1
    size: np.ndarray  # of the set a feature is in; 1 for irrelevant ones
    p: np.ndarray  # P(set agrees with the target); 0.5 for irrelevant features

    @property
    def relevant(self) -> np.ndarray:
        return self.p > 0.5

    @property
    def relevance(self) -> np.ndarray:
        """Eq. 5: mutual information of the set and the target in bits, shared by its features."""
        p = self.p
        return (1 + p * np.log2(p) + (1 - p) * np.log2(1 - p)) / self.size


def synthetic(
    name: str, rng: np.random.Generator, *, n_rows: int = 1_000, redundant: bool = True
) -> Synthetic:
    """The set `single`, `pair` or `combined`."""
    y = rng.integers(0, 2, n_rows)
    columns, sizes, probabilities = [], [], []
    for size in KINDS[name]:
        for p in PROBABILITIES:
            realised = [feature_set(size, p, y, rng) for _ in range(1 if redundant else N_COPIES)]
            for copy in range(N_COPIES):
                columns += realised[0 if redundant else copy]
                sizes += [size] * size
                probabilities += [p] * size
    while len(columns) < N_FEATURES:
        columns.append(rng.integers(0, 2, n_rows))
        sizes.append(1)
        probabilities.append(0.5)
    return Synthetic(np.column_stack(columns), y, np.array(sizes), np.array(probabilities))


def feature_set(size: int, p: float, y: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """One feature, or two, of which the value or the XOR is that of the target with probability `p`."""
    agreeing = np.where(rng.random(len(y)) < p, y, 1 - y)
    if size == 1:
        return [agreeing]
    first = rng.integers(0, 2, len(y))
    return [first, first ^ agreeing]
