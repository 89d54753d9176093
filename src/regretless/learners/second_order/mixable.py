r"""Mixable losses: all that GAF needs to know of a loss (Section 2 of the paper).

A loss :math:`\ell(z, y)` is a function of m scores z = W x. The paper's assumptions, here in the scores (which is what
its proofs use):

(A1)  *alpha-mixable*: for a Gaussian over z, `forecast` returns a score :math:`\hat z` with
      :math:`\ell(\hat z, y) \le -\frac1\alpha \ln E\,e^{-\alpha \ell(z, y)}` for every target y.
(A2)  :math:`\ell(a) \le \ell(b) + g \cdot (a - b) + e^{\zeta|a-b|^2} (a-b)^T H (a-b)`, g and H those of b.
(A3)  :math:`\ell(a) \ge \ell(b) + g \cdot (a - b) + \frac\beta2 (a-b)^T H (a-b)` if all \|a\| <= C: the quadratic.
(A4)  :math:`H \le \gamma I`.

- `SquaredLoss`, :math:`\lvert z-y\rvert^2` with \|y\| <= Y: alpha = 1/(2Y²), zeta = 0, beta = 1, gamma = 2.
- `LogCoshLoss`, :math:`s^2 \sum_j \ln\cosh((z_j-y_j)/s)` with all \|y_j\| <= Y: alpha = 1/(m s² sinh²(2Y/s)),
  zeta = 1/(s² ln 2), beta = 2 kappa of two classes with logits to (C + Y)/s, gamma = 1.
- `SoftmaxLoss`, :math:`\ln\sum_j e^{z_j} - y \cdot z`: alpha = 1, zeta = 1/(2 ln 2), beta = 2 kappa with logits to C,
  gamma = 1/2.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp

from regretless.core.errors import BadRow
from regretless.core.files.stored import Recipe
from regretless.core.kernels.jit import jitable, kernel
from regretless.core.rows import validate
from regretless.core.types import Array
from regretless.learners.second_order import curvature
from regretless.learners.second_order.expectation import three_classes, two_classes
from regretless.learners.second_order.surrogate import helmert
from regretless.theory.bounds.assumptions import SOFTMAX_ZETA

SQUARED, LOG_COSH = range(2)
CODE, BOUND, SCALE = range(3)  # the numbers of a compiled loss
LN2 = math.log(2.0)
MOST_EXACT_CLASSES = 3


class MixableLoss(ABC):
    r"""A loss for `GeneralGAF`: subclass it, and implement its methods with NumPy.

    `value`, `gradient` and `hessian` are those of the loss in the scores z (m,) for a target y (m,). The constants are
    those of the assumptions above. An exp-concave loss (:math:`e^{-\alpha\ell}` concave in z) is mixable by the mean,
    which is the default of `forecast`.

    >>> import numpy as np
    >>> from regretless import GeneralGAF, mixable
    >>> class Quadratic(mixable.MixableLoss):  # the squared loss of targets in [-1, 1], with weights below 1
    ...     def value(self, z, y): return float(((z - y) ** 2).sum())
    ...     def gradient(self, z, y): return 2 * (z - y)
    ...     def hessian(self, z, y): return 2 * np.eye(len(z))
    ...     def forecast(self, mean, covariance): return mean / (1 + np.diag(covariance))
    ...     def alpha(self, n_outputs): return 1 / 2
    ...     def beta(self, largest_score): return 1.0
    ...     def zeta(self): return 0.0
    ...     def gamma(self): return 2.0
    >>> learner = GeneralGAF(Quadratic(), radius=1.0).fit([[0.5], [1.0]], [0.3, 0.7])
    >>> print(f"{learner.predict([[1.0]])[0]:.3f}")
    0.340
    """

    name: ClassVar[str] = "user's"
    target_bound: float = math.inf  # of the targets

    @abstractmethod
    def value(self, z: Array, y: Array) -> float:
        """The loss of the scores z."""

    @abstractmethod
    def gradient(self, z: Array, y: Array) -> Array:
        """Its gradient (m,)."""

    @abstractmethod
    def hessian(self, z: Array, y: Array) -> Array:
        """Its Hessian (m, m)."""

    @abstractmethod
    def alpha(self, n_outputs: int) -> float:
        """The constant of (A1), mixability."""

    @abstractmethod
    def beta(self, largest_score: float) -> float:
        """The constant of (A3) for comparators whose scores have a norm up to `largest_score`."""

    @abstractmethod
    def zeta(self) -> float:
        """The constant of (A2)."""

    @abstractmethod
    def gamma(self) -> float:
        """The constant of (A4)."""

    def forecast(self, mean: Array, covariance: Array) -> Array:
        """A forecast that satisfies (A1) for scores distributed as N(mean, covariance)."""
        return mean

    def target_sizes(self, Y: Array) -> Array:
        """The sizes of targets (n, m), which `target_bound` limits."""
        sizes: Array = np.linalg.norm(Y, axis=1)
        return sizes

    def check_targets(self, Y: Array) -> None:
        """Raise `BadRow` for the first target outside the loss's range."""
        beyond = self.target_sizes(Y) > self.target_bound * (1 + 1e-12)
        if beyond.any():
            i = int(np.argmax(beyond))
            y = Y[i] if Y.shape[1] > 1 else Y[i, 0]
            raise BadRow(
                f"row {i}: y = {y} is beyond target_bound={self.target_bound:.6g} of the loss: raise it, or scale the "
                "targets."
            )

    def numbers(self) -> Array | None:
        """The numbers of a loss of this module, whose functions are compiled; None for other losses."""
        return None


