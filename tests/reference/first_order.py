"""Perceptron, gradient descent and linearised FTRL, from their definitions (ogd-notes; McMahan 2013 for the last).

A row x has a weight c, r scores z = W x (r = 1 for two classes and for numbers, else one a class), a slope s of the
loss at z and the gradient g = s x^T. By convexity every comparator U obeys

    sum c (loss(W x) - loss(U x)) <= sum c s.z - <sum c g, U>   (the linear certificate).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from .losses import loss_and_slope
from .newton import Array, Long, long, norm


def scores(W: Array, x: ArrayLike) -> Array:
    """W x, each row summed in the same order: equal rows tie exactly."""
    return np.sum(W * long(x), axis=1)


def into_ball(W: Array, radius: float | None) -> Array:
    """The nearest matrix of Frobenius norm at most `radius`."""
    return W if radius is None or norm(W) <= radius else W * (radius / norm(W))


class FirstOrder:
    """The game: forecast, suffer, take the gradient at the weights played. What differs is `learn`.

    loss : sum of c times the loss of the forecasts; gradients : sum of c g; excess : sum of c s.z; t : rows of c > 0.
    """

    def __init__(self, loss: str, n_classes: int, d: int) -> None:
        self.name = loss
        self.W = np.zeros((n_classes if n_classes > 2 else 1, d), dtype=Long)
        self.gradients = np.zeros_like(self.W)
        self.loss = self.excess = Long(0)
        self.t = 0

    def forecast_weights(self) -> Array:
        """The weights that forecast; the gradient is taken at W."""
        return self.W

    def forecast(self, x: ArrayLike) -> np.ndarray:
        """The r scores of a row."""
        return scores(self.forecast_weights(), x).astype(float)

    def update(self, x: ArrayLike, y: ArrayLike, c: float = 1.0) -> None:
        """Suffer c times the loss under the label y, and learn."""
        if c == 0:
            return
        self.t += 1
        z = scores(self.W, x)
        played, s = loss_and_slope(self.name, z, y)
        suffered, _ = loss_and_slope(self.name, scores(self.forecast_weights(), x), y)
        self.loss += c * suffered
        # Where the weights that forecast are not the ones played, the difference of their losses is no one's gradient.
        self.excess += c * (np.sum(s * z) + suffered - played)
        step = c * np.outer(s, long(x))
        self.gradients = self.gradients + step
        self.learn(step, Long(c))

    def learn(self, g: Array, c: np.longdouble) -> None:
        """Move W, given c times the gradient at it."""
        raise NotImplementedError

    def linear_certificate(self, largest: float | np.longdouble) -> float:
        """The linear certificate, given the largest -<gradients, U> over the comparators."""
        return float(self.excess + largest)

    def ball_certificate(self, comparator_norm: float) -> float:
        """... over all |U| <= comparator_norm."""
        return self.linear_certificate(comparator_norm * norm(self.gradients))

    def box_certificate(self, radius: float) -> float:
        """... over all U with entries of at most `radius`."""
        return self.linear_certificate(radius * np.sum(np.abs(self.gradients)))


class ReferencePerceptron(FirstOrder):
    """W += c y x on a mistake (y z <= 0); more classes: W_k += c x, W_rival -= c x when some rival scores as high.

    `loss` is the (weighted) number of mistakes.
    """

    def __init__(self, n_classes: int, d: int) -> None:
        super().__init__("multiclass mistake" if n_classes > 2 else "mistake", n_classes, d)

    def learn(self, g: Array, c: np.longdouble) -> None:
        self.W = self.W - g

    def certificate(self, comparator_norm: float) -> float:
        """Mistakes - hinge loss of U <= <W, U> <= |U| |W|."""
        return float(comparator_norm * norm(self.W))


class ReferenceOGD(FirstOrder):
    """W <- ball(W - eta_t c g).

    step : ("theory", G): eta_t = sqrt(2) radius / (G sqrt t), with G the largest c |g| so far where it is None;
    ("constant", eta); ("inverse root", eta): eta / sqrt t; ("inverse time", sigma): 1 / (sigma t);
    ("adagrad norm", eta): eta over the root of the sum of c^2 |g|^2 so far.
    """

    def __init__(self, loss: str, n_classes: int, d: int, radius: float | None, step: tuple[str, float | None]) -> None:
        super().__init__(loss, n_classes, d)
        self.radius, self.step = radius, step
        self.sizes: list[np.longdouble] = []

    def rate(self) -> np.longdouble:
        """eta_t, from the norms of all gradients."""
        kind, number = self.step
        if kind == "theory":
            G = max(self.sizes) if number is None else Long(number)
            return np.sqrt(Long(2)) * self.radius / (G * np.sqrt(Long(self.t))) if G > 0 else Long(0)
        if kind == "adagrad norm":
            squares = sum(size**2 for size in self.sizes)
            return number / np.sqrt(squares) if squares > 0 else Long(0)
        assert number is not None
        return {
            "constant": Long(number),
            "inverse root": number / np.sqrt(Long(self.t)),
            "inverse time": 1 / (Long(number) * self.t),
        }[kind]

    def learn(self, g: Array, c: np.longdouble) -> None:
        self.sizes.append(norm(g))
        self.W = into_ball(self.W - self.rate() * g, self.radius)


class ReferenceStronglyConvexOGD(FirstOrder):
    """Gradient descent on c (loss + (lam/2) |W|^2), S = sigma + lam, with the step 1 / (S (c_1 + ... + c_t)).

    certificate : sum of c^2 |g + lam W|^2 / (2 S (c_1 + ... + c_t)) >= the regret in the regularised losses.
    """

    def __init__(
        self, loss: str, n_classes: int, d: int, lam: float, sigma: float = 0.0, radius: float | None = None
    ) -> None:
        super().__init__(loss, n_classes, d)
        self.lam, self.strength, self.radius = Long(lam), Long(sigma) + Long(lam), radius
        self.weights: list[np.longdouble] = []
        self.certificate = Long(0)

    def learn(self, g: Array, c: np.longdouble) -> None:
        self.weights.append(c)
        step = 1 / (self.strength * sum(self.weights))
        h = g + c * self.lam * self.W
        self.certificate += step * norm(h) ** 2 / 2
        self.W = into_ball(self.W - step * h, self.radius)


class ReferenceFTRL(FirstOrder):
    """Per coordinate, with g_1 ... g_t the weighted gradients at the past weights w_1 ... w_t:

    w_{t+1} = argmin over |w| <= radius of
        sum_s [g_s w + (sigma_s / 2) (w - w_s)^2] + (beta / (2 alpha)) w^2 + l1 |w| + (l2 / 2) w^2,

    sigma_s = (sqrt(g_1^2 + ... + g_s^2) - sqrt(g_1^2 + ... + g_{s-1}^2)) / alpha. All of the past is kept.
    """

    def __init__(
        self,
        loss: str,
        n_classes: int,
        d: int,
        alpha: float,
        beta: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        radius: float | None = None,
    ) -> None:
        super().__init__(loss, n_classes, d)
        self.alpha, self.ridge = Long(alpha), Long(beta) / Long(alpha) + Long(l2)
        self.l1, self.radius = Long(l1), radius
        self.past: list[tuple[Array, Array]] = []  # (g_s, w_s), entry by entry

    def minimise(self, g: Array, w: Array) -> np.longdouble:
        """The minimiser for one coordinate, given its past gradients and weights."""
        roots = np.sqrt(np.concatenate([[Long(0)], np.cumsum(g * g)]))
        sigma = np.diff(roots) / self.alpha

        def slope(v: np.longdouble, sign: int) -> np.longdouble:
            """The objective's derivative at v, seen from the side `sign` of 0 (a kink only there)."""
            return np.sum(g + sigma * (v - w)) + self.ridge * v + self.l1 * sign

        best = Long(0)
        for sign in (1, -1):
            if slope(Long(0), sign) * sign < 0:  # the objective falls away from 0: the minimum is on this side
                curvature = slope(Long(1), sign) - slope(Long(0), sign)  # of a quadratic
                best = -slope(Long(0), sign) / curvature
        return best if self.radius is None else np.clip(best, -Long(self.radius), Long(self.radius))

    def learn(self, g: Array, c: np.longdouble) -> None:
        self.past.append((g, self.W))
        gs, ws = (np.array(each) for each in zip(*self.past, strict=True))
        self.W = np.array(
            [[self.minimise(gs[:, i, j], ws[:, i, j]) for j in range(g.shape[1])] for i in range(g.shape[0])]
        )
