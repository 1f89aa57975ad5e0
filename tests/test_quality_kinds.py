"""The simulated data of benches/quality.py is what it says, and the figures made of it are right."""

import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2, norm, spearmanr
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.model_selection import GroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

BENCHES = Path(__file__).parent.parent / "benches"


def bench(name: str) -> ModuleType:
    """Return a module of benches/, under a name that no test module has."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", BENCHES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


kinds, tables = bench("kinds"), bench("tables")
DRAWS: dict[str, Callable[[int], Any]] = kinds.KINDS | kinds.DISCOVERIES

# Rows, features, relevant ones, those independent of the target, nominal ones, and the task.
SHAPES = {
    "main-classes": (600, 200, 15, 185, 0, "classification"),
    "main-numbers": (600, 200, 15, 185, 0, "regression"),
    "friedman": (400, 100, 5, 95, 0, "regression"),
    "xor": (600, 60, 6, 54, 0, "classification"),
    "products": (600, 60, 6, 54, 0, "regression"),
    "parity": (600, 60, 3, 57, 0, "classification"),
    "blocks": (500, 100, 10, 0, 0, "regression"),
    "weak-binary": (600, 40, 5, 35, 40, "classification"),
    "copies": (400, 60, 20, 40, 0, "regression"),
    "cauchy": (500, 50, 8, 42, 0, "classification"),
    "nominal-numeric": (600, 40, 4, 36, 20, "regression"),
    "wide": (200, 10_000, 20, 9_980, 0, "classification"),
    "rare": (30_000, 40, 6, 34, 0, "classification"),
    "gaps": (500, 50, 4, 46, 0, "classification"),
    "mixed-independent": (300, 40, 7, 33, 0, "classification"),
    "mixed-correlated": (300, 40, 4, 20, 0, "regression"),
    "mixed-cardinality": (400, 40, 7, 33, 20, "classification"),
    "mixed-imbalance": (1_000, 40, 7, 33, 0, "classification"),
    "mixed-heavy-tails": (300, 40, 7, 33, 0, "regression"),
    "mixed-grouped": (1_200, 40, 5, 35, 0, "regression"),
    "mixed-wide": (200, 2_000, 7, 1_930, 0, "regression"),
    "mixed-wide-cardinality": (300, 300, 7, 293, 10, "classification"),
}
SHAPES |= {
    name.replace("mixed", "null"): (rows, features, 0, features, nominal, task)
    for name, (rows, features, _, _, nominal, task) in SHAPES.items()
    if name.startswith("mixed")
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_kind_has_the_shape_that_it_names(name: str) -> None:
    data = DRAWS[name](0)
    counts = (int(mask.sum()) for mask in (data.relevant, data.null, data.nominal))
    assert (*data.X.shape, *counts, data.task) == SHAPES[name]
    assert not (data.relevant & data.null).any()
    assert data.y.shape == data.X.shape[:1]
    if not name.endswith("grouped"):
        assert data.size.replace(" x ", " x ") in DRAWS[name].description


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_always_draws_the_same(name: str) -> None:
    one, again, other = (DRAWS[name](seed) for seed in (3, 3, 4))
    assert np.array_equal(one.X, again.X, equal_nan=True)
    assert np.array_equal(one.y, again.y)
    assert not np.array_equal(one.X, other.X, equal_nan=True)
    assert one.relevant.tolist() != other.relevant.tolist() or not one.relevant.any()


def deviations(one: np.ndarray, other: np.ndarray, n_rows: int) -> float:
    """Return Spearman's correlation in standard deviations of that of independent rows."""
    return float(spearmanr(one, other).statistic * np.sqrt(n_rows - 1))


def chance(n: int) -> float:
    """Return what the greatest of ``n`` standard normal numbers exceeds in one of a thousand samples."""
    return float(norm.isf(1e-3 / n))


