"""Which features are nominal, as scikit-learn users say it."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np

from ferrank.errors import SettingError

__all__ = ["FROM_DTYPE", "CategoricalFeatures", "categorical_names", "is_from_dtype"]

FROM_DTYPE = "from_dtype"
"""Strings, categories and dictionaries are nominal, and nothing else."""

CategoricalFeatures = Iterable[Any] | Literal["from_dtype"]
"""Names, positions, a mask with a bool for each column, or "from_dtype"."""


def is_from_dtype(categorical: Any) -> bool:
    """Return True if the types of columns say which are nominal."""
    return categorical is None or (isinstance(categorical, str) and categorical == FROM_DTYPE)


def categorical_names(categorical: Any, names: Sequence[str] | None) -> list[str]:
    """Return the names of the columns that are nominal whatever their type.

    ``names``: names of all columns, to which positions and masks refer; None if the columns are not known.
    """
    if is_from_dtype(categorical):
        return []
    if isinstance(categorical, str) or not isinstance(categorical, Iterable):
        raise SettingError(
            f"categorical_features: {categorical!r} is not a list; use a list of names or positions, a mask, "
            f"or {FROM_DTYPE!r}"
        )
    given = list(categorical)
    if all(isinstance(one, str) for one in given):
        return [str(one) for one in given]
    if names is None:
        raise SettingError(
            "categorical_features: the columns are not known before the data are read; use a list of names"
        )
    if all(isinstance(one, bool | np.bool_) for one in given):
        if len(given) != len(names):
            raise SettingError(
                f"categorical_features: a mask of {len(given)} for {len(names)} columns; give a bool for each"
            )
        return [name for name, is_categorical in zip(names, given, strict=True) if is_categorical]
    return [_name(one, names) for one in given]


def _name(one: Any, names: Sequence[str]) -> str:
    if isinstance(one, str):
        return str(one)
    is_position = isinstance(one, int | np.integer) and not isinstance(one, bool)
    if is_position and 0 <= one < len(names):
        return str(names[int(one)])
    raise SettingError(
        f"categorical_features: {one!r} is neither a name nor a position in 0 … {len(names) - 1}; "
        "a mask has a bool for each column"
    )
