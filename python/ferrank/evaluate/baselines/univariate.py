"""Rankers that look at one feature at a time: information gain and χ².

Numeric features with more than ``n_bins`` distinct values are cut at quantiles. (Weka, which the papers use,
cuts them by Fayyad and Irani's criterion.) Both are computed from the table of counts, value by class, over
the rows that have a value; the gain is then scaled by their share, as in our trees. Over several targets the
importances are averaged.
"""

from abc import abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import chi2_contingency
from sklearn.metrics import mutual_info_score

from ferrank.data.parameters import count_of
from ferrank.evaluate.baselines.base import Baseline
from ferrank.evaluate.rows import Rows

__all__ = ["ChiSquared", "InformationGain"]

Array = np.ndarray[Any, Any]


class _Univariate(Baseline):
    tasks = ("classification", "multi-label")

    def __init__(
        self,
        task: str | None = None,
        *,
        n_bins: int = 10,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.n_bins = n_bins
        self.n_features_to_select = n_features_to_select

    @abstractmethod
    def _statistic(self, counts: Array) -> float:
        """Return the importance by a table of counts without empty rows or columns."""

    def importances(self, rows: Rows) -> Array:
        """Return the importances, of shape (n_features,)."""
        count_of(self.n_bins, "n_bins", "bins that tell values apart", least=2)
        targets = rows.target_numbers().astype(np.intp).T
        return np.array(
            [
                np.mean([self._statistic_of(codes, target) for target in targets])
                for codes in map(self._codes, rows.features.columns)
            ]
        )

    def _statistic_of(self, codes: Array, target: Array) -> float:
        known = codes >= 0
        if not known.any():
            return 0.0
        counts = np.zeros((codes.max() + 1, target.max() + 1))
        np.add.at(counts, (codes[known], target[known]), 1)
        counts = counts[counts.any(axis=1)][:, counts.any(axis=0)]
        return float(known.mean()) * self._statistic(counts) if min(counts.shape) > 1 else 0.0

    def _codes(self, column: pa.ChunkedArray) -> Array:
        """Return a code for each value; −1 where it is missing."""
        array = column.combine_chunks()
        if pa.types.is_dictionary(array.type):
            return np.asarray(array.indices.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.intp)
        values = array.to_numpy(zero_copy_only=False)
        known = ~np.isnan(values)
        cuts = np.unique(values[known])
        if len(cuts) > self.n_bins:
            shares = np.arange(1, self.n_bins) / self.n_bins
            cuts = np.unique(np.quantile(values[known], shares, method="inverted_cdf"))
        return np.where(known, np.searchsorted(cuts, values), -1)


class InformationGain(_Univariate):
    """Rank by information gain: H(y) − H(y | x), in bits.

    Parameters
    ----------
    task : {"classification", "multi-label"}, optional
    n_bins : int, default=10
        Intervals of a numeric feature.
    n_features_to_select : int, float or None, default=None
        As in :class:`ferrank.ForestRanker`.

    Examples
    --------
    >>> import ferrank
    >>> data = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "y": ["n", "n", "p", "p"]}
    >>> ferrank.rank(data, "y", ranker=InformationGain()).importances().tolist()
    [1.0, 0.0]
    """

    name = "information_gain"

    def _statistic(self, counts: Array) -> float:
        return float(mutual_info_score(None, None, contingency=counts) / np.log(2))


class ChiSquared(_Univariate):
    """Rank by Pearson's χ² of the table of values and classes.

    Parameters
    ----------
    task, n_bins, n_features_to_select
        As in :class:`InformationGain`.

    Examples
    --------
    >>> import ferrank
    >>> data = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "y": ["n", "n", "p", "p"]}
    >>> ferrank.rank(data, "y", ranker=ChiSquared()).importances().tolist()
    [4.0, 0.0]
    """

    name = "chi_squared"

    def _statistic(self, counts: Array) -> float:
        return float(chi2_contingency(counts, correction=False).statistic)
