"""``ferrank study``."""

import argparse
import signal
from pathlib import Path
from typing import Any

from ferrank.cli.options import examples
from ferrank.cli.progress import message, progress_line

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "study",
        help="compare rankers over data sets and splits",
        description="Do the study that PLAN, a TOML file or the name of a plan that comes with ferrank "
        "(mtr-ranking, mlc-ranking, ssl-ranking, error-curves, relieff-trees), describes: data sets, "
        "rankers, splits and a judge. A study that was killed goes on from what its folder holds.",
        epilog=examples(
            "ferrank study plan.toml --output results",
            "ferrank study mtr-ranking --data sets -o results --jobs 2",
        ),
    )
    parser.add_argument(
        "plan", metavar="PLAN", help="a TOML file, or the name of a plan that comes with ferrank"
    )
    parser.add_argument("--data", metavar="DIR", help="where paths of data sets start; default: beside PLAN")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="folder for the results")
    parser.add_argument(
        "--jobs", dest="n_jobs", type=int, default=1, metavar="N", help="processes; default: 1"
    )
    parser.add_argument(
        "--measure", metavar="NAME", help="what is shown; default: as PLAN says, or by the task"
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.errors import SettingError
    from ferrank.evaluate.extra import need
    from ferrank.evaluate.measures import check_measure
    from ferrank.evaluate.study import read_plan
    from ferrank.evaluate.study.figure_checks import check_measures

    plan = read_plan(chosen.plan, data=chosen.data, folder=chosen.output, measure=chosen.measure)
    if plan.missing:
        message(f"left out, for the files are not there: {', '.join(plan.missing)}")
    wanted, there = plan.measure, plan.study.measures()
    if wanted is not None:
        where = "measure" if chosen.measure else f"{chosen.plan}: measure"
        check_measure(wanted, there or [wanted], where)
    if there is not None and not plan.missing:
        check_measures(plan.figures, there, str(chosen.plan))
    if len(plan.study.data) > 1:
        need("scikit_posthocs", "comparisons of several data sets")
    # Processes that work for a study end with it, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with progress_line() as progress:
        found = plan.study.run(n_jobs=chosen.n_jobs, progress=progress)
    measures = [wanted] if wanted else found.main_measures
    for measure in measures:
        # Data sets of several tasks have a table for each.
        stem = "results" if len(measures) == 1 else f"results-{measure}"
        for suffix in (".html", ".md", ".tex", ".csv"):
            found.save(Path(chosen.output) / (stem + suffix), measure)
    failed = _make_figures(plan, found, Path(chosen.output))
    for measure in measures:
        print(f"{found.caption(measure)}\n")
        print(found.to_text("markdown", measure))
        if len(found.table(measure).dropna(how="all")) > 1:
            print(found.compare(measure=measure).to_text())
    message(f"saved all numbers and tables to {chosen.output}")
    if failed and not plan.missing:
        raise SettingError(
            f"figures: {', '.join(failed)} could not be made; the tables and the others are there"
        )


def _make_figures(plan: Any, found: Any, folder: Path) -> list[str]:
    """Make what figures the results allow, and return the names of the others.

    Data sets that were left out may leave too little for some. What is wrong with one takes no others away.
    """
    from ferrank.errors import FerrankError
    from ferrank.evaluate.study.study import keep_figures

    failed: list[str] = []
    made: list[Path] = []
    for name, figure in plan.figures.items():
        try:
            made += figure.make(found, folder, name)
        except Exception as error:
            kind = "" if isinstance(error, FerrankError) else f"{type(error).__name__}: "
            message(f"figures.{name}: {kind}{error}")
            failed.append(name)
    keep_figures(folder, made)
    return failed
