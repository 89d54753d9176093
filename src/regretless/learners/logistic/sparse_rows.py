"""SparseEncoder: wide rows to entries. CSR matrices keep their columns; names and texts get columns by hash.

A dictionary (or a row of a data frame) has one entry per value: a number is an entry of the column of its name, a text
is an entry 1 of the column of its name and text. Any number of names may come. The first learned value of a name tells
whether it holds numbers or text; for text, a column that is always 0 remembers this, so the index of columns is all
that must be stored.

`interactions` add the products of pairs of entries, in 2^bits columns of their own; those that collide are added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.files.state_checks import require
from regretless.core.kernels.jit import kernel
from regretless.core.rows.calendar import CALENDAR, calendar_features, is_date
from regretless.core.rows.inputs import UNLEARNED, as_number, is_missing, readable_rows
from regretless.core.rows.validate import largest_square, whole
from regretless.core.scikit_learn import validate_data
from regretless.core.types import Array
from regretless.learners.logistic.hashing import Ids, Index, id_of, pair_id
from regretless.learners.logistic.matrices import MOST_COLUMNS, check_matrix
from regretless.learners.logistic.scaling import LARGEST
from regretless.learners.logistic.schema import Schema
from regretless.learners.logistic.settings import Settings
from regretless.learners.logistic.sparse_game import Entries
from regretless.learners.logistic.tables import MANY_COLUMNS, NUMBERS, frame_columns

ONE_COLUMN = {int}  # the type of what is known of names that hold numbers


class Names(list[dict[Any, Any]]):
    """Rows given as dictionaries."""

    @property
    def shape(self) -> tuple[int]:
        """The number of rows."""
        return (len(self),)


class Fault(NamedTuple):
    """A value that cannot be learned from."""

    row: int
    column: str
    what: str


class NamedRow(NamedTuple):
    """The entries of a dictionary."""

    names: list[Any]
    columns: list[int]
    data: list[float]
    new: dict[Any, Any]  # names that were not known: as in `SparseEncoder.known`
    fault: tuple[str, str] | None  # the name of the first value that cannot be learned from, and what is wrong


@dataclass(frozen=True)
class SparseBlock:
    """Encoded rows. Columns need no schema, so it never grows."""

    entries: Entries
    bad: np.ndarray  # which rows cannot be learned from
    growth: ClassVar[list[Any]] = []

    def __len__(self) -> int:
        return self.entries.indptr.size - 1

    def rows(self, some: slice, schema: Any) -> Entries:
        """Some rows."""
        return self.entries.rows(some)


def is_wide(X: Any, settings: Settings) -> bool:
    """Whether rows are learned entry by entry: as `sparse` says; "auto" looks at the first call."""
    n_columns = 0
    if settings.sparse == "auto":
        n_columns = X.shape[1] if sparse.issparse(X) else len(set().union(*X)) if _are_dictionaries(X) else 0
    return are_wide(n_columns, settings)


def are_wide(n_columns: int, settings: Settings) -> bool:
    """Whether rows of so many sparse columns are learned entry by entry."""
    if settings.sparse != "auto":
        return bool(settings.sparse)
    return settings.interactions is not None or n_columns > MANY_COLUMNS


def _are_dictionaries(X: Any) -> bool:
    return isinstance(X, list) and bool(X) and isinstance(X[0], dict)


def take_wide_rows(estimator: Any, X: Any, first: bool, named: bool) -> Any:
    """X as a checked CSR matrix, or as `Names`. The first time, the estimator gets its `n_features_in_`."""
    if not _are_dictionaries(X) and (columns := frame_columns(X)) is not None:
        names = list(getattr(X, "column_names", None) or X.columns)
        values = (column.tolist() if isinstance(column, np.ndarray) else column for column in columns)
        X = [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]
    if isinstance(X, list) and X and isinstance(X[0], dict):
        if not first and not named:
            raise BadRow(f"the rows have names, and this learner has learned a matrix: give CSR rows. {UNLEARNED}")
        for t, row in enumerate(X):
            if not isinstance(row, dict):
                raise BadRow(f"row {t} is a {type(row).__name__}, unlike row 0: give dictionaries. {UNLEARNED}")
        if first:
            estimator.n_features_in_ = 1  # that of the columns seen, as they come
        return Names(X)
    if not first and named:
        raise BadRow(
            f"the rows have no names, and this learner has learned dictionaries or a data frame: give one. {UNLEARNED}"
        )
    is_csr = sparse.issparse(X) and X.format == "csr" and X.dtype == np.float64
    if is_csr:
        check_matrix(X, None if first else estimator.n_features_in_)
    if first or not is_csr or X.shape[0] == 0:
        X = validate_data(
            estimator,
            readable_rows(X, None, masked=True),
            reset=first,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_all_finite=False,
        )
        X = X if sparse.issparse(X) else sparse.csr_array(X)
        check_matrix(X, None)
    return X


@dataclass
class SparseEncoder:
    """Encodes wide rows. `index` has the columns that learned rows have had."""

    named: bool  # whether rows are dictionaries or frames
    n_columns: int  # of a matrix
    missing: str
    skips_bad_rows: bool
    interactions: Any  # None, "pairs", or pairs of columns
    mask: int  # the number of columns of pairs, less 1
    index: Index
    expected: int = 0  # the columns that a file has: those of the index before it is read
    # names that hold numbers -> their column; names that hold text -> the columns of their texts
    known: dict[Any, Any] = field(default_factory=dict, repr=False)
    schema: ClassVar[Schema] = Schema(())
    width: ClassVar[int] = 0

    @classmethod
    def start(cls, settings: Settings, named: bool, n_columns: int) -> Self:
        """The encoder before the first row."""
        if not (isinstance(settings.radii, str) and settings.radii == "auto"):
            raise ValueError(
                'radii are those of members with matrices, and wide rows have none: leave radii="auto", or set '
                "sparse=False."
            )
        pairs = settings.interactions
        return cls(
            named,
            n_columns,
            settings.missing,
            settings.skips_bad_rows,
            pairs if pairs is None or isinstance(pairs, str) else [tuple(pair) for pair in pairs],
            (1 << settings.interaction_bits) - 1,
            Index(np.empty(0, dtype=np.int64)),
        )

    @classmethod
    def from_file(cls, settings: Settings, named: Any, seen: Any, n_columns: int) -> Self:
        """The encoder that a file holds. Its index is made from the columns of the state."""
        require(isinstance(named, bool), f"named={named!r} must be true or false")
        found = cls.start(settings, named, n_columns)
        found.expected = whole("seen", seen, 1 if settings.fit_intercept else 0)
        return found

    def to_file(self) -> dict[str, Any]:
        """What a model file stores besides the state: the arguments of `from_file`."""
        return {"named": self.named, "seen": self.index.n}

    # ------------------------------------------------------------------ a block

    def encode(self, rows: Any, learns: np.ndarray, begun: bool) -> SparseBlock:
        """Encode a block. `learns` marks the rows that may be learned."""
        if isinstance(rows, Names):
            entries, fields, faults = self._encode_names(rows, learns)
        else:
            entries, fields, faults = self._encode_matrix(rows)
        bad = np.zeros(rows.shape[0], dtype=bool)
        if faults:
            if not self.skips_bad_rows:
                self._refuse(min(faults))
            bad[[fault.row for fault in faults]] = True
        return SparseBlock(self._with_pairs(entries, fields), bad)

    def encode_unlearned(self, rows: Any) -> SparseBlock:
        """Encode rows that are forecast and not learned."""
        return self.encode(rows, np.zeros(rows.shape[0], dtype=bool), begun=True)

    def _refuse(self, fault: Fault) -> None:
        raise BadRow(
            f"row {fault.row}, column {fault.column}: {fault.what} Fill the value in or drop the row, or choose "
            f'missing="mean" for missing values, on_bad_row="skip" for bad rows. {UNLEARNED}'
        )

    def _encode_matrix(self, X: Any) -> tuple[Entries, Ids, list[Fault]]:
        entries = Entries(X.indptr.astype(np.int64), X.indices.astype(np.int64), X.data)
        fields = entries.columns
        if largest_square(X.data[None]) <= LARGEST**2:
            return entries, fields, []
        data, columns = X.data.copy(), entries.columns.copy()
        absent = np.isnan(data) & (self.missing != "error")
        wrong = ~(np.abs(data) <= LARGEST) & ~absent
        at = np.flatnonzero(wrong)
        row_of = np.searchsorted(X.indptr, at, side="right") - 1
        faults = [Fault(int(t), str(columns[i]), _complaint(data[i])) for t, i in zip(row_of, at, strict=True)]
        data[wrong | absent] = 0.0
        if self.missing == "indicator":
            columns[absent] += MOST_COLUMNS
            data[absent] = 1.0
        return Entries(entries.indptr, columns, data), fields, faults

    def _encode_names(self, rows: Names, learns: np.ndarray) -> tuple[Entries, Ids, list[Fault]]:
        columns: list[int] = []
        data: list[float] = []
        fields: list[int] = []
        ends, faults = [0], []
        fresh: dict[Any, Any] = {}  # names that appear in these rows, as in `known`
        for t, row in enumerate(rows):
            found = self._read(row, fresh)
            if found.fault is not None:
                faults.append(Fault(t, *found.fault))
            elif learns[t]:
                fresh |= found.new
            columns += found.columns
            data += found.data
            if isinstance(self.interactions, list):
                fields += [id_of(name) for name in found.names]
            ends.append(len(columns))
        entries = Entries(np.array(ends), np.array(columns, dtype=np.int64), np.array(data, dtype=np.float64))
        return entries, np.array(fields, dtype=np.int64), faults

    def _read(self, row: dict[Any, Any], fresh: dict[Any, Any]) -> NamedRow:
        """The entries of a dictionary, whether it is learned or not."""
        known, found = self.known, NamedRow([], [], [], {}, None)
        names, columns, data, new, _ = found
        fault = None
        for name, value in row.items():
            if is_date(value) and not is_missing(value):
                names += [name] * len(CALENDAR)
                columns += [id_of(name, part, "calendar") for part in CALENDAR]
                data += calendar_features([value])[0].tolist()
                continue
            kind, of = known.get(name), type(value)
            if type(kind) is int and of in NUMBERS and -LARGEST <= value <= LARGEST:
                column, number = kind, float(value)
            elif type(kind) is dict and of is str and value in kind:
                column, number = kind[value], 1.0
            else:
                entry = self._unusual(name, value, fresh, new)
                if type(entry) is str:
                    fault = fault or (repr(name), entry)
                if type(entry) is not tuple:
                    continue
                column, number = entry
            names.append(name)
            columns.append(column)
            data.append(number)
        for name, kind in new.items():
            if type(kind) is dict:  # remembers that the name holds text
                names.append(name)
                columns.append(id_of(name, None, "text"))
                data.append(0.0)
        return found._replace(fault=fault)

    def _unusual(
        self, name: Any, value: Any, fresh: dict[Any, Any], new: dict[Any, Any]
    ) -> tuple[int, float] | str | None:
        """The column and value of an entry; what is wrong with it; or None if it is missing and leaves no entry.

        Names never seen are added to `new`. Only what was learned is remembered, so that forecasts use no memory.
        """
        if is_missing(value):
            if self.missing == "error":
                return "Input contains NaN, a missing value."
            return (id_of(name, None, "missing"), 1.0) if self.missing == "indicator" else None
        kind = self._kind(name, fresh)
        if isinstance(value, str):
            if type(kind) is int:
                return f"{value!r} is text, and this column held numbers before."
            if kind is None:
                kind = new[name] = {}
            column = kind.get(value)
            if column is None:
                column = id_of(name, value)
                if column in self.index:
                    kind[value] = column
            return column, 1.0
        try:
            number = as_number(value)
        except (TypeError, ValueError, OverflowError):
            return f"{value!r:.80} is neither a number nor text."
        if isinstance(kind, dict):
            return f"{value!r} is a number, and this column held text before."
        if not abs(number) <= LARGEST:
            return _complaint(number)
        if kind is None:
            kind = new[name] = id_of(name)
        return kind, number

    def _kind(self, name: Any, fresh: dict[Any, Any]) -> Any:
        """What a name holds: its column for numbers, the columns of its texts, or None if no value was learned."""
        kind = self.known.get(name)
        if kind is None:
            column = id_of(name)
            if column in self.index:
                self.known[name] = kind = column
            elif id_of(name, None, "text") in self.index:
                self.known[name] = kind = {}
            else:
                kind = fresh.get(name)
        return kind

    # ------------------------------------------------------------------ one row

    @property
    def extent(self) -> int:
        """A number that changes whenever a name may mean something new."""
        return self.index.n

    def encode_one(self, x: Any) -> Entries | None:
        """x as a block of one row, if it is a good dictionary; None: `encode` deals with it."""
        if type(x) is not dict or self.interactions is not None or not self.named:
            return None
        columns: list[Any] = [*map(self.known.get, x)]
        values = [*x.values()]
        try:
            if not {*map(type, columns)} <= ONE_COLUMN:  # some names are new, or hold text
                pairs = [
                    (kind, value) if type(kind) is int else (kind[value], 1.0)
                    for kind, value in zip(columns, values, strict=True)
                ]
                columns, values = [column for column, _ in pairs], [value for _, value in pairs]
            if not {*map(type, values)} <= NUMBERS:
                raise TypeError
            data = np.array(values, dtype=np.float64)
        except (KeyError, TypeError, OverflowError):  # something is new, missing, or wrong
            found = self._read(x, {})
            if found.fault is not None:
                return None
            columns, data = found.columns, np.array(found.data, dtype=np.float64)
        if not largest_square(data[None]) <= LARGEST**2:
            return None
        return Entries(np.array([0, data.size]), np.array(columns, dtype=np.int64), data)

    # ------------------------------------------------------------------ interactions

    def _with_pairs(self, entries: Entries, fields: Ids) -> Entries:
        if self.interactions is None:
            return entries
        pairs = np.empty((0, 2), dtype=np.int64)
        if isinstance(self.interactions, list):
            pairs = np.array([[self._field(name) for name in pair] for pair in self.interactions], dtype=np.int64)
        return Entries(*add_pairs(*entries, fields, pairs, self.mask))

    def _field(self, name: Any) -> int:
        if self.named:
            return id_of(name)
        if isinstance(name, bool) or not isinstance(name, int | np.integer) or not 0 <= name < self.n_columns:
            raise ValueError(f"interactions: {name!r} is not a column of a matrix of {self.n_columns} columns.")
        return int(name)


def _complaint(number: float) -> str:
    """What is wrong with a number."""
    if math.isnan(number) or math.isinf(number):
        return f"Input contains NaN or infinity: {number}."
    return f"{number:.6g} is too large for floating point arithmetic: scale the column."


@kernel
def add_pairs(indptr: Ids, columns: Ids, data: Array, fields: Ids, pairs: Ids, mask: int) -> tuple[Ids, Ids, Array]:
    """The rows with products of pairs of entries, all of them if `pairs` is empty; those of one column are added."""
    n = indptr.size - 1
    ends = np.zeros(n + 1, np.int64)
    room = 0
    for t in range(n):
        length = indptr[t + 1] - indptr[t]
        room += length + (length * (length - 1) // 2 if pairs.shape[0] == 0 else pairs.shape[0])
    ids, values = np.empty(room, np.int64), np.empty(room)
    at = 0
    for t in range(n):
        first, last = indptr[t], indptr[t + 1]
        for i in range(first, last):
            ids[at], values[at] = columns[i], data[i]
            at += 1
        begin = at
        if pairs.shape[0] == 0:
            for i in range(first, last):
                for j in range(i + 1, last):
                    if data[i] != 0.0 and data[j] != 0.0:
                        ids[at], values[at] = pair_id(columns[i], columns[j], mask), data[i] * data[j]
                        at += 1
        else:
            for p in range(pairs.shape[0]):
                i, j = (
                    position(fields, first, last, pairs[p, 0], data),
                    position(fields, first, last, pairs[p, 1], data),
                )
                if i >= 0 and j >= 0:
                    ids[at], values[at] = pair_id(columns[i], columns[j], mask), data[i] * data[j]
                    at += 1
        at = added(ids, values, begin, at)
        ends[t + 1] = at
    return ends, ids[:at].copy(), values[:at].copy()


@kernel
def position(fields: Ids, first: int, last: int, wanted: int, data: Array) -> int:
    """The entry of a field that is not 0, or -1."""
    for i in range(first, last):
        if fields[i] == wanted and data[i] != 0.0:
            return i
    return -1


@kernel
def added(ids: Ids, values: Array, begin: int, end: int) -> int:
    """Sort the entries from `begin` to `end` by id, and add those of the same id; returns the new end."""
    order = np.argsort(ids[begin:end], kind="mergesort")
    sorted_ids, sorted_values = ids[begin:end][order], values[begin:end][order]
    at = begin - 1
    for i in range(order.size):
        if at >= begin and ids[at] == sorted_ids[i]:
            values[at] += sorted_values[i]
        else:
            at += 1
            ids[at], values[at] = sorted_ids[i], sorted_values[i]
    return at + 1
