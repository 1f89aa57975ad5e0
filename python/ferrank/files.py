"""Parquet and CSV files, read by pyarrow: a fresh stream for each pass."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset

from ferrank._core import Source
from ferrank.errors import DataError, ResourceError

__all__ = ["READERS", "suffix_of"]

_BATCH_ROWS = 1 << 16
_CSV_BLOCK_BYTES = 4 << 20
_CSV_LINES_IN_BLOCK = 64
_CSV_MISSING = ["", "?", "NA", "N/A", "#N/A", "NaN", "nan", "-nan", "null", "NULL", "<NA>"]


def suffix_of(path: Path) -> str:
    """Return the suffix that tells the format, without that of a compressor.

    >>> suffix_of(Path("genes.CSV.gz"))
    '.csv'
    """
    name = path.with_suffix("") if path.suffix.lower() in {".gz", ".bz2", ".zst", ".lz4"} else path
    return name.suffix.lower()


def _parquet(path: Path, as_text: Iterable[str]) -> Source:
    options = pa.dataset.ParquetFragmentScanOptions(pre_buffer=False)
    file_format = pa.dataset.ParquetFileFormat(default_fragment_scan_options=options)
    try:
        dataset = pa.dataset.dataset(path, format=file_format)
        rows = dataset.count_rows()
    except (OSError, pa.ArrowInvalid) as error:
        raise _opening(path, error) from error

    def scan() -> pa.RecordBatchReader:
        return dataset.scanner(batch_size=_BATCH_ROWS, batch_readahead=2, fragment_readahead=1).to_reader()

    return Source.factory(dataset.schema, scan, str, str(path), rows)


def _csv(path: Path, as_text: Iterable[str], delimiter: str = ",") -> Source:
    """Open a CSV file with a header; missing values are empty, ``?``, ``NA`` and the like.

    The types are those of the first block (at least 4 MiB and 64 lines) and then hold for the whole file;
    all numbers are read as float64, so that a column may begin with integers.
    """
    try:
        block = _csv_block_bytes(path)
        opened = _csv_stream(path, delimiter, block, {})
        schema = opened.schema
        opened.close()
    except (OSError, pa.ArrowInvalid) as error:
        raise _opening(path, error) from error
    texts = set(as_text)
    types = {f.name: pa.string() if f.name in texts else _csv_type(f.type) for f in schema}
    schema = pa.schema([pa.field(f.name, types[f.name]) for f in schema])
    make = partial(_csv_stream, path, delimiter, block, types)
    return Source.factory(schema, make, partial(_explain_csv, schema), str(path))


def _csv_type(inferred: pa.DataType) -> pa.DataType:
    number = pa.types.is_integer(inferred) or pa.types.is_null(inferred)
    return pa.float64() if number else inferred


def _csv_block_bytes(path: Path) -> int:
    with pa.input_stream(path, compression="detect") as stream:
        header = 0
        while piece := stream.read(1 << 20):
            end = piece.find(b"\n")
            header += len(piece) if end < 0 else end
            if end >= 0:
                break
    return min(max(_CSV_BLOCK_BYTES, _CSV_LINES_IN_BLOCK * header), (1 << 31) - 1)


def _csv_stream(
    path: Path, delimiter: str, block: int, types: dict[str, pa.DataType]
) -> pa.csv.CSVStreamingReader:
    return pa.csv.open_csv(
        path,
        read_options=pa.csv.ReadOptions(block_size=block),
        parse_options=pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa.csv.ConvertOptions(
            column_types=types, null_values=_CSV_MISSING, strings_can_be_null=True
        ),
    )


def _explain_csv(schema: pa.Schema, message: str) -> str:
    """Word a conversion error for people: which column, which value, what to do."""
    found = re.search(r"CSV column #(\d+):.*?error to ([\w\[\]]+): (.*)", message, re.DOTALL)
    if found is None:
        return message
    column, wanted, what = found.groups()
    name = schema.names[int(column)]
    return (
        f"column '{name}' began with values of type {wanted}, but later: {what.strip()}; "
        "mend the value, or drop the column"
    )


def _opening(path: Path, error: Exception) -> Exception:
    """Return the exception for a file that cannot be opened."""
    if not path.exists():
        return ResourceError(f"{path}: no such file")
    if isinstance(error, OSError):
        return ResourceError(f"{path}: {error}")
    return DataError(f"{path}: {error}")


READERS: dict[str, Callable[[Path, Iterable[str]], Source]] = {
    ".csv": _csv,
    ".tsv": partial(_csv, delimiter="\t"),
    ".parquet": _parquet,
    ".pq": _parquet,
}
