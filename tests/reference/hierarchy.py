"""Label hierarchies straight from the papers: sets closed upward, weights, and the problem that they make.

A hierarchy is a dict of each label to its parents, none for a root (Petković et al. 2023, 2 and 3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from .problem import Problem, problem_of, variances

Parents = Mapping[str, Sequence[str]]


def of_paths(sets: Iterable[Iterable[str] | None]) -> Parents:
    """The tree of the labels in `sets`, which are paths, and of their beginnings."""
    parents = {}
    for path in (path for labels in sets if labels for path in labels):
        parts = path.split("/")
        for depth in range(1, len(parts) + 1):
            parents["/".join(parts[:depth])] = ["/".join(parts[: depth - 1])] if depth > 1 else []
    return parents


def of_domain(domain: str) -> Parents:
    """The domain of a CLUS attribute: paths, or edges where one comes from `root`."""
    entries = [entry.strip() for entry in domain.split(",")]
    if not any(entry.startswith("root/") for entry in entries):
        return of_paths([entries])
    parents: dict[str, list[str]] = {}
    for parent, child in (entry.split("/") for entry in entries):
        parents.setdefault(child, []).extend([parent] if parent != "root" else [])
    return parents


def closed(labels: Iterable[str], parents: Parents) -> set[str]:
    """The labels and all that stand above them."""
    found = set(labels)
    for label in list(found):
        found |= closed(parents[label], parents)
    return found


def weight(label: str, parents: Parents, decay: float) -> float:
    """1 for a root, decay times the mean weight of the parents below."""
    above = [weight(parent, parents, decay) for parent in parents[label]]
    return decay * float(np.mean(above)) if above else 1.0


def shares(sets: Sequence[set[str]], parents: Parents, decay: float) -> dict[str, float]:
    """Weights over the sum of the weights of the labels in closed `sets`; 0 for all others."""
    weights = {label: weight(label, parents, decay) for label in set().union(*sets)}
    total = sum(weights.values()) or 1.0  # where no row has a label
    return {label: weights.get(label, 0.0) / total for label in sorted(parents)}


def hierarchical_problem(
    table: pa.Table, target: str, parents: Parents, *, decay: float = 0.75, weight: str | None = None
) -> Problem:
    """The problem of ranking all other columns for the label sets in `target`; None leaves a row out."""
    known = [labels is not None for labels in table[target].to_pylist()]
    table = table.filter(pa.array(known))
    sets = [closed(labels, parents) for labels in table[target].to_pylist()]
    names = sorted(parents)
    # Of the rest of the problem a stand-in for the target takes care.
    stand_in = table.set_column(table.column_names.index(target), target, pa.array([0.0] * len(sets)))
    rest = problem_of(stand_in, [target], weight=weight)
    heavy = np.ones(len(sets), bool) if weight is None else np.array(table[weight].to_pylist()) > 0
    sets = [labels for labels, keep in zip(sets, heavy, strict=True) if keep]

    components = np.array([[float(name in labels) for name in names] for labels in sets])
    components = components.reshape(len(sets), len(names))
    share = np.array(list(shares(sets, parents, decay).values()))
    variance, _ = variances(components, rest.row_weights)
    varies = (components != components[:1]).any(axis=0)
    omega = np.where(varies, share / np.where(varies, variance, 1.0), 0.0)
    varying = np.flatnonzero(omega)
    return replace(
        rest,
        components=components,
        target_of=np.zeros(len(names), dtype=int),
        omega=omega,
        ordering=int(varying[0]) if len(varying) == 1 else None,
        label_shares=share,
    )
