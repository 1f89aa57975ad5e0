"""Rankers that are compared by `quality.py`, each on one thread: ours by their settings, and peers.

Peers have the settings that they have without being told, BorutaPy those of its own example. Nominal features
are one-hot for scikit-learn's trees (their parts' impurities are summed, and permuted together), categories
for LightGBM, XGBoost, mutual information and MultiSURF, and numbers for BorutaPy and IPSS, which select
columns; knockoffs are for numeric features only. Mutual information, BorutaPy, IPSS and knockoffs take no
missing values and get medians. Our rankers use the groups of rows (subjects); the peers do not support
groups.

Of the rules that select, BorutaPy, IPSS and knockoffs are the packages of these names. Altmann's rule is
written here, since no package has it for Python, over our forest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from kinds import Simulated

if TYPE_CHECKING:
    from ferrank import Ranking

Array = np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What an arm says about the features of a table."""

    importances: Array  # features
    selected: Array | None = None  # features, bool


Rank = Callable[[Simulated, int, float], Outcome]
Select = Callable[["Ranking", float], Array]


@dataclass(frozen=True)
class Arm:
    rank: Rank  # of a table, a seed and, for arms that select, the rate of false discoveries
    package: str  # as it is imported
    selects: bool = False
    most_rows: float = np.inf  # it takes all pairs of rows, or hundreds of forests
    most_features: float = np.inf  # it takes a matrix of all pairs of features
    takes_nominal: bool = True

    @property
    def is_installed(self) -> bool:
        return find_spec(self.package) is not None

    def reason_against(self, data: Simulated) -> str:
        """Return why the arm is not for this kind of data, or nothing."""
        n_rows, n_features = data.X.shape
        if n_rows > self.most_rows:
            return f"left out: more than {self.most_rows:,} rows"
        if n_features > self.most_features:
            return f"left out: more than {self.most_features:,} features"
        return "left out: nominal features" if data.nominal.any() and not self.takes_nominal else ""


def table_with_groups(data: Simulated) -> tuple[pa.Table, dict[str, str]]:
    """Return the table and the roles of its columns beside the target `y`."""
    if data.groups is None:
        return data.table(), {}
    return data.table().append_column("subject", pa.array(data.groups)), {"groups": "subject"}


def relevant(result: Ranking, fdr: float) -> Array:
    """Which features the verdicts of a ranking with p-values call relevant."""
    return np.isin(result.features, result.relevant(fdr))


def ours(ranker: str, select: Select | None = None, **settings: object) -> Arm:
    """Return an arm of ferrank.

    `ranker` is the name of a class. `select` takes the `Ranking` and a rate of false discoveries, and returns
    which features it calls relevant.
    """

    def rank(data: Simulated, seed: int, fdr: float) -> Outcome:
        import ferrank as fr

        made = getattr(fr, ranker)(random_state=seed, n_jobs=1, **settings)
        table, roles = table_with_groups(data)
        result = fr.rank(table, "y", ranker=made, **roles)
        return Outcome(result.importances(), select and select(result, fdr))

    return Arm(rank, "ferrank", selects=select is not None)


OURS = {
    "ferrank": ours("JointRanker", relevant),
    "ferrank forest with shadows": ours(
        "ForestRanker",
        relevant,
        scores=("permutation", "mdi_oob", "genie3"),
        n_estimators=600,
        shadows=True,
    ),
    "ferrank forest": ours("ForestRanker"),
    "ferrank permutation": ours(
        "ForestRanker", scores=("permutation",), n_estimators=300, max_features=1 / 3
    ),
    "ferrank Relief k=50": ours("ReliefRanker", n_neighbors=50),
}


def peer(package: str, **about: object) -> Callable[[Callable[..., object]], Arm]:
    """Make an arm of a function from a table and a seed to importances.

    One that selects takes the rate of false discoveries, too, and returns an `Outcome`.
    """

    def arm(rank: Callable[..., object]) -> Arm:
        def outcome(data: Simulated, seed: int, fdr: float) -> Outcome:
            found = rank(data, seed, fdr) if about.get("selects") else rank(data, seed)
            return found if isinstance(found, Outcome) else Outcome(np.asarray(found))

        return Arm(outcome, package, **about)

    return arm


