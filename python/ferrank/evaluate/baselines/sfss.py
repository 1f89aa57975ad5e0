"""Sparse regression on a graph: SFSS (Ma et al. 2012; Petković et al. 2023, §3).

    min over F, W, b of  tr(FᵀLF) + tr((F − Y)ᵀU(F − Y)) + μ (‖XW + 1bᵀ − F‖² + γ ‖W‖₂,₁)

F are the labels as predicted along the graph, U holds them to the known labels, and the rows of W, which the
norm makes sparse, say how much each feature matters. For given W the norm is that of weighted squares (D
below), and W, b and F follow in closed form:

    W = AF,  A = (XᵀHX + γD)⁻¹XᵀH,  H centres;   F = (L + U + μ(H − HXA))⁻¹UY
"""

from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from ferrank.errors import DataError, SettingError
from ferrank.evaluate.baselines.base import Baseline, by_feature, heat_graph, refuse
from ferrank.evaluate.rows import Encoder, Rows

__all__ = ["Sfss"]

Array = np.ndarray[Any, Any]

_MOST = 4_000
_BANDWIDTH = 1.0
_LABELLED, _UNLABELLED = 1e6, 1.0
"""What U has for rows whose labels are known (the paper: infinity), and for others."""
_SMOOTH = 1e-8
_SETTLED = 1e-4


class Sfss(Baseline):
    """Rank for label sets by a sparse linear model that is smooth along a graph of the rows.

    Parameters
    ----------
    task : str, optional
        Only "multi-label".
    n_neighbors : int, default=10
        Nearest rows of each, in the graph.
    mu : float, default=1.0
        Weight of the linear model.
    gamma : float, default=1.0
        Weight of its sparseness.
    max_iter : int, default=50
        Rounds at most; it ends when the weights have settled.
    n_features_to_select : int, float or None, default=None
        As in :class:`ferrank.ForestRanker`.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b, c = np.random.default_rng(0).random((3, 100))
    >>> ferrank.rank({"a": a, "b": b, "c": c, "p": a > 0.5, "q": a > 0.3}, ["p", "q"], ranker=Sfss()).top(1)
    ['a']
    """

    name = "sfss"
    tasks = ("multi-label",)
    semi_supervised = True

    def __init__(
        self,
        task: str | None = None,
        *,
        n_neighbors: int = 10,
        mu: float = 1.0,
        gamma: float = 1.0,
        max_iter: int = 50,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.n_neighbors = n_neighbors
        self.mu = mu
        self.gamma = gamma
        self.max_iter = max_iter
        self.n_features_to_select = n_features_to_select

    def importances(self, rows: Rows) -> Array:
        """Return the importances, of shape (n_features,)."""
        checks = (
            ("n_neighbors", self.n_neighbors),
            ("mu", self.mu),
            ("gamma", self.gamma),
            ("max_iter", self.max_iter),
        )
        for setting, value in checks:
            if not value > 0:
                raise SettingError(f"{setting}: {value} must be above 0")
        why = "solves for as many unknowns again and again"
        refuse(rows, self.name, rows.n_rows, _MOST, "rows", why)
        encoder = Encoder(rows)
        X = encoder.encode()
        refuse(rows, self.name, X.shape[1], _MOST, "features with their categories", why)
        weights = self._weights(X, rows.target_numbers(), rows.labelled(), rows.source)
        return np.sqrt(by_feature((weights**2).sum(axis=1), encoder.owner))

    def _weights(self, X: Array, Y: Array, known: Array, source: str) -> Array:
        graph = heat_graph(X, self.n_neighbors, _BANDWIDTH).toarray()
        laplacian = np.diag(graph.sum(axis=1)) - graph
        held = np.where(known, _LABELLED, _UNLABELLED)
        wanted = held[:, None] * np.where(known[:, None], Y, 0.0)
        centred = X - X.mean(axis=0)
        inner = centred.T @ centred
        centring = np.eye(len(X)) - 1 / len(X)
        sparse = np.ones(X.shape[1])
        weights = np.zeros((X.shape[1], Y.shape[1]))
        try:
            for _ in range(self.max_iter):
                solved = cho_solve(cho_factor(inner + self.gamma * np.diag(sparse)), centred.T)
                model = centring - centred @ solved
                predicted = cho_solve(cho_factor(laplacian + np.diag(held) + self.mu * model), wanted)
                before, weights = weights, solved @ predicted
                sparse = 0.5 / np.sqrt((weights**2).sum(axis=1) + _SMOOTH)
                if np.abs(weights - before).max() <= _SETTLED * np.abs(weights).max():
                    break
        except LinAlgError as error:
            raise DataError(f"{source}: sfss found no solution ({error}); use a greater gamma") from error
        return weights
