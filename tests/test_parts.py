"""Files of a data set whose columns have to go together: those without values, and Hive partitions."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest

import ferrank as fr

HEAD = "a,day,flag,y\n"
FULL = HEAD + "x,2024-03-01,true,1\nz,2024-02-29,false,2\n"
BLANK = HEAD + ",,,2\n?,NA,,1\n"


def _written(folder: Path, **files: str) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{name}.csv" for name in files]
    for path, text in zip(paths, files.values(), strict=True):
        path.write_text(text)
    return paths


def _kinds(data: Any) -> list[tuple[str, str]]:
    return [(column["type"], column["kind"]) for column in fr.inspect(data)["columns"]]


def test_parts_without_values_join_any_type(tmp_path: Path) -> None:
    paths = _written(tmp_path, full=FULL, blank=BLANK, head=HEAD)
    wanted = _kinds(paths[0])
    assert [kind for kind, _ in wanted] == ["Utf8", "Date32", "Boolean", "Float64"]
    for order in permutations(paths):
        assert _kinds(list(order)) == wanted
        assert fr.inspect(list(order))["columns"][3]["task"] == "classification", "few integers are classes"
        rows = pa.table(fr.Dataset(list(order), "y"))
        assert sorted(map(str, rows["a"].to_pylist())) == ["None", "None", "x", "z"]
    assert _kinds(tmp_path) == wanted


def test_a_lone_file_without_values_has_numbers(tmp_path: Path) -> None:
    (path,) = _written(tmp_path, blank=BLANK)
    assert {column["type"] for column in fr.inspect(path)["columns"]} == {"Float64"}


def test_values_beyond_the_first_block_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrank.data.delimited._BLOCK_BYTES", 1 << 10)
    late = "a,b,y\n" + ",1,1\n" * 2_000
    paths = _written(tmp_path, early="a,b,y\n7,3,1\n", late=late + "0.5,2.5,2\n")
    rows = pa.table(fr.Dataset(paths, "y"))
    assert rows["a"].to_pylist()[-1] == 0.5
    assert rows["b"].to_pylist()[-1] == 2.5


def _hive(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"k={name}" / "t.csv"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return folder


@pytest.mark.parametrize(
    ("texts", "kind", "values"),
    [
        (["2023", "01"], pa.int32(), [1, 2023]),
        (["3000000000", "2"], pa.string(), ["2", "3000000000"]),
        (["a%20b", "c=d"], pa.string(), ["a b", "c=d"]),
        (["7", "__HIVE_DEFAULT_PARTITION__"], pa.int32(), [7, None]),
    ],
)
def test_values_of_partitions(tmp_path: Path, texts: list[str], kind: pa.DataType, values: list[Any]) -> None:
    found = pa.table(fr.Dataset(_hive(tmp_path, **dict.fromkeys(texts, "a,y\n1,2\n")), "y"))
    assert found.column_names == ["a", "y", "k"]
    assert found.schema.field("k").type == kind
    assert sorted(found["k"].to_pylist(), key=str) == sorted(values, key=str)


def test_csv_files_in_partitions_are_read_as_all_others(tmp_path: Path) -> None:
    data = _hive(
        tmp_path / "data", a="x;word;y\n1;b;0\n2;?;1\n", b="x;word;y\n1,5;c;1\n?;NA;0\n", c="x;word;y\n"
    )
    found = pa.table(fr.Dataset(data, "y"))
    assert found.drop_columns("y").to_pydict() == {
        "x": [1.0, 2.0, 1.5, None],
        "word": ["b", None, "c", None],
        "k": ["a", "a", "b", "b"],
    }
    assert fr.inspect(data)["columns"][2]["task"] == "classification"


def test_columns_that_a_partition_lacks_are_missing_there(tmp_path: Path) -> None:
    found = pa.table(fr.Dataset(_hive(tmp_path, a="a,y\n1,2\n", b="word,y,a\nz,3,4\n", c="y,k\n5,9\n"), "y"))
    assert found.to_pydict() == {
        "a": [1.0, 4.0, None],
        "y": [2.0, 3.0, 5.0],
        "word": [None, "z", None],
        "k": ["a", "b", "c"],
    }


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_types_in_partitions_go_together(tmp_path: Path, suffix: str) -> None:
    for name, values in (("a", [1, 2]), ("b", [0.5, None])):
        folder = tmp_path / f"k={name}"
        folder.mkdir()
        frame = pd.DataFrame({"x": values, "code": pd.Categorical([7, 3]), "y": [0.5, 1.5]})
        getattr(frame, f"to_{suffix}")(folder / f"t.{suffix}")
    columns = fr.inspect(tmp_path)["columns"]
    assert [column["kind"] for column in columns] == ["numeric", "nominal", "numeric", "nominal"]
    assert columns[0]["range"] == (0.5, 2.0)


def test_errors_in_partitions_name_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferrank.data.delimited._BLOCK_BYTES", 1 << 10)
    rows = "1,2\n" * 2_000
    late = _hive(tmp_path / "late", a="a,y\n1,2\n", b=f"a,y\n{rows}word,2\n")
    began = (
        r"b/t\.csv: column 'a' began with values of type double, but later: [^;]*'word'; mend the value, or"
    )
    with pytest.raises(fr.DataError, match=began):
        fr.inspect(late)
    ragged = _hive(tmp_path / "ragged", a="a,y\n1,2\n", b=f"a,y\n{rows}1\n")
    with pytest.raises(fr.DataError, match=r"b/t\.csv: row 2,002 .* has 1 field, the first row 2: '1'; mend"):
        fr.inspect(ragged)
    twice = _hive(tmp_path / "twice", a="a,a,y\n1,2,3\n")
    with pytest.raises(fr.DataError, match=r"a/t\.csv: two columns are called 'a'"):
        fr.inspect(twice)
    for name in ("a", "b"):
        (tmp_path / "arrow" / f"k={name}").mkdir(parents=True)
    damaged = tmp_path / "arrow" / "k=b" / "t.arrow"
    table = pa.table({"a": range(9), "y": range(9)})
    pyarrow.feather.write_feather(table, tmp_path / "arrow" / "k=a" / "t.arrow", compression="uncompressed")
    pyarrow.feather.write_feather(table, damaged, compression="uncompressed")
    damaged.write_bytes(damaged.read_bytes()[:300])
    with pytest.raises(fr.FerrankError, match=r"k=b/t\.arrow: "):
        fr.inspect(tmp_path / "arrow")


def test_a_target_of_dates_without_values_in_the_first_part_is_a_number(tmp_path: Path) -> None:
    for name, days in (("a", ["", ""]), ("b", ["2024-01-05", "2024-02-05"])):
        (tmp_path / f"{name}.csv").write_text("x,y\n" + "".join(f"{n},{day}\n" for n, day in enumerate(days)))
    assert [column["task"] for column in fr.inspect(tmp_path)["columns"]] == ["classification", "regression"]
