"""``ferrank.rebate``: scikit-rebate's classes and parameters; its importances, and its users' programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import ferrank as fr
from ferrank import rebate
from ferrank.rebate import SURF, TURF, VLS, MultiSURF, MultiSURFstar, ReliefF, SURFstar

GOLDEN = json.loads((Path(__file__).parent / "data/golden/relief/rebate.json").read_text())
RULES = {"surf": SURF, "surf_star": SURFstar, "multisurf": MultiSURF, "multisurf_star": MultiSURFstar}
CLASSES = [ReliefF, SURF, SURFstar, MultiSURF, MultiSURFstar]


def small(kind: type[ReliefF], **parameters: Any) -> ReliefF:
    return kind(**({"n_neighbors": 10} if kind is ReliefF else {}), **parameters)


# The importances of scikit-rebate.


@pytest.mark.parametrize(
    "case", GOLDEN["relieff"], ids=lambda case: f"{case['target']}-{case['n_neighbors']}"
)
def test_relieff_agrees_with_scikit_rebate(case: dict) -> None:
    X, y = np.array(GOLDEN[case["features"]]), np.array(GOLDEN["targets"][case["target"]])
    found = ReliefF(n_features_to_select=2, n_neighbors=case["n_neighbors"]).fit(X, y)
    expected = np.array(case["importances"])
    if case["n_neighbors"] > len(y):
        # Where hits are too few, its code takes the row itself as one, from which nothing differs.
        difference = np.abs(X[:, None] - X[None]) / np.ptp(X, axis=0)
        difference = difference if case["features"] == "numeric" else difference > 0
        n_hits = (y[:, None] == y).sum(axis=1)[:, None]
        sums = np.array([difference[row, y == y[row]].sum(axis=0) for row in range(len(y))])
        expected -= (sums / (n_hits - 1) - sums / n_hits).mean(axis=0)
    np.testing.assert_allclose(found.feature_importances_, expected, rtol=0, atol=1e-6)
    if case["n_neighbors"] > len(y):
        return
    assert found.top_features_.tolist() == case["top"]
    assert np.array_equal(found.transform(X), X[:, case["top"][:2]])


@pytest.mark.parametrize("table", ["numeric", "nominal"])
@pytest.mark.parametrize("rule", RULES)
def test_rules_agree_with_scikit_rebate_but_for_what_its_code_does_otherwise(table: str, rule: str) -> None:
    """Only MultiSURF is computed alike; `test_neighborhoods.py` explains the others, to 1e-6."""
    X, y = np.array(GOLDEN[table]), np.array(GOLDEN["targets"][table])
    [golden] = [case for case in GOLDEN["cases"] if (case["table"], case["rule"]) == (table, rule)]
    found = RULES[rule]().fit(X, y).feature_importances_
    same = fr.ReliefRanker("classification", neighborhood=rule, categorical_features=[table == "nominal"] * 6)
    np.testing.assert_array_equal(found, same.fit(X, y).feature_importances_)
    if rule == "multisurf":
        np.testing.assert_allclose(found, golden["importances"], rtol=0, atol=1e-6)
    assert np.corrcoef(found, golden["importances"])[0, 1] > 0.97


# Which features and targets are what.


def test_few_values_are_categories() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(11, size=300), rng.integers(10, size=300), rng.normal(size=300)])
    X[:3, 1], y = np.nan, rng.integers(2, size=300)

    def expected(mask: list[bool]) -> list[float]:
        ranker = fr.ReliefRanker("classification", neighborhood="multisurf", categorical_features=mask)
        return ranker.fit(X, y).feature_importances_.tolist()

    def found(**parameters: Any) -> list[float]:
        return MultiSURF(**parameters).fit(X, y).feature_importances_.tolist()

    assert found() == expected([False, True, False])
    assert found(discrete_threshold=11) == expected([True, True, False])
    assert found(categorical_threshold=9) == expected([False, False, False])
    assert found(categorical_features=[0]) == expected([True, False, False])
    for frame in (pd.DataFrame(X, columns=["a", "b", "c"]), pl.DataFrame(X, schema=["a", "b", "c"])):
        fitted = MultiSURF(n_features_to_select=2).fit(frame, y)
        assert fitted.feature_importances_.tolist() == expected([False, True, False])
        names = fitted.get_feature_names_out().tolist()
        assert list(fitted.transform(frame).columns) == names
        assert names == ["abc"[place] for place in fitted.top_features_[:2]]


def test_targets_are_classes_or_numbers() -> None:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 3)), rng.integers(3, size=200)

    def task(y: Any, **parameters: Any) -> str:
        return small(ReliefF, **parameters).fit(X, y).result_.task

    assert task(y) == task(y.astype(str)) == task(np.arange(200).astype(str) > "5") == "classification"
    assert task(np.arange(200)) == task(y, multiclass_threshold=2) == "regression"
    assert task(y, label_type="continuous") == "regression"
    with pytest.raises(fr.DataError, match="all rows have the same value"):
        SURF().fit(X, np.ones(200))
    with pytest.raises(fr.SettingError, match="label_type: 'binary' with 3 distinct values"):
        SURF(label_type="binary").fit(X, y)
    with pytest.raises(fr.SettingError, match="label_type: 'two' is not"):
        SURF(label_type="two").fit(X, y)
    with pytest.raises(fr.SettingError, match="weights: distances do not weigh features"):
        SURF().fit(X, y, weights=np.ones(3))
    with pytest.raises(ValueError, match="n_features_to_select: 10 is not in 1 … 3"):
        SURF().fit_transform(X, y)


def test_absolute_values_order_features() -> None:
    X, y = np.array(GOLDEN["numeric"]), np.array(GOLDEN["targets"]["numeric"])
    plain, absolute = SURFstar().fit(X, y), SURFstar(rank_absolute=True).fit(X, y)
    assert plain.feature_importances_.tolist() == absolute.feature_importances_.tolist()
    worth = np.abs(absolute.feature_importances_)
    assert absolute.top_features_.tolist() == np.argsort(-worth).tolist() != plain.top_features_.tolist()


def test_verbose_says_how_long_it_took(capsys: pytest.CaptureFixture[str]) -> None:
    X, y = np.array(GOLDEN["numeric"]), np.array(GOLDEN["targets"]["numeric"])
    SURF(verbose=True).fit(X, y)
    assert capsys.readouterr().out.startswith("SURF: fitted in ")


# As in scikit-rebate's tests: constructors, and pipelines on epistatic data of each kind.


def test_constructors_store_what_they_get() -> None:
    given = {
        "n_features_to_select": 7, "discrete_threshold": 20, "verbose": True, "n_jobs": 3,
        "weight_final_scores": True, "rank_absolute": True,
    }  # fmt: skip
    for kind in CLASSES:
        own = given | ({"n_neighbors": 500} if kind is ReliefF else {})
        assert own.items() <= clone(kind(**own)).get_params().items()
    assert set(rebate.__all__) == {kind.__name__ for kind in [*CLASSES, TURF, VLS]}


def epistasis(kind: str, n_features: int = 20, n: int = 400) -> tuple[np.ndarray, np.ndarray]:
    """Genotypes of which the first two tell the target together, and neither alone."""
    rng = np.random.default_rng(7)
    X = rng.integers(3, size=(n, n_features)).astype(float)
    y = (X[:, 0] + X[:, 1]) % 3
    if kind == "continuous":
        return X, y + rng.normal(scale=0.3, size=n)
    if kind == "mixed":
        X[:, 5:] = rng.normal(size=(n, n_features - 5))
    if kind == "missing":
        X[rng.random(X.shape) < 0.05] = np.nan
    return X, y if kind == "multiclass" else (y > 0).astype(int)


KINDS = ["binary", "multiclass", "continuous", "mixed", "missing"]


@pytest.mark.parametrize("wrap", [None, TURF], ids=["alone", "turf"])
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("data", KINDS)
def test_finds_the_epistatic_pair(kind: type[ReliefF], data: str, wrap: Any) -> None:
    X, y = epistasis(data)
    selector = small(kind, n_features_to_select=2)
    selector = selector if wrap is None else wrap(selector, num_scores_to_return=5)
    assert sorted(selector.fit(X, y).top_features_[:2].tolist()) == [0, 1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("data", ["binary", "continuous"])
def test_works_in_a_pipeline_under_cross_validation(kind: type[ReliefF], data: str) -> None:
    X, y = epistasis(data)
    forest = (RandomForestRegressor if data == "continuous" else RandomForestClassifier)(20, random_state=0)
    pipeline = make_pipeline(small(kind, n_features_to_select=2), forest)
    assert cross_val_score(pipeline, X, y, cv=3).mean() > 0.7


def test_share_of_neighbors_and_grid_search() -> None:
    X, y = epistasis("binary", 8, 200)
    pipeline = make_pipeline(ReliefF(n_neighbors=0.1), RandomForestClassifier(20, random_state=0))
    search = GridSearchCV(pipeline, {"relieff__n_features_to_select": [1, 2]}, cv=3).fit(X, y)
    assert search.best_params_ == {"relieff__n_features_to_select": 2}
    assert search.best_estimator_[0].result_.settings["n_neighbors"] == [10]


# TURF and VLS.


def test_turf_is_that_of_the_ranker() -> None:
    X, y = epistasis("mixed", 30, 200)
    found = TURF(MultiSURF(n_features_to_select=3), pct=0.3, num_scores_to_return=4).fit(X, y)
    ranker = fr.ReliefRanker(
        "classification", neighborhood="multisurf", turf_step=0.3, turf_features=4,
        categorical_features=range(5),
    )  # fmt: skip
    np.testing.assert_array_equal(found.feature_importances_, ranker.fit(X, y).feature_importances_)
    assert found.transform(X).shape == (200, 3)


def test_turf_by_absolute_values_keeps_signs() -> None:
    X, y = epistasis("binary", 30, 200)
    found = TURF(SURFstar(rank_absolute=True), pct=10, num_scores_to_return=5).fit(X, y)
    worth = np.abs(found.feature_importances_)
    assert (np.diff(worth[found.top_features_]) <= 0).all()
    assert (found.feature_importances_ < 0).any()
    first = SURFstar().fit(X, y).feature_importances_
    out = found.top_features_[20:]
    assert set(out) == set(np.argsort(-np.abs(first), kind="stable")[20:])
    assert (np.sign(found.feature_importances_[out]) == np.sign(first[out])).all()


def test_vls_takes_the_best_score_of_random_subsets() -> None:
    X, y = epistasis("binary", 12, 200)
    vls = VLS(MultiSURF(n_features_to_select=2), num_feature_subset=60, size_feature_subset=4, random_state=0)
    assert sorted(vls.fit(X, y).top_features_[:2].tolist()) == [0, 1]
    assert clone(vls).fit(X, y).feature_importances_.tolist() == vls.feature_importances_.tolist()
    whole = VLS(MultiSURF(), num_feature_subset=1, size_feature_subset=50).fit(X, y)
    assert whole.feature_importances_.tolist() == MultiSURF().fit(X, y).feature_importances_.tolist()
    with pytest.raises(
        fr.SettingError, match="2 subsets of 5 features hold fewer than all 12; use 3 or more"
    ):
        VLS(MultiSURF(), num_feature_subset=2).fit(X, y)
