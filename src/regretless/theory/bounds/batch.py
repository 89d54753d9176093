"""Batch predictors: bounds on the risk on new rows, in expectation and with high probability."""

from __future__ import annotations

import math

from regretless.theory.bounds.assumptions import (
    check_classes,
    check_counts,
    check_failure,
    check_nonnegative,
    check_positive,
)

N_RATES = 8  # eta = alpha/2, alpha/4, ... in `averaged_log_loss`


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
    0.0172
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


def averaged_log_loss(
    n: int, *, regret: float, n_classes: int, radius: float, feature_bound: float, failure: float
) -> float:
    r"""The excess risk, with probability 1 - δ, of a proper learner's mean weights (`mehta`, sharper).

    .. math:: \frac1n \min_{\eta = \alpha/2, \alpha/4, \ldots, \alpha/2^8}
        c_\eta\left[\mathrm{regret} + \frac1\eta\ln\frac8\delta\right], \qquad
        c_\eta = \max\left(\frac{1}{1-\eta/\alpha}, \frac{b - a}{\frac{1-e^{-\eta b}}{\eta} - a}\right), \quad
        a = \frac{1-e^{-\alpha b}}{\alpha}

    for the log loss over the ball of radius B. With C = BR for two classes and :math:`C = \sqrt2BR` for more, it is
    :math:`\alpha`-exp-concave with :math:`\alpha = e^{-C}/(K-1)`, and its values differ by at most
    :math:`b = \ln\frac{1+(K-1)e^C}{1+(K-1)e^{-C}}`. The regret is that of the n rows, observed or proved: there is no
    :math:`\sqrt n` beyond it.

    Let u be the best weights of the ball and D the loss of the learner's weights w minus that of u, on a new row. On
    the segment from u to w, :math:`-\frac1\alpha\ln((1-s)e^{-\alpha\ell(u)} + se^{-\alpha\ell(w)})` is at least the
    loss, so its expectation is at least that of u, and its derivative at s = 0 gives :math:`E e^{-\alpha D} \le 1`.
    For :math:`x \le b`, :math:`x \le \frac c\eta(1-e^{-\eta x}) - \frac{c-1}\alpha(1-e^{-\alpha x})`: the difference is
    0 with slope 0 at 0, its derivative is a concave function of :math:`e^{-\eta x}`, so that it falls to 0 for x < 0
    and first rises and then falls for x > 0, and c is chosen so that it is not negative at b. The expectation gives
    :math:`ED \le \frac c\eta(1 - Ee^{-\eta D}) \le -\frac c\eta\ln Ee^{-\eta D}`. The products of
    :math:`e^{-\eta D_t}/E_{t-1}e^{-\eta D_t}` have mean 1, so by Markov's inequality, with probability
    :math:`1-\delta/8` for each of the eight :math:`\eta`, the sum of the learner's excess risks is at most c times the
    sum of :math:`D_t`, which is at most the regret, plus :math:`\frac1\eta\ln\frac8\delta`. The risk is convex.

    **Order.** O((regret + e^(BR) log(1/δ)) / n) excess risk over weights of norm at most B, with probability 1 - δ.

    **Assumes.** independent rows of one distribution, of norm at most R and weight 1; n >= 1; the learner's weights are
    always in the ball; regret against all of the ball.

    >>> round(averaged_log_loss(10_000, regret=20.0, n_classes=2, radius=2.0, feature_bound=1.0, failure=0.05), 4)
    0.0199
    """
    check_counts(n=n)
    check_classes(n_classes)
    check_positive(radius=radius)
    check_nonnegative(feature_bound=feature_bound, regret=regret)
    check_failure(failure)
    spread = radius * feature_bound * (1.0 if n_classes == 2 else math.sqrt(2.0))
    if spread > 700.0:
        return math.inf
    alpha = math.exp(-spread) / (n_classes - 1)
    most = math.log1p((n_classes - 1) * math.exp(spread)) - math.log1p((n_classes - 1) * math.exp(-spread))

    def bend(rate: float) -> float:
        """(b - (1 - e^(-rate b)) / rate) / b^2."""
        x = rate * most
        return rate * ((x + math.expm1(-x)) / x**2 if x > 1e-4 else 0.5 - x / 6 + x**2 / 24)

    found = math.inf
    for j in range(1, N_RATES + 1):
        eta = alpha / 2**j
        factor = max(1 / (1 - 0.5**j), bend(alpha) / (bend(alpha) - bend(eta)))
        found = min(found, factor * (regret + math.log(N_RATES / failure) / eta) / n)
    return found


def shifted_average(n: int, *, regret: float, label_bound: float, prediction_bound: float, failure: float) -> float:
    r"""The excess risk, with probability 1 - δ, of averaged forecasts under the squared loss (`shifted`).

    .. math:: \frac1n\left[\frac12\mathrm{regret} + \frac1\eta\ln\frac1\delta\right], \qquad
        \psi(\eta EA) \eta A^2 = \frac12, \quad \psi(b) = \frac{e^b-1-b}{b^2}, \quad
        A = \frac{7Y + M}{2}, \quad E = Y + M

    where the online learner forecasts :math:`\hat y_t`, clipped to [-Y, Y], and learns the shifted label
    :math:`2y_t - \hat y_t`, and the regret is that on shifted labels, against a predictor f with
    :math:`|f(x)| \le M`. For M = Y, :math:`1/\eta` is about :math:`18.6Y^2`.

    With :math:`D = f - \hat y`, the squared loss of :math:`\hat y` minus that of f is
    :math:`\Delta = 2(y-\hat y)D - D^2`. Half the difference for shifted labels is :math:`\zeta = \Delta + D^2/2`: the
    shift leaves a term of second order. Since :math:`\zeta = D(2y - \frac32\hat y - \frac12f)`,
    :math:`|\zeta| \le \min(A|D|, EA)`, so
    :math:`e^{-\eta\zeta} \le 1 - \eta\zeta + \psi(\eta EA)\eta^2\zeta^2 \le 1 - \eta\Delta`, whose expectation is at
    most :math:`e^{-\eta E\Delta}`. By Markov's inequality for the product over the rows, with probability
    :math:`1-\delta` the sum of the forecasters' excess risks is at most that of :math:`\zeta_t`, half the regret, plus
    :math:`\frac1\eta\ln\frac1\delta`. The risk is convex, so the mean forecast is not worse. Without the shift this is
    false for improper forecasters, which may have deviations of order :math:`1/\sqrt n` (`audibert`).

    **Order.** O((regret + Y² log(1/δ)) / n) excess risk over linear predictors, with probability 1 - δ.

    **Assumes.** independent rows of one distribution, with labels in [-Y, Y]; n >= 1.

    >>> round(shifted_average(10_000, regret=50.0, label_bound=1.0, prediction_bound=1.0, failure=0.05), 4)
    0.0081
    """
    from scipy.optimize import brentq  # here: it takes a tenth of the time of a first forecast

    check_counts(n=n)
    check_positive(label_bound=label_bound)
    check_nonnegative(prediction_bound=prediction_bound, regret=regret)
    check_failure(failure)
    A, E = (7 * label_bound + prediction_bound) / 2, label_bound + prediction_bound
    # psi(b) b = E / (2 A) for b = eta E A, and E / (2 A) < 1, so that b < 2
    b = brentq(lambda b: (math.expm1(b) - b) / b - E / (2 * A), 1e-9, 2.0, xtol=1e-15)
    return (regret / 2 + math.log(1 / failure) * E * A / b) / n
