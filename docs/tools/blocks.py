"""The blocks of code of a page of documentation, run in order, and what they print.

A page is run from top to bottom in a folder that holds the data sets of `tests/data`; files that one block
writes are there for the next.

- A ```` ```python ```` block shares its names with those above it. If a ```` ```text ```` block follows at
  once, it holds what the Python block prints.
- A ```` ```console ```` block has commands, each after `$ `, and below each what it writes to stdout. What is
  not shown is not compared.
- A line `…` stands for any number of lines.
- ```` ```sh ```` blocks, which install something or need data or machines that are not here, are not run.

`python docs/tools/blocks.py PAGE…` writes what is printed now into pages; a line `?` is filled in for the
first time.
"""

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
PAGES = sorted(
    page
    for page in (ROOT / "docs").rglob("*.md")
    if re.search(r"^```(python|console)$", page.read_text(encoding="utf-8"), re.MULTILINE)
)
_FENCE = re.compile(r"^```(python|console)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_ELISION = "…"


@dataclass(frozen=True)
class Step:
    """A Python block or a command, and what the page shows of its output."""

    line: int
    """Lines of the page before it"""
    is_python: bool
    code: str
    shown: str
    """Empty if the page shows nothing"""
    span: tuple[int, int]
    """Where `shown` stands in the page"""


def steps(text: str) -> Iterator[Step]:
    """Yield what is to be run of a page."""
    for fence in _FENCE.finditer(text):
        if fence[1] == "python":
            span = (-1, -1) if fence[3] is None else fence.span(3)
            yield Step(text.count("\n", 0, fence.start(2)), True, fence[2], fence[3] or "", span)
            continue
        for command in _COMMAND.finditer(text, fence.start(2), fence.end(2)):
            line = text.count("\n", 0, command.start(1))
            yield Step(line, False, command[1], command[2], command.span(2))


def run(page: Path, folder: Path) -> list[tuple[Step, str]]:
    """Run a page in an empty folder; return each step and what it printed."""
    for data in (ROOT / "tests" / "data").iterdir():
        (folder / data.name).symlink_to(data)
    before, names = Path.cwd(), {"__name__": "__main__"}
    os.chdir(folder)
    try:
        found = steps(page.read_text(encoding="utf-8"))
        return [
            (step, _run_python(page, step, names) if step.is_python else _run_command(step)) for step in found
        ]
    finally:
        os.chdir(before)


def is_as_shown(shown: str, printed: str) -> bool:
    """Return whether `printed` is what the page shows, which may have `…` for any lines."""
    pattern = "".join(
        "(?:.*\n)*" if line == _ELISION else re.escape(line) + "\n"
        for line in (line.rstrip() for line in shown.splitlines())
    )
    lines = "".join(line.rstrip() + "\n" for line in printed.splitlines())
    return not shown or re.fullmatch(pattern, lines.rstrip("\n") + "\n") is not None


def _run_python(page: Path, step: Step, names: dict[str, Any]) -> str:
    code = compile("\n" * step.line + step.code, page, "exec")  # a traceback then shows lines of the page
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(code, names)
    return out.getvalue()


def _run_command(step: Step) -> str:
    words = shlex.split(step.code, comments=True)
    if words[0] == "ferrank" and not {"|", ">", "<", "&&"} & set(words):
        return _run_ferrank(step, words[1:])
    with tempfile.TemporaryDirectory() as folder:
        command = Path(folder) / "ferrank"
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ferrank "$@"\n')
        command.chmod(0o755)
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", step.code], capture_output=True, text=True, env=environment
        )
    if done.returncode:
        raise AssertionError(f"line {step.line + 1}: {step.code}\n{done.stderr}")
    return done.stdout


def _run_ferrank(step: Step, arguments: list[str]) -> str:
    """Run a command in this process, which spares its imports."""
    from ferrank.cli import main

    with (
        contextlib.redirect_stdout(io.StringIO()) as out,
        contextlib.redirect_stderr(io.StringIO()) as messages,
    ):
        try:
            code: Any = main(arguments)
        except SystemExit as error:  # of argparse
            code = error.code
    if code:
        raise AssertionError(f"line {step.line + 1}: {step.code}\n{messages.getvalue()}")
    return out.getvalue()


def _filled(shown: str, printed: str) -> str:
    """Return what the page will show: as many lines before and after `…` as it does now."""
    lines = [line.rstrip() for line in printed.rstrip("\n").splitlines()]
    old = shown.rstrip("\n").splitlines()
    blank = "\n" * (len(shown) - len(shown.rstrip("\n")) - 1)
    if _ELISION in old:
        place = old.index(_ELISION)
        after = len(old) - place - 1
        lines = [*lines[:place], _ELISION, *(lines[-after:] if after else [])]
    return "\n".join(lines) + "\n" + blank


def main(pages: list[str]) -> None:
    """Write outputs into pages."""
    for page in map(Path, pages):
        text = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            done = run(page.resolve(), Path(folder))
        for step, printed in reversed(done):
            if step.shown and not is_as_shown(step.shown, printed):
                text = text[: step.span[0]] + _filled(step.shown, printed) + text[step.span[1] :]
        page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
