"""The reference learners against what is known about them by other means."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logsumexp, ndtr, softmax

from . import (
    ReferenceAIOLI,
    ReferenceFOLKLORE,
    ReferenceGAF,
    ReferenceONS,
    ReferenceVAW,
    best_curvature,
    curvature,
    log_softmax_normal_expectation,
    softmax_normal_expectation,
)
from .expectation import log_expected_sigmoid, log_expected_sigmoid_by_panels
from .newton import long
from .ons import project

pytestmark = pytest.mark.slow

SIZES = (1.0, 0.0, 30.0, 1e-8, 1.0)
WEIGHTS = (1.0, 0.3, 0.0, 2.0)


def hard_rows(n: int, d: int, n_classes: int, seed: int) -> list[tuple]:
    """Rows of very different norms with soft and hard labels and sample weights."""
    rng = np.random.default_rng(seed)
    rows = []
    for t in range(n):
        x = rng.normal(size=d)
        x *= SIZES[t % 5] / np.linalg.norm(x)
        soft = rng.dirichlet(np.full(n_classes, 0.3))
        y = soft if t % 3 else np.eye(n_classes)[rng.integers(n_classes)]
        rows.append((x, y, WEIGHTS[t % 4]))
    return rows


def statistics(surrogates: list, lam: float, k: int, d: int) -> tuple:
    """A, b and const of the quadratic machine, summed over the kept quadratics."""
    A, b, const = lam * np.eye(k * d), np.zeros(k * d), 0.0
    for q in surrogates:
        x, z, g, S = (np.asarray(v, dtype=float) for v in (q.x, q.z, q.g, q.S))
        A += q.weight * q.kappa * np.kron(S, np.outer(x, x))
        b += q.weight * np.kron(q.kappa * S @ z - g / 2, x)
        const += q.weight * float(q.value - g @ z + q.kappa * z @ S @ z)
    return A, b, const


# --- curvature -----------------------------------------------------------------------------------


def test_curvature_table() -> None:
    """The table of constants, computed independently."""
    for C, sharp, best in ((1, 0.3333, 0.4137), (2, 0.2376, 0.2888), (5, 0.1105, 0.1230)):
        assert curvature("sharp", radius=C, norm=1, n_classes=2) == pytest.approx(sharp, abs=5e-5)
        assert curvature("sharp", radius=2 * C, norm=1) == pytest.approx(sharp, abs=5e-5)
        assert best_curvature(2 * C) == pytest.approx(best, abs=5e-5)
    assert curvature("gaf", radius=2, norm=1, n_classes=10) == pytest.approx(0.12044, abs=5e-6)
    assert best_curvature(4 + math.log(9)) == pytest.approx(0.19979, abs=5e-6)
    assert curvature("folklore", radius=2, norm=5, n_classes=5) == pytest.approx(0.09255, abs=5e-6)
    assert curvature("aioli", radius=10, norm=1) == pytest.approx(1 / 22)
    assert curvature(0.7, radius=1, norm=1, n_classes=3) == 0.7
    for L in (0.0, 0.5, 2.0, 100.0, 1e5):  # w + ln w = L - 1
        w = 1 / curvature("sharp", radius=L, norm=1) - 2
        assert w + math.log(w) == pytest.approx(L - 1, abs=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_quadratics_lie_below_the_loss(n_classes: int) -> None:
    """lse(a) >= lse(b) + <p, a - b> + kappa |a - b|_S^2 on |a|_inf <= C: "folklore" breaks it."""
    rng = np.random.default_rng(0)
    C, n = 2.0, 100_000
    a = C * np.sign(rng.normal(size=(n, n_classes))) * rng.uniform(size=(n, n_classes)) ** 0.2
    b = rng.normal(size=(n, n_classes)) * rng.uniform(0, 5, size=(n, 1))
    p, gap = softmax(b, axis=1), a - b
    mean = np.sum(p * gap, axis=1)
    variance = np.sum(p * gap**2, axis=1) - mean**2
    divergence = logsumexp(a, axis=1) - logsumexp(b, axis=1) - mean

    def least(kappa: float) -> float:
        return float(np.min(divergence - kappa * variance))

    names = ("sharp", "gaf", "aioli") if n_classes == 2 else ("sharp", "gaf")
    for name in names:
        assert least(curvature(name, radius=C, norm=1, n_classes=n_classes)) > -1e-9
    assert least(best_curvature(2 * C + math.log(n_classes - 1))) > -1e-9
    assert least(curvature("folklore", radius=C, norm=1, n_classes=n_classes)) < -0.3


# --- forecasts against their equations --------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.5, 10.0, 100.0])
@pytest.mark.parametrize("virtual_weight", [0.5, 1.0])
def test_aioli_scalar_equation(radius: float, virtual_weight: float) -> None:
    """u + a (q / 2) tanh(u / 2) = m; the leader and the minimum are A^{-1} b and const - b·w̄."""
    learner = ReferenceAIOLI(radius=radius, virtual_weight=virtual_weight)
    for x, y, weight in hard_rows(12, 3, 2, seed=1):
        A, b, _ = statistics(learner.surrogates, learner.lam, 1, 3)
        theta = np.linalg.solve(A, b)
        m, q = theta @ x, x @ np.linalg.solve(A, x)
        u = learner.learn(x, y[1], weight)
        assert u + virtual_weight * q / 2 * math.tanh(u / 2) == pytest.approx(m, abs=1e-10 * (1 + q))
    assert learner.surrogates[0].z == 0  # nothing known at first
    A, b, const = statistics(learner.surrogates, learner.lam, 1, 3)
    theta = np.linalg.solve(A, b)
    np.testing.assert_allclose(learner.leader(), theta, rtol=1e-8, atol=1e-10)
    minimum = learner.loss + learner.lam * radius**2 - learner.certificate()
    assert minimum == pytest.approx(const - b @ theta, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("radius", [0.5, 10.0, 100.0])
def test_folklore_fixed_point(n_classes: int, radius: float) -> None:
    """z = m + diag(Q) / 4 - (Q / 2) softmax(z), up to the all-ones direction."""
    learner = ReferenceFOLKLORE(radius=radius, n_classes=n_classes)
    for x, y, weight in hard_rows(12, 3, n_classes, seed=2):
        A, b, _ = statistics(learner.surrogates, learner.lam, n_classes, 3)
        columns = np.kron(np.eye(n_classes), x[:, None])
        Q = columns.T @ np.linalg.solve(A, columns)
        m = columns.T @ np.linalg.solve(A, b)
        z = learner.learn(x, y, weight)
        gap = m + np.diag(Q) / 4 - Q @ softmax(z) / 2 - z
        assert np.ptp(gap) <= 1e-11 * (1 + np.max(Q))


@pytest.mark.parametrize("radius", [0.5, 10.0, 100.0])
def test_folklore_with_two_classes_is_aioli(radius: float) -> None:
    """FOLKLORE K = 2 = AIOLI with virtual weight 1/2 and lam / 2 in the margin; L = 2 B |x|."""
    folklore = ReferenceFOLKLORE(radius=radius, n_classes=2)
    aioli = ReferenceAIOLI(2 * radius, regularization=folklore.lam / 2, virtual_weight=0.5)
    for x, y, weight in hard_rows(12, 3, 2, seed=3):
        z, u = folklore.learn(x, y, weight), aioli.learn(x, y[1], weight)
        assert z[1] - z[0] == pytest.approx(u, rel=1e-12, abs=1e-12)
    assert folklore.loss == pytest.approx(aioli.loss, rel=1e-12)
    # |W|_F^2 = |theta|^2 / 2 for opposite rows, so the certificates agree at matching norms.
    assert folklore.certificate(1.0) == pytest.approx(aioli.certificate(math.sqrt(2)), rel=1e-12)


def test_vaw_closed_form() -> None:
    """yhat = m / (1 + q); the minimum is that of the regularised least squares."""
    rng = np.random.default_rng(4)
    learner = ReferenceVAW(regularization=0.1)
    A, b, total = 0.1 * np.eye(3), np.zeros(3), 0.0
    for t in range(15):
        x, y, weight = rng.normal(size=3) * SIZES[t % 5], rng.normal(), WEIGHTS[t % 4]
        m, q = x @ np.linalg.solve(A, b), x @ np.linalg.solve(A, x)
        assert learner.learn(x, y, weight) == pytest.approx(m / (1 + q), rel=1e-11, abs=1e-13)
        A, b, total = A + weight * np.outer(x, x), b + weight * y * x, total + weight * y * y
    minimum = total - b @ np.linalg.solve(A, b)
    assert learner.certificate(2.0) == pytest.approx(0.4 + learner.loss - minimum, rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_gaf_expansion_point(n_classes: int) -> None:
    """z+ = m - (w Q / 2) (softmax(z+) - y), and W_{t+1} leads the quadratics too (eqs. 2-3)."""
    learner = ReferenceGAF(radius=10.0, n_classes=n_classes)
    uniform = np.full(n_classes, 1 / n_classes)
    for x, y, weight in hard_rows(12, 3, n_classes, seed=5):
        m, Q = learner.moments(x)
        learner.learn(x, y, weight, forecast=uniform)
        if weight:
            z = learner.surrogates[-1].z.astype(float)
            assert z == pytest.approx(m - weight * Q @ (softmax(z) - y) / 2, rel=1e-11, abs=1e-11)
            assert learner.leader() @ x == pytest.approx(z, rel=1e-12, abs=1e-12)


# --- GAF's expectation -----------------------------------------------------------------------------


def test_expectation_two_classes() -> None:
    """E sigmoid(m + s T) = int sigmoid'(v) Phi((m - v) / s) dv, and two quadratures agree."""
    for mean in (0.0, 0.7, -3.0, 40.0, -200.0, 5e3):
        for deviation in (1e-6, 0.3, 5.0, 30.0, 1e4):
            value = log_expected_sigmoid(mean, deviation)
            panels = log_expected_sigmoid_by_panels(mean, deviation)
            assert panels == pytest.approx(value, rel=1e-13, abs=1e-14)
            if deviation < 1:  # the integrand below is a step there
                continue
            edges = [-40.0, -15.0, -5.0, 0.0, 5.0, 15.0, 40.0]
            known = sum(
                quad(
                    lambda v, m=mean, s=deviation: expit(v) * expit(-v) * ndtr((m - v) / s),
                    *pair,
                    epsabs=0,
                    epsrel=1e-12,
                )[0]
                for pair in pairwise(edges)
            )
            assert math.exp(value) == pytest.approx(known, abs=1e-12)
    assert log_expected_sigmoid(-200.0, 1.0) == pytest.approx(-199.5, rel=1e-13)  # e^{m + s^2/2}
    p = softmax_normal_expectation([1.0, 3.0], [[2.0, 0.5], [0.5, 4.0]])
    rest = math.exp(log_expected_sigmoid(2.0, math.sqrt((2 + 4 - 1) / 2)))
    assert p == pytest.approx([1 - rest, rest], abs=1e-14)


