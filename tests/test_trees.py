"""Trees that split by Relief, as users see them."""

from __future__ import annotations

import inspect
import json
import pickle
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier, is_regressor
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import ferrank as fr
from ferrank import _core
from ferrank.cli.main import build_parser, main
from ferrank.trees import export
from ferrank.trees.structure import Tree

Array = np.ndarray[Any, Any]


@parametrize_with_checks(
    [
        fr.ReliefTreeClassifier(n_neighbors=3),
        fr.ReliefTreeClassifier(selector="gain_ratio", m=None, min_samples_leaf=1),
        fr.ReliefTreeClassifier(selector="relief+accuracy"),
        fr.ReliefTreeRegressor(n_neighbors=5),
        fr.ReliefTreeRegressor(selector="relief+mse", leaves="linear"),
        fr.ReliefTree(task="classification", selector="accuracy"),
        fr.ReliefTree(task="regression", selector="mse", leaves="linear"),
    ]
)
def test_checks_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


@pytest.mark.filterwarnings("ignore::ferrank.IntegerTargetWarning")
@parametrize_with_checks([fr.ReliefTree()])
def test_checks_where_the_target_decides(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


# What trees find.


def parity(seed: int, n_rows: int = 200, n_features: int = 12) -> tuple[Array, Array]:
    X = np.random.default_rng(seed).integers(2, size=(n_rows, n_features))
    return X, np.where(X[:, 0] ^ X[:, 1], "odd", "even")


def test_relief_finds_a_parity_that_gini_does_not() -> None:
    """The paper's figures: two of twelve features, 200 rows; over ten data sets, on new rows."""
    scores: dict[str, list[float]] = {"relief": [], "relief+accuracy": [], "gini": []}
    for seed in range(10):
        X, y = parity(seed)
        new, expected = parity(100 + seed)
        for selector, of_selector in scores.items():
            of_selector.append(fr.ReliefTree(selector=selector).fit(X, y).score(new, expected))
    means = {selector: np.mean(of_selector) for selector, of_selector in scores.items()}
    assert means["relief"] == means["relief+accuracy"] == 1
    assert means["gini"] < 0.85


def test_linear_leaves_find_planes() -> None:
    rng = np.random.default_rng(1)
    X = rng.uniform(size=(400, 4))
    y = np.where(X[:, 0] > 0.5, 3 * X[:, 1], 2 - X[:, 2])
    tree = fr.ReliefTree(selector="mse", leaves="linear").fit(X, y)
    root = tree.tree_.nodes[0]["split"]
    assert (root["feature"], root["test"]["at_most"]) == (0, pytest.approx(0.5, abs=0.02))
    assert tree.score(X, y) > 0.99
    assert tree.get_n_leaves() < fr.ReliefTree(selector="mse").fit(X, y).get_n_leaves()


def test_a_combined_selector_goes_over_where_both_agree_and_stays_there() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(600, 6))
    y = ((X[:, 0] > 0.5) ^ (X[:, 1] > 0.5)) | (X[:, 2] > 0.8)
    tree = fr.ReliefTree(selector="relief+accuracy", m=None, switch_at=0.6).fit(X, y).tree_
    assert set(tree.selectors()) == {"relief", "accuracy"}
    parents = {split[side]: number for number, split in tree.splits() for side in ("left", "right")}
    for number, split in tree.splits():
        above = tree.nodes[parents[number]]["split"] if number else None
        if above is not None and above["selector"] == "accuracy":
            assert (split["selector"], split["correlation"]) == ("accuracy", None)
        else:
            expected = "relief" if split["correlation"] is None or split["correlation"] < 0.6 else "accuracy"
            assert split["selector"] == expected


def test_switch_at_decides_when() -> None:
    X, y = parity(3)
    always = fr.ReliefTree(selector="relief+accuracy", switch_at=-1).fit(X, y).tree_
    assert set(always.selectors()) == {"accuracy"}
    plain = fr.ReliefTree(selector="accuracy").fit(X, y).tree_
    assert always.feature.tolist() == plain.feature.tolist()


