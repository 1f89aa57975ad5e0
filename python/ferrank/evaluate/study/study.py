"""A study: all cells of data sets, rankers and splits, done in parallel and none twice."""

import functools
import hashlib
import io
import json
import os
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.feather
from joblib import Parallel, delayed

from ferrank._core import Source
from ferrank.data.dataset import Dataset
from ferrank.data.labels import closed_sets
from ferrank.data.opening import cause_of
from ferrank.data.parameters import kind_of, seed_of_splits
from ferrank.data.source import read_all
from ferrank.errors import DataError, FerrankError, ResourceError, SettingError
from ferrank.escape import visible
from ferrank.evaluate.baselines import BASELINES
from ferrank.evaluate.evaluation import UNWEIGHTED
from ferrank.evaluate.measures import MEASURES, measures_of
from ferrank.evaluate.rows import read_rows
from ferrank.evaluate.study.cells import OF_MODELS, Cell, NoisyTruth, read_numbers
from ferrank.evaluate.study.judges import Judge, WeightedNeighbors
from ferrank.evaluate.study.results import TIME, Results, checked_decimals
from ferrank.evaluate.study.splits import CrossValidation, Repeated, Split, hidden_rows
from ferrank.evaluate.synth import Synthetic
from ferrank.output import path_of, replace
from ferrank.progress import Progress, shown
from ferrank.rankers.estimators import RANKERS, ranker_of
from ferrank.ranking.text import shorten
from ferrank.resources import check_processes

__all__ = ["Study", "figures_in", "keep_figures"]

Array = np.ndarray[Any, Any]
Tables = tuple[pa.Table, pa.Table]
"""The rows of a data set that are for training, and those for testing; often the same."""
Work = tuple[Cell, Callable[[Tables], pa.Table]]
_ROWS_AT_ONCE = 1 << 16
_FIGURES = "figures"
"""The key of the files of figures in ``study.json``."""
_MOST_CELLS = 1_000_000
_MOST_BYTES = 100
"""Of the name of a data set or ranker in the name of a file, which has both and takes 255."""


