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
from ferrank.evaluate.baselines.transformed import BinaryRelevance, LabelPowerSet, PairwiseLabels
from ferrank.evaluate.baselines.univariate import ChiSquared, InformationGain

__all__ = [
    "BASELINES",
    "TRANSFORMATIONS",
    "Baseline",
    "BinaryRelevance",
    "ChiSquared",
    "InformationGain",
    "LabelPowerSet",
    "LaplaceScore",
    "MultiLabelLaplace",
    "PairwiseLabels",
    "RandomRanker",
    "Sefr",
    "Sfss",
    "SvmRfe",
]

TRANSFORMATIONS: dict[str, type[LabelPowerSet | PairwiseLabels | BinaryRelevance]] = {
    ranker.name: ranker for ranker in (LabelPowerSet, PairwiseLabels, BinaryRelevance)
}
"""The baselines that make classifications of label sets, for another ranker, by their names."""

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
} | TRANSFORMATIONS
"""Every baseline ranker, by its name."""
