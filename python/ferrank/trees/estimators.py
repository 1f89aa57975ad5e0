"""Trees that split by Relief, as scikit-learn's estimators."""

import os
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags, RegressorTags, Tags, column_or_1d
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from ferrank import _core
from ferrank._core import Source
from ferrank.data import validation
from ferrank.data.categories import features_of_words
from ferrank.data.classes import with_classes
from ferrank.data.dataset import Dataset
from ferrank.data.delimited import CSVFile
from ferrank.data.source import open_source
from ferrank.data.values import target_columns
from ferrank.errors import DataError, SettingError
from ferrank.progress import Progress, shown
from ferrank.rankers.plan import plain
from ferrank.resources import threads_of
from ferrank.run import finish
from ferrank.trees import export
from ferrank.trees.structure import Tree

__all__ = ["ReliefTree", "ReliefTreeClassifier", "ReliefTreeRegressor"]

Array = np.ndarray[Any, Any]
_SETTINGS = (
    "selector",
    "leaves",
    "m",
    "switch_at",
    "n_neighbors",
    "sigma",
    "min_samples_leaf",
    "max_purity",
    "unlabelled",
)


def _is_classifier(estimator: "_BaseTree") -> bool:
    """Return True if the target is or will be a class; whether a tree has ``predict_proba``."""
    fitted: Tree | None = getattr(estimator, "tree_", None)
    return (estimator.task if fitted is None else fitted.task) == "classification"


