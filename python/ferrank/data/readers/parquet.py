"""Parquet files, which the engine reads."""

from collections.abc import Iterable
from pathlib import Path

from ferrank._core import Source
from ferrank.data.opening import Folder
from ferrank.data.readers import Reader

__all__ = ["READER"]


def _open(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
    return Source.parquet(path, temp_dir)


READER = Reader(_open, (".parquet", ".pq"), marks={b"PAR1": ".parquet"})
