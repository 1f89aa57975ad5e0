"""Error curves."""

from pathlib import Path

import joblib
import numpy as np
import pyarrow as pa
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import zero_one_loss
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold
from sklearn.neighbors import KNeighborsClassifier

import ferrank
from ferrank.evaluate import InformationGain, SvmRfe, curves, subset_sizes, synthesize
from reference import hierarchy
from reference.arff import domain, read_arff

DATA = Path(__file__).parent / "data"


@pytest.fixture(scope="module")
def combined() -> pa.Table:
    return synthesize("combined", 1_000, n_features=40, random_state=1).to_arrow()


def test_schedule_of_the_paper():
    sizes = subset_sizes(12_625)
    steps = np.diff(sizes)[:-1]
    assert (steps[sizes[:-2] <= 50] == 1).all()
    assert (steps[(sizes[:-2] > 50) & (sizes[:-2] <= 500)] == 5).all()
    assert (steps[sizes[:-2] > 500] == 12_625 // 20).all()
    assert (sizes[0], sizes[-1]) == (1, 12_625)
    assert subset_sizes(1).tolist() == subset_sizes(1, "exponential").tolist() == [1]


@pytest.mark.parametrize(
    ("schedule", "step", "match"),
    [
        ("cubic", None, "sizes: unknown schedule 'cubic'"),
        ("paper", 2, "step: the schedule of the paper has none"),
        ("exponential", 1, "step: 1 is too small for exponential; use 2"),
        ([0, 1], None, "sizes: must be some of 1 … 9"),
        ([], None, "sizes: must be some of 1 … 9"),
    ],
)
def test_wrong_sizes(schedule, step, match):
    with pytest.raises(ferrank.SettingError, match=match):
        subset_sizes(9, schedule, step)


def test_a_curve_is_the_error_of_a_model_for_each_subset():
    data = synthesize("single", 200, n_features=12, random_state=3)
    importances = np.arange(12.0)
    found = curves(data.to_arrow(), "y", {"given": importances}, folds=4, n_random=0, random_state=7)
    order = np.arange(12)[::-1]
    assert found.sizes.tolist() == list(range(1, 13))
    assert set(found.forward) == {"given"}
    # With all features both curves are the same models.
    assert (found.forward["given"][:, -1] == found.reverse["given"][:, -1]).all()
    model = KNeighborsClassifier(10, algorithm="brute")
    X = data.X.astype(float)
    splits = RepeatedStratifiedKFold(n_splits=4, n_repeats=1, random_state=7).split(X, data.y)
    for number, (train, test) in enumerate(splits):
        for size in (1, 5, 12):
            for curve, some in ((found.forward, order[:size]), (found.reverse, order[::-1][:size])):
                chosen = np.sort(some)
                predicted = model.fit(X[train][:, chosen], data.y[train]).predict(X[test][:, chosen])
                error = zero_one_loss(data.y[test], predicted)
                assert curve["given"][number, size - 1] == pytest.approx(error)


@pytest.mark.slow
def test_rankers_that_see_pairs_are_told_from_those_that_do_not(combined):
    rankers = {
        "relief": ferrank.ReliefRanker(),
        "forest": ferrank.ForestRanker(max_features=7),
        "gain": InformationGain(),
        "svm_rfe": SvmRfe(step=0.2),
    }
    found = curves(combined, "y", rankers, folds=3, sizes=[1, 4, 12, 20, 40], n_random=3)
    areas = {name: area.gain for name, area in found.areas().items()}
    assert min(areas["relief"], areas["forest"]) > max(areas["gain"], areas["svm_rfe"]) + 0.03
    assert min(areas["gain"], areas["svm_rfe"]) > areas["random"] == 0
    assert found.forward["relief"].mean(axis=0)[2] < found.forward["gain"].mean(axis=0)[2] - 0.05
    assert found.stability["relief"].canberra.mean() < 0.6
    assert found.stability["random"].canberra.mean() > 0.8


def test_every_score_has_its_curve_and_given_rankings_no_stability(mixed):
    forest = ferrank.ForestRanker(n_estimators=5, scores=("genie3", "symbolic"))
    given = ferrank.rank(mixed, "y", ranker=forest)
    found = curves(mixed, "y", {"forest": forest, "given": given}, folds=2)
    given_names = ["given:genie3", "given:symbolic"]
    assert list(found.forward) == ["forest:genie3", "forest:symbolic", *given_names, "random"]
    assert set(found.stability) == {"forest:genie3", "forest:symbolic", "random"}
    assert found.measure == "RRMSE"
    frame = found.to_pandas()
    assert len(frame) == 5 * 2 * 4
    assert frame["mean"].notna().all()


@pytest.mark.slow
def test_same_curves_in_processes_and_on_dask(mixed):
    forest = {"forest": ferrank.ForestRanker(n_estimators=5)}
    alone = curves(mixed, "y", forest, folds=2)
    both = curves(mixed, "y", forest, folds=2, n_jobs=2)
    assert (both.forward["forest"] == alone.forward["forest"]).all()
    assert (both.forward["random"] == alone.forward["random"]).all()
    distributed = pytest.importorskip("distributed")
    with (
        distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"),
        joblib.parallel_config(backend="dask"),
    ):
        there = curves(mixed, "y", forest, folds=2)
    assert (there.reverse["forest"] == alone.reverse["forest"]).all()


@pytest.mark.slow
def test_models_tasks_and_measures():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 90))
    word = np.where(a > 0, "p", "n")
    forest = {"forest": ferrank.ForestRanker(n_estimators=5)}
    data = {"a": a, "b": b, "c": rng.choice(["u", "v"], 90)}
    numbers = curves(data | {"y": a, "z": b}, ["y", "z"], forest, model="svm", folds=2, n_random=1)
    assert (numbers.measure, numbers.forward["forest"].shape) == ("RRMSE", (2, 3))
    labels = curves(data | {"y": a > 0, "z": b > 0}, ["y", "z"], forest, model="svm", folds=2, n_random=1)
    assert labels.measure == "Hamming loss"
    near = curves(data | {"y": a > 0, "z": b > 0}, ["y", "z"], forest, folds=2, n_random=1)
    assert near.forward["forest"][:, 1].mean() < min(0.25, labels.forward["forest"][:, 0].mean())
    own = curves(data | {"y": word}, "y", forest, model=LogisticRegression(), scoring=zero_one_loss, folds=2)
    assert own.measure == "zero_one_loss"


