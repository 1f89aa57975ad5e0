"""Runs that are killed at random moments, also while they write their file, and go on from it.

``python tests/resume_kills.py --kills 100`` kills runs with SIGKILL, most of them once the file of ``resume``
begins to grow, asks for a second run on the file meanwhile, and resumes. Half of the files are cut short,
too, as a power cut leaves them. Prints where the files ended, how many runs had the bits of one that was not
killed, and how often the second run was refused. Exits with 1 if one had other bits, or was not refused.
"""

import argparse
import multiprocessing
import os
import random
import signal
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa

import ferrank as fr

RANKERS: dict[str, fr.ForestRanker | fr.ReliefRanker] = {
    "forest": fr.ForestRanker(n_estimators=150, scores=("genie3", "permutation"), n_jobs=2),
    "relief": fr.ReliefRanker(n_jobs=2),
}


def table() -> pa.Table:
    rng = np.random.default_rng(1)
    columns = {f"x{i}": rng.normal(size=2_000) for i in range(8)}
    return pa.table(columns | {"y": columns["x0"] + rng.normal(size=2_000)})


def rank(data: pa.Table, name: str, path: Path | None = None) -> bytes:
    """Return the bits of a ranking."""
    found = fr.rank(data, "y", ranker=RANKERS[name], resume=path)
    scores = found.scores.values()
    return b"".join(
        part.tobytes() for score in scores for part in (score.importance, score.monte_carlo_error)
    )


def killed(
    data: pa.Table, name: str, path: Path, whole: int, seconds: float, rng: random.Random
) -> bool | None:
    """Begin a run and kill it; return whether a second run was refused, None if none was tried.

    ``whole`` is the number of records in the file of a complete run, ``seconds`` the duration of such a run.
    """
    child = multiprocessing.get_context("fork").Process(target=rank, args=(data, name, path))
    child.start()
    refused = None
    kind = rng.choice(["any moment", "first record", "record", "record"])
    if kind == "any moment":
        time.sleep(rng.uniform(0, seconds))
    else:
        # A moment at which the file grows.
        wanted = 1 if kind == "first record" else rng.randrange(3_000, 120_000)
        while child.is_alive() and (not path.exists() or path.stat().st_size < wanted):
            time.sleep(0)
        if rng.random() < 0.4 and child.is_alive():
            # The child may have finished, but not while it is stopped. Once all records are written, it may
            # have released the lock.
            os.kill(child.pid or 0, signal.SIGSTOP)
            now = os.waitid(os.P_PID, child.pid or 0, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
            if now is not None and now.si_code == os.CLD_STOPPED and records(path.read_bytes())[0] < whole:
                refused = second(data, name, path)
    if child.is_alive():
        os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    return refused


def second(data: pa.Table, name: str, path: Path) -> bool:
    """Return whether another run on the file is refused."""
    try:
        rank(data, name, path)
    except fr.SettingError as error:
        return "another run is writing" in str(error)
    return False


def records(content: bytes) -> tuple[int, int]:
    """Return the number of whole records of a file, and where the last of them ends."""
    stream = pa.BufferReader(content)
    pa.ipc.read_message(stream)
    number, end = 0, stream.tell()
    while True:
        try:
            pa.ipc.read_message(stream)
        except (pa.ArrowException, EOFError, OSError):
            return number, end
        number, end = number + 1, stream.tell()


def state(path: Path) -> str:
    """Return where the file ends."""
    if not path.exists():
        return "before the file"
    content = path.read_bytes()
    number, end = records(content)
    if end < len(content):
        return "within a record"
    return "between records" if number else "before a record"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, data = random.Random(options.seed), table()
    whole, seconds = {}, {}
    states: Counter[str] = Counter()
    bits: Counter[str] = Counter()
    seconds_runs: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="resume-kills-") as folder:
        n_records = {}
        for name in RANKERS:
            started = time.monotonic()
            path = Path(folder) / f"{name}.ferrank"
            whole[name] = rank(data, name, path)
            seconds[name] = time.monotonic() - started
            n_records[name] = records(path.read_bytes())[0]
        for number in range(options.kills):
            name = rng.choice(list(RANKERS))
            path = Path(folder) / f"{number}.ferrank"
            refused = killed(data, name, path, n_records[name], seconds[name], rng)
            if refused is not None:
                seconds_runs["refused" if refused else "NOT REFUSED"] += 1
            if path.exists() and rng.random() < 0.5:
                # The head is brought to the disk before there is a file.
                content = path.read_bytes()
                stream = pa.BufferReader(content)
                pa.ipc.read_message(stream)
                path.write_bytes(content[: rng.randint(stream.tell(), len(content))])
            states[state(path)] += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", fr.ResumeWarning)
                same = rank(data, name, path) == whole[name]
            bits["the same bits" if same else "OTHER BITS"] += 1
    print(f"{options.kills} kills: {dict(states)}; {dict(bits)}; second runs: {dict(seconds_runs)}")
    return int(bool(bits["OTHER BITS"] or seconds_runs["NOT REFUSED"]))


if __name__ == "__main__":
    raise SystemExit(main())
