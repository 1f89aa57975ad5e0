"""The pictures of the documentation: rankings drawn by ferrank, and drawings of how it works.

`python docs/tools/pictures.py FOLDER` writes them into a folder, to look at them.
"""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.ticker import LogLocator

import ferrank as fr

ROOT = Path(__file__).parent.parent.parent
DATA = ROOT / "tests" / "data"
INK, BLUE, ORANGE, GREEN, GREY = "#222222", "#2f6f9f", "#c2703d", "#4d8b57", "#8a8a8a"


def draw_all() -> dict[str, bytes]:
    """Return the pictures by name."""
    return {name: _rendered(draw(), name) for name, draw in PICTURES.items()}


def _rendered(figure: Figure, name: str) -> bytes:
    file = io.BytesIO()
    # Without a date and with a white ground: the same bytes each time, readable on dark pages.
    kind = name.rpartition(".")[2]
    metadata = {"Date": None} if kind == "svg" else {}
    figure.savefig(file, format=kind, metadata=metadata, facecolor="white")
    return file.getvalue()


def german() -> Figure:
    """Draw a ranking with verdicts."""
    ranking = fr.rank(DATA / "german.arff", "class")
    return ranking.plot(top=16, scores=["evidence", "permutation"])


def scores() -> Figure:
    """Draw three scores of one forest."""
    forest = fr.ForestRanker(scores=("genie3", "symbolic", "permutation"))
    return fr.rank(DATA / "jura.arff", ["Cd", "Co", "Cu"], ranker=forest).plot()


def curves() -> Figure:
    """Draw error curves and stability."""
    from ferrank.evaluate import InformationGain, curves

    rankers = {
        "forest": fr.ForestRanker(n_estimators=50, standard_errors=False),
        "relief": fr.ReliefRanker(),
        "information gain": InformationGain(),
    }
    return curves(DATA / "wine.arff", "class", rankers, folds=3, n_random=10).plot()


def stability() -> Figure:
    """Draw the stability of bootstrap samples."""
    from ferrank.evaluate import resample, stability

    forest = fr.ForestRanker(n_estimators=30, standard_errors=False)
    return stability(resample(DATA / "wine.arff", "class", forest, n=8)).plot()


def critical() -> Figure:
    """Draw methods over data sets."""
    from ferrank.evaluate import compare

    results = {
        "forest": [0.91, 0.84, 0.77, 0.95, 0.88, 0.79],
        "relief": [0.90, 0.86, 0.71, 0.94, 0.85, 0.78],
        "gain": [0.85, 0.80, 0.70, 0.90, 0.84, 0.71],
    }
    return compare(results).plot()


def shadows() -> Figure:
    """Draw importances of features beside those of shadows: the same values in other rows."""
    rng = np.random.default_rng(4)
    n_rows, n_features = 300, 24
    X = rng.normal(size=(n_rows, n_features))
    y = X[:, 0] + 0.7 * X[:, 1] + 0.5 * X[:, 2] + rng.normal(size=n_rows)
    both = np.hstack([X, X[rng.permutation(n_rows)]])
    found = fr.rank(both, y, scores=("permutation",), n_estimators=300, standard_errors=False).importances()
    own, chance = found[:n_features], found[n_features:]
    order = np.argsort(-own)
    figure = Figure(figsize=(7, 3.2), dpi=150, layout="constrained")
    axes = figure.subplots()
    places = np.arange(n_features)
    colours = [BLUE if feature < 3 else GREY for feature in order]
    axes.bar(places, own[order], color=colours, width=0.7)
    axes.scatter(places, chance[order], s=22, color=ORANGE, zorder=3)
    axes.axhline(0, color=INK, linewidth=0.6)
    for label, colour, marker in (
        ("features that the target depends on", BLUE, "s"),
        ("irrelevant features", GREY, "s"),
        ("shadows: the same values in other rows", ORANGE, "o"),
    ):
        axes.scatter([], [], color=colour, marker=marker, label=label)
    axes.legend(frameon=False, fontsize=9)
    axes.set_ylabel("permutation importance", fontsize=9)
    axes.set_xlabel(f"{n_features} features of a simulated table, best first", fontsize=9)
    axes.set_xticks([])
    _bare(axes, ("top", "right"))
    return figure


