"""Which group of methods is best on a data set, told by a small tree (Petković et al. 2020a, §5.3, Fig. 8).

Each data set is a row: its numbers of rows, features and targets, and as class the group of the method that
is best on it. The paper describes data sets by these three numbers, fits one tree, and estimates its accuracy
and its confusion matrix (Table 6) by tenfold cross-validation. The share of nominal features can be added.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from ferrank.ranking.plot import need_matplotlib

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Node", "confusion", "cross_validated", "draw", "grow", "lines_of"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Node:
    """A question with two branches, or a leaf.

    Attributes
    ----------
    text : str
        The question, such as "features > 30"; of a leaf the majority class with the rows that are of it and
        all rows, such as "Relief (4/6)".
    yes, no : Node, optional
        Where rows go; None of a leaf.
    """

    text: str
    yes: "Node | None" = None
    no: "Node | None" = None


def grow(model: DecisionTreeClassifier, X: Array, y: Array, names: Sequence[str]) -> Node:
    """Fit ``model`` to rows of the columns called ``names`` and return its root.

    Two leaves of the same class below a question are one leaf instead.
    """
    tree = model.fit(X, y).tree_
    paths = model.decision_path(X).toarray().astype(bool)

    def node(number: int) -> tuple[Node, str | None]:
        """Return the node and, of a leaf, its class."""
        classes, counts = np.unique(y[paths[:, number]], return_counts=True)
        majority = str(classes[counts.argmax()])
        leaf = Node(f"{majority} ({counts.max()}/{counts.sum()})"), majority
        if tree.children_left[number] < 0:
            return leaf
        # Values up to the cut go left.
        yes, yes_class = node(tree.children_right[number])
        no, no_class = node(tree.children_left[number])
        if yes_class is not None and yes_class == no_class:
            return leaf
        column, cut = tree.feature[number], tree.threshold[number]
        is_count = (X[:, column] == np.floor(X[:, column])).all()
        shown = f"{int(np.floor(cut)):,}" if is_count else f"{cut:.2g}"
        return Node(f"{names[column]} > {shown}", yes, no), None

    return node(0)[0]


def cross_validated(model: DecisionTreeClassifier, X: Array, y: Array, folds: int) -> Array:
    """Return the class that a tree of the other folds predicts for each row; folds are drawn with seed 0."""
    predicted = np.empty_like(y)
    for train, test in KFold(min(folds, len(y)), shuffle=True, random_state=0).split(X):
        predicted[test] = clone(model).fit(X[train], y[train]).predict(X[test])
    return predicted


def confusion(true: Array, predicted: Array, classes: Sequence[str]) -> Array:
    """Return how many rows of each class (down) are predicted as each class (across)."""
    return np.array(
        [[int(((true == one) & (predicted == other)).sum()) for other in classes] for one in classes]
    )


def lines_of(node: Node, before: str = "") -> list[str]:
    """Return the tree as lines, branches indented below their question."""
    if node.yes is None or node.no is None:
        return [f"{before}{node.text}"]
    indent = " " * (len(before) - len(before.lstrip()) + 2)
    return [
        f"{before}{node.text}?",
        *lines_of(node.yes, f"{indent}yes: "),
        *lines_of(node.no, f"{indent}no: "),
    ]


def draw(root: Node) -> "Figure":
    """Draw the tree, its root at the top and the branches for yes at the left."""
    places: list[tuple[Node, float, int]] = []
    edges: list[tuple[tuple[float, int], tuple[float, int], str]] = []
    n_leaves = 0

    def place(node: Node, depth: int) -> float:
        nonlocal n_leaves
        if node.yes is None or node.no is None:
            x = float(n_leaves)
            n_leaves += 1
        else:
            below = place(node.yes, depth + 1), place(node.no, depth + 1)
            x = sum(below) / 2
            edges.extend(
                ((x, depth), (at, depth + 1), word) for at, word in zip(below, ("Y", "N"), strict=True)
            )
        places.append((node, x, depth))
        return x

    place(root, 0)
    depth = max(one[2] for one in places)
    longest = max(len(line) for node, _, _ in places for line in node.text.splitlines())
    size = (1.6 + max(1.7, 0.1 * longest) * n_leaves, 0.8 + 1.0 * (depth + 1))
    figure = need_matplotlib()(figsize=size, dpi=150, layout="constrained")
    axes = figure.subplots()
    for (x, y), (other_x, other_y), word in edges:
        axes.plot([x, other_x], [-y, -other_y], color="#8a8a8a", linewidth=1, zorder=1)
        axes.text((x + other_x) / 2, -(y + other_y) / 2, word, fontsize=8, ha="center", va="center").set_bbox(
            {"facecolor": "white", "edgecolor": "none", "pad": 1}
        )
    for node, x, y in places:
        colour = "#4d8b57" if node.yes is None else "#2f6f9f"
        box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": colour}
        axes.text(x, -y, node.text, fontsize=9, ha="center", va="center", bbox=box, zorder=2)
    axes.set_xlim(-0.6, n_leaves - 0.4)
    axes.set_ylim(-depth - 0.4, 0.4)
    axes.axis("off")
    return figure
