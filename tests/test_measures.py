"""Measures of label sets beside scikit-learn's where they are the same, and beside plain sums."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn import metrics

from ferrank.evaluate import MEASURES, multilabel_measures, precision_recall_area


@st.composite
def predictions(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Label sets, some of them empty or full, and shares of five neighbours, many of them equal."""
    shape = (draw(st.integers(1, 12)), draw(st.integers(2, 6)))
    true = draw(arrays(np.bool_, shape))
    return true, draw(arrays(np.int64, shape, elements=st.integers(0, 5))) / 5


@given(predictions())
@settings(max_examples=50, deadline=None)
def test_textbook_measures_are_those_of_scikit_learn(pair: tuple[np.ndarray, np.ndarray]) -> None:
    true, scores = pair
    found, by_label = multilabel_measures(true, scores)
    said = scores >= 0.5
    micro = metrics.precision_recall_fscore_support(true, said, average="micro", zero_division=0)
    expected = {
        "micro_precision": micro[0],
        "micro_recall": micro[1],
        "micro_f1": micro[2],
        "hamming_loss": metrics.hamming_loss(true, said),
        "subset_accuracy": (true == said).all(axis=1).mean(),
        "multilabel_accuracy": metrics.jaccard_score(true, said, average="samples", zero_division=1),
        "multilabel_f1": metrics.f1_score(true, said, average="samples", zero_division=1),
        "one_error": np.mean([not row[order.argmax()] for row, order in zip(true, scores, strict=True)]),
        # scikit-learn counts places from 1, and takes 0 for rows without labels.
        "coverage": np.mean(
            [
                max(metrics.coverage_error([row], [order]) - 1, 0)
                for row, order in zip(true, scores, strict=True)
            ]
        ),
        "ranking_loss": metrics.label_ranking_loss(true, scores),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value), name
    for label in range(true.shape[1]):
        mixed = true[:, label].any() and not true[:, label].all()
        area = metrics.roc_auc_score(true[:, label], scores[:, label]) if mixed else 0.5
        assert by_label["auroc"][label] == pytest.approx(area)
        assert by_label["auprc"][label] == pytest.approx(area_by_steps(true[:, label], scores[:, label]))
    assert found["pooled_auprc"] == pytest.approx(area_by_steps(true.ravel(), scores.ravel()))
    assert [name for name in MEASURES if name in found] == list(found)


def area_by_steps(true: np.ndarray, scores: np.ndarray) -> float:
    """Davis & Goadrich, §3: a point for each true positive between two thresholds, and straight lines."""
    points = [(0.0, 0.0)]
    for threshold in sorted(set(scores), reverse=True):
        end = (float(np.sum(true & (scores >= threshold))), float(np.sum(~true & (scores >= threshold))))
        start = points[-1]
        rise = end[0] - start[0]
        between = [(start[0] + x, start[1] + (end[1] - start[1]) * x / rise) for x in range(1, int(rise))]
        points += [*between, end]
    if not true.any():
        return 0.0
    precision = [hits / max(hits + misses, 1) for hits, misses in points]
    # Flat from the first point down to recall 0.
    precision[0] = precision[1]
    if points[1][0] == 0:
        precision[0] = 0.0
    lines = zip(points, points[1:], precision, precision[1:], strict=False)
    return sum((b[0] - a[0]) * (p + q) / 2 for a, b, p, q in lines) / true.sum()


@given(predictions())
@settings(max_examples=50, deadline=None)
def test_conventions_differ_in_three_measures(pair: tuple[np.ndarray, np.ndarray]) -> None:
    true, scores = pair
    textbook, clus = (multilabel_measures(true, scores, conventions=how)[0] for how in ("textbook", "clus"))
    for name in textbook.keys() - {"one_error", "coverage", "ranking_loss"}:
        assert textbook[name] == clus[name]
    assert clus["ranking_loss"] <= textbook["ranking_loss"]


def test_conventions_by_hand() -> None:
    true = np.array([[False, True, True], [False, False, False]])
    scores = np.array([[0.4, 0.4, 0.2], [0.8, 0.0, 0.0]])
    textbook, clus = (multilabel_measures(true, scores, conventions=how)[0] for how in ("textbook", "clus"))
    # The first label is top in both rows and there in none; it is rightly denied in the first.
    assert (textbook["one_error"], clus["one_error"]) == (1.0, 0.5)
    # The last label of the first row is third; the second row has none.
    assert (textbook["coverage"], clus["coverage"]) == (1.0, 3.0)
    # The second label ties with the first, which stands before it in any case.
    assert textbook["ranking_loss"] == clus["ranking_loss"] == 0.5
    scores[0, 1] = 0.4
    turned = multilabel_measures(true[:, ::-1], scores[:, ::-1], conventions="clus")[0]
    assert turned["ranking_loss"] == 0.25


def test_empty_sets_and_labels() -> None:
    nothing, zero = np.zeros((3, 2), dtype=bool), np.zeros((3, 2))
    found, by_label = multilabel_measures(nothing, zero)
    for name in ("precision", "recall", "f1", "accuracy"):
        assert found[f"multilabel_{name}"] == 1.0
    assert (found["micro_precision"], found["micro_f1"], found["ranking_loss"]) == (0.0, 0.0, 0.0)
    assert (by_label["auprc"].tolist(), by_label["auroc"].tolist()) == ([0.0, 0.0], [0.5, 0.5])
    assert multilabel_measures(nothing, zero, conventions="clus")[0]["coverage"] == 0.0
    assert multilabel_measures(~nothing, zero + 1)[0]["average_auprc"] == 1.0
    assert multilabel_measures(~nothing, zero)[0]["multilabel_precision"] == 0.0


@given(predictions(), st.integers(1, 4))
@settings(max_examples=50, deadline=None)
def test_a_label_that_weighs_twice_counts_as_two(pair: tuple[np.ndarray, np.ndarray], times: int) -> None:
    true, scores = pair
    weights = np.ones(true.shape[1])
    weights[0] = times
    many = [0] * (times - 1) + list(range(true.shape[1]))
    weighted, _ = multilabel_measures(true, scores, label_weights=weights)
    copied, _ = multilabel_measures(true[:, many], scores[:, many])
    plain, _ = multilabel_measures(true, scores)
    assert weighted.pop("unweighted_pooled_auprc") == plain["pooled_auprc"]
    for name in weighted.keys() - {"subset_accuracy", "one_error", "coverage", "ranking_loss"}:
        assert weighted[name] == pytest.approx(copied[name]), name


def test_areas_under_weights_of_any_size() -> None:
    rng = np.random.default_rng(0)
    true, scores = rng.random(50) < 0.3, rng.integers(0, 6, 50) / 5
    area = precision_recall_area(true, scores)
    assert precision_recall_area(true, scores, np.full(50, 1e-3)) == pytest.approx(area, abs=0.02)
