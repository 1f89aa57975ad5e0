"""Any table in: formats, ways to write CSV, URLs, open files, data sets of other libraries."""

import gzip
import io
import json
import re
import subprocess
import sys
import threading
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import permutations
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet
import pytest

import ferrank as fr
from ferrank.cli import main
from ferrank.data import files, readers, remote

ROWS = 150
RNG = np.random.default_rng(0)
X = RNG.normal(size=(ROWS, 3)).round(6)
FRAME = pd.DataFrame(X, columns=["x0", "x1", "x2"]).assign(
    word=RNG.choice(["é", "b", "c"], ROWS), y=(X[:, 0] + X[:, 1] ** 2).round(6)
)
TABLE = pa.Table.from_pandas(FRAME)


def importances(data: Any, target: str = "y") -> list[float]:
    found = fr.rank(data, target, n_estimators=8)
    assert found.n_rows == ROWS
    return sorted(found.importances().tolist())


WANTED = importances(TABLE)
NUMBERS = importances(TABLE.drop_columns(["word"]))


def write_csv(path: Path, frame: pd.DataFrame = FRAME, **how: Any) -> Path:
    frame.to_csv(path, index=False, **how)
    return path


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"sep": ";"},
        {"sep": "\t"},
        {"sep": "|"},
        {"sep": ";", "decimal": ","},
        {"sep": "\t", "decimal": ","},
        {"encoding": "utf-16"},
        {"encoding": "utf-8-sig"},
        {"sep": ";", "decimal": ",", "encoding": "utf-16"},
        {"header": False},
        {"header": False, "sep": ";", "decimal": ","},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["t.csv", "t.txt"])
def test_how_a_csv_file_is_written_is_seen(tmp_path: Path, how: dict[str, Any], name: str) -> None:
    frame = FRAME
    if not how.get("header", True):
        # Without a name, the first line has to be one of numbers.
        frame = FRAME.drop(columns="word").rename(columns={"y": "x3"})
    path = write_csv(tmp_path / name, frame, **how)
    assert importances(path, frame.columns[-1]) == (WANTED if frame is FRAME else NUMBERS)


