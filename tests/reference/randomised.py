"""What random forests and extra trees leave to chance."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from .problem import Feature
from .tree import Grower, Split


@dataclass(kw_only=True)
class RandomForestGrower(Grower):
    """Looks at the first `max_features` of the features that vary in the node, in random order."""

    rng: np.random.Generator
    max_features: int

    def candidates(self, rows: np.ndarray) -> Iterable[int]:
        varying = [
            number
            for number, feature in enumerate(self.problem.features)
            if self.varies([feature.values[row] for row in rows])
        ]
        return sorted(self.rng.permutation(varying)[: self.max_features].astype(int).tolist())

    def varies(self, values: list) -> bool:
        return len(set(values) if self.missing == "informative" else set(values) - {None}) > 1


class ExtraTreesGrower(RandomForestGrower):
    """Of each of these features, tries one random test."""

    def splits(self, number: int, feature: Feature, rows: np.ndarray, noise: float) -> Iterable[Split]:
        values = [feature.values[row] for row in rows]
        present = self.present(values)
        if not feature.nominal:
            return [self.random_cut(number, feature, values, rows)]
        size = 0
        while size in (0, len(present)):
            subset = [v for v in present if self.rng.random() < 0.5]
            size = len(subset)
        return [self.subset(number, values, rows, subset)]

    def random_cut(self, number: int, feature: Feature, values: list, rows: np.ndarray) -> Split:
        """Of known or missing, a cut with the missing values left, and one with them right, one at random."""
        known = sorted(v for v in values if v is not None)
        missing_left = None
        if self.incomplete(values):
            kind = self.rng.integers(3) if known[0] < known[-1] else 0
            if kind == 0:
                return self.known(number, feature, values, rows)
            missing_left = kind == 1
        cut = self.rng.uniform(known[0], known[-1])
        return self.split(number, values, rows, lambda v: v <= cut, missing_left, cut=cut)
