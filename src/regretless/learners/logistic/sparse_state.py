"""What OnlineLogisticRegression has learned from wide rows, and how that grows by a column or by a class.

Every column that a learned row has had gets a slot, in the order of appearance: memory is that of the columns seen. The
arrays are views of larger ones, so that adding a slot seldom copies.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from regretless.core import state_checks
from regretless.core.errors import TooLarge
from regretless.core.scores import new_scores
from regretless.core.tally import ROWS, TALLIES
from regretless.core.types import Array
from regretless.learners.logistic.hashing import LARGEST_ID, Ids
from regretless.learners.logistic.matrices import UNLEARNED
from regretless.learners.logistic.mixing import check_mixture
from regretless.learners.logistic.scaling import LARGEST
from regretless.learners.logistic.sparse_members import (
    GRADIENT,
    INTERCEPT,
    SQUARE,
    VARIANCE,
    WIDTH,
    A,
    N,
    SparseConstants,
)
from regretless.learners.logistic.state import memory

CONSTANT = -1  # the "column" of the intercept, which has the first slot
FIRST_ROOM = 256
FLOAT = np.dtype(np.float64).itemsize


class SparseState(NamedTuple):
    """Everything learned. S is the number of slots of columns, and C = K, or 1 for two classes."""

    columns: Ids  # (S,) the column of each slot
    scales: Array  # (S,) the largest |x| of the column so far
    table: Array  # (S, C, WIDTH) what the members know of each weight: see sparse_members.py
    slopes: Array  # (A,) the first-order members' sums of g.w
    log_weight: Array  # (N,) in the mixture, up to a constant
    losses: Array  # (N,) total log loss
    slots: Array  # (K,) for each slot of a class its index in `classes_`; -1 where no class has it yet
    scores: Array  # see core/scores.py
    bins: Array
    tally: Array


def weight_vectors(n_classes: int) -> int:
    """C: one per class, or that of the margin of two."""
    return 1 if n_classes == 2 else n_classes


def start(n_classes: int, constants: SparseConstants, seen: int = 0) -> SparseState:
    """The state before the first row, with room for columns that a file has."""
    require_memory(seen, n_classes)
    scores, bins = new_scores()
    empty = SparseState(
        columns=np.empty(0, dtype=np.int64),
        scales=np.empty(0),
        table=np.empty((0, weight_vectors(n_classes), WIDTH)),
        slopes=np.zeros(A),
        log_weight=np.zeros(N),
        losses=np.zeros(N),
        slots=np.full(n_classes, -1.0),
        scores=scores,
        bins=bins,
        tally=np.zeros(TALLIES),
    )
    first = [CONSTANT] if constants.intercept else []
    return with_slots(empty._replace(columns=np.array([*first, *range(seen - len(first))], dtype=np.int64)), constants)


def with_slots(state: SparseState, constants: SparseConstants) -> SparseState:
    """The state with new lines for the columns that were added at the end of `columns`."""
    before, after = state.scales.size, state.columns.size
    if after == before:
        return state
    scales, table = lengthened(state.scales, after), lengthened(state.table, after)
    scales[before:] = 0.0
    table[before:] = 0.0
    table[before:, :, VARIANCE:GRADIENT] = constants.variance
    return state._replace(scales=scales, table=table)


def lengthened(array: Any, n: int) -> Any:
    """The array with n lines; those added may hold anything. It is a view, and has room to grow for some time."""
    whole = array.base
    if not (isinstance(whole, np.ndarray) and whole.dtype == array.dtype and whole.flags.owndata and len(whole) >= n):
        whole = np.empty((max(FIRST_ROOM, n + n // 2), *array.shape[1:]), dtype=array.dtype)
        whole[: len(array)] = array
    return whole[:n]


def size(slots: int, n_classes: int) -> int:
    """How many numbers the arrays of a state hold that grow with columns and classes."""
    return slots * (weight_vectors(n_classes) * WIDTH + 2)


def fits(slots: int, n_classes: int) -> bool:
    """Whether a state of this size fits into memory."""
    return size(slots, n_classes) * FLOAT <= memory()


def require_memory(slots: int, n_classes: int) -> None:
    """Refuse a state that does not fit into memory, before it is allocated."""
    if not fits(slots, n_classes):
        needed = size(slots, n_classes) * FLOAT
        raise TooLarge(
            f"{slots:,} columns seen and {n_classes} classes need {needed / 2**30:,.1f} GiB, and this machine has "
            f"{memory() / 2**30:,.1f}: hash the columns to fewer, or declare fewer classes. {UNLEARNED}"
        )


def add_class(state: SparseState, after: SparseConstants, rows: float, x: tuple[Ids, Array]) -> SparseState:
    """The state with one more class, which appears in the row x: known slots and rescaled entries.

    As in `state.py`: what was learned does not change, and the new class starts as one seen once in the rows so far.
    """
    K, S, table = state.slots.size, len(state.table), state.table
    if K == 2:  # from the margin's weights to one vector per class
        other = table.copy()
        for each, sign in ((table := table.copy(), 1.0), (other, -1.0)):
            each[:, :, :SQUARE] *= 0.5 * sign
            each[:, :, VARIANCE:GRADIENT] *= 0.5
            each[:, :, GRADIENT:] *= sign
        table = np.concatenate([other, table], axis=1)
    new = np.zeros((S, 1, WIDTH))
    new[:, :, VARIANCE:GRADIENT] = after.variance
    if after.intercept:
        at, values = x
        logits = np.einsum("e,eki->ki", values, table[at, :, :SQUARE])
        new[0, 0, :SQUARE] = (np.logaddexp.reduce(logits, axis=0) - math.log(rows + 1.0)) / INTERCEPT
    return state._replace(table=np.concatenate([table, new], axis=1), slots=np.append(state.slots, -1.0))


def check(state: SparseState, constants: SparseConstants) -> None:
    """Refuse a state that no run can have led to: a file may hold anything."""
    rows = float(state.tally[ROWS])
    state_checks.tally(state.tally)
    n = 1 if constants.intercept else 0
    state_checks.require(np.all(state.columns[:n] == CONSTANT), "columns: the first one is not the intercept")
    state_checks.within("columns", state.columns[n:], 0, LARGEST_ID)
    state_checks.require(np.unique(state.columns).size == state.columns.size, "columns: one occurs twice")
    state_checks.within("scales", state.scales, 0.0, 1.01 * LARGEST**2)
    state_checks.sums("table", state.table)
    state_checks.within("table, squares", state.table[:, :, SQUARE:VARIANCE], 0.0, math.inf)
    variance = state.table[:, :, VARIANCE:GRADIENT]
    state_checks.require(np.all((variance > 0.0) & (variance <= constants.variance)), "table, variances")
    state_checks.sums("slopes", state.slopes)
    check_mixture(state, rows)
