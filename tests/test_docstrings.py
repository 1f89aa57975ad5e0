"""Docstrings of the public interface: each parameter is typed and described, each object has an example."""

from __future__ import annotations

import inspect
import re
from typing import Any

import pytest
from numpydoc.validate import Validator, validate

import ferrank
import ferrank.evaluate

CHECKS = {
    "GL08": "no docstring",
    "SS03": "the summary does not end with a period",
    "PR01": "parameters are not documented",
    "PR02": "documented parameters do not exist",
    "PR04": "a parameter has no type",
    "PR07": "a parameter has no description",
}
RESULTS = {"Accumulator", "Clusters", "ModelError", "Profile", "Ranking", "Relevance", "ScoreRanking", "Stop",
           "Tuning", "Areas", "Comparison", "Curves", "Evaluation", "Measure", "Stability",
           "Synthetic"}  # fmt: skip
"""Returned, not made by users: described by attributes."""


def public() -> list[str]:
    names = [f"ferrank.{name}" for name in ferrank.__all__]
    names += [f"ferrank.evaluate.{name}" for name in ferrank.evaluate.__all__]
    found = [name for name in names if callable(Validator._load_obj(name))]
    assert len(found) > 30
    return found


def shared(name: str) -> set[str]:
    """Return the parameters that a docstring describes together, as in ``a, b, c`` or with "As in"."""
    doc = inspect.getdoc(Validator._load_obj(name)) or ""
    lines = [
        line for line in doc.splitlines() if "," in line and " : " not in line and not line.startswith(" ")
    ]
    return {part.strip().lstrip("*") for line in lines for part in line.split(",")}


def problems(name: str) -> list[tuple[str, str]]:
    together = shared(name)
    found = []
    for code, text in validate(name)["errors"]:
        if code not in CHECKS or (code == "PR01" and name.rsplit(".", 1)[1] in RESULTS):
            continue
        named = set(re.findall(r"[*]*(\w+)", text.partition(" ")[2]))
        if code in ("PR01", "PR02", "PR04") and named & together:
            continue
        found.append((code, text))
    return found


@pytest.mark.parametrize("name", public())
def test_a_public_object_is_documented(name: str) -> None:
    assert not problems(name)


@pytest.mark.parametrize("name", public())
def test_a_public_object_has_an_example(name: str) -> None:
    target: Any = Validator._load_obj(name)
    texts = [inspect.getdoc(target) or ""]
    if inspect.isclass(target):
        texts += [inspect.getdoc(member) or "" for member in vars(target).values()]
    assert any(">>>" in text for text in texts)
