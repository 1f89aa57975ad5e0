"""CSV files, read by pyarrow: a fresh stream for each pass.

What parts the fields, whether there is a header and how text and numbers are written is seen from the
beginning of the file, where it is not said.
"""

import codecs
import csv
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from ferrank.data.opening import Folder, Passes, numbered, reading, regular, unpacking
from ferrank.data.parameters import flag_of
from ferrank.errors import DataError, SettingError
from ferrank.escape import visible

__all__ = ["MISSING", "NUMBER", "CSVFile", "open_csv"]

_INTEGERS = "ferrank:integers"
"""Metadata key of columns that begin with integers and are read as float64."""
_BLOCK_BYTES = 4 << 20
_LINES_IN_BLOCK = 64
_LINE_BYTES = 64 << 20
"""Of the longest first line that is read: all of a block, many times as long, is held in memory."""
MISSING = ["", "?", "NA", "N/A", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "<NA>"]
"""Fields of text files that stand for missing values."""
_HEAD_BYTES = 1 << 16
_HEAD_LINES = 50
_DELIMITERS = ",;\t|"
NUMBER = re.compile(r"\s*[-+]?(\d+([.,]\d*)?|[.,]\d+)([eE][-+]?\d+)?\s*")
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+\s*")
_BOMS = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16"}
_OTHER_ENCODING = "cp1252"


@dataclass(frozen=True)
class CSVFile:
    r"""A CSV file and how it is written. What is not given is seen from the beginning of the file.

    Parameters
    ----------
    path : path
        The file; compressed ones end in .gz, .bz2, .zst or .lz4.
    delimiter : str, optional
        What parts the fields, such as ``";"`` or ``"\t"``; by default the one of ``,;|`` and tab that makes
        rows of the same length.
    header : bool, optional
        Whether the first line has the names of the columns; by default if one of its fields is no number.
        Else they are called ``x0``, ``x1`` ….
    encoding : str, optional
        The encoding of text, as Python calls it; by default UTF-8, or UTF-16 with a byte order mark. A file
        that is neither is read as cp1252, with a ``UnicodeWarning``.
    decimal : {".", ","}, optional
        The decimal sign; by default the comma if numbers have one and no number has a point, where commas do
        not part the fields.

    Examples
    --------
    >>> import ferrank, pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "t.csv"
    ...     _ = path.write_text("a;y\n0,5;left\n1,5;right\n")
    ...     columns = ferrank.inspect(ferrank.CSVFile(path, delimiter=";"))["columns"]
    >>> [(column["name"], column["range"]) for column in columns]
    [('a', (0.5, 1.5)), ('y', None)]
    """

    path: str | os.PathLike[str]
    delimiter: str | None = None
    header: bool | None = None
    encoding: str | None = None
    decimal: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and (not isinstance(self.delimiter, str) or len(self.delimiter) != 1):
            raise SettingError(f"delimiter: {self.delimiter!r} is not one character")
        if self.header is not None:
            flag_of(self.header, "header")
        if self.decimal not in (None, ".", ","):
            raise SettingError(f"decimal: {self.decimal!r} is neither '.' nor ','")
        if not isinstance(self.encoding, str | None):
            raise SettingError(f"encoding: {self.encoding!r} is no name; use utf-8 or cp1250, for example")
        try:
            codecs.lookup(self.encoding or "utf-8")
        except LookupError as error:
            raise SettingError(f"encoding: {error}; use utf-8 or cp1250, for example") from error

    def seen(self) -> "CSVFile":
        """Return this file with all that can be seen from its beginning.

        Raises
        ------
        ResourceError, SettingError
            The file cannot be read, or another delimiter parts its fields.
        """
        head = _head(self.path)
        encoding = self.encoding or _encoding_of(head, self.path)
        with reading(Path(self.path)):
            lines = _lines(head, encoding)
        delimiter = self.delimiter or _delimiter_of(lines)
        rows = _rows(lines, delimiter)
        if self.delimiter is not None and len(rows) > 1 and all(len(row) == 1 for row in rows):
            self._check_other(lines)
        header = self.header if self.header is not None else not _are_numbers(rows[0]) if rows else True
        decimal = self.decimal or _decimal_of(rows, delimiter)
        return replace(self, encoding=encoding, delimiter=delimiter, header=header, decimal=decimal)

    def _check_other(self, lines: list[str]) -> None:
        """Raise an error if another delimiter parts all lines alike."""
        other = _delimiter_of(lines)
        lengths = set(map(len, _rows(lines, other)))
        if len(lengths) == 1 and lengths != {1}:
            raise SettingError(
                f"delimiter: {self.delimiter!r} makes one column of {self.path}, whose fields seem to be "
                f"parted by {other!r}; give that, or leave it out"
            )


