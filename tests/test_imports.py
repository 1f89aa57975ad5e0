"""The modules of the package import each other in one direction."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import ferrank

ROOT = Path(ferrank.__file__).parent
LAYERS = [
    "_interpreter", "escape", "errors", "logs", "progress", "run", "output", "resources", "data", "datasets",
          "ranking", "distributed", "rankers", "rebate", "trees", "evaluate", "model_selection", "cli",
          "__main__"]  # fmt: skip
"""From the bottom up: each may import those before it."""


READERS = {
    f"ferrank.data.readers.{file.stem}"
    for file in (ROOT / "data" / "readers").glob("*.py")
    if not file.stem.startswith("_")
}
"""Modules that are imported because they are in this package."""


def module_name(file: Path) -> str:
    parts = ["ferrank", *file.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def imports(tree: ast.AST, modules: set[str]) -> set[str]:
    """Return the modules of the package that a module imports, at any place but for type checkers alone."""
    found: set[str] = set()
    for node in ast.iter_child_nodes(tree):
        if is_for_types(node):
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ferrank"):
            assert node.module is not None
            inside = {f"{node.module}.{alias.name}" for alias in node.names} & modules
            found |= inside or {node.module}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.startswith("ferrank.")}
        found |= imports(node, modules)
    return found


def arrows() -> dict[str, set[str]]:
    files = {module_name(file): file for file in ROOT.rglob("*.py")}
    assert len(files) > 60, "the scan found too few modules"
    found = {name: imports(ast.parse(file.read_text()), set(files)) for name, file in files.items()}
    # It imports what it finds in a package.
    found["ferrank.data.files"] |= READERS
    # A package offers what its modules define; the module that defines it is the one that counts.
    return {name: {other for other in others if other != name} for name, others in found.items()}


def test_no_module_imports_itself_through_others() -> None:
    graph, done, trail = arrows(), set[str](), list[str]()

    def visit(name: str) -> None:
        assert name not in trail, f"circle: {' -> '.join([*trail[trail.index(name) :], name])}"
        if name in done or name not in graph:
            return
        trail.append(name)
        for other in sorted(graph[name]):
            visit(other)
        trail.pop()
        done.add(name)

    for name in sorted(graph):
        visit(name)


def test_packages_import_from_those_below_them() -> None:
    layer = {f"ferrank.{name}": number for number, name in enumerate(LAYERS)}
    wrong = []
    for name, others in arrows().items():
        own = ".".join(name.split(".")[:2])
        if own in ("ferrank", "ferrank._core"):
            continue
        assert own in layer, f"{name}: {own} has no place in the order of packages"
        for other in others:
            above = ".".join(other.split(".")[:2])
            if above in layer and layer[above] > layer[own]:
                wrong.append(f"{name} -> {other}")
    assert not wrong, f"these imports point upward: {wrong}"


def test_readers_are_found_and_not_named() -> None:
    named = {name for name, others in arrows().items() if others & READERS}
    assert named == {"ferrank.data.files"}


def test_readers_do_without_what_takes_long_to_import() -> None:
    code = "import sys; from ferrank.data.files import readers; assert [*readers()]; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    names = set(done.stdout.split())
    assert names >= READERS
    assert not {name.partition(".")[0] for name in names} & SLOW
    assert not names & NOT_FOR_A_FILE


QUICK = """
import contextlib, io, sys
from ferrank.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    try:
        code = main({arguments!r})
    except SystemExit as end:
        code = end.code
assert not code, code
print(*sys.modules)
"""
SLOW = {"sklearn", "scipy", "pandas", "joblib", "dask", "matplotlib", "jinja2"}
NOT_FOR_A_FILE = {"pyarrow.compute", "pyarrow.parquet", "pyarrow.orc", "numpy.ma", "tempfile", "zipfile",
                  "subprocess", "ferrank.cli.tune"}  # fmt: skip
"""Slow, too, but for some tables needed."""
ROWS = ["2.5,1,p", "1.5,2,n", "4.25,3,p", "0.5,1,n", "3.5,4,p", "1.25,2,n", "5.0,3,p", "0.25,1,n"]


@pytest.mark.parametrize(
    "call",
    [
        "--help",
        "rank --help",
        "inspect data.csv",
        "check data.csv --target y",
        "rank data.csv --target y",
        "rank data.arrow --target y",
        "rank data.csv --target y --ranker forest --output ranking.json",
        "report saved.json",
    ],
)
def test_commands_do_without_what_takes_long_to_import(call: str, tmp_path: Path) -> None:
    slow = SLOW | {"numpy", "pyarrow"} if "--help" in call else SLOW
    (tmp_path / "data.csv").write_text("\n".join(["a,b,y", *ROWS]) + "\n")
    ferrank.convert(tmp_path / "data.csv", tmp_path / "data.arrow")
    ferrank.Ranking.from_importances(["a"], {"w": [0.5]}, task="regression").save(tmp_path / "saved.json")
    done = subprocess.run(
        [sys.executable, "-c", QUICK.format(arguments=call.split())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    names = done.stdout.split()
    assert not slow & {name.partition(".")[0] for name in names}
    if call in {"inspect data.csv", "rank data.csv --target y", "rank data.arrow --target y"}:
        assert not NOT_FOR_A_FILE & set(names)
