"""Roles of the columns, and data sets opened with them."""

from collections.abc import Sequence
from typing import Any

from ferrank import _core
from ferrank.data.files import Folder
from ferrank.data.hierarchy import edges_of
from ferrank.data.source import open_source
from ferrank.errors import SettingError

__all__ = ["open_data", "roles_of"]


def roles_of(
    target: str | Sequence[str] | None,
    target_last: int | None,
    labels: Any,
    task: str | None,
    drop: Sequence[str],
    weight: str | None,
    *,
    hierarchy: Any = None,
) -> dict[str, Any]:
    """Return what says which columns are what, as the engine takes it."""
    if sum(given is not None for given in (target, target_last, labels)) > 1:
        raise SettingError("target: give one of target, target_last and labels")
    return {
        "target": [target] if isinstance(target, str) else target and list(target),
        "target_last": target_last,
        "task": task,
        "hierarchy": edges_of(hierarchy),
        "drop": [drop] if isinstance(drop, str) else list(drop),
        "weight": weight,
    }


def open_data(data: Any, labels: Any, roles: dict[str, Any], temp_dir: Folder = None) -> _core.Source:
    """Open ``data``; columns that are left out and label sets are not converted to numbers."""
    as_text = list(roles["drop"])
    if roles["task"] == "hierarchical" or roles["hierarchy"] is not None:
        as_text += roles["target"] or []
    return open_source(data, labels=labels, as_text=as_text, temp_dir=temp_dir)
