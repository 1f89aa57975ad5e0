"""What people get wrong, and what they are told."""

import logging
import os
import pickle
import re
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import ferrank
from ferrank import ColumnTypeError, DataError, FerrankError, ForestRanker, ResourceError, SettingError, logs
from ferrank import evaluate as judge
from ferrank.cli.main import main
from ferrank.errors import Lines

N = 30
Y = np.linspace(0, 1, N)


def table(**columns: Any) -> pa.Table:
    return pa.table({"a": np.arange(N) % 7.0, **columns, "y": Y})


def rank(data: Any, target: Any = "y", **settings: Any) -> ferrank.Ranking:
    return ferrank.rank(data, target, **{"n_estimators": 3, **settings})


@pytest.mark.parametrize(
    ("error", "builtin"),
    [
        (DataError, ValueError),
        (SettingError, ValueError),
        (ColumnTypeError, TypeError),
        (ResourceError, OSError),
    ],
)
def test_each_is_also_the_closest_builtin(error: type[Exception], builtin: type[Exception]) -> None:
    assert issubclass(error, FerrankError)
    assert issubclass(error, builtin)


def test_unknown_columns_get_suggestions() -> None:
    data = table(length=Y, lenght=Y)
    with pytest.raises(DataError, match=r"table: no column 'lengh' .*nearest of its 4 columns are 'lenght'"):
        rank(data, "lengh")
    with pytest.raises(DataError, match="no column 'b' for the columns to drop"):
        rank(data, drop=["b"])
    with pytest.raises(DataError, match="no column 'b' for the row weights"):
        rank(data, sample_weight="b")


def test_a_column_in_two_roles() -> None:
    with pytest.raises(DataError, match="column 'y' is given as"):
        rank(table(), drop=["y"])
    with pytest.raises(DataError, match="column 'y' is given as"):
        rank(table(), ["y", "y"])


def test_no_feature_left() -> None:
    with pytest.raises(DataError, match="no feature is left"):
        rank(table(), drop=["a"])
    with pytest.raises(SettingError, match="leaves no feature"):
        rank(table(), None, target_last=2)


def test_duplicated_names(tmp_path: Path) -> None:
    twice = pa.table([Y, Y, Y], names=["a", "a", "y"])
    with pytest.raises(DataError, match=r"two columns are called 'a'"):
        rank(twice)
    with pytest.raises(DataError, match=r"X: two columns are called 'a'"):
        ForestRanker().fit(twice.select([0, 1]), Y)
    with pytest.raises(DataError, match=r"table: two columns are called 'a' \(numbers 1 and 2\); rename one"):
        rank(pd.DataFrame(np.column_stack([Y, Y, Y]), columns=["a", "a", "y"]))
    (tmp_path / "t.csv").write_text("a,a,y\n1,2,3\n4,5,6\n")
    with pytest.raises(DataError, match=r"t\.csv: two columns are called 'a'") as ranked:
        rank(tmp_path / "t.csv")
    with pytest.raises(DataError, match=re.escape(str(ranked.value))):
        ferrank.convert(tmp_path / "t.csv", tmp_path / "t.arrow")
    assert not (tmp_path / "t.arrow").exists()


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_names_the_column(value: float) -> None:
    spoilt = np.where(np.arange(N) == 3, value, Y)
    with pytest.raises(DataError, match=r"table: column 'speed': the value -?inf was found; use finite"):
        rank(table(speed=spoilt))
    with pytest.raises(DataError, match=r"column 'x1': the value -?inf was found"):
        ForestRanker().fit(np.column_stack([Y, spoilt]), Y)


def test_infinity_in_a_target_is_said_of_the_target() -> None:
    spoilt = np.where(np.arange(N) == 3, np.inf, Y)
    with pytest.raises(DataError, match="table: target 'speed': the value inf was found; use finite"):
        rank(table(speed=spoilt), "speed")
    with pytest.raises(DataError, match="X: target 'y': the value inf was found"):
        rank(np.column_stack([Y, Y]), spoilt)


def test_types_that_cannot_be_ranked() -> None:
    blobs = pa.array([b"x"] * N, pa.binary())
    with pytest.raises(ColumnTypeError, match=r"column 'blob' is of type Binary.*drop it"):
        rank(table(blob=blobs))
    assert rank(table(blob=blobs), drop=["blob"]).features == ["a"]
    with pytest.raises(ColumnTypeError, match="column 'blob' .* cannot be a target"):
        rank(table(blob=blobs), "blob")
    with pytest.raises(ColumnTypeError, match="weight column 'w' is not numeric"):
        rank(table(w=["x"] * N), sample_weight="w")
    mixed = pd.DataFrame({"a": [1, "x"] * 15, "y": Y})
    with pytest.raises(ColumnTypeError, match="column a"):
        rank(mixed)


