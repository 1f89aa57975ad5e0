"""How well targets are predicted: the measures of each task.

- ``regression`` and numeric targets: RRMSE (Petković et al. 2020a §4.3: root of the mean squared error
  over the variance on the training rows), RMSE and R².
- ``classification`` and nominal targets: error rate, accuracy and macro-averaged F1 (over the classes that
  occur or are predicted).
- ``multi-label``: the fifteen of :mod:`ferrank.evaluate.multilabel`.

A row whose target is missing does not enter that target's measures.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, r2_score, root_mean_squared_error

from ferrank.errors import SettingError, hint

__all__ = [
    "MEASURES",
    "Measure",
    "check_measure",
    "class_measures",
    "measures_of",
    "number_measures",
    "variance_of",
]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Measure:
    """What a measure is called and which way is better.

    Examples
    --------
    >>> from ferrank.evaluate import MEASURES
    >>> MEASURES["macro_f1"]
    Measure(title='macro F1', higher_is_better=True)
    """

    title: str
    """for tables and plots"""
    higher_is_better: bool


MEASURES: dict[str, Measure] = {
    "rrmse": Measure("RRMSE", higher_is_better=False),
    "rmse": Measure("RMSE", higher_is_better=False),
    "r2": Measure("R²", higher_is_better=True),
    "error_rate": Measure("error rate", higher_is_better=False),
    "accuracy": Measure("accuracy", higher_is_better=True),
    "macro_f1": Measure("macro F1", higher_is_better=True),
    "average_auprc": Measure("average AUPRC", higher_is_better=True),
    "pooled_auprc": Measure("AU(average PRC)", higher_is_better=True),
    "average_auroc": Measure("average AUROC", higher_is_better=True),
    "micro_precision": Measure("micro precision", higher_is_better=True),
    "micro_recall": Measure("micro recall", higher_is_better=True),
    "micro_f1": Measure("micro F1", higher_is_better=True),
    "multilabel_precision": Measure("multi-label precision", higher_is_better=True),
    "multilabel_recall": Measure("multi-label recall", higher_is_better=True),
    "multilabel_f1": Measure("multi-label F1", higher_is_better=True),
    "multilabel_accuracy": Measure("multi-label accuracy", higher_is_better=True),
    "hamming_loss": Measure("Hamming loss", higher_is_better=False),
    "subset_accuracy": Measure("subset accuracy", higher_is_better=True),
    "one_error": Measure("one error", higher_is_better=False),
    "coverage": Measure("coverage", higher_is_better=False),
    "ranking_loss": Measure("ranking loss", higher_is_better=False),
    "unweighted_pooled_auprc": Measure("AU(average PRC), all labels alike", higher_is_better=True),
    "forward_error": Measure("error of the best features", higher_is_better=False),
    "reverse_error": Measure("error of the worst features", higher_is_better=True),
    "spearman": Measure("Spearman's ρ to the truth", higher_is_better=True),
    "roc_area": Measure("ROC area of the relevant features", higher_is_better=True),
    "truth_distance": Measure("distance from the truth", higher_is_better=False),
    "separability": Measure("separability of the relevant features", higher_is_better=True),
    "relevance": Measure("true importance", higher_is_better=True),
    "importance": Measure("importance", higher_is_better=True),
    "relative_squared_error": Measure("relative squared error", higher_is_better=False),
    "n_nodes": Measure("nodes", higher_is_better=False),
    "seconds": Measure("seconds for a ranking", higher_is_better=False),
    "splits_by_relief": Measure("share of splits by Relief", higher_is_better=True),
}
"""Every measure of evaluations and studies, by its name in results, in the order of tables."""


_OF_CLASSES = ("error_rate", "accuracy", "macro_f1")
_OF_NUMBERS = ("rrmse", "rmse", "r2")
_BY_TASK = {
    "regression": _OF_NUMBERS,
    "classification": _OF_CLASSES,
    "multi-target": (*_OF_NUMBERS, *_OF_CLASSES),
}


def measures_of(task: str) -> tuple[str, ...]:
    """Return the measures of predictions for a task; of several targets, some may be classes.

    >>> measures_of("classification")
    ('error_rate', 'accuracy', 'macro_f1')
    """
    names = list(MEASURES)
    of_labels = names[names.index("average_auprc") : names.index("forward_error")]
    return _BY_TASK.get(task, tuple(of_labels))


def check_measure(measure: str, there: Iterable[str], where: str) -> None:
    """Raise an error that starts with ``where`` if ``measure`` is not among those that are there.

    >>> check_measure("acuracy", measures_of("classification"), "measure")
    Traceback (most recent call last):
    ferrank.errors.SettingError: measure: no 'acuracy' here; did you mean accuracy?
    """
    names = list(there)
    if measure in names:
        return
    raise SettingError(f"{where}: no '{measure}' here; {hint(measure, names)}")


def variance_of(values: Array) -> Array:
    """Return the variance of each column of at least one row, exactly 0 where all values are equal.

    Their mean may be another by rounding, and what is left of that is no scale for errors.

    >>> import numpy as np
    >>> float(np.full(3, 0.1).var()) > 0, float(variance_of(np.full(3, 0.1)))
    (True, 0.0)
    """
    return np.where(values.min(axis=0) == values.max(axis=0), 0.0, values.var(axis=0))


def number_measures(true: Array, predicted: Array, variance: float) -> dict[str, float]:
    """Return the measures of one numeric target.

    Parameters
    ----------
    true, predicted : array of float, shape (n_rows,)
        NaN in ``true`` where the target is missing; NaN everywhere if nothing is left.
    variance : float
        Of the target on the training rows; where it is 0, RRMSE is NaN.

    Examples
    --------
    >>> import numpy as np
    >>> number_measures(np.array([1.0, 2.0, np.nan]), np.array([1.0, 3.0, 0.0]), 0.5)["rrmse"]
    1.0
    """
    known = ~np.isnan(true)
    if not known.any():
        return dict.fromkeys(_OF_NUMBERS, float("nan"))
    true, predicted = true[known], predicted[known]
    rmse = float(root_mean_squared_error(true, predicted))
    return {
        "rrmse": rmse / variance**0.5 if variance > 0 else float("nan"),
        "rmse": rmse,
        "r2": float(r2_score(true, predicted)) if len(true) > 1 else float("nan"),
    }


def class_measures(true: Array, predicted: Array) -> dict[str, float]:
    """Return the measures of one nominal target.

    Parameters
    ----------
    true, predicted : array of int, shape (n_rows,)
        Numbers of classes; -1 in ``true`` where the target is missing.

    Examples
    --------
    >>> import numpy as np
    >>> class_measures(np.array([0, 1, 1, -1]), np.array([0, 1, 0, 0]))["accuracy"].__round__(4)
    0.6667
    """
    known = true >= 0
    if not known.any():
        return dict.fromkeys(_OF_CLASSES, float("nan"))
    accuracy = float(accuracy_score(true[known], predicted[known]))
    return {
        "error_rate": 1 - accuracy,
        "accuracy": accuracy,
        "macro_f1": float(f1_score(true[known], predicted[known], average="macro", zero_division=0)),
    }
