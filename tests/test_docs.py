"""The code on the pages of the documentation runs and prints what they show."""

import importlib.util
import logging
import re
import warnings
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parent.parent
INSTALLS = re.compile(r"(\.venv/bin/)?(pip install|python -m venv) ")


def load_blocks() -> ModuleType:
    spec = importlib.util.spec_from_file_location("blocks", ROOT / "docs" / "tools" / "blocks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


blocks = load_blocks()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", blocks.PAGES, ids=lambda page: str(page.relative_to(ROOT / "docs").with_suffix(""))
)
def test_code_of_a_page_runs_and_prints_what_it_shows(page: Path, tmp_path: Path) -> None:
    logger = logging.getLogger("ferrank")
    level = logger.level
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = blocks.run(page, tmp_path)
    finally:
        logger.setLevel(level)
    assert done
    for step, printed in done:
        assert blocks.is_as_shown(step.shown, printed), (
            f"{page}:{step.line + 1} prints\n{printed}\nand shows\n{step.shown}"
        )


def test_there_are_pages_to_run() -> None:
    assert len(blocks.PAGES) >= 10


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n…\n", "a\nb\nc\n", True),
        ("a\n…\nd\n", "a\nb\nc\n", False),
        ("", "anything\n", True),
    ],
)
def test_output_is_compared_by_lines(shown: str, printed: str, same: bool) -> None:
    assert blocks.is_as_shown(shown, printed) is same


def test_what_is_not_run_installs_something_or_is_named_as_such() -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in re.findall(r"^```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S):
            for line in block.splitlines():
                assert INSTALLS.match(line), f"{page}: {line!r} can be run; write it as a console block"


def test_links_between_documents_lead_somewhere() -> None:
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benches" / "README.md"]
    links = [
        (document, link)
        for document in documents
        for link in re.findall(
            r"\]\(([^)\s#]+)[^)]*\)", re.sub(r"`[^`]*`", "", document.read_text(encoding="utf-8"))
        )
        if not re.match(
            r"https?://|pictures/|\.\./pictures/", link
        )  # mkdocs checks the pictures that it draws
    ]
    assert len(links) > 50
    assert [(document.name, link) for document, link in links if not (document.parent / link).exists()] == []


def test_every_page_is_in_the_navigation() -> None:
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE)) == pages
