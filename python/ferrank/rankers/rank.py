"""Ranking of data sets: files, frames, tables, readers, dask collections."""

import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal, cast

import numpy as np
import pyarrow as pa

from ferrank import _core
from ferrank._core import Source
from ferrank.data.categories import CategoricalFeatures
from ferrank.data.check import worst
from ferrank.data.dataset import Dataset
from ferrank.data.parameters import count_of
from ferrank.data.tables import arrow_table, check_names
from ferrank.errors import SettingError, SpoiledDataWarning
from ferrank.output import check_path, path_of
from ferrank.progress import Progress, shown
from ferrank.rankers.plan import EnginePlan, ForestPlan, Plan, refuse_client
from ferrank.rankers.registry import chosen_plan, dataset_of, opened, plan_of, with_preset
from ferrank.ranking import Ranking
from ferrank.ranking.clusters import check_association, clusters_of
from ferrank.run import finish

if TYPE_CHECKING:
    from ferrank.rankers.forest import ForestRanker

__all__ = ["grow_tree", "rank"]


def rank(
    data: Any,
    target: Any = None,
    *,
    target_last: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str | None = None,
    hierarchy: Any = None,
    drop: Sequence[str] = (),
    sample_weight: Any = None,
    groups: Any = None,
    feature_names: Sequence[str] | None = None,
    categorical_features: CategoricalFeatures | None = None,
    ranker: Plan
    | type[Plan]
    | Literal["auto", "joint", "forest", "relief", "association", "univariate"] = "auto",
    preset: Literal["papers"] | None = None,
    clusters: bool | float | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | bool | None = None,
    client: Any = None,
    **settings: Any,
) -> Ranking:
    """Rank the features of a data set.

    Parameters
    ----------
    data : Dataset, path or paths, URL, open file, frame, table, reader, array or mapping of columns
        A :class:`Dataset`, which includes the roles of the columns. Or a file (Arrow, ARFF, Parquet, CSV,
        see :class:`CSVFile`, and others); a pattern such as ``"parts/*.arrow"``, a folder (also of Hive
        partitions) or a list of paths, whose files make one data set; a URL of these, or an open file; any
        object with the Arrow C stream interface (pyarrow, pandas, polars, DuckDB …), pyarrow data sets, lazy
        frames, and other tables; a NumPy array or sparse SciPy array, with columns ``x0``, ``x1`` …. What
        can be read only once is first copied to a temporary file. Or a dask DataFrame, Array, or list of
        delayed partitions or futures, which are ranked on the cluster.
    target : str, sequence of str or array, optional
        The names of the targets; ``task`` says which stand for classes. Or their values, an array of shape
        (n_rows,) or (n_rows, n_targets), as scikit-learn's ``y``, or a list of label sets: lists, tuples or
        sets of strings. One of ``target``, ``target_last`` and ``labels`` is required, unless the file
        defines its labels or the task is "unsupervised".
    target_last : int, optional
        Number of columns at the end that are the targets.
    labels : path, optional
        MULAN label XML of an ARFF file; the labels are the targets.
    task : str, optional
        See :class:`ForestRanker`; takes precedence over the ranker's own.
    hierarchy : path, mapping, frame or table, optional
        The hierarchy of the labels; see :class:`ForestRanker`. Takes precedence over the ranker's own.
    drop : sequence of str, default=()
        Columns to leave out.
    sample_weight : str or array, optional
        Column of row weights; or the weights, where ``data`` are in memory.
    groups : str or array, optional
        Column of groups, such as the patient that a row belongs to, or the groups, where ``data`` are in
        memory: strings, integers or any other type, without missing values. It is not a feature. Rows of a
        group stay together: the bags of trees consist of whole groups, so that out-of-bag rows are of groups
        that the tree has not seen, and in Relief the neighbors of a row are of other groups. Otherwise a
        feature that merely tells the groups apart has a high permutation score. Not available with ``until``.
    feature_names : sequence of str, optional
        Names of the columns of an array.
    categorical_features : sequence of str or int, mask or "from_dtype", optional
        Features that are nominal whatever their type; see :class:`Dataset`. Takes precedence over the
        ranker's own.
    ranker : Ranker or {"auto", "joint", "forest", "relief", "association", "univariate"}, default="auto"
        A :class:`JointRanker`, :class:`ForestRanker`, :class:`ReliefRanker`, :class:`AssociationRanker`,
        :class:`UnivariateRanker`, or the name of one, which is then created with the parameters in
        ``settings``. "auto" is the joint ranker; the ranker that alone has all of the ``settings``, such as a
        forest with ``n_estimators``; or the forest if rows have weights and it has the ``settings``, and if
        there is no target or ``unlabelled="use"``.
    preset : {"papers"}, optional
        "papers" are the settings of Petković et al. 2020a: a forest of 100 trees with the scores ``genie3``,
        ``symbolic`` and ``permutation`` that leaves missing values out of gains, or with ``ranker="relief"``
        ten neighbors. ``settings`` take precedence.
    clusters : bool or float, optional
        Whether to cluster the 1,000 best features by what they say: features of a cluster have an association
        of at least this number with each other, with True 0.7. It is the absolute rank correlation of
        numbers, Cramér's V of categories with the correction of Bergsma (2013), or the share of variance that
        categories explain, of a sample of at most 10,000 rows. See :attr:`Ranking.clusters`,
        :meth:`Ranking.representatives` and :meth:`Ranking.without_redundancy`. Not for dask collections, of
        which :meth:`Ranking.with_clusters` takes a sample.
    resume : path, optional
        File to which the contributions of trees or queries are written as they are computed. A run that was
        killed continues from the file when called with the same arguments, and gives the same bits. A
        complete run can be extended to more trees (``n_estimators``; not with ``per_target``). The joint
        ranker writes a file for each of its rankers, with ``.forest``, ``.relief`` and ``.association``
        appended to the name. An incomplete last entry is dropped with a :class:`ResumeWarning`. A file of
        another run is an error. For a dask collection, a folder that the client and all workers see, or the
        URL of one in an object store; tests of association are made anew.
    progress : callable or bool, optional
        Called as ``progress(phase, done, total)`` ten times per second. True draws a line on stderr, or a bar
        in a notebook if tqdm is installed.
    client : dask.distributed.Client, optional
        For a dask collection: whose cluster ranks it. By default the scheduler that dask would use. With an
        asynchronous client, what is returned has to be awaited: ``await rank(…, client=client)``.
    **settings
        Parameters of the ranker, if ``ranker`` is a name or not given.

    Returns
    -------
    Ranking

    Raises
    ------
    DataError, ColumnTypeError, SettingError, ResourceError
        For invalid data, columns, settings or resources; the message names the file, column or setting.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
    >>> ferrank.rank({"a": a, "b": b, "y": a**2}, "y", n_estimators=20).top(1)
    ['a']
    >>> ferrank.rank({"a": a, "b": b, "y": a > 0}, "y", ranker="relief", n_neighbors=5).top(1)
    ['a']

    As users of scikit-learn have it:

    >>> ferrank.rank(np.column_stack([a, b]), b, n_estimators=20).top(1)
    ['x1']

    Without settings, the ranking says which features are relevant:

    >>> ferrank.rank({"a": a, "b": b, "y": a**2}, "y").relevant(fdr=0.1)
    ['a']

    A hierarchical target has a list of labels for each row; here the labels are paths:

    >>> labels = [["animal/koala"] if value > 0 else ["animal", "plant"] for value in b]
    >>> ferrank.rank({"a": a, "b": b, "y": labels}, "y", n_estimators=20).top(1)
    ['b']
    """
    if preset is not None:
        named, settings = with_preset(preset, ranker, settings)
        ranker = cast(Literal["forest", "relief"], named)
    association = check_association(clusters)
    if resume is not None:
        path_of(resume, "resume")
    dataset = dataset_of(
        _named(data, feature_names),
        target=target,
        target_last=target_last,
        labels=labels,
        task=task,
        hierarchy=hierarchy,
        drop=drop,
        sample_weight=sample_weight,
        groups=groups,
        categorical_features=categorical_features,
    )
    chosen = chosen_plan(
        ranker,
        settings,
        weighted=dataset.is_weighted,
        task=dataset.task,
        parameters=signature(rank).parameters,
    )

    def ranked(scheduler: Any = None) -> Ranking:
        with shown(progress) as line:
            return _rank_dataset(chosen, dataset, scheduler, line, resume, association, keeps=dataset is data)

    if not dataset.is_lazy:
        refuse_client(client, "data")
        return ranked()
    from ferrank.distributed import on_scheduler

    found: Ranking = on_scheduler(client, ranked)
    return found


