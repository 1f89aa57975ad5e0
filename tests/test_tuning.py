"""Choosing how much rows without a target count, and whether they can help."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

import ferrank as fr
from ferrank.cli.main import main
from reference import hierarchy
from reference.arff import domain, read_arff

DATA = Path(__file__).parent / "data"


def frame(n_rows: int = 200, n_labelled: int = 60) -> pd.DataFrame:
    """Two blobs in `a`, told by `side` and `height` for some rows; `b` and `c` are noise."""
    rng = np.random.default_rng(1)
    side = rng.integers(0, 2, n_rows)
    table = pd.DataFrame(rng.normal(size=(n_rows, 3)), columns=list("abc"))
    table["a"] += 8 * side
    table["side"] = np.where(side == 1, "right", "left")
    table["height"] = side + rng.normal(0, 0.1, n_rows)
    table.loc[n_labelled:, ["side", "height"]] = None
    return table


@pytest.mark.parametrize(
    ("target", "drop", "measure"),
    [("side", ["height"], "macro_f1"), ("height", ["side"], "error"), (["side", "height"], [], "error")],
)
def test_the_level_of_supervision(target, drop, measure):
    found = fr.tune(frame(), target, drop=drop, n_estimators=10, grid={"supervision": (0.0, 0.5, 1.0)})
    assert found.measure == measure
    assert found.values.shape == (3, 4)
    assert np.isfinite(found.values).all()
    better = max if measure == "macro_f1" else min
    assert found.values[found.best].mean() == better(found.values.mean(axis=1))
    direct = fr.rank(frame(), target, drop=drop, n_estimators=10, **found.best_params)
    np.testing.assert_array_equal(found.ranking.importances(), direct.importances())
    assert f"{found.values[found.best].mean():.4f}  best" in str(found)


def test_relief_is_tuned_with_one_search_for_all_numbers_of_neighbours():
    grid = {"influence": [(0.0, 0.5), (0.5, 1.0)], "n_neighbors": (3, 7)}
    found = fr.tune(frame(), "height", drop="side", ranker="relief", grid=grid, folds=2)
    assert [params["n_neighbors"] for params in found.candidates] == [3, 7, 3, 7]
    turned = {"n_neighbors": (3, 7), "influence": [(0.0, 0.5), (0.5, 1.0)]}
    one_by_one = fr.tune(frame(), "height", drop="side", ranker="relief", grid=turned, folds=2)
    order = [one_by_one.candidates.index(params) for params in found.candidates]
    np.testing.assert_array_equal(found.values, one_by_one.values[order])


def test_labels_are_judged_by_their_area():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    table = pa.table(
        {
            **{f"x{i}": X[:, i] for i in range(3)},
            "p": pa.array(X[:, 0] > 0, mask=np.arange(80) >= 40),
            "q": pa.array(X[:, 1] > 0, mask=np.arange(80) >= 40),
        }
    )
    found = fr.tune(table, ["p", "q"], n_estimators=5, grid={"supervision": (0.5, 1.0)}, folds=2)
    assert found.measure == "pooled_auprc"
    assert found.ranking.task == "multi-label"


def test_label_sets_of_a_hierarchy_are_judged_by_their_weighted_area():
    X = np.random.default_rng(0).normal(size=(120, 3))
    sets = [None if row % 2 else ["a/x"] if x > 0 else ["b"] for row, x in enumerate(X[:, 0])]
    table = pa.table({f"x{i}": X[:, i] for i in range(3)} | {"y": sets})
    asked = {"n_estimators": 5, "hierarchy": {"a": None, "b": None, "a/x": "a"}}
    grid = {"supervision": (0.3, 1.0)}
    found = fr.tune(table, "y", grid=grid, **asked)
    assert (found.measure, found.ranking.task, found.ranking.top(1)) == (
        "pooled_auprc",
        "hierarchical",
        ["x0"],
    )
    search = fr.SupervisionSearch(fr.ForestRanker("hierarchical", **asked), grid=grid).fit(X, sets)
    np.testing.assert_array_equal(search.result_.importances(), found.ranking.importances())


def test_the_default_grids_are_those_of_the_paper():
    table = frame(60, 24)
    forest = fr.tune(table, "height", drop="side", n_estimators=1, folds=2)
    assert [params["supervision"] for params in forest.candidates] == [w / 10 for w in range(11)]
    relief = fr.tune(table, "height", drop="side", ranker="relief", folds=2)
    assert len(relief.candidates) == 15 * 3
    assert all(low <= high for low, high in (params["influence"] for params in relief.candidates))


def test_search_in_the_style_of_scikit_learn():
    table = frame()
    X, y = table[["a", "b", "c"]], table["height"]
    search = fr.SupervisionSearch(
        fr.ForestRanker(n_estimators=10), grid={"supervision": (0.0, 1.0)}, n_features_to_select=1
    )
    assert clone(search).get_params()["ranker__n_estimators"] == 10
    search.fit(X, y)
    assert search.get_feature_names_out().tolist() == ["a"]
    assert search.transform(X).shape == (200, 1)
    results = search.cv_results_
    assert results["params"] == [{"supervision": 0.0}, {"supervision": 1.0}]
    best = int(np.argmax(results["mean_test_score"]))
    assert results["rank_test_score"][best] == 1
    assert (search.best_params_, search.best_score_) == (
        results["params"][best],
        results["mean_test_score"][best],
    )
    assert search.best_score_ < 0  # an error, greater is better


def test_a_search_is_a_ranker_of_tables_and_studies(tmp_path: Path) -> None:
    table = frame().drop(columns="side")
    forest = fr.ForestRanker(n_estimators=5, unlabelled="use", scores=("genie3",))
    search = fr.SupervisionSearch(forest, grid={"supervision": (0.0, 1.0)})
    by_fit = clone(search).fit(table[["a", "b", "c"]], table["height"])
    ranking = fr.rank(table, "height", ranker=search)
    assert ranking.importances().tolist() == by_fit.feature_importances_.tolist()
    with pytest.raises(fr.SettingError, match="resume: a search cannot be resumed"):
        fr.rank(table, "height", ranker=search, resume=tmp_path / "run.ferrank")

    rankers = {"search": search, **{name: clone(forest) for name in ("none", "full")}}
    rankers["none"].set_params(supervision=0.0)
    rankers["full"].set_params(supervision=1.0)
    splits = fr.evaluate.Repeated(0.7, 2)
    study = fr.evaluate.Study(
        {"blobs": fr.Dataset(table, "height")}, rankers, splits=splits, labelled=[30], folder=tmp_path
    )
    errors = study.run().values("rrmse")
    for split in errors.index:
        assert errors.loc[split, "search"] in {errors.loc[split, "none"], errors.loc[split, "full"]}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"folds": 40}, "folds: 40 of 60 rows with a target"),
        ({"folds": 1}, "folds: 1 is not a number of folds; use 2 or more"),
        ({"grid": {"supervision": ()}}, "grid: nothing to try"),
        ({"grid": {"supervision": (2,)}}, "supervision: 2 is not in 0 … 1"),
        (
            {"task": "unsupervised", "target": None, "drop": ["side", "height"]},
            "settings are judged by a target",
        ),
        ({"target": "nothing"}, "no column 'nothing'"),
    ],
)
def test_what_cannot_be_tuned(asked, message):
    with pytest.raises(fr.FerrankError, match=message):
        fr.tune(frame(), **({"target": "height", "drop": "side"} | asked))


def test_clusters_that_are_the_classes():
    table = frame()[["a", "side"]]
    assert fr.clustering_value(table, "side") == 1.0
    declared = pa.DictionaryArray.from_arrays(
        pa.array(table["side"].map({"left": 0, "right": 1}).astype("Int32")),
        ["left", "right", "nobody", "nowhere"],
    )
    assert fr.clustering_value({"a": table["a"], "side": declared}, "side") == 1.0
    noise = frame()[["b", "c", "side"]]
    assert abs(fr.clustering_value(noise, "side")) < 0.2


def test_the_clustering_value_by_hand():
    table = frame()[["a", "b", "height"]]
    X = table[["a", "b"]].to_numpy()
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    known = table["height"].notna().to_numpy()
    y = table["height"].to_numpy(dtype=float)[known]
    values = []
    for seed in range(5):
        clusters = KMeans(8, n_init=1, random_state=seed).fit_predict(X)[known]
        left = sum((clusters == c).mean() * y[clusters == c].var() for c in np.unique(clusters))
        values.append(1 - left / y.var())
    assert fr.clustering_value(table, "height") == pytest.approx(max(values))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["church_FUN", "eisen_GO-part"])
def test_the_clustering_value_of_a_hierarchy_by_hand(name):
    path = DATA / f"{name}.arff"
    table, parents = read_arff(path), hierarchy.of_domain(domain(path))
    sets = [hierarchy.closed(labels, parents) for labels in table["class"].to_pylist()]
    X = table.drop_columns("class").to_pandas().select_dtypes("number").to_numpy(dtype=float)
    X = X - np.nanmin(X, axis=0)
    X = X / np.where(np.nanmax(X, axis=0) > 0, np.nanmax(X, axis=0), 1)
    X = np.where(np.isnan(X), np.nanmean(X, axis=0), X)
    runs = [KMeans(8, n_init=1, random_state=seed).fit_predict(X) for seed in range(5)]

    weights = hierarchy.shares(sets, parents, 0.5)
    has = np.array([[label in labels for label in weights] for labels in sets], dtype=float)
    varies = has.var(axis=0) > 0

    def gone(clusters):
        left = sum((clusters == c).mean() * has[clusters == c].var(axis=0) for c in np.unique(clusters))
        shares = np.array(list(weights.values()))
        return (shares * (1 - left / np.where(varies, has.var(axis=0), 1)))[varies].sum()

    values = [gone(clusters) for clusters in runs]
    nominal = [field.name for field in table.schema if pa.types.is_string(field.type)]
    found = [fr.clustering_value(path, "class", hierarchy_decay=decay, drop=nominal) for decay in (0.5, 1.0)]
    assert found[0] == pytest.approx(max(values), rel=1e-9)
    assert found[1] != pytest.approx(max(values), rel=1e-3)


def test_rows_whose_labels_are_unknown_are_clustered_and_not_compared():
    side = np.repeat([0.0, 9.0], 40)
    sets = [["a/x"] if left else ["b"] for left in side == 0]
    sets[3] = sets[50] = None
    table = pa.table({"x": side + np.random.default_rng(0).normal(size=80), "y": sets})
    assert fr.clustering_value(table, "y") == pytest.approx(1.0)
    edges = {"a": None, "b": None, "a/x": "a", "nowhere": "a"}
    assert fr.clustering_value(table, "y", hierarchy=edges) == pytest.approx(1.0)
    same = table.set_column(1, "y", pa.array([["a"]] * 80))
    assert fr.clustering_value(same, "y", task="hierarchical", hierarchy={"a": None}) == 0.0


def test_a_category_for_each_row_is_clustered_by_what_else_there_is():
    n = 5000
    side = np.arange(n) % 2
    rows = {
        "row": [f"r{i}" for i in range(n)],
        "x": 9 * side + np.random.default_rng(0).normal(size=n),
        "y": np.where(side, "p", "q"),
    }
    assert fr.clustering_value(rows, "y") == 1.0
    n = 17_000
    rows = {"row": [f"r{i}" for i in range(n)], "y": [f"r{i}" for i in range(n)]}
    with pytest.raises(fr.DataError, match="centres of 17,000 clusters by 17,000 features and categories"):
        fr.clustering_value(rows, "y")


@pytest.mark.parametrize("column", [[None] * 4, [[], [], None, None], [np.nan] * 4])
def test_targets_of_which_there_is_nothing_to_tell(column):
    table = {"x": [1.0, 2.0, 3.0, 4.0], "y": pa.array(column, from_pandas=True)}
    if any(value is not None and value == [] for value in column):
        assert fr.clustering_value(table, "y") == 0.0
    else:
        with pytest.raises(fr.DataError, match="no row has a target"):
            fr.clustering_value(table, "y")


def test_nominal_and_missing_features_are_clustered():
    rng = np.random.default_rng(0)
    word = rng.choice(["p", "q", "r"], 90)
    holes = pa.array(rng.normal(size=90) * 1e300, mask=rng.random(90) < 0.3)
    table = pa.table({"word": word, "holes": holes, "nothing": pa.array([None] * 90, pa.string()), "y": word})
    assert fr.clustering_value(table, "y") > 0.5
    assert adjusted_rand_score(word, word) == 1
    one = pa.table({"x": [1.0, 1.0], "y": ["a", "b"]})
    assert fr.clustering_value(one, "y") == 0.0


def test_command_line(tmp_path, capsys):
    path = tmp_path / "some.csv"
    frame().to_csv(path, index=False)
    tune = [
        "tune",
        str(path),
        "--target",
        "height",
        "--drop",
        "side",
        "--trees",
        "2",
        "--folds",
        "2",
        "--json",
    ]
    assert main([*tune, "--output", str(tmp_path / "best.parquet")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["candidates"]) == 11
    assert fr.Ranking.load(tmp_path / "best.parquet").features == ["a", "b", "c"]
    inspect = ["inspect", str(path), "--clustering", "--target", "side", "--drop", "height"]
    assert main(inspect) == 0
    assert "clustering value: " in capsys.readouterr().out
    assert main([*inspect, "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)["clustering"] <= 1
    for option in (["--target", "side"], ["--hierarchy-decay", "0.5"]):
        assert main(["inspect", str(path), *option]) == 2
        assert "goes with --clustering" in capsys.readouterr().err


def test_hierarchies_on_the_command_line(tmp_path, capsys):
    data, edges = tmp_path / "some.parquet", tmp_path / "edges.csv"
    x = np.random.default_rng(0).normal(size=60)
    sets = [["koala"] if value > 0 else ["plant"] for value in x]
    pa.parquet.write_table(pa.table({"x": x, "noise": x[::-1], "y": sets}), data)
    edges.write_text("parent,child\n,animal\n,plant\nanimal,koala\n")
    of_labels = [str(data), "--target", "y", "--hierarchy", str(edges), "--json"]
    parents = {"animal": None, "plant": None, "koala": "animal"}
    assert main(["inspect", *of_labels, "--clustering", "--hierarchy-decay", "0.1"]) == 0
    expected = fr.clustering_value(data, "y", hierarchy=parents, hierarchy_decay=0.1)
    assert json.loads(capsys.readouterr().out)["clustering"] == expected
    assert main(["tune", *of_labels, "--trees", "2", "--folds", "2"]) == 0
    found = fr.tune(data, "y", hierarchy=parents, n_estimators=2, folds=2).to_dict()
    assert json.loads(capsys.readouterr().out)["candidates"] == found["candidates"]
