"""Small real data sets, for examples and first steps.

They are of the UCI Machine Learning Repository, which publishes its data sets under the licence CC BY 4.0, as
ARFF files of public collections; :func:`describe` names whom to cite. The smallest come with ferrank, others
are fetched once from its repository, by pooch, which checks that they are what they were.
"""

from dataclasses import dataclass
from pathlib import Path

from ferrank._core import __version__
from ferrank.data.dataset import Dataset
from ferrank.errors import FerrankError, ResourceError, SettingError, hint

__all__ = ["Description", "describe", "load", "names"]

_LICENCE = "CC BY 4.0"
_URL = f"https://raw.githubusercontent.com/ferrank/ferrank/v{__version__}/tests/data/"


@dataclass(frozen=True)
class Description:
    """What a data set is.

    Examples
    --------
    >>> import ferrank
    >>> print(ferrank.datasets.describe("energy"))
    energy: Energy efficiency of buildings
    768 rows, 8 features, multi-target of Y1, Y2
    Eight properties of simulated buildings, and the loads for heating (Y1) and cooling (Y2).
    A. Tsanas, A. Xifara, UCI Machine Learning Repository, 2012, doi:10.24432/C51307; licence: CC BY 4.0
    """

    name: str
    title: str
    n_rows: int
    n_features: int
    task: str
    targets: tuple[str, ...]
    about: str
    source: str
    """whom to cite"""
    file: str
    sha256: str | None = None
    """checksum of a file that is fetched; None where it comes with ferrank"""
    licence: str = _LICENCE

    def __str__(self) -> str:
        return (
            f"{self.name}: {self.title}\n{self.n_rows:,} rows, {self.n_features} features, {self.task} of "
            f"{', '.join(self.targets)}\n{self.about}\n{self.source}; licence: {self.licence}"
        )


_UCI = "UCI Machine Learning Repository"
_ALL = {
    one.name: one
    for one in (
        Description(
            "iris",
            "Iris plants",
            150,
            4,
            "classification",
            ("class",),
            "Lengths and widths of the leaves of flowers of three species.",
            f"R. A. Fisher, {_UCI}, 1936, doi:10.24432/C56C76",
            "iris.arff",
        ),
        Description(
            "wine",
            "Wine recognition",
            178,
            13,
            "classification",
            ("class",),
            "Chemical analyses of wines of three cultivars from one region of Italy.",
            f"S. Aeberhard, M. Forina, {_UCI}, 1992, doi:10.24432/C5PC7J",
            "wine.arff",
        ),
        Description(
            "heart",
            "Heart disease, Cleveland",
            303,
            13,
            "classification",
            ("num",),
            "Findings in patients, of all kinds, with missing values, and whether a vessel is narrow.",
            f"A. Janosi, W. Steinbrunn, M. Pfisterer, R. Detrano, {_UCI}, 1989, doi:10.24432/C52P4X",
            "heart-c.arff",
        ),
        Description(
            "energy",
            "Energy efficiency of buildings",
            768,
            8,
            "multi-target",
            ("Y1", "Y2"),
            "Eight properties of simulated buildings, and the loads for heating (Y1) and cooling (Y2).",
            f"A. Tsanas, A. Xifara, {_UCI}, 2012, doi:10.24432/C51307",
            "enb.arff",
        ),
        Description(
            "flare",
            "Solar flares",
            323,
            10,
            "multi-target",
            ("c-class", "m-class", "x-class"),
            "Active regions of the sun, and how many flares of three strengths follow within a day.",
            f"G. Bradshaw, {_UCI}, 1989, doi:10.24432/C5530G",
            "sf1.arff",
        ),
        Description(
            "slump",
            "Concrete slump test",
            103,
            7,
            "multi-target",
            ("SLUMP_cm", "FLOW_cm", "Compressive_Strength_Mpa"),
            "Mixtures of concrete, and how they slump, flow, and bear pressure after 28 days.",
            f"I-C. Yeh, {_UCI}, 2007, doi:10.24432/C5FG7D",
            "slump.arff",
        ),
        Description(
            "abalone",
            "Abalone",
            4177,
            8,
            "regression",
            ("Class_Rings",),
            "Sizes and weights of sea snails, and the rings of their shells, which tell how old they are.",
            f"W. Nash, T. Sellers, S. Talbot, A. Cawthorn, W. Ford, {_UCI}, 1995, doi:10.24432/C55C7W",
            "abalone.arff",
            "3f955702660d3a6c022baf88b69f314534a625ac3fdebb761878ddff5960a560",
        ),
        Description(
            "annealing",
            "Annealing of steel",
            898,
            38,
            "classification",
            ("class",),
            "Properties of sheets of steel, most of them nominal, and their class after annealing.",
            f"{_UCI}, 1990, doi:10.24432/C5RW2F",
            "anneal.arff",
            "a16e95bc861035d3425861bae9681d1d3236158d692060967634c480c7c5bb2c",
        ),
        Description(
            "automobile",
            "Automobiles of 1985",
            205,
            25,
            "classification",
            ("symboling",),
            "Properties of cars, with missing values, and how risky they are to insure for their price.",
            f"J. Schlimmer, {_UCI}, 1987, doi:10.24432/C5B01C",
            "autos.arff",
            "03778de49e150d3305affb5ac351ec031e85c86ccefcc37dc36f755f856c9216",
        ),
        Description(
            "breast-cancer",
            "Breast cancer, Wisconsin",
            699,
            9,
            "classification",
            ("Class",),
            "Cells of tumors as seen through a microscope, and whether the tumor is malignant.",
            f"W. Wolberg, {_UCI}, 1992, doi:10.24432/C5HP4Z",
            "breast-w.arff",
            "e34b01d1c3213c26d54445278879143d718770aa59f3a363668f45b8fb3b3ed4",
        ),
        Description(
            "credit",
            "German credit",
            1000,
            20,
            "classification",
            ("class",),
            "People who ask a bank for credit, and whether they are good risks.",
            f"H. Hofmann, {_UCI}, 1994, doi:10.24432/C5NC77",
            "german.arff",
            "177171ed80cfc816ef10a76813fa8f97695a6f7abab4d8435eb6ce0a65a37501",
        ),
    )
}


