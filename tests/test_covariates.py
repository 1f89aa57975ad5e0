"""Importances adjusted for covariates: against least squares over the pairs, and what must hold."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

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
from reference.relief import adjusted
from relief_checks import ALL, MANY, RULES, TARGETS, assert_close, importances, several
from tables import tables

cases = settings(max_examples=60, derandomize=True, deadline=None)


def drawn_problem(table, targets, n_covariates, scaling="range", missing="expected"):
    """The ranked features, the covariates, and the distance of the targets."""
    names = [name for name in table.column_names if name not in targets]
    features = [replace(one, informative=missing == "informative") for one in features_of(table, names)]
    nominal = [name for name in targets if pa.types.is_boolean(table[name].type)]
    columns = features_of(table, targets, nominal=nominal)
    if scaling == "rank":
        features, columns = ([distance.mid_ranks(one) for one in some] for some in (features, columns))
    n_covariates = min(n_covariates, len(features) - 1)
    return features[n_covariates:], features[:n_covariates], distance.mean_distance(columns)


@pytest.mark.slow
@cases
@given(
    tables(TARGETS, features=ALL, missing=True),
    st.integers(0, 3),
    st.sampled_from(["range", "rank"]),
    st.sampled_from(["expected", "informative"]),
    st.sampled_from(["nearest", *RULES]),
)
def test_importances_agree_with_least_squares_over_the_pairs(drawn, n_covariates, scaling, missing, rule):
    table, targets = drawn
    features, covariates, apart = drawn_problem(table, targets, n_covariates, scaling, missing)
    options = {
        "task": "multi-target",
        "covariates": [one.name for one in covariates],
        "scaling": scaling,
        "missing": missing,
    }
    if rule == "nearest":
        found = importances(table, targets, **options, **MANY)
        assert_close(found, several(lambda **scheme: adjusted(features, covariates, apart, **scheme)))
    else:
        found = importances(table, targets, neighborhood=rule, **options)
        assert_close(found, {"relief": adjusted(features, covariates, apart, rule=rule)})


def mixed(n: int = 150, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"x{i}": rng.normal(size=n) for i in range(4)})
    frame["batch"] = rng.choice(["a", "b", "c"], n)
    frame["age"] = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    frame["constant"] = 1.0
    frame["y"] = frame["x0"] + (frame["batch"] == "a") + np.where(frame["age"] > 0, 1, 0)
    return frame


def ranked(frame, **own) -> fr.Ranking:
    return fr.rank(frame, "y", ranker="relief", n_jobs=1, **own)


@pytest.mark.parametrize("rule", ["nearest", *RULES])
@pytest.mark.parametrize("classes", [False, True])
def test_classes_weights_and_groups_agree_with_least_squares(rule, classes):
    frame = mixed(60)
    if classes:
        frame["y"] = np.where(frame["y"] > 0.5, "high", "low")
    rng = np.random.default_rng(1)
    weights, groups = rng.exponential(size=60), rng.integers(0, 20, 60)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    features = features_of(table, ["x0", "x1", "x2", "x3", "constant"])
    covariates = features_of(table, ["batch", "age"])
    apart = distance.mean_distance(features_of(table, ["y"]), None, weights.tolist())
    expected = adjusted(
        features, covariates, apart, k=4, rule=rule, groups=groups.tolist(), row_weights=weights.tolist()
    )
    own = {"n_neighbors": 4} if rule == "nearest" else {"neighborhood": rule}
    relief = fr.ReliefRanker(covariates=["batch", "age"], **own)
    found = fr.rank(frame, "y", ranker=relief, sample_weight=weights, groups=groups)
    assert found.features == [one.name for one in features]
    np.testing.assert_allclose(found.importances(), expected, rtol=0, atol=1e-9)


def test_a_covariate_that_says_nothing_changes_nothing():
    frame = mixed()
    plain = ranked(frame.drop(columns="constant"))
    alone = ranked(frame, covariates=["constant"])
    assert bits(alone) == bits(plain)
    once = ranked(frame.assign(copy=frame["age"]), covariates=["age", "copy"])
    assert bits(once) == bits(ranked(frame, covariates=["age"]))


def test_a_feature_that_follows_a_confounder_is_noise_once_adjusted():
    follows, relevant = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        batch = rng.integers(0, 2, 300)
        frame = pd.DataFrame({f"x{i}": rng.normal(size=300) for i in range(6)})
        frame["follows"] = batch + 0.5 * rng.normal(size=300)
        frame["y"] = 2.0 * batch + frame["x0"] + 0.5 * rng.normal(size=300)
        frame["batch"] = batch.astype(str)
        for own, table in (({}, frame.drop(columns="batch")), ({"covariates": ["batch"]}, frame)):
            found = ranked(table, standard_errors=False, **own)
            place = dict(zip(found.features, found.importances(), strict=True))
            noise = [place[f"x{i}"] for i in range(1, 6)]
            follows.append((place["follows"] - np.mean(noise)) / np.std(noise))
            relevant.append(place["x0"] > max(noise))
    assert np.median(follows[::2]) > 3
    assert abs(np.median(follows[1::2])) < 1.5
    assert sum(relevant[1::2]) >= 19


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"covariates": ["agee"]}, "covariates: there is no feature 'agee'; a covariate is a column"),
        ({"covariates": ["y"]}, "covariates: there is no feature 'y'"),
        ({"covariates": [7]}, "covariates: position 7 is not in 0 … 6"),
        ({"covariates": ["age", 5]}, "covariates: 'age' is given twice"),
        ({"covariates": list(range(7))}, "covariates: all 7 features are covariates"),
        ({"covariates": "age"}, "covariates: 'age' is not a list"),
        ({"covariates": iter(["age"])}, "covariates: <list_iterator"),
        ({"covariates": {"age", "batch"}}, "covariates: {'"),
        ({"covariates": pd.Series({"age": 1, "x0": 0})}, "covariates: age"),
        ({"covariates": [1.5]}, "covariates: 1.5 is neither a name nor a position"),
        (
            {"covariates": [True] * 7},
            "covariates: True is neither a name nor a position; list those that are",
        ),
        ({"covariates": ["age"], "distance_features": ["age", "x0"]}, "covariates: 'age' is one of distance"),
        ({"covariates": ["age"], "target_draws": 20}, "covariates: targets that are drawn anew"),
        ({"covariates": ["age"], "unlabelled": "use"}, "covariates: rows without a target"),
    ],
)
def test_errors_say_what_would_do(own, message):
    with pytest.raises(fr.SettingError) as error:
        ranked(mixed(40), **own)
    assert str(error.value).startswith(message)


def test_where_the_rows_are_makes_no_difference(tmp_path):
    frame = mixed(300)
    relief = fr.ReliefRanker(covariates=["batch", "age"])
    expected = bits(fr.rank(frame, "y", ranker=relief))
    assert bits(fr.rank(frame, "y", ranker=clone(relief).set_params(n_jobs=3))) == expected
    assert bits(fr.rank(frame, "y", ranker=pickle.loads(pickle.dumps(relief)))) == expected
    assert bits(fr.rank(frame, "y", covariates=[4, 5])) == expected
    file = tmp_path / "run.ferrank"
    assert bits(fr.rank(frame, "y", ranker=relief, resume=file)) == expected
    with pytest.raises(fr.FerrankError, match="covariates"):
        fr.rank(frame, "y", ranker=clone(relief).set_params(covariates=["age"]), resume=file)
    for own in ({"until": "stable"}, {"turf_step": 1, "turf_features": 2}, {"n_iterations": (40, 80)}):
        assert ranked(frame, covariates=["batch", 5], **own).features == ["x0", "x1", "x2", "x3", "constant"]
    stream = fr.ReliefRanker(covariates=["batch", "age"], block_rows=200, reservoir_rows=200)
    X, y = frame.drop(columns="y"), frame["y"]
    stream.partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    assert bits(clone(stream).partial_fit(X, y).result_) == bits(stream.result_)


def test_dask_collections_have_the_bits_of_one_machine():
    dask = pytest.importorskip("dask.dataframe")
    frame = mixed(240)
    rows = dask.from_pandas(frame, npartitions=3)
    for own in (
        {"covariates": ["batch", "age"]},
        {"covariates": [5], "neighborhood": "multisurf"},
        {"covariates": ["age"], "distance_features": {"x0": 2, "batch": 1}, "n_neighbors": (3, 8)},
        {"covariates": ["batch"], "turf_step": 0.5, "turf_features": 2},
    ):
        whole, lazy = ranked(frame, **own), ranked(rows, **own)
        assert (bits(lazy), lazy.features) == (bits(whole), whole.features)
    apart = ranked(rows, covariates=["batch"], scope="partition")
    assert bits(apart) not in (
        bits(ranked(frame, covariates=["batch"])),
        bits(ranked(rows, scope="partition")),
    )
    for names, message in ((["q"], "there is no feature 'q'"), (list(range(7)), "all 7 features")):
        with pytest.raises(fr.SettingError, match=f"covariates: {message}"):
            ranked(rows, covariates=names)
    with pytest.raises(fr.SettingError, match="covariates: with turf_step positions .*give the names"):
        ranked(rows, covariates=[5], turf_step=0.5)
    X, y = frame[["x0", "x1", "x2", "age"]], frame["y"]
    lazy = dask.from_pandas(X, npartitions=3)
    for one, other in ((lazy, X), (lazy.to_dask_array(lengths=True), X.to_numpy())):
        target = dask.from_pandas(y, npartitions=3)
        relief = fr.ReliefRanker(covariates=[1])
        assert clone(relief).fit(one, target).ranking_.tolist() == relief.fit(other, y).ranking_.tolist()
        assert relief.ranking_[1] == 4


def test_sparse_rows_and_runs_in_parts_have_the_same_bits():
    rng = np.random.default_rng(3)
    X = np.where(rng.random((200, 6)) < 0.8, 0, rng.normal(size=(200, 6)))
    relief = fr.ReliefRanker("regression", covariates=[1, "x4"])
    dense = relief.fit(X, X[:, 0] + X[:, 1]).result_
    assert bits(clone(relief).fit(scipy.sparse.csr_array(X), X[:, 0] + X[:, 1]).result_) == bits(dense)
    frame = mixed(200)
    relief = fr.ReliefRanker(covariates=["batch", "age"])
    n_keys = fr.accumulate(frame, "y", ranker=relief, keys=range(1)).n_keys
    halves = [range(n_keys // 2), range(n_keys // 2, n_keys)]
    first, second = (fr.accumulate(frame, "y", ranker=relief, keys=keys) for keys in halves)
    assert bits(first.merge(second).ranking()) == bits(fr.rank(frame, "y", ranker=relief))


def test_covariates_are_those_of_the_fit():
    frame = mixed()
    X, y = frame[["x0", "x1", "x2", "age"]], frame["y"]
    relief = fr.ReliefRanker(covariates=["age"], n_features_to_select=3).fit(X, y)
    before = relief.get_support().tolist()
    assert before == [True, True, True, False]
    for later in (None, ["x1"], ["x0", "x1"]):
        assert relief.set_params(covariates=later).get_support().tolist() == before
    # Columns that are called by numbers have these as their names.
    numbered = X.set_axis([10, 11, 12, 13], axis=1)
    relief = fr.ReliefRanker(covariates=["13"], n_features_to_select=3).fit(numbered, y)
    assert relief.get_support().tolist() == before


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"covariates": [0, 1, 2, 3]}, "covariates: all 4 features are covariates"),
        ({"covariates": [0, 0], "n_features_to_select": 3}, "covariates: 'x0' is given twice"),
        ({"covariates": ["q"], "n_features_to_select": 4}, "covariates: there is no feature 'q'"),
        ({"covariates": [3]}, "n_features_to_select: 4 is neither .* in 1 … 3, those that are ranked, nor"),
    ],
)
def test_an_estimator_names_the_setting_that_is_wrong(own, message):
    frame = mixed(40)
    with pytest.raises(fr.SettingError, match=message):
        fr.ReliefRanker(**{"n_features_to_select": 4, **own}).fit(frame[["x0", "x1", "x2", "x3"]], frame["y"])


def test_there_are_no_p_values_and_it_is_said(tmp_path, capsys):
    frame = mixed(60)
    found = ranked(frame, covariates=["batch", 5])
    assert "adjusted for the differences in batch and feature 5; no p-values with covariates" in str(found)
    assert "adjusted" not in str(ranked(frame))
    with pytest.raises(
        fr.SettingError, match="relevant: there are no p-values with covariates.*standard err"
    ):
        found.relevant()
    assert not hasattr(found, "verdict")
    data = tmp_path / "rows.csv"
    frame.to_csv(data, index=False)
    assert main(["rank", str(data), "-t", "y", "--covariates", "age", "--select", "fdr=0.1"]) == 2
    assert "--select: takes p-values, and there are none with covariates" in capsys.readouterr().err


def test_rankings_with_covariates_are_not_judged_beside_others():
    frame = mixed(60)
    relief = fr.ReliefRanker(covariates=["age"])
    message = "does not rank 'age'.*rank all features, without covariates, or drop"
    with pytest.raises(fr.DataError, match=message):
        fr.evaluate.curves(frame, "y", {"relief": relief}, folds=2, n_random=1)
    with pytest.raises(fr.DataError, match=message):
        fr.evaluate.evaluate(frame, {"relief": fr.rank(frame, "y", ranker=relief)}, test=frame, target="y")


def test_an_estimator_never_selects_covariates():
    frame = mixed()
    X, y = frame.drop(columns="y"), frame["y"]
    relief = fr.ReliefRanker(covariates=["batch", "age"], n_features_to_select=5).fit(X, y)
    assert relief.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3", "constant"]
    assert relief.feature_importances_[[4, 5]].tolist() == [0, 0]
    assert relief.ranking_[[4, 5]].tolist() == [6, 6]


def test_the_shell_takes_names(tmp_path, capsys):
    data = tmp_path / "rows.csv"
    mixed(80).to_csv(data, index=False)
    own = fr.rank(data, "y", covariates=["batch", "age"])
    for names in (["batch,age"], ["batch", "--covariates", '"age"']):
        main(["rank", str(data), "--target", "y", "--covariates", *names, "--json"])
        shown = json.loads(capsys.readouterr().out)
        assert shown["settings"]["covariates"] == own.settings["covariates"] == ["batch", "age"]
        assert shown["scores"]["relief"]["importance"] == own.importances().tolist()
    # Nothing is not the same as no option.
    assert main(["rank", str(data), "--target", "y", "--covariates", ""]) == 2
    assert "--covariates: there is no feature ''" in capsys.readouterr().err
