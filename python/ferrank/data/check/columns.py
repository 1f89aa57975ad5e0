"""What is wrong with single columns."""

import re
from collections.abc import Callable, Iterator

import numpy as np

from ferrank.data.check.report import Finding
from ferrank.data.check.sample import Column
from ferrank.data.delimited import NUMBER

__all__ = ["infinity", "of_column"]

_FEW_ROWS = 30
"""Below so many known values nothing is said of how they are distributed."""
_ROWS_OF_A_CATEGORY = 5
_MOSTLY = 0.95
_MANY_TEXTS = 20
_SENTINELS = {-1.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, -9.0, -99.0, -999.0, -9999.0, -99999.0}
_NUMBER_IN_UNITS = r"\s*[-+]?[$€£]?\s*(\d[\d' .,]*|[.,]\d+)([eE][-+]?\d+)?\s*(%|[a-zA-Zµ°²³/]{0,6})\s*"
_DATE = (
    r"\s*("
    r"\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?"
    r"|\d{1,2}[-/. ](\d{1,2}|[A-Za-z]{3,9})[-/. ]\d{2,4}"
    r"|[A-Za-z]{3,9} \d{1,2},? \d{4}"
    r")([T ]+\d{1,2}:\d{2}(:\d{2}([.,]\d+)?)?\s*(Z|[AaPp][Mm]|[-+]\d{2}:?\d{2})?)?\s*"
)
_IDENTIFIER = (
    r"(^|[_\W])(ids?|uuid|guid|key|index|row|no|nr|number|rownum|unnamed)($|[_\W\d])|[a-z](Id|ID|Key)$"
)
_CODE = {"zip", "zipcode", "postcode", "code", "cd", "category", "type", "class", "region", "kind"}
_PLACEHOLDERS = {"", "?", "--", "na", "n/a", "nan", "null", "missing", "unknown", "not available"}


def of_column(column: Column) -> Iterator[Finding]:
    """Yield what is wrong with a column; a constant column has no other fault but infinity."""
    if (infinite := infinity(column)) is not None:
        yield infinite
    found = next(filter(None, (look(column) for look in _FIRST)), None)
    if found is not None:
        yield found
        return
    yield from filter(None, (look(column) for look in _ALSO))


def infinity(column: Column) -> Finding | None:
    """Find numbers that no ranker takes."""
    rows = 0 if column.is_nominal else int(np.isinf(column.values).sum())
    if rows == 0:
        return None
    return Finding(
        "infinity",
        [column.name],
        f"{rows:,} of {len(column.values):,} rows hold infinity, which rankers refuse",
        "make it missing, or mend the values",
    )


def _constant(column: Column) -> Finding | None:
    if column.n_distinct > 1:
        return None
    n_rows, n_missing = len(column.values), int((~column.known).sum())
    if 0 < n_missing < n_rows:
        found = f"one value where known, missing in {n_missing:,} of {n_rows:,} rows"
        return Finding("constant", [column.name], found, "keep it only if a missing value tells something")
    found = "no value" if column.n_distinct == 0 else "the same value in all rows"
    return Finding("constant", [column.name], found, "drop it")


def _numbers_in_strings(column: Column) -> Finding | None:
    if not column.is_text:
        return None
    texts = [text for text in column.texts if text.strip().lower() not in _PLACEHOLDERS]
    if len(texts) < _MANY_TEXTS:
        return None
    # With units or signs they may be words that begin with a digit: then there must be as good as no others.
    in_units = re.compile(_NUMBER_IN_UNITS)
    plain, any_form = (_share(texts, form.fullmatch) for form in (NUMBER, in_units))
    if plain < _MOSTLY and any_form < 1:
        return None
    example = next(text for text in texts if in_units.fullmatch(text))
    return Finding(
        "numbers in strings",
        [column.name],
        f"numbers as text, such as '{example}', which are taken for categories",
        "convert it to numbers",
    )


