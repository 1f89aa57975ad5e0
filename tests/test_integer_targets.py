"""Targets of few distinct integers are classes, wherever the rows come from."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest

import ferrank as fr
from ferrank.cli import main

ROWS = 120


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """The warning is the subject of one test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fr.IntegerTargetWarning)
        yield


@pytest.fixture
def frame() -> pd.DataFrame:
    x = np.random.default_rng(0).normal(size=(ROWS, 2))
    return pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": np.digitize(x[:, 0], [-0.5, 0.5])})


def rank(data: Any, target: Any = "y", **settings: Any) -> fr.Ranking:
    return fr.rank(data, target, n_estimators=5, random_state=0, **settings)


def test_all_containers_give_the_ranking_of_strings(frame: pd.DataFrame, tmp_path: Path) -> None:
    table = pa.Table.from_pandas(frame)
    wanted = rank(frame.assign(y=frame.y.astype(str)))
    assert wanted.task == "classification"
    pa.feather.write_feather(table, tmp_path / "t.arrow", compression="uncompressed")
    pa.csv.write_csv(table, tmp_path / "t.csv")
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    fr.convert(tmp_path / "t.csv", tmp_path / "converted.arrow")
    files = [tmp_path / name for name in ("t.arrow", "t.csv", "t.parquet", "converted.arrow")]
    for data in [frame, table, *files]:
        found = rank(data)
        assert found.task == "classification", data
        np.testing.assert_array_equal(found.importances(), wanted.importances())
    found = rank(frame[["a", "b"]].to_numpy(), frame.y.to_numpy())
    np.testing.assert_array_equal(found.importances(), wanted.importances())


def test_a_task_says_otherwise(frame: pd.DataFrame) -> None:
    assert rank(frame, task="regression").task == "regression"
    assert (
        fr.ForestRanker(n_estimators=2, task="regression").fit(frame[["a"]], frame.y).result_.task
        == "regression"
    )


def test_floats_are_quantities(frame: pd.DataFrame) -> None:
    assert rank(frame.assign(y=frame.y.astype(float))).task == "regression"


def test_a_csv_column_that_goes_on_with_fractions_is_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n" + "".join(f"{row / 7},{row % 3}\n" for row in range(1_000_000)) + "0.1,0.5\n")
    assert rank(path, drop=[], max_depth=2).task == "regression"


@pytest.mark.parametrize(
    ("targets", "task"),
    [
        ({"p": [0, 1], "q": [1, 0]}, "multi-label"),
        ({"p": [0, 1], "q": [True, False]}, "multi-label"),
        ({"p": [0, 1], "q": [1, 2]}, "multi-target"),
        ({"p": [0, 1], "q": [0.5, 1.5]}, "multi-target"),
    ],
)
def test_several_targets(frame: pd.DataFrame, targets: dict[str, list[Any]], task: str) -> None:
    data = frame.drop(columns="y").assign(**{name: values * (ROWS // 2) for name, values in targets.items()})
    assert rank(data, list(targets)).task == task


def test_codes_of_classes_in_several_targets_rank_as_strings(frame: pd.DataFrame) -> None:
    codes = frame.assign(z=np.arange(ROWS) % 5)
    words = codes.assign(y=codes.y.astype(str), z=codes.z.astype(str))
    np.testing.assert_array_equal(
        rank(codes, ["y", "z"]).importances(), rank(words, ["y", "z"]).importances()
    )


def test_partitions_are_looked_at_together(frame: pd.DataFrame) -> None:
    many = frame.assign(y=np.arange(ROWS) // 5)
    with dask.config.set(scheduler="synchronous"):
        for data, task in [(frame, "classification"), (many, "regression")]:
            collection = dd.from_pandas(data, npartitions=4, sort=False)
            found = rank(collection)
            assert found.task == task
            np.testing.assert_array_equal(found.importances(), rank(data).importances())


def test_a_data_set_with_other_rows_has_the_same_classes(frame: pd.DataFrame) -> None:
    data = fr.Dataset(frame, "y")
    assert "classification" in repr(data)
    other = data.with_rows(frame.assign(y=np.arange(ROWS)))
    assert rank(other, None).task == "classification"


def test_inspect_and_the_command_line_say_the_same(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    tasks = {column["name"]: column["task"] for column in fr.inspect(path)["columns"]}
    assert tasks == {"a": "regression", "b": "regression", "y": "classification"}
    warnings.simplefilter("always")
    assert main(["rank", str(path), "--target", "y", "--trees", "2"]) == 0
    out, err = capsys.readouterr()
    assert "classification of y" in out
    assert "3 distinct integers" in err


def test_the_first_batch_of_a_stream_determines_the_task(frame: pd.DataFrame) -> None:
    ranker = fr.ForestRanker(n_estimators=2, block_rows=ROWS, reservoir_rows=ROWS)
    ranker.partial_fit(frame[["a", "b"]], frame.y)
    ranker.partial_fit(frame[["a", "b"]], np.arange(ROWS))
    assert ranker.result_.task == "classification"


def test_two_integers_are_not_warned_of(frame: pd.DataFrame) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rank(frame.assign(y=frame.y % 2))
        with pytest.raises(fr.IntegerTargetWarning, match="target 'y' has 3 distinct integers"):
            rank(frame)


def test_control_characters_of_a_name_are_escaped(
    frame: pd.DataFrame, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = frame.rename(columns={"y": "\x1b[31my\u202e"})
    with pytest.warns(fr.IntegerTargetWarning) as caught:
        fr.rank(frame, "\x1b[31my\u202e", ranker="forest", n_estimators=2)
    assert r"target '\x1b[31my\u202e' has 3" in str(caught[0].message)
    frame.to_parquet(tmp_path / "t.parquet")
    warnings.simplefilter("always")
    assert main(["rank", str(tmp_path / "t.parquet"), "--target-last", "1", "--trees", "2"]) == 0
    out, err = capsys.readouterr()
    assert r"target '\x1b[31my\u202e' has 3" in err
    assert "\x1b" not in out + err


def test_categories_of_integers_are_nominal() -> None:
    rng = np.random.default_rng(0)
    code = rng.permutation(16)[rng.integers(16, size=400)]
    y = np.isin(code, [1, 4, 6, 9, 11, 12])
    frame = pd.DataFrame({"noise": rng.normal(size=400), "code": code, "y": y})
    words = frame.assign(code=frame.code.astype(str))
    wanted = fr.rank(words, "y", ranker="relief").importances()
    dictionary = pa.table({"noise": frame.noise, "code": pa.array(code).dictionary_encode(), "y": y})
    for data in [frame.assign(code=frame.code.astype("category")), dictionary]:
        np.testing.assert_array_equal(fr.rank(data, "y", ranker="relief").importances(), wanted)
