"""Projected online gradient descent."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.kernels.jit import kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.numbers.tally import ROWS
from regretless.core.rows import validate
from regretless.core.rows.compressed import Entries
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.first_order.learner import (
    LARGEST_MARGIN,
    LARGEST_ROW,
    LinearLearner,
    ball_of,
    require_bounded_scores,
    require_gradients_within,
)
from regretless.learners.first_order.linear import (
    FACTOR,
    FIRST_ORDER_TALLIES,
    GRADIENTS,
    LARGEST,
    LEAST_FACTOR,
    LEAST_SQUARE,
    SQUARE,
    SQUARES,
    WEIGHTS,
    Row,
    Step,
    check_size,
    count,
    descend,
    entries_ahead,
    forecast_scaled,
    loss_and_slope,
    margin_loss,
    move,
    product,
    publish,
    publish_margin,
    recount,
    score,
    scores,
)
from regretless.learners.first_order.schedules import (
    ADAGRAD_NORM,
    CONSTANT,
    INVERSE_ROOT,
    OBSERVED_ROOT,
    AdaGrad,
    AdaGradNorm,
    ConstantStep,
    InverseRootStep,
    ObservedRootStep,
    Schedule,
    Sequence,
    Table,
    rate,
    rate_number,
)
from regretless.theory import bounds
from regretless.theory.domains import Competition
from regretless.theory.losses import EXPONENTIAL, Custom, Oracle

LARGEST_FREE_STEP = 1e70  # without projection: squares of its moves do not overflow


class OGDState(NamedTuple):
    """What gradient descent has learned."""

    table: Array  # (d, 2, r): per feature its weights, to be multiplied by size[FACTOR], and the sum of its gradients
    size: Array  # the factor, and the squared norm of the weights
    tally: Array  # see tally.py and linear.py


class OGDConstants(NamedTuple):
    """The numbers the kernel reads, and the bound on the gradients."""

    loss: int | Oracle
    radius: float  # infinite: no ball
    schedule: int
    number: float | Table  # of the schedule
    gradient_bound: float  # infinite: none declared


class OGD(LinearLearner):
    r"""Projected online gradient descent: a step against the gradient, then back to the ball.

    **Choose it when** you need the simplest learner with a guarantee, any convex loss, a loss of your own, or a
    microsecond per row.

    .. math:: w \leftarrow \Pi_U\bigl(w - \eta_t g_t\bigr), \qquad \eta_t = \frac{\sqrt2\,U}{G\sqrt t}

    for any convex loss of a linear predictor: two classes, more (the Frobenius ball), or regression. The cost per row
    is proportional to its number of entries: the projection is one factor for all weights.

    **Guarantee.** Regret at most :math:`UG\sqrt{8n}` against every :math:`|u| \le U`, where G is the largest
    gradient ([notes]_, eq. 9; `regretless.bounds.online_gradient_descent`). G need not be known: the step that uses
    the largest gradient so far has the same bound. Without projection and with a constant step, regret at most
    :math:`|u|^2/(2\eta) + \eta n G^2/2` against every u (`regretless.bounds.gradient_descent`).

    Parameters
    ----------
    loss : for two classes "logistic", "logit" (base 2), "hinge" or "exponential"; for regression "squared", "absolute"
        or "linear"; or a loss of your own (`regretless.losses.Custom`). With "linear" you may bring your own gradients:
        see `learn_gradient`.
    radius : U, the largest norm of the comparators; None means no projection, for a loss with bounded slopes and a
        given step. No intercept is added: append a constant column.
    step : "theory" (above), "adagrad-norm" (:math:`\sqrt2\,U/\sqrt{\sum|g|^2}`), a number (a constant step), or a
        schedule from `regretless.learners.first_order.schedules`, where `Sequence` is any function of t, or an array.
    gradient_bound : G of the "theory" step; None uses the largest gradient so far.
    multiclass : the loss for more than two classes: "softmax" or "hinge".

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of forecasts.
    coef_ : the weights, (1, d) for two classes or regression, (K, d) for more.
    weights_ : the same weights, at which the next gradient is taken; (d,) for two classes or regression.
    state_ : `table`, `size` and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import OGD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> learner = OGD(radius=5.0)
    >>> p = learner.predict_then_learn(X, y)
    >>> print(f"{-np.log(np.where(y, p[:, 1], p[:, 0])).mean():.4f}")
    0.4566
    >>> print(f"regret <= {learner.regret_certificate():.1f} <= {learner.regret_bound():.1f}")
    regret <= 47.0 <= 1021.7

    References
    ----------
    .. [notes] Key `ogd-notes` of REFERENCES.bib; Zinkevich (2003), key `zinkevich`.
    """

    state_: OGDState
    _constants: OGDConstants

    def __init__(
        self,
        loss: str | Custom = "logistic",
        radius: float | None = 10.0,
        step: str | float | Schedule = "theory",
        gradient_bound: float | None = None,
        multiclass: str = "softmax",
    ) -> None:
        self.loss = loss
        self.radius = radius
        self.step = step
        self.gradient_bound = gradient_bound
        self.multiclass = multiclass

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        size = setting.matrix_radius
        return {"OGD": cls(radius=size), "OGD, adagrad-norm": cls(radius=size, step="adagrad-norm")}

    def _prepare(self, n_features: int, n_classes: int) -> OGDConstants:
        loss = self._chosen_loss(n_classes)
        radius = math.inf
        if self.radius is None:
            require_bounded_scores(loss, "Give a radius.")
        else:
            radius = validate.positive("radius", self.radius)
        G = math.inf if self.gradient_bound is None else validate.positive("gradient_bound", self.gradient_bound)
        schedule = self._schedule(radius, G)
        return OGDConstants(loss.code, radius, schedule.code, schedule.number, G)

    def _schedule(self, radius: float, G: float) -> Schedule:
        if isinstance(self.step, Schedule) and not isinstance(self.step, AdaGrad):
            if math.isinf(radius):
                _require_free_step(self.step)
            return self.step
        if math.isinf(radius) and self.step in ("theory", "adagrad-norm"):
            raise ValueError(
                f"step={self.step!r} is for a ball, and radius=None: give a number, or a schedule. (The bound for "
                "comparators of norm B and gradients of norm G is smallest for the step B / (G sqrt(n)).)"
            )
        if self.step == "theory":
            return ObservedRootStep.of_ball(radius) if math.isinf(G) else InverseRootStep.of_ball(radius, G)
        if self.step == "adagrad-norm":
            return AdaGradNorm.of_diameter(2 * radius)
        if isinstance(self.step, int | float):
            constant = ConstantStep(validate.positive("step", self.step))
            if math.isinf(radius):
                _require_free_step(constant)
            return constant
        raise ValueError(
            f'step={self.step!r}: give "theory", "adagrad-norm", a number, or a schedule with one step for all '
            "weights. (For one step per weight use LinearizedFTRL.)"
        )

    def _start(self, n_features: int, n_classes: int) -> OGDState:
        table = np.zeros((n_features, 2, self._n_scores))
        return OGDState(table, np.array([1.0, 0.0]), np.zeros(FIRST_ORDER_TALLIES))

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return n_features

    def _check_state(self) -> None:
        super()._check_state()
        check_size(self.state_.size, self._constants.radius)

    def _limits(self) -> tuple[float, float]:
        c = self._constants
        return math.inf, LARGEST_MARGIN / c.radius if c.loss == EXPONENTIAL else LARGEST_ROW

    @property
    def _forecaster(self) -> tuple[Array, float]:
        return self.state_.table, float(self.state_.size[FACTOR])

    @property
    def competes_with(self) -> Competition:
        """The best weights in the ball (or all), under the loss."""
        return Competition(self._loss_name, ball_of(self._in_play.radius or math.inf))

    def regret_bound(self, n: int | None = None, comparator_norm: float | None = None) -> float:
        """Eq. (9), with G the largest gradient so far (or `gradient_bound`).

        Without projection the bound needs `comparator_norm`, and a constant step.
        """
        n = self._rounds(n)
        c, tally = self._constants, self.state_.tally
        norm = math.inf
        if comparator_norm is not None:
            norm = validate.comparator_norm(comparator_norm, self.competes_with.domain, c.radius, NoBound)
        require_gradients_within(tally[LARGEST], c.gradient_bound)
        G = float(tally[LARGEST]) if math.isinf(c.gradient_bound) else c.gradient_bound
        if math.isinf(c.radius):
            if c.schedule != CONSTANT or isinstance(c.number, Table) or math.isinf(norm):
                raise NoBound(
                    "without projection the theorem needs a constant step, and the norm of the comparators: give "
                    "comparator_norm, or use regret_certificate(norm), which holds for every step."
                )
            return bounds.gradient_descent(n, comparator_norm=norm, gradient_bound=G, step=c.number)
        if isinstance(c.number, Table):
            rates = self.params_["step"].rates(n)
            return bounds.descending_steps(steps=rates, diameter=2 * c.radius, gradient_bound=G)
        if c.schedule == OBSERVED_ROOT:
            return bounds.online_gradient_descent(n, radius=c.radius, gradient_bound=G, step=c.number / G if G else 1.0)
        if c.schedule == INVERSE_ROOT:
            return bounds.online_gradient_descent(n, radius=c.radius, gradient_bound=G, step=c.number)
        if c.schedule == CONSTANT:
            return bounds.mirror_descent(
                n, spread=c.radius**2 / 2, strong_convexity=1.0, gradient_bound=G, step=c.number
            )
        if c.schedule == ADAGRAD_NORM:
            rows = float(tally[ROWS])
            squares = float(tally[SQUARES]) if n == rows else n * G**2
            return bounds.adagrad_norm(diameter=2 * c.radius, squares=squares, step=c.number)
        raise NoBound(
            f"step={self.params_['step']} has no theorem for projected descent. Use another step, or "
            "regret_certificate(), which is still valid."
        )

    def _row_kernels(self) -> RowKernels | None:
        return self._rows_by(run, forecast_scaled)

    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        number = self._constants.number
        if type(number) is Table:
            n = int(self.state_.tally[ROWS]) + int(np.count_nonzero(weight))
            self._constants = self._constants._replace(number=self.params_["step"].covering(number, n))
        run(self.state_, rows, Y, weight, self._constants, out)


def _require_free_step(schedule: Schedule) -> None:
    """Refuse a schedule without projection whose steps depend on a ball, or overflow."""
    if isinstance(schedule, ObservedRootStep | AdaGradNorm):
        raise ValueError(f"step={schedule!r} is for a ball, and radius=None: give a number, or another schedule.")
    if not isinstance(schedule, Sequence) and schedule.step(1) > LARGEST_FREE_STEP:
        raise ValueError(f"step={schedule!r} must be at most {LARGEST_FREE_STEP:.0e} without projection.")


@kernel
def run(state: OGDState, rows: Entries, Y: Array, weight: Array, constants: OGDConstants, out: Array) -> None:
    """Play the game over a block: forecast, read the label, compute the loss, descend."""
    indptr, indices, data = rows
    size, tally, c = state.size, state.tally, constants
    w, gradients = state.table[:, WEIGHTS], state.table[:, GRADIENTS]
    r = w.shape[1]
    if r == 1:
        run_margin(state, rows, Y, weight, constants, out)
        return
    z, s, scratch = np.empty(r), np.empty(r), np.empty(r)
    for t in range(indptr.size - 1):
        first, last = indptr[t], indptr[t + 1]
        square = scores(w, indices, data, first, last, z)
        z *= size[FACTOR]
        publish(z, out[t])
        if weight[t] == 0.0:
            continue
        loss = loss_and_slope(c.loss, z, Y[t], s, scratch)
        gradient = weight[t] * math.sqrt(product(s, s) * square)
        count(tally, weight[t], loss, weight[t] * product(s, z), square, gradient)
        move(gradients, indices, data, first, last, weight[t], s)
        number = rate_number(c.number, tally[ROWS])
        eta = rate(c.schedule, number, tally[ROWS], tally[LARGEST], tally[SQUARES])
        descend(w, size, indices, data, Row(first, last, square), z, s, Step(1.0, eta * weight[t], c.radius))
        recount(w, size, tally, c.radius)


@kernel
def run_margin(state: OGDState, rows: Entries, Y: Array, weight: Array, constants: OGDConstants, out: Array) -> None:
    """`run` for one score per row: scores stay in registers, and each entry's numbers are changed in one place.

    It takes half the time on sparse rows of a wide table.
    """
    indptr, indices, data = rows
    table, size, tally, c, ahead = state.table, state.size, state.tally, constants, entries_ahead(state.table)
    w, last_class = table[:, WEIGHTS], Y.shape[1] - 1
    for t in range(indptr.size - 1):
        first, last, heavy = np.uint64(indptr[t]), np.uint64(indptr[t + 1]), weight[t]
        margin, square = score(table, indices, data, first, last, ahead)
        margin *= size[FACTOR]
        publish_margin(margin, out, t)
        if heavy == 0.0:
            continue
        loss, slope = margin_loss(c.loss, margin, last_class == 1, Y[t, 0], Y[t, last_class])
        slope2 = slope * slope
        norm = abs(slope) * math.sqrt(square)
        count(tally, heavy, loss, heavy * (slope * margin), square, heavy * norm)
        number = rate_number(c.number, tally[ROWS])
        length = rate(c.schedule, number, tally[ROWS], tally[LARGEST], tally[SQUARES]) * heavy
        if size[FACTOR] < LEAST_FACTOR:
            w *= size[FACTOR]
            size[FACTOR] = 1.0
        # A row without correct digits changes no weight.
        moves = min(square, min(slope2, slope2 * square)) >= LEAST_SQUARE
        length = length if moves else 0.0
        step, moved = -length / size[FACTOR], length * norm
        for i in range(first, last):
            j, g = indices[i], data[i] * slope
            table[j, GRADIENTS, 0] += heavy * g
            table[j, WEIGHTS, 0] += step * g
        size[SQUARE] = max(size[SQUARE] - 2.0 * length * (slope * margin) + moved * moved, 0.0)
        if size[SQUARE] > c.radius * c.radius:
            size[FACTOR] *= c.radius / math.sqrt(size[SQUARE])
            size[SQUARE] = c.radius * c.radius
        recount(w, size, tally, c.radius)
