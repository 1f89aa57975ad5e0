"""What is wrong with columns beside each other, and beside the targets."""

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ferrank.data.check.report import Finding
from ferrank.data.check.sample import Column

__all__ = ["codes_by_target", "copies", "imbalance", "leaks", "many_classes", "repeated_rows"]

_FEW_ROWS = 30
_NEAR = 0.999
"""Rank correlation from which on two columns are taken for the same."""
_FEW_OTHERS = 10
_ROWS_OF_A_CLASS = 5
_MOST_COMPARED = 4_000
_ALMOST_PURE = 0.995
_ROWS_OF_A_CODE = 10
_CODES = (4, 100)
_RARE = 0.01
_REPEATED = 0.01

Floats = NDArray[np.float64]


def copies(columns: list[Column]) -> Iterator[Finding]:
    """Yield groups of columns that say the same, and of numbers that nearly do.

    Numbers say the same if they order the rows alike, or in reverse: values that come in blocks, such as the
    age and the weight of a patient in each of many visits, go together one to one and say different things.
    Categories say the same if they part the rows alike, and integers the same as categories if they are a
    code of them, whose values repeat often.
    """
    # Columns with another value in few rows have these in common by chance.
    varied = [it for it in columns if it.counts.sum() - it.counts.max(initial=0) >= _FEW_OTHERS]
    groups: dict[tuple[str, bytes], list[Column]] = defaultdict(list)
    for column in varied:
        kind, key = ("groups", _partition(column)) if column.is_nominal else ("order", _order(column))
        groups[kind, key].append(column)
    # Rows that repeat say nothing of which values go together.
    n_rows = len(_first_rows(columns)) if any(it.is_nominal for it in varied) else 0
    for kind, key in list(groups):
        first = groups[kind, key][0]
        if kind == "groups" and n_rows - first.n_distinct < _FEW_OTHERS:
            del groups[kind, key]
        elif kind == "order" and first.is_integer and n_rows >= _ROWS_OF_A_CODE * first.n_distinct:
            same = groups.get(("groups", _partition(first)))
            if same is not None:
                same += groups.pop((kind, key))
    order = {column.name: place for place, column in enumerate(columns)}
    for names in (sorted((it.name for it in group), key=order.__getitem__) for group in groups.values()):
        if len(names) > 1:
            yield Finding(
                "copies",
                names,
                "they say the same of each row",
                "keep one, for they share their importance",
            )
    firsts = {group[0].name for (kind, _), group in groups.items() if kind == "order"}
    numbers = [
        c
        for c in columns
        if not c.is_nominal and c.name in firsts and c.n_distinct > 2 and c.known.sum() >= _FEW_ROWS
    ]
    if 1 < len(numbers) <= _MOST_COMPARED:
        for names in _near(numbers):
            yield Finding(
                "near copies",
                names,
                f"they rank the rows nearly alike (rank correlation above {_NEAR})",
                "keep one, for they share their importance",
            )


def _order(column: Column) -> bytes:
    """Return a key that numbers have in common if they order the rows alike, or in reverse."""
    reverse = np.where(column.known, column.n_distinct - 1 - column.codes, -1)
    return min(column.codes.tobytes(), reverse.tobytes())


def _partition(column: Column) -> bytes:
    """Return a key that columns have in common if each follows from the other."""
    codes = column.codes
    known = np.flatnonzero(codes >= 0)
    first = np.full(column.n_distinct, len(codes))
    np.minimum.at(first, codes[known], known)
    renamed = np.full(len(codes), -1)
    renamed[known] = first[codes[known]]
    return renamed.tobytes()


def _near(columns: list[Column]) -> list[list[str]]:
    ranks = np.stack([_ranks(column) for column in columns])
    is_near = np.abs(ranks @ ranks.T) > _NEAR
    groups, seen = [], np.zeros(len(columns), dtype=bool)
    for number in range(len(columns)):
        like = np.flatnonzero(is_near[number] & ~seen)
        if not seen[number] and len(like) > 1:
            groups.append([columns[other].name for other in like])
            seen[like] = True
    return groups


def _ranks(column: Column) -> Floats:
    """Return mid-ranks, centered and of length 1; missing values are in the middle."""
    ends = np.cumsum(column.counts)
    middle = ends - (column.counts - 1) / 2
    ranks = np.zeros(len(column.codes))
    ranks[column.known] = middle[column.codes[column.known]]
    ranks[column.known] -= ranks[column.known].mean()
    length = float(np.sqrt(ranks @ ranks))
    return ranks / length if length > 0 else ranks


