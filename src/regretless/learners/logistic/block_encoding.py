"""A block of rows to a table of numbers, and the rows at which the schema grows. `Encoder` has the settings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.rows.calendar import CALENDAR, calendar_features, is_date
from regretless.core.rows.inputs import UNLEARNED, is_missing
from regretless.core.rows.validate import largest_square, writable
from regretless.core.types import Array
from regretless.learners.logistic.offsets import slots_of
from regretless.learners.logistic.scaling import LARGEST
from regretless.learners.logistic.schema import (
    AT_SIGHT,
    CATEGORY,
    DATE,
    MISSING,
    MOST_CATEGORIES,
    MOST_RARE,
    NUMBER,
    OFFSET,
    UNKNOWN,
    Level,
    Schema,
)
from regretless.learners.logistic.tables import (
    MANY_COLUMNS,
    Dictionaries,
    Table,
    as_number_or_inf,
    missing,
)


class Fault(NamedTuple):
    """A value that cannot be learned from: its row, its input column, and what is wrong with it."""

    row: int
    column: int
    what: str


@dataclass(frozen=True)
class Block:
    """Encoded rows, with the columns of everything that appears in them."""

    table: Any  # an array, or a CSR matrix without the indicators
    bad: np.ndarray  # which rows cannot be learned from
    fault: Fault | None  # the first reason
    growth: list[tuple[int, Schema]]  # the rows at which the schema grows, and the schema from there on
    slots: Array | None = None  # of the categories of coded columns

    def __len__(self) -> int:
        return int(self.table.shape[0])

    def later(self, rows: int) -> Block:
        """The same block, if so many rows came before it."""
        fault = None if self.fault is None else self.fault._replace(row=self.fault.row + rows)
        return replace(self, fault=fault, growth=[(row + rows, schema) for row, schema in self.growth])

    @staticmethod
    def joined(parts: list[Block]) -> Block:
        """Blocks of dictionaries, one after the other."""
        if len(parts) == 1:
            return parts[0]
        faults = [part.fault for part in parts if part.fault is not None]
        slots = [np.empty((len(part), 0)) if part.slots is None else part.slots for part in parts]
        return Block(
            _stacked([part.table for part in parts], 0.0),
            np.concatenate([part.bad for part in parts]),
            min(faults, default=None),
            list(dict(step for part in parts for step in part.growth).items()),
            _stacked(slots, np.nan) if any(each.shape[1] for each in slots) else None,
        )

    def rows(self, some: slice, schema: Schema) -> Array:
        """Some rows, with the columns that the schema has at that time, and the slots after them."""
        if not sparse.issparse(self.table):
            table: Array = writable(self.table[some, : schema.width])
            return table if self.slots is None else np.hstack([table, self.slots[some, : len(schema.coded)]])
        table = self.table[some].toarray()
        return np.hstack([table, np.isnan(table[:, list(schema.missing_places)])]) if schema.levels else table


def _stacked(tables: list[Array], instead: float) -> Array:
    """Tables, one above the other; columns that a table lacks are `instead`."""
    width = max(table.shape[1] for table in tables)
    return np.vstack(
        [np.pad(table, ((0, 0), (0, width - table.shape[1])), constant_values=instead) for table in tables]
    )


# ---------------------------------------------------------------------- blocks of numbers


def encode_numbers(X: Any, schema: Schema, missing_is_error: bool, learns: np.ndarray) -> Block:
    """Encode an array or a CSR matrix by a schema of numbers and indicators."""
    is_sparse = sparse.issparse(X)
    bad, fault, growth = np.zeros(X.shape[0], dtype=bool), None, []
    values = X.data if is_sparse else X
    absent = None
    if not largest_square(np.atleast_2d(values)) <= LARGEST**2:
        absent = np.isnan(values)
        wrong = find_bad(values, missing_is_error)
        at = np.flatnonzero(wrong)
        if at.size:
            if is_sparse:
                rows, column = np.searchsorted(X.indptr, at, side="right") - 1, int(X.indices[at[0]])
            else:
                rows, column = at // X.shape[1], int(at[0] % X.shape[1])
            bad[rows] = True
            fault = Fault(int(rows[0]), column, _complaint(values.flat[at[0]]))
            values = np.where(wrong, np.nan, values)
            X = sparse.csr_array((values, X.indices, X.indptr), shape=X.shape) if is_sparse else values
        if schema.indicators:
            at = np.flatnonzero(absent)
            if is_sparse:
                rows, columns = np.searchsorted(X.indptr, at, side="right") - 1, X.indices[at]
            else:
                rows, columns = at // X.shape[1], at % X.shape[1]
            growth = _growth(schema, schema.kinds, {}, _first_missing(rows, columns, learns & ~bad, schema))
    after = growth[-1][1] if growth else schema
    if is_sparse or not after.levels:
        return Block(X, bad, fault, growth)
    marked = list(after.missing_places)
    marks = np.zeros((len(X), len(marked))) if absent is None else absent[:, marked]
    return Block(np.hstack([X, marks]), bad, fault, growth)


def _first_missing(rows: np.ndarray, columns: np.ndarray, learned: np.ndarray, schema: Schema) -> list[Arrival]:
    """The indicators to add: of the columns in which a value is missing for the first time, at these rows."""
    found: dict[int, int] = {}
    for t, j in zip(rows[learned[rows]].tolist(), columns[learned[rows]].tolist(), strict=True):
        if j not in schema.missing_places:
            found.setdefault(j, t)
    return sorted((Arrival(t, Level(j, MISSING)) for j, t in found.items()), key=_in_order)


def find_bad(values: Array, missing_is_error: bool) -> np.ndarray:
    """Which numbers cannot be learned from."""
    good = np.abs(values) <= LARGEST
    return ~(good if missing_is_error else good | np.isnan(values))


# ---------------------------------------------------------------------- blocks with names, and perhaps text


def encode_dictionaries(given: Dictionaries, encoder: Any, learns: np.ndarray, begun: bool) -> Block:
    """Encode dictionaries: a name never seen becomes a column with the first learned row that has it.

    What a row means must not depend on later ones, so the rows are cut there.
    """
    parts: list[Block] = []
    start, taken = 0, set(given.names)

    def encode_to(stop: int) -> None:
        nonlocal encoder, begun
        if stop > start:
            part = encode_table(given.part(slice(start, stop), encoder.names or ()), encoder, learns[start:stop], begun)
            parts.append(part.later(start))
            begun = begun or bool((learns[start:stop] & ~part.bad).any())
            encoder = encoder.with_schema(part.growth[-1][1]) if part.growth else encoder

    for t, names in given.foreign().items():
        new = [name for name in names if name not in taken]
        if not learns[t] or not new:
            continue
        if encoder.missing_is_error:
            raise BadRow(
                f"row {t}: {new[0]!r} is not one of the features {list(encoder.names or ())}, which other rows lack. "
                f'Leave it out, or fit a new learner with missing="indicator" or "mean". {UNLEARNED}'
            )
        encode_to(t)
        start = t
        wider = encoder.with_schema(encoder.schema.with_names(new))
        if len(wider.schema.kinds) > MANY_COLUMNS:
            raise BadRow(f"row {t}: more than {MANY_COLUMNS} names. Fit a new learner with sparse=True. {UNLEARNED}")
        if not encode_table(given.part(slice(t, t + 1), wider.names or ()), wider, learns[t : t + 1], begun).bad[0]:
            parts.append(wider.nothing(t))
            taken.update(new)
            encoder = wider
    encode_to(given.n)
    return Block.joined(parts)


def encode_table(given: Table, encoder: Any, learns: np.ndarray, begun: bool) -> Block:
    """Encode a table. In a column of numbers, a value that is not a number cannot be learned from."""
    schema, missing_is_error = encoder.schema, encoder.missing_is_error
    if schema.is_numeric:
        block = encode_numbers(given.numbers(range(len(schema.kinds))), schema, missing_is_error, learns)
        if (fault := block.fault) is None:
            return block
        return replace(block, fault=fault._replace(what=_complaint(given.value(fault.row, fault.column))))
    settled, since = _settle(given, schema, learns, missing_is_error)
    columns = settled.number_columns
    numbers = given.numbers(columns)
    for i, j in enumerate(columns) if since else ():
        numbers[: since.get(j, 0), i] = [_before_known(given.value(t, j)) for t in range(since.get(j, 0))]
    absent = np.isnan(numbers)
    wrong = find_bad(numbers, missing_is_error)
    faults = [Fault(t, columns[i], _complaint(given.value(t, columns[i]))) for t, i in np.argwhere(wrong).tolist()]
    numbers[wrong] = np.nan
    places = _places(given, settled.other_columns, schema)
    known = np.all(places >= 0, axis=0)  # columns of known categories alone: the usual ones, and fast
    unusual = [settled.other_columns[i] for i in np.flatnonzero(~known).tolist()]
    others = [_Other(j, given.column(j), settled.kinds[j], since.get(j)) for j in unusual]
    for other in others:
        faults += other.faults(missing_is_error)
    dates = {}
    for j in (j for j, kind in enumerate(settled.kinds) if kind == DATE):
        dates[j], wrong_dates = _calendar(given.column(j), missing_is_error)
        faults += [Fault(t, j, _complaint_of_date(given.value(t, j))) for t in wrong_dates]
    bad = np.zeros(given.n, dtype=bool)
    bad[[fault.row for fault in faults]] = True
    learned = learns & ~bad
    first = -1 if begun or not learned.any() else int(np.argmax(learned))
    late = [j for j, t in since.items() if settled.kinds[j] == NUMBER and t != first]
    new = [Arrival(since[j], Level(j, NUMBER)) for j in late]
    lost = {j: absent[:, i] for i, j in enumerate(columns)} | {other.j: other.absent for other in others}
    lost |= {j: np.isnan(features[:, 0]) for j, features in dates.items()}
    new += [Arrival(since[j], Level(j, DATE, i)) for j in dates if j in since for i in range(len(CALENDAR))]
    if schema.indicators:
        at = [(t, j) for j, gone in lost.items() for t in np.flatnonzero(gone).tolist()]
        rows, of = np.array(at, dtype=np.intp).reshape(-1, 2).T
        new += _first_missing(rows, of, learned, schema)
    new += _new_categories(others, learned, schema, encoder.max_categories)
    new.sort(key=_in_order)
    growth = _growth(schema, settled.kinds, since, new)
    after = growth[-1][1] if growth else schema
    table = np.zeros((given.n, after.width))
    table[:, after.number_places] = numbers
    for j, date_places in after.date_places.items():
        table[:, date_places] = dates[j]
    for j, place in after.missing_places.items():
        table[:, place] = lost.get(j, 0.0)
    for other in others:
        for t, place in other.placed(after.category_places.get(other.j, {})):
            table[t, place] = 1.0
    table[np.arange(given.n)[:, None], places[:, known]] = 1.0
    slots = np.column_stack([slots_of(given.column(j)) for j in after.coded]) if after.coded else None
    return Block(table, bad, min(faults, default=None), growth, slots)


class Arrival(NamedTuple):
    """What appears in a row for the first time."""

    row: int
    level: Level
    is_rare: bool = False  # a category that has no table column yet; the level OFFSET: an input column that is coded


def _in_order(arrival: Arrival) -> tuple[int, int, int]:
    """The order of the table columns: numbers, indicators, categories and offsets of the same row."""
    return arrival.row, (NUMBER, DATE, MISSING, CATEGORY, OFFSET).index(arrival.level.what), arrival.level.column


class _Other:
    """A column that holds categories from some row on, or nothing yet."""

    def __init__(self, j: int, values: Sequence[Any], kind: str, since: int | None) -> None:
        self.j, self.values, self.absent = j, values, missing(values)
        n = len(values)
        self.start = n if kind == UNKNOWN else since or 0  # the first row in which the column is known to be of text
        there = np.flatnonzero(~self.absent).tolist()
        self.before = [t for t in there if t < self.start]
        self.present = [t for t in there if t >= self.start and _is_hashable(values[t])]
        self.odd = sorted({*there} - {*self.before} - {*self.present})

    def faults(self, missing_is_error: bool) -> list[Fault]:
        """The values that cannot be learned from."""
        wrong = [t for t in self.before if not abs(_before_known(self.values[t])) <= LARGEST]
        found = [Fault(t, self.j, _complaint(self.values[t])) for t in wrong]
        found += [Fault(t, self.j, f"{self.values[t]!r} is not text") for t in self.odd]
        if missing_is_error:
            found += [Fault(t, self.j, "a category is missing") for t in np.flatnonzero(self.absent).tolist()]
        return found

    def placed(self, places: dict[Any, int]) -> list[tuple[int, int]]:
        """The rows whose category has a table column, and that column."""
        return [(t, places[self.values[t]]) for t in self.present if self.values[t] in places]


def _new_categories(others: list[_Other], learned: np.ndarray, schema: Schema, most: int) -> list[Arrival]:
    """The categories that get a table column, the rare ones, and the input columns that are coded from there on."""
    found: list[Arrival] = []
    known = {other.j: set(schema.category_places.get(other.j, ())) for other in others}
    rare: dict[int, set[Any]] = {other.j: set() for other in others}
    for j, category in schema.rare:
        if j in rare:
            rare[j].add(category)
    total, coded = schema.n_categories, set(schema.coded)
    values = {other.j: other.values for other in others}
    for t, j in sorted((t, other.j) for other in others for t in other.present if learned[t]):
        category = values[j][t]
        if category in known[j]:
            continue
        seen, has_room = category in rare[j], len(known[j]) < most and total < MOST_CATEGORIES
        if has_room and (seen or len(known[j]) < AT_SIGHT):
            known[j].add(category)
            rare[j].discard(category)
            total += 1
            found.append(Arrival(t, Level(j, CATEGORY, category)))
        elif not seen and len(rare[j]) < MOST_RARE:
            rare[j].add(category)
            found.append(Arrival(t, Level(j, CATEGORY, category), is_rare=True))
            if j not in coded:
                coded.add(j)
                found.append(Arrival(t, Level(j, OFFSET)))
    return found


def _places(given: Table, columns: list[int], schema: Schema) -> np.ndarray:
    """The table columns of the categories in some input columns; -1 where there is none."""
    by_column = [schema.category_places.get(j, {}) for j in columns]
    try:
        found = [
            [places.get(value, -1) for places, value in zip(by_column, row, strict=True)] for row in given.rows(columns)
        ]
    except TypeError:  # a value that is not hashable
        return np.full((given.n, len(columns)), -1)
    return np.array(found, dtype=np.intp).reshape(given.n, len(columns))


def _settle(given: Table, schema: Schema, learns: np.ndarray, missing_is_error: bool) -> tuple[Schema, dict[int, int]]:
    """The schema's kinds after the block; for columns that were unknown before it, the row that tells their kind."""
    if UNKNOWN not in schema.kinds:
        return schema, {}
    kinds, since = list(schema.kinds), {}
    unknown = [j for j in schema.other_columns if kinds[j] == UNKNOWN]
    waiting = {j: np.flatnonzero(learns & ~missing(given.column(j))) for j in unknown}
    at = 0
    while waiting := {j: later for j, rows in waiting.items() if (later := rows[np.searchsorted(rows, at) :]).size}:
        t = min(int(rows[0]) for rows in waiting.values())
        found = {j: kind_of(given.value(t, j)) for j, rows in waiting.items() if rows[0] == t}
        if all(_is_good(given.value(t, j), found.get(j, kind), missing_is_error) for j, kind in enumerate(kinds)):
            for j, kind in found.items():
                kinds[j], since[j] = kind, t
                del waiting[j]
        at = t + 1
    return replace(schema, kinds=tuple(kinds)), since


