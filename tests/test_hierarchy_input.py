"""Ways to hand over label sets and their hierarchy, and what people get wrong."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.base import clone

import ferrank as fr
from agreement import bits
from ferrank.cli.main import main

DATA = Path(__file__).parent / "data"
PARENTS = {"animal": None, "African": "animal", "Asian": "animal", "elephant": ["African", "Asian"]}
EDGES = pa.table(
    {
        "parent": [None, "animal", "animal", "African", "Asian"],
        "child": ["animal", "African", "Asian", "elephant", "elephant"],
    }
)
X = np.random.default_rng(0).normal(size=(40, 3))
SETS = [
    ["elephant"] if x > 0.8 else ["African"] if x > 0 else ["Asian", "animal"] if x > -1 else []
    for x in X[:, 1]
]
TABLE = pa.table({f"x{i}": column for i, column in enumerate(X.T)} | {"y": SETS})
FOREST = {"n_estimators": 5, "scores": ("genie3", "permutation")}


def rank(data, **settings) -> fr.Ranking:
    return fr.rank(data, "y", **{"hierarchy": PARENTS, **FOREST, **settings})


def test_every_container_gives_the_same_bits(tmp_path: Path) -> None:
    whole = rank(TABLE)
    assert whole.top(1) == ["x1"]
    pa.parquet.write_table(TABLE, tmp_path / "t.parquet")
    pa.feather.write_feather(TABLE, str(tmp_path / "t.arrow"), compression="uncompressed")
    texts = TABLE.set_column(3, "y", pa.array(["@".join(labels) for labels in SETS]))
    pa.feather.write_feather(texts, str(tmp_path / "texts.arrow"))
    fr.convert(TABLE, tmp_path / "converted.arrow")
    frames = [
        TABLE.to_pandas(),
        pl.from_arrow(TABLE),
        TABLE.to_reader(),
        {n: TABLE[n] for n in TABLE.column_names},
    ]
    for data in [
        *tmp_path.iterdir(),
        *frames,
        texts,
        dict(zip(["x0", "x1", "x2", "y"], [*X.T, SETS], strict=True)),
    ]:
        assert bits(rank(data)) == bits(whole), data


def test_every_form_of_a_hierarchy_says_the_same(tmp_path: Path) -> None:
    whole = rank(TABLE)
    edges = [(parent or "", child) for parent, child in zip(*EDGES.to_pydict().values(), strict=True)]
    (tmp_path / "edges.csv").write_text("child,note,parent\n" + "".join(f"{c},1,{p}\n" for p, c in edges))
    (tmp_path / "edges.tsv").write_text("parent\tchild\n" + "".join(f"{p}\t{c}\n" for p, c in edges[1:]))
    implied = {label: above for label, above in PARENTS.items() if above}
    forms = [EDGES, EDGES.to_pandas(), pl.from_arrow(EDGES), EDGES.slice(1), implied]
    for hierarchy in [*forms, *tmp_path.iterdir(), str(tmp_path / "edges.csv")]:
        assert bits(rank(TABLE, hierarchy=hierarchy)) == bits(whole), hierarchy
        forest = fr.ForestRanker(hierarchy=hierarchy, **FOREST)
        assert bits(fr.rank(TABLE, "y", ranker=forest)) == bits(whole), "in the ranker"


def test_columns_of_an_edge_file_have_different_names(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("parent,child,child\na,b,c\n")
    with pytest.raises(fr.DataError, match="two columns are called 'child'"):
        rank(TABLE, hierarchy=tmp_path / "edges.csv")


def test_labels_of_an_edge_file_stay_text(tmp_path: Path) -> None:
    (tmp_path / "edges.csv").write_text("parent,child\n,01\n01,1\n")
    table = TABLE.set_column(3, "y", pa.array([["1"]] * 20 + [["01"]] * 20))
    assert rank(table, hierarchy=tmp_path / "edges.csv").task == "hierarchical"
    (tmp_path / "t.csv").write_text(
        "a,y\n" + "".join(f"{i},{'01' if i % 2 else '1@01'}\n" for i in range(20))
    )
    assert rank(tmp_path / "t.csv", hierarchy=tmp_path / "edges.csv").n_rows == 20


def test_it_is_told_by_the_target_or_asked_for() -> None:
    paths = TABLE.set_column(3, "y", pa.array([["a/b"] if "African" in labels else ["c"] for labels in SETS]))
    texts = paths.set_column(3, "y", pa.array(["@".join(labels) for labels in paths["y"].to_pylist()]))
    lists = rank(paths, hierarchy=None)
    assert lists.task == "hierarchical"
    assert rank(texts, hierarchy=None).task == "classification"
    assert bits(rank(texts, hierarchy=None, task="hierarchical")) == bits(lists)
    assert rank(texts, hierarchy={"a/b": None, "c": None}).task == "hierarchical"


@pytest.mark.parametrize("ranker", [fr.ForestRanker(n_estimators=5), fr.ReliefRanker(n_neighbors=5)])
def test_estimators_take_a_list_of_labels_for_each_row(ranker) -> None:
    ranker = clone(ranker).set_params(hierarchy=PARENTS, n_features_to_select=1)
    whole = fr.rank(TABLE, "y", ranker=ranker)
    objects = np.empty(40, dtype=object)
    objects[:] = SETS
    texts = ["@".join(labels) for labels in SETS]
    for y in (
        SETS,
        [tuple(s) for s in SETS],
        [set(s) for s in SETS],
        objects,
        pd.Series(SETS),
        TABLE["y"],
        texts,
    ):
        fitted = clone(ranker).fit(X, y)
        assert fitted.feature_importances_.tobytes() == whole.importances().tobytes()
    assert fitted.result_.targets == ["y"]
    assert fitted.transform(X).tolist() == X[:, [1]].tolist()
    assert clone(ranker).fit(pd.DataFrame(X), pd.DataFrame({"kind": SETS})).result_.targets == ["kind"]
    same_length = clone(ranker).set_params(hierarchy=None, task="hierarchical")
    assert same_length.fit(X, [["a/b", "c"], ["c", "a"]] * 20).result_.task == "hierarchical"
    some = [*SETS[:30], *[None] * 10]
    assert clone(ranker).set_params(unlabelled="ignore").fit(X, some).result_.n_unlabelled == 10


@pytest.mark.parametrize(
    ("hierarchy", "error", "message"),
    [
        (
            {"a": "b", "b": "c", "c": "a"},
            fr.DataError,
            r"'[abc]', '[abc]', '[abc]', '[abc]' form a cycle",
        ),
        ({"a": None, "b": "c"}, fr.DataError, "1 of its 3 labels have no parent .* 'c'; give"),
        (
            {"a": ["b"], "b": None} | {"animal": "a"},
            fr.DataError,
            "label 'A.*' is not one of the 3 .* nearest are",
        ),
        ({}, fr.SettingError, "hierarchy: it has no labels"),
        ({1: "a"}, fr.ColumnTypeError, "hierarchy: 1 below 'a'; use strings"),
        ({"a": 1.5}, fr.ColumnTypeError, "hierarchy: 'a' below 1.5; use strings"),
        (
            pa.table({"from": ["a"], "to": ["b"]}),
            fr.DataError,
            "hierarchy: has the columns 'from', 'to'; an edge",
        ),
        (pa.table({"parent": ["a"], "child": [None]}), fr.DataError, "a label without a name"),
        (pa.table({"parent": [["a"]], "child": ["b"]}), fr.ColumnTypeError, "hierarchy: .*use strings"),
        ("nowhere.csv", fr.ResourceError, "nowhere.csv"),
        ([("a", "b")], fr.ColumnTypeError, "hierarchy: 'list' is no path, no mapping .* and no table"),
    ],
)
def test_wrong_hierarchies_are_named(hierarchy, error, message) -> None:
    with pytest.raises(error, match=message):
        rank(TABLE, hierarchy=hierarchy)


@pytest.mark.parametrize("text", ["", "parent,child\n", "parent\na\n", 'parent,child\n"a'])
def test_broken_edge_files_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "edges.csv").write_text(text)
    with pytest.raises((fr.DataError, fr.SettingError), match="edges.csv|hierarchy: it has no labels"):
        rank(TABLE, hierarchy=tmp_path / "edges.csv")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hierarchy_decay": 0.0}, "hierarchy_decay: 0.0 is not in"),
        (
            {"hierarchy_decay": 1.5, "hierarchy": None, "task": "hierarchical"},
            "hierarchy_decay: 1.5 is not in",
        ),
        ({"hierarchy_decay": "much"}, "hierarchy_decay: 'much' is not a number"),
        ({"task": "multi-label"}, "task: multi-label cannot have a target of label sets"),
        ({"target_weights": (1.0, 1.0)}, "target_weights: 2 weights for 1 targets"),
    ],
)
def test_wrong_settings_are_named(settings, message) -> None:
    with pytest.raises(fr.SettingError, match=message):
        rank(TABLE, **settings)


def test_targets_that_do_not_fit_are_named() -> None:
    with pytest.raises(fr.SettingError, match="takes one target, whose values are label sets; 2 were given"):
        fr.rank(TABLE, ["y", "x0"], task="hierarchical")
    with pytest.raises(fr.SettingError, match="multi-target cannot have a target of label sets"):
        fr.rank(TABLE, ["y", "x0"])
    with pytest.raises(fr.SettingError, match="needs a target of label sets: .* 'x0' is numeric"):
        fr.rank(TABLE, "x0", task="hierarchical", drop=["y"])
    with pytest.raises(fr.SettingError, match="hierarchy: is of labels, and the task is regression"):
        fr.rank(TABLE, "x0", hierarchy=PARENTS, drop=["y"])
    with pytest.raises(fr.ColumnTypeError, match="column 'y' holds label sets, which cannot be a feature"):
        fr.rank(TABLE, "x0")
    with pytest.raises(fr.DataError, match=r"column 'y': hierarchy: the path 'a//b' has an empty part"):
        fr.rank(TABLE.set_column(3, "y", pa.array([["a//b"]] * 40)), "y")
    with pytest.raises(fr.DataError, match="target 'y': a list of labels misses one"):
        rank(TABLE.set_column(3, "y", pa.array([["animal", None]] * 40)))
    with pytest.raises(fr.ColumnTypeError, match="column 'y' is of type List"):
        rank(TABLE.set_column(3, "y", pa.array([[1, 2]] * 40)))
    with pytest.raises(fr.ColumnTypeError, match="y: .*use a list of strings for each row"):
        fr.ForestRanker("hierarchical").fit(X[:2], [["a/b"], 3])
    with pytest.raises(fr.DataError, match=r"y: .*say task='hierarchical'"):
        fr.ForestRanker().fit(X[:2], [["a/b"], [3, 4]])
    with pytest.raises(fr.DataError, match="none of 2 rows has a target value"):
        fr.ForestRanker("hierarchical", unlabelled="ignore").fit(X[:2], [None, None])
    with pytest.raises(fr.DataError, match="no rows"):
        rank(TABLE.slice(0, 0))


def test_a_broken_domain_names_file_and_column(tmp_path: Path) -> None:
    (tmp_path / "t.arff").write_text(
        "@relation r\n@attribute a numeric\n@attribute c hierarchical root/x,y/z\n@data\n1,x\n"
    )
    with pytest.raises(fr.DataError, match=r"t\.arff: column 'c': hierarchy: 1 of its 3 labels .* 'y'"):
        fr.rank(tmp_path / "t.arff", "c")


def test_targets_that_say_nothing() -> None:
    for sets in ([[]] * 40, [["animal"]] * 40):
        table = TABLE.set_column(3, "y", pa.array(sets))
        assert not rank(table).importances("genie3").any()
        assert not rank(table).importances("permutation").any()
        assert np.isfinite(fr.rank(table, "y", ranker="relief", hierarchy=PARENTS).importances()).all()
    one = rank(TABLE.slice(0, 1), bootstrap=False, scores=("genie3",))
    assert one.importances().tolist() == [0.0] * 3
    own = TABLE.set_column(3, "y", pa.array([[f"all/{row}"] for row in range(40)]))
    assert rank(own, hierarchy=None).n_rows == 40


def test_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, edges = tmp_path / "t.parquet", tmp_path / "edges.csv"
    pa.parquet.write_table(TABLE, data)
    pairs = zip(*EDGES.to_pydict().values(), strict=True)
    edges.write_text("parent,child\n" + "".join(f"{parent or ''},{child}\n" for parent, child in pairs))
    asked = ["rank", str(data), "--target", "y", "--hierarchy", str(edges), "--json"]
    for ranker, settings in (("forest", ["--trees", "5"]), ("relief", [])):
        assert main([*asked, "--ranker", ranker, "--hierarchy-decay", "0.5", *settings]) == 0
        printed = json.loads(capsys.readouterr().out)
        same = {"hierarchy": PARENTS, "hierarchy_decay": 0.5} | ({"n_estimators": 5} if settings else {})
        expected = fr.rank(TABLE, "y", ranker=ranker, **same)
        first = next(iter(printed["scores"].values()))
        assert (printed["task"], printed["targets"]) == ("hierarchical", ["y"])
        assert (printed["settings"]["hierarchy_decay"], first["importance"]) == (
            0.5,
            expected.importances().tolist(),
        )

    assert main(["rank", str(DATA / "eisen_GO-part.arff"), "--target", "class", "--trees", "3"]) == 0
    assert "16 features ranked for hierarchical classification of class, 150 rows" in capsys.readouterr().out
    assert main(["rank", str(data), "--target", "y", "--trees", "3"]) == 0, "each label is a root"
    capsys.readouterr()
    assert main(["inspect", str(data)]) == 0
    assert "  hierarchical  " in capsys.readouterr().out.splitlines()[-1]
