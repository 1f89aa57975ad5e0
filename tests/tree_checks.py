"""A tree of the engine, compared with the tree that the formulas grow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import ferrank as fr
from reference import scores, tree
from reference.problem import Problem

SCORES = ("genie3", "symbolic", "coverage")


def assert_same_tree(
    table: pa.Table,
    problem: Problem,
    asked: dict,
    *,
    min_samples_leaf: int = 2,
    max_depth: int | None = None,
    **others,
) -> None:
    """The engine, asked so, grows the tree that the formulas grow for `problem`, with the same scores.

    If a feature has missing values, this holds for both things that they can mean.
    """
    incomplete = any(None in feature.values for feature in problem.features)
    for missing in ("informative", "ignore") if incomplete else ("informative",):
        limits = {"min_samples_leaf": min_samples_leaf, "max_depth": max_depth, "missing": missing}
        _assert_same_tree(table, problem, asked, limits, others)


def _assert_same_tree(table: pa.Table, problem: Problem, asked: dict, limits: dict, others: dict) -> None:
    ranker = fr.ForestRanker(
        n_estimators=1,
        ensemble="bagging",
        bootstrap=False,
        max_bins=65_535,
        ties="lowest",
        scores=SCORES,
        by_target=True,
        **{"unlabelled": "ignore"} | limits | others,
    )
    nodes = tree.grow(problem, **limits)
    grown = fr.grow_tree(table, ranker=ranker, **asked).to_pylist()
    assert [shape(node) for node in grown] == [expected_shape(node, problem) for node in nodes]
    for ours, expected in zip(grown, nodes, strict=True):
        if expected.split is not None:
            assert ours["gain"] == pytest.approx(expected.split.gain, rel=1e-9, abs=1e-12)
            if expected.split.cut == np.inf:
                assert ours["cut"] == np.inf
            elif expected.split.cut is not None:
                lowest, beyond = expected.split.between
                assert lowest <= ours["cut"] < beyond
                assert ours["cut"] == pytest.approx(expected.split.cut, rel=1e-9)

    ranking = fr.rank(table, ranker=ranker, **asked)
    n_features = len(problem.features)
    close = {"rtol": 1e-9, "atol": 1e-12}
    for score in SCORES:
        np.testing.assert_allclose(
            ranking.importances(score), getattr(scores, score)(nodes, n_features), **close, err_msg=score
        )
    if nodes[0].split is not None:
        np.testing.assert_allclose(
            ranking.by_target("genie3"),
            scores.genie3_by_target(nodes, n_features, len(problem.nominal)),
            **close,
        )


def shape(node: dict) -> tuple:
    if node["feature"] is None:
        return (node["n_examples"],)
    children = (node["left"], node["right"])
    return (node["n_examples"], node["feature"], node["categories"], node["missing_left"], *children)


def expected_shape(node: tree.Node, problem: Problem) -> tuple:
    if node.split is None:
        return (node.n_examples,)
    split = node.split
    feature = problem.features[split.feature].name
    return (node.n_examples, feature, split.categories, split.missing_left, node.left, node.right)