def held_out(data: Any, columns: np.ndarray) -> float:
    """Return how well a forest of half of the rows predicts the others, in standard deviations of guessing.

    The rows that are predicted play no part in the forest. If the columns tell nothing, the result is a
    standard normal number; that of cross-validation, whose folds learn from each other, would vary more.
    """
    # More rows of a frequent class would take long, and tell no more.
    n_before = np.zeros(len(data.y))
    for label in np.unique(data.y) if data.task == "classification" else ():
        n_before[data.y == label] = np.arange((data.y == label).sum())
    rows = n_before < 1_000
    X, y = data.X[np.ix_(rows, columns)], data.y[rows]
    stratum = y if data.task == "classification" else np.zeros(len(y))
    split = StratifiedKFold(2, shuffle=True, random_state=0) if data.groups is None else GroupKFold(2)
    learned, predicted = next(split.split(X, stratum, data.groups))

    nominal = np.flatnonzero(data.nominal[columns])
    encoder = ColumnTransformer(
        [("", OneHotEncoder(handle_unknown="ignore"), nominal)], remainder="passthrough"
    )
    settings = {"n_estimators": 50, "min_samples_leaf": 4, "random_state": 0}
    is_nominal = data.task == "classification"
    forest = RandomForestClassifier(**settings) if is_nominal else RandomForestRegressor(**settings)
    model = make_pipeline(encoder, forest).fit(X[learned], y[learned])
    values = model.predict_proba(X[predicted])[:, 1] if is_nominal else model.predict(X[predicted])
    # Rows of a group are not independent.
    n_rows = len(predicted) if data.groups is None else len(np.unique(data.groups[predicted]))
    return deviations(values, y[predicted], n_rows)


WITH_EFFECTS = [name for name in DRAWS if not name.startswith("null")]
SEEDS = 4


@pytest.mark.slow
@pytest.mark.parametrize("name", WITH_EFFECTS)
def test_the_target_follows_the_relevant_features_and_not_the_independent(name: str) -> None:
    """An oracle that knows the relevant features beats guessing, and one with as many others does not."""
    relevant, others = np.zeros(SEEDS), np.zeros(SEEDS)
    for seed in range(SEEDS):
        data = DRAWS[name](seed)
        relevant[seed] = held_out(data, np.flatnonzero(data.relevant))
        null = np.flatnonzero(data.null)[: data.relevant.sum()]
        if len(null):
            others[seed] = held_out(data, null)
    # The sum of independent standard normal numbers, to the same scale (Stouffer's method).
    assert relevant.sum() / np.sqrt(SEEDS) > chance(len(WITH_EFFECTS))
    assert others.sum() / np.sqrt(SEEDS) < chance(len(WITH_EFFECTS))


WITHOUT_EFFECTS = [name for name in DRAWS if name.startswith("null") and "grouped" not in name]


@pytest.mark.parametrize("name", WITHOUT_EFFECTS)
def test_without_effects_no_feature_is_related_to_the_target(name: str) -> None:
    found = []
    for seed in range(10):
        data = DRAWS[name](seed)
        found += [deviations(X, data.y, len(data.y)) for X in data.X[:, ~data.nominal].T]
    # The squares add up as those of standard normal numbers do.
    rare = 1e-3 / 2 / len(WITHOUT_EFFECTS)
    assert chi2.ppf(rare, len(found)) < np.sum(np.square(found)) < chi2.isf(rare, len(found))
    assert np.abs(found).max() < chance(2 * len(found) * len(WITHOUT_EFFECTS))


def test_copies_are_exact_and_have_the_same_role() -> None:
    data = kinds.KINDS["copies"](0)
    _, which, counts = np.unique(data.X, axis=1, return_inverse=True, return_counts=True)
    assert counts.tolist() == [4] * 15
    for feature in range(15):
        assert len(set(data.relevant[which.ravel() == feature])) == 1


def test_gaps_tell_and_values_do_not() -> None:
    data = kinds.KINDS["gaps"](1)
    missing = np.isnan(data.X)
    one, other = (missing[data.y == label].mean(axis=0) for label in (1, 0))
    assert one[data.relevant].mean() / other[data.relevant].mean() == pytest.approx(3, abs=0.7)
    assert one[data.null].mean() / other[data.null].mean() == pytest.approx(1, abs=0.1)


def test_rare_classes_have_their_number_of_rows() -> None:
    assert [kinds.KINDS["rare"](seed).y.sum() for seed in range(3)] == [30] * 3
    assert kinds.DISCOVERIES["mixed-imbalance"](0).y.sum() == 40


def test_blocks_and_subjects_correlate_as_they_say() -> None:
    correlations = np.corrcoef(kinds.KINDS["blocks"](0).X, rowvar=False)
    assert ((correlations > 0.6).sum(axis=1) == 10).all()
    data = kinds.DISCOVERIES["null-grouped"](0)
    means = np.stack([data.X[data.groups == subject].mean(axis=0) for subject in range(60)])
    assert np.bincount(data.groups).tolist() == [20] * 60
    assert means.var(axis=0).mean() == pytest.approx(0.8, abs=0.1)


