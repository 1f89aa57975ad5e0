"""The error of a forest on the rows that its trees have not seen, beside that of a constant prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from .problem import Problem
from .scores import leaf_of
from .tree import Node

# Shares that differ by less than rounding noise are equal.
EQUAL = 1e-9
LEVEL = 0.05


@dataclass
class Error:
    """The fields of a ModelError."""

    measure: str
    error: float
    guess: float
    standard_error: float
    squared_error: float
    is_better: bool
    n_rows: int


def forest_errors(
    problem: Problem, trees: list[tuple[list[Node], np.ndarray]], groups: np.ndarray | None = None
) -> list[Error | None]:
    """For each target the error; None where it is not defined.

    A tree is its nodes and the multiplicities of its bag. ``groups`` are the numbers of the rows' groups.
    """
    out, predicted = predictions(problem, trees)
    groups = np.arange(len(out)) if groups is None else groups
    found = []
    for target, nominal in enumerate(problem.nominal):
        columns = problem.target_of == target
        z, p, omega = problem.components[:, columns], predicted[:, columns], problem.omega[columns]
        known = ~np.isnan(z).any(axis=1)
        rows = out & known
        if not omega.any() or rows.sum() < 2:
            found.append(None)
            continue
        is_labels = problem.label_shares is not None
        # The constant is that of all rows, for classes that of the rows which are predicted.
        seen = rows if nominal and not is_labels else known
        constant = np.average(z[seen], axis=0, weights=problem.row_weights[seen])
        z, p, w, group = z[rows], p[rows], problem.row_weights[rows], groups[rows]
        shares = np.where(omega > 0, problem.label_shares, 0.0) if is_labels else np.ones(columns.sum())
        squares = ((p - z) ** 2 @ shares, (constant - z) ** 2 @ shares)
        of_guess = np.average(squares[1], weights=w)
        if not of_guess > 0:
            found.append(None)
            continue
        squared = compare(squares[0] / of_guess, squares[1] / of_guess, w, group, is_ratio=True)
        shown, tests = squared, [(squared, LEVEL)]
        measure = "relative squared error"
        if is_labels or nominal:
            if is_labels:
                measure = "Hamming loss"
                losses = hamming(z, p, shares), hamming(z, np.tile(np.round(constant), (len(z), 1)), shares)
            else:
                measure = "error rate"
                losses = mistakes(z, p), (z.argmax(axis=1) != np.round(constant, 12).argmax()).astype(float)
            shown = compare(*losses, w, group)
            tests = [(squared, LEVEL / 2), (shown, LEVEL / 2)]
        is_better = any(
            guess - error > student.ppf(1 - level, freedom) * standard_error
            for (error, guess, standard_error, freedom), level in tests
            if freedom > 0
        )
        found.append(Error(measure, *shown[:3], squared[0], bool(is_better), int(rows.sum())))
    return found


def compare(
    error: np.ndarray, guess: np.ndarray, weights: np.ndarray, groups: np.ndarray, is_ratio: bool = False
) -> tuple[float, float, float, float]:
    """The means, the standard error of their difference or ratio over groups, and its degrees of freedom."""
    means = np.average(error, weights=weights), np.average(guess, weights=weights)
    slope = means[0] / means[1] if is_ratio else 1.0
    residuals = weights * ((error - means[0]) - slope * (guess - means[1]))
    sums = np.array([residuals[groups == group].sum() for group in np.unique(groups)])
    n, second, fourth = len(sums), (sums**2).sum(), (sums**4).sum()
    standard_error = np.sqrt(second * n / max(n - 1, 1)) / weights.sum()
    freedom = min(second**2 / fourth, n - 1) if fourth > 0 else 0
    return float(means[0]), float(means[1]), float(standard_error), freedom


def predictions(
    problem: Problem, trees: list[tuple[list[Node], np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Which rows are out of the bag of some tree, and the mean prototype that such trees give them."""
    sums, n_trees = np.zeros(problem.components.shape), np.zeros(len(problem.components))
    for nodes, counts in trees:
        if nodes[0].split is None:
            continue
        for row in np.flatnonzero(counts == 0):
            sums[row] += leaf_of(nodes, [feature.values[row] for feature in problem.features]).prototype
            n_trees[row] += 1
    return n_trees > 0, sums / np.maximum(n_trees, 1)[:, None]


def mistakes(truth: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """1 where another class has a greater share than the true one; of m equals, m - 1 choices are wrong."""
    own = (truth * shares).sum(axis=1)
    most = shares.max(axis=1)
    equal = (shares > most[:, None] - EQUAL).sum(axis=1)
    return np.where(own > most - EQUAL, 1 - 1 / equal, 1.0)


def hamming(truth: np.ndarray, shares: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weight of the labels that most trees tell wrongly, of a label with half of the trees half of it."""
    wrong = np.abs(truth - shares)
    return np.where(np.abs(wrong - 0.5) < EQUAL, 0.5, wrong > 0.5) @ weights
