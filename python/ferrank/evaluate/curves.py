"""Error curves: models of ever more features, from the best and from the worst.

After Slavkov et al. 2020, Algorithm 1.

Forward feature addition builds a model of the i best features, reverse feature addition one of the i worst. A
good ranking makes the forward curve good soon and the reverse curve good late. Random rankings are what to
compare with: both their curves have the same expectation, which is estimated by as many as are asked for.

Each split of a repeated, stratified cross-validation is a task of its own, which joblib runs where its
backend says: in threads, in processes, on dask. In it each ranker ranks the training rows anew (the paper
ranks all rows, and then the test rows have had their say), so the splits also tell how stable the rankings
are.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import joblib
import numpy as np

from ferrank.data.parameters import count_of, decay_of, kind_of, seed_of_splits, suggests
from ferrank.errors import SettingError
from ferrank.evaluate.models import error_of, model_for
from ferrank.evaluate.rankings import collect
from ferrank.evaluate.rows import Rows, read_rows
from ferrank.evaluate.sizes import subset_sizes
from ferrank.evaluate.splits import RANDOM, Work, splits_of
from ferrank.evaluate.stability import Stability, stability
from ferrank.progress import Progress, check_function
from ferrank.rankers.base import Ranker
from ferrank.rankers.estimators import RANKERS, ranker_of
from ferrank.rankers.registry import dataset_of
from ferrank.resources import check_processes

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Areas", "Curves", "curves"]

Array = np.ndarray[Any, Any]


class Areas(NamedTuple):
    """Areas under the curves of a ranker: mean errors over the sizes, by the trapezoidal rule.

    Attributes
    ----------
    forward, reverse : float

    Examples
    --------
    >>> from ferrank.evaluate import Areas
    >>> Areas(forward=0.25, reverse=0.75).gain
    0.5
    """

    forward: float
    reverse: float

    @property
    def gain(self) -> float:
        """Reverse less forward: 0 for random rankings, greatest for the best."""
        return self.reverse - self.forward


@dataclass(frozen=True, eq=False)
class Curves:
    """Error curves of rankings.

    Attributes
    ----------
    measure : str
        What the curves show; less is better.
    features : list of str
    sizes : array of shape (n_sizes,)
        Numbers of features in the models.
    forward, reverse : dict of str to array of shape (n_splits, n_sizes)
        Errors with the best and with the worst features, by ranker. ``random``, where asked for, is in both.
    importances : dict of str to array of shape (n_splits, n_features)
        What was ranked by; for ``random``, one ranking of each split.
    settings : dict
        Model and splits.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 60))
    >>> table = {"a": a, "b": b, "y": a > 0}
    >>> found = ferrank.evaluate.curves(table, "y", {"relief": ferrank.ReliefRanker()}, folds=3)
    >>> found.measure, found.features, found.importances["relief"].shape
    ('error rate', ['a', 'b'], (3, 2))
    >>> bool(found.forward["relief"][0, 0] < found.reverse["relief"][0, 0])
    True
    """

    measure: str
    features: list[str]
    sizes: Array
    forward: dict[str, Array]
    reverse: dict[str, Array]
    importances: dict[str, Array]
    settings: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def stability(self) -> dict[str, Stability]:
        """How alike the rankings of the splits are, by ranker; not of rankings given from outside."""
        differing = {
            name: found
            for name, found in self.importances.items()
            if len(found) > 1 and name not in self.settings.get("given", ())
        }
        return {name: stability(found) for name, found in differing.items()}

    def areas(self) -> dict[str, Areas]:
        """Return the areas under the curves, by ranker."""
        return {
            name: Areas(self._area(self.forward[name]), self._area(self.reverse[name]))
            for name in self.forward
        }

    def _area(self, errors: Array) -> float:
        mean = errors.mean(axis=0)
        if len(self.sizes) == 1:
            return float(mean[0])
        return float(np.trapezoid(mean, self.sizes) / (self.sizes[-1] - self.sizes[0]))

    def to_pandas(self) -> Any:
        """Return a frame with a row for each ranker, curve and size: ``mean`` and ``std_error`` of the error.

        The standard error is that over splits, which share rows; it is too small by what they share.
        """
        import pandas as pd

        frames = []
        for curve, found in (("forward", self.forward), ("reverse", self.reverse)):
            for name, errors in found.items():
                spread = errors.std(axis=0, ddof=1) if len(errors) > 1 else np.full(errors.shape[1], np.nan)
                frames.append(
                    pd.DataFrame(
                        {
                            "ranker": name,
                            "curve": curve,
                            "size": self.sizes,
                            "mean": errors.mean(axis=0),
                            "std_error": spread / np.sqrt(len(errors)),
                        }
                    )
                )
        return pd.concat(frames, ignore_index=True)

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``ferrank curves --json`` prints: means over splits, areas and stability."""
        return {
            "measure": self.measure,
            "features": self.features,
            "sizes": self.sizes.tolist(),
            "forward": {name: errors.mean(axis=0).tolist() for name, errors in self.forward.items()},
            "reverse": {name: errors.mean(axis=0).tolist() for name, errors in self.reverse.items()},
            "areas": {name: area._asdict() | {"gain": area.gain} for name, area in self.areas().items()},
            "stability": {
                name: {
                    "sizes": found.sizes.tolist(),
                    "canberra": found.canberra.tolist(),
                    "jaccard": found.jaccard.tolist(),
                    "spearman": found.spearman,
                    "kendall": found.kendall,
                }
                for name, found in self.stability.items()
            },
            "settings": self.settings,
        }

    def to_text(self) -> str:
        """Return a table with a row for each ranker: areas, and the stability of its rankings."""
        lines = [
            f"{self.measure} by {self.settings['model']}, {self.settings['repeats']} x "
            f"{self.settings['folds']} folds, {len(self.features):,} features, {len(self.sizes)} sizes",
            "",
        ]
        width = max(6, *map(len, self.forward))
        lines.append(f"{'ranker':{width}}  forward  reverse     gain  instability  spearman")
        for name, area in self.areas().items():
            line = f"{name:{width}}  {area.forward:7.4f}  {area.reverse:7.4f}  {area.gain:7.4f}"
            if name in self.stability:
                found = self.stability[name]
                line += f"  {found.canberra.mean():11.3f}  {found.spearman:8.3f}"
            lines.append(line)
        lines += [
            "",
            f"forward, reverse: mean {self.measure} of models of the best and the worst features; "
            "gain: their difference",
            "instability: between folds, 0 the same, 1 as random rankings; spearman: mean over pairs",
        ]
        return "\n".join(lines)

    def plot(self, path: Any = None) -> "Figure":
        """Draw the forward curves, the reverse curves and the stability side by side.

        Parameters
        ----------
        path : path, optional
            Where to save it; .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """
        from ferrank.evaluate.plots import plot_curves

        return plot_curves(self, path)


