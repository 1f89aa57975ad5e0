"""The rankers that the papers compare with, under the interface of ours.

They are for comparison on data that fit in memory: numpy, scipy and scikit-learn, not tuned for speed. Sizes
with which they would not finish are refused, with the reason.
"""

from ferrank.evaluate.baselines.base import Baseline
from ferrank.evaluate.baselines.chance import RandomRanker
from ferrank.evaluate.baselines.laplace import LaplaceScore, MultiLabelLaplace
from ferrank.evaluate.baselines.sefr import Sefr
from ferrank.evaluate.baselines.sfss import Sfss
from ferrank.evaluate.baselines.svm import SvmRfe
from ferrank.evaluate.baselines.univariate import ChiSquared, InformationGain

__all__ = [
    "BASELINES",
    "Baseline",
    "ChiSquared",
    "InformationGain",
    "LaplaceScore",
    "MultiLabelLaplace",
    "RandomRanker",
    "Sefr",
    "Sfss",
    "SvmRfe",
]

BASELINES: dict[str, type[Baseline]] = {
    ranker.name: ranker
    for ranker in (
        InformationGain,
        ChiSquared,
        SvmRfe,
        LaplaceScore,
        MultiLabelLaplace,
        Sfss,
        Sefr,
        RandomRanker,
    )
}
"""Every baseline ranker, by its name."""
