r"""Splines of running ranks: rows on which a linear member learns a sum of functions of one column each.

The rank u of a value is the share of the earlier values of its column that are smaller, ties and the value itself
counting half: :math:`0 < u < 1`. It does not depend on the unit of the column, nor on any increasing function of it.
The earlier values are a sorted sample of `SAMPLE` of them: value c replaces one of the sample with probability
SAMPLE/c, which a hash of c decides, so a rank is a function of the rows so far.

A function of u is a sum of hats. Level l has :math:`2^{l-1}` of them, of width :math:`2^{1-l}`, side by side,

.. math:: h_{lk}(u) = \max(0,\; 1 - |2^l u - 2k - 1|), \qquad 0 \le k < 2^{l-1},

so that levels 1 to L span the functions that are linear between the multiples of :math:`2^{-L}` and 0 at 0 and 1. The
hat of level 1 is lowered by 1, so that all are 0 for the median: a column that never changed gives zeros, and so does a
missing value, which counts as the median. A spline row has, in this order, the rescaled row, the hats of every column
of numbers (levels in order), and the intercept. With fewer levels the row is shorter, and the remaining weights keep
their meaning.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from regretless.core.files import state_checks
from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.jit import apart_kernel, kernel, merged_kernel
from regretless.core.types import Array
from regretless.learners.logistic.hashing import FIRST, HALF, SECOND, THIRD
from regretless.learners.logistic.scaling import LARGEST

SAMPLE = 128  # earlier values per column: ranks have a standard error of at most 0.045


class Ranks(NamedTuple):
    """What ranks are computed from."""

    samples: Array  # (columns of numbers, SAMPLE), the first min(count, SAMPLE) of each sorted
    counts: Array  # (d,) of the values learned, per column of the table
    numbers: NDArray[np.int64]  # the columns of the table that hold numbers
    levels: int


def width(n_columns: int, n_numbers: int, levels: int, intercept: bool) -> int:
    """The number of columns of a spline row."""
    return n_columns + (2**levels - 1) * n_numbers + intercept


@kernel
def spline_rows(ranks: Ranks, X: Array, weight: Array, rows: Array, out: Array) -> None:
    """Write the spline rows of a block, given as it is, X, and rescaled. Rows of weight > 0 enter the samples."""
    ranks, X, rows, out = borrowed(ranks), borrowed(X), borrowed(rows), borrowed(out)
    own_places = np.empty(ranks.numbers.size, np.int64)
    places = borrowed(own_places)
    for t in range(X.shape[0]):
        spline_row(ranks, X, t, rows, out, places)
        if weight[t] != 0.0:
            enter_row(ranks, X, t, places)
    keep(own_places)


@kernel
def spline_row(ranks: Ranks, X: Array, t: int, rows: Array, out: Array, places: NDArray[np.int64]) -> None:
    """Write one spline row; `places` gets how many values of each sample are smaller."""
    ranks, X, rows, out, places = borrowed(ranks), borrowed(X), borrowed(rows), borrowed(out), borrowed(places)
    d, s, line = X.shape[1], places.size, out[t]
    for j in range(d):
        line[j] = rows[t, j]
    for j in range(d, rows.shape[1]):
        line[line.size - 1] = rows[t, j]
    u = line[d : d + s]  # the ranks, until the hats of level 1 take their place
    find_places(ranks, X, t, places)
    if find_ranks(ranks, X, t, places, u):
        find_ranks_of_ties(ranks, X, t, places, u)
    for level in range(ranks.levels - 1, 0, -1):
        hats = 1 << level
        write_hats(u, hats, line[d + (hats - 1) * s : d + (2 * hats - 1) * s])
    lower(u)


@apart_kernel
def find_places(ranks: Ranks, X: Array, t: int, places: NDArray[np.int64]) -> None:
    """How many values of each sample are below those of row t; 0 for missing values."""
    samples, counts, numbers, _ = ranks
    for i in range(places.size):
        x, count = X[t, numbers[i]], counts[numbers[i]]
        # a known size makes it straight code: a sixth of the time of the search
        if count >= SAMPLE:
            places[i] = number_below(samples, i, SAMPLE, x)
        else:
            places[i] = number_below(samples, i, int(count), x)


@apart_kernel
def find_ranks(ranks: Ranks, X: Array, t: int, places: NDArray[np.int64], u: Array) -> int:
    """The ranks of values that differ from those of the samples, NaN if missing; returns how many do not.

    Ranks and hats are computed for all columns in turn, without branches: that takes a third of the time of one column
    after another.
    """
    samples, counts, numbers, _ = ranks
    ties = 0
    for i in range(places.size):
        x, below, held = X[t, numbers[i]], places[i], min(counts[numbers[i]], SAMPLE)
        u[i] = (below + below + 1.0) / (2.0 * held + 2.0) if x == x else x
        ties += samples[i, min(below, SAMPLE - 1)] == x
    return ties


@kernel
def find_ranks_of_ties(ranks: Ranks, X: Array, t: int, places: NDArray[np.int64], u: Array) -> None:
    """The ranks of values that samples have."""
    samples, counts, numbers, _ = ranks
    for i in range(places.size):
        x, below, held = X[t, numbers[i]], places[i], int(min(counts[numbers[i]], SAMPLE))
        if below < held and samples[i, below] == x:
            upto = number_upto(samples, i, SAMPLE, x) if held == SAMPLE else number_upto(samples, i, held, x)
            u[i] = (below + upto + 1.0) / (2.0 * held + 2.0)


@kernel
def enter_row(ranks: Ranks, X: Array, t: int, places: NDArray[np.int64]) -> None:
    """The values of a row, whose places `spline_row` has found, enter the samples."""
    samples, counts, numbers, _ = ranks
    known, gone = -1.0, 0
    for i in range(numbers.size):
        x, count = X[t, numbers[i]], counts[numbers[i]]
        if math.isnan(x):
            continue
        if count != known:  # most columns have had as many values
            known, gone = count, place_of(count)
        counts[numbers[i]] = count + 1.0
        if gone < SAMPLE:
            enter(samples, i, gone, places[i], x)


@merged_kernel
def number_below(samples: Array, i: int, held: int, x: float) -> int:
    """How many values of a sample are below x, with products in place of branches on x, which none can predict."""
    low, left = 0, held
    while left > 1:
        half = left // 2
        low += half * int(samples[i, low + half - 1] < x)
        left -= half
    return low + int(samples[i, low] < x) if left == 1 else low


@merged_kernel
def number_upto(samples: Array, i: int, held: int, x: float) -> int:
    """How many values of a sample are not above x."""
    low, left = 0, held
    while left > 1:
        half = left // 2
        low += half * int(samples[i, low + half - 1] <= x)
        left -= half
    return low + int(samples[i, low] <= x) if left == 1 else low


@apart_kernel
def write_hats(u: Array, hats: int, out: Array) -> None:
    """Write the hats of one level for ranks u: each hat of all columns together. Missing values have zeros."""
    for k in range(hats):
        for i in range(u.size):
            inside = (u[i] * hats >= k) & (u[i] * hats < k + 1)
            out[k * u.size + i] = 1.0 - abs(2.0 * hats * u[i] - 2.0 * k - 1.0) if inside else 0.0


@kernel
def lower(u: Array) -> None:
    """Replace ranks by the one hat of level 1, less 1."""
    for i in range(u.size):
        u[i] = (1.0 - abs(2.0 * u[i] - 1.0)) - 1.0 if u[i] == u[i] else 0.0


@kernel
def place_of(count: float) -> int:
    """The place in a sample that value number `count` + 1 takes; SAMPLE or more if it takes none."""
    gone = int(count)
    return gone if gone < SAMPLE else int(chance(gone + 1) * (count + 1.0))


@kernel
def enter(samples: Array, i: int, gone: int, below: int, x: float) -> None:
    """Insert a value into a sample at `below`, instead of the one at `gone`."""
    if gone < below:
        for a in range(gone, below - 1):
            samples[i, a] = samples[i, a + 1]
        samples[i, below - 1] = x
    else:
        for a in range(gone, below, -1):
            samples[i, a] = samples[i, a - 1]
        samples[i, below] = x


@kernel
def chance(n: int) -> float:
    """A number in [0, 1) that looks random, from a positive integer, by products of less than 63 bits."""
    found = n & HALF
    for factor in (FIRST, SECOND, THIRD):
        found = (found * factor) & HALF
        found ^= found >> 15
    return found / (HALF + 1.0)


def check(samples: Array, counts: Array) -> None:
    """Refuse samples that no columns with so many values have."""
    state_checks.within("samples", samples, -LARGEST, LARGEST)
    held = np.arange(SAMPLE) < counts[:, None]
    state_checks.require(not samples[~held].any(), "samples have more values than were learned")
    ordered = (samples[:, 1:] >= samples[:, :-1]) | ~held[:, 1:]
    state_checks.require(np.all(ordered), "samples are not sorted")
