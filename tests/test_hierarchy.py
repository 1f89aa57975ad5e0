"""Hierarchical targets: the engine against a brute-force implementation, and what must hold for all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ferrank as fr
from agreement import bits
from reference import distance, hierarchy
from reference.arff import domain, read_arff
from reference.distance import features_of
from reference.hierarchy import closed, hierarchical_problem
from reference.relief import rrelieff
from relief_checks import assert_close, importances
from tables import NOMINAL, NUMERIC, hierarchies
from tree_checks import assert_same_tree

DATA = Path(__file__).parent / "data"
SCORES = ("genie3", "symbolic", "coverage", "permutation")
ALL = (*NUMERIC, *NOMINAL)
SETS = {"hamming": distance.hamming, "accuracy": distance.accuracy, "f1": distance.f1}

many_cases = settings(max_examples=80, derandomize=True, deadline=None)


def test_weights_worked_by_hand():
    parents = {"a": [], "b": ["a"], "c": ["a", "b"], "d": ["c"]}
    weights = [hierarchy.weight(label, parents, 0.5) for label in "abcd"]
    assert weights == [1, 0.5, 0.5 * (1 + 0.5) / 2, 0.5 * 0.375]
    assert closed("d", parents) == set("abcd")
    assert hierarchy.shares([{"a"}, {"a", "b"}], parents, 0.5) == {"a": 2 / 3, "b": 1 / 3, "c": 0, "d": 0}
    assert hierarchy.of_paths([["a/b/c"], None, ["d"]]) == {"a": [], "a/b": ["a"], "a/b/c": ["a/b"], "d": []}
    assert hierarchy.of_domain("root/a,a/b,root/b") == {"a": [], "b": ["a"]}


def test_an_impurity_worked_by_hand():
    # a has 2 of 4 rows and b 1 of 4: the weights 1 and 1/2 make shares 2/3 and 1/3. The test at 2.5 tells a
    # apart wholly, and of b, whose variance is 3/16, it leaves 1/4 in half of the rows.
    table = pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": [[], [], ["a"], ["b"]]})
    tree = fr.grow_tree(table, "y", hierarchy={"b": "a"}, hierarchy_decay=0.5, bootstrap=False).to_pylist()
    assert (tree[0]["cut"], tree[0]["gain"]) == (2.5, pytest.approx(2 / 3 + (1 - 1 / 8 / (3 / 16)) / 3))


@many_cases
@given(
    hierarchies(dag=True, features=ALL, missing=True), st.sampled_from([0.75, 0.3, 1.0]), st.integers(1, 4)
)
def test_trees_for_dags(case, decay, min_samples_leaf):
    table, parents = case
    problem = hierarchical_problem(table, "y", parents, decay=decay)
    asked = {"target": "y", "hierarchy": parents}
    assert_same_tree(table, problem, asked, hierarchy_decay=decay, min_samples_leaf=min_samples_leaf)


@many_cases
@given(hierarchies(dag=False, features=ALL))
def test_trees_for_trees(case):
    """Whose labels may as well be given as paths."""
    table, parents = case
    assert_same_tree(table, hierarchical_problem(table, "y", parents), {"target": "y", "hierarchy": parents})

    def path(label: str) -> str:
        return "/".join([path(parent) for parent in parents[label]] + [label])

    sets = [[path(label) for label in labels] for labels in table["y"].to_pylist()]
    found = {label for labels in sets for label in labels}
    if any("/" in label for label in found):
        paths = table.set_column(table.column_names.index("y"), "y", pa.array(sets, pa.list_(pa.string())))
        assert_same_tree(paths, hierarchical_problem(paths, "y", hierarchy.of_paths(sets)), {"target": "y"})


@many_cases
@given(hierarchies(dag=True, weights=True))
def test_row_weights(case):
    table, parents = case
    problem = hierarchical_problem(table, "y", parents, weight="weight")
    assert_same_tree(table, problem, {"target": "y", "hierarchy": parents, "sample_weight": "weight"})


@pytest.mark.slow
@many_cases
@given(hierarchies(dag=True, features=ALL, missing=True), st.sampled_from([0.75, 0.3]))
def test_relief(case, decay):
    table, parents = case
    options = {"hierarchy": parents, "hierarchy_decay": decay, "unlabelled": "ignore", "n_neighbors": (1, 4)}
    found = importances(table, "y", target_distance=(*SETS, "subset"), **options)
    table = table.filter(table["y"].is_valid())
    sets = [closed(labels, parents) for labels in table["y"].to_pylist()]
    shares = hierarchy.shares(sets, parents, decay)
    apart = {name: function(sets, shares) if any(sets) else pairs(sets) for name, function in SETS.items()}
    apart["subset"] = distance.subset(sets)
    features = features_of(table, [name for name in table.column_names if name != "y"])
    expected = {
        f"relief_k{k}_{name}": rrelieff(features, between, k=k)
        for name, between in apart.items()
        for k in (1, 4)
    }
    assert_close(found, expected)
    assert_close(
        importances(table, "y", **options | {"n_neighbors": 4}), {"relief": expected["relief_k4_hamming"]}
    )


def pairs(sets: list[set[str]]) -> np.ndarray:
    return np.zeros((len(sets), len(sets)))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "n_rows"), [("church_FUN", 120), ("eisen_GO-part", 60)])
def test_real_hierarchies(name, n_rows):
    path = DATA / f"{name}.arff"
    table, parents = read_arff(path).slice(0, n_rows), hierarchy.of_domain(domain(path))
    assert_same_tree(
        table, hierarchical_problem(table, "class", parents), {"target": "class", "hierarchy": parents}
    )
    sets = [closed(labels, parents) for labels in table["class"].to_pylist()]
    apart = distance.hamming(sets, hierarchy.shares(sets, parents, 0.75))
    features = features_of(table, table.column_names[:-1])
    found = importances(table, "class", hierarchy=parents, n_neighbors=5)
    assert_close(found, {"relief": rrelieff(features, apart, k=5)})


@pytest.mark.parametrize("supervision", [None, 0.4])
def test_without_decay_it_is_multi_label_on_closed_sets(supervision):
    """Of the same bits, but for sums of errors: the one difference is how much labels weigh.

    With ``supervision`` two of three rows have no label set, and weights round otherwise.
    """
    path = DATA / "church_FUN.arff"
    table, parents = read_arff(path).slice(0, 900), hierarchy.of_domain(domain(path))
    known = [supervision is None or row % 3 == 0 for row in range(table.num_rows)]
    rows = [
        labels if is_known else None
        for labels, is_known in zip(table["class"].to_pylist(), known, strict=True)
    ]
    table = table.set_column(table.num_columns - 1, "class", pa.array(rows))
    sets = [None if labels is None else closed(labels, parents) for labels in rows]
    names = sorted(set().union(*filter(None, sets)))
    labels = {name: [None if row is None else name in row for row in sets] for name in names}
    flat = pa.table(dict(zip(table.column_names[:-1], table.columns, strict=False)) | labels)

    forest = fr.ForestRanker(n_estimators=3, scores=SCORES, hierarchy_decay=1.0, supervision=supervision)
    ours = fr.rank(table, "class", hierarchy=parents, ranker=forest)
    theirs = fr.rank(flat, names, ranker=forest)
    for score in SCORES:
        np.testing.assert_allclose(ours.importances(score), theirs.importances(score), rtol=1e-9)
    if supervision is None:
        for ranking in (ours, theirs):
            del ranking.scores["permutation"]
        assert bits(ours) == bits(theirs)
    unlabelled = "error" if supervision is None else "use"
    relief = fr.ReliefRanker(n_iterations=50, hierarchy_decay=1.0, unlabelled=unlabelled)
    ours = fr.rank(table, "class", hierarchy=parents, ranker=relief)
    assert bits(ours) == bits(fr.rank(flat, names, ranker=relief))


def test_neither_threads_nor_chunks_nor_the_order_of_edges_change_a_bit():
    path = DATA / "eisen_GO-part.arff"
    table, parents = read_arff(path), hierarchy.of_domain(domain(path))
    rows = [[*labels, labels[0]][::-1] for labels in table["class"].to_pylist()]
    other = table.set_column(table.num_columns - 1, "class", pa.array(rows, pa.large_list(pa.string())))
    other = pa.Table.from_batches(other.to_batches(max_chunksize=7))
    backwards = {label: above[::-1] for label, above in reversed(parents.items())}
    for ranker in (fr.ForestRanker(n_estimators=5, scores=SCORES), fr.ReliefRanker()):
        whole = bits(fr.rank(path, "class", ranker=ranker.set_params(n_jobs=1)))
        assert bits(fr.rank(other, "class", hierarchy=backwards, ranker=ranker.set_params(n_jobs=3))) == whole


def test_labels_that_no_row_has_count_nothing():
    table = pa.table({"x": [1.0, 2.0, 3.0, 5.0, 4.0, 9.0], "y": [["a"], ["b"], ["b"], [], ["c"], ["a"]]})
    parents = {"a": None, "b": "a", "c": None}
    more = parents | {"d": "b", "e": None, "f": ["e", "c"]}
    for ranker in (fr.ForestRanker(n_estimators=5, scores=SCORES), fr.ReliefRanker(n_neighbors=2)):
        ranked = [fr.rank(table, "y", hierarchy=edges, ranker=ranker) for edges in (parents, more)]
        assert bits(ranked[0]) == bits(ranked[1])


def test_rows_without_labels_are_not_rows_without_a_set():
    """An empty set says that no label holds; None says nothing, and the row is unlabelled."""
    x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    asked = {"hierarchy": {"a": None}, "bootstrap": False, "n_estimators": 1}
    empty = fr.rank({"x": x, "y": [["a"], ["a"], ["a"], [], [], []]}, "y", **asked)
    assert (empty.n_rows, empty.importances().tolist()) == (6, [1.0])
    missing = {"x": x, "y": [["a"], ["a"], ["a"], None, None, []]}
    with pytest.raises(fr.DataError, match="2 of 6 rows have no target value"):
        fr.rank(missing, "y", **asked)
    some = fr.rank(missing, "y", unlabelled="ignore", **asked)
    assert (some.n_rows, some.n_unlabelled) == (4, 2)


def test_scores_of_one_tree_and_the_out_of_bag_error():
    """The error is the weighted share of labels that are told wrongly."""
    parents = {"b": "a"}
    table = pa.table({"x": [0.0, 1.0] * 200, "noise": np.arange(400.0) % 7, "y": [["a"], ["b"]] * 200})
    ranking = fr.rank(
        table, "y", hierarchy=parents, hierarchy_decay=0.25, scores=SCORES, n_estimators=20, max_features=1.0
    )
    found = ranking.importances("permutation")
    # a is constant, b is told by x: shuffled, half of the rows are told wrongly for 1/5 of the weight.
    assert found == pytest.approx([0.5 * 0.2, 0.0], abs=0.02)
    assert ranking.importances("genie3") == pytest.approx([0.2, 0.0], abs=0.01)
    assert (ranking.task, ranking.targets) == ("hierarchical", ["y"])
