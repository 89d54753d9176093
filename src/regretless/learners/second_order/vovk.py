"""The Vovk-Azoury-Warmuth forecaster: online least squares."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.files import state_checks
from regretless.core.kernels.copying import copy_line
from regretless.core.kernels.jit import inlined_kernel, kernel, shared_kernel
from regretless.core.kernels.one_row import RowKernels
from regretless.core.learner import OnlineRegressor
from regretless.core.numbers.tally import EXCESS, ROWS, WIDEST, record, require_unit_weights
from regretless.core.rows import validate
from regretless.core.rows.validate import LARGEST_TARGET
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.second_order import panels
from regretless.learners.second_order.algebra import dot
from regretless.learners.second_order.device import PlaysOnDevice
from regretless.learners.second_order.merging import sum_of
from regretless.learners.second_order.panels import coefficients, look_at_one
from regretless.learners.second_order.roots import shrink
from regretless.learners.second_order.rounding import (
    MASS,
    ROOT,
    SUMS,
    allowance,
    begin_root,
    charge,
    most_mass,
    note_jump,
    require_digits,
    watch,
)
from regretless.learners.second_order.surrogate import (
    check,
    end_fold,
    flush_one,
    fold_one,
    fold_row,
    in_four,
    look_one,
    product_one,
)
from regretless.theory import bounds
from regretless.theory.domains import Competition, WholeSpace

HIGHEST = SUMS  # an additional entry of tally: the largest |y|


class VovkState(NamedTuple):
    """The state of the forecaster."""

    P: Array  # inverse of lam I + sum x x^T, or a root of it once tally[ROOT] is set
    w: Array  # the ridge solution, (d,), or (m, d) for targets of m numbers
    tally: Array  # the sums of tally.py and rounding.py, and the largest |y|


class VovkConstants(NamedTuple):
    """The constant of the kernels."""

    regularization: float


class VovkAzouryWarmuth(PlaysOnDevice, OnlineRegressor):
    r"""Online least squares, almost as good as the best linear predictor in hindsight.

    **Choose it when** you forecast numbers under the squared loss: it has nothing to tune but a small regularization,
    and competes with every linear predictor.

    The forecast at x is that of the ridge solution that already includes x with label 0:

    .. math:: \hat y = \theta \cdot x, \quad
              \theta = \arg\min\ \lambda|\theta|^2 + \sum_s (y_s - \theta \cdot x_s)^2 + (\theta \cdot x)^2,

    that is m / (1 + q) with m the ridge forecast and :math:`q = x^T A^{-1} x`. This is GAF for the squared loss.

    **Guarantee.** For every :math:`\theta`: :math:`\lambda|\theta|^2 + Y^2 d \ln(1 + nR^2/(\lambda d))`, Y and
    R the largest :math:`|y|` and :math:`|x|`
    (`regretless.bounds.vovk_azoury_warmuth`). The forecaster needs to know neither.

    Parameters
    ----------
    regularization : lambda, the coefficient of :math:`|\theta|^2`. No intercept is added: append a constant column.
    device : None, or a device of PyTorch, such as "cuda": the matrix is there, and its products, while a block of rows
        is learned or forecast (docs/gpu.md). It pays from about 1000 rows of the matrix on, d.

    Targets may be vectors, y of shape (n, m): then the loss is the sum over their entries, which share P, and Y is the
    largest norm.

    Attributes
    ----------
    n_outputs_ : m, the numbers per target.
    state_ : `P`, `w` (the ridge solution) and `tally` (rows, rows of weight not 1, loss, excess, largest norm, largest
        scale, sums for rounding, largest target).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from regretless import VovkAzouryWarmuth
    >>> X, y = load_diabetes(return_X_y=True)
    >>> learner = VovkAzouryWarmuth(regularization=0.1)
    >>> forecast = learner.predict_then_learn(X, (y - 150) / 100)
    >>> print(f"{((forecast - (y - 150) / 100) ** 2).mean():.3f}")
    0.322
    >>> print(f"regret <= {learner.regret_certificate(comparator_norm=10.0):.2f}")
    regret <= 18.12

    References
    ----------
    Vovk (2001) and Azoury and Warmuth (2001), keys `vovk` and `azoury-warmuth` of REFERENCES.bib.
    """

    state_: VovkState
    _constants: VovkConstants
    _one_step = True
    takes_vectors = True

    def __init__(self, regularization: float = 1.0, device: str | None = None) -> None:
        self.regularization = regularization
        self.device = device

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        two = setting.n_classes == 2
        return {"Vovk-Azoury-Warmuth": cls(regularization=1 / setting.radius**2)} if two else {}

    def _prepare(self, n_features: int, n_classes: int) -> VovkConstants:
        return VovkConstants(validate.positive("regularization", self.regularization))

    @property
    def coef_(self) -> Array:
        """The weights of the ridge solution: (1, d), or (m, d) for targets of m numbers."""
        check_is_fitted(self, "state_")
        return np.atleast_2d(self.state_.w).copy()

    def _start(self, n_features: int, n_classes: int) -> VovkState:
        lam = self._constants.regularization
        w = np.zeros((self.n_outputs_, n_features) if self.n_outputs_ > 1 else n_features)
        return VovkState(P=np.eye(n_features) / lam, w=w, tally=np.zeros(SUMS + 1))

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return n_features**2

    def _check_state(self) -> None:
        check(self.state_, self._constants.regularization, min(self._largest))
        state_checks.weights("w", self.state_.w, 1.0, most=state_checks.LARGEST_SQUARED)
        state_checks.within("tally, the largest target", self.state_.tally[HIGHEST], 0.0, LARGEST_TARGET)

    def _merged(self, states: Sequence[Any], common: Any, rule: str | float) -> Any:
        return sum_of(states, common)  # exact: its quadratics are the losses themselves

    def _limits(self) -> tuple[float, float]:
        return math.inf, validate.reach(self._constants.regularization)

    @property
    def competes_with(self) -> Competition:
        """Every linear predictor, under the squared loss."""
        return Competition("squared", WholeSpace())

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """An upper bound on the regret against all weights of the given norm (equality for the ridge solution)."""
        check_is_fitted(self, "state_")
        if comparator_norm is None:
            raise NoCertificate(
                "this learner competes with all linear predictors, and its regret grows with their norm: pass "
                "comparator_norm."
            )
        require_digits(self.state_.P, self.state_.tally, NoCertificate)
        size = validate.positive("comparator_norm", comparator_norm, zero=True)
        excess = float(self.state_.tally[EXCESS]) + allowance(self.state_.P, self.state_.tally, merged=self._parts > 1)
        return self._constants.regularization * size**2 + excess

    def regret_bound(self, n: int | None = None, comparator_norm: float | None = None) -> float:
        """The theorem's bound, with R and Y the largest norm and target so far."""
        check_is_fitted(self, "state_")
        tally = self.state_.tally
        if comparator_norm is None:
            raise NoBound("the bound grows with the comparator's norm: pass comparator_norm.")
        self._require_one_game()
        require_unit_weights(tally)
        require_digits(self.state_.P, tally, NoBound)
        return bounds.vovk_azoury_warmuth(
            int(tally[ROWS]) if n is None else n,
            n_features=self.n_features_in_,
            comparator_norm=validate.positive("comparator_norm", comparator_norm, zero=True),
            feature_bound=float(tally[WIDEST]),
            label_bound=float(tally[HIGHEST]),
            regularization=self._constants.regularization,
        )

    @property
    def least_rows(self) -> int:
        """See `OnlineLearner`."""
        return panels.least_rows(self.state_.w.size) if self.n_outputs_ == 1 else 1

    def _row_kernels(self) -> RowKernels | None:
        return self._by_kernels(run, forecast_rows) if self.n_outputs_ == 1 else None

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        if self.n_outputs_ > 1:
            run_vectors(self.state_, X, Y, weight, self._constants, out)
            return
        self._play_panels(panels.Kernels(run, run_panel), X, Y, weight, self._constants, out)

    def _forecast(self, X: Array, out: Array) -> None:
        if self.n_outputs_ > 1:
            forecast_vectors(self.state_, X, out)
        elif not self._foresee_panels(panels.Kernels(run, run_panel), X, np.zeros_like(out), self._constants, out):
            forecast_block(self.state_, X, out)


