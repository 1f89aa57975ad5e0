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

The engine computes them (crate ``ferrank-measures``), for scores of permutation as well
(``permutation_measures`` of :class:`ferrank.ForestRanker`).
"""

from typing import Any, Literal, get_args

import numpy as np

from ferrank import _core
from ferrank.data.parameters import choice_of, floats_of, number_of
from ferrank.errors import DataError

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
        How sure each label is, in [0, 1]; not negative.
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

    Raises
    ------
    DataError
        If shapes differ, or a score is negative or not finite.
    SettingError
        For other conventions.

    Examples
    --------
    >>> import numpy as np
    >>> true = np.array([[True, False], [False, True]])
    >>> values, by_label = multilabel_measures(true, np.array([[0.8, 0.2], [0.6, 0.4]]))
    >>> values["hamming_loss"], values["one_error"], by_label["auroc"].tolist()
    (0.5, 0.5, [1.0, 1.0])
    """
    found, auprc, auroc = _core.multilabel_measures(
        _array(true, "true", 2).astype(bool),
        _array(scores, "scores", 2),
        None if label_weights is None else _array(label_weights, "label_weights", 1),
        choice_of(conventions, "conventions", get_args(Conventions)),
        number_of(threshold, "threshold", "[0, 1]", lambda value: 0 <= value <= 1),
    )
    return dict(found), {"auprc": auprc, "auroc": auroc}


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
    return _core.precision_recall_area(
        _array(true, "true", 1).astype(bool),
        _array(scores, "scores", 1),
        None if weights is None else _array(weights, "weights", 1),
    )


def _array(values: Any, name: str, n_dimensions: int) -> Array:
    found = floats_of(values, name)
    if found.ndim != n_dimensions:
        raise DataError(f"{name}: an array of shape {found.shape}; use one of {n_dimensions} dimensions")
    return found
