"""The loop of FOLKLORE and GAF for K classes. They differ in the forecast, and in the point of each quadratic."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.jit import inlined_kernel, kernel, merged_kernel, shared_kernel
from regretless.core.numbers.tally import ROWS, record
from regretless.core.types import Array
from regretless.learners.second_order.algebra import (
    Work,
    distance,
    dot,
    hessian_factor,
    trace,
    workspace,
)
from regretless.learners.second_order.curvature import kappa_of
from regretless.learners.second_order.expectation import fresh_points, over_points, three_classes, two_classes
from regretless.learners.second_order.forecasts import solve_logits
from regretless.learners.second_order.panels import Panel, coefficients, look_at, variance
from regretless.learners.second_order.rounding import MASS, ROOT, begin_root, charge, most_mass, note_jump, watch
from regretless.learners.second_order.surrogate import (
    SurrogateState,
    apply,
    apply_to_root,
    flush,
    fold,
    look,
    product,
    weigh,
)

QUADRATURE, SOBOL, MONTE_CARLO = range(3)


class Sampling(NamedTuple):
    """How GAF computes its expectation."""

    method: int
    points: Array  # (n_samples, K - 1); MONTE_CARLO writes fresh draws into it
    seed: int
    mu: float  # weight of the uniform distribution


class MulticlassConstants(NamedTuple):
    """The constants of the kernels."""

    radius: float
    regularization: float
    code: int  # the curvature rule
    number: float  # the curvature, if it is given as a number
    feature_bound: float  # 0: each row uses its own norm
    H: Array  # helmert(K): from reduced to logit coordinates
    sampling: Sampling | None  # None for FOLKLORE; known at compile time, so that each learner compiles its own loop
    pull: float  # the factor of Q in FOLKLORE's forecast: above 1 after merging


class Digits(NamedTuple):
    """Limits for rounding errors."""

    most_mass: float  # up to which P has enough digits
    most_growth: float  # the largest growth of A within a panel
    variance: float  # the trace of Q in this growth
    n_weights: int  # the size of P


@inlined_kernel
def folklore_forecast(work: Work, pull: float, z: Array) -> float:
    """Logits z, p = softmax(z), and e = z - m up to a constant, which every Hessian annihilates; returns lse(z)."""
    m, e, p, Q = work.m, work.e, work.p, work.S
    K = m.size
    for a in range(K):
        for b in range(K):
            Q[a, b] = pull * work.Q[a, b]
        e[a] = m[a] + 0.25 * Q[a, a]
    size = solve_logits(e, Q, z, p, work)
    distance(z, m, e)
    return size


@kernel
def mixed(log_p: float, mu: float, K: int) -> float:
    """The log probability of one of K classes after mixing with the uniform distribution of weight mu."""
    return math.log((1.0 - mu) * math.exp(log_p) + mu / K)


@merged_kernel
def gaf_forecast(work: Work, H: Array, sampling: Sampling, round_: int, log_p: Array) -> None:
    """log of (1 - mu) E softmax(N(m, Q/2)) + mu/K. (The paper's Algorithm 1 prints Q for Q/2: docs/errata.md.)"""
    m, Q, Sigma, mu = work.m, work.Q, work.S, sampling.mu
    K = m.size
    for a in range(K):
        for b in range(K):
            Sigma[a, b] = 0.5 * Q[a, b]
    if sampling.method == QUADRATURE and K == 2:
        two_classes(m, Sigma, log_p)
    elif sampling.method == QUADRATURE:
        three_classes(m, Sigma, H, log_p)
    else:
        if sampling.method == MONTE_CARLO:
            fresh_points(sampling.seed, round_, sampling.points)
        over_points(m, Sigma, H, sampling.points, log_p)
    if mu > 0.0:
        for a in range(K):
            log_p[a] = mixed(log_p[a], mu, K)


@inlined_kernel
def gaf_point(work: Work, y: Array, weight: float) -> float:
    """The leader's logits after adding the true loss of the row; returns their lse.

    z = m - (weight Q/2)(softmax(z) - y), and e = z - m up to a constant. (The paper's Algorithm 1 uses the leader
    before this row: docs/errata.md.)
    """
    m, e, z, p, Q, wQ = work.m, work.e, work.z, work.p, work.Q, work.S
    K = m.size
    for a in range(K):
        e[a] = m[a]
        for b in range(K):
            wQ[a, b] = weight * Q[a, b]
            e[a] += 0.5 * wQ[a, b] * y[b]
    size = solve_logits(e, wQ, z, p, work)
    distance(z, m, e)
    return size


@merged_kernel
def forecast(work: Work, H: Array, pull: float, sampling: Sampling | None, round_: int, out: Array) -> float:
    """The forecast of a row, from m and Q in `work`: logits for FOLKLORE, log probabilities for GAF; returns lse."""
    if sampling is None:
        return folklore_forecast(work, pull, out)
    gaf_forecast(work, H, sampling, round_, out)
    return 0.0


@merged_kernel
def lose(work: Work, y: Array, weight: float, sampling: Sampling | None, out: Array, lse: float) -> tuple[float, float]:
    """The loss of a forecast, and the loss at the point of the quadratic, which is stored in `work`."""
    loss = lse - dot(y, out)
    if sampling is None:
        return loss, loss
    return loss, gaf_point(work, y, weight) - dot(y, work.z)


@inlined_kernel
def meet(
    size: float, tally: Array, y: Array, weight: float, c: MulticlassConstants, digits: Digits, work: Work, out: Array
) -> float:
    """One row of norm `size`: forecast, see the label, compute the loss and the quadratic.

    Returns weight times kappa; or -1, without counting the row, if P has too few digits for it.
    """
    lse = forecast(work, c.H, c.pull, c.sampling, int(tally[ROWS]), out)
    if weight == 0.0:
        return 0.0
    kap = kappa_of(c, size, 1.0, y.size)
    loss, at_point = lose(work, y, weight, c.sampling, out, lse)
    growth, terms, mass, shift = weigh(y, kap, weight, size * size, c.regularization, work)
    if tally[MASS] + mass > digits.most_mass or weight * kap * digits.variance > digits.most_growth:
        return -1.0
    if tally[ROOT] != 0.0:
        note_jump(tally, digits.n_weights, weight * kap * trace(work.Q), mass)
    record(tally, weight, weight * loss, growth + weight * (loss - at_point), size)
    charge(tally, mass, shift, weight * math.log(y.size) + terms)
    return weight * kap


@shared_kernel
def run(state: SurrogateState, X: Array, Y: Array, weight: Array, constants: MulticlassConstants, out: Array) -> None:
    """Play a block row by row. All arrays are borrowed: counting references would take a third of the time (d = 5)."""
    P, w, tally, H = borrowed(state.P), borrowed(state.w), borrowed(state.tally), borrowed(constants.H)
    X, Y, out = borrowed(X), borrowed(Y), borrowed(out)
    K, r = H.shape
    own, own_vectors = workspace(K, r), np.zeros((2 * r + 2, w.size))
    work, vectors = borrowed(own), borrowed(own_vectors)
    V, U, f, phi = vectors[:r], vectors[r : 2 * r], vectors[2 * r], vectors[2 * r + 1]
    root = tally[ROOT] != 0.0
    most = math.inf if root else most_mass(P)
    t = 0
    while t < X.shape[0]:
        if root:
            product(P, X[t], V)
        else:
            fold(P, U, X[t], V)
        size = look(V, w, X[t], H, root, work)
        bend = meet(size, tally, Y[t], weight[t], constants, Digits(most, math.inf, 0.0, w.size), work, out[t])
        if bend < 0.0:
            begin_root(P, tally)  # `fold` has applied the last update
            root, most = True, math.inf
            continue
        if weight[t] == 0.0:
            U[:] = 0.0
        elif root:
            hessian_factor(work.p, math.sqrt(bend), work.L)
            apply_to_root(P, V, w, X[t], H, (f, phi), work)
            watch(P, tally)
        else:
            apply(V, w, U, H, work)
        t += 1
    if not root:
        flush(P, U)
    keep((own, own_vectors))


@kernel
def run_panel(panel: Panel, tally: Array, Y: Array, weight: Array, constants: MulticlassConstants, out: Array) -> int:
    """Play a panel in coefficients of its rows; returns the number of rows for which P has enough digits."""
    H = constants.H
    K, r = H.shape
    C, work = np.empty((r, panel.omega.size)), workspace(K, r)
    for t in range(weight.size):
        coefficients(panel, t, C)
        size = look_at(panel, t, C, H, work)
        digits = Digits(panel.most_mass, panel.most_growth, variance(panel, t, r), panel.size)
        if meet(size, tally, Y[t], weight[t], constants, digits, work, out[t]) < 0.0:
            return t
        if weight[t] != 0.0:
            apply(C, panel.omega, panel.U[t * r : (t + 1) * r], H, work)
    return weight.size


@shared_kernel
def forecast_block(state: SurrogateState, X: Array, constants: MulticlassConstants, out: Array) -> None:
    """The forecasts of a block of rows, all from the same state."""
    P, w, tally = state
    H = constants.H
    V, work = np.empty((H.shape[1], w.size)), workspace(*H.shape)
    for t in range(X.shape[0]):
        product(P, X[t], V)
        look(V, w, X[t], H, tally[ROOT] != 0.0, work)
        forecast(work, H, constants.pull, constants.sampling, int(tally[ROWS]), out[t])
