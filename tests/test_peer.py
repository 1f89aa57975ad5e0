"""Against scikit-learn: our genie3 agrees with its impurity importances as they do across seeds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import ferrank as fr
from agreement import between, within
from reference.arff import read_arff

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent / "data"
SEEDS = range(5)
N_TREES = 100
# Where the targets stand; features that are no numbers are left out.
DATASETS = {
    "iris": slice(-1, None),
    "wine": slice(0, 1),
    "diabetes": slice(-1, None),
    "abalone": slice(-1, None),
    "enb": slice(-2, None),
    "jura": slice(-3, None),
    "slump": slice(-3, None),
    "edm": slice(-2, None),
    "emotions": slice(-6, None),
}


def numeric_problem(name: str) -> tuple[np.ndarray, pa.Table, list[str]]:
    """Features as a matrix, the table of these features and the targets, the names of the targets."""
    table = read_arff(DATA / f"{name}.arff")
    targets = table.column_names[DATASETS[name]]
    features = [f.name for f in table.schema if pa.types.is_floating(f.type) and f.name not in targets]
    X = np.column_stack([table[f].to_numpy() for f in features])
    return X, table.select([*features, *targets]), targets


def their_importances(
    X: np.ndarray, table: pa.Table, targets: list[str], max_features: int
) -> list[np.ndarray]:
    columns = [table[t].to_pylist() for t in targets]
    settings = {"n_estimators": N_TREES, "min_samples_leaf": 2, "max_features": max_features}
    if isinstance(columns[0][0], str) and len(columns) == 1:
        forest, y = RandomForestClassifier, columns[0]
    else:
        # With several targets scikit-learn adds up variances as they are, so that scale matters.
        forest, y = RandomForestRegressor, np.array(columns, dtype=float).T
        y = (y / y.std(axis=0)).squeeze()
    return [forest(**settings, random_state=seed).fit(X, y).feature_importances_ for seed in SEEDS]


def our_importances(table: pa.Table, targets: list[str], max_features: int) -> list[np.ndarray]:
    def ranked(seed: int) -> np.ndarray:
        ranker = fr.ForestRanker(
            n_estimators=N_TREES, max_features=max_features, max_bins=65_535, random_state=seed
        )
        return fr.rank(table, target=targets, ranker=ranker).importances("genie3")

    return [ranked(seed) for seed in SEEDS]


@pytest.mark.parametrize("name", DATASETS)
def test_agrees_with_scikit_learn(name):
    X, table, targets = numeric_problem(name)
    max_features = int(np.ceil(np.sqrt(X.shape[1])))
    theirs = their_importances(X, table, targets, max_features)
    assert between(our_importances(table, targets, max_features), theirs) >= within(theirs) - 0.02
