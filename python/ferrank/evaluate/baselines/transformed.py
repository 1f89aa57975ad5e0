"""Label sets as classifications, for rankers of classes (Petković et al. 2020b, §2).

============================  ======================================================  ====================
ranker                        classifications                                         after
============================  ======================================================  ====================
:class:`LabelPowerSet`        one, each distinct set of labels is a class             Spolaôr et al. 2013
:class:`PairwiseLabels`       one for each pair of labels, of the rows that have      Kong et al. 2012
                              exactly one of the two
:class:`BinaryRelevance`      one for each label: rows with it, rows without it       Spolaôr et al. 2013
============================  ======================================================  ====================

Importances are averaged over the classifications. Those in which all rows are of one class say nothing and
are left out; if there is no other, all importances are 0.
"""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from ferrank.data.parameters import kind_of
from ferrank.data.values import unlike
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.baselines.base import Baseline
from ferrank.evaluate.baselines.chance import RandomRanker
from ferrank.evaluate.baselines.sefr import Sefr
from ferrank.evaluate.baselines.svm import SvmRfe
from ferrank.evaluate.baselines.univariate import ChiSquared, InformationGain
from ferrank.evaluate.rows import Rows
from ferrank.rankers.base import Ranker
from ferrank.rankers.estimators import RANKERS
from ferrank.ranking import Ranking

__all__ = ["BinaryRelevance", "LabelPowerSet", "PairwiseLabels"]

Array = np.ndarray[Any, Any]
Classification = tuple[Array, Array]
"""The rows that take part, and their classes as numbers."""

_MOST_CLASSES = 1_000
_MOST_PAIRS = 1_000
_INNER: dict[str, type[Ranker]] = RANKERS | {
    one.name: one for one in (InformationGain, ChiSquared, SvmRfe, Sefr, RandomRanker)
}
"""The rankers of classes, by name."""


