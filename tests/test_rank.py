"""The same data in any container give the same bits."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import ferrank

SETTINGS = {"n_estimators": 8, "scores": ("genie3", "symbolic", "permutation")}


def arff(table: pa.Table, path: Path) -> Path:
    kinds = dict.fromkeys(table.column_names, "numeric") | {"colour": "{red,green,blue}"}
    lines = ["@relation mixed", *(f"@attribute {name} {kind}" for name, kind in kinds.items()), "@data"]
    lines += [",".join("?" if v is None else str(v) for v in row.values()) for row in table.to_pylist()]
    path.write_text("\n".join(lines) + "\n")
    return path


def arrow(table: pa.Table, path: Path) -> Path:
    pa.feather.write_feather(table, str(path), compression="lz4", chunksize=50)
    return path


def parquet(table: pa.Table, path: Path) -> Path:
    pa.parquet.write_table(table, path, row_group_size=60)
    return path


def csv(table: pa.Table, path: Path) -> Path:
    pa.csv.write_csv(table, path)
    return path


def chunked(table: pa.Table, path: Path) -> pa.Table:
    return pa.concat_tables([table.slice(start, 31) for start in range(0, len(table), 31)])


CONTAINERS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "chunked table": chunked,
    "record batch": lambda table, path: table.combine_chunks().to_batches()[0],
    "reader": lambda table, path: pa.RecordBatchReader.from_batches(table.schema, table.to_batches(70)),
    "capsule": lambda table, path: table.__arrow_c_stream__(),
    "pandas": lambda table, path: table.to_pandas(),
    "pandas, other index": lambda table, path: table.to_pandas().set_index(np.arange(len(table)) + 5),
    "pandas categories": lambda table, path: table.to_pandas().astype({"colour": "category"}),
    "polars": lambda table, path: pl.from_arrow(table),
    "mapping": lambda table, path: {name: table[name].to_numpy() for name in table.column_names},
    "arrow file": lambda table, path: arrow(table, path / "t.arrow"),
    "arrow file as str": lambda table, path: str(arrow(table, path / "t.arrow")),
    "arff": lambda table, path: arff(table, path / "t.arff"),
    "parquet": lambda table, path: parquet(table, path / "t.parquet"),
    "csv": lambda table, path: csv(table, path / "t.csv"),
}


@pytest.fixture(scope="module")
def expected(mixed: pa.Table) -> dict[str, Any]:
    return ferrank.rank(mixed, "y", **SETTINGS).to_dict()["scores"]


@pytest.mark.parametrize("container", CONTAINERS)
def test_same_bits_from_any_container(
    container: str, mixed: pa.Table, expected: dict[str, Any], tmp_path: Path
) -> None:
    ranking = ferrank.rank(CONTAINERS[container](mixed, tmp_path), "y", **SETTINGS)
    assert ranking.features == ["a", "b", "count", "colour"]
    assert ranking.n_rows == len(mixed)
    assert ranking.to_dict()["scores"] == expected


def test_converted_file_ranks_alike(mixed: pa.Table, expected: dict[str, Any], tmp_path: Path) -> None:
    assert ferrank.convert(csv(mixed, tmp_path / "t.csv"), tmp_path / "t.arrow") == len(mixed)
    assert ferrank.rank(tmp_path / "t.arrow", "y", **SETTINGS).to_dict()["scores"] == expected


@pytest.mark.parametrize(
    "layout",
    [
        np.ascontiguousarray,
        np.asfortranarray,
        lambda X: np.repeat(X, 2, axis=0)[::2],
        lambda X: X[::-1][::-1],
        lambda X: X.astype(">f8"),
        lambda X: X.astype(np.longdouble),
        lambda X: X.astype(object),
        lambda X: X.tolist(),
        pd.DataFrame,
        lambda X: pl.DataFrame(X, schema=[f"x{number}" for number in range(X.shape[1])]),
    ],
)
def test_same_bits_from_any_array(numbers: tuple[np.ndarray, np.ndarray], layout: Callable[..., Any]) -> None:
    X, y = numbers
    expected = ferrank.ForestRanker(n_estimators=5).fit(X, y).feature_importances_
    found = ferrank.ForestRanker(n_estimators=5).fit(layout(X), y).feature_importances_
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"])
def test_same_bits_from_any_type_of_number(dtype: str) -> None:
    X = np.random.default_rng(1).integers(0, 100 if dtype != "?" else 2, size=(80, 5)).astype(dtype)
    y = X[:, 2] + 0.5
    expected = ferrank.ForestRanker(n_estimators=3).fit(X.astype(float), y).feature_importances_
    np.testing.assert_array_equal(
        ferrank.ForestRanker(n_estimators=3).fit(X, y).feature_importances_, expected
    )


def test_array_by_column_names(numbers: tuple[np.ndarray, np.ndarray]) -> None:
    X, y = numbers
    ranking = ferrank.rank(np.column_stack([X, y]), "x6", n_estimators=10)
    assert ranking.top(2) == ["x1", "x4"]


def test_weights_and_dropped_columns_are_no_features(mixed: pa.Table) -> None:
    weighted = mixed.append_column("w", pa.array(np.ones(len(mixed))))
    ranking = ferrank.rank(weighted, "y", drop=["b"], sample_weight="w", n_estimators=3)
    assert ranking.features == ["a", "count", "colour"]


def test_weights_of_zero_leave_rows_out(mixed: pa.Table) -> None:
    weight = (np.arange(len(mixed)) < 120).astype(float)
    half = ferrank.rank(mixed.slice(0, 120), "y", bootstrap=False, ensemble="bagging", n_estimators=1)
    weighted = mixed.append_column("w", pa.array(weight))
    whole = ferrank.rank(
        weighted,
        "y",
        sample_weight="w",
        bootstrap=False,
        ensemble="bagging",
        n_estimators=1,
        min_samples_leaf=1,
    )
    assert whole.top(1) == half.top(1)


def test_several_targets_and_the_last_columns(mixed: pa.Table) -> None:
    table = mixed.append_column("z", mixed["b"])
    named = ferrank.rank(table, ["y", "z"], n_estimators=4)
    last = ferrank.rank(table, target_last=2, n_estimators=4)
    assert named.task == "multi-target"
    assert named.to_dict()["scores"] == last.to_dict()["scores"]


def test_label_sets(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 60)).round(3)
    columns = {"a": a, "b": b, "high": (a > 0).astype(int), "low": (a < -1).astype(int)}
    kinds = ["numeric", "numeric", "{0,1}", "{0,1}"]
    lines = [f"@attribute {name} {kind}" for name, kind in zip(columns, kinds, strict=True)]
    lines += ["@data", *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "t.arff").write_text("@relation t\n" + "\n".join(lines))
    xml = tmp_path / "t.xml"
    xml.write_text(
        '<labels xmlns="http://mulan.sourceforge.net/labels"><label name="high"/><label name="low"/></labels>'
    )
    by_file = ferrank.rank(tmp_path / "t.arff", labels=xml, n_estimators=5)
    assert (by_file.task, by_file.targets, by_file.top(1)) == ("multi-label", ["high", "low"], ["a"])
    ferrank.convert(tmp_path / "t.arff", tmp_path / "t.arrow", labels=xml)
    assert (
        ferrank.rank(tmp_path / "t.arrow", n_estimators=5).to_dict()["scores"] == by_file.to_dict()["scores"]
    )
    booleans = {name: column > 0 if name in by_file.targets else column for name, column in columns.items()}
    by_type = ferrank.rank(booleans, ["high", "low"], n_estimators=5)
    assert by_type.to_dict()["scores"] == by_file.to_dict()["scores"]


def test_threads_do_not_change_the_bits(mixed: pa.Table, expected: dict[str, Any]) -> None:
    for n_jobs in (1, 2, -1):
        assert ferrank.rank(mixed, "y", n_jobs=n_jobs, **SETTINGS).to_dict()["scores"] == expected


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrank.data.delimited._BLOCK_BYTES", 1 << 10)


@pytest.mark.usefixtures("small_blocks")
def test_csv_numbers_may_begin_as_integers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{i % 10},{i}\n" for i in range(1000)) + "0.5,1\n")
    [column, _] = ferrank.inspect(path)["columns"]
    assert column["kind"] == "numeric"
    assert column["distinct"] == 11


@pytest.mark.usefixtures("small_blocks")
def test_csv_with_a_late_word_names_the_column(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{i % 10},{i}\n" for i in range(1000)) + "word,1\n")
    with pytest.raises(ferrank.DataError, match=r"t\.csv: column 'a' began with .* 'word'.* drop the column"):
        ferrank.rank(path, "y", n_estimators=1)
    with pytest.raises(ferrank.DataError, match="no feature"):
        ferrank.rank(path, "y", drop=["a"], n_estimators=1)


def test_csv_missing_values_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('a,word,y\n1,"u, ""v""\nw",1\n?,NA,2\nNaN,,3\n')
    [a, word, _] = ferrank.inspect(path)["columns"]
    assert (a["missing"], word["missing"]) == (2, 2)
    assert word["top"] == [('u, "v"\nw', 1)]


def test_tab_separated_and_compressed(mixed: pa.Table, expected: dict[str, Any], tmp_path: Path) -> None:
    pa.csv.write_csv(mixed, tmp_path / "t.tsv", pa.csv.WriteOptions(delimiter="\t"))
    assert ferrank.rank(tmp_path / "t.tsv", "y", **SETTINGS).to_dict()["scores"] == expected
    with pa.CompressedOutputStream(str(tmp_path / "t.csv.gz"), "gzip") as file:
        pa.csv.write_csv(mixed, file)
    assert ferrank.rank(tmp_path / "t.csv.gz", "y", **SETTINGS).to_dict()["scores"] == expected


def test_progress_is_called(mixed: pa.Table) -> None:
    seen: list[tuple[str, int, int]] = []
    ferrank.rank(mixed, "y", n_estimators=5, progress=lambda *state: seen.append(state))
    assert seen[-1] == ("growing", 5, 5)


@pytest.mark.parametrize("progress", [3, 1, 1.0, np.arange(2)])
def test_progress_that_is_no_function_is_an_error(mixed: pa.Table, progress: Any, tmp_path: Path) -> None:
    ranker = ferrank.ForestRanker(n_estimators=2)
    for call in (
        lambda: ferrank.rank(mixed, "y", ranker=ranker, progress=progress),
        lambda: ferrank.accumulate(mixed, "y", ranker=ranker, progress=progress),
        lambda: ferrank.profile(mixed, "y", ranker=ranker, progress=progress),
        lambda: ferrank.tune(mixed, "y", ranker=ranker, progress=progress),
        lambda: ferrank.convert(mixed, tmp_path / "table.arrow", progress=progress),
        lambda: ferrank.inspect(mixed, progress=progress),
    ):
        with pytest.raises(ferrank.SettingError, match="progress: .* is no function; use one of phase, done"):
            call()


def test_an_error_in_progress_stops_the_run(numbers: tuple[np.ndarray, np.ndarray]) -> None:
    def fail(phase: str, done: int, total: int) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        ferrank.rank(np.column_stack(numbers), target_last=1, progress=fail)


def test_tree_as_a_table(mixed: pa.Table) -> None:
    tree = ferrank.grow_tree(mixed, "y", bootstrap=False, max_features="all", tree=1)
    root = tree.to_pylist()[0]
    assert root["parent"] is None
    assert root["n_examples"] == len(mixed)
    parents = tree["parent"].to_pylist()
    for node in tree.to_pylist():
        if node["feature"] is None:
            assert node["left"] is node["right"] is node["gain"] is None
        else:
            assert (node["categories"] is None) == (node["feature"] != "colour")
            assert parents[node["left"]] == parents[node["right"]] == node["node"]


def test_trees_add_up_to_the_ranking(mixed: pa.Table) -> None:
    n_trees = 3
    total = dict.fromkeys(mixed.column_names[:-1], 0.0)
    for number in range(n_trees):
        nodes = ferrank.grow_tree(mixed, "y", tree=number).to_pylist()
        for node in nodes:
            if node["feature"] is not None:
                total[node["feature"]] += node["n_examples"] / nodes[0]["n_examples"] * node["gain"] / n_trees
    ranking = ferrank.rank(mixed, "y", n_estimators=n_trees)
    np.testing.assert_allclose(ranking.importances(), list(total.values()), rtol=1e-9)


def test_inspect(mixed: pa.Table) -> None:
    found = ferrank.inspect(mixed)
    columns = {column["name"]: column for column in found["columns"]}
    assert found["rows"] == len(mixed)
    assert columns["a"]["missing"] == mixed["a"].null_count
    assert columns["colour"]["kind"] == "nominal"
    assert columns["colour"]["task"] == "classification"
    assert columns["count"]["range"] == (0.0, 8.0)
    assert dict(columns["colour"]["top"]) == {
        item["values"]: item["counts"] for item in mixed["colour"].drop_null().value_counts().to_pylist()
    }
