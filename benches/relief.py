"""The Relief ranker beside fast-select, Orange and skrebate, in one run: `python benches/relief.py --help`.

It installs nothing: peers that are not there are left out.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import pyarrow as pa
from measure import fastest, peak_growth
from recording import Record, add_option

import ferrank as fr

K = 10
SIZES = [(5_000, 100), (10_000, 100), (5_000, 1_000)]
LARGER = [(20_000, 100), (10_000, 1_000)]  # for threads: what is done once weighs less
LONG = 20.0  # seconds of a run that is not done again
HEADER = ("rows x features", "peer", "peer, CPU s", "ferrank, CPU s", "ratio", "wanted")
FIELDS = ("size", "baseline", "baseline_value", "value", "ratio", "wanted")
ROW = "{:<28} {:<24} {:>12} {:>15} {:>8}  {}"


def data(n_rows: int, n_features: int) -> tuple[np.ndarray, np.ndarray]:
    """Values that all differ, and two classes that follow three of the features."""
    rng = np.random.default_rng(0)
    X = rng.random((n_rows, n_features))
    return X, (X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.random(n_rows) > 0.9).astype(int)


def of_classes(n_rows: int, n_features: int, n_classes: int) -> tuple[np.ndarray, np.ndarray]:
    """The values of `data` and equally many rows of each class."""
    X, _ = data(n_rows, n_features)
    signal = X[:, 0] + X[:, 1] * X[:, 2]
    return X, np.searchsorted(np.quantile(signal, np.arange(1, n_classes) / n_classes), signal)


def categories(n_rows: int, n_features: int) -> tuple[pa.Table, np.ndarray, np.ndarray]:
    """Three categories for each feature, as dictionaries and as integers; the classes follow two features."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (n_rows, n_features)).astype(np.int8)
    names = pa.array(["AA", "Aa", "aa"])
    columns = [pa.DictionaryArray.from_arrays(pa.array(column), names) for column in X.T]
    table = pa.table(dict(zip((f"x{i}" for i in range(n_features)), columns, strict=True)))
    return table, X, ((X[:, 0] == X[:, 1]) ^ (rng.random(n_rows) < 0.1)).astype(int)


