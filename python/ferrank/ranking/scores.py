"""Importances under one score, with standard errors and ranks."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ferrank.errors import DataError

__all__ = ["Floats", "Ranks", "ScoreRanking", "rank_importances"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ranks = np.ndarray[Any, np.dtype[np.uint32]]

_INTERVAL = 1.96
"""Standard errors to either side of an importance that make its 95 % interval."""


@dataclass(frozen=True, eq=False)
class ScoreRanking:
    """Importances under one score. Arrays are in feature order."""

    importance: Floats
    """(n_features,); mean over trees or queries"""
    std_error: Floats
    """(n_features,); standard error of that mean; NaN with a single tree or query"""
    rank: Ranks
    """(n_features,); 1 is the most important; equal importances share the smallest of their ranks"""
    rank_interval: Ranks
    """(n_features, 2); best and worst rank that the 95 % intervals of the importances allow"""
    by_target: Floats | None = None
    """(n_features, n_targets); the part that each target makes; None unless asked for"""


def rank_importances(importance: Floats, std_error: Any, n_features: int) -> ScoreRanking:
    """Return ranks and rank intervals of importances; without standard errors every rank is possible."""
    if importance.shape != (n_features,):
        raise DataError(f"importances: an array of shape {importance.shape} for {n_features} features")
    errors = np.full(n_features, np.nan) if std_error is None else np.asarray(std_error, dtype=np.float64)
    interval = np.tile(np.array([1, n_features], dtype=np.uint32), (n_features, 1))
    if not np.isnan(errors).any():
        # As the engine does it: 1 + those surely above, and all but those surely below.
        low, high = importance - _INTERVAL * errors, importance + _INTERVAL * errors
        interval[:, 0] = 1 + n_features - np.searchsorted(np.sort(low), high, side="right")
        interval[:, 1] = n_features - np.searchsorted(np.sort(high), low, side="left")
    rank = 1 + n_features - np.searchsorted(np.sort(importance), importance, side="right")
    return ScoreRanking(importance, errors, rank.astype(np.uint32), interval)
