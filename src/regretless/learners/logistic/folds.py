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
from typing import Any

import numpy as np

from regretless.core.files import state_checks
from regretless.core.kernels.jit import (
    apart_summing_kernel,
    inlined_kernel,
    kernel,
    lanes_kernel,
    merged_kernel,
)
from regretless.core.types import Array

MOST_WHOLE = 80  # columns; a multiple of four
SIDE = 16  # of the squares along the diagonal; a multiple of eight
LINE = 8  # entries of 64 bytes

Scalars = tuple[float, float, float, float]
Rows = tuple[Array, Array, Array, Array]
Eight = tuple[float, float, float, float, float, float, float, float]
NOTHING: Eight = (0.0,) * 8


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


def aligned(P: Array) -> Array:
    """Matrices in this form that begin at a multiple of 64 bytes: copies and files may have them elsewhere.

    Every eight entries would then be on two lines of the cache, and a row take up to a fifth more time.
    """
    if P.ctypes.data % 64 == 0 or not P.size:
        return P
    found: Array = zeros(math.prod(P.shape[:-1]), P.shape[-1]).reshape(P.shape)
    found[:] = P
    return found


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

    `row` (3, at least d) has x, and room for `fold_half`.
    """
    tall = P.shape[1] - 1
    if tall <= MOST_WHOLE:
        fold_whole(P[k, :tall], P[k, tall], row[0], V[k])
    else:
        fold_half(P[k, :tall], P[k, tall], row, V[k])


# Places are unsigned below, and rows are passed whole: signs, and the ends of slices, would be looked at for every four
# rows, which takes a sixth of the time.


@merged_kernel
def fold_whole(P: Array, u: Array, x: Array, v: Array) -> None:
    """P -= u u^T and v = P x, for all entries: 16 columns at a time, whose entries of v stay in registers.

    Four rows at a time, as in `fold_half`, take a quarter more time with up to 30 columns, and no less with 80.
    """
    wide, done = np.uintp(P.shape[1]), np.uintp(0)
    while done + np.uintp(2 * LINE) <= wide:
        fold_sixteen(P, u, x, v, done)
        done += np.uintp(2 * LINE)
    if done < wide:
        fold_eight(P, u, x, v, done)


@lanes_kernel
def fold_sixteen(P: Array, u: Array, x: Array, v: Array, i: Any) -> None:
    """Fold 16 columns of P, from i on."""
    k = i + np.uintp(LINE)
    us, vs, ut, vt = eight(u, i), NOTHING, eight(u, k), NOTHING
    for j in range(np.uintp(P.shape[0])):
        ps, pt = less(eight(P[j], i), u[j], us), less(eight(P[j], k), u[j], ut)
        set_eight(P[j], i, ps)
        set_eight(P[j], k, pt)
        vs, vt = more(vs, x[j], ps), more(vt, x[j], pt)
    set_eight(v, i, vs)
    set_eight(v, k, vt)


@lanes_kernel
def fold_eight(P: Array, u: Array, x: Array, v: Array, i: Any) -> None:
    """Fold eight columns of P, from i on."""
    us, vs = eight(u, i), NOTHING
    for j in range(np.uintp(P.shape[0])):
        ps = less(eight(P[j], i), u[j], us)
        set_eight(P[j], i, ps)
        vs = more(vs, x[j], ps)
    set_eight(v, i, vs)


@inlined_kernel
def eight(x: Array, i: Any) -> Eight:
    """Eight entries of x, from i on."""
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    k = i + four
    return x[i], x[i + one], x[i + two], x[i + three], x[k], x[k + one], x[k + two], x[k + three]


@inlined_kernel
def set_eight(x: Array, i: Any, found: Eight) -> None:
    """Set eight entries of x, from i on."""
    one, two, three, four = np.uintp(1), np.uintp(2), np.uintp(3), np.uintp(4)
    k = i + four
    x[i], x[i + one], x[i + two], x[i + three] = found[0], found[1], found[2], found[3]
    x[k], x[k + one], x[k + two], x[k + three] = found[4], found[5], found[6], found[7]


@inlined_kernel
def less(p: Eight, a: float, u: Eight) -> Eight:
    """p - a u."""
    low = p[0] - a * u[0], p[1] - a * u[1], p[2] - a * u[2], p[3] - a * u[3]
    return *low, p[4] - a * u[4], p[5] - a * u[5], p[6] - a * u[6], p[7] - a * u[7]


@inlined_kernel
def more(v: Eight, a: float, p: Eight) -> Eight:
    """v + a p."""
    low = v[0] + a * p[0], v[1] + a * p[1], v[2] + a * p[2], v[3] + a * p[3]
    return *low, v[4] + a * p[4], v[5] + a * p[5], v[6] + a * p[6], v[7] + a * p[7]


@kernel
def fold_half(P: Array, u: Array, row: Array, v: Array) -> None:
    """P -= u u^T and v = P x, for the entries in squares along the diagonal and left of them.

    `row` has x, what of v comes from the entries left of the squares, and x as far as these entries reach, 0 beyond.
    """
    x, below, left = row[0], row[1], row[2]
    tall: Any = np.uintp(P.shape[0])
    wide: Any = np.uintp(P.shape[1])
    side: Any = np.uintp(SIDE)
    for i in range(v.size):
        v[i] = left[i] = 0.0
    for first in range(np.uintp(0), tall, side):
        last = min(first + side, wide)
        for j in range(first, min(first + side, tall), np.uintp(4)):
            set_four(below, j, fold_four(four_rows(P, j), four(u, j), four(x, j), u, left, v, last))
        for i in range(first, last):
            left[i] = x[i]
    for i in range(P.shape[0]):
        v[i] += below[i]


@inlined_kernel
def four_rows(P: Array, j: int) -> Rows:
    """Four rows of P, from j on."""
    return P[j], P[j + np.uintp(1)], P[j + np.uintp(2)], P[j + np.uintp(3)]


@inlined_kernel
def four(x: Array, j: int) -> Scalars:
    """Four entries of x, from j on."""
    return x[j], x[j + np.uintp(1)], x[j + np.uintp(2)], x[j + np.uintp(3)]


@inlined_kernel
def set_four(x: Array, j: int, found: Scalars) -> None:
    """Set four entries of x, from j on."""
    x[j], x[j + np.uintp(1)], x[j + np.uintp(2)], x[j + np.uintp(3)] = found


@apart_summing_kernel
def fold_four(rows: Rows, us: Scalars, xs: Scalars, u: Array, left: Array, v: Array, n: int) -> Scalars:
    """Fold n columns of four rows of P, whose u and x are `us` and `xs`; returns their products with `left`."""
    a, b, c, d = rows
    of_a = of_b = of_c = of_d = 0.0
    for i in range(n):
        a[i] -= us[0] * u[i]
        b[i] -= us[1] * u[i]
        c[i] -= us[2] * u[i]
        d[i] -= us[3] * u[i]
        v[i] = (((v[i] + xs[0] * a[i]) + xs[1] * b[i]) + xs[2] * c[i]) + xs[3] * d[i]
        of_a += a[i] * left[i]
        of_b += b[i] * left[i]
        of_c += c[i] * left[i]
        of_d += d[i] * left[i]
    return of_a, of_b, of_c, of_d