def test_what_is_said_of_a_csv_file_counts(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", FRAME, sep="#", header=False, encoding="cp1250")
    file = fr.CSVFile(path, delimiter="#", header=False, encoding="cp1250")
    assert importances(file, "x4") == WANTED
    names = [column["name"] for column in fr.inspect(file)["columns"]]
    assert names == ["x0", "x1", "x2", "x3", "x4"]


@pytest.mark.parametrize("what", ["stdin", "reader", "json", "orc"])
def test_a_folder_for_temporary_files_that_is_not_there_is_named(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    nowhere = tmp_path / "nowhere"
    table = pa.Table.from_pandas(FRAME)
    if what == "stdin":
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a,y\n1,2\n")))
        assert main(["rank", "-", "--target", "y", "--temp-dir", str(nowhere)]) == 2
        assert f"--temp-dir: there is no folder {nowhere}; make it first" in capsys.readouterr().err
        return
    WRITERS["t.jsonl"](tmp_path / "t.jsonl")
    WRITERS["t.orc"](tmp_path / "t.orc")
    data = {"reader": table.to_reader(), "json": tmp_path / "t.jsonl", "orc": tmp_path / "t.orc"}
    with pytest.raises(fr.ResourceError, match="temp_dir: there is no folder .*nowhere; make it first"):
        fr.rank(data[what], "y", temp_dir=nowhere)


def test_csv_files_of_other_names_are_told_what_would_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_csv(tmp_path / "table.xyz", FRAME)
    what = "table.xyz: looks like CSV or other text; CSV files are known by their names: rename it to .csv"
    with pytest.raises(fr.DataError, match=what) as caught:
        fr.rank(path, "y")
    assert str(caught.value).endswith("or give CSVFile(path, delimiter=',')")
    assert importances(fr.CSVFile(path, delimiter=",")) == WANTED
    assert main(["inspect", str(path)]) == 2
    assert "or give --delimiter ," in capsys.readouterr().err
    assert main(["inspect", str(path), "--delimiter", ","]) == 0


def test_encodings_are_told_as_options_in_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_csv(tmp_path / "t.csv", FRAME, encoding="cp1252")
    assert main(["inspect", str(path)]) == 0
    assert "read as cp1252; --encoding says otherwise" in capsys.readouterr().err


@pytest.mark.parametrize("of", ["table", "column"])
def test_metadata_that_are_no_text_do_no_harm(of: str) -> None:
    table = pa.Table.from_pandas(FRAME, preserve_index=False)
    metadata = {b"model": b"\xff\x00"}
    if of == "table":
        table = table.replace_schema_metadata(metadata)
    else:
        fields = [field.with_metadata(metadata) for field in table.schema]
        table = table.cast(pa.schema(fields))
    given = [table, table.to_reader(), pa.dataset.dataset(table)]
    assert [importances(data) for data in given] == [WANTED] * len(given)
    with pytest.raises(fr.DataError, match="data: the schema cannot be taken over; write its names and meta"):
        importances(Capsules(table))


class Capsules:
    """An object of which no more is known than that it speaks Arrow."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("suffix", ["orc", "csv"])
def test_errors_name_the_open_file_and_not_its_copy(suffix: str) -> None:
    file = io.BytesIO(b"ORC damaged" if suffix == "orc" else b"a,y\n1,2\n3\n")
    given = file if suffix == "orc" else fr.CSVFile(file)
    with pytest.raises(fr.DataError, match="^the open file: "):
        fr.rank(given, "y")


def test_other_encodings_are_told(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", FRAME, encoding="cp1252")
    with pytest.warns(UnicodeWarning, match=r"t.csv: is not UTF-8 and read as cp1252"):
        assert importances(path) == WANTED
    late = tmp_path / "late.csv"
    late.write_bytes(b"a,y\n" + b"x,1.5\nz,2.5\n" * 20_000 + b"\xe9,0.5\n")
    with pytest.raises(fr.DataError, match=r"late.csv.*column 'a' is not UTF-8; say its encoding"):
        fr.rank(late, "y", n_estimators=2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"delimiter": ";;"}, "delimiter: ';;' is not one character"),
        ({"decimal": ";"}, "decimal: ';' is neither"),
        ({"encoding": "klingon"}, "encoding: unknown encoding: klingon; use utf-8"),
    ],
)
def test_settings_of_csv_files(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.SettingError, match=message):
        fr.CSVFile("t.csv", **settings)


def test_options_of_csv_files_in_the_shell(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "t.csv", FRAME, sep="#", header=False, encoding="cp1250")
    command = [sys.executable, "-m", "ferrank", "inspect", str(path)]
    options = ["--delimiter", "#", "--no-header", "--encoding", "cp1250"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
    assert "x4" in done.stdout
    assert "é" in done.stdout


def test_the_decimal_sign_is_an_option_in_the_shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A comma in each number would else part thousands from hundreds, or be text."""
    path = tmp_path / "t.csv"
    path.write_text("a;y\n1,500;1.5\n2,500;2,5\n")
    assert main(["inspect", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["columns"][0]["type"] == "Utf8"
    assert main(["inspect", str(path), "--json", "--decimal", ","]) == 0
    assert json.loads(capsys.readouterr().out)["columns"][0]["range"] == [1.5, 2.5]
    assert main(["inspect", str(path), "--decimal", ";"]) == 2
    assert "--decimal: ';' is neither '.' nor ','" in capsys.readouterr().err


def jsonl(path: Path) -> None:
    FRAME.to_json(path, orient="records", lines=True, double_precision=12)


def json_list(path: Path) -> None:
    FRAME.to_json(path, orient="records", double_precision=12)


WRITERS: dict[str, Callable[[Path], object]] = {
    "t.orc": partial(pyarrow.orc.write_table, TABLE),
    "t.jsonl": jsonl,
    "t.ndjson": jsonl,
    "t.json": json_list,
    "t.parquet": partial(pyarrow.parquet.write_table, TABLE),
    "t.arrow": partial(pyarrow.feather.write_feather, TABLE),
    "t.csv": write_csv,
    "t.csv.gz": write_csv,
}


@pytest.mark.parametrize("name", WRITERS)
def test_formats(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    assert importances(tmp_path / name) == WANTED


@pytest.mark.parametrize("name", ["T.CSV.GZ", "t.csv.Bz2", "t.jsonl.GZ", "t.tsv.ZST", "t.json.LZ4"])
def test_suffixes_of_compressors_in_upper_case(tmp_path: Path, name: str) -> None:
    plain = tmp_path / name.lower().rpartition(".")[0]
    write_csv(plain, sep="\t" if plain.suffix == ".tsv" else ",") if "sv" in plain.suffix else jsonl(plain)
    kind = {"gz": "gzip", "bz2": "bz2", "zst": "zstd", "lz4": "lz4"}[name.lower().rpartition(".")[2]]
    with pa.output_stream(tmp_path / name, compression=kind) as file:
        file.write(plain.read_bytes())
    assert importances(tmp_path / name) == WANTED


def test_numpy_files(tmp_path: Path) -> None:
    matrix = np.column_stack([X, FRAME.y])
    np.save(tmp_path / "t.npy", matrix)
    np.save(tmp_path / "big.npy", matrix.astype(">f8"))
    np.savez(tmp_path / "t.npz", X=X, y=FRAME.y)
    assert importances(tmp_path / "t.npy", "x3") == NUMBERS
    assert importances(tmp_path / "big.npy", "x3") == NUMBERS
    assert importances(tmp_path / "t.npz") == NUMBERS
    np.savez(tmp_path / "odd.npz", X=X, y=FRAME.y[1:])
    with pytest.raises(fr.DataError, match="odd.npz: its arrays have different numbers of rows"):
        fr.rank(tmp_path / "odd.npz", "y")
    np.save(tmp_path / "object.npy", np.array([[{}]]), allow_pickle=True)
    with pytest.raises(fr.DataError, match="object.npy"):
        fr.rank(tmp_path / "object.npy", "x0")


@pytest.mark.parametrize(
    ("dtype", "shape", "none"),
    [
        ("<f8", (0, 30_000_000), "rows"),
        ("<f8", (0,), "rows"),
        ("<f8", (10**13, 0), "columns"),
        ("<U0", (1, 30_000_000), "bytes in its values"),
    ],
)
def test_numpy_files_that_claim_much_and_hold_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str, shape: tuple[int, ...], none: str
) -> None:
    with (tmp_path / "t.npy").open("wb") as file:
        header = {"descr": dtype, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive:
        archive.write(tmp_path / "t.npy", "a.npy")
    # Creating that many columns would take gigabytes.
    monkeypatch.delattr("ferrank.data.readers.numpy.array_source")
    monkeypatch.delattr("ferrank.data.readers.numpy._names")
    with pytest.raises(fr.DataError, match=f"t.npy: there are no {none} "):
        fr.inspect(tmp_path / "t.npy")
    with pytest.raises(fr.DataError, match=f"t.npz: the array 'a': there are no {none} "):
        fr.inspect(tmp_path / "t.npz")


@pytest.mark.parametrize("held", [8 << 20, 0], ids=["in memory", "in blocks"])
def test_arrays_and_columns_of_numpy_files_have_different_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr("ferrank.data.readers.numpy._HELD_BYTES", held)
    for name in ("X", "a"):
        first = "x0" if name == "X" else "a0"
        np.savez(tmp_path / "t.npz", **{name: X, first: FRAME.y})
        with pytest.raises(
            fr.DataError, match=rf"t.npz: two columns are called '{first}' \(numbers 1 and 4\)"
        ):
            fr.inspect(tmp_path / "t.npz")
    np.save(tmp_path / "a.npy", X)
    for other in ("a.npy", "a"):
        with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a name that is there twice
            archive.write(tmp_path / "a.npy", "a.npy")
            archive.write(tmp_path / "a.npy", other)
        with pytest.raises(fr.DataError, match=r"t.npz: two arrays are called 'a' \(numbers 1 and 2\)"):
            fr.inspect(tmp_path / "t.npz")


CELLS: dict[str, tuple[list[Any], str]] = {
    "digits": (["01", "02", None], "Utf8"),
    "flags": ([True, None, False], "Boolean"),
    "integers": ([3, None, 1], "Int64"),
    "floats": ([1, 2.5, None], "Float64"),
    "large": ([10**30, 1, None], "Float64"),
    "numbers in text": (["01", 2, "?"], "Float64"),
    "days": ([datetime(2024, 2, 29), None, datetime(1969, 1, 1)], "Timestamp(µs)"),
    "nothing": ([None, None, None], "Float64"),
}


def write_excel(path: Path, columns: dict[str, list[Any]]) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in [list(columns), *zip(*columns.values(), strict=True)]:
        book.active.append(row)
    book.save(path)


def test_types_of_excel_are_those_of_cells(tmp_path: Path) -> None:
    write_excel(tmp_path / "t.xlsx", {name: cells for name, (cells, _) in CELLS.items()})
    columns = fr.inspect(tmp_path / "t.xlsx")["columns"]
    assert {column["name"]: column["type"] for column in columns} == {
        name: kind for name, (_, kind) in CELLS.items()
    }
    assert columns[0]["top"] == [("01", 1), ("02", 1)]
    write_excel(tmp_path / "u.xlsx", {name: [None] for name in CELLS})
    parts = fr.inspect(tmp_path)["columns"]
    assert [column["type"] for column in parts] == [column["type"] for column in columns[:-1]] + ["Null"]


def test_missing_values_of_excel_are_those_of_csv(tmp_path: Path) -> None:
    words = ["None", "n/a", "-NaN", "1.#IND", "?", "NA", "a", "b"]
    pd.DataFrame({"word": words, "y": range(8)}).to_excel(tmp_path / "t.xlsx", index=False)
    assert fr.inspect(tmp_path / "t.xlsx")["columns"][0]["missing"] == 2


def test_workbooks_that_are_none_or_of_other_programs(tmp_path: Path) -> None:
    write_excel(tmp_path / "t.xlsm", {"a": [1, 2, 4]})
    assert fr.inspect(tmp_path / "t.xlsm")["rows"] == 3
    (tmp_path / "cut.xlsx").write_bytes((tmp_path / "t.xlsm").read_bytes()[:2000])
    with pytest.raises(
        fr.DataError, match=r"cut\.xlsx: no Excel workbook, or a damaged one .*; save it again"
    ):
        fr.inspect(tmp_path / "cut.xlsx")
    with zipfile.ZipFile(tmp_path / "other.xlsx", "w") as other:
        other.writestr("a.txt", "1")
    with pytest.raises(fr.DataError, match=r"other\.xlsx: no Excel workbook, or a damaged one"):
        fr.inspect(tmp_path / "other.xlsx")
    (tmp_path / "t.ods").write_bytes((tmp_path / "t.xlsm").read_bytes())
    with pytest.raises(fr.DataError, match=r"t\.ods: this is a zip archive, as OpenDocument files are"):
        fr.inspect(tmp_path / "t.ods")
    (tmp_path / "t.xls").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))
    with pytest.raises(fr.DataError, match=r"t\.xls: this is a file of Office before 2007"):
        fr.inspect(tmp_path / "t.xls")


def test_the_first_worksheet_of_excel_is_read_and_its_names_differ(tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl")
    write_excel(tmp_path / "t.xlsx", {"a": [1, 2, 4]})
    book = openpyxl.load_workbook(tmp_path / "t.xlsx")
    book.create_chartsheet("chart", 0).add_chart(openpyxl.chart.BarChart())
    book.save(tmp_path / "chart.xlsx")
    assert fr.inspect(tmp_path / "chart.xlsx")["columns"] == fr.inspect(tmp_path / "t.xlsx")["columns"]
    book = openpyxl.Workbook()
    book.active.append(["a", "a", "y"])
    book.active.append([1, 2, 3])
    book.save(tmp_path / "twice.xlsx")
    with pytest.raises(fr.DataError, match=r"twice\.xlsx: .*'a'"):
        fr.inspect(tmp_path / "twice.xlsx")


@pytest.mark.parametrize("cells", [["x", 2], [datetime(2024, 2, 29), 2], [True, "no"]])
def test_cells_of_several_types_in_excel(tmp_path: Path, cells: list[Any]) -> None:
    write_excel(tmp_path / "t.xlsx", {"a": cells})
    found = ", ".join(sorted(type(cell).__name__ for cell in cells))
    with pytest.raises(
        fr.ColumnTypeError, match=rf"t\.xlsx: column 'a' has cells of the types {found}; use one"
    ):
        fr.inspect(tmp_path / "t.xlsx")


@pytest.mark.parametrize("suffix", ["orc", "jsonl", "json", "npy", "npz", "xlsx", "csv"])
@pytest.mark.parametrize("content", [b"", b"\x00\xff\x00", b"{", b"[1]", b"PK\x03\x04", b"\x93NUMPY\x01\x00"])
def test_damaged_files(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(content)
    with pytest.raises(fr.FerrankError, match=f"t.{suffix}|data: |no column"):
        fr.rank(path, "y")


JSON_ROWS = [
    {"day": "2024-02-29", "word": "a", "labels": ["p"], "x": 1, "deep": {"q": 1}, "y": 0.5},
    {"day": "2024-03-01 10:00:00", "word": "2024-03-01", "labels": [], "x": None, "y": 1},
    {"y": 2, "word": None, "late": True, "x": 18446744073709551615},
]


@pytest.mark.parametrize("as_list", [False, True])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_types_of_json(tmp_path: Path, as_list: bool, suffix: str) -> None:
    text = json.dumps(JSON_ROWS, indent=1) if as_list else "\n".join(map(json.dumps, JSON_ROWS))
    path = tmp_path / f"t.json{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix else text.encode())
    rows = pa.table(fr.Dataset(path, "y"))
    assert rows.column_names == ["day", "word", "labels", "x", "deep", "y", "late"]
    assert rows.schema.types[:4] == [pa.timestamp("s"), pa.string(), pa.list_(pa.string()), pa.float64()]
    assert rows["x"].to_pylist() == [1.0, None, 2.0**64]
    assert rows["y"].to_pylist() == [0.5, 1.0, 2.0]
    assert rows["late"].to_pylist() == [None, None, True]


NO_NAN = "JSON has no NaN and no infinity; null stands for missing"
AS_ROWS = (
    "has no rows, but one object of columns; "
    "write an object for each row, as to_json(path, orient='records') of pandas does"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1}\n{"a": "x"}', "the column 'a' has a number in row 1 and text in row 2; use one type"),
        ('{"a": 1, "a": 2}', "row 1: has 'a' twice"),
        ('{"a": 1}\n{"a": tru}', "row 2: expected ident"),
        ('[{"a": 1}, {"a": 2}', "the list is cut off"),
        ("{}", "there is no column in it"),
        ("", "the file is empty"),
        ('{"a": 1}\n{"a": NaN}', f"row 2: expected value at line 1 column 7; {NO_NAN}"),
        ('[{"a": 1}, {"a": -Infinity}]', f"row 2: invalid number at line 1 column 8; {NO_NAN}"),
        (FRAME.to_json(), AS_ROWS),
        (FRAME[["x0", "y"]].to_json(orient="split"), AS_ROWS),
        (json.dumps(FRAME.to_dict("list")), AS_ROWS),
    ],
)
def test_what_is_wrong_with_json_is_said(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(fr.DataError, match=re.escape(f"{path}: {said}")):
        fr.inspect(path)


def test_a_json_row_of_label_sets_is_a_row(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"labels": ["a", "b"]}')
    assert fr.inspect(path)["rows"] == 1


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("t.npy.gz", "gzip"),
        ("t.parquet.gz", "gzip"),
        ("t.orc.bz2", "bz2"),
        ("t.xlsx.zst", "zstd"),
        ("t.npz", "lz4"),
    ],
)
def test_compressed_files_of_formats_that_are_not_unpacked(tmp_path: Path, name: str, kind: str) -> None:
    with pa.output_stream(tmp_path / name, compression=kind) as file:
        file.write(b"anything")
    called = "bzip2" if kind == "bz2" else kind
    with pytest.raises(fr.DataError, match=rf"{name}: this file is compressed with {called}; unpack it"):
        fr.inspect(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "a,y\n1,2\n\n3\n",
            "row 3 (blank lines not counted) has 1 field, the first row 2: '3'; mend the row",
        ),
        (
            "a,y\n" + "1,2\n" * 5_000 + "3,4,5\n",
            "row 5,002 (blank lines not counted) has 3 fields, the first row 2",
        ),
        ("1,2\n" * 5_000 + "3,4,5\n", "row 5,001 (blank lines not counted) has 3 fields, the first row 2"),
    ],
)
def test_rows_of_csv_with_other_numbers_of_fields(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, said: str
) -> None:
    monkeypatch.setattr("ferrank.data.delimited._BLOCK_BYTES", 1 << 10)
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(fr.DataError, match=re.escape(f"{path}: {said}")):
        fr.inspect(path)


