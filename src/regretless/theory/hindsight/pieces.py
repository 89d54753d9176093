"""Losses that are the maximum of a few linear pieces: hinge, absolute, multiclass hinge.

The loss of a row is c max_j (b_j + a_j.z). Weights alpha_j >= 0 of its pieces with sum c give the tangent
sum_j alpha_j (b_j + a_j.z) below it. The dual problem chooses them, one tangent per row.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from regretless.core.types import Array
from regretless.theory.hindsight.certificate import Tangents
from regretless.theory.hindsight.design import SUM, UNIT, summed


class Weighing(NamedTuple):
    """Weights of pieces, and their tangents."""

    alpha: Array  # (J, n), not above the exact weights
    tangents: Tangents


class Pieces(Protocol):
    """The interface of a loss for the solvers; z are the forecasts of a row."""

    weight: Array  # c (n,)
    constants: Array  # b (J, n)
    reach: float  # a bound on the growth of the differences of a row's pieces, relative to |x| |w|

    def linear(self, Z: Array) -> Array:
        """a_j.z, (J, n)."""
        ...

    def slopes(self, alpha: Array) -> Array:
        """The sum over pieces of alpha_j a_j, of the shape of the forecasts."""
        ...

    def curvature(self, h: Array) -> Array:
        """For `Design.gram`: the sum of h_j (a_j.z - their mean under h)^2 as a form in z."""
        ...

    def weigh(self, alpha: Array, least: float = 0.0) -> Weighing:
        """The tangents of these weights, corrected so that none exceeds its loss; without weights below `least`."""
        ...

    def take(self, rows: NDArray[np.intp]) -> Pieces:
        """The same loss for some of the rows."""
        ...


def total(loss: Pieces, Z: Array) -> float:
    """The sum of the losses at the forecasts Z."""
    return float((loss.weight * (loss.constants + loss.linear(Z)).max(axis=0)).sum())


class TwoPieces:
    """One forecast per row: c max(0, 1 - y z), the hinge, with targets y = +1 or -1; or c |z - y|."""

    def __init__(self, y: Array, weight: Array, hinge: bool) -> None:
        self.y = y
        self.weight = weight
        self.hinge = hinge
        self.constants = np.stack([np.zeros_like(y), np.ones_like(y)] if hinge else [-y, y])
        self.reach = 1.0 if hinge else 2.0

    def linear(self, Z: Array) -> Array:
        """The pieces without their constants."""
        return np.stack([np.zeros_like(Z), -self.y * Z] if self.hinge else [Z, -Z])

    def slopes(self, alpha: Array) -> Array:
        """The slope of the tangent in z."""
        return -self.y * alpha[1] if self.hinge else alpha[0] - alpha[1]

    def curvature(self, h: Array) -> Array:
        """The curvature in z."""
        both = h[0] + h[1]
        return self.reach**2 * h[0] * (h[1] / np.where(both > 0, both, 1.0))

    def weigh(self, alpha: Array, least: float = 0.0) -> Weighing:
        """The tangents: any slope between those of the two pieces is valid."""
        c = self.weight
        second = np.clip(alpha[1], 0.0, c)
        second[second < least] = 0.0
        second = np.where(c - second < least, c, second)
        if self.hinge:
            terms, slopes = second, -self.y * second
            kept = np.stack([c - second, second])
        else:
            slopes = np.clip(c - 2.0 * second, -c, c)
            terms = -self.y * slopes
            kept = 0.5 * np.stack([c + slopes, c - slopes])
        offset, off = summed(terms)
        return Weighing(kept * (1 - 4 * UNIT), Tangents(offset - off, slopes, np.zeros_like(slopes)))

    def take(self, rows: NDArray[np.intp]) -> TwoPieces:
        """The same loss for some of the rows."""
        return TwoPieces(self.y[rows], self.weight[rows], self.hinge)


class ManyPieces:
    """K forecasts per row with class k: c max(0, 1 + z_j - z_k for j != k)."""

    reach = 2.0**0.5

    def __init__(self, k: NDArray[np.intp], weight: Array, n_classes: int) -> None:
        self.k = k
        self.weight = weight
        self.true = np.arange(n_classes)[:, None] == k
        self.constants = np.where(self.true, 0.0, 1.0)

    def linear(self, Z: Array) -> Array:
        """The pieces without their constants."""
        return Z - Z[self.k, np.arange(self.k.size)]

    def slopes(self, alpha: Array) -> Array:
        """The slope of the tangent in z."""
        return np.where(self.true, -np.where(self.true, 0.0, alpha).sum(axis=0), alpha)

    def curvature(self, h: Array) -> Array:
        """The curvature in z."""
        return h

    def weigh(self, alpha: Array, least: float = 0.0) -> Weighing:
        """The tangents: the weights of the rivals sum to at most c; the true class has the rest."""
        c, K = self.weight, self.true.shape[0]
        rivals = np.where(self.true | ~(alpha >= least), 0.0, np.maximum(alpha, 0.0))
        slack = 2 * K * UNIT * c  # bounds the rounding error of the sums below
        sums = rivals.sum(axis=0)
        rivals *= np.where(sums + slack > c, np.maximum(c - slack, 0.0) / np.where(sums > 0, sums, 1.0), 1.0)
        sums = rivals.sum(axis=0)
        rest = np.maximum(c - sums - slack, 0.0)
        rest[rest < least] = 0.0
        mass = float(sums.sum())
        slopes = np.where(self.true, -sums, rivals)
        kept = np.where(self.true, rest, rivals)
        offset = mass * (1 - SUM - 2 * K * UNIT)
        return Weighing(kept, Tangents(offset, slopes, K * UNIT * np.abs(slopes)))

    def take(self, rows: NDArray[np.intp]) -> ManyPieces:
        """The same loss for some of the rows."""
        return ManyPieces(self.k[rows], self.weight[rows], self.true.shape[0])
