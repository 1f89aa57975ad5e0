"""The engine behind ferrank: sources of rows, and runs over them."""

from collections.abc import Callable, Mapping, Sequence
from mmap import mmap
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__version__: str

_Bytes = bytes | mmap | NDArray[np.uint8]

@final
class Source:
    """Rows that can be read again and again."""

    @staticmethod
    def open(path: str | PathLike[str], labels: str | PathLike[str] | None = None) -> Source: ...
    @staticmethod
    def arrow(path: str | PathLike[str], name: str) -> Source: ...
    @staticmethod
    def parquet(path: str | PathLike[str], temp_dir: str | PathLike[str] | None = None) -> Source: ...
    @staticmethod
    def table(data: object, name: str) -> Source: ...
    @staticmethod
    def factory(
        schema: object,
        make: Callable[[], object],
        explain: Callable[[str], str],
        name: str,
        rows: int | None = None,
    ) -> Source:
        """Return a source that asks ``make()`` for a fresh stream of ``schema`` in each pass.

        An error of a stream is worded by ``explain``, with ``name`` in front. ``rows`` is their number, where
        the file says so.
        """
    def keeping(self, kept: object, name: str) -> Source: ...
    @staticmethod
    def joined(parts: Sequence[Source], name: str) -> Source: ...
    @staticmethod
    def arrays(columns: Sequence[tuple[Sequence[str] | None, object]], name: str) -> Source: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def rows(self) -> int | None: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def resolve(self, roles: Mapping[str, object]) -> dict[str, Any]: ...

@final
class Run:
    """Work in progress on a thread of its own."""

    def wait(self, timeout: float) -> bool: ...
    def progress(self) -> tuple[str, int, int]: ...
    def notes(self) -> list[str]: ...
    def abort(self) -> None: ...
    def finish(self) -> None: ...
    def result(self) -> Any: ...

@final
class Tree:
    """A decision or regression tree."""

    @staticmethod
    def from_json(text: str) -> Tree: ...
    def to_json(self) -> str: ...
    def importances(self) -> NDArray[np.float64]: ...
    def predict(self, source: Source, threads: int) -> Run: ...

@final
class Forest:
    """A forest whose trees are kept."""

    @staticmethod
    def open(path: PathLike[str]) -> Forest: ...
    @staticmethod
    def from_bytes(data: bytes) -> Forest: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: PathLike[str]) -> None: ...
    @property
    def n_trees(self) -> int: ...
    def n_bytes(self) -> tuple[int, int]: ...
    @property
    def no_oob(self) -> str | None: ...
    def oob(self) -> Run: ...
    def forget_rows(self) -> None: ...
    def description(self) -> str: ...
    def nodes(self) -> tuple[Any, list[int]]: ...
    def predict(
        self,
        source: Source,
        what: str,
        threshold: float,
        threads: int,
        path: PathLike[str] | None = None,
    ) -> Run: ...
    def interactions(self, most: int) -> list[tuple[int, int, float]]: ...
    def trends(self) -> list[tuple[int, int, float]]: ...

@final
class Accumulator:
    """Contributions of a run or of a part of it."""

    @staticmethod
    def from_bytes(data: bytes, name: str) -> Accumulator: ...
    def to_bytes(self) -> bytes: ...
    def union(self, others: Sequence[Accumulator]) -> Accumulator: ...
    def ranking(self) -> dict[str, Any]: ...
    @property
    def keys(self) -> list[int]: ...
    @property
    def n_keys(self) -> int: ...
    @property
    def fingerprint(self) -> str: ...
    @property
    def settings(self) -> dict[str, Any]: ...

@final
class Coded:
    """A data set made of the codes of its parts."""

    @staticmethod
    def of(
        source: Source,
        roles: Mapping[str, object],
        settings: Mapping[str, object],
        profile: bytes,
        parts: Sequence[_Bytes],
        threads: int,
        memory: int | None = None,
        temp_dir: str | PathLike[str] | None = None,
        alone: int | None = None,
        own: bytes | None = None,
    ) -> Coded: ...
    def accumulate(self, first: int, end: int, threads: int) -> Run: ...

