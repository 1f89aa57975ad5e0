"""Commands for saved results: report and merge."""

import json
from pathlib import Path

import numpy as np
import pytest

import ferrank as fr
from ferrank.cli import main

RNG = np.random.default_rng(0)
TABLE = {"a": RNG.normal(size=100), "b": RNG.normal(size=100)}
TABLE["y"] = TABLE["a"] ** 2


@pytest.fixture
def saved(tmp_path: Path) -> list[str]:
    paths = [str(tmp_path / name) for name in ("one.parquet", "two.json")]
    for seed, path in enumerate(paths):
        fr.rank(TABLE, "y", n_estimators=10, random_state=seed).save(path)
    return paths


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            ["predict", "FILE", "FILE"],
            "is no file of a forest; name a file that ferrank rank --keep or Forest.save wrote",
        ),
        (
            ["merge", "FILE"],
            "is no file of contributions; name a file that Accumulator.save, resume or merge --save wrote",
        ),
    ],
)
@pytest.mark.parametrize(("name", "text"), [("t.csv", "a,y\n1,2\n"), ("r.html", "<html></html>")])
def test_files_of_something_else_are_told_what_they_should_be(
    command: list[str],
    message: str,
    name: str,
    text: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert main([str(path) if part == "FILE" else part for part in command]) == 2
    assert capsys.readouterr().err == f"ferrank: error: {path}: {message}\n"


@pytest.mark.parametrize("name", ["r.csv", "r.html", "r.json", "r.parquet", "r.arrow"])
def test_what_is_no_ranking_is_told_what_writes_one(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / name).write_text("{}")
    assert main(["report", str(tmp_path / name)]) == 2
    assert "as Ranking.save and ferrank rank --output write them" in capsys.readouterr().err


def test_reports(saved: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", saved[0]]) == 0
    assert capsys.readouterr().out.startswith("2 features ranked for regression of y, 100 rows")
    assert main(["report", *saved, "--top", "1"]) == 0
    assert f"{saved[1]}: 2 features ranked" in capsys.readouterr().out
    page, plot = tmp_path / "page.html", tmp_path / "plot.svg"
    assert main(["report", *saved, "--output", str(page), "--title", "Koalas & more"]) == 0
    assert "Koalas &amp; more" in page.read_text()
    assert main(["report", saved[0], "--output", str(plot)]) == 0
    assert plot.stat().st_size > 1_000


def test_reports_that_cannot_be(saved: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, message in [
        ([*saved, "--output", str(tmp_path / "p.png")], "--output: "),
        ([saved[0], "--output", str(tmp_path / "p.doc")], "unknown suffix '.doc'"),
        ([str(tmp_path / "none.json")], "none.json: "),
    ]:
        assert main(["report", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_parts_of_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parts = [tmp_path / f"part{start}.arrow" for start in (0, 10)]
    for part, start in zip(parts, (0, 10), strict=True):
        fr.accumulate(TABLE, "y", n_estimators=20, keys=range(start, start + 10)).save(part)
    assert main(["merge", str(parts[0]), "--json"]) == 0
    assert "10 of 20 contributions are there" in capsys.readouterr().err
    both, ranking = tmp_path / "both.arrow", tmp_path / "ranking.json"
    assert main(["merge", str(tmp_path / "part*.arrow"), "--save", str(both), "--output", str(ranking)]) == 0
    whole = fr.rank(TABLE, "y", n_estimators=20)
    np.testing.assert_array_equal(fr.Ranking.load(ranking).importances(), whole.importances())
    capsys.readouterr()
    assert main(["merge", str(both), str(parts[1]), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["scores"]["genie3"]["importance"] == whole.importances().tolist()
    assert main(["merge", str(tmp_path / "none*.arrow")]) == 2
