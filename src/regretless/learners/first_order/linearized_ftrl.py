"""Follow the regularized leader on linearised losses, with a rate for each weight: FTRL-Proximal."""

from __future__ import annotations

import math
from typing import NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.files import state_checks
from regretless.core.kernels.jit import apart_kernel, inlined_kernel, kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.kernels.prefetch import from_a_line
from regretless.core.numbers.tally import ROWS
from regretless.core.rows import validate
from regretless.core.rows.compressed import Entries
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.first_order.learner import LARGEST_MARGIN, LARGEST_ROW, LinearLearner, require_bounded_scores
from regretless.learners.first_order.linear import (
    FIRST_ORDER_TALLIES,
    GRADIENTS,
    LARGEST,
    WEIGHTS,
    count,
    entries_ahead,
    forecast_table,
    loss_and_slope,
    margin_loss,
    product,
    publish,
    publish_margin,
    score,
    scores,
)
from regretless.theory import bounds
from regretless.theory.domains import Box, Competition, WholeSpace
from regretless.theory.losses import EXPONENTIAL, Custom, Oracle

# After WEIGHTS and GRADIENTS: gradients minus sigma times the weights they were taken at, and the root of the sum of
# squared gradients.
Z, ROOT = 2, 3
LEAST_CURVATURE = 1e-300  # of a weight that moves: one over it is a number
AT_ONCE = 64  # entries whose roots are computed at once


class FTRLState(NamedTuple):
    """What FTRL-Proximal has learned."""

    table: Array  # (d, 4, r): per feature its weights, gradients, z and root, see the constants above
    tally: Array  # see tally.py and linear.py; a gradient's size is that of its largest entry


class FTRLConstants(NamedTuple):
    """The numbers the kernel reads."""

    loss: int | Oracle
    alpha: float
    beta: float
    l1: float
    l2: float
    radius: float  # infinite: no box


