"""Studies in TOML files, and the plans that come with ferrank."""

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from inspect import signature
from pathlib import Path
from typing import Any

from ferrank._core import settings_json
from ferrank.data.dataset import Dataset
from ferrank.data.parameters import seed_of_splits
from ferrank.errors import FerrankError, ResourceError, SettingError, hint
from ferrank.evaluate.baselines import BASELINES, TRANSFORMATIONS
from ferrank.evaluate.measures import MEASURES, check_measure
from ferrank.evaluate.study.cells import NoisyTruth
from ferrank.evaluate.study.figure_checks import check_keys, check_name
from ferrank.evaluate.study.figures import Figure, read_figure
from ferrank.evaluate.study.judges import ErrorCurves, KeptImportances, Truth, WeightedNeighbors
from ferrank.evaluate.study.results import checked_decimals
from ferrank.evaluate.study.splits import CrossValidation, Repeated
from ferrank.evaluate.study.study import Study
from ferrank.evaluate.synth import SYNTHETIC, synthesize
from ferrank.output import mode_of, path_of
from ferrank.rankers.estimators import RANKERS
from ferrank.rankers.registry import PRESETS
from ferrank.trees.estimators import ReliefTree

__all__ = ["PLANS", "Plan", "read_plan"]

PLANS = ("mtr-ranking", "mlc-ranking", "ssl-ranking", "error-curves", "relieff-trees")
"""The plans that come with ferrank, each of a paper."""

_SPLITS: dict[str, Callable[..., Any]] = {"repeated": Repeated, "cross-validation": CrossValidation}
_JUDGES: dict[str, Callable[..., Any]] = {
    "weighted-neighbors": WeightedNeighbors,
    "error-curves": ErrorCurves,
    "truth": Truth,
    "importances": KeptImportances,
}
_RANKERS: dict[str, Callable[..., Any]] = {
    **RANKERS,
    **BASELINES,
    "truth": NoisyTruth,
    "relief-tree": ReliefTree,
}
_MOST_BYTES = 1 << 20
"""Of a plan."""
_MOST_PARTS = 64
"""Of a key: the time to read one grows with their square."""
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")
_LONG_KEY = re.compile(rf"(?<![^\s.=,])(?:[^\s.=,]+[ \t]*\.[ \t]*){{{_MOST_PARTS}}}")
_KEYS = {
    "measure",
    "decimals",
    "random_state",
    "labelled",
    "n_trees",
    "splits",
    "judge",
    "judges",
    "data",
    "rankers",
    "figures",
}
_TASKS = ("classification", "regression", "multi-target", "multi-label", "hierarchical")
_DATA = {"path", "test", "target", "target_last", "labels", "task", "hierarchy", "groups", "drop"}


@dataclass(frozen=True)
class Plan:
    """A study as a file tells it.

    Attributes
    ----------
    study : Study
    measure : str or None
        What is shown.
    figures : dict of str to Figure
        Tables and pictures to make of the results.
    missing : list of str
        Data sets that were left out, for their files are not there.
    """

    study: Study
    measure: str | None = None
    figures: dict[str, Figure] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)


