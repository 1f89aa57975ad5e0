"""Laplacian scores: features that change little between rows that belong together.

After Petković et al. 2023, §3 and §6.6.

Rows belong together by their targets where they are known, and by their features elsewhere, so unlabelled
rows take part. The score of a feature f is fᵀLf / fᵀDf, f centred by D: what it varies along the edges of a
graph, over what it varies at all; less is better, and the importance is S + s − score.

Nominal features become indicators, whose scores are added up, as in Petković et al. 2023 §6.6. Constant
features, for which the score is 0/0 and which the authors removed by hand, are the worst.

The authors of Petković et al. 2023 wrote their own versions of the two methods, and published neither these
nor their constants. What is here follows the methods' descriptions; the bandwidths (1 on squared differences
that are scaled to [0, 1]) and the weight of labelled pairs are ours.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ferrank.errors import SettingError
from ferrank.evaluate.baselines.base import Baseline, by_feature, heat_graph, invert, refuse
from ferrank.evaluate.rows import Encoder, Rows

__all__ = ["LaplaceScore", "MultiLabelLaplace"]

Array = np.ndarray[Any, Any]

_MOST_ROWS = 50_000
_MOST_IN_A_MATRIX = 5_000
"""Rows of which a matrix of all pairs is held."""
_BANDWIDTH = 1.0
_WHY = "compares all pairs of rows"


class LaplaceScore(Baseline):
    """Rank for regression by the semi-supervised Laplacian score (Doquire and Verleysen 2013).

    Each row is joined with its nearest ones: labelled rows by their targets, pairs with an unlabelled row by
    their features. An edge weighs exp(−d²), and ``C`` times that between labelled rows; d is the difference
    of the targets over their range, or the root mean squared difference of the features.

    Parameters
    ----------
    task : str, optional
        Only "regression".
    n_neighbors : int, default=10
        Nearest rows of each.
    C : float, default=5.0
        Weight of an edge between labelled rows; 1 is that of the others.
    n_features_to_select : int, float or None, default=None
        As in :class:`ferrank.ForestRanker`.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).random((2, 100))
    >>> ferrank.rank({"a": a, "b": b, "y": np.where(a < 0.9, a, np.nan)}, "y", ranker=LaplaceScore()).top(1)
    ['a']
    """

    name = "laplace"
    tasks = ("regression",)
    semi_supervised = True

    def __init__(
        self,
        task: str | None = None,
        *,
        n_neighbors: int = 10,
        C: float = 5.0,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.n_neighbors = n_neighbors
        self.C = C
        self.n_features_to_select = n_features_to_select

    def importances(self, rows: Rows) -> Array:
        """Return the importances, of shape (n_features,)."""
        _check(rows, self, _MOST_ROWS)
        if not self.C > 0:
            raise SettingError(f"C: {self.C} must be above 0")
        encoder = Encoder(rows)
        X = encoder.encode()
        y = rows.target_numbers()[:, 0]
        known = np.flatnonzero(~np.isnan(y))
        span = np.ptp(y[known]) or 1.0
        by_features = heat_graph(X, self.n_neighbors, _BANDWIDTH).tocoo()
        rest = np.isnan(y[by_features.coords[0]]) | np.isnan(y[by_features.coords[1]])
        by_target = heat_graph(y[known, None] / span, self.n_neighbors, _BANDWIDTH).tocoo()
        first, second = (
            np.concatenate([by_features.coords[end][rest], known[by_target.coords[end]]]) for end in (0, 1)
        )
        weights = np.concatenate([by_features.data[rest], self.C * by_target.data])
        graph = csr_array((weights, (first, second)), by_features.shape)
        degree = np.asarray(graph.sum(axis=1)).ravel()
        centred = X - (degree @ X) / (degree.sum() or 1.0)
        return _scores(
            _along(graph, degree, centred), (degree[:, None] * centred**2).sum(axis=0), encoder.owner
        )


class MultiLabelLaplace(Baseline):
    """Rank for label sets by the soft-constrained Laplacian score (Alalga, Benabdeslem and Taleb 2016).

    The constrained score has edges between rows that must go together, and takes rows that must not apart in
    the denominator. Here label sets say softly to which degree two labelled rows are the one or the other:
    their Jaccard index, or what it lacks to 1. Pairs with an unlabelled row are joined as nearest neighbours.

    Parameters
    ----------
    task : str, optional
        Only "multi-label".
    n_neighbors : int, default=10
        Nearest rows of each.
    n_features_to_select : int, float or None, default=None
        As in :class:`ferrank.ForestRanker`.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b, c = np.random.default_rng(0).random((3, 100))
    >>> data = {"a": a, "b": b, "c": c, "p": a > 0.5, "q": a > 0.3}
    >>> ferrank.rank(data, ["p", "q"], ranker=MultiLabelLaplace()).top(1)
    ['a']
    """

    name = "multilabel_laplace"
    tasks = ("multi-label",)
    semi_supervised = True

    def __init__(
        self,
        task: str | None = None,
        *,
        n_neighbors: int = 10,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.n_neighbors = n_neighbors
        self.n_features_to_select = n_features_to_select

    def importances(self, rows: Rows) -> Array:
        """Return the importances, of shape (n_features,)."""
        _check(rows, self, _MOST_IN_A_MATRIX)
        encoder = Encoder(rows)
        X = encoder.encode()
        known = rows.labelled()
        together = heat_graph(X, self.n_neighbors, _BANDWIDTH).toarray()
        pairs = np.ix_(known, known)
        alike = _jaccard(rows.target_numbers()[known])
        together[pairs] = alike
        apart = np.zeros_like(together)
        apart[pairs] = 1 - alike
        degree = together.sum(axis=1)
        spread = np.where(known, 0.0, degree)[:, None] * (X - X.mean(axis=0)) ** 2
        within = _along(together, degree, X)
        return _scores(within, _along(apart, apart.sum(axis=1), X) + spread.sum(axis=0), encoder.owner)


def _check(rows: Rows, ranker: LaplaceScore | MultiLabelLaplace, most: int) -> None:
    refuse(rows, ranker.name, rows.n_rows, most, "rows", _WHY)
    if ranker.n_neighbors < 1:
        raise SettingError(f"n_neighbors: {ranker.n_neighbors} must be 1 or more")


def _along(graph: Any, degree: Array, X: Array) -> Array:
    """Return fᵀLf for each column f of X, half the sum of S_ij (f_i − f_j)²."""
    return np.asarray((degree[:, None] * X**2).sum(axis=0) - (X * (graph @ X)).sum(axis=0))


def _jaccard(labels: Array) -> Array:
    """Return |A ∩ B| / |A ∪ B| of all pairs of label sets; two empty ones are alike."""
    shared = labels @ labels.T
    sizes = labels.sum(axis=1)
    union = sizes[:, None] + sizes - shared
    return np.asarray(np.divide(shared, union, out=np.ones_like(shared), where=union > 0))


def _scores(within: Array, spread: Array, owner: Array) -> Array:
    """Return the importances by the ratios of columns; a column that does not vary says nothing."""
    varies = spread > 1e-12
    ratio = np.divide(within, spread, out=np.zeros_like(within), where=varies)
    totals = by_feature(ratio, owner)
    return invert(np.where(by_feature(varies.astype(float), owner) > 0, totals, np.nan))
