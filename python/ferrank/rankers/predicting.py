"""Forests as estimators that predict: the side of ``keep_trees``."""

import os
from typing import Any

import numpy as np
import pyarrow as pa
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ferrank.data import validation
from ferrank.data.source import is_lazy
from ferrank.data.values import target_columns
from ferrank.errors import SettingError, UnavailableError
from ferrank.rankers.kept import Forest, columns_as_array
from ferrank.rankers.streaming import StreamRanker

__all__ = ["PredictingRanker", "takes_streams"]

Array = np.ndarray[Any, Any]
_OF_BAGS = ("oob_score_", "oob_prediction_")
_FITTED = ("forest_", "classes_", *_OF_BAGS)
_METHODS = ("predict", "predict_proba", "apply", "score")


def _keeps_trees(estimator: "PredictingRanker") -> bool:
    return bool(estimator.keep_trees)


def takes_streams(estimator: "PredictingRanker") -> bool:
    """Return True if the estimator has ``partial_fit``."""
    return not estimator.keep_trees


class PredictingRanker(StreamRanker):
    """Base of rankers that can keep the trees they grow, and predict with them."""

    keep_trees: bool | str | os.PathLike[str]
    forest_: Forest
    _labels: list[Array]
    """For each target the classes as they were given, in the order of the engine; empty for numbers."""

    def __getattr__(self, name: str) -> Any:
        """Explain which setting an attribute or method needs; ``hasattr`` is False."""
        forest = self.__dict__.get("forest_")
        if name in _OF_BAGS and forest is not None:
            if (reason := forest.no_oob) is None:
                return self._predict_oob(forest)[name]
            if not reason.startswith("bootstrap"):
                raise UnavailableError(f"{name}: it is not known; {reason}")
            raise UnavailableError(
                f"{name}: each tree has seen all rows; set bootstrap=True and fit again, so that each leaves "
                "some out"
            )
        if not self.__dict__.get("keep_trees"):
            if name in (*_FITTED, *_METHODS):
                raise UnavailableError(f"{name}: no trees are kept; set keep_trees=True and fit again")
        elif name == "partial_fit":
            raise UnavailableError("keep_trees: not available with partial_fit; leave one of the two out")
        return super().__getattr__(name)

    def __dir__(self) -> list[str]:
        """Name the attributes of out-of-bag rows before they are computed."""
        forest = self.__dict__.get("forest_")
        lazy = () if forest is None or forest.no_oob is not None else _OF_BAGS
        return sorted({*super().__dir__(), *lazy})

    def __getstate__(self) -> dict[str, Any]:
        """Predict out-of-bag rows first: a pickled forest does not have the rows."""
        forest = self.__dict__.get("forest_")
        if forest is not None and not set(_OF_BAGS) & set(self.__dict__):
            self._predict_oob(forest)
        state: dict[str, Any] = super().__getstate__()
        return state

    def _predict_oob(self, forest: Forest) -> dict[str, Any]:
        """Set and return the attributes of out-of-bag rows, if these can be predicted."""
        labels = self._labels
        if (found := forest._predict_oob()) is None:
            return {}
        values, scores = found
        numbers = np.array([value for _, value in scores])
        score = float(numbers[0]) if len(numbers) == 1 else numbers
        attributes = {"oob_score_": score, "oob_prediction_": _by_target(values, labels)}
        # Another thread may fit anew meanwhile.
        if self.__dict__.get("forest_") is forest:
            self.__dict__.update(attributes)
        return attributes

    def _forget_trees(self) -> None:
        """Remove what an earlier fit kept."""
        for name in _FITTED:
            self.__dict__.pop(name, None)

    def _keep_trees(self, y: Any) -> None:
        """Set the attributes that follow from the kept trees; ``y`` are the targets as they were given."""
        forest: Forest = self.result_.forest
        self.forest_ = forest
        given = [] if not forest.targets or y is None else _columns(y, len(forest.targets))
        self._labels = [
            _labels(forest.classes[name], column) if name in forest.classes else np.empty(0)
            for name, column in zip(forest.targets, given, strict=True)
        ]
        classes = [
            np.sort(labels) if _is_sortable(labels) else labels for labels in self._labels if len(labels)
        ]
        if classes:
            self.classes_ = classes[0] if len(self._labels) == 1 else classes
        if forest._oob is not None:
            self._predict_oob(forest)

    def save_trees(self, path: str | os.PathLike[str]) -> None:
        """Save the kept trees to an Arrow file, which :meth:`Forest.load` reads.

        Parameters
        ----------
        path : path
            Any name; ``.ferrank`` is usual.
        """
        if not self.keep_trees:
            raise SettingError("keep_trees: there are no trees to save; set keep_trees=True and fit again")
        check_is_fitted(self)
        self.forest_.save(path)

    def _table(self, X: Any, what: Any, threshold: float = 0.5) -> pa.Table:
        check_is_fitted(self)
        return self.forest_._run(validation.features_alone(self, X), what, self.n_jobs, None, threshold)

    @available_if(_keeps_trees)  # type: ignore[untyped-decorator]
    def predict(self, X: Any, *, threshold: float = 0.5) -> Any:
        """Predict the targets, with ``keep_trees``.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features), or dask collection
            The rows. Missing values go the way that they went in growth; categories are found by their names,
            and those that are not known are as missing values.
        threshold : float, default=0.5
            A label is predicted if its share is above it.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_targets)
            Means of numbers, the most probable class, or lists of labels. For a dask collection, a dask
            array.
        """
        if is_lazy(X):
            return self._by_partition(X, threshold)
        table = self._table(X, "values", threshold)
        columns = [
            _values(column, labels) for column, labels in zip(table.columns, self._labels, strict=True)
        ]
        if len(columns) == 1:
            return columns[0]
        kinds = {column.dtype for column in columns}
        return np.column_stack(columns if len(kinds) == 1 else [column.astype(object) for column in columns])

    def _by_partition(self, X: Any, threshold: float) -> Any:
        """Return the predictions for a dask collection, each partition where it is."""
        import dask.array as da
        from dask.delayed import Delayed, delayed

        check_is_fitted(self)
        if isinstance(X, list | tuple):
            parts = list(X)
        else:
            parts = [X] if isinstance(X, Delayed) else np.ravel(X.to_delayed()).tolist()
        model = delayed(self)
        shape = (np.nan,) if len(self._labels) == 1 else (np.nan, len(self._labels))
        dtype = self._labels[0].dtype if len(self._labels[0]) else np.dtype(float)
        found = [
            da.from_delayed(model.predict(part, threshold=threshold), shape=shape, dtype=dtype)
            for part in parts
        ]
        return da.concatenate(found)

    @available_if(_keeps_trees)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Any:
        """Predict the shares of classes and labels, with ``keep_trees``.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The rows, as in :meth:`predict`.

        Returns
        -------
        array of shape (n_rows, n_classes), or list of arrays
            The means over the trees of the shares in their leaves, in the order of ``classes_``; for several
            targets a list, in which numbers have their means.
        """
        table = self._table(X, "shares")
        if not any(len(labels) for labels in self._labels):
            raise SettingError(
                f"predict_proba: for classes and labels, the task is {self.forest_.task}; use predict"
            )
        return _by_target(columns_as_array(table), self._labels)

    @available_if(_keeps_trees)  # type: ignore[untyped-decorator]
    def apply(self, X: Any) -> Array:
        """Return the leaf of each row in each tree, with ``keep_trees``.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The rows, as in :meth:`predict`.

        Returns
        -------
        array of shape (n_rows, n_trees)
            Numbers of nodes.
        """
        return columns_as_array(self._table(X, "leaves"))

    @available_if(_keeps_trees)  # type: ignore[untyped-decorator]
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of predicted classes, or R² of predicted numbers, with ``keep_trees``.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The rows, as in :meth:`predict`.
        y : array of shape (n_rows,) or (n_rows, n_targets)
            Their targets.
        sample_weight : array of shape (n_rows,), optional
            Their weights.

        Returns
        -------
        float
            The mean over the targets.
        """
        predicted = self.predict(X)
        if self.forest_.task == "hierarchical":
            raise SettingError("score: not for label sets; measure predict_proba with your own measure")
        columns = predicted.T if predicted.ndim == 2 else [predicted]
        truths = [np.asarray(column) for column in _columns(y, len(columns))]
        measures = [accuracy_score if len(labels) else r2_score for labels in self._labels]
        scores = [
            measure(truth, column.astype(truth.dtype), sample_weight=sample_weight)
            for measure, truth, column in zip(measures, truths, columns, strict=True)
        ]
        return float(np.mean(scores))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if not self.keep_trees:
            return tags
        forest = self.__dict__.get("forest_")
        task = self.task if forest is None else forest.task
        kinds = {"numeric"} if task == "regression" else set() if forest is None else set(forest._kinds())
        if task == "classification" or (kinds and kinds == {"nominal"}):
            tags.estimator_type, tags.classifier_tags = "classifier", ClassifierTags()
        elif kinds == {"numeric"}:
            tags.estimator_type, tags.regressor_tags = "regressor", RegressorTags()
        elif forest is None:
            # Neither of the two yet, and either of them later.
            tags.classifier_tags, tags.regressor_tags = ClassifierTags(), RegressorTags()
        return tags


def _columns(y: Any, n_targets: int) -> list[Any]:
    """Return the targets one by one, as arrays."""
    if n_targets == 1 and not hasattr(y, "columns") and not hasattr(y, "__arrow_c_stream__"):
        values = _objects(list(y)) if _are_sets(y) else np.asarray(y)
        return [values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values]
    columns = [column for _, column in target_columns(y)]
    return [
        column.to_pandas().to_numpy() if hasattr(column, "to_pandas") else np.asarray(column)
        for column in columns
    ]


def _are_sets(y: Any) -> bool:
    return isinstance(y, list | tuple) and any(isinstance(row, list | tuple | set | frozenset) for row in y)


def _labels(names: list[str], given: Array) -> Array:
    """Return the classes called ``names`` as they were given."""
    known: dict[str, Any] = {}
    if given.ndim == 1 and given.dtype.kind in "mM":
        # The engine counts seconds, of times since 1970.
        values = np.unique(given[~np.isnat(given)])
        seconds = values.astype(values.dtype.str.replace("M8", "m8")) / np.timedelta64(1, "s")
        known = {_text(second): value for second, value in zip(seconds.tolist(), values, strict=True)}
    elif given.ndim == 1 and given.dtype.kind in "biufOUS":
        for value in given.tolist() if given.dtype.kind == "O" else np.unique(given).tolist():
            if value is not None and not isinstance(value, list | tuple | set | frozenset | np.ndarray):
                known.setdefault(_text(value), value)
    if not all(name in known for name in names):
        return np.array(names, dtype=object)
    found = [known[name] for name in names]
    return _objects(found) if given.dtype.kind == "O" else np.array(found, dtype=given.dtype)


def _by_target(components: Array, classes: list[Array]) -> Any:
    """Return means and shares, n_rows x n_components, in the shapes of scikit-learn."""
    parts, start = [], 0
    for labels in classes:
        width = max(1, len(labels))
        part = components[:, start : start + width]
        parts.append(part[:, _order(labels)] if len(labels) else part[:, 0])
        start += width
    if len(parts) == 1:
        return parts[0]
    return parts if any(len(labels) for labels in classes) else np.column_stack(parts)


def _objects(values: list[Any]) -> Array:
    """Return an array of objects, whatever these are."""
    found = np.empty(len(values), dtype=object)
    for number, value in enumerate(values):
        found[number] = value
    return found


def _text(value: Any) -> str:
    """Return the name that the engine gives to a class."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _is_sortable(labels: Array) -> bool:
    return len({type(label) for label in labels.tolist()}) == 1


def _order(labels: Array) -> Array:
    """Return the places of the classes in the order of ``classes_``."""
    return np.argsort(labels, kind="stable") if _is_sortable(labels) else np.arange(len(labels))


def _values(column: pa.ChunkedArray, labels: Array) -> Array:
    """Return a predicted column in the terms of the targets that were given."""
    if pa.types.is_dictionary(column.type):
        codes = [np.asarray(chunk.indices) for chunk in column.chunks]
        found: Array = labels[np.concatenate(codes)] if codes else labels[:0]
        return found
    if pa.types.is_list(column.type):
        return _objects(column.to_pylist())
    return np.asarray(column.to_numpy())