def many_classes(target: Column) -> Iterator[Finding]:
    """Yield a finding if the classes of the target have few rows each."""
    n_rows = int(target.known.sum())
    if target.is_nominal and _FEW_ROWS <= n_rows < _ROWS_OF_A_CLASS * target.n_distinct:
        yield Finding(
            "many classes",
            [target.name],
            f"the target has {target.n_distinct:,} classes in {n_rows:,} rows",
            "if these are numbers or names of rows, give another target, or task='regression' for numbers; "
            "a ranking of so many classes takes long and says little",
        )


def leaks(features: list[Column], target: Column) -> Iterator[Finding]:
    """Yield features that tell the target by themselves."""
    if target.n_distinct < 2 or target.known.sum() < _FEW_ROWS:
        return
    for feature in features:
        if feature.n_distinct > 0 and (how := _tells(feature, target)) is not None:
            yield Finding(
                "leak",
                [feature.name],
                f"enough to tell the target '{target.name}' {how}",
                "if it was recorded after the target, or made from it, drop it",
            )


def _tells(feature: Column, target: Column) -> str | None:
    """Return how a feature tells a target, if it does."""
    both = feature.known & target.known
    if target.is_nominal and _missing_tells(target, both, ~feature.known & target.known):
        return "by whether it is missing"
    codes, classes = feature.codes[both], target.codes[both]
    counts = np.bincount(classes, minlength=1)
    if both.sum() < _FEW_ROWS or (counts > 0).sum() < 2:
        return None
    if not target.is_nominal:
        both_are_numbers = not feature.is_nominal
        return "by rank" if both_are_numbers and _correlation(feature, target, both) > _NEAR else None
    # With nearly all rows in a class, or few in each, no error means little.
    n_others = len(classes) - counts.max()
    are_small = (counts > 0).sum() > len(classes) / _ROWS_OF_A_CLASS
    if are_small or n_others < max(_FEW_OTHERS, 2 * (1 - _ALMOST_PURE) * len(classes)):
        return None
    if np.count_nonzero(np.bincount(codes)) <= len(codes) / _ROWS_OF_A_CODE:
        share = _purity(codes, classes)
    elif feature.is_nominal:
        return None
    else:
        order = np.argsort(codes, kind="stable")
        share = _cut(codes[order], classes[order])
    return "almost without an error" if share >= _ALMOST_PURE else None


def _missing_tells(target: Column, known: NDArray[np.bool_], missing: NDArray[np.bool_]) -> bool:
    """Return True if rows with and without a value are of another class each, almost without exception."""
    if min(known.sum(), missing.sum()) < _FEW_ROWS:
        return False
    counts = [np.bincount(target.codes[rows], minlength=target.n_distinct) for rows in (known, missing)]
    are_pure = all(one.max() >= _ALMOST_PURE * one.sum() for one in counts)
    return are_pure and counts[0].argmax() != counts[1].argmax()


def _correlation(one: Column, other: Column, rows: NDArray[np.bool_]) -> float:
    """Return the size of the rank correlation in these rows."""
    return abs(float(_ranks(_part(one, rows)) @ _ranks(_part(other, rows))))


def _part(column: Column, rows: NDArray[np.bool_]) -> Column:
    return Column(column.name, column.is_nominal, column.is_integer, column.values[rows], column.texts)