def flow() -> Figure:
    """Draw the steps from a table to a ranking."""
    figure = Figure(figsize=(9, 3.1), dpi=150, layout="constrained")
    axes = figure.subplots()
    axes.set_xlim(0, 100)
    axes.set_ylim(0, 34)
    axes.axis("off")
    boxes = {
        "table": (1, 13, 12, "table\n(Arrow batches)", GREY),
        "profile": (19, 13, 12, "profile\n(first pass)", BLUE),
        "codes": (37, 23, 14, "codes\n(one byte a value)", BLUE),
        "rows": (37, 3, 14, "rows\n(scaled values)", ORANGE),
        "trees": (56, 23, 12, "trees\n(bags of rows)", BLUE),
        "near": (56, 3, 12, "neighbours\n(exact)", ORANGE),
        "sums": (73, 13, 12, "contributions\n(merge: union)", GREEN),
        "ranking": (89, 13, 10.5, "ranking", GREEN),
    }
    for left, bottom, width, text, colour in boxes.values():
        _box(axes, left, bottom, width, 8, text, colour)
    for start, end in (
        ("table", "profile"),
        ("profile", "codes"),
        ("profile", "rows"),
        ("codes", "trees"),
        ("rows", "near"),
        ("trees", "sums"),
        ("near", "sums"),
        ("sums", "ranking"),
    ):
        left, right = boxes[start], boxes[end]
        _arrow(axes, (left[0] + left[2] + 0.6, left[1] + 4), (right[0] - 0.6, right[1] + 4))
    axes.text(53, 32.5, "forest", ha="center", fontsize=10, color=BLUE)
    axes.text(53, 0.2, "Relief", ha="center", fontsize=10, color=ORANGE)
    return figure


