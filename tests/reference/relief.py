"""Relief, ReliefF and RReliefF by their pseudo code (Robnik-Šikonja and Kononenko 1999, figures 1, 3 and 4;
Petković et al. 2020a, 2.2).

A neighbour of a row is another row, however alike; of equally distant rows the first is nearer. Where rows
have groups, a neighbour is a row of another group. Where there are fewer than k neighbours to choose from
(of a class, in classification), the mean is over those there are: rank weights always add up to 1. A query
whose class has no other row has no hits and still counts in m.

Features may have weights. These count in the distance of two rows, and nowhere else.

Where rows have weights, a query counts in m with its weight. Of k neighbours, however heavy, the share of a
row is its rank weight times its own, over the sum of these products. Shares of classes, distributions of
missing values, ranks and mean distances are those of as many rows as the weights say.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import exp, fsum, sqrt

import numpy as np

from .distance import differences, mean_difference, row_distances
from .problem import Feature

# A probability below this is 0 but for rounding, and what is conditional on it counts 0.
NOTHING = 1e-12


def relieff(
    features: Sequence[Feature],
    classes: Sequence,
    *,
    k: int,
    sigma: float | None = None,
    queries: Sequence[int] | None = None,
    groups: Sequence | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """Figure 3: k hits, and k misses of each other class weighted by its prior, P(C) / (1 - P(class(R)))."""
    rows = range(len(classes))
    queries = rows if queries is None else queries
    own = np.ones(len(rows)) if row_weights is None else np.array(row_weights, dtype=float)
    prior = class_priors(classes, own)
    distances = row_distances(features, classes, row_weights)
    m = own[list(queries)].sum()
    pairs = []
    for r in queries:
        for c in prior:
            weight = -1 if c == classes[r] else prior[c] / (1 - prior[classes[r]])
            near = nearest(distances[r], (j for j in others(r, rows, groups) if classes[j] == c), k)
            for j, share in zip(near, shares(near, sigma, own), strict=True):
                pairs.append((r, j, own[r] * weight * share / m))
    return over_pairs(pairs, features, classes, row_weights)


def relief(
    features: Sequence[Feature], classes: Sequence, *, queries: Sequence[int] | None = None
) -> np.ndarray:
    """Figure 1: the nearest hit and the nearest miss, of whichever class."""
    rows = range(len(classes))
    queries = rows if queries is None else queries
    distances = row_distances(features, classes)
    pairs = []
    for r in queries:
        hits = nearest(distances[r], (j for j in rows if j != r and classes[j] == classes[r]), 1)
        misses = nearest(distances[r], (j for j in rows if classes[j] != classes[r]), 1)
        pairs += [(r, j, -1 / len(queries)) for j in hits] + [(r, j, 1 / len(queries)) for j in misses]
    return over_pairs(pairs, features, classes)


def rrelieff(
    features: Sequence[Feature],
    target_distance: np.ndarray,
    *,
    k: int,
    sigma: float | None = None,
    queries: Sequence[int] | None = None,
    groups: Sequence | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """Figure 4, for every target that has a distance: `target_distance` is one of those in `distance`."""
    rows = range(len(target_distance))
    queries = rows if queries is None else queries
    own = np.ones(len(rows)) if row_weights is None else np.array(row_weights, dtype=float)
    distances = row_distances(features, None, row_weights)
    m = own[list(queries)].sum()
    near_pairs, apart = [], []
    for r in queries:
        near = nearest(distances[r], others(r, rows, groups), k)
        for j, share in zip(near, shares(near, sigma, own), strict=True):
            near_pairs.append((r, j, own[r] * share / m))
            apart.append((r, j, own[r] * share / m * target_distance[r, j]))
    p_diff_feature = over_pairs(near_pairs, features, None, row_weights)
    p_both = over_pairs(apart, features, None, row_weights)
    p_diff_target = fsum(weight for _, _, weight in apart)
    return given(p_both, p_diff_target) - given(p_diff_feature - p_both, 1 - p_diff_target)


def semi_supervised(
    features: Sequence[Feature],
    target_distance: np.ndarray,
    labelled: Sequence[bool],
    influence: tuple[float, float],
    *,
    k: int,
    sigma: float | None = None,
    queries: Sequence[int] | None = None,
    groups: Sequence | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """Petković et al. 2023, Alg. 3: Figure 4 with the distance of the features for pairs of which a target
    is unknown.

    What a pair has to say is the product of the influences of its rows; probabilities are shares of that.
    """
    rows = range(len(target_distance))
    queries = rows if queries is None else queries
    own = np.ones(len(rows)) if row_weights is None else np.array(row_weights, dtype=float)
    distances = row_distances(features, None, row_weights)
    of_features = mean_difference(features, None, row_weights)
    say = influences(distances, labelled, influence, groups)
    near_pairs, apart = [], []
    for r in queries:
        near = nearest(distances[r], others(r, rows, groups), k)
        for j, share in zip(near, shares(near, sigma, own), strict=True):
            weight = own[r] * share * say[r] * say[j]
            clustering = target_distance if labelled[r] and labelled[j] else of_features
            near_pairs.append((r, j, weight))
            apart.append((r, j, weight * clustering[r, j]))
    everything = fsum(weight for _, _, weight in near_pairs)
    p_diff_feature = given(over_pairs(near_pairs, features, None, row_weights), everything)
    p_both = given(over_pairs(apart, features, None, row_weights), everything)
    p_diff_target = given(fsum(weight for _, _, weight in apart), everything)
    return given(p_both, p_diff_target) - given(p_diff_feature - p_both, 1 - p_diff_target)


def by_radius(
    features: Sequence[Feature],
    rule: str,
    *,
    classes: Sequence | None = None,
    target_distance: np.ndarray | None = None,
    labelled: Sequence[bool] | None = None,
    influence: tuple[float, float] = (0.0, 1.0),
    queries: Sequence[int] | None = None,
    groups: Sequence | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """SURF, SURF*, MultiSURF, MultiSURF*: `relieff`, or `rrelieff` if there is a `target_distance`, over the
    near rows of each query, less the same over its far rows.

    A query without near rows says nothing of probabilities given near pairs.
    """
    rows = range(len(classes) if target_distance is None else len(target_distance))
    queries = rows if queries is None else queries
    own = np.ones(len(rows)) if row_weights is None else np.array(row_weights, dtype=float)
    distances = row_distances(features, classes, row_weights)
    near, far = zip(*(near_and_far(distances, r, rule, groups, row_weights) for r in queries), strict=True)
    sides = [(1, near), (-1, far)] if rule.endswith("_star") else [(1, near)]
    if target_distance is None:
        prior, m = class_priors(classes, own), own[list(queries)].sum()
        pairs = []
        for sign, lists in sides:
            for r, found in zip(queries, lists, strict=True):
                for c in {classes[j] for j in found}:
                    weight = -1 if c == classes[r] else prior[c] / (1 - prior[classes[r]])
                    rows_of_class = [j for j in found if classes[j] == c]
                    for j, share in zip(rows_of_class, shares(rows_of_class, None, own), strict=True):
                        pairs.append((r, j, sign * own[r] * weight * share / m))
        return over_pairs(pairs, features, classes, row_weights)
    total = np.zeros(len(features))
    of_features = mean_difference(features, None, row_weights)
    labelled = [True] * len(rows) if labelled is None else labelled
    say = influences(distances, labelled, influence, groups)
    for sign, lists in sides:
        near_pairs, apart = [], []
        for r, found in zip(queries, lists, strict=True):
            for j, share in zip(found, shares(found, None, own), strict=True):
                weight = own[r] * share * say[r] * say[j]
                clustering = target_distance if labelled[r] and labelled[j] else of_features
                near_pairs.append((r, j, weight))
                apart.append((r, j, weight * clustering[r, j]))
        everything = fsum(weight for _, _, weight in near_pairs)
        p_diff_feature = given(over_pairs(near_pairs, features, None, row_weights), everything)
        p_both = given(over_pairs(apart, features, None, row_weights), everything)
        p_diff_target = given(fsum(weight for _, _, weight in apart), everything)
        total += sign * (given(p_both, p_diff_target) - given(p_diff_feature - p_both, 1 - p_diff_target))
    return total


def near_and_far(
    distances: np.ndarray,
    r: int,
    rule: str,
    groups: Sequence | None,
    row_weights: Sequence[float] | None = None,
) -> tuple[list[int], list[int]]:
    """The rows that are nearer to row r than its lower threshold, and those farther than the upper one.

    Distances are whole numbers of 1e-12, so that the comparisons are exact; thresholds by weights are rounded
    to such numbers.
    """
    rows = range(len(distances))

    def apart(i: int, j: int) -> int:
        return round(Fraction(float(distances[i, j])) * 10**12)

    candidates = others(r, rows, groups)
    if row_weights is not None:
        by_mean = rule in ("surf", "surf_star")
        compared = [(i, j) for i in (rows if by_mean else [r]) for j in others(i, rows, groups)]
        of_pairs = [
            Fraction(row_weights[j]) * Fraction(row_weights[i] if by_mean else 1) for i, j in compared
        ]
        total = sum(of_pairs) or 1
        mean = sum(w * apart(i, j) for w, (i, j) in zip(of_pairs, compared, strict=True)) / total
        squares = sum(w * (apart(i, j) - mean) ** 2 for w, (i, j) in zip(of_pairs, compared, strict=True))
        half = 0.0 if by_mean else sqrt(squares / total) / 2
        low, high = round(float(mean) - half), round(float(mean) + half)
        return [j for j in candidates if apart(r, j) < low], [j for j in candidates if apart(r, j) > high]
    if rule in ("surf", "surf_star"):
        all_pairs = [apart(i, j) for i in rows for j in others(i, rows, groups)]
        mean, spread = Fraction(sum(all_pairs), len(all_pairs) or 1), Fraction(0)
    else:
        own = [apart(r, j) for j in candidates]
        mean = Fraction(sum(own), len(own) or 1)
        spread = sum(((d - mean) ** 2 for d in own), Fraction(0)) / (len(own) or 1)
    # Farther from the mean than half of the standard deviation, which is not rational.
    beyond = {j for j in candidates if 4 * (apart(r, j) - mean) ** 2 > spread}
    return (
        [j for j in candidates if j in beyond and apart(r, j) < mean],
        [j for j in candidates if j in beyond and apart(r, j) > mean],
    )


def influences(
    distances: np.ndarray,
    labelled: Sequence[bool],
    ends: tuple[float, float],
    groups: Sequence | None = None,
) -> list[float]:
    """1 for labelled rows; the others lie on the line through (farthest from those, w0), (nearest, w1).

    A row without a labelled one in another group has w0.
    """
    rows = range(len(labelled))
    labelled_others = {
        r: [j for j in others(r, rows, groups) if labelled[j]] for r in rows if not labelled[r]
    }
    d = {r: min(distances[r][j] for j in near) for r, near in labelled_others.items() if near}
    low, high = min(d.values(), default=0), max(d.values(), default=0)
    w0, w1 = ends
    say = {
        r: w1 if high == low else float(np.interp(distance, [low, high], [w1, w0]))
        for r, distance in d.items()
    }
    return [1.0 if labelled[r] else say.get(r, w0) for r in rows]


def per_target(
    features: Sequence[Feature],
    targets: Sequence[Feature],
    *,
    k: int,
    sigma: float | None = None,
    queries: Sequence[int] | None = None,
    weights: Sequence[float] | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """Mean of the importances for each target alone (Petković et al. 2020a, 2.3); nominal ones by 0 or 1."""
    options = {"k": k, "sigma": sigma, "queries": queries, "row_weights": row_weights}
    each = [rrelieff(features, differences(t, None, row_weights), **options) for t in targets]
    return np.average(each, axis=0, weights=weights)


def myopic(
    features: Sequence[Feature], classes: Sequence, row_weights: Sequence[float] | None = None
) -> np.ndarray:
    """Eq. 4, any two rows with replacement instead of near ones: for a nominal feature that is Eq. 5.

    So read it holds for numeric features. Where values are missing it comes to P(V | C) from the known values
    of each class, and P(C) from all rows.
    """
    same = np.array([[a == b for b in classes] for a in classes])
    own = np.ones(len(classes)) if row_weights is None else np.array(row_weights, dtype=float)
    of_pairs = np.outer(own, own)
    importances = []
    for feature in features:
        d = differences(feature, classes, row_weights)
        other = 0.0 if same.all() else np.average(d[~same], weights=of_pairs[~same])
        importances.append(other - np.average(d[same], weights=of_pairs[same]))
    return np.array(importances)


def relieff_errors(
    features: Sequence[Feature],
    classes: Sequence,
    *,
    k: int,
    sigma: float | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """Standard errors of ``relieff`` with all rows as queries, each row a group of its own."""
    rows = range(len(classes))
    own = np.ones(len(rows)) if row_weights is None else np.array(row_weights, dtype=float)
    prior = class_priors(classes, own)
    distances = row_distances(features, classes, row_weights)
    d = np.stack([differences(feature, classes, row_weights) for feature in features], axis=-1)
    queries, neighbours = np.zeros((len(rows), len(features))), np.zeros((len(rows), *d.shape[1:]))
    for r in rows:
        for c in prior:
            weight = -1 if c == classes[r] else prior[c] / (1 - prior[classes[r]])
            near = nearest(distances[r], (j for j in rows if j != r and classes[j] == c), k + 1)
            for j, next_one, share in moving_up(near, k, sigma, own):
                queries[r] += own[r] * weight * share * d[r, j]
                neighbours[r, j] += own[r] * weight * share * (d[r, j] - d[r, next_one])
    queries -= np.outer(own, queries.sum(axis=0) / own.sum())
    return grouped_jackknife(queries / own.sum(), neighbours / own.sum())


def rrelieff_errors(
    features: Sequence[Feature],
    target_distance: np.ndarray,
    *,
    k: int,
    sigma: float | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """Standard errors of ``rrelieff`` with all rows as queries, each row a group of its own."""
    n = len(target_distance)
    own = np.ones(n) if row_weights is None else np.array(row_weights, dtype=float)
    distances = row_distances(features, None, row_weights)
    d = np.stack([differences(feature, None, row_weights) for feature in features], axis=-1)
    # Differences of the features, the same times those of the targets, those of the targets, queries.
    together = np.stack([d, d * target_distance[..., None], 0 * d + target_distance[..., None]])
    queries, neighbours = np.zeros((3, *d.shape[1:])), np.zeros(together.shape)
    for r in range(n):
        near = nearest(distances[r], (j for j in range(n) if j != r), k + 1)
        for j, next_one, share in moving_up(near, k, sigma, own):
            queries[:, r] += own[r] * share * together[:, r, j]
            neighbours[:, r, j] += own[r] * share * (together[:, r, j] - together[:, r, next_one])
    feature, both, target = queries.sum(axis=1)
    differ, agree = given(both, target[0]), given(feature - both, own.sum() - target[0])

    def linear(sums: np.ndarray, count: np.ndarray) -> np.ndarray:
        f, b, t = sums
        return given(b - differ * t, target[0]) - given(f - b - agree * (count - t), own.sum() - target[0])

    return grouped_jackknife(linear(queries, own[:, None]), linear(neighbours, np.zeros(1)))


def moving_up(near: list[int], k: int, sigma: float | None, own: np.ndarray) -> list[tuple[int, int, float]]:
    """The rows of a list, each with its share and the row that takes it where the row is left out."""
    by_rank, with_weights = rank_weights(len(near[:k]), sigma), shares(near[:k], sigma, own)
    found = []
    for place, share in enumerate(by_rank):
        fallen = (place + 1) * 0.6180339887498949 % 1 * share
        then = next((s for s in range(place + 1, len(by_rank)) if by_rank[s] <= fallen), len(by_rank))
        next_one = near[then if then < len(near) else (place + 1) % len(by_rank)]
        found.append((near[place], next_one, with_weights[place]))
    return found


def grouped_jackknife(queries: np.ndarray, neighbours: np.ndarray) -> np.ndarray:
    """From what each row changes as a query, and as a neighbour of each query (query x row x feature)."""
    n = len(queries)
    change = queries + neighbours.sum(axis=0)
    same_pairs = 0.0
    for r in range(n):
        others = np.delete(neighbours[r], r, axis=0)
        same_pairs += ((others - others.mean(axis=0)) ** 2).sum(axis=0) * (n - 1) / (n - 2)
    groups = ((change - change.mean(axis=0)) ** 2).sum(axis=0) - same_pairs
    return np.sqrt(n / (n - 1) * np.maximum(groups, (queries**2).sum(axis=0)))


def others(row: int, rows: Iterable[int], groups: Sequence | None) -> list[int]:
    """The rows that can be neighbours of `row`."""
    return [j for j in rows if (j != row if groups is None else groups[j] != groups[row])]


def nearest(distances: np.ndarray, candidates: Iterable[int], k: int) -> list[int]:
    return sorted(candidates, key=lambda j: (distances[j], j))[:k]


def rank_weights(n: int, sigma: float | None) -> list[float]:
    """Eq. 13 and 14 for ranks 1 to n, or all the same; times e^(1/sigma^2), for no sigma gives 0 / 0."""
    raw = [1.0 if sigma is None else exp((1 - rank**2) / sigma**2) for rank in range(1, n + 1)]
    return [weight / fsum(raw) for weight in raw]


def shares(near: list[int], sigma: float | None, own: np.ndarray) -> list[float]:
    """What each row of a list counts: its rank weight times its own, over the sum of these."""
    raw = [weight * own[j] for j, weight in zip(near, rank_weights(len(near), sigma), strict=True)]
    return [weight / fsum(raw) for weight in raw]


def class_priors(classes: Sequence, own: np.ndarray) -> dict:
    """The share of each class in the weight of all rows."""
    return {c: sum(own[r] for r, k in enumerate(classes) if k == c) / sum(own) for c in sorted(set(classes))}


def over_pairs(
    pairs: list[tuple[int, int, float]],
    features: Sequence[Feature],
    classes: Sequence | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """For each feature the sum of weight times difference over the pairs of rows."""
    sums = []
    for feature in features:
        d = differences(feature, classes, row_weights)
        sums.append(fsum(weight * d[i, j] for i, j, weight in pairs))
    return np.array(sums)


def given(joint: np.ndarray, condition: float) -> np.ndarray:
    """Probability of something given a condition, from that of both."""
    return joint / condition if condition > NOTHING else np.zeros_like(joint)


def adjusted(
    features: Sequence[Feature],
    covariates: Sequence[Feature],
    target_distance: np.ndarray,
    *,
    k: int = 10,
    sigma: float | None = None,
    rule: str = "nearest",
    groups: Sequence | None = None,
    row_weights: Sequence[float] | None = None,
) -> np.ndarray:
    """Le et al. 2020 in the terms of RReliefF: over the weighted pairs, the covariance of a feature's
    difference and what least squares on the covariates' leaves of the distance of the targets, over
    p (1 - p).

    Where the targets of all pairs or of none differ, the importance is RReliefF's.
    """
    rows = range(len(target_distance))
    own = np.ones(len(rows)) if row_weights is None else np.array(row_weights, dtype=float)
    distances = row_distances(features, None, row_weights)
    if rule == "nearest":
        sides = [(1, [nearest(distances[r], others(r, rows, groups), k) for r in rows])]
    else:
        near, far = zip(*(near_and_far(distances, r, rule, groups, row_weights) for r in rows), strict=True)
        sides = [(1, near), (-1, far)] if rule.endswith("_star") else [(1, near)]
    total = np.zeros(len(features))
    for sign, lists in sides:
        pairs = [
            (r, j, own[r] * share)
            for r, found in zip(rows, lists, strict=True)
            for j, share in zip(found, shares(found, sigma, own), strict=True)
        ]
        if not pairs:
            continue
        r, j, weight = (np.array(values) for values in zip(*pairs, strict=True))
        weight = weight / weight.sum()
        d_f = np.array([differences(one, None, row_weights)[r, j] for one in features])
        d_c = np.array([np.ones(len(r)), *(differences(one, None, row_weights)[r, j] for one in covariates)])
        d_y = target_distance[r, j]
        p = weight @ d_y
        if p < NOTHING or 1 - p < NOTHING:
            both = d_f @ (weight * d_y)
            total += sign * (given(both, p) - given(d_f @ weight - both, 1 - p))
            continue
        root = np.sqrt(weight)
        fit, *_ = np.linalg.lstsq((root * d_c).T, root * d_y, rcond=1e-7)
        total += sign * (d_f @ (weight * (d_y - fit @ d_c))) / (p * (1 - p))
    return total
