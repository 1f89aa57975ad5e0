"""Studies: all cells once, resumed after a stop, in parallel, from a plan, with tables and tests."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import ferrank as fr
from ferrank.cli import main
from ferrank.evaluate import CrossValidation, Repeated, Results, Study, WeightedNeighbors, evaluate, read_plan
from ferrank.evaluate.rows import read_rows
from ferrank.evaluate.study.splits import by_labels

DATA = Path(__file__).parent / "data"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 4))
LINE = {"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": X[:, 0] + 0.5 * X[:, 1]}
SIDES = {"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0, "left", "right")}


def forest(**settings: Any) -> fr.ForestRanker:
    return fr.ForestRanker(n_estimators=5, **settings)


def study(folder: Path | None = None, **settings: Any) -> Study:
    data = {"line": fr.Dataset(LINE, "y"), "bent": fr.Dataset(LINE | {"y": X[:, 2] ** 2}, "y")}
    rankers = settings.pop(
        "rankers", {"forest": forest(scores=("genie3", "mdi_oob")), "relief": fr.ReliefRanker()}
    )
    return Study(data, rankers, splits=settings.pop("splits", Repeated(n=2)), folder=folder, **settings)


def test_each_number_is_that_of_ranking_and_judging_by_hand() -> None:
    splits = Repeated(0.5, 2)
    found = study(splits=splits, judge=WeightedNeighbors(5)).run()
    dataset = fr.Dataset(LINE, "y")
    rows = read_rows(dataset.source(), dataset.roles())
    table = pa.table(LINE)
    for name, train, test in splits.of(rows, 0):
        parts = table.take(train), table.take(test)
        ranking = fr.rank(parts[0], "y", ranker=forest(scores=("genie3", "mdi_oob")))
        by_hand = evaluate(parts[0], {"forest": ranking}, test=parts[1], target="y", n_neighbors=5)
        for method in ("unweighted", "forest:genie3", "forest:mdi_oob"):
            value = found.values("rmse").loc[("line", name), method]
            assert value == by_hand.value("rmse", method)


def test_what_is_done_is_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = study().run()
    calls, left = [], [3, 1, 4, 100]
    rank = fr.ForestRanker._rank_source

    def counted(self: fr.ForestRanker, *arguments: Any) -> fr.Ranking:
        if left[0] == 0:
            raise KeyboardInterrupt
        left[0] -= 1
        calls.append(arguments)
        return rank(self, *arguments)

    monkeypatch.setattr(fr.ForestRanker, "_rank_source", counted)
    rankers = {"forest": forest(), "bagging": forest(ensemble="bagging")}
    while True:
        try:
            found = study(tmp_path, rankers=rankers, splits=CrossValidation(3)).run()
            break
        except KeyboardInterrupt:
            left.pop(0)
    assert len(calls) == 2 * 2 * 3
    left[0] = 0
    assert study(tmp_path, rankers=rankers, splits=CrossValidation(3)).run().numbers.equals(found.numbers)
    with pytest.raises(
        fr.SettingError, match=r"splits: another one than of the results in .*; take another folder"
    ):
        study(tmp_path, rankers=rankers).run()
    with pytest.raises(fr.SettingError, match="rankers: forest: another one"):
        study(tmp_path, rankers={"forest": forest(max_depth=2)}, splits=CrossValidation(3)).run()
    assert wanted.methods == ["unweighted", "forest:genie3", "forest:mdi_oob", "relief"]


def test_processes_give_the_same_numbers(tmp_path: Path) -> None:
    one = study().run().numbers.drop_columns(["ranking_seconds"])
    two = study(tmp_path).run(n_jobs=2).numbers.drop_columns(["ranking_seconds"])
    assert one.equals(two)


def test_a_damaged_cell_is_named(tmp_path: Path) -> None:
    study(tmp_path).run()
    cell = next((tmp_path / "cells").iterdir())
    cell.write_bytes(b"nothing")
    with pytest.raises(fr.ResourceError, match=r"remove it, and its cell is done anew"):
        study(tmp_path).run()
    cell.unlink()
    study(tmp_path).run()


def test_labelled_rows_are_nested_and_the_others_lose_their_targets() -> None:
    seen: list[pa.Table] = []

    class Judge(WeightedNeighbors):
        def __call__(self, train: pa.Table, *arguments: Any) -> Any:
            seen.append(train)
            return super().__call__(train, *arguments)

    one = Study(
        {"sides": fr.Dataset(SIDES, "y")},
        {"forest": forest()},
        judge=Judge(3),
        labelled=[10, 30],
        splits=Repeated(n=1),
    )
    found = one.run()
    few, many = ({row for row, known in enumerate(t["y"].is_valid().to_pylist()) if known} for t in seen)
    assert (len(few), len(many), few < many) == (10, 30, True)
    assert found.table("accuracy", 30).loc["sides", "forest"] > 0.5
    assert found.table("accuracy").equals(found.table("accuracy", 30))
    with pytest.raises(fr.SettingError, match=r"labelled: no results with 20; there are \[10, 30\]"):
        found.table("accuracy", 20)


def test_rows_for_testing_can_be_given() -> None:
    table = pa.table(SIDES)
    data = {"sides": (fr.Dataset(table[:60], "y"), fr.Dataset(table[60:], "y"))}
    found = Study(data, {"forest": forest()}).run()
    assert set(found.numbers["split"].to_pylist()) == {"given"}
    assert found.numbers["n_test"][0].as_py() == 30


@pytest.mark.parametrize("n_labels", [1, 7])
def test_each_label_has_its_share_in_each_part(n_labels: int) -> None:
    labels = np.random.default_rng(1).random((400, n_labels)) < np.linspace(0.03, 0.5, n_labels)
    for shares in ([2 / 3, 1 / 3], [0.1] * 10):
        part = by_labels(labels, shares, (0,))
        counts = np.stack([labels[part == number].sum(axis=0) for number in range(len(shares))])
        wanted = np.outer(shares, labels.sum(axis=0))
        assert np.abs(counts - wanted).max() <= 3
        np.testing.assert_allclose(np.bincount(part), 400 * np.array(shares), atol=8)


def test_classes_and_groups_are_kept_together() -> None:
    groups = SIDES | {"who": np.arange(90) // 6}
    for splits in (Repeated(n=4), CrossValidation(5)):
        dataset = fr.Dataset(groups, "y", groups="who")
        rows = read_rows(dataset.source(), dataset.roles())
        for _, train, test in splits.of(rows, 0):
            assert not set(groups["who"][train]) & set(groups["who"][test])
    dataset = fr.Dataset(SIDES, "y")
    rows = read_rows(dataset.source(), dataset.roles())
    for _, train, _ in Repeated(0.6, 5).of(rows, 0):
        shares = [np.mean(SIDES["y"][part] == "left") for part in (train, np.arange(90))]
        assert abs(shares[0] - shares[1]) < 0.02


def results(values: dict[str, list[float]], n_test: int = 30) -> Results:
    rows = [
        {"data": "d", "method": method, "split": str(split), "labelled": None, "measure": "accuracy"}
        | {"value": value, "ranking_seconds": 1.0, "n_train": 60, "n_test": n_test}
        for method, column in values.items()
        for split, value in enumerate(column)
    ]
    return Results(pa.Table.from_pylist(rows))


def test_paired_t_tests() -> None:
    a, b = [0.9, 0.8, 0.85, 0.7], [0.8, 0.75, 0.8, 0.72]
    found = results({"a": a, "b": b})
    plain = stats.ttest_rel(a, b)
    np.testing.assert_allclose(found.paired_t("a", "b", "d", corrected=False)[1:], plain, rtol=1e-12)
    mean, t, p = found.paired_t("a", "b", "d")
    # Nadeau and Bengio 2003: 1/n becomes 1/n + n_test/n_train.
    assert t == pytest.approx(plain.statistic * np.sqrt(0.25 / (0.25 + 0.5)), rel=1e-12)
    assert (mean, p) == (pytest.approx(0.045), pytest.approx(2 * stats.t.sf(t, 3)))
    assert found.paired_t("a", "a", "d") == (0.0, 0.0, 1.0)


def test_tables_mark_the_best(tmp_path: Path) -> None:
    found = results({"a_1": [0.5, 0.75], "b": [0.5, 0.5]})
    assert "| d | **0.625** | 0.500 |" in found.to_text()
    assert "d & \\textbf{0.625} & 0.500 \\\\" in found.to_text("latex")
    assert "a\\_1" in found.to_text("latex")
    for suffix in (".md", ".tex", ".csv", ".html", ".arrow"):
        found.save(tmp_path / f"r{suffix}")
    assert "<b>0.625</b>" in (tmp_path / "r.html").read_text()
    with pytest.raises(fr.SettingError, match="measure: no 'rrmse' here; there are accuracy"):
        found.table("rrmse")


PLAN = """
measure = "accuracy"
[splits]
kind = "cross-validation"
folds = 2
[judge]
n_neighbors = 5
[data.iris]
path = "iris.arff"
target = "class"
[data.german]
path = "german.arff"
target_last = 1
[rankers.forest]
n_estimators = 5
[rankers.gain]
ranker = "information_gain"
"""


def test_a_plan_in_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN)
    asked = ["study", str(plan), "--data", str(DATA), "--output", str(tmp_path / "out")]
    assert main(asked) == 0
    printed = capsys.readouterr().out
    assert "| data | unweighted | forest | gain |" in printed
    assert "3 methods on 2 data sets, higher is better" in printed
    assert {path.suffix for path in (tmp_path / "out").iterdir() if path.is_file()} == {
        *(".html", ".md", ".tex", ".csv", ".arrow", ".json")
    }
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}
    assert main(asked) == 0
    assert before == {path: path.stat().st_mtime_ns for path in (tmp_path / "out" / "cells").iterdir()}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('path = "iris.arff"', 'path = "none.arff"', "data.iris: there is no such file in"),
        ('path = "iris.arff"', "path = 3", "data.iris.path: name the file"),
        ('target = "class"', 'targets = "class"', "data.iris.targets: no such key; there are drop"),
        ("folds = 2", "folds = 1", "splits: folds: 1 must be 2 or more"),
        ('kind = "cross-validation"', 'kind = "none"', "splits.kind: 'none' is not one of repeated"),
        ("n_estimators = 5", "n_trees = 5", "rankers.forest.n_trees: no such key"),
        (
            'ranker = "information_gain"',
            'ranker = "gain"',
            "rankers.gain.ranker: 'gain' is not one of forest",
        ),
        ('measure = "accuracy"', "measure = [", "plan.toml: "),
        ('measure = "accuracy"', "measures = 1", "measures: no such key"),
    ],
)
def test_what_is_wrong_with_a_plan(tmp_path: Path, old: str, new: str, message: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace(old, new))
    with pytest.raises(fr.FerrankError) as caught:
        read_plan(plan, data=DATA)
    assert message in str(caught.value)


def test_the_plan_of_a_paper_uses_the_data_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "mtr").mkdir()
    for name in ("slump", "enb"):
        (tmp_path / "mtr" / f"{name}.arff").write_bytes((DATA / f"{name}.arff").read_bytes())
    plan = read_plan("mtr-ranking", data=tmp_path)
    assert (set(plan.study.data), plan.measure, len(plan.missing)) == ({"slump", "enb"}, "rrmse", 8)
    with pytest.raises(fr.ResourceError, match="no such file, and no plan of ferrank: mtr-ranking"):
        read_plan("mrt-ranking")
