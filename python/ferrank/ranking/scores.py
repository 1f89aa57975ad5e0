"""Importances under one score, with errors and ranks."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrank import _core
from ferrank.errors import DataError

__all__ = ["Floats", "Ranks", "ScoreRanking", "not_utf8", "rank_importances"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ranks = np.ndarray[Any, np.dtype[np.uint32]]


@dataclass(frozen=True, eq=False)
class ScoreRanking:
    """Importances under one score. Arrays are in feature order.

    Examples
    --------
    >>> import ferrank
    >>> ranking = ferrank.Ranking.from_importances(["a", "b"], {"weight": [0.1, 0.7]}, task="regression")
    >>> score = ranking.scores["weight"]
    >>> score.importance.tolist(), score.rank.tolist()
    ([0.1, 0.7], [2, 1])
    """

    importance: Floats
    """(n_features,); mean over trees or queries"""
    standard_error: Floats
    """(n_features,); how far other rows from the same population would move it; NaN where unknown"""
    monte_carlo_error: Floats
    """(n_features,); how far more trees or queries would move it; NaN with a single tree or query"""
    rank: Ranks
    """(n_features,); 1 is the most important; equal importances share the smallest of their ranks"""
    rank_interval: Ranks
    """(n_features, 2); best and worst rank that standard errors allow, for all features at once at 95 %.

    Under ``genie3``, ``symbolic`` and ``coverage`` of a forest that is no better than guessing, every rank is
    possible.
    """
    by_target: Floats | None = None
    """(n_features, n_targets); the part that each target makes; None unless asked for"""


def not_utf8(names: Iterable[str]) -> str | None:
    """Return the first of the names that tables cannot hold, for half of a surrogate pair is in it."""

    def fits(name: str) -> bool:
        try:
            name.encode()
        except UnicodeEncodeError:
            return False
        return True

    return next((name for name in names if not fits(name)), None)


def rank_importances(importance: Floats, standard_error: Any, n_features: int) -> ScoreRanking:
    """Return ranks and rank intervals of importances; without standard errors every rank is possible."""
    if importance.shape != (n_features,):
        raise DataError(f"importances: an array of shape {importance.shape} for {n_features} features")
    unknown = np.full(n_features, np.nan)
    errors = unknown if standard_error is None else np.asarray(standard_error, dtype=np.float64)
    interval = _core.rank_intervals(importance, errors, np.inf)
    rank = 1 + n_features - np.searchsorted(np.sort(importance), importance, side="right")
    return ScoreRanking(importance, errors, unknown, rank.astype(np.uint32), interval)
