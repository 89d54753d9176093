"""The second-order machine in long numbers: A and b as plain sums of 80 digits, a fresh solve for every row."""

from __future__ import annotations

from decimal import Context, Decimal, localcontext

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, softmax

DIGITS = Context(prec=80)


def solve(A: list[list[Decimal]], B: list[list[Decimal]]) -> list[list[Decimal]]:
    """A^{-1} B by elimination, for A positive definite."""
    n, rows = len(A), [[*a, *b] for a, b in zip(A, B, strict=True)]
    for i in range(n):
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [mine - factor * theirs for mine, theirs in zip(rows[k], rows[i], strict=True)]
    for i in reversed(range(n)):
        rows[i] = [entry / rows[i][i] for entry in rows[i]]
        for k in range(i):
            factor = rows[k][i]
            rows[k] = [mine - factor * theirs for mine, theirs in zip(rows[k], rows[i], strict=True)]
    return [row[n:] for row in rows]


class LongMachine:
    """A = lam I + sum of S (x) x x^T and b, in 80 digits."""

    def __init__(self, size: int, lam: float) -> None:
        self.lam, self.A, self.b = lam, np.full((size, size), Decimal(0)), np.full(size, Decimal(0))
        for i in range(size):
            self.A[i, i] = Decimal(lam)

    def look(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """m and Q of a row, for r = size / d copies of it."""
        d = len(x)
        r = len(self.b) // d
        with localcontext(DIGITS):
            copies = np.full((len(self.b), r), Decimal(0))
            for k in range(r):
                copies[k * d : (k + 1) * d, k] = [Decimal(float(entry)) for entry in x]
            V = np.array(solve(self.A.tolist(), copies.tolist()), dtype=object)
            return (V.T @ self.b).astype(float), (copies.T @ V).astype(float)

    def add(self, x: np.ndarray, S: np.ndarray, pull: np.ndarray) -> None:
        """A += S (x) x x^T, b += pull (x) x."""
        with localcontext(DIGITS):
            long_x = np.array([Decimal(float(entry)) for entry in x], dtype=object)
            long_S = np.array([[Decimal(float(entry)) for entry in row] for row in np.atleast_2d(S)], dtype=object)
            self.A = self.A + np.kron(long_S, np.outer(long_x, long_x))
            self.b = self.b + np.kron(np.array([Decimal(float(entry)) for entry in pull], dtype=object), long_x)

    def minimum(self, constant: float) -> float:
        """constant - b A^{-1} b, the subtraction in long numbers."""
        with localcontext(DIGITS):
            w = solve(self.A.tolist(), [[entry] for entry in self.b])
            return float(Decimal(constant) - sum(mine * theirs[0] for mine, theirs in zip(self.b, w, strict=True)))


class LongVAW(LongMachine):
    """Vovk, Azoury and Warmuth's forecaster."""

    def __init__(self, size: int, lam: float = 1.0) -> None:
        super().__init__(size, lam)

    def forecast(self, x: np.ndarray) -> float:
        m, Q = self.look(x)
        return float(m[0] / (1 + Q[0, 0]))

    def learn(self, x: np.ndarray, y: float) -> None:
        self.add(x, np.ones((1, 1)), np.array([y]))


class LongAIOLI(LongMachine):
    """AIOLI with the sharp curvature: forecasts are the probability of the second class."""

    def __init__(self, size: int, radius: float, lam: float) -> None:
        super().__init__(size, lam)
        self.radius = radius

    def margin(self, x: np.ndarray) -> float:
        m, Q = self.look(x)
        top = abs(m[0]) + 1.0
        return brentq(lambda u: u + Q[0, 0] / 2 * np.tanh(u / 2) - m[0], -top, top, xtol=1e-15, rtol=1e-15)

    def forecast(self, x: np.ndarray) -> float:
        return float(expit(self.margin(x)))

    def learn(self, x: np.ndarray, y: int) -> None:
        u = self.margin(x)
        L = self.radius * np.linalg.norm(x)
        # W(e^(L-1)) is where W + ln W = L - 1
        W = brentq(lambda W: W + np.log(W) - (L - 1), 1e-12, L + 1, xtol=1e-15, rtol=1e-15)
        kappa = 1 / (2 + W)
        c, g = kappa * expit(u) * expit(-u), expit(u) - y
        self.add(x, np.array([[c]]), np.array([c * u - g / 2]))


class LongFOLKLORE(LongMachine):
    """FOLKLORE of K classes with a given curvature, in K - 1 reduced coordinates."""

    def __init__(self, n_features: int, n_classes: int, lam: float, kappa: float) -> None:
        super().__init__(n_features * (n_classes - 1), lam)
        basis, _ = np.linalg.qr(np.eye(n_classes) - 1 / n_classes)
        self.H, self.kappa = basis[:, : n_classes - 1], kappa

    def logits(self, x: np.ndarray) -> np.ndarray:
        m, Q = self.look(x)
        m, Q = self.H @ m, self.H @ Q @ self.H.T
        # the optimality condition of z = m + diag(Q)/4 - Q softmax(z)/2 in r unknowns, z = m + Q s
        z = m
        for heat in [*np.geomspace(max(1.0, np.abs(Q).max(), np.abs(m).max()), 1.0, 120), *[1.0] * 20]:
            p = softmax(z / heat)
            rest = z - m - np.diag(Q) / 4 + Q @ p / 2
            slope = np.eye(len(z)) + Q @ (np.diag(p) - np.outer(p, p)) / (2 * heat)
            z = z - np.linalg.solve(slope, rest)
        return z

    def forecast(self, x: np.ndarray) -> np.ndarray:
        return softmax(self.logits(x))

    def learn(self, x: np.ndarray, y: int) -> None:
        z = self.logits(x)
        p = softmax(z)
        S = self.kappa * (np.diag(p) - np.outer(p, p))
        g = p - (np.arange(len(p)) == y)
        self.add(x, self.H.T @ S @ self.H, self.H.T @ (S @ z - g / 2))