def test_expectation_three_classes() -> None:
    """Against a dense tensor grid, and for huge variances against the orthant probability."""
    rng = np.random.default_rng(6)
    nodes, weights = np.polynomial.legendre.leggauss(500)
    t, w = 9 * nodes, 9 * weights * np.exp(-((9 * nodes) ** 2) / 2) / math.sqrt(2 * math.pi)
    for scale in (1e-3, 1.0, 5.0):
        m, F = rng.normal(size=3) * 2, rng.normal(size=(3, 2)) * scale
        omega = m + t[:, None, None] * F[:, 0] + t[None, :, None] * F[:, 1]
        known = np.einsum("ijk,i,j->k", softmax(omega, axis=2), w, w)
        assert softmax_normal_expectation(m, 2 * F @ F.T) == pytest.approx(known, abs=1e-11)
    for Q in (np.diag([1.0, 4.0, 9.0]), np.diag([1.0, 1.0, 1e-8]), np.diag([1e-4, 1e-4, 1.0])):
        # P(omega_0 is the largest) = 1/4 + arcsin(rho) / 2 pi; deviations are of order Q^{-1/2}.
        rho = Q[0, 0] / math.sqrt((Q[0, 0] + Q[1, 1]) * (Q[0, 0] + Q[2, 2]))
        p = softmax_normal_expectation(np.zeros(3), 1e8 * Q)
        assert p[0] == pytest.approx(0.25 + math.asin(rho) / (2 * math.pi), abs=1e-3)
        assert np.sum(p) == pytest.approx(1, abs=1e-13)
    far = log_softmax_normal_expectation([0.0, 100.0, 200.0], np.eye(3))
    assert far[0] == pytest.approx(-200 + 0.5, rel=1e-12)  # E e^{omega_0 - omega_2}


