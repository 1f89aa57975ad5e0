"""Exceptions and warnings. Each exception is also the built-in that it is closest to."""

from collections.abc import Iterable
from difflib import get_close_matches

from ferrank.escape import visible, visible_lines, without_traceback

__all__ = [
    "ColumnTypeError",
    "DataError",
    "DriftWarning",
    "FerrankError",
    "IntegerTargetWarning",
    "Lines",
    "ResourceError",
    "ResumeWarning",
    "SettingError",
    "SpoiledDataWarning",
    "UnavailableError",
    "hint",
]


def hint(name: object, known: Iterable[str]) -> str:
    """Return the end of an error message for a name that is not known: which was meant, or which there are.

    >>> hint("acuracy", ["accuracy", "macro_f1"]), hint("q", ["accuracy", "macro_f1"])
    ('did you mean accuracy?', 'there are accuracy, macro_f1')
    """
    names = list(known)
    lower = {one.lower(): one for one in names}
    near = [lower[one] for one in get_close_matches(str(name).lower(), lower, n=1)]
    return f"did you mean {near[0]}?" if near else f"there are {', '.join(names) or 'none'}"


class Lines(str):
    """A message of several lines, such as scikit-learn's; in all others line breaks are parts of names."""


class _Visible(BaseException):
    """What is printed without control characters: messages name columns, which come from files.

    Nor are there tracebacks in the message, as pyarrow hands them over: the engine does not know them.
    """

    def __str__(self) -> str:
        shown = visible_lines if self.args and isinstance(self.args[0], Lines) else visible
        return shown(without_traceback(super().__str__()))


class FerrankError(_Visible, Exception):
    """Base of all exceptions of ferrank. Raised itself only for a bug in ferrank.

    Examples
    --------
    >>> import ferrank
    >>> try:
    ...     ferrank.rank("nowhere.arrow", "y")
    ... except ferrank.FerrankError as error:
    ...     print(type(error).__name__)
    ResourceError
    """


class DataError(FerrankError, ValueError):
    """The data are not what the call needs: a column, a value, a malformed file.

    Examples
    --------
    >>> import ferrank
    >>> ferrank.rank({"x": [1.0, float("inf")], "y": [0.5, 1.5]}, "y")
    Traceback (most recent call last):
    ferrank.errors.DataError: ...'x'...
    """


class SettingError(FerrankError, ValueError):
    """A setting is unknown, out of range, or contradicts another one.

    Examples
    --------
    >>> import ferrank
    >>> ferrank.rank({"x": [1.0, 2.0], "y": [0.5, 1.5]}, "y", n_estimators=0)
    Traceback (most recent call last):
    ferrank.errors.SettingError: n_estimators: ...
    """


class UnavailableError(SettingError, AttributeError):
    """An attribute of a result that other settings would have made, such as verdicts; ``hasattr`` is False.

    Examples
    --------
    >>> import ferrank
    >>> table = {"x": [1.0, 2.0, 3.0], "y": [0.5, 1.5, 1.0]}
    >>> hasattr(ferrank.rank(table, "y", ranker="forest"), "verdict")
    False
    """


class ColumnTypeError(FerrankError, TypeError):
    """Data of a type that cannot be ranked, or an object of the wrong type in the place of a ranking, say.

    Examples
    --------
    >>> import ferrank
    >>> ferrank.rank({"photo": [b"GIF89a", b"GIF89a"], "y": [0.5, 1.5]}, "y")
    Traceback (most recent call last):
    ferrank.errors.ColumnTypeError: ...'photo'...
    """


class ResourceError(FerrankError, OSError):
    """A file cannot be opened, read or written.

    Examples
    --------
    >>> import ferrank
    >>> ferrank.rank("nowhere.arrow", "y")
    Traceback (most recent call last):
    ferrank.errors.ResourceError: nowhere.arrow: ...
    """


class IntegerTargetWarning(_Visible, UserWarning):
    """A target of a few distinct integers was taken for classes; it may have been meant as a quantity.

    With at most 20 distinct values, an integer target stands for classes. Two of them are not warned of.

    Examples
    --------
    >>> import ferrank, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     ranker = ferrank.ReliefRanker().fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 2, 0])
    >>> ranker.result_.task, caught[0].category.__name__
    ('classification', 'IntegerTargetWarning')
    """


class SpoiledDataWarning(_Visible, UserWarning):
    """A column seems to spoil the ranking: an identifier, a copy of the target, numbers in strings.

    Examples
    --------
    >>> import ferrank, numpy as np, warnings
    >>> x = np.random.default_rng(0).normal(size=100)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     ranking = ferrank.rank({"a": 2 * x, "y": x}, "y", n_estimators=5)
    >>> print(str(caught[0].message)[:47])
    leak: column 'a': enough to tell the target 'y'
    """


class ResumeWarning(_Visible, UserWarning):
    """A part of a file that a run resumes from was lost, and is made again.

    Examples
    --------
    >>> import ferrank, pathlib, tempfile, warnings
    >>> table = {"x": [1.0, 2.0, 3.0], "y": [0.5, 1.5, 1.0]}
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     path = pathlib.Path(folder) / "run.arrow"
    ...     whole = ferrank.rank(table, "y", ranker="forest", resume=path)
    ...     size = path.write_bytes(path.read_bytes()[:-100])
    ...     again = ferrank.rank(table, "y", ranker="forest", resume=path)
    >>> caught[0].category.__name__, again.importances().tolist() == whole.importances().tolist()
    ('ResumeWarning', True)
    """


class DriftWarning(_Visible, UserWarning):
    """Partitions that are ranked each on its own differ in their distributions.

    Examples
    --------
    >>> import ferrank, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", ferrank.DriftWarning)
    ...     warnings.warn("partition 3 has other values of x", ferrank.DriftWarning)
    Traceback (most recent call last):
    ferrank.errors.DriftWarning: partition 3 has other values of x
    """
