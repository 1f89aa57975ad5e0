"""The joint ranking by a forest and by Relief."""

import os
import time
from typing import Any, ClassVar, Literal, Self

from ferrank._core import Source
from ferrank.errors import SettingError
from ferrank.progress import Progress
from ferrank.rankers.base import EngineRanker, Ranker, seed_of
from ferrank.rankers.forest import ForestRanker
from ferrank.rankers.relief import ReliefRanker
from ferrank.ranking import Ranking
from ferrank.ranking.joint import join

__all__ = ["JOINT_DRAWS", "JOINT_TREES", "JointRanker"]

JOINT_TREES = 800
"""Trees that p-values are computed from."""
LEAST_TREES = 200
"""The least number of trees that do for p-values."""
JOINT_DRAWS = 60
"""Draws of the targets that p-values are computed from."""


class JointRanker(Ranker):
    """Ranks features by a forest and by Relief together, and says which of them are relevant.

    The two complement each other: trees find main effects, also where many features say the same, and are not
    misled by irrelevant features; near neighbors find interactions of features none of which says anything
    alone. Each gives a p-value for each feature: the forest from shadows (``ForestRanker(shadows=True)``),
    Relief from targets drawn anew (``ReliefRanker(target_draws=60)``). Features are ranked by their evidence,
    minus the decimal logarithm of the harmonic mean of both p-values [1]_; verdicts follow from the p-values
    together [2]_. In simulations of tables with 40 to 5,000 features the false discovery rate of verdicts
    holds.
    Features that 96 % of the rows have the same value of (rare flags, words) are judged by the forest alone:
    about them Relief would be wrong too often.

    Parameters
    ----------
    task : {"regression", "multi-target", "classification", "multi-label", "hierarchical"}, optional
        As of :class:`ForestRanker`.
    n_estimators : int, default=800
        Number of trees, at least 200.
    n_neighbors : int, default=50
        Number of neighbors in Relief.
    n_iterations : int, float or None, default=1000
        Number or share of the rows whose neighbors Relief searches; None takes all.
    target_draws : int, default=60
        Number of times that Relief draws the targets anew, at least 20.
    target_weights : sequence of float, optional
        Weight of each target; None gives all targets weight 1.
    hierarchy : path, mapping, frame or table, optional
        As of :class:`ForestRanker`.
    hierarchy_decay : float, default=0.75
        As of :class:`ForestRanker`.
    unlabelled : {"error", "ignore"}, optional
        How to treat rows whose targets are all missing; None is "error".
    random_state : int, RandomState, Generator or None, default=0
        Seed of all random draws. None draws a new seed for each run.
    n_jobs : int, optional
        As of :class:`ForestRanker`.
    memory_limit : int or str, optional
        As of :class:`ForestRanker`.
    temp_dir : path, optional
        As of :class:`ForestRanker`.
    n_features_to_select : int, float or None, default=None
        Number of features that ``transform`` keeps, the best first; a float is a share. None keeps half of
        them. To keep the relevant ones, use :class:`RelevantFeatures`.
    scope : {"global"}, default="global"
        For a dask collection: all rows are ranked together.

    Attributes
    ----------
    result_ : Ranking
        The joint ranking. Its first score is ``evidence``; the others are those of the forest,
        ``permutation``, ``mdi_oob`` and ``genie3``, and ``relief``.
    ranking_ : ndarray of shape (n_features,)
        Ranks by evidence; 1 is the most important feature.
    feature_importances_ : ndarray of shape (n_features,)
        The evidence.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if all column names of ``X`` are strings.

    References
    ----------
    .. [1] D. J. Wilson, "The harmonic mean p-value for combining dependent tests", PNAS 116, 2019.
    .. [2] Y. Liu, J. Xie, "Cauchy combination test: a powerful test with analytic p-value calculation under
       arbitrary dependency structures", Journal of the American Statistical Association 115, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank import JointRanker
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> joint = JointRanker(n_estimators=200).fit(X, X[:, 4] + np.sign(X[:, 1] * X[:, 2]))
    >>> sorted(joint.result_.relevant(fdr=0.1))
    ['x1', 'x2', 'x4']
    """

    supports_groups: ClassVar[bool] = True

    def __init__(
        self,
        task: str | None = None,
        *,
        n_estimators: int = JOINT_TREES,
        n_neighbors: int = 50,
        n_iterations: int | float | None = 1000,
        target_draws: int = JOINT_DRAWS,
        target_weights: Any = None,
        hierarchy: Any = None,
        hierarchy_decay: float = 0.75,
        unlabelled: Literal["error", "ignore"] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        temp_dir: str | os.PathLike[str] | None = None,
        n_features_to_select: int | float | None = None,
        scope: Literal["global"] = "global",
    ) -> None:
        self.task = task
        self.n_estimators = n_estimators
        self.n_neighbors = n_neighbors
        self.n_iterations = n_iterations
        self.target_draws = target_draws
        self.target_weights = target_weights
        self.hierarchy = hierarchy
        self.hierarchy_decay = hierarchy_decay
        self.unlabelled = unlabelled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.temp_dir = temp_dir
        self.n_features_to_select = n_features_to_select
        self.scope = scope

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The features, as for :meth:`ForestRanker.fit`.
        y : array or frame of shape (n_rows,) or (n_rows, n_targets)
            The targets, as for :meth:`ForestRanker.fit`.
        groups : array of shape (n_rows,), optional
            The group that each row belongs to, as for :meth:`ForestRanker.fit`.

        Returns
        -------
        self
        """
        return self._fit(X, y, None, groups)

    def _rankers(self) -> list[EngineRanker]:
        """Return the rankers whose rankings are joined."""
        if self.unlabelled not in {None, "error", "ignore"}:
            raise SettingError(
                f"unlabelled: {self.unlabelled!r} is neither 'error' nor 'ignore'; to use rows without a "
                "target, take the ranker forest or relief"
            )
        if isinstance(self.n_estimators, int) and self.n_estimators < LEAST_TREES:
            raise SettingError(
                f"n_estimators: {self.n_estimators} trees are too few for p-values; use {LEAST_TREES} or "
                "more, or ranker='forest'"
            )
        if self.scope != "global":
            raise SettingError(
                f"scope: {self.scope!r} is not 'global', where alone p-values are known; leave it out"
            )
        shared = {
            name: getattr(self, name)
            for name in (
                "task",
                "target_weights",
                "hierarchy",
                "hierarchy_decay",
                "unlabelled",
                "n_jobs",
                "memory_limit",
                "temp_dir",
            )
        }
        shared["random_state"] = seed_of(self.random_state)
        forest = ForestRanker(
            scores=("permutation", "mdi_oob", "genie3"),
            n_estimators=self.n_estimators,
            shadows=True,
            **shared,
        )
        relief = ReliefRanker(
            n_neighbors=self.n_neighbors,
            n_iterations=self.n_iterations,
            scaling="rank",
            missing="informative",
            target_draws=self.target_draws,
            **shared,
        )
        return [forest, relief]

    def _settings(self) -> dict[str, Any]:
        return _settings_of(self._rankers())

    def _rank_source(
        self,
        source: Source,
        roles: dict[str, Any],
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
        profile: bytes | None = None,
    ) -> Ranking:
        if roles.get("weight") is not None:
            raise SettingError(
                "sample_weight: Relief does not weigh rows; leave it out, or use ranker='forest'"
            )
        started, rankers = time.perf_counter(), self._rankers()
        files = [None if resume is None else f"{os.fspath(resume)}.{ranker._engine}" for ranker in rankers]
        rankings = [
            ranker._rank_source(source, roles, progress, file)
            for ranker, file in zip(rankers, files, strict=True)
        ]
        return join(rankings, _settings_of(rankers), time.perf_counter() - started)

    def _rank_partitions(
        self,
        partitions: Any,
        roles: dict[str, Any],
        progress: Progress | None = None,
    ) -> Ranking:
        started, rankers = time.perf_counter(), self._rankers()
        rankings = [ranker._rank_partitions(partitions, roles, progress) for ranker in rankers]
        return join(rankings, _settings_of(rankers), time.perf_counter() - started)


def _settings_of(rankers: list[EngineRanker]) -> dict[str, Any]:
    return {"ranker": "joint"} | {ranker._engine: ranker._settings() for ranker in rankers}