# --- ONS -------------------------------------------------------------------------------------------


def test_projection() -> None:
    """The projection is feasible and satisfies the variational inequality of a projection."""
    rng = np.random.default_rng(7)
    for scale in (1.0, 1e-3, 1e40):
        F = rng.normal(size=(4, 4)) * np.array([1, 1, 10, 100])
        A, v = scale * (F @ F.T + 0.1 * np.eye(4)), rng.normal(size=4) * 20
        u = project(long(v), long(A), 3.0).astype(float)
        assert np.linalg.norm(u) == pytest.approx(3.0, rel=1e-13)
        others = rng.normal(size=(1000, 4))
        others *= 3 / np.linalg.norm(others, axis=1, keepdims=True)
        assert np.min((others - u) @ (A @ (u - v))) >= -1e-9 * scale
        np.testing.assert_array_equal(project(long(u / 2), long(A), 3.0).astype(float), u / 2)


def test_ons_two_steps_by_hand() -> None:
    """One dimension: everything is a division and a clip."""
    learner = ReferenceONS(radius=2.0)
    gamma = 0.5 * min(1 / 16, math.exp(-2))
    epsilon = 1 / (16 * gamma**2)
    theta, A = 0.0, epsilon
    for x, y, weight in ((0.9, 1.0, 1.0), (-0.5, 0.3, 2.0), (1.0, 0.0, 0.0), (0.7, 1.0, 100.0)):
        p = 1 / (1 + math.exp(-theta * x))
        assert learner.learn(np.array([x]), y, weight) == pytest.approx([1 - p, p], rel=1e-13)
        g = (p - y) * x
        A += weight * g * g
        theta = max(-2.0, min(2.0, theta - weight * g / (A * gamma)))
        assert learner.W is not None
        assert float(learner.W[0, 0]) == pytest.approx(theta, rel=1e-13)


