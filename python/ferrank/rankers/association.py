"""Feature ranking by what each feature says about the targets by itself."""

import os
from collections.abc import Sequence
from typing import Any, Literal, Self

from ferrank.data.categories import FROM_DTYPE, CategoricalFeatures
from ferrank.rankers.base import Ranker
from ferrank.rankers.plan import AssociationPlan

__all__ = ["AssociationRanker"]


class AssociationRanker(AssociationPlan, Ranker):
    """Ranks features by their association with the targets, each by itself, with p-values.

    The association of two numbers is the square of Spearman's rank correlation, that of a number and a
    nominal attribute the share of the variance of ranks between categories [1]_, that of two nominal
    attributes Pearson's chi-squared divided by the number of rows. Its p-value is the upper tail of the gamma
    law that has the mean and the variance of the statistic over all permutations of the rows [2]_ [3]_, which
    are known exactly; for laws of rare events, Cantelli's bound. Missing values of a feature are tested
    apart: whether a value is known may depend on the target. The tests of all targets, or labels, are joined
    by Cauchy's combination [4]_.

    One pass over the coded rows, at about the speed of reading them. Interactions of features none of which
    says anything by itself are not found; :class:`JointRanker` finds both.

    Parameters
    ----------
    task : {"regression", "multi-target", "classification", "multi-label", "hierarchical"}, optional
        As of :class:`ForestRanker`.
    max_bins : int, default=255
        Number of bins of a numeric feature with more different values; values in a bin share a rank.
    partial : bool, default=False
        Whether the p-value of a feature is the better of two, by Bonferroni's correction: that of the feature
        by itself, and that of what it adds to a linear model of the targets in other features [5]_. To a test
        of one feature alone the effects of others are noise; the second test takes them out, and finds more.
        Importances do not depend on it. The model has the features that were found so far, at a false
        discovery rate of 1 %, at most 200 columns and a fourth as many as rows; there are up to four rounds.
        In it, a numeric target stands for its ranks, a numeric feature for the places of its values, or bins,
        in their order, with missing values in the middle; a class or label is 1 where a row has it and 0
        elsewhere; a nominal feature has a column for each category but one, and none at all with more than
        32. Where sums of few rows count, the law of F would not hold. So there is no model of targets that
        are missing in some rows, or whose ranks or classes have a positive excess kurtosis,
        such as classes that fewer than 21 % of the rows have, nor of more than 500 classes and labels; and no
        second test of features whose excess kurtosis is more than a thousandth of
        the number of rows, such as flags that 10 % of fewer than 5,000 rows have. At most 7e10 products are
        added up, from every second, third … row if there are more.
    target_weights : sequence of float, optional
        Weight of each target in the importances; None gives all targets weight 1. P-values do not depend on
        it.
    categorical_features : sequence of str or int, mask or "from_dtype", default="from_dtype"
        As of :class:`ForestRanker`.
    hierarchy : path, mapping, frame or table, optional
        As of :class:`ForestRanker`.
    hierarchy_decay : float, default=0.75
        As of :class:`ForestRanker`; it does not change the tests, which take each label by itself.
    unlabelled : {"error", "ignore"}, optional
        How to treat rows whose targets are all missing; None is "error".
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
        The ranking by the score ``association``: 1 if the feature determines the ranks or classes of the
        target, 0 on average if they are independent; the mean over targets, of label sets the greatest over
        labels. With p-values, from which the relevant features follow (:meth:`Ranking.relevant`).
    ranking_ : ndarray of shape (n_features,)
        Ranks; 1 is the most important feature.
    feature_importances_ : ndarray of shape (n_features,)
        The associations.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if all column names of ``X`` are strings.

    References
    ----------
    .. [1] W. H. Kruskal, W. A. Wallis, "Use of ranks in one-criterion variance analysis", Journal of the
       American Statistical Association 47, 1952.
    .. [2] E. J. G. Pitman, "Significance tests which may be applied to samples from any populations. II. The
       correlation coefficient test", Supplement to the Journal of the Royal Statistical Society 4, 1937.
    .. [3] P. W. Mielke, K. J. Berry, "Non-asymptotic inferences based on the chi-square statistic for r by c
       contingency tables", Journal of Statistical Planning and Inference 12, 1985.
    .. [4] Y. Liu, J. Xie, "Cauchy combination test: a powerful test with analytic p-value calculation under
       arbitrary dependency structures", Journal of the American Statistical Association 115, 2020.
    .. [5] W. J. Conover, R. L. Iman, "Rank transformations as a bridge between parametric and nonparametric
       statistics", The American Statistician 35, 1981.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank import AssociationRanker
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> ranker = AssociationRanker().fit(X, X[:, 4] + X[:, 1] ** 3)
    >>> sorted(ranker.result_.relevant(fdr=0.01))
    ['x1', 'x4']
    """

    def __init__(
        self,
        task: str | None = None,
        *,
        max_bins: int = 255,
        partial: bool = False,
        target_weights: Sequence[float] | None = None,
        categorical_features: CategoricalFeatures = FROM_DTYPE,
        hierarchy: Any = None,
        hierarchy_decay: float = 0.75,
        unlabelled: Literal["error", "ignore"] | None = None,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        temp_dir: str | os.PathLike[str] | None = None,
        n_features_to_select: int | float | None = None,
        scope: Literal["global"] = "global",
    ) -> None:
        self.task = task
        self.max_bins = max_bins
        self.partial = partial
        self.target_weights = target_weights
        self.categorical_features = categorical_features
        self.hierarchy = hierarchy
        self.hierarchy_decay = hierarchy_decay
        self.unlabelled = unlabelled
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.temp_dir = temp_dir
        self.n_features_to_select = n_features_to_select
        self.scope = scope

    def fit(self, X: Any, y: Any, *, client: Any = None) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The features, as for :meth:`ForestRanker.fit`.
        y : array or frame of shape (n_rows,) or (n_rows, n_targets)
            The targets, as for :meth:`ForestRanker.fit`.
        client : dask.distributed.Client, optional
            For a dask collection: whose cluster ranks it. By default the scheduler that dask would use. With
            an asynchronous client, what is returned has to be awaited.

        Returns
        -------
        self
        """
        return self._fit(X, y, None, None, client)
