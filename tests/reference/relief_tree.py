"""Trees that split by Relief, by the formulas (Robnik-Šikonja and Kononenko 1999, section 4): every split of
every feature is tried on its own, row by row.

Rows whose value is missing go with the side that has more of the others, the left one if they are as many.
What is equal to ten decimals is equal: then the more balanced split of a feature counts, then the earlier
one, and the earlier feature.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import fsum, log2

import numpy as np

from .distance import differences, row_distances
from .problem import Feature, Value
from .relief import given, nearest, over_pairs, rank_weights

TOLERANCE = 1e-10
GROUPED = 8
LINEAR_CUTS = 32


@dataclass(frozen=True)
class Settings:
    selector: str = "relief"
    linear: bool = False
    m: float | None = 2.0
    switch_at: float = 0.8
    k: int | None = None
    sigma: float | None = None
    min_samples_leaf: int = 5
    max_purity: float = 0.97


@dataclass
class Node:
    rows: list[int]
    prediction: float | str
    impurity: float
    error: float  # of the own predictor, as the m-estimate takes it
    predict: object  # values of a row by feature -> prediction
    feature: int | None = None
    left: Node | None = None
    right: Node | None = None
    selector: str | None = None
    estimate: float | None = None
    correlation: float | None = None
    goes_left: set[Value] | float | None = None
    missing_left: bool | None = None
    children: list[Node] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        yield self
        for child in (self.left, self.right):
            if child is not None:
                yield from child.walk()


@dataclass
class Split:
    left: list[bool]  # by row of the node
    goes_left: set[Value] | float  # categories, or a cut
    missing_left: bool

    @property
    def smaller(self) -> int:
        return min(sum(self.left), len(self.left) - sum(self.left))


def grow(features: Sequence[Feature], target: Sequence, settings: Settings) -> Node:
    root = branch(features, target, list(range(len(target))), settings, settings.selector, None)
    if settings.m is not None:
        prune(root, root, target, settings.m)
    return root


def importances(root: Node, n_features: int) -> np.ndarray:
    found = np.zeros(n_features)
    for node in root.walk():
        if node.left is not None:
            below = sum(len(child.rows) * child.impurity for child in (node.left, node.right))
            found[node.feature] += len(node.rows) * node.impurity - below
    whole = len(root.rows) * root.impurity
    return found / whole if whole > 0 else found * 0


def is_numeric(target: Sequence) -> bool:
    return not isinstance(target[0], str)


def branch(features, target, rows, settings, selector, root_impurity) -> Node:
    own = [target[row] for row in rows]
    node_features = [replace(feature, values=[feature.values[row] for row in rows]) for feature in features]
    node = leaf(node_features, own, rows, settings)
    root_impurity = node.impurity if root_impurity is None else root_impurity
    if len(rows) < 2 * settings.min_samples_leaf:
        return node
    if is_numeric(target):
        if node.impurity <= 1e-12 * root_impurity:
            return node
    else:
        most = max(Counter(own).values())
        if most == len(rows) or most >= settings.max_purity * len(rows):
            return node
    found = choose(node_features, own, settings, selector)
    if found is None:
        return node
    node.feature, split, node.selector, node.estimate, node.correlation = found
    node.goes_left, node.missing_left = split.goes_left, split.missing_left
    below = node.selector if "+" in selector and node.selector != "relief" else selector
    sides = [
        [row for row, left in zip(rows, split.left, strict=True) if left == side] for side in (True, False)
    ]
    node.left, node.right = (branch(features, target, side, settings, below, root_impurity) for side in sides)
    return node


def leaf(features, own, rows, settings) -> Node:
    if not is_numeric(own):
        prediction = majority(own)
        return Node(rows, prediction, gini(own), 0.0, lambda _: prediction)
    mean, variance = float(np.mean(own)), float(np.var(own))
    node = Node(rows, mean, variance, variance, lambda _: mean)
    if settings.linear and (fitted := linear_model(features, np.array(own, dtype=float))) is not None:
        node.predict, node.error = fitted
    return node


def majority(own: Sequence[str]) -> str:
    counts = Counter(own)
    return min(counts, key=lambda name: (-counts[name], name.encode()))


def gini(own: Sequence[str]) -> float:
    return 1 - sum((count / len(own)) ** 2 for count in Counter(own).values())


# The choice of a split.


def choose(features, own, settings, selector):
    if selector == "relief":
        pairs = near_pairs(features, own, settings)
        estimates = list(over_pairs(pairs, features, None if is_numeric(own) else own))
        return by_relief(features, own, settings, pairs, estimates, None)
    first, _, other = selector.partition("+")
    splits = [best_split(feature, features, own, settings, other or first) for feature in features]
    if not other:
        return by_estimate(splits, first, None)
    pairs = near_pairs(features, own, settings)
    estimates = list(over_pairs(pairs, features, None if is_numeric(own) else own))
    both = [(e, split[0]) for e, split in zip(estimates, splits, strict=True) if split is not None]
    agreement = correlation(both)
    if agreement is not None and agreement >= settings.switch_at:
        return by_estimate(splits, other, agreement)
    known = [e if split is not None else None for e, split in zip(estimates, splits, strict=True)]
    return by_relief(features, own, settings, pairs, known, agreement)


def by_estimate(splits, selector, agreement):
    number = first_best([None if split is None else split[0] for split in splits])
    if number is None:
        return None
    estimate, split = splits[number]
    return number, split, selector, estimate, agreement


def by_relief(features, own, settings, pairs, estimates, agreement):
    estimates = list(estimates)
    while (number := first_best(estimates)) is not None:
        candidates = splits_of(features[number], own, settings.min_samples_leaf)
        scores = [separated(pairs, split) for split in candidates]
        if candidates:
            _, split = balanced_best(candidates, scores)
            return number, split, "relief", estimates[number], agreement
        estimates[number] = None
    return None


def separated(pairs, split: Split) -> float:
    """Relief's estimate of a split: that of a feature with two values, from the same near rows."""
    return fsum(weight for i, j, weight in pairs if split.left[i] != split.left[j])


