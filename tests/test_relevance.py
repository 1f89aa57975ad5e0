"""Verdicts: false discoveries stay below the rate, relevant features are found, bits are always the same."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import stats
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import ferrank as fr
from ferrank.cli.main import main
from ferrank.ranking.joint import join

sys.path.insert(0, str(Path(__file__).parents[1] / "benches"))
from kinds import DISCOVERIES, KINDS, Simulated

FOREST: dict[str, Any] = {"n_estimators": 200, "shadows": True, "standard_errors": False}


def linear(seed: int = 0, n_rows: int = 200, n_features: int = 8) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features))
    return X, X[:, 1] + 2 * X[:, 4] + rng.normal(size=n_rows)


def frame(seed: int = 0, n_rows: int = 200) -> pd.DataFrame:
    X, y = linear(seed, n_rows)
    return pd.DataFrame(X, columns=list("abcdefgh")).assign(y=y)


def evidence(ranking: fr.Ranking) -> np.ndarray:
    assert ranking.relevance is not None
    return np.concatenate([ranking.relevance.evidence, ranking.relevance.most_evidence])


def judged(data: Simulated, ranker: Any, fdr: float = 0.1) -> tuple[float, float]:
    """Return the false discovery proportion and the share of the relevant features that are found."""
    table, groups = data.table(), None
    if data.groups is not None:
        table, groups = table.append_column("group", pa.array(data.groups)), "group"
    ranking = fr.rank(table, "y", ranker=ranker, groups=groups)
    assert ranking.relevance is not None
    chosen = ranking.relevance.verdicts(fdr) == "relevant"
    return (chosen & data.null).sum() / max(chosen.sum(), 1), (chosen & data.relevant).sum() / max(
        data.relevant.sum(), 1
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "n_sets"),
    [
        ("independent", 15),
        ("correlated", 15),
        ("cardinality", 15),
        ("imbalance", 15),
        ("heavy-tails", 15),
        ("wide", 6),
        ("wide-cardinality", 10),
    ],
)
def test_false_discoveries_stay_below_the_rate(family: str, n_sets: int) -> None:
    kinds = [DISCOVERIES[f"{prefix}-{family}"] for prefix in ("null", "mixed")]
    seeds = range(500, 500 + n_sets)
    found = [judged(kind(seed), fr.JointRanker(random_state=seed)) for seed in seeds for kind in kinds]
    proportions = np.array([proportion for proportion, _ in found])
    # A set without relevant features is all or nothing.
    assert proportions.mean() <= 0.1 + 2 * 0.3 / np.sqrt(len(proportions)), proportions
    power = np.array([share for _, share in found[1::2]])
    assert power.mean() > 0.3, power


@pytest.mark.slow
def test_false_discoveries_stay_below_the_rate_where_subjects_have_several_rows() -> None:
    kinds = [DISCOVERIES[f"{prefix}-grouped"] for prefix in ("null", "mixed")]
    found = [
        judged(kind(seed), fr.JointRanker(random_state=seed)) for seed in range(500, 508) for kind in kinds
    ]
    assert np.mean([proportion for proportion, _ in found]) <= 0.1 + 2 * 0.3 / np.sqrt(len(found))
    assert np.mean([share for _, share in found[1::2]]) > 0.4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["xor", "products"])
def test_features_that_matter_only_together_are_found(kind: str) -> None:
    found = [judged(KINDS[kind](seed), fr.JointRanker(random_state=seed)) for seed in range(5)]
    assert np.mean([share for _, share in found]) > 0.9
    assert np.mean([proportion for proportion, _ in found]) < 0.2


@pytest.mark.slow
@pytest.mark.parametrize(
    "ranker",
    [fr.ForestRanker(n_estimators=600, shadows=True), fr.ReliefRanker(n_neighbors=30, target_draws=60)],
    ids=["forest", "relief"],
)
def test_p_values_of_irrelevant_features_are_not_small_too_often(ranker: Any) -> None:
    p = []
    for seed in range(30):
        data = DISCOVERIES["mixed-independent"](seed)
        ranking = fr.rank(data.table(), "y", ranker=ranker.set_params(random_state=seed))
        assert ranking.relevance is not None
        p.append(ranking.relevance.p_value[data.null])
    p = np.concatenate(p)
    for level in (0.1, 0.02):
        assert (p < level).sum() <= stats.binom.ppf(0.999, len(p), level), level


def test_rare_flags_and_identifiers_beside_a_strong_feature_are_not_relevant() -> None:
    rng = np.random.default_rng(0)
    signal = rng.normal(size=1_000)
    flags = {f"flag{j}": (rng.random(1_000) < 0.01).astype(float) for j in range(40)}
    flags["name"] = [f"n{i}" for i in range(1_000)]
    target = np.where(signal + 0.5 * rng.normal(size=1_000) > 0, "p", "q")
    ranker = fr.JointRanker(n_estimators=200)
    found = fr.rank(pd.DataFrame({"signal": signal, **flags}), target, ranker=ranker).relevant()
    assert found[0] == "signal"
    assert len(found) <= 3, found


def test_the_joint_ranking_finds_what_matters() -> None:
    ranking = fr.rank(frame(), "y")
    assert ranking.top(2) == ["e", "b"]
    assert sorted(ranking.relevant()) == ["b", "e"]
    assert list(ranking.scores) == ["evidence", "permutation", "mdi_oob", "genie3", "relief", "association"]
    assert ranking.model_error is not None


def test_verdicts_are_the_rules_of_benjamini_and_hochberg() -> None:
    p = np.random.default_rng(0).uniform(size=50) ** 4
    relevance = fr.Relevance(-np.log10(p), -np.log10(p / 3))
    np.testing.assert_allclose(relevance.q_value, stats.false_discovery_control(p))
    np.testing.assert_allclose(relevance.q_values("any"), stats.false_discovery_control(p, method="by"))
    verdicts = relevance.verdicts(0.05)
    np.testing.assert_array_equal(verdicts == "relevant", stats.false_discovery_control(p) <= 0.05)
    n_relevant = (verdicts == "relevant").sum()
    undecided = (verdicts != "relevant") & (p / 3 <= 0.05 * (n_relevant + 1) / len(p))
    np.testing.assert_array_equal(verdicts == "undecided", undecided)


def test_p_values_too_small_for_numbers_keep_their_order() -> None:
    relevance = fr.Relevance(np.array([400.0, 500.0, 0.1]), np.array([410.0, 510.0, 0.2]))
    assert relevance.p_value.tolist()[:2] == [0.0, 0.0]
    assert relevance.verdict.tolist() == ["relevant", "relevant", "irrelevant"]
    joined = fr.Relevance.joined([relevance, relevance])
    np.testing.assert_allclose(joined.evidence, relevance.evidence, rtol=1e-9)


@pytest.mark.parametrize(
    "ranker",
    [
        fr.ForestRanker(**FOREST, scores=("permutation", "genie3")),
        fr.ReliefRanker(target_draws=20),
        fr.JointRanker(n_estimators=200, target_draws=20),
    ],
    ids=["forest", "relief", "joint"],
)
def test_the_same_bits_for_threads_containers_and_memory(ranker: Any, tmp_path: Path) -> None:
    data = frame(n_rows=120)
    expected = evidence(fr.rank(data, "y", ranker=ranker.set_params(n_jobs=1)))
    table = pa.Table.from_pandas(data, preserve_index=False)
    chunked = pa.concat_tables([table.slice(0, 50), table.slice(50)])
    np.testing.assert_array_equal(
        evidence(fr.rank(chunked, "y", ranker=ranker.set_params(n_jobs=2))), expected
    )
    ranker.set_params(n_jobs=2, temp_dir=tmp_path)
    np.testing.assert_array_equal(
        evidence(fr.rank(data, "y", ranker=ranker, resume=tmp_path / "run")), expected
    )
    np.testing.assert_array_equal(
        evidence(fr.rank(data, "y", ranker=ranker, resume=tmp_path / "run")), expected
    )


def test_the_same_bits_in_parts() -> None:
    data, ranker = frame(n_rows=100), fr.ForestRanker(**FOREST)
    expected = evidence(fr.rank(data, "y", ranker=ranker))
    parts = [
        fr.accumulate(data, "y", ranker=ranker, keys=range(first, last))
        for first, last in [(0, 7), (7, 150), (150, 200)]
    ]
    np.testing.assert_array_equal(evidence(fr.merge(parts[::-1]).ranking()), expected)


def test_the_same_bits_on_a_cluster() -> None:
    dask = pytest.importorskip("dask.dataframe")
    data, ranker = frame(n_rows=100), fr.JointRanker(n_estimators=200, target_draws=20)
    expected = evidence(fr.rank(data, "y", ranker=ranker))
    np.testing.assert_array_equal(
        evidence(fr.rank(dask.from_pandas(data, npartitions=3), "y", ranker=ranker)), expected
    )


def test_importances_without_shadows_are_not_touched_by_the_setting() -> None:
    plain = fr.ForestRanker(n_estimators=20).fit(*linear()).result_
    assert plain.relevance is None
    with pytest.raises(fr.SettingError, match="no p-values; shadows=True"):
        plain.relevant()
    assert not hasattr(plain, "verdict")


def test_too_few_of_anything_is_an_error() -> None:
    X, y = linear()
    with pytest.raises(fr.SettingError, match="shadows: p-values need at least 200 trees, and there are 100"):
        fr.ForestRanker(shadows=True).fit(X, y)
    with pytest.raises(
        fr.SettingError, match="target_draws: p-values need at least 20 draws, 3 were asked for"
    ):
        fr.ReliefRanker(target_draws=3).fit(X, y)
    for fdr in (0, 1, -0.1, "0.1", True, float("nan")):
        with pytest.raises(fr.SettingError, match="fdr: .* is not a number above 0 and below 1"):
            fr.RelevantFeatures(fdr).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shadows": True, "n_estimators": 200, "until": "stable"}, "shadows: p-values need a given number"),
        ({"shadows": True, "n_estimators": 200, "supervision": 0.5}, "shadows: where features are clustered"),
        ({"ranker": "relief", "target_draws": 20, "until": "stable"}, "target_draws: p-values need a given"),
        (
            {"ranker": "relief", "target_draws": 20, "influence": (0, 1)},
            "target_draws: rows without a target",
        ),
        ({"ranker": "joint", "unlabelled": "use"}, "unlabelled: 'use' is neither"),
        (
            {"ranker": "joint", "sample_weight": "a"},
            "sample_weight: tests give each row the same",
        ),
        ({"ranker": "joint", "scope": "partition"}, "scope: 'partition' is not 'global'"),
    ],
)
def test_what_does_not_go_together_is_named(settings: dict[str, Any], message: str) -> None:
    data = frame().abs()
    with pytest.raises(fr.SettingError, match=message):
        fr.rank(data, "y", **settings)


def test_streams_and_single_trees_have_no_shadows() -> None:
    X, y = linear()
    with pytest.raises(fr.SettingError, match="shadows: not for rows that come block by block"):
        fr.ForestRanker(**FOREST).partial_fit(X, y)
    with pytest.raises(fr.SettingError, match="target_draws: not for rows that come block by block"):
        fr.ReliefRanker(target_draws=20).partial_fit(X, y)
    with pytest.raises(fr.SettingError, match="shadows: a tree is described without"):
        fr.grow_tree(frame(), "y", ranker=fr.ForestRanker(**FOREST))


@pytest.mark.parametrize("task", ["classification", "multi-label", "hierarchical", "multi-target"])
def test_every_task_has_verdicts(task: str) -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(200, 6))
    signs = (X[:, :2] > 0).astype(int)
    y: Any = {
        "classification": signs[:, 0] + 2 * signs[:, 1],
        "multi-label": signs,
        "hierarchical": [["a", "b/c"] if one else ["b"] for one in signs[:, 0]],
        "multi-target": X[:, :2],
    }[task]
    ranker = fr.JointRanker(task, n_estimators=200, target_draws=20).fit(X, y)
    relevant = ranker.result_.relevant()
    assert {"x0"} <= set(relevant) <= {"x0", "x1", "x2", "x3", "x4", "x5"}
    assert ranker.result_.order()[0] in (0, 1)


def test_hopeless_data_give_no_verdict_and_no_crash() -> None:
    rng = np.random.default_rng(0)
    tables = {
        "constant target": {"a": rng.normal(size=50), "b": rng.normal(size=50), "y": np.zeros(50)},
        "constant features": {"a": np.ones(50), "b": np.zeros(50), "y": rng.normal(size=50)},
        "missing feature": {"a": np.full(50, np.nan), "b": rng.normal(size=50), "y": rng.normal(size=50)},
        "a category for each row": {
            "a": [f"id{row}" for row in range(50)], "b": rng.normal(size=50), "y": rng.normal(size=50)
        },
        "two rows": {"a": [0.0, 1.0], "b": [1.0, 0.0], "y": [0.0, 1.0]},
    }  # fmt: skip
    for name, table in tables.items():
        ranking = fr.rank(table, "y", ranker=fr.JointRanker(n_estimators=200, target_draws=20))
        assert ranking.relevant() == [], name
        assert "no feature is better than chance" in ranking.to_text() or "undecided" in ranking.to_text()
        json.dumps(ranking.to_dict(), allow_nan=False)


@pytest.mark.parametrize("suffix", [".json", ".parquet", ".arrow"])
def test_verdicts_survive_files(suffix: str, tmp_path: Path) -> None:
    ranking = fr.ForestRanker(**FOREST).fit(frame()[list("abcdefgh")], frame()["y"]).result_.at_rate(0.02)
    ranking.save(tmp_path / f"r{suffix}")
    loaded = fr.Ranking.load(tmp_path / f"r{suffix}")
    assert loaded.relevance is not None
    assert loaded.relevance.fdr == 0.02
    np.testing.assert_array_equal(evidence(loaded), evidence(ranking))
    table = ranking.to_pandas()
    assert table.columns.tolist()[:5] == ["feature", "rank", "p_value", "q_value", "verdict"]
    assert set(table.loc[table["verdict"] == "relevant", "feature"]) == set(ranking.relevant(0.02))


def test_a_pipeline_keeps_the_relevant_features() -> None:
    X, y = linear(n_rows=300)
    selector = fr.RelevantFeatures(ranker=fr.ForestRanker(**FOREST))
    pipeline = make_pipeline(selector, LinearRegression()).fit(X, y)
    assert pipeline[0].get_support(indices=True).tolist() == [1, 4]
    assert pipeline[0].transform(X).shape == (300, 2)
    assert pipeline.score(X, y) > 0.7
    with pytest.raises(fr.SettingError, match="no p-values"):
        fr.RelevantFeatures(ranker=fr.ForestRanker(n_estimators=10)).fit(X, y)


def test_as_many_features_as_a_pipeline_needs_are_kept() -> None:
    X, y = linear(n_rows=300)
    noise = np.random.default_rng(5).normal(size=300)
    with pytest.warns(UserWarning, match="no feature is relevant at fdr=0.1.*at_least=1"):
        fr.RelevantFeatures(ranker=fr.ForestRanker(**FOREST)).fit(X, noise)
    selector = fr.RelevantFeatures(ranker=fr.ForestRanker(**FOREST), at_least=2).fit(X, noise)
    result = selector.ranker_.result_
    assert result.relevant() == []
    assert set(selector.get_feature_names_out()) == set(result.top(2))
    selector.set_params(at_least=1).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1, 4]
    with pytest.raises(fr.SettingError, match="at_least: -1 is not a number of features"):
        selector.set_params(at_least=-1).fit(X, y)


def test_the_shell_selects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "some.csv"
    frame().to_csv(path, index=False)
    assert main(["rank", str(path), "--target", "y", "--select", "fdr=0.05"]) == 0
    assert "relevant at fdr=0.05: e, b" in capsys.readouterr().out
    forest = ["--ranker", "forest", "--trees", "200", "--json"]
    assert main(["rank", str(path), "--target", "y", "--select", "fdr=0.2", *forest]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["relevance"]["fdr"] == 0.2
    assert found["settings"]["shadows"]
    with pytest.raises(SystemExit):
        main(["rank", str(path), "--target", "y", "--select", "fdr=2"])
    assert "fdr=RATE with a rate above 0 and below 1" in capsys.readouterr().err


def test_evidence_and_p_value_are_what_the_documentation_says() -> None:
    parts = []
    for p_value in (0.1, 0.5, 0.5):
        one = fr.Ranking.from_importances(["a"], {f"s{len(parts)}": [1.0]}, task="regression")
        evidence = -np.log10([p_value])
        parts.append(replace(one, relevance=fr.Relevance(evidence, evidence)))
    joint = join(parts, {}, None)
    text = (Path(__file__).parents[1] / "docs" / "statistics.md").read_text(encoding="utf-8")
    (evidence,), (p_value,) = joint.importances("evidence"), joint.p_value
    mean = f"a harmonic mean of {10**-evidence:.2f}, thus the evidence {evidence:.2f}"
    assert f"{mean}, and the p-value {p_value:.2f}" in text


@pytest.mark.parametrize(
    "ranker",
    [
        fr.ForestRanker(),
        fr.ReliefRanker(),
        fr.JointRanker(),
        fr.AssociationRanker(),
        fr.UnivariateRanker(),
        fr.RelevantFeatures(),
    ],
)
def test_a_ranker_that_is_not_fitted_says_so_and_nothing_else(ranker: Any) -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NotFittedError):
            ranker.transform(frame)


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        (
            {"ranker": "joint", "forest": {"n_estimators": 600}},
            "more trees may tell (JointRanker(n_estimators=1200), --ranker joint --trees 1200)",
        ),
        ({"ranker": "forest", "n_estimators": 100}, "more trees may tell (n_estimators=200, --trees 200)"),
        ({"ranker": "relief", "n_iterations": 50}, "more queries may tell (n_iterations, --iterations)"),
        ({}, "more trees may tell"),
    ],
)
def test_undecided_features_are_told_with_what_may_decide(settings: dict[str, Any], what: str) -> None:
    ranking = fr.Ranking.from_importances(["a"], {"s": [1.0]}, task="regression", settings=settings)
    undecided = replace(ranking, relevance=fr.Relevance(np.array([0.5]), np.array([3.0])))
    assert undecided.to_text().endswith(f"; 1 undecided: {what}")


def test_more_trees_of_the_shell_keep_the_joint_ranker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    frame().to_csv(tmp_path / "t.csv", index=False)
    call = ["rank", str(tmp_path / "t.csv"), "--target", "y", "--ranker", "joint", "--trees", "220", "--json"]
    assert main(call) == 0
    assert json.loads(capsys.readouterr().out)["settings"]["forest"]["n_estimators"] == 220
