"""Ranking rows that come in batches and are seen once: the side of ``partial_fit``."""

import numbers
import threading
import time
from typing import Any, Self
from weakref import WeakKeyDictionary

from sklearn.exceptions import NotFittedError

from ferrank import _core
from ferrank._core import Source
from ferrank.data.source import is_lazy
from ferrank.errors import ColumnTypeError, DataError, SettingError
from ferrank.rankers.base import FITTED, Ranker
from ferrank.rankers.plan import EnginePlan, plain
from ferrank.ranking import Ranking
from ferrank.run import finish

__all__ = ["Stream", "StreamRanker"]


class Stream:
    """What is kept of the batches so far, as a value: :meth:`push` makes a new one.

    Memory is that of a block and a reservoir of rows and of at most 128 sums for each score, however many
    batches come. What the engine does with them is told in its module ``stream``.
    """

    def __init__(self, core: _core.Stream, roles: dict[str, Any], settings: dict[str, Any]) -> None:
        self._core = core
        self.roles = roles
        self.settings = settings
        self.seconds = 0.0

    @classmethod
    def start(cls, roles: dict[str, Any], settings: dict[str, Any]) -> Self:
        """Return a stream without any batch yet."""
        return cls(_core.Stream.start(roles, settings), roles, settings)

    def push(self, batch: Source, *resources: Any) -> "Stream":
        """Return the stream with copies of the rows of ``batch``.

        ``resources`` are threads, memory and the folder for temporary files.
        """
        started = time.perf_counter()
        after = Stream(finish(self._core.push(batch, *resources)), self.roles, self.settings)
        after.seconds = self.seconds + time.perf_counter() - started
        return after

    @property
    def counts(self) -> tuple[int, int]:
        """Number of complete blocks, and of rows without a target."""
        return self._core.counts

    @property
    def n_blocks(self) -> int:
        """Number of complete blocks."""
        return self._core.counts[0]

    def ranking(self, *resources: Any) -> Ranking:
        """Return the ranking by all complete blocks; before the first is, by the rows that there are."""
        result = finish(self._core.ranking(*resources))
        return Ranking.from_core(result, self.settings, self.seconds)

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (self._core.to_bytes(), self.roles, self.settings, self.seconds)


def _restore(data: bytes, roles: dict[str, Any], settings: dict[str, Any], seconds: float) -> Stream:
    stream = Stream(_core.Stream.from_bytes(data), roles, settings)
    stream.seconds = seconds
    return stream


class StreamRanker(EnginePlan, Ranker):
    """Base of the rankers that can be fed with batches, by ``partial_fit``.

    They have the parameters ``block_rows``, ``reservoir_rows`` and ``half_life``, too.
    """

    block_rows: int
    reservoir_rows: int
    half_life: float | None

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any, client: Any = None) -> Self:
        self._forget()
        return super()._fit(X, y, sample_weight, groups, client)

    def _partial_fit(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        with _feeding(self):
            return self._feed(X, y, sample_weight, groups)

    def _feed(self, X: Any, y: Any, sample_weight: Any, groups: Any) -> Self:
        if X is None:
            return self._rank_rows(y, sample_weight, groups)
        if is_lazy(X):
            raise ColumnTypeError(
                "X: partial_fit takes a batch in memory; fit takes a dask collection as a whole"
            )
        self._check_is_whole("partial_fit")
        before: Stream | None = self.__dict__.get("_stream")
        source, roles = self._examples(X, y, sample_weight, groups, None if before is None else before.roles)
        settings = self._settings() | plain(
            {name: getattr(self, name) for name in ("block_rows", "reservoir_rows", "half_life")}
        )
        if before is None:
            before = Stream.start(roles, settings)
        else:
            self._check_same(before, roles, settings)
        after = before.push(source, *self._resources())
        result = None
        if after.n_blocks > 0 and after.counts != before.counts:
            result = after.ranking(*self._resources())
        if after.n_blocks == 0:
            self._forget()
        self._stream = after
        if result is not None:
            self._keep(result)
        return self

    def _rank_rows(self, *others: Any) -> Self:
        """Rank by the rows so far, where no block is complete."""
        if any(other is not None for other in others):
            raise DataError("X: None was given; give the rows too, or nothing at all to rank the rows so far")
        stream: Stream | None = self.__dict__.get("_stream")
        if stream is None:
            raise DataError("X: no batch has come yet; give one to partial_fit")
        if "result_" not in self.__dict__:
            self._keep(stream.ranking(*self._resources()))
        return self

    def _check_same(self, before: Stream, roles: dict[str, Any], settings: dict[str, Any]) -> None:
        if not isinstance(self.random_state, numbers.Integral):
            settings["seed"] = before.settings["seed"]
        known = {**before.roles, **before.settings}
        for name, value in {**roles, **settings}.items():
            if value != known[name]:
                raise SettingError(
                    f"{name}: {value!r} now, {known[name]!r} in the calls of partial_fit before; set it "
                    "back, or start anew with a clone"
                )

    def _forget(self) -> None:
        for name in ("_stream", *FITTED):
            self.__dict__.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        """Explain why a fitted attribute is missing; looking for one starts no work."""
        if name in FITTED and "_stream" in self.__dict__:
            raise NotFittedError(
                f"{name}: no block of {self.block_rows:,} rows is complete yet; go on with batches, or call "
                "partial_fit without a batch to rank the rows so far"
            )
        return super().__getattr__(name)


# Not attributes of the rankers, because locks cannot be copied and stored.
_locks: WeakKeyDictionary[StreamRanker, threading.Lock] = WeakKeyDictionary()
_locks_lock = threading.Lock()


def _feeding(ranker: StreamRanker) -> threading.Lock:
    """Return the lock under which ``ranker`` takes a batch: threads that feed it take turns."""
    with _locks_lock:
        return _locks.setdefault(ranker, threading.Lock())
