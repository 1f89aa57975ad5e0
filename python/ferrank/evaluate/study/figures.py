"""The papers' tables and pictures, made of the results of a study.

A plan names them, each with a kind and settings; :func:`read_figure` makes a :class:`Figure` of one. Pictures
are SVG files, tables Markdown files, and the numbers of a picture stand beside it in a CSV file.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from inspect import signature
from itertools import combinations
from pathlib import Path
from string import Formatter
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from scipy import stats

from ferrank.errors import SettingError, hint
from ferrank.evaluate.compare import Comparison, compare, significant
from ferrank.evaluate.evaluation import UNWEIGHTED
from ferrank.evaluate.measures import MEASURES
from ferrank.evaluate.stability import stability
from ferrank.evaluate.study import meta
from ferrank.evaluate.study.figure_checks import (
    DESCRIBED,
    NO_QUALITIES,
    check_forms,
    check_keys,
    check_with_study,
)
from ferrank.evaluate.study.results import TIME, Results, markdown_text, marked_cells, of_judge, of_labelled
from ferrank.output import replace

if TYPE_CHECKING:
    from ferrank.evaluate.study.study import Study

__all__ = ["FIGURES", "Figure", "read_figure"]

Array = np.ndarray[Any, Any]
Trees = int | Mapping[str, int] | None
"""A number of trees for all methods, or one for each; None: the greatest there is."""


class Figure(Protocol):
    """A table or a picture."""

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write it into the folder, in files that start with ``name``, and return their paths.

        Raises
        ------
        SettingError
            What it needs is not among the results.
        """

    def check(self) -> None:
        """Raise a SettingError if its settings do not make a figure, whatever the results."""

    def needs(self) -> set[str]:
        """Return what of a study it needs: several "data", "labelled", "n_trees", kept "importances"."""


def read_figure(
    told: Mapping[str, Any],
    start: Path,
    where: str,
    *,
    measure: str | None = None,
    study: "Study | None" = None,
    missing: Sequence[str] = (),
) -> Figure:
    """Return the figure that a plan describes; paths in it start at ``start``.

    Parameters
    ----------
    told : mapping
        The kind and the settings.
    start : Path
        The folder that paths start from.
    where : str
        How error messages start.
    measure : str, optional
        The measure of the plan, for figures that show one measure and name none.
    study : Study, optional
        The study of the plan. A figure may name only its data sets, methods and judges.
    missing : sequence of str
        Data sets of the plan that were left out of the study.

    Raises
    ------
    SettingError
        The kind or a setting is unknown, missing or wrong; the message starts with ``where``.
    """
    settings = dict(told)
    kind = settings.pop("kind", None)
    if not isinstance(kind, str) or kind not in FIGURES:
        raise SettingError(f"{where}.kind: '{kind}' is not one of {', '.join(FIGURES)}")
    known = {
        name: one
        for name, one in signature(FIGURES[kind]).parameters.items()
        if name not in FIGURES[kind].ignored
    }
    check_keys(settings, known, f"{where}.")
    needed = next(
        (name for name, one in known.items() if one.default is one.empty and name not in told), None
    )
    if needed is not None:
        raise SettingError(f"{where}.{needed}: a figure of the kind {kind} needs it; add {needed} = ...")
    check_forms(kind, settings, where)
    if "path" in settings:
        settings["path"] = start / settings["path"]
    if "measure" in known and measure is not None and (measure != TIME or FIGURES[kind].has_time):
        settings.setdefault("measure", measure)
    figure: Figure = FIGURES[kind](**settings)
    try:
        figure.check()
    except SettingError as error:
        raise SettingError(f"{where}.{error}") from error
    if study is not None:
        check_with_study(figure, study, missing, where)
    return figure


@dataclass(frozen=True)
class _Choice:
    """Which results a figure is of; empty lists mean all."""

    measure: str | None = None
    methods: Sequence[str] = ()
    data: Sequence[str] = ()
    judge: str | None = None
    labelled: int | None = None
    n_trees: Trees = None

    ignored: ClassVar[tuple[str, ...]] = ()
    """Settings of others that this kind has no use for; a plan must not name them."""
    has_time: ClassVar[bool] = True
    """Whether the measure may be the time to rank."""

    def check(self) -> None:
        """Raise an error if the measure is one that this kind does not show."""
        if self.measure == TIME and not self.has_time:
            raise SettingError("measure: seconds is no curve; name another measure, or use the kind table")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return set()

    def table(self, results: Results, measure: str | None = None) -> Any:
        """Return the means over splits: a row for each data set, a column for each method."""
        import pandas as pd

        chosen = measure or self.measure
        if isinstance(self.n_trees, Mapping):
            tables = {
                n: results.table(chosen, self.labelled, n_trees=n, judge=self.judge)
                for n in sorted(set(self.n_trees.values()))
            }
            columns = {
                method: tables[self.n_trees.get(method, max(tables))][method] for method in self.methods
            }
            table = pd.DataFrame(columns)
        else:
            table = results.table(chosen, self.labelled, n_trees=self.n_trees, judge=self.judge)
        return self._of(table)

    def _of(self, table: Any) -> Any:
        _check_there(self.methods, table.columns, "methods")
        _check_there(self.data, table.index, "data")
        if self.data:
            table = table.loc[list(self.data)]
        return table[list(self.methods)] if self.methods else table.dropna(axis="columns", how="all")

    def compared(
        self, results: Results, measure: str | None = None, control: str | None = None
    ) -> Comparison:
        name = results.measure_of(measure or self.measure)
        table = results.rounded(self.table(results, name).dropna(), name)
        return compare(table, lower_is_better=not MEASURES[name].higher_is_better, control=control)


