"""Data sets: rows, the roles of their columns, and cached profiles."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank.data.classes import integer_targets, roles_of
from ferrank.data.hierarchy import edges_of
from ferrank.data.opening import Folder, numbered
from ferrank.data.source import is_lazy, open_source
from ferrank.data.tables import as_table
from ferrank.errors import ColumnTypeError, DataError, SettingError

__all__ = ["Dataset", "with_categories"]

Labels = str | os.PathLike[str] | None


class Dataset:
    """A data set: rows and the roles of their columns.

    Every function that takes data accepts a data set. The source is opened once. The profile computed by one
    ranker is reused by the next one with the same number of bins. A data set may be used by several threads.

    Parameters
    ----------
    data : path or paths, frame, table, reader, array, mapping of columns or dask collection
        As in :func:`ferrank.rank`.
    target : str or sequence of str, optional
        The targets. One of ``target``, ``target_last`` and ``labels`` is required, unless the file defines
        its labels or the task is "unsupervised".
    target_last : int, optional
        Number of columns at the end that are the targets.
    labels : path, optional
        MULAN label XML of an ARFF file; the labels are the targets.
    task : str, optional
        "classification", "regression", "multi-target", "multi-label", "hierarchical" or "unsupervised"; by
        default it follows from the targets.
    hierarchy : path, mapping, frame or table, optional
        Labels and their parents; see :class:`ferrank.ForestRanker`.
    sample_weight : str, optional
        Column of row weights.
    groups : str, optional
        Column of groups, such as the patient that a row belongs to, of any type and without missing values.
        It is not a feature. Rows of a group stay together: see :func:`ferrank.rank`.
    drop : str or sequence of str, default=()
        Columns to leave out.
    categorical_features : sequence of str or int, or mask, optional
        Columns that are nominal features whatever their type: names, positions, or a mask over all columns.
        For data in memory only.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
    >>> data = fr.Dataset({"a": a, "b": b, "y": b**2}, "y")
    >>> data
    <Dataset table: regression of y, 2 features>
    >>> fr.rank(data, n_estimators=20).top(1), fr.rank(data, ranker="relief").n_rows
    (['b'], 100)
    """

    def __init__(
        self,
        data: Any,
        target: str | Sequence[str] | None = None,
        *,
        target_last: int | None = None,
        labels: Labels = None,
        task: str | None = None,
        hierarchy: Any = None,
        sample_weight: str | None = None,
        groups: str | None = None,
        drop: str | Sequence[str] = (),
        categorical_features: Iterable[Any] | None = None,
    ) -> None:
        if sum(given is not None for given in (target, target_last, labels)) > 1:
            raise SettingError("target: give one of target, target_last and labels")
        self.target = [target] if isinstance(target, str) else target and list(target)
        self.target_last, self.labels, self.task = target_last, labels, task
        self.hierarchy, self.sample_weight, self.groups = hierarchy, sample_weight, groups
        self.drop = [drop] if isinstance(drop, str) else list(drop)
        self.data = data
        if categorical_features is not None:
            self.data = with_categories(data, categorical_features)
        self._source: _core.Source | None = None
        self._classes: dict[str, Any] | None = None
        self._profiles: dict[str, bytes] = {}
        self._is_checked = False

    def with_rows(self, data: Any) -> Self:
        """Return a data set of other rows whose columns have the same roles."""
        other = object.__new__(type(self))
        own = {"data": data, "_source": None, "_profiles": {}, "_is_checked": False}
        other.__dict__ = {**self.__dict__, **own}
        return other

    @property
    def is_lazy(self) -> bool:
        """True for a dask collection."""
        return is_lazy(self.data)

    @property
    def columns(self) -> list[str]:
        """Names of all columns."""
        return self.source().columns

    @property
    def features(self) -> list[str]:
        """Names of the features, in the order of the columns."""
        return [name for name, _ in self._problem()["features"]]

    @property
    def targets(self) -> list[str]:
        """Names of the targets."""
        return [name for name, _ in self._problem()["targets"]]

    def roles(self, task: str | None = None, hierarchy: Any = None) -> dict[str, Any]:
        """Return the roles of the columns as the engine takes them.

        ``task`` and ``hierarchy`` are those of a ranker, used if the data set has none. Without a task,
        integer targets are looked at at the first call: few distinct integers stand for classes, also in
        data sets with other rows (:meth:`with_rows`).
        """
        roles = {
            "target": self.target,
            "target_last": self.target_last,
            "task": self.task or task,
            "classes": [],
            "hierarchy": edges_of(hierarchy if self.hierarchy is None else self.hierarchy),
            "drop": self.drop,
            "weight": self.sample_weight,
            "groups": self.groups,
        }
        if roles["task"] is not None or self.is_lazy:
            return roles
        if self._classes is None:
            self._classes = roles_of([integer_targets(self.source(), roles)])
        return roles | self._classes

    def source(self, temp_dir: Folder = None, *, has_label_sets: bool = False) -> _core.Source:
        """Return the rows as a source of the engine, opened at the first call.

        Dropped columns, groups and label sets are not converted to numbers. Data that can be read only once
        is copied to a temporary file in ``temp_dir``.
        """
        if self._source is None:
            is_labels = has_label_sets or self.task == "hierarchical" or self.hierarchy is not None
            groups = [] if self.groups is None else [self.groups]
            as_text = [*self.drop, *groups, *((self.target or []) if is_labels else [])]
            self._source = open_source(self.data, labels=self.labels, as_text=as_text, temp_dir=temp_dir)
        return self._source

    def profile(self, roles: dict[str, Any], settings: dict[str, Any], make: Callable[[], bytes]) -> bytes:
        """Return the profile for these roles and settings, made by ``make`` at the first call."""
        parts = ("ranker", "max_bins", "unlabelled", "supervision", "hierarchy_decay")
        key = json.dumps([roles, {name: settings.get(name) for name in parts}], default=str)
        if key not in self._profiles:
            self._profiles[key] = make()
        return self._profiles[key]

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Return the rows as an Arrow stream, batch by batch."""
        if self.is_lazy:
            raise ColumnTypeError(
                "a dask collection has no Arrow stream; compute it first, or rank it as it is"
            )
        return self.source().__arrow_c_stream__(requested_schema)

    def _problem(self) -> dict[str, Any]:
        problem: dict[str, Any] = self.source().resolve(self.roles())
        return problem

    def __repr__(self) -> str:
        if self.is_lazy:
            return "<Dataset of a dask collection>"
        problem = self._problem()
        targets = [name for name, _ in problem["targets"]]
        shown = ", ".join(targets[:3]) + (f" and {len(targets) - 3} more" if len(targets) > 3 else "")
        what = f"{problem['task']} of {shown}" if targets else problem["task"]
        return f"<Dataset {self.source().name}: {what}, {len(problem['features'])} features>"


