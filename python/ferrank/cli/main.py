"""Commands, and the end of each: exit codes and messages.

A command imports what works for it when it runs: scikit-learn alone takes a second, which ``--help`` and
``inspect`` need not wait for.
"""

import argparse
import os
import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from ferrank import __version__
from ferrank.cli.names import flags_of, in_shell, suggestion
from ferrank.cli.options import examples, with_csv
from ferrank.cli.progress import message
from ferrank.errors import ColumnTypeError, DataError, FerrankError, ResourceError, SettingError
from ferrank.escape import visible

__all__ = ["COMMANDS", "build_parser", "main"]

COMMANDS = (
    "rank",
    "predict",
    "tree",
    "tune",
    "evaluate",
    "curves",
    "compare",
    "study",
    "report",
    "merge",
    "synth",
    "check",
    "inspect",
    "convert",
    "completion",
)
"""Modules of this package, in the order of ``--help``."""

_DONE, _OTHER, _BAD_INPUT, _INTERRUPTED = 0, 1, 2, 130


class _Formatter(argparse.HelpFormatter):
    """Leaves the lines of examples as they are."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if text.startswith("examples:") else super()._fill_text(text, width, indent)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors read like all others."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=_Formatter)

    def error(self, message: str) -> NoReturn:
        print(f"ferrank: error: {visible(message)}\n(see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(_BAD_INPUT)

    def _print_message(self, message: str, file: Any = None) -> None:
        # argparse's own passes over errors of the system.
        if message:
            (file or sys.stderr).write(message)


def build_parser(names: Iterable[str] = COMMANDS) -> argparse.ArgumentParser:
    """Return the parser of all commands, or of those with these names."""
    parser = _Parser(
        prog="ferrank",
        description="Rank the features of a table by how much they matter, and judge rankings.",
        epilog=examples(
            "ferrank check iris.csv --target class",
            "ferrank rank iris.csv --target class --output ranking.parquet",
            "ferrank report ranking.parquet --output page.html",
        ),
    )
    parser.add_argument("--version", action="version", version=f"ferrank {__version__}")
    commands = parser.add_subparsers(
        prog=parser.prog, dest="command", required=True, metavar="COMMAND", parser_class=_Parser
    )
    for name in names:
        import_module(f"ferrank.cli.{name}").add_to(commands)
    for command_parser in commands.choices.values():
        command_parser.set_defaults(flags=flags_of(command_parser), parser=parser)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    flags: dict[str, str] = {}
    if sys.stderr is None:  # closed; the next file that is opened would take its place
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    try:
        if sys.stdout is None:
            raise ResourceError("stdout: is closed; send it to a file, or to /dev/null")
        try:
            chosen = _parse(arguments)
            flags = chosen.flags
            with warnings.catch_warnings():
                warnings.showwarning = lambda warning, *_: message(
                    *f"warning: {in_shell(str(warning), flags)}".split("\n")
                )
                chosen.run(with_csv(chosen))
        finally:
            _flush()
    except BrokenPipeError:
        pass  # who reads has seen enough
    except KeyboardInterrupt:
        print("ferrank: interrupted", file=sys.stderr)
        return _INTERRUPTED
    except (DataError, ColumnTypeError, SettingError, ResourceError) as error:
        return _fail(error, _BAD_INPUT, flags)
    except (FerrankError, OSError, MemoryError) as error:
        return _fail(error, _OTHER, flags)
    return _DONE


def _flush() -> None:
    """Write out what was printed."""
    try:
        sys.stdout.flush()
    except OSError:
        # Python would complain once more when it flushes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    given = sys.argv[1:] if arguments is None else arguments
    # Most commands look for nothing in the options of others, and take less time without them.
    is_alone = bool(given) and given[0] in COMMANDS and given[0] != "completion"
    parser = build_parser(given[:1] if is_alone else COMMANDS)
    chosen, unknown = parser.parse_known_args(given)
    if unknown:
        option = next((one for one in unknown if one.startswith("-")), unknown[0])
        meant = suggestion(option, chosen.flags)
        parser.error(f"unrecognized arguments: {' '.join(unknown)}{meant}")
    return chosen


def _fail(error: BaseException, code: int, flags: Mapping[str, str]) -> int:
    text = in_shell(str(error) or type(error).__name__, flags).rstrip()
    # Errors of ferrank are escaped already, and may have several lines.
    shown = text if isinstance(error, FerrankError) else visible(text)
    print(f"ferrank: error: {shown}", file=sys.stderr)
    return code
