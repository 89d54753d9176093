"""The forecast rules: from the leader's forecast m and the uncertainty Q to a forecast.

Each is the optimality condition of a strongly convex problem with at most K unknowns. The solvers converge for every m
and every positive semi-definite Q in floating-point range.
"""

from __future__ import annotations

import math

import numpy as np

from regretless.core.kernels.jit import inlined_kernel, kernel, merged_kernel, shared_kernel
from regretless.core.numbers.links import softmax
from regretless.core.types import Array
from regretless.learners.second_order.algebra import (
    Work,
    add_identity_and_factor,
    congruence,
    hessian_factor,
    solve_without_pivots,
    trace,
)

NEAR, MOST_NEAR_STEPS = 1.0, 10  # of `solve_near`
ONE_STEP, TWO_STEPS, THREE_STEPS = 0.2, 0.9, 1.5  # largest k for which 1, 2, 3 Newton steps reach an error of 1e-14
LARGEST_SLIGHT = 0.45  # m / (2 + k) up to which `solve_slight_margin` has an error of 3e-15


@inlined_kernel
def tanh_of_half(m: float) -> float:
    """tanh(m/2), without a branch for the sign, which a processor cannot predict for the margins of a stream.

    AIOLI takes 0.86 of the time per row that it takes with `math.tanh` (d = 5 and d = 20).
    """
    e = math.exp(-abs(m))
    return math.copysign((1.0 - e) / (1.0 + e), m)


@inlined_kernel
def solve_margin(m: float, tanh: float, k: float) -> tuple[float, float]:
    """The root u of u + k tanh(u/2) = m for k >= 0, and T = tanh(u/2); `tanh` is tanh(m/2).

    T solves T = tanh(m/2 - hT) with h = k/2. Unless k is large, the only slow operation is tanh(m/2), which a caller
    can compute before k is known. T starts as five terms of its series in h. The Padé approximant N/D of tanh(hT),
    where hT is small, and the addition theorem give the fraction A/B that T must equal. Newton's method solves this
    equation; each step leaves about h^2 times the square of the previous error. AIOLI takes 0.66 (d = 5) to 0.75
    (d = 20) of the time per row that it takes with `solve_far_margin` for every k.
    """
    if k > THREE_STEPS:
        return solve_slight_margin(m, k) if abs(m) <= LARGEST_SLIGHT * (2.0 + k) else solve_far_margin(m, k)
    h = 0.5 * k
    square = tanh * tanh
    slope = 1.0 - square
    second = 2.0 * square - 1.0
    third = 1.0 - square * (16.0 / 3.0 - 5.0 * square)
    fourth = -1.0 + square * (31.0 / 3.0 - square * (23.0 - 14.0 * square))
    T = tanh - h * tanh * slope * (1.0 + h * (second + h * (third + h * fourth)))
    for _ in range(1 if k <= ONE_STEP else 2 if k <= TWO_STEPS else 3):
        s = h * T
        s2 = s * s
        N = s * (135135.0 + s2 * (17325.0 + s2 * (378.0 + s2)))
        D = 135135.0 + s2 * (62370.0 + s2 * (3150.0 + s2 * 28.0))
        A = tanh * D - N
        B = D - tanh * N
        T -= (T * B - A) * B / (B * B + h * slope * (D * D - N * N))
    return m - k * T, T


@kernel
def solve_slight_margin(m: float, k: float) -> tuple[float, float]:
    """`solve_margin` for k > 1 and a root that is not large: for rows whose uncertainty k outweighs m, the first ones.

    x = u/2 solves far x + near tanh(x) = t with far = 2/(2+k), near = 1 - far and t = m/(2+k). It starts as five terms
    of its series in t; one step of Halley's method with the Padé approximant N/D of tanh(x) leaves an error of the cube
    of the previous one. Without an exponential, and without a loop whose length a processor cannot predict: AIOLI's
    first 20 rows (d = 10) take 0.8 of the time that they take with `solve_far_margin`.
    """
    inverse = 1.0 / (2.0 + k)
    t, far, near = m * inverse, 2.0 * inverse, k * inverse
    square, r = t * t, near * (1.0 / 3.0)
    fifth = 3.0 * r - 0.4
    seventh = 17.0 / 105.0 + r * (12.0 * r - 3.2)
    ninth = r * (254.0 / 105.0 + r * (55.0 * r - 22.0)) - 62.0 / 945.0
    x = t + t * square * r * (1.0 + square * (fifth + square * (seventh + square * ninth)))
    x2 = x * x
    N = x * (1.0 + x2 * (5.0 / 39.0 + x2 * (2.0 / 715.0 + x2 * (1.0 / 135135.0))))
    D = 1.0 + x2 * (6.0 / 13.0 + x2 * (10.0 / 429.0 + x2 * (4.0 / 19305.0)))
    N2, D2 = N * N, D * D
    slope = 1.0 / (D2 - near * N2)
    step = (far * x * D + near * N - t * D) * D * slope
    x -= step * (1.0 - step * (t - far * x) * (D2 - N2) * slope)
    return 2.0 * x, (t - far * x) / near


