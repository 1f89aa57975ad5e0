"""How the cost of a tree of ferrank grows, with one size at a time: `python benches/growth.py --help`.

CPU milliseconds for each tree of a random forest on one thread, beside the set-up before the first;
with `threads`, wall milliseconds. Trees are fully grown with at least two rows in a leaf unless the
case is `depth`. The documentation draws the curves of the latest record.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from engines import MeasureError, Size, told_apart
from measure import fastest
from recording import Record, add_option

import ferrank as fr

ROW = "{:<10} {:>10} {:<20} {:>12} {:>12}"
LEAST_SECONDS = 0.3  # of the trees that are timed


@dataclass(frozen=True)
class Shape:
    rows: int = 20_000
    features: int = 20
    targets: int = 1
    labels: int = 0
    classes: int = 0
    max_depth: int | None = None
    max_bins: int = 255
    n_jobs: int = 1

    @property
    def size(self) -> Size:
        return Size(self.rows, self.features, self.labels or self.targets, labels=self.labels > 0)

    def fit(self) -> Callable[[int], object]:
        work = self.size.workload()
        y = work.y
        if self.classes:
            y = np.digitize(y, np.quantile(y, np.arange(1, self.classes) / self.classes)).astype(str)
        settings = {
            "max_features": self.size.max_features,
            "min_samples_leaf": 2,
            "max_depth": self.max_depth,
            "max_bins": self.max_bins,
            "n_jobs": self.n_jobs,
            "random_state": 0,
            "standard_errors": False,
        }
        return lambda n_trees: fr.ForestRanker(n_estimators=n_trees, **settings).fit(work.X, y)


# What each case varies, and its values.
BASE = Shape()
CASES: dict[str, tuple[Shape, str, tuple[int | None, ...]]] = {
    "rows": (BASE, "rows", (1_000, 10_000, 100_000, 1_000_000)),
    "features": (BASE, "features", (20, 100, 1_000, 10_000)),
    "targets": (BASE, "targets", (1, 2, 4, 16, 64)),
    "labels": (replace(BASE, features=50), "labels", (10, 30, 100, 300)),
    "classes": (BASE, "classes", (2, 3, 5, 10, 30)),
    "depth": (replace(BASE, rows=100_000), "max_depth", (4, 8, 12, 16, None)),
    "bins": (BASE, "max_bins", (15, 63, 255, 1_023, 65_535)),
    "threads": (replace(BASE, rows=100_000), "n_jobs", (1, 2)),
}
TREES = (1, 10, 100, 1_000)


def curve(case: str) -> Iterator[tuple[str, int, str, float, float]]:
    """Case, place on the axis, size, and milliseconds of a tree and of the set-up."""
    base, varied, values = CASES[case]
    for value in values:
        shape = replace(base, **{varied: value})
        fit = shape.fit()
        tree, setup = cost(fit, wall=case == "threads")
        yield case, value or 0, str(shape.size), 1e3 * tree, 1e3 * setup


def cost(fit: Callable[[int], object], *, wall: bool) -> tuple[float, float]:
    """Seconds of a tree and of the set-up."""
    (one,) = fastest(partial(fit, 1))
    n_trees = max(2, round(LEAST_SECONDS / max(one.cpu / 4, 1e-3)))
    while True:
        few, many = fastest(partial(fit, 1), partial(fit, n_trees + 1))
        # A long set-up has noise that a few trees do not stand out from.
        if many.cpu < 1.5 * few.cpu:
            n_trees *= 2
            continue
        try:
            apart = (
                told_apart(few.wall, many.wall, n_trees) if wall else told_apart(few.cpu, many.cpu, n_trees)
            )
        except MeasureError:
            n_trees *= 4
            continue
        return apart.tree, apart.setup


def forests() -> Iterator[tuple[str, int, str, float, float]]:
    """Whole calls with more and more trees; milliseconds for each tree, the set-up among them."""
    fit = BASE.fit()
    for n_trees in TREES:
        (run,) = fastest(partial(fit, n_trees))
        yield "trees", n_trees, str(BASE.size), 1e3 * run.cpu / n_trees, 0.0


def main() -> None:
    names = [*CASES, "trees"]
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", nargs="+", choices=names, default=names)
    add_option(parser)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    print(ROW.format("case", "value", "size", "ms a tree", "set-up, ms"))
    record = Record("growth")
    for case in args.case:
        for name, at, size, tree, setup in forests() if case == "trees" else curve(case):
            print(ROW.format(name, at or "any", size, f"{tree:.3f}", f"{setup:.1f}"), flush=True)
            record.add(case=name, size=size, at=at, value=round(tree, 4), setup=round(setup, 2))
    if args.record:
        print(record.write(args.record))


if __name__ == "__main__":
    main()