def test_pruning_makes_trees_smaller_and_m_how_much() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 5))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(str)
    sizes = [len(fr.ReliefTree(m=m).fit(X, y).tree_.nodes) for m in (None, 0.0, 2.0, 50.0)]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[2] > sizes[3]


def test_leaves_have_the_rows_they_need() -> None:
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(200, 3)), rng.normal(size=200)
    tree = fr.ReliefTree(m=None, min_samples_leaf=7).fit(X, y)
    _, counts = np.unique(tree.apply(X), return_counts=True)
    assert counts.min() >= 7
    assert tree.get_n_leaves() == len(counts) > 10


def test_nodes_are_pure_enough() -> None:
    X = np.arange(100.0)[:, None]
    y = np.where(np.arange(100) < 98, "a", "b")
    assert fr.ReliefTree().fit(X, y).get_n_leaves() == 1
    pure = fr.ReliefTree(max_purity=1.0, min_samples_leaf=1, m=None, n_neighbors=1).fit(X, y)
    assert pure.score(X, y) == 1


# The interface.


def test_what_a_tree_says_of_rows_fits_together() -> None:
    X, y = parity(6)
    tree = fr.ReliefTree().fit(X, y)
    leaves, shares, path = tree.apply(X), tree.predict_proba(X), tree.decision_path(X)
    assert (tree.classes_[shares.argmax(axis=1)] == tree.predict(X)).all()
    assert shares.sum(axis=1) == pytest.approx(1)
    assert path.shape == (200, len(tree.tree_.nodes))
    assert (path.sum(axis=1) == tree.tree_.depth[leaves] + 1).all()
    assert (path.toarray()[np.arange(200), leaves] == 1).all()
    assert (path.toarray()[:, 0] == 1).all()
    assert tree.get_depth() == 2
    assert tree.feature_importances_.shape == (12,)
    assert (tree.tree_.class_counts[0] == [(y == name).sum() for name in tree.tree_.classes]).all()


@pytest.mark.parametrize(
    "labels",
    [[7, 10, -3], ["b", "a", "ä"], [True, False], [2.0, 1.0]],
    ids=["integers", "text", "booleans", "floats"],
)
def test_classes_come_back_as_they_were(labels: list[Any]) -> None:
    rng = np.random.default_rng(7)
    codes = rng.integers(len(labels), size=150)
    X = np.column_stack([codes + 0.01 * rng.normal(size=150), rng.normal(size=150)])
    y = np.array(labels)[codes]
    tree = fr.ReliefTreeClassifier().fit(X, y)
    assert tree.predict(X).dtype == y.dtype
    assert (tree.predict(X) == y).all()
    assert tree.classes_.tolist() == sorted(labels)
    assert (tree.predict_proba(X).argmax(axis=1) == np.searchsorted(tree.classes_, y)).all()


def mixed_frame(n_rows: int = 150) -> pd.DataFrame:
    rng = np.random.default_rng(8)
    colour = rng.choice(["red", "green", "blue", None], size=n_rows)
    a = np.where(rng.random(n_rows) < 0.1, np.nan, rng.normal(size=n_rows))
    y = np.where((colour == "red") ^ (np.nan_to_num(a) > 0), "yes", "no")
    return pd.DataFrame({"a": a, "colour": colour, "y": y})


