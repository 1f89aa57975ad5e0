"""The error that a ranking tells of its forest: against brute force, scikit-learn, and on noise."""

from __future__ import annotations

from dataclasses import asdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrank as fr
from bags import bag_of
from reference.forest_error import forest_errors
from reference.hierarchy import hierarchical_problem
from reference.problem import Problem, problem_of
from reference.tree import Grower
from tables import CLASSES, MISSING_TARGETS, NOMINAL, NUMERIC, hierarchies, tables

# As components, features whose values differ in their last digits are too hard for the reference.
KINDS = tuple(kind for kind in NUMERIC + NOMINAL if kind != "close")
N_TREES = 3
SEEDS = st.integers(0, 1000)

many_cases = settings(max_examples=50, derandomize=True, deadline=None)


def assert_agrees(table: pa.Table, problem: Problem, asked: dict, *, seed: int, **others) -> None:
    """A forest of a few trees has the error that the formulas give it."""
    counts = [bag_of(len(problem.components), seed, tree) for tree in range(N_TREES)]
    known = ~np.isnan(problem.components[:, problem.target_of < len(problem.nominal)])
    if not all((known & (bag > 0)[:, None]).any(axis=0).all() for bag in counts):
        # A bag is not known, or has no value of some target.
        return
    ranker = fr.ForestRanker(
        n_estimators=N_TREES,
        ensemble="bagging",
        max_bins=65_535,
        ties="lowest",
        standard_errors=False,
        random_state=seed,
        **{"unlabelled": "ignore"} | others,
    )
    found = fr.rank(table, ranker=ranker, **asked).model_error or {}
    trees = [(Grower(problem, 2, None, bag).tree(), bag) for bag in counts]
    expected = forest_errors(problem, trees)
    names = [asked["target"]] if isinstance(asked["target"], str) else asked["target"]
    assert list(found) == [name for name, one in zip(names, expected, strict=True) if one is not None]
    for name, one in zip(names, expected, strict=True):
        if one is not None:
            error, expected_error = asdict(found[name]), asdict(one)
            assert error.pop("measure") == expected_error.pop("measure")
            assert error == pytest.approx(expected_error, rel=1e-8, abs=1e-8)


def check(case: tuple[pa.Table, list[str]], seed: int, **how) -> None:
    table, targets = case
    problem = problem_of(
        table,
        targets,
        weight=how.get("weight"),
        labels=how.get("task") == "multi-label",
        supervision=how.get("supervision"),
    )
    others = {}
    if "supervision" in how:
        others = {"supervision": how["supervision"], "unlabelled": None}
    asked = {"target": targets, "task": how.get("task"), "sample_weight": how.get("weight")}
    assert_agrees(table, problem, asked, seed=seed, **others)


@many_cases
@given(tables(st.sampled_from([["real"], ["few"], ["constant"]]), missing=True), SEEDS)
def test_numbers(case, seed):
    check(case, seed)


@many_cases
@given(CLASSES, SEEDS)
def test_classes(case, seed):
    check(case, seed)


@many_cases
@given(
    tables(
        st.lists(st.sampled_from(["real", "few", "several", "two"]), min_size=2, max_size=4),
        features=NUMERIC + NOMINAL,
        weights=True,
    ),
    SEEDS,
)
def test_weighted_rows(case, seed):
    check(case, seed, weight="weight")


@many_cases
@given(MISSING_TARGETS, SEEDS)
def test_missing_targets(case, seed):
    check(case, seed)


@many_cases
@given(
    tables(st.lists(st.just("boolean"), min_size=2, max_size=12), features=KINDS, missing_targets=True), SEEDS
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
    st.sampled_from([0.3, 1.0]),
    SEEDS,
)
def test_semi_supervision(case, supervision, seed):
    check(case, seed, supervision=supervision)


@many_cases
@given(hierarchies(dag=True, features=NUMERIC + NOMINAL, missing=True), SEEDS)
def test_hierarchies(case, seed):
    table, parents = case
    problem = hierarchical_problem(table, "y", parents)
    assert_agrees(table, problem, {"target": "y", "hierarchy": parents}, seed=seed)


def data(n_rows: int, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n_rows, 4))
    return {
        **{f"x{i}": x[:, i] for i in range(4)},
        "y": x[:, 0] + 0.3 * rng.normal(size=n_rows),
        "kind": np.where(x[:, 1] + 0.3 * rng.normal(size=n_rows) > 0, "a", "b"),
    }


