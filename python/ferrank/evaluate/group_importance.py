"""Importances of whole groups of features, whose columns are permuted together."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ferrank.data.parameters import count_of, generator_of, kind_of, names_of
from ferrank.errors import DataError, SettingError
from ferrank.ranking import Clusters

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["group_importance"]


def group_importance(
    model: Any,
    X: Any,
    y: Any,
    groups: Clusters | Mapping[str, Sequence[str]],
    *,
    scoring: str | Callable[[Any, Any, Any], float] | None = None,
    n_repeats: int = 10,
    random_state: int = 0,
) -> "pd.DataFrame":
    """Measure how much worse a model predicts where the columns of a group are permuted together.

    Where features say the same, permuting one of them changes little while the others are there. The rows of
    a group's columns are permuted alike, so that what they say of each other stays, and what they say of the
    target goes. Give rows that the model was not fitted to: with rows that it has seen,
    features look important that it has merely learned by heart.

    Parameters
    ----------
    model : estimator
        A fitted model of scikit-learn, or a :class:`ferrank.ForestRanker` with ``keep_trees=True``.
    X : pandas.DataFrame or ndarray of shape (n_rows, n_features)
        Rows to predict. The columns of an array are called ``x0``, ``x1`` …, as in rankings.
    y : array of shape (n_rows,) or (n_rows, n_targets)
        Their targets.
    groups : Clusters or mapping of str to sequence of str
        The clusters of a ranking, each called by its best feature; or names of groups, and their features.
    scoring : str or callable, optional
        As for :func:`sklearn.inspection.permutation_importance`; by default the model's own ``score``.
    n_repeats : int, default=10
        Number of permutations of each group.
    random_state : int, default=0
        Seed of the permutations, which are the same for all groups.

    Returns
    -------
    pandas.DataFrame
        A row for each group, the most important first: ``group``, ``features``, ``importance`` (by how much
        the score falls, on average) and ``monte_carlo_error`` (how far more permutations would move it).

    Raises
    ------
    SettingError
        A group has no features, or one that is not a column.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from ferrank.evaluate import group_importance
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> a, b = np.random.default_rng(0).normal(size=(2, 400))
    >>> X = pd.DataFrame({"a": a, "a_too": a + 0.01 * b, "b": b})
    >>> model = RandomForestRegressor(n_estimators=20, random_state=0).fit(X[:200], a[:200])
    >>> found = group_importance(model, X[200:], a[200:], {"both": ["a", "a_too"], "b": ["b"]})
    >>> found["group"].tolist(), bool(found["importance"][0] > 1)
    (['both', 'b'], True)
    """
    import pandas as pd
    from sklearn.metrics import check_scoring

    n_repeats, rng = count_of(n_repeats, "n_repeats", "repetitions", least=2), generator_of(random_state)
    named = _named(groups)
    if len(getattr(X, "shape", ())) != 2:
        raise DataError("X: no table; give a frame, or an array of shape (n_rows, n_features)")
    columns = list(X.columns) if hasattr(X, "columns") else [f"x{number}" for number in range(X.shape[1])]
    places = {name: _places(name, features, columns) for name, features in named.items()}
    try:
        score = check_scoring(model, scoring=scoring)
    except (TypeError, ValueError) as error:
        raise SettingError(f"scoring: {error}") from error
    whole = score(model, X, y)
    orders = [rng.permutation(len(X)) for _ in range(n_repeats)]
    losses = np.array(
        [[whole - score(model, _permuted(X, at, order), y) for order in orders] for at in places.values()]
    ).reshape(len(places), n_repeats)
    table = pd.DataFrame(
        {
            "group": list(named),
            "features": list(named.values()),
            "importance": losses.mean(axis=1),
            "monte_carlo_error": losses.std(axis=1, ddof=1) / np.sqrt(n_repeats),
        }
    )
    return table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def _named(groups: Clusters | Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    if isinstance(groups, Clusters):
        return {name: groups.members(name) for name in groups.representatives()}
    kind_of(groups, Mapping, "groups", "clusters or a mapping of names to features")
    return {name: names_of(features, f"groups: {name}") for name, features in groups.items()}


def _places(group: str, features: list[str], columns: list[Any]) -> list[int]:
    unknown = next((feature for feature in features if feature not in columns), None)
    if unknown is not None or not features:
        found = "has no features" if unknown is None else f"'{unknown}' is no column"
        raise SettingError(f"groups: group '{group}': {found}; name columns of X")
    return [columns.index(feature) for feature in features]


def _permuted(X: Any, columns: list[int], order: Any) -> Any:
    """Return ``X`` with these columns taken from the rows in ``order``."""
    changed = X.copy()
    if not hasattr(X, "columns"):
        changed[:, columns] = X[order][:, columns]
        return changed
    for column in columns:
        # The types of columns stay.
        changed.isetitem(column, X.iloc[order, column].set_axis(X.index))
    return changed
