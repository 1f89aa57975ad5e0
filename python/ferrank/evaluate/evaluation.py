"""The judgement: measures of the predictions that rankings make, side by side."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from ferrank._core import __version__
from ferrank.errors import SettingError
from ferrank.evaluate.measures import MEASURES
from ferrank.output import check_path, replace
from ferrank.ranking.text import labels

__all__ = ["EVALUATION_SUFFIXES", "UNWEIGHTED", "Evaluation"]

Array = np.ndarray[Any, Any]

UNWEIGHTED = "unweighted"
"""Name of the baseline, in which every feature weighs the same."""
EVALUATION_SUFFIXES = (".csv", ".parquet", ".arrow", ".json")


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """How well each ranking predicts.

    Attributes
    ----------
    task : str
        What was predicted.
    rankings : list of str
        Names of what was judged, in the order of all arrays; the first is ``unweighted``, the baseline.
    measures : dict of str to array of shape (n_rankings,)
        By name in :data:`~ferrank.evaluate.MEASURES`; means over targets where there are several.
    by_target : dict of str to array of shape (n_rankings, n_targets)
        Measures of each target; NaN for targets of the other kind. ``auprc`` and ``auroc`` for label sets.
    targets : list of str
    n_train, n_test : int
        Rows.
    settings : dict
        Neighbours and conventions.
    seconds : float
        Wall time.

    Examples
    --------
    >>> import numpy as np
    >>> measures = {"rrmse": np.array([0.8, 0.4])}
    >>> rankings = ["unweighted", "genie3"]
    >>> found = Evaluation("regression", rankings, measures, {}, ["y"], 200, 100, {"n_neighbors": 5}, 0.1)
    >>> found.value("rrmse", "genie3")
    0.4
    """

    task: str
    rankings: list[str]
    measures: dict[str, Array]
    by_target: dict[str, Array]
    targets: list[str]
    n_train: int
    n_test: int
    settings: dict[str, Any]
    seconds: float

    def value(self, measure: str, ranking: str) -> float:
        """Return one figure.

        Raises
        ------
        SettingError
            There is no such measure or ranking here.
        """
        for name, names, what in ((measure, self.measures, "measure"), (ranking, self.rankings, "ranking")):
            if name not in names:
                raise SettingError(f"{what}: no '{name}' here; there are {', '.join(names)}")
        return float(self.measures[measure][self.rankings.index(ranking)])

    def to_arrow(self) -> pa.Table:
        """Return a table with a row for each ranking: ``ranking``, and a column for each measure."""
        return pa.table({"ranking": self.rankings, **self.measures})

    def to_pandas(self) -> Any:
        """Return the table of :meth:`to_arrow` as a pandas frame."""
        return self.to_arrow().to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Return the object that ``ferrank evaluate --json`` prints; NaN is None."""
        return {
            "ferrank": __version__,
            "task": self.task,
            "n_train": self.n_train,
            "n_test": self.n_test,
            "targets": self.targets,
            "rankings": self.rankings,
            "measures": {name: _plain(values) for name, values in self.measures.items()},
            "by_target": {name: _plain(values) for name, values in self.by_target.items()},
            "settings": self.settings,
            "seconds": self.seconds,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the table as .csv, .parquet or .arrow, or everything as .json, told by the suffix."""
        path = check_path(path, EVALUATION_SUFFIXES)
        replace(path, lambda partial: self._write(partial))

    def _write(self, path: Path) -> None:
        match path.suffix.lower():
            case ".csv":
                pa.csv.write_csv(self.to_arrow(), path)
            case ".parquet":
                pa.parquet.write_table(self.to_arrow(), path)
            case ".arrow":
                pa.feather.write_feather(self.to_arrow(), str(path), compression="uncompressed")
            case _:
                path.write_text(json.dumps(self.to_dict(), allow_nan=False) + "\n", encoding="utf-8")

    def to_text(self) -> str:
        """Return a heading, and a table with a row for each measure and a column for each ranking.

        The best of a row is marked with a star.
        """
        cells = self._cells()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip()
            for row in cells
        ]
        return "\n".join([self._heading(), "", *lines, "", _FOOTER])

    def _heading(self) -> str:
        count, k = len(self.rankings) - 1, self.settings["n_neighbors"]
        return (
            f"{count} ranking{'' if count == 1 else 's'} judged by {k} nearest neighbours, {self.task}, "
            f"{self.n_train:,} training and {self.n_test:,} test rows"
        )

    def _cells(self) -> list[list[str]]:
        body = [
            [MEASURES[name].title, *_marked(values, MEASURES[name].higher_is_better)]
            for name, values in self.measures.items()
        ]
        return [["", *labels(self.rankings)], *body]

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        head, *body = self._cells()

        def row(cells: Sequence[str], tag: str) -> str:
            styled = (
                f'<{tag} style="text-align:{"right" if number else "left"}">{escape(cell)}</{tag}>'
                for number, cell in enumerate(cells)
            )
            return f"<tr>{''.join(styled)}</tr>"

        return (
            f"<div><p><strong>{escape(self._heading())}</strong></p><table><thead>{row(head, 'th')}</thead>"
            f"<tbody>{''.join(row(cells, 'td') for cells in body)}</tbody></table><p>{_FOOTER}</p></div>"
        )


_FOOTER = "*: the best of its row"


def _marked(values: Array, higher_is_better: bool) -> list[str]:
    """Write numbers to four places, with a star at the best."""
    texts = [f"{value:.4f}" for value in values]
    known = values[~np.isnan(values)]
    best = None if not len(known) else f"{known.max() if higher_is_better else known.min():.4f}"
    return [text + ("*" if text == best else " ") for text in texts]


def _plain(values: Array) -> Any:
    """Return lists of numbers, with None for NaN."""
    nested = values.astype(object)
    nested[np.isnan(values)] = None
    return nested.tolist()
