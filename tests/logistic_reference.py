"""OnlineLogisticRegression's members and mixture, written from their definitions, and a stream to try them on."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax, logsumexp, softmax

from learners import standardised
from regretless import AIOLI, FOLKLORE, MondrianForest
from regretless.learners.logistic import forest
from regretless.learners.logistic.game import Game
from regretless.learners.logistic.members import Constants
from regretless.learners.logistic.state import LogisticState


def by_range(X: np.ndarray) -> np.ndarray:
    """As `standardised`, but a column of two values so far is centred and divided by half of their distance."""
    Z = standardised(X)
    for t in range(1, len(X)):
        for j in range(X.shape[1]):
            values = sorted(set(X[: t + 1, j].tolist()))
            if len(values) == 2:
                Z[t, j] = 2 * (X[t, j] - X[:t, j].mean()) / (values[1] - values[0])
    return Z


def implicit_step(m: np.ndarray, q: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The logits z = m + q (y - softmax(z)), by Newton's steps; the damping is that of a Lipschitz constant 1."""
    z, last = m.copy(), np.inf
    for _ in range(200):
        p = np.exp(z - z.max())
        p /= p.sum()
        J = np.eye(len(m)) + q[:, None] * (np.diag(p) - np.outer(p, p))
        step = np.linalg.solve(J, z - m - q * (y - p))
        size = np.abs(step).max()
        z -= step / (1.0 + size)
        if size <= 1e-15 * max(1.0, np.abs(z).max()) or last <= size < 1e-12:  # rounding moves it back and forth
            return z
        last = size
    raise AssertionError(f"no logits after 200 steps: the last was {size}")


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
        p = softmax(implicit_step(m, weight[t] * q, Y[t]))
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


def forest_member(X: np.ndarray, Y: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The forest on rows as they are, without missing values."""
    learner = MondrianForest(n_estimators=10)
    return np.log(learner.predict_then_learn(X, Y, classes=range(Y.shape[1]), sample_weight=weight))


def play(found: LogisticState, constants: Constants, X: np.ndarray, Y: np.ndarray) -> LogisticState:
    """The state after rows of weight 1, without an estimator."""
    done, n = 0, len(X)
    while done < n:
        weight, out = np.ones(n - done), np.empty((n - done, Y.shape[1]))
        done += Game(found, constants).run(X[done:], Y[done:], weight, False, out)
        if done < n:
            found = forest.with_room(found)
    return found


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


# ---------------------------------------------------------------------- expanded rows and the stack


def chance(n: int) -> float:
    found = n % 2**31
    for factor in (0x5BD1E995, 0x2C9277B5, 0x1B873593):
        found = found * factor % 2**31
        found ^= found >> 15
    return found / 2**31


def rank_of(value: float, sample: list[float]) -> float:
    """The share of smaller values, ties and the value itself counting half."""
    return (sum(x < value for x in sample) + sum(x <= value for x in sample) + 1) / (2 * len(sample) + 2)


def spline_rows(X: np.ndarray, Z: np.ndarray, levels: int, size: int = 128) -> np.ndarray:
    """Rescaled columns, hats of the ranks in samples of `size` values, and the intercept; X without missing values."""
    n, d = X.shape
    samples: list[list[float]] = [[] for _ in range(d)]
    hats = np.zeros((n, 2**levels - 1, d))
    for t in range(n):
        for j, sample in enumerate(samples):
            u, i = rank_of(X[t, j], sample), 0
            for level in range(1, levels + 1):
                for k in range(2 ** (level - 1)):
                    hats[t, i, j] = max(0.0, 1.0 - abs(u - (2 * k + 1) / 2**level) * 2**level) - (level == 1)
                    i += 1
            gone = len(sample) if t < size else int(chance(t + 1) * (t + 1))
            if gone < size:
                del sample[gone : gone + 1]
                sample.append(X[t, j])
                sample.sort()
    return np.hstack([Z[:, :d], hats.reshape(n, -1), Z[:, d:]])


def fourier_rows(Z: np.ndarray, frequencies: np.ndarray, octave: int) -> np.ndarray:
    rows = Z[:, :-1]
    size = np.sqrt(np.cumsum(np.sum(rows**2, axis=1)) / np.arange(1, len(rows) + 1))
    angles = 0.6 * 2**octave * (rows / np.where(size > 0, size, 1.0)[:, None]) @ frequencies.T
    return np.hstack([np.cos(angles), np.sin(angles), Z])


def product_rows(Z: np.ndarray) -> np.ndarray:
    d = Z.shape[1] - 1
    return np.hstack([*(Z[:, [i]] * Z[:, [j]] for i in range(d) for j in range(i + 1)), Z])


def pooled_member(
    F: np.ndarray, Y: np.ndarray, weight: np.ndarray, kappa: float, lam: float, intercept: float
) -> np.ndarray:
    """As `newton_member`, with one matrix for all classes."""
    n, K = Y.shape
    D = F.shape[1]
    if K == 2:
        return newton_member(F, Y, weight, kappa, lam, intercept=intercept)
    A, W, out = lam * np.eye(D), np.zeros((K, D)), np.empty((n, K))
    A[-1, -1] = intercept
    for t in range(n):
        x = F[t]
        v = np.linalg.solve(A, x)
        m, q = W @ x, v @ x
        out[t] = m
        p = softmax(implicit_step(m, np.full(K, weight[t] * q), Y[t]))
        W += weight[t] * np.outer(Y[t] - p, v)
        A += weight[t] * kappa * np.mean(p * (1 - p)) * np.outer(x, x)
    return out


def stacked_mixture(
    members: list[np.ndarray], Y: np.ndarray, weight: np.ndarray, shares: bool, parts: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The mixture of the members and of the one that combines them, whose parts come last; and the latter's logits."""
    log_p = np.array([log_softmax(logits, axis=1) for logits in members])
    N, n, K = log_p.shape
    prior = np.array(parts) / np.sum(parts)
    log_weight, rows, out, said = np.log(prior), 0, np.empty((n, K)), np.empty((n, K))
    A, w = 30.0 * np.eye(N + 1), np.r_[np.zeros(N), 1.0]
    for t in range(n):
        among = logsumexp(log_weight[:N, None] + log_p[:, t], axis=0)
        F = np.vstack([log_p[:, t], among])
        F = np.clip(F - F.mean(axis=1, keepdims=True), -15.0, 15.0)
        said[t] = w @ F
        every = np.vstack([log_p[:, t], log_softmax(said[t])])
        out[t] = logsumexp(log_weight[:, None] + every, axis=0)
        # the implicit step along v = A^-1 g
        g = F @ (Y[t] - softmax(said[t]))
        v = np.linalg.solve(A, g)
        h = v @ F

        def slope(s: float, h: np.ndarray = h, z: np.ndarray = said[t], t: int = t, square: float = v @ g) -> float:
            return s * square - weight[t] * float((Y[t] - softmax(z + s * h)) @ h)

        s = brentq(slope, 0.0, weight[t], xtol=1e-14) if slope(weight[t]) > 0.0 else weight[t]
        w = w + s * v
        p = softmax(said[t] + s * h)
        Hv = F @ (p * (h - p @ h))
        if v @ Hv > 0.0:
            A += weight[t] * np.outer(Hv, Hv) / (v @ Hv)
        log_weight = log_weight + weight[t] * every @ Y[t]
        log_weight -= logsumexp(log_weight)
        rows += 1
        if shares:
            log_weight = np.log((1 - 1 / (rows + 1)) * np.exp(log_weight) + 1 / (rows + 1) * prior)
    return np.exp(out), said