@inlined_kernel
def lengths(m: float, q: float, y: float, weight: float) -> tuple[float, float]:
    """The step of w along v when weight (y - theta.x)^2 is added, and the increase of the sum's minimum."""
    step = weight * (y - m) / (1.0 + weight * q)
    return step, step * (y - m)


@inlined_kernel
def move(w: Array, v: Array, u: Array, q: float, weight: float, step: float) -> None:
    """w += step v; u is set to the pending update of P."""
    root = math.sqrt(weight / (1.0 + weight * q))
    for i in range(w.size):
        w[i] += step * v[i]
        u[i] = root * v[i]


@inlined_kernel
def count(
    tally: Array, weight: float, y: float, forecast: float, rise: float, square: float, mass: float, shift: float
) -> None:
    """Add a row to all running sums."""
    loss = weight * (y - forecast) ** 2
    record(tally, weight, loss, loss - rise, math.sqrt(square))
    charge(tally, mass, shift, weight * y * y)
    tally[HIGHEST] = max(tally[HIGHEST], abs(y))


@kernel
def run(state: VovkState, X: Array, Y: Array, weight: Array, constants: VovkConstants, out: Array) -> None:
    """Play a block: forecast, see the target, compute the loss, update."""
    P, _, tally = state
    done = run_rows(state, X, Y, weight, constants, out) if tally[ROOT] == 0.0 else 0
    if done < X.shape[0]:
        if tally[ROOT] == 0.0:
            begin_root(P, tally)
        run_by_root(state, X[done:], Y[done:], weight[done:], constants, out[done:])


