"""Forests over partitions that keep their codes: what partitions do, and what workers do that grow trees.

Dask's dashboard shows the tasks under the names of these functions.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ferrank import _core
from ferrank.distributed.process import Asked, Floats, finish_of, know, source_of, to_bytes
from ferrank.distributed.resources import TaskResources

__all__ = ["add_sums", "answer", "codes_of", "collect", "grow_apart", "known", "piece", "sums"]

_FAN = 8
"""Sums that are added up by one task."""


def answer(codes: bytes, asked: Asked, whole: bytes) -> bytes:
    """Return the targets and weights of a partition without its codes."""
    schema, roles, settings = asked
    return _core.answers(source_of(schema.empty_table(), "the data set"), roles, settings, whole, codes)


def known(*parts: bytes) -> list[bytes]:
    """Return the targets and weights of all partitions."""
    return list(parts)


def sums(
    token: str,
    asked: Asked,
    whole: bytes,
    answers: list[bytes],
    codes: bytes,
    first: int,
    request: bytes,
    means: TaskResources,
) -> Floats:
    """Return the sums of the open nodes of some trees, over the rows of a partition."""
    apart = _apart(token, asked, whole, answers)
    found: Floats = finish_of(apart.sums(codes, first, request, means.n_threads()), token)
    return found


def add_sums(*parts: Floats) -> Floats:
    """Return the sums of all parts; they are exact, so that any order gives the same bits."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def collect(
    token: str,
    asked: Asked,
    whole: bytes,
    answers: list[bytes],
    codes: bytes,
    first: int,
    request: bytes,
    means: TaskResources,
) -> list[bytes]:
    """Return the rows of a partition that reach each of some nodes, as codes."""
    apart = _apart(token, asked, whole, answers)
    found = apart.collect(codes, first, request, means.n_threads(), means.folder())
    buckets: list[bytes] = finish_of(found, token)
    return buckets


def piece(buckets: list[bytes], number: int) -> bytes:
    """Return the rows that reach one of the nodes."""
    return buckets[number]


def codes_of(
    token: str,
    asked: Asked,
    whole: bytes,
    answers: list[bytes],
    codes: bytes,
    first: int,
    rows: np.ndarray[Any, np.dtype[np.uint64]],
) -> bytes:
    """Return the codes of the rows with the numbers ``rows``, as far as they are in a partition."""
    found: bytes = finish_of(_apart(token, asked, whole, answers).codes(codes, first, rows), token)
    return found


def grow_apart(
    token: str,
    asked: Asked,
    whole: bytes,
    answers: list[bytes],
    keys: tuple[int, int],
    means: TaskResources,
    names: tuple[str, str, Sequence[str]],
    firsts: Sequence[int],
) -> bytes:
    """Grow the trees ``keys`` over partitions that keep their codes.

    ``names``: those that the cluster has for ``whole``, ``answers``, and the codes of each partition, whose
    first rows are ``firsts``.
    """
    from distributed import worker_client

    # What is asked of partitions takes threads that this task must not.
    with worker_client() as client:
        parts = _Asking(client, token, asked, means, names, firsts)
        apart = _apart(token, asked, whole, answers)
        run = apart.accumulate(*keys, means.n_threads(), means.limit_beside(), parts)
        return to_bytes(finish_of(run, token))


class _Asking:
    """Asks the partitions on a cluster for what growth needs of them."""

    def __init__(
        self,
        client: Any,
        token: str,
        asked: Asked,
        means: TaskResources,
        names: tuple[str, str, Sequence[str]],
        firsts: Sequence[int],
    ) -> None:
        from distributed import Future

        whole, answers, codes = names
        known: Callable[..., Any] = Future
        future = partial(known, client=client)
        self._client, self._means, self._collected = client, means, []
        self._shared = (token, asked, future(whole), future(answers))
        self._parts = [(future(name), first) for name, first in zip(codes, firsts, strict=True)]

    _collected: list[Any]

    def sums(self, request: bytes) -> Floats:
        """Return the sums over the rows of all partitions."""
        found = self._of_each(sums, request, self._means)
        while len(found) > 1:
            groups = (found[first : first + _FAN] for first in range(0, len(found), _FAN))
            found = [self._client.submit(add_sums, *group, pure=False) for group in groups]
        total: Floats = self._client.gather(found[0])
        return total

    def collect(self, request: bytes) -> None:
        """Have the rows of some nodes collected, in place of those before."""
        self._collected = []
        self._collected = self._of_each(collect, request, self._means)

    def bucket(self, number: int) -> bytes:
        """Return the rows of one of the nodes."""
        pieces = [self._client.submit(piece, buckets, number, pure=False) for buckets in self._collected]
        return b"".join(self._client.gather(pieces))

    def codes(self, rows: np.ndarray[Any, np.dtype[np.uint64]]) -> bytes:
        """Return the codes of ``rows``."""
        return b"".join(self._client.gather(self._of_each(codes_of, rows)))

    def _of_each(self, function: Callable[..., Any], *wanted: Any) -> list[Any]:
        return [
            self._client.submit(function, *self._shared, codes, first, *wanted, pure=False)
            for codes, first in self._parts
        ]


def _apart(token: str, asked: Asked, whole: bytes, answers: list[bytes]) -> Any:
    """Return what each process knows of partitions that keep their codes."""
    schema, roles, settings = asked
    source = source_of(schema.empty_table(), "the data set")
    return know(token, lambda: _core.Apart.of(source, roles, settings, whole, answers))
