"""Names in tables and plots."""

from hypothesis import given
from hypothesis import strategies as st

from ferrank.ranking.text import labels, shorten

WORDS = st.text(alphabet="ab_", max_size=60)


@given(WORDS, st.integers(5, 40))
def test_short_enough(name: str, width: int) -> None:
    assert len(shorten(name, width)) == min(len(name), width)


@given(st.lists(WORDS, unique=True, max_size=12), st.integers(5, 20))
def test_told_apart(names: list[str], width: int) -> None:
    found = labels(names, width)
    assert len(set(found)) == len(found) == len(names)


def test_short_names_stay() -> None:
    assert labels(["a", "b"]) == ["a", "b"]