@pytest.mark.parametrize("data", [3, None, object(), [1, 2]])
def test_things_that_hold_no_rows(data: Any) -> None:
    with pytest.raises(ColumnTypeError, match="data: cannot rank a"):
        rank(data)


def test_arrays_of_another_shape() -> None:
    with pytest.raises(ColumnTypeError, match="1 dimensions"):
        rank(Y)


def test_no_rows(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows|0 rows"):
        rank(table().slice(0, 0))
    (tmp_path / "head.csv").write_text("a,y\n")
    with pytest.raises(DataError, match="no rows|0 rows"):
        rank(tmp_path / "head.csv")
    (tmp_path / "empty.csv").touch()
    with pytest.raises(DataError, match=r"empty.csv: the file is empty; give one with names"):
        rank(tmp_path / "empty.csv")


@pytest.mark.parametrize(
    ("values", "advice"), [([1j, 2j], "use real numbers"), (["a", 1], "astype"), ([1, "a"], "astype")]
)
def test_columns_of_pandas_that_arrow_has_no_type_for(values: list[Any], advice: str) -> None:
    frame = pd.DataFrame({"a": values * 10, "b": range(20), "y": range(20)})
    with pytest.raises(ColumnTypeError, match=f"column a with type.*{advice}.*, or drop it"):
        rank(frame)
    with pytest.raises(DataError, match="X: 0 rows"):
        ForestRanker().fit(pd.DataFrame({"a": []}), [])


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow", "arff"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00", b"PAR1", b"ARROW1\x00\x00", b"@relation"])
def test_broken_files(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(content)
    with pytest.raises((DataError, ResourceError), match=f"t.{suffix}"):
        rank(path)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_truncated_files(tmp_path: Path, suffix: str) -> None:
    whole = tmp_path / f"whole.{suffix}"
    if suffix == "arrow":
        pa.feather.write_feather(table(), str(whole), compression="uncompressed")
    else:
        pa.parquet.write_table(table(), whole)
    content = whole.read_bytes()
    for length in range(1, len(content), max(1, len(content) // 40)):
        path = tmp_path / f"t.{suffix}"
        path.write_bytes(content[:length])
        with pytest.raises((DataError, ResourceError), match=rf"t\.{suffix}"):
            rank(path)


def test_rows_of_a_csv_that_differ_in_length(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,2\n3\n")
    with pytest.raises(DataError, match=r"t\.csv: row 3 .* has 1 field, the first row 2: '3'"):
        rank(tmp_path / "t.csv")


def test_missing_files_and_folders(tmp_path: Path) -> None:
    for suffix in ("csv", "parquet", "arrow", "arff"):
        with pytest.raises(ResourceError, match=rf"t\.{suffix}"):
            rank(tmp_path / f"t.{suffix}")
    with pytest.raises(FerrankError):
        rank(tmp_path)


def test_a_stream_that_fails() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from table().to_batches()
        raise OSError("the cable was pulled")

    reader = pa.RecordBatchReader.from_batches(table().schema, batches())
    with pytest.raises(DataError, match="stream: .*the cable was pulled"):
        rank(reader)


@pytest.mark.parametrize("dtype", [float, int, bool, "U3", object, ">i4", "f2"])
def test_masked_values_are_missing(dtype: Any) -> None:
    masked = np.ma.array(np.arange(6.0).reshape(3, 2).astype(dtype), mask=[[0, 1], [0, 0], [1, 0]])
    columns = ferrank.inspect(masked)["columns"]
    assert [column["missing"] for column in columns] == [1, 1]
    assert columns == ferrank.inspect({"x0": masked[:, 0], "x1": masked[:, 1]})["columns"]


def test_masked_values_of_estimators_are_missing() -> None:
    rng = np.random.default_rng(0)
    X, mask = rng.normal(size=(60, 4)), rng.random((60, 4)) < 0.2
    y, unknown = X[:, 0] + X[:, 1], rng.random(60) < 0.2
    words = np.where(y > 0, "a", "b")
    ranker = ForestRanker(n_estimators=5, unlabelled="use", supervision=0.5, keep_trees=True)

    def fitted(X: Any, y: Any) -> bytes:
        found: bytes = ranker.fit(X, y).feature_importances_.tobytes()
        return found

    holes = np.where(mask, np.nan, X)
    assert fitted(np.ma.array(X, mask=mask), y) == fitted(holes, y)
    assert np.isnan(ranker.set_params(n_features_to_select=4).transform(np.ma.array(X, mask=mask))).any()
    assert (ranker.predict(np.ma.array(X, mask=mask)) == ranker.predict(holes)).all()
    for values, missing in [(y, np.where(unknown, np.nan, y)), (words, np.where(unknown, None, words))]:
        assert fitted(X, np.ma.array(values, mask=unknown)) == fitted(X, missing)
        assert fitted(X, np.ma.array(values, mask=False)) == fitted(X, values)
    with pytest.raises(DataError, match="rows have no target value"):
        ForestRanker().fit(X, np.ma.array(y > 0, mask=unknown))
    with pytest.raises(DataError, match="sample_weight: nan in row"):
        ranker.fit(X, y, sample_weight=np.ma.array(np.ones(60), mask=unknown))
    with pytest.raises(DataError, match="rows .*have no group"):
        ranker.fit(X, y, groups=np.ma.array(np.arange(60) // 3, mask=unknown))


class Hands:
    """An object of the Arrow PyCapsule interface that hands over what it was given."""

    def __init__(self, capsule: Any) -> None:
        self.capsule = capsule

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule


def _fails() -> Iterator[pa.Table]:
    yield table()
    raise LookupError("mine")


FOREIGN: dict[str, Callable[[], Any]] = {
    "text that is not Unicode": lambda: pd.DataFrame({"a": ["\ud800", "b"]}, dtype=object),
    "categories that are not Unicode": lambda: pd.DataFrame(
        {"a": pd.Categorical(pd.Series(["\ud800", "b"], dtype=object))}
    ),
    "a lazy frame that fails": lambda: pl.LazyFrame({"a": ["x", "y"]}).with_columns(
        pl.col("a").str.to_integer(strict=True)
    ),
    "a lazy frame without its column": lambda: pl.LazyFrame({"a": [1]}).select("b"),
    "an iterator that fails": _fails,
    "integers that no machine has": lambda: np.array([[10**30, 1], [2**64, 2]], dtype=object),
    "an array without columns": lambda: np.zeros((2**60, 0), np.int8),
    "a column of polars": lambda: pl.Series("a", [1, 2]),
    "an array of Arrow": lambda: pa.array([1, 2]),
    "a chunked array of Arrow": lambda: pa.chunked_array([[1, 2]]),
    "no capsule": lambda: Hands(5),
    "the capsule of a schema": lambda: Hands(pa.schema([("a", pa.int32())]).__arrow_c_schema__()),
    "a capsule that fails": lambda: Hands(ArithmeticError("mine")),
}


@pytest.mark.parametrize("what", FOREIGN)
def test_objects_of_other_libraries_that_raise(what: str) -> None:
    for call in (ferrank.inspect, lambda X: ForestRanker().fit(X, [0.5, 1.5])):
        with pytest.raises((DataError, ColumnTypeError)) as found:
            call(FOREIGN[what]())
        assert "Traceback" not in str(found.value)


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_an_interrupt_within_an_object_stays_itself(error: type[BaseException]) -> None:
    class Interrupted:
        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            raise error("mine")

    for call in (ferrank.inspect, lambda X: ForestRanker().fit(X, [0.5, 1.5])):
        with pytest.raises(error, match="mine"):
            call(Interrupted())


def test_lists_that_hold_themselves() -> None:
    endless: list[Any] = [1]
    endless.append(endless)
    objects = np.empty((2, 1), dtype=object)
    objects[:] = 1
    objects[0, 0] = objects
    frame = pd.DataFrame({"a": pd.Series(endless, dtype=object)})
    for data in ({"a": endless}, frame, [{"a": endless}], {"a": [{"b": endless}]}, objects):
        with pytest.raises(DataError, match="lists within lists"):
            ferrank.inspect(data)
    X, y = np.eye(2), [0.5, 1.5]
    with pytest.raises(DataError, match="groups: lists within lists"):
        ForestRanker().fit(X, y, groups=endless)
    with pytest.raises(DataError, match="y: lists within lists"):
        ForestRanker(task="hierarchical").fit(X, endless)


def test_label_files_go_with_files() -> None:
    with pytest.raises(SettingError, match="labels: a label XML goes with a file"):
        rank(table(), None, labels="labels.xml")


def test_ranker_and_settings_are_alternatives() -> None:
    with pytest.raises(SettingError, match="max_depth: give it to the ranker"):
        ferrank.rank(table(), "y", ranker=ForestRanker(), max_depth=3)


def test_task_against_the_targets() -> None:
    with pytest.raises(SettingError, match="task: classification takes one target"):
        rank(table(z=Y), ["y", "z"], task="classification")
    with pytest.raises(SettingError, match="needs a numeric target, 'word' is nominal"):
        rank(table(word=["u", "v"] * 15), "word", task="regression")


def test_unlabelled_rows() -> None:
    data = table().set_column(1, "y", pa.array([None, *Y[1:]]))
    with pytest.raises(DataError, match=r"1 .*unlabelled"):
        rank(data)
    ranking = rank(data, unlabelled="ignore")
    assert (ranking.n_rows, ranking.n_unlabelled) == (N - 1, 1)


def test_negative_weights() -> None:
    with pytest.raises(DataError, match="'w'.*negative|negative.*'w'"):
        rank(table(w=-Y), sample_weight="w")


def test_one_row_is_ranked_or_refused_in_words() -> None:
    try:
        assert rank(table().slice(0, 1)).importances().tolist() == [0.0]
    except DataError as error:
        assert "row" in str(error)  # noqa: PT017


def test_features_that_say_nothing_get_nothing() -> None:
    ranking = rank(
        table(
            constant=np.ones(N),
            word=["same"] * N,
            missing=pa.nulls(N, pa.float64()),
            null=pa.nulls(N),
            nan=np.full(N, np.nan),
        ),
        scores=("genie3", "symbolic", "permutation"),
    )
    for score in ranking.scores:
        assert ranking.importances(score)[1:].tolist() == [0, 0, 0, 0, 0]


def test_a_constant_target() -> None:
    ranking = rank(pa.table({"a": Y, "y": np.ones(N)}), scores=("genie3", "permutation"))
    assert ranking.importances("genie3").tolist() == [0.0]
    assert ranking.importances("permutation").tolist() == [0.0]


def test_a_category_for_each_row() -> None:
    ranking = rank(table(name=[f"person {number}" for number in range(N)]))
    assert np.isfinite(ranking.importances()).all()


def test_fifty_thousand_columns() -> None:
    X = np.random.default_rng(0).normal(size=(20, 50_000)).astype("f4")
    started = time.monotonic()
    ranking = ForestRanker(n_estimators=2).fit(X, X[:, 7].astype(float)).result_
    assert len(ranking.features) == 50_000
    assert time.monotonic() - started < 60


def test_odd_names() -> None:
    data = pa.table({"": Y, " ": Y, "é\n,\"'": Y, "y": Y})
    assert rank(data).features == ["", " ", "é\n,\"'"]


def text_that_is_no_utf8() -> pa.Array:
    stored = pa.array([b"\xe9t\xe9", b"x"] * 50, pa.binary())
    return pa.Array.from_buffers(pa.string(), 100, [None, *stored.buffers()[1:]])


@pytest.mark.parametrize("is_file", [True, False], ids=["parquet", "table"])
def test_text_that_is_no_utf8(is_file: bool, tmp_path: Path) -> None:
    table = pa.table({"s": text_that_is_no_utf8(), "y": np.arange(100.0)})
    pa.parquet.write_table(table, tmp_path / "latin.parquet")
    data = tmp_path / "latin.parquet" if is_file else table
    with pytest.raises(DataError, match="'s' is damaged.*UTF-?8"):
        ferrank.rank(data, "y", ranker="forest")
    if is_file:
        with pytest.raises(DataError, match="'s' is damaged"):
            ferrank.inspect(data)


def test_keys_without_a_category() -> None:
    keys = pa.array([0, 1, 7] * 20, pa.int8())
    column = pa.DictionaryArray.from_arrays(keys, pa.array(["a", "b"]), safe=False)
    with pytest.raises(DataError, match="'s' is damaged"):
        ferrank.rank(pa.table({"s": column, "y": np.arange(60.0)}), "y", ranker="forest")


def test_a_polars_column_without_any_value() -> None:
    frame = pl.DataFrame({"none": [None] * 60, "x": list(range(60)), "y": [float(i) for i in range(60)]})
    ranking = ferrank.rank(frame, "y", ranker="forest")
    assert ranking.features == ["none", "x"]
    assert ranking.top(1) == ["x"]


def test_numbers_that_no_machine_has() -> None:
    frame = pd.DataFrame({"x": np.arange(60.0), "y": np.arange(60.0)})
    with pytest.raises(SettingError, match="n_estimators: 1000000000 trees; use at most"):
        ferrank.rank(frame, "y", ranker=ForestRanker(n_estimators=10**9))
    with pytest.raises(SettingError, match="n_jobs: 1000000 threads; use at most"):
        ferrank.rank(frame, "y", ranker=ForestRanker(n_jobs=10**6))


def test_names_that_would_color_a_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    frame = pd.DataFrame({"\x1b[31mred\u202e": np.arange(60.0), "y": np.arange(60.0)})
    shown = str(ferrank.rank(frame, "y", ranker="forest"))
    assert r"\x1b[31mred\u202e" in shown
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    frame.to_parquet(tmp_path / "red.parquet")
    assert main(["rank", str(tmp_path / "red.parquet"), "--target", "\x1b[0m"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("error", [DataError, SettingError, ColumnTypeError, ResourceError, FerrankError])
def test_errors_show_foreign_text_without_control_characters(error: type[FerrankError]) -> None:
    found = error("column '\x1b[31m\x07\x9b\u202eé名\nferrank: saved nothing': rename it")
    assert str(found) == r"column '\x1b[31m\x07\x9b\u202eé名\nferrank: saved nothing': rename it"
    assert str(error(Lines("two\nlines\x1b"))) == "two\nlines\\x1b"
    assert str(pickle.loads(pickle.dumps(found))) == str(found)


def test_tracebacks_do_not_color_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,2\n2,3,\x1b[31m\u202e\n", encoding="utf-8")
    twice = pa.table([Y, Y], names=["\x1b[31m\u202e"] * 2)
    for call in (lambda: ferrank.inspect(path), lambda: rank(twice)):
        with pytest.raises(DataError) as found:
            call()
        shown = "".join(traceback.format_exception_only(found.value))
        causes = [found.value.__cause__] if found.value.__cause__ else []
        shown += "".join(map(str, causes))
        assert r"\x1b[31m\u202e" in shown
        assert "\x1b" not in shown
        assert "\u202e" not in shown


def test_events_show_foreign_text_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    events = [(logging.WARNING, "ferrank.data", "column '\x1b[31m\n'", 0.0)]
    monkeypatch.setattr("ferrank._core.take_events", lambda: events)
    logs.emit()
    assert caplog.messages == [r"column '\x1b[31m\n'"]


@pytest.fixture(scope="module")
def writers() -> dict[str, tuple[str, Callable[[Path], object]]]:
    """Return whatever writes files, by name, with the suffix that it wants."""
    table = pa.table({"x": np.arange(20.0), "y": np.arange(20.0) % 7})
    accumulator = ferrank.accumulate(table, "y", keys=range(2), ranker="forest")
    ranking = accumulator.ranking()
    forest = ferrank.rank(table, "y", ranker=ferrank.ForestRanker(n_estimators=2, keep_trees=True)).forest
    return {
        "Accumulator.save": (".arrow", accumulator.save),
        "convert": (".arrow", lambda path: ferrank.convert(table, path)),
        "Forest.save": (".ferrank", forest.save),
        "predict_to .arrow": (".arrow", lambda path: forest.predict_to(table, path)),
        "predict_to .csv": (".csv", lambda path: forest.predict_to(table, path)),
        "Ranking.save": (".json", ranking.save),
        "resume": ("", lambda path: rank(table, ranker="forest", n_estimators=2, resume=path)),
    }


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes")
@pytest.mark.parametrize("through", ["itself", "a link"])
def test_pipes_and_devices_are_no_outputs(writers: dict[str, Any], tmp_path: Path, through: str) -> None:
    for what, (suffix, write) in writers.items():
        pipe = tmp_path / f"{what}{suffix}"
        os.mkfifo(pipe)
        path = pipe if through == "itself" else pipe.with_stem("link")
        if path is not pipe:
            path.unlink(missing_ok=True)
            path.symlink_to(pipe)
        with pytest.raises(ResourceError, match="is a device or a pipe"):
            write(path)
        assert pipe.is_fifo(), what


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without pipes")
def test_merge_saves_to_files_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"x": np.arange(20.0), "y": np.arange(20.0) % 7})
    ferrank.accumulate(table, "y", keys=range(2), ranker="forest").save(tmp_path / "part.arrow")
    os.mkfifo(tmp_path / "pipe")
    assert main(["merge", str(tmp_path / "part.arrow"), "--save", str(tmp_path / "pipe")]) == 2
    assert "is a device or a pipe" in capsys.readouterr().err
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("n" * 300, "too long"),
        ("a\0b", "null character"),
        ("\udcff", "not UTF-8"),
        ("no folder/a", "does not exist"),
    ],
)
def test_names_that_no_file_has(
    writers: dict[str, Any], name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for suffix, write in writers.values():
        with pytest.raises(ResourceError, match=message):
            write(f"{name}{suffix}")
    sets = {"x": [1, 2], "y": [["a"], ["b"]]}
    for read in (
        ferrank.merge,
        ferrank.inspect,
        lambda path: ferrank.inspect(f"{path}*"),
        lambda path: ferrank.inspect(ferrank.CSVFile(path)),
        lambda path: rank(sets, hierarchy=path),
    ):
        with pytest.raises(ResourceError):
            read(name)
    assert list(tmp_path.iterdir()) == []


def test_a_file_may_have_the_longest_name(writers: dict[str, Any], tmp_path: Path) -> None:
    for what in ("Accumulator.save", "Ranking.save", "predict_to .csv"):
        suffix, write = writers[what]
        write(tmp_path / f"{'n' * (255 - len(suffix))}{suffix}")


@pytest.mark.skipif(
    not Path("/sys/kernel").exists(), reason="a system without a folder that none can write to"
)
def test_folders_that_the_system_protects(writers: dict[str, Any]) -> None:
    for suffix, write in writers.values():
        with pytest.raises(ResourceError, match="the folder /sys cannot be written to"):
            write(f"/sys/t{suffix}")


@pytest.mark.skipif(not Path("/dev/null").exists(), reason="a system without devices")
def test_devices_are_no_outputs(tmp_path: Path) -> None:
    (tmp_path / "null.arrow").symlink_to("/dev/null")
    (tmp_path / "data.csv").write_text("x,y\n1,2\n3,4\n")
    with pytest.raises(ResourceError, match="is a device or a pipe"):
        ferrank.convert(tmp_path / "data.csv", tmp_path / "null.arrow")
    assert Path("/dev/null").is_char_device()


def test_threads_that_feed_one_ranker_take_turns() -> None:
    X = np.random.default_rng(0).normal(size=(9, 4))
    ranker = ForestRanker(n_estimators=1, standard_errors=False)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: ranker.partial_fit(X, X[:, 0]), range(80)))
    assert ranker.partial_fit(None).result_.n_rows == 720


@pytest.fixture(scope="module")
def ranking() -> ferrank.Ranking:
    return rank(table(b=Y), clusters=True)


WRONG_ARGUMENTS: list[tuple[Callable[[ferrank.Ranking], Any], type[FerrankError], str]] = [
    (lambda _: ferrank.merge(None), ColumnTypeError, "parts: None is not an accumulator, a path"),
    (lambda _: ferrank.merge([None]), ColumnTypeError, "parts: None is not an accumulator or a path"),
    (lambda _: ferrank.Accumulator.from_bytes(5), ColumnTypeError, "accumulator: 5 is not bytes"),
    (lambda _: ferrank.Profile.from_bytes("x"), ColumnTypeError, "profile: 'x' is not bytes"),
    (
        lambda _: ferrank.accumulate(table(), "y").merge([]),
        ColumnTypeError,
        "others: an object of type list is not an accumulator",
    ),
    (lambda _: ferrank.profile(table(), "y").merge(3), ColumnTypeError, "other: 3 is not a profile"),
    (lambda _: ferrank.accumulate(table(), "y", profile=3), ColumnTypeError, "profile: 3 is not a profile"),
    (lambda _: rank(table(), drop=5), SettingError, "drop: 5 is not a list of column names"),
    (lambda _: rank(table(), drop=None), SettingError, "drop: None is not a list of column names"),
    (lambda _: rank(np.ones((N, 2)), Y, feature_names=5), SettingError, "feature_names: 5 is not a list"),
    (lambda _: rank(np.ones((N, 2)), Y, feature_names="ab"), SettingError, "feature_names: 'ab' is not a"),
    (lambda _: rank(table(), groups=5), ColumnTypeError, "groups: 5 is no array"),
    (lambda _: rank(table(), task=""), SettingError, "task: unknown task ''"),
    (lambda _: rank(table(), preset=[]), SettingError, r"preset: \[\] is not one of papers"),
    (lambda _: rank(table(), ranker=[]), SettingError, r"ranker: \[\] is neither a ranker"),
    (lambda _: rank(table(), hierarchy_decay=2), SettingError, r"hierarchy_decay: 2 is not in \(0, 1\]"),
    (lambda _: ferrank.grow_tree(table(), "y", tree="x"), SettingError, "tree: 'x' is not a number"),
    (lambda _: ferrank.clustering_value(table(), "y", random_state=-1), SettingError, "random_state: -1"),
    (lambda _: ferrank.tune(table(), "y", grid=5), ColumnTypeError, "grid: 5 is not a mapping"),
    (lambda _: ferrank.tune(table(), "y", folds="x"), SettingError, "folds: 'x' is not a number of folds"),
    (lambda _: ferrank.CSVFile("t.csv", header="no"), SettingError, "header: 'no' is neither True nor"),
    (lambda _: ferrank.CSVFile("t.csv", delimiter=5), SettingError, "delimiter: 5 is not one character"),
    (lambda _: ferrank.CSVFile("t.csv", encoding=5), SettingError, "encoding: 5 is no name"),
    (lambda _: ferrank.datasets.load([]), SettingError, "name: no data set is called"),
    (
        lambda it: it.top(2, ["genie3"]),
        SettingError,
        r"score: no \['genie3'\] in this ranking; it has genie3",
    ),
    (lambda it: it.plot(scores=5), SettingError, "scores: 5 is not a list of names of scores"),
    (lambda it: it.plot(scores=[]), SettingError, "scores: none was given"),
    (lambda it: it.report(5), ColumnTypeError, "others: 5 is not a mapping of names to rankings"),
    (lambda it: it.report({"b": 5}), ColumnTypeError, "others: b: 5 is not a ranking"),
    (lambda it: it.report(title=5), ColumnTypeError, "title: 5 is not a text"),
    (lambda it: it.clusters.members(["a"]), SettingError, r"feature: \['a'\] is not among"),
    (lambda it: it.clusters.tree("x"), SettingError, "most: 'x' is not a number"),
    (
        lambda _: ferrank.Clusters.from_association(["a", "b"], [1.0], 0.5),
        DataError,
        r"association: an array of shape \(1,\); use \(2, 2\)",
    ),
    (
        lambda _: ferrank.Ranking.from_importances(["a"], {}, task="regression"),
        DataError,
        "importances: there are none",
    ),
    (
        lambda _: ferrank.Ranking.from_importances(["a"], {"w": ["x"]}, task="regression"),
        ColumnTypeError,
        "importances: w: .*use numbers",
    ),
    (
        lambda _: ferrank.Ranking.from_importances(
            ["a"], {"w": [1.0]}, task="regression", standard_errors={"v": [1.0]}
        ),
        SettingError,
        "standard_errors: no score 'v'",
    ),
]


WRONG_JUDGEMENTS: list[tuple[Callable[[], Any], type[FerrankError], str]] = [
    (lambda: judge.resample(table(), "y", n="x"), SettingError, "n: 'x' is not a number of rankings"),
    (
        lambda: judge.resample(table(), "y", share="x"),
        SettingError,
        r"share: 'x' is not a number in \(0, 1\]",
    ),
    (lambda: judge.resample(table(), "y", random_state="x"), SettingError, "random_state: 'x' is no seed"),
    (lambda: judge.resample(table(), "y", progress=5), SettingError, "progress: 5 is no function"),
    (lambda: judge.resample(table(), "y", 5), ColumnTypeError, "ranker: 5 is not a ranker"),
    (lambda: judge.trees(table(), "y", "relief"), ColumnTypeError, "ranker: .* is not a ForestRanker"),
    (lambda: judge.curves(table(), "y", 5), ColumnTypeError, "rankers: 5 is not a mapping"),
    (lambda: judge.curves(table(), "y", folds="x"), SettingError, "folds: 'x' is not a number of folds"),
    (lambda: judge.curves(table(), "y", n_random="x"), SettingError, "n_random: 'x' is not a number"),
    (lambda: judge.curves(table(), "y", scoring=5), SettingError, "scoring: 5 is no function"),
    (lambda: judge.curves(table(), "y", sizes=["x"]), ColumnTypeError, "sizes: .*use numbers"),
    (lambda: judge.curves(table(), "y", hierarchy_decay=5), SettingError, "hierarchy_decay: 5 is not in"),
    (lambda: judge.evaluate(table(), [], test=table(), target="y", progress=5), SettingError, "progress: 5"),
    (lambda: judge.evaluate(table(), [], test=table(), target="y", threshold="x"), SettingError, "threshold"),
    (lambda: judge.aggregate(5), ColumnTypeError, "rankings: 5 is not a sequence of rankings"),
    (lambda: judge.aggregate([[1.0], ["x"]]), ColumnTypeError, "rankings: .*use numbers"),
    (lambda: judge.aggregate([[1.0, 2.0]], []), SettingError, r"method: \[\] is not one of mean_rank"),
    (lambda: judge.aggregate([[1.0, 2.0]], weights=["x"]), ColumnTypeError, "weights: .*use numbers"),
    (lambda: judge.stability([[1.0, 2.0]] * 2, sizes=["x"]), ColumnTypeError, "sizes: .*use numbers"),
    (lambda: judge.stability([[1.0, 2.0]] * 2, sizes=[1.5]), SettingError, "sizes: 1.5 is no whole number"),
    (lambda: judge.rank_distances([[1.0, 2.0]], []), SettingError, r"distance: \[\] is not one of spearman"),
    (lambda: judge.expected_canberra(3, 5), SettingError, "i: 5 is not in 1 … 3"),
    (
        lambda: judge.compare({"a": [1, 2], "b": [2, 1]}, alpha="x"),
        SettingError,
        "alpha: 'x' is not a number in",
    ),
    (lambda: judge.compare({"a": [1, 2], "b": [2, 1]}, control=[]), SettingError, r"control: no method \[\]"),
    (lambda: judge.compare({"a": [1, 2]}, lower_is_better="no"), SettingError, "lower_is_better: 'no' is"),
    (lambda: judge.synthesize("parity", "x"), SettingError, "n_rows: 'x' is not a number of rows"),
    (
        lambda: judge.synthesize("linear", n_informative="x"),
        SettingError,
        "n_informative: 'x' is not",
    ),
    (lambda: judge.synthesize("parity", random_state="x"), SettingError, "random_state: 'x' is no seed"),
    (lambda: judge.perturb([1.0], "x"), SettingError, r"share: 'x' is not a number in \[0, 1\]"),
    (lambda: judge.perturb(["x"], 0.5), ColumnTypeError, "importances: .*use numbers"),
    (lambda: judge.tanimoto(["x"], [1.0]), ColumnTypeError, "importances: .*use numbers"),
    (lambda: judge.subset_sizes("x"), SettingError, "n_features: 'x' is not a number"),
    (lambda: judge.subset_sizes(9, "linear", "x"), SettingError, "step: 'x' is not a number"),
    (lambda: judge.multilabel_measures([1], [[1.0]]), DataError, r"true: an array of shape \(1,\)"),
    (lambda: judge.multilabel_measures([[1]], [["x"]]), ColumnTypeError, "scores: .*use numbers"),
    (lambda: judge.multilabel_measures([[1]], [[1]], conventions=5), SettingError, "conventions: 5 is not"),
    (lambda: judge.precision_recall_area([1], 5), DataError, r"scores: an array of shape \(\)"),
    (lambda: judge.group_importance(None, 5, Y, {"g": ["a"]}), DataError, "X: no table"),
    (
        lambda: judge.group_importance(None, np.ones((2, 1)), Y, 5),
        ColumnTypeError,
        "groups: 5 is not",
    ),
    (lambda: judge.group_importance(5, np.ones((2, 1)), Y, {"g": ["x0"]}), SettingError, "scoring: "),
    (
        lambda: judge.report("r.html", curves=5),
        ColumnTypeError,
        "curves: 5 is not what ferrank",
    ),
    (lambda: judge.report("r.html", stability=5), ColumnTypeError, "stability: 5 is not what"),
    (lambda: judge.report("r.html", []), DataError, "rankings: none were given"),
    (lambda: judge.report_study(5, "r.html"), SettingError, "folder: 5 is no path"),
    (lambda: judge.read_plan(5), SettingError, "plan: 5 is no path"),
    (lambda: judge.Study(5, {"f": "forest"}), ColumnTypeError, "data: 5 is not a mapping by name"),
    (
        lambda: judge.Study({"d": table()}, {"f": "forest"}, only=5),
        ColumnTypeError,
        "only: 5 is not",
    ),
    (lambda: judge.Study({"d": table()}, {"f": "forest"}, judge=5), SettingError, "judge: 5 judges nothing"),
    (lambda: judge.Study({"d": table()}, {"f": "forest"}, folder=5), SettingError, "folder: 5 is no path"),
    (lambda: judge.BinaryRelevance(inner_settings=5).inner_ranker(), ColumnTypeError, "inner_settings: 5 is"),
    (lambda: judge.BinaryRelevance(inner=[]).inner_ranker(), SettingError, r"inner: \[\] is neither"),
]


@pytest.mark.parametrize("number", range(len(WRONG_JUDGEMENTS)))
def test_wrong_arguments_of_what_judges_are_named(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    call, error, message = WRONG_JUDGEMENTS[number]
    with pytest.raises(error, match=f"^{message}"):
        call()


@pytest.mark.parametrize("number", range(len(WRONG_ARGUMENTS)))
def test_wrong_arguments_are_named(ranking: ferrank.Ranking, number: int) -> None:
    call, error, message = WRONG_ARGUMENTS[number]
    with pytest.raises(error, match=f"^{message}"):
        call(ranking)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"stable_top": 5}, "stable_top: has no effect without until"),
        ({"confidence": 0.9}, "confidence: has no effect without until"),
        ({"ranker": "relief", "turf_features": 5}, "turf_features: has no effect without turf_step"),
        ({"ranker": "forest", "scope": "partition"}, "scope: has no effect without a dask collection"),
        ({"block_rows": 10}, "block_rows: for the estimators"),
        ({"n_features_to_select": 1}, "n_features_to_select: for the estimators"),
    ],
)
def test_settings_without_an_effect_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        ferrank.rank(table(), "y", **settings)


def test_weights_are_one_for_each_row() -> None:
    with pytest.raises(DataError, match="sample_weight: 5 is a single number; give each row one weight"):
        rank(np.ones((N, 2)), Y, sample_weight=5)
    with pytest.raises(DataError, match="sample_weight: 5 is a single number"):
        ForestRanker().fit(np.column_stack([Y, Y]), Y, sample_weight=5)


def test_no_rows_are_said_to_be_none() -> None:
    X = np.ones((N, 2))
    for target in (Y[:0], []):
        with pytest.raises(DataError, match="data: there are no rows"):
            rank(X[:0], target)
    with pytest.raises(SettingError, match="target: no target was given"):
        rank(X[:0], None)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # Such as that the target is constant.
        with pytest.raises(DataError, match="table: there are no rows"):
            rank(table().slice(0, 0))


def test_the_joint_ranker_is_not_told_to_use_rows_without_a_target() -> None:
    with pytest.raises(DataError, match=r"unlabelled=\"use\" in a forest .* or in Relief, or fill them in"):
        ferrank.rank(table(gap=np.where(np.arange(N) == 3, np.nan, Y)), "gap", ranker="joint")


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,y\n1,\xe4\n2,\x81\n")
    with (
        pytest.warns(UnicodeWarning),
        pytest.raises(DataError, match="no text of the encoding .* say another"),
    ):
        rank(path)
    path.write_bytes(b"a,y\n" + b"1,2\n" * 3_000_000 + b"1,\x81\n")
    with pytest.raises(DataError, match="no text of the encoding .* say another"):
        rank(ferrank.CSVFile(path, encoding="cp1252"))
