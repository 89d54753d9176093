"""SampleMinmaxPredictor: one refit per class for every new row, and probabilities in proportion."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from regretless.core.errors import NoBound
from regretless.core.kernels.copying import copy_line, copy_lines
from regretless.core.kernels.jit import kernel
from regretless.core.numbers.links import sigmoid, softmax, to_probabilities
from regretless.core.rows import validate
from regretless.core.rows.labels import Labels
from regretless.core.scikit_learn import ClassifierMixin, _num_samples, check_is_fitted
from regretless.core.types import Array
from regretless.learners.batch.rows import BatchPredictor
from regretless.learners.refitting.ftrl import expand, factor, loss_of, refit, scores, solve
from regretless.learners.second_order.algebra import (
    add_identity_and_factor,
    backward,
    congruence,
    dot,
    forward,
    hessian_factor,
    norm,
)
from regretless.theory import bounds
from regretless.theory.losses import LOGISTIC, SOFTMAX

SETTLED = 1e-11  # steps halve at least, so that later ones would move no score by more than this
MOST_STEPS = 40


class Sample(NamedTuple):
    """The fitted rows, and an empty place for a new row with its label as the last one."""

    X: Array  # (n + 1, d)
    Y: Array  # (n + 1, K)
    weight: Array  # (n + 1,); the last is 1


class Leader(NamedTuple):
    """The best regularized weights of the n fitted rows, where every refit starts."""

    w: Array  # (r, d): r = 1 for two classes (the margin of the second), r = K for more
    Z: Array  # (n + 1, r): the scores of the rows; the last is empty
    g: Array  # (r d,): the gradient, 0 inside the ball
    L: Array  # (r d, r d): the Cholesky factor of the Hessian divided by 2 regularization


class SampleMinmaxPredictor(ClassifierMixin, BatchPredictor):
    r"""Logistic regression that hedges every forecast against each possible label (SMP).

    **Choose it when** you have few rows, all at once, and want logistic regression that is less sure far from the data,
    with a bound on its risk.

    For a new row x and every class y, the regularized weights are refitted with (x, y) added to the n fitted rows:

    .. math:: w_y = \arg\min_w \sum_{i \le n} \ell_i(w) + \ell(w; x, y) + \lambda|w|^2, \qquad
              p(y \mid x) \propto \mathrm{softmax}(w_y x)_y \, e^{-\lambda|w_y|^2/(n+1)}.

    A row unlike the fitted ones moves its refits far, in the direction of each label, and its probabilities move
    towards uniform: they are calibrated without a posterior. The forecast is improper, not of the form softmax(w x),
    and must be: predictors of that form may have excess risk :math:`\min(BR/\sqrt n, de^{BR}/n)` ([SMP]_). Two
    classes use the weights w of the margin, more classes one row of weights per class.

    Refits start from the fitted weights, with a Newton step whose Hessian is that of the fitted rows plus the new row.
    Later steps keep the fitted rows' Hessian, and end when no score moves by more than 1e-11; a few are enough, because
    one row among many changes the Hessian little. A refit that does not settle, or that leaves the ball, is replaced by
    damped Newton steps. A step of a refit costs O(n d r) and :math:`O((rd)^2)`, with r = 1 for two classes and r = K
    for more; a new row takes K refits, usually of four steps. All rows of a call are forecast in one compiled loop.

    **Guarantee.** For independent rows of one distribution, :math:`|x| \le R`, the expected excess risk over all
    :math:`|w| \le B` is at most :math:`(B^2R^2 + (e-1)d)/(n+1)` for two classes and :math:`\lambda = R^2`: no
    logarithm of n and no exponential of B (`regretless.bounds.sample_minmax`, for every :math:`\lambda` and number of
    classes). `excess_risk_bound()` is this number.

    Parameters
    ----------
    regularization : lambda, the coefficient of :math:`|w|^2`; None means :math:`R^2` for two classes and
        :math:`2R^2` for more, with R as for `feature_bound`. No intercept is added: append a constant column.
    radius : the radius of a ball that contains all refitted weights; None means no ball.
    feature_bound : R; a row with a larger norm is rejected. None means the largest norm of the fitted rows.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    coef_ : the regularized weights of the fitted rows: (1, d) for two classes, (K, d) for more.
    regularization_ : lambda.
    feature_bound_ : R.
    n_rows_ : the number of fitted rows (the sum of their weights).
    n_features_in_ : the number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import SampleMinmaxPredictor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> model = SampleMinmaxPredictor(regularization=2.0, feature_bound=2.2).fit(X[:1000], y[:1000])
    >>> p = model.predict_proba(X[1000:])
    >>> print(f"{-np.log(np.where(y[1000:], p[:, 1], p[:, 0])).mean():.4f}")
    0.4638
    >>> print(f"expected excess risk <= {model.excess_risk_bound(comparator_norm=5.0):.4f}")
    expected excess risk <= 0.0708
    >>> print(f"estimated from new rows: {model.excess_risk_estimate(X[1000:], comparator_norm=5.0):.4f}")
    estimated from new rows: 0.0241

    References
    ----------
    .. [SMP] Mourtada and Gaïffas (2022), key `smp` of REFERENCES.bib.
    """

    classes_: np.ndarray
    coef_: Array
    regularization_: float
    feature_bound_: float
    n_rows_: float
    n_features_in_: int
    _sample: Sample
    _leader: Leader
    _radius: float
    _even: bool  # whether all weights are 0 or 1

    def __init__(
        self,
        regularization: float | None = None,
        radius: float | None = None,
        feature_bound: float | None = None,
    ) -> None:
        self.regularization = regularization
        self.radius = radius
        self.feature_bound = feature_bound

    # ------------------------------------------------------------------ fitting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the regularized weights of the rows. An error changes nothing."""
        return self._all_or_nothing(self._fit, X, y, sample_weight)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        radius = math.inf if self.radius is None else validate.positive("radius", self.radius)
        declared = math.inf if self.feature_bound is None else validate.positive("feature_bound", self.feature_bound)
        if self.regularization is not None:
            validate.positive("regularization", self.regularization)
        X = self._rows(X, reset=True)
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None: pass one label per row.")
        if _num_samples(y) != X.shape[0]:
            raise ValueError(f"X has {X.shape[0]} rows and y has {_num_samples(y)} labels: pass one label per row.")
        labels = Labels.of(y, None)
        Y, weight = labels.distributions(y), validate.weights(sample_weight, X.shape[0])
        if not np.all((Y == 0.0) | (Y == 1.0)):
            raise ValueError("y has label probabilities: a refit adds one certain label. Pass one label per row.")
        self._check(X, weight, declared)
        X, Y, weight = X[weight > 0], Y[weight > 0], weight[weight > 0]
        if weight.size == 0:
            raise ValueError("all weights are zero: at least one row must have a weight above 0.")
        R = math.sqrt(float(validate.largest_square(X))) if math.isinf(declared) else declared
        K = labels.classes.size
        lam = (R * R if K == 2 else 2 * R * R) or 1.0 if self.regularization is None else float(self.regularization)
        sample = Sample(np.pad(X, ((0, 1), (0, 0))), np.pad(Y, ((0, 1), (0, 0))), np.append(weight, 1.0))
        w = np.zeros((1 if K == 2 else K, X.shape[1]))
        refit(X, Y, weight, w, lam, radius)
        g, L = np.empty(w.size), np.empty((w.size, w.size))
        expand(X, Y, weight, w, lam, g, L)
        factor(L)
        self._sample, self._leader = sample, Leader(w, sample.X @ w.T, g, L)
        self.classes_, self.coef_ = labels.classes, w
        self.regularization_, self.feature_bound_, self._radius = lam, R, radius
        self.n_rows_, self._even = float(weight.sum()), bool(np.all(weight == 1.0))

    # ------------------------------------------------------------------ forecasts

    def _hedges(self, X: Any) -> Array:
        """(m, K): the logarithm of each class's probability after the refit with that class, less the penalty."""
        check_is_fitted(self, "coef_")
        X = self._rows(X, reset=False)
        self._check(X, np.ones(1), math.inf if self.feature_bound is None else self.feature_bound_)
        out = np.empty((X.shape[0], self.classes_.size))
        numbers = (self.regularization_, self._radius, self.regularization_ / (self.n_rows_ + 1))

        def hedge(part: slice) -> None:
            hedge_block(self._sample, self._leader, X[part], numbers, out[part])

        self._forecast_in_parts(X.shape[0], hedge)
        return out

    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, K), columns in the order of `classes_`."""
        out = self._hedges(X)
        to_probabilities(out)
        return out

    def decision_function(self, X: Any) -> Array:
        """The log odds (n,) of the second class for two classes, else logits (n, K)."""
        out = self._hedges(X)
        return out[:, 1] - out[:, 0] if self.classes_.size == 2 else out

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of each row."""
        winners = np.argmax(self._hedges(X), axis=1)
        return self.classes_[winners]

    # ------------------------------------------------------------------ guarantee

    def _norm(self, comparator_norm: float | None) -> float:
        check_is_fitted(self, "coef_")
        if comparator_norm is None and math.isinf(self._radius):
            raise NoBound("the bound grows with the comparator's norm: pass comparator_norm.")
        if not self._even:
            raise NoBound("the theorem is for rows of weight 1, drawn independently: fit without sample_weight.")
        return validate.comparator_norm(comparator_norm, f"the ball of radius {self._radius}", self._radius, NoBound)

    def excess_risk_bound(self, comparator_norm: float | None = None) -> float:
        """An upper bound on the expected excess risk over weights of this norm (default: `radius`), for i.i.d. rows.

        With R = `feature_bound`; if it was not declared, the largest norm so far, which new rows must not exceed.
        """
        return bounds.sample_minmax(
            round(self.n_rows_),
            n_features=self.n_features_in_,
            n_classes=self.classes_.size,
            comparator_norm=self._norm(comparator_norm),
            feature_bound=self.feature_bound_,
            regularization=self.regularization_,
        )

    def excess_risk_estimate(self, X: Any, comparator_norm: float | None = None) -> float:
        r"""An estimate of the expected excess risk's upper bound, from new rows without labels.

        :math:`\lambda|u|^2/(n+1)` plus the mean over the rows of
        :math:`\ln \sum_y \mathrm{softmax}(w_yx)_y e^{-\lambda|w_y|^2/(n+1)}`. Its expectation, over the fitted and the
        new rows, is at least the expected excess risk, without any assumption on R; it is usually far below
        `excess_risk_bound()`.
        """
        size = self._norm(comparator_norm)
        return self.regularization_ * size**2 / (self.n_rows_ + 1) + float(logsumexp(self._hedges(X), axis=1).mean())