class CompiledLoss(Recipe, MixableLoss):
    """A loss of this module: its methods call the kernels below."""

    def value(self, z: Array, y: Array) -> float:
        """The loss of the scores z."""
        return float(value(*_vectors(z, y), self._numbers()))

    def gradient(self, z: Array, y: Array) -> Array:
        """Its gradient (m,)."""
        z, y = _vectors(z, y)
        g = np.empty(z.size)
        gradient(z, y, self._numbers(), g)
        return g

    def hessian(self, z: Array, y: Array) -> Array:
        """Its Hessian (m, m)."""
        z, y = _vectors(z, y)
        H = np.empty((z.size, z.size))
        hessian(z, y, self._numbers(), H)
        return H

    def forecast(self, mean: Array, covariance: Array) -> Array:
        """A forecast that satisfies (A1) for scores distributed as N(mean, covariance)."""
        mean = np.array(mean, dtype=np.float64)
        score = np.empty(mean.size)
        forecast(mean, np.array(covariance, dtype=np.float64), self._numbers(), score)
        return score

    def numbers(self) -> Array | None:
        """The code of the loss, the bound of its targets, and its scale."""
        return self._numbers()

    @abstractmethod
    def _numbers(self) -> Array: ...


@dataclass(frozen=True)
class SquaredLoss(CompiledLoss):
    r"""The squared loss :math:`|z - y|^2` for targets of norm up to `target_bound`.

    GAF with it is the Vovk-Azoury-Warmuth forecaster (Section 4.1): the forecast m / (1 + q) satisfies (A1) with
    :math:`\alpha = 1/(2Y^2)`, since :math:`\ln(1+q) \ge q/(1+q)`.
    """

    target_bound: float = 1.0
    name: ClassVar[str] = "squared"

    def alpha(self, n_outputs: int) -> float:
        """1 / (2 Y^2)."""
        return 1.0 / (2.0 * validate.positive("target_bound", self.target_bound) ** 2)

    def beta(self, largest_score: float) -> float:
        """1: the quadratic is the loss."""
        return 1.0

    def zeta(self) -> float:
        """0: the second factor of (A2) alone is enough."""
        return 0.0

    def gamma(self) -> float:
        """2."""
        return 2.0

    def _numbers(self) -> Array:
        return np.array([SQUARED, self.target_bound, 1.0])


