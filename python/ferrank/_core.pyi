"""The engine behind ferrank: sources of rows, and runs over them."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, final

__version__: str

@final
class Source:
    """Rows that can be read again and again."""

    @staticmethod
    def open(path: str | PathLike[str], labels: str | PathLike[str] | None = None) -> Source: ...
    @staticmethod
    def table(data: object, name: str) -> Source: ...
    @staticmethod
    def factory(
        schema: object,
        make: Callable[[], object],
        explain: Callable[[str], str],
        name: str,
        rows: int | None = None,
    ) -> Source: ...
    @staticmethod
    def joined(parts: Sequence[Source], name: str) -> Source: ...
    @staticmethod
    def arrays(columns: Sequence[tuple[Sequence[str], object]], name: str) -> Source: ...
    @property
    def columns(self) -> list[str]: ...
    @property
    def name(self) -> str: ...
    @property
    def rows(self) -> int | None: ...

@final
class Run:
    """Work in progress on a thread of its own."""

    def wait(self, timeout: float) -> bool: ...
    def progress(self) -> tuple[str, int, int]: ...
    def abort(self) -> None: ...
    def result(self) -> Any: ...

def rank(
    source: Source,
    roles: Mapping[str, object],
    settings: Mapping[str, object],
    threads: int,
    memory: int | None = None,
    scratch: str | PathLike[str] | None = None,
) -> Run: ...
def grow_tree(
    source: Source, roles: Mapping[str, object], settings: Mapping[str, object], tree: int
) -> Run: ...
def inspect(source: Source) -> Run: ...
def convert(source: Source, path: str | PathLike[str]) -> Run: ...
def spill(data: object, name: str) -> Run: ...
