r"""The projection onto a ball in the norm of :math:`A = P^{-1}`, by products with P.

The nearest point is :math:`(I + \mu P)^{-1} w`, with :math:`\mu \ge 0` such that its norm is the radius. The
Lanczos recurrence from w gives orthonormal :math:`Q_k` and a tridiagonal :math:`T_k` with
:math:`P Q_k = Q_k T_k + \beta_k q_{k+1} e_k^T`, the same for every :math:`\mu`. So
:math:`y = (I + \mu T_k)^{-1} |w| e_1` solves :math:`(I + \mu P) Q_k y = w` up to a residual of norm
:math:`\mu \beta_k |y_k|`, which bounds the error, because :math:`I + \mu P \ge I`. A step costs one product with P. The
number of steps depends on the condition of :math:`I + \mu P`: a dozen if w is close to the ball, or if P has few
distinct eigenvalues. If it would exceed `MOST_STEPS`, the eigenvectors of P are computed instead.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import kernel, shared_kernel
from regretless.core.types import Array
from regretless.learners.second_order.algebra import dot

MOST_STEPS = 48
ACCURACY = 4e-16  # of the residual, relative to w
BETWEEN_LOOKS = 4  # steps between two tests of the residual


@shared_kernel
def project(P: Array, w: Array, radius: float) -> None:
    """Replace w by the nearest point of the ball in the norm of A = P^{-1}."""
    if not project_by_steps(P, w, radius):
        project_by_eigenvectors(P, w, radius)


@shared_kernel
def project_by_steps(P: Array, w: Array, radius: float) -> bool:
    """Project by the Lanczos recurrence; returns False, with w unchanged, if it needs too many steps."""
    size = math.sqrt(dot(w, w))
    most = min(MOST_STEPS, w.size)
    Q = np.empty((most + 1, w.size))
    diagonal, beside = np.empty(most), np.empty(most)
    y, slope, pivots = np.empty(most), np.empty(most), np.empty(most)
    for i in range(w.size):
        Q[0, i] = w[i] / size
    mu = 0.0
    for k in range(most):
        new = Q[k + 1]
        for i in range(w.size):
            new[i] = dot(P[i], Q[k])
        diagonal[k] = dot(new, Q[k])
        subtract(diagonal[k], Q[k], new)
        if k > 0:
            subtract(beside[k - 1], Q[k - 1], new)
        for j in range(k + 1):  # orthogonalise again, against rounding
            subtract(dot(new, Q[j]), Q[j], new)
        beside[k] = math.sqrt(dot(new, new))
        ended = beside[k] <= 1e-15 * diagonal[0] or k == most - 1
        if (k + 1) % BETWEEN_LOOKS == 0 or ended:
            mu = multiplier(diagonal[: k + 1], beside, size, radius, mu, y, slope, pivots)
            if mu * beside[k] * abs(y[k]) <= ACCURACY * size or k + 1 == w.size:
                w[:] = 0.0
                for j in range(k + 1):
                    subtract(-y[j], Q[j], w)
                return True
        if ended:
            return False
        for i in range(w.size):
            new[i] /= beside[k]
    return False


@kernel
def multiplier(
    diagonal: Array, beside: Array, size: float, radius: float, mu: float, y: Array, slope: Array, pivots: Array
) -> float:
    """The mu for which y = (I + mu T)^{-1} size e_1 has norm `radius`: Newton on 1/norm, nearly linear in mu."""
    k = diagonal.size
    for _ in range(100):
        solve(diagonal, beside, mu, size, y, pivots)
        square = dot(y[:k], y[:k])
        if abs(math.sqrt(square) / radius - 1.0) <= 4e-16:
            break
        # d|y|^2/dmu = -2 y.(I + mu T)^{-1} T y
        for i in range(k):
            slope[i] = diagonal[i] * y[i]
            if i > 0:
                slope[i] += beside[i - 1] * y[i - 1]
            if i < k - 1:
                slope[i] += beside[i] * y[i + 1]
        back_substitute(diagonal, beside, mu, slope, pivots)
        along = dot(y[:k], slope[:k])
        step = (math.sqrt(square) / radius - 1.0) * square / along
        if abs(step) <= 2e-16 * mu:
            break
        mu = max(0.0, mu + step)
    return mu


@kernel
def solve(diagonal: Array, beside: Array, mu: float, size: float, y: Array, pivots: Array) -> None:
    """y = (I + mu T)^{-1} size e_1, and the pivots of the elimination."""
    k = diagonal.size
    pivots[0] = 1.0 + mu * diagonal[0]
    for i in range(1, k):
        pivots[i] = 1.0 + mu * diagonal[i] - (mu * beside[i - 1]) ** 2 / pivots[i - 1]
    y[0] = size
    for i in range(1, k):
        y[i] = 0.0
    back_substitute(diagonal, beside, mu, y, pivots)


@kernel
def back_substitute(diagonal: Array, beside: Array, mu: float, y: Array, pivots: Array) -> None:
    """y <- (I + mu T)^{-1} y."""
    k = diagonal.size
    for i in range(1, k):
        y[i] -= mu * beside[i - 1] / pivots[i - 1] * y[i - 1]
    y[k - 1] /= pivots[k - 1]
    for i in range(k - 2, -1, -1):
        y[i] = (y[i] - mu * beside[i] * y[i + 1]) / pivots[i]


@kernel
def subtract(factor: float, q: Array, v: Array) -> None:
    """v <- v - factor q."""
    for i in range(v.size):
        v[i] -= factor * q[i]


@shared_kernel
def project_by_eigenvectors(P: Array, w: Array, radius: float) -> None:
    """Project in the eigenbasis of P, by Newton on 1/norm: it is nearly linear in mu, and iterates from 0 increase."""
    eigenvalues, vectors = np.linalg.eigh(P)
    coordinates = vectors.T @ w
    mu = 0.0
    for _ in range(200):
        square = 0.0
        slope = 0.0
        for i in range(w.size):
            shrunk = coordinates[i] / (1.0 + mu * eigenvalues[i])
            square += shrunk * shrunk
            slope += shrunk * shrunk * eigenvalues[i] / (1.0 + mu * eigenvalues[i])
        size = math.sqrt(square)
        if size <= radius * (1.0 + 1e-15):
            break
        mu += (size / radius - 1.0) * square / slope
    for i in range(w.size):
        coordinates[i] /= 1.0 + mu * eigenvalues[i]
    copy_line(vectors @ coordinates, w)