@kernel
def slopes(z: Array, y: Array, s: Array) -> None:
    """s: the derivatives of the log loss in the scores z."""
    if z.size == 1:
        s[0] = sigmoid(z[0]) - y[1]
        return
    softmax(z, s)
    for k in range(z.size):
        s[k] -= y[k]


@kernel
def gradient(sample: Sample, Z: Array, W: Array, lam: float, g: Array) -> None:
    """The gradient at W, with scores Z, of all rows and the penalty."""
    X, Y, weight = sample
    r, d = W.shape
    s = np.empty(r)
    for k in range(r):
        for j in range(d):
            g[k * d + j] = 2.0 * lam * W[k, j]
    for i in range(X.shape[0]):
        slopes(Z[i], Y[i], s)
        for k in range(r):
            slope = weight[i] * s[k]
            for j in range(d):
                g[k * d + j] += slope * X[i, j]


@kernel
def directions(L: Array, x: Array, r: int, lam: float) -> tuple[Array, Array]:
    """V, whose row k is the inverse Hessian times the new row in the place of class k, and its products with x."""
    d = x.size
    V, Q = np.zeros((r, r * d)), np.empty((r, r))
    for k in range(r):
        for j in range(d):
            V[k, k * d + j] = x[j] / (2.0 * lam)
        solve(L, V[k])
        for l in range(r):
            Q[l, k] = dot(V[k, l * d : (l + 1) * d], x)
    return V, Q


