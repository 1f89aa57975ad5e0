"""The results of a study: every number in one table, and tables and tests of it."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import pyarrow as pa
import pyarrow.feather
from scipy import stats

from ferrank.data.opening import cause_of
from ferrank.errors import DataError, ResourceError, SettingError, hint
from ferrank.evaluate.compare import Comparison, compare
from ferrank.evaluate.measures import MEASURES, check_measure
from ferrank.evaluate.study.cells import read_numbers
from ferrank.output import check_path, mode_of, replace

__all__ = [
    "MAIN_MEASURES",
    "PAGE",
    "TIME",
    "Results",
    "checked_decimals",
    "markdown_text",
    "marked_cells",
    "of_judge",
    "of_labelled",
]

MAIN_MEASURES = ("rrmse", "accuracy", "pooled_auprc")
"""The measures that stand for a task where none is named: numbers, classes, label sets."""
TIME = "seconds"
"""What stands for a measure where times are compared."""
_DECIMALS = b"decimals"
_SUFFIXES = (".html", ".md", ".tex", ".csv", ".arrow")


@dataclass(frozen=True, eq=False, repr=False)
class Results:
    """What a study found.

    Parameters
    ----------
    numbers : pyarrow.Table
        A row for each data set, method, split, number of labelled rows, number of trees, judge, place and
        measure, with the columns ``data``, ``method`` (the ranker, with its score where it has several;
        "unweighted" is the baseline), ``split``, ``labelled``, ``n_trees``, ``judge``, ``at`` (the number of
        features on a curve, or the place of a feature), ``measure``, ``value``, ``ranking_seconds``,
        ``n_train`` and ``n_test``. Of these ``labelled``, ``n_trees``, ``judge`` and ``at`` may be left out.
    data_sets : pyarrow.Table, optional
        A row for each data set, with the columns ``data``, ``rows``, ``features``, ``nominal`` (the share of
        nominal features) and ``targets`` (labels, of label sets).
    decimals : int, optional
        Digits after the point to which means are rounded before methods are ranked and tested.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from ferrank.evaluate import Results
    >>> row = {"data": "d", "split": "0", "labelled": None, "measure": "accuracy"}
    >>> row |= {"ranking_seconds": 1.0, "n_train": 60, "n_test": 30}
    >>> rows = [row | {"method": name, "value": value} for name, value in {"a": 0.75, "b": 0.5}.items()]
    >>> print(Results(pa.Table.from_pylist(rows)).to_text())
    | data | a | b |
    | --- | ---: | ---: |
    | d | **0.750** | 0.500 |
    <BLANKLINE>
    """

    numbers: pa.Table
    data_sets: pa.Table | None = None
    decimals: int | None = None

    def __post_init__(self) -> None:
        for name in ("labelled", "n_trees", "judge", "at"):
            if name not in self.numbers.column_names:
                kind = pa.string() if name == "judge" else pa.int64()
                column = pa.nulls(self.numbers.num_rows, kind)
                object.__setattr__(self, "numbers", self.numbers.append_column(name, column))

    @cached_property
    def frame(self) -> Any:
        """The numbers as a pandas frame."""
        return self.numbers.to_pandas()

    @property
    def methods(self) -> list[str]:
        """The methods, in the order of the study."""
        return list(dict.fromkeys(self.numbers["method"].to_pylist()))

    @property
    def judges(self) -> list[str]:
        """The names of the judges."""
        return [name for name in dict.fromkeys(self.numbers["judge"].to_pylist()) if name is not None]

    @property
    def measures(self) -> list[str]:
        """The measures that there are."""
        return list(dict.fromkeys(self.numbers["measure"].to_pylist()))

    @property
    def main_measures(self) -> list[str]:
        """The measures that stand for the tasks of the data sets, or else the first one there is."""
        return [name for name in MAIN_MEASURES if name in self.measures] or self.measures[:1]

    def measure_of(self, measure: str | None) -> str:
        """Return ``measure``, or the one that stands for the tasks of the study.

        Raises
        ------
        SettingError
            There is no such measure; or none is named and the data sets have several tasks.
        """
        if measure is not None:
            if measure != TIME:
                check_measure(measure, self.measures, "measure")
            return measure
        if len(self.main_measures) != 1:
            raise SettingError(f"measure: name one of {', '.join(self.measures)}")
        return self.main_measures[0]

    def values(
        self,
        measure: str | None = None,
        labelled: int | None = None,
        *,
        n_trees: int | None = None,
        judge: str | None = None,
    ) -> Any:
        """Return the values of a measure as a frame: a row for each data set and split, a column a method.

        The settings are those of :meth:`table`. Of a measure that is a curve the values are its means.
        """
        import pandas as pd

        frame = self.frame
        is_time = measure == TIME
        chosen = frame["ranking_seconds"].notna() if is_time else frame["measure"] == self.measure_of(measure)
        chosen &= of_labelled(frame, chosen, labelled)
        if not chosen.any():
            there = sorted(set(frame["labelled"].dropna().astype(int)))
            raise SettingError(
                f"labelled: no results with {labelled}; there are {there or 'those of all rows'}"
            )
        if judge is None and self.judges and not is_time:
            judge = next(name for name in self.judges if (chosen & (frame["judge"] == name)).any())
        if judge is not None:
            if judge not in self.judges:
                raise SettingError(f"judge: no '{judge}' here; {hint(judge, self.judges)}")
            chosen &= of_judge(frame, judge)
        counts = sorted(set(frame["n_trees"].dropna().astype(int)))
        if counts:
            n_trees = counts[-1] if n_trees is None else n_trees
            if n_trees not in counts:
                raise SettingError(f"n_trees: no results with {n_trees}; there are {counts}")
            chosen &= frame["n_trees"].isna() | (frame["n_trees"] == n_trees)
        column = "ranking_seconds" if is_time else "value"
        rows = frame[chosen]
        # Values that are not defined keep their places.
        wide = rows.groupby(["data", "split", "method"], sort=False)[column].mean().unstack("method")
        there = pd.MultiIndex.from_frame(rows[["data", "split"]].drop_duplicates())
        wide = wide.loc[there, [name for name in self.methods if name in wide.columns]]
        return _by_ranker(wide) if is_time else wide

    def table(
        self,
        measure: str | None = None,
        labelled: int | None = None,
        *,
        n_trees: int | None = None,
        judge: str | None = None,
    ) -> Any:
        """Return the means over splits as a frame: a row for each data set, a column for each method.

        Parameters
        ----------
        measure : str, optional
            By default RRMSE for numbers, the accuracy for classes, the area under the average
            precision-recall curve for label sets. "seconds" is the time to rank; the scores of a forest,
            which are computed together, then are one method.
        labelled : int, optional
            Number of labelled rows; by default all, or the greatest number of each data set where there are
            no results of all.
        n_trees : int, optional
            Number of trees, of forests that were judged at several; by default the greatest.
        judge : str, optional
            The name of the judge; by default the first that has the measure.
        """
        wide = self.values(measure, labelled, n_trees=n_trees, judge=judge)
        return wide.groupby(level="data", sort=False).mean()

    def compare(
        self,
        *methods: str,
        measure: str | None = None,
        labelled: int | None = None,
        n_trees: int | None = None,
        judge: str | None = None,
        control: str | None = None,
        alpha: float = 0.05,
    ) -> Comparison:
        """Compare methods over the data sets that all of them were run on.

        By default these are the methods that were run on the most data sets. The rest is as in
        :func:`~ferrank.evaluate.compare`.
        """
        name = self.measure_of(measure)
        table = self.table(name, labelled, n_trees=n_trees, judge=judge)
        unknown = next((one for one in methods if one not in table.columns), None)
        if unknown is not None:
            raise SettingError(f"methods: no '{unknown}' here; {hint(unknown, table.columns)}")
        table = self.rounded(table[list(methods) or _most_run(table)].dropna(), name)
        if name not in MEASURES:
            raise SettingError(
                f"measure: of '{name}' it is not known whether more is better; use "
                "ferrank.evaluate.compare(results.table(measure), lower_is_better=...)"
            )
        lower = not MEASURES[name].higher_is_better
        return compare(table, lower_is_better=lower, control=control, alpha=alpha)

    def rounded(self, table: Any, measure: str) -> Any:
        """Return the means as they are ranked and tested: rounded to the decimals, but for times."""
        return table if self.decimals is None or measure == TIME else table.round(self.decimals)

    def caption(
        self,
        measure: str | None = None,
        labelled: int | None = None,
        *,
        n_trees: int | None = None,
        judge: str | None = None,
    ) -> str:
        """Return a line that says what :meth:`table` shows."""
        name = self.measure_of(measure)
        values, frame = self.values(name, labelled, n_trees=n_trees, judge=judge), self.frame
        parts = [_title(name)]
        if name in MEASURES:
            parts[0] += ", higher is better" if MEASURES[name].higher_is_better else ", lower is better"
        counts = values.groupby(level="data").size()
        least, most = counts.min(), counts.max()
        parts.append(f"means over {most if least == most else f'{least} to {most}'} splits")
        chosen = frame["measure"] == name if name != TIME else frame["ranking_seconds"].notna()
        numbers = frame[chosen & of_labelled(frame, chosen, labelled)]
        shown = sorted(set(numbers["labelled"].dropna().astype(int)))
        if shown:
            parts.append(f"{shown[0]:,}{f' to {shown[-1]:,}' if len(shown) > 1 else ''} labelled rows")
        if numbers["n_trees"].notna().any():
            parts.append(f"{n_trees or int(numbers['n_trees'].max()):,} trees")
        judges = list(dict.fromkeys(numbers["judge"].dropna()))
        if name != TIME and judges:
            parts.append(f"judge '{judge or judges[0]}'")
        table = self.table(name, labelled, n_trees=n_trees, judge=judge)
        undefined = [str(data) for data, row in table.iterrows() if row.isna().all()]
        line = "; ".join(parts)
        if undefined:
            line += f". Not defined on {', '.join(undefined)}, as for a target that is constant"
        return line + "."

    def paired_t(
        self, a: str, b: str, data: str, *, measure: str | None = None, corrected: bool = True
    ) -> tuple[float, float, float]:
        """Compare two methods on the splits of one data set by a paired t-test.

        Parameters
        ----------
        a, b : str
            The methods.
        data : str
            The data set.
        measure : str, optional
            As in :meth:`table`.
        corrected : bool, default=True
            Whether the variance is corrected for training rows that splits share (Nadeau and Bengio 2003).

        Returns
        -------
        (float, float, float)
            The mean of ``a - b``, t, and the p-value of both sides.
        """
        values = self.values(measure)
        there = list(dict.fromkeys(values.index.get_level_values("data")))
        if data not in there:
            raise SettingError(f"data: no '{data}' here; {hint(data, there)}")
        for which, method in (("a", a), ("b", b)):
            if method not in values.columns:
                raise SettingError(f"{which}: no '{method}' here; {hint(method, values.columns)}")
        differences = (values.loc[data][a] - values.loc[data][b]).dropna().to_numpy()
        n = len(differences)
        if n < 2:
            raise DataError(f"{data}: {n} split; a test needs at least 2")
        rows = self.numbers.filter(pa.compute.equal(self.numbers["data"], data))
        share = rows["n_test"][0].as_py() / rows["n_train"][0].as_py() if corrected else 0.0
        error = np.sqrt(differences.var(ddof=1) * (1 / n + share))
        mean = float(differences.mean())
        if error == 0:
            return mean, np.inf * np.sign(mean) if mean else 0.0, 0.0 if mean else 1.0
        t = mean / float(error)
        return mean, t, float(2 * stats.t.sf(abs(t), n - 1))

    def seconds(self) -> Any:
        """Return the mean time of ranking, in seconds: a row for each data set, a column for each method."""
        frame = self.frame.dropna(subset=["ranking_seconds"])
        wide = frame.pivot_table("ranking_seconds", "data", "method", sort=False)
        return wide[[name for name in self.methods if name in wide.columns]]

    def to_text(
        self,
        how: Literal["markdown", "latex", "html"] = "markdown",
        measure: str | None = None,
        labelled: int | None = None,
    ) -> str:
        """Return :meth:`table` as Markdown, LaTeX or HTML, with the best of each data set marked."""
        if how not in _FORMS:
            raise SettingError(f"how: '{how}' is not one of {', '.join(_FORMS)}")
        name = self.measure_of(measure)
        table = self.table(name, labelled)
        best = table.iloc[:, 0] * np.nan
        if name in MEASURES:
            best = table.max(axis=1) if MEASURES[name].higher_is_better else table.min(axis=1)
        head = ["data", *map(str, table.columns)]
        rows = [[str(data), *marked_cells(row, best[data], how)] for data, row in table.iterrows()]
        return _FORMS[how](head, rows)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the results in a file that :meth:`save` wrote, with the suffix .arrow.

        Raises
        ------
        DataError, ResourceError
            There is no such file, or other things are in it.
        """
        if mode_of(Path(path)) is None:
            raise ResourceError(f"{os.fspath(path)}: no such file; a study writes it when all cells are done")
        try:
            table = read_numbers(Path(path))
            decimals = (table.schema.metadata or {}).get(_DECIMALS)
            return cls(table, decimals=checked_decimals(None if decimals is None else int(decimals)))
        except (OSError, MemoryError, ValueError, pa.ArrowException) as error:
            raise DataError(f"{os.fspath(path)}: {error}; do the study anew") from cause_of(error)

    def save(self, path: str | os.PathLike[str], measure: str | None = None) -> None:
        """Save as a page (.html), a table (.md, .tex, .csv), or all numbers (.arrow)."""
        target = check_path(path, _SUFFIXES)
        replace(target, lambda partial: self._write(partial, target.suffix.lower(), measure))

    def _write(self, path: Path, suffix: str, measure: str | None) -> None:
        if suffix == ".arrow":
            kept = None if self.decimals is None else {_DECIMALS: str(self.decimals).encode()}
            numbers = self.numbers.replace_schema_metadata(kept)
            pyarrow.feather.write_feather(numbers, str(path), compression="uncompressed")
        elif suffix == ".csv":
            self.table(measure).to_csv(path)
        elif suffix == ".html":
            path.write_text(self._page(measure), encoding="utf-8")
        else:
            how: Literal["markdown", "latex"] = "markdown" if suffix == ".md" else "latex"
            line = self.caption(measure)
            line = f"{markdown_text(line)}\n\n" if how == "markdown" else f"% {line}\n"
            path.write_text(line + self.to_text(how, measure), encoding="utf-8")

    def _page(self, measure: str | None) -> str:
        name = self.measure_of(measure)
        title = f"<h1>{escape(_title(name))} of {len(self.methods)} methods</h1>"
        return PAGE.format("\n".join([title, *self.sections(name)]))

    def sections(self, measure: str | None = None) -> list[str]:
        """Return parts of an HTML page: the table of a measure, the comparison of methods and the times."""
        name = self.measure_of(measure)
        parts = [
            f"<p>{escape(self.caption(name))} The best of each data set is bold.</p>",
            self.to_text("html", name),
        ]
        table = self.table(name)
        compared = table[_most_run(table)].dropna()
        if min(compared.shape) > 1 and name in MEASURES:
            found = self.compare(*compared.columns, measure=name)
            parts += ["<h2>Comparison</h2>", f"<pre>{escape(found.to_text())}</pre>"]
        times = self.seconds()
        times = times.loc[[data for data in table.index if data in times.index]].dropna(axis=1, how="all")
        shown = times.to_html(float_format="{:.3f}".format, na_rep="–")
        parts += ["<h2>Seconds for a ranking</h2>", shown]
        return parts

    def __repr__(self) -> str:
        shown = f"{len(set(self.numbers['data'].to_pylist()))} data sets, {len(self.methods)} methods"
        return f"<Results of {shown}, {self.numbers.num_rows:,} numbers>"


