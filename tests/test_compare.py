"""Comparisons over data sets, against Demšar's worked example."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import ferrank
from ferrank.evaluate import compare

# AUC of C4.5 with and without m, with cf, with both; Demšar (JMLR 2006), Table 6.
DEMSAR = pd.DataFrame(
    {
        "c45": [
            0.763,
            0.599,
            0.954,
            0.628,
            0.882,
            0.936,
            0.661,
            0.583,
            0.775,
            1.000,
            0.940,
            0.619,
            0.972,
            0.957,
        ],
        "m": [
            0.768,
            0.591,
            0.971,
            0.661,
            0.888,
            0.931,
            0.668,
            0.583,
            0.838,
            1.000,
            0.962,
            0.666,
            0.981,
            0.978,
        ],
        "cf": [
            0.771,
            0.590,
            0.968,
            0.654,
            0.886,
            0.916,
            0.609,
            0.563,
            0.866,
            1.000,
            0.965,
            0.614,
            0.975,
            0.946,
        ],
        "both": [
            0.798,
            0.569,
            0.967,
            0.657,
            0.898,
            0.931,
            0.685,
            0.625,
            0.875,
            1.000,
            0.962,
            0.669,
            0.975,
            0.970,
        ],
    }
)


def test_worked_example_of_demsar():
    found = compare(DEMSAR, control="c45")
    ranks = dict(zip(found.methods, found.mean_rank, strict=True))
    assert ranks == pytest.approx({"c45": 3.143, "m": 2.000, "cf": 2.893, "both": 1.964}, abs=5e-4)
    # The paper ranks without the correction for ties, 9.28; with it the statistic is a little greater.
    assert found.friedman[0] == pytest.approx(stats.friedmanchisquare(*DEMSAR.to_numpy().T).statistic)
    assert found.friedman[0] == pytest.approx(9.28, abs=0.5)
    assert found.critical_difference == pytest.approx(1.25, abs=5e-3)
    assert compare(DEMSAR, alpha=0.1).critical_difference == pytest.approx(1.12, abs=5e-3)
    assert found.control_difference == pytest.approx(1.16, abs=0.01)


def test_wilcoxon_is_that_of_scipy_and_adjusted_for_the_pairs():
    found = compare(DEMSAR)
    frame = found.to_pandas()
    expected = [
        stats.wilcoxon(DEMSAR[a], DEMSAR[b]).pvalue for a, b in itertools.combinations(found.methods, 2)
    ]
    assert frame["wilcoxon"].to_numpy() == pytest.approx(expected)
    order = np.argsort(expected)
    steps = np.array(expected)[order] * 6 / np.arange(1, 7)
    adjusted = np.minimum.accumulate(steps[::-1])[::-1]
    assert frame["wilcoxon_adjusted"].to_numpy()[order] == pytest.approx(np.minimum(adjusted, 1))


def test_lower_is_better_turns_the_order_round():
    up, down = compare(DEMSAR), compare(DEMSAR, lower_is_better=True)
    assert up.methods[0] == "both"
    assert down.mean_rank[down.methods.index("both")] == pytest.approx(5 - up.mean_rank[0])


def test_two_methods_and_equal_methods():
    found = compare({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    assert np.isnan(found.friedman).all()
    assert (found.wilcoxon == 1).all()
    assert compare({"a": [1.0, 2.0], "b": [1.0, 2.0], "c": [1.0, 2.0]}).friedman == (0.0, 1.0)


def test_text_json_and_diagram(tmp_path):
    found = compare(DEMSAR, control="c45")
    assert "14 data sets, higher is better" in repr(found)
    assert found.to_dict()["methods"] == found.methods
    found.plot(tmp_path / "cd.svg")
    assert "critical difference" in repr([t.get_text() for t in found.plot().axes[0].texts])
    assert (tmp_path / "cd.svg").stat().st_size > 1000


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
