"""Tables in memory, of whatever library, as Arrow tables whose buffers are valid."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pyarrow as pa

from ferrank.errors import ColumnTypeError, DataError, FerrankError, ResourceError
from ferrank.escape import without_traceback

__all__ = [
    "arrow_array",
    "arrow_table",
    "as_matrix",
    "as_table",
    "check_names",
    "checked",
    "foreign",
    "numbers_of",
    "readable",
    "row_label_names",
    "unmasked",
    "values_of",
]

_BUNCH = (
    "data: is a Bunch of scikit-learn; give X and y, or its frame, such as load_iris(as_frame=True).frame"
)


@contextmanager
def foreign(what: str, word: Callable[[str], str] | None = None) -> Iterator[None]:
    """Raise whatever objects of other libraries raise, which may be anything, as an error of ferrank.

    ``what`` is the argument that they were given as, ``word`` makes the message of their text otherwise.
    Ctrl-C and a lack of memory stay themselves.
    """
    word = word or (lambda text: f"{what}: {text}")
    try:
        yield
    except (FerrankError, MemoryError):
        raise
    except OSError as error:
        raise ResourceError(word(_said(error))) from error
    except UnicodeError as error:
        raise DataError(f"{what}: a text or a name is not Unicode: {error}; write it as Unicode") from error
    except (TypeError, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        raise ColumnTypeError(word(_said(error))) from error
    except Exception as error:
        raise DataError(word(_said(error))) from error


def _said(error: Exception) -> str:
    """Return the text of an error, without the traceback that pyarrow puts into it."""
    return without_traceback(str(error)).strip() or type(error).__name__


def unmasked(values: Any) -> Any:
    """Return a masked array of NumPy with NaN, or None in text, for what is masked; all else as it is."""
    if not isinstance(values, np.ma.MaskedArray):
        return values
    if not np.ma.is_masked(values):
        return values.data
    if values.dtype.kind in "biu":
        values = values.astype(np.float64)
    return values.filled(np.nan) if values.dtype.kind == "f" else values.astype(object).filled(None)


def arrow_array(values: Any, what: str) -> Any:
    """Return values of Python or NumPy as an Arrow array; missing are None, NaN, and what is masked.

    Raises
    ------
    DataError
        Lists are nested without an end, with which pyarrow would crash.
    """
    if isinstance(values, np.ma.MaskedArray) and not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    _check_nesting(values, what)
    return pa.array(values, from_pandas=True)


_MOST_NESTED = 64


def _check_nesting(values: Any, what: str, depth: int = 0) -> None:
    if depth > _MOST_NESTED:
        raise DataError(f"{what}: lists within lists, {_MOST_NESTED} deep and more; use a value for each row")
    if isinstance(values, Mapping):
        values = values.values()
    if hasattr(values, "dtype"):
        if values.dtype.kind != "O" or values.ndim == 0:
            return
    elif not isinstance(values, _NESTED):
        return
    # By types first: a column of a million texts takes a third of the time.
    if any(issubclass(kind, _NESTED) for kind in set(map(type, values))):
        for value in values:
            if isinstance(value, _NESTED):
                _check_nesting(value, what, depth + 1)


_NESTED: tuple[type, ...] = (list, tuple, dict, np.ndarray, type({}.values()))


def numbers_of(column: pa.ChunkedArray) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return numbers, booleans or times as float64, of shape (n_rows,), NaN where missing.

    Times are counted in the unit of their type.
    """
    if pa.types.is_temporal(column.type):
        column = column.cast(pa.int64() if column.type.bit_width == 64 else pa.int32())
    if column.type != pa.float64():
        column = column.cast(pa.float64(), safe=False)
    return values_of(column, np.nan)


def values_of(column: pa.ChunkedArray, missing: float) -> np.ndarray[Any, Any]:
    """Return numbers as an array of their type, of shape (n_rows,), with ``missing`` for those missing.

    Read from the buffers: pyarrow's ``to_numpy`` imports pandas where there is one, which takes longer than
    many a ranking.
    """
    kind = column.type.to_pandas_dtype()
    parts = [_values(chunk, kind, missing) for chunk in column.chunks]
    return np.concatenate([np.zeros(0, kind), *parts])


