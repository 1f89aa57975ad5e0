"""Studies: all cells once, resumed after a stop, in parallel, from a plan, with tables and tests."""

import dataclasses
import os
import shutil
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest
from pyarrow.csv import write_csv
from scipy import stats
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

import ferrank as fr
from ferrank.cli import main
from ferrank.evaluate import (
    CrossValidation,
    ErrorCurves,
    KeptImportances,
    NoisyTruth,
    Repeated,
    Results,
    Study,
    Truth,
    WeightedNeighbors,
    evaluate,
    read_plan,
    synthesize,
)
from ferrank.evaluate.rows import read_rows
from ferrank.evaluate.study import PLANS
from ferrank.evaluate.study.figures import read_figure
from ferrank.evaluate.study.splits import by_labels, hidden_rows
from ferrank.evaluate.study.study import keep_figures

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


def test_changed_data_are_refused_by_name(tmp_path: Path) -> None:
    file, kept = tmp_path / "rows.csv", tmp_path / "kept"

    def run(table: pa.Table, **roles: Any) -> Results:
        write_csv(table, file)
        data = {"sides": fr.Dataset(str(file), "y", **roles), "line": fr.Dataset(LINE, "y")}
        return Study(data, {"forest": forest()}, splits=Repeated(n=2), folder=kept).run()

    table = pa.table(SIDES)
    first = run(table)
    assert run(table).numbers.equals(first.numbers)
    for other in (table.slice(0, 60), table.set_column(0, "a", table["b"])):
        with pytest.raises(fr.SettingError, match=r"data: sides: other rows or roles than of the results in"):
            run(other)
    with pytest.raises(fr.SettingError, match="data: sides: other rows or roles"):
        run(table, drop=["b"])
    assert run(table).numbers.equals(first.numbers)
    more = {"line": fr.Dataset(pa.concat_tables([pa.table(LINE).slice(0, 7), pa.table(LINE).slice(7)]), "y")}
    rankers = {"forest": forest(), "relief": fr.ReliefRanker()}
    assert Study(more, rankers, splits=Repeated(n=2), folder=kept).run().methods[-1] == "relief"
    with pytest.raises(fr.SettingError, match="data: line: other rows"):
        Study({"line": fr.Dataset(LINE, "y", drop=["b"])}, rankers, splits=Repeated(n=2), folder=kept).run()


def test_processes_give_the_same_numbers(tmp_path: Path) -> None:
    one = study().run().numbers.drop_columns(["ranking_seconds"])
    two = study(tmp_path).run(n_jobs=2).numbers.drop_columns(["ranking_seconds"])
    assert one.equals(two)


def test_a_damaged_cell_is_named(tmp_path: Path) -> None:
    study(tmp_path).run()
    cell = next((tmp_path / "cells").iterdir())
    cell.write_bytes(b"nothing")
    with pytest.raises(fr.DataError, match=r"delete it, and its cell is done anew"):
        study(tmp_path).run()
    cell.unlink()
    study(tmp_path).run()


def _changed(name: str, value: Any, kind: pa.DataType) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        table = pyarrow.feather.read_table(file)
        place = table.schema.get_field_index(name)
        column = pa.array([value] * table.num_rows, kind)
        pyarrow.feather.write_feather(table.set_column(place, name, column), str(file))

    return change


def _copied(name: str) -> Callable[[Path], None]:
    return lambda file: shutil.copy(file.with_name(name), file) and None


def _replaced(by: Callable[[Path], object]) -> Callable[[Path], None]:
    def change(file: Path) -> None:
        file.unlink()
        by(file)

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_replaced(os.mkfifo), "is no regular file"),
        (_replaced(lambda file: file.symlink_to("/dev/zero")), "is no regular file"),
        (_replaced(lambda file: file.symlink_to("nowhere")), "is no regular file"),
        (_replaced(Path.mkdir), "is no regular file"),
        (_changed("value", "x", pa.string()), "holds no results of a study"),
        (_copied("line.relief.1.all.arrow"), "of this cell"),
        (_copied("line.forest.0.all.arrow"), "of this cell"),
        (_copied("bent.relief.0.all.arrow"), "of this cell"),
        (_changed("labelled", 7, pa.int64()), "of this cell"),
        (
            lambda file: pyarrow.feather.write_feather(pyarrow.feather.read_table(file)[:0], str(file)),
            "of this cell",
        ),
    ],
    ids=["pipe", "device", "dangling", "folder", "text", "split", "ranker", "data", "labelled", "no rows"],
)
def test_edited_cells_are_refused(tmp_path: Path, change: Callable[[Path], None], message: str) -> None:
    numbers = study(tmp_path).run().table()
    cell = tmp_path / "cells" / "line.relief.0.all.arrow"
    change(cell)
    with pytest.raises(fr.DataError, match=f"{cell.name}: .*{message}; delete it, and its cell is done anew"):
        study(tmp_path).run()
    shutil.rmtree(cell) if cell.is_dir() else cell.unlink()
    assert study(tmp_path).run().table().equals(numbers)


def test_files_that_are_no_cells_of_the_study_are_left_alone(tmp_path: Path) -> None:
    numbers = study(tmp_path).run().table()
    (tmp_path / "cells" / "junk.arrow").write_bytes(b"x")
    assert study(tmp_path).run().table().equals(numbers)


@pytest.mark.parametrize("content", ["", "[]", "null", "[" * 100_000, '{"judge": 5}', None])
def test_an_edited_description_of_a_study_is_refused(tmp_path: Path, content: str | None) -> None:
    about = tmp_path / "study.json"
    if content is None:
        os.mkfifo(about)
    else:
        about.write_text(content)
    with pytest.raises(fr.DataError, match=r"study.json: .*; delete its folder"):
        study(tmp_path).run()


def test_cells_without_a_description_of_their_study_are_refused(tmp_path: Path) -> None:
    study(tmp_path).run()
    (tmp_path / "study.json").unlink()
    with pytest.raises(fr.DataError, match=r"study.json: no such file, .*; delete this folder"):
        study(tmp_path).run()


@pytest.mark.parametrize("name", ["", "a\0b", "a\nb", "\ud800", 5, "x" * 300, "é" * 60, " "])
@pytest.mark.parametrize(("what", "kind"), [("data", "data set"), ("rankers", "ranker")])
def test_names_of_data_sets_and_rankers_are_checked(tmp_path: Path, what: str, kind: str, name: Any) -> None:
    given: dict[str, dict[Any, Any]] = {"data": {"line": fr.Dataset(LINE, "y")}, "rankers": {"a": forest()}}
    given[what] = {name: next(iter(given[what].values()))}
    with pytest.raises(fr.SettingError, match=f"^{kind} .*: .*name.*; use a"):
        Study(**given, folder=tmp_path)


def test_long_names_are_files_up_to_a_limit(tmp_path: Path) -> None:
    name = "x" * 100
    found = Study({name: fr.Dataset(LINE, "y")}, {name: forest()}, splits=Repeated(n=1), folder=tmp_path)
    assert found.run().methods == ["unweighted", name]


