"""Feature ranking by ensembles of trees."""

import os
from collections.abc import Sequence
from typing import Any, Literal, Self

from sklearn.utils.metaestimators import available_if

from ferrank.data.categories import FROM_DTYPE, CategoricalFeatures
from ferrank.data.source import is_lazy
from ferrank.rankers.plan import ForestPlan
from ferrank.rankers.predicting import PredictingRanker, takes_streams

__all__ = ["ForestRanker"]


class ForestRanker(ForestPlan, PredictingRanker):
    """Feature ranking by an ensemble of predictive clustering trees [1]_.

    The impurity of a node is the weighted sum of the variances of all targets. A nominal target or a set of
    labels is represented by indicators; the variances of the indicators of a class sum to the Gini index.
    Trees are grown until no split decreases the impurity. All scores are computed from the same trees.

    Parameters
    ----------
    task : str, optional
        The learning task: "classification", "regression", "multi-target", "multi-label", "hierarchical" or
        "unsupervised". By default it follows from the targets: strings, categories, booleans and integers of
        at most 20 distinct values are classes, other numbers are quantities, several targets of booleans or
        of 0 and 1 are a set of labels, and lists of strings are sets of labels in a hierarchy.
        "unsupervised" has no target: trees cluster the rows by the features.
    ensemble : {"random_forest", "bagging", "extra_trees"}, default="random_forest"
        "random_forest": bootstrap samples, and random candidate features in each node. "bagging": bootstrap
        samples and all features. "extra_trees": all rows, and random cut points.
    scores : sequence of {"genie3", "symbolic", "coverage", "permutation", "mdi_oob"}, default=("genie3",)
        ``genie3`` [2]_: the sum of the impurity decreases of a feature's splits. ``symbolic``: the sum of
        ``decay**depth`` over its splits. ``coverage``: the sum of the shares of rows that reach its splits.
        ``permutation``: the relative increase of the out-of-bag error when the feature is permuted.
        ``mdi_oob`` [4]_: as ``genie3``, but with the decreases measured on out-of-bag rows. Its expectation
        is 0 for an irrelevant feature, however many values it has; that of ``genie3`` grows with them.
        The first score is the main one.
    n_estimators : int, default=100
        Number of trees.
    max_features : {"sqrt", "log2", "auto", "all"}, int, float or None, default=None
        Number of features considered in a node, of those that are not constant in it; a float is a share.
        "auto" is "sqrt", or for numeric targets a third of the features, at most 16, if that is more. None is
        "sqrt" for a random forest, else "all".
    min_samples_leaf : int, default=2
        Minimum number of rows in a leaf; rows drawn several times count as often.
    max_depth : int, optional
        Maximum depth of a tree; the root has depth 0.
    bootstrap : bool, optional
        Whether to draw rows with replacement. None is True except for extra trees.
    max_samples : int, float or None, default=None
        Number of rows drawn for a tree; a float is a share. None draws as many as there are. With groups,
        the share is one of the groups, and a number is an error.
    max_bins : int, default=255
        Maximum number of bins of a numeric feature, from 2 to 65,535. A feature with no more distinct values
        is split at any value, others at quantiles. In large tables, quantiles are those of a sample of rows;
        values that few rows have are found all the same.
    ties : {"random", "lowest"}, default="random"
        How to choose between features whose best splits are equally good: at random, or the first column.
        Ties are frequent in small nodes; with "lowest", the rule of CLUS, later columns get lower
        importances. Of cuts that divide the rows of a node alike, "random" takes the middle one, and "lowest"
        the lowest one; out-of-bag rows and predictions differ.
    missing : {"informative", "ignore"}, default="informative"
        What a missing value of a feature means. "informative": it may tell something about the targets [5]_.
        Each split is tried with the missing values on either side, and whether the value is known is a split
        of its own. With "ignore", the rule of the papers, gains are computed from the known values and scaled
        by their share, and rows with missing values follow the larger child. In nodes without missing values
        they follow the larger child in both cases.
    decay : float or sequence of float, default=0.5
        Decay of the score ``symbolic`` by depth, in (0, 1]; with 1 the score counts splits. Several make a
        score each, such as ``symbolic_decay0.5``.
    permutation_measures : str or sequence of str, optional
        For the score ``permutation`` of label sets (the tasks "multi-label" and "hierarchical"): by which of
        the fifteen measures of :func:`ferrank.evaluate.multilabel_measures` predictions are judged, such as
        "pooled_auprc". The importance is the relative increase of the measure when the feature is permuted,
        with the sign turned where more is better ([3]_, Eq. 4). Scores of labels are their shares in the
        leaves; in hierarchies labels have their weights; rows with a label that is missing are left out.
        Several make a score each, such as ``permutation_pooled_auprc``. None is the Hamming loss, which
        agrees with "hamming_loss" up to rounding.
    per_target : bool, default=False
        Grow a separate ensemble for each target and average the importances.
    by_target : bool, default=False
        Also split the scores ``genie3`` and ``mdi_oob`` by target.
    target_weights : sequence of float, optional
        Weight of each target; None gives all targets weight 1.
    feature_weights : sequence of float, optional
        Weight of each feature in the impurity, in the order of the columns, where ``supervision`` makes
        features a part of it (β of [3]_, Eq. 1); None gives all features weight 1.
    categorical_features : sequence of str or int, mask or "from_dtype", default="from_dtype"
        Features that are nominal whatever their type: names, positions, or a mask with a bool for each
        feature. With "from_dtype", columns of strings or categories and dictionaries alone are nominal.
    hierarchy : path, mapping, frame or table, optional
        The hierarchy of the labels of a hierarchical target, a tree or a DAG: a table of edges with columns
        ``parent`` and ``child``, a CSV file of one, or a mapping of each label to its parent, its parents or
        None. By default it is read from the data file, or from labels that are paths such as
        ``animal/koala``.
    hierarchy_decay : float, default=0.75
        Weight of a label relative to the mean weight of its parents, in (0, 1]; roots have weight 1.
    supervision : float, optional
        Semi-supervised learning: the share of the targets in the impurity, from 0 to 1; the features have the
        rest [3]_. Rows without a target then contribute to the choice of splits; predictions and errors use
        rows with a target only. With 0 trees cluster the rows by the features alone. With 1 they use the
        targets alone, and rows without any target are left out. None is 1, and rows without a target are an
        error. For values below 1 feature values are held in memory, 16 bytes each.
    unlabelled : {"error", "ignore", "use"}, optional
        How to treat rows whose targets are all missing. None is "error", or "use" if ``supervision`` is
        given.
    until : {"stable"}, optional
        With "stable" the run ends once the ``stable_top`` best features are separated from all others. With
        many rows it starts with few trees on samples of the rows, and ends there if the trend from smaller to
        larger samples says the same for all rows. It goes on to at most ``n_estimators`` trees of
        ``max_samples`` rows. Features that are no better than chance never count as separated.
        ``result_.stopped`` gives the reason for the end.
        Ctrl-C ends the run with the ranking so far; a second Ctrl-C cancels it.
    stable_top : int, default=10
        Number of features that ``until`` separates from the others; at most n_features - 1 are used.
    confidence : float, default=0.95
        Probability for ``until`` that none of them is separated by chance.
    standard_errors : bool, default=True
        Whether to compute standard errors: how far other rows from the same population would move the
        importances. Each of the first 200 trees then has two companions on half of the rows, at most 2,000,
        which do not affect the importances. Without them there are only Monte Carlo errors: how far more
        trees would move the importances. Streams of ``partial_fit`` and rankings in parts have no standard
        errors.
    shadows : bool, default=False
        Whether to compute p-values, from which the relevant features follow (:meth:`Ranking.relevant`). Each
        feature gets a shadow: its values in other rows. Trees choose among features and shadows, and what
        shadows achieve is what an irrelevant feature achieves by chance [6]_. Needs 200 trees or more; 600
        are advised. Takes the memory of the codes twice. Not for streams, rankings in parts, ``until``, and
        ``supervision`` below 1.
    keep_trees : bool or path, default=False
        Whether to keep the trees, so that the forest predicts, as ``forest_``; a path also saves them there.
        Takes about 70 bytes for each node of a tree. Not for streams, dask collections, ``until``,
        ``resume``, ``shadows``, and trees whose rows do not fit into memory.
    random_state : int, RandomState, Generator or None, default=0
        Seed of all random draws. None draws a new seed for each run.
    n_jobs : int, optional
        Number of threads. None and -1 use all cores, but None uses one thread inside a joblib worker. A
        worker of a dask cluster uses its own threads. Importances do not depend on this number, to the bit.
    memory_limit : int or str, optional
        Maximum memory of the process, in bytes or as a string such as "2GiB" or "500MB". None uses half of
        the free memory of the machine or its control group. Data that does not fit is kept in temporary
        files; importances do not depend on the limit, to the bit. For a dask collection it is the limit of
        each worker process, and at most 70 % of the worker's own limit, above which dask spills to disk.
        Without either limit, workers on one machine share half of its free memory.
    temp_dir : path, optional
        Folder for temporary files, which are removed after the run. None uses the system's temporary folder,
        or that of the worker of a dask cluster.
    n_features_to_select : int, float or None, default=None
        Number of features that ``transform`` keeps, the best first; a float is a share. None keeps half of
        them, as scikit-learn's RFE does. To keep features above a threshold, use ``SelectFromModel``.
    scope : {"global", "partition"}, default="global"
        For a dask collection. "global" grows trees on all rows, with the same bits as on one machine. With
        "partition" each partition grows its share of the trees on its own rows, and no row moves; a
        :class:`DriftWarning` is issued if the distributions of partitions differ.
    block_rows : int, default=20_000
        For ``partial_fit``: number of new rows that make a block, which is ranked once it is complete.
    reservoir_rows : int, default=20_000
        For ``partial_fit``: size of the uniform sample of all earlier rows that is ranked with each block.
    half_life : float, optional
        For ``partial_fit``: number of rows after which the weight of a contribution halves, at least
        ``block_rows``. The reservoir then has at most ``half_life / ln 2`` rows. None keeps all weights.

    Attributes
    ----------
    result_ : Ranking
        Importances, their errors and ranks for each score.
    ranking_ : ndarray of shape (n_features,)
        Ranks under the first score; 1 is the most important feature.
    feature_importances_ : ndarray of shape (n_features,)
        Importances under the first score.
    forest_ : Forest
        The trees, with ``keep_trees``.
    classes_ : ndarray of shape (n_classes,), or list of ndarray
        The classes of the target, or of each of several; the labels of label sets. With ``keep_trees``.
    oob_score_ : float, or ndarray of shape (n_targets,)
        How well rows are predicted by the trees that have them out of bag, with ``keep_trees``: R² of
        numbers, accuracy of classes, 1 - Hamming loss of label sets; for each of several targets. Computed
        when it is first read; not there if it cannot be known, which ``forest_.no_oob`` explains.
    oob_prediction_ : ndarray of shape (n_rows,), (n_rows, n_targets) or (n_rows, n_classes), or list of them
        Predictions of these rows: means of numbers, shares of classes or labels; a list if one of several
        targets is not a number. NaN in rows that no tree has out of bag. ``n_rows`` are those that take part:
        rows of weight 0, and without a target where these are left out, are not among them.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if all column names of ``X`` are strings.

    References
    ----------
    .. [1] M. Petković, D. Kocev, S. Džeroski, "Feature ranking for multi-target regression",
       Machine Learning 109, 2020.
    .. [2] V. A. Huynh-Thu, A. Irrthum, L. Wehenkel, P. Geurts, "Inferring regulatory networks from
       expression data using tree-based methods", PLoS ONE 5, 2010.
    .. [3] M. Petković, S. Džeroski, D. Kocev, "Feature ranking for semi-supervised learning",
       Machine Learning 112, 2023; Eq. 1, and Section 3.1 for hierarchies of labels.
    .. [4] X. Li, Y. Wang, S. Basu, K. Kumbier, B. Yu, "A debiased MDI feature importance measure for random
       forests", Advances in Neural Information Processing Systems 32, 2019.
    .. [5] B. E. T. H. Twala, M. C. Jones, D. J. Hand, "Good methods for coping with missing data in decision
       trees", Pattern Recognition Letters 29, 2008.
    .. [6] M. B. Kursa, W. R. Rudnicki, "Feature selection with the Boruta package", Journal of Statistical
       Software 36, 2010, for the idea of shadows. P-values follow by a rule of ours, which the module
       ``relevance`` of the crate ``ferrank-ranking`` describes.

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
        missing: Literal["informative", "ignore"] = "informative",
        decay: float | Sequence[float] = 0.5,
        permutation_measures: str | Sequence[str] | None = None,
        per_target: bool = False,
        by_target: bool = False,
        target_weights: Sequence[float] | None = None,
        feature_weights: Sequence[float] | None = None,
        categorical_features: CategoricalFeatures = FROM_DTYPE,
        hierarchy: Any = None,
        hierarchy_decay: float = 0.75,
        supervision: float | None = None,
        unlabelled: Literal["error", "ignore", "use"] | None = None,
        until: Literal["stable"] | None = None,
        stable_top: int = 10,
        confidence: float = 0.95,
        standard_errors: bool = True,
        shadows: bool = False,
        keep_trees: bool | str | os.PathLike[str] = False,
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
        self.missing = missing
        self.decay = decay
        self.permutation_measures = permutation_measures
        self.per_target = per_target
        self.by_target = by_target
        self.target_weights = target_weights
        self.feature_weights = feature_weights
        self.categorical_features = categorical_features
        self.hierarchy = hierarchy
        self.hierarchy_decay = hierarchy_decay
        self.supervision = supervision
        self.unlabelled = unlabelled
        self.until = until
        self.stable_top = stable_top
        self.confidence = confidence
        self.standard_errors = standard_errors
        self.shadows = shadows
        self.keep_trees = keep_trees
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.temp_dir = temp_dir
        self.n_features_to_select = n_features_to_select
        self.scope = scope
        self.block_rows = block_rows
        self.reservoir_rows = reservoir_rows
        self.half_life = half_life

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, groups: Any = None, *, client: Any = None
    ) -> Self:
        """Rank the features.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The features. Columns of strings or categories in frames and Arrow tables are nominal features, as
            are ``categorical_features``.
            NaN and null are missing values; infinity is an error. NumPy arrays are not copied as a whole,
            sparse arrays are not made dense. Also a dask DataFrame, Array or list of delayed partitions, with
            ``y`` in the same partitions.
        y : array or frame of shape (n_rows,) or (n_rows, n_targets)
            The targets; ``task`` says which stand for classes. With a ``hierarchy`` or the task
            "hierarchical", a list of labels for each row. Missing values are NaN or None. Ignored if the task
            is "unsupervised".
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows.
        groups : array of shape (n_rows,), optional
            The group that each row belongs to, such as a patient: strings, integers or categories, without
            missing values. Rows of a group stay together: bags are drawn group by group [1]_, and a tree's
            out-of-bag rows are of groups that it has not seen. Without bootstrap, all trees see all rows.
        client : dask.distributed.Client, optional
            For a dask collection: whose cluster ranks it. By default the scheduler that dask would use. With
            an asynchronous client, what is returned has to be awaited.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            For invalid data or settings; the message names the column or setting and what is valid.

        References
        ----------
        .. [1] C. A. Field, A. H. Welsh, "Bootstrapping clustered data", Journal of the Royal Statistical
           Society B 69, 2007.
        """
        self._forget_trees()
        fitted = self._fit(X, y, sample_weight, groups, client)
        if self.keep_trees and not is_lazy(X):
            self._keep_trees(y)
        return fitted

    @available_if(takes_streams)  # type: ignore[untyped-decorator]
    def partial_fit(
        self, X: Any = None, y: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Rank the features of a stream, batch by batch; batches are not kept.

        Every ``block_rows`` new rows make a block, on which ``n_estimators`` trees are grown together with a
        uniform sample of ``reservoir_rows`` earlier rows. ``result_`` covers the trees of all complete blocks
        and is set when a block is complete. Before that there is no ranking, unless a call without ``X``
        ranks the rows so far. Memory is bounded. Importances do not depend on how the rows are split into
        batches, to the bit.

        Monte Carlo errors come from the variance between trees; if there are many, between means of
        consecutive trees. Cut points and target weights are computed for each block and its sample. With
        ``half_life`` the sample prefers recent rows [1]_, and the weight of old trees decays.

        The first call after ``fit`` starts a new stream. A call that fails changes nothing. Not available
        with ``until`` and for dask collections.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in :meth:`fit`, with at least one row. All batches have the same columns. New categories and
            classes may appear in any batch, and numeric columns may change their numeric type. If ``task`` is
            None, the first batch determines it. Sparse rows are held dense. Without ``X``, the rows so far
            are ranked if no block is complete. Groups stay together within a block and its sample.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            As in :meth:`fit`, and if a parameter changed since the first batch.

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
        return self._partial_fit(X, y, sample_weight, groups)
