"""What the baseline rankers share: they look at all rows in memory, and refuse what would not finish."""

import os
import time
from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.neighbors import kneighbors_graph

from ferrank._core import Source
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.rows import Rows, read_rows
from ferrank.progress import Progress
from ferrank.rankers.base import Ranker
from ferrank.rankers.plan import plain, seed_of
from ferrank.ranking import Ranking

__all__ = ["Baseline", "by_feature", "heat_graph", "invert", "refuse"]

Array = np.ndarray[Any, Any]


class Baseline(Ranker):
    """Base of the baseline rankers: a :class:`~ferrank.ranker.Ranker` in NumPy, for comparison.

    They take the same data and give the same :class:`~ferrank.Ranking` as the rankers of the engine, with one
    score and without standard errors. They hold all rows in memory, and are not tuned for speed.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank.evaluate import Baseline
    >>> class Range(Baseline):
    ...     name, tasks = "range", ("regression", "classification")
    ...
    ...     def __init__(self, task=None, n_features_to_select=None):
    ...         self.task, self.n_features_to_select = task, n_features_to_select
    ...
    ...     def importances(self, rows):
    ...         return np.ptp(rows.features, axis=0)
    >>> Range().fit([[1.0, 5.0], [2.0, 9.0], [1.5, 7.0]], [0.5, 1.5, 1.0]).ranking_
    array([2, 1])
    """

    name: ClassVar[str]
    """Of the ranker and of its score."""
    tasks: ClassVar[tuple[str, ...]]
    """Those that it can rank for."""
    semi_supervised: ClassVar[bool] = False
    """Whether rows without a target take part, as unlabelled ones."""
    hierarchy: Any = None
    """The hierarchy of labels, of those that rank for some."""
    hierarchy_decay: float | None = None
    """The decay of their weights."""

    def __init__(self) -> None:
        """Make a ranker without parameters."""

    @abstractmethod
    def importances(self, rows: Rows) -> Array:
        """Return the importances, of shape (n_features,)."""

    def _scores(self, rows: Rows) -> dict[str, Array]:
        """Return the importances by the name of the score."""
        return {self.name: self.importances(rows)}

    def _settings(self) -> dict[str, Any]:
        """Return the ranker's name and parameters."""
        kept = {
            name: value
            for name, value in self.get_params().items()
            if name not in {"hierarchy", "n_features_to_select", "random_state", "task"}
        }
        if hasattr(self, "random_state"):
            kept["seed"] = seed_of(self.random_state)
        return plain({"ranker": self.name, **kept})

    def fit(self, X: Any, y: Any) -> Self:
        """Rank the features; ``X`` and ``y`` are as in :meth:`ferrank.ForestRanker.fit`."""
        return self._fit(X, y, None, None)

    def _rank_source(
        self,
        source: Source,
        roles: dict[str, Any],
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
        profile: bytes | None = None,
    ) -> Ranking:
        """Rank the features of ``source``; ``roles`` says what its columns are."""
        if resume is not None:
            raise SettingError(f"resume: {self.name} has no parts that a run could go on from; leave it out")
        if roles.get("groups") is not None:
            raise SettingError(
                f"groups: {self.name} does not keep groups together; leave groups out, and drop the column"
            )
        started = time.perf_counter()
        rows = read_rows(source, roles, self.hierarchy_decay)
        if rows.task not in self.tasks:
            raise SettingError(
                f"task: {self.name} ranks for {' and '.join(self.tasks)}, not for {rows.task}; "
                "choose another ranker, or say what the target is"
            )
        if not self.semi_supervised:
            rows.require_labels(self.name)
        elif not rows.labelled().any():
            raise DataError(f"{rows.source}: no row has its target; {self.name} needs some")
        return Ranking.from_importances(
            rows.features.column_names,
            self._scores(rows),
            task=rows.task,
            targets=rows.targets.column_names,
            n_rows=rows.n_rows,
            settings=self._settings(),
            seconds=time.perf_counter() - started,
        )


def by_feature(values: Array, owner: Array) -> Array:
    """Return the sums over the columns of each feature."""
    return np.bincount(owner, values, minlength=owner.max(initial=-1) + 1)


def refuse(rows: Rows, who: str, found: int, most: int, what: str, why: str) -> None:
    """Refuse ``found`` of ``what`` where more than ``most`` would not finish."""
    if found > most:
        raise DataError(
            f"{rows.source}: {found:,} {what}; {who} {why}, and takes at most {most:,}; draw fewer, or use a "
            "ForestRanker or ReliefRanker"
        )


def heat_graph(X: Array, n_neighbors: int, bandwidth: float) -> csr_array:
    """Return S of the graph of nearest neighbours: exp(−d² / bandwidth), d² the mean squared difference.

    Two rows are joined if one is among the ``n_neighbors`` nearest of the other.
    """
    n_neighbors = min(n_neighbors, len(X) - 1)
    if n_neighbors < 1:
        return csr_array((len(X), len(X)))
    graph = csr_array(kneighbors_graph(X, n_neighbors, mode="distance"))
    graph.data = np.exp(-(graph.data**2) / (X.shape[1] * bandwidth))
    return csr_array(graph.maximum(graph.T))


def invert(scores: Array) -> Array:
    """Return S + s − score, S and s the greatest and least: where less is better (Petković et al. 2023 §6.6).

    A score that is not a number, that of a constant feature, counts as the worst.
    """
    known = np.isfinite(scores)
    if not known.any():
        return np.zeros(len(scores))
    worst, best = scores[known].max(), scores[known].min()
    return np.asarray(np.where(known, worst + best - np.where(known, scores, 0.0), best))