def names() -> list[str]:
    """Return the names of the data sets.

    >>> names()
    ['iris', 'wine', 'heart', 'energy', 'flare', 'slump', 'abalone', 'annealing', 'automobile',
     'breast-cancer', 'credit']
    """
    return list(_ALL)


def describe(name: str) -> Description:
    """Return what the data set ``name`` is, where it comes from, and under which licence.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    Description

    Raises
    ------
    SettingError
        There is no such data set.

    Examples
    --------
    >>> import ferrank
    >>> ferrank.datasets.describe("iris").licence
    'CC BY 4.0'
    """
    if not isinstance(name, str) or name not in _ALL:
        raise SettingError(f"name: no data set is called {name!r}; {hint(name, _ALL)}")
    return _ALL[name]


def load(name: str) -> Dataset:
    """Return a data set with its targets, to rank or to turn into a table.

    A file that does not come with ferrank is fetched and kept in pooch's folder for caches, or in that which
    the environment variable ``FERRANK_DATA`` names.

    Parameters
    ----------
    name : str
        One of :func:`names`.

    Returns
    -------
    Dataset
        ``pyarrow.table(dataset)`` and ``polars.DataFrame(dataset)`` are its rows.

    Raises
    ------
    SettingError
        There is no such data set.
    FerrankError
        It is to be fetched, and pooch is not installed.
    ResourceError
        It cannot be fetched, or is not what it was.

    Examples
    --------
    >>> import ferrank as fr
    >>> sorted(fr.rank(fr.datasets.load("iris"), n_estimators=50).top(2))
    ['petallength', 'petalwidth']
    """
    found = describe(name)
    path = Path(__file__).parent / found.file if found.sha256 is None else _fetched(found)
    return Dataset(path, list(found.targets))


def _fetched(found: Description) -> Path:
    """Return the file of a data set in the cache, where it is put first if it is not there."""
    try:
        import pooch
    except ImportError as error:
        message = f"data set '{found.name}' is fetched by pooch; pip install 'ferrank[datasets]'"
        raise FerrankError(message) from error
    cache = pooch.create(
        path=pooch.os_cache("ferrank"),
        base_url=_URL,
        registry={found.file: f"sha256:{found.sha256}"},
        env="FERRANK_DATA",
    )
    try:
        return Path(cache.fetch(found.file))
    except (OSError, ValueError) as error:
        raise ResourceError(f"data set '{found.name}': {error}") from error
