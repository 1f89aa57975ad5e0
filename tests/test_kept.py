"""Forests that are kept: predictions, files, scikit-learn's tools."""

from __future__ import annotations

import contextlib
import pickle
import signal
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sklearn
from sklearn.datasets import load_diabetes, load_iris
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.feature_selection import RFECV
from sklearn.inspection import partial_dependence, permutation_importance

import ferrank as fr
from ferrank.cli.main import main
from ferrank.evaluate import evaluate

DATA = Path(__file__).parent / "data"


def forest(**settings: Any) -> fr.ForestRanker:
    given = {"keep_trees": True, "standard_errors": False, "n_estimators": 30, **settings}
    return fr.ForestRanker(**given)


def test_classes_are_those_that_were_given() -> None:
    X, y = load_iris(return_X_y=True)
    for given in (y, y.astype(float) - 1, np.array(["c", "a", "b"])[y], np.array([5, 3, 40])[y]):
        model = forest(task="classification").fit(X, given)
        assert model.classes_.tolist() == sorted(set(given.tolist()))
        predicted = model.predict(X)
        assert predicted.dtype == given.dtype
        assert np.mean(predicted == given) > 0.95
        shares = model.predict_proba(X)
        assert shares.sum(axis=1) == pytest.approx(np.ones(len(X)))
        assert np.array_equal(model.classes_[shares.argmax(axis=1)], predicted)
        assert model.score(X, given) == np.mean(predicted == given)


@pytest.mark.parametrize(
    ("settings", "name", "message"),
    [
        ({"keep_trees": False}, "predict", "predict: no trees are kept; set keep_trees=True and fit again"),
        ({"keep_trees": False}, "oob_score_", "oob_score_: no trees are kept; set keep_trees=True"),
        ({"ensemble": "extra_trees"}, "oob_score_", "oob_score_: each tree .* set bootstrap=True and fit"),
        ({}, "partial_fit", "keep_trees: not available with partial_fit; leave one of the two out"),
        ({}, "other", "'ForestRanker' object has no attribute 'other'"),
    ],
)
def test_what_is_not_there_names_the_setting(settings: dict[str, Any], name: str, message: str) -> None:
    X, y = load_iris(return_X_y=True)
    model = forest(**settings).fit(X, y == 1)
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=message):
        getattr(model, name)
    assert pickle.loads(pickle.dumps(model)).result_.top(2) == model.result_.top(2)


def test_why_rows_out_of_bag_are_not_known_is_told() -> None:
    X, y = load_iris(return_X_y=True)
    some = np.where(np.arange(len(y)) < 20, np.nan, X[:, 0])
    model = forest(per_target=True).fit(X[:, 1:], np.c_[some, X[:, 0]])
    with pytest.raises(AttributeError, match="oob_score_: it is not known; per_target: rows without"):
        _ = model.oob_score_


@pytest.mark.parametrize("unit", ["datetime64[D]", "timedelta64[ms]"])
def test_times_are_classes_as_they_were_given(unit: str) -> None:
    X, y = load_iris(return_X_y=True)
    given = pd.Series(np.array([400, 20, 3000])[y].astype(unit))
    model = forest(task="classification").fit(pd.DataFrame(X), given)
    assert np.array_equal(model.classes_, np.sort(given.unique()))
    assert model.score(pd.DataFrame(X), given) > 0.95


def test_no_file_that_is_read_is_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    X, y = load_iris(return_X_y=True)
    path, kept = tmp_path / "t.parquet", tmp_path / "kept.ferrank"
    columns: dict[str, Any] = {f"x{number}": column for number, column in enumerate(X.T)}
    pq.write_table(pa.table(columns | {"y": y.astype(str)}), path)
    fr.rank(path, "y", ranker=forest(keep_trees=kept))
    before = path.read_bytes(), kept.read_bytes()
    (tmp_path / "other.parquet").symlink_to(path)
    message = "is the file that is read; name another one"
    for read in (path, [path], tmp_path / "other.parquet"):
        with pytest.raises(fr.SettingError, match=message):
            fr.Forest.load(kept).predict_to(read, path)
    with pytest.raises(fr.SettingError, match=message):
        fr.rank(path, "y", ranker=forest(keep_trees=path))
    for output in (path, kept.rename(tmp_path / "kept.arrow")):
        assert main(["predict", str(tmp_path / "kept.arrow"), str(path), "-o", str(output)]) != 0
        assert message in capsys.readouterr().err
    assert (path.read_bytes(), (tmp_path / "kept.arrow").read_bytes()) == before
    with pytest.raises(fr.SettingError, match="keep_trees: 1 is no path; use True, False or a path"):
        forest(keep_trees=1, task="classification").fit(X, y)


