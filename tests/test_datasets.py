"""The data sets that come with ferrank are what their descriptions say."""

from pathlib import Path

import pyarrow as pa
import pytest

import ferrank as fr

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("name", fr.datasets.names())
def test_a_data_set_is_what_its_description_says(name: str) -> None:
    about, dataset = fr.datasets.describe(name), fr.datasets.load(name)
    table = pa.table(dataset)
    assert (table.num_rows, len(dataset.features)) == (about.n_rows, about.n_features)
    assert tuple(dataset.targets) == about.targets
    ranking = fr.rank(dataset, ranker="forest", n_estimators=5)
    assert (ranking.task, len(ranking)) == (about.task, about.n_features)
    assert about.licence == "CC BY 4.0"
    assert "doi:10.24432/" in about.source
    assert f"{about.n_rows} rows" in str(about)


@pytest.mark.parametrize("name", fr.datasets.names())
def test_files_are_those_of_the_tests(name: str) -> None:
    """Whose origin tests/data/SOURCES.md tells."""
    dataset = fr.datasets.load(name)
    assert Path(dataset.data).read_bytes() == (DATA / Path(dataset.data).name).read_bytes()
    assert Path(dataset.data).name in (DATA / "SOURCES.md").read_text()


def test_a_name_that_is_none() -> None:
    with pytest.raises(fr.SettingError, match="did you mean 'iris'"):
        fr.datasets.load("irs")
    with pytest.raises(fr.SettingError, match="there are iris, wine"):
        fr.datasets.describe("?")
