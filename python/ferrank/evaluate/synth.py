"""Synthetic data whose relevant features are known.

``single``, ``pair`` and ``combined`` are the sets of Slavkov et al. 2020, appendix 1: binary features, a
class target. A relevant set is one feature that equals the target with probability p, or two whose XOR does.
Each is realised once and stands in the data three times, as itself and two redundant copies of the same
values: that is how "redundant copies" is read, since only of the irrelevant features the paper says that they
are realised independently of each other; with ``redundant=False`` the three are drawn independently.

``parity``, ``parity_regression``, ``modulo8`` and ``fraction`` are the families of Robnik-Šikonja and
Kononenko 1999 (§2 and §4.2, defined in Robnik Šikonja and Kononenko, ICML 1997): the target depends on all
informative features together and on none of them alone. The paper's parity problem of Fig. 2 is ``parity``
with 2 informative and 10 random features and 200 rows.

Of the same paper (§4) are ``linear``, x1 - 2 x2 + 3 x3 - 3 x4; ``cosinus``, cos(4π x1) (3 x3 - 2 x2), both of
features uniform in [0, 1); and ``krk``: nominal files and ranks of a white king, a white rook and a black
king, and whether the position, with White to move, is illegal.

``regression`` and ``multilabel`` are our own: numeric features, of which the first few make linear and
pairwise terms of one or several numbers, or of label sets.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank.data.parameters import choice_of, count_of, flag_of, floats_of, generator_of, number_of
from ferrank.errors import DataError, SettingError
from ferrank.ranking import Ranking

__all__ = ["SYNTHETIC", "Synthetic", "perturb", "synthesize"]

Array = np.ndarray[Any, Any]
Random = np.random.Generator

_N_COPIES = 3
_PROBABILITIES = (0.8, 0.7, 0.6)
_TABLE_2 = {"single": (1,), "pair": (2,), "combined": (1, 2)}  # sizes of the relevant sets
_NOISE = 0.1


@dataclass(frozen=True, eq=False)
class Synthetic:
    """A synthetic data set and its ground truth.

    Attributes
    ----------
    name : str
        What it is.
    task : str
        Of the targets.
    X : array of shape (n_rows, n_features)
        Features, the relevant ones first; they are called ``x1``, ``x2`` ….
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Targets, called ``y``, or ``y1``, ``y2`` ….
    relevance : array of shape (n_features,)
        The true importances; 0 for irrelevant features.

    Examples
    --------
    >>> from ferrank.evaluate import synthesize
    >>> data = synthesize("combined", 200)
    >>> data.name, data.task, data.features[:2], data.ranking.top(1)
    ('combined', 'classification', ['x1', 'x2'], ['x1'])
    """

    name: str
    task: str
    X: Array
    y: Array
    relevance: Array

    @property
    def features(self) -> list[str]:
        """Names of the features."""
        return [f"x{number}" for number in range(1, self.X.shape[1] + 1)]

    @property
    def targets(self) -> list[str]:
        """Names of the targets."""
        return ["y"] if self.y.ndim == 1 else [f"y{number}" for number in range(1, self.y.shape[1] + 1)]

    @property
    def relevant(self) -> Array:
        """Which features matter, of shape (n_features,)."""
        return self.relevance > 0

    @property
    def ranking(self) -> Ranking:
        """The ground truth as a ranking with the score ``truth``."""
        return Ranking.from_importances(
            self.features,
            {"truth": self.relevance},
            task=self.task,
            targets=self.targets,
            n_rows=len(self.X),
        )

    def to_arrow(self) -> pa.Table:
        """Return a table of the features and then the targets; classes are strings, labels booleans."""
        columns: dict[str, Any] = dict(zip(self.features, self.X.T, strict=True))
        for name, target in zip(self.targets, self.y.reshape(len(self.X), -1).T, strict=True):
            columns[name] = pa.array(target.astype(str)) if self.task == "classification" else target
        return pa.table(columns)

    def to_pandas(self) -> Any:
        """Return the table of :meth:`to_arrow` as a pandas frame."""
        return self.to_arrow().to_pandas()


def synthesize(
    name: str,
    n_rows: int = 1_000,
    *,
    n_features: int = 100,
    n_informative: int = 3,
    n_targets: int = 1,
    redundant: bool = True,
    random_state: int | Random = 0,
) -> Synthetic:
    """Draw a synthetic data set.

    Parameters
    ----------
    name : str
        One of :data:`SYNTHETIC`.
    n_rows : int, default=1000
        Number of rows.
    n_features : int, default=100
        The relevant and the irrelevant ones together.
    n_informative : int, default=3
        Number of relevant features; fixed at 9, 18 and 27 for ``single``, ``pair`` and ``combined``, at 4,
        3 and 6 for ``linear``, ``cosinus`` and ``krk``.
    n_targets : int, default=1
        Of ``regression``, and labels of ``multilabel`` (at least 2 there).
    redundant : bool, default=True
        Whether the copies of a relevant set (``single``, ``pair``, ``combined``) have the same values.
    random_state : int or Generator, default=0
        Seed of all random draws.

    Returns
    -------
    Synthetic

    Raises
    ------
    SettingError
        The name is unknown, or a number too small.

    Examples
    --------
    >>> data = synthesize("combined", 200)
    >>> data.X.shape, int(data.relevant.sum()), data.relevance[[0, 9, 99]].round(3).tolist()
    ((200, 100), 27, [0.278, 0.139, 0.0])
    """
    choice_of(name, "name", SYNTHETIC)
    redundant = flag_of(redundant, "redundant")
    n_informative = count_of(n_informative, "n_informative")
    copies = sum(_N_COPIES * len(_PROBABILITIES) * size for size in _TABLE_2.get(name, ()))
    n_informative = _FIXED.get(name, n_informative)
    least = copies or n_informative
    checks = (
        ("n_rows", n_rows, 1),
        ("n_informative", n_informative, 1),
        ("n_features", n_features, least),
        ("n_targets", n_targets, 2 if name == "multilabel" else 1),
    )
    for setting, found, smallest in checks:
        if count_of(found, setting, setting.removeprefix("n_")) < smallest:
            raise SettingError(f"{setting}: {found} is too few for {name}; use {smallest} or more")
    if n_targets > 1 and name not in {"regression", "multilabel"}:
        raise SettingError(f"n_targets: {name} has 1; regression and multilabel have several")
    if name == "modulo8" and n_informative > 8:
        raise SettingError(f"n_informative: {n_informative} is too many for modulo8; use 8 or fewer")
    rng = generator_of(random_state)
    if name in _TABLE_2:
        return _interactions(name, rng, n_rows, n_features, redundant)
    X, y, relevance, task = _FAMILIES[name](rng, n_rows, n_features, n_informative, n_targets)
    return Synthetic(name, task, X, y, relevance)


def perturb(importances: Array, share: float, random_state: int | Random = 0) -> Array:
    """Give a share of the features random importances: the noisy rankings R_θ of Slavkov et al. 2020.

    Parameters
    ----------
    importances : array of shape (n_features,)
        The importances of a ranking.
    share : float
        θ; so many of the features, drawn without replacement, get an importance uniform in [0, 1).
    random_state : int or Generator, default=0
        Seed of all random draws.

    Returns
    -------
    array of shape (n_features,)

    Examples
    --------
    >>> int((perturb(np.zeros(100), 0.05) > 0).sum())
    5
    """
    number_of(share, "share", "[0, 1]", lambda value: 0 <= value <= 1)
    rng, noisy = generator_of(random_state), floats_of(importances, "importances").copy()
    if noisy.ndim != 1:
        raise DataError(
            f"importances: an array of shape {noisy.shape}; one number for each feature is needed"
        )
    chosen = rng.choice(len(noisy), round(share * len(noisy)), replace=False)
    noisy[chosen] = rng.random(len(chosen))
    return noisy


def _interactions(name: str, rng: Random, n_rows: int, n_features: int, redundant: bool) -> Synthetic:
    y = rng.integers(0, 2, n_rows)
    columns: list[Array] = []
    relevance: list[float] = []
    for size in _TABLE_2[name]:
        for p in _PROBABILITIES:
            realised = [_feature_set(size, p, y, rng) for _ in range(1 if redundant else _N_COPIES)]
            for copy in range(_N_COPIES):
                columns += realised[0 if redundant else copy]
            # Eq. 5: mutual information of the set and the target in bits, shared by its features.
            information = 1 + p * np.log2(p) + (1 - p) * np.log2(1 - p)
            relevance += [information / size] * (size * _N_COPIES)
    n_irrelevant = n_features - len(columns)
    columns += list(rng.integers(0, 2, (n_irrelevant, n_rows)))
    X = np.column_stack(columns)
    return Synthetic(name, "classification", X, y, np.array(relevance + [0.0] * n_irrelevant))


def _feature_set(size: int, p: float, y: Array, rng: Random) -> list[Array]:
    """Return one feature, or two, of which the value or the XOR is that of the target with probability p."""
    agreeing = np.where(rng.random(len(y)) < p, y, 1 - y)
    if size == 1:
        return [agreeing]
    first = rng.integers(0, 2, len(y))
    return [first, first ^ agreeing]


Drawn = tuple[Array, Array, Array, str]


def _truth(weights: Sequence[float], n_features: int) -> Array:
    relevance = np.zeros(n_features)
    relevance[: len(weights)] = weights
    return relevance


def _parity(rng: Random, n_rows: int, n_features: int, k: int, _: int) -> Drawn:
    X = rng.integers(0, 2, (n_rows, n_features))
    return X, X[:, :k].sum(axis=1) % 2, _truth([1 / k] * k, n_features), "classification"


def _parity_regression(rng: Random, n_rows: int, n_features: int, k: int, _: int) -> Drawn:
    X = rng.integers(0, 2, (n_rows, n_features))
    y = (rng.random(n_rows) + X[:, :k].sum(axis=1) % 2) / 2
    return X, y, _truth([1 / k] * k, n_features), "regression"


def _modulo8(rng: Random, n_rows: int, n_features: int, k: int, _: int) -> Drawn:
    X = rng.integers(0, 8, (n_rows, n_features))
    y = (X[:, :k].sum(axis=1) % 8).astype(np.float64)
    return X, y, _truth([1 / k] * k, n_features), "regression"


def _fraction(rng: Random, n_rows: int, n_features: int, k: int, _: int) -> Drawn:
    X = rng.random((n_rows, n_features))
    return X, X[:, :k].sum(axis=1) % 1, _truth([1 / k] * k, n_features), "regression"


def _linear(rng: Random, n_rows: int, n_features: int, k: int, _: int) -> Drawn:
    X, weights = rng.random((n_rows, n_features)), np.array([1.0, -2.0, 3.0, -3.0])
    share = weights**2 / (weights**2).sum()
    return X, X[:, :k] @ weights, _truth(list(share), n_features), "regression"


def _cosinus(rng: Random, n_rows: int, n_features: int, k: int, _: int) -> Drawn:
    X = rng.random((n_rows, n_features))
    y = np.cos(4 * np.pi * X[:, 0]) * (3 * X[:, 2] - 2 * X[:, 1])
    return X, y, _truth([1 / k] * k, n_features), "regression"


def _krk(rng: Random, n_rows: int, n_features: int, k: int, _: int) -> Drawn:
    squares = rng.integers(0, 8, (n_rows, n_features))
    white, rook, black = squares[:, :2], squares[:, 2:4], squares[:, 4:6]
    illegal = (white == rook).all(1) | (rook == black).all(1) | (np.abs(white - black).max(1) <= 1)
    for line, along in ((0, 1), (1, 0)):
        low, high = np.minimum(rook[:, along], black[:, along]), np.maximum(rook[:, along], black[:, along])
        is_between = (white[:, line] == rook[:, line]) & (low < white[:, along]) & (white[:, along] < high)
        illegal |= (rook[:, line] == black[:, line]) & ~is_between
    y = np.where(illegal, "illegal", "legal")
    return squares.astype(str), y, _truth([1 / k] * k, n_features), "classification"


def _signals(rng: Random, n_rows: int, n_features: int, k: int, n_targets: int) -> tuple[Array, Array, Array]:
    """Return X, the targets without noise, and the relevance.

    Target t is Σ_i a_ti x_i + Σ b_ti x_i x_{i+1} over neighbours among the k relevant features, with weights
    that fall from 1 to 1/k along the features and have random signs. A feature's relevance is the mean over
    the targets of its share of the variance; the variance of a product is split evenly.
    """
    X = rng.normal(size=(n_rows, n_features))
    strength = 1 / np.arange(1, k + 1)
    linear = strength * rng.choice([-1, 1], (n_targets, k))
    pairs = strength[:-1] * rng.choice([-1, 1], (n_targets, k - 1))
    signals = X[:, :k] @ linear.T + (X[:, : k - 1] * X[:, 1:k]) @ pairs.T
    variance = strength**2
    variance[:-1] += strength[:-1] ** 2 / 2
    variance[1:] += strength[:-1] ** 2 / 2
    return X, signals, _truth(list(variance / variance.sum()), n_features)


def _regression(rng: Random, n_rows: int, n_features: int, k: int, n_targets: int) -> Drawn:
    X, signals, relevance = _signals(rng, n_rows, n_features, k, n_targets)
    y = signals + _NOISE * rng.normal(size=signals.shape)
    return X, y[:, 0] if n_targets == 1 else y, relevance, "regression" if n_targets == 1 else "multi-target"


def _multilabel(rng: Random, n_rows: int, n_features: int, k: int, n_labels: int) -> Drawn:
    X, signals, relevance = _signals(rng, n_rows, n_features, k, n_labels)
    return X, signals + _NOISE * rng.normal(size=signals.shape) > 0, relevance, "multi-label"


_FAMILIES: dict[str, Callable[[Random, int, int, int, int], Drawn]] = {
    "parity": _parity,
    "parity_regression": _parity_regression,
    "modulo8": _modulo8,
    "fraction": _fraction,
    "linear": _linear,
    "cosinus": _cosinus,
    "krk": _krk,
    "regression": _regression,
    "multilabel": _multilabel,
}

_FIXED = {"linear": 4, "cosinus": 3, "krk": 6}
"""Numbers of informative features that cannot be chosen."""

SYNTHETIC = (*_TABLE_2, *_FAMILIES)
"""Names of the synthetic data sets."""
