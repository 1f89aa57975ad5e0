"""Which features say how near two rows are: against the reference, and what must hold for all weights."""

from __future__ import annotations

import json
import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import ferrank as fr
from agreement import bits
from ferrank.cli.main import main
from reference import distance
from reference.distance import features_of
from reference.relief import (
    by_radius,
    per_target,
    relieff,
    relieff_errors,
    rrelieff,
    semi_supervised,
)
from relief_checks import ALL, CLASSES, MANY, RULES, TARGETS, assert_close, importances, several
from tables import tables

WEIGHTS = st.lists(st.sampled_from([0.0, 1.0, 0.25, 3.7, 0.6]), min_size=5, max_size=5).filter(lambda w: w[0])
"""Of up to five features; the first always counts."""
SCALES = st.fixed_dictionaries(
    {
        "scaling": st.sampled_from(["range", "rank"]),
        "missing": st.sampled_from(["expected", "informative"]),
    }
)
cases = settings(max_examples=60, derandomize=True, deadline=None)


def weighted(
    table: pa.Table,
    targets: list[str],
    weights: list[float],
    scaling: str = "range",
    missing: str = "expected",
) -> tuple[list[distance.Feature], dict[str, float]]:
    """The features with their weights in distances, and the setting that says the same."""
    names = [name for name in table.column_names if name not in targets]
    features = [
        replace(feature, informative=missing == "informative", weight=weight)
        for feature, weight in zip(features_of(table, names), weights, strict=False)
    ]
    features = [distance.mid_ranks(feature) for feature in features] if scaling == "rank" else features
    return features, {feature.name: feature.weight for feature in features if feature.weight}


def known(table: pa.Table, targets: list[str]) -> np.ndarray:
    return np.any([table[name].is_valid().to_numpy() for name in targets], axis=0)


@pytest.mark.slow
@cases
@given(tables(CLASSES, features=ALL, missing=True), WEIGHTS, SCALES)
def test_classes_agree_with_the_reference(drawn, weights, scales):
    table, [target] = drawn
    features, given_weights = weighted(table, [target], weights, **scales)
    classes = table[target].to_pylist()
    found = importances(table, [target], distance_features=given_weights, **scales, **MANY)
    assert_close(found, several(lambda **scheme: relieff(features, classes, **scheme)))


@pytest.mark.slow
@cases
@given(
    tables(TARGETS, features=ALL, missing=True, missing_targets=True),
    WEIGHTS,
    SCALES,
    st.sampled_from([(0.0, 1.0), (0.25, 0.75), None]),
)
def test_targets_agree_with_the_reference(drawn, weights, scales, influence):
    """With ``influence``, rows without any target take part, and the same distance is that of the targets."""
    table, targets = drawn
    if influence is None:
        table = table.filter(pa.array(known(table, targets)))
    features, given_weights = weighted(table, targets, weights, **scales)
    nominal = [name for name in targets if pa.types.is_boolean(table[name].type)]
    columns = features_of(table, targets, nominal=nominal)
    if scales["scaling"] == "rank":
        columns = [distance.mid_ranks(column) for column in columns]
    apart = distance.mean_distance(columns)
    options = {"task": "multi-target", "distance_features": given_weights, **scales, **MANY}
    if influence is None:
        expected = several(lambda **scheme: rrelieff(features, apart, **scheme))
        assert_close(importances(table, targets, **options), expected)
        expected = several(lambda **scheme: per_target(features, columns, **scheme))
        assert_close(importances(table, targets, per_target=True, **options), expected)
    else:
        labelled = known(table, targets)
        expected = several(lambda **scheme: semi_supervised(features, apart, labelled, influence, **scheme))
        assert_close(importances(table, targets, influence=influence, **options), expected)


@pytest.mark.slow
@cases
@given(tables(CLASSES, features=ALL, missing=True), WEIGHTS, st.sampled_from(RULES), SCALES)
def test_rules_for_classes_agree_with_the_reference(drawn, weights, rule, scales):
    table, [target] = drawn
    features, given_weights = weighted(table, [target], weights, **scales)
    found = importances(table, [target], neighborhood=rule, distance_features=given_weights, **scales)
    assert_close(found, {"relief": by_radius(features, rule, classes=table[target].to_pylist())})


