"""Targets of few distinct integers, which stand for classes."""

import warnings
from collections.abc import Iterable
from typing import Any

from ferrank import _core
from ferrank.errors import IntegerTargetWarning
from ferrank.run import finish

__all__ = ["IntegerTargets", "integer_targets", "roles_of", "with_classes"]

IntegerTargets = list[tuple[str, list[int] | None]]
"""Each target with its distinct integers; None: it has others, or more than 20."""


def integer_targets(source: _core.Source, roles: dict[str, Any]) -> IntegerTargets:
    """Return which targets of ``source`` are of few integers; none where the roles say what the task is."""
    found: IntegerTargets = finish(_core.integer_targets(source, roles))
    return found


def roles_of(parts: Iterable[IntegerTargets]) -> dict[str, Any]:
    """Return the roles that follow from the integer targets of all parts of a data set.

    These are ``classes``, the targets whose integers stand for classes, and ``task`` where all targets are
    labels of 0 and 1. Classes of more than two integers, which might be quantities, are warned of.
    """
    found = list(parts)
    classes, are_labels = _core.class_roles(found)
    if are_labels:
        return {"classes": classes, "task": "multi-label"}
    for name, _ in found[0] if found else []:
        distinct = {value for part in found for value in dict(part)[name] or ()}
        if name in classes and len(distinct) > 2:
            other = "regression" if len(found[0]) == 1 else "multi-target"
            warnings.warn(
                f"target '{name}' has {len(distinct)} distinct integers, which are taken for classes; "
                f"task='{other}' takes them for numbers",
                IntegerTargetWarning,
                stacklevel=5,
            )
            break
    return {"classes": classes}


def with_classes(source: _core.Source, roles: dict[str, Any]) -> dict[str, Any]:
    """Return ``roles`` in which the integer targets of ``source`` are classes where they are few."""
    return roles | roles_of([integer_targets(source, roles)]) if roles["task"] is None else roles