@dataclass(frozen=True)
class LogCoshLoss(CompiledLoss):
    r"""A smooth Huber loss, :math:`s^2 \sum_j \ln\cosh((z_j - y_j)/s)`, for targets in [-Y, Y].

    It grows like :math:`(z-y)^2/2` for residuals below the scale s, and like :math:`s\,|z-y|` beyond. Between the
    targets' bounds it is exp-concave, and a score outside them is worse for every target than the nearest bound. So the
    mean of the clipped scores satisfies (A1). (The Huber loss is not mixable for targets further apart than its
    straight parts: there it is the absolute loss.)

    (A3) holds because ln cosh u is the log loss of the logits (u, -u) under two equally probable classes.
    """

    scale: float = 1.0
    target_bound: float = 1.0
    name: ClassVar[str] = "log-cosh"

    def zeta(self) -> float:
        """1 / (s^2 ln 2)."""
        return 1.0 / (validate.positive("scale", self.scale) ** 2 * LN2)

    def alpha(self, n_outputs: int) -> float:
        """1 / (m s^2 sinh(2 Y / s)^2)."""
        s, Y = validate.positive("scale", self.scale), validate.positive("target_bound", self.target_bound)
        if 2.0 * Y / s > 300.0:
            raise ValueError(
                f"scale={s:.4g} is too small for target_bound={Y:.4g}: the loss is almost the absolute loss, which is "
                "not mixable. Use a larger scale."
            )
        return 1.0 / (n_outputs * s**2 * math.sinh(2.0 * Y / s) ** 2)

    def beta(self, largest_score: float) -> float:
        """Twice the "sharp" curvature of two classes with logits up to (C + Y) / s."""
        return 2.0 * float(curvature.kappa(curvature.SHARP, 0.0, (largest_score + self.target_bound) / self.scale, 2))

    def gamma(self) -> float:
        """1."""
        return 1.0

    def target_sizes(self, Y: Array) -> Array:
        """The largest entry of each target."""
        sizes: Array = np.abs(Y).max(axis=1)
        return sizes

    def _numbers(self) -> Array:
        return np.array([LOG_COSH, self.target_bound, self.scale])


@dataclass(frozen=True)
class SoftmaxLoss(Recipe, MixableLoss):
    r"""The log loss of two or three classes: targets are one-hot rows, scores are logits.

    GAF with it is the learner `GAF`, which is compiled and takes any number of classes.
    """

    name: ClassVar[str] = "softmax"

    def value(self, z: Array, y: Array) -> float:
        """The loss of the scores z."""
        return float(logsumexp(z) - y @ z)

    def gradient(self, z: Array, y: Array) -> Array:
        """Its gradient, p - y."""
        return np.exp(z - logsumexp(z)) - y

    def hessian(self, z: Array, y: Array) -> Array:
        """Its Hessian, diag p - p p^T."""
        p = np.exp(z - logsumexp(z))
        return np.diag(p) - np.outer(p, p)

    def forecast(self, mean: Array, covariance: Array) -> Array:
        """The logarithm of the expected softmax."""
        log_p = np.empty(mean.size)
        if mean.size == 2:
            two_classes(mean, covariance, log_p)
        else:
            three_classes(mean, covariance, helmert(3), log_p)
        return log_p

    def alpha(self, n_outputs: int) -> float:
        """1."""
        if not 2 <= n_outputs <= MOST_EXACT_CLASSES:
            raise ValueError(
                f"SoftmaxLoss computes exact expectations for two or three classes, and the targets have {n_outputs} "
                "columns: use GAF."
            )
        return 1.0

    def beta(self, largest_score: float) -> float:
        """Twice the "sharp" curvature for three classes with logits up to C, which also holds for two."""
        return 2.0 * float(curvature.kappa(curvature.SHARP, 0.0, largest_score, MOST_EXACT_CLASSES))

    def zeta(self) -> float:
        """1 / (2 ln 2)."""
        return SOFTMAX_ZETA

    def gamma(self) -> float:
        """1/2."""
        return 0.5

    def check_targets(self, Y: Array) -> None:
        """Refuse rows that are not distributions."""
        validate.label_distributions(Y, Y.shape[1])


