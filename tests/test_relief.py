"""Relief rankings against the reference, other implementations and what must hold for all tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import ferrank as fr
from agreement import bits
from ferrank.evaluate import synthesize
from golden_relief import CLUS, DATA, OTHERS, OTHERWISE_TIED, read
from reference import distance
from reference.distance import features_of
from reference.relief import (
    myopic,
    per_target,
    relieff,
    relieff_errors,
    rrelieff,
    rrelieff_errors,
)
from relief_checks import MANY, assert_close, importances, several
from tables import NOMINAL, NUMERIC, tables

SETS = {"hamming": None, "accuracy": distance.accuracy, "f1": distance.f1, "subset": distance.subset}


SCALES = st.fixed_dictionaries(
    {
        "scaling": st.sampled_from(["range", "rank"]),
        "missing": st.sampled_from(["expected", "informative"]),
    }
)


def scaled(features: list[distance.Feature], scaling: str, missing: str) -> list[distance.Feature]:
    informative = [replace(feature, informative=missing == "informative") for feature in features]
    return [distance.mid_ranks(feature) for feature in informative] if scaling == "rank" else informative


def some_known(table: pa.Table, targets: list[str]) -> pa.Array:
    return pa.array(np.any([table[name].is_valid().to_numpy() for name in targets], axis=0))


many_cases = settings(max_examples=100, derandomize=True, deadline=None)
ALL = (*NUMERIC, *NOMINAL)


@pytest.mark.slow
@many_cases
@given(
    tables(st.sampled_from([["classes"], ["two"], ["several"]]), features=ALL, missing=True),
    SCALES,
)
def test_relieff_agrees_with_the_reference(drawn, scales):
    table, [target] = drawn
    names = [name for name in table.column_names if name != target]
    features, classes = scaled(features_of(table, names), **scales), table[target].to_pylist()
    found = importances(table, [target], scores=("relief", "myopic"), **scales, **MANY)
    expected = several(lambda **scheme: relieff(features, classes, **scheme))
    assert_close(found, expected | {"myopic": myopic(features, classes)})


@pytest.mark.slow
@many_cases
@given(
    tables(
        st.lists(st.sampled_from(ALL), min_size=2, max_size=3),
        features=ALL,
        missing=True,
        missing_targets=True,
    ),
    SCALES,
)
def test_rrelieff_agrees_with_the_reference(drawn, scales):
    table, targets = drawn
    table = table.filter(some_known(table, targets))
    features = features_of(table, [name for name in table.column_names if name not in targets])
    columns = features_of(table, targets, nominal=[n for n in targets if pa.types.is_boolean(table[n].type)])
    features, columns = scaled(features, **scales), scaled(columns, scales["scaling"], "expected")
    weights = [2.0, 1.0, 0.5][: len(targets)]
    options = {"task": "multi-target", "target_weights": weights, **scales, **MANY}
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


def test_ranks_find_what_outliers_hide():
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy((400, 10)) * 10.0 ** rng.integers(-6, 7, 10)
    y = np.sign(X[:, 3]) * np.log1p(np.abs(X[:, 3])) + 0.1 * rng.standard_cauchy(400)
    best = {
        scaling: fr.ReliefRanker(n_neighbors=30, scaling=scaling).fit(X, y).ranking_.argmin()
        for scaling in ("range", "rank")
    }
    assert best["range"] != best["rank"] == 3


def test_ranks_do_not_change_with_a_monotonic_function():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 2, 200).astype(str)
    X[rng.random(X.shape) < 0.1] = np.nan
    relief = fr.ReliefRanker(scaling="rank")
    as_they_are, changed = (relief.fit(x, y).feature_importances_ for x in (X, np.exp(9 * X)))
    np.testing.assert_array_equal(as_they_are, changed)


def test_ranks_measure_differences_by_the_density_between_values():
    rng = np.random.default_rng(0)
    draws = {
        "normal": stats.norm(3, 2),
        "skewed": stats.lognorm(1.5),
        "heavy tails": stats.cauchy(),
        "two": stats.expon(),
    }
    shares = rng.uniform(size=(3000, len(draws)))
    targets = np.column_stack([shares[:, 0], (shares[:, 1] + 0.3 * shares[:, 3]) % 1])  # both uniform
    values = {name: law.ppf(share) for (name, law), share in zip(draws.items(), shares.T, strict=True)}
    drawn = pd.DataFrame(values), np.column_stack([np.exp(5 * targets[:, 0]), stats.norm.ppf(targets[:, 1])])
    known = fr.ReliefRanker(n_neighbors=30).fit(pd.DataFrame(shares, columns=list(values)), targets)
    by_rank, by_range = (fr.ReliefRanker(scaling=s, n_neighbors=30).fit(*drawn) for s in ("rank", "range"))
    error, other = (
        np.abs(relief.feature_importances_ - known.feature_importances_).max()
        for relief in (by_rank, by_range)
    )
    assert error < 0.05 * np.ptp(known.feature_importances_) < other


def test_missing_values_that_tell_are_found():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(400, 12)), rng.integers(0, 2, 400)
    gaps = rng.random(X.shape) < np.where(y == 1, 0.3, 0.1)[:, None] * (np.arange(12) < 3)
    X[gaps] = np.nan
    X[:, 11] = np.where(rng.random(400) < 0.2 + 0.5 * y, np.nan, 1.0)  # known or not, and nothing else
    expected, informative = (
        fr.ReliefRanker("classification", n_neighbors=30, missing=missing).fit(X, y).result_
        for missing in ("expected", "informative")
    )
    assert set(informative.top(4)) == {"x0", "x1", "x2", "x11"}
    assert expected.score().importance[11] == 0


def test_neither_threads_nor_chunks_change_a_bit():
    rng = np.random.default_rng(5)
    n_rows = 70_000
    table = pa.table(
        {f"x{i}": rng.normal(size=n_rows) * 10.0**i for i in range(5)}
        | {"z": rng.integers(0, 4, n_rows).astype(str), "y": rng.integers(0, 3, n_rows).astype(str)}
    )

    def ranked(chunk: int, n_jobs: int) -> list[bytes]:
        relief = fr.ReliefRanker(n_neighbors=(3, 20), sigma=(None, 5.0), n_iterations=150, n_jobs=n_jobs)
        rows = pa.Table.from_batches(table.to_batches(max_chunksize=chunk))
        return bits(fr.rank(rows, "y", ranker=relief))

    whole = ranked(n_rows, 1)
    assert all(ranked(chunk, n_jobs) == whole for chunk, n_jobs in [(1_000, 1), (64_000, 2), (64_000, 4)])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_xor_features_stand_above_irrelevant_ones_as_often_as_in_the_papers_algorithm(seed):
    """Appendix 1 of Slavkov et al. 2020; by the reference, too, few of the sets are told apart wholly."""
    made = synthesize("combined", 400, random_state=seed)
    found = fr.ReliefRanker("classification").fit(made.X, made.y).feature_importances_
    features = [distance.Feature(f"x{i}", False, list(map(float, x))) for i, x in enumerate(made.X.T)]
    np.testing.assert_allclose(found, relieff(features, made.y.tolist(), k=10), rtol=0, atol=1e-9)


def test_monte_carlo_errors_are_those_of_repeated_draws():
    rng = np.random.default_rng(0)
    X = rng.random((3_000, 4))
    y = X[:, 0] + X[:, 1] ** 2 + 0.1 * rng.normal(size=3_000)
    draws = [
        fr.ReliefRanker(n_iterations=300, random_state=seed).fit(X, y).result_.score() for seed in range(60)
    ]
    spread = np.std([draw.importance for draw in draws], axis=0)
    told = np.mean([draw.monte_carlo_error for draw in draws], axis=0)
    np.testing.assert_allclose(told, spread, rtol=0.3)
    score = fr.ReliefRanker().fit(X, y).result_.score()
    assert (score.monte_carlo_error == 0).all()
    assert (score.standard_error > 0).all()


@pytest.mark.parametrize("k", [1, 4, 50])
@pytest.mark.parametrize("sigma", [None, 2.0])
@pytest.mark.parametrize("seed", range(3))
def test_standard_errors_agree_with_the_reference(k, sigma, seed):
    """With so few rows each is a group of its own. The reference knows nothing of what no row shows."""
    rng = np.random.default_rng(seed)
    table = pa.table(
        {
            "x": rng.normal(size=28),
            "gaps": pa.array(rng.random(28), mask=rng.random(28) < 0.2),
            "word": rng.choice(["a", "b", "c"], 28),
            "few": rng.integers(0, 3, 28).astype(float),
            "y": rng.normal(size=28),
            "class": rng.choice(["u", "v", "w"], 28),
        }
    )
    features = features_of(table, ["x", "gaps", "word", "few"])
    relief = fr.ReliefRanker(n_neighbors=k, sigma=sigma)
    found = fr.rank(table.drop_columns(["y"]), "class", ranker=relief).score().standard_error
    expected = relieff_errors(features, table["class"].to_pylist(), k=k, sigma=sigma)
    np.testing.assert_allclose(found, np.where(expected == 0, 1.5 / 28, expected), rtol=1e-7, atol=1e-12)
    found = fr.rank(table.drop_columns(["class"]), "y", ranker=relief).score().standard_error
    apart = distance.mean_distance(features_of(table, ["y"]))
    expected = rrelieff_errors(features, apart, k=k, sigma=sigma)
    np.testing.assert_allclose(found, np.where(expected == 0, 1.5 / 28, expected), rtol=1e-7, atol=1e-12)


def test_a_difference_that_no_neighbors_show_may_be_there_all_the_same():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.random((400, 2)), np.arange(400) < 200, np.ones(400)])
    score = fr.ReliefRanker().fit(X, rng.random(400)).result_.score()
    assert list(score.importance[2:]) == [0, 0]
    # Of what 3 in 400 show, 400 show nothing with a probability of 5 %.
    np.testing.assert_allclose(score.standard_error[2:], 1.5 / 400)


@pytest.mark.parametrize("settings", [{}, {"neighborhood": "multisurf"}, {"n_iterations": 40}], ids=str)
def test_standard_errors_can_be_left_out_and_leave_the_importances_alone(settings):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 4))
    found = [
        fr.ReliefRanker(standard_errors=errors, **settings).fit(X, X[:, 0] + X[:, 1] ** 2).result_
        for errors in (True, False)
    ]
    with_errors, without = (result.score() for result in found)
    # Lists of all near rows are added up group by group.
    rounding = 1e-12 if "neighborhood" in settings else 0.0
    np.testing.assert_allclose(with_errors.importance, without.importance, rtol=rounding)
    np.testing.assert_allclose(with_errors.monte_carlo_error, without.monte_carlo_error, rtol=rounding)
    assert np.isfinite(with_errors.standard_error).all()
    assert np.isnan(without.standard_error).all()
    assert "no standard errors" in found[1].to_text()


def test_stable_rankings_need_standard_errors():
    with pytest.raises(fr.SettingError, match='standard_errors: until="stable" judges Relief by them'):
        fr.ReliefRanker(standard_errors=False, until="stable").fit(np.eye(9), np.arange(9.0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("settings", "n_rows"),
    [
        ({}, 250),
        ({"n_neighbors": 30, "sigma": 10.0}, 250),
        ({"n_iterations": 80}, 250),
        ({"scaling": "rank", "n_neighbors": 3}, 250),
    ],
    ids=str,
)
@pytest.mark.parametrize("task", ["classification", "regression"])
def test_standard_errors_cover_other_samples_of_rows(settings, n_rows, task):
    rng = np.random.default_rng(0)
    scores = []
    for seed in range(150):
        X = rng.random((n_rows, 6))
        y = X[:, 0] + 0.5 * X[:, 1] + 0.3 * rng.normal(size=n_rows)
        y = (y > 0.75).astype(str) if task == "classification" else y
        scores.append(fr.ReliefRanker(task, random_state=seed, **settings).fit(X, y).result_.score())
    found = np.array([score.importance for score in scores])
    errors = np.array([score.standard_error for score in scores])
    # Quantile of Student's t with 31 degrees of freedom.
    covered = np.abs(found - found.mean(axis=0)) <= 2.04 * errors
    ratio = np.sqrt((errors**2).mean(axis=0)) / found.std(axis=0)
    assert 0.92 <= covered.mean() <= 0.995
    assert (ratio > 0.8).all()
    assert ratio.mean() < 4 / 3


def test_one_query_has_no_standard_error():
    ranking = fr.rank({"a": [1.0, 2.0, 4.0], "y": [1.0, 2.0, 3.0]}, "y", ranker="relief", n_iterations=1)
    assert np.isnan(ranking.score().monte_carlo_error).all()
    assert np.isnan(ranking.score().standard_error).all()


def test_scores_are_named_by_what_differs():
    data = {"a": [1.0, 2.0, 4.0], "y": ["u", "v", "v"]}
    names = lambda **settings: list(fr.rank(data, "y", ranker="relief", **settings).scores)  # noqa: E731
    assert names() == names(sigma=3.0) == ["relief"]
    assert names(n_neighbors=(1, 2), sigma=3) == ["relief_k1", "relief_k2"]
    assert names(sigma=(None, 2.5), scores=("myopic", "relief")) == ["myopic", "relief", "relief_sigma2.5"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors: 0; use at least 1"),
        ({"n_neighbors": (2, 2)}, "n_neighbors: 2 is given twice"),
        ({"n_neighbors": "many"}, "n_neighbors: 'many' is not a whole number of at least 0"),
        ({"sigma": (2.0, "wide")}, "sigma: 'wide' is not a number or None"),
        ({"sigma": float("inf")}, "sigma: inf is not a finite number"),
        ({"sigma": 0.0}, "sigma: 0 is not above 0"),
        ({"n_iterations": 0}, "n_iterations: 0; use at least 1"),
        ({"n_iterations": 1.5}, "n_iterations: 1.5 is neither"),
        ({"max_samples": 0}, "max_samples: 0; use at least 1"),
        ({"max_samples": -0.5}, "max_samples: -0.5 is neither"),
        ({"missing": "ignore"}, "missing: 'ignore' is not 'expected' or 'informative'"),
        ({"scaling": "log"}, "scaling: 'log' is not 'range' or 'rank'"),
        ({"scores": ("genie3",)}, "scores: 'genie3' is not 'relief' or 'myopic'"),
        ({"scores": ("myopic",)}, "myopic needs one nominal target"),
        ({"target_distance": "f1"}, "target_distance: only for label sets"),
        ({"target_distance": "f2"}, "target_distance: 'f2' is not 'hamming', 'accuracy', 'f1' or 'subset'"),
        ({"target_weights": (1.0, 2.0)}, "target_weights: 2 weights for 1 targets"),
    ],
)
def test_wrong_settings_are_named(settings, message):
    with pytest.raises(fr.SettingError, match=message):
        fr.rank({"a": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 4.0, 3.0]}, "y", ranker="relief", **settings)


def test_more_queries_than_rows_are_all_rows(caplog):
    data = {"a": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 4.0, 3.0]}
    caplog.set_level("INFO", "ferrank")
    found = fr.rank(data, "y", ranker="relief", n_iterations=9)
    assert "n_iterations: 9 queries were requested, and all 4 rows are queries" in caplog.text
    assert bits(found) == bits(fr.rank(data, "y", ranker="relief"))


def test_extreme_values_and_shapes():
    wide = [-1.7e308, 1.7e308, 2.0, 3.0]
    close = [0.0, 5e-324, 1e-323, 3.0]
    found = fr.rank(
        {"a": wide, "b": close, "y": [1.0, 2.0, 3.0, 4.0]}, "y", ranker="relief", n_neighbors=10**9
    )
    assert np.isfinite(found.importances()).all()
    assert fr.rank({"a": [1.0], "y": [2.0]}, "y", ranker="relief").importances().tolist() == [0.0]
    assert fr.rank({"a": [None, None], "y": ["u", "v"]}, "y", ranker="relief").importances().tolist() == [0.0]


@pytest.mark.parametrize("settings", [{}, {"scaling": "rank"}, {"turf_step": 0.5}, {"target_draws": 20}])
def test_drawn_rows_do_not_depend_on_chunks_and_threads(tmp_path, settings):
    table = synthesize("pair", 600, n_features=20, random_state=1).to_arrow()
    target = table.column_names[-1]
    paths = [tmp_path / "long.arrow", tmp_path / "short.arrow"]
    for path, rows in zip(paths, (600, 7), strict=True):
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            for batch in table.to_batches(max_chunksize=rows):
                writer.write_batch(batch)
    relief = {"ranker": "relief", "max_samples": 250, **settings}
    expected = bits(fr.rank(table, target, n_jobs=1, **relief))
    for path, n_jobs in zip(paths, (1, 2), strict=True):
        assert bits(fr.rank(path, target, n_jobs=n_jobs, **relief)) == expected
    assert bits(fr.rank(table, target, ranker="relief", **settings)) != expected


def test_rows_are_not_drawn_of_what_is_not_known_beforehand():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    with pytest.raises(fr.SettingError, match="max_samples: rows that come block by block"):
        fr.ReliefRanker("classification", max_samples=20).partial_fit(X, y.astype(str)).result_  # noqa: B018
    frame = pytest.importorskip("dask.dataframe").from_dict({"a": range(9), "y": range(9)}, npartitions=2)
    with pytest.raises(fr.SettingError, match="max_samples: not for dask"):
        fr.rank(frame, "y", ranker="relief", max_samples=5)


@pytest.mark.parametrize("target", ["kind", "y"])
def test_several_numbers_of_iterations_from_one_run(target: str) -> None:
    """Each is as if the others were not asked for, but for the rounding of sums that are added otherwise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(700, 5))
    table = pa.table({f"x{i}": X[:, i] for i in range(5)})
    table = table.append_column("y", pa.array(X[:, 0] + X[:, 1]))
    table = table.append_column("kind", pa.array(np.where(X[:, 0] > X[:, 1], "a", "b")))
    table = table.drop_columns(["y" if target == "kind" else "kind"])
    several = [0.013, 100, 0.5, None]
    settings = {"ranker": "relief", "n_neighbors": (3, 7), "random_state": 2}
    together = fr.rank(table, target, n_iterations=several, **settings)
    names = [f"relief_m{m}_k{k}" for m in ("1.3%", "100", "50%", "100%") for k in (3, 7)]
    assert list(together.scores) == names
    for m, said in zip(several, ("1.3%", "100", "50%", "100%"), strict=True):
        alone = fr.rank(table, target, n_iterations=m, **settings)
        for k in (3, 7):
            ours, theirs = together.score(f"relief_m{said}_k{k}"), alone.score(f"relief_k{k}")
            np.testing.assert_allclose(ours.importance, theirs.importance, rtol=0, atol=1e-12)
            # Blocks are others, so that the errors are other estimates of the same.
            if m is None:  # All rows are queries: nothing is left to chance.
                assert (ours.monte_carlo_error == 0).all()
                continue
            ratio = ours.monte_carlo_error / theirs.monte_carlo_error
            assert ((ratio > 0.5) & (ratio < 2)).all(), (m, ratio)


def test_several_numbers_of_iterations_resume_and_merge(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    table = pa.table({"a": rng.normal(size=300), "b": rng.normal(size=300)})
    table = table.append_column("y", pa.array(table["a"].to_numpy() + rng.normal(size=300) > 0))
    relief = fr.ReliefRanker(n_iterations=(7, 0.5), n_neighbors=5)
    whole = fr.rank(table, "y", ranker=relief)
    again = fr.rank(table, "y", ranker=relief, resume=tmp_path / "run")
    assert whole.to_dict()["scores"] == again.to_dict()["scores"]
    with pytest.raises(fr.SettingError, match="n_iterations: 7 is given twice"):
        fr.rank(table, "y", ranker="relief", n_iterations=(7, 7))
    with pytest.raises(fr.SettingError, match="n_iterations: none given"):
        fr.rank(table, "y", ranker="relief", n_iterations=())
    with pytest.raises(fr.SettingError, match='n_iterations: until="stable" chooses'):
        fr.rank(table, "y", ranker="relief", n_iterations=(7, 9), until="stable")
    with pytest.raises(fr.SettingError, match="n_iterations: give one"):
        fr.ReliefRanker(n_iterations=(7, 9)).partial_fit(table.drop_columns("y"), table["y"])
