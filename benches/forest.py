"""The forest ranker beside scikit-learn, in one run: `python benches/forest.py --help`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import measure
import numpy as np
import scipy.sparse as sp
import sklearn
from engines import (
    PEERS,
    MeasureError,
    Size,
    auc,
    ferrank,
    fitting,
    peers,
    per_tree,
    side_by_side,
    told_apart,
)
from measure import RUNS, cost, fastest, peak_growth
from recording import Record, add_option
from workloads import regression

import ferrank as fr

HEADER = ("case", "size", "peer", "peer", "ferrank", "ratio", "with setup", "wanted")
FIELDS = ("case", "size", "baseline", "baseline_value", "value", "ratio", "with_setup", "wanted")
ROW = "{:<14} {:<26} {:<24} {:>9} {:>9} {:>8} {:>10}  {}"
MEGABYTE = 1e6


@dataclass(frozen=True)
class Settings:
    trees: int
    peer_trees: int
    forest: int
    rows: list[int]
    features: list[int]
    targets: list[int]
    memory_rows: int
    quality_rows: int
    quality_sets: int


Rows = Iterator[tuple]


def against(case: str, size: Size, peer: str, settings: Settings, wanted: str, **ours) -> tuple:
    theirs, few, many = side_by_side(size, peer, settings.peer_trees, settings.trees, **ours)
    try:
        mine = told_apart(few, many, settings.trees)
    except MeasureError as reason:
        return (case, size, peer, f"{theirs:.3f} s", "?", "?", "?", f"{wanted}; not measured: {reason}")
    whole = theirs * settings.forest / mine.of_forest(settings.forest)
    return (
        case,
        size,
        peer,
        f"{theirs:.3f} s",
        f"{mine.tree:.4f} s",
        f"{theirs / mine.tree:.1f}x",
        f"{whole:.1f}x",
        wanted,
    )


def trees(settings: Settings) -> Rows:
    """CPU seconds for each tree, by size: random forest, exact codes, extra trees."""
    for n_targets in settings.targets:
        one = n_targets == 1
        for n_features in settings.features:
            for n_rows in settings.rows:
                size = Size(n_rows, n_features, n_targets)
                large = n_rows >= 1_000_000
                forest, extra = "RandomForestRegressor", "ExtraTreesRegressor"
                wanted = (25 if large else 15) if one else (9 if large else 7)
                yield against("random forest", size, forest, settings, f">= {wanted}x")
                exact = 5 if one else 3.5
                yield against("exact codes", size, forest, settings, f">= {exact}x", max_bins=65_535)
                yield against("extra trees", size, extra, settings, ">= 4x", ensemble="extra_trees")
                yield against("forest / extra", size, extra, settings, ">= 2x" if n_features == 200 else "")


def wide(settings: Settings) -> Rows:
    """CPU seconds of whole calls on short and wide tables, without standard errors, as peers have none."""
    n_features = min(20_000, settings.rows[0] // 5)
    shapes = [(n_rows, n_features, n_trees) for n_rows in (200, 2_000) for n_trees in (11, 100)]
    for n_rows, n_columns, n_trees in [*shapes, (2_000, 5 * n_features // 2, 1)]:
        size = Size(n_rows, n_columns, 1)
        few = {200: 1.2, 2_000: 2}[n_rows]
        work = size.workload()
        made = {
            "n_estimators": n_trees,
            "max_features": size.max_features,
            "min_samples_leaf": 2,
            "n_jobs": 1,
        }
        models = {name: make(**made) for name, make in peers("RandomForestRegressor").items()}
        fits = [partial(model.fit, work.X, work.y) for model in models.values()]
        *theirs, ours = (
            run.cpu for run in fastest(*fits, partial(fitting(size, standard_errors=False), n_trees))
        )
        for name, peer in zip(models, theirs, strict=True):
            yield (
                f"whole, {n_trees} trees",
                size,
                name,
                f"{peer:.3f} s",
                f"{ours:.3f} s",
                f"{peer / ours:.2f}x",
                "",
                f">= {few if n_trees < 100 else 4}x",
            )


def classes(settings: Settings) -> Rows:
    """CPU seconds for each tree with several classes, beside each peer."""
    n_rows, n_features = settings.rows[0], 20
    work = regression(n_rows, n_features, 1)
    size = Size(n_rows, n_features, 1)
    made = {"max_features": size.max_features, "min_samples_leaf": 2, "n_jobs": 1}
    for n_classes in (2, 3, 5, 10):
        y = np.digitize(work.y, np.quantile(work.y, np.arange(1, n_classes) / n_classes)).astype(str)
        makers = peers("RandomForestClassifier") | {
            "ferrank": partial(fr.ForestRanker, standard_errors=False)
        }
        fits = [
            partial(make(n_estimators=n_trees, **made).fit, work.X, y)
            for make in makers.values()
            for n_trees in (1, settings.trees + 1)
        ]
        costs = [run.cpu for run in fastest(*fits)]
        *theirs, ours = (
            (many - few) / settings.trees for few, many in zip(costs[::2], costs[1::2], strict=True)
        )
        for name, peer in zip(makers, theirs, strict=False):
            times = (f"{peer:.4f} s", f"{ours:.4f} s", f"{peer / ours:.1f}x")
            yield (f"{n_classes} classes", size, name, *times, "", ">= 5x")


SPARSE_PEERS = {"number": "RandomForestRegressor", "classes": "RandomForestClassifier"}


def sparse_fits(n_rows: int, kind: str) -> dict[str, Callable[[int], object]]:
    """Fits of scikit-learn and of ferrank, told how many trees, on 100 values in each sparse row."""
    rng = np.random.default_rng(0)
    n_features = 5 * n_rows // 2
    # scikit-learn reads indices of 32 bits alone.
    columns = rng.integers(0, n_features, 100 * n_rows, dtype=np.int32)
    rows = np.repeat(np.arange(n_rows, dtype=np.int32), 100)
    X = sp.csr_array((rng.random(columns.size), (rows, columns)), shape=(n_rows, n_features))
    y = X @ rng.normal(size=n_features)
    y = (y > np.median(y)).astype(str) if kind == "classes" else y
    settings = {"n_jobs": 1, "max_features": "sqrt", "random_state": 0}
    # Without standard errors, as peers have none.
    makers = {"peer": PEERS[SPARSE_PEERS[kind]], "ferrank": partial(fr.ForestRanker, standard_errors=False)}
    return {
        name: lambda n_trees, make=make: make(n_estimators=n_trees, **settings).fit(X, y)
        for name, make in makers.items()
    }


def sparse(settings: Settings) -> Rows:
    """CPU seconds and memory of a random forest on sparse rows."""
    n_rows = min(20_000, settings.rows[0])
    for kind, peer in SPARSE_PEERS.items():
        size = f"CSR {n_rows:,} x {5 * n_rows // 2:,}"
        fits = sparse_fits(n_rows, kind).values()
        calls = [partial(fit, n_trees) for fit in fits for n_trees in (1, 10)]
        peer_few, peer_many, few, many = (run.cpu for run in fastest(*calls))
        theirs, ours = (peer_many - peer_few) / 9, (many - few) / 9
        tree = (f"{theirs:.3f} s", f"{ours:.4f} s", f"{theirs / ours:.1f}x", f"{peer_many / many:.1f}x")
        yield (f"sparse {kind}", size, peer, *tree, ">= 3x, 10 trees with setup >= 3x")
        theirs, ours = (
            int(measured("--measure-sparse", str(n_rows), kind, name)) for name in ("peer", "ferrank")
        )
        memory = (f"{theirs / MEGABYTE:.0f} MB", f"{ours / MEGABYTE:.0f} MB", f"{theirs / ours:.2f}x")
        yield (f"{kind}, memory", size, peer, *memory, "", "")


def measured(*arguments: str) -> str:
    """What a process of its own prints."""
    command = [sys.executable, __file__, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def measure_sparse(n_rows: str, kind: str, name: str) -> None:
    print(peak_growth(partial(sparse_fits(int(n_rows), kind)[name], 2)))


def setup(settings: Settings) -> Rows:
    """Nanoseconds of CPU time for each value before the first tree."""
    largest, n_features = max(settings.rows), min(20_000, settings.rows[0] // 5)
    for n_rows, n_columns, wanted in (
        (200, n_features, 10),
        (settings.rows[0], 200, 12),
        (3 * largest, 20, 7),
    ):
        size = Size(n_rows, n_columns, 1)
        # On few rows a tree costs little.
        n_trees = max(settings.trees, 20_000 // n_rows)
        try:
            cost = per_tree(fitting(size), n_trees).setup / (n_rows * n_columns)
        except MeasureError as reason:
            yield ("set-up", size, "", "", "?", "", "", f"<= {wanted} ns a value; not measured: {reason}")
            continue
        yield ("set-up", size, "", "", f"{1e9 * cost:.1f} ns", "", "", f"<= {wanted} ns a value")


def label_sets(settings: Settings) -> Rows:
    """100 labels, 3 a row; scikit-learn as a classifier, and on the labels as numbers."""
    size = Size(min(20_000, settings.rows[0]), 200, 100, labels=True)
    yield against("labels", size, "RandomForestClassifier", settings, ">= 40x")
    yield against("labels", size, "RandomForestRegressor", settings, "")
    extra = {"ensemble": "extra_trees"}
    yield against("labels, extra", size, "ExtraTreesClassifier", settings, ">= 8x", **extra)
    yield against("labels, extra", size, "ExtraTreesRegressor", settings, "", **extra)


def variants(settings: Settings) -> Rows:
    """CPU seconds for each tree with classes, targets, missing values or row weights, against without."""
    n_rows, n_features = settings.rows[0], 20
    work = regression(n_rows, n_features, 1)
    rng = np.random.default_rng(1)

    def classes(n: int) -> np.ndarray:
        return np.digitize(work.y, np.quantile(work.y, np.arange(1, n) / n)).astype(str)

    def gaps(share: float) -> np.ndarray:
        return np.where(rng.random(work.X.shape) < share, np.nan, work.X).astype(np.float32)

    both = np.column_stack([work.y, work.y + rng.normal(size=n_rows) * work.y.std()])
    weights = rng.integers(1, 3, n_rows).astype(float)
    plain, binary = (work.X, work.y, None), (work.X, classes(2), None)
    compared = [
        ("3 classes", "2 classes", (work.X, classes(3), None), binary, 1.6),
        ("5 classes", "2 classes", (work.X, classes(5), None), binary, 2.0),
        ("10 classes", "2 classes", (work.X, classes(10), None), binary, ""),
        ("2 targets", "1 target", (work.X, both, None), plain, 1.8),
        ("0.1 % missing", "none missing", (gaps(0.001), work.y, None), plain, 1.2),
        ("10 % missing", "none missing", (gaps(0.1), work.y, None), plain, 1.5),
        ("10 %, 2 classes", "none missing", (gaps(0.1), classes(2), None), binary, 1.5),
        ("row weights", "no weights", (work.X, work.y, weights), plain, 1.3),
        ("weights, binary", "no weights", (work.X, classes(2), weights), binary, 1.3),
    ]
    size = f"{n_rows:,} x {n_features}"
    for name, base, data, without, wanted in compared:
        calls = [
            partial(fit_weighted, *part, n_trees)
            for part in (without, data)
            for n_trees in (1, settings.trees + 1)
        ]
        few, many, own_few, own_many = (run.cpu for run in fastest(*calls))
        theirs, ours = (many - few) / settings.trees, (own_many - own_few) / settings.trees
        limit = f"<= {wanted} times" if wanted else ""
        yield (name, size, base, f"{theirs:.4f} s", f"{ours:.4f} s", f"{ours / theirs:.2f}x", "", limit)


def fit_weighted(X: np.ndarray, y: np.ndarray, weights: np.ndarray | None, n_trees: int) -> None:
    n_features = X.shape[1]
    ranker = ferrank(Size(len(X), n_features, 1), n_trees, standard_errors=False)
    ranker.fit(X, y, sample_weight=weights)


def permutation(settings: Settings) -> Rows:
    """CPU seconds that the permutation score of all features adds to growing the trees."""
    size = Size(settings.rows[0], 200, 1)
    asked = (("genie3",), ("genie3", "permutation"))
    runs = fastest(*(partial(fitting(size, scores=scores), settings.forest) for scores in asked))
    alone, both = (run.cpu for run in runs)
    share = f"{both / alone - 1:.2f}"
    yield (
        "permutation",
        size,
        "ferrank, genie3 only",
        f"{alone:.2f} s",
        f"{both:.2f} s",
        share,
        "",
        "<= 0.5 more",
    )


def threads(settings: Settings) -> Rows:
    """Wall seconds of a whole forest on two threads and on one, and what two processes at once reach."""
    for n_features in settings.features:
        size = Size(settings.rows[0], n_features, 1)
        fits = (partial(fitting(size, n_jobs=n), settings.forest) for n in (1, 2))
        one, two = (run.wall for run in fastest(*fits))
        apart = min(two_processes(size, settings.forest) for _ in range(RUNS))
        peer, alone = "ferrank, one thread", f"{one:.2f} s"
        yield ("two threads", size, peer, alone, f"{two:.2f} s", f"{one / two:.2f}x", "", ">= 1.9x")
        # The most the machine allows: each process grows a forest of its own.
        yield ("two processes", size, peer, alone, f"{apart / 2:.2f} s", f"{2 * one / apart:.2f}x", "", "")


def two_processes(size: Size, n_trees: int) -> float:
    """Wall seconds that the slower of two processes takes that each fit a forest at the same time."""
    command = [sys.executable, __file__, "--measure-fit", str(size.rows), str(size.features), str(n_trees)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return max(float(process.communicate()[0]) for process in processes)


def measure_fit(n_rows: int, n_features: int, n_trees: int) -> None:
    fit = partial(fitting(Size(n_rows, n_features, 1)), n_trees)
    print("ready", flush=True)
    sys.stdin.readline()
    print(cost(fit).wall)


def memory(settings: Settings) -> Rows:
    """Memory beyond the input, in a process of its own."""
    size = Size(settings.memory_rows, 200, 1)
    grown = int(measured("--measure-memory", str(size.rows), str(size.features)))
    values = size.rows * size.features
    limit = 1.5 * values + 200 * MEGABYTE
    yield (
        "peak memory",
        size,
        "input as float32",
        f"{4 * values / MEGABYTE:.0f} MB",
        f"{grown / MEGABYTE:.0f} MB",
        f"{grown / limit:.2f}",
        "",
        f"<= 1 of {limit / MEGABYTE:.0f} MB",
    )


def measure_memory(n_rows: int, n_features: int) -> None:
    work = regression(n_rows, n_features, 1)
    ranker = ferrank(Size(n_rows, n_features, 1), 2)
    print(peak_growth(lambda: ranker.fit(work.X, work.y)))


def quality(settings: Settings) -> Rows:
    """AUC of relevant against irrelevant features, mean over data sets; additive and interaction terms."""
    size = Size(settings.quality_rows, 200, 1)
    theirs, ours = [], []
    for seed in range(settings.quality_sets):
        work = regression(size.rows, size.features, size.targets, seed)
        peer = PEERS["RandomForestRegressor"](
            n_estimators=settings.forest,
            max_features=size.max_features,
            min_samples_leaf=2,
            random_state=seed,
        )
        theirs.append(auc(peer.fit(work.X, work.y).feature_importances_, work.relevant))
        ranker = ferrank(size, settings.forest, random_state=seed).fit(work.X, work.y)
        ours.append(auc(ranker.feature_importances_, work.relevant))
    a, b = np.mean(theirs), np.mean(ours)
    error = np.std(np.subtract(ours, theirs)) / np.sqrt(len(ours))
    wanted = f">= -0.005 (this is +- {error:.4f})"
    yield ("AUC", size, "RandomForestRegressor", f"{a:.4f}", f"{b:.4f}", f"{b - a:+.4f}", "", wanted)


CASES: dict[str, Callable[[Settings], Rows]] = {
    "trees": trees,
    "wide": wide,
    "classes": classes,
    "sparse": sparse,
    "setup": setup,
    "labels": label_sets,
    "variants": variants,
    "permutation": permutation,
    "threads": threads,
    "memory": memory,
    "quality": quality,
}


def arguments() -> argparse.Namespace:
    described = "\n".join(f"  {name:<12} {case.__doc__.strip()}" for name, case in CASES.items())
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog=f"cases:\n{described}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--case", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--quick", action="store_true", help="small sizes, which say nothing about speed")
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--features", nargs="+", type=int, default=[20, 200])
    parser.add_argument("--targets", nargs="+", type=int, default=[1, 16])
    parser.add_argument("--trees", type=int, default=5, help="trees of ferrank to time")
    parser.add_argument("--peer-trees", type=int, default=1, help="trees of scikit-learn to time")
    parser.add_argument("--forest", type=int, default=100, help="trees of a whole forest")
    parser.add_argument("--memory-rows", type=int, default=1_000_000)
    parser.add_argument("--quality-rows", type=int, default=2_000)
    parser.add_argument("--quality-sets", type=int, default=40)
    add_option(parser)
    parser.add_argument("--measure-fit", nargs=3, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure-memory", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure-sparse", nargs=3, help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> None:
    args = vars(arguments())
    for part in (measure_memory, measure_fit, measure_sparse):
        if shape := args.pop(part.__name__):
            part(*shape)
            return
    cases, quick, folder = args.pop("case"), args.pop("quick"), args.pop("record")
    record = Record("forest")
    settings = Settings(**args)
    if quick:
        settings = Settings(2, 1, 5, [2_000], [20], [1, 4], 5_000, 300, 2)
        measure.ENOUGH = 0.0
    print(f"ferrank {fr.__version__}, scikit-learn {sklearn.__version__}, NumPy {np.__version__}")
    print(ROW.format(*HEADER))
    for name in cases:
        for row in CASES[name](settings):
            print(ROW.format(*map(str, row)), flush=True)
            record.add(**dict(zip(FIELDS, row, strict=True)))
    if folder:
        print(record.write(folder))


if __name__ == "__main__":
    main()