def test_booleans_are_predicted_as_booleans() -> None:
    X, y = load_iris(return_X_y=True)
    predicted = forest().fit(X, y == 1).predict(X)
    assert predicted.dtype == bool
    assert np.mean(predicted == (y == 1)) > 0.95


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_oob_score_is_that_of_scikit_learn(task: str) -> None:
    """Within the spread of seeds."""
    if task == "classification":
        X, y = load_iris(return_X_y=True)
        peer: Any = RandomForestClassifier
    else:
        X, y = load_diabetes(return_X_y=True)
        peer = RandomForestRegressor
    settings = {"min_samples_leaf": 2, "max_features": "sqrt", "n_estimators": 100, "oob_score": True}
    theirs = [peer(random_state=seed, **settings).fit(X, y).oob_score_ for seed in range(5)]
    ours = [forest(task=task, n_estimators=100, random_state=seed).fit(X, y).oob_score_ for seed in range(5)]
    assert abs(np.mean(ours) - np.mean(theirs)) < 3 * (np.std(ours) + np.std(theirs)) + 0.01


def test_oob_predictions_have_the_shapes_of_scikit_learn() -> None:
    X, y = load_diabetes(return_X_y=True)
    assert forest().fit(X, y).oob_prediction_.shape == (len(X),)
    both = forest().fit(X, np.column_stack([y, -y]))
    assert both.oob_prediction_.shape == (len(X), 2)
    assert both.oob_score_.shape == (2,)
    assert both.predict(X).shape == (len(X), 2)
    assert both.oob_score_[0] == pytest.approx(both.oob_score_[1])
    classes = forest().fit(X, np.where(y > 150, "high", "low"))
    assert classes.oob_prediction_.shape == (len(X), 2)
    assert isinstance(classes.oob_score_, float)
    without = forest(bootstrap=False).fit(X, y)
    assert not hasattr(without, "oob_score_")
    assert without.forest_.no_oob == "bootstrap: no row is out of bag without it"


def test_oob_predictions_are_made_when_they_are_asked_for() -> None:
    X, y = load_diabetes(return_X_y=True)
    model, other = forest(n_estimators=100).fit(X, y), forest(n_estimators=100).fit(X, y)
    assert "oob_score_" not in vars(model)
    assert "oob_score_" in dir(model)
    expected = other.oob_prediction_
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: model.oob_prediction_, range(4)))
    assert all(np.array_equal(one, expected) for one in found)
    assert model.forest_._core.n_bytes()[0] == 0, "the codes of the rows are released"
    # A new fit has other rows.
    assert model.fit(X[:200], y[:200]).oob_prediction_.shape == (200,)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers")
def test_an_interrupted_oob_prediction_can_be_made_again() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4))
    expected = forest(n_estimators=200).fit(X, X[:, 1]).oob_score_
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for seconds in (0.001, 0.01, 0.03):
            model = forest(n_estimators=200).fit(X, X[:, 1])
            with contextlib.suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, seconds)
                assert model.oob_prediction_.shape == (3000,)
            signal.setitimer(signal.ITIMER_REAL, 0)
            assert model.oob_score_ == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_oob_predictions_are_of_the_last_fit() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = forest(n_estimators=300).fit(X, y)
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(lambda: model.oob_prediction_)
        model.fit(X[:100], y[:100])
        reading.result()
    assert model.oob_prediction_.shape == (100,)
    assert "oob_score_" in dir(model)
    score = model.oob_score_
    assert model.set_params(keep_trees=False).oob_score_ == score


def test_oob_predictions_survive_pickling() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = forest(n_estimators=100).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.oob_score_ == model.oob_score_
    assert np.array_equal(again.oob_prediction_, model.oob_prediction_)
    assert "read from a file" in str(again.forest_.no_oob)
    unknown = pickle.loads(pickle.dumps(forest(bootstrap=False).fit(X, y)))
    assert not hasattr(unknown, "oob_score_")


