"""Tables of the documents, made from `benches/record/`: `python benches/tables.py` writes them.

A table stands between the lines `<!-- table NAME -->` and `<!-- end of table -->`. Where several runs
measured the same case, size and baseline, the latest counts. `--check` changes nothing, and fails where a
document differs from the records.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "benches" / "README.md", ROOT / "docs" / "choosing.md", ROOT / "docs" / "benchmarks.md"]
TABLE = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

Row = dict[str, Any]


class Figure(NamedTuple):
    """A figure of the page on benchmarks: which row it is read from, and how it is shown."""

    text: str
    benchmark: str
    case: str
    size: str
    form: str


SPEED = "{ratio:.1f} times as fast"
FIGURES = [
    Figure(
        "random forest, one target, 1M rows x 20, beside scikit-learn",
        "forest", "random forest", "1,000,000 x 20, 1 target", SPEED,
    ),
    Figure(
        "random forest, 16 targets, 100k rows x 200, beside scikit-learn",
        "forest", "random forest", "100,000 x 200, 16 targets", SPEED,
    ),
    Figure(
        "random forest with exact codes (`max_bins=65535`), 100k x 200, beside scikit-learn",
        "forest", "exact codes", "100,000 x 200, 1 target", SPEED,
    ),
    Figure(
        "extra trees, 100k x 200, beside scikit-learn",
        "forest", "extra trees", "100,000 x 200, 1 target", SPEED,
    ),
    Figure(
        "random forest, 100 labels, 20k x 200, beside scikit-learn",
        "forest", "labels", "20,000 x 200, 100 labels", SPEED,
    ),
    Figure(
        "permutation scores of all features, beside growing the trees",
        "forest", "permutation", "100,000 x 200, 1 target", "{ratio:.0%} more time",
    ),
    Figure(
        "peak memory beyond the input of 800 MB, 1M x 200",
        "forest", "peak memory", "1,000,000 x 200, 1 target", "{value:.0f} MB",
    ),
    Figure(
        "Relief, all rows as queries, 10k x 100, beside fast-select",
        "relief", "speed", "10,000 x 100", SPEED,
    ),
    Figure(
        "a tree within a memory limit of a third of the codes, 6M x 100, beside one in memory",
        "outofcore", "out of core / in memory, cpu s a tree", "6,000,000 x 100", "{ratio:.2f} times the time",
    ),
    Figure(
        '`until="stable"`, 10M x 100 in an Arrow file',
        "stable", 'until="stable"', "10,000,000 x 100", "{value:.1f} CPU s",
    ),
]  # fmt: skip
"""Ten at most: who wants more reads benches/README.md."""


def read_records(folder: Path = ROOT / "benches" / "record") -> list[Row]:
    """Return the rows of all runs, the latest of each measurement, with the run's commit and date."""
    runs = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    latest: dict[tuple[object, ...], Row] = {}
    for run in sorted(runs, key=lambda run: run["date"]):
        about = {name: run[name] for name in ("benchmark", "commit", "date", "source")}
        for row in run["rows"]:
            key = (run["benchmark"], *(row.get(name) for name in ("case", "size", "baseline")))
            # A later measurement keeps the place of the one before it.
            latest[key] = about | row
    return list(latest.values())


