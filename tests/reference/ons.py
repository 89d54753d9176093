"""Online Newton Step (Hazan, Agarwal, Kale 2007)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from .newton import Array, Long, long, minimise, norm, solve, total
from .terms import Surrogate, as_distribution, cross_entropy, logistic, ridge, sigmoid, softmax


def project(v: Array, A: Array, radius: float) -> Array:
    """argmin over |u| <= radius of (u - v)^T A (u - v).

    Outside the ball the solution satisfies A (u - v) + nu u = 0 with the multiplier nu > 0 for
    which |u| = radius; nu is found by bracketing. |u(nu)| <= |v| a / (a + nu), a = |A|.
    """
    if norm(v) <= radius * (1 + 1e-15):
        return v
    scaled = A / np.linalg.eigvalsh(A.astype(float))[-1]  # |A| = 1; the minimiser is the same
    eye = np.eye(len(v), dtype=Long)

    def solution(nu: float) -> Array:
        return solve(scaled + nu * eye, scaled @ v)

    # Twice the bound above: at it |u| <= radius with room for rounding.
    high = 2.0 * float(norm(v) / radius - 1)
    nu = brentq(lambda n: float(norm(solution(n)) - radius), 0.0, high, xtol=1e-300, rtol=1e-15)
    return solution(nu)


class ReferenceONS:
    """w <- project_A(w - A^{-1} g / gamma), A <- A + g g^T, A_0 = epsilon I, on the ball |w| <= B.

    gamma = (1/2) min(1 / (4 G D), alpha), D = 2 B, epsilon = 1 / (gamma D)^2 unless given.
    Two classes: w = theta in R^d, u = theta·x, g = (sigmoid(u) - y) x, G = R, alpha = e^{-BR}.
    K > 2: w = vec W, g = (softmax(W x) - y) ⊗ x, G = sqrt(2) R, alpha = e^{-sqrt(2) BR} / (K - 1).
    A row of weight w has the loss w l: gradient w g, lower quadratic
    w [l(w_t) + g·(v - w_t) + (gamma / 2) (g·(v - w_t))^2], hence A += w g g^T.
    """

    def __init__(
        self,
        radius: float = 10.0,
        gamma: float | None = None,
        epsilon: float | None = None,
        feature_bound: float | None = None,
        n_classes: int = 2,
    ) -> None:
        R = 1.0 if feature_bound is None else feature_bound
        if n_classes == 2:
            G, alpha = R, math.exp(-radius * R)
        else:
            G, alpha = math.sqrt(2) * R, math.exp(-math.sqrt(2) * radius * R) / (n_classes - 1)
        D = 2.0 * radius
        self.radius = radius
        self.n_classes = n_classes
        self.gamma = 0.5 * min(1 / (4 * G * D), alpha) if gamma is None else gamma
        if (self.gamma * D) ** 2 < 1e-300:
            raise ValueError("gamma underflows for this radius and feature bound; give a larger one")
        self.epsilon = 1 / (self.gamma * D) ** 2 if epsilon is None else epsilon
        self.surrogates: list[Surrogate] = []
        self.loss = 0.0
        self.W: Array | None = None
        self.A: Array | None = None

    def _start(self, d: int) -> tuple[Array, Array]:
        if self.W is None or self.A is None:
            k = 1 if self.n_classes == 2 else self.n_classes
            self.W = np.zeros((k, d), dtype=Long)
            self.A = self.epsilon * np.eye(k * d, dtype=Long)
        return self.W, self.A

    def forecast(self, x: ArrayLike) -> np.ndarray:
        """The K probabilities at the current w."""
        row = long(x)
        W, _ = self._start(len(row))
        z = W @ row
        p = long([sigmoid(-z[0]), sigmoid(z[0])]) if self.n_classes == 2 else softmax(z)
        return p.astype(float)

    def learn(self, x: ArrayLike, y: ArrayLike, weight: float = 1.0) -> np.ndarray:
        """Forecast, suffer weight * loss, take the step; returns the forecast.

        ``y``: a distribution over the classes, or for two classes also P(class 1).
        """
        forecast = self.forecast(x)
        if weight == 0:
            return forecast
        row, label = long(x), as_distribution(y, self.n_classes)
        W, A = self._start(len(row))
        z = W @ row
        if self.n_classes == 2:
            value, slope, _ = logistic(z, label[1:])
        else:
            value, slope, _ = cross_entropy(z, label)
        self.loss += weight * float(value)
        S = np.outer(slope, slope)
        self.surrogates.append(Surrogate(row, z, value, slope, S, self.gamma / 2, weight))
        g = np.outer(slope, row).ravel()
        self.A = A + weight * np.outer(g, g)
        step = solve(self.A, weight * g) / self.gamma
        self.W = project(W.ravel() - step, self.A, self.radius).reshape(W.shape)
        return forecast

    def certificate(self, comparator_norm: float | None = None) -> float:
        """r |w|^2 + losses suffered - min [r |.|^2 + lower quadratics], r = gamma epsilon / 2."""
        size = self.radius if comparator_norm is None else comparator_norm
        half = self.gamma * self.epsilon / 2
        minimum = 0.0
        if self.W is not None and self.surrogates:
            objective = total(ridge(half), *self.surrogates)
            minimum = minimise(objective, self.W.shape)[1]
        return half * size**2 + self.loss - minimum
