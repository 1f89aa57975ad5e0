"""Ranking dask collections, on the scheduler that dask would use.

Each partition is profiled where it lies, and the profiles merge in a tree. ``scope="global"``: each partition
is coded, one byte a value, and each task grows some of the trees over all rows: the ranking has the bits of
one machine. For Relief, whose distances need the values, rows move as they are.

Where no worker may hold all codes or rows, these stay in their partitions. Forests: partitions add up the
sums of open nodes for the workers that grow trees, and hand over the rows of nodes that fit into memory, and
those out of a bag for the scores that read them. With shadows, each partition gets their codes from all
partitions, for the trees that see the same shadows. Relief: each partition is searched for the rows that
count for some of the queries, and only these move; ranks come from the values of some features in all
partitions at a time. The bits are the same. What reads all rows in another way is refused with the reason:
``per_target``, ``supervision`` and label sets of forests; ``myopic``, other neighborhoods than the nearest,
rows without a target and expected differences of missing values of Relief. Sizes decide, and the log says
which way was taken.

Many small partitions are batched: a task works on all of a batch. Where they take little of the workers'
memory they are read once and held, else they are read for each pass.

What a run asks of a cluster is released at its end, never cancelled: another run of the same client may have
asked for the same. A task that dies with its worker is done again; a checksum finds partitions that have
other rows then.

``scope="partition"``: each partition contributes its share of trees or queries from its own rows, and no row
moves. Contributions are keyed, so a task that is run again, because a worker died, changes nothing.

Memory of a worker: what dask keeps there of the data set; where it grows trees over all rows, the codes of
all rows, one byte a value, once, or the targets of all rows, with the codes of its partitions and of their
shadows in temporary files; where it looks for Relief's neighbours among all, the rows as they are, or else
those of a partition and the rows that count, and if targets are drawn or ranked the targets of all rows.
Beside that bags, trees and lists of neighbours, within ``memory_limit``. The client holds settings, a few
numbers for each partition, and the contributions: for each tree or block a number for each feature. The local
scheduler of processes hands everything from process to process through the client.

| module | what |
|---|---|
| ``partitions`` | collections as partitions, which tasks make Arrow tables of |
| ``tables`` | what these tasks do: parts of any kind as tables of the same columns |
| ``resources`` | threads, memory and temporary folder of a task |
| ``process`` | what a worker's process holds for a ranking, and whose turn it is |
| ``tasks`` | what workers do next, with a partition or with all rows |
| ``file_bytes`` | codes in temporary files of workers |
| ``forests_apart``, ``relief_apart`` | the same where codes and rows stay in their partitions |
| ``ledger`` | contributions in a folder, from which a later run goes on |
| ``drift`` | whether partitions differ in their distributions |
| ``scheduler`` | what computes tasks: a cluster's scheduler or a local one |
| ``plan`` | the tasks of a ranking, in three rounds |
"""

from ferrank.distributed.partitions import Partitions
from ferrank.distributed.plan import rank
from ferrank.distributed.scheduler import Scheduler, on_scheduler

__all__ = ["Partitions", "Scheduler", "on_scheduler", "rank"]
