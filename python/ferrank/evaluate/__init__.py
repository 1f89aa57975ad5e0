"""Judging rankings: how well they predict, how stable they are, which is better.

:func:`evaluate` judges rankings by the neighbours that they find, :func:`curves` by models of ever more
features, :func:`stability` by how alike they are, :func:`compare` methods over data sets.
:func:`group_importance` judges whole groups of features, such as clusters. :func:`aggregate` makes one
ranking of several, :func:`synthesize` data whose relevant features are known, :func:`report` a page
of it all.
"""

from ferrank.evaluate.aggregate import aggregate, rank_distances
from ferrank.evaluate.baselines import (
    BASELINES,
    Baseline,
    BinaryRelevance,
    ChiSquared,
    InformationGain,
    LabelPowerSet,
    LaplaceScore,
    MultiLabelLaplace,
    PairwiseLabels,
    RandomRanker,
    Sefr,
    Sfss,
    SvmRfe,
)
from ferrank.evaluate.compare import Comparison, compare
from ferrank.evaluate.curves import Areas, Curves, curves
from ferrank.evaluate.evaluation import Evaluation
from ferrank.evaluate.group_importance import group_importance
from ferrank.evaluate.measures import MEASURES, Measure
from ferrank.evaluate.multilabel import multilabel_measures, precision_recall_area
from ferrank.evaluate.neighbors import evaluate
from ferrank.evaluate.report import report
from ferrank.evaluate.resample import resample, trees
from ferrank.evaluate.sizes import subset_sizes
from ferrank.evaluate.stability import Stability, expected_canberra, stability
from ferrank.evaluate.study import (
    CrossValidation,
    ErrorCurves,
    KeptImportances,
    NoisyTruth,
    Repeated,
    Results,
    Study,
    Truth,
    WeightedNeighbors,
    read_plan,
    report_study,
)
from ferrank.evaluate.synth import SYNTHETIC, Synthetic, perturb, synthesize
from ferrank.evaluate.truth import roc_area, separability, spearman_to, tanimoto

__all__ = [
    "BASELINES",
    "MEASURES",
    "SYNTHETIC",
    "Areas",
    "Baseline",
    "BinaryRelevance",
    "ChiSquared",
    "Comparison",
    "CrossValidation",
    "Curves",
    "ErrorCurves",
    "Evaluation",
    "InformationGain",
    "KeptImportances",
    "LabelPowerSet",
    "LaplaceScore",
    "Measure",
    "MultiLabelLaplace",
    "NoisyTruth",
    "PairwiseLabels",
    "RandomRanker",
    "Repeated",
    "Results",
    "Sefr",
    "Sfss",
    "Stability",
    "Study",
    "SvmRfe",
    "Synthetic",
    "Truth",
    "WeightedNeighbors",
    "aggregate",
    "compare",
    "curves",
    "evaluate",
    "expected_canberra",
    "group_importance",
    "multilabel_measures",
    "perturb",
    "precision_recall_area",
    "rank_distances",
    "read_plan",
    "report",
    "report_study",
    "resample",
    "roc_area",
    "separability",
    "spearman_to",
    "stability",
    "subset_sizes",
    "synthesize",
    "tanimoto",
    "trees",
]
