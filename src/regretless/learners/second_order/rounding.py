r"""The effect of rounding on a certificate, from a few additional running sums (docs/rounding.md).

The certificate uses `excess` = total loss - minimum of the quadratics, and this minimum is summed row by row from
:math:`m = w \cdot x` and :math:`q = x^TPx`. Each row's rounding errors change A by at most a relative :math:`\rho`,
and w, in the norm of A, by at most :math:`\rho_w |w|_A`. To first order in the unit roundoff u, if the errors of rows
add up like independent random numbers (Higham and Mary, 2019), and with a safety factor of 16,

.. math:: \theta = 16\sqrt{\textstyle\sum_t \rho_t^2}, \qquad
          |\delta\,excess| \le \theta D + 16 \sqrt{n \textstyle\sum_t \rho_{w,t}^2}\sqrt{E D}
          + u\,(n\,|excess| + 16 L + 16 E),

D the sum of :math:`|w_{t+1} - w_t|_A^2`, E a bound on :math:`|w|_A^2` and L the losses. With N weights and
:math:`\tau = \sum_i P_{ii}A_{ii} \le N + MASS`, P before a step and A after it: :math:`\rho = u\sqrt N\,\tau` for P,
:math:`u\sqrt N\sqrt{N\tau}` for its root, and :math:`\rho_w = u\sqrt{N\tau}`. In single precision, where the same
numbers are stored with fewer digits, nothing is assumed of the errors of storage: see `of_storage`.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.files import state_checks
from regretless.core.kernels.jit import inlined_kernel, kernel, shared_kernel
from regretless.core.numbers.tally import EXCESS, LOSS, ROWS, TALLIES
from regretless.core.types import Array
from regretless.learners.second_order.algebra import dot
from regretless.learners.second_order.roots import take_root

# MASS = (trace of A) / lam - N bounds the condition number of A. SHIFT bounds the sum of |step of w|^2 in the norm of
# A. ENERGY + |excess| bounds |w|^2 in that norm, and the terms whose sum is excess. ROOT is 0 while P is stored, and
# then 1 + the mass at which a root of P replaced it. SPREAD is the sum of N tau over the rows since then.
MASS, SHIFT, ENERGY, ROOT, SPREAD = range(TALLIES, TALLIES + 5)
SUMS = TALLIES + 5

# P itself is stored up to this mass, in double and in single precision.
FULL, FULL_IN_SINGLE = 1e7, 1e5
SAFETY = 16.0
MOST_UNSURE = 1e-2  # the largest theta for which there are certificates and bounds
LARGEST = 1e300
MOST_LOST = 1.0  # the largest accepted rounding error of the sums


@kernel
def most_mass(P: Array) -> float:
    """The mass up to which P itself is stored."""
    return FULL if P.itemsize == 8 else FULL_IN_SINGLE


@inlined_kernel
def at_most(total: float) -> float:
    """The sum, limited to `LARGEST` so that it stays finite."""
    return total if abs(total) < LARGEST else LARGEST


@inlined_kernel
def charge(tally: Array, mass: float, shift: float, energy: float) -> None:
    """Add a row to the sums."""
    tally[MASS] = at_most(tally[MASS] + mass)
    tally[SHIFT] = at_most(tally[SHIFT] + shift)
    tally[ENERGY] = at_most(tally[ENERGY] + energy)


@shared_kernel
def begin_root(P: Array, tally: Array) -> None:
    """Replace P by a root of it."""
    take_root(P)
    tally[ROOT] = 1.0 + tally[MASS]
    until = 1.0
    while until < tally[ROWS] + 1.0:
        until *= 2.0
    tally[SPREAD] = at_most(tally[SPREAD] + (until - tally[ROWS]) * P.shape[0] * inflation(P))


@kernel
def watch(S: Array, tally: Array) -> None:
    """Add the spread of the following rows, if the number of rows is a power of two."""
    rows = int(tally[ROWS])
    if rows & (rows - 1) == 0:
        tally[SPREAD] = at_most(tally[SPREAD] + rows * S.shape[0] * inflation(S))


@inlined_kernel
def note_jump(tally: Array, size: int, growth: float, mass: float) -> None:
    """Count a row of the root form that multiplies A along itself by 1 + growth: tau may be the whole mass."""
    if growth > 1.0 and tally[ROOT] != 0.0:
        tally[SPREAD] = at_most(tally[SPREAD] + size * (size + tally[MASS] + mass))


@shared_kernel
def inflation(S: Array) -> float:
    """tau = sum of P_ii A_ii for P = S S^T: the sum of the variance inflation factors; at most `LARGEST`."""
    size = S.shape[0]
    M, scale = np.empty((size, size)), np.empty(size)
    for i in range(size):
        scale[i] = math.sqrt(dot(S[i], S[i]))
        if not scale[i] > 0.0:
            return LARGEST
        for j in range(size):
            M[i, j] = S[i, j] / scale[i]
    for k in range(size):  # the inverse in place, by elimination with pivots in the column
        pivot = k
        for i in range(k + 1, size):
            if abs(M[i, k]) > abs(M[pivot, k]):
                pivot = i
        if M[pivot, k] == 0.0:
            return LARGEST
        for j in range(size):
            M[k, j], M[pivot, j] = M[pivot, j], M[k, j]
        first = 1.0 / M[k, k]
        M[k, k] = 1.0
        for j in range(size):
            M[k, j] *= first
        for i in range(size):
            if i != k:
                factor = M[i, k]
                M[i, k] = 0.0
                for j in range(size):
                    M[i, j] -= factor * M[k, j]
    total = 0.0  # swapped columns do not change it
    for i in range(size):
        total += dot(M[i], M[i])
    return at_most(total)


SUM_FAULTS = (
    "",
    "the sums for rounding must not be negative",
    "the mass of A must be at most that of a stored P",
    "the mass at which a root was taken must be at most that of A",
)


@kernel
def sums_fault(tally: Array, full: float) -> int:
    """The first fault of the sums of this file, as a place in `SUM_FAULTS`; P is stored up to the mass `full`."""
    if not (tally[MASS] >= 0.0 and tally[SHIFT] >= 0.0 and tally[ENERGY] >= 0.0 and tally[SPREAD] >= 0.0):
        return 1
    if tally[ROOT] == 0.0:
        return 0 if tally[MASS] <= full else 2
    return 0 if 0.0 <= tally[ROOT] - 1.0 <= tally[MASS] else 3


@kernel
def is_root(S: Array, first: float) -> bool:
    """Whether a matrix can be a root of P, which starts as `first` times the identity."""
    for i in range(S.shape[0]):
        if not state_checks.length(S[i]) <= math.sqrt(first) * (1.0 + state_checks.ROUNDING):
            return False
    return True


def check_matrix(P: Array, tally: Array, first: float, name: str = "P") -> None:
    """Raise an error for a matrix and sums that no rows can produce if P starts as `first` times the identity."""
    if fault := sums_fault(tally, float(most_mass(P))):
        raise ValueError(f"tally, {SUM_FAULTS[fault]}")
    if not tally[ROOT]:
        state_checks.covariance(name, P, first)
        return
    state_checks.require(is_root(P, first), f"{name} is not a root of the inverse of A: its rows are too long")


def covariance(P: Array, tally: Array) -> Array:
    """P in double precision, from the array of P or of its root."""
    P = P.astype(np.float64, copy=False)
    return P @ P.T if tally[ROOT] else P


def unsureness(P: Array, tally: Array, rank: int = 1) -> tuple[float, float]:
    """Bounds on the relative errors of A (theta) and of w by rounding, for updates of that rank."""
    size, rows = P.shape[0], float(tally[ROWS])
    unit = SAFETY * float(np.finfo(np.float64).eps) / 2
    tau = size + (float(tally[ROOT]) - 1.0 if tally[ROOT] else float(tally[MASS]))  # while P itself was stored
    theta = unit * math.sqrt(size) * (math.sqrt(rows) * tau + math.sqrt(float(tally[SPREAD])))
    drift = unit * (rows * math.sqrt(size * tau) + math.sqrt(rows * float(tally[SPREAD])))
    return theta + of_storage(P, tally, rank), drift


def of_storage(P: Array, tally: Array, rank: int) -> float:
    """A bound on the relative error of A where P is computed in double and stored in single precision, at the worst.

    Errors of a relative u per entry, all of the worst sign, change A by u N tau at most. A row stores P as often as the
    rank of its update at most. The sum is at most 1e-2 where it is used: 1.01 covers what is not of first order.
    """
    if P.dtype != np.float32:
        return 0.0
    size, rows = P.shape[0], float(tally[ROWS])
    tau = size + float(tally[MASS])
    return 1.01 * float(np.finfo(np.float32).eps) / 2 * rank * size * (rows + 1.0) * tau


def has_digits(P: Array, tally: Array) -> bool:
    """Whether rounding is small enough for certificates and bounds."""
    return unsureness(P, tally)[0] <= MOST_UNSURE and lost_in_sums(tally) <= MOST_LOST


def lost_in_sums(tally: Array) -> float:
    """A bound on the error of `excess` from rounding of its terms and of their sum."""
    excess = abs(float(tally[EXCESS]))
    terms = float(tally[ROWS]) * excess + 16.0 * (float(tally[LOSS]) + float(tally[ENERGY]))
    return float(np.finfo(np.float64).eps) / 2 * terms


def require_digits(P: Array, tally: Array, refusal: type[ValueError], rank: int = 1) -> None:
    """Raise `refusal` if rounding errors are too large for a certificate or a bound."""
    remedy = "Scale the features, for example to unit variance"
    theta, _ = unsureness(P, tally, rank)
    if not theta <= MOST_UNSURE:
        raise refusal(
            f"A has grown to {float(tally[MASS]):.2g} times regularization in {int(tally[ROWS])} rows, along "
            f"directions that rounding cannot separate (relative error up to {theta:.1g}; nothing is guaranteed beyond "
            f"{MOST_UNSURE:.0e}). {remedy}, drop columns that depend on others, or raise regularization"
            + ('; precision="double" has more digits.' if P.dtype == np.float32 else ".")
        )
    lost = lost_in_sums(tally)
    if not lost <= MOST_LOST:
        raise refusal(
            f"forecasts and losses are so large that rounding may change their sum by {lost:.1g}; nothing is "
            f"guaranteed beyond {MOST_LOST:g}. {remedy}."
        )


def allowance(P: Array, tally: Array, more: float = 0.0, merged: bool = False, rank: int = 1) -> float:
    """A bound on the error of `excess`. `more` is added to SHIFT, which does not include the steps of merging."""
    theta, drift = unsureness(P, tally, rank)
    energy = float(tally[ENERGY]) + abs(float(tally[EXCESS]))
    shift = float(tally[SHIFT]) + more + (energy if merged else 0.0)
    return theta * shift + drift * math.sqrt(energy * shift) + lost_in_sums(tally)
