"""KernelGAF: GAF in a reproducing kernel Hilbert space, for two or more classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from regretless.core.files import state_checks
from regretless.core.interrupts import listen, pressed
from regretless.core.kernels.jit import kernel
from regretless.core.numbers.tally import ROWS
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.refitting.kernel_learner import Approximation, KernelClassifier, extended
from regretless.learners.second_order import multiclass
from regretless.learners.second_order.algebra import (
    Work,
    add_identity_and_factor,
    congruence,
    dot,
    hessian_factor,
    workspace,
)
from regretless.learners.second_order.gaf import Sampled
from regretless.learners.second_order.multiclass import Digits, MulticlassConstants, Sampling
from regretless.learners.second_order.rounding import SUMS
from regretless.learners.second_order.surrogate import SurrogateState, helmert, lift
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition

NOISE = 1e-14  # of the first variance: a smaller remainder is rounding
NO_LIMITS = Digits(math.inf, math.inf, 0.0, 1)


class ExactState(NamedTuple):
    """The state of the exact form. All fields but `tally` grow; `triangle` with the square of the number of rows."""

    X: Array  # (n, d): every row
    factors: Array  # (n, r, r): F with F F^T the matrix of the row's quadratic, in reduced coordinates
    triangle: Array  # (n r (n r + 1) / 2,): the lower Cholesky factor of lam I + G, row by row
    alpha: Array  # (n, r): the leader is sum alpha_i (x) phi(x_i)
    tally: Array


class KernelConstants(NamedTuple):
    """The numbers of `GAF`, and the approximation of the kernel."""

    radius: float
    regularization: float
    code: int  # of the curvature's name
    number: float  # the curvature itself, if it is given as a number
    feature_bound: float  # 0: each row uses its own norm
    H: Array
    sampling: Sampling
    approximation: Approximation

    @property
    def of_gaf(self) -> MulticlassConstants:
        """The numbers that the kernels of GAF read, with points that they may overwrite."""
        sampling = self.sampling._replace(points=self.sampling.points.copy())
        return MulticlassConstants(*self[:6], sampling=sampling, pull=1.0)


class KernelGAF(Sampled, KernelClassifier):
    r"""GAF with a kernel: multiclass online logistic regression against nonlinear functions.

    **Choose it when** as `KernelAIOLI`, with more than two classes.

    The comparators are K functions of the Hilbert space of the kernel, of joint norm at most B. It is `GAF` on the rows
    :math:`\varphi(x)`, which are never formed (Section 6 of [GAF]_ asks for it). In the r = K - 1 coordinates of logits
    that matter, let row s have the quadratic with the matrix :math:`F_sF_s^T`, and G the Gram matrix of the vectors
    :math:`F_{s,j} \otimes \varphi(x_s)`, :math:`G_{(s,j),(t,l)} = (F_{s,j} \cdot F_{t,l})\,k(x_s, x_t)`. With
    :math:`c_{k,(s,j)} = F_{s,kj}\,k(x_s, x)`,

    .. math:: m_k = \sum_s \alpha_{sk}\,k(x_s, x), \qquad
              Q_{kl} = \tfrac1\lambda\bigl(\delta_{kl}\,k(x, x) - c_k^T (\lambda I + G)^{-1} c_l\bigr)

    from a Cholesky factor that grows by r rows per round: time :math:`O(K^3t^2)` and memory :math:`O(K^2t^2)` for row
    t. "nystrom" and "random-features" run `GAF` on m features, as in `KernelAIOLI`.

    **Guarantee.** For every f of norm at most B, if :math:`\lambda \ge \max(4, K-1)\,R^2/(2\ln 2)`: regret at most
    :math:`\lambda B^2 + (K-1)(\frac12 + \frac{\sqrt3}\kappa) \ln\det(I + \frac{\kappa}{2\lambda} K)`
    (`regretless.bounds.kernel_gaf`), R the largest :math:`\sqrt{k(x, x)}`. On features the theorem of `GAF` for m
    features applies. `regret_certificate()` needs no assumption on lambda.

    Parameters
    ----------
    kernel : "linear", "rbf", "polynomial" or a positive definite function of two rows (which is not checked, and
        cannot be saved).
    gamma, degree, coef0 : parameters of the kernel, as in scikit-learn; gamma None means 1 / (number of features).
    approximation : "exact", "nystrom" or "random-features".
    budget : m, the landmarks or random features (an even number); None means 100.
    random_state : seed of the random frequencies and of the points of the expectation.
    radius, regularization, curvature, expectation, n_samples, smoothing, horizon, feature_bound : as in `GAF`, with
        :math:`\sqrt{k(x, x)}` for :math:`|x|`: 1 for "rbf".

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    state_ : `X`, `factors`, `triangle`, `alpha` and `tally`, or on features `P`, `w`, `moment`, `points`, `factor` and
        `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import GAF, KernelGAF
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(300, 2))
    >>> y = np.digitize((X**2).sum(axis=1), [1.0, 3.0])
    >>> few = {"approximation": "nystrom", "budget": 20}
    >>> for learner in [GAF(), KernelGAF(gamma=0.5), KernelGAF(gamma=0.5, **few)]:
    ...     p = learner.set_params(regularization=0.1).predict_then_learn(X, y)
    ...     print(f"{-np.log(p[np.arange(300), y]).mean():.3f}")
    1.171
    0.486
    0.498

    References
    ----------
    .. [GAF] Jézéquel, Gaillard and Rudi (2021), key `gaf` of REFERENCES.bib. Errata: docs/errata.md.
    """

    _constants: KernelConstants
    grows = ("X", "factors", "triangle", "alpha")

    def __init__(
        self,
        kernel: str | Callable[[Array, Array], float] = "rbf",
        gamma: float | None = None,
        degree: int = 3,
        coef0: float = 1.0,
        approximation: str = "exact",
        budget: int | None = None,
        random_state: int = 0,
        radius: float = 10.0,
        regularization: float | None = None,
        curvature: str | float = "sharp",
        expectation: str = "auto",
        n_samples: int = 128,
        smoothing: float | str = 0.0,
        horizon: int | None = None,
        feature_bound: float | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.approximation = approximation
        self.budget = budget
        self.random_state = random_state
        self.radius = radius
        self.regularization = regularization
        self.curvature = curvature
        self.expectation = expectation
        self.n_samples = n_samples
        self.smoothing = smoothing
        self.horizon = horizon
        self.feature_bound = feature_bound

    # ------------------------------------------------------------------ the numbers, and the start

    def _prepare(self, n_features: int, n_classes: int) -> KernelConstants:
        return KernelConstants(
            *self._shared_constants(n_classes),
            H=helmert(n_classes),
            sampling=self._sampling(n_classes),
            approximation=self._chosen_approximation(n_features),
        )

    def _no_rows(self, n_features: int) -> ExactState:
        r = self._n_classes - 1
        return ExactState(np.empty((0, n_features)), np.empty((0, r, r)), np.empty(0), np.empty((0, r)), np.zeros(SUMS))

    def _grown(self, field: str, n: int) -> int:
        return triangular(n * (self._n_classes - 1)) if field == "triangle" else n

    def _factors(self, state: ExactState) -> Array:
        state_checks.sums("factors", state.factors)
        return state.factors

    # ------------------------------------------------------------------ certificate and bound

    @property
    def competes_with(self) -> Competition:
        """The best functions in a ball of the kernel's Hilbert space, under the log loss."""
        return Competition("softmax", Ball(self._radius))

    def regret_bound(self, n: int | None = None, failure: float = 0.05) -> float:
        """The theorem, for the rows so far; on features that of GAF, after n rows like those so far."""
        check_is_fitted(self, "state_")
        if not self._exact:
            return self._sampled_bound(self._theorem(n) | {"n_features": self._approximation.budget}, failure)
        self._require_exact_expectations()
        theorem, mu = self._exact_theorem(n, 0.5), self._constants.sampling.mu
        return bounds.kernel_gaf(int(self.state_.tally[ROWS]), **theorem, n_classes=self._n_classes, smoothing=mu)

    # ------------------------------------------------------------------ the game

    def _run_linear(self, state: SurrogateState, features: Array, Y: Array, weight: Array, out: Array) -> None:
        multiclass.run(state, features, Y, weight, self._constants.of_gaf, out)

    def _forecast_linear(self, state: SurrogateState, features: Array, out: Array) -> None:
        multiclass.forecast_block(state, features, self._constants.of_gaf, out)

    def _forecast_exactly(self, X: Array, out: Array) -> None:
        c, state, k_of = self._constants.of_gaf, self.state_, self._approximation.kernel
        learned = Expansion(state.factors, state.triangle, state.alpha)
        h = np.empty((c.H.shape[1], state.alpha.size))
        for t, square in enumerate(k_of.squares(X)):
            forecast(learned, Row(k_of.against(state.X, X[t]), square, h), state.tally, c, out[t])

    def _run_exactly(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c, state, k_of = self._constants.of_gaf, self.state_, self._approximation.kernel
        r, n = c.H.shape[1], len(state.X)
        room = n + int(np.count_nonzero(weight))
        rows, factors, alpha = (extended(array, room) for array in (state.X, state.factors, state.alpha))
        triangle, tally = extended(state.triangle, triangular(room * r)), state.tally.copy()
        learned, h = Expansion(factors, triangle, alpha), np.empty((r, room * r))
        for t, square in enumerate(k_of.squares(X)):
            row = Row(k_of.against(rows[:n], X[t]), square, h)
            play_row(learned, row, tally, Y[t], weight[t], c, out[t])
            if weight[t] == 0.0:
                continue
            rows[n] = X[t]
            n += 1
            if pressed():
                parts = rows[:n], factors[:n], triangle[: triangular(n * r)], alpha[:n], tally
                self.state_ = ExactState(*(part.copy() for part in parts))
                listen()
        self.state_ = ExactState(rows, factors, triangle, alpha, tally)


def triangular(n: int) -> int:
    """The entries of a lower triangle."""
    return n * (n + 1) // 2


class Expansion(NamedTuple):
    """The part of `ExactState` that the kernels read and extend."""

    factors: Array
    triangle: Array
    alpha: Array


class Row(NamedTuple):
    """A row as the kernels see it."""

    k: Array  # (n,): its kernel values with the rows so far
    square: float  # k(x, x)
    h: Array  # (r, n r) or more, scratch: L^{-1} c_l in row l


@kernel
def look_by(learned: Expansion, row: Row, lam: float, H: Array, work: Work) -> None:
    """m and Q of a row, in the K logit coordinates."""
    factors, triangle, alpha = learned
    k, square, h = row
    n, r = k.size, H.shape[1]
    for l in range(r):
        first = 0
        for s in range(n):
            for j in range(r):
                i = s * r + j
                h[l, i] = (factors[s, l, j] * k[s] - dot(triangle[first : first + i], h[l, :i])) / triangle[first + i]
                first += i + 1
    for l in range(r):
        work.small[l] = 0.0
        for s in range(n):
            work.small[l] += alpha[s, l] * k[s]
        for j in range(l + 1):
            shared = dot(h[l, : n * r], h[j, : n * r])
            work.M[l, j] = ((square if l == j else 0.0) - shared) / lam
    for l in range(r):  # a variance that is only rounding is 0
        if work.M[l, l] * lam <= NOISE * square:
            for j in range(r):
                work.M[max(l, j), min(l, j)] = 0.0
    lift(work, H)


@kernel
def forecast(learned: Expansion, row: Row, tally: Array, constants: MulticlassConstants, out: Array) -> None:
    """The log probabilities of a row."""
    H = constants.H
    work = workspace(*H.shape)
    look_by(learned, row, constants.regularization, H, work)
    multiclass.forecast(work, H, constants.pull, constants.sampling, int(tally[ROWS]), out)


@kernel
def play_row(
    learned: Expansion, row: Row, tally: Array, y: Array, weight: float, constants: MulticlassConstants, out: Array
) -> None:
    """One row: forecast, see the label, compute the loss, and add its quadratic to the factor."""
    factors, triangle, alpha = learned
    k, square, h = row
    H, lam = constants.H, constants.regularization
    K, r = H.shape
    n = k.size
    work = workspace(K, r)
    look_by(learned, row, lam, H, work)
    bend = multiclass.meet(math.sqrt(square), tally, y, weight, constants, NO_LIMITS, work, out)
    if weight == 0.0:
        return
    step, pulled = np.zeros(r), np.zeros(n * r)
    for l in range(r):
        for a in range(K):
            step[l] += H[a, l] * work.vectors[0][a]
        for i in range(n * r):
            pulled[i] += step[l] * h[l, i]
    # the leader: V_l = (e_l (x) phi - sum of F_sj (x) phi_s (L^{-T} h_l)_sj) / lam
    first = n * r * (n * r + 1) // 2
    for i in range(n * r - 1, -1, -1):
        first -= i + 1
        pulled[i] /= triangle[first + i]
        for j in range(i):
            pulled[j] -= triangle[first + j] * pulled[i]
    for s in range(n):
        for l in range(r):
            for j in range(r):
                alpha[s, l] -= factors[s, l, j] * pulled[s * r + j] / lam
    for l in range(r):
        alpha[n, l] = step[l] / lam
    # the factor: r new rows (F^T h, sqrt(lam) chol(I + F^T Q F))
    hessian_factor(work.p, math.sqrt(bend), work.L)
    congruence(work.L, work.Q, 1.0, work.LQ, work.M)
    add_identity_and_factor(work.M)
    for l in range(r):
        for j in range(r):
            factors[n, l, j] = 0.0
            for a in range(K):
                factors[n, l, j] += H[a, l] * work.L[a, j]
    for j in range(r):
        first = (n * r + j) * (n * r + j + 1) // 2
        for i in range(n * r):
            triangle[first + i] = 0.0
            for l in range(r):
                triangle[first + i] += factors[n, l, j] * h[l, i]
        for i in range(j + 1):
            triangle[first + n * r + i] = math.sqrt(lam) * work.M[j, i]
