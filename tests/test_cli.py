"""The command line as a process."""

import argparse
import json
import os
import pty
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pytest

import ferrank
from ferrank.cli import main
from ferrank.cli.main import build_parser

COMMAND = [sys.executable, "-m", "ferrank"]


@pytest.fixture(scope="module")
def data(mixed: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "mixed.csv"
    pa.csv.write_csv(mixed, path)
    return path


Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Calls the command line in this process, which saves importing everything anew."""

    def call(*arguments: object) -> Done:
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as end:
            code = int(end.code or 0)
        return subprocess.CompletedProcess(arguments, code, *capfd.readouterr())

    return call


def test_a_process_of_its_own(data: Path) -> None:
    done = subprocess.run([*COMMAND, "inspect", str(data)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("240 rows")
    done = subprocess.run([*COMMAND, "inspect", "none.arff"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")


def test_version(run: Run) -> None:
    assert run("--version").stdout == f"ferrank {ferrank.__version__}\n"


def test_table_on_stdout_and_nothing_else(run: Run, data: Path) -> None:
    done = run("rank", data, "--target", "y", "--trees", 10, "--top", 2)
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "4 features ranked for regression of y, 240 rows"
    assert {line.split()[1] for line in lines[3:5]} == {"a", "colour"}
    assert lines[5] == "… and 2 more features"


def test_json(run: Run, data: Path) -> None:
    done = run(
        "rank", data, "--target", "y", "--trees", 5, "--json", "--score", "symbolic", "--score", "genie3"
    )
    found = json.loads(done.stdout)
    assert set(found) == {
        "ferrank",
        "task",
        "n_rows",
        "n_features",
        "schema",
        "source",
        "targets",
        "features",
        "scores",
        "settings",
        "model_error",
        "seconds",
    }
    assert list(found["scores"]) == ["symbolic", "genie3"]
    assert found["features"] == ["a", "b", "count", "colour"]
    assert {"importance", "standard_error", "monte_carlo_error", "rank"} <= set(found["scores"]["genie3"])
    assert found["settings"]["n_estimators"] == 5


def test_same_as_python(run: Run, data: Path, mixed: pa.Table) -> None:
    options = ["--ensemble", "extra_trees", "--bootstrap", "--max-features", 0.5, "--max-depth", 4]
    options += [
        "--min-leaf",
        3,
        "--max-bins",
        16,
        "--max-samples",
        100,
        "--seed",
        5,
        "--trees",
        6,
        "--threads",
        2,
    ]
    options += ["--score", "permutation", "--score", "symbolic", "--decay", 1, "--drop", "b"]
    found = json.loads(run("rank", data, "--target", "y", "--json", *options).stdout)
    ranking = ferrank.rank(
        mixed,
        "y",
        drop=["b"],
        ensemble="extra_trees",
        bootstrap=True,
        max_features=0.5,
        max_depth=4,
        min_samples_leaf=3,
        max_bins=16,
        max_samples=100,
        random_state=5,
        n_estimators=6,
        scores=("permutation", "symbolic"),
        decay=1,
    )
    assert found["scores"] == ranking.to_dict()["scores"]


def test_messages_call_the_task_by_its_option(run: Run, data: Path) -> None:
    done = run("rank", data, "--target", "colour", "--task", "regression")
    assert done.returncode == 2
    assert done.stderr.startswith("ferrank: error: --task: regression needs a numeric target")
    assert "did you mean --unsupervised?" in run("rank", data, "--unsupervized").stderr


def test_several_targets(run: Run, data: Path) -> None:
    options = ["--trees", 3, "--json", "--target", "y", "--target", "b", "--by-target"]
    options += ["--target-weight", 1, "--target-weight", 0.5]
    found = json.loads(run("rank", data, *options).stdout)
    assert found["task"] == "multi-target"
    assert np.shape(found["scores"]["genie3"]["by_target"]) == (3, 2)
    last = json.loads(run("rank", data, "--trees", 3, "--json", "--target-last", 2, "--per-target").stdout)
    assert last["targets"] == ["colour", "y"]


@pytest.mark.slow
def test_output_and_plot(run: Run, data: Path, tmp_path: Path) -> None:
    files = [tmp_path / f"r.{suffix}" for suffix in ("csv", "parquet", "arrow", "json")]
    for file in files:
        done = run(
            "rank", data, "--target", "y", "--trees", 3, "--output", file, "--plot", tmp_path / "r.png"
        )
        assert done.returncode == 0
        assert f"saved {file}" in done.stderr
    assert (tmp_path / "r.png").read_bytes().startswith(b"\x89PNG")
    assert (
        files[0]
        .read_text()
        .startswith("feature,rank,genie3,genie3_standard_error,genie3_monte_carlo_error\n")
    )
    loaded = [ferrank.Ranking.load(file).to_dict()["scores"] for file in files[1:]]
    assert loaded[0] == loaded[1] == loaded[2]


def test_inspect(run: Run, data: Path, mixed: pa.Table) -> None:
    text = run("inspect", data).stdout
    assert text.startswith("240 rows, 5 columns\n")
    assert any(line.split()[:3] == ["colour", "Utf8", "nominal"] for line in text.splitlines())
    found = json.loads(run("inspect", data, "--json").stdout)
    assert found["columns"][0]["missing"] == mixed["a"].null_count


def test_convert(run: Run, data: Path, tmp_path: Path) -> None:
    done = run("convert", data, tmp_path / "t.arrow")
    assert (done.returncode, done.stdout) == (0, "")
    assert "wrote 240 rows" in done.stderr
    assert pa.feather.read_table(tmp_path / "t.arrow").num_rows == 240


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["rank"], "the following arguments are required: DATA"),
        (["rank", "DATA", "--target", "z"], "no column 'z' for the target; the nearest of its 5 columns are"),
        (["rank", "DATA"], "target: no target was given"),
        (
            ["rank", "DATA", "--target", "y", "--target-last", "1"],
            "--target: give one of",
        ),
        (["rank", "DATA", "--target", "y", "--trees", "0"], "--trees: 0 trees"),
        (["rank", "DATA", "--target", "y", "--trees", "many"], "argument --trees"),
        (["rank", "DATA", "--target", "y", "--max-features", "-1"], "argument --max-features: invalid"),
        (["rank", "DATA", "--target", "y", "--turf", "nan"], "argument --turf: invalid number or share"),
        (["rank", "DATA", "--target", "y", "--stable-top", "3"], "--stable-top: has no effect without"),
        (["rank", "DATA", "--target", "y", "--threads", "0"], "argument -j/--threads"),
        (["rank", "DATA", "--target", "y", "--output", "r.xls"], "unknown suffix '.xls'"),
        (["rank", "DATA", "--target", "y", "--output", "none/r.csv"], "the folder none does not exist"),
        (["rank", "DATA", "--target", "y", "--plot", "r.gif"], "unknown suffix '.gif'"),
        (["rank", "none.csv", "--target", "y"], "none.csv: no such file"),
        (["rank", "none.arrow", "--target", "y"], "none.arrow: "),
        (["inspect", "none.parquet"], "none.parquet: no such file"),
        (["convert", "DATA", "t.csv"], "unknown suffix '.csv'; use one of .arrow"),
        (["dance"], "argument COMMAND"),
    ],
)
def test_bad_usage_and_bad_input(run: Run, data: Path, arguments: list[str], message: str) -> None:
    done = run(*[data if argument == "DATA" else argument for argument in arguments])
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("ferrank: error: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_reader_that_leaves_early(data: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as pipe:
        done = subprocess.run(
            [*COMMAND, "inspect", str(data)], stdout=pipe, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.stderr == ""


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("long") / "noise.arrow"
    columns = np.random.default_rng(0).normal(size=(20, 50_000))
    pa.feather.write_feather(pa.table({f"c{i}": column for i, column in enumerate(columns)}), str(path))
    return [*COMMAND, "rank", str(path), "--target", "c0", "--trees", "100000", "--output"]


@pytest.mark.slow
def test_ctrl_c_within_a_second(long_run: list[str], tmp_path: Path, keyboard: None) -> None:
    # A busy machine may take longer than the program.
    waits = []
    while not waits or (min(waits) >= 1 and len(waits) < 3):
        process = subprocess.Popen(
            [*long_run, str(tmp_path / "r.csv")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        time.sleep(5)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out, err = process.communicate(timeout=10)
        waits.append(time.monotonic() - started)
        assert (process.returncode, out, err) == (130, "", "ferrank: interrupted\n")
        assert list(tmp_path.iterdir()) == []
    assert min(waits) < 1


@pytest.mark.slow
def test_progress_on_a_terminal(long_run: list[str], tmp_path: Path, keyboard: None) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*long_run, str(tmp_path / "r.csv")], stdout=subprocess.DEVNULL, stderr=theirs, text=True
    )
    os.close(theirs)
    shown = _read_until("trees/s", ours, seconds=60)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=10)
    os.close(ours)
    assert "of 100,000 trees" in shown
    assert "trees/s" in shown
    assert "left" in shown


def _read_until(text: str, terminal: int, seconds: float) -> str:
    """Return what a terminal shows until it shows `text`, or until the time is over."""
    shown, end = "", time.monotonic() + seconds
    while text not in shown and select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
        shown += os.read(terminal, 1024).decode(errors="replace")
    return shown


def test_relief(run: Run, data: Path) -> None:
    arguments = ["rank", data, "--target", "y", "--ranker", "relief", "--neighbors", 3, "--neighbors", 9]
    done = run(*arguments, "--sigma", "none", "--sigma", 4, "--iterations", 0.5, "--json")
    found = json.loads(done.stdout)
    assert list(found["scores"]) == ["relief_k3", "relief_k3_sigma4", "relief_k9", "relief_k9_sigma4"]
    assert found["settings"]["ranker"] == "relief"
    assert found["settings"]["n_iterations"] == [0.5]
    assert "relief: how much more" in run(*arguments).stdout


def test_settings_of_the_other_ranker_are_refused(run: Run, data: Path) -> None:
    done = run("rank", data, "--target", "y", "--ranker", "relief", "--trees", 5)
    assert (done.returncode, done.stdout) == (2, "")
    assert "--trees: a setting of --ranker forest, not of relief" in done.stderr
    done = run("rank", data, "--target", "y", "--ranker", "forest", "--neighbors", 5)
    assert "--neighbors: a setting of --ranker relief, not of forest" in done.stderr
    done = run("rank", data, "--target", "y", "--trees", 5, "--sigma", 20)
    assert "--sigma: a setting of --ranker relief, not of forest" in done.stderr
    done = run("rank", data, "--target", "y", "--neighbors", 5, "--sigma", 20, "--json")
    assert json.loads(done.stdout)["settings"]["ranker"] == "relief"


@pytest.fixture(scope="module")
def rankings(data: Path) -> list[Path]:
    saved = [data.parent / name for name in ("forest.csv", "relief.parquet")]
    for path, ranker in zip(saved, ("forest", "relief"), strict=True):
        ferrank.rank(data, "y", ranker=ranker).save(path)
    return saved


def test_evaluate_prints_a_table(run: Run, data: Path, rankings: list[Path]) -> None:
    options = [part for path in rankings for part in ("--ranking", path)]
    done = run("evaluate", data, "--test", data, "--target", "y", *options, "--neighbors", 3)
    assert (done.returncode, done.stderr) == (0, "")
    head, _, names, first, *_ = done.stdout.splitlines()
    assert head.startswith("2 rankings judged by 3 nearest neighbours, regression, 240 training and 240 test")
    assert names.split() == ["unweighted", "forest", "relief"]
    assert first.startswith("RRMSE")


def test_evaluate_as_json_and_in_a_file(run: Run, data: Path, rankings: list[Path], tmp_path: Path) -> None:
    options = ("--ranking", rankings[0], "--conventions", "clus", "--threads", 1, "--json")
    output = tmp_path / "found.csv"
    done = run(
        "evaluate", data, "--test", data, "--target", "y", "--drop", "count", *options, "--output", output
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "ranks 'count', no feature of" in done.stderr
    done = run("evaluate", data, "--test", data, "--target", "y", *options, "--output", output)
    found = json.loads(done.stdout)
    assert found["settings"] == {"n_neighbors": 15, "conventions": "clus", "unlabelled": "error"}
    assert pa.csv.read_csv(output)["rmse"].to_pylist() == found["measures"]["rmse"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "the following arguments are required: --test"),
        (["--test", "none.csv"], "none.csv: no such file"),
        (["--test", "DATA", "--ranking", "none.csv"], "none.csv: no such file"),
        (["--test", "DATA", "--neighbors", "0"], "--neighbors"),
        (["--test", "DATA", "--neighbors", "241"], "241 neighbors of 240 training rows"),
        (["--test", "DATA", "--output", "found.txt"], "unknown suffix '.txt'"),
        (["--test", "DATA", "--weight", "b"], "unrecognized arguments"),
    ],
)
def test_evaluate_says_what_is_wrong(run: Run, data: Path, options: list[str], message: str) -> None:
    given = [str(data) if option == "DATA" else option for option in options]
    done = run("evaluate", data, "--target", "y", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def commands() -> dict[str, argparse.ArgumentParser]:
    actions: Any = build_parser()._actions
    return next(action for action in actions if action.choices and "rank" in action.choices).choices


def test_every_help_ends_with_calls_that_parse() -> None:
    parser = build_parser()
    for command in [parser, *commands().values()]:
        title, *calls = (command.epilog or "").splitlines()
        assert title == "examples:"
        assert len(calls) >= 2
        for call in calls:
            _, *arguments = shlex.split(call.partition("|")[2] or call.partition(">")[0])
            parser.parse_args(arguments)


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_commands_and_options(run: Run, shell: str) -> None:
    script = run("completion", shell).stdout
    assert all(name in script for name in [*commands(), "target-last", "random_forest"])


def finished(arguments: list[object], **how: Any) -> Done:
    """Return what a process of its own, started in a shell, did: ``how`` may close its files."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)], stderr=subprocess.PIPE, text=True, check=False, **how
    )


