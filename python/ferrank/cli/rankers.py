"""Rankers from the options that name and set them."""

import argparse
from collections.abc import Mapping, Sequence
from inspect import signature

from ferrank.errors import SettingError
from ferrank.rankers.base import Ranker
from ferrank.rankers.forest import ForestRanker
from ferrank.rankers.registry import AUTO, RANKERS, automatic, with_preset
from ferrank.rankers.relief import ReliefRanker

__all__ = ["make_ranker", "make_rankers", "with_p_values"]

_ROLES = {"task", "hierarchy"}


def make_ranker(chosen: argparse.Namespace) -> Ranker:
    """Return the ranker that ``--ranker`` names, with the settings that were given."""
    name, preset = chosen.ranker, getattr(chosen, "preset", None)
    if preset is not None:
        name, of_preset = with_preset(preset, name, {})
        chosen = argparse.Namespace(**{**of_preset, **vars(chosen)})
    if name == AUTO:
        settings = set().union(*(signature(ranker).parameters for ranker in RANKERS.values())) - _ROLES
        given = settings & vars(chosen).keys()
        name = automatic(given, weighted=chosen.weight is not None, task=chosen.task)
    [ranker] = make_rankers(chosen, [name], RANKERS)
    return ranker


def with_p_values(ranker: Ranker, given: Mapping[str, object]) -> Ranker:
    """Return the ranker with the settings from which p-values follow, unless they were ``given``."""
    wanted = {ForestRanker: {"shadows": True, "n_estimators": 800}, ReliefRanker: {"target_draws": 60}}
    settings = wanted.get(type(ranker), {})
    ranker.set_params(**{name: value for name, value in settings.items() if name not in given})
    return ranker


def make_rankers(
    chosen: argparse.Namespace, names: Sequence[str], known: Mapping[str, type[Ranker]]
) -> list[Ranker]:
    """Return the rankers called ``names`` with the settings that were given, each with those that it has.

    Raises
    ------
    SettingError
        There is no such ranker, or none of them has a setting that was given.
    """
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise SettingError(f"ranker: unknown ranker '{unknown}'; use some of {', '.join(known)}")
    parameters = {name: set(signature(ranker).parameters) - _ROLES for name, ranker in known.items()}
    given = {name: value for name, value in vars(chosen).items() if name in set().union(*parameters.values())}
    for setting in given.keys() - set().union(*(parameters[name] for name in names)):
        other = next(ranker for ranker, has in parameters.items() if setting in has)
        here = ", ".join(names) or "a saved ranking"
        raise SettingError(f"{setting}: a setting of --ranker {other}, not of {here}; leave it out")
    return [
        known[name](**{setting: value for setting, value in given.items() if setting in parameters[name]})
        for name in names
    ]
