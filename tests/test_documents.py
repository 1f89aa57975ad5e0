"""Documents agree with what they are made from, and with the code that refers to them."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ferrank.data.delimited import MISSING

ROOT = Path(__file__).parent.parent
NAME = r"[A-ZŠ][\w-]+"
CITED = re.compile(rf"\b({NAME})(?:,? {NAME})*(?:(?:,? and| &) {NAME}| et al\.)?,? \(?((?:19|20)\d\d[ab]?)\b")
NOT_PAPERS = (
    "After",
    "Bioinformatics",
    "EWSL",
    "EvoBIO",
    "ICML",
    "JMLR",
    "Learning",
    "Letters",
    "Ljubljana",
    "Machine",
    "Processing",
)
RECORDS = sorted((ROOT / "benches" / "record").glob("*.json"))


def test_texts_that_stand_for_missing_values_are_listed() -> None:
    page = (ROOT / "docs" / "tables.md").read_text(encoding="utf-8")
    listed = page.partition("\nMissing values are empty fields and ")[2].partition(", written like this")[0]
    assert ["", *re.findall("`(.+?)`", listed)] == MISSING


def test_tables_are_those_of_the_records() -> None:
    checked = subprocess.run(
        [sys.executable, ROOT / "benches" / "tables.py", "--check"], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stderr


def test_the_benchmarks_page_begins_with_ten_figures_at_most() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    table = page.partition("<!-- table figures -->")[2].partition("<!-- end of table -->")[0]
    assert 1 <= len(re.findall(r"^\| (?!what|---)", table, re.MULTILINE)) <= 10


@pytest.mark.parametrize(
    "path", sorted((ROOT / "benches" / "record").glob("*.json")), ids=lambda path: path.stem
)
def test_a_record_says_where_it_comes_from(path: Path) -> None:
    run = json.loads(path.read_text())
    assert set(run) == {"benchmark", "date", "commit", "source", "machine", "versions", "rows"}
    assert path.name.startswith(f"{run['benchmark']}-")
    assert path.stem.endswith(f"-{run['commit']}")
    assert not run["commit"].endswith("-changed")
    assert run["rows"]
    assert all(row["case"] for row in run["rows"])


def test_cited_papers_are_in_the_references() -> None:
    references = (ROOT / "docs" / "references.md").read_text()
    listed = {
        (name, year)
        for line in references.splitlines()
        if line.startswith("- ")
        for name in re.findall(r"[A-ZŠ][\w-]+", line.partition("20" if " 20" in line else "19")[0])
        for year in re.findall(r"\b(?:19|20)\d\d[ab]?\b", line)[:1]
    }
    files = [path for folder in ("rust", "python") for path in sorted((ROOT / folder).rglob("*"))]
    files = [path for path in files if path.suffix in (".rs", ".py") and "target" not in path.parts]
    cited = {found for path in files for found in CITED.findall(path.read_text())}
    papers = {(name, year) for name, year in cited if name not in NOT_PAPERS}
    assert len(papers) > 15, "the scan found too few citations"
    assert papers <= listed, f"not in docs/references.md: {sorted(papers - listed)}"
