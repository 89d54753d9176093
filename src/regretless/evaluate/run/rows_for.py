"""Blocks of a file as a learner takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.errors import BadRow

LARGEST = 50_000_000  # numbers of a block that is made dense


def rows_for(learner: Any, X: Any) -> Any:
    """The rows of a block: a table for learners that read tables, else an array or a CSR matrix of numbers."""
    if learner.reads_tables:
        return X
    if sparse.issparse(X):
        if learner.takes_sparse:
            return X
        if X.shape[0] * X.shape[1] > LARGEST:
            raise ValueError(
                f"{type(learner).__name__} takes no sparse rows, and {X.shape[1]} columns are too many to fill in: "
                "choose OGD, LinearizedFTRL or Perceptron, or read fewer rows at a time."
            )
        return X.toarray()
    words = [name for name in X.column_names if str(X.schema.field(name).type) != "double"]
    if words:
        raise ValueError(
            f"{type(learner).__name__} takes numbers, and column {words[0]!r} holds categories: choose "
            "OnlineLogisticRegression, which takes both, or leave the column out."
        )
    return np.column_stack([X[name].to_numpy() for name in X.column_names])


def labels_for(learner: Any, y: Any) -> Any:
    """Labels, or the numbers a regressor forecasts."""
    from sklearn.base import is_regressor

    if not is_regressor(learner):
        return y
    if np.asarray(y).dtype.kind not in "iuf":
        raise BadRow(f"{type(learner).__name__} forecasts numbers, and the target {y[0]!r} is none.")
    return np.asarray(y, dtype=np.float64)
