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


def sketched(
    Z: np.ndarray, Y: np.ndarray, weight: np.ndarray, kappa: float, variance: float, signs: np.ndarray
) -> np.ndarray:
    """Logits (n, K) of a belief of precision 1/v + F (R - I) F^T; `signs` (d, r) are the first directions."""
    n, K = Y.shape
    C, (d, r) = (1 if K == 2 else K), signs.shape
    W, V = np.zeros((C, d)), np.full((C, d), variance if K == 2 else variance / 2)
    F, R, R_0, curvature = np.tile(signs, (C, 1, 1)), *np.tile(np.eye(r), (2, C, 1, 1)), np.zeros((C, d, r))
    begun, met, rows, next_turn = np.zeros(C, dtype=bool), np.zeros(d, dtype=bool), 0, 32
    logits = np.zeros((n, K))
    for t in range(n):
        x, c = Z[t], weight[t]
        z = np.array([F[k].T @ (V[k] * x) for k in range(C)])
        VF = V[:, :, None] * F
        Sigma = [np.diag(V[k]) - VF[k] @ (np.eye(r) - np.linalg.inv(R[k])) @ VF[k].T for k in range(C)]
        m, q = W @ x, np.array([x @ each @ x for each in Sigma])
        logits[t] = [-m[0] / 2, m[0] / 2] if K == 2 else m
        if c == 0:
            continue
        if K == 2:
            far = c * q[0] + 1
            p = np.array([expit(brentq(_off, m[0] - far, m[0] + far, args=(m[0], c * q[0], Y[t, 1]), xtol=1e-14))])
            y = Y[t, 1:]
        else:
            p, y = softmax(root(_off_all, m, args=(m, c * q, Y[t]), tol=1e-14).x), Y[t]
        rows, met = rows + 1, met | (x != 0)
        for k in range(C):
            b = c * kappa * p[k] * (1 - p[k])
            W[k] += c * (y[k] - p[k]) * Sigma[k] @ x
            rest = np.where(x != 0, x - (F[k] @ z[k] if begun[k] else 0.0), 0.0)
            V[k] = 1 / (1 / V[k] + b * rest**2)
            R[k] += b * np.outer(z[k], z[k]) * begun[k]
            curvature[k] += b * np.outer(x, z[k])
        if rows < next_turn:
            continue
        next_turn = rows + max(32, rows // 2)
        for k in range(C):
            old, deviation = F[k] * met[:, None], np.sqrt(V[k])[:, None]
            L = old @ (R_0[k] - np.eye(r)) + curvature[k]
            left, sizes, right = np.linalg.svd(deviation * old, full_matrices=False)
            left, sizes, _ = np.linalg.svd(deviation * L @ (right.T / sizes) @ right, full_matrices=False)
            F[k] = left / deviation
            R[k] = R_0[k] = np.eye(r) + np.diag(sizes)
            curvature[k], begun[k] = 0.0, True
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