def test_with_one_ensemble_per_target_each_tells_its_own():
    found = fr.rank(data(300), ["y", "kind"], ranker="forest", per_target=True, n_estimators=30).model_error
    assert list(found) == ["y", "kind"]
    assert found["y"].measure == "relative squared error"
    assert found["y"].error < 0.5
    assert found["kind"].error < 0.5 * found["kind"].guess


def test_a_sample_of_the_rows_has_nearly_the_error_of_all():
    # 3,000 rows of which 1,000 are a sample, the same whatever the batches.
    table = pa.table(data(3_000))
    found = fr.rank(table, ["y", "kind"], ranker="forest", n_estimators=30)
    batches = pa.Table.from_batches(table.to_batches(max_chunksize=700))
    assert fr.rank(batches, ["y", "kind"], ranker="forest", n_estimators=30).model_error == found.model_error
    # A row may stand for two.
    assert all(950 <= error.n_rows <= 1_000 for error in found.model_error.values())
    few = fr.rank(table.slice(0, 1_000), ["y", "kind"], ranker="forest", n_estimators=30).model_error
    for target, error in found.model_error.items():
        assert error.error == pytest.approx(few[target].error, abs=0.08)


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({"ensemble": "extra_trees"}, "bootstrap"),
        ({"bootstrap": False}, "bootstrap"),
        ({"target": None, "task": "unsupervised"}, "no target"),
        ({"supervision": 0.0, "unlabelled": None}, "take no part"),
        ({"min_samples_leaf": 90}, "no tree has a split"),
    ],
)
def test_without_predictions_the_reason_is_told(how, reason):
    table = data(100)
    target = how.pop("target", "y")
    if target is None:
        del table["kind"]
    else:
        how["drop"] = ["kind"]
    ranking = fr.rank(table, target, ranker="forest", n_estimators=5, **how)
    assert ranking.model_error is None
    assert reason in ranking.no_model_error
    assert "out-of-bag" not in ranking.to_text()
    assert "model_error" not in ranking.to_dict()


def test_relief_makes_no_predictions():
    ranking = fr.rank(data(60), "y", drop=["kind"], ranker="relief")
    assert ranking.model_error is None
    assert "no predictions" in ranking.no_model_error


def test_a_joint_ranking_has_the_error_of_its_forest():
    table = {name: column for name, column in data(150).items() if name != "kind"}
    joint = fr.rank(table, "y", ranker="joint", n_estimators=200)
    forest = fr.ForestRanker(
        n_estimators=200,
        scores=("permutation", "mdi_oob", "genie3"),
        shadows=True,
        max_features="auto",
        min_samples_leaf=4,
    )
    assert joint.model_error == fr.rank(table, "y", ranker=forest).model_error
    assert str(joint.model_error["y"]) in joint.to_text()


def test_a_stream_tells_no_error():
    table = data(400)
    X = np.column_stack([table[f"x{i}"] for i in range(4)])
    forest = fr.ForestRanker(n_estimators=5, block_rows=100).partial_fit(X, table["y"])
    assert forest.result_.model_error is None
    assert "part of the rows" in forest.result_.no_model_error


def test_errors_are_kept_and_told(tmp_path):
    ranking = fr.rank(data(200), ["y", "kind"], ranker="forest", n_estimators=20)
    for suffix in ("json", "parquet", "arrow"):
        ranking.save(tmp_path / f"ranking.{suffix}")
        assert fr.Ranking.load(tmp_path / f"ranking.{suffix}").model_error == ranking.model_error
    assert "of guessing (relative squared error), median" in ranking.to_text()
    assert "of guessing (relative squared error), median" in ranking._repr_html_()
    one = fr.rank(data(200), "y", drop=["kind"], ranker="forest", n_estimators=20)
    assert str(one.model_error["y"]) in one.to_text()
    assert "of guessing (relative squared error)" in one.to_text()
    assert "no better" not in one.to_text()


def test_accumulators_of_parts_add_up_to_the_error_of_the_whole(tmp_path):
    table, forest = pa.table(data(300)), fr.ForestRanker(n_estimators=20)
    whole = fr.rank(table, "y", drop=["kind"], ranker=forest)
    parts = [
        fr.accumulate(table, "y", drop=["kind"], ranker=forest, keys=keys)
        for keys in (range(7), range(7, 20))
    ]
    assert fr.merge(parts[::-1]).ranking().model_error == whole.model_error


