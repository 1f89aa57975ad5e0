"""Studies in TOML files, and the plans that come with ferrank."""

import os
import tomllib
from collections.abc import Callable
from importlib import resources
from inspect import signature
from pathlib import Path
from typing import Any

from ferrank.data.dataset import Dataset
from ferrank.errors import ResourceError, SettingError
from ferrank.evaluate.baselines import BASELINES
from ferrank.evaluate.study.cells import WeightedNeighbors
from ferrank.evaluate.study.splits import CrossValidation, Repeated
from ferrank.evaluate.study.study import Study
from ferrank.rankers.estimators import RANKERS
from ferrank.rankers.registry import PRESETS

__all__ = ["PLANS", "read_plan"]

PLANS = ("mtr-ranking",)
"""The plans that come with ferrank, each of a paper."""

_SPLITS: dict[str, Callable[..., Any]] = {"repeated": Repeated, "cross-validation": CrossValidation}
_KEYS = {"measure", "random_state", "labelled", "splits", "judge", "data", "rankers"}
_DATA = {"path", "test", "target", "target_last", "labels", "task", "hierarchy", "groups", "drop"}


def read_plan(
    plan: str | os.PathLike[str],
    *,
    data: str | os.PathLike[str] | None = None,
    folder: str | os.PathLike[str] | None = None,
) -> tuple[Study, str | None, list[str]]:
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

    Returns
    -------
    (Study, str or None, list of str)
        The study, the measure that the plan names, and the data sets that were left out.

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
    ...     study, _, _ = read_plan(start / "plan.toml")
    >>> study.rankers
    {'forest': ForestRanker(n_estimators=10)}
    """
    is_own = os.fspath(plan) in PLANS
    path = (
        Path(str(resources.files("ferrank.evaluate.study").joinpath(f"plans/{plan}.toml")))
        if is_own
        else Path(plan)
    )
    told = _read(path)
    _check_keys(told, _KEYS, "", path)
    start = path.parent if data is None else Path(data)
    sets, missing = {}, []
    for name, one in _section(told, "data", path).items():
        found = _dataset(one, start, f"data.{name}", path)
        if found is None:
            missing.append(name)
        else:
            sets[name] = found
    if (missing and not is_own) or not sets:
        raise ResourceError(
            f"{path}: data.{missing[0]}: there is no such file in {start}; data= says where it is"
        )
    rankers = {
        name: _ranker(one, f"rankers.{name}", path) for name, one in _section(told, "rankers", path).items()
    }
    study = Study(
        sets,
        rankers,
        judge=_made(WeightedNeighbors, told.get("judge", {}), "judge", path),
        splits=_splits(told.get("splits", {}), path),
        labelled=told.get("labelled"),
        folder=folder,
        random_state=told.get("random_state", 0),
    )
    return study, told.get("measure"), missing


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ResourceError(f"{path}: no such file, and no plan of ferrank: {', '.join(PLANS)}") from error
    except OSError as error:
        raise ResourceError(f"{path}: {error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingError(f"{path}: {error}") from error


def _section(told: dict[str, Any], key: str, path: Path) -> dict[str, Any]:
    section = told.get(key)
    if (
        not isinstance(section, dict)
        or not all(isinstance(one, dict) for one in section.values())
        or not section
    ):
        raise SettingError(f"{path}: {key}: give one at least, as [{key}.NAME]")
    return section


def _check_keys(told: dict[str, Any], known: set[str], where: str, path: Path) -> None:
    unknown = next((key for key in told if key not in known), None)
    if unknown is not None:
        raise SettingError(f"{path}: {where}{unknown}: no such key; there are {', '.join(sorted(known))}")


def _dataset(told: dict[str, Any], start: Path, where: str, path: Path) -> Any:
    """Return the data set, or None if its file is not there."""
    _check_keys(told, _DATA, f"{where}.", path)
    if not isinstance(told.get("path"), str):
        raise SettingError(f"{path}: {where}.path: name the file of the data set")
    files = {key: start / told[key] for key in ("path", "test", "labels", "hierarchy") if key in told}
    if not all(file.exists() for file in files.values()):
        return None
    roles = {key: value for key, value in told.items() if key not in files}
    roles |= {key: str(files[key]) for key in ("labels", "hierarchy") if key in files}
    dataset = Dataset(str(files["path"]), **roles)
    return (dataset, str(files["test"])) if "test" in files else dataset


def _ranker(told: dict[str, Any], where: str, path: Path) -> Any:
    told = dict(told)
    name, preset = told.pop("ranker", "forest"), told.pop("preset", None)
    known = RANKERS | BASELINES
    if name not in known:
        raise SettingError(f"{path}: {where}.ranker: '{name}' is not one of {', '.join(known)}")
    if preset is not None:
        if preset not in PRESETS or name not in PRESETS[preset]:
            raise SettingError(f"{path}: {where}.preset: '{preset}' is not one of {', '.join(PRESETS)}")
        told = PRESETS[preset][name] | told
    return _made(known[name], told, where, path)


def _splits(told: dict[str, Any], path: Path) -> Any:
    told = dict(told)
    kind = told.pop("kind", "repeated")
    if kind not in _SPLITS:
        raise SettingError(f"{path}: splits.kind: '{kind}' is not one of {', '.join(_SPLITS)}")
    return _made(_SPLITS[kind], told, "splits", path)


def _made(kind: Callable[..., Any], told: dict[str, Any], where: str, path: Path) -> Any:
    _check_keys(told, set(signature(kind).parameters), f"{where}.", path)
    try:
        return kind(**told)
    except (TypeError, ValueError) as error:
        raise SettingError(f"{path}: {where}: {error}") from error
