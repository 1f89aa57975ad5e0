"""Why a run with ``until="stable"`` ended, and what going on would take."""

from dataclasses import dataclass

__all__ = ["REASONS", "Stop"]

_OPENING = {
    "settled": "settled",
    "exhausted": "not settled",
    "chance": "no feature is better than chance",
    "asked": "ended when asked",
}
REASONS = tuple(_OPENING)
"""Why a run may end."""


@dataclass(frozen=True)
class Stop:
    """The end of a run that went on until the best features stood clear of all others.

    Examples
    --------
    >>> print(Stop("settled", 0.95, 2, 2, 32, 1000, 32000, 10**7, 20))
    settled: 2 of the 2 best features stand clear of the others at 95 % confidence;
    32 trees, bags of 1,000 rows, drawn from 32,000 of 10,000,000
    >>> print(Stop("exhausted", 0.9, 10, 7, 100, 500, 500, 500, 900))
    not settled: 7 of the 10 best features stand clear of the others at 90 % confidence;
    100 trees, bags of 500 rows, drawn from 500 of 500; about 900 would do, if importances stay as they are
    >>> print(Stop("exhausted", 0.9, 10, 7, 500, None, 500, 500, None))
    not settled: 7 of the 10 best features stand clear of the others at 90 % confidence;
    500 queries among 500 rows; more queries would not tell them apart, more rows may
    >>> print(Stop("chance", 0.95, 10, 0, 100, 500, 500, 500, None))
    no feature is better than chance, as far as this forest tells;
    100 trees, bags of 500 rows, drawn from 500 of 500
    """

    reason: str
    """Why the run ended

    ``settled``; ``exhausted``, all that the settings allow was not enough; ``chance``, the same, and the
    forest predicts no better than a constant or, with scores whose mean is 0 by chance (``mdi_oob``,
    ``permutation``, Relief), no importance is surely above 0; ``asked``, Ctrl-C
    """
    confidence: float
    """At which it was judged"""
    top: int
    """Best features that were to stand clear of the others"""
    clear: int
    """How many of them do"""
    effort: int
    """Trees of each ensemble, or queries"""
    bag: int | None
    """Rows of a tree's bag; None for Relief"""
    sampled: int
    """Rows drawn from, of those that take part; for Relief all"""
    of: int
    """Rows of the data"""
    needed: int | None
    """Trees, or queries, that would do if importances stay so; None if hardly any number would, or if bags
    were still to grow"""

    def __str__(self) -> str:
        opening, n_rows = _OPENING[self.reason], f"{self.of:,}"
        if self.reason != "chance":
            opening += (
                f": {self.clear:,} of the {self.top:,} best features stand clear of the others at "
                f"{100 * self.confidence:g} % confidence"
            )
        else:
            opening += (
                ", as far as these queries tell" if self.bag is None else ", as far as this forest tells"
            )
        effort, what = (
            (f"{self.effort:,} queries among {n_rows} rows", "queries")
            if self.bag is None
            else (
                f"{self.effort:,} trees, bags of {self.bag:,} rows, drawn from {self.sampled:,} of {n_rows}",
                "trees",
            )
        )
        parts = [opening, effort]
        if self.reason in ("exhausted", "asked") and self.needed is not None:
            parts.append(f"about {self.needed:,} would do, if importances stay as they are")
        elif self.reason == "exhausted":
            parts.append(f"more {what} would not tell them apart, more rows may")
        return "; ".join(parts)
