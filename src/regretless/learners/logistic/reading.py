"""Rows in any form to a table of numbers: arrays, CSR matrices, data frames, dictionaries; categories, missing values.

What a column of a frame or a dictionary is, numbers or categories, is told by its first value in a row that is learned;
before, it has no part in the table. The table's columns are those whose first number the first row had, in their order;
with `missing="indicator"` then one a column given, which is 1 where its value was missing; then what came later, in the
order of first sight: a category, or a column's first number. So what is met later adds columns at the end, and nothing
moves. A category beyond the budget has no column: its row has zeros.

A block of rows is read at once, and says at which rows the reader has met more. Rows of weight 0 and bad rows teach it
nothing. So it does not matter how rows are cut into blocks.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.inputs import NUMERIC, as_number, is_missing
from regretless.core.state_checks import require
from regretless.core.types import Array
from regretless.core.validate import largest_square, writable

LARGEST = 1e150  # its square is a number

NUMBER, CATEGORY, UNKNOWN = "number", "category", "unknown"  # the last: no value was learned yet


@dataclass(frozen=True)
class Reader:
    """What each column given is, and what came after the first row.

    `levels` are pairs (column, category), or (column, None) for a column of numbers that had none at first.
    """

    kinds: tuple[str, ...]
    levels: tuple[tuple[int, Any], ...] = ()
    indicators: bool = False
    is_straight: bool = field(init=False, repr=False, compare=False)  # numbers alone, in the order given
    is_plain: bool = field(init=False, repr=False, compare=False)  # the table is what is given

    def __post_init__(self) -> None:
        straight = not self.levels and CATEGORY not in self.kinds and UNKNOWN not in self.kinds
        object.__setattr__(self, "is_straight", straight)
        object.__setattr__(self, "is_plain", straight and not self.indicators)

    @classmethod
    def kept(cls, kinds: Any, levels: Any, indicators: Any) -> Reader:
        """A reader by what a file has kept of it; refuses what none can be."""
        known = {NUMBER, CATEGORY, UNKNOWN}
        require(isinstance(kinds, list) and set(kinds) <= known, f"kinds={kinds!r} are of no columns")
        require(isinstance(levels, list) and isinstance(indicators, bool), "levels and indicators are of no columns")
        for level in levels:
            pair = isinstance(level, list) and len(level) == 2 and type(level[0]) is int
            require(pair and 0 <= level[0] < len(kinds), f"{level!r} is no category")
            if level[1] is None:  # a column whose first number came late
                require(kinds[level[0]] == NUMBER, f"{level!r} is of no column of numbers")
                continue
            is_value = isinstance(level[1], str | int | float) and not is_missing(level[1])
            require(kinds[level[0]] == CATEGORY and is_value, f"{level!r} is no category")
        found = tuple((column, value) for column, value in levels)
        require(len(set(found)) == len(found), "a category is there twice")
        return cls(tuple(kinds), found, indicators)

    def counts(self) -> Counter[int]:
        """How many categories each column given has."""
        return Counter(column for column, value in self.levels if value is not None)

    @cached_property
    def of_numbers(self) -> list[int]:
        """The columns of numbers."""
        return [j for j, kind in enumerate(self.kinds) if kind == NUMBER]

    @cached_property
    def others(self) -> list[int]:
        """The columns of which this is not known."""
        return [j for j, kind in enumerate(self.kinds) if kind != NUMBER]

    @cached_property
    def numbers(self) -> np.ndarray:
        """The places in the table of the columns of numbers."""
        late = {j: self.width - len(self.levels) + i for i, (j, value) in enumerate(self.levels) if value is None}
        first = itertools.count()
        return np.array([late[j] if j in late else next(first) for j in self.of_numbers], dtype=np.intp)

    @cached_property
    def categories(self) -> dict[int, dict[Any, int]]:
        """The place in the table of every category, by the column given."""
        found: dict[int, dict[Any, int]] = {j: {} for j, kind in enumerate(self.kinds) if kind == CATEGORY}
        for i, (j, value) in enumerate(self.levels):
            if value is not None:
                found[j][value] = self.width - len(self.levels) + i
        return found

    @cached_property
    def width(self) -> int:
        """Columns of the table."""
        late = sum(value is None for _, value in self.levels)
        return self.kinds.count(NUMBER) - late + len(self.kinds) * self.indicators + len(self.levels)

    @cached_property
    def indicators_at(self) -> int:
        """Where the indicators begin, if there are any."""
        return self.width - len(self.levels) - len(self.kinds)


class Fault(NamedTuple):
    """What cannot be learned from: row, column given, and what is the matter."""

    row: int
    column: int
    what: str


@dataclass(frozen=True)
class Block:
    """Rows as a table of numbers, with the columns of all that they teach the reader."""

    table: Any  # an array, or a CSR matrix without the indicators
    bad: np.ndarray  # which rows cannot be learned from
    fault: Fault | None  # the first reason
    growth: list[tuple[int, Reader]]  # the rows at which the reader has met more, and what it is from there on

    def __len__(self) -> int:
        return int(self.table.shape[0])

    def rows(self, some: slice, reader: Reader) -> Array:
        """Some rows, with the columns of the reader at that time."""
        if not sparse.issparse(self.table):
            return writable(self.table[some, : reader.width])
        table: Array = self.table[some].toarray()
        return np.hstack([table, np.isnan(table)]) if reader.indicators else table


class Columns:
    """The columns of a table."""

    def __init__(self, columns: list[Any]) -> None:
        self.columns, self.n = columns, len(columns[0]) if columns else 0

    def value(self, t: int, j: int) -> Any:
        """Of row t and column j."""
        return self.columns[j][t]

    def column(self, j: int) -> Sequence[Any]:
        """Column j."""
        found: Sequence[Any] = self.columns[j]
        return found

    def rows(self, columns: Sequence[int]) -> Iterable[Sequence[Any]]:
        """The rows, with some columns."""
        return zip(*(self.columns[j] for j in columns), strict=True) if columns else [()] * self.n

    def numbers(self, columns: Sequence[int]) -> Array:
        """The numbers of some columns, (n, columns)."""
        found = np.empty((self.n, len(columns)))
        for i, j in enumerate(columns):
            found[:, i] = as_numbers(self.columns[j])
        return found


class Dictionaries:
    """Rows as dictionaries; a name that a row lacks is missing."""

    def __init__(self, rows: list[dict[str, Any]], names: list[str]) -> None:
        self.n = len(rows)
        self.values = [
            list(row.values()) if list(row) == names else self._in_order(t, row, names) for t, row in enumerate(rows)
        ]

    def _in_order(self, t: int, row: dict[str, Any], names: list[str]) -> list[Any]:
        if not row.keys() <= (known := frozenset(names)):
            foreign = next(name for name in row if name not in known)
            raise BadRow(f"row {t}: {foreign!r} is not one of the features {names}. Leave it out, or start anew.")
        return [row.get(name) for name in names]

    def value(self, t: int, j: int) -> Any:
        """Of row t and column j."""
        return self.values[t][j]

    def column(self, j: int) -> Sequence[Any]:
        """Column j."""
        return [row[j] for row in self.values]

    def rows(self, columns: Sequence[int]) -> list[Sequence[Any]]:
        """The rows, with some columns."""
        return [row if len(row) == len(columns) else [row[j] for j in columns] for row in self.values]

    def numbers(self, columns: Sequence[int]) -> Array:
        """The numbers of some columns, (n, columns)."""
        rows = self.rows(columns)
        try:
            found = np.array(rows, dtype=np.float64) if all(_may_be_numbers(row) for row in rows) else np.empty(0)
        except (TypeError, ValueError, OverflowError):
            found = np.empty(0)
        if found.shape == (self.n, len(columns)):
            return found
        return Columns([self.column(j) for j in columns]).numbers(range(len(columns)))


Given = Columns | Dictionaries  # rows of which some values may be text


def read_numbers(X: Any, reader: Reader, missing_is_error: bool) -> Block:
    """A block of an array or a CSR matrix, for a reader that has met numbers alone."""
    is_sparse = sparse.issparse(X)
    bad, fault = np.zeros(X.shape[0], dtype=bool), None
    values = X.data if is_sparse else X
    gone = np.isnan(values) if reader.indicators and not is_sparse else None
    if not largest_square(np.atleast_2d(values)) <= LARGEST**2:
        wrong = find_unlearnable(values, missing_is_error)
        at = np.flatnonzero(wrong)
        if at.size:
            if is_sparse:
                rows, column = np.searchsorted(X.indptr, at, side="right") - 1, int(X.indices[at[0]])
            else:
                rows, column = at // X.shape[1], int(at[0] % X.shape[1])
            bad[rows] = True
            fault = Fault(int(rows[0]), column, _what(values.flat[at[0]]))
            values = np.where(wrong, np.nan, values)
            X = sparse.csr_array((values, X.indices, X.indptr), shape=X.shape) if is_sparse else values
    return Block(X if gone is None else np.hstack([X, gone]), bad, fault, [])


def read(given: Given, reader: Reader, learns: np.ndarray, budget: int, missing_is_error: bool, begun: bool) -> Block:
    """A block of rows with names. `learns` says which rows teach the reader if they are good; `begun`, whether any has.

    A value that is not a number, in a column of numbers, cannot be learned from.
    """
    if reader.is_straight:
        block = read_numbers(given.numbers(range(len(reader.kinds))), reader, missing_is_error)
        if (fault := block.fault) is None:
            return block
        return replace(block, fault=fault._replace(what=_what(given.value(fault.row, fault.column))))
    settled, since = _settle(given, reader, learns, missing_is_error)
    of_numbers = settled.of_numbers
    numbers = given.numbers(of_numbers)
    for i, j in enumerate(of_numbers) if since else ():
        numbers[: since.get(j, 0), i] = [_before(given.value(t, j)) for t in range(since.get(j, 0))]
    absent = np.isnan(numbers)
    wrong = find_unlearnable(numbers, missing_is_error)
    faults = [Fault(t, of_numbers[i], _what(given.value(t, of_numbers[i]))) for t, i in np.argwhere(wrong).tolist()]
    numbers[wrong] = np.nan
    places = _places(given, settled.others, reader)
    known = np.all(places >= 0, axis=0)  # the usual columns, which are quick
    unusual = [settled.others[i] for i in np.flatnonzero(~known).tolist()]
    others = [_Other(j, given.column(j), settled.kinds[j], since.get(j)) for j in unusual]
    for other in others:
        faults += other.faults(missing_is_error)
    bad = np.zeros(given.n, dtype=bool)
    bad[[fault.row for fault in faults]] = True
    learned = learns & ~bad
    first = -1 if begun or not learned.any() else int(np.argmax(learned))
    new: list[Level] = [Level(t, j, None) for j, t in since.items() if settled.kinds[j] == NUMBER and t != first]
    for other in others:
        new += other.new_levels(learned, set(reader.categories.get(other.j, ())), budget)
    new.sort(key=lambda level: (level.row, level.category is not None, level.column))
    growth = _growth(reader, settled.kinds, since, new)
    after = growth[-1][1] if growth else reader
    table = np.zeros((given.n, after.width))
    table[:, after.numbers] = numbers
    if after.indicators:
        table[:, after.indicators_at + np.array(of_numbers, dtype=np.intp)] = absent
    for other in others:
        if after.indicators:
            table[:, after.indicators_at + other.j] = other.absent
        for t, place in other.placed(after.categories.get(other.j, {})):
            table[t, place] = 1.0
    table[np.arange(given.n)[:, None], places[:, known]] = 1.0
    return Block(table, bad, min(faults, default=None), growth)


class Level(NamedTuple):
    """A category that was not known before, or (None) a column's first number."""

    row: int
    column: int
    category: Any


