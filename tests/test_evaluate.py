"""Judging rankings: neighbours and predictions beside a plain twin, scikit-learn and published figures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.preprocessing import MinMaxScaler

import ferrank as fr
from ferrank.evaluate import Evaluation, WeightedNeighbors, evaluate
from reference import neighbors as reference
from tables import NOMINAL, values

DATA = Path(__file__).parent / "data"
PUBLISHED = json.loads((DATA / "golden" / "published-neighbors.json").read_text())
CONVENTIONS = st.sampled_from(["textbook", "clus"])
# No "close" ones: these differ by less than the twin can place.
FEATURES = ("few", "real", "boolean", "constant", "integer", *NOMINAL)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[pa.Table, pa.Table, list[float]]:
    """Training and test rows of the same columns with a number `y` and a class `z`; importances."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_train, n_test = draw(st.integers(4, 30)), draw(st.integers(2, 12))
    kinds = draw(st.lists(st.sampled_from(FEATURES), min_size=1, max_size=5))
    missing = [draw(st.sampled_from([0.0, 0.0, 0.3])) for _ in kinds]
    columns = {
        f"x{number}": values(kind, n_train + n_test, rng, share)
        for number, (kind, share) in enumerate(zip(kinds, missing, strict=True))
    }
    columns["y"] = values("real", n_train + n_test, rng, draw(st.sampled_from([0.0, 0.3])))
    columns["z"] = values("several", n_train + n_test, rng, draw(st.sampled_from([0.0, 0.3])))
    # The first row misses nothing; it may go to either part.
    table = pa.table(columns).take(rng.permutation(n_train + n_test))
    weights = draw(
        st.lists(st.sampled_from([-1.0, 0.0, 0.25, 1.0, 3.0]), min_size=len(kinds), max_size=len(kinds))
    )
    return table.slice(0, n_train), table.slice(n_train), weights


@pytest.mark.slow
@given(pairs(), st.integers(1, 4), CONVENTIONS)
@settings(max_examples=60, deadline=None)
def test_predictions_are_those_of_a_plain_twin(
    pair: tuple[pa.Table, pa.Table, list[float]], k: int, conventions: str
) -> None:
    train, test, weights = pair
    columns = [name for name in train.column_names if name.startswith("x")]
    trains, tests = ([table[name].to_pylist() for name in columns] for table in (train, test))
    known = {name: [v is not None for v in test[name].to_pylist()] for name in "yz"}
    both = np.array(known["y"]) | np.array(known["z"])
    if not both.any() or train["y"].null_count == len(train) or train["z"].null_count == len(train):
        return
    found = evaluate(
        train,
        {"given": weights},
        test=test,
        target=["y", "z"],
        n_neighbors=min(k, len(_labelled(train))),
        conventions=conventions,
        unlabelled="ignore",
    )
    kept, asked = _labelled(train), _labelled(test)
    trains = [[column[row] for row in kept] for column in trains]
    tests = [[column[row] for row in asked] for column in tests]
    y, z = ([train[name].to_pylist()[row] for row in kept] for name in "yz")
    for number, importances in enumerate(([1.0] * len(columns), weights)):
        near = reference.nearest(trains, tests, importances, min(k, len(kept)), conventions)
        errors = [
            (reference.mean(y, rows) - true) ** 2
            for rows, true in zip(near, [test["y"].to_pylist()[row] for row in asked], strict=True)
            if true is not None
        ]
        if errors:
            assert found.by_target["rmse"][number, 0] == pytest.approx(np.sqrt(np.mean(errors)), rel=1e-9)
        right = [
            reference.majority(z, rows) == true
            for rows, true in zip(near, [test["z"].to_pylist()[row] for row in asked], strict=True)
            if true is not None
        ]
        if right:
            assert found.by_target["accuracy"][number, 1] == pytest.approx(np.mean(right))


def _labelled(table: pa.Table) -> list[int]:
    pairs = zip(table["y"].to_pylist(), table["z"].to_pylist(), strict=True)
    return [row for row, pair in enumerate(pairs) if pair != (None, None)]


