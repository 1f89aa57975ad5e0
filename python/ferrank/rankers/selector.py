"""Selection of the relevant features, for pipelines of scikit-learn."""

import warnings
from inspect import signature
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from ferrank.data.parameters import count_of, kind_of
from ferrank.rankers.base import Ranker
from ferrank.rankers.estimators import ranker_of
from ferrank.rankers.registry import WITH_P_VALUES, unknown_setting
from ferrank.ranking.relevance import FDR, Dependence, check_fdr

__all__ = ["RelevantFeatures"]


class _Suggesting:
    """Suggests settings; a class apart, so that the selector keeps the signature of ``__init__``."""

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Name a setting that the selector does not have before ``__init__`` does, which suggests nothing."""
        own = list(signature(cls).parameters)
        unknown = next((name for name in settings if name not in own), None)
        if unknown is not None:
            raise unknown_setting(unknown, own, cls.__name__, within="ranker=JointRanker({}=…)")
        made: Self = super().__new__(cls)
        return made


class RelevantFeatures(_Suggesting, MetaEstimatorMixin, SelectorMixin, BaseEstimator):
    """Keeps the features that are relevant at a false discovery rate.

    Parameters
    ----------
    fdr : float, default=0.1
        The false discovery rate: at most this share of the features kept is expected to be irrelevant.
    dependence : {"positive", "any"}, default="positive"
        What p-values have to do with each other; see :meth:`Relevance.q_values`.
    at_least : int, default=0
        Number of features that are kept in any case, the best ones, so that later steps of a pipeline have
        some where none is relevant. ``fdr`` does not hold for those kept for this reason.
    ranker : Ranker or {"joint", "forest", "relief", "association"}, optional
        A ranker that gives p-values; None is a :class:`JointRanker`. A forest or Relief that is named has the
        settings from which p-values follow.

    Attributes
    ----------
    ranker_ : Ranker
        The fitted ranker; ``ranker_.result_`` is the ranking with its verdicts.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Names of the features, if all column names of ``X`` are strings.

    Examples
    --------
    >>> import numpy as np
    >>> from ferrank import JointRanker, RelevantFeatures
    >>> X = np.random.default_rng(0).normal(size=(200, 6))
    >>> selector = RelevantFeatures(fdr=0.1, ranker=JointRanker(n_estimators=200))
    >>> selector.fit(X, X[:, 4] + 2 * X[:, 1]).get_feature_names_out()
    array(['x1', 'x4'], dtype=object)
    """

    ranker_: Ranker

    def __init__(
        self,
        fdr: float = FDR,
        *,
        dependence: Dependence = "positive",
        at_least: int = 0,
        ranker: Ranker | str | None = None,
    ) -> None:
        self.fdr = fdr
        self.dependence = dependence
        self.at_least = at_least
        self.ranker = ranker

    def fit(self, X: Any, y: Any, groups: Any = None) -> Self:
        """Rank the features and find those that are relevant.

        Parameters
        ----------
        X : array, sparse array or frame of shape (n_rows, n_features)
            The features.
        y : array or frame of shape (n_rows,) or (n_rows, n_targets)
            The targets.
        groups : array of shape (n_rows,), optional
            The group that each row belongs to.

        Returns
        -------
        self

        Raises
        ------
        SettingError
            ``fdr`` or ``at_least`` is not valid, or the ranker gives no p-values.
        """
        check_fdr(self.fdr)
        count_of(self.at_least, "at_least")
        given = ranker_of("joint" if self.ranker is None else self.ranker, WITH_P_VALUES)
        ranker = clone(kind_of(given, Ranker, "ranker", "a ranker"))
        self.ranker_ = ranker.fit(X, y) if groups is None else ranker.fit(X, y, groups=groups)
        if not self.ranker_.result_.relevant(self.fdr, self.dependence) and not self.at_least:
            warnings.warn(
                f"no feature is relevant at fdr={self.fdr:g}, and none is selected, which models refuse; "
                "at_least=1 keeps the best one",
                stacklevel=2,
            )
        self.n_features_in_ = self.ranker_.n_features_in_
        if hasattr(self.ranker_, "feature_names_in_"):
            self.feature_names_in_ = self.ranker_.feature_names_in_
        return self

    def transform(self, X: Any) -> Any:
        """Return the relevant features of ``X``."""
        check_is_fitted(self)
        return super().transform(X)

    def _get_support_mask(self) -> np.ndarray[Any, Any]:
        check_is_fitted(self)
        result = self.ranker_.result_
        kept = set(result.relevant(self.fdr, self.dependence))
        others = [name for name in result.top(len(result)) if name not in kept]
        kept.update(others[: max(0, self.at_least - len(kept))])
        return np.array([name in kept for name in result.features])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags
