"""Partitions as Arrow tables of the same columns: what workers do before the engine sees a row."""

import ast
import itertools
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ferrank.data.categories import is_text
from ferrank.data.sparse import issparse
from ferrank.data.tables import arrow_table, unmasked
from ferrank.data.values import Column, group_column, label_sets, target_columns, unlike
from ferrank.distributed.graphs import Graph
from ferrank.errors import ColumnTypeError, DataError, FerrankError

__all__ = [
    "Batch",
    "batch",
    "batch_of",
    "columns_of",
    "count_rows",
    "cut",
    "join",
    "refuse_written_lists",
    "side_names",
    "table",
    "touch",
    "unchanged",
]


Bytes = np.ndarray[Any, np.dtype[np.uint8]]
Given = ParamSpec("Given")
Made = TypeVar("Made")


@dataclass(frozen=True)
class Batch:
    """Consecutive partitions that a task works on together."""

    first: int
    """number of the first"""
    tables: Sequence[pa.Table]
    """Partitions with the same columns are one table: to send thousands of small buffers takes long."""
    lengths: Sequence[Sequence[int]]
    """number of rows of each partition of each table"""

    @classmethod
    def of(cls, first: int, tables: Iterable[pa.Table]) -> "Batch":
        """Return the partitions ``tables``, from number ``first`` on."""
        runs = (list(run) for _, run in itertools.groupby(tables, key=lambda table: table.schema))
        joined = list(itertools.chain.from_iterable(map(_joined, runs)))
        return cls(first, [table for table, _ in joined], [lengths for _, lengths in joined])

    def __sizeof__(self) -> int:
        return sum(table.nbytes for table in self.tables)

    @property
    def name(self) -> str:
        """What messages call them."""
        last = self.first + sum(map(len, self.lengths)) - 1
        return f"partition {last}" if last == self.first else f"partitions {self.first} to {last}"

    def numbered(self) -> Iterator[tuple[int, pa.Table]]:
        """Return each partition with its number."""
        return enumerate(itertools.chain.from_iterable(map(_slices, self.tables, self.lengths)), self.first)

    @cached_property
    def checksums(self) -> tuple[int, ...]:
        """The checksum of each partition, which is kept with the values as long as these are held."""
        return tuple(itertools.chain.from_iterable(map(_checksums, self.tables, self.lengths)))

    def conform(self, schema: pa.Schema) -> pa.Table:
        """Return the rows with the columns ``schema``, that of all partitions."""
        try:
            return pa.concat_tables(_conform(table, schema, self.first) for table in self.tables)
        except FerrankError:
            # One of them raises, and is named.
            return pa.concat_tables(_conform(table, schema, number) for number, table in self.numbered())


def _joined(run: list[pa.Table]) -> list[tuple[pa.Table, list[int]]]:
    """Return partitions with the same columns as one table, or as several, with their numbers of rows."""
    lengths = [table.num_rows for table in run]
    if len(run) > 1:
        # There may be more categories together than codes.
        with suppress(pa.ArrowException):
            return [(pa.concat_tables(run).unify_dictionaries().combine_chunks(), lengths)]
    return [(table, [length]) for table, length in zip(run, lengths, strict=True)]


def _slices(table: pa.Table, lengths: Sequence[int]) -> Iterator[pa.Table]:
    firsts = itertools.accumulate(lengths, initial=0)
    return itertools.starmap(table.slice, zip(firsts, lengths, strict=False))


def batch(first: int, make: Callable[..., pa.Table], width: int, *parts: Any) -> Batch:
    """Return the partitions from number ``first`` on, each made of ``width`` of ``parts`` by ``make``."""
    pieces = (parts[start : start + width] for start in range(0, len(parts), width))
    made = (make(number, *piece) for number, piece in enumerate(pieces, first))
    return Batch.of(first, map(_without_types_of_nothing, made))


def batch_of(first: int, make: Callable[..., pa.Table], width: int, graph: Graph) -> Batch:
    """Return the :func:`batch` of the parts that ``graph`` makes."""
    return batch(first, make, width, *graph.values())


