"""Tests of association: the statistics and p-values of SciPy, in every task and container."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from scipy import stats

import ferrank as fr

N_ROWS = 300


def ranked(X: Any, y: Any, **settings: Any) -> fr.Ranking:
    return fr.rank(X, y, ranker="association", **settings)


def mixed(seed: int = 0) -> pd.DataFrame:
    """Return numbers with ties, categories of two sizes, and a column with gaps that depend on nothing."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "number": rng.normal(size=N_ROWS),
            "ties": rng.integers(4, size=N_ROWS).astype(float),
            "few": pd.Categorical(rng.choice(list("abc"), size=N_ROWS)),
            "many": pd.Categorical(rng.choice([f"c{i}" for i in range(40)], size=N_ROWS)),
            "gaps": np.where(rng.random(N_ROWS) < 0.2, np.nan, rng.normal(size=N_ROWS)),
        }
    )


def p_values(ranking: fr.Ranking) -> dict[str, float]:
    return dict(zip(ranking.features, ranking.p_value, strict=True))


def close(found: float, expected: float, factor: float = 1.15) -> bool:
    """Return whether two p-values agree; laws with the same two moments part slowly in their tails."""
    return abs(np.log(found / expected)) < np.log(factor) + 0.03 * abs(np.log(expected))


@pytest.mark.parametrize("seed", range(5))
def test_numbers_are_tested_as_by_spearman_kruskal_and_wallis(seed: int) -> None:
    frame = mixed(seed)
    y = np.random.default_rng(seed + 100).normal(size=N_ROWS) + 0.1 * frame["number"] + 0.15 * frame["ties"]
    p = p_values(ranked(frame, y))
    for name in ("number", "ties"):
        assert close(p[name], stats.spearmanr(frame[name], y).pvalue), name
    groups = [y[frame["few"] == value] for value in "abc"]
    assert close(p["few"], stats.kruskal(*groups).pvalue)
    # With seven rows a category the chi-squared law is not exact: 10,000 permutations.
    codes = frame["many"].cat.codes.to_numpy()
    members = (codes == np.arange(codes.max() + 1)[:, None]) / np.sqrt(np.bincount(codes))[:, None]
    ranks = stats.rankdata(y) - (N_ROWS + 1) / 2
    rng = np.random.default_rng(seed)
    between = [((members @ rng.permutation(ranks)) ** 2).sum() for _ in range(10_000)]
    assert abs(p["many"] - np.mean(between >= ((members @ ranks) ** 2).sum())) < 0.015


@pytest.mark.parametrize("seed", range(5))
def test_classes_are_tested_as_by_kruskal_wallis_and_pearson(seed: int) -> None:
    frame = mixed(seed)
    rng = np.random.default_rng(seed + 100)
    y = np.where(rng.random(N_ROWS) < 0.2, frame["few"], rng.choice(list("abc"), size=N_ROWS))
    p = p_values(ranked(frame, y))
    for name in ("number", "ties"):
        assert close(p[name], stats.kruskal(*(frame[name][y == value] for value in "abc")).pvalue), name
    for name in ("few", "many"):
        table = pd.crosstab(frame[name], y)
        assert close(p[name], stats.chi2_contingency(table, correction=False).pvalue, 1.3), name


def columns_of(frame: pd.DataFrame) -> dict[str, Any]:
    """Return the columns of features in linear models: ranks of distinct values, or categories."""
    columns = {}
    for name, values in frame.items():
        if isinstance(values.dtype, pd.CategoricalDtype):
            codes = values.cat.codes.to_numpy()
            columns[str(name)] = (codes[:, None] == np.arange(1, codes.max() + 1)).astype(float)
        else:
            distinct, codes = np.unique(values[values.notna()], return_inverse=True)
            ranks = np.full(len(values), (len(distinct) - 1) / 2)
            ranks[values.notna()] = codes
            columns[str(name)] = ranks[:, None]
    return columns


