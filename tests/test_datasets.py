"""The data sets are what their descriptions say; those that do not come with ferrank are fetched once."""

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar

import pyarrow as pa
import pytest

import ferrank as fr
from ferrank import datasets

DATA = Path(__file__).parent / "data"
FETCHED = [name for name in fr.datasets.names() if fr.datasets.describe(name).sha256 is not None]


class Handler(SimpleHTTPRequestHandler):
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Serve the files of the tests in place of the repository, and keep those fetched apart."""
    Handler.asked = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(DATA)))
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(datasets, "_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("FERRANK_DATA", str(tmp_path / "cache"))
    yield Handler.asked
    server.shutdown()
    server.server_close()


def load(name: str) -> fr.Dataset:
    if name in FETCHED:
        pytest.importorskip("pooch")
    return fr.datasets.load(name)


@pytest.mark.parametrize("name", fr.datasets.names())
def test_a_data_set_is_what_its_description_says(name: str) -> None:
    about, dataset = fr.datasets.describe(name), load(name)
    table = pa.table(dataset)
    assert (table.num_rows, len(dataset.features)) == (about.n_rows, about.n_features)
    assert tuple(dataset.targets) == about.targets
    ranking = fr.rank(dataset, ranker="forest", n_estimators=5)
    assert (ranking.task, len(ranking)) == (about.task, about.n_features)
    assert about.licence == "CC BY 4.0"
    assert "doi:10.24432/" in about.source
    assert f"{about.n_rows:,} rows" in str(about)


@pytest.mark.parametrize("name", fr.datasets.names())
def test_files_are_those_of_the_tests(name: str) -> None:
    """Whose origin tests/data/SOURCES.md tells."""
    dataset = load(name)
    assert Path(dataset.data).read_bytes() == (DATA / Path(dataset.data).name).read_bytes()
    assert Path(dataset.data).name in (DATA / "SOURCES.md").read_text()


def test_a_data_set_is_fetched_once_and_checked(served: list[str], tmp_path: Path) -> None:
    pytest.importorskip("pooch")
    first = fr.datasets.load("credit")
    assert first.data == tmp_path / "cache" / "german.arff"
    assert fr.datasets.load("credit").data == first.data
    assert served == ["/german.arff"]
    Path(first.data).write_bytes(b"spoiled")
    assert pa.table(fr.datasets.load("credit")).num_rows == 1000
    assert len(served) == 2


def test_another_file_and_none_are_refused(monkeypatch: pytest.MonkeyPatch, served: list[str]) -> None:
    pytest.importorskip("pooch")
    other = replace(fr.datasets.describe("credit"), sha256="0" * 64)
    monkeypatch.setitem(datasets._ALL, "credit", other)
    with pytest.raises(fr.ResourceError, match=r"'credit'.*hash"):
        fr.datasets.load("credit")
    monkeypatch.setattr(datasets, "_URL", datasets._URL + "elsewhere/")
    with pytest.raises(fr.ResourceError, match=r"'abalone'.*404"):
        fr.datasets.load("abalone")


def test_without_pooch_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    assert fr.datasets.load("iris").targets == ["class"]
    with pytest.raises(fr.FerrankError, match=r"pip install 'ferrank\[datasets\]'"):
        fr.datasets.load("abalone")


@pytest.mark.parametrize("name", FETCHED)
def test_checksums_are_those_of_the_files(name: str) -> None:
    about = fr.datasets.describe(name)
    assert hashlib.sha256((DATA / about.file).read_bytes()).hexdigest() == about.sha256


def test_a_name_that_is_none() -> None:
    with pytest.raises(fr.SettingError, match="did you mean iris"):
        fr.datasets.load("irs")
    with pytest.raises(fr.SettingError, match="there are iris, wine"):
        fr.datasets.describe("?")
