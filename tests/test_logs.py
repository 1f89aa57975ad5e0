"""The engine's events in Python's logging."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ferrank as fr

ROWS = 400


@pytest.fixture
def table() -> dict[str, np.ndarray]:
    a, b = np.random.default_rng(0).normal(size=(2, ROWS))
    return {"a": a, "b": b, "y": np.where(np.arange(ROWS) < 40, np.nan, a)}


@pytest.fixture(autouse=True)
def levels() -> Iterator[None]:
    names = ["ferrank", "ferrank.run", "ferrank.forest", "ferrank.relief", "ferrank.runtime"]
    yield
    for name in names:
        logging.getLogger(name).setLevel(logging.NOTSET)


def rank(table: Any, **settings: Any) -> fr.Ranking:
    return fr.rank(table, "y", **{"unlabelled": "ignore", "n_estimators": 5, **settings})


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{record.name}: {record.getMessage()}" for record in caplog.records]


def test_phases_rows_and_memory_plans_are_logged(table: Any, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("ferrank").setLevel("INFO")
    rank(table)
    found = lines(caplog)
    for wanted in (
        "ferrank.run: profiling starts: 400 rows",
        "ferrank.run: profiling ends: 400 rows in ",
        "ferrank.ranking: table: 40 of 400 rows are ignored, 40 without a target, 0 of weight 0",
        "ferrank.forest: memory plan: the codes of 360 rows are held in memory",
        "ferrank.run: growing starts: 5 trees",
        "ferrank.run: growing ends: 5 trees in ",
    ):
        assert [line for line in found if line.startswith(wanted)], wanted
    starts = [line.split()[1] for line in found if " starts" in line]
    assert (
        starts == [line.split()[1] for line in found if " ends" in line] == ["profiling", "coding", "growing"]
    )
    assert {record.levelname for record in caplog.records} == {"INFO"}
    caplog.clear()
    fr.rank(table, "y", ranker="relief", unlabelled="ignore")
    assert "ferrank.relief: memory plan: 360 rows are held in memory" in lines(caplog)
    assert [line for line in lines(caplog) if line.startswith("ferrank.run: searching ends: 360 rows")]


def test_checkpoints_and_temporary_files_are_logged(
    table: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    logging.getLogger("ferrank").setLevel("INFO")
    path = tmp_path / "run.ferrank"
    rank(table, resume=path)
    assert f"ferrank.ranking: {path}: 5 contributions are written" in lines(caplog)
    rank(table, resume=path, n_estimators=7)
    assert f"ferrank.ranking: {path}: the file has 5 contributions" in lines(caplog)
    rank(pa.table(table).to_reader(), temp_dir=tmp_path)
    assert [line for line in lines(caplog) if line.startswith("ferrank.data: ") and str(tmp_path) in line]


def test_only_what_a_logger_wants_is_logged(table: Any, caplog: pytest.LogCaptureFixture) -> None:
    rank(table)
    assert not caplog.records
    logging.getLogger("ferrank.forest").setLevel("INFO")
    rank(table)
    assert {record.name for record in caplog.records} == {"ferrank.forest"}
    caplog.clear()
    logging.getLogger("ferrank.forest").setLevel(logging.NOTSET)
    rank(table)
    assert not caplog.records


def test_the_end_of_a_run_that_fails_is_logged(table: Any, caplog: pytest.LogCaptureFixture) -> None:
    logging.getLogger("ferrank").setLevel("INFO")
    with pytest.raises(fr.DataError):
        rank(table, unlabelled="error")
    assert [line for line in lines(caplog) if line.startswith("ferrank.run: profiling ends")]


def test_threads_log_while_the_lock_of_the_interpreter_is_held(
    table: Any, caplog: pytest.LogCaptureFixture
) -> None:
    logging.getLogger("ferrank").setLevel("DEBUG")
    busy = threading.Event()

    def hold() -> None:
        while not busy.is_set():
            sum(range(10_000))

    holder = threading.Thread(target=hold)
    holder.start()
    try:
        runs = [threading.Thread(target=rank, args=(table,), kwargs={"n_jobs": 2}) for _ in range(4)]
        for run in runs:
            run.start()
        for run in runs:
            run.join(60)
        assert not any(run.is_alive() for run in runs)
    finally:
        busy.set()
        holder.join()
    assert len([line for line in lines(caplog) if line.startswith("ferrank.run: growing ends: 5 trees")]) == 4


def test_nothing_is_printed_by_default() -> None:
    code = "import ferrank; ferrank.rank({'a': [1.0, 2.0, 3.0], 'y': [1.0, 2.0, 4.0]}, 'y')"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("", "")
