"""Sizes of memory as people write them."""

import numbers
import re
from typing import Any

from ferrank.errors import SettingError

__all__ = ["bytes_of"]

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
            return int(float(found[1]) * _UNITS[found[2]])
    elif isinstance(limit, numbers.Integral) and not isinstance(limit, bool) and int(limit) > 0:
        return int(limit)
    raise SettingError(f"memory_limit: {limit!r} is not a size such as '2GiB', '500MB' or a number of bytes")
