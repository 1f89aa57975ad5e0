"""Judging rankings: how well they predict, how stable they are, which is better."""

from ferrank.evaluate.evaluation import Evaluation
from ferrank.evaluate.measures import MEASURES, Measure
from ferrank.evaluate.multilabel import multilabel_measures, precision_recall_area
from ferrank.evaluate.neighbors import evaluate

__all__ = [
    "MEASURES",
    "Evaluation",
    "Measure",
    "evaluate",
    "multilabel_measures",
    "precision_recall_area",
]
