"""Results, from values made by hand."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pytest

import ferrank
from ferrank import DataError, Ranking, ResourceError, ScoreRanking, SettingError
from ferrank.errors import UnavailableError
from ferrank.ranking.model_error import ModelError
from ferrank.ranking.stopping import Stop


def make(n_features: int = 4, scores: tuple[str, ...] = ("genie3", "permutation")) -> Ranking:
    """Importances 1, 2, 3 … under the first score, the reverse under the others."""
    up = np.arange(1.0, n_features + 1)
    down = up[::-1].copy()
    made = {}
    for number, name in enumerate(scores):
        rank = (up if number else down).astype(np.uint32)
        interval = np.column_stack([rank, np.minimum(rank + 1, n_features)]).astype(np.uint32)
        parts = None if number else np.column_stack([up / 4, 3 * up / 4])
        made[name] = ScoreRanking(down if number else up, up / 10, up / 20, rank, interval, parts)
    names = [f"feature_{number}" for number in range(n_features)]
    return Ranking("multi-target", 100, names, ["u", "v"], made, 3, {"seed": 0}, 0.5)


def test_accessors() -> None:
    ranking = make()
    assert ranking.top(2) == ["feature_3", "feature_2"]
    assert ranking.top(2, "permutation") == ["feature_0", "feature_1"]
    assert ranking.importances().tolist() == [1, 2, 3, 4]
    assert ranking.by_target().shape == (4, 2)
    with pytest.raises(SettingError, match="no 'gini' in this ranking; it has genie3, permutation"):
        ranking.top(2, "gini")
    with pytest.raises(SettingError, match="by_target"):
        ranking.by_target("permutation")


def test_equals_come_in_input_order() -> None:
    score = ScoreRanking(
        np.array([0.0, 1.0, 0.0]),
        np.zeros(3),
        np.zeros(3),
        np.array([2, 1, 2], np.uint32),
        np.ones((3, 2), np.uint32),
    )
    assert Ranking("regression", 5, list("abc"), ["y"], {"genie3": score}).top(3) == ["b", "a", "c"]


def test_tables() -> None:
    table = make().to_arrow()
    names = ["feature", "rank", "genie3", "genie3_standard_error", "genie3_monte_carlo_error"]
    assert table.column_names[:5] == names
    assert table["feature"].to_pylist() == ["feature_3", "feature_2", "feature_1", "feature_0"]
    assert table["rank"].to_pylist() == [1, 2, 3, 4]
    assert table["permutation_rank"].to_pylist() == [4, 3, 2, 1]
    assert table["genie3[v]"].to_pylist() == [3, 2.25, 1.5, 0.75]
    assert make().to_pandas()["genie3"].tolist() == [4, 3, 2, 1]
    assert make().to_polars()["genie3"].to_list() == [4, 3, 2, 1]


def test_json_object() -> None:
    found = make().to_dict()
    assert list(found)[:10] == [
        "ferrank",
        "schema",
        "task",
        "n_rows",
        "n_features",
        "targets",
        "features",
        "scores",
        "settings",
        "seconds",
    ]
    assert found["scores"]["genie3"]["importance"] == [1, 2, 3, 4]
    assert found["scores"]["genie3"]["rank"] == [4, 3, 2, 1]
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_standard_errors_of_one_tree_are_null() -> None:
    ranking = make()
    score = ranking.scores["genie3"]
    score.standard_error[:] = score.monte_carlo_error[:] = np.nan
    found = ranking.to_dict()["scores"]["genie3"]
    assert found["standard_error"] == found["monte_carlo_error"] == [None] * 4
    assert "nan" not in ranking.to_text()


@pytest.mark.parametrize("suffix", ["json", "parquet", "arrow"])
def test_saved_and_loaded(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"ranking.{suffix}"
    ranking = make()
    ranking.scores["permutation"].monte_carlo_error[1] = np.nan
    ranking.save(path)
    assert Ranking.load(path).to_dict() == ranking.to_dict()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_csv(tmp_path: Path) -> None:
    make(2, ("genie3", "symbolic")).save(tmp_path / "r.csv")
    assert (tmp_path / "r.csv").read_text() == (
        "feature,rank,genie3,genie3_standard_error,genie3_monte_carlo_error,genie3[u],genie3[v],"
        "symbolic,symbolic_standard_error,symbolic_monte_carlo_error\n"
        "feature_1,1,2.0,0.2,0.1,0.5,1.5,1.0,0.2,0.1\n"
        "feature_0,2,1.0,0.1,0.05,0.25,0.75,2.0,0.1,0.05\n"
    )


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"unknown suffix '.xls'; use one of .csv, .parquet"):
        make().save(tmp_path / "r.xls")
    with pytest.raises(ResourceError, match="does not exist"):
        make().save(tmp_path / "none" / "r.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ResourceError, match="is a folder"):
        make().save(tmp_path / "folder.csv")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ranking: ranking.save(None), "path: None is no path; use a string"),
        (lambda ranking: ranking.save(b"r.csv"), "path: b'r.csv' is no path"),
        (lambda ranking: ranking.load(3), "path: 3 is no path"),
        (lambda ranking: ranking.top("3"), "k: '3' is not a number of features; use 0 or more"),
        (lambda ranking: ranking.top(1.5), "k: 1.5 is not a number of features"),
        (lambda ranking: ranking.to_text(-1), "top: -1 is not a number of features; use 0 or more"),
        (lambda ranking: ranking.plot(top=0), "top: 0 is not a number of features; use 1 or more"),
        (lambda ranking: ferrank.rank({}, "y", resume=3), "resume: 3 is no path"),
        (
            lambda ranking: ferrank.rank({"a": [1.0, 2.0], "y": [0.0, 1.0]}, "y", temp_dir=3),
            "temp_dir: 3 is no path",
        ),
    ],
)
def test_what_is_no_path_and_no_number_of_features(call: Callable[[Ranking], object], message: str) -> None:
    with pytest.raises(SettingError, match=f"^{message}"):
        call(make())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_draws": 19}, "target_draws: 19 draws are too few for p-values; use 20 or more"),
        ({"n_neighbors": [3, 5]}, "n_neighbors: several are for the ranker relief; use one number"),
        ({"n_iterations": [3, 5]}, "n_iterations: several are for the ranker relief"),
    ],
)
def test_settings_without_p_values_of_relief_are_refused(settings: dict[str, Any], message: str) -> None:
    table = {"a": np.arange(30.0), "y": np.arange(30.0) % 7}
    with pytest.raises(SettingError, match=f"^{message}"):
        ferrank.rank(table, "y", ranker=ferrank.JointRanker(**settings))


@pytest.mark.parametrize("ranker", ["forest", "joint"])
def test_a_run_is_not_resumed_from_a_folder(ranker: Any, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="is a folder; name a file"):
        ferrank.rank({"a": [1.0, 2.0], "y": [0.0, 1.0]}, "y", ranker=ranker, resume=tmp_path)


def test_more_memory_than_any_machine_has_is_no_limit() -> None:
    table = {"a": np.arange(30.0), "y": np.arange(30.0) % 7}
    assert ferrank.rank(table, "y", n_estimators=2, memory_limit=10**30).n_rows == 30


def test_files_that_are_no_ranking(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"a": 1}')
    (tmp_path / "b.parquet").write_text("no")
    pa.feather.write_feather(pa.table({"feature": ["a"]}), str(tmp_path / "c.arrow"))
    for name in ("a.json", "b.parquet", "c.arrow"):
        with pytest.raises(DataError, match="is not a saved ranking"):
            Ranking.load(tmp_path / name)
    with pytest.raises(ResourceError, match=r"none\.json"):
        Ranking.load(tmp_path / "none.json")
    with pytest.raises(SettingError, match=r"not read from '\.csv' files"):
        Ranking.load(tmp_path / "none.csv")


def saved_with(path: Path, **changed: Any) -> Path:
    settings = {"n_estimators": 3, "ranker": "forest"}
    table = {"a": np.arange(30.0), "y": np.arange(30.0) % 7}
    about = ferrank.rank(table, "y", **settings).to_dict()
    for key, value in changed.items():
        part, _, field = key.partition("__")
        if field == "measure":
            about[part]["y"][field] = value
        elif field:
            about[part][field] = value
        else:
            about[part] = value
    path.write_text(json.dumps(about))
    return path


SCORE: dict[str, Any] = {
    "importance": [0.5],
    "standard_error": [None],
    "monte_carlo_error": [None],
    "rank": [1],
    "rank_interval": [[1, 1]],
    "by_target": [[0.5]],
}
NUMBERS = {"evidence": [1.0], "most_evidence": [1.0], "fdr": 0.1}


def test_unknown_errors_are_null_in_files(tmp_path: Path) -> None:
    path = saved_with(tmp_path / "r.json", scores={"s": SCORE}, relevance=NUMBERS)
    found = Ranking.load(path)
    assert np.isnan(found.standard_error).all()
    found.save(path)
    assert json.loads(path.read_text())["scores"]["s"] == SCORE


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
@pytest.mark.parametrize(
    "place",
    ["importance", "by_target", "evidence", "most_evidence", "fdr", "error", "squared_error", "seconds"],
)
def test_numbers_that_are_none_are_refused(tmp_path: Path, place: str, value: float | None) -> None:
    changed: dict[str, Any] = {"scores": {"s": dict(SCORE)}, "relevance": dict(NUMBERS)}
    if place in SCORE:
        changed["scores"]["s"][place] = [[value]] if place == "by_target" else [value]
    elif place in NUMBERS:
        changed["relevance"][place] = value if place == "fdr" else [value]
    elif place == "seconds":
        changed[place] = value
    else:
        error = asdict(ModelError("error rate", 0.1, 0.5, 0.1, 0.1, is_better=True, n_rows=30))
        changed["model_error"] = {"y": error | {place: value}}
    path = saved_with(tmp_path / "r.json", **changed)
    if place == "seconds" and value is None:
        assert Ranking.load(path).seconds is None
        return
    with pytest.raises(DataError, match="r.json: is not a saved ranking"):
        Ranking.load(path)


@pytest.mark.parametrize("place", ["standard_error", "monte_carlo_error"])
def test_infinite_errors_are_refused(tmp_path: Path, place: str) -> None:
    path = saved_with(tmp_path / "r.json", scores={"s": SCORE | {place: [float("inf")]}})
    with pytest.raises(DataError, match=f"'{place}' of the score 's' has a number that is not finite"):
        Ranking.load(path)


def test_settings_that_are_not_finite_are_null_in_files(tmp_path: Path) -> None:
    settings = {"a": float("nan"), "b": [float("-inf"), 1.5], "c": {"d": (float("nan"), "x")}}
    ranking = Ranking.from_importances(["a"], {"s": [1.0]}, task="regression", settings=settings)
    ranking.save(tmp_path / "r.json")
    known = {"a": None, "b": [None, 1.5], "c": {"d": [None, "x"]}}
    assert Ranking.load(tmp_path / "r.json").settings == known


@pytest.mark.parametrize("place", ["features", "targets", "scores"])
def test_names_are_utf_8(tmp_path: Path, place: str) -> None:
    name = "a\ud800"
    path = saved_with(tmp_path / "r.json", **{place: {name: SCORE} if place == "scores" else [name]})
    with pytest.raises(DataError, match=r"the name 'a\\ud800' is not UTF-8"):
        Ranking.load(path)
    given: dict[str, Any] = {"features": ["a"], "targets": ["y"], "importances": {"s": [1.0]}}
    place = "importances" if place == "scores" else place
    given[place] = {name: [1.0]} if place == "importances" else [name]
    with pytest.raises(DataError, match=rf"^{place}: the name 'a\\ud800' is not UTF-8"):
        Ranking.from_importances(**given, task="regression")


@pytest.mark.parametrize("value", [None, "\x1b[31m", [], [[]], {}, [None], 2.5, "9" * 5000])
def test_settings_of_any_type_are_shown(tmp_path: Path, value: Any) -> None:
    changed = {"settings__min_samples_leaf": value, "settings__n_neighbors": value, "settings__ranker": value}
    found = Ranking.load(saved_with(tmp_path / "r.json", **changed))
    assert "no tree can split" not in str(found)
    assert "\x1b" not in str(found) + found._repr_html_()
    with pytest.raises(UnavailableError, match="has no p-values"):
        found.relevant()


def test_a_leaf_of_more_rows_than_half_is_told(tmp_path: Path) -> None:
    found = Ranking.load(saved_with(tmp_path / "r.json", settings__min_samples_leaf=16))
    assert "a leaf of 16 rows is more than half of the 30" in str(found)


def test_texts_of_saved_rankings_are_known_or_escaped(tmp_path: Path) -> None:
    path = tmp_path / "r.json"
    found = Ranking.load(saved_with(path, task="\x1b[31m\u202e"))
    assert str(found).startswith(r"1 feature ranked for \x1b[31m\u202e of y")
    assert "\x1b" not in str(found) + found._repr_html_()
    score = found.to_dict()["scores"]["genie3"]
    assert "\x1b" not in str(Ranking.load(saved_with(path, scores={"\x1b[31m": score})))
    with pytest.raises(DataError, match=r"'measure' is '\\x1b\[31m'; it is one of relative squared error"):
        Ranking.load(saved_with(path, model_error__measure="\x1b[31m"))
    stopped = asdict(Stop("settled", 0.95, 2, 2, 32, 1000, 32000, 10**7, 20))
    assert Ranking.load(saved_with(path, stopped=stopped)).stopped is not None
    with pytest.raises(DataError, match="'reason' is 'x'; it is one of settled"):
        Ranking.load(saved_with(path, stopped=stopped | {"reason": "x"}))


def test_text() -> None:
    lines = make(25).to_text(5).splitlines()
    assert lines[0] == "25 features ranked for multi-target prediction of u, v, 100 rows"
    assert lines[3].split() == ["1", "feature_24", "25.00", "±", "2.50", "1–2", "1.000", "±", "2.500", "25"]
    assert len({len(line) for line in lines[2:8]}) == 1
    assert lines[8] == "… and 20 more features"
    assert lines[-1] == "3 rows without a target were left out"
    assert repr(make()) == make().to_text(10)


def test_html_escapes_names() -> None:
    ranking = make()
    ranking.features[3] = "<b>&"
    page = ranking._repr_html_()
    assert "&lt;b&gt;&amp;" in page
    assert "<b>" not in page


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_plot_is_saved(tmp_path: Path, suffix: str) -> None:
    figure = make(50).plot(tmp_path / f"r.{suffix}", top=30)
    assert (tmp_path / f"r.{suffix}").stat().st_size > 1000
    assert [axes.get_title() for axes in figure.axes] == ["genie3", "permutation"]
    assert "20 are not shown" in figure.get_supxlabel()


def test_plot_shows_the_best_first_with_names_told_apart() -> None:
    ranking = make(40, ("genie3",))
    ranking.features[:] = [f"a_rather_long_beginning_{i}_and_a_rather_long_end" for i in range(40)]
    [axes] = ranking.plot(top=20).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert len(set(names)) == 20
    assert "39" in names[0]
    assert axes.get_ylim()[0] > axes.get_ylim()[1]


def test_plot_of_unknown_score() -> None:
    with pytest.raises(SettingError, match="no 'gini'"):
        make().plot(scores=["gini"])


def test_intervals_that_touch_do_not_decide_and_equals_share_ranks() -> None:
    # For four features at once at 95 % intervals have 2.491 standard errors to either side:
    # [0, 2], [2, 4] and [2, 4] touch, [5, 7] is apart.
    error = 1 / 2.4909
    ranking = Ranking.from_importances(
        list("abcd"), {"w": [1.0, 3.0, 3.0, 6.0]}, task="regression", standard_errors={"w": [error] * 4}
    )
    assert ranking.score().rank_interval.tolist() == [[2, 4], [2, 4], [2, 4], [1, 1]]
    assert ranking.ranks().tolist() == [4, 2, 2, 1]


def ranked(name: str) -> dict[str, Any]:
    X = np.random.default_rng(0).normal(size=(60, 3))
    settings: dict[str, Any] = {
        "joint": {"n_estimators": 200, "n_neighbors": 5},
        "until": {"until": "stable", "n_estimators": 30, "ranker": "forest"},
        "relief": {"ranker": "relief"},
        "one tree": {"n_estimators": 1},
        "by target": {"n_estimators": 5, "by_target": True},
    }.get(name, {"n_estimators": 20})
    y = X[:, 0] > 0 if name == "classification" else X[:, 0]
    table = {f"x{number}": X[:, number] for number in range(3)} | {"y": y, "z": X[:, 1]}
    targets = ["y", "z"] if name == "by target" else ["y"]
    return ferrank.rank(table, targets, **settings, drop=[] if "z" in targets else ["z"]).to_dict()


@pytest.mark.parametrize(
    "name", ["regression", "classification", "joint", "until", "relief", "one tree", "by target"]
)
def test_json_keeps_to_its_schema(name: str) -> None:
    schema = ferrank.Ranking.json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    found = ranked(name)
    jsonschema.validate(found, schema)
    described = {
        name: part["properties"].keys() for name, part in schema["$defs"].items() if "properties" in part
    }
    assert found.keys() <= schema["properties"].keys()
    assert all(score.keys() <= described["score"] for score in found["scores"].values())
    assert found.get("relevance", {}).keys() <= described["relevance"]
    assert found.get("stopped", {}).keys() <= described["stopped"]
    assert all(error.keys() <= described["model_error"] for error in found.get("model_error", {}).values())


@pytest.mark.parametrize(
    "change",
    [{"schema": 2}, {"scores": {}}, {"n_rows": -1}, {"features": ["a", "a"]}, {"seconds": "long"}],
    ids=str,
)
def test_the_schema_refuses_other_objects(change: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(make().to_dict() | change, ferrank.Ranking.json_schema())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_importances_from_elsewhere_are_finite(value: float) -> None:
    with pytest.raises(DataError, match=f"feature 'b' has {value} under the score 's'; give a finite number"):
        Ranking.from_importances(["a", "b"], {"r": [1, 2], "s": [2, value]}, task="regression")


@pytest.mark.parametrize(
    ("known", "line"),
    [
        ({}, "1 feature ranked for regression"),
        ({"n_rows": 2000}, "1 feature ranked for regression, 2,000 rows"),
        ({"targets": ["y"], "n_rows": 7}, "1 feature ranked for regression of y, 7 rows"),
        ({"task": "unsupervised"}, "1 feature ranked without a target"),
    ],
)
def test_what_is_known_of_importances_is_printed(known: dict[str, Any], line: str) -> None:
    ranking = Ranking.from_importances(["a"], {"s": [1]}, **{"task": "regression"} | known)
    assert str(ranking).splitlines()[0] == line
