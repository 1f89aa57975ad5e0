"""Trees as text, for Graphviz, and as pictures."""

import os
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ferrank.output import check_path, replace
from ferrank.ranking.plot import PLOT_SUFFIXES, finish, need_matplotlib
from ferrank.ranking.text import shorten
from ferrank.trees.structure import Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TREE_SUFFIXES", "graphviz", "heading", "plot", "save", "svg", "text"]

_NAMES = 30
_CATEGORIES = 4
_TERMS = 6
_BOX_WIDTH, _BOX_HEIGHT, _GAP_X, _GAP_Y, _MARGIN = 190, 46, 16, 44, 20
"""In points."""


def heading(tree: Tree) -> str:
    """Return a line on the size of a tree and what chose its splits."""
    chosen = ", ".join(f"{count} by {name}" for name, count in tree.selectors().items())
    nodes = "1 node" if len(tree.nodes) == 1 else f"{len(tree.nodes):,} nodes, {tree.n_leaves:,} leaves"
    size = f"{tree.n_node_samples[0]:,} rows, {nodes}"
    return f"{tree.task} of {shorten(tree.target)}: {size}, depth {tree.max_depth}" + (
        f"; splits: {chosen}" if chosen else ""
    )


def text(tree: Tree) -> str:
    """Return a line for each node; the branch of rows that pass the test comes first."""
    lines = []
    # What stands before the lines of the node's branches, and before its own.
    before: dict[int, tuple[str, str]] = {0: ("", "")}
    for number, node in enumerate(tree.nodes):
        own, below = before.pop(number)
        split = node["split"]
        if split is None:
            lines.append(own + _leaf(tree, node))
            continue
        lines.append(f"{own}{_test(tree, split)}  [{_why(split)}; {node['n_rows']:,} rows]")
        missing = " or missing" if split["n_missing"] else ""
        yes, no = ("yes" + missing, "no") if split["missing_left"] else ("yes", "no" + missing)
        before[split["left"]] = (f"{below}├─ {yes}: ", f"{below}│  ")
        before[split["right"]] = (f"{below}└─ {no}: ", f"{below}   ")
    return "\n".join(lines)


def _why(split: dict[str, Any]) -> str:
    compared = split["correlation"]
    agreement = "" if compared is None else f", correlation {compared:.2f}"
    return f"{_selector(split, 4)}{agreement}"


def _selector(split: dict[str, Any], digits: int) -> str:
    # An estimate of -0 is 0.
    return f"{split['selector']} {split['estimate'] + 0.0:.{digits}g}"


def _test(tree: Tree, split: dict[str, Any]) -> str:
    name, test = shorten(tree.features[split["feature"]], _NAMES), split["test"]
    if "at_most" in test:
        return f"{name} ≤ {test['at_most']:.6g}"
    names = tree.categories[split["feature"]] or []
    left, right = test["in"]["left"], test["in"]["right"]
    side, word = (left, "in") if len(left) <= len(right) else (right, "not in")
    shown = [shorten(names[code], _NAMES) for code in side[:_CATEGORIES]]
    if len(side) > _CATEGORIES:
        shown.append(f"… {len(side) - _CATEGORIES} more")
    return f"{name} {word} {{{', '.join(shown)}}}"


def _leaf(tree: Tree, node: dict[str, Any]) -> str:
    if tree.classes:
        number = int(node["prediction"])
        count = node["class_counts"][number]
        return f"{shorten(tree.classes[number], _NAMES)} ({count:,} of {node['n_rows']:,} rows)"
    if node["model"] is None:
        return f"{node['prediction']:.6g} ({node['n_rows']:,} rows)"
    return f"{_model(tree, node['model'])} ({node['n_rows']:,} rows)"


def _model(tree: Tree, model: dict[str, Any]) -> str:
    """Return the terms of a linear model, those that change it most by a unit first."""
    terms = sorted(model["terms"], key=lambda term: -abs(term["coefficient"]))
    parts = [f"{model['intercept']:.4g}"]
    for term in terms[:_TERMS]:
        sign = "−" if term["coefficient"] < 0 else "+"
        parts.append(f"{sign} {abs(term['coefficient']):.4g} {shorten(tree.features[term['feature']], 20)}")
    if len(terms) > _TERMS:
        parts.append(f"+ … {len(terms) - _TERMS} more")
    return " ".join(parts)


def graphviz(tree: Tree) -> str:
    """Return the tree in the language DOT."""
    lines = ["digraph tree {", '  node [shape=box, fontname="sans-serif"];']
    for number, node in enumerate(tree.nodes):
        style = "" if node["split"] else ', style="rounded,filled", fillcolor="#e8eef4"'
        words = "\\n".join(_escaped(line) for line in _lines(tree, node))
        lines.append(f'  n{number} [label="{words}"{style}];')
    for number, split in tree.splits():
        lines += [
            f'  n{number} -> n{split["left"]} [label="yes"];',
            f'  n{number} -> n{split["right"]} [label="no"];',
        ]
    return "\n".join([*lines, "}"]) + "\n"


def _escaped(line: str) -> str:
    return line.replace("\\", "\\\\").replace('"', '\\"')


def _lines(tree: Tree, node: dict[str, Any]) -> tuple[str, str]:
    """Return the two lines in the box of a node."""
    if split := node["split"]:
        return _test(tree, split), f"{_selector(split, 3)}; {node['n_rows']:,} rows"
    what, _, rows = _leaf(tree, node).rpartition(" (")
    return what, rows.removesuffix(")")


