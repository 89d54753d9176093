"""A primal-dual interior-point method (Mehrotra's) for quadratics plus piecewise linear losses over a set of weights.

It minimises x'Px/2 + q.x + sum_r c_r t_r over x and t, where t_r >= b_rj + a_rj.z_r for the pieces of a row's loss at
the forecasts z = X x, and x is in a cone. The rows are eliminated: a step costs one `Design.gram` and one Cholesky
factorisation of the size of the weights, independent of the number of rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from regretless.core.types import Array
from regretless.theory.hindsight.cones import Cone, Scaling, inverse
from regretless.theory.hindsight.design import Design
from regretless.theory.hindsight.pieces import Pieces

NEAR = 0.995  # the largest fraction of the way to the boundary
SHORT = 0.3  # a corrected step of at most this length is replaced by a centring step
CENTRED = 1e-3  # relative to the mean product: steps that leave some product far below may cycle
RIDGE = 1e-15  # relative to the normal matrix's diagonal: no step where rounding leaves no curvature


class Rows(NamedTuple):
    """The rows of the problem: the design and the loss."""

    design: Design
    loss: Pieces


class Iterate(NamedTuple):
    """The current iterate."""

    w: Array  # (flattened) weights, inside the set
    alpha: Array  # the weights of the pieces
    complementarity: float  # the gap if the residual is 0
    residual: Array  # the gradient of the Lagrangian in the weights


def iterates(P: Array, q: Array, cone: Cone, rows: Rows | None = None) -> Iterator[Iterate]:
    """The iterates. The caller decides when to stop; they end when no step is possible."""
    method = _Method(P, q, cone, _NoPieces(q.size) if rows is None else _Pieces(*rows, cone.weights(cone.centre)))
    while True:
        yield method.look()
        with np.errstate(all="ignore"):  # overflow is detected and ends the method
            if not method.step():
                return


class _Method:
    """The unknowns x, the slacks s of the cone and their duals z, the multiplier y of a sum, and the rows' pieces."""

    def __init__(self, P: Array, q: Array, cone: Cone, pieces: _Pieces | _NoPieces) -> None:
        self.cone, self.pieces = cone, pieces
        self.H, self.linear = cone.hessian(P), cone.gradient(q)
        self.x = cone.centre.copy()
        self.s = cone.h - cone.G @ self.x
        self.y = 0.0
        self.degree = max(cone.degree + pieces.count, 1)
        # The duals must balance the rows' pull: far below it, as without the rows, every step ends at their boundary.
        steepness = float(np.linalg.norm(self.H @ self.x + self.linear + cone.gradient(pieces.pull())))
        mu = max(steepness * cone.reach / max(cone.degree, 1), pieces.complementarity() / max(pieces.count, 1))
        self.z = inverse(cone, self.s) * (mu or 1.0)

    def look(self) -> Iterate:
        """The residuals, and the state for the caller."""
        cone, x = self.cone, self.x
        self.rx = self.H @ x + self.linear + cone.G.T @ self.z + self.y + cone.gradient(self.pieces.pull())
        self.ry = float(x.sum()) - cone.total if cone.total is not None else 0.0
        self.rz = self.s + cone.G @ x - cone.h
        gap = float(self.s @ self.z) + self.pieces.complementarity()
        self.mu = gap / self.degree
        return Iterate(cone.weights(x), self.pieces.alpha, gap, cone.weights(self.rx) / (1 + cone.signed))

    def step(self) -> bool:
        """Take one step; returns whether one was possible."""
        cone, pieces = self.cone, self.pieces
        W = Scaling(cone, self.s, self.z)
        K, U, r = W.normal(self.H)
        K += cone.hessian(pieces.gram())
        if cone.total is not None:  # an equality constraint
            U, r = np.column_stack([U, np.ones(self.x.size)]), np.append(r, 0.0)
        solve = _solver(K, U, r)
        if solve is None:
            return False
        dx = dz = ds = np.zeros(0)
        dy, length, centring = 0.0, 1.0, 0.0
        for attempt in ("predict", "correct", "recentre"):
            aim = -W.product(W.point, W.point)
            if attempt == "correct":
                centring = (1 - length) ** 3
                aim -= W.product(W.unapply(ds), W.apply(dz))
            elif attempt == "recentre":
                if length > SHORT:
                    break
                centring = 0.5
            target, keep = centring * self.mu, 1 - centring
            aim = W.quotient(aim + target * W.one())
            rhs = -keep * self.rx - cone.G.T @ (W.unapply(aim + W.unapply(keep * self.rz)))
            rhs -= cone.gradient(pieces.aim(target, attempt == "correct"))
            dx, dy = solve(rhs, -keep * self.ry)
            Wdz = W.unapply(cone.G @ dx + keep * self.rz) + aim
            Wds = aim - Wdz
            dz, ds = W.unapply(Wdz), W.apply(Wds)
            longest = min(W.longest(Wdz), W.longest(Wds), pieces.direct(cone.weights(dx)))
            length = min(1.0, longest if attempt == "predict" else NEAR * longest)
        length = pieces.centred(length, self.s, ds, self.z, dz, cone.n_positive)
        if not (length > 1e-10 and np.isfinite(dx).all()):
            return False
        self.x = self.x + length * dx
        self.s = self.s + length * ds
        self.z = self.z + length * dz
        self.y += length * dy if cone.total is not None else 0.0
        pieces.move(length)
        return _inside(cone, self.s, self.z)


def _inside(cone: Cone, s: Array, z: Array) -> bool:
    p = cone.n_positive
    good = bool((s[:p] > 0).all() and (z[:p] > 0).all())
    return good and all(u[b][0] > np.linalg.norm(u[b][1:]) for u in (s, z) for b in cone.balls)


