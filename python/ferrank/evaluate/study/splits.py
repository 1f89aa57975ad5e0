"""How rows are parted into training and test rows, again and again."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import (
    GroupShuffleSplit,
    ShuffleSplit,
    StratifiedShuffleSplit,
)

from ferrank.errors import DataError, SettingError
from ferrank.evaluate.rows import Rows
from ferrank.evaluate.splits import splits_of

__all__ = ["CrossValidation", "Repeated", "Split", "by_labels", "hidden_rows"]

_MOST_SPLITS = 10_000
"""Of a data set: each holds the numbers of all its rows."""

Array = np.ndarray[Any, Any]
Split = tuple[str, Array, Array]
"""A name, and the numbers of training and test rows."""


@dataclass(frozen=True)
class Repeated:
    """Rows drawn for training, the others for testing, several times.

    Classes have the same shares in both parts, groups of rows stay together, and sets of labels are parted
    so that each label has its share (Sechidis, Tsoumakas and Vlahavas 2011).

    Parameters
    ----------
    train : float, default=2/3
        Share of the rows that are for training.
    n : int, default=10
        How often.

    Examples
    --------
    >>> from ferrank.evaluate import Repeated
    >>> Repeated(0.8, 5)
    Repeated(train=0.8, n=5)
    """

    train: float = 2 / 3
    n: int = 10

    def __post_init__(self) -> None:
        is_number = isinstance(self.train, int | float | np.number) and not isinstance(self.train, bool)
        if not is_number or not 0 < self.train < 1:
            raise SettingError(
                f"train: {self.train!r} is no share of the rows; use a number above 0 and below 1"
            )
        _check_count("n", self.n, 1)

    @property
    def n_splits(self) -> int:
        """How many splits there are of a data set."""
        return self.n

    def of(self, rows: Rows, seed: int) -> list[Split]:
        """Return the splits of ``rows``."""
        labels = _label_sets(rows)
        if labels is not None and rows.groups is None:
            parts = [by_labels(labels, [self.train, 1 - self.train], (seed, n)) for n in range(self.n)]
            return [
                (f"{n}", np.flatnonzero(part == 0), np.flatnonzero(part == 1)) for n, part in enumerate(parts)
            ]
        how: dict[str, Any] = {"n_splits": self.n, "train_size": self.train, "random_state": seed}
        places = np.zeros(rows.n_rows)
        try:
            if rows.groups is not None:
                found = list(GroupShuffleSplit(**how).split(places, groups=rows.groups))
            elif rows.task == "classification" and np.bincount(classes := _classes(rows)).min() >= 2:
                found = list(StratifiedShuffleSplit(**how).split(places, classes))
            else:
                found = list(ShuffleSplit(**how).split(places))
        except ValueError as error:
            raise DataError(f"{rows.source}: {error}") from error
        return [(f"{number}", np.sort(train), np.sort(test)) for number, (train, test) in enumerate(found)]


@dataclass(frozen=True)
class CrossValidation:
    """Each of several folds is once for testing.

    Classes, groups and labels are treated as by :class:`Repeated`.

    Parameters
    ----------
    folds : int, default=10
        Number of folds.
    repeats : int, default=1
        How often, with other folds each time.

    Examples
    --------
    >>> from ferrank.evaluate import CrossValidation
    >>> CrossValidation(5)
    CrossValidation(folds=5, repeats=1)
    """

    folds: int = 10
    repeats: int = 1

    def __post_init__(self) -> None:
        _check_count("folds", self.folds, 2)
        _check_count("repeats", self.repeats, 1)
        if self.n_splits > _MOST_SPLITS:
            raise SettingError(
                f"repeats: {self.repeats:,} of {self.folds:,} folds are {self.n_splits:,} splits; use "
                f"{_MOST_SPLITS:,} at most"
            )

    @property
    def n_splits(self) -> int:
        """How many splits there are of a data set."""
        return self.folds * self.repeats

    def of(self, rows: Rows, seed: int) -> list[Split]:
        """Return the splits of ``rows``."""
        if self.folds > rows.n_rows:
            raise DataError(
                f"folds: {self.folds} of {rows.n_rows} rows; use at most as many as there are rows"
            )
        names = [f"{repeat}.{fold}" for repeat in range(self.repeats) for fold in range(self.folds)]
        labels = _label_sets(rows)
        if labels is None or rows.groups is not None:
            found = splits_of(rows, self.folds, self.repeats, seed)
            return [(name, train, test) for name, (train, test) in zip(names, found, strict=True)]
        splits = []
        for repeat in range(self.repeats):
            part = by_labels(labels, [1 / self.folds] * self.folds, (seed, repeat))
            splits += [
                (np.flatnonzero(part != fold), np.flatnonzero(part == fold)) for fold in range(self.folds)
            ]
        return [(name, train, test) for name, (train, test) in zip(names, splits, strict=True)]


def _check_count(setting: str, given: Any, least: int) -> None:
    """Raise an error if ``given`` is no whole number from ``least`` to the most splits of a data set."""
    is_whole = isinstance(given, int | np.integer) and not isinstance(given, bool)
    if not is_whole or not least <= given <= _MOST_SPLITS:
        raise SettingError(f"{setting}: {given!r}; use a whole number from {least} to {_MOST_SPLITS:,}")


def hidden_rows(
    splits: list[Split], known: Array, labelled: int, seed: int, *, folds: bool
) -> list[Array] | None:
    """Return the training rows of each split that lose their targets, as numbers among the training rows.

    A row that keeps its target among so many does so among more. In cross-validation (``folds``) each fold
    keeps L // (x - 1) targets, the first L % (x - 1) folds one more, so that the x - 1 folds of a training
    set together keep about L (Petković et al. 2023, §6.4); a fold keeps the same in all training sets.
    Otherwise each training set keeps L of its own.

    Parameters
    ----------
    splits : list of Split
        Those of cross-validation are the folds of one repeat after the other, which their names say.
    known : array of bool, shape (n_rows,)
        Which rows have a target.
    labelled : int
        L.
    seed : int
    folds : bool
        Whether the splits are of cross-validation.

    Returns
    -------
    list of array, or None
        None where some part has not so many rows with a target.
    """
    if not folds:
        hidden = []
        for name, train, _ in splits:
            there = np.flatnonzero(known[train])
            if labelled > len(there):
                return None
            order = np.random.default_rng((seed, *map(ord, name))).permutation(there)
            hidden.append(np.sort(order[labelled:]))
        return hidden
    keeps = np.zeros(len(known), dtype=bool)
    by_repeat: dict[str, list[Split]] = {}
    for split in splits:
        by_repeat.setdefault(split[0].partition(".")[0], []).append(split)
    hidden = []
    for repeat in by_repeat.values():
        keeps[:] = False
        each, more = divmod(labelled, len(repeat) - 1)
        for number, (name, _, test) in enumerate(repeat):
            there = test[known[test]]
            wanted = each + (number < more)
            if wanted > len(there):
                return None
            keeps[np.random.default_rng((seed, *map(ord, name))).permutation(there)[:wanted]] = True
        hidden += [np.flatnonzero(known[train] & ~keeps[train]) for _, train, _ in repeat]
    return hidden


def _classes(rows: Rows) -> Array:
    return np.unique(rows.target_numbers()[:, 0], return_inverse=True)[1]


def _label_sets(rows: Rows) -> Array | None:
    """Return which labels each row has, of shape (n_rows, n_labels), or None if these are no label sets."""
    if rows.task not in {"multi-label", "hierarchical"}:
        return None
    numbers = rows.target_numbers()
    return np.nan_to_num(numbers) > 0


def by_labels(labels: Array, shares: list[float], seed: tuple[int, ...]) -> Array:
    """Return the part of each row, such that each label has its share in each part.

    Iterative stratification (Sechidis, Tsoumakas and Vlahavas 2011): the label with the fewest rows left is
    dealt out first, each row to the part that wants most of the label, then most rows.

    Parameters
    ----------
    labels : array of bool, shape (n_rows, n_labels)
        Which labels each row has.
    shares : list of float, length n_parts
        The share of the rows in each part; their sum is 1.
    seed : tuple of int
        Of the order among equals.

    Returns
    -------
    array of int, shape (n_rows,)
    """
    n_rows = len(labels)
    order = np.random.default_rng(seed).permutation(n_rows)
    labels, part = labels[order], np.full(n_rows, -1)
    wanted_rows = np.array(shares) * n_rows
    wanted = np.outer(shares, labels.sum(axis=0)).astype(float)
    left = labels.sum(axis=0).astype(float)
    while True:
        # Rows without a label that is left are dealt out at the end.
        open_labels = np.flatnonzero(left > 0)
        rows = np.flatnonzero(part < 0)
        if len(open_labels):
            label = open_labels[np.argmin(left[open_labels])]
            rows = rows[labels[rows, label]]
        for row in rows:
            need = (wanted[:, label], wanted_rows) if len(open_labels) else (wanted_rows,)
            best = int(np.lexsort(tuple(-one for one in reversed(need)))[0])
            part[row] = best
            wanted[best] -= labels[row]
            wanted_rows[best] -= 1
            left -= labels[row]
        if not len(open_labels):
            break
    found = np.empty(n_rows, dtype=int)
    found[order] = part
    return found
