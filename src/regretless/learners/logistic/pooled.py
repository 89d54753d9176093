r"""Newton members with one matrix for all classes, for expanded rows: they have many columns, and a matrix per class
would take K times as long.

.. math:: A = \lambda I + \kappa \sum \overline{p(1-p)}\, xx^T, \qquad
          \overline{p(1-p)} = \frac1K \sum_k p_k(1-p_k),

and the step is that of newton.py, with the same q for all classes. On the streams tried, the mean of the curvatures is
as good as one matrix per class, or better. For two classes it is the same: that of the margin.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.jit import kernel, summing_kernel
from regretless.core.types import Array
from regretless.learners.logistic import linear
from regretless.learners.logistic.newton import Step, run_margin, settle, variance
from regretless.learners.second_order.surrogate import end_fold, fold_row, in_four

linear_forecast = linear.forecast_block


@kernel
def run(P: Array, w: Array, step: Step, X: Array, Y: Array, weight: Array, out: Array) -> None:
    """Play a block with one member; `out` holds the logits forecast. P is (D, D), w (K, D), or (1, D) for K = 2."""
    K, D = Y.shape[1], P.shape[0]
    if K == 2:
        run_margin(P, w[0], step, X, Y, weight, out)
        return
    v, u, q, z, p = np.empty(D), np.zeros(D), np.empty(K), np.empty(K), np.empty(K)
    four = in_four(P, X.shape[0])
    for t in range(X.shape[0]):
        c = weight[t]
        fold_row(P, four, u, w[0], X, t, v)
        for k in range(K):
            out[t, k] = score(w, k, X, t)
        if c == 0.0:
            u[:] = 0.0
            continue
        q[:] = variance(v, X, t)
        settle(out[t], q, c, Y[t], z, p)
        bend = 0.0
        for k in range(K):
            bend += p[k] * (1.0 - p[k])
        bend *= c * step.kappa / K
        root = math.sqrt(bend / (1.0 + bend * q[0]))
        for k in range(K):
            pull = c * (Y[t, k] - p[k])
            for i in range(D):
                w[k, i] += pull * v[i]
        for i in range(D):
            u[i] = root * v[i]
    end_fold(P, four, u)


@summing_kernel
def score(w: Array, k: int, X: Array, t: int) -> float:
    """The logit of class k for row t."""
    found = 0.0
    for j in range(w.shape[1]):
        found += w[k, j] * X[t, j]
    return found


@kernel
def forecast_block(w: Array, X: Array, out: Array) -> None:
    """Write the logits of a block of rows, all from the same weights."""
    if out.shape[1] == 2:
        linear_forecast(w, X, out)
        return
    for t in range(X.shape[0]):
        for k in range(out.shape[1]):
            out[t, k] = score(w, k, X, t)
