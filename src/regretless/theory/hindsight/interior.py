"""A primal-dual interior-point method (Mehrotra's) for quadratics plus piecewise linear losses over a set of weights.

It minimises x'Px/2 + q.x + sum_r c_r t_r over x and t, where t_r >= b_rj + a_rj.z_r for the pieces of a row's loss at
the forecasts z = X x, and x is in a cone. The rows are eliminated: a step costs one `Design.gram` and one Cholesky
factorisation of the size of the weights, independent of the number of rows.

Two things keep the number of steps small when there are many pieces. A ball counts as often as it has weights: counted
once beside 100,000 pieces, it would hold the weights so close to its surface that they could hardly move along it. And
Gondzio's corrections (1996) bring back the products of slacks and duals that a longer step would leave far from their
target.
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
SHORT, LONG = 0.3, 0.9  # a corrected step up to the first is replaced by a centring step; above the second it is kept
CORRECTIONS = 3  # of the products, at most, each of which must lengthen the step by a tenth
WIDE = 10.0  # products are corrected if they are this factor away from their target
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


class _Step(NamedTuple):
    """A direction, and how far it stays inside."""

    dx: Array
    dy: float
    ds: Array
    dz: Array
    d_sigma: Array  # of the rows' slacks
    d_alpha: Array  # of their weights
    longest: float


class _Method:
    """The unknowns x, the slacks s of the cone and their duals z, the multiplier y of a sum, and the rows' pieces."""

    def __init__(self, P: Array, q: Array, cone: Cone, pieces: _Pieces | _NoPieces) -> None:
        self.cone, self.pieces = cone, pieces
        self.H, self.linear = cone.hessian(P), cone.gradient(q)
        self.x = cone.centre.copy()
        self.s = cone.h - cone.G @ self.x
        self.y = 0.0
        self.unit = np.zeros_like(self.s)  # products of slacks and duals on the central path, relative to those of rows
        self.unit[: cone.n_positive] = 1.0
        for ball in cone.balls:
            self.unit[ball.start] = ball.stop - ball.start - 1 if pieces.count else 1.0
        self.degree = max(float(self.unit.sum()) + pieces.count, 1.0)
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
        predicted = self._towards(W, solve, 0.0)
        bent = W.product(W.unapply(predicted.ds), W.apply(predicted.dz))
        excess: Array | float = predicted.d_sigma * predicted.d_alpha
        centring = (1 - min(1.0, predicted.longest)) ** 3
        found = self._towards(W, solve, centring, bent, excess)
        if NEAR * found.longest <= SHORT:
            excess, centring = 0.0, 0.5
            found = self._towards(W, solve, centring)
        for _ in range(CORRECTIONS):
            length = NEAR * found.longest
            if length > LONG or isinstance(pieces, _NoPieces):
                break
            excess = excess + pieces.astray(found, min(1.0, 1.5 * length + 0.1), centring * self.mu)
            other = self._towards(W, solve, centring, excess=excess)
            if other.longest < 1.1 * found.longest:
                break
            found = other
        length = self._centred(found, min(1.0, NEAR * found.longest))
        if not (length > 1e-10 and np.isfinite(found.dx).all()):
            return False
        self.x = self.x + length * found.dx
        self.s = self.s + length * found.ds
        self.z = self.z + length * found.dz
        self.y += length * found.dy if cone.total is not None else 0.0
        pieces.move(found, length)
        return _inside(cone, self.s, self.z)

    def _towards(
        self, W: Scaling, solve: _Solve, centring: float, bent: Array | float = 0.0, excess: Array | float = 0.0
    ) -> _Step:
        """The step that aims at products `centring` times their mean, less their second-order parts or corrections."""
        cone, pieces = self.cone, self.pieces
        target, keep = centring * self.mu, 1 - centring
        aim = W.quotient(target * self.unit - W.product(W.point, W.point) - bent)
        rhs = -keep * self.rx - cone.G.T @ (W.unapply(aim + W.unapply(keep * self.rz)))
        rhs -= cone.gradient(pieces.aim(target - excess))
        dx, dy = solve(rhs, -keep * self.ry)
        Wdz = W.unapply(cone.G @ dx + keep * self.rz) + aim
        Wds = aim - Wdz
        d_sigma, d_alpha, longest = pieces.direct(cone.weights(dx))
        longest = min(W.longest(Wdz), W.longest(Wds), longest)
        return _Step(dx, dy, W.apply(Wds), W.unapply(Wdz), d_sigma, d_alpha, longest)

    def _centred(self, found: _Step, length: float) -> float:
        """A step length after which no product of a slack and its dual is far below their mean (or than it is now)."""
        pieces, p = self.pieces, self.cone.n_positive
        if isinstance(pieces, _NoPieces):
            return length

        def least(t: float) -> float:
            products = pieces.products(found, t)
            others = (self.s + t * found.ds) * (self.z + t * found.dz)
            mean = (float(products.sum()) + float(others.sum())) / (products.size + others.size)
            return min(float(products.min()), float(others[:p].min(initial=math.inf))) / mean

        enough = min(CENTRED, 0.9 * least(0.0))
        for _ in range(20):
            if least(length) >= enough:
                break
            length *= 0.8
        return length


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

    def aim(self, target: Array | float) -> Array:
        return self.nothing

    def direct(self, dw: Array) -> tuple[Array, Array, float]:
        return self.alpha, self.alpha, math.inf

    def move(self, found: _Step, length: float) -> None:
        pass


class _Pieces:
    """The rows: slacks of the pieces, sigma_j = t - b_j - a_j.z > 0, and their weights alpha_j > 0 of sum c."""

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

    def aim(self, target: Array | float) -> Array:
        """Aim at sigma alpha = target; returns the contribution to the gradient at fixed weights."""
        self.aimed = target / self.sigma - self.alpha
        missing = self.loss.weight - self.alpha.sum(axis=0)
        self.dt = (self.aimed.sum(axis=0) - missing) / self.sums
        return self.design.pull(self.loss.slopes(self.aimed - self.D * self.dt)).ravel()

    def direct(self, dw: Array) -> tuple[Array, Array, float]:
        """The step of sigma and alpha for a step dw of the weights, and the longest that keeps them positive."""
        dw = dw.reshape(self.design.shape)
        if self.design.n_classes:  # moving all classes together changes no piece; remove its rounding error
            dw = dw - dw.mean(axis=0)
        moved = self.loss.linear(self.design.forecasts(dw))
        d_sigma = self.dt + (self.D * moved).sum(axis=0) / self.sums - moved
        d_alpha = self.aimed - self.D * d_sigma
        worst = max(float((-d_sigma / self.sigma).max()), float((-d_alpha / self.alpha).max()))
        return d_sigma, d_alpha, 1 / worst if worst > 0 else math.inf

    def products(self, found: _Step, length: float) -> Array:
        """sigma alpha after a step."""
        return (self.sigma + length * found.d_sigma) * (self.alpha + length * found.d_alpha)

    def astray(self, found: _Step, length: float, target: float) -> Array:
        """By how much the products are too large after a step: 0 near the target, negative if they are too small."""
        products = self.products(found, length)
        return np.minimum(products - np.clip(products, target / WIDE, WIDE * target), WIDE * target)

    def move(self, found: _Step, length: float) -> None:
        self.sigma += length * found.d_sigma
        self.alpha += length * found.d_alpha