def _dates_in_strings(column: Column) -> Finding | None:
    if (
        not column.is_nominal
        or len(column.texts) < _MANY_TEXTS
        or _share(column.texts, re.compile(_DATE).fullmatch) < _MOSTLY
    ):
        return None
    return Finding(
        "dates in strings",
        [column.name],
        f"dates as text, such as '{column.texts[0]}', which are taken for categories",
        "convert it to numbers, such as the days since the first date, and the month",
    )


def _share(texts: list[str], is_one: Callable[[str], object]) -> float:
    return sum(is_one(text) is not None for text in texts) / len(texts) if texts else 0.0


def _identifier(column: Column) -> Finding | None:
    n_known = int(column.known.sum())
    if n_known < _FEW_ROWS:
        return None
    share = column.n_distinct / n_known
    if column.is_nominal:
        if share >= _MOSTLY:
            return Finding(
                "identifier",
                [column.name],
                "a category for nearly each row",
                "drop it: it tells rows apart and nothing else",
            )
        if share > 1 / _ROWS_OF_A_CATEGORY:
            return Finding(
                "many categories",
                [column.name],
                f"a category for every {1 / share:.2g} rows",
                "join categories, or drop it; if rows of a category belong together, give it as groups",
            )
        return None
    if share < 1:
        return None
    values = column.values[column.known]
    steps = np.diff(values)
    if column.is_integer and n_known > 1 and (steps == steps[0]).all():
        return Finding("identifier", [column.name], "it counts the rows", "drop it")
    if (steps > 0).all() or (steps < 0).all():
        return Finding(
            "order of rows",
            [column.name],
            "values that rise or fall with the order of the rows, as times do",
            "drop it, unless it is known for new rows as well",
        )
    dense = np.ptp(values) < 1.05 * n_known
    if column.is_integer and (dense or re.search(_IDENTIFIER, column.name, re.ASCII)):
        return Finding(
            "identifier",
            [column.name],
            "another integer in each row"
            + (", without gaps" if dense else ", and the name of an identifier"),
            "drop it if it numbers the rows, or people",
        )
    return None


def _codes_by_name(column: Column) -> Finding | None:
    """Find integers whose name says that they are codes, such as postcodes."""
    words = [word for word in re.split(r"[_\W\d]+|(?<=[a-z])(?=[A-Z])", column.name) if word] or [""]
    if not column.is_integer or column.n_distinct <= 2 or words[-1].lower() not in _CODE:
        return None
    return Finding(
        "codes",
        [column.name],
        f"{column.n_distinct:,} distinct integers that are codes by the name, and are taken for quantities",
        "make it strings, or name it in categorical_features",
    )


def _sentinel(column: Column) -> Finding | None:
    """Find a number such as -999 far from the others that stands for a missing value."""
    if column.is_nominal:
        texts = [text for text in column.texts if text.strip().lower() in _PLACEHOLDERS]
        if not texts:
            return None
        rows = sum(int((column.values == column.texts.index(text)).sum()) for text in texts)
        return _missing(column, f"'{texts[0]}'", rows)
    values = column.values[column.known]
    for value in _SENTINELS & {float(values.min()), float(values.max())}:
        others = values[values != value]
        rows = len(values) - len(others)
        low, high = np.percentile(others, [1, 99])
        far = (
            min(abs(value - low), abs(value - high)) > 2 * max(high - low, 1e-300)
            and not low <= value <= high
        )
        inverse = value < 0 <= others.min()
        if (
            rows > max(2, 0.005 * len(values))
            and len(np.unique(others)) > 2
            and (far or (inverse and abs(value) > 1))
        ):
            return _missing(column, f"{value:g}", rows)
    return None


def _missing(column: Column, value: str, rows: int) -> Finding:
    return Finding(
        "missing as a value",
        [column.name],
        f"{value} in {rows:,} of {len(column.values):,} rows, which seems to stand for a missing value",
        "make these missing",
    )


_FIRST = (_constant, _dates_in_strings, _numbers_in_strings, _identifier)
_ALSO = (_codes_by_name, _sentinel)
