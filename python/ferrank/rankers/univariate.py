"""Feature ranking one feature at a time."""

import os
from collections.abc import Sequence
from typing import Any, Literal, Self

from ferrank.data.categories import FROM_DTYPE, CategoricalFeatures
from ferrank.rankers.base import Ranker
from ferrank.rankers.plan import UnivariatePlan

__all__ = ["UnivariateRanker"]


class UnivariateRanker(UnivariatePlan, Ranker):
    """Feature ranking by scores of each feature alone.

    They are fast, need two passes over the data, and miss features that matter only together with others:
    baselines for the other rankers. Numbers are cut at quantiles.

    Parameters
    ----------
    task : str, optional
        The learning task, as in :class:`ForestRanker`; not "hierarchical" and "unsupervised".
    scores : sequence of str, default=("mutual_information",)
        For classes and labels: ``information_gain``, the decrease of the entropy in bits; ``gain_ratio``,
        the same over the entropy of the feature [1]_; ``chi2``, Pearson's statistic of values and classes;
        ``accuracy``, the increase of the accuracy of the majority class by the best split in two [2]_. For
        numbers: ``mse``, the share of the variance that the best split in two explains [2]_. For all:
        ``mutual_information`` in nats, with numeric targets cut at quantiles. Over several targets they are
        averaged. The first score is the main one.
    n_bins : int, default=10
        Maximum number of intervals of a number, from 2 to 65,535.
    categorical_features : sequence of str or int, mask or "from_dtype", default="from_dtype"
        Features that are nominal whatever their type, as of :class:`ForestRanker`.
    unlabelled : {"error", "ignore"}, optional
        How to treat rows whose targets are all missing; None is "error".
    n_jobs : int, optional
        Number of threads; importances do not depend on it, to the bit. By default all cores.
    memory_limit : int or str, optional
        Maximum memory, which the tables of values and classes must fit; rows are streamed.
    temp_dir : path, optional
        Folder for temporary files.
    n_features_to_select : int, float or None, default=None
        Number of features that ``transform`` keeps, the best first; a float is a share. None keeps half.

    Attributes
    ----------
    result_ : Ranking
        Importances and ranks for each score; there are no errors.
    ranking_ : ndarray of shape (n_features,)
        Ranks under the first score; 1 is the most important feature.
    feature_importances_ : ndarray of shape (n_features,)
        Importances under the first score.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if all column names of ``X`` are strings.

    Notes
    -----
    Scores are over the rows in which a feature is known, times their share.

    References
    ----------
    .. [1] J. R. Quinlan, "Induction of decision trees", Machine Learning 1, 1986.
    .. [2] M. Robnik-Šikonja, I. Kononenko, "Comprehensiveness of tree based models: attribute dependencies
       and split selection", University of Ljubljana, 1999; Equations 16 to 18.

    Examples
    --------
    >>> import ferrank as fr
    >>> data = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "y": ["n", "n", "p", "p"]}
    >>> fr.rank(data, "y", ranker="univariate", scores=["information_gain"]).importances().tolist()
    [1.0, 0.0]
    """

    def __init__(
        self,
        task: str | None = None,
        *,
        scores: Sequence[str] = ("mutual_information",),
        n_bins: int = 10,
        categorical_features: CategoricalFeatures = FROM_DTYPE,
        unlabelled: Literal["error", "ignore"] | None = None,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        temp_dir: str | os.PathLike[str] | None = None,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.scores = scores
        self.n_bins = n_bins
        self.categorical_features = categorical_features
        self.unlabelled = unlabelled
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.temp_dir = temp_dir
        self.n_features_to_select = n_features_to_select

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The features, as in :meth:`ForestRanker.fit`.
        y : array of shape (n_rows,) or (n_rows, n_targets)
            The targets.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            For invalid data or settings; the message names the column or setting and what is valid.
        """
        return self._fit(X, y, sample_weight, None)
