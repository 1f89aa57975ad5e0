"""What goes wrong around a ranking: limits of the system, signals, forks, threads, exceptions of users."""

import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import ferrank as fr

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="limits and signals of Linux"),
]

RNG = np.random.default_rng(1)
TABLE = pa.table({f"x{i}": RNG.normal(size=3_000) for i in range(8)} | {"y": RNG.normal(size=3_000)})

BEGIN = """
import os, resource, signal, sys, threading, time
import numpy as np, pyarrow as pa, ferrank as fr
rng = np.random.default_rng(1)
table = pa.table({f"x{i}": rng.normal(size=3_000) for i in range(8)} | {"y": rng.normal(size=3_000)})
def rank(data=table, n_estimators=4, **settings):
    return fr.rank(data, "y", ranker="forest", n_estimators=n_estimators, **settings)
rank()
def tell(function):
    try:
        function()
    except BaseException as error:
        print(type(error).__name__, error, flush=True)
    else:
        print("done", flush=True)
"""


def run(code: str, *arguments: str) -> str:
    """Run ``code`` after ``BEGIN`` in a process; return what it prints."""
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(code), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout


def begin(code: str, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", BEGIN + textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# Limits of the system


def test_no_file_handles(tmp_path: Path) -> None:
    fr.convert(TABLE, tmp_path / "t.arrow")
    said = run(
        """
        open_now = len(os.listdir("/proc/self/fd")) - 1
        resource.setrlimit(resource.RLIMIT_NOFILE, (open_now, open_now))
        tell(lambda: rank(sys.argv[1]))
        tell(lambda: rank(resume=sys.argv[1] + ".ferrank"))
        """,
        str(tmp_path / "t.arrow"),
    )
    assert said.count("ResourceError") == 2
    assert said.count("Too many open files") == 2
    assert said.count(f"{tmp_path}/t.arrow") == 2


def test_no_threads() -> None:
    said = run(
        """
        # The limit is not for root.
        os.setuid(65534) if os.getuid() == 0 else None
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))
        tell(lambda: rank())
        """
    )
    assert "ResourceError n_jobs: no thread can be started" in said


def test_too_few_threads() -> None:
    said = run(
        """
        status = open("/proc/self/status").read().splitlines()
        held = next(int(line.split()[1]) << 10 for line in status if line.startswith("VmSize:"))
        resource.setrlimit(resource.RLIMIT_AS, (held + (40 << 20), held + (40 << 20)))
        tell(lambda: rank(n_jobs=64))
        """
    )
    assert "ResourceError n_jobs: 64 threads cannot be started" in said


@pytest.mark.parametrize("folder", ["/proc", "/sys"])
def test_folders_that_cannot_be_written_to(folder: str) -> None:
    with pytest.raises(fr.ResourceError, match=folder):
        fr.rank(TABLE, "y", n_estimators=2, resume=f"{folder}/run.ferrank")
    with pytest.raises(fr.ResourceError, match=folder):
        fr.convert(TABLE, f"{folder}/t.arrow")
    ranking = fr.rank(TABLE, "y", n_estimators=2)
    with pytest.raises((fr.ResourceError, OSError), match=folder):
        ranking.save(f"{folder}/r.json")


def test_a_full_disk_while_resume_is_written(tmp_path: Path) -> None:
    said = run(
        """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (6_000, 6_000))
        tell(lambda: rank(n_estimators=400, resume=sys.argv[1]))
        """,
        str(tmp_path / "run.ferrank"),
    )
    assert f"ResourceError {tmp_path}/run.ferrank: File too large" in said
    with pytest.warns(fr.ResumeWarning) if _is_torn(tmp_path / "run.ferrank") else _nothing():
        resumed = fr.rank(TABLE, "y", ranker="forest", n_estimators=400, resume=tmp_path / "run.ferrank")
    whole = fr.rank(TABLE, "y", ranker="forest", n_estimators=400)
    assert np.array_equal(resumed.importances(), whole.importances())


def _is_torn(path: Path) -> bool:
    try:
        with pa.ipc.open_stream(path) as batches:
            for _ in batches:
                pass
    except (pa.ArrowException, OSError):
        return True
    return False


class _nothing:  # noqa: N801
    def __enter__(self) -> None: ...
    def __exit__(self, *_: object) -> None: ...


def test_a_temporary_folder_that_goes_away(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    process = begin(
        """
        def batches():
            yield from table.to_batches(max_chunksize=100)
            os.rmdir(sys.argv[1])
        stream = pa.RecordBatchReader.from_batches(table.schema, batches())
        tell(lambda: rank(stream, temp_dir=sys.argv[1]))
        again = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
        tell(lambda: rank(again, temp_dir=sys.argv[1]))
        """,
        str(folder),
    )
    said, errors = process.communicate(timeout=120)
    # What is in a file without a name stays; a new one cannot be made.
    assert said.splitlines()[0] == "done", errors
    assert f"ResourceError temp_dir: there is no folder {folder}; make it first" in said


# Signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signals_end_the_process_and_the_run_goes_on_later(number: int, tmp_path: Path) -> None:
    path, scratch = tmp_path / "run.ferrank", tmp_path / "scratch"
    scratch.mkdir()
    # More trees than are grown before the signal, however long this process has to wait.
    code = "rank(n_estimators=50_000, resume=sys.argv[1], temp_dir=sys.argv[2])"
    process = begin(code, str(path), str(scratch))
    while process.poll() is None and (not path.exists() or path.stat().st_size < 20_000):
        time.sleep(0.01)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == -number
    assert list(scratch.iterdir()) == []
    assert [file.name for file in tmp_path.iterdir() if file != scratch] == ["run.ferrank"]
    n_estimators = 40
    with pytest.warns(fr.ResumeWarning) if _is_torn(path) else _nothing():
        resumed = fr.rank(TABLE, "y", ranker="forest", n_estimators=n_estimators, resume=path)
    whole = fr.rank(TABLE, "y", ranker="forest", n_estimators=n_estimators)
    assert np.array_equal(resumed.importances(), whole.importances())


def test_two_runs_on_one_file(tmp_path: Path) -> None:
    path = tmp_path / "run.ferrank"
    process = begin("rank(n_estimators=50_000, resume=sys.argv[1])", str(path))
    try:
        while process.poll() is None and (not path.exists() or path.stat().st_size < 20_000):
            time.sleep(0.01)
        with pytest.raises(fr.SettingError, match=f"resume: another run is writing {path}; name another"):
            fr.rank(TABLE, "y", ranker="forest", n_estimators=50_000, resume=path)
    finally:
        process.kill()
        process.communicate()


# Forks, interpreters, threads


def test_another_interpreter_is_refused() -> None:
    said = run(
        """
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        other = interpreters.create()
        def rank_there():
            code = "import ferrank; ferrank.rank({'a': [1, 2], 'y': [1, 2]}, 'y', ranker='forest')"
            # Python 3.13 returns the exception, others raise it.
            raise Exception(str(interpreters.run_string(other, code)))
        tell(rank_there)
        tell(rank)
        """
    )
    assert "ferrank works in the main interpreter of a process, and this is a subinterpreter" in said
    assert said.splitlines()[-1] == "done"


def test_the_process_ends_at_once_after_a_ranking() -> None:
    # What is registered first is called last.
    before = "import atexit, time; atexit.register(lambda: print(time.monotonic() - ended))"
    code = f"{before}\n{BEGIN}\nended = time.monotonic()"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    # The engine waits 10 s for threads that are at work.
    assert float(said.stdout) < 5


def test_a_fork_after_use_ranks() -> None:
    said = run(
        """
        want = rank(n_jobs=2).importances()
        child = os.fork()
        if child == 0:
            same = np.array_equal(rank(n_jobs=2).importances(), want)
            os._exit(0 if same else 3)
        print(os.waitpid(child, 0)[1], np.array_equal(rank(n_jobs=2).importances(), want))
        """
    )
    assert said.split() == ["0", "True"]


def test_many_threads_fit_at_once() -> None:
    want = fr.rank(TABLE, "y", n_estimators=8).importances()
    found: list[bool] = []

    def fit() -> None:
        found.append(np.array_equal(fr.rank(TABLE, "y", n_estimators=8, n_jobs=2).importances(), want))

    threads = [threading.Thread(target=fit) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert found == [True] * 32


def test_one_ranker_in_many_threads() -> None:
    ranker = fr.ForestRanker(n_estimators=8)
    x, y = np.column_stack([TABLE[f"x{i}"] for i in range(8)]), TABLE["y"].to_numpy()
    want = fr.ForestRanker(n_estimators=8).fit(x, y).feature_importances_
    threads = [threading.Thread(target=ranker.fit, args=(x, y)) for _ in range(32)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert np.array_equal(ranker.feature_importances_, want)


# Exceptions of the user


class CustomError(Exception):
    pass


@pytest.mark.parametrize("error", [KeyboardInterrupt, CustomError, MemoryError, SystemExit])
def test_exceptions_in_a_callback_stay_themselves(error: type[BaseException]) -> None:
    def progress(*_: object) -> None:
        raise error("mine")

    with pytest.raises(error, match="mine"):
        fr.rank(TABLE, "y", n_estimators=2_000, progress=progress)
    assert fr.rank(TABLE, "y", n_estimators=2).n_rows == 3_000


@pytest.mark.parametrize("error", [KeyboardInterrupt, CustomError, MemoryError, SystemExit])
@pytest.mark.parametrize("how", ["generator", "reader"])
def test_exceptions_in_a_reader(error: type[BaseException], how: str) -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield from TABLE.to_batches(max_chunksize=1_000)
        raise error("mine")

    data = batches() if how == "generator" else pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    # What comes by the C interface has lost its class, but for Ctrl-C.
    wanted = (error, fr.DataError) if error is not KeyboardInterrupt else KeyboardInterrupt
    with pytest.raises(wanted, match="mine" if error is not KeyboardInterrupt else None):
        fr.rank(data, "y", n_estimators=2)
    assert fr.rank(TABLE, "y", n_estimators=2).n_rows == 3_000


def test_what_the_system_says_of_files_that_go_away(tmp_path: Path) -> None:
    path = tmp_path / "t.arrow"
    fr.convert(TABLE, path)
    dataset = fr.Dataset(path, "y")
    want = fr.rank(dataset, n_estimators=2).importances()
    path.unlink()
    # An open file is read to its end, whoever removes its name.
    assert np.array_equal(fr.rank(dataset, n_estimators=3, ranker="forest").importances().shape, want.shape)
    with pytest.raises(fr.ResourceError, match=str(path)):
        fr.rank(path, "y")
