"""Which ranker the settings choose, and what is said of settings that no ranker has."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from ferrank import Dataset, JointRanker, RelevantFeatures, SettingError, check, rank
from ferrank.evaluate import evaluate
from ferrank.rankers.registry import _SCORES, automatic


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"q": 5}, "q: not a setting of rank or of a ranker; those of a forest are task, bootstrap"),
        ({"ranker": "forest", "q": 5}, "q: not a setting of ranker='forest'; its settings are task, boot"),
        ({"n_tree": 5}, "did you mean n_estimators?"),
        ({"tarrget": "y"}, "tarrget: not a setting of rank or of a ranker; did you mean target?"),
        ({"cluster": True}, "did you mean clusters?"),
        ({"fdr": 0.05}, "did you mean ranking.relevant(fdr=…)?"),
        ({"decimal": ","}, "did you mean CSVFile(path, decimal=…)?"),
        ({"n_estimator": 5}, "did you mean n_estimators?"),
        ({"n_neighbours": 5}, "did you mean n_neighbors?"),
        ({"scores": 5}, "scores: 5 "),
        ({"scores": ["genie3", "relief"]}, "scores: 'relief' is not 'genie3'"),
        (
            {"n_estimators": 5, "sigma": 1},
            "sigma: not a setting of ranker='forest'; it is one of ranker='relief'",
        ),
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
    ("call", "message"),
    [
        (
            partial(RelevantFeatures, nestimators=3),
            "of RelevantFeatures; did you mean ranker=JointRanker(n_estimators=…)?",
        ),
        (
            partial(RelevantFeatures, n_estimators=3),
            "n_estimators: not a setting of RelevantFeatures; give it to a ranker that has it, such as "
            "ranker=JointRanker(n_estimators=…)",
        ),
        (partial(RelevantFeatures, fdrr=0.1), "did you mean fdr?"),
        (partial(Dataset, {}, dropp=["a"]), "dropp: not a parameter of Dataset; did you mean drop?"),
        (partial(check, {}, "y", tsk="regression"), "tsk: not a parameter of check; did you mean task?"),
        (
            partial(evaluate, {}, [], test={}, n_neighbours=3),
            "n_neighbours: not a parameter of evaluate; did you mean n_neighbors?",
        ),
        (
            partial(JointRanker().fit, [[1.0]], [1.0], sample_weight=[1.0]),
            "sample_weight: tests give each row the same weight; leave it out, or use ForestRanker or "
            "ReliefRanker",
        ),
    ],
)
def test_parameters_that_do_not_exist(call: Callable[[], object], message: str) -> None:
    with pytest.raises(SettingError, match=re.escape(message)):
        call()


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
        ({"sigma": 5}, "relief"),
        ({"scaling": "rank"}, "relief"),
        ({"turf_step": 0.5}, "relief"),
        ({"neighborhood": "surf", "n_jobs": 2}, "relief"),
        ({"class_priors": "uniform"}, "relief"),
        ({"unlabelled": "use", "influence": (0, 1)}, "relief"),
        ({"scores": "myopic"}, "relief"),
        ({"scores": ["chi2", "mse"]}, "univariate"),
        ({"n_bins": 5}, "univariate"),
        ({"scores": ["genie3"]}, "forest"),
    ],
)
def test_settings_choose_the_ranker(settings: dict[str, Any], name: str) -> None:
    assert automatic(settings, weighted=False, task=None) == name


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({}, "forest"),
        ({"n_estimators": 9}, "forest"),
        ({"sigma": 5}, "relief"),
        ({"scores": "chi2"}, "univariate"),
    ],
)
def test_weights_choose_a_ranker_that_takes_them(settings: dict[str, Any], name: str) -> None:
    assert automatic(settings, weighted=True, task=None) == name


def test_no_target_needs_a_forest() -> None:
    assert automatic({"sigma": 5}, weighted=False, task="unsupervised") == "forest"


@pytest.mark.parametrize("name", _SCORES)
def test_the_names_of_scores_are_those_of_the_engine(name: str) -> None:
    table = {"a": [0.5, 1.5, 2.5, 3.5] * 20, "y": ["u", "v", "w", "w"] * 20}
    with pytest.raises(SettingError) as caught:
        rank(table, "y", ranker=name, scores="other")
    assert set(re.findall(r"'(\w+)'", str(caught.value))) == _SCORES[name] | {"other"}


def test_a_target_that_is_neither_name_nor_values() -> None:
    with pytest.raises(SettingError, match="target: 3 is neither the name.*target_last=1"):
        rank(np.zeros((4, 2)), 3)
