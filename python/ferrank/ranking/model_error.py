"""How well the model behind a ranking predicts, beside guessing."""

from dataclasses import dataclass

__all__ = ["MEASURES", "ModelError"]

MEASURES = ("relative squared error", "error rate", "Hamming loss")
"""Of numeric targets (1 − R²), of classes, of label sets."""


@dataclass(frozen=True)
class ModelError:
    """The error of a model for a target on rows that it has not seen, and that of guessing.

    Examples
    --------
    >>> print(ModelError("error rate", 0.05, 0.6, 0.04, squared_error=0.12, is_better=True, n_rows=150))
    out-of-bag error: 0.05, guessing 0.6 (error rate); squared error of shares: 0.12 of guessing
    >>> print(ModelError("relative squared error", 0.21, 1.0, 0.05, 0.21, is_better=True, n_rows=150))
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
    squared_error: float
    """Squared error of the predicted mean, or of the predicted shares of classes or labels (Brier score),
    relative to that of a constant prediction. It is below 1 for a rare class that the model recognizes but
    never the most probable one."""
    is_better: bool
    """Whether the model is better than guessing at 95 % confidence, by either of the two errors"""
    n_rows: int
    """Rows that all of this is computed from"""

    def __str__(self) -> str:
        if self.measure == "relative squared error":
            return f"out-of-bag error: {self.error:.2g} of guessing ({self.measure})"
        return (
            f"out-of-bag error: {self.error:.2g}, guessing {self.guess:.2g} ({self.measure}); "
            f"squared error of shares: {self.squared_error:.2g} of guessing"
        )
