r"""Newton members: one weight vector and one matrix per class.

Class k has weights :math:`w_k` and :math:`P_k \approx A_k^{-1}`, :math:`A_k = \lambda I + \kappa \sum p_k(1-p_k) xx^T`:
the Hessian of the log loss without the blocks between classes, so a row costs :math:`K d^2` and not :math:`K^3 d^2`.
The step is implicit: the new weights minimise the row's own loss, not a linearisation of it, plus their distance from
the old weights in the norm of A,

.. math:: z_k = m_k + q_k\,(y_k - p_k), \qquad w_k \leftarrow w_k + (y_k - p_k)\,P_kx, \qquad p = \mathrm{softmax}(z)

with m the logits before the step, z those after it and :math:`q_k = x^TP_kx`. No step overshoots, whatever lambda is. A
kappa below 1 understates the curvature: the member keeps learning for longer, which suits nearly separable streams and
changing ones.

Two classes have :math:`w_1 = -w_0` and the same matrix, so one of each is stored: that of the margin :math:`w_1 - w_0`,
with :math:`P = P_0 + P_1`.

On expanded rows, which have many columns, a matrix per class would take K times as long. There one serves all classes,

.. math:: A = \lambda I + \kappa \sum \overline{p(1-p)}\, xx^T, \qquad
          \overline{p(1-p)} = \frac1K \sum_k p_k(1-p_k),

with the same q for all. On the streams tried, the mean of the curvatures is as good as one matrix per class, or better.
For two classes it is the same: that of the margin.

The intercept may have a weaker prior than the other weights: then the last entry of the diagonal of P starts larger.

A forgetful member, which has one prior for all weights, moves P towards its starting value before every row:
P <- rho P + (1 - rho) P_start, rho < 1. What was learned long ago becomes uncertain again, and P stays well
conditioned.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import apart_kernel, kernel, merged_kernel, shared_kernel, summing_kernel
from regretless.core.numbers.links import softmax
from regretless.core.types import Array
from regretless.learners.logistic.folds import fold, zeros
from regretless.learners.logistic.linear import forecast_row
from regretless.learners.logistic.scaling import RANGED
from regretless.learners.second_order.forecasts import solve_margin, tanh_of_half

CLOSE = 3e-5  # a Newton step that changes no difference of logits by more leaves an error of at most half its square
NEAR = 0.5  # a Newton step that changes differences by less is taken whole
MOST_STEPS = 100


KAPPA, LAM, RHO, VERSION, INTERCEPT, OCTAVE = range(6)  # the columns of the constants of members


class Labelled(NamedTuple):
    """A block of rows, their labels and weights."""

    X: Array
    Y: Array
    weight: Array


class Step(NamedTuple):
    """The constants of one member."""

    kappa: float  # factor of the curvature
    lam: float  # lambda, the prior
    rho: float  # what is kept of P per row; 1 forgets nothing


def first_variance(regularization: Array, n_classes: int) -> Array:
    """What the diagonal of P starts as."""
    return (2.0 if n_classes == 2 else 1.0) / regularization


@shared_kernel
def run(
    P: Array,
    w: Array,
    steps: Array,
    versions: tuple[Array, Array],
    Y: Array,
    weight: Array,
    ready: bool,
    out: Array,
) -> None:
    """Play a block with member after member; `out` (members, at least n, K) holds the logits forecast.

    If the rows are `ready`, they are there: of one row, forecast from the same state.

    Each member has K matrices in the form of folds.py, or one that serves all classes, and weights (K, d). For K = 2 it
    has one of each. `steps` has the entries of `Step`, and which version of the rows the member plays on. One call is
    for all members: with a call for each, a single row takes 50 ns more per member.
    """
    P, w, versions, Y, weight, out = borrowed((P, w, versions, Y, weight, out))
    own_lines, own_numbers = zeros(P.shape[1] + 3, P.shape[3]), np.empty((4, Y.shape[1]))
    buffers = borrowed(own_lines), borrowed(own_numbers)
    for i in range(P.shape[0]):
        step = Step(steps[i, KAPPA], steps[i, LAM], steps[i, RHO])
        X = versions[1] if steps[i, VERSION] == RANGED else versions[0]
        run_member(P[i], w[i], step, Labelled(X, Y, weight), buffers, ready, out[i])
    keep(own_lines)
    keep(own_numbers)


@merged_kernel
def run_member(
    P: Array, w: Array, step: Step, rows: Labelled, buffers: tuple[Array, Array], ready: bool, out: Array
) -> None:
    """Play a block with one member."""
    C, d, K, lines, numbers = P.shape[0], w.shape[1], rows.Y.shape[1], buffers[0], buffers[1]
    V, row = lines[:C], lines[C:]
    for t in range(rows.X.shape[0]):
        if not ready:
            forecast_row(w, rows.X, t, out)
        if rows.weight[t] == 0.0:
            continue
        for j in range(d):
            row[0, j] = rows.X[t, j]
        for k in range(C):
            fold(P, k, row, V)
            if step.rho < 1.0:
                forget(P[k], V[k], row[0], d, step.rho, (2.0 if K == 2 else 1.0) / step.lam)
        meet(w, V, P, numbers, step, rows, t, out)


@merged_kernel
def meet(w: Array, V: Array, P: Array, numbers: Array, step: Step, rows: Labelled, t: int, out: Array) -> None:
    """Row t, forecast: see the label, step. V has P x of each matrix, and P gets the next updates."""
    X, Y, weight = rows
    c, C, K, u = weight[t], V.shape[0], Y.shape[1], P.shape[1] - 1
    q = variance(V, 0, X, t)
    if K == 2:
        pulled = out[t, 1] - out[t, 0] + c * q * (Y[t, 1] - 0.5)
        _, tanh = solve_margin(pulled, tanh_of_half(pulled), 0.5 * c * q)
        above = 0.5 + 0.5 * tanh
        move(w, 0, V, 0, c * (Y[t, 1] - above))
        shrink(P[0, u], V, 0, q, 0.5 * c * step.kappa * above * (1.0 - above))
        return
    for k in range(K):
        numbers[0, k] = variance(V, k, X, t) if C > 1 else q
    settle_in(out[t], numbers[0], c, Y[t], numbers[1], numbers[2], numbers[3])
    bends = 0.0
    for k in range(K):
        p = numbers[2, k]
        bend = c * step.kappa * p * (1.0 - p)
        bends += bend
        move(w, k, V, k if C > 1 else 0, c * (Y[t, k] - p))
        if C > 1:
            shrink(P[k, u], V, k, numbers[0, k], bend)
    if C == 1:
        shrink(P[0, u], V, 0, q, bends / K)


@summing_kernel
def variance(V: Array, k: int, X: Array, t: int) -> float:
    """q = x^T P x >= 0 for row t; P x is row k of V, perhaps with zeros at the end."""
    q = 0.0
    for j in range(X.shape[1]):
        q += V[k, j] * X[t, j]
    return max(q, 0.0)


@apart_kernel
def move(w: Array, k: int, V: Array, matrix: int, step: float) -> None:
    """w += step P x, for row k of the weights and a row of V."""
    for i in range(w.shape[1]):
        w[k, i] += step * V[matrix, i]


@apart_kernel
def shrink(u: Array, V: Array, k: int, q: float, bend: float) -> None:
    """Write u such that P - u u^T is the inverse of A + bend x x^T; row k of V is P x."""
    root = math.sqrt(bend / (1.0 + bend * q))
    for i in range(u.size):
        u[i] = root * V[k, i]


@kernel
def forget(P: Array, v: Array, x: Array, d: int, rho: float, first: float) -> None:
    """P = rho P + (1 - rho) first I, and v = P x; the update u has been made."""
    for i in range(d):
        v[i] = rho * v[i] + (1.0 - rho) * first * x[i]
        for j in range(P.shape[1]):
            P[i, j] *= rho
        P[i, i] += (1.0 - rho) * first


@kernel
def settle(m: Array, q: Array, weight: float, y: Array, z: Array, p: Array) -> None:
    r"""The root z of z = m + weight q (y - softmax(z)), entry by entry, and p = softmax(z).

    z minimises :math:`\sum_k (z_k - m_k - c q_k y_k)^2/(2cq_k) + lse(z)`. This is Newton's method, whose system is
    diagonal plus rank one. The length of a long step is that of FTRL's refit, with which the function decreases.
    """
    settle_in(m, q, weight, y, z, p, np.empty(m.size))


@merged_kernel
def settle_in(m: Array, q: Array, weight: float, y: Array, z: Array, p: Array, move: Array) -> None:
    """`settle`, with a buffer (K,).

    The last step is so short that p follows by its series, without more exponentials: its error is a sixth of the cube
    of the step, and that of z is below 5e-10. With this and without an array of its own, Newton members take 0.85 of
    the time that they take with steps down to 1e-6 and another softmax (shuttle, d = 9, K = 7).
    """
    K = m.size
    copy_line(m, z)
    for _ in range(MOST_STEPS):
        softmax(z, p)
        above = along = 0.0
        for k in range(K):
            slope = weight * q[k] * p[k]
            inverse = 1.0 / (1.0 + slope)
            move[k] = (m[k] - z[k] + weight * q[k] * (y[k] - p[k])) * inverse
            above += p[k] * move[k]
            along += p[k] * (slope * inverse)
        mean = above / (1.0 - along)
        low, high = math.inf, -math.inf
        for k in range(K):
            slope = weight * q[k] * p[k]
            move[k] += mean * (slope / (1.0 + slope))
            low, high = min(low, move[k]), max(high, move[k])
        spread = high - low
        step = 1.0 if spread <= NEAR else math.log1p(spread) / spread
        for k in range(K):
            z[k] += step * move[k]
        if spread <= CLOSE:
            total = 0.0
            for k in range(K):
                away = move[k] - low
                p[k] += p[k] * (away + 0.5 * away * away)
                total += p[k]
            for k in range(K):
                p[k] /= total
            return
    softmax(z, p)
