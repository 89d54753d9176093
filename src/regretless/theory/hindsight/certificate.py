r"""Lower bounds on the minimum loss over a set of weights, valid in floating point.

Tangents of the rows' losses, at any points, bound the sum of the losses from below by offset + g.u for all weights u.
With the tangent of lambda |u|^2 at p, the minimum over the set is one linear problem:

    min loss >= offset - lambda |p|^2 + min over u of (g + 2 lambda p).u

The best p is the minimiser itself, the projection of -g/(2 lambda). Every sum is reduced by a bound on its rounding
error, so that the bound holds for the exact numbers. On the whole space without regularization the linear problem has
no minimum: see `whole_space`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from regretless.core.types import Array
from regretless.theory.domains import Domain, Simplex, SubSimplex, WholeSpace
from regretless.theory.hindsight.design import UNIT, Design, summed
from regretless.theory.hindsight.smooth import LAST_DIGITS, Look


class Below(NamedTuple):
    """offset + g.u is below the sum of the losses at every u; the exact gradient lies within `off` of g."""

    offset: float
    g: Array
    off: Array


class Tangents(NamedTuple):
    """One tangent per row: `offset` + slopes.z is below the sum of the losses at forecasts z."""

    offset: float  # rounded down
    slopes: Array
    uncertainty: Array  # of the slopes

    def below(self, design: Design) -> Below:
        """The tangents as a function of the weights."""
        g = design.pull(self.slopes)
        return Below(self.offset, g, design.rounding(self.slopes, self.uncertainty))

    def exactly_below(self, design: Design) -> Below:
        """The same, with the gradient summed in double-double precision."""
        return Below(self.offset, *design.pull_exactly(self.slopes, self.uncertainty))


def touching(Z: Array, look: Look) -> Tangents:
    """The tangents at the forecasts Z, which need not come from any weights."""
    offset, off = summed(look.values, -look.slopes * Z)
    off += LAST_DIGITS * look.value + 1.01 * float((look.uncertainty * np.abs(Z)).sum())
    return Tangents(offset - off, look.slopes, look.uncertainty)


def least(below: Below, domain: Domain, regularization: float, loss: float = math.inf) -> float:
    """A lower bound on the minimum of offset + g.u + regularization |u|^2 over the set, if some u reaches `loss`."""
    offset, g, off = below
    if not (np.isfinite(g).all() and np.isfinite(off).all()):
        return -math.inf
    bounds = [-math.inf]
    longest = math.inf  # an upper bound on the norm of a minimiser
    if regularization > 0:
        size = (float(np.linalg.norm(g)) + float(np.linalg.norm(off))) * (1 + g.size * UNIT)
        bounds.append(offset - size**2 / (4 * regularization) * (1 + 8 * UNIT))  # over all u
        longest = (
            1.01 * (size + math.sqrt(size**2 + 4 * regularization * max(loss - offset, 0.0))) / (2 * regularization)
        )
    if not isinstance(domain, WholeSpace):
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            p = -g / (2 * regularization)
        p = domain.project(p) if np.isfinite(p).all() else np.zeros_like(g)
        square = regularization * float((p * p).sum())
        slope = g + 2 * regularization * p
        doubt = off + 4 * UNIT * (np.abs(g) + 2 * regularization * np.abs(p))
        offset -= square
        lost = (g.size + 16) * UNIT * (square + abs(offset))
        bounds.append(offset - lost + lowest(worst(slope, doubt, domain), domain))
        if math.isfinite(longest):
            bounds.append(offset - lost + lowest(slope, domain) - 1.01 * float(np.linalg.norm(doubt)) * longest)
    return max(bounds)


def worst(g: Array, off: Array, domain: Domain) -> Array:
    """The slope within `off` of g with the smallest minimum over the set."""
    return g - off if isinstance(domain, Simplex | SubSimplex) else g + np.copysign(off, g)


def lowest(g: Array, domain: Domain) -> float:
    """The minimum of g.u over the set, rounded down; all its terms have the same sign."""
    found = float((g * domain.minimise_linear(g)).sum())
    return found - (g.size + 16) * UNIT * abs(found)


@dataclass
class Record:
    """The best weights and the best lower bound so far."""

    tol: float
    lower: float = -math.inf
    loss: float = math.inf
    w: Array = field(default_factory=lambda: np.zeros(0))

    def offer(self, w: Array, loss: float) -> None:
        """Offer weights and their loss."""
        if loss < self.loss or not self.w.size:
            self.w, self.loss = w.copy(), loss

    def bound(self, lower: float) -> None:
        """Offer a lower bound; NaN is ignored."""
        if lower > self.lower:
            self.lower = lower

    def prove(self, tangents: Tangents, design: Design, domain: Domain, regularization: float) -> Below:
        """Offer the bound of these tangents, with more precise sums if rounding prevents reaching the tolerance."""
        below = tangents.below(design)
        self.bound(least(below, domain, regularization, self.loss))
        if not self.done:
            bare = least(below._replace(off=np.zeros_like(below.off)), domain, regularization)
            if self.loss - bare <= self.allowed:
                self.bound(least(tangents.exactly_below(design), domain, regularization, self.loss))
        return below

    @property
    def gap(self) -> float:
        """An upper bound on the distance of the loss from the minimum, rounded up, never negative."""
        gap = self.loss - self.lower
        return max(gap + 4 * UNIT * (abs(self.loss) + abs(self.lower)), 0.0) if math.isfinite(gap) else math.inf

    @property
    def allowed(self) -> float:
        """The requested gap."""
        return self.tol * max(1.0, abs(self.loss))

    @property
    def done(self) -> bool:
        """Whether the gap is small enough."""
        return self.gap <= self.allowed