class LinearizedFTRL(LinearLearner):
    r"""FTRL-Proximal: per-coordinate rates with L1 and L2 regularization, as used for click-through prediction.

    **Choose it when** rows are sparse and wide, a row may take microseconds, and weights that do not matter should be
    exactly 0. It has rates to tune; `OnlineLogisticRegression` runs several at once.

    .. math:: w_{t+1} = \arg\min_w \sum_{s \le t} g_s \cdot w
              + \sum_{s \le t} \sum_i \frac{\sigma_{s,i}}{2} (w_i - w_{s,i})^2 + \frac{\beta}{2\alpha}|w|^2
              + l_1 |w|_1 + \frac{l_2}{2}|w|^2, \qquad
              \sum_{r \le s} \sigma_{r,i} = \frac1\alpha \sqrt{\sum_{r \le s} g_{r,i}^2}

    so weight i has the rate :math:`\alpha/(\beta + \sqrt{\sum g_i^2})`: the rate of
    frequent features falls, that of rare ones stays large. Without l1, l2 and radius this is gradient descent with
    AdaGrad's rates. The cost per row is proportional to its number of entries.

    **Guarantee.** With `radius` R, against every u with :math:`|u_i| \le R`, regret at most
    :math:`\sum_i (2R^2/\alpha + \alpha) \sqrt{\sum_t g_{t,i}^2} + R^2\beta/(2\alpha) + l_1 R + l_2 R^2/2` ([FTRL]_;
    `regretless.bounds.ftrl_proximal` for gradients of a given size). Without a radius there is only the certificate.

    Parameters
    ----------
    loss : as in `OGD`. The squared and the exponential loss need a radius.
    alpha, beta : parameters of the rates. The bound is smallest for alpha = sqrt(2) R.
    l1, l2 : the regularization, counted once and not per row. A weight is 0 until its gradients exceed l1.
    radius : R, a bound on each weight; None means no bound.
    multiclass : the loss for more than two classes: "softmax" or "hinge".

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of forecasts.
    coef_ : the weights, (1, d) for two classes or regression, (K, d) for more.
    state_ : `table` and `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from regretless import LinearizedFTRL
    >>> rng = np.random.default_rng(0)
    >>> X = sparse.random(2000, 10_000, density=0.002, format="csr", random_state=0)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ rng.normal(size=10_000)))
    >>> learner = LinearizedFTRL(l1=0.5).fit(X, y)
    >>> print(f"{np.count_nonzero(learner.coef_)} of {learner.coef_.size} weights")
    3834 of 10000 weights

    References
    ----------
    .. [FTRL] McMahan and others (2013), key `ftrl-proximal` of REFERENCES.bib, and McMahan (2017), key `ftrl-survey`,
       Theorem 2.
    """

    state_: FTRLState
    _constants: FTRLConstants

    def __init__(
        self,
        loss: str | Custom = "logistic",
        alpha: float = 0.15,
        beta: float = 1.0,
        l1: float = 0.0,
        l2: float = 0.0,
        radius: float | None = None,
        multiclass: str = "softmax",
    ) -> None:
        self.loss = loss
        self.alpha = alpha
        self.beta = beta
        self.l1 = l1
        self.l2 = l2
        self.radius = radius
        self.multiclass = multiclass

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"FTRL-Proximal": cls()}

    def _prepare(self, n_features: int, n_classes: int) -> FTRLConstants:
        loss = self._chosen_loss(n_classes)
        if self.radius is None:
            require_bounded_scores(loss, "Give a radius, a bound on each weight.")
        return FTRLConstants(
            loss.code,
            validate.positive("alpha", self.alpha),
            validate.positive("beta", self.beta, zero=True),
            validate.positive("l1", self.l1, zero=True),
            validate.positive("l2", self.l2, zero=True),
            math.inf if self.radius is None else validate.positive("radius", self.radius),
        )

    def _start(self, n_features: int, n_classes: int) -> FTRLState:
        return FTRLState(from_a_line(n_features, 4, self._n_scores), np.zeros(FIRST_ORDER_TALLIES))

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return 4 * n_features

    def _check_state(self) -> None:
        super()._check_state()
        c = self._constants
        w, z, root = (self.state_.table[:, part] for part in (WEIGHTS, Z, ROOT))
        state_checks.within("table, the roots", root, 0.0, state_checks.LARGEST)
        over, curvature = np.abs(z) - c.l1, (c.beta + root) / c.alpha + c.l2
        moves = (over > 0.0) & (curvature > LEAST_CURVATURE)
        expected = np.minimum(np.where(moves, over, 0.0) / np.where(moves, curvature, 1.0), c.radius)
        off = np.abs(w + np.sign(z) * expected)
        state_checks.require(
            np.all(off <= state_checks.ROUNDING * expected), "table: the weights are not those of the sums"
        )

    def _limits(self) -> tuple[float, float]:
        c = self._constants
        if c.loss == EXPONENTIAL:
            return math.inf, LARGEST_MARGIN / (c.radius * math.sqrt(self.n_features_in_))
        return math.inf, LARGEST_ROW

    @property
    def competes_with(self) -> Competition:
        """All weights (or those of the box), under the loss alone."""
        radius = self._in_play.radius or math.inf
        return Competition(self._loss_name, WholeSpace() if math.isinf(radius) else Box(radius))

    def regret_bound(self, n: int | None = None) -> float:
        """The theorem, for the gradients so far; for other n, with gradients of the largest size so far."""
        rows = self._rounds(n)
        c, state = self._constants, self.state_
        if math.isinf(c.radius):
            raise NoBound("FTRL-Proximal has a bound only on a box: give radius, or use regret_certificate(norm).")
        roots, G = state.table[:, ROOT], float(state.tally[LARGEST])
        if n is None or n == int(state.tally[ROWS]):  # the same sum, for the gradients so far
            rows, G = 1, float(roots.sum()) / roots.size
        return bounds.ftrl_proximal(
            rows,
            n_features=roots.size,
            radius=c.radius,
            gradient_bound=G,
            alpha=c.alpha,
            beta=c.beta,
            l1=c.l1,
            l2=c.l2,
        )

    def _row_kernels(self) -> RowKernels | None:
        return self._rows_by(run, forecast_table)

    def _learn(self, rows: Entries, Y: Array, weight: Array, out: Array) -> None:
        run(self.state_, rows, Y, weight, self._constants, out)


@inlined_kernel
def lengthened(root: float, g: float, c: FTRLConstants) -> tuple[float, float]:
    """A feature's root after the gradient g, and how far its weight then moves with z: 0 without curvature."""
    longer = math.sqrt(root * root + g * g)
    curvature = (c.beta + longer) * (1.0 / c.alpha) + c.l2
    return longer, 1.0 / curvature if curvature > LEAST_CURVATURE else 0.0


