"""MirrorDescentAggregator: a convex combination of base functions, by mirror descent with averaging."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy import sparse

from regretless.core.rows import validate
from regretless.core.rows.compressed import SparseRows
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.first_order.base_functions import Functions, Stumps, resolve, stumps
from regretless.learners.first_order.exponentiated_gradient import (
    check_entries,
    check_targets,
    largest_gradient,
    schedule_of,
)
from regretless.learners.first_order.learner import LARGEST_ROW
from regretless.learners.first_order.mirror_learner import MirrorLearner, Scheme
from regretless.learners.first_order.mirrors import Mirror
from regretless.theory.domains import Domain, Octahedron, Simplex, SubSimplex

DOMAINS: dict[str, type[Simplex] | type[SubSimplex] | type[Octahedron]] = {
    "simplex": Simplex,
    "subsimplex": SubSimplex,
    "octahedron": Octahedron,
}
PROXIES = ("entropy", "p-norm", "power")
LOSSES = ("hinge", "exponential", "logit", "squared")
ENTRIES = 4_000_000  # values of base functions in memory at a time


class MirrorDescentAggregator(MirrorLearner):
    r"""A weighted vote of many base functions, learned by mirror descent with averaging.

    **Choose it when** you have many base functions, such as stumps or models of your own, and want their best convex
    combination, with a bound that grows only with the logarithm of their number.

    .. math:: \zeta_i = \zeta_{i-1} + u_i, \quad
              u_i = \varphi'(y_i\,\theta_{i-1} \cdot H(x_i))\, y_i H(x_i), \quad
              \theta_i = \arg\min_{\theta \in \Theta} \zeta_i \cdot \theta + \beta_i V(\theta), \quad
              \hat\theta = \frac1{n+1}\sum_{i=0}^n \theta_i

    H(x) are the values of M base functions. Forecasts use the mean :math:`\hat\theta`. The cost per row is O(M).

    **Guarantee.** For i.i.d. rows the expected excess risk of :math:`\hat\theta` over the best of the set is at most
    :math:`2\lambda L\sqrt{\ln M}\sqrt{t+1}/t` for the mean of t weights, with entropy and simplex ([MDA]_, Theorem 1),
    or :math:`\lambda L\sqrt{2\ln M/t}` for known t (eq. 38); Theorem 2 covers other mirrors and sets. The bound grows
    only with :math:`\sqrt{\ln M}`. L is K times the largest slope of the loss, and K bounds the base functions.

    Parameters
    ----------
    base : `stumps(X_sample, n_per_feature)`; a list of fitted scikit-learn classifiers (with values 1 or -1),
        regressors or callables (which map rows to numbers); or "columns": the features are the base functions.
    loss : "hinge", "exponential" or "logit" (base 2) for two classes; "squared" for regression, with targets up to
        `bound * scale`.
    scale : lambda, the size of the set.
    domain : "simplex" (non-negative weights that sum to lambda), "subsimplex" (to at most lambda) or "octahedron"
        (weights of any sign whose absolute values sum to at most lambda).
    mirror : "entropy", "p-norm" or "power": eqs. (8), (35) and (36).
    horizon : the number of rows to come, if known.
    symmetric : whether to add the negative of every base function.
    bound : K, the largest absolute value of a base function; larger values are refused.

    Attributes
    ----------
    theta_, average_theta_ : the current weights, and their mean, which makes the forecasts: (M,).
    weights : the mean weight of each base function, by name.
    classes_ : the labels; the second is the positive one.
    state_ : `theta`, `zeta`, `average`, `gradients`, `mass` and `tally`.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from regretless import MirrorDescentAggregator, stumps
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> base = stumps(X[:100], n_per_feature=5)
    >>> learner = MirrorDescentAggregator(base, scale=5.0, symmetric=True).fit(X[100:], y[100:])
    >>> print(f"{learner.score(X[100:], y[100:]):.3f}")
    0.977
    >>> for name, weight in sorted(learner.weights.items(), key=lambda item: -item[1])[:2]:
    ...     print(f"{weight:.2f}  {name}")
    0.15  -(x23 > 830.75)
    0.14  -(x20 > 16.5)

    References
    ----------
    .. [MDA] Juditsky, Nazin, Tsybakov and Vayatis (2005), key `mda` of REFERENCES.bib.
    """

    _functions: Functions
    binary_only = True
    multiclass = "hinge"

    def __init__(
        self,
        base: str | Stumps | list[Any] = "columns",
        loss: str = "hinge",
        scale: float = 1.0,
        domain: str = "simplex",
        mirror: str = "entropy",
        horizon: int | None = None,
        symmetric: bool = False,
        bound: float = 1.0,
    ) -> None:
        self.base = base
        self.loss = loss
        self.scale = scale
        self.domain = domain
        self.mirror = mirror
        self.horizon = horizon
        self.symmetric = symmetric
        self.bound = bound

    @classmethod
    def _example(cls) -> Self:
        return cls(stumps(np.linspace(-0.5, 0.5, 5)[:, None], 2))  # of the first column: rows may have any width

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        if setting.n_classes > 2 or not np.ptp(setting.X, axis=0).any():
            return {}
        votes = stumps(setting.X, n_per_feature=5)  # of all rows, as the standardising is: no order has its own
        return {"MDA over stumps": cls(votes, loss="logit", scale=setting.matrix_radius, symmetric=True)}

    def _chosen_domain(self) -> Domain:
        if self.domain not in DOMAINS:
            raise ValueError(f"domain={self.domain!r} is unknown: choose one of {list(DOMAINS)}.")
        return DOMAINS[self.domain](validate.positive("scale", self.scale))

    _learned = ("_sample", "_functions")

    def _meet_targets(self, y: Any, classes: Any) -> None:
        if self.loss not in LOSSES:
            raise ValueError(f"loss={self.loss!r} is unknown: choose one of {list(LOSSES)}.")
        super()._meet_targets(y, classes)

    def _rows(self, X: Any, reset: bool) -> Array | SparseRows:
        rows = super()._rows(X, reset)
        if reset:
            self._sample = rows[:1]  # evaluated when the game begins, to count the base functions
        return rows

    def _chosen_scheme(self, n_features: int, n_classes: int) -> Scheme:
        if self.mirror not in PROXIES:
            raise ValueError(f"mirror={self.mirror!r} is unknown: choose one of {list(PROXIES)}.")
        domain, loss, K = self._chosen_domain(), self._chosen_loss(n_classes), validate.positive("bound", self.bound)
        classes = None if self._regresses else self.classes_
        sample = self.__dict__.pop("_sample", np.zeros((1, n_features)))
        names = getattr(self, "feature_names_in_", None)
        self._functions = resolve(self.base, self.symmetric, sample, names, classes)
        mirror = Mirror.on(self.mirror, domain, len(self._functions))
        L = largest_gradient(loss, K, K * self.scale)
        schedule = schedule_of(mirror, L, self.horizon)
        return Scheme(loss, domain, mirror, schedule, lazy=True, averaging=True, gradient_bound=L)

    def _n_weights(self, n_features: int) -> int:
        return len(self._functions)

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return (
            super()._state_numbers(n_features, n_classes) if self.base == "columns" else 0
        )  # the file lists the names of the base functions

    def _limits(self) -> tuple[float, float]:
        return math.inf, LARGEST_ROW  # the base functions bound the scores, not the rows

    def _targets(self, y: Any, classes: Any) -> Array:
        targets = super()._targets(y, classes)
        if self._regresses:
            played = getattr(self, "params_", self.get_params(deep=False))
            K, scale = (validate.positive(name, played[name]) for name in ("bound", "scale"))
            check_targets(targets[:, 0], self._loss_name, K * scale)
        return targets

    def _check_rows(self, X: Array | SparseRows, weight: Array) -> None:
        super()._check_rows(X, weight)
        functions, bound = self._functions, float(self.params_["bound"])
        if functions.parts and isinstance(functions.parts[0], Stumps) and len(functions.parts) == 1:
            return  # 1 or -1
        for rows, values in self._values(X):  # before anything is learned from any row
            check_entries(values, bound, functions.names, what="bound", first=rows.start)

    def _values(self, X: Array | SparseRows) -> Iterator[tuple[slice, Array | SparseRows]]:
        """The values of the base functions, in chunks of rows that bound the memory used."""
        functions = self._functions
        at_a_time = max(1, ENTRIES // len(functions))
        for i in range(0, X.shape[0], at_a_time):
            rows = slice(i, min(i + at_a_time, X.shape[0]))
            yield rows, functions(X[rows], first=i)

    def _row_kernels(self) -> None:
        return None  # rows are read by the base functions first

    def _run(self, X: Any, Y: Array, weight: Array, out: Array) -> None:
        for rows, values in self._values(X):
            super()._run(values, Y[rows], weight[rows], out[rows])

    def _forecast(self, X: Any, out: Array) -> None:
        for rows, values in self._values(X):
            super()._forecast(values, out[rows])

    def _iterate(self) -> Array | None:
        return None  # the weights are those of base functions, not of features

    def for_comparators(self, X: Any) -> Any:
        """The values of the base functions, one column each."""
        rows = self._rows(X, reset=False)
        blocks = [values.to_scipy() if isinstance(values, SparseRows) else values for _, values in self._values(rows)]
        return sparse.vstack(blocks, format="csr") if sparse.issparse(blocks[0]) else np.vstack(blocks)

    @property
    def theta_(self) -> Array:
        """The current weights: theta_n after n rows."""
        check_is_fitted(self, "state_")
        return self.state_.theta[:, 0].copy()

    @property
    def average_theta_(self) -> Array:
        """The mean of theta_0..theta_n after n rows."""
        check_is_fitted(self, "state_")
        return self.state_.average[:, 0].copy()

    @property
    def weights(self) -> dict[str, float]:
        """The averaged weight of each base function, by its name."""
        return dict(zip(self._functions.names, self.average_theta_.tolist(), strict=True))