class _Transformed(Baseline):
    tasks = ("multi-label",)

    def __init__(
        self,
        task: str | None = None,
        *,
        inner: Any = "relief",
        inner_settings: Mapping[str, Any] | None = None,
        n_jobs: int | None = None,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.inner = inner
        self.inner_settings = inner_settings
        self.n_jobs = n_jobs
        self.n_features_to_select = n_features_to_select

    @abstractmethod
    def _classifications(self, labels: Array, source: str) -> Iterator[Classification]:
        """Give the classifications; ``labels`` are of shape (n_rows, n_labels), ``source`` names the data."""

    def importances(self, rows: Rows) -> Array:
        """Return the importances under the first score of the inner ranker, of shape (n_features,)."""
        return next(iter(self._scores(rows).values()))

    def _settings(self) -> dict[str, Any]:
        return {"ranker": self.name, "inner": self.inner_ranker()._settings()}

    def _scores(self, rows: Rows) -> dict[str, Array]:
        """Return the importances under each score of the inner ranker."""
        inner = self.inner_ranker()
        sums: dict[str, Array] = {}
        count = 0
        for chosen, classes in self._classifications(rows.label_indicators(), rows.source):
            if len(np.unique(classes)) < 2:
                continue
            count += 1
            for name, score in _ranked(rows.take(chosen), classes, inner).scores.items():
                sums[name] = sums.get(name, 0.0) + score.importance
        if not count:
            one_class = _ranked(rows, np.zeros(rows.n_rows, dtype=np.intp), inner)
            return {name: np.zeros(len(one_class)) for name in one_class.scores}
        return {name: total / count for name, total in sums.items()}

    def inner_ranker(self) -> Ranker:
        """Return a new ranker of classes, with its settings.

        Raises
        ------
        SettingError
            There is no such ranker, or a setting that it does not have.
        """
        given = {} if self.inner_settings is None else self.inner_settings
        settings = dict(kind_of(given, Mapping, "inner_settings", "a mapping of settings"))
        if isinstance(self.inner, Ranker):
            if settings:
                raise SettingError("inner_settings: the inner ranker has its own; leave them out, or name it")
            inner: Ranker = clone(self.inner)
        elif isinstance(self.inner, str) and self.inner in _INNER:
            inner = _INNER[self.inner](**settings)
        else:
            raise SettingError(
                f"inner: {self.inner!r} is neither a ranker nor one of {', '.join(_INNER)}, which rank for "
                "classes"
            )
        if self.n_jobs is not None and "n_jobs" in inner.get_params():
            inner.set_params(n_jobs=self.n_jobs)
        return inner


class LabelPowerSet(_Transformed):
    """Rank for label sets as for classes: each distinct set is a class (Spolaôr et al. 2013).

    Parameters
    ----------
    task : str, optional
        Only "multi-label".
    inner : Ranker or str, default="relief"
        What ranks for classes: a ranker, or the name of one: forest, relief, association, joint, univariate,
        information_gain, chi_squared, svm_rfe, sefr, random. Each of its scores becomes one of the ranking.
    inner_settings : mapping, optional
        Settings of the inner ranker, if it is named.
    n_jobs : int, optional
        Threads of the inner ranker, if it has some; by default its own setting.
    n_features_to_select : int, float or None, default=None
        As in :class:`ferrank.ForestRanker`.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b, c = np.random.default_rng(0).random((3, 100))
    >>> data = {"a": a, "b": b, "c": c, "p": a > 0.5, "q": a > 0.3}
    >>> ranker = LabelPowerSet(inner="relief", inner_settings={"n_neighbors": 5})
    >>> ferrank.rank(data, ["p", "q"], ranker=ranker).top(1)
    ['a']
    """

    name = "label_power_set"

    def _classifications(self, labels: Array, source: str) -> Iterator[Classification]:
        sets, classes = np.unique(labels, axis=0, return_inverse=True)
        _refuse(
            source,
            len(sets),
            _MOST_CLASSES,
            "distinct sets of labels",
            "label_power_set makes each a class, and takes",
            "use binary_relevance",
        )
        yield np.arange(len(labels)), classes.ravel()


class PairwiseLabels(_Transformed):
    """Rank for each pair of labels by the rows with exactly one of the two (Kong et al. 2012).

    The importances are means over the pairs for which there are rows of both kinds.

    Parameters
    ----------
    task, inner, inner_settings, n_jobs, n_features_to_select
        As in :class:`LabelPowerSet`.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b, c = np.random.default_rng(0).random((3, 100))
    >>> data = {"a": a, "b": b, "c": c, "p": a > 0.5, "q": a < 0.3, "r": a < 0.7}
    >>> ferrank.rank(data, ["p", "q", "r"], ranker=PairwiseLabels(inner="forest")).top(1)
    ['a']
    """

    name = "pairwise_labels"

    def _classifications(self, labels: Array, source: str) -> Iterator[Classification]:
        n_labels = labels.shape[1]
        if n_labels < 2:
            raise DataError(
                f"{source}: pairwise_labels compares two labels, and there is one; use binary_relevance"
            )
        _refuse(
            source,
            n_labels * (n_labels - 1) // 2,
            _MOST_PAIRS,
            "pairs of labels",
            "pairwise_labels ranks for each, and takes",
            "name fewer labels, use binary_relevance",
        )
        for a, b in combinations(range(n_labels), 2):
            chosen = np.flatnonzero(labels[:, a] != labels[:, b])
            yield chosen, labels[chosen, a].astype(np.intp)


class BinaryRelevance(_Transformed):
    """Rank for each label on its own, rows with it against rows without it (Spolaôr et al. 2013).

    The importances are means over the labels that some rows have and others do not. A forest with
    ``per_target=True`` does the same by itself. Relief does not: there a row's neighbors are the nearest of
    all rows, as for numbers, and here the nearest with the label and the nearest without it.

    Parameters
    ----------
    task, inner, inner_settings, n_jobs, n_features_to_select
        As in :class:`LabelPowerSet`.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b, c = np.random.default_rng(0).random((3, 100))
    >>> data = {"a": a, "b": b, "c": c, "p": a > 0.5, "q": a > 0.3}
    >>> ferrank.rank(data, ["p", "q"], ranker=BinaryRelevance(inner="svm_rfe")).top(1)
    ['a']
    """

    name = "binary_relevance"

    def _classifications(self, labels: Array, source: str) -> Iterator[Classification]:
        everything = np.arange(len(labels))
        for label in labels.T:
            yield everything, label.astype(np.intp)


def _ranked(rows: Rows, classes: Array, inner: Ranker) -> Ranking:
    """Return the ranking of the rows by ``inner`` for classes that are given as numbers."""
    names = pa.array([str(number) for number in range(int(classes.max(initial=0)) + 1)])
    column = pa.DictionaryArray.from_arrays(pa.array(classes, pa.int32()), names)
    [(name, column)] = unlike(rows.features.column_names, [("class", column)])
    targets = pa.table({name: column})
    ranking: Ranking = replace(rows, task="classification", targets=targets).ranked_by(inner)
    return ranking


def _refuse(source: str, found: int, most: int, what: str, why: str, remedy: str) -> None:
    if found > most:
        raise DataError(
            f"{source}: {found:,} {what}; {why} at most {most:,}; {remedy}, or a ForestRanker or "
            "ReliefRanker, which take label sets as they are"
        )
