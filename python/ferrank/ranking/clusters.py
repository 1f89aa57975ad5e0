"""Clusters of features that say the same, and trees of their merges."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ferrank._core import Source
from ferrank.data.parameters import count_of, floats_of, names_of, number_of
from ferrank.errors import DataError, SettingError

__all__ = ["Branch", "Clusters", "check_association", "clusters_of", "least_redundant"]

_MOST_FEATURES = 1_000


@dataclass(frozen=True)
class Branch:
    """A merge in a tree that is drawn: two nodes at heights, joined at another."""

    first: tuple[float, float]
    """place among the leaves, and association at which the node was made; 1 for a leaf"""
    second: tuple[float, float]
    association: float
    """at which both are joined"""


@dataclass(frozen=True, eq=False)
class Clusters:
    """Clusters of features, any two of which go together.

    Complete linkage (Sørensen 1948): two clusters merge where the weakest association between them is the
    strongest of all pairs of clusters.

    Examples
    --------
    >>> import numpy as np
    >>> association = np.array([[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]])
    >>> clusters = Clusters.from_association(["a", "b", "c"], association, 0.7)
    >>> clusters.labels.tolist(), clusters.members("b")
    ([0, 0, 1], ['a', 'b'])
    """

    features: list[str]
    """those that are clustered, best first"""
    threshold: float
    """the least association within a cluster"""
    labels: Any
    """(n_features,); the number of each feature's cluster, in the order of their best features"""
    merges: Any
    """(n_features - 1, 3); the numbers of two nodes and their association; nodes from n_features on are
    merges, in order"""
    association: Any = None
    """(n_features, n_features); None where the ranking was loaded"""

    @classmethod
    def from_association(cls, features: Sequence[str], association: Any, threshold: float) -> Self:
        """Return the clusters of ``features``, whose pairs have these associations."""
        from scipy.cluster.hierarchy import fcluster, linkage

        features = names_of(features, "features", "names")
        threshold = number_of(threshold, "threshold", "[0, 1]", lambda value: 0 <= value <= 1)
        n, association = len(features), floats_of(association, "association")
        if association.shape != (n, n):
            raise DataError(
                f"association: an array of shape {association.shape}; use ({n}, {n}) for {n} features"
            )
        if n < 2:
            return cls(list(features), threshold, np.zeros(n, np.int64), np.zeros((0, 3)), association)
        distance = 1 - association[np.triu_indices(n, 1)]
        tree = linkage(distance, method="complete")
        numbers = fcluster(tree, 1 - threshold + 1e-6, criterion="distance")
        _, first = np.unique(numbers, return_index=True)
        labels = np.argsort(np.argsort(first, kind="stable"), kind="stable")[numbers - 1]
        merges = np.column_stack([tree[:, :2], 1 - tree[:, 2]])
        return cls(list(features), threshold, labels, merges, association)

    def members(self, feature: str) -> list[str]:
        """Return the features of the cluster of ``feature``, best first.

        Raises
        ------
        SettingError
            The feature is not clustered.
        """
        if not isinstance(feature, str) or feature not in self.features:
            raise SettingError(
                f"feature: {feature!r} is not among the {len(self.features):,} best, which are clustered"
            )
        label = self.labels[self.features.index(feature)]
        return [self.features[number] for number in np.flatnonzero(self.labels == label)]

    def representatives(self) -> list[str]:
        """Return the best feature of each cluster, best first."""
        _, first = np.unique(self.labels, return_index=True)
        return [self.features[number] for number in sorted(first)]

    def tree(self, most: int) -> tuple[list[str], list[Branch]]:
        """Return the ``most`` best features in an order without crossings, and the merges among them."""
        n, most = len(self.features), count_of(most, "most")
        kept: dict[int, tuple[list[int], int | None]] = {leaf: ([leaf], None) for leaf in range(min(most, n))}
        inner: list[tuple[int, int, float]] = []
        for number, (first, second, association) in enumerate(self.merges, n):
            nodes = [node for node in (int(first), int(second)) if node in kept]
            if len(nodes) == 2:
                leaves = [leaf for node in nodes for leaf in kept[node][0]]
                inner.append((nodes[0], nodes[1], float(association)))
                kept[number] = (leaves, len(inner) - 1)
            elif nodes:
                # The other side has none of the best: the node is passed on.
                kept[number] = kept[nodes[0]]
        order = max((leaves for leaves, _ in kept.values()), key=len, default=[])
        place = {leaf: float(at) for at, leaf in enumerate(order)}
        branches: list[Branch] = []

        def end(node: int) -> tuple[float, float]:
            leaves, merge = kept[node]
            if merge is None:
                return place[leaves[0]], 1.0
            made = branches[merge]
            return (made.first[0] + made.second[0]) / 2, made.association

        for one, other, association in inner:
            branches.append(Branch(end(one), end(other), association))
        return [self.features[leaf] for leaf in order], branches


def clusters_of(source: Source, roles: dict[str, Any], features: Sequence[str], threshold: float) -> Clusters:
    """Return clusters of the 1,000 best of ``features``, best first, by a sample of the rows."""
    from ferrank.data.association import associations, sample_of

    columns = sample_of(source, roles, features[:_MOST_FEATURES])
    return Clusters.from_association([column.name for column in columns], associations(columns), threshold)


def check_association(clusters: Any) -> float | None:
    """Return the least association within clusters that ``clusters`` asks for; None: it asks for none."""
    if clusters is None or clusters is False:
        return None
    if clusters is True:
        return 0.7
    if isinstance(clusters, int | float | np.number) and 0 < clusters < 1:
        return float(clusters)
    raise SettingError(
        f"clusters: {clusters!r} is neither True nor an association above 0 and below 1; use 0.7, for example"
    )


_LEAST_REDUNDANCY = 0.1
"""So that a feature that goes with none of the chosen ones does not win whatever its importance is: below
this, associations of some hundred rows are chance."""


def least_redundant(importance: Any, association: Any, k: int) -> list[int]:
    """Return ``k`` features in the order of mRMR's quotient; see :meth:`ferrank.Ranking.without_redundancy`.

    >>> association = np.array([[1, 0.9, 0.1], [0.9, 1, 0.1], [0.1, 0.1, 1]])
    >>> least_redundant(np.array([3.0, 2.9, 1.0]), association, 3)
    [0, 2, 1]
    """
    relevance = np.maximum(np.asarray(importance, dtype=np.float64), 0.0)
    left = np.ones(len(relevance), dtype=bool)
    redundancy = np.zeros(len(relevance))
    chosen: list[int] = []
    for _ in range(min(k, len(relevance))):
        mean = np.maximum(redundancy / max(len(chosen), 1), _LEAST_REDUNDANCY)
        quotient = np.where(left, relevance / mean, -1.0)
        # Those without importance: by importance, which may be below 0.
        best = int(np.argmax(quotient)) if quotient.max() > 0 else _most(importance, left)
        chosen.append(best)
        left[best] = False
        redundancy += association[best]
    return chosen


def _most(importance: Any, left: Any) -> int:
    return int(np.argmax(np.where(left, importance, -np.inf)))
