"""The splits of error curves, and what is done in each: rank, and build a model for each subset."""

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import (
    GroupKFold,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
)
from threadpoolctl import threadpool_limits

from ferrank.errors import DataError
from ferrank.evaluate.rankings import collect
from ferrank.evaluate.rows import Encoder, Rows
from ferrank.rankers.base import Ranker
from ferrank.ranking import Ranking

__all__ = ["RANDOM", "Work", "group_folds", "splits_of"]

Array = np.ndarray[Any, Any]

RANDOM = "random"
"""Name of the expected curve of random rankings."""


@dataclass(frozen=True)
class Work:
    """What is done in each split; travels to the workers."""

    rows: Rows
    rankers: dict[str, Ranker | Array]
    model: Any
    scoring: Callable[[Array, Array], float]
    sizes: Array
    n_random: int
    seed: int

    def __call__(self, number: int, train: Array, test: Array) -> dict[str, tuple[Array, Array, Array]]:
        """Return the forward curve, the reverse curve and the importances of each ranker, by name."""
        # A split is the unit of parallel work; threads within a model of few rows would only wait for each
        # other.
        with threadpool_limits(1):
            return self._run(number, train, test)

    def _run(self, number: int, train: Array, test: Array) -> dict[str, tuple[Array, Array, Array]]:
        rng = np.random.default_rng((self.seed, number))
        encoder = Encoder(self.rows)
        X, y = encoder.encode(train), self.rows.target_numbers()
        y = y.astype(np.intp) if all(self.rows.nominal_targets()) else y
        y = y[:, 0] if y.shape[1] == 1 else y
        n_features = self.rows.features.num_columns
        # Equals are drawn between: in the order of the columns, one could be lucky.
        ties = rng.permutation(n_features)

        def curve(order: Array) -> Array:
            return np.array(
                [self._error(X, y, np.isin(encoder.owner, order[:i]), train, test) for i in self.sizes]
            )

        found = {}
        for name, importances in self._importances(train):
            order = np.lexsort((ties, -importances))
            found[name] = curve(order), curve(order[::-1]), importances
        if self.n_random > 0:
            draws = rng.random((self.n_random, n_features))
            expected = np.mean([curve(np.argsort(draw)) for draw in draws], axis=0)
            found[RANDOM] = expected, expected, draws[0]
        return found

    def _importances(self, train: Array) -> Iterator[tuple[str, Array]]:
        """Give the name and the importances of each score of each ranker."""
        for name, ranker in self.rankers.items():
            if isinstance(ranker, np.ndarray):
                yield name, ranker
                continue
            ranking: Ranking = self.rows.take(train).ranked_by(clone(ranker))
            for found in collect({name: ranking}):
                yield found.name, found.matched(self.rows.features.column_names, self.rows.source)

    def _error(self, X: Array, y: Array, columns: Array, train: Array, test: Array) -> float:
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Label .* is present in all training examples")
                fitted = clone(self.model).fit(X[np.ix_(train, columns)], y[train])
            predicted = fitted.predict(X[np.ix_(test, columns)])
        except ValueError as error:
            raise DataError(f"{self.rows.source}: {self.model} cannot be built on a fold: {error}") from error
        return float(self.scoring(y[test], predicted))


def splits_of(rows: Rows, folds: int, repeats: int, seed: int) -> list[tuple[Array, Array]]:
    """Return the training and the test rows of each split; classes are stratified.

    Rows of a group are in the same fold.
    """
    places = np.zeros(rows.n_rows)
    if rows.task != "classification":
        if rows.n_rows < folds:
            raise DataError(f"{rows.source}: {rows.n_rows} rows cannot be split into {folds} folds")
        if rows.groups is not None:
            return _splits_by_group(rows, rows.groups, None, folds, repeats, seed)
        return list(RepeatedKFold(n_splits=folds, n_repeats=repeats, random_state=seed).split(places))
    classes = rows.target_numbers()[:, 0]
    counts = np.unique(classes[~np.isnan(classes)], return_counts=True)[1]
    # Rows without a class are stratified as a class of their own.
    classes = np.nan_to_num(classes, nan=-1.0)
    if len(counts) < 2:
        raise DataError(f"{rows.source}: the target '{rows.targets.column_names[0]}' has a single class")
    if counts.max() < folds:
        raise DataError(f"{rows.source}: no class has {folds} rows, one for each fold; use fewer folds")
    if rows.groups is not None:
        return _splits_by_group(rows, rows.groups, classes, folds, repeats, seed)
    splitter = RepeatedStratifiedKFold(n_splits=folds, n_repeats=repeats, random_state=seed)
    return list(splitter.split(places, classes))


def _splits_by_group(
    rows: Rows, groups: Array, classes: Array | None, folds: int, repeats: int, seed: int
) -> list[tuple[Array, Array]]:
    rng = np.random.RandomState(seed)
    splits = []
    for _ in range(repeats):
        splits += group_folds(groups, classes, folds, rng, rows.source)
    return splits


def group_folds(
    groups: Array, classes: Array | None, folds: int, seed: Any, source: str
) -> list[tuple[Array, Array]]:
    """Return the training and the test rows of each of ``folds`` folds of whole groups.

    Parameters
    ----------
    groups : array of int, shape (n_rows,)
    classes : array of shape (n_rows,), optional
        Their shares in the folds are as even as the groups allow.
    folds : int
    seed : int or numpy.random.RandomState
    source : str
        How messages call the data.

    Raises
    ------
    DataError
        There are fewer groups than folds, or they are too uneven.
    """
    n_groups = len(np.unique(groups))
    if n_groups < folds:
        raise DataError(
            f"{source}: {n_groups} groups cannot be split into {folds} folds; use at most {n_groups}"
        )
    places = np.zeros(len(groups))
    if classes is None:
        splitter: Any = GroupKFold(folds, shuffle=True, random_state=seed)
    else:
        splitter = StratifiedGroupKFold(folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        # Of classes with fewer rows than folds some folds have none.
        warnings.simplefilter("ignore", UserWarning)
        found = list(splitter.split(places, classes, groups))
    if any(len(test) == 0 for _, test in found):
        raise DataError(
            f"{source}: the groups are too uneven in size and classes for {folds} folds; use fewer folds"
        )
    return found
