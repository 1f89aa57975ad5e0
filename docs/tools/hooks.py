"""What mkdocs does beside its own work: it draws the pictures and writes the table of options."""

import argparse
import re
import sys
import warnings
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # mkdocs loads this file by its path

import pictures  # noqa: E402

_drawn: dict[str, bytes] = {}
"""By name; drawn once, also where `mkdocs serve` builds again."""
_OPTIONS = re.compile(r"^<!-- options (\w+) -->$", re.MULTILINE)


def on_files(files: Files, *, config: Any) -> Files:
    """Add the pictures."""
    if not _drawn:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _drawn.update(pictures.draw_all())
    for name, content in _drawn.items():
        files.append(File.generated(config, f"pictures/{name}", content=content))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace `<!-- options COMMAND -->` by a table of the options of a command."""
    return _OPTIONS.sub(lambda found: options_table(found[1]), markdown)


def options_table(command: str) -> str:
    """Return a table of options, the parameters that they are in Python, and what they mean."""
    from ferrank.cli.main import build_parser

    subparsers = next(
        action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    lines = ["| option | in Python | what |", "|---|---|---|"]
    for action in subparsers.choices[command]._actions:
        if not action.option_strings or action.dest == "help":
            continue
        flag = next(name for name in action.option_strings if name.startswith("--"))
        lines.append(
            f"| `{f'{flag} {_values(action)}'.strip()}` | {_in_python(action)} | "
            f"{(action.help or '').replace('|', '&#124;')} |"
        )
    return "\n".join(lines)


def _values(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    if action.choices:
        return "{" + ",".join(map(str, action.choices)) + "}"
    return " ".join(action.metavar) if isinstance(action.metavar, tuple) else str(action.metavar)


def _in_python(action: argparse.Action) -> str:
    """Return the parameter of `ferrank.rank` that an option is, or what else does the same."""
    if action.dest in _ELSEWHERE:
        return f"`{_ELSEWHERE[action.dest]}`"
    has_value = action.nargs == 0 and action.const is not None and not isinstance(action.const, list)
    return f"`{action.dest}={action.const!r}`" if has_value else f"`{action.dest}`"


_ELSEWHERE = {
    "delimiter": "CSVFile(delimiter=…)",
    "header": "CSVFile(header=False)",
    "encoding": "CSVFile(encoding=…)",
    "weight": "sample_weight",
    "output": "ranking.save(…)",
    "plot": "ranking.plot(…)",
    "top": "ranking.to_text(…)",
    "select": "ranking.relevant(fdr=…)",
    "json": "ranking.to_dict()",
}