def _values(values: pa.Array, kind: Any, missing: float) -> np.ndarray[Any, Any]:
    bits, data = values.buffers()
    found = np.frombuffer(data, kind, len(values), values.offset * np.dtype(kind).itemsize)
    if not values.null_count:
        return found
    known = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
    return np.where(known[values.offset : values.offset + len(values)], found, kind(missing))


def as_table(data: Any) -> Any:
    """Return ``data`` as an object of the Arrow PyCapsule interface.

    The index of a pandas frame is left out: it counts rows, and would rank as a feature.
    """
    try:
        if type(data).__module__.partition(".")[0] == "pandas":
            if not hasattr(data, "columns"):
                raise ColumnTypeError("data: is a Series, one column; give a frame, with the target in it")
            check_names(data.columns, "table")
            for name, kind in data.dtypes.items():
                if kind.kind == "O":
                    _check_nesting(data[name], f"table: column '{name}'")
            return pa.Table.from_pandas(_without_intervals(_dense(data)), preserve_index=False)
        if isinstance(data, list) and data and all(isinstance(row, Mapping) for row in data):
            _check_nesting(data, "table")
            return pa.Table.from_pylist(data)
        if isinstance(data, Mapping):
            if hasattr(data, "DESCR"):
                raise ColumnTypeError(_BUNCH)
            check_names(data, "table")
            columns = {str(name): _column(column, f"table: column '{name}'") for name, column in data.items()}
            return checked(pa.table(columns))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        text = "; ".join(str(part) for part in error.args)
        if "expected length" in text:
            raise DataError(f"table: {text}; give all columns as many rows") from error
        raise ColumnTypeError(f"table: {text}; {_advice(text)}, or drop it") from error
    except FerrankError:
        raise
    except Exception as error:  # columns may be of any library
        raise DataError(f"table: {error}; rename or mend a column") from error
    if isinstance(data, pa.Table | pa.RecordBatch):
        given = data.schema
        schema = readable(given)
        return checked(data) if schema is given else checked(data).cast(schema)
    if isinstance(data, pa.Array | pa.ChunkedArray) or _is_polars(data, "Series"):
        raise ColumnTypeError("data: is one column; give a table, with the target in it")
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _without_null_buffers(data) if _is_polars(data, "DataFrame") else data
    raise ColumnTypeError(
        f"data: cannot rank a {type(data).__module__}.{type(data).__qualname__}; use a path, a NumPy or "
        "SciPy array, or a table that speaks Arrow (pyarrow, pandas, a collected polars frame, DuckDB)"
    )


def _advice(text: str) -> str:
    """Return what would do where pyarrow refuses a column with ``text``."""
    if "complex" in text:
        return "use real numbers, such as its real and imaginary part"
    if text.startswith(("Expected bytes", "Could not convert")):
        return "it mixes text with other values: use one type, such as astype(str)"
    return "use one type in a column"


def arrow_table(data: Any) -> pa.Table:
    """Return ``data``, of any library, as a table of pyarrow."""
    found = as_table(data)
    # To import a table of 20,000 columns once more takes 70 ms.
    return found if isinstance(found, pa.Table) else pa.table(found)


def _is_polars(data: Any, kind: str) -> bool:
    return type(data).__name__ == kind and type(data).__module__.partition(".")[0] == "polars"


def row_label_names(schema: pa.Schema) -> list[str]:
    """Return the columns that hold the index of the pandas frame which ``schema`` was made from."""
    try:
        frame = schema.pandas_metadata
    except ValueError:  # the engine passes over such metadata, too
        return []
    names = frame.get("index_columns") if isinstance(frame, dict) else None
    if not isinstance(names, list):
        return []
    return [name for name in names if isinstance(name, str) and name in schema.names]


def check_names(names: Iterable[Any], source: str, what: str = "columns") -> None:
    """Raise an error if two columns of ``source`` have the same name, as the engine does."""
    places: dict[str, int] = {}
    for place, name in enumerate(map(str, names), start=1):
        if places.setdefault(name, place) != place:
            raise DataError(
                f"{source}: two {what} are called '{name}' (numbers {places[name]} and {place}); rename one"
            )


