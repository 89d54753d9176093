"""Mirror descent, lazy or eager, with or without averaging: the general first-order learner."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from regretless.core import state_checks, validate
from regretless.core.errors import NoBound
from regretless.core.jit import kernel
from regretless.core.rows import Entries
from regretless.core.setting import Setting
from regretless.core.tally import ROWS
from regretless.core.types import Array
from regretless.learners.first_order.learner import (
    LARGEST_MARGIN,
    LARGEST_ROW,
    LinearLearner,
    require_bounded_scores,
    require_gradients_within,
)
from regretless.learners.first_order.linear import (
    FIRST_ORDER_TALLIES,
    LARGEST,
    SQUARES,
    count,
    loss_and_slope,
    move,
    product,
    publish,
    scores,
)
from regretless.learners.first_order.mirror_steps import BOX, eager_step, mirror_step
from regretless.learners.first_order.mirrors import Mirror
from regretless.learners.first_order.schedules import (
    ADAGRAD,
    ADAGRAD_NORM,
    GROWING,
    HORIZON,
    OBSERVED_ROOT,
    AdaGrad,
    AdaGradNorm,
    ConstantStep,
    GrowingTemperature,
    InverseRootStep,
    KnownHorizon,
    Schedule,
    adagrad,
    rate,
    step,
    temperature,
)
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition, Domain
from regretless.theory.losses import EXPONENTIAL, Loss

UNIT_STEPS = (
    GROWING,
    HORIZON,
    OBSERVED_ROOT,
    ADAGRAD_NORM,
)  # in the lazy scheme: gamma is 1, and only the temperature changes


class MirrorState(NamedTuple):
    """What mirror descent has learned."""

    theta: Array  # (d, r), the weights
    zeta: Array  # (d r,), a dual point of theta (lazy: the weighted sum of gradients); under AdaGrad sums of squares
    average: Array  # (d, r), the mean of all theta, weighted by their steps
    gradients: Array  # (d, r), their sum; empty where zeta is the same
    mass: Array  # (1,), the sum of the steps, which are the weights of the mean
    tally: Array  # see tally.py and linear.py; gradients are measured in the dual norm


class MirrorConstants(NamedTuple):
    """The numbers the kernel reads."""

    loss: int
    proxy: int
    domain: int
    size: float  # of the domain
    euclidean: bool  # whether gradients are measured in the l2 norm, and not by their largest entry
    schedule: int
    number: float  # of the schedule
    lazy: bool
    averaging: bool


class Scheme(NamedTuple):
    """The loss, set, mirror and schedule of a mirror descent, which bounds and certificates read."""

    loss: Loss
    domain: Domain
    mirror: Mirror
    schedule: Schedule
    lazy: bool
    averaging: bool
    gradient_bound: float  # infinite: none declared

    @property
    def constants(self) -> MirrorConstants:
        """The numbers that the kernel reads."""
        mirror, schedule = self.mirror, self.schedule
        euclidean = mirror.norm == "l2"
        return MirrorConstants(
            self.loss.code,
            *mirror.codes,
            float(mirror.size),
            euclidean,
            schedule.code,
            float(schedule.number),
            self.lazy,
            self.averaging,
        )


class MirrorLearner(LinearLearner):
    """Base class of the learners by mirror descent; a subclass chooses the `Scheme`."""

    state_: MirrorState
    _constants: MirrorConstants
    _scheme: Scheme
    _learned: ClassVar[tuple[str, ...]] = ("_scheme",)

    @abstractmethod
    def _chosen_scheme(self, n_features: int, n_classes: int) -> Scheme:
        """The scheme, from the validated hyper-parameters."""

    @abstractmethod
    def _chosen_domain(self) -> Domain:
        """The set of weights, from the hyper-parameters."""

    def _prepare(self, n_features: int, n_classes: int) -> MirrorConstants:
        self._scheme = self._chosen_scheme(n_features, n_classes)
        return self._scheme.constants

    def _start(self, n_features: int, n_classes: int) -> MirrorState:
        c = self._constants
        shape = self._n_weights(n_features), self._n_scores
        theta = self._scheme.mirror.start().reshape(shape)
        return MirrorState(
            theta=theta,
            zeta=np.zeros(theta.size),
            average=theta.copy(),
            gradients=np.zeros((0 if c.lazy and c.schedule in UNIT_STEPS else shape[0], shape[1])),
            mass=np.array([step(c.schedule, c.number, 1)]),
            tally=np.zeros(FIRST_ORDER_TALLIES),
        )

    def _n_weights(self, n_features: int) -> int:
        return n_features

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return 3 * n_features

    def _check_state(self) -> None:
        super()._check_state()
        c, state = self._scheme, self.state_
        for name, weights in (("theta", state.theta), ("average", state.average)):
            state_checks.weights(name, weights, min(self._largest))
            state_checks.require(c.domain.contains(weights, state_checks.ROUNDING), f"{name} is not in {c.domain}")
        squares = isinstance(c.schedule, AdaGrad)
        low, high = (0.0, math.inf) if squares else (-state_checks.LARGEST, state_checks.LARGEST)
        state_checks.within("zeta", state.zeta, low, high)
        state_checks.sums("gradients", state.gradients)
        state_checks.require(state.mass[0] > 0.0, "mass is not positive")

    def _limits(self) -> tuple[float, float]:
        c = self._scheme
        if c.loss.code == EXPONENTIAL:  # |theta| is at most that of the farthest point of the set
            return math.inf, LARGEST_MARGIN / max(c.domain.diameter(c.mirror.dimension), c.mirror.size)
        return math.inf, LARGEST_ROW

    @property
    def _forecaster(self) -> tuple[Array, float]:
        weights = self.state_.average if self._constants.averaging else self.state_.theta
        return weights[:, None], 1.0

    @property
    def _gradients(self) -> Array:
        state = self.state_
        return state.gradients if state.gradients.size else state.zeta.reshape(state.theta.shape)

    @property
    def competes_with(self) -> Competition:
        """The best weights of the set, under the loss."""
        begun = "_scheme" in self.__dict__
        return Competition(self._loss_name, self._scheme.domain if begun else self._chosen_domain())

    def regret_bound(self, n: int | None = None) -> float:
        """The theorem of the schedule, for gradients of the declared size (default: of the largest so far)."""
        n = self._rounds(n)
        c, tally = self._scheme, self.state_.tally
        if c.averaging:
            raise NoBound(
                "averaging=True: the theorem bounds the excess risk, not the regret. Use excess_risk_bound(), or "
                "averaging=False."
            )
        require_gradients_within(tally[LARGEST], c.gradient_bound)
        L = float(tally[LARGEST]) if math.isinf(c.gradient_bound) else c.gradient_bound
        V = {"spread": c.mirror.spread, "strong_convexity": c.mirror.strong_convexity, "gradient_bound": L}
        euclidean_ball = c.mirror.proxy == "euclidean" and isinstance(c.domain, Ball)
        if math.isinf(c.mirror.spread):
            raise NoBound(
                f"on {c.domain} comparators are unbounded, and no bound holds for all: use regret_certificate(norm)."
            )
        if isinstance(c.schedule, GrowingTemperature) and c.lazy:
            return bounds.dual_averaging(n, **V, temperature=c.schedule.beta)
        if isinstance(c.schedule, ConstantStep | KnownHorizon):
            eta = c.schedule.eta if isinstance(c.schedule, ConstantStep) else 1.0 / c.schedule.number
            return bounds.mirror_descent(n, **V, step=eta)
        if isinstance(c.schedule, InverseRootStep) and euclidean_ball and not c.lazy:
            return bounds.online_gradient_descent(n, radius=c.mirror.size, gradient_bound=L, step=c.schedule.eta)
        if isinstance(c.schedule, AdaGradNorm) and c.mirror.proxy == "euclidean" and not c.lazy:
            squares = float(tally[SQUARES]) if n == int(tally[ROWS]) else n * L**2
            diameter = c.domain.diameter(c.mirror.dimension)
            return bounds.adagrad_norm(diameter=diameter, squares=squares, step=c.schedule.eta)
        if isinstance(c.schedule, AdaGrad):  # on a box: weight by weight, and sqrt is additive over them
            now = n == int(tally[ROWS])
            roots = float(np.sqrt(self.state_.zeta).sum()) if now else c.mirror.dimension * L * math.sqrt(n)
            return bounds.adagrad_norm(diameter=2 * c.mirror.size, squares=roots**2, step=c.schedule.eta)
        raise NoBound(
            f"no theorem is known for {c.schedule} with mirror={c.mirror.proxy!r} on {c.domain} and lazy={c.lazy}: use "
            "regret_certificate(), which is still valid."
        )

    def excess_risk_bound(self, t: int | None = None) -> float:
        """A bound on the expected excess risk of the mean of t weights (default: n + 1 after n rows)."""
        t = self._rounds(t) if t is not None else self._rounds(None) + 1
        c = self._scheme
        if not (c.averaging and c.lazy and isinstance(c.schedule, GrowingTemperature | KnownHorizon)):
            raise NoBound(
                "the theorem on excess risk needs lazy=True, averaging=True and the schedule GrowingTemperature or "
                "KnownHorizon."
            )
        require_gradients_within(self.state_.tally[LARGEST], c.gradient_bound)
        return bounds.averaging_excess_risk(
            t,
            spread=c.mirror.spread,
            strong_convexity=c.mirror.strong_convexity,
            gradient_bound=c.gradient_bound,
            temperature=c.schedule.number,
            known_horizon=isinstance(c.schedule, KnownHorizon),
        )

    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        run(self.state_, rows, Y, weight, self._constants, out)


class MirrorDescent(MirrorLearner):
    r"""Mirror descent, for any convex loss, set, mirror and schedule of steps.

    .. math:: \text{lazy:} \quad \zeta \leftarrow \zeta + \gamma_t g_t, \quad
              \theta_t = \arg\min_{\theta \in \Theta} \zeta \cdot \theta + \beta_t V(\theta)
    .. math:: \text{eager:} \quad
              \theta_t = \arg\min_{\theta \in \Theta} \tfrac{\gamma_t}{\beta_t}\, g_t \cdot \theta
              + D_V(\theta, \theta_{t-1})

    :math:`g_t` is the gradient of the loss of row t at :math:`\theta_{t-1}`, and :math:`\theta_0` minimises V. With
    averaging, forecasts use the mean of :math:`\theta_0..\theta_t`, weighted by
    :math:`\gamma_1..\gamma_{t+1}` ([MDA]_). The cost per row is proportional to the number of weights.

    **Guarantee.** That of the schedule (see `regretless.learners.first_order.schedules`): on the regret without
    averaging, on the excess risk for i.i.d. rows with it.

    Parameters
    ----------
    loss : as in `OGD`.
    domain : a set of `regretless.domains`: Ball, Simplex, SubSimplex, Octahedron, Box or WholeSpace.
    mirror : "euclidean", "entropy", "p-norm" or "power" (`MIRRORS` in `mirrors.py` lists their sets).
    schedule : "theory" (`GrowingTemperature` for the lazy scheme, `InverseRootStep` for the eager Euclidean one on a
        ball; without `gradient_bound` both use `AdaGradNorm`, for which the lazy scheme has no bound here), a number
        (a constant step), or a schedule from `regretless.learners.first_order.schedules`.
    lazy : whether to use the lazy scheme.
    averaging : whether forecasts use the mean of the weights.
    gradient_bound : a bound on the gradients, in the dual norm: l2 for the Euclidean mirror, else the largest entry.
    multiclass : the loss for more than two classes: "softmax" or "hinge".

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of forecasts.
    coef_ : the weights that forecast, (1, d) for two classes or regression, (K, d) for more.
    state_ : `theta`, `zeta`, `average`, `gradients`, `mass` and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import MirrorDescent
    >>> from regretless.theory.domains import Octahedron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.choice([-1.0, 1.0], size=(2000, 500))
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ (np.arange(500) < 3)))
    >>> for mirror, G in [("entropy", 1.0), ("euclidean", 500**0.5)]:
    ...     learner = MirrorDescent(domain=Octahedron(3.0), mirror=mirror, averaging=False, gradient_bound=G)
    ...     p = learner.predict_then_learn(X, y)
    ...     loss = -np.log(np.where(y, p[:, 1], p[:, 0])).mean()
    ...     print(f"{mirror}: {loss:.3f}, regret <= {learner.regret_bound():.0f}")
    entropy: 0.528, regret <= 705
    euclidean: 0.582, regret <= 4244

    References
    ----------
    .. [MDA] Juditsky, Nazin, Tsybakov and Vayatis (2005), key `mda` of REFERENCES.bib.
    """

    def __init__(
        self,
        loss: str = "logistic",
        domain: Domain = Ball(10.0),  # noqa: B008 (frozen)
        mirror: str = "euclidean",
        schedule: str | float | Schedule = "theory",
        lazy: bool = True,
        averaging: bool = True,
        gradient_bound: float | None = None,
        multiclass: str = "softmax",
    ) -> None:
        self.loss = loss
        self.domain = domain
        self.mirror = mirror
        self.schedule = schedule
        self.lazy = lazy
        self.averaging = averaging
        self.gradient_bound = gradient_bound
        self.multiclass = multiclass

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        slope = 1.0 if setting.n_classes == 2 else 2**0.5  # |p - y| at most
        domain = Ball(setting.matrix_radius)
        return {
            "Mirror descent, lazy": cls(domain=domain, averaging=False, gradient_bound=slope * setting.feature_bound)
        }

    def _chosen_domain(self) -> Domain:
        return self.domain

    def _chosen_scheme(self, n_features: int, n_classes: int) -> Scheme:
        for name, flag in (("lazy", self.lazy), ("averaging", self.averaging)):
            if not isinstance(flag, bool | np.bool_):
                raise ValueError(f"{name}={flag!r} must be True or False.")
        loss = self._chosen_loss(n_classes)
        mirror = _mirror_on(self.mirror, self.domain, n_features * self._n_scores)
        if math.isinf(mirror.spread):
            require_bounded_scores(loss, "Choose a bounded domain.")
        L = math.inf if self.gradient_bound is None else validate.positive("gradient_bound", self.gradient_bound)
        schedule = self._schedule(mirror, L)
        return Scheme(loss, self.domain, mirror, schedule, bool(self.lazy), bool(self.averaging), L)

    def _schedule(self, mirror: Mirror, L: float) -> Schedule:
        if isinstance(self.schedule, AdaGrad):
            if self.lazy or mirror.proxy != "euclidean" or mirror.domain not in ("box", "whole"):
                raise ValueError(
                    "schedule=AdaGrad has one step per weight: it needs lazy=False, mirror='euclidean' and the domain "
                    "Box or WholeSpace, where weights are projected separately."
                )
            return self.schedule
        if isinstance(self.schedule, Schedule):
            return self.schedule
        if self.schedule == "theory":
            if math.isinf(mirror.spread):
                raise ValueError(
                    f'schedule="theory": {self.domain} is unbounded, so no step is best: give a schedule or a number.'
                )
            if self.lazy and math.isinf(L):  # the gradients so far replace L sqrt(t)
                return AdaGradNorm(math.sqrt(mirror.strong_convexity * mirror.spread) or 1.0)
            if self.lazy:
                return GrowingTemperature.of(mirror, L)
            if mirror.proxy == "euclidean" and math.isinf(L):
                return AdaGradNorm.of_diameter(self.domain.diameter(mirror.dimension) or 1.0)
            if isinstance(self.domain, Ball):
                return InverseRootStep.of_ball(self.domain.radius, L)
            raise ValueError(
                f'schedule="theory": the eager scheme has a theorem only for the Euclidean mirror on a Ball, not for '
                f"mirror={self.mirror!r} on {self.domain}. Use lazy=True, or give a schedule."
            )
        if isinstance(self.schedule, int | float):
            return ConstantStep(validate.positive("schedule", self.schedule))
        raise ValueError(f'schedule={self.schedule!r}: give "theory", a number, or a schedule.')


def _mirror_on(proxy: Any, domain: Any, dimension: int) -> Mirror:
    """The mirror; errors name this learner's parameters."""
    try:
        return Mirror.on(proxy, domain, dimension)
    except ValueError as error:
        raise ValueError(f"mirror={proxy!r}, {error}") from None


