"""The baseline rankers find what they can find, and refuse what they cannot finish."""

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import chi2_contingency
from sklearn.metrics import mutual_info_score

import ferrank
from ferrank.evaluate import (
    BASELINES,
    BinaryRelevance,
    ChiSquared,
    InformationGain,
    LabelPowerSet,
    LaplaceScore,
    MultiLabelLaplace,
    PairwiseLabels,
    RandomRanker,
    Sefr,
    Sfss,
    SvmRfe,
    synthesize,
)
from ferrank.evaluate.baselines import laplace, sefr, sfss, svm, transformed
from ferrank.evaluate.rows import read_rows


@pytest.fixture(scope="module")
def classes() -> pa.Table:
    return synthesize("combined", 600, n_features=40).to_arrow()


def test_information_gain_and_chi_squared_of_a_table_of_counts(mixed):
    table = mixed.set_column(4, "y", pa.array(np.where(np.array(mixed["y"]) > 0, "p", "n")))
    gain = ferrank.rank(table, "y", ranker=InformationGain())
    chi = ferrank.rank(table, "y", ranker=ChiSquared())
    colour, y = np.array(table["colour"].to_pylist()), np.array(table["y"].to_pylist())
    known = np.array([value is not None for value in table["colour"].to_pylist()])
    number = gain.features.index("colour")
    share = known.mean()
    counts = np.array(
        [[((colour == c) & (y == v)).sum() for v in "np"] for c in ("red", "green", "blue")], dtype=float
    )
    assert gain.importances()[number] == pytest.approx(
        share * mutual_info_score(colour[known], y[known]) / np.log(2)
    )
    assert chi.importances()[number] == pytest.approx(share * chi2_contingency(counts).statistic)
    assert gain.top(2) == chi.top(2) == ["a", "colour"]


@pytest.mark.parametrize("ranker", [InformationGain(), SvmRfe()])
def test_myopic_rankers_see_single_features_and_no_pairs(ranker, classes):
    importances = ferrank.rank(classes, "y", ranker=ranker).importances()
    order = np.argsort(-importances)
    assert len(set(order[:9]) & set(range(9))) >= 6
    place = np.argsort(order)
    pairs, noise = place[9:27], place[27:]
    assert pairs.mean() > noise.mean() - 5


def test_svm_rfe_keeps_the_categories_of_a_feature_together():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue"], 200)
    data = {"noise": rng.normal(size=200), "colour": colour, "y": np.where(colour == "red", "p", "n")}
    assert ferrank.rank(data, "y", ranker=SvmRfe()).top(1) == ["colour"]
    assert sorted(ferrank.rank(data, "y", ranker=SvmRfe(step=0.5)).importances()) == [0, 1]


def test_laplace_scores_follow_the_targets_and_the_unlabelled_rows():
    rng = np.random.default_rng(0)
    a, b, c = rng.random((3, 300))
    y = np.where(rng.random(300) < 0.5, 2 * a + 0.5 * b, np.nan)
    data = {"a": a, "b": b, "c": c, "constant": np.ones(300), "y": y}
    ranking = ferrank.rank(data, "y", ranker=LaplaceScore())
    assert ranking.top(3) == ["a", "b", "c"] or ranking.top(1) == ["a"]
    assert ranking.importances()[3] == ranking.importances().min()


def nearest(apart, n_neighbors):
    """Return which pairs are joined: one of the two is among the nearest of the other."""
    joined = np.zeros(apart.shape, dtype=bool)
    for row in range(len(apart)):
        others = sorted((apart[row, other], other) for other in range(len(apart)) if other != row)
        for _, other in others[:n_neighbors]:
            joined[row, other] = joined[other, row] = True
    return joined


def laplacian(weights):
    return np.diag(weights.sum(axis=1)) - weights


