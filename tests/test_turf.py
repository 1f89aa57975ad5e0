"""TuRF: iterations over fewer features, against the obvious program, and what it finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ferrank as fr
from ferrank.cli.main import main
from ferrank.rankers.turf import combined, sizes


def table(n: int = 120, n_features: int = 24) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(n, n_features))
    return X, np.sign(X[:, 3] * X[:, 9]).astype(int)


def naive(X: np.ndarray, y: np.ndarray, step: float, last: int, **settings: Any) -> list[tuple]:
    """Return features and importances of each iteration, until `last` features are left."""
    left, found = list(range(X.shape[1])), []
    while True:
        importance = fr.ReliefRanker("classification", **settings).fit(X[:, left], y).feature_importances_
        found.append((np.array(left), importance))
        if len(left) == last:
            return found
        best = sorted(range(len(left)), key=lambda i: (-importance[i], i))
        keep = max(last, len(left) - max(1, int(step * len(left))))
        left = sorted(left[i] for i in best[:keep])


@pytest.mark.parametrize("rule", ["nearest", "surf_star", "multisurf"])
def test_iterations_are_rankings_of_the_features_left(rule: str) -> None:
    X, y = table()
    ranker = fr.ReliefRanker("classification", neighborhood=rule, turf_step=0.4, turf_features=3)
    result = ranker.fit(X, y).result_
    rounds = naive(X, y, 0.4, 3, neighborhood=rule)
    assert [len(features) for features, _ in rounds] == sizes(24, 0.4, 3) == [24, 15, 9, 6, 4, 3]
    last, importance = rounds[-1]
    assert result.importances()[last].tolist() == importance.tolist()
    # Features rank in the order in which they leave, those that leave together by their importances then.
    ranks, better = result.ranks(), 0
    for features, importance in reversed(rounds):
        leaving = [i for i, feature in enumerate(features) if better < ranks[feature]]
        expected = features[leaving][np.argsort(-importance[leaving], kind="stable")]
        assert features[leaving][np.argsort(ranks[features[leaving]])].tolist() == expected.tolist()
        better += len(leaving)
    assert (np.diff(result.importances()[result.order()]) < 0).all()
    own = fr.ReliefRanker("classification", neighborhood=rule).fit(X[:, last], y).result_
    np.testing.assert_array_equal(result.standard_error[last], own.standard_error)
    interval = result.scores["relief"].rank_interval
    assert (interval[:, 0] <= ranks).all()
    assert (ranks <= interval[:, 1]).all()
    assert result.settings["turf_step"] == 0.4
    assert (result.settings["turf_features"], result.settings["neighborhood"]) == (3, rule)


def test_sizes_of_iterations() -> None:
    assert sizes(20_000, 0.5, 0.01) == [20_000, 10_000, 5_000, 2_500, 1_250, 625, 313, 200]
    assert sizes(10, 4, 1) == [10, 6, 2, 1]
    assert sizes(5, 0.01, 3) == [5, 4, 3]
    assert sizes(7, 0.5, 100) == sizes(7, 0.5, 1.0) == [7]


def test_importances_are_lowered_where_needed() -> None:
    first, last = np.array([0.9, 0.5, 0.1, 0.4]), np.array([0.2, 0.3])
    found = combined([(np.arange(4), first), (np.array([0, 1]), last)], 4)
    np.testing.assert_allclose(found, [0.2, 0.3, -0.1, 0.2])
    assert found[3] < found[0]
    found = combined([(np.arange(4), first), (np.array([0, 1]), last + 1)], 4)
    assert found.tolist() == [1.2, 1.3, 0.1, 0.4]
    found = combined([(np.arange(4), first), (np.array([0, 1]), last)], 4, by_ratio=True)
    np.testing.assert_allclose(found, [0.2, 0.3, 0.05, 0.2])


def test_finds_a_pair_that_one_run_does_not() -> None:
    """Among many irrelevant features near rows are near by chance."""
    found = {None: 0, 0.5: 0}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.integers(3, size=(300, 400)).astype(float)
        y = (X[:, 0] + X[:, 1]) % 3 > 0
        for step in found:
            turf = {} if step is None else {"turf_step": step, "turf_features": 20}
            ranker = fr.ReliefRanker(neighborhood="multisurf", categorical_features=range(400), **turf)
            top = ranker.fit(X, y).result_.order()[:2]
            found[step] += set(top) == {0, 1}
    assert found[0.5] >= found[None] + 2


def test_no_noise_is_surely_among_the_best() -> None:
    wrong = 0
    for seed in range(20):
        X = np.random.default_rng(seed).normal(size=(200, 30))
        y = (X[:, 0] * X[:, 1] > 0).astype(int)
        result = fr.ReliefRanker("classification", turf_step=0.5).fit(X, y).result_
        wrong += result.score().rank_interval[2:, 1].min() <= 15
    assert wrong <= 3  # 1 in 20 is expected, and 4 or more happen in 2 of 100 such tests


def test_all_iterations_rank_the_rows_that_are_drawn_once(caplog: pytest.LogCaptureFixture) -> None:
    X, y = table(400, 12)
    drawn = {"max_samples": 150, "random_state": 4}
    ranker = fr.ReliefRanker("classification", turf_step=0.5, turf_features=3, **drawn)
    with caplog.at_level("INFO", logger="ferrank"):
        result = ranker.fit(X, y).result_
    assert caplog.text.count("max_samples: 150 of 400 rows take part") == 1
    last = np.sort(result.order()[:3])
    alone = fr.ReliefRanker("classification", **drawn).fit(X[:, last], y)
    assert result.importances()[last].tolist() == alone.feature_importances_.tolist()
    assert (result.n_rows, result.settings["max_samples"]) == (150, 150)


def test_files_several_scores_resume_and_the_shell(tmp_path: Path) -> None:
    X, y = table()
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(24)]).assign(y=y)
    path, out, log = tmp_path / "rows.csv", tmp_path / "ranking.json", tmp_path / "resume"
    frame.to_csv(path, index=False)
    settings = {"n_neighbors": (5, 10), "turf_step": 6, "turf_features": 0.25}
    expected = fr.rank(frame, "y", ranker="relief", task="classification", **settings)
    assert list(expected.scores) == ["relief_k5", "relief_k10"]
    options = ["--target", "y", "--task", "classification", "--ranker", "relief", "--neighbors", "5"]
    options += ["--neighbors", "10", "--turf", "6", "--turf-features", "0.25", "--output", str(out)]
    assert main(["rank", str(path), *options]) == 0
    again = {"ranker": "relief", "task": "classification", "resume": log, **settings}
    found = [fr.Ranking.load(out), fr.rank(path, "y", **again), fr.rank(path, "y", **again)]
    assert sorted(file.name for file in tmp_path.glob("resume.*")) == [f"resume.{i}" for i in range(4)]
    for ranking in found:
        for score in expected.scores:
            assert ranking.importances(score).tobytes() == expected.importances(score).tobytes()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"turf_step": 0}, "turf_step: 0 is neither a number of features nor a share"),
        ({"turf_step": 1.0}, "turf_step: 1.0 leaves no feature"),
        ({"turf_step": "half"}, "turf_step: 'half' is neither"),
        ({"turf_step": float("nan")}, "turf_step: nan is neither"),
        ({"turf_step": float("inf")}, "turf_step: inf is neither"),
        ({"turf_features": 20}, "turf_features: has no effect without turf_step"),
        ({"turf_step": 0.5, "turf_features": 0}, "turf_features: 0 is neither"),
        ({"turf_step": 0.5, "turf_features": 1.5}, "turf_features: 1.5 is neither"),
        ({"turf_step": 0.5, "target_draws": 60}, "turf_step: p-values of target_draws"),
        ({"turf_step": 0.5, "until": "stable"}, 'until: "stable" stops once the best features'),
    ],
)
def test_what_does_not_do_is_refused(settings: dict, message: str) -> None:
    X, y = table(40)
    with pytest.raises(fr.SettingError, match=message):
        fr.ReliefRanker(**settings).fit(X, y)


def test_parts_and_streams_are_refused() -> None:
    X, y = table(40)
    ranker = fr.ReliefRanker(turf_step=0.5)
    with pytest.raises(fr.SettingError, match="turf_step: leaves features out by the ranking of all rows"):
        ranker.partial_fit(X, y)
    with pytest.raises(fr.SettingError, match="which accumulators do not have"):
        fr.accumulate(pd.DataFrame(X, columns=map(str, range(24))).assign(y=y), "y", ranker=ranker)


# Priors of the classes.


def test_priors_weigh_misses() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(90, 4)), np.repeat([0, 1, 2], [50, 30, 10])

    def importances(priors: Any, y: Any = y) -> list[float]:
        ranker = fr.ReliefRanker("classification", class_priors=priors, scores=("relief", "myopic"))
        result = ranker.fit(X, y).result_
        return [*result.importances(), *result.importances("myopic")]

    own = importances("empirical")
    np.testing.assert_allclose(importances({0: 5, 1: 3, 2: 1}), own, atol=1e-12)
    uniform = importances("uniform")
    assert not np.allclose(uniform, own)
    for given in ({0: 1, 1: 1, 2: 1}, {0.0: 0.2, 1.0: 0.2, 2.0: 0.2}):
        np.testing.assert_allclose(importances(given), uniform, atol=1e-12)
    assert importances({"0": 2.0, "1": 2.0, "2": 2.0}, y.astype(str)) == uniform
    # By hand: each class of misses has the mean difference of its nearest rows, by P(C) / (1 - P(own)).
    priors = np.array([0.2, 0.3, 0.5])
    total = np.zeros(4)
    difference = np.abs(X[:, None] - X[None]) / np.ptp(X, axis=0)
    for row in range(90):
        near = np.argsort(difference[row].mean(axis=1), kind="stable")
        near = near[near != row]
        for c in range(3):
            mean = difference[row, near[y[near] == c][:10]].mean(axis=0)
            total += -mean if c == y[row] else priors[c] / (1 - priors[y[row]]) * mean
    np.testing.assert_allclose(importances({0: 0.2, 1: 0.3, 2: 0.5})[:4], total / 90, atol=1e-12)


def test_the_prior_of_a_class_may_be_nearly_one() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] > 0, "a", "b")

    def importances(priors: Any = "empirical", weights: Any = None) -> Any:
        ranker = fr.ReliefRanker("classification", class_priors=priors)
        return ranker.fit(X, y, sample_weight=weights).feature_importances_

    # A miss of one of two classes counts as much as a hit, whatever the priors.
    np.testing.assert_allclose(importances({"a": 1e17, "b": 1}), importances("uniform"), rtol=1e-12)
    heavy = [importances(weights=np.r_[weight, np.ones(39)]) for weight in (1e14, 1e30)]
    np.testing.assert_allclose(*heavy, rtol=1e-10)


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ({0: 1, 1: 1}, "class_priors: class '2' has none; give one for each of '0', '1', '2'"),
        ({0: 1, 1: 1, 2: 1, 3: 1}, "class_priors: there is no class '3'; the classes are '0', '1', '2'"),
        ({0: 1, 1: 0, 2: 1}, "class_priors: 0 of class '1' is not a finite number above 0"),
        ("flat", "class_priors"),
    ],
)
def test_wrong_priors_are_refused(priors: Any, message: str) -> None:
    X, y = np.random.default_rng(2).normal(size=(90, 2)), np.arange(90) % 3
    with pytest.raises(fr.SettingError, match=message):
        fr.ReliefRanker("classification", class_priors=priors).fit(X, y)
    if priors == "flat":
        with pytest.raises(
            fr.SettingError, match="class_priors: for one nominal target, the task is regression"
        ):
            fr.ReliefRanker("regression", class_priors="uniform").fit(X, y)


@pytest.mark.parametrize("rule", ["nearest", "multisurf"])
@pytest.mark.parametrize("step", [1, 0.5])
def test_rank_intervals_do_not_contradict_each_other(rule: str, step: float) -> None:
    sure = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(150, 5))
        y = (X[:, 0] + 0.4 * rng.normal(size=150) > 0).astype(int)
        ranker = fr.ReliefRanker("classification", neighborhood=rule, turf_step=step)
        best, worst = ranker.fit(X, y).result_.score().rank_interval.T
        for place in range(1, 6):
            above = worst <= place
            assert above.sum() <= place
            if above.sum() == place:
                sure += place == 1
                assert best[~above].min(initial=9) > place
    assert sure
