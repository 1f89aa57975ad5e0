"""How well clusters of the rows agree with the targets (Petković et al. 2023, §6.2)."""

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.sparse import csr_array, issparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from ferrank.data.parameters import decay_of, seed_of_splits
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.rows import MOST_CELLS, Encoder, Rows, read_rows, unit_range
from ferrank.rankers.registry import dataset_of

__all__ = ["clustering_value"]

_CLUSTERS = 8
_RUNS = 5
_FILLED = 0.5
"""Share of numbers that are not 0 from which on a matrix is not kept sparse."""

Array = np.ndarray[Any, Any]
Part = tuple[Array, Any]
"""Which rows know a target, and the components of these: dense, or a sparse matrix of indicators."""


def clustering_value(
    data: Any,
    target: str | Sequence[str] | None = None,
    *,
    target_last: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str | None = None,
    hierarchy: Any = None,
    hierarchy_decay: float = 0.75,
    drop: Sequence[str] = (),
    random_state: int = 0,
) -> float:
    """Return how well the clustering hypothesis holds: 1 if clusters tell the targets, about 0 if not.

    Rows are clustered by their features with k-means, into as many clusters as there are classes, else into
    8. For classes the value is the adjusted Rand index; for all other targets the share of their variance
    that is gone within clusters, the mean over the targets. The targets of a hierarchy are its labels, of
    which a row has all those above its own, and the mean is weighted by what they weigh. It is the best of 5
    runs. Only rows whose target is known are compared, and all are clustered.

    The paper does not say how features are scaled: numbers are placed between their lowest, 0, and highest,
    1, as Relief's distances have them, and a missing one is the mean; a category is an indicator of height
    √½, so that two different ones are 1 apart, and a missing one is none. Nor does it say what becomes of a
    target that is constant: none of its variance is gone. Labels that no row has do not count.

    Parameters
    ----------
    data, target, target_last, labels, task, hierarchy, drop
        As in :func:`ferrank.rank`. The data are held in memory.
    hierarchy_decay : float, default=0.75
        As in :class:`ferrank.ForestRanker`.
    random_state : int, default=0
        Seed of the first run.

    Returns
    -------
    float

    Raises
    ------
    DataError, ColumnTypeError, SettingError, ResourceError
        Also for the task unsupervised, and where no row has a target.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> side = np.repeat(["left", "right"], 50)
    >>> x = np.random.default_rng(0).normal(size=100) + 9 * (side == "right")
    >>> fr.clustering_value({"x": x, "y": side}, "y")
    1.0
    """
    random_state = seed_of_splits(random_state)
    dataset = dataset_of(
        data, target=target, target_last=target_last, labels=labels, task=task, hierarchy=hierarchy, drop=drop
    )
    roles, source = dataset.roles(), dataset.source()
    if not source.resolve(roles)["targets"]:
        raise SettingError("task: clusters are compared with targets, the task unsupervised has none")
    rows = read_rows(source, roles, decay_of(hierarchy_decay))
    if rows.labels is not None:
        known, shares = rows.labels.known, rows.labels.shares
        parts = [(known, rows.labels.sets[known])]
    else:
        parts, shares = [_part(column) for column in rows.targets.columns], None
    if not any(known.any() for known, _ in parts):
        raise DataError(f"{rows.source}: no row has a target; there is nothing to compare clusters with")
    if rows.task == "classification":
        [(known, indicators)] = parts
        classes = indicators.indices
        found = (
            adjusted_rand_score(classes, clusters[known])
            for clusters in _clusterings(rows, len(np.unique(classes)), random_state)
        )
    else:
        found = (
            _variance_gone(clusters, parts, shares)
            for clusters in _clusterings(rows, _CLUSTERS, random_state)
        )
    return float(max(found))


def _part(column: pa.ChunkedArray) -> Part:
    """Return which rows know a target, and for these its components: the numbers, or an indicator a class."""
    known = column.is_valid().to_numpy()
    values = column.drop_null().combine_chunks()
    if pa.types.is_dictionary(values.type):
        codes = values.indices.to_numpy()
        shape = len(codes), len(values.dictionary)
        return known, csr_array((np.ones(len(codes)), codes, np.arange(len(codes) + 1)), shape=shape)
    numbers = unit_range(values.to_numpy()[:, None])
    return known, numbers - numbers.mean() if len(numbers) else numbers


def _clusterings(rows: Rows, n_clusters: int, random_state: int) -> Iterator[Array]:
    """Give the number of each row's cluster, run by run."""
    encoder = Encoder(rows)
    n_clusters = min(n_clusters, rows.n_rows)
    if n_clusters * len(encoder.owner) > MOST_CELLS:
        raise DataError(
            f"{rows.source}: centres of {n_clusters:,} clusters by {len(encoder.owner):,} features and "
            f"categories are more than {MOST_CELLS:,} numbers; drop columns with a category for each row"
        )
    points: Any = encoder.encode_sparse()
    if points.nnz > _FILLED * points.shape[0] * points.shape[1]:
        points = points.toarray()
    for run in range(_RUNS):
        with warnings.catch_warnings():
            # Of rows that are alike there are fewer clusters, and no others to find.
            warnings.simplefilter("ignore", ConvergenceWarning)
            clusters = KMeans(n_clusters, n_init=1, random_state=random_state + run).fit_predict(points)
        yield clusters


def _variance_gone(clusters: Array, parts: Sequence[Part], shares: Array | None) -> float:
    """Return 1 less the mean over the targets of the share of variance left within clusters.

    With ``shares`` the components of the only part are the targets, and have these weights.
    """
    variances = [_variances(components, clusters[known]) for known, components in parts]
    if shares is None:
        within, whole = np.array([[part.sum() for part in pair] for pair in variances]).T
        shares = np.full(len(within), 1 / len(within))
    else:
        [(within, whole)] = variances
    left = np.divide(within, whole, out=np.ones_like(whole), where=whole > 0)
    return float(shares @ (1 - left))


def _variances(components: Any, clusters: Array) -> tuple[Array, Array]:
    """Return the variance of each column within clusters, the mean over the rows, and that of all rows."""
    n_rows = len(clusters)
    if n_rows == 0:
        return np.zeros(components.shape[1]), np.zeros(components.shape[1])
    members = csr_array((np.ones(n_rows), (clusters, np.arange(n_rows))))
    counts = members.sum(axis=1)[:, None]
    sums = members @ components
    sums = sums.toarray() if issparse(sums) else sums
    squares = (components * components).sum(axis=0)
    between = np.divide(sums**2, counts, out=np.zeros_like(sums), where=counts > 0).sum(axis=0)
    return (squares - between) / n_rows, (squares - sums.sum(axis=0) ** 2 / n_rows) / n_rows
