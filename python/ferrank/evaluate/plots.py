"""Drawings of curves, stability and comparisons."""

import os
from collections.abc import Mapping
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrank.evaluate.extra import need
from ferrank.ranking.plot import finish, need_matplotlib
from ferrank.ranking.text import shorten

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ferrank.evaluate.compare import Comparison
    from ferrank.evaluate.curves import Curves
    from ferrank.evaluate.stability import Stability

__all__ = ["COLOURS", "plot_comparison", "plot_curves", "plot_stability", "tidy"]

Path = str | os.PathLike[str] | None

COLOURS = ("#2f6f9f", "#c2703d", "#4d8b57", "#8a5a9e", "#b8504f", "#4f9a9a", "#8f7a2f", "#6b6b9e")
_DASHES = ("-", "--", "-.", (0, (6, 1.5, 1, 1.5, 1, 1.5)), (0, (1, 1)), (0, (4, 3)), "-", "--")
_RANDOM_COLOUR = "#777777"
_PANEL_INCHES = (4.4, 3.5)
_CD_HEIGHT = 1.6
_CONTROL_HEIGHT = -0.12
_MOST_TICKS = 25


def plot_curves(curves: "Curves", path: Path = None) -> "Figure":
    """Draw forward curves, reverse curves and stability; see :meth:`ferrank.evaluate.Curves.plot`."""
    stabilities = curves.stability
    n_panels = 3 if stabilities else 2
    size = (_PANEL_INCHES[0] * n_panels, _PANEL_INCHES[1] + 0.6)
    figure = need_matplotlib()(figsize=size, dpi=150, layout="constrained")
    panels = figure.subplots(1, n_panels)
    styles = _styles(curves.forward)
    n = len(curves.features)
    for name, errors in curves.forward.items():
        panels[0].plot(curves.sizes, errors.mean(axis=0), **styles[name], label=name)
    for name, errors in curves.reverse.items():
        # At x stands the model of the features from rank x on.
        panels[1].plot(n + 1 - curves.sizes, errors.mean(axis=0), **styles[name])
    low, high = _limits([*curves.forward.values(), *curves.reverse.values()])
    for axes in panels[:2]:
        axes.set_ylim(low, high)
        axes.set_ylabel(curves.measure, fontsize=9)
    _label(panels[0], "forward: the best i features", "i", n)
    _label(panels[1], "reverse: the features from rank i on", "i", n)
    if stabilities:
        _stability_panel(panels[2], stabilities, styles)
    figure.legend(loc="outside lower center", ncols=min(len(styles), 6), fontsize=9, frameon=False)
    return finish(figure, path)


def plot_stability(stabilities: Mapping[str, "Stability"], path: Path = None) -> "Figure":
    """Draw the stability indicator and the Jaccard index by size, a line for each name."""
    figure = need_matplotlib()(
        figsize=(_PANEL_INCHES[0] * 2, _PANEL_INCHES[1] + 0.4), dpi=150, layout="constrained"
    )
    left, right = figure.subplots(1, 2)
    styles = _styles(stabilities)
    _stability_panel(left, stabilities, styles)
    for name, found in stabilities.items():
        right.plot(found.sizes, found.jaccard, **styles[name], label=name)
    right.set_ylim(-0.03, 1.03)
    _label(
        right,
        "Jaccard index of the best i (1: the same)",
        "i",
        max(s.n_features for s in stabilities.values()),
    )
    if any(stabilities):
        figure.legend(
            *right.get_legend_handles_labels(), loc="outside lower center", ncols=6, fontsize=9, frameon=False
        )
    return finish(figure, path)


