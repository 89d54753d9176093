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

The intercept may have a weaker prior than the other weights: then the last entry of the diagonal of P starts larger.

A forgetful member, which has one prior for all weights, moves P towards its starting value before every row:
P <- rho P + (1 - rho) P_start, rho < 1. What was learned long ago becomes uncertain again, and P stays well
conditioned.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from regretless.core.jit import inlined_kernel, kernel, summing_kernel
from regretless.core.links import softmax
from regretless.core.types import Array
from regretless.learners.logistic.linear import forecast_row
from regretless.learners.second_order.forecasts import solve_margin, tanh_of_half
from regretless.learners.second_order.surrogate import end_fold, flush_one, fold, fold_row, in_four, product_one

CLOSE = 1e-6  # a Newton step that changes no difference of logits by more leaves an error of its square
MOST_STEPS = 100


class Step(NamedTuple):
    """The constants of one member."""

    kappa: float  # factor of the curvature
    lam: float  # lambda, the prior
    rho: float  # what is kept of P per row; 1 forgets nothing


def first_variance(regularization: Array, n_classes: int) -> Array:
    """What the diagonal of P starts as."""
    return (2.0 if n_classes == 2 else 1.0) / regularization


@kernel
def run(P: Array, w: Array, step: Step, X: Array, Y: Array, weight: Array, out: Array) -> None:
    """Play a block with one member; `out` holds the logits forecast.

    P is (K, d, d) and w (K, d); for K = 2 their first axis has length 1.
    """
    if Y.shape[1] == 2:
        run_margin(P[0], w[0], step, X, Y, weight, out)
        return
    kappa, lam, rho = step
    K, d = w.shape
    V, U = np.empty((K, d)), np.zeros((K, d))
    q, z, p = np.empty(K), np.empty(K), np.empty(K)
    for t in range(X.shape[0]):
        c = weight[t]
        forecast_row(w, X, t, out)
        for k in range(K):
            fold(P[k], U[k : k + 1], X[t], V[k : k + 1])
            if rho < 1.0 and c != 0.0:
                forget(P[k], V[k], X, t, rho, 1.0 / lam)
            q[k] = variance(V[k], X, t)
        if c == 0.0:
            U[:] = 0.0
            continue
        settle(out[t], q, c, Y[t], z, p)
        for k in range(K):
            learn(w[k], V[k], U[k], q[k], c * (Y[t, k] - p[k]), c * kappa * p[k] * (1.0 - p[k]))
    for k in range(K):
        flush_one(P[k], U[k])


@kernel
def run_margin(P: Array, w: Array, step: Step, X: Array, Y: Array, weight: Array, out: Array) -> None:
    """`run` for two classes: one matrix, that of the margin."""
    scratch = np.zeros((2, w.size))
    v, u = scratch[0], scratch[1]
    if X.shape[0] == 1:  # it has no update of an earlier row to fold into P
        m, _ = product_one(P, w, X, 0, v)
        meet_margin(P, w, step, X, Y, weight, 0, m, v, u, out)
        flush_one(P, u)
        return
    four = in_four(P, X.shape[0] if step.rho == 1.0 else 0)  # `forget` needs all rows in P
    for t in range(X.shape[0]):
        m, _ = fold_row(P, four, u, w, X, t, v)
        meet_margin(P, w, step, X, Y, weight, t, m, v, u, out)
    end_fold(P, four, u)


@inlined_kernel
def meet_margin(
    P: Array,
    w: Array,
    step: Step,
    X: Array,
    Y: Array,
    weight: Array,
    t: int,
    m: float,
    v: Array,
    u: Array,
    out: Array,
) -> None:
    """Row t with the margin m and v = P x: forecast, see the label, step; u is the pending update of P."""
    kappa, lam, rho = step
    c = weight[t]
    if rho < 1.0 and c != 0.0:
        forget(P, v, X, t, rho, 2.0 / lam)
    q = variance(v, X, t)
    out[t, 0] = -0.5 * m
    out[t, 1] = 0.5 * m
    if c == 0.0:
        u[:] = 0.0
    else:
        pulled = m + c * q * (Y[t, 1] - 0.5)
        _, tanh = solve_margin(pulled, tanh_of_half(pulled), 0.5 * c * q)
        p = 0.5 + 0.5 * tanh
        learn(w, v, u, q, c * (Y[t, 1] - p), 0.5 * c * kappa * p * (1.0 - p))


@summing_kernel
def variance(v: Array, X: Array, t: int) -> float:
    """q = x^T P x >= 0 for row t; v = P x."""
    q = 0.0
    for j in range(v.size):
        q += v[j] * X[t, j]
    return max(q, 0.0)


@kernel
def learn(w: Array, v: Array, u: Array, q: float, step: float, bend: float) -> None:
    """w += step P x, and u such that P - u u^T is the inverse of A + bend x x^T; v = P x."""
    root = math.sqrt(bend / (1.0 + bend * q))
    for i in range(w.size):
        w[i] += step * v[i]
        u[i] = root * v[i]


@kernel
def forget(P: Array, v: Array, X: Array, t: int, rho: float, first: float) -> None:
    """P = rho P + (1 - rho) first I, and v = P x for row t."""
    for i in range(v.size):
        v[i] = rho * v[i] + (1.0 - rho) * first * X[t, i]
        for j in range(v.size):
            P[i, j] *= rho
        P[i, i] += (1.0 - rho) * first


@kernel
def settle(m: Array, q: Array, weight: float, y: Array, z: Array, p: Array) -> None:
    r"""The root z of z = m + weight q (y - softmax(z)), entry by entry, and p = softmax(z).

    z minimises :math:`\sum_k (z_k - m_k - c q_k y_k)^2/(2cq_k) + lse(z)`. This is Newton's method, whose system is
    diagonal plus rank one; the step length is that of FTRL's refit, with which the function decreases.
    """
    K = m.size
    move = np.empty(K)
    z[:] = m
    for _ in range(MOST_STEPS):
        softmax(z, p)
        above = along = 0.0
        for k in range(K):
            bent = 1.0 + weight * q[k] * p[k]
            move[k] = (m[k] - z[k] + weight * q[k] * (y[k] - p[k])) / bent
            above += p[k] * move[k]
            along += p[k] * (weight * q[k] * p[k] / bent)
        mean = above / (1.0 - along)
        low, high = math.inf, -math.inf
        for k in range(K):
            move[k] += mean * (weight * q[k] * p[k] / (1.0 + weight * q[k] * p[k]))
            low, high = min(low, move[k]), max(high, move[k])
        spread = high - low
        step = 1.0 if spread <= CLOSE else math.log1p(spread) / spread
        for k in range(K):
            z[k] += step * move[k]
        if spread <= CLOSE:
            break
    softmax(z, p)
