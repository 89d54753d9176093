"""AIOLI: improper binary online logistic regression with logarithmic regret, without a factor e^B."""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple, Self

import numpy as np

from regretless.core.kernels.borrow import borrowed, keep
from regretless.core.kernels.jit import inlined_kernel, kernel, shared_kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.numbers.tally import record
from regretless.core.rows import validate
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.second_order import descent, panels
from regretless.learners.second_order.algebra import dot
from regretless.learners.second_order.curvature import kappa_of
from regretless.learners.second_order.forecasts import solve_margin, tanh_of_half
from regretless.learners.second_order.learner import SurrogateClassifier
from regretless.learners.second_order.panels import coefficients, look_at_one
from regretless.learners.second_order.roots import shrink
from regretless.learners.second_order.rounding import (
    MASS,
    ROOT,
    begin_root,
    charge,
    most_mass,
    note_jump,
    watch,
)
from regretless.learners.second_order.surrogate import (
    SurrogateState,
    end_fold,
    flush_one,
    fold_row,
    in_four,
    look_one,
    product_one,
)
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition

LOG_2 = math.log(2.0)


class AIOLIConstants(NamedTuple):
    """The constants of the kernels."""

    radius: float
    regularization: float
    code: int  # the curvature rule
    number: float  # the curvature, if it is given as a number
    feature_bound: float  # 0: each row uses its own norm
    virtual_weight: float  # times the factor of the pull after merging


