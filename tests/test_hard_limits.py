"""What goes wrong while data larger than memory are ranked: scratch folders, low limits, signals."""

import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ferrank as fr

pytestmark = pytest.mark.slow

ROWS = 150_000


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(3)
    columns = {f"x{i}": rng.normal(size=ROWS).astype(np.float32) for i in range(14)}
    columns["word"] = rng.integers(3_000, size=ROWS).astype(str)
    columns["y"] = columns["x0"] + rng.normal(size=ROWS)
    path = tmp_path_factory.mktemp("data") / "data.arrow"
    fr.convert(pa.table(columns), path)
    return path


def ranking(data: Path, scratch: Path, largest_file: int = -1) -> subprocess.Popen[str]:
    """Start a process that ranks within little memory, for so long that it does not end by itself."""
    code = f"""
        import pathlib, re, resource, signal
        import ferrank as fr
        signal.signal(signal.SIGINT, signal.default_int_handler)
        resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, -1))
        # Libraries are imported when they are first needed.
        small = {{"a": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]}}
        fr.rank(small, "y", ranker=fr.ForestRanker(n_estimators=1))
        held = int(re.search(r"RssAnon:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]) << 10
        forest = fr.ForestRanker(n_estimators=3000, memory_limit=held + (40 << 20), temp_dir={str(scratch)!r})
        fr.rank({str(data)!r}, "y", ranker=forest)
        """
    if not Path("/proc/self/status").exists():
        pytest.skip("the system does not tell how much memory a process holds")
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stderr=subprocess.PIPE, text=True)


def scratch_files(process: subprocess.Popen[str], scratch: Path) -> list[str]:
    """Return the mapped files of a process that lie, or lay, in the folder."""
    maps = Path(f"/proc/{process.pid}/maps").read_text()
    return re.findall(rf"{re.escape(str(scratch))}\S*", maps)


@pytest.mark.parametrize("place", ["nowhere", "a file"])
def test_a_scratch_folder_that_is_none_is_named(data: Path, tmp_path: Path, place: str) -> None:
    (tmp_path / "a file").write_text("")
    process = ranking(data, tmp_path / place)
    _, said = process.communicate(timeout=60)
    assert re.search(rf"ResourceError: {re.escape(str(tmp_path / place))}: ", said), said


def test_a_full_disk_is_an_error(data: Path, tmp_path: Path) -> None:
    _, said = ranking(data, tmp_path, largest_file=100_000).communicate(timeout=60)
    assert re.search(rf"ResourceError: {re.escape(str(tmp_path))}: File too large", said), said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_is_stopped_leaves_no_scratch_file(data: Path, tmp_path: Path, number: int) -> None:
    process = ranking(data, tmp_path)
    while not scratch_files(process, tmp_path):
        assert process.poll() is None, process.stderr
        time.sleep(0.01)
    time.sleep(0.3)
    process.send_signal(number)
    started = time.monotonic()
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert list(tmp_path.iterdir()) == []
    if number == signal.SIGINT:
        assert "KeyboardInterrupt" in said
        # A second, and what the interpreter takes to end on a busy machine.
        assert time.monotonic() - started < 5


def test_following_the_advice_about_memory_helps(data: Path, tmp_path: Path) -> None:
    def ranked(limit: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "ferrank", "rank", str(data), "--target", "y", "--trees", "2"]
        command += ["--score", "genie3", "--score", "permutation", "--json"]
        command += ["--memory", limit, "--temp-dir", str(tmp_path)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    said = ranked("1KiB").stderr
    advice = re.search(r"--memory: .*; use at least (\d+ MiB)", said)
    assert advice is not None, said
    within, free = (json.loads(ranked(limit).stdout) for limit in (advice[1], "100GiB"))
    assert within["scores"] == free["scores"]