def unchanged(
    work: Callable[Concatenate[Batch, Given], Made],
) -> Callable[Concatenate[Batch, Sequence[int], Given], Made]:
    """Have ``work`` take the checksums that partitions had before, and find out first that they have them.

    That is no task of its own, after which dask might move the partitions.

    Raises
    ------
    DataError
        A partition has other rows than before, or in another order.
    """

    @wraps(work)
    def checked(
        batch: Batch, checksums: Sequence[int], /, *args: Given.args, **options: Given.kwargs
    ) -> Made:
        for number, (found, before) in enumerate(zip(batch.checksums, checksums, strict=True), batch.first):
            if found != before:
                raise DataError(
                    f"partition {number}: it had other rows, or in another order, when it was read again; "
                    "make what computes it give the same each time, with a fixed seed, or persist the "
                    "collection"
                )
        return work(batch, *args, **options)

    return checked


def touch(*parts: Any) -> None:
    """Take part in a partition that can be made."""


def table(number: int, part: Any) -> pa.Table:
    """Return partition ``number`` as a table; a NumPy one has the columns ``x0``, ``x1`` …."""
    with _named(number):
        return _table(part, "data")


def join(as_labels: bool, names: list[str], number: int, X: Any, *sides: Any) -> pa.Table:
    """Return features, targets, weights and groups of a partition, side by side.

    ``names`` says what each of ``sides`` is: "y", "sample_weight" or "groups".
    """
    with _named(number):
        features = _table(X, "X")
        given = dict(zip(names, sides, strict=True))
        for name, column in _side_columns(features, as_labels, **given):
            array = column if isinstance(column, pa.Array | pa.ChunkedArray) else pa.array(column)
            if len(array) != features.num_rows:
                raise DataError(
                    f"'{name}' has {len(array)} rows, X has {features.num_rows}; partition them alike"
                )
            features = features.append_column(name, array)
        return features


def side_names(as_labels: bool, names: list[str], X: Any, *sides: Any) -> list[str]:
    """Return the names of the columns that :func:`join` puts beside the features of the first partition."""
    with _named(0):
        given = dict(zip(names, sides, strict=True))
        return [name for name, _ in _side_columns(_table(X, "X"), as_labels, **given)]


def count_rows(part: Any) -> int:
    """Return the number of rows of a partition."""
    return _table(part, "X").num_rows if isinstance(part, Mapping) else len(part)


def cut(number: int, as_labels: bool, bounds: Sequence[tuple[int, int]], *parts: Any) -> pa.Table:
    """Return the rows ``bounds`` of each of ``parts``, one after the other, as the targets of a partition."""
    with _named(number):
        pieces = [
            (part.iloc if hasattr(part, "iloc") else part)[first:end]
            for part, (first, end) in zip(parts, bounds, strict=True)
        ]
        columns = [pa.table(dict(_target_columns(piece, as_labels))) for piece in pieces]
        return pa.concat_tables(columns, promote_options="permissive")


def _table(part: Any, what: str) -> pa.Table:
    if issparse(part):
        raise ColumnTypeError(
            f"{what}: a sparse array as a partition; make it dense, or rank it in one piece, without dask"
        )
    if isinstance(part, np.ndarray):
        if part.ndim != 2:
            raise ColumnTypeError(f"{what}: an array of {part.ndim} dimensions; use (n_rows, n_columns)")
        part = {f"x{number}": column for number, column in enumerate(part.T)}
    return arrow_table(part)


_NO_VALUES = {b"ferrank:type": b"float64"}
"""Metadata of a column of numbers all of which are missing: pandas makes it of texts as well."""


def _without_types_of_nothing(table: pa.Table) -> pa.Table:
    """Return ``table`` without the types of columns that say nothing of other partitions.

    These are dictionaries without entries, and numbers all of which are missing.
    """
    for place, field in enumerate(table.schema):
        column, metadata = table.column(place), None
        if pa.types.is_dictionary(field.type):
            says_nothing = not any(len(chunk.dictionary) for chunk in column.chunks)
        else:
            says_nothing, metadata = _is_all_nan(column), _NO_VALUES
        if says_nothing:
            empty = pa.field(field.name, pa.null(), metadata=metadata)
            table = table.set_column(place, empty, pa.nulls(table.num_rows))
    return table


