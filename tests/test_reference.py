"""One tree, all features, no bootstrap: the engine against a brute-force implementation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import scores, tree
from reference.arff import read_arff
from reference.problem import problem_of
from tables import NOMINAL, NUMERIC, tables
from tree_checks import assert_same_tree

DATA = Path(__file__).parent / "data"

many_cases = settings(max_examples=80, derandomize=True, deadline=None)


def assert_agrees(
    table: pa.Table,
    targets: list[str],
    *,
    task: str | None = None,
    weight: str | None = None,
    target_weights: list[float] | None = None,
    min_samples_leaf: int = 2,
    max_depth: int | None = None,
    supervision: float | None = None,
) -> None:
    problem = problem_of(
        table,
        targets,
        weight=weight,
        target_weights=target_weights,
        labels=task == "multi-label",
        supervision=supervision,
    )
    others = {} if supervision is None else {"supervision": supervision, "unlabelled": None}
    assert_same_tree(
        table,
        problem,
        {"target": targets, "task": task, "sample_weight": weight},
        min_samples_leaf=min_samples_leaf,
        max_depth=max_depth,
        target_weights=target_weights,
        **others,
    )


def test_reference_on_a_tree_worked_by_hand():
    # y = 0, 0, 4, 8: variance 11. Cutting at 2.5 leaves variances 0 and 4, so (11 - 2) / 11 is gained.
    problem = problem_of(pa.table({"x": [1.0, 2.0, 3.0, 4.0], "y": [0.0, 0.0, 4.0, 8.0]}), ["y"])
    nodes = tree.grow(problem, min_samples_leaf=1)
    root, _, right, *_ = nodes
    assert (root.split.cut, root.split.gain) == (2.5, pytest.approx(9 / 11))
    assert (right.split.cut, right.split.gain) == (3.5, pytest.approx(4 / 11))
    assert scores.genie3(nodes, 1) == pytest.approx([9 / 11 + 0.5 * 4 / 11])
    assert scores.symbolic(nodes, 1) == pytest.approx([1.5])
    assert scores.coverage(nodes, 1) == pytest.approx([1.5])


def test_reference_on_a_missing_value_worked_by_hand():
    # Of the three known rows the test parts {0} from {6, 6}; variance 8 of 3 rows falls to 0, times 3/4.
    # The whole target has variance 9, and the fourth row follows the heavier right branch.
    problem = problem_of(pa.table({"x": [1.0, 2.0, 2.0, None], "y": [0.0, 6.0, 6.0, 0.0]}), ["y"])
    root, left, right = tree.grow(problem, min_samples_leaf=1, missing="ignore")[:3]
    assert root.split.gain == pytest.approx(8 / 9 * 3 / 4)
    assert (root.split.missing_left, left.n_examples, right.n_examples) == (False, 1, 3)


def test_reference_on_missing_values_that_are_information_worked_by_hand():
    # The variance is 9. With the gap on the right {0} is parted from {6, 6, 0}, of variance 8, so that
    # 9 - 8 * 3/4 is gained; {0, 6, 6} from the gap gains as much; with the gap on the left nothing is left.
    problem = problem_of(pa.table({"x": [1.0, 2.0, 2.0, None], "y": [0.0, 6.0, 6.0, 0.0]}), ["y"])
    grower = tree.Grower(problem, 1, None, np.ones(4, dtype=int))
    rows, values = np.arange(4), problem.features[0].values
    right, known, left = grower.cuts(0, problem.features[0], values, rows)
    assert [right.gain, known.gain, left.gain] == pytest.approx([1 / 3, 1 / 3, 1.0])
    assert [right.goes_left.tolist(), known.goes_left.tolist(), left.goes_left.tolist()] == [
        [True, False, False, False],
        [True, True, True, False],
        [True, False, False, True],
    ]
    assert (known.cut, right.missing_left, known.missing_left, left.missing_left) == (
        np.inf,
        False,
        False,
        True,
    )
    root, *_ = grower.tree()
    assert (root.split.cut, root.split.missing_left) == (1.5, True)


def test_reference_on_classes_worked_by_hand():
    # Gini of a, a, b, c: 1 - 1/4 - 1/16 - 1/16 = 5/8; {b, c} alone keeps 1/2 on half of the rows.
    problem = problem_of(pa.table({"x": ["p", "p", "q", "r"], "y": ["a", "a", "b", "c"]}), ["y"])
    root, *_ = tree.grow(problem, min_samples_leaf=2)
    assert root.split.categories == ["p"]
    assert root.split.gain == pytest.approx((5 / 8 - 1 / 4) / (5 / 8))


def test_errors_worked_by_hand():
    # Numbers 0, 2, 4 told as 0, 2, 2: 4 of a spread of 8. Classes a, b, b told as b, b, b: 1 of 3.
    problem = problem_of(
        pa.table({"x": [1.0, 2.0, 3.0], "n": [0.0, 2.0, 4.0], "c": ["a", "b", "b"]}), ["n", "c"]
    )
    told = np.array([[0.0, 0.0, 1.0], [2.0, 0.0, 1.0], [2.0, 0.0, 1.0]])
    assert scores.error(problem, problem.components, told) == pytest.approx((np.sqrt(0.5) + 1 / 3) / 2)


def test_equal_means():
    x, y = ["c0", "c3", "c1", "c2", "c0", "c3"], [0.5, 0.5, 0.25, 0.5, 0.0, 0.0]
    assert_agrees(pa.table({"x": x, "y": y}), ["y"])


def test_equal_weights():
    x, y = ["c7", "c10", "c9", "c10", "c8", "c1"], [8.7, -18.5, 10.9, -1.8, -8.6, -2.2]
    weight = [1.0, 0.5, 1.25, 0.5, 1.0, 0.25]
    assert_agrees(pa.table({"x": x, "weight": weight, "y": y}), ["y"], weight="weight")


@many_cases
@given(tables(st.just(["real"])), st.integers(1, 5))
def test_regression(case, min_samples_leaf):
    assert_agrees(*case, min_samples_leaf=min_samples_leaf)


@many_cases
@given(tables(st.just(["few"])), st.integers(1, 4))
def test_tied_gains(case, max_depth):
    assert_agrees(*case, max_depth=max_depth)


@many_cases
@given(tables(st.just(["real"]), missing=True), st.integers(1, 5))
def test_missing_features(case, min_samples_leaf):
    assert_agrees(*case, min_samples_leaf=min_samples_leaf)


@many_cases
@given(tables(st.sampled_from([["real"], ["two"], ["several"], ["classes"]]), features=NOMINAL, missing=True))
def test_nominal_features(case):
    assert_agrees(*case)


@many_cases
@given(tables(st.sampled_from([["two"], ["several"], ["classes"], ["boolean"]]), features=NUMERIC + NOMINAL))
def test_classification(case):
    assert_agrees(*case)


@many_cases
@given(
    tables(
        st.lists(st.sampled_from(["real", "few", "two", "several", "constant"]), min_size=2, max_size=4),
        features=NUMERIC + NOMINAL,
        missing=True,
    )
)
def test_mixed_targets(case):
    assert_agrees(*case)


@pytest.mark.slow
@many_cases
@given(
    tables(
        st.lists(st.sampled_from(["real", "few", "several"]), min_size=1, max_size=3),
        features=NUMERIC + NOMINAL,
        missing=True,
        missing_targets=True,
    )
)
def test_missing_targets(case):
    assert_agrees(*case)


# As components, features whose values differ in their last digits are too hard for the reference.
CLUSTERED = tuple(kind for kind in NUMERIC + NOMINAL if kind != "close")


@pytest.mark.slow
@many_cases
@given(
    tables(
        st.one_of(
            st.sampled_from([["real"], ["two"], ["several"]]),
            st.lists(st.sampled_from(["real", "few", "two", "several"]), min_size=2, max_size=3),
        ),
        features=CLUSTERED,
        missing=True,
        missing_targets=True,
    ),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_semi_supervision(case, supervision):
    assert_agrees(*case, supervision=supervision)


@pytest.mark.slow
@many_cases
@given(
    tables(
        st.lists(st.just("boolean"), min_size=2, max_size=12),
        features=CLUSTERED,
        missing=True,
        missing_targets=True,
    ),
    st.sampled_from([0.0, 0.3, 1.0]),
)
def test_semi_supervised_labels(case, supervision):
    assert_agrees(*case, task="multi-label", supervision=supervision)


@many_cases
@given(
    tables(st.just(["real", "several"]), features=CLUSTERED, missing=True, missing_targets=True, weights=True)
)
def test_semi_supervision_with_row_weights(case):
    assert_agrees(*case, weight="weight", supervision=0.3)


@pytest.mark.parametrize(("name", "n_targets"), [("iris", 1), ("jura", 3), ("autos", 1), ("heart-c", 1)])
def test_semi_supervision_on_real_data(name, n_targets):
    table = read_arff(DATA / f"{name}.arff").slice(0, 150)
    targets = table.column_names[-n_targets:]
    labelled = np.random.default_rng(0).random(150) < 0.2
    for target in targets:
        column = pc.if_else(pa.array(labelled), table[target], None)
        table = table.set_column(table.column_names.index(target), target, column)
    assert_agrees(table, targets, supervision=0.5)


@many_cases
@given(tables(st.lists(st.just("boolean"), min_size=2, max_size=8), features=NUMERIC + NOMINAL, missing=True))
def test_labels(case):
    assert_agrees(*case, task="multi-label")


@many_cases
@given(
    tables(
        st.sampled_from([["real"], ["two"], ["real", "several"]]),
        features=NUMERIC + NOMINAL,
        missing=True,
        weights=True,
    )
)
def test_row_weights(case):
    assert_agrees(*case, weight="weight")


@many_cases
@given(
    tables(st.just(["real", "several", "few"])),
    st.lists(st.sampled_from([1.0, 0.5, 3.0]), min_size=3, max_size=3),
)
def test_target_weights(case, target_weights):
    assert_agrees(*case, target_weights=target_weights)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "n_targets", "n_rows"),
    [
        ("iris", 1, 150),
        ("jura", 3, 359),
        ("sf1", 3, 323),
        ("german", 1, 300),
        ("heart-c", 1, 303),
        ("autos", 1, 205),
    ],
)
def test_real_data(name, n_targets, n_rows):
    table = read_arff(DATA / f"{name}.arff").slice(0, n_rows)
    assert_agrees(table, table.column_names[-n_targets:])


@pytest.mark.slow
def test_real_labels():
    table = read_arff(DATA / "emotions.arff").slice(0, 60)
    assert_agrees(table, table.column_names[-6:], task="multi-label")
