"""The game of OnlineLogisticRegression on wide rows: one compiled pass over the entries, for all members.

An entry x becomes x / s, with s the largest |x| of its column so far, this row included: it is known when the row is
forecast, and the label is not. An entry of a column that no learned row has had counts as 0.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from regretless.core.kernels.jit import kernel, shared_kernel
from regretless.core.kernels.prefetch import prefetch
from regretless.core.numbers.tally import ROWS
from regretless.core.types import Array
from regretless.learners.logistic.hashing import EMPTY, Buckets, Ids, Index, bucket_of, slots_of
from regretless.learners.logistic.mixing import MixtureState, blend, mix
from regretless.learners.logistic.sparse_members import (
    N,
    Row,
    SparseConstants,
    believe,
    descend,
    judge,
    look,
    new_row,
    publish,
)
from regretless.learners.logistic.sparse_members import constants as constants_for
from regretless.learners.logistic.sparse_sketch import Sketch, meet, new_view, turn
from regretless.learners.logistic.sparse_sketch import judge as judge_sketched
from regretless.learners.logistic.sparse_sketch import learn as learn_sketched
from regretless.learners.logistic.sparse_sketch import look as look_sketched
from regretless.learners.logistic.sparse_sketch import publish as publish_sketched
from regretless.learners.logistic.sparse_state import SparseState, add_class, fits, require_memory, with_slots

AT_ONCE = 256  # rows whose forecasts are mixed at a time


class Entries(NamedTuple):
    """Rows in compressed form: row t has the entries `indptr[t]` to `indptr[t + 1]`."""

    indptr: Ids
    columns: Ids
    data: Array

    def rows(self, some: slice) -> Entries:
        """Some rows."""
        indptr = self.indptr[some.start : some.stop + 1]
        entries = slice(indptr[0], indptr[-1])
        return Entries(indptr - indptr[0], self.columns[entries], self.data[entries])


def require_room(index: Index, rows: Entries, weight: Array, n_classes: int, directions: int) -> None:
    """Refuse rows whose new columns do not fit into memory."""
    if fits(index.n + rows.columns.size, n_classes, directions):  # so many columns at most
        return
    learned = np.repeat(weight > 0.0, np.diff(rows.indptr))
    columns = np.unique(rows.columns[learned])
    slots = index.find(np.array([0, columns.size]), columns)
    require_memory(index.n + int(np.count_nonzero(slots == EMPTY)), n_classes, directions)


def play(
    state: SparseState,
    index: Index,
    rows: Entries,
    Y: Array,
    weight: Array,
    constants: SparseConstants,
    reserves: bool,
    out: Array,
) -> SparseState:
    """Forecast and learn rows, in place; returns the state, with lines for new columns."""
    slots = index.add(rows.indptr, rows.columns, weight)
    if index.n != len(state.table):
        state = with_slots(state._replace(columns=index.columns[: index.n]), constants)
    run(tuple(state), (rows.indptr, slots, rows.data), Y, weight, tuple(constants), reserves, out)
    return state


def play_known(
    state: SparseState, index: Index, row: Entries, target: Array, constants: SparseConstants, reserves: bool
) -> bool:
    """Learn one row in place, if all its columns have been learned before; returns whether they have."""
    known = index.buckets, index.columns
    return bool(run_known(tuple(state), known, (row.indptr, row.columns, row.data), target, tuple(constants), reserves))


def foresee(state: SparseState, index: Index, rows: Entries, constants: SparseConstants, out: Array) -> None:
    """Forecast rows; nothing changes."""
    known = index.buckets, index.columns
    forecast(tuple(state), known, (rows.indptr, rows.columns, rows.data), constants.intercept, out)


def rescaled_rows(state: SparseState, index: Index, rows: Entries, constants: SparseConstants) -> Any:
    """The rows as they were rescaled while they were learned, one column per slot: all rows so far, in their order."""
    slots = index.find(rows.indptr, rows.columns)
    entries, scales = (rows.indptr, slots, rows.data), np.zeros(len(state.table))
    row = new_row(longest(rows.indptr), 1)
    found = []
    for t in range(rows.indptr.size - 1):
        n, _ = gather(scales, entries, t, True, constants.intercept, row)
        found.append((row.slots[:n].astype(np.int64), row.x[:n].copy()))
    indptr = np.cumsum([0, *(len(at) for at, _ in found)])
    at, x = (np.concatenate(part) for part in zip(*found, strict=True))
    return sparse.csr_array((x, at, indptr), shape=(rows.indptr.size - 1, len(state.table)))


def meet_class(
    state: SparseState, index: Index, given: Entries, shares: bool, intercept: bool
) -> tuple[SparseState, SparseConstants]:
    """The state and the constants with one more class, which appears in this row."""
    after = constants_for(state.slots.size + 1, intercept, shares)
    slots, row = index.find(given.indptr, given.columns), new_row(longest(given.indptr), 1)
    n, _ = gather(state.scales, (given.indptr, slots, given.data), 0, False, after.intercept, row)
    x = row.slots[:n].astype(np.int64), row.x[:n]
    return add_class(state, after, float(state.tally[ROWS]), x), after


@shared_kernel
def run(
    state: tuple[Any, ...],
    entries: tuple[Ids, Ids, Array],
    Y: Array,
    weight: Array,
    constants: tuple[Any, ...],
    reserves: bool,
    out: Array,
) -> None:
    """Forecast every row (log probabilities, one column per slot) before its label is used; learn rows of weight > 0.

    The arguments are plain tuples, as in game.py. `reserves`: see `mix`.
    """
    s, c = SparseState(*state), SparseConstants(*constants)
    n, K = Y.shape
    members, C = s.log_weight.size, s.table.shape[1]
    no_stack = np.empty((0, 0)), np.empty(0)
    mixture = MixtureState(np.ones(members), s.log_weight, s.losses, s.scores, s.bins, s.tally, *no_stack)
    m = min(n, AT_ONCE)
    logits, sizes = np.empty((members, m, K)), np.empty(m)
    row, sketch = new_row(longest(entries[0]), C), sketch_in(s)
    view, rows = new_view(*sketch.shift.shape), s.tally[ROWS]
    for start in range(0, n, max(m, 1)):
        stop = min(n, start + m)
        said = logits[:, : stop - start]
        for t in range(start, stop):
            fetch(s, entries, t + 1)
            length, square = gather(s.scales, entries, t, weight[t] != 0.0, c.intercept, row)
            sizes[t - start] = math.sqrt(square)
            look(s.table, row.slots, row.x, length, row.score, row.spread)
            publish(row.score, said, t - start)
            if members > N:
                look_sketched(sketch, row.slots, row.x, length, view)
                publish_sketched(view, said[:, t - start])
            if weight[t] != 0.0:
                rows += 1.0
                judge(row, said[:, t - start], Y[t], weight[t], c.kappa, s.slopes)
                descend(s.table, row.slots, row.x, length, row.pull, c.rate, c.keep)
                believe(s.table, row.slots, row.x, length, row.step, row.bend)
                if members > N:
                    judge_sketched(view, Y[t], weight[t], c.sketched)
                    learn_sketched(sketch, row.slots, row.x, length, view)
                    if meet(sketch.turns, row.slots, length, rows):
                        turn(sketch)
        mix(mixture, said, Y[start:stop], weight[start:stop], sizes, c.shares, reserves, out[start:stop])


@kernel
def run_known(
    state: tuple[Any, ...],
    known: tuple[Buckets, Ids],
    row: tuple[Ids, Ids, Array],
    target: Array,
    constants: tuple[Any, ...],
    reserves: bool,
) -> bool:
    """`run` for one row of known columns; returns False, and does nothing, if it has another column."""
    indptr, columns, data = row
    slots = np.empty(columns.size, np.int64)
    for i in range(columns.size):
        slots[i] = known[0][bucket_of(known[0], known[1], columns[i])]
        if slots[i] == EMPTY:
            return False
    run(state, (indptr, slots, data), target, np.ones(1), constants, reserves, np.empty(target.shape))
    return True


@kernel
def forecast(
    state: tuple[Any, ...],
    known: tuple[Buckets, Ids],
    rows: tuple[Ids, Ids, Array],
    intercept: float,
    out: Array,
) -> None:
    """What `run` forecasts for rows of weight 0. No array of the state is written."""
    s = SparseState(*state)
    n, K = out.shape
    indptr, columns, data = rows
    entries = indptr, slots_of(known[0], known[1], indptr, columns), data
    members, C = s.log_weight.size, s.table.shape[1]
    logits = np.empty((members, n, K))
    row, sketch = new_row(longest(entries[0]), C), sketch_in(s)
    view = new_view(*sketch.shift.shape)
    for t in range(n):
        fetch(s, entries, t + 1)
        length, _ = gather(s.scales, entries, t, False, intercept, row)
        look(s.table, row.slots, row.x, length, row.score, row.spread)
        publish(row.score, logits, t)
        if members > N:
            look_sketched(sketch, row.slots, row.x, length, view)
            publish_sketched(view, logits[:, t])
    blend(s.log_weight, np.empty(0), logits, out)


@kernel
def sketch_in(s: SparseState) -> Sketch:
    """The part of the sketched members."""
    return Sketch(s.sketch_lines, s.sketch_shift, s.sketch_inverse, s.sketch_strength, s.sketch_turns)


@kernel
def longest(indptr: Ids) -> int:
    """The most entries of a row, with the intercept."""
    most = 0
    for t in range(indptr.size - 1):
        most = max(most, indptr[t + 1] - indptr[t])
    return most + 1


@kernel
def fetch(state: SparseState, entries: tuple[Ids, Ids, Array], t: int) -> None:
    """Fetch what is known of the columns of row t, if there is one, while another row is learned."""
    indptr, slots, _ = entries
    if t >= indptr.size - 1:
        return
    for i in range(indptr[t], indptr[t + 1]):
        slot = max(slots[i], 0)  # a column without a slot fetches the first
        prefetch(state.scales, slot)
        prefetch(state.table, slot)
        prefetch(state.sketch_lines, slot)


@kernel
def gather(
    scales: Array, entries: tuple[Ids, Ids, Array], t: int, learns: bool, intercept: float, row: Row
) -> tuple[int, float]:
    """Write the rescaled entries of row t that are not 0, the intercept first; returns their number and |x|^2."""
    indptr, slots, data = entries
    n, square = 0, 0.0
    if intercept != 0.0:
        row.slots[0], row.x[0] = 0, intercept
        n, square = 1, intercept * intercept
    for i in range(indptr[t], indptr[t + 1]):
        slot, size = slots[i], abs(data[i])
        if slot < 0 or size == 0.0:
            continue
        top = max(scales[slot], size)
        if learns:
            scales[slot] = top
        x = data[i] / top
        row.slots[n], row.x[n] = slot, x
        square += x * x
        n += 1
    return n, square
