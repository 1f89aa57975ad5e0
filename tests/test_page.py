"""The page of a ranking in a browser: Chromium, if it and playwright are there."""

import csv
import itertools
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrank as fr
from ferrank.ranking import Relevance

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium"),
]
N = 20_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def ranking() -> fr.Ranking:
    rng = np.random.default_rng(0)
    scores = {name: rng.gamma(0.3, size=N) for name in ("evidence", "permutation", "genie3", "relief")}
    errors = {name: values / 5 for name, values in scores.items() if name != "evidence"}
    names = [f"gene_{number:05}_{'xy'[number % 2]}" for number in range(N)]
    made = fr.Ranking.from_importances(
        names, scores, task="classification", targets=["tumour"], n_rows=500, standard_errors=errors
    )
    return replace(made, relevance=Relevance(scores["evidence"] * 9, scores["evidence"] * 9 + 0.3))


@pytest.fixture(scope="module")
def saved(ranking: fr.Ranking, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "r.html"
    ranking.save(path)
    return path


class Opened:
    """A page, with what went wrong in it, and what it asked for."""

    def __init__(self, browser: Any, path: Path, width: int = 1200, scheme: str = "light") -> None:
        self.errors: list[str] = []
        self.requests: list[str] = []
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = context.new_page()
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda line: self.errors.append(line.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.session = context.new_cdp_session(self.page)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.opening = self.seconds(lambda: self.page.goto(path.as_uri()))
        self.page.wait_for_selector("#rows tr[data-at]")

    def column(self, number: int = 0) -> list[str]:
        cells = f"#rows tr[data-at] > :nth-child({number + 1})"
        found: list[str] = self.page.eval_on_selector_all(cells, "all => all.map(one => one.textContent)")
        return found

    def seconds(self, work: Callable[[], object]) -> float:
        """Return the CPU time of the page's thread in ``work`` and the drawing after it."""
        before = self.worked()
        work()
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done)))")
        return self.worked() - before

    def worked(self) -> float:
        """Return the CPU time of the page's thread so far: other processes have no part in it."""
        metrics = self.session.send("Performance.getMetrics")["metrics"]
        return next(float(metric["value"]) for metric in metrics if metric["name"] == "TaskDuration")


@pytest.fixture
def opened(browser: Any, saved: Path) -> Iterator[Opened]:
    page = Opened(browser, saved)
    yield page
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:", "blob:"))] == []
    page.page.context.close()


def test_twenty_thousand_features_open_and_sort_within_a_second(opened: Opened, saved: Path) -> None:
    assert saved.stat().st_size <= 5_000_000
    assert opened.opening < 1
    assert len(opened.column()) < 100
    for heading in ("permutation", "feature", "verdict"):
        button = opened.page.get_by_role("button", name=heading)
        assert opened.seconds(button.click) < 1
    assert opened.seconds(lambda: opened.page.get_by_label("search").fill("77_x")) < 1


def test_the_best_are_first_and_headings_sort(opened: Opened, ranking: fr.Ranking) -> None:
    assert opened.column()[:5] == ranking.top(5)
    opened.page.get_by_role("button", name="permutation").click()
    assert opened.column()[:5] == ranking.top(5, "permutation")
    assert opened.page.locator("th[aria-sort=descending]").inner_text() == "permutation"
    opened.page.get_by_role("button", name="permutation").click()
    worst = np.argsort(ranking.importances("permutation"), kind="stable")[:5]
    assert opened.column()[:5] == [ranking.features[number] for number in worst]
    opened.page.get_by_role("button", name="feature").click()
    assert opened.column()[:2] == ["gene_00000_x", "gene_00001_y"]


def test_scrolling_shows_every_row_once(opened: Opened) -> None:
    seen: dict[int, str] = {}
    for top in range(0, 40 * 28, 300):
        opened.page.evaluate(f"document.getElementById('table').scrollTop = {top}")
        opened.page.wait_for_timeout(60)
        rows = "#rows tr[data-at]"
        at = opened.page.eval_on_selector_all(rows, "all => all.map(one => Number(one.dataset.at))")
        seen |= dict(zip(at, opened.column(), strict=True))
    assert list(seen) == list(range(len(seen)))
    assert len(set(seen.values())) == len(seen) > 50
    opened.page.evaluate("document.getElementById('table').scrollTop = 1e9")
    opened.page.wait_for_selector(f'#rows tr[data-at="{N - 1}"]')


