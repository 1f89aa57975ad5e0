"""Files that another program changes while they are ranked: an error or the right answer, never a signal.

``python tests/changing_files.py --runs 200`` ranks files of each kind, in processes of their own, while their
files are cut short, written to in place, or replaced at a random moment. A run counts if the file was changed
before the ranking was done. Prints how the runs ended; exits with 1 if one ended otherwise than with an error
that names the file or with the bits of the unchanged file.
"""

import argparse
import json
import random
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

WORKER = """
import sys, warnings, ferrank as fr
warnings.simplefilter("ignore")
for line in sys.stdin:
    path = line.strip()
    data = fr.Dataset(path, target_last=1)
    data.source()
    print("begin", flush=True)
    try:
        found = fr.rank(data, ranker="forest", n_estimators=4, n_jobs=1)
    except fr.DataError as error:
        is_named = path in str(error) and "changed while it was read" in str(error)
        print("refused" if is_named else repr(error), flush=True)
    else:
        print("answer", found.importances().tobytes().hex(), flush=True)
"""


def table(n_rows: int) -> pa.Table:
    rng = np.random.default_rng(1)
    columns = {f"x{i}": rng.normal(size=n_rows) for i in range(12)}
    columns["word"] = rng.integers(300, size=n_rows).astype(str)
    columns["text"] = pa.array(rng.integers(9, size=n_rows).astype(str)).dictionary_encode()
    columns["y"] = columns["x0"] + rng.normal(size=n_rows)
    return pa.table(columns)


def write(folder: Path, n_rows: int) -> list[Path]:
    """Write the table in each format that is read without a copy."""
    rows = table(n_rows)
    pa.feather.write_feather(rows, folder / "one.arrow", "uncompressed", chunksize=n_rows)
    pa.feather.write_feather(rows, folder / "many.arrow", "uncompressed", chunksize=1_000)
    pa.feather.write_feather(rows, folder / "packed.arrow", "zstd", chunksize=n_rows)
    with pa.ipc.new_stream(folder / "stream.arrows", rows.schema) as writer:
        writer.write_table(rows, max_chunksize=5_000)
    pyarrow.parquet.write_table(rows, folder / "groups.parquet", row_group_size=n_rows // 8)
    numbers = rows.drop_columns(["word", "text"])
    with (folder / "text.arff").open("w") as file:
        file.write(
            "@relation r\n" + "".join(f"@attribute {n} numeric\n" for n in numbers.column_names) + "@data\n"
        )
        matrix = np.column_stack([column.to_numpy() for column in numbers.columns])
        np.savetxt(file, matrix[:20_000], "%.6f", ",")
    np.save(folder / "matrix.npy", matrix)
    np.save(folder / "columns.npy", np.asfortranarray(matrix))
    return sorted(folder.iterdir())


def change(path: Path, rng: random.Random) -> str:
    """Change a file as other programs do."""
    size = path.stat().st_size
    kind = rng.choice(["cut", "cut", "empty", "overwrite", "overwrite", "rewrite", "replace"])
    if kind == "cut":
        with path.open("r+b") as file:
            file.truncate(rng.randrange(size))
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "overwrite":
        with path.open("r+b") as file:
            for _ in range(rng.randrange(1, 40)):
                file.seek(rng.randrange(size))
                file.write(rng.randbytes(rng.choice([1, 8, 4096, 100_000])))
    elif kind == "rewrite":
        content = path.read_bytes()
        path.write_bytes(content[: size // 2] + content[size // 3 :])
    else:
        other = path.with_name("other")
        other.write_bytes(rng.randbytes(size // 2))
        other.rename(path)
    return kind


class Worker:
    """A process that ranks one file after the other; another takes its place if it dies."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        command = [sys.executable, "-c", WORKER]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def start(self, path: Path) -> None:
        """Let the process open a file, and return when it ranks."""
        print(path, file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "begin\n"

    def is_done(self) -> bool:
        return bool(select.select([self._process.stdout], [], [], 0)[0])

    def end(self) -> str:
        """Return what the process says in the end."""
        said = self._process.stdout.readline().strip()
        if not said:
            said = f"exit {self._process.wait()}"
            self._begin()
        return said


def run(worker: Worker, path: Path, wait: float, rng: random.Random) -> tuple[str, str, bool]:
    """Rank a file that is changed after ``wait`` seconds; return how, the end, and if it was in time."""
    worker.start(path)
    time.sleep(wait)
    in_time = not worker.is_done()
    kind = change(path, rng)
    in_time &= not worker.is_done()
    return kind, worker.end(), in_time


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200, help="runs in which the file is changed in time")
    parser.add_argument("--rows", type=int, default=90_000, help="rows of the files")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    ends: Counter[tuple[str, str, str]] = Counter()
    wrong, counted, tried = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="changing-") as name:
        folder = Path(name)
        (folder / "whole").mkdir()
        files = write(folder / "whole", options.rows)
        want, takes = {}, {}
        worker = Worker()
        for file in files:
            worker.start(file)
            started = time.monotonic()
            want[file.name] = worker.end()
            takes[file.name] = time.monotonic() - started
            assert want[file.name].startswith("answer"), want
        while counted < options.runs and tried < 4 * options.runs:
            file = files[tried % len(files)]
            tried += 1
            path = folder / file.name
            shutil.copyfile(file, path)
            kind, end, in_time = run(worker, path, rng.random() * takes[file.name], rng)
            if not in_time:
                continue
            counted += 1
            right = end in ("refused", want[file.name])
            ends[file.name, kind, end.split()[0]] += 1
            if not right:
                wrong.append((file.name, kind, end))
                print("wrong:", json.dumps(wrong[-1]), flush=True)
    for (name, kind, end), count in sorted(ends.items()):
        print(f"{name:14} {kind:10} {end:8} {count:4}")
    print(f"{counted} runs in which the file was changed in time: {len(wrong)} wrong")
    return 1 if wrong or counted < options.runs else 0


if __name__ == "__main__":
    raise SystemExit(main())
