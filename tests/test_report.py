"""The page of a report holds all that it was given, and nothing from elsewhere."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import ferrank
from ferrank.evaluate import compare, curves, evaluate, report, stability


class Page(HTMLParser):
    """Links, tags and text of a page, whose tags must match."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.urls: list[str] = []
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.urls += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "action"}]
        if tag not in {"meta", "link", "img", "rect", "line", "path", "wbr"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 120))
    data = {"a": a, "b <script>alert(1)</script>": b, "c": c, "y": a, "z & co": a + b}
    targets = ["y", "z & co"]
    forest = ferrank.ForestRanker(n_estimators=5, scores=("genie3", "symbolic"), by_target=True)
    rankings = {"forest": ferrank.rank(data, targets, ranker=forest), "mine": [1.0, -0.5, 0.0]}
    path = tmp_path_factory.mktemp("report") / "report.html"
    report(
        path,
        rankings,
        evaluation=evaluate(data, rankings, test=data, target=targets, n_neighbors=3),
        curves=curves(data, targets, {"forest": forest}, folds=2, n_random=1),
        stability={"two": stability(rng.random((2, 3)))},
        comparison=compare({"p": [1.0, 2.0, 3.0], "q": [2.0, 3.0, 5.0]}),
        title="Rankings of <it>",
    )
    return Page(path)


@pytest.mark.slow
def test_page_has_all_parts(page):
    for heading in (
        "Importances",
        "Importance by target",
        "Prediction by",
        "Error curves",
        "Stability",
        "Comparison",
    ):
        assert heading in page.text
    for name in ("forest:genie3", "mine", "z & co", "unweighted", "RRMSE", "gain", "Nemenyi"):
        assert name in page.text
    assert page.tags.count("img") == 3
    assert page.tags.count("svg") == 3 * 3


def test_page_loads_nothing_and_runs_nothing(page):
    assert page.urls
    assert all(url.startswith("data:") for url in page.urls)
    assert "script" not in page.tags
    assert "b <script>alert(1)</script>" in page.text
    assert "Rankings of <it>" in page.text


def test_bars_begin_at_zero_and_end_at_the_importance(tmp_path):
    report(tmp_path / "r.html", {"mine": {"a": 3.0, "b": -1.0, "c": 0.0}})
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    bars = re.findall(r'<rect x="([\d.]+)" y="2" width="([\d.]+)"', text)
    assert [tuple(map(float, bar)) for bar in bars] == [(25.0, 75.0), (25.0, 0.0), (0.0, 25.0)]


def test_many_features_are_cut_and_csv_files_keep_their_errors(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 50))
    ranking = ferrank.ForestRanker(n_estimators=10).fit(X, X[:, 3]).result_
    ranking.save(tmp_path / "saved.csv")
    report(tmp_path / "r.html", [tmp_path / "saved.csv"], top=5)
    page = Page(tmp_path / "r.html")
    assert "The best 5 of 50 features" in page.text
    assert page.text.count("±") == 5 + 1


def test_parts_of_targets_have_a_heat_map_from_any_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    table = {f"x{i}": X[:, i] for i in range(3)} | {"y": X[:, 0], "z": X[:, 1]}
    ranking = ferrank.rank(table, ["y", "z"], n_estimators=3, by_target=True)
    pages = []
    for suffix in ("csv", "parquet"):
        ranking.save(tmp_path / f"forest.{suffix}")
        report(tmp_path / "page.html", tmp_path / f"forest.{suffix}", title="one")
        pages.append((tmp_path / "page.html").read_text())
    assert pages[0] == pages[1]
    assert "Importance by target: forest" in pages[0]


def test_errors(tmp_path):
    with pytest.raises(ferrank.DataError, match="there is nothing to report"):
        report(tmp_path / "r.html")
    with pytest.raises(ferrank.SettingError, match="unknown suffix"):
        report(tmp_path / "r.pdf", {"mine": [1.0]})
    with pytest.raises(ferrank.DataError, match="does not rank 'a'"):
        report(tmp_path / "r.html", {"mine": {"a": 1.0}, "yours": {"b": 1.0}})


def test_what_is_missing_is_named_with_the_extra_that_has_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    with pytest.raises(ferrank.FerrankError, match=r"reports need jinja2; pip install 'ferrank\[evaluate\]'"):
        report(tmp_path / "r.html", {"mine": [1.0]})
