"""The losses of the first-order learners and a subgradient of each, written from their definitions.

Two classes: one score z, the margin is u = y z with y = +1 for class 1 and -1 for class 0. More classes: K scores.
A label is a distribution over the classes, and loss and slope are expectations under it. Numbers: a label is a number.
At a kink the slope is the flat one, and of tied rivals the first counts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from .newton import Array, Long, long

LN2 = np.log(Long(2))


def _logistic(u: np.longdouble) -> tuple[np.longdouble, np.longdouble]:
    return np.logaddexp(Long(0), -u), -np.exp(-np.logaddexp(Long(0), u))


def _logit(u: np.longdouble) -> tuple[np.longdouble, np.longdouble]:
    value, slope = _logistic(u)
    return value / LN2, slope / LN2


def _hinge(u: np.longdouble) -> tuple[np.longdouble, np.longdouble]:
    return max(1 - u, Long(0)), Long(-1 if u < 1 else 0)


def _exponential(u: np.longdouble) -> tuple[np.longdouble, np.longdouble]:
    return np.exp(-u), -np.exp(-u)


def _mistake(u: np.longdouble) -> tuple[np.longdouble, np.longdouble]:
    """0/1, with the hinge's slope at the mistakes only: gradient descent with it is the Perceptron."""
    return Long(u <= 0), -Long(u <= 0)


#: phi(u) and phi'(u).
MARGIN: dict[str, Callable] = {
    "logistic": _logistic,
    "logit": _logit,
    "hinge": _hinge,
    "exponential": _exponential,
    "mistake": _mistake,
}

#: Loss and slope at the forecast z under the target y.
REAL: dict[str, Callable] = {
    "squared": lambda z, y: ((z - y) ** 2, 2 * (z - y)),
    "absolute": lambda z, y: (abs(z - y), np.sign(z - y)),
    "linear": lambda z, y: (y * z, y),
}


def rival(z: Array, k: int) -> int:
    """The first class of the largest score among those other than k."""
    return max((j for j in range(len(z)) if j != k), key=lambda j: (z[j], -j))


def _softmax(z: Array, k: int) -> tuple[np.longdouble, Array]:
    e = np.exp(z - np.max(z))
    return np.max(z) - z[k] + np.log(np.sum(e)), e / np.sum(e) - np.eye(len(z), dtype=Long)[k]


def _multiclass_hinge(z: Array, k: int) -> tuple[np.longdouble, Array]:
    j, unit = rival(z, k), np.eye(len(z), dtype=Long)
    value = max(1 + z[j] - z[k], Long(0))
    return value, (value > 0) * (unit[j] - unit[k])


def _multiclass_mistake(z: Array, k: int) -> tuple[np.longdouble, Array]:
    j, unit = rival(z, k), np.eye(len(z), dtype=Long)
    return Long(z[j] >= z[k]), (z[j] >= z[k]) * (unit[j] - unit[k])


#: Loss and slopes of the scores z when the class is k.
MULTICLASS: dict[str, Callable] = {
    "softmax": _softmax,
    "multiclass hinge": _multiclass_hinge,
    "multiclass mistake": _multiclass_mistake,
}


def loss_and_slope(name: str, z: Array, y: ArrayLike) -> tuple[np.longdouble, Array]:
    """The (expected) loss and a subgradient in the scores z."""
    label = long(y)
    if name in REAL:
        value, slope = REAL[name](z[0], label.reshape(-1)[0])
        return Long(value), long([slope])
    assert abs(np.sum(label) - 1) < 1e-12, "a label is a distribution over the classes"
    value, slope = Long(0), np.zeros(len(z), dtype=Long)
    if name in MARGIN:
        for sign, probability in ((-1, label[0]), (1, label[1])):
            phi, derivative = MARGIN[name](sign * z[0])
            value += probability * phi
            slope += probability * sign * derivative
    else:
        for k in range(len(z)):
            each, slopes = MULTICLASS[name](z, k)
            value += label[k] * each
            slope += label[k] * slopes
    return value, slope
