"""The work of a study on one split with one ranker: rank the training rows, judge by the test rows."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
from sklearn.base import clone

from ferrank import _core
from ferrank._core import Source
from ferrank.data.dataset import Dataset
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.evaluation import UNWEIGHTED, Evaluation
from ferrank.evaluate.measures import class_measures, number_measures, variance_of
from ferrank.evaluate.rankings import collect
from ferrank.evaluate.rows import known_rows
from ferrank.evaluate.study.judges import Judge
from ferrank.evaluate.synth import perturb
from ferrank.ranking import Ranking
from ferrank.run import finish

__all__ = ["OF_MODELS", "SCHEMA", "Cell", "NoisyTruth", "read_numbers"]

Array = np.ndarray[Any, Any]

SCHEMA = pa.schema(
    [
        ("data", pa.string()),
        ("method", pa.string()),
        ("split", pa.string()),
        ("labelled", pa.int64()),
        ("n_trees", pa.int64()),
        ("judge", pa.string()),
        ("at", pa.int64()),
        ("measure", pa.string()),
        ("value", pa.float64()),
        ("ranking_seconds", pa.float64()),
        ("n_train", pa.int64()),
        ("n_test", pa.int64()),
    ]
)
"""The columns of the results.

``labelled`` is null where all training rows are, ``n_trees`` where a ranker was not asked for several numbers
of trees, ``judge`` where there is one without a name, ``at`` where a measure is no curve.
"""


def read_numbers(path: Path) -> pa.Table:
    """Return the results in a file, which anybody may have written to.

    Raises
    ------
    DataError, OSError, MemoryError, pyarrow.ArrowException
        It holds no results; the message does not name the file.
    """
    # A pipe waits for a writer, and a device may never end.
    if not path.is_file():
        raise DataError("is no regular file")
    table = pyarrow.feather.read_table(path)
    if not table.schema.equals(SCHEMA):
        raise DataError("holds no results of a study")
    table.validate(full=True)
    return table


OF_MODELS = ("relative_squared_error", "n_nodes", "splits_by_relief")
"""What is measured of models besides what they predict."""


@dataclass(frozen=True)
class NoisyTruth:
    """Ranks by the true importances, of which a share is replaced by random ones; for synthetic data.

    The rankings R_θ of Slavkov et al. 2020; each split has noise of its own.

    Parameters
    ----------
    share : float, default=0.0
        θ, the share of the features whose importances are random.

    Examples
    --------
    >>> from ferrank.evaluate import NoisyTruth
    >>> NoisyTruth(0.1)
    NoisyTruth(share=0.1)
    """

    share: float = 0.0

    def rank(self, relevance: Mapping[str, float], seed: Sequence[int]) -> Ranking:
        """Return the ranking of features with these true importances."""
        noisy = perturb(np.array(list(relevance.values())), self.share, np.random.default_rng(seed))
        return Ranking.from_importances(list(relevance), {"truth": noisy}, task="classification")


@dataclass(frozen=True)
class Cell:
    """One data set, ranker and split; ``labelled`` training rows keep their targets, None: all."""

    data: str
    ranker: str
    split: str
    labelled: int | None

    @property
    def name(self) -> str:
        """How the file of its results is called."""
        share = "all" if self.labelled is None else str(self.labelled)
        return f"{self.data}.{self.ranker}.{self.split}.{share}"

    def run(
        self,
        ranker: Any,
        judges: Mapping[str | None, Judge],
        n_trees: Sequence[int],
        train: pa.Table,
        test: pa.Table,
        roles: dict[str, Any],
        hidden: Array,
    ) -> pa.Table:
        """Return the results: a row for each method, number of trees, judge, place and measure.

        ``hidden`` are training rows that lose their targets for the ranker and the judges. The rows are
        ranked once, for all judges; of a forest the first ``n_trees`` make a ranking each.
        """
        scales = _variances(train, roles["target"]) if len(hidden) else {}
        train = _without_targets(train, roles["target"], hidden)
        common = {
            "data": self.data,
            "split": self.split,
            "labelled": self.labelled,
            "n_train": train.num_rows,
            "n_test": test.num_rows,
        }
        if hasattr(ranker, "predict"):
            known = train.filter(known_rows(train, roles["target"])) if len(hidden) else train
            try:
                predicted = list(_predicted(ranker, known, test, roles, scales))
            except SettingError as error:
                raise SettingError(f"rankers.{self.ranker}: data.{self.data}: {error}") from error
            rows = [common | {"method": self.ranker} | one for one in predicted]
            return pa.Table.from_pylist(rows, SCHEMA)
        rankings: dict[str, Ranking] = {}
        about: dict[str, dict[str, Any]] = {UNWEIGHTED: {"method": UNWEIGHTED}}
        for count, ranking, seconds in self._named_rankings(ranker, train, roles, hidden, n_trees):
            key = self.ranker if count is None else f"{self.ranker} of {count} trees"
            rankings[key] = ranking
            names = [one.name for one in collect({key: ranking})]
            # A ranker with one score is called by its own name.
            methods = [self.ranker + name.removeprefix(key) for name in names]
            for name, method in zip(names, methods, strict=True):
                about[name] = {"method": method, "n_trees": count, "ranking_seconds": seconds}
        rows = []
        for judge_name, judge in judges.items():
            try:
                found = judge(train, rankings, test, roles)
            except SettingError as error:
                raise SettingError(f"judge: {self.data}, split {self.split}: {error}") from error
            for at, one in found.items() if isinstance(found, Mapping) else [(None, found)]:
                if not isinstance(one, Evaluation):
                    raise SettingError(
                        f"judge: returns {type(one).__name__}; return an Evaluation, or a mapping of places "
                        "to them"
                    )
                for measure, values in _scaled(one, scales).items():
                    told = common | {"judge": judge_name, "at": at, "measure": measure}
                    rows += [
                        told | about[name] | {"value": float(value)}
                        for name, value in zip(one.rankings, values, strict=True)
                    ]
        return pa.Table.from_pylist(rows, SCHEMA)

    def _named_rankings(self, *given: Any) -> Iterator[tuple[int | None, Ranking, float]]:
        """Give the rankings; settings that do not suit the rows are errors that name the ranker."""
        try:
            yield from self._rankings(*given)
        except SettingError as error:
            raise SettingError(f"rankers.{self.ranker}: {error}") from error

    def _rankings(
        self,
        ranker: Any,
        train: pa.Table,
        roles: dict[str, Any],
        hidden: Array,
        n_trees: Sequence[int],
    ) -> Iterator[tuple[int | None, Ranking, float]]:
        """Give rankings with the numbers of their trees and the seconds that they took."""
        if isinstance(ranker, NoisyTruth):
            if roles.get("relevance") is None:
                raise SettingError("the truth is known of synthetic data alone; use another ranker")
            seed = [round(1e6 * ranker.share), *map(ord, self.data + self.split)]
            yield None, ranker.rank(roles["relevance"], seed), 0.0
            return
        own = clone(ranker)
        settings = own.get_params()
        if len(hidden) > 0 and "unlabelled" in settings and own.unlabelled in (None, "error"):
            own.set_params(unlabelled="ignore")
        elif len(hidden) > 0 and getattr(own, "semi_supervised", None) is False:
            # A baseline that ranks for classes or labels, and knows no rows without.
            train = train.filter(known_rows(train, roles["target"]))
        # Of the ranker that another one tunes or asks, too.
        own.set_params(**{name: 1 for name in settings if name.split("__")[-1] == "n_jobs"})
        if settings.get("random_state", 0) is None:
            # Each split has a draw of its own, the same whenever the study is done.
            draw = np.random.default_rng(list(map(ord, self.name))).integers(1 << 31)
            own.set_params(random_state=int(draw))
        roles = {name: role for name, role in roles.items() if name != "relevance"}
        source = Source.table(train, "training rows")
        began = time.perf_counter()
        if not n_trees or "n_estimators" not in settings:
            ranking: Ranking = own._rank_source(source, roles)
            yield None, ranking, time.perf_counter() - began
            return
        own.set_params(n_estimators=max(n_trees))
        told, profile = own._settings(), own._profile(source, roles)
        means: tuple[int, int | None, Any] = own._resources()
        grown, first = None, 0
        for count in sorted(n_trees):
            run = _core.accumulate(
                source,
                roles,
                told,
                *means,
                keys=(first, count),
                profile=profile,
                is_profiled=True,
            )
            more, first = finish(run), count
            grown = more if grown is None else grown.union([more])
            seconds = time.perf_counter() - began
            yield count, Ranking.from_core(grown.ranking(), told, seconds), seconds


def _predicted(
    model: Any, train: pa.Table, test: pa.Table, roles: dict[str, Any], scales: Mapping[str, float]
) -> Iterator[dict[str, Any]]:
    """Give measures of what a model of one target predicts; of a tree its size, and who chose its splits."""
    target = roles["target"][0]
    own = clone(model)
    if "n_jobs" in own.get_params():
        own.set_params(n_jobs=1)
    dataset = Dataset(train, target, task=roles["task"], drop=roles["drop"])
    began = time.perf_counter()
    own.fit(dataset)
    seconds = time.perf_counter() - began
    predicted = np.asarray(own.predict(dataset.with_rows(test)))
    true, known = (np.asarray(table.column(target).to_pandas()) for table in (test, train))
    if roles["task"] == "classification":
        names = sorted({*map(str, true), *map(str, predicted)})
        numbers = {name: number for number, name in enumerate(names)}
        codes = [np.array([numbers[str(value)] for value in values]) for values in (true, predicted)]
        measures = class_measures(*codes)
    else:
        true, known = true.astype(np.float64), known.astype(np.float64)
        mean, there = np.nanmean(known), ~np.isnan(true)
        variance = scales.get(target, float(variance_of(known[~np.isnan(known)])))
        measures = number_measures(true, predicted, variance)
        scale = float(((mean - true[there]) ** 2).mean())
        error = float(((predicted[there] - true[there]) ** 2).mean())
        measures["relative_squared_error"] = error / scale if scale > 0 else float("nan")
    tree = getattr(own, "tree_", None)
    if tree is not None and hasattr(tree, "selectors"):
        measures["n_nodes"] = float(len(tree.nodes))
        chosen = tree.selectors()
        splits = sum(chosen.values())
        measures["splits_by_relief"] = chosen.get("relief", 0) / splits if splits else float("nan")
    for name, value in measures.items():
        yield {"measure": name, "value": value, "ranking_seconds": seconds}


def _variances(train: pa.Table, targets: list[str]) -> dict[str, float]:
    """Return the variances of targets that are floats or integers."""
    found = {}
    for name in targets:
        if pa.types.is_floating(train[name].type) or pa.types.is_integer(train[name].type):
            values = train[name].drop_null().cast(pa.float64(), safe=False).to_numpy()
            values = values[~np.isnan(values)]
            found[name] = float(variance_of(values)) if len(values) else 0.0
    return found


def _scaled(found: Evaluation, variances: Mapping[str, float]) -> dict[str, Array]:
    """Return the measures, RRMSE by the given variances.

    Of other numbers of labelled rows the variance differs: errors of the same size would not be comparable.
    """
    errors = found.by_target.get("rmse")
    if errors is None or "rrmse" not in found.by_target or not variances:
        return found.measures
    rrmse = found.by_target["rrmse"].copy()
    for place, name in enumerate(found.targets):
        if name in variances:
            variance = variances[name]
            rrmse[:, place] = errors[:, place] / variance**0.5 if variance > 0 else np.nan
    counts = np.sum(~np.isnan(rrmse), axis=1)
    means = np.nansum(rrmse, axis=1) / np.where(counts > 0, counts, np.nan)
    return {**found.measures, "rrmse": means}


def _without_targets(train: pa.Table, targets: list[str], hidden: Array) -> pa.Table:
    if not len(hidden):
        return train
    known = np.ones(train.num_rows, dtype=bool)
    known[hidden] = False
    numbers = pa.array(np.arange(train.num_rows), mask=~known)
    for name in targets:
        place = train.schema.get_field_index(name)
        train = train.set_column(place, train.field(place), train.column(place).take(numbers))
    return train
