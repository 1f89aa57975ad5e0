"""scikit-learn's own checks of an estimator."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ferrank import ForestRanker


@pytest.mark.filterwarnings("ignore::ferrank.IntegerTargetWarning")
@parametrize_with_checks([ForestRanker(n_estimators=3)])
def test_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