class AIOLI(SurrogateClassifier):
    r"""Binary online logistic regression, almost as good as the best weights in a ball.

    **Choose it when** you have two classes, rows of bounded norm and at most a few hundred columns, and want the
    smallest certificate against linear models. `OnlineLogisticRegression` forecasts better on raw data.

    The forecast at x is the margin :math:`u = \theta \cdot x` of the minimiser of the quadratics of past rows plus the
    losses of *both* labels of x,

    .. math:: \lambda |\theta|^2 + \sum_s q_s(\theta) + a\,[\ell(\theta \cdot x, +1) + \ell(\theta \cdot x, -1)],

    which is one scalar equation, :math:`u + a \tfrac q2 \tanh \tfrac u2 = m` with :math:`m = \bar\theta \cdot x`,
    :math:`q = x^T A^{-1} x`. The virtual labels move an uncertain forecast towards probability 1/2, which makes the
    forecast improper and the regret small. A row costs one product with :math:`A^{-1}` and one rank-one update.

    **Guarantee.** For every :math:`|\theta| \le B` and every stream:
    :math:`\lambda B^2 + a \frac{d}{2\kappa}\ln(1 + \frac{\kappa n R^2}{4 d\lambda})` (Theorem 1 of [AIOLI]_;
    `regretless.bounds.aioli`), with R the largest :math:`|x|`. `regret_certificate()` is the same guarantee, evaluated
    on the actual rows.

    Parameters
    ----------
    radius : B, the largest norm of comparators. No intercept is added: append a constant column.
    regularization : lambda, the coefficient of :math:`|\theta|^2`; None means 1 / radius**2.
    curvature : kappa of the quadratics: "sharp", "gaf", "aioli", "folklore" or a number.
    virtual_weight : a. 1 is the paper's; 1/2 halves the worst-case bound (and is FOLKLORE with K = 2).
    feature_bound : R. None means each row's own norm. A number is the papers' constant; a row with a larger norm is
        rejected.
    precision : "double", or "single" to store P in float32, which halves most of the memory and memory traffic.
        Forecasts then agree to about 1e-6, and there is no certificate after a few hundred rows (docs/rounding.md).
    device : None, or a device of PyTorch, such as "cuda": the matrix is there, and its products, while a block of rows
        is learned or forecast (docs/gpu.md). It pays from about 1000 rows of the matrix on, (K-1) d.
    solver : "exact" solves the scalar equation; "descent" is the paper's Algorithm 2, gradient descent from 0, which
        takes :math:`R^2/\lambda` times a logarithm of n steps (Theorem 4; `regretless.bounds.aioli_descent`), for
        comparison. It needs virtual_weight=1.
    steps : the number of steps per row, for solver="descent". None means enough for a total error of 1.

    Attributes
    ----------
    classes_ : the two labels; a positive margin means the second.
    state_ : `P` (the inverse of A), `w` (the leader), `tally` (rows, rows of weight not 1, loss, excess, largest norm,
        largest scale, sums for rounding).

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> learner = AIOLI(radius=5.0)
    >>> p = learner.predict_then_learn(X, y)
    >>> print(f"{-np.log(np.where(y, p[:, 1], p[:, 0])).mean():.4f}")
    0.4560
    >>> print(f"regret <= {learner.regret_certificate():.1f} <= {learner.regret_bound():.1f}")
    regret <= 31.0 <= 158.3

    References
    ----------
    .. [AIOLI] Jézéquel, Gaillard and Rudi (2020), key `aioli` of REFERENCES.bib. Errata: docs/errata.md.
    """

    binary_only = True
    _constants: AIOLIConstants | descent.DescentConstants
    _logits_per_weight: ClassVar[float] = 0.5
    _makes_up_for_pull = True

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float | None = None,
        curvature: str | float = "sharp",
        virtual_weight: float = 1.0,
        feature_bound: float | None = None,
        precision: str = "double",
        solver: str = "exact",
        steps: int | None = None,
        device: str | None = None,
    ) -> None:
        self.radius = radius
        self.regularization = regularization
        self.curvature = curvature
        self.virtual_weight = virtual_weight
        self.feature_bound = feature_bound
        self.precision = precision
        self.solver = solver
        self.steps = steps
        self.device = device

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        B = setting.radius
        two = setting.n_classes == 2
        return {"AIOLI": cls(radius=B), "AIOLI, a = 1/2": cls(radius=B, virtual_weight=0.5)} if two else {}

    def _default_regularization(self, radius: float, n_classes: int) -> float:
        return 1.0 / radius**2

    @property
    def competes_with(self) -> Competition:
        """The best weights in a ball, under the log loss."""
        return Competition("logistic", Ball(self._radius))

    def regret_bound(self, n: int | None = None) -> float:
        """The bound of Theorem 1 (or 4), with R the largest norm so far (or `feature_bound`)."""
        if isinstance(self._in_play, descent.DescentConstants):
            steps = self._in_play.steps
            return bounds.aioli_descent(**self._theorem(n), steps=None if steps == descent.BY_RULE else steps)
        return bounds.aioli(**self._theorem(n), virtual_weight=self._constants.virtual_weight)

    def _prepare(self, n_features: int, n_classes: int) -> AIOLIConstants | descent.DescentConstants:
        a = validate.positive("virtual_weight", self.virtual_weight, zero=True)
        shared = self._shared_constants(n_classes)
        if self.solver == "exact":
            return AIOLIConstants(*shared, virtual_weight=a * self._pull)
        if self.solver != "descent":
            raise ValueError(f'solver={self.solver!r} is unknown: choose "exact" or "descent".')
        if a != 1.0:
            raise ValueError(f'virtual_weight={a}: solver="descent" is for virtual_weight=1. Or use solver="exact".')
        return descent.constants_of(shared, self.steps)

    def _limits(self) -> tuple[float, float]:
        declared, largest = super()._limits()
        return declared, min(largest, descent.largest_row(self._constants))

    def _pull_by(self, factor: float) -> None:
        super()._pull_by(factor if isinstance(self._constants, AIOLIConstants) else 1.0)  # Algorithm 2 has weight 1

    def _row_kernels(self) -> RowKernels | None:
        return self._by_kernels(run, forecast_block) if isinstance(self._constants, AIOLIConstants) else None

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c = self._constants
        if isinstance(c, descent.DescentConstants):
            descent.run(self.state_, X, Y, weight, c, out)
        else:
            self._play_panels(panels.Kernels(run, run_panel), X, Y, weight, c, out)

    def _forecast(self, X: Array, out: Array) -> None:
        c = self._constants
        if isinstance(c, descent.DescentConstants):
            descent.forecast_block(self.state_, X, c, out)
        elif not self._foresee_panels(panels.Kernels(run, run_panel), X, np.zeros_like(out), c, out):
            forecast_block(self.state_, X, c, out)


@inlined_kernel
def forecast(m: float, q: float, a: float) -> tuple[float, float]:
    """The margin u with u + a (q/2) tanh(u/2) = m, and T = tanh(u/2)."""
    return solve_margin(m, tanh_of_half(m), 0.5 * a * q)


