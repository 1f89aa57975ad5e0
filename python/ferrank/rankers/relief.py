"""Ranking by neighbours: the Relief family."""

import os
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

from ferrank.errors import SettingError
from ferrank.rankers.streaming import StreamRanker

__all__ = ["ReliefRanker"]


class ReliefRanker(StreamRanker):
    """Rank features by how much they differ between near rows whose targets differ, and do not.

    One nominal target is ranked for by ReliefF: features gain by differing between a row and its nearest
    rows of other classes, weighted by the classes' shares, and lose by differing from those of its own.
    All other targets are ranked for by RReliefF, in which rows are more or less alike: by the
    range-normalised difference of a number, 0 or 1 for classes, the mean of these for several targets, or a
    distance between label sets. Neighbours are exact: the nearest in the mean over features of the
    range-normalised difference of numbers and 0 or 1 for categories. A missing value differs by what is
    expected from the known values, in classification from those of the row's class.

    Parameters
    ----------
    task : {"classification", "regression", "multi-target", "multi-label", "hierarchical"}, optional
        What is predicted. By default the targets tell: strings, categories and booleans are classes, numbers
        are quantities; several booleans are a set of labels, and lists of strings are sets of labels out of
        a hierarchy.
    n_neighbors : int or sequence of int, default=10
        Neighbours of each row, in classification of each class; a class that has fewer counts with those.
        One search answers for several numbers, with a score for each: ``relief_k10``, ``relief_k70`` ….
    sigma : float, None or sequence of them, default=None
        The neighbour of rank r weighs ``exp(-(r / sigma)**2)``; None is 1 each. Several give a score each,
        such as ``relief_sigma20``.
    scores : sequence of {"relief", "myopic"}, default=("relief",)
        ``myopic`` takes any two rows instead of near ones and needs one nominal target; it has no standard
        errors. The first is the main one.
    n_iterations : int, float or None, default=None
        Rows whose neighbours are looked for, drawn without replacement; a float is a share. None is all.
    target_distance : {"hamming", "accuracy", "f1", "subset"} or sequence of them, optional
        Distance between label sets, Hamming by default. Several give a score each, such as ``relief_f1``.
        In a hierarchy each label counts with its weight; distances are normalised to [0, 1].
    per_target : bool, default=False
        Rank for each target on its own, with the same neighbours, and average the importances. It takes
        no part in classification and regression, which have one target.
    target_weights : sequence of float, optional
        Weight of each target. None is 1 each.
    hierarchy : path, mapping, frame or table, optional
        What stands above the labels of a hierarchical target: an edge table with the columns ``parent`` and
        ``child``, the CSV file of one, or a mapping of each label to its parent, its parents or None; a tree
        or a DAG. By default the data file tells, or the labels are paths, such as ``animal/koala``.
    hierarchy_decay : float, default=0.75
        In (0, 1]. A label weighs this times the mean weight of its parents, a root 1.
    unlabelled : {"error", "ignore", "use"}, optional
        What becomes of rows whose targets are all missing. With "use" they take part [3]_: in a pair with
        one of them, the distance of the features stands in for that of the targets. Classes are then ranked
        for by RReliefF, with 0 or 1 between them. None is "error", or "use" where ``influence`` is given.
    influence : (float, float), optional
        What the rows without a target have to say, from 0 to 1: the one farthest from all rows with a target,
        and the nearest; those between lie on a straight line. Rows with a target count 1, and the influences
        of the rows of a pair multiply. None is (0, 1) where such rows are used.
    until : {"stable"}, optional
        With "stable" the run goes no further than it must for the ``stable_top`` best features to stand clear
        of all others: it takes more and more queries, at most ``n_iterations``.
        ``ranking_.stopped`` says why it ended. Ctrl-C once ends it with the answer it has, twice stops it.
    stable_top : int, default=10
        See ``until``; at most all features but one count.
    confidence : float, default=0.95
        See ``until``; the probability that none stands clear by chance.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the draw of rows, and of the blocks that standard errors are taken over.
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
        each partition looks for the neighbours of its share of the queries among its own rows; no row moves
        then, and a :class:`DriftWarning` says so if partitions differ in their distributions.
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
        The importances under the first score, in [-1, 1].
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where ``X`` had names that are strings.

    References
    ----------
    .. [1] M. Robnik-Šikonja, I. Kononenko, "Comprehensiveness of tree based models: attribute dependencies
       and split selection", ICML 1999; Figures 3 and 4.
    .. [2] M. Petković, D. Kocev, S. Džeroski, "Feature ranking for multi-target regression",
       Machine Learning 109, 2020; Section 2.2.
    .. [3] M. Petković, S. Džeroski, D. Kocev, "Feature ranking for semi-supervised learning",
       Machine Learning 112, 2023; Section 5.2, and Equation 7 for hierarchies of labels.

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

    _engine: ClassVar[str] = "relief"

    def __init__(
        self,
        task: str | None = None,
        *,
        n_neighbors: int | Sequence[int] = 10,
        sigma: float | Sequence[float | None] | None = None,
        scores: Sequence[str] = ("relief",),
        n_iterations: int | float | None = None,
        target_distance: str | Sequence[str] | None = None,
        per_target: bool = False,
        target_weights: Sequence[float] | None = None,
        hierarchy: Any = None,
        hierarchy_decay: float = 0.75,
        unlabelled: Literal["error", "ignore", "use"] | None = None,
        influence: tuple[float, float] | None = None,
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
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.scores = scores
        self.n_iterations = n_iterations
        self.target_distance = target_distance
        self.per_target = per_target
        self.target_weights = target_weights
        self.hierarchy = hierarchy
        self.hierarchy_decay = hierarchy_decay
        self.unlabelled = unlabelled
        self.influence = influence
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

    def fit(self, X: Any, y: Any) -> Self:
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
            None.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            The message names the column or the setting, and says what would do.
        """
        return self._fit(X, y, None)

    def partial_fit(self, X: Any = None, y: Any = None) -> Self:
        """Rank the features by the batches of all calls so far, which come once and are not kept.

        Whenever ``block_rows`` rows have come since the last time, these and a uniform sample of
        ``reservoir_rows`` of all rows before are searched for the neighbours of ``n_iterations`` of them, and
        their contributions are added up. ``result_`` is by all complete blocks, and is set whenever a block
        is complete. Before the first block is complete there is no ranking, unless a call without ``X`` ranks
        the rows so far. Memory is bounded, and the importances have the same bits however the rows are cut
        into batches. Ranges of values are those of each block and its sample.

        The first call after ``fit`` starts anew, as does ``fit``. A call that fails changes nothing that was
        learned. Not with ``until`` or dask collections, nor with ``unlabelled="use"`` in classification.

        Parameters
        ----------
        X, y
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
        return self._partial_fit(X, y, None)

    def _resolved(self) -> dict[str, Any]:
        if self.influence is not None and self.unlabelled not in {None, "use"}:
            raise SettingError(
                f"influence: is of rows without a target, unlabelled={self.unlabelled!r} lets none "
                "take part; leave one of the two out"
            )
        used = "use" if self.influence is not None else "error"
        return {
            "scores": _listed(self.scores),
            "n_neighbors": _listed(self.n_neighbors),
            "sigma": _listed(self.sigma),
            "target_distance": [] if self.target_distance is None else _listed(self.target_distance),
            "unlabelled": self.unlabelled or used,
            "influence": _INFLUENCE if self.influence is None else self.influence,
        }


_INFLUENCE = (0.0, 1.0)


def _listed(value: Any) -> Any:
    """Return one value as a list of it, several as they are."""
    return [value] if value is None or isinstance(value, str) or not hasattr(value, "__len__") else value
