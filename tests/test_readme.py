"""The Python of the README runs, on small data under its names; its ranking is the one printed."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
DASK = "dask.distributed"


def blocks() -> Iterator[tuple[int, str]]:
    """Yield the Python blocks of the README, each with the number of lines before it."""
    for block in re.finditer(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL):
        yield README[: block.start(1)].count("\n"), block[1]


def compiled(line: int, code: str) -> Any:
    """Compile a block so that a traceback shows its lines in the README."""
    return compile("\n" * line + code, ROOT / "README.md", "exec")


def write_data(folder: Path) -> None:
    """Write the files that the README names and the repository does not hold."""
    (folder / "tests").mkdir()
    (folder / "tests" / "data").symlink_to(ROOT / "tests" / "data")
    (folder / "measurements").mkdir()
    for part in range(3):
        pq.write_table(measurements().slice(part * 1000, 1000), folder / "measurements" / f"{part}.parquet")


def measurements() -> pa.Table:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 5))
    columns = {f"x{feature}": X[:, feature] for feature in range(5)}
    return pa.table(columns | {"y1": X[:, 0], "y2": X[:, 1]})


def names() -> dict[str, Any]:
    """Return what the README's blocks use without making it."""
    rng = np.random.default_rng(2)
    X = pd.DataFrame(rng.normal(size=(90, 3)), columns=["a", "b", "c"])
    return {"X": X, "y": pd.Series(X["a"], name="y")}


@pytest.mark.slow
def test_python_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip(DASK)
    import dask.dataframe

    write_data(tmp_path)
    monkeypatch.chdir(tmp_path)
    namespace = names() | {"dask": dask}
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
        try:
            for line, code in blocks():
                code = code.replace("scheduler:8786", cluster.scheduler_address)
                exec(compiled(line, code), namespace)
        finally:
            if "client" in namespace:
                namespace["client"].close()
    assert (tmp_path / "ranking.parquet").exists()
    assert namespace["forest"].result_.features == ["a", "b", "c"]


def test_the_first_ranking_of_the_readme_is_what_the_command_prints() -> None:
    shown = re.search(r"^```console\n\$ ferrank (.*)\n((?:.*\n)*?)```$", README, re.MULTILINE)
    assert shown is not None
    command = [sys.executable, "-m", "ferrank", *shlex.split(shown[1])]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert printed == shown[2]
