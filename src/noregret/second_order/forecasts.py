"""The forecast rules: from the leader's forecast m and the uncertainty Q to a forecast.

Each is the optimality condition of a strongly convex problem with at most K unknowns. The solvers here
converge for every m and every positive semi-definite Q that floating point can hold.
"""

from __future__ import annotations

import math

import numpy as np

from noregret._jit import kernel
from noregret._types import Array
from noregret.losses import softmax
from noregret.second_order.algebra import Work, add_identity_and_factor, congruence, hessian_factor


@kernel
def solve_margin(m: float, k: float) -> tuple[float, float]:
    """The root u of u + k tanh(u/2) = m, and sigmoid(u), for m >= 0 and k >= 0.

    On [0, m] the left side is increasing and concave, and tanh(u/2) <= min(u/2, 1) gives a start below
    the root: from there Newton's iterates rise to it. (Started at m, Newton cycles once k is large.) For
    small k, the usual case, the left side is nearly linear and Padé's fraction for tanh starts so close
    that one step of Halley's is the last: what it leaves, k step^3 at most, is below 1e-14. The sigmoid follows the
    last step by its Taylor series.
    """
    if k < 0.25:
        x = min(0.5 * m, 3.7)
        xx = x * x
        above = x * (945.0 + xx * (105.0 + xx))
        below = 945.0 + xx * (420.0 + 15.0 * xx)
        u = m - k * above * below / (below * below + 0.5 * k * (below * below - above * above))
    else:
        u = max(m / (1.0 + 0.5 * k), m - k)
    p = 0.5
    for _ in range(200):
        p = 1.0 / (1.0 + math.exp(-u))
        h = p * (1.0 - p)
        residual = u + k * (2.0 * p - 1.0) - m
        inverse = 1.0 / (1.0 + 2.0 * k * h)
        step = residual * inverse
        bend = k * h * (1.0 - 2.0 * p) * step * inverse
        if bend < 0.1:
            step *= 1.0 + bend * (1.0 + bend)
        if abs(step) <= 3e-4 and min(k, 1.0) * abs(step) * step * step <= 1e-14:
            p -= h * step * (1.0 - step * (0.5 * (1.0 - 2.0 * p) - step * (1.0 - 6.0 * h) / 6.0))
            return u - step, p
        u -= step
        if abs(step) <= 1e-15 * u:
            break
    return u, p


@kernel
def solve_pair(a: Array, Q: Array, z: Array, p: Array) -> None:
    """`solve_logits` for two classes: one unknown, the margin z_1 - z_0."""
    m = a[1] - a[0] + 0.25 * (Q[0, 0] - Q[1, 1])
    u, _ = solve_margin(abs(m), 0.25 * (Q[0, 0] - 2.0 * Q[0, 1] + Q[1, 1]))
    z[1] = 0.5 * u if m >= 0.0 else -0.5 * u
    z[0] = -z[1]
    softmax(z, p)


@kernel
def leader_logits(a: Array, Q: Array, pi: Array, heat: float, z: Array) -> None:
    """z = (a - Q pi / 2) / heat, up to a constant: the one that brings a to mean zero, lest its size drown the rest."""
    mean = 0.0
    for i in range(a.size):
        mean += a[i] / a.size
    for i in range(a.size):
        z[i] = a[i] - mean
        for j in range(a.size):
            z[i] -= 0.5 * Q[i, j] * pi[j]
        z[i] /= heat


@kernel
def newton_direction(
    L: Array, LQ: Array, M: Array, residual: Array, direction: Array, rest: Array, small: Array
) -> float:
    """direction = -(I + (LQ)^T L^T)^{-1} residual with mean zero; returns its largest entry.

    By Woodbury with M the Cholesky factor of I + L^T Q L, and once more on what is left over: the identity
    subtracts nearly equal numbers when Q is large.
    """
    K, r = L.shape
    direction[:] = 0.0
    for _ in range(2):
        for i in range(K):
            rest[i] = -residual[i] - direction[i]
        for j in range(r):
            along = 0.0
            for i in range(K):
                along += L[i, j] * direction[i]
            for i in range(K):
                rest[i] -= LQ[j, i] * along
        for j in range(r):
            entry = 0.0
            for i in range(K):
                entry += L[i, j] * rest[i]
            for k in range(j):
                entry -= M[j, k] * small[k]
            small[j] = entry / M[j, j]
        for j in range(r - 1, -1, -1):
            entry = small[j]
            for k in range(j + 1, r):
                entry -= M[k, j] * small[k]
            small[j] = entry / M[j, j]
        for i in range(K):
            direction[i] += rest[i]
            for j in range(r):
                direction[i] -= LQ[j, i] * small[j]
    mean = 0.0
    for i in range(K):
        mean += direction[i] / K
    largest = 0.0
    for i in range(K):
        direction[i] -= mean
        largest = max(largest, abs(direction[i]))
    return largest


