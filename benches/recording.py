"""Rows of a benchmark, kept in `benches/record/`: one JSON file for each run, with machine and versions."""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "record"
PACKAGES = ["numpy", "pyarrow", "scikit-learn", "fast-select", "orange3", "skrebate", "xgboost", "lightgbm"]
PACKAGES += ["boruta", "ipss", "knockpy", "scikit-learn-intelex", "ydf"]
NUMBER = re.compile(r"([+-]?\d+(?:\.\d+)?)(?:x| s| MB)?")


def number(cell: object) -> object:
    """Return the number that a cell of a printed table shows, or its text where it is none."""
    found = NUMBER.fullmatch(text := str(cell).strip())
    return float(found[1]) if found else text


class Record:
    """The rows of one run.

    The fields that tables are made from are `case`, `size`, `baseline` and `ratio`; others are kept beside
    them. Times are in seconds, memory in megabytes.
    """

    def __init__(self, benchmark: str) -> None:
        self.benchmark = benchmark
        self.started = datetime.now(UTC)
        self.commit = commit_at_hand()
        self.rows: list[dict[str, Any]] = []

    def add(self, **fields: object) -> None:
        """Keep a row; cells of a printed table become numbers, empty ones are left out."""
        cells = {name: number(value) for name, value in fields.items() if value is not None}
        self.rows.append({name: value for name, value in cells.items() if value != ""})

    def write(self, folder: Path = FOLDER) -> Path:
        """Write the rows so far to the file of this run, over those that it has."""
        now, commit = self.started, self.commit
        run = {
            "benchmark": self.benchmark,
            "date": now.isoformat(timespec="seconds"),
            "commit": commit,
            "source": "measured",
            "machine": machine(),
            "versions": versions(),
            "rows": self.rows,
        }
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.benchmark}-{now:%Y%m%dT%H%M%S}-{commit}.json"
        path.write_text(json.dumps(run, indent=1, ensure_ascii=False) + "\n")
        return path


def add_option(parser: argparse.ArgumentParser) -> None:
    """Give `--record` to a benchmark."""
    parser.add_argument(
        "--record",
        nargs="?",
        type=Path,
        const=FOLDER,
        metavar="FOLDER",
        help="write the rows to a JSON file; default folder: benches/record",
    )


def commit_at_hand() -> str:
    """Return the commit that is checked out, with `-changed` where the files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=7", "--exclude=*", "--dirty=-changed"]
    try:
        return subprocess.run(
            command, cwd=FOLDER.parent, check=True, capture_output=True, text=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def machine() -> dict[str, object]:
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*:\s*(.+)$", info.read_text(), re.MULTILINE) if info.exists() else []
    return {
        "cpu": names[0] if names else platform.processor() or platform.machine(),
        "cpu_count": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
        "system": platform.system(),
    }


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in ("ferrank", *PACKAGES):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
