"""The libraries of the extra ``ferrank[evaluate]``, imported where they are needed."""

from importlib import import_module
from typing import Any

from ferrank.errors import FerrankError

__all__ = ["need"]


def need(module: str, what: str) -> Any:
    """Return ``module``.

    Raises
    ------
    FerrankError
        It is not installed; the message says how to get it.

    Examples
    --------
    >>> need("no_such_module", "dreams")
    Traceback (most recent call last):
    ferrank.errors.FerrankError: dreams need no_such_module; pip install 'ferrank[evaluate]'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0].replace("_posthocs", "-posthocs").replace("scikit_", "scikit-")
        raise FerrankError(f"{what} need {package}; pip install 'ferrank[evaluate]'") from error