@dataclass(frozen=True)
class Table(_Choice):
    """Means over splits, with the best of each data set marked."""

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``."""
        measure = results.measure_of(self.measure)
        table = self.table(results, measure)
        n_trees = self.n_trees if isinstance(self.n_trees, int) else None
        caption = results.caption(measure, self.labelled, n_trees=n_trees, judge=self.judge)
        if isinstance(self.n_trees, Mapping):
            caption += f" Trees: {', '.join(f'{of} {n}' for of, n in self.n_trees.items())}."
        text = f"{markdown_text(caption)}\n\n{_marked(table, measure)}"
        return [_written(folder / f"{name}.md", text)]


@dataclass(frozen=True)
class Curve(_Choice):
    """A measure against the number of trees, of labelled rows or of features, a panel for each data set."""

    x: str = "n_trees"

    has_time: ClassVar[bool] = False

    def check(self) -> None:
        """Raise an error if there is no such axis."""
        super().check()
        if self.x not in _AXES:
            raise SettingError(f"x: '{self.x}' is not one of {', '.join(_AXES)}")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"labelled"} if self.x == "labelled" else set()

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.svg`` and ``name.csv``."""
        from ferrank.evaluate.plots import COLOURS, tidy
        from ferrank.ranking.plot import finish, need_matplotlib

        self.check()
        measure = results.measure_of(self.measure)
        rows = self._rows(results, measure)
        names = list(dict.fromkeys(rows["data"]))
        methods = list(dict.fromkeys(rows["method"]))
        wide = min(len(names), 3)
        high = -(-len(names) // wide)
        figure = need_matplotlib()(figsize=(4.4 * wide, 3.4 * high + 0.6), dpi=150, layout="constrained")
        panels = np.atleast_1d(figure.subplots(high, wide)).ravel()
        for axes, data in zip(panels, names, strict=False):
            for number, method in enumerate(methods):
                line = rows[(rows["data"] == data) & (rows["method"] == method)]
                style = {
                    "color": COLOURS[number % len(COLOURS)],
                    "linestyle": _DASHES[number // len(COLOURS)],
                }
                if line[self.x].isna().all() and len(line):
                    axes.axhline(line["value"].iloc[0], label=method, linewidth=1.2, **style)
                else:
                    axes.plot(line[self.x], line["value"], label=method, linewidth=1.4, marker=".", **style)
            axes.set_title(data, fontsize=9.5)
            axes.set_xlabel(_AXES[self.x], fontsize=9)
            axes.set_ylabel(MEASURES[measure].title, fontsize=9)
            tidy(axes)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        handles = {label: line for line, label in _handles(panels[: len(names)])}
        figure.legend(
            handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False
        )
        picture, numbers = folder / f"{name}.svg", folder / f"{name}.csv"
        finish(figure, picture)
        replace(numbers, lambda partial: rows.to_csv(partial, index=False))
        return [picture, numbers]

    def _rows(self, results: Results, measure: str) -> Any:
        frame = results.frame
        frame = frame[frame["measure"] == measure]
        judge = self.judge
        if judge is None:
            judge = next(iter(frame["judge"].dropna()), None)
        if judge is not None:
            frame = frame[of_judge(frame, judge)]
        if self.x != "labelled":
            frame = frame[of_labelled(frame, frame["measure"].notna(), self.labelled)]
        if self.x != "n_trees":
            frame = _of_trees(frame, self.n_trees if isinstance(self.n_trees, int) else None)
        for key, column, wanted in (("data", "data", self.data), ("methods", "method", self.methods)):
            if wanted:
                _check_there(wanted, frame[column], key)
                frame = frame[frame[column].isin(list(wanted))]
        if frame.empty:
            raise SettingError(f"labelled: no results of {measure} with {self.labelled}")
        found = frame.groupby(["data", "method", self.x], sort=False, dropna=False)["value"].mean()
        return found.reset_index().sort_values(self.x, kind="stable")


@dataclass(frozen=True)
class Saturation(_Choice):
    """How many trees are enough: Friedman's test over numbers of trees, for each method and measure.

    p-values are adjusted by Benjamini and Hochberg over all of these tests. Where numbers differ, the
    smallest is named from whose mean rank the best one is not farther than Nemenyi's critical difference.
    """

    measures: Sequence[str] = ()

    ignored: ClassVar[tuple[str, ...]] = ("measure", "n_trees")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"data", "n_trees"}

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``."""
        counts = sorted(set(results.frame["n_trees"].dropna().astype(int)))
        if len(counts) < 2:
            raise SettingError("n_trees: the study has fewer than two numbers of trees")
        measures = list(self.measures) or _qualities(results, self.judge)
        methods = list(self.methods) or [
            one for one in results.methods if results.frame.query("method == @one")["n_trees"].notna().any()
        ]
        import pandas as pd

        found = {}
        for measure in measures:
            tables = {
                n: _Choice(measure, methods, self.data, self.judge, self.labelled, n).table(results, measure)
                for n in counts
            }
            for method in methods:
                wide = pd.DataFrame({str(n): tables[n][method] for n in counts})
                lower = not MEASURES[measure].higher_is_better
                wide = results.rounded(wide.dropna(), measure)
                found[method, measure] = compare(wide, lower_is_better=lower)
        raw = [one.friedman[1] if np.isfinite(one.friedman[1]) else 1.0 for one in found.values()]
        adjusted = stats.false_discovery_control(raw)
        differs = {key: p for key, p in zip(found, adjusted, strict=True) if p < found[key].alpha}
        lines = [
            f"{len(differs)} of {len(found)} tests over {', '.join(map(str, counts))} trees reject that all "
            "are equally good (Friedman, Benjamini-Hochberg, 0.05).",
            "",
            "| method | " + " | ".join(MEASURES[one].title for one in measures) + " |",
            "| --- |" + " ---: |" * len(measures),
        ]
        for method in methods:
            cells = []
            for measure in measures:
                one = found[method, measure]
                enough = _enough(one) if (method, measure) in differs else min(counts)
                cells.append(f"**{enough}**" if (method, measure) in differs else f"{enough}")
            lines.append(f"| {markdown_text(method)} | " + " | ".join(cells) + " |")
        lines += ["", "Number of trees that is enough; bold where fewer are worse."]
        return [_written(folder / f"{name}.md", "\n".join(lines) + "\n")]


def _enough(found: Comparison) -> int:
    best = found.mean_rank.min()
    return min(
        int(method)
        for method, rank in zip(found.methods, found.mean_rank, strict=True)
        if rank - best <= found.critical_difference
    )


@dataclass(frozen=True)
class Ranks(_Choice):
    """Average ranks over data sets, with critical differences."""

    control: str | None = None
    by: str = "method"

    def check(self) -> None:
        """Raise an error if it ranks neither methods nor the numbers of trees of one method."""
        if self.by not in ("method", "n_trees"):
            raise SettingError(f"by: '{self.by}' is not one of method, n_trees")
        if self.by == "n_trees" and len(self.methods) != 1:
            raise SettingError(f"methods: {len(self.methods)} are named; by = 'n_trees' ranks those of one")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"data", "n_trees"} if self.by == "n_trees" else {"data", "methods"}

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.svg`` and ``name.txt``."""
        from ferrank.evaluate.plots import plot_comparison

        self.check()
        title = MEASURES[results.measure_of(self.measure)].title
        if self.by == "n_trees":
            found, title = self._over_trees(results), f"{title}, {self.methods[0]}"
        else:
            found = self.compared(results, control=self.control)
        picture = folder / f"{name}.svg"
        plot_comparison(found, picture, title)
        return [picture, _written(folder / f"{name}.txt", f"{title}\n\n{found.to_text()}\n")]

    def _over_trees(self, results: Results) -> Comparison:
        import pandas as pd

        [method] = self.methods
        measure = results.measure_of(self.measure)
        counts = sorted(set(results.frame["n_trees"].dropna().astype(int)))
        columns = {
            f"{n} trees": _Choice(measure, [method], self.data, self.judge, self.labelled, n).table(results)[
                method
            ]
            for n in counts
        }
        lower = not MEASURES[measure].higher_is_better
        table = results.rounded(pd.DataFrame(columns).dropna(), measure)
        return compare(table, lower_is_better=lower)


@dataclass(frozen=True)
class Best(_Choice):
    """The method of each group with the best average rank, for each measure, and whether methods differ."""

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    measures: Sequence[str] = ()

    ignored: ClassVar[tuple[str, ...]] = ("measure", "methods")

    def check(self) -> None:
        """Raise an error if there are no groups, or an empty one."""
        _check_groups(self.groups)
        if not self.groups:
            raise SettingError("groups: there are none; name lists of methods, { first = ['a', 'b'] }")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"data"} if any(len(one) > 1 for one in self.groups.values()) else set()

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``."""
        self.check()
        measures = list(self.measures) or _qualities(results, self.judge)
        found, raw = {}, []
        for measure in measures:
            for group, methods in self.groups.items():
                choice = _Choice(measure, methods, self.data, self.judge, self.labelled, self.n_trees)
                if len(methods) == 1:
                    choice.table(results, measure)
                    continue
                one = choice.compared(results)
                found[measure, group] = one
                raw.append(one.friedman[1] if len(methods) > 2 else one.wilcoxon[0, 1])
        adjusted = stats.false_discovery_control(np.nan_to_num(raw, nan=1.0)) if raw else []
        p = dict(zip(found, adjusted, strict=True))
        lines = [
            "| measure | " + " | ".join(map(markdown_text, self.groups)) + " |",
            "| --- |" + " --- |" * len(self.groups),
        ]
        for measure in measures:
            cells = []
            for group, methods in self.groups.items():
                if len(methods) == 1:
                    cells.append(f"{markdown_text(methods[0])} (1.00)")
                    continue
                one = found[measure, group]
                ranks = ", ".join(f"{rank:.2f}" for rank in one.mean_rank)
                star = "\\*" if p[measure, group] < one.alpha else ""
                cells.append(f"{markdown_text(one.methods[0])}{star} ({ranks})")
            lines.append(f"| {MEASURES[measure].title} | " + " | ".join(cells) + " |")
        n = sum(value < 0.05 for value in p.values())
        lines += [
            "",
            "The best average rank, and in brackets all of the group in order. \\*: the methods of the group "
            f"differ, in {n} of {len(p)} tests (Friedman, of two Wilcoxon; Benjamini-Hochberg, 0.05).",
        ]
        return [_written(folder / f"{name}.md", "\n".join(lines) + "\n")]


@dataclass(frozen=True)
class Against(_Choice):
    """Each method against one, by Wilcoxon's test for each measure, adjusted by Benjamini and Hochberg."""

    control: str = UNWEIGHTED
    measures: Sequence[str] = ()

    ignored: ClassVar[tuple[str, ...]] = ("measure",)

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``."""
        measures = list(self.measures) or _qualities(results, self.judge)
        methods = [one for one in self.methods or results.methods if one != self.control]
        cells, raw = {}, []
        for measure in measures:
            choice = _Choice(
                measure, [*methods, self.control], self.data, self.judge, self.labelled, self.n_trees
            )
            table = results.rounded(choice.table(results, measure).dropna(), measure)
            sign = 1 if MEASURES[measure].higher_is_better else -1
            for method in methods:
                gain = sign * significant(table[[method, self.control]].to_numpy()) @ (1.0, -1.0)
                cells[measure, method] = (int((gain > 0).sum()), int((gain < 0).sum()))
                raw.append(float(stats.wilcoxon(gain).pvalue) if (gain != 0).any() else 1.0)
        adjusted = dict(zip(cells, stats.false_discovery_control(raw), strict=True))
        named = " | ".join(map(markdown_text, methods))
        lines = [f"| measure | {named} |", "| --- |" + " ---: |" * len(methods)]
        for measure in measures:
            row = []
            for method in methods:
                better, worse = cells[measure, method]
                p = adjusted[measure, method]
                text = f"{better} : {worse} ({p:.3f})"
                row.append(f"**{text}**" if p < 0.05 else text)
            lines.append(f"| {MEASURES[measure].title} | " + " | ".join(row) + " |")
        lines += [
            "",
            f"Data sets on which a method is better : worse than {self.control}, and the p-value of "
            "Wilcoxon's test, adjusted over all of the table; bold below 0.05.",
        ]
        return [_written(folder / f"{name}.md", "\n".join(lines) + "\n")]


@dataclass(frozen=True)
class Radar(_Choice):
    """Average ranks over data sets for each of several measures; the centre is rank 1."""

    measures: Sequence[str] = ()

    ignored: ClassVar[tuple[str, ...]] = ("measure",)

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"data", "methods"}

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.svg`` and ``name.csv``."""
        import pandas as pd

        from ferrank.evaluate.plots import COLOURS
        from ferrank.ranking.plot import finish, need_matplotlib

        measures = list(self.measures) or _qualities(results, self.judge)
        rows = {}
        for measure in measures:
            one = self.compared(results, measure)
            rows[measure] = dict(zip(one.methods, one.mean_rank, strict=True))
        ranks = pd.DataFrame(rows).T
        ranks = ranks[list(self.methods) or list(ranks.columns)]
        figure = need_matplotlib()(figsize=(8.5, 6.5), dpi=150, layout="constrained")
        axes = figure.subplots(subplot_kw={"projection": "polar"})
        angles = np.linspace(0, 2 * np.pi, len(measures), endpoint=False)
        for number, method in enumerate(ranks.columns):
            values = ranks[method].to_numpy()
            axes.plot(
                [*angles, angles[0]],
                [*values, values[0]],
                label=method,
                color=COLOURS[number % len(COLOURS)],
                linestyle=_DASHES[number % len(_DASHES)],
                marker=".",
            )
        outer = len(ranks.columns) + 0.2
        axes.set_xticks(angles, [""] * len(measures))
        axes.set_ylim(0.8, outer)
        for angle, measure in zip(angles, measures, strict=True):
            # Texts start or end at the frame, so that they do not cross it.
            across, up = np.round([np.cos(angle), np.sin(angle)], 6)
            axes.text(
                angle,
                outer + 0.04 * (outer - 0.8),
                fill(MEASURES[measure].title, 20),
                fontsize=8,
                ha="center" if abs(across) < 0.2 else "left" if across > 0 else "right",
                va="center" if abs(up) < 0.2 else "bottom" if up > 0 else "top",
            )
        figure.suptitle("Average ranks over data sets: the nearer to the centre, the better", fontsize=9.5)
        axes.set_yticks(range(1, len(ranks.columns) + 1))
        axes.tick_params(axis="y", labelsize=7)
        figure.legend(loc="outside lower center", ncols=3, fontsize=8, frameon=False)
        picture, numbers = folder / f"{name}.svg", folder / f"{name}.csv"
        finish(figure, picture)
        replace(numbers, lambda partial: ranks.round(3).to_csv(partial, index_label="measure"))
        return [picture, numbers]