def test_small_trees_do_not_hold_the_codes_of_many_rows() -> None:
    X, y = load_diabetes(return_X_y=True)
    stumps = forest(n_estimators=2, max_depth=1).fit(np.tile(X, 20), y)
    assert stumps.forest_._core.n_bytes()[0] == 0
    assert 0 < stumps.oob_score_ < 1


def test_rows_are_walked_by_codes_of_two_bytes_where_features_have_many_cuts() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    X[rng.random(X.shape) < 0.1] = np.nan
    y = np.nan_to_num(X[:, 0]) + rng.normal(size=900)
    model = forest(n_estimators=5, min_samples_leaf=1, max_bins=20_000).fit(X, y)
    nodes = model.forest_.nodes().to_pandas()
    assert nodes[nodes.feature == 0].cut.nunique() > 255
    leaves = model.apply(X)
    for tree, of_tree in nodes.groupby("tree"):
        feature, cut, right, missing_left = (
            of_tree[name].to_numpy() for name in ("feature", "cut", "right", "missing_left")
        )
        for row, leaf in zip(X, leaves[:, tree], strict=True):
            node = 0
            while not np.isnan(feature[node]):
                value = row[int(feature[node])]
                left = missing_left[node] if np.isnan(value) else value <= cut[node]
                node = node + 1 if left else int(right[node])
            assert node == leaf


def test_what_is_no_path_and_no_number_is_named() -> None:
    X, y = load_diabetes(return_X_y=True)
    with pytest.raises(fr.SettingError, match="path: 3 is no path; use a string"):
        fr.Forest.load(3)  # type: ignore[arg-type]
    with pytest.raises(fr.SettingError, match="threshold: 'x' is no number; use one from 0"):
        forest(n_estimators=2).fit(X, y).predict(X, threshold="x")


def test_label_sets_are_closed_upward() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    sets = [["a", "a/b"] if x > 0.5 else ["a/c"] if x > -0.5 else ["d"] for x in X[:, 1]]
    model = forest(task="hierarchical").fit(X, sets)
    for threshold in (0.1, 0.5, 0.9):
        for row in model.predict(X, threshold=threshold):
            assert all("a" in row for label in row if label.startswith("a/"))
    predicted = model.predict(X)
    assert set(predicted[int(np.argmax(X[:, 1]))]) == {"a", "a/b"}
    assert len(model.predict(X, threshold=0.0)[0]) >= len(model.predict(X, threshold=0.9)[0])
    assert model.classes_.tolist() == ["a", "a/b", "a/c", "d"]
    assert 0.9 < model.oob_score_ <= 1


def test_labels_and_mixed_targets() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    labels = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(int)
    model = forest().fit(X, labels)
    assert model.forest_.task == "multi-label"
    assert np.mean(model.predict(X) == labels) > 0.95
    assert (
        model.predict(X, threshold=0.0).sum()
        >= model.predict(X).sum()
        > model.predict(X, threshold=0.95).sum()
    )
    assert [shares.shape for shares in model.predict_proba(X)] == [(300, 2), (300, 2)]
    table = pa.table({"number": X[:, 0], "class": np.where(X[:, 1] > 0, "yes", "no")})
    mixed = forest().fit(X, table)
    predicted = mixed.predict(X)
    assert predicted.shape == (300, 2)
    assert predicted.dtype == object
    assert np.mean(predicted[:, 1] == np.where(X[:, 1] > 0, "yes", "no")) > 0.95
    assert mixed.score(X, table) > 0.85


