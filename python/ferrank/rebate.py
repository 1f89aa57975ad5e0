"""The classes of scikit-rebate, with its names, parameters and attributes, by the engine of ferrank.

``from ferrank.rebate import MultiSURF`` in place of ``from skrebate import MultiSURF`` is the only change to
a program. See the page "Coming from other tools" for what differs. What ferrank offers beyond it, such as
standard errors, more kinds of targets, missing values and data that do not fit into memory, is that of
:class:`ferrank.ReliefRanker`.
"""

import time
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ferrank.data.categories import categorical_names
from ferrank.data.sparse import issparse
from ferrank.data.tables import arrow_table
from ferrank.errors import ColumnTypeError, DataError, SettingError
from ferrank.rankers.relief import ReliefRanker
from ferrank.rankers.turf import Ints, combined, eliminated
from ferrank.ranking import Ranking
from ferrank.ranking.scores import Floats

__all__ = ["SURF", "TURF", "VLS", "MultiSURF", "MultiSURFstar", "ReliefF", "SURFstar"]

Rule = Literal["nearest", "surf", "surf_star", "multisurf", "multisurf_star"]


class _Selector(TransformerMixin, BaseEstimator):
    """Base class: ``transform`` returns the best features, the best first, as scikit-rebate does."""

    feature_importances_: Floats
    top_features_: Ints
    n_features_in_: int

    def _n_selected(self) -> int:
        raise NotImplementedError

    def _ranks_absolute(self) -> bool:
        raise NotImplementedError

    def _keep(self, X: Any, importances: Floats) -> Self:
        """Set the fitted attributes."""
        worth = np.abs(importances) if self._ranks_absolute() else importances
        self.feature_importances_ = importances
        self.top_features_ = np.argsort(-worth, kind="stable")
        self.n_features_in_ = len(importances)
        names = getattr(X, "columns", None)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(list(names), dtype=object)
        return self

    def transform(self, X: Any) -> Any:
        """Return the ``n_features_to_select`` best features of ``X``, the best first."""
        check_is_fitted(self)
        if X.shape[1] != self.n_features_in_:
            raise DataError(f"X: {X.shape[1]} features, the selector was fitted on {self.n_features_in_}")
        return _columns(X, self._selected())

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray[Any, Any]:
        """Return the names of the features that ``transform`` returns."""
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", input_features)
        if names is None:
            names = [f"x{number}" for number in range(self.n_features_in_)]
        return np.asarray(names, dtype=object)[self._selected()]

    def _selected(self) -> Ints:
        wanted = self._n_selected()
        if not 1 <= wanted <= self.n_features_in_:
            raise SettingError(
                f"n_features_to_select: {wanted} is not in 1 … {self.n_features_in_}, the number of features"
            )
        return self.top_features_[:wanted]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags


