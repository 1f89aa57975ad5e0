"""Relief with row weights: against the reference, and what weights are for."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrank as fr
from agreement import bits
from ferrank.cli.main import main
from reference import distance
from reference.distance import features_of
from reference.relief import (
    by_radius,
    myopic,
    per_target,
    relieff,
    relieff_errors,
    rrelieff,
    rrelieff_errors,
    semi_supervised,
)
from relief_checks import ALL, CLASSES, MANY, RULES, TARGETS, assert_close, several
from tables import tables

many_cases = settings(max_examples=100, derandomize=True, deadline=None)


def importances(table: pa.Table, targets: list[str], **settings) -> dict[str, np.ndarray]:
    task = settings.pop("task", None)
    relief = fr.ReliefRanker(task, n_jobs=1, **settings)
    ranking = fr.rank(table, targets, sample_weight="weight", ranker=relief)
    return {name: score.importance for name, score in ranking.scores.items()}


def kept(
    table: pa.Table, targets: list[str], scaling: str = "range", missing: str = "expected"
) -> tuple[pa.Table, list[distance.Feature], list[float]]:
    """The rows of a weight above 0, their features and their weights."""
    table = table.filter(pa.array(table["weight"].to_numpy() > 0))
    weights = table["weight"].to_pylist()
    names = [name for name in table.column_names if name not in (*targets, "weight")]
    features = [
        replace(feature, informative=missing == "informative") for feature in features_of(table, names)
    ]
    if scaling == "rank":
        features = [distance.mid_ranks(feature, weights) for feature in features]
    return table, features, weights


@pytest.mark.slow
@many_cases
@given(
    tables(CLASSES, features=ALL, missing=True, weights=True),
    st.sampled_from(["range", "rank"]),
    st.sampled_from(["expected", "informative"]),
)
def test_classes_agree_with_the_reference(drawn, scaling, missing):
    table, [target] = drawn
    rows, features, weights = kept(table, [target], scaling, missing)
    classes = rows[target].to_pylist()
    options = {"scores": ("relief", "myopic"), "scaling": scaling, "missing": missing, **MANY}
    expected = several(lambda **scheme: relieff(features, classes, row_weights=weights, **scheme))
    expected["myopic"] = myopic(features, classes, weights)
    assert_close(importances(table, [target], **options), expected)


@pytest.mark.slow
@many_cases
@given(
    tables(TARGETS, features=ALL, missing=True, missing_targets=True, weights=True),
    st.sampled_from(["range", "rank"]),
    st.sampled_from([(0.0, 1.0), (0.25, 0.75), None]),
)
def test_targets_agree_with_the_reference(drawn, scaling, influence):
    """With ``influence``, rows without any target take part."""
    table, targets = drawn
    if influence is None:
        table = table.filter(pa.array(labelled(table, targets)))
    rows, features, weights = kept(table, targets, scaling)
    if not labelled(rows, targets).any():
        return
    nominal = [name for name in targets if pa.types.is_boolean(rows[name].type)]
    columns = features_of(rows, targets, nominal=nominal)
    if scaling == "rank":
        columns = [distance.mid_ranks(column, weights) for column in columns]
    shares = [2.0, 1.0, 0.5][: len(targets)]
    apart = distance.mean_distance(columns, shares, weights)
    options = {"task": "multi-target", "target_weights": shares, "scaling": scaling, **MANY}
    if influence is None:
        expected = several(lambda **scheme: rrelieff(features, apart, row_weights=weights, **scheme))
        assert_close(importances(table, targets, **options), expected)
        expected = several(
            lambda **scheme: per_target(features, columns, weights=shares, row_weights=weights, **scheme)
        )
        assert_close(importances(table, targets, per_target=True, **options), expected)
    else:
        known = labelled(rows, targets)
        expected = several(
            lambda **scheme: semi_supervised(features, apart, known, influence, row_weights=weights, **scheme)
        )
        assert_close(importances(table, targets, influence=influence, **options), expected)


def labelled(table: pa.Table, targets: list[str]) -> np.ndarray:
    return np.any([table[name].is_valid().to_numpy() for name in targets], axis=0)


@pytest.mark.slow
@many_cases
@given(tables(CLASSES, features=ALL, missing=True, weights=True), st.sampled_from(RULES))
def test_rules_for_classes_agree_with_the_reference(drawn, rule):
    table, [target] = drawn
    rows, features, weights = kept(table, [target])
    expected = by_radius(features, rule, classes=rows[target].to_pylist(), row_weights=unequal(weights))
    assert_close(importances(table, [target], neighborhood=rule), {"relief": expected})


@pytest.mark.slow
@many_cases
@given(
    tables(TARGETS, features=ALL, missing=True, missing_targets=True, weights=True),
    st.sampled_from(RULES),
    st.sampled_from([(0.25, 0.75), None]),
)
def test_rules_for_targets_agree_with_the_reference(drawn, rule, influence):
    table, targets = drawn
    if influence is None:
        table = table.filter(pa.array(labelled(table, targets)))
    rows, features, weights = kept(table, targets)
    known = labelled(rows, targets)
    if not known.any():
        return
    nominal = [name for name in targets if pa.types.is_boolean(rows[name].type)]
    expected = by_radius(
        features,
        rule,
        target_distance=distance.mean_distance(features_of(rows, targets, nominal=nominal), None, weights),
        labelled=known,
        influence=influence or (0.0, 1.0),
        row_weights=unequal(weights),
    )
    options = {"task": "multi-target", "neighborhood": rule, "influence": influence}
    assert_close(importances(table, targets, **options), {"relief": expected})


def unequal(weights: list[float]) -> list[float] | None:
    """The weights, or None where all are equal: mean distances are then exact, not rounded."""
    return weights if len(set(weights)) > 1 else None


@pytest.mark.parametrize("rule", ["nearest", *RULES])
def test_label_sets_and_groups_agree_with_the_reference(rule):
    rng = np.random.default_rng(3)
    labels = {f"l{i}": rng.random(50) < share for i, share in enumerate([0.2, 0.5, 0.7])}
    weights, groups = rng.exponential(size=50), [f"g{g}" for g in rng.integers(0, 20, 50)]
    table = pa.table({"x": rng.normal(size=50), "z": rng.integers(0, 3, 50).astype(str)} | labels)
    features, sets = features_of(table, ["x", "z"]), distance.label_sets(features_of(table, list(labels)))
    apart, options = distance.f1(sets), {"groups": groups, "row_weights": weights.tolist()}
    expected = (
        rrelieff(features, apart, k=4, sigma=3.0, **options)
        if rule == "nearest"
        else by_radius(features, rule, target_distance=apart, **options)
    )
    chosen = {"n_neighbors": 4, "sigma": 3.0} if rule == "nearest" else {"neighborhood": rule}
    relief = fr.ReliefRanker("multi-label", target_distance="f1", **chosen)
    found = fr.rank(table, list(labels), sample_weight=weights, groups=np.array(groups), ranker=relief)
    np.testing.assert_allclose(found.importances(), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("k", [1, 4, 50])
@pytest.mark.parametrize("sigma", [None, 2.0])
def test_standard_errors_agree_with_the_reference(k, sigma):
    """With so few rows each is a group of its own. The reference knows nothing of what no row shows."""
    rng = np.random.default_rng(k)
    weights = rng.exponential(size=28)
    table = pa.table(
        {
            "x": rng.normal(size=28),
            "gaps": pa.array(rng.random(28), mask=rng.random(28) < 0.2),
            "word": rng.choice(["a", "b", "c"], 28),
            "y": rng.normal(size=28),
            "class": rng.choice(["u", "v", "w"], 28),
        }
    )
    features = features_of(table, ["x", "gaps", "word"])
    options = {"k": k, "sigma": sigma, "row_weights": weights.tolist()}
    apart = distance.mean_distance(features_of(table, ["y"]))
    for target, expected in [
        ("class", relieff_errors(features, table["class"].to_pylist(), **options)),
        ("y", rrelieff_errors(features, apart, **options)),
    ]:
        rows = table.drop_columns(["y" if target == "class" else "class"])
        relief = fr.ReliefRanker(n_neighbors=k, sigma=sigma)
        found = fr.rank(rows, target, sample_weight=weights, ranker=relief).score().standard_error
        expected = np.where(np.asarray(expected) == 0, 1.5 / 28, expected)
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["nearest", "multisurf"])
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_standard_errors_cover_other_samples_of_rows(rule, task):
    """Rows come with their weights: as many as the value of a feature says, and some at random."""
    rng = np.random.default_rng(0)
    scores = []
    for seed in range(150):
        X = rng.random((250, 6))
        y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=250)
        y = (y > 0.75).astype(str) if task == "classification" else y
        relief = fr.ReliefRanker(task, neighborhood=rule, random_state=seed)
        weights = (0.3 + X[:, 2]) * rng.exponential(size=250)
        scores.append(relief.fit(X, y, sample_weight=weights).result_.score())
    found = np.array([score.importance for score in scores])
    errors = np.array([score.standard_error for score in scores])
    # Quantile of Student's t with 31 degrees of freedom.
    covered = np.abs(found - found.mean(axis=0)) <= 2.04 * errors
    ratio = np.sqrt((errors**2).mean(axis=0)) / found.std(axis=0)
    assert 0.92 <= covered.mean() <= 0.995, covered.mean(axis=0)
    assert (ratio > 0.8).all(), ratio
    assert ratio.mean() < 4 / 3, ratio


def test_weights_undo_a_biased_sample():
    """A half of the population, which no feature tells apart, obeys x0, the other x1."""
    rng = np.random.default_rng(0)
    X, half = rng.random((4_000, 4)), rng.random(4_000) < 0.5
    y = np.where(half, X[:, 0], X[:, 1]) > 0.5
    taken = np.where(half, 0.6, 0.1)
    drawn = rng.random(4_000) < taken
    relief = fr.ReliefRanker(n_neighbors=30)
    biased = relief.fit(X[drawn], y[drawn]).feature_importances_
    assert biased[0] > 4 * biased[1]
    weighted = relief.fit(X[drawn], y[drawn], sample_weight=1 / taken[drawn]).feature_importances_
    assert abs(weighted[0] - weighted[1]) < 0.02
    np.testing.assert_allclose(weighted, relief.fit(X, y).feature_importances_, atol=0.02)


def population(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 5))
    return X, X[:, 0] + X[:, 1] + 0.1 * rng.normal(size=n)


def table_of(n: int) -> pa.Table:
    X, y = population(n, 2)
    columns = {f"x{i}": X[:, i] for i in range(5)}
    columns["x3"] = pa.array(X[:, 3], mask=X[:, 2] < 0.1)
    return pa.table(columns | {"y": y, "w": np.random.default_rng(3).exponential(size=n)})


@pytest.mark.parametrize("given", [{}, {"scaling": "rank"}, {"neighborhood": "surf"}, {"turf_step": 0.5}])
def test_neither_threads_nor_chunks_change_a_bit(given):
    table = table_of(400)
    chunked = pa.Table.from_batches(table.to_batches(max_chunksize=37))
    asked = {"sample_weight": "w", "ranker": "relief", **given}
    expected = bits(fr.rank(table, "y", n_jobs=1, **asked))
    assert bits(fr.rank(chunked, "y", n_jobs=3, memory_limit="1GiB", **asked)) == expected
    assert bits(fr.rank(table.drop_columns(["w"]), "y", **asked | {"sample_weight": None})) != expected


def test_resumed_drawn_and_stopped_runs_take_weights(tmp_path: Path):
    table = table_of(2_000)
    asked = {"sample_weight": "w", "ranker": "relief", "max_samples": 700}
    expected = bits(fr.rank(table, "y", **asked))
    again = [bits(fr.rank(table, "y", resume=tmp_path / "run", **asked)) for _ in range(2)]
    assert again == [expected, expected]
    stopped = fr.rank(table, "y", until="stable", stable_top=2, **asked)
    assert set(stopped.top(2)) == {"x0", "x1"}


def test_the_shell_takes_a_column_of_weights(tmp_path: Path):
    table = table_of(300)
    table.to_pandas().to_csv(tmp_path / "rows.csv", index=False)
    options = ["--target", "y", "--weight", "w", "--ranker", "relief", "--output", str(tmp_path / "out.json")]
    assert main(["rank", str(tmp_path / "rows.csv"), *options]) == 0
    expected = fr.rank(table, "y", sample_weight="w", ranker="relief")
    assert fr.Ranking.load(tmp_path / "out.json").importances().tolist() == expected.importances().tolist()
    assert "x4" in json.loads((tmp_path / "out.json").read_text())["features"]


def test_streams_take_weights():
    table = table_of(600).to_pandas()
    X, y, w = table[[f"x{i}" for i in range(5)]].fillna(0.5), table["y"], table["w"]
    found = []
    for size, times in [(50, 1.0), (600, 1.0), (600, 4.0)]:
        relief = fr.ReliefRanker(block_rows=200, reservoir_rows=200)
        for start in range(0, 600, size):
            rows = slice(start, start + size)
            relief.partial_fit(X[rows], y[rows], sample_weight=times * w[rows])
        found.append(bits(relief.result_))
    assert found[0] == found[1] == found[2]
    unweighted = fr.ReliefRanker(block_rows=200, reservoir_rows=200).partial_fit(X, y).result_
    assert bits(unweighted) != found[0]


def test_blocks_of_a_stream_count_by_their_weight():
    X, y = population(400, 5)
    other = np.random.default_rng(6).permutation(y)
    light, heavy = np.full(400, 0.01), np.full(400, 100.0)
    relief = fr.ReliefRanker(block_rows=400, reservoir_rows=1)
    relief.partial_fit(X, y, sample_weight=heavy).partial_fit(X, other, sample_weight=light)
    alone = fr.ReliefRanker(block_rows=400, reservoir_rows=1).partial_fit(X, y).feature_importances_
    np.testing.assert_allclose(relief.feature_importances_, alone, atol=1e-3)


def test_dask_collections_take_weights():
    frame = pytest.importorskip("dask.dataframe")
    table = table_of(600).to_pandas()
    rows = frame.from_pandas(table, npartitions=4)
    asked = {"sample_weight": "w", "ranker": "relief"}
    assert bits(fr.rank(rows, "y", **asked)) == bits(fr.rank(table, "y", **asked))
    apart = fr.rank(rows, "y", scope="partition", **asked)
    assert set(apart.top(2)) == {"x0", "x1"}
    assert bits(apart) != bits(fr.rank(rows.drop(columns="w"), "y", scope="partition", ranker="relief"))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        (-0.5, "sample_weight: -0.5 in row 3; give finite weights of at least 0"),
        (np.nan, "nan in row 3"),
        (np.inf, "inf in row 3"),
    ],
)
def test_what_is_no_weight_is_named_with_its_row(weight, message):
    X, y = population(20, 0)
    weights = np.ones(20)
    weights[3] = weight
    with pytest.raises(fr.DataError, match=message):
        fr.ReliefRanker().fit(X, y, sample_weight=weights)
    frame = pd.DataFrame(X).rename(columns=str).assign(y=y, w=weights)
    with pytest.raises(fr.DataError, match=r"column 'w': the row weight .* was found in row 3"):
        fr.rank(frame, "y", sample_weight="w", ranker="relief")


def test_drawn_targets_leave_weights_behind():
    X, y = population(30, 0)
    with pytest.raises(fr.SettingError, match="sample_weight: targets that are drawn anew"):
        fr.ReliefRanker(target_draws=20).fit(X, y, sample_weight=np.ones(30))
    with pytest.raises(fr.SettingError, match="sample_weight: tests give each row the same"):
        fr.JointRanker().fit(X, y, sample_weight=np.ones(30))
