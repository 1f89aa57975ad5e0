"""Excel files, of which the first sheet is read into memory."""

from collections.abc import Iterable
from pathlib import Path

from ferrank._core import Source
from ferrank.data.opening import Folder, reading
from ferrank.data.readers import Reader
from ferrank.data.tables import as_table
from ferrank.errors import ResourceError

__all__ = ["READER"]

_MOST_BYTES = 512 << 20


def _open(path: Path, as_text: Iterable[str], temp_dir: Folder) -> Source:
    import zipfile

    with reading(path):
        with zipfile.ZipFile(path) as parts:
            n_bytes = sum(part.file_size for part in parts.infolist())
        if n_bytes > _MOST_BYTES:
            raise ResourceError(
                f"{path}: unpacks to {n_bytes >> 20} MiB, all of it in memory; save it as CSV"
            )
        try:
            import pandas as pd

            frame = pd.read_excel(path)
        except ImportError as error:
            raise ResourceError(
                f"{path}: Excel files need pandas and openpyxl; pip install pandas openpyxl, or save it as "
                "CSV"
            ) from error
        return Source.table(as_table(frame), str(path))


READER = Reader(_open, (".xlsx",))
