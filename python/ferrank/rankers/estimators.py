"""The rankers as scikit-learn's estimators, by name."""

from collections.abc import Mapping
from typing import Any

from ferrank.errors import SettingError
from ferrank.rankers.association import AssociationRanker
from ferrank.rankers.base import Ranker
from ferrank.rankers.forest import ForestRanker
from ferrank.rankers.joint import JointRanker
from ferrank.rankers.plan import Plan
from ferrank.rankers.relief import ReliefRanker
from ferrank.rankers.univariate import UnivariateRanker

__all__ = ["RANKERS", "estimator_of", "ranker_of"]

RANKERS: dict[str, type[Ranker]] = {
    "forest": ForestRanker,
    "relief": ReliefRanker,
    "association": AssociationRanker,
    "joint": JointRanker,
    "univariate": UnivariateRanker,
}
"""The estimators, under the names of their plans."""


def ranker_of(given: Any, settings: Mapping[str, Mapping[str, Any]] | None = None) -> Any:
    """Return the estimator of this name, with the ``settings`` under the name, or what was given otherwise.

    Raises
    ------
    SettingError
        There is no ranker of this name.
    """
    if not isinstance(given, str):
        return given() if isinstance(given, type) else given
    if given not in RANKERS:
        raise SettingError(f"ranker: {given!r} is neither a ranker nor one of {', '.join(RANKERS)}")
    return RANKERS[given](**(settings or {}).get(given, {}))


def estimator_of(plan: Plan) -> Ranker:
    """Return the estimator with the parameters of ``plan``, which may be one already."""
    if isinstance(plan, Ranker):
        return plan
    kind = next(ranker for ranker in RANKERS.values() if issubclass(ranker, type(plan)))
    return kind(**{name: getattr(plan, name) for name in kind._defaults()})
