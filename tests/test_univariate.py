"""The ranker of single features against plain formulas and scikit-learn."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics import mutual_info_score
from sklearn.tree import DecisionTreeRegressor

import ferrank as fr
from ferrank import _core
from ferrank.cli.main import main
from ferrank.evaluate.baselines.univariate import ChiSquared, InformationGain
from ferrank.rankers.registry import PLANS

rng = np.random.default_rng(0)
X = np.column_stack([rng.integers(8, size=400), rng.integers(3, size=400), rng.normal(size=400).round(1)])
CLASSES = np.where(X[:, 0] + rng.normal(size=400) > 4, "high", np.where(X[:, 1] > 1, "odd", "low"))


def importances(y: object, *scores: str, **settings: object) -> list[np.ndarray]:
    result = fr.UnivariateRanker(scores=scores, n_bins=1000, **settings).fit(X, y).result_
    return [result.importances(score) for score in scores]


def test_scores_of_classes_are_those_of_the_table_of_counts() -> None:
    gains, ratios, chi2, mutual = importances(
        CLASSES, "information_gain", "gain_ratio", "chi2", "mutual_information"
    )
    for number, column in enumerate(X.T):
        codes, classes = np.unique(column, return_inverse=True)[1], np.unique(CLASSES, return_inverse=True)[1]
        table = np.zeros((codes.max() + 1, 3))
        np.add.at(table, (codes, classes), 1)
        expected = mutual_info_score(None, None, contingency=table)
        share = table.sum(axis=1) / table.sum()
        assert mutual[number] == pytest.approx(expected)
        assert gains[number] == pytest.approx(expected / np.log(2))
        assert ratios[number] == pytest.approx(expected / -(share * np.log(share)).sum())
        assert chi2[number] == pytest.approx(chi2_contingency(table, correction=False).statistic)


def test_baselines_of_the_evaluation_agree() -> None:
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "y": CLASSES})
    for baseline, score in [(InformationGain(), "information_gain"), (ChiSquared(), "chi2")]:
        own = fr.rank(table, "y", ranker="univariate", scores=[score])
        assert own.importances() == pytest.approx(fr.rank(table, "y", ranker=baseline).importances())


def test_mse_is_what_the_best_stump_explains() -> None:
    y = X[:, 0] ** 2 + rng.normal(size=400)
    [found] = importances(y, "mse")
    for number, column in enumerate(X.T):
        stump = DecisionTreeRegressor(max_depth=1).fit(column.reshape(-1, 1), y)
        assert found[number] == pytest.approx(stump.score(column.reshape(-1, 1), y))


def test_accuracy_is_that_of_the_best_cut() -> None:
    [found] = importances(CLASSES, "accuracy")
    most = max(np.unique(CLASSES, return_counts=True)[1])
    for number, column in enumerate(X.T):
        best = most
        for cut in np.unique(column):
            sides = [CLASSES[column <= cut], CLASSES[column > cut]]
            best = max(best, sum(max(np.unique(side, return_counts=True)[1], default=0) for side in sides))
        assert found[number] == pytest.approx((best - most) / len(CLASSES))


def test_weights_count_as_repeated_rows() -> None:
    weights = rng.integers(1, 4, size=400)
    ranker = fr.UnivariateRanker(scores=["information_gain", "chi2"], n_bins=1000)
    weighted = ranker.fit(X, CLASSES, sample_weight=weights).result_
    repeated = ranker.fit(np.repeat(X, weights, axis=0), np.repeat(CLASSES, weights)).result_
    for score in ("information_gain", "chi2"):
        assert weighted.importances(score) == pytest.approx(repeated.importances(score))


def test_missing_values_and_several_targets() -> None:
    missing = X.copy()
    missing[::2, 1] = np.nan
    ranker = fr.UnivariateRanker(scores=["information_gain"], n_bins=1000)
    half = fr.UnivariateRanker(scores=["information_gain"], n_bins=1000).fit(X[1::2], CLASSES[1::2])
    found = ranker.fit(missing, CLASSES).feature_importances_
    assert found[1] == pytest.approx(half.feature_importances_[1] / 2)
    both = pa.table({"a": CLASSES, "b": np.roll(CLASSES, 1)})
    single = [ranker.fit(X, both[name].to_numpy()).feature_importances_ for name in ("a", "b")]
    assert ranker.fit(X, both).feature_importances_ == pytest.approx(np.mean(single, axis=0))


def test_settings_are_the_engines() -> None:
    engine = json.loads(_core.default_settings_json("univariate"))
    assert json.loads(_core.settings_json(fr.UnivariateRanker()._settings())) == engine
    parameters = set(inspect.signature(fr.UnivariateRanker).parameters)
    run = {"n_jobs", "memory_limit", "temp_dir", "n_features_to_select", "task", "categorical_features"}
    assert parameters - run == engine.keys() - {"ranker"}


def test_the_plan_has_the_parameters_of_the_estimator() -> None:
    signature = inspect.signature(fr.UnivariateRanker).parameters
    assert PLANS["univariate"]._defaults() == {name: one.default for name, one in signature.items()} | {
        "scores": ["mutual_information"],
    }
    assert PLANS["univariate"]()._settings() == fr.UnivariateRanker()._settings()


def test_wrong_settings_are_named() -> None:
    y = X[:, 0] + rng.normal(size=400)
    with pytest.raises(
        fr.SettingError, match=r"^scores: chi2 is not for the target 'y', which is a number; use"
    ):
        fr.UnivariateRanker(scores=["chi2"]).fit(X, y)
    with pytest.raises(fr.SettingError, match=r"^n_bins: 1 is not in 2"):
        fr.UnivariateRanker(n_bins=1).fit(X, y)
    with pytest.raises(fr.SettingError, match=r"^scores: 'gini' is not "):
        fr.UnivariateRanker(scores=["gini"]).fit(X, y)


def test_dask_collections_are_refused() -> None:
    dask = pytest.importorskip("dask.dataframe")
    parts = dask.from_pandas(pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.5, 2.5, 0.5]}), npartitions=2)
    with pytest.raises(
        fr.SettingError, match="'univariate' does not rank dask collections; use ranker='assoc"
    ):
        fr.rank(parts, "y", ranker="univariate")


def test_the_shell_ranks_features_one_by_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "y": CLASSES}), tmp_path / "data.parquet")
    path = str(tmp_path / "data.parquet")
    command = ["rank", path, "--target", "y", "--ranker", "univariate", "--score", "accuracy", "--bins", "20"]
    assert main([*command, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert main(command) == 0
    assert "accuracy" in capsys.readouterr().out
    assert result["settings"]["n_bins"] == 20
