"""The fifteen measures of multi-label prediction (Petković et al. 2020b §5.4), and their weighted versions.

Scores are shares of neighbours that have a label; a label is predicted where its score is at least a
threshold, by default 1/2 (ϑ of Petković et al. 2023, §3.1). Measures of sets depend on it. Those of the order
of labels and areas under curves do not, except for the one error of CLUS. Two conventions are offered, since
the papers' figures were made by that system, which differs from the textbooks in three measures:

================  ==============================================  =========================================
measure           textbook                                        clus
================  ==============================================  =========================================
one error         the label scored highest is not there           what it says of that label is wrong
coverage          rank of the last label that is there, less 1;   that rank; rows without labels left out
                  0 for rows without labels
ranking loss      pairs with equal scores are wrong               they stand in the order of the labels
================  ==============================================  =========================================

In both: among empty sets precision, recall, F1 and accuracy are 1, a precision without predictions and a
recall without labels are 0 otherwise; a label that all rows have, or none, has AUROC 1/2; one that no row has
has AUPRC 0; every label enters the averages. Areas under precision–recall curves take one threshold for each
score that occurs, interpolate as Davis & Goadrich (2006) do, and go on flat to recall 0.

With label weights (hierarchies: Vens et al. 2008) sets are measured by their labels' weights, and averages
over labels are weighted. Measures of the order of labels, and subset accuracy, know no weights. A sixteenth
measure is then the area under the average precision-recall curve where all labels weigh the same, by which
Petković et al. 2023 (Table 4) judge hierarchies.
"""

from typing import Any, Literal

import numpy as np
from scipy.stats import rankdata

__all__ = ["Conventions", "multilabel_measures", "precision_recall_area"]

Array = np.ndarray[Any, Any]
Conventions = Literal["textbook", "clus"]


def multilabel_measures(
    true: Array,
    scores: Array,
    *,
    label_weights: Array | None = None,
    conventions: Conventions = "textbook",
    threshold: float = 0.5,
) -> tuple[dict[str, float], dict[str, Array]]:
    """Return the fifteen measures, and those of each label.

    Parameters
    ----------
    true : array of bool, shape (n_rows, n_labels)
        Which labels each row has.
    scores : array of float, shape (n_rows, n_labels)
        How sure each label is, in [0, 1].
    label_weights : array of float, shape (n_labels,), optional
        Weights, not negative and not all 0; all 1 by default.
    conventions : {"textbook", "clus"}, default="textbook"
        See the head of the module.
    threshold : float, default=0.5
        A label is predicted where its score is at least this.

    Returns
    -------
    values : dict of str to float
        With label weights a sixteenth, ``unweighted_pooled_auprc``.
    by_label : dict of str to array of shape (n_labels,)
        ``auprc`` and ``auroc``.

    Examples
    --------
    >>> import numpy as np
    >>> true = np.array([[True, False], [False, True]])
    >>> values, by_label = multilabel_measures(true, np.array([[0.8, 0.2], [0.6, 0.4]]))
    >>> values["hamming_loss"], values["one_error"], by_label["auroc"].tolist()
    (0.5, 0.5, [1.0, 1.0])
    """
    weights = np.ones(true.shape[1]) if label_weights is None else np.asarray(label_weights, dtype=float)
    by_label = {"auprc": _auprc(true, scores), "auroc": _auroc(true, scores)}
    values = {
        "average_auprc": float(np.average(by_label["auprc"], weights=weights)),
        "pooled_auprc": precision_recall_area(
            true.ravel(), scores.ravel(), np.broadcast_to(weights, true.shape).ravel()
        ),
        "average_auroc": float(np.average(by_label["auroc"], weights=weights)),
        **_of_sets(true, scores >= threshold, weights),
        **_of_orders(true, scores, conventions, threshold),
    }
    if label_weights is not None:
        values["unweighted_pooled_auprc"] = precision_recall_area(true.ravel(), scores.ravel())
    return values, by_label