def test_features_of_frames_are_found_by_name_and_categories_by_theirs(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    colours = rng.choice(["red", "green", "blue"], size=200)
    y = (colours == "red").astype(float) + rng.normal(scale=0.1, size=200)
    x = rng.normal(size=200)
    train = pa.table({"colour": pa.array(colours).dictionary_encode(), "x": x})
    model = forest(keep_trees=tmp_path / "forest.ferrank").fit(train, y)
    kept = fr.Forest.load(tmp_path / "forest.ferrank")
    other = pa.table({"x": x, "colour": pa.array(colours), "more": x})
    expected = model.predict(train)
    assert np.array_equal(kept.predict(other).column("y").to_numpy(), expected)
    assert np.array_equal(kept.predict(train.to_pandas()).column("y").to_numpy(), expected)
    with pytest.raises(fr.DataError, match=r"no column 'colour', which the training data have"):
        kept.predict(other.drop_columns("colour"))
    with pytest.raises(fr.ColumnTypeError, match=r"column 'x' is of type"):
        kept.predict(pa.table({"x": colours, "colour": colours}))
    unknown = pa.table({"x": [0.0], "colour": ["violet"]})
    missing = pa.table({"x": [0.0], "colour": pa.array([None], pa.string())})
    assert kept.predict(unknown) == kept.predict(missing)


def test_categories_that_nodes_lack_do_not_bias_predictions() -> None:
    """A category that a node lacks goes to the heavier side, which has nothing to do with the target."""
    errors = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        rows, others = (
            pd.DataFrame(rng.choice(30, (n, 3)).astype(str), columns=list("abc")) for n in (300, 500)
        )
        y = rng.normal(size=300)
        errors.append(forest(random_state=seed).fit(rows, y).predict(others).mean() - y.mean())
    assert abs(np.mean(errors)) <= 3 * np.std(errors) / np.sqrt(len(errors))


def test_many_categories_are_predicted_as_well_as_their_indicators() -> None:
    rng = np.random.default_rng(0)
    codes, effects = rng.choice(60, (4_000, 4)), rng.normal(size=60)
    y = effects[codes[:, 0]] + effects[codes[:, 1]] + rng.normal(size=4_000)
    frame = pd.DataFrame(codes.astype(str), columns=list("abcd"))
    ours = forest(min_samples_leaf=2, max_features=2).fit(frame[:2_000], y[:2_000])
    indicators = pd.get_dummies(frame).to_numpy(float)
    theirs = RandomForestRegressor(30, min_samples_leaf=2, max_features=0.5, random_state=0)
    theirs.fit(indicators[:2_000], y[:2_000])
    assert ours.score(frame[2_000:], y[2_000:]) >= theirs.score(indicators[2_000:], y[2_000:]) - 0.03


def test_a_forest_is_the_same_after_pickling_and_in_a_file(tmp_path: Path) -> None:
    X, y = load_diabetes(return_X_y=True)
    model = forest().fit(X, y)
    model.save_trees(tmp_path / "forest.ferrank")
    expected = model.predict(X)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(X), expected)
    assert again.oob_score_ == model.oob_score_
    kept = fr.Forest.load(tmp_path / "forest.ferrank")
    assert np.array_equal(kept.predict(X).column(0).to_numpy(), expected)
    assert np.array_equal(kept.apply(X), model.apply(X))
    nodes = kept.nodes()
    assert nodes.column_names[:2] == ["tree", "feature"]
    assert nodes.num_rows > 30
    assert "regression of y" in repr(kept)


def test_predictions_go_to_files(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    columns = {f"x{number}": column for number, column in enumerate(X.T)}
    pq.write_table(pa.table(columns), tmp_path / "new.parquet", row_group_size=20)
    kept = forest(task="classification").fit(X, y).forest_
    expected = kept.predict(X)
    for name in ("out.parquet", "out.arrow", "out.csv"):
        assert kept.predict_to(tmp_path / "new.parquet", tmp_path / name) == len(X)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.column("y").to_pylist() == expected.column("y").to_pylist()
    shares = kept.predict_proba(X)
    assert kept.predict_to(tmp_path / "new.parquet", tmp_path / "shares.parquet", shares=True) == len(X)
    assert pq.read_table(tmp_path / "shares.parquet").equals(shares)
    assert shares.column_names == ["y=0", "y=1", "y=2"]


def test_the_shell_keeps_and_predicts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 200))
    pq.write_table(pa.table({"a": a, "b": b, "y": 2 * b}), tmp_path / "old.parquet")
    pq.write_table(pa.table({"b": b, "a": a}), tmp_path / "new.parquet")
    kept, output = str(tmp_path / "forest.ferrank"), str(tmp_path / "out.parquet")
    assert main(["rank", str(tmp_path / "old.parquet"), "--target", "y", "--keep", kept]) == 0
    assert main(["predict", kept, str(tmp_path / "new.parquet"), "--output", output]) == 0
    assert np.corrcoef(pq.read_table(output).column("y").to_numpy(), b)[0, 1] > 0.95
    capsys.readouterr()
    assert main(["predict", kept, str(tmp_path / "new.parquet")]) == 0
    assert "190 more rows" in capsys.readouterr().err
    (tmp_path / "wrong.ferrank").write_bytes(b"ARROW1\0\0no forest")
    assert main(["predict", str(tmp_path / "wrong.ferrank"), str(tmp_path / "new.parquet")]) == 2
    assert main(["predict", str(tmp_path / "old.parquet"), str(tmp_path / "new.parquet")]) == 2