def _solver(K: Array, U: Array, r: Array) -> _Solve | None:
    """Solves with the normal matrix plus a tiny ridge, increased if necessary."""
    diagonal = np.einsum("ii->i", K)
    for ridge in (RIDGE, 1e3 * RIDGE, 1e6 * RIDGE):
        try:
            return _Solve(K, np.where(diagonal > 0, ridge * diagonal, 1.0), U, r)
        except (LinAlgError, ValueError):
            continue
    return None


class _Solve:
    """Solves K x + U y = a, U'x - r y = (0, ..., 0, b)."""

    def __init__(self, K: Array, ridge: Array, U: Array, r: Array) -> None:
        self.K, self.U, self.r = K, U, r
        self.factor = cho_factor(K + np.diag(ridge), lower=True, overwrite_a=True)
        if r.size:
            self.across = cho_solve(self.factor, U, check_finite=False)
            self.small = cho_factor(U.T @ self.across + np.diag(r), lower=True)

    def __call__(self, a: Array, b: float) -> tuple[Array, float]:
        """x, and the last of y."""
        c = np.zeros(self.r.size)
        c[-1:] = b
        x, y = self._once(a, c)
        dx, dy = self._once(a - self.K @ x - self.U @ y, c - self.U.T @ x + self.r * y)
        return x + dx, float((y + dy)[-1]) if self.r.size else 0.0

    def _once(self, a: Array, c: Array) -> tuple[Array, Array]:
        x = cho_solve(self.factor, a, check_finite=False)
        if not self.r.size:
            return x, c
        y = cho_solve(self.small, self.U.T @ x - c, check_finite=False)
        return x - self.across @ y, y


class _NoPieces:
    """A problem without rows."""

    count = 0

    def __init__(self, size: int) -> None:
        self.nothing = np.zeros(size)
        self.alpha = np.zeros(0)

    def complementarity(self) -> float:
        return 0.0

    def pull(self) -> Array:
        return self.nothing

    def gram(self) -> Array:
        return np.zeros((self.nothing.size, self.nothing.size))

    def aim(self, target: float, corrector: bool) -> Array:
        return self.nothing

    def direct(self, dw: Array) -> float:
        return math.inf

    def centred(self, length: float, s: Array, ds: Array, z: Array, dz: Array, n_positive: int) -> float:
        return length

    def move(self, length: float) -> None:
        pass


class _Pieces:
    """The rows: slacks of the pieces, sigma_j = t - b_j - a_j.z > 0, and their weights alpha_j > 0 of sum c."""

    d_sigma: Array
    d_alpha: Array

    def __init__(self, design: Design, loss: Pieces, w: Array) -> None:
        self.design, self.loss = design, loss
        b = loss.constants + loss.linear(design.forecasts(w.reshape(design.shape)))
        c = loss.weight
        self.count = b.size
        size = float((c * (b.max(axis=0) - b.min(axis=0))).mean()) or float(c.mean())
        self.sigma = b.max(axis=0) + size / c - b  # the smallest products of all rows are equal
        self.alpha = np.repeat(c[None] / b.shape[0], b.shape[0], axis=0)

    def complementarity(self) -> float:
        return float((self.sigma * self.alpha).sum())

    def pull(self) -> Array:
        return self.design.pull(self.loss.slopes(self.alpha)).ravel()

    def gram(self) -> Array:
        self.D = self.alpha / self.sigma
        self.sums = self.D.sum(axis=0)
        return self.design.gram(self.loss.curvature(self.D))

    def aim(self, target: float, corrector: bool) -> Array:
        """Aim at sigma alpha = target; returns the contribution to the gradient at fixed weights."""
        self.aimed = target / self.sigma - self.alpha
        if corrector:
            self.aimed -= self.d_sigma * self.d_alpha / self.sigma
        missing = self.loss.weight - self.alpha.sum(axis=0)
        self.dt = (self.aimed.sum(axis=0) - missing) / self.sums
        return self.design.pull(self.loss.slopes(self.aimed - self.D * self.dt)).ravel()

    def direct(self, dw: Array) -> float:
        """The step of sigma and alpha for a step dw of the weights; returns the longest that keeps them positive."""
        dw = dw.reshape(self.design.shape)
        if self.design.n_classes:  # moving all classes together changes no piece; remove its rounding error
            dw = dw - dw.mean(axis=0)
        moved = self.loss.linear(self.design.forecasts(dw))
        self.d_sigma = self.dt + (self.D * moved).sum(axis=0) / self.sums - moved
        self.d_alpha = self.aimed - self.D * self.d_sigma
        worst = max(float((-self.d_sigma / self.sigma).max()), float((-self.d_alpha / self.alpha).max()))
        return 1 / worst if worst > 0 else math.inf

    def centred(self, length: float, s: Array, ds: Array, z: Array, dz: Array, n_positive: int) -> float:
        """A step length after which no product of a slack and its dual is far below their mean (or than it is now)."""

        def least(t: float) -> float:
            products = (self.sigma + t * self.d_sigma) * (self.alpha + t * self.d_alpha)
            others = (s + t * ds) * (z + t * dz)
            mean = (float(products.sum()) + float(others.sum())) / (products.size + others.size)
            return min(float(products.min()), float(others[:n_positive].min(initial=math.inf))) / mean

        enough = min(CENTRED, 0.9 * least(0.0))
        for _ in range(20):
            if least(length) >= enough:
                break
            length *= 0.8
        return length

    def move(self, length: float) -> None:
        self.sigma += length * self.d_sigma
        self.alpha += length * self.d_alpha