def _is_all_nan(column: pa.ChunkedArray) -> bool:
    """Return whether a column has rows, is of floating-point numbers, and all of these are missing."""
    if not pa.types.is_floating(column.type) or len(column) == 0:
        return False
    first = column[0].as_py()
    is_missing = first is None or first != first
    return is_missing and bool(pc.all(pc.is_null(column, nan_is_null=True)).as_py())


def _side_columns(
    features: pa.Table, as_labels: bool, *, y: Any = None, sample_weight: Any = None, groups: Any = None
) -> list[Column]:
    targets = [] if y is None else unlike(features.column_names, _target_columns(y, as_labels))
    taken = [*features.column_names, *(name for name, _ in targets)]
    columns: list[Column] = []
    if sample_weight is not None:
        columns.append(("sample_weight", np.asarray(unmasked(sample_weight), dtype=np.float64).ravel()))
    if groups is not None:
        columns.append(("groups", group_column(groups)))
    return targets + unlike(taken, columns)


def _target_columns(y: Any, as_labels: bool) -> list[Column]:
    return target_columns(label_sets(y) if as_labels else y)


@contextmanager
def _named(number: int) -> Iterator[None]:
    """Context in which messages begin with the number of the partition."""
    try:
        yield
    except FerrankError as error:
        raise type(error)(f"partition {number}: {error}") from None
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise DataError(f"partition {number}: {error}") from error


def refuse_written_lists(part: pa.Table, number: int) -> None:
    """Raise where lists were made text, as dask does with columns of objects by default."""
    for name, column in zip(part.column_names, part.columns, strict=True):
        known = (value.as_py() for value in column if value.is_valid) if is_text(column.type) else ()
        text = next(iter(known), "")
        if text.startswith("[") and _is_list(text):
            raise DataError(
                f"partition {number}: column '{name}' holds lists written as text, such as {text!r}; "
                "make the collection with dask.config.set({'dataframe.convert-string': False}), or give "
                "delayed partitions"
            )


def _is_list(text: str) -> bool:
    try:
        return isinstance(ast.literal_eval(text), list)
    except (SyntaxError, ValueError):
        return False


def _conform(part: pa.Table, schema: pa.Schema, number: int) -> pa.Table:
    with _named(number):
        return pa.table([_cast(part.column(field.name), field) for field in schema], schema=schema)


