"""The check of data sets: what spoils a table is found, and clean tables are left alone."""

import html
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ferrank as fr
from ferrank.cli import main
from ferrank.data.check.sample import columns_of

DATA = Path(__file__).parent / "data"
Table = pd.DataFrame
Spoil = Callable[[Table, np.random.Generator], Table]


def clean(n_rows: int = 400, seed: int = 0) -> Table:
    """Return a table in which nothing is wrong."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(n_rows, 6)), columns=list("abcdef"))
    frame["count"] = rng.poisson(4, n_rows)
    frame["colour"] = rng.choice(["red", "green", "blue"], n_rows)
    frame["y"] = frame.a + (frame.colour == "red") + 0.5 * frame["count"] + rng.normal(size=n_rows)
    return frame


def classes(frame: Table) -> Table:
    return frame.assign(y=np.where(frame.y > frame.y.median(), "high", "low"))


SPOILED: dict[str, tuple[str, Spoil]] = {
    "row numbers": ("identifier", lambda t, _: t.assign(row=np.arange(len(t)))),
    "shuffled numbers": ("identifier", lambda t, r: t.assign(who=r.permutation(len(t)) + 1000)),
    "names": ("identifier", lambda t, _: t.assign(who=[f"patient {n}" for n in range(len(t))])),
    "numbers called ids": (
        "identifier",
        lambda t, r: t.assign(customer_id=r.choice(10**7, len(t), replace=False)),
    ),
    "times": ("order of rows", lambda t, r: t.assign(time=np.cumsum(r.exponential(size=len(t))))),
    "shops": (
        "many categories",
        lambda t, r: t.assign(shop=[f"shop {n}" for n in r.integers(200, size=len(t))]),
    ),
    "constants": ("constant", lambda t, _: t.assign(one=1)),
    "nothing": ("constant", lambda t, _: t.assign(none=np.nan)),
    "copies in another unit": ("copies", lambda t, _: t.assign(g=t.a * 2.54)),
    "copies of categories": (
        "copies",
        lambda t, _: t.assign(farbe=t.colour.map({"red": "rot", "green": "grün", "blue": "blau"})),
    ),
    "near copies": ("near copies", lambda t, r: t.assign(g=t.a + 0.01 * r.normal(size=len(t)))),
    "the target in other units": ("leak", lambda t, _: t.assign(g=np.exp(t.y))),
    "the class as a number": ("leak", lambda t, _: classes(t).assign(g=t.y)),
    "the class as codes": (
        "leak",
        lambda t, _: classes(t).assign(g=np.where(t.y > t.y.median(), "+", "-")),
    ),
    "a value for one class alone": (
        "leak",
        lambda t, r: classes(t).assign(g=np.where(t.y > t.y.median(), r.normal(size=len(t)), np.nan)),
    ),
    "postcodes": ("codes", lambda t, r: t.assign(postcode=r.integers(1000, 1040, len(t)))),
    "codes by what they tell": ("codes", lambda t, r: _with_codes(t, r)),
    "numbers as text": ("numbers in strings", lambda t, _: t.assign(g=[f"{v:.1f}" for v in t.a * 10])),
    "numbers with units": (
        "numbers in strings",
        lambda t, _: t.assign(g=[f"{v:.0f} kg" for v in 99 + 9 * t.b]),
    ),
    "dates as text": (
        "dates in strings",
        lambda t, r: t.assign(day=[f"2024-{m:02}-{d:02}" for m, d in r.integers(1, 13, (len(t), 2))]),
    ),
    "-999": ("missing as a value", lambda t, r: t.assign(a=np.where(r.random(len(t)) < 0.05, -999.0, t.a))),
    "unknown": (
        "missing as a value",
        lambda t, r: t.assign(colour=np.where(r.random(len(t)) < 0.1, "unknown", t.colour)),
    ),
    "a rare class": (
        "imbalance",
        lambda t, _: t.assign(y=np.where(t.index < 3, "ill", "well")).sample(frac=1, random_state=0),
    ),
    "a target that hardly varies": ("imbalance", lambda t, _: t.assign(y=np.where(t.index < 3, t.y, 0.0))),
    "repeated rows": ("repeated rows", lambda t, _: pd.concat([t, t[:100]])),
}


def _with_codes(table: Table, rng: np.random.Generator) -> Table:
    code = rng.integers(12, size=len(table))
    return table.assign(plan=code, y=table.y + 6 * rng.permutation(12)[code] % 7)


@pytest.mark.parametrize("name", SPOILED)
def test_what_spoils_a_table_is_found(name: str) -> None:
    kind, spoil = SPOILED[name]
    table = spoil(clean(), np.random.default_rng(1))
    found = fr.check(table, "y")
    assert [finding.kind for finding in found] == [kind]
    added = [column for column in found[0].columns if column in table]
    assert added or kind == "repeated rows"


CLEAN_FILES = {
    "abalone": {"target_last": 1},
    "breast-w": {"target_last": 1},
    "diabetes": {"target_last": 1},
    "emotions": {"labels": DATA / "emotions.xml"},
    "german": {"target_last": 1},
    "heart-c": {"target_last": 1},
    "iris": {"target_last": 1},
    "jura": {"target": ["Cd", "Co", "Cu"]},
    "slump": {"target_last": 3},
    "wine": {"target_last": 1},
}


@pytest.mark.parametrize("name", CLEAN_FILES)
def test_clean_files_are_left_alone(name: str) -> None:
    found = fr.check(DATA / f"{name}.arff", **CLEAN_FILES[name])
    assert list(found) == []


@pytest.mark.parametrize("seed", range(10))
def test_clean_tables_are_left_alone(seed: int) -> None:
    table = clean(60 + 150 * seed, seed)
    assert list(fr.check(table, "y")) == []
    assert list(fr.check(classes(table), "y")) == []


@pytest.mark.parametrize("kind", [float, int, str])
def test_codes_that_are_named_as_categorical_are_no_numbers_in_strings(kind: type) -> None:
    codes = np.random.default_rng(0).integers(1000, 1040, 400)
    table = clean().assign(postcode=[kind(code) for code in codes])
    assert list(fr.check(fr.Dataset(table, "y", categorical_features=["postcode"]))) == []
    assert [finding.kind for finding in fr.check(table, "y")] != []


def test_infinity_is_found_and_counted() -> None:
    table = clean()
    table.loc[[3, 5], "a"], table.loc[7, "y"] = np.inf, -np.inf
    table["b"] = np.inf
    table["count"] = table["count"].astype(float).where(table.index > 2, np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = fr.check(table, "y").of("infinity")
        fr.check(table.assign(y=table.c), "y")
    assert [(finding.columns, finding.found.split(",")[0]) for finding in found] == [
        (["a"], "2 of 400 rows hold infinity"),
        (["b"], "400 of 400 rows hold infinity"),
        (["count"], "3 of 400 rows hold infinity"),
        (["y"], "1 of 400 rows hold infinity"),
    ]


def test_columns_of_which_the_same_is_said_are_told_together() -> None:
    found = fr.check(clean().assign(one=1, two=2), "y")
    assert [finding.columns for finding in found] == [["one", "two"]]
    assert "constant: columns 'one' and 'two': the same value in all rows; drop it" in str(found)
    assert json.loads(json.dumps(found.to_dict()))["findings"][0]["kind"] == "constant"


def test_one_value_in_some_rows_is_not_called_the_same_in_all() -> None:
    frame = clean()
    found = fr.check(
        frame.assign(asked=np.where(frame.index % 2, 1.0, np.nan), word=["yes", None] * 200), "y"
    )
    [constant] = found.of("constant")
    assert constant.columns == ["asked", "word"]
    assert constant.found == "one value where known, missing in 200 of 400 rows"
    assert constant.advice == "keep it only if a missing value tells something"


def test_one_value_in_the_rows_of_a_class_is_a_leak() -> None:
    frame = classes(clean())
    found = fr.check(frame.assign(g=np.where(frame.y == "high", 1.0, np.nan)), "y")
    assert [finding.columns for finding in found.of("leak")] == [["g"]]


def _visits(**patient: Any) -> Table:
    """Return a table of 40 patients, 5 visits each, with what is the same in all visits of a patient."""
    rng = np.random.default_rng(2)
    of_patient = {name: np.repeat(values, 5) for name, values in patient.items()}
    return pd.DataFrame(of_patient | {"v": rng.normal(size=200), "y": rng.normal(size=200)})


SIZES = np.random.default_rng(3).integers(12, size=400)
AGES, WEIGHTS = np.random.default_rng(4).normal(size=(2, 40))
COPIES: dict[str, tuple[Table, list[list[str]]]] = {
    "unit": (clean().assign(g=lambda t: t.a * 1.8 + 32), [["a", "g"]]),
    "rounded unit": (clean().assign(a=lambda t: t.a.round(1), h=lambda t: t.a * 2.54), [["a", "h"]]),
    "reversed scale": (clean().assign(g=lambda t: 9 - t["count"]), [["count", "g"]]),
    "reversed numbers": (clean().assign(g=lambda t: -t.a), [["a", "g"]]),
    "code and name": (
        clean().assign(code=SIZES, name=[f"plan {31 * size % 37}" for size in SIZES]),
        [["code", "name"]],
    ),
    "two names": (
        clean().assign(one=[f"c{size}" for size in SIZES], two=[f"d{-size}" for size in SIZES]),
        [["one", "two"]],
    ),
    "covariates of patients": (_visits(age=AGES, bmi=WEIGHTS), []),
    "covariates in whole numbers": (
        _visits(age=np.arange(30, 70), income=np.random.default_rng(5).permutation(40) * 1000),
        [],
    ),
    "covariates and a name": (_visits(age=AGES, who=[f"p{n}" for n in range(40)]), []),
    "covariates and a copy": (_visits(age=AGES, bmi=WEIGHTS, months=12 * AGES), [["age", "months"]]),
    "shuffled covariates": (_visits(age=AGES, bmi=WEIGHTS).sample(frac=1, random_state=0), []),
    "repeated rows": (pd.concat([clean()] * 2), []),
    "shuffled repeated rows": (pd.concat([clean()] * 3).sample(frac=1, random_state=0), []),
    "repeated names": (
        pd.concat([clean().assign(one=[f"a{n}" for n in range(400)], two=[f"b{n}" for n in range(400)])] * 3),
        [],
    ),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_say_the_same_in_every_order_of_the_rows(name: str) -> None:
    table, copies = COPIES[name]
    assert [finding.columns for finding in fr.check(table, "y") if "copies" in finding.kind] == copies


def test_large_tables_are_sampled_and_containers_agree(tmp_path: Path) -> None:
    table = clean(30_000).assign(row=np.arange(30_000))
    found = fr.check(table, "y")
    assert (found.n_rows, found.n_sampled) == (30_000, 10_000)
    batches = pa.Table.from_pandas(table).to_batches(max_chunksize=777)
    assert fr.check(pa.Table.from_batches(batches), "y").to_dict() == found.to_dict()
    # Of a sample, row numbers have gaps.
    assert [finding.kind for finding in found] == ["order of rows"]


def test_texts_of_few_and_of_many_rows_are_coded_alike() -> None:
    texts = pa.chunked_array([["b", None, "a", "b", ""], [None, "é", "a"] * 400])
    [many], [few] = (columns_of(pa.table({"t": rows}), {"t": "nominal"}) for rows in (texts, texts[:900]))
    assert few.texts == many.texts == ["b", "a", "", "é"]
    np.testing.assert_array_equal(few.values, many.values[:900])
    assert few.values.tolist()[:6] == [0, -1, 1, 0, 2, -1]
    assert many.n_distinct == 4
    assert not many.known[1]


def test_without_a_target_all_columns_are_features() -> None:
    table = clean()
    assert fr.check(table.assign(z=table.y)).of("copies")[0].columns == ["y", "z"]


@pytest.mark.parametrize(
    "table",
    [
        {"a": [], "y": []},
        {"a": [1.0], "y": [1.0]},
        {"a": [None, None], "y": ["x", None]},
        {"a": [np.inf, -np.inf, np.nan] * 20, "y": ["x", "y", "z"] * 20},
        {"a": ["", None, "\x1b[31m"] * 20, "y": [True, False, None] * 20},
        {"a": [2**60 + n for n in range(60)], "y": [0, 1] * 30},
    ],
)
def test_odd_tables_make_no_trouble(table: dict[str, list[Any]]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "\x1b" not in str(fr.check(pa.table(table), "y"))


def test_a_ranking_warns_of_the_worst_once() -> None:
    table = clean().assign(who=[f"w{n}" for n in range(400)], one=1)
    data = fr.Dataset(table, "y")
    with pytest.warns(fr.SpoiledDataWarning, match="column 'who': a category for nearly each row") as caught:
        fr.rank(data, n_estimators=2)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fr.rank(data, n_estimators=2)
        fr.rank(clean(), "y", n_estimators=2)


@pytest.mark.filterwarnings("ignore::ferrank.SpoiledDataWarning")
def test_what_a_ranking_warns_of_is_in_its_text_and_on_its_page(tmp_path: Path) -> None:
    data = fr.Dataset(classes(clean()).assign(g=clean().y), "y")
    leak = "warning: leak: column 'g': enough to tell the target 'y' almost without an error"
    for _ in range(2):
        ranking = fr.rank(data, n_estimators=2)
        assert leak in ranking.to_text()
        assert html.escape(leak) in ranking.report().html
    data.data.to_csv(tmp_path / "t.csv", index=False)
    page = tmp_path / "page.html"
    call = ["rank", str(tmp_path / "t.csv"), "--target", "y", "--ranker", "forest", "--output", str(page)]
    assert main(call) == 0
    assert html.escape(leak) in page.read_text(encoding="utf-8")
    assert fr.rank(clean(), "y", n_estimators=2).warnings == []


@pytest.mark.parametrize("value", [1.5, "a", None])
def test_a_ranking_warns_of_a_constant_target(value: Any) -> None:
    settings = {"unlabelled": "ignore"} if value is None else {}
    try:
        with pytest.warns(
            fr.SpoiledDataWarning, match="constant: column 'y': the target has one value or none"
        ):
            fr.rank(clean().assign(y=value), "y", n_estimators=2, **settings)
    except fr.DataError:
        assert value is None


@pytest.mark.parametrize("value", [1.5, None])
def test_a_ranking_warns_where_no_feature_has_two_values(value: Any) -> None:
    table = {"a": [value] * 40, "b": [value] * 40, "y": range(40)}
    with pytest.warns(fr.SpoiledDataWarning, match="constant: columns 'a' and 'b': "):
        fr.rank(table, "y", n_estimators=2)
    table["b"] = [1.5] * 20 + [2.5] * 20
    assert fr.rank(table, "y", n_estimators=2).warnings == []


def test_a_class_for_every_few_rows_is_told() -> None:
    names = [f"u{number // 2}" for number in range(400)]
    with pytest.warns(fr.SpoiledDataWarning, match="many classes: column 'y': the target has 200 classes"):
        fr.rank(clean().assign(y=names), "y", n_estimators=2)
    kinds = [finding.kind for finding in fr.check(clean(), names)]
    assert "many classes" in kinds
    assert "imbalance" not in kinds, "each of so many classes is rare"
    few = [f"u{number % 50}" for number in range(400)]
    assert "many classes" not in [finding.kind for finding in fr.check(clean(), few)]


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "t.csv"
    clean().assign(row=np.arange(400)).to_csv(path, index=False)
    assert main(["check", str(path), "--target", "y"]) == 0
    assert "identifier: column 'row': it counts the rows; drop it" in capsys.readouterr().out
    assert main(["check", str(path), "--target", "y", "--drop", "row", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []
    assert main(["check", str(path), "--target", "z"]) == 2