@kernel
def gradient_size(euclidean: bool, data: Array, first: int, last: int, square: float, s: Array) -> float:
    """The norm of s x^T: l2, or its largest entry."""
    if euclidean:
        return math.sqrt(product(s, s) * square)
    slope, x = 0.0, 0.0
    for k in range(s.size):
        slope = max(slope, abs(s[k]))
    for i in range(first, last):
        x = max(x, abs(data[i]))
    return slope * x


@kernel
def run(state: MirrorState, rows: Entries, Y: Array, weight: Array, constants: MirrorConstants, out: Array) -> None:
    """Play the game over a block: forecast, read the label, compute the loss, step, average."""
    indptr, indices, data = rows
    theta, zeta, average, gradients, mass, tally = state
    c, schedule, number, lam = constants, constants.schedule, constants.number, constants.size
    M, r = theta.shape
    z, s, scratch = np.empty(r), np.empty(r), np.empty(r)
    flat, dual, u, steps = theta.reshape(-1), zeta.reshape((M, r)), np.zeros(M * r), np.empty(M * r)
    sparse_u = u.reshape((M, r))
    for t in range(indptr.size - 1):
        first, last = indptr[t], indptr[t + 1]
        square = scores(average if c.averaging else theta, indices, data, first, last, z)
        publish(z, out[t])
        if weight[t] == 0.0:
            continue
        loss = loss_and_slope(c.loss, z, Y[t], s, scratch)
        played = loss
        if c.averaging:  # the loss is the forecast's, the gradient is taken at theta
            scores(theta, indices, data, first, last, z)
            played = loss_and_slope(c.loss, z, Y[t], s, scratch)
        gradient = weight[t] * gradient_size(c.euclidean, data, first, last, square, s)
        count(tally, weight[t], loss, weight[t] * (loss - played + product(s, z)), square, gradient)
        if gradients.size:
            move(gradients, indices, data, first, last, weight[t], s)
        n = tally[ROWS]
        if c.lazy:
            gamma, beta = step(schedule, number, n), temperature(schedule, number, n)
            if schedule == ADAGRAD_NORM or schedule == OBSERVED_ROOT:
                eta = rate(schedule, number, n, tally[LARGEST], tally[SQUARES])
                gamma, beta = 1.0, 1.0 / eta if eta > 0.0 else 1.0
            move(dual, indices, data, first, last, gamma * weight[t], s)
            mirror_step(c.proxy, c.domain, lam, zeta, beta, flat)
        else:
            move(sparse_u, indices, data, first, last, weight[t], s)
            if schedule == ADAGRAD:
                adagrad(u, number, zeta, steps)
                for j in range(u.size):
                    flat[j] -= steps[j] * u[j]
                    if c.domain == BOX:
                        flat[j] = min(max(flat[j], -lam), lam)
            else:
                eta = rate(schedule, number, n, tally[LARGEST], tally[SQUARES])
                eager_step(c.proxy, c.domain, lam, zeta, u, eta, flat)
            u[:] = 0.0
        if c.averaging:
            gamma = step(schedule, number, n + 1)
            mass[0] += gamma
            share = gamma / mass[0]
            for j in range(M):
                for k in range(r):
                    average[j, k] += share * (theta[j, k] - average[j, k])
