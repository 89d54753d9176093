r"""FOLKLORE in plain NumPy, following the formulas, as a reference for speed and forecasts.

Logits of K classes sum to zero, so everything is in K - 1 coordinates of a basis H. With P the inverse of A, and
:math:`I \otimes x` the K - 1 copies of a row,

.. math:: V = P\,(I \otimes x), \qquad m = W x, \qquad Q = (I \otimes x)^T V,

the forecast solves :math:`z = m + \tfrac14 \mathrm{diag}\,Q - \tfrac12 Q\,\mathrm{softmax}(z)`; and with
:math:`S = \kappa\,(\mathrm{diag}\,p - pp^T)`, :math:`l = S z - \tfrac12 (p - y)`, :math:`T = I + S Q`, the update is

.. math:: w \leftarrow w + V\,T^{-1}(l - S m), \qquad P \leftarrow P - V\,T^{-1} S\,V^T.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp, softmax, wrightomega

from regretless.core.types import Array


def basis(n_classes: int) -> Array:
    """Orthonormal columns (K, K - 1) of the vectors that sum to zero."""
    across = np.eye(n_classes)[:, 1:] - 1.0 / n_classes
    return np.linalg.qr(across)[0]


class PlainFolklore:
    """FOLKLORE with its defaults, one row at a time."""

    def __init__(self, n_features: int, n_classes: int, radius: float = 10.0) -> None:
        r = n_classes - 1
        self.radius = radius
        self.n_classes = n_classes
        self.H = basis(n_classes)
        self.P = np.eye(r * n_features) * (radius / 2.0)  # regularization 2 / radius
        self.w = np.zeros(r * n_features)

    def look(self, x: Array) -> tuple[Array, Array, Array]:
        """V (N, K - 1), m and Q in the reduced coordinates."""
        r, d = self.n_classes - 1, x.size
        V = self.P.reshape(-1, r, d) @ x
        m = self.w.reshape(r, d) @ x
        Q = np.einsum("kdl,d->kl", V.reshape(r, d, r), x)
        return V, m, 0.5 * (Q + Q.T)

    def forecast(self, m: Array, Q: Array) -> Array:
        """The logits, in reduced coordinates: c + Q a, where a minimises a^T Q a + lse(H (c + Q a))."""
        H = self.H
        c = m + 0.25 * H.T @ np.einsum("ak,kl,al->a", H, Q, H)
        a = np.zeros(m.size)

        def value(a: Array) -> float:
            return float(0.5 * a @ Q @ a + 0.5 * logsumexp(H @ (c + Q @ a)))

        for _ in range(100):
            p = softmax(H @ (c + Q @ a))
            slope = a + 0.5 * H.T @ p
            if np.abs(slope).max() <= 1e-14:
                break
            curvature = H.T @ (p[:, None] * H) - np.outer(H.T @ p, H.T @ p)
            step = np.linalg.solve(np.eye(m.size) + 0.5 * curvature @ Q, -slope)
            length, start = 1.0, value(a)
            while length > 1e-3 and value(a + length * step) > start + 1e-12 * (1.0 + abs(start)):
                length /= 2.0
            a += length * step
        return c + Q @ a

    def kappa(self, x: Array) -> float:
        """1 / (2 + W(e^(L - 1))), L = 2 C + ln(K - 1), with logits of comparators up to C = B |x|."""
        L = 2.0 * self.radius * np.linalg.norm(x) + np.log(self.n_classes - 1.0)
        return 1.0 / (2.0 + float(wrightomega(L - 1.0)))

    def play_one(self, x: Array, label: int) -> Array:
        """Forecast the probabilities of a row, then learn it."""
        H = self.H
        V, m, Q = self.look(x)
        z = self.forecast(m, Q)
        p = softmax(H @ z)
        gradient = p.copy()
        gradient[label] -= 1.0
        S = self.kappa(x) * (H.T @ (p[:, None] * H) - np.outer(H.T @ p, H.T @ p))
        l = S @ z - 0.5 * H.T @ gradient
        T = np.eye(z.size) + S @ Q
        self.w += V @ np.linalg.solve(T, l - S @ m)
        self.P -= V @ np.linalg.solve(T, S) @ V.T
        return p

    def predict_then_learn(self, X: Array, y: np.ndarray) -> Array:
        return np.array([self.play_one(x, label) for x, label in zip(X, y.tolist(), strict=True)])
