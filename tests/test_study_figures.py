"""Figures of studies: what is wrong with them is found before the cells, and what they show."""

import json
import re
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import ferrank as fr
from ferrank.cli import main
from ferrank.evaluate import ErrorCurves, KeptImportances, Results, Study, WeightedNeighbors, read_plan
from ferrank.evaluate.plots import plot_comparison
from ferrank.evaluate.study.figure_checks import check_measures
from ferrank.evaluate.study.figures import FIGURES, read_figure

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
SIDES = {"a": X[:, 0], "b": X[:, 1], "y": np.where(X[:, 0] > 0, "left", "right")}
LINE = {"a": X[:, 0], "b": X[:, 1], "y": X[:, 0]}


def study(**settings: Any) -> Study:
    data = settings.pop("data", {name: fr.Dataset(SIDES, "y") for name in ("one", "two")})
    rankers = {
        "forest": fr.ForestRanker(n_estimators=3, scores=("genie3", "symbolic"), decay=(0.25, 0.5)),
        "relief": fr.ReliefRanker(),
    }
    judges = {"near": WeightedNeighbors(3), "kept": KeptImportances(), "curves": ErrorCurves()}
    return Study(data, rankers, **{"judge": judges, "labelled": [10, 20], "n_trees": [2, 3]} | settings)


def results(measures: dict[str, Any], methods: str = "abc", sets: int = 8, **also: Any) -> Results:
    """Results of methods of which the first is the best; measures are given with their places."""
    rows = [
        {"data": f"d{data}", "method": method, "split": str(split), "measure": measure, "at": at}
        | {"value": 0.9 - 0.1 * number + data / 100, "ranking_seconds": 1.0, "n_train": 9, "n_test": 3}
        | also
        for measure, places in measures.items()
        for data in range(sets)
        for number, method in enumerate(methods)
        for split in range(2)
        for at in places
    ]
    return Results(pa.Table.from_pylist(rows))


def made(found: Results, folder: Path, kind: str, **settings: Any) -> list[Path]:
    return read_figure({"kind": kind, **settings}, folder, "figures.one").make(found, folder, "one")


def test_the_measure_of_the_plan_is_that_of_figures_without_their_own(tmp_path: Path) -> None:
    found = results({"accuracy": [None], "error_rate": [None]}, labelled=50)
    for kind, settings, shown in (
        ("curve", {}, None),
        ("delta", {"pairs": {"a": "b"}}, "curves of error rate over"),
        ("areas", {}, "curves of error rate over"),
        ("significant", {}, "error rate: number of 8"),
        ("table", {}, "error rate"),
    ):
        told: dict[str, Any] = {"kind": kind, **settings}
        figure: Any = read_figure(told, tmp_path, "plan", measure="error_rate")
        assert figure.measure == "error_rate"
        text = figure.make(found, tmp_path, kind)[0].read_text()
        assert shown is None or shown in text
        own: Any = read_figure(told | {"measure": "accuracy"}, tmp_path, "plan", measure="error_rate")
        assert own.measure == "accuracy"
    timeless: Any = read_figure({"kind": "areas"}, tmp_path, "plan", measure="seconds")
    assert timeless.measure is None
    best: Any = read_figure(
        {"kind": "best", "groups": {"all": ["a", "b"]}}, tmp_path, "plan", measure="error_rate"
    )
    assert best.measure is None


def test_figures_of_all_measures_leave_out_importances_and_curves(tmp_path: Path) -> None:
    found = results({"accuracy": [None], "importance": [1, 2, 3], "forward_error": [1, 2]})
    found = Results(
        found.numbers.filter(
            pa.compute.or_(
                pa.compute.not_equal(found.numbers["measure"], "importance"),
                pa.compute.not_equal(found.numbers["method"], "c"),
            )
        )
    )
    _, numbers = made(found, tmp_path, "radar")
    assert numbers.read_text().splitlines() == ["measure,a,b,c", "accuracy,1.0,2.0,3.0"]
    for kind, settings in (("best", {"groups": {"all": ["a", "b", "c"]}}), ("against", {"control": "c"})):
        text = made(found, tmp_path, kind, **settings)[0].read_text()
        assert "| accuracy |" in text
        assert "importance" not in text
        assert "features" not in text
        named = made(found, tmp_path, kind, measures=["forward_error"], **settings)[0].read_text()
        assert "| error of the best features |" in named
    with pytest.raises(fr.SettingError, match="measures: name some of forward_error"):
        made(results({"forward_error": [1, 2]}), tmp_path, "radar")


