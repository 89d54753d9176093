"""KernelAIOLI: AIOLI in a reproducing kernel Hilbert space, exact or on features that approximate the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from regretless.core import state_checks, validate
from regretless.core.errors import BadRow, NoBound
from regretless.core.interrupts import listen, pressed, uninterrupted
from regretless.core.jit import kernel
from regretless.core.learner import ONE, OnlineLearner
from regretless.core.tally import ROWS, record
from regretless.core.types import Array
from regretless.learners.refitting.kernel_functions import RBF, Kernel
from regretless.learners.second_order import aioli, curvature
from regretless.learners.second_order.aioli import AIOLIConstants
from regretless.learners.second_order.algebra import dot
from regretless.learners.second_order.learner import SurrogateClassifier
from regretless.learners.second_order.rounding import SUMS, charge, check_matrix
from regretless.learners.second_order.surrogate import SurrogateState, start
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition

APPROXIMATIONS = ("exact", "nystrom", "random-features")
DEFAULT_BUDGET = 100
NOISE = 1e-14  # of the first variance: a smaller remainder is rounding
DIRECTIONS = 8  # random directions that test a factor from a file against its matrix
NEW = 1e-10  # a row with a smaller share of |phi|^2 outside the span of the landmarks counts as inside


class ExactState(NamedTuple):
    """The state of the exact form. All fields but `tally` grow; `triangle` by n + 1 numbers in row n."""

    X: Array  # (n, d): every row
    roots: Array  # (n,): s, the roots of the curvatures of their quadratics
    triangle: Array  # (n (n + 1) / 2,): the lower Cholesky factor of lam I + s K s, row by row
    alpha: Array  # (n,): the leader is sum alpha_i phi(x_i)
    tally: Array


class FeatureState(NamedTuple):
    """The state of AIOLI on `budget` features."""

    P: Array  # inverse of A, (budget, budget)
    w: Array  # the leader, (budget,)
    moment: Array  # sum of phi phi^T over the rows
    points: Array  # landmarks (budget, d), or frequencies (budget / 2, d)
    factor: Array  # the lower Cholesky factor of the landmarks' kernel matrix, 0 for landmarks to come
    tally: Array


class KernelConstants(NamedTuple):
    """The numbers of `AIOLI`, the kernel, and how it is approximated."""

    radius: float
    regularization: float
    code: int  # of the curvature's name
    number: float  # the curvature itself, if it is given as a number
    feature_bound: float  # 0: each row uses its own norm
    virtual_weight: float
    kernel: Kernel
    approximation: str
    budget: int
    seed: int

    @property
    def of_aioli(self) -> AIOLIConstants:
        """The numbers that the kernels of AIOLI read."""
        return AIOLIConstants(*self[:6])


class KernelAIOLI(SurrogateClassifier):
    r"""AIOLI with a kernel: binary online logistic regression against nonlinear functions.

    The comparators are the functions f of norm at most B in the Hilbert space of the kernel, :math:`f(x) = f \cdot
    \varphi(x)` with :math:`\varphi(x) \cdot \varphi(y) = k(x, y)`. It is `AIOLI` on the rows :math:`\varphi(x)`, which
    are never formed: with K the kernel matrix of the rows so far, :math:`c_s` the curvatures of their quadratics and
    :math:`k_s = k(x_s, x)`,

    .. math:: m = \sum_s \alpha_s k_s, \qquad
              q = \tfrac1\lambda\bigl(k(x, x) - k^T (K + \lambda\,\mathrm{diag}(c)^{-1})^{-1} k\bigr)

    from a Cholesky factor that grows by one row per round: time and memory :math:`O(t^2)` for row t ([AIOLI]_, section
    4.1). Two approximations run linear `AIOLI` on m features, at a cost per row of :math:`O(m^2)`:

    - "nystrom": the coordinates of :math:`\varphi(x)` in the span of landmarks, the first m rows outside the span of
      the landmarks before. A new landmark adds a coordinate and leaves the others unchanged, so up to m landmarks
      this is the exact form. After that the comparators are the functions f of the projection onto the span.
    - "random-features" ("rbf" only): cosines and sines of x along m/2 random frequencies; inner products of features
      are k(x, y) up to :math:`O(1/\sqrt m)`. The comparators are the linear functions of the features.

    **Guarantee.** For every :math:`|f| \le B` and every stream, regret at most
    :math:`\lambda B^2 + \frac{a}{2\kappa} \ln\det(I + \frac{\kappa}{4\lambda} K)` (`regretless.bounds.kernel_aioli`),
    where the logarithm is at most :math:`d_{eff}(4\lambda/\kappa)\,(1 + \ln(1 + \frac{\kappa n R^2}{4\lambda}))`,
    :math:`d_{eff}(\mu) = \mathrm{tr}\,K (K + \mu I)^{-1} \le nR^2/\mu` and R the largest :math:`\sqrt{k(x, x)}`. (The
    paper has no logarithm, and n / mu.) On features the theorem of `AIOLI` for m features applies.

    Parameters
    ----------
    kernel : "linear", "rbf", "polynomial" or a positive definite function of two rows (which is not checked, and
        cannot be saved).
    gamma, degree, coef0 : parameters of the kernel, as in scikit-learn; gamma None means 1 / (number of features).
    approximation : "exact", "nystrom" or "random-features".
    budget : m, the landmarks or random features (an even number); None means 100.
    random_state : seed of the random frequencies.
    radius, regularization, curvature, virtual_weight, feature_bound : as in `AIOLI`, with
        :math:`\sqrt{k(x, x)}` for :math:`|x|`: 1 for "rbf".

    Attributes
    ----------
    classes_ : the two labels; the margin is that of the second.
    state_ : `X`, `roots`, `triangle`, `alpha` and `tally`, or on features `P`, `w`, `moment`, `points`, `factor` and
        `tally`.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI, KernelAIOLI
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-2, 2, size=(500, 2))
    >>> y = (X**2).sum(axis=1) < 2
    >>> for learner in [AIOLI(), KernelAIOLI(gamma=0.5), KernelAIOLI(gamma=0.5, approximation="nystrom", budget=40)]:
    ...     p = learner.predict_then_learn(X, y)
    ...     print(f"{-np.log(np.where(y, p[:, 1], p[:, 0])).mean():.3f}")
    0.730
    0.151
    0.150
    >>> print(f"{learner.effective_dimension(1.0):.1f} dimensions, regret <= {learner.regret_certificate():.1f}")
    18.8 dimensions, regret <= 95.6

    References
    ----------
    .. [AIOLI] Jézéquel, Gaillard and Rudi (2020), key `aioli` of REFERENCES.bib; Rahimi and Recht (2007), key
       `random-features`; Williams and Seeger (2000), key `nystrom`.
    """

    state_: ExactState | FeatureState  # type: ignore[assignment]
    _constants: KernelConstants
    _one_step = False
    binary_only = True
    _logits_per_weight: ClassVar[float] = 0.5
    grows = ("X", "roots", "triangle", "alpha")
    _merged = OnlineLearner._merged  # two learners may have different features

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
        virtual_weight: float = 1.0,
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
        self.virtual_weight = virtual_weight
        self.feature_bound = feature_bound

    # ------------------------------------------------------------------ the numbers, and the start

    def _default_regularization(self, radius: float) -> float:
        return 1.0 / radius**2

    def _prepare(self, n_features: int, n_classes: int) -> KernelConstants:
        kernel = Kernel.of(self.kernel, self.gamma, self.degree, self.coef0, n_features)
        return KernelConstants(
            *self._shared_constants(n_classes),
            virtual_weight=validate.positive("virtual_weight", self.virtual_weight, zero=True),
            kernel=kernel,
            approximation=self.approximation,
            budget=self._chosen_budget(kernel),
            seed=self.random_state,
        )

    def _chosen_budget(self, kernel: Kernel) -> int:
        """The validated number of features."""
        if self.approximation not in APPROXIMATIONS:
            raise ValueError(f"approximation={self.approximation!r} is unknown: choose one of {APPROXIMATIONS}.")
        validate.whole("random_state", self.random_state, 0)
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        validate.whole("budget", budget, 1)
        if self.approximation == "exact" and self.budget is not None:
            raise ValueError(
                f'budget={budget}: approximation="exact" has no budget. Use "nystrom" or "random-features", or None.'
            )
        if self.approximation == "random-features":
            if kernel.code != RBF:
                raise ValueError(
                    f'approximation="random-features" needs kernel="rbf", not {self.kernel!r}: use "nystrom".'
                )
            if budget % 2:
                raise ValueError(
                    f"budget={budget}: random features are pairs of a cosine and a sine. Give an even number."
                )
        return int(budget)

    def _start(self, n_features: int, n_classes: int) -> ExactState | FeatureState:  # type: ignore[override]
        c = self._constants
        if c.approximation == "exact":
            none = np.empty(0)
            return ExactState(np.empty((0, n_features)), none, none.copy(), none.copy(), np.zeros(SUMS))
        P, w, tally = start(c.budget, c.regularization)
        if c.approximation == "nystrom":
            points, factor = np.zeros((c.budget, n_features)), np.zeros((c.budget, c.budget))
        else:
            normal = np.random.default_rng(c.seed).normal(size=(c.budget // 2, n_features))
            points, factor = math.sqrt(2.0 * c.kernel.gamma) * normal, np.zeros((0, 0))
        return FeatureState(P, w, np.zeros_like(P), points, factor, tally)

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        return budget**2 if self.approximation != "exact" and isinstance(budget, int) else 0

    def _check_state(self) -> None:
        state_checks.tally(self.state_.tally)
        if isinstance(self.state_, ExactState):
            self._check_exact(self.state_)
        else:
            self._check_features(self.state_)

    def _check_exact(self, state: ExactState) -> None:
        """Check in random directions that the triangle is the factor of lam I + s K s."""
        c, n = self._constants, len(state.X)
        state_checks.require(n == state.tally[ROWS], f"X has {n} rows, and {state.tally[ROWS]:.0f} were learned")
        if n == 0:
            return
        self._check_rows(validate.writable(state.X), ONE)
        state_checks.within("roots", state.roots, 0.0, state_checks.LARGEST)
        state_checks.sums("alpha", state.alpha)
        L = np.zeros((n, n))
        L[np.tril_indices(n)] = state.triangle
        state_checks.require(np.diagonal(L).min() > 0.0, "triangle has no inverse")
        matrix: Array = state.roots[:, None] * c.kernel.gram(state.X) * state.roots
        matrix.flat[:: n + 1] += c.regularization
        _require_factor("triangle", L, matrix)

    def _check_features(self, state: FeatureState) -> None:
        c = self._constants
        check_matrix(state.P, state.tally, 1.0 / c.regularization)
        state_checks.weights("w", state.w, min(c.feature_bound or math.inf, validate.reach(c.regularization)))
        largest = float(np.diagonal(state.moment).max())
        state_checks.require(largest > 0.0 or not state.moment.any(), "moment is a sum of squares")
        if largest > 0.0:
            state_checks.covariance("moment", state.moment, largest)
        self._check_rows(validate.writable(state.points), ONE)
        used = int(np.count_nonzero(np.diagonal(state.factor)))
        factor = state.factor[:used, :used]
        rest = state.factor.copy()
        rest[:used, :used] -= np.tril(factor)
        state_checks.require(
            not rest.any() and not state.points[len(rest) and used : len(rest)].any(), "factor has gaps"
        )
        if used:
            state_checks.require(np.diagonal(factor).min() > 0.0, "factor has no inverse")
            _require_factor("factor", factor, c.kernel.gram(state.points[:used]))

    # ------------------------------------------------------------------ accepted rows

    def _limits(self) -> tuple[float, float]:
        return math.inf, validate.reach(1.0)  # of the rows; `_check_rows` is about phi

    def _check_rows(self, X: Array, weight: Array) -> None:  # type: ignore[override]
        super()._check_rows(X, weight)
        c = self._constants
        squares = c.kernel.squares(X)
        bound, reach = c.feature_bound or math.inf, validate.reach(c.regularization)
        absurd = ~(squares * np.maximum(weight, 1.0) <= reach**2) | ~(squares >= 0)
        if absurd.any():
            i = int(np.argmax(absurd))
            raise BadRow(
                f"row {i}: k(x, x) = {squares[i]:.6g} is negative, NaN, or too large for floating point "
                "arithmetic. Scale the features, for example to unit variance, or choose another kernel. Nothing was "
                "learned from this call."
            )
        beyond = validate.beyond(np.sqrt(squares), bound)
        if beyond.any():
            i = int(np.argmax(beyond))
            raise BadRow(
                f"row {i}: |x| = sqrt(k(x, x)) = {math.sqrt(squares[i]):.6g} is beyond feature_bound = {bound:.6g}. "
                "Scale the row down, raise feature_bound, or leave it None so that each row uses its own norm. Nothing "
                "was learned from this call."
            )

    # ------------------------------------------------------------------ certificate and bound

    @property
    def competes_with(self) -> Competition:
        """The best function in a ball of the kernel's Hilbert space, under the log loss."""
        return Competition("logistic", Ball(self._radius))

    def _matrix(self) -> Array:
        # the variance along one direction comes from a subtraction, with the same rounding as one from P
        return np.ones((1, 1)) if isinstance(self.state_, ExactState) else self.state_.P

    def for_comparators(self, X: Any) -> Array:
        """Coordinates of phi(x) in the span of the rows, which contains the best function; or the features."""
        rows, state = np.asarray(self._rows(X, reset=False)), self.state_
        if isinstance(state, FeatureState):
            return self._features(state, rows, np.zeros(rows.shape[0]))
        gram: Any = self._constants.kernel.gram(rows)
        sizes, directions = np.linalg.eigh(gram)
        return directions * np.sqrt(np.maximum(sizes, 0.0))

    def _grown(self, field: str, n: int) -> int:
        return n * (n + 1) // 2 if field == "triangle" else n

    def effective_dimension(self, regularization: float) -> float:
        r""":math:`\mathrm{tr}\,K(K + \mu I)^{-1}` for the kernel matrix of the rows learned (or of their features).

        The number of directions that the rows span, where directions of squared size below mu count little. It is at
        most the number of rows, the number of features, and :math:`nR^2/\mu`.
        """
        check_is_fitted(self, "state_")
        mu = validate.positive("regularization", regularization)
        state = self.state_
        matrix = self._constants.kernel.gram(state.X) if isinstance(state, ExactState) else state.moment
        sizes = np.maximum(np.linalg.eigvalsh(matrix), 0.0) if matrix.size else np.zeros(0)
        return float(np.sum(sizes / (sizes + mu)))

    def regret_bound(self, n: int | None = None) -> float:
        """The theorem, for the rows so far; on features that of AIOLI, after n rows like those so far."""
        theorem = self._theorem(n)
        c, state = self._constants, self.state_
        if isinstance(state, FeatureState):
            return bounds.aioli(**theorem | {"n_features": c.budget}, virtual_weight=c.virtual_weight)
        if theorem.pop("n") != int(state.tally[ROWS]):
            raise NoBound(
                "n: the bound depends on the kernel matrix of the rows, so it exists only for the rows so far: leave n "
                "out. (For other rows the effective dimension is only known to be at most n.)"
            )
        del theorem["n_features"]
        K = c.kernel.gram(state.X)
        sizes = np.full(len(K), c.feature_bound) if c.feature_bound else np.sqrt(np.diagonal(K))
        kappas = np.array([curvature.kappa(c.code, c.number, 0.5 * c.radius * size, 2) for size in sizes])
        scale = np.sqrt(kappas / (4.0 * c.regularization))
        growth = np.linalg.slogdet(np.eye(len(K)) + scale[:, None] * K * scale).logabsdet
        return bounds.kernel_aioli(log_determinant=float(growth), **theorem, virtual_weight=c.virtual_weight)

    # ------------------------------------------------------------------ the game

    @property
    def least_rows(self) -> int:
        """See `OnlineLearner`."""
        return 1  # no panels

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        if isinstance(self.state_, ExactState):
            self._run_exactly(self.state_, X, Y, weight, out)
            return
        self._run_features(self.state_, X, Y, weight, out)

    @uninterrupted()
    def _run_features(self, state: FeatureState, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c = self._constants
        features = self._features(state, X, weight)
        accumulate(state.moment, features, weight)
        aioli.run(SurrogateState(state.P, state.w, state.tally), features, Y, weight, c.of_aioli, out)

    def _forecast(self, X: Array, out: Array) -> None:
        c, state = self._constants, self.state_
        if isinstance(state, FeatureState):
            features = self._features(state, X, np.zeros(X.shape[0]))
            aioli.forecast_block(SurrogateState(state.P, state.w, state.tally), features, c.of_aioli, out)
            return
        learned, h = Expansion(state.roots, state.triangle, state.alpha), np.empty(state.alpha.size)
        for t, square in enumerate(c.kernel.squares(X)):
            k = c.kernel.against(state.X, X[t])
            forecast(learned, k, square, c.regularization, c.virtual_weight, h, out[t])

    def _run_exactly(self, state: ExactState, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c = self._constants
        lam, a = c.regularization, c.virtual_weight
        n = state.alpha.size
        room = n + int(np.count_nonzero(weight))
        rows, roots, alpha = (extended(array, room) for array in (state.X, state.roots, state.alpha))
        triangle, tally = extended(state.triangle, room * (room + 1) // 2), state.tally.copy()
        learned, h = Expansion(roots, triangle, alpha), np.empty(room)
        for t, square in enumerate(c.kernel.squares(X)):
            k = c.kernel.against(rows[:n], X[t])
            m, q, margin, T = forecast(learned, k, square, lam, a, h, out[t])
            if weight[t] == 0.0:
                continue
            size = math.sqrt(square)
            kap = curvature.kappa(c.code, c.number, 0.5 * c.radius * (c.feature_bound or size), 2)
            y = Y[t, 1]
            loss = aioli.log_loss(margin, T, y)
            rows[n] = X[t]
            bend, step, growth, terms = aioli.lengths(q, a, T, y, kap, weight[t])
            # a variance that is only rounding teaches nothing; its mass is counted, so that certificates are refused
            update(learned, h, n, q, lam, bend if q > 0.0 else 0.0, step if q > 0.0 else 0.0)
            record(tally, weight[t], weight[t] * loss, growth, size)
            charge(tally, bend * square / lam, step * step * q, weight[t] * (aioli.LOG_2 + abs(m)) + terms)
            n += 1
            if pressed():
                parts = rows[:n], roots[:n], triangle[: n * (n + 1) // 2], alpha[:n], tally
                self.state_ = ExactState(*(part.copy() for part in parts))
                listen()
        self.state_ = ExactState(rows, roots, triangle, alpha, tally)

    def _features(self, state: FeatureState, X: Array, weight: Array) -> Array:
        """The features (n, budget) of rows. Rows of nonzero weight may become landmarks."""
        c = self._constants
        features = np.zeros((X.shape[0], c.budget))
        if c.approximation == "random-features":
            fourier(state.points, X, features)
            return features
        used = int(np.count_nonzero(np.diagonal(state.factor)))
        for t, square in enumerate(c.kernel.squares(X)):
            phi = features[t]
            outside = square - span(state.factor, c.kernel.against(state.points[:used], X[t]), phi)
            if used < c.budget and outside > NEW * square:  # a new direction, landmark or not
                phi[used] = math.sqrt(outside)
                if weight[t] != 0.0:
                    state.points[used] = X[t]
                    state.factor[used] = phi
                    used += 1
        return features


def _require_factor(name: str, L: Array, matrix: Array) -> None:
    """Refuse an L whose L L^T differs from the matrix along a random direction."""
    directions = np.random.default_rng().choice([-1.0, 1.0], size=(len(L), DIRECTIONS))
    off = np.abs(L @ (L.T @ directions) - matrix @ directions)
    state_checks.require(
        np.all(off <= state_checks.ROUNDING * np.abs(matrix).sum(axis=1, keepdims=True)),
        f"{name} is not that of these rows",
    )


def extended(array: Array, size: int) -> Array:
    """A copy with space for `size` rows."""
    longer = np.empty((size, *array.shape[1:]))
    longer[: array.shape[0]] = array
    return longer


class Expansion(NamedTuple):
    """The part of `ExactState` that the kernels read."""

    roots: Array
    triangle: Array
    alpha: Array


@kernel
def forecast(
    learned: Expansion, k: Array, square: float, lam: float, a: float, h: Array, out: Array
) -> tuple[float, float, float, float]:
    """The logits of a row with kernel values k; returns m, q, the margin and the tanh of its half, and fills h.

    With L L^T = lam I + s K s, h = L^{-1} s k: k^T (K + lam / c)^{-1} k = |h|^2.
    """
    roots, triangle, alpha = learned
    n = k.size
    first = 0
    for i in range(n):
        h[i] = (roots[i] * k[i] - dot(triangle[first : first + i], h[:i])) / triangle[first + i]
        first += i + 1
    q = (square - dot(h[:n], h[:n])) / lam
    if q * lam <= NOISE * square:
        q = 0.0
    m = dot(alpha[:n], k)
    margin, T = aioli.forecast(m, q, a)
    out[0] = -0.5 * margin
    out[1] = 0.5 * margin
    return m, q, margin, T


@kernel
def update(learned: Expansion, h: Array, n: int, q: float, lam: float, c: float, step: float) -> None:
    """Add row n, of curvature c, to the factor, and move the leader by `step` along it.

    The new row of L is (s h, sqrt(lam (1 + c q))), and P phi = (phi - sum_i s_i (L^{-T} h)_i phi_i) / lam.
    """
    roots, triangle, alpha = learned
    first = n * (n + 1) // 2
    roots[n] = math.sqrt(c)
    for i in range(n):
        triangle[first + i] = roots[n] * h[i]
    triangle[first + n] = math.sqrt(lam * (1.0 + c * q))
    v = np.empty(n)
    for i in range(n):
        v[i] = h[i]
    for i in range(n - 1, -1, -1):
        first -= i + 1
        v[i] /= triangle[first + i]
        for j in range(i):
            v[j] -= triangle[first + j] * v[i]
    for i in range(n):
        alpha[i] -= step * roots[i] * v[i] / lam
    alpha[n] = step / lam


@kernel
def span(factor: Array, k: Array, phi: Array) -> float:
    """phi = the coordinates in the span of the landmarks of a row with kernel values k; returns their square."""
    n = k.size
    for i in range(n):
        phi[i] = (k[i] - dot(factor[i, :i], phi[:i])) / factor[i, i]
    return dot(phi[:n], phi[:n])


@kernel
def fourier(frequencies: Array, X: Array, features: Array) -> None:
    """Cosines and sines along the frequencies, of squares that sum to 1."""
    m = frequencies.shape[0]
    scale = math.sqrt(1.0 / m)
    for t in range(X.shape[0]):
        for i in range(m):
            angle = 0.0
            for j in range(X.shape[1]):
                angle += frequencies[i, j] * X[t, j]
            features[t, i] = scale * math.cos(angle)
            features[t, m + i] = scale * math.sin(angle)


@kernel
def accumulate(moment: Array, features: Array, weight: Array) -> None:
    """The sum of phi phi^T over the rows of weight not 0."""
    for t in range(features.shape[0]):
        if weight[t] == 0.0:
            continue
        for i in range(moment.shape[0]):
            if features[t, i] != 0.0:
                for j in range(moment.shape[0]):
                    moment[i, j] += features[t, i] * features[t, j]
