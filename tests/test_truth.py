"""Agreement with a truth, beside plain implementations."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import jaccard_score, roc_auc_score

from ferrank import DataError
from ferrank.evaluate import roc_area, separability, spearman_to, tanimoto

VALUES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 3.0]), min_size=2, max_size=12)


@given(VALUES, VALUES)
@settings(deadline=None)
def test_areas_and_correlations_are_those_of_scipy_and_scikit_learn(a: list[float], b: list[float]) -> None:
    n = min(len(a), len(b))
    truth, values = np.array(a[:n]), np.array(b[:n])
    relevant = truth > 0
    if len(set(truth)) > 1 and len(set(values)) > 1:
        assert spearman_to(truth, values) == pytest.approx(spearmanr(truth, values).statistic)
    else:
        assert np.isnan(spearman_to(truth, values))
    if relevant.all() or not relevant.any():
        assert np.isnan(roc_area(truth, values))
        assert np.isnan(separability(truth, values))
        return
    assert roc_area(truth, values) == pytest.approx(roc_auc_score(relevant, values))
    gaps = [good - bad for good, bad in product(values[relevant], values[~relevant])]
    assert separability(truth, values) == pytest.approx(min(gaps))


def test_equal_ranks_are_shared_by_the_mean() -> None:
    truth, found = [3.0, 2.0, 0.0, 0.0, 0.0], [0.9, 0.5, 0.1, 0.0, 0.0]
    assert spearman_to(truth, found) == pytest.approx(spearmanr(truth, found).statistic)


@given(st.lists(st.booleans(), min_size=1, max_size=10), st.data())
@settings(deadline=None)
def test_tanimoto_of_sets_is_the_jaccard_index(a: list[bool], data: st.DataObject) -> None:
    b = data.draw(st.lists(st.booleans(), min_size=len(a), max_size=len(a)))
    assert tanimoto(a, b) == pytest.approx(jaccard_score(a, b, zero_division=1.0))


def test_what_cannot_be_compared_is_refused() -> None:
    with pytest.raises(DataError, match="one number for each feature"):
        tanimoto([1.0], [1.0, 2.0])
    with pytest.raises(DataError, match="no finite numbers"):
        roc_area([1.0, 0.0], [np.nan, 1.0])
