"""The centre of the posterior: the minimiser of losses - mu ln(1 - |U|^2) over the unit ball.

The barrier keeps the point away from the border of the ball. The losses there are above their minimum by at most mu:
the gradients cancel, so by convexity the excess is at most g.U + |g| = 2 mu |U| / (1 + |U|).
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.kernels.jit import kernel, shared_kernel
from regretless.core.types import Array
from regretless.learners.refitting.posterior import gaps, slope
from regretless.learners.second_order.algebra import add_identity_and_factor, backward, dot, forward, norm

MOST_STEPS = 1000


@shared_kernel
def centre(X: Array, Y: Array, G: Array, U: Array, mu: float, Z: Array, M: Array) -> float:
    """Move U to the centre, by Newton's method with a line search.

    Z becomes its gaps, and M the Cholesky factor of the Hessian of losses and barrier there. Returns a bound on the
    losses at U minus their minimum. Far from the centre the barrier is first raised until Newton's step is reliable,
    and then lowered to mu.
    """
    u = U.reshape(-1)
    g, H, step = np.empty(u.size), np.empty(M.shape), np.empty(U.shape)
    a = step.reshape(-1)
    C = np.empty(Z.shape)
    excess, height = 0.0, 0.0
    for _ in range(MOST_STEPS):
        gaps(X, G, U, Z)
        quadratic(X, Y, G, Z, g, H)
        excess = dot(g, u) + norm(g)
        if height == 0.0:
            height = mu
            while newton(H, g, u, height, M, a) > height:
                height *= 10.0
        square = newton(H, g, u, height, M, a)
        if square <= 0.01 * height and height > mu:
            height = max(mu, 0.1 * height)
            square = newton(H, g, u, height, M, a)
        if height == mu and square <= 0.01 * mu and excess <= 2.0 * mu:
            break
        gaps(X, G, step, C)
        t = along(Z, C, Y, u, a, height)
        for j in range(u.size):
            u[j] += t * a[j]
    return excess


@kernel
def newton(H: Array, g: Array, u: Array, mu: float, M: Array, a: Array) -> float:
    """a = the Newton step for losses and barrier at u, M the Cholesky factor of their Hessian; the step's square."""
    room = 1.0 - dot(u, u)
    for j in range(u.size):
        a[j] = -g[j] - 2.0 * mu * u[j] / room
        for k in range(j + 1):
            M[j, k] = (0.5 * room / mu) * H[j, k] + 2.0 * u[j] * u[k] / room
    add_identity_and_factor(M)
    M *= math.sqrt(2.0 * mu / room)
    forward(M, a)
    square = dot(a, a)
    backward(M, a)
    return square


@kernel
def quadratic(X: Array, Y: Array, G: Array, Z: Array, g: Array, H: Array) -> None:
    """The gradient and the Hessian (its lower triangle) of the losses in the weights."""
    d, r, K = X.shape[1], G.shape[0], Z.shape[1]
    p, s, S = np.empty(K), np.empty(K), np.empty((r, r))
    g[:] = 0.0
    H[:] = 0.0
    for i in range(X.shape[0]):
        x = X[i]
        slope(Z[i], Y[i], p, s)
        mass = Y[i].sum()
        for k in range(r):
            for l in range(r):
                S[k, l] = -mass * p[k + 1] * p[l + 1]
            S[k, k] = 0.0
            for l in range(K):
                if l != k + 1:
                    S[k, k] += mass * p[k + 1] * p[l]
        for a in range(r):
            first = 0.0
            for k in range(r):
                first += G[k, a] * s[k + 1]
            for j in range(d):
                g[a * d + j] += first * x[j]
            for b in range(a + 1):
                second = 0.0
                for k in range(r):
                    for l in range(r):
                        second += G[k, a] * S[k, l] * G[l, b]
                for j in range(d):
                    for m in range(d if b < a else j + 1):
                        H[a * d + j, b * d + m] += second * x[j] * x[m]


@kernel
def chord(u: Array, a: Array) -> float:
    """The t > 0 for which u + t a, u in the unit ball, is on its border."""
    b, square = dot(u, a), dot(a, a)
    room = 1.0 - dot(u, u)
    root = math.sqrt(b * b + square * room)
    return room / (b + root) if b > 0.0 else (root - b) / square


@kernel
def along(Z: Array, C: Array, Y: Array, u: Array, a: Array, mu: float) -> float:
    """A t that approximately minimises losses and barrier at u + t a, where the gaps are Z + t C.

    Bracketed Newton steps, until the slope is a tenth of its first value.
    """
    K = Z.shape[1]
    z, p, s = np.empty(K), np.empty(K), np.empty(K)
    low, high, t = 0.0, chord(u, a), 0.0
    uu, ua, aa = dot(u, u), dot(u, a), dot(a, a)
    start = 0.0
    for _ in range(200):
        room = 1.0 - (uu + 2.0 * t * ua + t * t * aa)
        if room > 0.0:
            first = 2.0 * mu * (ua + t * aa) / room
            second = 2.0 * mu * aa / room + first * first / mu
            for i in range(Z.shape[0]):
                for k in range(K):
                    z[k] = Z[i, k] + t * C[i, k]
                slope(z, Y[i], p, s)
                mean = 0.0
                for k in range(K):
                    first += s[k] * C[i, k]
                    mean += p[k] * C[i, k]
                mass = Y[i].sum()
                for k in range(K):
                    second += mass * p[k] * (C[i, k] - mean) ** 2
        else:
            first, second = math.inf, 1.0
        if t == 0.0:
            start = first
        elif abs(first) <= 0.1 * abs(start):
            break
        if first < 0.0:
            low = t
        else:
            high = t
        t -= first / second
        if not low < t < high:
            t = 0.5 * (low + high)
    return t
