"""Collections as partitions, which tasks make Arrow tables of."""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import dask
from dask.delayed import Delayed

from ferrank.data.source import is_future
from ferrank.distributed import tables
from ferrank.distributed.graphs import graphs_of
from ferrank.distributed.scheduler import Scheduler, TaskError, task
from ferrank.errors import ColumnTypeError, DataError

__all__ = ["Partitions"]


@dataclass(frozen=True)
class Partitions:
    """Partitions of a data set, and what its columns are."""

    make: Callable[..., Any]
    """of the number of a partition and its parts: the table"""
    parts: Sequence[tuple[Any, ...]]
    """delayed; of each partition: data, or features, targets, weights and groups"""
    roles: dict[str, Any] | None = None
    """which columns are targets, weights and groups; None where the caller says so"""

    @classmethod
    def of(cls, data: Any) -> "Partitions":
        """Return the partitions of a data set whose targets are columns."""
        return cls(tables.table, [(part,) for part in _delayed(data, "data")])

    def batches(self, spans: Sequence[tuple[int, int]], *, at_once: bool = False) -> list[Any]:
        """Return the partitions ``first .. end`` of each span as a delayed :class:`Batch`.

        With ``at_once``, one task makes all partitions of a span, where :func:`graphs_of` finds that it can.
        """
        parts = [list(itertools.chain.from_iterable(self.parts[first:end])) for first, end in spans]
        graphs = graphs_of(parts) if at_once else None
        width = len(self.parts[0])
        if graphs is None:
            return [
                task(tables.batch, first, self.make, width, *own)
                for (first, _), own in zip(spans, parts, strict=True)
            ]
        return [
            task(tables.batch_of, first, self.make, width, graph, known_as=tables.batch)
            for (first, _), graph in zip(spans, graphs, strict=True)
        ]

    @classmethod
    def joined(
        cls, X: Any, y: Any, sample_weight: Any, groups: Any, scheduler: Scheduler, *, as_labels: bool = False
    ) -> "Partitions":
        """Return the partitions of features, targets, weights and groups, side by side.

        Rows belong together by their position. Where the parts of ``y`` have other rows than those of ``X``,
        both are counted, and ``y`` is cut like ``X``.

        Parameters
        ----------
        X, y, sample_weight, groups : collection
            Without ``y``, there are no targets; without ``sample_weight``, no weights; without ``groups``, no
            groups.
        scheduler : Scheduler
            What counts rows.
        as_labels : bool
            Whether each value of ``y`` is a set of labels.

        Raises
        ------
        DataError
            The numbers of rows differ.
        """
        sides = {"y": y, "sample_weight": sample_weight, "groups": groups}
        given = {name: _like(side, X) for name, side in sides.items() if side is not None}
        parts = _parts(X, given)
        features = parts.pop("X")
        beside = [
            part
            if _is_like(given[name], X) and len(part) == len(features)
            else _cut(features, part, name, as_labels, scheduler)
            for name, part in parts.items()
        ]
        firsts = [part[0] for part in beside]
        found: list[str]
        [found] = _computed(
            scheduler, [task(tables.side_names, as_labels, list(parts), features[0], *firsts)]
        )
        group = found.pop() if groups is not None else None
        weight = found.pop() if sample_weight is not None else None
        make = partial(tables.join, as_labels, list(parts))
        named = {"target": found, "weight": weight, "groups": group}
        roles = {name: role for name, role in named.items() if role}
        return cls(make, list(zip(features, *beside, strict=True)), roles)


def _parts(X: Any, sides: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the delayed partitions of each collection."""
    collections = {"X": X} | sides
    parts = {name: _delayed(data, name) for name, data in collections.items()}
    declared = {getattr(data, "npartitions", None) for data in collections.values()}
    if len({len(part) for part in parts.values()}) > 1 and len(declared) == 1:
        # dask reads few columns of several files at a time, and many columns of one. Asked for columns alone
        # it leaves the files apart.
        frames = {name: data for name, data in collections.items() if hasattr(data, "simplify")}
        parts |= {name: data.simplify().to_delayed(optimize_graph=False) for name, data in frames.items()}
    return parts


def _delayed(data: Any, what: str) -> list[Any]:
    """Return one delayed value for each partition."""
    if isinstance(data, list | tuple):
        return [part if isinstance(part, Delayed) else dask.delayed(part) for part in data]
    if isinstance(data, Delayed):
        return [data]
    if is_future(data):
        return [dask.delayed(data)]
    if hasattr(data, "rechunk"):
        if data.ndim > 2:
            raise ColumnTypeError(f"{what}: an array of {data.ndim} dimensions; use (n_rows, n_columns)")
        rows = data if data.ndim == 1 else data.rechunk({1: -1})
        return list(rows.to_delayed().ravel())
    if hasattr(data, "to_delayed"):
        return list(data.to_delayed())
    kind = f"{type(data).__module__}.{type(data).__qualname__}"
    raise ColumnTypeError(f"{what}: a {kind} beside a dask collection; give a dask collection as well")


def _like(side: Any, X: Any) -> Any:
    """Return an array of targets or weights in the row chunks of ``X``, where both know theirs."""
    known = [_known_chunks(data) for data in (X, side)]
    if None not in known and sum(known[0]) == sum(known[1]):
        return side.rechunk({0: known[0]})
    return side


def _known_chunks(data: Any) -> Any:
    """Return the numbers of rows of the chunks of an array, None where they are unknown or it is none."""
    chunks = data.chunks[0] if hasattr(data, "rechunk") and not isinstance(data, Delayed) else (math.nan,)
    return None if math.isnan(sum(chunks)) else chunks


def _is_like(side: Any, X: Any) -> bool:
    """Whether nothing says that two collections are parted in other places."""
    divisions = [data.divisions for data in (X, side) if getattr(data, "known_divisions", False) is True]
    return len(divisions) < 2 or divisions[0] == divisions[1]


def _computed(scheduler: Scheduler, wanted: list[Any]) -> list[Any]:
    try:
        return scheduler.compute(wanted)
    except TaskError as error:
        raise error.__cause__ or error from None


def _cut(features: list[Any], side: list[Any], name: str, as_labels: bool, scheduler: Scheduler) -> list[Any]:
    """Return the parts of ``side`` cut like those of the features."""
    counts = _computed(scheduler, [task(tables.count_rows, part) for part in [*features, *side]])
    ends, side_ends = (
        [0, *itertools.accumulate(rows)] for rows in (counts[: len(features)], counts[len(features) :])
    )
    if ends[-1] != side_ends[-1]:
        raise DataError(f"{name}: {side_ends[-1]} rows, X has {ends[-1]}; give one for each row of X")
    parts = []
    for number, (first, end) in enumerate(itertools.pairwise(ends)):
        pieces = [
            (part, (max(first, start) - start, min(end, stop) - start))
            for part, (start, stop) in zip(side, itertools.pairwise(side_ends), strict=True)
            if max(first, start) < min(end, stop)
        ]
        pieces = pieces or [(side[0], (0, 0))]
        bounds = [bounds for _, bounds in pieces]
        parts.append(task(tables.cut, number, as_labels, bounds, *(part for part, _ in pieces)))
    return parts
