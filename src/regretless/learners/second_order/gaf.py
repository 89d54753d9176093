"""GAF: the Gaussian aggregating forecaster for multiclass logistic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from regretless.core import validate
from regretless.core.errors import NoBound
from regretless.core.jit import kernel
from regretless.core.links import softmax
from regretless.core.setting import Setting
from regretless.core.tally import ROWS, record
from regretless.core.types import Array
from regretless.learners.second_order import panels
from regretless.learners.second_order.algebra import Work, distance, dot, trace, workspace
from regretless.learners.second_order.curvature import kappa
from regretless.learners.second_order.expectation import (
    fresh_points,
    over_points,
    sobol_points,
    three_classes,
    two_classes,
)
from regretless.learners.second_order.forecasts import solve_logits
from regretless.learners.second_order.learner import Constants, SurrogateClassifier
from regretless.learners.second_order.panels import coefficients, look_at, variance
from regretless.learners.second_order.rounding import MASS, ROOT, begin_root, charge, most_mass, note_jump, watch
from regretless.learners.second_order.surrogate import apply, apply_to_root, flush, fold, helmert, look, product, weigh
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition

QUADRATURE, SOBOL, MONTE_CARLO = range(3)
MOST_SAMPLES = 1 << 20
METHODS = {"quadrature": QUADRATURE, "sobol": SOBOL, "monte-carlo": MONTE_CARLO}


@dataclass(frozen=True)
class GAFConstants(Constants):
    """The numbers the kernels read: those of every surrogate classifier, then the expectation's."""

    method: int
    points: Array
    seed: int
    mu: float