def test_the_same_tree_from_any_container(tmp_path: Path) -> None:
    frame = mixed_frame()
    features, y = frame[["a", "colour"]], frame["y"]
    frame.to_parquet(tmp_path / "data.parquet")
    frame.to_csv(tmp_path / "data.csv", index=False)
    tree = fr.ReliefTree().fit(features, y)
    others = [
        fr.ReliefTree().fit(pl.from_pandas(features), pl.Series("y", y)),
        fr.ReliefTree().fit(pa.Table.from_pandas(features), pa.array(y)),
        fr.ReliefTree().fit(tmp_path / "data.parquet", "y"),
        fr.ReliefTree().fit(str(tmp_path / "data.csv"), "y"),
        fr.ReliefTree().fit(fr.Dataset(frame, "y")),
        fr.ReliefTree(n_jobs=1).fit(features, y.to_numpy()),
    ]
    assert tree.get_n_leaves() > 2
    for other in others:
        assert other.tree_ == tree.tree_
        assert list(other.feature_names_in_) == ["a", "colour"]
    predicted = tree.predict(features)
    for rows in (pl.from_pandas(features), tmp_path / "data.csv", fr.Dataset(frame, "y")):
        assert (tree.predict(rows) == predicted).all()


@pytest.mark.parametrize("selector", ["relief+mse", "relief"])
def test_the_same_bits_for_any_threads_and_batches(selector: str) -> None:
    rng = np.random.default_rng(20)
    table = pa.table({f"x{number}": rng.normal(size=1_200) for number in range(6)})
    y = pa.array(table["x0"].to_numpy() * table["x1"].to_numpy() + rng.normal(size=1_200))
    trees = {
        fr.ReliefTree(selector=selector, leaves="linear", n_jobs=n_jobs).fit(rows, y).tree_.to_json()
        for n_jobs in (1, 3)
        for rows in (table, pa.Table.from_batches(table.to_batches(max_chunksize=301)))
    }
    assert len(trees) == 1


def test_sparse_rows_are_as_dense_ones() -> None:
    X, y = parity(9)
    dense, sparse = fr.ReliefTree().fit(X, y), fr.ReliefTree().fit(sp.csr_array(X.astype(float)), y)
    assert sparse.tree_ == dense.tree_
    assert (sparse.predict(sp.csr_array(X.astype(float))) == dense.predict(X)).all()


def test_missing_and_unknown_values_follow_the_larger_branch() -> None:
    frame = pd.DataFrame({"c": ["a"] * 30 + ["b"] * 20, "x": np.arange(50.0)})
    tree = fr.ReliefTree(selector="mse").fit(frame[["c"]], np.array([1.0] * 30 + [2.0] * 20))
    assert tree.predict(pd.DataFrame({"c": ["a", "b", None, "new"]})).tolist() == [1, 2, 1, 1]
    cut = fr.ReliefTree(selector="mse").fit(frame[["x"]], np.array([1.0] * 20 + [2.0] * 30))
    assert cut.predict(pd.DataFrame({"x": [0.0, 49.0, np.nan]})).tolist() == [1, 2, 2]


def test_rows_without_a_target() -> None:
    X = np.arange(40.0)[:, None]
    y = np.where(np.arange(40) < 20, "a", "b").astype(object)
    y[3] = None
    with pytest.raises(fr.DataError, match='1 of 40 rows have no target value.*unlabelled="ignore"'):
        fr.ReliefTree().fit(X, y)
    tree = fr.ReliefTree(unlabelled="ignore").fit(X, y)
    assert tree.tree_.n_node_samples[0] == 39


def test_a_tree_is_pickled_and_read_from_json() -> None:
    X, y = parity(10)
    tree = fr.ReliefTree().fit(X, y)
    again = pickle.loads(pickle.dumps(tree))
    assert again.tree_ == tree.tree_
    assert (again.predict(X) == tree.predict(X)).all()
    assert Tree.from_json(tree.tree_.to_json()) == tree.tree_
    with pytest.raises(fr.DataError, match="tree: "):
        Tree.from_json("{}")