@inlined_kernel
def follow(w: float, z: float, g: float, growth: float, rate: float, c: FTRLConstants) -> tuple[float, float]:
    """A feature's weight and z after the gradient g, by which its root grew: argmin of z w + l1 |w| + w^2/(2 rate)."""
    z += g - growth * (1.0 / c.alpha) * w
    over = abs(z) - c.l1
    size = min(over * rate, c.radius) if over > 0.0 else 0.0
    return -size if z > 0.0 else size, z


@kernel
def run(state: FTRLState, rows: Entries, Y: Array, weight: Array, constants: FTRLConstants, out: Array) -> None:
    """Play the game over a block: forecast, read the label, compute the loss, follow the leader weight by weight."""
    indptr, indices, data = rows
    table, tally, c = state.table, state.tally, constants
    w, gradients, z, roots = table[:, WEIGHTS], table[:, GRADIENTS], table[:, Z], table[:, ROOT]
    r = w.shape[1]
    if r == 1:
        run_margin(state, rows, Y, weight, constants, out)
        return
    each, s, scratch = np.empty(r), np.empty(r), np.empty(r)
    for t in range(indptr.size - 1):
        first, last = indptr[t], indptr[t + 1]
        square = scores(w, indices, data, first, last, each)
        publish(each, out[t])
        if weight[t] == 0.0:
            continue
        loss = loss_and_slope(c.loss, each, Y[t], s, scratch)
        largest = 0.0
        for i in range(first, last):
            j, x = indices[i], weight[t] * data[i]
            for k in range(r):
                g = x * s[k]
                if g == 0.0:
                    continue
                largest = max(largest, abs(g))
                longer, rate = lengthened(roots[j, k], g, c)
                w[j, k], z[j, k] = follow(w[j, k], z[j, k], g, longer - roots[j, k], rate, c)
                roots[j, k] = longer
                gradients[j, k] += g
        count(tally, weight[t], loss, weight[t] * product(s, each), square, largest)


@kernel
def run_margin(state: FTRLState, rows: Entries, Y: Array, weight: Array, constants: FTRLConstants, out: Array) -> None:
    """`run` for one score per row: it takes half the time on sparse rows of a wide table.

    The score stays in a register, and roots and divisions are computed for many entries at once.
    """
    indptr, indices, data = rows
    table, tally, c, ahead = state.table, state.tally, constants, entries_ahead(state.table)
    last_class, some = Y.shape[1] - 1, np.uint64(AT_ONCE)
    roots, longer, rates = np.empty(AT_ONCE), np.empty(AT_ONCE), np.empty(AT_ONCE)
    for t in range(indptr.size - 1):
        first, last, heavy = np.uint64(indptr[t]), np.uint64(indptr[t + 1]), weight[t]
        margin, square = score(table, indices, data, first, last, ahead)
        publish_margin(margin, out, t)
        if heavy == 0.0:
            continue
        loss, slope = margin_loss(c.loss, margin, last_class == 1, Y[t, 0], Y[t, last_class])
        scale, largest = heavy * slope, 0.0
        for start in range(first, last, some):
            n = min(some, last - start)
            for i in range(n):
                roots[i] = table[indices[start + i], ROOT, 0]
            lengthen(roots, data, start, n, scale, c, longer, rates)
            for i in range(n):
                j, g = indices[start + i], data[start + i] * scale
                if g == 0.0:
                    continue
                largest = max(largest, abs(g))
                table[j, WEIGHTS, 0], table[j, Z, 0] = follow(
                    table[j, WEIGHTS, 0], table[j, Z, 0], g, longer[i] - roots[i], rates[i], c
                )
                table[j, ROOT, 0] = longer[i]
                table[j, GRADIENTS, 0] += g
        count(tally, heavy, loss, heavy * (slope * margin), square, largest)


@apart_kernel
def lengthen(
    roots: Array,
    data: Array,
    start: int,
    n: np.uint64,
    scale: float,
    c: FTRLConstants,
    longer: Array,
    rates: Array,
) -> None:
    """`lengthened` for the features of n entries, in vector instructions."""
    for i in range(n):
        longer[i], rates[i] = lengthened(roots[i], data[start + i] * scale, c)