def with_categories(data: Any, categorical: Iterable[Any]) -> pa.Table:
    """Return ``data`` as a table in which the columns ``categorical`` are dictionaries of strings."""
    if isinstance(data, str | os.PathLike | list | tuple) or is_lazy(data):
        raise SettingError(
            "categorical_features: available for data in memory; in a file or a dask collection, store the "
            "columns as strings or dictionaries"
        )
    if isinstance(data, np.ndarray):
        table = pa.table(dict(zip(numbered(data.shape[1]), data.T, strict=True)))
    else:
        table = pa.table(as_table(data))
    for position in _positions(list(categorical), table.column_names):
        values = table.column(position)
        if not pa.types.is_dictionary(values.type):
            words = pa.chunked_array([_words(chunk) for chunk in values.chunks], pa.string())
            name = table.column_names[position]
            table = table.set_column(position, name, words.dictionary_encode())
    return table


def _words(values: pa.Array) -> pa.Array:
    """Return values as strings; NaN is missing."""
    if pa.types.is_floating(values.type):
        values = pa.array(values.to_numpy(zero_copy_only=False), from_pandas=True)
    return values.cast(pa.string())


def _positions(categorical: list[Any], names: list[str]) -> list[int]:
    if len(categorical) == len(names) and all(isinstance(one, bool | np.bool_) for one in categorical):
        return [position for position, one in enumerate(categorical) if one]
    found = []
    for one in categorical:
        if isinstance(one, str):
            if one not in names:
                raise DataError(f"categorical_features: there is no column '{one}'")
            found.append(names.index(one))
        elif isinstance(one, int | np.integer) and not isinstance(one, bool) and 0 <= one < len(names):
            found.append(int(one))
        else:
            raise SettingError(
                f"categorical_features: {one!r} is neither a name nor a position in 0 … {len(names) - 1}; "
                "a mask has a bool for each column"
            )
    return found
