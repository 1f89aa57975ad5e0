"""What the command line says on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ferrank.escape import visible
from ferrank.progress import Progress, drawn

__all__ = ["message", "progress_line"]


def message(*lines: str) -> None:
    """Say ``lines`` on stderr, one below the other."""
    print("ferrank: " + "\n".join(map(visible, lines)), file=sys.stderr)


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """Give a function that draws a line, or None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with drawn() as line:
        yield line
