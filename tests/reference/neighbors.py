"""The nearest neighbours of test rows, row by row and feature by feature, and their predictions."""

from __future__ import annotations

from collections import Counter

Value = float | str | None
Column = list[Value]


def distance(a: Value, b: Value, train: Column, test: Column, conventions: str) -> float:
    """By how much two values of a feature differ, squared."""
    everything = {v for v in [*train, *test] if v is not None}
    if len(everything) < 2:
        return 0.0
    if any(isinstance(v, str) for v in everything):
        if a is not None and b is not None:
            return float(a != b)
        known = [v for v in train if v is not None]
        return (
            1.0 if conventions == "clus" or not known else expected(a, b, known, lambda x, y: float(x != y))
        )
    known = [v for v in train if v is not None]
    scale = everything if conventions == "clus" else known
    if not scale or min(scale) == max(scale):
        return 0.0
    low, high = min(scale), max(scale)

    def placed(v: Value) -> float:
        return min(max((v - low) / (high - low), 0.0), 1.0)

    if a is not None and b is not None:
        return (placed(a) - placed(b)) ** 2
    if conventions == "clus" or not known:
        return max((max(placed(v), 1 - placed(v)) ** 2 for v in (a, b) if v is not None), default=1.0)
    return expected(a, b, known, lambda x, y: (placed(x) - placed(y)) ** 2)


def expected(a: Value, b: Value, known: Column, apart) -> float:
    """The mean over all known values in place of a missing one."""
    ones, others = ([v] if v is not None else known for v in (a, b))
    return sum(apart(x, y) for x in ones for y in others) / (len(ones) * len(others))


def nearest(
    train: list[Column], test: list[Column], importances: list[float], k: int, conventions: str
) -> list[list[int]]:
    """The k nearest training rows of each test row; both are lists of columns."""
    weights = [max(w, 0.0) for w in importances]
    if not any(weights):
        weights = [1.0] * len(weights)
    found = []
    for query in zip(*test, strict=True):
        keys = []
        for number, row in enumerate(zip(*train, strict=True)):
            parts = zip(weights, query, row, train, test, strict=True)
            total = sum(w * distance(a, b, x, y, conventions) for w, a, b, x, y in parts)
            keys.append((round(total / sum(weights), 12), number))
        found.append([number for _, number in sorted(keys)[:k]])
    return found


def mean(values: Column, rows: list[int]) -> float:
    known = [values[row] for row in rows if values[row] is not None]
    known = known or [v for v in values if v is not None]
    return sum(known) / len(known)


def majority(values: Column, rows: list[int]) -> str:
    known = [values[row] for row in rows if values[row] is not None]
    counts = Counter(known or [v for v in values if v is not None])
    return min(counts, key=lambda value: (-counts[value], value))
