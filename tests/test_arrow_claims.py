"""Arrow files that claim what cannot be: an error, soon, and never other numbers."""

import io
import struct
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc as ipc
import pytest

import ferrank as fr

ROWS = 40
MESSAGE = b"\xff\xff\xff\xff"


def written(table: pa.Table, path: Path, compression: str | None = None) -> Path:
    options = ipc.IpcWriteOptions(compression=compression)
    with ipc.new_file(path, table.schema, options=options) as writer:
        writer.write_table(table)
    return path


def with_column(column: pa.Array) -> pa.Table:
    n = len(column)
    return pa.table({"a": np.arange(float(n)), "c": column, "y": np.arange(n) % 2})


def of_numbers(kind: pa.DataType, value: int, width: int) -> pa.Array:
    """Return a column of one value, whatever its type says of it."""
    bytes_ = value.to_bytes(width, "little", signed=True) * ROWS
    return pa.Array.from_buffers(kind, ROWS, [None, pa.py_buffer(bytes_)])


@pytest.fixture
def file() -> bytearray:
    """Return the bytes of a file of two batches."""
    table = pa.table({"a": np.arange(float(ROWS)), "y": np.arange(ROWS) % 2})
    stream = io.BytesIO()
    with ipc.new_file(stream, table.schema) as writer:
        writer.write_table(table)
        writer.write_table(table)
    return bytearray(stream.getvalue())


def first_block(file: bytearray) -> tuple[int, int]:
    """Return where the footer describes the first batch, and the length of the batch's message."""
    at = file.index(MESSAGE, file.index(MESSAGE, 8) + 4)
    (length,) = struct.unpack_from("<i", file, at + 4)
    return file.rindex(struct.pack("<qi", at, length + 8)), length + 8


@pytest.mark.parametrize("by", [8, 16, -8])
def test_the_footer_cannot_move_the_buffers_of_a_batch(file: bytearray, by: int, tmp_path: Path) -> None:
    path = tmp_path / "moved.arrow"
    block, length = first_block(file)
    path.write_bytes(file)
    assert fr.inspect(path)["columns"][0]["range"] == (0, ROWS - 1)
    struct.pack_into("<i", file, block + 8, length + by)
    path.write_bytes(file)
    with pytest.raises(fr.DataError, match=r"moved\.arrow: the Arrow data are damaged.*disagree"):
        fr.inspect(path)


def test_the_footer_and_a_message_agree_on_the_body(file: bytearray, tmp_path: Path) -> None:
    path = tmp_path / "body.arrow"
    block, _ = first_block(file)
    (length,) = struct.unpack_from("<q", file, block + 16)
    struct.pack_into("<q", file, block + 16, length - 8)
    path.write_bytes(file)
    with pytest.raises(fr.DataError, match="length of its body"):
        fr.inspect(path)


@pytest.mark.parametrize(
    ("kind", "value", "width"),
    [
        (pa.time32("s"), 86_400, 4),
        (pa.time32("ms"), -1, 4),
        (pa.time64("us"), 86_400_000_000, 8),
        (pa.date64(), 5, 8),
        (pa.decimal32(5, 2), 10**8, 4),
        (pa.decimal64(5, 2), 10**8, 8),
        (pa.decimal128(5, 2), 10**30, 16),
        (pa.decimal256(5, 2), 10**60, 32),
    ],
    ids=str,
)
def test_values_that_the_type_does_not_have(
    kind: pa.DataType, value: int, width: int, tmp_path: Path
) -> None:
    column = of_numbers(kind, value, width)
    nested = pa.StructArray.from_arrays([column], ["p"])
    codes = pa.array([0] * ROWS, pa.int8())
    category = pa.DictionaryArray.from_arrays(codes, of_numbers(kind, value, width)[:1])
    for number, damaged in enumerate([column, nested, category]):
        table = with_column(damaged)
        with pytest.raises(pa.ArrowInvalid):
            table.validate(full=True)
        path = written(table, tmp_path / f"{number}.arrow")
        with pytest.raises(fr.DataError, match=f"{number}.arrow: .*the column 'c': .*which"):
            fr.inspect(path)
        with pytest.raises(fr.DataError, match="'c'"):
            fr.convert(path, tmp_path / "copy.arrow")
    missing = pa.Array.from_buffers(kind, ROWS, [pa.py_buffer(bytes(5)), column.buffers()[1]])
    assert fr.inspect(written(with_column(missing), tmp_path / "m.arrow"))["columns"][1]["missing"] == ROWS


@pytest.mark.parametrize("compression", [None, "zstd"])
@pytest.mark.parametrize("nested", [False, True])
def test_views_of_one_long_text_are_refused_at_once(
    compression: str | None, nested: bool, tmp_path: Path
) -> None:
    rows, length = 20_000, 1_000_000
    views = np.zeros((rows, 4), np.int32)
    views[:, 0], views[:, 1] = length, int.from_bytes(b"zzzz", "little")
    texts = [None, pa.py_buffer(views.tobytes()), pa.py_buffer(b"z" * length)]
    column = pa.Array.from_buffers(pa.string_view(), rows, texts)
    if nested:
        column = pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int32()), column)
    path = written(with_column(column), tmp_path / "views.arrow", compression)
    with pytest.raises(fr.DataError, match="1000000 bytes of text are used for 20000000000"):
        fr.inspect(path)


def test_views_are_read(tmp_path: Path) -> None:
    texts = [None if i % 7 == 0 else "x" * (i % 30) for i in range(ROWS)]
    lists = [["ab" * 20, "c"]] * ROWS
    columns = {"t": pa.array(texts, pa.string_view()), "l": pa.array(lists, pa.list_(pa.string_view()))}
    columns["c"] = columns["t"].cast(pa.string()).dictionary_encode()
    table = pa.table(columns | {"y": np.arange(ROWS) % 2})
    for compression in (None, "lz4", "zstd"):
        path = written(table, tmp_path / "views.arrow", compression)
        fr.convert(path, tmp_path / "copy.arrow")
        with ipc.open_file(tmp_path / "copy.arrow") as copy:
            assert copy.read_all()["t"].to_pylist() == texts


def test_list_views_of_the_same_items_are_refused(tmp_path: Path) -> None:
    rows, items = 20_000, 30_000
    starts, sizes = np.zeros(rows, np.int32), np.full(rows, items, np.int32)
    buffers = [None, pa.py_buffer(starts.tobytes()), pa.py_buffer(sizes.tobytes())]
    names = pa.array(["a", "b"] * (items // 2))
    column = pa.Array.from_buffers(pa.list_view(pa.string()), rows, buffers, children=[names])
    path = written(with_column(column), tmp_path / "lists.arrow")
    with pytest.raises(fr.DataError, match="30000 items of lists are used for 600000000"):
        fr.inspect(path)
