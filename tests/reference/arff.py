"""Reads the plain dense ARFF files of the tests, without the package's own reader."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pyarrow as pa

ATTRIBUTE = re.compile(r"@attribute\s+('[^']*'|\"[^\"]*\"|\S+)\s+(.*)", re.IGNORECASE)


def read_arff(path: Path) -> pa.Table:
    """Numeric attributes as float64, all others as strings; `?` is null."""
    names, numeric, rows = [], [], None
    for line in path.read_text().splitlines():
        line = line.strip()
        if not line or line.startswith("%"):
            continue
        if rows is not None:
            rows.append(next(csv.reader([line], quotechar="'", skipinitialspace=True)))
        elif match := ATTRIBUTE.match(line):
            names.append(match[1].strip("'\""))
            numeric.append(not match[2].startswith("{"))
        elif line.lower().startswith("@data"):
            rows = []
    columns = [
        [None if v.strip() == "?" else v.strip() for v in column] for column in zip(*rows, strict=True)
    ]
    return pa.table(
        {
            name: pa.array([None if v is None else float(v) for v in column] if is_number else column)
            for name, is_number, column in zip(names, numeric, columns, strict=True)
        }
    )
