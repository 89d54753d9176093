"""The forecaster of Vovk (2001) and Azoury and Warmuth (2001), by minimising its definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .newton import Array, long, minimise, total
from .terms import Loss, ridge


class ReferenceVAW:
    """theta_t = argmin lam |theta|^2 + sum_s w_s (y_s - theta·x_s)^2 + (theta·x_t)^2.

    GAF section 4.1 with its erratum (the last term is a square, lam is counted once).
    """

    def __init__(self, regularization: float = 1.0) -> None:
        self.lam = regularization
        self.rows: list[Loss] = []
        self.loss = 0.0
        self.dimension: int | None = None

    def _minimise(self, *extra: Loss) -> tuple[Array, float]:
        objective = total(ridge(self.lam), *self.rows, *extra)
        assert self.dimension is not None, "no row seen yet"
        return minimise(objective, (1, self.dimension))

    def forecast(self, x: ArrayLike) -> float:
        """theta_t·x."""
        row = long(x)
        self.dimension = len(row)
        theta, _ = self._minimise(Loss("square", row, long([0])))
        return float((theta @ row)[0])

    def learn(self, x: ArrayLike, y: float, weight: float = 1.0) -> float:
        """Forecast, suffer weight * (y - forecast)^2, keep the row; returns the forecast."""
        value = self.forecast(x)
        if weight != 0:
            self.loss += weight * (y - value) ** 2
            self.rows.append(Loss("square", long(x), long([y]), weight))
        return value

    def leader(self) -> np.ndarray:
        """The ridge regression argmin lam |theta|^2 + sum_s w_s (y_s - theta·x_s)^2."""
        return self._minimise()[0][0].astype(float)

    def certificate(self, comparator_norm: float) -> float:
        """lam |theta|^2 + losses suffered - min [lam |.|^2 + sum_s w_s (y_s - theta·x_s)^2]."""
        minimum = self._minimise()[1] if self.rows else 0.0
        return self.lam * comparator_norm**2 + self.loss - minimum
