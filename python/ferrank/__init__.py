"""Feature ranking by ensembles of trees and by neighbours, for every kind of target and any size of data.

>>> import ferrank, numpy as np
>>> a, b = np.random.default_rng(0).normal(size=(2, 100))
>>> ferrank.rank({"a": a, "b": b, "y": 3 * b}, target="y", n_estimators=20).top(1)
['b']
"""

import lazy_loader

from ferrank import _interpreter

_interpreter.check()

# Imported when they are asked for, as the stub beside this module says: most need scikit-learn, which takes a
# second.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
