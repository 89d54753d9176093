"""Smooth losses of many forecasts: total, slopes and curvatures, with bounds on their rounding errors.

Each loss f of a row has |f'''| <= R f'' along a line on which the forecasts (or their differences, for several classes)
move at speed R. For the squared loss this holds even with R = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from regretless.core.kernels.callbacks import Callback
from regretless.core.kernels.jit import kernel
from regretless.core.types import Array
from regretless.theory.hindsight.design import SUM, UNIT
from regretless.theory.losses import LARGEST_EXPONENT, Custom

LAST_DIGITS = 8 * UNIT  # error of exp, log1p and the few operations around them


class Look(NamedTuple):
    """A sum of losses at given forecasts."""

    values: Array  # the loss per row, with a relative error of at most LAST_DIGITS
    slopes: Array
    uncertainty: Array  # of the slopes
    curvature: Array  # one number per forecast; see `Design.gram`

    @property
    def value(self) -> float:
        """The sum."""
        return float(self.values.sum())


class Smooth(Protocol):
    """The interface of a loss for the solvers."""

    curved: bool  # whether the curvature varies
    tame: bool  # whether the third derivative is at most the second

    def look(self, Z: Array) -> Look:
        """The sum of the losses at the forecasts Z."""
        ...

    def lowest(self) -> float:
        """A lower bound on the sum, for all forecasts."""
        ...

    def relaxed(self, Z: Array, least: float) -> tuple[Look, Any]:
        """A function below the sum, without negligible terms under `least`, and the forecasts on which it depends."""
        ...

    def take(self, rows: Any, factor: float = 1.0) -> Smooth:
        """The same loss for some of the rows, with weights multiplied by `factor`."""
        ...


class Margin:
    """Two classes, one forecast: `weight[0]` loss(-z) + `weight[1]` loss(z) with the logistic or exponential loss."""

    curved = True
    tame = True

    def __init__(self, weight: Array, exponential: bool) -> None:
        self.weight = weight  # (2, n)
        self.exponential = exponential

    def look(self, Z: Array) -> Look:
        """The sum of the losses at the forecasts Z."""
        c0, c1 = self.weight
        if self.exponential:
            with np.errstate(over="ignore", invalid="ignore"):
                up = np.where(c0 > 0, c0 * np.exp(np.where(Z <= LARGEST_EXPONENT, Z, np.inf)), 0.0)
                down = np.where(c1 > 0, c1 * np.exp(np.where(-Z <= LARGEST_EXPONENT, -Z, np.inf)), 0.0)
                return Look(up + down, up - down, LAST_DIGITS * (up + down), up + down)
        e = np.exp(-np.abs(Z))
        small = np.log1p(e)
        values = c0 * (np.maximum(Z, 0.0) + small) + c1 * (np.maximum(-Z, 0.0) + small)
        high, low = 1.0 / (1.0 + e), e / (1.0 + e)  # the sigmoid of |z| and of -|z|
        positive = Z >= 0
        up, down = c0 * np.where(positive, high, low), c1 * np.where(positive, low, high)
        return Look(values, up - down, LAST_DIGITS * (up + down), (c0 + c1) * high * low)

    def lowest(self) -> float:
        """A lower bound on the sum: 0 for hard labels, the entropy for soft labels."""
        c0, c1 = self.weight
        if self.exponential:  # at z = ln(c1/c0)/2
            return 2.0 * float((np.sqrt(c0) * np.sqrt(c1)).sum()) * (1 - SUM)
        return entropies(self.weight) * (1 - SUM)

    def relaxed(self, Z: Array, least: float) -> tuple[Look, Any]:
        """Without the rows of a hard label whose loss is below `least`."""
        sure = self.weight.min(axis=0) == 0
        live = np.ones(Z.size, dtype=bool)
        if sure.any():
            z = np.where(self.weight[0] > 0, Z, -Z)
            with np.errstate(over="ignore"):
                live[sure] = (self.weight.max(axis=0) * np.exp(np.minimum(z, LARGEST_EXPONENT)) >= least)[sure]
        look = Margin(self.weight * live, self.exponential).look(Z)
        return look, live

    def take(self, rows: Any, factor: float = 1.0) -> Margin:
        """The same loss for some of the rows, with weights multiplied by `factor`."""
        return Margin(factor * self.weight[:, rows], self.exponential)


class Softmax:
    """K classes: log(sum of e^z_j) - y.z for label probabilities y, (K, n), times a weight per row."""

    curved = True
    tame = True

    def __init__(self, Y: Array, weight: Array) -> None:
        self.Y = Y
        self.weight = weight

    def look(self, Z: Array) -> Look:
        """The sum of the losses at the forecasts Z. A forecast of -inf removes a class of probability 0."""
        Y, c = self.Y, self.weight
        top = Z.max(axis=0)
        e = np.exp(Z - top)
        total = e.sum(axis=0)
        rest = total - 1.0
        close = rest < 0.5  # the leader's 1 would absorb small numbers
        if close.any():
            others = e[:, close]
            others[Z[:, close].argmax(axis=0), np.arange(others.shape[1])] = 0.0
            rest[close] = others.sum(axis=0)
        missed = (Y * np.where(Y > 0, top - Z, 0.0)).sum(axis=0)
        values = c * (missed + np.log1p(rest))
        p = e / total
        sure = Y == 1.0
        others = np.where(sure, 0.0, e).sum(axis=0) / total  # 1 - p without cancellation
        slopes = c * np.where(sure, -others, p - Y)
        doubt = np.abs(slopes) + np.where((Y > 0.0) & ~sure, 2 * c * Y, 0.0)
        return Look(values, slopes, (LAST_DIGITS + Y.shape[0] * UNIT) * doubt, c * p)

    def lowest(self) -> float:
        """A lower bound on the sum: the entropy of the labels."""
        return entropies(self.Y * self.weight) * (1 - SUM)

    def relaxed(self, Z: Array, least: float) -> tuple[Look, Any]:
        """Without the classes that a row does not have and to which it gives a negligible probability."""
        live = (self.Y > 0) | (self.look(Z).curvature >= least)
        return self.look(np.where(live, Z, -np.inf)), live

    def take(self, rows: Any, factor: float = 1.0) -> Softmax:
        """The same loss for some of the rows, with weights multiplied by `factor`."""
        return Softmax(self.Y[:, rows], factor * self.weight[rows])


class Squared:
    """(z - y)^2, times a weight per row."""

    curved = False
    tame = True

    def __init__(self, y: Array, weight: Array) -> None:
        self.y = y
        self.weight = weight

    def look(self, Z: Array) -> Look:
        """The sum of the losses at the forecasts Z."""
        miss = Z - self.y
        slopes = 2.0 * self.weight * miss
        return Look(self.weight * miss * miss, slopes, LAST_DIGITS * np.abs(slopes), 2.0 * self.weight)

    def lowest(self) -> float:
        """0."""
        return 0.0

    def relaxed(self, Z: Array, least: float) -> tuple[Look, Any]:
        """The sum itself: no row is negligible."""
        return self.look(Z), np.ones(Z.size, dtype=bool)

    def take(self, rows: Any, factor: float = 1.0) -> Squared:
        """The same loss for some of the rows, with weights multiplied by `factor`."""
        return Squared(self.y[rows], factor * self.weight[rows])


class Linear:
    """y z, times a weight per row."""

    curved = False
    tame = True

    def __init__(self, y: Array, weight: Array) -> None:
        self.y = y
        self.weight = weight

    def look(self, Z: Array) -> Look:
        """The sum of the losses at the forecasts Z."""
        slopes = self.weight * self.y
        return Look(slopes * Z, slopes, UNIT * np.abs(slopes), np.zeros(Z.size))

    def lowest(self) -> float:
        """-inf, unless all slopes are 0."""
        return -np.inf if np.any(self.weight * self.y) else 0.0

    def relaxed(self, Z: Array, least: float) -> tuple[Look, Any]:
        """The sum itself."""
        return self.look(Z), np.ones(Z.size, dtype=bool)

    def take(self, rows: Any, factor: float = 1.0) -> Linear:
        """The same loss for some of the rows, with weights multiplied by `factor`."""
        return Linear(self.y[rows], factor * self.weight[rows])


class Given:
    """A custom loss of (z, y), times a weight per row; with two classes both signs of y have their own weight.

    Its functions are assumed to be as exact as those of the named losses.
    """

    curved = True
    tame = False

    def __init__(self, loss: Custom, y: Array, weight: Array) -> None:
        self.loss, self.y, self.weight = loss, y, weight
        both = loss.kind == "margin"
        self.parts = [(np.full(len(y), 2.0 * k - 1.0), weight * y[:, k]) for k in range(2)] if both else [(y, weight)]

    def _sum(self, function: Callback, Z: Array) -> Array:
        total = np.zeros(Z.size)
        for y, c in self.parts:
            add(function, Z, np.ascontiguousarray(y), np.ascontiguousarray(c), total)
        error = function.take_error()
        if error is not None:
            raise error
        return total

    def look(self, Z: Array) -> Look:
        """The sum of the losses at the forecasts Z; without a second derivative the curvature is given as 0."""
        Z = np.ascontiguousarray(Z)
        slopes = self._sum(self.loss.code.slope, Z)
        bend = self.loss.bend
        curvature = np.zeros(Z.size) if bend is None else self._sum(bend, Z)
        return Look(self._sum(self.loss.code.value, Z), slopes, LAST_DIGITS * np.abs(slopes), curvature)

    def lowest(self) -> float:
        """-inf: nothing is known."""
        return -np.inf

    def relaxed(self, Z: Array, least: float) -> tuple[Look, Any]:
        """The sum itself."""
        return self.look(Z), np.ones(Z.size, dtype=bool)

    def take(self, rows: Any, factor: float = 1.0) -> Given:
        """The same loss for some of the rows, with weights multiplied by `factor`."""
        return Given(self.loss, self.y[rows], factor * self.weight[rows])


@kernel
def add(function: Callback, Z: Array, y: Array, c: Array, out: Array) -> None:
    """out += c function(z, y), row by row."""
    for i in range(Z.size):
        if c[i] != 0.0:
            out[i] += c[i] * function(Z[i], y[i])


def entropies(masses: Array) -> float:
    """The log loss of the best forecast of each row, with masses (K, n) of its labels."""
    total = np.broadcast_to(masses.sum(axis=0), masses.shape)
    some = masses > 0
    return float((masses[some] * np.log(total[some] / masses[some])).sum())
