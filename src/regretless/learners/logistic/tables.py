"""Rows whose columns have names: data frames of any make, and dictionaries."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from regretless.core.rows.inputs import NUMERIC, as_number, is_missing
from regretless.core.types import Array

MANY_COLUMNS = 1000  # CSR matrices with more are wide, and dictionaries with more names in the first call
NUMBERS = {float, int, bool, np.float64}  # types that NumPy turns into the number a person would expect


class Columns:
    """A table given as a list of columns."""

    def __init__(self, columns: list[Any]) -> None:
        self.columns, self.n = columns, len(columns[0]) if columns else 0

    def value(self, t: int, j: int) -> Any:
        """The value in row t and column j."""
        return self.columns[j][t]

    def column(self, j: int) -> Sequence[Any]:
        """Column j."""
        found: Sequence[Any] = self.columns[j]
        return found

    def rows(self, columns: Sequence[int]) -> Iterable[Sequence[Any]]:
        """The rows, restricted to some columns."""
        return zip(*(self.columns[j] for j in columns), strict=True) if columns else [()] * self.n

    def numbers(self, columns: Sequence[int]) -> Array:
        """Some columns as numbers, (n, columns): see `as_numbers`."""
        found = np.empty((self.n, len(columns)))
        for i, j in enumerate(columns):
            found[:, i] = as_numbers(self.columns[j])
        return found


class Dictionaries:
    """Rows given as dictionaries. A name that a row lacks is a missing value; other names are ignored."""

    def __init__(self, rows: list[dict[Any, Any]], names: list[Any]) -> None:
        self.n, self.given, self.names = len(rows), rows, names
        self.values = [list(row.values()) if list(row) == names else [row.get(name) for name in names] for row in rows]

    def part(self, some: slice, names: Sequence[Any]) -> Dictionaries:
        """Some rows, with these names."""
        return Dictionaries(self.given[some], list(names))

    def foreign(self) -> dict[int, list[Any]]:
        """The rows with other names, and these."""
        known = frozenset(self.names)
        return {
            t: [name for name in row if name not in known]
            for t, row in enumerate(self.given)
            if not row.keys() <= known
        }

    def value(self, t: int, j: int) -> Any:
        """The value in row t and column j."""
        return self.values[t][j]

    def column(self, j: int) -> Sequence[Any]:
        """Column j."""
        return [row[j] for row in self.values]

    def rows(self, columns: Sequence[int]) -> list[Sequence[Any]]:
        """The rows, restricted to some columns."""
        return [row if len(row) == len(columns) else [row[j] for j in columns] for row in self.values]

    def numbers(self, columns: Sequence[int]) -> Array:
        """Some columns as numbers, (n, columns): see `as_numbers`."""
        rows = self.rows(columns)
        try:
            found = np.array(rows, dtype=np.float64) if all(_may_be_numbers(row) for row in rows) else np.empty(0)
        except (TypeError, ValueError, OverflowError):
            found = np.empty(0)
        if found.shape == (self.n, len(columns)):
            return found
        return Columns([self.column(j) for j in columns]).numbers(range(len(columns)))


Table = Columns | Dictionaries


def frame_columns(X: Any) -> list[Any] | None:
    """The columns of a data frame (pandas, Polars, PyArrow, ...); None for anything else, or without narwhals."""
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
    listed = (nw.String, nw.Categorical, nw.Enum, nw.Object, nw.Datetime, nw.Date)
    for name, column in zip(frame.columns, frame.iter_columns(), strict=True):
        if column.dtype.is_numeric() or column.dtype == nw.Boolean:
            columns.append(column.cast(nw.Float64).to_numpy())
        elif column.dtype in listed or column.null_count() == len(column):
            columns.append(column.to_list())
        else:
            raise ValueError(
                f"column {name!r} has type {column.dtype}, which is not supported: give numbers, booleans, text or "
                "dates."
            )
    return columns


def missing(values: Any) -> np.ndarray:
    """Which values are missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return np.isnan(values)
    return np.fromiter((is_missing(value) for value in values), dtype=bool, count=len(values))


def as_numbers(values: Any) -> Array:
    """Values as numbers: NaN for a missing value, infinity for one that is not a number."""
    try:
        found = np.asarray(values, dtype=np.float64) if _may_be_numbers(values) else np.empty(0)
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    return found if found.shape == (len(values),) else np.array([as_number_or_inf(value) for value in values])


def as_number_or_inf(value: Any) -> float:
    """One value as in `as_numbers`."""
    try:
        return as_number(value)
    except (TypeError, ValueError, OverflowError):
        return math.inf


def _may_be_numbers(values: Sequence[Any]) -> bool:
    """Whether NumPy can convert these without surprises: it also reads dates, and text with digits, as numbers."""
    if isinstance(values, np.ndarray):
        return values.dtype.kind in NUMERIC
    return {*map(type, values)} <= NUMBERS
