r"""Blocked exact updates: a panel of rows by matrix products, with the same forecasts as row by row.

Row by row, a second-order learner reads and writes P once per row, and a large P is limited by memory bandwidth. For a
panel of b rows, let :math:`V_0 = P\,(I \otimes x_s)` for all rows s, and :math:`G` the products of :math:`V_0` with the
rows: two matrix products. Within the panel every vector that a row needs is a combination of the rows of :math:`V_0`;
of :math:`V = P_t\,(I \otimes x_t)` only the coefficients C are stored,

.. math:: C_t = E_t - \sum_i u_i\,(u_i \cdot g_t), \qquad m = m_0 + \omega \cdot g_t, \qquad Q = C_t\,g_t^T,

with :math:`g_t` the rows of G for row t, :math:`u_i` the coefficients of the updates so far and :math:`\omega` those of
the leader's steps. Updates form linear combinations of V and do not depend on its length, so a learner applies the
same operations to C as to V. Each label is used only after the forecast of its row. At the end of the panel
:math:`P \leftarrow P - U^TU` and :math:`w \leftarrow w + \omega V_0` are matrix products again. Only the order of the
arithmetic differs: forecasts agree with those of row by row to about 1e-14 of their scale.

If the array holds a root S of P (roots.py), the rows of :math:`F = (I \otimes x_s)^T S` replace those of :math:`V_0`,
and :math:`G = FF^T`. With :math:`Y = UF` the panel's updates are
:math:`S \leftarrow S\,(I - Y^TY)^{1/2} = S - (SY^T)\,(I + (I - YY^T)^{1/2})^{-1}\,Y`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import eigh

from regretless.core.interrupts import listen, uninterrupted
from regretless.core.kernels.jit import kernel
from regretless.core.kernels.products import (
    multiply,
    multiply_symmetric,
    one_thread_per_product,
    pieces,
    share,
    subtract_square,
)
from regretless.core.numbers.tally import ROWS
from regretless.core.types import Array
from regretless.learners.second_order.algebra import Work, dot
from regretless.learners.second_order.rounding import ROOT, SPREAD, at_most, inflation, most_mass
from regretless.learners.second_order.surrogate import lift

# The sizes for which panels are faster, and their number of rows of V_0: with more rows, the products are faster and
# the recursion slower. Measured time of row by row divided by that of panels, one thread, in blocks of 256 rows or more
# (size = r d):
#
#     AIOLI, d             100   150   200   256   300   400   500   700   1000   2000
#       32 rows of V_0     0.4   0.8   0.9   1.1   1.2   1.6   2.9   3.8    4.3    5.3
#       64                 0.5   0.8   0.9   1.2   1.4   1.7   3.1   4.3    5.0    6.4
#      128                 0.4   0.7   0.8   1.1   1.2   1.6   3.1   4.5    5.3    7.0
#      256                 0.2   0.4   0.5   0.7   0.9   1.2   2.5   3.8    4.8    6.7
#
#     K classes, d, K    20, 5  64, 3  20, 10  10, 20  64, 5  80, 5  100, 5  64, 10  100, 10  50, 20
#       size                80    128     180     190    256    320     400     576      900     950
#       96 rows of V_0     0.2    0.5     0.4     0.4    0.9    1.3     1.5     1.3      2.0     2.3
LEAST_SIZE = 224
LEAST_ROWS = 32
RANK, RANK_OF_GROUPS, RANK_OF_LARGE, LARGE = 64, 96, 128, 500
TILE = 32
MOST_GROWTH = 1e6
# Products are divided among threads by columns of P, and those with few columns by rows. Narrower pieces of P cost more
# in total (at 192 columns about 5 %), but more threads can share them.
COLUMNS_PER_THREAD, ROWS_PER_THREAD = 192, 48


class Panel(NamedTuple):
    """The data of a panel of b rows; coefficients are ordered by rows, with the r copies of a row together."""

    G: Array  # (b r, b r)
    U: Array  # (b r, b r): coefficients of the updates, r per row
    omega: Array  # (b r,)
    m0: Array  # (b, r): W x at the start
    square: Array  # (b,): |x|^2
    most_mass: float  # up to which P has enough digits
    most_growth: float  # of 1 + c q since the start of the panel; beyond it too many digits of G cancel
    size: int  # of P


class Kernels(NamedTuple):
    """The compiled loops of a learner."""

    run: Callable[..., None]  # row by row: the rest of a panel, and short blocks
    run_panel: Callable[..., int]  # one panel; returns the number of rows for which P has enough digits


def rows_at_once(size: int, r: int) -> int:
    """The number of rows of a panel: a power of two, so that blocks of all lengths are cut at the same rows."""
    rank = RANK_OF_LARGE if size >= LARGE else RANK if r == 1 else RANK_OF_GROUPS
    return max(8, 1 << ((rank // r).bit_length() - 1))


def least_rows(size: int) -> int:
    """See `OnlineLearner.least_rows`: panels have at most this many rows."""
    return RANK_OF_LARGE if size >= LEAST_SIZE else 1


def pays(size: int, n_rows: int) -> bool:
    """Whether panels are faster than row by row."""
    return size >= LEAST_SIZE and n_rows >= LEAST_ROWS


def play(kernels: Kernels, state: Any, X: Array, Y: Array, weight: Array, constants: NamedTuple, out: Array) -> None:
    """Play a block: panel by panel where that is faster, otherwise row by row."""
    P, w, tally = state
    if not pays(w.size, X.shape[0]):
        kernels.run(state, X, Y, weight, constants, out)
        return
    r = w.size // X.shape[1]
    try:
        for rows in cuts(X.shape[0], w.size, r):
            with one_thread_per_product():
                _play_panel(kernels, state, (X, Y, weight, out), rows, constants)
            listen()
    finally:
        if not tally[ROOT]:
            mirror(P)  # for r = 1 once per block: until then only the upper triangle is updated and read


def _play_panel(kernels: Kernels, state: Any, block: tuple[Array, ...], rows: slice, constants: NamedTuple) -> None:
    """Play a panel; if P has too few digits for some of its rows, these row by row."""
    P, w, tally = state
    x, Y, weight, out = (array[rows] for array in block)
    r, root = w.size // x.shape[1], bool(tally[ROOT])
    V0 = look_ahead_by_root(P, x, r) if root else look_ahead(P, x, r)
    panel = begin(V0, P, w, x, root)
    with uninterrupted():
        before = tally[ROWS]
        done = kernels.run_panel(panel, tally, Y, weight, constants, out)
        finish(P, w, V0, panel, root)
        if root and int(before).bit_length() < int(tally[ROWS]).bit_length():  # see `rounding.watch`
            tally[SPREAD] = at_most(tally[SPREAD] + tally[ROWS] * w.size * inflation(P))
        if not root and (r > 1 or done < len(x)):
            mirror(P)
        if done < len(x):
            kernels.run(state, x[done:], Y[done:], weight[done:], constants, out[done:])


def cuts(n_rows: int, size: int, r: int) -> Iterator[slice]:
    """The slices of rows of the panels."""
    b = rows_at_once(size, r)
    for first in range(0, n_rows, b):
        yield slice(first, min(first + b, n_rows))


def columns_of(size: int) -> list[slice]:
    """The pieces of P's columns for threads."""
    return pieces(size, COLUMNS_PER_THREAD if size >= LARGE else size)