def test_the_first_line_of_csv_is_not_of_any_length(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.zst"
    with pa.output_stream(path, compression="zstd") as file:
        for _ in range(70):
            file.write(b"a" * (1 << 20))
        file.write(b",y\n1,2\n")
    with pytest.raises(
        fr.DataError, match="t.csv.zst: the first line does not end within 64 MiB; is it a CSV"
    ):
        fr.inspect(path)


def test_lines_of_csv_may_end_in_carriage_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrank.data.delimited._LINE_BYTES", 1 << 19)
    path = tmp_path / "t.csv"
    path.write_bytes(b"a,y\r" + b"1,2\r" * 400_000)
    assert fr.inspect(path)["rows"] == 400_000


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        ("import os; os.abort()", fr.DataError, "its reader was ended by SIGABRT"),
        ("raise SystemExit(7)", fr.DataError, "its reader ended with code 7"),
        ("import sys; sys.exit('MemoryError: no')", fr.ResourceError, "more than 1024 MiB of memory"),
        ("import time; time.sleep(60)", fr.DataError, "no rows came for"),
    ],
)
def test_a_reader_of_orc_that_dies_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, error: type[Exception], said: str
) -> None:
    path = tmp_path / "t.orc"
    pyarrow.orc.write_table(TABLE, path)
    (tmp_path / "_orc_to_arrow.py").write_text(script)
    monkeypatch.setattr("ferrank.data.readers.orc.__file__", str(tmp_path / "orc.py"))
    monkeypatch.setattr("ferrank.data.readers.orc._SECONDS_WITHOUT_ROWS", 1.0)
    with pytest.raises(error, match=rf"t\.orc: .*{said}"):
        fr.inspect(path)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the memory of a process so")
