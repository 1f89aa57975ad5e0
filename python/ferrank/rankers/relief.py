"""Feature ranking by nearest neighbors: the Relief family."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Self

from ferrank.data.categories import FROM_DTYPE, CategoricalFeatures
from ferrank.rankers.plan import ReliefPlan, _covariates
from ferrank.rankers.streaming import StreamRanker

__all__ = ["ReliefRanker"]


class ReliefRanker(ReliefPlan, StreamRanker):
    """Feature ranking by the Relief family.

    A feature is important if it differs between neighboring rows with different targets and is equal between
    neighboring rows with equal targets.

    A single nominal target is ranked by ReliefF [1]_: differences between a row and its nearest rows of other
    classes (misses, weighted by the prior of the class) count for a feature, differences from the nearest
    rows of its own class (hits) count against it. All other targets are ranked by RReliefF [1]_ with a
    distance between targets: the range-normalized difference of numbers, 0 or 1 for classes, the mean of
    these for several targets [2]_, or a distance between label sets [3]_.

    Neighbors are exact. The distance of two rows is the mean over features of the range-normalized difference
    of numbers and of 0 or 1 for categories; ``distance_features`` says over which, and with which weights. By
    default, the difference from a missing value is its expected value given the known values, in
    classification those of the row's class.

    Parameters
    ----------
    task : {"classification", "regression", "multi-target", "multi-label", "hierarchical"}, optional
        The learning task. By default it follows from the targets: strings, categories, booleans and
        integers of at most 20 distinct values are classes, other numbers are quantities, several targets of
        booleans or of 0 and 1 are a set of labels, and lists of strings are sets of labels in a hierarchy.
    neighborhood : {"nearest", "surf", "surf_star", "multisurf", "multisurf_star"}, default="nearest"
        Which rows count as neighbors of a row. "nearest": the ``n_neighbors`` nearest. "surf" [4]_: all that
        are nearer than the mean distance of all pairs of rows. "multisurf" [7]_: all that are nearer than the
        mean distance from the row less half of the standard deviation (of a population) of these distances.
        "surf_star" [5]_ and "multisurf_star" [6]_: the same, and rows farther than the mean, or than the mean
        plus half of the standard deviation, count with the opposite sign; importances are then in [-2, 2].
        Rules other than "nearest" find interactions without a choice of ``n_neighbors``; they measure all
        pairs of rows and hold all rows in memory, at most 4,000,000. In classification they add up
        differences of numbers rounded to multiples of 2**-30, in features without missing values. For dask
        collections use "nearest" or ``scope="partition"``. See Notes for the differences from scikit-rebate.
    n_neighbors : int or sequence of int, default=10
        Number of neighbors of each row, in classification of each class; smaller classes count with the rows
        they have. Several numbers share one search and give a score each: ``relief_k10``, ``relief_k70`` ….
        Only for ``neighborhood="nearest"``, as is ``sigma``.
    sigma : float, None or sequence of them, default=None
        Width of the rank weights: the neighbor of rank r has weight ``exp(-(r / sigma)**2)``. None gives all
        neighbors the same weight. Several values give a score each, such as ``relief_sigma20``.
    scores : sequence of {"relief", "myopic"}, default=("relief",)
        ``myopic`` compares pairs of rows of different classes with pairs of the same class, drawn from all
        rows with replacement instead of neighbors [1]_ (Eq. 4); it needs a single nominal target and has no
        standard errors. The first score is the main one.
    class_priors : {"empirical", "uniform"} or dict, default="empirical"
        Prior probabilities P of the classes, by which ReliefF weighs the misses of each class C of a row of
        class c, P(C) / (1 - P(c)): the shares of the rows, the same for all, or by class, up to a common
        factor. For a single nominal target.
    n_iterations : int, float, None or sequence of these, default=None
        Number of rows whose neighbors are searched (m in the papers), drawn without replacement; a float is a
        share. None uses all rows, as does a greater number. Several make a score each from one run, such as
        ``relief_m100`` and ``relief_m25%``: the scores of the first so many rows of the draw.
    max_samples : int, float or None, default=None
        Number of rows that take part, as queries and as neighbors, drawn without replacement before anything
        else is computed; a float is a share. None uses all rows, as does a greater number. 10,000 of a
        million rows, all as queries, take a fraction of the time of 1,000 queries among all rows, but
        neighbors are farther away then. Not for dask collections, ``partial_fit`` and in parts.
    turf_step : int, float or None, default=None
        With a number, the worst features are left out and the others ranked anew, in several iterations
        (TuRF [8]_): a number of features that leave after each iteration, or a share of those that are left.
        Irrelevant features blur distances, so that relevant ones stand out better among few. With a share of
        0.5, all iterations together take about twice the time of the first. Standard errors take it for given
        which features were left. Not with ``target_draws``, ``until``, ``partial_fit`` and in parts.
    turf_features : int or float, default=0.1
        Number, or share, of the features in the last iteration of TuRF. The importance of a feature is that
        of its last iteration; of features that leave together, importances are lowered by the same number
        where needed to stay below those of the features left.
    distance_features : sequence of str or int, mask or mapping, optional
        The features that say which rows are near: names, positions, or a mask with a bool for each feature;
        or a mapping from names to weights, finite and not negative, where features that are not named have
        weight 0. The distance of two rows is the weighted mean of the differences of these features. All
        features are ranked: importances are sums of the differences between neighbors, whether a feature
        counts in the distance or not. Use it where it is known what makes rows comparable: a few known
        features, or an embedding such as principal components, kept as columns. Where the distance of the
        features replaces the distance of the targets (``unlabelled="use"``), it is this distance. Where
        several rows are at the same distance, as is common with a few categories, the rows with the lowest
        numbers are the neighbors; with ``neighborhood="surf"`` all of them are. A feature that
        ``turf_step`` leaves out no longer counts in the distance, and the iterations end before the last
        such feature would be left out. A pandas Series whose index has names is a mapping. None gives all
        features weight 1.
    covariates : sequence of str or int, optional
        Features, by name or position, that importances are adjusted for, such as age, sex or a batch, in the
        spirit of NPDR [9]_: a feature must tell more about the distance of the targets than the differences
        in the covariates do. Covariates do not count in the distance of rows, and are not ranked; a
        covariate that follows from those before it has no effect. Classes are then ranked by RReliefF with
        distance 0 or 1 and neighbors of all classes, as with ``target_draws``. See Notes for the formula. Not
        with ``target_draws``, so that there are no p-values, ``unlabelled="use"``, ``class_priors`` and the
        score ``myopic``.
    scaling : {"range", "rank"}, default="range"
        How numeric features and targets are scaled to [0, 1]. "range" divides differences by the range of the
        feature [1]_; a single outlier then makes all other differences small. "rank" replaces each value by
        its rank among all rows, equal values by the mean of their ranks, so that outliers and skewed
        distributions do not matter: the difference of two values is the share of the rows between them, which
        estimates the integral of the density from one to the other, the distance that [2]_ (section 6) leaves
        to future work. Missing values have no rank.
    missing : {"expected", "informative"}, default="expected"
        How much a missing value of a feature differs from others. "expected": as much as is expected, given
        the known values of the feature. In classification these are the values known in rows of the same
        class [1]_, or in all rows if the class has none. "informative": missing is a value of its own,
        which differs from known values by 1 and not from other missing ones; use it if values may be missing
        for reasons that depend on the target. Missing targets always differ by what is expected.
    target_distance : {"hamming", "accuracy", "f1", "subset"} or sequence of them, optional
        Distance between label sets; Hamming by default. Several distances give a score each, such as
        ``relief_f1``. In a hierarchy labels count with their weights. Distances are normalized to [0, 1].
    per_target : bool, default=False
        Compute importances for each target on its own, with the same neighbors, and average them. No effect
        with a single target.
    target_weights : sequence of float, optional
        Weight of each target; None gives all targets weight 1.
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
    unlabelled : {"error", "ignore", "use"}, optional
        How to treat rows whose targets are all missing. With "use" they take part [3]_: in a pair with such a
        row, the distance of the features, that of ``distance_features``, replaces that of the targets, and
        classes are ranked by RReliefF with distance 0 or 1. None is "error", or "use" if ``influence`` is
        given.
    influence : (float, float), optional
        Influence of rows without a target, in [0, 1]: of the row farthest from all rows with a target, and of
        the nearest; linear in between. Rows with a target have influence 1. The influences of a pair are
        multiplied. None is (0, 1) if such rows are used.
    target_draws : int, default=0
        Number of times that targets are drawn anew, at least 20; 60 are enough. The importances for these
        targets, which have nothing to do with the features, give p-values, from which the relevant features
        follow (:meth:`Ranking.relevant`). Neighbors are then the nearest rows of all classes, as in RReliefF,
        standard errors are not computed, and the time for the sums of differences grows with the number of
        draws. Features that 96 % of the rows have the same value of get the p-value 1: of them the law is not
        known well enough. Not for streams, rankings in parts, and ``until``.
    standard_errors : bool, default=True
        Whether to compute standard errors: how far other rows from the same population would move the
        importances. They take up to two fifths of the time, and do not affect the importances but for
        rounding errors, below 1e-11 with ``neighborhood="nearest"``. Without them there are only Monte Carlo
        errors: how far other queries would move the importances. ``until`` needs them.
    until : {"stable"}, optional
        With "stable" the number of queries grows, up to ``n_iterations``, until the ``stable_top`` best
        features are separated from all others. ``result_.stopped`` gives the reason for the end. Ctrl-C ends
        the run with the ranking so far; a second Ctrl-C cancels it.
    stable_top : int, default=10
        Number of features that ``until`` separates from the others; at most n_features - 1 are used.
    confidence : float, default=0.95
        Probability for ``until`` that none of them is separated by chance.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the draw of rows, and of the blocks that standard errors are computed from.
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
        For a dask collection. "global" searches neighbors among all rows, with the same bits as on one
        machine. With "partition" each partition searches for its share of the queries among its own rows, and
        no row moves; a :class:`DriftWarning` is issued if the distributions of partitions differ.
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
        Importances, standard errors and ranks for each score.
    ranking_ : ndarray of shape (n_features,)
        Ranks under the first score; 1 is the most important feature. Covariates come after all others.
    feature_importances_ : ndarray of shape (n_features,)
        Importances under the first score, in [-1, 1]; in [-2, 2] where far rows count. 0 for covariates, of
        which nothing is left once adjusted for themselves; ``SelectFromModel`` keeps them unless its
        threshold is above 0.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if all column names of ``X`` are strings.

    Notes
    -----
    The rules by distance are those of their papers. Near rows have equal weights, in classification within
    their class, whose misses are weighted by the prior of the class as in ReliefF. For other targets the
    probabilities of RReliefF are those of near pairs, each row with the same weight; the score of far pairs,
    computed in the same way, is subtracted. A distance equal to its threshold is neither near nor far.

    With row weights w, a query counts w_q times, and of the neighbors in its list neighbor j has the share
    w_j κ(r_j) / Σ_i w_i κ(r_i), where κ(r) is the rank weight of the r-th nearest row, 1 without ``sigma``.
    Priors of classes, distributions of missing values, ranks, probabilities and m are sums of weights in the
    place of counts. In the mean distance of "surf" a pair has the weight w_q w_j, in the mean and the
    standard deviation of "multisurf" a row has the weight w_j; these thresholds are then rounded to 12
    decimals. Only the ratios of weights matter.

    So a row of weight 2 is as good as two rows that are no neighbors of each other (``groups``), but for one
    thing: ``n_neighbors`` and the ranks of ``sigma`` count rows, however heavy. The 10 nearest rows are 10
    rows, and 5 if each is there twice. Standard errors are those of rows that are drawn with their weights.

    With ``covariates`` C, the importance of feature f over the weighted pairs of a row and its neighbor is
    (cov(d_f, d_Y) - Σ_c b_c cov(d_f, d_c)) / (p (1 - p)), where d are differences and distances, p is the
    mean of d_Y, and b are the least-squares coefficients of d_Y on the d_c of the same pairs. Without
    covariates that is the importance of RReliefF. Far rows, where they count, are adjusted on their own.

    scikit-rebate gives the same importances for two classes, but for these differences: its SURF and SURF*
    include the distance 0 of each row from itself in the mean of all pairs; far rows of MultiSURF* count by
    1 minus the difference, which adds one constant to the importances of all features where a row has only
    far hits or only far misses; where numeric and nominal features are mixed, numeric ones differ by 1 beyond
    one standard deviation; and missing values are left out. It weighs misses of several classes by the
    squared share of their class among them, and numeric targets count as equal within one standard
    deviation.

    References
    ----------
    .. [1] M. Robnik-Šikonja, I. Kononenko, "Comprehensiveness of tree based models: attribute dependencies
       and split selection", University of Ljubljana, 1999; Figures 3 and 4.
    .. [2] M. Petković, D. Kocev, S. Džeroski, "Feature ranking for multi-target regression",
       Machine Learning 109, 2020; Section 2.2.
    .. [3] M. Petković, S. Džeroski, D. Kocev, "Feature ranking for semi-supervised learning",
       Machine Learning 112, 2023; Section 5.2, and Equation 7 for hierarchies of labels.
    .. [4] C. S. Greene, N. M. Penrod, J. Kiralis, J. H. Moore, "Spatially uniform ReliefF (SURF) for
       computationally-efficient filtering of gene-gene interactions", BioData Mining 2, 2009.
    .. [5] C. S. Greene, D. S. Himmelstein, J. Kiralis, J. H. Moore, "The informative extremes: using both
       nearest and farthest individuals can improve Relief algorithms in the domain of human genetics",
       EvoBIO, 2010.
    .. [6] D. Granizo-Mackenzie, J. H. Moore, "Multiple threshold spatially uniform ReliefF for the genetic
       analysis of complex human diseases", EvoBIO, 2013.
    .. [7] R. J. Urbanowicz, R. S. Olson, P. Schmitt, M. Meeker, J. H. Moore, "Benchmarking relief-based
       feature selection methods for bioinformatics data mining", Journal of Biomedical Informatics 85, 2018.
    .. [8] J. H. Moore, B. C. White, "Tuning ReliefF for genome-wide genetic analysis", EvoBIO, 2007.
    .. [9] T. T. Le, B. A. Dawkins, B. A. McKinney, "Nearest-neighbor Projected-Distance Regression (NPDR) for
       detecting network interactions with adjustments for multiple tests and confounding",
       Bioinformatics 36, 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank import ReliefRanker
    >>> X = np.random.default_rng(0).integers(2, size=(200, 6))
    >>> relief = ReliefRanker(task="classification", n_neighbors=(5, 10), n_features_to_select=2)
    >>> relief.fit(X, X[:, 1] ^ X[:, 4]).get_feature_names_out()
    array(['x1', 'x4'], dtype=object)
    >>> list(relief.result_.scores)
    ['relief_k5', 'relief_k10']
    """

    def __init__(
        self,
        task: str | None = None,
        *,
        neighborhood: Literal["nearest", "surf", "surf_star", "multisurf", "multisurf_star"] = "nearest",
        n_neighbors: int | Sequence[int] = 10,
        sigma: float | Sequence[float | None] | None = None,
        scores: Sequence[str] = ("relief",),
        class_priors: Literal["empirical", "uniform"] | Mapping[Any, float] = "empirical",
        n_iterations: int | float | Sequence[int | float | None] | None = None,
        max_samples: int | float | None = None,
        turf_step: int | float | None = None,
        turf_features: int | float = 0.1,
        distance_features: Iterable[Any] | Mapping[Any, float] | None = None,
        covariates: Iterable[Any] | None = None,
        scaling: Literal["range", "rank"] = "range",
        missing: Literal["expected", "informative"] = "expected",
        target_distance: str | Sequence[str] | None = None,
        per_target: bool = False,
        target_weights: Sequence[float] | None = None,
        categorical_features: CategoricalFeatures = FROM_DTYPE,
        hierarchy: Any = None,
        hierarchy_decay: float = 0.75,
        unlabelled: Literal["error", "ignore", "use"] | None = None,
        influence: tuple[float, float] | None = None,
        target_draws: int = 0,
        standard_errors: bool = True,
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
        self.neighborhood = neighborhood
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.scores = scores
        self.class_priors = class_priors
        self.n_iterations = n_iterations
        self.max_samples = max_samples
        self.turf_step = turf_step
        self.turf_features = turf_features
        self.distance_features = distance_features
        self.covariates = covariates
        self.scaling = scaling
        self.missing = missing
        self.target_distance = target_distance
        self.per_target = per_target
        self.target_weights = target_weights
        self.categorical_features = categorical_features
        self.hierarchy = hierarchy
        self.hierarchy_decay = hierarchy_decay
        self.unlabelled = unlabelled
        self.influence = influence
        self.target_draws = target_draws
        self.standard_errors = standard_errors
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

    def _unranked(self) -> list[str | int]:
        return _covariates(self.covariates)

    def fit(
        self, X: Any, y: Any, groups: Any = None, sample_weight: Any = None, *, client: Any = None
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
            "hierarchical", a list of labels for each row. Missing values are NaN or None.
        groups : array of shape (n_rows,), optional
            The group that each row belongs to, such as a patient: strings, integers or categories, without
            missing values. The neighbors of a row are rows of other groups: rows of its own group are alike
            for reasons that tell nothing of other groups.
        sample_weight : array of shape (n_rows,), optional
            Weights of the rows, finite and not negative: a row of weight w counts as w rows in the population
            do; rows of weight 0 are left out. See Notes of the class. Not with ``target_draws``.
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
        """
        return self._fit(X, y, sample_weight, groups, client)

    def partial_fit(
        self, X: Any = None, y: Any = None, groups: Any = None, sample_weight: Any = None
    ) -> Self:
        """Rank the features of a stream, batch by batch; batches are not kept.

        Every ``block_rows`` new rows make a block. A block is ranked together with a uniform sample of
        ``reservoir_rows`` earlier rows, and its contributions are added to those of earlier blocks.
        ``result_`` covers all complete blocks and is set when a block is complete. Before that there is no
        ranking, unless a call without ``X`` ranks the rows so far. Memory is bounded. Importances do not
        depend on how the rows are split into batches, to the bit. Values are scaled by the range of each
        block and its sample, or ranked among its rows.

        The first call after ``fit`` starts a new stream. A call that fails changes nothing. Not available
        with ``until``, for dask collections, and with ``unlabelled="use"`` in classification.

        Parameters
        ----------
        X, y, groups, sample_weight
            As in :meth:`fit`, with at least one row. All batches have the same columns. New categories and
            classes may appear in any batch, and numeric columns may change their numeric type. If ``task`` is
            None, the first batch determines it. Sparse rows are held dense. Without ``X``, the rows so far
            are ranked if no block is complete.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            As in :meth:`fit`, and if a parameter changed since the first batch.

        Examples
        --------
        >>> import numpy as np
        >>> from ferrank import ReliefRanker
        >>> rng = np.random.default_rng(0)
        >>> relief = ReliefRanker(task="classification", block_rows=200, reservoir_rows=200)
        >>> for _ in range(8):
        ...     X = rng.integers(2, size=(50, 6))
        ...     _ = relief.partial_fit(X, X[:, 1] ^ X[:, 4])
        >>> sorted(relief.result_.top(2)), relief.result_.n_rows
        (['x1', 'x4'], 400)
        """
        return self._partial_fit(X, y, sample_weight, groups)
