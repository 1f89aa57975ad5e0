"""Groups of rows: whole groups in bags, neighbours of other groups, folds by group."""

import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from scipy.sparse import csr_array

import ferrank as fr
from ferrank.evaluate import baselines, curves, evaluate, resample
from ferrank.evaluate.rows import read_rows
from ferrank.evaluate.splits import splits_of
from reference.distance import differences, features_of
from reference.relief import relieff, rrelieff, semi_supervised
from relief_checks import MANY, SCHEMES, assert_close

FOREST = {"n_estimators": 20, "scores": ("genie3", "symbolic", "permutation")}
RANKERS: dict[str, dict[str, Any]] = {
    "forest": {"ranker": "forest", **FOREST},
    "relief": {"ranker": "relief", "n_neighbors": (2, 9)},
}


def same(one: fr.Ranking, other: fr.Ranking) -> bool:
    return list(one.scores) == list(other.scores) and all(
        np.array_equal(a.importance, b.importance)
        and np.array_equal(a.monte_carlo_error, b.monte_carlo_error, equal_nan=True)
        for a, b in zip(one.scores.values(), other.scores.values(), strict=True)
    )


@pytest.fixture(scope="module")
def visits() -> pa.Table:
    """300 visits of 37 patients in no order; `trait` is constant for each patient."""
    rng = np.random.default_rng(4)
    patient = rng.integers(0, 37, 300)
    x, noise = rng.normal(size=(2, 300))
    trait, effect = rng.normal(size=(2, 37))
    return pa.table(
        {
            "x": x,
            "noise": pa.array(noise, mask=rng.random(300) < 0.1),
            "trait": trait[patient],
            "word": rng.choice(["a", "b", "c"], 300),
            "patient": patient,
            "y": x + effect[patient] + rng.normal(size=300),
            "kind": np.where(x + effect[patient] > 0, "high", "low"),
        }
    )


def of(visits: pa.Table, target: str) -> pa.Table:
    return visits.drop(["kind" if target == "y" else "y"])


def with_patients(table: pa.Table, column: Any) -> pa.Table:
    return table.set_column(table.column_names.index("patient"), "patient", column)


@pytest.mark.parametrize("settings", RANKERS.values(), ids=RANKERS)
@pytest.mark.parametrize("target", ["y", "kind"])
def test_the_type_of_the_groups_makes_no_difference(
    visits: pa.Table, target: str, settings: dict[str, Any]
) -> None:
    table, patients = of(visits, target), visits["patient"]
    whole = fr.rank(table, target, groups="patient", **settings)
    assert "patient" not in whole.features
    assert not same(whole, fr.rank(table, target, drop=["patient"], **settings))
    words = patients.cast(pa.string())
    days = patients.cast(pa.int32()).cast(pa.date32())
    for column in (words, words.dictionary_encode(), patients.cast(pa.float64()), days):
        assert same(whole, fr.rank(with_patients(table, column), target, groups="patient", **settings))


@pytest.mark.parametrize("settings", RANKERS.values(), ids=RANKERS)
def test_a_group_for_each_row_is_a_ranking_without_groups(visits: pa.Table, settings: dict[str, Any]) -> None:
    table = with_patients(of(visits, "y"), pa.array([f"p{number}" for number in range(300)]))
    without = fr.rank(table.drop(["patient"]), "y", **settings)
    assert same(fr.rank(table, "y", groups="patient", **settings), without)


