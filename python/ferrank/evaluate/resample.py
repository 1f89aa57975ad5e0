"""Several rankings from one data set: of resampled rows, or of the single trees of a forest."""

from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from ferrank.data.parameters import count_of, generator_of, kind_of, number_of
from ferrank.errors import SettingError
from ferrank.evaluate.rows import read_rows
from ferrank.progress import Progress, check_function
from ferrank.rankers.accumulator import accumulate
from ferrank.rankers.base import Ranker
from ferrank.rankers.estimators import ranker_of
from ferrank.rankers.forest import ForestRanker
from ferrank.rankers.registry import opened
from ferrank.ranking import Ranking

__all__ = ["resample", "trees"]


def resample(
    data: Any,
    target: Any = None,
    ranker: Ranker | str | None = None,
    *,
    n: int = 30,
    share: float | None = None,
    target_last: int | None = None,
    labels: Any = None,
    task: str | None = None,
    hierarchy: Any = None,
    drop: Any = (),
    groups: str | None = None,
    random_state: int = 0,
    progress: Progress | None = None,
) -> list[Ranking]:
    """Rank resampled rows, for :func:`stability` or :func:`aggregate`.

    Parameters
    ----------
    data, target, target_last, labels, task, hierarchy, drop, groups
        As in :func:`ferrank.rank`; the data are held in memory. With ``groups``, whole groups are drawn.
    ranker : Ranker or name of one, optional
        A forest by default.
    n : int, default=30
        Number of rankings.
    share : float, optional
        Share of the rows that are drawn without replacement; by default as many as there are with
        replacement, the bootstrap.
    random_state : int, default=0
        Seed of all random draws.
    progress : callable, optional
        Called as ``progress("ranking", done, n)``.

    Returns
    -------
    list of Ranking

    Raises
    ------
    DataError, SettingError, ColumnTypeError, ResourceError
        The message names the file, the column or the setting.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 50))
    >>> [found.top(1) for found in resample({"a": a, "b": b, "y": a}, "y", n=2)]
    [['a'], ['a']]
    """
    check_function(progress)
    n, rng = count_of(n, "n", "rankings", least=1), generator_of(random_state)
    if share is not None:
        share = number_of(share, "share", "(0, 1]", lambda value: 0 < value <= 1)
    ranker = kind_of(ranker_of("forest" if ranker is None else ranker), Ranker, "ranker", "a ranker")
    source, roles = opened(
        ranker,
        data,
        target=target,
        target_last=target_last,
        labels=labels,
        task=task,
        hierarchy=hierarchy,
        drop=drop,
        groups=groups,
    )
    rows = read_rows(source, roles)
    members = None if rows.groups is None else _members(rows.groups)
    n_units = rows.n_rows if members is None else len(members)
    rankings = []
    for number in range(n):
        if share is None:
            drawn = rng.integers(0, n_units, n_units)
        else:
            drawn = rng.choice(n_units, max(round(share * n_units), 1), replace=False)
        chosen = drawn if members is None else np.concatenate([members[group] for group in drawn])
        rankings.append(rows.take(np.sort(chosen)).ranked_by(clone(ranker)))
        if progress is not None:
            progress("ranking", number + 1, n)
    return rankings


def _members(groups: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Return the rows of each group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def trees(
    data: Any,
    target: Any = None,
    ranker: ForestRanker | None = None,
    *,
    score: str = "genie3",
    target_last: int | None = None,
    labels: Any = None,
    task: str | None = None,
    hierarchy: Any = None,
    drop: Any = (),
    groups: str | None = None,
) -> tuple[list[str], np.ndarray[Any, Any]]:
    """Return the importances in each tree of a forest, whose mean is that of the forest.

    Parameters
    ----------
    data, target, target_last, labels, task, hierarchy, drop, groups
        As in :func:`ferrank.rank`.
    ranker : ForestRanker, optional
        The forest; not with ``per_target``, nor with ``until``.
    score : str, default="genie3"
        A score of :class:`ferrank.ForestRanker`.

    Returns
    -------
    features : list of str
    importances : array of shape (n_estimators, n_features)

    Raises
    ------
    DataError, SettingError, ColumnTypeError, ResourceError
        The message names the file, the column or the setting.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 50))
    >>> data, forest = {"a": a, "b": b, "y": a}, ferrank.ForestRanker(n_estimators=5)
    >>> features, importances = trees(data, "y", forest)
    >>> np.allclose(importances.mean(axis=0), ferrank.rank(data, "y", ranker=forest).importances())
    True
    """
    ranker = kind_of(
        ranker_of("forest" if ranker is None else ranker), ForestRanker, "ranker", "a ForestRanker"
    )
    if ranker.per_target:
        raise SettingError("per_target: has several trees of each number; look at the targets one by one")
    found = accumulate(
        data,
        target,
        target_last=target_last,
        labels=labels,
        task=task,
        hierarchy=hierarchy,
        drop=drop,
        ranker=clone(ranker).set_params(
            scores=(score,), by_target=False, standard_errors=False, shadows=False
        ),
    )
    features = found.ranking().features
    importances = np.zeros((found.n_keys, len(features)))
    for batch in pa.ipc.open_stream(found.to_bytes()):
        # The first vector is the score; others are what the error of the forest is made of.
        tree, where, values = (batch[name][0].as_py() for name in ("key", "features", "values"))
        importances[tree, slice(None) if where is None else where] = values
    return features, importances
