"""Rankings on clusters by clients of all kinds, and what users do beside them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ferrank as fr
from ferrank.distributed.scheduler import connected

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

FOREST = fr.ForestRanker(n_estimators=6, scores=("genie3", "permutation"))
# What a task that grows trees and has the resources waits for.
ASKED_OF_PARTITIONS = {
    f"ferrank-{name}"
    for name in ("sums-here", "add-sums-here", "sums", "collect", "piece", "rows-here", "rows")
}
RELIEF = fr.ReliefRanker(n_iterations=50)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(rng.normal(size=(600, 4)), columns=list("abcd"))
    return frame.assign(y=frame["a"] - frame["d"])


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, resources={"SLOT": 1}
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster: distributed.LocalCluster) -> Iterator[distributed.Client]:
    with distributed.Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture(params=["rows in workers", "rows stay in partitions"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "rows stay in partitions":
        monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-7)
        monkeypatch.setattr("ferrank.distributed.plan._RANK_BYTES", 1)


class Connecting:
    """A client that another task of the worker is connecting."""

    asynchronous = False

    def __init__(self) -> None:
        self.status = "connecting"
        threading.Timer(0.2, setattr, (self, "status", "running")).start()


def test_tasks_wait_for_a_client_that_another_task_is_connecting() -> None:
    assert connected(Connecting()).status == "running"


def parts_of(frame: pd.DataFrame, n: int = 3) -> Any:
    return dd.from_pandas(frame, npartitions=n, sort=False)


def tasks_of(cluster: distributed.LocalCluster) -> set[str]:
    return {name for name in cluster.scheduler.task_prefixes if name.startswith("ferrank-")}


def same(one: fr.Ranking, other: fr.Ranking) -> bool:
    pairs = zip(one.scores.values(), other.scores.values(), strict=True)
    return all(np.array_equal(a.importance, b.importance) for a, b in pairs)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("ranker", [FOREST, RELIEF], ids=["forest", "relief"])
def test_a_client_is_used_where_it_is_given(
    ranker: Any, frame: pd.DataFrame, client: distributed.Client, cluster: distributed.LocalCluster
) -> None:
    whole = fr.rank(frame, "y", ranker=ranker)
    before = cluster.scheduler.task_prefixes["ferrank-count"].states["memory"] if tasks_of(cluster) else 0
    assert same(fr.rank(parts_of(frame), "y", ranker=ranker, client=client), whole)
    assert "ferrank-count" in tasks_of(cluster)
    assert cluster.scheduler.task_prefixes["ferrank-count"].states["memory"] >= before
    X, y = parts_of(frame[list("abcd")]), parts_of(frame["y"].to_frame(), 4)["y"]
    with dask.config.set(scheduler="synchronous"):
        assert same(ranker.fit(X, y, client=client).result_, whole)


def test_a_client_goes_with_collections(frame: pd.DataFrame, client: distributed.Client) -> None:
    with pytest.raises(fr.SettingError, match="client: for dask collections"):
        fr.rank(frame, "y", client=client)
    with pytest.raises(fr.SettingError, match="client: for dask collections"):
        fr.ForestRanker().fit(frame[["a"]], frame["y"], client=client)
    with pytest.raises(fr.SettingError, match="client: 'tcp.*' is not a dask.distributed.Client"):
        fr.rank(parts_of(frame), "y", client="tcp://here")


@pytest.mark.usefixtures("way")
def test_an_asynchronous_client_is_awaited(frame: pd.DataFrame) -> None:
    whole = fr.rank(frame, "y", ranker=FOREST)

    async def ranked() -> None:
        async with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, asynchronous=True
            ) as cluster,
            distributed.Client(cluster, asynchronous=True) as client,
        ):
            collection = parts_of(frame)
            found = fr.rank(collection, "y", ranker=FOREST, client=client)
            assert asyncio.iscoroutine(found)
            assert same(await found, whole)
            # The client of this context is found.
            forest = fr.ForestRanker(**FOREST.get_params())
            assert await forest.fit(collection[list("abcd")], collection["y"]) is forest
            assert same(forest.result_, whole)
            with pytest.raises(fr.DataError, match="no column 'z'"):
                await fr.rank(collection, "z", client=client)

    asyncio.run(ranked())


@pytest.mark.usefixtures("way")
def test_a_task_ranks(frame: pd.DataFrame, client: distributed.Client) -> None:
    """All threads of the workers rank, so that each must go on with other tasks meanwhile."""
    whole = fr.rank(frame, "y", ranker=FOREST)

    def within(number: int, how: str) -> fr.Ranking:
        if how == "worker_client":
            with distributed.worker_client() as own:
                return fr.rank(parts_of(frame), "y", ranker=FOREST, client=own)
        own = distributed.get_client() if how == "get_client" else None
        return fr.rank(parts_of(frame), "y", ranker=FOREST, client=own)

    for how in ("worker_client", "get_client", "neither"):
        futures = client.map(within, range(3), how=how, pure=False)
        assert all(same(found, whole) for found in client.gather(futures))


@pytest.mark.usefixtures("way")
def test_annotations_reach_all_tasks(
    frame: pd.DataFrame, client: distributed.Client, cluster: distributed.LocalCluster
) -> None:
    whole = fr.rank(frame, "y", ranker=FOREST)
    seen: dict[str, set[Any]] = {"priority": set(), "resources": set()}

    class Looks(distributed.SchedulerPlugin):
        def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
            state = cluster.scheduler.tasks.get(key)
            if finish == "processing" and state is not None and str(key).startswith("ferrank-"):
                seen["priority"].add(state.priority[0])
                if state.prefix.name not in ASKED_OF_PARTITIONS:
                    seen["resources"].add(tuple((state.resource_restrictions or {}).items()))

    cluster.scheduler.add_plugin(Looks(), name="looks")
    with dask.annotate(priority=7, resources={"SLOT": 1}):
        found = fr.rank(parts_of(frame), "y", ranker=FOREST, client=client)
    cluster.scheduler.remove_plugin("looks")
    assert same(found, whole)
    assert seen == {"priority": {-7}, "resources": {(("SLOT", 1),)}}
    [first, *_] = client.scheduler_info()["workers"]
    with dask.annotate(workers=[first]):
        assert same(fr.rank(parts_of(frame), "y", ranker=FOREST, client=client), whole)


def test_lists_of_futures_are_partitions(frame: pd.DataFrame, client: distributed.Client) -> None:
    whole = fr.rank(frame, "y", ranker=FOREST)
    futures = client.scatter([frame[:200], frame[200:500], frame[500:]])
    assert same(fr.rank(futures, "y", ranker=FOREST, client=client), whole)
    assert same(fr.rank(client.submit(pd.DataFrame, frame), "y", ranker=FOREST, client=client), whole)
    X = client.map(lambda part: part[list("abcd")], futures)
    y = client.map(lambda part: part["y"], futures)
    assert same(fr.ForestRanker(**FOREST.get_params()).fit(X, y, client=client).result_, whole)
    mixed = [futures[0], dask.delayed(frame[200:500]), futures[2]]
    assert same(fr.rank(mixed, "y", ranker=FOREST, client=client), whole)


def test_arrays_of_any_chunks(frame: pd.DataFrame, client: distributed.Client) -> None:
    X, y = frame[list("abcd")].to_numpy(), frame["y"].to_numpy()
    whole = fr.ForestRanker(**FOREST.get_params()).fit(X, y).result_
    for chunks in ((100, 1), (600, 3), ((50, 550), (1, 3))):
        array, targets = da.from_array(X, chunks=chunks), da.from_array(y, chunks=77)
        found = fr.ForestRanker(**FOREST.get_params()).fit(array, targets, client=client).result_
        assert same(found, whole)


def thirds(number: int) -> pd.DataFrame:
    """Return a third of the rows; the test of expressions reads whether it was called, and where."""
    MADE.append(number)
    rng = np.random.default_rng(number)
    frame = pd.DataFrame(rng.normal(size=(200, 5)), columns=[*"abcd", "unused"])
    return frame.assign(y=frame["a"] - frame["d"])


MADE: list[int] = []


def test_expressions_stay_lazy(client: distributed.Client) -> None:
    """A collection is not computed before it is ranked, and columns that are not in it are not made."""
    whole = pd.concat([thirds(number) for number in range(3)])[[*"abcd", "y"]]
    MADE.clear()
    lazy = dd.from_map(thirds, range(3), meta=whole[:0].assign(unused=0.0))
    lazy = lazy.assign(e=lazy["a"] * 2)[[*"abcd", "y"]]
    assert not MADE
    assert same(fr.rank(lazy, "y", ranker=FOREST, client=client), fr.rank(whole, "y", ranker=FOREST))
    # Made once, and held until they are coded.
    assert sorted(MADE) == [0, 1, 2]