def f_test(given: list[Any], added: Any, y: Any) -> float:
    """Return the p-value of what some columns add to a linear model in those that are given."""

    def error(columns: list[Any]) -> tuple[float, int]:
        design = np.column_stack([np.ones(len(y)), *columns])
        return float(((y - design @ np.linalg.lstsq(design, y)[0]) ** 2).sum()), np.linalg.matrix_rank(design)

    (without, rank), (whole, rank_of_all) = error(given), error([*given, added])
    n_added, rest = rank_of_all - rank, len(y) - rank_of_all
    return float(stats.f.sf((without - whole) / n_added / (whole / rest), n_added, rest))


def better_p_values(frame: pd.DataFrame, components: list[Any], single: dict[str, float]) -> dict[str, float]:
    """Return the better of two p-values of each feature: by itself, and beside those found before."""
    columns, found, given = columns_of(frame), single, set[str]()
    for _ in range(4):
        q_values = stats.false_discovery_control(list(found.values()))
        more = given | {name for name, q in zip(found, q_values, strict=True) if q <= 0.01}
        if more == given:
            break
        given, found = more, {}
        for name in columns:
            others = [columns[other] for other in given if other != name]
            p = np.array([f_test(others, columns[name], y) for y in components])
            # Cauchy's combination of the classes; its p-values are at most 0.9.
            mean = (1 / np.tan(np.pi * np.minimum(p, 0.9))).mean()
            joined = p[0] if len(p) == 1 else np.arctan2(1, mean) / np.pi
            found[name] = min(1.0, 2 * min(single[name], joined))
    return found


@pytest.mark.parametrize("target", ["number", "two classes", "three classes"])
@pytest.mark.parametrize("seed", range(3))
def test_partial_p_values_are_those_of_the_better_test(seed: int, target: str) -> None:
    n_rows = 240
    frame = mixed(seed)[:n_rows].drop(columns="many")
    rng = np.random.default_rng(seed + 200)
    for name in "uvw":
        frame[name] = rng.normal(size=n_rows)
    effect = 3 * frame["number"] + 1.5 * frame["u"] + 0.3 * frame["ties"] + 0.5 * (frame["few"] == "b")
    latent = effect.to_numpy() + 0.5 * rng.normal(size=n_rows)
    ranks = stats.rankdata(latent)
    if target == "number":
        y, components = latent, [ranks]
    else:
        n_classes = 2 if target == "two classes" else 3
        y = (ranks * n_classes / (n_rows + 1)).astype(int)
        components = [(y == value).astype(float) for value in range(1 if n_classes == 2 else n_classes)]
        y = np.array(list("abc"))[y]
    single, better = p_values(ranked(frame, y)), p_values(ranked(frame, y, partial=True))
    expected = better_p_values(frame, components, single)
    for name in frame.columns:
        assert abs(np.log(better[name] / expected[name])) < 1e-3 + 1e-3 * abs(np.log(expected[name])), name
    assert target != "number" or better["ties"] < single["ties"] / 10


def test_partial_tests_find_what_other_effects_hide() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    y = X[:, :10] @ np.array([3, 3, 3, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]) + 0.5 * rng.normal(size=400)
    single, better = ranked(X, y), ranked(X, y, partial=True)
    assert len(better.relevant(fdr=0.01)) == 10 > len(single.relevant(fdr=0.01))
    assert list(better.importances()) == list(single.importances())
    # It is a setting of this ranker alone.
    assert evidence(fr.rank(X, y, partial=True)) == evidence(better)
    # Also among many more features than rows.
    wide = np.column_stack([X, rng.normal(size=(400, 2_000))])
    assert len(ranked(wide, y, partial=True).relevant(fdr=0.01)) > len(ranked(wide, y).relevant(fdr=0.01)) + 2
    # Copies share what they say, and are both found.
    copied = ranked(np.column_stack([X, X[:, 3]]), y, partial=True)
    assert {"x3", "x30"} <= set(copied.relevant(fdr=0.01))


