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
            if len({feature.values[row] for row in rows} - {None}) > 1
        ]
        return sorted(self.rng.permutation(varying)[: self.max_features].astype(int).tolist())


class ExtraTreesGrower(RandomForestGrower):
    """Of each of these features, tries one random test."""

    def splits(self, number: int, feature: Feature, rows: np.ndarray, noise: float) -> Iterable[Split]:
        values = [feature.values[row] for row in rows]
        present = sorted({v for v in values if v is not None})
        if not feature.nominal:
            cut = self.rng.uniform(present[0], present[-1])
            return [self.split(number, values, rows, lambda v: v <= cut, cut=cut)]
        size = 0
        while size in (0, len(present)):
            subset = [v for v in present if self.rng.random() < 0.5]
            size = len(subset)
        return [self.subset(number, values, rows, subset)]
