"""The estimator."""

import json
import warnings
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LinearRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline

from ferrank import (
    ColumnTypeError,
    DataError,
    ForestRanker,
    IntegerTargetWarning,
    SettingError,
    grow_tree,
)
from ferrank.data.tables import as_matrix
from ferrank.resources import threads_of

Numbers = tuple[np.ndarray, np.ndarray]


def small(**settings: Any) -> ForestRanker:
    return ForestRanker(**{"n_estimators": 10, **settings})


def test_finds_the_relevant_features(numbers: Numbers) -> None:
    forest = small(scores=("genie3", "symbolic", "coverage", "permutation", "mdi_oob")).fit(*numbers)
    for score in forest.scores:
        assert set(forest.result_.top(2, score)) == {"x1", "x4"}
    np.testing.assert_array_equal(forest.feature_importances_, forest.result_.importances("genie3"))
    assert forest.result_.task == "regression"


@pytest.mark.parametrize(("keep", "kept"), [(None, 3), (2, 2), (0.5, 3), (1.0, 6), (0.01, 1)])
def test_number_of_selected_features(numbers: Numbers, keep: Any, kept: int) -> None:
    X, y = numbers
    forest = small(n_features_to_select=keep).fit(X, y)
    assert forest.transform(X).shape == (150, kept)
    assert forest.get_support().sum() == kept
    assert {"x1", "x4"} <= set(forest.get_feature_names_out()) or kept == 1
    assert forest.inverse_transform(forest.transform(X)).shape == X.shape


@pytest.mark.parametrize("keep", [0, 7, 1.5, 0.0, "half"])
def test_wrong_number_of_selected_features(numbers: Numbers, keep: Any) -> None:
    with pytest.raises(SettingError, match="n_features_to_select"):
        small(n_features_to_select=keep).fit(*numbers)


def test_keeps_frames_and_their_names(numbers: Numbers) -> None:
    X, y = numbers
    frame = pd.DataFrame(X, columns=list("abcdef"))
    forest = small(n_features_to_select=2).set_output(transform="pandas").fit(frame, y)
    assert list(forest.feature_names_in_) == list("abcdef")
    assert list(forest.transform(frame).columns) == ["b", "e"]
    polars = small(n_features_to_select=2).set_output(transform="polars").fit(pl.DataFrame(frame), y)
    assert polars.transform(pl.DataFrame(frame)).columns == ["b", "e"]


def test_a_frame_that_is_one_array_is_read_as_such(numbers: Numbers) -> None:
    X, y = numbers
    X = X.copy()
    X[3, 1] = np.nan
    whole = pd.DataFrame(X, columns=list("abcdef"))
    apart = whole[["a"]].copy()
    for name in "bcdef":
        apart[name] = whole[name]
    read = as_matrix(whole)
    assert read is not None
    assert (read[0], np.shares_memory(read[1], whole.to_numpy())) == (list("abcdef"), True)
    # What would be copied, or is no number, is read column by column.
    mixed, twice = whole.assign(a=1), whole.set_axis(list("abcdee"), axis=1)
    for frame in (apart, mixed, twice, whole.set_axis(range(6), axis=1), whole.astype("Float64"), whole[:0]):
        assert as_matrix(frame) is None
    expected = small().fit(X, y).feature_importances_
    for frame in (whole, apart):
        forest = small().fit(frame, y)
        np.testing.assert_array_equal(forest.feature_importances_, expected)
        assert list(forest.feature_names_in_) == list("abcdef")


def test_nominal_features_of_a_frame(mixed: pa.Table) -> None:
    frame = mixed.to_pandas()
    forest = small(n_features_to_select=2).fit(frame.drop(columns="y"), frame["y"])
    assert set(forest.get_feature_names_out()) == {"a", "colour"}
    assert forest.result_.targets == ["y"]


def test_nominal_features_of_an_array(mixed: pa.Table) -> None:
    frame = mixed.to_pandas()
    by_frame = small().fit(frame.drop(columns="y"), frame["y"])
    by_array = small().fit(frame.drop(columns="y").to_numpy(dtype=object), frame["y"].to_numpy())
    np.testing.assert_array_equal(by_array.feature_importances_, by_frame.feature_importances_)


@pytest.mark.parametrize(
    ("y", "task"),
    [
        (np.array(["no", "yes"] * 75), "classification"),
        (np.array([False, True] * 75), "classification"),
        (pd.Series(["no", "yes"] * 75, dtype="category"), "classification"),
        (pl.Series(["no", "yes"] * 75), "classification"),
        (pa.array(["no", "yes"] * 75), "classification"),
        (pa.chunked_array([["no", "yes"] * 70, ["no"] * 10]), "classification"),
        (list(np.linspace(0, 1, 150)), "regression"),
        (np.linspace(0, 1, 300).reshape(150, 2), "multi-target"),
        (pd.DataFrame({"u": ["no", "yes"] * 75, "v": np.arange(150.0)}), "multi-target"),
        (np.arange(300).reshape(150, 2) % 3 == 0, "multi-label"),
    ],
)
def test_kinds_of_the_targets_tell_the_task(numbers: Numbers, y: Any, task: str) -> None:
    assert small().fit(numbers[0], y).result_.task == task
    assert small().fit(pd.DataFrame(numbers[0]), y).result_.task == task


