"""Rankings on clusters that lose workers, tasks and data, and that several rankings share."""

from __future__ import annotations

import asyncio
import functools
import gc
import importlib
import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ferrank as fr
from agreement import bits

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")

FOREST = fr.ForestRanker(n_estimators=6, scores=("genie3", "permutation"))
RELIEF = fr.ReliefRanker(n_iterations=50)


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as cluster:
        yield cluster


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows and codes stay in their partitions."""
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-7)
    monkeypatch.setattr("ferrank.distributed.plan._RANK_BYTES", 1)


def third(number: int) -> pd.DataFrame:
    rng = np.random.default_rng(number)
    frame = pd.DataFrame(rng.normal(size=(200, 4)), columns=list("abcd"))
    return frame.assign(y=frame["a"] - frame["d"])


def thirds() -> list[Any]:
    return [dask.delayed(third)(number) for number in range(3)]


def left_of(cluster: distributed.LocalCluster) -> set[str]:
    """Return the tasks of rankings that the scheduler knows, after a while for what is being let go of."""
    for _ in range(100):
        left = {str(key) for key in cluster.scheduler.tasks if str(key).startswith("ferrank-")}
        if not left:
            break
        time.sleep(0.05)
    return left


@pytest.mark.parametrize("task", ["code", "collect", "rows", "rows-here", "part", "nearest"])
def test_a_worker_that_is_killed_changes_no_bit(task: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from kills import PHASES, ranked_while_killed, whole_of

    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
    monkeypatch.setattr("ferrank.distributed.plan._RANK_BYTES", 1)
    ranker = next(name for name, phases in PHASES.items() if task in phases.values())
    whole = whole_of(ranker)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit="2GB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert ranked_while_killed(cluster, client, ranker, task, whole, 0) == (True, "same")


def broken(number: int) -> pd.DataFrame:
    if number == 2:
        raise OSError("the file is gone")
    return third(number)


@pytest.mark.parametrize("scheduler", ["cluster", "synchronous"])
def test_a_partition_that_raises_is_named(scheduler: str, cluster: distributed.LocalCluster) -> None:
    parts = [dask.delayed(broken)(number) for number in range(3)]
    many = [dask.delayed(third)(3)] * 50 + parts
    said = r"partition {}: OSError: the file is gone"
    with distributed.Client(cluster, set_as_default=scheduler == "cluster"):
        for ranker in (FOREST, RELIEF):
            with pytest.raises(fr.DataError, match=said.format(2)) as caught:
                fr.rank(parts, "y", ranker=ranker)
            assert isinstance(caught.value.__cause__, OSError)
        with pytest.raises(fr.DataError, match=said.format(52)):
            fr.rank(many, "y", ranker=FOREST)
    assert not left_of(cluster)


CALLS = itertools.count()


def fickle(number: int, at: int, how: str) -> pd.DataFrame:
    """Return rows; those of partition 1 are others from call number ``at`` on."""
    frame = third(number)
    if number != 1 or next(CALLS) < at:
        return frame
    match how:
        case "values":
            return frame.assign(c=frame["c"].where(frame.index != 150, 0.25))
        case "order":
            return frame[::-1]
        case "targets":
            return frame.assign(y=frame["y"].where(frame.index != 7))
        case _:
            return frame[:199]


@pytest.mark.parametrize("how", ["values", "order", "targets", "number"])
@pytest.mark.parametrize(("at", "ranker"), [(1, FOREST), (2, FOREST), (2, RELIEF)])
@pytest.mark.parametrize("scope", ["global", "partition"])
def test_a_partition_that_gives_other_rows_again_is_named(how: str, at: int, ranker: Any, scope: str) -> None:
    global CALLS
    CALLS = itertools.count()
    settings = ranker.get_params() | {"scope": scope}
    parts = [dask.delayed(fickle, pure=False)(number, at, how) for number in range(3)]
    with (
        dask.config.set(scheduler="synchronous"),
        pytest.raises(fr.DataError, match="partition 1: it had other rows, .* read again"),
    ):
        fr.rank(parts, "y", ranker=type(ranker)(**settings))


def test_checksums_tell_tables_apart_by_their_values() -> None:
    from ferrank.distributed.tables import checksum

    rng = np.random.default_rng(0)
    texts = ["", "a", None, "bc", "d", "a"] * 500
    columns: dict[str, Any] = {
        "number": pa.array(rng.normal(size=3000), mask=rng.random(3000) < 0.1),
        "whole": pa.array(rng.integers(0, 9, 3000)),
        "flag": pa.array(rng.random(3000) < 0.5),
        "text": pa.array(texts),
        "view": pa.array(texts, pa.string_view()),
        "category": pa.array(texts).dictionary_encode(),
        "labels": pa.array([["a"], [], None, ["b", "a"], ["c"], []] * 500),
        "nothing": pa.nulls(3000),
        "when": pa.array(rng.integers(0, 10**9, 3000), pa.timestamp("ms")),
    }
    swapped = np.arange(3000)
    swapped[[3, 2995]] = swapped[[2995, 3]]
    for name, column in columns.items():
        table = pa.table({name: column})
        parts = pa.concat_tables([table[:1000], table[1000:1001], table[1001:]])
        padded = pa.concat_tables([table[:70], table])[70:]
        assert checksum(table) == checksum(parts) == checksum(padded), name
        assert checksum(table) != checksum(table[:2999]) or name == "nothing"
        for places in (swapped, np.roll(np.arange(3000), 1)) if name != "view" else ():
            other = table.take(places)
            assert (checksum(table) == checksum(other)) == table.equals(other), name


@pytest.mark.parametrize("ranker", [fr.ForestRanker(n_estimators=4000), fr.ReliefRanker(n_neighbors=400)])
@pytest.mark.parametrize("stays", [False, True])
def test_of_two_rankings_one_is_cancelled(
    ranker: Any, stays: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Both rank the same partitions, so that they share tasks."""
    if stays:
        monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-7)
    whole = fr.rank(pd.concat([third(number) for number in range(3)]), "y", ranker=FOREST)

    async def both() -> None:
        async with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None, asynchronous=True
            ) as cluster,
            distributed.Client(cluster, asynchronous=True) as client,
        ):
            parts = thirds()
            for phase in ("counting", "profiling", None):
                reached = threading.Event()
                report = lambda found, *_: reached.set() if phase in (found, None) else None  # noqa: B023, E731
                long = asyncio.ensure_future(
                    fr.rank(parts, "y", ranker=ranker, client=client, progress=report)
                )
                other = asyncio.ensure_future(fr.rank(parts, "y", ranker=FOREST, client=client))
                await asyncio.to_thread(reached.wait, 30)
                await asyncio.sleep(0 if phase else 0.1)
                long.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await long
                del long
                gc.collect()
                assert "StoppedError" not in caplog.text
                found = await other
                assert np.array_equal(found.importances(), whole.importances())
            for _ in range(100):
                left = [key for key in cluster.scheduler.tasks if str(key).startswith("ferrank-")]
                if not left:
                    break
                await asyncio.sleep(0.05)
            assert not left
            from ferrank.distributed import process

            assert not process._held
            assert not process._known

    asyncio.run(both())