def _by_ranker(times: Any) -> Any:
    """Return the times with a column for each ranker: its scores have the same times."""
    columns: dict[str, list[str]] = {}
    for method in times.columns:
        columns.setdefault(method.rpartition(":")[0], []).append(method)
    shared = {
        method: ranker
        for ranker, methods in columns.items()
        if ranker and all(times[one].equals(times[methods[0]]) for one in methods[1:]) and len(methods) > 1
        for method in methods
    }
    renamed = times.rename(columns=shared)
    return renamed.loc[:, ~renamed.columns.duplicated()]


def of_judge(frame: Any, judge: str) -> Any:
    """Return which rows are of the judge, or of models, which are judged by what they predict themselves."""
    return (frame["judge"] == judge) | frame["judge"].isna()


def of_labelled(frame: Any, chosen: Any, labelled: int | None) -> Any:
    """Return which rows are of this number of labelled rows.

    By default these are all; where none of the ``chosen`` results is of all, the greatest number of each data
    set.
    """
    if labelled is not None:
        return frame["labelled"] == labelled
    if (chosen & frame["labelled"].isna()).any():
        return frame["labelled"].isna()
    most = frame[chosen].groupby("data")["labelled"].max()
    return frame["labelled"] == frame["data"].map(most)


def checked_decimals(decimals: Any) -> int | None:
    """Return the number of digits, which must be one from 0 to 15, or None."""
    if decimals is None:
        return None
    is_number = isinstance(decimals, int | np.integer) and not isinstance(decimals, bool)
    if not is_number or not 0 <= decimals <= 15:
        raise SettingError(f"decimals: {decimals!r}; use a whole number from 0 to 15, or leave it out")
    return int(decimals)


