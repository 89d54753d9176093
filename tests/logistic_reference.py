"""OnlineLogisticRegression's members and mixture, written from their definitions, and a stream to try them on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import log_softmax, logsumexp, softmax

from learners import standardised
from regretless import AIOLI, FOLKLORE


def by_range(X: np.ndarray) -> np.ndarray:
    """As `standardised`, but a column of two values so far is centred and divided by half of their distance."""
    Z = standardised(X)
    for t in range(1, len(X)):
        for j in range(X.shape[1]):
            values = sorted(set(X[: t + 1, j].tolist()))
            if len(values) == 2:
                Z[t, j] = 2 * (X[t, j] - X[:t, j].mean()) / (values[1] - values[0])
    return Z


def newton_member(
    Z: np.ndarray,
    Y: np.ndarray,
    weight: np.ndarray,
    kappa: float,
    lam: float,
    rho: float = 1.0,
    intercept: float | None = None,
) -> np.ndarray:
    """Implicit steps, with matrices that are inverted at every row; the last column may have a prior of its own."""
    n, K = Y.shape
    d = Z.shape[1]
    A, W, out = np.tile(lam * np.eye(d), (K, 1, 1)), np.zeros((K, d)), np.empty((n, K))
    A[:, -1, -1] = lam if intercept is None else intercept
    for t in range(n):
        x = Z[t]
        if rho < 1.0:
            A = np.linalg.inv(rho * np.linalg.inv(A) + (1 - rho) / lam * np.eye(d))
        v = np.linalg.solve(A, np.tile(x[:, None], (K, 1, 1)))[:, :, 0]
        m, q = W @ x, v @ x
        out[t] = m
        z = m.copy()
        for _ in range(200):  # Newton on the residual; the damping is that of a Lipschitz constant 1
            p = softmax(z)
            J = np.eye(K) + weight[t] * q[:, None] * (np.diag(p) - np.outer(p, p))
            step = np.linalg.solve(J, z - m - weight[t] * q * (Y[t] - p))
            z -= step / (1.0 + np.abs(step).max())
            if np.abs(step).max() <= 1e-15 * max(1.0, np.abs(z).max()):
                break
        p = softmax(z)
        W += weight[t] * (Y[t] - p)[:, None] * v
        A += weight[t] * kappa * (p * (1 - p))[:, None, None] * np.outer(x, x)
    return out


def adagrad_member(Z: np.ndarray, Y: np.ndarray, weight: np.ndarray, eta: float, intercept: float) -> np.ndarray:
    K, d = Y.shape[1], Z.shape[1]
    rates = np.r_[np.full(d - 1, eta), intercept]
    W, squares, out = np.zeros((K, d)), np.zeros((K, d)), np.empty(Y.shape)
    for t in range(len(Z)):
        out[t] = W @ Z[t]
        g = weight[t] * np.outer(softmax(out[t]) - Y[t], Z[t])
        squares += g**2
        W -= rates * g / np.sqrt(np.where(squares > 0, squares, 1.0))
    return out


def certified_member(Z: np.ndarray, Y: np.ndarray, weight: np.ndarray, radius: float) -> np.ndarray:
    learner: Any = FOLKLORE(radius=radius, regularization=0.5 / radius**2)
    if Y.shape[1] == 2:
        learner = AIOLI(radius=2 * radius, regularization=0.25 / radius**2, virtual_weight=0.5)
    return np.log(learner.predict_then_learn(Z, Y, sample_weight=weight))


def frequencies_member(Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Laplace's rule."""
    counts = np.ones(Y.shape) + np.vstack([np.zeros(Y.shape[1]), np.cumsum(weight[:, None] * Y, axis=0)[:-1]])
    return np.log(counts / counts.sum(axis=1, keepdims=True))


def mixture(
    members: list[np.ndarray], Y: np.ndarray, weight: np.ndarray, shares: bool, parts: Any = None
) -> np.ndarray:
    log_p = np.array([log_softmax(logits, axis=1) for logits in members])
    N, n, _ = log_p.shape
    prior = np.ones(N) / N if parts is None else np.array(parts) / np.sum(parts)
    log_weight, rows, out = np.log(prior), 0, np.empty(Y.shape)
    for t in range(n):
        out[t] = logsumexp(log_weight[:, None] + log_p[:, t], axis=0)
        log_weight = log_weight + weight[t] * log_p[:, t] @ Y[t]
        log_weight -= logsumexp(log_weight)
        rows += weight[t] > 0
        if shares and weight[t] > 0:
            log_weight = np.log((1 - 1 / (rows + 1)) * np.exp(log_weight) + 1 / (rows + 1) * prior)
    return np.exp(out)


def some_rows(n: int, d: int, K: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng([seed, n, d, K])
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-3, 3, size=d) + rng.normal(size=d)
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.normal(size=(d, K)) * 2
    return X, np.argmax(z + rng.gumbel(size=z.shape), axis=1)
