"""GAF: the Gaussian aggregating forecaster for multiclass logistic regression."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.kernels.one_row import RowKernels
from regretless.core.rows import validate
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.second_order import panels
from regretless.learners.second_order.expectation import sobol_points
from regretless.learners.second_order.learner import SurrogateClassifier
from regretless.learners.second_order.multiclass import (
    MONTE_CARLO,
    QUADRATURE,
    SOBOL,
    MulticlassConstants,
    Sampling,
    run_panel,
)
from regretless.learners.second_order.pairs import loops
from regretless.learners.second_order.surrogate import helmert
from regretless.theory import bounds
from regretless.theory.bounds.assumptions import SOFTMAX_ZETA, least_gaf_regularization
from regretless.theory.domains import Ball, Competition

MOST_SAMPLES = 1 << 20
METHODS = {"quadrature": QUADRATURE, "sobol": SOBOL, "monte-carlo": MONTE_CARLO}


class Sampled(SurrogateClassifier):
    """What learners share that average the softmax over a Gaussian: GAF and KernelGAF."""

    expectation: str
    n_samples: int
    smoothing: float | str
    horizon: int | None
    random_state: int

    def _default_regularization(self, radius: float, n_classes: int) -> float:
        R = 1.0 if self.feature_bound is None else validate.positive("feature_bound", self.feature_bound)
        return least_gaf_regularization(n_scores=n_classes - 1, alpha=1.0, zeta=SOFTMAX_ZETA * R**2)

    def _sampling(self, n_classes: int) -> Sampling:
        method = self.expectation
        if method == "auto":
            method = "quadrature" if n_classes <= 3 else "sobol"
        if method not in METHODS:
            raise ValueError(f'expectation={method!r} is unknown: choose "auto" or one of {sorted(METHODS)}.')
        if method == "quadrature" and n_classes > 3:
            raise ValueError(
                f'expectation="quadrature" supports two or three classes, and there are {n_classes}: use "sobol".'
            )
        if validate.whole("n_samples", self.n_samples, 1) > MOST_SAMPLES:
            raise ValueError(f"n_samples={self.n_samples} is too large: use at most {MOST_SAMPLES} per row.")
        validate.whole("random_state", self.random_state, 0)
        points = np.zeros((int(self.n_samples), n_classes - 1))
        if method == "sobol":
            points = sobol_points(int(self.n_samples), n_classes - 1, int(self.random_state))
        return Sampling(METHODS[method], points, int(self.random_state), self._mu(n_classes))

    def _mu(self, n_classes: int) -> float:
        if self.smoothing == "theory":
            if self.horizon is None:
                raise ValueError('smoothing="theory" needs the number of rows: pass horizon.')
            n = validate.positive("horizon", self.horizon)
            # with K, as in the proof of Proposition 3 (its statement omits K: docs/errata.md); delta = 1/n
            return min(0.5, (n_classes * 2.0 * math.log(max(n, 2.0)) / self.n_samples) ** (1 / 3))
        if isinstance(self.smoothing, str):
            raise ValueError(f'smoothing={self.smoothing!r} must be "theory" or a number from 0 to 1.')
        mu = validate.positive("smoothing", self.smoothing, zero=True)
        if mu > 1.0:
            raise ValueError(f"smoothing={mu} must be at most 1.")
        return mu

    def _sampled_bound(self, theorem: dict[str, Any], failure: float) -> float:
        """Theorem 1 for exact expectations, Proposition 3 for independent samples."""
        sampling = self._constants.sampling
        theorem |= {"n_classes": self._n_classes, "smoothing": sampling.mu}
        if sampling.method == MONTE_CARLO:
            return bounds.gaf_sampled(**theorem, n_samples=len(sampling.points), failure=failure)
        self._require_exact_expectations()
        return bounds.gaf(**theorem)

    def _require_exact_expectations(self) -> None:
        if self._constants.sampling.method != QUADRATURE:
            raise NoBound(
                "the theorem needs exact expectations. For two and three classes use "
                'expectation="quadrature", which is exact; with expectation="monte-carlo" and smoothing, '
                "Proposition 3 gives GAF a bound that holds with high probability."
            )


class GAF(Sampled):
    r"""Multiclass online logistic regression by aggregation: the softmax averaged over a Gaussian posterior.

    **Choose it when** the comparators are matrices of bounded Frobenius norm, or you study aggregation. With three
    classes or fewer its forecasts are exact; `FOLKLORE` is faster.

    The quadratics of past rows define a Gaussian over weights. The forecast is the mean of the softmax under it,

    .. math:: p = E\,\mathrm{softmax}(\omega), \quad \omega \sim N(m, Q/2), \quad
              m = \bar W x, \ Q = (I \otimes x)^T A^{-1} (I \otimes x),

    and the quadratic of a row is taken at the leader's logits *after* its label,
    :math:`z = m - \tfrac12 Q (\mathrm{softmax}(z) - y)`, with :math:`\beta = 2\kappa`.

    **Guarantee.** For every :math:`|W|_F \le B`, if :math:`\lambda \ge \max(4, K-1)\,R^2/(2\ln 2)`: Theorem 1 of [GAF]_
    (`regretless.bounds.gaf`); with independent samples, Proposition 3 (`regretless.bounds.gaf_sampled`).
    `regret_certificate()` needs no such assumption, and holds for every method of computing the expectation.

    Parameters
    ----------
    radius : B, the largest Frobenius norm of comparators. No intercept is added: append a constant column.
    regularization : lambda, the coefficient of :math:`|W|^2`. None means the choice of Corollary 2, the smallest of the
        theorem, for R = `feature_bound` (1 if it is None).
    curvature : kappa of the quadratics: "sharp", "gaf", "aioli" (two classes), "folklore" (no proof) or a number.
    expectation : "quadrature" (two or three classes: exact to 1e-10 and 1e-8), "sobol" (the same scrambled Sobol
        points every round), "monte-carlo" (as in the paper: new draws every round), or "auto": quadrature for two or
        three classes, else sobol. Quadrature of three classes costs about ten times as much for features so large that
        the standard deviations of logits exceed 5 or so.
    n_samples : points or draws per round.
    smoothing : mu of (1 - mu) p + mu / K, or "theory": the paper's (K ln(n/delta) / n_samples)^(1/3), delta = 1/n, at
        most 1/2, which needs `horizon`.
    horizon : n, the expected number of rows; only used by smoothing="theory".
    random_state : seed of the points. Draws depend only on it and on the round, so there is no generator to save.
    feature_bound : R. None means each row's own norm. A row with a larger norm than a given R is rejected.
    precision : "double", or "single" to store P in float32, which halves most of the memory and memory traffic.
        Forecasts then agree to about 1e-6, and there is no certificate after a few hundred rows (docs/rounding.md).
    device : None, or a device of PyTorch, such as "cuda": the matrix is there, and its products, while a block of rows
        is learned or forecast (docs/gpu.md). It pays from about 1000 rows of the matrix on, (K-1) d.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    state_ : `P` (the inverse of A), `w` (the leader), `tally` (rows, rows of weight not 1, loss, excess, largest norm,
        largest scale, sums for rounding).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.utils import shuffle
    >>> from regretless import GAF
    >>> X, y = shuffle(*load_iris(return_X_y=True), random_state=0)
    >>> learner = GAF(radius=10.0, regularization=0.1)
    >>> p = learner.predict_then_learn(X - X.mean(axis=0), y, classes=[0, 1, 2])
    >>> print(f"{(p.argmax(axis=1) != y).mean():.3f}")
    0.207

    References
    ----------
    .. [GAF] Jézéquel, Gaillard and Rudi (2021), key `gaf` of REFERENCES.bib. Errata: docs/errata.md.
    """

    _constants: MulticlassConstants

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float | None = None,
        curvature: str | float = "sharp",
        expectation: str = "auto",
        n_samples: int = 128,
        smoothing: float | str = 0.0,
        horizon: int | None = None,
        random_state: int = 0,
        feature_bound: float | None = None,
        precision: str = "double",
        device: str | None = None,
    ) -> None:
        self.radius = radius
        self.regularization = regularization
        self.curvature = curvature
        self.expectation = expectation
        self.n_samples = n_samples
        self.smoothing = smoothing
        self.horizon = horizon
        self.random_state = random_state
        self.feature_bound = feature_bound
        self.precision = precision
        self.device = device

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"GAF": cls(radius=setting.radius, regularization=1.0)}

    @property
    def competes_with(self) -> Competition:
        """The best matrix in a Frobenius ball, under the log loss."""
        return Competition("softmax", Ball(self._radius))

    def regret_bound(self, n: int | None = None, failure: float = 0.05) -> float:
        """The bound of Theorem 1, with R the largest norm so far (or `feature_bound`).

        With expectation="monte-carlo" that of Proposition 3, which holds with probability 1 - `failure`.
        """
        return self._sampled_bound(self._theorem(n), failure)

    def _prepare(self, n_features: int, n_classes: int) -> MulticlassConstants:
        shared = self._shared_constants(n_classes)
        return MulticlassConstants(*shared, H=helmert(n_classes), sampling=self._sampling(n_classes), pull=1.0)

    def _row_kernels(self) -> RowKernels | None:
        sampling = self._constants.sampling
        if sampling is None or sampling.method == MONTE_CARLO:  # threads must not share the draws
            return None
        return self._by_kernels(*loops(self._n_classes, self._constants.sampling))

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        kernels = panels.Kernels(loops(self._n_classes, self._constants.sampling).run, run_panel)
        self._play_panels(kernels, X, Y, weight, self._own_points(), out)

    def _forecast(self, X: Array, out: Array) -> None:
        run, forecast_block = loops(self._n_classes, self._constants.sampling)
        kernels, constants = panels.Kernels(run, run_panel), self._own_points()
        if not self._foresee_panels(kernels, X, np.zeros_like(out), constants, out):
            forecast_block(self.state_, X, constants, out)

    def _own_points(self) -> MulticlassConstants:
        """The constants with a copy of the points.

        Kernels write new draws into the points, and copies of a learner share its constants.
        """
        c = self._constants
        assert c.sampling is not None
        return c._replace(sampling=c.sampling._replace(points=c.sampling.points.copy()))
