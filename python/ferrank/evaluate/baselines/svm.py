"""Recursive feature elimination by a linear support vector machine (Guyon, Weston, Barnhill, Vapnik 2002)."""

from typing import Any

import numpy as np
from sklearn.svm import LinearSVC

from ferrank.data.parameters import number_of
from ferrank.errors import DataError
from ferrank.evaluate.baselines.base import Baseline, by_feature
from ferrank.evaluate.rows import Encoder, Rows
from ferrank.rankers.plan import seed_of

__all__ = ["SvmRfe"]

Array = np.ndarray[Any, Any]

_MOST_WORK = 3e11
"""Numbers that all machines together may read; about an hour."""


class SvmRfe(Baseline):
    """Rank by recursive elimination: the feature with the smallest squared weights goes first.

    scikit-learn's RFE eliminates columns; here a nominal feature, whose categories are columns, stays or goes
    as a whole. With several classes, the squares add up over the one-against-rest machines.

    Parameters
    ----------
    task : str, optional
        Only "classification".
    C : float, default=0.1
        Of :class:`sklearn.svm.LinearSVC`; 0.1 is the setting of Slavkov et al. 2020.
    step : int or float, default=1
        How many features go at a time; a float below 1 is a share of those that are left. Those that go
        together are ordered by their weights.
    random_state : int, default=0
        Seed of all random draws.
    n_features_to_select : int, float or None, default=None
        As in :class:`ferrank.ForestRanker`.

    Notes
    -----
    The importance is the number of features that went before, the last one's n_features − 1.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b, c = np.random.default_rng(0).normal(size=(3, 100))
    >>> ferrank.rank({"a": a, "b": b, "c": c, "y": a + 2 * b > 0}, "y", ranker=SvmRfe()).top(2)
    ['b', 'a']
    """

    name = "svm_rfe"
    tasks = ("classification",)

    def __init__(
        self,
        task: str | None = None,
        *,
        C: float = 0.1,
        step: int | float = 1,
        random_state: Any = 0,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.C = C
        self.step = step
        self.random_state = random_state
        self.n_features_to_select = n_features_to_select

    def importances(self, rows: Rows) -> Array:
        """Return the importances, of shape (n_features,)."""
        for name in ("step", "C"):
            number_of(getattr(self, name), name, "(0, ∞)", lambda value: 0 < value < np.inf)
        encoder = Encoder(rows)
        X, owner = encoder.encode(), encoder.owner
        y = rows.target_numbers()[:, 0]
        n_features = owner.max(initial=-1) + 1
        self._check(rows, X, n_features)
        importances = np.zeros(n_features)
        if len(np.unique(y)) < 2:
            return importances
        left = np.arange(n_features)
        machine = LinearSVC(C=self.C, random_state=seed_of(self.random_state))
        gone = 0
        while len(left) > 0:
            columns = np.isin(owner, left)
            machine.fit(X[:, columns], y)
            weight = by_feature((machine.coef_**2).sum(axis=0), owner[columns])[left]
            worst_first = left[np.argsort(weight, kind="stable")]
            count = self._count(len(left))
            importances[worst_first[:count]] = gone + np.arange(count)
            gone += count
            left = np.sort(worst_first[count:])
        return importances

    def _count(self, left: int) -> int:
        count = int(self.step * left) if self.step < 1 else int(self.step)
        return min(max(count, 1), left)

    def _check(self, rows: Rows, X: Array, n_features: int) -> None:
        fits, left = 0, n_features
        read = 0.0
        while left > 0:
            fits, read = fits + 1, read + X.size * left / n_features
            left -= self._count(left)
        # A machine reads its columns some hundred times.
        if 100 * read > _MOST_WORK:
            raise DataError(
                f"{rows.source}: eliminating {n_features:,} features step by step takes {fits:,} machines on "
                f"{rows.n_rows:,} rows, which would not finish; use step=0.1, or fewer rows"
            )
