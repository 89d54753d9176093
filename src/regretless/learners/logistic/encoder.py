"""Encoder: rows in any form to a table of numbers, with categories and missing values.

Arrays, CSR matrices, data frames and dictionaries are accepted. The layout of the table is that of `Schema`. A category
that is rare or beyond `max_categories` has no column: its row has zeros in the columns of the others.

A block of rows is encoded in one go, and `Block.growth` says at which rows the schema grows. Rows of weight 0 and bad
rows add nothing to the schema. So the result does not depend on how the rows are cut into blocks.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass, field, replace
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse

from regretless.core.errors import BadRow
from regretless.core.files.state_checks import require
from regretless.core.learner import is_plain_row
from regretless.core.rows.calendar import calendar_features, is_date
from regretless.core.rows.inputs import as_block, as_floats, has_names, in_rows, is_missing, plain_list, readable_rows
from regretless.core.rows.validate import largest_square, writable
from regretless.core.scikit_learn import validate_data
from regretless.core.types import FLOAT, Array
from regretless.learners.logistic.block_encoding import Block, encode_dictionaries, encode_numbers, encode_table
from regretless.learners.logistic.matrices import check_matrix
from regretless.learners.logistic.offsets import slot_of
from regretless.learners.logistic.scaling import LARGEST
from regretless.learners.logistic.schema import (
    CATEGORY,
    NUMBER,
    UNKNOWN,
    Schema,
)
from regretless.learners.logistic.settings import Settings
from regretless.learners.logistic.tables import (
    NUMBERS,
    Columns,
    Dictionaries,
    Table,
    frame_columns,
)

NUMBERS_OR_NONE = NUMBERS | {type(None)}
PLAIN = (float, int)


def take_rows(estimator: Any, X: Any, first: bool, skips_bad_rows: bool) -> Any:
    """X as an array, a CSR matrix or a `Table`. The first time, the estimator gets its `n_features_in_` and names.

    Values that are not numbers are refused, or become infinite where bad rows are skipped.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if isinstance(X, list) and X and isinstance(X[0], dict):
        if first:
            names = estimator.feature_names_in_ = np.array(list(X[0]), dtype=object)
            estimator.n_features_in_ = len(names)
        elif names is None:
            raise BadRow("the rows are dictionaries, and this learner has learned rows without names: give an array.")
        return Dictionaries(X, list(names))
    if (columns := frame_columns(X)) is not None:
        validate_data(estimator, X, reset=first, skip_check_array=True)
        return Columns(columns)
    X = validate_data(
        estimator,
        readable_rows(X, names, masked=True, instead=math.inf if skips_bad_rows else None),
        reset=first,
        accept_sparse="csr",
        dtype=np.float64,
        order="C",
        ensure_all_finite=False,
    )
    if not sparse.issparse(X):
        return writable(X)
    check_matrix(X, None)
    return X if X.has_sorted_indices else X.sorted_indices()


def number_of(rows: Any) -> int:
    """The number of rows that `take_rows` returned."""
    return int(rows.n if isinstance(rows, Table) else rows.shape[0])


def kind_of_rows(rows: Any) -> str:
    """What is known of the columns before any row is learned: an array holds numbers, a `Table` may hold anything."""
    return UNKNOWN if isinstance(rows, Table) else NUMBER


def as_rows(estimator: Any, x: Any) -> Any:
    """One row in the form that `take_rows` accepts."""
    if isinstance(x, dict):
        return [x]
    if sparse.issparse(x) or has_names(x):
        return as_block(x)
    row = as_floats(x, in_rows(getattr(estimator, "feature_names_in_", None)), masked=True)
    if hasattr(estimator, "state_") and row.shape != (estimator.n_features_in_,):
        raise BadRow(f"x has shape {row.shape}; this learner takes {estimator.n_features_in_} features.")
    return row.reshape(1, -1)


