"""The stub file says what the compiled module has."""

import ast
import inspect
from pathlib import Path
from typing import Any

import pytest

import ferrank
from ferrank import _core


def stub() -> ast.Module:
    return ast.parse((Path(ferrank.__file__).parent / "_core.pyi").read_text())


def public(names: Any) -> set[str]:
    return {name for name in names if not name.startswith("_") or name == "__arrow_c_stream__"}


CLASSES = {node.name: node for node in stub().body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in stub().body if isinstance(node, ast.FunctionDef)}


def test_module_members() -> None:
    assert CLASSES
    assert FUNCTIONS
    assert public(dir(_core)) == CLASSES.keys() | FUNCTIONS.keys()


@pytest.mark.parametrize("name", CLASSES)
def test_class_members(name: str) -> None:
    found = {node.name for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)}
    assert found
    assert public(dir(getattr(_core, name))) == found


def signatures() -> list[tuple[Any, ast.FunctionDef]]:
    pairs = [(getattr(_core, name), node) for name, node in FUNCTIONS.items()]
    for name, node in CLASSES.items():
        members = [item for item in node.body if isinstance(item, ast.FunctionDef)]
        pairs += [(getattr(getattr(_core, name), item.name), item) for item in members]
    return [pair for pair in pairs if callable(pair[0])]


@pytest.mark.parametrize(("member", "node"), signatures(), ids=lambda item: getattr(item, "name", ""))
def test_signatures(member: Any, node: ast.FunctionDef) -> None:
    parameters = inspect.signature(member).parameters
    assert list(parameters) == [argument.arg for argument in node.args.args]
    optional = [p.name for p in parameters.values() if p.default is not p.empty]
    assert len(optional) == len(node.args.defaults)
