"""Trees that split by Relief, beside those of the paper and of scikit-learn.

Section 4 of Robnik-Šikonja and Kononenko 1999 anew: Relief alone, accuracy or mean squared error alone, and
both combined, by ten folds; paired t-tests at 0.05 with the adjustment of Bonferroni say which differ. Public
data are read from `DATA/classification` and `DATA/regression` (ARFF files of UCI, not part of this
repository); artificial ones are drawn here. KRK: whether a position of two kings and a rook is illegal, White
to move.

scikit-learn's `DecisionTreeClassifier` and `DecisionTreeRegressor` have leaves of five rows as well, no
pruning, and categories one by one.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import recording
from scipy.stats import ttest_rel
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import ferrank as fr
from ferrank.data.source import open_source, read_all
from ferrank.evaluate import synthesize

FOLDS = 10
CLASSES = {
    "breast-cancer": "Class",
    "breast-w": "Class",
    "diabetes": "class",
    "heart": "class",
    "hepatitis": "Class",
    "ionosphere": "class",
    "iris": "class",
    "lymph": "class",
    "primary-tumor": "class",
    "soybean": "class",
    "tic-tac-toe": "Class",
    "vote": "Class",
    "wine": "class",
    "zoo": "type",
}
NUMBERS = {
    "abalone": "Class_Rings",
    "autompg": "class",
    "bodyfat": "class",
    "housing": "class",
    "servo": "class",
    "wisconsin": "time",
}
DROPPED = {"zoo": ["animal"]}
PAPER = {
    "classes": "relief over accuracy 7, combined over accuracy 6, all others 0; 37 % by accuracy",
    "linear models": "relief over mse 5, combined over mse 4, all others 0; 25 % by mse",
    "means": "relief over mse 4, combined over mse 4, all others 0; 36 % by mse",
}
"""Tables 1 and 2: significant differences; shares of splits in combined trees."""


class Run(NamedTuple):
    """A selector on a set."""

    scores: np.ndarray
    """Of each fold: accuracy, or the relative squared error, Eq. 19."""
    nodes: float
    by_other: float
    """Share of the splits that the other selector chose."""
    seconds: float


def public(data: Path, folder: str, name: str, target: str) -> pa.Table:
    table = read_all(open_source(data / folder / f"{name}.arff"))
    table = table.drop_columns(DROPPED.get(name, []))
    return table.append_column("target", table.column(target)).drop_columns([target])


def drawn(name: str, n_rows: int, informative: int, n_features: int) -> pa.Table:
    table = synthesize(name, n_rows, n_informative=informative, n_features=n_features).to_arrow()
    return table.rename_columns([*table.column_names[:-1], "target"])


def krk(n_rows: int = 1_000) -> pa.Table:
    squares = np.random.default_rng(0).integers(8, size=(n_rows, 6))
    white, rook, black = squares[:, :2], squares[:, 2:4], squares[:, 4:]
    same = (white == rook).all(1) | (rook == black).all(1) | (white == black).all(1)
    near = np.abs(white - black).max(1) <= 1
    attacked = np.zeros(n_rows, dtype=bool)
    for line, along in ((0, 1), (1, 0)):
        low = np.minimum(rook[:, along], black[:, along])
        high = np.maximum(rook[:, along], black[:, along])
        is_between = (white[:, line] == rook[:, line]) & (low < white[:, along]) & (white[:, along] < high)
        attacked |= (rook[:, line] == black[:, line]) & ~is_between
    names = [f"{piece}_{what}" for piece in ("white_king", "rook", "black_king") for what in ("file", "rank")]
    columns = {name: pa.array(column.astype(str)) for name, column in zip(names, squares.T, strict=True)}
    illegal = same | near | attacked
    return pa.table({**columns, "target": pa.array(np.where(illegal, "illegal", "legal"))})


def uniform(
    formula: Callable[[np.ndarray], np.ndarray], n_rows: int = 1_000, n_features: int = 10
) -> pa.Table:
    X = np.random.default_rng(0).uniform(size=(n_rows, n_features))
    columns = {f"x{number}": column for number, column in enumerate(X.T)}
    return pa.table({**columns, "target": formula(X)})


def sets_of_classes(data: Path) -> dict[str, Callable[[], pa.Table]]:
    return {
        "parity-2": lambda: drawn("parity", 200, 2, 12),
        "parity-3": lambda: drawn("parity", 600, 3, 13),
        "krk": krk,
        **{n: lambda n=n, t=t: public(data, "classification", n, t) for n, t in CLASSES.items()},
    }


def sets_of_numbers(data: Path) -> dict[str, Callable[[], pa.Table]]:
    return {
        "fraction-2": lambda: drawn("fraction", 1_000, 2, 10),
        "fraction-3": lambda: drawn("fraction", 1_000, 3, 10),
        "modulo8-2": lambda: drawn("modulo8", 1_000, 2, 10),
        "parity-2": lambda: drawn("parity_regression", 1_000, 2, 10),
        "parity-3": lambda: drawn("parity_regression", 1_000, 3, 10),
        "linear": lambda: uniform(lambda X: X[:, 0] - 2 * X[:, 1] + 3 * X[:, 2] - 3 * X[:, 3]),
        "cosinus": lambda: uniform(lambda X: np.cos(4 * np.pi * X[:, 0]) * (3 * X[:, 2] - 2 * X[:, 1])),
        **{n: lambda n=n, t=t: public(data, "regression", n, t) for n, t in NUMBERS.items()},
    }


def folds(table: pa.Table, *, classes: bool) -> list[tuple[np.ndarray, np.ndarray]]:
    split = StratifiedKFold if classes else KFold
    rows = np.zeros((table.num_rows, 1))
    return list(split(FOLDS, shuffle=True, random_state=0).split(rows, target_of(table)))


def target_of(table: pa.Table) -> np.ndarray:
    return np.asarray(table.column("target").to_pandas())


def score(predicted: np.ndarray, train: np.ndarray, test: np.ndarray, *, classes: bool) -> float:
    if classes:
        return float((predicted == test).mean())
    return float(((predicted - test) ** 2).mean() / ((train.mean() - test) ** 2).mean())


def run_ours(table: pa.Table, *, classes: bool, **settings: Any) -> Run:
    scores, nodes, splits, started = [], [], [], time.process_time()
    for train, test in folds(table, classes=classes):
        tree = fr.ReliefTree(task="classification" if classes else "regression", n_jobs=1, **settings)
        tree.fit(fr.Dataset(table.take(train), "target"))
        predicted = tree.predict(fr.Dataset(table.take(test), "target"))
        y = target_of(table)
        scores.append(score(predicted, y[train], y[test], classes=classes))
        nodes.append(len(tree.tree_.nodes))
        chosen = tree.tree_.selectors()
        splits.append((sum(chosen.values()) - chosen.get("relief", 0), sum(chosen.values())))
    others, of_all = np.sum(splits, axis=0)
    seconds = time.process_time() - started
    return Run(np.array(scores), float(np.mean(nodes)), others / max(of_all, 1), seconds)


def run_sklearn(table: pa.Table, *, classes: bool) -> Run:
    frame = table.drop_columns(["target"]).to_pandas()
    for name in frame.columns:
        if not pd.api.types.is_numeric_dtype(frame[name]):
            frame[name] = frame[name].astype(object).where(frame[name].notna(), "missing").astype(str)
    y, scores, nodes, started = target_of(table), [], [], time.process_time()
    numbers = make_column_selector(dtype_include="number")
    for train, test in folds(table, classes=classes):
        encoder = make_column_transformer(
            (
                OneHotEncoder(handle_unknown="ignore", sparse_output=False),
                make_column_selector(dtype_exclude="number"),
            ),
            ("passthrough", numbers),
        )
        kind = DecisionTreeClassifier if classes else DecisionTreeRegressor
        model = make_pipeline(encoder, kind(min_samples_leaf=5, random_state=0))
        predicted = model.fit(frame.iloc[train], y[train]).predict(frame.iloc[test])
        scores.append(score(predicted, y[train], y[test], classes=classes))
        nodes.append(model[-1].tree_.node_count)
    return Run(np.array(scores), float(np.mean(nodes)), 0.0, time.process_time() - started)


def compare(
    title: str,
    sets: dict[str, Callable[[], pa.Table]],
    record: recording.Record,
    *,
    classes: bool,
    **settings: Any,
) -> None:
    other = "accuracy" if classes else "mse"
    selectors = ["relief", other, f"relief+{other}"]
    print(f"\n{title}: {'accuracy' if classes else 'relative squared error'}, nodes; scikit-learn beside")
    print(
        f"{'set':>14}"
        + "".join(f"{name:>23}" for name in [*selectors, "scikit-learn"])
        + f"{'by ' + other:>14}"
    )
    found: dict[str, dict[str, Run]] = {}
    for name, make in sets.items():
        table = make()
        runs = {
            selector: run_ours(table, classes=classes, selector=selector, **settings)
            for selector in selectors
        }
        found[name] = runs | {"scikit-learn": run_sklearn(table, classes=classes)}
        cells = [f"{run.scores.mean():14.3f} {run.nodes:8.1f}" for run in found[name].values()]
        print(f"{name:>14}{''.join(cells)}{runs[selectors[2]].by_other:14.0%}", flush=True)
        for selector, run in found[name].items():
            by_other = round(run.by_other, 3) if "+" in selector else None
            value = round(run.scores.mean(), 4)
            record.add(
                case=name, size=title, baseline=selector, value=value, nodes=run.nodes, by_other=by_other
            )
    print(f"significant differences of {len(found)} sets (paper: {PAPER[title]}):")
    for a, b in combinations(selectors, 2):
        better, worse = significant(found, a, b, classes=classes)
        print(f"  {a} over {b}: {len(better)} {better}; {b} over {a}: {len(worse)} {worse}")
    share = np.mean([runs[selectors[2]].by_other for runs in found.values()])
    print(f"share of splits by {other} in combined trees, mean over the sets: {share:.0%}")


def significant(
    found: dict[str, dict[str, Run]], a: str, b: str, *, classes: bool
) -> tuple[list[str], list[str]]:
    """The sets on which `a` is better than `b`, and those on which it is worse."""
    better, worse = [], []
    for name, runs in found.items():
        difference = runs[a].scores - runs[b].scores
        if not difference.any():
            continue
        # Equal differences in all folds leave no doubt, and no deviation to divide by.
        p = ttest_rel(runs[a].scores, runs[b].scores).pvalue if np.ptp(difference) > 0 else 0.0
        if p < 0.05 / len(found):
            (better if (difference.mean() > 0) == classes else worse).append(name)
    return better, worse


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, metavar="DATA", help="folder with classification/ and regression/")
    recording.add_option(parser)
    chosen = parser.parse_args()
    record = recording.Record("relief_trees")
    compare("classes", sets_of_classes(chosen.data), record, classes=True)
    numbers = sets_of_numbers(chosen.data)
    compare("linear models", numbers, record, classes=False, leaves="linear")
    compare("means", numbers, record, classes=False)
    if chosen.record is not None:
        print(record.write(chosen.record))


if __name__ == "__main__":
    main()