@pytest.mark.slow
@cases
@given(
    tables(TARGETS, features=ALL, missing=True, missing_targets=True),
    WEIGHTS,
    st.sampled_from(RULES),
    st.sampled_from([(0.25, 0.75), None]),
)
def test_rules_for_targets_agree_with_the_reference(drawn, weights, rule, influence):
    table, targets = drawn
    if influence is None:
        table = table.filter(pa.array(known(table, targets)))
    features, given_weights = weighted(table, targets, weights)
    nominal = [name for name in targets if pa.types.is_boolean(table[name].type)]
    expected = by_radius(
        features,
        rule,
        target_distance=distance.mean_distance(features_of(table, targets, nominal=nominal)),
        labelled=known(table, targets),
        influence=influence or (0.0, 1.0),
    )
    options = {"task": "multi-target", "neighborhood": rule, "influence": influence}
    found = importances(table, targets, distance_features=given_weights, **options)
    assert_close(found, {"relief": expected})


@pytest.mark.parametrize("rule", ["nearest", *RULES])
def test_label_sets_row_weights_and_groups_agree_with_the_reference(rule):
    rng = np.random.default_rng(3)
    labels = {f"l{i}": rng.random(50) < share for i, share in enumerate([0.2, 0.5, 0.7])}
    row_weights, groups = rng.exponential(size=50), [f"g{g}" for g in rng.integers(0, 20, 50)]
    columns = {f"x{i}": rng.normal(size=50) for i in range(4)} | {"z": rng.integers(0, 3, 50).astype(str)}
    table = pa.table(columns | labels)
    features, given_weights = weighted(table, list(labels), [1.0, 0.0, 0.3, 0.0, 0.7])
    apart = distance.f1(distance.label_sets(features_of(table, list(labels))))
    options = {"groups": groups, "row_weights": row_weights.tolist()}
    if rule == "nearest":
        expected = rrelieff(features, apart, k=4, sigma=3.0, **options)
        chosen = {"n_neighbors": 4, "sigma": 3.0}
    else:
        expected = by_radius(features, rule, target_distance=apart, **options)
        chosen = {"neighborhood": rule}
    relief = fr.ReliefRanker("multi-label", target_distance="f1", distance_features=given_weights, **chosen)
    found = fr.rank(table, list(labels), sample_weight=row_weights, groups=np.array(groups), ranker=relief)
    np.testing.assert_allclose(found.importances(), expected, rtol=0, atol=1e-9)


def test_standard_errors_agree_with_the_reference():
    """With so few rows each is a group of its own."""
    rng = np.random.default_rng(1)
    table = pa.table({f"x{i}": rng.normal(size=28) for i in range(4)} | {"y": rng.choice(["u", "v"], 28)})
    features, given_weights = weighted(table, ["y"], [1.0, 0.5, 0.0, 0.0])
    found = fr.rank(table, "y", ranker="relief", n_neighbors=4, distance_features=given_weights)
    expected = relieff_errors(features, table["y"].to_pylist(), k=4)
    np.testing.assert_allclose(found.standard_error, expected, rtol=0, atol=1e-9)