@dataclass(frozen=True)
class Delta(_Choice):
    """Areas under curves over the number of labelled rows, of pairs of methods, and their differences.

    An area is a mean height; a difference above 0 says that the first of the pair is better (Petković et al.
    2023, §7).
    """

    pairs: Mapping[str, str] = field(default_factory=dict)

    ignored: ClassVar[tuple[str, ...]] = ("methods", "labelled", "n_trees")
    has_time: ClassVar[bool] = False

    def check(self) -> None:
        """Raise an error if there are no pairs."""
        super().check()
        if not self.pairs:
            raise SettingError("pairs: there are none; name methods, { first = 'second' }")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"labelled"}

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``."""
        measure = results.measure_of(self.measure)
        areas = _areas(results, self, measure)
        sign = 1 if MEASURES[measure].higher_is_better else -1
        pairs = {a: b for a, b in self.pairs.items() if a in areas.columns and b in areas.columns}
        if not pairs:
            raise SettingError(f"pairs: none of them is among {', '.join(areas.columns)}")
        lines = [
            f"Δ of areas under the curves of {MEASURES[measure].title} over the number of labelled rows: "
            "above 0 where the first method of the pair is better",
            "",
            "| data | " + " | ".join(markdown_text(f"{a} – {b}") for a, b in pairs.items()) + " |",
            "| --- |" + " ---: |" * len(pairs),
        ]
        gains: dict[str, list[float]] = {a: [] for a in pairs}
        for data, row in areas.iterrows():
            cells = []
            for a, b in pairs.items():
                gain = sign * (row[a] - row[b])
                cells.append("" if np.isnan(gain) else f"{gain:+.4f}")
                if not np.isnan(gain):
                    gains[a].append(gain)
            lines.append(f"| {markdown_text(data)} | " + " | ".join(cells) + " |")
        counts = [f"{sum(g > 0 for g in gains[a])} of {len(gains[a])}" for a in pairs]
        lines += ["| above 0 | " + " | ".join(counts) + " |"]
        return [_written(folder / f"{name}.md", "\n".join(lines) + "\n")]


@dataclass(frozen=True)
class Areas(_Choice):
    """Areas under curves over the number of labelled rows, as mean heights, and average ranks by them."""

    ignored: ClassVar[tuple[str, ...]] = ("labelled", "n_trees")
    has_time: ClassVar[bool] = False

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"labelled"}

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``."""
        measure = results.measure_of(self.measure)
        areas = _areas(results, self, measure).dropna(axis="columns")
        ranks = areas.rank(axis=1, ascending=not MEASURES[measure].higher_is_better).mean()
        lines = [
            f"Areas under the curves of {MEASURES[measure].title} over the number of labelled rows",
            "",
            _marked(areas, measure).rstrip(),
            "| average rank | " + " | ".join(f"{rank:.2f}" for rank in ranks) + " |",
        ]
        return [_written(folder / f"{name}.md", "\n".join(lines) + "\n")]


