"""A table as the formulas see it: features, components of the impurity, their weights ω, row weights.

The impurity is that of Petković et al. 2023, Eq. 1: the targets have the share `supervision`, the features
the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

Value = float | str | None


@dataclass(frozen=True, eq=False)  # a key of caches, by identity
class Feature:
    name: str
    nominal: bool
    values: list[Value]  # one per row; None: missing
    informative: bool = False  # a missing value is a value of its own
    weight: float = 1.0  # how much the feature counts in the distance of two rows


@dataclass(frozen=True)
class Problem:
    features: list[Feature]
    components: np.ndarray  # rows x components; NaN where the variable is missing
    target_of: (
        np.ndarray
    )  # components; number of the target a component belongs to; features come after targets
    omega: np.ndarray  # components
    row_weights: np.ndarray
    nominal: list[bool]  # targets
    ordering: int | None  # component whose mean orders the categories; None: subsets are grown greedily
    label_shares: np.ndarray | None = None  # components; where they are the labels of a hierarchy


def problem_of(
    table: pa.Table,
    targets: Sequence[str],
    *,
    weight: str | None = None,
    target_weights: Sequence[float] | None = None,
    labels: bool = False,
    supervision: float | None = None,
    feature_weights: Sequence[float] | None = None,
) -> Problem:
    """The problem of ranking all other columns of `table`; `labels` makes every target nominal.

    With a supervision below 1 rows without a target take part, and features are components as well.
    """
    blocks, kinds = [], []
    for name in targets:
        nominal = labels or is_nominal(table.schema.field(name).type) or is_boolean(table, name)
        blocks.append(components_of(column(table, name), nominal))
        kinds.append(nominal)
    n_targets, all_rows = len(blocks), np.full(table.num_rows, fill_value=True)
    labelled = ~np.isnan(np.hstack(blocks)).all(axis=1) if blocks else all_rows
    clusters = supervision is not None and supervision < 1
    names = [name for name in table.column_names if name not in targets and name != weight]
    if clusters:
        for name in names:
            kinds.append(is_nominal(table.schema.field(name).type))
            blocks.append(components_of(column(table, name), kinds[-1]))
    components = np.hstack(blocks)
    target_of = np.repeat(np.arange(len(blocks)), [block.shape[1] for block in blocks])
    row_weights = np.ones(table.num_rows) if weight is None else np.array(column(table, weight), dtype=float)

    takes_part = (all_rows if clusters else labelled) & (row_weights > 0)
    components, row_weights = components[takes_part], row_weights[takes_part]
    features = []
    for name in names:
        values = [v for v, keep in zip(column(table, name), takes_part, strict=True) if keep]
        features.append(Feature(name, is_nominal(table.schema.field(name).type), values))
    share = np.ones(n_targets) if target_weights is None else np.array(target_weights, dtype=float)
    share = share / share.sum()
    if clusters:
        of_features = (
            np.ones(len(names)) if feature_weights is None else np.array(feature_weights, dtype=float)
        )
        share = np.concatenate([supervision * share, (1 - supervision) * of_features / of_features.sum()])
    weights = omega(components, target_of, row_weights, share)
    ordered_by = ordering(kinds, target_of, weights)
    return Problem(features, components, target_of, weights, row_weights, kinds[:n_targets], ordered_by)


def is_nominal(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        return is_nominal(kind.value_type)
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def is_boolean(table: pa.Table, name: str) -> bool:
    return pa.types.is_boolean(table.schema.field(name).type)


def column(table: pa.Table, name: str) -> list[Value]:
    """The values of a column, numbers as floats; NaN is a missing value."""
    values = table.column(name).to_pylist()
    return [v if v is None or isinstance(v, str) else None if v != v else float(v) for v in values]


def components_of(values: list[Value], nominal: bool) -> np.ndarray:
    """One column for a numeric target; for a nominal one an indicator for each category, in order."""
    if not nominal:
        return np.array([[np.nan if v is None else v] for v in values], dtype=float)
    categories = sorted({v for v in values if v is not None})
    rows = [[np.nan if v is None else float(v == c) for c in categories] for v in values]
    return np.array(rows, dtype=float).reshape(len(values), len(categories))


def ordering(nominal: list[bool], target_of: np.ndarray, omega: np.ndarray) -> int | None:
    """Where one target varies, and is numeric or has two classes: its last component orders categories."""
    varying = np.flatnonzero(omega)
    targets = set(target_of[varying])
    if len(targets) != 1 or len(varying) > (2 if nominal[targets.pop()] else 1):
        return None
    return int(varying[-1])


def variances(z: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Variance of each component (divisor: the weight) over the rows where it is known, and their weight."""
    known = ~np.isnan(z)
    w = np.where(known, weights[:, None], 0.0)
    z = np.where(known, z, 0.0)
    total = w.sum(axis=0)
    divisor = np.where(total > 0, total, 1.0)
    mean = (w * z).sum(axis=0) / divisor
    return (w * (z - mean) ** 2).sum(axis=0) / divisor, total


def omega(
    components: np.ndarray,
    target_of: np.ndarray,
    row_weights: np.ndarray,
    share: np.ndarray,
) -> np.ndarray:
    """Each variable's share of 1, over the impurity of the whole variable on the training data."""
    variance, _ = variances(components, row_weights)
    n_variables = len(share)
    impurity = np.array([variance[target_of == v].sum() for v in range(n_variables)])
    constant = np.array([is_constant(components[:, target_of == v]) for v in range(n_variables)], dtype=bool)
    by_variable = np.where(constant, 0.0, share / np.where(constant, 1.0, impurity))
    return by_variable[target_of]


def is_constant(block: np.ndarray) -> bool:
    known = block[~np.isnan(block).any(axis=1)]
    return len(known) == 0 or bool((known == known[0]).all())
