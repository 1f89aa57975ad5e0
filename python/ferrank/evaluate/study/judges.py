"""What says how good rankings are: weighted neighbors, error curves, a known truth; or keeps them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np
import pyarrow as pa

from ferrank._core import Source
from ferrank.data.dataset import Dataset
from ferrank.errors import SettingError
from ferrank.evaluate.aggregate import rank_distances
from ferrank.evaluate.evaluation import Evaluation
from ferrank.evaluate.measures import measures_of
from ferrank.evaluate.models import error_of, model_for
from ferrank.evaluate.multilabel import Conventions
from ferrank.evaluate.neighbors import evaluate
from ferrank.evaluate.rankings import collect
from ferrank.evaluate.rows import read_rows
from ferrank.evaluate.sizes import subset_sizes
from ferrank.evaluate.splits import Work
from ferrank.evaluate.truth import roc_area, separability, spearman_to

__all__ = ["ErrorCurves", "Judge", "Judgement", "KeptImportances", "Truth", "WeightedNeighbors"]

Array = np.ndarray[Any, Any]
Judgement = Evaluation | Mapping[int, Evaluation]
"""The measures of each ranking; or several of them by their places on a curve."""


class Judge(Protocol):
    """Says how good rankings are, by rows for training and testing."""

    def __call__(self, train: pa.Table, rankings: Any, test: pa.Table, roles: dict[str, Any]) -> Judgement:
        """Return the measures of each ranking, and of features that all weigh the same if it likes."""


@dataclass(frozen=True)
class WeightedNeighbors:
    """Judges rankings by nearest neighbors whose distances weigh features by importance.

    Parameters
    ----------
    n_neighbors : int, default=15
        Neighbors of each test row.
    conventions : {"textbook", "clus"}, default="textbook"
        As in :func:`~ferrank.evaluate.evaluate`.
    threshold : float, default=0.5
        A label is predicted if at least this share of the neighbors has it; of label sets alone.

    Examples
    --------
    >>> from ferrank.evaluate import WeightedNeighbors
    >>> WeightedNeighbors(5)
    WeightedNeighbors(n_neighbors=5, conventions='textbook', threshold=0.5)
    """

    n_neighbors: int = 15
    conventions: Conventions = "textbook"
    threshold: float = 0.5

    def __post_init__(self) -> None:
        n = self.n_neighbors
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise SettingError(f"n_neighbors: {n!r} is no number of neighbors; use a whole number from 1 on")
        if self.conventions not in get_args(Conventions):
            known = ", ".join(get_args(Conventions))
            raise SettingError(f"conventions: {self.conventions!r} is not one of {known}")
        share = self.threshold
        if not isinstance(share, int | float | np.number) or not 0 <= share <= 1:
            raise SettingError(f"threshold: {share!r} is no share of the neighbors; use a number in 0 … 1")

    def measures(self, task: str) -> tuple[str, ...]:
        """Return the names of the measures for a task."""
        return measures_of(task)

    def __call__(self, train: pa.Table, rankings: Any, test: pa.Table, roles: dict[str, Any]) -> Evaluation:
        """Return the measures of each ranking, and of features that all weigh the same."""
        return evaluate(
            Dataset(
                train,
                roles["target"],
                task=roles["task"],
                hierarchy=roles["hierarchy"],
                groups=roles.get("groups"),
                sample_weight=roles.get("weight"),
                drop=[name for name in roles.get("drop", ()) if name in train.column_names],
                categorical_features=roles.get("categorical_features"),
            ),
            rankings,
            test=test,
            n_neighbors=self.n_neighbors,
            conventions=self.conventions,
            threshold=self.threshold,
            unlabelled="ignore",
            n_jobs=1,
        )


@dataclass(frozen=True)
class ErrorCurves:
    """Judges rankings by models of their best and of their worst features (Slavkov et al. 2020).

    The measures ``forward_error`` and ``reverse_error`` have a place for each number of features.

    Parameters
    ----------
    model : {"knn", "svm", "naive_bayes", "decision_tree", "random_forest"} or scikit-learn model
        What is built, as in :func:`~ferrank.evaluate.curves`.
    sizes : {"paper", "linear", "quadratic", "exponential"} or sequence of int, default="paper"
        Numbers of features, as in :func:`~ferrank.evaluate.subset_sizes`.
    step : int, optional
        Of the schedule.

    Examples
    --------
    >>> from ferrank.evaluate import ErrorCurves
    >>> ErrorCurves("svm", "exponential")
    ErrorCurves(model='svm', sizes='exponential', step=None)
    """

    model: Any = "knn"
    sizes: Any = "paper"
    step: int | None = None

    def measures(self, task: str) -> tuple[str, ...]:
        """Return the names of the measures, the same for all tasks."""
        return ("forward_error", "reverse_error")

    def __call__(
        self, train: pa.Table, rankings: Any, test: pa.Table, roles: dict[str, Any]
    ) -> dict[int, Evaluation]:
        """Return the errors of each ranking, by the number of features."""
        rows = read_rows(Source.table(pa.concat_tables([train, test]), "rows"), roles, 0.75)
        judged = collect(rankings)
        features = rows.features.column_names
        work = Work(
            rows,
            {one.name: one.matched(features, rows.source) for one in judged},
            model_for(self.model, rows),
            error_of(rows)[1],
            subset_sizes(len(features), self.sizes, self.step),
            0,
            0,
        )
        known = rows.labelled()
        fit, score = np.arange(train.num_rows), np.arange(train.num_rows, rows.n_rows)
        found = work(0, fit[known[fit]], score[known[score]])
        return {
            int(size): _judged(
                {
                    "forward_error": [found[one.name][0][place] for one in judged],
                    "reverse_error": [found[one.name][1][place] for one in judged],
                },
                judged,
                roles,
                (train, test),
            )
            for place, size in enumerate(work.sizes)
        }


@dataclass(frozen=True)
class Truth:
    """Judges rankings of synthetic data by the true importances (Slavkov et al. 2020).

    The measure ``relevance`` has a place for each feature, from the best ranked on: its true importance.
    ``spearman``, ``roc_area`` and ``separability`` are those of :mod:`ferrank.evaluate.truth`,
    ``truth_distance`` is 1 - ρ as the paper's Table 3 has it, by :func:`~ferrank.evaluate.rank_distances`.

    Examples
    --------
    >>> from ferrank.evaluate import Truth
    >>> Truth()
    Truth()
    """

    def measures(self, task: str) -> tuple[str, ...]:
        """Return the names of the measures, the same for all tasks."""
        return ("spearman", "roc_area", "separability", "truth_distance", "relevance")

    def __call__(
        self, train: pa.Table, rankings: Any, test: pa.Table, roles: dict[str, Any]
    ) -> dict[int, Evaluation]:
        """Return the true importances along each ranking; at the first place, how well it agrees."""
        if roles.get("relevance") is None:
            raise SettingError("judge: the truth is known of synthetic data alone; use another judge")
        truth = np.asarray(list(roles["relevance"].values()))
        judged = collect(rankings)
        values = [one.matched(list(roles["relevance"]), "the truth") for one in judged]
        measures: dict[str, Callable[[Array, Array], float]] = {
            "spearman": spearman_to,
            "roc_area": roc_area,
            "separability": separability,
            "truth_distance": lambda true, one: float(rank_distances(np.stack([true, one]))[0, 1]),
        }
        found = {name: [of(truth, one) for one in values] for name, of in measures.items()}
        along = [truth[np.argsort(-one, kind="stable")] for one in values]
        return {
            place + 1: _judged(
                {"relevance": [one[place] for one in along]} | (found if place == 0 else {}),
                judged,
                roles,
                (train, test),
            )
            for place in range(len(truth))
        }


@dataclass(frozen=True)
class KeptImportances:
    """Judges nothing, and keeps the importances: the measure ``importance``, at the place of each feature.

    Examples
    --------
    >>> from ferrank.evaluate import KeptImportances
    >>> KeptImportances()
    KeptImportances()
    """

    def measures(self, task: str) -> tuple[str, ...]:
        """Return the names of the measures, the same for all tasks."""
        return ("importance",)

    def __call__(
        self, train: pa.Table, rankings: Any, test: pa.Table, roles: dict[str, Any]
    ) -> dict[int, Evaluation]:
        """Return the importance of each feature, by its place among the columns from 1 on."""
        judged = collect(rankings)
        values = np.stack([one.values for one in judged])
        return {
            place + 1: _judged({"importance": list(column)}, judged, roles, (train, test))
            for place, column in enumerate(values.T)
        }


def _judged(
    measures: dict[str, list[float]], judged: Any, roles: dict[str, Any], tables: tuple[pa.Table, pa.Table]
) -> Evaluation:
    return Evaluation(
        roles["task"],
        [one.name for one in judged],
        {name: np.array(values, dtype=np.float64) for name, values in measures.items()},
        {},
        roles["target"],
        tables[0].num_rows,
        tables[1].num_rows,
        {},
        0.0,
    )
