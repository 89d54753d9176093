"""Many learners of one kind in stacked arrays: each row is played by the learner of its number.

A stack is a state of the learner's type whose arrays have one more axis, the first: the state of learner i is a slice
of each. Rows of one learner are brought together, in their order, and played as a block, which gives the same bits as
row by row. Learners are independent, so groups of them run on several threads. The loop over the learners is compiled;
it calls the kernels that learn and forecast one row of the learner by the addresses of their machine code. Learners
without such kernels are called from Python, once per learner and stretch of rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import chosen_by_type, inlined_kernel, kernel, named_kernel
from regretless.core.kernels.one_row import (
    Kinds,
    MachineCode,
    Table,
    caller,
    can_be_listed,
    name_of,
    numba_config,
    reader,
    type_of,
)
from regretless.core.kernels.prefetch import prefetch
from regretless.core.rows.compressed import Entries
from regretless.core.types import Array
from regretless.learners.second_order.gaf import GAF

WORTH_A_THREAD = 8192  # rows: starting a thread takes as long as about 200
MOST_PER_ROW = 8  # learners per row of a block up to which counting them is faster than sorting the rows
AHEAD = 8  # rows that are fetched before their turn
FEW = 64  # rows that are played one by one, because bringing those of one learner together would take longer


class Groups(NamedTuple):
    """The rows of a block by learner: group g has the rows `order[bounds[g]:bounds[g + 1]]`.

    Without an `order` the groups have the rows as they come.
    """

    order: NDArray[np.int64]
    numbers: NDArray[np.int64]  # the learner of each group; several groups of a learner are in the order of their rows
    bounds: NDArray[np.int64]

    def first_rows(self) -> NDArray[np.int64]:
        """The first row of each group; none is empty."""
        return self.order[self.bounds[:-1]] if self.order.size else self.bounds[:-1]

    def last_rows(self) -> NDArray[np.int64]:
        """The last row of each group, counted from 1; none is empty."""
        return self.order[self.bounds[1:] - 1] + 1 if self.order.size else self.bounds[1:]


NONE = np.empty(0, dtype=np.int64)
UP = np.arange(FEW + 1)


def groups_of(numbers: NDArray[np.int64], n_learners: int) -> Groups:
    """Bring the rows of each learner together, in their order; few rows stay apart. Numbers are from -1 on."""
    if len(numbers) <= FEW:
        return Groups(NONE, numbers, UP[: len(numbers) + 1])
    if n_learners <= MOST_PER_ROW * len(numbers):
        order, counts = counted(numbers, n_learners)
        found = np.flatnonzero(counts)
        return Groups(order, found - 1, np.concatenate([[0], np.cumsum(counts[found])]))
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    firsts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    return Groups(order, ordered[firsts], np.append(firsts, len(numbers)))


@kernel
def counted(numbers: NDArray[np.int64], n_learners: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The rows sorted by their numbers, in their order for equal ones; and how many have -1, 0, 1, ..."""
    counts = np.zeros(n_learners + 1, np.int64)
    for t in range(numbers.size):
        counts[numbers[t] + 1] += 1
    at = np.cumsum(counts) - counts
    order = np.empty(numbers.size, np.int64)
    for t in range(numbers.size):
        number = numbers[t] + 1
        order[at[number]] = t
        at[number] += 1
    return order, counts


def state_at(stack: Any, i: int) -> Any:
    """The state of learner i, as views."""
    return type(stack)(*(arrays[i] for arrays in stack))


class Routed(NamedTuple):
    """What a `Router` lists."""

    states: Any
    others: Any
    constants: Any
    run: int  # the address of the learner's kernel


class Router:
    """The compiled loops over stacked states. Their arrays are listed once: that takes longer than learning a row."""

    __slots__ = ("constants", "forecast", "forecast_each", "route", "states", "table")

    def __init__(self, learner: Any, states: Any, others: Any) -> None:
        self.states, self.constants = states, learner._constants
        kernels, constants = learner._row_kernels(), own_constants(learner)
        out = learner._new_forecasts(1)
        Y, weight, x = np.zeros(out.shape), np.ones(1), np.zeros((1, 1))
        row = compressed(x) if kernels.entries else x
        run = MachineCode(kernels.run, kinds_of(learner.state_, row, Y, weight, constants, out))
        self.forecast = MachineCode(kernels.forecast, kinds_of(learner.state_, row, constants, out))
        self.table = Table(Routed(states, others, constants, run.address))
        self.route = compiled_route(self.table.kind, run.kinds, kernels.entries)
        self.forecast_each = compiled_forecasts(self.forecast.kinds, kernels.entries)


