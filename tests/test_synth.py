"""Synthetic data have the relevant features that they say."""

import csv
from pathlib import Path

import numpy as np
import pytest

import ferrank
from ferrank.evaluate import SYNTHETIC, perturb, rank_distances, synthesize
from reference.distance import Feature
from reference.relief import relieff

TABLE_3 = Path(__file__).parent / "data" / "golden" / "error-curves-table3.csv"


@pytest.mark.parametrize(("name", "sizes"), [("single", [1]), ("pair", [2]), ("combined", [1, 2])])
def test_sets_have_the_properties_of_table_2(name, sizes):
    data = synthesize(name, 20_000)
    assert data.X.shape == (20_000, 100)
    assert set(np.unique(data.X)) == {0, 1}
    assert data.relevant.sum() == 9 * sum(sizes)
    first = 0
    for size in sizes:
        for p in (0.8, 0.7, 0.6):
            sets = [data.X[:, first + copy * size :][:, :size] for copy in range(3)]
            assert (sets[0] == sets[1]).all()
            assert (sets[0] == sets[2]).all()
            assert (sets[0].sum(axis=1) % 2 == data.y).mean() == pytest.approx(p, abs=0.02)
            information = 1 + p * np.log2(p) + (1 - p) * np.log2(1 - p)
            assert data.relevance[first : first + 3 * size] == pytest.approx(information / size)
            first += 3 * size
    alone = (data.y[:, None] == data.X).mean(axis=0)
    pairs = data.relevant & (np.arange(100) >= (0 if name == "pair" else 9))
    assert np.abs(alone[~data.relevant | pairs] - 0.5).max() < 0.02


def test_copies_may_be_drawn_independently():
    data = synthesize("combined", redundant=False)
    assert data.relevant.sum() == 27
    assert len(np.unique(data.X, axis=1).T) == 100


@pytest.mark.slow
def test_relieff_finds_pairs_that_no_single_feature_gives_away():
    """With 1,000 rows and k = 10, down to p = 0.7: those with p = 0.6 are lost in the noise."""
    data = synthesize("combined")
    features = [Feature(str(i), False, column.astype(float).tolist()) for i, column in enumerate(data.X.T)]
    weights = relieff(features, data.y.tolist(), k=10)
    strong = [*range(6), *range(9, 21)]  # p = 0.8 and 0.7
    assert weights[strong].min() > weights[~data.relevant].max()


def test_parity_of_all_informative_features_and_of_no_fewer():
    data = synthesize("parity", 20_000, n_features=12, n_informative=3)
    assert (data.X[:, :3].sum(axis=1) % 2 == data.y).all()
    assert np.abs((data.X[:, :2].sum(axis=1) % 2 == data.y).mean() - 0.5) < 0.02


@pytest.mark.parametrize("name", ["parity_regression", "modulo8", "fraction"])
def test_families_of_relieff_trees_do_not_show_in_single_features(name):
    data = synthesize(name, 20_000, n_features=5, n_informative=2)
    assert data.task == "regression"
    assert np.abs(np.corrcoef(data.X.T, data.y)[-1, :-1]).max() < 0.03
    ranking = ferrank.rank(data.to_arrow().slice(0, 800), "y", ranker="relief")
    assert set(ranking.top(2)) == {"x1", "x2"}


@pytest.mark.parametrize(("name", "n_targets"), [("regression", 1), ("regression", 3), ("multilabel", 4)])
def test_numbers_and_labels_follow_the_informative_features(name, n_targets):
    data = synthesize(name, 600, n_features=20, n_informative=4, n_targets=n_targets)
    assert data.relevance.sum() == pytest.approx(1)
    assert data.relevant.tolist() == [True] * 4 + [False] * 16
    ranking = ferrank.rank(data.to_arrow(), data.targets, n_estimators=50)
    assert ranking.task == data.task
    assert set(ranking.top(4)) == {"x1", "x2", "x3", "x4"}
    assert data.ranking.top(1) == ["x1"]


def test_same_seed_same_data_and_every_name_can_be_drawn():
    for name in SYNTHETIC:
        n_targets = 2 if name == "multilabel" else 1
        first, second = (synthesize(name, 30, n_targets=n_targets, random_state=4) for _ in range(2))
        assert first.to_arrow().equals(second.to_arrow())


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"name": "triple"}, "name: 'triple' is not one of single, pair"),
        ({"name": "combined", "n_features": 26}, "n_features: 26 is too few for combined; use 27"),
        ({"name": "parity", "n_rows": 0}, "n_rows: 0 is too few"),
        ({"name": "multilabel"}, "n_targets: 1 is too few for multilabel; use 2"),
        ({"name": "parity", "n_targets": 2}, "n_targets: parity has 1"),
        ({"name": "modulo8", "n_informative": 9}, "n_informative: 9 is too many"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments, match):
    with pytest.raises(ferrank.SettingError, match=match):
        synthesize(**arguments)


@pytest.mark.parametrize("name", ["single", "pair", "combined"])
def test_noise_moves_rankings_as_far_as_table_3_says(name):
    """Within 0.1 below θ = 1; there the published values are no means over random rankings."""
    with TABLE_3.open() as file:
        published = {
            float(row["theta"]): float(row["dist"]) for row in csv.DictReader(file) if row["dataset"] == name
        }
    truth = synthesize(name, 1).relevance
    rng = np.random.default_rng(0)
    distances = {}
    for theta in published:
        rankings = np.stack([truth, *(perturb(truth, theta, rng) for _ in range(100))])
        distances[theta] = np.mean([rank_distances(rankings[[0, t]])[0, 1] for t in range(1, 101)])
    assert list(distances.values()) == sorted(distances.values())
    for theta, distance in distances.items():
        assert distance == pytest.approx(published[theta] if theta < 1 else 1.0, abs=0.1)