def test_a_reader_of_orc_has_little_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.orc"
    pyarrow.orc.write_table(pa.table({"a": np.arange(4_000_000)}), path)
    assert fr.Dataset(path, "a").source().rows == 4_000_000
    monkeypatch.setattr("ferrank.data.readers.orc._LEAST_BYTES", 1 << 20)
    monkeypatch.setattr("ferrank.data.readers.orc._GROWTH", 0)
    with pytest.raises(fr.ResourceError, match=r"t\.orc: reading it takes more than 1 MiB of memory"):
        fr.inspect(path)


NEW_READER = """
from pathlib import Path

from ferrank._core import Source
from ferrank.data.readers import Reader
from ferrank.data.tables import as_table


def _open(path, as_text, temp_dir):
    values = [float(word) for word in Path(path).read_text().split()[1:]]
    return Source.table(as_table({"a": values}), str(path))


READER = Reader(_open, (".words",), (".word",), {b"words": ".words"})
"""


@pytest.fixture
def found_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return a folder whose modules count as readers of ferrank."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.setattr(readers, "__path__", [*readers.__path__, str(folder)])
    files._modules.cache_clear()
    yield folder
    sys.modules.pop("ferrank.data.readers.words", None)
    files._modules.cache_clear()


def test_a_format_is_a_module_in_the_package_of_readers(found_anew: Path, tmp_path: Path) -> None:
    (found_anew / "words.py").write_text(NEW_READER)
    (found_anew / "_beside.py").write_text("raise AssertionError('is no reader')")
    folder = tmp_path / "data"
    folder.mkdir()
    for name in ("t.words", "t.word"):
        (folder / name).write_text("words 1 2 3")
    for data in (folder / "t.words", folder / "t.word", folder, io.BytesIO(b"words 1 2 3")):
        profile = fr.inspect(data)
        assert (profile["rows"], [column["name"] for column in profile["columns"]]) == (3, ["a"])
    assert files.is_self_describing("t.words")


