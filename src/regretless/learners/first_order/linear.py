r"""One row of a linear model, entry by entry.

Weights have shape (d, r): r = 1 for two classes (the margin of the second) and for regression, r = K for more classes.
They are stored in a table (d, m, r) next to everything else a learner keeps per feature, so that one entry of a row
reads adjacent memory. The cost per row is proportional to its number of entries. Operations on all weights, a
projection onto a ball or a decay, change one common factor instead: the weights are `size[FACTOR]` times the stored
ones, and `size[SQUARE]` is their squared norm.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from regretless.core.files import state_checks
from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import chosen_by_type, inlined_kernel, kernel, shared_kernel
from regretless.core.kernels.prefetch import prefetch
from regretless.core.numbers.tally import ROWS, TALLIES, record
from regretless.core.rows.compressed import Entries
from regretless.core.types import Array
from regretless.theory.losses import Oracle, slope_multiclass, value_and_slope, value_multiclass

Indices = NDArray[np.uint32]

# Three entries after those that all learners have: the largest weighted gradient, the sum of their squares, the sum of
# weights.
LARGEST, SQUARES, MASS = range(TALLIES, TALLIES + 3)
FIRST_ORDER_TALLIES = TALLIES + 3

WEIGHTS, GRADIENTS = range(2)  # of the middle axis of a table
FACTOR, SQUARE = range(2)
LEAST_SQUARE = (
    1e-280  # a row of smaller |x|^2, or |s|^2 or |g|^2, has a norm without correct digits: it changes no weight
)
LEAST_FACTOR = 1e-100
AHEAD = 64  # entries: how far ahead the lines of a table are fetched before they are needed
LEAST_FETCHED = 2**16  # numbers of a table that does not fit in the fastest caches
RECOUNT = 65_536  # rows after which the squared norm is recomputed, so that rounding does not accumulate


def check_size(size: Array, radius: float) -> None:
    """Refuse a factor or a squared norm that no weights in the ball have."""
    state_checks.require(0.0 < size[FACTOR] <= 1.0, "size: the factor of all weights is above 0 and at most 1")
    state_checks.within("size, the squared norm", size[SQUARE], 0.0, radius * radius * (1 + state_checks.ROUNDING))


@kernel
def scores(w: Array, indices: Indices, data: Array, first: int, last: int, z: Array) -> float:
    """z = W x for the entries `first` to `last`; returns |x|^2."""
    square = 0.0
    if z.size == 1:  # the same sum, in a register
        score = 0.0
        for i in range(first, last):
            x = data[i]
            square += x * x
            score += x * w[indices[i], 0]
        z[0] = score
        return square
    z[:] = 0.0
    for i in range(first, last):
        x = data[i]
        square += x * x
        for k in range(z.size):
            z[k] += x * w[indices[i], k]
    return square


@inlined_kernel
def score(
    table: Array, indices: Indices, data: Array, first: np.uint64, last: np.uint64, ahead: np.uint64
) -> tuple[float, float]:
    """`scores` for one score per row: w.x and |x|^2. Fetches the lines of the entries `ahead`, also of later rows."""
    square, z, final = 0.0, 0.0, np.uint64(max(indices.size - 1, 0))
    for i in range(first, last):
        x = data[i]
        square += x * x
        z += x * table[indices[i], WEIGHTS, 0]
        if ahead > 0:
            prefetch(table, indices[min(i + ahead, final)])
    return z, square


@kernel
def entries_ahead(table: Array) -> np.uint64:
    """How far ahead `score` fetches the lines of a table; 0 if it is small, so that this would only cost time."""
    return np.uint64(AHEAD if table.size >= LEAST_FETCHED else 0)


@kernel
def publish(z: Array, out: Array) -> None:
    """Write scores as forecasts: unchanged, or the margin of two classes as two logits."""
    if out.size == z.size:
        copy_line(z, out)
    else:
        out[0] = -0.5 * z[0]
        out[1] = 0.5 * z[0]


@inlined_kernel
def publish_margin(z: float, out: Array, t: int) -> None:
    """`publish` one score as the forecast of row t. (To count a view of the row would take longer than to write it.)"""
    if out.shape[1] == 1:
        out[t, 0] = z
    else:
        out[t, 0] = -0.5 * z
        out[t, 1] = 0.5 * z


def value_and_slope_of(loss: int | Oracle, z: float, y: float) -> tuple[float, float]:
    """The loss of one score under the target y, and its slope.

    Kernels choose between the two forms of a loss when they are compiled, so that named losses pay nothing.
    """
    return (loss.value(z, y), loss.slope(z, y)) if isinstance(loss, Oracle) else value_and_slope(loss, z, y)


@chosen_by_type(value_and_slope_of)
def _value_and_slope_of(loss: Any, z: Any, y: Any) -> Callable[..., tuple[float, float]]:
    if isinstance(loss, types.BaseTuple):
        return lambda loss, z, y: (loss.value(z, y), loss.slope(z, y))
    return lambda loss, z, y: value_and_slope(loss, z, y)


@kernel
def margin_loss(loss: int | Oracle, z: float, two: bool, first: float, second: float) -> tuple[float, float]:
    """The loss of one score, and its slope: the probabilities of two classes are given, or `first` is the target."""
    if not two:
        return value_and_slope_of(loss, z, first)
    if min(first, second) == 0.0:  # one class: without a branch that depends on which one
        found, its_slope = value_and_slope_of(loss, z, 1.0 if first == 0.0 else -1.0)
        return (first + second) * found, (first + second) * its_slope
    low, low_slope = value_and_slope_of(loss, z, -1.0)
    high, high_slope = value_and_slope_of(loss, z, 1.0)
    return first * low + second * high, first * low_slope + second * high_slope


def loss_by_code(loss: int, z: Array, y: Array, s: Array, scratch: Array) -> float:
    """`loss_and_slope` of a named loss."""
    if z.size == 1:
        total, s[0] = margin_loss(loss, z[0], y.size == 2, y[0], y[y.size - 1])
        return total
    s[:] = 0.0
    total = 0.0
    for k in range(y.size):
        if y[k] == 0.0:
            continue
        slope_multiclass(loss, z, k, scratch)
        for j in range(z.size):
            s[j] += y[k] * scratch[j]
        total += y[k] * value_multiclass(loss, z, k)
    return total


def loss_by_oracle(loss: Oracle, z: Array, y: Array, s: Array, scratch: Array) -> float:
    """`loss_and_slope` of a custom loss, which has one score."""
    total, s[0] = margin_loss(loss, z[0], y.size == 2, y[0], y[y.size - 1])
    return total


def loss_and_slope(loss: int | Oracle, z: Array, y: Array, s: Array, scratch: Array) -> float:
    """The loss of the scores z, and its slope in s: y is a number, or a distribution over the classes."""
    if isinstance(loss, Oracle):
        return loss_by_oracle(loss, z, y, s, scratch)
    return loss_by_code(loss, z, y, s, scratch)


@chosen_by_type(loss_and_slope)
def _compiled_loss_and_slope(loss: Any, z: Any, y: Any, s: Any, scratch: Any) -> Callable[..., float]:
    return loss_by_oracle if isinstance(loss, types.BaseTuple) else loss_by_code


@kernel
def product(a: Array, b: Array) -> float:
    """a . b, in order."""
    total = 0.0
    for k in range(a.size):
        total += a[k] * b[k]
    return total


@kernel
def move(w: Array, indices: Indices, data: Array, first: int, last: int, step: float, s: Array) -> None:
    """W += step s x^T."""
    if s.size == 1:
        slope = s[0]
        for i in range(first, last):
            w[indices[i], 0] += (step * data[i]) * slope
        return
    for i in range(first, last):
        x = step * data[i]
        for k in range(s.size):
            w[indices[i], k] += x * s[k]


@kernel
def count(tally: Array, weight: float, loss: float, excess: float, square: float, gradient: float) -> None:
    """Record a row and the norm of its weighted gradient."""
    record(tally, weight, weight * loss, excess, math.sqrt(square))
    tally[LARGEST] = max(tally[LARGEST], gradient)
    tally[SQUARES] += gradient * gradient
    tally[MASS] += weight


class Row(NamedTuple):
    """A row of compressed form: its entries are `first` to `last`, and |x|^2 is `square`."""

    first: int
    last: int
    square: float


class Step(NamedTuple):
    """One step of gradient descent: W <- keep W - length s x^T, then the projection onto the ball."""

    keep: float
    length: float
    radius: float  # infinite: no ball


@kernel
def descend(w: Array, size: Array, indices: Indices, data: Array, row: Row, z: Array, s: Array, step: Step) -> None:
    """Take the step for a row with scores z = W x and slopes s.

    The squared norm of the weights follows from z, so that only the weights of the row's own features are read.
    """
    keep, length, square = step.keep, step.length, row.square
    if size[SQUARE] > 0.0:
        size[FACTOR] *= keep
        size[SQUARE] *= keep * keep
    if size[FACTOR] < LEAST_FACTOR:
        w *= size[FACTOR]
        size[FACTOR] = 1.0
    slope2 = product(s, s)
    if min(square, min(slope2, slope2 * square)) >= LEAST_SQUARE:
        move(w, indices, data, row.first, row.last, -length / size[FACTOR], s)
        moved = length * math.sqrt(slope2 * square)
        size[SQUARE] = max(size[SQUARE] - 2.0 * length * keep * product(s, z) + moved * moved, 0.0)
    if size[SQUARE] > step.radius * step.radius:
        size[FACTOR] *= step.radius / math.sqrt(size[SQUARE])
        size[SQUARE] = step.radius * step.radius


@kernel
def recount(w: Array, size: Array, tally: Array, radius: float) -> None:
    """Every `RECOUNT` rows, independently of the blocks: recompute the squared norm from the weights."""
    if int(tally[ROWS]) % RECOUNT == 0:
        total = 0.0
        for j in range(w.shape[0]):
            for k in range(w.shape[1]):
                total += w[j, k] * w[j, k]
        size[SQUARE] = min(total * size[FACTOR] * size[FACTOR], radius * radius)


@kernel
def forecast_table(state: Any, rows: Entries, constants: Any, out: Array) -> None:
    """The forecasts of a learner whose weights are in its table."""
    forecast_block(state.table, 1.0, rows, out)


@kernel
def forecast_scaled(state: Any, rows: Entries, constants: Any, out: Array) -> None:
    """The forecasts of a learner whose weights are those in its table times a common factor."""
    forecast_block(state.table, state.size[FACTOR], rows, out)


@shared_kernel
def forecast_block(table: Array, factor: float, rows: Entries, out: Array) -> None:
    """The forecasts of a block of rows."""
    indptr, indices, data = rows
    w, ahead = table[:, WEIGHTS], entries_ahead(table)
    z = np.empty(w.shape[1])
    for t in range(indptr.size - 1):
        if z.size == 1:
            z[0], _ = score(table, indices, data, np.uint64(indptr[t]), np.uint64(indptr[t + 1]), ahead)
        else:
            scores(w, indices, data, indptr[t], indptr[t + 1], z)
        z *= factor
        publish(z, out[t])
