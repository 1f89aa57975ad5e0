"""Runs that are killed at any moment and resumed end with the bits of a run that was not."""

import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ferrank as fr

pytestmark = pytest.mark.slow

FOREST = fr.ForestRanker(n_estimators=60, scores=("genie3", "permutation", "mdi_oob"))
RUNS: dict[str, tuple[fr.ForestRanker | fr.ReliefRanker, list[str]]] = {
    "forest": (
        FOREST,
        ["--trees", "60", "--score", "genie3", "--score", "permutation", "--score", "mdi_oob"],
    ),
    "per_target": (fr.ForestRanker(n_estimators=30, per_target=True), ["--trees", "30", "--per-target"]),
    "relief": (fr.ReliefRanker(n_iterations=0.9), ["--ranker", "relief", "--iterations", "0.9"]),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(5)
    columns = {f"x{i}": rng.normal(size=4000).astype(np.float32) for i in range(20)}
    y = columns["x3"] + columns["x7"] ** 2
    table = pa.table(columns | {"y": y, "z": pa.array(y > 1, mask=rng.random(4000) < 0.1).cast(pa.float64())})
    path = tmp_path_factory.mktemp("data") / "data.arrow"
    fr.convert(table, path)
    return path


def command(data: Path, *options: str) -> list[str]:
    targets = ["--target", "y", "--target", "z"]
    return [sys.executable, "-m", "ferrank", "rank", str(data), *targets, *options]


@pytest.mark.parametrize("run", RUNS)
def test_a_killed_run_resumes_to_the_same_bits(run: str, data: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.ferrank"
    ranker, options = RUNS[run]
    moments, before = random.Random(run), 0
    for _ in range(2):
        process = subprocess.Popen(command(data, *options, "--resume", str(path)), stdout=subprocess.PIPE)
        while process.poll() is None and (not path.exists() or path.stat().st_size <= before):
            time.sleep(0.002)
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        process.communicate()
        before = path.stat().st_size
    with path.open("ab") as file:
        file.write(b"torn")
    with pytest.warns(fr.ResumeWarning, match=r"run\.ferrank: dropped the last"):
        resumed = fr.rank(str(data), ["y", "z"], ranker=ranker, resume=path)
    whole = fr.rank(str(data), ["y", "z"], ranker=ranker)
    assert resumed.model_error == whole.model_error
    for name, score in whole.scores.items():
        assert np.array_equal(resumed.scores[name].importance, score.importance)
        assert np.array_equal(resumed.scores[name].monte_carlo_error, score.monte_carlo_error, equal_nan=True)
    # No record is there twice.
    keys = [batch["key"][0].as_py() for batch in pa.ipc.open_stream(path)]
    assert sorted(keys) == list(range(fr.Accumulator.load(path).n_keys))


@pytest.mark.parametrize("ranker", ["forest", "relief"])
@pytest.mark.parametrize("case", ["labels", "unlabelled rows"])
def test_label_sets_and_unlabelled_rows_resume(case: str, ranker: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=(5, 400))
    table = pa.table({f"x{number}": column for number, column in enumerate(x)})
    if case == "labels":
        sets = pa.array([["a/b/c", "d"], [], ["a/e"], None], pa.list_(pa.string()))
        table = table.append_column("y", sets.take(pa.array(np.digitize(x[0], [-0.5, 0.5, 1.5]))))
        settings: dict[str, object] = {"unlabelled": "ignore"}
    else:
        table = table.append_column("y", pa.array(x[1] > 0, mask=rng.random(400) < 0.5))
        settings = {"supervision": 0.4} if ranker == "forest" else {"influence": (0.25, 1.0)}
    if ranker == "forest":
        settings |= {"n_estimators": 9, "scores": ("genie3", "permutation")}
    path = tmp_path / "run.ferrank"
    whole = fr.rank(table, "y", ranker=ranker, **settings)
    fr.rank(table, "y", ranker=ranker, resume=path, **settings)
    content = path.read_bytes()
    # Records end at even numbers of bytes.
    path.write_bytes(content[: 2 * len(content) // 3 | 1])
    with pytest.warns(fr.ResumeWarning, match="dropped the last"):
        resumed = fr.rank(table, "y", ranker=ranker, resume=path, memory_limit="1GiB", **settings)
    assert resumed.model_error == whole.model_error
    for name, score in whole.scores.items():
        assert np.array_equal(resumed.scores[name].importance, score.importance)
        assert np.array_equal(resumed.scores[name].monte_carlo_error, score.monte_carlo_error, equal_nan=True)


def test_a_file_of_another_run_is_refused(data: Path, tmp_path: Path, mixed: pa.Table) -> None:
    path = tmp_path / "run.ferrank"
    ranking = fr.rank(mixed, "y", n_estimators=5, resume=path)
    content = path.read_bytes()
    with pytest.raises(
        fr.DataError, match=r"max_depth: 6 in this one, null in .*run\.ferrank; name another file"
    ):
        fr.rank(mixed, "y", n_estimators=5, max_depth=6, resume=path)
    done = subprocess.run(
        command(data, "--trees", "5", "--resume", str(path)), capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "of another run" in done.stderr
    assert path.read_bytes() == content
    with pytest.raises(fr.ResourceError, match="nowhere"):
        fr.rank(mixed, "y", n_estimators=5, resume=tmp_path / "nowhere" / "run.ferrank")
    path.write_bytes(content[:-70])
    with pytest.warns(fr.ResumeWarning, match="dropped the last"):
        again = fr.rank(mixed, "y", n_estimators=5, resume=path)
    assert np.array_equal(again.importances(), ranking.importances())


def test_a_finished_run_goes_on_to_more_trees(mixed: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "run.ferrank"
    fr.rank(mixed, "y", n_estimators=5, resume=path)
    more = fr.rank(mixed, "y", n_estimators=9, resume=path)
    assert np.array_equal(more.importances(), fr.rank(mixed, "y", n_estimators=9).importances())
    keys = [batch["key"][0].as_py() for batch in pa.ipc.open_stream(path)]
    assert sorted(keys) == list(range(9))
    assert np.array_equal(fr.Accumulator.load(path).ranking().importances(), more.importances())


def ends(path: Path) -> list[int]:
    """Return where the head of a file of contributions ends, and each of these."""
    found = []
    with pa.OSFile(str(path)) as file:
        while file.tell() < file.size():
            pa.ipc.read_message(file)
            found.append(file.tell())
    return found


def test_records_of_another_run_are_made_again(mixed: pa.Table, tmp_path: Path) -> None:
    own, other = tmp_path / "own.ferrank", tmp_path / "other.ferrank"
    ranking = fr.rank(mixed, "y", n_estimators=5, resume=own)
    fr.rank(mixed, "y", n_estimators=5, random_state=1, resume=other)
    own.write_bytes(own.read_bytes()[: ends(own)[0]] + other.read_bytes()[ends(other)[0] :])
    with pytest.raises(fr.DataError, match=r"own\.ferrank: batch 1 is damaged, or of another run"):
        fr.Accumulator.load(own)
    with pytest.warns(fr.ResumeWarning, match="dropped the last"):
        again = fr.rank(mixed, "y", n_estimators=5, resume=own)
    assert np.array_equal(again.importances(), ranking.importances())


def test_fewer_trees_go_on_in_the_file_of_more(mixed: pa.Table, tmp_path: Path) -> None:
    path = tmp_path / "run.ferrank"
    ranking = fr.rank(mixed, "y", n_estimators=9, resume=path)
    content = path.read_bytes()
    path.write_bytes(content[: ends(path)[2]])
    fewer = fr.rank(mixed, "y", n_estimators=5, resume=path)
    assert np.array_equal(fewer.importances(), fr.rank(mixed, "y", n_estimators=5).importances())
    more = fr.rank(mixed, "y", n_estimators=9, resume=path)
    assert np.array_equal(more.importances(), ranking.importances())


def test_the_command_line_says_what_was_dropped(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "run.ferrank"
    options = command(data, "--trees", "3", "--resume", str(path))
    subprocess.run(options, capture_output=True, check=True)
    path.write_bytes(path.read_bytes()[:-1])
    again = subprocess.run(options, capture_output=True, text=True, check=True)
    assert f"ferrank: warning: {path}: dropped the last" in again.stderr
