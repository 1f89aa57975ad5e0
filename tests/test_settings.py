"""One schema of settings: the engine's; Python's signatures and the command line are held against it."""

from __future__ import annotations

import inspect
import json
from typing import Any

import pytest

import ferrank as fr
from ferrank import _core
from ferrank.cli.main import build_parser

RANKERS = {"forest": fr.ForestRanker, "relief": fr.ReliefRanker}
IN_PYTHON = {
    # How a run is carried out, or what is done with its result; no importance depends on these.
    "n_jobs", "memory_limit", "temp_dir", "scope", "n_features_to_select",
    # Roles of the columns.
    "task", "hierarchy", "hierarchy_decay",
    # Early stopping and streams have settings of their own in the engine.
    "until", "stable_top", "confidence", "block_rows", "reservoir_rows", "half_life",
}  # fmt: skip
WORDS = {"seed": "random_state"}
"""The engine's word and scikit-learn's."""
NOT_IN_THE_SHELL = {"scope", "n_features_to_select", "block_rows", "reservoir_rows", "half_life"}


def parameters(name: str) -> dict[str, Any]:
    found = inspect.signature(RANKERS[name]).parameters
    return {parameter: found[parameter].default for parameter in found}


def engine(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_core.default_settings_json(name))
    assert len(found) > 8
    return found


@pytest.mark.parametrize("name", RANKERS)
def test_defaults_are_the_engines(name: str) -> None:
    assert json.loads(_core.settings_json(RANKERS[name]()._settings())) == engine(name)


@pytest.mark.parametrize("name", RANKERS)
def test_parameters_are_the_engines_settings(name: str) -> None:
    own = {WORDS.get(setting, setting) for setting in engine(name) if setting != "ranker"}
    # The decay is a part of the score symbolic in the engine.
    extra = {"decay"} if name == "forest" else set()
    assert parameters(name).keys() - IN_PYTHON == own | extra


@pytest.mark.parametrize("name", RANKERS)
def test_each_parameter_is_an_option_of_the_shell(name: str) -> None:
    parser = build_parser()
    commands = next(action for action in parser._actions if action.choices and "rank" in action.choices)
    options = {action.dest for action in commands.choices["rank"]._actions}
    assert len(options) > 20
    assert parameters(name).keys() - NOT_IN_THE_SHELL <= options


@pytest.mark.parametrize("name", RANKERS)
def test_each_parameter_is_described(name: str) -> None:
    text = inspect.getdoc(RANKERS[name]) or ""
    missing = [parameter for parameter in parameters(name) if f"\n{parameter} : " not in text]
    assert not missing, f"{RANKERS[name].__name__} does not describe {missing}"