def test_few_integers_are_warned_of(numbers: Numbers) -> None:
    X, y = numbers[0], np.arange(150) % 3
    with pytest.warns(IntegerTargetWarning, match="3 distinct integers.*task='regression'"):
        assert small().fit(X, y).result_.task == "classification"
    assert small().fit(X, y % 2).result_.task == "classification"
    assert small(task="classification").fit(X, y).result_.task == "classification"
    assert small(task="regression").fit(X, y).result_.task == "regression"
    assert small().fit(X, np.arange(150)).result_.task == "regression"


def test_integers_as_classes_are_strings_as_classes(numbers: Numbers) -> None:
    X, y = numbers[0], np.arange(150) % 3
    integers = small(task="classification").fit(X, y)
    strings = small().fit(X, y.astype(str))
    np.testing.assert_array_equal(integers.feature_importances_, strings.feature_importances_)


def test_names_of_targets_and_features_may_meet(numbers: Numbers) -> None:
    X, y = numbers
    frame = pd.DataFrame(X, columns=["y", "sample_weight", "c", "d", "e", "f"])
    forest = small().fit(frame, y, sample_weight=np.ones(150))
    assert forest.result_.features == list(frame.columns)
    assert forest.result_.targets == ["y_"]


def test_equal_weights_change_nothing(numbers: Numbers) -> None:
    plain = small().fit(*numbers).feature_importances_
    weighted = small().fit(*numbers, sample_weight=np.ones(150)).feature_importances_
    np.testing.assert_allclose(weighted, plain, rtol=1e-12)


@pytest.mark.parametrize("weight", [1e-14, 1e-20, 1e-300])
@pytest.mark.parametrize("target", ["a number", "two numbers", "2 classes", "3 classes", "12 classes"])
def test_rows_of_negligible_weight_count_as_none(target: str, weight: float) -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 2))
    number = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=200)
    y: Any = number
    if target == "two numbers":
        y = np.column_stack([number, rng.normal(size=200)])
    elif "classes" in target:
        n = int(target.split()[0])
        y = np.digitize(number, np.quantile(number, np.arange(1, n) / n)).astype(str)

    def importances(negligible: float) -> Any:
        weights = np.where(np.arange(200) % 3 == 0, negligible, 1.0)
        tree = ForestRanker(
            ensemble="bagging", bootstrap=False, n_estimators=1, min_samples_leaf=1, standard_errors=False
        )
        return tree.fit(X, y, sample_weight=weights).feature_importances_

    # In a node of two rows, tests of both features tie but for what the other rows add.
    np.testing.assert_allclose(importances(weight), importances(0.0), rtol=1e-3)


def test_missing_values_are_nan_or_null(numbers: Numbers) -> None:
    X, y = numbers[0].copy(), numbers[1]
    X[::7, 1] = np.nan
    table = pa.table({f"x{i}": pa.array(column, from_pandas=True) for i, column in enumerate(X.T)})
    assert table["x1"].null_count > 0
    np.testing.assert_array_equal(
        small().fit(X, y).feature_importances_, small().fit(table, y).feature_importances_
    )


def telling_gaps(seed: int, *, words: bool) -> tuple[pa.Table, list[str]]:
    """Return 500 rows of 50 features and a class, which only the missing values of four features tell.

    Of these, 30 % of the values are missing in one class and 10 % in the other, of the other features 20 %.
    """
    rng = np.random.default_rng(seed)
    one = rng.random(500) < 0.5
    columns: dict[str, Any] = {}
    for feature in range(50):
        share = np.where(one, 0.3, 0.1) if feature < 4 else 0.2
        values = rng.integers(0, 6, 500).astype(str) if words else rng.normal(size=500)
        columns[f"x{feature}"] = pa.array(values, mask=rng.random(500) < share)
    return pa.table(columns), [f"c{int(value)}" for value in one]


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("ensemble", ["random_forest", "bagging", "extra_trees"])
def test_missing_values_that_tell_the_class_are_found(ensemble: Any, words: bool) -> None:
    found: dict[str, list[float]] = {"informative": [], "ignore": []}
    for seed in range(3):
        X, y = telling_gaps(seed, words=words)
        relevant = np.arange(50) < 4
        for missing, areas in found.items():
            forest = ForestRanker(ensemble=ensemble, missing=missing, n_jobs=2).fit(X, y)  # type: ignore[arg-type]
            areas.append(float(roc_auc_score(relevant, forest.feature_importances_)))
    assert np.mean(found["informative"]) >= 0.995
    assert np.mean(found["ignore"]) <= 0.9


