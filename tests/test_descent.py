"""AIOLI's gradient descent, Algorithm 2 of its paper, and the theorems on approximate forecasts (4 and 7)."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from regretless import AIOLI, BadRow, NoBound, bounds
from regretless.learners.second_order.descent import steps_for


def algorithm_2(X: np.ndarray, y: np.ndarray, radius: float, lam: float, R: float, steps: int) -> np.ndarray:
    """The margins of Algorithm 2 as printed, with the errata A1 (half of b) and A2 (the root of lambda)."""
    d = X.shape[1]
    A, b, margins = lam * np.eye(d), np.zeros(d), np.empty(len(y))
    for t, (x, sign) in enumerate(zip(X, np.where(y, 1.0, -1.0), strict=True)):
        L = np.linalg.cholesky(A)
        W = np.linalg.solve(L, np.stack([b, x], axis=1))
        sigma, U = np.linalg.eigh(W.T @ W)
        U, sigma = U[:, sigma > 1e-14 * sigma.max()], sigma[sigma > 1e-14 * sigma.max()]
        u, v = (np.sqrt(sigma)[:, None] * U.T).T
        omega = np.zeros(sigma.size)
        for _ in range(steps):
            upper, lower = 1 / (1 + math.exp(v @ omega)), 1 / (1 + math.exp(-v @ omega))
            omega = omega - lam / (4 * lam + R**2) * (2 * omega - 2 * u - upper * v + lower * v)
        theta = np.linalg.solve(L.T, W @ (U @ (omega / np.sqrt(sigma))))
        margins[t] = theta @ x
        g = -sign * x / (1 + math.exp(sign * margins[t]))
        eta = math.exp(sign * margins[t]) / (1 + radius * R)
        A = A + eta / 2 * np.outer(g, g)
        b = b + (eta * g @ theta - 1) * g / 2
    return margins


def unit_rows(n: int = 40, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n, d])
    X = rng.normal(size=(n, d))
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    return X, rng.random(n) < 1 / (1 + np.exp(-3 * X[:, 0]))


@pytest.mark.parametrize("steps", [0, 1, 7, 60])
@pytest.mark.parametrize("radius", [0.7, 3.0])
def test_the_margins_of_algorithm_2(radius: float, steps: int) -> None:
    X, y = unit_rows()
    expected = algorithm_2(X, y, radius, 1 / radius**2, 1.0, steps)
    learner = AIOLI(radius=radius, curvature="aioli", feature_bound=1.0, solver="descent", steps=steps)
    p = learner.predict_then_learn(X, y)
    np.testing.assert_allclose(np.log(p[:, 1] / p[:, 0]), expected, atol=1e-9)
    ahead = learner.predict_proba(X[:1])
    learner.predict_then_learn(X[:1], y[:1])
    assert learner.predict_proba_one(X[0]).shape == ahead[0].shape


def worst_labels(learner: AIOLI, X: np.ndarray) -> np.ndarray:
    """Each label is the one that the learner holds for less probable."""
    y = np.empty(len(X), dtype=bool)
    for t, x in enumerate(X):
        p = learner.predict_proba(x[None])[0, 1] if t else 0.5
        y[t] = p < 0.5
        learner.partial_fit(x[None], y[t : t + 1], classes=[False, True])
    return y


def regret_on_a_grid(learner: AIOLI, X: np.ndarray, y: np.ndarray, radius: float) -> float:
    angle, size = np.meshgrid(np.linspace(0, 2 * np.pi, 181), np.linspace(0, radius, 61))
    theta = np.stack([size * np.cos(angle), size * np.sin(angle)]).reshape(2, -1)
    return learner.total_loss_ - np.logaddexp(0, -np.where(y, 1, -1)[:, None] * (X @ theta)).sum(axis=0).min()


@pytest.mark.parametrize("steps", [0, 3, 1000, None])
@pytest.mark.parametrize("radius", [0.5, 4.0])
def test_certificates_hold_for_every_number_of_steps(radius: float, steps: int | None) -> None:
    """Forecasts that are not solved still have surrogates below their losses; the bound needs enough steps."""
    X, _ = unit_rows(120, 2)
    learner = AIOLI(radius=radius, solver="descent", steps=steps)
    y = worst_labels(learner, X)
    regret = regret_on_a_grid(learner, X, y, radius)
    assert regret <= learner.regret_certificate()
    if steps is None or steps == 1000:
        assert learner.regret_certificate() <= learner.regret_bound()
        exact = AIOLI(radius=radius).fit(X, y)
        assert learner.regret_bound() == pytest.approx(exact.regret_bound() + 1, rel=1e-12)
        assert learner.total_loss_ == pytest.approx(exact.total_loss_, abs=0.01)  # the theorem leaves room for 1
    else:
        with pytest.raises(NoBound, match="steps of gradient descent"):
            learner.regret_bound()


def test_the_number_of_steps_of_a_row_is_enough() -> None:
    """The theorem's error of row t, 2 t r ((t+1) r / 8 + 1) (1 - 2/(4+r))^T, is at most 1/(t (t+1))."""
    for reach in (0.01, 1.0, 50.0, 3000.0):
        for t in (1, 2, 10, 1000, 10**6):
            T = steps_for(float(t), reach)
            log_error = math.log(2 * t * reach * ((t + 1) * reach / 8 + 1)) + T * math.log1p(-2 / (4 + reach))
            assert log_error <= -math.log(t * (t + 1)) + 1e-9
        counts = [steps_for(float(t), reach) for t in (1, 10, 100, 1000)]
        assert all(a <= b for a, b in pairwise(counts))


