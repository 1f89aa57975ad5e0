"""Rankings to judge, from wherever they come, matched to the features of the data by name."""

import csv
import difflib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ferrank.data.opening import regular
from ferrank.errors import ColumnTypeError, DataError, ResourceError
from ferrank.evaluate.evaluation import UNWEIGHTED
from ferrank.ranking import Ranking

__all__ = ["Importances", "Rankings", "collect", "to_rankings"]

Array = np.ndarray[Any, Any]
One = Ranking | str | os.PathLike[str]
Rankings = One | Sequence[One] | Mapping[str, Any]
"""A ranking, the path of a saved one, several of these, or a mapping of names to rankings, paths, arrays of
importances in the order of the features, or mappings of features to importances."""

_NEAREST = 3


@dataclass(frozen=True, eq=False)
class Importances:
    """The importances under one score, to be judged under a name."""

    name: str
    features: list[str] | None
    """None: those of the data, in their order"""
    values: Array
    """(n_features,)"""
    standard_errors: Array | None = None
    """(n_features,), where they are known"""
    by_target: Array | None = None
    """(n_features, n_targets), where they are told apart"""
    targets: Sequence[str] = ()

    def matched(self, features: Sequence[str], source: str) -> Array:
        """Return the importances of ``features``, in their order.

        Raises
        ------
        DataError
            The ranking has not the features of the data, or an importance is not a finite number.
        """
        if self.features is None:
            if self.values.shape != (len(features),):
                raise DataError(
                    f"{self.name}: importances of shape {self.values.shape}; {source} has {len(features)} "
                    "features, one importance for each is needed"
                )
            values = self.values
        else:
            place = {name: number for number, name in enumerate(self.features)}
            self._same(place, features, source)
            values = self.values[[place[name] for name in features]]
        if not np.isfinite(values).all():
            worst = features[int(np.flatnonzero(~np.isfinite(values))[0])]
            raise DataError(f"{self.name}: the importance of '{worst}' is not a finite number; rank again")
        return values

    def _same(self, place: Mapping[str, int], features: Sequence[str], source: str) -> None:
        counts = Counter(self.features)
        twice = next((name for name, count in counts.items() if count > 1), None)
        if twice is not None:
            raise DataError(f"{self.name}: ranks '{twice}' {counts[twice]} times; keep one of them")
        known = set(features)
        missing = [name for name in features if name not in place]
        foreign = [name for name in place if name not in known]
        if missing:
            raise DataError(
                f"{self.name}: does not rank '{missing[0]}'{_more(missing)} of {source}; "
                f"{_nearest(missing[0], place)}; rank all features, without covariates, or drop those"
            )
        if foreign:
            raise DataError(
                f"{self.name}: ranks '{foreign[0]}'{_more(foreign)}, no feature of {source}; "
                f"{_nearest(foreign[0], features)}; drop the same columns as when it was ranked"
            )


def collect(rankings: Rankings) -> list[Importances]:
    """Return the importances of every score of every ranking, each under a name of its own.

    A score of a ranking is called by the score; of a file, by the file's name without suffix, with the score
    where it has several; of a mapping, by the key in the same way. Names that come again are numbered.

    Raises
    ------
    DataError, ResourceError, SettingError, ColumnTypeError
        The message names the file or the ranking.

    Examples
    --------
    >>> import ferrank
    >>> table = {"a": [1, 2, 3, 4], "y": [0.1, 0.2, 0.3, 0.4]}
    >>> ranking = ferrank.rank(table, "y", scores=("genie3", "symbolic"))
    >>> [found.name for found in collect([ranking, ranking])]
    ['genie3', 'symbolic', 'genie3 (2)', 'symbolic (2)']
    >>> [found.name for found in collect({"forest": ranking, "none": [1.0]})]
    ['forest:genie3', 'forest:symbolic', 'none']
    """
    if isinstance(rankings, Mapping):
        pairs: Iterable[tuple[str | None, Any]] = rankings.items()
    elif isinstance(rankings, Ranking | str | os.PathLike):
        pairs = [(None, rankings)]
    elif isinstance(rankings, Sequence):
        pairs = [(None, one) for one in rankings]
    else:
        raise ColumnTypeError(
            f"rankings: cannot judge a {type(rankings).__qualname__}; use rankings, paths of saved ones, or "
            "a mapping of names to them"
        )
    found = [importances for name, one in pairs for importances in _of(name, one)]
    seen = Counter([UNWEIGHTED])
    numbered = []
    for importances in found:
        seen[importances.name] += 1
        times = seen[importances.name]
        name = importances.name if times == 1 else f"{importances.name} ({times})"
        numbered.append(replace(importances, name=name))
    return numbered


