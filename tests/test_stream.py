"""Rankers fed with batches: the same bits for any cutting, bounded memory, drift, errors."""

import copy
import ctypes
import gc
import pickle
import re
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.metrics import roc_auc_score

import ferrank as fr
from ferrank import ForestRanker, Ranking, ReliefRanker
from ferrank.run import finish

Batch = tuple[Any, ...]

RANKERS = [
    ForestRanker(n_estimators=5, block_rows=80, reservoir_rows=50),
    ForestRanker(
        n_estimators=3,
        scores=("genie3", "permutation", "symbolic", "mdi_oob"),
        block_rows=50,
        reservoir_rows=120,
        half_life=60,
    ),
    ReliefRanker(n_neighbors=(2, 5), block_rows=80, reservoir_rows=50),
    ReliefRanker(n_iterations=25, block_rows=60, reservoir_rows=60, half_life=100),
]


def same(a: Ranking, b: Ranking) -> bool:
    """Whether two rankings have the same bits."""
    arrays = ("importance", "standard_error", "monte_carlo_error", "rank", "rank_interval", "by_target")
    whole = (a.task, a.n_rows, a.features, a.targets, list(a.scores))
    return whole == (b.task, b.n_rows, b.features, b.targets, list(b.scores)) and all(
        np.array_equal(
            np.asarray(getattr(x, name), dtype=float),
            np.asarray(getattr(y, name), dtype=float),
            equal_nan=True,
        )
        for x, y in zip(a.scores.values(), b.scores.values(), strict=True)
        for name in arrays
    )


