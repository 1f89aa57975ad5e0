"""Rankings of dask collections: on local schedulers and on a cluster, whole and by partition."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest

import ferrank as fr

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

FOREST = fr.ForestRanker(
    scores=("genie3", "symbolic", "coverage", "permutation"), n_estimators=10, max_bins=40, by_target=True
)
RANKERS = {
    "forest": FOREST,
    "per_target": fr.ForestRanker(n_estimators=6, per_target=True, scores=("genie3", "permutation")),
    "relief": fr.ReliefRanker(n_neighbors=(3, 8), n_iterations=0.8),
}
TARGETS = ["y", "z"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Features of all kinds with gaps; rows 0 … 29 have categories that others lack, `z` has gaps."""
    rng = np.random.default_rng(2)
    n = 900
    x = rng.normal(size=(4, n)).astype(np.float32)
    frame = pd.DataFrame({f"x{i}": column for i, column in enumerate(x)})
    frame["count"] = rng.integers(0, 9, n)
    frame["colour"] = rng.choice(["red", "green", None], n)
    frame.loc[:29, "colour"] = "rare"
    frame.loc[rng.random(n) < 0.1, "x1"] = np.nan
    frame["y"] = x[0] + (frame["colour"] == "red") + 0.1 * rng.normal(size=n)
    frame["z"] = np.where(rng.random(n) < 0.1, np.nan, x[2] > 0)
    return frame


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
    ) as cluster:
        yield cluster


def same(one: fr.Ranking, other: fr.Ranking) -> bool:
    pairs = zip(one.scores.values(), other.scores.values(), strict=True)
    arrays = ("importance", "std_error", "rank", "rank_interval", "by_target")
    return (list(one.scores), one.features, one.n_rows) == (
        list(other.scores),
        other.features,
        other.n_rows,
    ) and all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)
        for a, b in pairs
        for name in arrays
        if getattr(a, name) is not None
    )


@pytest.mark.parametrize("name", RANKERS)
@pytest.mark.parametrize("n_partitions", [1, 3, 16])
def test_any_partitions_give_the_bits_of_one_machine(
    name: str, n_partitions: int, frame: pd.DataFrame
) -> None:
    ranker = RANKERS[name]
    collection = dd.from_pandas(frame, npartitions=n_partitions, sort=False)
    with dask.config.set(scheduler="synchronous" if n_partitions == 1 else "threads"):
        assert same(fr.rank(collection, TARGETS, ranker=ranker), fr.rank(frame, TARGETS, ranker=ranker))


@pytest.mark.parametrize("name", RANKERS)
def test_a_cluster_gives_the_same_bits(
    name: str, frame: pd.DataFrame, cluster: distributed.LocalCluster
) -> None:
    reports: list[tuple[str, int, int]] = []
    whole = fr.rank(frame, TARGETS, ranker=RANKERS[name])
    with distributed.Client(cluster):
        collection = dd.from_pandas(frame, npartitions=3, sort=False)
        report = lambda *step: reports.append(step)  # noqa: E731
        assert same(fr.rank(collection, TARGETS, ranker=RANKERS[name], progress=report), whole)
    last = "searching" if name == "relief" else "growing"
    assert {"counting", "profiling", last} == {phase for phase, _, _ in reports}
    assert all(done <= total for _, done, total in reports)