@suggests
def curves(
    data: Any,
    target: Any = None,
    rankers: Mapping[str, Any] | None = None,
    *,
    target_last: int | None = None,
    labels: Any = None,
    task: str | None = None,
    hierarchy: Any = None,
    hierarchy_decay: float = 0.75,
    drop: Any = (),
    groups: str | None = None,
    model: Any = "knn",
    scoring: Callable[[Array, Array], float] | None = None,
    sizes: str | Any = "paper",
    step: int | None = None,
    folds: int = 10,
    repeats: int = 1,
    n_random: int | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    progress: Progress | None = None,
) -> Curves:
    """Draw the error curves of rankers.

    Parameters
    ----------
    data, target, target_last, labels, task, hierarchy, drop
        As in :func:`ferrank.rank`. The targets are one nominal or numeric one, several numeric ones, or
        labels. Those of a hierarchy that some row has are predicted with the ones above them, each as a class
        of its own.
    groups : str, optional
        Column of groups, such as patients, whose rows are in the same fold. The rankers keep them together,
        too, if they support groups; to others the column is not shown.
    hierarchy_decay : float, default=0.75
        As in :class:`ferrank.ForestRanker`; of the error's weights, while rankers have their own.
    rankers : mapping of str to Ranker, name of a ranker, Ranking, path or importances
        By the names that they will have; where one has several scores, they are called ``name:score``. A
        ranker ranks the training rows of each split. Rankings, paths of saved ones, and importances as an
        array or by feature, are taken as they are.
    model : str or scikit-learn estimator, default="knn"
        What is built of the features: "knn", 10 nearest neighbours, or "svm", a quadratic SVM with C = 0.1,
        both as in Slavkov et al. 2020; or "naive_bayes", "decision_tree" or "random_forest", which the paper
        finds less fit. Features come as :class:`~ferrank.evaluate.rows.Encoder` makes them.
    scoring : callable, optional
        ``scoring(true, predicted)``, an error, of arrays of shape (n_rows,) or (n_rows, n_targets). By
        default the error rate, the relative root mean squared error (mean over targets), or the Hamming loss,
        weighted for hierarchies.
    sizes : {"paper", "linear", "quadratic", "exponential"} or sequence of int, default="paper"
        Numbers of features; see :func:`~ferrank.evaluate.subset_sizes`.
    step : int, optional
        Of the schedules other than "paper".
    folds, repeats : int, default=10, 1
        Of the cross-validation; the paper repeats it 10 times. Classes are stratified.
    n_random : int, optional
        Random rankings in each split, whose mean is the expected curve. By default as many as make 100 in
        all; with 0 there is none.
    random_state : int, default=0
        Seed of all random draws.
    n_jobs : int, optional
        Splits at once, as joblib counts them. Within ``joblib.parallel_config(backend="dask")`` they run on
        dask.
    progress : callable, optional
        Called as ``progress("drawing curves", splits done, splits)``.

    Returns
    -------
    Curves

    Raises
    ------
    DataError, SettingError, ColumnTypeError, ResourceError
        The message names the file, the column or the setting.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b, c = np.random.default_rng(0).normal(size=(3, 60))
    >>> found = curves({"a": a, "b": b, "c": c, "y": a > 0}, "y", {"forest": ferrank.ForestRanker()}, folds=3)
    >>> found.sizes.tolist(), found.forward["forest"].shape
    ([1, 2, 3], (3, 3))
    >>> bool(found.areas()["forest"].gain > 0.1)
    True
    """
    check_processes(n_jobs)
    check_function(progress)
    folds, repeats = (
        count_of(folds, "folds", "folds", least=2),
        count_of(repeats, "repeats", "repetitions", 1),
    )
    random_state = seed_of_splits(random_state)
    if rankers is not None:
        kind_of(
            rankers, Mapping, "rankers", "a mapping of names to rankers, such as {'forest': ForestRanker()}"
        )
    if scoring is not None and not callable(scoring):
        raise SettingError(
            f"scoring: {scoring!r} is no function; use one of true and predicted values, or None"
        )
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
    rows = read_rows(dataset.source(), dataset.roles(), decay_of(hierarchy_decay))
    rows.require_labels("curves")
    if not rankers and n_random == 0:
        raise SettingError("rankers: there are none, and no random rankings; nothing would be drawn")
    work = Work(
        rows,
        _checked(rankers or {}, rows),
        model_for(model, rows),
        scoring or error_of(rows)[1],
        subset_sizes(rows.features.num_columns, sizes, step),
        _random_count(n_random, folds * repeats),
        random_state,
    )
    splits = splits_of(rows, folds, repeats, random_state)
    parallel = joblib.Parallel(n_jobs=n_jobs, return_as="generator")
    done = []
    for outcome in parallel(joblib.delayed(work)(number, *split) for number, split in enumerate(splits)):
        done.append(outcome)
        if progress is not None:
            progress("drawing curves", len(done), len(splits))
    names = list(done[0])

    def stacked(part: int) -> dict[str, Array]:
        return {name: np.stack([outcome[name][part] for outcome in done]) for name in names}

    return Curves(
        getattr(scoring, "__name__", "error") if scoring else error_of(rows)[0],
        rows.features.column_names,
        work.sizes,
        stacked(0),
        stacked(1),
        stacked(2),
        {
            "model": str(work.model),
            "folds": folds,
            "repeats": repeats,
            "n_random": work.n_random,
            "seed": random_state,
            "given": [name for name, one in work.rankers.items() if isinstance(one, np.ndarray)],
        },
    )


def _checked(rankers: Mapping[str, Any], rows: Rows) -> dict[str, Ranker | Array]:
    """Return the rankers, and the importances of given rankings in the order of the features."""
    found: dict[str, Ranker | Array] = {}
    for name, one in rankers.items():
        if isinstance(one, Ranker | type) or (isinstance(one, str) and one in RANKERS):
            found[name] = ranker_of(one)
        else:
            for given in collect({name: one}):
                found[given.name] = given.matched(rows.features.column_names, rows.source)
    if RANDOM in found:
        raise SettingError(f"rankers: '{RANDOM}' stands for the expected curve; call it something else")
    return found


def _random_count(n_random: int | None, n_splits: int) -> int:
    if n_random is None:
        return -(-100 // max(n_splits, 1))
    return count_of(n_random, "n_random", "random rankings")