def test_folders_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    for folder, message in (("a\0b", "cannot be made"), ("dangling", "is a file")):
        with pytest.raises(fr.ResourceError, match=message):
            study(tmp_path / folder).run()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Repeated(n=cast("int", 2.5)), "n: 2.5; use a whole number from 1 to 10,000"),
        (lambda: Repeated(n=cast("int", float("nan"))), "n: nan; use a whole number"),
        (lambda: Repeated(n=True), "n: True; use a whole number"),
        (lambda: Repeated(n=cast("int", "2")), "n: '2'; use a whole number"),
        (lambda: Repeated(n=10**20), "n: 100000000000000000000; use a whole number"),
        (lambda: Repeated(cast("float", "x")), "train: 'x' is no share"),
        (lambda: CrossValidation(2, cast("int", 1.5)), "repeats: 1.5; use a whole number from 1"),
        (lambda: CrossValidation(200, 200), "repeats: 200 of 200 folds are 40,000 splits"),
        (lambda: study(labelled=range(1, 1000), splits=Repeated(n=1000)), "make 3,996,000 cells; ask for"),
    ],
)
def test_numbers_of_splits_are_bounded(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(fr.SettingError, match=message):
        make()


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
    "command", [["study", "plan.toml", "--output", "out"], ["curves", "iris.arff", "--target", "class"]]
)
def test_no_processes_are_an_error_that_names_the_option(
    command: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text(PLAN.replace('path = "', f'path = "{DATA}/'))
    Path("iris.arff").symlink_to(DATA / "iris.arff")
    assert main([*command, "--jobs", "0"]) == 2
    wanted = "ferrank: error: --jobs: 0 is not a number of processes; use 1 or more, -1 for all cores\n"
    assert capsys.readouterr().err == wanted


def test_a_plan_with_label_sets_as_classes(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    inner = 'inner = "relief"\ninner_settings = { n_neighbors = 4 }\n'
    names = ["label_power_set", "pairwise_labels", "binary_relevance"]
    rankers = "".join(f'[rankers.{name}]\nranker = "{name}"\n{inner}' for name in names)
    data = '[data.emotions]\npath = "emotions.arff"\nlabels = "emotions.xml"\n'
    plan.write_text(f"{data}[splits]\nn = 1\n[judge]\nn_neighbors = 4\n{rankers}")
    rows = pa.table(fr.Dataset(DATA / "emotions.arff", labels=DATA / "emotions.xml"))
    found = read_plan(plan, data=DATA).study.run()
    values = found.table("pooled_auprc").loc["emotions"]
    assert list(values.index) == ["unweighted", *names]
    dataset = fr.Dataset(DATA / "emotions.arff", labels=DATA / "emotions.xml")
    [(_, train, test)] = Repeated(n=1).of(read_rows(dataset.source(), dataset.roles()), 0)
    labels = read_rows(dataset.source(), dataset.roles()).targets.column_names
    for name in names:
        ranker = fr.evaluate.BASELINES[name](inner=fr.ReliefRanker(n_neighbors=4))
        parts = rows.take(train), rows.take(test)
        ranking = fr.rank(parts[0], labels, task="multi-label", ranker=ranker)
        roles = {"target": labels, "task": "multi-label"}
        by_hand = evaluate(parts[0], ranking, test=parts[1], n_neighbors=4, **roles)
        assert values[name] == by_hand.measures["pooled_auprc"][1]
    plan.write_text(f"{data}{rankers}".replace('"relief"', '"laplace"'))
    message = "plan.toml: rankers.label_power_set.inner: 'laplace' is neither a ranker nor one of forest"
    with pytest.raises(fr.SettingError, match=message):
        read_plan(plan, data=DATA)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            'path = "iris.arff"',
            'path = "none.arff"',
            "none.arff: no such file; give the folder",
        ),
        ('path = "iris.arff"', "path = 3", "data.iris.path: name the file"),
        ('target = "class"', 'targets = "class"', "data.iris.targets: no such key; did you mean target?"),
        ("folds = 2", "folds = 1", "splits: folds: 1; use a whole number from 2 to 10,000"),
        ('kind = "cross-validation"', 'kind = "none"', "splits.kind: 'none' is not one of repeated"),
        ("n_estimators = 5", "n_trees = 5", "rankers.forest.n_trees: no such key"),
        (
            'ranker = "information_gain"',
            'ranker = "gain"',
            "rankers.gain.ranker: 'gain' is not one of forest",
        ),
        ('measure = "accuracy"', "measure = [", "plan.toml: "),
        ('measure = "accuracy"', "measures = 1", "measures: no such key"),
        ("n_estimators = 5", 'random_state = "x"', "plan.toml: rankers.forest.random_state: 'x' is no seed"),
        ("n_estimators = 5", 'n_estimators = "x"', "plan.toml: rankers.forest.n_estimators: 'x' is not"),
        (
            "n_estimators = 5",
            'ranker = "joint"\nn_neighbors = "x"',
            "plan.toml: rankers.forest.n_neighbors: 'x' is not",
        ),
        ('measure = "accuracy"', 'random_state = "x"', "plan.toml: random_state: 'x' is no seed"),
        ('"accuracy"', '"acuracy"', "plan.toml: measure: no 'acuracy' here; did you mean accuracy?"),
        ('"accuracy"', "3", "plan.toml: measure: no '3' here"),
        ("folds = 2", "folds = 2.5", "splits: folds: 2.5; use a whole number"),
        ("folds = 2", "folds = " + "9" * 5_000, "plan.toml: Exceeds the limit"),
        ('"cross-validation"', '["x"]', "splits.kind: '['x']' is not one of"),
        ('"information_gain"', '["forest"]', "rankers.gain.ranker: '['forest']' is not one of"),
        ("n_estimators = 5", 'preset = ["x"]', "rankers.forest.preset: '['x']' is not one of"),
        ("n_estimators = 5", "only = 5", "forest.only: 5 is not a list of data sets or tasks"),
        (
            '[splits]\nkind = "cross-validation"\nfolds = 2',
            "splits = 5",
            "splits: 5 is no table; write its settings below [splits]",
        ),
        ('measure = "accuracy"', "random_state = true", "random_state: True is no seed"),
        ('path = "iris.arff"', 'path = "iris.arff"\ntest = 5', "data.iris.test: 5 is no path"),
        ('path = "iris.arff"', f'path = "{"x" * 300}"', "File name too long; name another file"),
        ('measure = "accuracy"', "measure = " + "[" * 100_000, "nested too deep"),
        ('measure = "accuracy"', "a=" + "{a=" * 3_000 + "1" + "}" * 3_000, "nested too deep"),
        ('measure = "accuracy"', ".".join(["a"] * 50_000) + " = 1", "line 2: a key has more than 64 parts"),
        ('measure = "accuracy"', "'a b' . " * 50_000 + "a = 1", "line 2: a key has more than 64 parts"),
        ('measure = "accuracy"', "#" * (1 << 20), "is larger than 1,048,576 bytes"),
    ],
)
def test_what_is_wrong_with_a_plan(tmp_path: Path, old: str, new: str, message: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace(old, new))
    with pytest.raises(fr.FerrankError) as caught:
        read_plan(plan, data=DATA)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("option", "plan", "package", "message"),
    [
        (["--measure", "acuracy"], PLAN, "none", "--measure: no 'acuracy' here; did you mean accuracy?"),
        (
            [],
            PLAN.replace("accuracy", "rrmse"),
            "none",
            "plan.toml: measure: no 'rrmse' here; there are error",
        ),
        ([], PLAN.replace('"class"', '"klass"'), "none", "error: data.iris: "),
        ([], PLAN, "scikit_posthocs", "comparisons of several data sets need scikit-posthocs; pip install"),
    ],
)
def test_what_fails_after_the_cells_fails_before_them(
    option: list[str],
    plan: str,
    package: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setattr(Study, "run", lambda *_, **__: pytest.fail("cells are computed"))
    file = tmp_path / "plan.toml"
    file.write_text(plan)
    assert main(["study", str(file), "--data", str(DATA), "--output", str(tmp_path / "out"), *option]) > 0
    assert message in capsys.readouterr().err


def test_what_is_wrong_with_the_paths_of_a_study(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, file = tmp_path / "plan.toml", tmp_path / "file"
    plan.write_text(PLAN)
    file.write_text("")

    def said(plan: Path, output: Path) -> str:
        assert main(["study", str(plan), "--data", str(DATA), "--output", str(output)]) == 2
        return capsys.readouterr().err.strip().removeprefix("ferrank: error: ")

    assert said(tmp_path, tmp_path / "out") == f"{tmp_path}: is a folder; name the TOML file of a plan"
    for output in (file, file / "inside"):
        assert said(plan, output) == f"{file}: is a file; name a folder for the results"
    output = tmp_path / ("x" * 300)
    assert said(plan, output).endswith("name another one for the results")
    monkeypatch.setattr("os.access", lambda *_: False)
    output = tmp_path / "out"
    assert said(plan, output) == f"{output}: cannot be written to; name another folder for the results"


def test_settings_that_do_not_suit_the_rows_name_the_ranker() -> None:
    rankers = {"forest": forest(), "few": forest(max_features=0.0)}
    with pytest.raises(fr.SettingError, match=r"^rankers\.few: max_features: 0 is neither"):
        Study({"line": fr.Dataset(LINE, "y")}, rankers, splits=Repeated(n=1)).run()


def test_the_measures_of_a_study_are_those_that_its_results_have() -> None:
    for judge in (WeightedNeighbors(5), ErrorCurves(sizes=[1, 2]), KeptImportances()):
        data = {"sides": fr.Dataset(SIDES, "y"), "line": fr.Dataset(LINE, "y")}
        of_each = Study(data, {"forest": forest()}, judge=judge, splits=Repeated(n=1))
        assert set(of_each.measures() or []) == {*of_each.run().measures, "seconds"}
    own = Study({"sides": fr.Dataset(SIDES, "y")}, {"forest": forest()}, judge=lambda *_: {})
    assert own.measures() is None


def test_the_plan_of_a_paper_uses_the_data_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "mtr").mkdir()
    for name in ("slump", "enb"):
        (tmp_path / "mtr" / f"{name}.arff").write_bytes((DATA / f"{name}.arff").read_bytes())
    plan = read_plan("mtr-ranking", data=tmp_path)
    assert (set(plan.study.data), plan.measure, len(plan.missing)) == ({"slump", "enb"}, "rrmse", 8)
    with pytest.raises(fr.ResourceError, match="no such file, and no plan of ferrank: mtr-ranking"):
        read_plan("mrt-ranking")


def curve_results(
    values: dict[tuple[str, str, Any], float], column: str, measure: str = "accuracy"
) -> Results:
    rows = [
        {"data": data, "method": method, "split": "0", column: at, "measure": measure, "value": value}
        | {"ranking_seconds": 1.0, "n_train": 60, "n_test": 30}
        for (data, method, at), value in values.items()
    ]
    return Results(pa.Table.from_pylist(rows))


def test_the_first_trees_of_one_forest_are_the_ranking_of_a_smaller_one() -> None:
    data = {"line": fr.Dataset(LINE, "y")}
    several = Study(data, {"forest": forest()}, splits=Repeated(n=1), n_trees=[3, 8]).run()
    for n in (3, 8):
        alone = Study(
            data, {"forest": fr.ForestRanker(n_estimators=n)}, splits=Repeated(n=1), judge=WeightedNeighbors()
        ).run()
        assert several.table(n_trees=n)["forest"].equals(alone.table()["forest"])
    assert several.table().equals(several.table(n_trees=8))
    with pytest.raises(fr.SettingError, match=r"n_trees: no results with 5; there are \[3, 8\]"):
        several.table(n_trees=5)


def test_rows_are_ranked_once_for_all_judges(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    rank = fr.ReliefRanker._rank_source
    monkeypatch.setattr(
        fr.ReliefRanker, "_rank_source", lambda self, *told: calls.append(1) or rank(self, *told)
    )
    judges = {
        "near": WeightedNeighbors(3),
        "curves": ErrorCurves("knn", [1, 3]),
        "kept": KeptImportances(),
    }
    data = {"sides": fr.Dataset(SIDES | {"c": X[:, 2]}, "y")}
    found = Study(data, {"relief": fr.ReliefRanker()}, judge=judges, splits=Repeated(n=2)).run()
    assert len(calls) == 2
    assert found.judges == ["near", "curves", "kept"]
    curves = found.frame[found.frame["judge"] == "curves"]
    assert sorted(set(curves["at"])) == [1, 3]
    wide = curves.pivot_table("value", ["split", "at"], "measure")
    # All features are the best and the worst three.
    assert (wide.xs(3, level="at")["forward_error"] == wide.xs(3, level="at")["reverse_error"]).all()
    assert (wide.xs(1, level="at")["forward_error"] < wide.xs(1, level="at")["reverse_error"]).all()
    assert found.table("importance", judge="kept").loc["sides", "relief"] > 0
    with pytest.raises(fr.SettingError, match="judge: no 'far' here; there are near, curves, kept"):
        found.table("accuracy", judge="far")


def test_the_truth_ranks_and_judges_synthetic_data() -> None:
    data = {"single": synthesize("single", 60, n_features=20)}
    rankers = {"exact": NoisyTruth(), "random": NoisyTruth(1.0), "gain": fr.evaluate.InformationGain()}
    found = Study(data, rankers, judge=Truth(), splits=CrossValidation(3)).run()
    table = {name: found.table(name).loc["single"] for name in ("roc_area", "spearman", "truth_distance")}
    assert (table["roc_area"]["exact"], table["spearman"]["exact"]) == (1.0, pytest.approx(1.0))
    assert table["truth_distance"]["exact"] == pytest.approx(0.0)
    assert table["roc_area"]["random"] < 1 > table["spearman"]["random"]
    along = found.frame.query("measure == 'relevance' and method == 'exact' and split == '0.0'")
    assert along["value"].tolist() == sorted(data["single"].relevance, reverse=True)
    noisy = found.frame.query("measure == 'relevance' and method == 'random' and at == 1")
    assert len(noisy) == 3
    with pytest.raises(fr.SettingError, match="the truth is known of synthetic data alone"):
        Study({"sides": fr.Dataset(SIDES, "y")}, {"exact": NoisyTruth()}).run()


def test_trees_are_judged_by_their_own_predictions() -> None:
    data = {"line": fr.Dataset(LINE, "y"), "sides": fr.Dataset(SIDES, "y")}
    found = Study(data, {"tree": fr.ReliefTree()}, splits=CrossValidation(3)).run()
    assert found.table("accuracy").loc["sides", "tree"] > 0.8
    rows = read_rows(data["line"].source(), data["line"].roles())
    errors = []
    for _, train, test in CrossValidation(3).of(rows, 0):
        fit, score = pa.table(LINE).take(train), np.asarray(pa.table(LINE).take(test)["y"])
        predicted = (
            fr.ReliefTree().fit(fr.Dataset(fit, "y")).predict(fr.Dataset(pa.table(LINE).take(test), "y"))
        )
        scale = ((np.asarray(fit["y"]).mean() - score) ** 2).mean()
        errors.append(((predicted - score) ** 2).mean() / scale)
    assert found.table("relative_squared_error").loc["line", "tree"] == pytest.approx(np.mean(errors))
    assert found.table("splits_by_relief").loc["line", "tree"] == 1


def test_labelled_rows_are_counted_over_the_folds_of_the_training_rows() -> None:
    splits = [
        (f"0.{fold}", np.flatnonzero(np.arange(100) % 10 != fold), np.arange(fold, 100, 10))
        for fold in range(10)
    ]
    known = np.ones(100, dtype=bool)
    before: set[int] = set()
    for n in (12, 20, 47):
        hidden = hidden_rows(splits, known, n, 0, folds=True)
        assert hidden is not None
        kept = [
            set(train[np.delete(np.arange(90), lost)])
            for (_, train, _), lost in zip(splits, hidden, strict=True)
        ]
        # L // 9 of each fold, one more of the first L % 9 (Petković et al. 2023, §6.4).
        each, more = divmod(n, 9)
        folds = [each + (fold < more) for fold in range(10)]
        assert [len(one) for one in kept] == [sum(folds) - own for own in folds]
        assert before <= set.union(*kept)
        before = set.union(*kept)
        # A fold keeps the same rows in all training sets.
        for row in before:
            assert sum(row in one for one in kept) == 9
    assert hidden_rows(splits, known, 91, 0, folds=True) is None


def test_numbers_of_labelled_rows_that_a_set_has_not_are_left_out() -> None:
    found = Study(
        {"sides": fr.Dataset(SIDES, "y")},
        {"forest": forest()},
        judge=WeightedNeighbors(3),
        labelled=[10, 500],
        splits=CrossValidation(3),
    ).run()
    assert set(found.numbers["labelled"].to_pylist()) == {10}
    with pytest.raises(fr.SettingError, match="labelled: 'sides' has 90 rows with a target, too few"):
        Study({"sides": fr.Dataset(SIDES, "y")}, {"forest": forest()}, labelled=[500]).run()


def test_rankers_and_judges_of_some_tasks_and_splits_of_some_sets() -> None:
    data = {"line": fr.Dataset(LINE, "y"), "sides": fr.Dataset(SIDES, "y")}
    judges = {"few": WeightedNeighbors(3), "many": WeightedNeighbors(9)}
    found = Study(
        data,
        {"forest": forest(), "chance": fr.evaluate.RandomRanker()},
        judge=judges,
        splits=Repeated(n=3),
        own_splits={"line": Repeated(n=1)},
        only={"chance": ["regression"], "many": ["sides"]},
    ).run()
    frame = found.frame
    assert set(frame.query("data == 'sides'")["method"]) == {"unweighted", "forest"}
    assert set(frame.query("data == 'line'")["judge"]) == {"few"}
    assert frame.groupby("data")["split"].nunique().to_dict() == {"line": 1, "sides": 3}
    with pytest.raises(fr.SettingError, match="only: there is no ranker or judge 'none'"):
        Study(data, {"forest": forest()}, only={"none": ["line"]})


def test_methods_that_share_no_data_set_are_not_compared_with_each_other(tmp_path: Path) -> None:
    data = {name: fr.Dataset(LINE | {"y": X[:, n]}, "y") for n, name in enumerate(["a", "b", "c"])}
    rankers = {"forest": forest(), "chance": fr.evaluate.RandomRanker(), "gain": fr.UnivariateRanker()}
    only = {"gain": ["a"], "chance": ["b", "c"], "forest": ["b", "c"]}
    found = Study(data, rankers, splits=Repeated(n=2), only=only).run()
    found.save(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "<td>–</td>" in page
    assert "nan" not in page
    shared = Study(data, rankers, splits=Repeated(n=2), only=only | {"forest": ["a", "b", "c"]}).run()
    assert set(shared.compare().methods) == {"unweighted", "forest"}
    assert (shared.compare().n_data_sets, shared.compare("forest", "chance").n_data_sets) == (3, 2)


def test_names_with_points_are_different_cells(tmp_path: Path) -> None:
    data = {"a": fr.Dataset(LINE, "y"), "a.b": fr.Dataset(LINE | {"y": X[:, 2]}, "y")}
    rankers = {"b.c": fr.ReliefRanker(), "c": fr.ReliefRanker()}
    for folder in (None, tmp_path):
        found = Study(data, rankers, splits=Repeated(n=1), folder=folder).run()
        assert not found.table("rrmse").isna().to_numpy().any()
        assert found.numbers.num_rows == 2 * 3 * len(found.measures)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rankers": {"unweighted": forest()}}, "rankers: 'unweighted' is the baseline"),
        ({"rankers": {"a": fr.rank}}, "rankers: 'a' is no ranker and no model; give one, or one of forest"),
        ({"splits": 3}, "splits: 3 parts no rows; use Repeated or CrossValidation"),
        ({"labelled": 50}, "labelled: 50; use a list of numbers of rows from 1 on"),
        ({"n_trees": ["a"]}, r"n_trees: \['a'\]; use a list of numbers of trees"),
    ],
    ids=["baseline", "function", "splits", "labelled", "n_trees"],
)
def test_what_is_no_part_of_a_study(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.SettingError, match=message):
        study(**settings)


def test_baselines_go_by_name_and_more_folds_than_rows_do_not() -> None:
    data = {"line": fr.Dataset(LINE, "y")}
    found = Study(data, {"chance": "random"}, splits=Repeated(n=1)).run()
    assert found.methods == ["unweighted", "chance"]
    with pytest.raises(fr.DataError, match=r"data.line: folds: 91 of 90 rows"):
        Study(data, {"chance": "random"}, splits=CrossValidation(91)).run()
    with pytest.raises(fr.FerrankError, match="line.*split 0.*5000 neighbors"):
        Study(data, {"chance": "random"}, judge=WeightedNeighbors(5_000), splits=Repeated(n=1)).run()


def test_measures_of_ones_own() -> None:
    def judge(train: Any, rankings: Any, test: Any, roles: Any) -> Any:
        found = WeightedNeighbors()(train, rankings, test, roles)
        return dataclasses.replace(found, measures={"mine": next(iter(found.measures.values()))})

    results = study(judge=judge).run()
    assert "**" not in results.to_text()
    assert list(results.table("mine").columns) == results.methods
    with pytest.raises(fr.SettingError, match="measure: of 'mine' it is not known whether more is better"):
        results.compare(measure="mine")
    with pytest.raises(fr.SettingError, match="b: no 'nosuch' here; there are unweighted"):
        results.paired_t("forest:genie3", "nosuch", "line")
    with pytest.raises(fr.SettingError, match="how: 'tex' is not one of"):
        results.to_text("tex")  # type: ignore[arg-type]
    with pytest.raises(fr.SettingError, match="judge: returns float; return an Evaluation"):
        study(judge=lambda *given: {"mine": 1.0}).run()


def test_data_sets_of_several_tasks_have_a_table_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.toml"
    path.write_text(
        "splits = {n = 2}\n[data.iris]\npath = 'iris.arff'\ntarget = 'class'\n"
        "[data.lengths]\npath = 'iris.arff'\ntarget = 'petallength'\n[rankers.forest]\nn_estimators = 3\n"
    )
    assert main(["study", str(path), "--data", str(DATA), "-o", str(tmp_path / "out")]) == 0
    shown = capsys.readouterr().out
    assert "| iris |" in shown
    assert "| lengths |" in shown
    files = {file.name for file in (tmp_path / "out").glob("*.md")}
    assert files == {"results-accuracy.md", "results-rrmse.md"}
    path.write_text(path.read_text() + "only = ['irs']\n")
    with pytest.raises(fr.SettingError, match="forest.only: no data set or task 'irs'; did you mean iris"):
        read_plan(path, data=DATA)


def test_the_help_names_all_plans(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["study", "--help"])
    shown = capsys.readouterr().out
    assert all(plan in shown for plan in PLANS)
    with pytest.raises(fr.ResourceError, match="mtr-ranking: no folder was named; give"):
        read_plan("mtr-ranking")


def test_areas_over_labelled_rows_are_mean_heights(tmp_path: Path) -> None:
    heights = {("d", "ssl", 50): 0.5, ("d", "ssl", 100): 0.7, ("d", "ssl", 200): 0.7}
    heights |= {("d", "sl", n): 0.5 for n in (50, 100, 200)}
    found = curve_results(heights, "labelled")
    figure = read_figure({"kind": "delta", "pairs": {"ssl": "sl"}}, tmp_path, "plan")
    [path] = figure.make(found, tmp_path, "delta")
    # (0.6 · 50 + 0.7 · 100) / 150 - 0.5
    assert "| d | +0.1667 |" in path.read_text()
    [path] = read_figure({"kind": "areas"}, tmp_path, "plan").make(found, tmp_path, "areas")
    assert "| d | **0.667** | 0.500 |" in path.read_text()
    assert "| average rank | 1.00 | 2.00 |" in path.read_text()


def test_figures_of_trees_and_methods(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    values = {
        (f"d{data}", method, n): 0.5 + 0.001 * n * (method == "slow") + 0.01 * rng.random()
        for data in range(8)
        for method in ("slow", "quick", "third")
        for n in (10, 50, 250)
    }
    found = curve_results(values, "n_trees")
    made = {}
    asked: dict[str, dict[str, Any]] = {
        "saturation": {},
        "curve": {"x": "n_trees", "data": ["d0", "d1"]},
        "ranks": {"control": "third", "n_trees": {"slow": 10, "quick": 250, "third": 50}}
        | {"methods": ["slow", "quick", "third"]},
        "best": {"groups": {"all": ["slow", "quick", "third"], "two": ["slow", "quick"]}},
        "against": {"control": "third"},
        "radar": {"measures": ["accuracy"]},
        "table": {"n_trees": 10},
        "heat": {"pattern": "{row}{column}", "rows": ["slo", "quic"], "columns": ["w", "k"]},
    }
    for kind, settings in asked.items():
        figure = read_figure({"kind": kind, **settings}, tmp_path, "plan")
        if kind == "heat":
            with pytest.raises(fr.SettingError, match="methods: no 'slok' here"):
                figure.make(found, tmp_path, kind)
            continue
        made[kind] = figure.make(found, tmp_path, kind)
        assert all(path.stat().st_size > 0 for path in made[kind])
    enough = made["saturation"][0].read_text()
    assert "| slow | **250** |" in enough or "| slow | **50** |" in enough
    assert "| quick | 10 |" in enough
    assert "| accuracy | **8 : 0" in made["against"][0].read_text()
    assert "slow\\* (" in made["best"][0].read_text()


def test_a_heat_map_shows_average_ranks(tmp_path: Path) -> None:
    values = {
        (f"d{data}", f"k{k} m{m}", None): k + m / 100 for data in range(3) for k in (1, 5) for m in (10, 50)
    }
    figure = read_figure(
        {"kind": "heat", "pattern": "k{row} m{column}", "rows": [1, 5], "columns": [10, 50]}, tmp_path, "plan"
    )
    _, numbers = figure.make(curve_results(values, "n_trees"), tmp_path, "heat")
    assert numbers.read_text().splitlines() == [",10,50", "1,4.0,3.0", "5,2.0,1.0"]


def test_significant_differences_are_counted_as_in_relieff_trees(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"data": data, "method": method, "split": f"0.{fold}", "measure": "accuracy"}
        | {"value": 0.5 + gain * (method == "a") + 0.01 * rng.random(), "ranking_seconds": 1.0}
        | {"n_train": 90, "n_test": 10}
        for data, gain in (("clear", 0.1), ("same", 0.0))
        for method in ("a", "b")
        for fold in range(10)
    ]
    found = Results(pa.Table.from_pylist(rows))
    [path] = read_figure({"kind": "significant", "published": "a over b 7"}, tmp_path, "plan").make(
        found, tmp_path, "wins"
    )
    text = path.read_text()
    assert "| a |  | 1 (1) |" in text
    assert "a over b: clear." in text
    assert "Published: a over b 7." in text


def test_pictures_of_pixels_and_stability(tmp_path: Path) -> None:
    rows = [
        {"data": "d", "method": "m", "split": str(split), "at": at, "measure": "importance"}
        | {"value": at + 0.1 * split, "ranking_seconds": 1.0, "n_train": 9, "n_test": 1}
        for split in range(3)
        for at in range(1, 7)
    ]
    found = Results(pa.Table.from_pylist(rows))
    settings = {"data": ["d"], "methods": ["m"]}
    [path] = read_figure({"kind": "pixels", "shape": [2, 3], **settings}, tmp_path, "plan").make(
        found, tmp_path, "pixels"
    )
    assert path.stat().st_size > 0
    with pytest.raises(fr.SettingError, match=r"shape: \[8, 8\] does not fit the 6 features of 'd'"):
        read_figure({"kind": "pixels", **settings}, tmp_path, "plan").make(found, tmp_path, "pixels")
    [path] = read_figure({"kind": "stability", **settings}, tmp_path, "plan").make(found, tmp_path, "stable")
    assert "| d | 0.000 |" in path.read_text()


def test_published_numbers_stand_beside_those_found(tmp_path: Path) -> None:
    (tmp_path / "published.csv").write_text("dataset,score,n_trees,value\nD,A,10,0.75\nD,A,50,0.5\n")
    values = {("d", "a", 10): 0.5, ("d", "a", 50): 0.5, ("d", "unweighted", None): 0.25}
    told = {
        "kind": "published",
        "data": {"d": {"dataset": "D"}},
        "methods": {"a": {"score": "A"}},
        "measures": {"accuracy": {}},
        "n_trees": [10, 50],
    }
    figure = read_figure(told | {"path": "published.csv"}, tmp_path, "plan")
    path, _ = figure.make(curve_results(values, "n_trees"), tmp_path, "beside")
    assert "| accuracy | a | 2 | -0.1250 | 0.1250 | 2 of 2 |" in path.read_text()
    [path] = read_figure(told | {"path": "none.csv"}, tmp_path, "plan").make(
        curve_results(values, "n_trees"), tmp_path, "beside"
    )
    assert "there is no such file" in path.read_text()


def scores_of(ranker: Any) -> list[str]:
    """Return the names of the scores that a ranker of a plan gives."""
    if isinstance(ranker, fr.ForestRanker) and not isinstance(ranker.decay, float):
        decays = [f"symbolic_decay{decay:g}" for decay in ranker.decay]
        return [name for score in ranker.scores for name in (decays if score == "symbolic" else [score])]
    if isinstance(ranker, fr.ReliefRanker) and isinstance(ranker.n_iterations, list):
        return [f"relief_m{100 * m:g}%_k{k}" for m in ranker.n_iterations for k in ranker.n_neighbors]
    return list(getattr(ranker, "scores", ("one",)))


@pytest.mark.parametrize("name", PLANS)
def test_plans_that_come_with_ferrank_name_methods_that_they_have(name: str, tmp_path: Path) -> None:
    text = (Path(fr.evaluate.__file__).parent / f"study/plans/{name}.toml").read_text()
    told = tomllib.loads(text)
    for one in told["data"].values():
        paths = one.get("path", [])
        for path in [paths] if isinstance(paths, str) else paths:
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).touch()
        for key in ("test", "labels"):
            if key in one:
                (tmp_path / one[key]).touch()
    plan = read_plan(name, data=tmp_path)
    assert not plan.missing
    known = {"unweighted"}
    for ranker, one in plan.study.rankers.items():
        scores = scores_of(one)
        known |= {f"{ranker}:{score}" for score in scores} if len(scores) > 1 else {ranker}
    for figure in plan.figures.values():
        methods = getattr(figure, "methods", ())
        pairs, groups = getattr(figure, "pairs", {}), getattr(figure, "groups", {})
        named = {*methods, *pairs, *pairs.values(), *(one for group in groups.values() for one in group)}
        # The scores of a ranker have one time.
        is_time = getattr(figure, "measure", None) == "seconds"
        assert named <= (set(plan.study.rankers) if is_time else known)
        assert set(getattr(figure, "data", ())) <= set(plan.study.data)
        judge = getattr(figure, "judge", None)
        assert judge is None or judge in plan.study.judge


