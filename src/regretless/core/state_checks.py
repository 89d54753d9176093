"""Checks of states read from model files, before a kernel uses their arrays: values that a run can produce.

Shapes, types and finiteness are checked before (`persist.py`). Each check raises a ValueError that names the field.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.linalg import lapack

from regretless.core.deviations import LARGEST_SUM
from regretless.core.tally import EXCESS, LOSS, ROWS, SCALE, TALLIES, UNEVEN, WIDEST
from regretless.core.types import Array
from regretless.core.validate import HEAVIEST

LARGEST_COUNT = 2.0**53  # floats represent all smaller integers
LARGEST_SCORE = 1e306  # bound on the score of a row: sums of several scores are still finite
LARGEST_SQUARED = 1e153  # bound on numbers that are squared
LARGEST = 1e200  # bound on numbers that are summed
AT_ONCE = 256  # rows of a matrix per step
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


def tally(found: Array, name: str = "tally") -> None:
    """The sums of `regretless.core.tally.record`."""
    rows, size = float(found[ROWS]), float(found[WIDEST])
    whole(f"{name}, rows", rows)
    whole(f"{name}, rows with a weight other than 1", found[UNEVEN], rows)
    within(f"{name}, losses", found[[LOSS, EXCESS]], -math.inf, math.inf)
    within(f"{name}, the largest row", size, 0.0, math.inf)
    heaviest = HEAVIEST if found[UNEVEN] else 1.0
    square = size * size
    within(f"{name}, the largest scale", found[SCALE], square * (1 - ROUNDING), square * heaviest * (1 + ROUNDING))
    require(rows or not found[:TALLIES].any(), f"{name} has nonzero sums without rows")


def covariance(name: str, P: Array, first: float | Array) -> None:
    """Matrices between 0 and `first` times the identity, their initial value."""
    if P.size == 0:
        return
    rounding = 1e-3 if P.dtype == np.float32 else ROUNDING
    size = P.shape[-1]
    for matrix, start in zip(P.reshape(-1, size, size), np.broadcast_to(first, P.shape[:-2]).ravel(), strict=True):
        within(name, [matrix.min(), matrix.max()], -start * (1 + rounding), start * (1 + rounding))
        scaled = matrix / np.float64(start)
        for i in range(0, size, AT_ONCE):  # in steps: the matrix may take most of the memory
            rows = slice(i, i + AT_ONCE)
            require(np.abs(scaled[rows] - scaled[:, rows].T).max() <= rounding, f"{name} is not symmetric")
        scaled.flat[:: size + 1] += rounding
        _, failed = lapack.dpotrf(scaled.T, lower=True, overwrite_a=True)
        require(not failed, f"{name} is not positive definite")


def weights(name: str, w: Array, largest_row: float, most: float = LARGEST_SCORE) -> None:
    """Weights for which the score of every accepted row is at most `most`."""
    size = float(np.max(np.abs(w), initial=0.0))
    norm = size * float(np.linalg.norm(w / size)) if size > 0.0 else 0.0
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
