"""Trees and scores straight from the formulas: every test is tried, every sum is taken anew.

Slow, short and independent of the engine, which must agree with it.
"""