def test_times_are_compared_as_a_measure(tmp_path: Path) -> None:
    """The scores of a forest have one time; times below a millisecond are not rounded away."""
    times = {"forest:genie3": [0.0004, 3.0, 5.0], "forest:symbolic": [0.0004, 3.0, 5.0]}
    times |= {"relief": [0.0003, 1.0, 9.0], "slow:one": [2.0, 8.0, 10.0], "slow:two": [2.0, 8.0, 10.5]}
    rows = [
        {"data": f"d{data}", "method": method, "split": str(split), "measure": measure, "value": 0.5}
        | {"ranking_seconds": seconds + split / 1e5, "n_train": 60, "n_test": 30}
        for method, column in times.items()
        for data, seconds in enumerate(column)
        for split in range(2)
        for measure in ("accuracy", "macro_f1")
    ]
    rows += [one | {"method": "unweighted", "ranking_seconds": None} for one in rows[:12]]
    found = Results(pa.Table.from_pylist(rows))
    table = found.table("seconds")
    assert list(table.columns) == ["forest", "relief", "slow:one", "slow:two"]
    assert table.loc["d0", "relief"] == pytest.approx(0.000305)
    figure: Any = read_figure({"kind": "ranks", "measure": "seconds"}, tmp_path, "plan")
    for ranks in (found.compare(measure="seconds"), figure.compared(found)):
        assert ranks.methods == ["relief", "forest", "slow:one", "slow:two"]
        assert ranks.mean_rank == pytest.approx([4 / 3, 5 / 3, 10 / 3, 11 / 3])
    picture, text = figure.make(found, tmp_path, "times")
    assert picture.stat().st_size > 0
    assert "4 methods on 3 data sets, lower is better" in text.read_text()


