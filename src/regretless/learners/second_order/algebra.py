"""The K x K algebra of one row: the Hessian of the softmax, and small factorisations.

It does not involve the (K-1) d weights, so its cost per row is negligible for large d.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from regretless.core.kernels.jit import kernel, merged_kernel, summing_kernel
from regretless.core.types import Array


@summing_kernel
def dot(a: Array, b: Array) -> float:
    """a . b"""
    total = 0.0
    for j in range(a.size):
        total += a[j] * b[j]
    return total


@kernel
def trace(M: Array) -> float:
    """The sum of the diagonal."""
    total = 0.0
    for i in range(M.shape[0]):
        total += M[i, i]
    return total


@kernel
def norm(x: Array) -> float:
    """|x|"""
    return math.sqrt(dot(x, x))


@merged_kernel
def distance(z: Array, m: Array, e: Array) -> None:
    """e = z - m with mean zero."""
    mean = 0.0
    for a in range(z.size):
        e[a] = z[a] - m[a]
        mean += e[a] / z.size
    for a in range(z.size):
        e[a] -= mean


@merged_kernel
def hessian_factor(p: Array, scale: float, L: Array) -> None:
    """L (K, K-1) with L L^T = scale^2 (diag(p) - p p^T), free of cancellation.

    Column j sets class j against the classes after it: the stick-breaking form of the multinomial
    covariance. Every entry is a product of probabilities and sums of them, so a probability of
    1e-300 costs no accuracy; forming diag(p) - p p^T first would lose it.
    """
    K = p.size
    tail = p[K - 1]
    for j in range(K - 2, -1, -1):
        after = tail
        tail += p[j]
        for a in range(j):
            L[a, j] = 0.0
        if after > 0.0:
            L[j, j] = scale * math.sqrt(p[j] / tail * after)
            for a in range(j + 1, K):
                L[a, j] = -(p[a] / after) * L[j, j]
        else:
            for a in range(j, K):
                L[a, j] = 0.0


@merged_kernel
def add_identity_and_factor(M: Array) -> None:
    """The lower Cholesky factor of I + M, in place, for M positive semi-definite."""
    for j in range(M.shape[0]):
        pivot = 1.0 + M[j, j]
        for k in range(j):
            pivot -= M[j, k] * M[j, k]
        M[j, j] = math.sqrt(max(pivot, 1.0))  # exact arithmetic never goes below 1
        for i in range(j + 1, M.shape[0]):
            entry = M[i, j]
            for k in range(j):
                entry -= M[i, k] * M[j, k]
            M[i, j] = entry / M[j, j]


@kernel
def forward(M: Array, b: Array) -> None:
    """b = M^{-1} b for a lower triangular M."""
    for j in range(b.size):
        for k in range(j):
            b[j] -= M[j, k] * b[k]
        b[j] /= M[j, j]


@kernel
def backward(M: Array, b: Array) -> None:
    """b = M^{-T} b for a lower triangular M."""
    for j in range(b.size - 1, -1, -1):
        b[j] /= M[j, j]
        for k in range(j):
            b[k] -= M[j, k] * b[j]


@merged_kernel
def solve_without_pivots(J: Array, b: Array) -> None:
    """b = J^{-1} b by elimination; J is overwritten."""
    n = b.size
    for k in range(n):
        inverse = 1.0 / J[k, k]
        for i in range(k + 1, n):
            factor = J[i, k] * inverse
            b[i] -= factor * b[k]
            for j in range(k + 1, n):
                J[i, j] -= factor * J[k, j]
    for k in range(n - 1, -1, -1):
        for j in range(k + 1, n):
            b[k] -= J[k, j] * b[j]
        b[k] /= J[k, k]


@merged_kernel
def congruence(L: Array, Q: Array, scale: float, LQ: Array, M: Array) -> None:
    """LQ = scale L^T Q and M = scale L^T Q L."""
    K, r = L.shape
    for j in range(r):
        for a in range(K):
            entry = 0.0
            for b in range(j, K):  # L is lower trapezoidal
                entry += L[b, j] * Q[b, a]
            LQ[j, a] = scale * entry
    for i in range(r):
        for j in range(i + 1):
            entry = 0.0
            for b in range(j, K):
                entry += LQ[i, b] * L[b, j]
            M[i, j] = entry
            M[j, i] = entry


@merged_kernel
def divide_by_factor(L: Array, M: Array) -> None:
    """L = L M^{-T}, row by row, for a lower triangular M."""
    for a in range(L.shape[0]):
        for j in range(L.shape[1]):
            entry = L[a, j]
            for k in range(j):
                entry -= L[a, k] * M[j, k]
            L[a, j] = entry / M[j, j]


@kernel
def factor(S: Array, L: Array) -> None:
    """The lower Cholesky factor of a positive semi-definite S; a pivot of 0 gives a column of 0."""
    n = S.shape[0]
    L[:] = 0.0
    for j in range(n):
        pivot = S[j, j] - dot(L[j, :j], L[j, :j])
        if pivot <= 1e-15 * S[j, j]:
            continue
        L[j, j] = math.sqrt(pivot)
        for i in range(j + 1, n):
            L[i, j] = (S[i, j] - dot(L[i, :j], L[j, :j])) / L[j, j]


class Work(NamedTuple):
    """Workspace for the K x K algebra of one row, allocated once per block."""

    m: Array  # the leader's logits
    e: Array  # z - m
    z: Array  # the point of the quadratic
    p: Array  # softmax(z)
    Q: Array  # uncertainty of the logits
    S: Array  # a second (K, K) matrix
    L: Array  # factor of the Hessian, (K, r)
    LQ: Array  # (r, K)
    M: Array  # (r, r)
    small: Array  # (r,)
    vectors: Array  # (6, K), scratch
    near: Array  # (K, K), scratch


@kernel
def workspace(K: int, r: int) -> Work:
    """Allocate the workspace for K scores in r coordinates."""
    return Work(
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.empty(K),
        np.empty((K, K)),
        np.empty((K, K)),
        np.empty((K, r)),
        np.empty((r, K)),
        np.empty((r, r)),
        np.empty(r),
        np.empty((6, K)),
        np.empty((K, K)),
    )
