"""Preparation: how the columns of a file become the numbers of a race, fixed after one look at all rows.

It can be stored, so that one pass over the same columns gives a learner exactly the rows that it had in the race.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse

from regretless.core.rows.calendar import CALENDAR, calendar_features, calendar_names
from regretless.core.types import Array

MOST_LEVELS = 100  # columns per category: its most frequent values
NUMBER, DATE, CATEGORY = "number", "date", "category"


class Column(NamedTuple):
    """A column of a table."""

    name: str
    kind: str
    fill: tuple[float, ...]  # what replaces a missing number, one for each column that this one becomes
    levels: tuple[str, ...]  # the values of a category that have a column of zeros and ones


@dataclass(frozen=True)
class Preparation:
    """The columns of a table, or those columns of a sparse file that are not empty; and how to standardise them."""

    columns: tuple[Column, ...] | None
    kept: np.ndarray | None  # of a sparse file
    mean: Array
    scale: Array

    @classmethod
    def of(cls, X: Any) -> tuple[Self, Array]:
        """The preparation for these rows, a table or a sparse matrix; and the rows as numbers, not standardised."""
        from sklearn.preprocessing import StandardScaler

        if sparse.issparse(X):
            raw = cls(None, np.unique(X.nonzero()[1]), np.empty(0), np.empty(0))
        else:
            raw = cls(tuple(_column(name, X[name]) for name in X.column_names), None, np.empty(0), np.empty(0))
        numbers = raw.numbers(X)
        scaler = StandardScaler().fit(numbers)
        return cls(raw.columns, raw.kept, scaler.mean_, scaler.scale_), numbers

    @property
    def width(self) -> int:
        """The number of columns that these become."""
        if self.kept is not None:
            return len(self.kept)
        return sum(len(column.fill) or len(column.levels) for column in self.columns or ())

    @property
    def names(self) -> list[str]:
        """The names of the columns of `rows`."""
        if self.kept is not None:
            return [*(f"column {j}" for j in self.kept), "constant"]
        found: list[str] = []
        for name, kind, fill, levels in self.columns or ():
            found += calendar_names(name) if kind == DATE else [name] * len(fill)
            found += [f"{name} = {level}" for level in levels]
        return [*found, "constant"]

    @property
    def has_dates(self) -> bool:
        """Whether a column holds dates or times."""
        return any(column.kind == DATE for column in self.columns or ())

    def numbers(self, X: Any) -> Array:
        """The columns as numbers: dates as calendar features, categories as zeros and ones."""
        if self.columns is None:
            found: Array = X.tocsc()[:, self.kept].toarray() if sparse.issparse(X) else self._refuse("sparse")
            return found
        if sparse.issparse(X) or not {column.name for column in self.columns} <= {*X.column_names}:
            self._refuse(f"the columns {[column.name for column in self.columns]}")
        return np.hstack([_numbers(column, X[column.name]) for column in self.columns])

    def rows(self, X: Any) -> Array:
        """The rows of a race: standardised, with a constant column, of norm about 1."""
        return standardised(self.numbers(X), self.mean, self.scale)

    @staticmethod
    def _refuse(expected: str) -> Array:
        raise ValueError(f"the rows differ from those of the race, which had {expected}: give the same columns.")

    def to_json(self) -> dict[str, Any]:
        """As numbers, text and lists."""
        return {
            "columns": None if self.columns is None else [list(column) for column in self.columns],
            "kept": None if self.kept is None else self.kept.tolist(),
            "mean": self.mean.tolist(),
            "scale": self.scale.tolist(),
        }

    @classmethod
    def from_json(cls, found: Any) -> Self:
        """The inverse of `to_json`; an error if the data is not of that form."""
        try:
            columns, kept = found["columns"], found["kept"]
            made = cls(
                None if columns is None else tuple(_checked(*column) for column in columns),
                None if kept is None else np.array(kept, dtype=np.int64),
                np.array(found["mean"], dtype=np.float64),
                np.array(found["scale"], dtype=np.float64),
            )
            good = made.mean.shape == made.scale.shape == (made.width,) and (columns is None) != (kept is None)
            if not good or not (np.isfinite(made.mean).all() and (made.scale > 0).all()):
                raise ValueError("its parts do not fit together")
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the preparation of the rows is damaged: {error}.") from error
        return made


def standardised(X: Array, mean: Array, scale: Array) -> Array:
    """Columns of mean 0 and variance 1, a constant column, and rows of norm about 1."""
    return np.column_stack([(X - mean) / scale, np.ones(len(X))]) / math.sqrt(X.shape[1] + 1)


def _column(name: str, values: Any) -> Column:
    """What all values of a column say about it."""
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        return Column(name, NUMBER, _means(np.array(values.to_numpy(), dtype=np.float64)[:, None]), ())
    if pa.types.is_timestamp(values.type):
        return Column(name, DATE, _means(calendar_features(values)), ())
    there = [str(value) for value in values.to_pylist() if value is not None]
    levels, counts = np.unique(np.array(there, dtype=object), return_counts=True) if there else ([], [])
    commonest = sorted(np.asarray(levels)[np.argsort(-np.asarray(counts), kind="stable")[:MOST_LEVELS]].tolist())
    return Column(name, CATEGORY, (), tuple(commonest))


def _means(columns: Array) -> tuple[float, ...]:
    """The mean of each column, 0 for one that has no value."""
    found = (column[~np.isnan(column)] for column in columns.T)
    return tuple(float(column.mean()) if column.size else 0.0 for column in found)


def _numbers(column: Column, values: Any) -> Array:
    if column.kind == CATEGORY:
        levels = {level: i for i, level in enumerate(column.levels)}
        found = np.zeros((len(values), len(levels)))
        for t, value in enumerate(values.to_pylist()):
            if value is not None and str(value) in levels:
                found[t, levels[str(value)]] = 1.0
        return found
    if column.kind == DATE:
        found = calendar_features(values)
    else:
        found = np.array(values.to_numpy(), dtype=np.float64)[:, None]
    return np.where(np.isnan(found), np.array(column.fill), found)


def _checked(name: Any, kind: Any, fill: Any, levels: Any) -> Column:
    column = Column(str(name), kind, tuple(float(value) for value in fill), tuple(str(level) for level in levels))
    n_fill = {NUMBER: 1, DATE: len(CALENDAR), CATEGORY: 0}[kind]
    if len(column.fill) != n_fill or (column.levels and kind != CATEGORY):
        raise ValueError(f"column {name!r} is not that of a {kind}")
    return column
