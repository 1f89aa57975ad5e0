"""The engine's rankers by name, and the roles that they add to those of the data."""

from collections.abc import Sequence
from typing import Any

from ferrank.data.roles import roles_of
from ferrank.errors import SettingError
from ferrank.rankers.base import Ranker
from ferrank.rankers.forest import ForestRanker
from ferrank.rankers.relief import ReliefRanker

__all__ = ["RANKERS", "given_twice", "ranker_of", "roles_for"]

RANKERS: dict[str, type[Ranker]] = {"forest": ForestRanker, "relief": ReliefRanker}
"""The engine's rankers, by name."""


def ranker_of(ranker: Ranker | str | None, settings: dict[str, Any]) -> Ranker:
    """Return the ranker that was given, or the one of that name with these settings."""
    if isinstance(ranker, Ranker):
        if settings:
            raise given_twice(settings)
        return ranker
    name = "forest" if ranker is None else ranker
    if name not in RANKERS:
        raise SettingError(f"ranker: {ranker!r} is neither a ranker nor one of {', '.join(RANKERS)}")
    return RANKERS[name](**settings)


def given_twice(settings: dict[str, Any]) -> SettingError:
    """Return the error for settings beside a ranker that has settings of its own."""
    return SettingError(f"{next(iter(settings))}: give it to the ranker, or leave the ranker out")


def roles_for(
    ranker: Ranker,
    target: str | Sequence[str] | None,
    target_last: int | None,
    labels: Any,
    task: str | None,
    hierarchy: Any,
    drop: Sequence[str],
    weight: str | None,
) -> dict[str, Any]:
    """Return the roles of the columns; the ranker's own task and hierarchy hold where none is given."""
    hierarchy = ranker.hierarchy if hierarchy is None else hierarchy
    return roles_of(target, target_last, labels, task or ranker.task, drop, weight, hierarchy=hierarchy)
