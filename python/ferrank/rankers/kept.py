"""Forests that are kept: they predict, and are saved."""

import json
import os
import tempfile
from collections.abc import Sequence
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ferrank import _core
from ferrank.data.categories import features_of_words
from ferrank.data.dataset import Dataset
from ferrank.data.opening import check_arrow
from ferrank.data.parameters import count_of, flag_of
from ferrank.data.source import open_source
from ferrank.errors import SettingError
from ferrank.output import check_apart, check_path, replace
from ferrank.progress import Progress, shown
from ferrank.resources import threads_of
from ferrank.run import finish

__all__ = ["Forest"]

Array = np.ndarray[Any, Any]
PREDICTION_SUFFIXES = (".arrow", ".feather", ".ipc", ".parquet", ".csv")
"""Files that predictions are written to."""


class Forest:
    """A forest whose trees are kept: it predicts new rows, and is saved as an Arrow file.

    ``ForestRanker(keep_trees=True)`` makes one, as its attribute ``forest_``; :meth:`load` reads one.

    Parameters
    ----------
    core : object
        The forest of the engine.

    Attributes
    ----------
    task : str
        What the forest predicts.
    features : list of str
        Names of the features, which new data must have as columns.
    targets : list of str
        Names of the targets.
    classes : dict of str to list of str
        The classes of each nominal target and the labels of each target of label sets, in their order.
    n_trees : int
        Number of trees.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> x = np.arange(40.0)
    >>> forest = fr.ForestRanker(keep_trees=True, n_estimators=20).fit(x.reshape(-1, 1), x > 19).forest_
    >>> forest.predict({"x0": [3.0, 35.0]}).to_pydict()
    {'y': ['false', 'true']}
    """

    def __init__(self, core: _core.Forest) -> None:
        self._core = core
        self._oob: tuple[Array, list[tuple[str, float]]] | None = None
        about = self._about = json.loads(core.description())
        self.task: str = about["task"]
        self.features: list[str] = [feature["name"] for feature in about["features"]]
        self.targets: list[str] = [target["name"] for target in about["targets"]]
        self.classes: dict[str, list[str]] = {
            target["name"]: target["values"] for target in about["targets"] if target["kind"] != "numeric"
        }
        self.n_trees: int = core.n_trees

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the forest in a file, which stays mapped.

        Parameters
        ----------
        path : path
            A file that :meth:`save`, ``keep_trees`` or ``ferrank rank --keep`` wrote.

        Returns
        -------
        Forest

        Raises
        ------
        DataError, ResourceError
            It cannot be read, or is no sound forest.
        """
        return cls(
            _core.Forest.open(check_arrow(path, "file of a forest", "ferrank rank --keep or Forest.save"))
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the forest to an Arrow file, whose columns the page "Models" of the documentation describes.

        Parameters
        ----------
        path : path
            Any name; ``.ferrank`` is usual.
        """
        self._core.save(check_path(path))

    def predict(
        self,
        data: Any,
        *,
        threshold: float = 0.5,
        n_jobs: int | None = None,
        progress: Progress | bool | None = None,
    ) -> pa.Table:
        """Predict the targets.

        Parameters
        ----------
        data : Dataset, path or paths, URL, frame, table, reader, array or mapping of columns
            The rows, of any source that :func:`rank` takes. Features are found by the names of their columns,
            categories by their own names; categories that are not known are as missing values.
        threshold : float, default=0.5
            A label is predicted if its share is above it, from 0 to below 1.
        n_jobs : int, optional
            Number of threads; predictions do not depend on it. By default all cores.
        progress : callable or bool, optional
            Called as ``progress(phase, done, total)`` ten times a second; True draws a line on stderr.

        Returns
        -------
        pyarrow.Table
            A column for each target: means of numbers, the most probable class, or lists of labels, which
            include their ancestors.

        Raises
        ------
        DataError, ColumnTypeError
            A column is missing, of another kind, or holds infinite values; the message names it.
        """
        return self._run(data, "values", n_jobs, progress, threshold)

    def predict_proba(
        self, data: Any, *, n_jobs: int | None = None, progress: Progress | bool | None = None
    ) -> pa.Table:
        """Predict the shares of classes and labels.

        Parameters
        ----------
        data, n_jobs, progress
            As in :meth:`predict`.

        Returns
        -------
        pyarrow.Table
            A column ``target=class`` for each class or label, and one for each number.
        """
        return self._run(data, "shares", n_jobs, progress)

    def apply(self, data: Any, *, n_jobs: int | None = None) -> Array:
        """Return the leaf of each row in each tree.

        Parameters
        ----------
        data, n_jobs
            As in :meth:`predict`.

        Returns
        -------
        array of shape (n_rows, n_trees)
            Numbers of nodes.
        """
        return columns_as_array(self._run(data, "leaves", n_jobs, None))

    def predict_to(
        self,
        data: Any,
        path: str | os.PathLike[str],
        *,
        shares: bool = False,
        threshold: float = 0.5,
        n_jobs: int | None = None,
        progress: Progress | bool | None = None,
    ) -> int:
        """Write predictions to a file, chunk by chunk: neither rows nor predictions need fit into memory.

        Parameters
        ----------
        data, threshold, n_jobs, progress
            As in :meth:`predict`.
        path : path
            Ends in .arrow, .parquet or .csv. The file appears once it is complete.
        shares : bool, default=False
            Write the shares of classes and labels, as :meth:`predict_proba` returns them.

        Returns
        -------
        int
            Number of rows.
        """
        path = check_path(path, PREDICTION_SUFFIXES)
        check_apart(path, *(data if isinstance(data, list | tuple) else [data]))
        what: Literal["values", "shares"] = "shares" if flag_of(shares, "shares") else "values"
        if path.suffix.lower() in (".arrow", ".feather", ".ipc"):
            return int(self._run(data, what, n_jobs, progress, threshold, path))
        if path.suffix.lower() == ".csv" and not shares and "labels" in self._kinds():
            raise SettingError(f"{path}: lists of labels do not go to CSV; use .parquet or .arrow")
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".ferrank-") as folder:
            between = Path(folder) / "predictions.arrow"
            n_rows = int(self._run(data, what, n_jobs, progress, threshold, between))
            with pa.memory_map(str(between)) as mapped:
                reader = pa.ipc.open_file(mapped)
                replace(path, lambda partial: _copy(reader, partial))
        return n_rows

    def interactions(self, top: int = 20) -> pa.Table:
        """Return the pairs of features that work together most, as paths of the trees tell.

        Parameters
        ----------
        top : int, default=20
            Number of pairs, at most.

        Returns
        -------
        pyarrow.Table
            Columns ``feature``, ``other`` and ``gain``: the mean over trees of the impurity decreases of
            splits of one feature below one of the other, weighted by the share of rows that reach them.
            Features that are good alone occur together too: compare pairs of about the same importance. If
            more than 1,000 features are tested, the pairs are of the 1,000 with the greatest decreases.

        Raises
        ------
        SettingError
            ``top`` is not a number of pairs.
        """
        found = self._core.interactions(min(count_of(top, "top", "pairs"), len(self.features) ** 2))
        return pa.table(
            {
                "feature": pa.array([self.features[pair[0]] for pair in found], pa.string()),
                "other": pa.array([self.features[pair[1]] for pair in found], pa.string()),
                "gain": pa.array([pair[2] for pair in found], pa.float64()),
            }
        )

    def trends(self) -> pa.Table:
        """Return which way numeric features work on numbers, and on the shares of classes and labels.

        Returns
        -------
        pyarrow.Table
            Columns ``feature``, ``target``, ``value`` (class or label; None for numbers) and ``trend``, from
            -1 to 1: the variance that splits explain where greater values of the feature have the greater
            mean, less that where they have the smaller one, as a share of both. It is 1 if the mean grows in
            all splits, and near 0 if it grows as often as it falls.
        """
        names = [
            (target["name"], value)
            for target in self._about["targets"]
            for value in (target["values"] if target["kind"] != "numeric" else [None])
        ]
        found = self._core.trends()
        return pa.table(
            {
                "feature": pa.array([self.features[one[0]] for one in found], pa.string()),
                "target": pa.array([names[one[1]][0] for one in found], pa.string()),
                "value": pa.array([names[one[1]][1] for one in found], pa.string()),
                "trend": pa.array([one[2] for one in found], pa.float64()),
            }
        )

    def nodes(self) -> pa.Table:
        """Return the table of the nodes of all trees, with the number of the tree as its first column."""
        table, lengths = self._core.nodes()
        trees = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
        return table.replace_schema_metadata(None).add_column(0, "tree", pa.array(trees))

    def to_shap(self) -> list[dict[str, Array]]:
        """Return the trees as ``shap.TreeExplainer`` takes them, ``{"trees": forest.to_shap()}``.

        Missing values and categories: SHAP sends a missing value where the tree sends it. Trees that test
        categories have no such form, which is an error.

        Returns
        -------
        list of dict
            For each tree ``children_left``, ``children_right``, ``children_default``, ``features``,
            ``thresholds``, ``values`` of shape (n_nodes, n_outputs) and ``node_sample_weight``. Values are
            divided by the number of trees, as SHAP adds them up.
        """
        return list(_shap_trees(self))

    @property
    def oob_scores(self) -> dict[str, tuple[str, float]] | None:
        """By target, a measure and its value in rows that are out of bag; None where they are not known."""
        found = self._predict_oob()
        return None if found is None else dict(zip(self.targets, found[1], strict=True))

    @property
    def no_oob(self) -> str | None:
        """Why nothing is known of out-of-bag rows: the setting, and what would do."""
        return self._core.no_oob

    def _predict_oob(self) -> tuple[Array, list[tuple[str, float]]] | None:
        """Return what is predicted out of bag, n_rows x n_components, and the scores; None where not known.

        The first call predicts, and releases the codes of the rows once their predictions are here: a call
        that is interrupted can be made again.
        """
        if self._oob is None and self.no_oob is None:
            try:
                found = finish(self._core.oob(), None)
            except SettingError:
                # Another thread was faster. A lock might never open in a signal handler or a forked process.
                if self._oob is None:
                    raise
            else:
                self._oob = found
                self._core.forget_rows()
        return self._oob

    def _predict_oob_of_many(self) -> None:
        """Predict out-of-bag rows at once if the codes of the rows take more memory than the trees."""
        of_rows, of_nodes = self._core.n_bytes()
        if of_rows > of_nodes:
            self._predict_oob()

    @cached_property
    def _texts(self) -> list[str]:
        """The features that are text in files of new rows."""
        return features_of_words({one["name"]: one.get("categories") for one in self._about["features"]})

    def _kinds(self) -> list[str]:
        return [target["kind"] for target in self._about["targets"]]

    def _run(
        self,
        data: Any,
        what: Literal["values", "shares", "leaves"],
        n_jobs: int | None,
        progress: Progress | bool | None,
        threshold: float = 0.5,
        path: Path | None = None,
    ) -> Any:
        if isinstance(threshold, bool) or not isinstance(threshold, Real):
            raise SettingError(f"threshold: {threshold!r} is no number; use one from 0 to below 1")
        if isinstance(data, Dataset):
            source = data.source(as_text=self._texts)
        else:
            source = data if isinstance(data, _core.Source) else open_source(data, as_text=self._texts)
        with shown(progress) as show:
            return finish(self._core.predict(source, what, threshold, threads_of(n_jobs), path), show)

    def __repr__(self) -> str:
        targets = ", ".join(self.targets[:3]) + (" …" if len(self.targets) > 3 else "")
        return f"<Forest of {self.n_trees} trees: {self.task} of {targets}, {len(self.features)} features>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._core.to_bytes(),)