def _areas(results: Results, choice: _Choice, measure: str) -> Any:
    """Return the mean height over the numbers of labelled rows: a row for each data set."""
    frame = results.frame
    frame = _of_trees(frame[(frame["measure"] == measure) & frame["labelled"].notna()])
    judge = choice.judge or next(iter(frame["judge"].dropna()), None)
    if judge is not None:
        frame = frame[of_judge(frame, judge)]
    for key, column, wanted in (("data", "data", choice.data), ("methods", "method", choice.methods)):
        if wanted:
            _check_there(wanted, frame[column], key)
            frame = frame[frame[column].isin(list(wanted))]
    if frame.empty:
        raise SettingError(f"labelled: no results of {measure} with numbers of labelled rows")

    def area(heights: Any) -> float:
        heights = heights.groupby(level="labelled").mean()
        x = heights.index.to_numpy(dtype=float)
        if len(x) == 1:
            return float(heights.iloc[0])
        return float(np.trapezoid(heights.to_numpy(), x) / (x[-1] - x[0]))

    values = frame.set_index(["data", "method", "labelled"])["value"]
    found = values.groupby(level=["data", "method"], sort=False).apply(area).unstack("method")
    order = [one for one in results.methods if one in found.columns]
    return found.loc[list(dict.fromkeys(frame["data"])), order]


