"""KernelAIOLI: AIOLI in a reproducing kernel Hilbert space, exact or on features that approximate the kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from regretless.core.files import state_checks
from regretless.core.interrupts import listen, pressed
from regretless.core.kernels.jit import kernel
from regretless.core.numbers.tally import record
from regretless.core.rows import validate
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.refitting.kernel_learner import Approximation, KernelClassifier, extended
from regretless.learners.second_order import aioli, curvature
from regretless.learners.second_order.aioli import AIOLIConstants
from regretless.learners.second_order.algebra import dot
from regretless.learners.second_order.rounding import SUMS, charge
from regretless.learners.second_order.surrogate import SurrogateState
from regretless.theory import bounds
from regretless.theory.domains import Ball, Competition

NOISE = 1e-14  # of the first variance: a smaller remainder is rounding


class ExactState(NamedTuple):
    """The state of the exact form. All fields but `tally` grow; `triangle` by n + 1 numbers in row n."""

    X: Array  # (n, d): every row
    roots: Array  # (n,): s, the roots of the curvatures of their quadratics
    triangle: Array  # (n (n + 1) / 2,): the lower Cholesky factor of lam I + s K s, row by row
    alpha: Array  # (n,): the leader is sum alpha_i phi(x_i)
    tally: Array


class KernelConstants(NamedTuple):
    """The numbers of `AIOLI`, and the approximation of the kernel."""

    radius: float
    regularization: float
    code: int  # of the curvature's name
    number: float  # the curvature itself, if it is given as a number
    feature_bound: float  # 0: each row uses its own norm
    virtual_weight: float
    approximation: Approximation

    @property
    def of_aioli(self) -> AIOLIConstants:
        """The numbers that the kernels of AIOLI read."""
        return AIOLIConstants(*self[:6])


class KernelAIOLI(KernelClassifier):
    r"""AIOLI with a kernel: binary online logistic regression against nonlinear functions.

    **Choose it when** two classes, a few thousand rows, and a kernel describes them better than their columns. With
    more rows, use its random features or `OnlineLogisticRegression(effort="high")`.

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

    _constants: KernelConstants
    binary_only = True
    _logits_per_weight: ClassVar[float] = 0.5
    grows = ("X", "roots", "triangle", "alpha")

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

    def _default_regularization(self, radius: float, n_classes: int) -> float:
        return 1.0 / radius**2

    def _prepare(self, n_features: int, n_classes: int) -> KernelConstants:
        return KernelConstants(
            *self._shared_constants(n_classes),
            virtual_weight=validate.positive("virtual_weight", self.virtual_weight, zero=True),
            approximation=self._chosen_approximation(n_features),
        )

    def _no_rows(self, n_features: int) -> ExactState:
        none = np.empty(0)
        return ExactState(np.empty((0, n_features)), none, none.copy(), none.copy(), np.zeros(SUMS))

    def _grown(self, field: str, n: int) -> int:
        return n * (n + 1) // 2 if field == "triangle" else n

    def _factors(self, state: ExactState) -> Array:
        state_checks.within("roots", state.roots, 0.0, state_checks.LARGEST)
        return state.roots[:, None, None]

    # ------------------------------------------------------------------ certificate and bound

    @property
    def competes_with(self) -> Competition:
        """The best function in a ball of the kernel's Hilbert space, under the log loss."""
        return Competition("logistic", Ball(self._radius))

    def regret_bound(self, n: int | None = None) -> float:
        """The theorem, for the rows so far; on features that of AIOLI, after n rows like those so far."""
        check_is_fitted(self, "state_")
        a = self._constants.virtual_weight
        if not self._exact:
            theorem = self._theorem(n) | {"n_features": self._approximation.budget}
            return bounds.aioli(**theorem, virtual_weight=a)
        return bounds.kernel_aioli(**self._exact_theorem(n, 0.25), virtual_weight=a)

    # ------------------------------------------------------------------ the game

    def _run_linear(self, state: SurrogateState, features: Array, Y: Array, weight: Array, out: Array) -> None:
        aioli.run(state, features, Y, weight, self._constants.of_aioli, out)

    def _forecast_linear(self, state: SurrogateState, features: Array, out: Array) -> None:
        aioli.forecast_block(state, features, self._constants.of_aioli, out)

    def _forecast_exactly(self, X: Array, out: Array) -> None:
        c, state, k_of = self._constants, self.state_, self._approximation.kernel
        learned, h = Expansion(state.roots, state.triangle, state.alpha), np.empty(state.alpha.size)
        for t, square in enumerate(k_of.squares(X)):
            k = k_of.against(state.X, X[t])
            forecast(learned, k, square, c.regularization, c.virtual_weight, h, out[t])

    def _run_exactly(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        c, state, k_of = self._constants, self.state_, self._approximation.kernel
        lam, a = c.regularization, c.virtual_weight
        n = state.alpha.size
        room = n + int(np.count_nonzero(weight))
        rows, roots, alpha = (extended(array, room) for array in (state.X, state.roots, state.alpha))
        triangle, tally = extended(state.triangle, room * (room + 1) // 2), state.tally.copy()
        learned, h = Expansion(roots, triangle, alpha), np.empty(room)
        for t, square in enumerate(k_of.squares(X)):
            k = k_of.against(rows[:n], X[t])
            m, q, margin, T = forecast(learned, k, square, lam, a, h, out[t])
            if weight[t] == 0.0:
                continue
            size = math.sqrt(square)
            kap = curvature.kappa(c.code, c.number, 0.5 * c.radius * (c.feature_bound or size), 2)
            y = Y[t, 1]
            loss = aioli.log_loss(margin, T, y)
            rows[n] = X[t]
            bend, g = aioli.bends(T, y, kap, weight[t])
            step, growth, terms = aioli.lengths(q, -0.5 * a * q * T, bend, g)
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