class _Other:
    """A column of categories, from some row on, or one of which nothing is known yet."""

    def __init__(self, j: int, values: Sequence[Any], kind: str, since: int | None) -> None:
        self.j, self.values, self.absent = j, values, missing(values)
        n = len(values)
        self.start = n if kind == UNKNOWN else since or 0  # the first row that is known to have a category
        there = np.flatnonzero(~self.absent).tolist()
        self.before = [t for t in there if t < self.start]
        self.present = [t for t in there if t >= self.start and _is_hashable(values[t])]
        self.odd = sorted({*there} - {*self.before} - {*self.present})

    def faults(self, missing_is_error: bool) -> list[Fault]:
        """The values that cannot be learned from."""
        wrong = [t for t in self.before if not abs(_before(self.values[t])) <= LARGEST]
        found = [Fault(t, self.j, _what(self.values[t])) for t in wrong]
        found += [Fault(t, self.j, f"{self.values[t]!r} is no text") for t in self.odd]
        if missing_is_error:
            found += [Fault(t, self.j, "a category is missing") for t in np.flatnonzero(self.absent).tolist()]
        return found

    def new_levels(self, learned: np.ndarray, known: set[Any], budget: int) -> list[Level]:
        """The categories that were not known, as far as the budget goes."""
        found: list[Level] = []
        for t in self.present:
            if len(known) >= budget:
                break
            if learned[t] and self.values[t] not in known:
                known.add(self.values[t])
                found.append(Level(t, self.j, self.values[t]))
        return found

    def placed(self, places: dict[Any, int]) -> list[tuple[int, int]]:
        """The rows whose category has a place, and that place."""
        return [(t, places[self.values[t]]) for t in self.present if self.values[t] in places]


