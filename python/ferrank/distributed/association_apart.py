"""Tests of association over partitions that keep their codes: sums of partitions add up to those of all rows.

Dask's dashboard shows the tasks under the names of these functions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ferrank import _core
from ferrank.distributed.forests_apart import Shared
from ferrank.distributed.process import know, source_of, to_bytes

__all__ = ["Tested", "add_counts", "contribution", "counts", "ranges", "tested"]

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Tested:
    """What all tasks share."""

    shared: Shared

    def __sizeof__(self) -> int:
        return self.shared.__sizeof__()

    def apart(self) -> Any:
        """Return what this process knows of the data set."""
        shared = self.shared
        schema, roles, settings = shared.asked
        source = source_of(schema.empty_table(), "the data set")
        return know(
            shared.token,
            "targets",
            lambda: _core.TestsApart.of(source, roles, settings, shared.whole, list(shared.answers)),
        )


def tested(shared: Shared) -> Tested:
    """Return what all tasks share."""
    return Tested(shared)


def ranges(known: Tested) -> list[tuple[int, int]]:
    """Return the features in ranges, whose sums are added up together."""
    found: list[tuple[int, int]] = known.apart().ranges()
    return found


def counts(known: Tested, codes: bytes, number: int, features: tuple[int, int]) -> Counts:
    """Return the sums of the targets by the codes of some features, over the rows of a partition."""
    shared = known.shared
    run = known.apart().sums(codes, shared.firsts[number], features, shared.means.n_threads())
    found: Counts = shared.finish(run)
    return found


def add_counts(*parts: Counts) -> Counts:
    """Return the sums of all parts; they are integers, so that any order gives the same bits."""
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total


def contribution(known: Tested, *of_ranges: Counts) -> bytes:
    """Return the contribution of all rows, from their sums for each range of features."""
    found = known.shared.finish(known.apart().accumulate(np.concatenate(of_ranges)))
    return to_bytes(found)