def precision_recall_area(true: Array, scores: Array, weights: Array | None = None) -> float:
    """Return the area under the precision–recall curve of one label, or of several pooled.

    Parameters
    ----------
    true : array of bool, shape (n,)
        Whether a row has the label.
    scores : array of float, shape (n,)
        Scores of the label; a higher one makes it more likely.
    weights : array of float, shape (n,), optional
        Weights of the rows; 1 each by default.

    Notes
    -----
    Between two thresholds the false positives grow linearly with the true ones, and precision is followed in
    steps of one true positive at most, with straight lines between these (Davis & Goadrich 2006, §3).

    Examples
    --------
    >>> import numpy as np
    >>> precision_recall_area(np.array([True, False, True]), np.array([0.9, 0.5, 0.1])).__round__(4)
    0.7917
    """
    _, place = np.unique(scores, return_inverse=True)
    weights = np.ones(len(true)) if weights is None else weights
    gains = np.bincount(place, weights=true * weights)[::-1]
    costs = np.bincount(place, weights=~true * weights)[::-1]
    if not gains.sum() > 0:
        return 0.0
    # A line for each threshold at which recall rises, cut into equal steps.
    rises = gains > 0
    at_nothing = not costs[: rises.argmax()].any()
    gains, ends, false = gains[rises], np.cumsum(gains)[rises], np.cumsum(costs)[rises]
    slopes = costs[rises] / gains
    steps = np.maximum(np.ceil(gains), 1).astype(np.int64)
    line = np.repeat(np.arange(len(steps)), steps)
    before = np.arange(len(line)) - np.repeat(np.cumsum(steps) - steps, steps)

    def precision(step: Array) -> Array:
        left = gains[line] * (1 - step / steps[line])
        hits, misses = ends[line] - left, false[line] - slopes[line] * left
        # The first line begins at nothing, where precision is that of its end.
        nothing = at_nothing & (line == 0)
        total = np.where(nothing, ends[0] + false[0], hits + misses)
        return np.where(nothing, ends[0], hits) / total

    widths = gains[line] / steps[line]
    area = (widths * (precision(before) + precision(before + 1)) / 2).sum()
    return float(area / gains.sum())


def _auprc(true: Array, scores: Array) -> Array:
    return np.array([precision_recall_area(*column) for column in zip(true.T, scores.T, strict=True)])


def _auroc(true: Array, scores: Array) -> Array:
    """Return the share of pairs, one row with the label and one without, that the scores put in order."""
    n_true = true.sum(axis=0)
    pairs = n_true * (len(true) - n_true)
    above = (rankdata(scores, axis=0) * true).sum(axis=0) - n_true * (n_true + 1) / 2
    areas = np.full(true.shape[1], 0.5)
    np.divide(above, pairs, out=areas, where=pairs > 0)
    return areas


def _of_sets(true: Array, found: Array, weights: Array) -> dict[str, float]:
    """Compare the sets of labels."""
    both, has, says = (true & found) @ weights, true @ weights, found @ weights
    empty = (has == 0) & (says == 0)

    def mean(part: Array, whole: Array) -> float:
        return float(np.where(empty, 1.0, _share(part, whole)).mean())

    micro_precision, micro_recall = _share(both.sum(), says.sum()), _share(both.sum(), has.sum())
    return {
        "micro_precision": float(micro_precision),
        "micro_recall": float(micro_recall),
        "micro_f1": float(_share(2 * both.sum(), says.sum() + has.sum())),
        "multilabel_precision": mean(both, says),
        "multilabel_recall": mean(both, has),
        "multilabel_f1": mean(2 * both, has + says),
        "multilabel_accuracy": mean(both, has + says - both),
        "hamming_loss": float(((true != found) @ weights).mean() / weights.sum()),
        "subset_accuracy": float((true == found).all(axis=1).mean()),
    }


def _share(part: Any, whole: Any) -> Any:
    """Divide; 0 where there is nothing to divide by."""
    return np.divide(part, whole, out=np.zeros_like(whole, dtype=float), where=np.asarray(whole) > 0)


def _of_orders(true: Array, scores: Array, conventions: Conventions, threshold: float) -> dict[str, float]:
    """Compare the orders of labels."""
    rows = np.arange(len(true))
    top = scores.argmax(axis=1)
    # Labels that are there come last among equals.
    order = np.lexsort((true, -scores), axis=-1)
    there = np.take_along_axis(true, order, axis=1)
    n_true = true.sum(axis=1)
    last = np.where(n_true > 0, true.shape[1] - there[:, ::-1].argmax(axis=1), 0)
    if conventions == "textbook":
        one_error = ~true[rows, top]
        coverage = np.maximum(last - 1, 0)
    else:
        one_error = true[rows, top] != (scores[rows, top] >= threshold)
        coverage = last[n_true > 0]
        there = np.take_along_axis(true, np.argsort(-scores, axis=1, kind="stable"), axis=1)
    wrong = (np.cumsum(~there, axis=1) * there).sum(axis=1)
    return {
        "one_error": float(one_error.mean()),
        "coverage": float(coverage.mean()) if len(coverage) else 0.0,
        "ranking_loss": float(_share(wrong, n_true * (true.shape[1] - n_true)).mean()),
    }
