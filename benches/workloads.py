"""Synthetic data with known relevant features; all values of a feature differ."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np


@dataclass(frozen=True)
class Workload:
    X: np.ndarray  # rows x features, float32, row-major as scikit-learn wants it
    y: np.ndarray  # rows, or rows x targets
    relevant: np.ndarray  # features; whether any target depends on it


def features(rng: np.random.Generator, n_rows: int, n_features: int) -> np.ndarray:
    X = np.empty((n_rows, n_features), dtype=np.float32)
    for j in range(n_features):
        X[:, j] = rng.permutation(n_rows) / n_rows
    return X


@lru_cache(maxsize=1)
def regression(n_rows: int, n_features: int, n_targets: int, seed: int = 0) -> Workload:
    """A tenth of the features matters (at least 4): half of them adds up, half interacts in pairs."""
    rng = np.random.default_rng(seed)
    X = features(rng, n_rows, n_features)
    relevant = rng.choice(n_features, max(4, n_features // 10 // 4 * 4), replace=False)
    half = len(relevant) // 2
    Z = X[:, relevant] - 0.5
    parts = np.hstack([Z[:, :half], 4 * Z[:, half : half + half // 2] * Z[:, half + half // 2 :]])
    y = parts @ rng.uniform(0.5, 1.5, (parts.shape[1], n_targets))
    y += y.std(axis=0) * rng.normal(size=y.shape) / 2
    return Workload(X, y.squeeze(axis=1) if n_targets == 1 else y, np.isin(np.arange(n_features), relevant))


@lru_cache(maxsize=1)
def labels(n_rows: int, n_features: int, n_labels: int, seed: int = 0) -> Workload:
    """Each label goes to the 3 % of the rows that are highest in a noisy sum of three features."""
    rng = np.random.default_rng(seed)
    X = features(rng, n_rows, n_features)
    relevant = rng.choice(n_features, max(3, n_features // 4), replace=False)
    y = np.empty((n_rows, n_labels), dtype=bool)
    for label in range(n_labels):
        height = X[:, rng.choice(relevant, 3, replace=False)].sum(axis=1) + rng.normal(0, 0.3, n_rows)
        y[:, label] = height > np.quantile(height, 0.97)
    return Workload(X, y, np.isin(np.arange(n_features), relevant))