def read_plan(
    plan: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
    measure: str | None = None,
) -> Plan:
    r"""Read a study from a TOML file.

    Parameters
    ----------
    plan : path or name
        The file, or one of :data:`PLANS`.
    data : path, optional
        The folder that paths of data sets start from; by default that of the plan. Of a plan that comes with
        ferrank, data sets that are not there are left out.
    folder : path, optional
        Where results are kept, as of :class:`Study`.
    measure : str, optional
        What is shown instead of the plan's ``measure``, in figures without one of their own, too.

    Returns
    -------
    Plan

    Raises
    ------
    ResourceError, SettingError
        The plan cannot be read, or the key that the message names is not what it should be.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from ferrank.evaluate import read_plan
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     start = pathlib.Path(folder)
    ...     _ = (start / "t.csv").write_text("a,y\n1.5,0.5\n2.5,1.5\n")
    ...     text = "[data.small]\npath = 't.csv'\ntarget = 'y'\n[rankers.forest]\nn_estimators = 10"
    ...     _ = (start / "plan.toml").write_text(text)
    ...     plan = read_plan(start / "plan.toml")
    >>> plan.study.rankers
    {'forest': ForestRanker(n_estimators=10)}
    """
    path_of(plan, "plan")
    is_own = os.fspath(plan) in PLANS
    path = (
        Path(str(resources.files("ferrank.evaluate.study").joinpath(f"plans/{plan}.toml")))
        if is_own
        else Path(plan)
    )
    told = _read(path)
    check_keys(told, _KEYS, f"{path}: ")
    start = path.parent if data is None else Path(data)
    sets: dict[str, Any] = {}
    missing: dict[str, Path] = {}
    for name, one in _section(told, "data", path).items():
        found = _dataset(one, start, f"data.{name}", path)
        (missing if isinstance(found, Path) else sets)[name] = found
    if is_own and not sets:
        found_none = "no folder was named" if data is None else f"{start} has none of its data sets"
        raise ResourceError(
            f"{plan}: {found_none}; give the folder that holds {', '.join(_paths_of(told))}, data=FOLDER"
        )
    if missing and not is_own:
        name, file = next(iter(missing.items()))
        raise ResourceError(
            f"{path}: data.{name}: {file}: no such file; give the folder that paths start from, data=FOLDER"
        )
    only: dict[str, list[str]] = {}
    asked = _without_only(_section(told, "rankers", path), only, path)
    own = {
        name: _splits(one["splits"], path, f"data.{name}.splits")
        for name, one in told["data"].items()
        if name in sets and "splits" in one
    }
    for name, of in only.items():
        known = [*told["data"], *_TASKS]
        unknown = next((one for one in of if one not in known), None)
        if unknown is not None:
            raise SettingError(
                f"{path}: {name}.only: no data set or task '{unknown}'; {hint(unknown, known)}"
            )
    seed = told.get("random_state", 0)
    seed = seed_of_splits(seed, f"{path}: random_state")
    study = Study(
        sets,
        {name: _ranker(one, f"rankers.{name}", path) for name, one in asked.items()},
        judge=_judges(told, only, path),
        splits=_splits(told.get("splits", {}), path),
        labelled=told.get("labelled"),
        n_trees=told.get("n_trees", ()),
        only=only,
        own_splits=own,
        folder=folder,
        random_state=seed,
        decimals=_decimals(told, path),
    )
    asked_figures = _section(told, "figures", path) if "figures" in told else {}
    for name in asked_figures:
        check_name(name, f"{path}: figures.{name}")
    if (own_measure := told.get("measure")) is not None:
        check_measure(own_measure, MEASURES, f"{path}: measure")
    measure = own_measure if measure is None else measure
    figures = {
        name: read_figure(
            one, start, f"{path}: figures.{name}", measure=measure, study=study, missing=list(missing)
        )
        for name, one in asked_figures.items()
    }
    return Plan(study, measure, figures, list(missing))


def _decimals(told: dict[str, Any], path: Path) -> int | None:
    try:
        return checked_decimals(told.get("decimals"))
    except SettingError as error:
        raise SettingError(f"{path}: {error}") from error


def _paths_of(told: dict[str, Any]) -> list[str]:
    """Return the files of the first few data sets."""
    paths = [one["path"] for one in told["data"].values() if "path" in one]
    return [path if isinstance(path, str) else path[0] for path in paths][:3]


def _without_only(section: dict[str, Any], only: dict[str, list[str]], path: Path) -> dict[str, Any]:
    """Return the section without its keys ``only``, which are put into ``only``."""
    for name, one in section.items():
        if "only" in one:
            of = one["only"]
            if not isinstance(of, list) or not all(isinstance(each, str) for each in of):
                raise SettingError(f"{path}: {name}.only: {of!r} is not a list of data sets or tasks")
            only[name] = of
    return {name: {k: v for k, v in one.items() if k != "only"} for name, one in section.items()}


def _judges(told: dict[str, Any], only: dict[str, list[str]], path: Path) -> Any:
    if "judges" not in told:
        return _judge(told.get("judge", {}), "judge", path)
    if "judge" in told:
        raise SettingError(f"{path}: judge: there are judges, too; put it among them")
    asked = _without_only(_section(told, "judges", path), only, path)
    return {name: _judge(one, f"judges.{name}", path) for name, one in asked.items()}


def _judge(told: Any, where: str, path: Path) -> Any:
    return _of_kind(_JUDGES, "weighted-neighbors", told, where, path)


def _of_kind(kinds: Mapping[str, Callable[..., Any]], default: str, told: Any, where: str, path: Path) -> Any:
    """Return what the section describes by its kind and settings."""
    if not isinstance(told, dict):
        raise SettingError(f"{path}: {where}: {told!r} is no table; write its settings below [{where}]")
    settings = dict(told)
    kind = _one_of(kinds, settings.pop("kind", default), f"{path}: {where}.kind")
    return _made(kinds[kind], settings, where, path)


