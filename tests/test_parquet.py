"""Parquet files: categories of any type, and what the writer says of them."""

import base64
import datetime
import decimal
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import ferrank as fr

ROWS = 600
RNG = np.random.default_rng(0)
DAYS = [datetime.date(2024, 3, 1), datetime.date(2024, 2, 29), datetime.date(1969, 12, 31)]
CATEGORIES = {
    "integers": pa.array([3, 1, 2], pa.int8()),
    "large": pa.array([2**63, 1, 2], pa.uint64()),
    "floats": pa.array([0.5, -1.0, 2.5]),
    "bools": pa.array([True, False]),
    "days": pa.array(DAYS),
    "milliseconds of days": pa.array(DAYS, pa.date64()),
    "times": pa.array([3, 1, 2], pa.timestamp("s")),
    "zoned": pa.array([3, 1, 2], pa.timestamp("us", "Europe/Ljubljana")),
    "of day": pa.array([3, 1, 2], pa.time32("s")),
    "durations": pa.array([3, 1, 2], pa.duration("ms")),
    "decimals": pa.array([decimal.Decimal("1.5"), decimal.Decimal("0.5")]),
    "texts": pa.array(["c", "a", "b"]),
}


def _column(values: pa.Array) -> pa.DictionaryArray:
    keys = pa.array(RNG.integers(len(values), size=ROWS), pa.int8(), mask=RNG.random(ROWS) < 0.1)
    return pa.DictionaryArray.from_arrays(keys, values)


TABLE = pa.table(
    {name: _column(values) for name, values in CATEGORIES.items()} | {"y": RNG.normal(size=ROWS).cumsum()}
)


def _importances(data: object, ranker: str) -> dict[str, float]:
    ranking = fr.rank(data, "y", ranker=ranker)
    return dict(zip(ranking.features, ranking.importances().tolist(), strict=True))


@pytest.mark.parametrize("ranker", ["forest", "relief"])
def test_categories_of_any_type_are_nominal(tmp_path: Path, ranker: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(TABLE, path, row_group_size=250)
    columns = fr.inspect(path)["columns"]
    assert [column["kind"] for column in columns] == ["nominal"] * len(CATEGORIES) + ["numeric"]
    assert [column["top"] for column in columns] == [column["top"] for column in fr.inspect(TABLE)["columns"]]
    assert _importances(path, ranker) == _importances(TABLE, ranker)


def test_categories_are_the_same_in_all_containers(tmp_path: Path) -> None:
    frame = pd.DataFrame({"c": pd.Categorical([3, 1, 2] * 40), "y": RNG.normal(size=120)})
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_feather(tmp_path / "t.feather")
    fr.convert(tmp_path / "t.parquet", tmp_path / "t.arrow")
    wanted = _importances(frame, "forest")
    for name in ("t.parquet", "t.feather", "t.arrow"):
        assert _importances(tmp_path / name, "forest") == wanted, name
    for name in ("a", "b"):
        (tmp_path / "parts").mkdir(exist_ok=True)
        frame.iloc[:60].to_parquet(tmp_path / "parts" / f"{name}.parquet")
    assert fr.inspect(tmp_path / "parts")["columns"][0]["kind"] == "nominal"


PLAIN = pa.table(
    {"a": [3, 1, 2] * 20, "word": ["x", "y"] * 30, "labels": [["p"]] * 60, "y": RNG.normal(size=60)}
)


def _written(path: Path, said: bytes) -> Path:
    """Write ``PLAIN`` as from a writer that says something of its own."""
    with pq.ParquetWriter(path, PLAIN.schema, store_schema=False) as writer:
        writer.write_table(PLAIN)
        writer.add_key_value_metadata({b"ARROW:schema": said})
    return path


def test_damaged_pages_are_told_without_a_traceback(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"a": RNG.random(10_000), "y": RNG.random(10_000)}), path, use_dictionary=False)
    damaged = bytearray(path.read_bytes())
    damaged[10:60] = b"\xff" * 50
    path.write_bytes(damaged)
    with pytest.raises(fr.DataError, match=r"t\.parquet: ") as caught:
        fr.inspect(path)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_all_that_writers_use_is_read(tmp_path: Path, compression: str, version: str) -> None:
    path = tmp_path / "t.parquet"
    by = {"a": "DELTA_BINARY_PACKED", "word": "DELTA_BYTE_ARRAY", "y": "BYTE_STREAM_SPLIT"}
    pq.write_table(
        PLAIN,
        path,
        compression=compression,
        data_page_version=version,
        data_page_size=100,
        use_dictionary=["labels"],
        column_encoding=by,
    )
    assert pa.table(fr.Dataset(path, "y")).to_pydict() == PLAIN.to_pydict()
    times = pa.table({"t": pa.array(range(60), pa.timestamp("ns")), "y": PLAIN["y"]})
    pq.write_table(times, path, use_deprecated_int96_timestamps=True)
    assert pa.table(fr.Dataset(path, "y")).to_pydict() == times.to_pydict()


