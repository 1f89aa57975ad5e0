"""Permutation scores by the fifteen measures of label sets."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ferrank as fr
from ferrank.cli.main import main
from ferrank.evaluate import MEASURES, multilabel_measures

DATA = Path(__file__).parent / "data"
ALL = tuple(multilabel_measures(np.ones((1, 1), dtype=bool), np.ones((1, 1)))[0])
LABELS = ["first", "second", "third"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Labels that follow from x0, x1 and x3, in part."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6, 300))
    frame = pd.DataFrame({f"x{number}": column for number, column in enumerate(x)})
    noise = rng.normal(size=(3, 300)) / 3
    known = [x[0] + noise[0] > 0, x[0] + x[1] + noise[1] > 0.3, x[3] + noise[2] > 1]
    return frame.assign(**dict(zip(LABELS, known, strict=True)))


@pytest.fixture(scope="module")
def hierarchy(frame: pd.DataFrame) -> pd.DataFrame:
    """The same as sets of a hierarchy; some are not known, and some empty."""
    paths = np.array(["a", "a/b", "c/d"])
    sets = [list(paths[row]) for row in frame[LABELS].to_numpy()]
    frame = frame.drop(columns=LABELS).assign(labels=sets)
    frame.loc[::17, "labels"] = None
    return frame


def ranked(data: Any, target: Any = LABELS, **settings: Any) -> fr.Ranking:
    given = {"n_estimators": 15, "scores": ("permutation",), "random_state": 1, "unlabelled": "ignore"}
    return fr.rank(data, target, ranker=fr.ForestRanker(**(given | settings)))


def assert_same(one: fr.Ranking, score: str, other: fr.Ranking, other_score: str = "permutation") -> None:
    for what in ("importance", "standard_error", "monte_carlo_error", "rank"):
        np.testing.assert_array_equal(
            getattr(one.score(score), what),
            getattr(other.score(other_score), what),
            err_msg=f"{score} {what}",
        )


def test_the_measures_are_those_of_evaluations() -> None:
    assert len(ALL) == 15
    assert [name for name in MEASURES if name in ALL] == list(ALL)


@pytest.mark.parametrize("case", ["labels", "hierarchy"])
def test_several_measures_from_one_run(case: str, frame: pd.DataFrame, hierarchy: pd.DataFrame) -> None:
    data, target = (frame, LABELS) if case == "labels" else (hierarchy, "labels")
    scores = ("genie3", "permutation", "symbolic")
    together = ranked(data, target, scores=scores, permutation_measures=ALL)
    names = [f"permutation_{name}" for name in ALL]
    assert list(together.scores) == ["genie3", *names, "symbolic"]
    for name in ALL:
        alone = ranked(data, target, scores=scores, permutation_measures=name)
        assert list(alone.scores) == list(scores)
        assert_same(together, f"permutation_{name}", alone)
        assert_same(together, "symbolic", alone, "symbolic")
    importances = {name: tuple(together.importances(name)) for name in names}
    # Predictions have errors of every kind, so that no two measures agree.
    assert len(set(importances.values())) == 15


@pytest.mark.parametrize("case", ["labels", "hierarchy"])
def test_relevant_features_come_first(case: str, frame: pd.DataFrame, hierarchy: pd.DataFrame) -> None:
    data, target = (frame, LABELS) if case == "labels" else (hierarchy, "labels")
    ranking = ranked(data, target, n_estimators=60, permutation_measures=ALL)
    for name in ranking.scores:
        importance = ranking.importances(name)
        assert set(ranking.top(2, name)) <= {"x0", "x1", "x3"}, name
        # More is worse, whichever way the measure points.
        assert importance[0] > 4 * max(np.abs(importance[[2, 4, 5]])), name
    pooled = ranking.top(3, "permutation_pooled_auprc")
    assert set(pooled) == {"x0", "x1", "x3"}


@pytest.mark.filterwarnings("ignore::ferrank.SpoiledDataWarning")
def test_the_relative_loss_of_one_label_by_hand() -> None:
    """One feature equals the label: trees are right, and wrong in half of the rows once it is permuted."""
    x = np.arange(2000) % 2
    data = pd.DataFrame({"x": x.astype(float), "l": x == 1, "m": x == 1})
    measures = ("hamming_loss", "subset_accuracy", "average_auroc", "micro_f1", "one_error", "ranking_loss")
    ranking = ranked(data, ["l", "m"], n_estimators=40, permutation_measures=measures)
    found = {name: ranking.importances(f"permutation_{name}")[0] for name in measures}
    # There is no loss before, so that the increase itself counts; accuracy, area and F1 fall from 1 to 1/2.
    for name in ("hamming_loss", "subset_accuracy", "average_auroc", "micro_f1"):
        assert found[name] == pytest.approx(0.5, abs=0.02), name
    # Rows of neither label have no right top label, before and after; those of both have no pair.
    assert found["one_error"] == pytest.approx(0, abs=1e-12)
    assert found["ranking_loss"] == 0


@pytest.mark.parametrize(
    ("case", "weighted"),
    [("labels", False), ("labels", True), ("hierarchy", False), ("hierarchy", True), ("emotions", False)],
)
def test_the_hamming_loss_is_the_default(
    case: str, weighted: bool, frame: pd.DataFrame, hierarchy: pd.DataFrame
) -> None:
    if case == "emotions":
        data: Any = fr.Dataset(DATA / "emotions.arff", labels=DATA / "emotions.xml")
        default, found = (
            fr.rank(data, ranker=fr.ForestRanker(n_estimators=20, scores=("permutation",), **measures))
            for measures in ({}, {"permutation_measures": "hamming_loss"})
        )
    else:
        data, target = (frame, LABELS) if case == "labels" else (hierarchy, "labels")
        weights = np.random.default_rng(1).random(len(data)) + 0.1 if weighted else None
        default, found = (
            fr.rank(
                data.assign(w=weights) if weighted else data,
                target,
                sample_weight="w" if weighted else None,
                ranker=fr.ForestRanker(
                    n_estimators=20, scores=("permutation",), unlabelled="ignore", **measures
                ),
            )
            for measures in ({}, {"permutation_measures": "hamming_loss"})
        )
    expected = default.importances("permutation")
    np.testing.assert_allclose(found.importances("permutation"), expected, rtol=0, atol=1e-12)
    assert np.abs(expected).max() > 0.01


def test_rows_with_an_unknown_label_are_left_out(frame: pd.DataFrame) -> None:
    gaps = frame.astype(dict.fromkeys(LABELS, object))
    gaps.loc[::3, "second"] = None
    ranking = ranked(gaps, task="multi-label", n_estimators=60, permutation_measures=ALL)
    for name in ranking.scores:
        assert set(ranking.top(2, name)) <= {"x0", "x1", "x3"}, name


@pytest.mark.parametrize("case", ["labels", "hierarchy"])
def test_the_same_bits_for_any_threads_and_shadows_have_scores(
    case: str, frame: pd.DataFrame, hierarchy: pd.DataFrame
) -> None:
    data, target = (frame, LABELS) if case == "labels" else (hierarchy, "labels")
    one, two = (ranked(data, target, permutation_measures=ALL, n_jobs=n_jobs) for n_jobs in (1, 2))
    for name in one.scores:
        assert_same(one, name, two, name)
    shadows = ranked(
        data, target, permutation_measures=ALL[:2], shadows=True, n_estimators=200, standard_errors=False
    )
    assert "x0" in shadows.relevant(fdr=0.05)
    assert not set(shadows.relevant(fdr=0.05)) & {"x2", "x4", "x5"}


def test_runs_resume_and_parts_merge(frame: pd.DataFrame, tmp_path: Path) -> None:
    ranker = fr.ForestRanker(n_estimators=9, scores=("permutation",), permutation_measures=ALL)
    whole, path = fr.rank(frame, LABELS, ranker=ranker), tmp_path / "run.ferrank"
    fr.rank(frame, LABELS, ranker=ranker, resume=path)
    content = path.read_bytes()
    path.write_bytes(content[: 2 * len(content) // 3 | 1])
    with pytest.warns(fr.ResumeWarning, match="dropped the last"):
        resumed = fr.rank(frame, LABELS, ranker=ranker, resume=path)
    merged = fr.merge(
        [fr.accumulate(frame, LABELS, ranker=ranker, keys=keys) for keys in (range(4), range(4, 9))]
    )
    for name in whole.scores:
        assert_same(whole, name, resumed, name)
    assert merged.settings == ranker._settings()
    for name in whole.scores:
        np.testing.assert_array_equal(whole.importances(name), merged.ranking().importances(name))


def test_collections_of_dask_have_the_bits_of_one_machine(
    frame: pd.DataFrame, hierarchy: pd.DataFrame
) -> None:
    dask = pytest.importorskip("dask")
    dd = pytest.importorskip("dask.dataframe")
    ranker = fr.ForestRanker(n_estimators=5, scores=("permutation",), permutation_measures=ALL)
    whole = fr.rank(frame, LABELS, ranker=ranker)
    with dask.config.set(scheduler="threads"):
        found = fr.rank(dd.from_pandas(frame, npartitions=3, sort=False), LABELS, ranker=ranker)
    for name in whole.scores:
        assert_same(whole, name, found, name)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"scores": ("genie3",)}, "permutation_measures: for the score permutation, .* scores genie3; add it"),
    (
        {"permutation_measures": ("one_error", "one_error")},
        "permutation_measures: 'one_error' is given twice",
    ),
    (
        {"permutation_measures": "auprc"},
        "permutation_measures: 'auprc' is not 'average_auprc', 'pooled_auprc'",
    ),
    ({"permutation_measures": 3}, "permutation_measures: 3 is not "),
    ({"per_target": True}, "permutation_measures: .* with per_target each tree predicts one label"),
    ({"task": "multi-target"}, "permutation_measures: for label sets, not for the task multi-target; use"),
    ({"bootstrap": False}, "scores: permutation needs out-of-bag rows"),
]


@pytest.mark.parametrize(("settings", "message"), WRONG)
def test_what_will_not_do_is_an_error(settings: dict[str, Any], message: str, frame: pd.DataFrame) -> None:
    with pytest.raises(fr.SettingError, match=message):
        ranked(frame, **({"permutation_measures": "pooled_auprc"} | settings))


def test_no_measures_are_the_default(frame: pd.DataFrame) -> None:
    default = ranked(frame)
    for none in (None, (), []):
        assert_same(default, "permutation", ranked(frame, permutation_measures=none))
        ranked(frame[["x0", "x1", "x2"]], "x2", permutation_measures=none)


def test_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--labels", str(DATA / "emotions.xml"), "--trees", "5", "--score", "permutation", "--top", "2"]
    options += ["--permutation-measures", "pooled_auprc", "--permutation-measures", "ranking_loss"]
    assert main(["rank", str(DATA / "emotions.arff"), *options]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"permutation_pooled_auprc .*permutation_ranking_loss", shown)
    assert "permutation: increase of out-of-bag error" in shown
