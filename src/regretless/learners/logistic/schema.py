"""Schema: what each input column holds, and where its values go in the encoded table.

A column of a data frame or a dictionary holds numbers or categories, as its first value in a learned row tells; before
that row it has no column in the table. The table has, in this order:

1. the columns of numbers that had a number in the first learned row, in input order;
2. one column per `Level`, in the order of appearance: a column of numbers whose first number came later, a category, a
   calendar feature of a column of dates, or with `missing="indicator"` a column that is 1 where the value of an input
   column is missing.

So whatever appears later adds columns at the end, and no column moves.

The first `AT_SIGHT` categories of an input column get a table column when they are first seen, later ones when they are
seen for the second time. A stream of names or numbers of customers has many that never come back. Until then they are
`rare`: their rows have zeros in the columns of the others, as have those beyond `max_categories` and beyond
`MOST_CATEGORIES` over all input columns. With its first rare category an input column is `coded`: from there on the
table has columns for the offsets of such categories, and encoded rows have their slots after the columns of the table
(offsets.py).
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from regretless.core.files.state_checks import require
from regretless.core.rows.calendar import CALENDAR
from regretless.core.rows.inputs import is_missing
from regretless.learners.logistic.offsets import VARIANCES

NUMBER, CATEGORY, DATE, UNKNOWN = "number", "category", "date", "unknown"  # the last: no value was learned yet
MISSING, OFFSET = "missing", "offset"
AT_SIGHT = 32
MOST_CATEGORIES = 256  # with a table column: with more of them, rows take long
MOST_RARE = 10_000  # categories without a column that are remembered, per input column


class Level(NamedTuple):
    """What a table column holds that has appeared after the first row."""

    column: int  # of the input
    what: str  # NUMBER: its numbers, CATEGORY: whether it is this category, MISSING: whether it is missing, DATE: its
    category: Any = None  # calendar feature of this index, OFFSET: that of the model of offsets of this index


@dataclass(frozen=True)
class Schema:
    """What each input column holds, and what has appeared after the first row."""

    kinds: tuple[str, ...]
    levels: tuple[Level, ...] = ()
    indicators: bool = False
    rare: frozenset[tuple[int, Any]] = frozenset()  # categories without a table column, with their input column
    new_names: tuple[Any, ...] = ()  # of the last input columns, which came after the first row
    coded: tuple[int, ...] = ()  # the input columns whose categories have offsets, in the order of appearance
    has_unknown: bool = field(init=False, repr=False, compare=False)  # columns without a value so far
    is_numeric: bool = field(init=False, repr=False, compare=False)  # numbers in input order, and indicators
    is_identity: bool = field(init=False, repr=False, compare=False)  # numbers alone: the table is the input

    def __post_init__(self) -> None:
        object.__setattr__(self, "has_unknown", UNKNOWN in self.kinds)
        numbers = {*self.kinds} <= {NUMBER}
        object.__setattr__(self, "is_numeric", numbers and all(level.what == MISSING for level in self.levels))
        object.__setattr__(self, "is_identity", numbers and not self.levels)

    @classmethod
    def from_file(cls, kinds: Any, levels: Any, indicators: Any, rare: Any, coded: Any) -> Schema:
        """The schema of these JSON values; refuses values that no schema has."""
        known = {NUMBER, CATEGORY, DATE, UNKNOWN}
        require(isinstance(kinds, list) and set(kinds) <= known, f"kinds={kinds!r} are not kinds of columns")
        require(isinstance(levels, list) and isinstance(indicators, bool), "levels or indicators have the wrong type")
        for level in levels:
            triple = isinstance(level, list) and len(level) == 3 and type(level[0]) is int
            require(triple and 0 <= level[0] < len(kinds), f"{level!r} is no category or other level")
            column, what, category = level
            if what == CATEGORY:
                require(kinds[column] == CATEGORY and _is_category(category), f"{level!r} is no category")
            elif what == NUMBER:
                require(kinds[column] == NUMBER and category is None, f"{level!r} is no late column of numbers")
            elif what == OFFSET:
                require(isinstance(coded, list) and coded and column == coded[0], f"{level!r} is no column of offsets")
            elif what == DATE:
                require(
                    kinds[column] == DATE and type(category) is int and 0 <= category < len(CALENDAR),
                    f"{level!r} is no calendar feature",
                )
            else:
                require(what == MISSING and indicators and category is None, f"{level!r} contradicts indicators")
        require(isinstance(rare, list), "rare is not a list")
        for one in rare:
            pair = isinstance(one, list) and len(one) == 2 and type(one[0]) is int and 0 <= one[0] < len(kinds)
            require(pair and kinds[one[0]] == CATEGORY and _is_category(one[1]), f"{one!r} is no rare category")
        require(isinstance(coded, list), "coded is not a list")
        for column in coded:
            known_column = type(column) is int and 0 <= column < len(kinds) and kinds[column] == CATEGORY
            require(known_column and coded.count(column) == 1, f"coded has {column!r}")
        found = tuple(Level(*level) for level in levels)
        offsets = [level.category for level in found if level.what == OFFSET]
        require(offsets == list(range(len(VARIANCES) * bool(coded))), "the columns of offsets contradict coded")
        features = Counter(level.column for level in found if level.what == DATE)
        dates = {j: len(CALENDAR) for j, kind in enumerate(kinds) if kind == DATE}
        require(dict(features) == dates, "a column of dates lacks calendar features")
        seen = [*found, *(Level(column, CATEGORY, category) for column, category in rare)]
        require(len(set(seen)) == len(seen), "a category occurs twice")
        pairs = frozenset((column, category) for column, category in rare)
        schema = cls(tuple(kinds), found, indicators, pairs, coded=tuple(coded))
        require(max(schema.rare_counts.values(), default=0) <= MOST_RARE, "a column has too many rare categories")
        return schema

    def to_file(self) -> dict[str, Any]:
        """The arguments of `from_file`."""
        return {
            "kinds": list(self.kinds),
            "levels": [list(level) for level in self.levels],
            "indicators": self.indicators,
            "rare": [list(one) for one in sorted(self.rare, key=lambda one: (one[0], str(one[1])))],
            "coded": list(self.coded),
        }

    def with_code(self, column: int) -> Schema:
        """The schema in which this input column is coded."""
        new = () if self.coded else tuple(Level(column, OFFSET, i) for i in range(len(VARIANCES)))
        return replace(self, coded=(*self.coded, column), levels=self.levels + new)

    def with_names(self, names: list[Any]) -> Schema:
        """The schema with more input columns, which have no value yet."""
        return replace(self, kinds=self.kinds + (UNKNOWN,) * len(names), new_names=self.new_names + tuple(names))

    def counts(self) -> Counter[int]:
        """How many categories with a table column each input column has."""
        return Counter(level.column for level in self.levels if level.what == CATEGORY)

    @cached_property
    def n_categories(self) -> int:
        """How many categories have a table column."""
        return self.counts().total()

    @cached_property
    def rare_counts(self) -> Counter[int]:
        """How many categories without a table column are remembered, by input column."""
        return Counter(column for column, _ in self.rare)

    def rows_seen(self, before: Schema, rows: float) -> np.ndarray:
        """For each table column that `before` lacks, in how many of the `rows` so far it had a value, which was 0.

        A category or an indicator has had one in all of them, a late column of numbers, dates or offsets in none.
        """
        late = (NUMBER, DATE, OFFSET)
        return np.array([0.0 if level.what in late else rows for level in self.levels[len(before.levels) :]])

    @cached_property
    def number_columns(self) -> list[int]:
        """The input columns that hold numbers."""
        return [j for j, kind in enumerate(self.kinds) if kind == NUMBER]

    @cached_property
    def other_columns(self) -> list[int]:
        """The input columns that hold categories, or nothing yet."""
        return [j for j, kind in enumerate(self.kinds) if kind in (CATEGORY, UNKNOWN)]

    @cached_property
    def date_places(self) -> dict[int, list[int]]:
        """The table columns of the calendar features, by input column."""
        found: dict[int, list[int]] = {}
        for i, level in enumerate(self.levels, start=self.width - len(self.levels)):
            if level.what == DATE:
                found.setdefault(level.column, []).append(i)
        return found

    @cached_property
    def number_places(self) -> np.ndarray:
        """The table columns of `number_columns`."""
        late, first = self._places(NUMBER), itertools.count()
        return np.array([late[j] if j in late else next(first) for j in self.number_columns], dtype=np.intp)

    @cached_property
    def numbers(self) -> np.ndarray:
        """The table columns that hold numbers, in their order."""
        return np.sort(self.number_places)

    @cached_property
    def missing_places(self) -> dict[int, int]:
        """The table column of every indicator, by input column."""
        return self._places(MISSING)

    @cached_property
    def offset_places(self) -> np.ndarray:
        """The table columns of the offsets."""
        return self._where(lambda level: level.what == OFFSET)

    @cached_property
    def singly(self) -> np.ndarray:
        """The table columns of single categories of coded columns."""
        return self._where(lambda level: level.what == CATEGORY and level.column in self.coded)

    def _where(self, test: Callable[[Level], bool]) -> np.ndarray:
        first = self.width - len(self.levels)
        return np.array([i for i, level in enumerate(self.levels, first) if test(level)], dtype=np.intp)

    def _places(self, what: str) -> dict[int, int]:
        first = self.width - len(self.levels)
        return {level.column: first + i for i, level in enumerate(self.levels) if level.what == what}

    @cached_property
    def category_places(self) -> dict[int, dict[Any, int]]:
        """The table column of every category, by input column."""
        found: dict[int, dict[Any, int]] = {j: {} for j, kind in enumerate(self.kinds) if kind == CATEGORY}
        for i, level in enumerate(self.levels, start=self.width - len(self.levels)):
            if level.what == CATEGORY:
                found[level.column][level.category] = i
        return found

    @cached_property
    def width(self) -> int:
        """The number of table columns."""
        late = sum(level.what == NUMBER for level in self.levels)
        return self.kinds.count(NUMBER) - late + len(self.levels)

    def has_settled(self, column: int, category: Any, most: int) -> bool:
        """Whether a row with a category that has no table column changes nothing."""
        full = len(self.category_places[column]) >= most or self.n_categories >= MOST_CATEGORIES
        return full and ((column, category) in self.rare or self.rare_counts[column] >= MOST_RARE)


def _is_category(value: Any) -> bool:
    return isinstance(value, str | int | float) and not is_missing(value)
