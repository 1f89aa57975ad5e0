"""Tests of association over partitions that keep their codes: sums of partitions add up to those of all rows.

Dask's dashboard shows the tasks under the names of these functions.
"""

import numpy as np
from numpy.typing import NDArray

from ferrank.distributed.forests_apart import Shared
from ferrank.distributed.process import to_bytes

__all__ = ["contribution", "counts", "ranges"]

Counts = NDArray[np.int64]


def ranges(shared: Shared) -> list[tuple[int, int]]:
    """Return the features in ranges, whose sums are added up together."""
    found: list[tuple[int, int]] = shared.apart().ranges()
    return found


def counts(shared: Shared, codes: bytes, number: int, features: tuple[int, int]) -> Counts:
    """Return the sums of the targets by the codes of some features, over the rows of a partition."""
    run = shared.apart().sums(codes, shared.firsts[number], features, shared.resources.n_threads())
    found: Counts = shared.finish(run)
    return found


def contribution(shared: Shared, *of_ranges: Counts) -> bytes:
    """Return the contribution of all rows, from their sums for each range of features."""
    found = shared.finish(shared.apart().accumulate(np.concatenate(of_ranges)))
    return to_bytes(found)
