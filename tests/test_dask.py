"""Rankings of dask collections: on local schedulers and on a cluster, whole and by partition."""

from __future__ import annotations

import collections
import itertools
import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp

import ferrank as fr

pytestmark = pytest.mark.slow

dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
distributed = pytest.importorskip("distributed")

FOREST = fr.ForestRanker(
    scores=("genie3", "symbolic", "coverage", "permutation", "mdi_oob"),
    n_estimators=10,
    max_bins=40,
    by_target=True,
)
RANKERS = {
    "forest": FOREST,
    "per_target": fr.ForestRanker(
        n_estimators=6, per_target=True, scores=("genie3", "permutation", "mdi_oob")
    ),
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


def two_workers() -> distributed.LocalCluster:
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None, memory_limit="2GB"
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[distributed.LocalCluster]:
    with two_workers() as cluster:
        yield cluster


@pytest.fixture
def cluster_to_spoil() -> Iterator[distributed.LocalCluster]:
    """A cluster of the test's own, whose workers it may kill."""
    with two_workers() as cluster:
        yield cluster


def same(one: fr.Ranking, other: fr.Ranking) -> bool:
    pairs = zip(one.scores.values(), other.scores.values(), strict=True)
    arrays = ("importance", "standard_error", "monte_carlo_error", "rank", "rank_interval", "by_target")
    return (list(one.scores), one.features, one.n_rows, one.model_error) == (
        list(other.scores),
        other.features,
        other.n_rows,
        other.model_error,
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
    phases = {"counting", "profiling", *(["searching"] if name == "relief" else ["growing"])}
    # Where partitions are held, all are coded before trees grow.
    assert {phase for phase, _, _ in reports} - {"coding"} == phases
    assert all(done <= total for _, done, total in reports)
    assert ("profiling", 3, 3) in reports
    # What the dashboard calls them.
    work = {"ferrank-search", "ferrank-pack"} if name == "relief" else {"ferrank-grow", "ferrank-code"}
    assert work | {f"ferrank-{name}" for name in ("batch", "count", "profile", "merge-profiles")} <= set(
        cluster.scheduler.task_prefixes
    )


def once(phase: str, do: Callable[[], object]) -> tuple[Callable[[str, int, int], None], threading.Thread]:
    """Return a `progress` and a thread, which calls `do` once that phase is reported."""
    reached = threading.Event()
    thread = threading.Thread(target=lambda: reached.wait(60) and do())
    thread.start()
    return lambda found, *_: reached.set() if found == phase else None, thread


def test_workers_that_die_join_and_leave_change_nothing(
    frame: pd.DataFrame, cluster_to_spoil: distributed.LocalCluster
) -> None:
    cluster = cluster_to_spoil
    forest = fr.ForestRanker(n_estimators=150, scores=("genie3", "permutation"))
    whole = fr.rank(frame, TARGETS, ranker=forest)
    with distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        # The nanny starts another worker for the one that is killed.
        for do in (lambda: (os.kill(victim, signal.SIGKILL), cluster.scale(3)), lambda: cluster.scale(1)):
            progress, thread = once("growing", do)
            collection = dd.from_pandas(frame, npartitions=4, sort=False)
            found = fr.rank(collection, TARGETS, ranker=forest, progress=progress)
            thread.join()
            assert same(found, whole)


@pytest.mark.parametrize("scheduler", ["cluster", "threads"])
@pytest.mark.usefixtures("keyboard")
def test_ctrl_c_ends_what_workers_do(
    scheduler: str, frame: pd.DataFrame, cluster: distributed.LocalCluster
) -> None:
    forest = fr.ForestRanker(n_estimators=16_000)
    collection = dd.from_pandas(frame, npartitions=2, sort=False)
    pressed = []

    def press() -> None:
        time.sleep(0.7)
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    def interrupted() -> None:
        progress, thread = once("profiling", press)
        with pytest.raises(KeyboardInterrupt):
            fr.rank(collection, "y", ranker=forest, progress=progress, drop=["z"])
        thread.join()
        assert time.monotonic() - pressed[0] < 2
        # The worker is free again.
        assert fr.rank(collection, "y", n_estimators=3, drop=["z"]).n_rows == 900
        assert time.monotonic() - pressed[0] < 10

    if scheduler == "cluster":
        with distributed.Client(cluster):
            interrupted()
    else:
        with dask.config.set(scheduler=scheduler):
            interrupted()


APART = {
    "numbers": ("y", fr.ReliefRanker(n_neighbors=(3, 8), n_iterations=0.8)),
    "classes": ("z", fr.ReliefRanker(sigma=20)),
    "several": (TARGETS, fr.ReliefRanker(n_iterations=100)),
    "gaps": ("z", fr.ReliefRanker(n_iterations=200, missing="informative", unlabelled="ignore")),
    "ranks": ("y", fr.ReliefRanker(n_iterations=100, missing="informative", scaling="rank")),
    "draws": ("z", fr.ReliefRanker(n_iterations=100, target_draws=20, scaling="rank")),
    "lacking": (TARGETS, fr.ReliefRanker(n_iterations=100, missing="informative")),
}


def without_gaps(frame: pd.DataFrame, name: str) -> pd.DataFrame:
    known = frame.assign(z=np.where(frame["x2"] > 0.5, "a", np.where(frame["x3"] > 0, "b", "c")))
    if name == "ranks":
        return frame
    if name in {"gaps", "lacking"}:
        known.loc[::7, "z"] = None
        return known
    return known.assign(x1=frame["x1"].fillna(0), colour=frame["colour"].fillna("none"))


@pytest.mark.parametrize("name", APART)
def test_relief_leaves_rows_where_they_are_if_no_worker_may_hold_all(
    name: str, frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, ranker = APART[name]
    drop = [column for column in TARGETS if column not in target]
    known = without_gaps(frame, name)
    whole = fr.rank(known, target, ranker=ranker, drop=drop)
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
    # A column of all rows may be held.
    monkeypatch.setattr("ferrank.distributed.plan._RANK_BYTES", 1)
    with distributed.Client(cluster):
        for n_partitions in (1, 3, 16):
            collection = dd.from_pandas(known, npartitions=n_partitions, sort=False)
            assert same(fr.rank(collection, target, ranker=ranker, drop=drop), whole)
    assert {"ferrank-part", "ferrank-draw", "ferrank-pick", "ferrank-nearest", "ferrank-search-apart"} <= set(
        cluster.scheduler.task_prefixes
    )


FORESTS_APART = {
    "several": (TARGETS, FOREST),
    "shallow": ("y", fr.ForestRanker(n_estimators=6, scores=("permutation", "mdi_oob"), max_depth=3)),
    "extra": ("y", fr.ForestRanker(n_estimators=5, ensemble="extra_trees")),
}


@pytest.mark.parametrize("name", FORESTS_APART)
def test_forests_leave_codes_where_they_are_if_no_worker_may_hold_all(
    name: str, frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, ranker = FORESTS_APART[name]
    drop = [column for column in TARGETS if column not in target]
    whole = fr.rank(frame, target, ranker=ranker, drop=drop)
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
    with distributed.Client(cluster):
        for n_partitions in (1, 3, 16):
            collection = dd.from_pandas(frame, npartitions=n_partitions, sort=False)
            found = fr.rank(collection, target, ranker=ranker, drop=drop)
            assert same(found, whole)
    expected = {"ferrank-answer", "ferrank-grow-apart", "ferrank-collect"}
    # Extra trees have no bags, so that no row is out of one.
    expected |= set() if name == "extra" else {"ferrank-rows"}
    assert expected <= set(cluster.scheduler.task_prefixes)


def test_each_worker_holds_a_copy_of_what_all_tasks_over_partitions_share(
    frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)

    def made() -> set[str]:
        steps = [(str(key), state) for key, _, state, *_ in cluster.scheduler.transition_log]
        return {key for key, state in steps if key.startswith("ferrank-known-") and state == "memory"}

    before = made()
    with distributed.Client(cluster):
        fr.rank(dd.from_pandas(frame, npartitions=4, sort=False), "y", ranker=FOREST, drop=["z"])
    assert len(made() - before) == len(cluster.workers)


def test_a_worker_that_dies_while_trees_grow_over_partitions_changes_nothing(
    frame: pd.DataFrame, cluster_to_spoil: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fr.rank(frame, TARGETS, ranker=FOREST)
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
    with distributed.Client(cluster_to_spoil) as client:
        victim = next(iter(client.run(os.getpid).values()))
        progress, thread = once("growing", lambda: os.kill(victim, signal.SIGKILL))
        collection = dd.from_pandas(frame, npartitions=16, sort=False)
        found = fr.rank(collection, TARGETS, ranker=FOREST, progress=progress)
        thread.join()
    assert same(found, whole)


def test_trees_over_partitions_grow_on_all_workers(
    frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
    collection = dd.from_pandas(frame, npartitions=4, sort=False)
    with distributed.Client(cluster) as client, distributed.get_task_stream(client) as stream:
        fr.rank(collection, "y", ranker=fr.ForestRanker(n_estimators=4))
    growers = [
        record["worker"] for record in stream.data if str(record["key"]).startswith("ferrank-grow-apart")
    ]
    assert len(growers) == len(set(growers)) == 2


def test_shadows_move_between_partitions(
    frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranker = fr.ForestRanker(
        n_estimators=200, shadows=True, scores=("permutation", "genie3"), max_depth=6, standard_errors=False
    )
    rows = frame[:300]
    whole = fr.rank(rows, "y", ranker=ranker, drop=["z"])
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 2e-7)
    reports: list[tuple[str, int, int]] = []
    with distributed.Client(cluster) as client:
        client.wait_for_workers(1)
        collection = dd.from_pandas(rows, npartitions=3, sort=False)
        report = lambda *step: reports.append(step)  # noqa: E731
        found = fr.rank(collection, "y", ranker=ranker, drop=["z"], progress=report)
    assert same(found, whole)
    np.testing.assert_array_equal(found.relevance.p_value, whole.relevance.p_value)
    # Blocks of trees that see the same shadows grow one after the other.
    growing = [step[1:] for step in reports if step[0] == "growing"]
    assert growing == sorted(growing)
    assert growing[-1][0] == growing[-1][1] >= 10
    assert {"ferrank-spread", "ferrank-shadow"} <= set(cluster.scheduler.task_prefixes)


def test_the_default_ranker_needs_no_worker_that_holds_all(
    frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = frame[:200].drop(columns="z")
    ranker = fr.JointRanker(n_estimators=200)
    whole = fr.rank(rows, "y", ranker=ranker)
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 2e-7)
    # A column of all rows may be held.
    monkeypatch.setattr("ferrank.distributed.plan._RANK_BYTES", 1)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(1)
        collection = dd.from_pandas(rows, npartitions=2, sort=False)
        found = fr.rank(collection, "y", ranker=ranker)
    assert same(found, whole)
    assert {"ferrank-spread", "ferrank-ranked"} <= set(cluster.scheduler.task_prefixes)
    np.testing.assert_array_equal(found.relevance.p_value, whole.relevance.p_value)


@pytest.mark.slow
def test_many_sparse_features_have_the_bits_of_one_machine(
    cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = sp.random_array((600, 1_050), density=0.02, format="csr", rng=np.random.default_rng(8))
    y = X[:, :30].sum(axis=1)
    frame = pd.DataFrame(X.toarray()).add_prefix("x").assign(y=y)
    ranker = fr.ForestRanker(n_estimators=4, max_depth=6)
    expected = ranker.fit(X, y).result_
    with distributed.Client(cluster):
        collection = dd.from_pandas(frame, npartitions=3, sort=False)
        for share in (0.7, 1e-6):
            monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", share)
            found = fr.rank(collection, "y", ranker=ranker)
            np.testing.assert_array_equal(found.importances(), expected.importances(), strict=True)
            assert list(found.model_error.values()) == list(expected.model_error.values())


@pytest.mark.parametrize("are_named", [False, True])
def test_bytes_in_files_move_and_leave_no_file_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, are_named: bool
) -> None:
    from ferrank.distributed.file_bytes import FileBytes

    if are_named:
        monkeypatch.setattr("ferrank.distributed.file_bytes._MOST_OPEN", 0)
    held = [FileBytes(memoryview(b"codes"), str(tmp_path))]
    frames: list[pickle.PickleBuffer] = []
    moved = pickle.dumps(held[0], protocol=5, buffer_callback=frames.append)
    held.append(pickle.loads(moved, buffers=frames))
    assert len(list(tmp_path.iterdir())) == (2 if are_named else 0)
    # As on a machine without this folder.
    elsewhere = moved.replace(tmp_path.name.encode(), b"-" * len(tmp_path.name))
    held.append(pickle.loads(elsewhere, buffers=frames))
    assert [bytes(codes.map()) for codes in held] == 3 * [b"codes"]
    held.clear()
    frames.clear()
    assert not any(tmp_path.iterdir())


def test_a_killed_process_leaves_no_file_of_codes(tmp_path: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "from ferrank.distributed.file_bytes import FileBytes\n"
        "codes = FileBytes(memoryview(b'codes'), sys.argv[1])\n"
        "print(bytes(codes.map()).decode(), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, tmp_path], capture_output=True, check=False)
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, b"codes\n")
    assert not any(tmp_path.iterdir())


def test_sums_of_partitions_are_those_of_all_rows(frame: pd.DataFrame) -> None:
    """Tops of trees are grown from sums; the tests of the engine hold the trees against those in memory."""
    from ferrank import _core
    from ferrank.distributed import forests_apart, tasks
    from ferrank.distributed.resources import TaskResources
    from ferrank.distributed.tables import Batch
    from ferrank.run import finish

    table = pa.table(frame)
    ranker = fr.ForestRanker()
    settings = ranker._settings()
    roles = ranker._own_roles() | {"target": ["y"], "drop": ["z"], "weight": None, "groups": None}
    roles["categorical_features"] = []
    asked = (table.schema, roles, settings)
    every = Batch.of(0, [table])
    whole = tasks.profile(every, every.checksums, asked, 0, None, None)
    source = _core.Source.table(table.slice(0, 0), "table")
    request = json.dumps([[0, [{"Open": [0, 1, 5]}]], [7, [{"Open": [2]}]]]).encode()
    resources = TaskResources(threads=1, memory=None, temp_dir=None, processes=1)

    def sums(ends: list[int]) -> np.ndarray:
        parts = [table.slice(first, end - first) for first, end in itertools.pairwise(ends)]
        batches = (Batch.of(number, [part]) for number, part in enumerate(parts))
        codes = [
            forests_apart.code(batch, batch.checksums, "run", asked, whole, None, resources)
            for batch in batches
        ]
        answers = [forests_apart.answer(code) for code in codes]
        apart = _core.Apart.of(source, roles, settings, whole, answers)
        found = [
            finish(apart.sums((code.map(), None, first), request, 1))
            for code, first in zip(codes, ends, strict=False)
        ]
        return forests_apart.add_sums(*found)

    assert np.array_equal(sums([0, 900]), sums([0, 1, 300, 900]))
    assert sums([0, 900])[::2].sum() > 0


def test_a_forest_that_reads_all_codes_says_why(
    frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
    monkeypatch.setattr("ferrank.distributed.plan.BESIDE_FRACTION", 1e-6)
    collection = dd.from_pandas(frame, npartitions=2, sort=False)
    with (
        distributed.Client(cluster),
        pytest.raises(fr.ResourceError, match="codes of all rows .per_target: "),
    ):
        fr.rank(collection, TARGETS, ranker=RANKERS["per_target"])


def test_a_worker_that_dies_while_rows_are_searched_apart_changes_nothing(
    frame: pd.DataFrame, cluster_to_spoil: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = without_gaps(frame, "numbers")
    ranker = fr.ReliefRanker(n_iterations=1.0, n_neighbors=40)
    whole = fr.rank(known, "y", ranker=ranker, drop=["z"])
    monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
    with distributed.Client(cluster_to_spoil) as client:
        victim = next(iter(client.run(os.getpid).values()))
        progress, thread = once("searching", lambda: os.kill(victim, signal.SIGKILL))
        collection = dd.from_pandas(known, npartitions=16, sort=False)
        found = fr.rank(collection, "y", ranker=ranker, drop=["z"], progress=progress)
        thread.join()
    assert same(found, whole)


def test_workers_share_the_memory_and_keep_to_their_own_limit(
    frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ferrank.distributed.resources import TaskResources

    collection = dd.from_pandas(frame, npartitions=2, sort=False)
    with distributed.Client(cluster) as client:
        for asked, limit in [(None, 1_400_000_000), (10**9, 10**9), (10**12, 1_400_000_000)]:
            assert client.submit(TaskResources(1, asked, None, 2).limit).result() == limit
        for ranker in ("forest", "relief"):
            with pytest.raises(fr.ResourceError, match="memory_limit: 1 MiB do not do .* use at least"):
                fr.rank(collection, TARGETS, ranker=ranker, memory_limit="1MiB")
        monkeypatch.setattr("ferrank.distributed.plan.SPILL_FRACTION", 1e-6)
        monkeypatch.setattr("ferrank.distributed.plan.BESIDE_FRACTION", 1e-6)
        refused = [(RANKERS["per_target"], "the codes of all rows"), (fr.ReliefRanker(), "all rows")]
        for refusing, what in refused:
            with pytest.raises(fr.ResourceError, match=rf"{what}.* take 1 MiB on each worker"):
                fr.rank(collection, TARGETS, ranker=refusing)
    alone, shared = (TaskResources(1, None, None, processes).limit() for processes in (1, 4))
    assert alone is None or (shared is not None and shared < alone)


def test_estimators_take_frames_arrays_and_delayed_partitions(frame: pd.DataFrame) -> None:
    features = [f"x{i}" for i in range(4)]
    X, y, weight = frame[features].to_numpy(), frame["y"].to_numpy(), np.arange(900) % 3 + 0.5
    forest = fr.ForestRanker(n_estimators=8, n_features_to_select=2)
    alone = fr.ForestRanker(**forest.get_params()).fit(X, y, weight).result_
    chunks = (250, 400, 250)
    arrays = [
        da.from_array(side, chunks=(chunks, -1) if side.ndim == 2 else (chunks,)) for side in (X, y, weight)
    ]
    with dask.config.set(scheduler="threads"):
        assert same(forest.fit(*arrays).result_, alone)
        assert forest.transform(arrays[0]).compute().shape == (900, 2)
        assert same(forest.fit(arrays[0].rechunk((300, 2)), *arrays[1:]).result_, alone)
        halves = [slice(0, 500), slice(500, 900)]
        parts = [[dask.delayed(side[half]) for half in halves] for side in (X, y, weight)]
        assert same(forest.fit(*parts).result_, alone)
        # The selected features have gaps, which tell something about the target.
        found = np.concatenate(dask.compute(*forest.transform(parts[0])))
        np.testing.assert_array_equal(found, forest.transform(X))

        table = frame.assign(weight=weight)
        collection = dd.from_pandas(table, npartitions=3, sort=False)
        forest.fit(collection[features], collection[TARGETS], collection["weight"])
        by_frame = fr.ForestRanker(**forest.get_params()).fit(frame[features], frame[TARGETS], weight)
        assert same(forest.result_, by_frame.result_)
        assert list(forest.feature_names_in_) == features
        assert forest.n_features_in_ == 4
        assert list(forest.transform(collection[features]).columns) == forest.get_feature_names_out().tolist()

        relief = fr.ReliefRanker(n_iterations=50).fit(
            collection[features], collection["z"].fillna(0).astype(str)
        )
        alone = fr.ReliefRanker(n_iterations=50).fit(frame[features], frame["z"].fillna(0).astype(str))
        assert same(relief.result_, alone.result_)


LABELS = [["a/b"], ["a/c"], ["d"], [], ["a/b", "d"]]
PARENTS = {"a": None, "b": "a", "c": "a", "d": None}
SMALL = {"n_estimators": 5, "scores": ("genie3", "permutation")}
Case = tuple[list[Any], Any, dict[str, Any]]


def split(rows: Any, n_parts: int) -> list[Any]:
    size = len(rows) // n_parts
    return [rows[first : first + size] for first in range(0, len(rows), size)]


def sorted_out(case: str, frame: pd.DataFrame) -> Case:
    """Partitions, the same rows in one piece, and how they are ranked."""
    head, tail = frame[:450], frame[450:]
    text = frame.assign(colour=frame["colour"].astype(object))
    y = frame["y"].where(np.arange(900) >= 300)
    labels = [LABELS[number % 5] for number in frame["count"]]
    match case:
        case "empty parts":
            return [frame[:0], frame[:200], frame[200:200], frame[200:], frame[:0]], frame, {}
        case "a row each":
            return [frame[n : n + 1] for n in range(25)], frame[:25], {}
        case "integers and decimals":
            halves = [head, tail.assign(count=tail["count"] + 0.5)]
            return halves, pd.concat([head.assign(count=head["count"] * 1.0), halves[1]]), {}
        case "categories that others lack":
            halves = [
                head.assign(colour=head["colour"].astype("category")),
                tail.assign(colour=tail["colour"].replace("red", "blue").astype("category")),
            ]
            whole = pd.concat([half.assign(colour=half["colour"].astype(object)) for half in halves])
            return halves, whole, {}
        case "a column without values":
            gap = frame.assign(colour=frame["colour"].where(frame.index >= 450), x0=np.nan)
            gap.loc[450:, "x0"] = 1.0
            halves = [gap[:450].assign(x0=None), gap[450:].assign(colour=gap["colour"].astype("category"))]
            return halves, gap, {}
        case "texts of all kinds":
            kinds = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
            parts = [pa.Table.from_pandas(part, preserve_index=False) for part in split(text, 4)]
            column = parts[0].column_names.index("colour")
            return (
                [
                    part.set_column(column, "colour", part["colour"].cast(kind))
                    for part, kind in zip(parts, kinds, strict=True)
                ],
                frame,
                {},
            )
        case "frames, tables, batches and columns":
            tables = [pa.Table.from_pandas(part, preserve_index=False) for part in split(frame, 3)]
            columns = {name: tables[2][name] for name in tables[2].column_names}
            return [frame[:300], tables[1].to_batches()[0], columns], frame, {}
        case "arrays":
            array = frame[["x0", "x1", "y"]].to_numpy()
            return split(array, 3), array, {"target": "x2"}
        case "label sets":
            sets = frame.drop(columns=TARGETS).assign(y=labels)
            return [sets[:300], sets[300:]], sets, {"target": "y"}
        case "label sets below others":
            sets = frame.drop(columns=TARGETS).assign(y=[[n[-1] for n in names] for names in labels])
            return [sets[:300], sets[300:]], sets, {"target": "y", "hierarchy": PARENTS}
        case "rows without a target":
            part = frame.assign(y=y).drop(columns="z")
            settings = {"forest": {"supervision": 0.4}, "relief": {"influence": (0.25, 1.0)}}
            return split(part, 3), part, {"target": "y", "by_ranker": settings}
        case "rows left out":
            part = frame.assign(y=y).drop(columns="z")
            return split(part, 3), part, {"target": "y", "unlabelled": "ignore"}
        case "each target on its own":
            settings = {"forest": {"per_target": True}, "relief": {"n_neighbors": (2, 9), "sigma": (1, 20)}}
            return split(frame, 3), frame, {"target_weights": (1.0, 3.0), "by_ranker": settings}
        case "several labels":
            both = frame.drop(columns=TARGETS).assign(p=frame["x0"] > 0, q=frame["x2"] > 1)
            distances = {"relief": {"target_distance": ("hamming", "f1", "accuracy", "subset")}}
            return split(both, 3), both, {"target": ["p", "q"], "by_ranker": distances}
        case "covariates":
            adjusted = {
                "covariates": ["colour", "x1"],
                "distance_features": {"x0": 1, "count": 0.5},
                "n_neighbors": (2, 9),
            }
            return split(frame, 3), frame, {"by_ranker": {"relief": adjusted}}
        case "classes":
            classes = frame.drop(columns=TARGETS)
            settings = {"relief": {"scores": ("relief", "myopic")}}
            return (
                split(classes, 3),
                classes,
                {"target": "count", "task": "classification", "by_ranker": settings},
            )
    raise AssertionError(case)


CASES = (
    "empty parts",
    "a row each",
    "integers and decimals",
    "categories that others lack",
    "a column without values",
    "texts of all kinds",
    "frames, tables, batches and columns",
    "arrays",
    "label sets",
    "label sets below others",
    "rows without a target",
    "rows left out",
    "each target on its own",
    "several labels",
    "covariates",
    "classes",
)


def check(case: str, frame: pd.DataFrame) -> None:
    parts, whole, how = sorted_out(case, frame)
    how = {"target": TARGETS} | how
    target, by_ranker = how.pop("target"), how.pop("by_ranker", {})
    for ranker, base in (("forest", SMALL), ("relief", {"n_neighbors": 3})):
        settings = base | how | by_ranker.get(ranker, {})
        delayed = [dask.delayed(part) for part in parts]
        assert same(
            fr.rank(delayed, target, ranker=ranker, **settings),
            fr.rank(whole, target, ranker=ranker, **settings),
        ), ranker


@pytest.mark.parametrize("case", CASES)
def test_partitions_of_all_sorts_are_one_table(case: str, frame: pd.DataFrame) -> None:
    with dask.config.set(scheduler="threads"):
        check(case, frame)


@pytest.mark.parametrize("case", ["label sets", "rows without a target", "covariates"])
def test_partitions_of_all_sorts_on_a_cluster(
    case: str, frame: pd.DataFrame, cluster: distributed.LocalCluster
) -> None:
    with distributed.Client(cluster):
        check(case, frame)


def test_processes_of_a_local_scheduler(frame: pd.DataFrame) -> None:
    with (
        ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool,
        dask.config.set(scheduler="processes", pool=pool),
    ):
        check("rows without a target", frame)
        with pytest.raises(fr.DataError, match="partition 1: column 'x0': the value inf"):
            fr.rank([dask.delayed(frame), dask.delayed(frame.assign(x0=np.inf))], TARGETS)


def test_targets_are_cut_like_the_features(frame: pd.DataFrame, tmp_path: Path) -> None:
    names = ["x0", "x2", "count"]
    forest = fr.ForestRanker(n_estimators=5)
    known, weight = frame.assign(w=np.arange(900) % 3 + 0.5), np.arange(900) % 3 + 0.5
    whole = fr.ForestRanker(n_estimators=5).fit(frame[names], frame["y"], weight).result_
    by_number = fr.ForestRanker(n_estimators=5).fit(frame[names].to_numpy(), frame["y"], weight).result_
    three, five = (dd.from_pandas(known, npartitions=n) for n in (3, 5))
    shifted = three.repartition(divisions=[0, 100, 800, 899])
    unknown = three[names].to_dask_array()
    with dask.config.set(scheduler="threads"):
        number_by_number = da.from_array(frame["y"].to_numpy(), chunks=77), da.from_array(weight, chunks=900)
        for y, w in [(five["y"], shifted[["w"]]), (shifted["y"], three["w"].values), number_by_number]:
            assert same(forest.fit(three[names], y, w).result_, whole)
        for X in (unknown, da.from_array(frame[names].to_numpy(), chunks=(400, 2))):
            assert same(forest.fit(X, *number_by_number).result_, by_number)
        assert same(forest.fit(unknown, three["y"], three["w"].values).result_, by_number)
        # dask reads one column of several files at a time.
        wide = pd.DataFrame({f"x{n}": frame["x0"] * n for n in range(40)}).assign(y=frame["y"])
        dd.from_pandas(wide, npartitions=6, sort=False).to_parquet(tmp_path)
        lazy, features = dd.read_parquet(tmp_path), [f"x{n}" for n in range(40)]
        assert len(lazy["y"].to_delayed()) < len(lazy[features].to_delayed())
        assert same(
            forest.fit(lazy[features], lazy["y"]).result_, forest.fit(wide[features], wide["y"]).result_
        )
        sets = [LABELS[number % 5] for number in frame["count"]]
        parts = [[dask.delayed(side[:200]), dask.delayed(side[200:])] for side in (frame[names], sets)]
        for settings in ({"task": "hierarchical"}, {"hierarchy": {"a/b": None, "a/c": None, "d": None}}):
            forest = fr.ForestRanker(n_estimators=5, **settings)
            assert same(forest.fit(*parts).result_, forest.fit(frame[names], sets).result_)
        forest = fr.ForestRanker(n_estimators=5, task="unsupervised")
        assert same(forest.fit(three[names]).result_, forest.fit(frame[names]).result_)
        one = dask.delayed(frame[names])
        assert same(forest.fit(one).result_, forest.fit(frame[names]).result_)
        with pytest.raises(fr.DataError, match="y: 800 rows, X has 900"):
            forest.set_params(task=None).fit(three[names], five["y"].loc[:799])
        with pytest.raises(fr.DataError, match="y: None was given"):
            forest.fit(three[names])


def n_done(cluster: distributed.LocalCluster, name: str) -> int:
    """Return how often tasks called `name` were done."""
    prefix = cluster.scheduler.task_prefixes.get(name)
    return prefix.state_counts["memory"] if prefix else 0


def test_partitions_with_more_categories_together_than_codes() -> None:
    """Each has ten that no other has; codes have 8 bits, and 25 partitions are worked on together."""
    rng = np.random.default_rng(4)
    names = [f"c{n:04}" for n in range(4_000)]
    parts = [
        pd.DataFrame({"x": pd.Categorical(rng.choice(names[10 * n : 10 * n + 10], 40)), "y": rng.random(40)})
        for n in range(400)
    ]
    whole = pd.concat([part.astype({"x": object}) for part in parts], ignore_index=True)
    ranker = fr.ForestRanker(n_estimators=5)
    with dask.config.set(scheduler="threads"):
        found = fr.rank([dask.delayed(part) for part in parts], "y", ranker=ranker)
    assert same(found, fr.rank(whole, "y", ranker=ranker))


def test_of_partitions_that_are_worked_on_together_one_that_cannot_be_read_is_named() -> None:
    parts = [pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [0.5, 1.5, 2.5]}) for _ in range(64)]
    integers = [part.astype({"x": int}) for part in parts]
    integers[43].loc[1, "x"] = 2**60 + 1  # more digits than a float has
    mixed = [*parts[:40], *integers[40:]]
    with (
        dask.config.set(scheduler="threads"),
        pytest.raises(fr.FerrankError, match="partition 43: column 'x'"),
    ):
        fr.rank([dask.delayed(part) for part in mixed], "y", n_estimators=2)


each_ranker = pytest.mark.parametrize(
    "ranker", [fr.ForestRanker(n_estimators=5), fr.ReliefRanker(n_iterations=20)]
)


@each_ranker
@pytest.mark.parametrize("are_larger", [False, True])
def test_partitions_that_were_held_can_be_made_anew(
    are_larger: bool,
    ranker: fr.ForestRanker | fr.ReliefRanker,
    frame: pd.DataFrame,
    cluster: distributed.LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No worker may hold all; with ``are_larger`` workers turn out not to hold their partitions, either."""
    from ferrank.distributed import plan

    monkeypatch.setattr(plan._Run, "_fits", lambda *_: False)
    if are_larger:
        monkeypatch.setattr(plan._Run, "_can_hold", lambda run, _: not run._are_held)
    known = frame.drop(columns="z").dropna()
    parts = [dask.delayed(known[n::3].reset_index(drop=True)) for n in range(3)]
    with distributed.Client(cluster):
        found = fr.rank(parts, "y", ranker=ranker)
    assert same(found, fr.rank(pd.concat([known[n::3] for n in range(3)]), "y", ranker=ranker))


@pytest.mark.parametrize("target", ["y", "code"])
@pytest.mark.parametrize(
    "values", [[5, 3, 9, 1], [0.5, 2.5, -1.0, 9.0], list(pd.date_range("2020", periods=4))]
)
def test_categories_of_numbers_and_dates_are_nominal_in_partitions_too(
    values: list[Any], target: str
) -> None:
    rng = np.random.default_rng(0)
    code = pd.Categorical.from_codes(rng.integers(0, 4, 90), values)
    table = pd.DataFrame({"a": rng.normal(size=90), "code": code, "y": ["p", "q", "r"] * 30})
    one_less = table[:30].assign(code=table["code"][:30].cat.remove_categories(values[0]))
    nothing = table[60:].assign(code=pd.Categorical([None] * 30))
    whole = pd.concat([one_less.astype({"code": object}), table[30:60], nothing.astype({"code": object})])
    whole["code"] = pd.Categorical(whole["code"], values)
    for ranker in (
        fr.ForestRanker(n_estimators=5, unlabelled="ignore"),
        fr.ReliefRanker(unlabelled="ignore"),
    ):
        with dask.config.set(scheduler="threads"):
            parts = [dask.delayed(part) for part in (one_less, table[30:60], nothing)]
            found = fr.rank(parts, target, ranker=ranker)
        assert found.task == "classification"
        assert same(found, fr.rank(whole, target, ranker=ranker))


def counted(number: int, rows: pd.DataFrame, folder: str) -> pd.DataFrame:
    """Return ``rows``, and leave a file for each time that they were made."""
    tempfile.mkstemp(prefix=f"{number}-", dir=folder)
    return rows


@each_ranker
@pytest.mark.parametrize("is_held", [False, True])
def test_partitions_that_workers_can_hold_are_made_once(
    is_held: bool,
    ranker: fr.ForestRanker | fr.ReliefRanker,
    frame: pd.DataFrame,
    cluster: distributed.LocalCluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not is_held:
        monkeypatch.setattr("ferrank.distributed.plan._HELD", 10**9)
    known = frame.drop(columns="z").dropna()
    parts = [dask.delayed(counted)(n, known[n::3], str(tmp_path)) for n in range(3)]
    with distributed.Client(cluster):
        found = fr.rank(parts, "y", ranker=ranker)
    assert found.n_rows == len(known)
    made = collections.Counter(path.name.split("-")[0] for path in tmp_path.iterdir())
    assert set(made) == {"0", "1", "2"}
    assert (max(made.values()) == 1) == is_held


@pytest.mark.parametrize("held", [False, True])
def test_many_small_partitions_are_worked_on_together(
    held: bool, frame: pd.DataFrame, cluster: distributed.LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = frame.drop(columns="z")
    parts = [dask.delayed(rows[first : first + 9]) for first in range(0, 900, 9)]
    forest = fr.ForestRanker(n_estimators=5)
    if not held:
        monkeypatch.setattr("ferrank.distributed.plan._HELD", 10**9)
    with distributed.Client(cluster) as client:
        client.wait_for_workers(1)
        before = n_done(cluster, "ferrank-batch")
        assert same(fr.rank(parts, "y", ranker=forest), fr.rank(rows, "y", ranker=forest))
        n_batches = n_done(cluster, "ferrank-batch") - before
        # A few are counted alone before; those that are not held are read for each pass.
        assert n_batches < (50 if held else 100)
        wrong = dask.delayed(rows[:9].assign(x0=np.inf))
        with pytest.raises(fr.DataError, match=r"partitions \d+ to \d+: column 'x0': the value inf"):
            fr.rank([*parts[:70], wrong, *parts[71:]], "y", ranker=forest)
        fewer = dask.delayed(rows[:9].drop(columns="x0"))
        with pytest.raises(fr.DataError, match="partition 70: its columns .* 'x0' is not in both"):
            fr.rank([*parts[:70], fewer, *parts[71:]], "y", ranker=forest)


def nine_rows(frame: pd.DataFrame, first: int) -> pd.DataFrame:
    return frame[first : first + 9]


@pytest.mark.parametrize(
    ("how", "is_one_task"), [("alone", True), ("shared", False), ("future", False), ("annotated", False)]
)
def test_many_small_partitions_are_made_by_one_task_where_they_can_be(
    how: str,
    is_one_task: bool,
    frame: pd.DataFrame,
    cluster: distributed.LocalCluster,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ferrank.distributed import partitions

    made, graphs = [], partitions.graphs_of

    def watched(groups: list[list[object]]) -> object:
        made.append(graphs(groups))
        return made[-1]

    monkeypatch.setattr(partitions, "graphs_of", watched)
    rows = frame.drop(columns="z").dropna().reset_index(drop=True)
    firsts = range(0, len(rows), 9)
    with distributed.Client(cluster) as client, dask.annotate(**{"retries": 2} if how == "annotated" else {}):
        make = dask.delayed(nine_rows)
        shared = {"shared": dask.delayed(rows), "future": client.scatter(rows)}.get(how)
        own = [rows[first : first + 9] for first in firsts]
        parts = [
            make(own[n] if shared is None else shared, 0 if shared is None else first)
            for n, first in enumerate(firsts)
        ]
        found = fr.rank(parts, "y", ranker=fr.ForestRanker(n_estimators=5))
    assert same(found, fr.rank(rows, "y", ranker=fr.ForestRanker(n_estimators=5)))
    assert [graph is not None for graph in made] == [is_one_task] * len(made)
    assert made


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
            ((frame[:9].assign(x0="a"), frame), "partition 1: column 'x0' is float, .* large_string"),
            ((frame, frame.assign(colour=["a", 1] * 450)), "partition 1: table: .* column colour"),
            ((frame, frame.assign(colour="['a', 'b']")), "partition 1: column 'colour' holds lists .* text"),
            ((frame.assign(count=2**60 + 1), frame.assign(count=0.5)), "partition 0: column 'count' cannot"),
            ((frame[:0], frame[:0]), "no rows"),
            ((frame, frame.drop(columns="z")), "partition 1: no column 'z'"),
        ]:
            with pytest.raises((fr.DataError, fr.ColumnTypeError), match=said) as caught:
                ranked(*parts)
            of_dask = Path(dask.__file__).parent
            assert not any(Path(frame.path).is_relative_to(of_dask) for frame in caught.traceback)
        with pytest.raises(fr.DataError, match="have no target value"):
            ranked(frame, frame.assign(y=np.nan, z=np.nan))
        with pytest.raises(fr.SettingError, match="scope"):
            ranked(frame, scope="both")
        with pytest.raises(fr.SettingError, match="3 trees for 4 partitions"):
            ranked(*[frame[i::4] for i in range(4)], n_estimators=3, scope="partition")
        with pytest.raises(fr.SettingError, match="myopic"):
            fr.rank([dask.delayed(frame)], "colour", ranker="relief", scores="myopic", scope="partition")
        with pytest.raises(fr.SettingError, match="until"):
            ranked(frame, until="stable")
        X = dd.from_pandas(frame[["x0", "x1"]], npartitions=2, sort=False)
        with pytest.raises(fr.ColumnTypeError, match="give a dask collection"):
            fr.ForestRanker().fit(X, frame["y"])


def test_columns_of_partitions_go_by_name(frame: pd.DataFrame) -> None:
    turned = frame[frame.columns[::-1]]
    parts = [dask.delayed(part) for part in (frame[:400], turned[400:])]
    last = frame[[*frame.columns.drop("y"), "y"]]
    with dask.config.set(scheduler="synchronous"):
        assert same(
            fr.rank(parts, TARGETS, n_estimators=4, max_bins=20),
            fr.rank(frame, TARGETS, n_estimators=4, max_bins=20),
        )
        with pytest.raises(fr.DataError, match="partition 1: .* another order .*instead of target_last"):
            fr.rank([dask.delayed(last), dask.delayed(last[last.columns[::-1]])], target_last=1)


def test_a_partition_without_a_text_or_a_number(frame: pd.DataFrame) -> None:
    """pandas has missing texts, where all are missing, as numbers."""
    rows = frame.assign(whole=np.arange(900) % 5)
    empty = rows[:300].assign(colour=np.nan, x1=np.nan, whole=np.nan)
    with dask.config.set(scheduler="synchronous"):
        for parts in ([empty, rows[300:]], [rows[300:], empty]):
            found = fr.rank([dask.delayed(part) for part in parts], TARGETS, n_estimators=4)
            whole = pd.concat([part.astype({"colour": object}) for part in parts], ignore_index=True)
            assert same(found, fr.rank(whole, TARGETS, n_estimators=4))


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