# --- certificates ----------------------------------------------------------------------------------


def ball(W: np.ndarray, radius: float) -> np.ndarray:
    """W scaled into the Frobenius ball."""
    return W * min(1.0, radius / np.linalg.norm(W))


def rows_ball(W: np.ndarray, radius: float) -> np.ndarray:
    """Every row of W scaled into the ball."""
    return W * np.minimum(1.0, radius / np.linalg.norm(W, axis=1, keepdims=True))


def worst_regret(rows: list[tuple], loss: float, radius: float, into: Callable, margin: bool) -> float:
    """The regret against the best of a few comparators: fitted, fitted-then-scaled, random."""
    X, Y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows])
    w = np.array([r[2] for r in rows])
    d, K = X.shape[1], Y.shape[1]
    shape = (1, d) if margin else (K, d)

    def theirs(flat: np.ndarray) -> float:
        Z = X @ flat.reshape(shape).T
        logits = np.hstack([np.zeros_like(Z), Z]) if margin else Z
        return float(-np.sum(w[:, None] * Y * log_softmax(logits, axis=1)))

    rng = np.random.default_rng(0)
    candidates = [rng.normal(size=shape) * 1e3 for _ in range(100)]
    for ridge in (1e-3, 1e-1):
        fit = minimize(lambda v, r=ridge: theirs(v) + r * v @ v, np.zeros(np.prod(shape)))
        candidates += [fit.x.reshape(shape), fit.x.reshape(shape) * 100]
    return max(loss - theirs(into(W, radius).ravel()) for W in candidates)


