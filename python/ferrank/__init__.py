"""Feature ranking by ensembles of trees and by neighbours, for every kind of target and any size of data.

>>> import ferrank, numpy as np
>>> a, b = np.random.default_rng(0).normal(size=(2, 100))
>>> ferrank.rank({"a": a, "b": b, "y": 3 * b}, target="y", n_estimators=20).top(1)
['b']
"""

from ferrank._core import __version__
from ferrank.dataset import convert, grow_tree, inspect, rank
from ferrank.errors import (
    ColumnTypeError,
    DataError,
    FerrankError,
    IntegerTargetWarning,
    ResourceError,
    SettingError,
)
from ferrank.forest import ForestRanker
from ferrank.ranking import Ranking, ScoreRanking
from ferrank.relief import ReliefRanker
from ferrank.stop import Stop

__all__ = [
    "ColumnTypeError",
    "DataError",
    "FerrankError",
    "ForestRanker",
    "IntegerTargetWarning",
    "Ranking",
    "ReliefRanker",
    "ResourceError",
    "ScoreRanking",
    "SettingError",
    "Stop",
    "__version__",
    "convert",
    "grow_tree",
    "inspect",
    "rank",
]