class ReliefF(_Selector):
    """ReliefF with the parameters of scikit-rebate.

    Parameters
    ----------
    n_features_to_select : int, default=10
        Number of features that ``transform`` returns.
    n_neighbors : int or float, default=100
        Number of hits and of misses of each class. A float is the share of the rows that are hits or misses,
        half of which are hits.
    categorical_features : sequence of int, str or bool, optional
        Positions or names of the categorical features, or a mask; the others are numeric. By default, strings
        and categories are, and features of at most ``discrete_threshold`` values.
    discrete_threshold : int, default=10
        Most distinct values of a categorical feature and of a target of classes.
    categorical_threshold : int, optional
        The name of ``discrete_threshold`` for features in scikit-rebate 0.8; takes precedence.
    multiclass_threshold : int, optional
        The name of ``discrete_threshold`` for targets in scikit-rebate 0.8; takes precedence.
    verbose : bool, default=False
        Print how long ``fit`` took.
    n_jobs : int, default=1
        Number of threads; -1 uses all cores.
    weight_final_scores : bool, default=False
        No effect, because ``fit`` takes no weights of features.
    rank_absolute : bool, default=False
        Order features by the absolute values of their importances.
    label_type : {"binary", "multiclass", "continuous"}, optional
        What the target is; by default it follows from its number of distinct values.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        The importances.
    top_features_ : ndarray of shape (n_features,)
        Positions of the features, the best first.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if ``X`` has names.
    result_ : Ranking
        The ranking of ferrank, with standard errors.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank.rebate import ReliefF
    >>> X = np.random.default_rng(0).integers(3, size=(200, 6))
    >>> relief = ReliefF(n_features_to_select=2, n_neighbors=10)
    >>> relief.fit(X, (X[:, 1] + X[:, 4]) % 2).top_features_[:2].tolist()
    [1, 4]
    """

    _rule: ClassVar[Rule] = "nearest"
    result_: Ranking

    def __init__(
        self,
        n_features_to_select: int = 10,
        n_neighbors: int | float = 100,
        *,
        categorical_features: Sequence[Any] | None = None,
        discrete_threshold: int = 10,
        categorical_threshold: int | None = None,
        multiclass_threshold: int | None = None,
        verbose: bool = False,
        n_jobs: int = 1,
        weight_final_scores: bool = False,
        rank_absolute: bool = False,
        label_type: Literal["binary", "multiclass", "continuous"] | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.n_neighbors = n_neighbors
        self.categorical_features = categorical_features
        self.discrete_threshold = discrete_threshold
        self.categorical_threshold = categorical_threshold
        self.multiclass_threshold = multiclass_threshold
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.weight_final_scores = weight_final_scores
        self.rank_absolute = rank_absolute
        self.label_type = label_type

    def fit(self, X: Any, y: Any, weights: None = None) -> Self:
        """Compute the importances of the features.

        Parameters
        ----------
        X : array or frame of shape (n_rows, n_features)
            The features; NaN is missing.
        y : array of shape (n_rows,)
            Classes or numbers.
        weights : None
            Weights of features, which ferrank does not have.

        Returns
        -------
        self

        Raises
        ------
        DataError, ColumnTypeError, SettingError
            For invalid data or settings.
        """
        started = time.perf_counter()
        if weights is not None:
            raise SettingError("weights: distances do not weigh features; leave them out")
        if issparse(X):
            raise ColumnTypeError("X: is sparse; use a dense array, or ferrank.ReliefRanker")
        X = np.asarray(X) if isinstance(X, list | tuple) else X
        kind = self._label_type(y)
        settings: dict[str, Any] = {"neighborhood": self._rule}
        if self._rule == "nearest":
            settings["n_neighbors"] = self._n_neighbors(X.shape[0])
        if kind == "multiclass" and self._rule == "nearest":
            settings["class_priors"] = "uniform"
        ranker = ReliefRanker(
            "regression" if kind == "continuous" else "classification",
            categorical_features=self._categorical(X),
            n_jobs=self.n_jobs,
            n_features_to_select=1,
            **settings,
        )
        self.result_ = ranker.fit(X, y).result_
        self._keep(X, self.result_.importances())
        if self.verbose:
            print(f"{type(self).__name__}: fitted in {time.perf_counter() - started:.2f} seconds.")
        return self

    def _n_selected(self) -> int:
        return self.n_features_to_select

    def _ranks_absolute(self) -> bool:
        return self.rank_absolute

    def _n_neighbors(self, n_rows: int) -> int:
        if isinstance(self.n_neighbors, float):
            return max(1, int(self.n_neighbors * n_rows / 2))
        return self.n_neighbors

    def _label_type(self, y: Any) -> str:
        values = pa.array(np.asarray(y).ravel(), from_pandas=True)
        n = pc.count_distinct(values).as_py()
        if n == 1:
            raise DataError("y: all rows have the same value; at least 2 are needed")
        if self.label_type is None:
            most = self.discrete_threshold if self.multiclass_threshold is None else self.multiclass_threshold
            is_number = pa.types.is_integer(values.type) or pa.types.is_floating(values.type)
            if n == 2:
                return "binary"
            return "multiclass" if n <= most or not is_number else "continuous"
        if self.label_type not in ("binary", "multiclass", "continuous"):
            raise SettingError(
                f"label_type: {self.label_type!r} is not 'binary', 'multiclass' or 'continuous'"
            )
        if self.label_type == "binary" and n != 2:
            raise SettingError(f"label_type: 'binary' with {n} distinct values; use 'multiclass'")
        return self.label_type

    def _categorical(self, X: Any) -> list[str] | list[bool]:
        table = None if isinstance(X, np.ndarray) else arrow_table(X)
        names = [f"x{number}" for number in range(X.shape[1])] if table is None else table.column_names
        if self.categorical_features is not None:
            return categorical_names(self.categorical_features, names)
        most = self.discrete_threshold if self.categorical_threshold is None else self.categorical_threshold
        columns = list(X.T) if table is None else table.columns
        return [_n_values(column) <= most for column in columns]


def _n_values(column: Any) -> int:
    """Return the number of distinct known values of a column; NaN is none."""
    if not isinstance(column, pa.ChunkedArray):
        column = pa.array(column, from_pandas=True)
    elif pa.types.is_floating(column.type):
        column = pc.drop_null(pc.if_else(pc.is_nan(column), None, column))
    if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
        return 0
    return int(pc.count_distinct(column).as_py())


def _columns(X: Any, chosen: Ints) -> Any:
    """Return the columns ``chosen`` of an array or a frame, in this order."""
    if hasattr(X, "iloc"):
        return X.iloc[:, chosen]
    if isinstance(X, np.ndarray | list | tuple):
        return np.asarray(X)[:, chosen]
    return X[:, chosen.tolist()] if not isinstance(X, pa.Table) else X.select(chosen.tolist())


class _Radius(ReliefF):
    """Base class of the rules by distance, which have no number of neighbors."""

    def __init__(
        self,
        n_features_to_select: int = 10,
        *,
        categorical_features: Sequence[Any] | None = None,
        discrete_threshold: int = 10,
        categorical_threshold: int | None = None,
        multiclass_threshold: int | None = None,
        verbose: bool = False,
        n_jobs: int = 1,
        weight_final_scores: bool = False,
        rank_absolute: bool = False,
        label_type: Literal["binary", "multiclass", "continuous"] | None = None,
    ) -> None:
        self.n_features_to_select = n_features_to_select
        self.categorical_features = categorical_features
        self.discrete_threshold = discrete_threshold
        self.categorical_threshold = categorical_threshold
        self.multiclass_threshold = multiclass_threshold
        self.verbose = verbose
        self.n_jobs = n_jobs
        self.weight_final_scores = weight_final_scores
        self.rank_absolute = rank_absolute
        self.label_type = label_type


class SURF(_Radius):
    """SURF (Greene et al. 2009); parameters and attributes as of :class:`ReliefF`, without k.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank.rebate import SURF
    >>> X = np.random.default_rng(0).integers(3, size=(200, 6))
    >>> relief = SURF(n_features_to_select=2)
    >>> relief.fit(X, (X[:, 1] + X[:, 4]) % 2).top_features_[:2].tolist()
    [1, 4]
    """

    _rule: ClassVar[Rule] = "surf"


class SURFstar(_Radius):
    """SURF* (Greene et al. 2010); parameters and attributes as of :class:`ReliefF`, without k.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank.rebate import SURFstar
    >>> X = np.random.default_rng(0).integers(3, size=(200, 6))
    >>> relief = SURFstar(n_features_to_select=2)
    >>> relief.fit(X, (X[:, 1] + X[:, 4]) % 2).top_features_[:2].tolist()
    [1, 4]
    """

    _rule: ClassVar[Rule] = "surf_star"


class MultiSURF(_Radius):
    """MultiSURF (Urbanowicz et al. 2018); parameters and attributes as of :class:`ReliefF`, without k.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank.rebate import MultiSURF
    >>> X = np.random.default_rng(0).integers(3, size=(200, 6))
    >>> relief = MultiSURF(n_features_to_select=2)
    >>> relief.fit(X, (X[:, 1] + X[:, 4]) % 2).top_features_[:2].tolist()
    [1, 4]
    """

    _rule: ClassVar[Rule] = "multisurf"


class MultiSURFstar(_Radius):
    """MultiSURF* (Granizo-Mackenzie and Moore 2013); parameters and attributes as of :class:`ReliefF`.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank.rebate import MultiSURFstar
    >>> X = np.random.default_rng(0).integers(3, size=(200, 6))
    >>> relief = MultiSURFstar(n_features_to_select=2)
    >>> relief.fit(X, (X[:, 1] + X[:, 4]) % 2).top_features_[:2].tolist()
    [1, 4]
    """

    _rule: ClassVar[Rule] = "multisurf_star"


class _Wrapper(_Selector):
    """Base class of what fits another selector several times."""

    relief_object: Any

    def _n_selected(self) -> int:
        return int(self.relief_object.n_features_to_select)

    def _ranks_absolute(self) -> bool:
        return bool(self.relief_object.rank_absolute)

    @property
    def rank_absolute(self) -> bool:
        """Whether features are ordered by the absolute values of their importances."""
        return self._ranks_absolute()

    @property
    def n_features_to_select(self) -> int:
        """Number of features that ``transform`` returns."""
        return self._n_selected()

    def _importances(self, X: Any, y: Any, features: Ints) -> Floats:
        """Return the importances of ``features``, of shape (len(features),), where there are no others."""
        fitted = clone(self.relief_object).fit(_columns(X, features), y)
        return cast(Floats, fitted.feature_importances_)


class TURF(_Wrapper):
    """TuRF (Moore and White 2007): the worst features are left out, and the others scored anew.

    Parameters
    ----------
    relief_object : estimator
        What scores features: a class of this module.
    pct : float or int, default=0.5
        Share of the features left, or number of features, that leave after each iteration.
    num_scores_to_return : int, default=100
        Number of features in the last iteration, at most all.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        The importances, of each feature in its last iteration; of features that leave together lowered by
        the same number where needed to stay below those of the features left.
    top_features_ : ndarray of shape (n_features,)
        Positions of the features, the best first.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank.rebate import TURF, MultiSURF
    >>> X = np.random.default_rng(0).integers(3, size=(300, 40))
    >>> turf = TURF(MultiSURF(n_features_to_select=2), num_scores_to_return=5)
    >>> turf.fit(X, (X[:, 1] + X[:, 30]) % 2).top_features_[:2].tolist()
    [30, 1]
    """

    def __init__(self, relief_object: Any, pct: float | int = 0.5, num_scores_to_return: int = 100) -> None:
        self.relief_object = relief_object
        self.pct = pct
        self.num_scores_to_return = num_scores_to_return

    def fit(self, X: Any, y: Any) -> Self:
        """Compute the importances of the features."""
        X = np.asarray(X) if isinstance(X, list | tuple) else X
        measured: list[Floats] = []

        def worth(features: Ints) -> Floats:
            measured.append(self._importances(X, y, features))
            return np.abs(measured[-1]) if self._ranks_absolute() else measured[-1]

        rounds = eliminated(worth, X.shape[1], self.pct, self.num_scores_to_return)
        importances = combined(rounds, X.shape[1], by_ratio=self._ranks_absolute())
        if self._ranks_absolute():
            for (features, _), scores in zip(rounds, measured, strict=True):
                importances[features] = np.copysign(importances[features], scores)
        return self._keep(X, importances)


class VLS(_Wrapper):
    """VLSRelief: random subsets of features are scored, and the best score of each feature counts.

    As in VLSReliefF (Eppstein and Haake 2008).

    Parameters
    ----------
    relief_object : estimator
        What scores features: a class of this module.
    num_feature_subset : int, default=40
        Number of subsets; together they have to hold all features.
    size_feature_subset : int, default=5
        Number of features in each subset, at most all.
    random_state : int, RandomState or None, default=None
        Seed of the subsets.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank.rebate import VLS, MultiSURF
    >>> X = np.random.default_rng(0).integers(3, size=(200, 12))
    >>> vls = VLS(MultiSURF(n_features_to_select=2), size_feature_subset=6, random_state=0)
    >>> vls.fit(X, (X[:, 1] + X[:, 8]) % 2).top_features_[:2].tolist()
    [8, 1]
    """

    def __init__(
        self,
        relief_object: Any,
        num_feature_subset: int = 40,
        size_feature_subset: int = 5,
        random_state: Any = None,
    ) -> None:
        self.relief_object = relief_object
        self.num_feature_subset = num_feature_subset
        self.size_feature_subset = size_feature_subset
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Compute the importances of the features."""
        X = np.asarray(X) if isinstance(X, list | tuple) else X
        n = X.shape[1]
        size, number = min(self.size_feature_subset, n), self.num_feature_subset
        if size < 1 or size * number < n:
            raise SettingError(
                f"num_feature_subset: {number} subsets of {self.size_feature_subset} features hold fewer "
                f"than all {n}; use {-(-n // max(size, 1))} or more"
            )
        random = check_random_state(self.random_state)
        order = random.permutation(n)
        best = np.full(n, -np.inf)
        signed = np.zeros(n)
        for subset in range(number):
            chosen = order[subset * size : (subset + 1) * size]
            if len(chosen) < size:
                others = np.setdiff1d(np.arange(n), chosen)
                chosen = np.concatenate([chosen, random.choice(others, size - len(chosen), replace=False)])
            chosen = np.sort(chosen)
            scores = self._importances(X, y, chosen)
            worth = np.abs(scores) if self._ranks_absolute() else scores
            better = worth > best[chosen]
            best[chosen[better]] = worth[better]
            signed[chosen[better]] = scores[better]
        return self._keep(X, signed)
