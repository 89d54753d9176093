"""FOLKLORE: multiclass online logistic regression, improper, soft labels included."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from regretless.core.jit import kernel
from regretless.core.links import softmax
from regretless.core.setting import Setting
from regretless.core.tally import record
from regretless.core.types import Array
from regretless.learners.second_order import panels
from regretless.learners.second_order.algebra import Work, distance, dot, trace, workspace
from regretless.learners.second_order.curvature import kappa
from regretless.learners.second_order.forecasts import solve_logits
from regretless.learners.second_order.learner import SurrogateClassifier
from regretless.learners.second_order.panels import coefficients, look_at, variance
from regretless.learners.second_order.rounding import MASS, ROOT, begin_root, charge, most_mass, note_jump, watch
from regretless.learners.second_order.surrogate import apply, apply_to_root, flush, fold, helmert, look, product, weigh
from regretless.theory import bounds
from regretless.theory.domains import Competition, RowBall


class FOLKLORE(SurrogateClassifier):
    r"""Multiclass online logistic regression that is almost as good as the best weights, one bounded row a class.

    With :math:`m = \bar W x` the forecast of the minimiser of the quadratics of the past and
    :math:`Q = (I \otimes x)^T A^{-1} (I \otimes x)` its uncertainty at x, the logits forecast solve

    .. math:: z = m + \tfrac14 \mathrm{diag}(Q) - \tfrac12 Q\,\mathrm{softmax}(z),

    K equations with one solution. Everything is kept in (K-1) d coordinates: a row costs one product and one
    rank-(K-1) update of that size.

    **Guarantee.** For every W whose rows have norm at most B:
    :math:`\lambda K B^2 + \frac{(K-1)d}{4\kappa} \ln(1 + 2\kappa n R^2/\lambda)` if
    :math:`\kappa R^2 \le \lambda/2` (Theorem 3 of [FOLKLORE]_
    with its lost factor 1/4 restored; `regretless.bounds.folklore`).

    Parameters
    ----------
    radius : B, the largest norm of a class's row of weights. No intercept is added: append a constant column.
    regularization : lambda, the coefficient of :math:`|W|^2`; None means 2 R / radius with R = `feature_bound`, or 1.
    curvature : kappa of the quadratics: "sharp", "gaf", "aioli" (two classes), "folklore" (the text's, which is
        false: no certificate) or a number.
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
    >>> from sklearn.datasets import load_digits
    >>> from regretless import FOLKLORE
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = FOLKLORE(radius=10.0)
    >>> p = learner.predict_then_learn(X / 64, y, classes=range(10))
    >>> print(f"{(p.argmax(axis=1) != y).mean():.3f}")
    0.078

    References
    ----------
    .. [FOLKLORE] Agarwal, Kale and Zimmert (2022), key `folklore` of REFERENCES.bib. Errata that matter here:
    docs/errata.md.
    """

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float | None = None,
        curvature: str | float = "sharp",
        feature_bound: float | None = None,
        precision: str = "double",
    ) -> None:
        self.radius = radius
        self.regularization = regularization
        self.curvature = curvature
        self.feature_bound = feature_bound
        self.precision = precision

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"FOLKLORE": cls(radius=setting.radius)}

    def _default_regularization(self, radius: float) -> float:
        return 2.0 * (1.0 if self.feature_bound is None else self.feature_bound) / radius

    @property
    def competes_with(self) -> Competition:
        """The best matrix whose rows lie in a ball, under the log loss."""
        return Competition("softmax", RowBall(self._radius))

    def regret_bound(self, n: int | None = None) -> float:
        """Theorem 3 corrected, with R the largest row so far (or `feature_bound`)."""
        return bounds.folklore(**self._theorem(n), n_classes=self._n_classes)

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c, H = self._constants, helmert(self._n_classes)
        numbers = (H, c.regularization, c.radius, c.code, c.number, c.feature_bound)
        P, w, tally = self.state_

        def row_by_row(t: slice) -> None:
            run(P, w, tally, X[t], Y[t], weight[t], *numbers, out[t])

        def by_panel(t: slice, panel: panels.Panel) -> int:
            return run_panel(panel, tally, Y[t], weight[t], *numbers, out[t])

        panels.play(self.state_, X, row_by_row, by_panel)

    def _forecast(self, X: Array, out: Array) -> None:
        forecast_block(*self.state_, X, helmert(self._n_classes), out)


@kernel
def forecast(work: Work, z: Array) -> None:
    """Logits z, p = softmax(z), and e = z - m up to a constant, which no Hessian sees."""
    m, e, p, Q = work.m, work.e, work.p, work.Q
    K = m.size
    for a in range(K):
        e[a] = m[a] + 0.25 * Q[a, a]
    solve_logits(e, Q, z, p, work)
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
    work: Work,
    z: Array,
) -> bool:
    """One row: forecast, see the label, suffer the loss, weigh its quadratic. False, with nothing counted, if there are
    too few `digits` for it: the largest mass, the largest growth of A, and the trace of Q that growth is measured by.
    """
    forecast(work, z)
    if weight == 0.0:
        return True
    loss = softmax(z, work.p) - dot(y, z)
    growth, terms, mass, shift = weigh(y, kap, weight, size * size, lam, work)
    if tally[MASS] + mass > digits[0] or weight * kap * digits[2] > digits[1]:
        return False
    if tally[ROOT] != 0.0:
        note_jump(tally, n_weights, weight * kap * trace(work.Q), mass)
    record(tally, weight, weight * loss, growth, size)
    charge(tally, mass, shift, weight * math.log(z.size) + terms)
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
        if not meet(size, w.size, tally, Y[t], weight[t], lam, kap, (most, math.inf, 0.0), work, out[t]):
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
        if not meet(size, panel.size, tally, Y[t], weight[t], lam, kap, digits, work, out[t]):
            return t
        if weight[t] != 0.0:
            apply(C, panel.omega, panel.U[t * r : (t + 1) * r], H, work)
    return weight.size


@kernel
def forecast_block(P: Array, w: Array, tally: Array, X: Array, H: Array, out: Array) -> None:
    """The forecasts of a block of rows, all from the same state."""
    V, work = np.empty((H.shape[1], w.size)), workspace(H.shape[0])
    for t in range(X.shape[0]):
        product(P, X[t], V)
        look(V, w, X[t], H, tally[ROOT] != 0.0, work)
        forecast(work, out[t])
