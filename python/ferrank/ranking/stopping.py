"""Why a run with ``until="stable"`` ended, and what going on would take."""

from dataclasses import dataclass

__all__ = ["Stop"]

_OPENING = {"settled": "settled", "exhausted": "not settled", "asked": "ended when asked"}


@dataclass(frozen=True)
class Stop:
    """The end of a run that went on until the best features stood clear of all others.

    Examples
    --------
    >>> print(Stop("settled", 0.95, 2, 2, 32, 1000, 32000, 10**7, 20))
    settled: 2 of the 2 best features stand clear of the others at 95 % confidence;
    32 trees, bags of 1,000 rows, drawn from 32,000 of 10,000,000
    >>> print(Stop("exhausted", 0.9, 10, 7, 500, None, 500, 500, 900))
    not settled: 7 of the 10 best features stand clear of the others at 90 % confidence;
    500 queries among 500 rows; about 900 would do, if importances stay as they are
    """

    reason: str
    """``settled``, ``exhausted`` (all that the settings allow was not enough) or ``asked`` (Ctrl-C)"""
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
    """Trees of such bags, or queries, that would do if importances stay so; None if some are equal"""

    def __str__(self) -> str:
        parts = [
            f"{_OPENING[self.reason]}: {self.clear:,} of the {self.top:,} best features stand clear of the "
            f"others at {100 * self.confidence:g} % confidence",
            f"{self.effort:,} queries among {self.of:,} rows"
            if self.bag is None
            else f"{self.effort:,} trees, bags of {self.bag:,} rows, "
            f"drawn from {self.sampled:,} of {self.of:,}",
        ]
        if self.reason != "settled":
            parts.append(
                "some of them are equal so far"
                if self.needed is None
                else f"about {self.needed:,} would do, if importances stay as they are"
            )
        return "; ".join(parts)
