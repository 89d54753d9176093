"""The mirror step argmin over the set of zeta.theta + beta V(theta) (mda), solved from its optimality conditions.

With g the gradient of that at theta >= 0, theta is the minimiser when g = -mu on the positive weights and g >= -mu on
the others (mu >= 0, and 0 if the weights may still grow; on the simplex any mu). mu is found by bisection in extended
precision, and the conditions are then checked.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from .newton import Array, Long, long, norm

SLACK = Long(1e-15)  # how far rounding may lead out of the set


def bisect(f: Callable[[np.longdouble], np.longdouble], low: np.longdouble, high: np.longdouble) -> np.longdouble:
    """A root of the decreasing f, to the last bit."""
    while True:
        middle = (low + high) / 2
        if not low < middle < high:
            return middle
        low, high = (middle, high) if f(middle) > 0 else (low, middle)


class ReferenceMirror:
    """A proxy V on a set of M weights of size lam.

    euclidean |theta|_2^2 / 2; entropy sum theta ln theta (8); p-norm |theta|_p^2 / (2 lam^2), p = 1 + s (35);
    power lam^(1-s) / (s (s+1)) sum |theta|^(1+s) (36), s = 1 / max(1, ln M); all up to a constant.

    The entropy of the sub-simplex and of the octahedron is that of the simplex with one more base function, 0, or with
    every one negated (mda, section 6.2): its points have M + 1 or 2M entries, and `fold` reads the M weights off them.
    """

    def __init__(self, proxy: str, domain: str, M: int, lam: float = 1.0) -> None:
        self.proxy, self.domain, self.M, self.lam = proxy, domain, M, Long(lam)
        self.s = 1 / max(Long(1), np.log(Long(M)))
        self.lifted = {"subsimplex": "zero", "octahedron": "negated"}.get(domain, "") if proxy == "entropy" else ""
        self.set = "simplex" if self.lifted else domain
        self.points = M + (1 if self.lifted == "zero" else M if self.lifted else 0)
        self.start = self.minimise(np.zeros(self.points, dtype=Long), Long(1))

    def lift(self, u: ArrayLike) -> Array:
        """A gradient in the M weights, as one in the points."""
        u = long(u)
        if self.lifted == "zero":
            return np.append(u, Long(0))
        return np.concatenate([u, -u]) if self.lifted else u

    def fold(self, point: Array) -> Array:
        """The M weights of a point."""
        if self.lifted == "negated":
            return point[: self.M] - point[self.M :]
        return point[: self.M]

    def value(self, point: Array) -> np.longdouble:
        """V."""
        size, s, lam = np.abs(point), self.s, self.lam
        if self.proxy == "euclidean":
            return np.sum(size**2) / 2
        if self.proxy == "entropy":
            positive = size[size > 0]
            return np.sum(positive * np.log(positive))
        if self.proxy == "p-norm":
            return np.sum(size ** (1 + s)) ** (2 / (1 + s)) / (2 * lam**2)
        return lam ** (1 - s) / (s * (s + 1)) * np.sum(size ** (1 + s))

    def gradient(self, point: Array) -> Array:
        """The gradient of V."""
        size, s, lam = np.abs(point), self.s, self.lam
        if self.proxy == "euclidean":
            return point.copy()
        if self.proxy == "entropy":
            return np.log(point) + 1
        if self.proxy == "p-norm":
            total = np.sum(size ** (1 + s))
            level = total ** ((1 - s) / (1 + s)) if total > 0 else Long(0)
            return np.sign(point) * level * size**s / lam**2
        return np.sign(point) * lam ** (1 - s) / s * size**s

    def inverse(self, y: Array) -> Array:
        """The point at which the gradient of V is y >= 0 (entropy: any y)."""
        s, lam = self.s, self.lam
        if self.proxy == "euclidean":
            return y
        if self.proxy == "entropy":
            return np.exp(y - 1)
        if self.proxy == "p-norm":  # the gradient of the conjugate lam^2 |y|_q^2 / 2, 1/p + 1/q = 1
            total = np.sum(y ** (1 + 1 / s))
            level = total ** ((s - 1) / (s + 1)) if total > 0 else Long(0)
            return lam**2 * level * y ** (1 / s)
        return (s * y / lam ** (1 - s)) ** (1 / s)

    @property
    def strong_convexity(self) -> float:
        """alpha with D_V(theta, theta') >= (alpha / 2) |theta - theta'|^2, in l1 (the Euclidean proxy: l2)."""
        M, s, lam = self.M, self.s, self.lam
        return float(
            {
                "euclidean": Long(1),
                "entropy": 1 / lam,
                "p-norm": s * M ** (-2 * s / (1 + s)) / lam**2,
                "power": M**-s,
            }[self.proxy]
        )

    @property
    def spread(self) -> float:
        """max V - min V: a convex function is largest at a vertex (on the ball: on the sphere)."""
        vertex = np.zeros(self.points, dtype=Long)
        vertex[: None if self.set == "box" else 1] = self.lam
        if self.proxy == "p-norm" and self.set == "ball":  # p < 2: equal weights
            vertex[:] = self.lam / np.sqrt(Long(self.points))
        return float(self.value(vertex) - self.value(self.start))

    def minimise(self, zeta: Array, beta: float | np.longdouble) -> Array:
        """argmin of zeta.theta + beta V(theta) over the points."""
        beta = Long(beta)
        if self.proxy == "p-norm" and self.set in ("ball", "box"):
            return self._pnorm(zeta, beta)
        if self.set == "ball":  # zeta + (beta + nu) theta = 0, nu >= 0
            theta = -zeta / max(beta, norm(zeta) / self.lam)
        elif self.set == "box":  # coordinate by coordinate: a parabola on an interval
            theta = np.clip(-zeta / beta, -self.lam, self.lam)
        elif self.set in ("whole", "octahedron"):  # V is even: every weight has the sign of -zeta
            theta = -np.sign(zeta) * self._nonnegative(-np.abs(zeta), beta)
        else:
            theta = self._nonnegative(zeta, beta)
        self._check(theta, zeta, beta)
        return theta

    def _pnorm(self, zeta: Array, beta: np.longdouble) -> Array:
        """The p-norm on the ball (multiplier nu) or box: with N = |theta|_p, each weight solves its own equation.

        beta N^(1-s) / lam^2 theta^s + nu theta = |zeta|, clipped on the box; N and then nu are found as roots.
        """
        a, b, lam, s = np.abs(zeta).astype(float), float(beta), float(self.lam), float(self.s)
        if not a.any():
            return np.zeros_like(zeta)
        free = self.inverse(np.abs(zeta) / beta)
        widest = float(np.sum(free ** (1 + s)) ** (1 / (1 + Long(s))))

        def weights(N: float, nu: float) -> np.ndarray:
            k = b * N ** (1 - s) / lam**2
            if self.set == "box":
                return np.minimum(lam, (a / k) ** (1 / s))
            low, high = np.zeros_like(a), (a / k) ** (1 / s)
            for _ in range(70):
                middle = (low + high) / 2
                short = k * middle**s + nu * middle < a
                low, high = np.where(short, middle, low), np.where(short, high, middle)
            return (low + high) / 2

        def consistent(nu: float) -> np.ndarray:
            def excess(log_n: float) -> float:
                N = math.exp(log_n)
                return float(np.sum((weights(N, nu) / N) ** (1 + s))) ** (1 / (1 + s)) - 1

            top = math.log(widest) + 1e-6
            low = top - 1
            while excess(low) < 0:
                low -= 3
            return weights(math.exp(brentq(excess, low, top, xtol=1e-15, rtol=1e-15)), nu)

        theta = consistent(0.0)
        if self.set == "ball" and np.linalg.norm(theta) > lam:

            def beyond(log_nu: float) -> float:
                return float(np.linalg.norm(consistent(math.exp(log_nu)))) / lam - 1

            theta = consistent(math.exp(brentq(beyond, -60.0, math.log(np.linalg.norm(a) / lam) + 1e-6, xtol=1e-14)))
        return -np.sign(zeta) * long(theta)

    def _nonnegative(self, zeta: Array, beta: np.longdouble) -> Array:
        """The same over theta >= 0 with sum = lam (simplex), <= lam (sub-simplex, octahedron) or any sum (whole)."""

        def weights(y: Array) -> Array:
            return self.inverse(y if self.proxy == "entropy" else np.maximum(y, 0))

        free = weights(-zeta / beta) if self.set != "simplex" else zeta
        if self.set == "whole" or (self.set != "simplex" and np.sum(free) <= self.lam):
            return free
        # The weight with the least zeta is the largest, between lam / M and lam, and so is the derivative of V in it.
        gaps = (zeta - np.min(zeta)) / beta
        if self.proxy == "entropy":
            high = np.log(self.lam) + 1
            low = high - np.log(Long(len(zeta)))
        else:
            high, low = self.gradient(self.lam * np.eye(len(zeta), dtype=Long)[0])[0], Long(0)
        return weights(bisect(lambda y: self.lam - np.sum(weights(y - gaps)), low, high) - gaps)

    def _check(self, theta: Array, zeta: Array, beta: np.longdouble) -> None:
        """Theta is in the set, and the minimiser for some zeta so close that the weights cannot differ by 1e-13."""
        g, lam = zeta + beta * self.gradient(theta), self.lam
        signs = np.sign(theta) if self.set == "octahedron" else np.ones_like(theta)
        g = np.where(signs == 0, -np.abs(g), g * signs)
        positive = np.abs(theta) > 0
        total = np.sum(theta * signs)
        if self.set == "ball":
            nu = max(-np.sum(g * theta) / lam**2, Long(0)) if norm(theta) > 0.999999 * lam else Long(0)
            residual = np.max(np.abs(g + nu * theta))
            assert norm(theta) <= lam * (1 + SLACK)
        elif self.set == "box":  # at a side the objective may fall outwards
            assert np.max(np.abs(theta)) <= lam
            side = np.abs(theta) == lam
            residual = np.max(np.where(side, np.maximum(g * np.sign(theta), 0), np.abs(g)))
        elif self.set == "whole":
            residual = np.max(np.abs(g))
        else:
            assert total <= lam * (1 + SLACK) and np.min(theta * signs) >= 0
            assert self.set != "simplex" or total >= lam * (1 - SLACK)
            mu = -np.mean(g[positive]) if positive.any() else Long(0)
            if self.set != "simplex":
                mu = max(mu, Long(0)) if total >= lam * (1 - SLACK) else Long(0)
            residual = np.max(np.where(positive, np.abs(g + mu), np.maximum(-(g + mu), 0)))
        # The minimiser is a Lipschitz function of zeta, with the constant 1 / (alpha beta).
        assert residual <= 1e-13 * beta * self.strong_convexity * lam, float(residual)
