"""Ranking dask collections, on the scheduler that dask would use.

Each partition is profiled where it lies, and the profiles merge in a tree. ``scope="global"``: each partition
is coded, one byte a value, and each task grows some of the trees over all rows: the ranking has the bits of
one machine. For Relief, whose distances need the values, rows move as they are. ``scope="partition"``: each
partition contributes its share of trees or queries from its own rows, and no row moves. Contributions are
keyed, so a task that is run again, because a worker died, changes nothing.

| module | what |
|---|---|
| ``partitions`` | collections as partitions, each a task that gives an Arrow table |
| ``tasks`` | what workers do; bytes in and out |
| ``drift`` | whether partitions differ in their distributions |
| ``plan`` | the tasks of a ranking, in three rounds |
"""

from ferrank.dask.partitions import Partitions
from ferrank.dask.plan import rank

__all__ = ["Partitions", "rank"]