def test_a_worker_that_is_killed_changes_nothing(frame: pd.DataFrame) -> None:
    forest = fr.ForestRanker(n_estimators=200, scores=("genie3", "permutation"))
    whole = fr.rank(frame, TARGETS, ranker=forest)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        victim = next(iter(client.run(os.getpid).values()))
        growing = threading.Event()

        def kill() -> None:
            growing.wait(60)
            time.sleep(0.05)
            os.kill(victim, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        found = fr.rank(
            dd.from_pandas(frame, npartitions=4, sort=False),
            TARGETS,
            ranker=forest,
            progress=lambda phase, done, total: growing.set() if phase == "growing" else None,
        )
        killer.join()
    assert same(found, whole)


def test_estimators_take_frames_arrays_and_delayed_partitions(frame: pd.DataFrame) -> None:
    features = [f"x{i}" for i in range(4)]
    X, y, weight = frame[features].to_numpy(), frame["y"].to_numpy(), np.arange(900) % 3 + 0.5
    forest = fr.ForestRanker(n_estimators=8, n_features_to_select=2)
    alone = fr.ForestRanker(**forest.get_params()).fit(X, y, weight).ranking_
    chunks = (250, 400, 250)
    arrays = [
        da.from_array(side, chunks=(chunks, -1) if side.ndim == 2 else (chunks,)) for side in (X, y, weight)
    ]
    with dask.config.set(scheduler="threads"):
        assert same(forest.fit(*arrays).ranking_, alone)
        assert forest.transform(arrays[0]).compute().shape == (900, 2)
        assert same(forest.fit(arrays[0].rechunk((300, 2)), *arrays[1:]).ranking_, alone)
        halves = [slice(0, 500), slice(500, 900)]
        parts = [[dask.delayed(side[half]) for half in halves] for side in (X, y, weight)]
        assert same(forest.fit(*parts).ranking_, alone)

        table = frame.assign(weight=weight)
        collection = dd.from_pandas(table, npartitions=3, sort=False)
        forest.fit(collection[features], collection[TARGETS], collection["weight"])
        by_frame = fr.ForestRanker(**forest.get_params()).fit(frame[features], frame[TARGETS], weight)
        assert same(forest.ranking_, by_frame.ranking_)
        assert list(forest.feature_names_in_) == features
        assert forest.n_features_in_ == 4
        assert list(forest.transform(collection[features]).columns) == forest.get_feature_names_out().tolist()

        relief = fr.ReliefRanker(n_iterations=50).fit(
            collection[features], collection["z"].fillna(0).astype(str)
        )
        alone = fr.ReliefRanker(n_iterations=50).fit(frame[features], frame["z"].fillna(0).astype(str))
        assert same(relief.ranking_, alone.ranking_)


def test_empty_partitions_and_missing_categories(frame: pd.DataFrame) -> None:
    parts = [frame[:0], frame[:200], frame[200:200], frame[200:], frame[:0]]
    delayed = [dask.delayed(part) for part in parts]
    with dask.config.set(scheduler="synchronous"):
        for ranker in RANKERS.values():
            assert same(fr.rank(delayed, TARGETS, ranker=ranker), fr.rank(frame, TARGETS, ranker=ranker))
        # Nothing but missing values in a partition, which Arrow takes for another type.
        gap = frame.assign(colour=frame["colour"].where(frame.index >= 450))
        halves = [dask.delayed(gap[:450]), dask.delayed(gap[450:])]
        assert same(fr.rank(halves, TARGETS, ranker=FOREST), fr.rank(gap, TARGETS, ranker=FOREST))
        categorical = gap.assign(colour=gap["colour"].astype("category"))
        halves = [dask.delayed(categorical[:450]), dask.delayed(gap[450:])]
        assert same(fr.rank(halves, TARGETS, ranker=FOREST), fr.rank(gap, TARGETS, ranker=FOREST))


def test_errors_name_the_partition(frame: pd.DataFrame) -> None:
    def ranked(*parts: object, **settings: object) -> fr.Ranking:
        return fr.rank([dask.delayed(part) for part in parts], TARGETS, **settings)

    bad = frame.assign(colour=[["a"]] * 900)
    infinite = frame.assign(x0=np.inf)
    with dask.config.set(scheduler="synchronous"):
        for parts, said in [
            ((frame, object()), "partition 1: data: cannot rank"),
            ((frame, frame.drop(columns="x0")), "partition 1: its columns .* 'x0' is not in both"),
            ((frame, bad), "colour|list"),
            ((frame[:9], infinite), "partition 1: column 'x0': the value inf"),
            ((frame[:9].assign(x0="a"), frame), "do not go together"),
            ((frame[:0], frame[:0]), "no rows"),
            ((frame, frame.drop(columns="z")), "partition 1: no column 'z'"),
        ]:
            with pytest.raises((fr.DataError, fr.ColumnTypeError), match=said):
                ranked(*parts)
        with pytest.raises(fr.DataError, match="have no target value"):
            ranked(frame, frame.assign(y=np.nan, z=np.nan))
        with pytest.raises(fr.SettingError, match="resume"):
            ranked(frame, resume="run.ferrank")
        with pytest.raises(fr.SettingError, match="scope"):
            ranked(frame, scope="both")
        with pytest.raises(fr.SettingError, match="3 trees for 4 partitions"):
            ranked(*[frame[i::4] for i in range(4)], n_estimators=3, scope="partition")
        with pytest.raises(fr.SettingError, match="myopic"):
            fr.rank([dask.delayed(frame)], "colour", ranker="relief", scores="myopic", scope="partition")
        X = dd.from_pandas(frame[["x0", "x1"]], npartitions=2, sort=False)
        with pytest.raises(fr.DataError, match="y: 3 partitions, X has 2"):
            fr.ForestRanker().fit(X, dd.from_pandas(frame["y"], npartitions=3, sort=False))
        with pytest.raises(fr.ColumnTypeError, match="give a dask collection"):
            fr.ForestRanker().fit(X, frame["y"])


@pytest.mark.parametrize("name", RANKERS)
def test_partitions_contribute_their_shares(
    name: str, frame: pd.DataFrame, recwarn: pytest.WarningsRecorder
) -> None:
    settings = RANKERS[name].get_params() | {"scope": "partition"}
    ranker = type(RANKERS[name])(**settings)
    shuffled = frame.sample(frac=1, random_state=0)
    collection = dd.from_pandas(shuffled, npartitions=4, sort=False)
    with dask.config.set(scheduler="threads"):
        ranking = fr.rank(collection, TARGETS, ranker=ranker)
        assert same(fr.rank(collection, TARGETS, ranker=ranker), ranking)
        assert ranking.n_rows == 900
        assert set(ranking.top(3)) & {"x0", "colour", "x2"}
        assert not [warning for warning in recwarn if warning.category is fr.DriftWarning]
        parts = dd.from_pandas(frame.sort_values("y"), npartitions=4, sort=False)
        with pytest.warns(fr.DriftWarning, match="'y' .*shuffle the rows"):
            fr.rank(parts, TARGETS, ranker=ranker)


def test_targets_of_few_integers_are_asked_about(frame: pd.DataFrame) -> None:
    collection = dd.from_pandas(frame, npartitions=2, sort=False)
    with dask.config.set(scheduler="synchronous"), pytest.warns(fr.IntegerTargetWarning, match="'count'"):
        fr.ForestRanker(n_estimators=2).fit(collection[["x0", "x1"]], collection["count"])
