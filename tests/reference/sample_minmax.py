"""The sample minmax predictor, as its definition reads: every refit is solved from scratch."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_softmax


def refitted(Z, y, lam, K, radius=np.inf):
    """argmin sum_i -log softmax(W x_i)_{y_i} + lam |w|^2 over a ball: (d,) of the margin for K = 2, else (K, d)."""
    w = newton(Z, y, lam, K)
    if np.linalg.norm(w) <= radius:
        return w
    # on the border the multiplier adds to the penalty
    found = brentq(lambda nu: np.linalg.norm(newton(Z, y, lam + nu, K)) - radius, 0.0, 1e6, xtol=1e-14, rtol=1e-14)
    return newton(Z, y, lam + found, K)


def logits(w, X, K):
    """(n, K)"""
    return np.stack([np.zeros(len(X)), X @ w], axis=1) if K == 2 else X @ w.T


def newton(X, y, lam, K):
    """Newton's method with halved steps, over the whole space."""
    d = X.shape[1]
    # z = A_i w for the weights as one vector
    eye = np.array([[0.0], [1.0]]) if K == 2 else np.eye(K)
    A = np.einsum("kr,id->ikrd", eye, X).reshape(len(X), K, -1)

    def total(w):
        return -log_softmax(A @ w, axis=1)[np.arange(len(y)), y].sum() + lam * w @ w

    w = np.zeros(A.shape[2])
    for _ in range(200):
        p = np.exp(log_softmax(A @ w, axis=1))
        g = np.einsum("ik,ikj->j", p - np.eye(K)[y], A) + 2 * lam * w
        S = np.einsum("ik,kl->ikl", p, np.eye(K)) - np.einsum("ik,il->ikl", p, p)
        H = np.einsum("ika,ikl,ilb->ab", A, S, A, optimize=True) + 2 * lam * np.eye(w.size)
        step = -np.linalg.solve(H, g)
        size = 1.0
        while total(w + size * step) > total(w) + 1e-9 * abs(total(w)) and size > 1e-3:
            size /= 2
        w = w + size * step
        if np.abs(step).max() < 1e-14 * (1 + np.abs(w).max()):
            break
    return w if K == 2 else w.reshape(K, d)


def hedges(X, y, x, lam, K, radius=np.inf):
    """(K,): log p_{w_y}(y | x) - lam |w_y|^2 / (n + 1)."""
    found = []
    for label in range(K):
        w = refitted(np.vstack([X, x]), np.append(y, label), lam, K, radius)
        found.append(log_softmax(logits(w, x[None], K)[0])[label] - lam * (w**2).sum() / (len(y) + 1))
    return np.array(found)
