"""Relief rankings of other implementations, and the data sets that they rank."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv

from reference.distance import Feature, features_of

DATA = Path(__file__).parent / "data"
GOLDEN = DATA / "golden"
OTHERS = json.loads((GOLDEN / "relief" / "relief.json").read_text())
CLUS = json.loads((GOLDEN / "clus-relief.json").read_text())
# Distances tie in edm (in one query of twelve) and enb (in a third or more), not in jura, slump and emotions.
# Where they do, the first row is nearer in CLUS+, too, but for two things: it compares distances that are not
# rounded, and the first 15 rows of a set are put in an order of their own. Followed in these two respects its
# weights are met in all cases.
OTHERWISE_TIED = [("enb", 1), ("enb", 15)]


def read(dataset: str) -> tuple[list[Feature], Feature]:
    """Features and the target of one of the sets beside relief.json."""
    about = json.loads((GOLDEN / "relief" / f"{dataset}.meta.json").read_text())
    table = pyarrow.csv.read_csv(GOLDEN / "relief" / f"{dataset}.csv")
    names = [name for name, yes in zip(about["features"], about["nominal"], strict=True) if yes]
    return features_of(table, about["features"], nominal=names), features_of(table, ["target"])[0]
