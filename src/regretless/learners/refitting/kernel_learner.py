"""KernelClassifier: what KernelAIOLI and KernelGAF share."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from regretless.core.errors import BadRow, NoBound
from regretless.core.files import state_checks
from regretless.core.interrupts import uninterrupted
from regretless.core.learner import ONE, OnlineLearner
from regretless.core.numbers.tally import ROWS
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.refitting.kernel_features import DEFAULT_BUDGET, accumulate, chosen_budget, fourier, span
from regretless.learners.refitting.kernel_functions import Kernel
from regretless.learners.second_order import curvature
from regretless.learners.second_order.learner import SurrogateClassifier
from regretless.learners.second_order.rounding import check_matrix
from regretless.learners.second_order.surrogate import SurrogateState, start

DIRECTIONS = 8  # random directions that test a factor from a file against its matrix
NEW = 1e-10  # a row with a smaller share of |phi|^2 outside the span of the landmarks counts as inside


class FeatureState(NamedTuple):
    """The state of the linear learner on `budget` features."""

    P: Array  # inverse of A, (r budget, r budget)
    w: Array  # the leader, (r budget,)
    moment: Array  # sum of phi phi^T over the rows
    points: Array  # landmarks (budget, d), or frequencies (budget / 2, d)
    factor: Array  # the lower Cholesky factor of the landmarks' kernel matrix, 0 for landmarks to come
    tally: Array


class Approximation(NamedTuple):
    """The kernel, and how it is approximated."""

    kernel: Kernel
    name: str
    budget: int
    seed: int


class KernelClassifier(SurrogateClassifier):
    """A surrogate classifier on the features of a kernel: exact, on landmarks, or on random features.

    A subclass has the constants of its linear learner as `_constants` and the field `approximation` besides. It
    implements the exact form, and names the kernels of its linear learner.
    """

    _weighs_columns = False
    kernel: str | Callable[[Array, Array], float]
    gamma: float | None
    degree: int
    coef0: float
    approximation: str
    budget: int | None
    random_state: int
    state_: Any  # the subclass's exact state, or `FeatureState`
    _one_step = False
    grows: ClassVar[tuple[str, ...]]
    _merged = OnlineLearner._merged  # two learners may have different features

    # ------------------------------------------------------------------ methods that a subclass implements

    @abstractmethod
    def _no_rows(self, n_features: int) -> NamedTuple:
        """The exact state before the first row."""

    @abstractmethod
    def _factors(self, state: Any) -> Array:
        """The factors (n, r, r) of the quadratics in the exact state."""

    @abstractmethod
    def _run_exactly(self, X: Array, Y: Array, weight: Array, out: Array) -> None: ...

    @abstractmethod
    def _forecast_exactly(self, X: Array, out: Array) -> None: ...

    @abstractmethod
    def _run_linear(self, state: SurrogateState, features: Array, Y: Array, weight: Array, out: Array) -> None:
        """Play a block of features with the linear learner."""

    @abstractmethod
    def _forecast_linear(self, state: SurrogateState, features: Array, out: Array) -> None: ...

    # ------------------------------------------------------------------ the numbers, and the start

    @property
    def _approximation(self) -> Approximation:
        found: Approximation = self._constants.approximation
        return found

    @property
    def _exact(self) -> bool:
        return not isinstance(self.state_, FeatureState)

    def _chosen_approximation(self, n_features: int) -> Approximation:
        kernel = Kernel.of(self.kernel, self.gamma, self.degree, self.coef0, n_features)
        validate.whole("random_state", self.random_state, 0)
        budget = chosen_budget(self.approximation, self.budget, kernel, self.kernel)
        return Approximation(kernel, self.approximation, budget, self.random_state)

    def _start(self, n_features: int, n_classes: int) -> Any:
        kernel, name, budget, seed = self._approximation
        if name == "exact":
            return self._no_rows(n_features)
        P, w, tally = start((n_classes - 1) * budget, self._constants.regularization)
        if name == "nystrom":
            points, factor = np.zeros((budget, n_features)), np.zeros((budget, budget))
        else:
            normal = np.random.default_rng(seed).normal(size=(budget // 2, n_features))
            points, factor = math.sqrt(2.0 * kernel.gamma) * normal, np.zeros((0, 0))
        return FeatureState(P, w, np.zeros((budget, budget)), points, factor, tally)

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        budget = DEFAULT_BUDGET if self.budget is None else self.budget
        known = self.approximation != "exact" and isinstance(budget, int)
        return ((n_classes - 1) * budget) ** 2 if known else 0

    def _check_state(self) -> None:
        state_checks.tally(self.state_.tally)
        if self._exact:
            self._check_exact(self.state_)
        else:
            self._check_features(self.state_)

    def _check_exact(self, state: Any) -> None:
        """Check in random directions that the triangle is the factor of lam I + (the quadratics' Gram matrix)."""
        n = len(state.X)
        state_checks.require(n == state.tally[ROWS], f"X has {n} rows, and {state.tally[ROWS]:.0f} were learned")
        if n == 0:
            return
        self._check_rows(validate.writable(state.X), ONE)
        state_checks.sums("alpha", state.alpha)
        factors = self._factors(state)
        size = factors.shape[0] * factors.shape[2]
        L = np.zeros((size, size))
        L[np.tril_indices(size)] = state.triangle
        state_checks.require(np.diagonal(L).min() > 0.0, "triangle has no inverse")
        columns = factors.transpose(0, 2, 1).reshape(size, -1)
        matrix: Array = (columns @ columns.T) * np.kron(
            self._approximation.kernel.gram(state.X), np.ones((factors.shape[2], factors.shape[2]))
        )
        matrix.flat[:: size + 1] += self._constants.regularization
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
            _require_factor("factor", factor, self._approximation.kernel.gram(state.points[:used]))

    # ------------------------------------------------------------------ accepted rows

    def _limits(self) -> tuple[float, float]:
        return math.inf, validate.reach(1.0)  # of the rows; `_check_rows` is about phi

    def _check_rows(self, X: Any, weight: Array) -> None:
        super()._check_rows(X, weight)
        c = self._constants
        squares = self._approximation.kernel.squares(X)
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

    def _matrix(self) -> Array:
        # the variance along one direction comes from a subtraction, with the same rounding as one from P
        found: Array = np.ones((1, 1)) if self._exact else self.state_.P
        return found

    def for_comparators(self, X: Any) -> Array:
        """Coordinates of phi(x) in the span of the rows, which contains the best function; or the features."""
        rows = np.asarray(self._rows(X, reset=False))
        if not self._exact:
            return self._features(self.state_, rows, np.zeros(rows.shape[0]))
        gram: Any = self._approximation.kernel.gram(rows)
        sizes, directions = np.linalg.eigh(gram)
        return directions * np.sqrt(np.maximum(sizes, 0.0))

    def effective_dimension(self, regularization: float) -> float:
        r""":math:`\mathrm{tr}\,K(K + \mu I)^{-1}` for the kernel matrix of the rows learned (or of their features).

        The number of directions that the rows span, where directions of squared size below mu count little. It is at
        most the number of rows, the number of features, and :math:`nR^2/\mu`.
        """
        check_is_fitted(self, "state_")
        mu = validate.positive("regularization", regularization)
        state = self.state_
        matrix = self._approximation.kernel.gram(state.X) if self._exact else state.moment
        sizes = np.maximum(np.linalg.eigvalsh(matrix), 0.0) if matrix.size else np.zeros(0)
        return float(np.sum(sizes / (sizes + mu)))

    def _exact_theorem(self, n: int | None, per_curvature: float) -> dict[str, Any]:
        """The arguments of the bound of the exact form, with ln det(I + per_curvature kappa K / lambda)."""
        theorem, c, state = self._theorem(n), self._constants, self.state_
        if theorem.pop("n") != int(state.tally[ROWS]):
            raise NoBound(
                "n: the bound depends on the kernel matrix of the rows, so it exists only for the rows so far: leave n "
                "out. (For other rows the effective dimension is only known to be at most n.)"
            )
        del theorem["n_features"]
        K = self._approximation.kernel.gram(state.X)
        sizes = np.full(len(K), c.feature_bound) if c.feature_bound else np.sqrt(np.diagonal(K))
        logits = c.radius * self._logits_per_weight * sizes
        kappas = np.array([curvature.kappa(c.code, c.number, C, self._n_classes) for C in logits])
        scale = np.sqrt(per_curvature * kappas / c.regularization)
        growth = np.linalg.slogdet(np.eye(len(K)) + scale[:, None] * K * scale).logabsdet
        return theorem | {"log_determinant": float(growth)}

    # ------------------------------------------------------------------ the game

    @property
    def least_rows(self) -> int:
        """See `OnlineLearner`."""
        return 1  # no panels

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        if self._exact:
            self._run_exactly(X, Y, weight, out)
        else:
            self._run_features(self.state_, X, Y, weight, out)

    @uninterrupted()
    def _run_features(self, state: FeatureState, X: Array, Y: Array, weight: Array, out: Array) -> None:
        features = self._features(state, X, weight)
        accumulate(state.moment, features, weight)
        self._run_linear(SurrogateState(state.P, state.w, state.tally), features, Y, weight, out)

    def _forecast(self, X: Array, out: Array) -> None:
        if self._exact:
            self._forecast_exactly(X, out)
            return
        state = self.state_
        features = self._features(state, X, np.zeros(X.shape[0]))
        self._forecast_linear(SurrogateState(state.P, state.w, state.tally), features, out)

    def _features(self, state: FeatureState, X: Array, weight: Array) -> Array:
        """The features (n, budget) of rows. Rows of nonzero weight may become landmarks."""
        kernel, name, budget, _ = self._approximation
        features = np.zeros((X.shape[0], budget))
        if name == "random-features":
            fourier(state.points, X, features)
            return features
        used = int(np.count_nonzero(np.diagonal(state.factor)))
        for t, square in enumerate(kernel.squares(X)):
            phi = features[t]
            outside = square - span(state.factor, kernel.against(state.points[:used], X[t]), phi)
            if used < budget and outside > NEW * square:  # a new direction, landmark or not
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
