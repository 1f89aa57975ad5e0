"""The bags of forests, found out from trees."""

from __future__ import annotations

import math

import numpy as np

import ferrank as fr


def bag_of(n_rows: int, seed: int, tree: int = 0) -> np.ndarray:
    """Multiplicity of each row in a bag of a forest; all 0 if a single row was drawn.

    It does not depend on the columns. A tree that tells all rows apart by their number has a leaf for each
    row of the bag, and each cut is above the greatest number on its left.
    """
    if n_rows == 1:
        return np.array([1])
    counts = np.zeros(n_rows, dtype=int)
    for numbers in (np.arange(n_rows), np.arange(n_rows)[::-1]):
        nodes = fr.grow_tree(
            {"row": numbers.astype(float), "y": numbers.astype(float)},
            "y",
            task="regression",
            ensemble="bagging",
            min_samples_leaf=1,
            max_bins=65_535,
            ties="lowest",
            n_estimators=tree + 1,
            tree=tree,
            random_state=seed,
        ).to_pylist()
        last: float | None = None
        stack = [(0, None)]
        while stack:
            number, cut = stack.pop()
            node = nodes[number]
            if node["feature"] is None:
                last = cut
                if last is not None:
                    counts[np.flatnonzero(numbers == math.floor(last))] = node["n_examples"]
            else:
                stack += [(node["right"], cut), (node["left"], node["cut"])]
        if len(nodes) == 1:
            # All draws are of one row, which no cut shows.
            return np.zeros(n_rows, dtype=int)
    return counts
