r"""Members that take gradient steps: AdaGrad, a rate for every weight, at the cost of a product a class.

.. math:: w \leftarrow w - \eta\, g / \sqrt{\textstyle\sum g^2}, \qquad g_k = (p_k - y_k)\,x,

entry by entry. Convex losses lie above their tangents, so whatever the steps were, regret against u is at most
:math:`\sum_t g_t\cdot w_t - G\cdot u` with G the sum of the gradients: the certificate where nothing better is at hand.

Two classes have opposite weights, so those of the margin alone are kept; their step is twice as long.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.jit import kernel
from regretless.core.links import softmax
from regretless.core.types import Array

WEIGHTS, SQUARES, GRADIENTS = range(3)  # the parts of a table (3, K, d), or (3, 1, d) for two classes


@kernel
def run(table: Array, slopes: Array, i: int, eta: float, X: Array, Y: Array, weight: Array, out: Array) -> None:
    """Member i over a block: `out` are the logits forecast. slopes[i] is its sum of g.w."""
    K = Y.shape[1]
    _, C, d = table.shape
    w, squares, gradients = table[WEIGHTS], table[SQUARES], table[GRADIENTS]
    rate = 2.0 * eta if K == 2 else eta
    p = np.empty(K)
    for t in range(X.shape[0]):
        say(w, X, t, out)
        if weight[t] == 0.0:
            continue
        softmax(out[t], p)
        for k in range(C):
            slope = weight[t] * (p[1] - Y[t, 1] if K == 2 else p[k] - Y[t, k])
            slopes[i] += slope * (out[t, 1] - out[t, 0] if K == 2 else out[t, k])
            for j in range(d):
                g = slope * X[t, j]
                squares[k, j] += g * g
                gradients[k, j] += g
                w[k, j] -= rate * g / math.sqrt(max(squares[k, j], 1e-300))


@kernel
def say(w: Array, X: Array, t: int, out: Array) -> None:
    """The logits of row t."""
    C, d = w.shape
    for k in range(C):
        score = 0.0
        for j in range(d):
            score += w[k, j] * X[t, j]
        out[t, k] = score
    if C == 1:
        score = out[t, 0]
        out[t, 0], out[t, 1] = -0.5 * score, 0.5 * score


@kernel
def forecast_block(table: Array, X: Array, out: Array) -> None:
    """The logits of a block of rows, all from the same weights."""
    for t in range(X.shape[0]):
        say(table[WEIGHTS], X, t, out)
