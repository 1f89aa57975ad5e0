"""What runs a ranking: settings and resources, handed to the engine. Nothing here knows scikit-learn.

The rankers that users of scikit-learn have are plans too: they add ``fit``, ``transform`` and the like.
"""

import copy
import functools
import json
import math
import numbers
import os
import posixpath
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Set
from inspect import signature
from typing import Any, ClassVar, Literal

import numpy as np

from ferrank import _core
from ferrank._core import Source
from ferrank.data.categories import FROM_DTYPE, CategoricalFeatures
from ferrank.data.parameters import decay_of
from ferrank.errors import SettingError
from ferrank.output import check_apart, check_path, path_of
from ferrank.progress import Progress
from ferrank.rankers.turf import turf
from ferrank.ranking import Ranking
from ferrank.ranking.joint import join
from ferrank.resources import bytes_of, threads_of
from ferrank.run import finish

__all__ = [
    "JOINT_DRAWS",
    "JOINT_TREES",
    "OF_ESTIMATORS",
    "AssociationPlan",
    "EnginePlan",
    "ForestPlan",
    "JointPlan",
    "Plan",
    "ReliefPlan",
    "UnivariatePlan",
    "listed",
    "plain",
    "refuse_client",
    "seed_of",
]

JOINT_TREES = 600
"""Trees that p-values are computed from. Of four rankings of german.arff by 400 trees, one found the spread
of the shadows of two features far too small."""
JOINT_LEAF = 4
"""Least rows in a leaf. With 2 features are ranked as well, in 1.3 times the time."""
LEAST_TREES = 200
"""The least number of trees that do for p-values."""
LEAST_DRAWS = 20
"""The least number of draws of the targets that do for p-values."""
JOINT_DRAWS = 60
"""Draws of the targets that p-values are computed from."""


