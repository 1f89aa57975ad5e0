"""Hashes of rankings: a change that must keep all bits prints the same lines before and after.

    python benches/bits.py [-k PART_OF_A_NAME] [--output FILE] [--compare FILE]

Each line is the name of a case and a hash of its importances, Monte Carlo errors and ranks, bit by bit.
Data are drawn by NumPy's PCG64 or are sets of tests/data. `Compat` bridges names that changed, so that the
script runs on older versions, too.
"""

import argparse
import hashlib
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp

import ferrank as fr

DATA = Path(__file__).parents[1] / "tests" / "data"
SCORES = ("genie3", "symbolic", "coverage", "permutation")
PLAIN = SCORES[:3]
CASES: dict[str, Callable[[], Any]] = {}


class Compat:
    """Names that users see and that changed."""

    # Data with missing values are ranked by the rule that was the only one at first.
    IGNORE: ClassVar[dict[str, Any]] = (
        {"missing": "ignore"} if "missing" in fr.ForestRanker().get_params() else {}
    )
    TEMP_DIR = "temp_dir" if "temp_dir" in fr.ForestRanker().get_params() else "scratch"

    @staticmethod
    def result(ranker: Any) -> Any:
        """Return the Ranking of a fitted ranker."""
        return getattr(ranker, "result_", None) or ranker.ranking_

    @staticmethod
    def score(score: dict[str, Any]) -> dict[str, Any]:
        """Return what all versions have of a score; rank intervals once followed from other errors."""
        errors = score["monte_carlo_error"] if "monte_carlo_error" in score else score["std_error"]
        kept = {name: score[name] for name in ("importance", "rank", "by_target") if name in score}
        return kept | {"monte_carlo_error": errors}


def plain(value: Any) -> Any:
    """Return what a hash is taken of: numbers by their bits, objects by their public content."""
    if hasattr(value, "to_dict") and hasattr(value, "features"):
        value = {name: Compat.score(score) for name, score in value.to_dict()["scores"].items()}
    if isinstance(value, pa.Table):
        value = value.to_pydict()
    if isinstance(value, pd.DataFrame):
        value = {str(name): list(value[name]) for name in value.columns}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(name): plain(part) for name, part in sorted(value.items(), key=lambda item: str(item[0]))}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float | np.floating):
        return float(value).hex()
    if isinstance(value, np.integer):
        return int(value)
    return value if value is None or isinstance(value, int | str | bool) else str(value)


def digest(value: Any) -> str:
    """Return a hash of ``value``."""
    return hashlib.sha256(json.dumps(plain(value)).encode()).hexdigest()[:20]