def frame(n_rows: int, seed: int = 0) -> pd.DataFrame:
    """Features of all kinds with gaps; ``y`` follows ``a`` and ``word``."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n_rows)).round(2)
    word = rng.choice(["red", "green", "blue"], size=n_rows)
    y = a + (word == "red") + 0.1 * rng.normal(size=n_rows)
    return pd.DataFrame(
        {
            "a": np.where(rng.random(n_rows) < 0.1, np.nan, a),
            "b": b.astype(np.float32),
            "count": rng.integers(0, 9, size=n_rows),
            "word": np.where(rng.random(n_rows) < 0.1, None, word),
            "y": y,
        }
    )


def fed(ranker: Any, batches: Iterator[Batch] | list[Batch]) -> Any:
    """A ranker that was given these batches."""
    ranker = clone(ranker)
    for batch in batches:
        ranker.partial_fit(*batch)
    return ranker


def feed(ranker: Any, batches: Iterator[Batch] | list[Batch]) -> Any:
    """A ranker that was given these batches, with a ranking of all complete blocks or of the rows so far."""
    return fed(ranker, batches).partial_fit()


def cut(data: pd.DataFrame, ends: list[int]) -> Iterator[Batch]:
    for start, end in zip([0, *ends], [*ends, len(data)], strict=True):
        if end > start:
            rows = data.iloc[start:end]
            yield rows.drop(columns="y"), rows["y"]


CONTAINERS = [
    lambda X, y: (X, y),
    lambda X, y: (pa.Table.from_pandas(X, preserve_index=False), pa.array(y)),
    lambda X, y: (pl.from_pandas(X), y.to_numpy()),
    lambda X, y: (X.astype({"word": "category"}), list(y)),
]


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
@settings(max_examples=12, deadline=None)
@given(
    ends=st.lists(st.integers(0, 330), max_size=12).map(sorted),
    containers=st.lists(st.sampled_from(CONTAINERS), min_size=13, max_size=13),
)
def test_neither_cutting_nor_containers_change_a_bit(ranker: Any, ends: list[int], containers: Any) -> None:
    data = frame(330)
    whole = feed(ranker, cut(data, [])).result_
    batches = [make(*batch) for make, batch in zip(containers, cut(data, ends), strict=False)]
    assert same(feed(ranker, batches).result_, whole)
    assert whole.n_rows == 330 // ranker.block_rows * ranker.block_rows


def cases() -> Iterator[Any]:
    """Rankers of all tasks, with targets for the features of ``frame(300)``."""
    data, rng = frame(300), np.random.default_rng(1)
    y = data["y"].to_numpy()
    classes = np.array(["low", "mid", "high"])[np.digitize(y, [0, 1])]
    labels = pd.DataFrame({"l0": y > 0, "l1": y > 1, "l2": rng.random(300) < 0.3})
    several = pd.DataFrame({"y0": y, "y1": classes})
    sets = [["animal/koala"] if value > 0 else ["animal", "plant"] for value in y]
    gaps = np.where(rng.random(300) < 0.6, np.nan, y)
    forest, relief = {"n_estimators": 6}, {"n_neighbors": [3, 8], "sigma": [None, 2.0]}
    yield ForestRanker(**forest, scores=("permutation", "coverage")), classes
    yield ForestRanker(**forest, ensemble="extra_trees", by_target=True), several
    yield ForestRanker(**forest, per_target=True, by_target=True, target_weights=[1, 3]), several
    yield ForestRanker(**forest, by_target=True, max_samples=0.5), labels
    yield ForestRanker(**forest, task="hierarchical"), sets
    yield ForestRanker(**forest, supervision=0.5), gaps
    yield ForestRanker(**forest, unlabelled="ignore"), gaps
    yield ForestRanker(**forest, task="unsupervised"), None
    yield ReliefRanker(**relief, scores=("relief", "myopic")), classes
    yield ReliefRanker(**relief), several
    yield ReliefRanker(**relief, per_target=True, target_weights=[1, 3]), several
    yield ReliefRanker(**relief, target_distance=["hamming", "f1"]), labels
    yield ReliefRanker(**relief, task="hierarchical"), sets
    yield ReliefRanker(**relief, influence=(0.2, 0.8)), gaps


def error(ranking: Ranking, ranker: Any) -> np.ndarray:
    """Return the errors of a stream: with all rows as queries Relief has no Monte Carlo error."""
    score = ranking.score()
    return score.monte_carlo_error if isinstance(ranker, ForestRanker) else score.standard_error


@pytest.mark.parametrize(("ranker", "y"), list(cases()))
@pytest.mark.parametrize("block_rows", [90, 300, 1000], ids=["blocks", "block", "less"])
def test_all_tasks_are_ranked_as_by_fit(ranker: Any, y: Any, block_rows: int) -> None:
    X = frame(300).drop(columns="y")
    ranker = clone(ranker).set_params(block_rows=block_rows, reservoir_rows=200)
    # Streams of forests have Monte Carlo errors alone.
    errors = {"standard_errors": False} if isinstance(ranker, ForestRanker) else {}
    fitted = clone(ranker).set_params(**errors).fit(X, y)
    rows = [np.arange(0, 110), np.arange(110, 300)]
    part = (
        (lambda rows: None)
        if y is None
        else (lambda rows: y.iloc[rows] if hasattr(y, "iloc") else [y[row] for row in rows])
    )
    done = feed(ranker, [(X.iloc[taken], part(taken)) for taken in rows])
    found, wanted = done.result_, fitted.result_
    if wanted.n_rows <= block_rows:
        assert same(found, wanted)
    assert list(found.scores) == list(wanted.scores)
    assert all(np.isfinite(found.importances(score)).all() for score in found.scores)
    if y is not None:
        assert found.top(1)[0] in {"a", "word"}
    assert done.feature_importances_.shape == (4,)
    assert done.transform(X).shape == (300, 2)


def stationary(rng: np.random.Generator, n_rows: int) -> Batch:
    X = rng.normal(size=(n_rows, 20))
    return X, X[:, :4] @ [2, 1.6, 1.2, 0.8] + X[:, 4] * X[:, 5] + rng.normal(size=n_rows)


@pytest.mark.parametrize(
    "ranker",
    [
        ForestRanker(n_estimators=20, block_rows=500, reservoir_rows=500),
        ReliefRanker(block_rows=500, reservoir_rows=500),
    ],
    ids=["forest", "relief"],
)
def test_a_stream_without_drift_is_ranked_as_all_its_rows_are(ranker: Any) -> None:
    rng = np.random.default_rng(2)
    batches = [stationary(rng, 250) for _ in range(16)]
    fitted = clone(ranker).fit(*(np.concatenate(parts) for parts in zip(*batches, strict=True)))
    done = feed(ranker, batches)
    relevant = np.arange(20) < 6
    assert roc_auc_score(relevant, done.feature_importances_) == 1
    assert done.result_.top(3) == fitted.result_.top(3) == ["x0", "x1", "x2"]
    assert spearmanr(done.feature_importances_, fitted.feature_importances_).statistic > 0.6
    first = feed(ranker, batches[:2]).result_
    ratio = error(done.result_, ranker)[:6] / error(first, ranker)[:6]
    assert (ratio < 0.75).all(), ratio


def test_an_order_of_the_rows_hides_no_feature() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 10))
    y = np.where(X[:, 2] + 0.5 * rng.normal(size=3000) > 0, "late", "early")
    order = np.argsort(y)
    batches = [(X[rows], y[rows]) for rows in np.split(order, 30)]
    for ranker in (
        ForestRanker(n_estimators=10, block_rows=500, reservoir_rows=500),
        ReliefRanker(block_rows=500, reservoir_rows=500),
    ):
        importances = feed(ranker, batches).feature_importances_
        assert importances.argmax() == 2
        assert importances[2] > 3 * np.delete(importances, 2).max()


def drifting(n_batches: int) -> Iterator[Batch]:
    """The target follows features 0 and 1, and in the last third 2 and 3."""
    rng = np.random.default_rng(4)
    for number in range(n_batches):
        X = rng.normal(size=(200, 8))
        first = 0 if number < n_batches * 2 // 3 else 2
        yield X, X[:, first] + X[:, first + 1] + 0.5 * rng.normal(size=200)


@pytest.mark.parametrize(
    "ranker",
    [
        ForestRanker(n_estimators=10, block_rows=400, reservoir_rows=400),
        ReliefRanker(block_rows=400, reservoir_rows=400),
    ],
    ids=["forest", "relief"],
)
def test_a_half_life_lets_new_features_come_up(ranker: Any) -> None:
    lasting = feed(ranker, drifting(30)).result_
    forgetful = feed(clone(ranker).set_params(half_life=500), drifting(30)).result_
    assert set(lasting.top(2)) == {"x0", "x1"}
    assert set(forgetful.top(2)) == {"x2", "x3"}
    assert (error(forgetful, ranker) > error(lasting, ranker))[4:].all()


def held() -> int:
    # What has been freed is not held, but goes back to the system at any later time.
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    found = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) << 10


def fed_a_thousand_batches(ranker: Any) -> tuple[Any, list[int]]:
    """The ranker, and the bytes that the process held after each 50 batches."""
    rng = np.random.default_rng(5)
    X, y, memory = np.empty((200, 40)), np.empty(200), []
    for number in range(1, 1001):
        # The same memory for each batch, as a reader may do it.
        rng.standard_normal(out=X)
        np.add(X[:, 7], X[:, 8], out=y)
        ranker.partial_fit(X, y)
        if number % 50 == 0:
            memory.append(held())
    return ranker, memory


@pytest.mark.slow
@pytest.mark.parametrize(
    "ranker",
    [
        ForestRanker(n_estimators=2, scores=("genie3", "symbolic"), block_rows=2000, reservoir_rows=2000),
        ReliefRanker(n_iterations=50, block_rows=2000, reservoir_rows=2000, half_life=10_000),
    ],
    ids=["forest", "relief"],
)
def test_memory_is_flat_over_a_thousand_batches(ranker: Any) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not tell how much memory a process holds")
    # In a process of its own, where no earlier test has left memory that is freed meanwhile.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        ranker, memory = fresh.submit(fed_a_thousand_batches, ranker).result()
    # Medians: what the allocator holds varies by up to 20 MB from batch to batch, more with many threads.
    assert median(memory[-5:]) - median(memory[:5]) < 20 << 20, [f"{held >> 20} MB" for held in memory]
    assert set(ranker.result_.top(2)) == {"x7", "x8"}
    assert ranker.result_.n_rows == 200_000


def test_rows_are_copied() -> None:
    X, y = stationary(np.random.default_rng(6), 150)
    wanted = feed(RANKERS[0], [(X[:70], y[:70]), (X[70:], y[70:])])
    again, buffer, targets = clone(RANKERS[0]), X[:70].copy(), y[:70].copy()
    again.partial_fit(buffer, targets)
    buffer[:], targets[:] = 0, 0
    again.partial_fit(X[70:], y[70:])
    assert same(again.result_, wanted.result_)


@pytest.mark.parametrize(
    "move", [lambda r: pickle.loads(pickle.dumps(r)), copy.deepcopy], ids=["pickle", "copy"]
)
@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_a_stream_goes_on_elsewhere(ranker: Any, move: Any) -> None:
    batches = list(cut(frame(330), [40, 90, 200]))
    for stop in (1, 2, 3):
        half = move(fed(ranker, batches[:stop]))
        before = half.partial_fit().result_
        for batch in batches[stop:]:
            half.partial_fit(*batch)
        assert same(half.partial_fit().result_, feed(ranker, batches).result_)
        assert not same(half.result_, before)


def test_what_comes_later_is_taken() -> None:
    ranker = ForestRanker(task="classification", n_estimators=5, block_rows=40, reservoir_rows=40)
    rng = np.random.default_rng(7)
    for number in range(10):
        a = rng.normal(size=16)
        word = np.where(a > 0, "new" if number > 4 else "old", "always")
        gap = [None] * 16 if number % 2 else [float(value) for value in a]
        constant = np.full(16, 3 if number < 5 else 2.5)
        kind = np.where(a > 0, number // 3, 0)
        ranker.partial_fit(pd.DataFrame({"word": word, "gap": gap, "constant": constant}), kind)
    assert ranker.result_.n_rows == 160
    assert ranker.result_.features == ["word", "gap", "constant"]
    assert ranker.result_.top(1) == ["word"]


def test_rows_that_take_no_part_fill_no_block() -> None:
    X, y = stationary(np.random.default_rng(8), 300)
    gaps = np.where(np.arange(300) % 3 == 0, np.nan, y)
    weights = np.where(np.arange(300) % 3 == 1, 0.0, 1.0)
    ranker = ForestRanker(n_estimators=5, unlabelled="ignore", block_rows=50)
    for rows in np.split(np.arange(300), 10):
        ranker.partial_fit(X[rows], gaps[rows], sample_weight=weights[rows])
    ranker.partial_fit(X[:3], np.full(3, np.nan), sample_weight=np.ones(3))
    assert (ranker.result_.n_rows, ranker.result_.n_unlabelled) == (100, 103)
    kept = np.arange(300) % 3 == 2
    plain = feed(clone(ranker).set_params(unlabelled=None), [(X[kept], y[kept], weights[kept])])
    assert same(ranker.result_, plain.result_)


def test_fit_starts_anew_and_so_does_what_comes_after_it() -> None:
    X, y = stationary(np.random.default_rng(9), 400)
    ranker = clone(RANKERS[0])
    assert not hasattr(ranker, "ranking_")
    assert not hasattr(ranker, "feature_importances_")
    ranker.partial_fit(X, y)
    assert ranker.result_.n_rows == 400
    fitted = clone(ranker).fit(X[:90, :7], y[:90])
    assert same(ranker.fit(X[:90, :7], y[:90]).result_, fitted.result_)
    ranker.partial_fit(X[100:], y[100:])
    assert same(ranker.result_, feed(RANKERS[0], [(X[100:], y[100:])]).result_)
    selected = SelectFromModel(ranker, prefit=True, max_features=3, threshold=-np.inf).transform(X)
    assert selected.shape == (400, 3)


def test_settings_of_the_stream_are_told() -> None:
    X, y = stationary(np.random.default_rng(10), 60)
    ranker = ForestRanker(n_estimators=2, block_rows=50, half_life=np.float32(70)).partial_fit(X, y)
    told = ranker.result_.settings
    assert (told["block_rows"], told["reservoir_rows"], told["half_life"]) == (50, 20_000, 70.0)
    assert (
        Ranking.from_importances([], {"s": []}, task="regression", settings=told).to_dict()["settings"]
        == told
    )
    anyhow = ForestRanker(n_estimators=2, block_rows=50, random_state=None).partial_fit(X, y)
    assert anyhow.partial_fit(X, y).result_.n_rows == 100


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_looking_for_an_attribute_starts_no_work(ranker: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    worked: list[str] = []

    def watched(run: Any, *rest: Any, **more: Any) -> Any:
        worked.append("run")
        return finish(run, *rest, **more)

    for module in ("ferrank.rankers.streaming", "ferrank.rankers.plan"):
        monkeypatch.setattr(f"{module}.finish", watched)
    fitted = ("result_", "ranking_", "feature_importances_")
    few, many = fed(ranker, cut(frame(40), [])), fed(ranker, cut(frame(90), []))
    assert worked
    worked.clear()
    names = {name for one in (few, many) for name in dir(one)} | set(fitted)
    for one in (few, many):
        assert sum(hasattr(one, name) for name in names) > 20
    assert not worked
    assert [hasattr(few, name) for name in fitted] == [False] * 3
    assert [hasattr(many, name) for name in fitted] == [True] * 3
    assert not any(isinstance(getattr(type(many), name, None), property) for name in fitted)


def test_rows_of_less_than_a_block_are_ranked_on_request() -> None:
    X, y = stationary(np.random.default_rng(11), 60)
    ranker = ForestRanker(n_estimators=2, block_rows=80)
    with pytest.raises(fr.DataError, match="no batch has come yet"):
        ranker.partial_fit()
    ranker.partial_fit(X, y)
    with pytest.raises(NotFittedError, match="no block of 80 rows is complete yet"):
        ranker.transform(X)
    with pytest.raises(fr.DataError, match="X: None was given"):
        ranker.partial_fit(None, y)
    assert ranker.partial_fit().result_.n_rows == 60
    ranker.partial_fit(X[:10], y[:10])
    assert not hasattr(ranker, "result_")
    assert ranker.partial_fit(X, y).result_.n_rows == 80


def errors() -> Iterator[Any]:
    """What to set, a batch that will not do after a good one, the error and what it names."""
    good = frame(20)
    X, y = good.drop(columns="y"), good["y"]
    forest, relief = ForestRanker(n_estimators=2), ReliefRanker()
    yield forest, (X.rename(columns={"a": "z"}), y), ValueError, "z"
    yield forest, (X[["b", "a", "count", "word"]], y), ValueError, "same order"
    yield forest, (X.drop(columns="b"), y), ValueError, "b"
    yield forest, (X.iloc[:0], y.iloc[:0]), fr.DataError, "0 rows"
    yield forest, (X.assign(a="text"), y), fr.ColumnTypeError, "column 'a'"
    yield forest, (X.assign(a=pd.Timestamp("2020-01-01")), y), fr.ColumnTypeError, "column 'a'"
    yield forest, (X.assign(a=np.inf), y), fr.DataError, "column 'a'"
    yield forest, (X, y.astype(str)), fr.SettingError, "'y' is nominal"
    yield forest, (X, good[["y", "b"]]), fr.DataError, "y: 2 targets"
    yield forest, (X, y.where(y > 100)), fr.DataError, "none of 20 rows has a target value"
    yield forest, (X, y, np.ones(20)), fr.DataError, "sample_weight"
    yield forest, (X, y.iloc[:5]), ValueError, "values for"
    yield relief, (X.assign(b="text"), y), fr.ColumnTypeError, "column 'b'"


@pytest.mark.parametrize(("ranker", "batch", "error", "message"), list(errors()))
def test_batches_that_will_not_do_change_nothing(ranker: Any, batch: Batch, error: Any, message: str) -> None:
    data = frame(60, seed=1)
    good = list(cut(data, [30]))
    ranker = clone(ranker).partial_fit(*good[0])
    with pytest.raises(error, match=message):
        ranker.partial_fit(*batch)
    ranker.partial_fit(*good[1]).partial_fit()
    assert same(ranker.result_, feed(ranker, good).result_)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (ForestRanker(block_rows=0), "block_rows: 0"),
        (ForestRanker(block_rows="many"), "block_rows: 'many'"),
        (ForestRanker(reservoir_rows=-1), "reservoir_rows: -1"),
        (ForestRanker(half_life=100), "half_life: 100 rows"),
        (ForestRanker(until="stable"), "partial_fit"),
        (ForestRanker(n_estimators=0), "n_estimators"),
        (ReliefRanker(until="stable"), "partial_fit"),
        (ReliefRanker(task="classification", unlabelled="use"), "unlabelled"),
        (ReliefRanker(target_distance="f1"), "target_distance"),
    ],
)
def test_settings_that_will_not_do_are_named(ranker: Any, message: str) -> None:
    [batch] = cut(frame(20), [])
    with pytest.raises(fr.SettingError, match=message):
        ranker.partial_fit(*batch)
    assert not hasattr(ranker, "ranking_")


def test_settings_may_not_change_on_the_way() -> None:
    first, second = cut(frame(40), [20])
    ranker = clone(RANKERS[0]).partial_fit(*first)
    for setting, value in [
        ("n_estimators", 7),
        ("half_life", 90),
        ("task", "regression"),
        ("random_state", 3),
    ]:
        before = ranker.get_params()[setting]
        with pytest.raises(fr.SettingError, match=setting if setting != "random_state" else "seed"):
            ranker.set_params(**{setting: value}).partial_fit(*second)
        ranker.set_params(**{setting: before})
    ranker.set_params(n_jobs=1, n_features_to_select=1).partial_fit(*second)
    assert ranker.partial_fit().result_.n_rows == 40


def test_a_memory_limit_holds_for_rows_that_wait() -> None:
    with pytest.raises(fr.ResourceError, match="memory_limit: 9 MiB do not do for rows that wait"):
        ForestRanker(memory_limit="9MiB").partial_fit(*stationary(np.random.default_rng(0), 50))


def test_collections_are_refused() -> None:
    frames = pytest.importorskip("dask.dataframe")
    data = frames.from_pandas(frame(20), npartitions=2)
    with pytest.raises(fr.ColumnTypeError, match="partial_fit takes a batch in memory"):
        ForestRanker().partial_fit(data[["a", "b"]], data["y"])


def test_a_single_row_is_a_batch() -> None:
    for ranker in (ForestRanker(n_estimators=2, block_rows=3), ReliefRanker(block_rows=3)):
        for row in frame(10).itertuples(index=False):
            ranker.partial_fit([[row.b, row.count]], [row.y]).partial_fit()
            assert np.isfinite(ranker.feature_importances_).all()
        assert ranker.result_.n_rows == 9