@kernel
def newton_step(L: Array, g: Array, lam: float, x: Array, z: Array, V: Array, Q: Array) -> Array:
    """-(H + S (x) x x^T)^{-1} g with H the fitted rows' Hessian, and S = F F^T the new row's in its scores z."""
    r, d = z.size, x.size
    rank = max(r - 1, 1)
    step, along = np.empty(g.size), np.empty(r)
    F, FQ, M = np.empty((r, rank)), np.empty((rank, r)), np.empty((rank, rank))
    for j in range(g.size):
        step[j] = -g[j] / (2.0 * lam)
    solve(L, step)
    if r == 1:
        F[0, 0] = math.sqrt(sigmoid(z[0]) * sigmoid(-z[0]))
    else:
        softmax(z, along)
        hessian_factor(along, 1.0, F)
    congruence(F, Q, 1.0, FQ, M)
    add_identity_and_factor(M)
    for k in range(r):
        along[k] = dot(step[k * d : (k + 1) * d], x)
    back = np.zeros(rank)
    for i in range(rank):
        for k in range(r):
            back[i] += F[k, i] * along[k]
    forward(M, back)  # Woodbury
    backward(M, back)
    for k in range(r):
        length = dot(F[k], back)
        for j in range(g.size):
            step[j] -= length * V[k, j]
    return step


