"""`rank` as users of scikit-learn call it, with the targets beside the features, and its presets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ferrank as fr

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = X[:, 2] + 0.3 * RNG.normal(size=120)
FRAME = pd.DataFrame(X, columns=list("abcd"))


@pytest.mark.parametrize(
    "features", [X, FRAME, pl.DataFrame(FRAME), pa.table(dict(FRAME))], ids=lambda it: type(it).__name__
)
@pytest.mark.parametrize(
    "targets", [Y, Y.tolist(), pd.Series(Y), Y[:, None]], ids=["array", "list", "series", "column"]
)
def test_values_of_the_target_are_as_for_fit(features: Any, targets: Any) -> None:
    found = fr.rank(features, targets, n_estimators=10)
    expected = fr.ForestRanker(n_estimators=10).fit(X, Y)
    np.testing.assert_array_equal(found.importances(), expected.feature_importances_)
    assert len(found.features) == 4


def test_sparse_columns_of_pandas_are_as_dense_ones() -> None:
    frame = FRAME.where(FRAME > 0.5, 0.0)
    expected = fr.rank(frame, Y, n_estimators=10).importances()
    for sparse in (frame.astype(pd.SparseDtype("float", 0.0)), frame.astype({"b": "Sparse[float]"})):
        np.testing.assert_array_equal(fr.rank(sparse, Y, n_estimators=10).importances(), expected)


def test_targets_are_named_by_all_levels_of_their_columns() -> None:
    frame = pd.concat({"m": FRAME, "n": FRAME + 1}, axis=1)
    expected = fr.rank(FRAME.add_prefix("m").join(FRAME.add_prefix("n") + 1), "na", n_estimators=10)
    for target in (("n", "a"), [("n", "a")], "('n', 'a')"):
        found = fr.rank(frame, target, n_estimators=10)
        assert found.targets == ["('n', 'a')"]
        np.testing.assert_array_equal(found.importances(), expected.importances())
    assert fr.rank(frame, [("m", "a"), ("n", "a")], n_estimators=2).targets == ["('m', 'a')", "('n', 'a')"]
    with pytest.raises(fr.DataError, match="no column 'm' for the target.*'\\('m', 'a'\\)'"):
        fr.rank(frame, ("m", "z"))


def test_groups_weights_and_tasks_come_as_values_too() -> None:
    groups = np.repeat(np.arange(30), 4)
    found = fr.rank(X, Y > 0, groups=groups, n_estimators=10)
    assert found.task == "classification"
    expected = fr.ForestRanker(n_estimators=10).fit(X, Y > 0, groups=groups)
    np.testing.assert_array_equal(found.importances(), expected.feature_importances_)
    weights = np.arange(1, 121)
    found = fr.rank(X, Y, sample_weight=weights)
    np.testing.assert_array_equal(
        found.importances(), fr.ForestRanker().fit(X, Y, weights).feature_importances_
    )
    assert fr.rank(X, np.arange(120) % 3, task="classification", n_estimators=5).task == "classification"


def test_several_targets_and_the_joint_ranker() -> None:
    assert fr.rank(X, X[:, :2]).top(2) in (["x0", "x1"], ["x1", "x0"])
    assert fr.rank(X, Y).relevant() == ["x2"]


def test_names_in_an_index_are_names() -> None:
    assert fr.rank(FRAME, FRAME.columns[:2], n_estimators=5).targets == ["a", "b"]
    assert fr.rank(FRAME, np.array(["a", "b"]), n_estimators=5).targets == ["a", "b"]


def test_strings_for_all_rows_are_classes() -> None:
    words = np.where(Y > 0, "yes", "no")
    assert fr.rank(FRAME, words, n_estimators=5).task == "classification"


@pytest.mark.parametrize("given", [{"target_last": 1}, {"labels": "labels.xml"}])
def test_one_target_is_enough(given: dict[str, Any]) -> None:
    with pytest.raises(fr.SettingError, match="target: give one of target, target_last and labels"):
        fr.rank(FRAME, Y, **given)


def test_values_go_with_data_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    FRAME.to_csv(path, index=False)
    for data in (path, str(path), [path, path]):
        with pytest.raises(fr.SettingError, match="target: values go with data in memory"):
            fr.rank(data, Y)
    with pytest.raises(fr.SettingError, match="groups: values go with data in memory"):
        fr.rank(path, "a", groups=Y)


def test_columns_are_left_out_and_runs_resumed_with_targets_beside(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"ranker": "forest", "n_estimators": 10}
    expected = fr.rank(FRAME.assign(y=Y), "y", drop=["a"], **settings)
    found = fr.rank(FRAME, pd.Series(Y, name="y"), drop=["a"], resume=tmp_path / "run", **settings)
    assert found.features == ["b", "c", "d"]
    np.testing.assert_array_equal(found.importances(), expected.importances())
    assert (tmp_path / "run").exists()


def test_data_sets_and_checks_take_values() -> None:
    expected = fr.rank(FRAME, Y, n_estimators=10)
    for features in (FRAME, {name: FRAME[name] for name in FRAME}, FRAME.to_dict("records")):
        data = fr.Dataset(features, Y)
        assert data.targets == ["y"]
        assert fr.rank(data, n_estimators=10).importances().tolist() == expected.importances().tolist()
    assert fr.check(FRAME.assign(row=np.arange(len(Y))), Y)[0].columns == ["row"]
    other = fr.Dataset(FRAME, Y).with_rows(FRAME[:50].assign(y=Y[:50]))
    assert (other.targets, other.source().rows) == (["y"], 50)


def test_weights_beside_a_target_that_is_named() -> None:
    weights = np.arange(len(Y)) % 3 + 1.0
    table = FRAME.assign(y=Y)
    named = fr.rank(table.assign(w=weights), "y", sample_weight="w", n_estimators=10)
    beside = fr.rank(table, "y", sample_weight=weights, n_estimators=10)
    np.testing.assert_array_equal(named.importances(), beside.importances())


def test_masks_of_categorical_features_are_over_the_given_columns() -> None:
    settings: dict[str, Any] = {"ranker": "relief", "categorical_features": [True, False, False, False]}
    codes = FRAME.assign(a=np.arange(len(Y)) % 4)
    expected = fr.rank(codes, Y, ranker="relief", categorical_features=["a"])
    np.testing.assert_array_equal(fr.rank(codes, Y, **settings).importances(), expected.importances())


def test_collections_with_targets_beside() -> None:
    dd = pytest.importorskip("dask.dataframe")
    features = dd.from_pandas(FRAME, npartitions=3)
    target = dd.from_pandas(pd.Series(Y, name="y"), npartitions=2)
    expected = fr.rank(FRAME, Y, n_estimators=10)
    found = fr.rank(features, target, n_estimators=10)
    np.testing.assert_array_equal(found.importances(), expected.importances())
    with pytest.raises(fr.ColumnTypeError, match="y: a .* beside a dask collection"):
        fr.rank(features, Y)


def test_the_ranker_that_was_given_is_left_as_it_is() -> None:
    ranker = fr.ForestRanker(n_estimators=5)
    fr.rank(X, np.arange(120) % 3, task="classification", ranker=ranker)
    assert ranker.task is None
    assert not hasattr(ranker, "result_")


def test_the_papers_settings_are_one_word_away() -> None:
    data = FRAME.assign(y=Y)
    found = fr.rank(data, "y", preset="papers")
    assert list(found.scores) == ["genie3", "symbolic", "permutation"]
    assert (found.settings["n_estimators"], found.settings["missing"]) == (100, "ignore")
    assert fr.rank(data, "y", preset="papers", n_estimators=7).settings["n_estimators"] == 7
    relief = fr.rank(data, "y", preset="papers", ranker="relief")
    assert (relief.settings["n_neighbors"], relief.settings["scaling"]) == ([10], "range")
    with pytest.raises(fr.SettingError, match="preset: 'paper' is not one of papers"):
        fr.rank(data, "y", preset="paper")  # type: ignore[arg-type]
    with pytest.raises(fr.SettingError, match="preset: 'papers' is for the rankers forest and relief"):
        fr.rank(data, "y", preset="papers", ranker=fr.ForestRanker())


def test_a_list_of_classes_is_the_target_and_a_list_of_columns_names_it() -> None:
    classes = ["no" if value < 0 else "yes" for value in Y]
    expected = fr.rank(X, np.array(classes), n_estimators=10).importances()
    for features in (X, FRAME, pl.DataFrame(FRAME), X.tolist(), dict(FRAME)):
        found = fr.rank(features, classes, n_estimators=10).importances()
        np.testing.assert_array_equal(found, expected)
    assert fr.rank(FRAME, ["c", "d"], n_estimators=10).targets == ["c", "d"]
    named = fr.rank(FRAME.iloc[:2].assign(e=[1.0, 2.0]), ["c", "d"], ranker="relief")
    assert named.targets == ["c", "d"]


def test_classes_that_are_called_as_columns_are_values() -> None:
    rng = np.random.default_rng(0)
    frame, bases = pd.DataFrame(X[:, :4], columns=list("ACGT")), rng.choice(list("ACGT"), len(X))
    for classes in (bases, bases.tolist(), pd.Series(bases)):
        assert fr.rank(frame, classes, n_estimators=2).features == list("ACGT")
        assert fr.Dataset(frame, classes).features == list("ACGT")
        assert fr.check(frame, classes).n_columns == 5
    assert fr.rank(frame[:4], list("CG"), n_estimators=2).targets == ["C", "G"]
    assert fr.rank(frame[:2], list("CG"), n_estimators=2).targets == ["C", "G"]


@pytest.mark.parametrize("others", [["v", "w"], ["v"]], ids=["ragged", "alike"])
@pytest.mark.parametrize("kind", [list, tuple, set, frozenset])
def test_a_set_of_labels_for_each_row_is_the_target(kind: Any, others: list[str]) -> None:
    rows = [kind(["u"] if value < 0 else others) for value in Y]
    named = fr.rank(dict(FRAME) | {"y": list(map(list, rows))}, "y", n_estimators=10)
    for features in (X, FRAME):
        found = fr.rank(features, rows, n_estimators=10)
        assert found.task == "hierarchical"
        np.testing.assert_array_equal(found.importances(), named.importances())
    fitted = fr.ForestRanker(n_estimators=10).fit(X, rows)
    np.testing.assert_array_equal(fitted.feature_importances_, named.importances())
    assert str(fr.Dataset(X, rows)) == "<Dataset X: hierarchical of y, 4 features>"
    assert list(fr.check(X, rows)) == []


def test_lists_of_strings_are_several_targets_if_the_task_says_so() -> None:
    rows = [["u", "v"] if value < 0 else ["v", "v"] for value in Y]
    assert fr.rank(X, rows, task="multi-target", n_estimators=2).targets == ["y0", "y1"]
    assert fr.rank(X, np.array(rows), n_estimators=2).targets == ["y0", "y1"]
    with pytest.raises(fr.DataError, match="where each row has a list of labels"):
        fr.rank(X, [[1], [2, 3]] * 60)


def test_spoiled_columns_are_told_with_the_targets_beside_them() -> None:
    names = [f"customer {number}" for number in range(len(Y))]
    with pytest.warns(fr.SpoiledDataWarning, match="identifier: column 'id'"):
        fr.rank(FRAME.assign(id=names), Y, n_estimators=10)


def test_names_of_targets_are_not_those_of_numbered_features() -> None:
    for name, called in [("x3", "x3_"), ("x4", "x4"), ("x03", "x03"), ("x", "x"), ("x²", "x²")]:
        found = fr.rank(X, pd.Series(Y, name=name), n_estimators=2)
        assert (found.targets, found.features) == ([called], ["x0", "x1", "x2", "x3"])
    weighted = fr.ForestRanker(n_estimators=2).fit(X, pd.Series(Y, name="sample_weight"), np.ones(120))
    assert weighted.result_.targets == ["sample_weight"]
