"""How well clusters of the rows tell the targets: whether rows without one can help (ssl-ranking §6.2)."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from ferrank.dataset import open_data, roles_of
from ferrank.errors import SettingError
from ferrank.tuning import read_table

__all__ = ["clustering_value"]

_CLUSTERS = 8
_RUNS = 5

Matrix = np.ndarray[Any, Any]


def clustering_value(
    data: Any,
    target: str | Sequence[str] | None = None,
    *,
    target_last: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str | None = None,
    drop: Sequence[str] = (),
    random_state: int = 0,
) -> float:
    """Return how well the clustering hypothesis holds: 1 if clusters tell the targets, about 0 if not.

    Rows are clustered by their features with k-means, into as many clusters as there are classes, else into
    8. For classes the value is the adjusted Rand index; for all other targets the share of their variance
    that is gone within clusters, the mean over the targets. It is the best of 5 runs. Only rows whose target
    is known are compared, and all are clustered.

    The paper does not say how features are scaled: numbers are placed between their lowest, 0, and highest,
    1, as Relief's distances have them; a category is an indicator of weight 1/√2, so that two different
    ones are 1 apart; what is missing is the mean.

    Parameters
    ----------
    data, target, target_last, labels, task, drop
        As in :func:`ferrank.rank`. The data are held in memory.
    random_state : int, default=0
        Seed of the first run.

    Returns
    -------
    float

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> side = np.repeat(["left", "right"], 50)
    >>> x = np.random.default_rng(0).normal(size=100) + 9 * (side == "right")
    >>> fr.clustering_value({"x": x, "y": side}, "y")
    1.0
    """
    roles = roles_of(target, target_last, labels, task, drop, None)
    source = open_data(data, labels, roles)
    problem = source.resolve(roles)
    if not problem["targets"]:
        raise SettingError("task: clusters are compared with targets, the task unsupervised has none")
    if problem["task"] == "hierarchical":
        raise SettingError(
            "task: label hierarchies have no clustering value; take labels as columns of their own"
        )
    rows = read_table(source)
    features = [
        _numeric(rows[name]) if kind == "numeric" else _indicators(rows[name]) / np.sqrt(2)
        for name, kind in problem["features"]
    ]
    points = np.hstack([_filled(block) for block in features])
    targets = [
        _numeric(rows[name]) if kind == "numeric" else _indicators(rows[name])
        for name, kind in problem["targets"]
    ]
    by_class = problem["task"] == "classification"
    wanted = targets[0].shape[1] if by_class else _CLUSTERS
    n_clusters = min(wanted, len(np.unique(points, axis=0)))
    best = -np.inf
    for run in range(_RUNS):
        clusters = KMeans(n_clusters, n_init=1, random_state=random_state + run).fit_predict(points)
        best = max(best, _rand(clusters, targets[0]) if by_class else _variance_gone(clusters, targets))
    return float(best)


def _numeric(column: pa.ChunkedArray) -> Matrix:
    """Return numbers as a column between 0 and 1, NaN where missing."""
    values = np.asarray(column.cast(pa.float64()), dtype=float)
    known = values[~np.isnan(values)]
    if len(known) == 0 or known.min() == known.max():
        return np.where(np.isnan(values), np.nan, 0.0)[:, None]
    low, high = known.min(), known.max()
    # Halves do not overflow.
    places: Matrix = (values / 2 - low / 2) / (high / 2 - low / 2)
    return places[:, None]


def _indicators(column: pa.ChunkedArray) -> Matrix:
    """Return a column for each category, NaN where missing."""
    texts = np.asarray(column.cast(pa.string()), dtype=object)
    known = np.array([text is not None for text in texts], dtype=bool)
    categories = np.unique(texts[known].astype(str))
    blocks: Matrix = (texts[:, None] == categories).astype(float)
    blocks[~known] = np.nan
    return blocks


def _filled(block: Matrix) -> Matrix:
    """Return the columns with their means in place of what is missing."""
    known = ~np.isnan(block)
    counts = known.sum(axis=0)
    means = np.where(known, block, 0.0).sum(axis=0) / np.maximum(counts, 1)
    return np.where(known, block, means)


def _rand(clusters: np.ndarray[Any, Any], target: Matrix) -> float:
    known = ~np.isnan(target).any(axis=1)
    return float(adjusted_rand_score(target[known].argmax(axis=1), clusters[known]))


def _variance_gone(clusters: np.ndarray[Any, Any], targets: Sequence[Matrix]) -> float:
    """Return 1 less the mean over the targets of the share of variance left within clusters."""
    gone = []
    for target in targets:
        known = ~np.isnan(target).any(axis=1)
        values, cluster = target[known], clusters[known]
        all_of_it = values.var(axis=0).sum() if len(values) else 0.0
        left = sum((cluster == c).mean() * values[cluster == c].var(axis=0).sum() for c in np.unique(cluster))
        gone.append(1 - left / all_of_it if all_of_it > 0 else 0.0)
    return float(np.mean(gone))
