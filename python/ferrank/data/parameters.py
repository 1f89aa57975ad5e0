"""Parameters of functions: those that a function does not have, and checks of values that many have."""

from collections.abc import Callable, Collection, Iterable
from functools import wraps
from inspect import signature
from numbers import Integral, Real
from typing import Any, TypeVar, cast

import numpy as np

from ferrank.errors import ColumnTypeError, SettingError, hint

__all__ = [
    "choice_of",
    "count_of",
    "decay_of",
    "flag_of",
    "floats_of",
    "generator_of",
    "kind_of",
    "names_of",
    "number_of",
    "seed_of_splits",
    "suggests",
    "whole_numbers",
]

_MOST = (1 << 32) - 1
"""Of seeds that scikit-learn takes, and of other whole numbers."""
_Kind = TypeVar("_Kind")
_Function = TypeVar("_Function", bound=Callable[..., Any])


def suggests(function: _Function) -> _Function:
    """Return ``function``, whose error for a parameter that it does not have says which was meant.

    >>> @suggests
    ... def judge(*, n_neighbors=15): ...
    >>> judge(n_neighbours=3)
    Traceback (most recent call last):
    ferrank.errors.SettingError: n_neighbours: not a parameter of judge; did you mean n_neighbors?
    """
    known = [name for name in signature(function).parameters if name != "self"]
    called = function.__qualname__.removesuffix(".__init__")

    @wraps(function)
    def checked(*given: Any, **named: Any) -> Any:
        unknown = next((name for name in named if name not in known), None)
        if unknown is None:
            return function(*given, **named)
        raise SettingError(f"{unknown}: not a parameter of {called}; {hint(unknown, known)}")

    return cast(_Function, checked)


def count_of(value: object, name: str, what: str = "features", least: int = 0) -> int:
    """Return the ``value`` of the parameter ``name``, a number of ``what``, at least ``least``.

    Raises
    ------
    SettingError
        It is no whole number, or less.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise SettingError(f"{name}: {value!r} is not a number of {what}; use {least} or more")
    return int(value)


def number_of(value: object, name: str, interval: str, allowed: Callable[[float], bool]) -> float:
    """Return the ``value`` of the parameter ``name``, a number for which ``allowed`` is True.

    ``interval`` says to people which these are, such as "(0, 1]".

    Raises
    ------
    SettingError
        It is no number, or another one.
    """
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SettingError(f"{name}: {_short(value)} is not a number in {interval}")
    if not allowed(float(value)):
        raise SettingError(f"{name}: {value} is not in {interval}")
    return float(value)


def floats_of(values: object, name: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the values of the parameter ``name`` as an array of numbers.

    Raises
    ------
    ColumnTypeError
        They are no numbers.
    """
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ColumnTypeError(f"{name}: {error}; use numbers") from error


def whole_numbers(values: object, name: str) -> np.ndarray[Any, np.dtype[np.intp]]:
    """Return the values of the parameter ``name`` as an array of integers.

    Raises
    ------
    SettingError
        They are no whole numbers.
    """
    found = floats_of(values, name)
    is_whole = (np.abs(found) <= _MOST) & (found == np.floor(found))
    if not is_whole.all():
        raise SettingError(f"{name}: {found[~is_whole][0]} is no whole number, or too great")
    return found.astype(np.intp)


def seed_of_splits(value: object, name: str = "random_state") -> int:
    """Return the ``value`` of the parameter ``name``, a seed that scikit-learn's splits take.

    Raises
    ------
    SettingError
        It is no integer in 0 … 2³² − 1.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or not 0 <= int(value) <= _MOST:
        raise SettingError(f"{name}: {_short(value)} is no seed; use an integer from 0 to {_MOST}")
    return int(value)


def generator_of(value: object, name: str = "random_state") -> np.random.Generator:
    """Return the ``value`` of the parameter ``name`` if it is a generator, or the generator of this seed.

    Raises
    ------
    SettingError
        It is neither a generator nor an integer from 0 on.
    """
    if isinstance(value, np.random.Generator):
        return value
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise SettingError(
            f"{name}: {_short(value)} is no seed; use an integer from 0 on, or a generator of NumPy"
        )
    return np.random.default_rng(int(value))


def names_of(value: object, name: str, what: str = "column names") -> list[str]:
    """Return the ``value`` of the parameter ``name`` as a list of ``what``; a string is a single one.

    Raises
    ------
    SettingError
        It is neither a string nor a sequence of strings.
    """
    if isinstance(value, str):
        return [value]
    names = list(value) if isinstance(value, Iterable) and not isinstance(value, bytes) else [value]
    if not all(isinstance(one, str) for one in names):
        raise SettingError(f"{name}: {value!r} is not a list of {what}")
    return [str(one) for one in names]


def choice_of(value: object, name: str, choices: Collection[str]) -> str:
    """Return the ``value`` of the parameter ``name``, one of ``choices``.

    Raises
    ------
    SettingError
        It is none of them.
    """
    if not isinstance(value, str) or value not in choices:
        raise SettingError(f"{name}: {value!r} is not one of {', '.join(choices)}")
    return value


def flag_of(value: object, name: str) -> bool:
    """Return the ``value`` of the parameter ``name``, True or False.

    Raises
    ------
    SettingError
        It is neither.
    """
    if not isinstance(value, bool | np.bool_):
        raise SettingError(f"{name}: {_short(value)} is neither True nor False")
    return bool(value)


def decay_of(value: object) -> float:
    """Return the ``value`` of the parameter ``hierarchy_decay``, also where no target has a hierarchy.

    Raises
    ------
    SettingError
        It is not in (0, 1].
    """
    return number_of(value, "hierarchy_decay", "(0, 1]", lambda decay: 0 < decay <= 1)


def kind_of(value: object, kind: type[_Kind] | tuple[type[_Kind], ...], name: str, what: str) -> _Kind:
    """Return the ``value`` of the parameter ``name``, which is of the type ``kind``: it is ``what``.

    Raises
    ------
    ColumnTypeError
        It is of another type.
    """
    if not isinstance(value, kind):
        raise ColumnTypeError(f"{name}: {_short(value)} is not {what}")
    return value


def _short(value: object) -> str:
    """Return how a message shows a value that may be an array, a frame or an object."""
    is_short = value is None or isinstance(value, str | bytes | int | float)
    return f"{value!r:.60}" if is_short else f"an object of type {type(value).__name__}"