class Study:
    """Rankers on data sets, judged on several splits of their rows.

    Parameters
    ----------
    data : mapping of str to Dataset, to (Dataset, Dataset) or to Synthetic
        The data sets by name. Two are rows for training and for testing, which are then not split.
    rankers : mapping of str to ranker, to the name of one, or to model
        The rankers by name; each score of a ranker is a method, and "unweighted" one more. A model, such as
        :class:`~ferrank.ReliefTree`, is judged by what it predicts itself.
    judge : WeightedNeighbors, ErrorCurves, Truth, KeptImportances or callable, or a mapping of names to them
        What says how good a ranking is; by default 15 weighted neighbors. Rows are ranked once for all.
    splits : Repeated or CrossValidation, optional
        How rows are parted; by default ten times into two thirds and one third.
    own_splits : mapping of str to Repeated or CrossValidation, optional
        How the rows of these data sets are parted instead.
    labelled : sequence of int, optional
        Numbers of training rows that keep their targets, each of which is tried; of fewer rows each is among
        those of more. In cross-validation they are counted over the folds of the training rows. Numbers above
        those of the rows of a data set are left out there. By default all rows keep their targets.
    n_trees : sequence of int, optional
        Numbers of trees. Each forest is grown once, to the greatest number; the others are its first trees.
    only : mapping of str to sequence of str, optional
        The data sets, or tasks, that a ranker or judge of that name is for; by default all.
    folder : path, optional
        Where results are kept, a file for each cell, so that a study that was killed goes on from there.
        Rankers and data sets may be added; changed ones, other rows of a data set too, are refused.
    decimals : int, optional
        Digits after the point to which means over splits are rounded before methods are ranked and tested,
        as papers do; by default they are not.
    random_state : int, default=0
        Seed of the splits. A ranker whose own ``random_state`` is None has another draw in each split, the
        same whenever the study is done.

    Attributes
    ----------
    results : Results or None
        What :meth:`run` found.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> from ferrank.evaluate import Repeated, Study
    >>> X = np.random.default_rng(0).normal(size=(150, 4))
    >>> data = {"line": fr.Dataset({"a": X[:, 0], "b": X[:, 1], "y": X[:, 0]}, "y")}
    >>> rankers = {"forest": fr.ForestRanker(n_estimators=10), "relief": fr.ReliefRanker()}
    >>> study = Study(data, rankers, splits=Repeated(n=3))
    >>> study.run()
    <Results of 1 data sets, 3 methods, 27 numbers>
    >>> sorted(study.table("rrmse").columns)
    ['forest', 'relief', 'unweighted']
    """

    def __init__(
        self,
        data: Mapping[str, Any],
        rankers: Mapping[str, Any],
        *,
        judge: Judge | Mapping[str, Judge] | None = None,
        splits: Repeated | CrossValidation | None = None,
        labelled: Sequence[int] | None = None,
        n_trees: Sequence[int] = (),
        only: Mapping[str, Sequence[str]] | None = None,
        own_splits: Mapping[str, Repeated | CrossValidation] | None = None,
        folder: str | os.PathLike[str] | None = None,
        decimals: int | None = None,
        random_state: int = 0,
    ) -> None:
        for what, mapping in (
            ("data", data),
            ("rankers", rankers),
            ("only", only or {}),
            ("own_splits", own_splits or {}),
        ):
            kind_of(mapping, Mapping, what, "a mapping by name")
        for what, kind, names in (("data", "data set", data), ("rankers", "ranker", rankers)):
            if not names:
                raise SettingError(f"{what}: there are none; give one at least")
            for name in names:
                _check_name(kind, name, in_files=folder is not None)
        for one, other in permutations(rankers, 2):
            if other.startswith(f"{one}:"):
                raise SettingError(f"rankers: '{other}' may be a score of '{one}' as well; call it otherwise")
        self.decimals = checked_decimals(decimals)
        self.data = dict(data)
        self.rankers = {name: _ranker(name, one) for name, one in rankers.items()}
        self.judge: Judge | Mapping[str, Judge] = WeightedNeighbors() if judge is None else judge
        for judging in self.judge.values() if isinstance(self.judge, Mapping) else [self.judge]:
            if not callable(judging):
                raise SettingError(
                    f"judge: {judging!r} judges nothing; use WeightedNeighbors, ErrorCurves or a function"
                )
        self.splits = Repeated() if splits is None else splits
        self.only, self.own_splits = dict(only or {}), dict(own_splits or {})
        for where, split in [("splits", self.splits), *self.own_splits.items()]:
            if not isinstance(split, (Repeated, CrossValidation)):
                raise SettingError(f"{where}: {split!r} parts no rows; use Repeated or CrossValidation")
        self.labelled: list[int | None] = (
            [None] if labelled is None else [*_counts("labelled", labelled, "rows")]
        )
        self.n_trees = _counts("n_trees", n_trees, "trees")
        n_splits = sum(
            1 if isinstance(one, tuple) else self._splits_of(name).n_splits for name, one in self.data.items()
        )
        n_cells = n_splits * len(self.rankers) * len(self.labelled)
        if n_cells > _MOST_CELLS:
            raise SettingError(
                f"splits: {n_splits:,} splits of all data sets, {len(self.rankers):,} rankers and "
                f"{len(self.labelled):,} numbers of labelled rows make {n_cells:,} cells; ask for "
                f"fewer splits, as a study has {_MOST_CELLS:,} cells at most"
            )
        judges = self.judge if isinstance(self.judge, Mapping) else {}
        both = next((name for name in self.rankers if name in judges), None)
        if both is not None and both in self.only:
            raise SettingError(f"only: '{both}' is a ranker and a judge; call one of them otherwise")
        known = {*self.rankers, *judges}
        unknown = next((name for name in self.only if name not in known), None)
        if unknown is not None:
            raise SettingError(f"only: there is no ranker or judge '{unknown}'")
        self.folder = None if folder is None else path_of(folder, "folder")
        self.random_state = seed_of_splits(random_state)
        self.results: Results | None = None
        self._known: dict[str, tuple[list[Work], Tables, str]] = {}
        self._described: dict[str, dict[str, Any]] = {}

    def run(self, *, n_jobs: int = 1, client: Any = None, progress: Progress | bool | None = None) -> Results:
        """Do the cells that are not done yet, and return the results of all.

        Parameters
        ----------
        n_jobs : int, default=1
            Processes that work at the same time, as joblib counts them; each cell takes one thread.
        client : dask.distributed.Client, optional
            The cluster that works instead.
        progress : callable or bool, optional
            Called as ``progress("studying", done, total)`` with numbers of cells; True draws a line.

        Raises
        ------
        DataError, SettingError, ColumnTypeError, ResourceError
            The message names the data set, the setting or the file; results that are done are kept.
        """
        check_processes(n_jobs)
        self._known = {}
        all_work = [one for name in self.data for one in self._cells(name)[0]]
        total, done = len(all_work), self._done([cell for cell, _ in all_work])
        left = [(cell, work) for cell, work in all_work if _file_name(cell) not in done]
        tables = {name: self._cells(name)[1] for name in self.data}
        with shown(progress) as report:
            for number, (cell, table) in enumerate(
                _worked(left, tables, n_jobs, client), start=total - len(left) + 1
            ):
                done[_file_name(cell)] = table
                self._keep(cell, table)
                if report is not None:
                    report("studying", number, total)
        first: dict[tuple[Any, ...], str] = {}
        for cell, _ in all_work:
            first.setdefault((cell.data, cell.split, cell.labelled), cell.ranker)
        numbers = pa.concat_tables(_once(cell, done[_file_name(cell)], first) for cell, _ in all_work)
        described = [{"data": name, **self._described[name]} for name in self.data]
        self.results = Results(numbers, pa.Table.from_pylist(described), self.decimals)
        if self.folder is not None:
            self.results.save(self.folder / "results.arrow")
        return self.results

    def measures(self) -> list[str] | None:
        """Return the measures that results can have; None if a judge of your own is among the judges."""
        judges = self.judge.values() if isinstance(self.judge, Mapping) else [self.judge]
        known = [getattr(judge, "measures", None) for judge in judges]
        if None in known:
            return None
        tasks = [self._task(name) for name in self.data]
        names = {name for of_task in known if of_task for task in tasks for name in of_task(task)} | {TIME}
        if any(hasattr(ranker, "predict") for ranker in self.rankers.values()):
            names.update(OF_MODELS, *map(measures_of, tasks))
        return [name for name in MEASURES if name in names]

    def table(self, *args: Any, **settings: Any) -> Any:
        """Return :meth:`Results.table` of the results."""
        return self._found().table(*args, **settings)

    def compare(self, *methods: str, **settings: Any) -> Any:
        """Return :meth:`Results.compare` of the results."""
        return self._found().compare(*methods, **settings)

    def _found(self) -> Results:
        if self.results is None:
            raise SettingError("study: it has no results yet; call run() first")
        return self.results

    def _cells(self, name: str) -> tuple[list[Work], Tables, str]:
        """Return the cells of a data set, in the order of the results, its rows and their checksum."""
        if name not in self._known:
            tables, roles, splits = self._split(name)
            cells = list(self._new_cells(name, tables, roles, splits))
            self._known[name] = cells, tables, _checksum(tables, roles)
        return self._known[name]

    def _new_cells(
        self, name: str, tables: Tables, roles: dict[str, Any], splits: list[Split]
    ) -> Iterator[Work]:
        def chosen(named: Mapping[Any, Any]) -> dict[Any, Any]:
            allowed = {key: self.only.get(key, [name]) for key in named}
            return {key: one for key, one in named.items() if {name, roles["task"]} & set(allowed[key])}

        rankers = chosen(self.rankers)
        judges = chosen(self.judge) if isinstance(self.judge, Mapping) else {None: self.judge}
        if not rankers or not judges:
            raise SettingError(
                f"only: no {'judge' if rankers else 'ranker'} is left for the data set '{name}'"
            )
        masks = self._masks(name, tables[0], roles, splits)
        for place, (split, train, test) in enumerate(splits):
            for number, hidden in masks.items():
                for ranker, one in rankers.items():
                    cell = Cell(name, ranker, split, number)
                    yield cell, _Task(cell, one, judges, self.n_trees, roles, (train, test, hidden[place]))

    def _masks(
        self, name: str, table: pa.Table, roles: dict[str, Any], splits: list[Split]
    ) -> dict[int | None, list[Array]]:
        """Return the training rows of each split that lose their targets, by the number that keep them."""
        known = np.logical_or.reduce(
            [column.is_valid().to_numpy() for column in table.select(roles["target"]).columns]
        )
        is_given = isinstance(self.data[name], tuple)
        folds = isinstance(self._splits_of(name), CrossValidation) and not is_given
        masks: dict[int | None, list[Array]] = {}
        for number in self.labelled:
            found = (
                [np.zeros(0, dtype=np.int64)] * len(splits)
                if number is None
                else hidden_rows(splits, known, number, self.random_state, folds=folds)
            )
            if found is not None:
                masks[number] = found
        if not masks:
            raise SettingError(
                f"labelled: '{name}' has {int(known.sum())} rows with a target, too few for training sets "
                f"with {self.labelled[0]} of them; name a smaller number"
            )
        return masks

    def _task(self, name: str) -> str:
        given = self.data[name]
        if isinstance(given, Synthetic):
            return given.task
        dataset = given[0] if isinstance(given, tuple) else given
        with _named(name):
            task: str = dataset.source().resolve(dataset.roles())["task"]
        return task

    def _split(self, name: str) -> tuple[Tables, dict[str, Any], list[Split]]:
        given = self.data[name]
        relevance = None
        if isinstance(given, Synthetic):
            relevance = dict(zip(given.features, map(float, given.relevance), strict=True))
            given = Dataset(given.to_arrow(), given.targets, task=given.task)
        train, test = given if isinstance(given, tuple) else (given, None)
        if not isinstance(train, Dataset):
            raise SettingError(f"data: '{name}' is no Dataset; make one, with its target")
        with _named(name):
            source, roles = train.source(), train.roles()
            problem = source.resolve(roles)
        roles = roles | {
            "target": [target for target, _ in problem["targets"]],
            "target_last": None,
            "task": problem["task"],
            "relevance": relevance,
        }
        table = read_all(source)
        self._described[name] = _description(source, roles, problem, table.num_rows)
        if test is not None:
            other = read_all(train.with_rows(test.data if isinstance(test, Dataset) else test).source())
            self._described[name]["rows"] += other.num_rows
            everything = np.arange(table.num_rows), np.arange(other.num_rows)
            return (table, other), roles, [("given", *everything)]
        with _named(name):
            splits = self._splits_of(name).of(read_rows(source, roles, 0.75), self.random_state)
        return (table, table), roles, splits

    def _splits_of(self, name: str) -> Repeated | CrossValidation:
        return self.own_splits.get(name, self.splits)

    def _done(self, cells: Sequence[Cell]) -> dict[str, pa.Table]:
        """Return the results of those ``cells`` that are in the folder, which must be of this study."""
        if self.folder is None:
            return {}
        in_folder = _cells_folder(self.folder)
        about, path = self._about(), self.folder / "study.json"
        if os.path.lexists(path):
            known = _read_about(path)
            differs = next(
                (key for key in about if about[key] != known.get(key, about[key] if ": " in key else None)),
                None,
            )
            if differs is not None:
                what = "other rows or roles" if differs.startswith("data: ") else "another one"
                raise SettingError(
                    f"{differs}: {what} than of the results in {self.folder}; take another folder"
                )
            # What was drawn before is of other results.
            about = {key: value for key, value in known.items() if key != _FIGURES} | about
        files = {cell: in_folder / f"{_file_name(cell)}.arrow" for cell in cells}
        there = {cell: file for cell, file in files.items() if os.path.lexists(file)}
        if there and not path.exists():
            raise DataError(
                f"{path}: no such file, which says what the cells in {in_folder} are of; delete this folder, "
                "and the study is done anew"
            )
        replace(path, lambda partial: partial.write_text(json.dumps(about, indent=1), encoding="utf-8"))
        return {_file_name(cell): _read(file, cell) for cell, file in there.items()}

    def _about(self) -> dict[str, str]:
        """Return what results depend on; what has a name in its key, such as a ranker, may be added."""
        return {
            "judge": repr(self.judge),
            "splits": repr(self.splits),
            "n_trees": str(self.n_trees),
            "random_state": str(self.random_state),
            **{f"splits: {name}": repr(self._splits_of(name)) for name in self.data},
            **{f"rankers: {name}": _fingerprint(ranker) for name, ranker in self.rankers.items()},
            **{f"data: {name}": self._cells(name)[2] for name in self.data},
        }

    def _keep(self, cell: Cell, table: pa.Table) -> None:
        if self.folder is not None:
            path = self.folder / "cells" / f"{_file_name(cell)}.arrow"
            replace(path, lambda partial: pyarrow.feather.write_feather(table, str(partial)))


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Name the data set in errors, whose messages name its file."""
    try:
        yield
    except FerrankError as error:
        raise type(error)(f"data.{name}: {error}") from error


class _Task:
    """The work of a cell, but for the rows; travels to workers."""

    def __init__(
        self,
        cell: Cell,
        ranker: Any,
        judges: Mapping[Any, Judge],
        n_trees: list[int],
        roles: dict[str, Any],
        rows: tuple[Array, Array, Array],
    ) -> None:
        self._cell, self._ranker, self._judges, self._n_trees = cell, ranker, judges, n_trees
        self._roles, self._rows = roles, rows

    def __call__(self, tables: Tables) -> pa.Table:
        train, test, hidden = self._rows
        parts = tables[0].take(train), tables[1].take(test)
        try:
            return self._cell.run(self._ranker, self._judges, self._n_trees, *parts, self._roles, hidden)
        except DataError as error:
            raise DataError(
                f"{self._cell.data}, {self._cell.ranker}, split {self._cell.split}: {error}"
            ) from error


def _check_name(kind: str, name: Any, *, in_files: bool) -> None:
    """Raise an error if a data set or ranker cannot be called so in tables or in names of files."""
    if not isinstance(name, str) or visible(name) != name or not name.strip():
        raise SettingError(f"{kind} {name!r}: this is no name; use a text without control characters")
    if in_files and (size := len(_coded(name).encode())) > _MOST_BYTES:
        raise SettingError(
            f"{kind} '{shorten(name)}': the name takes {size} bytes in names of files; use a shorter one, of "
            f"at most {_MOST_BYTES}"
        )


def _ranker(name: str, given: Any) -> Any:
    """Return the ranker or model that was given or named."""
    if name == UNWEIGHTED:
        raise SettingError(f"rankers: '{name}' is the baseline; call the ranker otherwise")
    ranker = BASELINES[given]() if isinstance(given, str) and given in BASELINES else ranker_of(given)
    is_model = hasattr(ranker, "predict") and hasattr(ranker, "get_params")
    if not is_model and not hasattr(ranker, "_rank_source") and not isinstance(ranker, NoisyTruth):
        known = ", ".join([*RANKERS, *BASELINES])
        raise SettingError(f"rankers: '{name}' is no ranker and no model; give one, or one of {known}")
    return ranker


def _counts(setting: str, given: Any, of: str) -> list[int]:
    """Return the numbers that were given, which must be 1 or more."""
    is_list = isinstance(given, Sequence) and not isinstance(given, str)
    if not is_list or not all(
        isinstance(one, int | np.integer) and not isinstance(one, bool) and one >= 1 for one in given
    ):
        raise SettingError(f"{setting}: {given!r}; use a list of numbers of {of} from 1 on")
    return list(given)


def _description(
    source: Source, roles: dict[str, Any], problem: dict[str, Any], n_rows: int
) -> dict[str, Any]:
    """Return numbers of rows, features and targets, and the share of nominal features."""
    kinds = [kind for _, kind in problem["features"]]
    n_targets = len(problem["targets"])
    if problem["task"] == "hierarchical":
        n_targets = len(closed_sets(source, roles, 0.75).names)
    return {
        "rows": n_rows,
        "features": len(kinds),
        "nominal": float(np.mean([kind == "nominal" for kind in kinds])),
        "targets": n_targets,
    }


def _once(cell: Cell, table: pa.Table, first: Mapping[tuple[Any, ...], str]) -> pa.Table:
    """Return the results of a cell; the baseline, which all rankers have, counts with the first."""
    if cell.ranker == first[cell.data, cell.split, cell.labelled]:
        return table
    return table.filter(pa.compute.not_equal(table["method"], UNWEIGHTED))


def _worked(left: list[Work], tables: Mapping[str, Tables], n_jobs: int, client: Any) -> Any:
    """Give each cell with its results, as they come. The rows of a data set travel once."""
    if client is not None:
        from distributed import as_completed

        lent = {name: client.scatter([tables[name]])[0] for name in {cell.data for cell, _ in left}}
        futures = {client.submit(work, lent[cell.data], pure=False): cell for cell, work in left}
        for future in as_completed(list(futures)):
            yield futures.pop(future), future.result()
        return
    if n_jobs == 1:
        for cell, work in left:
            yield cell, work(tables[cell.data])
        return
    with tempfile.TemporaryDirectory() as folder:
        paths = {}
        for number, name in enumerate(dict.fromkeys(cell.data for cell, _ in left)):
            paths[name] = [str(Path(folder) / f"{number}.{part}.arrow") for part in ("train", "test")]
            for table, path in zip(tables[name], paths[name], strict=True):
                pyarrow.feather.write_feather(table, path, compression="uncompressed")
        called = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
            delayed(_call)(number, work, *paths[cell.data]) for number, (cell, work) in enumerate(left)
        )
        for number, table in called:
            yield left[number][0], table


def _call(number: int, work: Callable[[Tables], pa.Table], train: str, test: str) -> tuple[int, pa.Table]:
    _end_with_parent()
    return number, work((_mapped(train), _mapped(test)))


@functools.cache
def _end_with_parent() -> None:
    """End this process, which works for another one, soon after that was killed."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@functools.lru_cache(maxsize=4)
