"""Relief rankings against the reference, other implementations and what must hold for all tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrank as fr
from reference import distance
from reference.distance import features_of
from reference.relief import myopic, per_target, relieff, rrelieff
from tables import NOMINAL, NUMERIC, tables
from test_reference_relief import CLUS, DATA, OTHERS, OTHERWISE_TIED, read

SETS = {"hamming": None, "accuracy": distance.accuracy, "f1": distance.f1, "subset": distance.subset}
SCHEMES = [(1, None), (4, None), (4, 2.0), (1, 2.0)]


def importances(table: pa.Table, targets: list[str], **settings) -> dict[str, np.ndarray]:
    task = settings.pop("task", None)
    ranking = fr.rank(table, targets, ranker=fr.ReliefRanker(task, n_jobs=1, **settings))
    return {name: score.importance for name, score in ranking.scores.items()}


def several(expected) -> dict[str, np.ndarray]:
    names = ("relief_k1", "relief_k4", "relief_k4_sigma2", "relief_k1_sigma2")
    return {name: expected(k=k, sigma=sigma) for name, (k, sigma) in zip(names, SCHEMES, strict=True)}


def some_known(table: pa.Table, targets: list[str]) -> pa.Array:
    return pa.array(np.any([table[name].is_valid().to_numpy() for name in targets], axis=0))


def assert_close(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert set(found) == set(expected)
    for name in found:
        np.testing.assert_allclose(found[name], expected[name], rtol=0, atol=1e-9, err_msg=name)


many_cases = settings(max_examples=100, derandomize=True, deadline=None)
MANY = {"n_neighbors": (1, 4), "sigma": (None, 2.0)}
ALL = (*NUMERIC, *NOMINAL)


@many_cases
@given(tables(st.sampled_from([["classes"], ["two"], ["several"]]), features=ALL, missing=True))
def test_relieff_agrees_with_the_reference(drawn):
    table, [target] = drawn
    names = [name for name in table.column_names if name != target]
    features, classes = features_of(table, names), table[target].to_pylist()
    found = importances(table, [target], scores=("relief", "myopic"), **MANY)
    expected = several(lambda **scheme: relieff(features, classes, **scheme))
    assert_close(found, expected | {"myopic": myopic(features, classes)})


@many_cases
@given(
    tables(
        st.lists(st.sampled_from(ALL), min_size=2, max_size=3),
        features=ALL,
        missing=True,
        missing_targets=True,
    )
)
def test_rrelieff_agrees_with_the_reference(drawn):
    table, targets = drawn
    table = table.filter(some_known(table, targets))
    features = features_of(table, [name for name in table.column_names if name not in targets])
    columns = features_of(table, targets, nominal=[n for n in targets if pa.types.is_boolean(table[n].type)])
    weights = [2.0, 1.0, 0.5][: len(targets)]
    options = {"task": "multi-target", "target_weights": weights, **MANY}
    apart = distance.mean_distance(columns, weights)
    expected = several(lambda **scheme: rrelieff(features, apart, **scheme))
    assert_close(importances(table, targets, **options), expected)
    expected = several(lambda **scheme: per_target(features, columns, weights=weights, **scheme))
    assert_close(importances(table, targets, per_target=True, **options), expected)


@many_cases
@given(st.data(), st.integers(2, 30), st.integers(1, 5))
def test_label_sets_agree_with_the_reference(data, n_rows, n_labels):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    labels = {f"l{i}": rng.random(n_rows) < rng.choice([0.1, 0.5, 0.9]) for i in range(n_labels)}
    table = pa.table({"x": rng.normal(size=n_rows), "z": rng.integers(0, 3, n_rows).astype(str)} | labels)
    weights = rng.integers(1, 4, n_labels) / 2
    features, sets = features_of(table, ["x", "z"]), distance.label_sets(features_of(table, list(labels)))
    found = importances(table, list(labels), task="multi-label", n_neighbors=3, target_distance=tuple(SETS))
    ones = dict.fromkeys(labels, 1.0)
    expected = {
        f"relief_{name}": rrelieff(features, apart(sets) if apart else distance.hamming(sets, ones), k=3)
        for name, apart in SETS.items()
    }
    assert_close(found, expected)
    found = importances(table, list(labels), task="multi-label", n_neighbors=3, target_weights=weights)
    apart = distance.hamming(sets, dict(zip(labels, weights, strict=True)))
    assert_close(found, {"relief": rrelieff(features, apart, k=3)})


@pytest.mark.parametrize(
    "case", OTHERS, ids=lambda case: f"{case['dataset']}-{case['implementation']}-{case['params']}"
)
def test_agrees_with_corelearn_weka_and_orange(case):
    """But for the oldest Relief, whose one miss is of whichever class: with two classes it is the same."""
    features, target = read(case["dataset"])
    if case["params"]["alg"] == "Relief" and len(set(target.values)) > 2:
        return
    columns = {f.name: [str(v) if f.nominal else v for v in f.values] for f in features}
    task = "regression" if case["params"]["alg"].startswith("RReliefF") else "classification"
    k = case["params"].get("k", 1)
    found = importances(pa.table(columns | {"y": target.values}), ["y"], task=task, n_neighbors=k)
    assert_close(found, {"relief": np.array(case["weights"])})


@pytest.mark.parametrize(
    "case", CLUS["rankings"], ids=lambda case: f"{case['dataset']}-{case['n_neighbors']}"
)
def test_agrees_with_clus_where_distances_do_not_tie(case):
    if (case["dataset"], case["n_neighbors"]) in OTHERWISE_TIED:
        pytest.skip("distances tie")
    about = CLUS["datasets"][case["dataset"]]
    sets = case["target_distance"] == "hamming"
    path, k = DATA / f"{case['dataset']}.arff", case["n_neighbors"]
    task = "multi-label" if sets else None
    ranking = fr.rank(path, about["targets"], task=task, ranker=fr.ReliefRanker(n_neighbors=k))
    assert ranking.features == about["features"]
    np.testing.assert_allclose(ranking.importances(), case["importance"], rtol=0, atol=1e-6)