def test_bags_of_groups_of_copies_are_bags_of_rows(visits: pa.Table) -> None:
    """A group of 3 copies of a row is drawn as the row alone is, and weighs 3 times as much."""
    table = of(visits, "y").drop(["patient"])
    copies = table.take(np.repeat(np.arange(300), 3)).append_column(
        "g", pa.array(np.repeat(np.arange(300), 3))
    )
    settings = {"n_estimators": 30, "scores": ("genie3", "symbolic"), "max_samples": 0.8, "max_bins": 1000}
    rows = fr.rank(table, "y", min_samples_leaf=2, **settings)
    groups = fr.rank(copies, "y", groups="g", min_samples_leaf=6, **settings)
    for name, score in rows.scores.items():
        np.testing.assert_allclose(groups.scores[name].importance, score.importance, rtol=1e-9)
    found, expected = asdict(groups.model_error["y"]), asdict(rows.model_error["y"])
    assert (found.pop("n_rows"), expected.pop("n_rows")) == (900, 300)
    assert found.pop("measure") == expected.pop("measure")
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("settings", RANKERS.values(), ids=RANKERS)
def test_the_same_bits_however_the_rows_come(
    visits: pa.Table, tmp_path: Path, settings: dict[str, Any]
) -> None:
    table = of(visits, "kind")
    whole = fr.rank(table, "kind", groups="patient", n_jobs=1, **settings)
    pieces = pa.concat_tables([table.slice(0, 13), table.slice(13, 200), table.slice(213)])
    folder = tmp_path / "parts"
    folder.mkdir()
    pyarrow.feather.write_feather(table.slice(0, 100), str(folder / "a.arrow"))
    pq.write_table(table.slice(100), folder / "b.parquet")
    pyarrow.csv.write_csv(table, tmp_path / "table.csv")
    sources = (pieces, table.to_pandas(), str(folder), str(tmp_path / "table.csv"))
    for source in sources:
        found = fr.rank(source, "kind", groups="patient", n_jobs=2, **settings)
        assert same(whole, found)
        assert found.model_error == whole.model_error
    assert same(whole, fr.rank(fr.Dataset(table, "kind", groups="patient"), **settings))
    X, patients = table.drop(["kind", "patient"]), table["patient"]
    ranker = {"forest": fr.ForestRanker, "relief": fr.ReliefRanker}[settings["ranker"]]
    own = {name: value for name, value in settings.items() if name != "ranker"}
    for groups in (patients, patients.to_pandas().astype("category"), patients.to_pylist()):
        assert same(whole, ranker(**own).fit(X, table["kind"].to_numpy(), groups=groups).result_)


