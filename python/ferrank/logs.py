"""The engine's events in Python's :mod:`logging`.

The logger ``ferrank`` has a child for each part of the engine: ``ferrank.run`` (phases), ``ferrank.data``,
``ferrank.ranking``, ``ferrank.forest``, ``ferrank.relief`` and ``ferrank.runtime``.
"""

import logging

from ferrank import _core
from ferrank.escape import visible

__all__ = ["emit", "level"]

_OFF = 255
_PARTS = ("run", "data", "ranking", "forest", "relief", "association", "runtime")

logging.getLogger("ferrank").addHandler(logging.NullHandler())


def level() -> int:
    """Return the lowest level that one of the loggers wants; the engine asks at the start of a run."""
    loggers = [logging.getLogger(f"ferrank.{part}") for part in _PARTS]
    levels = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)
    return next((level for level in levels if any(logger.isEnabledFor(level) for logger in loggers)), _OFF)


def emit() -> None:
    """Hand the engine's events since the last call to the loggers."""
    for number, name, message, seconds in _core.take_events():
        logger = logging.getLogger(name)
        if logger.isEnabledFor(number):
            record = logger.makeRecord(name, number, "ferrank", 0, visible(message), (), None)
            record.created, record.msecs = seconds, seconds % 1 * 1000
            logger.handle(record)