def _mapped(path: str) -> pa.Table:
    """Return the rows in a file, which each process maps once."""
    return pyarrow.feather.read_table(path)


def _fingerprint(ranker: Any) -> str:
    told = ranker.get_params() if hasattr(ranker, "get_params") else repr(ranker)
    text = json.dumps([type(ranker).__name__, told], default=repr, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _checksum(tables: Tables, roles: Mapping[str, Any]) -> str:
    """Return a checksum of rows and roles, the same however the rows are cut into chunks."""
    digest = hashlib.sha256(json.dumps(roles, default=repr, sort_keys=True).encode())
    train, test = tables
    for table in (train,) if test is train else tables:
        whole = table.unify_dictionaries().replace_schema_metadata(None)
        with pa.ipc.new_stream(pa.PythonFile(_Hashed(digest), mode="w"), whole.schema) as stream:
            for start in range(0, whole.num_rows, _ROWS_AT_ONCE):
                stream.write_table(whole.slice(start, _ROWS_AT_ONCE).combine_chunks())
    return digest.hexdigest()[:16]


class _Hashed(io.RawIOBase):
    """A file that keeps nothing but a checksum of what is written to it."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, content: Any) -> int:
        self._digest.update(content)
        return len(content)


def _cells_folder(folder: Path) -> Path:
    """Return the folder for the cells, which is made if it is not there."""
    cells = folder / "cells"
    try:
        cells.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        # A link that leads nowhere does not exist, and is in the way.
        file = next(path for path in (cells, *cells.parents) if os.path.lexists(path) and not path.is_dir())
        raise ResourceError(f"{file}: is a file; name a folder for the results") from error
    except (OSError, ValueError) as error:
        what = error.strerror if isinstance(error, OSError) else error
        raise ResourceError(
            f"{folder}: the folder cannot be made ({what}); name another one for the results"
        ) from error
    if not all(os.access(path, os.W_OK) for path in (folder, cells)):
        raise ResourceError(f"{folder}: cannot be written to; name another folder for the results")
    return cells


def _file_name(cell: Cell) -> str:
    """Return a name for the cell's file; other characters than letters and digits are written as codes.

    Points are, too, but for that of the split, so that no two cells have the same file.
    """
    own = cell.name.removeprefix(f"{cell.data}.{cell.ranker}.")
    return f"{_coded(cell.data)}.{_coded(cell.ranker)}.{_coded(own, '.')}"


def _coded(name: str, kept: str = "") -> str:
    return re.sub(rf"[^\w{kept}-]", lambda found: f"%{ord(found[0]):x}", name)


def _read(path: Path, cell: Cell) -> pa.Table:
    """Return the results in the file of a cell; anybody may have written to it."""
    try:
        table = read_numbers(path)
        if not table.num_rows or not _is_of(cell, table):
            raise DataError("holds no results of this cell")
    except (OSError, MemoryError, DataError, pa.ArrowException) as error:
        raise DataError(f"{path}: {error}; delete it, and its cell is done anew") from cause_of(error)
    return table


def _is_of(cell: Cell, table: pa.Table) -> bool:
    """Return whether the results name the data set, the ranker and the split of the cell alone."""
    expected = {"data": {cell.data}, "split": {cell.split}, "labelled": {cell.labelled}}
    methods = pa.compute.unique(table["method"]).to_pylist()
    return all(set(table[name].unique().to_pylist()) == known for name, known in expected.items()) and all(
        one in (cell.ranker, UNWEIGHTED) or str(one).startswith(f"{cell.ranker}:") for one in methods
    )


def keep_figures(folder: Path, files: Sequence[Path]) -> None:
    """Note the files of figures that were made of the results in a folder."""
    path = folder / "study.json"
    about = _read_about(path) | {_FIGURES: json.dumps([file.name for file in files])}
    replace(path, lambda partial: partial.write_text(json.dumps(about, indent=1), encoding="utf-8"))


def figures_in(folder: Path) -> list[str]:
    """Return the names of the files of figures that were made of the results in a folder."""
    path = folder / "study.json"
    if not path.exists():
        return []
    try:
        names = json.loads(_read_about(path).get(_FIGURES, "[]"))
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(
        isinstance(name, str) and Path(name).name == name for name in names
    ):
        raise DataError(f"{path}: '{_FIGURES}' are no names of files; do the study anew")
    return names


def _read_about(path: Path) -> dict[str, str]:
    """Return what the results in a folder depend on, as a study wrote it there."""
    try:
        if not path.is_file():
            raise DataError("is no regular file")
        about = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(about, dict) or not all(isinstance(value, str) for value in about.values()):
            raise DataError("is not what a study writes there")
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        raise DataError(
            f"{path}: {error}; delete its folder, and the study is done anew, or take another folder"
        ) from error
    return about
