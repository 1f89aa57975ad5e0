"""Trees that split by Relief against a plain implementation of the formulas, on random small tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ferrank as fr
from reference import relief_tree as plain
from reference.distance import features_of
from tables import values

N_TABLES = 60
NUMBERS = ("few", "real", "boolean", "constant", "integer")
CATEGORIES = ("two", "several", "many")


def table(seed: int, *, classes: bool) -> tuple[pa.Table, list]:
    """A table of features, and a target that depends on some of them."""
    rng = np.random.default_rng(seed)
    n_rows = int(rng.integers(2, 60))
    kinds = rng.choice(NUMBERS + CATEGORIES, size=rng.integers(1, 7))
    missing = rng.choice([0.0, 0.0, 0.1, 0.4])
    columns = {f"x{i}": values(kind, n_rows, rng, missing) for i, kind in enumerate(kinds)}
    signal = rng.normal(scale=rng.choice([0.1, 1.0]), size=n_rows)
    for column in list(columns.values())[: rng.integers(0, 4)]:
        codes = np.unique(column.to_numpy(zero_copy_only=False).astype(str), return_inverse=True)[1]
        signal = signal + (codes % 3) * rng.choice([1.0, -2.0])
    if classes:
        cuts = np.quantile(signal, np.linspace(0, 1, rng.integers(2, 5))[1:-1])
        return pa.table(columns), [f"c{v}" for v in np.searchsorted(cuts, signal)]
    if rng.random() < 0.3:
        signal = np.round(signal)
    return pa.table(columns), [float(v) for v in signal]


def settings(seed: int, selectors: tuple[str, ...], *, linear: bool) -> dict[str, Any]:
    rng = np.random.default_rng([seed, 1])
    return {
        "selector": selectors[seed % len(selectors)],
        "m": [None, 0.5, 2.0][seed // 2 % 3],
        "n_neighbors": [None, 3][seed % 2],
        "sigma": [None, 4.0][seed // 3 % 2],
        "switch_at": float(rng.choice([0.5, 0.8])),
        "min_samples_leaf": int(rng.choice([1, 2, 5])),
        **({"leaves": "linear"} if linear else {}),
    }


def grown(features: pa.Table, target: list, asked: dict[str, Any]) -> tuple[fr.ReliefTree, plain.Node]:
    tree = fr.ReliefTree(**asked).fit(features, pa.array(target))
    own = {name: value for name, value in asked.items() if name not in ("n_neighbors", "leaves")}
    own |= {"k": asked["n_neighbors"], "linear": "leaves" in asked}
    return tree, plain.grow(features_of(features, features.column_names), target, plain.Settings(**own))


def compare(tree: fr.ReliefTree, root: plain.Node, features: pa.Table) -> None:
    found, expected = tree.tree_, list(root.walk())
    assert len(found.nodes) == len(expected)
    for node, other in zip(found.nodes, expected, strict=True):
        assert node["n_rows"] == len(other.rows)
        assert node["impurity"] == pytest.approx(other.impurity, abs=1e-9)
        split = node["split"]
        if split is None:
            assert other.left is None
            continue
        assert (split["feature"], split["selector"]) == (other.feature, other.selector)
        assert split["estimate"] == pytest.approx(other.estimate, abs=1e-9)
        assert split["correlation"] == pytest.approx(other.correlation, abs=1e-9)
        assert split["missing_left"] == other.missing_left
        if "at_most" in split["test"]:
            assert split["test"]["at_most"] == other.goes_left
        else:
            names = found.categories[split["feature"]]
            assert {names[code] for code in split["test"]["in"]["left"]} == other.goes_left
    assert tree.feature_importances_ == pytest.approx(plain.importances(root, features.num_columns), abs=1e-9)
    rows = list(zip(*(column.to_pylist() for column in features.columns), strict=True))
    of_row = {row: leaf for leaf in expected if leaf.left is None for row in leaf.rows}
    predicted = [of_row[number].predict(row) for number, row in enumerate(rows)]
    if found.classes:
        assert tree.predict(features).tolist() == predicted
    else:
        assert tree.predict(features) == pytest.approx(predicted, rel=1e-9, abs=1e-9)


SELECTORS_OF_CLASSES = ("relief", "accuracy", "relief+accuracy", "myopic", "gini", "gain_ratio")
SELECTORS_OF_NUMBERS = ("relief", "mse", "relief+mse")


@pytest.mark.parametrize("seed", range(N_TABLES))
def test_trees_of_classes(seed: int) -> None:
    features, target = table(seed, classes=True)
    tree, root = grown(features, target, settings(seed, SELECTORS_OF_CLASSES, linear=False))
    compare(tree, root, features)


@pytest.mark.parametrize("seed", range(N_TABLES))
@pytest.mark.parametrize("linear", [False, True], ids=["means", "models"])
def test_trees_of_numbers(seed: int, linear: bool) -> None:
    features, target = table(1000 + seed, classes=False)
    tree, root = grown(features, target, settings(seed, SELECTORS_OF_NUMBERS, linear=linear))
    compare(tree, root, features)


def test_the_tables_have_what_matters() -> None:
    """Splits of all kinds by all selectors, gaps, switches, models and pruned branches are among them."""
    selectors, kinds, switched, models, missing = set(), set(), 0, 0, 0
    for seed in range(N_TABLES):
        for classes, linear in ((True, False), (False, True)):
            features, target = table(seed if classes else 1000 + seed, classes=classes)
            selectors_of = SELECTORS_OF_CLASSES if classes else SELECTORS_OF_NUMBERS
            asked = settings(seed, selectors_of, linear=linear)
            found = fr.ReliefTree(**asked).fit(features, pa.array(target)).tree_
            models += sum(node["model"] is not None for node in found.nodes)
            for _, split in found.splits():
                selectors.add(split["selector"])
                kinds.add(next(iter(split["test"])))
                switched += "+" in asked["selector"] and split["selector"] != "relief"
                missing += features.column(split["feature"]).null_count > 0
    assert selectors == {"relief", "accuracy", "myopic", "gini", "gain_ratio", "mse"}
    assert kinds == {"at_most", "in"}
    assert min(switched, models, missing) > 10