def test_pixels_are_those_of_the_only_data_set_and_of_all_methods(tmp_path: Path) -> None:
    one = results({"importance": range(1, 7)}, sets=1)
    [path] = made(one, tmp_path, "pixels", shape=[2, 3])
    assert all(f"<!-- {method} -->" in path.read_text() for method in "abc")
    two = results({"importance": range(1, 7)}, sets=2)
    with pytest.raises(fr.SettingError, match="data: pixels are those of one data set; name one of d0, d1"):
        made(two, tmp_path, "pixels", shape=[2, 3])
    with pytest.raises(fr.SettingError, match=r"figures.one.data: 2 are named; pixels are those of one"):
        made(two, tmp_path, "pixels", shape=[2, 3], data=["d0", "d1"])
    for settings, message in (
        ({"data": ["d2"]}, "data: no 'd2' here; there are d0, d1"),
        ({"data": ["d1"], "methods": ["x"]}, "methods: no 'x' here; there are a, b, c"),
    ):
        with pytest.raises(fr.SettingError, match=message):
            made(two, tmp_path, "pixels", shape=[2, 3], **settings)
    with pytest.raises(fr.SettingError, match="judges: none kept the importances"):
        made(results({"accuracy": [None]}), tmp_path, "pixels")


PUBLISHED: dict[str, Any] = {
    "kind": "published",
    "path": "published.csv",
    "data": {"d0": {"dataset": "D"}},
    "methods": {"a": {"score": "A"}},
    "measures": {"accuracy": {}},
}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"data": {"d0": {"datset": "D"}}}, "data.d0: .*published.csv has no column 'datset'; did you mean"),
        ({"methods": {"a": {"who": "A"}}}, "methods.a: .*published.csv has no column 'who'; there are"),
        ({"measures": {"accuracy": {"who": "A"}}}, "measures.accuracy: .* has no column 'who'; there are"),
        ({"measures": {"acuracy": {}}}, "measures: no 'acuracy' here; did you mean accuracy"),
        ({"value": "values"}, "value: .*published.csv has no column 'values'; did you mean value"),
        ({"n_trees": [10]}, "trees: .*published.csv has no column 'n_trees'; there are"),
        ({"data": {"d0": "D"}}, "data: {'d0': 'D'} is not a table of tables of texts"),
        ({"path": 3}, "path: 3 is not a text"),
        ({"path": None}, "path: a figure of the kind published needs it; add path = "),
        ({"measures": None}, "measures: a figure of the kind published needs it"),
    ],
)
def test_what_is_wrong_with_published_numbers(changed: dict[str, Any], message: str, tmp_path: Path) -> None:
    (tmp_path / "published.csv").write_text("dataset,score,value\nD,A,0.75\nE,A,high\n")
    told = {key: value for key, value in (PUBLISHED | changed).items() if value is not None}
    with pytest.raises(fr.SettingError, match=rf"^figures\.one\.{message}"):
        read_figure(told, tmp_path, "figures.one")
    figure = read_figure(PUBLISHED | {"data": {"d0": {"dataset": "E"}}}, tmp_path, "figures.one")
    with pytest.raises(fr.SettingError, match=r"value: 'high' in the column value of .* is no number"):
        figure.make(results({"accuracy": [None]}), tmp_path, "one")


def test_numbers_in_a_heat_map_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Any] = []
    monkeypatch.setattr("ferrank.ranking.plot.finish", lambda figure, path: figures.append(figure))
    made(results({"accuracy": [None]}), tmp_path, "heat", pattern="{row}", rows=list("abc"), columns=[1])
    axes = figures[0].axes[0]
    assert [(text.get_text(), text.get_color()) for text in axes.texts] == [
        ("1.0", "black"),  # yellow
        ("2.0", "white"),
        ("3.0", "white"),  # purple
    ]
    assert figures[0].axes[1].get_ylabel() == "average rank, accuracy"