def _cast(column: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray:
    try:
        if pa.types.is_dictionary(field.type):
            return column.cast(field.type.value_type).dictionary_encode()
        return column.cast(field.type)
    except pa.ArrowException as error:
        raise ColumnTypeError(
            f"column '{field.name}' cannot become {field.type}, as other partitions have it: {error}"
        ) from error


def columns_of(parts: Sequence[pa.Schema], *, in_order: bool = False) -> pa.Schema:
    """Return the schema to which all partitions can be brought, with the columns in the order of the first.

    ``in_order`` says that the columns of all have to be in this order, since roles go by it.

    A partition without any value of a column may have it in another type, and one may lack categories that
    others have: dictionaries of texts become plain columns, texts of all kinds one, and types are widened.
    Dictionaries of numbers or dates stay dictionaries, since these are nominal.
    """
    names = parts[0].names
    for number, schema in enumerate(parts):
        found = next(iter(set(schema.names) ^ set(names)), None)
        if found is not None:
            raise DataError(
                f"partition {number}: its columns are not those of partition 0: column '{found}' is not in "
                "both; give all partitions the same columns"
            )
        if in_order and schema.names != names:
            raise DataError(
                f"partition {number}: its columns are in another order than those of partition 0; name the "
                "targets instead of target_last"
            )
    return pa.schema([_widened([schema.field(name) for schema in parts]) for name in names])


def _widened(fields: Sequence[pa.Field]) -> pa.Field:
    """Return the field that holds what each of ``fields``, those of a column in each partition, can."""
    known = [(number, field) for number, field in enumerate(fields) if field.metadata != _NO_VALUES]
    widest = _plain(known[0][1]) if known else pa.field(fields[0].name, pa.float64())
    for number, field in known:
        both = [pa.schema([widest]), pa.schema([_plain(field)])]
        try:
            widest = pa.unify_schemas(both, promote_options="permissive").field(0)
        except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
            raise ColumnTypeError(
                f"partition {number}: column '{field.name}' is {field.type}, in the partitions before "
                f"{widest.type}; use one type"
            ) from error
    if len(known) < len(fields) and pa.types.is_integer(widest.type):
        # As pandas has integers some of which are missing.
        widest = widest.with_type(pa.float64())
    is_nominal = any(pa.types.is_dictionary(field.type) for field in fields)
    if not is_nominal or is_text(widest.type) or pa.types.is_null(widest.type):
        return widest
    return widest.with_type(pa.dictionary(pa.int32(), widest.type))


def _plain(field: pa.Field) -> pa.Field:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return pa.field(field.name, pa.large_string() if is_text(kind) else kind)


_WIDTH = 1024
"""Words in a row of the square that is added up."""


def checksum(part: pa.Table) -> int:
    """Return a number that changes with any value of a table, and with the order of its rows."""
    [found] = _checksums(part, [part.num_rows])
    return found


def _checksums(table: pa.Table, lengths: Sequence[int]) -> list[int]:
    """Return the :func:`checksum` of each of the partitions in ``table``, by their numbers of rows."""
    found, spans = [0] * len(lengths), list(itertools.pairwise(itertools.accumulate(lengths, initial=0)))
    for column in table.columns:
        whole = pa.chunked_array(column).combine_chunks()
        # A fifth of the time for 62 partitions of 200 rows: the kind of a column is looked at once.
        plain, width = (_values(whole), whole.type.bit_width // 8) if _is_plain(whole) else (None, 0)
        for number, (first, end) in enumerate(spans):
            if plain is None:
                contents = _contents(whole.slice(first, end - first))
            else:
                contents = iter([plain[first * width : end * width]])
            for data in contents:
                found[number] = zlib.crc32(_sums(data), found[number])
    return found


def _sums(data: Bytes) -> bytes:
    """Return the sums of the rows and columns of a square of the words in ``data``, and of what is left.

    A checksum of all bytes takes ten times as long.
    """
    if len(data) < 8 * _WIDTH:
        return data.tobytes()
    n_whole = len(data) // (8 * _WIDTH) * 8 * _WIDTH
    square, rest = data[:n_whole].view(np.uint64).reshape(-1, _WIDTH), data[n_whole:]
    # An overflow is meant.
    return b"".join((square.sum(axis=0).tobytes(), square.sum(axis=1).tobytes(), rest.tobytes()))


def _contents(column: pa.Array) -> Iterator[Bytes]:
    """Return what tells the values of a column, whatever lies below those that are missing."""
    if column.type == pa.string_view():
        column = column.cast(pa.large_string())
    kind = column.type
    if column.null_count:
        yield np.packbits(column.is_null().to_numpy(zero_copy_only=False))
        column = column.drop_null()
    if isinstance(column, pa.ExtensionArray):
        yield from _contents(column.storage)
    elif pa.types.is_dictionary(kind):
        yield from _contents(column.dictionary_decode())
    elif pa.types.is_boolean(kind):
        yield from _contents(column.cast(pa.uint8()))
    elif is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        plain = column.cast(pa.large_binary())
        yield from _contents(pc.binary_length(plain))
        offsets, data = plain.buffers()[1:]
        ends = np.frombuffer(offsets, np.int64)[plain.offset : plain.offset + len(plain) + 1]
        yield np.frombuffer(data or b"", np.uint8)[slice(ends[0], ends[-1]) if len(ends) else slice(0)]
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _contents(pc.list_value_length(column))
        yield from _contents(column.flatten())
    elif _is_plain(column):
        yield _values(column)
    else:
        yield np.frombuffer(repr(column.to_pylist()).encode(), np.uint8)


def _is_plain(column: pa.Array) -> bool:
    """Whether no value is missing, and all have the same number of bytes."""
    kind = column.type
    if column.null_count or isinstance(column, pa.ExtensionArray) or pa.types.is_boolean(kind):
        return False
    return bool(
        pa.types.is_primitive(kind) or pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind)
    )


def _values(column: pa.Array) -> Bytes:
    """Return the bytes of the values of a plain column."""
    width, values = column.type.bit_width // 8, column.buffers()[1]
    return np.frombuffer(values or b"", np.uint8)[
        column.offset * width : (column.offset + len(column)) * width
    ]