@pytest.mark.parametrize("radius", [0.01, 3.0])
def test_theorem_7_for_forecasts_solved_to_epsilon(radius: float) -> None:
    """Weights epsilon off the minimiser, along the row and against the coming label: the worst the theorem allows."""
    rng = np.random.default_rng(3)
    n, d, lam, R = 60, 2, 1 / radius**2, 1.0
    X = rng.normal(size=(n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    case = {"n_features": d, "radius": radius, "feature_bound": R, "regularization": lam}
    suffered = []
    for error in (0.0, 0.3, 3.0):
        A, b, loss, y = lam * np.eye(d), np.zeros(d), 0.0, np.empty(n)
        for t, x in enumerate(X):
            m, q = x @ np.linalg.solve(A, b), x @ np.linalg.solve(A, x)
            low, high = -abs(m), abs(m)
            for _ in range(100):  # u + (q/2) tanh(u/2) = m
                u = (low + high) / 2
                low, high = (u, high) if u + q / 2 * math.tanh(u / 2) < m else (low, u)
            y[t] = -1.0 if u >= 0 else 1.0
            u = u - y[t] * error  # theta changes by error x, |x| = 1
            s = 1 / (1 + math.exp(y[t] * u))
            loss += math.log1p(math.exp(-y[t] * u))
            c = s * (1 - s) / (2 * (1 + radius * R))
            A += c * np.outer(x, x)
            b += (c * u + y[t] * s / 2) * x
        angle, size = np.meshgrid(np.linspace(0, 2 * np.pi, 181), np.linspace(0, radius, 61))
        theta = np.stack([size * np.cos(angle), size * np.sin(angle)]).reshape(2, -1)
        regret = loss - np.logaddexp(0, -y[:, None] * (X @ theta)).sum(axis=0).min()
        assert regret <= bounds.aioli_inexact(n, **case, error=error)
        suffered.append(regret)
    assert suffered[0] < suffered[1] < suffered[2]
    exact = bounds.aioli(n, **case, curvature=1 / (2 * (1 + radius)))
    assert bounds.aioli_inexact(n, **case, error=0.0) == pytest.approx(exact, rel=1e-12)
    printed = exact + 3 * n * R * (n * R**2 / (8 * lam) + radius) * 3.0
    if radius < 1:  # A4: the printed theorem has B for 1, and fails for a small ball
        assert suffered[2] > printed


def test_one_row_at_a_time_is_the_block() -> None:
    X, y = unit_rows(50)
    learner = AIOLI(radius=3.0, solver="descent", steps=20)
    p = learner.predict_then_learn(X, y)
    rows = AIOLI(radius=3.0, solver="descent", steps=20).partial_fit(X[:1], y[:1], classes=[False, True])
    for t in range(1, 50):
        np.testing.assert_allclose(rows.predict_proba_one(X[t]), p[t], rtol=1e-12)
        rows.learn_one(X[t], y[t])
    np.testing.assert_allclose(rows.state_.w, learner.state_.w, rtol=1e-12)


def test_what_is_refused() -> None:
    X, y = unit_rows(20)
    for params, words in (
        ({"solver": "newton"}, 'choose "exact" or "descent"'),
        ({"solver": "descent", "virtual_weight": 0.5}, "virtual_weight=1"),
        ({"solver": "descent", "steps": -1}, "steps=-1"),
        ({"solver": "descent", "steps": 2.5}, "steps=2.5"),
        ({"solver": "descent", "feature_bound": 100.0}, "millions of steps"),
    ):
        with pytest.raises(ValueError, match=words):
            AIOLI(**params).fit(X, y)
    learner = AIOLI(solver="descent").fit(X, y)
    before = learner.state_.w.copy()
    with pytest.raises(BadRow, match="row 1"):
        learner.partial_fit(np.array([[0.1, 0.1, 0.1], [1e3, 0.0, 0.0]]), [True, False])
    np.testing.assert_array_equal(learner.state_.w, before)