@dataclass(frozen=True)
class Pixels(_Choice):
    """Importances where features are the pixels of a picture: their means and deviations over splits."""

    shape: Sequence[int] = (8, 8)

    ignored: ClassVar[tuple[str, ...]] = ("measure", "judge", "n_trees")

    def check(self) -> None:
        """Raise an error if there are several data sets."""
        if len(self.data) > 1:
            raise SettingError(f"data: {len(self.data)} are named; pixels are those of one")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"importances"}

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.svg``."""
        from ferrank.ranking.plot import finish, need_matplotlib

        self.check()
        frame = _importances(results)
        if self.labelled is not None:
            frame = frame[frame["labelled"] == self.labelled]
        sets = list(self.data) or list(dict.fromkeys(frame["data"]))
        _check_there(self.data, frame["data"], "data")
        if len(sets) != 1:
            raise SettingError(f"data: pixels are those of one data set; name one of {', '.join(sets)}")
        [data] = sets
        frame = frame[frame["data"] == data]
        methods = list(self.methods) or list(dict.fromkeys(frame["method"]))
        _check_there(methods, frame["method"], "methods")
        figure = need_matplotlib()(figsize=(3.2 * 2, 3.2 * len(methods)), dpi=150, layout="constrained")
        panels = np.atleast_2d(figure.subplots(len(methods), 2))
        for row, method in zip(panels, methods, strict=True):
            by_place = frame[frame["method"] == method].groupby("at")["value"]
            if by_place.ngroups != self.shape[0] * self.shape[1]:
                raise SettingError(
                    f"shape: {list(self.shape)} does not fit the {by_place.ngroups} features of '{data}' "
                    f"ranked by '{method}'"
                )
            for axes, values, what in (
                (row[0], by_place.mean(), "importance"),
                (row[1], by_place.std(ddof=1), "deviation over splits"),
            ):
                picture = axes.imshow(values.to_numpy().reshape(self.shape), cmap="viridis")
                axes.set_title(f"{fill(method, 34, break_long_words=True)}\n{what}", fontsize=9)
                axes.set_xticks([])
                axes.set_yticks([])
                figure.colorbar(picture, ax=axes, shrink=0.8)
        path = folder / f"{name}.svg"
        finish(figure, path)
        return [path]


@dataclass(frozen=True)
class Stability(_Choice):
    """How alike the rankings of the splits are (Slavkov et al. 2020, Fig. 7), a row for each data set."""

    ignored: ClassVar[tuple[str, ...]] = ("measure", "judge", "labelled", "n_trees")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"importances"}

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``."""
        frame = _importances(results)
        _check_there(self.methods, frame["method"], "methods")
        methods = list(self.methods) or list(dict.fromkeys(frame["method"]))
        lines = [
            "Mean instability over the sizes of the lists of best features: 0 the same, 1 as random rankings",
            "",
            "| data | " + " | ".join(map(markdown_text, methods)) + " |",
            "| --- |" + " ---: |" * len(methods),
        ]
        for data in self.data or dict.fromkeys(frame["data"]):
            cells = []
            for method in methods:
                one = frame[(frame["data"] == data) & (frame["method"] == method)]
                if one.empty:
                    cells.append("")
                    continue
                wide = one.pivot_table("value", ["labelled", "split"], "at", dropna=True)
                if wide.empty:
                    wide = one.pivot_table("value", "split", "at")
                cells.append(f"{stability(wide.to_numpy()).canberra.mean():.3f}")
            if any(cells):
                lines.append(f"| {markdown_text(data)} | " + " | ".join(cells) + " |")
        return [_written(folder / f"{name}.md", "\n".join(lines) + "\n")]