def test_ranks_run_over_all_that_there_can_be_and_say_of_what(tmp_path: Path) -> None:
    found = results({"accuracy": [None]})
    figure = plot_comparison(found.compare(), None, "accuracy")
    axes = figure.axes[0]
    assert axes.get_xticks().tolist() == [1, 2, 3]
    assert axes.spines["top"].get_bounds() == (1, 3)
    picture, text = made(found, tmp_path, "ranks")
    assert "<!-- accuracy -->" in picture.read_text()
    assert text.read_text().startswith("accuracy\n\n3 methods on 8 data sets")


def test_a_radar_says_which_way_is_better(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Any] = []
    monkeypatch.setattr("ferrank.ranking.plot.finish", lambda figure, path: figures.append(figure))
    names = ["accuracy", "macro_f1", "error_rate", "unweighted_pooled_auprc", "hamming_loss"]
    made(results({name: [None] for name in names}), tmp_path, "radar")
    [figure] = figures
    assert figure.get_suptitle() == "Average ranks over data sets: the nearer to the centre, the better"
    figure.draw_without_rendering()
    [axes] = figure.axes
    center, edge = axes.transData.transform([(0, 0.8), (0, axes.get_ylim()[1])])
    radius = np.hypot(*(edge - center))
    for text in axes.texts:
        box = text.get_window_extent()
        nearest = np.clip(center, box.min, box.max)
        assert np.hypot(*(nearest - center)) > radius
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1


def test_a_group_of_one_method_is_its_best(tmp_path: Path) -> None:
    found = results({"accuracy": [None]})
    [path] = made(found, tmp_path, "best", groups={"all": ["a", "b", "c"], "own": ["b"]})
    text = path.read_text()
    assert "| accuracy | a\\* (1.00, 2.00, 3.00) | b (1.00) |" in text
    assert "in 1 of 1 tests" in text
    [path] = made(found, tmp_path, "best", groups={"own": ["b"]})
    assert "in 0 of 0 tests" in path.read_text()
    with pytest.raises(fr.SettingError, match="methods: no 'x' here"):
        made(found, tmp_path, "best", groups={"own": ["x"]})