def _head(path: str | os.PathLike[str]) -> bytes:
    with reading(Path(path)), unpacking(regular(path)) as stream:
        head: bytes = stream.read(_HEAD_BYTES)
    return head


def _encoding_of(head: bytes, path: str | os.PathLike[str]) -> str:
    for mark, encoding in _BOMS.items():
        if head.startswith(mark):
            return encoding
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        warnings.warn(
            f"{visible(str(path))}: is not UTF-8 and read as {_OTHER_ENCODING}; "
            "CSVFile(path, encoding=…) says otherwise",
            UnicodeWarning,
            stacklevel=2,
        )
        return _OTHER_ENCODING
    return "utf-8"


def _lines(head: bytes, encoding: str) -> list[str]:
    """Return the first lines that are not empty; the last one only if it is whole."""
    text = codecs.getincrementaldecoder(encoding)(errors="replace").decode(head).lstrip("\ufeff")
    lines = text.splitlines()
    if len(head) == _HEAD_BYTES and len(lines) > 1:
        lines.pop()
    return [line for line in lines if line.strip()][:_HEAD_LINES]


def _rows(lines: list[str], delimiter: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=delimiter))
    except csv.Error:
        return []


def _delimiter_of(lines: list[str]) -> str:
    """Return the delimiter that makes most rows of the same length; a comma may be a decimal sign."""

    def quality(delimiter: str) -> tuple[float, bool, int]:
        lengths = Counter(map(len, _rows(lines, delimiter)))
        length, rows = lengths.most_common(1)[0] if lengths else (0, 0)
        return (rows / lengths.total(), delimiter != ",", length) if length > 1 else (0.0, False, 0)

    # The first of equals: a comma, also where there is one column.
    return max(_DELIMITERS, key=quality)


def _are_numbers(row: list[str]) -> bool:
    return all(NUMBER.fullmatch(field) for field in row)


def _decimal_of(rows: list[list[str]], delimiter: str) -> str:
    fields = [field for row in rows for field in row if NUMBER.fullmatch(field)]
    has_commas = any(_DECIMAL_COMMA.fullmatch(field) for field in fields)
    return "," if delimiter != "," and has_commas and not any("." in field for field in fields) else "."


def open_csv(file: CSVFile, as_text: Iterable[str], temp_dir: Folder, *, is_part: bool = False) -> Passes:
    """Open a CSV file; missing values are empty, ``?``, ``NA`` and the like.

    The types are those of the first block (at least 4 MiB and 64 lines) and then hold for the whole file; all
    numbers are read as float64, so that a column may begin with integers. A column without a value is float64
    as well, or null if the file ``is_part`` of a data set, whose other files have the type.
    """
    path, file = Path(file.path), file.seen()
    with reading(path):
        block = _block_bytes(path)
        try:
            opened = _stream(file, block, None, {})
        except pa.ArrowInvalid as error:
            if path.stat().st_size == 0:
                raise DataError(
                    f"{path}: the file is empty; give one with names of columns, and rows"
                ) from None
            what = _explain_ragged(partial(_stream, file, block, None, {}), str(error))
            raise DataError(f"{path}: {what or error}") from None
        except UnicodeDecodeError:
            raise DataError(f"{path}: {_UNDECODED}") from None
        schema = opened.schema
        has_no_values = is_part and pa.null() in schema.types and _is_one_block(opened)
        without_values = pa.null() if has_no_values else pa.float64()
        opened.close()
        names = None if file.header else numbered(len(schema))
        # Names that are no text are found here.
        fields = list(zip(names or schema.names, schema.types, strict=True))
    texts = set(as_text)
    types = {name: pa.string() if name in texts else _type_of(kind, without_values) for name, kind in fields}
    # What has no value may be integers in other parts.
    known = {
        name: {_INTEGERS: ""}
        for name, kind in fields
        if pa.types.is_integer(kind) or pa.types.is_null(types[name])
    }
    schema = pa.schema([pa.field(name, types[name], metadata=known.get(name)) for name, _ in fields])
    make = partial(_stream, file, block, names, types)
    return Passes(schema, make, partial(_explain, schema, make), str(path))


