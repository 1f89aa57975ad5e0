"""Runs in parts: profiles and accumulators that merge, travel as bytes and lie in files.

An accumulator file is an Arrow IPC stream with a record batch for each tree or block of queries; pyarrow
reads it as any other. Its columns are ``key`` (uint64, number of the tree or block), ``vector`` (uint32,
place among the vectors of the key), ``features`` (list of uint32, null for all features in order),
``values`` (list of float64) and ``checksum`` (uint64). The vectors of a tree are the scores in the order
asked for, then with ``by_target`` those of ``genie3`` and ``mdi_oob`` for each target. Those of a block of
queries are the numbers of queries by scheme, the sums of the targets' distances, and the sums of the
features' differences.
The metadata key ``ferrank:run`` is a JSON object with the settings, the columns and a hash of the profile.
"""

import glob
import numbers
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Self

import pyarrow as pa

from ferrank import _core
from ferrank.data.opening import check_arrow
from ferrank.data.parameters import kind_of
from ferrank.errors import DataError, ResourceError, SettingError
from ferrank.output import check_path, mode_of, replace
from ferrank.progress import Progress, check_function
from ferrank.rankers.plan import EnginePlan, Plan
from ferrank.rankers.registry import opened, plan_of
from ferrank.ranking import Ranking
from ferrank.resources import threads_of
from ferrank.run import finish

__all__ = ["Accumulator", "Profile", "accumulate", "merge", "profile"]


class Profile:
    """What must be known of all rows before any of them are coded: ranges, categories, counts, a sample.

    Profiles of parts merge to that of the whole, with the same bits in any order. See :func:`profile`.

    Examples
    --------
    >>> import ferrank
    >>> profile = ferrank.profile({"a": [1, 2, None], "y": [0.5, 1.5, 2.0]}, "y")
    >>> profile.to_arrow().select(["name", "min", "max"]).to_pylist()
    [{'name': 'a', 'min': 1.0, 'max': 2.0}, {'name': 'y', 'min': 0.5, 'max': 2.0}]
    >>> ferrank.Profile.from_bytes(profile.to_bytes()).to_bytes() == profile.to_bytes()
    True
    """

    def __init__(self, data: bytes) -> None:
        self._data = data

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the profile of which :meth:`to_bytes` made ``data``."""
        return cls(_core.merge_profiles([_bytes_of(data, "profile", "Profile")]))

    def to_bytes(self) -> bytes:
        """Return the profile as an Arrow IPC stream, a row for each column."""
        return self._data

    def merge(self, other: "Profile") -> Self:
        """Take in the profile of another part of the data set, and return this one.

        Raises
        ------
        DataError
            It is of other columns, or was made for other settings.
        """
        self._data = _core.merge_profiles([self._data, _profile_of(other, "other").to_bytes()])
        return self

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each column: features, then targets."""
        return pa.ipc.open_stream(self._data).read_all()


class Accumulator:
    """Contributions of the trees, or of the blocks of queries, of a run or of a part of it.

    Merging is set union: what comes twice counts once. The sums are taken in the order of the keys, so that
    a ranking has the same bits whoever made what, and when. See :func:`accumulate`.

    Examples
    --------
    >>> import ferrank
    >>> table = {"a": [1, 2, 3, 4], "y": [0.5, 1.5, 2.0, 1.0]}
    >>> accumulator = ferrank.accumulate(table, "y", keys=range(40))
    >>> len(accumulator), accumulator.n_keys, accumulator.ranking().top(1)
    (40, 100, ['a'])
    >>> ferrank.Accumulator.from_bytes(accumulator.to_bytes()).fingerprint == accumulator.fingerprint
    True
    """

    def __init__(self, core: _core.Accumulator) -> None:
        self._core = core

    @classmethod
    def from_bytes(cls, data: bytes, name: str = "accumulator") -> Self:
        """Return the accumulator of which :meth:`to_bytes` made ``data``; messages call it ``name``."""
        return cls(_core.Accumulator.from_bytes(_bytes_of(data, name, "Accumulator"), name))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load what :meth:`save` wrote, or the file of ``resume``.

        Raises
        ------
        ResourceError, DataError
            The file cannot be read; it is something else, damaged, or cut off.
        """
        path = check_arrow(path, "file of contributions", "Accumulator.save, resume or merge --save")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ResourceError(f"{path}: {error}") from error
        return cls.from_bytes(data, str(path))

    def to_bytes(self) -> bytes:
        """Return the accumulator as an Arrow IPC stream."""
        return self._core.to_bytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save to a file, which is replaced in one step."""
        path = check_path(path)
        data = self.to_bytes()
        replace(path, lambda partial: partial.write_bytes(data))

    def merge(self, *others: "Accumulator") -> Self:
        """Take in the contributions of other parts of the run, and return this accumulator.

        Raises
        ------
        DataError
            One is of another run, and the message says where they differ; or the same key has different
            contributions. Nothing is taken in then.
        """
        for other in others:
            kind_of(other, Accumulator, "others", "an accumulator; ferrank.merge takes files as well")
        self._core = self._core.union([other._core for other in others])
        return self

    def ranking(self) -> Ranking:
        """Return the ranking that the contributions give, be they all of a run or some.

        Raises
        ------
        DataError
            A score has no contribution at all.
        """
        return Ranking.from_core(self._core.ranking(), self.settings, None)

    @property
    def keys(self) -> list[int]:
        """Numbers of the trees or blocks that contributed, ascending."""
        return self._core.keys

    @property
    def n_keys(self) -> int:
        """Number of contributions of a complete run."""
        return self._core.n_keys

    @property
    def settings(self) -> dict[str, Any]:
        """What the ranker was told."""
        return self._core.settings

    @property
    def fingerprint(self) -> str:
        """Hash of settings, columns and profile, which are the same in all that can be merged."""
        return self._core.fingerprint

    def __len__(self) -> int:
        return len(self.keys)

    def __repr__(self) -> str:
        return f"<Accumulator of {len(self)} of {self.n_keys} contributions>"

    def __reduce__(self) -> tuple[Any, ...]:
        return Accumulator.from_bytes, (self.to_bytes(),)


