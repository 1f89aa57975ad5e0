"""Rankings as bars."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ferrank.data.parameters import names_of
from ferrank.errors import FerrankError, SettingError
from ferrank.output import check_path, replace
from ferrank.ranking.text import labels, shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ferrank.ranking.clusters import Clusters
    from ferrank.ranking.result import Ranking

__all__ = ["PLOT_SUFFIXES", "finish", "need_matplotlib", "plot", "plot_clusters"]

PLOT_SUFFIXES = (".png", ".svg", ".pdf")

_BAR_INCHES = 0.24
_PANEL_INCHES = 5.0
_MOST_BESIDE = 3
_COLOURS = ("#2f6f9f", "#c2703d", "#4d8b57", "#8a5a9e")


def need_matplotlib() -> type["Figure"]:
    """Return matplotlib's figure class.

    Raises
    ------
    FerrankError
        It is not installed; the message says how to get it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise FerrankError("plots need matplotlib; pip install 'ferrank[plot]'") from error
    return Figure


def finish(figure: "Figure", path: str | os.PathLike[str] | None) -> "Figure":
    """Return a figure that is drawn, saved where a path is given; all figures end here."""
    from matplotlib.text import Text

    _show_as_written(figure.findobj(Text))
    if path is not None:
        replace(check_path(path, PLOT_SUFFIXES), figure.savefig)
    return figure


def _show_as_written(texts: Iterable[Any]) -> None:
    """Have dollar signs shown: names have them, which matplotlib takes for formulas, and fails at some."""
    for text in texts:
        text.set_parse_math(False)


def plot(
    ranking: "Ranking",
    path: str | os.PathLike[str] | None = None,
    *,
    top: int = 30,
    scores: Sequence[str] | None = None,
    ax: "Axes | None" = None,
) -> "Figure":
    """Draw a panel for each score; see :meth:`ferrank.Ranking.plot`."""
    names = names_of(ranking.scores if scores is None else scores, "scores", "names of scores")
    if not names:
        raise SettingError("scores: none was given; name at least one, or leave it out")
    if ax is not None:
        if path is not None or (scores is not None and len(names) != 1):
            raise SettingError(
                "ax: is for one score, and its figure is saved by itself; leave the others out"
            )
        _panel(ax, ranking, names[0], top, _COLOURS[0])
        # The other texts of this figure are not ours.
        _show_as_written([ax.title, *ax.get_yticklabels()])
        return cast("Figure", ax.get_figure(root=True))
    shown = min(top, len(ranking.features))
    n_beside = min(len(names), _MOST_BESIDE)
    n_rows = -(-len(names) // n_beside)
    size = (_PANEL_INCHES * n_beside, 0.7 + n_rows * (0.8 + _BAR_INCHES * max(shown, 4)))
    figure = need_matplotlib()(figsize=size, dpi=150, layout="constrained")
    panels = figure.subplots(n_rows, n_beside, squeeze=False).ravel()
    for number, (axes, name) in enumerate(zip(panels, names, strict=False)):
        _panel(axes, ranking, name, top, _COLOURS[number % len(_COLOURS)])
    for unused in panels[len(names) :]:
        unused.remove()
    figure.suptitle(f"{shorten(ranking.task)}, {ranking.n_rows:,} rows: {_targets(ranking)}", fontsize=10)
    legend = "Whiskers: one standard error."
    if ranking.relevance is not None:
        legend += f" Pale: not relevant at a false discovery rate of {ranking.relevance.fdr:g}."
    if shown < len(ranking.features):
        figure.supxlabel(
            f"The best {shown:,} of {len(ranking.features):,} features; "
            f"{len(ranking.features) - shown:,} are not shown. {legend}",
            fontsize=8,
        )
    else:
        figure.supxlabel(f"All {shown:,} features. {legend}", fontsize=8)
    return finish(figure, path)


def _targets(ranking: "Ranking") -> str:
    names = ", ".join(shorten(name, 24) for name in ranking.targets[:3])
    more = len(ranking.targets) - 3
    return f"{names} and {more:,} more" if more > 0 else names


def _panel(axes: "Axes", ranking: "Ranking", name: str, top: int, colour: str) -> None:
    score, order = ranking.score(name), ranking.order(name)[:top]
    places = np.arange(len(order))
    bars = axes.barh(places, score.importance[order], height=0.72, color=colour, alpha=0.85)
    if ranking.relevance is not None:
        for bar, verdict in zip(bars, ranking.relevance.verdict[order], strict=True):
            bar.set_alpha(0.85 if verdict == "relevant" else 0.3)
    known = np.isfinite(score.standard_error[order])
    errors: Any = score.standard_error[order][known]
    axes.errorbar(
        score.importance[order][known],
        places[known],
        xerr=errors,
        fmt="none",
        ecolor="#222222",
        elinewidth=0.9,
        capsize=1.5,
    )
    axes.set_yticks(places, labels([ranking.features[number] for number in order], 28), fontsize=8)
    axes.set_ylim(max(len(order), 1) - 0.4, -0.6)
    axes.set_title(name, fontsize=10)
    axes.set_xlabel("importance", fontsize=8)
    axes.axvline(0, color="#222222", linewidth=0.6)
    axes.grid(axis="x", linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="x", labelsize=8)
    axes.tick_params(axis="y", length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def plot_clusters(
    clusters: "Clusters", path: str | os.PathLike[str] | None = None, *, top: int = 40
) -> "Figure":
    """Draw the tree of the best features; see :meth:`ferrank.Ranking.plot_clusters`."""
    names, branches = clusters.tree(top)
    size = (_PANEL_INCHES * 1.4, 1.2 + _BAR_INCHES * max(len(names), 4))
    figure = need_matplotlib()(figsize=size, dpi=150, layout="constrained")
    axes = figure.subplots()
    for branch in branches:
        (first, from_first), (second, from_second) = branch.first, branch.second
        joined = branch.association >= clusters.threshold
        axes.plot(
            [from_first, branch.association, branch.association, from_second],
            [first, first, second, second],
            color=_COLOURS[0] if joined else "#888888",
            linewidth=1.4 if joined else 0.9,
        )
    axes.axvline(clusters.threshold, color=_COLOURS[1], linewidth=0.8, linestyle="--")
    axes.set_xlim(1.02, -0.02)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_yticks(range(len(names)), labels(names, 28), fontsize=8)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("least association of two features in a cluster", fontsize=8)
    axes.tick_params(axis="x", labelsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    return finish(figure, path)