@pytest.mark.parametrize("n_targets", [1, 2, 3])
def test_laplace_scores_of_several_targets_are_those_of_a_plain_loop(n_targets):
    rng = np.random.default_rng(8)
    n, k, C = 40, 4, 3.0
    X = rng.random((n, 3))
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    targets = [X[:, 0] * 5 + rng.random(n), X[:, 1] * 0.1, rng.choice(["u", "v", "w"], n)][:n_targets]
    known = rng.random(n) < 0.6
    numbers = [(t - t[known].min()) / np.ptp(t[known]) if t.dtype.kind == "f" else None for t in targets]
    weights = np.zeros((n, n))
    by_features = ((X[:, None] - X[None]) ** 2).mean(axis=2)
    by_target = np.full((n, n), np.inf)
    for i in np.flatnonzero(known):
        for j in np.flatnonzero(known):
            apart = [
                float(t[i] != t[j]) if scaled is None else (scaled[i] - scaled[j]) ** 2
                for t, scaled in zip(targets, numbers, strict=True)
            ]
            by_target[i, j] = np.mean(apart)
    near = nearest(by_features, k)
    near_known = np.zeros((n, n), dtype=bool)
    near_known[np.ix_(known, known)] = nearest(by_target[np.ix_(known, known)], k)
    for i in range(n):
        for j in range(n):
            if known[i] and known[j]:
                weights[i, j] = C * np.exp(-by_target[i, j]) if near_known[i, j] else 0.0
            elif near[i, j]:
                weights[i, j] = np.exp(-by_features[i, j])
    degree = weights.sum(axis=1)
    scores = []
    for column in X.T:
        centred = column - (degree @ column) / degree.sum()
        scores.append((centred @ laplacian(weights) @ centred) / (centred @ (degree * centred)))
    names = [f"t{number}" for number in range(n_targets)]
    data = dict(zip("abc", X.T, strict=True))
    data |= {name: pa.array(t.tolist(), mask=~known) for name, t in zip(names, targets, strict=True)}
    task = "regression" if n_targets == 1 else "multi-target"
    found = ferrank.rank(data, names, task=task, ranker=LaplaceScore(n_neighbors=k, C=C)).importances()
    np.testing.assert_allclose(found, max(scores) + min(scores) - np.array(scores), atol=1e-12)


def test_laplace_scores_of_hierarchies_count_labels_above_and_weights():
    rng = np.random.default_rng(9)
    n, k, decay = 40, 4, 0.5
    X = rng.random((n, 3))
    X = (X - X.min(axis=0)) / np.ptp(X, axis=0)
    paths = ["p/q/r" if a > 0.7 else "p/q" if a > 0.4 else "s" for a in X[:, 0]]
    known = rng.random(n) < 0.7
    above = {"p/q/r": {"p/q/r", "p/q", "p"}, "p/q": {"p/q", "p"}, "s": {"s"}}
    closed = [above[path] for path in paths]
    weight = {name: decay ** name.count("/") for labels in closed for name in labels}
    alike, apart = np.zeros((n, n)), np.zeros((n, n))
    by_features = ((X[:, None] - X[None]) ** 2).mean(axis=2)
    near = nearest(by_features, k)
    for i in range(n):
        for j in range(n):
            if known[i] and known[j]:
                both, either = closed[i] & closed[j], closed[i] | closed[j]
                alike[i, j] = sum(weight[one] for one in both) / sum(weight[one] for one in either)
                apart[i, j] = 1 - alike[i, j]
            elif near[i, j]:
                alike[i, j] = np.exp(-by_features[i, j])
    spread = np.where(known, 0.0, alike.sum(axis=1))
    scores = np.array(
        [
            (x @ laplacian(alike) @ x) / (x @ laplacian(apart) @ x + (spread * (x - x.mean()) ** 2).sum())
            for x in X.T
        ]
    )
    labels = pa.array([[path] for path in paths], mask=~known)
    data = dict(zip("abc", X.T, strict=True)) | {"y": labels}
    ranker = MultiLabelLaplace(n_neighbors=k, hierarchy_decay=decay)
    found = ferrank.rank(data, "y", ranker=ranker)
    np.testing.assert_allclose(found.importances(), scores.max() + scores.min() - scores, atol=1e-12)
    assert found.task == "hierarchical"
    # The same by the estimator, with the edges given.
    edges = {"p": None, "p/q": ["p"], "p/q/r": ["p/q"], "s": None}
    fitted = MultiLabelLaplace(hierarchy=edges, n_neighbors=k, hierarchy_decay=decay)
    fitted.fit(X, [path if one else None for path, one in zip(labels.to_pylist(), known, strict=True)])
    np.testing.assert_allclose(fitted.feature_importances_, found.importances(), atol=1e-12)