def look_ahead(P: Array, x: Array, r: int) -> Array:
    """V_0, (r, b, size): the products of P (for r = 1, of its upper triangle) with every row, copy by copy."""
    if r > 1:
        return look_ahead_by_root(P, x, r)
    (b, size), x = x.shape, x.astype(P.dtype, copy=False)
    V0 = np.empty((1, b, size), dtype=P.dtype)

    def some(columns: slice) -> None:
        above, below, out = slice(columns.start), slice(columns.stop, None), V0[0, :, columns]
        multiply_symmetric(x[:, columns], P[columns, columns], out)
        if columns.start > 0:
            multiply(x[:, above], P[above, columns], out, keep=1.0)
        if columns.stop < size:
            multiply(x[:, below], P[columns, below].T, out, keep=1.0)

    share(some, columns_of(size), 2.0 * b * size * size)
    return V0


def look_ahead_by_root(S: Array, x: Array, r: int) -> Array:
    """F, (r, b, size): the products of every row, copy by copy, with S."""
    (b, d), size, x = x.shape, S.shape[0], x.astype(S.dtype, copy=False)
    F = np.empty((r, b, size), dtype=S.dtype)

    def some(k: int) -> None:
        multiply(x, S[k * d : (k + 1) * d], F[k])

    share(some, range(r), 2.0 * b * size * size)
    return F


def begin(V0: Array, P: Array, w: Array, x: Array, root: bool) -> Panel:
    """The panel before its first row."""
    r, b, _ = V0.shape
    d, rank = x.shape[1], r * b
    flat = V0.reshape(rank, -1).astype(np.float64, copy=False)
    G = np.empty((r, rank, b))

    def some(part: tuple[int, slice]) -> None:
        l, rows = part
        others = flat[l * b : (l + 1) * b].T if root else x.T
        multiply(flat[rows] if root else flat[rows, l * d : (l + 1) * d], others, G[l, rows])

    share(some, [(l, rows) for l in range(r) for rows in pieces(rank, ROWS_PER_THREAD)], 2.0 * rank * b * w.size)
    return Panel(
        G=np.ascontiguousarray(G.reshape(r, r, b, b).transpose(2, 1, 3, 0)).reshape(rank, rank),
        U=np.zeros((rank, rank)),
        omega=np.zeros(rank),
        m0=multiply(x, w.reshape(r, d).T),
        square=np.einsum("ij,ij->i", x, x),
        most_mass=math.inf if root else float(most_mass(P)),
        most_growth=MOST_GROWTH if root else math.inf,
        size=w.size,
    )


