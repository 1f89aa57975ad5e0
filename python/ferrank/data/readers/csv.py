"""CSV files whose writing is not said."""

from collections.abc import Iterable
from pathlib import Path

from ferrank.data.delimited import CSVFile, open_csv
from ferrank.data.opening import Folder, Passes
from ferrank.data.readers import Reader

__all__ = ["READER"]


def _open(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Passes:
    return open_csv(CSVFile(path), as_text, temp_dir)


def _open_part(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Passes:
    return open_csv(CSVFile(path), as_text, temp_dir, is_part=True)


READER = Reader(
    _open,
    (".csv", ".tsv"),
    (".txt", ".data", ".dat"),
    is_self_describing=False,
    unpacks=True,
    open_part=_open_part,
)
