"""Reads the plain dense ARFF files of the tests, without the package's own reader."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pyarrow as pa

ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


def read_arff(path: Path) -> pa.Table:
    """Numeric attributes as float64, hierarchical ones as lists, all others as strings; `?` is null."""
    names, kinds, rows = [], [], None
    for line in path.read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        if rows is not None:
            rows.append(next(csv.reader([line], quotechar="'", skipinitialspace=True)))
        elif match := ATTRIBUTE.match(line):
            names.append(match[1].strip("'\""))
            kinds.append("nominal" if match[2].startswith("{") else match[2].split()[0].lower())
        elif line.lower().startswith("@data"):
            rows = []
    columns = [
        [None if v.strip() == "?" else v.strip() for v in column] for column in zip(*rows, strict=True)
    ]
    return pa.table(
        {
            name: pa.array([None if v is None else value(v, kind) for v in column])
            for name, kind, column in zip(names, kinds, columns, strict=True)
        }
    )


def value(text: str, kind: str) -> float | str | list[str]:
    if kind == "hierarchical":
        return text.split("@")
    return text if kind in ("nominal", "string") else float(text)


def domain(path: Path) -> str:
    """What the file says of its hierarchical attribute."""
    return re.search(r"(?im)^@attribute.*\shierarchical\s+(.*)$", path.read_text())[1]
