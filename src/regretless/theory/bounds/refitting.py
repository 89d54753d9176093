"""Learners that store every row: FTRL with the true losses, AIOLI with a kernel and the aggregating forecaster."""

from __future__ import annotations

import math

from regretless.core.errors import NoBound
from regretless.theory.bounds.assumptions import (
    SOFTMAX_ZETA,
    check_classes,
    check_counts,
    check_curvature,
    check_gaf_regularization,
    check_nonnegative,
    check_positive,
    check_smoothing,
)


def ftrl(n: int, *, comparator_norm: float, gradient_bound: float, regularization: float) -> float:
    r"""The regret of following the regularized leader (`ftrl-survey`, with a fixed regularizer).

    .. math:: \lambda|u|^2 + \frac{nG^2}{4\lambda}

    with :math:`\lambda|w|^2` added to the losses, over the whole space or a convex set. On t rows, the objective is
    :math:`2\lambda`-strongly convex with gradient g at the leader of t - 1 rows, so the leader of t rows is better by
    at most :math:`|g|^2/(4\lambda)`. The sum of these differences bounds the regret.

    **Order.** O(B G √n) regret against weights of norm B, for the best regularization.

    **Assumes.** convex losses with gradients of norm at most G at the leaders.

    >>> ftrl(100, comparator_norm=1.0, gradient_bound=1.0, regularization=5.0)
    10.0
    """
    check_positive(regularization=regularization)
    check_nonnegative(n=n, comparator_norm=comparator_norm, gradient_bound=gradient_bound)
    return regularization * comparator_norm**2 + n * gradient_bound**2 / (4 * regularization)


def kernel_aioli(
    *,
    log_determinant: float,
    radius: float,
    feature_bound: float,
    regularization: float,
    curvature: float,
    virtual_weight: float = 1.0,
) -> float:
    r"""The regret of AIOLI with a kernel (`aioli`, section 4.1, with the log-determinant).

    .. math:: \lambda B^2 + \frac{a}{2\kappa} \ln\det\left(I + \frac{\kappa}{4\lambda} K\right)

    where K is the kernel matrix of the rows. The paper has the effective dimension in place of the log-determinant,
    which is at most :math:`d_{eff}(\mu)\,(1 + \ln(1 + nR^2/\mu))` for :math:`\mu = 4\lambda/\kappa` and
    :math:`d_{eff}(\mu) = \mathrm{tr}\,K(K + \mu I)^{-1} \le nR^2/\mu`. For an eigenvalue :math:`s\mu` of K this is
    :math:`\ln(1+s) \le \frac{s}{1+s}(1 + \ln(1+s))`, equivalent to :math:`\ln(1+s) \le s`.

    **Order.** O(d_eff B log n) regret against functions of norm at most B in the kernel space.

    **Assumes.** a >= 1/2; kappa is proved for margins up to BR, R the largest square root of k(x, x); K is the kernel
    matrix.

    >>> given = {"radius": 3.0, "feature_bound": 1.0, "regularization": 1 / 9, "curvature": 1 / 8}
    >>> round(kernel_aioli(log_determinant=10.0, **given), 2)
    41.0
    """
    check_positive(radius=radius, regularization=regularization, curvature=curvature)
    check_nonnegative(log_determinant=log_determinant, feature_bound=feature_bound)
    check_curvature(curvature, logits=radius * feature_bound / 2, n_classes=2)
    if not 0.5 <= virtual_weight < math.inf:
        raise NoBound(f"AIOLI's theorem needs virtual_weight >= 1/2; this learner has {virtual_weight}.")
    return regularization * radius**2 + virtual_weight / (2 * curvature) * log_determinant


