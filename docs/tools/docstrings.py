"""Docstrings are numpydoc in reStructuredText; this makes Markdown of its roles and references."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|data|mod|attr|exc):`(~?)([^`<]+)`")
_CITATION = re.compile(r"\[(\d+)\]_")
_REFERENCE = re.compile(r"^( *)\.\. \[(\d+)\] (.*(?:\n\1   .*)*)", re.MULTILINE)


def markdown(docstring: str) -> str:
    """Return a docstring without marks that only Sphinx knows."""
    docstring = _ROLE.sub(_link, docstring)
    docstring = _REFERENCE.sub(lambda one: f"{one[1]}{one[2]}. {' '.join(one[3].split())}", docstring)
    return _CITATION.sub(r"[\1]", docstring)


def _link(role: re.Match[str]) -> str:
    """Return a link to what a role names, which is plain text if it is not on a page."""
    name = role[2].removeprefix("ferrank.")
    shown = name.rpartition(".")[2] if role[1] else role[2]
    return f'<autoref identifier="ferrank.{name}" optional><code>{shown}</code></autoref>'


class Markdown(griffe.Extension):
    """Applies :func:`markdown` to every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
