"""Schedules: their formulas, and the regret bounds they promise, on random and adversarial gradients."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regretless.learners.first_order.mirror_steps import eager_step, mirror_step
from regretless.learners.first_order.mirrors import Mirror
from regretless.learners.first_order.schedules import (
    AdaGrad,
    AdaGradNorm,
    ConstantStep,
    GrowingTemperature,
    InverseRootStep,
    InverseTimeStep,
    KnownHorizon,
    ObservedRootStep,
    adagrad,
    rate,
)

L1_PAIRS = [
    (proxy, domain) for proxy in ("entropy", "p-norm", "power") for domain in ("simplex", "subsimplex", "octahedron")
]


def adversary(kind, t, theta, zeta, L, rng):
    """A gradient with no entry beyond L, chosen with the weights in sight."""
    M = theta.size
    if kind == "random":
        return L * rng.choice([-1.0, 1.0], M)
    if kind == "drifting":
        return L * np.sign(np.sin(0.01 * t * (1 + np.arange(M))) + 0.1 * rng.normal(size=M))
    if kind == "heaviest loses":
        u = -np.full(M, L)
        u[np.argmax(theta)] = L
        return u
    if kind == "alternating":
        return L * np.where((np.arange(M) + t) % 2, 1.0, -1.0) * (0.5 if t == 1 else 1.0)
    return L * np.where(theta >= np.median(theta), 1.0, -1.0)  # the heavier half loses


KINDS = ["random", "drifting", "heaviest loses", "alternating", "heavier half loses"]


def best_fixed(mirror, total):
    if mirror.domain == "simplex":
        return mirror.size * total.min()
    if mirror.domain == "subsimplex":
        return mirror.size * min(0.0, total.min())
    if mirror.domain == "octahedron":
        return -mirror.size * np.abs(total).max()
    return -mirror.size * np.linalg.norm(total)


def regrets(mirror, schedule, kind, L, T, lazy=True):
    """Regret after every round, of linear losses."""
    rng = np.random.default_rng(0)
    M = mirror.dimension
    zeta, total, theta = np.zeros(M), np.zeros(M), mirror.start()
    suffered, out = 0.0, np.empty(T)
    for t in range(1, T + 1):
        u = adversary(kind, t, theta, zeta, L, rng)
        suffered += u @ theta
        total += u
        out[t - 1] = suffered - best_fixed(mirror, total)
        gamma, beta = schedule.step(t), schedule.temperature(t)
        if lazy:
            zeta += gamma * u
            mirror_step(*mirror.codes, mirror.size, zeta, beta, theta)
        else:
            eager_step(*mirror.codes, mirror.size, zeta, u, gamma / beta, theta)
    return out


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("M", [2, 3, 10, 100])
@pytest.mark.parametrize(("lam", "L"), [(1.0, 1.0), (3.0, 0.5)])
def test_entropy_on_the_simplex_keeps_theorem_1_and_eq_38(kind, M, lam, L):
    T = 600
    mirror = Mirror("entropy", "simplex", M, lam)
    t = np.arange(1, T + 1)
    growing = GrowingTemperature.of(mirror, L)
    assert growing.temperature(0) == pytest.approx(L / math.sqrt(math.log(M)))  # (18): free of lam
    regret = regrets(mirror, growing, kind, L, T)
    assert np.all(regret <= lam * 2 * L * math.sqrt(math.log(M)) * np.sqrt(t + 1))
    assert np.all(regret <= lam * 2 * L * math.sqrt(math.log(M)) * np.sqrt(t))  # what the proof gives
    known = KnownHorizon.of(mirror, L, T)
    assert np.all(regrets(mirror, known, kind, L, T) <= lam * L * math.sqrt(2 * T * math.log(M)))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("proxy", "domain"), L1_PAIRS)
def test_every_l1_mirror_keeps_theorem_2(proxy, domain, kind):
    T, L = 200, 2.0
    for M in (1, 2, 30):
        mirror = Mirror(proxy, domain, M, 1.5)
        ratio = math.sqrt(mirror.spread / mirror.strong_convexity)
        t = np.arange(1, T + 1)
        assert np.all(
            regrets(mirror, GrowingTemperature.of(mirror, L), kind, L, T) <= 2 * L * ratio * np.sqrt(t) + 1e-9
        )
        for lazy in (True, False):
            known = regrets(mirror, KnownHorizon.of(mirror, L, T), kind, L, T, lazy)
            assert np.all(known <= L * ratio * math.sqrt(2 * T) + 1e-9)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("domain", ["simplex", "subsimplex", "octahedron", "ball"])
def test_the_euclidean_mirror_keeps_its_bounds(kind, domain):
    T, M = 400, 6
    G = math.sqrt(M)
    mirror = Mirror("euclidean", domain, M, 1.5)
    t = np.arange(1, T + 1)
    regret = regrets(mirror, GrowingTemperature.of(mirror, G), kind, 1.0, T)
    assert np.all(regret <= 2 * G * np.sqrt(mirror.spread * t) + 1e-9)
    regret = regrets(mirror, InverseRootStep.of_ball(1.5, G), kind, 1.0, T, lazy=False)
    assert np.all(regret <= 1.5 * G * np.sqrt(8 * t) + 1e-9)
    eta = 0.05
    for lazy in (True, False):
        regret = regrets(mirror, ConstantStep(eta), kind, 1.0, T, lazy)
        assert np.all(regret <= mirror.spread / eta + 0.5 * eta * G * G * t + 1e-9)


def test_strongly_convex_losses_cost_a_logarithm():
    """l_t(w) = sigma |w - c_t|^2 / 2 with |c_t| <= 1: gradients of norm at most 2 sigma."""
    rng = np.random.default_rng(0)
    sigma, T, d = 0.7, 2000, 3
    schedule = InverseTimeStep(sigma)
    w, zeta, C, losses = np.zeros(d), np.zeros(d), [], 0.0
    mirror = Mirror("euclidean", "whole", d)
    for t in range(1, T + 1):
        c = rng.normal(size=d)
        c = -w / max(np.linalg.norm(w), 1e-12) if t % 2 and t > 1 else c / np.linalg.norm(c)
        C.append(c)
        losses += 0.5 * sigma * np.sum((w - c) ** 2)
        eager_step(*mirror.codes, 1.0, zeta, sigma * (w - c), schedule.step(t), w)
        best = 0.5 * sigma * np.sum((np.mean(C, axis=0) - C) ** 2) if t % 100 == 0 or t < 10 else np.inf
        assert losses - best <= (2 * sigma) ** 2 * (1 + math.log(t)) / (2 * sigma)


@pytest.mark.parametrize("kind", KINDS)
def test_adagrad_keeps_its_bounds(kind):
    rng = np.random.default_rng(0)
    M, D, T = 5, 2.0, 500
    scales = 10.0 ** np.arange(-2, 3)
    norm, diagonal = AdaGradNorm.of_diameter(D * math.sqrt(M)), AdaGrad.of_diameter(D)
    for rule in ("norm", "diagonal"):
        w, tally, squares, steps = np.zeros(M), np.zeros(1), np.zeros(M), np.zeros(M)
        total, suffered = np.zeros(M), 0.0
        for t in range(1, T + 1):
            u = scales * adversary(kind, t, w, total, 1.0, rng)
            suffered += u @ w
            total += u
            tally[0] += u @ u
            eta = rate(norm.code, norm.number, t, 0.0, tally[0])
            adagrad(u, diagonal.eta, squares, steps)
            w = np.clip(w - (eta if rule == "norm" else steps) * u, -D / 2, D / 2)
            bound = D * math.sqrt(2 * M * tally[0]) if rule == "norm" else D * math.sqrt(2) * np.sqrt(squares).sum()
            assert suffered + D / 2 * np.abs(total).sum() <= bound * (1 + 1e-12)


def test_adagrad_of_nothing_does_not_move():
    squares, steps = np.zeros(2), np.ones(2)
    for schedule in (AdaGradNorm(1.0), ObservedRootStep(1.0)):
        assert rate(schedule.code, schedule.number, 1, 0.0, 0.0) == 0.0
    adagrad(np.array([0.0, 1e-300]), 1.0, squares, steps)
    assert steps.tolist() == [0.0, 0.0]
    adagrad(np.array([0.0, 2.0]), 3.0, squares, steps)
    assert steps.tolist() == [0.0, 1.5]


@given(t=st.integers(1, 10**9), number=st.floats(1e-6, 1e6))
def test_formulas(t, number):
    assert ConstantStep(number).step(t) == number
    assert InverseRootStep(number).step(t) == pytest.approx(number / math.sqrt(t))
    assert InverseTimeStep(number).step(t) == pytest.approx(1 / (number * t))
    for schedule in (ConstantStep(number), InverseRootStep(number), InverseTimeStep(number)):
        assert schedule.temperature(t) == 1.0
    growing, known = GrowingTemperature(number), KnownHorizon(number, 49)
    assert growing.step(t) == known.step(t) == 1.0
    assert growing.temperature(t) == pytest.approx(number * math.sqrt(t + 1))
    assert growing.temperature(t) >= growing.temperature(t - 1)
    assert known.temperature(t) == pytest.approx(7 * number)  # (37) with gamma = 1/sqrt(T) multiplied out


@given(M=st.integers(2, 10**6), lam=st.floats(1e-3, 1e3), L=st.floats(1e-3, 1e3), T=st.integers(1, 10**6))
def test_the_temperatures_are_those_that_minimise_the_bounds(M, lam, L, T):
    for proxy in ("entropy", "p-norm", "power", "euclidean"):
        mirror = Mirror(proxy, "simplex", M, lam)
        spread, alpha = mirror.spread, mirror.strong_convexity
        beta = GrowingTemperature.of(mirror, L).beta
        assert beta * spread + L * L / (alpha * beta) == pytest.approx(2 * L * math.sqrt(spread / alpha))
        beta = KnownHorizon.of(mirror, L, T).temperature(1)
        assert beta * spread + L * L * T / (2 * alpha * beta) == pytest.approx(L * math.sqrt(2 * T * spread / alpha))
    entropy = Mirror("entropy", "simplex", M, lam)
    assert entropy.spread / entropy.strong_convexity == pytest.approx(lam**2 * math.log(M))


def test_refusals():
    for make in (
        ConstantStep,
        InverseRootStep,
        InverseTimeStep,
        GrowingTemperature,
        AdaGrad,
        AdaGradNorm,
        ObservedRootStep,
    ):
        for value in (0.0, -1.0, math.nan, math.inf):
            with pytest.raises(ValueError, match="must be a finite number > 0"):
                make(value)
    with pytest.raises(ValueError, match="must be a finite number > 0"):
        KnownHorizon(1.0, 0)
    with pytest.raises(ValueError, match="proxy='euclidean' on domain='whole' is unbounded"):
        GrowingTemperature.of(Mirror("euclidean", "whole", 2), 1.0)
    with pytest.raises(ValueError, match="gradient="):
        GrowingTemperature.of(Mirror("entropy", "simplex", 2), 0.0)
    assert GrowingTemperature.of(Mirror("entropy", "simplex", 1), 2.0).beta == 2.0  # one weight: nothing to choose
