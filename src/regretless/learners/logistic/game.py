"""The game of OnlineLogisticRegression over a block of rows: one compiled pass, one member after another.

State and constants are more than forty arrays, and Numba takes 80 ns to recognise each at every call. So they are
listed in a table once (`Game`), and kernels get its address: see core/one_row.py. The kernel that plays the members is
called by the address of its machine code, from a compiled pass, from the calls for one row and from threads: called by
name, it would be compiled again as a part of each.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.borrow import borrowed, keep
from regretless.core.jit import inlined_kernel, jitable, kernel, merged_kernel, named_kernel
from regretless.core.one_row import (
    MachineCode,
    Table,
    caller,
    can_be_listed,
    form_of,
    give_back,
    name_of,
    reader,
    take,
    type_of,
)
from regretless.core.types import Array
from regretless.learners.logistic import adagrad, certified, expanded, forest, frequencies, newton
from regretless.learners.logistic.adagrad import WEIGHTS, Rates
from regretless.learners.logistic.certified import Reach
from regretless.learners.logistic.expanded import Given, expanded_width, forest_place, linear_members, spline_width
from regretless.learners.logistic.linear import forecast_block
from regretless.learners.logistic.members import RANGED, Constants
from regretless.learners.logistic.mixing import MixtureState, Room, Rules, blend_in, mix_in, new_room
from regretless.learners.logistic.newton import Step, buffers_for
from regretless.learners.logistic.scaling import COUNT, MEAN, blank, rescale
from regretless.learners.logistic.state import LogisticState
from regretless.learners.second_order.surrogate import SurrogateState

AT_ONCE = 256  # rows that a member plays before the next one does: its matrices stay in the cache
ENTRIES = 2**22  # of the rows and forecasts that are held meanwhile

certified_run, newton_run, adagrad_run, frequencies_run = certified.run, newton.run, adagrad.run, frequencies.run
certified_forecast, frequencies_forecast = certified.forecast_block, frequencies.forecast_block
expanded_run, expanded_forecast = expanded.run, expanded.forecast_block
forest_run, forest_forecast = forest.run, forest.forecast_block


class Told(NamedTuple):
    """What members are given of some rows."""

    X: Array
    rows: Array  # standardised
    ranged: Array  # the second version: see scaling.py
    counts: Array  # of the values learned before, per column
    Y: Array
    weight: Array
    splines: Array  # these three as in `Given`
    places: NDArray[np.int64]
    ready: bool


class Desk(NamedTuple):
    """Room for some rows. That for one row also keeps the last forecast of one, until another row is learned.

    Usually that row is learned next, from the same state. Then it is not expanded and mixed a second time. The desk is
    no part of the learner: it belongs to a `Game`, and copies, pickles and model files are without it.
    """

    marks: NDArray[np.int64]  # BUSY: whether some thread uses the desk; READY: whether it has the forecast of x
    x: Array  # (1, d)
    rows: Array  # (m, d') these two as in `Told`
    ranged: Array
    splines: Array  # (m, D)
    places: NDArray[np.int64]
    logits: Array  # (members, m, K)
    room: Room


BUSY, READY = range(2)


@jitable
def new_desk(s: LogisticState, c: Constants, m: int) -> Desk:
    """Room for m rows."""
    d, K, N = s.tables.shape[3], s.slots.size, c.prior.size
    return Desk(
        np.zeros(2, np.int64),
        np.empty((1, s.moments.shape[1])),
        np.empty((m, d)),
        np.empty((m, d)),
        np.empty((m, spline_width(s))),
        np.empty(c.numbers.size, np.int64),
        np.empty((N, m, K)),
        new_room(N, c.stacks, m, K),
    )


@kernel
def has_forecast(desk: Desk, X: Array) -> bool:
    """Whether the desk has the forecast of the one row of X, bit for bit."""
    if desk.marks[READY] == 0:
        return False
    given, kept = X[0].view(np.int64), desk.x[0].view(np.int64)
    for j in range(given.size):
        if given[j] != kept[j]:
            return False
    return True


class Options(NamedTuple):
    """What a call decides besides the state and the constants."""

    reserves: bool  # see `mix`


@kernel
def known(s: LogisticState) -> Array:
    """The counts and means of the columns so far, as the forest reads and updates them."""
    return s.moments[: MEAN + 1].copy()


@merged_kernel
def rows_at_once(s: LogisticState, c: Constants, n: int) -> int:
    """How many of n rows a member plays before the next one does."""
    d, K = s.tables.shape[3], s.slots.size
    return min(n, AT_ONCE, max(1, ENTRIES // (2 * d + expanded_width(s) + c.prior.size * K)))


@inlined_kernel
def play_members(s: LogisticState, c: Constants, first: int, last: int, told: Told, logits: Array) -> None:
    """Play some rows with members `first` to `last` - 1; those on expanded rows are one, after all others.

    `logits` (members, at least n, K) holds the logits forecast. The loop is here and not where this is called: copying
    a state of so many arrays for every member takes as long as half of the members.
    """
    M, N, R, n = s.P.shape[0], s.matrices.shape[0], s.tables.shape[0], told.rows.shape[0]
    rows, ranged, Y, weight = told.rows, told.ranged, told.Y, told.weight
    buffers = buffers_for(s.matrices, s.slots.size)
    for member in range(first, min(last, M + N + R + 1)):
        i, said = member, logits[member, :n]
        if i < M:
            own, reach = SurrogateState(s.P[i], s.w[i], s.tallies[i]), Reach(c.radii[i], c.regularization[i], c.helmert)
            certified_run(own, rows, Y, weight, reach, said)
        elif i < M + N:
            i -= M
            own_rows = ranged if c.newton[i, 4] == RANGED else rows
            step = Step(c.newton[i, 0], c.newton[i, 1], c.newton[i, 2])
            newton_run(s.matrices[i], s.weights[i], step, own_rows, Y, weight, buffers, said)
        elif i < M + N + R:
            i -= M + N
            own_rows = ranged if c.rates[i, 2] == RANGED else rows
            rates = Rates(c.rates[i, 0], c.rates[i, 1])
            adagrad_run(s.tables[i], s.slopes[i : i + 1], rates, own_rows, Y, weight, said)
        else:
            frequencies_run(s.counts, Y, weight, said)
    if last > M + N + R + 1 and expanded_width(s):
        given = Given(told.X, rows, told.counts, told.splines, told.places, told.ready)
        expanded_run(s, c, given, Y, weight, logits)


@merged_kernel
def finish(s: LogisticState, c: Constants, told: Told, logits: Array, room: Room, reserves: bool, out: Array) -> None:
    """Mix what the members have said of some rows."""
    sizes = np.empty(told.rows.shape[0])
    for t in range(sizes.size):
        square = 0.0
        for j in range(told.rows.shape[1]):
            square += told.rows[t, j] * told.rows[t, j]
        sizes[t] = math.sqrt(square)
    mixture = MixtureState(c.prior, s.log_weight, s.losses, s.scores, s.bins, s.tally, s.stack_matrix, s.stack_weights)
    mix_in(room, mixture, logits, told.Y, told.weight, sizes, Rules(c.shares, reserves, told.ready), out)


@inlined_kernel
def say(s: LogisticState, c: Constants, X: Array, kept: Desk, out: Array) -> None:
    """What is forecast for rows of weight 0. No array of the state is written: other threads may be reading it.

    The forecast of one row stays on the desk, unless another thread is using it.
    """
    M, N, R, n = s.P.shape[0], s.weights.shape[0], s.tables.shape[0], X.shape[0]
    m, keeps = rows_at_once(s, c, n), n == 1 and take(kept.marks)
    own_desk = kept if keeps else new_desk(s, c, m)
    desk = borrowed(own_desk)
    desk.marks[READY] = 0
    logits = desk.logits
    for start in range(0, n, max(m, 1)):
        stop = min(n, start + m)
        rows, ranged = desk.rows[: stop - start], desk.ranged[: stop - start]
        rescale(s.moments, X[start:stop], np.zeros(stop - start), rows, ranged)
        blank(ranged, c.blind)
        for i in range(M):
            own = SurrogateState(s.P[i], s.w[i], s.tallies[i])
            certified_forecast(own, rows, Reach(0.0, 0.0, c.helmert), logits[i, : stop - start])
        for i in range(N):
            own_rows = ranged if c.newton[i, 4] == RANGED else rows
            forecast_block(s.weights[i], own_rows, logits[M + i, : stop - start])
        for i in range(R):
            own_rows = ranged if c.rates[i, 2] == RANGED else rows
            forecast_block(s.tables[i, WEIGHTS], own_rows, logits[M + N + i, : stop - start])
        frequencies_forecast(s.counts, logits[M + N + R, : stop - start])
        if expanded_width(s):
            given = Given(X[start:stop], rows, s.moments[COUNT], desk.splines, desk.places, False)
            expanded_forecast(s, c, given, logits)
        if s.forest_sizes.size:
            forest_forecast(s, X[start:stop], logits[forest_place(c), : stop - start])
        blend_in(desk.room, s.log_weight, s.stack_weights, logits[:, : stop - start], out[start:stop])
    keep(own_desk)
    if keeps:
        kept.x[0] = X[0]
        kept.marks[READY] = 1
        give_back(kept.marks)


# ---------------------------------------------------------------------- kernels by the address of the table


class Listed(NamedTuple):
    """What the table of a game has."""

    state: LogisticState
    constants: Constants
    desk: Desk  # for one row
    members: int  # the address of the kernel that plays them


class Kernels(NamedTuple):
    """The compiled game, for tables of one Numba type."""

    members: Callable[..., None]  # members(address, first, last, told, logits): `play_members`
    run: Callable[..., int]  # run(address, X, Y, weight, options, out)
    forecast: Callable[..., None]  # forecast(address, X, options, out)
    code: MachineCode  # of `members`
    kind: Any  # the Numba type


_found: dict[Any, Kernels] = {}  # by the form of the contents


def some_rows() -> tuple[Told, Array]:
    """No rows, for the types that `members` is called with."""
    table, line = np.empty((0, 0)), np.empty(0)
    places = np.empty(0, dtype=np.int64)
    return Told(table, table, table, line, table, line, table, places, False), np.empty((0, 0, 0))


def compiled(kind: Any) -> Kernels:
    """The kernels for tables of this Numba type, `Listed`."""
    opened, name = reader(kind), name_of(kind)

    def members(address: int, first: int, last: int, told: Told, logits: Array) -> None:
        listed = opened(address)
        play_members(listed.state, listed.constants, first, last, told, logits)

    play_by_address = named_kernel(members, name)
    code = MachineCode(play_by_address, tuple(map(type_of, (0, 0, 0, *some_rows()))))
    call = caller(code.kinds)

    def run(address: int, X: Array, Y: Array, weight: Array, options: Options, out: Array) -> int:
        """Forecast every row (log probabilities, one column per slot) before its label is used; learn those of weight.

        Returns the number of rows played, fewer than all where the forest has no more room.

        Members depend neither on one another nor on the mixture, so each may play some rows before the next member
        does: the result is the same to the bit. The last one, which may combine the others, plays with the mixture.
        """
        listed = opened(address)
        s, c, kept = listed.state, listed.constants, listed.desk
        X, Y, weight, out = borrowed(X), borrowed(Y), borrowed(weight), borrowed(out)
        n = X.shape[0]
        m, alone = rows_at_once(s, c, n), n == 1 and take(kept.marks)
        ready = alone and weight[0] != 0.0 and has_forecast(kept, X)
        kept.marks[READY] = 0
        own_desk = kept if alone else new_desk(s, c, m)
        desk, stop = borrowed(own_desk), 0
        for start in range(0, n, max(m, 1)):
            wanted = stop = min(n, start + m)
            if s.forest_sizes.size:
                said = desk.logits[forest_place(c), : stop - start]
                stop = start + forest_run(s, known(s), X[start:stop], Y[start:stop], weight[start:stop], said)
            r, counts = stop - start, s.moments[COUNT].copy()
            known_row = ready and r > 0  # the forest may have had no room for it
            own = X[start:stop], desk.rows[:r], desk.ranged[:r], borrowed(counts), Y[start:stop], weight[start:stop]
            told = Told(*own, desk.splines, desk.places, known_row)
            rescale(s.moments, told.X, told.weight, told.rows, told.ranged)
            blank(told.ranged, c.blind)
            call(listed.members, (address, 0, linear_members(c) + 1, told, desk.logits))
            finish(s, c, told, desk.logits[:, :r], desk.room, options.reserves, out[start:stop])
            keep(counts)
            if stop < wanted:
                break
        keep(own_desk)
        if alone:
            give_back(kept.marks)
        return stop

    def forecast(address: int, X: Array, options: Options, out: Array) -> None:
        listed = opened(address)
        say(listed.state, listed.constants, borrowed(X), listed.desk, borrowed(out))

    return Kernels(play_by_address, named_kernel(run, name), named_kernel(forecast, name), code, kind)


class Game:
    """The compiled game of one state and its constants. They are listed once: that takes as long as some rows."""

    __slots__ = ("constants", "desk", "kernels", "state", "table")

    def __init__(self, state: LogisticState, constants: Constants) -> None:
        self.state, self.constants, self.desk = state, constants, new_desk(state, constants, 1)
        listed = Listed(state, constants, self.desk, 0)
        form = form_of(listed)
        if form not in _found:
            if not can_be_listed(listed):
                raise ValueError("an array of the state is not contiguous: kernels would read other memory.")
            _found[form] = compiled(type_of(listed))
        self.kernels = _found[form]
        self.table = Table(listed._replace(members=self.kernels.code.address), self.kernels.kind)

    def run(self, X: Array, Y: Array, weight: Array, reserves: bool, out: Array) -> int:
        """Play a block, and return the number of rows played."""
        return self.kernels.run(self.table.address, whole(X), whole(Y), whole(weight), Options(reserves), out)

    def forecast(self, X: Array, out: Array) -> None:
        """What `run` forecasts for rows of weight 0."""
        self.kernels.forecast(self.table.address, whole(X), Options(False), out)


def whole(array: Array) -> Array:
    """The numbers as the kernels are compiled for them."""
    return array if array.flags.carray else np.array(array, order="C")
