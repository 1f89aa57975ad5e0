"""Rankings that go no further than they must."""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferrank
from ferrank import ForestRanker, Ranking, ReliefRanker, SettingError, run


def table(rows: int, weight: float, seed: int = 0) -> tuple[Any, Any]:
    """Return six features of noise, and a target to which the first two add."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, 6))
    return X, weight * X[:, :2].sum(axis=1) + rng.random(rows)


def test_what_is_plain_to_see_is_seen_in_a_sample() -> None:
    X, y = table(200_000, 2.0)
    ranking = ForestRanker(until="stable", stable_top=2).fit(X, y).result_
    stopped = ranking.stopped
    assert stopped is not None
    assert (stopped.reason, stopped.top, stopped.clear, stopped.of) == ("settled", 2, 2, 200_000)
    assert stopped.bag == 4_000
    assert ranking.n_rows == stopped.sampled < 140_000
    assert set(ranking.top(2)) == {"x0", "x1"}
    assert str(stopped) in str(ranking)


def test_noise_ends_with_all_trees_and_rows_and_no_better_than_chance() -> None:
    X, y = table(3_000, 0.0)
    forest = ForestRanker(n_estimators=40, until="stable", stable_top=2)
    ranking = forest.fit(X, y).result_
    stopped = ranking.stopped
    assert stopped is not None
    assert (stopped.reason, stopped.effort, stopped.bag, stopped.sampled) == ("chance", 40, 3_000, 3_000)
    assert stopped.needed is None
    assert str(stopped).startswith("no feature is better than chance, as far as this forest tells")
    whole = ForestRanker(n_estimators=40).fit(X, y).result_
    assert ranking.importances().tobytes() == whole.importances().tobytes()


def test_relief_takes_more_queries_until_it_is_sure() -> None:
    X, y = table(3_000, 3.0)
    ranking = ReliefRanker(until="stable", stable_top=2).fit(X, y).result_
    assert ranking.stopped is not None
    assert (ranking.stopped.reason, ranking.stopped.bag, ranking.stopped.of) == ("settled", None, 3_000)
    assert ranking.stopped.effort < 3_000
    assert set(ranking.top(2)) == {"x0", "x1"}


@pytest.mark.parametrize("ranker", [ForestRanker, ReliefRanker])
def test_the_same_bits_for_any_number_of_threads(ranker: Any) -> None:
    X, y = table(20_000, 0.5)

    def ranked(n_jobs: int) -> Ranking:
        ranking: Ranking = ranker(until="stable", stable_top=2, n_jobs=n_jobs).fit(X, y).result_
        return ranking

    one, two = ranked(1), ranked(2)
    assert one.stopped == two.stopped
    assert one.importances().tobytes() == two.importances().tobytes()


def test_what_is_equal_is_not_told_apart_by_advice_that_cannot_be_followed() -> None:
    X, y = table(2_000, 2.0)
    for settings in ({"stable_top": 1}, {"stable_top": 4}):
        stopped = ForestRanker(n_estimators=64, until="stable", **settings).fit(X, y).result_.stopped
        assert stopped is not None
        assert stopped.reason == "exhausted"
        assert stopped.needed is None or 64 < stopped.needed <= 6_400
        assert ("more rows may" in str(stopped)) == (stopped.needed is None)


@pytest.mark.slow
def test_standard_errors_of_small_bags_cover_what_other_samples_say() -> None:
    def found(seed: int) -> tuple[float, float]:
        X, y = table(130_000, 2.0, seed)
        forest = ForestRanker(until="stable", stable_top=2, random_state=seed)
        ranking = forest.fit(X, y).result_
        assert ranking.stopped is not None
        assert ranking.stopped.bag == 4_000
        return ranking.score().importance[0], ranking.score().standard_error[0]

    importances, errors = np.array([found(seed) for seed in range(30)]).T
    # The standard deviation of 30 is off by an eighth.
    assert 0.7 < errors.mean() / importances.std(ddof=1) < 1.5


@pytest.mark.parametrize("score", ["genie3", "mdi_oob", "permutation", "relief"])
def test_noise_with_few_and_many_values_never_settles(score: str) -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        columns: dict[str, Any] = {f"k{n}": rng.integers(0, n, 600).astype(str) for n in (2, 20, 100)}
        columns |= {f"x{i}": rng.random(600) for i in range(4)} | {"y": rng.random(600)}
        ranker = (
            ReliefRanker(until="stable", stable_top=1)
            if score == "relief"
            else ForestRanker(scores=(score,), until="stable", stable_top=1, random_state=seed)
        )
        stopped = ferrank.rank(columns, "y", ranker=ranker).stopped
        assert stopped is not None
        assert stopped.reason in ("chance", "exhausted")
        assert stopped.reason == "chance" or score != "genie3"


@pytest.mark.slow
def test_small_bags_do_not_speak_for_large_ones() -> None:
    """Trees of few rows do not find the exclusive or, which matters most in trees of many."""
    for seed in range(2):
        rng = np.random.default_rng(seed)
        X = rng.random((130_000, 10))
        y = 0.9 * X[:, 0] + ((X[:, 1] > 0.5) ^ (X[:, 2] > 0.5))
        small = ForestRanker(n_estimators=32, max_samples=1_000, random_state=seed).fit(
            X[:32_000], y[:32_000]
        )
        assert small.result_.top(1) == ["x0"]
        ranking = (
            ForestRanker(until="stable", stable_top=1, n_estimators=40, random_state=seed).fit(X, y).result_
        )
        assert ranking.stopped is not None
        assert (ranking.stopped.reason, ranking.stopped.bag) == ("exhausted", 130_000)
        assert set(ranking.top(2)) == {"x1", "x2"}


def test_it_is_saved_with_the_ranking(tmp_path: Path) -> None:
    X, y = table(2_000, 2.0)
    ranking = ForestRanker(until="stable", stable_top=2, n_estimators=20).fit(X, y).result_
    for suffix in (".json", ".parquet"):
        ranking.save(tmp_path / f"ranking{suffix}")
        assert Ranking.load(tmp_path / f"ranking{suffix}").stopped == ranking.stopped


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (ForestRanker(until="soon"), "until: 'soon'"),
        (ForestRanker(until="stable", stable_top=0), "stable_top: 0"),
        (ForestRanker(until="stable", confidence=1.0), "confidence: 1"),
        (ForestRanker(until="stable", bootstrap=False), "until: needs a bootstrap"),
        (ReliefRanker("classification", until="stable", scores=("myopic",)), "until: myopic"),
    ],
)
def test_settings_that_make_no_sense(ranker: Any, message: str) -> None:
    X, y = table(50, 1.0)
    with pytest.raises(SettingError, match=message):
        ranker.fit(X, np.where(y > 1, "a", "b") if ranker.task else y)


def test_one_feature_is_settled_at_once() -> None:
    ranking = ferrank.rank({"a": [1.0, 2, 3, 4], "y": [1.0, 1, 2, 2]}, "y", until="stable")
    assert ranking.stopped is not None
    assert (ranking.stopped.reason, ranking.stopped.top) == ("settled", 0)


def test_a_sample_without_any_target_falls_back_on_all_rows() -> None:
    X, _ = table(100_000, 0.0)
    y = np.full(100_000, np.nan)
    y[:4] = [0.0, 1.0, 2.0, 3.0]
    ranking = ForestRanker(until="stable", unlabelled="ignore", n_estimators=2).fit(X, y).result_
    assert ranking.n_rows == 4


@pytest.mark.slow
@pytest.mark.usefixtures("keyboard")
def test_ctrl_c_once_ends_with_the_answer_there_is() -> None:
    X, y = table(200_000, 0.0)
    timer = threading.Timer(3.0, lambda: os.kill(os.getpid(), signal.SIGINT))
    timer.start()
    ranking = ForestRanker(until="stable", stable_top=3, n_estimators=100_000).fit(X, y).result_
    timer.join()
    assert ranking.stopped is not None
    assert ranking.stopped.reason == "asked"


def test_ctrl_c_twice_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    X, y = table(200_000, 0.0)
    wide = np.tile(X, 40)
    asked = []
    watch = run._watch

    def interrupted(*arguments: Any) -> None:
        """Gives a Ctrl-C to each wait, before the first stage, which takes seconds, has an answer."""
        asked.append(arguments)
        if len(asked) <= 2:
            raise KeyboardInterrupt
        watch(*arguments)

    monkeypatch.setattr(run, "_watch", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ReliefRanker(until="stable", task="classification").fit(wide, y)
    assert len(asked) == 2


@pytest.mark.slow
def test_the_command_line(tmp_path: Path) -> None:
    X, y = table(20_000, 2.0)
    path = tmp_path / "table.arrow"
    ferrank.convert({**{f"x{i}": X[:, i] for i in range(6)}, "y": y}, path)
    command = [sys.executable, "-m", "ferrank", "rank", str(path), "--target", "y", "--until", "stable"]
    done = subprocess.run(
        [*command, "--stable-top", "2", "--json"], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["stopped"]["reason"] == "settled"