@kernel
def solve_far_margin(m: float, k: float) -> tuple[float, float]:
    """`solve_margin` for every k >= 0.

    On [0, |m|] the left side is increasing and concave, and tanh(u/2) <= min(u/2, 1) gives a start below the root, from
    which Newton's iterates increase to it. (From u = m, Newton's method cycles for large k.) With Halley's correction
    the error after a step is at most the cube of the step. T is updated for the last step by its Taylor series.
    """
    size = abs(m)
    u = max(size / (1.0 + 0.5 * k), size - k)
    T = 0.0
    for _ in range(200):
        T = tanh_of_half(u)
        half = 0.5 * (1.0 - T * T)  # the derivative of tanh(u/2)
        inverse = 1.0 / (1.0 + k * half)
        step = (u + k * T - size) * inverse
        bend = -0.5 * k * half * T * step * inverse
        if bend < 0.1:
            step *= 1.0 + bend * (1.0 + bend)
        u -= step
        if abs(step) <= 2e-5:
            T -= half * step * (1.0 + 0.5 * T * step)
            break
    return math.copysign(u, m), math.copysign(T, m)


@merged_kernel
def solve_pair(a: Array, Q: Array, z: Array, p: Array) -> float:
    """`solve_logits` for two classes: one unknown, the margin z_1 - z_0."""
    m = a[1] - a[0] + 0.25 * (Q[0, 0] - Q[1, 1])
    u, _ = solve_margin(m, tanh_of_half(m), 0.25 * (Q[0, 0] - 2.0 * Q[0, 1] + Q[1, 1]))
    z[1] = 0.5 * u
    z[0] = -z[1]
    return softmax(z, p)


@merged_kernel
def leader_logits(a: Array, Q: Array, pi: Array, heat: float, z: Array) -> None:
    """z = (a - Q pi / 2) / heat up to a constant, chosen so that a has mean zero, which avoids cancellation."""
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

    By the Woodbury identity, with M the Cholesky factor of I + L^T Q L, and one step of iterative refinement: for large
    Q the identity subtracts nearly equal numbers.
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
    """A step in (0, 1] at which the slope of the objective along the direction is at most half of its start."""
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


@merged_kernel
def solve_near(a: Array, Q: Array, z: Array, p: Array, work: Work) -> float:
    """`solve_logits` for little uncertainty, by full Newton steps. Returns NaN if they do not converge.

    The derivative of z + (Q/2) softmax(z) is I + E with E = (Q/2)(diag p - p p^T). As the trace of Q/2 is below 1, the
    norm of E is below 1/2, so that elimination needs no pivots. It takes a third to a sixth of the general method's
    time (K = 3 to 10).
    """
    K = a.size
    J, rest, Qp = work.near, work.vectors[0], work.vectors[1]
    doubt, mean = 0.5 * trace(Q), 0.0
    for i in range(K):
        mean += a[i] / K
    for i in range(K):
        z[i] = a[i] - mean
    for _ in range(MOST_NEAR_STEPS):
        softmax(z, p)
        mean = 0.0
        for i in range(K):
            Qp[i] = 0.0
            for j in range(K):
                Qp[i] += Q[i, j] * p[j]
            rest[i] = a[i] - 0.5 * Qp[i] - z[i]
            mean += rest[i] / K
        for i in range(K):
            rest[i] -= mean
            for j in range(K):
                J[i, j] = 0.5 * (Q[i, j] - Qp[i]) * p[j]
            J[i, i] += 1.0
        solve_without_pivots(J, rest)
        mean = 0.0
        for i in range(K):
            mean += rest[i] / K
        largest = 0.0
        for i in range(K):
            rest[i] -= mean
            z[i] += rest[i]
            largest = max(largest, abs(rest[i]))
        if doubt * largest * largest <= 1e-16:  # the error that is left
            return softmax(z, p)
    return math.nan


@inlined_kernel
def solve_logits(a: Array, Q: Array, z: Array, p: Array, work: Work) -> float:
    """The root z of z = a - (Q/2) softmax(z), up to the all-ones direction, and p = softmax(z). Returns lse(z)."""
    if a.size == 2:
        return solve_pair(a, Q, z, p)
    lse = solve_near(a, Q, z, p, work) if 0.5 * trace(Q) < NEAR else math.nan
    return solve_far(a, Q, z, p, work) if math.isnan(lse) else lse


@shared_kernel
def solve_far(a: Array, Q: Array, z: Array, p: Array, work: Work) -> float:
    """`solve_logits` for any uncertainty and three classes or more.

    The root is z = a - Q pi / 2 at the minimiser pi of the convex G(pi) = pi^T Q pi / 4 + lse(a - Q pi / 2). It is
    found by a damped Newton method; the step is chosen by the slope of G along the direction, which is less sensitive
    to rounding than its values. For large Q the softmax is nearly an argmax and has almost no curvature, so the problem
    is first solved with softmax(z / heat), and the heat is lowered to 1.
    """
    K = a.size
    L, LQ, M, small, vectors = work.L, work.LQ, work.M, work.small, work.vectors
    pi, residual, direction, toward = vectors[0], vectors[1], vectors[2], vectors[3]
    trial, trial_p = vectors[4], vectors[5]
    doubt = 0.0
    for i in range(K):
        doubt = max(doubt, 0.5 * Q[i, i])
    pi[:] = 1.0 / K
    if doubt < 2.0:
        softmax(a, pi)  # z is close to a
    leader_logits(a, Q, pi, 1.0, z)
    reach = max(doubt, np.max(z) - np.min(z))
    coolest = max(1.0, 1e-12 * reach)  # below it z / heat would be rounding error, and p does not change
    heat = max(coolest, doubt / 30.0)
    while True:
        leader_logits(a, Q, pi, heat, z)
        enough = (1e-8 if heat == coolest else 0.1) + 1e-15 * reach / heat
        for _ in range(200):
            top = np.max(z)
            for i in range(K):
                z[i] -= top  # only differences matter; those of the leading classes are now exact
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
            for i in range(K):  # the change of the linearised softmax, and so of pi, in a full step
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
    return softmax(z, p)
