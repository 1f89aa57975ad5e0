"""Parquet files that claim more than they hold: an error, and no memory in proportion to the claim."""

import base64
import gzip
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ferrank as fr

INT64, BYTE_ARRAY, FIXED = 2, 6, 7
PLAIN, RLE, DELTA_LENGTH, DELTA = 0, 3, 6, 7
RLE_DICTIONARY, GZIP = 8, 2
Field = tuple[int, int, bytes]


def number(value: int) -> bytes:
    """Return a number as Thrift's compact protocol and Parquet's levels have it."""
    digits = b""
    while value > 0x7F:
        digits += bytes([value & 0x7F | 0x80])
        value >>= 7
    return digits + bytes([value])


def signed(value: int) -> bytes:
    return number(2 * value if value >= 0 else -2 * value - 1)


def integer(field: int, value: int, kind: int = 5) -> Field:
    return field, kind, signed(value)


def text(field: int, value: str) -> Field:
    return field, 8, number(len(value)) + value.encode()


def listed(field: int, kind: int, values: list[bytes]) -> Field:
    return field, 9, bytes([0xF0 | kind]) + number(len(values)) + b"".join(values)


def structure(*fields: Field) -> bytes:
    found, last = b"", 0
    for field, kind, value in fields:
        found, last = found + bytes([(field - last) << 4 | kind]) + value, field
    return found + b"\0"


def element(name: str, **given: int) -> bytes:
    """Return a column of the schema, which may have ``children``."""
    numbers = {"type": 1, "width": 2, "repetition": 3, "children": 5, "converted": 6}
    fields = [integer(numbers[key], value) for key, value in given.items()]
    return structure(*sorted([*fields, text(4, name)], key=lambda field: field[0]))


def page(body: bytes, values: int, encoding: int = PLAIN, unpacked: int = 0) -> bytes:
    header = [integer(1, values), integer(2, encoding), integer(3, RLE), integer(4, RLE)]
    sizes = [integer(1, 0), integer(2, unpacked or len(body)), integer(3, len(body))]
    return structure(*sizes, (5, 12, structure(*header))) + body


def dictionary(body: bytes, values: int) -> bytes:
    header = structure(integer(1, values), integer(2, PLAIN))
    sizes = [integer(1, 2), integer(2, len(body)), integer(3, len(body))]
    return structure(*sizes, (7, 12, header)) + body


def chunk(kind: int, path: list[str], values: int, size: int, encodings: list[int], codec: int) -> bytes:
    about = structure(
        integer(1, kind),
        listed(2, 5, [signed(encoding) for encoding in encodings]),
        listed(3, 8, [number(len(name)) + name.encode() for name in path]),
        integer(4, codec),
        integer(5, values, 6),
        integer(6, size, 6),
        integer(7, size, 6),
        integer(9, 4, 6),
    )
    return structure(integer(2, 4, 6), (3, 12, about))


def written(
    path: Path,
    pages: bytes,
    schema: list[bytes],
    kind: int,
    names: list[str],
    rows: int,
    values: int,
    codec: int = 0,
) -> Path:
    """Write a file of one column."""
    encodings = [PLAIN, RLE, RLE_DICTIONARY, DELTA_LENGTH, DELTA]
    group = structure(
        listed(1, 12, [chunk(kind, names, values, len(pages), encodings, codec)]),
        integer(2, len(pages), 6),
        integer(3, rows, 6),
    )
    root = element("schema", children=1)
    footer = structure(
        integer(1, 1), listed(2, 12, [root, *schema]), integer(3, rows, 6), listed(4, 12, [group])
    )
    path.write_bytes(b"PAR1" + pages + footer + struct.pack("<I", len(footer)) + b"PAR1")
    return path


def levels(*runs: tuple[int, int]) -> bytes:
    """Return levels of one bit as runs of a length and a value."""
    packed = b"".join(number(2 * length) + bytes([value]) for length, value in runs)
    return struct.pack("<I", len(packed)) + packed


def _deep(path: Path) -> Path:
    names = [f"g{level}" for level in range(5_000)]
    groups = [element(name, repetition=1, children=1) for name in names]
    return written(
        path, page(bytes(8), 1), [*groups, element("x", type=INT64, repetition=1)], INT64, names, 1, 1
    )


def _fixed(path: Path) -> Path:
    schema = [element("x", type=FIXED, width=2**31 - 1, repetition=1)]
    return written(path, page(levels((10, 0)), 10), schema, FIXED, ["x"], 10, 10)