def test_a_feature_of_which_only_gaps_vary_is_not_constant() -> None:
    rng = np.random.default_rng(0)
    gone = rng.random(300) < 0.3
    X = pa.table({"noise": rng.normal(size=300), "flat": pa.array(np.ones(300), mask=gone)})
    y = gone + rng.normal(0, 0.1, 300)
    for ensemble in ("random_forest", "extra_trees"):
        settings: dict[str, Any] = {"ensemble": ensemble, "max_features": "all"}
        assert small(**settings).fit(X, y).feature_importances_[1] > 0.8
        assert small(missing="ignore", **settings).fit(X, y).feature_importances_[1] == 0.0
    tree = grow_tree(X.append_column("y", pa.array(y)), "y", bootstrap=False, max_features="all", max_depth=1)
    root = tree.to_pylist()[0]
    assert (root["feature"], root["cut"], root["missing_left"]) == ("flat", np.inf, False)


def test_seeds(numbers: Numbers) -> None:
    def importances(seed: Any) -> np.ndarray:
        return small(random_state=seed).fit(*numbers).feature_importances_

    np.testing.assert_array_equal(importances(1), importances(1))
    np.testing.assert_array_equal(
        importances(np.random.RandomState(1)), importances(np.random.RandomState(1))
    )
    np.testing.assert_array_equal(
        importances(np.random.default_rng(1)), importances(np.random.default_rng(1))
    )
    assert not np.array_equal(importances(1), importances(2))
    assert not np.array_equal(importances(None), importances(None))


def test_settings_may_be_numpy_numbers(numbers: Numbers) -> None:
    forest = small(n_estimators=np.int64(4), max_features=np.float32(0.5), random_state=np.int32(1)).fit(
        *numbers
    )
    assert json.loads(json.dumps(forest.result_.to_dict())) == forest.result_.to_dict()
    assert forest.result_.settings["n_estimators"] == 4


def test_input_is_left_as_it_was(numbers: Numbers) -> None:
    X, y = (array.copy() for array in numbers)
    small().fit(X, y)
    np.testing.assert_array_equal(X, numbers[0])
    np.testing.assert_array_equal(y, numbers[1])


def test_works_in_pipelines_and_clones(numbers: Numbers) -> None:
    X, y = numbers
    model = make_pipeline(clone(small(n_features_to_select=2)), LinearRegression()).fit(X, y)
    assert model.score(X, y) > 0.999
    above = SelectFromModel(small(max_features="all"), threshold="mean").fit(X, y)
    assert set(above.get_support(indices=True)) == {1, 4}


def test_by_target(numbers: Numbers) -> None:
    X = numbers[0]
    forest = small(by_target=True).fit(X, X[:, [0, 5]])
    parts = forest.result_.by_target()
    assert parts.shape == (6, 2)
    np.testing.assert_allclose(parts.sum(axis=1), forest.feature_importances_, rtol=1e-9)
    assert list(parts.argmax(axis=0)) == [0, 5]
    with pytest.raises(SettingError, match="by_target"):
        small().fit(X, X[:, [0, 5]]).result_.by_target()


