"""Random small tables with what makes trees hard: ties, constants, missing values, few rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

NUMERIC = ("few", "real", "boolean", "constant", "integer", "close")
NOMINAL = ("two", "several", "many")


def values(kind: str, n_rows: int, rng: np.random.Generator, missing: float) -> pa.Array:
    """A column of `n_rows` values of a kind, about that share of them missing, but never the first."""
    match kind:
        case "few":
            data = rng.integers(0, 4, n_rows) / 4
        case "real":
            data = rng.normal(size=n_rows) * 10.0 ** rng.integers(-3, 4)
        case "close":
            data = 1 + rng.integers(0, 8, n_rows) * np.finfo(float).eps
        case "boolean":
            data = rng.random(n_rows) < 0.4
        case "constant":
            data = np.full(n_rows, 3.25)
        case "integer":
            data = rng.integers(-1000, 1000, n_rows)
        case "two" | "several" | "many" | "classes":
            categories = {"two": 2, "several": 5, "many": 12, "classes": 20}[kind]
            data = np.array([f"c{v}" for v in rng.integers(0, categories, n_rows)], dtype=object)
    return pa.array(data, mask=(rng.random(n_rows) < missing) & (np.arange(n_rows) > 0))


@st.composite
def tables(
    draw,
    targets: st.SearchStrategy[list[str]],
    *,
    features: tuple[str, ...] = NUMERIC,
    missing: bool = False,
    missing_targets: bool = False,
    weights: bool = False,
) -> tuple[pa.Table, list[str]]:
    """A table and the names of its targets; with `weights` it has a column `weight`."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_rows = draw(st.integers(2, 40))
    shares = st.sampled_from([0.0, 0.1, 0.5]) if missing else st.just(0.0)
    columns = {}
    for i, kind in enumerate(draw(st.lists(st.sampled_from(features), min_size=1, max_size=5))):
        columns[f"x{i}"] = values(kind, n_rows, rng, draw(shares))
    if weights:
        columns["weight"] = pa.array([1.0, *rng.integers(0, 9, n_rows - 1) / 4])
    names = []
    for i, kind in enumerate(draw(targets)):
        names.append(f"y{i}")
        columns[names[-1]] = values(kind, n_rows, rng, 0.2 if missing_targets else 0.0)
    return pa.table(columns), names


@st.composite
def hierarchies(
    draw, *, dag: bool, features: tuple[str, ...] = NUMERIC, missing: bool = False, weights: bool = False
) -> tuple[pa.Table, dict[str, list[str]]]:
    """A table whose column `y` holds label sets, some empty or missing, and the parents of each label."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    table, _ = draw(tables(st.just([]), features=features, missing=missing, weights=weights))
    # Up to 8 labels that vary are components of another kind than more.
    names = [f"l{number}" for number in rng.permutation(draw(st.integers(1, 16)))]
    parents = {
        name: rng.choice(
            names[:number], min(number, rng.integers(0, 4 if dag else 2)), replace=False
        ).tolist()
        for number, name in enumerate(names)
    }
    sizes = rng.integers(0, 4, table.num_rows)
    sets = [rng.choice(names, min(size, len(names)), replace=False).tolist() for size in sizes]
    rows = pa.array(sets, pa.list_(pa.string()), mask=rng.random(len(sets)) < (0.1 if missing else 0.0))
    if rows.null_count == len(rows):
        rows = pa.array(sets, pa.list_(pa.string()))
    return table.append_column("y", rows), parents


CLASSES = tables(
    st.sampled_from([["two"], ["several"], ["classes"], ["boolean"]]),
    features=NUMERIC + NOMINAL,
    missing=True,
)
"""Tables with one nominal target."""

MISSING_TARGETS = tables(
    st.lists(st.sampled_from(["real", "few", "several"]), min_size=2, max_size=3),
    features=NUMERIC + NOMINAL,
    missing=True,
    missing_targets=True,
)
"""Tables with two or three targets, of which values are missing."""
