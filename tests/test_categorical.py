"""``categorical_features`` of rankers and data sets: the same ranking as with columns of strings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pytest
import scipy.sparse
from sklearn.base import clone

import ferrank as fr
from ferrank.cli.main import main
from ferrank.evaluate import resample

N_ROWS = 240
RANKERS = {
    "forest": fr.ForestRanker(n_estimators=20, scores=("genie3", "permutation")),
    "relief": fr.ReliefRanker(scores=("relief", "myopic")),
    "joint": fr.JointRanker(n_estimators=200),
}


@pytest.fixture
def table() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    code, flag = rng.integers(4, size=N_ROWS), rng.integers(3, size=N_ROWS)
    # Codes 0 and 3 say the same, which is no order of numbers.
    y = np.where(np.isin(code, [0, 3]), "in", "out")
    y[:20] = "in"
    return {"a": rng.normal(size=N_ROWS), "code": code.astype(float), "flag": flag.astype(float), "y": y}


def with_words(table: dict[str, np.ndarray], *names: str) -> pd.DataFrame:
    words = {name: table[name].astype(int).astype(str) for name in names}
    return pd.DataFrame(table | words).drop(columns="y")


def importances(ranking: fr.Ranking) -> list[bytes]:
    return [ranking.importances(score).tobytes() for score in ranking.scores]


GIVEN = [["code", "flag"], [1, 2], np.array([1, 2]), [False, True, True], np.array([False, True, True])]


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("given", GIVEN, ids=["names", "positions", "array", "mask", "mask array"])
@pytest.mark.parametrize("frame", [np.column_stack, pd.DataFrame, pl.DataFrame])
def test_the_ranking_is_that_of_strings(
    table: dict[str, np.ndarray], name: str, given: Any, frame: Any
) -> None:
    X, y = {column: table[column] for column in ("a", "code", "flag")}, table["y"]
    expected = clone(RANKERS[name]).fit(with_words(table, "code", "flag"), y)
    if frame is np.column_stack:
        X = np.column_stack(list(X.values()))
        if isinstance(given[0], str):
            given = ["x1", "x2"]
    else:
        X = frame(X)
    found = clone(RANKERS[name]).set_params(categorical_features=given).fit(X, y)
    assert importances(found.result_) == importances(expected.result_)
    assert importances(clone(RANKERS[name]).fit(X, y).result_) != importances(expected.result_)


def test_missing_codes_are_missing(table: dict[str, np.ndarray]) -> None:
    words = with_words(table, "code")
    words.loc[::7, "code"] = None
    table["code"][::7] = np.nan
    X = pd.DataFrame(table).drop(columns="y")
    relief = fr.ReliefRanker(categorical_features=["code"])
    expected = fr.ReliefRanker().fit(words, table["y"])
    assert importances(relief.fit(X, table["y"]).result_) == importances(expected.result_)


@pytest.mark.parametrize("column", ["category", "dictionary of numbers"])
def test_from_dtype_takes_dictionaries_of_any_type(table: dict[str, np.ndarray], column: str) -> None:
    X = pd.DataFrame(table).drop(columns="y")
    expected = fr.ReliefRanker().fit(with_words(table, "code"), table["y"])
    codes = X["code"].astype(int).astype(str if column == "category" else int)
    X["code"] = codes.astype("category")
    found = fr.ReliefRanker(categorical_features="from_dtype").fit(X, table["y"])
    assert importances(found.result_) == importances(expected.result_)


def test_sparse_features_may_be_categorical(table: dict[str, np.ndarray]) -> None:
    X = np.column_stack([table[name] for name in ("a", "code", "flag")])
    for ranker in (fr.ReliefRanker(categorical_features=[1]), fr.ForestRanker(categorical_features=[1])):
        dense = importances(clone(ranker).fit(X, table["y"]).result_)
        assert importances(clone(ranker).fit(scipy.sparse.csr_array(X), table["y"]).result_) == dense


def test_data_sets_and_rankers_agree(table: dict[str, np.ndarray]) -> None:
    expected = importances(fr.rank(with_words(table, "code").assign(y=table["y"]), "y", ranker="relief"))
    relief = fr.ReliefRanker(categorical_features=["code"])
    for data in (table, fr.Dataset(table, "y")):
        target = None if isinstance(data, fr.Dataset) else "y"
        assert importances(fr.rank(data, target, ranker=relief)) == expected
        assert importances(fr.accumulate(data, target, ranker=relief).ranking()) == expected
    # Positions of a ranker count features, those of a data set all columns.
    turned = {"y": table["y"]} | {name: table[name] for name in ("a", "code", "flag")}
    by_position = fr.ReliefRanker(categorical_features=[1])
    assert importances(fr.rank(turned, "y", ranker=by_position)) == expected
    dataset = fr.Dataset(turned, "y", categorical_features=[2])
    assert importances(fr.rank(dataset, ranker=fr.ReliefRanker(categorical_features=["flag"]))) == expected
    values = pd.DataFrame(table).drop(columns="y")
    assert (
        importances(fr.rank(values, table["y"], ranker="relief", categorical_features=["code"])) == expected
    )
    as_typed = fr.Dataset(table, "y", categorical_features="from_dtype")
    numbers = importances(fr.rank(table, "y", ranker="relief"))
    assert importances(fr.rank(as_typed, ranker=relief)) == numbers != expected


def test_files_and_the_shell(table: dict[str, np.ndarray], tmp_path: Path) -> None:
    path, out = tmp_path / "table.csv", tmp_path / "ranking.json"
    pd.DataFrame(table).to_csv(path, index=False)
    expected = importances(fr.rank(with_words(table, "code").assign(y=table["y"]), "y", ranker="relief"))
    assert importances(fr.rank(path, "y", ranker="relief", categorical_features=["code"])) == expected
    options = ["--target", "y", "--ranker", "relief", "--categorical", "code", "--output", str(out)]
    assert main(["rank", str(path), *options]) == 0
    assert importances(fr.Ranking.load(out)) == expected


def test_streams(table: dict[str, np.ndarray]) -> None:
    X, words, y = pd.DataFrame(table).drop(columns="y"), with_words(table, "code"), table["y"]
    found = fr.ReliefRanker(block_rows=120, categorical_features=["code"])
    expected = fr.ReliefRanker(block_rows=120)
    for rows in (slice(0, 80), slice(80, 150), slice(150, 240)):
        found.partial_fit(X[rows], y[rows])
        expected.partial_fit(words[rows], y[rows])
    assert importances(found.result_) == importances(expected.result_)


@pytest.mark.slow
def test_dask_collections(table: dict[str, np.ndarray]) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(table)
    expected = importances(fr.rank(frame, "y", ranker="relief", categorical_features=["code"]))
    parts = dd.from_pandas(frame, npartitions=3)
    assert importances(fr.rank(parts, "y", ranker="relief", categorical_features=["code"])) == expected
    features = parts.drop(columns="y")
    fitted = fr.ReliefRanker(categorical_features=[False, True, False]).fit(features, parts["y"])
    assert importances(fitted.result_) == expected
    dataset = fr.Dataset(parts, "y", categorical_features=[1])
    assert importances(fr.rank(dataset, ranker="relief")) == expected
    with pytest.raises(fr.SettingError, match="columns are not known before"):
        fr.rank(parts, "y", ranker=fr.ReliefRanker(categorical_features=[1]))


@pytest.mark.parametrize("name", ["forest", "relief"])
def test_what_ranks_and_judges_sees_the_same_kinds(table: dict[str, np.ndarray], name: str) -> None:
    ranker = clone(RANKERS[name]).set_params(categorical_features=["code"])
    words = with_words(table, "code").assign(y=table["y"])
    expected = resample(words, "y", ranker=clone(RANKERS[name]), n=2)
    for data in (table, fr.Dataset(table, "y", categorical_features=["code"])):
        found = resample(data, None if isinstance(data, fr.Dataset) else "y", ranker=ranker, n=2)
        assert [importances(one) for one in found] == [importances(one) for one in expected]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ("code", fr.SettingError, "'code' is not a list; use a list of names or positions"),
        (7, fr.SettingError, "7 is not a list"),
        ([True], fr.SettingError, "a mask of 1 for 3 columns; give a bool for each"),
        ([3], fr.SettingError, "3 is neither a name nor a position in 0 … 2"),
        ([1.5], fr.SettingError, "1.5 is neither a name nor a position"),
        ([True, "a", 2], fr.SettingError, "True is neither a name nor a position"),
        (
            ["cod"],
            fr.DataError,
            "no column 'cod' for the categorical features; the nearest of its 4 columns are 'code'",
        ),
        (["y"], fr.DataError, "column 'y' of X is a target; name features alone"),
    ],
)
def test_wrong_ones_are_refused(table: dict[str, np.ndarray], given: Any, error: Any, message: str) -> None:
    X = pd.DataFrame(table).drop(columns="y")
    with pytest.raises(error, match=message):
        fr.ReliefRanker(categorical_features=given).fit(X, pd.Series(table["y"], name="y"))


def test_a_dropped_column_may_be_among_them(table: dict[str, np.ndarray]) -> None:
    ranking = fr.rank(table, "y", ranker="relief", drop=["flag"], categorical_features=["code", "flag"])
    assert ranking.features == ["a", "code"]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([7, 5, 6, 8]),
        pa.array([0.5, -1.5, 2.0, 1e300]),
        pa.array([1, 2, 3, 4], pa.date32()),
        pa.array(["b", "a", "c", "d"], pa.large_string()),
    ],
    ids=lambda values: str(values.type),
)
def test_categories_of_any_type_stay_categories_in_files(values: pa.Array, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes, noise = rng.integers(4, size=N_ROWS), rng.normal(size=N_ROWS)
    chunks = []
    for rows in (slice(0, 100), slice(100, N_ROWS)):
        # Each chunk brings a dictionary of its own.
        order = rng.permutation(4)
        keys = pa.array(np.argsort(order)[codes[rows]], pa.int8())
        chunks.append(pa.DictionaryArray.from_arrays(keys, values.take(pa.array(order))))
    table = pa.table(
        {"a": pa.chunked_array(chunks), "noise": noise, "y": np.isin(codes, [0, 3]) + 0.1 * noise}
    )
    fr.convert(table, tmp_path / "t.arrow")
    stored = pa.feather.read_table(str(tmp_path / "t.arrow"))
    assert pa.types.is_dictionary(stored["a"].type)
    assert stored["a"].cast(values.type).equals(table["a"].cast(values.type))
    ranked, direct = (fr.rank(data, "y", ranker=RANKERS["forest"]) for data in (tmp_path / "t.arrow", table))
    assert importances(ranked) == importances(direct)


def test_converted_files_keep_which_columns_are_categories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    codes, halves = rng.choice([3, 10, 200], N_ROWS), rng.choice([0.5, 2.5], N_ROWS)
    days = np.array(["2024-01-05", "2024-02-01"])[rng.integers(2, size=N_ROWS)]
    y = np.where(codes == 10, 1.0, 0.0) + halves + rng.normal(size=N_ROWS)
    names = ["code", "half", "day", "word"]
    csv, arrow = tmp_path / "t.csv", tmp_path / "t.arrow"
    words = [f"w{code}" for code in codes]
    pd.DataFrame({"code": codes, "half": halves, "day": days, "word": words, "y": y}).to_csv(csv, index=False)
    assert fr.convert(csv, arrow, categorical_features=names) == N_ROWS
    assert [column["kind"] for column in fr.inspect(arrow)["columns"]] == ["nominal"] * 4 + ["numeric"]
    said = fr.rank(csv, "y", ranker=RANKERS["forest"], categorical_features=names)
    assert importances(fr.rank(arrow, "y", ranker=RANKERS["forest"])) == importances(said)
    options = [option for name in names for option in ("--categorical", name)]
    other = tmp_path / "shell.arrow"
    assert main(["convert", str(csv), str(other), *options]) == 0
    assert other.read_bytes() == arrow.read_bytes()
    assert main(["convert", str(csv), str(other), "--categorical", "cod"]) == 2
    assert "no column 'cod' for the categorical features; did you mean code?" in capsys.readouterr().err


def test_lists_are_no_categories(tmp_path: Path) -> None:
    table = pa.table({"a": [[1], [2]], "y": [0.5, 1.5]})
    with pytest.raises(fr.ColumnTypeError, match=r"column 'a' is of type list.*no categories"):
        fr.convert(table, tmp_path / "t.arrow", categorical_features=["a"])
