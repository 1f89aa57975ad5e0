"""Several rankings of the same features, side by side, as ranks.

Equal importances share the greatest of their ranks, so that a feature is among the best i only if no more
than i features are as important. Drawing between equals would make a ranking look unstable, and keeping them
in the order of the columns stable. The paper does not say what it does; with the greatest rank Table 3 of
Slavkov et al. 2020 comes out within 0.08, with the mean rank within 0.13.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from scipy.stats import kendalltau, rankdata

from ferrank.data.parameters import floats_of, kind_of
from ferrank.errors import DataError
from ferrank.ranking import Ranking

__all__ = ["Several", "align", "kendall", "ranks", "spearman"]

Array = np.ndarray[Any, Any]

Several = Sequence[Ranking] | Array | Sequence[Array]
"""Rankings, of which the scores asked for are taken; or importances of shape (n_rankings, n_features)."""


def align(rankings: Several, score: str | None = None) -> tuple[list[str], Array]:
    """Return the names of the features, and the importances in each ranking.

    Parameters
    ----------
    rankings : sequence of Ranking, or array of shape (n_rankings, n_features)
        Rankings name their features, and may have them in any order; features of arrays are ``x0``, ``x1`` ….
    score : str, optional
        The score to take from each ranking; by default its first.

    Returns
    -------
    features : list of str
    importances : array of shape (n_rankings, n_features)

    Raises
    ------
    DataError
        There are none, they rank different features, or an importance is not a number.
    """
    kind_of(
        rankings, (Sequence, np.ndarray), "rankings", "a sequence of rankings, or an array of importances"
    )
    if len(rankings) == 0:
        raise DataError("rankings: none were given; at least 1 is needed")
    first = rankings[0]
    if isinstance(first, Ranking):
        features = first.features
        importances = np.stack(
            [_in_order(one, features, number, score) for number, one in enumerate(rankings)]
        )
    else:
        widths = {np.asarray(one).shape for one in rankings}
        if len(widths) > 1 or len(next(iter(widths))) != 1:
            raise DataError(f"rankings: importances of shapes {sorted(widths)}; use one row for each ranking")
        importances = floats_of(rankings, "rankings")
        features = [f"x{number}" for number in range(importances.shape[1])]
    if np.isnan(importances).any():
        number, feature = np.argwhere(np.isnan(importances))[0]
        raise DataError(
            f"rankings: the importance of '{features[feature]}' in number {number + 1} is missing"
        )
    return features, importances


def _in_order(ranking: Any, features: list[str], number: int, score: str | None) -> Array:
    if not isinstance(ranking, Ranking):
        raise DataError(f"rankings: number {number + 1} is no Ranking, but the first is; use one kind")
    place = {name: i for i, name in enumerate(ranking.features)}
    for here, there in ((features, place), (ranking.features, set(features))):
        missing = next((name for name in here if name not in there), None)
        if missing is not None:
            raise DataError(
                f"rankings: number {number + 1} and the first do not rank the same features; "
                f"'{missing}' is in one of them only"
            )
    return ranking.importances(score)[[place[name] for name in features]]


def ranks(importances: Array) -> Array:
    """Return the ranks in each row, 1 for the greatest importance; equals share the greatest of theirs.

    >>> ranks(np.array([[3.0, 1.0, 1.0]])).tolist()
    [[1, 3, 3]]
    """
    return np.asarray(rankdata(-importances, method="max", axis=-1), dtype=np.int64)


def spearman(found: Array) -> Array:
    """Return Spearman's ρ, Pearson's r of the ranks, between all rows; see :func:`kendall`."""
    centred = found - found.mean(axis=1, keepdims=True)
    return _normalised(centred @ centred.T)


def kendall(found: Array) -> Array:
    """Return Kendall's τ-b between all rows of ranks: the share of pairs of features in the same order.

    A ranking of equals has neither coefficient; it has 1 with its like and 0 with all others.

    >>> kendall(np.array([[1, 2, 3], [1, 3, 2], [3, 3, 3]])).round(2).tolist()
    [[1.0, 0.33, 0.0], [0.33, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    tau = np.eye(len(found))
    constant = (found == found[:, :1]).all(axis=1)
    for a, b in combinations(range(len(found)), 2):
        if constant[a] or constant[b]:
            value = float(constant[a] and constant[b])
        else:
            value = float(kendalltau(found[a], found[b]).statistic)
        tau[a, b] = tau[b, a] = value
    return tau


def _normalised(products: Array) -> Array:
    """Return inner products over the norms; of a row without a norm, whether the other is the same."""
    squares = np.diag(products)
    scale = np.sqrt(squares[:, None] * squares)
    same = (squares[:, None] == 0) & (squares == 0)
    return np.asarray(np.divide(products, scale, out=same.astype(np.float64), where=scale > 0))