def markdown(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def figures(rows: list[Row]) -> str:
    """Return the table that begins the page on benchmarks."""
    lines = []
    for figure in FIGURES:
        found = [row for row in rows if (row["benchmark"], row["case"], row.get("size")) == figure[1:4]]
        if not found:
            raise SystemExit(f"no record has {figure.case}, {figure.size} of {figure.benchmark}.py")
        row = max(found, key=lambda row: row["date"])
        others = [row[name] for name in ("same_code", "earlier_runs") if name in row]
        lines.append([figure.text, figure.form.format(**row), "; ".join(others)])
    return markdown(["what", "figure", "other runs"], lines)


def benchmark(name: str, rows: list[Row]) -> str:
    """Return all rows of a benchmark."""
    chosen = [row for row in rows if row["benchmark"] == name]
    if not chosen:
        raise SystemExit(f"no record of {name}.py")
    fields = ["case", "size", "baseline", "baseline_value", "value", "ratio", "with_setup", "peak_mb", "cpu"]
    fields += [
        "scores",
        "memory",
        "wall",
        "auc",
        "baseline_auc",
        "limit_mb",
        "same_code",
        "earlier_runs",
        "note",
    ]
    fields += ["commit"]
    used = [field for field in fields if any(field in row for row in chosen)]
    return markdown(
        [field.replace("_", " ") for field in used],
        [[shown(row.get(field, "")) for field in used] for row in chosen],
    )


def quality_by_arm(rows: list[Row]) -> str:
    """Return a table of the AUC of each ranker on each kind of data, and of its CPU seconds.

    Mean and worst are over the kinds that the ranker has an AUC for; CPU seconds are for a table of each.
    Kinds for false discoveries are left out, where correlated features are no mistake.
    """
    kinds, ranked = by_arm([row for row in rows if not row["case"].startswith(("null-", "mixed-"))], "auc")
    summaries = {
        "mean": lambda cells: f"{sum(row['auc'] for row in cells) / len(cells):.3f}",
        "worst": lambda cells: f"{min(row['auc'] for row in cells):.2f}",
        "CPU s": lambda cells: f"{sum(row['cpu'] for row in cells):.3g}",
    }
    return table_of_arms(kinds, ranked, lambda row: f"{row['auc']:.2f}", summaries)


def discoveries_by_arm(rows: list[Row]) -> str:
    """Return a table of rankers that select: false discovery proportion / power on each kind of data.

    The proportion has its standard error where several tables of a kind were drawn; CPU seconds are for a
    table of each kind.
    """
    kinds, selected = by_arm(rows, "fdp")
    summaries = {"CPU s": lambda cells: f"{sum(row['cpu'] for row in cells):.3g}"}
    return table_of_arms(kinds, selected, selection, summaries)


def coverage(rows: list[Row]) -> str:
    """Return a table of the coverage of 95 % intervals by each score on each kind of data."""
    kinds, covered = by_arm(rows, "coverage")
    return table_of_arms(kinds, covered, lambda row: f"{row['coverage']:.3f}", {})


def table_of_arms(
    kinds: list[str],
    arms: dict[str, dict[str, Row]],
    cell: Callable[[Row], str],
    summaries: dict[str, Callable[[list[Row]], str]],
) -> str:
    """Return a line for each kind of data with a cell for each ranker, and a line for each summary."""
    lines = [
        [kind, *(cell(cells[kind]) if kind in cells else "" for cells in arms.values())] for kind in kinds
    ]
    for name, summary in summaries.items():
        partial = [
            "" if len(cells) == len(kinds) else f" ({len(cells)} of {len(kinds)} kinds)"
            for cells in arms.values()
        ]
        shown = [summary(list(cells.values())) for cells in arms.values()]
        lines.append([name, *(text + note for text, note in zip(shown, partial, strict=True))])
    return markdown(["kind of data", *arms], lines) if arms else ""


def selection(row: Row) -> str:
    error = f" ± {row['fdp_error']:.2f}" if "fdp_error" in row else ""
    power = f" / {row['power']:.2f}" if "power" in row else ""
    return f"{row['fdp']:.2f}{error}{power}"


def by_arm(rows: list[Row], field: str) -> tuple[list[str], dict[str, dict[str, Row]]]:
    """Return the kinds of data and, by ranker and kind, the rows that have the field."""
    arms: dict[str, dict[str, Row]] = {row["baseline"]: {} for row in rows}
    having = [row for row in rows if field in row]
    for row in having:
        arms[row["baseline"]][row["case"]] = row
    return list(dict.fromkeys(row["case"] for row in having)), {
        arm: cells for arm, cells in arms.items() if cells
    }


def trees(rows: list[Row]) -> str:
    """Return a line for each set and kind of leaf: score and nodes of each selector, and who chose."""
    selectors = ["relief", "accuracy or mse", "combined", "scikit-learn"]
    lines: dict[tuple[str, str], list[str]] = {}
    for row in rows:
        cells = lines.setdefault((row["size"], row["case"]), [])
        cells.append(f"{row['value']:.3f} ({row['nodes']:.0f})")
        if "by_other" in row:
            lines[row["size"], row["case"]].insert(0, f"{row['by_other']:.0%}")
    table = [[case, leaves, *cells[1:], cells[0]] for (leaves, case), cells in lines.items()]
    return markdown(["set", "leaves", *selectors, "by the second"], table)


BY_ARM = {"quality": quality_by_arm, "discoveries": discoveries_by_arm}
"""Tables of quality.py, which have a line for each ranker."""

OF_BENCHMARK = {"relief_trees": trees, "intervals": coverage}
"""Tables of other benchmarks that are not lists of cases."""


def shown(value: object) -> str:
    return f"{value:,g}" if isinstance(value, int | float) else str(value)


def filled(document: str, rows: list[Row]) -> str:
    """Return the document with its tables made anew."""

    def table(found: re.Match[str]) -> str:
        name = found[2]
        if name == "figures":
            made = figures(rows)
        elif name in BY_ARM:
            made = BY_ARM[name]([row for row in rows if row["benchmark"] == "quality"])
        elif name in OF_BENCHMARK:
            made = OF_BENCHMARK[name]([row for row in rows if row["benchmark"] == name])
        else:
            made = benchmark(name, rows)
        return f"{found[1]}\n{made}\n{found[3]}"

    return TABLE.sub(table, document)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="change nothing; fail where something would")
    check = parser.parse_args().check
    rows = read_records()
    for path in DOCUMENTS:
        before = path.read_text()
        after = filled(before, rows)
        if check and after != before:
            sys.exit(f"{path.relative_to(ROOT)}: tables differ from benches/record; run benches/tables.py")
        if not check:
            path.write_text(after)


if __name__ == "__main__":
    main()
