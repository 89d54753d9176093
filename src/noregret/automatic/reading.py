"""Rows in any form to a table of numbers: arrays, CSR matrices, data frames, dictionaries; categories, missing values.

The table's columns are those with numbers, in their order; with `missing="indicator"` then one a column given, which
is 1 where its value was missing; then one for every category, in the order of first sight. So a category that is met
later adds a column at the end, and nothing moves. A category beyond the budget has no column: its row has zeros.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy import sparse

from noregret._types import Array
from noregret.errors import BadRow
from noregret.forms import as_number, is_missing
from noregret.validate import largest_square, writable

LARGEST = 1e150  # its square is a number
NUMBER, CATEGORY = "number", "category"


@dataclass(frozen=True)
class Reader:
    """What each column given is, and which categories have been met: `levels` are pairs (column, category)."""

    kinds: tuple[str, ...]
    levels: tuple[tuple[int, Any], ...] = ()
    indicators: bool = False
    is_plain: bool = field(init=False, repr=False, compare=False)  # the table is what is given: numbers alone

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_plain", CATEGORY not in self.kinds and not self.indicators)

    @property
    def width(self) -> int:
        """Columns of the table."""
        return self.kinds.count(NUMBER) + len(self.kinds) * self.indicators + len(self.levels)

    def read(self, columns: list[Any], budget: int) -> tuple[Array, Reader]:
        """The table of a block given as columns, NaN where a value is missing; and the reader once it has met them.

        A value that is not a number, in a column of numbers, becomes infinity: nobody can learn from it.
        """
        n = len(columns[0]) if columns else 0
        met = self.meet(columns, budget)
        table = np.zeros((n, met.width))
        place = {level: met.width - len(met.levels) + i for i, level in enumerate(met.levels)}
        at = 0
        for j, (kind, values) in enumerate(zip(met.kinds, columns, strict=True)):
            if kind == NUMBER:
                table[:, at] = as_numbers(values)
                missing = np.isnan(table[:, at])
                at += 1
            else:
                missing = np.array([is_missing(value) for value in values], dtype=bool)
                for t, value in enumerate(values):
                    if (level := place.get((j, value))) is not None and not missing[t]:
                        table[t, level] = 1.0
            if met.indicators:
                table[:, met.kinds.count(NUMBER) + j] = missing
        return table, met

    def missing_categories(self, columns: list[Any]) -> np.ndarray:
        """In which rows, and columns given, a category is missing."""
        found = np.zeros((len(columns[0]) if columns else 0, len(columns)), dtype=bool)
        for j, (kind, values) in enumerate(zip(self.kinds, columns, strict=True)):
            if kind == CATEGORY:
                found[:, j] = [is_missing(value) for value in values]
        return found

    def given(self, at: int) -> int:
        """The column given that a column of numbers of the table comes from."""
        return [j for j, kind in enumerate(self.kinds) if kind == NUMBER][at]

    def meet(self, columns: list[Any], budget: int) -> Reader:
        """With the categories of a block, in the order of its rows, as far as the budget of each column goes."""
        if CATEGORY not in self.kinds:
            return self
        levels = dict.fromkeys(self.levels)
        counts = [sum(column == j for column, _ in levels) for j in range(len(self.kinds))]
        of_category = [j for j, kind in enumerate(self.kinds) if kind == CATEGORY]
        for row in zip(*(columns[j] for j in of_category), strict=True):
            for j, value in zip(of_category, row, strict=True):
                if (j, value) not in levels and not is_missing(value) and counts[j] < budget:
                    levels[j, value] = None
                    counts[j] += 1
        return replace(self, levels=tuple(levels))


def as_numbers(values: Any) -> Array:
    """Numbers, NaN for what is missing, infinity for what is not a number."""
    if isinstance(values, np.ndarray) or {*map(type, values)} <= {float, np.float64}:
        return np.asarray(values, dtype=np.float64)
    return np.array([_number(value) for value in values])


def _number(value: Any) -> float:
    try:
        return as_number(value)
    except (TypeError, ValueError, OverflowError):
        return math.inf


def value_at(X: Any, row: int, column: int, name: Any) -> Any:
    """What was given there, where it may have been something else than a number."""
    if isinstance(X, list) and X and isinstance(X[0], dict):
        return X[row].get(name)
    frame = frame_columns(X)
    return None if frame is None else frame[1][column][row]


def kind_of(values: Any) -> str:
    """A column of text is one of categories."""
    known = [value for value in values if not is_missing(value)]
    return CATEGORY if known and all(isinstance(value, str) for value in known) else NUMBER


def frame_columns(X: Any) -> tuple[list[str], list[Any]] | None:
    """Names and columns of a data frame (pandas, Polars, PyArrow, ...), or None if X is none or narwhals is missing."""
    if isinstance(X, np.ndarray | list | tuple) or sparse.issparse(X):
        return None
    try:
        import narwhals.stable.v1 as nw
    except ImportError:
        return None
    try:
        frame = nw.from_native(X, eager_only=True)
    except TypeError:
        return None
    columns: list[Any] = []
    for name, column in zip(frame.columns, frame.iter_columns(), strict=True):
        if column.dtype.is_numeric() or column.dtype == nw.Boolean:
            columns.append(column.cast(nw.Float64).to_numpy())
        elif column.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object):
            columns.append(column.to_list())
        else:
            raise ValueError(
                f"column {name!r} is of type {column.dtype}: give numbers, truth values or text. (A time may be told "
                "in numbers, such as the hour and the day of the week.)"
            )
    return [str(name) for name in frame.columns], columns


def dict_columns(rows: list[dict[str, Any]], names: list[str]) -> list[list[Any]]:
    """The columns of rows given as dictionaries; a name that a row lacks is missing."""
    for t, row in enumerate(rows):
        foreign = [name for name in row if name not in names]
        if foreign:
            raise BadRow(f"row {t}: {foreign[0]!r} is not one of the features {names}. Leave it out, or start anew.")
    return [[row.get(name) for row in rows] for name in names]


def dense(X: Any) -> Array:
    """A plain table of a CSR matrix or an array."""
    return writable(X.toarray() if sparse.issparse(X) else X)


def unlearnable(table: Array, missing_is_error: bool) -> tuple[int, int] | None:
    """Row and column of the first value that cannot be learned from; None if there is none, which is quick to see."""
    square = largest_square(table)
    if square <= LARGEST**2:
        return None
    bad = find_unlearnable(table, missing_is_error)
    if not bad.any():
        return None
    i, j = np.argwhere(bad)[0]
    return int(i), int(j)


def find_unlearnable(table: Array, missing_is_error: bool) -> np.ndarray:
    """Which values cannot be learned from."""
    good = np.abs(table) <= LARGEST
    return ~(good if missing_is_error else good | np.isnan(table))
