"""Data sets: one object for rows and roles, which all functions take."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import ferrank as fr
from ferrank import _core
from ferrank.evaluate import curves, evaluate, resample

DATA = Path(__file__).parent / "data"


@pytest.fixture
def columns() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 300))
    code = rng.integers(0, 6, 300)
    return {"a": a, "b": b, "code": code, "who": np.arange(300) // 10, "y": a + np.isin(code, (1, 4)) * 3.0}


def same(one: fr.Ranking, other: fr.Ranking) -> bool:
    return all(
        np.array_equal(one.importances(score), other.importances(score)) for score in one.scores
    ) and list(one.scores) == list(other.scores)


def test_a_data_set_ranks_as_its_short_form(columns: dict[str, np.ndarray]) -> None:
    data = fr.Dataset(columns, "y", drop="who")
    assert (data.features, data.targets) == (["a", "b", "code"], ["y"])
    for ranker in ("forest", "relief"):
        short = fr.rank(columns, "y", drop=["who"], ranker=ranker)
        assert same(fr.rank(data, ranker=ranker), short)
    assert fr.grow_tree(data).equals(fr.grow_tree(columns, "y", drop=["who"]))
    assert same(fr.accumulate(data, n_estimators=5).ranking(), fr.rank(data, n_estimators=5))


def test_files_hierarchies_and_labels_are_data_sets() -> None:
    labels = fr.Dataset(DATA / "emotions.arff", labels=DATA / "emotions.xml")
    assert "multi-label" in repr(labels)
    assert len(labels.targets) == 6
    church = fr.Dataset(DATA / "church_FUN.arff", "class")
    assert same(fr.rank(church, n_estimators=3), fr.rank(DATA / "church_FUN.arff", "class", n_estimators=3))


def test_a_profile_serves_the_next_ranker(
    columns: dict[str, np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    profile = _core.profile
    monkeypatch.setattr(_core, "profile", lambda *args: made.append(args) or profile(*args))
    data = fr.Dataset(columns, "y")
    for seed in range(3):
        fr.rank(data, n_estimators=2, random_state=seed)
    assert len(made) == 1
    fr.rank(data, n_estimators=2, max_bins=16)
    fr.rank(data, ranker="relief")
    assert len(made) == 3, "other bins, and no bins at all, are other profiles"
    fr.rank(columns, "y", n_estimators=2)
    assert len(made) == 3, "without a data set nothing is made twice"


def test_the_source_is_read_no_more_than_it_must_be(columns: dict[str, np.ndarray]) -> None:
    table, passes = pa.table(columns), 0

    def make() -> pa.RecordBatchReader:
        nonlocal passes
        passes += 1
        return table.to_reader()

    def passes_of(work: Callable[[], object]) -> int:
        nonlocal passes
        passes = 0
        work()
        return passes

    data = fr.Dataset(table, "y", drop="who")
    data._source = _core.Source.factory(table.schema, make, str, "counted", None)
    tuned = partial(fr.tune, data, n_estimators=2, grid={"supervision": (0.5,)})
    assert passes_of(tuned) == 1, "rows of a search are in memory"
    settings = {"n_estimators": 2, "supervision": 0.5}
    assert passes_of(lambda: fr.rank(data, **settings)) == 2, "a look at the first rows, and codes"
    assert passes_of(lambda: fr.rank(data, **settings)) == 1, "codes"
    assert passes_of(lambda: fr.rank(data, n_estimators=2)) == 2, "a profile, and codes"
    assert passes_of(lambda: fr.rank(data, n_estimators=2, random_state=1)) == 1, "codes"
    assert passes_of(tuned) == 1
    rankers = {"forest": fr.ForestRanker(n_estimators=2)}
    assert passes_of(lambda: curves(data, rankers=rankers, folds=2)) == 1
    assert same(
        tuned().ranking,
        fr.tune(table, "y", drop=["who"], n_estimators=2, grid={"supervision": (0.5,)}).ranking,
    )


def test_rows_that_change_after_their_profile_are_an_error(columns: dict[str, np.ndarray]) -> None:
    tables = [pa.table(columns), pa.table(columns).slice(1)]
    data = fr.Dataset(tables[0], "y")
    data._source = _core.Source.factory(tables[0].schema, lambda: tables[0].to_reader(), str, "rows", None)
    for ranker in ("forest", "relief"):
        fr.rank(data, ranker=ranker)
    tables.pop(0)
    for ranker in ("forest", "relief"):
        with pytest.raises(fr.DataError, match="the data changed while they were read"):
            fr.rank(data, ranker=ranker)


def test_evaluation_takes_data_sets(columns: dict[str, np.ndarray]) -> None:
    table = pa.table(columns).drop_columns(["who"])
    train, test = fr.Dataset(table.slice(0, 200), "y"), table.slice(200)
    ranking = fr.rank(train, n_estimators=10)
    found = evaluate(train, ranking, test=test, n_neighbors=5)
    short = evaluate(table.slice(0, 200), ranking, test=test, target="y", n_neighbors=5)
    assert found.to_pandas().equals(short.to_pandas())
    assert len(resample(train, n=2)) == 2
    curve = curves(train, rankers={"forest": fr.ForestRanker(n_estimators=3)}, folds=2)
    assert curve.sizes.tolist() == [1, 2, 3]
    tuned = fr.tune(train, n_estimators=2, grid={"supervision": (0.5, 1.0)})
    assert tuned.best_params.keys() == {"supervision"}


def test_rows_leave_as_an_arrow_stream(columns: dict[str, np.ndarray], tmp_path: Path) -> None:
    assert pa.table(fr.Dataset(columns, "y")).equals(pa.table(columns))
    path = tmp_path / "rows.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    read = pl.DataFrame(fr.Dataset(path, "y"))
    assert read.shape == (300, 5)
    np.testing.assert_allclose(read["a"].to_numpy(), columns["a"])
    assert pa.table(fr.Dataset(DATA / "iris.arff", target_last=1)).num_rows == 150
    broken = tmp_path / "broken.arff"
    broken.write_text("@relation r\n@attribute x numeric\n@attribute y numeric\n@data\n1,2\n1,two\n")
    with pytest.raises((OSError, pa.ArrowException), match="line 6"):
        pa.table(fr.Dataset(broken, "y"))


@pytest.mark.parametrize("categorical", [["code"], [2], [False, False, True, False, False]])
def test_categorical_features_are_nominal(columns: dict[str, np.ndarray], categorical: list[object]) -> None:
    data = fr.Dataset(columns, "y", drop=["who"], categorical_features=categorical)
    words = columns | {"code": columns["code"].astype(str)}
    assert same(fr.rank(data), fr.rank(words, "y", drop=["who"]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"categorical_features": ["none"]}, "no column 'none'"),
        ({"categorical_features": [9]}, "neither a name nor a position in 0 … 4"),
        ({"target_last": 1}, "one of target, target_last and labels"),
    ],
)
def test_wrong_roles_are_named(columns: dict[str, np.ndarray], settings: dict, message: str) -> None:
    with pytest.raises(fr.FerrankError, match=message):
        _ = fr.Dataset(columns, "y", **settings).features


def test_what_is_not_supported_is_refused(columns: dict[str, np.ndarray]) -> None:
    with pytest.raises(fr.DataError, match="no column 'whom' for the groups"):
        fr.rank(fr.Dataset(columns, "y", groups="whom"))
    with pytest.raises(fr.SettingError, match="groups: the data set says"):
        fr.rank(fr.Dataset(columns, "y"), groups="who")
    with pytest.raises(fr.SettingError, match="target: the data set says"):
        fr.rank(fr.Dataset(columns, "y"), "a")
