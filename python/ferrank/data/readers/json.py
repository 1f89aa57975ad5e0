"""JSON files: an object on each line, or one list of objects, copied to a temporary Arrow file."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from ferrank import _core
from ferrank._core import Source
from ferrank.data.opening import Folder, TempFolder, check_temp_dir, reading, suffix_of, unpacking
from ferrank.data.readers import Reader
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
    source: Source = finish(_core.read_json(path, name, temp_dir))
    return source


READER = Reader(_open, (".jsonl", ".ndjson"), (".json",), {b"{": ".jsonl", b"[": ".json"})