def _vectors(z: Any, y: Any) -> tuple[Array, Array]:
    return np.atleast_1d(np.array(z, dtype=np.float64)), np.atleast_1d(np.array(y, dtype=np.float64))


@kernel
def value(z: Array, y: Array, numbers: Array) -> float:
    """The loss of the scores z."""
    total, scale = 0.0, numbers[SCALE]
    if numbers[CODE] == SQUARED:
        for j in range(z.size):
            total += (z[j] - y[j]) * (z[j] - y[j])
    else:
        for j in range(z.size):
            u = abs(z[j] - y[j]) / scale
            total += scale * scale * (u + math.log1p(math.exp(-2.0 * u)) - LN2)
    return total


@kernel
def gradient(z: Array, y: Array, numbers: Array, g: Array) -> None:
    """The gradient."""
    if numbers[CODE] == SQUARED:
        for j in range(z.size):
            g[j] = 2.0 * (z[j] - y[j])
    else:
        for j in range(z.size):
            g[j] = numbers[SCALE] * math.tanh((z[j] - y[j]) / numbers[SCALE])


@kernel
def hessian(z: Array, y: Array, numbers: Array, H: Array) -> None:
    """The Hessian."""
    H[:] = 0.0
    if numbers[CODE] == SQUARED:
        for j in range(z.size):
            H[j, j] = 2.0
    else:
        for j in range(z.size):
            small = math.exp(-2.0 * abs(z[j] - y[j]) / numbers[SCALE])
            H[j, j] = 4.0 * small / ((1.0 + small) * (1.0 + small))  # 1 - tanh^2, free of cancellation


@kernel
def forecast(mean: Array, covariance: Array, numbers: Array, score: Array) -> None:
    """The forecast of (A1) for scores distributed as N(mean, covariance)."""
    m, bound = mean.size, numbers[BOUND]
    if numbers[CODE] == SQUARED:
        for j in range(m):  # covariance = q Y^2 I: of the Gaussian with inverse covariance 2 alpha A
            score[j] = mean[j] / (1.0 + covariance[j, j] / (bound * bound))
    else:
        for j in range(m):
            score[j] = clipped_mean(mean[j], math.sqrt(max(covariance[j, j], 0.0)), bound)


@kernel
def clipped_mean(mean: float, deviation: float, bound: float) -> float:
    """E max(-b, min(b, z)) for z distributed as N(mean, deviation^2)."""
    if deviation <= 1e-12 * bound:
        return max(-bound, min(bound, mean))
    return -bound + deviation * (hinge_mean((mean + bound) / deviation) - hinge_mean((mean - bound) / deviation))


@kernel
def hinge_mean(a: float) -> float:
    """E (a + g)_+ for a standard Gaussian g: a Phi(a) + phi(a)."""
    return 0.5 * a * math.erfc(-a / math.sqrt(2.0)) + math.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)


# The same for the loop of GAF: with the functions of a user's loss, or None for a loss of this module.


@jitable
def value_by(loss: MixableLoss | None, z: Array, y: Array, numbers: Array) -> float:
    """The loss of the scores z."""
    return value(z, y, numbers) if loss is None else loss.value(z, y)


@jitable
def gradient_by(loss: MixableLoss | None, z: Array, y: Array, numbers: Array, g: Array) -> None:
    """The gradient."""
    if loss is None:
        gradient(z, y, numbers, g)
    else:
        g[:] = loss.gradient(z, y)


@jitable
def hessian_by(loss: MixableLoss | None, z: Array, y: Array, numbers: Array, H: Array) -> None:
    """The Hessian."""
    if loss is None:
        hessian(z, y, numbers, H)
    else:
        H[:] = loss.hessian(z, y)


@jitable
def forecast_by(loss: MixableLoss | None, mean: Array, covariance: Array, numbers: Array, score: Array) -> None:
    """The forecast of (A1)."""
    if loss is None:
        forecast(mean, covariance, numbers, score)
    else:
        score[:] = loss.forecast(mean, covariance)
