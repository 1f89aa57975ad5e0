"""Several rankings from one data set: of resampled rows, or of the single trees of a forest."""

from typing import Any

import numpy as np
from sklearn.base import clone

from ferrank.dataset import grow_tree, roles_of
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.rows import read_rows
from ferrank.forest import ForestRanker
from ferrank.ranker import Ranker
from ferrank.ranking import Ranking
from ferrank.run import Progress
from ferrank.source import open_source

__all__ = ["resample", "trees"]

_SCORES = ("genie3", "symbolic", "coverage")


def resample(
    data: Any,
    target: Any = None,
    ranker: Ranker | None = None,
    *,
    n: int = 30,
    share: float | None = None,
    target_last: int | None = None,
    labels: Any = None,
    task: str | None = None,
    drop: Any = (),
    random_state: int = 0,
    progress: Progress | None = None,
) -> list[Ranking]:
    """Rank resampled rows, for :func:`stability` or :func:`aggregate`.

    Parameters
    ----------
    data, target, target_last, labels, task, drop
        As in :func:`ferrank.rank`.
    ranker : Ranker, optional
        A forest by default.
    n : int, default=30
        Number of rankings.
    share : float, optional
        Share of the rows that are drawn without replacement; by default as many as there are with
        replacement, the bootstrap.
    random_state : int, default=0
    progress : callable, optional
        Called as ``progress("ranking", done, n)``.

    Returns
    -------
    list of Ranking

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 50))
    >>> [found.top(1) for found in resample({"a": a, "b": b, "y": a}, "y", n=2)]
    [['a'], ['a']]
    """
    if n < 1:
        raise SettingError(f"n: {n} must be 1 or more")
    if share is not None and not 0 < share <= 1:
        raise SettingError(f"share: {share} is not in (0, 1]")
    ranker = ForestRanker() if ranker is None else ranker
    source = open_source(data, labels=labels, as_text=drop)
    rows = read_rows(source, roles_of(target, target_last, labels, task or ranker.task, drop, None))
    rng = np.random.default_rng(random_state)
    rankings = []
    for number in range(n):
        if share is None:
            chosen = rng.integers(0, rows.n_rows, rows.n_rows)
        else:
            chosen = rng.choice(rows.n_rows, max(round(share * rows.n_rows), 1), replace=False)
        rankings.append(rows.take(np.sort(chosen)).ranked_by(clone(ranker)))
        if progress is not None:
            progress("ranking", number + 1, n)
    return rankings


def trees(
    data: Any,
    target: Any = None,
    ranker: ForestRanker | None = None,
    *,
    score: str = "genie3",
    target_last: int | None = None,
    labels: Any = None,
    task: str | None = None,
    drop: Any = (),
) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Return the importances in each tree of a forest, whose mean is that of the forest.

    Each tree is grown by itself, with its own pass over the data.

    Parameters
    ----------
    data, target, target_last, labels, task, drop
        As in :func:`ferrank.rank`.
    ranker : ForestRanker, optional
        The forest; not with ``per_target``.
    score : {"genie3", "symbolic", "coverage"}, default="genie3"

    Returns
    -------
    features : list of str
    importances : array of shape (n_estimators, n_features)

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 50))
    >>> data, forest = {"a": a, "b": b, "y": a}, ferrank.ForestRanker(n_estimators=5)
    >>> features, importances = trees(data, "y", forest)
    >>> np.allclose(importances.mean(axis=0), ferrank.rank(data, "y", ranker=forest).importances())
    True
    """
    ranker = ForestRanker() if ranker is None else ranker
    if score not in _SCORES:
        raise SettingError(f"score: '{score}' cannot be told by tree; use one of {', '.join(_SCORES)}")
    if ranker.per_target:
        raise SettingError("per_target: has several trees of each number; look at the targets one by one")
    source = open_source(data, labels=labels, as_text=drop)
    problem = source.resolve(roles_of(target, target_last, labels, task or ranker.task, drop, None))
    features = [name for name, _ in problem["features"]]
    place = {name: number for number, name in enumerate(features)}
    if ranker.n_estimators < 1:
        raise DataError("n_estimators: there are no trees")
    importances = np.zeros((ranker.n_estimators, len(features)))
    for number in range(ranker.n_estimators):
        tree = grow_tree(
            source,
            target,
            tree=number,
            target_last=target_last,
            labels=labels,
            task=problem["task"],
            drop=drop,
            ranker=ranker,
        )
        nodes = tree.to_pydict()
        whole = nodes["n_examples"][0]
        for feature, examples, depth, gain in zip(
            nodes["feature"], nodes["n_examples"], nodes["depth"], nodes["gain"], strict=True
        ):
            if feature is None:
                continue
            added = {
                "genie3": examples / whole * gain,
                "symbolic": ranker.decay**depth,
                "coverage": examples / whole,
            }
            importances[number, place[feature]] += added[score]
    return features, importances
