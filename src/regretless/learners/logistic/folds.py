r"""One pass per row over the matrices of a Newton member: :math:`P \leftarrow P - uu^T` for the row before, and
:math:`v = Px` for this one.

A block is played on a copy of the matrices whose rows begin at multiples of 64 bytes and have a multiple of eight
entries, the last of which are 0: a processor reads such rows fastest, and no loop has single entries left over. Four
rows of P are updated at a time. Up to `MOST_WHOLE` columns every entry is. Beyond, only one half is, since P is
symmetric: the entries left of squares along the diagonal. Each of these is read and written once and used twice, for
its own row of v and, as its mirror image, for that of its column. A block takes 0.35 to 0.75 of the time of
`fold_row` in second_order/surrogate.py.

A few rows are played on P itself, with `product`. The arithmetic is the same in the same order, so that results do not
depend on how a stream is cut into blocks.
"""

from __future__ import annotations

import numpy as np

from regretless.core.jit import apart_kernel, apart_summing_kernel, kernel, merged_kernel
from regretless.core.types import Array
from regretless.learners.second_order.surrogate import product_one

MOST_WHOLE = 80  # columns; a multiple of four
SIDE = 16  # of the squares along the diagonal; a multiple of eight
LINE = 8  # entries of 64 bytes

Scalars = tuple[float, float, float, float]


@kernel
def in_folds(P: Array) -> Array:
    """A copy of the matrices (matrices, d, d) for `fold`."""
    n, d = P.shape[0], P.shape[1]
    tall, wide = whole(d, 4), whole(d, LINE)
    copy = zeros(n * tall, wide).reshape(n, tall, wide)
    for k in range(n):
        for i in range(d):
            for j in range(d):
                copy[k, i, j] = P[k, i, j]
    return copy


@kernel
def put_back(P: Array, copy: Array, U: Array) -> None:
    """Copy the matrices back to P, with the last updates, U (matrices, at least d)."""
    for k in range(P.shape[0]):
        for i in range(P.shape[1]):
            for j in range(i + 1):
                P[k, i, j] = P[k, j, i] = copy[k, i, j] - U[k, i] * U[k, j]


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


@kernel
def product(P: Array, w: Array, X: Array, t: int, v: Array) -> None:
    """v = P x for row t; P remains as it is."""
    d = P.shape[0]
    if d <= MOST_WHOLE:
        product_one(P, w, X, t, v)
        return
    buffers, rest = zeros(4, whole(d, LINE)), np.zeros((4, d))
    for i in range(d % 4):
        for j in range(d):
            rest[i, j] = P[d - d % 4 + i, j]
    for j in range(d):
        buffers[0, j] = X[t, j]
    fold_half(P, rest, buffers[1], buffers[0], buffers[2], buffers[3])  # with no update
    for i in range(d):
        v[i] = buffers[2, i]


@merged_kernel
def fold(P: Array, k: int, U: Array, row: Array, V: Array) -> None:
    """P -= u u^T and v = P x for matrix k of `in_folds`; u and v are rows k of U and V.

    `row` (2, at least d) has x, and a buffer: what of v comes from the entries left of the squares.
    """
    if P.shape[1] <= MOST_WHOLE:
        for i in range(V.shape[1]):
            V[k, i] = 0.0
        for j in range(0, P.shape[1], 4):
            us, xs = four(U, k, j), four(row, 0, j)
            fold_square(P[k, j], P[k, j + 1], P[k, j + 2], P[k, j + 3], us, xs, U[k], V[k])
    else:
        fold_half(P[k], P[k, :4], U[k], row[0], V[k], row[1])


@kernel
def fold_half(P: Array, rest: Array, u: Array, x: Array, v: Array, below: Array) -> None:
    """P -= u u^T and v = P x, for the entries in squares along the diagonal and left of them.

    If the number of rows is no multiple of four, `rest` has the last of them, and then zeros.
    """
    tall, wide = P.shape
    for i in range(v.size):
        v[i] = 0.0
    for first in range(0, tall, SIDE):
        last = min(first + SIDE, wide)
        for j in range(first, min(first + SIDE, tall), 4):
            rows = P[j : j + 4] if j + 4 <= tall else rest
            a, b, c, d = rows[0], rows[1], rows[2], rows[3]
            us, xs = (u[j], u[j + 1], u[j + 2], u[j + 3]), (x[j], x[j + 1], x[j + 2], x[j + 3])
            found = fold_left(a[:first], b[:first], c[:first], d[:first], us, xs, u, x, v)
            below[j], below[j + 1], below[j + 2], below[j + 3] = found
            fold_square(
                a[first:last], b[first:last], c[first:last], d[first:last], us, xs, u[first:last], v[first:last]
            )
    for i in range(v.size):
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
