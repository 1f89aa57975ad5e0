"""One self-contained HTML page about rankings: no scripts, nothing from the network, fit for print.

Bars and heat maps are markup of the page, drawings of matplotlib are SVG within it. A policy in its head
forbids the browser to load anything, whatever the names of features may hold.
"""

import base64
import io
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrank._core import __version__
from ferrank.errors import DataError
from ferrank.evaluate.extra import need
from ferrank.evaluate.measures import MEASURES
from ferrank.evaluate.rankings import Importances, Rankings, collect
from ferrank.output import check_path, replace

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ferrank.evaluate.compare import Comparison
    from ferrank.evaluate.curves import Curves
    from ferrank.evaluate.evaluation import Evaluation
    from ferrank.evaluate.stability import Stability

__all__ = ["REPORT_SUFFIXES", "report"]

Array = np.ndarray[Any, Any]

REPORT_SUFFIXES = (".html",)
_SCORES_ABREAST = 2
_BAR = 100.0
"""Width of a bar's drawing, in units of its own."""


def report(
    path: str | os.PathLike[str],
    rankings: Rankings | None = None,
    *,
    evaluation: "Evaluation | None" = None,
    curves: "Curves | None" = None,
    stability: "Stability | Mapping[str, Stability] | None" = None,
    comparison: "Comparison | None" = None,
    title: str = "Feature rankings",
    top: int = 30,
) -> None:
    """Write a page about rankings and how good they are.

    Parameters
    ----------
    path : path
        The .html file; one that is there is replaced.
    rankings : Ranking, path, sequence of these, or mapping, optional
        As in :func:`~ferrank.evaluate.evaluate`. The first orders the features. Those with importances by
        target get a heat map.
    evaluation : Evaluation, optional
        Measures of the rankings.
    curves : Curves, optional
        Error curves, with the stability between their splits.
    stability : Stability or mapping of str to Stability, optional
        Of other rankings, by name.
    comparison : Comparison, optional
        Of methods over data sets.
    title : str, default="Feature rankings"
    top : int, default=30
        Features shown.

    Raises
    ------
    DataError
        There is nothing to report, or the rankings are of different features.
    ResourceError, SettingError
        The file cannot be written there.
    FerrankError
        jinja2 or matplotlib is not installed.

    Examples
    --------
    >>> import ferrank, pathlib, tempfile
    >>> table = {"a": [1, 2, 3, 4], "b": [1, 1, 2, 2], "y": [0.1, 0.2, 0.3, 0.4]}
    >>> ranking = ferrank.rank(table, "y", n_estimators=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report(pathlib.Path(folder) / "report.html", ranking)
    ...     "genie3" in (pathlib.Path(folder) / "report.html").read_text(encoding="utf-8")
    True
    """
    target = check_path(path, REPORT_SUFFIXES)
    if all(part is None for part in (rankings, evaluation, curves, stability, comparison)):
        raise DataError("report: there is nothing to report; give rankings, an evaluation or curves")
    jinja2 = need("jinja2", "reports")
    found = [] if rankings is None else collect(rankings)
    features = _features(found)
    order = _order(found[0].values)[:top] if found else np.arange(0)
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    environment.filters["breakable"] = _breakable
    template = environment.from_string(
        resources.files("ferrank.evaluate").joinpath("report.html").read_text(encoding="utf-8")
    )
    page = template.render(
        title=title,
        version=__version__,
        n_features=len(features),
        n_shown=len(order),
        tables=list(_tables(found, features, order)),
        heat_maps=list(_heat_maps(found, features, order)),
        evaluation=evaluation and _evaluation(evaluation),
        curves=curves and _curves(curves),
        stability=None if stability is None else _stability(stability),
        comparison=comparison and {"text": comparison.to_text(), "figure": _inline(comparison.plot())},
    )
    replace(target, lambda partial: partial.write_text(page, encoding="utf-8"))


def _breakable(name: str) -> Any:
    """Let a line break after the joints of a name."""
    markup = need("markupsafe", "reports")
    joint = markup.Markup("<wbr>")
    return joint.join(re.split(r"(?<=[_.:/-])(?=.)", name))


def _features(found: Sequence[Importances]) -> list[str]:
    """Return the names of the features, which all rankings must share."""
    if not found:
        return []
    named = next((one.features for one in found if one.features is not None), None)
    features = named or [f"x{number}" for number in range(len(found[0].values))]
    for one in found:
        one.matched(features, "the first ranking")
    return features


def _order(values: Array) -> Array:
    return np.argsort(-values, kind="stable")


def _tables(found: Sequence[Importances], features: list[str], order: Array) -> Iterator[dict[str, Any]]:
    """Give tables of a few scores abreast, with a row for each feature of ``order``."""
    for start in range(0, len(found), _SCORES_ABREAST):
        shown = found[start : start + _SCORES_ABREAST]
        columns = [list(_cells(one, features, order)) for one in shown]
        yield {
            "scores": [one.name for one in shown],
            "has_errors": any(one.standard_errors is not None for one in shown),
            "rows": [
                {"feature": features[feature], "cells": [column[row] for column in columns]}
                for row, feature in enumerate(order)
            ],
        }