def mixed(n: int = 150, seed: int = 0) -> pd.DataFrame:
    """Numbers and words, some missing, and targets of both kinds."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(4)})
    frame["gaps"] = np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n))
    frame["word"] = rng.choice(["a", "b", "c"], n)
    frame["gappy"] = np.where(rng.random(n) < 0.2, None, rng.choice(["u", "v"], n))
    frame["y"] = np.where(frame["x0"] * frame["x1"] > 0, "yes", "no")
    return frame


def ranked(frame: Any, **given_settings: Any) -> fr.Ranking:
    return fr.rank(frame, "y", ranker="relief", n_jobs=1, **given_settings)


FEATURES = ["x0", "x1", "x2", "x3", "gaps", "word", "gappy"]


@pytest.mark.parametrize("missing", ["expected", "informative"])
@pytest.mark.parametrize("rule", ["nearest", *RULES])
def test_equal_weights_have_the_bits_of_none(rule, missing):
    frame, own = mixed(), {"neighborhood": rule, "missing": missing}
    expected = bits(ranked(frame, **own))
    for weight in (1, 3.7, 1e-300, 1e300):
        assert bits(ranked(frame, distance_features=dict.fromkeys(FEATURES, weight), **own)) == expected
    for forms in (FEATURES, range(7), [True] * 7, np.ones(7, dtype=bool), ["x0", *range(1, 7)]):
        assert bits(ranked(frame, distance_features=forms, **own)) == expected
    assert bits(ranked(frame, distance_features=FEATURES[:6], **own)) != expected


@pytest.mark.parametrize("target", ["y", "x3"])
@pytest.mark.parametrize("missing", ["expected", "informative"])
@pytest.mark.parametrize("rule", ["nearest", *RULES])
def test_some_features_find_the_neighbors_of_a_table_without_the_others(rule, missing, target):
    frame, some = mixed(), ["x1", "gaps", "gappy"]
    own = {"ranker": "relief", "neighborhood": rule, "missing": missing, "standard_errors": False}
    alone = fr.rank(frame[[*some, target]], target, **own)
    for forms in (some, dict.fromkeys(some, 0.3) | {"x0": 0}):
        beside = fr.rank(frame, target, distance_features=forms, **own)
        for name in some:
            ours, theirs = (one.importances()[one.features.index(name)] for one in (beside, alone))
            assert ours == pytest.approx(theirs, rel=0, abs=1e-12)


def test_all_forms_say_the_same():
    frame = mixed()
    expected = bits(ranked(frame, distance_features=["x0", "word"]))
    mask = [name in ("x0", "word") for name in FEATURES]
    forms = (["word", "x0"], (0, 5), np.array([0, 5]), mask, np.array(mask), pd.Index(["x0", "word"]))
    by_name = (
        pd.Series({"word": 2, "x0": 2}),
        pd.Series({name: name in ("x0", "word") for name in FEATURES[::-1]}),
        pd.Series(["x0", "word"]),
        {"x0": 2, "word": np.float32(2.0)},
        {0: 1, "word": np.True_, "gaps": 0},
    )
    for form in (*forms, *by_name):
        assert bits(ranked(frame, distance_features=form)) == expected
    X, y = frame[["x0", "x1", "x2"]], frame["y"]
    by_position = fr.ReliefRanker(distance_features=[0, 2]).fit(X.to_numpy(), y)
    by_name = fr.ReliefRanker(distance_features=["x0", "x2"]).fit(X, y)
    assert bits(by_position.result_) == bits(by_name.result_)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["x0", "x9"], "there is no feature 'x9'; the nearest of 7 are 'x0', 'x1', 'x2'"),
        ({"wrod": 1}, "there is no feature 'wrod'; the nearest of 7 are 'word'"),
        ([7], "position 7 is not in 0 … 6"),
        ([-1], "position -1 is not in 0 … 6"),
        ([True, False], "a mask of 2 for 7 features; give a bool for each"),
        ([False] * 7, "no feature has a weight above 0"),
        ([], "no feature has a weight above 0"),
        ({"x0": 0, "x1": 0.0}, "no feature has a weight above 0"),
        ({"x0": -1}, "weight -1 of 'x0' is not a finite number of at least 0"),
        ({"x0": np.nan}, "weight nan of 'x0' is not a finite number"),
        ({"x0": np.inf}, "weight inf of 'x0' is not a finite number"),
        ({"x0": "much"}, "weight 'much' of 'x0' is not a finite number"),
        (["x0", 0], "'x0' is given twice"),
        ({"x0": 10**400}, "weight 1"),
        ("x0", "'x0' is not a list"),
        (b"x0", "b'x0' is not a list"),
        (iter(["x0"]), "<list_iterator"),
        ({"x0", "word"}, "{'"),
        (3, "3 is not a list"),
        ([1.5], "1.5 is neither a name nor a position"),
        (["y"], "there is no feature 'y'"),
    ],
)
def test_errors_say_what_would_do(wrong, message):
    with pytest.raises(fr.SettingError) as error:
        ranked(mixed(40), distance_features=wrong)
    assert str(error.value).startswith(f"distance_features: {message}")


def test_where_the_rows_are_makes_no_difference(tmp_path: Path):
    """In memory, without zeros, read again for each pass; in parts; continued; on any number of threads."""
    rng = np.random.default_rng(4)
    X = np.where(rng.random((400, 60)) < 0.03, rng.normal(size=(400, 60)), 0)
    y = (X[:, :20].sum(axis=1) + 0.1 * rng.normal(size=400) > 0).astype(int)
    some = {i: [0.2, 1.0, 0.7][i % 3] for i in range(0, 60, 2)}
    for rule in ("nearest", "multisurf_star"):
        relief = fr.ReliefRanker("classification", neighborhood=rule, distance_features=some)
        expected = bits(relief.fit(X, y).result_)
        assert expected != bits(clone(relief).set_params(distance_features=None).fit(X, y).result_)
        assert bits(relief.fit(scipy.sparse.csr_array(X), y).result_) == expected
        assert bits(clone(relief).set_params(n_jobs=3).fit(X, y).result_) == expected
    frame = mixed(300)
    weights = {"x0": 1, "gaps": 0.4, "word": 0.3}
    relief = fr.ReliefRanker(distance_features=weights)
    expected = bits(fr.rank(frame, "y", ranker=relief))
    profile = fr.accumulate(frame, "y", ranker=relief, keys=range(1)).n_keys
    first = fr.accumulate(frame, "y", ranker=relief, keys=range(profile // 2))
    second = fr.accumulate(frame, "y", ranker=relief, keys=range(profile // 2, profile))
    assert bits(first.merge(second).ranking()) == expected
    file = tmp_path / "run.ferrank"
    assert bits(fr.rank(frame, "y", ranker=relief, resume=file)) == expected
    assert bits(fr.rank(frame, "y", ranker=relief, resume=file)) == expected
    with pytest.raises(fr.FerrankError, match="distance_features"):
        fr.rank(frame, "y", ranker=clone(relief).set_params(distance_features=["x0"]), resume=file)


def test_streams_stops_draws_and_samples_use_the_distance():
    frame, some = mixed(400), {"x0": 1, "x1": 0.5}
    X, y = frame.drop(columns="y"), frame["y"]
    stream = fr.ReliefRanker(distance_features=some, block_rows=200, reservoir_rows=200)
    stream.partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    other = clone(stream).set_params(distance_features=None).partial_fit(X, y)
    assert bits(stream.result_) != bits(other.result_)
    first = clone(stream).partial_fit(X[:200], y[:200])
    assert bits(first.result_) == bits(clone(stream).fit(X[:200], y[:200]).result_)
    with pytest.raises(fr.SettingError, match="distance_features: there is no feature 'q'"):
        clone(stream).set_params(distance_features=["q"]).partial_fit(X[:10], y[:10])
    for own in ({"until": "stable"}, {"target_draws": 20}, {"max_samples": 0.5}, {"n_iterations": (40, 80)}):
        found = ranked(frame, distance_features=some, **own)
        assert found.importances().tolist() != ranked(frame, **own).importances().tolist()


def test_turf_takes_features_that_leave_out_of_the_distance():
    frame = mixed(200)
    weights = {"x0": 1.0, "x1": 0.5, "x2": 0.25, "gaps": 2.0, "word": 0.3}
    own = {"turf_step": 2, "turf_features": 3}
    found = ranked(frame, distance_features=weights, **own)
    left, importance = FEATURES, None
    while True:
        kept = {name: weight for name, weight in weights.items() if name in left}
        one = ranked(frame[[*left, "y"]], distance_features=kept)
        importance = dict(zip(one.features, one.importances(), strict=True))
        if len(left) == 3:
            break
        best = sorted(left, key=lambda name: (-importance[name], left.index(name)))[: max(3, len(left) - 2)]
        left = [name for name in left if name in best]
    assert sorted(found.top(3)) == sorted(left)
    assert {name: found.importances()[FEATURES.index(name)] for name in left} == importance
    # By position, and in a run that was interrupted: the same.
    by_position = {FEATURES.index(name): weight for name, weight in weights.items()}
    assert bits(ranked(frame, distance_features=by_position, **own)) == bits(found)


@pytest.mark.parametrize("lazy", [False, True])
def test_turf_ends_before_the_last_feature_of_the_distance_leaves(lazy):
    if lazy:
        dask = pytest.importorskip("dask.dataframe")
    frame = mixed(240)
    rows = dask.from_pandas(frame, npartitions=3) if lazy else frame
    by_worth = ranked(frame, distance_features=["x3", "word"]).top(7)
    worst, best = sorted(["x3", "word"], key=by_worth.index)[::-1]
    # Both would leave at once: there is one iteration.
    n_better = by_worth.index(best)
    alone = dict.fromkeys(FEATURES, 0) | {"x3": 1, "word": 1}
    once = ranked(rows, distance_features=alone, turf_step=7 - n_better, turf_features=1)
    plain = ranked(frame, distance_features=["x3", "word"])
    assert once.importances().tolist() == plain.importances().tolist()
    # One of them leaves after the first iteration, and the other is all that the distance of the second has.
    n_left = by_worth.index(worst)
    twice = ranked(rows, distance_features={"x3": 2, "word": 2}, turf_step=7 - n_left, turf_features=n_left)
    left = [name for name in FEATURES if name in by_worth[:n_left]]
    second = ranked(frame[[*left, "y"]], distance_features=[best])
    assert [twice.importances()[FEATURES.index(name)] for name in left] == second.importances().tolist()


def test_dask_collections_have_the_bits_of_one_machine():
    dask = pytest.importorskip("dask.dataframe")
    frame, some = mixed(240), {"x0": 1, "gaps": 0.4, "word": 0.3}
    rows = dask.from_pandas(frame, npartitions=3)
    whole = ranked(frame, distance_features=some)
    assert bits(ranked(rows, distance_features=some)) == bits(whole)
    apart = ranked(rows, distance_features=some, scope="partition")
    assert bits(apart) not in (bits(whole), bits(ranked(rows, scope="partition")))
    turf = {"turf_step": 0.5, "turf_features": 2}
    assert bits(ranked(rows, distance_features=some, **turf)) == bits(
        ranked(frame, distance_features=some, **turf)
    )
    for places in ([0, 1], {0: 1}, [True] * 7):
        with pytest.raises(
            fr.SettingError, match="distance_features: with turf_step positions .*give the name"
        ):
            ranked(rows, distance_features=places, **turf)
    for turfed in ({}, turf):
        with pytest.raises(fr.SettingError, match="distance_features: there is no feature 'q'"):
            ranked(rows, distance_features=["x0", "q"], **turfed)


def test_settings_travel_with_the_ranker(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    frame, some = mixed(80), {"x0": 1.0, "word": 0.5}
    relief = fr.ReliefRanker(distance_features=some)
    for copied in (clone(relief), pickle.loads(pickle.dumps(relief))):
        assert copied.get_params()["distance_features"] == some
    found = fr.rank(frame, "y", ranker=relief)
    assert found.settings["distance_features"] == [["x0", 1.0], ["word", 0.5]]
    found.save(tmp_path / "ranking.json")
    assert fr.Ranking.load(tmp_path / "ranking.json").settings == found.settings
    # A setting of Relief alone chooses it.
    assert bits(fr.rank(frame, "y", distance_features=some)) == bits(found)
    data = tmp_path / "rows.csv"
    frame.to_csv(data, index=False)
    option = "--distance-features"
    for given_features, expected in (
        (["x0=1,word=0.5"], some),
        (["x0=1", option, "word=0.5"], some),
        (["x0,word"], ["x0", "word"]),
        (["x0", option, '"word"'], ["x0", "word"]),
    ):
        main(["rank", str(data), "--target", "y", "--ranker", "relief", option, *given_features, "--json"])
        shown = json.loads(capsys.readouterr().out)
        own = fr.rank(data, "y", ranker="relief", distance_features=expected)
        assert shown["settings"]["distance_features"] == own.settings["distance_features"]
        assert shown["scores"]["relief"]["importance"] == own.importances().tolist()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["x0=1,word"], "x0=1,word: 'word' has no weight; give each feature one, such as word=1, or none"),
        (["x0=1,x0=2"], "'x0' is given twice"),
        (["x0=1", "x0=2"], "'x0' is given twice"),
        (["x0=1", "word"], "features with weights and without"),
        (["x0=nan"], "weight nan of 'x0' is not a finite number"),
        (["x0=much"], "there is no feature 'x0=much'"),
        ([""], "there is no feature ''"),
    ],
)
def test_the_shell_says_what_would_do(tmp_path, capsys, wrong, message):
    data = tmp_path / "rows.csv"
    mixed(40).to_csv(data, index=False)
    options = [word for one in wrong for word in ("--distance-features", one)]
    with pytest.raises(SystemExit):
        sys.exit(main(["rank", str(data), "--target", "y", "--ranker", "relief", *options]))
    assert message in capsys.readouterr().err


def test_names_in_the_shell_have_commas_and_signs(tmp_path, capsys):
    data = tmp_path / "rows.csv"
    mixed(60).rename(columns={"x0": "x, old", "x1": "a=b"}).to_csv(data, index=False)
    for given_features, expected in (
        ('"x, old",a=b', ["x, old", "a=b"]),
        ('"x, old=2",a=b=1', [["x, old", 2.0], ["a=b", 1.0]]),
    ):
        main(["rank", str(data), "--target", "y", "--distance-features", given_features, "--json"])
        assert json.loads(capsys.readouterr().out)["settings"]["distance_features"] == expected


def test_the_table_says_what_rows_are_near_by():
    frame = mixed(60)
    for given_features, said in (
        (["x0"], "near by x0 alone"),
        ([0, "word"], "near by feature 0 and word alone"),
        ([name in ("x0", "word") for name in FEATURES], "near by feature 0 and feature 5 alone"),
        ({"x0": 2, "x1": 0, "word": 0.5}, "near by x0 (2) and word (0.5) alone"),
        ({"x0": 2, "word": 2}, "near by x0 and word alone"),
        (FEATURES, "near by x0, x1, x2, x3, gaps and 2 more alone"),
    ):
        assert said in str(ranked(frame, distance_features=given_features))
    assert "near by" not in str(ranked(frame))