def sklearn_trees(data: Simulated, name: str, seed: int, **settings: object):
    from sklearn import ensemble

    suffix = "Classifier" if data.task == "classification" else "Regressor"
    return getattr(ensemble, name + suffix)(random_state=seed, n_jobs=1, **settings)


def one_hot(data: Simulated):
    from sklearn.compose import ColumnTransformer
    from sklearn.preprocessing import OneHotEncoder

    nominal = np.flatnonzero(data.nominal)
    return ColumnTransformer(
        [
            ("nominal", OneHotEncoder(handle_unknown="ignore", sparse_output=False), nominal),
            ("numeric", "passthrough", np.flatnonzero(~data.nominal)),
        ]
    )


def impurity(name: str) -> Arm:
    @peer("sklearn")
    def arm(data: Simulated, seed: int) -> Array:
        encoder = one_hot(data)
        trees = sklearn_trees(data, name, seed).fit(encoder.fit_transform(data.X), data.y)
        nominal, numeric = np.flatnonzero(data.nominal), np.flatnonzero(~data.nominal)
        parts = [len(np.unique(data.X[:, j])) for j in nominal]
        feature = np.concatenate([np.repeat(nominal, parts), numeric])
        return np.bincount(feature, trees.feature_importances_, minlength=len(data.nominal))

    return arm


@peer("sklearn")
def permutation(data: Simulated, seed: int) -> Array:
    """On a third of the rows, that the forest has not seen; five permutations, the model's own score."""
    from sklearn.inspection import permutation_importance
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline

    classes = data.y if data.task == "classification" else None
    X, X_test, y, y_test = train_test_split(
        data.X, data.y, test_size=1 / 3, random_state=seed, stratify=classes
    )
    model = make_pipeline(one_hot(data), sklearn_trees(data, "RandomForest", seed)).fit(X, y)
    return permutation_importance(model, X_test, y_test, random_state=seed, n_jobs=1).importances_mean


def without_gaps(data: Simulated) -> Array:
    return np.where(np.isnan(data.X), np.nanmedian(data.X, axis=0), data.X)


@peer("sklearn")
def mutual_information(data: Simulated, seed: int) -> Array:
    from sklearn import feature_selection

    suffix = "classif" if data.task == "classification" else "regression"
    measure = getattr(feature_selection, f"mutual_info_{suffix}")
    X = without_gaps(data)
    return measure(X, data.y, discrete_features=data.nominal, random_state=seed, n_jobs=1)


def lightgbm(data: Simulated, seed: int):
    import lightgbm

    settings = {"verbosity": -1, "num_threads": 1, "seed": seed}
    settings["objective"] = "binary" if data.task == "classification" else "regression"
    rows = lightgbm.Dataset(data.X, data.y, categorical_feature=np.flatnonzero(data.nominal).tolist())
    return lightgbm.train(settings, rows, num_boost_round=100)


@peer("lightgbm")
def lightgbm_gain(data: Simulated, seed: int) -> Array:
    return lightgbm(data, seed).feature_importance("gain")


@peer("lightgbm")
def lightgbm_shap(data: Simulated, seed: int) -> Array:
    return np.abs(lightgbm(data, seed).predict(data.X, pred_contrib=True)[:, :-1]).mean(axis=0)


def xgboost(data: Simulated, seed: int):
    import xgboost

    kinds = np.where(data.nominal, "c", "q").tolist()
    rows = xgboost.DMatrix(data.X, data.y, feature_types=kinds, enable_categorical=True, nthread=1)
    settings = {"seed": seed, "nthread": 1}
    settings["objective"] = "binary:logistic" if data.task == "classification" else "reg:squarederror"
    return xgboost.train(settings, rows, num_boost_round=100), rows


@peer("xgboost")
def xgboost_gain(data: Simulated, seed: int) -> Array:
    model, _ = xgboost(data, seed)
    gains = model.get_score(importance_type="total_gain")
    return np.array([gains.get(f"f{j}", 0.0) for j in range(len(data.nominal))])


@peer("xgboost")
def xgboost_shap(data: Simulated, seed: int) -> Array:
    model, rows = xgboost(data, seed)
    return np.abs(model.predict(rows, pred_contribs=True)[:, :-1]).mean(axis=0)


