"""Files of a data set whose columns have to go together: those without values, and Hive partitions."""

from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow as pa
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
