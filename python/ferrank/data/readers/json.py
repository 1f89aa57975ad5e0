"""JSON files: an object on each line, or one list of objects, copied to a temporary Arrow file."""

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa

from ferrank import _core
from ferrank._core import Source
from ferrank.data.opening import Folder, TempFolder, check_temp_dir, reading, suffix_of, unpacking
from ferrank.data.readers import Reader
from ferrank.errors import DataError
from ferrank.run import finish

__all__ = ["READER"]

_BLOCK_BYTES = 1 << 20


def _open(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
    with reading(path):
        if suffix_of(path) == path.suffix.lower():
            return _json(path, str(path), temp_dir)
        folder = TempFolder(temp_dir)
        unpacked = folder.path / "unpacked.json"
        with unpacking(path) as stream, unpacked.open("wb") as file:
            shutil.copyfileobj(stream, file, _BLOCK_BYTES)
        return _json(unpacked, str(path), temp_dir)


def _json(path: Path, name: str, temp_dir: Folder) -> Source:
    check_temp_dir(temp_dir)
    try:
        source: Source = finish(_core.read_json(path, name, temp_dir))
    except DataError as error:
        hints = [hint for what, hint in _HINTS.items() if re.search(what, str(error))]
        if not hints:
            raise
        raise DataError(f"{error}; {hints[0]}") from error
    if source.rows == 1 and _holds_columns(source):
        raise DataError(f"{name}: has no rows, but one object of columns; {_AS_ROWS}")
    return source


def _holds_columns(row: Source) -> bool:
    """Return whether the values of a row are objects and lists, as columns are, and not all label sets."""
    kinds = pa.RecordBatchReader.from_stream(row).schema.types
    return all(map(pa.types.is_nested, kinds)) and not all(kind == pa.list_(pa.string()) for kind in kinds)


_AS_ROWS = "write an object for each row, as to_json(path, orient='records') of pandas does"
_HINTS = {
    r"row \d+: (expected value|invalid number)": "JSON has no NaN and no infinity; null stands for missing",
    r"row \d+: is longer than": _AS_ROWS,
}


READER = Reader(_open, (".jsonl", ".ndjson"), (".json",), {b"{": ".jsonl", b"[": ".json"}, unpacks=True)
