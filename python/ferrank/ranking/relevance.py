"""Which features are relevant: evidence, p-values, q-values and verdicts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

import numpy as np

from ferrank import _core
from ferrank.errors import SettingError
from ferrank.ranking.scores import Floats

__all__ = ["EVIDENCE", "EVIDENCE_DEFINITION", "FDR", "Dependence", "Relevance", "check_fdr"]

Dependence = Literal["positive", "any"]
"""What is known about the dependence of p-values: "positive" (or none), or "any"."""

FDR = 0.1
"""The false discovery rate of verdicts, where none is given."""

EVIDENCE = "evidence"
"""The name of the score of joint rankings."""
EVIDENCE_DEFINITION = (
    "minus log10 of the harmonic mean of the p-values by forest, Relief and tests of single features"
)


@dataclass(frozen=True, eq=False)
class Relevance:
    """What importances say about the relevance of each feature. Arrays are in feature order.

    Examples
    --------
    >>> relevance = Relevance(np.array([6.0, 0.4, 1.5]), np.array([9.0, 0.7, 3.0]), fdr=0.01)
    >>> relevance.p_value.round(6).tolist(), relevance.q_value.round(6).tolist()
    ([1e-06, 0.398107, 0.031623], [3e-06, 0.398107, 0.047434])
    >>> relevance.verdict.tolist(), relevance.verdicts(fdr=0.1).tolist()
    (['relevant', 'irrelevant', 'undecided'], ['relevant', 'irrelevant', 'relevant'])
    """

    evidence: Floats
    """(n_features,); minus the decimal logarithm of :attr:`p_value`, of joint rankings not their score"""
    most_evidence: Floats
    """(n_features,); the evidence if the importance were two Monte Carlo errors greater"""
    fdr: float = FDR
    """the false discovery rate of :attr:`verdict`"""

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Return what p-values of the same features, however dependent, say together (Liu and Xie 2020)."""
        joined = _core.join_evidence([[part.evidence, part.most_evidence] for part in parts])
        if joined is None:
            raise SettingError("relevance: there is nothing to join; give at least one")
        evidence, most_evidence = joined
        return cls(evidence, most_evidence, parts[0].fdr)

    @property
    def p_value(self) -> Floats:
        """(n_features,); the chance that an irrelevant feature with such values is as important."""
        return np.power(10.0, -self.evidence)

    @property
    def q_value(self) -> Floats:
        """(n_features,); the least false discovery rate at which the feature is relevant."""
        return self.q_values()

    @property
    def verdict(self) -> Any:
        """(n_features,); "relevant", "irrelevant" or "undecided" at the rate :attr:`fdr`."""
        return self.verdicts(self.fdr)

    def q_values(self, dependence: Dependence = "positive") -> Floats:
        """Return the least false discovery rate at which each feature is relevant, of shape (n_features,).

        Parameters
        ----------
        dependence : {"positive", "any"}, default="positive"
            Whether p-values depend on each other positively at most (Benjamini and Hochberg 1995), or in any
            way (Benjamini and Yekutieli 2001).

        Raises
        ------
        SettingError
            Another value of ``dependence``.
        """
        return _core.q_values(self.evidence, _check_dependence(dependence))

    def verdicts(self, fdr: float = FDR, dependence: Dependence = "positive") -> Any:
        """Return "relevant", "irrelevant" or "undecided" for each feature, of shape (n_features,).

        A feature is relevant if its q-value is at most ``fdr``, so that among features called relevant at
        most this share is expected to be irrelevant. A feature is undecided if its q-value is greater, but
        more trees could bring it there.

        Parameters
        ----------
        fdr : float, default=0.1
            The false discovery rate, above 0 and below 1.
        dependence : {"positive", "any"}, default="positive"
            As in :meth:`q_values`.

        Raises
        ------
        SettingError
            ``fdr`` or ``dependence`` is not valid.
        """
        any_dependence = _check_dependence(dependence)
        names = _core.verdicts(self.evidence, self.most_evidence, check_fdr(fdr), any_dependence)
        return np.array(names, dtype=np.str_)


def check_fdr(fdr: Any) -> float:
    """Return ``fdr`` as a number, or raise an error if it is no rate."""
    if isinstance(fdr, bool) or not isinstance(fdr, int | float | np.number) or not 0 < fdr < 1:
        raise SettingError(f"fdr: {fdr!r} is not a number above 0 and below 1; use 0.1, for example")
    return float(fdr)


def _check_dependence(dependence: str) -> bool:
    """Return True for "any"."""
    if dependence not in get_args(Dependence):
        raise SettingError(f"dependence: {dependence!r} is not one of {', '.join(get_args(Dependence))}")
    return dependence == "any"
