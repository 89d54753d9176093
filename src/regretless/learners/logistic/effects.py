"""The effects of the features on the forecasts of OnlineLogisticRegression.

The members differ, and some are not linear, so there is no one weight per feature. The effect is that of the mixture
itself: the change of its forecast when one column moves and the others stay at their means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regretless.core.effects import Effect, from_logits, largest_first, names_of
from regretless.core.rows.calendar import calendar_names
from regretless.core.types import Array
from regretless.learners.logistic.offsets import VARIANCES
from regretless.learners.logistic.scaling import COUNT, MEAN, SQUARE
from regretless.learners.logistic.schema import CATEGORY, DATE, MISSING, NUMBER, OFFSET
from regretless.learners.logistic.sparse_game import Entries
from regretless.learners.logistic.sparse_rows import SparseEncoder

if TYPE_CHECKING:
    from regretless.learners.logistic.encoder import Encoder
    from regretless.learners.logistic.logistic import OnlineLogisticRegression

DEVIATIONS, ZERO_TO_ONE = "mean - deviation to mean + deviation", "0 to 1"
AT_ONCE = 1024  # rows that are forecast at a time


class Explained(NamedTuple):
    """A fitted learner, its encoder, and its logits, (n, K), for n encoded rows."""

    learner: OnlineLogisticRegression
    encoder: Encoder | SparseEncoder
    logits: Callable[[Any, int], Array]


def effects(given: Explained, names: Any = None) -> list[Effect]:
    """The effects of all columns, largest first."""
    if isinstance(given.encoder, SparseEncoder):
        return largest_first(_of_entries(given, given.encoder))
    titles, numeric = _columns(given, names)
    low, high = _ends(given, numeric)
    changes = _changes(given, low, high)
    steps = np.where(numeric, DEVIATIONS, ZERO_TO_ONE).tolist()
    return largest_first(map(Effect, titles, steps, changes.T))


def slopes(given: Explained) -> Array:
    """The change of the forecast per unit of each encoded column, at the mean of all: (1, d), or (K, d)."""
    low, high = _ends(given, _columns(given, None)[1])
    return _changes(given, low, high) / np.maximum(high - low, np.finfo(float).tiny)


def column_names(given: Explained, names: Any = None) -> list[str]:
    """The names of the encoded columns."""
    return _columns(given, names)[0]


def _columns(given: Explained, names: Any) -> tuple[list[str], np.ndarray]:
    """The names of the encoded columns, and which of them hold numbers of any size."""
    if isinstance(given.encoder, SparseEncoder):
        raise AttributeError("sparse rows have too many columns for coef_ and feature names: use effects().")
    schema = given.encoder.schema
    titles = names_of(given.learner, names if names is not None else given.encoder.names, len(schema.kinds))
    late = {level.column for level in schema.levels if level.what == NUMBER}
    found = [titles[j] for j, kind in enumerate(schema.kinds) if kind == NUMBER and j not in late]
    numeric = [True] * len(found)
    for column, what, category in schema.levels:
        name = titles[column]
        if what == OFFSET:
            found.append(f"offsets of categories, variance {VARIANCES[category]:g}")
        elif what == DATE:
            found.append(calendar_names(name)[category])
        else:
            found.append({NUMBER: name, CATEGORY: f"{name} = {category}", MISSING: f"{name} is missing"}[what])
        numeric.append(what in (NUMBER, DATE, OFFSET))
    return found, np.array(numeric, dtype=bool)


def _ends(given: Explained, numeric: np.ndarray) -> tuple[Array, Array]:
    """The two values of each column between which it moves."""
    moments = given.learner.state_.moments[:, : given.encoder.width]
    deviation = np.sqrt(moments[SQUARE] / np.maximum(moments[COUNT], 1.0))
    low = np.where(numeric, moments[MEAN] - deviation, 0.0)
    return low, np.where(numeric, moments[MEAN] + deviation, 1.0)


def _changes(given: Explained, low: Array, high: Array) -> Array:
    """The change of the forecast between two values of each column, the others being at their means: (rows, d)."""
    width = len(low)
    middle = given.learner.state_.moments[MEAN, :width]
    found = []
    for begin in range(0, width, AT_ONCE):
        some = np.arange(begin, min(begin + AT_ONCE, width))
        ends = []
        for values in (low, high):
            X = np.repeat(middle[None], len(some), axis=0)
            X[np.arange(len(some)), some] = values[some]
            ends.append(_logits(given, X, len(X)))
        found.append(ends[1] - ends[0])
    return np.hstack(found)


def _logits(given: Explained, X: Any, n: int) -> Array:
    """The forecasts of n encoded rows, as `coef_` has them."""
    return from_logits(given.logits(X, n).T)


def _of_entries(given: Explained, encoder: SparseEncoder) -> Iterator[Effect]:
    """For wide rows: the effect of an entry 1, in an otherwise empty row."""
    columns = np.asarray(given.learner.state_.columns)
    columns = columns[columns >= 0]
    titles = _names_by_column(encoder)
    nothing = _logits(given, Entries(np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)), 1)
    for begin in range(0, len(columns), AT_ONCE):
        some = columns[begin : begin + AT_ONCE]
        rows = Entries(np.arange(len(some) + 1), some, np.ones(len(some)))
        changes = _logits(given, rows, len(some)) - nothing
        for column, change in zip(some.tolist(), changes.T, strict=True):
            yield Effect(titles.get(column, f"column {column}"), ZERO_TO_ONE, change)


def _names_by_column(encoder: SparseEncoder) -> dict[int, str]:
    """The names of the columns that dictionaries have had since the learner was made or loaded."""
    found: dict[int, str] = {}
    for name, kind in encoder.known.items():
        if isinstance(kind, dict):
            found |= {column: f"{name} = {value}" for value, column in kind.items()}
        else:
            found[kind] = str(name)
    return found