@pytest.mark.usefixtures("apart")
def test_what_is_held_is_let_go_of(cluster: distributed.LocalCluster) -> None:
    with distributed.Client(cluster):
        for ranker in (FOREST, RELIEF):
            fr.rank(thirds(), "y", ranker=ranker)
            assert not left_of(cluster)


@pytest.mark.parametrize(
    ("limit", "held", "work"),
    [
        (10**9, 0, "grow"),
        (100_000, 0, "grow-apart"),
        (10**9, 999_950_000, "refused"),
        (10_000, 0, "refused"),
    ],
)
def test_what_fits_workers_is_known_before_trees_grow(
    limit: int, held: int, work: str, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ferrank.distributed.resources import Room
    from ferrank.distributed.scheduler import ClusterScheduler

    monkeypatch.setattr(ClusterScheduler, "rooms", [Room(limit, held)])
    whole = fr.rank(pd.concat([third(number) for number in range(3)]), "y", ranker=FOREST)

    def grown() -> dict[str, int]:
        names = [f"ferrank-{name}" for name in ("grow", "grow-apart")]
        known = cluster.scheduler.task_prefixes
        return {name: known[name].state_counts["memory"] if name in known else 0 for name in names}

    before = grown()
    with distributed.Client(cluster):
        if work == "refused":
            said = (
                "targets of all rows, and what scores need of rows out of a bag, take 1 MiB on each worker, "
                "beside .* use workers of .* MiB"
            )
            with pytest.raises(fr.ResourceError, match=said):
                fr.rank(thirds(), "y", ranker=FOREST)
        else:
            found = fr.rank(thirds(), "y", ranker=FOREST)
            assert np.array_equal(found.importances(), whole.importances())
    assert [name for name, count in grown().items() if count > before[name]] == (
        [] if work == "refused" else [f"ferrank-{work}"]
    )


def test_a_limit_that_trees_over_partitions_exceed_is_an_error_and_leaves_nothing(
    cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
    ranker = fr.ForestRanker(n_estimators=3, memory_limit="1MB")
    with distributed.Client(cluster):
        with pytest.raises(fr.ResourceError, match="memory_limit: 1 MiB do not do .* use at least .* MiB"):
            fr.rank(thirds(), "y", ranker=ranker)
        assert not left_of(cluster)


def deadly(number: int) -> pd.DataFrame:
    if number == 1:
        os._exit(1)
    return third(number)


def test_workers_that_die_again_and_again_and_clusters_that_restart_are_clear_errors() -> None:
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address=None, memory_limit="2GB"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        with pytest.raises(fr.ResourceError, match="workers died .* again and again .* too little memory"):
            fr.rank([dask.delayed(deadly)(number) for number in range(2)], "y", n_estimators=3)
        client.wait_for_workers(1)
        restart = threading.Timer(0.0, client.restart)

        def report(phase: str, done: int, total: int) -> None:
            if phase == "growing" and restart.ident is None:
                restart.start()

        with pytest.raises(fr.ResourceError, match="no longer the tasks of this ranking"):
            fr.rank(thirds(), "y", n_estimators=20_000, progress=report)
        restart.join()
        assert fr.rank(thirds(), "y", n_estimators=3).n_rows == 600


@pytest.mark.parametrize(
    ("ranker", "is_apart", "made"),
    [
        (FOREST, False, "tasks.grow"),
        (FOREST, True, "forests_apart.grow_apart"),
        (RELIEF, False, "tasks.search"),
        (RELIEF, True, "relief_apart.search_apart"),
        (fr.ForestRanker(n_estimators=6, scope="partition"), False, "tasks.contribute"),
    ],
)
def test_a_run_goes_on_from_the_contributions_in_a_folder(
    cluster: distributed.LocalCluster,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    ranker: Any,
    is_apart: bool,
    made: str,
) -> None:
    if is_apart:
        request.getfixturevalue("apart")
    module, name = made.split(".")
    whole = importlib.import_module(f"ferrank.distributed.{module}")
    original, calls = getattr(whole, name), []

    @functools.wraps(original)
    def counted(*args: Any) -> Any:
        calls.append(args)
        return original(*args)

    monkeypatch.setattr(whole, name, counted)
    with distributed.Client(cluster):
        expected = bits(fr.rank(thirds(), "y", ranker=ranker))
        calls.clear()
        assert bits(fr.rank(thirds(), "y", ranker=ranker, resume=tmp_path / "run")) == expected
        kept = sorted((tmp_path / "run").glob("*.ferrank"))
        assert len(kept) == len(calls) > 1
        # As after a run that ended early.
        kept[0].unlink()
        calls.clear()
        assert bits(fr.rank(thirds(), "y", ranker=ranker, resume=tmp_path / "run")) == expected
        assert len(calls) == 1
        with pytest.raises(fr.DataError, match="resume: .* is of another run"):
            fr.rank(thirds()[:2], "y", ranker=ranker, resume=tmp_path / "run")
    # A run is split into tasks by the number of workers that it began with.
    kept[-1].unlink()
    calls.clear()
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as other,
        distributed.Client(other),
    ):
        assert bits(fr.rank(thirds(), "y", ranker=ranker, resume=tmp_path / "run")) == expected
    assert len(calls) == 1


def test_a_folder_that_a_run_cannot_go_on_from_is_refused(tmp_path: Path) -> None:
    def ranked(folder: Any) -> fr.Ranking:
        return fr.rank(thirds(), "y", ranker=FOREST, resume=folder)

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(fr.DataError, match="files of something else"):
        ranked(tmp_path / "other")
    with pytest.raises(fr.ResourceError, match="resume: .*notes.txt"):
        ranked(tmp_path / "other" / "notes.txt")
    ranked(tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text("{")
    with pytest.raises(fr.DataError, match="run.json is damaged"):
        ranked(tmp_path / "run")
    expected = bits(ranked(f"memory://{tmp_path}"))
    assert bits(ranked(f"memory://{tmp_path}")) == expected
