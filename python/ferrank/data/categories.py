"""Which features are nominal, as scikit-learn users say it, and columns that are made so."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank.data.opening import Passes
from ferrank.errors import ColumnTypeError, DataError, SettingError, hint

__all__ = [
    "FROM_DTYPE",
    "CategoricalFeatures",
    "categorical_names",
    "features_of_words",
    "is_from_dtype",
    "is_text",
    "with_categories",
]

FROM_DTYPE = "from_dtype"
"""Strings, categories and dictionaries are nominal, and nothing else."""

CategoricalFeatures = Iterable[Any] | Literal["from_dtype"]
"""Names, positions, a mask with a bool for each column, or "from_dtype"."""


def features_of_words(categories: Mapping[str, Sequence[str] | None]) -> list[str]:
    """Return the nominal features whose categories are neither numbers nor truth values, by their names.

    Their column was text. It has to be read as text again where all values of a file look like numbers: the
    postcode 01000 is another one than 1000.
    """
    return [name for name, names in categories.items() if names and _core.was_text(list(names))]


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


def with_categories(rows: Passes, categorical: CategoricalFeatures | None) -> Passes:
    """Return ``rows`` with dictionaries of the columns that are said to be nominal.

    Raises
    ------
    DataError, ColumnTypeError
        There is no such column, or its values are no categories.
    """
    names = rows.schema.names
    given = {}
    for name in categorical_names(categorical, names):
        if name not in names:
            raise DataError(
                f"{rows.name}: no column '{name}' for the categorical features; {hint(name, names)}"
            )
        own = rows.schema.field(name).type
        if _is_plain(own):
            given[names.index(name)] = _values_of(own)
        elif not (pa.types.is_dictionary(own) or is_text(own)):
            raise ColumnTypeError(
                f"{rows.name}: column '{name}' is of type {own}, whose values are no categories; leave it out"
            )
    return _as_dictionaries(rows, given)


def is_text(kind: pa.DataType) -> bool:
    """Return whether values of this type are strings."""
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _is_plain(kind: pa.DataType) -> bool:
    """Return whether values of this type are numbers, booleans, or times."""
    tests = (pa.types.is_primitive, pa.types.is_decimal128, pa.types.is_decimal256)
    return any(is_of(kind) for is_of in tests)


def _values_of(kind: pa.DataType) -> pa.DataType:
    """Return the type of categories whose values have the type ``kind``."""
    # The engine has no table of time zones, by which it would convert categories; these are in UTC.
    return pa.timestamp(kind.unit) if pa.types.is_timestamp(kind) else kind


def _as_dictionaries(rows: Passes, values: Mapping[int, pa.DataType]) -> Passes:
    """Return ``rows`` with the columns at these places as dictionaries of these types."""
    if not values:
        return rows
    schema = rows.schema
    for place, kind in values.items():
        schema = schema.set(place, schema.field(place).with_type(pa.dictionary(pa.int32(), kind)))

    def batches(stream: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in stream:
            columns = batch.columns
            for place, kind in values.items():
                columns[place] = columns[place].cast(kind).dictionary_encode()
            yield pa.RecordBatch.from_arrays(columns, schema=schema)

    def make() -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(schema, batches(rows.make()))

    return replace(rows, schema=schema, make=make)