def kernel_gaf(
    n: int,
    *,
    log_determinant: float,
    n_classes: int,
    radius: float,
    feature_bound: float,
    regularization: float,
    curvature: float,
    smoothing: float = 0.0,
) -> float:
    r"""The regret of GAF with a kernel (`gaf`, Theorem 1 and Section 6, with the log-determinant).

    .. math:: \lambda B^2 + (K-1)\left(\frac12 + \frac{\sqrt3}\kappa\right)
        \ln\det\left(I + \frac{\kappa}{2\lambda} \mathbf K\right) + 2\mu n

    where :math:`\mathbf K` is the kernel matrix of the rows. In the proof of Theorem 1 the dimension enters only
    through (A2), which for the log loss holds in K - 1 scores (`gaf_general`), and through the determinant of A, which
    is at most the (K-1)th power of this one, because the Hessian of the log loss is at most 1/2.

    **Order.** O(K d_eff B log n) regret against functions of joint norm at most B in the kernel space.

    **Assumes.** lambda >= max(4, K-1) R^2 / (2 ln 2), R the largest square root of k(x, x); mu <= 1/2; kappa is proved
    for logits up to BR; exact expectations.

    >>> given = {"n_classes": 3, "radius": 3.0, "feature_bound": 1.0, "regularization": 3.0, "curvature": 1 / 8}
    >>> round(kernel_gaf(100, log_determinant=10.0, **given), 2)
    314.13
    """
    check_classes(n_classes)
    check_positive(radius=radius, regularization=regularization, curvature=curvature)
    check_nonnegative(n=n, log_determinant=log_determinant, feature_bound=feature_bound, smoothing=smoothing)
    check_gaf_regularization(regularization, n_scores=n_classes - 1, alpha=1.0, zeta=SOFTMAX_ZETA * feature_bound**2)
    check_smoothing(smoothing)
    check_curvature(curvature, logits=radius * feature_bound, n_classes=n_classes)
    growth = (n_classes - 1) * (0.5 + math.sqrt(3) / curvature) * log_determinant
    return regularization * radius**2 + growth + 2 * smoothing * n


def aggregating(
    n: int, *, n_features: int, n_classes: int, radius: float, feature_bound: float, smoothing: float = 0.0
) -> float:
    r"""The regret of the aggregating forecaster with a uniform prior on a ball (`foster2018`, with its constants).

    .. math:: \min_{0 < a \le 1} \left[N \ln\frac1a + a n \ln K + n\min\left(as, \frac{(as)^2}{2}\right)\right]
        + n\ln\frac{1}{1-\mu}, \qquad N = (K-1)d

    with :math:`s = BR/(2\sqrt{N+2})` for two classes and :math:`s = BR\sqrt{K-1}/\sqrt{2(N+2)}` for more. For large n
    this is about :math:`N \ln(n \ln K/N)`.

    A mixture of probabilities has loss :math:`-\ln E e^{-L}`, where L is the total loss and E the mean over the prior.
    The part :math:`(1-a)w^* + av` of the ball, v in the ball, has mass :math:`a^N`, so by Jensen the mixture has loss
    at most :math:`N\ln(1/a) + E_v L`. L is convex and equals :math:`n \ln K` at 0: :math:`L((1-a)w^*) \le L(w^*) +
    an\ln K`. The logits z of v have mean 0, and adding av raises the loss of a row by at most
    :math:`a E\max_k z_k \le as` and by at most :math:`\frac{a^2}{2} E \max_p \mathrm{Var}_p(z) \le (as)^2/2`, because
    the coordinates of v have variance :math:`B^2/(N+2)`.

    **Order.** O(d K log n) regret against matrices of Frobenius norm at most B, for every B.

    **Assumes.** forecasts are the exact mixture, smoothed by mu < 1; rows of weight 1 and norm at most R.

    >>> round(aggregating(10_000, n_features=1, n_classes=2, radius=9.21, feature_bound=1.0), 2)
    9.84
    """
    check_counts(n_features=n_features)
    check_classes(n_classes)
    check_positive(radius=radius)
    check_nonnegative(n=n, feature_bound=feature_bound)
    if not 0 <= smoothing < 1:
        raise NoBound(f"smoothing must be in [0, 1): at 1 every forecast is uniform; here smoothing={smoothing}.")
    if n == 0:
        return 0.0
    size = (n_classes - 1) * n_features
    s = radius * feature_bound * (0.5 if n_classes == 2 else math.sqrt((n_classes - 1) / 2)) / math.sqrt(size + 2)
    slope = n * math.log(n_classes)
    linear = min(1.0, size / (slope + n * s))
    square = min(1.0, 2 * size / (slope + math.sqrt(slope**2 + 4 * n * s**2 * size)))
    least = min(size * math.log(1 / a) + a * slope + n * min(a * s, (a * s) ** 2 / 2) for a in (linear, square))
    return least - n * math.log1p(-smoothing)