@pytest.mark.parametrize("ranker", [MultiLabelLaplace(), Sfss()])
def test_label_sets_with_unlabelled_rows(ranker):
    rng = np.random.default_rng(1)
    a, b, c, d = rng.random((4, 240))
    known = rng.random(240) < 0.7
    labels = {
        name: pa.array(values > 0.5, mask=~known) for name, values in {"p": a, "q": b, "r": a * b * 2}.items()
    }
    ranking = ferrank.rank({"c": c, "a": a, "d": d, "b": b, **labels}, list(labels), ranker=ranker)
    assert set(ranking.top(2)) == {"a", "b"}


def test_sefr_ranks_with_few_labels():
    rng = np.random.default_rng(2)
    X = rng.random((200, 6))
    y = [str(value > 0.5) if i % 4 == 0 else None for i, value in enumerate(X[:, 2])]
    data = dict(zip("abcdef", X.T, strict=True)) | {"y": y}
    first, second = (ferrank.rank(data, "y", ranker=Sefr(n_estimators=15)) for _ in range(2))
    assert first.top(1) == ["c"]
    assert (first.importances() == second.importances()).all()


def test_baselines_are_rankers_of_scikit_learn(numbers):
    X, y = numbers
    found = InformationGain(task="classification", n_features_to_select=2).fit(X, y > 0)
    assert found.transform(X).shape == (150, 2)
    assert found.result_.settings == {"ranker": "information_gain", "n_bins": 10}
    assert RandomRanker(random_state=5).fit(X, y).result_.settings == {"ranker": "random", "seed": 5}
    for name, ranker in BASELINES.items():
        assert ranker.name == name


@pytest.mark.parametrize(
    ("ranker", "limit", "module", "match"),
    [
        (
            LaplaceScore(),
            "_MOST_ROWS",
            laplace,
            "150 rows; laplace compares all pairs of rows, and takes at most 9",
        ),
        (
            MultiLabelLaplace(),
            "_MOST_IN_A_MATRIX",
            laplace,
            "150 rows; multilabel_laplace compares all pairs of rows",
        ),
        (Sfss(), "_MOST", sfss, "150 rows; sfss solves for as many unknowns"),
        (Sefr(), "_MOST_PREDICTIONS", sefr, "45,000 rows times features times trees; sefr predicts"),
        (
            LabelPowerSet(),
            "_MOST_CLASSES",
            transformed,
            "4 distinct sets of labels; label_power_set makes each a class, and takes at most 2; use "
            "binary_relevance, or a ForestRanker or ReliefRanker, which take label sets as they are",
        ),
        (
            PairwiseLabels(),
            "_MOST_PAIRS",
            transformed,
            "3 pairs of labels; pairwise_labels ranks for each, and takes at most 2; name fewer labels",
        ),
        (SvmRfe(), "_MOST_WORK", svm, "eliminating 6 features step by step takes 6 machines .* use step=0.1"),
    ],
)
def test_sizes_that_would_not_finish_are_refused(ranker, limit, module, match, numbers, monkeypatch):
    monkeypatch.setattr(module, limit, 2 if module is transformed else 9)
    X, y = numbers
    labels = np.column_stack([y > -1, y > 0, y > 1])
    y = {"classification": y > 0, "multi-label": labels, "regression": y}[ranker.tasks[0]]
    with pytest.raises(ferrank.DataError, match=match):
        ranker.fit(X, y)