@pytest.mark.parametrize("radius", [1.0, 5.0])
@pytest.mark.parametrize("name", ["aioli", "aioli-half", "folklore", "gaf2", "gaf3", "ons2", "ons3"])
def test_certificate_bounds_regret(name: str, radius: float) -> None:
    """Labels against the forecast, unequal weights and norms: regret <= certificate."""
    cases: dict[str, tuple[Any, int, Callable, bool]] = {
        "aioli": (ReferenceAIOLI(radius), 2, ball, True),
        "aioli-half": (ReferenceAIOLI(radius, virtual_weight=0.5), 2, ball, True),
        "folklore": (ReferenceFOLKLORE(radius, n_classes=3), 3, rows_ball, False),
        "gaf2": (ReferenceGAF(radius, 0.3, n_classes=2), 2, ball, False),
        "gaf3": (ReferenceGAF(radius, 0.3, n_classes=3), 3, ball, False),
        "ons2": (ReferenceONS(radius, n_classes=2), 2, ball, True),
        "ons3": (ReferenceONS(radius, n_classes=3), 3, ball, False),
    }
    learner, K, into, margin = cases[name]
    rng = np.random.default_rng(8)
    rows = []
    for t in range(4 if name == "gaf3" else 12):
        x = rng.normal(size=2)
        x *= rng.uniform(0.2, 1) / np.linalg.norm(x)
        forecast = learner.forecast(x)
        scores = np.array([0, forecast]) if "aioli" in name else forecast
        y = np.eye(K)[np.argmin(scores)]
        if t % 5 == 4:
            y = 0.9 * y + 0.1 / K
        weight = (1.0, 0.5, 2.0)[t % 3]
        rows.append((x, y, weight))
        learner.learn(x, y[1] if "aioli" in name else y, weight)
    regret = worst_regret(rows, learner.loss, radius, into, margin)
    assert 0 < regret <= learner.certificate() + 1e-9


def test_certificate_of_vaw() -> None:
    """Regret against the ridge regression itself equals the certificate at its norm."""
    rng = np.random.default_rng(9)
    learner, rows = ReferenceVAW(0.5), []
    for t in range(15):
        x = rng.normal(size=3)
        y = -math.copysign(1.0, learner.forecast(x) + 1e-9)
        rows.append((x, y, WEIGHTS[t % 4]))
        learner.learn(*rows[-1])
    theta = learner.leader()
    for comparator in (theta, theta + 0.1, np.zeros(3)):
        regret = learner.loss - sum(w * (y - comparator @ x) ** 2 for x, y, w in rows)
        gap = learner.certificate(float(np.linalg.norm(comparator))) - regret
        assert gap >= -1e-10
        assert (gap <= 1e-10) == (comparator is theta)


def test_weight_zero_and_feature_bound() -> None:
    """A row of weight 0 leaves everything as it was; a feature bound replaces the row's norm."""
    learners: list[Any] = [
        ReferenceAIOLI(),
        ReferenceFOLKLORE(n_classes=2),
        ReferenceGAF(),
        ReferenceONS(),
        ReferenceVAW(),
    ]
    for learner in learners:
        x = np.array([0.6, -0.2])
        assert float(np.ravel(learner.forecast(x))[-1]) in (0.0, pytest.approx(0.5))
        y = 1.0 if isinstance(learner, (ReferenceAIOLI, ReferenceVAW)) else np.array([0.0, 1.0])
        learner.learn(x, y)
        before = (learner.loss, learner.certificate(1.0), np.array(learner.forecast(x)))
        learner.learn(x, y, weight=0.0)
        after = (learner.loss, learner.certificate(1.0), np.array(learner.forecast(x)))
        assert before[:2] == after[:2]
        np.testing.assert_array_equal(before[2], after[2])
    bounded = ReferenceAIOLI(radius=3.0, feature_bound=2.0)
    bounded.learn(np.array([0.1]), 1.0)
    assert bounded.surrogates[0].kappa == curvature("sharp", radius=3.0, norm=2.0)
