"""MirrorLearner: the game of MirrorDescent, ExponentiatedGradient and MirrorDescentAggregator."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.files import state_checks
from regretless.core.kernels.jit import kernel, merged_kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.numbers.tally import ROWS
from regretless.core.rows import validate
from regretless.core.rows.compressed import Entries
from regretless.core.types import Array
from regretless.learners.first_order.learner import (
    LARGEST_MARGIN,
    LARGEST_ROW,
    LinearLearner,
    require_gradients_within,
)
from regretless.learners.first_order.linear import (
    FIRST_ORDER_TALLIES,
    LARGEST,
    SQUARES,
    count,
    forecast_block,
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
    Sequence,
    Table,
    adagrad,
    rate,
    rate_number,
    step,
    step_number,
    temperature_of,
)
from regretless.theory import bounds
from regretless.theory.domains import Ball, Box, Competition, Domain, Growing
from regretless.theory.losses import Custom, Loss, Oracle

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

    loss: int | Oracle
    proxy: int
    domain: int
    sizes: Array  # of the domain, after 0, 1, 2, ... rows; one number: it does not grow
    euclidean: bool  # whether gradients are measured in the l2 norm, and not by their largest entry
    schedule: int
    number: float | Table  # of the schedule
    lazy: bool
    averaging: bool
    origin: Array  # lazy: a dual point of theta_0; empty: 0


class Scheme(NamedTuple):
    """The loss, set, mirror and schedule of a mirror descent, which bounds and certificates read."""

    loss: Loss | Custom
    domain: Domain
    mirror: Mirror
    schedule: Schedule
    lazy: bool
    averaging: bool
    gradient_bound: float  # infinite: none declared
    start: Array | None = None  # theta_0, (d r,); None: the minimiser of V
    growing: Growing | None = None  # of which `domain` is the first set

    @property
    def spread(self) -> float:
        """V* of the proxy whose minimiser is theta_0."""
        return self.mirror.spread if self.start is None else self.mirror.spread_from(self.start)

    @property
    def constants(self) -> MirrorConstants:
        """The numbers that the kernel reads."""
        mirror, schedule = self.mirror, self.schedule
        euclidean = mirror.norm == "l2"
        number = schedule.number
        return MirrorConstants(
            self.loss.code,
            *mirror.codes,
            np.array([mirror.size], dtype=np.float64) if self.growing is None else self.growing.sizes(1),
            euclidean,
            schedule.code,
            number if isinstance(number, Table) else float(number),
            self.lazy,
            self.averaging,
            -mirror.gradient(self.start) if self.lazy and self.start is not None else np.empty(0),
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
        scheme = self._scheme
        zeta = np.zeros(shape[0] * shape[1])
        if scheme.start is None:
            theta = scheme.mirror.start().reshape(shape)
        else:
            theta = scheme.start.reshape(shape).copy()
            if not c.lazy and c.schedule != ADAGRAD:
                zeta[:] = -scheme.mirror.gradient(scheme.start)
        return MirrorState(
            theta=theta,
            zeta=zeta,
            average=theta.copy(),
            gradients=np.zeros((0 if c.lazy and c.schedule in UNIT_STEPS else shape[0], shape[1])),
            mass=np.array([scheme.schedule.step(1)]),
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
            domain = self._domain_now
            state_checks.require(domain.contains(weights, state_checks.ROUNDING), f"{name} is not in {domain}")
        squares = isinstance(c.schedule, AdaGrad)
        low, high = (0.0, math.inf) if squares else (-state_checks.LARGEST, state_checks.LARGEST)
        state_checks.within("zeta", state.zeta, low, high)
        state_checks.sums("gradients", state.gradients)
        state_checks.require(state.mass[0] > 0.0, "mass is not positive")

    def _limits(self) -> tuple[float, float]:
        c = self._scheme
        if c.loss.name == "exponential":  # |theta| is at most that of the farthest point of the set
            return math.inf, LARGEST_MARGIN / max(c.domain.diameter(c.mirror.dimension), c.mirror.size)
        return math.inf, LARGEST_ROW

    @property
    def _forecaster(self) -> tuple[Array, float]:
        weights = self.state_.average if self._constants.averaging else self.state_.theta
        return weights[:, None], 1.0

    def _gradients(self) -> Array:
        state = self.state_
        return state.gradients if state.gradients.size else state.zeta.reshape(state.theta.shape)

    @property
    def _domain_now(self) -> Domain:
        """The set of the present weights."""
        scheme = self._scheme
        if scheme.growing is None or "state_" not in self.__dict__:
            return scheme.domain
        return scheme.growing.at(int(self.state_.tally[ROWS]))

    @property
    def _iterate_now(self) -> Array:
        return self.state_.theta

    @property
    def competes_with(self) -> Competition:
        """The best weights of the set, under the loss."""
        begun = "_scheme" in self.__dict__
        return Competition(self._loss_name, self._domain_now if begun else self._chosen_domain())

    def regret_bound(self, n: int | None = None, comparator_norm: float | None = None) -> float:
        """The theorem of the schedule, for gradients of the declared size (default: of the largest so far).

        On the whole space and on sets that grow, the bound depends on `comparator_norm`.
        """
        n = self._rounds(n)
        c, tally = self._scheme, self.state_.tally
        norm = self._norm_for_bound(comparator_norm)
        if c.averaging:
            raise NoBound(
                "averaging=True: the theorem bounds the excess risk, not the regret. Use excess_risk_bound(), or "
                "averaging=False."
            )
        require_gradients_within(tally[LARGEST], c.gradient_bound)
        L = float(tally[LARGEST]) if math.isinf(c.gradient_bound) else c.gradient_bound
        if c.growing is not None:
            return self._growing_bound(n, L, norm)
        if math.isinf(c.mirror.spread):
            return self._unbounded_bound(n, L, norm)
        V = {"spread": c.spread, "strong_convexity": c.mirror.strong_convexity, "gradient_bound": L}
        diameter = c.domain.diameter(c.mirror.dimension)
        projected = c.mirror.proxy == "euclidean" and not c.lazy
        if isinstance(c.schedule, GrowingTemperature) and c.lazy:
            return bounds.dual_averaging(n, **V, temperature=c.schedule.beta)
        if isinstance(c.schedule, ConstantStep | KnownHorizon):
            eta = c.schedule.eta if isinstance(c.schedule, ConstantStep) else 1.0 / c.schedule.number
            return bounds.mirror_descent(n, **V, step=eta)
        if isinstance(c.schedule, InverseRootStep) and projected and isinstance(c.domain, Ball):
            return bounds.online_gradient_descent(n, radius=c.mirror.size, gradient_bound=L, step=c.schedule.eta)
        if isinstance(c.schedule, AdaGradNorm) and projected:
            squares = float(tally[SQUARES]) if n == int(tally[ROWS]) else n * L**2
            return bounds.adagrad_norm(diameter=diameter, squares=squares, step=c.schedule.eta)
        if isinstance(c.schedule, AdaGrad):  # on a box: weight by weight, and sqrt is additive over them
            now = n == int(tally[ROWS])
            roots = float(np.sqrt(self.state_.zeta).sum()) if now else c.mirror.dimension * L * math.sqrt(n)
            return bounds.adagrad_norm(diameter=2 * c.mirror.size, squares=roots**2, step=c.schedule.eta)
        if isinstance(c.schedule, Sequence) and projected:
            return bounds.descending_steps(steps=c.schedule.rates(n), diameter=diameter, gradient_bound=L)
        if isinstance(c.schedule, Sequence) and c.lazy:
            steps, temperatures = c.schedule.table(n)
            if np.ptp(steps) > 0.0:
                raise NoBound(
                    "the steps of the sequence change, and the theorem bounds a regret weighted by them. Change the "
                    "temperatures instead, use averaging=True and excess_risk_bound(), or regret_certificate()."
                )
            return n * bounds.averaging_sequences(steps=steps, temperatures=temperatures, **V)
        raise NoBound(
            f"no theorem is known for {c.schedule} with mirror={c.mirror.proxy!r} on {c.domain} and lazy={c.lazy}: use "
            "regret_certificate(), which is still valid."
        )

    def _unbounded_bound(self, n: int, L: float, norm: float) -> float:
        """The theorem on the whole space, for comparators of this norm."""
        c = self._scheme
        if not isinstance(c.schedule, ConstantStep) or c.mirror.proxy != "euclidean" or math.isinf(norm):
            raise NoBound(
                f"on {c.domain} comparators are unbounded, and no bound holds for all: use regret_certificate(norm). "
                "With a constant step and the Euclidean mirror there is also regret_bound(comparator_norm=norm)."
            )
        away = norm if c.start is None else norm + float(np.linalg.norm(c.start))
        return bounds.gradient_descent(n, comparator_norm=away, gradient_bound=L, step=c.schedule.eta)

    def excess_risk_bound(self, t: int | None = None) -> float:
        """A bound on the expected excess risk of the mean of t weights (default: n + 1 after n rows)."""
        t = self._rounds(t) if t is not None else self._rounds(None) + 1
        c = self._scheme
        proved = isinstance(c.schedule, GrowingTemperature | KnownHorizon | Sequence) and c.growing is None
        if not (c.averaging and c.lazy and proved):
            raise NoBound(
                "the theorem on excess risk needs lazy=True, averaging=True, a set that does not grow, and the "
                "schedule GrowingTemperature, KnownHorizon or Sequence."
            )
        require_gradients_within(self.state_.tally[LARGEST], c.gradient_bound)
        if isinstance(c.schedule, Sequence):
            if math.isinf(c.gradient_bound):
                raise NoBound("the theorem on excess risk needs a bound on all gradients: give gradient_bound.")
            return bounds.averaging_sequences(
                **c.schedule.table(t)._asdict(),
                spread=c.spread,
                strong_convexity=c.mirror.strong_convexity,
                gradient_bound=c.gradient_bound,
            )
        return bounds.averaging_excess_risk(
            t,
            spread=c.spread,
            strong_convexity=c.mirror.strong_convexity,
            gradient_bound=c.gradient_bound,
            temperature=c.schedule.number,
            known_horizon=isinstance(c.schedule, KnownHorizon),
        )

    def _norm_for_bound(self, comparator_norm: float | None) -> float:
        """The norm of the comparators of a bound; infinite: all of the set."""
        if comparator_norm is None:
            return math.inf
        domain, M = self._domain_now, self._scheme.mirror.dimension
        largest = domain.diameter(M) / 2 if isinstance(domain, Box) else domain.largest_norm(1)
        return validate.comparator_norm(comparator_norm, domain, largest, NoBound)

    def _growing_bound(self, n: int, L: float, norm: float) -> float:
        """The theorem for balls that grow, for comparators of this norm; infinite: all of the last one."""
        c = self._scheme
        assert c.growing is not None
        if not (isinstance(c.domain, Ball) and c.mirror.proxy == "euclidean" and not c.lazy):
            raise NoBound(
                "on a set that grows there is a theorem only for the eager Euclidean scheme on a Ball: use "
                "regret_certificate(), which is valid for the present set."
            )
        if isinstance(c.schedule, Sequence):
            rates = c.schedule.rates(n)
        elif isinstance(c.schedule, ConstantStep | InverseRootStep):
            rates = np.array([c.schedule.step(t) for t in range(1, n + 1)])
        else:
            raise NoBound(
                f"on balls that grow, {c.schedule} has no theorem: use ConstantStep, InverseRootStep or Sequence, or "
                "regret_certificate()."
            )
        sizes = c.growing.sizes(n + 1)
        norm = min(norm, float(sizes[n]))
        return bounds.growing_balls(steps=rates, radii=sizes[:n], comparator_norm=norm, gradient_bound=L)

    def _row_kernels(self) -> RowKernels | None:
        return None if self._scheme.growing is not None else self._rows_by(run, forecast_rows)

    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        if type(self._constants.number) is Table or self._scheme.growing is not None:
            self._look_ahead(int(self.state_.tally[ROWS]) + int(np.count_nonzero(weight)))
        run(self.state_, rows, Y, weight, self._constants, out)

    def _look_ahead(self, n: int) -> None:
        """Lengthen the tables of steps and sizes for n rows, before they are learned."""
        c, scheme = self._constants, self._scheme
        if isinstance(c.number, Table) and isinstance(scheme.schedule, Sequence):
            c = c._replace(number=scheme.schedule.covering(c.number, n, ahead=int(c.averaging)))
        if scheme.growing is not None and c.sizes.size <= n:
            longer = n + 1 if isinstance(scheme.growing.growth, tuple) else 2 * (n + 1)
            c = c._replace(sizes=scheme.growing.sizes(longer))
        self._constants = c


def start_of(start: Any, n_features: int, n_scores: int, domain: Domain, mirror: Mirror) -> Array | None:
    """theta_0 as the mirror has it, from weights in the shape of `coef_`, after checking that they are in the set."""
    if start is None:
        return None
    try:
        given = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError):
        given = np.empty((0, 0, 0))
    if given.shape == (n_features,) and n_scores == 1:
        given = given[None]
    if given.shape != (n_scores, n_features):
        shape = (n_features,) if n_scores == 1 else (n_scores, n_features)
        raise ValueError(f"start={start!r}: give the first weights, an array of numbers of shape {shape}.")
    if not domain.contains(given):
        raise ValueError(f"start={start!r} is not in {domain}: the first weights must be.")
    theta = np.ascontiguousarray(given.T).ravel()
    try:
        mirror.gradient(theta)
    except ValueError as error:
        raise ValueError(f"start={start!r}: {error} Choose weights inside the set.") from None
    return theta


@merged_kernel
def from_origin(origin: Array, zeta: Array, beta: float, scratch: Array) -> Array:
    """The dual point whose mirror step minimises zeta.theta + beta D_V(theta, theta_0): zeta + beta origin."""
    if origin.size == 0:
        return zeta
    for j in range(zeta.size):
        scratch[j] = zeta[j] + beta * origin[j]
    return scratch


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
    c, schedule, number = constants, constants.schedule, constants.number
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
        lam = c.sizes[min(int(n), c.sizes.size - 1)]
        if c.lazy:
            gamma, beta = step(schedule, step_number(number, n), n), temperature_of(schedule, number, n)
            if schedule == ADAGRAD_NORM or schedule == OBSERVED_ROOT:
                eta = rate(schedule, rate_number(number, n), n, tally[LARGEST], tally[SQUARES])
                gamma, beta = 1.0, 1.0 / eta if eta > 0.0 else 1.0
            move(dual, indices, data, first, last, gamma * weight[t], s)
            mirror_step(c.proxy, c.domain, lam, from_origin(c.origin, zeta, beta, steps), beta, flat)
        else:
            move(sparse_u, indices, data, first, last, weight[t], s)
            if schedule == ADAGRAD:
                adagrad(u, step_number(number, n), zeta, steps)
                for j in range(u.size):
                    flat[j] -= steps[j] * u[j]
                    if c.domain == BOX:
                        flat[j] = min(max(flat[j], -lam), lam)
            else:
                eta = rate(schedule, rate_number(number, n), n, tally[LARGEST], tally[SQUARES])
                eager_step(c.proxy, c.domain, lam, zeta, u, eta, flat)
            u[:] = 0.0
        if c.averaging:
            gamma = step(schedule, step_number(number, n + 1), n + 1)
            mass[0] += gamma
            share = gamma / mass[0]
            for j in range(M):
                for k in range(r):
                    average[j, k] += share * (theta[j, k] - average[j, k])


@kernel
def forecast_rows(state: MirrorState, rows: Entries, constants: MirrorConstants, out: Array) -> None:
    """The forecasts of a block of rows."""
    weights = state.average if constants.averaging else state.theta
    forecast_block(weights.reshape((weights.shape[0], 1, weights.shape[1])), 1.0, rows, out)
