r"""The log posterior of the aggregating forecaster: minus the sum of the log losses of the rows, on the unit ball.

Weights are an (r, d) array U of norm at most 1, r = K - 1. A row's logits above that of the first class, its *gaps*,
are z = G U x: for two classes the margin, in general K - 1 numbers that determine the softmax. `scale` makes G, which
includes the radius of the ball. Labels are multiplied by the row's weight: Y holds the weight of each class.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.kernels.jit import kernel
from regretless.core.numbers.links import leader
from regretless.core.types import Array
from regretless.learners.second_order.algebra import dot
from regretless.learners.second_order.surrogate import helmert


def scale(n_classes: int, radius: float) -> Array:
    """G (r, r): weights in the unit ball to gaps. Two classes: weights of the margin; more: of mean-zero logits."""
    H = helmert(n_classes) if n_classes > 2 else np.array([[-0.5], [0.5]])
    return np.ascontiguousarray(radius * (H[1:] - H[0]))


@kernel
def gaps(X: Array, G: Array, U: Array, Z: Array) -> None:
    """Z (n, K) = the logits of every row, that of the first class being 0."""
    r = G.shape[0]
    V = np.zeros(U.shape)
    for k in range(r):
        for a in range(r):
            for j in range(U.shape[1]):
                V[k, j] += G[k, a] * U[a, j]
    for i in range(X.shape[0]):
        Z[i, 0] = 0.0
        for k in range(r):
            Z[i, k + 1] = dot(V[k], X[i])


@kernel
def loss(z: Array, y: Array) -> float:
    """The log loss of logits with class weights y, as a sum of non-negative terms."""
    top = leader(z)
    mass = total = short = 0.0
    for k in range(z.size):
        mass += y[k]
        if k != top:
            total += math.exp(z[k] - z[top])
            short += y[k] * (z[top] - z[k])
    return short + mass * math.log1p(total)


@kernel
def total_loss(Z: Array, Y: Array) -> float:
    """The loss of all rows, by compensated summation: the total may be 1e5 where differences of 1e-10 matter."""
    total = lost = 0.0
    for i in range(Z.shape[0]):
        term = loss(Z[i], Y[i]) - lost
        up = total + term
        lost = (up - total) - term
        total = up
    return total


@kernel
def slope(z: Array, y: Array, p: Array, s: Array) -> None:
    """p = softmax(z), and s = the derivative of the loss in z, without cancellation: mass p_k - y_k."""
    top = leader(z)
    total = 0.0
    for k in range(z.size):
        p[k] = math.exp(z[k] - z[top])
        total += p[k]
    for k in range(z.size):
        p[k] /= total
    for k in range(z.size):
        s[k] = 0.0
        for j in range(z.size):
            if j != k:
                s[k] += y[j] * p[k] - y[k] * p[j]