def test_importance_is_association_beyond_chance() -> None:
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(2, 400))
    codes = pd.Categorical([f"c{i}" for i in rng.permutation(400) // 2])
    ranking = ranked(pd.DataFrame({"x": x, "noise": noise, "many": codes}), np.exp(x))
    found = dict(zip(ranking.features, ranking.importances(), strict=True))
    # Some bins hold two of the 400 values.
    assert 0.9999 < found["x"] <= 1
    # 200 categories explain half of the variance by chance.
    assert abs(found["noise"]) < 0.02
    assert abs(found["many"]) < 0.15


def test_missing_values_are_tested_by_themselves() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=N_ROWS)
    x = np.where(rng.random(N_ROWS) < 1 / (1 + np.exp(-2 * y)), np.nan, rng.normal(size=N_ROWS))
    p = p_values(ranked(pd.DataFrame({"x": x, "z": rng.normal(size=N_ROWS)}), y))
    gaps = stats.mannwhitneyu(y[np.isnan(x)], y[~np.isnan(x)]).pvalue
    assert close(p["x"], 2 * gaps, 1.3)
    assert p["z"] > 1e-3


def test_targets_and_labels_are_joined() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(N_ROWS, 4))
    Y = pd.DataFrame({"a": X[:, 1] + rng.normal(size=N_ROWS), "b": rng.normal(size=N_ROWS), "c": X[:, 2] > 0})
    ranking = ranked(pd.DataFrame(X, columns=list("pqrs")), Y)
    assert sorted(ranking.relevant(fdr=0.01)) == ["q", "r"]
    labels = [["one"] * bool(row[0] > 0) + ["two"] * bool(row[3] > 1) for row in X]
    table = pa.table({**{name: X[:, i] for i, name in enumerate("pqrs")}, "labels": labels})
    assert sorted(fr.rank(table, "labels", ranker="association").relevant(fdr=0.01)) == ["p", "s"]


def test_rows_without_a_target_are_left_out_target_by_target() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] + rng.normal(size=200)
    known = rng.random(200) < 0.7
    other = rng.normal(size=200)
    frame = pd.DataFrame(X, columns=list("abc")).assign(y=np.where(known, y, np.nan), other=other)
    alone = fr.rank(frame[known].drop(columns="other"), "y", ranker="association")
    both = fr.rank(frame, ["y", "other"], ranker="association", target_weights=[1, 0])
    np.testing.assert_allclose(both.importances(), alone.importances(), rtol=1e-12)


def evidence(ranking: fr.Ranking) -> list[float]:
    assert ranking.relevance is not None
    return [*ranking.importances(), *ranking.relevance.evidence]


@pytest.mark.parametrize("partial", [False, True])
def test_the_bits_are_those_of_any_threads_container_and_memory(tmp_path: Path, partial: bool) -> None:
    ranked = functools.partial(fr.rank, ranker="association", partial=partial)
    rng = np.random.default_rng(3)
    frame = mixed(3)
    frame = pd.concat([frame] * 40, ignore_index=True).assign(y=rng.normal(size=40 * N_ROWS))
    frame["y"] += 0.1 * frame["number"]
    one = evidence(ranked(frame, "y", n_jobs=1))
    assert evidence(ranked(frame, "y", n_jobs=2)) == one
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=700)
    assert evidence(ranked(tmp_path / "x.parquet", "y")) == one
    wide = rng.normal(size=(20_000, 40))
    found = evidence(ranked(wide, wide[:, 0] + wide[:, 1]))
    limited = ranked(wide, wide[:, 0] + wide[:, 1], memory_limit="200MB")
    assert evidence(limited) == found