def _purity(codes: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    """Return the share of rows that are of the main class of their code."""
    shape = (codes.max() + 1, classes.max() + 1)
    table = np.bincount(codes * shape[1] + classes, minlength=shape[0] * shape[1]).reshape(shape)
    return float(table.max(axis=1).sum() / len(classes))


def _cut(codes: NDArray[np.int64], classes: NDArray[np.int64]) -> float:
    """Return the share of rows that cuts between ascending ``codes`` tell the class of.

    There is an interval for each class, and these are in the order of the classes' medians.
    """
    present = np.flatnonzero(np.bincount(classes))
    ordered = present[np.argsort([_median(codes[classes == one]) for one in present], kind="stable")]
    ends = np.flatnonzero(np.append(codes[1:] != codes[:-1], True)) + 1
    best = np.zeros(len(ends) + 1)
    for one in ordered:
        hits = np.concatenate([[0], np.cumsum(classes == one)[ends - 1]])
        best = hits + np.maximum.accumulate(best - hits)
    return float(best[-1] / len(classes))


def _median(ascending: NDArray[np.int64]) -> float:
    """Return the median; NumPy's would sort again, and import masked arrays."""
    return float(ascending[(len(ascending) - 1) // 2] + ascending[len(ascending) // 2]) / 2


def codes_by_target(features: list[Column], target: Column) -> Iterator[Finding]:
    """Yield integers whose values tell the target as categories do and not as quantities."""
    y = _centered(target)
    if y is None:
        return
    for feature in features:
        if feature.is_nominal or not feature.is_integer or not _CODES[0] <= feature.n_distinct <= _CODES[1]:
            continue
        rows = feature.known & target.known
        codes, values = feature.codes[rows], feature.values[rows]
        if len(codes) < _ROWS_OF_A_CODE * feature.n_distinct:
            continue
        smooth = np.vander((values - values.mean()) / (np.ptp(values) or 1), 4)
        as_codes, as_numbers = _by_codes(codes, y[rows]), _by_polynomial(smooth, y[rows])
        if as_codes > 0.1 and as_codes > 2 * max(as_numbers, 0) + 0.05:
            yield Finding(
                "codes",
                [feature.name],
                f"{feature.n_distinct} distinct integers that tell the target "
                f"'{target.name}' as categories do and not as quantities",
                "make it strings, or name it in categorical_features",
            )


def _centered(target: Column) -> Floats | None:
    """Return the target, of shape (n_rows, n_components): a number, or an indicator of each class."""
    if target.n_distinct < 2 or (target.is_nominal and target.n_distinct > 50):
        return None
    if not target.is_nominal:
        return np.where(target.known, target.values, 0.0)[:, None]
    indicators: Floats = (target.codes[:, None] == np.arange(target.n_distinct)).astype(np.float64)
    return indicators


def _by_codes(codes: NDArray[np.int64], y: Floats) -> float:
    """Return the share of the variance that means by code explain, adjusted for their number."""
    counts = np.bincount(codes)
    sums = np.stack([np.bincount(codes, weights=component) for component in (y - y.mean(axis=0)).T])
    return _adjusted(float((sums**2 / counts).sum()), y, len(counts))


def _by_polynomial(design: Floats, y: Floats) -> float:
    """Return the share of the variance that least squares explain, adjusted for the number of columns."""
    centered = y - y.mean(axis=0)
    fitted = design @ np.linalg.lstsq(design, centered, rcond=None)[0]
    return _adjusted(float((fitted**2).sum()), y, design.shape[1])


def _adjusted(explained: float, y: Floats, n_parameters: int) -> float:
    total = float(((y - y.mean(axis=0)) ** 2).sum())
    if total == 0:
        return 0.0
    return 1 - (1 - explained / total) * (len(y) - 1) / max(len(y) - n_parameters, 1)


def imbalance(target: Column) -> Finding | None:
    """Find classes of a target that hardly occur, and targets that hardly vary."""
    n_known = int(target.known.sum())
    if n_known < _FEW_ROWS or target.n_distinct < 2:
        return None
    if not target.is_nominal:
        share = target.counts.max() / n_known
        if share < 1 - _RARE:
            return None
        return Finding(
            "imbalance",
            [target.name],
            f"the same value in {share:.1%} of the rows",
            "rank those that have it against the others, with more rows of the others",
        )
    counts = target.counts
    rare = np.flatnonzero(counts < max(_RARE * n_known, 2) if target.n_distinct == 2 else counts < 2)
    if not len(rare):
        return None
    texts = np.unique(target.values[target.known])[rare]
    names = ", ".join(
        f"'{target.texts[int(text)]}' ({counts[number]:,})"
        for text, number in zip(texts[:3], rare, strict=False)
    )
    return Finding(
        "imbalance",
        [target.name],
        f"{len(rare)} of {target.n_distinct} classes hardly occur in {n_known:,} rows: {names}",
        "join or drop rare classes; of two, add rows of the rare one, or leave out some of the other",
    )


def _first_rows(columns: list[Column]) -> NDArray[np.intp]:
    """Return a row of each kind of equal rows, if a column has another value in most of these; else all."""
    codes = np.stack([column.codes for column in columns], axis=1)
    rows = np.ascontiguousarray(codes).view(np.dtype((np.void, codes.itemsize * codes.shape[1]))).ravel()
    unique = np.unique(rows, return_index=True)[1]
    most = max(len(np.unique(column.codes[unique])) for column in columns)
    return unique if most >= len(unique) / 2 else np.arange(len(codes))


def repeated_rows(columns: list[Column], n_rows: int) -> Finding | None:
    """Find rows that repeat, in tables with a column that has another value in most rows."""
    if n_rows < _FEW_ROWS or not columns:
        return None
    repeated = 1 - len(_first_rows(columns)) / n_rows
    if repeated < _REPEATED:
        return None
    return Finding(
        "repeated rows",
        [],
        f"{repeated:.0%} of the rows repeat others",
        "drop them, or give what they have in common as groups: trees and neighbors otherwise know the rows "
        "by which they are judged",
    )