def test_search_and_verdicts(opened: Opened, ranking: fr.Ranking) -> None:
    opened.page.get_by_label("search").fill("Y 0123")
    wanted = [name for name in ranking.top(N) if "0123" in name and "y" in name]
    assert opened.column() == wanted
    assert f"{len(wanted)} of 20,000 features" in opened.page.locator("#status").inner_text()
    opened.page.get_by_label("search").fill("")
    opened.page.locator("#verdict").select_option("relevant")
    assert f"{len(ranking.relevant()):,} of" in opened.page.locator("#status").inner_text()
    assert opened.column()[:9] == ranking.relevant()[:9]


def test_keys_lead_from_row_to_row_and_tell_all(opened: Opened, ranking: fr.Ranking) -> None:
    opened.page.locator("#rows .feature").first.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        opened.page.keyboard.press(key)
    tip = opened.page.locator("#tip")
    best, worst = ranking.scores["relief"].rank_interval[ranking.order()[1]]
    assert ranking.top(2)[1] in tip.inner_text()
    assert f"of {best}–{worst} at 95 %" in tip.inner_text()
    opened.page.keyboard.press("Escape")
    assert tip.is_hidden()
    opened.page.keyboard.press("End")
    opened.page.wait_for_timeout(200)
    assert opened.page.evaluate("document.activeElement.textContent") == ranking.top(N)[-1]


def test_csv_of_what_is_shown(opened: Opened, ranking: fr.Ranking, tmp_path: Path) -> None:
    opened.page.get_by_label("search").fill("gene_00042")
    with opened.page.expect_download() as download:
        opened.page.get_by_role("button", name="save as CSV").click()
    download.value.save_as(tmp_path / "rows.csv")
    with (tmp_path / "rows.csv").open() as file:
        [row] = csv.DictReader(file)
    assert row["feature"] == "gene_00042_x"
    assert float(row["genie3"]) == pytest.approx(ranking.importances("genie3")[42], rel=1e-6)
    assert int(row["genie3 rank"]) == ranking.ranks("genie3")[42]
    assert row["verdict"] == ranking.verdict[42]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out(browser: Any, saved: Path, scheme: str) -> None:
    """WCAG 2.1, criterion 1.4.3: 4.5 to 1 for text."""
    opened = Opened(browser, saved, scheme=scheme)
    contrasts = opened.page.evaluate("""() => {
        const rgb = (text) => {
          const canvas = document.createElement("canvas").getContext("2d");
          canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
          return [...canvas.getImageData(0, 0, 1, 1).data];
        };
        const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
          .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
          .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const paper = (one) => {
          for (; one; one = one.parentElement) {
            const colour = rgb(getComputedStyle(one).backgroundColor);
            if (colour[3] === 255) return colour;
          }
          return [255, 255, 255];
        };
        const low = [];
        for (const one of document.querySelectorAll("body *")) {
          const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
          if (!own || !one.checkVisibility() || one.closest("script")) continue;
          const [a, b] = [luminance(rgb(getComputedStyle(one).color)), luminance(paper(one))];
          const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
          if (contrast < 4.5) low.push(`${one.tagName} ${one.className} ${contrast.toFixed(2)}`);
        }
        return low;
    }""")
    assert contrasts == []
    background = opened.page.evaluate("getComputedStyle(document.documentElement).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    opened.page.context.close()


def test_controls_have_names(opened: Opened) -> None:
    nameless = opened.page.evaluate("""() => {
        const hasName = (one) => one.textContent.trim() || one.labels?.length
          || one.getAttribute("aria-label") || one.alt;
        return [...document.querySelectorAll("button, input, select, canvas, img")]
          .filter((one) => !hasName(one)).map((one) => one.outerHTML);
    }""")
    assert nameless == []
    levels = opened.page.eval_on_selector_all("h1, h2, h3", "all => all.map(one => Number(one.tagName[1]))")
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


def test_a_narrow_screen_scrolls_in_the_table_alone(browser: Any, saved: Path) -> None:
    opened = Opened(browser, saved, width=400)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 400
    heads = opened.page.eval_on_selector_all("#table thead th", "all => all.map(one => one.className)")
    assert heads == ["feature", "verdict", "score"]
    opened.page.context.close()


def test_print_has_the_first_rows_in_full(opened: Opened, ranking: fr.Ranking) -> None:
    opened.page.emulate_media(media="print")
    opened.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert opened.column() == ranking.top(200)
    assert opened.page.locator("#tools").is_hidden()
    opened.page.emulate_media(media="screen")
    opened.page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(opened.column()) < 100
