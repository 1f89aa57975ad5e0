"""Laplacian scores: features that change little between rows that belong together.

After Petković et al. 2023, §3 and §6.6.

Rows belong together by their targets where they are known, and by their features elsewhere, so unlabelled
rows take part. The score of a feature f is fᵀLf / fᵀDf, f centred by D: what it varies along the edges of a
graph, over what it varies at all; less is better, and the importance is S + s − score.

The methods were published for one number and for label sets. Several targets and hierarchies, which the
authors of Petković et al. 2023 leave to the future, are treated as by forests and Relief. With several
targets d² is the mean over them: of squared differences over ranges, and of 0 or 1 for classes. Sets of a
hierarchy hold the labels above theirs, and their Jaccard index has the weights of a forest.

Nominal features become indicators, whose scores are added up, as in Petković et al. 2023 §6.6. Constant
features, for which the score is 0/0 and which the authors removed by hand, are the worst.

The authors of Petković et al. 2023 wrote their own versions of the two methods, and published neither these
nor their constants. What is here follows the methods' descriptions; the bandwidths (1 on squared differences
that are scaled to [0, 1]) and the weight of labelled pairs are ours.
"""

from typing import Any

import numpy as np
from scipy.sparse import csr_array

from ferrank.data.parameters import count_of
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
    """Rank for numbers by the semi-supervised Laplacian score (Doquire and Verleysen 2013).

    Each row is joined with its nearest ones: labelled rows by their targets, pairs with an unlabelled row by
    their features. An edge weighs exp(−d²), and ``C`` times that between labelled rows; d is the root mean
    squared difference of the targets over their ranges, or of the features. A row that misses one of
    several targets counts as unlabelled.

    Parameters
    ----------
    task : {"regression", "multi-target"}, optional
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
    tasks = ("regression", "multi-target")
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
        is_known = rows.labelled()
        known = np.flatnonzero(is_known)
        by_features = heat_graph(X, self.n_neighbors, _BANDWIDTH).tocoo()
        rest = ~(is_known[by_features.coords[0]] & is_known[by_features.coords[1]])
        targets = _scaled_targets(rows.target_numbers()[known], rows.nominal_targets())
        by_target = heat_graph(targets, self.n_neighbors, _BANDWIDTH).tocoo()
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
    Of a hierarchy, sets hold the labels above theirs, and labels count by their weights.

    Parameters
    ----------
    task : {"multi-label", "hierarchical"}, optional
    hierarchy, hierarchy_decay
        As in :class:`ferrank.ForestRanker`.
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
    tasks = ("multi-label", "hierarchical")
    semi_supervised = True

    def __init__(
        self,
        task: str | None = None,
        *,
        hierarchy: Any = None,
        hierarchy_decay: float = 0.75,
        n_neighbors: int = 10,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.hierarchy = hierarchy
        self.hierarchy_decay = hierarchy_decay
        self.n_neighbors = n_neighbors
        self.n_features_to_select = n_features_to_select

    def importances(self, rows: Rows) -> Array:
        """Return the importances, of shape (n_features,)."""
        _check(rows, self, _MOST_IN_A_MATRIX)
        encoder = Encoder(rows)
        X = encoder.encode()
        known = rows.labelled() if rows.labels is None else rows.labels.known
        if rows.labels is None:
            sets = rows.label_indicators()
            weights = np.ones(sets.shape[1])
        else:
            sets, weights = rows.labels.occurring()
        together = heat_graph(X, self.n_neighbors, _BANDWIDTH).toarray()
        pairs = np.ix_(known, known)
        alike = _jaccard(sets[known], weights)
        together[pairs] = alike
        apart = np.zeros_like(together)
        apart[pairs] = 1 - alike
        degree = together.sum(axis=1)
        spread = np.where(known, 0.0, degree)[:, None] * (X - X.mean(axis=0)) ** 2
        within = _along(together, degree, X)
        return _scores(within, _along(apart, apart.sum(axis=1), X) + spread.sum(axis=0), encoder.owner)


def _check(rows: Rows, ranker: LaplaceScore | MultiLabelLaplace, most: int) -> None:
    refuse(rows, ranker.name, rows.n_rows, most, "rows", _WHY)
    count_of(ranker.n_neighbors, "n_neighbors", "neighbors", least=1)


def _along(graph: Any, degree: Array, X: Array) -> Array:
    """Return fᵀLf for each column f of X, half the sum of S_ij (f_i − f_j)²."""
    return np.asarray((degree[:, None] * X**2).sum(axis=0) - (X * (graph @ X)).sum(axis=0))


def _scaled_targets(targets: Array, nominal: list[bool]) -> Array:
    """Return columns in which rows differ as their targets do, each over its range, by the mean square.

    Two classes are 1 apart.
    """
    columns: list[Array] = []
    for target, is_nominal in zip(targets.T, nominal, strict=True):
        if is_nominal:
            columns.extend((target == code) * np.sqrt(0.5) for code in np.unique(target))
        else:
            columns.append(target / (np.ptp(target) or 1.0))
    return np.asarray(np.column_stack(columns) * np.sqrt(len(columns) / len(nominal)))


def _jaccard(labels: Array, weights: Array) -> Array:
    """Return |A ∩ B| / |A ∪ B| of all pairs of label sets, by their weights; two empty ones are alike."""
    shared = (labels * weights) @ labels.T
    sizes = labels @ weights
    union = sizes[:, None] + sizes - shared
    return np.asarray(np.divide(shared, union, out=np.ones_like(shared), where=union > 0))


def _scores(within: Array, spread: Array, owner: Array) -> Array:
    """Return the importances by the ratios of columns; a column that does not vary says nothing."""
    varies = spread > 1e-12
    ratio = np.divide(within, spread, out=np.zeros_like(within), where=varies)
    totals = by_feature(ratio, owner)
    return invert(np.where(by_feature(varies.astype(float), owner) > 0, totals, np.nan))
