"""``ferrank inspect``."""

import argparse
import json
from typing import Any

from ferrank.cli.options import add_data, add_hierarchy, add_roles, columns_of, examples
from ferrank.cli.progress import progress_line
from ferrank.errors import SettingError

__all__ = ["add_to"]

_TOP = 3


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "inspect",
        help="describe the columns",
        description="Describe the columns of DATA.",
        epilog=examples(
            "ferrank inspect iris.csv",
            "ferrank inspect assays.csv --clustering --target activity",
        ),
    )
    add_data(parser)
    parser.add_argument(
        "--clustering",
        action="store_true",
        help="say as well how far clusters tell the targets, 1 at best: whether rows without "
        "a target can help",
    )
    add_hierarchy(add_roles(parser, weights=False, groups=False))
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.data.inspect import inspect

    for option, given in columns_of(chosen, "hierarchy_decay").items():
        if given and option != "labels" and not chosen.clustering:
            raise SettingError(f"{option}: goes with --clustering; leave it out, or ask for that")
    with progress_line() as progress:
        found = inspect(chosen.data, labels=chosen.labels, progress=progress)
    if chosen.clustering:
        found["clustering"] = _clustering(chosen)
    print(json.dumps(found) if chosen.json else _text(found))


def _clustering(chosen: argparse.Namespace) -> float:
    from ferrank.model_selection.clustering import clustering_value

    return clustering_value(chosen.data, **columns_of(chosen, "hierarchy_decay"))


def _text(found: dict[str, Any]) -> str:
    head = ["column", "type", "kind", "missing", "distinct", "values", "as a target"]
    rows = [head, *(_row(column) for column in found["columns"])]
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    adjust = [str.ljust, str.ljust, str.ljust, str.rjust, str.rjust, str.ljust, str.ljust]
    lines = [
        "  ".join(place(cell, width) for place, cell, width in zip(adjust, row, widths, strict=True)).rstrip()
        for row in rows
    ]
    labels = f", of which {len(found['labels']):,} are labels" if found["labels"] else ""
    lines = [f"{found['rows']:,} rows, {len(found['columns']):,} columns{labels}", "", *lines]
    if "clustering" in found:
        lines += [
            "",
            f"clustering value: {found['clustering']:.3f} (1: clusters tell the targets)",
        ]
    return "\n".join(lines)


def _row(column: dict[str, Any]) -> list[str]:
    from ferrank.ranking.text import shorten

    distinct = column["distinct"]
    return [
        shorten(column["name"]),
        shorten(column["type"], 24),
        column["kind"],
        f"{column['missing']:,}" if column["missing"] else "",
        "" if distinct is None else f"{distinct:,}",
        _values(column),
        column["task"] or "",
    ]


def _values(column: dict[str, Any]) -> str:
    if column["range"] is not None:
        low, high = column["range"]
        return f"{low:.6g} … {high:.6g}"
    from ferrank.ranking.text import shorten

    top = column["top"][:_TOP]
    more = ", …" if len(column["top"]) > len(top) else ""
    return ", ".join(f"{shorten(name, 16)} ({count:,})" for name, count in top) + more
