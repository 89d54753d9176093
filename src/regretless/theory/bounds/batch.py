"""Batch predictors: bounds on the risk on new rows, in expectation and with high probability."""

from __future__ import annotations

import math

from regretless.theory.bounds.assumptions import (
    check_classes,
    check_counts,
    check_nonnegative,
    check_positive,
)


def sample_minmax(
    n: int,
    *,
    n_features: int,
    n_classes: int,
    comparator_norm: float,
    feature_bound: float,
    regularization: float,
) -> float:
    r"""The expected excess risk of the sample minmax predictor (`smp`, with explicit constants).

    .. math:: \frac{1}{n+1}\left[\lambda|u|^2 + \frac{cN}{1 + 2\lambda N/T}\right], \qquad
        N = (K-1)d, \quad \rho = \frac{R^2}{2\lambda}

    with :math:`c = \frac{e^{2\rho}-1}{2\rho}` and :math:`T = (n+1)R^2/4` for two classes (weights of the margin), and
    :math:`c = e^{4\rho}\,\frac{e^{2\rho}-1}{2\rho}` and :math:`T = (n+1)R^2(1 - 1/K)` for more (one row of weights per
    class, Frobenius norm). The weights may also be restricted to a ball that contains u.

    Draw n + 1 rows, and let w be the regularized weights of all of them. The n + 1 rows are exchangeable, so the mean
    of a row's :math:`\ell(w) + \lambda|w|^2/(n+1)` is the expectation of the last row's, and w minimises the mean: the
    excess risk is at most :math:`\lambda|u|^2/(n+1)` plus the expectation of the last row's
    :math:`\ell(p) - \ell(w) - \lambda|w|^2/(n+1)`, which for the predictor p is the logarithm of its normaliser, for
    either label. It remains to bound :math:`\sum_y \mathrm{softmax}(w_yx)_y - 1` by c times the leverage of the last
    row, :math:`\mathrm{tr}\,H^{-1}(S \otimes xx^T)` with H the Hessian of all n + 1 rows at w and S the softmax's.
    The leverages of n + 1 rows sum to :math:`\sum_j \mu_j/(\mu_j+2\lambda)` for N numbers of sum at most T, which is at
    most :math:`N/(1+2\lambda N/T)`.

    Two classes: this sum is :math:`\Delta = \int \sigma'(m)\,dm` between the margins :math:`m_-, m_+` of the two
    refits. As the margin moves, the slope s of the fitted rows' minimum at that margin changes from its value at w by
    :math:`1 - \Delta` in all; weights change by at most :math:`R/(2\lambda)` per unit of s, so margins of all rows by
    at most :math:`\rho`, and Hessians by factors :math:`e^{\rho s}`. With :math:`q = x^TH_n^{-1}x` and
    :math:`h = \sigma'` at w, :math:`\Delta \le hq\int_0^{1-\Delta} e^{2\rho s}ds \le c\,hq(1-\Delta)`, so
    :math:`\Delta \le chq/(1+chq) \le c\,hq/(1+hq)`, c times the leverage. More classes: with :math:`\bar p` the
    forecast of the n rows' weights, convexity gives :math:`\mathrm{softmax}(w_yx)_y \le \bar p_y e^{b_y}`, where
    :math:`b_y = (e_y-\bar p)^TM(e_y-\bar p) \le 2\rho` and M is the mean inverse Hessian of the scores on the way. All
    weights on the way are within :math:`R/(\sqrt2\lambda)` of w, so that logits differ by at most :math:`2\rho`, and
    each of M and :math:`\bar S = E_{\bar p}(e_y-\bar p)(e_y-\bar p)^T` is at most :math:`e^{2\rho}` times its value at
    w. A ball only makes refits move less.

    **Order.** O((d K + B²R²) / n) excess risk over weights of norm at most B.

    **Assumes.** independent rows of one distribution, of norm at most R and weight 1; exact refits.

    >>> round(sample_minmax(1000, n_features=5, n_classes=2, comparator_norm=3.0, feature_bound=1.0,
    ...                     regularization=1.0), 4)
    0.0173
    """
    check_counts(n_features=n_features)
    check_classes(n_classes)
    check_positive(regularization=regularization)
    check_nonnegative(n=n, comparator_norm=comparator_norm, feature_bound=feature_bound)
    penalty = regularization * comparator_norm**2
    size = (n_classes - 1) * n_features
    trace = (n + 1) * feature_bound**2 * (0.25 if n_classes == 2 else 1 - 1 / n_classes)
    if trace == 0.0:
        return penalty / (n + 1)  # all rows are 0: every forecast is uniform
    rho = feature_bound**2 / (2 * regularization)
    exponent = 2 * rho if n_classes == 2 else 6 * rho
    if exponent > 700.0:
        return math.inf
    factor = math.exp(exponent - 2 * rho) * math.expm1(2 * rho) / (2 * rho)
    return (penalty + factor * size / (1 + 2 * regularization * size / trace)) / (n + 1)