def _places(given: Given, columns: list[int], reader: Reader) -> np.ndarray:
    """The places of the categories in some columns; -1 where there is none."""
    by_column = [reader.categories.get(j, {}) for j in columns]
    try:
        found = [
            [places.get(value, -1) for places, value in zip(by_column, row, strict=True)] for row in given.rows(columns)
        ]
    except TypeError:  # a value that cannot be looked up
        return np.full((given.n, len(columns)), -1)
    return np.array(found, dtype=np.intp).reshape(given.n, len(columns))


def _settle(given: Given, reader: Reader, learns: np.ndarray, missing_is_error: bool) -> tuple[Reader, dict[int, int]]:
    """What the columns are after the block, and the row since which that is known, of those where it was not before."""
    if UNKNOWN not in reader.kinds:
        return reader, {}
    kinds, since = list(reader.kinds), {}
    waiting = {j: np.flatnonzero(learns & ~missing(given.column(j))) for j in reader.others if kinds[j] == UNKNOWN}
    at = 0
    while waiting := {j: later for j, rows in waiting.items() if (later := rows[np.searchsorted(rows, at) :]).size}:
        t = min(int(rows[0]) for rows in waiting.values())
        told = {j: kind_of(given.value(t, j)) for j, rows in waiting.items() if rows[0] == t}
        if all(_is_good(given.value(t, j), told.get(j, kind), missing_is_error) for j, kind in enumerate(kinds)):
            for j, kind in told.items():
                kinds[j], since[j] = kind, t
                del waiting[j]
        at = t + 1
    return Reader(tuple(kinds), reader.levels, reader.indicators), since