@kernel
def advance(X: Array, D: Array, Z: Array) -> float:
    """Z += X D^T; returns the largest change of the difference of two logits of a row."""
    r = D.shape[0]
    z = np.empty(r)
    widest = 0.0
    for i in range(X.shape[0]):
        scores(D, X[i], z)
        low, high = (0.0, 0.0) if r == 1 else (z[0], z[0])
        for k in range(r):
            Z[i, k] += z[k]
            low, high = min(low, z[k]), max(high, z[k])
        if not high - low <= widest:  # also NaN
            widest = high - low
    return widest


@kernel
def settle(sample: Sample, leader: Leader, lam: float, V: Array, Q: Array, Z: Array, W: Array) -> bool:
    """Move W from the leader to the minimum with the new row, by steps that keep the fitted rows' Hessian.

    False if the steps do not halve.
    """
    X, Y, _ = sample
    r, d = W.shape
    last = X.shape[0] - 1
    s, g = np.empty(r), leader.g.copy()
    slopes(Z[last], Y[last], s)
    for k in range(r):
        for j in range(d):
            g[k * d + j] += s[k] * X[last, j]
    before = math.inf
    for _ in range(MOST_STEPS):
        step = newton_step(leader.L, g, lam, X[last], Z[last], V, Q).reshape((r, d))
        moved = advance(X, step, Z)
        W += step
        if moved <= SETTLED:
            return True
        if not moved <= 0.5 * before:
            return False
        before = moved
        gradient(sample, Z, W, lam, g)
    return False


@kernel
def hedge_block(fitted: Sample, leader: Leader, X: Array, numbers: tuple[float, float, float], out: Array) -> None:
    """For every row and class: the log probability of the class after the refit with it, less the penalty per row."""
    lam, radius, share = numbers
    sample = Sample(fitted.X.copy(), fitted.Y.copy(), fitted.weight)
    Z, W = leader.Z.copy(), leader.w.copy()
    last, r = Z.shape[0] - 1, W.shape[0]
    for t in range(X.shape[0]):
        x = sample.X[last]
        copy_line(X[t], x)
        V, Q = directions(leader.L, x, r, lam)
        for y in range(out.shape[1]):
            label = sample.Y[last]
            label[:] = 0.0
            label[y] = 1.0
            copy_lines(leader.w, W)
            copy_lines(leader.Z, Z)
            scores(W, x, Z[last])
            if not settle(sample, leader, lam, V, Q, Z, W) or not norm(W.reshape(-1)) <= radius:
                copy_lines(leader.w, W)
                refit(sample.X, sample.Y, sample.weight, W, lam, radius)
            flat = W.reshape(-1)
            out[t, y] = -loss_of(LOGISTIC if r == 1 else SOFTMAX, W, x, label) - share * dot(flat, flat)
