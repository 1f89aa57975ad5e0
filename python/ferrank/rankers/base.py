"""Base classes of the rankers: scikit-learn estimators that select features."""

import functools
import json
import numbers
import os
import time
from abc import abstractmethod
from typing import Any, ClassVar, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from ferrank import _core
from ferrank._core import Source
from ferrank.data import validation
from ferrank.data.classes import with_classes
from ferrank.data.hierarchy import edges_of
from ferrank.data.source import is_lazy
from ferrank.errors import DataError, SettingError
from ferrank.progress import Progress
from ferrank.ranking import Ranking
from ferrank.resources import bytes_of, threads_of
from ferrank.run import finish

__all__ = ["EngineRanker", "Ranker", "plain", "seed_of"]


class Ranker(SelectorMixin, BaseEstimator):
    """Base class of the rankers: ``fit`` ranks the features, ``transform`` selects the best.

    A ranker has the parameters ``task``, ``hierarchy``, ``until``, ``n_jobs``, ``memory_limit``,
    ``temp_dir``, ``scope`` and ``n_features_to_select``. Its method ``_settings`` returns the name and the
    settings of the engine's ranker.
    """

    task: str | None
    hierarchy: Any = None
    n_features_to_select: int | float | None
    n_jobs: int | None
    until: str | None = None
    stable_top: int
    confidence: float
    scope: Literal["global", "partition"]
    memory_limit: int | str | None
    temp_dir: str | os.PathLike[str] | None = None
    supports_groups: ClassVar[bool] = False
    """Whether the ranker keeps rows of a group together."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return the settings of the engine's ranker, which determine the importances of given data."""

    def _resources(self) -> tuple[int, int | None, str | os.PathLike[str] | None]:
        """Return threads, bytes of memory and folder for temporary files, as the engine takes them."""
        return threads_of(self.n_jobs), bytes_of(self.memory_limit), self.temp_dir

    def _rank_source(
        self,
        source: Source,
        roles: dict[str, Any],
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
        profile: bytes | None = None,
    ) -> Ranking:
        """Rank the features of ``source``, with the ``roles`` of its columns and its ``profile`` if known."""
        settings = self._settings()
        started = time.perf_counter()
        if self.until is None:
            run = _core.accumulate(
                source,
                roles,
                settings,
                *self._resources(),
                profile=profile,
                resume=resume,
                is_profiled=profile is not None,
            )
            result = finish(run, progress).ranking()
        else:
            if resume is not None:
                self._check_is_whole("resume")
            result = finish(
                _core.rank_until(source, roles, settings, *self._resources()), progress, early=True
            )
        return Ranking.from_core(result, settings, time.perf_counter() - started)

    def _rank_partitions(
        self,
        partitions: Any,
        roles: dict[str, Any],
        progress: Progress | None = None,
    ) -> Ranking:
        """Rank the features of a dask collection, where its partitions lie."""
        from ferrank import distributed

        self._check_is_whole("dask collections")
        return distributed.rank(
            partitions,
            self._settings(),
            roles,
            self._resources(),
            self.scope,
            progress,
        )

    def _goal(self) -> dict[str, Any]:
        """Return the settings of early stopping, if it is on."""
        if self.until is None:
            return {}
        return {"until": self.until, "stable_top": self.stable_top, "confidence": self.confidence}

    def _check_is_whole(self, what: str) -> None:
        """Raise an error if the number of trees or queries, which ``what`` needs, is not known."""
        if self.until is not None:
            raise SettingError(
                f"until: with {self.until!r} the number of trees or queries is not known in advance, which "
                f"{what} requires; leave one of the two out"
            )

    def transform(self, X: Any) -> Any:
        """Return the selected features of ``X``; for a dask collection, a dask collection."""
        if not is_lazy(X):
            return super().transform(X)
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

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        if is_lazy(X):
            return self._fit_collection(X, y, sample_weight, groups)
        self._keep(self._rank_source(*self._examples(X, y, sample_weight, groups)))
        return self

    def _keep(self, result: Ranking) -> None:
        """Set the fitted attributes."""
        self.result_ = result
        self.feature_importances_ = result.importances()
        self.ranking_ = result.ranks()

    def _examples(
        self, X: Any, y: Any, sample_weight: Any, groups: Any, like: dict[str, Any] | None = None
    ) -> tuple[Source, dict[str, Any]]:
        """Return the rows as a source and the roles of its columns, given those of earlier batches."""
        own = self._own_roles()
        if _label_sets(own):
            y = validation.label_sets(y)
        source, roles = validation.join(self, X, y, sample_weight, groups, like)
        self._count_selected()
        roles |= own
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

    def _fit_collection(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        from dask.delayed import Delayed

        from ferrank.distributed import Partitions

        if self.task == "unsupervised":
            y = None
        elif y is None:
            raise DataError("y: None was given; give the targets, or say task='unsupervised'")
        roles = self._own_roles()
        partitions = Partitions.joined(X, y, sample_weight, groups, as_labels=_label_sets(roles))
        self._keep(self._rank_partitions(partitions, roles))
        self.n_features_in_ = len(self.result_.features)
        if hasattr(X, "columns") and not isinstance(X, Delayed):
            self.feature_names_in_ = np.array(self.result_.features, dtype=object)
        self._count_selected()
        return self

    def _count_selected(self) -> int:
        """Return the number of features to keep, computed as by scikit-learn's RFE."""
        wanted, n_features = self.n_features_to_select, int(self.n_features_in_)
        if wanted is None:
            return max(1, n_features // 2)
        if isinstance(wanted, numbers.Integral) and 1 <= wanted <= n_features:
            return int(wanted)
        if isinstance(wanted, float) and 0 < wanted <= 1:
            return max(1, int(wanted * n_features))
        raise SettingError(
            f"n_features_to_select: {wanted!r} is neither a number of features in 1 … {n_features} "
            "nor a share in (0, 1] nor None"
        )

    def _get_support_mask(self) -> np.ndarray[Any, Any]:
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.result_.order()[: self._count_selected()]] = True
        return mask

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.target_tags.required = self.task != "unsupervised"
        tags.target_tags.multi_output = True
        return tags


class EngineRanker(Ranker):
    """Base class of rankers whose parameters are the settings of a ranker of the engine.

    Settings and parameters have the same names, except that the setting ``seed`` is ``random_state``.
    """

    supports_groups: ClassVar[bool] = True
    _engine: ClassVar[str]
    """The name of the engine's ranker."""
    hierarchy_decay: float
    random_state: Any

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the engine's ranker, which determine the importances of given data."""
        names = [name for name in _settings_of(self._engine) if name != "seed"]
        return plain(
            {
                "ranker": self._engine,
                **{name: getattr(self, name) for name in names},
                **self._resolved(),
                "hierarchy_decay": self.hierarchy_decay,
                **self._goal(),
                "seed": seed_of(self.random_state),
            }
        )

    def _profile(self, source: Source, roles: dict[str, Any]) -> bytes:
        """Return the profile of ``source``, which saves :meth:`_rank_source` a pass over the data."""
        found: bytes = finish(_core.profile(source, roles, self._settings(), 0, threads_of(self.n_jobs)))
        return found

    def _resolved(self) -> dict[str, Any]:
        """Return the settings whose values differ from the parameters as given."""
        return {}


@functools.cache
def _settings_of(engine: str) -> list[str]:
    """Return the names of the settings of the engine's ranker ``engine``."""
    return [name for name in json.loads(_core.default_settings_json(engine)) if name != "ranker"]


def _label_sets(roles: dict[str, Any]) -> bool:
    """Return True if the ranker's parameters imply that the target holds a list of labels for each row."""
    return roles["task"] == "hierarchical" or (roles["task"] is None and roles["hierarchy"] is not None)


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return ``settings`` as read back from JSON: NumPy numbers as Python numbers, tuples as lists."""
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def seed_of(random_state: Any) -> int:
    """Return the seed given by ``random_state``; an integer is the seed itself."""
    if isinstance(random_state, numbers.Integral):
        return int(random_state)
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 32))
    return int(check_random_state(random_state).randint(1 << 31))
