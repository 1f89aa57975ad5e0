"""Memory limits, scratch files, and data sets of several files."""

import ctypes
import gc
import re
import resource
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import ferrank as fr

ROWS = 150_000


def _held() -> int:
    """Return the bytes of anonymous memory that the process holds, as the engine counts them."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("the system does not tell how much memory a process holds")
    # What tests before have freed goes back first: the engine would gain it.
    gc.collect()
    pa.default_memory_pool().release_unused()
    ctypes.CDLL(None).malloc_trim(0)
    found = re.search(r"RssAnon:\s+(\d+) kB", status.read_text())
    assert found is not None
    return int(found[1]) << 10


@pytest.fixture(scope="module")
def table() -> pa.Table:
    rng = np.random.default_rng(5)
    columns = {f"x{i}": rng.normal(size=ROWS).astype(np.float32) for i in range(14)}
    columns["gaps"] = np.where(rng.random(ROWS) < 0.1, np.nan, columns["x0"] + rng.normal(size=ROWS))
    columns["word"] = rng.choice(["a", "b", "c", "d"], size=ROWS)
    columns["y"] = 2 * columns["x0"] + (columns["word"] == "b") + rng.normal(size=ROWS)
    columns["kind"] = np.where(columns["y"] + columns["x1"] > 0, "high", "low")
    table = pa.table(columns)
    # What the first rankings import takes 50 MB, and is nothing that they hold.
    for ranker in (fr.ForestRanker(n_estimators=2), fr.ReliefRanker()):
        fr.rank(table[:100].drop(["kind"]), "y", ranker=ranker)
    return table


def _little() -> int:
    """Return a limit that the passes of a forest need, but within which the rows above do not fit."""
    return _held() + (48 << 20)


def _results(ranking: fr.Ranking) -> tuple[object, object]:
    return ranking.to_dict()["scores"], ranking.model_error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "settings"),
    [
        (["y"], {"scores": ("genie3", "symbolic", "permutation", "mdi_oob")}),
        (
            ["y", "kind"],
            {"scores": ("permutation", "coverage", "mdi_oob"), "by_target": True, "max_samples": 0.9},
        ),
        (["kind"], {"ensemble": "extra_trees", "max_features": 4}),
    ],
)
def test_a_forest_within_little_memory_has_the_bits_of_one_in_memory(
    table: pa.Table, tmp_path: Path, target: list[str], settings: dict[str, object]
) -> None:
    table = table.drop([name for name in ("y", "kind") if name not in target])

    def ranked(limit: int | str, scratch: Path) -> fr.Ranking:
        forest = fr.ForestRanker(n_estimators=3, n_jobs=2, memory_limit=limit, temp_dir=scratch, **settings)
        return fr.rank(table, target, ranker=forest)

    nowhere = tmp_path / "nowhere"
    in_memory = _results(ranked("100GiB", nowhere))
    # Without a place for scratch files it fails, so it does use them.
    with pytest.raises(fr.ResourceError, match="nowhere"):
        ranked(_little(), nowhere)
    assert _results(ranked(_little(), tmp_path)) == in_memory
    assert list(tmp_path.iterdir()) == []


def _with_labels(table: pa.Table) -> pa.Table:
    """Return the features with label sets, which `x0` tells apart; some are missing, some empty."""
    sets = pa.array([["a/b/c", "d"], ["a/e"], [], ["d/f", "g"], ["a/b"], None], pa.list_(pa.string()))
    x0, x1 = table["x0"].to_numpy(), table["x1"].to_numpy()
    number = np.where(x1 > 1.5, 5, np.digitize(x0 + x1 / 2, [-1, 0, 0.5, 1]))
    return table.drop(["y", "kind"]).append_column("labels", sets.take(pa.array(number)))


def _some_unlabelled(table: pa.Table, target: str) -> pa.Table:
    """Return the table with one target, known for one row of three."""
    other = "kind" if target == "y" else "y"
    known = np.arange(len(table)) % 3 == 0
    values = pa.array(table[target].to_numpy(zero_copy_only=False), mask=~known)
    return table.drop([other, target]).append_column(target, values)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["labels", "measures of labels", "unlabelled rows"])
def test_label_sets_and_unlabelled_rows_within_little_memory(
    case: str, table: pa.Table, tmp_path: Path
) -> None:
    # Trees at work take more with measures of their predictions.
    more = (60 << 20) if case == "measures of labels" else 0
    if case != "unlabelled rows":
        data, target, settings = _with_labels(table), "labels", {"unlabelled": "ignore", "by_target": True}
        if more:
            settings["permutation_measures"] = ("pooled_auprc", "average_auroc", "ranking_loss", "micro_f1")
    else:
        few = table.select(["x0", "x1", "x2", "gaps", "word", "y", "kind"])
        data, target, settings = _some_unlabelled(few, "y"), "y", {"supervision": 0.5}

    def ranked(limit: int | str, scratch: Path) -> fr.Ranking:
        scores = ("genie3", "permutation")
        forest = fr.ForestRanker(
            n_estimators=2, scores=scores, n_jobs=2, memory_limit=limit, temp_dir=scratch, **settings
        )
        return fr.rank(data, target, ranker=forest)

    in_memory = _results(ranked("100GiB", tmp_path / "nowhere"))
    with pytest.raises(fr.ResourceError, match="nowhere"):
        ranked(_little() + more, tmp_path / "nowhere")
    assert _results(ranked(_little() + more, tmp_path)) == in_memory


@pytest.mark.parametrize("case", ["labels", "unlabelled rows"])
def test_relief_of_label_sets_and_unlabelled_rows_within_little_memory(case: str, table: pa.Table) -> None:
    if case == "labels":
        data, target, settings = _with_labels(table), "labels", {"unlabelled": "ignore"}
    else:
        # Rows without a target are compared with all others, so they are few and wide.
        wide = np.random.default_rng(3).normal(size=(500, 4000))
        few = pa.table({f"x{number}": column for number, column in enumerate(wide)})
        few = few.append_column("kind", table["kind"][:4000]).append_column("y", table["y"][:4000])
        data, target, settings = _some_unlabelled(few, "kind"), "kind", {"influence": (0.25, 1.0)}

    def ranked(limit: int | str) -> object:
        relief = fr.ReliefRanker(n_iterations=16, memory_limit=limit, **settings)
        return fr.rank(data, target, ranker=relief).to_dict()["scores"]

    assert ranked(_held() + ((90 if case == "labels" else 72) << 20)) == ranked("100GiB")


@pytest.mark.slow
def test_workers_of_dask_hold_the_limit(table: pa.Table, tmp_path: Path) -> None:
    dask = pytest.importorskip("dask")
    data = table.drop(["kind"])
    parts = [dask.delayed(data.slice(first, ROWS // 3)) for first in range(0, ROWS, ROWS // 3)]

    def ranked(data: object, limit: int | str, scratch: Path) -> fr.Ranking:
        # Bags of many threads, so that there is room enough beside them for what dask holds.
        forest = fr.ForestRanker(n_estimators=12, n_jobs=12, memory_limit=limit, temp_dir=scratch)
        return fr.rank(data, "y", ranker=forest)

    in_memory = ranked(data, "100GiB", tmp_path).to_dict()["scores"]
    limit = _held() + (200 << 20)
    with dask.config.set(scheduler="threads"):
        with pytest.raises(fr.ResourceError, match="nowhere"):
            ranked(parts, limit, tmp_path / "nowhere")
        assert ranked(parts, limit, tmp_path).to_dict()["scores"] == in_memory


def test_relief_within_little_memory_has_the_bits_of_one_in_memory(table: pa.Table) -> None:
    def ranked(limit: int | str) -> object:
        relief = fr.ReliefRanker(n_iterations=40, memory_limit=limit)
        return fr.rank(table.drop(["y"]), "kind", ranker=relief).to_dict()["scores"]

    assert ranked(_held() + (75 << 20)) == ranked("100GiB")


@pytest.mark.parametrize("ranker", ["forest", "relief"])
def test_a_limit_that_is_too_low_says_what_would_do(table: pa.Table, ranker: str) -> None:
    with pytest.raises(fr.ResourceError, match=r"memory_limit: .* use at least \d+ MiB"):
        fr.rank(table.drop(["kind"]), "y", ranker=ranker, memory_limit="1MB")


@pytest.mark.parametrize("limit", ["much", "-1GB", 0, True, 1.5, "3 parsecs"])
def test_a_limit_that_is_no_size_is_refused(limit: object) -> None:
    with pytest.raises(fr.SettingError, match="memory_limit"):
        fr.rank({"a": [1.0, 2.0], "y": [1.0, 2.0]}, "y", memory_limit=limit)


@pytest.fixture
def parts(table: pa.Table, tmp_path: Path) -> Path:
    folder = tmp_path / "parts"
    (folder / "more").mkdir(parents=True)
    small = table.slice(0, 900)
    pa.feather.write_feather(small.slice(0, 400), str(folder / "a.arrow"), compression="uncompressed")
    pq.write_table(small.slice(400, 300), folder / "b.parquet", row_group_size=100)
    pq.write_table(small.slice(700), folder / "more" / "c.parquet")
    (folder / "_notes.csv").write_text("not,data\n")
    return folder


def test_files_of_a_data_set_are_one_table(table: pa.Table, parts: Path) -> None:
    def ranked(data: object) -> object:
        return fr.rank(data, "y", drop=["kind"], n_estimators=5).to_dict()["scores"]

    expected = ranked(table.slice(0, 900))
    files = [parts / "a.arrow", parts / "b.parquet", parts / "more" / "c.parquet"]
    assert all(ranked(data) == expected for data in (parts, str(parts / "**" / "*.[ap]*"), files))


def test_files_that_do_not_go_together_are_named(table: pa.Table, parts: Path) -> None:
    pq.write_table(table.slice(0, 9).drop(["x3"]), parts / "d.parquet")
    with pytest.raises(fr.DataError, match=r"d\.parquet: 17 columns .* 18 in .*a\.arrow"):
        fr.rank(parts, "y", drop=["kind"])
    with pytest.raises(fr.ResourceError, match="the path is empty"):
        fr.rank("", "y")
    with pytest.raises(fr.ResourceError, match="no file has a name like this"):
        fr.rank(str(parts / "*.nothing"), "y")
    (parts / "empty").mkdir()
    with pytest.raises(fr.ResourceError, match="no data file is in this folder"):
        fr.rank(parts / "empty", "y")


@pytest.mark.parametrize("suffix", ["arrow", "parquet"])
def test_files_of_a_data_set_may_be_more_than_can_be_open(
    table: pa.Table, tmp_path: Path, suffix: str
) -> None:
    for number in range(60):
        part = table.slice(10 * number, 10).select(["x0", "x1", "word", "y"])
        # Each file has its own entries, and texts and numbers in its own form.
        as_text = pa.dictionary(pa.int8() if number % 2 else pa.int32(), pa.string())
        texts = part["word"].cast(as_text) if number % 3 else part["word"]
        part = part.set_column(2, "word", texts)
        if number % 5 == 0:
            part = part.set_column(1, "x1", part["x1"].cast(pa.float64()))
        if suffix == "arrow":
            fr.convert(part, tmp_path / f"{number:02}.arrow")
        else:
            pq.write_table(part, tmp_path / f"{number:02}.parquet")
    expected = fr.rank(table.slice(0, 600).select(["x0", "x1", "word", "y"]), "y", n_estimators=3)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(list(Path("/proc/self/fd").iterdir())) + 20, hard))
    try:
        found = fr.rank(tmp_path, "y", n_estimators=3)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert found.to_dict()["scores"] == expected.to_dict()["scores"]


@pytest.mark.slow
def test_many_sparse_features_within_little_memory_have_the_bits_of_those_in_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    X = sp.random_array((120_000, 1_100), density=0.02, format="csr", rng=rng)
    y = X[:, :30].sum(axis=1)

    def ranked(limit: int | str) -> fr.Ranking:
        forest = fr.ForestRanker(
            n_estimators=2,
            n_jobs=2,
            max_depth=6,
            memory_limit=limit,
            temp_dir=tmp_path,
            standard_errors=False,
        )
        return forest.fit(X, y).result_

    in_memory = _results(ranked("4GB"))
    assert _results(ranked(_held() + (75 << 20))) == in_memory
