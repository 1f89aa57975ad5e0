"""Rankings by CLUS+, the system of the papers: ours agree with them as they agree with each other."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ferrank as fr
from agreement import between, within
from reference.arff import domain, read_arff
from reference.hierarchy import of_domain

pytestmark = pytest.mark.slow

DATA = Path(__file__).parent / "data"
CLUS = json.loads((DATA / "golden" / "clus.json").read_text())
ENSEMBLES = {"RForest": "random_forest", "Bagging": "bagging", "ExtraTrees": "extra_trees"}
SCORES = {"Genie3": "genie3", "Symbolic": "symbolic", "RForest": "permutation"}
SEEDS = range(5)
CASES = sorted({(r["dataset"], r["ensemble"], r["n_trees"], r["score"]) for r in CLUS["rankings"]})
# Half of the features of enb are constant in most nodes. In CLUS+ they use up candidates, so that trees end
# early; here others are drawn instead, and the features that still vary are tested more often. With the rule
# of CLUS+ in `Pool::try_draw` these cases agree, and so do all others.
CONSTANT_FEATURES = [
    case for case in CASES if case[0] == "enb" and case[1] != "Bagging" and case[3] == "Symbolic"
]


@cache
def our_ranking(dataset: str, ensemble: str, n_trees: int, seed: int) -> fr.Ranking:
    about = CLUS["datasets"][dataset]
    scores = ("genie3", "symbolic") if ensemble == "ExtraTrees" else ("genie3", "symbolic", "permutation")
    ranker = fr.ForestRanker(
        ensemble=ENSEMBLES[ensemble],
        n_estimators=n_trees,
        max_features="all" if ensemble == "Bagging" else "sqrt",
        max_bins=65_535,
        ties="lowest",
        # CLUS+ sends a row with a missing value down both branches, and what is missing tells nothing. Of
        # these sets church_FUN alone has missing values.
        missing="ignore",
        scores=scores,
        random_state=seed,
    )
    path = DATA / f"{dataset}.arff"
    table = read_arff(path).select([*about["features"], *about["targets"]])
    task = "multi-label" if dataset == "emotions" else None
    parents = of_domain(domain(path)) if dataset == "church_FUN" else None
    return fr.rank(table, target=about["targets"], task=task, hierarchy=parents, ranker=ranker)


def marked(case: tuple) -> tuple:
    if case in CONSTANT_FEATURES:
        return pytest.param(*case, marks=pytest.mark.xfail(reason="constant features", strict=True))
    return case


@pytest.mark.parametrize(("dataset", "ensemble", "n_trees", "score"), [marked(case) for case in CASES])
def test_agrees_with_clus(dataset, ensemble, n_trees, score):
    case = {"dataset": dataset, "ensemble": ensemble, "n_trees": n_trees, "score": score}
    theirs = [np.array(r["importance"]) for r in CLUS["rankings"] if case.items() <= r.items()]
    ours = [our_ranking(dataset, ensemble, n_trees, seed).importances(SCORES[score]) for seed in SEEDS]
    # Of church_FUN there is one ranking of theirs for each score.
    assert between(ours, theirs) >= within(theirs if len(theirs) > 1 else ours) - 0.03