def _rank_dataset(
    ranker: Plan,
    dataset: Dataset,
    scheduler: Any,
    progress: Progress | None,
    resume: Any,
    association: float | None,
    *,
    keeps: bool,
) -> Ranking:
    """Rank the features of a data set; ``keeps``: its profile serves further rankings."""
    if dataset.is_lazy:
        _check_in_memory(association)
        roles = dataset.roles(ranker.task, ranker.hierarchy, ranker.categorical_features)
        partitions = _partitions(dataset, ranker, scheduler)
        return ranker._rank_partitions(partitions, roles, scheduler, progress, resume)
    if resume is not None:
        check_path(resume)
    source, roles = opened(ranker, dataset)
    if dataset._findings is None:
        dataset._findings = _warned_of_worst(source, roles)
    profile = None
    if keeps and ranker.until is None and isinstance(ranker, EnginePlan):
        profile = dataset.profile(roles, ranker._settings(), partial(ranker._profile, source, roles))
    ranking = ranker._rank_source(source, roles, progress, resume, profile)
    return _with_clusters(
        replace(ranking, source=source.name, warnings=dataset._findings), source, roles, association
    )


def _warned_of_worst(source: Source, roles: dict[str, Any]) -> list[str]:
    """Warn of what spoils the ranking, and return what was said."""
    found = list(map(str, worst(source, roles)))
    for finding in found:
        warnings.warn(f"{finding} (ferrank.check looks for more)", SpoiledDataWarning, stacklevel=5)
    return found