def _growth(reader: Reader, kinds: Sequence[str], since: dict[int, int], new: list[Level]) -> list[tuple[int, Reader]]:
    """The reader from each row on that teaches it something; `new` is in the order of rows."""
    levels = reader.levels + tuple((level.column, level.category) for level in new)
    found, met = [], 0
    for row in sorted({*since.values(), *(level.row for level in new)}):
        while met < len(new) and new[met].row <= row:
            met += 1
        then = kinds if not since else [UNKNOWN if since.get(j, row) > row else kind for j, kind in enumerate(kinds)]
        found.append((row, Reader(tuple(then), levels[: len(reader.levels) + met], reader.indicators)))
    return found


def missing(values: Any) -> np.ndarray:
    """Which values are missing."""
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        return np.isnan(values)
    return np.fromiter((is_missing(value) for value in values), dtype=bool, count=len(values))


def as_numbers(values: Any) -> Array:
    """Numbers, NaN for what is missing, infinity for what is not a number."""
    try:
        found = np.asarray(values, dtype=np.float64) if _may_be_numbers(values) else np.empty(0)
    except (TypeError, ValueError, OverflowError):
        found = np.empty(0)
    return found if found.shape == (len(values),) else np.array([_number(value) for value in values])


def _may_be_numbers(values: Sequence[Any]) -> bool:
    """Whether NumPy makes of these what a person would: it reads dates, and the text of numbers, as numbers too."""
    if isinstance(values, np.ndarray):
        return values.dtype.kind in NUMERIC
    return {*map(type, values)} <= {float, int, bool, np.float64}


def _number(value: Any) -> float:
    try:
        return as_number(value)
    except (TypeError, ValueError, OverflowError):
        return math.inf


def _before(value: Any) -> float:
    """The number of a value in a column of which nothing is known: text may be a category."""
    return 0.0 if isinstance(value, str) else _number(value)


def _what(value: Any) -> str:
    """What is the matter with a value that should be a number."""
    number = _number(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return repr(value) if isinstance(value, str) else f"{number}"
    return f"{number:.6g}, which is too large for floating point arithmetic. Scale the features"


def _is_good(value: Any, kind: str, missing_is_error: bool) -> bool:
    """Whether a row may be learned from, as far as this value goes."""
    if is_missing(value):
        return not missing_is_error
    return abs(_number(value)) <= LARGEST if kind == NUMBER else _is_hashable(value)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def kind_of(value: Any) -> str:
    """What a column is of which this is the first value."""
    return CATEGORY if isinstance(value, str) else NUMBER


def frame_columns(X: Any) -> list[Any] | None:
    """The columns of a data frame (pandas, Polars, PyArrow, ...), or None if X is none or narwhals is missing."""
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
        elif column.dtype in (nw.String, nw.Categorical, nw.Enum, nw.Object) or column.null_count() == len(column):
            columns.append(column.to_list())
        else:
            raise ValueError(
                f"column {name!r} is of type {column.dtype}: give numbers, truth values or text. (A time may be told "
                "in numbers, such as the hour and the day of the week.)"
            )
    return columns


def canonical(X: Any) -> Any:
    """A CSR matrix in which no entry is given twice."""
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def number_of(rows: Any) -> int:
    """How many rows there are."""
    return int(rows.n if isinstance(rows, Given) else rows.shape[0])


def find_unlearnable(values: Array, missing_is_error: bool) -> np.ndarray:
    """Which values cannot be learned from."""
    good = np.abs(values) <= LARGEST
    return ~(good if missing_is_error else good | np.isnan(values))
