"""Judging rankings by the predictions of nearest neighbours.

After Petković et al. 2020b, §5.3, and Petković et al. 2020a, §4.3.

A ranking is good if distances weighted by its importances,

    d(x, x') = Σ w_i d_i(x_i, x'_i)²,    w_i = max(importance_i, 0), all 1 if none is above 0,

find better neighbours than unweighted ones do. The engine searches; the prediction is the mean or the
majority of the k neighbours whose target is known, among equals the first class, and that of all training
rows where no neighbour's target is known.

The papers do not say how values are scaled, nor what a missing one differs by. By ``textbook`` conventions,
the default, numeric features are scaled to [0, 1] by the training rows alone, test values outside of that
range count as its nearest end, and a missing value differs by what is expected of one drawn from the known
training values. With ``clus``, the conventions of the system that made the papers' figures, features are
scaled by training and test rows together, and a missing value differs by as much as it can. Three multi-label
measures differ as well: see :mod:`ferrank.evaluate.multilabel`.
"""

import os
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank._core import Source
from ferrank.data.categories import is_text
from ferrank.data.opening import Passes
from ferrank.data.parameters import decay_of, number_of, suggests
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.evaluation import UNWEIGHTED, Evaluation
from ferrank.evaluate.measures import class_measures, number_measures, variance_of
from ferrank.evaluate.multilabel import Conventions, multilabel_measures
from ferrank.evaluate.rankings import Rankings, collect
from ferrank.progress import Progress, check_function
from ferrank.rankers.registry import dataset_of
from ferrank.resources import threads_of
from ferrank.run import finish

__all__ = ["evaluate"]

Array = np.ndarray[Any, Any]
Target = Mapping[str, Any]
Figures = tuple[dict[str, float], dict[str, Array]]
"""Measures over all targets, and of each: values, and arrays of shape (n_targets,)."""

_BLOCK_ROWS = 1 << 16
_LABEL_SETS = {"multi-label", "hierarchical"}