def with_missing(n_rows: int, n_features: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    X, y = data(n_rows, n_features)
    return np.where(np.random.default_rng(1).random(X.shape) < share, np.nan, X), y


def ferrank(X: np.ndarray | pa.Table, y: np.ndarray, n_jobs: int = 1, **settings: Any) -> np.ndarray:
    ranker = fr.ReliefRanker("classification", n_neighbors=K, n_jobs=n_jobs, **settings)
    return ranker.fit(X, y).feature_importances_


def without_errors(X: np.ndarray | pa.Table, y: np.ndarray, **settings: Any) -> np.ndarray:
    """Importances alone, as peers give them."""
    return ferrank(X, y, standard_errors=False, **settings)


def fast_select(X: np.ndarray, y: np.ndarray, name: str = "ReliefF") -> np.ndarray:
    import fast_select

    neighbors = {"n_neighbors": K} if name == "ReliefF" else {}
    ranker = getattr(fast_select, name)(X.shape[1], **neighbors, backend="cpu", n_jobs=1)
    return ranker.fit(X.astype(np.float32), y.astype(np.int32)).feature_importances_


def orange(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from Orange.data import ContinuousVariable, DiscreteVariable, Domain, Table
    from Orange.preprocess.score import ReliefF

    names = [ContinuousVariable(f"x{number}") for number in range(X.shape[1])]
    table = Table.from_numpy(Domain(names, DiscreteVariable("y", values=("0", "1"))), X, y)
    return ReliefF(n_iterations=len(X), k_nearest=K)(table, None)


def skrebate(X: np.ndarray, y: np.ndarray) -> np.ndarray:
    from skrebate import ReliefF

    return ReliefF(n_neighbors=K, n_jobs=1).fit(X, y).feature_importances_


PEERS: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "fast-select": ("fast-select", fast_select),
    "orange": ("orange3", orange),
    "skrebate": ("skrebate", skrebate),
}


def wanted(peer: str, n_features: int) -> str:
    return {"fast-select": ">= 12x" if n_features >= 1_000 else ">= 8x", "orange": ">= 60x"}.get(peer, "")


def speed(sizes: list[tuple[int, int]], peers: list[str], most_rows: int) -> Iterator[tuple]:
    """Least CPU seconds of a whole ranking, all rows as queries.

    All rank a small set first, on which they import or compile what they need.
    """
    for n_rows, n_features in sizes:
        X, y = data(n_rows, n_features)
        ferrank(*data(100, n_features))
        (ours,) = fastest(partial(without_errors, X, y))
        for peer in peers:
            package, rank = PEERS[peer]
            try:
                found = version(package)
            except PackageNotFoundError:
                continue
            # Peers too slow for the size are timed on fewer rows, which cost the square of their share.
            rows = min(n_rows, n_rows if peer == "fast-select" else most_rows)
            rank(*data(100, n_features))
            (run,) = fastest(partial(rank, X[:rows], y[:rows]), long=LONG)
            theirs = run.cpu * (n_rows / rows) ** 2
            name = f"{package} {found}" + ("" if rows == n_rows else ", scaled")
            ratio = f"{theirs / ours.cpu:.1f}x"
            size = f"{n_rows:,} x {n_features:,}"
            yield size, name, f"{theirs:.2f}", f"{ours.cpu:.3f}", ratio, wanted(peer, n_features)


def tables(most_rows: int) -> Iterator[tuple]:
    """Least CPU seconds for other kinds of tables, beside fast-select on `most_rows` rows at most."""
    try:
        found = f"fast-select {version('fast-select')}"
    except PackageNotFoundError:
        return

    def numbers(n_rows: int, n_features: int) -> tuple:
        X, y = data(n_rows, n_features)
        return X, X, y

    def classes() -> tuple:
        X, y = of_classes(10_000, 100, 20)
        return X, X, y

    kinds: list[tuple[str, Callable[[], tuple], str]] = [
        ("10,000 x 100, 20 classes", classes, ">= 10x"),
        ("10,000 x 100, 3 categories", partial(categories, 10_000, 100), ">= 40x"),
        ("500 x 20,000", partial(numbers, 500, 20_000), ">= 8x"),
        ("500 x 20,000, 3 categories", partial(categories, 500, 20_000), ">= 20x"),
        ("200,000 x 20", partial(numbers, 200_000, 20), ">= 15x"),
        ("500 x 60,000", partial(numbers, 500, 60_000), ">= 6x"),
    ]
    for name, make, least in kinds:
        ours, X, y = make()
        rows = min(len(X), most_rows)
        fast_select(X[:100], y[:100])
        run, peer = fastest(
            partial(without_errors, ours, y), partial(fast_select, X[:rows], y[:rows]), long=LONG
        )
        theirs = peer.cpu * (len(X) / rows) ** 2
        peer_name = found + ("" if rows == len(X) else ", scaled")
        yield name, peer_name, f"{theirs:.2f}", f"{run.cpu:.3f}", f"{theirs / run.cpu:.1f}x", least


def multisurf(n_rows: int = 5_000, n_features: int = 100) -> Iterator[tuple]:
    """Least CPU seconds of MultiSURF, beside fast-select's."""
    try:
        found = f"fast-select {version('fast-select')}"
    except PackageNotFoundError:
        return
    X, y = data(n_rows, n_features)
    fast_select(X[:100], y[:100], "MultiSURF")
    calls = partial(without_errors, X, y, neighborhood="multisurf"), partial(fast_select, X, y, "MultiSURF")
    ours, theirs = (run.cpu for run in fastest(*calls, long=LONG))
    size = f"{n_rows:,} x {n_features:,}, MultiSURF"
    yield size, found, f"{theirs:.2f}", f"{ours:.3f}", f"{theirs / ours:.1f}x", ">= 10x"


def missing(n_rows: int = 10_000, n_features: int = 100) -> Iterator[tuple]:
    """Least CPU seconds with missing values and without."""
    size = f"{n_rows:,} x {n_features:,}"
    for share, most in ((0.001, "<= 1.3x"), (0.1, "<= 2x")):
        tables = data(n_rows, n_features), with_missing(n_rows, n_features, share)
        none, some = (run.cpu for run in fastest(*(partial(ferrank, X, y) for X, y in tables)))
        name = f"{size}, {share:.1%} missing"
        yield name, "none missing, CPU s", f"{none:.3f}", f"{some:.3f}", f"{some / none:.2f}x", most


def errors() -> Iterator[tuple]:
    """Least CPU seconds with standard errors, as by default, and without."""
    for n_rows, n_features in ((10_000, 100), (500, 20_000)):
        X, y = data(n_rows, n_features)
        runs = fastest(partial(without_errors, X, y), partial(ferrank, X, y))
        without, by_default = (run.cpu for run in runs)
        size, ratio = f"{n_rows:,} x {n_features:,}, standard errors", f"{by_default / without:.2f}x"
        yield size, "without, CPU s", f"{without:.3f}", f"{by_default:.3f}", ratio, ""


def threads(sizes: list[tuple[int, int]]) -> Iterator[tuple]:
    """Wall seconds of a whole ranking on two threads and on one."""
    for n_rows, n_features in sizes:
        X, y = data(n_rows, n_features)
        one, two = (run.wall for run in fastest(*(partial(ferrank, X, y, n) for n in (1, 2))))
        size = f"{n_rows:,} x {n_features:,}"
        least = ">= 1.7x" if n_rows < 10_000 else ">= 1.9x"
        yield size, "one thread, wall s", f"{one:.3f}", f"{two:.3f}", f"{one / two:.2f}x", least


def memory(n_rows: int) -> Iterator[tuple]:
    """Memory beyond the input for 1,000 queries among many rows, in a process of its own."""
    command = [sys.executable, __file__, "--measure-memory", str(n_rows)]
    grown = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout) / 1e6
    yield f"{n_rows:,} x 50", "peak memory, MB", "", f"{grown:.0f}", "", "<= 300 MB"


