"""How far a run is, as a line on stderr or as a bar in a notebook."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ferrank.errors import SettingError

__all__ = ["Progress", "ProgressLine", "check_function", "drawn", "shown"]

Progress = Callable[[str, int, int], None]
"""Called as ``progress(phase, done, total)``; rows or trees, of a dask collection tasks; ``total`` is 0 where
unknown."""

_UNITS = {"growing": "trees", "drawing curves": "splits", "tuning": "rankings", "studying": "cells"}
_CLEAR = "\r\x1b[K"


@contextmanager
def drawn() -> Iterator[Progress]:
    """Give a function that draws a line on stderr, which is wiped at the end; in a notebook a bar of tqdm."""
    bar = _Bar.in_notebook()
    if bar is not None:
        try:
            yield bar
        finally:
            bar.close()
        return
    try:
        yield ProgressLine()
    finally:
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()


def check_function(progress: Any) -> None:
    """Check that ``progress`` can be called.

    Raises
    ------
    SettingError
        It is neither a function nor None.
    """
    if progress is not None and not callable(progress):
        raise SettingError(
            f"progress: {progress!r} is no function; use one of phase, done and total, or None"
        )


@contextmanager
def shown(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Give ``progress`` if it is a function; True stands for one that draws, False for None.

    Raises
    ------
    SettingError
        It is something else.
    """
    if progress is True:
        with drawn() as line:
            yield line
        return
    if progress is False:
        progress = None
    check_function(progress)
    yield progress


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


class _Bar:
    """A bar of tqdm for the present phase."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm, self._phase, self._bar = tqdm, "", None

    @classmethod
    def in_notebook(cls) -> "_Bar | None":
        if "ipykernel" not in sys.modules:
            return None
        try:
            from tqdm.auto import tqdm  # type: ignore[import-untyped]
        except ImportError:
            return None
        return cls(tqdm)

    def __call__(self, phase: str, done: int, total: int) -> None:
        if phase != self._phase:
            self.close()
            self._phase = phase
            self._bar = self._tqdm(desc=phase, total=total or None, unit=_UNITS.get(phase, "rows"))
        bar: Any = self._bar
        bar.total = total or None
        bar.update(done - bar.n)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.close()


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
