"""Text from files and other libraries, as it is shown: without control characters and tracebacks."""

import re
from unicodedata import category

__all__ = ["visible", "visible_lines", "without_traceback"]


def visible(text: str) -> str:
    r"""Return ``text`` with characters escaped that move the cursor, change colors, or turn lines around.

    Names of columns come from files, and could make a terminal do things.

    >>> print(visible("red\x1b[31m"))
    red\x1b[31m
    """
    return "".join(
        character.encode("unicode_escape").decode() if category(character) in _INVISIBLE else character
        for character in text
    )


def visible_lines(text: str) -> str:
    r"""Return a message of several lines, each of which is :func:`visible`.

    >>> print(visible_lines("red\x1b[31m\nblue"))
    red\x1b[31m
    blue
    """
    return "\n".join(map(visible, text.split("\n")))


def without_traceback(text: str) -> str:
    """Return the message of an error of pyarrow, which puts the traceback of a stream in Python behind it.

    >>> without_traceback("mine. Detail: Python exception: Traceback (most recent call last): ...")
    'mine'
    """
    return re.split(r"\s*\. Detail: Python exception: ", text, maxsplit=1)[0]


_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Control and format characters, lone surrogates, separators of lines and paragraphs (Unicode 16, §4.5)."""
