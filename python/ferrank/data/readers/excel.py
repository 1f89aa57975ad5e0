"""Excel files, of which the first sheet is read into memory.

A column has the type of its cells. pandas by default would change the type: text of digits, such as codes
with leading zeros, to numbers, and booleans with empty cells to floats.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from ferrank._core import Source
from ferrank.data.delimited import MISSING
from ferrank.data.opening import Folder, reading
from ferrank.data.readers import Reader
from ferrank.data.tables import check_names
from ferrank.errors import ColumnTypeError, DataError, FerrankError, ResourceError

__all__ = ["READER"]

_MOST_BYTES = 512 << 20


def _open(path: Path, as_text: Iterable[str], temp_dir: Folder, *, is_part: bool = False) -> Source:
    import zipfile

    with reading(path):
        try:
            with zipfile.ZipFile(path) as parts:
                n_bytes = sum(part.file_size for part in parts.infolist())
        except zipfile.BadZipFile as error:
            raise _damaged(path, error) from error
        if n_bytes > _MOST_BYTES:
            raise ResourceError(
                f"{path}: unpacks to {n_bytes >> 20} MiB, all of it in memory; save it as CSV"
            )
        try:
            frame = _first_sheet(path)
        except ImportError as error:
            raise ResourceError(
                f"{path}: Excel files need pandas and openpyxl; pip install pandas openpyxl, or save it as "
                "CSV"
            ) from error
        check_names(frame.columns, str(path))
        columns = {str(name): _column(frame[name], f"{path}: column '{name}'") for name in frame.columns}
        if not is_part:
            columns = {
                name: column.cast(pa.float64()) if pa.types.is_null(column.type) else column
                for name, column in columns.items()
            }
        return Source.table(pa.table(columns), str(path))


def _first_sheet(path: Path) -> Any:
    """Return the first worksheet as a frame of objects."""
    import pandas as pd

    try:
        with pd.ExcelFile(path, engine="openpyxl") as book:
            # A chart may have a sheet of its own.
            sheets = book.book.worksheets
            if not sheets:
                raise DataError(f"{path}: has no worksheet; save it as CSV")
            # pandas would rename the second of two columns of one name.
            header = next(sheets[0].iter_rows(values_only=True), ())
            check_names([str(name) for name in header if name is not None], str(path))
            return pd.read_excel(
                book, sheet_name=sheets[0].title, dtype=object, na_values=MISSING, keep_default_na=False
            )
    except (FerrankError, ImportError, OSError, MemoryError):
        raise
    except Exception as error:
        # openpyxl lets through what its libraries for zip and XML raise.
        raise _damaged(path, error) from error


def _damaged(path: Path, error: Exception) -> DataError:
    return DataError(
        f"{path}: no Excel workbook, or a damaged one ({error}); save it again as .xlsx, or as CSV"
    )


def _column(cells: Any, called: str) -> Any:
    """Return a column of a frame of objects, of the type that its cells have."""
    import pandas as pd

    try:
        if pd.api.types.infer_dtype(cells).startswith("mixed"):
            # Text beside numbers may be one, too.
            cells = pd.to_numeric(cells)
        try:
            return pa.array(cells, from_pandas=True)
        except OverflowError:
            return pa.array(cells.astype(float), from_pandas=True)
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
        found = ", ".join(sorted({type(cell).__name__ for cell in cells.dropna()}))
        raise ColumnTypeError(
            f"{called} has cells of the types {found}; use one, or drop the column"
        ) from error


READER = Reader(_open, (".xlsx", ".xlsm"), open_part=partial(_open, is_part=True))