@pytest.mark.parametrize("partial", [False, True])
def test_the_bits_are_those_of_any_partitions(partial: bool) -> None:
    dask = pytest.importorskip("dask.dataframe")
    rng = np.random.default_rng(3)
    frame = pd.concat([mixed(3)] * 10, ignore_index=True)
    frame["y"] = 0.1 * frame["number"] + rng.normal(size=len(frame))
    frame["class"] = rng.choice(list("abc"), size=len(frame))
    frame.loc[::7, "y"] = np.nan
    ranker = fr.AssociationRanker(partial=partial)
    one = evidence(fr.rank(frame, ["y", "class"], ranker=ranker))
    assert partial == (one != evidence(fr.rank(frame, ["y", "class"], ranker="association")))
    for n_partitions in (1, 7):
        parts = dask.from_pandas(frame, npartitions=n_partitions)
        assert evidence(fr.rank(parts, ["y", "class"], ranker=ranker)) == one
    with pytest.raises(fr.SettingError, match="scope: tests of association need all rows"):
        fr.rank(parts, "y", ranker=fr.AssociationRanker(scope="partition"))


@pytest.mark.parametrize("n_rows", [400, 3_000])
@pytest.mark.parametrize("task", ["regression", "classification"])
def test_sparse_data_have_the_bits_of_dense_ones(task: str, n_rows: int) -> None:
    rng = np.random.default_rng(4)
    X = sp.random(n_rows, 600_000 // n_rows, density=0.02, random_state=4, format="csr")
    signal = X[:, :3].sum(axis=1) + 0.3 * rng.normal(size=n_rows)
    y = signal if task == "regression" else np.where(signal > 0.2, "a", "b")
    sparse, dense = ranked(X, y, partial=True), ranked(X.toarray(), y, partial=True)
    assert evidence(sparse) == evidence(dense)
    assert max(sparse.relevance.evidence[:3]) > 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sample_weight": "w"}, "weight: tests of association do not weigh rows"),
        ({"groups": "w"}, "groups: tests of association take rows for independent"),
        ({"max_bins": 1}, "max_bins: 1 is not in 2"),
        ({"unlabelled": "use"}, "unlabelled: rows without a target say nothing"),
        ({"n_estimators": 7}, "n_estimators: not a setting of ranker='association'"),
    ],
)
def test_what_tests_cannot_do_is_an_error(settings: dict[str, Any], message: str) -> None:
    frame = mixed().assign(y=1.0 * np.arange(N_ROWS), w=1.0)
    with pytest.raises(fr.SettingError, match=message):
        fr.rank(frame, "y", ranker="association", **settings)


@pytest.mark.parametrize("n_rows", [1, 2, 4, 5])
def test_few_rows_and_constants_say_nothing(n_rows: int) -> None:
    X = np.column_stack([np.ones(n_rows), np.arange(n_rows), np.full(n_rows, np.nan)])
    ranking = ranked(X, np.arange(n_rows) + 0.5)
    assert np.isfinite(ranking.importances()).all()
    assert ranking.p_value[0] == ranking.p_value[2] == 1


@pytest.mark.slow
@pytest.mark.parametrize("partial", [False, True])
@pytest.mark.parametrize("kind", ["number", "heavy", "classes", "rare", "both rare"])
def test_p_values_of_independent_features_are_at_most_what_they_say(kind: str, partial: bool) -> None:
    """300 tables of 20 or 30 features: shares of p-values below 5 %, 1 % and 0.1 %."""
    found = []
    for seed in range(300):
        rng = np.random.default_rng([seed, len(kind)])
        n_rows = 400
        X = rng.normal(size=(n_rows, 30))
        X[:, 10:20] = rng.integers(3, size=(n_rows, 10))
        X[:, 20:] = rng.random((n_rows, 10)) < 0.01
        y: Any = rng.normal(size=n_rows)
        if kind == "heavy":
            y = np.exp(5 * y)
        elif kind == "classes":
            y = rng.choice(list("abc"), size=n_rows, p=[0.1, 0.2, 0.7])
        elif kind in ("rare", "both rare"):
            y = np.where(np.arange(n_rows) < 5, "rare", "common")
        X = X if kind == "both rare" else X[:, :20]
        found.append(ranked(X, y, partial=partial).p_value)
    p = np.concatenate(found)
    for level, most in ((0.05, 0.056), (0.01, 0.0125), (0.001, 0.0017)):
        assert (p <= level).mean() <= most, (level, (p <= level).mean())


