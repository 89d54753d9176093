r"""The member that combines the others: an online logistic regression on their logits.

Exponential weights select the best member; this one may be better than all of them. Feature i of class k is the logit
:math:`f_{ik}` of member i, centred over the classes and clipped at `FARTHEST`; the last feature is that of the mixture
of the others. One weight per feature serves all classes,

.. math:: z_k = \sum_i w_i f_{ik}, \qquad w = (0, \dots, 0, 1) \text{ before the first row},

so it starts as the mixture, and learns as fast with many classes as with two. The step is implicit along the Newton
direction :math:`v = Pg`, :math:`g = \sum_k (y_k - p_k) f_k`: s minimises the row's loss at :math:`w + sv` plus
:math:`s^2 v^TAv/2`, so no step overshoots. Then :math:`A = P^{-1}` grows by the curvature H of the row's loss along v,
:math:`Hv v^TH / v^THv \preceq H`: one update of rank one instead of K - 1, and on the streams tried as good. For two
classes both are those of newton.py.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.kernels.borrow import borrowed
from regretless.core.kernels.jit import kernel, shared_kernel
from regretless.core.numbers.links import softmax
from regretless.core.types import Array
from regretless.learners.second_order.surrogate import flush_one, product_one

FARTHEST = 15.0
PRIOR = 30.0  # lambda
CLOSE = 1e-9  # of the step length, relative to the longest
MOST_STEPS = 60
LEAST_CURVATURE = 1e-200


def start(n_members: int) -> tuple[Array, Array]:
    """The matrix and the weights before the first row, for so many other members."""
    weights = np.zeros(n_members + 1)
    weights[-1] = 1.0
    return np.eye(n_members + 1) / PRIOR, weights


@kernel
def centre(z: Array, feature: Array) -> None:
    """Write the logits of one member as a feature of each class."""
    mean = 0.0
    for k in range(z.size):
        mean += z[k]
    mean /= z.size
    for k in range(z.size):
        feature[k] = min(max(z[k] - mean, -FARTHEST), FARTHEST)


@kernel
def combine(weights: Array, features: Array, out: Array) -> None:
    """out = the sum of the features (n, K) with these weights: the logits, or how a step changes them."""
    for k in range(out.size):
        out[k] = 0.0
    for i in range(weights.size):
        for k in range(out.size):
            out[k] += weights[i] * features[i, k]


@shared_kernel
def learn(P: Array, w: Array, features: Array, z: Array, y: Array, weight: float, buffers: tuple[Array, Array]) -> None:
    """Learn a row with the logits z that were forecast. `buffers` are (3, K) and (3, n)."""
    P, w, features, z, y, buffers = borrowed((P, w, features, z, y, buffers))
    n, K = features.shape
    p, h, moved = buffers[0][0], buffers[0][1], buffers[0][2]
    rows = buffers[1]
    g, v, u = rows[0], rows[1], rows[2]
    softmax(z, p)
    for k in range(K):
        h[k] = y[k] - p[k]
    along(features, h, g)
    product_one(P, w, rows, 0, v)
    combine(v, features, h)
    length = step_length(z, h, y, weight, moved, p)
    mean = 0.0
    for i in range(n):
        w[i] += length * v[i]
    for k in range(K):
        mean += p[k] * h[k]
    curvature = 0.0
    for k in range(K):
        away = h[k] - mean
        h[k] = p[k] * away
        curvature += h[k] * away
    if curvature < LEAST_CURVATURE:
        return
    along(features, h, g)
    product_one(P, w, rows, 0, u)
    q = 0.0
    for i in range(n):
        q += u[i] * g[i]
    root = math.sqrt(weight / (curvature + weight * max(q, 0.0)))
    for i in range(n):
        u[i] *= root
    flush_one(P, u)


@kernel
def step_length(z: Array, h: Array, y: Array, weight: float, moved: Array, p: Array) -> float:
    """The s in [0, weight] at which the slope of the loss at z + s h plus s^2 c/2, c = (y - p).h, is 0.

    `moved` becomes z + s h and p its softmax; at the start p is that of z. Newton's method, with bisection where a step
    leaves the interval or is not half as long as the one before: the slope is flat far from the root, on both sides.
    """
    K = z.size
    square = target = 0.0
    for k in range(K):
        square += (y[k] - p[k]) * h[k]
        target += y[k] * h[k]
    low, high, s, last = 0.0, weight, weight, 2.0 * weight
    for _ in range(MOST_STEPS):
        for k in range(K):
            moved[k] = z[k] + s * h[k]
        softmax(moved, p)
        mean = spread = 0.0
        for k in range(K):
            mean += p[k] * h[k]
        for k in range(K):
            spread += p[k] * (h[k] - mean) * (h[k] - mean)
        slope, bend = s * square - weight * (target - mean), square + weight * spread
        if slope > 0.0:
            high = s
        else:
            low = s
        after = s - slope / bend if bend > 0.0 else s
        if not low <= after <= high or abs(after - s) > 0.5 * last:
            after = 0.5 * (low + high)
        last = abs(after - s)
        s = after
        if last <= CLOSE * weight:
            break
    for k in range(K):
        moved[k] = z[k] + s * h[k]
    softmax(moved, p)
    return s


@kernel
def along(features: Array, x: Array, out: Array) -> None:
    """out = the features (n, K) times x, a number per class."""
    for i in range(out.size):
        out[i] = 0.0
        for k in range(x.size):
            out[i] += features[i, k] * x[k]
