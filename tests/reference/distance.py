"""How far apart two rows are: a difference for each feature, a distance for each kind of target.

Distances are square arrays, one entry for every two rows.

Missing values (Robnik-Šikonja and Kononenko 1999, Eq. 7, 8, for numeric features as well): a row whose value
is missing could have any of the values known in rows of its own class (of all rows where there are no
classes, or where its class has none), and the difference is the expected one. For a nominal feature that is
Eq. 7, 1 - P(v | class of the row without a value), and Eq. 8 read as 1 - sum of P(V | class 1) P(V | class
2): the probabilities are the relative frequencies among the known values of the class. Both rows' values are
drawn independently of each other. Where rows have weights, a value is as likely as the weight of its row. In
an informative feature a missing value differs from known ones by 1, and not from other missing ones. A
feature of which nothing is known counts 0, as a constant one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa

from .problem import Feature, Value, column, is_nominal


def features_of(table: pa.Table, names: Sequence[str], *, nominal: Sequence[str] = ()) -> list[Feature]:
    """Columns as features; text is nominal, and so are the columns named in `nominal`."""
    return [
        Feature(name, name in nominal or is_nominal(table.schema.field(name).type), column(table, name))
        for name in names
    ]


def differences(
    feature: Feature, classes: Sequence | None = None, row_weights: Sequence[float] | None = None
) -> np.ndarray:
    """Eq. 1 and 2, Eq. 7 and 8 where a value is missing; `classes` in classification only."""
    return _differences(
        feature,
        None if classes is None else tuple(classes),
        (1.0,) * len(feature.values) if row_weights is None else tuple(row_weights),
    )


@lru_cache(maxsize=32)
def _differences(feature: Feature, classes: tuple | None, row_weights: tuple) -> np.ndarray:
    rows = range(len(feature.values))
    known = [row for row in rows if feature.values[row] is not None]
    result = np.zeros((len(rows), len(rows)))
    if not known:
        return result
    values = [feature.values[row] for row in known]
    result[np.ix_(known, known)] = between(feature, values, values)
    for i in set(rows) - set(known):
        for j in rows:
            if feature.informative:
                result[i, j] = result[j, i] = float(j in known)
                continue
            of_i, of_j = possible(feature, classes, i), possible(feature, classes, j)
            xs, ys = ([feature.values[row] for row in of_row] for of_row in (of_i, of_j))
            p, q = (np.array([row_weights[row] for row in of_row]) for of_row in (of_i, of_j))
            result[i, j] = result[j, i] = p @ between(feature, xs, ys) @ q / p.sum() / q.sum()
    result.flags.writeable = False
    return result


def between(feature: Feature, xs: list[Value], ys: list[Value]) -> np.ndarray:
    """Difference between each of `xs` and each of `ys`, all of them known."""
    if feature.nominal:
        return np.array([[float(x != y) for y in ys] for x in xs])
    known = [v for v in feature.values if v is not None]
    span = max(known) - min(known)
    x, y = np.array(xs), np.array(ys)
    return np.abs(x[:, None] - y[None, :]) / span if span > 0 else np.zeros((len(x), len(y)))


def possible(feature: Feature, classes: Sequence | None, row: int) -> list[int]:
    """The rows whose values a row may have."""
    if feature.values[row] is not None:
        return [row]
    known = [i for i, v in enumerate(feature.values) if v is not None]
    return [i for i in known if classes is None or classes[i] == classes[row]] or known


def mid_ranks(feature: Feature, row_weights: Sequence[float] | None = None) -> Feature:
    """Numbers replaced by their mean rank among the known ones; nominal features stay as they are.

    A row counts with its weight.
    """
    if feature.nominal:
        return feature
    weights = [1.0] * len(feature.values) if row_weights is None else row_weights
    known = [(v, w) for v, w in zip(feature.values, weights, strict=True) if v is not None]

    def rank(value: Value) -> float:
        below, equal = sum(w for v, w in known if v < value), sum(w for v, w in known if v == value)
        return below + equal / 2

    return replace(feature, values=[None if v is None else rank(v) for v in feature.values])


def row_distances(
    features: Sequence[Feature], classes: Sequence | None = None, row_weights: Sequence[float] | None = None
) -> np.ndarray:
    """Weighted mean of the differences over the features, summed in their order, to 12 decimals."""
    return np.round(mean_difference(features, classes, row_weights), 12)


def mean_difference(
    features: Sequence[Feature], classes: Sequence | None = None, row_weights: Sequence[float] | None = None
) -> np.ndarray:
    """Sum of weight times difference over the features, over the sum of their weights."""
    total = sum(feature.weight * differences(feature, classes, row_weights) for feature in features)
    return total / sum(feature.weight for feature in features)


def mean_distance(
    targets: Sequence[Feature],
    weights: Sequence[float] | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """Mean over the targets, numeric or nominal or both (Petković et al. 2020a, Eq. 7).

    For one target it is that target's difference. Targets are treated as features are (Petković et al. 2023,
    5.1), so that a missing target, too, differs by what is expected.
    """
    shares = np.ones(len(targets)) if weights is None else np.array(weights, dtype=float)
    each = (differences(target, None, row_weights) for target in targets)
    return sum(share * d for share, d in zip(shares / shares.sum(), each, strict=True))


def label_sets(targets: Sequence[Feature]) -> list[set[str]]:
    """The names of the labels that each row has; `1` and `true` mean that it has the label."""
    rows = zip(*(target.values for target in targets), strict=True)
    return [{t.name for t, v in zip(targets, row, strict=True) if v in (1.0, "1")} for row in rows]


def hamming(sets: Sequence[set[str]], weights: dict[str, float]) -> np.ndarray:
    """Share of the labels that one of two rows has, each with its weight (Petković et al. 2023, Eq. 7)."""
    return pairwise(sets, lambda a, b: sum(weights[label] for label in a ^ b) / sum(weights.values()))


def accuracy(sets: Sequence[set[str]], weights: dict[str, float] | None = None) -> np.ndarray:
    def size(labels: set[str]) -> float:
        return len(labels) if weights is None else sum(weights[label] for label in sorted(labels))

    return pairwise(sets, lambda a, b: 1 - size(a & b) / size(a | b) if a | b else 0.0)


def f1(sets: Sequence[set[str]], weights: dict[str, float] | None = None) -> np.ndarray:
    """Petković et al. 2020b, Eq. 5; two empty sets are alike."""

    def size(labels: set[str]) -> float:
        return len(labels) if weights is None else sum(weights[label] for label in sorted(labels))

    return pairwise(sets, lambda a, b: 1 - 2 * size(a & b) / (size(a) + size(b)) if a or b else 0.0)


def subset(sets: Sequence[set[str]]) -> np.ndarray:
    return pairwise(sets, lambda a, b: float(a != b))


def pairwise(sets: Sequence[set[str]], distance) -> np.ndarray:
    return np.array([[distance(a, b) for b in sets] for a in sets])