def _growth(
    schema: Schema, kinds: Sequence[str], since: dict[int, int], new: list[Arrival]
) -> list[tuple[int, Schema]]:
    """The schema from each row on that adds something; `new` is sorted by row."""
    found: list[tuple[int, Schema]] = []
    now, met = schema, 0
    for row in sorted({*since.values(), *(arrival.row for arrival in new)}):
        while met < len(new) and new[met].row <= row:
            _, level, is_rare = new[met]
            one = frozenset([(level.column, level.category)])
            if level.what == OFFSET:
                now = now.with_code(level.column)
            elif is_rare:
                now = replace(now, rare=now.rare | one)
            else:
                now = replace(now, levels=(*now.levels, level), rare=now.rare - one)
            met += 1
        then = kinds if not since else [UNKNOWN if since.get(j, row) > row else kind for j, kind in enumerate(kinds)]
        now = replace(now, kinds=tuple(then))
        found.append((row, now))
    return found


def kind_of(value: Any) -> str:
    """The kind of a column whose first value is this."""
    return DATE if is_date(value) else CATEGORY if isinstance(value, str) else NUMBER


def _calendar(values: Sequence[Any], missing_is_error: bool) -> tuple[Array, list[int]]:
    """The calendar features of a column of dates, and the rows whose value is not one."""
    lacks = missing(values)
    wrong = [t for t, value in enumerate(values) if (missing_is_error if lacks[t] else not is_date(value))]
    if wrong:
        others = set(wrong)
        values = [None if t in others else value for t, value in enumerate(values)]
    return calendar_features(values), wrong


def _complaint_of_date(value: Any) -> str:
    """What is wrong with a value in a column of dates."""
    return "a date is missing" if is_missing(value) else f"{value!r:.80} is not a date, and this column holds dates"


def _before_known(value: Any) -> float:
    """A value as a number, in a column whose kind is not known yet: text may turn out to be a category."""
    return 0.0 if isinstance(value, str) else as_number_or_inf(value)


def _complaint(value: Any) -> str:
    """What is wrong with a value that should be a number."""
    if is_date(value):
        return f"{value!r} is a date, and this column has held numbers so far"
    number = as_number_or_inf(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number) and isinstance(value, str):
        return f"{value!r} is text, and this column has held numbers so far. To learn it as text, fit a new learner"
    if math.isinf(number):
        return f"{number}"
    return f"{number:.6g}, which is too large for floating point arithmetic. Scale the features"


def _is_good(value: Any, kind: str, missing_is_error: bool) -> bool:
    """Whether the value would let its row be learned."""
    if is_missing(value):
        return not missing_is_error
    if kind == DATE:
        return is_date(value)
    return abs(as_number_or_inf(value)) <= LARGEST if kind == NUMBER else _is_hashable(value)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