def to_rankings(rankings: Rankings) -> dict[str, Ranking]:
    """Return all rankings by name: those of mappings and files have one, others are called by their ranker.

    Importances from elsewhere are rankings without a task.

    Raises
    ------
    DataError, ResourceError, SettingError, ColumnTypeError
        The message names the file or the ranking; also where a ranking is of other features than the first.
    """
    everything = collect(rankings)
    if not everything:
        raise DataError("rankings: none were given; at least 1 is needed")
    named = next((one.features for one in everything if one.features is not None), None)
    features = named or [f"x{number}" for number in range(len(everything[0].values))]
    for one in everything:
        one.matched(features, "the first ranking")
    if isinstance(rankings, Mapping):
        pairs: list[tuple[str | None, Any]] = list(rankings.items())
    elif isinstance(rankings, Ranking | str | os.PathLike):
        pairs = [(None, rankings)]
    else:
        pairs = [(None, one) for one in rankings]
    found: dict[str, Ranking] = {}
    for name, one in pairs:
        ranking = _ranking(name, one, features)
        stem = Path(one).stem if isinstance(one, str | os.PathLike) else None
        own = name or stem or str(ranking.settings.get("ranker") or "ranking")
        found[own if own not in found else f"{own} ({len(found) + 1})"] = ranking
    return found


def _ranking(name: str | None, one: Any, features: Sequence[str]) -> Ranking:
    if isinstance(one, Ranking):
        return one
    if not isinstance(one, str | os.PathLike):
        scores = [replace(score, name="importance") for score in _of(name, one)]
    elif Path(one).suffix.lower() == ".csv":
        scores = _read_csv(Path(one))
    else:
        return Ranking.load(one)
    made = Ranking.from_importances(
        scores[0].features or features,
        {score.name: score.values for score in scores},
        task="",
        targets=scores[0].targets,
        standard_errors={
            score.name: score.standard_errors for score in scores if score.standard_errors is not None
        },
    )
    parts = {score.name: replace(made.scores[score.name], by_target=score.by_target) for score in scores}
    return replace(made, scores=parts)


def _of(name: str | None, one: Any) -> Iterator[Importances]:
    if isinstance(one, str | os.PathLike):
        path = Path(one)
        scores = _read_csv(path) if path.suffix.lower() == ".csv" else _scores(Ranking.load(path))
        yield from _named(path.stem if name is None else name, scores)
    elif isinstance(one, Ranking):
        yield from _scores(one) if name is None else _named(name, _scores(one))
    elif name is None:
        raise ColumnTypeError(
            f"rankings: cannot judge a {type(one).__qualname__}; give arrays a name, in a mapping"
        )
    elif isinstance(one, Mapping):
        yield Importances(name, [str(feature) for feature in one], _numbers(name, list(one.values())))
    else:
        yield Importances(name, None, _numbers(name, one))


def _scores(ranking: Ranking) -> list[Importances]:
    return [
        Importances(
            name, ranking.features, score.importance, score.standard_error, score.by_target, ranking.targets
        )
        for name, score in ranking.scores.items()
    ]


def _named(name: str, scores: Sequence[Importances]) -> Iterator[Importances]:
    for score in scores:
        yield replace(score, name=name if len(scores) == 1 else f"{name}:{score.name}")


def _numbers(name: str, values: Any) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ColumnTypeError(f"{name}: its importances are not numbers; {error}") from error


def _read_csv(path: Path) -> list[Importances]:
    """Read features and scores: the columns with a standard error, or all numbers where none has one.

    ``S[target]`` are the parts of the score S that targets make.
    """
    regular(path)
    try:
        with path.open(newline="", encoding="utf-8") as file:
            head, *rows = [row for row in csv.reader(file) if row] or [[]]
    except OSError as error:
        raise ResourceError(f"{path}: {error.strerror or error}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: is not a saved ranking; {error}") from error
    if "feature" not in head:
        raise DataError(f"{path}: is not a saved ranking; it has no column 'feature'")
    if not rows:
        raise DataError(f"{path}: ranks no features")
    uneven = next((number for number, row in enumerate(rows, 2) if len(row) != len(head)), None)
    if uneven is not None:
        raise DataError(f"{path}: row {uneven} has {len(rows[uneven - 2])} of {len(head)} columns")
    scores = [name for name in head if f"{name}_standard_error" in head]
    scores = scores or [name for name in head if name not in {"feature", "rank"}]
    if not scores:
        raise DataError(f"{path}: has no column of importances")
    columns = dict(zip(head, zip(*rows, strict=True), strict=True))
    features = list(columns["feature"])

    def read(name: str) -> Importances:
        parts = [part for part in head if part.startswith(f"{name}[") and part.endswith("]")]
        return Importances(
            name,
            features,
            _floats(path, name, columns[name]),
            _errors(path, f"{name}_standard_error", columns),
            np.column_stack([_floats(path, part, columns[part]) for part in parts]) if parts else None,
            [part[len(name) + 1 : -1] for part in parts],
        )

    return [read(name) for name in scores]


def _floats(path: Path, name: str, cells: Sequence[str]) -> Array:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError as error:
        raise DataError(f"{path}: column '{name}': {error}; importances are numbers") from error


def _errors(path: Path, name: str, columns: Mapping[str, Sequence[str]]) -> Array | None:
    cells = columns.get(name)
    return None if cells is None else _floats(path, name, [cell or "nan" for cell in cells])


def _more(names: Sequence[str]) -> str:
    return f" and {len(names) - 1} more features" if len(names) > 1 else ""


def _nearest(name: str, names: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, list(names), n=_NEAREST, cutoff=0.0)
    return f"the nearest it has are {', '.join(repr(found) for found in near)}" if near else "it has none"
