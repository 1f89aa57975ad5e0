"""Studies: data sets × rankers × splits → measures → tables and tests, resumable and parallel.

:mod:`.splits` parts the rows, :mod:`.judges` say how good rankings are, :mod:`.cells` is the work on one
split, :mod:`.study` does all of it, :mod:`.results` is what comes out, :mod:`.figures` are the papers' tables
and pictures of it, :mod:`.plan` reads a study from a TOML file, :mod:`.page` shows a finished one.
"""

from ferrank.evaluate.study.cells import NoisyTruth
from ferrank.evaluate.study.judges import ErrorCurves, KeptImportances, Truth, WeightedNeighbors
from ferrank.evaluate.study.page import report_study
from ferrank.evaluate.study.plan import PLANS, read_plan
from ferrank.evaluate.study.results import Results
from ferrank.evaluate.study.splits import CrossValidation, Repeated
from ferrank.evaluate.study.study import Study

__all__ = [
    "PLANS",
    "CrossValidation",
    "ErrorCurves",
    "KeptImportances",
    "NoisyTruth",
    "Repeated",
    "Results",
    "Study",
    "Truth",
    "WeightedNeighbors",
    "read_plan",
    "report_study",
]
