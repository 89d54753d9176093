"""Blocks of a file in the input format of a learner."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.rows.calendar import CALENDAR, calendar_features
from regretless.evaluate.players import take
from regretless.streams import Block

LARGEST = 50_000_000  # most numbers of a sparse block that is made dense


def rows_for(learner: Any, X: Any) -> Any:
    """The rows of a block: a table for learners that accept tables, else a numeric array or CSR matrix.

    Dates become calendar features for learners that do not accept tables.
    """
    if learner.reads_tables:
        return X
    if sparse.issparse(X):
        return _sparse_for(learner, X)
    X = _with_calendar(X)
    words = [name for name in X.column_names if str(X.schema.field(name).type) != "double"]
    if words:
        raise ValueError(
            f"{type(learner).__name__} accepts only numbers, and column {words[0]!r} has categories: choose "
            "OnlineLogisticRegression, which accepts both, or drop the column."
        )
    return np.column_stack([X[name].to_numpy() for name in X.column_names])


def _sparse_for(learner: Any, X: Any) -> Any:
    if learner.takes_sparse:
        return X
    if X.shape[0] * X.shape[1] > LARGEST:
        raise ValueError(
            f"{type(learner).__name__} does not accept sparse rows, and {X.shape[1]} columns are too many to make "
            "dense: choose OnlineLogisticRegression, LinearizedFTRL or OGD, or read fewer rows at a time."
        )
    return X.toarray()


def _with_calendar(X: Any) -> Any:
    """The table with calendar features in the place of dates."""
    import pyarrow as pa

    if not any(pa.types.is_timestamp(field.type) for field in X.schema):
        return X
    columns: dict[str, Any] = {}
    for name in X.column_names:
        if pa.types.is_timestamp(X[name].type):
            features = calendar_features(X[name])
            columns |= {f"{name}_{each}": pa.array(features[:, i]) for i, each in enumerate(CALENDAR)}
        else:
            columns[name] = X[name]
    return pa.table(columns)


def part_of(block: Block, some: slice) -> Block:
    """Some rows of a block."""
    y, weight, ids = block.y, block.weight, block.ids
    return Block(
        take(block.X, some),
        None if y is None else y[some],
        None if weight is None else weight[some],
        block.first + some.start,
        block.lines,
        block.places[some],
        None if ids is None else take(ids, some),
    )


def refusal(block: Block, source: str, error: BadRow) -> BadRow:
    """The error of a learner about the only row of a block, with its place in the file."""
    return BadRow(f"{source}, line {block.places[0]}: {str(error).removeprefix('row 0, ')}")


def labels_for(learner: Any, y: Any) -> Any:
    """Labels for a classifier, float64 targets for a regressor."""
    from sklearn.base import is_regressor

    if not is_regressor(learner):
        return y
    if np.asarray(y).dtype.kind not in "iuf":
        raise BadRow(f"the target {y[0]!r} is not a number, as {type(learner).__name__} needs: choose a classifier.")
    return np.asarray(y, dtype=np.float64)