def _dense(frame: Any) -> Any:
    """Return a pandas frame whose sparse columns are dense, as Arrow has them."""
    sparse = {name: kind.subtype for name, kind in frame.dtypes.items() if str(kind).startswith("Sparse[")}
    return frame.astype(sparse) if sparse else frame


def _without_intervals(frame: Any) -> Any:
    """Return a pandas frame whose intervals, such as ``pandas.cut`` makes them, are categories of text.

    Arrow has no type for intervals.
    """
    kinds = [getattr(getattr(dtype, "categories", None), "dtype", dtype) for dtype in frame.dtypes]
    of_intervals = [
        name for name, kind in zip(frame.columns, kinds, strict=True) if str(kind).startswith("interval")
    ]
    if not of_intervals:
        return frame
    frame = frame.copy(deep=False)
    for name in of_intervals:
        column = frame[name].astype("category")
        frame[name] = column.cat.rename_categories(column.cat.categories.astype(str))
    return frame


def as_matrix(data: Any) -> tuple[list[str], np.ndarray[Any, Any]] | None:
    """Return the names and values of a pandas frame that keeps its columns as one array of numbers.

    Nothing is copied. An Arrow array for each column takes 70 µs: most of a ranking of 200 rows of 20,000
    features.
    """
    if type(data).__module__.partition(".")[0] != "pandas" or not hasattr(data, "columns"):
        return None
    dtypes = set(data.dtypes)
    names = list(data.columns)
    if len(dtypes) != 1 or not data.columns.is_unique or not all(isinstance(name, str) for name in names):
        return None
    dtype = dtypes.pop()
    if not isinstance(dtype, np.dtype) or dtype.kind not in "iuf" or data.empty:
        return None
    # The values of columns that lie apart would be copied.
    row = data.iloc[:1]
    is_one = np.may_share_memory(row.to_numpy(), row.iloc[:, -1].to_numpy())
    return (names, data.to_numpy()) if is_one else None


def _column(values: Any, what: str) -> Any:
    """Return a column as pyarrow has it, NaN of other libraries as missing."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return checked(values)
    return arrow_array(values, what)


def readable(schema: pa.Schema) -> pa.Schema:
    """Return ``schema`` without metadata that are not UTF-8: Arrow allows them, its Rust library does not."""
    # The fields of 20,000 columns take 10 ms, their text 1.
    if "metadata --" not in schema.to_string(show_field_metadata=True):
        return schema
    found = schema.with_metadata(_texts(schema.metadata))
    for place, field in enumerate(schema):
        if field.metadata:
            found = found.set(place, field.with_metadata(_texts(field.metadata)))
    return schema if found.equals(schema, check_metadata=True) else found


def _texts(metadata: Mapping[bytes, bytes] | None) -> dict[bytes, bytes]:
    return {key: text for key, text in (metadata or {}).items() if _is_text(key) and _is_text(text)}


def _is_text(given: bytes) -> bool:
    try:
        given.decode()
    except UnicodeDecodeError:
        return False
    return True


def checked(data: Any) -> Any:
    """Return a table, batch or column of pyarrow, of which the buffers may be anybody's, if it is valid.

    The C data interface does not tell how long buffers are, so that offsets beyond them are only seen here.
    """
    try:
        data.validate(full=True)
    except (pa.ArrowException, ValueError) as error:
        raise DataError(f"table: {_damaged(data)} is damaged: {error}; make it anew") from error
    return data


def _damaged(data: Any) -> str:
    """Return which column is not valid."""
    for name, column in zip(getattr(data, "column_names", []), getattr(data, "columns", []), strict=False):
        try:
            column.validate(full=True)
        except (pa.ArrowException, ValueError):
            return f"column '{name}'"
    return "a column"


def _without_null_buffers(frame: Any) -> Any:
    """Return a polars frame whose columns of the type Null have no buffer, as Arrow demands it."""
    if not any(str(kind) == "Null" for kind in frame.dtypes):
        return frame
    table = frame.to_arrow()
    for place, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(place, field, pa.nulls(table.num_rows))
    return table
