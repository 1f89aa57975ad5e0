"""A study: all cells of data sets, rankers and splits, done in parallel and none twice."""

import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pyarrow.feather
from joblib import Parallel, delayed

from ferrank.data.dataset import Dataset
from ferrank.data.source import read_all
from ferrank.errors import DataError, ResourceError, SettingError
from ferrank.evaluate.evaluation import UNWEIGHTED
from ferrank.evaluate.rows import read_rows
from ferrank.evaluate.study.cells import SCHEMA, Cell, Judge, WeightedNeighbors
from ferrank.evaluate.study.results import Results
from ferrank.evaluate.study.splits import CrossValidation, Repeated, Split
from ferrank.output import replace
from ferrank.progress import Progress, shown

__all__ = ["Study"]

Array = np.ndarray[Any, Any]
Work = tuple[Cell, Callable[[], pa.Table]]


class Study:
    """Rankers on data sets, judged on several splits of their rows.

    Parameters
    ----------
    data : mapping of str to Dataset, or to (Dataset, Dataset)
        The data sets by name. Two are rows for training and for testing, which are then not split.
    rankers : mapping of str to ranker
        The rankers by name; each score of a ranker is a method, and "unweighted" one more.
    judge : WeightedNeighbors or callable, optional
        What says how good a ranking is; by default 15 weighted neighbors.
    splits : Repeated or CrossValidation, optional
        How rows are parted; by default ten times into two thirds and one third.
    labelled : sequence of int, optional
        Numbers of training rows that keep their targets, each of which is tried; of fewer rows each is among
        those of more. By default all rows keep them.
    folder : path, optional
        Where results are kept, a file for each cell, so that a study that was killed goes on from there.
    random_state : int, default=0
        Seed of the splits.

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
        judge: Judge | None = None,
        splits: Repeated | CrossValidation | None = None,
        labelled: Sequence[int] | None = None,
        folder: str | os.PathLike[str] | None = None,
        random_state: int = 0,
    ) -> None:
        for what, names in (("data", data), ("rankers", rankers)):
            if not names:
                raise SettingError(f"{what}: there are none; give one at least")
        self.data, self.rankers = dict(data), dict(rankers)
        self.judge: Judge = WeightedNeighbors() if judge is None else judge
        self.splits = Repeated() if splits is None else splits
        self.labelled: list[int | None] = [None] if labelled is None else list(labelled)
        self.folder = None if folder is None else Path(folder)
        self.random_state = random_state
        self.results: Results | None = None
        self._known: dict[str, list[Work]] = {}

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
        done, left = self._done(), []
        total = 0
        for name in self.data:
            for cell, work in self._cells(name):
                total += 1
                if _file_name(cell) not in done:
                    left.append((cell, work))
        with shown(progress) as report:
            for number, (cell, table) in enumerate(
                _worked(left, n_jobs, client), start=total - len(left) + 1
            ):
                done[_file_name(cell)] = table
                self._keep(cell, table)
                if report is not None:
                    report("studying", number, total)
        cells = [cell for name in self.data for cell, _ in self._cells(name)]
        self.results = Results(pa.concat_tables(self._once(cell, done[_file_name(cell)]) for cell in cells))
        if self.folder is not None:
            self.results.save(self.folder / "results.arrow")
        return self.results

    def table(self, measure: str | None = None, labelled: int | None = None) -> Any:
        """Return :meth:`Results.table` of the results."""
        return self._found().table(measure, labelled)

    def compare(self, *methods: str, **settings: Any) -> Any:
        """Return :meth:`Results.compare` of the results."""
        return self._found().compare(*methods, **settings)

    def _found(self) -> Results:
        if self.results is None:
            raise SettingError("study: it has no results yet; call run() first")
        return self.results

    def _cells(self, name: str) -> list[Work]:
        """Return the cells of a data set, in the order of the results."""
        if name not in self._known:
            self._known[name] = list(self._new_cells(name))
        return self._known[name]

    def _new_cells(self, name: str) -> list[Work]:
        tables, roles, splits = self._split(name)
        cells: list[Work] = []
        for split, train, test in splits:
            for number in self.labelled:
                hidden = _hidden(tables[0], roles, train, number, (self.random_state, *map(ord, split)))
                for ranker in self.rankers:
                    cell = Cell(name, ranker, split, number)
                    cells.append((cell, _Task(self, cell, tables, roles, train, test, hidden)))
        return cells

    def _split(self, name: str) -> tuple[tuple[pa.Table, pa.Table], dict[str, Any], list[Split]]:
        given = self.data[name]
        train, test = given if isinstance(given, tuple) else (given, None)
        if not isinstance(train, Dataset):
            raise SettingError(f"data: '{name}' is no Dataset; make one, with its target")
        source, roles = train.source(), train.roles()
        problem = source.resolve(roles)
        roles = roles | {
            "target": [target for target, _ in problem["targets"]],
            "target_last": None,
            "task": problem["task"],
        }
        table = read_all(source)
        if test is not None:
            other = read_all(train.with_rows(test.data if isinstance(test, Dataset) else test).source())
            everything = np.arange(table.num_rows), np.arange(other.num_rows)
            return (table, other), roles, [("given", *everything)]
        return (table, table), roles, self.splits.of(read_rows(source, roles, 0.75), self.random_state)

    def _done(self) -> dict[str, pa.Table]:
        """Return the results of the cells in the folder, which must be of this study."""
        if self.folder is None:
            return {}
        cells = self.folder / "cells"
        cells.mkdir(parents=True, exist_ok=True)
        about, path = self._about(), self.folder / "study.json"
        if path.exists():
            known = json.loads(path.read_text(encoding="utf-8"))
            differs = next((key for key in about if about[key] != known.get(key)), None)
            if differs is not None:
                raise SettingError(
                    f"{differs}: another one than of the results in {self.folder}; take another folder"
                )
        replace(path, lambda partial: partial.write_text(json.dumps(about, indent=1), encoding="utf-8"))
        found = {}
        for file in sorted(cells.glob("*.arrow")):
            table = _read(file)
            found[file.stem] = table
        return found

    def _about(self) -> dict[str, str]:
        """Return what results depend on, but for the data; rankers and data sets may be added."""
        return {
            "judge": repr(self.judge),
            "splits": repr(self.splits),
            "random_state": str(self.random_state),
        } | {f"rankers: {name}": _fingerprint(ranker) for name, ranker in self.rankers.items()}

    def _once(self, cell: Cell, table: pa.Table) -> pa.Table:
        """Return the results of a cell; the baseline, which all rankers have, counts with the first."""
        if cell.ranker == next(iter(self.rankers)):
            return table
        return table.filter(pa.compute.not_equal(table["method"], UNWEIGHTED))

    def _keep(self, cell: Cell, table: pa.Table) -> None:
        if self.folder is not None:
            path = self.folder / "cells" / f"{_file_name(cell)}.arrow"
            replace(path, lambda partial: pyarrow.feather.write_feather(table, str(partial)))


class _Task:
    """The work of a cell; travels to workers."""

    def __init__(
        self,
        study: Study,
        cell: Cell,
        tables: tuple[pa.Table, pa.Table],
        roles: dict[str, Any],
        train: Array,
        test: Array,
        hidden: Array,
    ) -> None:
        self._cell, self._ranker, self._judge = cell, study.rankers[cell.ranker], study.judge
        self._tables, self._roles = tables, roles
        self._train, self._test, self._hidden = train, test, hidden

    def __call__(self) -> pa.Table:
        train, test = self._tables[0].take(self._train), self._tables[1].take(self._test)
        try:
            return self._cell.run(self._ranker, self._judge, train, test, self._roles, self._hidden)
        except DataError as error:
            raise DataError(
                f"{self._cell.data}, {self._cell.ranker}, split {self._cell.split}: {error}"
            ) from error


def _worked(left: list[Work], n_jobs: int, client: Any) -> Any:
    """Give each cell with its results, as they come."""
    if client is not None:
        from distributed import as_completed

        futures = {client.submit(work, pure=False): cell for cell, work in left}
        for future in as_completed(list(futures)):
            yield futures.pop(future), future.result()
        return
    called = Parallel(n_jobs=n_jobs, return_as="generator_unordered")(
        delayed(_call)(number, work) for number, (_, work) in enumerate(left)
    )
    for number, table in called:
        yield left[number][0], table


def _call(number: int, work: Callable[[], pa.Table]) -> tuple[int, pa.Table]:
    return number, work()


def _hidden(
    table: pa.Table, roles: dict[str, Any], train: Array, labelled: int | None, seed: tuple[int, ...]
) -> Array:
    """Return the training rows that lose their targets; those of more labelled rows are among them."""
    if labelled is None:
        return np.zeros(0, dtype=np.int64)
    targets = table.select(roles["target"]).take(train)
    known = np.logical_or.reduce([column.is_valid().to_numpy() for column in targets.columns])
    order = np.random.default_rng(seed).permutation(np.flatnonzero(known))
    if labelled < 1 or labelled > len(order):
        raise SettingError(
            f"labelled: {labelled} of {len(order)} training rows with a target; use 1 … {len(order)}"
        )
    return np.sort(order[labelled:])


def _fingerprint(ranker: Any) -> str:
    told = ranker.get_params() if hasattr(ranker, "get_params") else repr(ranker)
    text = json.dumps([type(ranker).__name__, told], default=repr, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _file_name(cell: Cell) -> str:
    """Return a name for the cell's file; other characters than letters and digits are written as codes."""
    return re.sub(r"[^\w.-]", lambda found: f"%{ord(found[0]):x}", cell.name)


def _read(path: Path) -> pa.Table:
    try:
        table = pyarrow.feather.read_table(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise ResourceError(f"{path}: {error}; remove it, and its cell is done anew") from error
    if table.schema.names != SCHEMA.names:
        raise ResourceError(f"{path}: holds no results of a study; remove it")
    return table
