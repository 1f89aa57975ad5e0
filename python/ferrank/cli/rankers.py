"""Rankers from the options that name and set them."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from ferrank.errors import SettingError
from ferrank.rankers.plan import Plan
from ferrank.rankers.registry import AUTO, PLANS, WITH_P_VALUES, automatic, with_preset

__all__ = ["make_plan", "make_plans"]

_ROLES = {"task", "hierarchy"}
_Plan = TypeVar("_Plan", bound=Plan)


def make_plan(chosen: argparse.Namespace) -> Plan:
    """Return the plan for the ranker that ``--ranker`` names, with the settings that were given.

    Under these are the settings of ``--preset``, and those from which p-values follow with ``--select``.
    """
    name: str = chosen.ranker
    settings: dict[str, Any] = {}
    if getattr(chosen, "preset", None) is not None:
        name, settings = with_preset(chosen.preset, name, {})
    if name == AUTO:
        of_rankers = set().union(*(plan._defaults() for plan in PLANS.values())) - _ROLES
        given = {name: value for name, value in vars(chosen).items() if name in of_rankers}
        name = automatic(given, weighted=chosen.sample_weight is not None, task=chosen.task)
    if getattr(chosen, "select", None) is not None:
        if getattr(chosen, "covariates", None):
            raise SettingError(
                "select: takes p-values, and there are none with covariates; leave one of the two out; with "
                "covariates, go by the importances and their standard errors"
            )
        settings |= WITH_P_VALUES.get(name, {})
    [plan] = make_plans(argparse.Namespace(**settings | vars(chosen)), [name], PLANS)
    return plan


def make_plans(
    chosen: argparse.Namespace, names: Sequence[str], known: Mapping[str, type[_Plan]]
) -> list[_Plan]:
    """Return the plans or estimators called ``names``, each with the settings given that it has.

    Raises
    ------
    SettingError
        There is no such ranker, or none of them has a setting that was given.
    """
    unknown = next((name for name in names if name not in known), None)
    if unknown is not None:
        raise SettingError(f"ranker: unknown ranker '{unknown}'; use some of {', '.join(known)}")
    parameters = {name: set(plan._defaults()) - _ROLES for name, plan in known.items()}
    given = {name: value for name, value in vars(chosen).items() if name in set().union(*parameters.values())}
    for setting in given.keys() - set().union(*(parameters[name] for name in names)):
        other = next(ranker for ranker, has in parameters.items() if setting in has)
        here = ", ".join(names) or "a saved ranking"
        raise SettingError(f"{setting}: a setting of ranker='{other}', not of {here}; leave it out")
    return [
        known[name](**{setting: value for setting, value in given.items() if setting in parameters[name]})
        for name in names
    ]
