"""Accelerated projected gradient descent, for too many weights to form a Hessian.

Nesterov's method with backtracking, restarted whenever the momentum points uphill. Piecewise linear losses are
smoothed: the largest piece becomes mu log(sum of e^(piece/mu)), whose slopes are weights of the pieces, and mu
decreases with the proved gap. The lower bounds come from `certificate` and hold at every iteration.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from regretless.core.types import Array
from regretless.theory.domains import Domain
from regretless.theory.hindsight.certificate import Record, Tangents, least, touching
from regretless.theory.hindsight.design import Design
from regretless.theory.hindsight.pieces import Pieces, total
from regretless.theory.hindsight.smooth import Smooth

ITERATIONS = 5000
LOOK_EVERY = 10
SOFTER = 5.0


class Target(Protocol):
    """A sum of smooth functions of the forecasts."""

    def slopes(self, Z: Array) -> tuple[float, Array]:
        """Total and slopes."""
        ...

    def proof(self, Z: Array) -> tuple[float, Tangents]:
        """The loss itself, and a tangent of each row."""
        ...

    def harder(self, gap: float) -> bool:
        """Reduce the smoothing if the gap requires it; returns whether anything changed."""
        ...


class Plain:
    """A loss that is already smooth."""

    def __init__(self, loss: Smooth) -> None:
        self.loss = loss

    def slopes(self, Z: Array) -> tuple[float, Array]:
        """Total and slopes."""
        look = self.loss.look(Z)
        return look.value, look.slopes

    def proof(self, Z: Array) -> tuple[float, Tangents]:
        """The loss itself, and a tangent of each row."""
        look = self.loss.look(Z)
        return look.value, touching(Z, look)

    def harder(self, gap: float) -> bool:
        """Nothing to change."""
        return False


class Softened:
    """A smoothed piecewise linear loss."""

    def __init__(self, loss: Pieces) -> None:
        self.loss = loss
        self.mu = float(np.ptp(loss.constants, axis=0).mean()) or 1.0
        self.cost = float(loss.weight.sum()) * math.log(loss.constants.shape[0])  # an upper bound, for mu = 1

    def _soft(self, Z: Array) -> tuple[float, Array]:
        pieces = self.loss.constants + self.loss.linear(Z)
        top = pieces.max(axis=0)
        e = np.exp((pieces - top) / self.mu)
        sums = e.sum(axis=0)
        return float((self.loss.weight * (top + self.mu * np.log(sums))).sum()), self.loss.weight * (e / sums)

    def slopes(self, Z: Array) -> tuple[float, Array]:
        """Total and slopes."""
        value, alpha = self._soft(Z)
        return value, self.loss.slopes(alpha)

    def proof(self, Z: Array) -> tuple[float, Tangents]:
        """The loss itself, and a tangent of each row."""
        return total(self.loss, Z), self.loss.weigh(self._soft(Z)[1]).tangents

    def harder(self, gap: float) -> bool:
        """Reduce the smoothing once it is a large part of the gap."""
        if gap > 2 * self.mu * self.cost:
            return False
        self.mu /= SOFTER
        return True


def descend(
    design: Design, target: Target, domain: Domain, regularization: float, w: Array, record: Record, max_iterations: int
) -> None:
    """Improve `record`, starting from the weights w."""
    lam = regularization
    smoothness = 1.0
    ahead, momentum = w, 1.0
    for iteration in range(max_iterations + 1):
        if iteration % LOOK_EVERY == 0 or iteration == max_iterations:
            Z = design.forecasts(w)
            value, tangents = target.proof(Z)
            value += lam * float((w * w).sum())
            record.offer(w, value)
            below = record.prove(tangents, design, domain, lam)
            if record.done:
                return
            if target.harder(value - least(below, domain, lam)):
                ahead, momentum = w, 1.0
        value, slopes = target.slopes(design.forecasts(ahead))
        if not math.isfinite(value):  # the momentum was too large
            ahead, momentum = w, 1.0
            value, slopes = target.slopes(design.forecasts(ahead))
        g = design.pull(slopes) + 2 * lam * ahead
        value += lam * float((ahead * ahead).sum())
        smoothness *= 0.9
        while True:
            new = domain.project(ahead - g / smoothness)
            step = new - ahead
            bend = 0.5 * smoothness * float((step * step).sum())
            found = target.slopes(design.forecasts(new))[0] + lam * float((new * new).sum())
            if found <= value + float((g * step).sum()) + bend + 1e-12 * abs(value) or smoothness > 1e300:
                break
            smoothness *= 2.0
        if float((step * (new - w)).sum()) < 0:  # the momentum points uphill
            ahead, momentum = w, 1.0
            continue
        faster = 0.5 * (1 + math.sqrt(1 + 4 * momentum * momentum))
        ahead = new + (momentum - 1) / faster * (new - w)
        w, momentum = new, faster
