"""Standard errors and rank intervals hold for samples of rows from a population, not for the trees alone."""

import numpy as np
import pytest

import ferrank as fr

SCORES = ("genie3", "symbolic", "permutation")


def linear(seed, n_rows=300):
    rng = np.random.default_rng([seed, 1])
    X = rng.normal(size=(n_rows, 8))
    return X, X[:, :3] @ [1, 0.5, 0.25] + rng.normal(size=n_rows)


def noise(seed, n_rows=300):
    """Draw features of mixed cardinality, none of which tells the target."""
    rng = np.random.default_rng([seed, 2])
    categories = [rng.integers(0, k, n_rows) for k in (2, 3, 5, 20)]
    return np.column_stack([*categories, *rng.normal(size=(3, n_rows))]), rng.normal(size=n_rows)


def ranked(draw, n_sets, scores=SCORES, **settings):
    """Rank ``n_sets`` samples of a population; return arrays of shape (n_sets, n_scores, n_features)."""
    importances, errors, intervals = [], [], []
    for seed in range(n_sets):
        forest = fr.ForestRanker(scores=scores, random_state=seed, n_jobs=1, **settings).fit(*draw(seed))
        found = forest.result_.scores.values()
        importances.append([score.importance for score in found])
        errors.append([score.standard_error for score in found])
        intervals.append([score.rank_interval for score in found])
    return np.array(importances), np.array(errors), np.array(intervals)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [linear, noise])
def test_intervals_cover_the_importance_in_the_population(draw):
    importances, errors, _ = ranked(draw, 100)
    # The importance that forests on so many rows have on average.
    population = importances.mean(axis=0)
    covered = (np.abs(importances - population) <= 2.093 * errors).mean(axis=(0, 2))
    assert (covered >= 0.91).all(), covered
    spread = importances.std(axis=0, ddof=1)
    typical = np.sqrt((errors**2).mean(axis=0))
    ratio = typical / spread
    # Features that tell the target have about the right error, others may have too large a one.
    assert (ratio > 0.8).all(), ratio
    if draw is linear:
        assert (ratio[:, :2] < 1.6).all(), ratio


@pytest.mark.slow
def test_on_noise_no_feature_is_surely_above_another():
    _, _, intervals = ranked(noise, 60, scores=("mdi_oob", "permutation", "genie3", "symbolic"))
    sure = (intervals[..., 0] > 1).any(axis=-1) | (intervals[..., 1] < intervals.shape[2]).any(axis=-1)
    assert sure.mean(axis=0).max() <= 0.05, sure.mean(axis=0)


def test_importances_from_rows_of_training_have_no_order_if_the_forest_predicts_nothing():
    X, y = noise(1)
    scores = fr.ForestRanker(scores=("genie3", "mdi_oob"), n_jobs=1).fit(X, y).result_.scores
    # genie3 is greatest where there are many values, and its errors would say so.
    importance, error = scores["genie3"].importance, scores["genie3"].standard_error
    assert importance[3] - importance[0] > 4 * (error[3] + error[0])
    assert (scores["genie3"].rank_interval == [1, X.shape[1]]).all()
    X, y = linear(1)
    informed = fr.ForestRanker(n_jobs=1).fit(X, y).result_.score()
    assert (informed.rank_interval[0] == [1, 1]).all()


@pytest.mark.slow
def test_all_rank_intervals_hold_at_once():
    importances, _, intervals = ranked(linear, 60)
    population = importances.mean(axis=0)
    order = np.argsort(np.argsort(-population, axis=1), axis=1) + 1
    # Features whose true ranks are not known from 60 samples are left out: those without an effect.
    for known in range(3):
        rank, interval = order[:, known], intervals[:, :, known]
        assert ((interval[..., 0] <= rank) & (rank <= interval[..., 1])).mean() >= 0.93


def test_errors_fall_with_the_rows_and_monte_carlo_errors_with_the_trees():
    few, many = (fr.ForestRanker(n_jobs=1).fit(*linear(3, n)).result_.score() for n in (200, 3_200))
    assert np.median(few.standard_error / many.standard_error) > 2
    trees = fr.ForestRanker(n_estimators=1_600, n_jobs=1).fit(*linear(3, 200)).result_.score()
    assert np.median(few.monte_carlo_error / trees.monte_carlo_error) > 3
    # Other rows would move the importances however many trees there are.
    assert (trees.standard_error[:3] > 2 * trees.monte_carlo_error[:3]).all()


def test_companions_leave_the_importances_alone():
    X, y = linear(4)
    without = fr.ForestRanker(scores=SCORES, standard_errors=False).fit(X, y).result_
    for name, score in fr.ForestRanker(scores=SCORES).fit(X, y).result_.scores.items():
        np.testing.assert_array_equal(score.importance, without.scores[name].importance)
        np.testing.assert_array_equal(score.monte_carlo_error, without.scores[name].monte_carlo_error)
        assert np.isfinite(score.standard_error).all()
        assert np.isnan(without.scores[name].standard_error).all()
        assert (without.scores[name].rank_interval == [1, X.shape[1]]).all()
    assert "no standard errors" in without.to_text()


@pytest.mark.parametrize("n_estimators", [1, 9])
def test_few_trees_have_no_standard_error(n_estimators):
    X, y = linear(5)
    assert np.isnan(
        fr.ForestRanker(n_estimators=n_estimators).fit(X, y).result_.score().standard_error
    ).all() == (n_estimators == 1)


def test_the_errors_have_the_same_bits_for_any_threads_and_per_target():
    X, y = linear(6)
    targets = np.column_stack([y, X[:, 4] + y])
    for settings in ({}, {"per_target": True}, {"ensemble": "extra_trees"}, {"max_samples": 0.3}):
        one, two = (
            fr.ForestRanker(n_estimators=20, n_jobs=jobs, **settings).fit(X, targets).result_.score()
            for jobs in (1, 2)
        )
        assert np.isfinite(one.standard_error).all(), settings
        np.testing.assert_array_equal(one.standard_error, two.standard_error)


def test_a_feature_that_few_trees_use_by_chance_has_an_error_of_its_size():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4_000))
    y = (X[:, 5] + X[:, 9] > 0).astype(int)
    forest = fr.ForestRanker("classification", scores=("genie3",), n_estimators=1_000, n_jobs=1).fit(X, y)
    score = forest.result_.score()
    used = np.delete(score.importance, [5, 9]) > 0
    relative = np.delete(score.standard_error, [5, 9])[used] / np.delete(score.importance, [5, 9])[used]
    # Irrelevant features are alike, so that their importances vary by as much as they are.
    assert np.quantile(relative, 0.01) > 0.7
