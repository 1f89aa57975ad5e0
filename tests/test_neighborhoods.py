"""Rules of neighborhood by distance (SURF, MultiSURF and their relatives) against the reference."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrank as fr
from agreement import bits
from golden_relief import DATA
from reference import distance
from reference.distance import features_of
from reference.relief import by_radius
from relief_checks import ALL, RULES, assert_close, importances
from tables import tables

many_cases = settings(max_examples=100, derandomize=True, deadline=None)
of_rules = st.sampled_from(RULES)


@pytest.mark.slow
@many_cases
@given(tables(st.sampled_from([["classes"], ["two"], ["several"]]), features=ALL, missing=True), of_rules)
def test_classes_agree_with_the_reference(drawn, rule):
    table, [target] = drawn
    features = features_of(table, [name for name in table.column_names if name != target])
    expected = by_radius(features, rule, classes=table[target].to_pylist())
    assert_close(importances(table, [target], neighborhood=rule), {"relief": expected})


@pytest.mark.slow
@many_cases
@given(
    tables(
        st.lists(st.sampled_from(ALL), min_size=1, max_size=3),
        features=ALL,
        missing=True,
        missing_targets=True,
    ),
    of_rules,
    st.sampled_from([(0.0, 1.0), (0.25, 0.75), None]),
)
def test_targets_agree_with_the_reference(drawn, rule, influence):
    table, targets = drawn
    known = np.any([table[name].is_valid().to_numpy() for name in targets], axis=0)
    if influence is None:
        table, known = table.filter(pa.array(known)), known[known]
    features = features_of(table, [name for name in table.column_names if name not in targets])
    columns = features_of(table, targets, nominal=[n for n in targets if pa.types.is_boolean(table[n].type)])
    weights = [2.0, 1.0, 0.5][: len(targets)]
    expected = by_radius(
        features,
        rule,
        target_distance=distance.mean_distance(columns, weights),
        labelled=known,
        influence=influence or (0.0, 1.0),
    )
    options = {"task": "multi-target", "target_weights": weights, "influence": influence}
    assert_close(importances(table, targets, neighborhood=rule, **options), {"relief": expected})


@pytest.mark.parametrize("rule", RULES)
def test_groups_are_no_neighbors(rule):
    rng = np.random.default_rng(7)
    table = pa.table(
        {f"x{i}": rng.normal(size=40) for i in range(4)} | {"y": rng.integers(0, 3, 40).astype(str)}
    )
    groups = [str(g) for g in rng.integers(0, 9, 40)]
    features = features_of(table, [f"x{i}" for i in range(4)])
    found = fr.rank(
        table.append_column("g", pa.array(groups)), "y", groups="g", ranker=fr.ReliefRanker(neighborhood=rule)
    )
    expected = by_radius(features, rule, classes=table["y"].to_pylist(), groups=groups)
    np.testing.assert_allclose(found.importances(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("rule", RULES)
def test_label_sets_agree_with_the_reference(rule):
    rng = np.random.default_rng(3)
    labels = {f"l{i}": rng.random(50) < share for i, share in enumerate([0.2, 0.5, 0.7])}
    table = pa.table({"x": rng.normal(size=50), "z": rng.integers(0, 3, 50).astype(str)} | labels)
    features, sets = features_of(table, ["x", "z"]), distance.label_sets(features_of(table, list(labels)))
    found = importances(
        table, list(labels), task="multi-label", neighborhood=rule, target_distance=("f1", "subset")
    )
    expected = {
        "relief_f1": by_radius(features, rule, target_distance=distance.f1(sets)),
        "relief_subset": by_radius(features, rule, target_distance=distance.subset(sets)),
    }
    assert_close(found, expected)


def mixed(n_rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = {f"x{i}": rng.normal(size=n_rows) for i in range(7)}
    columns |= {f"z{i}": rng.integers(0, 3, n_rows).astype(str).astype(object) for i in range(3)}
    signal = columns["x0"] + (columns["z0"] == "1")
    for name in ("x1", "z1"):
        columns[name] = pa.array(columns[name], mask=rng.random(n_rows) < 0.2)
    return pa.table(columns | {"y": signal, "c": np.where(signal > 0.3, "a", "b")})


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("target", ["y", "c"])
def test_the_same_bits_for_any_threads_chunks_and_memory(rule, target):
    table = mixed(300).drop_columns(["c" if target == "y" else "y"])
    chunked = pa.Table.from_batches(table.to_batches(max_chunksize=37))
    one = fr.rank(table, target, ranker=fr.ReliefRanker(neighborhood=rule, n_jobs=1))
    many = fr.rank(chunked, target, ranker=fr.ReliefRanker(neighborhood=rule, n_jobs=3, memory_limit="1GiB"))
    assert bits(one) == bits(many)
    assert one.top(1)[0] in {"x0", "z0"}


@pytest.mark.parametrize("rule", RULES)
def test_standard_errors_are_near_the_spread_over_samples(rule):
    rankings = [
        fr.rank(mixed(200, seed).drop_columns(["y"]), "c", ranker=fr.ReliefRanker(neighborhood=rule))
        for seed in range(30)
    ]
    spread = np.std([ranking.importances() for ranking in rankings], axis=0, ddof=1)
    errors = np.mean([ranking.scores["relief"].standard_error for ranking in rankings], axis=0)
    ratio = errors / spread
    assert np.isfinite(ratio).all()
    assert 0.8 < np.median(ratio) < 1.6, ratio


def test_settings_that_do_not_fit_together():
    X = np.random.default_rng(0).normal(size=(30, 3))
    for setting in ({"n_neighbors": 5}, {"n_neighbors": (5, 10)}, {"sigma": 2.0}):
        [name] = setting
        with pytest.raises(fr.SettingError, match=f'^{name}: only for neighborhood="nearest"'):
            fr.ReliefRanker(neighborhood="multisurf", **setting).fit(X, X[:, 0])
    with pytest.raises(fr.SettingError, match=r"^neighborhood: 'near' is not 'nearest', 'surf'"):
        fr.ReliefRanker(neighborhood="near").fit(X, X[:, 0])


@pytest.mark.parametrize("rule", RULES)
def test_rows_that_are_all_alike_have_no_neighbors(rule):
    table = {"x": [1.0, 1.0, 1.0, 1.0], "z": ["a", "a", "a", "a"]}
    for y in ([1.0, 2.0, 3.0, 4.0], ["a", "a", "b", "b"]):
        ranking = fr.rank({**table, "y": y}, "y", ranker=fr.ReliefRanker(neighborhood=rule))
        assert ranking.importances().tolist() == [0.0, 0.0]


REBATE = json.loads((DATA / "golden" / "relief" / "rebate.json").read_text())


def as_rebate(X: np.ndarray, classes: np.ndarray, rule: str, nominal: bool, *, departs: bool) -> np.ndarray:
    """The importances for complete numeric or complete nominal features, by arrays.

    Where scikit-rebate 0.8 `departs`: the mean of SURF and SURF* is that of the whole matrix of distances,
    with the zeros on its diagonal; misses weigh by the squares of their shares, times their number of
    classes; and far rows of MultiSURF* count by 1 minus the difference, and are not subtracted.
    """
    n = len(X)
    d = np.abs(X[:, None] - X[None]) / np.ptp(X, axis=0)
    d = (d > 0).astype(float) if nominal else d
    apart = d.mean(axis=2)
    off_diagonal = ~np.eye(n, dtype=bool)
    names, counts = np.unique(classes, return_counts=True)
    prior = dict(zip(names, counts / n, strict=True))
    total = np.zeros(X.shape[1])
    for i in range(n):
        own = apart[i][off_diagonal[i]]
        if rule in ("surf", "surf_star"):
            middle, half = (apart if departs else apart[off_diagonal]).mean(), 0.0
        else:
            middle, half = own.mean(), own.std() / 2
        sides = [(1, apart[i] < middle - half), (-1, apart[i] > middle + half)]
        for sign, found in sides if rule.endswith("_star") else sides[:1]:
            found = found & off_diagonal[i]
            similar = departs and sign < 0 and rule == "multisurf_star"
            differ, sign = (1 - d[i], 1) if similar else (d[i], sign)
            n_misses = (found & (classes != classes[i])).sum()
            for c in names:
                rows = found & (classes == c)
                if not rows.any():
                    continue
                if c == classes[i]:
                    weight = -1.0
                elif departs and len(names) > 2:
                    weight = (rows.sum() / n_misses) ** 2 * (len(names) - 1)
                else:
                    weight = prior[c] / (1 - prior[classes[i]])
                total += sign * weight * differ[rows].mean(axis=0) / n
    return total


@pytest.mark.parametrize(
    "case",
    [case for case in REBATE["cases"] if case["table"] != "continuous"],
    ids=lambda case: f"{case['table']}-{case['rule']}",
)
def test_agrees_with_scikit_rebate_but_for_what_its_code_does_otherwise(case):
    name, rule, nominal = case["table"], case["rule"], case["table"] == "nominal"
    X, classes = np.array(REBATE["nominal" if nominal else "numeric"]), np.array(REBATE["targets"][name])
    expected = as_rebate(X, classes, rule, nominal, departs=True)
    np.testing.assert_allclose(case["importances"], expected, rtol=0, atol=1e-6)
    columns = {f"x{i}": [str(v) for v in x] if nominal else x for i, x in enumerate(X.T)}
    found = importances(pa.table(columns | {"y": classes}), ["y"], task="classification", neighborhood=rule)
    assert_close(found, {"relief": as_rebate(X, classes, rule, nominal, departs=False)})
    if len(set(classes)) == 2 and rule == "multisurf":
        np.testing.assert_allclose(found["relief"], case["importances"], rtol=0, atol=1e-6)
