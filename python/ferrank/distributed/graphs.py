"""The tasks of many small partitions, as one task.

A task of its own for each partition costs dask 2 ms of the workers' CPU time and a message, whatever is in
it.
"""

import io
import itertools
import pickle
from collections.abc import Iterable, Sequence
from typing import Any

import cloudpickle
from dask.core import get_deps
from dask.highlevelgraph import HighLevelGraph
from dask.local import get_sync
from dask.utils import ensure_dict

from ferrank.data.source import is_future

__all__ = ["Graph", "graphs_of"]


class Graph:
    """The graph of tasks that compute some values, and that need no other task.

    It holds them as bytes, in which dask does not look for tasks.
    """

    def __init__(self, pickled: bytes, keys: Sequence[Any]) -> None:
        self._pickled, self._keys = pickled, keys

    def values(self) -> list[Any]:
        """Compute the values in this process, and return them."""
        return list(get_sync(pickle.loads(self._pickled), list(self._keys)))


def graphs_of(groups: Sequence[Sequence[Any]]) -> list[Graph] | None:
    """Return the graph of tasks of each of ``groups`` of delayed values.

    None if a worker cannot run each graph on its own: groups have tasks in common, tasks are annotated, or
    they need results that a cluster holds already.
    """
    of_parts = [part.dask for part in itertools.chain.from_iterable(groups)]
    different = {id(graph): graph for graph in of_parts}.values()
    if any(_is_annotated(graph) for graph in different):
        return None
    tasks: dict[Any, Any] = {}
    for graph in different:
        tasks |= ensure_dict(graph)
    needed, _ = get_deps(tasks)
    known: set[Any] = set()
    found = []
    for group in groups:
        keys = [part.key for part in group]
        own = _closure(keys, needed)
        if not known.isdisjoint(own):
            return None
        known |= own
        try:
            found.append(Graph(_pickled({key: tasks[key] for key in own}), keys))
        except Exception:
            # What dask can send, perhaps with serializers of its own, it may send task by task.
            return None
    return found


def _is_annotated(graph: Any) -> bool:
    return isinstance(graph, HighLevelGraph) and any(layer.annotations for layer in graph.layers.values())


def _closure(keys: Iterable[Any], needed: dict[Any, set[Any]]) -> set[Any]:
    """Return ``keys`` and all that they need."""
    found, waiting = set(keys), list(keys)
    while waiting:
        new = needed[waiting.pop()] - found
        found |= new
        waiting += new
    return found


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    """Raises where it meets a future, which is known to the client alone."""

    def persistent_id(self, obj: Any) -> None:
        if is_future(obj):
            raise pickle.PicklingError("a task needs what a cluster holds")


def _pickled(tasks: dict[Any, Any]) -> bytes:
    with io.BytesIO() as file:
        _Pickler(file).dump(tasks)
        return file.getvalue()