class Stack:
    """The states of many learners of one kind: those of learner i are line i of each array.

    `learner` has the constants. The arrays may have more lines than there are learners.
    """

    __slots__ = ("_of_pool", "_router", "learner", "states")

    def __init__(self, learner: Any, arrays: Iterable[NDArray[Any]]) -> None:
        self.learner = learner
        self.states = type(learner.state_)(*arrays)
        self._router: Router | None = None
        self._of_pool: tuple[Any, Router] | None = None

    def router(self, X: Any) -> Router | None:
        """The compiled loop for such rows, if there is one."""
        if type(X) is not np.ndarray:
            return None
        if self._router is None or self._router.constants is not self.learner._constants:
            self._router = Router(self.learner, self.states, self.states) if is_compiled(self.learner) else None
        return self._router

    def run(self, groups: Groups, X: Any, Y: Array, weight: Array, out: Array) -> None:
        """Play the rows of each group with its learner."""
        threads, router = _threads(len(Y), groups), self.router(X)
        if router is not None and threads == 1:
            router.route(router.table.address, groups, (0, len(groups.numbers)), X, Y, weight, out, NONE)
            return

        def play(part: slice) -> None:
            if router is None:
                self._play(groups, part, X, Y, weight, out)
                return
            # GAF's kernels write into their constants, so that each thread needs its own
            mine = Router(self.learner, self.states, self.states) if isinstance(self.learner, GAF) else router
            mine.route(mine.table.address, groups, (part.start, part.stop), X, Y, weight, out, NONE)

        _in_threads(play, groups, threads)

    def _play(self, groups: Groups, part: slice, X: Any, Y: Array, weight: Array, out: Array) -> None:
        """Play some groups from Python."""
        one = copy.copy(self.learner)
        for g in range(part.start, part.stop):
            rows = _rows_of(groups, g)
            one.state_ = state_at(self.states, groups.numbers[g])
            said = out[rows]
            one._run(X[rows], Y[rows], weight[rows], said)
            out[rows] = said

    def run_pool(self, groups: Groups, is_new: Any, X: Any, Y: Array, weight: Array) -> None:
        """Learn all rows with `learner`, and start those of new groups from its state before their first rows."""
        pool = self.learner
        started, first = np.unique(groups.numbers[is_new], return_index=True)
        rows = groups.first_rows()[is_new][first]
        turn = np.argsort(rows)
        starting = np.concatenate([[-1], started[turn]])
        bounds = np.concatenate([[0], rows[turn], [len(Y)]])
        out = pool._new_forecasts(len(Y))
        if self.router(X) is not None:
            router = self._router_of_pool()
            groups = Groups(NONE, np.zeros_like(starting), bounds)
            router.route(router.table.address, groups, (0, len(starting)), X, Y, weight, out, starting)
            return
        for g, number in enumerate(starting):
            if number >= 0:
                put(self.states, number, pool.state_)
            part = slice(bounds[g], bounds[g + 1])
            if part.start < part.stop:
                pool._run(X[part], Y[part], weight[part], out[part])

    def _router_of_pool(self) -> Router:
        """The loop over the rows of all learners, which is compiled for stacks too: the pool is a stack of one."""
        pool = self.learner
        if self._of_pool is not None:
            state, router = self._of_pool
            if state is pool.state_ and router.constants is pool._constants:
                return router
        alone = type(pool.state_)(*(array[None] for array in pool.state_))
        router = Router(pool, alone, self.states)
        self._of_pool = pool.state_, router
        return router

    def forecast(self, numbers: NDArray[np.int64], X: Array, out: Array) -> None:
        """The forecast of every row by the learner of its number, or by `learner` itself if it is -1."""
        learner, router = self.learner, self.router(X)
        if router is not None:
            given = self.states, learner.state_, numbers, X, own_constants(learner), out
            router.forecast_each(router.forecast.address, *given)
            return
        groups, one = groups_of(numbers, len(self.states[0])), copy.copy(learner)
        for g, number in enumerate(groups.numbers):
            rows = _rows_of(groups, g)
            one.state_ = learner.state_ if number < 0 else state_at(self.states, number)
            said = out[rows]
            one._forecast(X[rows], said)
            out[rows] = said


