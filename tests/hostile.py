"""The kinds of input of ``campaign.py``: how each is made, changed at random, and read.

Each kind is a function of a random generator, a folder for its files, whose names begin with ``case``, and a
limit of memory in MB. What it raises is judged by the caller.
"""

from __future__ import annotations

import bz2
import functools
import gzip
import io
import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet

import ferrank as fr

DATA = Path(__file__).parent / "data"
PARENTS = {"animal": None, "African": "animal", "Asian": "animal", "elephant": ["African", "Asian"]}
EDGES = b"parent,child\n,animal\nanimal,African\nanimal,Asian\nAfrican,elephant\nAsian,elephant\n"
LABELS = ("animal", "African", "Asian", "elephant")
FOREST = {"ranker": "forest", "n_estimators": 2, "n_jobs": 1, "scores": ("genie3", "permutation")}
RELIEF = {"ranker": "relief", "n_neighbors": 2, "n_jobs": 1}

Kind = Callable[[Random, Path, int], object]


class SilentError(Exception):
    """What is invalid was taken."""


# Changes of bytes and of text

_NUMBERS = [
    0,
    1,
    2,
    3,
    4,
    7,
    8,
    16,
    127,
    128,
    255,
    256,
    65535,
    1 << 16,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
]
_NUMBERS += [1 << 32, (1 << 40), (1 << 62), (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 8]
_TOKENS = [
    "",
    "?",
    "NaN",
    "inf",
    "-inf",
    "1e999",
    "-0",
    "1e-400",
    "0x1p3",
    "99999999999999999999",
    "9" * 400,
    "\0",
]
_TOKENS += [
    "'",
    '"',
    '""',
    "\\",
    "{",
    "}",
    "{}",
    "[",
    "]",
    ",",
    ";",
    "\t",
    "%",
    "@",
    "/",
    "//",
    "\n",
    "\r",
    "\r\n\r\n",
]
_TOKENS += [
    "@data\n",
    "@attribute y numeric\n",
    "@relation r\n",
    "numeric",
    "string",
    "date",
    "hierarchical",
    "null",
]
_TOKENS += ["true", "1,5", "2024-02-30", "\x1b[31m", "‮abc", "é" * 3, "\ud800", "a" * 5_000, "-1", "1000000 1"]
_TOKENS += [
    '{"a":' * 200,
    "[" * 3_000,
    "<label name='y'>",
    "</label>",
    "&a;",
    "<!DOCTYPE a [<!ENTITY a 'b'>]>",
]


def changed(data: bytes, random: Random, *, text: bool = False) -> bytes:
    """Return ``data`` with one to a few changes; sometimes none."""
    changes = [_flip, _number, _number, _cut_out, _double, _swap, _cut_off, _insert, _zero, _byte]
    if text:
        changes = [_flip, _cut_out, _double, _swap, _cut_off, _token, _token, _token, _line, _byte]
    for _ in range(random.choice([0, 1, 1, 1, 1, 2, 3, 8])):
        data = random.choice(changes)(data, random)
    return data


def _place(data: bytes, random: Random) -> int:
    """Return a place, most often near an end: there the metadata lie."""
    size = len(data)
    near = min(size, random.choice([16, 64, 256, 1_024, size]))
    return random.randrange(near) if random.random() < 0.5 else max(0, size - 1 - random.randrange(near or 1))


def _span(data: bytes, random: Random) -> tuple[int, int]:
    first = _place(data, random)
    return first, min(len(data), first + random.choice([1, 2, 4, 8, 8, 16, 64, 300, 2_000]))


def _on_bytes(change: Callable[[bytearray, Random], None]) -> Callable[[bytes, Random], bytes]:
    @functools.wraps(change)
    def of(data: bytes, random: Random) -> bytes:
        if not data:
            return data
        array = bytearray(data)
        change(array, random)
        return bytes(array)

    return of


@_on_bytes
def _flip(data, random):
    data[_place(data, random)] ^= 1 << random.randrange(8)


@_on_bytes
def _byte(data, random):
    data[_place(data, random)] = random.randrange(256)


@_on_bytes
def _number(data, random):
    width = random.choice([1, 2, 4, 4, 8, 8])
    place = _place(data, random)
    place -= place % random.choice([1, width])
    value = random.choice(_NUMBERS)
    data[place : place + width] = (value % (1 << (8 * width))).to_bytes(width, "little")


@_on_bytes
def _cut_out(data, random):
    first, end = _span(data, random)
    del data[first:end]


@_on_bytes
def _double(data, random):
    first, end = _span(data, random)
    data[first:first] = data[first:end] * random.choice([1, 1, 1, 50])


@_on_bytes
def _swap(data, random):
    (first, end), place = _span(data, random), _place(data, random)
    moved = data[first:end]
    data[first:end] = data[place : place + len(moved)]
    data[place : place + len(moved)] = moved


@_on_bytes
def _cut_off(data, random):
    del data[_place(data, random) :]


@_on_bytes
def _insert(data, random):
    place = _place(data, random)
    data[place:place] = random.randbytes(random.choice([1, 2, 8, 64]))


@_on_bytes
def _zero(data, random):
    first, end = _span(data, random)
    data[first:end] = bytes(end - first)


@_on_bytes
def _token(data, random):
    first = random.randrange(len(data))
    end = first + random.choice([0, 0, 1, 1, 2, 4, 8])
    data[first:end] = random.choice(_TOKENS).encode(errors="surrogatepass")


@_on_bytes
def _line(data, random):
    lines = data.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    if random.random() < 0.5:
        lines[one], lines[other] = lines[other], lines[one]
    else:
        lines[one] = lines[other]
    data[:] = b"\n".join(lines)


# What is done with a table


def use(data: Any, random: Random, folder: Path, limit: int, **given: Any) -> None:
    """Rank, describe, check or convert ``data``, whose last column is the target."""
    kind = random.randrange(8)
    limits = {"memory_limit": f"{limit}MB"}
    if kind < 4:
        roles = {"target_last": 1} if not given and random.random() < 0.8 else {**given}
        shown(fr.rank(data, **(roles or {"target": "y"}), **FOREST, **limits))
    elif kind == 4:
        roles = given or {"target_last": 1}
        shown(fr.rank(data, **roles, **RELIEF, **limits))
    elif kind == 5:
        fr.inspect(data, **{name: value for name, value in given.items() if name == "labels"})
    elif kind == 6:
        roles = {name: value for name, value in given.items() if name != "hierarchy"}
        str(fr.check(data, **(roles or {"target_last": 1})))
    else:
        labels = {name: value for name, value in given.items() if name == "labels"}
        fr.convert(data, folder / "case-converted.arrow", **labels)
        fr.inspect(folder / "case-converted.arrow")


def shown(ranking: fr.Ranking) -> None:
    """Ask for all that a ranking says."""
    str(ranking)
    repr(ranking)
    ranking._repr_html_()
    ranking.to_arrow()
    ranking.top(3)
    ranking.importances()


# Tables in files


def _columns(random: Random, rows: int = 40) -> dict[str, Any]:
    rng = np.random.default_rng(random.randrange(1 << 16))
    missing = rng.random(rows) < 0.1
    columns: dict[str, Any] = {
        "a": pa.array(rng.normal(size=rows), mask=missing),
        "b": pa.array(rng.integers(0, 9, rows).astype(random.choice(["i1", "u2", "i4", "i8"]))),
        "word": pa.array(rng.choice(["red", "grün", "", "blue,sky"], rows), mask=rng.random(rows) < 0.1),
        "flag": pa.array(rng.random(rows) < 0.5),
        "day": pa.array(rng.integers(0, 20_000, rows).astype("datetime64[D]")),
    }
    if random.random() < 0.3:
        del columns[random.choice(list(columns))]
    columns["y"] = pa.array(
        rng.choice(["left", "right"], rows) if random.random() < 0.5 else rng.normal(size=rows)
    )
    return columns


def _table(random: Random) -> pa.Table:
    columns = _columns(random)
    if random.random() < 0.5 and "word" in columns:
        columns["word"] = columns["word"].dictionary_encode()
    if random.random() < 0.2:
        columns["y"] = pa.array([random.sample(LABELS, random.randrange(3)) for _ in range(40)])
    return pa.table(columns)


def _roles(table: pa.Table) -> dict[str, Any]:
    """Return the roles of a table whose target is a list of labels."""
    nested = pa.types.is_list(table.schema.field("y").type)
    return {"target": "y", "hierarchy": PARENTS} if nested else {}


def _ipc(random: Random, table: pa.Table, file: bool) -> bytes:
    sink = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(
        compression=random.choice([None, None, "lz4", "zstd"]), emit_dictionary_deltas=not file
    )
    make = pa.ipc.new_file if file else pa.ipc.new_stream
    with make(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=random.choice([7, 100]))
    return sink.getvalue()


def _file(suffix: str, make: Callable[[Random, pa.Table], bytes], *, text: bool = False) -> Kind:
    def kind(random: Random, folder: Path, limit: int) -> None:
        table = _table(random)
        path = folder / f"case{suffix}"
        path.write_bytes(changed(make(random, table), random, text=text))
        use(path, random, folder, limit, **_roles(table))

    return kind


def _parquet(random: Random, table: pa.Table) -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(
        table,
        sink,
        compression=random.choice(["none", "snappy", "zstd", "gzip"]),
        use_dictionary=random.random() < 0.5,
        row_group_size=random.choice([9, 100]),
        data_page_version=random.choice(["1.0", "2.0"]),
        store_schema=random.random() < 0.5,
    )
    return sink.getvalue()


def _plain(table: pa.Table) -> dict[str, list[Any]]:
    return {
        name: ["@".join(v) if isinstance(v, list) else v for v in column.to_pylist()]
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def _csv(random: Random, table: pa.Table) -> bytes:
    delimiter = random.choice(",,;\t|")
    decimal = "," if delimiter == ";" and random.random() < 0.5 else "."

    def cell(value: Any) -> str:
        if isinstance(value, float):
            return str(value).replace(".", decimal)
        text = "" if value is None else str(value)
        return f'"{text}"' if delimiter in text else text

    columns = _plain(table)
    lines = [delimiter.join(columns)] if random.random() < 0.8 else []
    lines += [delimiter.join(map(cell, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines).encode(random.choice(["utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"]))


def csv(random: Random, folder: Path, limit: int) -> None:
    """CSV in its ways: delimiters, decimal signs, encodings, compressed; some of it said, most of it seen."""
    table = _table(random)
    data = changed(_csv(random, table), random, text=True)
    suffix = random.choice([".csv", ".csv", ".tsv", ".txt", ".csv.gz", ".csv.bz2", ".csv.zst", ".csv.lz4"])
    packer = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(suffix).suffix)
    if packer is not None:
        data = packer(data)
    elif suffix != suffix.removesuffix("zst").removesuffix("lz4"):
        data = pa.compress(data, codec="zstd" if suffix.endswith("zst") else "lz4", asbytes=True)
    if suffix.count(".") > 1 and random.random() < 0.3:
        data = changed(data, random)
    path = folder / f"case{suffix}"
    path.write_bytes(data)
    given: Any = path
    if random.random() < 0.3:
        given = fr.CSVFile(
            path,
            delimiter=random.choice([None, ",", ";", " ", "x"]),
            header=random.choice([None, True, False]),
            encoding=random.choice([None, "utf-8", "cp1250", "utf-16", "ascii", "utf-32", "utf-7"]),
            decimal=random.choice([None, ",", "."]),
        )
    use(given, random, folder, limit)


def _json_rows(table: pa.Table) -> list[dict[str, Any]]:
    columns = _plain(table)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return [{name: str(v) if name == "day" else v for name, v in row.items()} for row in rows]


def _json(random: Random, table: pa.Table) -> bytes:
    return json.dumps(_json_rows(table)).encode()


def _jsonl(random: Random, table: pa.Table) -> bytes:
    return "\n".join(map(json.dumps, _json_rows(table))).encode()


def _orc(random: Random, table: pa.Table) -> bytes:
    sink = io.BytesIO()
    # ORC has neither dictionaries nor unsigned integers.
    known = {"word": pa.string(), "b": pa.int64()}
    plain = pa.table(
        {name: table[name].cast(known.get(name, table[name].type)) for name in table.column_names}
    )
    pa.orc.write_table(plain, sink, compression=random.choice(["uncompressed", "zlib", "zstd", "snappy"]))
    return sink.getvalue()


def _npy(random: Random, table: pa.Table) -> bytes:
    sink = io.BytesIO()
    shape = random.choice([(20, 4), (20, 4), (20, 1), (20,), (2, 5, 4), (0, 3)])
    array = np.random.default_rng(random.randrange(99)).normal(size=shape)
    np.save(sink, array.astype(random.choice(["<f8", ">f4", "<i4", "?", "U3", "f2", "c8", "M8[D]", "u8"])))
    return sink.getvalue()


def _npz(random: Random, table: pa.Table) -> bytes:
    sink = io.BytesIO()
    rng = np.random.default_rng(random.randrange(99))
    save = random.choice([np.savez, np.savez_compressed])
    save(sink, X=rng.normal(size=(20, 3)), word=rng.choice(["a", "b"], 20), y=rng.normal(size=20))
    return sink.getvalue()


def opened(random: Random, folder: Path, limit: int) -> None:
    """Open files of any of the formats, which are told apart by their first bytes."""
    table = _table(random)
    make = random.choice(
        [_parquet, _csv, _json, _jsonl, _orc, _npy, _npz, functools.partial(_ipc, file=True)]
    )
    use(io.BytesIO(changed(make(random, table), random)), random, folder, limit)


# ARFF and what goes with it


@functools.cache
def _arff(name: str, rows: int) -> bytes:
    lines = (DATA / name).read_bytes().split(b"\n")
    start = next(n for n, line in enumerate(lines) if line.strip().lower() == b"@data") + 1
    return b"\n".join(lines[: start + rows])


def _arff_kind(names: list[str], rows: int = 40) -> Kind:
    def kind(random: Random, folder: Path, limit: int) -> None:
        path = folder / "case.arff"
        path.write_bytes(changed(_arff(random.choice(names), rows), random, text=True))
        use(path, random, folder, limit)

    return kind


def arff_hierarchical(random: Random, folder: Path, limit: int) -> None:
    """Hierarchical attributes: the labels are the target that the file says itself."""
    path = folder / "case.arff"
    path.write_bytes(
        changed(_arff(random.choice(["clus-hierarchy.arff", "church_FUN.arff"]), 30), random, text=True)
    )
    kind = random.randrange(4)
    if kind == 0:
        fr.inspect(path)
    elif kind == 1:
        fr.convert(path, folder / "case-converted.arrow")
    else:
        limits = {"memory_limit": f"{limit}MB"}
        shown(fr.rank(path, target_last=1, **random.choice([FOREST, FOREST, RELIEF]), **limits))


def mulan(random: Random, folder: Path, limit: int) -> None:
    """Label XML beside an ARFF file."""
    (folder / "case.arff").write_bytes(_arff("emotions.arff", 30))
    path = folder / "case.xml"
    path.write_bytes(changed((DATA / "emotions.xml").read_bytes(), random, text=True))
    use(folder / "case.arff", random, folder, limit, labels=path)


def edges(random: Random, folder: Path, limit: int) -> None:
    """Edge tables of a hierarchy, and mappings."""
    table = pa.table({"a": range(12), "y": [random.sample(LABELS, random.randrange(3)) for _ in range(12)]})
    path = folder / random.choice(["case.csv", "case.tsv", "case.txt"])
    data = EDGES.replace(b",", b"\t") if path.suffix == ".tsv" else EDGES
    path.write_bytes(changed(data, random, text=True))
    given: Any = path
    if random.random() < 0.3:
        labels = [*LABELS, None, "", 3, ("animal",), "a/b"]
        given = {random.choice(labels): random.choice(labels) for _ in range(5)}
    ranker = random.choice([FOREST, RELIEF])
    shown(fr.rank(table, "y", hierarchy=given, memory_limit=f"{limit}MB", **ranker))


# What is ours


@functools.cache
def _ours() -> dict[str, Any]:
    """Return a table, and what rankers write of it."""
    rng = np.random.default_rng(1)
    table = pa.table({"a": rng.normal(size=40), "b": rng.choice(["r", "s"], 40), "y": rng.normal(size=40)})
    forest, relief = (fr.accumulate(table, "y", **ranker).to_bytes() for ranker in (FOREST, RELIEF))
    profile = fr.profile(table, "y", ranker="forest").to_bytes()
    return {"table": table, "forest": forest, "relief": relief, "profile": profile}


def ledger(random: Random, folder: Path, limit: int) -> None:
    """Files of contributions that a run resumes from."""
    import tempfile

    name = random.choice(["forest", "relief"])
    with tempfile.TemporaryDirectory() as elsewhere:
        path = Path(elsewhere) / "run.arrow"
        ranker = {"forest": FOREST, "relief": RELIEF}[name]
        fr.rank(_ours()["table"], "y", resume=path, **ranker)
        data = path.read_bytes()
    path = folder / "case.arrow"
    path.write_bytes(changed(data, random))
    shown(fr.rank(_ours()["table"], "y", resume=path, memory_limit=f"{limit}MB", **ranker))


def accumulator(random: Random, folder: Path, limit: int) -> None:
    """Accumulators as bytes and in files."""
    data = changed(_ours()[random.choice(["forest", "relief"])], random)
    (folder / "case.arrow").write_bytes(data)
    is_file = random.random() < 0.5
    found = fr.merge([folder / "case.arrow"]) if is_file else fr.Accumulator.from_bytes(data)
    found.merge(fr.Accumulator.from_bytes(data))
    shown(found.ranking())
    str(found.settings)


def profile(random: Random, folder: Path, limit: int) -> None:
    """Profiles as bytes: changed bytes, and numbers changed in a stream that is else whole."""
    data = _ours()["profile"]
    data = changed(data, random) if random.random() < 0.5 else _edited(data, random)
    (folder / "case.arrows").write_bytes(data)
    found = fr.Profile.from_bytes(data)
    found.merge(fr.Profile.from_bytes(data))
    found.to_arrow()
    shown(fr.accumulate(_ours()["table"], "y", profile=fr.Profile.from_bytes(data), **FOREST).ranking())


def _edited(data: bytes, random: Random) -> bytes:
    """Return an Arrow stream with a value changed."""
    table = pa.ipc.open_stream(data).read_all()
    name = random.choice(table.column_names)
    values = table[name].to_pylist()
    row = random.randrange(len(values))
    others = [None, 0, 1, -1, 2**31, 2**63 - 1, float("nan"), float("inf"), 1e308, "x", b"\xff", [], [1, 2]]
    values[row] = random.choice(others)
    try:
        column = pa.array(values, table.schema.field(name).type)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return changed(data, random)
    table = table.set_column(table.column_names.index(name), table.schema.field(name), column)
    return _ipc(random, table, file=False)


@functools.cache
def _forest() -> bytes:
    table = _ours()["table"]
    ranking = fr.rank(table, "y", ranker="forest", n_estimators=3, keep_trees=True)
    return bytes(ranking.forest._core.to_bytes())


def kept_forest(random: Random, folder: Path, limit: int) -> None:
    """Kept forests in files: changed bytes, and values changed in a file that is else whole."""
    data = _forest()
    data = changed(data, random) if random.random() < 0.5 else _edited_node(data, random)
    (folder / "case.ferrank").write_bytes(data)
    found = fr.Forest.load(folder / "case.ferrank")
    found.predict(_ours()["table"])
    found.predict_proba(_ours()["table"])
    found.apply(_ours()["table"])
    found.nodes()
    found.interactions()
    found.trends()


def _edited_node(data: bytes, random: Random) -> bytes:
    """Return an Arrow file with a value changed in one of its batches."""
    reader = pa.ipc.open_file(data)
    batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    place = random.randrange(len(batches))
    batch = batches[place]
    column = random.randrange(batch.num_columns)
    values = batch.column(column).to_pylist()
    others = [None, 0, 1, -1, 2**31, 2**32 - 1, float("nan"), float("inf"), 1e308, [], [0], [65535], [2**31]]
    values[random.randrange(len(values))] = random.choice(others)
    try:
        array = pa.array(values, batch.schema.field(column).type)
        batches[place] = batch.set_column(column, batch.schema.field(column), array)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return changed(data, random)
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, reader.schema) as writer:
        for one in batches:
            writer.write_batch(one)
    return sink.getvalue()


@functools.cache
def _rankings() -> dict[str, bytes]:
    import tempfile

    found = {}
    with tempfile.TemporaryDirectory() as folder:
        table = _ours()["table"].append_column("z", pa.array(np.arange(40.0)))
        ranking = fr.rank(table, ["y", "z"], by_target=True, **FOREST)
        relevance = fr.rank(_ours()["table"], "y", n_jobs=1, ranker="forest", n_estimators=200, shadows=True)
        for suffix in (".json", ".parquet", ".arrow"):
            for name, one in (("plain", ranking), ("relevance", relevance)):
                one.save(Path(folder) / f"r{suffix}")
                found[f"{name}{suffix}"] = (Path(folder) / f"r{suffix}").read_bytes()
    return found


def saved(random: Random, folder: Path, limit: int) -> None:
    """Saved rankings in all formats; JSON also with values changed, so that it is JSON still."""
    name = random.choice(sorted(_rankings()))
    data, suffix = _rankings()[name], Path(name).suffix
    if suffix == ".json" and random.random() < 0.6:
        value = json.loads(data)
        for _ in range(random.choice([1, 1, 2])):
            _change_value(value, random)
        data = json.dumps(value).encode()
    else:
        data = changed(data, random, text=suffix == ".json")
    path = folder / f"case{suffix}"
    path.write_bytes(data)
    shown(fr.Ranking.load(path))


def _change_value(value: Any, random: Random) -> None:
    """Change a value somewhere in nested lists and mappings."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            return
        key = random.choice(keys)
        below = value[key]
        if not isinstance(below, dict | list) or not below or random.random() < 0.2:
            break
        value = below
    kind = random.randrange(4)
    if kind == 0:
        del value[key]
    elif kind == 1 and isinstance(value, list):
        value.append(value[0])
    elif kind == 2 and isinstance(value, list):
        value[key] = value[0]
    else:
        choices = [None, -1, 0, 2**32, 2**70, float("nan"), 1e308, "", "x", [], {}, [[1]], True, "\x1b[31m"]
        value[key] = random.choice(choices)


# Arrays


def _buffers(random: Random, kind: pa.DataType, rows: int) -> list[pa.Buffer | None]:
    """Return buffers for a text, a list or a view type, with offsets that are most often wrong somewhere."""
    wide = pa.types.is_large_string(kind) or pa.types.is_large_binary(kind) or pa.types.is_large_list(kind)
    validity = random.choice([None, None, pa.py_buffer(random.randbytes(8))])
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        views = b""
        for _ in range(rows):
            size = random.choice([0, 3, 12, 13, 20, 20, random.choice(_NUMBERS) % (1 << 31)])
            views += struct.pack("<iiii", size, 0x61616161, *_view_place(random, size))
        return [validity, pa.py_buffer(views), pa.py_buffer(b"a" * 64)]
    step = 3
    offsets = [step * n for n in range(rows + 1)]
    for _ in range(random.choice([0, 1, 1, 2])):
        offsets[random.randrange(rows + 1)] = random.choice(
            [-1, 0, 5, 1_000, 1 << 20, 1 << 30, (1 << 31) - 1, -1 << 31]
        )
    packed = struct.pack(f"<{rows + 1}{'q' if wide else 'i'}", *offsets)
    if random.random() < 0.1:
        packed = packed[: random.randrange(len(packed))]
    letters = bytearray(b"abcdefghij" * rows)
    if random.random() < 0.3:
        letters[random.randrange(20)] = random.choice([0xFF, 0xC3, 0x00])
    return [validity, pa.py_buffer(packed), pa.py_buffer(bytes(letters))]


def _view_place(random: Random, size: int) -> tuple[int, int]:
    """Return the buffer and the place in it of a text of ``size`` bytes that does not lie within its view."""
    if size <= 12:
        return 0x61616161 if size > 4 else 0, 0x61616161 if size > 8 else 0
    return random.choice([0, 0, 0, 1, -1, 1 << 30]), random.choice([0, 0, 10, 63, 1 << 20, -1])


def _array(random: Random, rows: int) -> pa.Array:
    kinds = [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.string_view(),
        "dictionary",
        "dictionary",
        "list",
    ]
    kinds += ["large_list", "list_view", "run", "union", "struct", "fixed", "boolean", "decimal", "numbers"]
    kind = random.choice(kinds)
    if isinstance(kind, pa.DataType):
        return pa.Array.from_buffers(kind, rows, _buffers(random, kind, rows), random.choice([-1, -1, 0, 3]))
    if kind == "dictionary":
        keys = np.array([random.choice([0, 1, 2, 2, 1]) for _ in range(rows)])
        keys[random.randrange(rows)] = random.choice([0, 3, -1, 100, 127])
        width = random.choice(["i1", "u1", "i4", "i8", "u8"])
        values = pa.array(["a", "b", random.choice(["c", "a", None])])
        if random.random() < 0.2:
            values = pa.Array.from_buffers(pa.string(), 3, _buffers(random, pa.string(), 3))
        return pa.DictionaryArray.from_arrays(
            pa.array(keys.astype(width)), values, safe=False, ordered=random.random() < 0.3
        )
    if kind in ("list", "large_list"):
        kind = pa.list_(pa.string()) if kind == "list" else pa.large_list(pa.string())
        child = pa.array(["animal", "African", "Asian"] * rows)
        return pa.Array.from_buffers(kind, rows, _buffers(random, kind, rows)[:2], -1, 0, [child])
    if kind == "list_view":
        offsets, sizes = ([random.choice([0, 1, 2, 5, 1 << 20, -1]) for _ in range(rows)] for _ in range(2))
        buffers = [None, *(pa.py_buffer(struct.pack(f"<{rows}i", *part)) for part in (offsets, sizes))]
        child = pa.array(["animal", "African", "Asian"] * rows)
        return pa.Array.from_buffers(pa.list_view(pa.string()), rows, buffers, -1, 0, [child])
    if kind == "run":
        ends = [random.choice([1, 5, rows, rows + 9, 0, -1]) for _ in range(2)] + [rows]
        parts = [pa.array(ends, pa.int32()), pa.array([1.0, 2.0, 3.0])]
        return pa.Array.from_buffers(pa.run_end_encoded(pa.int32(), pa.float64()), rows, [None], 0, 0, parts)
    if kind == "union":
        types = pa.py_buffer(bytes(random.choice([0, 1, 1, 9]) for _ in range(rows)))
        fields = [pa.field("p", pa.int64()), pa.field("q", pa.string())]
        parts = [pa.array(range(rows)), pa.array(["x"] * rows)]
        return pa.Array.from_buffers(pa.sparse_union(fields), rows, [None, types], 0, 0, parts)
    if kind == "struct":
        fields = [pa.field("p", pa.int64())]
        short = random.choice([rows, rows, rows // 2])
        return pa.Array.from_buffers(pa.struct(fields), rows, [None], 0, 0, [pa.array(range(short))])
    size = random.choice([rows * 8, rows * 8, rows, 1, 0])
    if kind == "fixed":
        return pa.Array.from_buffers(pa.binary(8), rows, [None, pa.py_buffer(random.randbytes(size))])
    if kind == "boolean":
        return pa.Array.from_buffers(pa.bool_(), rows, [None, pa.py_buffer(random.randbytes(size))])
    if kind == "decimal":
        return pa.Array.from_buffers(
            pa.decimal128(5, 2), rows, [None, pa.py_buffer(random.randbytes(2 * size))]
        )
    kind = random.choice(
        [pa.float64(), pa.int32(), pa.timestamp("ns", "UTC"), pa.duration("s"), pa.time64("ns")]
    )
    validity = random.choice([None, pa.py_buffer(random.randbytes(random.choice([0, 1, 8])))])
    return pa.Array.from_buffers(
        kind, rows, [validity, pa.py_buffer(random.randbytes(size))], random.choice([-1, 0, 5])
    )


def arrays(random: Random, folder: Path, limit: int) -> None:
    """Tables and readers with arrays that pyarrow does not look at before it hands them over."""
    rows = 24
    try:
        broken = _array(random, rows)
        if random.random() < 0.2:
            broken, rows = broken.slice(4, 8), 8
        columns = {"a": pa.array(np.arange(rows) * 0.5), "broken": broken, "y": pa.array(np.arange(rows) % 7)}
        if random.random() < 0.2:
            columns["y"] = columns.pop("broken")
        batch = pa.RecordBatch.from_arrays(list(columns.values()), list(columns))
        if random.random() < 0.2:
            batch = batch.replace_schema_metadata({b"k": random.choice([b"\xff", b"", b"{", b"\x00"])})
    except (pa.ArrowException, ValueError, IndexError, OverflowError):
        return
    whole = _is_valid(batch)
    kind = random.randrange(5)
    given: Any = batch if kind == 0 else pa.Table.from_batches([batch])
    if kind == 1:
        given = pa.RecordBatchReader.from_batches(batch.schema, [batch])
    elif kind == 2:
        given = dict(zip(given.column_names, given.columns, strict=True))
    elif kind == 3:
        given = pa.RecordBatchReader.from_batches(batch.schema, [batch]).__arrow_c_stream__()
    if kind == 3 and not whole:
        # Nobody can tell how long the buffers of a bare capsule are.
        return
    use(given, random, folder, limit)
    if not whole:
        raise SilentError(f"a {broken.type} that pyarrow finds invalid was taken")


def _is_valid(batch: pa.RecordBatch) -> bool:
    try:
        batch.validate(full=True)
    except pa.ArrowException:
        return False
    return True


def numpy_arrays(random: Random, folder: Path, limit: int) -> None:
    """Arrays and sparse arrays of NumPy and SciPy, of any type, with strides and indices that are wrong."""
    import scipy.sparse as sp

    rng = np.random.default_rng(random.randrange(1 << 20))
    kind = random.choice(
        ["f8", "f4", "f2", "i1", "u8", "?", "c8", "M8[s]", "m8[D]", "U3", "S3", "O", ">f8", "g"]
    )
    array = (
        rng.normal(size=random.choice([(20, 4), (20, 1), (20, 0), (0, 3), (20,), (3, 4, 5)])) * 3
    ).astype("i1")
    array = array.astype(kind)
    if random.random() < 0.3:
        array = array[:: random.choice([2, -1])]
    y: Any = np.arange(len(array)) * 0.5
    given: Any = array
    if kind in ("f8", "f4", "i1") and array.ndim == 2 and random.random() < 0.6:
        made = sp.csr_array(array.astype("f8"))
        part = random.choice(["indices", "indptr", "data"])
        values = getattr(made, part)
        if len(values):
            values[random.randrange(len(values))] = random.choice([-1, 0, 2, 100, 2**31 - 1])
        given = random.choice([made, made, sp.csc_array(array.astype("f8"))])
    limits = {"memory_limit": f"{limit}MB"}
    if random.random() < 0.5:
        shown(fr.rank(given, y, **random.choice([FOREST, RELIEF]), **limits))
    else:
        use(given, random, folder, limit)


# Files that unpack to much, and files that are none


def _zeros(mb: int) -> np.ndarray[Any, Any]:
    return np.zeros(mb * 125_000)


def bombs(random: Random, folder: Path, limit: int) -> None:
    """Little files that unpack to more than the limit."""
    makers = [
        _dictionary_bomb,
        _entries_bomb,
        _categories_bomb,
        _labels_bomb,
        _deep_labels_bomb,
        _label_lists_bomb,
        _label_views_bomb,
        _label_text_bomb,
        _wide_bomb,
        _orc_bomb,
        _arrow_bomb,
        _stream_bomb,
        _parquet_bomb,
        _csv_bomb,
        _npz_bomb,
        _json_bomb,
        _long_text,
        _ledger_bomb,
    ]
    make = random.choice(makers)
    path = folder / f"case{_BOMBS[make.__name__][0]}"
    # Made elsewhere, so that what making takes is not counted.
    path.write_bytes(_made(make.__name__))
    limits = {"memory_limit": f"{limit}MB"}
    if make is _ledger_bomb:
        fr.Accumulator.load(path)
    else:
        fr.rank(path, target_last=1, **FOREST, **limits)


@functools.cache
def _made(name: str) -> bytes:
    code = f"import sys, hostile; sys.stdout.buffer.write(hostile._BOMBS[{name!r}][1]())"
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, check=True, cwd=Path(__file__).parent).stdout


def _dictionary_bomb() -> bytes:
    sink = io.BytesIO()
    words = pa.array(["a" * 500_000_000, "b"])
    table = pa.table(
        {"a": pa.DictionaryArray.from_arrays(pa.array([0, 1] * 20, pa.int32()), words), "y": range(40)}
    )
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _packed(table: pa.Table) -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_file(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _entries_bomb() -> bytes:
    """Return a dictionary with many more entries than rows."""
    words = pa.array(np.arange(12_000_000)).cast(pa.string())
    keys = pa.array(np.arange(40, dtype="i4") * 1_000)
    return _packed(pa.table({"a": pa.DictionaryArray.from_arrays(keys, words), "y": range(40)}))


def _categories_bomb() -> bytes:
    """Return a column of long categories."""
    words = pa.array([f"{n}" + "a" * 20_000 for n in range(30_000)])
    return _packed(pa.table({"a": words, "y": range(30_000)}))


def _labels_bomb() -> bytes:
    """Return rows that share a text of many labels."""
    names = [f"{n:07}" for n in range(60_000)]
    return _shared_labels("@".join(names), names, 3_000)


def _deep_labels_bomb() -> bytes:
    """Return rows that share a label with many above it, in a hierarchy where most have none."""
    deep = "/".join(map(str, range(250)))
    return _shared_labels(deep, [*(f"{n:07}" for n in range(60_000)), deep], 600_000)


def _shared_labels(text: str, names: list[str], rows: int) -> bytes:
    labels = pa.array([text, names[0]])
    keys = pa.array(np.zeros(rows, "i4"))
    field = pa.field(
        "y", pa.dictionary(pa.int32(), pa.string()), metadata={"ferrank:hierarchy": ",".join(names)}
    )
    columns = [pa.array(np.zeros(rows)), pa.DictionaryArray.from_arrays(keys, labels)]
    return _packed(pa.table(columns, pa.schema([pa.field("a", pa.float64()), field])))


def _label_views_bomb() -> bytes:
    """Return rows that share the labels of a list."""
    rows, labels = 30_000, pa.array([f"{n:05}" for n in range(20_000)])
    starts, sizes = (pa.array(np.full(rows, number, "i4")) for number in (0, 20_000))
    views = pa.ListViewArray.from_arrays(starts, sizes, labels)
    return _packed(pa.table({"a": np.zeros(rows), "y": views}))


def _label_text_bomb() -> bytes:
    """Return a text that lists a label many times."""
    return _packed(pa.table({"a": [1.0, 2.0], "y": pa.array(["a/b@" * 60_000_000, "a/b"])}))


def _label_lists_bomb() -> bytes:
    """Return a row that lists a label many times."""
    lists = pa.LargeListArray.from_arrays(
        [0, 150_000_000, 150_000_000],
        pa.DictionaryArray.from_arrays(pa.array(np.zeros(150_000_000, "i1")), pa.array(["a/b"])),
    )
    return _packed(pa.table({"a": [1.0, 2.0], "y": lists}))


def _wide_bomb() -> bytes:
    sink = io.BytesIO()
    table = pa.table({f"c{n}": np.zeros(150_000) for n in range(800)} | {"y": np.zeros(150_000)})
    pa.parquet.write_table(table, sink, compression="zstd", row_group_size=150_000)
    return sink.getvalue()


def _orc_bomb() -> bytes:
    sink = io.BytesIO()
    pa.orc.write_table(
        pa.table({"a": _zeros(480), "y": _zeros(480)}), sink, compression="zstd", stripe_size=1 << 30
    )
    return sink.getvalue()


def _arrow_bomb(file: bool = True) -> bytes:
    sink = io.BytesIO()
    table = pa.table({"a": _zeros(480), "y": _zeros(480)})
    make = pa.ipc.new_file if file else pa.ipc.new_stream
    with make(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(table)
    return sink.getvalue()


def _stream_bomb() -> bytes:
    return _arrow_bomb(file=False)


def _parquet_bomb() -> bytes:
    sink = io.BytesIO()
    pa.parquet.write_table(
        pa.table({"a": _zeros(480), "y": _zeros(480)}), sink, compression="zstd", row_group_size=1 << 27
    )
    return sink.getvalue()


def _csv_bomb() -> bytes:
    return gzip.compress(b"a,y\n" + b"0,1\n" * 120_000_00, compresslevel=6)


def _npz_bomb() -> bytes:
    sink = io.BytesIO()
    np.savez_compressed(sink, X=_zeros(960).reshape(-1, 2))
    return sink.getvalue()


def _json_bomb() -> bytes:
    return gzip.compress(b'{"a":0,"y":1}\n' * 6_000_000, compresslevel=6)


def _long_text() -> bytes:
    return gzip.compress(b"a,y\n" + b"x" * 700_000_000 + b",1\n", compresslevel=6)


def _ledger_bomb() -> bytes:
    sink = io.BytesIO()
    table = pa.ipc.open_stream(_ours()["forest"]).read_all()
    many = pa.table({"values": pa.array([_zeros(900)])})
    place = table.column_names.index("values")
    schema = table.schema
    row = table.slice(0, 1).set_column(
        place, schema.field("values"), many["values"].cast(schema.field("values").type)
    )
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(row)
    return sink.getvalue()


_BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "_dictionary_bomb": (".arrow", _dictionary_bomb),
    "_entries_bomb": (".arrow", _entries_bomb),
    "_categories_bomb": (".arrow", _categories_bomb),
    "_labels_bomb": (".arrow", _labels_bomb),
    "_deep_labels_bomb": (".arrow", _deep_labels_bomb),
    "_label_lists_bomb": (".arrow", _label_lists_bomb),
    "_label_views_bomb": (".arrow", _label_views_bomb),
    "_label_text_bomb": (".arrow", _label_text_bomb),
    "_wide_bomb": (".parquet", _wide_bomb),
    "_orc_bomb": (".orc", _orc_bomb),
    "_arrow_bomb": (".arrow", _arrow_bomb),
    "_stream_bomb": (".arrows", _stream_bomb),
    "_parquet_bomb": (".parquet", _parquet_bomb),
    "_csv_bomb": (".csv.gz", _csv_bomb),
    "_npz_bomb": (".npz", _npz_bomb),
    "_json_bomb": (".jsonl.gz", _json_bomb),
    "_long_text": (".csv.gz", _long_text),
    "_ledger_bomb": (".arrow", _ledger_bomb),
}


def special(random: Random, folder: Path, limit: int) -> None:
    """Pipes, devices, folders and empty files where files are expected."""
    suffix = random.choice(
        [".csv", ".parquet", ".arff", ".arrow", ".json", ".jsonl", ".npy", ".npz", ".orc", ".xml", ""]
    )
    path = folder / f"case-special{suffix}"
    kind = random.choice(["pipe", "zero", "full", "folder", "empty", "loop", "null", "absent"])
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "empty":
        path.write_bytes(b"")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind != "absent":
        path.symlink_to(f"/dev/{kind}")
    try:
        _use_special(path, random, folder, limit)
    finally:
        if path.is_dir() and not path.is_symlink():
            path.rmdir()


def _use_special(path: Path, random: Random, folder: Path, limit: int) -> None:
    table = _ours()["table"]
    place = random.randrange(9)
    if place < 2:
        use(path, random, folder, limit)
    elif place == 2:
        fr.rank(DATA / "emotions.arff", labels=path, **FOREST)
    elif place == 3:
        fr.rank(table, "y", resume=path, **FOREST)
    elif place == 4:
        fr.rank(table, "b", hierarchy=path, **FOREST)
    elif place == 5:
        fr.Ranking.load(path)
    elif place == 6:
        fr.merge([path])
    elif place == 7:
        fr.convert(table, path)
    else:
        fr.rank([path, path], target_last=1, **FOREST)


def threads(random: Random, folder: Path, limit: int) -> None:
    """Several rankings of one broken file at once."""
    path = folder / "case.arrow"
    path.write_bytes(changed(_ipc(random, _table(random), file=True), random))
    errors: list[BaseException] = []

    def run() -> None:
        try:
            fr.rank(path, target_last=1, **FOREST)
        except BaseException as error:
            errors.append(error)

    running = [threading.Thread(target=run, daemon=True) for _ in range(3)]
    for thread in running:
        thread.start()
    end = time.monotonic() + 15
    for thread in running:
        thread.join(max(0.0, end - time.monotonic()))
    for error in errors:
        raise error


KINDS: dict[str, Kind] = {
    "arrow file": _file(".arrow", functools.partial(_ipc, file=True)),
    "arrow stream": _file(".arrows", functools.partial(_ipc, file=False)),
    "parquet": _file(".parquet", _parquet),
    "csv": csv,
    "json": _file(".json", _json, text=True),
    "json lines": _file(".jsonl", _jsonl, text=True),
    "orc": _file(".orc", _orc),
    "npy": _file(".npy", _npy),
    "npz": _file(".npz", _npz),
    "open file": opened,
    "arff dense": _arff_kind(["iris.arff", "autos.arff", "sf1.arff", "heart-c.arff"]),
    "arff sparse": _arff_kind(["clus-sparse.arff"]),
    "arff hierarchical": arff_hierarchical,
    "label xml": mulan,
    "edges": edges,
    "ledger": ledger,
    "accumulator": accumulator,
    "profile": profile,
    "kept forest": kept_forest,
    "saved ranking": saved,
    "arrow arrays": arrays,
    "numpy arrays": numpy_arrays,
    "threads": threads,
    "special files": special,
    "bombs": bombs,
}