def test_a_suffix_or_a_mark_is_of_one_reader() -> None:
    known = list(files.readers())
    suffixes = Counter(files._OF_ENGINE)
    for reader in known:
        suffixes.update((*reader.suffixes, *reader.only_by_name))
    assert set(suffixes.values()) == {1}
    assert {suffix for reader in known for suffix in reader.marks.values()} <= suffixes.keys()
    marks = [*remote._MAGIC, *(mark for reader in known for mark in reader.marks)]
    assert not [(one, other) for one, other in permutations(marks, 2) if one.startswith(other)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    for name in ("t.parquet", "t.csv", "t.arrow", "t.csv.gz"):
        WRITERS[name](folder / name)

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as service:
        threading.Thread(target=service.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{service.server_port}"
        service.shutdown()


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.arrow", "t.csv.gz", "t.csv?token=1"])
def test_urls(server: str, name: str, tmp_path: Path) -> None:
    ranker = fr.ForestRanker(n_estimators=8, temp_dir=tmp_path)
    ranking = fr.rank(f"{server}/{name}", "y", ranker=ranker)
    assert sorted(ranking.importances().tolist()) == WANTED
    assert list(tmp_path.iterdir()) == []


def test_intervals_are_categories() -> None:
    parts = pd.cut(FRAME["x0"], 4)
    expected = importances(FRAME.assign(x0=parts.astype(str).astype("category")))
    for column in (parts, parts.astype("interval")):
        assert importances(FRAME.assign(x0=column)) == expected


@pytest.mark.parametrize("kind", ["text", "categories", "enum", "arrow"])
def test_texts_of_polars(kind: str) -> None:
    rng = np.random.default_rng(0)
    table = {
        "a": rng.normal(size=12_000),
        "c": rng.choice(["red", "green"], 12_000),
        "y": rng.normal(size=12_000),
    }
    frame = pl.DataFrame(table)
    if kind == "arrow":
        views = pa.array(table["c"].tolist(), pa.string_view())
        codes = pa.array(rng.integers(2, size=12_000), pa.int8())
        data: Any = pa.table(table | {"c": views}).append_column(
            "d", pa.DictionaryArray.from_arrays(codes, pa.array(["red", "green"], pa.string_view()))
        )
    else:
        types = {"text": pl.String, "categories": pl.Categorical, "enum": pl.Enum(["red", "green"])}
        data = frame.with_columns(pl.col("c").cast(types[kind]))
        assert fr.rank(data.lazy(), "y", n_estimators=2).n_rows == 12_000
        assert fr.rank(data.select("a"), data["c"], n_estimators=2).task == "classification"
    assert list(fr.check(data, "y")) == []
    assert fr.rank(fr.Dataset(data, "y"), n_estimators=2).importances().shape == (data.shape[1] - 1,)


def test_urls_that_are_not_there(server: str) -> None:
    with pytest.raises(fr.ResourceError, match=f"{server}/none.csv: .*404"):
        fr.rank(f"{server}/none.csv", "y")
    with pytest.raises(fr.ResourceError, match=r"memory://none/t.csv: no such file"):
        fr.rank("memory://none/t.csv", "y")
    with pytest.raises(fr.ResourceError, match=r"gopher://x/t.csv: "):
        fr.rank("gopher://x/t.csv", "y")
    with pytest.raises(fr.DataError, match=f"{server}/t.csv: no column 'z'"):
        fr.rank(f"{server}/t.csv", "z", n_estimators=2)


def test_stores_patterns_and_folders(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(TABLE[:70], tmp_path / "a.parquet")
    pyarrow.parquet.write_table(TABLE[70:], tmp_path / "b.parquet")
    store = fsspec.filesystem("memory")
    store.put(str(tmp_path / "*.parquet"), "/parts/", recursive=True)
    store.pipe("/parts/notes.md", b"no data")
    for url in ("memory://parts/*.parquet", "memory://parts", f"file://{tmp_path}"):
        assert importances(url) == WANTED
    assert importances(["memory://parts/a.parquet", "memory://parts/b.parquet"]) == WANTED
    assert importances(fr.CSVFile(_in_memory(store))) == WANTED


def _in_memory(store: Any) -> str:
    store.pipe("/one.csv", FRAME.to_csv(index=False).encode())
    return "memory://one.csv"


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.arrow", "t.orc", "t.jsonl", "t.json"])
def test_open_files(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / name)
    assert importances(io.BytesIO((tmp_path / name).read_bytes())) == WANTED
    with (tmp_path / name).open("rb") as file:
        assert importances(file) == WANTED


def test_open_text() -> None:
    assert importances(io.StringIO(FRAME.to_csv(index=False))) == WANTED


def test_standard_input() -> None:
    command = [sys.executable, "-m", "ferrank", "rank", "-", "--target", "y", "--trees", "8"]
    done = subprocess.run(
        command, input=FRAME.to_csv(index=False).encode(), capture_output=True, check=True, timeout=60
    )
    assert "150 rows" in done.stdout.decode()


def test_partitions_of_hive_are_columns(tmp_path: Path) -> None:
    frame = FRAME.assign(side=np.where(FRAME.x0 > 0, "left", "right"))
    pyarrow.parquet.write_to_dataset(pa.Table.from_pandas(frame), tmp_path, partition_cols=["side"])
    found = fr.rank(tmp_path, "y", n_estimators=8)
    assert set(found.features) == {"x0", "x1", "x2", "word", "side"}
    assert found.n_rows == ROWS
    (tmp_path / "side=left" / "t.csv").write_text("a\n1\n")
    with pytest.raises(fr.DataError, match="files of several formats: .csv, .parquet"):
        fr.rank(tmp_path, "y")


def test_data_sets_of_other_libraries(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(TABLE, tmp_path / "t.parquet")
    dataset = pa.dataset.dataset(tmp_path / "t.parquet")
    frames = [
        dataset,
        dataset.scanner(batch_size=40),
        pl.from_arrow(TABLE).lazy(),
        pl.scan_parquet(tmp_path / "t.parquet"),
        iter([FRAME[:50], FRAME[50:]]),
        (batch for batch in TABLE.to_batches(max_chunksize=40)),
        Ibis(),
        HuggingFace(),
    ]
    for data in frames:
        assert importances(data) == WANTED


def test_narwhals() -> None:
    narwhals = pytest.importorskip("narwhals")
    for frame in (FRAME, pl.from_arrow(TABLE), pl.from_arrow(TABLE).lazy(), TABLE):
        assert importances(narwhals.from_native(frame)) == WANTED
    named = narwhals.from_native(FRAME.set_axis([f"row {n}" for n in range(ROWS)]))
    assert importances(named) == WANTED, "the index is no feature, as in a frame of pandas itself"


class Ibis:
    """What we use of a table of Ibis."""

    def to_pyarrow_batches(self) -> pa.RecordBatchReader:
        return TABLE.to_reader(max_chunksize=40)


class HuggingFace:
    """What we use of a data set of Hugging Face."""

    features = FRAME.columns

    def with_format(self, name: str) -> pa.Table:
        assert name == "arrow"
        return TABLE


def test_an_empty_iterator() -> None:
    with pytest.raises(fr.DataError, match="an iterator without a table"):
        fr.rank(iter([]), "y")


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_columns_with_an_empty_chunk_beside_others_in_one_piece(kind: pa.DataType) -> None:
    values, nothing = pa.array(np.arange(40.0)), pa.array([], pa.float64())
    parts = pa.chunked_array([values[:20], nothing, values[20:]])
    text = (
        pa.array(["p", "q"] * 20).dictionary_encode()
        if pa.types.is_dictionary(kind)
        else pa.array(["p", "q"] * 20, kind)
    )
    table = pa.table({"a": parts, "y": text})
    assert fr.rank(table, "y", n_estimators=5).n_rows == 40
    assert fr.rank(table[5:], "y", n_estimators=5).n_rows == 35
