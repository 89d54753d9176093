"""Input checks. Every error names the row, the column, the value and a remedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from regretless.core.errors import BadRow, NoCertificate
from regretless.core.kernels.jit import summing_kernel
from regretless.core.rows.inputs import as_floats, column
from regretless.core.types import Array

Number = TypeVar("Number", bound=np.generic)

# Above this |x|^2 / regularization the products of the second-order learners overflow.
LARGEST_SCALE = 1e305
LARGEST_TARGET = 1e150  # its square is finite
# A heavier row would leave no precision for the others.
HEAVIEST = 1e12
LARGEST_WHOLE = 2**62  # compiled code counts in 64 bits
SLACK = 1 + 1e-12  # a number that exceeds its bound by no more than rounding is within it


def reach(regularization: float) -> float:
    """The largest |x| sqrt(weight) for which the arithmetic does not overflow."""
    return math.sqrt(LARGEST_SCALE * min(regularization, 1.0))


def rows(X: Array, weight: Array, bound: float, reach: float, names: Sequence[str] | None, first: int = 0) -> None:
    """Refuse NaN, infinity, rows beyond the declared `bound`, and rows whose squares overflow.

    Rows are numbered from `first`. Valid rows take one pass: a NaN or an infinity shows in the largest square.
    """
    square = largest_square(X)
    heaviest = max(1.0, float(weight.max()))
    if square <= bound * bound and square * heaviest <= reach * reach:
        return
    weight = np.broadcast_to(weight, X.shape[0])
    _finite(X, names, first)
    top = np.abs(X).max(axis=1)
    norms = top * np.sqrt(((X / np.where(top > 0, top, 1.0)[:, None]) ** 2).sum(axis=1))  # without overflow
    too_long = beyond(norms, bound)
    if too_long.any():
        i = int(np.argmax(too_long))
        raise BadRow(
            f"row {first + i}: |x| = {norms[i]:.6g} is beyond feature_bound = {bound:.6g}. Scale the row down, raise "
            "feature_bound, or leave it None so that each row uses its own norm. Nothing was learned from this call."
        )
    absurd = ~(norms * np.sqrt(np.maximum(weight, 1.0)) <= reach)
    if absurd.any():
        i = int(np.argmax(absurd))
        j = int(np.argmax(np.abs(X[i])))
        raise BadRow(
            f"row {first + i}, {column(names, j)}: {X[i, j]:.6g} (row norm {norms[i]:.6g}, weight "
            f"{weight[i]:.6g}) is too large for "
            "floating point arithmetic. Scale the features, for example to unit variance. Nothing "
            "was learned from this call."
        )


@summing_kernel
def largest_square(X: Array) -> float:
    """The largest |x|^2 of the rows; NaN if there is one."""
    largest = 0.0
    for t in range(X.shape[0]):
        square = 0.0
        for j in range(X.shape[1]):
            square += X[t, j] * X[t, j]
        if square != square:
            return square
        largest = max(largest, square)
    return largest


def _finite(X: Array, names: Sequence[str] | None, first: int) -> None:
    finite = np.isfinite(X)
    if finite.all():
        return
    i, j = np.argwhere(~finite)[0]
    value = "NaN" if math.isnan(X[i, j]) else f"{X[i, j]}"
    raise BadRow(
        f"row {first + i}, {column(names, j)}: {value}. Input contains NaN or inf: drop the row, or fill the value in "
        "(for example with the column's mean) before learning. Nothing was learned from this call."
    )


def weights(sample_weight: Any, n: int) -> Array:
    """One finite weight >= 0 per row."""
    if sample_weight is None:
        return np.ones(n)
    weight = as_floats(sample_weight, lambda at: f"row {at[0]}: sample_weight" if at else "sample_weight")
    if weight.ndim == 0:
        weight = np.full(n, float(weight))
    if weight.shape != (n,):
        raise ValueError(f"sample_weight has shape {weight.shape}; pass one weight for each of the {n} rows.")
    bad = ~((weight >= 0) & (weight <= HEAVIEST))
    if bad.any():
        i = int(np.argmax(bad))
        raise BadRow(
            f"row {i}: sample_weight {weight[i]}. Weights are numbers from 0 (the row is ignored) to "
            f"{HEAVIEST:.0e}: divide all weights by one number."
        )
    return writable(weight)


def one_per_row(y: Any, n: int) -> None:
    """Refuse labels whose number is not n. (scikit-learn looks for packages of data frames first, which takes time.)"""
    if (isinstance(y, list | tuple) and len(y) == n) or (isinstance(y, np.ndarray) and y.shape[:1] == (n,)):
        return
    from regretless.core.scikit_learn import check_consistent_length

    check_consistent_length(np.empty((n, 0)), y)


def numbers(y: Any, largest: float) -> Array:
    """One finite target per row, below `largest` in absolute value."""
    targets = as_floats(y, lambda at: f"row {at[0]}: y" if at else "y")
    if targets.ndim == 2 and targets.shape[1] == 1:
        from regretless.core.scikit_learn import column_or_1d

        targets = column_or_1d(targets, warn=True)
    if targets.ndim != 1:
        raise ValueError(f"y has shape {targets.shape}: pass one number per row.")
    bad = ~(np.abs(targets) < largest)
    if bad.any():
        i = int(np.argmax(bad))
        raise BadRow(f"row {i}: y = {targets[i]}. Targets are finite numbers (not NaN or inf) below {largest:.0e}.")
    return writable(targets)


def n_outputs(y: Any) -> int:
    """The numbers per target of regression targets (n,) or (n, m)."""
    shape = np.asarray(y).shape
    return max(shape[1], 1) if len(shape) == 2 else 1


def vectors(y: Any, width: int, largest: float) -> Array:
    """One vector of `width` finite numbers per row, below `largest` in absolute value."""
    targets = as_floats(y, lambda at: f"row {at[0]}: y" if at else "y")
    if targets.ndim != 2 or targets.shape[1] != width:
        raise ValueError(f"y has shape {targets.shape}: this learner expects {width} numbers per row.")
    bad = ~(np.abs(targets) < largest)
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise BadRow(
            f"row {i}, target column {j}: {targets[i, j]}. Targets are finite numbers (not NaN or inf) below "
            f"{largest:.0e}."
        )
    return writable(np.ascontiguousarray(targets))


def label_distributions(y: Array, n_classes: int | None) -> None:
    """Soft labels: each row a distribution over the classes."""
    if n_classes is not None and y.shape[1] != n_classes:
        raise BadRow(
            f"y has {y.shape[1]} columns, but this learner has {n_classes} classes: pass one probability per class."
        )
    bad = ~(np.isfinite(y) & (y >= 0))
    if bad.any():
        i, j = np.argwhere(bad)[0]
        raise BadRow(f"row {i}, label column {j}: {y[i, j]}. Label probabilities are finite and >= 0.")
    total = y.sum(axis=1)
    off = np.abs(total - 1) > 1e-8
    if off.any():
        i = int(np.argmax(off))
        raise BadRow(f"row {i}: label probabilities sum to {total[i]:.6g}. Divide each row of y by its sum.")


def writable(array: NDArray[Number]) -> NDArray[Number]:
    """The array itself, or a copy if it is read-only: kernels are compiled for writable C-order arrays only."""
    array = np.ascontiguousarray(array)
    return array if array.flags.writeable else array.copy()


def whole(name: str, value: Any, least: int) -> int:
    """Refuse a value that is not an integer >= `least`."""
    if isinstance(value, int | np.integer) and not isinstance(value, bool) and least <= value <= LARGEST_WHOLE:
        return int(value)
    raise ValueError(f"{name}={value!r} must be an integer >= {least} (and at most {LARGEST_WHOLE}).")


def positive(name: str, value: Any, *, zero: bool = False) -> float:
    """Refuse a value that is not a finite number > 0 (or >= 0)."""
    if (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and math.isfinite(value)
        and (value > 0 or (zero and value == 0))
    ):
        return float(value)
    raise ValueError(f"{name}={value!r} must be a finite number {'>=' if zero else '>'} 0.")


def beyond(values: Any, bound: float) -> Any:
    """Whether a number (or each entry of an array) exceeds the bound by more than rounding."""
    return values > bound * SLACK


def comparator_norm(value: Any, domain: object, largest: float, refusal: type[ValueError] = NoCertificate) -> float:
    """The norm of a comparator in `domain`: a finite number from 0 to `largest`; None means `largest`."""
    if value is None:
        return largest
    norm = positive("comparator_norm", value, zero=True)
    if beyond(norm, largest):
        raise refusal(
            f"comparator_norm={norm:.4g} is outside {domain}: give at most {largest:.4g}, or make the set larger."
        )
    return norm
