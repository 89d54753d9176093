"""What OnlineLogisticRegression has learned from wide rows, and how that grows by a column or by a class.

Every column that a learned row has had gets a slot, in the order of appearance: memory is that of the columns seen. The
arrays are views of larger ones, so that adding a slot seldom copies.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from regretless.core.errors import TooLarge
from regretless.core.files import state_checks
from regretless.core.numbers.scores import new_scores
from regretless.core.numbers.tally import ROWS, TALLIES
from regretless.core.rows.inputs import UNLEARNED
from regretless.core.types import Array
from regretless.learners.logistic import sparse_sketch
from regretless.learners.logistic.hashing import LARGEST_ID, Ids
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
from regretless.learners.logistic.sparse_sketch import G, Sketch
from regretless.learners.logistic.state import memory

CONSTANT = -1  # the "column" of the intercept, which has the first slot
FIRST_ROOM = 256
FLOAT = np.dtype(np.float64).itemsize


class SparseState(NamedTuple):
    """Everything learned. S is the number of slots of columns, and C = K, or 1 for two classes."""

    columns: Ids  # (S,) the column of each slot
    scales: Array  # (S,) the largest |x| of the column so far
    table: Array  # (S, C, WIDTH) what the members know of each weight: see sparse_members.py
    sketch_lines: Array  # the sketched members, see `Sketch`; empty arrays if there are none
    sketch_shift: Array
    sketch_inverse: Array
    sketch_strength: Array
    sketch_turns: Array
    slopes: Array  # (A,) the first-order members' sums of g.w
    log_weight: Array  # (N,), or (N + G,) with a sketch, in the mixture, up to a constant
    losses: Array  # total log loss of each member
    slots: Array  # (K,) for each slot of a class its index in `classes_`; -1 where no class has it yet
    scores: Array  # see core/numbers/scores.py
    bins: Array
    tally: Array


def weight_vectors(n_classes: int) -> int:
    """C: one per class, or that of the margin of two."""
    return 1 if n_classes == 2 else n_classes


def sketch_of(state: SparseState) -> Sketch:
    """The part of the sketched members."""
    return Sketch(
        state.sketch_lines, state.sketch_shift, state.sketch_inverse, state.sketch_strength, state.sketch_turns
    )


def with_sketch(state: SparseState, sketch: Sketch) -> SparseState:
    """The state with another sketch."""
    return state._replace(**{f"sketch_{name}": array for name, array in sketch._asdict().items()})


def start(n_classes: int, constants: SparseConstants, directions: int, seen: int = 0) -> SparseState:
    """The state before the first row, with room for columns that a file has."""
    require_memory(seen, n_classes, directions)
    scores, bins = new_scores()
    sketch, n_members = sparse_sketch.start(directions, weight_vectors(n_classes)), N + G * (directions > 0)
    empty = SparseState(
        columns=np.empty(0, dtype=np.int64),
        scales=np.empty(0),
        table=np.empty((0, weight_vectors(n_classes), WIDTH)),
        **{f"sketch_{name}": array for name, array in sketch._asdict().items()},
        slopes=np.zeros(A),
        log_weight=np.zeros(n_members),
        losses=np.zeros(n_members),
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
    scales, table, lines = (lengthened(each, after) for each in (state.scales, state.table, state.sketch_lines))
    scales[before:] = 0.0
    table[before:] = 0.0
    table[before:, :, VARIANCE:GRADIENT] = constants.variance
    state = state._replace(scales=scales, table=table, sketch_lines=lines)
    sparse_sketch.begin_lines(sketch_of(state), before, constants.sketched[:, 1])
    return state


def lengthened(array: Any, n: int) -> Any:
    """The array with n lines; those added may hold anything. It is a view, and has room to grow for some time."""
    whole = array.base
    if not (isinstance(whole, np.ndarray) and whole.dtype == array.dtype and whole.flags.owndata and len(whole) >= n):
        whole = np.empty((max(FIRST_ROOM, n + n // 2), *array.shape[1:]), dtype=array.dtype)
        whole[: len(array)] = array
    return whole[:n]


def size(slots: int, n_classes: int, directions: int) -> int:
    """How many numbers the arrays of a state hold that grow with columns and classes."""
    C, r = weight_vectors(n_classes), directions
    return slots * (C * (WIDTH + G * sparse_sketch.line_length(r)) + 2) + G * C * r * (r + 2)


def fits(slots: int, n_classes: int, directions: int) -> bool:
    """Whether a state of this size fits into memory."""
    return size(slots, n_classes, directions) * FLOAT <= memory()


def require_memory(slots: int, n_classes: int, directions: int) -> None:
    """Refuse a state that does not fit into memory, before it is allocated."""
    if not fits(slots, n_classes, directions):
        needed = size(slots, n_classes, directions) * FLOAT
        raise TooLarge(
            f"{slots:,} columns seen and {n_classes} classes need {needed / 2**30:,.1f} GiB, and this machine has "
            f"{memory() / 2**30:,.1f}: hash the columns to fewer, declare fewer classes, or sketch less. {UNLEARNED}"
        )


def add_class(state: SparseState, after: SparseConstants, rows: float, x: tuple[Ids, Array]) -> SparseState:
    """The state with one more class, which appears in the row x: known slots and rescaled entries.

    As in `state.py`: what was learned does not change, and the new class starts as one seen once in the rows so far.
    """
    K, S, table, at, values = state.slots.size, len(state.table), state.table, *x
    sketch = sparse_sketch.with_class(sketch_of(state), after.sketched[:, 1])
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
        logits = np.einsum("e,eki->ki", values, table[at, :, :SQUARE])
        new[0, 0, :SQUARE] = as_one_seen_once(logits, rows)
        if sketch.lines.shape[2]:
            logits = np.einsum("e,egk->kg", values, sparse_sketch.weights(sketch, at)[:, :, :-1])
            sketch.lines[0, K :: K + 1, sparse_sketch.U] = as_one_seen_once(logits, rows)
    state = state._replace(table=np.concatenate([table, new], axis=1), slots=np.append(state.slots, -1.0))
    return with_sketch(state, sketch)


def as_one_seen_once(logits: Array, rows: float) -> Any:
    """The weight of the intercept for a class that appears after so many rows; the others' logits lie along axis 0."""
    return (np.logaddexp.reduce(logits, axis=0) - math.log(rows + 1.0)) / INTERCEPT


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
    sparse_sketch.check(sketch_of(state), constants.sketched[:, 1], rows)
    state_checks.sums("slopes", state.slopes)
    check_mixture(state, rows)