def case(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Add a case under the name of the function, or ``name``."""
    name = kwargs.pop("name", function.__name__)
    if name in CASES:
        raise ValueError(f"two cases are called {name}")
    CASES[name] = lambda: function(*args, **kwargs)
    return function


def table(rows: int, seed: int, features: int = 10, *, gaps: bool = False, words: int = 0) -> dict[str, Any]:
    """Return columns of numbers and words, and a number ``y`` that depends on some of them."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {f"x{i}": rng.normal(size=rows).astype(np.float32) for i in range(features)}
    columns["few"] = rng.integers(0, 4, rows)
    columns["constant"] = np.zeros(rows)
    y = columns["x0"] + 2.0 * columns["x1"] * columns["x2"] + (columns["few"] == 2)
    for word, size in zip(range(words), (3, 12, 300), strict=False):
        codes = rng.integers(0, size, rows)
        columns[f"word{word}"] = pa.array([f"v{code}" for code in codes])
        y = y + codes % 3
    y = np.asarray(y, dtype=float) + 0.3 * rng.normal(size=rows)
    if gaps:
        for name in ("x1", "x4", "x7"):
            values = np.array(columns[name])
            values[rng.random(rows) < 0.15] = np.nan
            columns[name] = values
        if words:
            mask = rng.random(rows) < 0.1
            columns["word0"] = pa.array(columns["word0"].to_pylist(), mask=mask)
    columns["y"] = y
    return columns


def arrow(columns: dict[str, Any]) -> pa.Table:
    """Return columns as a table; NaN is a missing value."""
    arrays = {
        name: values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
        for name, values in columns.items()
    }
    return pa.table(arrays)


def classes(y: np.ndarray[Any, Any], count: int) -> pa.Array:
    """Return classes of equal sizes by the order of ``y``."""
    cuts = np.quantile(y, np.linspace(0, 1, count + 1)[1:-1])
    return pa.array([f"c{code}" for code in np.digitize(y, cuts)])


def label_columns(rows: int, count: int, seed: int) -> tuple[dict[str, Any], list[str]]:
    """Return features and boolean label columns that depend on them, and the labels' names."""
    columns = table(rows, seed)
    del columns["y"]
    rng = np.random.default_rng(seed + 1)
    names = [f"l{number}" for number in range(count)]
    for name in names:
        on = rng.choice(8, 3, replace=False)
        height = sum(columns[f"x{i}"] for i in on) + rng.normal(0, 0.5, rows)
        columns[name] = height > np.quantile(height, 0.85)
    return columns, names


def paths(rows: int, seed: int) -> tuple[dict[str, Any], pa.Array]:
    """Return features, and label sets of a tree of labels."""
    columns = table(rows, seed)
    y = columns.pop("y")
    rng = np.random.default_rng(seed)
    names = ["a", "a/b", "a/b/c", "a/d", "e", "e/f", "g/h/i"]
    sets = [
        [names[int(np.clip(value * 2 + 3, 0, 6))], *rng.choice(names, rng.integers(0, 2))]
        if value > -2
        else []
        for value in y
    ]
    return columns, pa.array(sets, type=pa.list_(pa.string()))


def rank(data: Any, target: Any, ranker: Any = None, **kwargs: Any) -> Any:
    """Rank ``data``."""
    return fr.rank(arrow(data) if isinstance(data, dict) else data, target, ranker=ranker, **kwargs)


def forest(**settings: Any) -> Any:
    """Return a small forest."""
    return fr.ForestRanker(**{"n_estimators": 8, "random_state": 3, "n_jobs": 2} | settings)


def forest_on(gaps: bool, settings: dict[str, Any]) -> Any:
    """Return a small forest for data with or without ``gaps``."""
    return forest(**(Compat.IGNORE if gaps else {}) | settings)


def relief(**settings: Any) -> Any:
    """Return a Relief ranker."""
    return fr.ReliefRanker(**{"random_state": 3, "n_jobs": 2} | settings)


def regression(seed: int = 1, **settings: Any) -> Any:
    """Rank for one number."""
    gaps = settings.pop("gaps", False)
    columns = table(3000, seed, gaps=gaps, words=settings.pop("words", 0))
    return rank(columns, "y", forest_on(gaps, settings))


def classification(count: int, **settings: Any) -> Any:
    """Rank for classes."""
    gaps = settings.pop("gaps", False)
    columns = table(3000, 4, gaps=gaps, words=settings.pop("words", 0))
    columns["y"] = classes(columns["y"], count)
    return rank(columns, "y", settings.pop("ranker", None) or forest_on(gaps, settings))


def several(count: int, **settings: Any) -> Any:
    """Rank for several numbers, or for numbers and classes."""
    gaps = settings.pop("gaps", False)
    columns = table(2500, 5, gaps=gaps, words=settings.pop("words", 0))
    rng = np.random.default_rng(6)
    y = columns.pop("y")
    names = [f"y{number}" for number in range(count)]
    for number, name in enumerate(names):
        columns[name] = y + number * columns["x5"] + rng.normal(size=len(y))
        if settings.get("target_gaps"):
            columns[name] = np.where(rng.random(len(y)) < 0.2, np.nan, columns[name])
    settings.pop("target_gaps", None)
    if settings.pop("mixed", False):
        columns["kind"] = classes(y, 3)
        names.append("kind")
    return rank(columns, names, settings.pop("ranker", None) or forest_on(gaps, settings))


def multi_label(count: int, **settings: Any) -> Any:
    """Rank for label columns."""
    columns, names = label_columns(2500, count, 7)
    return rank(columns, names, settings.pop("ranker", None) or forest(**settings), task="multi-label")


def hierarchical(*, dag: bool = False, **settings: Any) -> Any:
    """Rank for label sets of a hierarchy."""
    columns, sets = paths(1500, 8)
    columns["labels"] = sets
    kwargs: dict[str, Any] = {"task": "hierarchical"}
    if dag:
        columns["labels"] = pa.array([[name.split("/")[-1] for name in row] for row in sets.to_pylist()],
                                     type=pa.list_(pa.string()))  # fmt: skip
        kwargs["hierarchy"] = {"a": None, "e": None, "g": None, "b": ["a", "e"], "c": ["b"], "d": ["a"],
                               "f": ["e", "g"], "h": ["g"], "i": ["h", "b"]}  # fmt: skip
    return rank(columns, "labels", settings.pop("ranker", None) or forest(**settings), **kwargs)


def partly_labelled(share: float, ranker: Any, kind: str = "number") -> Any:
    """Rank where only some rows have a target."""
    columns = table(1200, 9, gaps=True, words=1)
    known = np.random.default_rng(9).random(1200) < share
    if kind == "class":
        values = classes(columns["y"], 3).to_pylist()
        columns["y"] = pa.array([value if one else None for value, one in zip(values, known, strict=True)])
    else:
        columns["y"] = np.where(known, columns["y"], np.nan)
    return rank(columns, "y", ranker)


for ensemble in ("random_forest", "bagging", "extra_trees"):
    scores = PLAIN if ensemble == "extra_trees" else SCORES
    case(regression, name=f"regression {ensemble}", ensemble=ensemble, scores=scores)
    case(regression, name=f"gaps and words {ensemble}", ensemble=ensemble, scores=scores, gaps=True, words=3)
    case(regression, name=f"exact codes {ensemble}", ensemble=ensemble, scores=PLAIN, max_bins=65_535)
    case(classification, 2, name=f"two classes {ensemble}", ensemble=ensemble, scores=scores)
    case(
        classification,
        5,
        name=f"five classes {ensemble}",
        ensemble=ensemble,
        scores=scores,
        gaps=True,
        words=2,
    )
    case(several, 3, name=f"three targets {ensemble}", ensemble=ensemble, scores=scores, by_target=True)
    case(several, 16, name=f"sixteen targets {ensemble}", ensemble=ensemble, scores=scores, gaps=True)
    case(several, 2, name=f"mixed targets {ensemble}", ensemble=ensemble, scores=scores, mixed=True, words=1)
    case(multi_label, 6, name=f"six labels {ensemble}", ensemble=ensemble, scores=scores)
    case(multi_label, 60, name=f"sixty labels {ensemble}", ensemble=ensemble, scores=PLAIN)
    case(hierarchical, name=f"hierarchy {ensemble}", ensemble=ensemble, scores=scores)
    informative = {"ensemble": ensemble, "scores": scores, "gaps": True, "missing": "informative"}
    case(regression, name=f"informative gaps {ensemble}", **informative)
    case(regression, name=f"informative gaps and words {ensemble}", words=3, **informative)
    case(classification, 5, name=f"informative gaps, classes {ensemble}", words=2, **informative)
    case(several, 16, name=f"informative gaps, sixteen targets {ensemble}", **informative)
    case(several, 2, name=f"informative gaps, mixed targets {ensemble}", mixed=True, words=1, **informative)
case(regression, name="few bins", max_bins=16, scores=SCORES)
case(regression, name="lowest ties", ties="lowest", words=2)
case(regression, name="depth and leaves", max_depth=4, min_samples_leaf=20, scores=SCORES)
case(regression, name="half of the rows", max_samples=0.5, max_features=0.4, scores=SCORES)
case(regression, name="one thread", n_jobs=1, scores=SCORES)
case(regression, name="extra trees with bootstrap", ensemble="extra_trees", bootstrap=True, scores=SCORES)
case(
    several,
    3,
    name="per target",
    per_target=True,
    target_gaps=True,
    unlabelled="ignore",
    scores=("genie3", "permutation"),
)
case(
    several,
    3,
    name="target gaps and weights",
    target_gaps=True,
    unlabelled="ignore",
    target_weights=[1.0, 2.0, 0.5],
    scores=SCORES,
)
case(hierarchical, dag=True, name="directed acyclic hierarchy", scores=SCORES, hierarchy_decay=0.6)
case(
    partly_labelled,
    0.3,
    forest(supervision=0.5, unlabelled="use", scores=SCORES, **Compat.IGNORE),
    name="semi-supervised forest",
)
case(
    partly_labelled,
    0.3,
    forest(supervision=0.2, unlabelled="use", ensemble="extra_trees", **Compat.IGNORE),
    name="semi-supervised extra trees",
)
case(partly_labelled, 0.5, forest(unlabelled="ignore", **Compat.IGNORE), name="unlabelled ignored")

for count in (2, 4):
    case(
        classification,
        count,
        name=f"ReliefF {count} classes",
        ranker=relief(n_neighbors=(3, 10), sigma=(None, 20)),
    )
case(classification, 3, name="ReliefF gaps and words", gaps=True, words=2, ranker=relief(n_neighbors=5))
case(
    classification, 3, name="ReliefF and myopic", ranker=relief(scores=("relief", "myopic"), n_iterations=0.5)
)
case(several, 1, name="RReliefF", ranker=relief(n_neighbors=(10, 40), sigma=20))
case(several, 3, name="MTR-Relief", gaps=True, words=1, target_gaps=False, ranker=relief(n_neighbors=8))
case(
    several,
    3,
    name="Relief per target",
    mixed=True,
    ranker=relief(per_target=True, target_weights=[1, 2, 1, 1]),
)
case(several, 2, name="Relief mixed targets", mixed=True, ranker=relief(n_iterations=200))
case(
    multi_label,
    6,
    name="Relief label distances",
    ranker=relief(target_distance=("hamming", "accuracy", "f1", "subset")),
)
case(hierarchical, name="Relief hierarchy", ranker=relief(target_distance=("hamming", "f1")))
case(partly_labelled, 0.3, relief(unlabelled="use", influence=(0.2, 0.9)), name="semi-supervised Relief")
case(partly_labelled, 0.3, relief(unlabelled="use"), "class", name="semi-supervised Relief of classes")
case(partly_labelled, 0.5, relief(unlabelled="ignore"), name="Relief without unlabelled rows")


@case
def row_weights() -> Any:
    columns = table(2500, 11, gaps=True, words=1)
    columns["w"] = np.random.default_rng(1).random(2500) + 0.1
    return rank(columns, "y", forest(scores=SCORES, **Compat.IGNORE), sample_weight="w")


@case
def integer_weights_and_two_targets() -> Any:
    columns = table(2500, 12)
    columns["z"] = columns["y"] * columns["x3"]
    columns["w"] = np.random.default_rng(1).integers(0, 3, 2500)
    return rank(columns, ["y", "z"], forest(scores=SCORES), sample_weight="w")


@case
def wide() -> Any:
    rng = np.random.default_rng(13)
    X = rng.normal(size=(50, 3000))
    return [Compat.result(ranker.fit(X, X[:, 0] + X[:, 1])) for ranker in (forest(), relief(n_neighbors=5))]


@case
def unsupervised() -> Any:
    columns = table(1000, 14, gaps=True, words=1)
    del columns["y"]
    return rank(columns, None, forest(scores=PLAIN, **Compat.IGNORE), task="unsupervised")


@case
def sparse() -> Any:
    X = sp.random_array((1500, 400), density=0.02, format="csr", rng=np.random.default_rng(15))
    y = X[:, [0]].toarray().ravel() + X[:, [1]].toarray().ravel()
    names = np.where(y > 0, "some", "none")
    rankers = (
        forest(),
        forest(ensemble="extra_trees"),
        relief(n_neighbors=4),
        relief(n_neighbors=4, n_jobs=1),
    )
    return [Compat.result(ranker.fit(X, names)) for ranker in rankers]


@case
def many_sparse_features() -> Any:
    rng = np.random.default_rng(16)
    X = sp.random_array((1200, 3000), density=0.01, format="csr", rng=rng)
    X.data[::20] *= -1
    y = X[:, :300].sum(axis=1)
    names = np.where(y > 0, "some", "none")
    rankers = (forest(), forest(ensemble="extra_trees"), forest(scores=SCORES))
    return [Compat.result(ranker.fit(X, names)) for ranker in rankers] + [
        Compat.result(forest().fit(X, y)),
        Compat.result(forest().fit(X, np.c_[y, y**2])),
    ]


@case
def containers() -> Any:
    columns = {name: values for name, values in table(800, 16).items() if not isinstance(values, pa.Array)}
    frame = pd.DataFrame(columns)
    X, y = frame.drop(columns="y"), frame["y"]
    found = [forest().fit(X, y), forest().fit(X.to_numpy(), y.to_numpy()), forest().fit(arrow(dict(X)), y)]
    return [Compat.result(one).importances() for one in found]


@case
def files() -> Any:
    enb = rank(DATA / "enb.arff", None, forest(scores=SCORES), target_last=2)
    emotions = rank(DATA / "emotions.arff", None, relief(target_distance="f1"), labels=DATA / "emotions.xml")
    church = rank(DATA / "church_FUN.arff", "class", forest(**Compat.IGNORE))
    anneal = rank(DATA / "anneal.arff", "class", forest(scores=SCORES, **Compat.IGNORE))
    return [enb, emotions, church, anneal]


@case
def trees() -> Any:
    data = arrow(table(600, 17, gaps=True, words=2))
    return [fr.grow_tree(data, "y", tree=tree, ranker=forest(ensemble=ensemble, **Compat.IGNORE))
            for tree in (0, 3) for ensemble in ("random_forest", "extra_trees")]  # fmt: skip


@case
def small_memory() -> Any:
    columns = table(150_000, 18, features=12)
    held = int(re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())[1]) << 10
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "data.arrow"
        data = arrow(columns)
        with pa.ipc.new_file(path, data.schema) as writer:
            writer.write_table(data, 20_000)
        limit = {"memory_limit": held + (90 << 20), Compat.TEMP_DIR: folder}
        small = [forest(n_estimators=3, min_samples_leaf=50, scores=SCORES, **limit),
                 relief(n_iterations=60, **limit)]  # fmt: skip
        return [rank(str(path), "y", ranker) for ranker in small]


