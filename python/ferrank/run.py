"""Waiting for work that runs on a thread of the engine."""

import warnings
from typing import Any

from ferrank import logs
from ferrank._core import Run
from ferrank.errors import ResumeWarning
from ferrank.progress import Progress

__all__ = ["finish"]

_POLL_SECONDS = 0.1
_GRACE_SECONDS = 1.0


def finish(run: Run, progress: Progress | None = None, *, early: bool = False) -> Any:
    """Wait for ``run`` and return its outcome.

    Python's main thread wakes ten times a second, so Ctrl-C is answered and ``progress`` is called.
    The engine's events go to its loggers.
    Whatever is raised meanwhile stops the run, but for the first Ctrl-C where ``early`` says that the run can
    end with the answer it has.
    """
    try:
        try:
            _watch(run, progress)
        except KeyboardInterrupt:
            if not early:
                raise
            run.finish()
            _watch(run, progress)
        if progress is not None:
            progress(*run.progress())
    except BaseException:
        run.abort()
        run.wait(_GRACE_SECONDS)
        raise
    finally:
        logs.emit()
    for note in run.notes():
        warnings.warn(note, ResumeWarning, stacklevel=3)
    return run.result()


def _watch(run: Run, progress: Progress | None) -> None:
    while not run.wait(_POLL_SECONDS):
        logs.emit()
        if progress is not None:
            progress(*run.progress())