def test_settings_that_keep_no_trees_are_named(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    y = np.where(y > 0, "some", "other")
    with pytest.raises(fr.SettingError, match=r"^until: not with keep_trees"):
        forest(until="stable").fit(X, y)
    with pytest.raises(fr.SettingError, match=r"^keep_trees: .*shadows"):
        forest(shadows=True, n_estimators=200).fit(X, y)
    assert not hasattr(forest(), "partial_fit")
    with pytest.raises(fr.SettingError, match=r"^resume: not with keep_trees"):
        fr.rank({"a": X[:, 0], "y": X[:, 1]}, "y", ranker=forest(), resume=tmp_path / "resume.arrow")
    with pytest.raises(fr.SettingError, match=r"^keep_trees: not available with accumulators"):
        fr.accumulate({"a": X[:, 0], "y": X[:, 1]}, "y", ranker=forest())
    with pytest.raises(fr.SettingError, match=r"^threshold: 1.5 is not in"):
        forest().fit(X, y).forest_.predict(X, threshold=1.5)
    assert not hasattr(fr.ForestRanker(), "predict")
    with pytest.raises(fr.SettingError, match=r"^keep_trees: there are no trees to save"):
        fr.ForestRanker(n_estimators=2).fit(X, y).save_trees(tmp_path / "none.ferrank")


def test_a_fit_forgets_the_trees_of_the_one_before() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = forest().fit(X, y)
    model.set_params(bootstrap=False).fit(X, y)
    assert not hasattr(model, "oob_score_")
    model.set_params(keep_trees=False).fit(X, y)
    assert not hasattr(model, "forest_")
    assert model.result_.interactions is None


@pytest.mark.slow
def test_tools_of_scikit_learn_take_a_kept_forest() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = forest().fit(X, y)
    found = permutation_importance(model, X, y, n_repeats=2, random_state=0)
    assert set(np.argsort(found.importances_mean)[-2:]) == {2, 8}
    grid = partial_dependence(model, X, [2], grid_resolution=10)
    assert grid["average"].shape == (1, 10)
    assert grid["average"][0, -1] > grid["average"][0, 0]
    selector = RFECV(forest(n_estimators=10), cv=3, step=3).fit(X, y)
    assert {2, 8} <= set(np.flatnonzero(selector.support_))
    X, y = load_iris(return_X_y=True)
    grid = partial_dependence(forest(task="classification").fit(X, y), X, [3], grid_resolution=5)
    assert grid["average"].shape == (3, 5)


def test_displays_of_partial_dependence() -> None:
    display = pytest.importorskip("sklearn.inspection").PartialDependenceDisplay
    pytest.importorskip("matplotlib").use("Agg")
    X, y = load_diabetes(return_X_y=True)
    shown = display.from_estimator(
        forest(n_estimators=5).fit(X[:100], y[:100]), X[:100], [2], grid_resolution=5
    )
    assert shown.axes_.shape == (1, 1)


def test_trees_for_shap_predict_as_the_forest() -> None:
    X, y = load_diabetes(return_X_y=True)
    model = forest(n_estimators=5).fit(X, y)
    trees = model.forest_.to_shap()
    assert {"children_left", "children_right", "children_default", "features", "thresholds", "values"} < set(
        trees[0]
    )
    total = np.zeros(20)
    for tree in trees:
        for row in range(20):
            node = 0
            while tree["children_left"][node] >= 0:
                left = X[row, tree["features"][node]] <= tree["thresholds"][node]
                node = tree["children_left" if left else "children_right"][node]
            total[row] += tree["values"][node, 0]
    assert total == pytest.approx(model.predict(X[:20]))
    frame = pa.table({"colour": ["red", "blue"] * 20})
    nominal = forest().fit(frame, [0.0, 1.0] * 20).forest_
    with pytest.raises(fr.SettingError, match=r"^feature 'colour': SHAP takes cuts"):
        nominal.to_shap()


def test_shap_explains_a_kept_forest() -> None:
    shap = pytest.importorskip("shap")
    X, y = load_diabetes(return_X_y=True)
    model = forest(n_estimators=5).fit(X, y)
    values = shap.TreeExplainer({"trees": model.forest_.to_shap()}).shap_values(X[:5])
    assert np.asarray(values).shape[:2] == (5, 10)


def test_interactions_and_trends() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1500, 5))
    y = np.where((X[:, 0] > 0.5) ^ (X[:, 3] > 0.5), 1.0, 0.0)
    result = forest(min_samples_leaf=20).fit(X, y).result_
    assert "on one path of trees, by impurity decrease: x0 and x3 (" in str(result)
    assert set(result.interactions.slice(0, 1).to_pylist()[0].values()) >= {"x0", "x3"}
    linear = forest(min_samples_leaf=20).fit(X, X[:, 1] - 2 * X[:, 2]).forest_
    trends = {row["feature"]: row["trend"] for row in linear.trends().to_pylist()}
    assert trends["x1"] > 0.9
    assert trends["x2"] < -0.9