def _with_clusters(
    ranking: Ranking, source: Source, roles: dict[str, Any], association: float | None
) -> Ranking:
    """Return ``ranking`` with the clusters of its best features, if there is a least association for them."""
    if association is None:
        return ranking
    return replace(ranking, clusters=clusters_of(source, roles, ranking.top(len(ranking)), association))


def _check_in_memory(association: float | None) -> None:
    if association is not None:
        raise SettingError(
            "clusters: not of a dask collection; rank it, then cluster by a sample of its rows: "
            "ranking.with_clusters(collection.sample(frac=0.01).compute())"
        )


def _named(data: Any, feature_names: Sequence[str] | None) -> Any:
    """Return the columns of an array under these names."""
    if feature_names is None:
        return data
    if not isinstance(data, np.ndarray | list) or np.ndim(data) != 2:
        raise SettingError(
            "feature_names: for the columns of an array of shape (n_rows, n_columns); leave it out"
        )
    if isinstance(feature_names, str) or not isinstance(feature_names, Iterable):
        raise SettingError(f"feature_names: {feature_names!r} is not a list of names")
    columns, names = np.asarray(data).T, [str(name) for name in feature_names]
    if len(names) != len(columns):
        raise SettingError(f"feature_names: {len(names)} names for {len(columns)} columns; give one for each")
    check_names(names, "feature_names")
    return arrow_table(dict(zip(names, columns, strict=True)))


def _partitions(dataset: Dataset, ranker: Plan, scheduler: Any) -> Any:
    from ferrank.distributed import Partitions

    if dataset.labels is not None:
        raise SettingError("labels: available for files, not for a dask collection; leave it out")
    if not dataset.beside:
        return Partitions.of(dataset.data)
    return Partitions.joined(
        dataset.data,
        dataset.beside.get("target"),
        dataset.beside.get("sample_weight"),
        dataset.beside.get("groups"),
        scheduler,
        as_labels=dataset.holds_label_sets(ranker.task, ranker.hierarchy),
    )


def grow_tree(
    data: Any,
    target: str | Sequence[str] | None = None,
    *,
    tree: int = 0,
    target_last: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str | None = None,
    hierarchy: Any = None,
    drop: Sequence[str] = (),
    sample_weight: str | None = None,
    groups: str | None = None,
    ranker: 'ForestRanker | Literal["forest"] | None' = None,
    **settings: Any,
) -> pa.Table:
    """Grow one tree of the forest that :func:`rank` grows with the same arguments.

    Parameters
    ----------
    data, target, target_last, labels, task, hierarchy, drop, sample_weight, groups, ranker, **settings
        As in :func:`rank`.
    tree : int, default=0
        Index of the tree. With ``per_target``, trees are numbered target by target.

    Returns
    -------
    pyarrow.Table
        A row for each node, each node before its children: ``node, parent, depth,
        n_examples`` (rows of the bootstrap sample, with repetitions), and for a split ``feature``, ``cut``
        (values up to it go left; infinite, or all categories, for the split of known from missing values) or
        ``categories`` (these go left), ``missing_left``, ``gain`` (impurity decrease), ``left, right``.

    Raises
    ------
    DataError, ColumnTypeError, SettingError, ResourceError
        For invalid data, columns, settings or resources, and if there is no such tree.

    Examples
    --------
    >>> import ferrank
    >>> table = ferrank.grow_tree({"a": [1, 2, 3, 4], "y": [0.0, 0.0, 1.0, 1.0]}, "y", bootstrap=False)
    >>> table.select(["node", "depth", "feature", "cut"]).to_pylist()
    [{'node': 0, 'depth': 0, 'feature': 'a', 'cut': 2.5},
     {'node': 1, 'depth': 1, 'feature': None, 'cut': None},
     {'node': 2, 'depth': 1, 'feature': None, 'cut': None}]
    """
    tree = count_of(tree, "tree", "trees")
    chosen = plan_of(ranker, settings)
    if not isinstance(chosen, ForestPlan):
        raise SettingError(f"ranker: {ranker!r} grows no trees; use a ForestRanker, or leave it out")
    source, roles = opened(
        chosen,
        data,
        target=target,
        target_last=target_last,
        labels=labels,
        task=task,
        hierarchy=hierarchy,
        drop=drop,
        sample_weight=sample_weight,
        groups=groups,
    )
    batch = finish(_core.grow_tree(source, roles, chosen._settings(), tree))
    return pa.Table.from_batches([batch])