EFFECTS: dict[str, Callable[[Any, Any], Any]] = {
    "numbers": lambda rng, effect: effect + rng.normal(size=len(effect)),
    "no noise": lambda rng, effect: effect,
    "errors that grow": lambda rng, effect: effect + np.exp(effect / 2) * rng.normal(size=len(effect)),
    "counts": lambda rng, effect: rng.poisson(np.exp(np.clip(effect, -3, 3))).astype(float),
    "separable": lambda rng, effect: np.where(effect > 0, "a", "b"),
    "three classes": lambda rng, effect: np.array(list("abc"))[np.digitize(effect, [-1, 1])],
}


@pytest.mark.slow
@pytest.mark.parametrize("target", EFFECTS)
def test_false_discoveries_beside_features_found_before(target: str) -> None:
    """100 tables of 65 features, 10 with effects: noise is normal, rare, nominal, and nearly copies."""
    shares, p_values, power = [], [], []
    for seed in range(100):
        rng = np.random.default_rng([seed, len(target)])
        n_rows = 200
        X = rng.normal(size=(n_rows, 60))
        X[:, 20:30] = rng.random((n_rows, 10)) < 0.02
        X[:, 30:40] = 0.1 * X[:, 30:40] + rng.normal(size=(n_rows, 1))
        y = EFFECTS[target](rng, X[:, :10] @ np.linspace(1.5, 0.2, 10))
        frame = pd.DataFrame(X).rename(columns="x{}".format)
        for number in range(5):
            frame[f"c{number}"] = pd.Categorical(rng.choice(list("abcdefgh"), size=n_rows))
        ranking = ranked(frame, y, partial=True)
        found = ranking.q_value <= 0.1
        shares.append(found[10:].sum() / max(1, found.sum()))
        power.append([np.mean(one.q_value[:10] <= 0.1) for one in (ranking, ranked(frame, y))])
        p_values.append(ranking.p_value[10:])
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / 10
    p = np.concatenate(p_values)
    assert [(p <= level).mean() <= most for level, most in ((0.05, 0.06), (0.01, 0.014))] == [True, True]
    better, single = np.mean(power, axis=0)
    assert better > single + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["normal", "outliers", "heavy tails", "growing"])
def test_rare_flags_beside_strong_effects(noise: str) -> None:
    """50 tables of 300 rows, 4 strong effects, and 600 flags that 1.5 to 20 % of the rows have at random."""
    shares = []
    for seed in range(50):
        rng = np.random.default_rng([seed, len(noise)])
        X = np.hstack(
            [rng.normal(size=(300, 4)), rng.random((300, 600)) < rng.choice([0.015, 0.1, 0.2], 600)]
        )
        errors = {
            "normal": rng.normal(size=300),
            "outliers": rng.normal(size=300) * np.where(rng.random(300) < 0.05, 20, 0.3),
            "heavy tails": rng.standard_t(1.5, size=300),
            "growing": rng.normal(size=300) * np.exp(1.5 * X[:, 0]),
        }[noise]
        found = ranked(X, 2 * X[:, :4].sum(axis=1) + errors, partial=True).q_value <= 0.1
        shares.append(found[4:].sum() / max(1, found.sum()))
    assert np.mean(shares) <= 0.1 + 2 * np.std(shares) / np.sqrt(50)


def test_it_is_a_selector_of_scikit_learn() -> None:
    X = np.random.default_rng(0).normal(size=(N_ROWS, 6))
    ranker = fr.AssociationRanker(n_features_to_select=2).fit(X, X[:, 4] - X[:, 2])
    assert list(ranker.get_feature_names_out()) == ["x2", "x4"]
    assert ranker.transform(X).shape == (N_ROWS, 2)
    assert sorted(ranker.ranking_) == [1, 2, 3, 4, 5, 6]
