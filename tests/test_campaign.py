"""Hostile files and arrays end in an answer or a FerrankError; ``campaign.py`` tries more of them."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits on memory are those of Linux")

CAMPAIGN = Path(__file__).with_name("campaign.py")


def check(first: int, cases: int, tmp_path: Path) -> None:
    command = [sys.executable, CAMPAIGN, "--first", str(first), "--cases", str(cases), "--keep", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{cases:,}" in done.stdout.splitlines()[-1]


# Each ranks in threads that do not end by themselves.
ENDINGS = {
    "a daemon thread": "threading.Thread(target=rank, daemon=True).start(); time.sleep(0.5)",
    "an exception": "threading.Thread(target=rank, daemon=True).start(); time.sleep(0.5); sys.exit(3)",
    "a slow table": "threading.Thread(target=take, daemon=True).start(); time.sleep(0.5)",
    "a reader in Python": "pa.RecordBatchReader.from_stream(source).read_next_batch()",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_interpreter_ends_while_the_engine_works(ending: str) -> None:
    code = f"""
import sys, threading, time
import numpy as np, pyarrow as pa
import ferrank as fr
from ferrank._core import Source

rng = np.random.default_rng(0)
table = pa.table({{"x": rng.normal(size=200_000), "y": rng.normal(size=200_000)}})

class Slow:  # so that other threads ask for the interpreter while it goes down
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

slow = Slow()

class Late:
    def __arrow_c_stream__(self, requested_schema=None):
        time.sleep(0.8)
        return table.__arrow_c_stream__(requested_schema)

def take():
    Source.table(Late(), "late")

def rank():
    while True:
        try:
            fr.rank(table, "y", ranker="forest", n_estimators=10_000)
        except BaseException:
            pass

def batches():
    while True:
        time.sleep(0.1)
        yield table.to_batches()[0]

source = Source.factory(
    table.schema, lambda: pa.RecordBatchReader.from_batches(table.schema, batches()), str, "endless", None
)
{ENDINGS[ending]}
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (3 if "3" in ENDINGS[ending] else 0, "")


@pytest.mark.slow
def test_hostile_inputs_are_refused_or_read(tmp_path: Path) -> None:
    check(10_000, 2_000, tmp_path)


def test_a_few_hostile_inputs_are_refused_or_read(tmp_path: Path) -> None:
    check(0, 230, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("bomb", ["_dictionary_bomb", "_entries_bomb", "_categories_bomb"])
def test_texts_stay_within_the_memory_limit(bomb: str, tmp_path: Path) -> None:
    check_bomb(bomb, "forest", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ranker", ["forest", "relief", "association"])
@pytest.mark.parametrize(
    "bomb",
    ["_labels_bomb", "_deep_labels_bomb", "_label_lists_bomb", "_label_text_bomb"],
)
def test_label_sets_stay_within_the_memory_limit(bomb: str, ranker: str, tmp_path: Path) -> None:
    check_bomb(bomb, ranker, tmp_path)


def test_labels_that_rows_share_by_views_are_refused(tmp_path: Path) -> None:
    said = said_of_bomb("_label_views_bomb", "forest", tmp_path)
    assert "the column 'y': its 20000 items of lists are used for 600000000; write each row's own" in said


def check_bomb(bomb: str, ranker: str, folder: Path) -> None:
    """Rank a file that unpacks to much: that has an answer, or is refused because of the limit."""
    said = said_of_bomb(bomb, ranker, folder)
    assert said == "done\n" or said.startswith("memory_limit: "), said


def said_of_bomb(bomb: str, ranker: str, folder: Path) -> str:
    """Rank a file that unpacks to much, within a limit of memory and of the address space."""
    path = folder / "bomb.arrow"
    code = f"""
import campaign, hostile, resource, ferrank as fr
with open({str(path)!r}, "wb") as file:
    file.write(hostile._made({bomb!r}))
resource.setrlimit(resource.RLIMIT_AS, (campaign.ADDRESS_SPACE, campaign.ADDRESS_SPACE))
few = {{"forest": {{"n_estimators": 2}}, "relief": {{"n_neighbors": 2}}, "association": {{}}}}[{ranker!r}]
limits = {{"memory_limit": "400MB", "n_jobs": 1}}
said = "done"
with campaign._Peak() as peak:
    try:
        fr.rank({str(path)!r}, target_last=1, ranker={ranker!r}, **few, **limits)
    except fr.FerrankError as error:
        said = str(error)
print(int(peak.most), said)
"""
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CAMPAIGN.parent, check=True)
    most, said = done.stdout.split(maxsplit=1)
    assert int(most) <= 464, said
    return said
