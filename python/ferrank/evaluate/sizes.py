"""How many features the models of an error curve have."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from ferrank.data.parameters import count_of, whole_numbers
from ferrank.errors import SettingError

__all__ = ["SCHEDULES", "subset_sizes"]

Array = np.ndarray[Any, Any]
Schedule = Literal["paper", "linear", "quadratic", "exponential"]

SCHEDULES = ("paper", "linear", "quadratic", "exponential")
"""Names of the schedules."""
_STEPS = {"linear": 1, "quadratic": 1, "exponential": 2}


def subset_sizes(
    n_features: int, schedule: Schedule | Sequence[int] | Array | str = "paper", step: int | None = None
) -> Array:
    """Return the sizes of the subsets, ascending, from 1 to all features.

    Parameters
    ----------
    n_features : int
        Number of all features, the largest size.
    schedule : {"paper", "linear", "quadratic", "exponential"} or sequence of int, default="paper"
        "paper" is δ of Slavkov et al. 2020: size i is followed by i + 1 up to 50, i + 5 up to 500, then by i
        + n // 20. The others are those of its authors' program: 1 + k·step, 1 + step·k(k + 1)/2, and step**k.
        Sizes of one's own are taken as they are.
    step : int, optional
        Of the last three; by default 1, 1 and 2.

    Returns
    -------
    array of int

    Examples
    --------
    >>> subset_sizes(60).tolist()[-4:], subset_sizes(20, "quadratic").tolist()
    ([50, 51, 56, 60], [1, 2, 4, 7, 11, 16, 20])
    >>> subset_sizes(20, "linear", 6).tolist(), subset_sizes(20, "exponential").tolist()
    ([1, 7, 13, 19, 20], [1, 2, 4, 8, 16, 20])
    """
    n_features = count_of(n_features, "n_features", least=1)
    if not isinstance(schedule, str):
        own = np.unique(whole_numbers(schedule, "sizes"))
        if len(own) == 0 or own[0] < 1 or own[-1] > n_features:
            raise SettingError(f"sizes: must be some of 1 … {n_features}, the number of features")
        return own
    if schedule not in SCHEDULES:
        raise SettingError(f"sizes: unknown schedule '{schedule}'; use one of {', '.join(SCHEDULES)}")
    if schedule == "paper":
        if step is not None:
            raise SettingError(
                "step: the schedule of the paper has none; use linear, quadratic or exponential"
            )
    else:
        step = _STEPS[schedule] if step is None else count_of(step, "step")
        least = 2 if schedule == "exponential" else 1
        if step < least:
            raise SettingError(f"step: {step} is too small for {schedule}; use {least} or more")
    sizes, size = [], 1
    while size < n_features:
        sizes.append(size)
        size = _next(size, n_features, schedule, step or 1, len(sizes))
    return np.array([*sizes, n_features])


def _next(size: int, n_features: int, schedule: str, step: int, k: int) -> int:
    match schedule:
        case "linear":
            return size + step
        case "quadratic":
            return size + step * k
        case "exponential":
            return size * step
        case _:
            return size + (1 if size <= 50 else 5 if size <= 500 else n_features // 20)
