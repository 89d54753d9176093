"""The game of OnlineLogisticRegression over a block of rows: one compiled pass, one kind of members after another.

State and constants are more than forty arrays, and Numba takes 80 ns to recognise each at every call. So they are
listed in a table once (`Game`), and kernels get its address: see core/kernels/one_row.py. The kernels that play the
members are called by address too, from a compiled pass, from the calls for one row and from threads: see parts.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import jitable, kernel, merged_kernel, named_kernel
from regretless.core.kernels.one_row import (
    Kinds,
    MachineCode,
    Table,
    caller,
    can_be_listed,
    form_of,
    give_back,
    name_of,
    take,
    type_of,
)
from regretless.core.types import Array
from regretless.learners.logistic.expanded import expanded_width, spline_width
from regretless.learners.logistic.forest import known
from regretless.learners.logistic.members import Constants, Told
from regretless.learners.logistic.mixing import MixtureState, Room, Rules, blend_in, mix_in, new_room
from regretless.learners.logistic.parts import (
    FOREST_FORECAST,
    FOREST_RUN,
    LINE,
    PART,
    TABLE,
    Code,
    Parts,
    parts_of,
)
from regretless.learners.logistic.scaling import COUNT, blank, rescale
from regretless.learners.logistic.state import LogisticState

AT_ONCE = 256  # rows that a member plays before the next one does: its matrices stay in the cache
ENTRIES = 2**22  # of the rows and forecasts that are held meanwhile


class Shape(NamedTuple):
    """The numbers that decide how large a `Desk` is."""

    columns: int  # of X
    width: int  # of a rescaled row
    spline_width: int
    numbers: int  # the columns that hold numbers
    members: int
    stacks: bool
    slots: int
    certified: int  # the members in the first part, and in the second
    linear: int
    forest: int  # the place of the forest among the members
    at_once: int  # the most rows that a member plays before the next one does


def shape_of(s: LogisticState, c: Constants) -> Shape:
    """The shape for this state."""
    members, width, slots = c.members, s.tables.shape[3], s.slots.size
    entries = 2 * width + expanded_width(s) + members.total * slots
    return Shape(
        columns=s.moments.shape[1],
        width=width,
        spline_width=spline_width(s),
        numbers=c.numbers.size,
        members=members.total,
        stacks=bool(c.stacks),
        slots=slots,
        certified=len(members.radii),
        linear=members.linear - len(members.radii),
        forest=sum(members.of_each_kind[:6]),
        at_once=min(AT_ONCE, max(1, ENTRIES // entries)),
    )


class Desk(NamedTuple):
    """Room for some rows. That for one row also keeps the last forecast of one, until another row is learned.

    Usually that row is learned next, from the same state. Then it is not expanded and mixed a second time. The desk is
    no part of the learner: it belongs to a `Game`, and copies, pickles and model files are without it.
    """

    marks: NDArray[np.int64]  # BUSY: whether some thread uses the desk; READY: whether it has the forecast of x
    x: Array  # (1, d)
    rows: Array  # (m, d') these and the next but one as in `Told`
    ranged: Array
    counts: Array  # (d,)
    splines: Array  # (m, D)
    places: NDArray[np.int64]
    logits: Array  # (members, m, K)
    sizes: Array  # (m,) the norms of the rows
    room: Room


BUSY, READY = range(2)


@jitable
def new_desk(shape: Shape, m: int) -> Desk:
    """Room for m rows."""
    N, K, d = shape.members, shape.slots, shape.columns
    return Desk(
        np.zeros(2, np.int64),
        np.empty((1, d)),
        np.empty((m, shape.width)),
        np.empty((m, shape.width)),
        np.empty(d),
        np.empty((m, shape.spline_width)),
        np.empty(shape.numbers, np.int64),
        np.empty((N, m, K)),
        np.empty(m),
        new_room(N, shape.stacks, m, K),
    )


@kernel
def has_forecast(marks: NDArray[np.int64], x: Array, X: Array) -> bool:
    """Whether a desk has the forecast of the one row of X, bit for bit."""
    if marks[READY] == 0:
        return False
    given, kept = X[0].view(np.int64), x[0].view(np.int64)
    for j in range(given.size):
        if given[j] != kept[j]:
            return False
    return True


class Options(NamedTuple):
    """What a call decides besides the state and the constants."""

    reserves: bool  # see `mix`


@merged_kernel
def mixture_of(s: LogisticState, c: Constants) -> MixtureState:
    """The fields of the state that belong to the mixture."""
    return MixtureState(c.prior, s.log_weight, s.losses, s.scores, s.bins, s.tally, s.stack_matrix, s.stack_weights)


@merged_kernel
def finish(mixture: MixtureState, told: Told, desk: Desk, rules: Rules, out: Array) -> None:
    """Mix what the members have said of some rows."""
    n = told.rows.shape[0]
    for t in range(n):
        square = 0.0
        for j in range(told.rows.shape[1]):
            square += told.rows[t, j] * told.rows[t, j]
        desk.sizes[t] = math.sqrt(square)
    mix_in(desk.room, mixture, desk.logits[:, :n], told.Y, told.weight, desk.sizes, rules, out)


# ---------------------------------------------------------------------- kernels by the address of the table


class Listed(NamedTuple):
    """What the table of a game has."""

    state: LogisticState
    constants: Constants
    desk: Desk  # for one row
    shape: Shape
    run: Parts
    forecast: Parts
    run_rows: int = 0  # the addresses of the kernels for blocks
    forecast_rows: int = 0


RUN: Kinds = tuple(map(type_of, (0, TABLE, TABLE, LINE, Options(False), TABLE)))
FORECAST: Kinds = tuple(map(type_of, (0, TABLE, Options(False), TABLE)))
call_part, call_forest, call_run = caller(PART), caller(FOREST_RUN, type_of(0)), caller(RUN, type_of(0))
call_forest_forecast, call_forecast = caller(FOREST_FORECAST), caller(FORECAST)


class Kernels(Code):
    """The compiled game, for tables of one Numba type: for blocks, and for single rows."""

    @cached_property
    def run(self) -> Callable[..., int]:
        """run(address, X, Y, weight, options, out)."""
        opened = self.opened

        def run(address: int, X: Array, Y: Array, weight: Array, options: Options, out: Array) -> int:
            """Forecast every row (log probabilities, one column per slot) before its label is used, then learn it.

            Rows of weight 0 are not learned. Returns the number of rows played, fewer than all where the forest has no
            more room.

            Members depend neither on one another nor on the mixture, so each may play some rows before the next member
            does: the result is the same to the bit. The last one, which may combine the others, plays with the mixture.
            """
            listed = opened(address)
            s, c, shape, parts = listed.state, listed.constants, listed.shape, listed.run
            X, Y, weight, out = borrowed(X), borrowed(Y), borrowed(weight), borrowed(out)
            listed.desk.marks[READY] = 0
            n, stop = X.shape[0], 0
            m = min(n, shape.at_once)
            own_desk = new_desk(shape, m)
            desk = borrowed(own_desk)
            for start in range(0, n, max(m, 1)):
                wanted = stop = min(n, start + m)
                if parts.forest:
                    some, said = slice(start, stop), desk.logits[shape.forest, : stop - start]
                    rows = known(s.moments), X[some], Y[some], weight[some]
                    stop = start + call_forest(parts.forest, (address, *rows, said))
                r = stop - start
                copy_line(s.moments[COUNT], desk.counts)
                own = X[start:stop], desk.rows[:r], desk.ranged[:r], desk.counts, Y[start:stop], weight[start:stop]
                told = Told(*own, desk.splines, desk.places, False)
                rescale(s.moments, told.X, told.weight, told.rows, told.ranged)
                blank(told.ranged, c.blind)
                call_parts(address, parts, shape, told, desk.logits)
                finish(mixture_of(s, c), told, desk, Rules(c.shares, options.reserves, False), out[start:stop])
                if stop < wanted:
                    break
            keep(own_desk)
            return stop

        return named_kernel(run, name_of(self.kind))

    @cached_property
    def run_row(self) -> Callable[..., int]:
        """`run` for one row, on the desk of the game."""
        opened = self.opened

        def run_row(address: int, X: Array, Y: Array, weight: Array, options: Options, out: Array) -> int:
            listed = opened(address)
            s, c, desk, parts = listed.state, listed.constants, listed.desk, listed.run
            if not take(desk.marks):
                return call_run(listed.run_rows, (address, X, Y, weight, options, out))
            X, Y, weight, out = borrowed(X), borrowed(Y), borrowed(weight), borrowed(out)
            ready, played = weight[0] != 0.0 and has_forecast(desk.marks, desk.x, X), 1
            desk.marks[READY] = 0
            if parts.forest:
                said = desk.logits[listed.shape.forest]
                played = call_forest(parts.forest, (address, known(s.moments), X, Y, weight, said))
            if played:
                copy_line(s.moments[COUNT], desk.counts)
                told = Told(X, desk.rows, desk.ranged, desk.counts, Y, weight, desk.splines, desk.places, ready)
                rescale(s.moments, X, weight, desk.rows, desk.ranged)
                blank(desk.ranged, c.blind)
                call_parts(address, parts, listed.shape, told, desk.logits)
                finish(mixture_of(s, c), told, desk, Rules(c.shares, options.reserves, ready), out)
            give_back(desk.marks)
            return played

        return named_kernel(run_row, name_of(self.kind))

    @cached_property
    def forecast(self) -> Callable[..., None]:
        """forecast(address, X, options, out)."""
        opened = self.opened

        def forecast(address: int, X: Array, options: Options, out: Array) -> None:
            """What `run` forecasts for rows of weight 0. No array of the state is written: other threads read them."""
            listed = opened(address)
            shape = listed.shape
            X, out = borrowed(X), borrowed(out)
            m = min(X.shape[0], shape.at_once)
            own_desk, own_zeros = new_desk(shape, m), np.zeros(m)
            desk, zeros = borrowed(own_desk), borrowed(own_zeros)
            for start in range(0, X.shape[0], max(m, 1)):
                stop = min(X.shape[0], start + m)
                forecast_some(address, listed, X[start:stop], desk, zeros[: stop - start], out[start:stop])
            keep(own_desk)
            keep(own_zeros)

        return named_kernel(forecast, name_of(self.kind))

    @cached_property
    def forecast_row(self) -> Callable[..., None]:
        """`forecast` for one row; the forecast stays on the desk of the game, unless another thread is using it."""
        opened = self.opened

        def forecast_row(address: int, X: Array, options: Options, out: Array) -> None:
            listed = opened(address)
            desk = listed.desk
            if not take(desk.marks):
                call_forecast(listed.forecast_rows, (address, X, options, out))
                return
            X, out = borrowed(X), borrowed(out)
            desk.marks[READY] = 0
            desk.sizes[0] = 0.0
            forecast_some(address, listed, X, desk, desk.sizes, out)
            copy_line(X[0], desk.x[0])
            desk.marks[READY] = 1
            give_back(desk.marks)

        return named_kernel(forecast_row, name_of(self.kind))


@merged_kernel
def forecast_some(address: int, listed: Listed, X: Array, desk: Desk, zeros: Array, out: Array) -> None:
    """Forecast as many rows as a desk has room for, at most."""
    s, parts, n = listed.state, listed.forecast, X.shape[0]
    own = X, desk.rows[:n], desk.ranged[:n], s.moments[COUNT], desk.rows[:0], zeros
    told = Told(*own, desk.splines, desk.places, False)
    rescale(s.moments, X, zeros, told.rows, told.ranged)
    blank(told.ranged, listed.constants.blind)
    call_parts(address, parts, listed.shape, told, desk.logits)
    if parts.forest:
        call_forest_forecast(parts.forest, (address, X, desk.logits[listed.shape.forest, :n]))
    blend_in(desk.room, s.log_weight, s.stack_weights, desk.logits[:, :n], out)


@merged_kernel
def call_parts(address: int, parts: Parts, shape: Shape, told: Told, logits: Array) -> None:
    """Call all parts but the forest."""
    if parts.certified:
        call_part(parts.certified, (address, told, 0, shape.certified, logits))
    call_part(parts.linear, (address, told, 0, shape.linear, logits))
    if parts.splines:
        call_part(parts.splines, (address, told, 0, 0, logits))
    if parts.fourier:
        call_part(parts.fourier, (address, told, 0, 0, logits))
    if parts.products:
        call_part(parts.products, (address, told, 0, 0, logits))


_found: dict[Any, Kernels] = {}  # by the form of the contents


class Game:
    """The compiled game of one state and its constants. They are listed once: that takes as long as some rows."""

    __slots__ = ("constants", "desk", "kernels", "parts", "shape", "state", "table")

    def __init__(self, state: LogisticState, constants: Constants) -> None:
        self.state, self.constants, self.shape = state, constants, shape_of(state, constants)
        self.desk = new_desk(self.shape, 1)
        listed = Listed(state, constants, self.desk, self.shape, Parts(), Parts())
        form = form_of(listed)
        if form not in _found:
            if not can_be_listed(listed):
                raise ValueError("an array of the state is not contiguous: kernels would read other memory.")
            _found[form] = Kernels(type_of(listed))
        self.kernels = _found[form]
        self.parts = parts_of(state, constants)
        run, forecast = (self.kernels.addresses(verb, self.parts) for verb in ("run", "forecast"))
        rows = {
            "run_rows": MachineCode(self.kernels.run, RUN),
            "forecast_rows": MachineCode(self.kernels.forecast, FORECAST),
        }
        listed = listed._replace(run=run, forecast=forecast, **{name: code.address for name, code in rows.items()})
        self.table = Table(listed, self.kernels.kind)

    def run(self, X: Array, Y: Array, weight: Array, reserves: bool, out: Array) -> int:
        """Play a block, and return the number of rows played."""
        run = self.kernels.run_row if len(X) == 1 else self.kernels.run
        return run(self.table.address, whole(X), whole(Y), whole(weight), Options(reserves), out)

    def play_part(self, field: str, told: Told, first: int, last: int, logits: Array) -> None:
        """Play some rows with members `first` to `last` - 1 of a part."""
        self.kernels.part("run", self.parts[field]).play(self.table.address, told, first, last, logits)

    def forecast(self, X: Array, out: Array) -> None:
        """What `run` forecasts for rows of weight 0."""
        forecast = self.kernels.forecast_row if len(X) == 1 else self.kernels.forecast
        forecast(self.table.address, whole(X), Options(False), out)


def whole(array: Array) -> Array:
    """The numbers as the kernels are compiled for them."""
    return array if array.flags.carray else np.array(array, order="C")