class GAF(SurrogateClassifier):
    r"""Multiclass online logistic regression by aggregation: the softmax averaged over a Gaussian posterior.

    The quadratics of the past make a Gaussian over weights; the forecast is the mean of the softmax under it,

    .. math:: p = E\,\mathrm{softmax}(\omega), \quad \omega \sim N(m, Q/2), \quad
              m = \bar W x, \ Q = (I \otimes x)^T A^{-1} (I \otimes x),

    and the quadratic of a row is taken where the leader stands *after* its label,
    :math:`z = m - \tfrac12 Q (\mathrm{softmax}(z) - y)`, with :math:`\beta = 2\kappa`.

    **Guarantee.** For every :math:`|W|_F \le B`, if :math:`\lambda \ge 4 R^2 \max(4, dK)`: Theorem 1 of [GAF]_
    (`regretless.bounds.gaf`).
    `regret_certificate()` needs no such assumption, and holds whatever the expectation was computed with.

    Parameters
    ----------
    radius : B, the Frobenius norm of the weights to compete with. No intercept is added: append a constant column.
    regularization : lambda, the coefficient of :math:`|W|^2`.
    curvature : kappa of the quadratics: "sharp", "gaf", "aioli" (two classes), "folklore" (no proof) or a number.
    expectation : "quadrature" (two or three classes: exact to 1e-10 and 1e-8), "sobol" (the same scrambled Sobol
        points every round), "monte-carlo" (the text's: fresh draws every round), or "auto": quadrature where
        there is one, else sobol. Quadrature of three classes costs about ten times as much for features so large that
        the logits' deviations are beyond 5 or so.
    n_samples : points or draws a round.
    smoothing : mu of (1 - mu) p + mu / K, or "theory": the text's (K ln(n/delta) / n_samples)^(1/3), delta =
        1/n, at most
        1/2, which needs `horizon`.
    horizon : n, the number of rows to come; read by smoothing="theory" alone.
    random_state : seed of the points. Draws depend on it and on the round, so there is no generator to save.
    feature_bound : R. None lets each row use its own norm; a row beyond a given one is refused.
    precision : "double", or "single" to store P, nearly all of the memory and of the work, in float32. Forecasts then
        agree to about 1e-6, and the certificate is refused after a few hundred rows (docs/rounding.md).

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    state_ : `P` (the inverse of A), `w` (the leader), `tally` (rows, rows of weight not 1, loss, excess, largest
        norm and scale).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.utils import shuffle
    >>> from regretless import GAF
    >>> X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    >>> learner = GAF(radius=10.0, regularization=0.1)
    >>> p = learner.predict_then_learn(X - X.mean(axis=0), y, classes=[0, 1, 2])
    >>> print(f"{(p.argmax(axis=1) != y).mean():.3f}")
    0.207

    References
    ----------
    .. [GAF] Jézéquel, Gaillard and Rudi (2021), key `gaf` of REFERENCES.bib. Errata that matter here: docs/errata.md.
    """

    _constants: GAFConstants

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float = 1.0,
        curvature: str | float = "sharp",
        expectation: str = "auto",
        n_samples: int = 128,
        smoothing: float | str = 0.0,
        horizon: int | None = None,
        random_state: int = 0,
        feature_bound: float | None = None,
        precision: str = "double",
    ) -> None:
        self.radius = radius
        self.regularization = regularization
        self.curvature = curvature
        self.expectation = expectation
        self.n_samples = n_samples
        self.smoothing = smoothing
        self.horizon = horizon
        self.random_state = random_state
        self.feature_bound = feature_bound
        self.precision = precision

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"GAF": cls(radius=setting.radius)}

    @property
    def competes_with(self) -> Competition:
        """The best matrix in a Frobenius ball, under the log loss."""
        return Competition("softmax", Ball(self._radius))

    def regret_bound(self, n: int | None = None) -> float:
        """Theorem 1, with R the largest row so far (or `feature_bound`); for exact expectations."""
        theorem = self._theorem(n)
        if self._constants.method != QUADRATURE:
            raise NoBound(
                "the theorem is about exact expectations; with independent samples the text's Proposition 3 holds with "
                "high probability (regretless.bounds.gaf_sampled). "
                'expectation="quadrature" is exact for two and three classes.'
            )
        return bounds.gaf(**theorem, n_classes=self._n_classes, smoothing=self._constants.mu)

    def _prepare(self, n_features: int, n_classes: int) -> GAFConstants:
        shared = super()._prepare(n_features, n_classes)
        method, points, seed = self._prepare_sampling(n_classes)
        return GAFConstants(**vars(shared), method=method, points=points, seed=seed, mu=self._mu(n_classes))

    def _prepare_sampling(self, n_classes: int) -> tuple[int, Array, int]:
        """The method, its points and its seed."""
        method = self.expectation
        if method == "auto":
            method = "quadrature" if n_classes <= 3 else "sobol"
        if method not in METHODS:
            raise ValueError(f'expectation={method!r} is unknown: choose "auto" or one of {sorted(METHODS)}.')
        if method == "quadrature" and n_classes > 3:
            raise ValueError(
                f'expectation="quadrature" is for two or three classes and there are {n_classes}: use "sobol".'
            )
        if validate.whole("n_samples", self.n_samples, 1) > MOST_SAMPLES:
            raise ValueError(f"n_samples={self.n_samples}: more than {MOST_SAMPLES} a row would take too long.")
        validate.whole("random_state", self.random_state, 0)
        points = np.zeros((int(self.n_samples), n_classes - 1))
        if method == "sobol":
            points = sobol_points(int(self.n_samples), n_classes - 1, int(self.random_state))
        return METHODS[method], points, int(self.random_state)

    def _mu(self, n_classes: int) -> float:
        if self.smoothing == "theory":
            if self.horizon is None:
                raise ValueError('smoothing="theory" needs horizon, the number of rows to come.')
            n = validate.positive("horizon", self.horizon)
            # with K inside, as in the proof of Proposition 3 (its statement lost it: docs/errata.md); delta = 1/n
            return min(0.5, (n_classes * 2.0 * math.log(max(n, 2.0)) / self.n_samples) ** (1 / 3))
        if isinstance(self.smoothing, str):
            raise ValueError(f'smoothing={self.smoothing!r} must be "theory" or a number from 0 to 1.')
        mu = validate.positive("smoothing", self.smoothing, zero=True)
        if mu > 1.0:
            raise ValueError(f"smoothing={mu} must be at most 1.")
        return mu

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c, H = self._constants, helmert(self._n_classes)
        points = c.points.copy()  # fresh draws are written into it, and copies of a learner share its constants
        numbers = (H, c.regularization, c.radius, c.code, c.number, c.feature_bound, c.method, points, c.seed, c.mu)
        P, w, tally = self.state_

        def row_by_row(t: slice) -> None:
            run(P, w, tally, X[t], Y[t], weight[t], *numbers, out[t])

        def by_panel(t: slice, panel: panels.Panel) -> int:
            return run_panel(panel, tally, Y[t], weight[t], *numbers, out[t])

        panels.play(self.state_, X, row_by_row, by_panel)

    def _forecast(self, X: Array, out: Array) -> None:
        c = self._constants
        points = c.points.copy()  # as above
        forecast_block(*self.state_, X, helmert(self._n_classes), c.method, points, c.seed, c.mu, out)


@kernel
def forecast(work: Work, H: Array, method: int, points: Array, seed: int, round_: int, mu: float, log_p: Array) -> None:
    """log of (1 - mu) E softmax(N(m, Q/2)) + mu/K. (The text's Algorithm 1 prints Q for Q/2: docs/errata.md.)"""
    m, Q, Sigma = work.m, work.Q, work.S
    K = m.size
    for a in range(K):
        for b in range(K):
            Sigma[a, b] = 0.5 * Q[a, b]
    if method == QUADRATURE and K == 2:
        two_classes(m, Sigma, log_p)
    elif method == QUADRATURE:
        three_classes(m, Sigma, H, log_p)
    else:
        if method == MONTE_CARLO:
            fresh_points(seed, round_, points)
        over_points(m, Sigma, H, points, log_p)
    if mu > 0.0:
        for a in range(K):
            log_p[a] = math.log((1.0 - mu) * math.exp(log_p[a]) + mu / K)


