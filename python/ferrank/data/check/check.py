"""The check of a data set: rows are sampled and their columns looked at, alone and together."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from ferrank._core import Source
from ferrank.data.check.columns import infinity, of_column
from ferrank.data.check.report import Check, Finding
from ferrank.data.check.sample import MOST_ROWS, Column, columns_of, first_rows, sampled
from ferrank.data.check.together import codes_by_target, copies, imbalance, leaks, many_classes, repeated_rows
from ferrank.data.dataset import Dataset
from ferrank.data.parameters import suggests
from ferrank.errors import SettingError

__all__ = ["check", "worst"]

_WORST = {"identifier", "leak", "many classes", "numbers in strings", "dates in strings"}
_WIDE = 1_000
"""Columns beyond which a ranking does not look for the worst by itself."""


@suggests
def check(
    data: Any,
    target: Any = None,
    *,
    target_last: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str | None = None,
    drop: str | Sequence[str] = (),
    sample_weight: Any = None,
    groups: Any = None,
) -> Check:
    """Look for what spoils rankings.

    Parameters
    ----------
    data, target, target_last, labels, task, drop, sample_weight, groups
        As in :func:`rank`. Without a target, all columns are looked at as features.

    Returns
    -------
    Check
        A sequence of findings, each with the columns concerned, what was found and what would do. Their kinds
        are:

        ============================  =============================================================
        identifier, many categories   another value in each row, or a category for every few rows
        order of rows                 numbers that rise or fall with the order of the rows
        constant                      one value where known, or none
        copies, near copies           columns that follow from each other
        leak                          a feature that tells a target by itself
        codes                         integers that are categories
        numbers, dates in strings     text that is taken for categories
        infinity                      numbers that rankers refuse
        missing as a value            -999, "?" and the like
        imbalance                     classes that hardly occur, targets that hardly vary
        many classes                  a class for every few rows
        repeated rows                 rows that are the same
        ============================  =============================================================

        Rows are sampled, at most 10,000 and at least 1,000 of them. A column whose type cannot be ranked is
        an error, as in a ranking; name it in ``drop``. Beyond 4,000 numeric columns, near copies are not
        looked for.

    Raises
    ------
    DataError, ColumnTypeError, SettingError, ResourceError
        For invalid data, columns or settings; the message names the file, column or setting.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
    >>> found = ferrank.check({"row": np.arange(100), "a": a, "a_too": 2 * a, "y": b}, "y")
    >>> print(found)
    100 rows, 4 columns: 2 findings
    <BLANKLINE>
    identifier: column 'row': it counts the rows; drop it
    copies: columns 'a' and 'a_too': they say the same of each row; keep one, for they share their importance
    """
    has_target = any(given is not None for given in (target, target_last, labels))
    dataset = (
        data
        if isinstance(data, Dataset)
        else Dataset(
            data,
            target,
            target_last=target_last,
            labels=labels,
            task=task if has_target else "unsupervised",
            drop=drop,
            sample_weight=sample_weight,
            groups=groups,
        )
    )
    if dataset.is_lazy:
        raise SettingError(
            "data: a dask collection is not checked; check a partition: collection.partitions[0].compute()"
        )
    source, roles = dataset.source(), dataset.roles()
    table, n_rows = sampled(source)
    features, targets = _read(table, source, roles)
    found = [finding for feature in features for finding in of_column(feature)]
    useless = _named_in(found, "identifier", "constant", "infinity")
    # Whether a value is missing may tell the target, also in a column with one value.
    useful = [it for it in features if it.name not in useless or (it.n_distinct == 1 and not it.known.all())]
    found += [*copies(useful), *_of_targets(useful, targets, _named_in(found, "codes"))]
    found += filter(None, [repeated_rows(useful + targets, len(table))])
    return Check(n_rows, len(table), len(features) + len(targets), _joined(found))


def worst(source: Source, roles: dict[str, Any]) -> list[Finding]:
    """Return the worst that the first rows of ``source`` show, such as identifiers and leaks."""
    if len(source.columns) > _WIDE:
        return []
    table = first_rows(source)
    if len(table) == 0:
        return []  # The ranking says so.
    features, targets = _read(table, source, roles)
    found = [finding for feature in features for finding in of_column(feature)]
    constant = [finding for finding in found if finding.kind == "constant"]
    for target in targets:
        found += [*leaks(features, target), *many_classes(target)]
    worst = [finding for finding in found if finding.kind in _WORST]
    if len(table) == MOST_ROWS:  # Further rows may have other values.
        return _joined(worst)
    worst += constant if len(constant) == len(features) else []
    return _joined([*worst, *_constant_targets(targets)])


def _named_in(findings: list[Finding], *kinds: str) -> set[str]:
    return {name for finding in findings if finding.kind in kinds for name in finding.columns}


def _read(table: pa.Table, source: Source, roles: dict[str, Any]) -> tuple[list[Column], list[Column]]:
    problem = source.resolve(roles)
    features = columns_of(table, dict(problem["features"]), roles["categorical_features"])
    return features, columns_of(table, dict(problem["targets"]))


def _of_targets(features: list[Column], targets: list[Column], coded: set[str]) -> list[Finding]:
    found = _constant_targets(targets)
    for target in targets:
        if (infinite := infinity(target)) is not None:
            found.append(infinite)
            continue
        if target.n_distinct < 2:
            continue
        many = list(many_classes(target))
        found += [*leaks(features, target), *many]
        # Labels are rare by nature, as are many classes, and among many labels some follow codes by chance.
        if len(targets) == 1 and not many:
            uncoded = [feature for feature in features if feature.name not in coded]
            rare = imbalance(target)
            found += codes_by_target(uncoded, target) if rare is None else [rare]
    return found


def _constant_targets(targets: list[Column]) -> list[Finding]:
    advice = "give another one" if len(targets) == 1 else "leave it out"
    return [
        Finding(
            "constant",
            [target.name],
            "the target has one value or none",
            f"no feature can predict it; {advice}",
        )
        for target in targets
        if target.n_distinct < 2
    ]


def _joined(findings: list[Finding]) -> list[Finding]:
    """Return the findings, with one for columns of which the same is to be said."""
    joined: dict[tuple[str, str, str], Finding] = {}
    for number, finding in enumerate(findings):
        # Groups of copies stay apart.
        own = finding.found if len(finding.columns) == 1 else f"{finding.found} {number}"
        key = (finding.kind, own, finding.advice)
        columns = [*joined[key].columns, *finding.columns] if key in joined else finding.columns
        joined[key] = replace(finding, columns=columns)
    return list(joined.values())