@pytest.fixture(scope="module")
def parts() -> tuple[pd.DataFrame, pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(300, 6)), columns=list("abcdef"))
    frame["number"] = frame.a + frame.b**2
    frame["word"] = np.where(frame.a > 0.5, "high", np.where(frame.c > 0, "some", "low"))
    return frame[:200], frame[200:], np.array([2.0, 1.0, 0.5, 0.0, 0.01, -3.0])


@pytest.mark.parametrize("k", [1, 5, 15])
def test_figures_are_those_of_scikit_learn(
    parts: tuple[pd.DataFrame, pd.DataFrame, np.ndarray], k: int
) -> None:
    train, test, weights = parts
    scaler = MinMaxScaler(clip=True).fit(train[list("abcdef")])
    X, Q = (
        scaler.transform(part[list("abcdef")]) * np.sqrt(np.maximum(weights, 0)) for part in (train, test)
    )
    found = evaluate(train, {"w": weights}, test=test, target="number", drop=["word"], n_neighbors=k)
    predicted = KNeighborsRegressor(k).fit(X, train.number).predict(Q)
    errors = np.mean((predicted - test.number) ** 2)
    assert found.value("rmse", "w") == pytest.approx(np.sqrt(errors), rel=1e-12)
    assert found.value("rrmse", "w") == pytest.approx(np.sqrt(errors / train.number.var(ddof=0)), rel=1e-12)
    found = evaluate(train, {"w": weights}, test=test, target="word", drop=["number"], n_neighbors=k)
    predicted = KNeighborsClassifier(k).fit(X, train.word).predict(Q)
    assert found.value("macro_f1", "w") == pytest.approx(f1_score(test.word, predicted, average="macro"))
    assert found.value("error_rate", "w") == pytest.approx(np.mean(predicted != test.word))


@pytest.fixture(scope="module")
def emotions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """MULAN's training and test files, which stand one after the other in ours, and the labels."""
    lines = (DATA / "emotions.arff").read_text().splitlines()
    data = next(number for number, line in enumerate(lines) if line.lower().startswith("@data")) + 1
    rows = [line for line in lines[data:] if line.strip()]
    folder = tmp_path_factory.mktemp("emotions")
    for name, part in {"train": rows[:391], "test": rows[391:]}.items():
        (folder / f"{name}.arff").write_text("\n".join([*lines[:data], *part]))
    return folder / "train.arff", folder / "test.arff", DATA / "emotions.xml"


def test_the_published_baseline_to_every_digit(emotions: tuple[Path, Path, Path]) -> None:
    train, test, labels = emotions
    found = evaluate(train, [], test=test, labels=labels, conventions="clus").measures
    assert {name: f"{values[0]:.2e}" for name, values in found.items()} == {
        name: f"{value:.2e}" for name, value in PUBLISHED["unweighted"].items()
    }
    textbook = evaluate(train, [], test=test, labels=labels).measures
    assert textbook["coverage"][0] < found["coverage"][0] - 0.9


@pytest.mark.parametrize(
    ("theirs", "ensemble"),
    [("Bagging", "bagging"), ("RForest", "random_forest"), ("ExtraTrees", "extra_trees")],
)
def test_published_rankings_within_their_noise(
    emotions: tuple[Path, Path, Path], theirs: str, ensemble: str
) -> None:
    """Single runs with ten trees were published; here is the mean of five."""
    train, test, labels = emotions
    rankings = {
        f"{seed}": fr.rank(
            train, labels=labels, ensemble=ensemble, n_estimators=10, ties="lowest", random_state=seed
        )
        for seed in range(5)
    }
    found = evaluate(train, rankings, test=test, labels=labels, conventions="clus").measures
    for measure, within in {"pooled_auprc": 0.04, "ranking_loss": 0.015}.items():
        published = PUBLISHED["genie3"][theirs][measure]
        assert found[measure][1:].mean() == pytest.approx(published, abs=within)
        better = np.sign(published - found[measure][0])
        assert (found[measure][1:].mean() - found[measure][0]) * better > 0


