"""The algorithms that the papers compare with, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from regretless.core.types import Array
from regretless.figures.baselines import Named, adaboost_olm, least_in_ball, newtron, pairwise_costs
from regretless.learners.ensembles.boosting import OnlineBoosting


class Column:
    """A weak learner that reads its label off a column, and remembers its costs."""

    def __init__(self, column: int) -> None:
        self.column, self.costs = column, []

    def start(self, n_features: int, n_classes: int, seed: int) -> None: ...

    def predict(self, x: Array, cost: Array) -> int:
        return int(x[self.column])

    def update(self, x: Array, cost: Array, y: int) -> None:
        self.costs.append(cost[y].copy())


def suggestions(n: int, N: int, K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """True labels, and N columns that are right in two rows of three."""
    rng = np.random.default_rng([seed, n, N, K])
    y = rng.integers(K, size=n)
    return np.where(rng.random((n, N)) < 0.67, y[:, None], rng.integers(K, size=(n, N))).astype(float), y


def test_adaboost_ol_by_its_margins() -> None:
    """Beygelzimer, Kale and Luo: labels +1 and -1, weights 1/(1 + e^(y s)), steps 4 / sqrt t."""
    n, N = 80, 3
    X, y = suggestions(n, N, 2)
    weak = [Column(i) for i in range(N)]
    mistakes = adaboost_olm(weak, X, y, 2, seed=5, scale=4.0)
    alpha, v, rng, expected = [0.0] * N, [1.0] * N, np.random.default_rng(5), []
    for t in range(n):
        sign, s, margins, weights = 2.0 * y[t] - 1.0, 0.0, [], []
        for i in range(N):
            weights.append(1 / (1 + math.exp(sign * s)))
            s += alpha[i] * (2 * X[t, i] - 1)
            margins.append(s)
        drawn = rng.choice(N, p=np.array(v) / sum(v))
        expected.append(float((margins[drawn] > 0) != (y[t] == 1)))
        for i in range(N):
            assert weak[i].costs[t][1 - y[t]] == pytest.approx(weights[i], rel=1e-12)
            z = sign * (2 * X[t, i] - 1)
            alpha[i] = np.clip(alpha[i] + 4 / math.sqrt(t + 1) * z / (1 + math.exp(sign * margins[i])), -2, 2)
            if (margins[i] > 0) != (y[t] == 1):
                v[i] *= math.exp(-1)
    np.testing.assert_array_equal(mistakes, expected)


def test_adaboost_olm_by_differences_of_its_loss() -> None:
    """Jung, Goetz and Tewari: descent on sum over k != y of ln(1 + e^(s_k - s_y)), here with numerical derivatives."""
    n, N, K = 60, 3, 4
    X, y = suggestions(n, N, K)
    weak = [Column(i) for i in range(N)]
    mistakes = adaboost_olm(weak, X, y, K, seed=1)

    def loss(s: np.ndarray, true: int) -> float:
        return float(np.logaddexp(0, np.delete(s, true) - s[true]).sum())

    alpha, v, rng = np.zeros(N), np.ones(N), np.random.default_rng(1)
    for t in range(n):
        s, before, said = np.zeros(K), [], []
        for i in range(N):
            before.append(s.copy())
            s = s + alpha[i] * np.eye(K)[int(X[t, i])]
            said.append(int(np.argmax(s)))
        assert mistakes[t] == (said[rng.choice(N, p=v / v.sum())] != y[t])
        for i in range(N):
            step = 1e-6 * np.eye(K)
            C = np.array([loss(before[i] + e, y[t]) - loss(before[i] - e, y[t]) for e in step]) / 2e-6
            np.testing.assert_allclose(weak[i].costs[t], (C - C[y[t]]) / (K * (K - 1)), atol=1e-8)
            e = np.eye(K)[int(X[t, i])]
            slope = (
                loss(before[i] + (alpha[i] + 1e-6) * e, y[t]) - loss(before[i] + (alpha[i] - 1e-6) * e, y[t])
            ) / 2e-6
            alpha[i] = np.clip(alpha[i] - 2 * math.sqrt(2) / ((K - 1) * math.sqrt(t + 1)) * slope, -2, 2)
            v[i] *= math.exp(-1) if said[i] != y[t] else 1.0
    assert mistakes[-20:].mean() < 0.5


def test_costs_are_in_the_class_of_the_protocol() -> None:
    rng = np.random.default_rng(0)
    for K in (2, 3, 8):
        C = pairwise_costs(rng.normal(size=K) * 3)
        assert C.min() >= 0 and not np.diagonal(C).any() and C.sum(axis=1).max() <= 1 + 1e-12


def test_a_named_weak_learner_is_that_of_boosting() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)) * [1, 10, 0.1, 5, 1], rng.integers(3, size=60)
    X[:, 0] += y
    boosted = OnlineBoosting(Named("ferns"), n_estimators=3, random_state=2)
    p = boosted.predict_then_learn(X, y, classes=range(3))
    first = OnlineBoosting("ferns", n_estimators=1, random_state=2)
    q = first.predict_then_learn(X, y, classes=range(3))
    alone = OnlineBoosting(Named("ferns"), n_estimators=1, random_state=2)
    np.testing.assert_allclose(alone.predict_then_learn(X, y, classes=range(3)), q, atol=1e-9)
    assert np.isfinite(p).all()


def test_newtron_minimises_its_costs() -> None:
    """The mistakes, with W from a numerical minimiser of the sum of the paper's cost functions."""
    K, D, gamma, beta, n = 3, 2.0, 0.2, 0.3, 40
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    y = np.argmax(X @ rng.normal(size=(2, K)) * 3, axis=1)
    mistakes = newtron(X, y, K, D, gamma, beta, seed=4)
    draws, W, costs = np.random.default_rng(4), np.zeros(2 * K), []
    for t, x in enumerate(X):
        z = np.exp(W.reshape(K, 2) @ x)
        p = z / z.sum()
        q = (1 - gamma) * p + gamma / K
        label = int(draws.choice(K, p=q))
        assert mistakes[t] == (label != y[t])
        e = np.eye(K)[label]
        if label == y[t]:
            g, kappa = (1 - p[label]) / q[label] * np.kron(1 / K - e, x), q[label]
        else:
            g, kappa = p[label] / q[label] * np.kron(e - 1 / K, x), 1.0
        costs.append((g, kappa, W.copy()))

        def total(V: np.ndarray) -> float:
            parts = [g @ (V - U) + kappa * beta / 2 * (g @ (V - U)) ** 2 for g, kappa, U in costs]
            return float(sum(parts) + V @ V / (2 * D))

        inside = {"type": "ineq", "fun": lambda V: D**2 - V @ V}
        W = minimize(total, W, method="SLSQP", constraints=[inside], options={"ftol": 1e-13, "maxiter": 500}).x


@pytest.mark.parametrize("size", [0.1, 100.0])
def test_the_least_value_in_a_ball(size: float) -> None:
    rng = np.random.default_rng(1)
    root = rng.normal(size=(4, 4))
    A, b = root @ root.T + np.eye(4), size * rng.normal(size=4)
    w = least_in_ball(A, b, 1.0)
    assert np.linalg.norm(w) <= 1 + 1e-9
    slope = b - A @ w  # 0, or an outward normal
    assert np.linalg.norm(slope - max(0.0, slope @ w) / max(w @ w, 1e-300) * w) < 1e-8 * (1 + size)
    if size == 100.0:
        assert np.linalg.norm(w) == pytest.approx(1.0, rel=1e-9)