def best_split(feature, features, own, settings, selector):
    candidates = splits_of(feature, own, settings.min_samples_leaf)
    if not candidates:
        return None
    if selector == "mse" and settings.linear:
        columns = scaled_columns(features)
        if not feature.nominal or len(known(feature)) > GROUPED:
            return best_cut(candidates, lambda split: linear_estimate(columns, own, split))
        return balanced_best(candidates, [linear_estimate(columns, own, split) for split in candidates])
    return balanced_best(candidates, [ESTIMATES[selector](own, split) for split in candidates])


def best_cut(candidates, estimate):
    """Some cuts, spread evenly; then those between the neighbours of the best of them, and so on."""
    first, last, tried = 0, len(candidates) - 1, {}
    while True:
        count = min(LINEAR_CUTS, last - first + 1)
        places = [first + i * (last - first) // max(count - 1, 1) for i in range(count)]
        tried |= {place: estimate(candidates[place]) for place in places}
        if count == last - first + 1:
            places = sorted(tried)
            return balanced_best([candidates[p] for p in places], [tried[p] for p in places])
        _, best = balanced_best([candidates[p] for p in places], [tried[p] for p in places])
        at = next(i for i, place in enumerate(places) if candidates[place] is best)
        first, last = places[max(at - 1, 0)], places[min(at + 1, count - 1)]


def known(feature: Feature) -> set[Value]:
    return {value for value in feature.values if value is not None}


def balanced_best(candidates, scores):
    best, split = scores[0], candidates[0]
    for score, candidate in zip(scores[1:], candidates[1:], strict=True):
        better = score > best + TOLERANCE
        balanced = score >= best - TOLERANCE and candidate.smaller > split.smaller
        if better or balanced:
            best, split = score, candidate
    return best, split


def first_best(estimates) -> int | None:
    best = None
    for number, estimate in enumerate(estimates):
        if estimate is not None and (best is None or estimate > estimates[best] + TOLERANCE):
            best = number
    return best


def splits_of(feature: Feature, own: Sequence, least: int) -> list[Split]:
    values = feature.values
    found = []
    for goes_left in sides_of(feature, own):
        is_left = (
            (lambda v, s=goes_left: v in s) if isinstance(goes_left, set) else (lambda v, c=goes_left: v <= c)
        )
        left = sum(value is not None and is_left(value) for value in values)
        missing_left = left >= sum(value is not None for value in values) - left
        split = Split([missing_left if v is None else is_left(v) for v in values], goes_left, missing_left)
        if split.smaller >= least:
            found.append(split)
    return found


def sides_of(feature: Feature, own: Sequence) -> list[set[Value] | float]:
    if not feature.nominal:
        ordered = sorted(known(feature))
        return [between(a, b) for a, b in pairwise(ordered)]
    categories = sorted(known(feature), key=lambda name: name.encode())
    if len(categories) > GROUPED:
        categories.sort(key=lambda name: order_key(feature, own, name))
        return [set(categories[: i + 1]) for i in range(len(categories) - 1)]
    masks = range(1, 2 ** len(categories) - 1, 2)
    return [{name for i, name in enumerate(categories) if mask >> i & 1} for mask in masks]


def between(a: float, b: float) -> float:
    middle = a / 2 + b / 2 if np.isinf(a + b) else (a + b) / 2
    return middle if middle < b else a


def order_key(feature: Feature, own: Sequence, name: str) -> float:
    inside = [y for y, value in zip(own, feature.values, strict=True) if value == name]
    if is_numeric(own):
        return round((np.mean(inside) - np.mean(own)) / np.std(own) * 1e9)
    return sum(y == majority(own) for y in inside) / len(inside)


# Relief, Figures 3 and 4 for all rows as queries, as one sum over pairs.


def near_pairs(features, own, settings) -> list[tuple[int, int, float]]:
    if is_numeric(own):
        return near_pairs_of_numbers(features, own, settings.k or 70, settings.sigma or 20.0)
    return near_pairs_of_classes(features, own, settings.k or 10, settings.sigma)


def near_pairs_of_classes(features, own, k, sigma):
    prior = {name: count / len(own) for name, count in Counter(own).items()}
    distances = row_distances(features, own)
    pairs = []
    for r, of_row in enumerate(own):
        for name, share in prior.items():
            weight = -1 if name == of_row else share / (1 - prior[of_row])
            near = nearest(distances[r], (j for j, other in enumerate(own) if j != r and other == name), k)
            shares = rank_weights(len(near), sigma)
            pairs += [(r, j, weight * share / len(own)) for j, share in zip(near, shares, strict=True)]
    return pairs


def near_pairs_of_numbers(features, own, k, sigma):
    apart = differences(Feature("target", nominal=False, values=list(own)))
    distances = row_distances(features)
    near_rows = []
    for r in range(len(own)):
        near = nearest(distances[r], (j for j in range(len(own)) if j != r), k)
        near_rows += [(r, j, share) for j, share in zip(near, rank_weights(len(near), sigma), strict=True)]
    differ = sum(share * apart[r, j] for r, j, share in near_rows) / len(own)
    return [
        (r, j, share / len(own) * float(given(apart[r, j], differ) - given(1 - apart[r, j], 1 - differ)))
        for r, j, share in near_rows
    ]


def correlation(pairs) -> float | None:
    if len(pairs) < 3:
        return None
    x, y = np.array(pairs).T
    if x.std() <= TOLERANCE or y.std() <= TOLERANCE:
        return None
    return float(((x - x.mean()) * (y - y.mean())).mean() / (x.std() * y.std()))


# Estimates of splits.


def sides(own: Sequence, split: Split) -> list[list]:
    return [[y for y, left in zip(own, split.left, strict=True) if left == side] for side in (True, False)]


def accuracy(own, split) -> float:
    """Eq. 16."""
    return sum(len(side) / len(own) * max(Counter(side).values()) / len(side) for side in sides(own, split))


def gini_gain(own, split) -> float:
    return gini(own) - sum(len(side) / len(own) * gini(side) for side in sides(own, split))


def entropy(own) -> float:
    return -sum(count / len(own) * log2(count / len(own)) for count in Counter(own).values())


def gain_ratio(own, split) -> float:
    gain = entropy(own) - sum(len(side) / len(own) * entropy(side) for side in sides(own, split))
    return gain / entropy(split.left)


def myopic(own, split) -> float:
    """Eq. 5, with Eq. 6."""
    same_class = sum((count / len(own)) ** 2 for count in Counter(own).values())
    shares = [len(side) / len(own) for side in sides(own, split)]
    equal = sum(share**2 for share in shares)
    inside = [sum((count / len(side)) ** 2 for count in Counter(side).values()) for side in sides(own, split)]
    gain = sum(p**2 / equal * value for p, value in zip(shares, inside, strict=True)) - same_class
    return equal * gain / (same_class * (1 - same_class))


def mse(own, split) -> float:
    """Eq. 17 and 18 for means, as the share of the node's error that is saved."""
    return 1 - sum(len(side) / len(own) * np.var(side) for side in sides(own, split)) / np.var(own)


ESTIMATES = {"accuracy": accuracy, "gini": gini_gain, "gain_ratio": gain_ratio, "myopic": myopic, "mse": mse}


# Linear models.


def scaled_columns(features: Sequence[Feature]) -> dict[int, np.ndarray]:
    """Numeric features that vary, scaled to [0, 1] less their mean; missing values are at the mean."""
    columns = {}
    for number, feature in enumerate(features):
        if feature.nominal or len(known(feature)) < 2:
            continue
        values = np.array([np.nan if v is None else v for v in feature.values], dtype=float)
        values = (values - np.nanmin(values)) / (np.nanmax(values) - np.nanmin(values))
        columns[number] = np.nan_to_num(values - np.nanmean(values))
    return columns


def least_squares(X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, int]:
    """The shortest coefficients in the directions with more than 1e-5 of the largest spread; their number."""
    scale = np.linalg.norm(X, axis=0)
    u, s, v = np.linalg.svd(X / scale, full_matrices=False)
    kept = s > 1e-5 * s.max()
    return v[kept].T @ (u[:, kept].T @ y / s[kept]) / scale, int(kept.sum())


def is_better(model: float, mean: float, n: int, rank: int) -> bool:
    """A lower error by the correction of Quinlan 1992."""
    return rank > 0 and model * (n + rank) / (n - rank) < mean


def linear_model(features, own):
    columns = scaled_columns(features)
    if not 0 < 2 * len(columns) < len(own):
        return None
    X, y = np.stack(list(columns.values()), axis=1), own - own.mean()
    slopes, rank = least_squares(X, y)
    error = float(((y - X @ slopes) ** 2).mean())
    if not is_better(error, float((y**2).mean()), len(y), rank):
        return None
    scale = {}
    for number in columns:
        values = np.array([v for v in features[number].values if v is not None], dtype=float)
        scale[number] = values.min(), np.ptp(values), values.mean()

    def predict(row: Sequence[Value]) -> float:
        moved = [
            0.0 if row[number] is None else (row[number] - mean) / span
            for number, (_, span, mean) in scale.items()
        ]
        return float(np.clip(own.mean() + np.dot(slopes, moved), own.min(), own.max()))

    return predict, error * (len(y) + rank) / (len(y) - rank)


def linear_estimate(columns, own, split) -> float:
    own = np.array(own, dtype=float)
    left = np.array(split.left)
    errors = 0.0
    for side in (left, ~left):
        y = own[side] - own[side].mean()
        n, of_mean = len(y), float((y**2).sum())
        X = (
            np.stack([column[side] - column[side].mean() for column in columns.values()], axis=1)
            if columns
            else None
        )
        if X is not None:
            X = X[:, (X**2).sum(axis=0) > 1e-10 * n]
        if X is None or not 0 < 2 * X.shape[1] < n:
            errors += of_mean
            continue
        slopes, rank = least_squares(X, y)
        of_model = float(((y - X @ slopes) ** 2).sum())
        errors += of_model if is_better(of_model, of_mean, n, rank) else of_mean
    return 1 - errors / float(((own - own.mean()) ** 2).sum())


# Pruning.


def prune(node: Node, root: Node, target: Sequence, m: float) -> float:
    """Cut branches that do not pay by the m-estimate of error; return that of the node."""
    n = len(node.rows)
    if is_numeric(target):
        unit = root.impurity
        mean = np.mean([target[row] for row in node.rows])
        own = (n * node.error + m * (root.impurity + (mean - np.mean(target)) ** 2)) / (n + m)
    else:
        unit = 1.0
        count = sum(target[row] == node.prediction for row in node.rows)
        prior = sum(y == node.prediction for y in target) / len(target)
        own = 1 - (count + m * prior) / (n + m)
    if node.left is None:
        return own
    below = sum(len(child.rows) / n * prune(child, root, target, m) for child in (node.left, node.right))
    if own <= below + TOLERANCE * unit:
        node.left = node.right = node.feature = None
        return own
    return below