@final
class Coder:
    """Codes the parts of a data set for a forest."""

    @staticmethod
    def of(
        source: Source,
        roles: Mapping[str, object],
        settings: Mapping[str, object],
        profile: bytes,
        alone: int | None = None,
    ) -> Coder: ...
    def code(self, part: Source, threads: int) -> Run: ...
    @staticmethod
    def answers(codes: _Bytes) -> bytes: ...

def needs(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], profile: bytes
) -> tuple[int, int]: ...
def rounds(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], profile: bytes
) -> list[tuple[int, int]]: ...

@final
class TestsApart:
    """What every worker knows of a data set in parts whose features are tested."""

    @staticmethod
    def of(
        source: Source,
        roles: Mapping[str, object],
        settings: Mapping[str, object],
        profile: bytes,
        answers: Sequence[bytes],
    ) -> TestsApart: ...
    def ranges(self) -> list[tuple[int, int]]: ...
    def sums(self, codes: _Bytes, first: int, features: tuple[int, int], threads: int) -> Run: ...
    def next_given(
        self, sums: NDArray[np.int64], number: int, last: tuple[Sequence[int], NDArray[np.int64]]
    ) -> Run: ...
    def model(self, codes: _Bytes, first: int, given: Sequence[int], threads: int) -> Run: ...
    def accumulate(self, sums: NDArray[np.int64], last: tuple[Sequence[int], NDArray[np.int64]]) -> Run: ...

@final
class Apart:
    """What every worker knows of a data set in parts that keep their codes."""

    @staticmethod
    def of(
        source: Source,
        roles: Mapping[str, object],
        settings: Mapping[str, object],
        profile: bytes,
        answers: Sequence[bytes],
    ) -> Apart: ...
    def accumulate(
        self,
        first: int,
        end: int,
        threads: int,
        memory: int | None,
        temp_dir: str | PathLike[str] | None,
        parts: object,
    ) -> Run: ...
    def sums(self, part: tuple[_Bytes, _Bytes | None, int], request: bytes, threads: int) -> Run: ...
    def collect(self, part: tuple[_Bytes, _Bytes | None, int], request: bytes, threads: int) -> Run: ...
    def rows(self, part: tuple[_Bytes, _Bytes | None, int], request: bytes, threads: int) -> Run: ...
    def spread(
        self,
        part: tuple[_Bytes, _Bytes | None, int],
        tree: int,
        firsts: Sequence[int],
        number: int,
        threads: int,
    ) -> Run: ...
    def shadows(
        self,
        part: tuple[_Bytes, _Bytes | None, int],
        tree: int,
        firsts: Sequence[int],
        number: int,
        pieces: Sequence[bytes],
    ) -> Run: ...

@final
class Stream:
    """What is kept of the batches so far."""

    @staticmethod
    def start(roles: Mapping[str, object], settings: Mapping[str, object]) -> Stream: ...
    @staticmethod
    def from_bytes(data: bytes) -> Stream: ...
    def to_bytes(self) -> bytes: ...
    @property
    def counts(self) -> tuple[int, int]: ...
    def push(
        self,
        batch: Source,
        threads: int,
        memory: int | None = None,
        temp_dir: str | PathLike[str] | None = None,
    ) -> Run: ...
    def ranking(
        self, threads: int, memory: int | None = None, temp_dir: str | PathLike[str] | None = None
    ) -> Run: ...

