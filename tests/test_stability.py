"""How alike rankings are, against the formulas written out."""

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import kendalltau, spearmanr

import ferrank
from ferrank.evaluate import InformationGain, expected_canberra, resample, stability, trees
from ferrank.evaluate.ranks import ranks

DATA = Path(__file__).parent / "data"


def canberra(a: np.ndarray, b: np.ndarray, i: int) -> float:
    """Eq. 2."""
    a, b = np.minimum(a, i + 1), np.minimum(b, i + 1)
    return float((np.abs(a - b) / (a + b)).sum())


def test_identical_rankings_are_stable():
    found = stability(np.tile(np.arange(100.0), (5, 1)))
    assert (found.canberra == 0).all()
    assert (found.jaccard == 1).all()
    assert (found.spearman, found.kendall) == (1, 1)


@pytest.mark.slow
def test_random_rankings_are_as_far_apart_as_expected():
    found = stability(np.random.default_rng(0).random((100, 100)))
    assert found.sizes.tolist() == list(range(1, 101))
    assert np.abs(found.canberra - 1).max() < 0.01
    assert abs(found.spearman) < 0.01


@pytest.mark.parametrize("n", [1, 2, 9, 60])
def test_expectation_is_the_mean_over_all_pairs_of_ranks(n):
    for i in range(1, n + 1):
        rank = np.minimum(np.arange(1, n + 1), i + 1)
        exact = (np.abs(rank[:, None] - rank) / (rank[:, None] + rank)).sum() / n
        assert expected_canberra(n, i) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("n", [100, 1_000, 10_000])
def test_expectation_is_that_of_the_paper_within_a_hundredth(n):
    """Eq. 3 of Slavkov et al. 2020 with its signs mended, from i = 8."""
    for i in (8, 10, n // 2, n):
        approximate = (i + 1) * (2 * n - i) / n * np.log(4) - (2 * i * n + 3 * n - i - i**2) / n
        assert expected_canberra(n, i) == pytest.approx(approximate, rel=0.01)


@given(arrays.arrays(np.int8, st.tuples(st.integers(2, 5), st.integers(1, 12)), elements=st.integers(0, 9)))
def test_equals_the_formulas_pair_by_pair(importances):
    found, rank = stability(importances), ranks(importances)
    n = importances.shape[1]
    pairs = list(combinations(rank, 2))
    for i, value in zip(found.sizes, found.canberra, strict=True):
        expected = expected_canberra(n, int(i))
        distance = np.mean([canberra(a, b, i) for a, b in pairs])
        assert value == pytest.approx(distance / expected if expected > 0 else 0.0, abs=1e-9)
    for i, value in zip(found.sizes, found.jaccard, strict=True):
        index = [
            len(np.intersect1d(np.flatnonzero(a <= i), np.flatnonzero(b <= i))) / len(both)
            if len(both := np.union1d(np.flatnonzero(a <= i), np.flatnonzero(b <= i)))
            else 1.0
            for a, b in pairs
        ]
        assert value == pytest.approx(np.mean(index))


def test_correlations_are_those_of_scipy():
    importances = np.random.default_rng(1).normal(size=(4, 30))
    found = stability(importances)
    pairs = list(combinations(importances, 2))
    assert found.spearman == pytest.approx(np.mean([spearmanr(a, b).statistic for a, b in pairs]))
    assert found.kendall == pytest.approx(np.mean([kendalltau(a, b).statistic for a, b in pairs]))


def test_equal_importances_share_their_mean_rank_in_spearman():
    a, b = [0.5, 0.5, 0.0, 0.0, 0.0], [0.5, 0.4, 0.0, 0.0, 0.1]
    assert stability([a, b]).spearman == pytest.approx(spearmanr(a, b).statistic)


def test_rankings_are_matched_by_the_names_of_features():
    a = ferrank.Ranking.from_importances(["p", "q", "r"], {"s": [3, 2, 1]}, task="regression")
    b = ferrank.Ranking.from_importances(["r", "p", "q"], {"s": [1, 3, 2]}, task="regression")
    assert (stability([a, b]).canberra == 0).all()
    c = ferrank.Ranking.from_importances(["r", "p", "z"], {"s": [1, 3, 2]}, task="regression")
    with pytest.raises(ferrank.DataError, match="number 2 and the first do not rank the same features; 'q'"):
        stability([a, c])


@pytest.mark.parametrize(
    ("rankings", "match"),
    [
        ([], "none were given"),
        ([[1.0, 2.0]], "at least 2 are needed"),
        ([[1.0, 2.0], [1.0]], "one row for each ranking"),
        ([[1.0, np.nan], [1.0, 2.0]], "the importance of 'x1' in number 1 is missing"),
    ],
)
def test_what_is_no_set_of_rankings_is_refused(rankings, match):
    with pytest.raises(ferrank.DataError, match=match):
        stability(rankings)


def test_trees_of_a_forest_make_its_importances(mixed):
    scores = ("genie3", "symbolic", "coverage", "permutation", "mdi_oob")
    forest = ferrank.ForestRanker(n_estimators=8, scores=scores, random_state=3)
    ranking = ferrank.rank(mixed, "y", ranker=forest)
    for score in forest.scores:
        features, importances = trees(mixed, "y", forest, score=score)
        assert features == ranking.features
        assert importances.mean(axis=0) == pytest.approx(ranking.importances(score))
    assert 0 < stability(trees(mixed, "y", forest, score="genie3")[1]).canberra.mean() < 1
    with pytest.raises(
        ferrank.SettingError,
        match="scores: 'relief' is not 'genie3', 'symbolic', 'coverage', 'permutation' or 'mdi_oob'",
    ):
        trees(mixed, "y", forest, score="relief")


@pytest.mark.parametrize("name", ["church_FUN", "eisen_GO-part"])
def test_label_hierarchies_are_resampled(name):
    path = DATA / f"{name}.arff"
    forest = ferrank.ForestRanker(n_estimators=2)
    one, other = resample(path, "class", forest, n=2, share=0.9)
    assert (one.task, one.features) == ("hierarchical", other.features)
    rows = {"x": [1.0, 2.0, 3.0, 4.0] * 5, "y": [["a"], ["b"]] * 10}
    edges = {"a": None, "b": "a"}
    assert resample(rows, "y", forest, hierarchy=edges, n=1)[0].task == "hierarchical"
    with pytest.raises(ferrank.SettingError, match="information_gain ranks for .*, not for hierarchical"):
        ferrank.rank(path, "class", ranker=InformationGain())


def test_resampled_rows_give_rankings_that_differ_a_little(mixed):
    forest = ferrank.ForestRanker(n_estimators=20)
    rankings = resample(mixed, "y", forest, n=4)
    assert [ranking.n_rows for ranking in rankings] == [240] * 4
    assert len({tuple(ranking.importances()) for ranking in rankings}) == 4
    assert stability(rankings).canberra.mean() < 0.8
    assert resample(mixed, "y", forest, n=1, share=0.5)[0].n_rows == 120


def test_plot_and_table():
    found = stability([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], sizes=[1, 3])
    assert found.to_pandas()["size"].tolist() == [1, 3]
    assert len(found.plot().axes) == 2
    with pytest.raises(ferrank.SettingError, match="1 … 3"):
        stability([[3.0, 2.0, 1.0], [1.0, 2.0, 3.0]], sizes=[4])