def profile(
    data: Any,
    target: str | Sequence[str] | None = None,
    *,
    target_last: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str | None = None,
    hierarchy: Any = None,
    drop: Sequence[str] = (),
    sample_weight: str | None = None,
    groups: str | None = None,
    ranker: Plan | Literal["forest", "relief"] | None = None,
    first_row: int = 0,
    progress: Progress | None = None,
    **settings: Any,
) -> Profile:
    """Profile a part of a data set, as the ranker needs it.

    Parameters
    ----------
    data, target, target_last, labels, task, hierarchy, drop, sample_weight, groups, ranker, **settings
        As in :func:`rank`.
    first_row : int, default=0
        Number of the first row, counted over the rows of all parts that take part: those with a target and a
        weight. The rows sampled for cut points depend on it.
    progress : callable, optional
        As in :func:`rank`.

    Returns
    -------
    Profile

    Raises
    ------
    DataError, ColumnTypeError, SettingError, ResourceError
        The message names the file, the column or the setting.

    Examples
    --------
    >>> import ferrank
    >>> one = ferrank.profile({"a": [1, 2], "y": [0.5, 1.5]}, "y")
    >>> two = ferrank.profile({"a": [7], "y": [2.0]}, "y", first_row=2)
    >>> one.merge(two).to_arrow().select(["name", "min", "max"]).to_pylist()
    [{'name': 'a', 'min': 1.0, 'max': 7.0}, {'name': 'y', 'min': 0.5, 'max': 2.0}]
    """
    check_function(progress)
    chosen = _plan(ranker, settings)
    if not isinstance(first_row, numbers.Integral) or not 0 <= first_row <= _MOST:
        raise SettingError(f"first_row: {first_row!r} is not a whole number from 0 on, below 2^64")
    source, roles = opened(
        chosen,
        data,
        target=target,
        target_last=target_last,
        labels=labels,
        task=task,
        hierarchy=hierarchy,
        drop=drop,
        sample_weight=sample_weight,
        groups=groups,
    )
    run = _core.profile(source, roles, chosen._settings(), first_row, threads_of(chosen.n_jobs))
    return Profile(finish(run, progress))


