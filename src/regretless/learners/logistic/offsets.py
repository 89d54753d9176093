r"""Offsets of categories: what the labels so far say of the categories of columns that have many.

An input column with more categories than table columns is *coded*: its categories are hashed to `SLOTS` slots, and a
model of the log-odds of its own learns an offset b for each slot,

.. math:: f = w\cdot x + \sum_j b_{c_j},

where j runs over the coded columns and x is the rescaled row without the columns of their categories. w takes AdaGrad
steps. Each offset has a Gaussian belief with mean 0 and some variance at first; with :math:`h = p(1-p)` and V the sum
of the variances v of the row's offsets,

.. math:: b \leftarrow b - \frac{v\,(p - y)}{1 + hV}, \qquad v \leftarrow v - \frac{v^2 h}{1 + hV}.

There is one such model for each of `VARIANCES`, and each has a table column, with the sum of the row's offsets. Members
read these as they read any other column. Like a mean, they are functions of earlier rows, here with their labels.

Members on the second version of the row read them instead of the columns of single categories of coded columns, others
read both: many categories with small effects are learned better from offsets alone, few with large ones from both.

There are offsets for two classes. With more, their table columns count as missing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from regretless.core.files import state_checks
from regretless.core.kernels.jit import kernel
from regretless.core.rows.inputs import is_missing
from regretless.core.types import Array
from regretless.learners.logistic.hashing import id_of
from regretless.learners.logistic.scaling import rescale

if TYPE_CHECKING:
    from regretless.learners.logistic.schema import Schema
    from regretless.learners.logistic.state import LogisticState

SLOTS = 2**15  # of the categories of a column
VARIANCES = np.array([0.1, 0.3, 1.0])
RATE = 0.3  # of AdaGrad
OFFSET, VARIANCE = range(2)  # of a slot
WEIGHT, SQUARES = range(2)  # of a column of the rescaled rows


def slot_of(category: Any) -> float:
    """The slot of a category; NaN if it is missing."""
    return math.nan if is_missing(category) else float(id_of(str(category)) % SLOTS)


def slots_of(categories: Sequence[Any]) -> Array:
    """`slot_of` for a column. Values that are not hashable have none: their rows are not learned."""
    found: dict[Any, float] = {}
    slots = np.full(len(categories), np.nan)
    for t, category in enumerate(categories):
        try:
            if category not in found:
                found[category] = slot_of(category)
            slots[t] = found[category]
        except TypeError:
            continue
    return slots


def start(n_coded: int, width: int, n_classes: int) -> dict[str, Array]:
    """The fields of the state before the first row, for so many coded columns and rescaled rows of that width."""
    learns, models = n_classes == 2, len(VARIANCES)
    offsets = np.zeros((models, n_coded, SLOTS * learns, 2))
    offsets[:, :, :, VARIANCE] = VARIANCES[:, None, None]
    return {"offsets": offsets, "offset_weights": np.zeros((models, 2, width * learns * bool(n_coded)))}


def size(n_coded: int, width: int, n_classes: int) -> int:
    """How many numbers these fields hold."""
    return 2 * len(VARIANCES) * (n_coded * SLOTS + width * bool(n_coded)) * (n_classes == 2)


def widened(state: LogisticState, n_coded: int, width: int, old: NDArray[np.intp]) -> dict[str, Array]:
    """The fields for more columns; `old` are the places of the columns so far in the wider row."""
    fresh = start(n_coded, width, state.slots.size)
    fresh["offsets"][:, : state.offsets.shape[1]] = state.offsets
    if state.offset_weights.size:
        fresh["offset_weights"][:, :, old] = state.offset_weights
    return fresh


def filled(state: LogisticState, given: Array, schema: Schema) -> Array:
    """Encoded rows with the offsets of their categories; `given` has their slots in its last columns."""
    X, slots = _parted(given, schema)
    if state.offsets.size:
        look_up(state.offsets, slots, schema.offset_places, X)
    return X


def play(state: LogisticState, given: Array, Y: Array, weight: Array, schema: Schema) -> Array:
    """`filled`, where each row is learned before the next one is filled."""
    X, slots = _parted(given, schema)
    if state.offsets.size:
        others, rows = X.copy(), np.empty((len(X), state.tables.shape[3]))
        others[:, schema.singly] = np.nan
        rescale(state.moments.copy(), others, weight, rows, np.empty_like(rows))
        for i, place in enumerate(schema.offset_places):
            run(state.offsets[i], state.offset_weights[i], rows, slots, Y, weight, X[:, place])
    return X


def _parted(given: Array, schema: Schema) -> tuple[Array, NDArray[np.int64]]:
    """The encoded rows, in which offsets are missing, and the slots, -1 where there is none."""
    X = given[:, : schema.width].copy()
    X[:, schema.offset_places] = np.nan
    return X, np.nan_to_num(given[:, schema.width :], nan=-1.0).astype(np.int64)


@kernel
def look_up(offsets: Array, slots: NDArray[np.int64], places: NDArray[np.intp], out: Array) -> None:
    """Write the sums of the offsets of every row into these columns."""
    for t in range(slots.shape[0]):
        for i in range(places.size):
            out[t, places[i]] = 0.0
            for j in range(slots.shape[1]):
                if slots[t, j] >= 0:
                    out[t, places[i]] += offsets[i, j, slots[t, j], OFFSET]


@kernel
def run(
    offsets: Array, weights: Array, rows: Array, slots: NDArray[np.int64], Y: Array, weight: Array, out: Array
) -> None:
    """Play a block with one model: write the sum of the offsets of each row, and learn it if its weight is not 0."""
    d, coded = rows.shape[1], slots.shape[1]
    for t in range(rows.shape[0]):
        said = total = 0.0
        for j in range(coded):
            if slots[t, j] >= 0:
                said += offsets[j, slots[t, j], OFFSET]
                total += offsets[j, slots[t, j], VARIANCE]
        out[t] = said
        if weight[t] == 0.0:
            continue
        f = said
        for i in range(d):
            f += weights[WEIGHT, i] * rows[t, i]
        p = 1.0 / (1.0 + math.exp(-min(max(f, -500.0), 500.0)))
        pull, bend = weight[t] * (p - Y[t, 1]), weight[t] * p * (1.0 - p)
        for i in range(d):
            g = pull * rows[t, i]
            weights[SQUARES, i] += g * g
            weights[WEIGHT, i] -= RATE * g / math.sqrt(max(weights[SQUARES, i], 1e-300))
        for j in range(coded):
            if slots[t, j] >= 0:
                v = offsets[j, slots[t, j], VARIANCE]
                offsets[j, slots[t, j], OFFSET] -= v * pull / (1.0 + bend * total)
                offsets[j, slots[t, j], VARIANCE] = v - v * v * bend / (1.0 + bend * total)


def check(state: LogisticState) -> None:
    """Refuse offsets that no run can have led to."""
    state_checks.sums("offsets", state.offsets[:, :, :, OFFSET])
    for beliefs, variance in zip(state.offsets, VARIANCES, strict=True):
        state_checks.within("offsets, variances", beliefs[:, :, VARIANCE], 0.0, variance)
    state_checks.sums("offset_weights", state.offset_weights)
    state_checks.within("offset_weights, squares", state.offset_weights[:, SQUARES], 0.0, math.inf)
