"""Whole ensembles: the engine's mean importances against those of trees grown by brute force.

The two draw other bags and other permutations, so they agree within their standard errors.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import ferrank as fr
from reference import scores
from reference.hierarchy import hierarchical_problem, of_paths
from reference.problem import Problem, problem_of
from reference.randomised import ExtraTreesGrower, RandomForestGrower
from reference.tree import Grower

pytestmark = pytest.mark.slow

SCORES = ("genie3", "symbolic", "coverage", "permutation", "mdi_oob")
N_ROWS, N_TREES, THEIR_TREES = 30, 4000, 150
MAX_FEATURES = 2


def table(*targets: str) -> pa.Table:
    rng = np.random.default_rng(5)
    x, z, noise = rng.normal(size=N_ROWS), rng.integers(0, 4, N_ROWS), rng.normal(size=N_ROWS)
    missing = rng.random(N_ROWS) < 0.2
    columns = {
        "x": pa.array(x, mask=missing),
        "z": [f"c{v}" for v in z],
        "noise": noise,
        "flat": np.where(noise > 1.0, 1.0, 0.0),
        "number": x + 0.5 * (z == 2) + 0.3 * rng.normal(size=N_ROWS),
        "class": [f"k{v}" for v in np.digitize(x + 0.4 * rng.normal(size=N_ROWS), [-0.5, 0.5])],
        "label": (z > 1) ^ (rng.random(N_ROWS) < 0.2),
        "other": x > 0.2,
        "sets": [["a/b/c"] if v > 0.5 else ["a/d", "e"] if v > -0.3 else ["e/f"] for v in x + 0.3 * noise],
    }
    return pa.table(columns).select(["x", "z", "noise", "flat", *targets])


def grown(problem: Problem, ensemble: str, missing: str) -> dict[str, np.ndarray]:
    """Importances under each score, trees x features."""
    rng = np.random.default_rng(1)
    n_features = len(problem.features)
    found = {score: [] for score in SCORES}
    for _ in range(THEIR_TREES):
        counts = np.bincount(rng.integers(0, N_ROWS, N_ROWS), minlength=N_ROWS)
        match ensemble:
            case "bagging":
                grower = Grower(problem, 2, None, counts, missing)
            case "random_forest":
                grower = RandomForestGrower(
                    problem, 2, None, counts, missing, rng=rng, max_features=MAX_FEATURES
                )
            case "extra_trees":
                grower = ExtraTreesGrower(
                    problem, 2, None, counts, missing, rng=rng, max_features=MAX_FEATURES
                )
        nodes = grower.tree()
        for score in SCORES[:3]:
            found[score].append(getattr(scores, score)(nodes, n_features))
        found["mdi_oob"].append(scores.mdi_oob(problem, nodes, counts, missing))
        found["permutation"].append(scores.permutation(problem, nodes, np.flatnonzero(counts == 0), rng))
    return {score: np.array(trees) for score, trees in found.items()}


@pytest.mark.parametrize("ensemble", ["bagging", "random_forest", "extra_trees"])
@pytest.mark.parametrize(
    ("targets", "task", "missing"),
    [
        (["number"], None, "informative"),
        (["number"], None, "ignore"),
        (["class"], None, "informative"),
        (["number", "class"], None, "informative"),
        (["number", "class"], None, "ignore"),
        (["label", "other"], "multi-label", "informative"),
        (["sets"], "hierarchical", "informative"),
    ],
)
def test_forest(ensemble, targets, task, missing):
    data = table(*targets)
    if task == "hierarchical":
        problem = hierarchical_problem(data, "sets", of_paths(data["sets"].to_pylist()))
    else:
        problem = problem_of(data, targets, labels=task == "multi-label")
    theirs = grown(problem, ensemble, missing)
    ranker = fr.ForestRanker(
        ensemble=ensemble,
        bootstrap=True,
        max_features=None if ensemble == "bagging" else MAX_FEATURES,
        n_estimators=N_TREES,
        max_bins=65_535,
        ties="lowest",
        missing=missing,
        scores=SCORES,
        random_state=0,
    )
    ours = fr.rank(data, target=targets, task=task, ranker=ranker)
    for score, trees in theirs.items():
        noise = np.hypot(trees.std(axis=0, ddof=1) / np.sqrt(len(trees)), ours.score(score).monte_carlo_error)
        apart = np.abs(ours.importances(score) - trees.mean(axis=0))
        assert (apart <= 4.5 * noise).all(), (score, apart, noise)
