"""``ferrank report``."""

import argparse
from pathlib import Path
from typing import Any

from ferrank.cli.options import examples, positive
from ferrank.cli.progress import message
from ferrank.errors import SettingError
from ferrank.output import check_optional, is_folder

__all__ = ["add_to"]

_PAGES = (".html",)


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "report",
        help="show saved rankings, or a study",
        description="Show RANKINGS, files that --output wrote as .parquet, .arrow or .json: as tables, with "
        "--output as a page or a plot. Or a study: the folder that 'ferrank study' wrote.",
        epilog=examples(
            "ferrank report ranking.parquet",
            "ferrank report ranking.parquet -o page.html",
            'ferrank report forest.json relief.json -o both.html --title "Two rankings"',
            "ferrank report study/ -o study.html",
        ),
    )
    parser.add_argument(
        "rankings", nargs="+", metavar="RANKING", help="a saved ranking, or the folder of a study"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="a page (.html), or the bars of one (.png, .svg, .pdf)"
    )
    parser.add_argument(
        "--title", metavar="TEXT", help="title of the page; default: what the first ranking is of"
    )
    parser.add_argument(
        "-n",
        "--top",
        type=positive,
        default=20,
        metavar="K",
        help="features shown in tables and plots; default: 20",
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.ranking.plot import PLOT_SUFFIXES

    output = check_optional(chosen.output, (*_PAGES, *PLOT_SUFFIXES))
    if any(is_folder(Path(path)) for path in chosen.rankings):
        _study(chosen, output)
    elif output is None:
        _print(chosen.rankings, chosen.top)
    elif output.suffix.lower() in _PAGES:
        _page(chosen, output)
    else:
        _plot(chosen.rankings, output, chosen.top)


def _study(chosen: argparse.Namespace, output: Path | None) -> None:
    from ferrank.evaluate.study import Results, report_study

    if len(chosen.rankings) > 1:
        raise SettingError(f"RANKING: {len(chosen.rankings)} were given; a study has a page of its own")
    folder = Path(chosen.rankings[0])
    if output is not None:
        if output.suffix.lower() not in _PAGES:
            raise SettingError(f"output: {output}: pictures of the study are in {folder}; use .html")
        report_study(folder, output, title=chosen.title)
        message(f"wrote {output}")
        return
    found = Results.load(folder / "results.arrow")
    for measure in found.main_measures:
        print(f"{found.caption(measure)}\n\n{found.to_text('markdown', measure)}")


def _print(paths: list[str], top: int) -> None:
    from ferrank.ranking.result import Ranking

    tables = {path: Ranking.load(path).to_text(top) for path in paths}
    named = [f"{path}: {table}" for path, table in tables.items()]
    print("\n\n".join(named if len(tables) > 1 else tables.values()))


def _page(chosen: argparse.Namespace, output: Path) -> None:
    from ferrank.ranking.page import Report
    from ferrank.ranking.result import Ranking

    rankings: dict[str, Ranking] = {}
    for path in map(Path, chosen.rankings):
        name = path.stem if path.stem not in rankings else str(path)
        rankings[name] = Ranking.load(path)
    Report(rankings, title=chosen.title).save(output)
    message(f"wrote {output}")


def _plot(paths: list[str], output: Path, top: int) -> None:
    from ferrank.ranking.plot import need_matplotlib
    from ferrank.ranking.result import Ranking

    need_matplotlib()
    if len(paths) > 1:
        raise SettingError(f"output: {output} is a plot of one ranking, {len(paths)} were given; use .html")
    Ranking.load(paths[0]).plot(output, top=top)
    message(f"drew {output}")