def test_a_tree_of_any_size_is_read_as_it_was_written(tmp_path: Path) -> None:
    x, y = np.random.default_rng(0).normal(size=(200_000, 3)), np.arange(200_000) % 7.0
    model = forest(n_estimators=1, min_samples_leaf=1).fit(x, y)
    model.save_trees(tmp_path / "large.ferrank")
    assert (tmp_path / "large.ferrank").stat().st_size > 9_000_000, "larger than what is read at a time"
    read = fr.Forest.load(tmp_path / "large.ferrank")
    assert read.n_trees == 1
    assert np.array_equal(read.predict(x).column(0).to_numpy(), model.predict(x))


def test_no_bit_of_a_file_can_change(tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    model = forest(task="classification", n_estimators=3).fit(X, y)
    path = tmp_path / "forest.ferrank"
    model.save_trees(path)
    content, expected = path.read_bytes(), model.forest_.predict(X)
    accepted = 0
    for place in np.random.default_rng(0).integers(len(content) * 8, size=300).tolist():
        damaged = bytearray(content)
        damaged[place // 8] ^= 1 << place % 8
        path.write_bytes(damaged)
        with contextlib.suppress(fr.DataError):
            assert fr.Forest.load(path).predict(X) == expected, f"bit {place}"
            accepted += 1
    assert accepted < 60, "most bits of a file mean something"


def test_interactions_of_many_features_take_little_memory() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2500)).astype(np.float32)
    model = forest(n_estimators=20, min_samples_leaf=1, max_features=2).fit(X, rng.normal(size=3000))
    pairs = model.forest_.interactions(1 << 30)
    features = {name for pair in pairs.to_pylist() for name in list(pair.values())[:2]}
    assert len(features) == 1000


@pytest.mark.slow
def test_dask_collections_are_predicted_by_partition() -> None:
    da = pytest.importorskip("dask.array")
    X, y = load_iris(return_X_y=True)
    model = forest(task="classification").fit(X, y)
    predicted = model.predict(da.from_array(X, chunks=(40, 4)))
    assert np.array_equal(predicted.compute(scheduler="synchronous"), model.predict(X))


def postcodes(folder: Path) -> tuple[Path, Path, list[float]]:
    """Training rows with postcodes; new rows, whose postcodes all look like numbers, and their prices."""
    prices = {"01000": 10.0, "02000": 20.0, "SI-3": 30.0, "04000": 40.0}
    rng = np.random.default_rng(0)
    codes = rng.choice(list(prices), 400)
    table = pd.DataFrame(
        {"zip": codes, "size": rng.normal(size=400), "price": [prices[code] for code in codes]}
    )
    new = table[table.zip != "SI-3"].head(6)
    table.to_csv(folder / "train.csv", index=False)
    new.to_csv(folder / "new.csv", index=False)
    return folder / "train.csv", folder / "new.csv", new.price.tolist()


def test_categories_that_look_like_numbers_in_a_file_are_those_of_the_training_data(tmp_path: Path) -> None:
    train, new, prices = postcodes(tmp_path)
    model = forest(min_samples_leaf=1).fit(pd.read_csv(train)[["zip", "size"]], pd.read_csv(train).price)
    for data in (new, str(new), fr.CSVFile(new), fr.Dataset(new)):
        assert np.allclose(model.forest_.predict(data).column(0).to_numpy(), prices, atol=2)
    tree = fr.ReliefTree().fit(train, "price")
    for rows in (new, fr.Dataset(new)):
        assert np.allclose(tree.predict(rows), prices, atol=2)
    ranking = fr.rank(train, "price", ranker=fr.ForestRanker(n_estimators=30))
    found = evaluate(train, ranking, test=new, target="price", n_neighbors=3)
    assert found.measures["r2"].max() > 0.9