def test_tags_follow_the_target() -> None:
    X, y = parity(11)
    assert is_classifier(fr.ReliefTreeClassifier())
    assert is_regressor(fr.ReliefTreeRegressor())
    assert is_classifier(fr.ReliefTree(task="classification"))
    assert is_classifier(fr.ReliefTree().fit(X, y))
    assert is_regressor(fr.ReliefTree().fit(X, X[:, 0] + 0.5))
    assert not hasattr(fr.ReliefTree().fit(X, X[:, 0] + 0.5), "predict_proba")
    assert cross_val_score(fr.ReliefTreeClassifier(), X, y, cv=3).min() > 0.9


def test_few_integers_are_classes() -> None:
    X = np.random.default_rng(12).normal(size=(60, 2))
    y = (X[:, 0] > 0).astype(int) * 3 + 7
    tree = fr.ReliefTree().fit(X, y)
    assert tree.classes_.tolist() == [7, 10]
    assert tree.predict(X).dtype == y.dtype
    assert (tree.predict(X) == y).mean() > 0.9
    with pytest.warns(fr.IntegerTargetWarning, match="4 distinct integers, which are taken for classes"):
        assert fr.ReliefTree().fit(pd.DataFrame(X), pd.Series(y + (X[:, 1] > 1))).n_classes_ == 4
    assert fr.ReliefTree(task="regression").fit(X, y).tree_.task == "regression"
    assert fr.ReliefTree().fit(X, y.astype(float)).tree_.task == "regression"


# Odd data, and errors.


@pytest.mark.parametrize("selector", ["relief", "relief+mse", "mse"])
@pytest.mark.parametrize("leaves", ["mean", "linear"])
def test_odd_data_make_trees_of_numbers(selector: str, leaves: Any) -> None:
    rng = np.random.default_rng(13)
    nan = np.full((30, 2), np.nan)
    ys = [rng.normal(size=30), np.zeros(30), 1e150 * rng.normal(size=30), 1e-200 * rng.normal(size=30)]
    Xs = [nan, np.ones((30, 2)), rng.normal(size=(30, 400)), np.eye(30), 1e300 * rng.normal(size=(30, 2))]
    Xs.append(np.array([-1e308, 1e308] * 15)[:, None])
    for X in Xs:
        for y in ys:
            tree = fr.ReliefTreeRegressor(selector=selector, leaves=leaves).fit(X, y)
            assert np.isfinite(tree.predict(X)).all()
    assert fr.ReliefTreeRegressor(selector=selector, leaves=leaves).fit([[1.0]], [2.0]).predict([[3.0]]) == 2


@pytest.mark.parametrize(
    "selector", ["relief", "relief+accuracy", "accuracy", "gini", "gain_ratio", "myopic"]
)
def test_odd_data_make_trees_of_classes(selector: str) -> None:
    rng = np.random.default_rng(14)
    names = np.array([f"row {number}" for number in range(60)], dtype=object)
    frames = [
        pd.DataFrame({"a": names}),
        pd.DataFrame({"a": names, "b": rng.normal(size=60)}),
        pd.DataFrame({"a": [None] * 60}),
        pd.DataFrame({"a": np.full(60, np.nan), "b": np.ones(60)}),
    ]
    for frame in frames:
        for y in (np.array(["one"] * 60), rng.choice(["x", "y", "z"], 60), names):
            tree = fr.ReliefTreeClassifier(selector=selector, min_samples_leaf=1).fit(frame, y)
            assert len(tree.predict(frame)) == 60


def test_a_long_chain_of_nodes_is_no_recursion() -> None:
    n_rows = 2_500
    X = np.arange(float(n_rows))[:, None]
    y = np.where(np.arange(n_rows) % 2, "a", "b")
    tree = fr.ReliefTreeClassifier(selector="gini", min_samples_leaf=1, max_purity=1.0, m=None).fit(X, y)
    assert tree.score(X, y) == 1
    assert tree.get_depth() > sys.getrecursionlimit()
    assert len(tree.export_text().splitlines()) == len(tree.tree_.nodes)
    assert len(tree.decision_path(X[:5]).nonzero()[0]) == (tree.tree_.depth[tree.apply(X[:5])] + 1).sum()


