"""Importances of one tree, and the errors that permutation compares."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .problem import Problem
from .tree import Node, Split


def over_tests(nodes: list[Node], n_features: int, part: Callable[[Node, Split], float]) -> np.ndarray:
    """Sum of `part` over the nodes that test each feature."""
    importance = np.zeros(n_features)
    for node in nodes:
        if node.split is not None:
            importance[node.split.feature] += part(node, node.split)
    return importance


def genie3(nodes: list[Node], n_features: int) -> np.ndarray:
    return over_tests(nodes, n_features, lambda node, split: node.weight / nodes[0].weight * split.gain)


def genie3_by_target(nodes: list[Node], n_features: int, n_targets: int) -> np.ndarray:
    columns = [
        over_tests(
            nodes, n_features, lambda node, s, t=t: node.weight / nodes[0].weight * s.gain_by_target[t]
        )
        for t in range(n_targets)
    ]
    return np.array(columns).T


def symbolic(nodes: list[Node], n_features: int, decay: float = 0.5) -> np.ndarray:
    return over_tests(nodes, n_features, lambda node, _: decay**node.depth)


def coverage(nodes: list[Node], n_features: int) -> np.ndarray:
    return over_tests(nodes, n_features, lambda node, _: node.weight / nodes[0].weight)


def leaf_of(nodes: list[Node], values: list) -> Node:
    """The leaf that an example with these feature values reaches."""
    node = nodes[0]
    while node.split is not None:
        split, value = node.split, values[node.split.feature]
        if value is None:
            left = split.missing_left
        else:
            left = value <= split.cut if split.cut is not None else value in split.categories
        node = nodes[node.left if left else node.right]
    return node


def error(problem: Problem, truth: np.ndarray, predicted: np.ndarray) -> float:
    """Mean over targets: share of wrong classes, or relative root squared error; weighted Hamming loss."""
    if problem.label_shares is not None:
        wrong = (truth > 0.5) != (predicted > 0.5)
        return float((wrong @ problem.label_shares).mean())
    errors = []
    for target, is_class in enumerate(problem.nominal):
        columns = problem.target_of == target
        y, p = truth[:, columns], predicted[:, columns]
        known = ~np.isnan(y).any(axis=1)
        y, p = y[known], p[known]
        if is_class:
            errors.append(float((y.argmax(axis=1) != p.argmax(axis=1)).mean()))
        else:
            spread = ((y - y.mean(axis=0)) ** 2).sum()
            errors.append(float(np.sqrt(((y - p) ** 2).sum() / spread)))
    return float(np.mean(errors))


def permutation(problem: Problem, nodes: list[Node], oob: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(e(OOB_i) - e(OOB)) / e(OOB), the increase itself where e(OOB) is 0; one shuffle of each feature."""

    def error_with(columns: list[list]) -> float:
        predicted = np.array([leaf_of(nodes, [c[row] for c in columns]).prototype for row in range(len(oob))])
        return error(problem, problem.components[oob], predicted)

    columns = [[feature.values[row] for row in oob] for feature in problem.features]
    before = error_with(columns)
    importance = np.zeros(len(columns))
    for i, column in enumerate(columns):
        shuffled = [column[k] for k in rng.permutation(len(oob))]
        increase = error_with([*columns[:i], shuffled, *columns[i + 1 :]]) - before
        importance[i] = increase / before if before > 0 else increase
    return importance
