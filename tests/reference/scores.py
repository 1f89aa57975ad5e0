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


def path_of(nodes: list[Node], values: list) -> list[tuple[int, bool | None]]:
    """The nodes that an example with these feature values reaches; whether it goes left, None in the leaf."""
    path, number = [], 0
    while (split := nodes[number].split) is not None:
        value = values[split.feature]
        if value is None:
            left = split.missing_left
        else:
            left = value <= split.cut if split.cut is not None else value in split.categories
        path.append((number, left))
        number = nodes[number].left if left else nodes[number].right
    return [*path, (number, None)]


def leaf_of(nodes: list[Node], values: list) -> Node:
    """The leaf that an example with these feature values reaches."""
    return nodes[path_of(nodes, values)[-1][0]]


def mdi_oob_by_variable(
    problem: Problem, nodes: list[Node], counts: np.ndarray, missing: str = "informative"
) -> np.ndarray:
    """n_features x n_variables: over the out-of-bag rows of a node, the covariance of a component and its
    mean in the bag on the side of the split that a row is on. `counts` are the multiplicities in the bag.
    """
    z, out = problem.components, counts == 0
    paths = [
        dict(path_of(nodes, [feature.values[row] for feature in problem.features])) for row in range(len(z))
    ]
    root = problem.row_weights[out].sum()
    importance = np.zeros((len(problem.features), problem.target_of.max() + 1))
    for number, node in enumerate(nodes):
        if node.split is None:
            continue
        feature = problem.features[node.split.feature]
        reached = np.array([number in path for path in paths])
        if missing == "ignore":
            reached &= np.array([value is not None for value in feature.values])
        left = np.array([bool(path.get(number)) for path in paths])
        share = problem.row_weights[reached & out].sum() / root if root > 0 else 0.0
        for component, omega in enumerate(problem.omega):
            known = reached & ~np.isnan(z[:, component])
            sides = known & left, known & ~left
            if not all((side & out).any() and (side & ~out).any() for side in sides):
                continue
            y, weight = z[:, component], problem.row_weights
            side_mean = np.zeros(len(z))
            for side in sides:
                side_mean[side] = np.average(y[side & ~out], weights=(counts * weight)[side & ~out])
            rows = known & out
            covariance = np.cov(side_mean[rows], y[rows], aweights=weight[rows], ddof=0)[0, 1]
            importance[node.split.feature, problem.target_of[component]] += share * omega * covariance
    return importance


def mdi_oob(
    problem: Problem, nodes: list[Node], counts: np.ndarray, missing: str = "informative"
) -> np.ndarray:
    return mdi_oob_by_variable(problem, nodes, counts, missing).sum(axis=1)


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
