"""Tests of association over partitions that keep their codes: sums of partitions add up to those of all rows.

Dask's dashboard shows the tasks under the names of these functions.
"""

import numpy as np
from numpy.typing import NDArray

from ferrank.distributed.file_bytes import FileBytes
from ferrank.distributed.forests_apart import Shared
from ferrank.distributed.process import to_bytes

__all__ = ["contribution", "counts", "model", "next_given", "ranges"]

Counts = NDArray[np.int64]


def ranges(shared: Shared) -> list[tuple[int, int]]:
    """Return the features in ranges, whose sums are added up together."""
    found: list[tuple[int, int]] = shared.apart().ranges()
    return found


def counts(shared: Shared, codes: FileBytes, number: int, features: tuple[int, int]) -> Counts:
    """Return the sums of the targets by the codes of some features, over the rows of a partition."""
    run = shared.apart().sums(codes.map(), shared.firsts[number], features, shared.resources.n_threads())
    found: Counts = shared.finish(run)
    return found


def next_given(
    shared: Shared, number: int, given: list[int], of_model: Counts | None, *of_ranges: Counts
) -> list[int] | None:
    """Return the features that are given to the next linear model; None if there is none.

    ``number`` models were made before. ``given`` are the features given to the last of them, and ``of_model``
    are its sums; None if there was none.
    """
    run = shared.apart().next_given(np.concatenate(of_ranges), number, _last(given, of_model))
    found: list[int] | None = shared.finish(run)
    return found


def model(shared: Shared, codes: FileBytes, number: int, given: list[int]) -> Counts:
    """Return the sums of a linear model in which some features are given, over the rows of a partition."""
    run = shared.apart().model(codes.map(), shared.firsts[number], given, shared.resources.n_threads())
    found: Counts = shared.finish(run)
    return found


def contribution(shared: Shared, given: list[int], of_model: Counts | None, *of_ranges: Counts) -> bytes:
    """Return the contribution of all rows, from their sums for each range of features and the last model."""
    run = shared.apart().accumulate(np.concatenate(of_ranges), _last(given, of_model))
    return to_bytes(shared.finish(run))


def _last(given: list[int], of_model: Counts | None) -> tuple[list[int], Counts]:
    """Return the last model as the engine takes it."""
    return given, np.zeros(0, np.int64) if of_model is None else of_model
