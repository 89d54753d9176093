"""FOLKLORE (Agarwal, Kale, Zimmert 2022), by minimising its definition."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .curvature import curvature as row_curvature
from .newton import Array, Long, Objective, long, minimise, solve, total
from .terms import Loss, Surrogate, as_distribution, expand, linear, ridge


class ReferenceFOLKLORE:
    """Eq. (3.3): W_t = argmin lam |W|_F^2 + sum_s q_s(W) + phi_t(W), forecast z_t = W_t x_t.

    q_s is eq. (3.2) with kappa for the text's constant (docs/errata.md: that one is not a lower
    bound), expanded at z_s. phi_t is eq. (3.1), phi_t(W) = (1/K) sum_k l(W x_t, k) + <W, B_t>, with
    Lemma 8's B_t = (1/K) 1 ⊗ x_t - (1/2) A diag_⊗(A^{-1}) (1 ⊗ x_t), A = A_{t-1} (half the Hessian of
    lam |W|^2 + sum_s q_s) and diag_⊗ keeping the K diagonal blocks of size d x d.
    Algorithm 1's G_t lacks a term (docs/errata.md); here nothing but the definitions is used.
    """

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float | None = None,
        curvature: str | float = "sharp",
        feature_bound: float | None = None,
        n_classes: int = 3,
    ) -> None:
        self.radius = radius
        R = 1.0 if feature_bound is None else feature_bound
        self.lam = 2.0 * R / radius if regularization is None else regularization
        self.curvature = curvature
        self.feature_bound = feature_bound
        self.n_classes = n_classes
        self.surrogates: list[Surrogate] = []
        self.loss = 0.0
        self.dimension: int | None = None

    def _minimise(self, *extra: Objective) -> tuple[Array, float]:
        objective = total(ridge(self.lam), *self.surrogates, *extra)
        assert self.dimension is not None, "no row seen yet"
        return minimise(objective, (self.n_classes, self.dimension))

    def hessian_half(self) -> Array:
        """A_{t-1} = lam I + sum_s weight_s kappa_s S_s ⊗ x_s x_s^T."""
        assert self.dimension is not None, "no row seen yet"
        A = self.lam * np.eye(self.n_classes * self.dimension, dtype=Long)
        for q in self.surrogates:
            A = A + q.weight * q.kappa * np.kron(q.S, np.outer(q.x, q.x))
        return A

    def _bias(self, x: Array) -> Array:
        """B_t of Lemma 8, as a K x d matrix."""
        K, d = self.n_classes, len(x)
        A = self.hessian_half()
        inverse = solve(A, np.eye(K * d, dtype=Long))
        diagonal_blocks = inverse * np.kron(np.eye(K), np.ones((d, d)))
        ones_x = np.kron(np.ones(K), x)
        return (ones_x / K - A @ (diagonal_blocks @ ones_x) / 2).reshape(K, d)

    def _forecast(self, x: Array) -> Array:
        self.dimension = len(x)
        K = self.n_classes
        virtual = [Loss("cross_entropy", x, y, 1 / Long(K)) for y in np.eye(K, dtype=Long)]
        W, _ = self._minimise(*virtual, linear(self._bias(x)))
        z = W @ x
        return z - np.mean(z)  # the all-ones direction: seen by no softmax, no g, no S

    def forecast(self, x: ArrayLike) -> np.ndarray:
        """The logits z_t = W_t x, centred."""
        return self._forecast(long(x)).astype(float)

    def learn(self, x: ArrayLike, y: ArrayLike, weight: float = 1.0) -> np.ndarray:
        """Forecast, suffer weight * loss, append the surrogate; returns the forecast."""
        row, label = long(x), as_distribution(y, self.n_classes)
        z = self._forecast(row)
        if weight != 0:
            size = float(np.linalg.norm(np.asarray(x, dtype=float)))
            bound = size if self.feature_bound is None else self.feature_bound
            kappa = row_curvature(self.curvature, radius=self.radius, norm=bound, n_classes=self.n_classes)
            surrogate = expand("cross_entropy", row, label, z, kappa, weight)
            self.surrogates.append(surrogate)
            self.loss += weight * float(surrogate.value)
        return z.astype(float)

    def leader(self) -> np.ndarray:
        """argmin lam |W|^2 + sum_s q_s(W)."""
        return self._minimise()[0].astype(float)

    def certificate(self, comparator_norm: float | None = None) -> float:
        """lam |W|_F^2 + losses suffered - min [lam |.|_F^2 + sum_s q_s] >= regret(W).

        Without ``comparator_norm`` (Frobenius): the largest value over ||W||_{2,inf} <= radius.
        """
        if comparator_norm is None:
            square = self.n_classes * self.radius**2
        else:
            square = comparator_norm**2
        minimum = self._minimise()[1] if self.surrogates else 0.0
        return self.lam * square + self.loss - minimum