class Plan(ABC):
    """How to rank: what the engine is told, and what it may use.

    A plan has the attributes ``task``, ``categorical_features``, ``hierarchy``, ``until``, ``n_jobs``,
    ``memory_limit``, ``temp_dir`` and ``scope``. Its method ``_settings`` returns the name and the settings
    of the engine's ranker.
    """

    task: str | None
    categorical_features: CategoricalFeatures = FROM_DTYPE
    hierarchy: Any = None
    n_jobs: int | None
    until: str | None = None
    stable_top: int
    confidence: float
    scope: Literal["global", "partition"]
    memory_limit: int | str | None
    temp_dir: str | os.PathLike[str] | None = None
    supports_groups: ClassVar[bool] = False
    """Whether rows of a group are kept together."""

    @abstractmethod
    def _settings(self) -> dict[str, Any]:
        """Return the settings of the engine's ranker, which determine the importances of given data."""

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the parameters and their defaults."""
        return {name: parameter.default for name, parameter in signature(cls).parameters.items()}

    def _resources(self) -> tuple[int, int | None, str | os.PathLike[str] | None]:
        """Return threads, bytes of memory and folder for temporary files, as the engine takes them."""
        self._check_unused("scope", "global", "a dask collection")
        return self._resources_of_workers()

    def _resources_of_workers(self) -> tuple[int, int | None, str | os.PathLike[str] | None]:
        """Return the same for other machines, which have folders of their own."""
        if self.temp_dir is not None:
            path_of(self.temp_dir, "temp_dir")
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
            if resume is not None:
                check_path(resume)
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
        scheduler: Any,
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> Ranking:
        """Rank the features of a dask collection, where its partitions lie."""
        from ferrank import distributed

        self._check_is_whole("dask collections")
        return distributed.rank(
            partitions,
            self._settings(),
            roles,
            self._resources_of_workers(),
            self.scope,
            scheduler,
            progress,
            resume,
        )

    def _goal(self) -> dict[str, Any]:
        """Return the settings of early stopping, if it is on."""
        if self.until is None:
            for name in _OF_STOPPING[1:]:
                self._check_unused(name, _OF_RUNS[name], 'until="stable"')
            return {}
        return {"until": self.until, "stable_top": self.stable_top, "confidence": self.confidence}

    def _check_unused(self, name: str, default: Any, without: str) -> None:
        """Raise an error if a setting that has no effect ``without`` another one is not its default."""
        if getattr(self, name, default) != default:
            raise SettingError(f"{name}: has no effect without {without}; leave it out")

    def _check_is_whole(self, what: str) -> None:
        """Raise an error if the number of trees or queries, which ``what`` needs, is not known."""
        if self.until is not None:
            raise SettingError(
                f"until: with {self.until!r} the number of trees or queries is not known in advance, and "
                f"{what} cannot do without it; leave until out"
            )


class EnginePlan(Plan):
    """A plan whose parameters are the settings of a ranker of the engine.

    Settings and parameters have the same names, except that the setting ``seed`` is ``random_state``. What
    is not given has the engine's default.
    """

    supports_groups: ClassVar[bool] = True
    _engine: ClassVar[str]
    """The name of the engine's ranker."""
    hierarchy_decay: float
    random_state: Any

    def __init__(self, **parameters: Any) -> None:
        self.__dict__ |= self._defaults() | parameters

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Return the parameters and their defaults."""
        return _defaults_of(cls._engine)

    def _settings(self) -> dict[str, Any]:
        """Return the settings of the engine's ranker, which determine the importances of given data."""
        names = _engine_defaults(self._engine).keys()
        return plain(
            {
                "ranker": self._engine,
                **{name: getattr(self, name) for name in names - {"seed"}},
                **self._resolved(),
                "hierarchy_decay": decay_of(self.hierarchy_decay),
                **self._goal(),
                **({"seed": seed_of(self.random_state)} if "seed" in names else {}),
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
def _engine_defaults(engine: str) -> dict[str, Any]:
    """Return the settings of the engine's ranker ``engine``, without its name."""
    found = json.loads(_core.default_settings_json(engine))
    return {name: value for name, value in found.items() if name != "ranker"}


_FOLLOWING = {"unlabelled": None, "influence": None}
"""Settings that follow from others unless they are given."""
_OF_RUNS: dict[str, Any] = {
    "task": None,
    "categorical_features": FROM_DTYPE,
    "hierarchy": None,
    "hierarchy_decay": 0.75,
    "until": None,
    "stable_top": 10,
    "confidence": 0.95,
    "n_jobs": None,
    "memory_limit": None,
    "temp_dir": None,
    "scope": "global",
}
"""The parameters of every plan of the engine, beside its settings."""
_OF_STOPPING = ("until", "stable_top", "confidence")
_OF_TURF: dict[str, Any] = {"turf_step": None, "turf_features": 0.1}
"""The parameters of the iterated form of Relief."""
OF_ESTIMATORS: dict[str, Any] = {
    "n_features_to_select": None,
    "block_rows": 20_000,
    "reservoir_rows": 20_000,
    "half_life": None,
}
"""Parameters of the estimators, which a ranking does without."""


def _own_defaults(engine: str) -> dict[str, Any]:
    """Return the parameters that are settings of the engine's ranker."""
    return {name: _FOLLOWING.get(name, value) for name, value in _engine_defaults(engine).items()}


@functools.cache
def _defaults_of(engine: str) -> dict[str, Any]:
    own = _own_defaults(engine)
    own["random_state"] = own.pop("seed")
    return {"task": None, **own, **_OF_RUNS, **OF_ESTIMATORS, **(_OF_TURF if engine == "relief" else {})}


class ForestPlan(EnginePlan):
    """Ranking by an ensemble of trees; the parameters are those of :class:`ferrank.ForestRanker`."""

    _engine: ClassVar[str] = "forest"
    scores: Any
    decay: Any
    permutation_measures: Any
    supervision: float | None
    unlabelled: str | None
    keep_trees: bool | str | os.PathLike[str]

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        return super()._defaults() | {"keep_trees": False}

    def _rank_source(
        self,
        source: Source,
        roles: dict[str, Any],
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
        profile: bytes | None = None,
    ) -> Ranking:
        if isinstance(self.keep_trees, str | os.PathLike):
            check_apart(check_path(self.keep_trees), source.name)
        elif not isinstance(self.keep_trees, bool | np.bool_):
            raise SettingError(f"keep_trees: {self.keep_trees!r} is no path; use True, False or a path")
        if not self.keep_trees:
            return super()._rank_source(source, roles, progress, resume, profile)
        from ferrank.rankers.kept import Forest

        for setting, given in [("until", self.until), ("resume", resume)]:
            if given is not None:
                raise SettingError(f"{setting}: not with keep_trees; leave one of the two out")
        settings = self._settings()
        started = time.perf_counter()
        run = _core.accumulate_and_keep(source, roles, settings, *self._resources(), profile=profile)
        accumulator, forest = finish(run, progress)
        kept = Forest(forest)
        kept._predict_oob_of_many()
        if isinstance(self.keep_trees, str | os.PathLike):
            kept.save(self.keep_trees)
        seconds = time.perf_counter() - started
        return Ranking.from_core(accumulator.ranking(), settings, seconds).with_forest(kept)

    def _check_is_whole(self, what: str) -> None:
        super()._check_is_whole(what)
        if self.keep_trees:
            raise SettingError(f"keep_trees: not available with {what}; leave one of the two out")

    def _resolved(self) -> dict[str, Any]:
        scores = (self.scores,) if isinstance(self.scores, str) else self.scores
        measures = self.permutation_measures
        used = "error" if self.supervision is None else "use"
        return {
            "scores": scores,
            "decay": listed(self.decay),
            "permutation_measures": [] if measures is None else listed(measures),
            "unlabelled": used if self.unlabelled is None else self.unlabelled,
        }


class ReliefPlan(EnginePlan):
    """Ranking by neighbors; the parameters are those of :class:`ferrank.ReliefRanker`."""

    _engine: ClassVar[str] = "relief"
    turf_step: int | float | None = None
    turf_features: int | float
    max_samples: int | float | None = None
    distance_features: Any = None
    covariates: Any = None
    target_draws: int
    class_priors: Any
    scores: Any
    n_neighbors: Any
    sigma: Any
    n_iterations: Any
    target_distance: Any
    influence: tuple[float, float] | None
    unlabelled: str | None

    def _resolved(self) -> dict[str, Any]:
        if self.influence is not None and self.unlabelled not in (None, "use"):
            raise SettingError(
                f"influence: applies to rows without a target, which unlabelled={self.unlabelled!r} "
                "excludes; leave one of the two out"
            )
        if self.turf_step is None:
            self._check_unused("turf_features", _OF_TURF["turf_features"], "turf_step")
        used = "use" if self.influence is not None else "error"
        return {
            "scores": listed(self.scores),
            "n_neighbors": listed(self.n_neighbors),
            "sigma": listed(self.sigma),
            "n_iterations": listed(self.n_iterations),
            "target_distance": [] if self.target_distance is None else listed(self.target_distance),
            "class_priors": _priors(self.class_priors),
            "distance_features": _features_of_distance(self.distance_features),
            "covariates": _covariates(self.covariates),
            "unlabelled": used if self.unlabelled is None else self.unlabelled,
            "influence": _INFLUENCE if self.influence is None else self.influence,
        }

    def _check_is_whole(self, what: str) -> None:
        super()._check_is_whole(what)
        if self.turf_step is not None:
            raise SettingError(
                f"turf_step: leaves features out by the ranking of all rows, which {what} do not have before "
                "the end; leave one of the two out"
            )

    def _rank_source(
        self,
        source: Source,
        roles: dict[str, Any],
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
        profile: bytes | None = None,
    ) -> Ranking:
        if self.turf_step is None:
            return super()._rank_source(source, roles, progress, resume, profile)
        once = self._iteration()
        once.covariates = self._covariate_names(source, roles)
        weights = self._distance_weights(source, roles)
        if self.max_samples is not None:
            # All iterations rank the same rows, which are read once where they fit in memory.
            settings = once._settings()
            once.random_state = settings["seed"]
            drawn = finish(_core.sample(source, settings, bytes_of(self.memory_limit)), progress)
            if drawn is not None:
                source, profile, once.max_samples = drawn, None, None

        def rank(dropped: list[str], iteration: int) -> Ranking:
            file = None if resume is None else f"{os.fspath(resume)}.{iteration}"
            known = None if dropped else profile
            once.distance_features = _left(weights, dropped)
            return once._rank_source(source, _without(roles, dropped), progress, file, known)

        return turf(rank, self.turf_step, self.turf_features, self._settings_of_turf(), weights)

    def _rank_partitions(
        self,
        partitions: Any,
        roles: dict[str, Any],
        scheduler: Any,
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> Ranking:
        if self.max_samples is not None:
            raise SettingError(
                "max_samples: not for dask collections; draw rows with collection.sample(frac=...), or use "
                "n_iterations"
            )
        if self.turf_step is None:
            return super()._rank_partitions(partitions, roles, scheduler, progress, resume)
        once = self._iteration()
        given = _features_of_distance(self.distance_features)
        pairs = [one if isinstance(one, list) else [one, 1.0] for one in given or []]
        for setting, features in (
            ("covariates", _covariates(self.covariates)),
            ("distance_features", [feature for feature, _ in pairs]),
        ):
            if any(not isinstance(one, str) for one in features):
                raise SettingError(
                    f"{setting}: with turf_step positions change as features are left out, and the "
                    "features of a dask collection have no names before the run; give the names, or leave "
                    "turf_step out"
                )
        weights = None if given is None else {name: weight for name, weight in pairs if weight > 0}

        def rank(dropped: list[str], iteration: int) -> Ranking:
            folder = None if resume is None else posixpath.join(os.fspath(resume), str(iteration))
            if dropped:  # What is wrong with the setting as given, the first iteration says.
                once.distance_features = _left(weights, dropped)
            return once._rank_partitions(partitions, _without(roles, dropped), scheduler, progress, folder)

        return turf(rank, self.turf_step, self.turf_features, self._settings_of_turf(), weights)

    def _iteration(self) -> "ReliefPlan":
        """Return the plan of one iteration of TuRF."""
        if self.until is not None:
            raise SettingError(
                'until: "stable" stops once the best features are separated, when it may not be known which '
                "are the worst, which turf_step leaves out; leave one of the two out"
            )
        if self.target_draws:
            raise SettingError(
                "turf_step: p-values of target_draws hold for features that were not chosen by the targets; "
                "leave one of the two out"
            )
        once = copy.copy(self)
        once.turf_step, once.turf_features = _OF_TURF.values()
        return once

    def _covariate_names(self, source: Source, roles: dict[str, Any]) -> list[str]:
        """Return the names of the covariates, whose positions change as TuRF leaves features out."""
        given = _covariates(self.covariates)
        names = [name for name, _ in source.resolve(roles)["features"]] if given else []
        for one in given:
            if not isinstance(one, str) and not 0 <= one < len(names):
                raise SettingError(f"covariates: position {one} is not in 0 … {len(names) - 1}")
        return [one if isinstance(one, str) else names[one] for one in given]

    def _distance_weights(self, source: Source, roles: dict[str, Any]) -> dict[str, float] | None:
        """Return the weights of the features that distances are made of, by name, if any are given."""
        given = _features_of_distance(self.distance_features)
        if given is None:
            return None
        features = [name for name, _ in source.resolve(roles)["features"]]
        found = _core.distance_weights(given, features)
        return {name: weight for name, weight in zip(features, found, strict=True) if weight > 0}

    def _settings_of_turf(self) -> dict[str, Any]:
        own = plain({"turf_step": self.turf_step, "turf_features": self.turf_features})
        return self._settings() | own


def _priors(class_priors: Any) -> Any:
    """Return the priors as the engine takes them: classes by their names."""
    if not isinstance(class_priors, Mapping):
        return class_priors
    return [[_class_name(name), float(prior)] for name, prior in class_priors.items()]


def _features_of_distance(given: Any) -> Any:
    """Return the features that distances are made of as the engine takes them."""
    if given is None:
        return None
    if _is_by_name(given):
        given = dict(given.items())
    if isinstance(given, Mapping):
        return [[_feature_of_distance(one), _weight_in_distance(one, given[one])] for one in given]
    what = "a list of names or positions, a mask, or a mapping from names to weights"
    features = _list_of_features(given, "distance_features", what)
    if all(isinstance(one, bool | np.bool_) for one in features):
        return [bool(one) for one in features]
    return [_feature_of_distance(one) for one in features]


def _is_by_name(given: Any) -> bool:
    """Return True for a pandas Series whose index has the names of the features that its values are for."""
    index: Any = getattr(given, "index", None)
    if callable(index) or getattr(given, "ndim", 0) != 1 or not hasattr(given, "items"):
        return False
    return len(index) > 0 and all(isinstance(name, str) for name in index)


def _covariates(given: Any) -> list[str | int]:
    """Return the covariates as the engine takes them: names and positions."""
    if given is None:
        return []
    features = _list_of_features(given, "covariates", "a list of names or positions")
    return [_name_or_position(one, "covariates", "; list those that are covariates") for one in features]


def _list_of_features(given: Any, setting: str, what: str) -> list[Any]:
    """Return a list of what ``setting`` is given as; ``what`` says what it may be.

    An iterator would be empty the second time, and the order of a set differs from run to run.
    """
    is_list = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | Set | Iterator)
    if not is_list or _is_by_name(given):
        raise SettingError(f"{setting}: {given!r} is not a list; use {what}")
    return list(given)


def _name_or_position(one: Any, setting: str, hint: str) -> str | int:
    """Return a feature in ``setting`` as the engine takes it."""
    if isinstance(one, str):
        return str(one)
    if isinstance(one, int | np.integer) and not isinstance(one, bool):
        return int(one)
    raise SettingError(f"{setting}: {one!r} is neither a name nor a position{hint}")


def _feature_of_distance(one: Any) -> str | int:
    return _name_or_position(one, "distance_features", "; a mask has a bool for each feature")


def _weight_in_distance(feature: Any, weight: Any) -> float:
    try:
        found = float(weight) if isinstance(weight, int | float | np.number | np.bool_) else math.nan
    except OverflowError:
        found = math.inf
    if 0 <= found < math.inf:
        return found
    raise SettingError(
        f"distance_features: weight {weight!r} of {feature!r} is not a finite number of at least 0; with 0 "
        "the feature does not count"
    )


def _class_name(name: Any) -> str:
    """Return how the engine calls a class."""
    if isinstance(name, bool | np.bool_):
        return str(name).lower()
    is_whole = isinstance(name, float | np.floating) and float(name).is_integer()
    return str(int(name)) if is_whole else str(name)


def _left(weights: dict[str, float] | None, dropped: list[str]) -> dict[str, float] | None:
    """Return the weights in distances of the features that are not dropped."""
    gone = set(dropped)
    return None if weights is None else {name: w for name, w in weights.items() if name not in gone}


def _without(roles: dict[str, Any], dropped: list[str]) -> dict[str, Any]:
    return roles | {"drop": [*roles["drop"], *dropped]}


_INFLUENCE = (0.0, 1.0)


def listed(value: Any) -> Any:
    """Return a single value as a list, a sequence as it is."""
    return [value] if value is None or isinstance(value, str) or not hasattr(value, "__len__") else value


class AssociationPlan(EnginePlan):
    """Ranking by tests of single features; the parameters are those of :class:`ferrank.AssociationRanker`."""

    supports_groups: ClassVar[bool] = False
    _engine: ClassVar[str] = "association"
    unlabelled: str | None

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        of_runs = {name: value for name, value in _OF_RUNS.items() if name not in _OF_STOPPING}
        return {"task": None, **_own_defaults(cls._engine), **of_runs, "n_features_to_select": None}

    def _resolved(self) -> dict[str, Any]:
        return {"unlabelled": "error" if self.unlabelled is None else self.unlabelled}


class UnivariatePlan(EnginePlan):
    """Ranking by scores of single features; the parameters are those of :class:`ferrank.UnivariateRanker`."""

    supports_groups: ClassVar[bool] = False
    _engine: ClassVar[str] = "univariate"
    scores: Any
    unlabelled: str | None
    hierarchy_decay = 0.75
    scope: Literal["global", "partition"] = "global"

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        names = ("task", "categorical_features", "n_jobs", "memory_limit", "temp_dir")
        of_runs = {name: _OF_RUNS[name] for name in names}
        return {"task": None, **_own_defaults(cls._engine), **of_runs, "n_features_to_select": None}

    def _resolved(self) -> dict[str, Any]:
        unlabelled = "error" if self.unlabelled is None else self.unlabelled
        return {"scores": listed(self.scores), "unlabelled": unlabelled}

    def _rank_partitions(
        self,
        partitions: Any,
        roles: dict[str, Any],
        scheduler: Any,
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> Ranking:
        raise SettingError(
            "ranker: 'univariate' does not rank dask collections; use ranker='association', which looks at "
            "features one by one, too"
        )


class JointPlan(Plan):
    """Ranking by a forest, Relief and tests; the parameters are those of :class:`ferrank.JointRanker`."""

    supports_groups: ClassVar[bool] = True

    def __init__(
        self,
        task: str | None = None,
        *,
        n_estimators: int = JOINT_TREES,
        n_neighbors: int = 50,
        n_iterations: int | float | None = 1000,
        target_draws: int = JOINT_DRAWS,
        target_weights: Any = None,
        categorical_features: CategoricalFeatures = FROM_DTYPE,
        hierarchy: Any = None,
        hierarchy_decay: float = 0.75,
        unlabelled: Literal["error", "ignore"] | None = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        memory_limit: int | str | None = None,
        temp_dir: str | os.PathLike[str] | None = None,
        n_features_to_select: int | float | None = None,
        scope: Literal["global"] = "global",
    ) -> None:
        self.task = task
        self.n_estimators = n_estimators
        self.n_neighbors = n_neighbors
        self.n_iterations = n_iterations
        self.target_draws = target_draws
        self.target_weights = target_weights
        self.categorical_features = categorical_features
        self.hierarchy = hierarchy
        self.hierarchy_decay = hierarchy_decay
        self.unlabelled = unlabelled
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.temp_dir = temp_dir
        self.n_features_to_select = n_features_to_select
        self.scope = scope

    def _rankers(self, *, grouped: bool = False) -> list[EnginePlan]:
        """Return the plans whose rankings are joined; rows of a group are no tests of their own."""
        if self.unlabelled not in (None, "error", "ignore"):
            raise SettingError(
                f"unlabelled: {self.unlabelled!r} is neither 'error' nor 'ignore'; to use rows without a "
                "target, take the ranker forest or relief"
            )
        if isinstance(self.n_estimators, numbers.Integral) and self.n_estimators < LEAST_TREES:
            raise SettingError(
                f"n_estimators: {self.n_estimators} trees are too few for p-values, which the joint ranker "
                f"computes; use {LEAST_TREES} or more, or ranker='forest' with its settings alone"
            )
        if isinstance(self.target_draws, numbers.Integral) and self.target_draws < LEAST_DRAWS:
            raise SettingError(
                f"target_draws: {self.target_draws} draws are too few for p-values; use {LEAST_DRAWS} or more"
            )
        for name in ("n_neighbors", "n_iterations"):
            value = getattr(self, name)
            if hasattr(value, "__len__") and not isinstance(value, str):
                raise SettingError(
                    f"{name}: several are for the ranker relief; use one number, or ranker='relief'"
                )
        if self.scope != "global":
            raise SettingError(
                f"scope: {self.scope!r} is not 'global', where alone p-values are known; leave it out"
            )
        shared = {
            name: getattr(self, name)
            for name in (
                "task",
                "target_weights",
                "hierarchy",
                "hierarchy_decay",
                "unlabelled",
                "n_jobs",
                "memory_limit",
                "temp_dir",
            )
        }
        seed = seed_of(self.random_state)
        forest = ForestPlan(
            scores=("permutation", "mdi_oob", "genie3"),
            n_estimators=self.n_estimators,
            max_features="auto",
            min_samples_leaf=JOINT_LEAF,
            shadows=True,
            random_state=seed,
            **shared,
        )
        relief = ReliefPlan(
            n_neighbors=self.n_neighbors,
            n_iterations=self.n_iterations,
            scaling="rank",
            missing="informative",
            target_draws=self.target_draws,
            random_state=seed,
            **shared,
        )
        return [forest, relief] if grouped else [forest, relief, AssociationPlan(partial=True, **shared)]

    def _settings(self) -> dict[str, Any]:
        return _settings_of(self._rankers())

    def _rank_source(
        self,
        source: Source,
        roles: dict[str, Any],
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
        profile: bytes | None = None,
    ) -> Ranking:
        if roles.get("weight") is not None:
            raise SettingError(
                "sample_weight: tests give each row the same weight; leave it out, or use ranker='forest' or "
                "'relief'"
            )
        started = time.perf_counter()
        rankers = self._rankers(grouped=roles.get("groups") is not None)
        files = [None if resume is None else f"{os.fspath(resume)}.{ranker._engine}" for ranker in rankers]
        rankings = [
            ranker._rank_source(source, roles, progress, file)
            for ranker, file in zip(rankers, files, strict=True)
        ]
        return join(rankings, _settings_of(rankers), time.perf_counter() - started)

    def _rank_partitions(
        self,
        partitions: Any,
        roles: dict[str, Any],
        scheduler: Any,
        progress: Progress | None = None,
        resume: str | os.PathLike[str] | None = None,
    ) -> Ranking:
        started = time.perf_counter()
        rankers = self._rankers(grouped=roles.get("groups") is not None)
        folders = [
            None if resume is None else posixpath.join(os.fspath(resume), it._engine) for it in rankers
        ]
        rankings = [
            ranker._rank_partitions(partitions, roles, scheduler, progress, folder)
            for ranker, folder in zip(rankers, folders, strict=True)
        ]
        return join(rankings, _settings_of(rankers), time.perf_counter() - started)


def _settings_of(rankers: list[EnginePlan]) -> dict[str, Any]:
    return {"ranker": "joint"} | {ranker._engine: ranker._settings() for ranker in rankers}


def refuse_client(client: Any, what: str) -> None:
    """Raise where a client is given, but no collection to be ranked on its cluster."""
    if client is not None:
        raise SettingError(
            f"client: for dask collections, whose partitions its workers rank; {what} is in this process: "
            "leave it out, or make a collection, such as dask.dataframe.from_pandas(…, npartitions=8)"
        )


def plain(settings: dict[str, Any]) -> dict[str, Any]:
    """Return ``settings`` as read back from JSON: NumPy numbers as Python numbers, tuples as lists."""
    return {name: _plain(value) for name, value in settings.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


def seed_of(random_state: Any) -> int:
    """Return the seed given by ``random_state``; an integer is the seed itself, None draws one."""
    if isinstance(random_state, numbers.Integral):
        seed = int(random_state)
        if not 0 <= seed < 1 << 64:
            raise SettingError(f"random_state: {seed} is not a whole number in 0 … 2^64 - 1")
        return seed
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 32))
    if random_state is None:
        return int(np.random.randint(1 << 31))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(1 << 31))
    raise SettingError(
        f"random_state: {random_state!r} is no seed; use an integer, None, or a generator of NumPy"
    )