def accumulate(
    source: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    threads: int,
    memory: int | None = None,
    temp_dir: str | PathLike[str] | None = None,
    keys: tuple[int, int] | None = None,
    profile: bytes | None = None,
    resume: str | PathLike[str] | None = None,
    is_profiled: bool = False,
) -> Run: ...
def rank_until(
    source: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    threads: int,
    memory: int | None = None,
    temp_dir: str | PathLike[str] | None = None,
) -> Run: ...
def sample(source: Source, settings: Mapping[str, object], memory: int | None = None) -> Run: ...
def accumulate_and_keep(
    source: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    threads: int,
    memory: int | None = None,
    temp_dir: str | PathLike[str] | None = None,
    profile: bytes | None = None,
) -> Run: ...
def count(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], alone: int | None = None
) -> Run: ...
def profile(
    source: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    first_row: int,
    threads: int,
    alone: int | None = None,
    of_rows: int | None = None,
) -> Run: ...
def was_text(names: list[str]) -> bool: ...
def taking_part(source: Source, roles: Mapping[str, object], settings: Mapping[str, object]) -> Run: ...
def obstacle(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], profile: bytes
) -> str | None: ...
def queries(
    source: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    profile: bytes,
    keys: tuple[int, int],
) -> NDArray[np.uint32]: ...
def nearest(
    source: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    threads: int,
    memory: int | None,
    temp_dir: str | PathLike[str] | None,
    profile: bytes,
    numbers: NDArray[np.uint32],
    queries: NDArray[np.uint32],
) -> Run: ...
def search(
    source: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    threads: int,
    memory: int | None,
    temp_dir: str | PathLike[str] | None,
    profile: bytes,
    numbers: NDArray[np.uint32],
    keys: tuple[int, int],
    targets: Source | None,
) -> Run: ...
def beside(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], profile: bytes
) -> tuple[list[str], list[str]]: ...
def values(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], names: Sequence[str]
) -> Run: ...
def default_memory(processes: int) -> int | None: ...
def cores() -> int: ...
def n_keys(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], profile: bytes
) -> int: ...
def merge_profiles(parts: Sequence[bytes]) -> bytes: ...
def derive_cuts(profile: bytes) -> bytes: ...
def grow_relief_tree(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], threads: int
) -> Run: ...
def tree_settings_json(settings: dict[str, Any]) -> str: ...
def grow_tree(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], tree: int
) -> Run: ...
def multilabel_measures(
    has: NDArray[np.bool_],
    scores: NDArray[np.float64],
    label_weights: NDArray[np.float64] | None,
    conventions: str,
    threshold: float,
) -> tuple[list[tuple[str, float]], NDArray[np.float64], NDArray[np.float64]]: ...
def precision_recall_area(
    has: NDArray[np.bool_], scores: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> float: ...
def q_values(evidence: NDArray[np.float64], any_dependence: bool) -> NDArray[np.float64]: ...
def verdicts(
    evidence: NDArray[np.float64],
    most_evidence: NDArray[np.float64],
    rate: float,
    any_dependence: bool,
) -> list[str]: ...
def join_evidence(
    parts: Sequence[Sequence[NDArray[np.float64]]],
) -> list[NDArray[np.float64]] | None: ...
def rank_intervals(
    importance: NDArray[np.float64], standard_error: NDArray[np.float64], freedom: float
) -> NDArray[np.uint32]: ...
def neighbors(
    train: Source,
    test: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    threads: int,
) -> Run: ...
def closed_sets(source: Source, roles: Mapping[str, object], settings: Mapping[str, object]) -> Run: ...
def integer_targets(source: Source, roles: Mapping[str, object]) -> Run: ...
def class_roles(parts: Sequence[Sequence[tuple[str, Sequence[int] | None]]]) -> tuple[list[str], bool]: ...
def inspect(source: Source) -> Run: ...
def convert(source: Source, path: str | PathLike[str]) -> Run: ...
def read_json(path: str | PathLike[str], name: str, temp_dir: str | PathLike[str] | None = None) -> Run: ...
def spill(data: object, name: str, temp_dir: str | PathLike[str] | None = None) -> Run: ...
def take_events() -> list[tuple[int, str, str, float]]: ...
def score_definitions() -> list[tuple[str, str, str]]: ...
def settings_json(settings: dict[str, Any]) -> str: ...
def default_settings_json(ranker: str) -> str: ...
def distance_weights(distance_features: Any, names: list[str]) -> list[float]: ...
