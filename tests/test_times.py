"""Dates, times and durations are numbers."""

from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ferrank as fr
from ferrank.evaluate import curves, evaluate

RNG = np.random.default_rng(0)
DAYS = RNG.integers(19_000, 20_000, 200)
NOISE = RNG.normal(size=200)
Y = np.sin(DAYS / 100) + 0.1 * NOISE[::-1]
PLAIN = {"noise": NOISE, "when": DAYS, "y": Y}


def importances(table: pa.Table, ranker: str = "forest") -> np.ndarray:
    return fr.rank(table, "y", ranker=ranker).importances()


def with_when(when: pa.Array) -> pa.Table:
    return pa.table({**PLAIN, "when": when})


@pytest.mark.parametrize("ranker", ["forest", "relief"])
def test_times_rank_as_the_numbers_that_they_are(ranker: str) -> None:
    wanted = importances(with_when(pa.array(DAYS)), ranker)
    days = pa.array(DAYS, pa.int32()).cast(pa.date32())
    for when in [
        days,
        days.cast(pa.date64()),
        days.cast(pa.timestamp("ns")),
        days.cast(pa.timestamp("s", "UTC")),
    ]:
        np.testing.assert_allclose(importances(with_when(when), ranker), wanted, rtol=1e-12)
    duration = pa.array(DAYS, pa.duration("s"))
    np.testing.assert_allclose(importances(with_when(duration), ranker), wanted, rtol=1e-12)


def test_times_from_pandas_and_csv(tmp_path: Path) -> None:
    frame = pd.DataFrame(PLAIN).assign(when=pd.to_datetime(DAYS, unit="D"))
    wanted = importances(with_when(pa.array(DAYS)))
    np.testing.assert_allclose(importances(frame), wanted, rtol=1e-12)
    frame.to_csv(tmp_path / "t.csv", index=False)
    np.testing.assert_allclose(importances(tmp_path / "t.csv"), wanted, rtol=1e-12)
    kinds = {column["name"]: column["kind"] for column in fr.inspect(tmp_path / "t.csv")["columns"]}
    assert kinds["when"] == "numeric"
    forest = fr.ForestRanker(n_estimators=20).fit(frame[["noise", "when"]], frame.y)
    assert forest.result_.top(1) == ["when"]


def test_a_time_as_the_target() -> None:
    table = pa.table({"a": DAYS + 0.5, "b": NOISE, "y": pa.array(DAYS, pa.int32()).cast(pa.date32())})
    with pytest.warns(fr.SpoiledDataWarning):
        found = fr.rank(table, "y", n_estimators=20)
    assert (found.task, found.top(1)) == ("regression", ["a"])


def test_rankings_of_times_are_judged() -> None:
    table = with_when(pa.array(DAYS, pa.int32()).cast(pa.date32()))
    ranking = fr.rank(table, "y", n_estimators=20)
    assert evaluate(table[:150], {"forest": ranking}, test=table[150:], target="y").task == "regression"
    assert set(curves(table, "y", {"forest": fr.ForestRanker(n_estimators=5)}, folds=2).stability) >= {
        "forest"
    }
    assert list(fr.check(table, "y")) == []
