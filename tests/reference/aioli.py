"""AIOLI (Jézéquel, Gaillard, Rudi 2020), by minimising its definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .curvature import curvature as row_curvature
from .newton import Array, long, minimise, total
from .terms import Loss, Surrogate, expand, ridge


class ReferenceAIOLI:
    """Eq. (3): FTRL on the quadratics of eq. (2) plus both possible losses of the row at hand.

    theta_t = argmin lam |theta|^2 + sum_s q_s(theta) + a (l(theta·x, +1) + l(theta·x, -1))

    with a = ``virtual_weight`` (1 in the text), margin u = theta_t·x, and q_s the quadratic at the
    margin u_s: slope sigmoid(u_s) - y_s, curvature kappa_s sigmoid(u_s) sigmoid(-u_s). In eq. (2)
    the last reads (eta_s / 2) (y_s sigmoid(-y_s u_s))^2 with eta_s = e^{y_s u_s} / (1 + BR), which
    is the same with kappa_s = 1 / (2 (1 + BR)), the curvature "aioli". Labels are P(y = +1).
    """

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float | None = None,
        curvature: str | float = "sharp",
        virtual_weight: float = 1.0,
        feature_bound: float | None = None,
    ) -> None:
        self.radius = radius
        self.lam = 1.0 / radius**2 if regularization is None else regularization
        self.curvature = curvature
        self.virtual_weight = virtual_weight
        self.feature_bound = feature_bound
        self.surrogates: list[Surrogate] = []
        self.loss = 0.0
        self.dimension: int | None = None

    def _minimise(self, *extra: Loss) -> tuple[Array, float]:
        objective = total(ridge(self.lam), *self.surrogates, *extra)
        assert self.dimension is not None, "no row seen yet"
        return minimise(objective, (1, self.dimension))

    def _forecast(self, x: Array) -> Array:
        self.dimension = len(x)
        virtual = [Loss("logistic", x, long([y]), self.virtual_weight) for y in (1, 0)]
        theta, _ = self._minimise(*virtual)
        return theta @ x

    def forecast(self, x: ArrayLike) -> float:
        """The margin u = theta_t·x."""
        return float(self._forecast(long(x))[0])

    def learn(self, x: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Forecast, suffer weight * loss, append the surrogate; returns the forecast."""
        assert 0 <= y <= 1
        row, label = long(x), long([y])
        u = self._forecast(row)
        if weight != 0:
            size = float(np.linalg.norm(np.asarray(x, dtype=float)))
            bound = size if self.feature_bound is None else self.feature_bound
            kappa = row_curvature(self.curvature, radius=self.radius, norm=bound, n_classes=None)
            surrogate = expand("logistic", row, label, u, kappa, weight)
            self.surrogates.append(surrogate)
            self.loss += weight * float(surrogate.value)
        return float(u[0])

    def leader(self) -> np.ndarray:
        """argmin lam |theta|^2 + sum_s q_s(theta)."""
        return self._minimise()[0][0].astype(float)

    def certificate(self, comparator_norm: float | None = None) -> float:
        """lam |theta|^2 + losses suffered - min [lam |.|^2 + sum_s q_s] >= regret(theta)."""
        size = self.radius if comparator_norm is None else comparator_norm
        minimum = self._minimise()[1] if self.surrogates else 0.0
        return self.lam * size**2 + self.loss - minimum