@inlined_kernel
def log_loss(margin: float, T: float, y: float) -> float:
    """The log loss of a margin with T = tanh(margin/2), if the second class has probability y."""
    return max(margin, 0.0) - y * margin - math.log(0.5 + 0.5 * abs(T))


@inlined_kernel
def bends(T: float, y: float, kappa: float, weight: float) -> tuple[float, float]:
    """The curvature c and the gradient g of the quadratic at a margin with T = tanh(margin/2).

    p = (1 + T) / 2, and p (1 - p) = (1 - T^2) / 4.
    """
    return 0.25 * weight * kappa * (1.0 - T * T), weight * (0.5 * T + (0.5 - y))


@inlined_kernel
def lengths(q: float, e: float, c: float, g: float) -> tuple[float, float, float]:
    """The effect of the quadratic at the margin m + e, with curvature c and gradient g.

    Returns the step of w along v, the growth of the excess, and the sum of the absolute terms of this growth, which
    bounds their rounding. It is `surrogate.weigh` in scalars; AIOLI's e is -a q T / 2. (The paper's b += (eta g.theta -
    1) g is twice what its equation (5) gives: docs/errata.md.)
    """
    shrunk = 1.0 / (1.0 + c * q)
    step = (c * e - 0.5 * g) * shrunk
    first, second = e * ((g - c * e) * shrunk), 0.25 * g * q * (g * shrunk)
    return step, first + second, abs(first) + second


@inlined_kernel
def move(w: Array, v: Array, u: Array, q: float, c: float, step: float) -> None:
    """w += step v; u is set to the pending update of P."""
    grown = 1.0 + c * q
    root = math.sqrt(c / grown)
    for i in range(w.size):
        w[i] += step * v[i]
        u[i] = root * v[i]


@shared_kernel
def run(state: SurrogateState, X: Array, Y: Array, weight: Array, constants: AIOLIConstants, out: Array) -> None:
    """Play a block: forecast, see the label, compute the loss, update."""
    state, X, Y, weight, out = borrowed((state, X, Y, weight, out))
    P, _, tally = state
    if X.shape[0] == 1 and weight[0] == 1.0 and run_one(state, X, Y, constants, out):
        return
    done = run_rows(state, X, Y, weight, constants, out) if tally[ROOT] == 0.0 else 0
    if done < X.shape[0]:
        if tally[ROOT] == 0.0:
            begin_root(P, tally)
        run_by_root(state, X[done:], Y[done:], weight[done:], constants, out[done:])


@kernel
def run_one(state: SurrogateState, X: Array, Y: Array, constants: AIOLIConstants, out: Array) -> bool:
    """`run` for one row of weight 1: without the loop, in half the time at d = 20.

    Returns False, without any change, if P has too few digits for the row.
    """
    (P, w, tally), X, Y, out = borrowed((state, X, Y, out))
    if tally[ROOT] != 0.0:
        return False
    own_scratch = np.empty((2, w.size))
    scratch = borrowed(own_scratch)
    v, u = scratch[0], scratch[1]
    m, square = product_one(P, w, X, 0, v)
    q = look_one(v, X, 0)
    margin, T = forecast(m, q, constants.virtual_weight)
    size = math.sqrt(square)
    y = Y[0, 1]
    kap = kappa_of(constants, size, 0.5, 2)
    c, g = bends(T, y, kap, 1.0)
    step, growth, terms = lengths(q, -0.5 * constants.virtual_weight * q * T, c, g)
    mass = c * square * (1.0 / constants.regularization)
    if tally[MASS] + mass > most_mass(P):
        return False
    out[0, 0] = -0.5 * margin
    out[0, 1] = 0.5 * margin
    move(w, v, u, q, c, step)
    record(tally, 1.0, log_loss(margin, T, y), growth, size)
    charge(tally, mass, step * step * q, LOG_2 + abs(m) + terms)
    flush_one(P, u)
    keep(own_scratch)
    return True


