"""Kinds of simulated data whose relevant features are known: `KINDS["friedman"](seed)`.

`KINDS` are for the quality of rankings, `DISCOVERIES` for the errors of selections: eight families, each
without any relevant feature (`null-…`) and with some (`mixed-…`).

Unless a kind says otherwise, numeric features are standard normal, the noise of a numeric target is standard
normal, and a class has a logistic model, so that effects are in units of the noise or in log-odds. Columns
are shuffled: some peers prefer the first of equal features.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from scipy.special import ndtr

Array = np.ndarray
Random = np.random.Generator


@dataclass(frozen=True)
class Simulated:
    """A table whose relevant features are known."""

    X: Array  # rows x features, float64: numbers, or the categories' numbers; NaN is a missing value
    y: Array  # rows: float64, or the classes' numbers, int64
    nominal: Array  # features, bool
    relevant: Array  # features, bool: the target's formula has them
    null: Array  # features, bool: independent of the target; neither are those correlated with relevant ones
    groups: Array | None = None  # rows, int64: the subject of each row

    @property
    def task(self) -> str:
        return "classification" if self.y.dtype.kind == "i" else "regression"

    @property
    def size(self) -> str:
        n_rows, n_features = self.X.shape
        return f"{n_rows:,} x {n_features:,}"

    def table(self) -> pa.Table:
        """Return the features `x0`, `x1` … and the target `y`; categories are dictionaries."""
        columns = {
            f"x{j}": categories(self.X[:, j]) if self.nominal[j] else pa.array(self.X[:, j], from_pandas=True)
            for j in range(self.X.shape[1])
        }
        columns["y"] = categories(self.y) if self.task == "classification" else pa.array(self.y)
        return pa.table(columns)


def categories(numbers: Array) -> pa.DictionaryArray:
    values, codes = np.unique(numbers, return_inverse=True)
    return pa.DictionaryArray.from_arrays(codes.astype(np.int32), [f"c{value:g}" for value in values])


@dataclass(frozen=True)
class Kind:
    """A kind of data, drawn by `kind(seed)`; each has random streams of its own."""

    name: str
    make: Callable[[Random], Simulated]
    description: str

    def __call__(self, seed: int) -> Simulated:
        return self.make(np.random.default_rng([zlib.crc32(self.name.encode()), seed]))


KINDS: dict[str, Kind] = {}
"""By name; what rankings are judged on."""

DISCOVERIES: dict[str, Kind] = {}
"""By name; what selections are judged on."""

Make = Callable[[Random], Simulated]
MakeFamily = Callable[[Random, bool], Simulated]


def kind(name: str) -> Callable[[Make], Make]:
    """Add a function to `KINDS`; the first line of its documentation describes the kind."""

    def add(make: Make) -> Make:
        KINDS[name] = Kind(name, make, make.__doc__.partition("\n")[0])
        return make

    return add


def family(name: str) -> Callable[[MakeFamily], MakeFamily]:
    """Add a function to `DISCOVERIES` twice: told that features have effects, and that they have none."""

    def add(make: MakeFamily) -> MakeFamily:
        description = make.__doc__.partition("\n")[0]
        for prefix, effects, addition in (("null", False, "; here they are 0"), ("mixed", True, "")):
            made = partial(make, effects=effects)
            DISCOVERIES[f"{prefix}-{name}"] = Kind(
                f"{prefix}-{name}", made, description.rstrip(".") + addition
            )
        return make

    return add


def shuffled(
    rng: Random,
    X: Array,
    y: Array,
    relevant: int | Array,
    *,
    nominal: Array | None = None,
    null: Array | None = None,
    groups: Array | None = None,
) -> Simulated:
    """Return the table with its columns in random order; `relevant` is a mask, or how many come first."""
    n_features = X.shape[1]
    is_relevant = np.arange(n_features) < relevant if isinstance(relevant, int) else relevant
    is_null = ~is_relevant if null is None else null
    is_nominal = np.zeros(n_features, dtype=bool) if nominal is None else nominal
    order = rng.permutation(n_features)
    columns = np.ascontiguousarray(X[:, order], dtype=np.float64)
    return Simulated(columns, y, is_nominal[order], is_relevant[order], is_null[order], groups)


def classes(rng: Random, log_odds: Array) -> Array:
    return (rng.logistic(size=len(log_odds)) < log_odds).astype(np.int64)


def noisy(rng: Random, signal: Array) -> Array:
    return signal + rng.normal(size=len(signal))


def positives(rng: Random, log_odds: Array, n_positive: int) -> Array:
    """Classes with so many positives, drawn without replacement by their odds (Gumbel's maxima)."""
    y = np.zeros(len(log_odds), dtype=np.int64)
    y[np.argsort(log_odds + rng.gumbel(size=len(log_odds)))[-n_positive:]] = 1
    return y


def bits(rng: Random, n_rows: int, n_features: int) -> Array:
    return rng.integers(2, size=(n_rows, n_features))


def blocks_of(rng: Random, n_rows: int, n_blocks: int, size: int, correlation: float) -> Array:
    """Standard normal features; two have this correlation if they are of the same block, else none."""
    shared = np.repeat(rng.normal(size=(n_rows, n_blocks)), size, axis=1)
    own = rng.normal(size=shared.shape)
    return np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own


def cauchy(Z: Array) -> Array:
    """Cauchy features with the ranks of standard normal ones."""
    return np.tan(np.pi * (ndtr(Z) - 0.5))


EFFECTS = np.linspace(1, 0.15, 15)


@kind("main-classes")
def main_effects_on_classes(rng: Random) -> Simulated:
    """600 x 200: 15 effects from 1 to 0.15 on the log-odds of two classes."""
    X = rng.normal(size=(600, 200))
    return shuffled(rng, X, classes(rng, X[:, :15] @ EFFECTS), 15)


@kind("main-numbers")
def main_effects_on_numbers(rng: Random) -> Simulated:
    """600 x 200: 15 effects from 1 to 0.15 on a number."""
    X = rng.normal(size=(600, 200))
    return shuffled(rng, X, noisy(rng, X[:, :15] @ EFFECTS), 15)


@kind("friedman")
def friedman(rng: Random) -> Simulated:
    """400 x 100, uniform: 10 sin(pi x1 x2) + 20 (x3 - 0.5)^2 + 10 x4 + 5 x5 (Friedman 1991)."""
    X = rng.random((400, 100))
    signal = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return shuffled(rng, X, noisy(rng, signal), 5)


@kind("xor")
def xor_pairs(rng: Random) -> Simulated:
    """600 x 60 bits: the class is the majority of the XORs of three pairs."""
    X = bits(rng, 600, 60)
    votes = (X[:, 0:6:2] ^ X[:, 1:6:2]).sum(axis=1)
    return shuffled(rng, X, (votes >= 2).astype(np.int64), 6)


@kind("products")
def products(rng: Random) -> Simulated:
    """600 x 60: the sum of the products of three pairs."""
    X = rng.normal(size=(600, 60))
    return shuffled(rng, X, noisy(rng, (X[:, 0:6:2] * X[:, 1:6:2]).sum(axis=1)), 6)


@kind("parity")
def parity(rng: Random) -> Simulated:
    """600 x 60 bits: the class is the parity of three, and wrong in 10 % of the rows."""
    X = bits(rng, 600, 60)
    return shuffled(rng, X, X[:, :3].sum(axis=1) % 2 ^ (rng.random(600) < 0.1), 3)


@kind("blocks")
def correlated_blocks(rng: Random) -> Simulated:
    """500 x 100: ten blocks of ten with correlation 0.8; one of each block has an effect of 1 on a number."""
    X = blocks_of(rng, 500, 10, 10, 0.8)
    relevant = np.arange(100) % 10 == 0
    return shuffled(rng, X, noisy(rng, X[:, relevant].sum(axis=1)), relevant, null=np.zeros(100, dtype=bool))


@kind("weak-binary")
def weak_binary(rng: Random) -> Simulated:
    """600 x 40, nominal: five binary ones with log-odds ratios of 0.6, the others have 4 to 200 values."""
    relevant = bits(rng, 600, 5)
    counts = np.geomspace(4, 200, 35).round().astype(int)
    noise = rng.integers(counts, size=(600, 35))
    y = classes(rng, 0.6 * (relevant - 0.5).sum(axis=1))
    return shuffled(rng, np.hstack([relevant, noise]), y, 5, nominal=np.ones(40, dtype=bool))


@kind("copies")
def exact_copies(rng: Random) -> Simulated:
    """400 x 60: 15 features, each four times; five, and so 20, have effects from 1 to 0.3 on a number."""
    X = rng.normal(size=(400, 15))
    y = noisy(rng, X[:, :5] @ np.linspace(1, 0.3, 5))
    return shuffled(rng, np.repeat(X, 4, axis=1), y, 20)


@kind("cauchy")
def heavy_tails(rng: Random) -> Simulated:
    """500 x 50, Cauchy on scales from 1e-6 to 1e6: effects of the ranks of eight, 1 to 0.3, on a class."""
    Z = rng.normal(size=(500, 50))
    scales = rng.permutation(np.geomspace(1e-6, 1e6, 50))
    return shuffled(rng, scales * cauchy(Z), classes(rng, Z[:, :8] @ np.linspace(1, 0.3, 8)), 8)


@kind("nominal-numeric")
def nominal_by_numeric(rng: Random) -> Simulated:
    """600 x 40, half nominal with six values: two times, a value gives the sign of a numeric effect of 1."""
    nominal, numeric = rng.integers(6, size=(600, 20)), rng.normal(size=(600, 20))
    signs = np.stack([rng.permutation([-1, -1, -1, 1, 1, 1]) for _ in range(2)])
    signal = sum(signs[pair][nominal[:, pair]] * numeric[:, pair] for pair in range(2))
    is_nominal = np.arange(40) < 20
    relevant = np.isin(np.arange(40), [0, 1, 20, 21])
    X = np.hstack([nominal, numeric])
    return shuffled(rng, X, noisy(rng, signal), relevant, nominal=is_nominal)


@kind("wide")
def wide(rng: Random) -> Simulated:
    """200 x 10,000: 20 effects of 1 on the log-odds of two classes."""
    X = rng.normal(size=(200, 10_000))
    return shuffled(rng, X, classes(rng, X[:, :20].sum(axis=1)), 20)


@kind("rare")
def rare_class(rng: Random) -> Simulated:
    """30,000 x 40, 30 positives: six effects from 1 to 0.3 on the log-odds."""
    X = rng.normal(size=(30_000, 40))
    return shuffled(rng, X, positives(rng, X[:, :6] @ np.linspace(1, 0.3, 6), 30), 6)


@kind("gaps")
def telling_gaps(rng: Random) -> Simulated:
    """500 x 50: of four, 30 % of the values are missing in one class, 10 % in the other; else 20 %."""
    y = rng.integers(2, size=500)
    shares = np.full((500, 50), 0.2)
    shares[:, :4] = np.where(y == 1, 0.3, 0.1)[:, None]
    X = np.where(rng.random((500, 50)) < shares, np.nan, rng.normal(size=(500, 50)))
    return shuffled(rng, X, y, 4)


N_EFFECTS = 7


def effects_of(n: int, effects: bool) -> Array:
    return np.linspace(1, 0.4, n) * effects


@family("independent")
def independent(rng: Random, effects: bool) -> Simulated:
    """300 x 40: seven effects from 1 to 0.4 on the log-odds of two classes."""
    X = rng.normal(size=(300, 40))
    y = classes(rng, X[:, :N_EFFECTS] @ effects_of(N_EFFECTS, effects))
    return shuffled(rng, X, y, N_EFFECTS * effects)


@family("correlated")
def correlated(rng: Random, effects: bool) -> Simulated:
    """300 x 40, eight blocks of five with correlation 0.8: one of each of four blocks has an effect."""
    X = blocks_of(rng, 300, 8, 5, 0.8)
    column = np.arange(40)
    relevant = (column % 5 == 0) & (column < 20)
    y = noisy(rng, X[:, relevant] @ effects_of(4, effects))
    return shuffled(rng, X, y, relevant & effects, null=(column >= 20) | (not effects))


@family("cardinality")
def mixed_cardinality(rng: Random, effects: bool) -> Simulated:
    """400 x 40, half numeric, half nominal with 2 to 100 values: effects of three numeric, four nominal ones.

    The nominal ones with an effect have 2, 2, 3 and 5 values, of which the first half is told from the rest.
    """
    counts = np.concatenate([[2, 2, 3, 5], np.geomspace(2, 100, 16).round().astype(int)])
    nominal, numeric = rng.integers(counts, size=(400, 20)), rng.normal(size=(400, 20))
    halves = np.where(nominal[:, :4] < counts[:4] / 2, -1.0, 1.0)
    signal = halves @ effects_of(4, effects)[::-1] + numeric[:, :3] @ effects_of(3, effects)
    column = np.arange(40)
    relevant = (column < 4) | ((column >= 20) & (column < 23))
    X = np.hstack([nominal, numeric])
    return shuffled(rng, X, classes(rng, signal), relevant & effects, nominal=column < 20)


@family("imbalance")
def imbalance(rng: Random, effects: bool) -> Simulated:
    """1,000 x 40, 40 positives: seven effects from 1 to 0.4 on the log-odds."""
    X = rng.normal(size=(1_000, 40))
    y = positives(rng, X[:, :N_EFFECTS] @ effects_of(N_EFFECTS, effects), 40)
    return shuffled(rng, X, y, N_EFFECTS * effects)


@family("heavy-tails")
def heavy_tailed(rng: Random, effects: bool) -> Simulated:
    """300 x 40, Cauchy: effects of the ranks of seven on a number whose noise has 2 degrees of freedom."""
    Z = rng.normal(size=(300, 40))
    y = Z[:, :N_EFFECTS] @ effects_of(N_EFFECTS, effects) + rng.standard_t(2, size=300)
    return shuffled(rng, cauchy(Z), y, N_EFFECTS * effects)


@family("grouped")
def grouped(rng: Random, effects: bool) -> Simulated:
    """60 subjects x 20 rows, 40 features: five effects from 1 to 0.4 on a number.

    Four fifths of the variance of a feature, and half of that of the target's noise, lie between subjects.
    """
    subject = np.repeat(np.arange(60), 20)
    between, within = rng.normal(size=(60, 40))[subject], rng.normal(size=(1_200, 40))
    X = np.sqrt(0.8) * between + np.sqrt(0.2) * within
    y = noisy(rng, X[:, :5] @ effects_of(5, effects) + rng.normal(size=60)[subject])
    return shuffled(rng, X, y, 5 * effects, groups=subject)


@family("wide")
def wide_table(rng: Random, effects: bool) -> Simulated:
    """200 x 2,000, blocks of ten with correlation 0.5: one of each of seven has an effect on a number."""
    X = blocks_of(rng, 200, 200, 10, 0.5)
    column = np.arange(2_000)
    relevant = (column % 10 == 0) & (column < 10 * N_EFFECTS)
    y = noisy(rng, X[:, relevant] @ effects_of(N_EFFECTS, effects))
    return shuffled(rng, X, y, relevant & effects, null=(column >= 10 * N_EFFECTS) | (not effects))


@family("wide-cardinality")
def wide_mixed_cardinality(rng: Random, effects: bool) -> Simulated:
    """300 x 300, of which 290 are numeric: effects of five numeric ones, and of two of ten nominal ones.

    The nominal ones have 2 to 50 values; those with an effect have 2 and 4, of which the first half is told.
    """
    counts = np.concatenate([[2, 4], np.geomspace(2, 50, 8).round().astype(int)])
    nominal, numeric = rng.integers(counts, size=(300, 10)), rng.normal(size=(300, 290))
    halves = np.where(nominal[:, :2] < counts[:2] / 2, -1.0, 1.0)
    signal = halves @ effects_of(2, effects) + numeric[:, :5] @ effects_of(5, effects)
    column = np.arange(300)
    relevant = (column < 2) | ((column >= 10) & (column < 15))
    X = np.hstack([nominal, numeric])
    return shuffled(rng, X, classes(rng, signal), relevant & effects, nominal=column < 10)