@pytest.mark.parametrize(
    ("ranker", "target", "match"),
    [
        (
            InformationGain(),
            "number",
            "information_gain ranks for classification and multi-label, not for regression",
        ),
        (LaplaceScore(), "word", "laplace ranks for regression and multi-target, not for classification"),
        (InformationGain(), "gaps", "1 of 4 rows lack a target, which information_gain cannot use"),
        (Sefr(), "nothing", "no row has its target; sefr needs some"),
        (InformationGain(n_bins=1), "word", "n_bins: 1 is not a number of bins that tell"),
        (SvmRfe(C=0), "word", "C: 0 is not in"),
        (LaplaceScore(n_neighbors=0), "number", "n_neighbors: 0 is not a number of neighbors; use 1 or more"),
        (Sfss(gamma=-1), "labels", "gamma: -1 must be above 0"),
        (LabelPowerSet(), "word", "label_power_set ranks for multi-label, not for classification"),
        (PairwiseLabels(), "number", "pairwise_labels ranks for multi-label, not for regression"),
        (
            BinaryRelevance(inner="laplace"),
            "labels",
            "inner: 'laplace' is neither a ranker nor one of forest",
        ),
        (
            BinaryRelevance(inner_settings={"k": 5}),
            "labels",
            "k: not a setting of ReliefRanker; did you mean n_neighbors",
        ),
        (
            BinaryRelevance(inner=ferrank.ReliefRanker(), inner_settings={"n_neighbors": 5}),
            "labels",
            "inner_settings: the inner ranker has its own",
        ),
        (
            BinaryRelevance(inner=LaplaceScore()),
            "labels",
            "laplace ranks for regression and multi-target, not for classification",
        ),
    ],
)
def test_wrong_targets_and_settings(ranker, target, match):
    targets = {
        "number": [0.1, 0.2, 0.3, 0.4],
        "word": ["p", "n", "p", "n"],
        "gaps": ["p", "n", None, "n"],
        "nothing": pa.array([None] * 4, pa.string()),
    }
    data = {"a": [1.0, 2.0, 3.0, 4.0], **({} if target == "labels" else {target: targets[target]})}
    names = [target]
    if target == "labels":
        data |= {"p": [True, False, True, True], "q": [True, False, False, True]}
        names = ["p", "q"]
    with pytest.raises(ferrank.FerrankError, match=match):
        ferrank.rank(data, names, ranker=ranker)


LABELS = ["p", "q", "r"]


def label_sets(**labels):
    rng = np.random.default_rng(5)
    a, b, c, noise = rng.normal(size=(4, 90))
    known = {"p": a + noise / 3 > 0, "q": b > 0.4, "r": a + b + noise > 0.5}
    return {"a": a, "b": b, "c": c, **(labels or known)}


def by_hand(data, inner, classifications):
    """Return the mean importances over plain classifications: pairs of rows and classes."""
    found = []
    for rows, classes in classifications:
        part = {name: np.asarray(data[name])[rows] for name in "abc"}
        found.append(ferrank.rank(part | {"y": list(classes)}, "y", ranker=inner).scores)
    return {name: np.mean([one[name].importance for one in found], axis=0) for name in found[0]}


def sets_as_classes(data, names):
    sets = ["".join(name for name in names if data[name][row]) for row in range(90)]
    yield np.arange(90), sets


def pairs(data, names):
    for number, one in enumerate(names):
        for other in names[number + 1 :]:
            rows = [row for row in range(90) if data[one][row] != data[other][row]]
            yield rows, [one if data[one][row] else other for row in rows]


def single_labels(data, names):
    for name in names:
        yield np.arange(90), np.where(data[name], "yes", "no")


@pytest.mark.parametrize(
    ("kind", "classifications"),
    [(LabelPowerSet, sets_as_classes), (PairwiseLabels, pairs), (BinaryRelevance, single_labels)],
)
@pytest.mark.parametrize(
    "inner",
    [
        ferrank.ReliefRanker(n_neighbors=[3, 7]),
        InformationGain(n_bins=4),
    ],
)
def test_label_sets_as_classes_are_ranked_as_by_a_plain_loop(kind, classifications, inner):
    data = label_sets()
    wanted = by_hand(data, inner, classifications(data, LABELS))
    ranking = ferrank.rank(data, LABELS, ranker=kind(inner=inner))
    assert list(ranking.scores) == list(wanted)
    for name, values in wanted.items():
        np.testing.assert_allclose(ranking.importances(name), values, atol=1e-12)
    assert ranking.settings == {"ranker": kind.name, "inner": inner._settings()}


