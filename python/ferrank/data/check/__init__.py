"""What spoils a ranking: identifiers, leaks, copies, numbers in strings and the like.

:mod:`.sample` draws rows and reads their columns, :mod:`.columns` looks at columns one by one,
:mod:`.together` at columns beside each other and beside the targets, :mod:`.report` is what comes out.
"""

from ferrank.data.check.check import check, worst
from ferrank.data.check.report import Check, Finding

__all__ = ["Check", "Finding", "check", "worst"]
