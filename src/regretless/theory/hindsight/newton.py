"""Newton's method over a set of weights, for smooth losses.

The quadratic model of the loss is minimised over the set (a small problem without rows, by the interior-point method),
followed by a line search on the sign of the slope, which is less sensitive to rounding than differences of losses.
Every iteration proves a lower bound.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from regretless.core.types import Array
from regretless.theory.domains import Domain, WholeSpace
from regretless.theory.hindsight import interior
from regretless.theory.hindsight.certificate import Record, lowest, touching
from regretless.theory.hindsight.cones import Cone, cone, nearby
from regretless.theory.hindsight.design import UNIT, Design, summed
from regretless.theory.hindsight.smooth import LAST_DIGITS, Smooth, Squared
from regretless.theory.hindsight.whole_space import firmness, reachable

ITERATIONS = 200
PATIENCE = 5  # iterations without progress before stopping: rounding then dominates
QUADRATIC_ITERATIONS = 60
NEAR = 1e-10  # the ridge around w, relative to the Hessian's diagonal
FLAT = 1e-13  # the ridge of a Hessian that may be singular, relative to its diagonal


def newton(
    design: Design, loss: Smooth, domain: Domain, regularization: float, w: Array, record: Record, max_iterations: int
) -> None:
    """Improve `record`, starting from the weights w."""
    shape, lam = design.shape, regularization
    whole = isinstance(domain, WholeSpace)
    at_origin = loss.look(np.zeros(design.forecast_shape)).value if lam > 0 else 0.0
    within = cone(nearby(domain, shape, lam, at_origin), shape)
    record.bound(loss.lowest())
    Z = design.forecasts(w)
    idle, gap, before = 0, math.inf, math.inf
    for iteration in range(max_iterations + 1):
        look = loss.look(Z)
        total = look.value + lam * float((w * w).sum())
        if not math.isfinite(total):  # rounding made the step too large
            return
        record.offer(w, total)
        below = record.prove(touching(Z, look), design, domain, lam)
        if record.done:
            return
        H = design.gram(look.curvature)
        slope = below.g + 2 * lam * w
        if loss.tame:
            record.bound(_firm(design, loss, H, w, Z, domain, slope, lam, record))
        idle = 0 if record.gap < 0.5 * gap or total < before - 1e-3 * record.allowed else idle + 1
        gap, before = min(gap, record.gap), min(before, total)
        if record.done or iteration == max_iterations or idle > PATIENCE:
            if whole and isinstance(loss, Squared) and not (lam or record.done):
                # A step of the slopes: unlike one of the weights, it rounds to the digits of the residuals.
                step = _unconstrained(H, design.pull_exactly(look.slopes, np.zeros_like(look.slopes))[0])
                record.bound(reachable(design, loss, look.slopes + look.curvature * design.forecasts(step), record.w))
            return
        H[np.diag_indices_from(H)] += 2 * lam
        if whole:
            direction = _unconstrained(H, slope)
        else:
            direction = _constrained(H, slope, w, within, record.allowed) - w
        if not np.isfinite(direction).all():
            return
        moved = design.forecasts(direction)
        length = _line(loss, lam, w, direction, Z, moved, record.allowed, most=64.0 if whole else 1.0)
        w = domain.project(w + length * direction)
        Z = design.forecasts(w)


def _constrained(H: Array, slope: Array, w: Array, constraint: Cone, allowed: float) -> Array:
    """The minimiser of the quadratic model over the set, near w where the model is flat."""
    H = H + np.diag(NEAR * np.einsum("ii->i", H))
    q = slope.ravel() - H @ w.ravel()
    best = w.ravel()
    for at, found in enumerate(interior.iterates(H, q, constraint)):
        best = found.w
        if (
            found.complementarity + float(np.linalg.norm(found.residual)) * constraint.reach <= 0.02 * allowed
            or at >= QUADRATIC_ITERATIONS
        ):
            break
    return best.reshape(w.shape)


def _unconstrained(H: Array, slope: Array) -> Array:
    diagonal = np.einsum("ii->i", H)
    ridge = np.where(diagonal > 0, FLAT * diagonal, 1.0)
    while True:
        try:
            factor = cho_factor(H + np.diag(ridge), lower=True)
        except (LinAlgError, ValueError):
            ridge = 100 * ridge
            if not np.isfinite(ridge).all():
                return np.full(slope.shape, np.nan)
            continue
        return np.asarray(-cho_solve(factor, slope.ravel())).reshape(slope.shape)


def _line(
    loss: Smooth, lam: float, w: Array, direction: Array, Z: Array, moved: Array, allowed: float, most: float
) -> float:
    """A step length at which most of the slope along the direction is gone.

    A slope below the tolerance is ignored: the end of the direction lies slightly inside the set, which costs more than
    can be gained, but it has the better gradient.
    """
    across, along = float((w * direction).sum()), float((direction * direction).sum())

    def steepness(t: float) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            look = loss.look(Z + t * moved)
            found = float((look.slopes * moved).sum()) + 2 * lam * (across + t * along)
        return found if math.isfinite(look.value) and not math.isnan(found) else math.inf

    first = steepness(0.0)
    if first >= -0.1 * allowed:
        return 1.0
    low, high, t = 0.0, math.inf, 1.0
    for _ in range(60):
        now = steepness(t)
        if now > -0.1 * first:  # past the minimum
            high = t
        elif now < 0.5 * first and t < most:  # still as steep
            low = t
        else:
            return t
        t = 0.5 * (low + high) if math.isfinite(high) else min(2 * t, most)
    return low


def _firm(
    design: Design, loss: Smooth, H: Array, w: Array, Z: Array, domain: Domain, slope: Array, lam: float, record: Record
) -> float:
    """The curvature bound, if it can help: see `whole_space`.

    Over a set, let k be an outer normal (at a point near w). Then k.(u - w) <= `cost` for all u in the set, and only
    the remaining gradient g + k must be covered by the curvature.
    """
    diagonal = np.einsum("ii->i", H) + 2 * lam
    normal, cost = _normal(w, slope, 1 / (float(diagonal.sum()) or 1.0), domain)
    rest = (slope + normal).ravel()
    if not float((rest**2 / np.where(diagonal > 0, diagonal, 1.0)).max()) + cost <= 2 * record.allowed:
        return -math.inf  # g'H^-1 g is at least this
    error = design.forecast_error(w)
    if error > 1e-3:
        return -math.inf
    reach = (2**0.5 if Z.ndim > 1 else 1.0) if loss.curved else 0.0
    free = lam == 0 and not normal.any()
    for few in (0.0, 0.25 * record.allowed / Z.size):
        relaxed, live = loss.relaxed(Z, few)
        if few:
            H = design.gram(relaxed.curvature)
        # Forecasts have errors up to `error`: slopes change in proportion, and the Hessian by a factor near 1.
        g, off = design.pull_exactly(relaxed.slopes, relaxed.uncertainty + 2.02 * error * relaxed.curvature)
        off += 8 * UNIT * (lam * np.abs(w) + np.abs(normal))
        firm = firmness(design, H * (1 - 4 * error), g + 2 * lam * w + normal, off, live, reach, 2 * lam, free)
        if firm is not None and firm.ratio < 1:
            steep = float(np.abs(relaxed.slopes).sum()) + float(relaxed.uncertainty.sum())
            value, lost = summed(relaxed.values)
            lost += LAST_DIGITS * value + 2 * error * steep + cost
            square = lam * float((w * w).sum()) * (1 - 2 * w.size * UNIT)
            return value + square - lost - firm.decrement / (2 * (1 - firm.ratio))
    return -math.inf


def _normal(w: Array, slope: Array, step: float, domain: Domain) -> tuple[Array, float]:
    """An outer normal of the set at the projection of a gradient step, and how far w may be inside its plane."""
    if isinstance(domain, WholeSpace):
        return np.zeros_like(w), 0.0
    ahead = w - step * slope
    if not np.isfinite(ahead).all():
        return np.zeros_like(w), 0.0
    normal = (ahead - domain.project(ahead)) / step
    products = normal * w
    cost = -lowest(-normal, domain) - float(products.sum()) + 2 * w.size * UNIT * float(np.abs(products).sum())
    return normal, max(cost, 0.0)
