"""Choosing how much rows without a target have to say, by cross-validation (Petković et al. 2023 §6.3).

The rows with a target are parted into folds. Each fold's rows are set aside, features are ranked on all
others, with and without a target, and the ranking is judged by how well the neighbours that it finds among
the rows with a target predict the fold (Petković et al. 2023 §6.4).
"""

import itertools
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.model_selection import KFold, StratifiedKFold

from ferrank._core import Source
from ferrank.data.dataset import Dataset
from ferrank.data.parameters import count_of, kind_of, seed_of_splits
from ferrank.data.source import read_all
from ferrank.data.values import group_numbers
from ferrank.errors import DataError, SettingError
from ferrank.evaluate import MEASURES, Evaluation, evaluate
from ferrank.evaluate.rows import known_rows
from ferrank.evaluate.splits import group_folds
from ferrank.progress import Progress, check_function
from ferrank.rankers.base import Ranker
from ferrank.rankers.estimators import estimator_of
from ferrank.rankers.forest import ForestRanker
from ferrank.rankers.plan import EnginePlan, Plan
from ferrank.rankers.registry import dataset_of, opened, plan_of, unknown_setting
from ferrank.rankers.relief import ReliefRanker
from ferrank.ranking import Ranking
from ferrank.ranking.text import table

__all__ = ["Tuning", "tune", "tune_source"]

_LEVELS = tuple(level / 10 for level in range(11))
_INFLUENCES = tuple(
    pair for pair in itertools.product((0.0, 0.25, 0.5, 0.75, 1.0), repeat=2) if pair[0] <= pair[1]
)
_NEIGHBORS = (15, 20, 30)


