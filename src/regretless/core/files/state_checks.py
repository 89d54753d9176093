"""Checks of states read from model files, before a kernel uses their arrays: values that a run can produce.

Shapes, types and finiteness are checked before (`persist.py`). Each check raises a ValueError that names the field.
Those of small states are compiled, because one process may read a million of them: a function `..._fault` returns 0, or
the number of the check that failed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import lapack

from regretless.core.kernels.jit import kernel
from regretless.core.numbers.deviations import LARGEST_SUM
from regretless.core.numbers.tally import EXCESS, LOSS, ROWS, SCALE, TALLIES, UNEVEN, WIDEST
from regretless.core.rows.validate import HEAVIEST
from regretless.core.types import Array

LARGEST_COUNT = 2.0**53  # floats represent all smaller integers
LARGEST_SCORE = 1e306  # bound on the score of a row: sums of several scores are still finite
LARGEST_SQUARED = 1e153  # bound on numbers that are squared
LARGEST = 1e200  # bound on numbers that are summed
AT_ONCE = 256  # rows of a matrix per step
MOST_COMPILED = 64  # rows of a matrix that is factored by compiled code; LAPACK is faster beyond
ROUNDING = 1e-6  # relative tolerance for rounding errors


def require(possible: Any, what: str) -> None:
    """Raise ValueError unless the condition holds."""
    if not possible:
        raise ValueError(what)


def whole(name: str, counts: Any, most: float = LARGEST_COUNT) -> None:
    """Counts: integers from 0 to `most`."""
    counts = np.asarray(counts)
    ok = (counts >= 0) & (counts <= most) & (counts == np.floor(counts))
    require(np.all(ok), f"{name} must be integers from 0 to {most:.0f}")


def within(name: str, values: Any, low: float, high: float) -> None:
    """Numbers from `low` to `high`."""
    values = np.asarray(values)
    require(np.all((values >= low) & (values <= high)), f"{name} must be between {low:.6g} and {high:.6g}")


TALLY_FAULTS = (
    "",
    f"rows must be integers from 0 to {LARGEST_COUNT:.0f}",
    "rows with a weight other than 1 must be integers from 0 to the number of rows",
    "losses must be numbers",
    "the largest row must not be negative",
    "the largest scale must be that of the largest row",
    "has nonzero sums without rows",
)


@kernel
def tally_fault(found: Array) -> int:
    """The first fault of a tally, as a place in `TALLY_FAULTS`."""
    rows, uneven, size = found[ROWS], found[UNEVEN], found[WIDEST]
    if not 0.0 <= rows <= LARGEST_COUNT or rows != math.floor(rows):
        return 1
    if not 0.0 <= uneven <= rows or uneven != math.floor(uneven):
        return 2
    if math.isnan(found[LOSS]) or math.isnan(found[EXCESS]):
        return 3
    if not size >= 0.0:
        return 4
    heaviest = HEAVIEST if uneven > 0.0 else 1.0
    if not size * size * (1.0 - ROUNDING) <= found[SCALE] <= size * size * heaviest * (1.0 + ROUNDING):
        return 5
    if rows == 0.0:
        for i in range(TALLIES):
            if found[i] != 0.0:
                return 6
    return 0


def tally(found: Array, name: str = "tally") -> None:
    """The sums of `regretless.core.numbers.tally.record`."""
    if fault := tally_fault(np.ascontiguousarray(found)):
        raise ValueError(f"{name}, {TALLY_FAULTS[fault]}")


MATRIX_FAULTS = ("", "has entries beyond its start, {start:.6g}", "is not symmetric", "is not positive definite")


@kernel
def matrix_fault(matrix: Array, start: float, rounding: float, scaled: Array) -> int:
    """The first fault of a matrix that began as `start` times the identity, as a place in `MATRIX_FAULTS`.

    `scaled` is overwritten by a factor of the matrix: it is positive definite if there is one.
    """
    size = matrix.shape[0]
    for i in range(size):
        for j in range(size):
            if not abs(matrix[i, j]) <= start * (1.0 + rounding):
                return 1
            scaled[i, j] = matrix[i, j] / start
    for i in range(size):
        for j in range(i):
            if not abs(scaled[i, j] - scaled[j, i]) <= rounding:
                return 2
    for j in range(size):
        for i in range(j, size):
            entry = scaled[i, j] + (rounding if i == j else 0.0)
            for k in range(j):
                entry -= scaled[i, k] * scaled[j, k]
            if i > j:
                scaled[i, j] = entry / scaled[j, j]
            elif entry > 0.0:
                scaled[j, j] = math.sqrt(entry)
            else:
                return 3
    return 0


def rounding_of(P: Array) -> float:
    """The relative rounding errors of a matrix of this type."""
    return 1e-3 if P.dtype == np.float32 else ROUNDING


def covariance(name: str, P: Array, first: float | Array) -> None:
    """Matrices between 0 and `first` times the identity, their initial value."""
    if P.size == 0:
        return
    size = P.shape[-1]
    scaled = np.empty((size, size))
    for matrix, start in zip(P.reshape(-1, size, size), np.broadcast_to(first, P.shape[:-2]).ravel(), strict=True):
        find = matrix_fault if size <= MOST_COMPILED else _large_matrix_fault
        if fault := find(matrix, float(start), rounding_of(P), scaled):
            raise ValueError(f"{name} {MATRIX_FAULTS[fault].format(start=start)}")


def _large_matrix_fault(matrix: Array, start: float, rounding: float, scaled: Array) -> int:
    """`matrix_fault` by LAPACK."""
    size = len(matrix)
    if max(-matrix.min(), matrix.max()) > start * (1 + rounding):
        return 1
    np.divide(matrix, start, out=scaled)
    for i in range(0, size, AT_ONCE):  # in steps: the matrix may take most of the memory
        rows = slice(i, i + AT_ONCE)
        if np.abs(scaled[rows] - scaled[:, rows].T).max() > rounding:
            return 2
    scaled.flat[:: size + 1] += rounding
    _, failed = lapack.dpotrf(scaled.T, lower=True, overwrite_a=True)
    return 3 if failed else 0


@kernel
def length(w: Array) -> float:
    """The norm of a vector, without overflow."""
    size = 0.0
    for i in range(w.size):
        size = max(size, abs(w[i]))
    total = 0.0
    for i in range(w.size):
        total += (w[i] / size) ** 2 if size > 0.0 else 0.0
    return size * math.sqrt(total)


def weights(name: str, w: Array, largest_row: float, most: float = LARGEST_SCORE) -> None:
    """Weights for which the score of every accepted row is at most `most`."""
    norm = length(np.ascontiguousarray(w).reshape(-1))
    require(norm * largest_row <= most, f"{name} is so large that scores overflow")


def sums(name: str, values: Array) -> None:
    """Numbers that are summed and multiplied."""
    within(name, values, -LARGEST, LARGEST)


def log_weights(name: str, log_weight: Array, mixed: bool) -> None:
    """Logarithms of weights, which sum to 1 if they are `mixed`; otherwise the largest is about 1."""
    if log_weight.size == 0:
        return
    top = float(log_weight.max())
    total = top + math.log(float(np.exp(log_weight - top).sum()))
    off = abs(total) if mixed else max(top, -top - math.log(log_weight.size))
    require(off <= ROUNDING, f"{name} are not logarithms of weights")


def moments(name: str, found: Array, rows: float, largest: float) -> None:
    """Counts, means and sums of squared deviations of columns, (3, d), over at most `rows` rows."""
    count, mean, square = found
    whole(f"{name}, counts", count, rows)
    within(f"{name}, means", mean, -largest, largest)
    within(f"{name}, squares", square, -LARGEST_SUM, LARGEST_SUM)  # negative: tiny values, see deviations.py
    require(np.all(square / np.maximum(count, 1.0) <= 4.0 * largest * largest), f"{name} has squares without values")
