"""``ferrank synth``."""

import argparse
from typing import Any

from ferrank.cli.options import examples, positive
from ferrank.cli.progress import message
from ferrank.output import check_optional, check_path

__all__ = ["add_to"]


def add_to(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "synth",
        help="draw synthetic data",
        description="Draw a synthetic data set whose relevant features are known: single, pair, combined "
        "(classes; features that matter alone, by XOR, both), parity, parity_regression, modulo8, fraction "
        "(all informative features together), linear, cosinus, krk, regression, multilabel.",
        epilog=examples(
            "ferrank synth pair --rows 500 --output pair.arrow",
            "ferrank synth multilabel --targets 5 -o labels.arrow --truth truth.json",
        ),
    )
    parser.add_argument("name", metavar="NAME", help="what to draw")
    parser.add_argument("--rows", type=positive, default=1_000, metavar="N", help="default: 1000")
    parser.add_argument("--features", type=positive, default=100, metavar="N", help="in all; default: 100")
    parser.add_argument(
        "--informative",
        type=positive,
        default=3,
        metavar="N",
        help="not of single, pair, combined; default: 3",
    )
    parser.add_argument(
        "--targets", type=positive, default=1, metavar="N", help="of regression and multilabel"
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="default: 0")
    parser.add_argument("-o", "--output", required=True, metavar="FILE.arrow", help="where to write the data")
    parser.add_argument(
        "--truth", metavar="FILE", help="save the true ranking as .csv, .parquet, .arrow or .json"
    )
    parser.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    from ferrank.data.convert import convert
    from ferrank.evaluate.synth import synthesize
    from ferrank.ranking.storage import SUFFIXES

    output = check_path(chosen.output, (".arrow",))
    truth = check_optional(chosen.truth, SUFFIXES)
    data = synthesize(
        chosen.name,
        chosen.rows,
        n_features=chosen.features,
        n_informative=chosen.informative,
        n_targets=chosen.targets,
        random_state=chosen.seed,
    )
    rows = convert(data.to_arrow(), output)
    message(f"wrote {rows:,} rows to {output}")
    if truth is not None:
        data.ranking.save(truth)
        message(f"saved {truth}")
    relevant = ", ".join(name for name, matters in zip(data.features, data.relevant, strict=True) if matters)
    print(
        f"{data.name}: {len(data.features):,} features, {data.task} of {', '.join(data.targets)}\n"
        f"relevant: {relevant}"
    )
