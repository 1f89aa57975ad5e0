"""The quality of rankings and selections on simulated data, ours beside peers: `benches/quality.py --help`.

AUC is the chance that a relevant feature stands above an irrelevant one. For arms that select features, the
false discovery proportion is the share of the selected that is independent of the target, and power the share
of the relevant that is selected. CPU seconds are those of a ranking with all its threads and processes.
The kinds of group `discoveries` are for rankers that select; others are left out there.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import multiprocessing
import os
import resource
import warnings
from dataclasses import dataclass
from multiprocessing.connection import Connection

import numpy as np
from arms import ARMS, Outcome
from engines import auc
from kinds import DISCOVERIES, KINDS, Simulated
from recording import Record, add_option
from threadpoolctl import threadpool_limits

from tables import discoveries_by_arm, quality_by_arm

DRAWS = KINDS | DISCOVERIES
GROUPS = {"ranking": list(KINDS), "discoveries": list(DISCOVERIES)}
QUICK = ["friedman", "weak-binary", "mixed-independent"]
HEADER = ("ranker", "AUC", "+-", "CPU s", "FDP", "+-", "power", "+-", "note")
ROW = "{:<28} {:>6} {:>6} {:>8} {:>6} {:>6} {:>6} {:>6}  {}"

# Forked workers start at once and share what is imported; this process starts no threads.
PROCESSES = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Measured:
    """One ranking; what is not defined for it is NaN."""

    auc: float
    cpu: float  # seconds
    fdp: float
    power: float


def cpu_seconds() -> float:
    """CPU seconds of this process, its threads, and its processes that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def judge(data: Simulated, outcome: Outcome, cpu: float) -> Measured:
    fdp = power = math.nan
    some = data.relevant.any()
    if (selected := outcome.selected) is not None:
        fdp = (selected & data.null).sum() / max(1, selected.sum())
        power = selected[data.relevant].mean() if some else math.nan
    return Measured(auc(outcome.importances, data.relevant) if some else math.nan, cpu, fdp, power)


def warm_up_data() -> Simulated:
    """Return a table so small that ranking it costs little but imports."""
    rng = np.random.default_rng(0)
    X = rng.integers(3, size=(60, 6)).astype(float)
    one, nominal = np.arange(6) == 0, np.arange(6) < 3
    return Simulated(X, (X[:, 0] > 0).astype(np.int64), nominal, one, ~one)


def serve(requests: Connection, arm: str, fdr: float) -> None:
    """Rank the tables that are asked for by kind and seed, in a process of its own."""
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"  # for packages that are imported below
    threadpool_limits(1)
    rank = ARMS[arm].rank
    with contextlib.suppress(Exception):  # it will fail on the tables, too
        rank(warm_up_data(), 0, fdr)
    requests.send("ready")
    while True:
        kind, seed = requests.recv()
        data = DRAWS[kind](seed)
        before = cpu_seconds()
        try:
            outcome = rank(data, seed, fdr)
            requests.send(judge(data, outcome, cpu_seconds() - before))
        except Exception as error:  # a peer's failure is a result, too
            requests.send(f"{type(error).__name__}: {error}".splitlines()[0][:80])


class Worker:
    """A process that ranks with one arm, and ends where it takes longer than `limit` seconds."""

    def __init__(self, arm: str, fdr: float, limit: float) -> None:
        self.arm, self.fdr, self.limit = arm, fdr, limit
        self.process = None

    def measure(self, kind: str, seed: int) -> Measured | str:
        """Return what was measured, or why it was not."""
        if self.process is None:
            self.connection, other = PROCESSES.Pipe()
            self.process = PROCESSES.Process(target=serve, args=(other, self.arm, self.fdr), daemon=True)
            self.process.start()
            other.close()
            answer = self.answer()
            if answer != "ready":
                return answer
        self.connection.send((kind, seed))
        return self.answer()

    def answer(self) -> Measured | str:
        try:
            if self.connection.poll(self.limit):
                return self.connection.recv()
            reason = f"takes more than {self.limit:g} s"
        except EOFError:
            reason = "its process ended"
        self.end()
        return reason

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.process = None


