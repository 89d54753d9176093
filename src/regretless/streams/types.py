"""The types that streams consist of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from regretless.core.types import Array

Labels = np.ndarray[Any, Any]


class Stream(NamedTuple):
    """Rows in order, their labels, and a suitable radius for the comparators."""

    name: str
    X: Array
    y: Labels
    classes: list[Any]
    radius: float
    about: str
    weights: Array | None = None  # of the model that generated the labels, if there is one


class Dataset(NamedTuple):
    """A data set as published: columns not scaled, rows in the order of the file."""

    name: str
    X: Any  # an array, or a CSR matrix if most entries are zero
    y: Labels
    classes: list[Any]
    about: str
    preparation: Any = None  # of a file: the `Preparation` that made its columns numbers


class Block(NamedTuple):
    """Consecutive good rows of a file."""

    X: Any  # a pyarrow.Table, or a CSR matrix for svmlight and VW text
    y: Labels | None  # None if no labels were requested
    weight: Array | None  # None if the file has no weights
    first: int  # the index of the first row of the block among all good rows
    lines: int  # number of lines of the file (rows, for Parquet and Arrow) read by the end of this block
    places: np.ndarray[Any, Any]  # the line of the file on which each row begins, counted as in `BadLine`
    ids: Any  # a pyarrow.Table of the columns declared "id"; None if there are none


class BadLine(NamedTuple):
    """A line that cannot be learned from."""

    line: int  # counted from 1, including the header; for Parquet and Arrow the row number, counted from 1
    text: str
    why: str
