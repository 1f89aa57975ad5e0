"""The label sets of rows, with the labels above them, as a sparse matrix."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array

from ferrank import _core
from ferrank._core import Source
from ferrank.run import finish

__all__ = ["ClosedSets", "closed_sets"]

Array = np.ndarray[Any, Any]


@dataclass(frozen=True, eq=False)
class ClosedSets:
    """Which labels of a hierarchy rows have, those above them counted.

    Attributes
    ----------
    names : list of str
        Of the labels, ascending.
    shares : array of shape (n_labels,)
        What each weighs, as a share of what all labels that some row has weigh together; 0 for the others.
        These are the weights that a forest gives them.
    sets : csr_array of shape (n_rows, n_labels)
        1.0 where a row has a label.
    known : array of bool, shape (n_rows,)
        Whether the labels of a row are known.
    """

    names: list[str]
    shares: Array
    sets: csr_array
    known: Array

    def take(self, rows: Array) -> Self:
        """Return some of the rows; shares stay those of all."""
        return replace(self, sets=self.sets[rows], known=self.known[rows])

    def occurring(self) -> tuple[Array, Array]:
        """Return what rows have of the labels that occur, of shape (n_rows, n_labels), and their shares."""
        found = self.shares > 0
        return self.sets[:, found].toarray(), self.shares[found]


def closed_sets(source: Source, roles: Mapping[str, Any], hierarchy_decay: float) -> ClosedSets:
    """Read the label sets of all rows of ``source``, whose ``roles`` make a hierarchical task.

    Raises
    ------
    DataError, ColumnTypeError, SettingError
        What is wrong with the roles, the hierarchy or a set.
    """
    found = finish(_core.closed_sets(source, roles, {"hierarchy_decay": hierarchy_decay}))
    labels, starts = found["labels"], found["starts"]
    shape = len(found["known"]), len(found["names"])
    sets = csr_array((np.ones(len(labels)), labels, starts), shape=shape)
    return ClosedSets(found["names"], found["shares"], sets, found["known"])