@kernel
def step_length(z: Array, direction: Array, p: Array, pi: Array, toward: Array, trial: Array, trial_p: Array) -> float:
    """A step in (0, 1] at which the slope of the objective along the direction has at least halved."""
    first = 0.0
    for i in range(z.size):
        first += direction[i] * (p[i] - pi[i])
    lower, upper, step = 0.0, 1.0, 1.0
    for _ in range(60):
        for i in range(z.size):
            trial[i] = z[i] + step * direction[i]
        softmax(trial, trial_p)
        slope = 0.0
        for i in range(z.size):
            slope += direction[i] * (trial_p[i] - pi[i] - step * toward[i])
        if abs(slope) <= 0.5 * abs(first) or lower == 1.0:
            break
        if slope > 0.0:
            upper = step
        else:
            lower = step
        step = 0.5 * (lower + upper)
    return step


@kernel
def solve_logits(a: Array, Q: Array, z: Array, p: Array, work: Work) -> None:
    """The root z of z = a - (Q/2) softmax(z), up to the all-ones direction, and p = softmax(z).

    The root is z = a - Q pi / 2 at the minimiser pi of the convex G(pi) = pi^T Q pi / 4 + lse(a - Q pi / 2). Damped
    Newton, the step chosen by the slope of G along the direction (slopes survive rounding where values do
    not). When Q is large the softmax is nearly an argmax and Newton sees no curvature; so the problem is
    first solved with softmax(z / heat), and the heat is lowered to 1.
    """
    K = a.size
    if K == 2:
        solve_pair(a, Q, z, p)
        return
    L, LQ, M, small, vectors = work.L, work.LQ, work.M, work.small, work.vectors
    pi, residual, direction, toward = vectors[0], vectors[1], vectors[2], vectors[3]
    trial, trial_p = vectors[4], vectors[5]
    doubt = 0.0
    for i in range(K):
        doubt = max(doubt, 0.5 * Q[i, i])
    pi[:] = 1.0 / K
    if doubt < 2.0:
        softmax(a, pi)  # z lies close to a
    leader_logits(a, Q, pi, 1.0, z)
    reach = max(doubt, np.max(z) - np.min(z))
    coolest = max(1.0, 1e-12 * reach)  # below, z / heat would be rounding; p has long settled
    heat = max(coolest, doubt / 30.0)
    while True:
        leader_logits(a, Q, pi, heat, z)
        enough = (1e-8 if heat == coolest else 0.1) + 1e-15 * reach / heat
        for _ in range(200):
            top = np.max(z)
            for i in range(K):
                z[i] -= top  # only differences matter, and those of the leading classes are then exact
            softmax(z, p)
            leader_logits(a, Q, p, heat, residual)
            for i in range(K):
                residual[i] = z[i] - residual[i]
            mean = 0.0
            for i in range(K):
                mean += residual[i] / K
            for i in range(K):
                residual[i] -= mean
            hessian_factor(p, 1.0, L)
            congruence(L, Q, 0.5 / heat, LQ, M)
            add_identity_and_factor(M)
            size = newton_direction(L, LQ, M, residual, direction, trial, small)
            for i in range(K):  # where the linearised softmax, and so pi, goes with a full step
                toward[i] = p[i] - pi[i]
            for j in range(K - 1):
                along = 0.0
                for i in range(K):
                    along += L[i, j] * direction[i]
                for i in range(K):
                    toward[i] += L[i, j] * along
            step = 1.0
            if size > enough:
                step = step_length(z, direction, p, pi, toward, trial, trial_p)
            for i in range(K):
                z[i] += step * direction[i]
                pi[i] += step * toward[i]
            if size <= enough:
                break
        if heat == coolest:
            break
        heat = max(coolest, heat / 20.0)
    softmax(z, p)