def test_rankings_by_any_way_are_judged_alike(emotions: tuple[Path, Path, Path], tmp_path: Path) -> None:
    train, test, labels = emotions
    ranking = fr.rank(train, labels=labels, n_estimators=3, scores=("genie3", "permutation"))
    ways: list = [ranking, {"own": ranking}]
    for suffix in ("csv", "parquet", "arrow", "json"):
        ranking.save(tmp_path / f"forest.{suffix}")
        ways.append(tmp_path / f"forest.{suffix}")
    ways.append({name: ranking.importances(name) for name in ranking.scores})
    ways.append(
        {name: dict(zip(ranking.features, ranking.importances(name), strict=True)) for name in ranking.scores}
    )
    found = [evaluate(train, way, test=test, labels=labels) for way in ways]
    assert found[0].rankings == ["unweighted", "genie3", "permutation"]
    assert found[1].rankings == ["unweighted", "own:genie3", "own:permutation"]
    assert found[2].rankings == ["unweighted", "forest:genie3", "forest:permutation"]
    for other in found[1:]:
        for name, figures in found[0].measures.items():
            np.testing.assert_array_equal(figures, other.measures[name])
    both = evaluate(train, [ways[2], str(ways[3])], test=test, labels=labels, n_jobs=1)
    assert both.rankings[3:] == ["forest:genie3 (2)", "forest:permutation (2)"]
    np.testing.assert_array_equal(
        both.measures["pooled_auprc"][[1, 2]], both.measures["pooled_auprc"][[3, 4]]
    )


def test_only_shares_of_importances_count(parts: tuple[pd.DataFrame, pd.DataFrame, np.ndarray]) -> None:
    train, test, weights = parts
    rankings = {"w": weights, "1024 w": 1024 * weights, "none": np.zeros(6), "worse than none": -(weights**2)}
    found = evaluate(train, rankings, test=test, target="number", drop=["word"])
    rrmse = dict(zip(found.rankings, found.measures["rrmse"], strict=True))
    assert rrmse["w"] == rrmse["1024 w"] != rrmse["unweighted"] == rrmse["none"] == rrmse["worse than none"]


def test_results_as_tables_and_files(
    parts: tuple[pd.DataFrame, pd.DataFrame, np.ndarray], tmp_path: Path
) -> None:
    train, test, weights = parts
    found = evaluate(train, {"w": weights}, test=test, target=["number", "word"])
    assert set(found.measures) == {"rrmse", "rmse", "r2", "error_rate", "accuracy", "macro_f1"}
    assert found.by_target["rrmse"].shape == (2, 2)
    assert np.isnan(found.by_target["rrmse"][:, 1]).all()
    assert found.to_pandas().set_index("ranking").loc["w", "rrmse"] == found.value("rrmse", "w")
    for suffix, read in {"csv": pd.read_csv, "parquet": pd.read_parquet, "arrow": pd.read_feather}.items():
        found.save(tmp_path / f"found.{suffix}")
        pd.testing.assert_frame_equal(
            read(tmp_path / f"found.{suffix}"), found.to_pandas(), check_dtype=False
        )
    found.save(tmp_path / "found.json")
    saved = json.loads((tmp_path / "found.json").read_text())
    assert saved["by_target"]["rrmse"][0][1] is None
    assert saved["measures"]["r2"] == found.measures["r2"].tolist()
    text = found.to_text()
    assert text.startswith(
        "1 ranking judged by 15 nearest neighbours, multi-target, 200 training and 100 test"
    )
    assert "RRMSE" in text
    assert "<table>" in found._repr_html_()
    with pytest.raises(fr.SettingError, match="measure: no 'rmsse' here; there are rrmse"):
        found.value("rmsse", "w")
    with pytest.raises(fr.SettingError, match="unknown suffix"):
        found.save(tmp_path / "found.txt")