def meta_results(best: dict[str, str], about: list[dict[str, Any]] | None) -> Results:
    """Results in which of three methods the named one has the least error."""
    rows = [
        {"data": data, "method": method, "split": "0", "measure": "rrmse", "value": 0.4 + (method != one)}
        | {"ranking_seconds": 1.0, "n_train": 9, "n_test": 3}
        for data, one in best.items()
        for method in ("bagging", "forest", "relief")
    ]
    return Results(pa.Table.from_pylist(rows), None if about is None else pa.Table.from_pylist(about))


def test_a_tree_tells_which_group_of_methods_is_best(tmp_path: Path) -> None:
    """As Petković et al. 2020a found it: ensembles with more than 30 features and up to 8 targets."""
    about, best = [], {}
    for number in range(24):
        features, targets = (12, 25, 36, 90)[number % 4], (2, 8, 10)[number % 3]
        is_ensemble = features > 30 and targets <= 8
        best[f"d{number}"] = ("bagging" if number % 2 else "forest") if is_ensemble else "relief"
        about.append({"data": f"d{number}", "rows": 100 + number, "features": features})
        about[-1] |= {"nominal": 0.5, "targets": targets}
    best["d1"] = "forest"  # against the rule: 25 features, 8 targets
    groups = {"Ensemble": ["bagging", "forest"], "Relief": ["relief"]}
    figure = read_figure({"kind": "meta", "groups": groups, "min_samples_leaf": 3}, tmp_path, "plan")
    picture, text, numbers = figure.make(meta_results(best, about), tmp_path, "meta")
    shown = text.read_text()
    tree = ["features > 30?", "  yes: targets > 9?", "    yes: Relief (4/4)", "    no: Ensemble (8/8)"]
    assert shown.splitlines()[1:6] == [*tree, "  no: Relief (11/12)"]
    rows = np.array([[one[name] for name in ("rows", "features", "targets")] for one in about])
    is_best = np.array(["Relief" if one == "relief" else "Ensemble" for one in best.values()])
    counts = {(a, b): 0 for a in groups for b in groups}
    for train, test in KFold(10, shuffle=True, random_state=0).split(rows):
        model = DecisionTreeClassifier(max_depth=2, min_samples_leaf=3, random_state=0)
        for a, b in zip(
            is_best[test], model.fit(rows[train], is_best[train]).predict(rows[test]), strict=False
        ):
            counts[a, b] += 1
    (a, b), (c, d) = ([counts[one, other] for other in groups] for one in groups)
    assert f"Accuracy {(a + d) / 24:.1%} on 24 data sets, by 10-fold cross-validation." in shown
    assert f"| Ensemble | {a} | {b} |\n| Relief | {c} | {d} |" in shown
    assert b + c > 0
    drawn = picture.read_text()
    assert all(f"<!-- {one} -->" in drawn for one in ("features &gt; 30", "Relief (4/4)", "Y", "N"))
    lines = numbers.read_text().splitlines()
    assert lines[0] == "data,rows,features,nominal,targets,best,predicted"
    assert lines[2] == "d1,101,25,0.5,8,Ensemble,Relief"


