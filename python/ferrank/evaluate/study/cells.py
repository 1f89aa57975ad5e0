"""The work of a study on one split with one ranker: rank the training rows, judge by the test rows."""

import time
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from ferrank._core import Source
from ferrank.evaluate.evaluation import UNWEIGHTED, Evaluation
from ferrank.evaluate.neighbors import evaluate
from ferrank.evaluate.rankings import collect
from ferrank.ranking import Ranking

__all__ = ["SCHEMA", "Cell", "Judge", "WeightedNeighbors"]

Array = np.ndarray[Any, Any]

SCHEMA = pa.schema(
    [
        ("data", pa.string()),
        ("method", pa.string()),
        ("split", pa.string()),
        ("labelled", pa.int64()),
        ("measure", pa.string()),
        ("value", pa.float64()),
        ("ranking_seconds", pa.float64()),
        ("n_train", pa.int64()),
        ("n_test", pa.int64()),
    ]
)
"""The columns of the results; ``labelled`` is null where all training rows are."""


class Judge(Protocol):
    """Says how good rankings are, by rows for training and testing."""

    def __call__(self, train: pa.Table, rankings: Any, test: pa.Table, roles: dict[str, Any]) -> Evaluation:
        """Return the measures of each ranking, and of features that all weigh the same."""


@dataclass(frozen=True)
class WeightedNeighbors:
    """Judges rankings by nearest neighbors whose distances weigh features by importance.

    Parameters
    ----------
    n_neighbors : int, default=15
        Neighbors of each test row.
    conventions : {"textbook", "clus"}, default="textbook"
        As in :func:`~ferrank.evaluate.evaluate`.

    Examples
    --------
    >>> from ferrank.evaluate import WeightedNeighbors
    >>> WeightedNeighbors(5)
    WeightedNeighbors(n_neighbors=5, conventions='textbook')
    """

    n_neighbors: int = 15
    conventions: Literal["textbook", "clus"] = "textbook"

    def __call__(self, train: pa.Table, rankings: Any, test: pa.Table, roles: dict[str, Any]) -> Evaluation:
        """Return the measures of each ranking, and of features that all weigh the same."""
        return evaluate(
            train,
            rankings,
            test=test,
            target=roles["target"],
            task=roles["task"],
            hierarchy=roles["hierarchy"],
            groups=None,
            n_neighbors=self.n_neighbors,
            conventions=self.conventions,
            unlabelled="ignore",
            n_jobs=1,
        )


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
        self, ranker: Any, judge: Judge, train: pa.Table, test: pa.Table, roles: dict[str, Any], hidden: Array
    ) -> pa.Table:
        """Return the results: a row for each method and measure.

        ``hidden`` are training rows that lose their targets for the ranker and the judge.
        """
        train = _without_targets(train, roles["target"], hidden)
        began = time.perf_counter()
        ranking = _ranked(ranker, train, roles, len(hidden) > 0)
        seconds = time.perf_counter() - began
        names = [one.name for one in collect({self.ranker: ranking})]
        found = judge(train, {self.ranker: ranking}, test, roles)
        # A ranker with one score is called by its own name.
        called = dict(zip(names, [self.ranker] if len(names) == 1 else names, strict=True))
        rows = [
            {
                "data": self.data,
                "method": called.get(method, method),
                "split": self.split,
                "labelled": self.labelled,
                "measure": measure,
                "value": float(values[number]),
                "ranking_seconds": None if method == UNWEIGHTED else seconds,
                "n_train": train.num_rows,
                "n_test": test.num_rows,
            }
            for measure, values in found.measures.items()
            for number, method in enumerate(found.rankings)
        ]
        return pa.Table.from_pylist(rows, SCHEMA)


def _ranked(ranker: Any, train: pa.Table, roles: dict[str, Any], lacks_targets: bool) -> Ranking:
    own = clone(ranker)
    if lacks_targets and "unlabelled" in own.get_params() and own.unlabelled in (None, "error"):
        own.set_params(unlabelled="ignore")
    if "n_jobs" in own.get_params():
        own.set_params(n_jobs=1)
    found: Ranking = own._rank_source(Source.table(train, "training rows"), roles)
    return found


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
