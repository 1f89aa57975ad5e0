"""A search for the level of supervision, in the style of scikit-learn."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from scipy.stats import rankdata

from ferrank._core import Source
from ferrank.data.parameters import kind_of
from ferrank.data.source import is_lazy
from ferrank.errors import ColumnTypeError, SettingError
from ferrank.model_selection.tuning import tune_source
from ferrank.progress import Progress
from ferrank.rankers.base import Ranker
from ferrank.rankers.forest import ForestRanker
from ferrank.ranking import Ranking

__all__ = ["SupervisionSearch"]


class SupervisionSearch(Ranker):
    """Rank features by the settings that serve nearest neighbours best, found by cross-validation.

    Rows without a target take part as far as the settings tried let them (Petković et al. 2023 §6.3).

    Parameters
    ----------
    ranker : ForestRanker or ReliefRanker, optional
        What is tuned; None is a :class:`ForestRanker`.
    grid : mapping of str to sequence, optional
        Settings to try, as in :func:`ferrank.tune`.
    folds : int, default=4
        Parts that the rows with a target are set aside in.
    n_neighbors : int, default=20
        Neighbours that judge a ranking.
    random_state : int, default=0
        Seed of the folds.
    n_features_to_select : int, float or None, default=None
        How many features ``transform`` keeps, as in :class:`ForestRanker`.

    Attributes
    ----------
    best_params_ : dict
        The best settings.
    best_score_ : float
        Their mean measure over the folds; errors are negative, so that greater is better.
    cv_results_ : dict
        ``params``, ``mean_test_score``, ``std_test_score`` and ``rank_test_score`` of the settings tried.
    tuning_ : Tuning
        The same with the name of the measure.
    ranking_ : Ranking
        By the best settings, of all rows.
    feature_importances_ : ndarray of shape (n_features,)
        The importances under the first score.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank import ForestRanker, SupervisionSearch
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = np.where(np.arange(200) < 40, X[:, 2], np.nan)
    >>> search = SupervisionSearch(ForestRanker(n_estimators=10), grid={"supervision": (0, 1)})
    >>> search.fit(X, y).best_params_, search.result_.top(1)
    ({'supervision': 1}, ['x2'])
    """

    def __init__(
        self,
        ranker: Ranker | None = None,
        *,
        grid: Mapping[str, Sequence[Any]] | None = None,
        folds: int = 4,
        n_neighbors: int = 20,
        random_state: int = 0,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.ranker = ranker
        self.grid = grid
        self.folds = folds
        self.n_neighbors = n_neighbors
        self.random_state = random_state
        self.n_features_to_select = n_features_to_select

    @property
    def task(self) -> str | None:  # type: ignore[override]
        """The task of the ranker."""
        return None if self.ranker is None else self.ranker.task

    @property
    def hierarchy(self) -> Any:
        """The hierarchy of the ranker."""
        return None if self.ranker is None else self.ranker.hierarchy

    def _settings(self) -> dict[str, Any]:
        """Return what the engine needs to know of the ranker that is tuned."""
        return (self.ranker or ForestRanker())._settings()

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Try the settings and rank the features by the best.

        Parameters
        ----------
        X, y, groups
            As in :meth:`ForestRanker.fit`; rows without a target have NaN or None in ``y``.

        Returns
        -------
        self
        """
        if is_lazy(X):
            raise ColumnTypeError(
                "X: the search splits rows in memory; give it a table, not a dask collection"
            )
        if self.ranker is not None:
            kind_of(self.ranker, Ranker, "ranker", "a ranker, such as ForestRanker()")
        self._keep(self._rank_source(*self._examples(X, y, None, groups)))
        return self

    def _rank_source(
        self,
        source: Source,
        roles: dict[str, Any],
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
        profile: bytes | None = None,
    ) -> Ranking:
        """Try the settings, keep what they are worth, and return the ranking by the best."""
        if resume is not None:
            raise SettingError("resume: a search cannot be resumed; leave it out")
        tuning = tune_source(
            source,
            roles,
            self.ranker or ForestRanker(),
            self.grid,
            self.folds,
            self.n_neighbors,
            self.random_state,
            progress,
        )
        mean = tuning.goodness
        self.tuning_ = tuning
        self.best_params_ = tuning.best_params
        self.best_score_ = float(mean[tuning.best])
        self.cv_results_ = {
            "params": tuning.candidates,
            "mean_test_score": mean,
            "std_test_score": tuning.values.std(axis=1),
            "rank_test_score": rankdata(-mean, method="min").astype(np.int32),
        }
        return tuning.ranking