@dataclass(frozen=True)
class Heat(_Choice):
    """Average ranks over data sets of methods that two settings tell apart, as a map.

    ``pattern`` says how methods are called, with ``{row}`` and ``{column}`` in it (Petković et al. 2020a,
    Fig. 6).
    """

    pattern: str = "{row}, {column}"
    rows: Sequence[Any] = ()
    columns: Sequence[Any] = ()
    row_title: str = ""
    column_title: str = ""

    ignored: ClassVar[tuple[str, ...]] = ("methods",)

    def check(self) -> None:
        """Raise an error if the pattern does not name a method for each two of at least two values."""
        for key in ("rows", "columns"):
            if not getattr(self, key):
                raise SettingError(f"{key}: there are none; name the values of a setting, as [1, 5, 10]")
        if len(self.rows) * len(self.columns) < 2:
            raise SettingError("rows: one method is named; name more values, as rows or as columns")
        try:
            fields = {name for _, name, _, _ in Formatter().parse(self.pattern) if name is not None}
            called = self.called() if fields <= {"row", "column"} else {}
        except ValueError as error:
            raise SettingError(f"pattern: '{self.pattern}': {error}; use {{row}} and {{column}}") from error
        if len(set(called.values())) < len(self.rows) * len(self.columns):
            raise SettingError(
                f"pattern: '{self.pattern}' does not name another method for each row and column; "
                "use {row} and {column}"
            )

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"data"}

    def called(self) -> dict[tuple[Any, Any], str]:
        """Return the methods by row and column."""
        return {
            (row, column): self.pattern.format(row=row, column=column)
            for row in self.rows
            for column in self.columns
        }

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.svg`` and ``name.csv``."""
        import pandas as pd

        from ferrank.ranking.plot import finish, need_matplotlib

        self.check()
        called = self.called()
        choice = _Choice(
            self.measure, list(called.values()), self.data, self.judge, self.labelled, self.n_trees
        )
        try:
            one = choice.compared(results)
        except SettingError as error:
            if not str(error).startswith("methods: "):
                raise
            raise SettingError(f"pattern: '{self.pattern}' names methods: {str(error)[9:]}") from error
        ranks = dict(zip(one.methods, one.mean_rank, strict=True))
        values = pd.DataFrame(
            [[ranks[called[row, column]] for column in self.columns] for row in self.rows],
            index=list(self.rows),
            columns=list(self.columns),
        )
        figure = need_matplotlib()(
            figsize=(1.6 + 0.75 * len(self.columns), 1.4 + 0.5 * len(self.rows)),
            dpi=150,
            layout="constrained",
        )
        axes = figure.subplots()
        picture = axes.imshow(values.to_numpy(), cmap="viridis_r", aspect="auto")
        axes.set_xticks(range(len(self.columns)), list(map(str, self.columns)), fontsize=8)
        axes.set_yticks(range(len(self.rows)), list(map(str, self.rows)), fontsize=8)
        axes.set_xlabel(self.column_title, fontsize=9)
        axes.set_ylabel(self.row_title, fontsize=9)
        for (row, column), value in np.ndenumerate(values.to_numpy()):
            is_dark = np.dot(picture.to_rgba(value)[:3], _LUMINANCE) < 0.5
            colour = "white" if is_dark else "black"
            axes.text(column, row, f"{value:.1f}", ha="center", va="center", fontsize=7, color=colour)
        title = MEASURES[results.measure_of(self.measure)].title
        figure.colorbar(picture, ax=axes, label=f"average rank, {title}")
        path, numbers = folder / f"{name}.svg", folder / f"{name}.csv"
        finish(figure, path)
        replace(numbers, lambda partial: values.round(3).to_csv(partial))
        return [path, numbers]


@dataclass(frozen=True)
class Meta(_Choice):
    """A tree that tells by what a data set is which group of methods is best on it.

    After Petković et al. 2020a, §5.3: see :mod:`~ferrank.evaluate.study.meta`. Without ``groups`` each method
    is one of its own; of groups that are equally good the first is taken. ``describe`` names columns of
    :attr:`Results.data_sets`.
    """

    groups: Mapping[str, Sequence[str]] = field(default_factory=dict)
    describe: Sequence[str] = ("rows", "features", "targets")
    folds: int = 10
    max_depth: int = 2
    min_samples_leaf: int = 4

    def check(self) -> None:
        """Raise an error if a number is too small, a group empty, or nothing describes the data sets."""
        _check_groups(self.groups)
        for setting in ("folds", "max_depth", "min_samples_leaf"):
            least = 2 if setting == "folds" else 1
            if getattr(self, setting) < least:
                raise SettingError(f"{setting}: {getattr(self, setting)} is too small; use {least} or more")
        if not self.describe:
            raise SettingError(f"describe: there is none; name some of {', '.join(DESCRIBED)}")

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return {"data"}

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.svg``, ``name.md`` and ``name.csv``."""
        import pandas as pd
        from sklearn.tree import DecisionTreeClassifier

        from ferrank.ranking.plot import finish

        self.check()
        about, best = self._described(results), self._best(results)
        if len(best) < 2:
            raise SettingError(f"data: a tree needs 2 data sets at least, here are results of {len(best)}")
        about = about.loc[best.index]
        X, y = about[list(self.describe)].to_numpy(dtype=float), best.to_numpy(dtype=object)
        model = DecisionTreeClassifier(
            max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, random_state=0
        )
        root = meta.grow(model, X, y, self.describe)
        predicted = meta.cross_validated(model, X, y, self.folds)
        classes = [one for one in self.groups or dict.fromkeys(best) if one in {*y, *predicted}]
        counts = meta.confusion(y, predicted, classes)
        n_folds = min(self.folds, len(y))
        lines = [
            "```text",
            *meta.lines_of(root),
            "```",
            "",
            f"Accuracy {counts.trace() / counts.sum():.1%} on {len(y)} data sets, by {n_folds}-fold "
            "cross-validation. In a leaf: the data sets of its class, and all.",
            "",
            "| best / predicted | " + " | ".join(map(markdown_text, classes)) + " |",
            "| --- |" + " ---: |" * len(classes),
            *(
                f"| {markdown_text(one)} | " + " | ".join(map(str, row)) + " |"
                for one, row in zip(classes, counts, strict=True)
            ),
        ]
        picture, numbers = folder / f"{name}.svg", folder / f"{name}.csv"
        finish(meta.draw(root), picture)
        table = about.assign(best=y, predicted=pd.Series(predicted, about.index))
        replace(numbers, lambda partial: table.to_csv(partial))
        return [picture, _written(folder / f"{name}.md", "\n".join(lines) + "\n"), numbers]

    def _described(self, results: Results) -> Any:
        if results.data_sets is None:
            raise SettingError("describe: these results do not say what the data sets are; run the study")
        about = results.data_sets.to_pandas().set_index("data")
        unknown = next((one for one in self.describe if one not in about.columns), None)
        if unknown is not None or not self.describe:
            raise SettingError(f"describe: no '{unknown}' here; there are {', '.join(about.columns)}")
        return about

    def _best(self, results: Results) -> Any:
        """Return the group with the best method, for each data set."""
        import pandas as pd

        measure = results.measure_of(self.measure)
        methods = list(self.methods) or [one for group in self.groups.values() for one in group]
        choice = _Choice(measure, methods, self.data, self.judge, self.labelled, self.n_trees)
        table = choice.table(results, measure).dropna()
        if not MEASURES[measure].higher_is_better:
            table = -table
        groups = self.groups or {method: [method] for method in table.columns}
        return pd.DataFrame({one: table[list(of)].max(axis=1) for one, of in groups.items()}).idxmax(axis=1)


