"""Parameters of functions: those that a function does not have, and numbers of things."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from numbers import Integral
from typing import Any, TypeVar, cast

from ferrank.errors import SettingError, hint

__all__ = ["count_of", "suggests"]

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
