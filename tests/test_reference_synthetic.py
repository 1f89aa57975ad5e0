"""The synthetic sets of the error-curves paper, and what plain ReliefF makes of them."""

from __future__ import annotations

import numpy as np
import pytest

from reference.distance import Feature
from reference.relief import relieff
from reference.synthetic import KINDS, synthetic


@pytest.mark.parametrize(("name", "n_relevant"), [("single", 9), ("pair", 18), ("combined", 27)])
def test_sets_have_the_properties_of_table_2(name, n_relevant):
    data = synthetic(name, np.random.default_rng(0), n_rows=20_000)
    assert data.X.shape == (20_000, 100)
    assert set(np.unique(data.X)) == {0, 1}
    assert data.relevant.sum() == n_relevant
    first = 0
    for size in KINDS[name]:
        for p in (0.8, 0.7, 0.6):
            sets = [data.X[:, first + copy * size :][:, :size] for copy in range(3)]
            assert (sets[0] == sets[1]).all()
            assert (sets[0] == sets[2]).all()
            assert (sets[0].sum(axis=1) % 2 == data.y).mean() == pytest.approx(p, abs=0.02)
            assert (data.p[first : first + 3 * size] == p).all()
            assert (data.size[first : first + 3 * size] == size).all()
            first += 3 * size
    alone = (data.y[:, None] == data.X).mean(axis=0)
    assert np.abs(alone[~data.relevant | (data.size == 2)] - 0.5).max() < 0.02


def test_copies_may_be_drawn_independently():
    data = synthetic("combined", np.random.default_rng(0), redundant=False)
    assert data.relevant.sum() == 27
    assert len(np.unique(data.X, axis=1).T) == 100


def test_relevance_is_shared_by_the_features_of_a_set():
    data = synthetic("combined", np.random.default_rng(0), n_rows=10)
    assert data.relevance[0] == pytest.approx(0.278072)  # 1 - H(0.8)
    assert data.relevance[9] == pytest.approx(0.278072 / 2, abs=1e-6)
    assert (data.relevance[~data.relevant] == 0).all()


def test_relieff_finds_pairs_that_no_single_feature_gives_away():
    """With 1,000 rows and k = 10, down to p = 0.7: those with p = 0.6 are lost in the noise."""
    data = synthetic("combined", np.random.default_rng(0))
    features = [Feature(str(i), False, column.astype(float).tolist()) for i, column in enumerate(data.X.T)]
    weights = relieff(features, data.y.tolist(), k=10)
    assert weights[data.p >= 0.7].min() > weights[~data.relevant].max()
