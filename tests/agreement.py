"""How far two groups of rankings agree, and the rankings of one group among themselves."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product

import numpy as np
from scipy.stats import spearmanr

import ferrank as fr

Importances = Sequence[np.ndarray]


def spearman(a: np.ndarray, b: np.ndarray) -> float:
    return float(spearmanr(a, b).statistic)


def between(ours: Importances, theirs: Importances) -> float:
    """Mean Spearman correlation over all pairs of one of ours and one of theirs."""
    return float(np.mean([spearman(a, b) for a, b in product(ours, theirs)]))


def within(rankings: Importances) -> float:
    """Mean Spearman correlation over all pairs: what another seed alone changes."""
    return float(np.mean([spearman(a, b) for a, b in combinations(rankings, 2)]))


def bits(ranking: fr.Ranking) -> list[bytes]:
    return [
        part.tobytes()
        for s in ranking.scores.values()
        for part in (s.importance, s.standard_error, s.monte_carlo_error, s.rank)
    ]
