"""Which features are relevant: p-values, q-values and verdicts."""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from ferrank import _core
from ferrank.errors import SettingError
from ferrank.ranking.scores import Floats

__all__ = ["Dependence", "Relevance"]

Dependence = Literal["positive", "any"]
"""What is known about the dependence of p-values: "positive" (or none), or "any"."""


@dataclass(frozen=True, eq=False)
class Relevance:
    """What importances say about the relevance of each feature. Arrays are in feature order.

    Examples
    --------
    >>> relevance = Relevance(np.array([1e-6, 0.4, 0.03]), np.array([1e-9, 0.2, 0.001]))
    >>> relevance.q_values().round(6).tolist()
    [3e-06, 0.4, 0.045]
    >>> relevance.verdicts(fdr=0.01).tolist()
    ['relevant', 'irrelevant', 'undecided']
    """

    p_value: Floats
    """(n_features,); the chance that an irrelevant feature with such values is as important"""
    least_p_value: Floats
    """(n_features,); the p-value if the importance were two Monte Carlo errors greater"""

    def q_values(self, dependence: Dependence = "positive") -> Floats:
        """Return the least false discovery rate at which each feature is relevant, of shape (n_features,).

        Parameters
        ----------
        dependence : {"positive", "any"}, default="positive"
            Whether p-values depend on each other positively at most (Benjamini and Hochberg 1995), or in any way
            (Benjamini and Yekutieli 2001).

        Raises
        ------
        SettingError
            Another value of ``dependence``.
        """
        return _core.q_values(self.p_value, _check_dependence(dependence))

    def verdicts(self, fdr: float = 0.1, dependence: Dependence = "positive") -> Any:
        """Return "relevant", "irrelevant" or "undecided" for each feature, of shape (n_features,).

        A feature is relevant if its q-value is at most ``fdr``, so that among features called relevant at most
        this share is expected to be irrelevant. A feature is undecided if its q-value is greater, but more trees
        could bring it there.

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
        if not 0 < fdr < 1:
            raise SettingError(f"fdr: {fdr} is not above 0 and below 1")
        names = _core.verdicts(self.p_value, self.least_p_value, fdr, _check_dependence(dependence))
        return np.array(names, dtype=np.str_)


def _check_dependence(dependence: str) -> bool:
    """Return True for "any"."""
    if dependence not in get_args(Dependence):
        raise SettingError(f"dependence: '{dependence}' is not one of {', '.join(get_args(Dependence))}")
    return dependence == "any"
