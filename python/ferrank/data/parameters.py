"""Parameters that a function does not have: which one was meant."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, TypeVar, cast

from ferrank.errors import SettingError, hint

__all__ = ["suggests"]

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
