"""Rankings that use rows without a target, and rankings without any target."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrank as fr
from ferrank.cli.main import main
from reference import distance
from reference.distance import features_of
from reference.relief import influences, semi_supervised
from relief_checks import MANY, assert_close, importances, several
from tables import NOMINAL, NUMERIC, tables

many_cases = settings(max_examples=80, derandomize=True, deadline=None)
ENDS = st.sampled_from([(0.0, 1.0), (0.25, 0.75), (0.5, 0.5), (0.0, 0.0)])


def labelled_rows(table: pa.Table, targets: list[str]) -> list[bool]:
    return np.any([table[name].is_valid().to_numpy() for name in targets], axis=0).tolist()


def assert_relief_agrees(
    table: pa.Table, targets: list[str], apart: np.ndarray, ends: tuple, **asked
) -> None:
    labelled = labelled_rows(table, targets)
    features = features_of(table, [name for name in table.column_names if name not in targets])
    found = importances(table, targets, unlabelled="use", influence=ends, **MANY, **asked)
    assert_close(found, several(lambda **scheme: semi_supervised(features, apart, labelled, ends, **scheme)))


@pytest.mark.slow
@many_cases
@given(
    tables(
        st.lists(st.sampled_from(["real", "few", "several"]), min_size=1, max_size=3),
        features=(*NUMERIC, *NOMINAL),
        missing=True,
        missing_targets=True,
    ),
    ENDS,
)
def test_relief_agrees_with_the_reference(case, ends):
    table, targets = case
    if targets == ["y0"] and pa.types.is_string(table["y0"].type) and all(labelled_rows(table, targets)):
        return  # ReliefF, which has no unlabelled rows to use
    assert_relief_agrees(table, targets, distance.mean_distance(features_of(table, targets)), ends)


@pytest.mark.slow
@many_cases
@given(
    tables(
        st.lists(st.just("boolean"), min_size=2, max_size=6),
        features=(*NUMERIC, *NOMINAL),
        missing=True,
        missing_targets=True,
    ),
    ENDS,
)
def test_relief_of_labels_agrees_with_the_reference(case, ends):
    table, targets = case
    # A label that no row lacks or has is told by its name alone.
    targets = [name for name in targets if len(set(table[name].drop_null().to_pylist())) == 2]
    if len(targets) < 2:
        return
    apart = distance.hamming(distance.label_sets(features_of(table, targets)), dict.fromkeys(targets, 1.0))
    assert_relief_agrees(table, targets, apart, ends, task="multi-label")


def test_influences_worked_by_hand():
    # Rows 1 and 2 are 0.2 and 0.6 from the only row with a target, row 3 halfway between the two.
    d = np.array([[0.0, 0.2, 0.6, 0.4]]).T
    found = influences(np.hstack([d, np.zeros((4, 3))]), [True, False, False, False], (0.25, 0.75))
    assert found == pytest.approx([1.0, 0.75, 0.25, 0.5])


@pytest.mark.parametrize("task", ["classification", "regression", "multi-target", "multi-label"])
def test_with_all_rows_labelled_relief_is_the_supervised_one(task):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(120, 5)), rng.normal(size=(120, 3))
    y = {"classification": y[:, 0] > 0, "regression": y[:, 0], "multi-label": y > 0}.get(task, y)
    X[::9, 1] = np.nan
    one, other = (
        fr.ReliefRanker(unlabelled=how, influence=ends, n_neighbors=(3, 9)).fit(X, y).result_
        for how, ends in [("error", None), ("use", (0.25, 0.5))]
    )
    assert one.task == task
    for score in one.scores:
        np.testing.assert_array_equal(one.importances(score), other.importances(score))
        np.testing.assert_array_equal(
            one.score(score).monte_carlo_error, other.score(score).monte_carlo_error
        )


def some_labels(n_rows: int = 300, n_labelled: int = 30) -> pd.DataFrame:
    """Two blobs in `a` and `b`, told by `y` for few rows; `c` and `d` are noise."""
    rng = np.random.default_rng(0)
    side = rng.integers(0, 2, n_rows)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 4)), columns=list("abcd"))
    frame[["a", "b"]] += 6 * side[:, None]
    frame["y"] = np.where(side == 1, "right", "left")
    frame.loc[n_labelled:, "y"] = None
    return frame


def test_full_supervision_leaves_unlabelled_rows_out():
    frame = some_labels()
    scores = ("genie3", "symbolic", "coverage", "permutation", "mdi_oob")
    ignoring = fr.rank(frame, "y", unlabelled="ignore", scores=scores)
    full = fr.rank(frame, "y", supervision=1, scores=scores)
    assert (full.n_rows, full.n_unlabelled) == (30, 270)
    for score in scores:
        np.testing.assert_array_equal(full.importances(score), ignoring.importances(score))


@pytest.mark.parametrize("ensemble", ["random_forest", "bagging", "extra_trees"])
@pytest.mark.parametrize("supervision", [0, 0.5])
def test_unlabelled_rows_help(ensemble, supervision):
    ranking = fr.rank(
        some_labels(),
        "y",
        ensemble=ensemble,
        bootstrap=True,
        supervision=supervision,
        scores=("genie3", "permutation"),
        by_target=True,
    )
    assert (ranking.n_rows, ranking.n_unlabelled) == (300, 270)
    assert "270 rows without a target took part" in str(ranking)
    # Each of the two tells all of the blobs, so that clustering alone may do with one.
    told = set(ranking.top(2)) & set(ranking.top(2, "permutation"))
    assert told == {"a", "b"} if supervision > 0 else ranking.top(1)[0] in {"a", "b"}
    # Features make up the rest of the impurity.
    assert (ranking.by_target().sum() > 0) == (supervision > 0)
    assert ranking.by_target().sum() < ranking.importances().sum()


def test_without_a_target_features_that_cluster_stand_above():
    frame = some_labels().drop(columns="y")
    ranking = fr.rank(frame, task="unsupervised", scores=("genie3", "symbolic"))
    assert (ranking.task, ranking.targets, ranking.n_rows) == ("unsupervised", [], 300)
    assert set(ranking.top(2)) == {"a", "b"}
    assert "4 features ranked without a target, 300 rows" in str(ranking)
    forest = fr.ForestRanker(task="unsupervised", scores=("genie3", "symbolic"))
    np.testing.assert_array_equal(forest.fit(frame).feature_importances_, ranking.importances())
    np.testing.assert_array_equal(
        forest.fit(frame, some_labels()["y"]).result_.importances(), ranking.importances()
    )
    # The same as the clustering beside a target that has no say.
    clustered = fr.rank(some_labels(), "y", supervision=0, scores=("genie3", "symbolic"))
    np.testing.assert_array_equal(clustered.importances("symbolic"), ranking.importances("symbolic"))


def test_bits_depend_neither_on_threads_nor_on_the_container():
    frame = some_labels()
    frame["word"] = pd.Categorical(np.where(frame["a"] > frame["c"], "p", "q"))
    frame.loc[::7, "word"] = None
    frame.loc[::5, "b"] = np.nan
    batches = pa.Table.from_pandas(frame, preserve_index=False).to_batches(max_chunksize=37)
    for ranker in (
        fr.ForestRanker(supervision=0.4, n_jobs=1),
        fr.ReliefRanker(influence=(0.1, 0.9), n_jobs=1),
    ):
        one = fr.rank(frame, "y", ranker=ranker)
        other = fr.rank(pa.Table.from_batches(batches), "y", ranker=ranker.set_params(n_jobs=3))
        np.testing.assert_array_equal(one.importances(), other.importances())


@pytest.mark.parametrize(
    ("ranker", "asked", "message"),
    [
        ("forest", {"supervision": 1.5}, "supervision: 1.5 is not in 0 … 1"),
        ("forest", {"supervision": float("nan")}, "supervision: nan is not a finite number"),
        ("forest", {"unlabelled": "use"}, "set supervision in 0 … 1"),
        ("forest", {"unlabelled": "maybe"}, "unlabelled: 'maybe'"),
        ("forest", {"supervision": 0.5, "unlabelled": "error"}, "270 of 300 rows have no target value"),
        ("relief", {"influence": (0.5, 0.2)}, "influence: 0.5 and 0.2 are not in 0 … 1, the lower one first"),
        ("relief", {"influence": 0.5}, "influence: 0.5 is not a list of 2 values"),
        ("relief", {"influence": (0, 1), "unlabelled": "ignore"}, "influence: applies to rows without"),
        ("relief", {"unlabelled": "use", "scores": ("myopic",)}, "scores: myopic"),
    ],
)
def test_contradictions_are_refused(ranker, asked, message):
    with pytest.raises(fr.FerrankError, match=message):
        fr.rank(some_labels(), "y", ranker=ranker, **asked)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"target": "a"}, "unsupervised has no target, 'a' of table is one"),
        ({"supervision": 0.5}, "supervision: the task unsupervised has no target"),
        ({"scores": ("permutation",)}, "permutation needs a target to predict"),
        ({"by_target": True}, "the task unsupervised has no target"),
        ({"ranker": "relief"}, "Relief compares targets"),
    ],
)
def test_without_a_target_some_things_are_refused(asked, message):
    with pytest.raises(fr.SettingError, match=message):
        fr.rank(some_labels().drop(columns="y"), **asked, task="unsupervised")


def test_no_row_with_a_target_is_an_error():
    frame = some_labels().assign(y=None).astype({"y": "string"})
    for asked in ({"supervision": 0.5}, {"ranker": "relief", "unlabelled": "use"}):
        with pytest.raises(fr.DataError, match="none of 300 rows has a target value.*unsupervised"):
            fr.rank(frame, "y", **asked)


@pytest.mark.parametrize(
    "asked", [{"supervision": 0.0}, {"supervision": 0.5}, {"ranker": "relief", "influence": (0, 1)}]
)
def test_odd_tables(asked):
    one_row = pa.table({"a": [1.0], "y": [2.0]})
    assert fr.rank(one_row, "y", **asked).importances().tolist() == [0.0]
    odd = pa.table(
        {
            "constant": [1.0] * 20,
            "nothing": pa.array([None] * 20, pa.float64()),
            "each": [f"row {row}" for row in range(20)],
            "wide": [1e300 * (-1) ** row for row in range(20)],
            "y": [1.0, 2.0, *[None] * 18],
        }
    )
    ranking = fr.rank(odd, "y", **asked)
    assert np.isfinite(ranking.importances()).all()
    assert ranking.importances()[:2].tolist() == [0.0, 0.0]


def test_command_line(tmp_path, capsys):
    path = tmp_path / "few.csv"
    some_labels().to_csv(path, index=False)
    assert main(["rank", str(path), "--target", "y", "--supervision", "0.5", "--trees", "20", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["n_rows"], found["n_unlabelled"]) == (300, 270)
    assert (found["settings"]["supervision"], found["settings"]["unlabelled"]) == (0.5, "use")
    relief = ["rank", str(path), "--target", "y", "--ranker", "relief", "--influence", "0.25", "1", "--json"]
    assert main(relief) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["influence"] == [0.25, 1.0]
    assert main(["rank", str(path), "--drop", "y", "--unsupervised", "--trees", "20", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["targets"] == []
    assert main(["rank", str(path), "--target", "y", "--unsupervised"]) == 2
    assert "'y' of" in capsys.readouterr().err
