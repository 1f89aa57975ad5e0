"""The page of a report holds all that it was given, and nothing from elsewhere."""

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

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
        self.contents: list[str] = []
        self.scripts: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.contents += [value or "" for name, value in attrs if name == "content"]
        self.urls += [value or "" for name, value in attrs if name in {"src", "href", "srcset", "action"}]
        if tag not in {"meta", "link", "img", "wbr", "input"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        (self.scripts if self.open and self.open[-1] == "script" else self.words).append(data)

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


def test_page_loads_nothing_and_runs_its_script_alone(page):
    assert page.urls
    assert all(url.startswith("data:") for url in page.urls)
    assert page.tags.count("script") == 2  # numbers, and what shows them
    assert "Rankings of <it>" in page.text
    policy = next(one for one in page.contents if one.startswith("default-src 'none'"))
    own = base64.b64encode(hashlib.sha256(page.scripts[-1].encode()).digest()).decode()
    assert f"script-src 'sha256-{own}'" in policy
    assert "b <script>alert(1)</script>" in json.loads(page.scripts[0])["features"]


def columns_of(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """Return what the script of a page gets: names and the like, and arrays by column."""
    data = json.loads(Page(path).scripts[0])
    kinds = {"Float32Array": "<f4", "Uint8Array": "u1", "Uint16Array": "<u2", "Uint32Array": "<u4"}
    return data, {
        column["name"]: {
            name: np.frombuffer(base64.b64decode(coded), kinds[kind])
            for name, (kind, coded) in column["arrays"].items()
        }
        for column in data["columns"]
    }


def test_page_has_the_numbers_of_all_features(tmp_path):
    X = np.random.default_rng(0).normal(size=(80, 12))
    ranking = ferrank.rank(X, X[:, 3] > 0, n_estimators=200, shadows=True)
    ranking.report().save(tmp_path / "r.html")
    data, columns = columns_of(tmp_path / "r.html")
    order = ranking.order()
    score, found = ranking.score(), columns["genie3"]
    assert data["features"] == [ranking.features[number] for number in order]
    assert found["value"].tolist() == score.importance[order].astype(np.float32).tolist()
    assert found["error"].tolist() == score.standard_error[order].astype(np.float32).tolist()
    assert found["rank"].tolist() == score.rank[order].tolist()
    assert np.column_stack([found["best"], found["worst"]]).tolist() == score.rank_interval[order].tolist()
    names = np.array(["relevant", "undecided", "irrelevant"])
    assert names[columns["verdict"]["verdict"]].tolist() == ranking.verdict[order].tolist()


def test_other_rankings_are_matched_by_name(tmp_path):
    one = ferrank.Ranking.from_importances(["a", "b", "c"], {"w": [0.1, 0.7, 0.4]}, task="regression")
    two = ferrank.Ranking.from_importances(["c", "a", "b"], {"v": [3.0, 1.0, 2.0]}, task="regression")
    one.report({"two": two}, title="both").save(tmp_path / "r.html")
    data, columns = columns_of(tmp_path / "r.html")
    assert data["features"] == ["b", "c", "a"]
    assert columns["v"]["value"].tolist() == [2.0, 3.0, 1.0]
    page = Page(tmp_path / "r.html")
    assert "How alike the scores are" in page.text
    assert "0.50" in page.text
    with pytest.raises(ferrank.DataError, match="two: ranks other features"):
        one.report({"two": ferrank.Ranking.from_importances(["a"], {"v": [3.0]}, task="regression")})


def test_a_page_of_many_features_stays_small(tmp_path):
    rng = np.random.default_rng(0)
    scores = {name: rng.normal(size=200_000) for name in "abcde"}
    errors = {name: np.abs(values) for name, values in scores.items()}
    names = [f"feature_{number}" for number in range(200_000)]
    ranking = ferrank.Ranking.from_importances(names, scores, task="regression", standard_errors=errors)
    ranking.save(tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 6_000_000
    data, _ = columns_of(tmp_path / "r.html")
    assert 20_000 <= len(data["features"]) < data["n_features"] == 200_000
    assert data["features"] == ranking.top(len(data["features"]))


def test_notebooks_get_the_page_in_a_frame():
    report = ferrank.Ranking.from_importances(["a<b"], {"w": [0.1]}, task="regression").report()
    [frame] = re.findall(r'<iframe srcdoc="([^"]*)"', report._repr_html_())
    assert html.unescape(frame) == report.html


def test_parts_of_targets_have_a_heat_map_from_any_file(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 3))
    table = {f"x{i}": X[:, i] for i in range(3)} | {"y": X[:, 0], "z": X[:, 1]}
    ranking = ferrank.rank(table, ["y", "z"], n_estimators=3, by_target=True)
    for suffix in ("csv", "parquet"):
        ranking.save(tmp_path / f"forest.{suffix}")
        report(tmp_path / "page.html", tmp_path / f"forest.{suffix}", title="one")
        page = Page(tmp_path / "page.html")
        assert "Importance by target: genie3" in page.text
        assert f"{ranking.by_target()[0, 0]:.3g}" in page.text


def test_errors(tmp_path):
    with pytest.raises(ferrank.DataError, match="there is nothing to report"):
        report(tmp_path / "r.html")
    with pytest.raises(ferrank.SettingError, match="unknown suffix"):
        report(tmp_path / "r.pdf", {"mine": [1.0]})
    with pytest.raises(ferrank.DataError, match="does not rank 'a'"):
        report(tmp_path / "r.html", {"mine": {"a": 1.0}, "yours": {"b": 1.0}})


def test_what_is_missing_is_named_with_the_extra_that_has_it(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "jinja2", None)
    report(tmp_path / "r.html", {"mine": [1.0]})
    two = {"two": stability(np.random.default_rng(0).random((2, 3)))}
    with pytest.raises(ferrank.FerrankError, match=r"need jinja2; pip install 'ferrank\[evaluate\]'"):
        report(tmp_path / "r.html", stability=two)
