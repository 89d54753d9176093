"""The effects of the features on the forecasts of OnlineLogisticRegression.

The members differ, and some are not linear, so there is no one weight per feature. The effect is that of the mixture
itself: the change of its forecast when one column moves and the others stay at their means.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

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
    from regretless.learners.logistic.logistic import OnlineLogisticRegression

DEVIATIONS, ZERO_TO_ONE = "mean - deviation to mean + deviation", "0 to 1"
AT_ONCE = 1024  # rows that are forecast at a time


def effects(learner: OnlineLogisticRegression, names: Any = None) -> list[Effect]:
    """The effects of all columns, largest first."""
    if isinstance(learner._encoder, SparseEncoder):
        return largest_first(_of_entries(learner))
    titles, numeric = _columns(learner, names)
    low, high = _ends(learner, numeric)
    changes = _changes(learner, low, high)
    steps = np.where(numeric, DEVIATIONS, ZERO_TO_ONE).tolist()
    return largest_first(map(Effect, titles, steps, changes.T))


def slopes(learner: OnlineLogisticRegression) -> Array:
    """The change of the forecast per unit of each encoded column, at the mean of all: (1, d), or (K, d)."""
    if isinstance(learner._encoder, SparseEncoder):
        raise AttributeError("sparse rows have too many columns for coef_: see effects().")
    low, high = _ends(learner, _columns(learner, None)[1])
    return _changes(learner, low, high) / np.maximum(high - low, np.finfo(float).tiny)


def column_names(learner: OnlineLogisticRegression, names: Any = None) -> list[str]:
    """The names of the encoded columns."""
    return _columns(learner, names)[0]


def _columns(learner: OnlineLogisticRegression, names: Any) -> tuple[list[str], np.ndarray]:
    """The names of the encoded columns, and which of them hold numbers of any size."""
    schema = learner._encoder.schema
    given = names_of(learner, names if names is not None else learner._encoder.names, len(schema.kinds))
    late = {level.column for level in schema.levels if level.what == NUMBER}
    found = [given[j] for j, kind in enumerate(schema.kinds) if kind == NUMBER and j not in late]
    numeric = [True] * len(found)
    for column, what, category in schema.levels:
        name = given[column]
        if what == OFFSET:
            found.append(f"offsets of categories, variance {VARIANCES[category]:g}")
        elif what == DATE:
            found.append(calendar_names(name)[category])
        else:
            found.append({NUMBER: name, CATEGORY: f"{name} = {category}", MISSING: f"{name} is missing"}[what])
        numeric.append(what in (NUMBER, DATE, OFFSET))
    return found, np.array(numeric, dtype=bool)


def _ends(learner: OnlineLogisticRegression, numeric: np.ndarray) -> tuple[Array, Array]:
    """The two values of each column between which it moves."""
    moments = learner.state_.moments[:, : learner._encoder.width]
    deviation = np.sqrt(moments[SQUARE] / np.maximum(moments[COUNT], 1.0))
    low = np.where(numeric, moments[MEAN] - deviation, 0.0)
    return low, np.where(numeric, moments[MEAN] + deviation, 1.0)


def _changes(learner: OnlineLogisticRegression, low: Array, high: Array) -> Array:
    """The change of the forecast between two values of each column, the others being at their means: (rows, d)."""
    width = len(low)
    middle = learner.state_.moments[MEAN, :width]
    found = []
    for begin in range(0, width, AT_ONCE):
        some = np.arange(begin, min(begin + AT_ONCE, width))
        ends = []
        for values in (low, high):
            X = np.repeat(middle[None], len(some), axis=0)
            X[np.arange(len(some)), some] = values[some]
            ends.append(_logits(learner, X))
        found.append(ends[1] - ends[0])
    return np.hstack(found)


def _logits(learner: OnlineLogisticRegression, X: Any, n: int | None = None) -> Array:
    """The forecasts of encoded rows, as `coef_` has them."""
    said = np.empty((len(X) if n is None else n, learner.state_.slots.size))
    learner._forecast_filled(X, said)
    return from_logits(learner._slots.to_classes(said).T)


def _of_entries(learner: OnlineLogisticRegression) -> Iterator[Effect]:
    """For wide rows: the effect of an entry 1, in an otherwise empty row."""
    encoder = learner._encoder
    columns = np.asarray(learner.state_.columns)
    columns = columns[columns >= 0]
    titles = _names_by_column(encoder)
    nothing = _logits(learner, Entries(np.zeros(2, dtype=np.int64), np.empty(0, dtype=np.int64), np.empty(0)), 1)
    for begin in range(0, len(columns), AT_ONCE):
        some = columns[begin : begin + AT_ONCE]
        rows = Entries(np.arange(len(some) + 1), some, np.ones(len(some)))
        changes = _logits(learner, rows, len(some)) - nothing
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
