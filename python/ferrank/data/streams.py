"""Streams that can be read only once: kept in a temporary file."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ferrank import _core
from ferrank._core import Source
from ferrank.data.opening import Folder, check_temp_dir
from ferrank.data.tables import checked, readable
from ferrank.errors import FerrankError
from ferrank.run import finish

__all__ = ["kept_stream"]


def kept_stream(stream: Any, temp_dir: Folder) -> Source:
    """Return the batches of ``stream`` as a source: a reader of pyarrow, or the capsule of a stream.

    Ctrl-C within a reader of the user stays what it is, although the exception comes by way of the engine;
    other exceptions of the reader are the cause of the DataError that has their text.
    """
    check_temp_dir(temp_dir)
    raised: list[BaseException] = []

    def batches() -> Iterator[pa.RecordBatch]:
        try:
            yield from map(checked, stream)
        except GeneratorExit:
            raise
        except BaseException as error:
            raised.append(error)
            raise

    is_reader = isinstance(stream, pa.RecordBatchReader)
    given = (
        pa.RecordBatchReader.from_batches(readable(stream.schema), batches())
        if is_reader
        else _Capsule(stream)
    )
    try:
        source: Source = finish(_core.spill(given, "stream", temp_dir))
    except FerrankError as error:
        if raised and not isinstance(raised[0], Exception):
            raise raised[0] from None
        raise error from (raised[0] if raised else error.__cause__)
    return source


class _Capsule:
    """An object whose Arrow stream is a capsule that was given bare."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return self._capsule
