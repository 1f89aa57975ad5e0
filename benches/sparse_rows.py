"""Time and memory of ranking sparse rows, which as dense float64 would take rows x columns x 8 bytes.

python benches/sparse_rows.py --rows 20000 --columns 50000 --density 0.001
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from measure import Cost, cost, peak_growth
from recording import Record, add_option

import ferrank as fr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=50_000)
    parser.add_argument("--density", type=float, default=0.001)
    parser.add_argument("--trees", type=int, default=10)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--ranker", choices=["forest", "relief"], action="append")
    add_option(parser)
    given = parser.parse_args()

    rng = np.random.default_rng(0)
    X = sp.random_array((given.rows, given.columns), density=given.density, rng=rng, format="csr")
    y = (X[:, : given.columns // 10].sum(axis=1) > X[:, -given.columns // 10 :].sum(axis=1)).astype(str)
    rankers = {
        "forest": fr.ForestRanker(n_estimators=given.trees, n_jobs=given.threads),
        "relief": fr.ReliefRanker(n_neighbors=10, n_jobs=given.threads),
    }
    own = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    print(f"{X.shape[0]} x {X.shape[1]}, {X.nnz} entries in {own / 1e6:.0f} MB; dense", end=" ")
    print(f"{8e-9 * given.rows * given.columns:.1f} GB in float64")
    record = Record("sparse_rows")
    for name in given.ranker or rankers:
        spent, peak = measure(name, lambda ranker=rankers[name]: ranker.fit(X, y))
        size = f"{given.rows:,} x {given.columns:,}, density {given.density:g}"
        record.add(
            case=name, size=size, cpu=round(spent.cpu, 1), wall=round(spent.wall, 1), peak_mb=peak // 10**6
        )
    if given.record:
        print(record.write(given.record))


def measure(name: str, fit: Callable[[], object]) -> tuple[Cost, int]:
    spent: list[Cost] = []
    peak = peak_growth(lambda: spent.append(cost(fit)))
    print(f"{name}: {spent[0].cpu:.1f} CPU s, {spent[0].wall:.1f} s, peak {peak / 1e6:.0f} MB more")
    return spent[0], peak


if __name__ == "__main__":
    main()