@dataclass(frozen=True)
class Significant(_Choice):
    """On how many data sets methods are significantly better than others, by paired t-tests over splits.

    At 0.05, adjusted for the number of data sets by Bonferroni (Robnik-Šikonja and Kononenko 1999, §4), and
    in brackets with the correction of Nadeau and Bengio (2003) for training rows that splits share.
    ``published`` says beside it what a paper found.
    """

    published: str = ""

    ignored: ClassVar[tuple[str, ...]] = ("judge", "labelled", "n_trees")

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``."""
        measure = results.measure_of(self.measure)
        table = self.table(results, measure).dropna()
        methods, sets = list(table.columns), list(table.index)
        sign = 1 if MEASURES[measure].higher_is_better else -1
        wins: dict[tuple[str, str], dict[bool, list[str]]] = {}
        for a, b in combinations(methods, 2):
            for corrected in (False, True):
                for data in sets:
                    mean, _, p = results.paired_t(a, b, data, measure=measure, corrected=corrected)
                    if p < 0.05 / len(sets):
                        pair = (a, b) if sign * mean > 0 else (b, a)
                        wins.setdefault(pair, {True: [], False: []})[corrected].append(data)
        lines = [
            f"{MEASURES[measure].title}: number of {len(sets)} data sets on which the method of the row is "
            "significantly better than that of the column: paired t-tests over the splits at "
            f"0.05 / {len(sets)} (Bonferroni); in brackets with the correction of Nadeau and Bengio for "
            "training rows that splits share",
            "",
            "| | " + " | ".join(map(markdown_text, methods)) + " |",
            "| --- |" + " ---: |" * len(methods),
        ]
        for a in methods:
            cells = []
            for b in methods:
                won = wins.get((a, b), {True: [], False: []})
                cells.append("" if a == b else f"{len(won[False])} ({len(won[True])})")
            lines.append(f"| {markdown_text(a)} | " + " | ".join(cells) + " |")
        for (a, b), won in wins.items():
            if won[False]:
                lines.append(f"\n{a} over {b}: {', '.join(won[False])}.")
        if self.published:
            lines += ["", f"Published: {self.published}."]
        lines += ["", _marked(table, measure)]
        return [_written(folder / f"{name}.md", "\n".join(lines) + "\n")]


@dataclass(frozen=True)
class Published:
    """What is found beside what was published, in a CSV file with a row for each number.

    Attributes
    ----------
    path : path
        The file.
    data, methods, measures : mapping of str to mapping of str to str
        Our data sets, methods and measures, and for each what columns of the file say of it.
    n_trees : sequence of int
        Those to compare at.
    trees : str, default="n_trees"
        The column of the number of trees.
    value : str, default="value"
        The column of the numbers.
    judge : str, optional
    """

    path: Path
    data: Mapping[str, Mapping[str, str]]
    methods: Mapping[str, Mapping[str, str]]
    measures: Mapping[str, Mapping[str, str]]
    n_trees: Sequence[int] = ()
    trees: str = "n_trees"
    value: str = "value"
    judge: str | None = None

    ignored: ClassVar[tuple[str, ...]] = ()

    def check(self) -> None:
        """Raise an error if the file, where it is there, has not the columns."""
        if self.path.exists():
            self._read()

    def needs(self) -> set[str]:
        """Return what of a study it needs."""
        return set()

    def _read(self) -> Any:
        import pandas as pd

        try:
            published = pd.read_csv(self.path, dtype=str, keep_default_na=False)
        except (OSError, ValueError) as error:
            raise SettingError(f"path: {self.path}: {error}; name a CSV file") from error
        named = [("value", self.value)]
        if self.n_trees:
            named.append(("trees", self.trees))
        for key in ("data", "methods", "measures"):
            for ours, theirs in getattr(self, key).items():
                named += [(f"{key}.{ours}", column) for column in theirs]
        for key, column in named:
            if column not in published.columns:
                raise SettingError(
                    f"{key}: {self.path} has no column '{column}'; {hint(column, published.columns)}"
                )
        return published

    def make(self, results: Results, folder: Path, name: str) -> list[Path]:
        """Write ``name.md`` and ``name.csv``; without the file, a line that says so."""
        import pandas as pd

        path = folder / f"{name}.md"
        if not self.path.exists():
            return [_written(path, f"{self.path}: there is no such file; nothing to compare with.\n")]
        published = self._read()
        rows = []
        counts: Sequence[int | None] = self.n_trees or [None]
        for count in counts:
            for measure, theirs in self.measures.items():
                table = results.table(measure, n_trees=count, judge=self.judge)
                for data, dataset in self.data.items():
                    for method, columns in self.methods.items():
                        if data not in table.index or method not in table.columns:
                            continue
                        wanted = {**dataset, **theirs, **columns}
                        if count is not None and method != UNWEIGHTED:
                            wanted[self.trees] = str(count)
                        chosen = published[
                            np.logical_and.reduce([published[key] == text for key, text in wanted.items()])
                        ]
                        if len(chosen) != 1:
                            continue
                        rows.append(
                            {
                                "data": data,
                                "method": method,
                                "n_trees": count,
                                "measure": measure,
                                "published": self._number(chosen[self.value].iloc[0]),
                                "found": table.loc[data, method],
                                "unweighted": table.loc[data].get(UNWEIGHTED, np.nan),
                            }
                        )
        if not rows:
            raise SettingError(f"path: {self.path} has no row of these data sets, methods and measures")
        found = pd.DataFrame(rows)
        numbers = folder / f"{name}.csv"
        replace(numbers, lambda partial: found.to_csv(partial, index=False))
        return [_written(path, self._text(found)), numbers]

    def _number(self, text: str) -> float:
        try:
            return float(text)
        except ValueError as error:
            raise SettingError(
                f"value: '{text}' in the column {self.value} of {self.path} is no number"
            ) from error

    def _text(self, found: Any) -> str:
        found = found.copy()
        found["difference"] = found["found"] - found["published"]
        moved, theirs = found["found"] - found["unweighted"], found["published"] - found["unweighted"]
        found["same side"] = np.sign(moved) == np.sign(theirs)
        lines = [
            "| measure | method | numbers | mean difference | mean size of the difference | "
            "on the same side of the unweighted one |",
            "| --- | --- | ---: | ---: | ---: | ---: |",
        ]
        for (measure, method), one in found.groupby(["measure", "method"], sort=False):
            is_beside = method != UNWEIGHTED and one["unweighted"].notna().any()
            sides = f"{int(one['same side'].sum())} of {len(one)}" if is_beside else ""
            lines.append(
                f"| {MEASURES[measure].title} | {markdown_text(method)} | {len(one)} | "
                f"{one['difference'].mean():+.4f} | {one['difference'].abs().mean():.4f} | {sides} |"
            )
        return "\n".join(lines) + "\n"


_AXES = {"n_trees": "trees", "labelled": "labelled rows", "at": "features"}
_DASHES = ("-", "--", "-.", ":")
_LUMINANCE = (0.2126, 0.7152, 0.0722)
"""How bright red, green and blue look (ITU-R BT.709)."""

FIGURES: dict[str, Any] = {
    "table": Table,
    "curve": Curve,
    "saturation": Saturation,
    "ranks": Ranks,
    "best": Best,
    "against": Against,
    "radar": Radar,
    "delta": Delta,
    "areas": Areas,
    "pixels": Pixels,
    "stability": Stability,
    "heat": Heat,
    "meta": Meta,
    "significant": Significant,
    "published": Published,
}
"""Kinds of figures, by the names that plans call them."""


def _qualities(results: Results, judge: str | None) -> list[str]:
    """Return the measures that say how good methods are, by a value for each method rather than a curve."""
    frame = results.frame
    if judge is not None:
        frame = frame[frame["judge"] == judge]
    placed = frame.dropna(subset=["at"])
    curves = {*NO_QUALITIES, *placed.loc[placed["at"] > 1, "measure"]}
    found = [one for one in dict.fromkeys(frame["measure"]) if one in MEASURES and one not in curves]
    if not found:
        raise SettingError(f"measures: name some of {', '.join(results.measures)}")
    return found


def _of_trees(frame: Any, n_trees: int | None = None) -> Any:
    """Return the rows of this number of trees, by default of the greatest, and those without a number."""
    n_trees = frame["n_trees"].dropna().max() if n_trees is None else n_trees
    return frame[frame["n_trees"].isna() | (frame["n_trees"] == n_trees)]


def _importances(results: Results) -> Any:
    frame = _of_trees(results.frame[results.frame["measure"] == "importance"])
    if frame.empty:
        raise SettingError("judges: none kept the importances; add one of the kind importances")
    return frame


def _check_there(wanted: Iterable[str], there: Iterable[Any], key: str) -> None:
    names = list(dict.fromkeys(there))
    unknown = next((one for one in wanted if one not in names), None)
    if unknown is not None:
        raise SettingError(f"{key}: no '{unknown}' here; {hint(unknown, names)}")


def _check_groups(groups: Mapping[str, Sequence[str]]) -> None:
    empty = next((name for name, methods in groups.items() if not methods), None)
    if empty is not None:
        raise SettingError(f"groups.{empty}: there are no methods; name one at least")


def _handles(panels: Any) -> Any:
    for axes in panels:
        yield from zip(*axes.get_legend_handles_labels(), strict=True)


def _marked(table: Any, measure: str) -> str:
    best = table.max(axis=1) if MEASURES[measure].higher_is_better else table.min(axis=1)
    if measure in NO_QUALITIES and measure != TIME:
        best = best * np.nan
    lines = [
        "| data | " + " | ".join(map(markdown_text, table.columns)) + " |",
        "| --- |" + " ---: |" * len(table.columns),
    ]
    for data, row in table.iterrows():
        lines.append(f"| {markdown_text(data)} | " + " | ".join(marked_cells(row, best[data], gap="")) + " |")
    return "\n".join(lines) + "\n"


def _written(path: Path, text: str) -> Path:
    replace(path, lambda partial: partial.write_text(text, encoding="utf-8"))
    return path
