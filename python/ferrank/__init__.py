"""Feature ranking by ensembles of trees and by neighbours, for every kind of target and any size of data.

>>> import ferrank, numpy as np
>>> a, b = np.random.default_rng(0).normal(size=(2, 100))
>>> ferrank.rank({"a": a, "b": b, "y": 3 * b}, target="y", n_estimators=20).top(1)
['b']
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ferrank._core import __version__
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

if TYPE_CHECKING:
    from ferrank.accumulator import Accumulator, Profile, accumulate, merge, profile
    from ferrank.clustering import clustering_value
    from ferrank.contents import convert, inspect
    from ferrank.dataset import grow_tree, rank
    from ferrank.forest import ForestRanker
    from ferrank.ranking import Ranking, ScoreRanking
    from ferrank.relief import ReliefRanker
    from ferrank.stop import Stop
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

# Imported when they are asked for: most need scikit-learn, which takes a second.
_MODULES = {
    "accumulator": ("Accumulator", "Profile", "accumulate", "merge", "profile"),
    "clustering": ("clustering_value",),
    "contents": ("convert", "inspect"),
    "dataset": ("grow_tree", "rank"),
    "forest": ("ForestRanker",),
    "ranking": ("Ranking", "ScoreRanking"),
    "relief": ("ReliefRanker",),
    "stop": ("Stop",),
    "supervision": ("SupervisionSearch",),
    "tuning": ("Tuning", "tune"),
}


def __getattr__(name: str) -> Any:
    for module, names in _MODULES.items():
        if name == module:
            return import_module(f"ferrank.{module}")
        if name in names:
            value = globals()[name] = getattr(import_module(f"ferrank.{module}"), name)
            return value
    raise AttributeError(f"module 'ferrank' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