def plot_comparison(comparison: "Comparison", path: Path = None, title: str = "") -> "Figure":
    """Draw the diagram of critical differences; see :meth:`ferrank.evaluate.Comparison.plot`.

    The axis runs over all ranks that there can be. ``title`` is what is compared, such as a measure.
    """
    import pandas as pd

    names = [shorten(name, 28) for name in comparison.methods]
    if len(set(names)) < len(names):
        names = comparison.methods
    size = (7.5, 1.5 + 0.24 * len(names))
    figure = need_matplotlib()(figsize=size, dpi=150, layout="constrained")
    axes = figure.subplots()
    # Without a control, bars join what Nemenyi's test does not tell apart.
    p_values = comparison.nemenyi if comparison.control is None else np.eye(len(names))
    need("scikit_posthocs", "comparisons").critical_difference_diagram(
        pd.Series(comparison.mean_rank, index=names),
        pd.DataFrame(p_values, index=names, columns=names),
        alpha=comparison.alpha,
        ax=axes,
        text_h_margin=0.05,
        label_fmt_left="{label} ({rank:.2f})",
        label_fmt_right="({rank:.2f}) {label}",
        label_props={"fontsize": 9},
        elbow_props={"color": "#333333", "linewidth": 1.0},
        marker_props={"color": COLOURS[0], "s": 22, "zorder": 3},
        crossbar_props={"color": COLOURS[1], "linewidth": 2.5},
    )
    last = len(names)
    margin = 0.05 + 0.02 * last
    axes.set_xlim(1 - margin, last + margin)
    axes.spines["top"].set_bounds(1, last)
    axes.set_xticks(range(1, last + 1, -(-last // _MOST_TICKS)))
    if title:
        figure.suptitle(title, fontsize=9.5)
    # Above the numbers of the axis, which the library would draw it across.
    control, width = comparison.control, comparison.critical_difference
    bars = "Bars join methods that do not differ by Nemenyi's test"
    if control is not None and comparison.control_difference is not None:
        width = comparison.control_difference
        rank = comparison.mean_rank[comparison.methods.index(control)]
        near = max(1.0, rank - width), min(float(last), rank + width)
        axes.plot(near, [_CONTROL_HEIGHT] * 2, color=COLOURS[1], linewidth=2.5, zorder=0)
        bars = f"The bar spans ranks that do not differ from {shorten(control, 28)} by Bonferroni-Dunn"
    start = 1.0
    axes.plot([start, start + width], [_CD_HEIGHT] * 2, color=COLOURS[1], linewidth=2.5, clip_on=False)
    axes.text(start + width, _CD_HEIGHT, f"  critical difference {width:.2f}", fontsize=9, va="center")
    better = "lower" if comparison.lower_is_better else "higher"
    about = (
        f"Mean ranks on {comparison.n_data_sets} data sets ({better} results are better; 1 is the best). "
        f"{bars} at {comparison.alpha:g}."
    )
    figure.supxlabel(fill(about, 120), fontsize=7.5)
    return finish(figure, path)


def tidy(axes: "Axes") -> None:
    """Take away what a reader does not need."""
    axes.grid(linewidth=0.4, alpha=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(labelsize=8)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _styles(names: Any) -> dict[str, dict[str, Any]]:
    """Return colour and dashes of each name: told apart in print as well."""
    styles = {}
    for name in names:
        if name == "random":
            styles[name] = {"color": _RANDOM_COLOUR, "linestyle": ":", "linewidth": 1.6}
        else:
            number = len(styles) % len(COLOURS)
            styles[name] = {"color": COLOURS[number], "linestyle": _DASHES[number], "linewidth": 1.5}
    return styles


def _stability_panel(
    axes: "Axes", stabilities: Mapping[str, "Stability"], styles: Mapping[str, Mapping[str, Any]]
) -> None:
    for name, found in stabilities.items():
        axes.plot(found.sizes, found.canberra, **styles[name])
    axes.set_ylim(-0.03, max(1.1, *(float(found.canberra.max()) + 0.05 for found in stabilities.values())))
    title = "instability of the best i (0: the same, 1: random)"
    _label(axes, title, "i", max(found.n_features for found in stabilities.values()))


def _label(axes: "Axes", title: str, x: str, n: int) -> None:
    axes.set_title(title, fontsize=9.5)
    axes.set_xlabel(x, fontsize=9)
    axes.set_xlim(0, n + 1)
    tidy(axes)


def _limits(errors: list[np.ndarray[Any, Any]]) -> tuple[float, float]:
    means = [one.mean(axis=0) for one in errors]
    low, high = min(float(one.min()) for one in means), max(float(one.max()) for one in means)
    margin = 0.05 * (high - low) or 0.05
    return low - margin, high + margin
