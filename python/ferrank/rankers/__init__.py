"""The rankers: forests and Relief as scikit-learn estimators, ``rank`` for data sets, and runs in parts."""