@pytest.mark.slow
@pytest.mark.parametrize("name", ["iris", "wine", "diabetes", "breast_cancer"])
def test_the_error_is_that_of_scikit_learn(name):
    from sklearn import datasets
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    is_number = name == "diabetes"
    model = RandomForestRegressor if is_number else RandomForestClassifier
    theirs = [
        1
        - model(200, max_features="sqrt", min_samples_leaf=2, oob_score=True, random_state=seed)
        .fit(X, y)
        .oob_score_
        for seed in range(8)
    ]
    ours = []
    for seed in range(8):
        forest = fr.ForestRanker(
            n_estimators=200,
            standard_errors=False,
            random_state=seed,
            task="regression" if is_number else "classification",
        )
        (error,) = forest.fit(X, y).result_.model_error.values()
        ours.append(error.error)
        assert error.n_rows == len(y)
        assert error.is_better
    # scikit-learn's least size of a leaf counts each row once, so its trees are a little smaller.
    apart = abs(np.mean(ours) - np.mean(theirs))
    assert apart < 3 * np.hypot(np.std(ours), np.std(theirs)) / np.sqrt(8) + 0.012


def noise(kind: str, rng: np.random.Generator) -> tuple[dict, dict]:
    """Columns in which no feature says anything of `y`, and settings."""
    table = {f"x{i}": rng.normal(size=150) for i in range(8)}
    patient = rng.integers(0, 30, 150)
    if kind == "groups":
        # Each patient has its own values, but they do not tell the target of another one.
        table = {name: rng.normal(size=30)[patient] + 0.3 * x for name, x in table.items()}
    if kind == "few rows":
        table = {name: x[:20] for name, x in table.items()}
    y = {
        "number": lambda: rng.normal(size=150),
        "wild": lambda: rng.standard_cauchy(150),
        "few rows": lambda: rng.choice(["a", "b"], 20),
        "two": lambda: rng.choice(["a", "b"], 150),
        "five": lambda: rng.choice(list("abcde"), 150),
        "skewed": lambda: rng.choice(["a", "b"], 150, p=[0.1, 0.9]),
        "groups": lambda: rng.normal(size=30)[patient] + 0.3 * rng.normal(size=150),
    }[kind]()
    if kind == "groups":
        return table | {"y": y, "patient": patient}, {"groups": "patient"}
    return table | {"y": y}, {}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["number", "wild", "few rows", "two", "five", "skewed", "groups"])
def test_on_noise_the_forest_is_no_better_than_guessing(kind):
    told = 0
    for seed in range(60):
        table, how = noise(kind, np.random.default_rng(seed))
        forest = fr.ForestRanker(n_estimators=50, standard_errors=False, random_state=seed)
        ranking = fr.rank(table, "y", ranker=forest, **how)
        told += "the forest predicts y no better than guessing: importances may be noise" in ranking.to_text()
    assert told >= 57


def test_without_groups_rows_of_a_patient_tell_each_other():
    table, how = noise("groups", np.random.default_rng(0))
    forest = fr.ForestRanker(n_estimators=50, standard_errors=False)
    apart = fr.rank(table, "y", ranker=forest, **how).model_error["y"]
    mixed = fr.rank(table, "y", drop=["patient"], ranker=forest).model_error["y"]
    assert not apart.is_better
    assert apart.error > 1
    assert mixed.is_better
    assert mixed.error < 0.5


def test_a_rare_class_that_is_told_from_the_other_counts_though_it_is_never_the_most_probable():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8_000, 4))
    value = x[:, 0] + 0.4 * rng.normal(size=8_000)
    rare = value > np.sort(value)[-41]
    table = {f"x{i}": x[:, i] for i in range(4)} | {"y": np.where(rare, "rare", "usual")}
    forest = fr.ForestRanker(n_estimators=60, min_samples_leaf=60, standard_errors=False)
    error = fr.rank(table, "y", ranker=forest).model_error["y"]
    assert error.guess == pytest.approx(40 / 8_000, rel=0.05)
    assert error.error > 0.9 * error.guess
    assert error.is_better
    assert error.squared_error < 0.95


def test_with_shadows_trees_of_all_blocks_predict_the_same_rows():
    table, forest = pa.table(data(400)), fr.ForestRanker(n_estimators=200, shadows=True)
    whole = fr.rank(table, "y", drop=["kind"], ranker=forest)
    error = whole.model_error["y"]
    assert error.n_rows == 400
    assert error.is_better
    parts = [
        fr.accumulate(table, "y", drop=["kind"], ranker=forest, keys=keys)
        for keys in (range(13), range(13, 200))
    ]
    assert fr.merge(parts[::-1]).ranking().model_error == whole.model_error


def test_any_threads_give_the_same_bits():
    table = pa.table(data(2_500))
    first, *others = (
        fr.rank(
            table, ["y", "kind"], ranker="forest", n_estimators=12, n_jobs=n_jobs, standard_errors=False
        ).model_error
        for n_jobs in (1, 2, 5)
    )
    assert all(other == first for other in others)
