"""Studies: data sets × rankers × splits → measures → tables and tests, resumable and parallel.

:mod:`.splits` parts the rows, :mod:`.cells` is the work on one split, :mod:`.study` does all of it,
:mod:`.results` is what comes out, :mod:`.plan` reads a study from a TOML file.
"""

from ferrank.evaluate.study.cells import WeightedNeighbors
from ferrank.evaluate.study.plan import PLANS, read_plan
from ferrank.evaluate.study.results import Results
from ferrank.evaluate.study.splits import CrossValidation, Repeated
from ferrank.evaluate.study.study import Study

__all__ = ["PLANS", "CrossValidation", "Repeated", "Results", "Study", "WeightedNeighbors", "read_plan"]
