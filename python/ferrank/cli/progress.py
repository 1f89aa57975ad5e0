"""One line on stderr that says how far a run is; only on a terminal."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from ferrank.run import Progress

__all__ = ["ProgressLine", "message", "progress_line"]

_UNITS = {"growing": "trees", "drawing curves": "splits", "tuning": "rankings"}
_CLEAR = "\r\x1b[K"


def message(text: str) -> None:
    """Say ``text`` on stderr."""
    print(f"ferrank: {text}", file=sys.stderr)


@contextmanager
def progress_line() -> Iterator[Progress | None]:
    """Give a function that draws the line, or None where stderr is no terminal; wipe it at the end."""
    if not sys.stderr.isatty():
        yield None
        return
    try:
        yield ProgressLine()
    finally:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()


class ProgressLine:
    """Phase, share, rate and time left, with the time of the phase as the base."""

    def __init__(self) -> None:
        self._phase = ""
        self._since = 0.0

    def __call__(self, phase: str, done: int, total: int) -> None:
        """Draw the line anew."""
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._since = phase, now
        sys.stderr.write(_CLEAR + line(phase, done, total, now - self._since))
        sys.stderr.flush()


def line(phase: str, done: int, total: int, seconds: float) -> str:
    """Return the text of the line.

    >>> line("growing", 25, 100, 10.0)
    'growing  25 of 100 trees (25 %)  2.5 trees/s  30 s left'
    >>> line("profiling", 0, 0, 0.0)
    'profiling  0 rows'
    """
    unit = _UNITS.get(phase, "rows")
    parts = [
        phase,
        f"{done:,} of {total:,} {unit} ({100 * done // total} %)" if total else f"{done:,} {unit}",
    ]
    if done and seconds > 0:
        rate = done / seconds
        parts.append(f"{rate:,.1f} {unit}/s" if rate < 100 else f"{rate:,.0f} {unit}/s")
        if total:
            parts.append(f"{_span((total - done) / rate)} left")
    return "  ".join(parts)


def _span(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