class _BaseTree(BaseEstimator):
    """Base class of the trees; their parameters are the settings of the engine, and ``n_jobs``."""

    task: str | None
    n_jobs: int | None
    _labels: Array | None
    """The classes as they were given, in order; None where a file has them."""

    def fit(self, X: Any, y: Any = None, *, progress: Progress | bool | None = None) -> Self:
        """Grow the tree.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features), Dataset or path
            The features. Columns of strings or categories in frames and Arrow tables are nominal. NaN and
            null are missing values; infinity is an error. A path names a file with the target in it.
        y : array of shape (n_rows,), or the name of a column of the file ``X``
            The target. None for a Dataset, which says what its target is.
        progress : callable or bool, optional
            Called as ``progress(phase, done, total)`` ten times a second; True draws a line on stderr.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            For invalid data or settings; the message names the column or setting and what is valid.
        """
        source, roles = self._of_dataset(X, y) if _is_dataset(X) else self._of_arrays(X, y)
        settings = plain({name: getattr(self, name) for name in _SETTINGS if hasattr(self, name)})
        with shown(progress) as show:
            run = _core.grow_relief_tree(source, roles, settings, threads_of(self.n_jobs))
            self.tree_ = Tree(finish(run, show))
        if self.tree_.task == "classification":
            self._keep_classes()
        self.feature_importances_ = self.tree_.importances()
        return self

    def _of_dataset(self, X: Any, y: Any) -> tuple[Source, dict[str, Any]]:
        if isinstance(X, Dataset) and y is not None:
            raise SettingError("y: the data set says what its target is; leave y out")
        dataset = X if isinstance(X, Dataset) else Dataset(X, target=y)
        source, roles = dataset.source(), dataset.roles(self.task)
        names = [name for name, _ in source.resolve(roles)["features"]]
        self.n_features_in_, self.feature_names_in_ = len(names), np.array(names, dtype=object)
        self._labels = None
        return source, roles

    def _of_arrays(self, X: Any, y: Any) -> tuple[Source, dict[str, Any]]:
        own: dict[str, Any] = {"target_last": None, "task": self.task, "drop": [], "hierarchy": None}
        self._labels, given = None, y
        if y is not None:
            given = y = _single(y)
            if self.task == "classification" or (self.task is None and _holds_classes(y)):
                self._labels, y = _as_names(y)
        source, roles = validation.join(self, X, y, None, None)
        roles = with_classes(source, roles | own | {"classes": [], "categorical_features": []})
        if roles["classes"]:
            self._labels, _ = _as_names(given)
        return source, roles

    def _keep_classes(self) -> None:
        """Set ``classes_``, and where each class of the tree is among them."""
        names = self.tree_.classes
        labels = np.array(names, dtype=object) if self._labels is None else self._labels
        place = {str(label): number for number, label in enumerate(labels.tolist())}
        self._place = np.array([place[name] for name in names], dtype=np.int64)
        self.classes_ = labels
        self.n_classes_ = len(labels)

    def _source(self, X: Any) -> Source:
        check_is_fitted(self)
        texts = features_of_words(dict(zip(self.tree_.features, self.tree_.categories, strict=True)))
        if isinstance(X, Dataset):
            return X.source(as_text=texts)
        return open_source(X, as_text=texts) if _is_dataset(X) else validation.features_alone(self, X)

    def _predict(self, X: Any) -> tuple[Array, Array]:
        source = self._source(X)
        return self.tree_.predict(source, threads_of(self.n_jobs))

    def predict(self, X: Any) -> Array:
        """Predict the target.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features), Dataset or path
            The rows. Columns of files and data sets are found by name. A frame must have the columns that
            ``fit`` was given, in the same order, as scikit-learn requires. Categories that the tree has not
            seen are treated as missing values.

        Returns
        -------
        array of shape (n_rows,)
            Classes or numbers.
        """
        _, values = self._predict(X)
        if not _is_classifier(self):
            return values
        found: Array = self.classes_[self._place[values.astype(np.int64)]]
        return found

    @available_if(_is_classifier)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:
        """Predict the probability of each class: its share of the training rows of the leaf.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features), Dataset or path
            The rows, as in :meth:`predict`.

        Returns
        -------
        array of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        leaves = self.apply(X)
        counts = self.tree_.class_counts[leaves]
        shares = np.zeros(counts.shape)
        shares[:, self._place] = counts / counts.sum(axis=1, keepdims=True)
        return shares

    def apply(self, X: Any) -> Array:
        """Return the number of the leaf that each row reaches.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features), Dataset or path
            The rows, as in :meth:`predict`.

        Returns
        -------
        array of shape (n_rows,)
        """
        leaves, _ = self._predict(X)
        return leaves

    def decision_path(self, X: Any) -> sp.csr_array:
        """Return the nodes on the way of each row.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features), Dataset or path
            The rows, as in :meth:`predict`.

        Returns
        -------
        sparse array of shape (n_rows, n_nodes)
            1 where the row passes the node.
        """
        leaves = self.apply(X)
        return self.tree_.paths(leaves)

    def score(self, X: Any, y: Any) -> float:
        """Return the accuracy of the predicted classes, or R² of the predicted numbers.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features), Dataset or path
            The rows, as in :meth:`predict`.
        y : array of shape (n_rows,)
            Their targets.

        Returns
        -------
        float
        """
        measure = accuracy_score if _is_classifier(self) else r2_score
        return float(measure(y, self.predict(X)))

    def get_depth(self) -> int:
        """Return the largest number of splits above a leaf."""
        check_is_fitted(self)
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Return the number of leaves."""
        check_is_fitted(self)
        return self.tree_.n_leaves

    def export_text(self) -> str:
        """Return the tree as text: a line for each node, with what chose its test and its estimate."""
        check_is_fitted(self)
        return export.text(self.tree_)

    def export_graphviz(self) -> str:
        """Return the tree in Graphviz' language DOT."""
        check_is_fitted(self)
        return export.graphviz(self.tree_)

    def plot(self, path: str | os.PathLike[str] | None = None) -> Any:
        """Draw the tree.

        Parameters
        ----------
        path : path, optional
            Where to save the picture, as .png, .svg or .pdf.

        Returns
        -------
        matplotlib.figure.Figure
        """
        check_is_fitted(self)
        return export.plot(self.tree_, path)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the tree as its suffix says.

        Parameters
        ----------
        path : path
            Ends in .txt, .dot (Graphviz), .svg, .json, .png or .pdf; the last two need matplotlib.
        """
        check_is_fitted(self)
        export.save(self.tree_, path)

    def _repr_svg_(self) -> str | None:
        return export.svg(self.tree_) if hasattr(self, "tree_") else None

    def __str__(self) -> str:
        return self.export_text() if hasattr(self, "tree_") else repr(self)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        return tags


def _is_dataset(X: Any) -> bool:
    return isinstance(X, Dataset | CSVFile | str | os.PathLike)


def _single(y: Any) -> Any:
    """Return the one target as a one-dimensional array or Arrow column."""
    if hasattr(y, "__arrow_c_stream__") or hasattr(y, "columns") or isinstance(y, pa.Array | pa.ChunkedArray):
        columns = target_columns(y)
        if len(columns) != 1:
            raise DataError(f"y: {len(columns)} targets; a tree has one, give one column")
        return columns[0][1]
    try:
        return column_or_1d(y, warn=True)
    except ValueError as error:
        raise DataError(f"y: {error}") from error


def _holds_classes(y: Any) -> bool:
    if isinstance(y, pa.Array | pa.ChunkedArray):
        kind = y.type.value_type if pa.types.is_dictionary(y.type) else y.type
        return bool(pa.types.is_boolean(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))
    if y.dtype.kind == "O":
        known = [value for value in y if value is not None and value == value]
        return bool(known) and all(isinstance(value, str | bool | np.bool_) for value in known)
    return bool(y.dtype.kind in "bUST")


def _as_names(y: Any) -> tuple[Array, pa.Array]:
    """Return the distinct classes in order, and the name of each row's class; None and NaN are missing."""
    values = np.asarray(y.to_pandas()) if isinstance(y, pa.Array | pa.ChunkedArray) else y
    is_missing = np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    known = values[~is_missing]
    check_classification_targets(known)
    try:
        labels, codes = np.unique(known, return_inverse=True)
    except TypeError as error:
        raise DataError(f"y: {error}; use one type: strings, booleans or integers") from error
    names = np.empty(len(values), dtype=object)
    names[~is_missing] = np.array([str(label) for label in labels.tolist()], dtype=object)[codes]
    return labels, pa.array(names, pa.string())


