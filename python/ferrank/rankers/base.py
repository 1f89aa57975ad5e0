"""Base classes of the rankers: scikit-learn estimators that select features."""

import numbers
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.validation import check_is_fitted

from ferrank._core import Source
from ferrank.data import validation
from ferrank.data.categories import categorical_names, is_from_dtype
from ferrank.data.classes import with_classes
from ferrank.data.hierarchy import edges_of
from ferrank.data.source import is_lazy
from ferrank.data.tables import unmasked
from ferrank.data.values import holds_label_sets, label_sets
from ferrank.errors import DataError, SettingError
from ferrank.progress import Progress
from ferrank.rankers.plan import Plan, refuse_client
from ferrank.rankers.registry import unknown_setting
from ferrank.ranking import Ranking

__all__ = ["Ranker"]

FITTED = ("result_", "ranking_", "feature_importances_")
"""What each ranker knows after ``fit``."""


class Ranker(Plan, SelectorMixin, BaseEstimator):
    """Base class of the rankers: ``fit`` ranks the features, ``transform`` selects the best.

    A ranker is a plan, whose parameters it has, and ``n_features_to_select``.
    """

    n_features_to_select: int | float | None
    _is_ranked: np.ndarray[Any, np.dtype[np.bool_]]
    """(n_features_in_,); whether a feature was ranked by the last fit"""
    __metadata_request__fit: ClassVar[dict[str, Any]] = {"client": UNUSED}

    def __new__(cls, *given: Any, **settings: Any) -> Self:
        """Name a setting that the ranker does not have before ``__init__`` does, which suggests nothing."""
        own = cls._defaults()
        unknown = next((name for name in settings if name not in own), None)
        if unknown is not None:
            raise unknown_setting(unknown, own, cls.__name__)
        made: Self = super().__new__(cls)
        return made

    def __getattr__(self, name: str) -> Any:
        """Say what a ranker knows after ``fit`` only; ``hasattr`` is False."""
        if name in FITTED:
            raise NotFittedError(
                f"{name}: this {type(self).__name__} is not fitted yet; call fit with data first"
            )
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def transform(self, X: Any) -> Any:
        """Return the selected features of ``X``; for a dask collection, a dask collection."""
        # scikit-learn checks the names of columns first, and warns that there are none.
        check_is_fitted(self)
        if not is_lazy(X):
            return super().transform(unmasked(X))
        from dask.delayed import Delayed, delayed

        if isinstance(X, list | tuple):
            return [self.transform(part) for part in X]
        if isinstance(X, Delayed):
            return delayed(self.transform)(X)
        mask = self.get_support()
        if X.shape[1] != len(mask):
            raise DataError(f"X: {X.shape[1]} columns, the ranker was fitted on {len(mask)} features")
        if hasattr(X, "columns"):
            return X[[name for name, kept in zip(X.columns, mask, strict=True) if kept]]
        return X[:, np.flatnonzero(mask)]

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, client: Any = None) -> Self:
        if is_lazy(X):
            from ferrank.distributed import on_scheduler

            fitted: Self = on_scheduler(client, partial(self._fit_collection, X, y, sample_weight, groups))
            return fitted
        refuse_client(client, "X")
        source, roles = self._examples(X, y, sample_weight, groups)
        if sample_weight is not None and not np.asarray(sample_weight).any():
            raise DataError("sample_weight: all weights are zero; give some rows a weight above it")
        self._keep(self._rank_source(source, roles))
        return self

    def _keep(self, result: Ranking) -> None:
        """Set the fitted attributes."""
        self.result_ = result
        importances, ranks = result.importances(), result.ranks()
        if not self._is_ranked.all():
            all_importances = np.zeros(self._is_ranked.size)
            all_ranks = np.full(self._is_ranked.size, len(importances) + 1, dtype=ranks.dtype)
            all_importances[self._is_ranked], all_ranks[self._is_ranked] = importances, ranks
            importances, ranks = all_importances, all_ranks
        self.feature_importances_, self.ranking_ = importances, ranks

    def _unranked(self) -> list[str | int]:
        """Return the features that have a role other than to be ranked, by name or position."""
        return []

    def _tell_ranked(self, names: Callable[[], Sequence[str]]) -> None:
        """Keep which of the features, called ``names``, are ranked; the engine refuses what is no feature."""
        self._is_ranked = np.ones(int(self.n_features_in_), dtype=bool)
        unranked = self._unranked()
        if not unranked:  # To make 20,000 names takes as long as ten trees.
            return
        places = {name: place for place, name in enumerate(names())}
        found = [places.get(one) if isinstance(one, str) else one for one in unranked]
        self._is_ranked[[one for one in found if one is not None and 0 <= one < self._is_ranked.size]] = False

    def _examples(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, like: dict[str, Any] | None = None
    ) -> tuple[Source, dict[str, Any]]:
        """Return the rows as a source and the roles of its columns, given those of earlier batches."""
        own = self._own_roles()
        if holds_label_sets(own["task"], own["hierarchy"], y):
            y = label_sets(y)
        source, roles = validation.join(self, X, y, sample_weight, groups, like)
        self._tell_ranked(lambda: source.columns[: self.n_features_in_])
        if self._is_ranked.any():
            self._count_selected()
        roles |= own | {"categorical_features": []}
        if not is_from_dtype(self.categorical_features):
            names = source.columns[: self.n_features_in_]
            roles["categorical_features"] = categorical_names(self.categorical_features, names)
        if like is None:
            return source, with_classes(source, roles)
        if self.task is None:
            roles |= {name: like[name] for name in ("classes", "task")}
        return source, roles

    def _own_roles(self) -> dict[str, Any]:
        """Return the roles of columns that the ranker's own parameters determine."""
        return {
            "target_last": None,
            "task": self.task,
            "classes": [],
            "drop": [],
            "hierarchy": edges_of(self.hierarchy),
        }

    def _fit_collection(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        groups: Any,
        scheduler: Any,
        progress: Progress | None = None,
    ) -> Self:
        from dask.delayed import Delayed

        from ferrank.distributed import Partitions

        if self.task == "unsupervised":
            y = None
        elif y is None:
            raise DataError("y: None was given; give the targets, or say task='unsupervised'")
        roles = {"target": None, "weight": None, "groups": None} | self._own_roles()
        is_frame = hasattr(X, "columns") and not isinstance(X, Delayed)
        names = [str(name) for name in X.columns] if is_frame else None
        roles["categorical_features"] = categorical_names(self.categorical_features, names)
        as_labels = holds_label_sets(roles["task"], roles["hierarchy"])
        partitions = Partitions.joined(X, y, sample_weight, groups, scheduler, as_labels=as_labels)
        result = self._rank_partitions(partitions, roles, scheduler, progress)
        self.n_features_in_ = len(result.features) + len(self._unranked())
        if is_frame:
            self.feature_names_in_ = np.array(names if self._unranked() else result.features, dtype=object)
        self._tell_ranked(lambda: names or [f"x{i}" for i in range(self.n_features_in_)])
        self._keep(result)
        self._count_selected()
        return self

    def _count_selected(self) -> int:
        """Return the number of features to keep, computed as by scikit-learn's RFE."""
        wanted, n_features = self.n_features_to_select, int(self._is_ranked.sum())
        if wanted is None:
            return max(1, n_features // 2)
        if isinstance(wanted, numbers.Integral) and 1 <= wanted <= n_features:
            return int(wanted)
        if isinstance(wanted, float) and 0 < wanted <= 1:
            return max(1, int(wanted * n_features))
        ranked = "" if self._is_ranked.all() else ", those that are ranked,"
        raise SettingError(
            f"n_features_to_select: {wanted!r} is neither a number of features in 1 … {n_features}{ranked} "
            "nor a share in (0, 1] nor None"
        )

    def _get_support_mask(self) -> np.ndarray[Any, Any]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        places = np.flatnonzero(self._is_ranked)
        mask[places[self.result_.order()[: self._count_selected()]]] = True
        return mask

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.target_tags.required = self.task != "unsupervised"
        tags.target_tags.multi_output = True
        return tags