def finish(P: Array, w: Array, V0: Array, panel: Panel, root: bool) -> None:
    """Apply the panel's updates in place, to w and to the upper triangle of P, or to a root of P."""
    r, b, size = V0.shape
    flat, rank = V0.reshape(r * b, size), r * b
    move = combination(panel.omega, V0)
    mix = np.ascontiguousarray(panel.U.reshape(-1, b, r).swapaxes(1, 2), dtype=P.dtype).reshape(rank, rank)
    U = np.empty_like(flat)
    share(lambda columns: multiply(mix, flat[:, columns], U[:, columns]), columns_of(size), 2.0 * rank * rank * size)
    if not root:
        w += move
        share(lambda columns: _subtract(P, U, columns), columns_of(size), float(rank * size * size))
        return
    w += multiply(P, move[:, None].astype(P.dtype, copy=False))[:, 0]
    wide = U.astype(np.float64, copy=False)
    eigenvalues, vectors = eigh(multiply(wide, wide.T), driver="evd", check_finite=False)
    halved = vectors / (1.0 + np.sqrt(np.maximum(1.0 - eigenvalues, 0.0)))
    P -= multiply(multiply(P, U.T), multiply(multiply(halved, vectors.T).astype(P.dtype, copy=False), U))


def _subtract(P: Array, U: Array, rows: slice) -> None:
    """P -= U^T U, in these rows of the upper triangle."""
    mine, right = U[:, rows], slice(rows.stop, None)
    subtract_square(mine, P[rows, rows])
    if rows.stop < P.shape[0]:
        multiply(mine.T, U[:, right], P[rows, right], factor=-1.0, keep=1.0)


def combination(omega: Array, V0: Array) -> Array:
    """omega V_0."""
    r, b, size = V0.shape
    mix = np.ascontiguousarray(omega.reshape(b, r).T).reshape(1, -1)
    return multiply(mix, V0.reshape(r * b, size).astype(omega.dtype, copy=False))[0]


@kernel
def mirror(P: Array) -> None:
    """Copy the upper triangle to the lower one, tile by tile."""
    size = P.shape[0]
    for i0 in range(0, size, TILE):
        for j0 in range(i0, size, TILE):
            for i in range(i0, min(i0 + TILE, size)):
                for j in range(max(j0, i + 1), min(j0 + TILE, size)):
                    P[j, i] = P[i, j]


@kernel
def coefficients(panel: Panel, t: int, C: Array) -> None:
    """C = E_t - sum of u_i (u_i . g_t), the coefficients of V for row t; those beyond row t are 0."""
    r = C.shape[0]
    C[:] = 0.0
    for i in range(t * r):  # outside: an update stays in the first cache while all copies of the row use it
        reach = (i // r + 1) * r
        u = panel.U[i, :reach]
        for k in range(r):
            c = C[k]
            along = dot(u, panel.G[t * r + k, :reach])
            for j in range(reach):
                c[j] -= along * u[j]
    for k in range(r):
        C[k, t * r + k] = 1.0


@kernel
def look_at_one(panel: Panel, t: int, c: Array) -> tuple[float, float, float]:
    """m, q and |x|^2 of row t in a panel."""
    g = panel.G[t, : t + 1]
    m = panel.m0[t, 0] + dot(panel.omega[: t + 1], g)
    return m, max(dot(c[: t + 1], g), 0.0), panel.square[t]


@kernel
def look_at(panel: Panel, t: int, C: Array, H: Array, work: Work) -> float:
    """`look` in a panel: computes m and Q of row t in `work`; returns |x|."""
    r = C.shape[0]
    reach = (t + 1) * r
    for k in range(r):
        g = panel.G[t * r + k, :reach]
        work.small[k] = panel.m0[t, k] + dot(panel.omega[:reach], g)
        for l in range(k + 1):
            work.M[k, l] = dot(C[k, :reach], panel.G[t * r + l, :reach])
    lift(work, H)
    return math.sqrt(panel.square[t])


@kernel
def variance(panel: Panel, t: int, r: int) -> float:
    """The trace of Q of row t at the start of the panel."""
    total = 0.0
    for k in range(t * r, (t + 1) * r):
        total += panel.G[k, k]
    return total
