"""TuRF: features are ranked, the worst are left out, and the others are ranked anew (Moore and White 2007).

Irrelevant features blur distances, so that neighbors by the features that are left are better ones.
"""

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ferrank.errors import SettingError
from ferrank.ranking import Ranking
from ferrank.ranking.scores import Floats, ScoreRanking

__all__ = ["Ints", "combined", "eliminated", "sizes", "turf"]

Ints = np.ndarray[Any, np.dtype[np.intp]]


def sizes(n_features: int, step: Any, last: Any) -> list[int]:
    """Return the number of features of each iteration.

    Each iteration leaves out ``step`` features, or a share of those that it has, until ``last`` are left,
    which is a number of features or a share of all.
    """
    if isinstance(step, bool) or not isinstance(step, int | float | np.number) or not 0 < step < np.inf:
        raise SettingError(f"turf_step: {step!r} is neither a number of features nor a share in (0, 1)")
    is_share = isinstance(step, float | np.floating)
    if is_share and step >= 1:
        raise SettingError(f"turf_step: {step!r} leaves no feature; use a share in (0, 1), or an integer")
    if isinstance(last, int | np.integer) and not isinstance(last, bool) and last >= 1:
        end = min(int(last), n_features)
    elif isinstance(last, float | np.floating) and 0 < last <= 1:
        end = max(1, int(float(last) * n_features))
    else:
        raise SettingError(
            f"turf_features: {last!r} is neither a number of features, at least 1, nor a share in (0, 1]"
        )
    found, out_of = [n_features], float(step)
    while found[-1] > end:
        out = max(1, int(out_of * found[-1])) if is_share else int(out_of)
        found.append(max(end, found[-1] - out))
    return found


def eliminated(
    measure: Callable[[Ints], Floats],
    n_features: int,
    step: Any,
    last: Any,
    goes_on: Callable[[Ints], bool] = lambda _: True,
) -> list[tuple[Ints, Floats]]:
    """Return for each iteration its features, ascending, and how good they are, as ``measure`` says.

    Of equally good features the first are kept. There is no iteration with features that ``goes_on`` refuses,
    and none after it.
    """
    features = np.arange(n_features)
    rounds: list[tuple[Ints, Floats]] = []
    for size in sizes(n_features, step, last):
        if rounds:
            worth = rounds[-1][1]
            features = np.sort(features[np.argsort(-worth, kind="stable")[:size]])
            if not goes_on(features):
                break
        rounds.append((features, measure(features)))
    return rounds


def combined(rounds: list[tuple[Ints, Floats]], n_features: int, *, by_ratio: bool = False) -> Floats:
    """Return one importance for each feature, of shape (n_features,).

    It is that of the last iteration of the feature. The importances of features that leave together are
    lowered by the same number, where that is needed to rank them below the features that stay, or
    ``by_ratio``, for importances that are not negative.
    """
    importance = np.full(n_features, np.nan)
    low = np.inf
    for features, values in reversed(rounds):
        leaving = np.isnan(importance[features])
        own = values[leaving]
        if own.size:
            if own.max() >= low:
                own = own * (low / own.max()) if by_ratio else own + (low - own.max())
            importance[features[leaving]] = np.minimum(own, np.nextafter(low, -np.inf))
            low = importance[features[leaving]].min()
    return importance


def turf(
    rank: Callable[[list[str], int], Ranking],
    step: Any,
    last: Any,
    settings: dict[str, Any],
    in_distance: Collection[str] | None = None,
) -> Ranking:
    """Return the ranking by TuRF; ``rank(dropped, iteration)`` ranks the features that are not dropped.

    The first score says which features are left out. Iterations end before the last of the features
    ``in_distance`` would be left out: without them all rows are equally near. The standard error and the
    Monte Carlo error of a feature are from its last iteration, and hold given the features of that
    iteration. By rank intervals, a feature that was left out may be better than one that stayed, if the
    last iteration that had both does not say which of the two is better.
    """
    rankings = [rank([], 0)]
    first = rankings[0]
    names = np.array(first.features, dtype=object)

    def measure(features: Ints) -> Floats:
        if len(features) < len(names):
            dropped = np.delete(names, features)
            rankings.append(rank(dropped.tolist(), len(rankings)))
        return rankings[-1].importances()

    def goes_on(features: Ints) -> bool:
        return in_distance is None or any(name in in_distance for name in names[features])

    rounds = [features for features, _ in eliminated(measure, len(names), step, last, goes_on)]
    parts = list(zip(rounds, rankings, strict=True))
    seconds = [ranking.seconds for ranking in rankings if ranking.seconds is not None]
    return Ranking(
        first.task,
        first.n_rows,
        first.features,
        first.targets,
        {score: _score(parts, score) for score in first.scores},
        first.n_unlabelled,
        settings,
        sum(seconds) if seconds else None,
        no_model_error=first.no_model_error,
        source=first.source,
    )


def _score(parts: list[tuple[Ints, Ranking]], name: str) -> ScoreRanking:
    n_features = len(parts[0][0])
    importance = combined([(features, one.importances(name)) for features, one in parts], n_features)
    rank = 1 + n_features - np.searchsorted(np.sort(importance), importance, side="right")
    errors = np.full((2, n_features), np.nan)
    for features, ranking in parts:
        own = ranking.scores[name]
        errors[:, features] = own.standard_error, own.monte_carlo_error
    best, worst = _rank_bounds(
        [(features, one.scores[name].rank_interval.astype(rank.dtype)) for features, one in parts], n_features
    )
    interval = np.column_stack([np.minimum(best, rank), np.maximum(worst, rank)]).astype(np.uint32)
    return ScoreRanking(importance, errors[0], errors[1], rank.astype(np.uint32), interval)


def _rank_bounds(rounds: list[tuple[Ints, Ints]], n_features: int) -> tuple[Ints, Ints]:
    """Return the best and the worst rank of each feature among all, from its ranks in each iteration.

    Two features are compared in the last iteration that has both. One is surely the better of them if its
    worst rank there is before the best rank of the other.
    """
    features, own = rounds[-1]
    best, worst = np.empty(n_features, dtype=own.dtype), np.empty(n_features, dtype=own.dtype)
    best[features], worst[features] = own.T
    for (features, own), (stay, _) in zip(rounds[-2::-1], rounds[:0:-1], strict=True):
        stays = np.isin(features, stay)
        (best_left, worst_left), (best_here, worst_here) = own[~stays].T, own[stays].T
        best[features[~stays]], worst[features[~stays]] = best_left, worst_left
        best[stay] += np.searchsorted(np.sort(worst_left), best_here, side="left")
        worst[stay] += np.searchsorted(np.sort(best_left), worst_here, side="right")
    return best, worst
