"""The joint ranking by a forest, by Relief, and by tests of single features."""

from typing import Any, Self

from ferrank.errors import SettingError
from ferrank.rankers.base import Ranker
from ferrank.rankers.plan import JointPlan

__all__ = ["JointRanker"]


class JointRanker(JointPlan, Ranker):
    """Ranks features by a forest, Relief and tests of association, and says which of them are relevant.

    They complement each other: tests find weak effects of single features, also among features with many
    categories; trees find what other features hide, also where many say the same; near neighbors find
    interactions of features none of which says anything alone. Each gives a p-value for each feature: the
    forest from shadows (``ForestRanker(shadows=True)``), Relief from targets drawn anew
    (``ReliefRanker(target_draws=60)``), the tests from permutations, or from a linear model of the ranks of
    features found so far where that says more (``AssociationRanker(partial=True)``). Features are ranked by
    their evidence, minus the decimal logarithm of the harmonic mean of the p-values [1]_; verdicts follow
    from the p-values together [2]_. In simulations of tables with 40 to 5,000 features the false discovery
    rate of verdicts holds. With groups there are no tests: they take rows for independent.

    Features that 96 % of the rows have the same value of (rare flags, words) are judged by the forest and the
    tests: about them Relief would be wrong too often.

    Parameters
    ----------
    task : {"regression", "multi-target", "classification", "multi-label", "hierarchical"}, optional
        As of :class:`ForestRanker`.
    n_estimators : int, default=600
        Number of trees, at least 200, with at least four rows in a leaf and ``max_features="auto"`` of
        :class:`ForestRanker`: among correlated features, more candidates find the one that others follow.
    n_neighbors : int, default=50
        Number of neighbors in Relief.
    n_iterations : int, float or None, default=1000
        Number or share of the rows whose neighbors Relief searches; None takes all.
    target_draws : int, default=60
        Number of times that Relief draws the targets anew, at least 20.
    target_weights : sequence of float, optional
        Weight of each target; None gives all targets weight 1.
    categorical_features : sequence of str or int, mask or "from_dtype", default="from_dtype"
        As of :class:`ForestRanker`.
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
        ``permutation``, ``mdi_oob`` and ``genie3``, ``relief``, and ``association``.
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

    def fit(self, X: Any, y: Any, groups: Any = None, *, client: Any = None, **others: Any) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The features, as for :meth:`ForestRanker.fit`.
        y : array or frame of shape (n_rows,) or (n_rows, n_targets)
            The targets, as for :meth:`ForestRanker.fit`.
        groups : array of shape (n_rows,), optional
            The group that each row belongs to, as for :meth:`ForestRanker.fit`.
        client : dask.distributed.Client, optional
            As for :meth:`ForestRanker.fit`.
        **others
            None; ``sample_weight`` needs a :class:`ForestRanker` or :class:`ReliefRanker`.

        Returns
        -------
        self
        """
        if "sample_weight" in others:
            raise SettingError(
                "sample_weight: tests give each row the same weight; leave it out, or use ForestRanker or "
                "ReliefRanker"
            )
        if others:
            raise TypeError(f"JointRanker.fit() got an unexpected keyword argument '{next(iter(others))}'")
        return self._fit(X, y, None, groups, client)