def _restore(data: bytes) -> Forest:
    return Forest(_core.Forest.from_bytes(data))


def columns_as_array(table: pa.Table) -> Array:
    """Return columns of numbers side by side, n_rows x n_columns."""
    columns: Sequence[Array] = [column.to_numpy() for column in table.columns]
    return np.column_stack(columns) if columns else np.empty((table.num_rows, 0))


def _copy(reader: pa.ipc.RecordBatchFileReader, path: Path) -> None:
    """Write batches to a Parquet or CSV file, one at a time."""
    schema = pa.schema(
        [
            pa.field(field.name, pa.string()) if pa.types.is_dictionary(field.type) else field
            for field in reader.schema
        ]
    )
    if path.suffix.lower() == ".parquet":
        with pq.ParquetWriter(path, schema) as writer:
            for number in range(reader.num_record_batches):
                writer.write_batch(reader.get_batch(number).cast(schema))
        return
    import pyarrow.csv as pc

    with pc.CSVWriter(path, schema) as writer:
        for number in range(reader.num_record_batches):
            writer.write_batch(reader.get_batch(number).cast(schema))


def _shap_trees(forest: Forest) -> Any:
    if any("categories" in feature for feature in forest._about["features"]):
        tested = forest.nodes().filter(pa.compute.is_valid(pa.compute.field("categories")))
        if tested.num_rows:
            name = forest.features[tested.column("feature")[0].as_py()]
            raise SettingError(
                f"feature '{name}': SHAP takes cuts of numbers, and trees test categories of it; encode it "
                "as numbers before the forest is grown"
            )
    sizes = [
        1 if target["kind"] == "numeric" else len(target["values"]) for target in forest._about["targets"]
    ]
    n_trees = forest._about["n_estimators"]
    table, lengths = forest._core.nodes()
    start = 0
    for length in lengths:
        yield _shap_tree(table.slice(start, length).combine_chunks(), sum(sizes), n_trees)
        start += length