@peer("skrebate", most_rows=2_000)
def multisurf(data: Simulated, _seed: int) -> Array:
    from skrebate import MultiSURF

    nominal = np.flatnonzero(data.nominal).tolist()
    return MultiSURF(categorical_features=nominal, n_jobs=1).fit(data.X, data.y).feature_importances_


@peer("boruta", selects=True, most_rows=2_000)
def boruta(data: Simulated, seed: int, _fdr: float) -> Outcome:
    """At most 100 iterations, and its default level of 0.05 for the test of a single feature."""
    from boruta import BorutaPy

    balanced = {"class_weight": "balanced"} if data.task == "classification" else {}
    trees = sklearn_trees(data, "RandomForest", seed, max_depth=5, **balanced)
    found = BorutaPy(trees, n_estimators="auto", random_state=seed).fit(without_gaps(data), data.y)
    return Outcome(-found.ranking_, found.support_)


N_PERMUTATIONS = 50


@peer("ferrank", selects=True, most_rows=2_000, most_features=1_000)
def altmann(data: Simulated, seed: int, fdr: float) -> Outcome:
    """Importances of our default forest beside those for permuted targets (Altmann et al. 2010).

    The p-values are of a gamma law with the mean and variance of each feature's permuted importances: counts
    of 50 permutations are not below 1/51, with which 0.1 cannot be met for seven of 40 features.
    """
    from scipy import stats

    import ferrank as fr

    def importances(y: Array, number: int) -> Array:
        forest = fr.ForestRanker(random_state=number, n_jobs=1)
        return fr.rank(replace(data, y=y).table(), "y", ranker=forest).importances()

    rng = np.random.default_rng(seed)
    seen = importances(data.y, seed)
    permuted = np.stack([importances(rng.permutation(data.y), seed + 1 + i) for i in range(N_PERMUTATIONS)])
    mean, variance = permuted.mean(axis=0), permuted.var(axis=0, ddof=1)
    p_values = stats.gamma.sf(seen, mean**2 / variance, scale=variance / mean)
    return Outcome(-p_values, stats.false_discovery_control(p_values) <= fdr)


@peer("ipss", selects=True, most_rows=2_000)
def ipss(data: Simulated, seed: int, fdr: float) -> Outcome:
    """Over gradient boosting, its default."""
    from ipss.main import ipss as select

    np.random.seed(seed)
    found = select(without_gaps(data), data.y, target_fdr=fdr)
    columns = range(len(data.nominal))
    efp = np.array([found["efp_scores"][j] for j in columns], dtype=float)
    return Outcome(-efp, np.isin(columns, found["selected_features"]))


@peer("knockpy", selects=True, most_rows=2_000, most_features=1_000, takes_nominal=False)
def knockoffs(data: Simulated, seed: int, fdr: float) -> Outcome:
    """Second-order Gaussian knockoffs, differences of the coefficients of a linear lasso.

    With the threshold that holds the rate (knockoff+), 0.1 cannot be met with fewer than ten discoveries.
    """
    from knockpy import KnockoffFilter

    np.random.seed(seed)
    X = without_gaps(data)
    made = KnockoffFilter(fstat="lcd", ksampler="gaussian", fstat_kwargs={"y_dist": "gaussian"})
    selected = made.forward(X=(X - X.mean(axis=0)) / X.std(axis=0), y=data.y - data.y.mean(), fdr=fdr)
    return Outcome(made.W, np.asarray(selected, dtype=bool))


PEERS = {
    "scikit-learn forest": impurity("RandomForest"),
    "scikit-learn permutation": permutation,
    "scikit-learn ExtraTrees": impurity("ExtraTrees"),
    "mutual information": mutual_information,
    "LightGBM gain": lightgbm_gain,
    "LightGBM SHAP": lightgbm_shap,
    "XGBoost gain": xgboost_gain,
    "XGBoost SHAP": xgboost_shap,
    "MultiSURF": multisurf,
    "BorutaPy": boruta,
    "Altmann": altmann,
    "IPSS": ipss,
    "knockoffs": knockoffs,
}

ARMS = OURS | PEERS