@pytest.mark.parametrize("dictionary", [True, False])
def test_text_that_is_not_utf_8_is_an_error(tmp_path: Path, dictionary: bool) -> None:
    path = tmp_path / "t.parquet"
    table = pa.table({"word": ["caffee", "tea"] * 30, "y": PLAIN["y"]})
    pq.write_table(table, path, compression="none", use_dictionary=dictionary, write_statistics=False)
    path.write_bytes(path.read_bytes().replace(b"caffee", b"caff\xe9e"))
    with pytest.raises(fr.DataError, match=r"t\.parquet: .*(?i:utf-?8)"):
        fr.rank(path, "y")
    with pytest.raises(fr.DataError, match=r"t\.parquet: .*(?i:utf-?8)"):
        fr.convert(path, tmp_path / "t.arrow")
    assert not (tmp_path / "t.arrow").exists()


NAMES = PLAIN.column_names
TYPES = [pa.int64(), pa.float32(), pa.string(), pa.list_(pa.int8()), pa.duration("s")]


@pytest.mark.parametrize("values", TYPES, ids=str)
@pytest.mark.parametrize("names", [NAMES, NAMES[::-1], NAMES[:1], [*NAMES, "more"]])
def test_values_are_those_of_the_file_whatever_the_writer_says(
    tmp_path: Path, values: pa.DataType, names: list[str]
) -> None:
    said = pa.schema([(name, pa.dictionary(pa.int8(), values)) for name in names])
    path = _written(tmp_path / "t.parquet", base64.b64encode(said.serialize()))
    found = pa.table(fr.Dataset(path, "y"))
    for name in ("word", "labels", "y"):
        assert found[name].to_pylist() == PLAIN[name].to_pylist()
    assert found["a"].cast(pa.int64()).to_pylist() == PLAIN["a"].to_pylist()