def _shap_tree(nodes: pa.Table, n_outputs: int, n_trees: int) -> dict[str, Array]:
    feature = nodes.column("feature").fill_null(0).to_numpy().astype(np.int64)
    is_leaf = nodes.column("feature").is_null().to_numpy()
    numbers = np.arange(len(feature))
    left = np.where(is_leaf, -1, numbers + 1)
    right = np.where(is_leaf, -1, nodes.column("right").fill_null(0).to_numpy().astype(np.int64))
    missing_left = nodes.column("missing_left").fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
    cut = nodes.column("cut").fill_null(0.0).to_numpy()
    lists = [nodes.column(name).combine_chunks() for name in ("components", "values")]
    ends = np.asarray(lists[0].offsets)
    values = np.zeros((len(feature), n_outputs))
    owner = np.repeat(numbers, np.diff(ends))
    flat = [np.asarray(one.flatten()) for one in lists]
    values[owner, flat[0]] = flat[1]
    weight = nodes.column("weight").to_numpy()
    # Inner nodes predict the mean of their children, by weight; in preorder, children come later.
    for node in numbers[~is_leaf][::-1]:
        a, b = left[node], right[node]
        values[node] = (weight[a] * values[a] + weight[b] * values[b]) / (weight[a] + weight[b])
    return {
        "children_left": left,
        "children_right": right,
        "children_default": np.where(is_leaf, -1, np.where(missing_left, left, right)),
        "features": np.where(is_leaf, -2, feature),
        "thresholds": np.where(is_leaf, -2.0, np.minimum(cut, np.finfo(np.float64).max)),
        "values": values / n_trees,
        "node_sample_weight": weight,
    }
