"""Comparisons over data sets."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ferrank
from ferrank.evaluate import compare

RESULTS = pd.DataFrame(
    np.random.default_rng(0).normal([0.0, 0.3, 0.6, 0.9], 0.5, (14, 4)), columns=["a", "b", "c", "d"]
)


def test_tests_are_those_of_the_formulas():
    """Demšar 2006: Friedman's χ², Iman and Davenport's F, and the critical values of his Table 5."""
    found = compare(RESULTS, control="a")
    n, k = RESULTS.shape
    rank = RESULTS.rank(axis=1, ascending=False).mean()
    assert dict(zip(found.methods, found.mean_rank, strict=True)) == pytest.approx(dict(rank))
    chi = 12 * n / (k * (k + 1)) * ((rank**2).sum() - k * (k + 1) ** 2 / 4)
    f = (n - 1) * chi / (n * (k - 1) - chi)
    assert found.friedman == pytest.approx((chi, stats.chi2.sf(chi, k - 1)))
    assert found.iman_davenport == pytest.approx((f, stats.f.sf(f, k - 1, (k - 1) * (n - 1))))
    error = np.sqrt(k * (k + 1) / (6 * n))
    assert found.critical_difference / error == pytest.approx(2.569, abs=5e-4)
    assert compare(RESULTS, alpha=0.1).critical_difference / error == pytest.approx(2.291, abs=5e-4)
    assert found.control_difference / error == pytest.approx(2.394, abs=5e-4)


def test_methods_differ_where_their_ranks_do_by_the_critical_difference():
    found = compare(RESULTS, control="a")
    apart = np.abs(found.mean_rank[:, None] - found.mean_rank)
    assert ((found.nemenyi < 0.05) == (apart > found.critical_difference)).all()
    control = found.methods.index("a")
    assert ((found.bonferroni_dunn < 0.05) == (apart[control] > found.control_difference)).all()
    assert (apart > found.critical_difference).any()


def test_wilcoxon_is_that_of_scipy_and_adjusted_for_the_pairs():
    found = compare(RESULTS)
    frame = found.to_pandas()
    expected = [
        stats.wilcoxon(RESULTS[a], RESULTS[b]).pvalue for a, b in itertools.combinations(found.methods, 2)
    ]
    assert frame["wilcoxon"].to_numpy() == pytest.approx(expected)
    order = np.argsort(expected)
    steps = np.array(expected)[order] * 6 / np.arange(1, 7)
    adjusted = np.minimum.accumulate(steps[::-1])[::-1]
    assert frame["wilcoxon_adjusted"].to_numpy()[order] == pytest.approx(np.minimum(adjusted, 1))


@pytest.mark.parametrize("n", [2, 5, 9, 13, 14])
def test_wilcoxon_is_that_of_scipy_with_ties_and_equal_results(n):
    rng = np.random.default_rng(n)
    for _ in range(4):
        a, b = rng.integers(0, 6, (2, n)).astype(float)
        expected = stats.wilcoxon(a, b).pvalue if (a != b).any() else 1
        assert compare({"a": a, "b": b}).wilcoxon[0, 1] == pytest.approx(expected)


def test_lower_is_better_turns_the_order_round():
    up, down = compare(RESULTS), compare(RESULTS, lower_is_better=True)
    assert up.methods[0] == "d"
    assert down.mean_rank[down.methods.index("d")] == pytest.approx(5 - up.mean_rank[0])


def test_two_methods_and_equal_methods():
    found = compare({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    assert np.isnan(found.friedman).all()
    assert (found.wilcoxon == 1).all()
    assert compare({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [1.0, 2.0]}).friedman == (0.0, 1.0)


def test_text_json_and_diagram(tmp_path):
    found = compare(RESULTS, control="a")
    assert "14 data sets, higher is better" in repr(found)
    assert found.to_dict()["methods"] == found.methods
    found.plot(tmp_path / "cd.svg")
    assert "critical difference" in repr([t.get_text() for t in found.plot().axes[0].texts])
    assert (tmp_path / "cd.svg").stat().st_size > 1000


def test_a_text_lists_the_pairs_of_the_best_of_many_methods():
    results = {f"m{number:02}": np.arange(6.0) + number for number in range(30)}
    text = compare(results, lower_is_better=True).to_text()
    assert "of the 20 methods with the best mean ranks:" in text
    assert "m00 – m19" in text
    assert "m00 – m20" not in text


@pytest.mark.parametrize(
    ("results", "settings", "match"),
    [
        ({"a": [1.0, 2.0]}, {}, "results: 1 columns of numbers; at least 2 methods"),
        ({"a": [1.0], "b": [1.0]}, {}, "results: 1 rows; methods are compared on at least 2 data sets"),
        ({"a": [1.0, None], "b": [1.0, 2.0]}, {}, "results: 'a' has no result in row 2"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"control": "c"}, "control: no method 'c'; there are a, b"),
        ({"a": [1.0, 2.0], "b": [1.0, 2.0]}, {"alpha": 1.5}, "alpha: 1.5 is not in"),
    ],
)
def test_what_cannot_be_compared_is_refused(results, settings, match):
    with pytest.raises(ferrank.FerrankError, match=match):
        compare(results, **settings)