def measure_memory(n_rows: int) -> None:
    X = np.random.default_rng(0).random((n_rows, 50), dtype=np.float32)
    y = X[:, 0] + X[:, 1]
    print(peak_growth(lambda: fr.ReliefRanker(n_iterations=min(1_000, n_rows), n_jobs=1).fit(X, y)))


def size(text: str) -> tuple[int, int]:
    rows, features = text.lower().split("x")
    return int(rows), int(features)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sizes",
        nargs="+",
        type=size,
        metavar="ROWSxFEATURES",
        help="default: 5000x100 10000x100 5000x1000; for threads 20000x100 10000x1000, too",
    )
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=list(PEERS))
    parser.add_argument(
        "--most-rows", type=int, default=2_000, help="for Orange and skrebate; default: 2,000"
    )
    parser.add_argument("--memory-rows", type=int, default=1_000_000)
    parser.add_argument(
        "--most-peer-rows", type=int, default=20_000, help="for fast-select among tables; default: 20,000"
    )
    names = ["speed", "tables", "multisurf", "errors", "missing", "threads", "memory"]
    parser.add_argument("--case", nargs="+", choices=names, default=names)
    add_option(parser)
    parser.add_argument("--measure-memory", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    if args.measure_memory:
        measure_memory(args.measure_memory)
        return
    print(f"ferrank {fr.__version__}, NumPy {np.__version__}, k = {K}")
    print(ROW.format(*HEADER))
    record = Record("relief")
    cases = {
        "speed": speed(args.sizes or SIZES, args.peers, args.most_rows),
        "tables": tables(args.most_peer_rows),
        "multisurf": multisurf(),
        "errors": errors(),
        "missing": missing(),
        "threads": threads(args.sizes or SIZES + LARGER),
        "memory": memory(args.memory_rows),
    }
    for case in args.case:
        for row in cases[case]:
            print(ROW.format(*row), flush=True)
            record.add(case=case, **dict(zip(FIELDS, row, strict=True)))
    if args.record:
        print(record.write(args.record))


if __name__ == "__main__":
    main()
