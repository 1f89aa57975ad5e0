"""Impurity decreases of out-of-bag rows: against a brute-force implementation, and their mean for noise."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrank as fr
from bags import bag_of
from reference import scores
from reference.hierarchy import hierarchical_problem
from reference.problem import Problem, problem_of
from reference.tree import Grower
from tables import CLASSES, MISSING_TARGETS, NOMINAL, NUMERIC, hierarchies, tables

# As components, features whose values differ in their last digits are too hard for the reference.
KINDS = tuple(kind for kind in NUMERIC + NOMINAL if kind != "close")

many_cases = settings(max_examples=60, derandomize=True, deadline=None)


def assert_agrees(
    table: pa.Table,
    problem: Problem,
    asked: dict,
    *,
    seed: int,
    min_samples_leaf: int = 2,
    **others,
) -> None:
    """The engine gives the first tree of a forest the importances that the formulas give it."""
    counts = bag_of(len(problem.components), seed)
    if not counts.any():
        return
    ranker = fr.ForestRanker(
        n_estimators=1,
        ensemble="bagging",
        min_samples_leaf=min_samples_leaf,
        max_bins=65_535,
        ties="lowest",
        scores=("mdi_oob", "genie3"),
        by_target=asked.get("task") != "unsupervised",
        random_state=seed,
        **{"unlabelled": "ignore"} | others,
    )
    ranking = fr.rank(table, ranker=ranker, **asked)
    nodes = Grower(problem, min_samples_leaf, None, counts).tree()
    close = {"rtol": 1e-9, "atol": 1e-9}
    np.testing.assert_allclose(
        ranking.importances("genie3"),
        scores.genie3(nodes, len(problem.features)),
        **close,
        err_msg="the tree",
    )
    expected = scores.mdi_oob_by_variable(problem, nodes, counts)
    np.testing.assert_allclose(ranking.importances("mdi_oob"), expected.sum(axis=1), **close)
    if ranking.targets:
        np.testing.assert_allclose(ranking.by_target("mdi_oob"), expected[:, : len(problem.nominal)], **close)


def check(case: tuple[pa.Table, list[str]], seed: int, *, min_samples_leaf: int = 2, **how) -> None:
    table, targets = case
    weight, supervision, task = how.get("weight"), how.get("supervision"), how.get("task")
    problem = problem_of(
        table,
        targets,
        weight=weight,
        target_weights=how.get("target_weights"),
        labels=task == "multi-label",
        supervision=supervision,
        feature_weights=how.get("feature_weights"),
    )
    others = {"target_weights": how.get("target_weights")}
    if supervision is not None:
        others |= {
            "supervision": supervision,
            "unlabelled": None,
            "feature_weights": how.get("feature_weights"),
        }
    asked = {"target": targets, "task": task, "sample_weight": weight}
    assert_agrees(table, problem, asked, seed=seed, min_samples_leaf=min_samples_leaf, **others)


SEEDS = st.integers(0, 1000)


def test_reference_worked_by_hand():
    # In the bag x <= 1 has the mean 0 and x > 1 the mean 4; the variance of all y is 11. Out of the bag the
    # sides have 0 and 8, so that the covariance with the means is 1/4 * 4 * 8.
    problem = problem_of(pa.table({"x": [1.0, 1.0, 3.0, 4.0], "y": [0.0, 0.0, 4.0, 8.0]}), ["y"])
    counts = np.array([2, 0, 2, 0])
    nodes = Grower(problem, 1, None, counts).tree()
    assert scores.mdi_oob(problem, nodes, counts) == pytest.approx([8 / 11])


@many_cases
@given(tables(st.just(["real"]), missing=True), SEEDS, st.integers(1, 4))
def test_regression(case, seed, min_samples_leaf):
    check(case, seed, min_samples_leaf=min_samples_leaf)


@many_cases
@given(CLASSES, SEEDS)
def test_classification(case, seed):
    check(case, seed)


@many_cases
@given(
    tables(
        st.lists(st.sampled_from(["real", "few", "several", "two"]), min_size=2, max_size=4),
        features=NUMERIC + NOMINAL,
        missing=True,
        weights=True,
    ),
    st.lists(st.sampled_from([1.0, 0.5, 3.0]), min_size=4, max_size=4),
    SEEDS,
)
def test_weighted_rows_and_targets(case, target_weights, seed):
    check(case, seed, weight="weight", target_weights=target_weights[: len(case[1])])


@many_cases
@given(MISSING_TARGETS, SEEDS)
def test_missing_targets(case, seed):
    check(case, seed)


@many_cases
@given(
    tables(
        st.lists(st.just("boolean"), min_size=2, max_size=12),
        features=KINDS,
        missing=True,
        missing_targets=True,
    ),
    SEEDS,
)
def test_labels(case, seed):
    check(case, seed, task="multi-label")


@many_cases
@given(
    tables(
        st.sampled_from([["real"], ["several"], ["few", "two"]]),
        features=KINDS,
        missing=True,
        missing_targets=True,
    ),
    st.sampled_from([0.0, 0.3, 1.0]),
    SEEDS,
)
def test_semi_supervision(case, supervision, seed):
    check(case, seed, supervision=supervision)


@many_cases
@given(
    tables(st.sampled_from([["real"], ["few", "two"]]), features=KINDS, missing=True, missing_targets=True),
    st.lists(st.sampled_from([1.0, 0.25, 3.0, 0.0]), min_size=12, max_size=12),
    SEEDS,
)
def test_weights_of_features(case, weights, seed):
    table, targets = case
    own = [1.0, *weights][: table.num_columns - len(targets)]
    check(case, seed, supervision=0.4, feature_weights=own)


@many_cases
@given(tables(st.just([]), features=KINDS, missing=True), SEEDS)
def test_without_a_target(case, seed):
    table, _ = case
    problem = problem_of(table, [], supervision=0.0)
    assert_agrees(table, problem, {"task": "unsupervised"}, seed=seed, unlabelled=None)


@many_cases
@given(hierarchies(dag=True, features=NUMERIC + NOMINAL, missing=True), SEEDS)
def test_hierarchies(case, seed):
    table, parents = case
    problem = hierarchical_problem(table, "y", parents)
    assert_agrees(table, problem, {"target": "y", "hierarchy": parents}, seed=seed)


def test_one_ensemble_per_target():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    table = pa.table({"a": x[:, 0], "b": x[:, 1], "u": x[:, 0], "v": x[:, 1] + 0.1 * x[:, 2]})
    both = fr.rank(table, ["u", "v"], per_target=True, by_target=True, scores=("mdi_oob",), n_estimators=20)
    parts = both.by_target()
    np.testing.assert_allclose(both.importances(), parts.sum(axis=1), rtol=1e-12)
    assert parts[0, 0] > 5 * abs(parts[0, 1])
    assert parts[1, 1] > 5 * abs(parts[1, 0])


def test_a_bootstrap_is_needed():
    with pytest.raises(fr.SettingError, match="mdi_oob needs out-of-bag rows, so a bootstrap"):
        fr.rank({"a": [1.0, 2.0], "y": [1.0, 2.0]}, "y", scores=("mdi_oob",), ensemble="extra_trees")


def mixed(rng: np.random.Generator, n_rows: int) -> dict:
    """Features of 2, 3, 5 and 20 categories, a continuous one, and one that is often missing."""
    table: dict = {f"c{k}": [f"v{v}" for v in rng.integers(0, k, n_rows)] for k in (2, 3, 5, 20)}
    table["x"] = rng.normal(size=n_rows)
    table["gaps"] = np.where(rng.random(n_rows) < 0.4, np.nan, rng.normal(size=n_rows))
    return table


TARGETS = {
    "number": lambda rng, n: {"y": rng.normal(size=n)},
    "skewed": lambda rng, n: {"y": rng.exponential(size=n) ** 2},
    "rare class": lambda rng, n: {"y": np.where(rng.random(n) < 0.1, "a", "b")},
    "classes": lambda rng, n: {"y": [f"k{v}" for v in rng.integers(0, 6, n)]},
    "mixed": lambda rng, n: {
        "y": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        "t": [f"k{v}" for v in rng.integers(0, 3, n)],
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TARGETS)
def test_the_mean_for_noise_is_zero(kind):
    # Over 5 kinds and 6 features, 3.9 standard errors are exceeded in 3 runs in 1,000.
    found, biased = [], []
    for seed in range(300):
        rng = np.random.default_rng([seed, len(kind)])
        target = TARGETS[kind](rng, 100)
        ranking = fr.rank(
            {**mixed(rng, 100), **target},
            list(target),
            scores=("mdi_oob", "genie3"),
            n_estimators=15,
            random_state=seed,
        )
        found.append(ranking.importances("mdi_oob"))
        biased.append(ranking.importances("genie3"))
    sets = np.array(found)
    z = sets.mean(axis=0) / (sets.std(axis=0, ddof=1) / np.sqrt(len(sets)))
    assert np.abs(z).max() < 3.9, z
    assert np.mean(biased, axis=0).min() > 0


def test_a_relevant_feature_has_nearly_the_value_of_genie3():
    rng = np.random.default_rng(1)
    table = mixed(rng, 2_000)
    table["y"] = np.where(np.array(table["c5"]) == "v1", 2.0, 0.0) + 0.5 * rng.normal(size=2_000)
    ranking = fr.rank(table, "y", scores=("genie3", "mdi_oob"), max_features="all")
    debiased, biased = ranking.importances("mdi_oob"), ranking.importances("genie3")
    relevant = ranking.features.index("c5")
    assert debiased[relevant] == pytest.approx(biased[relevant], rel=0.05)
    others = np.delete(np.arange(len(debiased)), relevant)
    assert np.abs(debiased[others]).max() < 0.02 < biased[others].max()
