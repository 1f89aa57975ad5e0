"""Plots of every kind show names with dollar signs as they are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import ferrank as fr
from ferrank.evaluate import Results, compare, curves, stability
from ferrank.evaluate.plots import plot_stability
from ferrank.evaluate.study.figures import read_figure

NAME = r"$\bad$"
"""No formula of matplotlib, which fails where it takes this for one."""
X = np.random.default_rng(0).normal(size=(60, 3))
TABLE = {NAME: X[:, 0], "$x^2$": X[:, 1], "c": X[:, 2], "$y$": X[:, 0]}
METHODS = [NAME, "$x^2$", "c"]


def ranking() -> fr.Ranking:
    features = list(TABLE)[:3]
    made = fr.Ranking.from_importances(features, {NAME: [3.0, 2.0, 1.0]}, task="regression", targets=["$y$"])
    return made.with_clusters(TABLE)


def results() -> Results:
    """Results of three methods on eight data sets."""
    rows = [
        {"data": f"{NAME} {data}", "method": method, "split": str(split), "measure": measure, "at": at}
        | {"value": 0.9 - 0.1 * number + data / 100, "ranking_seconds": 1.0, "n_train": 9, "n_test": 3}
        | {"n_trees": n_trees}
        for measure, places in {"accuracy": [None], "macro_f1": [None], "importance": range(1, 7)}.items()
        for data in range(8)
        for number, method in enumerate(METHODS)
        for split in range(2)
        for at in places
        for n_trees in (1, 2)
    ]
    about = [{"data": f"{NAME} {data}", "rows": data} for data in range(8)]
    return Results(pa.Table.from_pylist(rows), pa.Table.from_pylist(about))


def figure(kind: str, **settings: Any) -> Callable[[Path], object]:
    def make(path: Path) -> object:
        return read_figure({"kind": kind, **settings}, path.parent, "figures").make(
            results(), path.parent, path.stem
        )

    return make


def draw_in_given_axes(path: Path) -> None:
    from matplotlib.figure import Figure

    whole = Figure()
    ranking().plot(ax=whole.subplots())
    whole.savefig(path)


PLOTS: dict[str, Callable[[Path], object]] = {
    "ranking": lambda path: ranking().plot(path),
    "axes": draw_in_given_axes,
    "clusters": lambda path: ranking().plot_clusters(path),
    "curves": lambda path: curves(TABLE, "$y$", {NAME: "relief"}, folds=2).plot(path),
    "stability": lambda path: plot_stability({NAME: stability(X)}, path),
    "comparison": lambda path: compare(pd.DataFrame(X, columns=METHODS)).plot(path),
    "tree": lambda path: fr.ReliefTree(min_samples_leaf=10).fit(fr.Dataset(TABLE, "$y$")).plot(path),
    "curve": figure("curve", measure="accuracy"),
    "ranks": figure("ranks", measure="accuracy"),
    "radar": figure("radar", measures=["accuracy", "macro_f1"]),
    "pixels": figure("pixels", shape=[2, 3], data=[f"{NAME} 0"]),
    "heat": figure("heat", measure="accuracy", pattern="{row}", rows=METHODS, columns=["$x^2$"]),
    "meta": figure("meta", measure="accuracy", describe=["rows"]),
}


@pytest.mark.parametrize("kind", PLOTS)
def test_names_are_shown_as_they_are(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "plot.svg"
    PLOTS[kind](path)
    assert NAME in path.read_text(encoding="utf-8")


def test_panels_of_many_scores_are_in_rows_of_three() -> None:
    rows = np.random.default_rng(0).normal(size=(60, 4))
    figure = fr.rank(rows, rows[:, 0], ranker="joint", n_estimators=200).plot()
    assert [axes.get_title() for axes in figure.axes][:2] == ["evidence", "permutation"]
    assert len({axes.get_position().y0 for axes in figure.axes}) == 2
    width, height = figure.get_size_inches()
    assert width < 6 * height