def test_meta_trees_without_what_they_need(tmp_path: Path) -> None:
    about = [{"data": name, "rows": 9, "features": 3, "nominal": 0.1, "targets": 1} for name in "ab"]

    def made(about: Any, best: Any, **settings: Any) -> str:
        figure = read_figure({"kind": "meta", **settings}, tmp_path, "plan")
        return figure.make(meta_results(best, about), tmp_path, "meta")[1].read_text()

    both = {"a": "relief", "b": "bagging"}
    assert "bagging (1/2)\n```\n\nAccuracy 0.0% on 2 data sets, by 2-fold" in made(about, both)
    for settings, data, best, message in (
        ({}, None, both, "describe: these results do not say what the data sets are"),
        ({"describe": ["depth"]}, about, both, "describe: no 'depth' here; there are rows, features"),
        ({"folds": 1}, about, both, "folds: 1 is too small; use 2 or more"),
        ({"groups": {"all": ["none"]}}, about, both, "methods: no 'none' here"),
        ({}, about, {"a": "relief"}, "data: a tree needs 2 data sets at least, here are results of 1"),
    ):
        with pytest.raises(fr.SettingError, match=message):
            made(data, best, **settings)


def test_studies_say_what_their_data_sets_are() -> None:
    labels = {"p": X[:, 0] > 0, "q": X[:, 1] > 0}
    paths = [["x/y"] if one > 0 else ["x", "z"] for one in X[:, 0]]
    nominal = {"n": np.where(X[:, 3] > 0, "u", "v")}
    table = pa.table(SIDES)
    data = {
        "line": fr.Dataset(LINE, "y"),
        "labels": fr.Dataset({"a": X[:, 0], "b": X[:, 1], **nominal, **labels}, ["p", "q"]),
        "tree": fr.Dataset({"a": X[:, 0], **nominal, "y": paths}, "y"),
        "given": (fr.Dataset(table[:60], "y"), fr.Dataset(table[60:], "y")),
    }
    rankers = {"chance": fr.evaluate.RandomRanker(), "laplace": fr.evaluate.MultiLabelLaplace()}
    only = {"chance": ["line", "labels", "given"], "laplace": ["tree"]}
    found = Study(data, rankers, splits=Repeated(n=1), judge=WeightedNeighbors(3), only=only).run()
    assert found.data_sets is not None
    assert found.data_sets.to_pylist() == [
        {"data": "line", "rows": 90, "features": 3, "nominal": 0.0, "targets": 1},
        {"data": "labels", "rows": 90, "features": 3, "nominal": pytest.approx(1 / 3), "targets": 2},
        {"data": "tree", "rows": 90, "features": 2, "nominal": 0.5, "targets": 3},
        {"data": "given", "rows": 90, "features": 2, "nominal": 0.0, "targets": 1},
    ]


