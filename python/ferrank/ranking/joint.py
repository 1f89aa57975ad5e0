"""Rankings of the same features by several rankers, joined into one."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrank.ranking.relevance import EVIDENCE, Relevance
from ferrank.ranking.result import Ranking
from ferrank.ranking.scores import rank_importances

__all__ = ["join"]


def join(rankings: Sequence[Ranking], settings: dict[str, Any], seconds: float | None) -> Ranking:
    """Return one ranking by the evidence of all ``rankings``, which keeps their scores.

    The importance of a feature is minus the decimal logarithm of the harmonic mean of its p-values (Wilson
    2019). Scores on different scales count the same, and a feature that only one of the rankers can find is
    found. Verdicts follow from Cauchy's combination of the p-values, which is the same where they are small.
    """
    first = rankings[0]
    model = next((ranking for ranking in rankings if ranking.model_error is not None), first)
    parts = [ranking.relevance for ranking in rankings if ranking.relevance is not None]
    evidence = np.logaddexp.reduce([part.evidence * np.log(10) for part in parts]) / np.log(10)
    evidence -= np.log10(len(parts))
    scores = {EVIDENCE: rank_importances(evidence, None, len(first.features))}
    for ranking in rankings:
        scores |= ranking.scores
    return Ranking(
        first.task,
        first.n_rows,
        first.features,
        first.targets,
        scores,
        first.n_unlabelled,
        settings,
        seconds,
        relevance=Relevance.joined(parts),
        model_error=model.model_error,
        no_model_error=model.no_model_error,
    )
