r"""The matrices of the Newton members, in a form in which a row costs one pass over them.

:math:`P \leftarrow P - uu^T` for the row before, and :math:`v = Px` for this one, are one pass. So a matrix is stored
with the update u of the last row still to be made, as one more row.

Rows begin at multiples of 64 bytes and have a multiple of eight entries, the last of which are 0: a processor reads
such rows fastest, and no loop has single entries left over. Four rows of P are updated at a time. Up to `MOST_WHOLE`
columns every entry is. Beyond, only one half is, since P is symmetric: the entries left of squares along the diagonal.
Each of these is read and written once and used twice, for its own row of v and, as its mirror image, for that of its
column; the others are 0. A row takes 0.35 to 0.75 of the time of `fold_row` in second_order/surrogate.py.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core import state_checks
from regretless.core.jit import apart_kernel, apart_summing_kernel, kernel, merged_kernel
from regretless.core.types import Array

MOST_WHOLE = 80  # columns; a multiple of four
SIDE = 16  # of the squares along the diagonal; a multiple of eight
LINE = 8  # entries of 64 bytes

Scalars = tuple[float, float, float, float]


# ---------------------------------------------------------------------- the form


def folded(P: Array) -> Array:
    """Symmetric matrices, (..., d, d), in the form of this file, with no update left to make."""
    d, shape = P.shape[-1], (*P.shape[:-2], *sides(P.shape[-1]))
    found: Array = zeros(math.prod(shape[:-1]), shape[-1]).reshape(shape)
    if P.size:
        np.copyto(found[..., :d, :d], P, where=_is_stored(d))
    return found


def unfolded(P: Array, d: int) -> Array:
    """The matrices, (..., d, d), up to date."""
    stored, u = P[..., :d, :d], P[..., -1, :d]
    if not stored.size:
        return stored
    return np.where(_is_stored(d), stored, np.swapaxes(stored, -1, -2)) - u[..., :, None] * u[..., None, :]


def sides(d: int) -> tuple[int, int]:
    """The shape of a matrix of d columns in this form."""
    return whole(d, 4) + 1, whole(d, LINE)


def check(name: str, P: Array, d: int, variance: Array) -> None:
    """Raise an error for matrices that are no covariances, of at most this variance."""
    if not P.size:
        return
    state_checks.covariance(name, unfolded(P, d), variance)
    rest = P[..., d:], P[..., d:-1, :d], P[..., :d, :d][..., ~_is_stored(d)]
    state_checks.require(not any(entries.any() for entries in rest), f"{name} has entries where none are used")


def _is_stored(d: int) -> np.ndarray:
    """Which entries of a matrix of d columns are."""
    square = np.arange(d) // SIDE
    found: np.ndarray = (square[:, None] >= square) | (d <= MOST_WHOLE)
    return found


@kernel
def whole(n: int, step: int) -> int:
    """The smallest multiple of `step` that is at least n."""
    return (n + step - 1) // step * step


@kernel
def zeros(n: int, width: int) -> Array:
    """Zeros (n, width) that begin at a multiple of 64 bytes."""
    buffer = np.zeros(n * width + LINE)
    first = (64 - int(buffer.ctypes.data) % 64) % 64 // 8
    return buffer[first : first + n * width].reshape(n, width)


# ---------------------------------------------------------------------- kernels


@merged_kernel
def fold(P: Array, k: int, row: Array, V: Array) -> None:
    """P -= u u^T and v = P x for matrix k, whose v is row k of V.

    `row` (2, at least d) has x, and a buffer: what of v comes from the entries left of the squares.
    """
    tall = P.shape[1] - 1
    if tall <= MOST_WHOLE:
        for i in range(V.shape[1]):
            V[k, i] = 0.0
        for j in range(0, tall, 4):
            us, xs = four(P[k], tall, j), four(row, 0, j)
            fold_square(P[k, j], P[k, j + 1], P[k, j + 2], P[k, j + 3], us, xs, P[k, tall], V[k])
    else:
        fold_half(P[k, :tall], P[k, tall], row[0], V[k], row[1])


@kernel
def fold_half(P: Array, u: Array, x: Array, v: Array, below: Array) -> None:
    """P -= u u^T and v = P x, for the entries in squares along the diagonal and left of them."""
    tall, wide = P.shape
    for i in range(v.size):
        v[i] = 0.0
    for first in range(0, tall, SIDE):
        last = min(first + SIDE, wide)
        for j in range(first, min(first + SIDE, tall), 4):
            a, b, c, d = P[j], P[j + 1], P[j + 2], P[j + 3]
            us, xs = (u[j], u[j + 1], u[j + 2], u[j + 3]), (x[j], x[j + 1], x[j + 2], x[j + 3])
            found = fold_left(a[:first], b[:first], c[:first], d[:first], us, xs, u, x, v)
            below[j], below[j + 1], below[j + 2], below[j + 3] = found
            fold_square(
                a[first:last], b[first:last], c[first:last], d[first:last], us, xs, u[first:last], v[first:last]
            )
    for i in range(tall):
        v[i] += below[i]


@apart_kernel
def four(X: Array, k: int, j: int) -> Scalars:
    """Four entries of row k, from j on."""
    return X[k, j], X[k, j + 1], X[k, j + 2], X[k, j + 3]


@apart_kernel
def fold_square(a: Array, b: Array, c: Array, d: Array, us: Scalars, xs: Scalars, u: Array, v: Array) -> None:
    """Fold four rows of P, whose entries of u and x are `us` and `xs`."""
    for i in range(a.size):
        a[i] -= us[0] * u[i]
        b[i] -= us[1] * u[i]
        c[i] -= us[2] * u[i]
        d[i] -= us[3] * u[i]
        v[i] = (((v[i] + xs[0] * a[i]) + xs[1] * b[i]) + xs[2] * c[i]) + xs[3] * d[i]


@apart_summing_kernel
def fold_left(
    a: Array, b: Array, c: Array, d: Array, us: Scalars, xs: Scalars, u: Array, x: Array, v: Array
) -> Scalars:
    """`fold_square` that returns the products of the four rows with x too, which belong to their mirror images."""
    of_a = of_b = of_c = of_d = 0.0
    for i in range(a.size):
        a[i] -= us[0] * u[i]
        b[i] -= us[1] * u[i]
        c[i] -= us[2] * u[i]
        d[i] -= us[3] * u[i]
        v[i] = (((v[i] + xs[0] * a[i]) + xs[1] * b[i]) + xs[2] * c[i]) + xs[3] * d[i]
        of_a += a[i] * x[i]
        of_b += b[i] * x[i]
        of_c += c[i] * x[i]
        of_d += d[i] * x[i]
    return of_a, of_b, of_c, of_d
