"""Feature ranking by ensembles of trees and by neighbours, for every kind of target and any size of data.

>>> import ferrank, numpy as np
>>> a, b = np.random.default_rng(0).normal(size=(2, 100))
>>> ferrank.rank({"a": a, "b": b, "y": 3 * b}, target="y", n_estimators=20).top(1)
['b']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ferrank._core import __version__
from ferrank.accumulator import Accumulator, Profile, accumulate, merge, profile
from ferrank.dataset import convert, grow_tree, inspect, rank
from ferrank.errors import (
    ColumnTypeError,
    DataError,
    DriftWarning,
    FerrankError,
    IntegerTargetWarning,
    ResourceError,
    ResumeWarning,
    SettingError,
)
from ferrank.forest import ForestRanker
from ferrank.ranking import Ranking, ScoreRanking
from ferrank.relief import ReliefRanker
from ferrank.stop import Stop

if TYPE_CHECKING:
    from ferrank.clustering import clustering_value
    from ferrank.supervision import SupervisionSearch
    from ferrank.tuning import Tuning, tune

__all__ = [
    "Accumulator",
    "ColumnTypeError",
    "DataError",
    "DriftWarning",
    "FerrankError",
    "ForestRanker",
    "IntegerTargetWarning",
    "Profile",
    "Ranking",
    "ReliefRanker",
    "ResourceError",
    "ResumeWarning",
    "ScoreRanking",
    "SettingError",
    "Stop",
    "SupervisionSearch",
    "Tuning",
    "__version__",
    "accumulate",
    "clustering_value",
    "convert",
    "grow_tree",
    "inspect",
    "merge",
    "profile",
    "rank",
    "tune",
]

# They need scikit-learn's measures and k-means, whose import takes a second.
_LATE = {
    "SupervisionSearch": "supervision",
    "Tuning": "tuning",
    "clustering_value": "clustering",
    "tune": "tuning",
}


def __getattr__(name: str) -> Any:
    if name in _LATE:
        return getattr(import_module(f"ferrank.{_LATE[name]}"), name)
    raise AttributeError(f"module 'ferrank' has no attribute '{name}'")