def _cells(one: Importances, features: list[str], order: Array) -> Iterator[dict[str, Any]]:
    values = one.matched(features, "the first ranking")
    errors = np.full(len(values), np.nan)
    if one.standard_errors is not None:
        place = {name: number for number, name in enumerate(one.features or features)}
        errors = one.standard_errors[[place[name] for name in features]]
    whiskers = np.nan_to_num(errors)
    rank = 1 + len(values) - np.searchsorted(np.sort(values), values, side="right")
    shown = values[order]
    low = min(0.0, float((shown - whiskers[order]).min(initial=0.0)))
    span = max(float((shown + whiskers[order]).max(initial=0.0)) - low, np.finfo(float).tiny)

    def place_of(value: float) -> float:
        return round(_BAR * (value - low) / span, 2)

    for feature in order:
        value, error = float(values[feature]), float(errors[feature])
        ends = sorted((place_of(0.0), place_of(value)))
        yield {
            "rank": int(rank[feature]),
            "value": f"{value:#.4g}",
            "error": None if np.isnan(error) else f"{error:#.2g}",
            "zero": place_of(0.0),
            "start": ends[0],
            "width": round(ends[1] - ends[0], 2),
            "low": None if np.isnan(error) else place_of(value - error),
            "high": None if np.isnan(error) else place_of(value + error),
        }


def _heat_maps(found: Sequence[Importances], features: list[str], order: Array) -> Iterator[dict[str, Any]]:
    for one in found:
        if one.by_target is not None:
            place = {name: number for number, name in enumerate(one.features or features)}
            rows = [place[features[feature]] for feature in order]
            yield _heat(one.name, [features[feature] for feature in order], one.targets, one.by_target[rows])


def _heat(name: str, rows: Sequence[str], columns: Sequence[str], values: Array) -> dict[str, Any]:
    """Return a heat map whose shades go from the least to the greatest of its values."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    span = (high - low) or 1.0

    def cell(value: float) -> dict[str, Any]:
        if not np.isfinite(value):
            return {"text": "–", "shade": 0.0, "dark": False}
        shade = (value - low) / span
        return {"text": f"{value:.3g}", "shade": round(shade, 3), "dark": shade > 0.6}

    return {
        "name": name,
        "columns": list(columns),
        "rows": [
            {"name": row, "cells": [cell(float(value)) for value in line]}
            for row, line in zip(rows, values, strict=True)
        ],
    }


def _evaluation(evaluation: "Evaluation") -> dict[str, Any]:
    def row(name: str, values: Array) -> dict[str, Any]:
        known = values[np.isfinite(values)]
        pick = np.max if MEASURES[name].higher_is_better else np.min
        best = f"{pick(known):.4f}" if len(known) else None
        texts = [f"{value:.4f}" if np.isfinite(value) else "–" for value in values]
        title = MEASURES[name].title + (" ↑" if MEASURES[name].higher_is_better else " ↓")
        return {"title": title, "cells": [{"text": text, "best": text == best} for text in texts]}

    return {
        "task": evaluation.task,
        "n_train": evaluation.n_train,
        "n_test": evaluation.n_test,
        "n_neighbors": evaluation.settings.get("n_neighbors"),
        "rankings": evaluation.rankings,
        "rows": [row(name, values) for name, values in evaluation.measures.items()],
        "heat_maps": [
            _heat(
                MEASURES[name].title if name in MEASURES else name.upper(),
                evaluation.targets,
                evaluation.rankings,
                values.T,
            )
            for name, values in evaluation.by_target.items()
        ],
    }


def _curves(curves: "Curves") -> dict[str, Any]:
    return {
        "measure": curves.measure,
        "model": curves.settings.get("model"),
        "areas": [
            {
                "name": name,
                "forward": f"{area.forward:.4f}",
                "reverse": f"{area.reverse:.4f}",
                "gain": f"{area.gain:.4f}",
            }
            for name, area in curves.areas().items()
        ],
        "stability": _stability_rows(curves.stability),
        "figure": _inline(curves.plot()),
    }


def _stability(stability: "Stability | Mapping[str, Stability]") -> dict[str, Any]:
    from ferrank.evaluate.plots import plot_stability

    named = stability if isinstance(stability, Mapping) else {"": stability}
    return {"rows": _stability_rows(named), "figure": _inline(plot_stability(named))}


def _stability_rows(stabilities: "Mapping[str, Stability]") -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "n_rankings": found.n_rankings,
            "canberra": f"{found.canberra.mean():.3f}",
            "spearman": f"{found.spearman:.3f}",
            "kendall": f"{found.kendall:.3f}",
            "jaccard": f"{found.jaccard[min(9, len(found.jaccard) - 1)]:.3f}",
            "size": int(found.sizes[min(9, len(found.sizes) - 1)]),
        }
        for name, found in stabilities.items()
    ]


def _inline(figure: "Figure") -> str:
    """Return ``figure`` as SVG in a data URL; as an image of its own it shares no names with the page."""
    drawn = io.BytesIO()
    figure.savefig(drawn, format="svg", metadata={"Date": None})
    return f"data:image/svg+xml;base64,{base64.b64encode(drawn.getvalue()).decode('ascii')}"