def _title(measure: str) -> str:
    return MEASURES[measure].title if measure in MEASURES else measure


def _most_run(table: Any) -> list[str]:
    """Return the methods that were run on the most data sets, the rows of ``table``."""
    counts = table.notna().sum()
    return list(table.columns[counts == counts.max()])


def marked_cells(row: Iterable[float], best: float, how: str = "markdown", *, gap: str = "–") -> list[str]:
    """Return numbers as texts, ``gap`` for NaN; those that equal the best to the digits shown are marked."""
    start, end = {"markdown": ("**", "**"), "latex": ("\\textbf{", "}"), "html": ("<b>", "</b>")}[how]
    texts = [gap if np.isnan(value) else f"{value:.3f}" for value in row]
    return [f"{start}{text}{end}" if text == f"{best:.3f}" else text for text in texts]


def markdown_text(text: Any) -> str:
    """Return a text for a cell of a Markdown table."""
    return str(text).translate({ord("|"): "\\|", ord("<"): "&lt;"})


def _markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    rows = [[markdown_text(row[0]), *row[1:]] for row in rows]
    lines = [[*map(markdown_text, head)], ["---"] + ["---:"] * (len(head) - 1), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


_LATEX = str.maketrans(
    {**{one: f"\\{one}" for one in "_%&#${}"}, "\\": "\\textbackslash{}"}
    | {"^": "\\textasciicircum{}", "~": "\\textasciitilde{}", "<": "\\textless{}", ">": "\\textgreater{}"}
)


def _latex(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    named = [[part.translate(_LATEX) for part in head]]
    named += [[row[0].translate(_LATEX), *row[1:]] for row in rows]
    lines = [" & ".join(line) + " \\\\" for line in named]
    form = "l" + "r" * (len(head) - 1)
    body = "\n".join(["\\hline", lines[0], "\\hline", *lines[1:], "\\hline"])
    return f"\\begin{{tabular}}{{{form}}}\n{body}\n\\end{{tabular}}\n"


def _html(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join(
        f"<tr><td>{escape(row[0])}</td>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


_FORMS = {"markdown": _markdown, "latex": _latex, "html": _html}
PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Study</title><style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 70em; padding: 0 1em; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .2em .7em; text-align: right; }}
td:first-child, th:first-child {{ text-align: left; }} tbody tr:nth-child(odd) {{ background: #8881; }}
pre {{ overflow: auto; }} img {{ max-width: 100%; background: white; }} :root {{ color-scheme: light dark; }}
</style></head><body>
{}
</body></html>
"""
