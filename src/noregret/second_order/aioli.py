"""AIOLI: binary online logistic regression, improper, with logarithmic regret and no e^B."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from noregret import bounds, validate
from noregret._jit import inlined_kernel, kernel
from noregret._types import Array
from noregret.domains import Ball, Competition
from noregret.second_order import panels
from noregret.second_order.curvature import kappa
from noregret.second_order.forecasts import solve_margin
from noregret.second_order.learner import Constants, SurrogateClassifier
from noregret.second_order.panels import coefficients, look_at_one
from noregret.second_order.surrogate import flush_one, fold_one, look_one, product_one
from noregret.tally import record


@dataclass(frozen=True)
class AIOLIConstants(Constants):
    """The numbers the kernels read."""

    virtual_weight: float


class AIOLI(SurrogateClassifier):
    r"""Binary online logistic regression that is almost as good as the best weights in a ball.

    The forecast at x is the margin :math:`u = \theta \cdot x` of the minimiser of the quadratics of the past
    plus *both* labels of x,

    .. math:: \lambda |\theta|^2 + \sum_s q_s(\theta) + a\,[\ell(\theta \cdot x, +1) + \ell(\theta \cdot x, -1)],

    which is one scalar equation, :math:`u + a \tfrac q2 \tanh \tfrac u2 = m` with :math:`m = \bar\theta \cdot x`,
    :math:`q = x^T A^{-1} x`. The virtual labels pull an uncertain forecast to the middle; this is what makes the
    forecast improper and the regret small. A row costs one product with :math:`A^{-1}` and one rank-one update.

    **Guarantee.** For every :math:`|\theta| \le B`, whatever the stream:
    :math:`\lambda B^2 + a \frac{d}{2\kappa}\ln(1 + \frac{\kappa n R^2}{4 d\lambda})` (Theorem 1 of [AIOLI]_;
    `noregret.bounds.aioli`), with R
    the largest :math:`|x|`. `regret_certificate()` is the same promise evaluated on the rows that came.

    Parameters
    ----------
    radius : B, the norm of the weights to compete with. No intercept is added: append a constant column.
    regularization : lambda, the coefficient of :math:`|\theta|^2`; None means 1 / radius**2.
    curvature : kappa of the quadratics: "sharp", "gaf", "aioli", "folklore" or a number.
    virtual_weight : a. 1 is the text's; 1/2 halves the worst-case bound (and is what FOLKLORE does at K = 2).
    feature_bound : R. None lets each row use its own norm; a number is the papers' constant, and a row
        beyond it is refused.
    precision : "double", or "single": P, nearly all of the memory and of the work, is then of float32, and forecasts
        agree to about 1e-6; all sums, the certificate's too, stay of float64.

    Attributes
    ----------
    classes_ : the two labels; the margin is that of the second.
    state_ : `P` (the inverse of A), `w` (the leader), `tally` (rows, rows of weight not 1, loss, excess, largest
        norm and scale).

    Examples
    --------
    >>> import numpy as np
    >>> from noregret import AIOLI
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> learner = AIOLI(radius=5.0)
    >>> p = learner.predict_then_learn(X, y)
    >>> print(f"{-np.log(np.where(y, p[:, 1], p[:, 0])).mean():.4f}")
    0.4560
    >>> print(f"regret <= {learner.regret_certificate():.1f} <= {learner.regret_bound():.1f}")
    regret <= 31.0 <= 158.3

    References
    ----------
    .. [AIOLI] Jézéquel, Gaillard and Rudi (2020), key `aioli` of REFERENCES.bib. Errata that matter here:
    docs/errata.md.
    """

    _binary_only = True
    _constants: AIOLIConstants
    _logits_per_weight: ClassVar[float] = 0.5

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float | None = None,
        curvature: str | float = "sharp",
        virtual_weight: float = 1.0,
        feature_bound: float | None = None,
        precision: str = "double",
    ) -> None:
        self.radius = radius
        self.regularization = regularization
        self.curvature = curvature
        self.virtual_weight = virtual_weight
        self.feature_bound = feature_bound
        self.precision = precision

    def _default_regularization(self, radius: float) -> float:
        return 1.0 / radius**2

    @property
    def competes_with(self) -> Competition:
        """The best weights in a ball, under the log loss."""
        return Competition("logistic", Ball(self._radius))

    def regret_bound(self, n: int | None = None) -> float:
        """Theorem 1, with R the largest row so far (or `feature_bound`)."""
        return bounds.aioli(**self._theorem(n), virtual_weight=self._constants.virtual_weight)

    def _prepare(self, n_features: int, n_classes: int) -> AIOLIConstants:
        shared = super()._prepare(n_features, n_classes)
        a = validate.positive("virtual_weight", self.virtual_weight, zero=True)
        return AIOLIConstants(**vars(shared), virtual_weight=a)

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c = self._constants
        numbers = (c.regularization, c.radius, c.code, c.number, c.feature_bound, c.virtual_weight)
        P, w, tally = self.state_
        if not panels.pays(w.size, X.shape[0]):
            run(P, w, tally, X, Y, weight, *numbers, out)
            return
        panels.play(P, w, X, 1, lambda t, panel: run_panel(panel, tally, Y[t], weight[t], *numbers, out[t]))

    def _forecast(self, X: Array, out: Array) -> None:
        c = self._constants
        forecast_block(*self.state_, X, c.regularization, c.virtual_weight, out)


@inlined_kernel
def forecast(m: float, q: float, a: float) -> tuple[float, float]:
    """The margin u and its sigmoid: u + a (q/2) tanh(u/2) = m, and u has the sign of m."""
    u, p = solve_margin(abs(m), 0.5 * a * q)
    return (u, p) if m >= 0.0 else (-u, 1.0 - p)


@kernel
def update(w: Array, v: Array, u: Array, q: float, a: float, p: float, y: float, kappa: float, weight: float) -> float:
    """Add the quadratic at the forecast; returns the growth of the excess.

    The machine in scalars, with e = (forecast margin) - m = -a q (2p - 1) / 2. (The text's b += (eta g.theta - 1) g
    is twice what its equation (5) gives: docs/errata.md.)
    """
    c = weight * kappa * p * (1.0 - p)
    g = weight * (p - y)
    e = -a * q * (p - 0.5)
    shrink = 1.0 / (1.0 + c * q)
    step = (c * e - 0.5 * g) * shrink
    root = math.sqrt(c * shrink)
    for i in range(w.size):
        w[i] += step * v[i]
        u[i] = root * v[i]
    return e * ((g - c * e) * shrink) + 0.25 * g * q * (g * shrink)


@kernel
def run(
    P: Array,
    w: Array,
    tally: Array,
    X: Array,
    Y: Array,
    weight: Array,
    lam: float,
    radius: float,
    code: int,
    number: float,
    feature_bound: float,
    a: float,
    out: Array,
) -> None:
    """The game over a block: forecast, see the label, suffer the loss, update."""
    v, u = np.empty(w.size), np.zeros(w.size)
    for t in range(X.shape[0]):
        fold_one(P, u, X, t, v)
        m, q, square = look_one(v, w, X, t, lam)
        size = math.sqrt(square)  # here, so that the processor works on kappa while it waits for the forecast
        kap = kappa(code, number, 0.5 * radius * (feature_bound if feature_bound > 0.0 else size), 2)
        margin, p = forecast(m, q, a)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
        if weight[t] == 0.0:
            u[:] = 0.0
            continue
        y = Y[t, 1]
        loss = max(margin, 0.0) - y * margin - math.log(max(p, 1.0 - p))
        growth = update(w, v, u, q, a, p, y, kap, weight[t])
        record(tally, weight[t], weight[t] * loss, growth, size)
    flush_one(P, u)


@kernel
def run_panel(
    panel: panels.Panel,
    tally: Array,
    Y: Array,
    weight: Array,
    lam: float,
    radius: float,
    code: int,
    number: float,
    feature_bound: float,
    a: float,
    out: Array,
) -> None:
    """The same in coefficients of a panel's rows.

    Written out a second time: a function that both loops call would cost `run` a third more at d = 20.
    """
    C = np.empty((1, panel.omega.size))
    for t in range(weight.size):
        coefficients(panel, t, C)
        c, w, u = C[0], panel.omega, panel.U[t]
        m, q, square = look_at_one(panel, t, c, lam)
        size = math.sqrt(square)
        kap = kappa(code, number, 0.5 * radius * (feature_bound if feature_bound > 0.0 else size), 2)
        margin, p = forecast(m, q, a)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
        if weight[t] == 0.0:
            continue
        y = Y[t, 1]
        loss = max(margin, 0.0) - y * margin - math.log(max(p, 1.0 - p))
        growth = update(w, c, u, q, a, p, y, kap, weight[t])
        record(tally, weight[t], weight[t] * loss, growth, size)


@kernel
def forecast_block(P: Array, w: Array, tally: Array, X: Array, lam: float, a: float, out: Array) -> None:
    """The forecasts of a block of rows, all from the same state."""
    v = np.empty(w.size)
    for t in range(X.shape[0]):
        product_one(P, X, t, v)
        m, q, _ = look_one(v, w, X, t, lam)
        margin, _ = forecast(m, q, a)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
