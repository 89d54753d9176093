"""Schema: what each input column holds, and where its values go in the encoded table.

A column of a data frame or a dictionary holds numbers or categories, as its first value in a learned row tells; before
that row it has no column in the table. The table has, in this order:

1. the columns of numbers that had a number in the first learned row, in input order;
2. with `missing="indicator"`, one column per input column, which is 1 where the value is missing;
3. one column per category, and per column of numbers whose first number came later, in the order of appearance.

So whatever appears later adds columns at the end, and no column moves.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from regretless.core.inputs import is_missing
from regretless.core.state_checks import require

NUMBER, CATEGORY, UNKNOWN = "number", "category", "unknown"  # the last: no value was learned yet


@dataclass(frozen=True)
class Schema:
    """What each input column holds, and what has appeared after the first row.

    `levels` are pairs (column, category), or (column, None) for a column of numbers whose first number came late.
    """

    kinds: tuple[str, ...]
    levels: tuple[tuple[int, Any], ...] = ()
    indicators: bool = False
    is_numeric: bool = field(init=False, repr=False, compare=False)  # numbers alone, in input order
    is_identity: bool = field(init=False, repr=False, compare=False)  # and no indicators: the table is the input

    def __post_init__(self) -> None:
        numeric = not self.levels and CATEGORY not in self.kinds and UNKNOWN not in self.kinds
        object.__setattr__(self, "is_numeric", numeric)
        object.__setattr__(self, "is_identity", numeric and not self.indicators)

    @classmethod
    def from_file(cls, kinds: Any, levels: Any, indicators: Any) -> Schema:
        """The schema of these JSON values; refuses values that no schema has."""
        known = {NUMBER, CATEGORY, UNKNOWN}
        require(isinstance(kinds, list) and set(kinds) <= known, f"kinds={kinds!r} are not kinds of columns")
        require(isinstance(levels, list) and isinstance(indicators, bool), "levels or indicators have the wrong type")
        for level in levels:
            pair = isinstance(level, list) and len(level) == 2 and type(level[0]) is int
            require(pair and 0 <= level[0] < len(kinds), f"{level!r} is no category")
            if level[1] is None:  # a column whose first number came late
                require(kinds[level[0]] == NUMBER, f"{level!r} is no late column of numbers")
                continue
            is_value = isinstance(level[1], str | int | float) and not is_missing(level[1])
            require(kinds[level[0]] == CATEGORY and is_value, f"{level!r} is no category")
        found = tuple((column, value) for column, value in levels)
        require(len(set(found)) == len(found), "a category occurs twice")
        return cls(tuple(kinds), found, indicators)

    def to_file(self) -> dict[str, Any]:
        """The arguments of `from_file`."""
        return {
            "kinds": list(self.kinds),
            "levels": [list(level) for level in self.levels],
            "indicators": self.indicators,
        }

    def counts(self) -> Counter[int]:
        """How many categories each input column has."""
        return Counter(column for column, value in self.levels if value is not None)

    def rows_seen(self, before: Schema, rows: float) -> np.ndarray:
        """For each table column that `before` lacks, in how many of the `rows` so far it had a value, which was 0.

        A category has had one in all of them, a late column of numbers in none.
        """
        new = self.levels[len(before.levels) :]
        return np.array([0.0 if category is None else rows for _, category in new])

    @cached_property
    def number_columns(self) -> list[int]:
        """The input columns that hold numbers."""
        return [j for j, kind in enumerate(self.kinds) if kind == NUMBER]

    @cached_property
    def other_columns(self) -> list[int]:
        """The input columns that hold categories, or nothing yet."""
        return [j for j, kind in enumerate(self.kinds) if kind != NUMBER]

    @cached_property
    def number_places(self) -> np.ndarray:
        """The table columns of `number_columns`."""
        late = {j: self.width - len(self.levels) + i for i, (j, value) in enumerate(self.levels) if value is None}
        first = itertools.count()
        return np.array([late[j] if j in late else next(first) for j in self.number_columns], dtype=np.intp)

    @cached_property
    def category_places(self) -> dict[int, dict[Any, int]]:
        """The table column of every category, by input column."""
        found: dict[int, dict[Any, int]] = {j: {} for j, kind in enumerate(self.kinds) if kind == CATEGORY}
        for i, (j, value) in enumerate(self.levels):
            if value is not None:
                found[j][value] = self.width - len(self.levels) + i
        return found

    @cached_property
    def width(self) -> int:
        """The number of table columns."""
        late = sum(value is None for _, value in self.levels)
        return self.kinds.count(NUMBER) - late + len(self.kinds) * self.indicators + len(self.levels)

    @cached_property
    def first_indicator(self) -> int:
        """The table column of the first indicator, if there are any."""
        return self.width - len(self.levels) - len(self.kinds)