def _one_of(known: Iterable[str], value: Any, where: str) -> str:
    names = list(known)
    if not isinstance(value, str) or value not in names:
        raise SettingError(f"{where}: '{value}' is not one of {', '.join(names)}")
    return value


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise SettingError(f"{path}: is larger than {_MOST_BYTES:,} bytes; name the TOML file of a plan")
        text = content.decode("utf-8-sig")
        _check_lines(text, path)
        return tomllib.loads(text)
    except FerrankError:
        raise
    except RecursionError:
        raise SettingError(f"{path}: tables or lists in it are nested too deep; use fewer levels") from None
    except IsADirectoryError as error:
        raise ResourceError(f"{path}: is a folder; name the TOML file of a plan") from error
    except FileNotFoundError as error:
        raise ResourceError(f"{path}: no such file, and no plan of ferrank: {', '.join(PLANS)}") from error
    except OSError as error:
        raise ResourceError(f"{path}: {error}") from error
    except ValueError as error:
        raise SettingError(f"{path}: {error}") from error


def _check_lines(text: str, path: Path) -> None:
    """Raise an error if a key has very many parts."""
    for number, line in enumerate(text.splitlines(), 1):
        if _LONG_KEY.search(_QUOTED.sub("q", line)):
            raise SettingError(f"{path}: line {number}: a key has more than {_MOST_PARTS} parts; use fewer")


def _section(told: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    section = told.get(key)
    if (
        not isinstance(section, dict)
        or not all(isinstance(one, dict) for one in section.values())
        or not section
    ):
        raise SettingError(f"{path}: {key}: give one at least, as [{key}.NAME]")
    return section


def _dataset(told: dict[str, Any], start: Path, where: str, path: Path) -> Any:
    """Return the data set, or the first of its files that is not there.

    ``path`` may be several files, whose rows are one set.
    """
    told = {key: value for key, value in told.items() if key != "splits"}
    if "synthetic" in told:
        settings = {key: value for key, value in told.items() if key != "synthetic"}
        kind = _one_of(SYNTHETIC, told["synthetic"], f"{path}: {where}.synthetic")
        return _made(partial(synthesize, kind), settings, where, path)
    check_keys(told, _DATA, f"{path}: {where}.")
    paths = told.get("path")
    paths = [paths] if isinstance(paths, str) else paths
    if not isinstance(paths, list) or not paths or not all(isinstance(one, str) for one in paths):
        raise SettingError(f"{path}: {where}.path: name the file of the data set")
    files = {}
    for key in ("test", "labels", "hierarchy"):
        if key in told:
            if not isinstance(told[key], str):
                raise SettingError(f"{path}: {where}.{key}: {told[key]!r} is no path; name a file")
            files[key] = start / told[key]
    rows = [start / one for one in paths]
    absent = next((file for file in (*rows, *files.values()) if mode_of(file) is None), None)
    if absent is not None:
        return absent
    roles = {key: value for key, value in told.items() if key not in files and key != "path"}
    roles |= {key: str(files[key]) for key in ("labels", "hierarchy") if key in files}
    dataset = Dataset(str(rows[0]) if len(rows) == 1 else list(map(str, rows)), **roles)
    return (dataset, str(files["test"])) if "test" in files else dataset


def _ranker(told: dict[str, Any], where: str, path: Path) -> Any:
    told = dict(told)
    name, preset = told.pop("ranker", "forest"), told.pop("preset", None)
    name = _one_of(_RANKERS, name, f"{path}: {where}.ranker")
    if preset is not None:
        known = [one for one, of in PRESETS.items() if name in of]
        told = PRESETS[_one_of(known, preset, f"{path}: {where}.preset")][name] | told
    if told.get("random_state") == "split":
        told["random_state"] = None
    made = _made(_RANKERS[name], told, where, path)
    try:
        if name in TRANSFORMATIONS:
            made.inner_ranker()
        if name in RANKERS:
            _check_settings(made._settings())
    except SettingError as error:
        raise SettingError(f"{path}: {where}.{error}") from error
    return made


def _check_settings(settings: dict[str, Any]) -> None:
    """Raise an error if the engine does not take the settings; those of the joint ranker are of several."""
    own = [settings[name] for name in RANKERS if isinstance(settings.get(name), dict)]
    for one in own or [settings]:
        settings_json(one)


def _splits(told: Any, path: Path, where: str = "splits") -> Any:
    return _of_kind(_SPLITS, "repeated", told, where, path)


def _made(kind: Callable[..., Any], told: dict[str, Any], where: str, path: Path) -> Any:
    check_keys(told, set(signature(kind).parameters), f"{path}: {where}.")
    try:
        return kind(**told)
    except (TypeError, ValueError) as error:
        raise SettingError(f"{path}: {where}: {error}") from error
