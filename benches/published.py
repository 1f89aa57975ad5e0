"""Judgements beside those that the papers published: `python benches/published.py --help`.

It needs the papers' data, which are not part of this repository: `DATA/mlc` with the training and test files
and label lists of MULAN, `DATA/mtr` with its multi-target sets, and `PUBLISHED` with published_mlc.csv and
published_mlc_relief.csv, made of the tables at github.com/Petkomat/mlc-ranking.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
from scipy.stats import wilcoxon

import ferrank as fr
from ferrank.evaluate import Evaluation, evaluate

SETS = ("emotions", "scene", "birds", "enron", "bibtex")
ALL_BINARY = {"enron", "bibtex"}
MEASURES = {
    "averageAUPRC": "average_auprc",
    "pooledAUPRC": "pooled_auprc",
    "averageAUROC": "average_auroc",
    "MicroPrecision": "micro_precision",
    "MicroRecall": "micro_recall",
    "MicroFOne": "micro_f1",
    "MLPrecision": "multilabel_precision",
    "MLRecall": "multilabel_recall",
    "MLFOneMeasure": "multilabel_f1",
    "MLAccuracy": "multilabel_accuracy",
    "HammingLoss": "hamming_loss",
    "SubsetAccuracy": "subset_accuracy",
    "OneError": "one_error",
    "Coverage": "coverage",
    "RankingLoss": "ranking_loss",
}
WITHIN = {"pooledAUPRC": 0.04, "RankingLoss": 0.015}
GAP = 0.05
ENSEMBLES = {"Bagging": "bagging", "RForest": "random_forest", "ExtraTrees": "extra_trees"}
SCORES = {"Genie3": "genie3", "Symbolic": "symbolic", "RForest": "permutation"}
TREES = 10

# The last so many columns are targets.
MTR = {
    "andro": 6,
    "atp1d": 6,
    "edm": 2,
    "enb": 2,
    "jura": 3,
    "oes97": 16,
    "osales": 12,
    "rf1": 8,
    "sf1": 3,
    "slump": 3,
}
SPLITS = 10

Published = dict[tuple[str, ...], str]


def published_baseline(folder: Path) -> Published:
    with (folder / "published_mlc_relief.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["method"] == "baseline"]
    return {(row["dataset"], row["measure"]): row["value"] for row in rows}


def judged(data: Path, name: str, rankings: dict[str, fr.Ranking]) -> Evaluation:
    """By the conventions of the system that made the published figures."""
    path = str(data / "mlc" / name)
    return evaluate(
        f"{path}-train.arff", rankings, test=f"{path}-test.arff", labels=f"{path}.xml", conventions="clus"
    )


def baseline(data: Path, published: Published, chosen: list[str]) -> None:
    print("Unweighted 15NN, by digits printed (three)\n")
    print("measure".ljust(16), *(name.rjust(18) for name in chosen))
    found = {name: judged(data, name, {}).measures for name in chosen}
    same = 0
    for theirs, ours in MEASURES.items():
        cells = []
        for name in chosen:
            value, expected = found[name][ours][0], float(published[name, theirs])
            equal = f"{value:.2e}" == f"{expected:.2e}"
            same += equal
            cells.append(f"{value:.5g} {'=' if equal else '≠'} {expected:.3g}")
        print(theirs.ljust(16), *(cell.rjust(18) for cell in cells))
    print(f"\n{same} of {len(chosen) * len(MEASURES)} equal to every printed digit\n")


def rankings(data: Path, folder: Path, chosen: list[str], seeds: int) -> None:
    with (folder / "published_mlc.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["n_trees"] == str(TREES)]
    published = {
        (row["dataset"], row["ensemble"], row["score"], row["measure"]): float(row["value"]) for row in rows
    }
    print(f"15NN weighted by rankings of {TREES} trees, mean ± standard deviation of {seeds} seeds;")
    print(f"gap: published less the unweighted one. Genie3 within {WITHIN}; the others on the same side\n")
    print("set       ensemble    score     measure        published     ours               gap  verdict")
    counts: dict[str, int] = defaultdict(int)
    for name in chosen:
        values = seeded(data, name, seeds)
        for (ensemble, score), figures in values.items():
            for measure, tolerance in WITHIN.items():
                theirs = published[name, ensemble, score, measure]
                ours, plain = figures[MEASURES[measure]], figures["unweighted", MEASURES[measure]][0]
                verdict = judge(name, ensemble, score, theirs, np.mean(ours), plain, tolerance)
                counts[verdict.partition(" by")[0]] += 1
                print(
                    f"{name:<9} {ensemble:<11} {score:<9} {measure:<12} {theirs:>10.4f} "
                    f"{np.mean(ours):>9.4f} ± {np.std(ours, ddof=1):.4f} {theirs - plain:>+9.4f}  {verdict}"
                )
    print("\n" + ", ".join(f"{verdict}: {count}" for verdict, count in counts.items()) + "\n")


def judge(
    name: str, ensemble: str, score: str, theirs: float, ours: float, plain: float, tolerance: float
) -> str:
    if ensemble == "ExtraTrees" and name in ALL_BINARY:
        return "left out, all binary"
    if score == "Genie3":
        return "within" if abs(ours - theirs) <= tolerance else f"OFF by {ours - theirs:+.4f}"
    if abs(theirs - plain) <= GAP:
        return "gap too small to tell"
    return "same side" if (ours - plain) * (theirs - plain) > 0 else f"OTHER SIDE by {ours - plain:+.4f}"


def seeded(data: Path, name: str, seeds: int) -> dict[tuple[str, str], dict]:
    """Figures by ensemble and score, a list over seeds for each measure."""
    path = str(data / "mlc" / name)
    values: dict[tuple[str, str], dict] = defaultdict(lambda: defaultdict(list))
    for ensemble, grown in ENSEMBLES.items():
        scores = {
            theirs: ours for theirs, ours in SCORES.items() if (ensemble, theirs) != ("ExtraTrees", "RForest")
        }
        for seed in range(seeds):
            # Of tests that are equally good CLUS takes the first.
            forest = fr.ForestRanker(
                ensemble=grown,
                n_estimators=TREES,
                scores=tuple(scores.values()),
                ties="lowest",
                random_state=seed,
            )
            ranking = fr.rank(f"{path}-train.arff", labels=f"{path}.xml", ranker=forest)
            found = judged(data, name, {"forest": ranking})
            for theirs, ours in scores.items():
                for measure in WITHIN:
                    figures = values[ensemble, theirs]
                    figures[MEASURES[measure]].append(found.value(MEASURES[measure], f"forest:{ours}"))
                    figures["unweighted", MEASURES[measure]] = found.measures[MEASURES[measure]][:1]
    return values


def multi_target(data: Path, splits: int) -> None:
    print(f"Mean RRMSE of 5NN over {splits} splits into 2/3 and 1/3: unweighted, and weighted by genie3 of a")
    print("random forest of 100 trees (Petković et al. 2020a, §4, table 7)\n")
    print("set      rows x features  targets  unweighted   weighted    ratio   splits in which it is better")
    means = []
    for name, n_targets in MTR.items():
        table = read(data / "mtr" / f"{name}.arff")
        pairs = np.array([split(table, n_targets, seed) for seed in range(splits)])
        means.append(pairs.mean(axis=0))
        plain, weighted = means[-1]
        shape = f"{table.num_rows} x {table.num_columns - n_targets}"
        better = (pairs[:, 1] < pairs[:, 0]).sum()
        print(
            f"{name:<8} {shape:<15} {n_targets:>8} {plain:>11.4f} {weighted:>10.4f} {weighted / plain:>8.3f}"
            f"   {better} of {splits}"
        )
    plain, weighted = np.array(means).T
    better = (weighted < plain).sum()
    p = wilcoxon(plain, weighted).pvalue
    print(f"\nWeighted better on {better} of {len(means)} sets; Wilcoxon's test: p = {p:.4f}\n")


def read(path: Path) -> pa.Table:
    with tempfile.TemporaryDirectory() as folder:
        arrow = Path(folder) / "data.arrow"
        fr.convert(path, arrow)
        return pa.feather.read_table(arrow, memory_map=False)


def split(table: pa.Table, n_targets: int, seed: int) -> tuple[float, float]:
    order = np.random.default_rng(seed).permutation(table.num_rows)
    cut = round(table.num_rows * 2 / 3)
    train, test = table.take(order[:cut]), table.take(order[cut:])
    ranking = fr.rank(train, target_last=n_targets, task="multi-target", random_state=seed)
    found = evaluate(train, ranking, test=test, target_last=n_targets, task="multi-target", n_neighbors=5)
    return tuple(found.measures["rrmse"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("published", type=Path)
    parser.add_argument(
        "--part", action="append", choices=["baseline", "rankings", "multi-target"], help="default: all"
    )
    parser.add_argument("--set", action="append", choices=SETS, help="multi-label sets; default: all")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--splits", type=int, default=SPLITS)
    chosen = parser.parse_args()
    parts = chosen.part or ["baseline", "rankings", "multi-target"]
    sets = chosen.set or list(SETS)
    if "baseline" in parts:
        baseline(chosen.data, published_baseline(chosen.published), sets)
    if "rankings" in parts:
        rankings(chosen.data, chosen.published, sets, chosen.seeds)
    if "multi-target" in parts:
        multi_target(chosen.data, chosen.splits)


if __name__ == "__main__":
    main()
