"""scikit-learn's own checks of an estimator."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from ferrank import ForestRanker, ReliefRanker


def expected_to_fail(estimator: ForestRanker | ReliefRanker) -> dict[str, str]:
    """Bootstraps of weighted rows and of repeated rows are drawn from another number of rows."""
    if isinstance(estimator, ReliefRanker) or estimator.bootstrap is False:
        return {}
    why = "draws another bootstrap, as scikit-learn's forests"
    return {f"check_sample_weight_equivalence_on_{kind}_data": why for kind in ("dense", "sparse")}


@pytest.mark.filterwarnings("ignore::ferrank.IntegerTargetWarning")
@parametrize_with_checks(
    [
        ForestRanker(n_estimators=3),
        ForestRanker(n_estimators=2, ensemble="bagging", bootstrap=False, min_samples_leaf=1),
        ForestRanker(task="classification", n_estimators=3, ensemble="extra_trees", bootstrap=True),
        ForestRanker(n_estimators=3, keep_trees=True),
        ReliefRanker(n_neighbors=3),
        ReliefRanker(task="classification", n_neighbors=(1, 5), sigma=2.0, n_iterations=0.7),
    ],
    expected_failed_checks=expected_to_fail,
)
def test_checks(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)