class ReliefTree(_BaseTree):
    """A decision or regression tree whose tests are chosen by Relief.

    In each node the features are estimated on the rows that reach it, the best one is split in two, and the
    grown tree is pruned [1]_. Relief sees features that matter only together, as in a parity, and puts them
    near the root; measures that look at one feature at a time do not, and such trees get large and hard to
    read. The target decides whether the tree predicts classes or numbers.

    Parameters
    ----------
    task : {"classification", "regression"}, optional
        The learning task. By default it follows from the target: strings, categories, booleans and at most 20
        distinct integers are classes, other numbers are quantities.
    selector : str, default="relief"
        What estimates the features of a node. "relief": ReliefF for classes, RReliefF for numbers. For
        classes "myopic" (Equation 5 of [1]_), "accuracy" (Equation 16), "gini" and "gain_ratio"; for numbers
        "mse" (Equations 17 and 18, with what the leaves predict as the predictor). "relief+accuracy" and
        "relief+mse" start with Relief and go over to the second one, in a node and all below it, where the
        estimates of both correlate by ``switch_at`` or more.
    leaves : {"majority", "mean", "linear"}, optional
        What a leaf predicts: the majority class of its rows, their mean, or a linear model in the numeric
        features (least squares by singular values) where that is better than the mean. By default the
        majority class, or the mean.
    m : float or None, default=2.0
        The m of the m-estimate of error [2]_ by which the tree is pruned; larger values make smaller trees.
        None: the tree is not pruned.
    switch_at : float, default=0.8
        Correlation from which on a combined selector goes over to its second part.
    n_neighbors : int, optional
        Neighbors of each row in Relief, in classification of each class; by default 10 for classes and 70 for
        numbers.
    sigma : float, optional
        Width of Relief's rank weights ``exp(-(r / sigma)**2)``; by default neighbors weigh the same for
        classes, and 20 for numbers.
    min_samples_leaf : int, default=5
        Least number of rows of a leaf.
    max_purity : float, default=0.97
        Share of rows of one class from which on a node is a leaf.
    unlabelled : {"error", "ignore"}, default="error"
        How to treat rows without a target.
    n_jobs : int, optional
        Number of threads; the tree is the same for any. By default all cores.

    Attributes
    ----------
    tree_ : Tree
        The nodes: see :class:`ferrank.trees.structure.Tree`.
    feature_importances_ : array of shape (n_features,)
        The decrease of impurity (Gini index or variance) that each feature brings, as a share of the root's.
        The feature of a parity that is split first decreases nothing: read the tree where features depend on
        each other.
    classes_ : array of shape (n_classes,)
        The classes, in classification.
    n_classes_ : int
        Their number.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : array of shape (n_features_in_,)
        Their names, if ``X`` had some.

    Notes
    -----
    A numeric feature is cut between two values, categories are split into two groups. Relief estimates a
    feature as it is, and splits the best one where the split itself, as a feature with two values, is
    estimated best; the other selectors estimate a feature by its best split. Rows whose value is missing go
    with the branch that has more of the others, and splits are estimated with them there; Relief expects
    their differences (Equations 7 and 8). Categories that a node has not seen are as missing values.

    Relief measures all pairs of the rows of a node, so that time grows with the square of their number.

    References
    ----------
    .. [1] M. Robnik-Šikonja, I. Kononenko, "Comprehensiveness of tree based models: attribute dependencies
       and split selection", University of Ljubljana, 1999; Section 4.
    .. [2] B. Cestnik, I. Bratko, "On estimating probabilities in tree pruning", EWSL, 1991.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> X = np.random.default_rng(0).integers(2, size=(200, 6))
    >>> tree = fr.ReliefTree().fit(X, np.where(X[:, 1] ^ X[:, 4], "odd", "even"))
    >>> sorted({int(number) for number in tree.tree_.feature if number >= 0})
    [1, 4]
    >>> print(tree)  # doctest: +ELLIPSIS
    x... ≤ 0.5  [relief ...; 200 rows]
    ├─ yes...
    """

    def __init__(
        self,
        task: Literal["classification", "regression"] | None = None,
        *,
        selector: str = "relief",
        leaves: Literal["majority", "mean", "linear"] | None = None,
        m: float | None = 2.0,
        switch_at: float = 0.8,
        n_neighbors: int | None = None,
        sigma: float | None = None,
        min_samples_leaf: int = 5,
        max_purity: float = 0.97,
        unlabelled: Literal["error", "ignore"] = "error",
        n_jobs: int | None = None,
    ) -> None:
        self.task = task
        self.selector = selector
        self.leaves = leaves
        self.m = m
        self.switch_at = switch_at
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.min_samples_leaf = min_samples_leaf
        self.max_purity = max_purity
        self.unlabelled = unlabelled
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if _is_classifier(self):
            return ReliefTreeClassifier().__sklearn_tags__()
        if self.task == "regression" or hasattr(self, "tree_"):
            return ReliefTreeRegressor().__sklearn_tags__()
        # Neither of the two yet, and either of them later.
        tags.classifier_tags, tags.regressor_tags = ClassifierTags(), RegressorTags()
        return tags


