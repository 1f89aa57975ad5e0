"""Whether partitions differ in their distributions, told by their profiles."""

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa

__all__ = ["drift"]

_GREAT = 0.1
"""Least distance between distributions that matters."""
_CHANCE = 1e-3
"""Probability that any of the distances is found by chance alone."""

Floats = np.ndarray[Any, np.dtype[np.float64]]


def drift(part: bytes, whole: bytes, tests: int) -> list[tuple[str, float]]:
    """Return the columns whose distribution in a part differs from that in the whole, farthest first.

    The distance is the greatest difference between the distribution functions of the sampled values
    (Kolmogorov and Smirnov), or between the shares of a category or of missing values. It counts if it is
    above 0.1 and above what chance makes of any of ``tests`` comparisons.

    Parameters
    ----------
    part, whole : bytes
        Profiles.
    tests : int
        Number of comparisons made in all.

    Returns
    -------
    list of (name, distance)
    """
    (rows, columns), (all_rows, all_columns) = _read(part), _read(whole)
    if rows == 0:
        return []
    found = []
    for one, other in zip(columns, all_columns, strict=True):
        share = abs(one["missing"] / rows - other["missing"] / all_rows)
        distances = [(share, rows, all_rows)]
        if one["counts"] is not None:
            distances.append((_shares(one, rows, other, all_rows), rows, all_rows))
        elif one["sample"] is not None:
            values, others = _known(one["sample"]), _known(other["sample"])
            if len(values) and len(others):
                distances.append((_smirnov(values, others), len(values), len(others)))
        counting = [far for far, n, m in distances if far > max(_GREAT, _chance(n, m, tests))]
        if counting:
            found.append((str(one["name"]), max(counting)))
    return sorted(found, key=lambda pair: -pair[1])


def _read(data: bytes) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of rows that take part, and the columns; samples as arrays."""
    table = pa.ipc.open_stream(data).read_all()
    head = json.loads(table.schema.metadata[b"ferrank:profile"])
    columns = table.select(["name", "missing", "categories", "counts"]).to_pylist()
    for column, sample in zip(columns, table["sample"], strict=True):
        column["sample"] = None if sample.values is None else sample.values.to_numpy()
    return head["kept"], columns


def _known(sample: Floats) -> Floats:
    return np.sort(sample[~np.isnan(sample)])


def _smirnov(values: Floats, others: Floats) -> float:
    """Return the greatest difference between two distribution functions, of sorted values."""
    at = np.concatenate([values, others])
    below = np.searchsorted(values, at, side="right") / len(values)
    return float(np.abs(below - np.searchsorted(others, at, side="right") / len(others)).max())


def _shares(one: dict[str, Any], rows: int, other: dict[str, Any], all_rows: int) -> float:
    counts = dict(zip(one["categories"], one["counts"], strict=True))
    pairs = zip(other["categories"], other["counts"], strict=True)
    return max((abs(counts.get(name, 0) / rows - count / all_rows) for name, count in pairs), default=0.0)


def _chance(n: int, m: int, tests: int) -> float:
    return math.sqrt(math.log(2 * max(tests, 1) / _CHANCE) / 2 * (1 / n + 1 / m))
