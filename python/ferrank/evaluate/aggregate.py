"""One ranking out of several, and how far rankings lie apart.

Rankings are aggregated by their ranks, so importances on different scales can be put together. Robust rank
aggregation is that of Kolde, Laur, Adler and Vilo (Bioinformatics 28, 2012): a feature is ranked by how
unlikely its ranks are to be so good in random rankings.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, Literal

import numpy as np
from scipy.stats import beta

from ferrank.data.parameters import choice_of, floats_of
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.ranks import Several, align, kendall, ranks, spearman
from ferrank.ranking import Ranking

__all__ = ["aggregate", "rank_distances"]

Array = np.ndarray[Any, Any]


def aggregate(
    rankings: Several,
    method: Literal["mean_rank", "borda", "robust"] = "mean_rank",
    *,
    weights: Sequence[float] | None = None,
    score: str | None = None,
) -> Ranking:
    """Aggregate rankings of the same features.

    Parameters
    ----------
    rankings : sequence of Ranking, or array of shape (n_rankings, n_features)
        Arrays hold importances.
    method : {"mean_rank", "borda", "robust"}, default="mean_rank"
        The importance is the number of features less the mean rank; the mean share of features that a feature
        beats, where it half beats its equals (Borda's count, normalised to [0, 1]); or −log₁₀ of the ρ score
        of robust rank aggregation, which is 0 where the ranks may well be those of random rankings. ρ is
        corrected for the number of rankings, not of features.
    weights : sequence of float, optional
        Of the rankings; not with "robust".
    score : str, optional
        The score to take from each ranking; by default its first.

    Returns
    -------
    Ranking
        With the score ``method``, and its standard error over the rankings, except with "robust".

    Raises
    ------
    DataError, SettingError
        The rankings are not of the same features, or a setting is unknown.

    Examples
    --------
    >>> found = aggregate([[3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [3.0, 2.0, 1.0]], "borda")
    >>> found.top(3), found.importances().round(2).tolist()
    (['x0', 'x1', 'x2'], [0.83, 0.67, 0.0])
    """
    choice_of(method, "method", _METHODS)
    features, importances = align(rankings, score)
    share = _shares(weights, len(importances), method)
    values, errors = _METHODS[method](importances, share)
    first = rankings[0]
    about: dict[str, Any] = {"task": "unknown"}
    if isinstance(first, Ranking):
        about = {"task": first.task, "targets": first.targets, "n_rows": first.n_rows}
    return Ranking.from_importances(
        features,
        {method: values},
        standard_errors=None if errors is None else {method: errors},
        settings={"method": method, "n_rankings": len(importances)},
        **about,
    )


def rank_distances(
    rankings: Several,
    distance: Literal["spearman", "kendall", "footrule", "canberra"] = "spearman",
    *,
    score: str | None = None,
) -> Array:
    """Return the distances between rankings.

    Parameters
    ----------
    rankings : sequence of Ranking, or array of shape (n_rankings, n_features)
        Rankings of the same features, or their importances.
    distance : {"spearman", "kendall", "footrule", "canberra"}, default="spearman"
        1 − ρ (Slavkov et al. 2020 Eq. 6); 1 − τ-b; the mean absolute difference of the ranks; the mean of |a
        − b| / (a + b) over the features (Slavkov et al. 2020 Eq. 1, which has the sum), where the best
        features count most.
    score : str, optional
        The score to take from each ranking; by default its first.

    Returns
    -------
    array of shape (n_rankings, n_rankings)

    Examples
    --------
    >>> rank_distances([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]).tolist()
    [[0.0, 2.0], [2.0, 0.0]]
    """
    choice_of(distance, "distance", _DISTANCES)
    _, importances = align(rankings, score)
    return _DISTANCES[distance](ranks(importances))


def _shares(weights: Sequence[float] | None, n: int, method: str) -> Array:
    if weights is None:
        return np.full(n, 1 / n)
    if method == "robust":
        raise SettingError("weights: robust rank aggregation has none; use mean_rank or borda")
    found = floats_of(weights, "weights")
    if found.shape != (n,):
        raise DataError(f"weights: {found.size} weights for {n} rankings")
    if not np.isfinite(found).all() or (found < 0).any() or found.sum() == 0:
        raise SettingError("weights: must be finite, not negative, and not all 0")
    return np.asarray(found / found.sum())


def _mean(points: Array, share: Array) -> tuple[Array, Array | None]:
    """Return the weighted mean over rankings, and its standard error, NaN with a single ranking."""
    mean = share @ points
    with np.errstate(invalid="ignore", divide="ignore"):
        return mean, np.sqrt(share**2 @ (points - mean) ** 2 / (1 - (share**2).sum()))


def _beaten(importances: Array) -> Array:
    """Return how many features each one beats; it half beats its equals."""
    above = ranks(-importances)  # equals share the greatest of their ranks, from below
    return np.asarray((above + importances.shape[1] - ranks(importances) - 1) / 2)


def _mean_rank(importances: Array, share: Array) -> tuple[Array, Array | None]:
    return _mean(_beaten(importances), share)


def _borda(importances: Array, share: Array) -> tuple[Array, Array | None]:
    return _mean(_beaten(importances) / max(importances.shape[1] - 1, 1), share)


def _robust(importances: Array, share: Array) -> tuple[Array, Array | None]:
    n_rankings, n_features = importances.shape
    best_first = np.sort(ranks(importances) / n_features, axis=0)
    order = np.arange(1, n_rankings + 1)[:, None]
    # The k-th best of m uniform ranks follows Beta(k, m − k + 1).
    p = beta.logcdf(best_first, order, n_rankings - order + 1).min(axis=0)
    return np.maximum(-(p + np.log(n_rankings)) / np.log(10), 0.0), None


_METHODS: dict[str, Callable[[Array, Array], tuple[Array, Array | None]]] = {
    "mean_rank": _mean_rank,
    "borda": _borda,
    "robust": _robust,
}


def _between(distance: Callable[[Array, Array], float]) -> Callable[[Array], Array]:
    """Return a function of ranks that applies ``distance`` to all pairs of rows."""

    def matrix(found: Array) -> Array:
        result = np.zeros((len(found), len(found)))
        for a, b in combinations(range(len(found)), 2):
            result[a, b] = result[b, a] = distance(found[a], found[b])
        return result

    return matrix


_DISTANCES: dict[str, Callable[[Array], Array]] = {
    "spearman": lambda found: 1 - spearman(found),
    "kendall": lambda found: 1 - kendall(found),
    "footrule": _between(lambda a, b: float(np.abs(a - b).mean())),
    "canberra": _between(lambda a, b: float((np.abs(a - b) / (a + b)).mean())),
}
