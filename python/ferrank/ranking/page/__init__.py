"""Rankings as one HTML page that can be worked with: sorted, searched, compared, printed.

The page holds all features, its style and its script, and loads nothing: a policy in its head forbids it, and
allows the one script by its hash.
"""

import base64
import hashlib
import json
import os
import platform
import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrank._core import __version__
from ferrank.data.parameters import kind_of
from ferrank.errors import DataError
from ferrank.escape import visible
from ferrank.output import check_path, replace
from ferrank.ranking import text
from ferrank.ranking.page.sections import comparison, dendrograms, facts, heat_maps

if TYPE_CHECKING:
    from ferrank.ranking.result import Ranking
    from ferrank.ranking.scores import ScoreRanking

__all__ = ["PAGE_SUFFIXES", "Report"]

PAGE_SUFFIXES = (".html",)

_BYTES = 3_500_000
"""Of numbers in a page; base64 makes a third more of them."""
_LEAST = 1_000
_WITHOUT_SCRIPT = 30
"""Features of the table that is shown where scripts are off."""
_IN_NOTEBOOKS = 720
"""Height of the page in a notebook, in pixels."""


class Report:
    """A page about one ranking or several of the same features; notebooks show it.

    Parameters
    ----------
    rankings : mapping of str to Ranking
        By name. The first orders the features.
    title : str, optional
        By default what the first ranking is of.
    sections : str, default=""
        Markup of further sections.

    Attributes
    ----------
    html : str
        The page.

    Raises
    ------
    DataError
        The rankings are of different features.

    Examples
    --------
    >>> import ferrank
    >>> ranking = ferrank.Ranking.from_importances(["a", "b"], {"w": [0.1, 0.7]}, task="regression")
    >>> report = ranking.report(title="Weights")
    >>> "<title>Weights</title>" in report.html
    True
    """

    def __init__(
        self, rankings: "Mapping[str, Ranking]", *, title: str | None = None, sections: str = ""
    ) -> None:
        if title is not None:
            kind_of(title, str, "title", "a text")
        self._title = title or (text.heading(next(iter(rankings.values()))) if rankings else "Rankings")
        self.html = _page(rankings, self._title, sections)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to an .html file, which is replaced in one step.

        Raises
        ------
        SettingError, ResourceError
            The file cannot be written there.
        """
        target = check_path(path, PAGE_SUFFIXES)
        replace(target, lambda partial: partial.write_text(self.html, encoding="utf-8"))

    def _repr_html_(self) -> str:
        """Return a frame with the page, whose style and names stay apart from those of the notebook."""
        return (
            f'<iframe srcdoc="{escape(self.html)}" title="{escape(self._title)}" '
            f'style="width: 100%; height: {_IN_NOTEBOOKS}px; border: 0"></iframe>'
        )


def _page(rankings: "Mapping[str, Ranking]", title: str, sections: str) -> str:
    script, style = _part("page.js"), _part("page.css")
    parts = {
        "title": escape(visible(title)),
        "hash": base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        "style": style,
        "script": script,
        "table": _table(rankings) if rankings else "",
        "sections": heat_maps(rankings) + dendrograms(rankings) + comparison(rankings) + sections,
        "facts": "".join(facts(name if len(rankings) > 1 else "", one) for name, one in rankings.items()),
        "version": f"ferrank {__version__}, Python {platform.python_version()}, NumPy {np.__version__}",
    }
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], _part("page.html"))


@cache
def _part(name: str) -> str:
    return resources.files("ferrank.ranking.page").joinpath(name).read_text(encoding="utf-8")


def _table(rankings: "Mapping[str, Ranking]") -> str:
    """Return the table of all features: its numbers, and a short one for where scripts are off."""
    first = next(iter(rankings.values()))
    order = first.order()
    columns = [
        column for name, ranking in rankings.items() for column in _columns(name, ranking, first.features)
    ]
    n_bytes = sum(array.itemsize for column in columns for array in column["arrays"].values())
    shown = order[: max(_BYTES // max(n_bytes, 1), _LEAST)]
    about = {
        "features": [visible(first.features[number]) for number in shown],
        "n_features": len(order),
        "several": len(rankings) > 1,
        "columns": [
            column | {"arrays": {name: _coded(array[shown]) for name, array in column["arrays"].items()}}
            for column in columns
        ],
    }
    data = json.dumps(about, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    return (
        _part("table.html")
        .replace("{{data}}", data)
        .replace("{{static}}", text.html_table(first, _WITHOUT_SCRIPT))
    )


def _columns(name: str, ranking: "Ranking", features: Sequence[str]) -> list[dict[str, Any]]:
    """Return the columns of a ranking, whose arrays are in the order of ``features``."""
    place = {feature: number for number, feature in enumerate(ranking.features)}
    if place.keys() != set(features):
        raise DataError(
            f"{name}: ranks other features than the first ranking; drop the same columns when ranking"
        )
    rows = np.array([place[feature] for feature in features], dtype=np.intp)
    columns: list[dict[str, Any]] = []
    if ranking.relevance is not None:
        verdicts = np.array(["relevant", "undecided", "irrelevant"])
        codes = np.argmax(ranking.relevance.verdict[:, None] == verdicts, axis=1).astype(np.uint8)
        arrays = {
            "verdict": codes,
            "p": ranking.relevance.p_value.astype(np.float32),
            "q": ranking.relevance.q_value.astype(np.float32),
        }
        columns.append({"kind": "verdict", "ranking": name, "name": "verdict", "arrays": arrays})
    if ranking.clusters is not None:
        labels = dict(zip(ranking.clusters.features, ranking.clusters.labels.tolist(), strict=True))
        numbers = np.array([labels.get(feature, np.nan) for feature in ranking.features], dtype=np.float32)
        columns.append({"kind": "cluster", "ranking": name, "name": "cluster", "arrays": {"value": numbers}})
    for score_name, score in ranking.scores.items():
        arrays = _arrays(score)
        columns.append({"kind": "score", "ranking": name, "name": score_name, "arrays": arrays})
    return [
        column | {"arrays": {key: values[rows] for key, values in column["arrays"].items()}}
        for column in columns
    ]


def _arrays(score: "ScoreRanking") -> dict[str, Any]:
    whole = np.uint16 if len(score.rank) < 1 << 16 else np.uint32
    arrays = {"value": score.importance.astype(np.float32), "rank": score.rank.astype(whole)}
    if np.isfinite(score.standard_error).any():
        arrays["error"] = score.standard_error.astype(np.float32)
        arrays["best"], arrays["worst"] = score.rank_interval.astype(whole).T
    if np.isfinite(score.monte_carlo_error).any():
        arrays["monte_carlo"] = score.monte_carlo_error.astype(np.float32)
    return arrays


_KINDS = {"f4": "Float32Array", "u1": "Uint8Array", "u2": "Uint16Array", "u4": "Uint32Array"}
"""Types of NumPy, and what JavaScript calls them."""


def _coded(values: Any) -> list[str]:
    kind = values.dtype.str[1:]
    data = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return [_KINDS[kind], base64.b64encode(data).decode()]