def accumulate(
    data: Any,
    target: str | Sequence[str] | None = None,
    *,
    target_last: int | None = None,
    labels: str | os.PathLike[str] | None = None,
    task: str | None = None,
    hierarchy: Any = None,
    drop: Sequence[str] = (),
    sample_weight: str | None = None,
    groups: str | None = None,
    ranker: Plan | Literal["forest", "relief"] | None = None,
    profile: Profile | None = None,
    keys: range | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Accumulator:
    """Contribute to a ranking: all of it, some of its trees or queries, or what a part of the rows says.

    Parameters
    ----------
    data, target, target_last, labels, task, hierarchy, drop, sample_weight, groups, ranker, resume, progress
        As in :func:`rank`.
    **settings
        As in :func:`rank`.
    profile : Profile, optional
        That of the whole data set. Where it has more rows than ``data``, these are a part: its trees are
        grown, and neighbours found, among its own rows.
    keys : range, optional
        Numbers of the trees, or of the blocks of queries, to contribute; by default all. Parts of a data set
        must be given ranges that do not overlap.

    Returns
    -------
    Accumulator

    Raises
    ------
    DataError, ColumnTypeError, SettingError, ResourceError
        The message names the file, the column or the setting; also where ``data`` are not of the ``profile``.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).normal(size=(2, 100))
    >>> table = {"a": a, "b": b, "y": a**2}
    >>> accumulator = ferrank.accumulate(table, "y", keys=range(60))
    >>> accumulator.merge(ferrank.accumulate(table, "y", keys=range(60, 100)))
    <Accumulator of 100 of 100 contributions>
    >>> accumulator.ranking().top(1)
    ['a']
    """
    check_function(progress)
    chosen = _plan(ranker, settings)
    if resume is not None:
        check_path(resume)
    source, roles = opened(
        chosen,
        data,
        target=target,
        target_last=target_last,
        labels=labels,
        task=task,
        hierarchy=hierarchy,
        drop=drop,
        sample_weight=sample_weight,
        groups=groups,
    )
    run = _core.accumulate(
        source,
        roles,
        chosen._settings(),
        *chosen._resources(),
        _ends(keys),
        None if profile is None else _profile_of(profile).to_bytes(),
        resume,
    )
    return Accumulator(finish(run, progress))


def merge(parts: Iterable[Accumulator | str | os.PathLike[str]]) -> Accumulator:
    """Merge accumulators, files of them, and all files that match a pattern.

    Parameters
    ----------
    parts : Accumulator, path, pattern, or iterable of these
        Parts of one run, in any order; what comes twice counts once.

    Returns
    -------
    Accumulator

    Raises
    ------
    DataError, ResourceError
        There is nothing to merge, a file cannot be read, or one part is of another run than the first.

    Examples
    --------
    >>> import ferrank
    >>> table = {"a": [1, 2, 3, 4], "y": [0.5, 1.5, 2.0, 1.0]}
    >>> ferrank.merge(ferrank.accumulate(table, "y", keys=range(n, n + 50)) for n in (0, 25, 50))
    <Accumulator of 100 of 100 contributions>
    """
    accumulators = [accumulator for part in _listed(parts) for accumulator in _load(part)]
    if not accumulators:
        raise DataError("parts: nothing to merge; name at least one accumulator")
    first, *rest = accumulators
    return Accumulator(first._core).merge(*rest)


def _profile_of(given: object, name: str = "profile") -> Profile:
    return kind_of(given, Profile, name, "a profile, as ferrank.profile and Profile.from_bytes return it")


_MOST = (1 << 64) - 1
"""Of rows and keys, which the engine counts in 64 bits."""


def _listed(parts: Any) -> Iterable[Any]:
    if isinstance(parts, str | os.PathLike | Accumulator):
        return [parts]
    return kind_of(parts, Iterable, "parts", "an accumulator, a path, or several of them")


def _bytes_of(data: object, name: str, kind: str) -> bytes:
    return bytes(kind_of(data, (bytes, bytearray, memoryview), name, f"bytes that {kind}.to_bytes returned"))


def _load(part: Accumulator | str | os.PathLike[str]) -> list[Accumulator]:
    if isinstance(part, Accumulator):
        return [part]
    kind_of(part, (str, os.PathLike), "parts", "an accumulator or a path")
    if not glob.has_magic(str(part)) or mode_of(Path(part)) is not None:
        return [Accumulator.load(part)]
    paths = sorted(glob.glob(str(part)))  # noqa: PTH207 - a pattern may be absolute
    if not paths:
        raise ResourceError(f"{part}: no file matches")
    return [Accumulator.load(path) for path in paths]


def _ends(keys: range | None) -> tuple[int, int] | None:
    if keys is None:
        return None
    if not isinstance(keys, range) or keys.step != 1 or keys.start < 0 or not keys or keys.stop > _MOST:
        raise SettingError(f"keys: {keys!r}; use a range of at least one number from 0 on, in steps of 1")
    return keys.start, keys.stop


def _plan(ranker: Plan | str | None, settings: dict[str, Any]) -> EnginePlan:
    """Return the plan of one ranker, whose number of trees or queries is known."""
    chosen = plan_of(ranker, settings)
    if not isinstance(chosen, EnginePlan):
        raise SettingError(
            "ranker: 'joint' joins rankings, each of which has contributions of its own; use "
            "ranker='forest' or ranker='relief'"
        )
    chosen._check_is_whole("accumulators")
    return chosen
