"""Many learners of one kind in stacked arrays: each row is played by the learner of its number.

A stack is a state of the learner's type whose arrays have one more axis, the first: the state of learner i is a slice
of each. Rows of one learner are brought together, in their order, and played as a block, which gives the same bits as
row by row. Learners are independent, so groups of them run on several threads. The loop over the learners is compiled
for the classes in `RUNS`; others are called from Python, once per learner and stretch of rows.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from regretless.core.jit import chosen_by_type, inlined_kernel, kernel
from regretless.core.prefetch import prefetch
from regretless.core.rows import Entries
from regretless.core.types import Array
from regretless.learners.first_order import linear, ogd
from regretless.learners.second_order import aioli, folklore_loop, multiclass, vovk
from regretless.learners.second_order.gaf import GAF

WORTH_A_THREAD = 8192  # rows: starting a thread takes as long as about 200
MOST_PER_ROW = 8  # learners per row of a block up to which counting them is faster than sorting the rows
AHEAD = 8  # rows that are fetched before their turn
FEW = 64  # rows that are played one by one, because bringing those of one learner together would take longer

RUNS: dict[type, Callable[..., Any]] = {
    aioli.AIOLIConstants: aioli.run,
    multiclass.MulticlassConstants: folklore_loop.run,
    vovk.VovkConstants: vovk.run,
    ogd.OGDConstants: ogd.run,
}


class Groups(NamedTuple):
    """The rows of a block by learner: group g has the rows `order[bounds[g]:bounds[g + 1]]`."""

    order: NDArray[np.int64]
    numbers: NDArray[np.int64]  # the learner of each group
    bounds: NDArray[np.int64]


def groups_of(numbers: NDArray[np.int64], n_learners: int) -> Groups:
    """Bring the rows of each learner together, in their order. Numbers are from -1 to `n_learners` - 1."""
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


def run(learner: Any, stack: Any, numbers: NDArray[np.int64], X: Any, Y: Array, weight: Array, out: Array) -> None:
    """Play every row with the learner of its number; `learner` has the constants, and its state is not used."""
    if len(numbers) <= FEW and is_compiled(learner, X):
        play_each(stack, numbers, X, Y, weight, own_constants(learner), out)
        return
    groups = groups_of(numbers, len(stack[0]))

    def play(mine: slice) -> None:
        if is_compiled(learner, X):
            route(stack, groups, mine.start, mine.stop, X, Y, weight, own_constants(learner), out)
            return
        one = copy.copy(learner)
        for g in range(mine.start, mine.stop):
            rows = groups.order[groups.bounds[g] : groups.bounds[g + 1]]
            one.state_ = state_at(stack, groups.numbers[g])
            said = out[rows]
            one._run(X[rows], Y[rows], weight[rows], said)
            out[rows] = said

    _in_threads(play, groups)


def forecast(learner: Any, stack: Any, numbers: NDArray[np.int64], X: Array, out: Array) -> None:
    """The forecast of every row by the learner of its number, or by `learner` itself if it is -1."""
    if is_compiled(learner, X):
        forecast_each(stack, learner.state_, numbers, X, own_constants(learner), out)
        return
    groups, one = groups_of(numbers, len(stack[0])), copy.copy(learner)
    for g, number in enumerate(groups.numbers):
        rows = groups.order[groups.bounds[g] : groups.bounds[g + 1]]
        one.state_ = learner.state_ if number < 0 else state_at(stack, number)
        said = out[rows]
        one._forecast(X[rows], said)
        out[rows] = said


def is_compiled(learner: Any, X: Any) -> bool:
    """Whether the loop over learners is compiled: small states, and constants that are numbers."""
    constants = learner._constants
    if type(constants) not in RUNS or type(X) is not np.ndarray or learner.least_rows > 1:
        return False
    return not isinstance(constants, ogd.OGDConstants) or (
        isinstance(constants.loss, int) and isinstance(constants.number, float)
    )


def own_constants(learner: Any) -> Any:
    """The constants for one thread: GAF's kernels write into theirs."""
    return learner._own_points() if isinstance(learner, GAF) else learner._constants


