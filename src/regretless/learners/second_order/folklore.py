"""FOLKLORE: improper multiclass online logistic regression, also with soft labels."""

from __future__ import annotations

from typing import Self

import numpy as np

from regretless.core.kernels.one_row import RowKernels
from regretless.core.setting import Setting
from regretless.core.types import Array
from regretless.learners.second_order import panels
from regretless.learners.second_order.learner import SurrogateClassifier
from regretless.learners.second_order.multiclass import MulticlassConstants, run_panel
from regretless.learners.second_order.pairs import loops
from regretless.learners.second_order.surrogate import helmert
from regretless.theory import bounds
from regretless.theory.domains import Competition, RowBall


class FOLKLORE(SurrogateClassifier):
    r"""Multiclass online logistic regression, almost as good as the best weights with one bounded row per class.

    **Choose it when** you have more than two classes and want a small certificate against linear models with bounded
    weights per class. It costs more per row than `AIOLI`: the square of columns times classes.

    With :math:`m = \bar W x` the forecast of the minimiser of the quadratics of past rows, and
    :math:`Q = (I \otimes x)^T A^{-1} (I \otimes x)` its uncertainty at x, the forecast logits z solve

    .. math:: z = m + \tfrac14 \mathrm{diag}(Q) - \tfrac12 Q\,\mathrm{softmax}(z),

    K equations with a unique solution. The state has (K-1) d coordinates: a row costs one product and one rank-(K-1)
    update of that size.

    **Guarantee.** For every W whose rows have norm at most B:
    :math:`\lambda K B^2 + \frac{(K-1)d}{4\kappa} \ln(1 + 2\kappa n R^2/\lambda)` if
    :math:`\kappa R^2 \le \lambda/2` (Theorem 3 of [FOLKLORE]_
    with the missing factor 1/4 restored; `regretless.bounds.folklore`).

    Parameters
    ----------
    radius : B, the largest norm of a comparator's row of weights. No intercept is added: append a constant column.
    regularization : lambda, the coefficient of :math:`|W|^2`; None means 2 R / radius with R = `feature_bound`, or 1.
    curvature : kappa of the quadratics: "sharp", "gaf", "aioli" (two classes), "folklore" (the paper's, which is
        false: no certificate) or a number.
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
    >>> from sklearn.datasets import load_digits
    >>> from regretless import FOLKLORE
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = FOLKLORE(radius=10.0)
    >>> p = learner.predict_then_learn(X / 64, y, classes=range(10))
    >>> print(f"{(p.argmax(axis=1) != y).mean():.3f}")
    0.078

    References
    ----------
    .. [FOLKLORE] Agarwal, Kale and Zimmert (2022), key `folklore` of REFERENCES.bib. Errata: docs/errata.md.
    """

    _constants: MulticlassConstants
    _makes_up_for_pull = True

    def __init__(
        self,
        radius: float = 10.0,
        regularization: float | None = None,
        curvature: str | float = "sharp",
        feature_bound: float | None = None,
        precision: str = "double",
        device: str | None = None,
    ) -> None:
        self.radius = radius
        self.regularization = regularization
        self.curvature = curvature
        self.feature_bound = feature_bound
        self.precision = precision
        self.device = device

    @classmethod
    def _entrants(cls, setting: Setting) -> dict[str, Self]:
        return {"FOLKLORE": cls(radius=setting.radius)}

    def _default_regularization(self, radius: float, n_classes: int) -> float:
        return 2.0 * (1.0 if self.feature_bound is None else self.feature_bound) / radius

    @property
    def competes_with(self) -> Competition:
        """The best matrix whose rows lie in a ball, under the log loss."""
        return Competition("softmax", RowBall(self._radius))

    def regret_bound(self, n: int | None = None) -> float:
        """The bound of Theorem 3, corrected, with R the largest norm so far (or `feature_bound`)."""
        return bounds.folklore(**self._theorem(n), n_classes=self._n_classes)

    def _prepare(self, n_features: int, n_classes: int) -> MulticlassConstants:
        shared = self._shared_constants(n_classes)
        return MulticlassConstants(*shared, H=helmert(n_classes), sampling=None, pull=self._pull)

    def _row_kernels(self) -> RowKernels:
        return self._by_kernels(*loops(self._n_classes, self._constants.sampling))

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        kernels = panels.Kernels(loops(self._n_classes, self._constants.sampling).run, run_panel)
        self._play_panels(kernels, X, Y, weight, self._constants, out)

    def _forecast(self, X: Array, out: Array) -> None:
        run, forecast_block = loops(self._n_classes, self._constants.sampling)
        none = np.zeros_like(out)
        if not self._foresee_panels(panels.Kernels(run, run_panel), X, none, self._constants, out):
            forecast_block(self.state_, X, self._constants, out)