def test_target_weights(numbers: Numbers) -> None:
    X = numbers[0]
    forest = small(target_weights=[1, 0], max_features="all").fit(X, X[:, [0, 5]])
    assert forest.result_.top(1) == ["x0"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_estimators": 0}, "n_estimators: 0"),
        ({"n_estimators": True}, "n_estimators: True is not a whole number"),
        ({"n_estimators": "ten"}, "n_estimators: 'ten' is not a whole number of at least 0"),
        ({"n_estimators": -1}, "n_estimators: -1 is not a whole number of at least 0"),
        ({"max_features": "half"}, "max_features: 'half' is not .*sqrt"),
        ({"max_features": 7}, "max_features: 7 is not in 1 … 6"),
        ({"max_features": 1.5}, "max_features: 1.5 is neither"),
        ({"max_samples": "all"}, r"max_samples: 'all' is not a number of rows, a share in \(0, 1\] or None"),
        ({"max_depth": 2.5}, "max_depth: 2.5 is not a whole number of at least 0 or None"),
        ({"target_weights": [1, "a"]}, "target_weights: 'a' is not a number"),
        ({"target_weights": [object()]}, "target_weights: <object .* is not a number, a string"),
        ({"bootstrap": "yes"}, "bootstrap: 'yes' is not True, False or None"),
        ({"max_bins": 1}, "max_bins: 1 is not in"),
        ({"scores": ()}, "scores: none"),
        (
            {"scores": ("gini",)},
            "scores: 'gini' is not 'genie3', 'symbolic', 'coverage', 'permutation' or 'mdi_oob'",
        ),
        ({"scores": 3}, "scores: 3 is not a list"),
        ({"scores": ("permutation",), "bootstrap": False}, "permutation needs"),
        ({"decay": 2.0, "scores": ("symbolic",)}, "decay: 2 is not in"),
        ({"ensemble": 3}, "ensemble: 3 is not 'random_forest', 'bagging' or 'extra_trees'"),
        ({"ensemble": "boosting"}, "ensemble: 'boosting' is not 'random_forest', 'bagging' or 'extra_trees'"),
        ({"unlabelled": "drop"}, "unlabelled: 'drop' is not 'error', 'ignore' or 'use'"),
        ({"task": "clustering"}, "unknown task 'clustering'"),
        ({"random_state": -1}, r"random_state: -1 is not a whole number in 0 … 2\^64"),
        ({"random_state": 2**64}, "random_state: 18446744073709551616 is not a whole"),
        ({"n_jobs": 0}, "n_jobs: 0"),
        ({"target_weights": [1, 2]}, "2 weights for 1 target"),
        ({"feature_weights": [1, 2]}, "feature_weights: the impurity has no features; set supervision"),
        ({"feature_weights": [1, 2], "supervision": 0.5}, "feature_weights: 2 weights for 6 features"),
        ({"feature_weights": [0] * 6, "supervision": 0.5}, "feature_weights: weights must be"),
    ],
)
def test_wrong_settings_are_named(numbers: Numbers, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        small(**settings).fit(*numbers)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.arange(10.0), ValueError, "values for [0-9]+ rows; give one for each"),
        (np.zeros((150, 2, 2)), DataError, r"shape \(150, 2, 2\)"),
        (np.array([1, "a", None] * 50, dtype=object), ColumnTypeError, "y: .*use one type"),
        (np.arange(150).astype("datetime64[s]"), ColumnTypeError, "y: an array of datetime64"),
        (np.where(np.arange(150) == 3, np.inf, 1.0), DataError, "X: target 'y': the value inf was found"),
    ],
)
def test_wrong_targets_are_named(numbers: Numbers, y: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        small().fit(numbers[0], y)


def _threads_within(_: int) -> int:
    return threads_of(None)


@pytest.mark.slow
def test_threads() -> None:
    assert threads_of(3) == 3
    assert threads_of(-1) == threads_of(None) == joblib.cpu_count()
    assert joblib.Parallel(n_jobs=2)(joblib.delayed(_threads_within)(i) for i in range(2)) == [1, 1]


@pytest.mark.parametrize(("n_distinct", "warns"), [(20, True), (21, False)])
def test_the_warning_of_few_integers_ends_after_twenty(n_distinct: int, warns: bool) -> None:
    y = np.arange(84) % n_distinct
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        small().fit(np.arange(84.0)[:, None], y)
    assert any(issubclass(one.category, IntegerTargetWarning) for one in found) == warns


@pytest.mark.parametrize(("share", "kept"), [(0.5, 2), (0.39, 1), (0.59, 2), (0.99, 4), (1.0, 5), (0.01, 1)])
def test_a_share_of_features_is_rounded_down(share: float, kept: int) -> None:
    X = np.random.default_rng(0).normal(size=(40, 5))
    assert small(n_features_to_select=share).fit(X, X[:, 0]).get_support().sum() == kept


def test_decays_from_one_run(numbers: Numbers) -> None:
    settings: dict[str, Any] = {"scores": ("symbolic", "genie3"), "random_state": 1}
    together = small(decay=[0.25, 1.0], **settings).fit(*numbers).result_
    assert list(together.scores) == ["symbolic_decay0.25", "symbolic_decay1", "genie3"]
    for decay in (0.25, 1.0):
        alone = small(decay=decay, **settings).fit(*numbers).result_
        assert list(alone.scores) == ["symbolic", "genie3"]
        for ours, theirs in ((f"symbolic_decay{decay:g}", "symbolic"), ("genie3", "genie3")):
            for what in ("importance", "standard_error", "monte_carlo_error", "rank"):
                np.testing.assert_array_equal(
                    getattr(together.score(ours), what), getattr(alone.score(theirs), what)
                )


@pytest.mark.parametrize(
    ("decay", "message"),
    [([], "decay: none given"), ([0.5, 0.5], "decay: 0.5 is given twice"), ([0.5, 0], "decay: 0 ")],
)
def test_decays_that_will_not_do(numbers: Numbers, decay: list[float], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        small(scores=("symbolic",), decay=decay).fit(*numbers)