def test_columns_of_groups_and_dropped_ones_are_no_features() -> None:
    groups = [f"g{number // 6}" for number in range(90)]
    table = SIDES | {"g": groups, "id": np.arange(90.0)}
    whole = Study({"d": fr.Dataset(SIDES, "y")}, {"relief": "relief"}, splits=Repeated(n=2)).run()
    dropped = Study(
        {"d": fr.Dataset(table, "y", drop=["id", "g"])}, {"relief": "relief"}, splits=Repeated(n=2)
    ).run()
    assert whole.values("accuracy").equals(dropped.values("accuracy"))
    grouped = fr.Dataset(table, "y", groups="g", drop=["id"])
    found = Study({"d": grouped}, {"relief": "relief"}, splits=CrossValidation(5)).run()
    assert found.values("accuracy")["relief"].notna().all()


def test_errors_of_fewer_labelled_rows_have_the_unit_of_all() -> None:
    rankers = {"relief": "relief", "tree": fr.ReliefTree(selector="mse")}
    found = study(rankers=rankers, labelled=[20, 40]).run()
    line = fr.Dataset(LINE, "y")
    splits = Repeated(n=2).of(read_rows(line.source(), line.roles()), 0)
    for labelled in (20, 40):
        ratio = found.values("rmse", labelled) / found.values("rrmse", labelled)
        for name, train, _ in splits:
            np.testing.assert_allclose(ratio.loc[("line", name)], np.std(LINE["y"][train]), rtol=1e-12)