@case
def resumed() -> Any:
    data = arrow(table(700, 19))
    found = []
    for ranker in (forest(scores=SCORES, n_estimators=20), relief(n_neighbors=7)):
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder) / "run.ferrank"
            rank(data, "y", ranker, resume=path)
            whole = path.read_bytes()
            path.write_bytes(whole[: len(whole) * 2 // 3])
            found.append(rank(data, "y", ranker, resume=path))
    return found


@case
def merged() -> Any:
    data = arrow(table(900, 20))
    found = []
    for ranker in (forest(n_estimators=10), relief(n_neighbors=7)):
        known = fr.profile(data, "y", ranker=ranker)
        keys = list(fr.accumulate(data, "y", ranker=ranker, profile=known).keys)
        half = len(keys) // 2 or 1
        parts = [fr.accumulate(data, "y", ranker=ranker, profile=known, keys=range(first, end))
                 for first, end in ((half, len(keys)), (0, half)) if first < end]  # fmt: skip
        found.append(fr.merge(parts).ranking())
    return found


def streamed(ranker: Any) -> Iterator[Any]:
    """Yield the rankings of a stream."""
    columns = {name: values for name, values in table(4000, 21).items() if not isinstance(values, pa.Array)}
    frame = pd.DataFrame(columns)
    for start in range(0, 4000, 700):
        part = frame.iloc[start : start + 700]
        ranker.partial_fit(part.drop(columns="y"), part["y"])
    yield Compat.result(ranker)


for half_life in (None, 2000):
    case(lambda half: list(streamed(forest(block_rows=1000, reservoir_rows=500, half_life=half))), half_life,
         name=f"stream forest half-life {half_life}")  # fmt: skip
    case(lambda half: list(streamed(relief(block_rows=1000, reservoir_rows=500, half_life=half))), half_life,
         name=f"stream Relief half-life {half_life}")  # fmt: skip


@case
def dask_collections() -> Any:
    import dask
    import dask.dataframe as dd

    frame = pd.DataFrame(
        {name: values for name, values in table(1200, 22).items() if not isinstance(values, pa.Array)}
    )
    found = []
    with dask.config.set(scheduler="synchronous"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collection = dd.from_pandas(frame, npartitions=3)
        for settings in ({}, {"scope": "partition"}):
            found.append(fr.rank(collection, "y", ranker=forest(scores=SCORES, **settings)))
            found.append(fr.rank(collection, "y", ranker=relief(n_iterations=300, **settings)))
    return found


@case
def early_stopping() -> Any:
    data = arrow(table(20_000, 23))
    rankers = (forest(n_estimators=100, until="stable", stable_top=2), relief(until="stable", stable_top=1))
    return [rank(data, "y", ranker) for ranker in rankers]


@case
def judged() -> Any:
    from ferrank.evaluate import evaluate

    data = arrow(table(900, 25, gaps=True, words=1))
    train, test = data.slice(0, 600), data.slice(600)
    ranking = rank(train, "y", forest(**Compat.IGNORE))
    found = evaluate(train, {"forest": ranking}, test=test, target="y", n_neighbors=9)
    return found.to_pandas()


@case
def tuned() -> Any:
    columns = table(300, 24)
    columns["y"] = np.where(np.random.default_rng(2).random(300) < 0.4, columns["y"], np.nan)
    found = fr.tune(arrow(columns), "y", n_estimators=5, random_state=0)
    return [found.values, found.best, found.ranking]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-k", default="", help="run the cases whose names contain this")
    parser.add_argument("--output", type=Path, help="write the lines to this file as well")
    parser.add_argument(
        "--compare", type=Path, help="a file of lines to compare with; exit code 1 if one differs"
    )
    options = parser.parse_args()
    lines = []
    for name, function in CASES.items():
        if options.k in name:
            try:
                found = digest(function())
            except Exception as error:
                found = f"{type(error).__name__}: {error}"
            lines.append(f"{found}  {name}")
            print(lines[-1], flush=True)
    if options.output:
        options.output.write_text("\n".join(lines) + "\n")
    if options.compare:
        before = set(options.compare.read_text().splitlines())
        other = [line for line in lines if line not in before]
        print(f"{len(lines) - len(other)} of {len(lines)} cases have the same bits", file=sys.stderr)
        sys.exit(bool(other))


if __name__ == "__main__":
    main()