def test_categories_of_numbers_are_read_as_numbers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"level": rng.choice([1, 2, 30], 300), "flag": rng.random(300) < 0.5})
    table["y"] = (table.level == 30) + 2.0 * table.flag
    features = table[["level", "flag"]].astype("category")
    model = forest().fit(features, table.y)
    table.to_csv(tmp_path / "new.csv", index=False)
    table.assign(level=table.level.map("{:.1f}".format)).to_csv(tmp_path / "points.csv", index=False)
    for name in ("new.csv", "points.csv"):
        assert np.allclose(model.forest_.predict(tmp_path / name).column(0).to_numpy(), table.y, atol=0.1)


def test_dates_of_a_file_are_times_of_a_frame(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 1000, 300), unit="D")
    frame = pd.DataFrame({"day": days, "other": rng.normal(size=300)})
    late = (frame.day > "2021-06-01").astype(float)
    frame.to_csv(tmp_path / "days.csv", index=False)
    model = forest(task="regression").fit(frame, late)
    assert np.array_equal(model.forest_.predict(tmp_path / "days.csv").column(0), model.predict(frame))


def test_a_target_that_no_row_has_is_refused() -> None:
    X = np.random.default_rng(0).normal(size=(60, 2))
    with pytest.raises(fr.SettingError, match="no row has the target 'y1'"):
        forest().fit(X, np.column_stack([X[:, 0], np.full(60, np.nan)]))


def test_a_forest_without_errors_is_better_than_guessing() -> None:
    x = np.random.default_rng(0).integers(0, 4, 400).astype(float)
    ranker = fr.ForestRanker(n_estimators=30)
    with pytest.warns(fr.SpoiledDataWarning, match="leak"):
        ranking = fr.rank({"x": x, "y": 10 * x}, "y", task="regression", ranker=ranker)
    assert ranking.model_error is not None
    assert ranking.model_error["y"].error == 0
    assert ranking.model_error["y"].is_better


@pytest.mark.parametrize("top", [-1, "all", 2.5, True])
def test_a_wrong_number_of_pairs_is_an_error(top):
    X = np.random.default_rng(0).normal(size=(50, 3))
    forest = fr.ForestRanker(keep_trees=True, n_estimators=2).fit(X, X[:, 0]).forest_
    with pytest.raises(fr.SettingError, match=f"top: {top!r} is not a number of pairs; use 0 or more"):
        forest.interactions(top)


@pytest.mark.parametrize("ranker", [fr.ForestRanker(keep_trees=True, n_estimators=5), fr.ReliefTree()])
def test_numbers_in_place_of_categories_are_an_error(ranker):
    rng = np.random.default_rng(0)
    colours, numbers = rng.choice(["blue", "red", "1"], 90), rng.choice([1, 2], 90)
    frame = pd.DataFrame({"colour": colours, "number": pd.Categorical(numbers)})
    fitted = sklearn.clone(ranker).fit(frame[["colour"]].replace("1", "green"), (colours == "red") * 1.5)
    wrong_columns = [[1.0, 2.0], [True, False], pd.to_datetime(["2020-01-01", None]), pd.Categorical([1, 2])]
    for wrong in wrong_columns:
        with pytest.raises(
            fr.ColumnTypeError, match="column 'colour' .* categories such as 'blue'; use one type"
        ):
            fitted.predict(pd.DataFrame({"colour": wrong}))
    # Nothing but missing values has no type, and numbers may be categories.
    assert len(set(fitted.predict(pd.DataFrame({"colour": [np.nan, np.nan]})))) == 1
    fitted = sklearn.clone(ranker).fit(frame[["number"]], numbers * 1.5)
    one, two, _ = fitted.predict(pd.DataFrame({"number": [1.0, 2.0, np.nan]}))
    assert one < two


def test_postcodes_read_as_numbers_are_an_error():
    codes = np.repeat(["01000", "02000", "nan"], 30)
    frame = pd.DataFrame({"code": codes})
    model = fr.ForestRanker(keep_trees=True, n_estimators=5).fit(frame, (codes == "01000") * 1.5)
    for wrong in ([1000, 2000], [1000.0, np.nan]):
        with pytest.raises(fr.ColumnTypeError, match="column 'code' is of type .* such as '01000'"):
            model.predict(pd.DataFrame({"code": wrong}))