def _rows_of(groups: Groups, g: int) -> Any:
    """The rows of a group."""
    part = slice(groups.bounds[g], groups.bounds[g + 1])
    return groups.order[part] if groups.order.size else part


def is_compiled(learner: Any) -> bool:
    """Whether the loop over learners is compiled: one row takes no more than a kernel, and small states no panels."""
    kernels = None if numba_config.DISABLE_JIT or learner.least_rows > 1 else learner._row_kernels()
    return kernels is not None and kernels.constants is learner._constants and can_be_listed(kernels[2:4])


def own_constants(learner: Any) -> Any:
    """The constants for one thread: GAF's kernels write into theirs."""
    return learner._own_points() if isinstance(learner, GAF) else learner._constants


def _threads(n: int, groups: Groups) -> int:
    """How many threads n rows are worth."""
    most = min(n // WORTH_A_THREAD, len(groups.numbers))
    return min(most, numba.get_num_threads()) if most > 1 else 1


def _in_threads(work: Callable[[slice], None], groups: Groups, threads: int) -> None:
    """Do the work of all groups; all threads end before an error shows."""
    if threads == 1:
        work(slice(0, len(groups.numbers)))
        return
    cuts = np.searchsorted(groups.bounds, np.arange(1, threads) * groups.bounds[-1] // threads).tolist()
    parts = [slice(first, last) for first, last in zip([0, *cuts], [*cuts, len(groups.numbers)], strict=True)]
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, parts))


# ---------------------------------------------------------------------- compiled


def slices(stack: Any, i: int) -> Any:
    """The slices of learner i, as a tuple."""
    return tuple(arrays[i] for arrays in stack)


@chosen_by_type(slices)
def _slices(stack: Any, i: Any) -> Any:
    if len(stack) == 1:
        return lambda stack, i: (stack[0][i],)
    return lambda stack, i: (stack[0][i], *slices(stack[1:], i))


def state_of(stack: Any, i: int) -> Any:
    """`state_at`, for kernels."""
    return state_at(stack, i)


@chosen_by_type(state_of)
def _state_of(stack: Any, i: Any) -> Any:
    kind = stack.instance_class
    return lambda stack, i: kind(*slices(stack, i))


def put(stack: Any, i: int, state: Any) -> None:
    """Give learner i a copy of a state."""
    for arrays, array in zip(stack, state, strict=True):
        arrays[i] = array


@chosen_by_type(put)
def _put(stack: Any, i: Any, state: Any) -> Any:
    if len(stack) == 0:
        return lambda stack, i, state: None

    def put_first(stack: Any, i: int, state: Any) -> None:
        copy_line(state[0].reshape(-1), stack[0][i].reshape(-1))
        put(stack[1:], i, state[1:])

    return put_first


def fetch(stack: Any, i: int) -> None:
    """Tell the processor that learner i comes soon."""


@chosen_by_type(fetch)
def _fetch(stack: Any, i: Any) -> Any:
    if len(stack) == 1:
        return lambda stack, i: prefetch(stack[0], i)

    def all_of(stack: Any, i: Any) -> None:
        prefetch(stack[0], i)
        fetch(stack[1:], i)

    return all_of


@kernel
def compressed(X: Array) -> Entries:
    """Dense rows in compressed form."""
    n, d = X.shape
    indices = np.empty((n, d), dtype=np.uint32)
    for t in range(n):
        for j in range(d):
            indices[t, j] = j
    return Entries(np.arange(0, n * d + 1, d), indices.reshape(-1), X.reshape(-1))


@kernel
def dense(X: Array) -> Array:
    """Dense rows as they are."""
    return X