@pytest.mark.parametrize(
    ("settings", "classes", "message"),
    [
        ({"selector": "mse"}, True, "selector: mse is for numbers, the target is nominal; use relief"),
        ({"selector": "gini"}, False, "selector: gini is for classes, the target is numeric; use relief"),
        ({"selector": "best"}, True, "selector: 'best' is not 'relief', 'myopic'"),
        ({"leaves": "linear"}, True, "leaves: linear is not for a nominal target; use majority"),
        ({"leaves": "majority"}, False, "leaves: majority is not for a numeric target; use mean or linear"),
        ({"m": -1.0}, True, "m: -1 is not a number of at least 0"),
        ({"switch_at": 1.5}, True, "switch_at: 1.5 is no correlation"),
        ({"n_neighbors": 0}, True, "n_neighbors: 0; use at least 1"),
        ({"sigma": 0.0}, True, "sigma: 0 is not above 0"),
        ({"min_samples_leaf": 0}, True, "min_samples_leaf: 0; use at least 1"),
        ({"max_purity": 0.0}, True, r"max_purity: 0 is not in \(0, 1\]"),
        ({"unlabelled": "use"}, True, "unlabelled: rows without a target cannot be used by a tree"),
        ({"task": "multi-label"}, True, "task: "),
    ],
)
def test_wrong_settings_are_named(settings: dict[str, Any], classes: bool, message: str) -> None:
    X, y = parity(15)
    with pytest.raises(fr.SettingError, match=message):
        fr.ReliefTree(**settings).fit(X, y if classes else X[:, 0] + 0.5)


def test_wrong_data_are_named() -> None:
    X, y = parity(16)
    X = X.astype(float)
    with pytest.raises(fr.DataError, match=r"2 targets; a tree has one"):
        fr.ReliefTree().fit(X, pd.DataFrame({"a": y, "b": y}))
    tree = fr.ReliefTree().fit(X, y)
    X[2, 3] = np.inf
    with pytest.raises(fr.DataError, match="column 'x3': the value inf was found"):
        fr.ReliefTree().fit(X, y)
    with pytest.raises(fr.DataError, match="column 'x3': the value inf was found"):
        tree.predict(X)
    with pytest.raises(fr.DataError, match="more than a number can hold"):
        fr.ReliefTree().fit(X[:2, :2], [-1.5e308, 1.5e308])
    frame = mixed_frame()
    tree = fr.ReliefTree().fit(fr.Dataset(frame, "y"))
    with pytest.raises(fr.DataError, match="no column 'colour', which the training data have"):
        tree.predict(fr.Dataset(frame[["a", "y"]], "y"))
    with pytest.raises(fr.SettingError, match="y: the data set says what its target is"):
        fr.ReliefTree().fit(fr.Dataset(frame, "y"), "y")


# Trees to look at.


def test_text_tells_the_selector_of_each_node() -> None:
    tree = fr.ReliefTree(selector="relief+accuracy").fit(*parity(17))
    lines = str(tree).splitlines()
    assert len(lines) == len(tree.tree_.nodes)
    assert re.fullmatch(r"x[01] ≤ 0\.5  \[relief 0\.\d+, correlation -?\d\.\d+; 200 rows\]", lines[0])
    assert lines[-1].startswith("   └─ no: ")
    assert "odd (" in lines[-1] or "even (" in lines[-1]
    assert str(fr.ReliefTree(m=3)) == "ReliefTree(m=3)"


def test_text_of_groups_models_and_gaps() -> None:
    frame = mixed_frame()
    text = fr.ReliefTree().fit(frame[["a", "colour"]], frame["y"]).export_text()
    assert re.search(r"colour (not )?in \{", text)
    assert " or missing: " in text
    X = np.random.default_rng(18).normal(size=(100, 2))
    text = fr.ReliefTree(leaves="linear").fit(X, 3 * X[:, 0] - X[:, 1] + 1).export_text()
    assert re.fullmatch(r"1 \+ 3 x0 − 1 x1 \(100 rows\)", text)