@pytest.mark.slow
def test_labels_of_a_hierarchy_are_predicted_with_those_above_them():
    path = DATA / "eisen_GO-part.arff"
    table, parents = read_arff(path), hierarchy.of_domain(domain(path))
    sets = [hierarchy.closed(labels, parents) for labels in table["class"].to_pylist()]
    shares = hierarchy.shares(sets, parents, 0.5)
    has = np.array([[name in labels for name in shares] for labels in sets], dtype=int)
    X = table.drop_columns("class").to_pandas().to_numpy()
    given = {"given": np.arange(X.shape[1])[::-1]}
    asked = {"hierarchy_decay": 0.5, "folds": 2, "sizes": [3, 6], "n_random": 0}
    found = curves(path, "class", given, **asked)
    assert found.measure == "weighted Hamming loss"
    for split, (train, test) in enumerate(RepeatedKFold(n_splits=2, n_repeats=1, random_state=0).split(X)):
        places = X - np.nanmin(X[train], axis=0)
        places /= np.nanmax(places[train], axis=0)
        places = np.where(np.isnan(places), np.nanmean(places[train], axis=0), places)
        for number, size in enumerate([3, 6]):
            model = KNeighborsClassifier(10, algorithm="brute").fit(places[train, :size], has[train])
            wrong = model.predict(places[test, :size]) != has[test]
            error = (wrong * np.array(list(shares.values()))).sum(axis=1).mean()
            assert found.forward["given"][split, number] == pytest.approx(error, rel=1e-9)

    rows = {"a": np.arange(40.0), "b": [1.0, 0.0] * 20, "y": [["p"]] * 20 + [["q"]] * 20}
    forest = {"forest": ferrank.ForestRanker(n_estimators=5)}
    ours = curves(rows, "y", forest, hierarchy={"p": None, "q": None}, folds=2)
    assert ours.areas()["forest"].gain > 0.1
    # A label that no training row has.
    rare = rows | {"y": [*rows["y"][:-1], ["q", "r"]]}
    parents = {"p": None, "q": None, "r": None}
    found = curves(rare, "y", {"a": [1.0, 0.0]}, hierarchy=parents, model="svm", folds=2, n_random=0)
    assert (found.forward["a"] < 0.7).all()
    with pytest.raises(ferrank.SettingError, match="no row of table has a label"):
        curves(rows | {"y": [[]] * 40}, "y", forest, task="hierarchical", folds=2)
    with pytest.raises(ferrank.SettingError, match="the task unsupervised has none"):
        curves(rows, drop=["y"], rankers=forest, task="unsupervised")


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"target": "z"}, "no column 'z' for the target"),
        ({"model": "tree"}, "model: unknown model 'tree'; use one of knn, svm"),
        ({"model": LinearRegression()}, "does not predict classes"),
        ({"folds": 1}, "folds: 1 is not a number of folds; use 2 or more"),
        ({"folds": 8}, "no class has 8 rows, one for each fold"),
        ({"n_random": -1}, "n_random: -1"),
        ({"rankers": {}, "n_random": 0}, "nothing would be drawn"),
        ({"rankers": {"random": [1.0, 2.0, 3.0]}}, "'random' stands for the expected curve"),
        ({"rankers": {"given": [1.0, 2.0]}}, "given: importances of shape .2,.; table has 3 features"),
        ({"target": ["y", "a"]}, "curves are for targets of one kind"),
        ({"target": "one"}, "the target 'one' has a single class"),
        ({"target": "gaps"}, "1 of 8 rows lack a target, which curves cannot use"),
    ],
)
def test_what_cannot_be_drawn_is_refused(settings, match):
    data = {
        "a": np.arange(8.0),
        "y": ["p", "n"] * 4,
        "one": ["p"] * 8,
        "gaps": ["p", "n", "p", "n", "p", "n", "p", None],
    }
    arguments = {
        "target": "y",
        "rankers": {"forest": ferrank.ForestRanker(n_estimators=1)},
        "folds": 2,
    } | settings
    with pytest.raises(ferrank.FerrankError, match=match):
        curves(data, **arguments)


def test_infinity_is_refused_and_missing_values_are_not():
    data = {"a": [1.0, np.nan, 3.0, 4.0], "b": [None, "u", "v", "u"], "y": [1.0, 2.0, 3.0, 5.0]}
    found = curves(data, "y", {"forest": ferrank.ForestRanker(n_estimators=2)}, folds=2, n_random=1)
    assert np.isfinite(found.forward["forest"]).all()
    with pytest.raises(ferrank.DataError, match="column 'a' holds infinity"):
        curves(data | {"a": [1.0, np.inf, 3.0, 4.0]}, "y", folds=2)


def test_plot_has_a_panel_for_each_question(mixed, tmp_path):
    found = curves(mixed, "y", {"forest": ferrank.ForestRanker(n_estimators=2)}, folds=2, n_random=1)
    figure = found.plot(tmp_path / "curves.png")
    assert len(figure.axes) == 3
    assert (tmp_path / "curves.png").stat().st_size > 1000
    assert "forest" in found.to_text()
