"""How well the model behind a ranking predicts, beside guessing."""

from dataclasses import dataclass

__all__ = ["ModelError"]

_SURE = 1.645
"""Standard errors by which the error must be below that of guessing; by chance that happens in 5 %."""


@dataclass(frozen=True)
class ModelError:
    """The error of a model for a target on rows that it has not seen, and that of guessing.

    Examples
    --------
    >>> error = ModelError("error rate", 0.05, 0.6, 0.04, 150)
    >>> error.is_better
    True
    >>> print(error)
    out-of-bag error: 0.05, guessing 0.6 (error rate)
    >>> print(ModelError("relative squared error", 0.21, 1.0, 0.05, 150))
    out-of-bag error: 0.21 of guessing (relative squared error)
    """

    measure: str
    """``relative squared error`` of a numeric target (1 − R²), ``error rate`` of classes, ``Hamming loss`` of
    label sets"""
    error: float
    """Of the model"""
    guess: float
    """Of a constant prediction: the mean, the most frequent class, the labels that more than half of the rows
    have"""
    standard_error: float
    """Of the difference between the two"""
    n_rows: int
    """Rows that both are computed from"""

    @property
    def is_better(self) -> bool:
        """Whether the model is surely better than guessing."""
        return self.guess - self.error > _SURE * self.standard_error

    def __str__(self) -> str:
        of_guessing = " of guessing" if self.guess == 1 else f", guessing {self.guess:.2g}"
        return f"out-of-bag error: {self.error:.2g}{of_guessing} ({self.measure})"
