"""What a fitted tree consists of."""

import json
from typing import Any

import numpy as np
import scipy.sparse as sp

from ferrank import _core
from ferrank._core import Source
from ferrank.progress import Progress
from ferrank.run import finish

__all__ = ["Tree"]

Array = np.ndarray[Any, Any]


class Tree:
    """The nodes of a fitted tree, the root first, each node followed by its left branch.

    Attributes
    ----------
    task : str
        "classification" or "regression".
    target : str
        The name of the target.
    classes : list of str
        The names of the classes in the order of the columns of ``class_counts``; empty for numbers.
    features : list of str
        The names of the features.
    nodes : list of dict
        What each node knows: ``n_rows``, ``class_counts``, ``prediction``, ``impurity``, ``model`` and
        ``split``. A split has ``feature``, ``test``, ``missing_left``, ``n_missing``, ``selector``,
        ``estimate``, ``correlation``, ``left`` and ``right``.
    children_left, children_right : array of shape (n_nodes,)
        The numbers of the children; -1 for leaves.
    feature : array of shape (n_nodes,)
        The number of the feature that the node asks; -1 for leaves.
    n_node_samples : array of shape (n_nodes,)
        The training rows of each node.
    impurity : array of shape (n_nodes,)
        The Gini index, or the variance of the target.
    class_counts : array of shape (n_nodes, n_classes)
        The training rows of each class.
    depth : array of shape (n_nodes,)
        The number of splits above each node.
    """

    def __init__(self, core: _core.Tree) -> None:
        self._core = core
        read = json.loads(core.to_json())
        self.task: str = read["task"]
        self.target: str = read["target"]
        self.classes: list[str] = read["classes"]
        self.features: list[str] = [one["name"] for one in read["features"]]
        self.categories: list[list[str] | None] = [one["categories"] for one in read["features"]]
        self.nodes: list[dict[str, Any]] = read["nodes"]
        splits = [node["split"] or {"left": -1, "right": -1, "feature": -1} for node in self.nodes]
        self.children_left = np.array([split["left"] for split in splits])
        self.children_right = np.array([split["right"] for split in splits])
        self.feature = np.array([split["feature"] for split in splits])
        self.n_node_samples = np.array([node["n_rows"] for node in self.nodes])
        self.impurity = np.array([node["impurity"] for node in self.nodes])
        self.class_counts = np.array([node["class_counts"] for node in self.nodes])
        self.depth = self._depths()

    def _depths(self) -> Array:
        depth = np.zeros(len(self.nodes), dtype=np.int64)
        for parent, split in self.splits():
            depth[[split["left"], split["right"]]] = depth[parent] + 1
        return depth

    def splits(self) -> list[tuple[int, dict[str, Any]]]:
        """Return the numbers and the splits of the nodes that have one, in order."""
        return [(number, node["split"]) for number, node in enumerate(self.nodes) if node["split"]]

    @property
    def n_leaves(self) -> int:
        """The number of leaves."""
        return int((self.children_left < 0).sum())

    @property
    def max_depth(self) -> int:
        """The largest number of splits above a leaf."""
        return int(self.depth.max())

    def selectors(self) -> dict[str, int]:
        """Return how many splits each selector chose."""
        names = [split["selector"] for _, split in self.splits()]
        return {name: names.count(name) for name in dict.fromkeys(names)}

    def importances(self) -> Array:
        """Return the decrease of impurity that each feature brings, as a share of the root's."""
        return self._core.importances()

    def predict(
        self, source: Source, threads: int = 1, progress: Progress | None = None
    ) -> tuple[Array, Array]:
        """Return the leaf of each row, and the number of its class or the number predicted."""
        leaves, values = finish(self._core.predict(source, threads), progress)
        return leaves.astype(np.int64), values

    def paths(self, leaves: Array) -> sp.csr_array:
        """Return for each of ``leaves`` the nodes on the way to it, as a sparse indicator."""
        parents = np.full(len(self.nodes), -1)
        for parent, split in self.splits():
            parents[[split["left"], split["right"]]] = parent
        reached, place = np.unique(leaves, return_inverse=True)
        ways = []
        for node in reached.tolist():
            way = [node]
            while (node := int(parents[way[-1]])) >= 0:
                way.append(node)
            ways.append(np.array(way[::-1]))
        ends = np.cumsum([0, *(len(way) for way in ways)])
        nodes = np.concatenate(ways) if ways else np.empty(0, dtype=np.int64)
        shape = len(reached), len(self.nodes)
        indicator = sp.csr_array((np.ones(len(nodes), dtype=np.int64), nodes, ends), shape=shape)
        return sp.csr_array(indicator[place])

    def to_json(self) -> str:
        """Return the tree as JSON."""
        return self._core.to_json()

    @classmethod
    def from_json(cls, text: str) -> "Tree":
        """Return the tree that :meth:`to_json` wrote."""
        return cls(_core.Tree.from_json(text))

    def __reduce__(self) -> tuple[Any, ...]:
        return Tree.from_json, (self.to_json(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tree) and self.to_json() == other.to_json()

    __hash__ = None  # type: ignore[assignment]
