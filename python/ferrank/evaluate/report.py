"""The page of rankings (:mod:`ferrank.ranking.page`) with sections about how good they are.

Drawings of matplotlib are SVG within it.
"""

import base64
import io
import os
from collections.abc import Mapping
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrank.data.parameters import kind_of
from ferrank.errors import DataError
from ferrank.evaluate.extra import need
from ferrank.evaluate.measures import MEASURES
from ferrank.evaluate.rankings import Rankings, to_rankings
from ferrank.output import check_path
from ferrank.ranking.page import PAGE_SUFFIXES, Report
from ferrank.ranking.page.sections import heat_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ferrank.evaluate.compare import Comparison
    from ferrank.evaluate.curves import Curves
    from ferrank.evaluate.evaluation import Evaluation
    from ferrank.evaluate.stability import Stability

__all__ = ["report"]

Array = np.ndarray[Any, Any]


def report(
    path: str | os.PathLike[str],
    rankings: Rankings | None = None,
    *,
    evaluation: "Evaluation | None" = None,
    curves: "Curves | None" = None,
    stability: "Stability | Mapping[str, Stability] | None" = None,
    comparison: "Comparison | None" = None,
    title: str = "Feature rankings",
) -> None:
    """Write a page about rankings and how good they are.

    Parameters
    ----------
    path : path
        The .html file; one that is there is replaced.
    rankings : Ranking, path, sequence of these, or mapping, optional
        As in :func:`~ferrank.evaluate.evaluate`. The first orders the features; all of them can be sorted
        and searched. Those with importances by target get a heat map.
    evaluation : Evaluation, optional
        Measures of the rankings.
    curves : Curves, optional
        Error curves, with the stability between their splits.
    stability : Stability or mapping of str to Stability, optional
        Of other rankings, by name.
    comparison : Comparison, optional
        Of methods over data sets.
    title : str, default="Feature rankings"

    Raises
    ------
    DataError
        There is nothing to report, or the rankings are of different features.
    ResourceError, SettingError
        The file cannot be written there.
    FerrankError
        An evaluation or the like is given, and jinja2 or matplotlib is not installed.

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
    target = check_path(path, PAGE_SUFFIXES)
    _check_parts(evaluation, curves, stability, comparison)
    if all(part is None for part in (rankings, evaluation, curves, stability, comparison)):
        raise DataError("report: there is nothing to report; give rankings, an evaluation or curves")
    page = Report(
        {} if rankings is None else to_rankings(rankings),
        title=title,
        sections=_sections(evaluation, curves, stability, comparison),
    )
    page.save(target)


def _check_parts(evaluation: object, curves: object, stability: object, comparison: object) -> None:
    from ferrank.evaluate.compare import Comparison
    from ferrank.evaluate.curves import Curves
    from ferrank.evaluate.evaluation import Evaluation
    from ferrank.evaluate.stability import Stability

    parts: list[tuple[str, type, object]] = [
        ("evaluation", Evaluation, evaluation),
        ("curves", Curves, curves),
        ("comparison", Comparison, comparison),
    ]
    named = stability.values() if isinstance(stability, Mapping) else [stability]
    for name, kind, part in [*parts, *(("stability", Stability, one) for one in named)]:
        if part is not None:
            kind_of(part, kind, name, f"what ferrank.evaluate.{_MAKERS[name]} returns")


_MAKERS = {"evaluation": "evaluate", "curves": "curves", "comparison": "compare", "stability": "stability"}


def _sections(
    evaluation: "Evaluation | None",
    curves: "Curves | None",
    stability: "Stability | Mapping[str, Stability] | None",
    comparison: "Comparison | None",
) -> str:
    if all(part is None for part in (evaluation, curves, stability, comparison)):
        return ""
    jinja2 = need("jinja2", "reports of evaluations")
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True)
    template = resources.files("ferrank.evaluate").joinpath("report.html").read_text(encoding="utf-8")
    found: str = environment.from_string(template).render(
        evaluation=evaluation and _evaluation(evaluation),
        curves=curves and _curves(curves),
        stability=None if stability is None else _stability(stability),
        comparison=comparison and {"text": comparison.to_text(), "figure": _inline(comparison.plot())},
    )
    return found


def _evaluation(evaluation: "Evaluation") -> dict[str, Any]:
    def row(name: str, values: Array) -> dict[str, Any]:
        known = values[np.isfinite(values)]
        pick = np.max if MEASURES[name].higher_is_better else np.min
        best = f"{pick(known):.4f}" if len(known) else None
        texts = [f"{value:.4f}" if np.isfinite(value) else "–" for value in values]
        title = MEASURES[name].title + (" ↑" if MEASURES[name].higher_is_better else " ↓")
        return {"title": title, "cells": [{"text": text, "best": text == best} for text in texts]}

    markup = need("markupsafe", "reports of evaluations")
    return {
        "task": evaluation.task,
        "n_train": evaluation.n_train,
        "n_test": evaluation.n_test,
        "n_neighbors": evaluation.settings.get("n_neighbors"),
        "rankings": evaluation.rankings,
        "rows": [row(name, values) for name, values in evaluation.measures.items()],
        "heat_maps": [
            {
                "name": MEASURES[name].title if name in MEASURES else name.upper(),
                "table": markup.Markup(heat_map(evaluation.targets, evaluation.rankings, values.T)),
            }
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
