"""Profiles and accumulators by hand: shares and parts of a run, in memory and in files."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
import pytest

import ferrank as fr

FOREST = fr.ForestRanker(
    scores=("genie3", "symbolic", "coverage", "permutation", "mdi_oob"),
    n_estimators=12,
    max_bins=30,
    by_target=True,
)
RELIEF = fr.ReliefRanker(n_neighbors=(3, 8), sigma=(None, 4.0), n_iterations=0.8)
RANKERS = pytest.mark.parametrize("ranker", [FOREST, RELIEF], ids=["forest", "relief"])


def same(one: fr.Ranking, other: fr.Ranking) -> bool:
    """Whether two rankings have the same bits."""
    pairs = zip(one.scores.values(), other.scores.values(), strict=True)
    arrays = ("importance", "standard_error", "monte_carlo_error", "rank", "rank_interval", "by_target")
    whole = (list(one.scores), one.model_error)
    return whole == (list(other.scores), other.model_error) and all(
        np.array_equal(getattr(a, name), getattr(b, name), equal_nan=True)
        for a, b in pairs
        for name in arrays
        if getattr(a, name) is not None
    )


@RANKERS
def test_shares_of_a_run_make_the_run(ranker: fr.ForestRanker, mixed: pa.Table, tmp_path: Path) -> None:
    whole = fr.rank(mixed, "y", ranker=ranker)
    n = fr.accumulate(mixed, "y", ranker=ranker, keys=range(1)).n_keys
    third = fr.accumulate(mixed, "y", ranker=ranker, keys=range(n // 2, n))
    third.save(tmp_path / "part-3.ferrank")
    for number, keys in enumerate([range(4), range(2, n // 2)]):
        fr.accumulate(mixed, "y", ranker=ranker, keys=keys).save(tmp_path / f"part-{number}.ferrank")
    merged = fr.merge([str(tmp_path / "part-*.ferrank"), third])
    assert merged.keys == list(range(n))
    assert same(merged.ranking(), whole)
    assert merged.ranking().settings == whole.settings
    assert (merged.ranking().n_rows, merged.ranking().task) == (whole.n_rows, whole.task)
    assert same(pickle.loads(pickle.dumps(merged)).ranking(), whole)
    assert same(fr.Accumulator.load(tmp_path / "part-3.ferrank").merge(merged).ranking(), whole)


@RANKERS
def test_parts_contribute_under_one_profile(ranker: fr.ForestRanker, mixed: pa.Table) -> None:
    parts = [mixed.slice(0, 100), mixed.slice(100)]
    profiles = [
        fr.profile(parts[0], "y", ranker=ranker),
        fr.profile(parts[1], "y", ranker=ranker, first_row=100),
    ]
    profile = profiles[1].merge(profiles[0])
    assert profile.to_bytes() == fr.profile(mixed, "y", ranker=ranker).to_bytes()
    n = fr.accumulate(mixed, "y", ranker=ranker, profile=profile, keys=range(1)).n_keys
    one = fr.accumulate(parts[0], "y", ranker=ranker, profile=profile, keys=range(n // 3))
    two = fr.accumulate(parts[1], "y", ranker=ranker, profile=profile, keys=range(n // 3, n))
    assert one.fingerprint == two.fingerprint
    assert one.merge(two).ranking().top(1) == ["a"]


def test_files_are_arrow_streams(mixed: pa.Table, tmp_path: Path) -> None:
    accumulator = fr.accumulate(mixed, "y", ranker=FOREST)
    accumulator.save(tmp_path / "run.ferrank")
    table = pa.ipc.open_stream(tmp_path / "run.ferrank").read_all()
    assert table.column_names == ["key", "vector", "features", "values", "checksum"]
    genie3 = table.filter(pa.compute.equal(table["vector"], 0))
    sums = np.zeros(4)
    for features, values in zip(genie3["features"].to_pylist(), genie3["values"].to_pylist(), strict=True):
        sums[features] += values
    assert np.array_equal(sums / 12, accumulator.ranking().importances("genie3"))
    profile = fr.profile(mixed, "y").to_arrow()
    assert profile.column_names[:3] == ["name", "role", "missing"]
    assert profile["missing"].to_pylist() == [mixed[name].null_count for name in profile["name"].to_pylist()]


def test_what_does_not_belong_together_is_refused(mixed: pa.Table, tmp_path: Path) -> None:
    one = fr.accumulate(mixed, "y", n_estimators=3)
    for other, said in [
        (fr.accumulate(mixed, "y", n_estimators=3, random_state=1), "seed: 0 in this accumulator, 1 in"),
        (fr.accumulate(mixed.slice(1), "y", n_estimators=3), "the values of the data"),
        (fr.accumulate(mixed.drop_columns("b"), "y", n_estimators=3), "features: 4 in"),
        (fr.accumulate(mixed, "y", ranker="relief"), "the ranker"),
    ]:
        with pytest.raises(fr.DataError, match=said):
            one.merge(other)
    with pytest.raises(fr.DataError, match="other columns"):
        fr.profile(mixed, "y").merge(
            fr.profile(mixed.rename_columns(["z", "b", "count", "colour", "y"]), "y")
        )
    (tmp_path / "no.ferrank").write_text("something else")
    with pytest.raises(fr.DataError, match=r"no\.ferrank"):
        fr.Accumulator.load(tmp_path / "no.ferrank")
    with pytest.raises(fr.ResourceError, match=r"gone-\*: no file matches"):
        fr.merge([str(tmp_path / "gone-*")])
    with pytest.raises(fr.ResourceError, match=r"gone\.ferrank"):
        fr.merge([tmp_path / "gone.ferrank"])
    with pytest.raises(fr.DataError, match="nothing to merge"):
        fr.merge([])
    with pytest.raises(fr.ResourceError, match="does not exist"):
        one.save(tmp_path / "no" / "such.ferrank")


@pytest.mark.parametrize("keys", [range(0), range(3, 2), range(0, 9, 2), [1, 2], range(-1, 2)])
def test_keys_are_a_plain_range(keys: range, mixed: pa.Table) -> None:
    with pytest.raises(fr.SettingError, match="keys"):
        fr.accumulate(mixed, "y", keys=keys)


@pytest.mark.parametrize("first_row", [-1, 1 << 64, 1.5, "x"])
def test_the_first_row_is_a_whole_number(first_row: Any, mixed: pa.Table) -> None:
    with pytest.raises(fr.SettingError, match="first_row"):
        fr.profile(mixed, "y", first_row=first_row)
    with pytest.raises(fr.SettingError, match="keys"):
        fr.accumulate(mixed, "y", keys=range(1 << 64, (1 << 64) + 1))


def test_keys_and_profiles_that_do_not_fit(mixed: pa.Table) -> None:
    profile = fr.profile(mixed, "y")
    with pytest.raises(fr.SettingError, match=r"keys: 90 … 101 are not in 0 … 100"):
        fr.accumulate(mixed, "y", keys=range(90, 101))
    with pytest.raises(fr.SettingError, match="say which trees"):
        fr.accumulate(mixed.slice(0, 50), "y", profile=profile)
    with pytest.raises(fr.SettingError, match="max_bins"):
        fr.accumulate(mixed, "y", profile=profile, max_bins=9)
    with pytest.raises(fr.DataError, match="the profile is of 240"):
        fr.accumulate(pa.concat_tables([mixed, mixed]), "y", profile=profile, keys=range(5))
    blue = mixed.set_column(3, "colour", pa.array(["pink"] * 240))
    with pytest.raises(fr.DataError, match="changed"):
        fr.accumulate(blue, "y", profile=profile)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["accumulator", "profile"])
def test_a_head_with_any_bit_changed_is_refused(kind: str, mixed: pa.Table) -> None:
    if kind == "accumulator":
        data = fr.accumulate(mixed, "y", ranker="forest", n_estimators=1).to_bytes()
    else:
        data = fr.profile(mixed, "y", ranker="forest").to_bytes()
    load = fr.Accumulator.from_bytes if kind == "accumulator" else fr.Profile.from_bytes
    load(data)
    stream = pa.BufferReader(data)
    pa.ipc.read_message(stream)
    taken = []
    for bit in range(8 * stream.tell()):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        try:
            load(bytes(changed))
        except fr.DataError:
            continue
        taken.append(bit)
    assert taken == []
