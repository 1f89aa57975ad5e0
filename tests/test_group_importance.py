"""Importances of groups: columns permuted together, beside scikit-learn's of single columns."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression

import ferrank as fr
from ferrank.evaluate import group_importance

RNG = np.random.default_rng(0)
A, B, C, NOISE = RNG.normal(size=(4, 600))
ROWS = pd.DataFrame({"a": A, "b": B, "c": C, "a_too": A + 0.1 * NOISE})
Y = 2 * A + B


def halves() -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    return ROWS[:300], Y[:300], ROWS[300:], Y[300:]


def test_groups_of_one_are_those_of_scikit_learn() -> None:
    X, y, X_test, y_test = halves()
    model = LinearRegression().fit(X, y)
    found = group_importance(model, X_test, y_test, {name: [name] for name in X}, n_repeats=200)
    theirs = permutation_importance(model, X_test, y_test, n_repeats=200, random_state=1)
    ours = found.set_index("group")["importance"][list(X)]
    np.testing.assert_allclose(ours, theirs.importances_mean, atol=5 * found["monte_carlo_error"].max())


def test_a_linear_model_loses_what_the_group_says() -> None:
    """Permuted together, ``a`` and its copy cost the squares of what they say: twice its variance."""
    X, y, X_test, y_test = halves()
    model = LinearRegression().fit(X, y)
    said = model.coef_[0] * X_test["a"] + model.coef_[3] * X_test["a_too"]
    wanted = 2 * said.var(ddof=0) / y_test.var()
    found = group_importance(model, X_test, y_test, {"a": ["a", "a_too"]}, n_repeats=300)
    assert abs(found["importance"][0] - wanted) < 5 * found["monte_carlo_error"][0]


def test_a_group_counts_where_its_members_do_not() -> None:
    copies = pd.DataFrame({f"a{n}": A + 0.02 * RNG.normal(size=600) for n in range(8)}).assign(c=C, b=B)
    classes = np.where(A > 0, "p", "n")
    model = RandomForestClassifier(50, random_state=0).fit(copies[:300], classes[:300])
    ranking = fr.rank(copies.assign(y=classes), "y", n_estimators=50, clusters=0.8)
    groups = group_importance(model, copies[300:], classes[300:], ranking.clusters)
    single = group_importance(model, copies[300:], classes[300:], {name: [name] for name in copies})
    assert sorted(groups["features"][0]) == [f"a{n}" for n in range(8)]
    assert groups["importance"][0] > 0.3
    assert single["importance"].max() < 0.15


@pytest.mark.parametrize("kind", ["frame", "array"])
def test_containers_and_seeds_agree(kind: str) -> None:
    X, y, X_test, y_test = halves()
    rows: Any = X_test if kind == "frame" else X_test.to_numpy()
    fitted = X if kind == "frame" else X.to_numpy()
    names = ["a", "a_too"] if kind == "frame" else ["x0", "x3"]
    model = LinearRegression().fit(fitted, y)
    before = rows.copy()
    found = [group_importance(model, rows, y_test, {"g": names}, random_state=seed) for seed in (0, 0, 1)]
    np.testing.assert_array_equal(rows, before)
    assert found[0].equals(found[1])
    assert not found[0].equals(found[2])
    wanted = LinearRegression().fit(X, y)
    other = group_importance(wanted, X_test, y_test, {"g": ["a", "a_too"]})
    np.testing.assert_allclose(found[0]["importance"], other["importance"])


def test_types_of_columns_stay() -> None:
    X = ROWS[["a", "b"]].assign(colour=pd.Categorical(np.where(A > 0, "red", "blue")), n=np.arange(600))
    forest = fr.ForestRanker(n_estimators=20, keep_trees=True).fit(X[:300], Y[:300])
    found = group_importance(forest, X[300:], Y[300:], {"a": ["a", "colour"], "n": ["n"]}, n_repeats=3)
    assert found["group"].tolist() == ["a", "n"]


@pytest.mark.parametrize("groups", [{"g": []}, {"g": ["a", "?"]}])
def test_wrong_groups_are_named(groups: dict[str, list[str]]) -> None:
    X, y, _, _ = halves()
    with pytest.raises(fr.SettingError, match="group 'g'"):
        group_importance(LinearRegression().fit(X, y), X, y, groups)
    with pytest.raises(fr.SettingError, match="n_repeats"):
        group_importance(LinearRegression().fit(X, y), X, y, {"a": ["a"]}, n_repeats=1)
