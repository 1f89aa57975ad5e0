"""Findings, and how they are shown."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from ferrank.escape import visible

__all__ = ["Check", "Finding", "named"]

_NAMED = 5
_SHOWN = 10
"""Findings of one kind that are printed."""


@dataclass(frozen=True)
class Finding:
    """One thing that may spoil a ranking."""

    kind: str
    """such as "identifier"; see :func:`ferrank.check`"""
    columns: list[str]
    """the columns concerned; none where it is about rows"""
    found: str
    """what was found"""
    advice: str
    """what would do"""

    def __str__(self) -> str:
        return f"{self.kind}: {f'{named(self.columns)}: ' if self.columns else ''}{self.found}; {self.advice}"


@dataclass(frozen=True)
class Check:
    """What :func:`ferrank.check` found; a sequence of findings.

    Parameters
    ----------
    n_rows : int
        Rows of the data set.
    n_sampled : int
        Rows that were looked at.
    n_columns : int
        Columns that were looked at.
    findings : list of Finding
        What was found, in the order of the columns and then of the targets.

    Examples
    --------
    >>> check = Check(1000, 1000, 3, [Finding("constant", ["b"], "one value", "drop it")])
    >>> print(check)
    1,000 rows, 3 columns: 1 finding
    <BLANKLINE>
    constant: column 'b': one value; drop it
    >>> len(check), [finding.kind for finding in check]
    (1, ['constant'])
    """

    n_rows: int
    n_sampled: int
    n_columns: int
    findings: list[Finding]

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def __getitem__(self, number: int) -> Finding:
        return self.findings[number]

    def of(self, kind: str) -> list[Finding]:
        """Return the findings of one kind."""
        return [finding for finding in self.findings if finding.kind == kind]

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``ferrank check --json`` prints."""
        return asdict(self)

    def __str__(self) -> str:
        counted = f"{len(self)} finding{'s' if len(self) != 1 else ''}" if self.findings else "nothing found"
        sampled = "" if self.n_sampled == self.n_rows else f" (a sample of {self.n_sampled:,})"
        head = f"{self.n_rows:,} rows{sampled}, {self.n_columns:,} columns: {counted}"
        lines: list[str] = []
        for kind in dict.fromkeys(finding.kind for finding in self.findings):
            of_kind = self.of(kind)
            lines += map(str, of_kind[:_SHOWN])
            if len(of_kind) > _SHOWN:
                lines.append(f"{kind}: and {len(of_kind) - _SHOWN:,} more")
        return "\n".join([head, *([""] if lines else []), *lines])

    __repr__ = __str__


def named(columns: list[str]) -> str:
    """Return the names of columns as a message has them.

    >>> named(["a"]), named(["a", "b"])
    ("column 'a'", "columns 'a' and 'b'")
    """
    shown = [f"'{visible(name)}'" for name in columns[:_NAMED]]
    if len(columns) == 1:
        return f"column {shown[0]}"
    if len(columns) > _NAMED:
        return f"columns {', '.join(shown)} and {len(columns) - _NAMED:,} more"
    return f"columns {', '.join(shown[:-1])} and {shown[-1]}"