@kernel
def run_rows(state: VovkState, X: Array, Y: Array, weight: Array, constants: VovkConstants, out: Array) -> int:
    """Play rows until P has too few digits; returns the number of rows played.

    This loop, `run_by_root` and `run_panel` differ in how they read and update P. What a row does is in `lengths`,
    `move` and `count`. (As in aioli.py, one loop for all three would be slower.)
    """
    P, w, tally = state
    v, u, most, per_square = np.empty(w.size), np.zeros(w.size), most_mass(P), 1.0 / constants.regularization
    four, done = in_four(P, X.shape[0]), X.shape[0]
    for t in range(X.shape[0]):
        m, square = fold_row(P, four, u, w, X, t, v)
        q = look_one(v, X, t)
        out[t] = m / (1.0 + q)
        if weight[t] == 0.0:
            u[:] = 0.0
            continue
        mass = weight[t] * square * per_square
        if tally[MASS] + mass > most:
            u[:] = 0.0
            done = t
            break
        step, rise = lengths(m, q, Y[t], weight[t])
        move(w, v, u, q, weight[t], step)
        count(tally, weight[t], Y[t], out[t], rise, square, mass, step * step * q)
    end_fold(P, four, u)
    return done


@kernel
def run_by_root(state: VovkState, X: Array, Y: Array, weight: Array, constants: VovkConstants, out: Array) -> None:
    """Play a block when P's array holds a root S."""
    S, w, tally = state
    lam = constants.regularization
    f = np.empty(w.size)
    for t in range(X.shape[0]):
        m, square = product_one(S, w, X, t, f)
        q = dot(f, f)
        out[t] = m / (1.0 + q)
        if weight[t] == 0.0:
            continue
        step, rise = lengths(m, q, Y[t], weight[t])
        shrink(S, w, X[t], f, q, weight[t], step)
        note_jump(tally, w.size, weight[t] * q, weight[t] * square / lam)
        count(tally, weight[t], Y[t], out[t], rise, square, weight[t] * square / lam, step * step * q)
        watch(S, tally)


