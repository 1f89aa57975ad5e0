"""``ferrank completion``."""

import argparse
from typing import Any

from ferrank.cli.options import examples
from ferrank.errors import FerrankError

__all__ = ["add_to"]

_FILES = {"DATA", "TEST", "FILE", "RANKING", "PART", "PLAN", "RESULTS", "XML", "CSV"}
"""What stands for the name of a file, with or without a suffix."""


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands and options",
        description="Print a script for SHELL that completes commands, options, their values and names of "
        "files. Needs shtab: pip install 'ferrank[completion]'.",
        epilog=examples(
            "ferrank completion bash > ~/.local/share/bash-completion/completions/ferrank",
            "ferrank completion zsh > ~/.zfunc/_ferrank",
        ),
    )
    parser.add_argument("shell", metavar="SHELL", choices=["bash", "zsh", "tcsh"], help="bash, zsh or tcsh")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    try:
        import shtab
    except ImportError as error:
        raise FerrankError("completion needs shtab; pip install 'ferrank[completion]'") from error
    commands: Any = next(action for action in chosen.parser._actions if action.choices)
    for command in commands.choices.values():
        for action in command._actions:
            if str(action.metavar).partition(".")[0] in _FILES:
                action.complete = shtab.FILE
            elif action.metavar == "DIR":
                action.complete = shtab.DIRECTORY
    print(shtab.complete(chosen.parser, chosen.shell))
