"""Online gradient descent for strongly convex losses."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from regretless.core.kernels.jit import kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.numbers.tally import EXCESS
from regretless.core.rows import validate
from regretless.core.rows.compressed import Entries
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.first_order.learner import (
    LARGEST_MARGIN,
    LARGEST_ROW,
    LinearLearner,
    ball_of,
    require_bounded_scores,
)
from regretless.learners.first_order.linear import (
    FACTOR,
    FIRST_ORDER_TALLIES,
    LARGEST,
    MASS,
    SQUARE,
    WEIGHTS,
    Row,
    Step,
    check_size,
    count,
    descend,
    forecast_scaled,
    loss_and_slope,
    product,
    publish,
    recount,
    scores,
)
from regretless.theory import bounds
from regretless.theory.domains import Competition
from regretless.theory.losses import EXPONENTIAL, Custom, Oracle

PENALTY = FIRST_ORDER_TALLIES  # one more sum than the other learners have: the regularization paid
LARGEST_CURVATURE = 1e150  # its square is finite


class StronglyConvexState(NamedTuple):
    """What gradient descent has learned."""

    table: Array  # (d, 1, r): the weights, to be multiplied by size[FACTOR]
    size: Array  # the factor, and the squared norm of the weights
    tally: Array  # see tally.py and linear.py; gradients are those of the loss with its regularization


class StronglyConvexConstants(NamedTuple):
    """The numbers the kernel reads."""

    loss: int | Oracle
    regularization: float
    curvature: float  # sigma of the loss and its regularization
    radius: float  # infinite: no ball


class StronglyConvexOGD(LinearLearner):
    r"""Online gradient descent with steps :math:`1/(\sigma t)`: logarithmic regret for strongly convex losses.

    **Choose it when** the loss has a regularizer, such as a support vector machine's: steps 1/(sigma t) then have
    logarithmic regret.

    .. math:: w \leftarrow w - \frac{1}{\sigma t} \bigl(g_t + \lambda w\bigr), \qquad
              f_t(w) = \ell_t(w) + \tfrac{\lambda}{2}|w|^2

    The curvature :math:`\sigma` is the regularization :math:`\lambda` plus the strong convexity of the losses
    themselves (`sigma`). With the hinge loss this is the online support vector machine (Pegasos). Weights are projected
    only if a radius is given. The cost per row is proportional to its number of entries: the decay is one factor for
    all weights.

    **Guarantee.** Regret in the losses :math:`f_t` at most :math:`G^2(1 + \ln n)/(2\sigma)` against every u, where G is
    the largest :math:`|g_t + \lambda w|` ([notes]_; `regretless.bounds.strongly_convex`).

    Parameters
    ----------
    loss : as in `OGD`. The squared and the exponential loss need a radius.
    regularization : lambda; each row adds the loss :math:`\tfrac\lambda2|w|^2`.
    sigma : the strong convexity of the losses in the weights, if any; it is not checked. (For rows
        :math:`|x| \ge a` the squared loss has 2a^2 with one feature, and 0 with more: a row has no curvature in
        directions orthogonal to it.)
    radius : the radius of the ball of weights; None means no ball.
    multiclass : the loss for more than two classes: "hinge" or "softmax".

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of forecasts.
    coef_ : the weights, (1, d) for two classes or regression, (K, d) for more.
    state_ : `table`, `size` and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import StronglyConvexOGD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = X @ [3, -3, 2, 0, 1] + 0.5 * rng.normal(size=2000) > 0
    >>> learner = StronglyConvexOGD(regularization=0.01)
    >>> margin = learner.predict_then_learn(X, y)
    >>> print(f"{np.mean((margin > 0) != y):.3f}")
    0.089
    >>> print(f"regret <= {learner.regret_certificate():.0f} <= {learner.regret_bound():.0f}")
    regret <= 155 <= 1436

    References
    ----------
    .. [notes] Key `ogd-notes` of REFERENCES.bib; Shalev-Shwartz and others (2007), key `pegasos`.
    """

    state_: StronglyConvexState
    _constants: StronglyConvexConstants

    def __init__(
        self,
        loss: str | Custom = "hinge",
        regularization: float = 0.01,
        sigma: float = 0.0,
        radius: float | None = None,
        multiclass: str = "hinge",
    ) -> None:
        self.loss = loss
        self.regularization = regularization
        self.sigma = sigma
        self.radius = radius
        self.multiclass = multiclass

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"Online SVM": cls(regularization=1 / setting.n_rows)}

    def _prepare(self, n_features: int, n_classes: int) -> StronglyConvexConstants:
        lam = validate.positive("regularization", self.regularization, zero=True)
        curvature = lam + validate.positive("sigma", self.sigma, zero=True)
        if curvature == 0.0:
            raise ValueError(
                "regularization=0 and sigma=0: the steps 1/(sigma t) need a positive one. Set regularization or sigma."
            )
        if curvature > LARGEST_CURVATURE:
            raise ValueError(
                f"regularization={lam:g} and sigma={self.sigma:g}: their sum is above {LARGEST_CURVATURE:g}, and its "
                "square too large for floating point arithmetic. Give smaller ones."
            )
        loss = self._chosen_loss(n_classes)
        if self.radius is None:
            require_bounded_scores(loss, "Give a radius.")
            return StronglyConvexConstants(loss.code, lam, curvature, math.inf)
        return StronglyConvexConstants(loss.code, lam, curvature, validate.positive("radius", self.radius))

    def _start(self, n_features: int, n_classes: int) -> StronglyConvexState:
        table = np.zeros((n_features, 1, self._n_scores))
        return StronglyConvexState(table, np.array([1.0, 0.0]), np.zeros(FIRST_ORDER_TALLIES + 1))

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return n_features

    def _check_state(self) -> None:
        super()._check_state()
        check_size(self.state_.size, self._constants.radius)

    def _limits(self) -> tuple[float, float]:
        c = self._constants
        largest = LARGEST_ROW * min(1.0, math.sqrt(c.curvature))
        return math.inf, min(largest, LARGEST_MARGIN / c.radius) if c.loss == EXPONENTIAL else largest

    @property
    def _forecaster(self) -> tuple[Array, float]:
        return self.state_.table, float(self.state_.size[FACTOR])

    @property
    def competes_with(self) -> Competition:
        """All weights (or those of the ball), under the loss with its regularization."""
        c = self._in_play
        return Competition(self._loss_name, ball_of(c.radius or math.inf), c.regularization / 2)

    @property
    def total_loss_(self) -> float:
        """The total loss so far, regularization included, as in the regret."""
        return super().total_loss_ + float(self.state_.tally[PENALTY])

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        r"""The sum in the theorem's proof, :math:`\sum_t |g_t + \lambda w_t|^2/(2\sigma t)`, for every comparator.

        Without a ball and with `sigma` 0, no smaller number bounds the regret for all losses with these gradients.
        """
        check_is_fitted(self, "state_")
        validate.comparator_norm(comparator_norm, self.competes_with.domain, self._constants.radius)
        return float(self.state_.tally[EXCESS])

    def regret_bound(self, n: int | None = None) -> float:
        """The theorem, with G the largest gradient so far."""
        n = self._rounds(n)
        G = float(self.state_.tally[LARGEST])
        return bounds.strongly_convex(n, sigma=self._constants.curvature, gradient_bound=G)

    def _row_kernels(self) -> RowKernels | None:
        return self._rows_by(run, forecast_scaled)

    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        run(self.state_, rows, Y, weight, self._constants, out)


@kernel
def run(
    state: StronglyConvexState, rows: Entries, Y: Array, weight: Array, constants: StronglyConvexConstants, out: Array
) -> None:
    """Play the game over a block: forecast, read the label, compute the loss, descend.

    A row of weight c is c times as curved, so t is the sum of weights.
    """
    indptr, indices, data = rows
    size, tally, lam, radius = state.size, state.tally, constants.regularization, constants.radius
    w = state.table[:, WEIGHTS]
    r = w.shape[1]
    z, s, scratch = np.empty(r), np.empty(r), np.empty(r)
    for t in range(indptr.size - 1):
        first, last = indptr[t], indptr[t + 1]
        square = scores(w, indices, data, first, last, z)
        z *= size[FACTOR]
        publish(z, out[t])
        if weight[t] == 0.0:
            continue
        loss = loss_and_slope(constants.loss, z, Y[t], s, scratch)
        slope2 = product(s, s)
        gradient2 = slope2 * square + 2.0 * lam * product(s, z) + lam * lam * size[SQUARE]  # |g + lam w|^2
        gradient2 = max(gradient2, 0.0)
        eta = weight[t] / (constants.curvature * (tally[MASS] + weight[t]))
        excess = 0.5 * eta * weight[t] * gradient2
        tally[PENALTY] += weight[t] * 0.5 * lam * size[SQUARE]
        count(tally, weight[t], loss, excess, square, weight[t] * math.sqrt(gradient2))
        descend(w, size, indices, data, Row(first, last, square), z, s, Step(1.0 - eta * lam, eta, radius))
        recount(w, size, tally, radius)
