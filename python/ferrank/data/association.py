"""How strongly features go together, whatever their kinds, from a sample of rows.

Two numeric features: the absolute rank correlation of Spearman (1904). Two nominal ones: Cramér's V with the
bias correction of Bergsma (2013), without which features of many categories seem to go together. A numeric
and a nominal one: the square root of epsilon squared (Kelley 1935), the share of the variance of ranks that
the categories explain, less what they explain by chance. All are about 0 for independent features and 1 where
one feature determines the other.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ferrank._core import Source
from ferrank.data.check.sample import Column, columns_of, sampled

__all__ = ["associations", "sample_of"]

_MOST_CATEGORIES = 200
"""Further ones are taken together, as one category."""


def sample_of(source: Source, roles: dict[str, Any], features: Sequence[str]) -> list[Column]:
    """Return the ``features`` in a sample of at most 10,000 rows, drawn by the hash of their number."""
    kinds = dict(source.resolve(roles)["features"])
    table, _ = sampled(source)
    return columns_of(table.select(list(features)), kinds)


def associations(columns: Sequence[Column]) -> Any:
    """Return the association of each pair of columns, from 0 to 1, of shape (n_columns, n_columns).

    Missing numbers have the mean rank; missing categories are a category.
    """
    numeric = [number for number, column in enumerate(columns) if not column.is_nominal]
    nominal = [number for number, column in enumerate(columns) if column.is_nominal]
    found = np.zeros((len(columns), len(columns)), dtype=np.float32)
    ranks = np.array([_scaled_ranks(columns[number]) for number in numeric], dtype=np.float32)
    if numeric:
        found[np.ix_(numeric, numeric)] = np.abs(ranks @ ranks.T)
    members = [_members(columns[number]) for number in nominal]
    for place, (number, own) in enumerate(zip(nominal, members, strict=True)):
        for other, theirs in zip(nominal[:place], members[:place], strict=True):
            found[number, other] = found[other, number] = _cramer(own, theirs)
        if numeric:
            found[number, numeric] = found[numeric, number] = _explained(own, ranks)
    np.fill_diagonal(found, 1.0)
    return np.clip(found, 0.0, 1.0)


def _scaled_ranks(column: Column) -> Any:
    """Return mid-ranks, less their mean, whose squares sum to 1; zeros for a constant."""
    codes, known = column.codes, column.known
    counts = column.counts
    middle = np.cumsum(counts) - (counts - 1) / 2
    ranks = np.zeros(len(codes))
    if known.any():
        ranks[known] = middle[codes[known]]
        ranks[known] -= ranks[known].mean()
    length = float(np.linalg.norm(ranks))
    return ranks / length if length > 0 else ranks


def _members(column: Column) -> Any:
    """Return an indicator of each category that there is, of shape (n_categories, n_rows)."""
    codes = column.codes + 1
    order = np.argsort(-np.bincount(codes), kind="stable")
    place = np.minimum(np.argsort(order, kind="stable"), _MOST_CATEGORIES)
    indicators = (place[codes] == np.arange(place.max() + 1)[:, None]).astype(np.float32)
    return indicators[indicators.any(axis=1)]


def _cramer(one: Any, other: Any) -> float:
    """Return Cramér's V with Bergsma's correction."""
    counts = (one @ other.T).astype(np.float64)
    n, (r, k) = counts.sum(), counts.shape
    if n < 2 or min(r, k) < 2:
        return 0.0
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / n
    phi2 = float(((counts - expected) ** 2 / expected).sum()) / n
    phi2 = max(0.0, phi2 - (k - 1) * (r - 1) / (n - 1))
    r_corrected, k_corrected = r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)
    least = min(r_corrected, k_corrected) - 1
    return float(np.sqrt(phi2 / least)) if least > 0 else 0.0


def _explained(members: Any, ranks: Any) -> Any:
    """Return the square root of epsilon squared for each row of ``ranks``."""
    n, k = members.shape[1], len(members)
    if n <= k or k < 2:
        return np.zeros(len(ranks), dtype=np.float32)
    sums = ranks @ members.T
    eta2 = (sums**2 / members.sum(axis=1)).sum(axis=1)
    varies = (ranks**2).sum(axis=1) > 0.5
    return np.where(varies, np.sqrt(np.clip(1 - (1 - eta2) * (n - 1) / (n - k), 0.0, 1.0)), 0.0)
