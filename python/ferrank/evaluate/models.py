"""The models that error curves are drawn with, and the errors of their predictions.

Not every learner will do (Slavkov et al. 2020, "Analysis of different learning methods"): naïve Bayes sees no
interactions, and trees choose features themselves. The paper finds nearest neighbours and a quadratic support
vector machine fit for both curves.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import hamming_loss, zero_one_loss
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputRegressor
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from ferrank.errors import SettingError
from ferrank.evaluate.measures import variance_of
from ferrank.evaluate.rows import Rows

__all__ = ["MODELS", "error_of", "model_for"]

Array = np.ndarray[Any, Any]

MODELS = ("knn", "svm", "naive_bayes", "decision_tree", "random_forest")
"""Models with a name."""
_NEIGHBORS = 10


def model_for(model: Any, rows: Rows) -> Any:
    """Return the model to build for the targets of ``rows``.

    The SVM has the paper's settings: kernel (x·z)², C = 0.1. (Its ε = 10⁻¹² is Weka's bound on rounding
    errors.) So has the random forest, 100 trees with the logarithm of the number of features as candidates;
    the decision tree is CART where the paper has C4.5.
    """
    if rows.task == "unsupervised":
        raise SettingError("task: curves are of models of a target, the task unsupervised has none")
    nominal = rows.nominal_targets()
    if not nominal:
        raise SettingError(f"target: no row of {rows.source} has a label; there is nothing to predict")
    if any(nominal) != all(nominal):
        raise SettingError("target: curves are for targets of one kind; these are numbers and categories")
    if rows.task == "multi-target" and all(nominal):
        raise SettingError("target: curves are for one class target, for labels, or for numbers")
    classes = all(nominal)
    if not isinstance(model, str):
        if not hasattr(model, "fit") or not hasattr(model, "predict"):
            raise SettingError(
                f"model: {model!r} is neither one of {', '.join(MODELS)} nor a scikit-learn model"
            )
        if (classes and is_regressor(model)) or (not classes and is_classifier(model)):
            raise SettingError(f"model: {model} does not predict {'classes' if classes else 'numbers'}")
        return model
    if model == "knn":
        # Half of the rows, at least, are training rows of a split.
        n_neighbors = max(min(_NEIGHBORS, rows.n_rows // 2), 1)
        neighbors = KNeighborsClassifier if classes else KNeighborsRegressor
        return neighbors(n_neighbors, algorithm="brute")
    if model == "svm":
        settings: dict[str, Any] = {"kernel": "poly", "degree": 2, "gamma": 1.0, "coef0": 0.0, "C": 0.1}
        one = SVC(**settings) if classes else SVR(**settings)
        if len(nominal) == 1:
            return one
        # Labels that all training rows have, or none, are predicted for all, or none.
        return OneVsRestClassifier(one) if classes else MultiOutputRegressor(one)
    if model == "naive_bayes":
        if not classes or len(nominal) > 1:
            raise SettingError("model: naive_bayes is for one class target; use another model")
        return GaussianNB()
    if model == "decision_tree":
        return (DecisionTreeClassifier if classes else DecisionTreeRegressor)(random_state=0)
    if model == "random_forest":
        forest = RandomForestClassifier if classes else RandomForestRegressor
        return forest(100, max_features="log2", random_state=0)
    raise SettingError(
        f"model: unknown model '{model}'; use one of {', '.join(MODELS)}, or a scikit-learn model"
    )


def error_of(rows: Rows) -> tuple[str, Callable[[Array, Array], float]]:
    """Return the usual error of the targets of ``rows``: its name, and a function of truth and prediction."""
    if rows.task == "classification":
        return "error rate", zero_one_loss
    if rows.task == "multi-label":
        return "Hamming loss", hamming_loss
    if rows.labels is not None:
        _, shares = rows.labels.occurring()
        return "weighted Hamming loss", partial(_weighted_hamming, shares=shares)
    return "RRMSE", _rrmse


def _weighted_hamming(true: Array, predicted: Array, shares: Array) -> float:
    """Return the share of the weight of labels that is predicted wrongly, a mean over rows."""
    wrong = true.reshape(len(true), -1) != predicted.reshape(len(true), -1)
    return float((wrong @ shares).mean())


def _rrmse(true: Array, predicted: Array) -> float:
    """Return the root of squared error over variance, a mean over targets; 1 where a target is constant."""
    true, predicted = true.reshape(len(true), -1), predicted.reshape(len(true), -1)
    error = ((true - predicted) ** 2).mean(axis=0)
    variance = variance_of(true)
    ratio = np.divide(error, variance, out=np.ones_like(error), where=variance > 0)
    return float(np.sqrt(ratio).mean())
