"""The error of a forest on the rows that its trees have not seen, beside that of a constant prediction."""

from __future__ import annotations

import numpy as np

from .problem import Problem
from .scores import leaf_of
from .tree import Node

# Shares that differ by less than rounding noise are equal.
EQUAL = 1e-9


def forest_errors(
    problem: Problem, trees: list[tuple[list[Node], np.ndarray]]
) -> list[tuple[float, float, int] | None]:
    """For each target the error, that of guessing, and the number of rows; None where they are not defined.

    A tree is its nodes and the multiplicities of its bag.
    """
    out, predicted = predictions(problem, trees)
    found = []
    for target, nominal in enumerate(problem.nominal):
        columns = problem.target_of == target
        z, p = problem.components[:, columns], predicted[:, columns]
        known = ~np.isnan(z).any(axis=1)
        w, omega = problem.row_weights, problem.omega[columns]
        constant = np.average(z[known], axis=0, weights=w[known]) if known.any() else None
        rows = out & known
        if constant is None or not omega.any() or rows.sum() < 2:
            found.append(None)
            continue
        if problem.label_shares is not None:
            shares = np.where(omega > 0, problem.label_shares, 0.0)
            error = hamming(z[rows], p[rows], shares)
            guess = hamming(z[rows], np.tile(np.round(constant), (rows.sum(), 1)), shares)
        elif nominal:
            error = mistakes(z[rows], p[rows])
            guess = (z[rows].argmax(axis=1) != np.round(constant, 12).argmax()).astype(float)
        else:
            error, guess = ((p - z)[rows, 0]) ** 2, ((constant - z)[rows, 0]) ** 2
        error, guess = (np.average(values, weights=w[rows]) for values in (error, guess))
        if problem.label_shares is None and not nominal:
            error, guess = (error / guess, 1.0) if guess > 0 else (np.nan, np.nan)
        found.append(None if np.isnan(error) else (float(error), float(guess), int(rows.sum())))
    return found


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