@pytest.mark.parametrize("said", [b"%%%", b"", base64.b64encode(b"\xff" * 20), base64.b64encode(b"\0" * 8)])
def test_what_the_writer_says_may_be_damaged(
    tmp_path: Path, said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = _written(tmp_path / "t.parquet", said)
    assert pa.table(fr.Dataset(path, "y")).to_pydict() == PLAIN.to_pydict()
    fr.inspect(path)
    assert "t.parquet: the types that its writer notes beside the data are not used" in caplog.text


def test_types_that_only_their_writer_knows_leave_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "t.parquet"
    large = pl.Series([1, 2, 3] * 20, dtype=pl.Int128)
    frame = pl.DataFrame({"large": large, "a": PLAIN["a"].to_pylist(), "y": PLAIN["y"].to_pylist()})
    frame.write_parquet(path)
    assert fr.rank(path, "y", drop=["large"], n_estimators=2).features == ["a"]
    with pytest.raises(fr.ColumnTypeError, match="'large'"):
        fr.rank(path, "y")
    assert "panicked" not in capfd.readouterr().err


def test_what_is_no_parquet_or_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pa.feather.write_feather(PLAIN, path)
    with pytest.raises(fr.DataError, match=r"t\.parquet: this is no Parquet file; give it the suffix"):
        fr.inspect(path)
    path.write_bytes(b"PAR1 and what is encrypted PARE")
    with pytest.raises(fr.DataError, match=r"t\.parquet: the Parquet file is encrypted; write it without"):
        fr.inspect(path)


def test_checksums_of_pages_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(
        PLAIN.select(["y"]), path, compression="none", use_dictionary=False, write_page_checksum=True
    )
    damaged = path.read_bytes().replace(PLAIN["y"].to_numpy()[7].tobytes(), bytes(8), 1)
    path.write_bytes(damaged)
    with pytest.raises(fr.DataError, match=r"t\.parquet: .*(?i:crc)"):
        fr.inspect(path)


@pytest.mark.parametrize("how", ["path", "open file"])
def test_errors_while_rows_are_read_name_the_file_first(tmp_path: Path, how: str) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(PLAIN.select(["a", "y"]), path, compression="none", use_dictionary=False)
    start = pq.read_metadata(path).row_group(0).column(1).data_page_offset
    damaged = bytearray(path.read_bytes())
    damaged[start : start + 10] = b"\xff" * 10
    path.write_bytes(damaged)
    name = re.escape(str(path)) if how == "path" else "the open file"
    with pytest.raises(fr.DataError, match=f"^{name}: column 'y' is damaged: "):
        fr.rank(path if how == "path" else io.BytesIO(damaged), "y")


def _frame(index: str | None) -> pd.DataFrame:
    values = np.random.default_rng(2).normal(size=(60, 4))
    rows = pd.Index([f"row {row // 2}" for row in range(60)], name=index)
    return pd.DataFrame(values, columns=list("abcy"), index=rows)


@pytest.mark.parametrize("index", [None, "patient"])
def test_the_index_of_a_frame_is_no_feature(tmp_path: Path, index: str | None) -> None:
    frame, path = _frame(index), tmp_path / "t.parquet"
    frame.to_parquet(path)
    table = pa.Table.from_pandas(frame)
    pyarrow.feather.write_feather(table, tmp_path / "t.arrow")
    assert table.num_columns == 5
    wanted = fr.rank(frame, "y", n_estimators=5)
    for data in (path, tmp_path / "t.arrow", table):
        for roles in ({"target": "y"}, {"target_last": 1}):
            found = fr.rank(data, n_estimators=5, **roles)
            assert found.features == ["a", "b", "c"]
            np.testing.assert_array_equal(found.importances(), wanted.importances())
    assert fr.inspect(path)["columns"][4]["kind"] == "index"


def test_the_index_of_a_frame_can_have_a_role(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    _frame("patient").to_parquet(path)
    grouped = fr.rank(path, "y", groups="patient", n_estimators=5)
    assert not np.array_equal(grouped.importances(), fr.rank(path, "y", n_estimators=5).importances())
    assert fr.rank(path, "patient", n_estimators=5).features == ["a", "b", "c", "y"]
    named = fr.rank(path, "y", categorical_features=["patient"], n_estimators=5)
    assert named.features == ["a", "b", "c", "patient"]


@pytest.mark.parametrize(
    "note", [b"{", b"[]", b'{"index_columns": 1}', b'{"index_columns": [{"kind": "range"}, 3]}']
)
def test_a_note_about_the_index_may_be_anything(note: bytes) -> None:
    table = pa.Table.from_pandas(_frame(None), preserve_index=False).replace_schema_metadata({"pandas": note})
    features = table.drop_columns("y")
    assert fr.rank(table, "y", n_estimators=5).features == ["a", "b", "c"]
    assert fr.ForestRanker(n_estimators=5).fit(features, table["y"]).n_features_in_ == 3


def test_an_index_is_no_feature_beside_values_of_the_target() -> None:
    frame = _frame(None)
    features = pa.Table.from_pandas(frame[["a", "b", "c"]])
    ranker = fr.ForestRanker(n_estimators=5).fit(features, frame["y"])
    assert list(ranker.feature_names_in_) == ["a", "b", "c"]
    assert fr.rank(features, frame["y"], n_estimators=5).features == ["a", "b", "c"]