def compare(kind: str, workers: dict[str, Worker], n_seeds: int, record: Record) -> None:
    """Print the table of a kind, and keep its rows."""
    first = DRAWS[kind](0)
    counts = f"{first.relevant.sum()} relevant, {first.null.sum():,} independent of the target"
    print(f"\n{kind}: {first.size}, {first.task}, {counts}")
    print(ROW.format(*HEADER) if workers else "left out: no ranker selects features")
    for name, worker in workers.items():
        arm, done = ARMS[name], []
        if not (note := arm.reason_against(first)):
            for seed in range(n_seeds):
                answer = worker.measure(kind, seed)
                if isinstance(answer, str):
                    note = f"seed {seed}: {answer}"
                    break
                done.append(answer)
        means = summary(done)
        print(ROW.format(name, *(shown(means[field]) for field in means), note), flush=True)
        known = {field: value for field, value in means.items() if not math.isnan(value)}
        record.add(case=kind, size=first.size, baseline=name, **known, seeds=len(done), note=note)


def summary(done: list[Measured]) -> dict[str, float]:
    """Means over seeds and their standard errors, rounded; NaN where there is nothing."""
    means = {}
    for field in ("auc", "cpu", "fdp", "power"):
        values = np.array([getattr(one, field) for one in done])
        means[field] = mean(values)
        if field != "cpu":
            means[f"{field}_error"] = mean_error(values)
    return {field: round(float(value), 4) for field, value in means.items()}


def mean(values: np.ndarray) -> float:
    return values.mean() if len(values) else math.nan


def mean_error(values: np.ndarray) -> float:
    return values.std(ddof=1) / math.sqrt(len(values)) if len(values) > 1 else math.nan


def shown(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def arguments() -> argparse.Namespace:
    described = "\n".join(f"  {name:<18} {DRAWS[name].description}" for name in DRAWS)
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"kinds:\n{described}\n\nrankers:\n" + "\n".join(f"  {name}" for name in ARMS),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--kinds",
        nargs="+",
        choices=[*GROUPS, *DRAWS],
        default=["ranking"],
        metavar="KIND",
        help="kinds of data, or `ranking` (default) or `discoveries` for all of a group",
    )
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS), metavar="RANKER")
    parser.add_argument("--seeds", type=int, default=10, help="tables of each kind; default: 10")
    parser.add_argument("--fdr", type=float, default=0.1, help="for rankers that select; default: 0.1")
    parser.add_argument(
        "--limit", type=float, default=120, help="seconds of a ranking, after which it ends; default: 120"
    )
    parser.add_argument("--quick", action="store_true", help="does it run? one seed of few kinds, 20 seconds")
    add_option(parser)
    return parser.parse_args()


def main() -> None:
    args = arguments()
    if args.quick:
        args.seeds, args.kinds, args.limit = 1, QUICK, 20
    kinds = list(dict.fromkeys(kind for name in args.kinds for kind in GROUPS.get(name, [name])))
    workers = {}
    for name in args.arms:
        if ARMS[name].is_installed:
            workers[name] = Worker(name, args.fdr, args.limit)
        else:
            print(f"{name}: left out, the package {ARMS[name].package} is not installed")
    record = Record("quality")
    for kind in kinds:
        chosen = {name: worker for name, worker in workers.items() if ARMS[name].selects or kind in KINDS}
        compare(kind, chosen, args.seeds, record)
        if args.record:  # what is done is kept, should the run be stopped
            record.write(args.record)
    for worker in workers.values():
        worker.end()
    for table in (quality_by_arm, discoveries_by_arm):
        print(f"\n{table(record.rows)}", end="")
    if args.record:
        print(record.write(args.record))


if __name__ == "__main__":
    main()
