"""Projected online gradient descent."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from regretless.core import validate
from regretless.core.errors import NoBound
from regretless.core.jit import kernel
from regretless.core.rows import Entries
from regretless.core.setting import Setting
from regretless.core.tally import ROWS
from regretless.core.types import Array
from regretless.learners.first_order.learner import LARGEST_MARGIN, LARGEST_ROW, LinearLearner, require_gradients_within
from regretless.learners.first_order.linear import (
    FACTOR,
    FIRST_ORDER_TALLIES,
    GRADIENTS,
    LARGEST,
    SQUARES,
    WEIGHTS,
    Row,
    Step,
    check_size,
    count,
    descend,
    loss_and_slope,
    move,
    product,
    publish,
    recount,
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
    rate,
)
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition
from regretless.theory.losses import EXPONENTIAL


class OGDState(NamedTuple):
    """What gradient descent has learned."""

    table: Array  # (d, 2, r): per feature its weights, to be multiplied by size[FACTOR], and the sum of its gradients
    size: Array  # the factor, and the squared norm of the weights
    tally: Array  # see tally.py and linear.py


class OGDConstants(NamedTuple):
    """The numbers the kernel reads, and the bound on the gradients."""

    loss: int
    radius: float
    schedule: int
    number: float  # of the schedule
    gradient_bound: float  # infinite: none declared


class OGD(LinearLearner):
    r"""Projected online gradient descent: a step against the gradient, then back to the ball.

    .. math:: w \leftarrow \Pi_U\bigl(w - \eta_t g_t\bigr), \qquad \eta_t = \frac{\sqrt2\,U}{G\sqrt t}

    for any convex loss of a linear predictor: two classes, more (the Frobenius ball), or regression. The cost per row
    is proportional to its number of entries: the projection is one factor for all weights.

    **Guarantee.** Regret at most :math:`UG\sqrt{8n}` against every :math:`|u| \le U`, where G is the largest
    gradient ([notes]_, eq. 9; `regretless.bounds.online_gradient_descent`). G need not be known: the step that uses
    the largest gradient so far has the same bound.

    Parameters
    ----------
    loss : for two classes "logistic", "logit" (base 2), "hinge" or "exponential"; for regression "squared", "absolute"
        or "linear".
    radius : U, the largest norm of the comparators. No intercept is added: append a constant column.
    step : "theory" (above), "adagrad-norm" (:math:`\sqrt2\,U/\sqrt{\sum|g|^2}`), a number (a constant step), or a
        schedule from `regretless.learners.first_order.schedules`.
    gradient_bound : G of the "theory" step; None uses the largest gradient so far.
    multiclass : the loss for more than two classes: "softmax" or "hinge".

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of forecasts.
    coef_ : the weights, (1, d) for two classes or regression, (K, d) for more.
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
        loss: str = "logistic",
        radius: float = 10.0,
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
        radius = validate.positive("radius", self.radius)
        G = math.inf if self.gradient_bound is None else validate.positive("gradient_bound", self.gradient_bound)
        schedule = self._schedule(radius, G)
        return OGDConstants(self._chosen_loss(n_classes).code, radius, schedule.code, schedule.number, G)

    def _schedule(self, radius: float, G: float) -> Schedule:
        if isinstance(self.step, Schedule) and not isinstance(self.step, AdaGrad):
            return self.step
        if self.step == "theory":
            return ObservedRootStep.of_ball(radius) if math.isinf(G) else InverseRootStep.of_ball(radius, G)
        if self.step == "adagrad-norm":
            return AdaGradNorm.of_diameter(2 * radius)
        if isinstance(self.step, int | float):
            return ConstantStep(validate.positive("step", self.step))
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
        """The best weights in the ball, under the loss."""
        return Competition(self._loss_name, Ball(self._in_play.radius))

    def regret_bound(self, n: int | None = None) -> float:
        """Eq. (9), with G the largest gradient so far (or `gradient_bound`)."""
        n = self._rounds(n)
        c, tally = self._constants, self.state_.tally
        require_gradients_within(tally[LARGEST], c.gradient_bound)
        G = float(tally[LARGEST]) if math.isinf(c.gradient_bound) else c.gradient_bound
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

    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        run(self.state_, rows, Y, weight, self._constants, out)


@kernel
def run(state: OGDState, rows: Entries, Y: Array, weight: Array, constants: OGDConstants, out: Array) -> None:
    """Play the game over a block: forecast, read the label, compute the loss, descend."""
    indptr, indices, data = rows
    size, tally, c = state.size, state.tally, constants
    w, gradients = state.table[:, WEIGHTS], state.table[:, GRADIENTS]
    r = w.shape[1]
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
        eta = rate(c.schedule, c.number, tally[ROWS], tally[LARGEST], tally[SQUARES])
        descend(w, size, indices, data, Row(first, last, square), z, s, Step(1.0, eta * weight[t], c.radius))
        recount(w, size, tally, c.radius)
