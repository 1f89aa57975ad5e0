"""Ranking by an ensemble of trees."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from ferrank.rankers.streaming import StreamRanker

__all__ = ["ForestRanker"]


class ForestRanker(StreamRanker):
    """Rank features by an ensemble of predictive clustering trees.

    The impurity of a node is the weighted sum of the variances of all targets, where a nominal target or a
    set of labels is its indicators, whose variances sum up to the Gini index. Trees are grown until no test
    lowers it. All scores asked for come from the same trees.

    Parameters
    ----------
    task : str, optional
        "classification", "regression", "multi-target", "multi-label", "hierarchical" or "unsupervised".
        What is predicted. By default the targets tell: strings, categories and booleans are classes, numbers
        are quantities; several booleans are a set of labels, and lists of strings are sets of labels out of
        a hierarchy. "unsupervised" has no target: rows are clustered by the features.
    ensemble : {"random_forest", "bagging", "extra_trees"}, default="random_forest"
        Bootstrap and random features at each node; bootstrap and all features; all rows and random cuts.
    scores : sequence of {"genie3", "symbolic", "coverage", "permutation"}, default=("genie3",)
        ``genie3`` sums the impurity decreases of a feature's splits. ``symbolic`` sums ``decay**depth`` over
        them, ``coverage`` the shares of the examples that reach them. ``permutation`` is the relative
        increase of the out-of-bag error when the feature is permuted. The first is the main one.
    n_estimators : int, default=100
        Number of trees.
    max_features : {"sqrt", "log2", "all"}, int, float or None, default=None
        How many features that are not constant are looked at in a node; a float is a share of them. None is
        "sqrt" for a random forest, else "all".
    min_samples_leaf : int, default=2
        Least number of examples in a leaf, counted as often as they were drawn.
    max_depth : int, optional
        Greatest depth of a tree, whose root is at depth 0.
    bootstrap : bool, optional
        Whether rows are drawn with replacement. None is yes, except for extra trees.
    max_samples : int, float or None, default=None
        Rows drawn for a tree; a float is a share. None is as many as there are.
    max_bins : int, default=255
        Greatest number of codes of a numeric feature, 2 to 65,535. A feature with no more distinct values is
        searched exactly, others at quantiles.
    ties : {"random", "lowest"}, default="random"
        Which of the features whose tests gain the same is tested: one drawn, or the first. In nodes of a few
        examples many tie, and with "lowest", CLUS's rule, importances fall with the number of the column.
    decay : float, default=0.5
        Of the score ``symbolic``, in (0, 1]; 1 counts the tests.
    per_target : bool, default=False
        Grow an ensemble for each target and average the importances.
    by_target : bool, default=False
        Tell ``genie3`` apart by target as well.
    target_weights : sequence of float, optional
        Weight of each target. None is 1 each.
    hierarchy : path, mapping, frame or table, optional
        What stands above the labels of a hierarchical target: an edge table with the columns ``parent`` and
        ``child``, the CSV file of one, or a mapping of each label to its parent, its parents or None; a tree
        or a DAG. By default the data file tells, or the labels are paths, such as ``animal/koala``.
    hierarchy_decay : float, default=0.75
        In (0, 1]. A label weighs this times the mean weight of its parents, a root 1.
    supervision : float, optional
        The share of the targets in the impurity, from 0 to 1; the features make up the rest [3]_. Rows
        without a target then help to find the tests, while predictions and errors are those of rows with
        one. With 0 rows are clustered by the features alone, with 1 by the targets alone, and rows without
        any are left out. None is 1, with an error where rows have no target. Values of the features are
        then held in memory, 16 bytes each.
    unlabelled : {"error", "ignore", "use"}, optional
        What becomes of rows whose targets are all missing. None is "error", or "use" where ``supervision`` is
        given.
    until : {"stable"}, optional
        With "stable" the run goes no further than it must for the ``stable_top`` best features to stand clear
        of all others: from few trees with small bags, drawn from a sample of the rows, to more trees and
        larger bags, at most ``n_estimators`` of ``max_samples``. ``ranking_.stopped`` says why it ended.
        Ctrl-C once ends it with the answer it has, twice stops it.
    stable_top : int, default=10
        See ``until``; at most all features but one count.
    confidence : float, default=0.95
        See ``until``; the probability that none stands clear by chance.
    random_state : int, RandomState, Generator or None, default=0
        Seed of all random draws. With None it is another one each time.
    n_jobs : int, optional
        Number of threads; -1 is all cores, and so is None, except within a joblib worker, where it is one.
        The importances have the same bits for any number. A worker of a dask cluster uses those that it has.
    memory_limit : int or str, optional
        Most memory that the process holds, in bytes or as "2GiB" or "500MB". None is half of what the
        machine, or its control group, has free. What does not fit is kept in temporary files; the importances
        have the same bits for any limit. Of a dask collection it is the limit of each worker process while it
        grows trees or looks for neighbours, and no more than 70 % of the worker's own limit, from which on
        dask writes data to disk; without either, workers of one machine share half of what is free.
    temp_dir : path, optional
        Folder for temporary files, which are removed with the run. None is the system's temporary folder, or
        that of the worker of a dask cluster.
    n_features_to_select : int, float or None, default=None
        How many features ``transform`` keeps, best first: a number, a share, or None for half of them, as in
        scikit-learn's RFE. To keep those above a threshold, use ``SelectFromModel``.
    scope : {"global", "partition"}, default="global"
        Of a dask collection: "global" ranks over all rows, with the bits of one machine. With "partition"
        each partition grows its share of the trees on its own rows; no row moves then, and a
        :class:`DriftWarning` says so if partitions differ in their distributions.
    block_rows : int, default=20_000
        Of ``partial_fit``: rows that are ranked together, when so many have come.
    reservoir_rows : int, default=20_000
        Of ``partial_fit``: size of the sample of all rows so far that is ranked with each block.
    half_life : float, optional
        Of ``partial_fit``: number of rows after which what was seen counts half as much, at least
        ``block_rows``; the reservoir then has at most ``half_life / ln 2`` rows. None is to forget nothing.

    Attributes
    ----------
    result_ : Ranking
        Importances, standard errors and ranks under each score.
    ranking_ : ndarray of shape (n_features,)
        The ranks under the first score, 1 is best.
    feature_importances_ : ndarray of shape (n_features,)
        The importances under the first score.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where ``X`` had names that are strings.

    References
    ----------
    .. [1] M. Petković, D. Kocev, S. Džeroski, "Feature ranking for multi-target regression",
       Machine Learning 109, 2020.
    .. [2] V. A. Huynh-Thu, A. Irrthum, L. Wehenkel, P. Geurts, "Inferring regulatory networks from
       expression data using tree-based methods", PLoS ONE 5, 2010.
    .. [3] M. Petković, S. Džeroski, D. Kocev, "Feature ranking for semi-supervised learning",
       Machine Learning 112, 2023; Eq. 1, and Section 3.1 for hierarchies of labels.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank import ForestRanker
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 6))
    >>> forest = ForestRanker(scores=("genie3", "permutation"), n_features_to_select=2)
    >>> forest.fit(X, X[:, 4] + 2 * X[:, 1]).get_feature_names_out()
    array(['x1', 'x4'], dtype=object)
    >>> forest.result_.top(2)
    ['x1', 'x4']
    """

    _engine: ClassVar[str] = "forest"

    def __init__(
        self,
        task: str | None = None,
        *,
        ensemble: Literal["random_forest", "bagging", "extra_trees"] = "random_forest",
        scores: Sequence[str] = ("genie3",),
        n_estimators: int = 100,
        max_features: str | int | float | None = None,
        min_samples_leaf: int = 2,
        max_depth: int | None = None,
        bootstrap: bool | None = None,
        max_samples: int | float | None = None,
        max_bins: int = 255,
        ties: Literal["random", "lowest"] = "random",
        decay: float = 0.5,
        per_target: bool = False,
        by_target: bool = False,
        target_weights: Sequence[float] | None = None,
        hierarchy: Any = None,
        hierarchy_decay: float = 0.75,
        supervision: float | None = None,
        unlabelled: Literal["error", "ignore", "use"] | None = None,
        until: Literal["stable"] | None = None,
        stable_top: int = 10,
        confidence: float = 0.95,
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        temp_dir: str | os.PathLike[str] | None = None,
        n_features_to_select: int | float | None = None,
        scope: Literal["global", "partition"] = "global",
        block_rows: int = 20_000,
        reservoir_rows: int = 20_000,
        half_life: float | None = None,
    ) -> None:
        self.task = task
        self.ensemble = ensemble
        self.scores = scores
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.min_samples_leaf = min_samples_leaf
        self.max_depth = max_depth
        self.bootstrap = bootstrap
        self.max_samples = max_samples
        self.max_bins = max_bins
        self.ties = ties
        self.decay = decay
        self.per_target = per_target
        self.by_target = by_target
        self.target_weights = target_weights
        self.hierarchy = hierarchy
        self.hierarchy_decay = hierarchy_decay
        self.supervision = supervision
        self.unlabelled = unlabelled
        self.until = until
        self.stable_top = stable_top
        self.confidence = confidence
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.temp_dir = temp_dir
        self.n_features_to_select = n_features_to_select
        self.scope = scope
        self.block_rows = block_rows
        self.reservoir_rows = reservoir_rows
        self.half_life = half_life

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            NumPy arrays of any order are not copied as a whole, sparse ones of SciPy not made dense. In
            frames and Arrow tables, columns of strings and categories are nominal features. NaN and null are
            missing; infinity is an error. Or a dask DataFrame, Array or list of delayed partitions, with
            ``y`` in the same partitions.
        y : array or frame of shape (n_rows,) or (n_rows, n_targets)
            Numbers are quantities unless ``task`` says otherwise; strings and booleans are classes. With a
            ``hierarchy`` or the task "hierarchical", a list of labels for each row. Missing values are NaN or
            None. Not looked at where the task is "unsupervised".
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            The message names the column or the setting, and says what would do.
        """
        return self._fit(X, y, sample_weight)

    def partial_fit(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Self:
        """Rank the features by the batches of all calls so far, which come once and are not kept.

        Whenever ``block_rows`` rows have come since the last time, ``n_estimators`` trees are grown on them
        and on a uniform sample of ``reservoir_rows`` of all rows before. ``result_`` is by the trees of all
        complete blocks, and is set whenever a block is complete. Before the first block is complete there is
        no ranking, unless a call without ``X`` ranks the rows so far. Memory is bounded, and the importances
        have the same bits however rows are cut into batches.

        Standard errors come from the spread of the trees; of many, from that of the means of trees that came
        one after another. Cut points, and the weights of targets, are those of each block and its sample.
        With ``half_life``, the sample prefers recent rows [1]_, and old trees count for less.

        The first call after ``fit`` starts anew, as does ``fit``. A call that fails changes nothing that was
        learned. Not with ``until`` or dask collections.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`, of at least one row. All batches have the same columns. Categories and classes
            may come up at any time, and the type of a numeric column may change, be it that values are
            missing. Where ``task`` is None, the first batch decides. Rows of sparse arrays are held with
            their zeros. Without ``X``, the rows so far are ranked where no block is complete.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            As in :meth:`fit`; or a parameter has changed since the first batch.

        References
        ----------
        .. [1] P. S. Efraimidis, P. G. Spirakis, "Weighted random sampling with a reservoir", Information
           Processing Letters 97, 2006.

        Examples
        --------
        >>> import numpy as np
        >>> from ferrank import ForestRanker
        >>> rng = np.random.default_rng(0)
        >>> forest = ForestRanker(n_estimators=10, block_rows=500, reservoir_rows=500)
        >>> for _ in range(20):
        ...     X = rng.normal(size=(100, 6))
        ...     _ = forest.partial_fit(X, X[:, 4] + 2 * X[:, 1])
        >>> forest.result_.top(2), forest.result_.n_rows
        (['x1', 'x4'], 2000)
        """
        return self._partial_fit(X, y, sample_weight)

    def _resolved(self) -> dict[str, Any]:
        scores = (self.scores,) if isinstance(self.scores, str) else self.scores
        used = "error" if self.supervision is None else "use"
        return {"scores": scores, "unlabelled": used if self.unlabelled is None else self.unlabelled}
