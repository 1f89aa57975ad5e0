"""Ranking by neighbours: the Relief family."""

import os
from collections.abc import Sequence
from typing import Any, Literal, Self

from ferrank.ranker import Ranker, plain, seed_of

__all__ = ["ReliefRanker"]


class ReliefRanker(Ranker):
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
    task : {"classification", "regression", "multi-target", "multi-label"}, optional
        What is predicted. By default the targets tell: strings, categories and booleans are classes, numbers
        are quantities; several booleans are a set of labels.
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
    per_target : bool, default=False
        Rank for each target on its own, with the same neighbours, and average the importances. It takes
        no part in classification and regression, which have one target.
    target_weights : sequence of float, optional
        Weight of each target. None is 1 each.
    unlabelled : {"error", "ignore"}, default="error"
        What becomes of rows whose targets are all missing.
    random_state : int, RandomState, Generator or None, default=0
        Seed of the draw of rows, and of the blocks that standard errors are taken over.
    n_jobs : int, optional
        Number of threads; -1 is all cores, and so is None, except within a joblib worker, where it is one.
        The importances have the same bits for any number.
    memory_limit : int or str, optional
        Most memory that the process holds, in bytes or as "2GiB" or "500MB". None is half of what the
        machine, or its control group, has free. What does not fit is kept in scratch files; the importances
        have the same bits for any limit.
    scratch : path, optional
        Folder for scratch files, which vanish with the run. None is the system's temporary folder.
    n_features_to_select : int, float or None, default=None
        How many features ``transform`` keeps, best first: a number, a share, or None for half of them, as in
        scikit-learn's RFE. To keep those above a threshold, use ``SelectFromModel``.
    scope : {"global", "partition"}, default="global"
        Of a dask collection: "global" ranks over all rows, with the bits of one machine. With "partition"
        each partition looks for the neighbours of its share of the queries among its own rows; no row moves
        then, and a :class:`DriftWarning` says so if partitions differ in their distributions.

    Attributes
    ----------
    ranking_ : Ranking
        Importances, standard errors and ranks under each score.
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

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank import ReliefRanker
    >>> X = np.random.default_rng(0).integers(2, size=(200, 6))
    >>> relief = ReliefRanker(task="classification", n_neighbors=(5, 10), n_features_to_select=2)
    >>> relief.fit(X, X[:, 1] ^ X[:, 4]).get_feature_names_out()
    array(['x1', 'x4'], dtype=object)
    >>> list(relief.ranking_.scores)
    ['relief_k5', 'relief_k10']
    """

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
        unlabelled: Literal["error", "ignore"] = "error",
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        n_features_to_select: int | float | None = None,
        scope: Literal["global", "partition"] = "global",
    ) -> None:
        self.task = task
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.scores = scores
        self.n_iterations = n_iterations
        self.target_distance = target_distance
        self.per_target = per_target
        self.target_weights = target_weights
        self.unlabelled = unlabelled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.scratch = scratch
        self.n_features_to_select = n_features_to_select
        self.scope = scope

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
            Numbers are quantities unless ``task`` says otherwise; strings and booleans are classes.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            The message names the column or the setting, and says what would do.
        """
        return self._fit(X, y, None)

    def settings(self) -> dict[str, Any]:
        """Return what the engine needs to know; the importances follow from it and the data alone."""
        return plain(
            {
                "ranker": "relief",
                "scores": _listed(self.scores),
                "n_neighbors": _listed(self.n_neighbors),
                "sigma": _listed(self.sigma),
                "n_iterations": self.n_iterations,
                "target_distance": [] if self.target_distance is None else _listed(self.target_distance),
                "per_target": self.per_target,
                "target_weights": self.target_weights,
                "unlabelled": self.unlabelled,
                "seed": seed_of(self.random_state),
            }
        )


def _listed(value: Any) -> Any:
    """Return one value as a list of it, several as they are."""
    return [value] if value is None or isinstance(value, str) or not hasattr(value, "__len__") else value