@suggests
def evaluate(
    train: Any,
    rankings: Rankings,
    *,
    test: Any,
    target: str | Sequence[str] | None = None,
    target_last: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str | None = None,
    hierarchy: Any = None,
    hierarchy_decay: float = 0.75,
    drop: Sequence[str] = (),
    groups: str | None = None,
    n_neighbors: int = 15,
    conventions: Conventions = "textbook",
    threshold: float = 0.5,
    label_weights: Mapping[str, float] | Sequence[float] | None = None,
    unlabelled: str = "error",
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Judge rankings by the predictions of nearest neighbours, and unweighted ones beside them.

    Parameters
    ----------
    train : path, frame, table, reader, array or mapping of columns
        The rows to take neighbours from, as in :func:`ferrank.rank`; those that were ranked, best.
    rankings : Ranking, path, sequence of these, or mapping
        What to judge: every score of each ranking. Files are those of :meth:`ferrank.Ranking.save`; features
        are matched by name. A mapping gives names to rankings and paths, and to plain importances: arrays in
        the order of the features, or mappings of features.
    test : path, frame, table, reader, array or mapping of columns
        The rows to predict. Columns are matched by name; those that ``train`` lacks are not used. Targets
        beside the rows are told by a data set: ``test=fr.Dataset(X_test, y_test)``.
    target, target_last, labels, task, hierarchy, drop
        As in :func:`ferrank.rank`; ``labels`` and ``hierarchy`` go with both files.
    groups : str, optional
        Column of groups, such as patients, in both files; no feature. A group that has rows in both is an
        error: neighbours of its own group would be too good.
    hierarchy_decay : float, default=0.75
        As in :class:`ferrank.ForestRanker`. The labels of a hierarchy that some row has are judged as sets of
        labels are, by the weighted versions of their measures.
    n_neighbors : int, default=15
        Neighbours of each test row.
    conventions : {"textbook", "clus"}, default="textbook"
        How values are scaled, what missing ones differ by, and what some multi-label measures mean.
    threshold : float, default=0.5
        A label is predicted if at least this share of the neighbours has it; of label sets alone.
    label_weights : mapping or sequence of float, optional
        Weights of the labels in multi-label measures, by name or in order.
    unlabelled : {"error", "ignore"}, default="error"
        What becomes of rows without any target.
    n_jobs : int, optional
        Threads; the result is the same for any number.
    progress : callable, optional
        Called as ``progress(phase, done, total)`` ten times a second.

    Returns
    -------
    Evaluation

    Raises
    ------
    DataError, ColumnTypeError, SettingError, ResourceError
        The message names the file, the column, the ranking or the setting.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> x, noise = np.random.default_rng(0).normal(size=(2, 300))
    >>> train = {"x": x[:200], "noise": noise[:200], "y": x[:200]}
    >>> test = {"x": x[200:], "noise": noise[200:], "y": x[200:]}
    >>> found = evaluate(train, fr.rank(train, "y", ranker="forest"), test=test, target="y", n_neighbors=5)
    >>> found.rankings
    ['unweighted', 'genie3']
    >>> found.value("rrmse", "genie3") < found.value("rrmse", "unweighted")
    True
    """
    begin = time.monotonic()
    check_function(progress)
    threshold = number_of(threshold, "threshold", "[0, 1]", lambda value: 0 <= value <= 1)
    dataset = dataset_of(
        train,
        target=target,
        target_last=target_last,
        labels=labels,
        task=task,
        hierarchy=hierarchy,
        drop=drop,
        groups=groups,
    )
    roles, source = dataset.roles(), dataset.source()
    # What looks like numbers in the test rows alone is text, too.
    texts = [field.name for field in Passes.of(source).schema if is_text(field.type)]
    other = dataset.with_rows(test).source(as_text=texts)
    problem = source.resolve(roles)
    if roles["groups"] is not None:
        _check_apart(source, other, roles["groups"])
    weights = _label_weights(label_weights, problem)
    features = [name for name, _ in problem["features"]]
    judged = collect(rankings)
    importances = [np.ones(len(features)), *(one.matched(features, source.name) for one in judged)]
    settings: dict[str, Any] = {
        "n_neighbors": n_neighbors,
        "conventions": conventions,
        "unlabelled": unlabelled,
    }
    asked = settings | {
        "rankings": [one.tolist() for one in importances],
        "hierarchy_decay": decay_of(hierarchy_decay),
    }
    found = finish(_core.neighbors(source, other, roles, asked, threads_of(n_jobs)), progress)
    if found["task"] == "hierarchical":
        weights = np.array([one["weight"] for one in found["targets"]])
    figures = [
        _figures(found["task"], found["targets"], rows, weights, (conventions, threshold))
        for rows in found["rows"]
    ]
    if found["task"] in _LABEL_SETS:
        settings["threshold"] = threshold
    return Evaluation(
        task=found["task"],
        rankings=[UNWEIGHTED, *(one.name for one in judged)],
        measures={name: np.array([values[name] for values, _ in figures]) for name in figures[0][0]},
        by_target={name: np.stack([parts[name] for _, parts in figures]) for name in figures[0][1]},
        targets=[part["name"] for part in found["targets"]],
        n_train=found["n_train"],
        n_test=found["n_test"],
        settings=settings,
        seconds=time.monotonic() - begin,
    )


def _check_apart(train: Source, test: Source, groups: str) -> None:
    """Raise an error if some group has rows in both sources."""
    found: list[set[Any]] = []
    for source in (train, test):
        if groups not in source.columns:
            raise DataError(f"{source.name}: there is no column '{groups}' for the groups")
        values: set[Any] = set()
        for batch in pa.RecordBatchReader.from_stream(source):
            values.update(str(value) for value in batch[groups].unique().to_pylist())
        found.append(values)
    both = sorted(found[0] & found[1])
    if both:
        raise DataError(
            f"groups: {len(both)} of {len(found[1])} groups in {test.name} have rows in {train.name}, too, "
            f"such as '{both[0]}'; put all rows of a group into one of the two"
        )


def _label_weights(
    given: Mapping[str, float] | Sequence[float] | None, problem: Mapping[str, Any]
) -> Array | None:
    """Return a weight for each label."""
    if given is None:
        return None
    names = [name for name, _ in problem["targets"]]
    if problem["task"] != "multi-label":
        raise SettingError(
            f"label_weights: for multi-label targets, not for {problem['task']}; leave them out"
        )
    if isinstance(given, Mapping):
        unknown = [name for name in given if name not in names]
        missing = [name for name in names if name not in given]
        if unknown or missing:
            name, what = (unknown[0], "is no label") if unknown else (missing[0], "has no weight")
            raise SettingError(f"label_weights: '{name}' {what}; give each label one")
        given = [given[name] for name in names]
    try:
        weights = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SettingError(f"label_weights: {error}; use numbers") from error
    if weights.shape != (len(names),):
        raise SettingError(f"label_weights: {weights.size} weights for {len(names)} labels")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise SettingError("label_weights: weights must be finite, not negative, and not all 0")
    return weights


def _figures(
    task: str,
    targets: Sequence[Target],
    rows: Array,
    weights: Array | None,
    how: tuple[Conventions, float],
) -> Figures:
    """Predict the targets from the neighbours in ``rows``, of shape (n_test, k), and measure how well."""
    if task in _LABEL_SETS:
        return _of_labels(targets, rows, weights, how)
    parts = [
        _of_numbers(one, rows) if one["kind"] == "numeric" else _of_classes(one, rows) for one in targets
    ]
    names = dict.fromkeys(name for part in parts for name in part)
    by_target = {name: np.array([part.get(name, np.nan) for part in parts]) for name in names}
    return {name: _mean(values) for name, values in by_target.items()}, by_target


def _mean(values: Array) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else float("nan")


def _of_numbers(target: Target, rows: Array) -> dict[str, float]:
    train = target["train"]
    known = ~np.isnan(train)
    if not known.any():
        return number_measures(target["test"], np.zeros(len(rows)), 0.0)
    found = known[rows]
    sums = np.where(found, train[rows], 0.0).sum(axis=1)
    counts = found.sum(axis=1)
    predicted = np.where(counts > 0, sums / np.maximum(counts, 1), train[known].mean())
    return number_measures(target["test"], predicted, float(variance_of(train[known])))


def _of_classes(target: Target, rows: Array) -> dict[str, float]:
    train, n_classes = target["train"], len(target["categories"])
    overall = np.bincount(train[train >= 0], minlength=max(n_classes, 1))
    predicted = np.empty(len(rows), dtype=np.int64)
    for start in range(0, len(rows), _BLOCK_ROWS):
        found = train[rows[start : start + _BLOCK_ROWS]]
        votes = np.zeros((len(found), n_classes), dtype=np.int64)
        row, place = np.nonzero(found >= 0)
        np.add.at(votes, (row, found[row, place]), 1)
        majority = votes.argmax(axis=1) if n_classes else 0
        predicted[start : start + len(found)] = np.where((found >= 0).any(axis=1), majority, overall.argmax())
    return class_measures(target["test"], predicted)


def _of_labels(
    targets: Sequence[Target], rows: Array, weights: Array | None, how: tuple[Conventions, float]
) -> Figures:
    if not targets:
        raise DataError("no row of either source has a label; there is nothing to judge by")
    true = np.column_stack([target["test"] for target in targets])
    gaps = (true < 0).sum(axis=0)
    if gaps.any():
        number = int(gaps.argmax())
        raise DataError(
            f"the label '{targets[number]['name']}' is missing in {gaps[number]:,} test rows; the measures "
            "of label sets need all labels, leave these rows out"
        )
    train = np.column_stack([target["train"] for target in targets])
    sums = np.zeros(true.shape)
    counts = np.zeros(true.shape)
    for place in range(rows.shape[1]):
        found = train[rows[:, place]]
        sums += found > 0
        counts += found >= 0
    shares = (train > 0).sum(axis=0) / np.maximum((train >= 0).sum(axis=0), 1)
    scores = np.where(counts > 0, sums / np.maximum(counts, 1), shares)
    conventions, threshold = how
    return multilabel_measures(
        true > 0, scores, label_weights=weights, conventions=conventions, threshold=threshold
    )
