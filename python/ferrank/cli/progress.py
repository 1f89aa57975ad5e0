"""What the command line says on stderr."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from ferrank.progress import Progress, drawn

__all__ = ["message", "progress_line"]


def message(text: str) -> None:
    """Say ``text`` on stderr."""
    print(f"ferrank: {text}", file=sys.stderr)


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """Give a function that draws a line, or None where stderr is no terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    with drawn() as line:
        yield line
