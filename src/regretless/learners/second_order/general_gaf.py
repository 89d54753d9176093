"""GeneralGAF: the Gaussian aggregating forecaster for any mixable loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.kernels.copying import copy_line, copy_lines
from regretless.core.kernels.jit import jitable, kernel, shared_kernel
from regretless.core.learner import OnlineRegressor
from regretless.core.numbers.tally import EXCESS, ROWS, WIDEST, record, require_unit_weights
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.second_order.algebra import (
    Work,
    add_identity_and_factor,
    backward,
    congruence,
    divide_by_factor,
    dot,
    factor,
    forward,
    trace,
    workspace,
)
from regretless.learners.second_order.merging import sum_of
from regretless.learners.second_order.mixable import (
    MixableLoss,
    SquaredLoss,
    forecast_by,
    gradient_by,
    hessian_by,
    value_by,
)
from regretless.learners.second_order.rounding import (
    MASS,
    ROOT,
    allowance,
    begin_root,
    charge,
    most_mass,
    note_jump,
    require_digits,
    watch,
)
from regretless.learners.second_order.surrogate import (
    SurrogateState,
    apply,
    apply_to_root,
    check,
    flush,
    fold,
    look,
    product,
    start,
)
from regretless.theory import bounds
from regretless.theory.bounds.assumptions import least_gaf_regularization
from regretless.theory.domains import Ball, Competition

MOST_STEPS = 100
CLOSE = 1e-14  # relative, of a Newton step that ends the search
ROUNDING = 1e-14  # relative, of a sum that has reached its minimum


class GAFConstants(NamedTuple):
    """The constants of the kernels."""

    radius: float
    regularization: float
    alpha: float
    feature_bound: float  # 0: each row uses its own norm
    numbers: Array  # of the loss


class GeneralGAF(OnlineRegressor):
    r"""The Gaussian aggregating forecaster for any mixable loss of one or several scores Wx.

    **Choose it when** you forecast numbers or vectors under a mixable loss, such as a smooth Huber loss against
    outliers, and want a logarithmic regret bound.

    The losses of past rows are replaced by quadratics below them, so that :math:`e^{-\alpha \tilde L}` is a Gaussian
    over W. The forecast is the one that mixability promises for this Gaussian, equation (4) of [GAF]_:

    .. math:: \ell(\hat z, y) \le -\frac1\alpha \ln E\,e^{-\alpha\,\ell(\omega, y)}
              \ \text{ for all } y, \qquad \omega \sim N(m, Q/(2\alpha)), \quad m = \bar W x,\
              Q = (I \otimes x)^T A^{-1} (I \otimes x).

    The quadratic of a row has its Hessian times :math:`\beta/2`, at the leader's scores *after* its target,
    :math:`z = m - \tfrac12 Q \nabla\ell(z, y)`. With `mixable.SquaredLoss` this is `VovkAzouryWarmuth`, with
    `mixable.SoftmaxLoss` it is `GAF`, and any subclass of `mixable.MixableLoss` will do.

    **Guarantee.** For every :math:`|W|_F \le B`, if :math:`\lambda \ge \max(4, m)\,\zeta R^2 / \alpha`: Theorem 1 of
    [GAF]_ (`regretless.bounds.gaf_general`). `regret_certificate()` needs (A3) only.

    Parameters
    ----------
    loss : a `regretless.mixable.MixableLoss`. None means `SquaredLoss()`, for targets of norm up to 1.
    radius : B, the largest Frobenius norm of comparators. No intercept is added: append a constant column.
    regularization : lambda, the coefficient of :math:`|W|^2`. None means the smallest of the theorem, for R =
        `feature_bound` (1 if it is None); for the squared loss, :math:`1/(4B^2)`.
    feature_bound : R. None means each row's own norm. A row with a larger norm than a given R is rejected.

    Attributes
    ----------
    n_outputs_ : m, the numbers per target.
    state_ : `P` (the inverse of A), `w` (the leader), `tally` (rows, rows of weight not 1, loss, excess, largest norm,
        largest scale, sums for rounding).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from regretless import GeneralGAF, mixable
    >>> X, y = load_diabetes(return_X_y=True)
    >>> learner = GeneralGAF(mixable.LogCoshLoss(scale=4.0, target_bound=2.0), radius=10.0, regularization=0.01)
    >>> forecast = learner.predict_then_learn(X, (y - 150) / 100)
    >>> print(f"{abs(forecast - (y - 150) / 100).mean():.3f}")
    0.459

    References
    ----------
    .. [GAF] Jézéquel, Gaillard and Rudi (2021), key `gaf` of REFERENCES.bib. Errata: docs/errata.md.
    """

    state_: SurrogateState
    _constants: GAFConstants
    takes_vectors = True

    def __init__(
        self,
        loss: MixableLoss | None = None,
        radius: float = 10.0,
        regularization: float | None = None,
        feature_bound: float | None = None,
    ) -> None:
        self.loss = loss
        self.radius = radius
        self.regularization = regularization
        self.feature_bound = feature_bound

    @classmethod
    def _example(cls) -> Self:
        return cls(SquaredLoss(target_bound=1e6))

    @property
    def _loss(self) -> MixableLoss:
        loss = self.__dict__.get("params_", self.__dict__)["loss"]
        if loss is None:
            return SquaredLoss()
        if not isinstance(loss, MixableLoss):
            raise ValueError(f"loss={loss!r}: pass a regretless.mixable.MixableLoss, such as mixable.LogCoshLoss().")
        return loss

    def _prepare(self, n_features: int, n_classes: int) -> GAFConstants:
        loss, radius = self._loss, validate.positive("radius", self.radius)
        bound = 0.0 if self.feature_bound is None else validate.positive("feature_bound", self.feature_bound)
        alpha = validate.positive("alpha of the loss", loss.alpha(self.n_outputs_))
        validate.positive("beta of the loss", loss.beta(radius * (bound or 1.0)))
        lam = self.regularization
        if lam is None:
            zeta = loss.zeta() * (bound or 1.0) ** 2
            least = least_gaf_regularization(n_scores=self.n_outputs_, alpha=alpha, zeta=zeta)
            lam = least or 1.0 / (4.0 * radius**2)
        numbers = loss.numbers()
        return GAFConstants(
            radius=radius,
            regularization=validate.positive("regularization", lam),
            alpha=alpha,
            feature_bound=bound,
            numbers=np.empty(0) if numbers is None else numbers,
        )

    def _start(self, n_features: int, n_classes: int) -> SurrogateState:
        return start(self.n_outputs_ * n_features, self._constants.regularization)

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return (self.n_outputs_ * n_features) ** 2

    def _check_state(self) -> None:
        check(self.state_, self._constants.regularization, min(self._largest))

    def _merged(self, states: Sequence[Any], common: Any, rule: str | float) -> Any:
        return sum_of(states, common)

    def _limits(self) -> tuple[float, float]:
        c = self._constants
        return c.feature_bound or math.inf, validate.reach(c.regularization)

    def _targets(self, y: Any, classes: Any) -> Array:
        Y = super()._targets(y, classes)
        self._loss.check_targets(Y.reshape(len(Y), -1))
        return Y

    @property
    def competes_with(self) -> Competition:
        """The best matrix in a Frobenius ball, under the given loss."""
        return Competition(self._loss.name, Ball(float(self._in_play.radius)))

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        r"""An upper bound on the regret against every comparator in the ball (or of a given norm).

        :math:`\lambda |W|^2 + \sum loss - \min_V [\lambda |V|^2 + \sum_s q_s(V)]`, valid because every quadratic lies
        below its loss on the ball: assumption (A3), with the loss's own `beta`.
        """
        check_is_fitted(self, "state_")
        state, domain = self.state_, self.competes_with.domain
        require_digits(state.P, state.tally, NoCertificate)
        norm = validate.comparator_norm(comparator_norm, domain, domain.largest_norm(self.n_outputs_))
        excess = float(state.tally[EXCESS]) + allowance(state.P, state.tally, merged=self._parts > 1)
        return self._constants.regularization * norm**2 + excess

    def regret_bound(self, n: int | None = None) -> float:
        """The bound of Theorem 1, with R the largest norm so far (or `feature_bound`)."""
        check_is_fitted(self, "state_")
        self._require_one_game()
        tally, c, loss = self.state_.tally, self._constants, self._loss
        require_unit_weights(tally)
        require_digits(self.state_.P, tally, NoBound)
        R = c.feature_bound or float(tally[WIDEST])
        return bounds.gaf_general(
            int(tally[ROWS]) if n is None else n,
            size=self.state_.w.size,
            n_scores=self.n_outputs_,
            radius=c.radius,
            regularization=c.regularization,
            alpha=c.alpha,
            beta=loss.beta(c.radius * R),
            zeta=loss.zeta() * R**2,
            gamma=loss.gamma() * R**2,
        )

    # ------------------------------------------------------------------ the game

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        n, c, betas = len(X), self._constants, self._betas(X)
        Y, out = Y.reshape(n, -1), out.reshape(n, -1)
        if c.numbers.size:
            run_compiled(self.state_, X, Y, weight, c, betas, None, out)
        else:
            run(self.state_, X, Y, weight, c, betas, self._loss, out)

    def _forecast(self, X: Array, out: Array) -> None:
        c, out = self._constants, out.reshape(len(X), -1)
        if c.numbers.size:
            forecast_compiled(self.state_, X, c, None, out)
        else:
            forecast_block(self.state_, X, c, self._loss, out)

    def _betas(self, X: Array) -> Array:
        """The constant beta of each row."""
        c, loss = self._constants, self._loss
        if c.feature_bound:
            return np.full(len(X), loss.beta(c.radius * c.feature_bound))
        return np.array([loss.beta(c.radius * size) for size in np.linalg.norm(X, axis=1)])


# The loop is a kernel for the losses of mixable.py, which are known by their numbers: `loss` is None. For a user's loss
# Python runs it, and its kernels stay compiled.


@jitable
def settle(work: Work, y: Array, weight: float, numbers: Array, loss: MixableLoss | None) -> None:
    """The leader's scores after the row's loss is added, z = m - (weight Q/2) g(z). Fills z, e = z - m, p = a, S = H.

    With z = m - Q a / 2 the point minimises a^T Q a / 4 + weight loss(z), convex in a, and a = weight g there. Newton's
    step solves (I + weight H Q / 2) da = weight g - a; it is halved until the sum falls enough.
    """
    m, e, z, a, Q, H = work.m, work.e, work.z, work.p, work.Q, work.S
    L, LQ, M, move = work.L, work.LQ, work.M, work.small
    g, b, Qg = work.vectors[2], work.vectors[3], work.vectors[4]
    K = m.size
    a[:] = 0.0
    copy_line(m, z)
    total = weight * value_by(loss, z, y, numbers)
    for _ in range(MOST_STEPS):
        gradient_by(loss, z, y, numbers, g)
        hessian_by(loss, z, y, numbers, H)
        for i in range(K):
            b[i] = weight * g[i] - a[i]
        # (I + weight H Q / 2)^{-1} = I - L (I + L^T Q L)^{-1} L^T Q, with L L^T = weight H / 2
        for i in range(K):
            for j in range(K):
                M[i, j] = 0.5 * weight * H[i, j]
        factor(M, L)
        congruence(L, Q, 1.0, LQ, M)
        add_identity_and_factor(M)
        for j in range(K):
            move[j] = dot(LQ[j], b)
        forward(M, move)
        backward(M, move)
        slope, size, far = 0.0, 0.0, 0.0
        for i in range(K):
            Qg[i] = dot(Q[i], b)
            b[i] -= dot(L[i], move)
            size, far = max(size, abs(b[i])), max(far, abs(a[i]), weight * abs(g[i]))
        for i in range(K):
            slope += 0.5 * b[i] * Qg[i]  # minus the derivative of the sum along the step
        if size <= CLOSE * far or slope <= 0.0:
            break
        step, found = 1.0, False
        while step > 1e-10:
            bend = 0.0
            for i in range(K):
                e[i] = 0.0
                for j in range(K):
                    e[i] -= 0.5 * Q[i, j] * (a[j] + step * b[j])
                bend -= 0.5 * e[i] * (a[i] + step * b[i])
            for i in range(K):
                z[i] = m[i] + e[i]
            now = bend + weight * value_by(loss, z, y, numbers)
            if now <= total - 1e-4 * step * slope + ROUNDING * abs(total):
                found = True
                break
            step *= 0.5
        if not found:  # only rounding is left
            break
        total = now
        for i in range(K):
            a[i] += step * b[i]
    for i in range(K):
        e[i] = 0.0
        for j in range(K):
            e[i] -= 0.5 * Q[i, j] * a[j]
        z[i] = m[i] + e[i]
    hessian_by(loss, z, y, numbers, H)


@shared_kernel
def weigh_quadratic(half: float, work: Work) -> tuple[float, float, float]:
    """The effect on P, w and the sums of the quadratic at z, whose matrix is S = half H.

    Its gradient at z is the loss's, so that the new leader has the scores z: w moves by the coefficients -a/2 along V,
    and the minimum of the sum grows by the loss at z plus a^T Q a / 4. Returns minus the latter, which is the growth of
    `excess` beyond the learner's loss minus the loss at z; its absolute terms; and the row's shift (rounding.py). On
    return work.S is the factor of S, work.L is R with R R^T = (I + S Q)^{-1} S, and work.vectors[0] the coefficients.
    """
    a, e, Q, S, L = work.p, work.e, work.Q, work.S, work.L
    coefficients = work.vectors[0]
    K = e.size
    growth, terms, shift = 0.0, 0.0, 0.0
    for i in range(K):
        coefficients[i] = -0.5 * a[i]
        growth += 0.5 * a[i] * e[i]
        terms += abs(a[i] * e[i]) + abs(a[i] * work.m[i])
        shift += Q[i, i] * coefficients[i] * coefficients[i]
        for j in range(K):
            S[i, j] *= half
    factor(S, L)
    copy_lines(L, S)
    congruence(L, Q, 1.0, work.LQ, work.M)
    add_identity_and_factor(work.M)
    divide_by_factor(L, work.M)
    return growth, terms, K * shift


def run(
    state: SurrogateState,
    X: Array,
    Y: Array,
    weight: Array,
    constants: GAFConstants,
    betas: Array,
    loss: MixableLoss | None,
    out: Array,
) -> None:
    """Play a block: forecast, see the target, compute the loss, replace it by its quadratic."""
    P, w, tally = state
    K, lam, numbers = out.shape[1], constants.regularization, constants.numbers
    identity, V, U, work = np.eye(K), np.empty((K, w.size)), np.zeros((K, w.size)), workspace(K, K)
    f, phi, root = np.empty(w.size), np.empty(w.size), tally[ROOT] != 0.0
    t = 0
    while t < X.shape[0]:
        if root:
            product(P, X[t], V)
        else:
            fold(P, U, X[t], V)
        size = look(V, w, X[t], identity, root, work)
        copy_lines(work.Q / (2.0 * constants.alpha), work.S)
        forecast_by(loss, work.m, work.S, numbers, out[t])
        if weight[t] == 0.0:
            U[:] = 0.0
            t += 1
            continue
        settle(work, Y[t], weight[t], numbers, loss)
        half = 0.5 * weight[t] * betas[t]
        mass = half * trace(work.S) * size * size / lam
        if not root and tally[MASS] + mass > most_mass(P):
            begin_root(P, tally)  # `fold` has applied the last update
            root = True
            continue
        suffered = value_by(loss, out[t], Y[t], numbers)
        at_point = value_by(loss, work.z, Y[t], numbers)
        if root:
            note_jump(tally, w.size, half * trace(work.S) * trace(work.Q), mass)
        growth, terms, shift = weigh_quadratic(half, work)
        record(tally, weight[t], weight[t] * suffered, growth + weight[t] * (suffered - at_point), size)
        charge(tally, mass, shift, weight[t] * abs(at_point) + terms)
        if root:
            copy_lines(work.S, work.L)
            apply_to_root(P, V, w, X[t], identity, (f, phi), work)
            watch(P, tally)
        else:
            apply(V, w, U, identity, work)
        t += 1
    if not root:
        flush(P, U)


def forecast_block(
    state: SurrogateState, X: Array, constants: GAFConstants, loss: MixableLoss | None, out: Array
) -> None:
    """The forecasts of a block of rows, all from the same state."""
    P, w, tally = state
    K = out.shape[1]
    identity, V, work = np.eye(K), np.empty((K, w.size)), workspace(K, K)
    for t in range(X.shape[0]):
        product(P, X[t], V)
        look(V, w, X[t], identity, tally[ROOT] != 0.0, work)
        copy_lines(work.Q / (2.0 * constants.alpha), work.S)
        forecast_by(loss, work.m, work.S, constants.numbers, out[t])


run_compiled, forecast_compiled = kernel(run), kernel(forecast_block)