def test_threads_of_the_inner_ranker():
    given = ferrank.ReliefRanker(n_jobs=3)
    assert [LabelPowerSet(inner=given, n_jobs=n).inner_ranker().n_jobs for n in (None, 1)] == [3, 1]
    assert given.n_jobs == 3
    assert LabelPowerSet(inner="chi_squared", n_jobs=1).inner_ranker().get_params()["n_bins"] == 10


def test_label_sets_as_classes_agree_where_they_must():
    kinds = LabelPowerSet, PairwiseLabels, BinaryRelevance

    def ranked(kind, data, names):
        own = kind(inner="relief", inner_settings={"n_neighbors": 5}, task="multi-label")
        return ferrank.rank(data, names, ranker=own).importances()

    exclusive = label_sets(p=label_sets()["p"], q=~label_sets()["p"])
    power, pairwise, single = (ranked(kind, exclusive, ["p", "q"]) for kind in kinds)
    np.testing.assert_allclose(power, pairwise, atol=1e-12)
    np.testing.assert_allclose(power, single, atol=1e-12)
    one = label_sets(p=label_sets()["p"])
    assert (ranked(LabelPowerSet, one, ["p"]) == ranked(BinaryRelevance, one, ["p"])).all()
    with pytest.raises(
        ferrank.DataError, match="compares two labels, and there is one; use binary_relevance"
    ):
        ranked(PairwiseLabels, one, ["p"])
    # A forest for each label is the same, but for its seeds.
    data = label_sets()
    settings = {"n_estimators": 500, "standard_errors": False}
    forest = ferrank.rank(data, LABELS, ranker="forest", per_target=True, **settings).importances()
    single = BinaryRelevance(inner="forest", inner_settings=settings)
    np.testing.assert_allclose(ferrank.rank(data, LABELS, ranker=single).importances(), forest, rtol=0.05)


def test_labels_that_all_rows_have_or_none_say_nothing():
    data = label_sets()
    more = data | {"always": np.ones(90, dtype=bool), "never": np.zeros(90, dtype=bool)}
    for kind in (LabelPowerSet, BinaryRelevance):
        few, many = (
            ferrank.rank(rows, names, ranker=kind(inner="information_gain")).importances()
            for rows, names in ((data, LABELS), (more, [*LABELS, "always", "never"]))
        )
        assert (few == many).all()
    assert (ferrank.rank(more, ["p", "always"], ranker=PairwiseLabels()).importances() == 0).all()


def test_values_of_labels_mean_what_they_mean_to_the_engine():
    data = {
        "a": [1.0, 2.0, 3.0],
        "word": ["no", "yes", "no"],
        "always": ["1", "1", "1"],
        "never": ["0", "0", "0"],
        "flag": [True, False, False],
        "three": ["x", "y", "z"],
    }
    dataset = ferrank.Dataset(data, ["word", "always", "never", "flag"], task="multi-label")
    found = read_rows(dataset.source(), dataset.roles()).label_indicators()
    assert found.T.tolist() == [[0, 1, 0], [1, 1, 1], [0, 0, 0], [1, 0, 0]]
    with pytest.raises(ferrank.DataError, match="the label 'three' has 3 values; a label has two"):
        ferrank.rank(data, ["word", "three"], ranker=LabelPowerSet(), task="multi-label")


@pytest.mark.parametrize("ranker", [ranker() for ranker in BASELINES.values()])
def test_awkward_data_do_not_crash(ranker):
    """One row, constant columns, all missing, a category for each row, great numbers."""
    n = 12
    features = {
        "constant": np.ones(n),
        "nothing": pa.array([None] * n, pa.float64()),
        "words": pa.array([None] * n, pa.string()),
        "id": [f"row {i}" for i in range(n)],
        "great": np.array([-1e308, 1e308] * (n // 2)),
    }
    targets = {
        "classification": {"y": ["p", "n"] * (n // 2)},
        "regression": {"y": np.arange(n) / 3},
        "multi-label": {"y": [True, False] * (n // 2), "z": [True] * n},
    }
    target = targets[ranker.tasks[0]]
    table = pa.table({**features, **target})
    ranking = ferrank.rank(table, list(target), ranker=ranker)
    assert np.isfinite(ranking.importances()).all()
    one = ferrank.rank(table.slice(0, 1), list(target), ranker=ranker)
    assert np.isfinite(one.importances()).all()