def _in_threads(work: Callable[[slice], None], groups: Groups) -> None:
    """Do the work of all groups, on several threads if there are enough rows; all threads end before an error shows."""
    n, n_groups = len(groups.order), len(groups.numbers)
    threads = max(1, min(numba.get_num_threads(), n // WORTH_A_THREAD, n_groups))
    cuts = np.searchsorted(groups.bounds, np.arange(1, threads) * n // threads).tolist()
    parts = [slice(first, last) for first, last in zip([0, *cuts], [*cuts, n_groups], strict=True)]
    if threads == 1:
        work(parts[0])
        return
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
        stack[0][i] = state[0]
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


def full_rows(X: Array) -> Entries:
    """Dense rows in compressed form."""
    n, d = X.shape
    indices = np.empty((n, d), dtype=np.uint32)
    indices[:] = np.arange(d)
    return Entries(np.arange(0, n * d + 1, d), indices.reshape(-1), X.reshape(-1))


compressed = kernel(full_rows)


def play(state: Any, X: Array, Y: Array, weight: Array, constants: Any, out: Array) -> None:
    """The learner's loop over a block, by the type of its constants."""
    rows = full_rows(X) if isinstance(constants, ogd.OGDConstants) else X
    RUNS[type(constants)](state, rows, Y, weight, constants, out)


@chosen_by_type(play)
def _play(state: Any, X: Any, Y: Any, weight: Any, constants: Any, out: Any) -> Any:
    run_one = RUNS[constants.instance_class]
    if constants.instance_class is ogd.OGDConstants:
        return lambda state, X, Y, weight, constants, out: run_one(state, compressed(X), Y, weight, constants, out)
    return lambda state, X, Y, weight, constants, out: run_one(state, X, Y, weight, constants, out)


def say(state: Any, X: Array, constants: Any, out: Array) -> None:
    """The learner's forecasts of a block, by the type of its constants."""
    if isinstance(constants, aioli.AIOLIConstants):
        aioli.forecast_block(state, X, constants, out)
    elif isinstance(constants, multiclass.MulticlassConstants):
        folklore_loop.forecast_block(state, X, constants, out)
    elif isinstance(constants, vovk.VovkConstants):
        vovk.forecast_block(state, X, out)
    else:
        linear.forecast_block(state.table, state.size[linear.FACTOR], full_rows(X), out)


@chosen_by_type(say)
def _say(state: Any, X: Any, constants: Any, out: Any) -> Any:
    kind = constants.instance_class
    if kind is aioli.AIOLIConstants:
        return lambda state, X, constants, out: aioli.forecast_block(state, X, constants, out)
    if kind is multiclass.MulticlassConstants:
        return lambda state, X, constants, out: folklore_loop.forecast_block(state, X, constants, out)
    if kind is vovk.VovkConstants:
        return lambda state, X, constants, out: vovk.forecast_block(state, X, out)
    return lambda state, X, constants, out: linear.forecast_block(
        state.table, state.size[linear.FACTOR], compressed(X), out
    )


@kernel
def route(
    stack: Any, groups: Groups, first: int, last: int, X: Array, Y: Array, weight: Array, constants: Any, out: Array
) -> None:
    """Play the groups from `first` to `last`, each as one block."""
    order, numbers, bounds = groups
    begin, n = bounds[first], bounds[last] - bounds[first]
    if n == 0:
        return
    mine = order[begin : begin + n]
    x, y = np.empty((n, X.shape[1])), np.empty((n, *Y.shape[1:]))
    w, said = np.empty(n), np.empty((n, *out.shape[1:]))
    gather(X, Y, weight, mine, x, y, w)
    for g in range(first, last):
        if g + 1 < last:
            fetch(stack, numbers[g + 1])
        a, b = bounds[g] - begin, bounds[g + 1] - begin
        play(state_of(stack, numbers[g]), x[a:b], y[a:b], w[a:b], constants, said[a:b])
    scatter(said, mine, out)


@kernel
def gather(X: Array, Y: Array, weight: Array, order: NDArray[np.int64], x: Array, y: Array, w: Array) -> None:
    """Copy rows, targets and weights in the given order. (All at once, so that memory is fetched ahead.)"""
    Y_lines, y_lines = lines(Y), lines(y)
    for i in range(order.size):
        t, soon = order[i], order[min(i + AHEAD, order.size - 1)]
        prefetch(X, soon)
        prefetch(Y, soon)
        prefetch(weight, soon)
        copy_line(X, t, x, i)
        copy_line(Y_lines, t, y_lines, i)
        w[i] = weight[t]


@kernel
def scatter(said: Array, order: NDArray[np.int64], out: Array) -> None:
    """Copy forecasts to the places of their rows."""
    said_lines, out_lines = lines(said), lines(out)
    for i in range(order.size):
        prefetch(out, order[min(i + AHEAD, order.size - 1)])
        copy_line(said_lines, i, out_lines, order[i])


@kernel
def lines(array: Array) -> Array:
    """An array of numbers, or of lines of numbers, as lines."""
    return array.reshape(array.shape[0], array.size // array.shape[0])


@inlined_kernel
def copy_line(source: Array, i: int, target: Array, j: int) -> None:
    """Copy line i of one array to line j of another. (As an assignment of slices it takes ten times as long.)"""
    for column in range(source.shape[1]):
        target[j, column] = source[i, column]


@kernel
def play_pool(
    pool: Any,
    stack: Any,
    last_rows: NDArray[np.int64],
    numbers: NDArray[np.int64],
    X: Array,
    Y: Array,
    weight: Array,
    constants: Any,
    out: Array,
) -> None:
    """Learn all rows with one learner, and start each learner without rows from its state before the first of them."""
    at = 0
    for t in range(numbers.size):
        if last_rows[numbers[t]] == 0:
            if t > at:
                play(pool, X[at:t], Y[at:t], weight[at:t], constants, out[at:t])
            put(stack, numbers[t], pool)
            last_rows[numbers[t]] = 1
            at = t
    play(pool, X[at:], Y[at:], weight[at:], constants, out[at:])


@kernel
def play_each(
    stack: Any, numbers: NDArray[np.int64], X: Array, Y: Array, weight: Array, constants: Any, out: Array
) -> None:
    """Play the rows one by one."""
    for t in range(numbers.size):
        a, b = t, t + 1
        play(state_of(stack, numbers[t]), X[a:b], Y[a:b], weight[a:b], constants, out[a:b])


@kernel
def forecast_each(stack: Any, start: Any, numbers: NDArray[np.int64], X: Array, constants: Any, out: Array) -> None:
    """The forecasts of all rows; those of number -1 by the state `start`."""
    for t in range(numbers.size):
        soon = numbers[min(t + 2, numbers.size - 1)]
        if soon >= 0:
            fetch(stack, soon)
        if numbers[t] < 0:
            say(start, X[t : t + 1], constants, out[t : t + 1])
        else:
            say(state_of(stack, numbers[t]), X[t : t + 1], constants, out[t : t + 1])