def test_special_characters_in_tables() -> None:
    row = {"data": "a & b", "split": "0", "measure": "accuracy", "value": 0.5}
    row |= {"ranking_seconds": 1.0, "n_train": 6, "n_test": 3}
    found = Results(pa.Table.from_pylist([row | {"method": name} for name in ("m10%_k1", "x|<b>")]))
    assert r"a \& b & \textbf{0.500} & \textbf{0.500} \\" in found.to_text("latex")
    assert r"data & m10\%\_k1 & x|\textless{}b\textgreater{} \\" in found.to_text("latex")
    assert r"| data | m10%_k1 | x\|&lt;b> |" in found.to_text("markdown")
    assert "<th>x|&lt;b&gt;</th>" in found.to_text("html")


def test_means_are_rounded_before_they_are_ranked_only_if_asked(tmp_path: Path) -> None:
    tiny = {"line": fr.Dataset(LINE | {"y": 1e-6 * LINE["y"]}, "y")}
    tiny |= {"bent": fr.Dataset(LINE | {"y": 1e-6 * X[:, 2] ** 2}, "y")}
    rankers = {"forest": forest(), "relief": "relief"}
    exact, rounded = (
        Study(tiny, rankers, splits=Repeated(n=2), decimals=decimals).run() for decimals in (None, 3)
    )
    assert len(set(exact.compare(measure="rmse").mean_rank)) > 1
    assert set(rounded.compare(measure="rmse").mean_rank) == {2.0}
    for results, ties in ((exact, False), (rounded, True)):
        [_, text] = read_figure({"kind": "ranks", "measure": "rmse"}, tmp_path, "f").make(
            results, tmp_path, "f"
        )
        assert text.read_text().endswith(results.compare(measure="rmse").to_text() + "\n")
        results.save(tmp_path / "r.arrow")
        assert (Results.load(tmp_path / "r.arrow").decimals == 3) is ties
    with pytest.raises(fr.SettingError, match="decimals: -1; use a whole number from 0 to 15"):
        Study(tiny, rankers, decimals=-1)


