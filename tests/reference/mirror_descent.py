"""Mirror descent with averaging (mda), lazy and eager, and the schedules of its bounds."""

from __future__ import annotations

import math

import numpy as np

from .first_order import FirstOrder
from .mirror import ReferenceMirror
from .newton import Array, Long, long, norm


class ReferenceMirrorDescent(FirstOrder):
    """Theta = W row by row, u_t = c g. Theta_0 = argmin V.

    lazy (11): zeta += gamma_t u_t, theta_t = argmin zeta.theta + beta_t V;
    eager (22): theta_t = argmin (gamma_t / beta_t) u_t.theta + D_V(theta, theta_{t-1}).
    averaging: the weights of the forecast are the mean of theta_0 ... theta_t weighted by gamma_1 ... gamma_{t+1}.
    schedule : ("constant", eta), ("inverse root", eta), ("inverse time", sigma): gamma_t, and beta_t = 1;
    ("growing", beta_0): beta_t = beta_0 sqrt(t + 1) (17); ("horizon", beta, T): beta sqrt(T) (37); gamma_t = 1.
    """

    def __init__(
        self,
        loss: str,
        n_classes: int,
        d: int,
        *,
        proxy: str,
        domain: str,
        size: float = 1.0,
        schedule: tuple,
        lazy: bool = True,
        averaging: bool = False,
    ) -> None:
        super().__init__(loss, n_classes, d)
        self.mirror = ReferenceMirror(proxy, domain, self.W.size, size)
        self.schedule, self.lazy, self.averaging = schedule, lazy, averaging
        self.duals: list[Array] = []  # gamma_t u_t, in the mirror's points
        self.thetas = [self.mirror.start]
        self._read()

    def _read(self) -> None:
        self.W = self.mirror.fold(self.thetas[-1]).reshape(self.W.shape)

    def gamma(self, t: int) -> np.longdouble:
        kind, number = self.schedule[:2]
        if kind == "inverse root":
            return number / np.sqrt(Long(t))
        return {"constant": Long(number), "inverse time": 1 / (Long(number) * t)}.get(kind, Long(1))

    def beta(self, t: int) -> np.longdouble:
        kind, number, *horizon = self.schedule
        if kind == "growing":
            return number * np.sqrt(Long(t + 1))
        return number * np.sqrt(Long(horizon[0])) if horizon else Long(1)

    def average(self) -> Array:
        """The mean of theta_0 ... theta_t."""
        gammas = long([self.gamma(i + 1) for i in range(len(self.thetas))])
        mean = sum(gamma * theta for gamma, theta in zip(gammas, self.thetas, strict=True)) / np.sum(gammas)
        return self.mirror.fold(mean)

    def forecast_weights(self) -> Array:
        return self.average().reshape(self.W.shape) if self.averaging else self.W

    def learn(self, g: Array, c: np.longdouble) -> None:
        u, gamma, beta = self.mirror.lift(g.ravel()), self.gamma(self.t), self.beta(self.t)
        if self.lazy:
            self.duals.append(gamma * u)
            theta = self.mirror.minimise(np.sum(self.duals, axis=0), beta)
        else:
            theta = self.mirror.minimise(gamma / beta * u - self.mirror.gradient(self.thetas[-1]), 1)
        self.thetas.append(theta)
        self._read()

    def certificate(self, comparator_norm: float | None = None) -> float:
        """The linear certificate over the set, or over the l2 ball of that norm."""
        G, lam = self.gradients, self.mirror.lam
        if comparator_norm is not None:
            return self.ball_certificate(comparator_norm)
        largest = {
            "ball": lambda: lam * norm(G),
            "box": lambda: lam * np.sum(np.abs(G)),
            "simplex": lambda: -lam * np.min(G),
            "subsimplex": lambda: lam * max(-np.min(G), Long(0)),
            "octahedron": lambda: lam * np.max(np.abs(G)),
        }[self.mirror.domain]()
        return self.linear_certificate(largest)


def theory_schedule(mirror: ReferenceMirror, gradient: float, horizon: int | None = None) -> tuple:
    """The schedule of the bounds for gradients of dual norm at most `gradient`: beta_0 = L / sqrt(alpha V*), (18);
    with a horizon beta = L / sqrt(2 alpha V*), (37)."""
    product = mirror.strong_convexity * mirror.spread
    if horizon is None:
        return ("growing", gradient / math.sqrt(product))
    return ("horizon", gradient / math.sqrt(2 * product), horizon)


def largest_slope(loss: str, bound: float, lam: float) -> float:
    """L = K sup |phi'| over |u| <= K lam, for base functions of at most K = `bound`; squared: targets up to K lam."""
    C = bound * lam
    slopes: dict[str, float] = {
        "hinge": 1.0,
        "absolute": 1.0,
        "logistic": 1 / (1 + math.exp(-C)),
        "logit": 1 / (1 + math.exp(-C)) / math.log(2),
        "exponential": math.exp(C),
        "squared": 2 * (2 * C),
    }
    return bound * slopes[loss]