def bounds() -> Figure:
    """Draw how a lower bound rules out rows: bars are bounds, dots exact distances of those that remain."""
    rng = np.random.default_rng(2)
    exact = np.sort(rng.gamma(4, 0.08, size=40))
    low = exact - rng.uniform(0.01, 0.05, size=40)
    k = 6
    threshold = exact[k - 1]
    figure = Figure(figsize=(7, 2.9), dpi=150, layout="constrained")
    axes = figure.subplots()
    rows = rng.permutation(40)
    for place, row in enumerate(rows):
        measured = low[row] <= threshold
        axes.bar(place, low[row], color=BLUE if measured else "#cfcfcf", width=0.72)
        if measured:
            axes.scatter(
                place, exact[row], s=20, color=GREEN if exact[row] <= threshold else ORANGE, zorder=3
            )
    axes.plot([-0.8, 39.8], [threshold] * 2, color=INK, linewidth=0.9, linestyle="--")
    axes.text(40.2, threshold, "distance of the\nk-th nearest", fontsize=8, va="center")
    for label, colour, marker in (
        ("lower bound from bytes: ruled out", "#cfcfcf", "s"),
        ("lower bound: has to be measured", BLUE, "s"),
        ("exact distance: among the k nearest", GREEN, "o"),
        ("exact distance: not among them", ORANGE, "o"),
    ):
        axes.scatter([], [], color=colour, marker=marker, label=label)
    axes.legend(frameon=False, fontsize=8, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
    axes.set_xlim(-0.8, 47)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel("rows", fontsize=9)
    axes.set_ylabel("distance", fontsize=9)
    _bare(axes, ("top", "right"))
    return figure


def ensembles() -> Figure:
    """Draw importances by bagging and by a random forest where pairs of features tell the target."""
    rng = np.random.default_rng(0)
    y, x2, x3 = rng.random(500) < 0.5, rng.random(500) < 0.2, rng.random(500) < 0.25
    X = np.column_stack([y ^ x2, x2, x3, *[y ^ x3] * 97]).astype(float)
    figure = Figure(figsize=(7, 2.7), dpi=150, layout="constrained")
    axes = figure.subplots()
    for number, (ensemble, colour) in enumerate((("bagging", BLUE), ("random_forest", ORANGE))):
        found = fr.rank(X, y, ranker="forest", ensemble=ensemble, standard_errors=False).importances()
        shown = [*found[:3], found[3:].sum()]
        name = ensemble.replace("_", " ")
        axes.bar(np.arange(4) + 0.38 * (number - 0.5), shown, width=0.36, color=colour, label=name)
    axes.set_xticks(range(4), ["x1", "x2", "x3", "x4 … x100, together"])
    axes.set_ylabel("importance (Genie3)", fontsize=9)
    axes.legend(frameon=False, fontsize=9)
    _bare(axes, ("top", "right"))
    return figure


def rewards() -> Figure:
    """Draw distances of nearest rows in the target and in a feature, and which of them add to importance."""
    rng = np.random.default_rng(3)
    X = rng.random((250, 2))
    y = X[:, 0]
    apart = [np.abs(np.subtract.outer(column, column)) / np.ptp(column) for column in (*X.T, y)]
    nearest = np.arange(len(y)), (apart[0] + apart[1] + np.diag(np.full(len(y), np.inf))).argmin(axis=1)
    first, second, tau = (each[nearest] for each in apart)
    figure = Figure(figsize=(8, 3.2), dpi=150, layout="constrained")
    panels = figure.subplots(1, 2, sharex=True, sharey=True)
    found = fr.rank(X, y, ranker="relief", n_neighbors=1).importances()
    names = "linear in the target", "independent of the target"
    for axes, alpha, importance, name in zip(panels, (first, second), found, names, strict=True):
        adds = tau >= tau.mean()
        axes.scatter(tau[adds], alpha[adds], s=9, color=GREEN, label="adds")
        axes.scatter(tau[~adds], alpha[~adds], s=9, color=ORANGE, label="takes away")
        axes.axvline(tau.mean(), color=INK, linewidth=0.9, linestyle="--")
        axes.set_title(f"{name}: importance {importance:.3f}", fontsize=9.5)
        axes.set_xlabel("distance τ in the target", fontsize=9)
        _bare(axes, ("top", "right"))
    panels[0].set_ylabel("distance α in the feature", fontsize=9)
    panels[0].legend(frameon=False, fontsize=8, title="a pair of near rows", title_fontsize=8)
    return figure


def growth() -> Figure:
    """Draw the time of a tree by each size, from the latest record of each case."""
    latest: dict[str, list[dict[str, Any]]] = {}
    for path in sorted((ROOT / "benches" / "record").glob("growth-*.json")):
        of_case: dict[str, list[dict[str, Any]]] = {}
        for row in json.loads(path.read_text())["rows"]:
            of_case.setdefault(row["case"], []).append(row)
        latest |= of_case
    figure = Figure(figsize=(8, 6.6), dpi=150, layout="constrained")
    panels = figure.subplots(3, 3).flat
    for axes, (case, rows) in zip(panels, latest.items(), strict=True):
        known = [row for row in rows if row["at"]]
        axes.plot(
            [row["at"] for row in known], [row["value"] for row in known], "o-", color=BLUE, markersize=3.5
        )
        for row in (row for row in rows if not row["at"]):
            axes.axhline(row["value"], color=GREY, linewidth=0.9, linestyle="--")
            axes.text(
                0.03,
                row["value"],
                "any depth",
                transform=axes.get_yaxis_transform(),
                fontsize=7.5,
                va="bottom",
            )
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.5 * min(row["value"] for row in rows), 2 * max(row["value"] for row in rows))
        axes.set_xticks([row["at"] for row in known], [f"{row['at']:,.0f}" for row in known], fontsize=7.5)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.tick_params(axis="y", labelsize=7.5)
        axes.minorticks_off()
        axes.set_title(case, fontsize=9.5)
        _bare(axes, ("top", "right"))
    figure.supylabel("milliseconds for each tree", fontsize=9)
    return figure


def _box(axes: Any, left: float, bottom: float, width: float, height: float, text: str, colour: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (left, bottom),
            width,
            height,
            boxstyle="round,pad=0.3,rounding_size=1.2",
            fc="white",
            ec=colour,
            lw=1.6,
        )
    )
    axes.text(left + width / 2, bottom + height / 2, text, ha="center", va="center", fontsize=8.5, color=INK)


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float]) -> None:
    axes.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=10, color=INK, lw=1.0))


def _bare(axes: Any, sides: tuple[str, ...]) -> None:
    for side in sides:
        axes.spines[side].set_visible(False)


PICTURES: dict[str, Callable[[], Figure]] = {
    "german.png": german,
    "scores.svg": scores,
    "curves.svg": curves,
    "stability.svg": stability,
    "critical.svg": critical,
    "shadows.svg": shadows,
    "flow.svg": flow,
    "bounds.svg": bounds,
    "ensembles.svg": ensembles,
    "rewards.svg": rewards,
    "growth.svg": growth,
}

if __name__ == "__main__":
    for name, content in draw_all().items():
        (Path(sys.argv[1]) / name).write_bytes(content)