@pytest.mark.skipif(os.name != "posix", reason="files are closed by a shell of POSIX")
def test_a_closed_stdout_is_an_error_and_a_closed_stderr_none(data: Path) -> None:
    command = shlex.join([*COMMAND, "inspect", str(data)])
    shut = subprocess.run(["sh", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert shut.returncode == 2
    assert shut.stderr == "ferrank: error: stdout: is closed; send it to a file, or to /dev/null\n"
    mute = subprocess.run(["sh", "-c", f"{command} 2>&-"], capture_output=True, text=True, check=False)
    assert mute.returncode == 0
    assert "rows" in mute.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a system without a device that is always full")
@pytest.mark.parametrize("arguments", [["--help"], ["inspect", "DATA"]])
def test_a_full_stdout_is_an_error(data: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = finished([data if one == "DATA" else one for one in arguments], stdout=full)
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert done.stderr.count("\n") == 1


def test_names_forge_no_line_on_a_terminal(run: Run, tmp_path: Path) -> None:
    forged = "a\nferrank: saved \x1b[31mnothing"
    table = pa.table({forged: [1.0, 2.0, 4.0], "b": [3.0, 1.0, 2.0], "y": [0.5, 1.5, 1.0]})
    path = tmp_path / f"{forged}.arrow"
    pa.feather.write_feather(table, str(path))
    cyclic = tmp_path / "cyclic.csv"
    cyclic.write_text(f'parent,child\n"{forged}",b\nb,"{forged}"\n')
    sets = tmp_path / "sets.arrow"
    pa.feather.write_feather(table.set_column(2, "y", pa.array([["b"], ["b"], [forged]])), str(sets))
    for arguments in (
        ["rank", path, "-t", "nope"],
        ["rank", sets, "-t", "y", "--hierarchy", cyclic],
        ["rank", path, "-t", f"{forged}, too"],
        ["rank", path, "-t", forged, "--drop", forged],
        ["inspect", tmp_path / forged],
        ["rank", path, forged],
        [forged],
        ["rank", path, "-t", "y", "--ranker", "forest", "--trees", "5", "-o", tmp_path / f"{forged}.json"],
    ):
        done = run(*arguments)
        assert "\x1b" not in done.stderr, arguments
        assert "\nferrank: saved \\x1b[31mnothing" not in done.stderr, arguments
        assert not any(line.startswith("ferrank: saved no") for line in done.stderr.splitlines())


@pytest.mark.parametrize("option", ["--keep", "--output", "--plot", "--resume"])
def test_an_empty_path_is_an_error(run: Run, data: Path, option: str) -> None:
    done = run("rank", data, "-t", "y", "--ranker", "forest", "--trees", "5", option, "")
    assert done.returncode == 2
    assert "empty" in done.stderr


@pytest.mark.parametrize("name", [".", "none/run.ferrank"])
def test_a_file_to_resume_from_is_no_folder(run: Run, data: Path, name: str) -> None:
    done = run("rank", data, "-t", "y", "--ranker", "forest", "--trees", "5", "--resume", name)
    assert done.returncode == 2
    assert "folder" in done.stderr
    assert "os error" not in done.stderr


def test_ctrl_c_while_modules_are_imported(keyboard: None) -> None:
    code = """if True:
        import builtins, os, signal, sys
        plain = builtins.__import__
        def importing(name, *rest):
            if name == "ferrank.cli.main":
                os.kill(os.getpid(), signal.SIGINT)
            return plain(name, *rest)
        builtins.__import__ = importing
        sys.argv = ["ferrank", "--version"]
        from ferrank.cli import main
        sys.exit(main())"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 130
    assert done.stderr == "ferrank: interrupted\n"
