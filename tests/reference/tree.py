"""One tree, top-down, trying every test of every feature in every node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from .problem import Feature, Problem, variances

# Gains that differ by less than rounding noise are equal.
RELATIVE, ABSOLUTE = 2.0**-36, 1e-13


@dataclass
class Split:
    feature: int
    cut: float | None  # numeric: left is x <= cut; infinite: left is what is known
    between: tuple[float, float] | None  # lowest cut that does the same, and the first that does not
    categories: list[str] | None  # nominal: left is one of these; all of them: left is what is known
    missing_left: bool
    gain: float
    gain_by_target: np.ndarray
    goes_left: np.ndarray  # one per row of the node


@dataclass
class Node:
    depth: int
    n_examples: int
    weight: float
    prototype: np.ndarray  # mean of each component, of the parent where none is known
    split: Split | None = None
    left: int | None = None
    right: int | None = None


@dataclass
class Grower:
    problem: Problem
    min_samples_leaf: int
    max_depth: int | None
    counts: np.ndarray  # multiplicity of each row in the bag
    missing: str = "informative"
    nodes: list[Node] = field(default_factory=list)

    def tree(self) -> list[Node]:
        """The nodes in preorder."""
        self.grow(np.flatnonzero(self.counts), 0, np.zeros(self.problem.components.shape[1]))
        return self.nodes

    def grow(self, rows: np.ndarray, depth: int, parent: np.ndarray) -> int:
        number = len(self.nodes)
        node = Node(
            depth, int(self.counts[rows].sum()), float(self.weights(rows).sum()), self.mean(rows, parent)
        )
        self.nodes.append(node)
        node.split = None if depth == self.max_depth else self.best_split(rows)
        if node.split is not None:
            node.left = self.grow(rows[node.split.goes_left], depth + 1, node.prototype)
            node.right = self.grow(rows[~node.split.goes_left], depth + 1, node.prototype)
        return number

    def weights(self, rows: np.ndarray) -> np.ndarray:
        return self.counts[rows] * self.problem.row_weights[rows]

    def mean(self, rows: np.ndarray, parent: np.ndarray) -> np.ndarray:
        z = self.problem.components[rows]
        w = np.where(np.isnan(z), 0.0, self.weights(rows)[:, None])
        total = w.sum(axis=0)
        mean = (w * np.nan_to_num(z)).sum(axis=0) / np.where(total > 0, total, 1.0)
        return np.where(total > 0, mean, parent)

    def best_split(self, rows: np.ndarray) -> Split | None:
        noise = ABSOLUTE * float(
            self.problem.omega @ variances(self.problem.components[rows], self.weights(rows))[0]
        )
        best = None
        for number in self.candidates(rows):
            for split in self.splits(number, self.problem.features[number], rows, noise):
                least = noise if best is None else best.gain + noise + RELATIVE * best.gain
                if split.gain > least and self.admissible(split, rows):
                    best = split
        return best

    def candidates(self, rows: np.ndarray) -> Iterable[int]:
        return range(len(self.problem.features))

    def admissible(self, split: Split, rows: np.ndarray) -> bool:
        left = self.counts[rows[split.goes_left]].sum()
        right = self.counts[rows[~split.goes_left]].sum()
        return min(left, right) >= self.min_samples_leaf

    def splits(self, number: int, feature: Feature, rows: np.ndarray, noise: float) -> Iterable[Split]:
        values = [feature.values[row] for row in rows]
        if not feature.nominal:
            return self.cuts(number, feature, values, rows)
        if self.problem.ordering is not None:
            return self.prefixes(number, values, rows)
        return self.grown_subsets(number, values, rows, noise)

    def incomplete(self, values: list) -> bool:
        """Whether some values are missing, and that is information."""
        return self.missing == "informative" and None in values

    def cuts(self, number: int, feature: Feature, values: list, rows: np.ndarray) -> Iterable[Split]:
        scale = sorted({v for v in feature.values if v is not None})
        present = sorted({v for v in values if v is not None})
        for missing_left in (False, True) if self.incomplete(values) else (None,):
            for last_left in present[:-1]:
                between = last_left, scale[scale.index(last_left) + 1]
                cut = midway(*between)
                goes_left = lambda v, cut=cut: v <= cut  # noqa: E731
                yield self.split(number, values, rows, goes_left, missing_left, cut=cut, between=between)
            if missing_left is False and present:
                yield self.known(number, feature, values, rows)

    def known(self, number: int, feature: Feature, values: list, rows: np.ndarray) -> Split:
        """The test whether the value is known."""
        scale = sorted({v for v in feature.values if v is not None})
        test = {"categories": scale} if feature.nominal else {"cut": np.inf}
        return self.split(number, values, rows, lambda _: True, missing_left=False, **test)

    def present(self, values: list) -> list:
        """The categories; where missing values are information, they are one more, which comes last."""
        return sorted({v for v in values if v is not None}) + [None] * self.incomplete(values)

    def prefixes(self, number: int, values: list, rows: np.ndarray) -> Iterable[Split]:
        z, w = self.problem.components[rows, self.problem.ordering], self.weights(rows)

        def mean(category: str) -> float:
            here = np.array([v == category for v in values])
            return round(float((w[here] * z[here]).sum() / w[here].sum()), 12)

        order = sorted(self.present(values), key=mean)
        for size in range(1, len(order)):
            yield self.subset(number, values, rows, order[:size])

    def grown_subsets(self, number: int, values: list, rows: np.ndarray, noise: float) -> Iterable[Split]:
        categories = self.present(values)
        chosen: list[str | None] = []
        gain = 0.0
        while len(chosen) < len(categories) - 1:
            best = None
            for category in categories:
                if category not in chosen:
                    split = self.subset(number, values, rows, [*chosen, category])
                    if best is None or split.gain > best[0].gain * (1 + RELATIVE) + noise:
                        best = split, category
            if best[0].gain <= gain * (1 + RELATIVE) + noise:
                return
            chosen.append(best[1])
            gain = best[0].gain
            yield best[0]

    def subset(self, number: int, values: list, rows: np.ndarray, categories: list[str | None]) -> Split:
        """The split that parts these categories from the others.

        The left side is the lighter one; if both weigh the same, the one with fewer examples, or with the
        first category.
        """
        present, weights = self.present(values), self.weights(rows)
        others = [v for v in present if v not in categories]
        one, other = (sum(weights[[v in side for v in values]]) for side in (categories, others))
        if abs(one - other) <= 1e-9 * other:
            one, other = (
                sum(self.counts[rows][[v in side for v in values]]) for side in (categories, others)
            )
        if present[0] in others if abs(one - other) <= 1e-9 * other else one > other:
            categories = others
        left = sorted(v for v in categories if v is not None)
        missing_left = None in categories if self.incomplete(values) else None
        if missing_left is not None and len(left) in (0, len(self.present(values)) - 1):
            return self.known(number, self.problem.features[number], values, rows)
        return self.split(number, values, rows, lambda v: v in left, missing_left, categories=left)

    def split(
        self, number, values, rows, is_left, missing_left=None, *, cut=None, between=None, categories=None
    ) -> Split:
        """The split with the missing values on this side, or without them and then on the heavier one."""
        known = np.array([v is not None or missing_left is not None for v in values])
        left = np.array([bool(missing_left) if v is None else is_left(v) for v in values])
        right = known & ~left
        z, w, omega = self.problem.components[rows], self.weights(rows), self.problem.omega
        var_left, w_left = variances(z[left], w[left])
        var_right, w_right = variances(z[right], w[right])
        var_known, w_known = variances(z[known], w[known])
        children = (w_left * var_left + w_right * var_right) / np.where(w_known > 0, w_known, 1.0)
        gains = w[known].sum() / w.sum() * omega * (var_known - children)
        if missing_left is None:
            missing_left = bool(w[left].sum() >= w[right].sum())
        by_target = np.bincount(self.problem.target_of, gains)
        goes_left = left | ~known if missing_left else left
        return Split(number, cut, between, categories, missing_left, float(gains.sum()), by_target, goes_left)


def midway(a: float, b: float) -> float:
    """A number c with a <= c < b, halfway where that can be represented."""
    c = a + (b - a) / 2
    return c if a <= c < b else a


def grow(
    problem: Problem,
    *,
    min_samples_leaf: int = 2,
    max_depth: int | None = None,
    missing: str = "informative",
) -> list[Node]:
    """The tree over all rows, once each."""
    counts = np.ones(len(problem.components), dtype=int)
    return Grower(problem, min_samples_leaf, max_depth, counts, missing).tree()