@kernel
def run_rows(state: SurrogateState, X: Array, Y: Array, weight: Array, constants: AIOLIConstants, out: Array) -> int:
    """Play rows until P has too few digits; returns the number of rows played."""
    P, w, tally = state
    a, per_square = constants.virtual_weight, 1.0 / constants.regularization
    v, u, most = np.empty(w.size), np.zeros(w.size), most_mass(P)
    four, done = in_four(P, X.shape[0]), X.shape[0]
    for t in range(X.shape[0]):
        m, square = fold_row(P, four, u, w, X, t, v)
        tanh = tanh_of_half(m)  # here, so that the processor computes it while it waits for v
        q = look_one(v, X, t)
        margin, T = solve_margin(m, tanh, 0.5 * a * q)
        size = math.sqrt(square)
        kap = kappa_of(constants, size, 0.5, 2)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
        if weight[t] == 0.0:
            u[:] = 0.0
            continue
        y = Y[t, 1]
        c, g = bends(T, y, kap, weight[t])
        step, growth, terms = lengths(q, -0.5 * a * q * T, c, g)
        mass = c * square * per_square
        if tally[MASS] + mass > most:
            u[:] = 0.0
            done = t
            break
        move(w, v, u, q, c, step)
        record(tally, weight[t], weight[t] * log_loss(margin, T, y), growth, size)
        charge(tally, mass, step * step * q, weight[t] * (LOG_2 + abs(m)) + terms)
    end_fold(P, four, u)
    return done


@shared_kernel
def run_by_root(
    state: SurrogateState, X: Array, Y: Array, weight: Array, constants: AIOLIConstants, out: Array
) -> None:
    """Play a block when P's array holds a root S."""
    S, w, tally = state
    a, lam = constants.virtual_weight, constants.regularization
    f = np.empty(w.size)
    for t in range(X.shape[0]):
        m, square = product_one(S, w, X, t, f)
        q = dot(f, f)
        margin, T = forecast(m, q, a)
        size = math.sqrt(square)
        kap = kappa_of(constants, size, 0.5, 2)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
        if weight[t] == 0.0:
            continue
        y = Y[t, 1]
        c, g = bends(T, y, kap, weight[t])
        step, growth, terms = lengths(q, -0.5 * a * q * T, c, g)
        shrink(S, w, X[t], f, q, c, step)
        note_jump(tally, w.size, c * q, c * square / lam)
        record(tally, weight[t], weight[t] * log_loss(margin, T, y), growth, size)
        charge(tally, c * square / lam, step * step * q, weight[t] * (LOG_2 + abs(m)) + terms)
        watch(S, tally)


@kernel
def run_panel(panel: panels.Panel, tally: Array, Y: Array, weight: Array, constants: AIOLIConstants, out: Array) -> int:
    """Play a panel in coefficients of its rows; returns the number of rows for which P has enough digits.

    The loop is repeated here, in `run_by_root` and, for one row, in `run_one`: a shared function of all these arrays,
    inlined or called, makes `run_rows` a quarter slower at d = 20.
    """
    a, lam = constants.virtual_weight, constants.regularization
    C = np.empty((1, panel.omega.size))
    for t in range(weight.size):
        coefficients(panel, t, C)
        c, w, u = C[0], panel.omega, panel.U[t]
        m, q, square = look_at_one(panel, t, c)
        margin, T = forecast(m, q, a)
        size = math.sqrt(square)
        kap = kappa_of(constants, size, 0.5, 2)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
        if weight[t] == 0.0:
            continue
        y = Y[t, 1]
        bend, g = bends(T, y, kap, weight[t])
        step, growth, terms = lengths(q, -0.5 * a * q * T, bend, g)
        mass = bend * square / lam
        if tally[MASS] + mass > panel.most_mass or bend * panel.G[t, t] > panel.most_growth:
            return t
        move(w, c, u, q, bend, step)
        note_jump(tally, panel.size, bend * q, mass)
        record(tally, weight[t], weight[t] * log_loss(margin, T, y), growth, size)
        charge(tally, mass, step * step * q, weight[t] * (LOG_2 + abs(m)) + terms)
    return weight.size


@shared_kernel
def forecast_block(state: SurrogateState, X: Array, constants: AIOLIConstants, out: Array) -> None:
    """The forecasts of a block of rows, all from the same state."""
    P, w, tally = borrowed(state)
    X, out, own_v = borrowed(X), borrowed(out), np.empty(w.size)
    v = borrowed(own_v)
    for t in range(X.shape[0]):
        m, _ = product_one(P, w, X, t, v)
        q = look_one(v, X, t) if tally[ROOT] == 0.0 else dot(v, v)
        margin, _ = forecast(m, q, constants.virtual_weight)
        out[t, 0] = -0.5 * margin
        out[t, 1] = 0.5 * margin
    keep(own_v)