def kinds_of(*arguments: Any) -> Kinds:
    """Their Numba types."""
    return tuple(map(type_of, arguments))


@cache
def compiled_route(kind: Any, run_kinds: Kinds, takes_entries: bool) -> Callable[..., None]:
    """The loop over groups of rows, for tables of this Numba type and a kernel with arguments of these."""
    opened, run, rows_of = reader(kind), caller(run_kinds), compressed if takes_entries else dense

    def route(
        address: int,
        groups: Groups,
        part: tuple[int, int],
        X: Array,
        Y: Array,
        weight: Array,
        out: Array,
        starting: NDArray[np.int64],
    ) -> None:
        """Play a part of the groups, from the first number to before the last, each as one block.

        Before group g, learner `starting[g]` of the other stack gets a copy of the state, if there is such a number.
        """
        stack, others, constants, code = opened(address)
        (order, numbers, bounds), (first, last) = groups, part
        x, y, w, said, begin = X, Y, weight, out, 0
        if order.size > 0:
            begin = bounds[first]
            n = bounds[last] - begin
            x, y = np.empty((n, X.shape[1])), np.empty((n, *Y.shape[1:]))
            w, said = np.empty(n), np.empty((n, *out.shape[1:]))
            gather(X, Y, weight, order[begin : begin + n], x, y, w)
        for g in range(first, last):
            if g + 1 < last:
                fetch(stack, numbers[g + 1])
            state = state_of(stack, numbers[g])
            if starting.size > 0 and starting[g] >= 0:
                put(others, starting[g], state)
            a, b = bounds[g] - begin, bounds[g + 1] - begin
            if a < b:
                run(code, (state, rows_of(x[a:b]), y[a:b], w[a:b], constants, said[a:b]))
        if order.size > 0:
            scatter(said, order[begin : bounds[last]], out)

    return named_kernel(route, name_of(kind, run_kinds))


@kernel
def gather(X: Array, Y: Array, weight: Array, order: NDArray[np.int64], x: Array, y: Array, w: Array) -> None:
    """Copy rows, targets and weights in the given order. (All at once, so that memory is fetched ahead.)"""
    Y_lines, y_lines = lines(Y), lines(y)
    for i in range(order.size):
        t, soon = order[i], order[min(i + AHEAD, order.size - 1)]
        prefetch(X, soon)
        prefetch(Y, soon)
        prefetch(weight, soon)
        copy_between(X, t, x, i)
        copy_between(Y_lines, t, y_lines, i)
        w[i] = weight[t]


@kernel
def scatter(said: Array, order: NDArray[np.int64], out: Array) -> None:
    """Copy forecasts to the places of their rows."""
    said_lines, out_lines = lines(said), lines(out)
    for i in range(order.size):
        prefetch(out, order[min(i + AHEAD, order.size - 1)])
        copy_between(said_lines, i, out_lines, order[i])


@kernel
def lines(array: Array) -> Array:
    """An array of numbers, or of lines of numbers, as lines."""
    return array.reshape(array.shape[0], array.size // array.shape[0])


@inlined_kernel
def copy_between(source: Array, i: int, target: Array, j: int) -> None:
    """Copy line i of one array to line j of another, without views of them."""
    for column in range(source.shape[1]):
        target[j, column] = source[i, column]


@cache
def compiled_forecasts(kinds: Kinds, takes_entries: bool) -> Callable[..., None]:
    """The loop over rows, for a kernel with arguments of these Numba types."""
    say, rows_of = caller(kinds), compressed if takes_entries else dense

    def forecast_each(
        code: int, stack: Any, start: Any, numbers: NDArray[np.int64], X: Array, constants: Any, out: Array
    ) -> None:
        """The forecasts of all rows; those of number -1 by the state `start`."""
        for t in range(numbers.size):
            soon = numbers[min(t + 2, numbers.size - 1)]
            if soon >= 0:
                fetch(stack, soon)
            state = start if numbers[t] < 0 else state_of(stack, numbers[t])
            say(code, (state, rows_of(X[t : t + 1]), constants, out[t : t + 1]))

    return named_kernel(forecast_each, name_of(kinds))
