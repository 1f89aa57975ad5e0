"""Comparisons of methods over several data sets.

After Demšar 2006, as in Petković et al. 2020a, §4, and Petković et al. 2020b, §5.

Friedman's test says whether the methods differ at all, Nemenyi's which pairs of them do, Bonferroni and
Dunn's which differ from a control. Wilcoxon's signed ranks look at each pair by itself; their p-values are
adjusted for the number of pairs by Benjamini and Hochberg's false discovery rate.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from ferrank.data.parameters import flag_of, number_of
from ferrank.errors import DataError, SettingError
from ferrank.evaluate.extra import need

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Comparison", "compare", "significant"]

Array = np.ndarray[Any, Any]

_MOST_IN_PAIRS = 20
"""Methods whose pairs a text lists."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """Methods compared over data sets. Matrices are in the order of ``methods``, best first.

    Attributes
    ----------
    methods : list of str
    n_data_sets : int
    lower_is_better : bool
    alpha : float
        Level of significance.
    mean_rank : array of shape (n_methods,)
        1 is the best; equals share the mean of their ranks.
    friedman : (float, float)
        χ² and p-value; NaN for two methods.
    iman_davenport : (float, float)
        F and p-value of its less conservative form.
    nemenyi : array of shape (n_methods, n_methods)
        p-values.
    critical_difference : float
        Of mean ranks, by Nemenyi, at ``alpha``.
    wilcoxon, wilcoxon_adjusted : array of shape (n_methods, n_methods)
        p-values of each pair, and adjusted by Benjamini and Hochberg.
    control : str or None
    bonferroni_dunn : array of shape (n_methods,) or None
        p-values against the control, times the number of the other methods.
    control_difference : float or None
        The critical difference to the control, by Bonferroni and Dunn.

    Examples
    --------
    >>> from ferrank.evaluate import compare
    >>> found = compare({"a": [0.9, 0.8, 0.7, 0.9], "b": [0.8, 0.7, 0.6, 0.7], "c": [0.5, 0.6, 0.5, 0.4]})
    >>> found.n_data_sets, found.nemenyi.shape, round(found.critical_difference, 3)
    (4, (3, 3), 1.657)
    """

    methods: list[str]
    n_data_sets: int
    lower_is_better: bool
    alpha: float
    mean_rank: Array
    friedman: tuple[float, float]
    iman_davenport: tuple[float, float]
    nemenyi: Array
    critical_difference: float
    wilcoxon: Array
    wilcoxon_adjusted: Array
    control: str | None
    bonferroni_dunn: Array | None
    control_difference: float | None

    def to_pandas(self) -> Any:
        """Return a frame with a row for each pair: ``a, b``, their mean ranks and the p-values."""
        import pandas as pd

        pairs = list(combinations(range(len(self.methods)), 2))
        return pd.DataFrame(
            {
                "a": [self.methods[a] for a, _ in pairs],
                "b": [self.methods[b] for _, b in pairs],
                "rank_a": [self.mean_rank[a] for a, _ in pairs],
                "rank_b": [self.mean_rank[b] for _, b in pairs],
                "nemenyi": [self.nemenyi[pair] for pair in pairs],
                "wilcoxon": [self.wilcoxon[pair] for pair in pairs],
                "wilcoxon_adjusted": [self.wilcoxon_adjusted[pair] for pair in pairs],
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``ferrank compare --json`` prints; NaN and infinity are None."""

        def plain(value: Any) -> Any:
            if isinstance(value, np.ndarray | tuple | list):
                return [plain(one) for one in value]
            return None if isinstance(value, float) and not np.isfinite(value) else value

        return {name: plain(value) for name, value in vars(self).items()}

    def plot(self, path: Any = None) -> "Figure":
        """Draw critical differences: bars join methods that do not differ by Nemenyi's test."""
        from ferrank.evaluate.plots import plot_comparison

        return plot_comparison(self, path)

    def to_text(self) -> str:
        """Return the mean ranks and the tests as text."""
        better = "lower" if self.lower_is_better else "higher"
        width = max(map(len, self.methods))
        lines = [f"{len(self.methods)} methods on {self.n_data_sets} data sets, {better} is better", ""]
        head = f"{'method':{width}}  mean rank"
        lines.append(
            head if self.bonferroni_dunn is None else f"{head}  p against {self.control} (Bonferroni-Dunn)"
        )
        for number, method in enumerate(self.methods):
            line = f"{method:{width}}  {self.mean_rank[number]:9.3f}"
            if self.bonferroni_dunn is not None and method != self.control:
                line += f"  {self.bonferroni_dunn[number]:.4g}"
            lines.append(line)
        lines.append("")
        if not np.isnan(self.friedman[1]):
            lines.append(f"Friedman: χ² = {self.friedman[0]:.4g}, p = {self.friedman[1]:.4g}")
            lines.append(
                f"Iman and Davenport: F = {self.iman_davenport[0]:.4g}, p = {self.iman_davenport[1]:.4g}"
            )
        lines.append(f"critical difference at {self.alpha:g}: {self.critical_difference:.4g} (Nemenyi)")
        if self.control_difference is not None:
            lines[-1] += f", {self.control_difference:.4g} to {self.control} (Bonferroni-Dunn)"
        shown = self.methods[:_MOST_IN_PAIRS]
        names = [f"{a} – {b}" for a, b in combinations(shown, 2)]
        wide = max(map(len, names))
        lines += ["", f"{'p-values':{wide}}   Nemenyi  Wilcoxon  adjusted (Benjamini-Hochberg)"]
        if len(shown) < len(self.methods):
            lines.append(f"of the {len(shown)} methods with the best mean ranks:")
        for name, pair in zip(names, combinations(range(len(shown)), 2), strict=True):
            lines.append(
                f"{name:{wide}}  {self.nemenyi[pair]:8.4f}  {self.wilcoxon[pair]:8.4f}  "
                f"{self.wilcoxon_adjusted[pair]:8.4f}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return self.to_text()


def compare(
    results: str | os.PathLike[str] | Mapping[str, Any] | Any,
    *,
    lower_is_better: bool = False,
    control: str | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Compare methods by their results on several data sets.

    Parameters
    ----------
    results : path, frame or mapping of columns
        A row for each data set and a column for each method; columns of texts name the data sets. A path is
        that of a CSV or Parquet file.
    lower_is_better : bool, default=False
        Whether the results are errors.
    control : str, optional
        A method that the others are compared with.
    alpha : float, default=0.05
        Level of significance.

    Returns
    -------
    Comparison

    Raises
    ------
    DataError, SettingError
        Fewer than 2 methods or data sets, a missing result, no such method.

    Examples
    --------
    >>> found = compare({"a": [0.9, 0.8, 0.7, 0.9], "b": [0.8, 0.7, 0.6, 0.7], "c": [0.5, 0.6, 0.5, 0.4]})
    >>> found.methods, found.mean_rank.tolist(), round(found.friedman[1], 4)
    (['a', 'b', 'c'], [1.0, 2.0, 3.0], 0.0183)
    """
    alpha = number_of(alpha, "alpha", "(0, 1)", lambda value: 0 < value < 1)
    lower_is_better = flag_of(lower_is_better, "lower_is_better")
    names, values = _results(results)
    values = significant(values)
    if control is not None and not (isinstance(control, str) and control in names):
        raise SettingError(f"control: no method {control!r}; there are {', '.join(names)}")
    ranked = stats.rankdata(values if lower_is_better else -values, axis=1)
    order = np.argsort(ranked.mean(axis=0), kind="stable")
    names, values, ranked = [names[number] for number in order], values[:, order], ranked[:, order]
    n, k = values.shape
    mean_rank = ranked.mean(axis=0)
    error = np.sqrt(k * (k + 1) / (6 * n))
    wilcoxon, adjusted = _wilcoxon(values)
    dunn = difference = None
    if control is not None:
        z = np.abs(mean_rank - mean_rank[names.index(control)]) / error
        dunn = np.minimum(2 * stats.norm.sf(z) * (k - 1), 1.0)
        difference = float(stats.norm.isf(alpha / (2 * (k - 1))) * error)
    return Comparison(
        names,
        n,
        lower_is_better,
        alpha,
        mean_rank,
        *_friedman(values),
        _nemenyi(values),
        float(stats.studentized_range.isf(alpha, k, np.inf) / np.sqrt(2) * error),
        wilcoxon,
        adjusted,
        control,
        dunn,
        difference,
    )


def _results(results: Any) -> tuple[list[str], Array]:
    from ferrank.evaluate.rows import read_table

    where, table = read_table(results, "results")
    methods = {name: column for name, column in table.items() if column.dtype.kind == "f"}
    if len(methods) < 2:
        raise DataError(f"{where}: {len(methods)} columns of numbers; at least 2 methods are compared")
    values = np.column_stack(list(methods.values()))
    if len(values) < 2:
        raise DataError(f"{where}: {len(values)} rows; methods are compared on at least 2 data sets")
    missing = np.argwhere(~np.isfinite(values))
    if len(missing):
        row, column = missing[0]
        raise DataError(
            f"{where}: '{list(methods)[column]}' has no result in row {row + 1}; "
            "leave out the data set or the method"
        )
    return list(methods), values


def significant(values: Array) -> Array:
    """Return the values rounded to 12 significant digits, so that rounding errors do not break ties."""
    return np.array([float(f"{value:.12g}") for value in values.ravel()]).reshape(values.shape)


def _friedman(values: Array) -> tuple[tuple[float, float], tuple[float, float]]:
    n, k = values.shape
    nothing = (float("nan"), float("nan"))
    if k < 3:
        return nothing, nothing
    if (values == values[:, :1]).all():
        return (0.0, 1.0), (0.0, 1.0)
    found = stats.friedmanchisquare(*values.T)
    chi = float(found.statistic)
    rest = n * (k - 1) - chi
    f = (n - 1) * chi / rest if rest > 0 else float("inf")
    return (chi, float(found.pvalue)), (f, float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))))


def _nemenyi(values: Array) -> Array:
    posthocs = need("scikit_posthocs", "comparisons")
    return np.asarray(posthocs.posthoc_nemenyi_friedman(values), dtype=np.float64)


def _wilcoxon(values: Array) -> tuple[Array, Array]:
    k = values.shape[1]
    pairs = list(combinations(range(k), 2))
    found = [_signed_ranks(values[:, a] - values[:, b]) for a, b in pairs]

    def square(p: Any) -> Array:
        matrix = np.ones((k, k))
        for (a, b), value in zip(pairs, p, strict=True):
            matrix[a, b] = matrix[b, a] = value
        return matrix

    return square(found), square(stats.false_discovery_control(found))


#: SciPy counts all signs where differences are this few and some are equal or 0, one by one in Python.
_FEW = 13


def _signed_ranks(differences: Array) -> float:
    """Return the p-value of Wilcoxon's signed-rank test, two-sided, that of :func:`scipy.stats.wilcoxon`."""
    known = differences[differences != 0]
    if len(known) == 0:
        return 1.0
    if len(differences) > _FEW:
        return float(stats.wilcoxon(differences).pvalue)
    ranks = stats.rankdata(np.abs(known))
    sums = _all_signs(len(known)) @ ranks
    own = ranks[known > 0].sum()
    return float(min(1.0, 2 * min(np.mean(sums >= own), np.mean(sums <= own))))


@cache
def _all_signs(n: int) -> Array:
    """Return which of ``n`` differences are positive, in all 2ⁿ ways."""
    return np.array(list(product((0.0, 1.0), repeat=n)))
