"""The names of settings in messages, as the command line has them."""

import argparse
import re
from collections.abc import Mapping

__all__ = ["flags_of", "in_shell", "suggestion"]


def flags_of(parser: argparse.ArgumentParser) -> dict[str, str]:
    """Return the longest option for each setting; a second one stands under its own name."""
    flags: dict[str, str] = {}
    for action in parser._actions:
        if action.option_strings and action.dest != "help":
            flag = max(action.option_strings, key=len)
            flags[flag.lstrip("-") if action.dest in flags else action.dest] = flag
    return flags


def in_shell(message: str, flags: Mapping[str, str]) -> str:
    """Return a message of the library, in which settings are called as on the command line.

    >>> flags = {"n_estimators": "--trees", "shadows": "--shadows", "unlabelled": "--unlabelled"}
    >>> in_shell("n_estimators: 0 is too few; use shadows=True and unlabelled='use'", flags)
    '--trees: 0 is too few; use --shadows and --unlabelled use'
    >>> in_shell("shadows: set n_estimators to 600; no column 'n_estimators'", flags)
    "--shadows: set --trees to 600; no column 'n_estimators'"
    >>> in_shell("say it: CSVFile(path, encoding='cp1250')", {"encoding": "--encoding"})
    'say it: --encoding cp1250'
    """

    def given(found: re.Match[str]) -> str:
        flag, value = flags.get(found["name"]), found["value"]
        if flag is None:
            return found[0]
        return flag if value == "True" else f"{flag} {value}"

    def said_of_csv(found: re.Match[str]) -> str:
        flag, value = flags.get(found["name"]), found["value"]
        if flag is None:
            return found[0]
        return flag if value == "…" else f"{flag} {value}"

    message = re.sub(
        r"CSVFile\(path, (?P<name>\w+)=(?P<quote>'?)(?P<value>[^')]*)(?P=quote)\)", said_of_csv, message
    )
    message = re.sub(r"\b(?P<name>\w+)=(?P<quote>['\"]?)(?P<value>[\w.-]+)(?P=quote)", given, message)
    # Only settings have an underscore in their names, but for what stands in quotes.
    message = re.sub(
        r"(?<!['\"\w])[a-z]+(_[a-z]+)+\b(?!['\"])", lambda found: flags.get(found[0], found[0]), message
    )
    name, colon, rest = message.partition(": ")
    return flags[name] + colon + rest if name in flags else message


def suggestion(option: str, flags: Mapping[str, str]) -> str:
    """Return which option was meant by one that does not exist, for the end of a message.

    >>> flags = {"n_estimators": "--trees", "n_neighbors": "--neighbors"}
    >>> suggestion("--n-estimators", flags), suggestion("--neighbours=3", flags), suggestion("--q", flags)
    ('; did you mean --trees?', '; did you mean --neighbors?', '')
    """
    from difflib import get_close_matches

    option = option.partition("=")[0]
    meant = flags.get(option.lstrip("-").replace("-", "_"))
    near = [meant] if meant else get_close_matches(option, flags.values(), n=1)
    return f"; did you mean {near[0]}?" if near else ""
