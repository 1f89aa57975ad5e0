"""The reference of the Relief family against other implementations, and against small cases by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.csv
import pytest

from reference import distance
from reference.distance import Feature, features_of
from reference.relief import relief, relieff, rrelieff

GOLDEN = Path(__file__).parent / "data" / "golden"
OTHERS = json.loads((GOLDEN / "relief" / "relief.json").read_text())


def label(case: dict) -> str:
    params = case["params"]
    return f"{case['dataset']}-{case['implementation']}-{params['alg']}-{params.get('k', 1)}"


def read(dataset: str) -> tuple[list[Feature], Feature]:
    """Features and the target of one of the sets beside relief.json."""
    about = json.loads((GOLDEN / "relief" / f"{dataset}.meta.json").read_text())
    table = pyarrow.csv.read_csv(GOLDEN / "relief" / f"{dataset}.csv")
    nominal = [name for name, yes in zip(about["features"], about["nominal"], strict=True) if yes]
    return features_of(table, about["features"], nominal=nominal), features_of(table, ["target"])[0]


@pytest.mark.parametrize("case", OTHERS, ids=label)
def test_agrees_with_corelearn_weka_and_orange(case):
    features, target = read(case["dataset"])
    algorithm, k = case["params"]["alg"], case["params"].get("k")
    if algorithm.startswith("RReliefF"):
        weights = rrelieff(features, distance.mean_distance([target]), k=k)
    elif algorithm == "Relief":
        weights = relief(features, target.values)
    else:
        weights = relieff(features, target.values, k=k)
    assert np.abs(weights - case["weights"]).max() < 1e-9