def test_a_table_has_the_types_of_its_columns() -> None:
    table = kinds.KINDS["nominal-numeric"](0).table()
    dictionaries = [str(field.type).startswith("dictionary") for field in table.schema]
    assert sum(dictionaries[:-1]) == 20
    assert str(table["y"].type) == "double"
    assert str(kinds.KINDS["xor"](0).table()["y"].type).startswith("dictionary")
    gaps = kinds.KINDS["gaps"](0)
    assert sum(column.null_count for column in gaps.table().columns) == np.isnan(gaps.X).sum()


ROWS = [
    {"case": "a", "baseline": "one", "auc": 0.9, "cpu": 1.0, "fdp": 0.25, "power": 0.5},
    {"case": "b", "baseline": "one", "auc": 0.6, "cpu": 2.0, "fdp": 0.0},
    {"case": "a", "baseline": "two", "note": "takes more than 1 s"},
    {"case": "b", "baseline": "two", "auc": 0.8, "cpu": 4.0},
    {"case": "b", "baseline": "three", "note": "takes more than 1 s"},
]


def test_tables_have_a_line_for_each_kind_and_a_column_for_each_ranker() -> None:
    assert tables.quality_by_arm(ROWS).splitlines() == [
        "| kind of data | one | two |",
        "| --- | --- | --- |",
        "| a | 0.90 |  |",
        "| b | 0.60 | 0.80 |",
        "| mean | 0.750 | 0.800 (1 of 2 kinds) |",
        "| worst | 0.60 | 0.80 (1 of 2 kinds) |",
        "| CPU s | 3 | 4 (1 of 2 kinds) |",
    ]
    assert tables.discoveries_by_arm(ROWS).splitlines()[2:] == [
        "| a | 0.25 / 0.50 |",
        "| b | 0.00 |",
        "| CPU s | 3 |",
    ]
    assert tables.discoveries_by_arm(ROWS[2:]) == ""
    seeds = [{"case": "a", "baseline": "one", "cpu": 1.0, "fdp": 0.1, "fdp_error": 0.02, "power": 1.0}]
    assert tables.discoveries_by_arm(seeds).splitlines()[2:] == [
        "| a | 0.10 ± 0.02 / 1.00 |",
        "| CPU s | 1 |",
    ]


BENCH = """
import sys
sys.path.insert(0, sys.argv.pop(1))
import arms, quality, time

arms.ARMS.clear()
arms.ARMS["ten"] = arms.ours("ForestRanker", select=lambda result, fdr: result.ranks() <= 100 * fdr)
arms.ARMS["ranks"] = arms.ours("ReliefRanker", n_neighbors=20)
arms.ARMS["fails"] = arms.ours("ForestRanker", max_depth=-1)
arms.ARMS["sleeps"] = arms.peer("ferrank")(lambda data, seed: time.sleep(60 if len(data.X) > 60 else 0))
arms.ARMS["absent"] = arms.Arm(None, "nobody_has_this")
quality.main()
"""


@pytest.mark.slow
def test_the_bench_judges_what_rankers_say(tmp_path: Path) -> None:
    options = ["--kinds", "friedman", "null-independent", "--seeds", "2", "--limit", "6", "--record"]
    ran = subprocess.run(
        [sys.executable, "-c", BENCH, BENCHES, *options, tmp_path], capture_output=True, text=True, check=True
    )
    assert "absent: left out, the package nobody_has_this is not installed" in ran.stdout
    (path,) = tmp_path.glob("quality-*.json")
    rows = {(row["case"], row["baseline"]): row for row in json.loads(path.read_text())["rows"]}

    # The ten best of 100 have all five relevant ones, of 40 irrelevant ones none.
    selecting = rows["friedman", "ten"]
    assert (selecting["auc"], selecting["fdp"], selecting["power"], selecting["seeds"]) == (1, 0.5, 1, 2)
    assert selecting["cpu"] > 0
    nothing = rows["null-independent", "ten"]
    assert nothing["fdp"] == 1
    assert not {"auc", "power"} & set(nothing)

    assert set(rows["friedman", "ranks"]) == {"case", "size", "baseline", "auc", "auc_error", "cpu", "seeds"}
    assert ("null-independent", "ranks") not in rows
    assert "max_depth" in rows["friedman", "fails"]["note"]
    assert rows["friedman", "sleeps"]["note"] == "seed 0: takes more than 6 s"
