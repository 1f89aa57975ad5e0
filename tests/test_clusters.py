"""Clusters of features: what goes together is found, what does not is not, whatever the kinds."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ferrank as fr
from ferrank.cli import main
from ferrank.data.association import associations
from ferrank.data.check.sample import Column
from ferrank.ranking.clusters import Clusters, least_redundant

scipy_stats = pytest.importorskip("scipy.stats")


def numeric(values: np.ndarray) -> Column:
    return Column("x", False, False, values, [])


def nominal(codes: np.ndarray) -> Column:
    return Column("x", True, False, codes, [f"c{code}" for code in range(codes.max() + 1)])


def table(n: int = 300, seed: int = 0) -> dict[str, object]:
    """Two groups of features of all kinds, two features of neither, and noise with many categories."""
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, n))
    c = rng.integers(0, 4, n)
    return {
        "a": a,
        "a_skewed": np.exp(3 * a),
        "a_reversed": -a + 0.2 * rng.normal(size=n),
        "b": b,
        "c": [f"k{code}" for code in c],
        "c_renamed": [f"z{code}" if rng.random() > 0.05 else "z0" for code in c],
        "c_number": 2.0 * c + 0.1 * rng.normal(size=n),
        "noise": [f"n{code}" for code in rng.integers(0, 40, n)],
        "y": a + b + c,
    }


@pytest.fixture(scope="module")
def ranking() -> fr.Ranking:
    return fr.rank(table(), "y", n_estimators=50, clusters=True)


def test_rank_correlation_is_scipys() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 9, (2, 200)).astype(float)
    found = associations([numeric(x), numeric(y + x)])[0, 1]
    assert found == pytest.approx(abs(scipy_stats.spearmanr(x, y + x).statistic), abs=1e-6)


def test_cramers_v_is_corrected_for_bias() -> None:
    """Bergsma 2013: for independent features the squared measure is about 0, unlike that of V."""
    rng = np.random.default_rng(2)
    found = [associations([nominal(rng.integers(0, k, 200)) for k in (20, 10)])[0, 1] for _ in range(100)]
    assert np.mean(np.square(found)) < 0.005
    codes = rng.integers(0, 5, 200)
    assert associations([nominal(codes), nominal(codes[::-1].copy()), nominal((codes + 2) % 5)])[0, 2] == 1.0


def test_categories_and_numbers() -> None:
    rng = np.random.default_rng(3)
    codes = rng.integers(0, 20, 200)
    noise = [associations([nominal(codes), numeric(rng.normal(size=200))])[0, 1] for _ in range(100)]
    assert np.mean(np.square(noise)) < 0.02
    h = scipy_stats.kruskal(*(np.flatnonzero(codes == code).astype(float) for code in range(20))).statistic
    found = associations([nominal(codes), numeric(np.arange(200.0))])[0, 1]
    assert found**2 == pytest.approx(max(0.0, (h - 19) / (200 - 20)), abs=1e-5)


def test_what_goes_together_is_a_cluster(ranking: fr.Ranking) -> None:
    clusters = ranking.clusters
    assert clusters is not None
    assert set(clusters.members("a")) == {"a", "a_skewed", "a_reversed"}
    assert set(clusters.members("c")) == {"c", "c_renamed", "c_number"}
    assert clusters.members("b") == ["b"]
    assert clusters.members("noise") == ["noise"]
    order = ranking.top(8)
    firsts = sorted({order.index(clusters.members(name)[0]) for name in order})
    assert ranking.representatives() == [order[number] for number in firsts]
    for label in set(clusters.labels):
        rows = np.flatnonzero(clusters.labels == label)
        assert clusters.association[np.ix_(rows, rows)].min() >= clusters.threshold


def test_independent_features_stay_apart() -> None:
    rng = np.random.default_rng(4)
    data = {f"x{number}": rng.normal(size=200) for number in range(30)}
    data |= {f"n{number}": rng.integers(0, 12, 200).astype(str) for number in range(10)}
    ranking = fr.rank(data | {"y": data["x0"]}, "y", n_estimators=5, clusters=0.4)
    assert len(ranking.representatives()) == 40


def test_missing_values_and_constants() -> None:
    data = table() | {"constant": np.ones(300), "empty": [None] * 299 + ["one"]}
    data["a"] = np.where(np.arange(300) % 10 == 0, np.nan, data["a"])
    ranking = fr.rank(data, "y", n_estimators=5, clusters=True)
    assert ranking.clusters is not None
    assert ranking.clusters.members("constant") == ["constant"]
    assert np.isfinite(ranking.clusters.association).all()
    assert "a_skewed" in ranking.clusters.members("a")


def test_values_beside_features_are_clustered_too() -> None:
    X = np.random.default_rng(5).normal(size=(100, 3))
    X[:, 2] = X[:, 0]
    found = fr.rank(X, X[:, 1], n_estimators=5, clusters=True)
    assert sorted(found.clusters.members("x0")) == ["x0", "x2"]  # type: ignore[union-attr]


def test_rankings_made_without_clusters_get_them_later(tmp_path: Path) -> None:
    data = table()
    wanted = fr.rank(data, "y", n_estimators=20, clusters=0.6).clusters
    plain = fr.rank(data, "y", n_estimators=20)
    plain.save(tmp_path / "plain.parquet")
    features = {name: values for name, values in data.items() if name != "y"}
    for one in (plain, fr.Ranking.load(tmp_path / "plain.parquet")):
        for rows in (data, features, fr.Dataset(data, "y")):
            found = one.with_clusters(rows, 0.6).clusters
            assert found.features == wanted.features
            np.testing.assert_array_equal(found.labels, wanted.labels)
    assert plain.clusters is None


def test_clusters_of_a_sample_of_a_collection() -> None:
    dd = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame(table())
    collection = dd.from_pandas(frame, npartitions=2)
    ranking = fr.rank(collection, "y", n_estimators=20)
    with pytest.raises(fr.SettingError, match=r"collection\.sample"):
        ranking.with_clusters(collection)
    whole = ranking.with_clusters(collection.compute()).clusters
    part = ranking.with_clusters(collection.sample(frac=0.8, random_state=0).compute()).clusters
    assert part.representatives() == whole.representatives()


def test_rows_without_a_feature_or_a_threshold(ranking: fr.Ranking) -> None:
    rows = {name: values for name, values in table().items() if name != ranking.features[0]}
    with pytest.raises(fr.DataError, match=f"no column '{ranking.features[0]}'"):
        ranking.with_clusters(rows)
    for threshold in (False, 1.5):
        with pytest.raises(fr.SettingError):
            ranking.with_clusters(table(), threshold)


def test_order_without_redundancy_against_a_plain_twin() -> None:
    rng = np.random.default_rng(6)
    importance = rng.normal(size=12) + 0.5
    association = np.abs(np.corrcoef(rng.normal(size=(12, 20))))
    chosen: list[int] = []
    while len(chosen) < 12:
        left = [number for number in range(12) if number not in chosen]

        def worth(number: int) -> tuple[float, float]:
            mean = np.mean([association[number, one] for one in chosen]) if chosen else 0.0
            return max(importance[number], 0.0) / max(mean, 0.1), importance[number]

        chosen.append(max(left, key=worth))
    assert least_redundant(importance, association, 12) == chosen


def test_redundant_features_come_late(ranking: fr.Ranking) -> None:
    first = ranking.without_redundancy(3)
    groups = [set(ranking.clusters.members(name)) for name in first]  # type: ignore[union-attr]
    assert len(set().union(*groups)) == sum(map(len, groups))


@pytest.mark.parametrize("most", [1, 2, 5, 8])
def test_a_tree_of_the_best_has_merges_of_the_whole(ranking: fr.Ranking, most: int) -> None:
    clusters = ranking.clusters
    assert clusters is not None
    names, branches = clusters.tree(most)
    assert sorted(names) == sorted(clusters.features[:most])
    assert len(branches) == most - 1
    for branch in branches:
        assert branch.association <= min(branch.first[1], branch.second[1])
    if most == 8:
        assert sorted(branch.association for branch in branches) == sorted(clusters.merges[:, 2])


@pytest.mark.parametrize("suffix", ["json", "parquet", "arrow"])
def test_files_keep_clusters(ranking: fr.Ranking, suffix: str, tmp_path: Path) -> None:
    ranking.save(tmp_path / f"r.{suffix}")
    again = fr.Ranking.load(tmp_path / f"r.{suffix}")
    assert again.representatives() == ranking.representatives()
    assert again.clusters.tree(8) == ranking.clusters.tree(8)  # type: ignore[union-attr]
    with pytest.raises(fr.SettingError, match="rank again"):
        again.without_redundancy()


@pytest.mark.parametrize(
    "change",
    [
        {"features": ["a", "other"]},
        {"labels": [0]},
        {"merges": [[0, 0, 1.0]] * 7},
        {"merges": [[0, 99, 1.0]] * 7},
        {"merges": [[None, 1, 1.0], *([2 * n, 2 * n + 1, 1.0] for n in range(1, 7))]},
        {"merges": [[0, 1, None], *([2 * n, 2 * n + 1, 1.0] for n in range(1, 7))]},
        {"merges": [[0.5, 1, 1.0], *([2 * n, 2 * n + 1, 1.0] for n in range(1, 7))]},
    ],
    ids=str,
)
def test_damaged_clusters_are_refused(ranking: fr.Ranking, change: dict[str, object], tmp_path: Path) -> None:
    found = ranking.to_dict()
    found["clusters"] |= change
    (tmp_path / "r.json").write_text(json.dumps(found))
    with pytest.raises(fr.DataError, match="is not a saved ranking"):
        fr.Ranking.load(tmp_path / "r.json")


def test_tables_pages_and_plots_show_clusters(ranking: fr.Ranking, tmp_path: Path) -> None:
    assert "cluster: of 4" in ranking.to_text()
    assert ranking.to_arrow()["cluster"].to_pylist() == ranking.clusters.labels.tolist()  # type: ignore[union-attr]
    html = ranking.report().html
    assert html.count('class="joined"') == 4
    assert html.count('class="apart"') == 3
    ranking.plot_clusters(tmp_path / "tree.svg")
    assert (tmp_path / "tree.svg").stat().st_size > 1_000


def test_one_feature_and_wrong_settings() -> None:
    one = fr.rank({"a": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 5.0]}, "y", n_estimators=3, clusters=True)
    assert one.representatives() == ["a"]
    assert Clusters.from_association([], np.zeros((0, 0)), 0.5).representatives() == []
    with pytest.raises(fr.SettingError, match="clusters: 2 is neither"):
        fr.rank(table(), "y", clusters=2)
    with pytest.raises(fr.SettingError, match="has none; rank"):
        fr.rank(table(), "y", n_estimators=3).representatives()
    with pytest.raises(fr.SettingError, match="feature: 'z' is not among the 1 best"):
        one.clusters.members("z")  # type: ignore[union-attr]


def test_representatives_of_clusters_with_a_relevant_feature() -> None:
    ranking = fr.rank(table(), "y", clusters=0.7)
    relevant = ranking.relevant(0.1)
    expected = [name for name in ranking.representatives() if name in relevant]
    assert 0 < len(expected) < len(ranking.representatives())
    assert ranking.representatives(fdr=0.1) == expected


def test_the_shell_prints_representatives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = table()
    names = list(rows)
    lines = [",".join(names)]
    lines += [",".join(str(rows[name][row]) for name in names) for row in range(300)]  # type: ignore[index]
    (tmp_path / "t.csv").write_text("\n".join(lines) + "\n")
    arguments = ["rank", str(tmp_path / "t.csv"), "-t", "y", "--trees", "50", "--representatives"]
    assert main(arguments) == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    assert main([*arguments[:-1], "--clusters", "0.9"]) == 0
    assert "association of at least 0.9" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([*arguments, "--clusters", "1.5"])
