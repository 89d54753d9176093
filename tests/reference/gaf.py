"""GAF for logistic regression (Jézéquel, Gaillard, Rudi 2021), by its definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from .curvature import curvature as row_curvature
from .expectation import softmax_normal_expectation
from .newton import Array, Long, Objective, long, minimise, solve, total
from .terms import Loss, Surrogate, as_distribution, expand, ridge


class ReferenceGAF:
    """Eqs. (2), (3), (6) with alpha = 1 and beta / 2 = kappa.

    After y_t: W_{t+1} = argmin lam |W|^2 + sum_{s<t} q_s(W) + l_t(W), with the true loss l_t, and
    q_t is the quadratic of l_t at W_{t+1} (Algorithm 1 prints theta_t: docs/errata.md).
    Forecast: p = E softmax(W x) under the density proportional to exp(-(lam |W|^2 + sum_s q_s(W))),
    the Gaussian N(W̄, A^{-1} / 2) (Algorithm 1 lacks the half), then (1 - mu) p + mu / K.
    """

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float = 1.0,
        curvature: str | float = "sharp",
        smoothing: float = 0.0,
        feature_bound: float | None = None,
        n_classes: int = 2,
    ) -> None:
        self.radius = radius
        self.lam = regularization
        self.curvature = curvature
        self.smoothing = smoothing
        self.feature_bound = feature_bound
        self.n_classes = n_classes
        self.surrogates: list[Surrogate] = []
        self.loss = 0.0
        self.dimension: int | None = None

    def _minimise(self, *extra: Objective) -> tuple[Array, float]:
        objective = total(ridge(self.lam), *self.surrogates, *extra)
        assert self.dimension is not None, "no row seen yet"
        return minimise(objective, (self.n_classes, self.dimension))

    def moments(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """m = W̄ x and Q = (I ⊗ x)^T A^{-1} (I ⊗ x): the logits are N(m, Q / 2)."""
        row = long(x)
        self.dimension = len(row)
        mean, _ = self._minimise()
        A = total(ridge(self.lam), *self.surrogates)(mean)[2] / 2
        columns = np.kron(np.eye(self.n_classes, dtype=Long), row[:, None])
        Q = columns.T @ solve(A, columns)
        return (mean @ row).astype(float), ((Q + Q.T) / 2).astype(float)

    def forecast(self, x: ArrayLike) -> np.ndarray:
        """The K probabilities (K = 2 or 3; more classes raise)."""
        p = softmax_normal_expectation(*self.moments(x))
        return (1 - self.smoothing) * p + self.smoothing / self.n_classes

    def learn(
        self,
        x: ArrayLike,
        y: ArrayLike,
        weight: float = 1.0,
        forecast: ArrayLike | None = None,
    ) -> np.ndarray:
        """Forecast (or take the caller's), suffer weight * loss, update; returns the forecast."""
        p = self.forecast(x) if forecast is None else np.asarray(forecast, dtype=float)
        if weight == 0:
            return p
        row, label = long(x), as_distribution(y, self.n_classes)
        self.dimension = len(row)
        self.loss += weight * float(-np.sum(xlogy(label.astype(float), p)))
        W, _ = self._minimise(Loss("cross_entropy", row, label, weight))
        size = float(np.linalg.norm(np.asarray(x, dtype=float)))
        bound = size if self.feature_bound is None else self.feature_bound
        kappa = row_curvature(self.curvature, radius=self.radius, norm=bound, n_classes=self.n_classes)
        self.surrogates.append(expand("cross_entropy", row, label, W @ row, kappa, weight))
        return p

    def leader(self) -> np.ndarray:
        """W̄ = argmin lam |W|^2 + sum_s q_s(W)."""
        return self._minimise()[0].astype(float)

    def certificate(self, comparator_norm: float | None = None) -> float:
        """lam |W|_F^2 + losses suffered - min [lam |.|_F^2 + sum_s q_s] >= regret(W)."""
        size = self.radius if comparator_norm is None else comparator_norm
        minimum = self._minimise()[1] if self.surrogates else 0.0
        return self.lam * size**2 + self.loss - minimum