def test_the_pattern_of_a_heat_map_is_named(tmp_path: Path) -> None:
    values = {"rows": ["a"], "columns": ["b", "c"]}
    with pytest.raises(fr.SettingError, match=r"^pattern: '{row}, {column}' names methods: no 'a, b' here"):
        made(results({"accuracy": [None]}), tmp_path, "heat", **values)


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ({"kind": "best"}, "groups: there are none; name lists of methods"),
        ({"kind": "best", "groups": {"x": []}}, "groups.x: there are no methods"),
        ({"kind": "best", "groups": {"x": ["forest"]}}, "groups.x: no method 'forest' in this study; did"),
        ({"kind": "best", "groups": ["relief"]}, r"groups: \['relief'\] is not a table of lists of methods"),
        ({"kind": "meta", "groups": {"x": ["relif"]}}, "groups.x: no method 'relif' in this study; did you"),
        ({"kind": "meta", "describe": ["depth"]}, "describe: no 'depth' here; there are rows"),
        ({"kind": "heat"}, "rows: there are none; name the values"),
        ({"kind": "heat", "rows": [1, 2], "columns": [1]}, "pattern: no method '1, 1' in this study"),
        (
            {"kind": "heat", "rows": [1, 2], "columns": [1], "pattern": "{x}"},
            "pattern: '{x}' does not name another method for each row and column; use {row} and {column}",
        ),
        (
            {"kind": "heat", "rows": [1], "columns": [1, 2], "pattern": "{row"},
            "pattern: '{row': expected '}'",
        ),
        ({"kind": "delta"}, "pairs: there are none"),
        ({"kind": "delta", "pairs": {"relief": "rlief"}}, "pairs: no method 'rlief' in this study; did you"),
        ({"kind": "table", "measure": "acuracy"}, "measure: no 'acuracy' here; did you mean accuracy?"),
        ({"kind": "radar", "measures": ["acuracy"]}, "measures: no 'acuracy' here; did you mean accuracy?"),
        ({"kind": "radar", "measure": "accuracy"}, "measure: no such key; did you mean measures"),
        ({"kind": "curve", "measure": "seconds"}, "measure: seconds is no curve"),
        ({"kind": "curve", "x": "trees"}, "x: 'trees' is not one of n_trees, labelled, at"),
        ({"kind": "ranks", "by": "x"}, "by: 'x' is not one of method, n_trees"),
        ({"kind": "ranks", "by": "n_trees"}, "methods: 0 are named; by = 'n_trees' ranks those of one"),
        ({"kind": "ranks", "control": "releif"}, "control: no method 'releif' in this study; did you mean"),
        ({"kind": "ranks", "data": ["one"]}, "data: methods are compared on at least 2 data sets"),
        ({"kind": "table", "methods": ["forest:mdi"]}, "methods: no method 'forest:mdi' in this study"),
        ({"kind": "table", "methods": "relief"}, "methods: 'relief' is not a list of names"),
        ({"kind": "table", "data": ["on"]}, "data: no data set 'on' in this study; did you mean one?"),
        ({"kind": "table", "judge": "neer"}, "judge: no judge 'neer' in this study; did you mean near?"),
        ({"kind": "table", "labelled": 30}, "labelled: 30 is not in the plan; there are 10, 20"),
        ({"kind": "table", "n_trees": 5}, "n_trees: 5 is not in the plan; there are 2, 3"),
        ({"kind": "table", "n_trees": {"relief": 2, "x": 3}}, "n_trees: no method 'x' in this study"),
        ({"kind": "pixels", "shape": [8]}, r"shape: \[8\] is not two whole numbers of at least 1"),
    ],
)
def test_what_is_wrong_with_figures_is_found_before_the_cells(
    told: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(fr.SettingError, match=rf"^plan: figures\.one\.{message}"):
        read_figure(told, tmp_path, "plan: figures.one", study=study())


def test_what_figures_need_of_a_study(tmp_path: Path) -> None:
    plain = study(judge=WeightedNeighbors(), labelled=None, n_trees=())
    for told, message in (
        ({"kind": "areas"}, "the plan has no numbers of labelled rows"),
        ({"kind": "curve", "x": "labelled"}, "the plan has no numbers of labelled rows"),
        ({"kind": "saturation"}, "the plan has fewer than 2 numbers of trees"),
        ({"kind": "ranks", "by": "n_trees", "methods": ["relief"]}, "the plan has fewer than 2 numbers"),
        ({"kind": "stability"}, "no judge keeps the importances; add one of the kind importances"),
        ({"kind": "pixels"}, "no judge keeps the importances; add one of the kind importances"),
    ):
        with pytest.raises(fr.SettingError, match=rf"^figures\.one: {message}"):
            read_figure(told, tmp_path, "figures.one", study=plain)
        read_figure(told, tmp_path, "figures.one", study=study())
    left_out = {"kind": "ranks", "data": ["one", "three"]}
    read_figure(left_out, tmp_path, "figures.one", study=plain, missing=["three"])
    with pytest.raises(fr.SettingError, match="data: no data set 'three' in this study"):
        read_figure(left_out, tmp_path, "figures.one", study=plain)


def test_names_of_methods_that_a_study_may_have(tmp_path: Path) -> None:
    methods = ["unweighted", "relief", "forest:genie3", "forest:symbolic_decay0.25"]
    read_figure({"kind": "table", "methods": methods}, tmp_path, "figures.one", study=study())
    times = {"kind": "ranks", "measure": "seconds", "methods": ["forest", "relief"]}
    read_figure(times, tmp_path, "figures.one", study=study())


def test_measures_that_the_results_will_not_have(tmp_path: Path) -> None:
    there = study().measures() or []
    for told, message in (
        ({"kind": "table", "measure": "rrmse"}, "figures.one.measure: no 'rrmse' here; there are error_rate"),
        ({"kind": "radar", "measures": ["rrmse"]}, "figures.one.measures: no 'rrmse' here"),
    ):
        figures = {"one": read_figure(told, tmp_path, "plan")}
        with pytest.raises(fr.SettingError, match=f"^plan: {message}"):
            check_measures(figures, there, "plan")
    both = Study({"sides": fr.Dataset(SIDES, "y"), "line": fr.Dataset(LINE, "y")}, {"relief": "relief"})
    with pytest.raises(fr.SettingError, match=r"figures.one.measure: name one of rrmse, rmse"):
        check_measures(
            {"one": read_figure({"kind": "table"}, tmp_path, "plan")}, both.measures() or [], "plan"
        )
    curves = study(judge=ErrorCurves()).measures() or []
    with pytest.raises(fr.SettingError, match=r"figures.one.measures: name some of forward_error"):
        check_measures({"one": read_figure({"kind": "radar"}, tmp_path, "plan")}, curves, "plan")
    check_measures({"one": read_figure({"kind": "stability"}, tmp_path, "plan")}, there, "plan")


def test_the_page_of_studies_names_all_settings_of_figures() -> None:
    page = (Path(__file__).parent.parent / "docs/studies/index.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", page.partition("## Figures")[2], re.MULTILINE))
    shared = {"measure", "methods", "data", "judge", "labelled", "n_trees"}
    for kind, figure in FIGURES.items():
        keys = set(signature(figure).parameters) - set(figure.ignored)
        named = set(re.findall(r"`(\w+)`", rows[kind]))
        assert keys - shared <= named, kind
        assert set(figure.ignored) <= named, kind


