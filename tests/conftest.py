"""What the tests share: data, and a keyboard."""

import os
import signal
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

# Dask gives up a worker for good if it is down this long after an earlier end of it, though another may be
# starting in its place: a cluster of one worker then has none, and waits.
os.environ["DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT"] = "10 minutes"


@pytest.fixture(scope="session")
def mixed() -> pa.Table:
    """Numeric, integer and nominal features with missing values; the target follows `a` and `colour`."""
    rng = np.random.default_rng(7)
    n = 240
    a, b = rng.normal(size=(2, n)).round(3)
    count = rng.integers(0, 9, size=n)
    colour = rng.choice(["red", "green", "blue"], size=n)
    y = a + (colour == "red") + 0.1 * rng.normal(size=n)
    return pa.table(
        {
            "a": pa.array(a, mask=rng.random(n) < 0.1),
            "b": b,
            "count": count,
            "colour": pa.array(colour, mask=rng.random(n) < 0.1),
            "y": y.round(4),
        }
    )


@pytest.fixture(scope="session")
def numbers() -> tuple[np.ndarray, np.ndarray]:
    """`X` of shape (150, 6) and `y`, which follows features 1 and 4."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 6))
    return X, X[:, 4] + 2 * X[:, 1]


@pytest.fixture
def keyboard() -> Iterator[None]:
    """Has Ctrl-C interrupt, also where a shell started the tests in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
