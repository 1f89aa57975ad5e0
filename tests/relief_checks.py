"""Relief importances under several settings, compared with expected ones."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import ferrank as fr
from tables import NOMINAL, NUMERIC

SCHEMES = [(1, None), (4, None), (4, 2.0), (1, 2.0)]
MANY = {"n_neighbors": (1, 4), "sigma": (None, 2.0)}

RULES = ("surf", "surf_star", "multisurf", "multisurf_star")
ALL = (*NUMERIC, *NOMINAL)
CLASSES = st.sampled_from([["classes"], ["two"], ["several"]])
TARGETS = st.lists(st.sampled_from(ALL), min_size=1, max_size=3)


def importances(table: pa.Table, targets: list[str], **settings) -> dict[str, np.ndarray]:
    task = settings.pop("task", None)
    ranking = fr.rank(table, targets, ranker=fr.ReliefRanker(task, n_jobs=1, **settings))
    return {name: score.importance for name, score in ranking.scores.items()}


def several(expected) -> dict[str, np.ndarray]:
    names = ("relief_k1", "relief_k4", "relief_k4_sigma2", "relief_k1_sigma2")
    return {name: expected(k=k, sigma=sigma) for name, (k, sigma) in zip(names, SCHEMES, strict=True)}


def assert_close(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-9, err_msg=name)