PLAN = """
measure = "error_rate"
splits = { n = 1 }
[data.iris]
path = "iris.arff"
target = "class"
[data.german]
path = "german.arff"
target_last = 1
[rankers.relief]
ranker = "relief"
[figures.first]
kind = "significant"
[figures.second]
kind = "table"
"""


def shell(folder: Path, plan: str, *options: str) -> int:
    (folder / "plan.toml").write_text(plan)
    data = str(Path(__file__).parent / "data")
    return main(["study", str(folder / "plan.toml"), "--data", data, "-o", str(folder / "out"), *options])


@pytest.mark.parametrize(
    "name",
    [
        "../fig",
        "/tmp/fig",
        "cells/../../fig",
        "a/b",
        "a\\b",
        "a:b",
        "a\x00b",
        "a\n",
        "",
        ".",
        "..",
        ".a",
        "-a",
        "x" * 101,
        "results",
        "Results",
        "results-accuracy",
        "study",
        "cells",
    ],
)
def test_files_of_figures_stay_in_the_folder_and_apart_from_the_study_s(tmp_path: Path, name: str) -> None:
    with pytest.raises(fr.SettingError, match=r"plan.toml: figures\..*: .*files.* have (its|this) name; use"):
        _plan_with_figure(tmp_path, name)


@pytest.mark.parametrize("name", ["figure-3a", "Tabelle 1, größer", "2_a", "resultsof"])
def test_names_that_figures_may_have(tmp_path: Path, name: str) -> None:
    assert list(_plan_with_figure(tmp_path, name).figures) == [name]


def _plan_with_figure(folder: Path, name: str) -> Any:
    plan = folder / "plan.toml"
    told = "[data.a]\nsynthetic = 'single'\n[rankers.relief]\nranker = 'relief'\n"
    plan.write_text(f"{told}[figures.{json.dumps(name)}]\nkind = 'table'\n", encoding="utf-8")
    return read_plan(plan)


def test_the_measure_in_the_shell_is_that_of_figures(tmp_path: Path) -> None:
    for options, title in (([], "error rate"), (["--measure", "macro_f1"], "macro F1")):
        shell(tmp_path, PLAN, *options)
        assert (tmp_path / "out/second.md").read_text().startswith(title)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        (
            "methods = ['relif']",
            "figures.second.methods: no method 'relif' in this study; did you mean relief?",
        ),
        ("data = ['irs']", "figures.second.data: no data set 'irs' in this study; did you mean iris?"),
        ("measure = 'rrmse'", "figures.second.measure: no 'rrmse' here; there are error_rate"),
    ],
)
def test_names_in_figures_are_looked_at_before_the_cells(
    setting: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Study, "run", lambda *_, **__: pytest.fail("cells are computed"))
    assert shell(tmp_path, PLAN + setting) == 2
    assert message in capsys.readouterr().err


def test_what_is_wrong_with_one_figure_takes_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: Any) -> None:
        raise ValueError("not enough values")

    monkeypatch.setattr(FIGURES["significant"], "make", fails)
    assert shell(tmp_path, PLAN) == 2
    shown = capsys.readouterr()
    assert "| iris |" in shown.out
    assert "figures.first: ValueError: not enough values" in shown.err
    assert (tmp_path / "out/second.md").exists()