def test_names_that_may_be_scores_of_others_are_refused() -> None:
    with pytest.raises(fr.SettingError, match="'forest:genie3' may be a score of 'forest' as well"):
        study(rankers={"forest": forest(), "forest:genie3": "relief"})


def test_classes_that_are_not_known_are_spread_over_folds() -> None:
    classes = np.where(np.arange(90) % 9 == 0, None, SIDES["y"])  # type: ignore[call-overload]
    data = {"gaps": fr.Dataset(SIDES | {"y": pa.array(classes)}, "y")}
    rankers = {"relief": fr.ReliefRanker(unlabelled="ignore"), "gain": "information_gain"}
    found = Study(data, {"relief": rankers["relief"]}, splits=CrossValidation(3), labelled=[30]).run()
    assert found.values("accuracy")["relief"].notna().all()
    others = {"gain": rankers["gain"], "tree": fr.ReliefTree(selector="gini")}
    baseline = Study(data, others, splits=CrossValidation(3), labelled=[30]).run()
    assert baseline.values("accuracy")[["gain", "tree"]].notna().all(axis=None)


def test_targets_for_which_a_measure_is_not_defined_stay_in_the_tables() -> None:
    data = {"line": fr.Dataset(LINE, "y"), "flat": fr.Dataset(LINE | {"y": np.full(90, 1.5)}, "y")}
    found = Study(data, {"relief": "relief"}, splits=Repeated(n=2)).run()
    assert found.to_text().splitlines()[-1] == "| flat | – | – |"
    assert found.caption() == (
        "RRMSE, lower is better; means over 2 splits. Not defined on flat, as for a target that is constant."
    )


def test_the_most_labelled_rows_of_each_data_set_are_shown() -> None:
    small = {name: values[:45] for name, values in LINE.items()}
    data = {"line": fr.Dataset(LINE, "y"), "small": fr.Dataset(small, "y")}
    found = Study(data, {"relief": "relief"}, splits=Repeated(n=2), labelled=[20, 50]).run()
    assert list(found.table().index) == ["line", "small"]
    assert found.caption() == "RRMSE, lower is better; means over 2 splits; 20 to 50 labelled rows."


def test_a_page_shows_a_study(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, page = tmp_path / "study", tmp_path / "study.html"
    found = study(folder).run()
    files = read_figure({"kind": "ranks"}, folder, "f").make(found, folder, "ranks-of-all")
    keep_figures(folder, [*files, folder / "two.md"])
    (folder / "of another study.md").write_text("old")
    (folder / "two.md").write_text("A & b\n\n| data | a\\|b |\n| --- | ---: |\n| d | **0.5** |\n")
    assert main(["report", str(folder)]) == 0
    assert found.to_text() in capsys.readouterr().out
    assert main(["report", str(folder), "-o", str(page), "--title", "A <b> study"]) == 0
    text = page.read_text()
    assert "A &lt;b&gt; study" in text
    assert "ranks-of-all" in text
    assert "data:image/svg+xml;base64," in text
    assert found.compare().to_text().splitlines()[0] in text
    assert text.count("<h2>ranks-of-all</h2>") == 1
    assert "another" not in text
    assert "<pre>A &amp; b</pre>" in text
    assert "<th>a|b</th></tr></thead><tbody><tr><td>d</td><td><b>0.5</b></td></tr></tbody>" in text
    for wrong, message in (
        (["report", str(folder), "-o", str(tmp_path / "p.svg")], "pictures of the study are in"),
        (["report", str(folder), str(folder)], "2 were given; a study has a page of its own"),
        (["report", str(tmp_path)], "results.arrow: no such file; a study writes it when all cells are done"),
    ):
        assert main(wrong) == 2
        assert message in capsys.readouterr().err
    study(folder).run()
    assert main(["report", str(folder), "-o", str(page)]) == 0
    assert "ranks-of-all" not in page.read_text(), "figures are of the results before"
    (folder / "results.arrow").write_bytes(b"ARROW1")
    assert main(["report", str(folder)]) == 2
    assert "do the study anew" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors: 0 is no number of neighbors"),
        ({"n_neighbors": "a"}, "n_neighbors: 'a' is no number of neighbors"),
        ({"threshold": 2}, "threshold: 2 is no share of the neighbors"),
        ({"conventions": "x"}, "conventions: 'x' is not one of textbook, clus"),
    ],
)
def test_what_neighbors_cannot_judge_by(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(fr.SettingError, match=message):
        WeightedNeighbors(**settings)


def test_names_with_bars_keep_their_columns(tmp_path: Path) -> None:
    row = {"split": "0", "measure": "accuracy", "ranking_seconds": 1.0, "n_train": 6, "n_test": 3}
    values = {"a|b": 0.5, "c": 0.75}
    rows = [
        row | {"data": data, "method": name, "value": value}
        for data in "xy"
        for name, value in values.items()
    ]
    found = Results(pa.Table.from_pylist(rows))
    for kind in ("table", "against"):
        settings = (
            {"kind": kind, "measure": "accuracy"} if kind == "table" else {"kind": kind, "control": "c"}
        )
        [file] = read_figure(settings, tmp_path, "f").make(found, tmp_path, "f")
        assert r"a\|b" in file.read_text()


def test_models_stand_beside_rankings_of_named_judges() -> None:
    rankers = {"relief": "relief", "tree": fr.ReliefTree(selector="gini")}
    judges = {"five": WeightedNeighbors(5), "ten": WeightedNeighbors(10)}
    found = Study({"d": fr.Dataset(SIDES, "y")}, rankers, judge=judges, splits=Repeated(n=2)).run()
    assert list(found.table("accuracy").columns) == ["unweighted", "relief", "tree"]
    assert list(found.table("accuracy", judge="ten").columns) == ["unweighted", "relief", "tree"]
