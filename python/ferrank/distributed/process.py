"""What a worker's process holds for a ranking, and whose turn it is to work."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank.run import finish

__all__ = [
    "Asked",
    "Floats",
    "StoppedError",
    "coder_of",
    "finish_of",
    "hold",
    "know",
    "release",
    "source_of",
    "to_bytes",
    "turn_of",
]

Asked = tuple[pa.Schema, dict[str, Any], dict[str, Any]]
"""The columns of all partitions, their roles, and the settings of the ranker."""

Floats = np.ndarray[Any, np.dtype[np.float64]]

# One data set is held, and one task at a time works on it, with all threads of the worker.
_turn = threading.Lock()
_held: dict[str, Any] = {}
# What tasks beside each other share, by the token of the run and by name.
_known: dict[str, dict[str, Any]] = {}
_known_lock = threading.Lock()
# Tokens of the runs that were given up.
_stopped: set[str] = set()


class StoppedError(Exception):
    """The run was given up."""


@contextmanager
def turn_of(token: str) -> Iterator[None]:
    """Give the process to one task at a time."""
    with _turn:
        try:
            _check(token)
            yield
        finally:
            if token in _stopped:
                _let_go(token)


def hold(name: str, make: Callable[[], Any]) -> Any:
    """Return the data set that tasks work on in turn, made once in a process."""
    if name not in _held:
        _held.clear()
        _held[name] = make()
    return _held[name]


def know(token: str, what: str, make: Callable[[], Any]) -> Any:
    """Return what tasks of the run share that work beside each other, made once in a process."""
    with _known_lock:
        _check(token)
        if token not in _known:
            _known.clear()
        known = _known.setdefault(token, {})
        if what not in known:
            known[what] = make()
        return known[what]


def coder_of(token: str, asked: Asked, whole: bytes, alone: int | None = None) -> _core.Coder:
    """Return what codes partitions by the profile of all rows, or of those that have the target ``alone``."""
    schema, roles, settings = asked
    source = source_of(schema.empty_table(), "the data set")
    coder: _core.Coder = know(
        token, f"codes {alone}", lambda: _core.Coder.of(source, roles, settings, whole, alone)
    )
    return coder


def finish_of(run: _core.Run, token: str) -> Any:
    """Return the outcome of ``run``, which ends early if the run of ``token`` is given up."""
    return finish(run, lambda *_: _check(token))


def source_of(table: pa.Table, name: str) -> _core.Source:
    """Return ``table`` as the engine reads it, called ``name`` in messages."""
    return _core.Source.table(table, name)


def to_bytes(accumulator: _core.Accumulator) -> bytes:
    """Return contributions in the form that moves."""
    return accumulator.to_bytes()


def release(token: str, stop: bool) -> None:
    """Let go of what is held for a run, and with ``stop`` end what is at work for it."""
    if stop:
        _stopped.add(token)
    _known.pop(token, None)
    # While a task is at work, what is held is another run's, or let go of by that task.
    if _turn.acquire(blocking=False):
        _let_go(token)
        _turn.release()


def _check(token: str) -> None:
    if token in _stopped:
        raise StoppedError


def _let_go(token: str) -> None:
    if any(held.startswith(token) for held in _held):
        _held.clear()
