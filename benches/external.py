"""Random forests of XGBoost and LightGBM on an Arrow file that memory does not hold.

The work that each function returns tells the CPU and wall seconds before the first tree and of the trees.
XGBoost reads batches by its external memory, with its pages in files; LightGBM fills its bins in two rounds
over the file, by rows of a sequence, and then holds them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

#: Share of the rows that a bootstrap has, once each.
SHARE = 0.632
Seconds = dict[str, float]


def clock() -> tuple[float, float]:
    return time.process_time(), time.perf_counter()


def seconds(started: tuple[float, float], built: tuple[float, float]) -> Seconds:
    ended = clock()
    return {
        "setup_cpu": built[0] - started[0],
        "setup_wall": built[1] - started[1],
        "growing_cpu": ended[0] - built[0],
        "growing_wall": ended[1] - built[1],
    }


class Batches:
    """The batches of an Arrow file as arrays of rows, one at a time."""

    def __init__(self, path: Path, target: str, other: str) -> None:
        self.file = pa.ipc.open_file(pa.memory_map(str(path)))
        self.names = [name for name in self.file.schema.names if name not in (target, other)]
        self.target = target
        self.held = (-1, np.empty((0, 0), dtype=np.float32))

    def __len__(self) -> int:
        return self.file.num_record_batches

    def rows(self, number: int) -> np.ndarray:
        if self.held[0] != number:
            batch = self.file.get_batch(number)
            self.held = number, np.column_stack([batch[name].to_numpy() for name in self.names])
        return self.held[1]

    def y(self, number: int) -> np.ndarray:
        return self.file.get_batch(number)[self.target].to_numpy()


def xgboost(
    path: Path, target: str, other: str, trees: int, depth: int, threads: int
) -> Callable[[], Seconds]:
    import xgboost as xgb

    batches = Batches(path, target, other)

    class Iterator(xgb.DataIter):
        def __init__(self) -> None:
            self.number = 0
            super().__init__(cache_prefix=str(path.parent / "xgboost"))

        def next(self, input_data: Any) -> bool:
            if self.number == len(batches):
                return False
            input_data(data=batches.rows(self.number), label=batches.y(self.number))
            self.number += 1
            return True

        def reset(self) -> None:
            self.number = 0

    def work() -> Seconds:
        started = clock()
        data = xgb.ExtMemQuantileDMatrix(Iterator(), max_bin=255, nthread=threads)
        built = clock()
        settings = {
            "tree_method": "hist",
            "max_bin": 255,
            "num_parallel_tree": trees,
            "learning_rate": 1.0,
            "subsample": SHARE,
            "colsample_bynode": len(batches.names) ** -0.5,
            "max_depth": depth,
            "min_child_weight": 2,
            "nthread": threads,
        }
        xgb.train(settings, data, num_boost_round=1)
        return seconds(started, built)

    return work


def lightgbm(
    path: Path, target: str, other: str, trees: int, depth: int, threads: int
) -> Callable[[], Seconds]:
    import lightgbm as lgb

    batches = Batches(path, target, other)
    height = batches.file.get_batch(0).num_rows
    n_rows = (len(batches) - 1) * height + batches.file.get_batch(len(batches) - 1).num_rows

    class Rows(lgb.Sequence):
        batch_size = height

        def __len__(self) -> int:
            return n_rows

        def __getitem__(self, index: Any) -> np.ndarray:
            first = index.start if isinstance(index, slice) else index
            rows = batches.rows(first // height)
            return (rows if isinstance(index, slice) else rows[first % height]).astype(np.float64)

    def work() -> Seconds:
        started = clock()
        settings = {
            "boosting": "rf",
            "objective": "regression",
            "max_bin": 255,
            "bagging_freq": 1,
            "bagging_fraction": SHARE,
            "feature_fraction_bynode": len(batches.names) ** -0.5,
            "max_depth": depth,
            "num_leaves": 2**depth,
            "min_data_in_leaf": 2,
            "num_threads": threads,
            "two_round": True,
            "verbose": -1,
        }
        y = np.concatenate([batches.y(number) for number in range(len(batches))])
        data = lgb.Dataset(Rows(), label=y, params=settings).construct()
        built = clock()
        lgb.train(settings, data, num_boost_round=trees)
        return seconds(started, built)

    return work


PEERS = {"xgboost": xgboost, "lightgbm": lightgbm}
