"""What streams are made of."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from regretless.core.types import Array

Labels = np.ndarray[Any, Any]


class Stream(NamedTuple):
    """Rows in order, their labels, and the radius of the comparators that suit them."""

    name: str
    X: Array
    y: Labels
    classes: list[Any]
    radius: float
    about: str
    weights: Array | None = None  # of the model that drew the labels, where one did


class Dataset(NamedTuple):
    """A data set as its source gives it: columns not scaled, rows in the order of the file."""

    name: str
    X: Any  # an array, or a CSR matrix where most entries are zero
    y: Labels
    classes: list[Any]
    about: str


class Block(NamedTuple):
    """Some consecutive good rows of a file."""

    X: Any  # a pyarrow.Table, or a CSR matrix for svmlight and VW text
    y: Labels | None  # None where no labels were asked for
    weight: Array | None  # None where the file has none
    first: int  # the number of the first of these rows among all good rows, from 0
    lines: int  # lines of the file (rows, for Parquet and Arrow) read by the end of this block


class BadLine(NamedTuple):
    """A line nobody can learn from."""

    line: int  # from 1, the header included; for Parquet and Arrow the number of the row, from 1
    text: str
    why: str