class ReliefTreeClassifier(ClassifierMixin, _BaseTree):
    """A decision tree whose tests are chosen by Relief; :class:`ReliefTree` for classes.

    Parameters
    ----------
    selector : str, default="relief"
        "relief", "myopic", "accuracy", "gini", "gain_ratio" or "relief+accuracy", as in :class:`ReliefTree`.
    m : float or None, default=2.0
        The m of the m-estimate of error by which the tree is pruned; None: it is not pruned.
    switch_at : float, default=0.8
        Correlation from which on a combined selector goes over to its second part.
    n_neighbors : int, optional
        Neighbors of each row in Relief, of each class; 10 by default.
    sigma : float, optional
        Width of Relief's rank weights; by default neighbors weigh the same.
    min_samples_leaf : int, default=5
        Least number of rows of a leaf.
    max_purity : float, default=0.97
        Share of rows of one class from which on a node is a leaf.
    unlabelled : {"error", "ignore"}, default="error"
        How to treat rows without a target.
    n_jobs : int, optional
        Number of threads; by default all cores.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> X = np.random.default_rng(0).integers(2, size=(200, 6))
    >>> fr.ReliefTreeClassifier().fit(X, X[:, 1] ^ X[:, 4]).predict(X[:3]) == (X[:3, 1] ^ X[:3, 4])
    array([ True,  True,  True])
    """

    task = "classification"

    def __init__(
        self,
        *,
        selector: str = "relief",
        m: float | None = 2.0,
        switch_at: float = 0.8,
        n_neighbors: int | None = None,
        sigma: float | None = None,
        min_samples_leaf: int = 5,
        max_purity: float = 0.97,
        unlabelled: Literal["error", "ignore"] = "error",
        n_jobs: int | None = None,
    ) -> None:
        self.selector = selector
        self.m = m
        self.switch_at = switch_at
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.min_samples_leaf = min_samples_leaf
        self.max_purity = max_purity
        self.unlabelled = unlabelled
        self.n_jobs = n_jobs


