"""Time per tree for a label hierarchy beside multi-label with the same closed sets.

python benches/hierarchy.py --rows 20000 --features 200 --labels 500
"""

from __future__ import annotations

import argparse

import numpy as np
import pyarrow as pa
from engines import per_tree
from recording import Record, add_option
from workloads import features

import ferrank as fr


def tree(n_labels: int, rng: np.random.Generator) -> dict[str, str | None]:
    """Each label's parent: ten roots, and below them at random, about five levels."""
    names = [f"l{number:04}" for number in range(n_labels)]
    above = [None if number < 10 else names[rng.integers(number)] for number in range(n_labels)]
    return dict(zip(names, above, strict=True))


def leaf_sets(X: np.ndarray, parents: dict[str, str | None], n_leaves: int, rng: np.random.Generator) -> list:
    """For each row the leaves that are highest in a noisy sum of two features of each leaf."""
    leaves = sorted(parents.keys() - set(parents.values()))
    height = rng.normal(0, 0.3, (len(X), len(leaves)))
    for leaf in range(len(leaves)):
        height[:, leaf] += X[:, rng.choice(X.shape[1], 2, replace=False)].sum(axis=1)
    highest = np.argpartition(-height, n_leaves, axis=1)[:, :n_leaves]
    return [[leaves[leaf] for leaf in row] for row in highest]


def closed(labels: list[str], parents: dict[str, str | None]) -> set[str]:
    found = set()
    for label in labels:
        at: str | None = label
        while at is not None:
            found.add(at)
            at = parents[at]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--features", type=int, default=200)
    parser.add_argument("--labels", type=int, default=500)
    parser.add_argument("--leaves", type=int, default=4, help="of a row")
    parser.add_argument("--trees", type=int, default=10)
    add_option(parser)
    args = parser.parse_args()

    rng = np.random.default_rng(0)
    X = features(rng, args.rows, args.features)
    parents = tree(args.labels, rng)
    sets = leaf_sets(X, parents, args.leaves, rng)
    rows = [closed(labels, parents) for labels in sets]
    n_labels = np.mean([len(row) for row in rows])
    print(f"{args.rows:,} x {args.features}, {args.labels} labels, {n_labels:.1f} a row with those above")
    flat = pa.table({label: pa.array([label in row for row in rows]) for label in parents})

    def ranker(n_trees: int, **settings) -> fr.ForestRanker:
        return fr.ForestRanker(n_estimators=n_trees, n_jobs=1, **settings)

    theirs = per_tree(lambda n: ranker(n).fit(X, flat), args.trees)
    ours = per_tree(lambda n: ranker(n, hierarchy=parents).fit(X, sets), args.trees)
    for name, spent in (("multi-label", theirs), ("hierarchical", ours)):
        print(f"{name:<13} {spent.tree:.4f} CPU s a tree, {spent.setup:.2f} CPU s before")
    ratio = ours.tree / theirs.tree
    print(f"ratio         {ratio:.2f}  wanted <= 1.2")
    if args.record:
        record = Record("hierarchy")
        size = f"{args.rows:,} x {args.features}, {args.labels} labels"
        both = {
            "value": round(ours.tree, 4),
            "baseline_value": round(theirs.tree, 4),
            "ratio": round(ratio, 2),
        }
        record.add(
            case="hierarchical", size=size, baseline="multi-label, closed sets", **both, wanted="<= 1.2"
        )
        print(record.write(args.record))


if __name__ == "__main__":
    main()
