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
        values = action.metavar or ("" if action.nargs == 0 else action.dest.upper())
        if action.choices:
            values = " ".join(map(str, action.choices))
        if isinstance(values, tuple):
            values = " ".join(values)
        is_setting = action.dest not in _SHELL_ONLY
        lines.append(
            f"| `{f'{flag} {values}'.strip()}` | {f'`{action.dest}`' if is_setting else ''} | "
            f"{(action.help or '').replace('|', '&#124;')} |"
        )
    return "\n".join(lines)


_SHELL_ONLY = {"output", "plot", "top", "select", "json", "delimiter", "header", "encoding"}
"""Options that are no parameter of `ferrank.rank`."""