class _Layout(NamedTuple):
    """Where the boxes of the nodes are."""

    x: list[float]
    """Of their middles."""
    y: list[float]
    """Of their tops."""
    width: float
    height: float


def _layout(tree: Tree) -> _Layout:
    """Put leaves side by side, and other nodes over the middle of their children."""
    n_nodes = len(tree.nodes)
    x = [0.0] * n_nodes
    leaves = [number for number, node in enumerate(tree.nodes) if node["split"] is None]
    for place, leaf in enumerate(leaves):
        x[leaf] = _MARGIN + place * (_BOX_WIDTH + _GAP_X) + _BOX_WIDTH / 2
    for number, split in reversed(tree.splits()):
        x[number] = (x[split["left"]] + x[split["right"]]) / 2
    y = [_MARGIN + int(depth) * float(_BOX_HEIGHT + _GAP_Y) for depth in tree.depth]
    width = 2 * _MARGIN + len(leaves) * (_BOX_WIDTH + _GAP_X) - _GAP_X
    return _Layout(x, y, width, max(y) + _BOX_HEIGHT + _MARGIN)


def svg(tree: Tree) -> str:
    """Return the tree as a picture in SVG."""
    at = _layout(tree)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{at.width:g}" height="{at.height:g}" '
        f'viewBox="0 0 {at.width:g} {at.height:g}" font-family="sans-serif" font-size="11">',
        f"<title>{escape(heading(tree))}</title>",
    ]
    for number, split in tree.splits():
        for child, word in ((split["left"], "yes"), (split["right"], "no")):
            x1, y1, x2, y2 = at.x[number], at.y[number] + _BOX_HEIGHT, at.x[child], at.y[child]
            parts.append(f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke="#667" fill="none"/>')
            parts.append(
                f'<text x="{(x1 + x2) / 2:g}" y="{(y1 + y2) / 2:g}" text-anchor="middle" fill="#445">'
                f"{word}</text>"
            )
    for number, node in enumerate(tree.nodes):
        x, y = at.x[number], at.y[number]
        colour, round_by = ("#ffffff", 0) if node["split"] else ("#e8eef4", 8)
        full, size = _lines(tree, node)
        parts.append(
            f'<g><title>{escape(full)}; {escape(size)}</title><rect x="{x - _BOX_WIDTH / 2:g}" y="{y:g}" '
            f'width="{_BOX_WIDTH}" height="{_BOX_HEIGHT}" rx="{round_by}" fill="{colour}" stroke="#2f6f9f"/>'
            f'<text x="{x:g}" y="{y + 19:g}" text-anchor="middle" font-weight="bold">'
            f"{escape(shorten(full, 30))}</text>"
            f'<text x="{x:g}" y="{y + 36:g}" text-anchor="middle" fill="#445">{escape(shorten(size, 34))}'
            "</text></g>"
        )
    return "\n".join([*parts, "</svg>"]) + "\n"


def plot(tree: Tree, path: str | os.PathLike[str] | None = None) -> "Figure":
    """Draw the tree with matplotlib; see :meth:`ferrank.ReliefTree.plot`."""
    at = _layout(tree)
    # A point is 1/72 inch; larger figures than this are hard to look at, and shrink.
    shrink = min(1.0, 120 * 72 / max(at.width, at.height))
    figure = need_matplotlib()(figsize=(at.width * shrink / 72, at.height * shrink / 72), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, at.width)
    axes.set_ylim(at.height, 0)
    for number, split in tree.splits():
        for child, word in ((split["left"], "yes"), (split["right"], "no")):
            x, y = (at.x[number], at.x[child]), (at.y[number] + _BOX_HEIGHT, at.y[child])
            axes.plot(x, y, color="#666677", linewidth=0.8 * shrink, zorder=1)
            middle = sum(x) / 2, sum(y) / 2
            axes.text(*middle, word, ha="center", va="center", fontsize=7 * shrink, color="#444455")
    for number, node in enumerate(tree.nodes):
        words, size = _lines(tree, node)
        axes.text(
            at.x[number],
            at.y[number] + _BOX_HEIGHT / 2,
            f"{shorten(words, 30)}\n{shorten(size, 34)}",
            ha="center",
            va="center",
            fontsize=8 * shrink,
            bbox={
                "boxstyle": "square" if node["split"] else "round",
                "facecolor": "#ffffff" if node["split"] else "#e8eef4",
                "edgecolor": "#2f6f9f",
            },
        )
    return finish(figure, path)


_AS_TEXT: dict[str, Callable[[Tree], str]] = {
    ".txt": lambda tree: f"{heading(tree)}\n{text(tree)}\n",
    ".dot": graphviz,
    ".svg": svg,
    ".json": Tree.to_json,
}
TREE_SUFFIXES = (*_AS_TEXT, *(suffix for suffix in PLOT_SUFFIXES if suffix not in _AS_TEXT))
"""Of the files that a tree can be saved as."""


def save(tree: Tree, path: str | os.PathLike[str]) -> None:
    """Save a tree as its suffix says: .txt, .dot, .svg, .json, .png or .pdf."""
    target = check_path(path, TREE_SUFFIXES)
    make = _AS_TEXT.get(Path(target).suffix.lower())
    if make is None:
        plot(tree, target)
        return
    content = make(tree)
    replace(target, lambda partial: partial.write_text(content, encoding="utf-8"))
