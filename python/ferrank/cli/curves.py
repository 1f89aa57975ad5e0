"""``ferrank curves``."""

import argparse
import json
from pathlib import Path
from typing import Any

from ferrank.cli.options import (
    add_data,
    add_hierarchy,
    add_roles,
    add_settings,
    columns_of,
    examples,
    positive,
)
from ferrank.cli.progress import message, progress_line
from ferrank.errors import SettingError
from ferrank.output import check_optional, replace
from ferrank.resources import check_processes

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "curves",
        help="draw error curves of rankers",
        description="Judge rankers by models of ever more features, from the best (forward) and from the "
        "worst (reverse), beside random rankings, and by how alike their rankings of the folds are.",
        epilog=examples(
            "ferrank curves iris.csv --target class --ranker forest --ranker relief --plot curves.png",
            "ferrank curves iris.csv -t class --ranking ranking.parquet --folds 5 --json",
        ),
    )
    add_data(parser)
    add_hierarchy(add_roles(parser, weights=False))
    group = parser.add_argument_group("rankers")
    group.add_argument(
        "-r",
        "--ranker",
        action="append",
        metavar="NAME",
        help="forest (default), relief, information_gain, chi_squared, svm_rfe, laplace, "
        "multilabel_laplace, sfss, sefr, label_power_set, pairwise_labels, binary_relevance; can be repeated",
    )
    group.add_argument(
        "--inner",
        dest="inner_ranker",
        metavar="NAME",
        help="the ranker of classes to which label_power_set, pairwise_labels and binary_relevance give "
        "label sets, with its settings; default: relief",
    )
    group.add_argument(
        "--ranking",
        action="append",
        default=[],
        metavar="FILE",
        help="a saved ranking, taken as it is; can be repeated",
    )
    add_settings(parser, group)
    group = parser.add_argument_group("curves")
    group.add_argument(
        "--model",
        choices=["knn", "svm", "naive_bayes", "decision_tree", "random_forest"],
        default="knn",
        help="default: knn",
    )
    group.add_argument(
        "--folds", type=positive, default=10, metavar="N", help="of cross-validation; default: 10"
    )
    group.add_argument(
        "--repeats", type=positive, default=1, metavar="N", help="of cross-validation; default: 1"
    )
    group.add_argument(
        "--sizes",
        choices=["paper", "linear", "quadratic", "exponential"],
        default="paper",
        help="numbers of features in the models; default: paper (all up to 50, then fewer)",
    )
    group.add_argument(
        "--step", dest="size_step", type=positive, metavar="N", help="of sizes other than paper"
    )
    group.add_argument(
        "--random-rankings", dest="n_random", type=int, metavar="N", help="in each split; default: 100 in all"
    )
    group.add_argument("--jobs", type=int, metavar="N", help="splits at once; default: 1, -1 is all cores")
    group = parser.add_argument_group("results")
    group.add_argument("-o", "--output", metavar="FILE.csv", help="save the points of the curves")
    group.add_argument("--plot", metavar="FILE", help="draw curves and stability as .png, .svg or .pdf")
    group.add_argument("--json", action="store_true", help="print one JSON object instead of the table")
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.evaluate.curves import curves
    from ferrank.evaluate.splits import RANDOM
    from ferrank.ranking.plot import PLOT_SUFFIXES, need_matplotlib

    output = check_optional(chosen.output, (".csv",))
    plot = check_optional(chosen.plot, PLOT_SUFFIXES)
    if plot is not None:
        need_matplotlib()
    names = list(dict.fromkeys(chosen.ranker or ([] if chosen.ranking else ["forest"])))
    if RANDOM in names:
        raise SettingError("ranker: random rankings are there anyway; --random-rankings says how many")
    rankers = _rankers(chosen, names)
    for path in map(Path, chosen.ranking):
        if path.stem in rankers:
            raise SettingError(f"ranking: another one is called '{path.stem}'; rename {path}")
        rankers[path.stem] = path
    check_processes(chosen.jobs, "jobs")
    with progress_line() as progress:
        found = curves(
            chosen.data,
            rankers=rankers,
            **columns_of(chosen, "hierarchy_decay"),
            model=chosen.model,
            sizes=chosen.sizes,
            step=chosen.size_step,
            folds=chosen.folds,
            repeats=chosen.repeats,
            n_random=chosen.n_random,
            random_state=vars(chosen).get("random_state", 0),
            n_jobs=chosen.jobs,
            progress=progress,
        )
    if output is not None:
        replace(output, lambda partial: found.to_pandas().to_csv(partial, index=False))
        message(f"saved {output}")
    if plot is not None:
        found.plot(plot)
        message(f"drew {plot}")
    print(json.dumps(found.to_dict(), allow_nan=False) if chosen.json else found.to_text())


def _rankers(chosen: argparse.Namespace, names: list[str]) -> dict[str, Any]:
    """Return the rankers by name; transformations of label sets share the one that ``--inner`` names."""
    from ferrank.cli.rankers import make_plans
    from ferrank.evaluate.baselines import BASELINES, TRANSFORMATIONS
    from ferrank.rankers.estimators import RANKERS

    transformed = [name for name in names if name in TRANSFORMATIONS]
    if chosen.inner_ranker is not None and not transformed:
        raise SettingError(f"inner: for {', '.join(TRANSFORMATIONS)}; name one of them as ranker")
    others = [name for name in names if name not in TRANSFORMATIONS]
    inner = [chosen.inner_ranker or "relief"] if transformed else []
    made = make_plans(chosen, [*others, *inner], RANKERS | BASELINES)
    rankers: dict[str, Any] = dict(zip(others, made, strict=False))
    rankers |= {name: TRANSFORMATIONS[name](inner=made[-1]) for name in transformed}
    return {name: rankers[name] for name in names}
