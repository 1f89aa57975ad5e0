"""Semi-supervised ensemble feature ranking: SEFR (Bellal, Elghazel and Aussem 2012).

Bags of rows, labelled and unlabelled, on each of which a tree teaches itself the labels it is sure of. A
feature matters by how much more often the trees are wrong on rows out of their bag when it is permuted; for
an unlabelled row the label is what all trees predict for it. (Petković et al. 2023 §3 describes a filter on a
graph under this name; the cited paper is this.)
"""

from typing import Any

import numpy as np
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.tree import DecisionTreeClassifier

from ferrank.data.parameters import count_of, number_of
from ferrank.evaluate.baselines.base import Baseline, by_feature, refuse
from ferrank.evaluate.rows import Encoder, Rows
from ferrank.rankers.plan import seed_of

__all__ = ["Sefr"]

Array = np.ndarray[Any, Any]

_MOST_PREDICTIONS = 2_000_000_000
_UNLABELLED = -1


class Sefr(Baseline):
    """Rank for classification with unlabelled rows, by bags of trees that teach themselves.

    Parameters
    ----------
    task : str, optional
        Only "classification".
    n_estimators : int, default=50
        Trees.
    threshold : float, default=0.75
        How sure a tree must be of a label to teach itself; in [0, 1).
    random_state : int, default=0
        Seed of all random draws.
    n_features_to_select : int, float or None, default=None
        As in :class:`ferrank.ForestRanker`.

    Examples
    --------
    >>> import ferrank, numpy as np
    >>> a, b = np.random.default_rng(0).random((2, 100))
    >>> y = [None if i % 3 else str(v > 0.5) for i, v in enumerate(a)]
    >>> ferrank.rank({"a": a, "b": b, "y": y}, "y", ranker=Sefr(n_estimators=10)).top(1)
    ['a']
    """

    name = "sefr"
    tasks = ("classification",)
    semi_supervised = True

    def __init__(
        self,
        task: str | None = None,
        *,
        n_estimators: int = 50,
        threshold: float = 0.75,
        random_state: Any = 0,
        n_features_to_select: int | float | None = None,
    ) -> None:
        self.task = task
        self.n_estimators = n_estimators
        self.threshold = threshold
        self.random_state = random_state
        self.n_features_to_select = n_features_to_select

    def importances(self, rows: Rows) -> Array:
        """Return the importances, of shape (n_features,)."""
        count_of(self.n_estimators, "n_estimators", "trees", least=1)
        number_of(self.threshold, "threshold", "[0, 1)", lambda value: 0 <= value < 1)
        encoder = Encoder(rows)
        X = encoder.encode()
        n_features = encoder.owner.max(initial=-1) + 1
        refuse(
            rows,
            self.name,
            rows.n_rows * n_features * self.n_estimators,
            _MOST_PREDICTIONS,
            "rows times features times trees",
            "predicts each row once for each",
        )
        labels = np.where(rows.labelled(), rows.target_numbers()[:, 0], _UNLABELLED).astype(np.intp)
        rng = np.random.default_rng(seed_of(self.random_state))
        bags = [self._bag(labels, rng) for _ in range(self.n_estimators)]
        trees = [_grow(X[bag], labels[bag], self.threshold, int(rng.integers(2**31))) for bag in bags]
        votes = np.zeros((len(X), labels.max() + 1))
        for tree in trees:
            np.add.at(votes, (np.arange(len(X)), tree.predict(X)), 1)
        truth = np.where(labels == _UNLABELLED, votes.argmax(axis=1), labels)
        total = np.zeros(n_features)
        for tree, bag in zip(trees, bags, strict=True):
            out = np.setdiff1d(np.arange(len(X)), bag)
            if len(out) > 0:
                total += _increases(tree, X[out], truth[out], encoder.owner, rng)
        return total / len(trees)

    def _bag(self, labels: Array, rng: np.random.Generator) -> Array:
        """Draw as many labelled and unlabelled rows as there are, each among their own."""
        groups = [np.flatnonzero(labels != _UNLABELLED), np.flatnonzero(labels == _UNLABELLED)]
        return np.concatenate([rng.choice(group, len(group)) for group in groups if len(group)])


def _grow(X: Array, labels: Array, threshold: float, seed: int) -> Any:
    tree = DecisionTreeClassifier(max_features="sqrt", min_samples_leaf=2, random_state=seed)
    if (labels != _UNLABELLED).all():
        return tree.fit(X, labels)
    return SelfTrainingClassifier(tree, threshold=threshold).fit(X, labels)


def _increases(tree: Any, X: Array, truth: Array, owner: Array, rng: np.random.Generator) -> Array:
    """Return how much the share of errors grows when a feature's columns are permuted together."""
    error = (tree.predict(X) != truth).mean()
    inner = getattr(tree, "estimator_", tree)
    used = np.flatnonzero(by_feature(inner.feature_importances_, owner) > 0)
    increases = np.zeros(owner.max(initial=-1) + 1)
    for feature in used:
        columns = owner == feature
        permuted = X.copy()
        permuted[:, columns] = X[rng.permutation(len(X))][:, columns]
        increases[feature] = (tree.predict(permuted) != truth).mean() - error
    return increases