@kernel
def after_label(work: Work, y: Array, weight: float) -> None:
    """Where the leader stands once the true loss of the row is added.

    z = m - (weight Q/2)(softmax(z) - y), and e = z - m up to a constant. (The text's Algorithm 1 uses the point
    before: docs/errata.md.)
    """
    m, e, z, p, Q, wQ = work.m, work.e, work.z, work.p, work.Q, work.S
    K = m.size
    for a in range(K):
        e[a] = m[a]
        for b in range(K):
            wQ[a, b] = weight * Q[a, b]
            e[a] += 0.5 * wQ[a, b] * y[b]
    solve_logits(e, wQ, z, p, work)
    distance(z, m, e)


@kernel
def meet(
    size: float,
    n_weights: int,
    tally: Array,
    y: Array,
    weight: float,
    lam: float,
    kap: float,
    digits: tuple[float, float, float],
    H: Array,
    method: int,
    points: Array,
    seed: int,
    mu: float,
    work: Work,
    log_p: Array,
) -> bool:
    """One row: forecast, see the label, suffer the loss, weigh its quadratic. False: see FOLKLORE's."""
    forecast(work, H, method, points, seed, int(tally[ROWS]), mu, log_p)
    if weight == 0.0:
        return True
    suffered = -dot(y, log_p)
    after_label(work, y, weight)
    at_point = softmax(work.z, work.p) - dot(y, work.z)
    growth, terms, mass, shift = weigh(y, kap, weight, size * size, lam, work)
    if tally[MASS] + mass > digits[0] or weight * kap * digits[2] > digits[1]:
        return False
    if tally[ROOT] != 0.0:
        note_jump(tally, n_weights, weight * kap * trace(work.Q), mass)
    record(tally, weight, weight * suffered, growth + weight * (suffered - at_point), size)
    charge(tally, mass, shift, weight * math.log(y.size) + terms)
    return True


@kernel
def run(
    P: Array,
    w: Array,
    tally: Array,
    X: Array,
    Y: Array,
    weight: Array,
    H: Array,
    lam: float,
    radius: float,
    code: int,
    number: float,
    feature_bound: float,
    method: int,
    points: Array,
    seed: int,
    mu: float,
    out: Array,
) -> None:
    """The game over a block."""
    K, r = H.shape
    V, U, work = np.empty((r, w.size)), np.zeros((r, w.size)), workspace(K)
    f, phi, root = np.empty(w.size), np.empty(w.size), tally[ROOT] != 0.0
    most = math.inf if root else most_mass(P)
    t = 0
    while t < X.shape[0]:
        if root:
            product(P, X[t], V)
        else:
            fold(P, U, X[t], V)
        size = look(V, w, X[t], H, root, work)
        kap = kappa(code, number, radius * (feature_bound if feature_bound > 0.0 else size), K)
        digits = (most, math.inf, 0.0)
        if not meet(size, w.size, tally, Y[t], weight[t], lam, kap, digits, H, method, points, seed, mu, work, out[t]):
            begin_root(P, tally)  # the last row's update is in it
            root, most = True, math.inf
            continue
        if weight[t] == 0.0:
            U[:] = 0.0
        elif root:
            apply_to_root(P, V, w, X[t], kap, weight[t], H, f, phi, work)
            watch(P, tally)
        else:
            apply(V, w, U, H, work)
        t += 1
    if not root:
        flush(P, U)


@kernel
def run_panel(
    panel: panels.Panel,
    tally: Array,
    Y: Array,
    weight: Array,
    H: Array,
    lam: float,
    radius: float,
    code: int,
    number: float,
    feature_bound: float,
    method: int,
    points: Array,
    seed: int,
    mu: float,
    out: Array,
) -> int:
    """The same in coefficients of a panel's rows; returns the rows played, which there are digits for."""
    K, r = H.shape
    C, work = np.empty((r, panel.omega.size)), workspace(K)
    for t in range(weight.size):
        coefficients(panel, t, C)
        size = look_at(panel, t, C, H, work)
        kap = kappa(code, number, radius * (feature_bound if feature_bound > 0.0 else size), K)
        digits = (panel.most_mass, panel.most_growth, variance(panel, t, r))
        if not meet(
            size, panel.size, tally, Y[t], weight[t], lam, kap, digits, H, method, points, seed, mu, work, out[t]
        ):
            return t
        if weight[t] != 0.0:
            apply(C, panel.omega, panel.U[t * r : (t + 1) * r], H, work)
    return weight.size


@kernel
def forecast_block(
    P: Array,
    w: Array,
    tally: Array,
    X: Array,
    H: Array,
    method: int,
    points: Array,
    seed: int,
    mu: float,
    out: Array,
) -> None:
    """The forecasts of a block of rows, all from the same state."""
    V, work = np.empty((H.shape[1], w.size)), workspace(H.shape[0])
    for t in range(X.shape[0]):
        product(P, X[t], V)
        look(V, w, X[t], H, tally[ROOT] != 0.0, work)
        forecast(work, H, method, points, seed, int(tally[ROWS]), mu, out[t])
