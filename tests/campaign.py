"""Hostile inputs: files and arrays that are changed at random, in processes with limits on time and memory.

``python tests/campaign.py --cases 2000 --first 0`` tries cases 0 to 1,999, which go round the kinds of input.
A case depends on its number alone. Counted are what must never be: crashes, hangs (20 s of CPU, or 120 s on
a machine that may be busy), panics, exceptions that are no FerrankError, memory beyond the limit and 64 MB,
and arrays that are accepted though pyarrow finds them invalid. Offending cases are printed; their files are
kept in ``--keep``. Exits with 1 if there is any.
Files that unpack to a gigabyte ("bombs") are tried only if that kind is named.
"""

import argparse
import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter, defaultdict
from pathlib import Path

from hostile import KINDS, SilentError

SECONDS = 20
"""Of CPU that a case may take."""
BUSY = 6
"""So many times as long it may take on a busy machine."""
LIMIT_MB = 400
BEYOND_MB = 64
SAMPLE_SECONDS = 0.005
ADDRESS_SPACE = 12 << 30
"""Bytes; what is asked for beyond them fails, and ends a process that does not expect it."""
OUTCOMES = ("fine", "refused", "crash", "hang", "panic", "foreign", "memory", "silent")
WRONG = OUTCOMES[2:]
CASES_OF_WORKER = 2_000


def main() -> int:
    options = _options()
    if options.worker:
        return _work(options)
    kinds = options.kinds or [kind for kind in KINDS if kind != "bombs"]
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    first: list[dict[str, object]] = []
    started = time.monotonic()
    number, end = options.first, options.first + options.cases
    while number < end and not (options.seconds and time.monotonic() - started > options.seconds):
        last = min(end, number + CASES_OF_WORKER)
        for report in _worker(kinds, number, last, options):
            counts[report["kind"]][report["outcome"]] += 1
            number = report["number"] + 1
            if report["outcome"] in WRONG:
                first.append(report)
                print("{outcome}: {kind} {number}: {detail}".format(**report), flush=True)
            if options.seconds and time.monotonic() - started > options.seconds:
                break
    _print_table(counts)
    return 1 if first else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=2_000, help="number of cases")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, metavar="KIND", help=f"of {', '.join(KINDS)}")
    parser.add_argument("--seconds", type=float, help="no longer than this")
    parser.add_argument("--keep", type=Path, help="folder for the files of offending cases")
    parser.add_argument("--worker", type=Path, metavar="FOLDER", help=argparse.SUPPRESS)
    return parser.parse_args()


def _print_table(counts: dict[str, Counter[str]]) -> None:
    total: Counter[str] = Counter()
    for of_kind in counts.values():
        total += of_kind
    print(f"{'kind':18}{'cases':>9}" + "".join(f"{outcome:>9}" for outcome in OUTCOMES))
    for kind, of_kind in [*sorted(counts.items()), ("all", total)]:
        cells = "".join(f"{of_kind[outcome]:9,}" for outcome in OUTCOMES)
        print(f"{kind:18}{of_kind.total():9,}{cells}")


def _worker(kinds, number, last, options):
    """Yield the reports of cases up to ``last``, or up to one that ends the process."""
    with tempfile.TemporaryDirectory(prefix="campaign-") as folder, tempfile.TemporaryFile() as errors:
        command = [
            sys.executable,
            __file__,
            "--worker",
            folder,
            "--first",
            str(number),
            "--cases",
            str(last - number),
        ]
        command += ["--kinds", *kinds]
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL, start_new_session=True
        )
        try:
            running, buffer = None, b""
            while True:
                ready = _waited(process, SECONDS if running else BUSY * SECONDS)
                block = os.read(process.stdout.fileno(), 1 << 16) if ready else b""
                *lines, buffer = (buffer + block).split(b"\n")
                for line in lines:
                    report = json.loads(line)
                    running = report if report["outcome"] is None else None
                    if running is None:
                        _keep(report, folder, options.keep)
                        yield report
                if not block:
                    break
            if running is None and ready and process.wait(SECONDS) == 0:
                return
            if ready:
                code = process.wait(SECONDS)
                outcome, what = "crash", signal.Signals(-code).name if code < 0 else f"exit code {code}"
            else:
                outcome, what = "hang", f"no end in {SECONDS} s of CPU or {BUSY * SECONDS} s"
            if running is None:  # at the end of the interpreter, or before the first case
                running = {"kind": "exit", "number": last - 1}
            report = {**running, "outcome": outcome, "detail": f"{what} {_tail(errors)}"}
            _keep(report, folder, options.keep)
            yield report
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.wait()
            process.stdout.close()


def _waited(process, seconds: float) -> bool:
    """Return whether the process says something before it has taken ``seconds`` of CPU, or much longer."""
    started, before = time.monotonic(), _cpu(process.pid)
    while time.monotonic() - started < BUSY * seconds and _cpu(process.pid) - before < seconds:
        if select.select([process.stdout], [], [], 1)[0]:
            return True
    return False


def _cpu(number: int) -> float:
    """Return the seconds of CPU that a process and those it waited for have taken."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def _tail(errors) -> str:
    errors.seek(0)
    return errors.read().decode(errors="replace").strip()[-400:].replace("\n", " | ")


def _keep(report, folder, keep) -> None:
    if keep is not None and report["outcome"] in WRONG:
        keep.mkdir(parents=True, exist_ok=True)
        for file in Path(folder).glob("case*"):
            if file.is_file() and file.stat().st_size < 1 << 24:
                target = keep / f"{report['kind']}-{report['number']}-{file.name}"
                target.write_bytes(file.read_bytes())


def _work(options) -> int:
    import resource

    import ferrank

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def tell(**report: object) -> None:
        out.write(json.dumps(report) + "\n")
        out.flush()

    folder = options.worker
    for number in range(options.first, options.first + options.cases):
        kind = options.kinds[number % len(options.kinds)]
        for file in folder.glob("case*"):
            file.unlink()
        # Told before the case is made, which may be what fails.
        tell(kind=kind, number=number, outcome=None)
        outcome, detail = "fine", ""
        with _Peak() as peak:
            try:
                KINDS[kind](random.Random(f"{kind}/{number}"), folder, LIMIT_MB)
            except ferrank.FerrankError as error:
                outcome = "panic" if "this is a bug" in str(error) else "refused"
                detail = str(error)
            except SilentError as error:
                outcome, detail = "silent", str(error)
            except BaseException as error:
                outcome = "panic" if type(error).__name__ == "PanicException" else "foreign"
                detail = f"{type(error).__name__}: {error} {_place(error)}"
        if outcome in ("fine", "refused") and peak.most > max(LIMIT_MB, peak.before) + BEYOND_MB:
            outcome, detail = "memory", f"{peak.most:.0f} MB, {peak.before:.0f} before; {detail}"
        tell(kind=kind, number=number, outcome=outcome, detail=detail[:600])
    return 0


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"({Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno})"


class _Peak:
    """The most anonymous memory of the process in MB while a case runs: mapped files are not in it."""

    def __enter__(self):
        self.before = self.most = _anonymous()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self):
        while not self._is_over.wait(SAMPLE_SECONDS):
            self.most = max(self.most, _anonymous())

    def __exit__(self, *_):
        self._is_over.set()
        self._thread.join()


def _anonymous() -> float:
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("RssAnon:"):
                return int(line.split()[1]) / 1_000
    return 0.0


if __name__ == "__main__":
    raise SystemExit(main())
