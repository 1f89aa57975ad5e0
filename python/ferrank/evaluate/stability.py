"""How alike several rankings of the same features are: Slavkov et al. 2020, "Stability of feature ranking".

The indicator at i is the mean over all pairs of rankings of the Canberra distance between their top-i lists
(Eq. 2), over its expectation for random rankings (Eq. 3): 0 for identical rankings, about 1 for random ones.
The paper takes the exact expectation for i < 8 and an approximation above; in closed form it costs no more,
so it is exact here everywhere. The approximation is printed with wrong signs; the right one, (i+1)(2n−i)/n ·
log 4 − (2in + 3n − i − i²)/n, is within 1 % of ours.

Where the rankings come from is for the caller to choose: :func:`resample` ranks resampled rows, the folds of
:func:`~ferrank.evaluate.curves` give theirs, and :func:`of_trees` looks at the trees of one forest.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import digamma
from scipy.stats import rankdata

from ferrank.data.parameters import count_of, whole_numbers
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.ranks import Several, align, kendall, ranks, spearman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Stability", "expected_canberra", "stability"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class Stability:
    """How alike rankings are.

    Attributes
    ----------
    n_rankings : int
    n_features : int
    sizes : array of shape (n_sizes,)
        The i of the top-i lists.
    canberra : array of shape (n_sizes,)
        The indicator of Slavkov et al. 2020 Eq. 4; 0 for identical, about 1 for random rankings.
    jaccard : array of shape (n_sizes,)
        Mean over pairs of the Jaccard index of their top-i sets; 1 for identical ones.
    spearman, kendall : float
        Mean over pairs of Spearman's ρ and Kendall's τ-b of the whole rankings; for ρ equal importances share
        the mean of their ranks.

    Examples
    --------
    >>> from ferrank.evaluate import stability
    >>> found = stability([[3.0, 2.0, 1.0], [3.0, 1.0, 2.0]])
    >>> found.n_rankings, found.sizes.tolist(), found.spearman
    (2, [1, 2, 3], 0.5)
    """

    n_rankings: int
    n_features: int
    sizes: Array
    canberra: Array
    jaccard: Array
    spearman: float
    kendall: float

    def to_pandas(self) -> Any:
        """Return a frame with the columns ``size, canberra, jaccard``."""
        import pandas as pd

        return pd.DataFrame({"size": self.sizes, "canberra": self.canberra, "jaccard": self.jaccard})

    def plot(self, path: Any = None) -> "Figure":
        """Draw the indicator and the Jaccard index by size; see :meth:`ferrank.Ranking.plot`."""
        from ferrank.evaluate.plots import plot_stability

        return plot_stability({"": self}, path)


def stability(
    rankings: Several, *, sizes: Sequence[int] | Array | None = None, score: str | None = None
) -> Stability:
    """Measure how alike rankings are.

    Parameters
    ----------
    rankings : sequence of Ranking, or array of shape (n_rankings, n_features)
        At least 2, of the same features; arrays hold importances.
    sizes : sequence of int, optional
        The i of the top-i lists, in 1 … n_features; by default all.
    score : str, optional
        The score to take from each ranking; by default its first.

    Returns
    -------
    Stability

    Examples
    --------
    >>> same = [[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]
    >>> found = stability(same)
    >>> found.canberra.tolist(), found.jaccard.tolist(), found.spearman
    ([0.0, 0.0, 0.0], [1.0, 1.0, 1.0], 1.0)
    >>> stability([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]).canberra.round(2).tolist()
    [1.5, 1.45, 1.45]
    """
    features, importances = align(rankings, score)
    if len(importances) < 2:
        raise DataError("rankings: one alone is neither stable nor unstable; at least 2 are needed")
    n = len(features)
    chosen = np.arange(1, n + 1) if sizes is None else whole_numbers(sizes, "sizes")
    if chosen.ndim != 1 or not ((chosen >= 1) & (chosen <= n)).all():
        raise SettingError(f"sizes: must lie in 1 … {n}, the number of features")
    found = ranks(importances)
    expected = np.array([expected_canberra(n, int(size)) for size in chosen])
    return Stability(
        len(found),
        n,
        chosen,
        # A single feature, or i = n = 1, leaves nothing to differ in.
        np.divide(_canberra(found, chosen), expected, out=np.zeros(len(chosen)), where=expected > 0),
        np.array([_jaccard(found <= size) for size in chosen]),
        _mean(spearman(rankdata(-importances, axis=1))),
        _mean(kendall(found)),
    )


def expected_canberra(n: int, i: int) -> float:
    """Return Ca(n, i), the expected Canberra distance of the top-i lists of two random rankings.

    The sum of |a − b| / (a + b) over ranks a, b ≤ i, and twice that over a ≤ i < b, with b taken as i + 1,
    divided by n; harmonic numbers give the inner sums.

    Parameters
    ----------
    n : int
        Features.
    i : int
        Size of the lists, 1 … n.

    Examples
    --------
    >>> round(expected_canberra(100, 20), 2)
    13.62
    """
    n, i = count_of(n, "n", least=1), count_of(i, "i", least=1)
    if i > n:
        raise SettingError(f"i: {i} is not in 1 … {n}, the number of features")
    b = np.arange(1, i + 2, dtype=np.float64)
    # Σ_{a<b} (b − a) / (b + a), for each b.
    below = 2 * b * (digamma(2 * b) - digamma(b + 1)) - (b - 1)
    return float((2 * below[:-1].sum() + 2 * (n - i) * below[-1]) / n)


def _canberra(found: Array, sizes: Array) -> Array:
    """Return the mean distance of Eq. 2 over pairs, by size.

    A feature in the top i of both rankings adds the same to all larger lists; those sums are made once, by
    the size at which they begin. One in the top i of one ranking alone adds what its rank there says, as
    often as there are rankings that leave it out.
    """
    n_rankings, n = found.shape
    both = np.zeros(n + 1)
    for a, b in combinations(found, 2):
        both += np.bincount(np.maximum(a, b), np.abs(a - b) / (a + b), n + 1)
    both = np.cumsum(both)
    n_pairs = n_rankings * (n_rankings - 1) / 2
    distances = []
    for size in sizes:
        inside = found <= size
        outside = n_rankings - inside.sum(axis=0)
        one = np.where(inside, (size + 1 - found) / (size + 1 + found), 0) * outside
        distances.append((both[size] + one.sum()) / n_pairs)
    return np.array(distances)


def _jaccard(inside: Array) -> float:
    """Return the mean over pairs of rows of |A ∩ B| / |A ∪ B|; two empty sets are alike."""
    members = inside.astype(np.float64)
    shared = members @ members.T
    own = np.diag(shared)
    union = own[:, None] + own - shared
    index = np.divide(shared, union, out=np.ones_like(shared), where=union > 0)
    return _mean(index)


def _mean(index: Array) -> float:
    """Return the mean over pairs of rankings."""
    return float(index[np.triu_indices(len(index), 1)].mean())
