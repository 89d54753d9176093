"""The functions of W (k x d) that the learners' objectives are sums of.

Each is called on W and returns value, gradient (k x d) and Hessian (kd x kd). All but the ridge and
the linear one depend on W through z = W x alone, so that with g and H the derivatives in z the
gradient is g ⊗ x and the Hessian H ⊗ x x^T (FOLKLORE, Appendix A).
Binary learners in the margin parametrisation use k = 1: W is the row vector theta, z = (u).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .newton import Array, Long, Objective, long


def softmax(z: Array) -> Array:
    """sigma(z)_k = e^{z_k} / sum_j e^{z_j}."""
    e = np.exp(z - np.max(z))
    return e / np.sum(e)


def sigmoid(u: Array) -> Array:
    """1 / (1 + e^{-u})."""
    return np.exp(-np.logaddexp(Long(0), -u))


def cross_entropy(z: Array, y: Array) -> tuple[np.longdouble, Array, Array]:
    """l(z, y) = -sum_k y_k ln sigma(z)_k; gradient p - y; Hessian S = diag p - p p^T."""
    value = Long(0)
    for k in range(len(z)):
        gaps = z - z[k]
        value += y[k] * (np.max(gaps) + np.log(np.sum(np.exp(gaps - np.max(gaps)))))
    p = softmax(z)
    return value, p - y, np.diag(p) - np.outer(p, p)


def logistic(z: Array, y: Array) -> tuple[np.longdouble, Array, Array]:
    """l(u, y) = y ln(1 + e^{-u}) + (1 - y) ln(1 + e^u); slope s - y; curvature s (1 - s)."""
    value = y * np.logaddexp(Long(0), -z) + (1 - y) * np.logaddexp(Long(0), z)
    s = sigmoid(z)
    return Long(value[0]), s - y, np.diag(s * sigmoid(-z))


def square(z: Array, y: Array) -> tuple[np.longdouble, Array, Array]:
    """(y - z)^2; slope 2 (z - y); curvature 2."""
    return Long((y - z)[0] ** 2), 2 * (z - y), long([[2]])


LOSSES = {"cross_entropy": cross_entropy, "logistic": logistic, "square": square}


@dataclass(frozen=True)
class Loss:
    """weight * l(W x, y), the true loss of one row."""

    kind: str
    x: Array
    y: Array
    weight: float | np.longdouble = 1.0

    def __call__(self, W: Array) -> tuple[np.longdouble, Array, Array]:
        value, g, H = LOSSES[self.kind](W @ self.x, self.y)
        w = Long(self.weight)
        return w * value, w * np.outer(g, self.x), w * np.kron(H, np.outer(self.x, self.x))


@dataclass(frozen=True)
class Surrogate:
    """weight * q(W), q(W) = value + g·(W x - z) + kappa (W x - z)^T S (W x - z).

    AIOLI eq. (2), FOLKLORE eq. (3.2), GAF eq. (3), ONS (Hazan et al. 2007, Lemma 3).
    """

    x: Array
    z: Array
    value: np.longdouble
    g: Array
    S: Array
    kappa: float
    weight: float

    def __call__(self, W: Array) -> tuple[np.longdouble, Array, Array]:
        gap = W @ self.x - self.z
        w, kappa = Long(self.weight), Long(self.kappa)
        value = self.value + np.sum(self.g * gap) + kappa * np.sum(gap * (self.S @ gap))
        g = self.g + 2 * kappa * (self.S @ gap)
        H = 2 * kappa * self.S
        return w * value, w * np.outer(g, self.x), w * np.kron(H, np.outer(self.x, self.x))


def expand(kind: str, x: Array, y: Array, z: Array, kappa: float, weight: float) -> Surrogate:
    """The surrogate of the loss l(., y) at z: true value, true gradient, kappa x true Hessian."""
    value, g, S = LOSSES[kind](z, y)
    return Surrogate(x, z, value, g, S, kappa, weight)


def ridge(lam: float) -> Objective:
    """lam |W|^2."""

    def term(W: Array) -> tuple[np.longdouble, Array, Array]:
        return lam * np.sum(W * W), 2 * lam * W, 2 * lam * np.eye(W.size, dtype=Long)

    return term


def linear(B: Array) -> Objective:
    """<W, B>."""

    def term(W: Array) -> tuple[np.longdouble, Array, Array]:
        return np.sum(W * B), B, np.zeros((W.size, W.size), dtype=Long)

    return term


def as_distribution(y: ArrayLike, n_classes: int) -> Array:
    """A label as a distribution over the classes; for two classes a number means P(class 1)."""
    labels = long(y)
    if labels.ndim == 0:
        assert n_classes == 2, "a scalar label is the probability of class 1 of 2"
        labels = long([1 - labels, labels])
    assert labels.shape == (n_classes,)
    assert np.all(labels >= 0)
    assert abs(np.sum(labels) - 1) < 1e-12
    return labels
