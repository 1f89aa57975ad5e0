"""Sizes of memory and numbers of threads as people write them."""

import numbers
import re
import sys
from typing import Any

from ferrank import _core
from ferrank.errors import SettingError

__all__ = ["bytes_of", "check_processes", "threads_of"]

_MOST_THREADS = 1_024
_MOST_BYTES = (1 << 63) - 1
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12} | {
    f"{unit}i": 1 << (10 * power) for power, unit in enumerate("kmgt", start=1)
}


def bytes_of(limit: Any) -> int | None:
    """Return the number of bytes that ``limit`` stands for; None stays None.

    >>> bytes_of("1.5GiB"), bytes_of("500 MB"), bytes_of(4096)
    (1610612736, 500000000, 4096)
    """
    if limit is None:
        return None
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?)b?\s*", limit.lower())
        if found is not None and found[2] in _UNITS and float(found[1]) > 0:
            return min(int(float(found[1]) * _UNITS[found[2]]), _MOST_BYTES)
    elif isinstance(limit, numbers.Integral) and not isinstance(limit, bool) and int(limit) > 0:
        return min(int(limit), _MOST_BYTES)
    raise SettingError(f"memory_limit: {limit!r} is not a size such as '2GiB', '500MB' or a number of bytes")


def check_processes(n_jobs: Any, setting: str = "n_jobs") -> None:
    """Raise an error that names the ``setting`` if ``n_jobs`` is no number of processes.

    >>> check_processes(0)
    Traceback (most recent call last):
    ferrank.errors.SettingError: n_jobs: 0 is not a number of processes; use 1 or more, -1 for all cores
    """
    if n_jobs is not None and (not isinstance(n_jobs, numbers.Integral) or n_jobs == 0):
        raise SettingError(
            f"{setting}: {n_jobs!r} is not a number of processes; use 1 or more, -1 for all cores"
        )


def threads_of(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``.

    An integer is read as by joblib: -1 is all cores. None is all cores too, since the answer has the same
    bits for any number, but one thread within a joblib worker, where each core has its own work.
    """
    if n_jobs is None:
        # Nobody is within a worker of joblib who has not imported it.
        joblib = sys.modules.get("joblib.parallel")
        return 1 if joblib is not None and joblib.get_active_backend()[0].nesting_level else _core.cores()
    if not isinstance(n_jobs, numbers.Integral) or n_jobs == 0:
        raise SettingError(
            f"n_jobs: {n_jobs!r} is not a number of threads; use 1 or more, -1 or None for all"
        )
    if n_jobs > _MOST_THREADS:
        raise SettingError(
            f"n_jobs: {n_jobs} threads; use at most {_MOST_THREADS:,}, or -1 for one on each core"
        )
    return int(n_jobs) if n_jobs > 0 else max(1, _core.cores() + 1 + int(n_jobs))
