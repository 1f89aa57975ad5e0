"""Plans by the name of the ranker, and data sets opened for them."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ferrank._core import Source, score_definitions
from ferrank.data.dataset import Dataset
from ferrank.data.parameters import choice_of
from ferrank.errors import SettingError
from ferrank.rankers.plan import (
    JOINT_DRAWS,
    JOINT_TREES,
    OF_ESTIMATORS,
    AssociationPlan,
    ForestPlan,
    JointPlan,
    Plan,
    ReliefPlan,
    UnivariatePlan,
    listed,
)

__all__ = [
    "AUTO",
    "PLANS",
    "PRESETS",
    "WITH_P_VALUES",
    "automatic",
    "chosen_plan",
    "dataset_of",
    "given_twice",
    "opened",
    "plan_of",
    "unknown_setting",
    "with_preset",
]

PLANS: dict[str, type[Plan]] = {
    "forest": ForestPlan,
    "relief": ReliefPlan,
    "association": AssociationPlan,
    "joint": JointPlan,
    "univariate": UnivariatePlan,
}
"""The plans, by the name of the ranker."""

AUTO = "auto"
"""The name of the choice between the joint ranker and the forest."""


PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "papers": {
        "forest": {"n_estimators": 100, "scores": ("genie3", "symbolic", "permutation"), "missing": "ignore"},
        "relief": {"n_neighbors": 10, "scaling": "range", "missing": "expected"},
    }
}
"""Settings of rankers by the name of a preset; "papers" are those of Petković et al. 2020a."""

WITH_P_VALUES: dict[str, dict[str, Any]] = {
    "forest": {"shadows": True, "n_estimators": JOINT_TREES},
    "relief": {"target_draws": JOINT_DRAWS},
}
"""The settings from which p-values follow, for rankers that give none by default."""

_SCORES = {
    ranker: {name for of, name, _ in score_definitions() if of == ranker}
    for ranker, plan in PLANS.items()
    if "scores" in plan._defaults()
}
"""The names of scores by ranker."""

_MEANT = {
    "y": "target",
    "label": "target",
    "k": "n_neighbors",
    "seed": "random_state",
    "trees": "n_estimators",
    "n_trees": "n_estimators",
    "num_trees": "n_estimators",
    "mtry": "max_features",
    "min_leaf": "min_samples_leaf",
    "threads": "n_jobs",
    "num_threads": "n_jobs",
    "verbose": "progress=True",
    "weights": "sample_weight",
    "score": "scores",
    "n_tree": "n_estimators",
    "ntree": "n_estimators",
    "fdr": "ranking.relevant(fdr=…)",
    "decimal": "CSVFile(path, decimal=…)",
    "delimiter": "CSVFile(path, delimiter=…)",
    "sep": "CSVFile(path, delimiter=…)",
    "encoding": "CSVFile(path, encoding=…)",
    "header": "CSVFile(path, header=…)",
}
"""What others call settings, and what they are called here."""


def plan_of(ranker: Plan | type[Plan] | str | None, settings: dict[str, Any]) -> Plan:
    """Return the ranker that was given, or the plan of that name with these settings."""
    if isinstance(ranker, Plan):
        if settings:
            raise given_twice(settings)
        return ranker
    unused = next((setting for setting in settings if setting in OF_ESTIMATORS), None)
    if unused is not None:
        raise SettingError(
            f"{unused}: for the estimators, such as ForestRanker, which select features and take batches; "
            "here it has no effect: leave it out"
        )
    if isinstance(ranker, type) and issubclass(ranker, Plan):
        return ranker(**settings)
    name = "forest" if ranker is None else ranker
    if not isinstance(name, str) or name not in PLANS:
        raise SettingError(f"ranker: {ranker!r} is neither a ranker nor one of {', '.join(PLANS)}")
    for setting in settings:
        if setting not in PLANS[name]._defaults():
            raise unknown_setting(setting, PLANS[name]._defaults(), f"ranker='{name}'")
    return PLANS[name](**settings)


def unknown_setting(setting: str, own: Iterable[str], ranker: str, within: str = "{}") -> SettingError:
    """Return the error for a setting that ``ranker``, which has its ``own`` ones, does not have.

    ``within`` says how to give a setting of a ranker to ``ranker``, where that is none itself.
    """
    others = [other for other, plan in PLANS.items() if setting in plan._defaults()]
    if others:
        hint = "it is one of " + " and ".join(f"ranker='{other}'" for other in others)
        if within != "{}":
            hint = f"give it to a ranker that has it, such as {within.format(setting)}"
    else:
        own, of_all = list(own), _settings_of_all()
        near = _meant(setting, own, of_all)
        if near in of_all and near not in own:
            near = within.format(near)
        hint = f"did you mean {near}?" if near else f"its settings are {', '.join(own)}"
    return SettingError(f"{setting}: not a setting of {ranker}; {hint}")


def _meant(setting: str, *known: Collection[str]) -> str | None:
    """Return what was meant by ``setting``; of the ``known`` names the first that have one near it."""
    from difflib import get_close_matches

    near = [one for names in known for one in get_close_matches(setting, names, n=1, cutoff=0.7)]
    return _MEANT.get(setting, near[0] if near else None)


def _settings_of_all() -> list[str]:
    return list(dict.fromkeys(one for plan in PLANS.values() for one in plan._defaults()))


def _unknown_anywhere(setting: str, parameters: Collection[str]) -> SettingError:
    """Return the error for a setting that no ranker has, where none was named beside ``parameters``."""
    near = _meant(setting, [*parameters, *_settings_of_all()])
    hint = f"did you mean {near}?" if near else f"those of a forest are {', '.join(ForestPlan._defaults())}"
    return SettingError(f"{setting}: not a setting of rank or of a ranker; {hint}")


def chosen_plan(
    ranker: Plan | type[Plan] | str | None,
    settings: dict[str, Any],
    *,
    weighted: bool,
    task: str | None,
    parameters: Collection[str] = (),
) -> Plan:
    """Return the ranker that was given or named. "auto", or None, is the joint ranker, or the forest.

    The forest is chosen where rows have weights, where there is no target, and for settings that the joint
    ranker does not have; another ranker where it alone has the settings. ``parameters`` are those that the
    call has besides settings.
    """
    if ranker is not None and not (isinstance(ranker, str) and ranker == AUTO):
        return plan_of(ranker, settings)
    known = set(_settings_of_all()) if settings else set()
    unknown = next((setting for setting in settings if setting not in known), None)
    if unknown is not None:
        raise _unknown_anywhere(unknown, parameters)
    return plan_of(automatic(settings, weighted=weighted, task=task), settings)


def with_preset(preset: str, ranker: Any, settings: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the ranker, by default the forest, and the preset's settings under ``settings``."""
    choice_of(preset, "preset", PRESETS)
    name = "forest" if ranker is None else ranker
    if isinstance(name, str) and name == AUTO:
        name = "forest"
    if not isinstance(name, str) or name not in PRESETS[preset]:
        raise SettingError(
            f"preset: {preset!r} is for the rankers {' and '.join(PRESETS[preset])}; name one of them, or "
            "leave the preset out"
        )
    return name, {**PRESETS[preset][name], **settings}


