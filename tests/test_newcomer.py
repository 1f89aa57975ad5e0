"""Calls that somebody makes who has just installed ferrank: each gives the answer or the message wanted.

They stand in ``newcomer_calls.txt``: a call, and below it what its outcome begins with, be it the answer as
Python shows it or an exception with its message, with white space as one blank. Of a command that is the exit
code and what is printed.
"""

import io
import os
import pathlib
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_digits, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import ferrank as fr
import ferrank.evaluate as ev
from ferrank.cli import main

LINES = pathlib.Path(__file__).with_name("newcomer_calls.txt").read_text(encoding="utf-8").splitlines()
CALLS = list(zip(LINES[::2], LINES[1::2], strict=True))


def shell(arguments: str) -> str:
    """Return the exit code of a command and what it prints, on stderr if it fails."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(shlex.split(arguments))
        except SystemExit as end:
            code = int(end.code or 0)
    return f"{code} {(err if code else out).getvalue()}"


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What the calls refer to, in a folder with a few files."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = X[:, 0] + X[:, 1] ** 2 + 0.3 * rng.normal(size=200)
    c = (y > y.mean()).astype(int)
    df = pd.DataFrame(X, columns=list("abcdef"))
    full = df.assign(y=y)
    here = pathlib.Path.cwd()
    os.chdir(tmp_path_factory.mktemp("newcomer"))
    full.to_csv("t.csv", index=False)
    full.to_csv("semi.csv", sep=";", index=False, decimal=",")
    ranking = fr.rank(full, "y", n_estimators=10)
    ranking.save("r.json")
    ranking.save("r.csv")
    data = {"X": X, "y": y, "c": c, "s": np.where(c, "yes", "no"), "rng": rng, "df": df, "full": full}
    frames = {"pdf": pl.from_pandas(full), "tab": pa.Table.from_pandas(full)}
    ours = {"fr": fr, "ev": ev, "K": {"n_estimators": 10}, "F": fr.ForestRanker, "shell": shell}
    rankings = {"r": ranking, "j": fr.rank(full, "y")}
    libraries = {"np": np, "pd": pd, "pl": pl, "pa": pa, "sp": sp, "plt": plt, "io": io, "pathlib": pathlib}
    learners = (clone, load_diabetes, load_digits, load_iris, LinearRegression, LogisticRegression)
    tools = (GridSearchCV, cross_val_score, make_pipeline)
    called = {one.__name__: one for one in (*learners, *tools)}
    yield data | frames | ours | rankings | libraries | called
    os.chdir(here)


def outcome(call: Callable[[], Any]) -> str:
    try:
        answer = call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return answer if isinstance(answer, str) and answer[:1].isdigit() else repr(answer)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "wanted"), CALLS, ids=[call for call, _ in CALLS])
def test_a_call(names: dict[str, Any], call: str, wanted: str) -> None:
    plain = " ".join(outcome(lambda: eval(call, dict(names))).split())
    wanted = " ".join(wanted.split())
    assert plain[: len(wanted)] == wanted


def test_there_are_many() -> None:
    assert len(CALLS) >= 200
