"""How well a ranking agrees with true importances, and how alike two sets of importances are.

The area under the ROC curve and the separability ask whether relevant features, those whose true importance
is above 0, stand above the others; Spearman's ρ looks at the whole order. Equal importances share the mean of
their ranks, as in the textbook; the greatest rank, which stability takes, would make many
features without any importance look like an error.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from ferrank.data.parameters import floats_of
from ferrank.errors import DataError

__all__ = ["roc_area", "separability", "spearman_to", "tanimoto"]

Array = np.ndarray[Any, Any]


def spearman_to(truth: Sequence[float] | Array, importances: Sequence[float] | Array) -> float:
    """Return Spearman's ρ of the importances and the true ones, with mean ranks for equal values.

    NaN where either are all equal.

    Parameters
    ----------
    truth : sequence of float of shape (n_features,)
        Relevances; above 0 is relevant.
    importances : sequence of float of shape (n_features,)
        What is judged.

    Examples
    --------
    >>> spearman_to([3.0, 2.0, 0.0, 0.0], [0.9, 0.5, 0.1, 0.2]).__round__(3)
    0.949
    """
    a, b = (rankdata(values) for values in _both(truth, importances))
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return float("nan")
    return float(np.corrcoef(a, b)[0, 1])


def roc_area(truth: Sequence[float] | Array, importances: Sequence[float] | Array) -> float:
    """Return the share of pairs of a relevant and an irrelevant feature that are in order; ties count half.

    NaN where all features are relevant, or none.

    Parameters
    ----------
    truth : sequence of float of shape (n_features,)
        Relevances; above 0 is relevant.
    importances : sequence of float of shape (n_features,)
        What is judged.

    Examples
    --------
    >>> roc_area([1.0, 1.0, 0.0, 0.0], [0.9, 0.2, 0.3, 0.1])
    0.75
    """
    true, values = _both(truth, importances)
    relevant = true > 0
    n = int(relevant.sum())
    if n in (0, len(true)):
        return float("nan")
    above = rankdata(values)[relevant].sum() - n * (n + 1) / 2
    return float(above / (n * (len(true) - n)))


def separability(truth: Sequence[float] | Array, importances: Sequence[float] | Array) -> float:
    """Return the least importance of a relevant feature less the greatest of an irrelevant one.

    Above 0, a threshold parts them (Robnik-Šikonja and Kononenko 2003, §4.1.1). NaN where all features are
    relevant, or none.

    Parameters
    ----------
    truth : sequence of float of shape (n_features,)
        Relevances; above 0 is relevant.
    importances : sequence of float of shape (n_features,)
        What is judged.

    Examples
    --------
    >>> separability([1.0, 1.0, 0.0], [0.5, 0.25, 0.125])
    0.125
    """
    true, values = _both(truth, importances)
    relevant = true > 0
    if relevant.all() or not relevant.any():
        return float("nan")
    return float(values[relevant].min() - values[~relevant].max())


def tanimoto(a: Sequence[float] | Array, b: Sequence[float] | Array) -> float:
    """Return ⟨a, b⟩ / (|a|² + |b|² − ⟨a, b⟩), 1 for equal vectors; of sets it is the Jaccard index.

    Two vectors of zeros are alike.

    Parameters
    ----------
    a, b : sequence of float of shape (n_features,)
        Importances, or 1 for the features of a set and 0 for the others.

    Examples
    --------
    >>> tanimoto([1, 1, 0], [1, 0, 0]), tanimoto([0.5, 0.25], [0.5, 0.25])
    (0.5, 1.0)
    """
    x, y = _both(a, b)
    shared = float(x @ y)
    whole = float(x @ x + y @ y) - shared
    return shared / whole if whole > 0 else 1.0


def _both(a: Sequence[float] | Array, b: Sequence[float] | Array) -> tuple[Array, Array]:
    x, y = floats_of(a, "importances"), floats_of(b, "importances")
    if x.ndim != 1 or x.shape != y.shape or len(x) == 0:
        raise DataError(
            f"importances of shapes {x.shape} and {y.shape}; one number for each feature is needed"
        )
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise DataError("importances: some are no finite numbers; leave these features out")
    return x, y