def test_pictures(tmp_path: Path) -> None:
    X, y = parity(19)
    frame = pd.DataFrame(X, columns=['<"&$_^\\'] + [f"f{number}" for number in range(11)])
    tree = fr.ReliefTree().fit(frame, np.char.add(y, "<&>"))
    n_nodes = len(tree.tree_.nodes)
    picture = ET.fromstring(export.svg(tree.tree_))
    assert len(picture.findall(".//{*}rect")) == n_nodes
    dot = tree.export_graphviz()
    assert dot.count("[label=") == n_nodes + n_nodes - 1
    assert dot.count(" -> ") == n_nodes - 1
    for suffix in export.TREE_SUFFIXES:
        tree.save(tmp_path / f"tree{suffix}")
        assert (tmp_path / f"tree{suffix}").stat().st_size > 100
    assert tree.plot() is not None
    assert json.loads((tmp_path / "tree.json").read_text())["task"] == "classification"
    with pytest.raises(fr.SettingError, match="unknown suffix"):
        tree.save(tmp_path / "tree.xls")


# The shell.


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.csv"
    mixed_frame().to_csv(path, index=False)
    return path


def test_the_command_shows_and_saves_a_tree(data: Path, tmp_path: Path, capsys: Any) -> None:
    picture = tmp_path / "tree.svg"
    arguments = ["tree", str(data), "--target", "y", "--selector", "relief+accuracy", "--show"]
    assert main([*arguments, "--output", str(picture)]) == 0
    shown = capsys.readouterr().out.splitlines()
    tree = fr.ReliefTree(selector="relief+accuracy").fit(data, "y")
    assert shown[0].startswith("classification of y: 150 rows")
    assert shown[1:] == str(tree).splitlines()
    assert picture.read_text() == export.svg(tree.tree_)


def test_the_command_prints_json_and_takes_the_last_column(data: Path, capsys: Any) -> None:
    assert main(["tree", str(data), "--json", "--m", "none", "--min-leaf", "3"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed == json.loads(fr.ReliefTree(m=None, min_samples_leaf=3).fit(data, "y").tree_.to_json())


def test_the_command_says_what_is_wrong(data: Path, tmp_path: Path, capsys: Any) -> None:
    assert main(["tree", str(data), "--target", "y", "--selector", "mse"]) == 2
    assert "selector: mse is for numbers" in capsys.readouterr().err
    assert main(["tree", str(data), "--target", "y", "--output", str(tmp_path / "tree.xls")]) == 2
    assert "unknown suffix" in capsys.readouterr().err


def test_settings_of_engine_python_and_shell_agree() -> None:
    engine = json.loads(_core.tree_settings_json({}))
    parameters = inspect.signature(fr.ReliefTree).parameters
    own = {name: one.default for name, one in parameters.items() if name not in ("task", "n_jobs")}
    assert own == engine
    for estimator in (fr.ReliefTreeClassifier, fr.ReliefTreeRegressor):
        shared = {name: one.default for name, one in inspect.signature(estimator).parameters.items()}
        assert shared.pop("n_jobs") is None
        assert shared.items() <= engine.items()
    commands: Any = next(one for one in build_parser()._actions if one.choices and "tree" in one.choices)
    options = {action.dest: action for action in commands.choices["tree"]._actions}
    assert parameters.keys() <= options.keys()
    for setting in ("selector", "leaves"):
        with pytest.raises(fr.SettingError) as error:
            _core.tree_settings_json({setting: "?"})
        assert set(re.findall(r"'([\w+]+)'", str(error.value))) == set(options[setting].choices or ())
    for setting in ("m", "switch_at", "min_samples_leaf", "max_purity"):
        found = re.search(r"default: ([\d.]+)$", options[setting].help or "")
        assert found is not None
        assert float(found[1]) == engine[setting]
