"""Sets of weights as cones for the interior-point method: h - G x in a product of half-lines and second-order cones.

The unknowns x are the flattened weights; for the octahedron, their positive and negative parts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import sparse

from regretless.core.types import Array
from regretless.theory.domains import Ball, Box, Domain, Octahedron, RowBall, Simplex, SubSimplex, WholeSpace


@dataclass(frozen=True)
class Cone:
    """Slacks s = h - G x: the first `n_positive` are >= 0, and each of `balls` is a pair (t, v) with |v| <= t.

    Each of the first slacks belongs to one unknown, except that the last may belong to the sum (`capped`).
    """

    G: sparse.csr_array
    h: Array
    n_positive: int
    balls: tuple[slice, ...]
    centre: Array  # an x with interior slacks
    capped: bool = False
    total: float | None = None  # the required sum of the unknowns, if any
    signed: bool = False  # whether x consists of the positive and negative parts of the weights

    def weights(self, x: Array) -> Array:
        """The weights of x."""
        return x[: x.size // 2] - x[x.size // 2 :] if self.signed else x

    def gradient(self, g: Array) -> Array:
        """The gradient in x of a function with this gradient in the weights."""
        return np.concatenate([g, -g]) if self.signed else g

    def hessian(self, H: Array) -> Array:
        """The Hessian in x of a function with this Hessian in the weights."""
        return np.block([[H, -H], [-H, H]]) if self.signed else H

    @property
    def reach(self) -> float:
        """The size of the set."""
        return self.total or float(self.h.max(initial=0.0))

    @property
    def degree(self) -> int:
        """The number of half-lines and balls."""
        return self.n_positive + len(self.balls)


def cone(domain: Domain, shape: tuple[int, ...]) -> Cone:
    """The cone of a set of weights (None for the whole space)."""
    N = math.prod(shape)
    eye = sparse.eye_array(N, format="csr")
    if isinstance(domain, Ball | RowBall):
        n_rows = shape[0] if isinstance(domain, RowBall) and len(shape) > 1 else 1
        d = N // n_rows
        lift = sparse.vstack([sparse.csr_array((1, d)), -sparse.eye_array(d)])
        h: Array = np.zeros((n_rows, d + 1))
        h[:, 0] = domain.radius
        balls = tuple(slice(i * (d + 1), (i + 1) * (d + 1)) for i in range(n_rows))
        return Cone(sparse.block_diag([lift] * n_rows, format="csr"), h.ravel(), 0, balls, np.zeros(N))
    if isinstance(domain, Box):
        h = np.full(2 * N, float(domain.radius))
        return Cone(sparse.vstack([eye, -eye], format="csr"), h, 2 * N, (), np.zeros(N))
    if isinstance(domain, Simplex):
        size = float(domain.size)
        return Cone(-eye, np.zeros(N), N, (), np.full(N, size / N), total=size)
    if isinstance(domain, SubSimplex):
        G = sparse.vstack([-eye, np.ones((1, N))], format="csr")
        h = np.append(np.zeros(N), float(domain.size))
        return Cone(G, h, N + 1, (), np.full(N, domain.size / (N + 1)), capped=True)
    if isinstance(domain, Octahedron):
        parts = SubSimplex(domain.size)
        return replace(cone(parts, (2 * N,)), signed=True)
    return Cone(sparse.csr_array((0, N)), np.zeros(0), 0, (), np.zeros(N))


def nearby(domain: Domain, shape: tuple[int, ...], regularization: float, at_origin: float) -> Domain:
    """A smaller set with the same minimiser, if regularization keeps it near the origin, whose loss is given.

    Losses are not negative, so regularization |w|^2 is at most the loss of the origin, if that is in the set.
    """
    if regularization == 0 or isinstance(domain, Simplex | WholeSpace):
        return domain
    norm = 2 * math.sqrt(at_origin / regularization)
    if isinstance(domain, SubSimplex | Octahedron):
        return replace(domain, size=min(domain.size, max(math.sqrt(math.prod(shape)) * norm, 1e-6 * domain.size)))
    return replace(domain, radius=min(domain.radius, max(norm, 1e-6 * domain.radius)))


class Scaling:
    """Nesterov-Todd scaling: the W with W z = s/W = `point` for interior slacks s and duals z."""

    def __init__(self, cone: Cone, s: Array, z: Array) -> None:
        self.cone = cone
        p = cone.n_positive
        self.root = np.sqrt(s[:p] / z[:p])
        self.point = np.empty_like(s)
        self.point[:p] = np.sqrt(s[:p] * z[:p])
        self.beta: list[float] = []
        self.axes: list[Array] = []
        for ball in cone.balls:
            S, Z = _length(s[ball]), _length(z[ball])
            su, zu = s[ball] / S, z[ball] / Z
            axis = su + _flip(zu)
            axis /= 2 * math.sqrt((1 + su @ zu) / 2)
            self.beta.append(math.sqrt(S / Z))
            self.axes.append(axis)
        self.point[p:] = self.apply(z)[p:]

    def apply(self, u: Array) -> Array:
        """W u."""
        return self._apply(u, inverse=False)

    def unapply(self, u: Array) -> Array:
        """W^-1 u."""
        return self._apply(u, inverse=True)

    def _apply(self, u: Array, inverse: bool) -> Array:
        p = self.cone.n_positive
        out = np.empty_like(u)
        out[:p] = u[:p] / self.root if inverse else u[:p] * self.root
        for ball, beta, axis in zip(self.cone.balls, self.beta, self.axes, strict=True):
            v = _flip(axis) if inverse else axis  # W = beta (2 r r' - J), with r the square root of the axis
            r = v.copy()
            r[0] += 1.0
            r /= math.sqrt(2 * (axis[0] + 1))
            out[ball] = (2 * (r @ u[ball]) * r - _flip(u[ball])) * (1 / beta if inverse else beta)
        return out

    def normal(self, H: Array) -> tuple[Array, Array, Array]:
        """H + G' W^-2 G as K + U diag(1/r) U', where U has one column per ball or cap on the sum: K, U, r.

        Near the boundary r is tiny; added to K, it would destroy K's digits in that direction.
        """
        p, capped = self.cone.n_positive, self.cone.capped
        K = H.copy()
        diagonal = np.einsum("ii->i", K)
        diagonal += abs(self.cone.G[: p - capped]).T @ self.root[: p - capped] ** -2.0
        U = np.zeros((K.shape[0], capped + len(self.beta)))
        r = np.empty(U.shape[1])
        if capped:
            U[:, 0], r[0] = 1.0, self.root[-1] ** 2
        at = 0
        for wall, (beta, axis) in enumerate(zip(self.beta, self.axes, strict=True), capped):
            block = slice(at, at + axis.size - 1)
            diagonal[block] += beta**-2
            U[block, wall], r[wall] = axis[1:], 0.5 * beta**2
            at += axis.size - 1
        return K, U, r

    def product(self, u: Array, v: Array) -> Array:
        """The Jordan product."""
        p = self.cone.n_positive
        out = np.empty_like(u)
        out[:p] = u[:p] * v[:p]
        for ball in self.cone.balls:
            a, b = u[ball], v[ball]
            out[ball] = a[0] * b + b[0] * a
            out[ball.start] = a @ b
        return out

    def quotient(self, u: Array) -> Array:
        """The v whose Jordan product with the point is u."""
        p, point = self.cone.n_positive, self.point
        out = np.empty_like(u)
        out[:p] = u[:p] / point[:p]
        for ball in self.cone.balls:
            a, b = point[ball], u[ball]
            first = (_flip(a) @ b) / _length(a) ** 2
            out[ball] = (b - first * a) / a[0]
            out[ball.start] = first
        return out

    def longest(self, step: Array) -> float:
        """The largest t for which point + t step is in the cone."""
        p, point = self.cone.n_positive, self.point
        worst = float((-step[:p] / point[:p]).max(initial=0.0))
        for ball in self.cone.balls:
            a, b = point[ball], step[ball]
            size = _length(a)
            a = a / size
            first = (_flip(a) @ b) / size
            rest = b[1:] / size - ((first + b[0] / size) / (a[0] + 1)) * a[1:]
            worst = max(worst, float(np.linalg.norm(rest)) - float(first))
        return 1 / worst if worst > 0 else math.inf


def inverse(cone: Cone, s: Array) -> Array:
    """The inverse of an inner point: slacks times it are the unit."""
    out = np.empty_like(s)
    out[: cone.n_positive] = 1 / s[: cone.n_positive]
    for ball in cone.balls:
        out[ball] = _flip(s[ball]) / _length(s[ball]) ** 2
    return out


def _flip(u: Array) -> Array:
    v = -u
    v[0] = u[0]
    return v


def _length(u: Array) -> float:
    """sqrt(t^2 - |v|^2)."""
    size = float(np.linalg.norm(u[1:]))
    return math.sqrt(max((u[0] - size) * (u[0] + size), 1e-300))