@kernel
def run_panel(panel: panels.Panel, tally: Array, Y: Array, weight: Array, constants: VovkConstants, out: Array) -> int:
    """Play a panel in coefficients of its rows; returns the number of rows for which P has enough digits."""
    lam = constants.regularization
    C = np.empty((1, panel.omega.size))
    for t in range(weight.size):
        coefficients(panel, t, C)
        c, w, u = C[0], panel.omega, panel.U[t]
        m, q, square = look_at_one(panel, t, c)
        out[t] = m / (1.0 + q)
        if weight[t] == 0.0:
            continue
        mass = weight[t] * square / lam
        if tally[MASS] + mass > panel.most_mass or weight[t] * panel.G[t, t] > panel.most_growth:
            return t
        step, rise = lengths(m, q, Y[t], weight[t])
        move(w, c, u, q, weight[t], step)
        note_jump(tally, panel.size, weight[t] * q, mass)
        count(tally, weight[t], Y[t], out[t], rise, square, mass, step * step * q)
    return weight.size


@shared_kernel
def forecast_block(state: VovkState, X: Array, out: Array) -> None:
    """The forecasts of a block of rows, all from the same state."""
    P, w, tally = state
    v = np.empty(w.size)
    for t in range(X.shape[0]):
        m, _ = product_one(P, w, X, t, v)
        q = look_one(v, X, t) if tally[ROOT] == 0.0 else dot(v, v)
        out[t] = m / (1.0 + q)


@kernel
def forecast_rows(state: VovkState, X: Array, constants: VovkConstants, out: Array) -> None:
    """`forecast_block`, which needs no constants."""
    forecast_block(state, X, out)


@kernel
def run_vectors(state: VovkState, X: Array, Y: Array, weight: Array, constants: VovkConstants, out: Array) -> None:
    """`run` for targets of several numbers: one P for all, row by row."""
    P, W, tally = state
    d, lam, root = P.shape[0], constants.regularization, tally[ROOT] != 0.0
    v, u, along, unused = np.empty(d), np.zeros(d), np.empty(d), np.zeros(d)
    t = 0
    while t < X.shape[0]:
        _, square = product_one(P, W[0], X, t, v) if root else fold_one(P, u, W[0], X, t, v)
        q = dot(v, v) if root else look_one(v, X, t)
        for k in range(W.shape[0]):
            out[t, k] = dot(W[k], X[t]) / (1.0 + q)
        if weight[t] == 0.0:
            u[:] = 0.0
            t += 1
            continue
        mass = weight[t] * square / lam
        if not root and tally[MASS] + mass > most_mass(P):
            u[:] = 0.0  # `fold_one` has applied the last update
            begin_root(P, tally)
            root = True
            continue
        if root:
            for i in range(d):
                along[i] = dot(P[i], v)
            note_jump(tally, d, weight[t] * q, mass)
        else:
            copy_line(v, along)
        loss, rise, shift, largest = 0.0, 0.0, 0.0, 0.0
        for k in range(W.shape[0]):
            step, more = lengths(dot(W[k], X[t]), q, Y[t, k], weight[t])
            for i in range(d):
                W[k, i] += step * along[i]
            loss += weight[t] * (Y[t, k] - out[t, k]) ** 2
            rise += more
            shift += step * step * q
            largest += Y[t, k] * Y[t, k]
        record(tally, weight[t], loss, loss - rise, math.sqrt(square))
        charge(tally, mass, shift, weight[t] * largest)
        tally[HIGHEST] = max(tally[HIGHEST], math.sqrt(largest))
        if root:
            shrink(P, unused, X[t], v, q, weight[t], 0.0)
            watch(P, tally)
        else:
            shrunk = math.sqrt(weight[t] / (1.0 + weight[t] * q))
            for i in range(d):
                u[i] = shrunk * v[i]
        t += 1
    if not root:
        flush_one(P, u)


@kernel
def forecast_vectors(state: VovkState, X: Array, out: Array) -> None:
    """`forecast_block` for targets of several numbers."""
    P, W, tally = state
    v = np.empty(P.shape[0])
    for t in range(X.shape[0]):
        product_one(P, W[0], X, t, v)
        q = look_one(v, X, t) if tally[ROOT] == 0.0 else dot(v, v)
        for k in range(W.shape[0]):
            out[t, k] = dot(W[k], X[t]) / (1.0 + q)