@dataclass(frozen=True, eq=False, repr=False)
class Tuning:
    """Settings that were tried, and the ranking by the best of them.

    Attributes
    ----------
    measure : str
        What was judged by: ``macro_f1`` of classes, ``pooled_auprc`` of label sets, else ``error``, the mean
        over the targets of their relative root squared errors and error rates.
    candidates : list of dict
        The settings tried.
    values : ndarray of shape (n_candidates, n_folds)
        The measure of each.
    best : int
        Number of the best; of equals the first.
    ranking : Ranking
        By the best settings, of all rows.
    seconds : float
        Wall time.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 100))
    >>> table = {"x": x, "noise": noise, "y": x}
    >>> found = ferrank.tune(table, "y", ranker="relief", grid={"n_neighbors": (5, 10)})
    >>> found.measure, found.candidates, found.values.shape
    ('error', [{'n_neighbors': 5}, {'n_neighbors': 10}], (2, 4))
    """

    measure: str
    candidates: list[dict[str, Any]]
    values: np.ndarray[Any, np.dtype[np.float64]]
    best: int
    ranking: Ranking
    seconds: float = field(default=0.0)

    @property
    def goodness(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Mean measures over the folds, of shape (n_candidates,); errors are negative: greater is better."""
        return _goodness(self.measure, self.values)

    @property
    def best_params(self) -> dict[str, Any]:
        """The best settings."""
        return self.candidates[self.best]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``ferrank tune --json`` prints."""
        return {
            "measure": self.measure,
            "candidates": [
                {"params": params, "mean": float(values.mean()), "folds": values.tolist()}
                for params, values in zip(self.candidates, self.values, strict=True)
            ],
            "best": self.best_params,
            "ranking": self.ranking.to_dict(),
            "seconds": self.seconds,
        }

    def to_text(self, top: int = 10) -> str:
        """Return the candidates and the best ranking as text."""
        names = list(self.candidates[0])
        cells = [[*names, self.measure, ""]]
        for number, (params, values) in enumerate(zip(self.candidates, self.values, strict=True)):
            told = [" ".join(map(str, np.atleast_1d(params[name]))) for name in names]
            cells.append([*told, f"{values.mean():.4f}", "best" if number == self.best else ""])
        return "\n".join([*table(cells), "", self.ranking.to_text(top)])

    def __repr__(self) -> str:
        return self.to_text()


def tune(
    data: Any,
    target: str | Sequence[str] | None = None,
    *,
    target_last: int | None = None,
    labels: Any = None,
    task: str | None = None,
    hierarchy: Any = None,
    drop: Sequence[str] = (),
    groups: str | None = None,
    ranker: Plan | str | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
    folds: int = 4,
    n_neighbors: int = 20,
    random_state: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Tuning:
    """Choose the level of supervision of a forest, or influence and neighbours of Relief.

    Parameters
    ----------
    data, target, target_last, labels, task, hierarchy, drop, groups, ranker, **settings
        As in :func:`ferrank.rank`. The data are held in memory. With ``groups``, rows of a group are in the
        same fold.
    grid : mapping of str to sequence, optional
        Settings to try, all with all. By default ``supervision`` over 0, 0.1 … 1 for a forest; for Relief
        ``influence`` over the pairs of 0, 0.25 … 1 with the lower first, and ``n_neighbors`` over 15, 20, 30.
    folds : int, default=4
        Parts that the rows with a target are set aside in.
    n_neighbors : int, default=20
        Neighbours that judge a ranking; fewer where there are not so many rows.
    random_state : int, default=0
        Seed of the folds.
    progress : callable, optional
        Called as ``progress("tuning", done, total)`` after each ranking.

    Returns
    -------
    Tuning

    Raises
    ------
    DataError, ColumnTypeError, SettingError
        Also where there are fewer rows with a target than folds.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 200))
    >>> y = np.where(np.arange(200) < 40, x, np.nan)
    >>> found = fr.tune({"x": x, "noise": noise, "y": y}, "y", n_estimators=10, grid={"supervision": (0, 1)})
    >>> found.best_params, found.ranking.top(1)
    ({'supervision': 1}, ['x'])
    """
    check_function(progress)
    chosen = estimator_of(plan_of(ranker, settings))
    dataset = dataset_of(
        data,
        target=target,
        target_last=target_last,
        labels=labels,
        task=task,
        hierarchy=hierarchy,
        drop=drop,
        groups=groups,
    )
    if dataset.hierarchy is not None:
        chosen = clone(chosen).set_params(hierarchy=dataset.hierarchy)
    source, roles = opened(chosen, dataset)
    given = dataset if dataset is data else None
    return tune_source(source, roles, chosen, grid, folds, n_neighbors, random_state, progress, given)


def tune_source(
    source: Source,
    roles: dict[str, Any],
    ranker: Ranker,
    grid: Mapping[str, Sequence[Any]] | None = None,
    folds: int = 4,
    n_neighbors: int = 20,
    random_state: int = 0,
    progress: Progress | None = None,
    dataset: Dataset | None = None,
) -> Tuning:
    """Do what :func:`tune` does for a source with these roles, and keep its profile in ``dataset``."""
    started = time.perf_counter()
    folds, n_neighbors = count_of(folds, "folds", "folds", 2), count_of(n_neighbors, "n_neighbors", "rows", 1)
    random_state = seed_of_splits(random_state)
    if grid is not None:
        kind_of(grid, Mapping, "grid", "a mapping of settings to the values to try")
    problem = source.resolve(roles)
    targets = [name for name, _ in problem["targets"]]
    if not targets:
        raise SettingError("task: settings are judged by a target, the task unsupervised has none")
    grid = dict(_grid_of(ranker) if grid is None else grid)
    for setting, tried in grid.items():
        if setting not in ranker._defaults():
            raise unknown_setting(setting, ranker._defaults(), type(ranker).__name__)
        if isinstance(tried, str) or not hasattr(tried, "__len__"):
            raise SettingError(f"grid: {setting}: {tried!r} is no sequence of values to try; use [{tried!r}]")
    candidates = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    if not candidates:
        raise SettingError("grid: nothing to try; give a value for each setting")
    rows = read_all(source)
    named = roles | {"target": targets, "target_last": None, "task": problem["task"]}
    name = roles["groups"]
    members = None if name is None else group_numbers(rows[name], source.name, name)
    parts = _folds(rows, targets, problem["task"], folds, random_state, members, source.name)
    runs = _runs(ranker, grid)
    values = np.zeros((len(candidates), len(parts)))
    done, total = 0, len(parts) * len(runs)
    for fold, (others, test) in enumerate(parts):
        train = rows.take(others)
        importances: list[np.ndarray[Any, Any]] = []
        for one, several in runs:
            ranking = one._rank_source(Source.table(train, source.name), named)
            scores = list(ranking.scores)
            importances += [ranking.importances(scores[i * len(scores) // several]) for i in range(several)]
            done += 1
            if progress is not None:
                progress("tuning", done, total)
        judged_by = Dataset(
            train,
            targets,
            task=problem["task"],
            hierarchy=ranker.hierarchy,
            drop=[name for name in roles["drop"] if name in rows.column_names],
            groups=roles["groups"],
            categorical_features=roles["categorical_features"],
        )
        found = evaluate(
            judged_by,
            {str(number): importance for number, importance in enumerate(importances)},
            test=rows.take(test),
            hierarchy_decay=ranker._settings().get("hierarchy_decay", 0.75),
            n_neighbors=min(n_neighbors, _n_labelled(train, targets)),
            unlabelled="ignore",
            n_jobs=ranker.n_jobs,
        )
        measure, values[:, fold] = _judged(found)
    best = int(np.argmax(_goodness(measure, values)))
    chosen = clone(ranker).set_params(**candidates[best])
    whole, known = Source.table(rows, source.name), {}
    if dataset is not None and chosen.until is None and isinstance(chosen, EnginePlan):
        known["profile"] = dataset.profile(roles, chosen._settings(), partial(chosen._profile, whole, named))
    ranking = chosen._rank_source(whole, named, **known)
    return Tuning(measure, candidates, values, best, ranking, time.perf_counter() - started)


def _grid_of(ranker: Ranker) -> dict[str, Sequence[Any]]:
    if isinstance(ranker, ForestRanker):
        return {"supervision": _LEVELS}
    if isinstance(ranker, ReliefRanker):
        return {"influence": _INFLUENCES, "n_neighbors": _NEIGHBORS}
    raise SettingError(f"ranker: nothing is known to try for {type(ranker).__name__}; give a grid")


def _runs(ranker: Ranker, grid: dict[str, Sequence[Any]]) -> list[tuple[Ranker, int]]:
    """Return the rankers to run, each with how many candidates it answers for.

    One search of neighbours answers for all their numbers, where these come last.
    """
    together = isinstance(ranker, ReliefRanker) and list(grid)[-1] == "n_neighbors"
    names = list(grid)[:-1] if together else list(grid)
    runs = []
    for values in itertools.product(*(grid[name] for name in names)):
        params = dict(zip(names, values, strict=True))
        if together:
            params["n_neighbors"] = tuple(grid["n_neighbors"])
        runs.append((clone(ranker).set_params(**params), len(grid["n_neighbors"]) if together else 1))
    return runs


def _labelled(rows: pa.Table, targets: Sequence[str]) -> np.ndarray[Any, Any]:
    """Return the numbers of the rows that have some target; NaN is none."""
    return np.flatnonzero(known_rows(rows, targets).to_numpy(zero_copy_only=False))


def _n_labelled(rows: pa.Table, targets: Sequence[str]) -> int:
    return len(_labelled(rows, targets))


def _folds(
    rows: pa.Table,
    targets: Sequence[str],
    task: str,
    folds: int,
    seed: int,
    groups: np.ndarray[Any, Any] | None,
    source: str,
) -> list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Return for each fold the other rows and its own, which all have a target.

    The other rows of a fold are of other groups.
    """
    labelled = _labelled(rows, targets)
    if len(labelled) < 2 * folds:
        raise DataError(
            f"folds: {folds} of {len(labelled)} rows with a target; use at least 2, of at least 2 rows each"
        )
    classes = rows[targets[0]].take(labelled).cast(pa.string()) if task == "classification" else None
    everyone = np.arange(rows.num_rows)
    if groups is not None:
        of_rows = None if classes is None else np.asarray(classes)
        splits = group_folds(groups[labelled], of_rows, folds, seed, source)
        tests = [labelled[test] for _, test in splits]
        return [(everyone[~np.isin(groups, groups[test])], test) for test in tests]
    split: Any = StratifiedKFold if classes is not None else KFold
    with warnings.catch_warnings():
        # Of classes with fewer rows than folds some folds have none.
        warnings.simplefilter("ignore", UserWarning)
        try:
            parts = list(split(folds, shuffle=True, random_state=seed).split(labelled, classes))
        except ValueError:
            parts = list(KFold(folds, shuffle=True, random_state=seed).split(labelled))
    return [(np.delete(everyone, labelled[test]), labelled[test]) for _, test in parts]


def _goodness(measure: str, values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    higher = measure in MEASURES and MEASURES[measure].higher_is_better
    return np.asarray(values.mean(axis=1) if higher else -values.mean(axis=1))


def _judged(found: Evaluation) -> tuple[str, np.ndarray[Any, Any]]:
    """Return the name of the measure and its values, without the unweighted neighbours' at the head."""
    measures = {"classification": "macro_f1", "multi-label": "pooled_auprc", "hierarchical": "pooled_auprc"}
    if found.task in measures:
        name = measures[found.task]
        return name, found.measures[name][1:]
    errors = [found.by_target[name] for name in ("rrmse", "error_rate") if name in found.by_target]
    return "error", np.nanmean(np.concatenate(errors, axis=1), axis=1)[1:]
