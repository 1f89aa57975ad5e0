"""The commands that judge: curves, compare, synth, evaluate --report."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ferrank
from ferrank.cli import main
from ferrank.evaluate import LabelPowerSet, PairwiseLabels, curves, synthesize

DATA = Path(__file__).parent / "data"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        return code, *capfd.readouterr()

    return call


@pytest.fixture
def data(run: Run, tmp_path: Path) -> Path:
    path = tmp_path / "single.arrow"
    code, out, _ = run(
        "synth",
        "single",
        "--rows",
        150,
        "--features",
        12,
        "--seed",
        3,
        "--output",
        path,
        "--truth",
        tmp_path / "truth.csv",
    )
    assert code == 0
    assert out.splitlines()[1] == "relevant: " + ", ".join(f"x{i}" for i in range(1, 10))
    return path


def test_synth_writes_what_python_draws(data: Path) -> None:
    drawn = synthesize("single", 150, n_features=12, random_state=3)
    assert ferrank.rank(data, "y").importances() == pytest.approx(
        ferrank.rank(drawn.to_arrow(), "y").importances()
    )
    truth = (data.parent / "truth.csv").read_text().splitlines()
    assert truth[1].startswith("x1,1,0.278")


@pytest.mark.slow
def test_curves_of_rankers_and_saved_rankings(run: Run, data: Path) -> None:
    plot, points, truth = (data.parent / name for name in ("curves.png", "curves.csv", "truth.csv"))
    code, out, err = run(
        "curves", data, "--target", "y", "--ranker", "forest", "--ranker", "information_gain",
        "--ranking", truth, "--trees", 5, "--score", "genie3", "--score", "symbolic", "--folds", 3,
        "--sizes", "exponential", "--random-rankings", 1, "--plot", plot, "--output", points, "--json",
    )  # fmt: skip
    assert code == 0
    assert err == f"ferrank: saved {points}\nferrank: drew {plot}\n"
    found = json.loads(out)
    names = ["forest:genie3", "forest:symbolic", "information_gain", "truth", "random"]
    assert list(found["forward"]) == list(found["areas"]) == names
    assert found["sizes"] == [1, 2, 4, 8, 12]
    assert "truth" not in found["stability"]
    assert plot.stat().st_size > 1000
    assert len(points.read_text().splitlines()) == 1 + len(names) * 2 * 5


def test_curves_as_text(run: Run) -> None:
    code, out, err = run(
        "curves", DATA / "enb.arff", "--target-last", 2, "--trees", 2, "--folds", 2, "--random-rankings", 1
    )
    assert (code, err) == (0, "")
    assert out.startswith("RRMSE by KNeighborsRegressor")
    assert [line.split()[0] for line in out.splitlines()[3:5]] == ["forest", "random"]


def test_evaluate_with_a_threshold_of_labels(run: Run, tmp_path: Path) -> None:
    labels = ["--labels", DATA / "emotions.xml", "--neighbors", 4, "--json"]
    rows = DATA / "emotions.arff"
    found = {}
    for threshold in (0.25, 0.5):
        code, out, err = run("evaluate", rows, "--test", rows, *labels, "--threshold", threshold)
        assert (code, err) == (0, "")
        found[threshold] = json.loads(out)["measures"]
    assert found[0.25]["micro_recall"][0] > found[0.5]["micro_recall"][0]
    assert found[0.25]["ranking_loss"] == found[0.5]["ranking_loss"]
    code, _, err = run("evaluate", rows, "--test", rows, *labels, "--threshold", 2)
    assert (code, "threshold: 2.0 is not in [0, 1]" in err) == (2, True)


def test_curves_of_label_sets_as_classes(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 40))
    pd.DataFrame({"a": a, "b": b, "c": c, "p": a > 0, "q": b > 0, "r": a + b > 0}).to_csv(path, index=False)
    asked = [
        "curves", path, "--target-last", 3, "--folds", 2, "--random-rankings", 0, "--json",
        "--ranker", "label_power_set", "--ranker", "pairwise_labels", "--ranker", "forest",
    ]  # fmt: skip
    code, out, err = run(*asked, "--inner", "relief", "--neighbors", 3, "--trees", 4)
    assert (code, err) == (0, "")
    inner = {"inner": "relief", "inner_settings": {"n_neighbors": [3]}}
    rankers = {
        "label_power_set": LabelPowerSet(**inner),
        "pairwise_labels": PairwiseLabels(**inner),
        "forest": ferrank.ForestRanker(n_estimators=4),
    }
    assert json.loads(out) == curves(path, target_last=3, rankers=rankers, folds=2, n_random=0).to_dict()
    code, _, err = run(*asked[:-2], "--ranker", "forest", "--inner", "relief")
    assert code == 0
    code, _, err = run("curves", path, "--target-last", 3, "--inner", "relief")
    assert (code, "inner: for label_power_set" in err) == (2, True)


def test_compare(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("set,a,b,c\np,1,2,3\nq,2,3,4\nr,1,3,4\n")
    code, out, err = run(
        "compare", path, "--lower-is-better", "--control", "c", "--plot", tmp_path / "cd.png"
    )
    assert (code, err) == (0, f"ferrank: drew {tmp_path / 'cd.png'}\n")
    assert out.startswith("3 methods on 3 data sets, lower is better")
    found = json.loads(run("compare", path, "--json")[1])
    assert found["methods"] == ["c", "b", "a"]


def test_evaluate_writes_a_page(run: Run, tmp_path: Path) -> None:
    saved, page = tmp_path / "mine.csv", tmp_path / "report.html"
    ferrank.rank(DATA / "enb.arff", target_last=2, n_estimators=3).save(saved)
    code, _, err = run(
        "evaluate", DATA / "enb.arff", "--test", DATA / "enb.arff", "--target-last", 2, "--ranking", saved,
        "--report", page,
    )  # fmt: skip
    assert (code, err) == (0, f"ferrank: wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert "Rankings of enb.arff" in text
    assert "RRMSE" in text
    assert "±" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["curves", "none.csv", "--target", "y"], "none.csv"),
        (
            ["curves", "DATA", "--target", "y", "--ranker", "tree"],
            "unknown ranker 'tree'; use some of forest, relief",
        ),
        (
            ["curves", "DATA", "--target", "y", "--ranker", "relief", "--trees", 2],
            "a setting of --ranker forest",
        ),
        (["curves", "DATA", "--target", "y", "--ranker", "random"], "random rankings are there anyway"),
        (["curves", "DATA", "--target", "z"], "no column 'z'"),
        (["curves", "DATA", "--target", "y", "--plot", "c.txt"], "unknown suffix '.txt'"),
        (["compare", "DATA"], "at least 2 methods"),
        (["synth", "triple", "--output", "x.arrow"], "'triple' is not one of"),
        (["synth", "single", "--output", "x.csv"], "unknown suffix '.csv'; use one of .arrow"),
    ],
)
def test_bad_input_is_told_and_ends_with_2(
    run: Run, tmp_path: Path, arguments: list[object], message: str
) -> None:
    path = tmp_path / "data.csv"
    path.write_text("a,y\n1,p\n2,q\n3,p\n4,q\n")
    code, out, err = run(*(path if argument == "DATA" else argument for argument in arguments))
    assert (code, out) == (2, "")
    assert err.startswith("ferrank: error: ")
    assert message in err


@pytest.mark.slow
def test_help_and_inspect_do_not_wait_for_what_ranks_and_judges(tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text("a,y\n1,2\n3,4\n")
    code = (
        "import sys, ferrank, ferrank.cli; from ferrank.cli.main import main; "
        f"main(['inspect', {str(tmp_path / 'some.csv')!r}]); "
        "heavy = {'sklearn', 'scipy', 'pandas', 'matplotlib', 'joblib'} & set(sys.modules); "
        "ferrank.rank; judge = 'ferrank.evaluate' in sys.modules; "
        "sys.exit(f'{heavy} {judge}' if heavy or judge else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_all_names_of_the_package_are_found_where_they_are_said_to_be() -> None:
    assert set(ferrank.__all__) <= set(dir(ferrank))
    for name in ferrank.__all__:
        assert getattr(ferrank, name) is not None
    assert ferrank.accumulator.accumulate is ferrank.accumulate
    with pytest.raises(AttributeError, match="nothing"):
        ferrank.nothing  # noqa: B018
