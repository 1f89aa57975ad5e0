"""scikit-learn's own checks of an estimator."""

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

from ferrank import AssociationRanker, ForestRanker, JointRanker, ReliefRanker, UnivariateRanker


def expected_to_fail(estimator: ForestRanker | ReliefRanker) -> dict[str, str]:
    """Bootstraps of weighted and of repeated rows differ, and the copies of a row are its neighbors."""
    if isinstance(estimator, ReliefRanker):
        why = "finds copies among the neighbors of a row, as scikit-learn's neighbors"
    elif estimator.bootstrap is False:
        return {}
    else:
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


@pytest.mark.parametrize(
    "kind", [ForestRanker, ReliefRanker, AssociationRanker, UnivariateRanker, JointRanker]
)
@pytest.mark.parametrize("name", ["result_", "ranking_", "feature_importances_"])
def test_what_fit_learns_is_not_known_before(kind: type[Any], name: str) -> None:
    ranker = kind()
    assert not hasattr(ranker, name)
    with pytest.raises(NotFittedError, match=f"^{name}: this {kind.__name__} is not fitted yet; call fit"):
        getattr(ranker, name)
    with pytest.raises(AttributeError, match=f"^'{kind.__name__}' object has no attribute 'other'"):
        _ = ranker.other