@pytest.mark.parametrize("settings", RANKERS.values(), ids=RANKERS)
def test_runs_in_parts_and_resumed_runs_keep_groups(
    visits: pa.Table, tmp_path: Path, settings: dict[str, Any]
) -> None:
    table, path = of(visits, "y"), tmp_path / "run.ferrank"
    whole = fr.rank(table, "y", groups="patient", **settings)
    first = fr.profile(table.slice(0, 120), "y", groups="patient", **settings)
    second = fr.profile(table.slice(120), "y", groups="patient", first_row=120, **settings)
    known = first.merge(second)
    run = fr.accumulate(table, "y", groups="patient", profile=known, resume=path, **settings)
    assert same(whole, fr.Accumulator.from_bytes(run.to_bytes()).ranking())
    content = path.read_bytes()
    path.write_bytes(content[: 2 * len(content) // 3])
    with pytest.warns(fr.ResumeWarning):
        assert same(whole, fr.rank(table, "y", groups="patient", resume=path, **settings))
    other = with_patients(table, pa.array(np.roll(visits["patient"].to_numpy(), 1)))
    with pytest.raises(fr.DataError, match="the values of the data"):
        fr.rank(other, "y", groups="patient", resume=path, **settings)
    with pytest.raises(fr.DataError, match="groups"):
        fr.rank(table, "y", drop=["patient"], resume=path, **settings)
    with pytest.raises(fr.DataError, match="groups: the profile was made for 'patient', not for none"):
        fr.accumulate(table, "y", drop=["patient"], profile=known, **settings)


@pytest.mark.slow
@pytest.mark.parametrize("settings", RANKERS.values(), ids=RANKERS)
@pytest.mark.parametrize("scope", ["global", "partition"])
def test_dask_keeps_groups(visits: pa.Table, settings: dict[str, Any], scope: str) -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = of(visits, "y").to_pandas()
    collection = dd.from_pandas(frame, npartitions=4)
    own = {name: value for name, value in settings.items() if name != "ranker"}
    ranker = {"forest": fr.ForestRanker, "relief": fr.ReliefRanker}[settings["ranker"]](scope=scope, **own)
    X = collection.drop(columns=["y", "patient"])
    found = [
        fr.rank(collection, "y", groups="patient", ranker=ranker),
        ranker.fit(X, collection["y"], groups=collection["patient"]).result_,
        ranker.fit(
            X, collection["y"], groups=collection["patient"].astype(str).repartition(npartitions=2)
        ).result_,
    ]
    assert same(found[0], found[1])
    assert same(found[0], found[2])
    whole = fr.rank(frame, "y", groups="patient", **settings)
    assert same(found[0], whole) == (scope == "global")


@pytest.mark.slow
@pytest.mark.parametrize("group_of", [lambda row: row // 50, lambda row: row * 7919 % 3001])
def test_a_forest_within_little_memory_keeps_groups(
    group_of: Callable[[np.ndarray], np.ndarray], tmp_path: Path
) -> None:
    rng = np.random.default_rng(5)
    n = 150_000
    columns = {f"x{i}": rng.normal(size=n).astype(np.float32) for i in range(14)}
    columns["g"] = group_of(np.arange(n))
    columns["y"] = 2 * columns["x0"] + rng.normal(size=3001)[columns["g"] % 3001] + rng.normal(size=n)
    table = pa.table(columns)

    def ranked(limit: int | str) -> fr.Ranking:
        settings = {"n_estimators": 3, "n_jobs": 2, "scores": ("genie3", "permutation"), "max_samples": 0.7}
        forest = fr.ForestRanker(memory_limit=limit, temp_dir=tmp_path, **settings)
        return fr.rank(table, "y", groups="g", ranker=forest)

    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system does not tell how much memory a process holds")
    held = int(re.search(r"RssAnon:\s+(\d+) kB", status.read_text())[1]) << 10
    little = ranked(held + (48 << 20))
    assert same(ranked("8GiB"), little)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("target", ["y", "kind"])
@pytest.mark.parametrize("n_groups", [3, 37, 80])
def test_relief_finds_the_neighbours_of_the_reference(visits: pa.Table, target: str, n_groups: int) -> None:
    table = of(visits, target).slice(0, 90)
    patients = np.arange(90) * 31 % n_groups
    table = with_patients(table, pa.array(patients))
    features = features_of(table, ["x", "noise", "trait", "word"])
    [answers] = features_of(table, [target])
    ranking = fr.rank(table, target, groups="patient", ranker="relief", **MANY)
    found = {name: score.importance for name, score in ranking.scores.items()}
    expected = {}
    for k, sigma in SCHEMES:
        name = f"relief_k{k}" + ("" if sigma is None else "_sigma2")
        if target == "kind":
            expected[name] = relieff(features, answers.values, k=k, sigma=sigma, groups=patients)
        else:
            expected[name] = rrelieff(features, differences(answers), k=k, sigma=sigma, groups=patients)
    assert_close(found, expected)


@pytest.mark.parametrize("in_one_group", [False, True])
def test_relief_with_unlabelled_rows_finds_the_neighbours_of_the_reference(
    visits: pa.Table, in_one_group: bool
) -> None:
    table = of(visits, "y").slice(0, 80)
    patients = np.arange(80) // 5
    is_known = patients == 7 if in_one_group else np.arange(80) % 3 == 0
    y = pa.array(np.where(is_known, table["y"].to_numpy(), np.nan), from_pandas=True)
    table = with_patients(table, pa.array(patients)).drop(["y"]).append_column("y", y)
    features = features_of(table, ["x", "noise", "trait", "word"])
    [answers] = features_of(table, ["y"])
    apart = np.nan_to_num(differences(answers))
    expected = semi_supervised(features, apart, is_known.tolist(), (0.25, 0.75), k=4, groups=patients)
    ranking = fr.rank(table, "y", groups="patient", ranker="relief", influence=(0.25, 0.75), n_neighbors=4)
    np.testing.assert_allclose(ranking.importances(), expected, rtol=0, atol=1e-9)


def test_sparse_rows_have_the_neighbours_of_dense_ones() -> None:
    rng = np.random.default_rng(1)
    X = rng.random((200, 60)) * (rng.random((200, 60)) < 0.05)
    y, groups = X[:, 3] > 0, rng.integers(0, 40, 200)
    for task in ("classification", None):
        target = y if task else X[:, 3] + X[:, 4]
        dense = fr.ReliefRanker(task).fit(X, target, groups=groups).result_
        assert same(dense, fr.ReliefRanker(task).fit(csr_array(X), target, groups=groups).result_)
        assert not same(dense, fr.ReliefRanker(task).fit(X, target).result_)


@pytest.mark.parametrize("make", [fr.ForestRanker, fr.ReliefRanker])
def test_streams_keep_groups_in_a_block(visits: pa.Table, make: Callable[..., Any]) -> None:
    table = of(visits, "y")
    X, y, groups = table.drop(["y", "patient"]), table["y"].to_numpy(), table["patient"].to_numpy()
    ranker = make(block_rows=100, reservoir_rows=50, n_jobs=1)
    for start in range(0, 300, 30):
        rows = slice(start, start + 30)
        ranker.partial_fit(X.slice(start, 30), y[rows], groups=groups[rows])
    whole = make(block_rows=100, reservoir_rows=50).partial_fit(X, y, groups=groups).result_
    assert same(ranker.result_, whole)
    first = make(block_rows=300).partial_fit(X, y, groups=groups).result_
    assert same(first, make().fit(X, y, groups=groups).result_)
    with pytest.raises(fr.DataError, match="groups: groups are not given with this batch"):
        ranker.partial_fit(X, y)


@pytest.mark.parametrize("settings", RANKERS.values(), ids=RANKERS)
def test_errors_name_the_column(visits: pa.Table, settings: dict[str, Any]) -> None:
    table = of(visits, "y")
    gaps = with_patients(table, pa.array([None, *visits["patient"].to_pylist()[1:]]))
    cases: list[tuple[pa.Table, dict[str, Any], str]] = [
        (gaps, {}, r"column 'patient': 1 of 300 rows .* have no group"),
        (
            with_patients(table, pa.array(["p"] * 300)),
            {},
            "all 300 rows|all rows have the same value in column",
        ),
        (with_patients(table, pa.array([[1]] * 300)), {}, "column 'patient' is of type List.*the groups"),
        (table, {"groups": "patients"}, "no column 'patients' for the groups; .* 'patient'"),
        (table, {"groups": "y"}, "column 'y' is given as the groups and as a target"),
        (table, {"drop": ["patient"]}, "column 'patient' is given as dropped and as the groups"),
        (table, {"until": "stable"}, "groups: until"),
    ]
    for data, extra, message in cases:
        with pytest.raises(fr.FerrankError, match=message):
            fr.rank(data, "y", **{"groups": "patient", **settings, **extra})


def test_settings_that_do_not_go_with_groups_are_named(visits: pa.Table) -> None:
    table = of(visits, "y")
    with pytest.raises(fr.SettingError, match="max_samples: with groups, whole groups are drawn"):
        fr.rank(table, "y", groups="patient", max_samples=100)
    with pytest.raises(fr.DataError, match="groups: 2 values for 300 rows"):
        fr.ForestRanker().fit(table.drop(["y", "patient"]), table["y"].to_numpy(), groups=[1, 2])
    ranker = baselines.InformationGain()
    with pytest.raises(fr.SettingError, match="groups: information_gain does not keep groups"):
        fr.rank(of(visits, "kind"), "kind", groups="patient", ranker=ranker)


def test_folds_and_resamples_hold_whole_groups(visits: pa.Table) -> None:
    patients = visits["patient"].to_numpy()
    for target in ("y", "kind"):
        dataset = fr.Dataset(of(visits, target), target, groups="patient")
        rows = read_rows(dataset.source(), dataset.roles())
        splits = splits_of(rows, folds=5, repeats=2, seed=3)
        assert len(splits) == 10
        for train, test in splits:
            assert not set(patients[train]) & set(patients[test])
            assert sorted([*train, *test]) == list(range(300))
        assert not np.array_equal(splits[0][1], splits[5][1])
    high = visits["kind"].to_numpy() == "high"
    shares = [high[test].mean() for _, test in splits]
    assert max(abs(share - high.mean()) for share in shares) < 0.1
    with pytest.raises(fr.DataError, match="37 groups cannot be split into 40 folds"):
        splits_of(rows, folds=40, repeats=1, seed=3)
    table = of(visits, "y")
    rankings = resample(table, "y", fr.ForestRanker(n_estimators=3), n=2, share=0.5, groups="patient")
    assert all("patient" not in ranking.features and ranking.n_rows < 250 for ranking in rankings)


def test_curves_tune_and_evaluate_take_groups(visits: pa.Table) -> None:
    table, forest = of(visits, "kind"), fr.ForestRanker(n_estimators=5)
    rankers = {"forest": forest, "gain": baselines.InformationGain()}
    found = curves(table, "kind", rankers, groups="patient", folds=3, n_random=0)
    assert "patient" not in found.features
    assert set(found.forward) == {"forest", "gain"}
    tuned = fr.tune(table, "kind", groups="patient", grid={"supervision": (0, 1)}, folds=3, n_estimators=3)
    assert "patient" not in tuned.ranking.features
    search = fr.SupervisionSearch(forest, grid={"supervision": (0, 1)})
    X = table.drop(["kind", "patient"])
    assert search.fit(X, table["kind"].to_numpy(), groups=table["patient"]).result_.features == X.column_names
    ranking = fr.rank(table, "kind", groups="patient", ranker=forest)
    patients = table["patient"].to_numpy()
    train, test = table.filter(pa.array(patients < 20)), table.filter(pa.array(patients >= 20))
    assert evaluate(train, ranking, test=test, target="kind", groups="patient").n_test == test.num_rows
    with pytest.raises(fr.DataError, match="groups: 37 of 37 groups"):
        evaluate(table, ranking, test=table, target="kind", groups="patient")


def subjects(seed: int) -> pd.DataFrame:
    """20 rows of each of 60 subjects: `x` has an effect, ten features are noise, constant for a subject."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(60), 20)
    noise = rng.normal(size=(60, 10))[subject]
    x = rng.normal(size=1200)
    y = 0.5 * x + rng.normal(size=60)[subject] + 0.5 * rng.normal(size=1200)
    columns = {f"noise{number}": column for number, column in enumerate(noise.T)}
    return pd.DataFrame({**columns, "x": x, "subject": subject, "y": y})


@pytest.mark.slow
def test_noise_of_subjects_does_not_pass_for_an_effect() -> None:
    """Of 10 data sets, those in which the only effect is first."""
    with_groups, without = np.zeros(2, dtype=int), 0
    for seed in range(10):
        frame = subjects(seed)
        settings = {"scores": ("permutation", "genie3"), "max_features": "all"}
        ranking = fr.rank(frame, "y", groups="subject", **settings)
        with_groups += [ranking.top(1, score) == ["x"] for score in ranking.scores]
        without += fr.rank(frame, "y", drop=["subject"], **settings).top(1) == ["x"]
    assert with_groups.tolist() == [10, 10]
    assert without < 5


@pytest.mark.parametrize("n_categories", [60, 250])
def test_nominal_noise_does_not_look_relevant_beside_groups_of_different_sizes(n_categories: int) -> None:
    least = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        data = {f"x{i}": rng.normal(size=400) for i in range(4)}
        data["noise"] = rng.integers(0, n_categories, 400).astype(str)
        data |= {"y": rng.choice(["a", "b"], 400), "group": rng.integers(0, 80, 400)}
        forest = fr.ForestRanker(n_estimators=200, shadows=True)
        p_values = fr.rank(data, "y", groups="group", ranker=forest).relevance.p_value
        least.append(p_values[4])
    # Of noise, p-values are as often above 0.1 as chance says: all five below have a chance of 1e-5.
    assert np.median(least) > 0.05, least
