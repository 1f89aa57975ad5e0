"""Out-of-bag scores beside scikit-learn's on nine data sets: `python benches/oob.py --help`.

Both grow the same kind of forest on the same matrix of numbers, in which categories are codes, over several
seeds: scikit-learn's defaults, which are all features as candidates for numbers and the square root of their
number, rounded down, for classes; leaves of one row, and a cut between any two values. Numeric targets have
the same variance, as ferrank has it and scikit-learn does not. With `--few`, numbers have few candidates,
too: features that are constant in a node count as such in scikit-learn and do not in ferrank, so that trees
on features of few values differ. The ratio is the difference of the means in standard deviations of
scikit-learn's score over seeds.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from recording import Record, add_option
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

import ferrank as fr
from ferrank.data.source import read_all

DATA = Path(__file__).parent.parent / "tests" / "data"
SETS = {
    "breast-w": ["Class"],
    "diabetes": ["class"],
    "german": ["class"],
    "heart-c": ["num"],
    "iris": ["class"],
    "wine": ["class"],
    "abalone": ["Class_Rings"],
    "enb": ["Y1", "Y2"],
    "jura": ["Cd", "Co", "Cu"],
}
REGRESSION = {"abalone", "enb", "jura"}
TREES = 200


def matrix(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features and the targets of a data set as numbers."""
    data = fr.Dataset(DATA / f"{name}.arff", SETS[name])
    frame = read_all(data.source()).to_pandas()
    codes = frame.apply(
        lambda column: column if column.dtype.kind in "if" else pd.factorize(column, sort=True)[0]
    ).mask(frame.isna())
    return codes[data.features].to_numpy(float), codes[data.targets].to_numpy(float)


def scores(name: str, seeds: range, *, few: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return our and scikit-learn's out-of-bag scores, each of shape (n_seeds,)."""
    X, y = matrix(name)
    is_classes = name not in REGRESSION
    y = y.astype(int).astype(str) if is_classes else (y - y.mean(axis=0)) / y.std(axis=0)
    y = y[:, 0] if y.shape[1] == 1 else y
    peer = RandomForestClassifier if is_classes else RandomForestRegressor
    settings: dict[str, Any] = {"n_estimators": TREES}
    settings["max_features"] = int(X.shape[1] ** 0.5) if is_classes or few else 1.0
    ours, theirs = [], []
    for seed in seeds:
        found = (
            fr.ForestRanker(
                keep_trees=True, min_samples_leaf=1, max_bins=65_535, random_state=seed, **settings
            )
            .fit(X, y)
            .oob_score_
        )
        ours.append(np.mean(found))
        theirs.append(peer(oob_score=True, random_state=seed, **settings).fit(X, y).oob_score_)
    return np.array(ours), np.array(theirs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="forests of each kind")
    parser.add_argument("--few", action="store_true", help="few candidate features for numbers, too")
    add_option(parser)
    chosen = parser.parse_args()
    record = Record("oob")
    for name in SETS:
        ours, theirs = scores(name, range(chosen.seeds), few=chosen.few)
        apart = (ours.mean() - theirs.mean()) / theirs.std(ddof=1)
        print(
            f"{name:10} ours {ours.mean():.4f} ({ours.std(ddof=1):.4f})  "
            f"scikit-learn {theirs.mean():.4f} ({theirs.std(ddof=1):.4f})  {apart:+.1f} deviations"
        )
        record.add(
            case=name,
            baseline="scikit-learn",
            ratio=round(float(apart), 2),
            ours=round(float(ours.mean()), 4),
            theirs=round(float(theirs.mean()), 4),
            spread=round(float(theirs.std(ddof=1)), 4),
        )
    if chosen.record is not None:
        print(record.write(chosen.record))


if __name__ == "__main__":
    main()