@dataclass(frozen=True)
class Encoder:
    """Encodes rows by a schema; a new encoder, with the grown schema, replaces it when something appears."""

    schema: Schema
    first_names: tuple[Any, ...] | None  # of the input columns that the first row had, where they have any
    missing_is_error: bool
    skips_bad_rows: bool
    max_categories: int
    names: tuple[Any, ...] | None = field(init=False, repr=False)  # of all input columns
    name_set: frozenset[Any] = field(init=False, repr=False)
    values_of: Any = field(init=False, repr=False, compare=False, default=None)  # of a dictionary that has all names
    format: str = field(init=False, repr=False)  # of these values, for `struct.pack`
    keeps_arrays: bool = field(init=False, repr=False)  # whether a row without names and missing values stays as it is
    extent: ClassVar[int] = 0  # an encoder never changes

    def __post_init__(self) -> None:
        names = None if self.first_names is None else self.first_names + self.schema.new_names
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "name_set", frozenset(names or ()))
        object.__setattr__(self, "format", f"{len(names or ())}d")
        if names is not None and len(names) > 1 and self.schema.is_identity:
            object.__setattr__(self, "values_of", itemgetter(*names))
        keeps = names is None and self.schema.is_numeric and not self.schema.levels
        object.__setattr__(self, "keeps_arrays", keeps)

    @classmethod
    def start(cls, estimator: Any, settings: Settings, kind: str = NUMBER) -> Self:
        """The encoder before the first row, with columns of one kind: `kind_of_rows`."""
        names = getattr(estimator, "feature_names_in_", None)
        return cls(
            Schema((kind,) * estimator.n_features_in_, indicators=settings.missing == "indicator"),
            None if names is None else tuple(names),
            settings.missing == "error",
            settings.skips_bad_rows,
            settings.max_categories,
        )

    def with_schema(self, schema: Schema) -> Self:
        """The same with a grown schema."""
        return replace(self, schema=schema)

    @property
    def width(self) -> int:
        """The number of encoded columns."""
        return self.schema.width

    def nothing(self, row: int) -> Block:
        """No rows, after which the schema is this one."""
        return Block(np.empty((0, self.width)), np.empty(0, dtype=bool), None, [(row, self.schema)])

    def to_file(self) -> dict[str, Any]:
        """What a model file stores of the encoder."""
        return self.schema.to_file()

    def from_file(self, **fields: Any) -> Self:
        """This encoder with the schema that a file holds; refuses one that rows of these settings cannot lead to."""
        schema = Schema.from_file(**fields)
        n_features = len(self.schema.kinds)
        require(schema.indicators == self.schema.indicators, "indicators contradict the parameter missing")
        require(len(schema.kinds) == n_features, f"kinds has {len(schema.kinds)} entries for {n_features} features")
        most = max(schema.counts().values(), default=0)
        require(most <= self.max_categories, f"a column has {most} categories, more than max_categories")
        return self.with_schema(schema)

    # ------------------------------------------------------------------ a block

    def encode(self, rows: Any, learns: np.ndarray, begun: bool) -> Block:
        """Encode a block. `learns` marks the rows that may extend the schema; `begun`: some row was learned before."""
        if not isinstance(rows, Table):
            if CATEGORY in self.schema.kinds:
                raise ValueError(
                    "the rows are an array, and this learner has learned columns of text: give a data frame or "
                    "dictionaries with the same names."
                )
            if self.schema.is_numeric:
                return self._checked(encode_numbers(rows, self.schema, self.missing_is_error, learns))
            rows = Columns(list((rows.toarray() if sparse.issparse(rows) else rows).T))
        if isinstance(rows, Dictionaries) and learns.any():
            return self._checked(encode_dictionaries(rows, self, learns, begun))
        return self._checked(encode_table(rows, self, learns, begun))

    def encode_unlearned(self, rows: Any) -> Block:
        """Encode rows that are forecast and not learned."""
        return self.encode(rows, np.zeros(number_of(rows), dtype=bool), begun=True)

    def _checked(self, block: Block) -> Block:
        """The block, unless a row of it is bad and bad rows are errors."""
        if block.fault is None or self.skips_bad_rows:
            return block
        row, column, what = block.fault
        named = f" ({self.names[column]!r})" if self.names is not None else ""
        raise BadRow(
            f"row {row}, column {column}{named}: {what}. Input contains NaN or inf, or a value that is not a number: "
            'fill the value in or drop the row; leave out a value that is missing (missing="indicator" or "mean" '
            'learns from such rows); or choose on_bad_row="skip". Nothing was learned from this call.'
        )

    # ------------------------------------------------------------------ one row

    def encode_one(self, x: Any) -> Array | None:
        """x as a block of one row, if it is a good row of known values, which is the usual case.

        None means that the row may add something or is bad: `encode` deals with it.
        """
        if type(x) is dict:
            if (row := self.known_values(x)) is None:
                return None
            lacks = len(x) < len(self.name_set) or None in x.values()
            there = row[row == row] if lacks else row
            return row[None] if largest_square(there[None]) <= LARGEST**2 else None
        if self.names is not None or not self.schema.is_numeric:
            return None
        plain: Any = plain_list(x) if type(x) is list else x
        if type(plain) is np.ndarray and plain.ndim == 1 and plain.dtype is FLOAT:
            plain = np.ascontiguousarray(plain)  # a row of an array by columns, such as that of a data frame
        if not is_plain_row(plain, len(self.schema.kinds)) or not largest_square(plain[None]) <= LARGEST**2:
            return None
        if self.schema.levels:  # indicators: nothing is missing in a plain row
            plain = np.r_[plain, np.zeros(len(self.schema.levels))]
        block: Array = plain[None]
        return block

    def known_values(self, x: dict[Any, Any]) -> Array | None:
        """The encoded values of a dictionary with numbers and known categories; None if it has anything else.

        A value that is None, or a name that it lacks, counts as missing if that has happened in its column before. The
        slots of coded columns come after the others.
        Numbers may be too large to be learned.
        """
        schema, names = self.schema, self.names
        if (packed := self.packed(x)) is not None:
            return np.frombuffer(packed).copy()
        if schema.has_unknown or names is None:
            return None
        values = [*map(x.get, names)]
        numbers = values if schema.is_numeric else [values[j] for j in schema.number_columns]
        types = {*map(type, numbers)}
        if not types <= NUMBERS_OR_NONE:
            return None
        lacks = type(None) in types or (numbers is not values and None in values)
        if (lacks or len(x) != len(names)) and not x.keys() <= self.name_set:
            return None
        try:
            row = np.zeros(schema.width)
            row[schema.number_places] = np.array(numbers, dtype=np.float64)  # None becomes NaN
            for j, places in schema.category_places.items():
                place = places.get(values[j])
                if place is not None:
                    row[place] = 1.0
                elif values[j] is not None and not (
                    type(values[j]) is str and schema.has_settled(j, values[j], self.max_categories)
                ):
                    return None
            for j, date_places in schema.date_places.items():
                if values[j] is None:
                    row[date_places] = np.nan
                elif is_date(values[j]) and not is_missing(values[j]):
                    row[date_places] = calendar_features([values[j]])[0]
                else:
                    return None
            if schema.coded:
                row = np.r_[row, [slot_of(values[j]) for j in schema.coded]]
        except (TypeError, OverflowError):  # a category without a hash, or an integer beyond floats
            return None
        return row if not lacks or self._marks_missing(values, row) else None

    def packed(self, x: dict[Any, Any]) -> bytes | None:
        """The values of a dictionary with one number for each name, in half of the time that an array takes."""
        if self.values_of is None:
            return None
        try:
            values = self.values_of(x)
            # to add the values up takes a third of the time of looking at their types, and gives a float for no others
            if len(x) != len(values) or (type(sum(values)) not in PLAIN and not NUMBERS.issuperset(map(type, values))):
                return None
            return struct.pack(self.format, *values)
        except (KeyError, TypeError, OverflowError, struct.error):  # a name that it lacks, text, integers beyond floats
            return None

    def _marks_missing(self, values: list[Any], row: Array) -> bool:
        """Set the indicators of missing values; False if the row must be refused, or adds an indicator."""
        if self.missing_is_error:
            return False
        if self.schema.indicators:
            for j, value in enumerate(values):
                if value is None:
                    place = self.schema.missing_places.get(j)
                    if place is None:
                        return False
                    row[place] = 1.0
        return True
