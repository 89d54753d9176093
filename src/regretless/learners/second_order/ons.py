"""ONS: Online Newton Step with exact projections."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.effects import from_logits
from regretless.core.errors import NoBound, NoCertificate
from regretless.core.files import state_checks
from regretless.core.interrupts import listen, uninterrupted
from regretless.core.kernels.jit import kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.kernels.products import multiply, one_thread_per_product
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.links import softmax
from regretless.core.numbers.tally import EXCESS, ROWS, WIDEST, record, require_unit_weights
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.second_order import panels
from regretless.learners.second_order.algebra import dot, norm
from regretless.learners.second_order.projection import project
from regretless.learners.second_order.roots import shrink
from regretless.learners.second_order.rounding import (
    MASS,
    ROOT,
    SUMS,
    allowance,
    at_most,
    begin_root,
    charge,
    most_mass,
    note_jump,
    require_digits,
    watch,
)
from regretless.learners.second_order.surrogate import check, flush, fold, helmert, product
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition

NEWTON = SUMS  # an additional entry of tally: the sum of the terms in the theorem's proof


class ONSState(NamedTuple):
    """The state of ONS."""

    P: Array  # inverse of A = epsilon I + sum g g^T, or a root of it once tally[ROOT] is set
    w: Array  # the iterate, in the ball
    leader: Array  # minimiser of the lower quadratics, for the certificate
    tally: Array  # the sums of tally.py and rounding.py, and the Newton terms


class ONSConstants(NamedTuple):
    """The constants of the kernels."""

    radius: float
    gamma: float
    epsilon: float
    feature_bound: float  # 0: not declared
    H: Array  # from weights to logits: `basis(K)`


class ONS(OnlineClassifier):
    r"""Online Newton Step for the log loss with two or more classes: the proper learner that the others improve on.

    **Choose it when** you need weights that are chosen before the row is seen (a proper learner) with logarithmic
    regret, or a baseline from the literature. Its bound is exponential in the radius; `AIOLI`'s is not.

    .. math:: A \leftarrow A + g g^T, \qquad w \leftarrow \Pi_A(w - \tfrac1\gamma A^{-1} g),

    with g the gradient of the loss at w and :math:`\Pi_A` the projection onto the ball in the norm of A, computed
    exactly from one scalar equation. Two classes use the d weights of the margin; more classes use (K-1) d reduced
    weights and the Frobenius ball. A row costs :math:`O(N^2)` for N weights. A row that needs a projection costs more
    products with P, a dozen if w is close to the ball. If more than 48 were needed, for example if
    :math:`\varepsilon` and the ball are so small that A is ill-conditioned and w far outside, the eigenvectors of P are
    computed instead, in :math:`O(N^3)`.

    **Guarantee.** For every :math:`|w| \le B`:
    :math:`\frac{\gamma\varepsilon}{2}B^2 + \frac{N}{2\gamma}\ln(1 + nG^2/(N\varepsilon))` if
    :math:`\gamma \le \frac12\min(\frac{1}{4GD}, \alpha)` (Theorem 2 of [ONS]_;
    `regretless.bounds.online_newton_step`). The log loss is
    :math:`\alpha`-exp-concave with :math:`\alpha = e^{-BR}` for two classes and :math:`e^{-\sqrt2 BR}/(K-1)`
    for more: an exponential factor that the bounds of AIOLI, FOLKLORE and GAF do not have.

    Parameters
    ----------
    radius : B, the largest (Frobenius) norm of comparators. No intercept is added: append a constant column.
    gamma : the constant of the step; None means the theorem's value above, for rows up to `feature_bound`.
    epsilon : A starts as epsilon I; None means 1 / (gamma D)^2, D = 2 B.
    feature_bound : R of the theorem's gamma; a row with a larger norm is rejected. None means R = 1 for gamma; larger
        rows are then accepted, but there is no certificate and no bound.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    state_ : `P` (the inverse of A), `w` (the iterate), `leader` and `tally` (for the certificate).

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import ONS
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> p = ONS(radius=5.0, gamma=0.25, epsilon=1.0).predict_then_learn(X, y)
    >>> print(f"{-np.log(np.where(y, p[:, 1], p[:, 0])).mean():.4f}")
    0.4568

    References
    ----------
    .. [ONS] Hazan, Agarwal and Kale (2007), key `ons` of REFERENCES.bib.
    """

    state_: ONSState
    _constants: ONSConstants
    _one_step = True

    def __init__(
        self,
        radius: float = 10.0,
        gamma: float | None = None,
        epsilon: float | None = None,
        feature_bound: float | None = None,
    ) -> None:
        self.radius = radius
        self.gamma = gamma
        self.epsilon = epsilon
        self.feature_bound = feature_bound

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        field = {"ONS": cls(radius=setting.radius, feature_bound=setting.feature_bound)}
        if setting.n_features * (setting.n_classes - 1) <= 200:  # projections cost the cube of this
            field["ONS, gamma = 1/4"] = cls(radius=setting.radius, gamma=0.25, epsilon=1.0)
        return field

    def _prepare(self, n_features: int, n_classes: int) -> ONSConstants:
        B = validate.positive("radius", self.radius)
        R = 1.0 if self.feature_bound is None else validate.positive("feature_bound", self.feature_bound)
        gamma = theory_gamma(B, R, n_classes) if self.gamma is None else validate.positive("gamma", self.gamma)
        if gamma == 0.0:
            raise ValueError(
                f"the theorem's gamma underflows at radius {B:.4g} and rows of norm {R:.4g} (it falls like e^-BR): "
                "pass gamma."
            )
        epsilon = 1.0 / (2.0 * gamma * B) ** 2 if self.epsilon is None else self.epsilon
        return ONSConstants(
            radius=B,
            gamma=gamma,
            epsilon=validate.positive("epsilon", epsilon),
            feature_bound=0.0 if self.feature_bound is None else R,
            H=basis(n_classes),
        )

    def _start(self, n_features: int, n_classes: int) -> ONSState:
        size = (n_classes - 1) * n_features
        return ONSState(
            P=np.eye(size) / self._constants.epsilon,
            w=np.zeros(size),
            leader=np.zeros(size),
            tally=np.zeros(SUMS + 1),
        )

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return ((n_classes - 1) * n_features) ** 2

    def _check_state(self) -> None:
        c, state = self._constants, self.state_
        check(state, c.epsilon, min(self._largest))
        state_checks.weights("leader", state.leader, min(self._largest), most=state_checks.LARGEST_SQUARED)
        state_checks.require(Ball(c.radius).contains(state.w, state_checks.ROUNDING), "w lies outside its ball")
        state_checks.within("tally, Newton terms", state.tally[NEWTON], 0.0, math.inf)

    def _limits(self) -> tuple[float, float]:
        c = self._constants
        return c.feature_bound or math.inf, validate.reach(c.epsilon * c.gamma**2)

    @property
    def competes_with(self) -> Competition:
        """The best weights in a ball, under the log loss."""
        loss = "softmax" if hasattr(self, "classes_") and self._n_classes > 2 else "logistic"
        return Competition(loss, Ball(self._in_play.radius))

    def _require_proof(self, refusal: type[ValueError]) -> float:
        """R; an error if gamma is too large for it."""
        c = self._constants
        R = c.feature_bound or float(self.state_.tally[WIDEST])
        require_digits(self.state_.P, self.state_.tally, refusal)
        most = theory_gamma(c.radius, R, self._n_classes)
        if validate.beyond(c.gamma, most):
            raise refusal(
                f"gamma={c.gamma:.4g} is not proved to keep the quadratics below the loss for rows of "
                f"norm {R:.4g} at radius "
                f"{c.radius:.4g}: it must be at most {most:.4g} there. Pass a smaller gamma, or feature_bound."
            )
        return R

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        r"""An upper bound on the regret against every comparator of the ball (or of a given norm).

        :math:`\frac{\gamma\varepsilon}2|w|^2 + \sum loss - \min_v[\frac{\gamma\varepsilon}2|v|^2 + \sum_s q_s(v)]` with
        :math:`q_s(v) = \ell_s + g_s\cdot(v-w_s) + \frac\gamma2 (g_s\cdot(v-w_s))^2`, which lie below the loss
        on the ball;
        or, if it is smaller, the sum in the theorem's proof,
        :math:`\frac{\gamma\varepsilon}2|w|^2 + \frac1{2\gamma}\sum_s g_s^TA_s^{-1}g_s`,
        which never exceeds the bound.
        """
        check_is_fitted(self, "state_")
        self._require_proof(NoCertificate)
        c = self._constants
        size = validate.comparator_norm(comparator_norm, self.competes_with.domain, c.radius)
        tally = self.state_.tally
        rounding = allowance(self.state_.P, tally, float(tally[NEWTON]))
        return 0.5 * c.gamma * c.epsilon * size**2 + float(tally[[EXCESS, NEWTON]].min()) + rounding

    def regret_bound(self, n: int | None = None) -> float:
        """The bound of Theorem 2, with R the largest norm so far (or `feature_bound`)."""
        check_is_fitted(self, "state_")
        R = self._require_proof(NoBound)
        tally = self.state_.tally
        require_unit_weights(tally)
        c = self._constants
        return bounds.online_newton_step(
            int(tally[ROWS]) if n is None else n,
            size=self.state_.w.size,
            radius=c.radius,
            gradient_bound=gradient_bound(R, self._n_classes),
            gamma=c.gamma,
            epsilon=c.epsilon,
        )

    @property
    def least_rows(self) -> int:
        """See `OnlineLearner`."""
        return panels.least_rows(self.state_.w.size)

    def _row_kernels(self) -> RowKernels:
        return self._by_kernels(run, forecast_rows)

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        by_panels = panels.pays(self.state_.w.size, X.shape[0]) and not self.state_.tally[ROOT]
        play = run_in_panels if by_panels else run
        play(self.state_, X, Y, weight, self._constants, out)

    def _forecast(self, X: Array, out: Array) -> None:
        self._forecast_by(self.state_.w, X, out)

    @property
    def coef_(self) -> Array:
        """The weights that forecast: (1, d) of the log-odds for two classes, else (K, d)."""
        check_is_fitted(self, "state_")
        return from_logits(self._constants.H @ self.state_.w.reshape(self._constants.H.shape[1], -1))

    def _iterate(self) -> Array | None:
        return self.state_.w

    def _forecast_by(self, weights: Array, X: Any, out: Array) -> None:
        forecast_block(weights, X, self._constants.H, out)


def gradient_bound(R: float, n_classes: int) -> float:
    """G: |p - y| is at most 1 in the coordinate of the margin, and at most sqrt(2) in all coordinates."""
    return R if n_classes == 2 else math.sqrt(2.0) * R


def theory_gamma(B: float, R: float, n_classes: int) -> float:
    """(1/2) min(1/(4 G D), alpha) with D = 2 B."""
    spread = B * R if n_classes == 2 else math.sqrt(2.0) * B * R  # the largest difference of two logits over the ball
    alpha = math.exp(-spread) / (n_classes - 1)
    G = gradient_bound(R, n_classes)
    return 0.5 * (alpha if G == 0.0 else min(1.0 / (8.0 * G * B), alpha))


def basis(n_classes: int) -> Array:
    """The matrix from weights to logits. For two classes the weights give the margin u: z = (-u/2, u/2)."""
    return np.array([[-0.5], [0.5]]) if n_classes == 2 else helmert(n_classes)


@kernel
def forecast(w: Array, x: Array, H: Array, z: Array) -> None:
    """Logits of the current weights."""
    K, r = H.shape
    d = x.size
    z[:] = 0.0
    for k in range(r):
        reduced = dot(w[k * d : (k + 1) * d], x)
        for a in range(K):
            z[a] += H[a, k] * reduced


@kernel
def step_lengths(q: float, ahead: float, weight: float, gamma: float) -> tuple[float, float, float, float, float]:
    """The steps of w, of the leader and of U along V, and the growth of the certificate's two sums.

    q = g.V, and `ahead` is g.v at the leader minus that at w.
    """
    shrink = 1.0 / (1.0 + weight * q)
    # the lower quadratic at the leader has slope weight (1 + gamma ahead) along g; A's inverse there is (2/gamma) P
    half_slope = 0.5 * weight * (1.0 + gamma * ahead)
    growth = half_slope * half_slope * (2.0 / gamma) * q * shrink - weight * ahead * (1.0 + 0.5 * gamma * ahead)
    growth = at_most(growth)  # finite for any row; if it is this large, there is no certificate
    newton = 0.5 * weight * weight * q * shrink / gamma
    return -weight / gamma * shrink, -half_slope * (2.0 / gamma) * shrink, math.sqrt(weight * shrink), growth, newton


@kernel
def update(
    state: ONSState, U: Array, g: Array, V: Array, weight: float, constants: ONSConstants
) -> tuple[float, float]:
    """One Newton step for gradient g and V = P g (S^T g for a root S of P), of w and of the certificate's leader.

    Returns the growth of the certificate's two sums.
    """
    P, w, leader, tally = state
    radius, gamma, epsilon = constants.radius, constants.gamma, constants.epsilon
    v, root = V[0], tally[ROOT] != 0.0
    q = dot(v, v) if root else dot(g, v)
    step, leader_step, length, growth, newton = step_lengths(q, dot(g, leader) - dot(g, w), weight, gamma)
    charge(tally, weight * dot(g, g) / epsilon, 0.5 * gamma * leader_step * leader_step * q, 0.0)
    if root:
        along = P @ v
        shrink(P, w, g, v, q, weight, step)
        note_jump(tally, w.size, weight * q, 0.0)
    square = 0.0
    for i in range(w.size):
        if root:
            leader[i] += leader_step * along[i]
        else:
            leader[i] += leader_step * v[i]
            w[i] += step * v[i]
            U[0, i] = length * v[i]
        square += w[i] * w[i]
    if square > radius * radius:
        if root:
            project(P @ P.T, w, radius)
        else:
            flush(P, U)
            project(P, w, radius)
    return growth, newton


@kernel
def slopes(z: Array, y: Array, H: Array, p: Array, s: Array) -> float:
    """s = H^T (p - y), the factor of the gradient along each copy of the row, p = softmax(z); returns the loss."""
    K, r = H.shape
    loss = softmax(z, p)
    for a in range(K):
        loss -= y[a] * z[a]
    for k in range(r):
        s[k] = 0.0
        for a in range(K):
            s[k] += H[a, k] * (p[a] - y[a])
    return loss


@kernel
def run(state: ONSState, X: Array, Y: Array, weight: Array, constants: ONSConstants, out: Array) -> None:
    """Play a block: forecast, see the label, compute the loss, update."""
    P, w, _, tally = state
    H, epsilon = constants.H, constants.epsilon
    K, r = H.shape
    d = X.shape[1]
    V, U = np.empty((1, w.size)), np.zeros((1, w.size))
    g, p, s, most = np.empty(w.size), np.empty(K), np.empty(r), most_mass(P)
    for t in range(X.shape[0]):
        x, y, z = X[t], Y[t], out[t]
        forecast(w, x, H, z)
        if weight[t] == 0.0:
            continue
        loss = slopes(z, y, H, p, s)
        for k in range(r):
            for j in range(d):
                g[k * d + j] = s[k] * x[j]
        if tally[ROOT] == 0.0 and tally[MASS] + weight[t] * dot(g, g) / epsilon > most:
            flush(P, U)
            begin_root(P, tally)
        if tally[ROOT] == 0.0:
            fold(P, U, g, V)
        else:
            product(P, g, V)
        growth, newton = update(state, U, g, V, weight[t], constants)
        record(tally, weight[t], weight[t] * loss, growth, norm(x))
        charge(tally, 0.0, 0.0, weight[t] * (math.log(K) + abs(z[0])) + abs(growth))
        tally[NEWTON] += newton
        if tally[ROOT] != 0.0:
            watch(P, tally)
    if tally[ROOT] == 0.0:
        flush(P, U)


class LeaderPanel(NamedTuple):
    """Additions to `panels.Panel`: the leader, and the products that give |w| after every step."""

    m0: Array  # (b, r): the leader's W x at the start
    steps: Array  # (b r,): the leader's steps, as omega for w
    VV: Array  # products of the rows of V_0 with each other
    Vw: Array  # products of the rows of V_0 with w
    square: float  # |w|^2 at the start


def run_in_panels(state: ONSState, X: Array, Y: Array, weight: Array, constants: ONSConstants, out: Array) -> None:
    """Play a block by panels, while P has enough digits and w stays in the ball.

    A panel in which w leaves the ball is continued row by row.
    """
    P, w, leader, tally = state
    r, radius = constants.H.shape[1], constants.radius
    for rows in panels.cuts(X.shape[0], w.size, r):
        x, y, c, z = X[rows], Y[rows], weight[rows], out[rows]
        if tally[ROOT]:
            run(state, x, y, c, constants, z)
            continue
        with one_thread_per_product():
            V0 = panels.look_ahead(P, x, r)
            panel = panels.begin(V0, P, w, x, False)
            flat = np.ascontiguousarray(V0.swapaxes(0, 1)).reshape(r * len(x), -1)
            leading = LeaderPanel(
                m0=multiply(x, leader.reshape(r, -1).T),
                steps=np.zeros(r * len(x)),
                VV=multiply(flat, flat.T),
                Vw=multiply(flat, w[:, None])[:, 0],
                square=dot(w, w),
            )
            with uninterrupted():
                done = run_panel(panel, leading, tally, y, c, constants, z)
                leader += panels.combination(leading.steps, V0)
                panels.finish(P, w, V0, panel, False)
                panels.mirror(P)
                if dot(w, w) > radius * radius:
                    project(P, w, radius)
                if done < len(x):
                    run(state, x[done:], y[done:], c[done:], constants, z[done:])
        listen()


@kernel
def run_panel(
    panel: panels.Panel,
    leader: LeaderPanel,
    tally: Array,
    Y: Array,
    weight: Array,
    constants: ONSConstants,
    out: Array,
) -> int:
    """Play a panel in coefficients of its rows until a step leaves the ball; returns the number of rows played."""
    H, gamma, epsilon, radius = constants.H, constants.gamma, constants.epsilon, constants.radius
    leading, VV, Vw, square = leader.steps, leader.VV, leader.Vw, leader.square
    K, r = H.shape
    omega, G, U = panel.omega, panel.G, panel.U
    c, g, p, s = np.empty(omega.size), np.empty(omega.size), np.empty(K), np.empty(r)
    for t in range(weight.size):
        reach, z = (t + 1) * r, out[t]
        z[:] = 0.0
        for k in range(r):
            reduced = panel.m0[t, k] + dot(omega[:reach], G[t * r + k, :reach])
            for a in range(K):
                z[a] += H[a, k] * reduced
        if weight[t] == 0.0:
            continue
        loss = slopes(z, Y[t], H, p, s)
        c[:] = 0.0
        g[:] = 0.0
        ahead = 0.0
        for k in range(r):
            row = G[t * r + k]
            for i in range(reach):
                g[i] += s[k] * row[i]
            ahead += s[k] * (leader.m0[t, k] - panel.m0[t, k])
        ahead += dot(leading[:reach], g[:reach]) - dot(omega[:reach], g[:reach])
        for i in range(t):
            along = dot(U[i, :reach], g[:reach])
            for j in range(reach):
                c[j] -= along * U[i, j]
        for k in range(r):
            c[t * r + k] += s[k]
        q = max(dot(c, g), 0.0)
        mass = weight[t] * dot(s, s) * panel.square[t] / epsilon
        if tally[MASS] + mass > panel.most_mass:
            return t
        step, leader_step, root, growth, newton = step_lengths(q, ahead, weight[t], gamma)
        for i in range(reach):
            along = dot(VV[i, :reach], c[:reach])
            square += step * c[i] * (2.0 * (Vw[i] + dot(VV[i], omega)) + step * along)
        for i in range(reach):
            leading[i] += leader_step * c[i]
            omega[i] += step * c[i]
            U[t, i] = root * c[i]
        record(tally, weight[t], weight[t] * loss, growth, math.sqrt(panel.square[t]))
        charge(
            tally,
            mass,
            0.5 * gamma * leader_step * leader_step * q,
            weight[t] * (math.log(K) + abs(z[0])) + abs(growth),
        )
        tally[NEWTON] += newton
        if square > radius * radius:
            return t + 1
    return int(weight.size)


@kernel
def forecast_block(w: Array, X: Array, H: Array, out: Array) -> None:
    """The forecasts of a block of rows."""
    for t in range(X.shape[0]):
        forecast(w, X[t], H, out[t])


@kernel
def forecast_rows(state: ONSState, X: Array, constants: ONSConstants, out: Array) -> None:
    """The forecasts of the present weights."""
    forecast_block(state.w, X, constants.H, out)
