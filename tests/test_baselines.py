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
        (LaplaceScore(), "word", "laplace ranks for regression, not for classification"),
        (InformationGain(), "gaps", "1 of 4 rows lack a target, which information_gain cannot use"),
        (Sefr(), "nothing", "no row has its target; sefr needs some"),
        (InformationGain(n_bins=1), "word", "n_bins: 1 cannot tell values apart"),
        (SvmRfe(C=0), "word", "C: 0 must be above 0"),
        (LaplaceScore(n_neighbors=0), "number", "n_neighbors: 0 must be 1 or more"),
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
            "inner_settings: 'k' is not a setting of relief; it has task",
        ),
        (
            BinaryRelevance(inner=ferrank.ReliefRanker(), inner_settings={"n_neighbors": 5}),
            "labels",
            "inner_settings: the inner ranker has its own",
        ),
        (
            BinaryRelevance(inner=LaplaceScore()),
            "labels",
            "laplace ranks for regression, not for classification",
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
