r"""AdaGrad members: gradient steps with one rate per weight, at the cost of one product per class.

.. math:: w \leftarrow w - \eta\, g / \sqrt{\textstyle\sum g^2}, \qquad g_k = (p_k - y_k)\,x,

entry by entry. Convex losses lie above their tangents, so whatever the steps were, regret against u is at most
:math:`\sum_t g_t\cdot w_t - G\cdot u` with G the sum of the gradients: the certificate where no sharper one applies.

Two classes have opposite weights, so only those of the margin are stored; their step is twice as long. The intercept,
where there is one, is the last column and has a rate of its own: a rate for wide rows would move it too slowly.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from regretless.core.borrow import borrowed
from regretless.core.jit import kernel
from regretless.core.links import softmax
from regretless.core.types import Array
from regretless.learners.logistic.linear import forecast_row

WEIGHTS, SQUARES, GRADIENTS = range(3)  # the parts of a table (3, K, d), or (3, 1, d) for two classes


class Rates(NamedTuple):
    """The rates of one member."""

    eta: float
    last: float  # of the last column


@kernel
def run(table: Array, slope: Array, rates: Rates, X: Array, Y: Array, weight: Array, out: Array) -> None:
    """Play a block with one member. `out` holds the logits forecast, slope[0] the member's sum of g.w."""
    table, X, Y, weight, out = borrowed(table), borrowed(X), borrowed(Y), borrowed(weight), borrowed(out)
    K = Y.shape[1]
    _, C, d = table.shape
    w, squares, gradients = table[WEIGHTS], table[SQUARES], table[GRADIENTS]
    double = 2.0 if K == 2 else 1.0
    p = np.empty(K)
    for t in range(X.shape[0]):
        forecast_row(w, X, t, out)
        if weight[t] == 0.0:
            continue
        softmax(out[t], p)
        for k in range(C):
            pull = weight[t] * (p[1] - Y[t, 1] if K == 2 else p[k] - Y[t, k])
            slope[0] += pull * (out[t, 1] - out[t, 0] if K == 2 else out[t, k])
            for j in range(d):
                rate = double * (rates.eta if j < d - 1 else rates.last)
                g = pull * X[t, j]
                squares[k, j] += g * g
                gradients[k, j] += g
                w[k, j] -= rate * g / math.sqrt(max(squares[k, j], 1e-300))