def judge(train: object, rankings: object, test: object, **settings: object) -> Evaluation:
    return evaluate(train, rankings, test=test, **({"target": "y", "n_neighbors": 1} | settings))


SMALL = {"a": [1.0, 2.0, 3.0], "b": ["x", "y", "x"], "y": [1.0, 2.0, 4.0]}


def test_what_is_wrong_is_named(tmp_path: Path) -> None:
    ok = {"a": 1.0, "b": 2.0}
    cases: list[tuple[object, object, dict[str, object], type[Exception], str]] = [
        (
            {"r": {"a": 1.0}},
            SMALL,
            {},
            fr.DataError,
            "r: does not rank 'b' of table; the nearest it has are 'a'",
        ),
        ({"r": ok | {"c": 1.0}}, SMALL, {}, fr.DataError, "r: ranks 'c', no feature of table"),
        ({"r": [1.0]}, SMALL, {}, fr.DataError, "r: importances of shape"),
        ({"r": [1.0, np.nan]}, SMALL, {}, fr.DataError, "r: the importance of 'b' is not a finite number"),
        ({"r": ["p", "q"]}, SMALL, {}, fr.ColumnTypeError, "r: its importances are not numbers"),
        ([[1.0, 2.0]], SMALL, {}, fr.ColumnTypeError, "give arrays a name"),
        (3, SMALL, {}, fr.ColumnTypeError, "cannot judge a int"),
        ([], SMALL, {"n_neighbors": 4}, fr.SettingError, "4 neighbors of 3 training rows"),
        ([], SMALL, {"n_neighbors": 0}, fr.SettingError, "at least 1"),
        ([], SMALL, {"n_neighbors": "few"}, fr.SettingError, "n_neighbors: 'few'"),
        (
            [],
            SMALL,
            {"conventions": "weka"},
            fr.SettingError,
            "conventions: 'weka' is not 'textbook' or 'clus'",
        ),
        ([], SMALL, {"threshold": 1.5}, fr.SettingError, r"threshold: 1.5 is not in \[0, 1\]"),
        ([], SMALL, {"unlabelled": "keep"}, fr.SettingError, "unlabelled: 'keep'"),
        ([], SMALL, {"label_weights": [1.0]}, fr.SettingError, "for multi-label targets, not for regression"),
        ([], {"a": [1.0], "y": [1.0]}, {}, fr.DataError, "no column 'b', which the training data have"),
        ([], SMALL | {"a": ["p", "q", "r"]}, {}, fr.ColumnTypeError, "column 'a' is of type"),
        ([], SMALL | {"y": [None] * 3}, {}, fr.DataError, "none of 3 rows has a target value"),
        ([], {name: column[:0] for name, column in SMALL.items()}, {}, fr.DataError, "there are no rows"),
        ([], SMALL | {"a": [1.0, np.inf, 2.0]}, {}, fr.DataError, "column 'a': the value inf was found"),
        ([], SMALL, {"target": "z"}, fr.DataError, "no column 'z'"),
    ]
    for rankings, test, settings_, error, message in cases:
        with pytest.raises(error, match=message):
            judge(SMALL, rankings, test, **settings_)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no column 'feature'"),
        ("feature,rank,genie3\n", "ranks no features"),
        ("feature,rank\na,1\nb,2\n", "has no column of importances"),
        ("feature,rank,genie3\na,1,0.5\nb,2\n", "row 3 has 2 of 3 columns"),
        ("feature,rank,genie3\na,1,0.5\nb,2,much\n", "column 'genie3': could not convert"),
        ("feature,rank,genie3\na,1,0.5\na,2,0.1\nb,3,0.1\n", "ranks 'a' 2 times"),
        ("feature,rank,genie3\nA,1,0.5\nb,2,0.1\n", "does not rank 'a' of table; the nearest it has are"),
        ("\x00\xff", "is not a saved ranking"),
    ],
)
def test_broken_ranking_files_are_named(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "broken.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(fr.DataError, match=f"broken.*{message}"):
        judge(SMALL, path, SMALL)


def test_ranking_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(fr.ResourceError, match=r"none\.csv: no such file"):
        judge(SMALL, tmp_path / "none.csv", SMALL)
    with pytest.raises(fr.SettingError, match="not read from"):
        judge(SMALL, tmp_path / "none.txt", SMALL)


def test_odd_data() -> None:
    one = {"a": [1.0], "y": [2.0]}
    found = judge(one, [], one)
    assert (found.measures["rmse"][0], found.n_train) == (0.0, 1)
    assert np.isnan(found.measures["rrmse"][0])
    constant = {"a": [1.0] * 5, "b": ["x"] * 5, "c": [None] * 5, "y": [1.0, 2.0, 3.0, 4.0, 5.0]}
    # All are equally far: the first rows are nearest.
    assert judge(constant, [], constant, n_neighbors=2).measures["rmse"][0] == pytest.approx(np.sqrt(4.25))
    # The mean of three times 0.1 is another number.
    target = {"a": [1.0, 2.0, 3.0], "y": [0.1] * 3}
    assert np.isnan(judge(target, [], target, n_neighbors=2).measures["rrmse"][0])
    wide = {f"x{number}": np.arange(4.0) for number in range(2000)} | {"y": [1.0, 2.0, 3.0, 4.0]}
    assert judge(wide, [], wide).measures["rmse"][0] == 0.0
    names = {"id": [f"row {number}" for number in range(300)], "y": np.arange(300.0)}
    assert judge(names, [], names).measures["rmse"][0] == 0.0
    others = {"id": [f"other {number}" for number in range(300)], "y": np.zeros(300)}
    assert judge(names, [], others).measures["rmse"][0] == 0.0
    huge = {"a": [-1e308, 0.0, 1e308], "y": [1.0, 2.0, 3.0]}
    assert judge(huge, [], huge).measures["rmse"][0] == 0.0
    extra = {"a": [1.0], "more": [[1, 2]], "y": [2.0]}
    assert judge(one, [], extra).measures["rmse"][0] == 0.0


def test_labels_missing_in_training_rows_count_as_unknown_and_in_test_rows_are_an_error() -> None:
    train = {"x": [0.0, 0.1, 1.0], "p": [True, None, False], "q": [None, None, True]}
    test = {"x": [0.0, 1.0], "p": [True, False], "q": [True, True]}
    found = evaluate(
        train, [], test=test, target=["p", "q"], task="multi-label", n_neighbors=1, unlabelled="ignore"
    )
    assert found.measures["hamming_loss"][0] == 0.0
    broken = test | {"p": [True, None]}
    with pytest.raises(fr.DataError, match="the label 'p' is missing in 1 test rows"):
        evaluate(
            train, [], test=broken, target=["p", "q"], task="multi-label", n_neighbors=1, unlabelled="ignore"
        )


def test_label_weights_by_name_or_order(emotions: tuple[Path, Path, Path]) -> None:
    train, test, labels = emotions
    plain = evaluate(train, [], test=test, labels=labels)
    weights = dict.fromkeys(plain.targets, 0.0) | {plain.targets[2]: 2.0}
    by_name = evaluate(train, [], test=test, labels=labels, label_weights=weights)
    by_order = evaluate(train, [], test=test, labels=labels, label_weights=list(weights.values()))
    assert by_name.to_dict()["measures"] == by_order.to_dict()["measures"]
    assert by_name.measures["average_auprc"][0] == plain.by_target["auprc"][0, 2]
    for wrong, message in [
        ([1.0], "1 weights for 6 labels"),
        ({"no": 1.0}, "'no' is no label"),
        ({plain.targets[0]: 1.0}, "has no weight"),
        ([-1.0] * 6, "not negative"),
        ([0.0] * 6, "not all 0"),
        (["a"] * 6, "use numbers"),
    ]:
        with pytest.raises(fr.SettingError, match=f"label_weights: .*{message}"):
            evaluate(train, [], test=test, labels=labels, label_weights=wrong)


@pytest.mark.parametrize("hierarchy", [None, {"a": None, "b": None, "a/x": "a", "a/y": "a", "never": None}])
def test_a_hierarchy_is_judged_as_its_closed_label_sets_are_by_weight(hierarchy: dict | None) -> None:
    rng = np.random.default_rng(0)
    X = rng.random((120, 2))
    sets = [["a/x"] if x > 0.6 else ["a/y", "b"] if x > 0.3 else ["b"] if x > 0.1 else [] for x in X[:, 0]]
    closed = {"a": {"a/x", "a/y"}, "a/x": {"a/x"}, "a/y": {"a/y"}, "b": {"b"}}
    features = pa.table({"x0": X[:, 0], "x1": X[:, 1]})
    labels = pa.table({name: [bool(below & set(row)) for row in sets] for name, below in closed.items()})
    tree = features.append_column("y", pa.array(sets))
    flat = features
    for name in closed:
        flat = flat.append_column(name, labels[name])
    ranking = {"first": [1.0, 0.0]}
    found = evaluate(
        tree[:80],
        ranking,
        test=tree[80:],
        target="y",
        hierarchy=hierarchy,
        hierarchy_decay=0.5,
        n_neighbors=5,
    )
    expected = evaluate(
        flat[:80],
        ranking,
        test=flat[80:],
        target=list(closed),
        label_weights={"a": 1.0, "a/x": 0.5, "a/y": 0.5, "b": 1.0},
        n_neighbors=5,
    )
    assert (found.task, expected.task, found.targets) == ("hierarchical", "multi-label", expected.targets)
    for name, figures in expected.measures.items():
        np.testing.assert_array_equal(found.measures[name], figures, err_msg=name)


def test_label_sets_without_any_label_cannot_be_judged_by() -> None:
    table = pa.table({"x": [1.0, 2.0, 3.0], "y": pa.array([[], [], []], pa.list_(pa.string()))})
    with pytest.raises(fr.DataError, match="no row of either source has a label"):
        evaluate(table, {"one": [1.0]}, test=table, target="y", hierarchy={"a": None}, n_neighbors=1)


@pytest.mark.parametrize(
    ("threshold", "predicted"),
    [(0.2, "pqr"), (0.25, "pqr"), (0.3, "pq"), (0.5, "pq"), (0.75, "p"), (0.8, "")],
)
def test_labels_are_predicted_from_a_share_of_the_neighbours_on(threshold: float, predicted: str) -> None:
    """Of the four neighbours three have p, two have q, one has r (Petković et al. 2023, §3.1)."""
    train = {"x": [0.0, 0.1, 0.2, 0.3], "p": [1, 1, 1, 0], "q": [1, 1, 0, 0], "r": [1, 0, 0, 0]}
    test = {"x": [0.1, 0.2], "p": [1, 0], "q": [1, 0], "r": [0, 1]}
    has = [{"p", "q"}, {"r"}]
    kinds = {"task": "multi-label", "target": ["p", "q", "r"]}
    found = evaluate(train, [], test=test, threshold=threshold, n_neighbors=4, **kinds)
    assert found.settings["threshold"] == threshold
    judge = WeightedNeighbors(4, threshold=threshold)
    judged = judge(pa.table(train), [], pa.table(test), kinds | {"hierarchy": None})
    usual = evaluate(train, [], test=test, n_neighbors=4, **kinds).measures
    wanted = {
        "hamming_loss": np.mean([len(one ^ set(predicted)) / 3 for one in has]),
        "subset_accuracy": np.mean([one == set(predicted) for one in has]),
        "micro_recall": sum(len(one & set(predicted)) for one in has) / 3,
        "multilabel_accuracy": np.mean(
            [len(one & set(predicted)) / len(one | set(predicted)) for one in has]
        ),
    }
    for measures in (found.measures, judged.measures):
        for name, value in wanted.items():
            assert measures[name][0] == pytest.approx(value), name
        for name in ("pooled_auprc", "average_auroc", "one_error", "coverage", "ranking_loss"):
            assert measures[name][0] == usual[name][0], name
