"""Aggregated rankings and distances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import beta, kendalltau, rankdata

import ferrank
from ferrank.evaluate import aggregate, rank_distances

IMPORTANCES = arrays.arrays(
    np.int8, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.integers(0, 9)
)


@given(IMPORTANCES)
def test_mean_rank_and_borda_are_what_they_say(importances):
    n = importances.shape[1]
    mean = rankdata(-importances, axis=1).mean(axis=0)
    assert aggregate(importances).importances() == pytest.approx(n - mean)
    borda = aggregate(importances, "borda").importances()
    assert borda == pytest.approx((n - mean) / max(n - 1, 1))
    assert ((borda >= 0) & (borda <= 1)).all()


@given(IMPORTANCES)
def test_robust_aggregation_is_the_least_beta_probability(importances):
    m, n = importances.shape
    rank = np.sort(rankdata(-importances, method="max", axis=1) / n, axis=0)
    rho = np.min([beta.cdf(rank[k], k + 1, m - k) for k in range(m)], axis=0)
    expected = -np.log10(np.minimum(m * rho, 1))
    assert aggregate(importances, "robust").importances() == pytest.approx(expected, abs=1e-9)


def test_robust_aggregation_withstands_bad_rankings():
    rng = np.random.default_rng(0)
    good = np.arange(50.0, 0, -1) + rng.normal(size=(5, 50))
    rankings = np.vstack([good, rng.random((5, 50))])
    assert "x0" in aggregate(rankings, "robust").top(3)


def test_weights_and_standard_errors():
    rankings = [[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]]
    assert aggregate(rankings, weights=[1, 0]).importances().tolist() == [2, 1, 0]
    plain = aggregate(rankings)
    assert plain.importances().tolist() == [1, 1, 1]
    # Mean of 2 and 0: standard deviation √2, error 1.
    assert plain.score().standard_error == pytest.approx([1, 0, 1])
    assert plain.score().rank.tolist() == [1, 1, 1]


def test_distances_of_rankings():
    a, b = [4.0, 3.0, 2.0, 1.0], [4.0, 3.0, 1.0, 2.0]
    assert rank_distances([a, b], "kendall")[0, 1] == pytest.approx(1 - kendalltau(a, b).statistic)
    assert rank_distances([a, b], "footrule")[0, 1] == 0.5
    assert rank_distances([a, b], "canberra")[0, 1] == pytest.approx(2 / 7 / 4)
    assert np.diag(rank_distances([a, b])) == pytest.approx(0)


def test_names_of_features_are_kept():
    rankings = [
        ferrank.Ranking.from_importances(["a", "b"], {"s": [1, 2]}, task="regression"),
        ferrank.Ranking.from_importances(["b", "a"], {"s": [2, 1]}, task="regression"),
    ]
    found = aggregate(rankings)
    assert (found.features, found.top(1), found.task) == (["a", "b"], ["b"], "regression")


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda r: aggregate(r, "median"), "method: 'median' is not one of mean_rank"),
        (lambda r: aggregate(r, "robust", weights=[1, 1]), "weights: robust rank aggregation has none"),
        (lambda r: aggregate(r, weights=[1]), "weights: 1 weights for 2 rankings"),
        (lambda r: aggregate(r, weights=[0, 0]), "not all 0"),
        (lambda r: rank_distances(r, "far"), "distance: 'far' is not one of spearman"),
    ],
)
def test_wrong_settings(call, match):
    with pytest.raises(ferrank.FerrankError, match=match):
        call([[1.0, 2.0], [2.0, 1.0]])
