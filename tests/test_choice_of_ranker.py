"""Which ranker the settings choose, and what is said of settings that no ranker has."""

import re
from typing import Any

import numpy as np
import pytest

from ferrank import SettingError, rank
from ferrank.rankers.registry import automatic


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_tree": 5}, "n_tree: not a setting of ranker='forest'; its settings are task, bootstrap"),
        ({"n_estimator": 5}, "did you mean n_estimators?"),
        (
            {"ranker": "relief", "shadows": True},
            "not a setting of ranker='relief'; it is one of ranker='forest'",
        ),
    ],
)
def test_settings_that_do_not_exist(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingError, match=re.escape(message)):
        rank({"a": [0.5, 1.5], "y": [0.5, 2.5]}, "y", **settings)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "joint"),
        ({"n_neighbors": 10}, "joint"),
        ({"n_estimators": 300, "n_neighbors": 10}, "joint"),
        ({"n_estimators": 300}, "forest"),
        ({"max_depth": 3}, "forest"),
        ({"unlabelled": "use"}, "forest"),
        ({"unlabelled": "ignore"}, "joint"),
    ],
)
def test_settings_choose_between_forest_and_joint(settings: dict[str, Any], name: str) -> None:
    assert automatic(settings, weighted=False, task=None) == name


def test_a_target_that_is_neither_name_nor_values() -> None:
    with pytest.raises(SettingError, match="target: 3 is neither the name.*target_last=1"):
        rank(np.zeros((4, 2)), 3)
