"""Feature ranking by ensembles of trees and by neighbours, for every kind of target and any size of data.

>>> import ferrank, numpy as np
>>> a, b = np.random.default_rng(0).normal(size=(2, 100))
>>> ferrank.rank({"a": a, "b": b, "y": 3 * b}, target="y", n_estimators=20).top(1)
['b']
"""

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
    "__version__",
    "accumulate",
    "convert",
    "grow_tree",
    "inspect",
    "merge",
    "profile",
    "rank",
]
