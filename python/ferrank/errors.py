"""Exceptions and warnings. Each exception is also the built-in that it is closest to."""

__all__ = [
    "ColumnTypeError",
    "DataError",
    "DriftWarning",
    "FerrankError",
    "IntegerTargetWarning",
    "ResourceError",
    "ResumeWarning",
    "SettingError",
]


class FerrankError(Exception):
    """Base of all exceptions of ferrank. Raised itself only for a bug in ferrank."""


class DataError(FerrankError, ValueError):
    """The data are not what the call needs: a column, a value, a malformed file."""


class SettingError(FerrankError, ValueError):
    """A setting is unknown, out of range, or contradicts another one."""


class ColumnTypeError(FerrankError, TypeError):
    """Data of a type that cannot be ranked."""


class ResourceError(FerrankError, OSError):
    """A file cannot be opened, read or written."""


class IntegerTargetWarning(UserWarning):
    """A target of a few integers was taken for a quantity; it may have been meant as classes."""


class ResumeWarning(UserWarning):
    """A part of a file that a run resumes from was lost, and is made again."""


class DriftWarning(UserWarning):
    """Partitions that are ranked each on its own differ in their distributions."""