def _dictionary(path: Path) -> Path:
    pages = dictionary(bytes(80), 2**31 - 1) + page(b"\4" + number(20) + b"\3", 10, RLE_DICTIONARY)
    return written(path, pages, [element("x", type=INT64, repetition=0)], INT64, ["x"], 10, 10)


def _page(path: Path) -> Path:
    packed = gzip.compress(bytes(64 << 20))
    pages = page(packed, 10, unpacked=64 << 20)
    schema = [element("x", type=INT64, repetition=0)]
    return written(path, pages, schema, INT64, ["x"], 10, 10, GZIP)


def _list(path: Path) -> Path:
    items = 300_000_000
    body = levels((1, 0), (items - 1, 1)) + levels((items, 1)) + b"\0" + number(2 * items)
    pages = dictionary(struct.pack("<I", 1) + b"a", 1) + page(body, items, RLE_DICTIONARY)
    schema = [
        element("x", repetition=0, children=1, converted=3),
        element("list", repetition=2, children=1),
        element("element", type=BYTE_ARRAY, repetition=0, converted=0),
    ]
    return written(path, pages, schema, BYTE_ARRAY, ["x", "list", "element"], 1, items)


def _lengths(encoding: int, *heads: tuple[int, int, int, int]) -> Callable[[Path], Path]:
    """Return a column of texts whose lengths have these heads: block, blocks within, count, first."""

    def make(path: Path) -> Path:
        body = b"".join(
            number(block) + number(within) + number(count) + signed(first)
            for block, within, count, first in heads
        )
        schema = [element("x", type=BYTE_ARRAY, repetition=0, converted=0)]
        return written(path, page(body, 10, encoding), schema, BYTE_ARRAY, ["x"], 10, 10)

    return make


CLAIMS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "columns within columns": (_deep, "too deep"),
    "values of a fixed length": (_fixed, "values of 2147483647 bytes each"),
    "values of a dictionary": (_dictionary, "a dictionary claims more values than it has"),
    "bytes of a page": (_page, "a page takes more bytes than the footer says"),
    "items of a list": (_list, "pages claim more values than there can be"),
    "lengths": (_lengths(DELTA_LENGTH, (128, 4, 2**60, 1)), "lengths of texts are damaged"),
    "lengths of prefixes": (_lengths(DELTA, (128, 4, 2**60, 1)), "lengths of texts are damaged"),
    "lengths of suffixes": (
        _lengths(DELTA, (128, 4, 1, 0), (128, 4, 2**60, 1)),
        "lengths of texts are damaged",
    ),
}


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_is_claimed_is_not_allocated(tmp_path: Path, claim: str) -> None:
    make, message = CLAIMS[claim]
    path = make(tmp_path / "t.parquet")
    assert path.stat().st_size < 200_000
    code = f"""
        import resource
        import ferrank as fr
        resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
        try:
            fr.inspect({str(path)!r})
        except fr.DataError as error:
            print(error)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert message in done.stdout


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_a_long_text_that_many_rows_share_is_held_in_few_of_them(tmp_path: Path, kind: pa.DataType) -> None:
    rows, path = 3_000, tmp_path / "t.parquet"
    words = pa.DictionaryArray.from_arrays(
        np.arange(rows, dtype=np.int32) % 2, pa.array(["a" * (1 << 20), "b"], kind)
    )
    plain = pa.schema([("x", kind), ("y", pa.float64())])
    table = pa.table({"x": words, "y": np.arange(rows) * 37.0 % 101})
    with pq.ParquetWriter(path, table.schema, store_schema=False, write_statistics=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({b"ARROW:schema": base64.b64encode(plain.serialize())})
    code = f"""
        import resource
        import ferrank as fr
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = fr.inspect({str(path)!r})["columns"][0]
        print(found["kind"], found["distinct"], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    found, distinct, taken = done.stdout.split()
    assert (found, distinct) == ("nominal", "2")
    assert int(taken) < 200 << 10, "KiB, of 1.5 GiB of text"


@pytest.mark.parametrize("encoding", ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_texts_in_any_encoding_are_read(tmp_path: Path, encoding: str, version: str) -> None:
    rng, path = np.random.default_rng(0), tmp_path / "t.parquet"
    words = [
        None if rng.random() < 0.1 else "".join(rng.choice(list("äbc"), rng.integers(40)))
        for _ in range(5_000)
    ]
    table = pa.table({"x": sorted(words, key=str), "same": ["once"] * 5_000, "y": rng.normal(size=5_000)})
    pq.write_table(
        table,
        path,
        use_dictionary=False,
        column_encoding={"x": encoding, "same": encoding},
        data_page_version=version,
    )
    assert pa.table(fr.Dataset(path, "y")).to_pydict() == table.to_pydict()
