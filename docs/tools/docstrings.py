"""Docstrings are numpydoc in reStructuredText; this makes Markdown of its roles and references."""

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|meth|func|data|mod|attr|exc):`(~?)([^`<]+)`")
_CITATION = re.compile(r"\[(\d+)\]_")
_REFERENCE = re.compile(r"^( *)\.\. \[(\d+)\] (.*(?:\n\1   .*)*)", re.MULTILINE)


def markdown(docstring: str) -> str:
    """Return a docstring without marks that only Sphinx knows."""
    docstring = _ROLE.sub(lambda role: f"`{role[2].rpartition('.')[2] if role[1] else role[2]}`", docstring)
    docstring = _REFERENCE.sub(lambda one: f"{one[1]}{one[2]}. {' '.join(one[3].split())}", docstring)
    return _CITATION.sub(r"[\1]", docstring)


class Markdown(griffe.Extension):
    """Applies :func:`markdown` to every docstring."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Change the docstring of an object that was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = markdown(obj.docstring.value)
