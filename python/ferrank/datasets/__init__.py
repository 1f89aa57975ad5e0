"""Small real data sets that come with ferrank, for examples and first steps.

They are of the UCI Machine Learning Repository, which publishes its data sets under the licence CC BY 4.0, as
ARFF files of public collections; :func:`describe` names whom to cite.
"""

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ferrank.data.dataset import Dataset
from ferrank.errors import SettingError

__all__ = ["Description", "describe", "load", "names"]

_LICENCE = "CC BY 4.0"


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
    )
}


def names() -> list[str]:
    """Return the names of the data sets.

    >>> names()
    ['iris', 'wine', 'heart', 'energy', 'flare', 'slump']
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
    if name not in _ALL:
        near = get_close_matches(str(name), _ALL, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"there are {', '.join(_ALL)}"
        raise SettingError(f"name: no data set is called '{name}'; {hint}")
    return _ALL[name]


def load(name: str) -> Dataset:
    """Return a data set with its targets, to rank or to turn into a table.

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

    Examples
    --------
    >>> import ferrank as fr
    >>> sorted(fr.rank(fr.datasets.load("iris"), n_estimators=50).top(2))
    ['petallength', 'petalwidth']
    """
    found = describe(name)
    return Dataset(Path(__file__).parent / found.file, list(found.targets))
