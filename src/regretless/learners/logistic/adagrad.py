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

from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.jit import apart_kernel, merged_kernel, shared_kernel
from regretless.core.numbers.links import softmax
from regretless.core.types import Array
from regretless.learners.logistic.linear import forecast_row
from regretless.learners.logistic.scaling import RANGED

WEIGHTS, SQUARES, GRADIENTS = range(3)  # the parts of a table (3, K, d), or (3, 1, d) for two classes


class Rates(NamedTuple):
    """The rates of one member."""

    eta: float
    last: float  # of the last column


@shared_kernel
def run(
    tables: Array,
    slopes: Array,
    rates: Array,
    versions: tuple[Array, Array],
    Y: Array,
    weight: Array,
    out: Array,
) -> None:
    """Play a block with member after member; `out` (members, at least n, K) holds the logits forecast.

    `slopes` has each member's sum of g.w, `rates` the entries of `Rates` and which version of the rows it plays on.
    """
    tables, slopes = borrowed(tables), borrowed(slopes)
    Y, weight, out = borrowed(Y), borrowed(weight), borrowed(out)
    own_p = np.empty(Y.shape[1])
    p = borrowed(own_p)
    for i in range(tables.shape[0]):
        X = borrowed(versions[1] if rates[i, 2] == RANGED else versions[0])
        slopes[i] = run_member(tables[i], slopes[i], Rates(rates[i, 0], rates[i, 1]), X, Y, weight, p, out[i])
    keep(own_p)


@merged_kernel
def run_member(
    table: Array, slope: float, rates: Rates, X: Array, Y: Array, weight: Array, p: Array, out: Array
) -> float:
    """Play a block with one member; returns its sum of g.w, which is `slope` before."""
    K = Y.shape[1]
    _, C, d = table.shape
    w, squares, gradients = table[WEIGHTS], table[SQUARES], table[GRADIENTS]
    double, before = 2.0 if K == 2 else 1.0, max(d - 1, 0)  # the columns before the last, if there are any
    for t in range(X.shape[0]):
        forecast_row(w, X, t, out)
        if weight[t] == 0.0:
            continue
        softmax(out[t], p)
        for k in range(C):
            pull = weight[t] * (p[1] - Y[t, 1] if K == 2 else p[k] - Y[t, k])
            slope += pull * (out[t, 1] - out[t, 0] if K == 2 else out[t, k])
            step(w[k], squares[k], gradients[k], X[t], pull, double * rates.eta, 0, before)
            step(w[k], squares[k], gradients[k], X[t], pull, double * rates.last, before, d)
    return slope


@apart_kernel
def step(w: Array, squares: Array, gradients: Array, x: Array, pull: float, rate: float, first: int, last: int) -> None:
    """Change the weights `first` to `last` - 1 of one class."""
    for j in range(first, last):
        g = pull * x[j]
        squares[j] += g * g
        gradients[j] += g
        w[j] -= rate * g / math.sqrt(max(squares[j], 1e-300))
