"""Columns that look like identifiers: they tell nothing about other rows, and a learner wastes weights on them."""

from __future__ import annotations

from typing import Any

import numpy as np

LEAST = 50  # rows to judge by
MOST_DIFFERENT = 0.95  # share of different values in a column of identifiers


def identifiers(X: Any) -> list[str]:
    """The names of columns of a table that look like identifiers: text without repetitions, or consecutive integers.

    >>> import pyarrow as pa
    >>> n = range(60)
    >>> identifiers(pa.table({"order": [f"A{t}" for t in n], "row": [float(t) for t in n], "x": [1.5] * 60}))
    ['order', 'row']
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = []
    for name in X.column_names if hasattr(X, "column_names") else ():
        known = X[name].drop_null()
        if len(known) < LEAST:
            continue
        if pa.types.is_string(known.type):
            if pc.count_distinct(known).as_py() >= MOST_DIFFERENT * len(known):
                found.append(name)
        elif pa.types.is_floating(known.type) and (np.diff(known.to_numpy()) == 1.0).all():
            found.append(name)
    return found
