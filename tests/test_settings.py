"""One schema of settings: the engine's; Python's signatures and the command line are held against it."""

from __future__ import annotations

import argparse
import inspect
import json
import re
from typing import Any

import pytest

import ferrank as fr
from ferrank import _core
from ferrank.cli.main import build_parser
from ferrank.rankers.estimators import estimator_of
from ferrank.rankers.registry import PLANS

RANKERS = {"forest": fr.ForestRanker, "relief": fr.ReliefRanker}
IN_PYTHON = {
    # How a run is carried out, or what is done with its result; no importance depends on these.
    "n_jobs", "memory_limit", "temp_dir", "scope", "n_features_to_select", "keep_trees",
    # Roles of the columns.
    "task", "hierarchy", "hierarchy_decay", "categorical_features",
    # Early stopping and streams have settings of their own in the engine.
    "until", "stable_top", "confidence", "block_rows", "reservoir_rows", "half_life",
    # Iterations of Relief over fewer features.
    "turf_step", "turf_features",
}  # fmt: skip
WORDS = {"seed": "random_state"}
"""The engine's word and scikit-learn's."""
CHANGED: dict[str, dict[str, Any]] = {
    "forest": {
        "max_features": 0.5,
        "max_samples": 3,
        "decay": 0.25,
        "scores": ("genie3", "symbolic"),
        "ties": "lowest",
        "missing": "ignore",
    },
    "relief": {"n_iterations": 0.5, "sigma": (None, 2.5), "n_neighbors": 2, "influence": (0.25, 0.5)},
}
NOT_IN_THE_SHELL = {"scope", "n_features_to_select", "block_rows", "reservoir_rows", "half_life"}


def parameters(name: str) -> dict[str, Any]:
    found = inspect.signature(RANKERS[name]).parameters
    return {parameter: found[parameter].default for parameter in found}


def engine(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(_core.default_settings_json(name))
    assert len(found) > 8
    return found


@pytest.mark.parametrize("name", RANKERS)
def test_plans_have_the_parameters_of_the_estimators(name: str) -> None:
    """And rank the same by default; a plan's defaults are the engine's."""
    assert PLANS[name]._defaults().keys() == parameters(name).keys()
    of_runs = IN_PYTHON & parameters(name).keys()
    assert {one: PLANS[name]._defaults()[one] for one in of_runs} == {
        one: parameters(name)[one] for one in of_runs
    }
    assert PLANS[name]()._settings() == RANKERS[name]()._settings()
    changed = CHANGED[name] | {"random_state": 3, "hierarchy_decay": 0.5, "until": "stable"}
    plan = PLANS[name](**changed)
    assert plan._settings() == RANKERS[name](**changed)._settings()
    assert estimator_of(plan)._settings() == plan._settings()


@pytest.mark.parametrize("name", RANKERS)
def test_defaults_are_the_engines(name: str) -> None:
    assert json.loads(_core.settings_json(RANKERS[name]()._settings())) == engine(name)


@pytest.mark.parametrize("name", RANKERS)
def test_parameters_are_the_engines_settings(name: str) -> None:
    own = {WORDS.get(setting, setting) for setting in engine(name) if setting != "ranker"}
    assert parameters(name).keys() - IN_PYTHON == own


def options() -> dict[str, argparse.Action]:
    """The options of ``ferrank rank`` by the names of the parameters that they set."""
    commands: Any = next(
        action for action in build_parser()._actions if action.choices and "rank" in action.choices
    )
    found = {action.dest: action for action in commands.choices["rank"]._actions}
    assert len(found) > 20
    return found


@pytest.mark.parametrize("name", RANKERS)
def test_each_parameter_is_an_option_of_the_shell(name: str) -> None:
    assert parameters(name).keys() - NOT_IN_THE_SHELL <= options().keys()


def choices_of(name: str, setting: str) -> set[str]:
    """Return the values that the engine names in its message about a wrong one."""
    settings = RANKERS[name]()._settings()
    wrong = ["?"] if isinstance(settings[setting], list) else "?"
    with pytest.raises(fr.SettingError, match=rf"^{setting}: '\?' is not ") as error:
        _core.settings_json(settings | {setting: wrong})
    return set(re.findall(r"'(\w+)'", str(error.value)))


@pytest.mark.parametrize("name", RANKERS)
def test_choices_of_the_shell_are_the_engines(name: str) -> None:
    own = [setting for setting in engine(name) if setting != "ranker" and setting in options()]
    checked = [setting for setting in own if options()[setting].choices]
    for setting in checked:
        # A setting that both rankers have is one option.
        owners = [other for other in RANKERS if setting in engine(other)]
        expected = set().union(*(choices_of(owner, setting) for owner in owners))
        assert expected == set(options()[setting].choices or ())
    assert checked


@pytest.mark.parametrize("name", RANKERS)
def test_choices_of_the_estimators_are_the_engines(name: str) -> None:
    """In the types of parameters, and in their documentation."""
    documentation = inspect.getdoc(RANKERS[name]) or ""
    found = inspect.signature(RANKERS[name]).parameters
    checked = [one for one in engine(name) if one in found and "Literal[" in str(found[one].annotation)]
    for setting in checked:
        literals = re.findall(r"Literal\[(.*?)\]", str(found[setting].annotation))
        typed = set(re.findall(r"'(\w+)'", " ".join(literals)))
        assert typed == choices_of(name, setting)
        about = re.search(rf"^{setting} : (.*?)^(?:\w+ : |\S+\n---)", documentation, re.MULTILINE | re.DOTALL)
        assert about
        assert typed <= set(re.findall(r'"(\w+)"', about[1]))
    assert checked


@pytest.mark.parametrize("name", RANKERS)
def test_defaults_in_the_help_of_the_shell_are_the_engines(name: str) -> None:
    shown = {
        setting: float(found[1])
        for setting in engine(name)
        if setting != "ranker"
        and (found := re.search(r"default: ([\d.]+)$", options()[WORDS.get(setting, setting)].help or ""))
    }
    own = {
        setting: value[0] if isinstance(value := engine(name)[setting], list) else value for setting in shown
    }
    assert shown == own
    assert len(shown) >= 2


@pytest.mark.parametrize("name", RANKERS)
def test_settings_of_an_accumulator_are_the_rankers(name: str) -> None:
    ranker = RANKERS[name](random_state=7, **CHANGED[name])
    data = {"a": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 4.0, 3.0]}
    accumulator = fr.accumulate(data, "y", ranker=ranker)
    assert accumulator.settings == ranker._settings()
    assert fr.Accumulator.from_bytes(accumulator.to_bytes()).settings == ranker._settings()


@pytest.mark.parametrize("name", RANKERS)
def test_each_parameter_is_described(name: str) -> None:
    text = inspect.getdoc(RANKERS[name]) or ""
    missing = [parameter for parameter in parameters(name) if f"\n{parameter} : " not in text]
    assert not missing, f"{RANKERS[name].__name__} does not describe {missing}"