_WEIGH_ROWS = ("forest", "relief", "univariate")
"""The rankers that take row weights; the first that has the settings given is chosen for these."""


def automatic(settings: Mapping[str, Any], *, weighted: bool, task: str | None) -> str:
    """Return the name of the ranker that "auto" is, where these settings are given."""
    if task == "unsupervised":
        return "forest"
    if weighted:
        return next((name for name in _WEIGH_ROWS if _has(name, settings)), "forest")
    # The joint ranker has a number of trees, too: with settings of the forest alone, users want the forest,
    # as with trees that are kept.
    wants_forest = not {"n_estimators", "keep_trees"}.isdisjoint(settings) and _has("forest", settings)
    if not wants_forest and settings.get("unlabelled") != "use" and _has("joint", settings):
        return "joint"
    return next((name for name in (*_SCORES, "association") if _has(name, settings)), "forest")


def _has(name: str, settings: Mapping[str, Any]) -> bool:
    """Return True if the ranker called ``name`` has these settings, and the scores among them."""
    scores = [score for score in listed(settings.get("scores", ())) if isinstance(score, str)]
    others = set().union(*(own for ranker, own in _SCORES.items() if ranker != name))
    return PLANS[name]._defaults().keys() >= settings.keys() and others.isdisjoint(scores)


def given_twice(settings: dict[str, Any]) -> SettingError:
    """Return the error for settings beside a ranker that has settings of its own."""
    return SettingError(f"{next(iter(settings))}: give it to the ranker, or leave the ranker out")


def opened(ranker: Plan, data: Any, **roles: Any) -> tuple[Source, dict[str, Any]]:
    """Return the rows of a data set, or of data with the roles given, and the roles of their columns."""
    dataset = dataset_of(data, **roles)
    source = dataset.source(ranker.temp_dir, task=ranker.task, hierarchy=ranker.hierarchy)
    return source, dataset.roles(ranker.task, ranker.hierarchy, ranker.categorical_features)


def dataset_of(data: Any, **roles: Any) -> Dataset:
    """Return ``data`` if it is a data set, else a data set with these roles."""
    if not isinstance(data, Dataset):
        return Dataset(data, **roles)
    for name, value in roles.items():
        if value is not None and not (isinstance(value, tuple) and not value):
            raise SettingError(f"{name}: the data set says what its columns are; leave {name} out")
    return data
