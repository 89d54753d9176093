"""Piecewise linear losses: the interior-point method over the rows, and the lower bounds of its dual points.

The multiclass hinge loss of 15,000 rows with 16 columns and 26 classes (letter) takes 42 steps, 9 seconds, to a
relative gap of 1e-9 over a ball of radius 10, and 93 steps, 22 seconds, to 1e-4 over one of radius 100.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from regretless.core.types import Array
from regretless.theory.domains import Ball, Domain, WholeSpace
from regretless.theory.hindsight import interior
from regretless.theory.hindsight.certificate import Record
from regretless.theory.hindsight.cones import cone, nearby
from regretless.theory.hindsight.design import UNIT, Design
from regretless.theory.hindsight.pieces import Pieces, Weighing, total
from regretless.theory.hindsight.whole_space import firmness

ITERATIONS = 120
PATIENCE = 8  # iterations without a better gap before stopping: rounding then dominates
POLISHES = 3


def solve_pieces(
    design: Design, loss: Pieces, domain: Domain, regularization: float, record: Record, max_iterations: int
) -> None:
    """Improve `record` until the gap is small enough or no step is possible."""
    P = 2 * regularization * np.eye(design.size)
    record.bound(0.0)
    worse, gap = 0, math.inf
    at_origin = float((loss.weight * loss.constants.max(axis=0)).sum())
    within = cone(nearby(domain, design.shape, regularization, at_origin), design.shape)
    steps = interior.iterates(P, np.zeros(design.size), within, interior.Rows(design, loss))
    for iteration, found in enumerate(steps):
        w = found.w.reshape(design.shape)
        if design.n_classes and isinstance(domain, Ball | WholeSpace):  # the same losses with a smaller norm
            w = w - w.mean(axis=0)
        w = domain.project(w)
        record.offer(w, _loss(design, loss, regularization, w))
        record.prove(loss.weigh(found.alpha).tangents, design, domain, regularization)
        near = found.complementarity <= record.allowed
        if near and not record.done:
            alpha, residual = found.alpha, found.residual.reshape(design.shape)
            rest = residual - design.pull(loss.slopes(alpha))  # the part of the gradient from the weights and the set
            for _ in range(POLISHES):
                alpha = _polished(design, loss, alpha, design.pull(loss.slopes(alpha)) + rest)
                below = record.prove(loss.weigh(alpha).tangents, design, domain, regularization)
                found.alpha[:] = np.maximum(alpha, 0.5 * found.alpha)  # start of the next step
                if regularization:  # the minimiser of the tangents has no component seen by the regularization only
                    w = domain.project(-below.g / (2 * regularization))
                    record.offer(w, _loss(design, loss, regularization, w))
        if near and not record.done and not regularization:
            record.bound(_firm(design, loss, found.alpha, record))
        worse = 0 if record.gap < 0.9 * gap else worse + 1
        gap = min(gap, record.gap)
        if record.done or iteration >= max_iterations or (near and worse > PATIENCE):
            return


def _loss(design: Design, loss: Pieces, regularization: float, w: Array) -> float:
    return total(loss, design.forecasts(w)) + regularization * float((w * w).sum())


def _firm(design: Design, loss: Pieces, alpha: Array, record: Record) -> float:
    """The bound over the whole space: see `whole_space`."""
    best = -math.inf
    for few in (0.0, 0.01 * record.allowed / alpha.size, 0.25 * record.allowed / alpha.size):
        moved = alpha
        for _ in range(POLISHES):
            found = loss.weigh(moved, few)
            below = found.tangents.exactly_below(design)
            H = design.gram(loss.curvature(found.alpha))
            live, flat = _looks(found, design.n_classes)
            pushed = _pushed(design, loss, found.alpha)
            firm = firmness(design, H, below.g, below.off, live, loss.reach, flat=flat, pushed=pushed)
            if firm is not None and firm.ratio <= 1:
                best = max(best, below.offset - firm.shift)
            moved = _polished(design, loss, found.alpha, below.g, H)
    return best


def _polished(design: Design, loss: Pieces, alpha: Array, residual: Array, H: Array | None = None) -> Array:
    """The weights changed in proportion to themselves so that the residual vanishes from the gradient.

    The method leaves a residual where rows at the edge of two pieces, with nearly infinite curvature, dominate all
    others.
    """
    if design.n_classes:  # no tangent changes if all classes move together
        residual = residual - residual.mean(axis=0)
    if H is None:
        H = design.gram(loss.curvature(alpha))
    diagonal = np.einsum("ii->i", H)
    try:
        factor = cho_factor(H + np.diag(np.where(diagonal > 0, 1e-14 * diagonal, 1.0)), lower=True)
    except (LinAlgError, ValueError):
        return alpha
    push = loss.linear(design.forecasts(-cho_solve(factor, residual.ravel()).reshape(design.shape)))
    sums = alpha.sum(axis=0)
    push -= (alpha * push).sum(axis=0) / np.where(sums > 0, sums, 1.0)
    return alpha * (1 + np.clip(push, -0.5, 0.5))


def _pushed(design: Design, loss: Pieces, alpha: Array) -> tuple[Array, Array]:
    """The change of the offset when alpha follows a change of the weights, with a bound on its error."""
    sums = alpha.sum(axis=0)
    middle = (alpha * loss.constants).sum(axis=0) / np.where(sums > 0, sums, 1.0)
    off = 8 * alpha.shape[0] * UNIT * alpha * np.abs(loss.constants).max(axis=0)
    slopes = loss.slopes(alpha * (loss.constants - middle))
    doubt = np.abs(loss.slopes(off)) if design.n_classes else 2 * off.sum(axis=0)
    return design.pull(slopes), design.rounding(slopes, doubt)


def _looks(found: Weighing, n_classes: int) -> tuple[Array, Array | None]:
    """The forecasts on which tangents with variable weights depend, and the slopes of the others."""
    slopes = found.tangents.slopes
    if n_classes:
        return (found.alpha > 0) | (slopes != 0), None
    live = found.alpha.min(axis=0) > 0
    return live, np.where(live, 0.0, slopes)
