"""Data sets: rows, the roles of their columns, and cached profiles."""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Self

from ferrank import _core
from ferrank.data.beside import join_values, target_names, values_beside
from ferrank.data.categories import CategoricalFeatures, categorical_names, is_from_dtype
from ferrank.data.classes import integer_targets, roles_of
from ferrank.data.hierarchy import edges_of
from ferrank.data.opening import Folder
from ferrank.data.parameters import names_of, suggests
from ferrank.data.source import is_lazy, open_source
from ferrank.data.values import holds_label_sets
from ferrank.errors import ColumnTypeError, SettingError

__all__ = ["Dataset"]

Labels = str | os.PathLike[str] | None


class Dataset:
    """A data set: rows and the roles of their columns.

    Every function that takes data accepts a data set. The source is opened once. The profile computed by one
    ranker is reused by the next one with the same number of bins. A data set may be used by several threads.

    Parameters
    ----------
    data : path or paths, frame, table, reader, array, mapping of columns or dask collection
        As in :func:`ferrank.rank`.
    target : str, sequence of str or array, optional
        The names of the targets, or their values, an array of shape (n_rows,) or (n_rows, n_targets) beside
        data in memory or a dask collection. One of ``target``, ``target_last`` and ``labels`` is required,
        unless the file defines its labels or the task is "unsupervised".
    target_last : int, optional
        Number of columns at the end that are the targets.
    labels : path, optional
        MULAN label XML of an ARFF file; the labels are the targets.
    task : str, optional
        "classification", "regression", "multi-target", "multi-label", "hierarchical" or "unsupervised"; by
        default it follows from the targets.
    hierarchy : path, mapping, frame or table, optional
        Labels and their parents; see :class:`ferrank.ForestRanker`.
    sample_weight : str or array, optional
        Column of row weights, or the weights.
    groups : str or array, optional
        Column of groups, such as the patient that a row belongs to, or the groups, of any type and without
        missing values. It is not a feature. Rows of a group stay together: see :func:`ferrank.rank`.
    drop : str or sequence of str, default=()
        Columns to leave out.
    categorical_features : sequence of str or int, mask or "from_dtype", optional
        Features that are nominal whatever their type: names, positions among all columns of ``data``, or a
        mask over them. With "from_dtype", strings, categories and dictionaries alone are nominal. None leaves
        it to the ranker. For a dask collection, give names.

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

    @suggests
    def __init__(
        self,
        data: Any,
        target: Any = None,
        *,
        target_last: int | None = None,
        labels: Labels = None,
        task: str | None = None,
        hierarchy: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        drop: str | Sequence[str] = (),
        categorical_features: CategoricalFeatures | None = None,
    ) -> None:
        if sum(given is not None for given in (target, target_last, labels)) > 1:
            raise SettingError("target: give one of target, target_last and labels")
        self.target = target_names(data, target)
        values = None if self.target is not None else target
        self.beside = values_beside(data, target=values, sample_weight=sample_weight, groups=groups)
        self.sample_weight = None if "sample_weight" in self.beside else sample_weight
        self.groups = None if "groups" in self.beside else groups
        self.target_last, self.labels, self.task, self.hierarchy = target_last, labels, task, hierarchy
        self.drop = names_of(drop, "drop")
        self.data = data
        self.categorical_features = categorical_features
        self._source: _core.Source | None = None
        self._classes: dict[str, Any] | None = None
        self._profiles: dict[str, bytes] = {}
        self._findings: list[str] | None = None

    def with_rows(self, data: Any) -> Self:
        """Return a data set of other rows whose columns have the same roles."""
        self._name_values()
        other = object.__new__(type(self))
        own = {"data": data, "beside": {}, "_source": None, "_profiles": {}, "_findings": None}
        other.__dict__ = {**self.__dict__, **own}
        return other

    @property
    def is_lazy(self) -> bool:
        """True for a dask collection."""
        return is_lazy(self.data)

    @property
    def is_weighted(self) -> bool:
        """True if rows have weights."""
        return self.sample_weight is not None or "sample_weight" in self.beside

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

    def roles(
        self, task: str | None = None, hierarchy: Any = None, categorical_features: Any = None
    ) -> dict[str, Any]:
        """Return the roles of the columns as the engine takes them.

        ``task``, ``hierarchy`` and ``categorical_features`` are the parameters of a ranker, used if the data
        set has none. Positions and masks of a ranker refer to features, those of a data set to columns.
        Without a task, the first call looks at integer targets: few distinct integers stand for classes, also
        in data sets with other rows (:meth:`with_rows`).
        """
        self._name_values()
        roles = {
            "target": self.target,
            "target_last": self.target_last,
            "task": task if self.task is None else self.task,
            "classes": [],
            "categorical_features": self._categorical_names(),
            "hierarchy": edges_of(hierarchy if self.hierarchy is None else self.hierarchy),
            "drop": self.drop,
            "weight": self.sample_weight,
            "groups": self.groups,
        }
        if self.categorical_features is None and not is_from_dtype(categorical_features):
            roles["categorical_features"] = categorical_names(
                categorical_features, self._feature_names(roles)
            )
        if roles["task"] is not None or self.is_lazy:
            return roles
        if self._classes is None:
            self._classes = roles_of([integer_targets(self.source(), roles)])
        return roles | self._classes

    def source(
        self,
        temp_dir: Folder = None,
        *,
        task: str | None = None,
        hierarchy: Any = None,
        as_text: Iterable[str] = (),
    ) -> _core.Source:
        """Return the rows as a source of the engine, opened at the first call.

        Dropped columns, groups and label sets are not converted to numbers. Data that can be read only once
        is copied to a temporary file in ``temp_dir``. ``task`` and ``hierarchy`` are as in :meth:`roles`,
        ``as_text`` as in :func:`open_source`.
        """
        if self._source is None:
            is_labels = self.holds_label_sets(task, hierarchy)
            if self.beside:
                self._source, names = join_values(self.data, self.beside, is_labels=is_labels)
                for name in self.beside:
                    setattr(self, name, names[name])
            else:
                groups = [] if self.groups is None else [self.groups]
                texts = [*self.drop, *groups, *((self.target or []) if is_labels else []), *as_text]
                self._source = open_source(self.data, labels=self.labels, as_text=texts, temp_dir=temp_dir)
        return self._source

    def profile(self, roles: dict[str, Any], settings: dict[str, Any], make: Callable[[], bytes]) -> bytes:
        """Return the profile for these roles and settings, made by ``make`` at the first call."""
        parts = ("ranker", "max_bins", "n_bins", "unlabelled", "supervision", "hierarchy_decay")
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

    def holds_label_sets(self, task: str | None, hierarchy: Any) -> bool:
        """Return True if the target holds a set of labels for each row; parameters as in :meth:`roles`."""
        hierarchy = hierarchy if self.hierarchy is None else self.hierarchy
        return holds_label_sets(
            task if self.task is None else self.task, hierarchy, self.beside.get("target")
        )

    def _name_values(self) -> None:
        """Make columns, which have names, of the values that lie beside the rows in memory."""
        if self.beside and not self.is_lazy:
            self.source()

    def _feature_names(self, roles: dict[str, Any]) -> list[str] | None:
        """Return the names of the features, if they are known without a look at the rows."""
        if not self.is_lazy:
            return [name for name, _ in self.source().resolve(roles)["features"]]
        return self._given_columns() if "target" in self.beside else None

    def _categorical_names(self) -> list[str]:
        if is_from_dtype(self.categorical_features):
            return []
        return categorical_names(self.categorical_features, self._given_columns())

    def _given_columns(self) -> list[str] | None:
        """Return the names of the columns of ``data``, without those made of values beside it, if known."""
        if self.is_lazy:
            return [str(name) for name in self.data.columns] if hasattr(self.data, "columns") else None
        beside = [getattr(self, name) for name in self.beside]
        names = {name for given in beside for name in (given if isinstance(given, list) else [given])}
        return [name for name in self.columns if name not in names]

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
