r"""What rounding can do to a certificate, from a few sums that a game keeps beside the others (docs/rounding.md).

The certificate reads `excess` = losses suffered - minimum of the quadratics, and that minimum is added up row by row
from :math:`m = w \cdot x` and :math:`q = x^TPx`. Each row's rounding errors move A by at most a relative
:math:`\rho` and w, in the norm of A, by at most :math:`\rho_w |w|_A`. To first order in the unit roundoff u, with
errors of n rows adding up like :math:`\sqrt n` (Higham and Mary, 2019) and a safety factor of 16,

.. math:: \theta = 16\,(\sqrt n + J)\,\rho, \qquad
          |\delta\,excess| \le \theta D + 16\,(n + \sqrt n J)\, \rho_w \sqrt{E D}
          + u\,(n\,|excess| + 16 L + 16 E),

D the sum of :math:`|w_{t+1} - w_t|_A^2`, E a bound on :math:`|w|_A^2` and L the losses. With N weights and
:math:`\tau = \sum_i P_{ii}A_{ii} \le N + MASS`:
:math:`\rho = u\sqrt N\,\tau` for P, :math:`u\sqrt N\sqrt{N\tau}` for its root, and :math:`\rho_w = u\sqrt{N\tau}`. J is
0 for P; a step of the root that multiplies A along x by up to `GREATEST_PART` has an error larger by the root of that,
and there are at most :math:`N\ln(1 + MASS/N) / \ln` `GREATEST_PART` of them, because each multiplies det A as much.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import lapack

from noregret._jit import inlined_kernel, kernel
from noregret._types import Array
from noregret.second_order.roots import GREATEST_PART, take_root
from noregret.tally import EXCESS, LOSS, ROWS, TALLIES

# MASS = (trace of A) / lam - N, which bounds the condition of A; SHIFT bounds the sum of |step of w|^2 in A's norm;
# ENERGY + |excess| bounds |w|^2 in that norm and the terms that excess is the sum of; ROOT is 1 once P's array holds a
# root of P.
MASS, SHIFT, ENERGY, ROOT = range(TALLIES, TALLIES + 4)
SUMS = TALLIES + 4

# P itself is kept up to this mass, in double and in single precision.
FULL, FULL_IN_SINGLE = 1e7, 1e5
SAFETY = 16.0
MOST_UNSURE = 1e-3  # the largest theta at which anything is promised
MOST_LOST = 1.0  # the most that rounding of the sums themselves may come to


@kernel
def most_mass(P: Array) -> float:
    """The mass up to which P itself is kept."""
    return FULL if P.itemsize == 8 else FULL_IN_SINGLE


@inlined_kernel
def charge(tally: Array, mass: float, shift: float, energy: float) -> None:
    """Count what a row adds to the sums."""
    tally[MASS] += mass
    tally[SHIFT] += shift
    tally[ENERGY] += energy


@kernel
def begin_root(P: Array, tally: Array) -> None:
    """From now on a root of P is kept."""
    take_root(P)
    tally[ROOT] = 1.0


def covariance(P: Array, tally: Array) -> Array:
    """P in double precision, whichever of P and its root the array holds."""
    P = P.astype(np.float64, copy=False)
    return P @ P.T if tally[ROOT] else P


def unsureness(P: Array, tally: Array) -> tuple[float, float]:
    """theta, and what w may be off by: how far rounding can have moved A and w, relatively."""
    size, mass = P.shape[0], float(tally[MASS])
    unit, rows = float(np.finfo(P.dtype).eps) / 2, float(tally[ROWS])
    if tally[ROOT]:
        tau = inflation(P)
        rho = unit * math.sqrt(size) * math.sqrt(size * tau)
        jumps = size * math.log1p(mass / size) / math.log(GREATEST_PART)
    else:
        tau = size + mass
        rho = unit * math.sqrt(size) * tau
        jumps = 0.0
    steps = math.sqrt(rows) + math.sqrt(GREATEST_PART * jumps)
    return SAFETY * steps * rho, SAFETY * math.sqrt(rows) * steps * unit * math.sqrt(size * tau)


def inflation(S: Array) -> float:
    """tau = sum of P_ii A_ii for P = S S^T: the sum of the variance inflation factors."""
    S = S.astype(np.float64, copy=False)
    scale = np.sqrt(np.einsum("ij,ij->i", S, S))
    if not scale.all():
        return math.inf
    factor, pivots, failed = lapack.dgetrf(S / scale[:, None])
    inverse, failed = lapack.dgetri(factor, pivots) if not failed else (factor, failed)
    return math.inf if failed else float(np.einsum("ij,ij->", inverse, inverse))


def has_digits(P: Array, tally: Array) -> bool:
    """Whether rounding is small enough for promises."""
    return unsureness(P, tally)[0] <= MOST_UNSURE and lost_in_sums(tally) <= MOST_LOST


def lost_in_sums(tally: Array) -> float:
    """How far rounding of the terms and of their sum can have moved `excess`."""
    excess = abs(float(tally[EXCESS]))
    terms = float(tally[ROWS]) * excess + 16.0 * (float(tally[LOSS]) + float(tally[ENERGY]))
    return float(np.finfo(np.float64).eps) / 2 * terms


def require_digits(P: Array, tally: Array, refusal: type[ValueError]) -> None:
    """Refuse a promise where rounding may be larger than it."""
    remedy = "Scale the features, for example to unit variance"
    theta, _ = unsureness(P, tally)
    if not theta <= MOST_UNSURE:
        raise refusal(
            f"A has grown to {float(tally[MASS]):.2g} times regularization in {int(tally[ROWS])} rows, along "
            f"directions that rounding cannot tell apart (relative error up to {theta:.1g}; nothing is promised beyond "
            f"{MOST_UNSURE:.0e}). {remedy}, drop columns that others determine, or raise regularization"
            + ('; precision="double" has more digits.' if P.dtype == np.float32 else ".")
        )
    lost = lost_in_sums(tally)
    if not lost <= MOST_LOST:
        raise refusal(
            f"forecasts and losses are so large that rounding may move their sum by {lost:.1g}; nothing is promised "
            f"beyond {MOST_LOST:g}. {remedy}."
        )


def allowance(P: Array, tally: Array, more: float = 0.0, merged: bool = False) -> float:
    """By how much `excess` may be off; `more` is to be added to SHIFT, which the steps of merging are not in."""
    theta, drift = unsureness(P, tally)
    energy = float(tally[ENERGY]) + abs(float(tally[EXCESS]))
    shift = float(tally[SHIFT]) + more + (energy if merged else 0.0)
    return theta * shift + drift * math.sqrt(energy * shift) + lost_in_sums(tally)
