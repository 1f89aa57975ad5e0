"""The rankers as scikit-learn's estimators, by name."""

from ferrank.rankers.association import AssociationRanker
from ferrank.rankers.base import Ranker
from ferrank.rankers.forest import ForestRanker
from ferrank.rankers.joint import JointRanker
from ferrank.rankers.plan import Plan
from ferrank.rankers.relief import ReliefRanker
from ferrank.rankers.univariate import UnivariateRanker

__all__ = ["RANKERS", "estimator_of"]

RANKERS: dict[str, type[Ranker]] = {
    "forest": ForestRanker,
    "relief": ReliefRanker,
    "association": AssociationRanker,
    "joint": JointRanker,
    "univariate": UnivariateRanker,
}
"""The estimators, under the names of their plans."""


def estimator_of(plan: Plan) -> Ranker:
    """Return the estimator with the parameters of ``plan``, which may be one already."""
    if isinstance(plan, Ranker):
        return plan
    kind = next(ranker for ranker in RANKERS.values() if issubclass(ranker, type(plan)))
    return kind(**{name: getattr(plan, name) for name in kind._defaults()})