def _is_one_block(opened: pa.csv.CSVStreamingReader) -> bool:
    try:
        return len(list(islice(opened, 2))) < 2
    except pa.ArrowException:  # a value of the second block does not have the type inferred from the first
        return False


def _type_of(inferred: pa.DataType, without_values: pa.DataType) -> pa.DataType:
    if pa.types.is_null(inferred):
        return without_values
    if pa.types.is_integer(inferred):
        return pa.float64()
    # Text that is not of the encoding.
    return pa.string() if pa.types.is_binary(inferred) else inferred


def _block_bytes(path: Path) -> int:
    with unpacking(path) as stream:
        header = 0
        while piece := stream.read(1 << 20):
            end = re.search(rb"[\r\n]", piece)
            header += end.start() if end else len(piece)
            if end:
                break
            if header > _LINE_BYTES:
                raise DataError(
                    f"{path}: the first line does not end within {_LINE_BYTES >> 20} MiB; is it a CSV file? "
                    "Break it into lines, or convert it to Parquet"
                )
    return min(max(_BLOCK_BYTES, _LINES_IN_BLOCK * header), (1 << 31) - 1)


def _stream(
    file: CSVFile,
    block: int,
    names: list[str] | None,
    types: dict[str, pa.DataType],
    *,
    use_threads: bool = True,
) -> pa.csv.CSVStreamingReader:
    return pa.csv.open_csv(
        unpacking(Path(file.path)),
        read_options=pa.csv.ReadOptions(
            use_threads=use_threads,
            block_size=block,
            # Under this name pyarrow knows that there is nothing to convert.
            encoding="utf8" if file.encoding == "utf-8" else file.encoding,
            column_names=names,
            autogenerate_column_names=not file.header and names is None,
        ),
        parse_options=pa.csv.ParseOptions(delimiter=file.delimiter, newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=types,
            null_values=MISSING,
            strings_can_be_null=True,
            decimal_point=file.decimal,
        ),
    )


_UNDECODED = (
    "is no text of the encoding that it seems to have; say another, CSVFile(path, encoding='cp1250'), for "
    "example, if it is a CSV file at all"
)


def _explain(schema: pa.Schema, make: Callable[..., pa.csv.CSVStreamingReader], message: str) -> str:
    """Word an error of a pass for people: which row or column, which value, what to do."""
    if "codec can't decode" in message:
        return _UNDECODED
    if ragged := _explain_ragged(make, message):
        return ragged
    found = re.search(r"CSV column #(\d+):.*?error to ([\w\[\]]+): (.*)", message, re.DOTALL)
    if found is None:
        return message
    column, wanted, what = found.groups()
    name = schema.names[int(column)]
    if "UTF8" in what:
        return (
            f"column '{name}' is not UTF-8; say its encoding: CSVFile(path, encoding='cp1250'), for example"
        )
    return (
        f"column '{name}' began with values of type {wanted}, but later: {what.strip()}; "
        "mend the value, or drop the column"
    )


def _explain_ragged(make: Callable[..., pa.csv.CSVStreamingReader], message: str) -> str | None:
    """Word the error of a row with more or fewer fields than the first; None if it is another error."""
    found = re.search(r"Expected (\d+) columns, got (\d+): (.*)", message, re.DOTALL)
    if found is None:
        return None
    expected, got, text = found.groups()
    return (
        f"{_ragged_row(make)} has {got} field{'' if got == '1' else 's'}, the first row {expected}: "
        f"{text.strip()!r}; mend the row, or quote fields that hold delimiters or line breaks"
    )


def _ragged_row(make: Callable[..., pa.csv.CSVStreamingReader]) -> str:
    """Return which row it is, for which the file is read again: rows are counted only without threads."""
    try:
        for _ in make(use_threads=False):
            pass
    except (pa.ArrowException, OSError) as error:
        if found := re.search(r"Row #(\d+): Expected", str(error)):
            return f"row {int(found[1]):,} (blank lines not counted)"
    return "a row"
