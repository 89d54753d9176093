"""Rows, labels and ids from JSON: checked against the limits when they arrive, and read in the same way ever after."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from regretless.core.errors import BadRow
from regretless.serve.settings import Limits

PLAIN = {float, int}
SCALARS = {float, int, bool, str, type(None)}
ID = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]+")
LARGEST_WEIGHT = 1e6


class Columns(NamedTuple):
    """The columns of a model, and the form in which its learner takes them."""

    names: tuple[str, ...] | None  # None: numbers by position
    n: int
    name_set: frozenset[str]
    as_dictionaries: bool  # otherwise arrays of numbers

    @classmethod
    def of(cls, features: int | list[str], as_dictionaries: bool) -> Columns:
        """From the number of columns, or their names."""
        if isinstance(features, int):
            return cls(None, features, frozenset(), False)
        return cls(tuple(features), len(features), frozenset(features), as_dictionaries)

    def check(self, x: Any, limits: Limits) -> None:
        """Refuse a row that is not a row of these columns, or that has values too long."""
        if type(x) is dict:
            if self.names is None:
                raise BadRow(f"x is an object, and the columns of this model have no names: send {self.n} numbers.")
            if not x.keys() <= self.name_set:
                strange = next(iter(x.keys() - self.name_set))
                raise BadRow(f"x has the name {strange[:50]!r}, which is not a feature: they are {_some(self.names)}.")
            values: Collection[Any] = x.values()
        elif type(x) is list:
            if len(x) != self.n:
                raise BadRow(f"x has {len(x)} values; this model has {self.n} features.")
            values = x
        else:
            raise BadRow("x must be an object of names and values, or an array of numbers.")
        kinds = {*map(type, values)}
        if kinds <= PLAIN:
            return
        if not kinds <= SCALARS:
            raise BadRow("the values of x must be numbers, texts, true, false or null.")
        for value in values:
            if type(value) is str and len(value) > limits.text:
                raise BadRow(f"x has a text of {len(value)} characters; the limit is {limits.text}.")

    def row(self, x: Any) -> Any:
        """The row as the learner takes it."""
        if self.as_dictionaries:
            return x if type(x) is dict else dict(zip(self.names or (), x, strict=True))
        if type(x) is dict:
            lacks = self.name_set - x.keys()
            if lacks:
                raise BadRow(f"x lacks the feature {min(lacks)!r}, and this learner needs all of them.")
            x = [x[name] for name in self.names or ()]
        try:
            return np.array(x, dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            strange = next((value for value in x if type(value) not in PLAIN), None)
            told = "an integer beyond floating-point numbers" if strange is None else f"the value {str(strange)[:50]!r}"
            raise BadRow(f"x has {told}: this learner needs numbers.") from None

    def block(self, rows: list[Any]) -> Any:
        """Several rows as one block."""
        return rows if self.as_dictionaries else np.array(rows)


def _some(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def check_id(given: Any, limits: Limits) -> str:
    """An id: text of a limited length without control characters."""
    if type(given) is not str or not 1 <= len(given) <= limits.text or not ID.fullmatch(given):
        raise BadRow(f"id must be a text of 1 to {limits.text} characters, without control characters.")
    return given


def check_weight(given: Any) -> float:
    """The weight of a label; 1 if there is none."""
    if given is None:
        return 1.0
    if type(given) not in PLAIN or not 0.0 < given <= LARGEST_WEIGHT:
        raise BadRow(f"weight must be a number above 0 and at most {LARGEST_WEIGHT:g}.")
    return float(given)
