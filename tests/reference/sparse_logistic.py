"""The members for wide rows from their definitions: dense, one weight vector per class, one row after another."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq, root
from scipy.special import expit, softmax


def rescale(X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Every entry over the largest of its column so far (rows of weight > 0, and its own); then the constant."""
    top, Z = np.zeros(X.shape[1]), np.zeros((len(X), X.shape[1] + 1))
    known = np.zeros(X.shape[1], dtype=bool)
    for t, x in enumerate(X):
        known |= (x != 0) & (weight[t] > 0)
        now = np.maximum(top, np.abs(x))
        Z[t, :-1] = np.where(known & (now > 0), x / np.where(now > 0, now, 1.0), 0.0)
        Z[t, -1] = 5.0
        if weight[t] > 0:
            top = now
    return Z


def first_order(Z: np.ndarray, Y: np.ndarray, weight: np.ndarray, rate: float, keeps: bool) -> tuple[np.ndarray, float]:
    """Logits (n, K), and the sum of g.w less the least G.u over |u| <= 1 (two classes: u of the margin)."""
    n, K = Y.shape
    C = 1 if K == 2 else K
    rate = rate if K == 2 else rate / 2
    W, squares, G, slope = np.zeros((C, Z.shape[1])), np.zeros((C, Z.shape[1])), np.zeros((C, Z.shape[1])), 0.0
    logits = np.zeros((n, K))
    for t in range(n):
        m = W @ Z[t]
        logits[t] = [-m[0] / 2, m[0] / 2] if K == 2 else m
        p = softmax(logits[t])
        s = weight[t] * ((p - Y[t])[1:] if K == 2 else p - Y[t])
        g = np.outer(s, Z[t])
        slope += s @ m
        squares, G = squares + g**2, G + g
        new = W - rate * g / (1 + np.sqrt(squares)) if keeps else -rate * G / (1 + np.sqrt(squares))
        W = np.where(g != 0, new, W)
    return logits, slope + np.linalg.norm(G)


def _off(z: float, m: float, q: float, y: float) -> float:
    return z - m - q * (y - expit(z))


def _off_all(z: np.ndarray, m: np.ndarray, q: np.ndarray, y: np.ndarray) -> np.ndarray:
    return z - m - q * (y - softmax(z))


def belief(Z: np.ndarray, Y: np.ndarray, weight: np.ndarray, kappa: float, variance: float) -> np.ndarray:
    """Logits (n, K) of a Gaussian belief per weight, with implicit steps."""
    n, K = Y.shape
    C = 1 if K == 2 else K
    W, V = np.zeros((C, Z.shape[1])), np.full((C, Z.shape[1]), variance if K == 2 else variance / 2)
    logits = np.zeros((n, K))
    for t in range(n):
        m, q, c = W @ Z[t], V @ Z[t] ** 2, weight[t]
        logits[t] = [-m[0] / 2, m[0] / 2] if K == 2 else m
        if c == 0:
            continue
        if K == 2:
            y = Y[t, 1]
            far = c * q[0] + 1
            z = brentq(_off, m[0] - far, m[0] + far, args=(m[0], c * q[0], y), xtol=1e-14)
            p, y = np.array([expit(z)]), Y[t, 1:]
        else:
            y = Y[t]
            found = root(_off_all, m, args=(m, c * q, y), tol=1e-14)
            p = softmax(found.x)
        W = W + c * np.outer(y - p, Z[t]) * V
        V = 1 / (1 / V + c * kappa * np.outer(p * (1 - p), Z[t] ** 2))
    return logits


def pair_products(X: np.ndarray, pairs: list[tuple[int, int]] | None) -> list[dict[tuple[int, int], float]]:
    """The products of two entries of each row, by their columns."""
    found = []
    for x in X:
        there = np.flatnonzero(x)
        wanted = [(i, j) for i in there for j in there if i < j]
        if pairs is not None:
            wanted = [(min(i, j), max(i, j)) for i, j in pairs if x[i] != 0 and x[j] != 0]
        found.append({pair: x[pair[0]] * x[pair[1]] for pair in wanted})
    return found