class ReliefTreeRegressor(RegressorMixin, _BaseTree):
    """A regression tree whose tests are chosen by Relief; :class:`ReliefTree` for numbers.

    Parameters
    ----------
    selector : str, default="relief"
        "relief", "mse" or "relief+mse", as in :class:`ReliefTree`.
    leaves : {"mean", "linear"}, optional
        What a leaf predicts: the mean of its rows (default), or a linear model.
    m : float or None, default=2.0
        The m of the m-estimate of error by which the tree is pruned; None: it is not pruned.
    switch_at : float, default=0.8
        Correlation from which on a combined selector goes over to its second part.
    n_neighbors : int, optional
        Neighbors of each row in Relief; 70 by default.
    sigma : float, optional
        Width of Relief's rank weights; 20 by default.
    min_samples_leaf : int, default=5
        Least number of rows of a leaf.
    unlabelled : {"error", "ignore"}, default="error"
        How to treat rows without a target.
    n_jobs : int, optional
        Number of threads; by default all cores.

    Examples
    --------
    >>> import ferrank as fr, numpy as np
    >>> X = np.random.default_rng(0).uniform(size=(200, 3))
    >>> tree = fr.ReliefTreeRegressor(leaves="linear").fit(X, np.where(X[:, 0] > 0.5, X[:, 1], -X[:, 1]))
    >>> bool(tree.score(X, np.where(X[:, 0] > 0.5, X[:, 1], -X[:, 1])) > 0.9)
    True
    """

    task = "regression"

    def __init__(
        self,
        *,
        selector: str = "relief",
        leaves: Literal["mean", "linear"] | None = None,
        m: float | None = 2.0,
        switch_at: float = 0.8,
        n_neighbors: int | None = None,
        sigma: float | None = None,
        min_samples_leaf: int = 5,
        unlabelled: Literal["error", "ignore"] = "error",
        n_jobs: int | None = None,
    ) -> None:
        self.selector = selector
        self.leaves = leaves
        self.m = m
        self.switch_at = switch_at
        self.n_neighbors = n_neighbors
        self.sigma = sigma
        self.min_samples_leaf = min_samples_leaf
        self.unlabelled = unlabelled
        self.n_jobs = n_jobs
