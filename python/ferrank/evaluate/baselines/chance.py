"""The ranking that knows nothing."""

from typing import Any

import numpy as np

from ferrank.evaluate.baselines.base import Baseline
from ferrank.evaluate.rows import Rows
from ferrank.rankers.plan import seed_of

__all__ = ["RandomRanker"]


class RandomRanker(Baseline):
    """Give every feature a random importance, uniform in [0, 1).

    Parameters
    ----------
    task : str, optional
        Any.
    random_state : int, default=0
        Seed of all random draws.
    n_features_to_select : int, float or None, default=None
        As in :class:`ferrank.ForestRanker`.

    Examples
    --------
    >>> import ferrank
    >>> ferrank.rank({"a": [1, 2], "b": [3, 4], "y": [0.5, 1.5]}, "y", ranker=RandomRanker()).top(1)
    ['a']
    """

    name = "random"
    tasks = ("classification", "regression", "multi-target", "multi-label")
    semi_supervised = True

    def __init__(
        self,
        task: str | None = None,
        *,
        random_state: Any = 0,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.random_state = random_state
        self.n_features_to_select = n_features_to_select

    def importances(self, rows: Rows) -> np.ndarray[Any, Any]:
        """Return the importances, of shape (n_features,)."""
        rng = np.random.default_rng(seed_of(self.random_state))
        return rng.random(int(rows.features.num_columns))
