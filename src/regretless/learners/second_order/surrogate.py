r"""The sum of quadratics of every second-order learner (docs/architecture.md).

After each round the loss is replaced by a quadratic that lies below it. The sum of the quadratics is
:math:`w^T A w - 2 b^T w + const`. The state has :math:`P = A^{-1}` and the leader :math:`w = P b`, in reduced
coordinates: r = K - 1 rows of d numbers, because every gradient and Hessian of the softmax annihilates the
all-ones direction. For a row x, with :math:`I \otimes x` its r copies,

.. math:: V = P\,(I \otimes x), \qquad m = W x, \qquad Q = (I \otimes x)^T P\,(I \otimes x)

are all that a forecast needs, and an update is :math:`P \leftarrow P - U^T U` with r rows in U.

There is one pass over P per row. The rank-r downdate of round t is deferred: `fold` applies it while it computes the
product of round t+1, so that P is read and written once per row. `flush` applies the last downdate at the end of a
block. The arithmetic of each entry is the same, so results do not depend on the block length, to the bit.

`tally` has the running sums (tally.py, rounding.py). excess = total loss - min_V [lam |V|^2 + sum of the quadratics]:
the certificate without lam |W|^2. Once P has too few digits, its array holds a root of P (roots.py).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from regretless.core.files import state_checks
from regretless.core.kernels.borrow import borrowed
from regretless.core.kernels.jit import apart_kernel, inlined_kernel, kernel, merged_kernel, summing_kernel
from regretless.core.types import Array
from regretless.learners.second_order.algebra import (
    Work,
    add_identity_and_factor,
    congruence,
    divide_by_factor,
    dot,
    hessian_factor,
)
from regretless.learners.second_order.roots import direction, shrink
from regretless.learners.second_order.rounding import (
    ROOT,
    SUMS,
    at_most,
    check_matrix,
    is_root,
    most_mass,
    sums_fault,
)

# Added to Q, relative to its trace, so that it stays positive definite after rounding (the second beyond ABSURD).
ROUNDED, ROUNDED_FAR, ABSURD = 1e-15, 1e-10, 1e12

# Sizes of P for which four rows of P are folded at a time, and the least rows per block (see `in_four`). A larger P is
# limited by memory bandwidth.
LEAST_IN_FOUR, MOST_IN_FOUR, LEAST_ROWS_IN_FOUR = 8, 256, 12
LEAST_LISTED = 64  # entries of a row from which it pays to list those that are not 0

Four = tuple[Array, Array, Array, Array]


class SurrogateState(NamedTuple):
    """The state of a second-order learner: two arrays and eleven sums."""

    P: Array  # inverse of A, (r d, r d), or once tally[ROOT] is set a root of it; float32 in single precision
    w: Array  # minimiser of the surrogate, (r d,)
    tally: (
        Array  # ROWS, UNEVEN, LOSS, EXCESS, WIDEST, SCALE of tally.py; MASS, SHIFT, ENERGY, ROOT, SPREAD of rounding.py
    )


def start(size: int, regularization: float, single: bool = False) -> SurrogateState:
    """The state before the first row: A = lam I. With `single`, P is stored in float32, and nothing else."""
    P: Any = np.eye(size) / regularization
    return SurrogateState(P=P.astype(np.float32) if single else P, w=np.zeros(size), tally=np.zeros(SUMS))


def check(state: Any, regularization: float, largest_row: float) -> None:
    """Raise an error for a state that no rows up to that norm can produce."""
    state_checks.tally(state.tally)
    check_matrix(state.P, state.tally, 1.0 / regularization)
    state_checks.weights("w", state.w, largest_row)


def first_invalid(stack: Any, regularization: float, largest_row: float) -> int:
    """The first of many states, in arrays with one more axis, that `check` refuses; -1 if there is none."""
    P, w, tally = stack
    return first_fault(P, w, tally, 1.0 / regularization, largest_row, state_checks.rounding_of(P))


@kernel
def first_fault(P: Array, w: Array, tally: Array, first: float, largest_row: float, rounding: float) -> int:
    """`first_invalid`, compiled: the checks of `check`, for all states in one pass."""
    scaled = np.empty(P.shape[1:])
    for i in range(P.shape[0]):
        if state_checks.tally_fault(tally[i]) or sums_fault(tally[i], most_mass(P)):
            return i
        if tally[i, ROOT] != 0.0:
            if not is_root(P[i], first):
                return i
        elif state_checks.matrix_fault(P[i], first, rounding, scaled):
            return i
        if not state_checks.length(w[i]) * largest_row <= state_checks.LARGEST_SCORE:
            return i
    return -1


def helmert(n_classes: int) -> Array:
    """An orthonormal basis (K, K-1) of the vectors that sum to zero."""
    H = np.zeros((n_classes, n_classes - 1))
    for j in range(n_classes - 1):
        H[: j + 1, j] = -1.0
        H[j + 1, j] = j + 1.0
        H[:, j] /= math.sqrt((j + 1.0) * (j + 2.0))
    return H


@merged_kernel
def product(P: Array, x: Array, V: Array) -> None:
    """V = P (I ⊗ x), without changing P; if the array holds a root S, the rows of V are S^T (I ⊗ x)."""
    d = x.size
    whole = d - d % 4
    for k in range(V.shape[0]):
        v = V[k]
        v[:] = 0.0
        for j in range(0, whole, 4):
            add_four(P[k * d + j : k * d + j + 4], x, j, v)
        for j in range(whole, d):
            for i in range(v.size):
                v[i] += x[j] * P[k * d + j, i]


@apart_kernel
def add_four(rows: Array, x: Array, j: int, v: Array) -> None:
    """Add four rows of P, times x[j], ..., x[j + 3], to v."""
    x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
    for i in range(v.size):
        v[i] = (((v[i] + x0 * rows[0, i]) + x1 * rows[1, i]) + x2 * rows[2, i]) + x3 * rows[3, i]


@merged_kernel
def fold(P: Array, U: Array, x: Array, V: Array) -> None:
    """P -= U^T U and V = P (I ⊗ x), in one pass over P.

    Four rows of P and up to four of U at a time, so that an entry stays in a register for 16 updates: a third of the
    time of one after another at d = 64 and K = 10. Each entry has the same arithmetic in the same order.
    """
    r, d, last = V.shape[0], x.size, U.shape[0] - 1
    whole = d - d % 4
    for k in range(r):
        v = V[k]
        v[:] = 0.0
        for j in range(0, whole, 4):
            row = k * d + j
            rows = P[row : row + 4]
            subtract(rows, U, last, row)
            subtract_then_add(rows, U, row, x, j, v)
        for j in range(whole, d):
            row = k * d + j
            one = P[row]
            subtract_from_one(one, U, last, row)
            u, xj = U[last, row], x[j]
            for i in range(one.size):
                one[i] -= u * U[last, i]
                v[i] += xj * one[i]


@kernel
def flush(P: Array, U: Array) -> None:
    """P -= U^T U, with the roundings of `fold`, then U = 0: no update is pending."""
    size, last = P.shape[0], U.shape[0] - 1
    whole = size - size % 4
    for row in range(0, whole, 4):
        subtract(P[row : row + 4], U, last, row)
        subtract_one(P[row : row + 4], U, last, row)
    for row in range(whole, size):
        one = P[row]
        subtract_from_one(one, U, last, row)
        u = U[last, row]
        for i in range(size):
            one[i] -= u * U[last, i]
    U[:] = 0.0


@kernel
def subtract(rows: Array, U: Array, n: int, row: int) -> None:
    """Subtract the first n updates from four rows of P, of which the first is number `row`."""
    fours = n - n % 4
    for l in range(0, fours, 4):
        subtract_four(rows, U, l, row)
    for l in range(fours, n):
        subtract_one(rows, U, l, row)


@apart_kernel
def subtract_four(rows: Array, U: Array, l: int, row: int) -> None:
    """Subtract updates l, ..., l + 3 from four rows of P."""
    a0, a1, a2, a3 = U[l, row], U[l + 1, row], U[l + 2, row], U[l + 3, row]
    b0, b1, b2, b3 = U[l, row + 1], U[l + 1, row + 1], U[l + 2, row + 1], U[l + 3, row + 1]
    c0, c1, c2, c3 = U[l, row + 2], U[l + 1, row + 2], U[l + 2, row + 2], U[l + 3, row + 2]
    d0, d1, d2, d3 = U[l, row + 3], U[l + 1, row + 3], U[l + 2, row + 3], U[l + 3, row + 3]
    for i in range(rows.shape[1]):
        u0, u1, u2, u3 = U[l, i], U[l + 1, i], U[l + 2, i], U[l + 3, i]
        rows[0, i] = (((rows[0, i] - a0 * u0) - a1 * u1) - a2 * u2) - a3 * u3
        rows[1, i] = (((rows[1, i] - b0 * u0) - b1 * u1) - b2 * u2) - b3 * u3
        rows[2, i] = (((rows[2, i] - c0 * u0) - c1 * u1) - c2 * u2) - c3 * u3
        rows[3, i] = (((rows[3, i] - d0 * u0) - d1 * u1) - d2 * u2) - d3 * u3


@apart_kernel
def subtract_one(rows: Array, U: Array, l: int, row: int) -> None:
    """Subtract update l from four rows of P."""
    a, b, c, d = U[l, row], U[l, row + 1], U[l, row + 2], U[l, row + 3]
    for i in range(rows.shape[1]):
        u = U[l, i]
        rows[0, i] -= a * u
        rows[1, i] -= b * u
        rows[2, i] -= c * u
        rows[3, i] -= d * u


@apart_kernel
def subtract_then_add(rows: Array, U: Array, row: int, x: Array, j: int, v: Array) -> None:
    """Subtract the last update from four rows of P; then add the four, times x[j], ..., x[j + 3], to v."""
    last = U.shape[0] - 1
    a, b, c, d = U[last, row], U[last, row + 1], U[last, row + 2], U[last, row + 3]
    x0, x1, x2, x3 = x[j], x[j + 1], x[j + 2], x[j + 3]
    for i in range(rows.shape[1]):
        u = U[last, i]
        rows[0, i] -= a * u
        rows[1, i] -= b * u
        rows[2, i] -= c * u
        rows[3, i] -= d * u
        v[i] = (((v[i] + x0 * rows[0, i]) + x1 * rows[1, i]) + x2 * rows[2, i]) + x3 * rows[3, i]


@apart_kernel
def subtract_from_one(one: Array, U: Array, n: int, row: int) -> None:
    """Subtract the first n updates from one row of P, four at a time: rows in single precision round after four."""
    fours = n - n % 4
    for l in range(0, fours, 4):
        a0, a1, a2, a3 = U[l, row], U[l + 1, row], U[l + 2, row], U[l + 3, row]
        for i in range(one.size):
            one[i] = (((one[i] - a0 * U[l, i]) - a1 * U[l + 1, i]) - a2 * U[l + 2, i]) - a3 * U[l + 3, i]
    for l in range(fours, n):
        u = U[l, row]
        for i in range(one.size):
            one[i] -= u * U[l, i]


@kernel
def product_one(P: Array, w: Array, X: Array, t: int, v: Array) -> tuple[float, float]:
    """v = P x for row t (S^T x if the array holds a root S), without changing P; returns w.x and |x|^2.

    Four rows of P at a time, which reads and writes v once for all four; for each entry the arithmetic is that of one
    at a time, in the same order.
    """
    P, w, X, v = borrowed(P), borrowed(w), borrowed(X), borrowed(v)
    for i in range(v.size):
        v[i] = 0.0
    return add_rows(P, w, X, t, v) if v.size < LEAST_LISTED else add_listed_rows(P, w, X, t, v)


@apart_kernel
def add_rows(P: Array, w: Array, X: Array, t: int, v: Array) -> tuple[float, float]:
    """v += P x for row t; returns w.x and |x|^2."""
    m = 0.0
    square = 0.0
    whole = v.size - v.size % 4
    for j in range(0, whole, 4):
        x0, x1, x2, x3 = X[t, j], X[t, j + 1], X[t, j + 2], X[t, j + 3]
        m = (((m + w[j] * x0) + w[j + 1] * x1) + w[j + 2] * x2) + w[j + 3] * x3
        square = (((square + x0 * x0) + x1 * x1) + x2 * x2) + x3 * x3
        for i in range(v.size):
            v[i] = (((v[i] + x0 * P[j, i]) + x1 * P[j + 1, i]) + x2 * P[j + 2, i]) + x3 * P[j + 3, i]
    for j in range(whole, v.size):
        xj = X[t, j]
        m += w[j] * xj
        square += xj * xj
        for i in range(v.size):
            v[i] += xj * P[j, i]
    return m, square


@apart_kernel
def add_listed_rows(P: Array, w: Array, X: Array, t: int, v: Array) -> tuple[float, float]:
    """`add_rows` that lists the entries of x that are not 0 first, and skips the other rows of P."""
    m = 0.0
    square = 0.0
    listed, n = np.empty(v.size, np.int64), 0
    for j in range(v.size):
        xj = X[t, j]
        m += w[j] * xj
        square += xj * xj
        if xj != 0.0:
            listed[n] = j
            n += 1
    whole = n - n % 4
    for h in range(0, whole, 4):
        j0, j1, j2, j3 = listed[h], listed[h + 1], listed[h + 2], listed[h + 3]
        x0, x1, x2, x3 = X[t, j0], X[t, j1], X[t, j2], X[t, j3]
        for i in range(v.size):
            v[i] = (((v[i] + x0 * P[j0, i]) + x1 * P[j1, i]) + x2 * P[j2, i]) + x3 * P[j3, i]
    for h in range(whole, n):
        j = listed[h]
        xj = X[t, j]
        for i in range(v.size):
            v[i] += xj * P[j, i]
    return m, square


@kernel
def in_four(P: Array, n_rows: int) -> Four:
    """Copy rows 0, 4, 8, ... of P to one matrix, rows 1, 5, 9, ... to the next, and so on; the last d % 4 rows stay.

    `fold_row` then folds four rows at a time, which reads and writes v once for all four: half to three quarters of
    the time of `fold_one`. The rows are in separate arrays, because the compiler must know that they do not overlap.
    The four are empty, and all rows stay in P, where a block of `n_rows` rows would be no faster.
    """
    d = P.shape[0]
    pays = LEAST_IN_FOUR <= d <= MOST_IN_FOUR and n_rows >= LEAST_ROWS_IN_FOUR
    if not pays:
        none = np.empty((0, d), P.dtype)
        return none, none, none, none
    quarter = d // 4
    parts = np.empty((4, quarter, d), P.dtype)
    A, B, C, D = parts[0], parts[1], parts[2], parts[3]
    for h in range(quarter):
        for i in range(d):
            A[h, i] = P[4 * h, i]
            B[h, i] = P[4 * h + 1, i]
            C[h, i] = P[4 * h + 2, i]
            D[h, i] = P[4 * h + 3, i]
    return A, B, C, D


@kernel
def put_back(P: Array, four: Four) -> None:
    """Copy the rows of `in_four` back to P."""
    A, B, C, D = four
    for h in range(A.shape[0]):
        for i in range(P.shape[0]):
            P[4 * h, i] = A[h, i]
            P[4 * h + 1, i] = B[h, i]
            P[4 * h + 2, i] = C[h, i]
            P[4 * h + 3, i] = D[h, i]


@inlined_kernel
def fold_rest(
    P: Array, u: Array, w: Array, X: Array, t: int, v: Array, so_far: tuple[int, float, float]
) -> tuple[float, float]:
    """Fold the remaining rows of P, one at a time; `so_far` has the rows done, and w.x and |x|^2 so far."""
    first, m, square = so_far
    for j in range(first, v.size):
        xj = X[t, j]
        uj = u[j]
        m += w[j] * xj
        square += xj * xj
        for i in range(v.size):
            P[j, i] -= uj * u[i]
            v[i] += xj * P[j, i]
    return m, square


@inlined_kernel
def fold_one(P: Array, u: Array, w: Array, X: Array, t: int, v: Array) -> tuple[float, float]:
    """P -= u u^T and v = P x for row t, in one pass over P; returns w.x and |x|^2.

    Both are known long before v is, so that the processor can use them while it waits for v. The row is passed as X and
    t: a slice of X would cost a tenth of the time per row at d = 20, for reference counting alone.
    """
    for i in range(v.size):
        v[i] = 0.0
    return fold_rest(P, u, w, X, t, v, (0, 0.0, 0.0))


@apart_kernel
def fold_row(P: Array, four: Four, u: Array, w: Array, X: Array, t: int, v: Array) -> tuple[float, float]:
    """`fold_one` for rows of P `in_four`: for each entry the same arithmetic in the same order."""
    A, B, C, D = four
    m = 0.0
    square = 0.0
    for i in range(v.size):
        v[i] = 0.0
    for h in range(A.shape[0]):
        j = 4 * h
        x0, x1, x2, x3 = X[t, j], X[t, j + 1], X[t, j + 2], X[t, j + 3]
        u0, u1, u2, u3 = u[j], u[j + 1], u[j + 2], u[j + 3]
        m = (((m + w[j] * x0) + w[j + 1] * x1) + w[j + 2] * x2) + w[j + 3] * x3
        square = (((square + x0 * x0) + x1 * x1) + x2 * x2) + x3 * x3
        for i in range(v.size):
            A[h, i] -= u0 * u[i]
            a = A[h, i]  # as stored, perhaps in single precision
            B[h, i] -= u1 * u[i]
            b = B[h, i]
            C[h, i] -= u2 * u[i]
            c = C[h, i]
            D[h, i] -= u3 * u[i]
            d = D[h, i]
            v[i] = (((v[i] + x0 * a) + x1 * b) + x2 * c) + x3 * d
    return fold_rest(P, u, w, X, t, v, (4 * A.shape[0], m, square))


@kernel
def end_fold(P: Array, four: Four, u: Array) -> None:
    """Copy all rows back to P and apply the last update."""
    put_back(P, four)
    flush_one(P, u)


@summing_kernel
def look_one(v: Array, X: Array, t: int) -> float:
    """q = x^T P x for row t."""
    q = 0.0
    for j in range(v.size):
        q += v[j] * X[t, j]
    return q


@kernel
def flush_one(P: Array, u: Array) -> None:
    """`flush` for r = 1."""
    for j in range(u.size):
        uj = u[j]
        for i in range(u.size):
            P[j, i] -= uj * u[i]


@merged_kernel
def look(V: Array, w: Array, x: Array, H: Array, root: bool, work: Work) -> float:
    """m = W x and Q = (I ⊗ x)^T P (I ⊗ x), lifted from the r reduced to the K logit coordinates; returns |x|.

    V = P (I ⊗ x), or with `root` V has the rows S^T (I ⊗ x).
    """
    r, d = V.shape[0], x.size
    trace = 0.0
    for k in range(r):
        work.small[k] = dot(w[k * d : (k + 1) * d], x)
        for l in range(k + 1):
            work.M[k, l] = dot(V[k], V[l]) if root else dot(V[k, l * d : (l + 1) * d], x)
        trace += work.M[k, k]
    if root:  # products of rows of F are positive definite up to rounding
        for k in range(r):
            work.M[k, k] += (ROUNDED if trace < ABSURD else ROUNDED_FAR) * trace
    lift(work, H)
    return math.sqrt(dot(x, x))


@merged_kernel
def lift(work: Work, H: Array) -> None:
    """m and Q in the K logit coordinates, from work.small and the lower triangle of work.M in the r reduced ones."""
    K, r = H.shape
    m, Q, half = work.m, work.Q, work.L
    for a in range(K):
        m[a] = 0.0
        for k in range(r):
            m[a] += H[a, k] * work.small[k]
            half[a, k] = 0.0
            for l in range(r):
                half[a, k] += H[a, l] * (work.M[k, l] if l <= k else work.M[l, k])
    for a in range(K):
        for b in range(a + 1):
            entry = 0.0
            for k in range(r):
                entry += half[a, k] * H[b, k]
            Q[a, b] = entry
            Q[b, a] = entry


@merged_kernel
def weigh(
    y: Array, kappa: float, weight: float, square: float, lam: float, work: Work
) -> tuple[float, float, float, float]:
    """The effect on P, w and the sums of the quadratic at the point with probabilities work.p.

    Returns the growth of `excess` beyond the learner's loss minus the loss at that point, the sum of the absolute terms
    of this growth, and the row's mass and shift (rounding.py). e = z - m is the point minus the leader's forecast. With
    S = weight kappa (diag p - p p^T), T = I + S Q and R R^T = T^{-1} S, the Woodbury update is

        P -= V R R^T V^T                     w += V R R^T (e + (y/p) / (2 kappa))

    because the gradient is weight (p - y) = -S (y/p) / kappa: in this form nothing cancels, for any Q and p (a
    probability that underflowed is raised to 1e-300, in place). On return work.L is R, and work.vectors[0] has the
    coefficients of w's step along the rows of V.
    """
    K, r = work.L.shape
    p, e, Q, L, LQ, M = work.p, work.e, work.Q, work.L, work.LQ, work.M
    coefficients, pulled = work.vectors[0], work.vectors[1]
    mass = 0.0
    for a in range(K):
        p[a] = max(p[a], 1e-300)
        mass += p[a] * (1.0 - p[a])
    hessian_factor(p, math.sqrt(weight * kappa), L)
    congruence(L, Q, 1.0, LQ, M)
    add_identity_and_factor(M)
    divide_by_factor(L, M)  # L becomes R
    growth = 0.0
    terms = 0.0
    for a in range(K):
        coefficients[a] = 0.0
        pulled[a] = 0.0
    for j in range(r):
        toward_point = 0.0
        toward_label = 0.0
        for a in range(K):
            toward_point += L[a, j] * e[a]
            if y[a] > 0.0:
                toward_label += L[a, j] * (y[a] / p[a])
        toward_label /= kappa
        for a in range(K):
            coefficients[a] += L[a, j] * (toward_point + 0.5 * toward_label)
            pulled[a] -= L[a, j] * toward_label  # T^{-1} g
            term = e[a] * L[a, j] * (toward_label + toward_point)
            growth -= term
            terms += abs(term)
    shift = 0.0
    for a in range(K):
        terms += weight * abs(work.m[a])
        shift += Q[a, a] * coefficients[a] * coefficients[a]
        for b in range(K):
            term = 0.25 * weight * (p[a] - y[a]) * Q[a, b] * pulled[b]
            growth += term
            terms += abs(term)
    return at_most(growth), terms, weight * kappa * mass * square / lam, K * shift


@merged_kernel
def apply(V: Array, w: Array, U: Array, H: Array, work: Work) -> None:
    """Move w by the step of `weigh`, and set the rows of U to the columns of V R; the caller folds them into P."""
    K, r = H.shape
    size = w.size
    L, coefficients = work.L, work.vectors[0]
    for k in range(r):
        for i in range(size):
            U[k, i] = 0.0
    for k in range(r):
        step = 0.0
        for a in range(K):
            step += H[a, k] * coefficients[a]
        for i in range(size):
            w[i] += step * V[k, i]
        for j in range(r):
            mix = 0.0
            for a in range(K):
                mix += H[a, k] * L[a, j]
            for i in range(size):
                U[j, i] += mix * V[k, i]


@kernel
def apply_to_root(S: Array, F: Array, w: Array, x: Array, H: Array, scratch: tuple[Array, Array], work: Work) -> None:
    """`apply` for a root S of P, where the rows of F are S^T (I ⊗ x).

    A grows by the quadratic's matrix, one column of its factor work.L (not R) at a time.
    """
    K, r = H.shape
    d = x.size
    f, phi = scratch
    L, coefficients = work.L, work.vectors[0]
    f[:] = 0.0
    for k in range(r):
        step = 0.0
        for a in range(K):
            step += H[a, k] * coefficients[a]
        for i in range(w.size):
            f[i] += step * F[k, i]
    phi[:] = 0.0
    shrink(S, w, phi, f, 0.0, 0.0, 1.0)  # w += S f
    for j in range(r):
        for k in range(r):
            mix = 0.0
            for a in range(K):
                mix += H[a, k] * L[a, j]
            for i in range(d):
                phi[k * d + i] = mix * x[i]
        shrink(S, w, phi, f, direction(S, phi, f), 1.0, 0.0)
