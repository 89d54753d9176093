"""Second-order learners: AIOLI, FOLKLORE, GAF, Online Newton Step and the Vovk-Azoury-Warmuth forecaster."""

from __future__ import annotations

import math

from regretless.core.errors import NoBound
from regretless.theory.bounds.assumptions import (
    SOFTMAX_ZETA,
    check_classes,
    check_counts,
    check_curvature,
    check_failure,
    check_gaf_regularization,
    check_nonnegative,
    check_positive,
    check_smoothing,
    least_gaf_regularization,
)


def aioli(
    n: int,
    *,
    n_features: int,
    radius: float,
    feature_bound: float,
    regularization: float,
    curvature: float,
    virtual_weight: float = 1.0,
) -> float:
    r"""AIOLI's regret (`aioli`, Theorem 1).

    .. math:: \lambda B^2 + a \frac{d}{2\kappa} \ln\left(1 + \frac{\kappa n R^2}{4d\lambda}\right)

    With a = 1 and :math:`\kappa = 1/(2(1+BR))` this is the statement in the paper; a = 1/2 halves the second term. For
    a < 1/2 the proof does not hold: the virtual labels no longer cover a certain mistake.

    **Order.** O(d B log n) regret against weights of norm at most B.

    **Assumes.** a >= 1/2; kappa is proved for margins up to BR.

    >>> round(aioli(1000, n_features=5, radius=3.0, feature_bound=1.0, regularization=1 / 9,
    ...             curvature=1 / 8), 2)
    81.95
    """
    check_counts(n_features=n_features)
    check_positive(radius=radius, regularization=regularization, curvature=curvature)
    check_nonnegative(n=n, feature_bound=feature_bound)
    check_curvature(curvature, logits=radius * feature_bound / 2, n_classes=2)
    if not 0.5 <= virtual_weight < math.inf:
        raise NoBound(f"AIOLI's theorem needs virtual_weight >= 1/2; this learner has {virtual_weight}.")
    growth = math.log1p(curvature * n * feature_bound**2 / (4 * n_features * regularization))
    return regularization * radius**2 + virtual_weight * n_features / (2 * curvature) * growth


def aioli_inexact(
    n: int,
    *,
    n_features: int,
    radius: float,
    feature_bound: float,
    regularization: float,
    error: float,
    curvature: float | None = None,
) -> float:
    r"""The regret of AIOLI with approximate forecasts (`aioli`, Theorem 7 corrected).

    .. math:: \lambda B^2 + \frac{d}{2\kappa} \ln\left(1 + \frac{\kappa n R^2}{4d\lambda}\right)
        + 3nR\left(\frac{(n+3)R^2}{16\lambda} + 1\right)\varepsilon

    Each row is forecast with weights at most :math:`\varepsilon` from the minimiser of its objective. The paper's last
    term is :math:`3nR(nR^2/(8\lambda) + B)\varepsilon`, which is too small for B < 1 (docs/errata.md, A4). Without a
    curvature, :math:`\kappa = 1/(2(1+BR))`, the paper's.

    **Order.** O(d B log n + n² ε) regret against weights of norm at most B.

    **Assumes.** kappa is proved for margins up to BR (so at most 1/2); virtual weight 1.

    >>> round(aioli_inexact(1000, n_features=5, radius=3.0, feature_bound=1.0, regularization=1 / 9, error=1e-7), 2)
    82.12
    """
    check_positive(radius=radius, regularization=regularization)
    check_nonnegative(n=n, feature_bound=feature_bound, error=error)
    exact = aioli(
        n,
        n_features=n_features,
        radius=radius,
        feature_bound=feature_bound,
        regularization=regularization,
        curvature=1 / (2 * (1 + radius * feature_bound)) if curvature is None else curvature,
    )
    reach = feature_bound**2 / regularization
    return exact + 3 * n * feature_bound * ((n + 3) * reach / 16 + 1) * error


def aioli_descent(
    n: int,
    *,
    n_features: int,
    radius: float,
    feature_bound: float,
    regularization: float,
    steps: int | None = None,
    curvature: float | None = None,
) -> float:
    r"""The regret of AIOLI with forecasts found by gradient descent (`aioli`, Theorem 4).

    .. math:: \lambda B^2 + \frac{d}{2\kappa} \ln\left(1 + \frac{\kappa n R^2}{4d\lambda}\right) + 1

    The final 1 bounds the total error of stopping each forecast after T steps of size :math:`\lambda/(4\lambda+R^2)`
    from 0. The paper's T has B in place of the last 1 in the logarithm, which is not enough for B < 1 (docs/errata.md).
    With steps=None row t has its own number, :math:`T_t \ge (2 + \frac r2) \ln(2t^2(t+1)r((t+1)r/8 + 1))`, with
    :math:`r = R^2/\lambda`: by Lemma 3 its error is then at most :math:`1/(t(t+1))`, and these sum to less than 1.
    Without a curvature, :math:`\kappa = 1/(2(1+BR))`, the paper's.

    **Order.** O(d B log n) regret against weights of norm at most B.

    **Assumes.** :math:`T \ge (4 + r)\ln(3n^2 r(nr/8 + 1))` steps, or steps=None; kappa is proved for margins up to BR
    (so at most 1/2); virtual weight 1.

    >>> round(aioli_descent(1000, n_features=5, radius=3.0, feature_bound=1.0, regularization=1 / 9,
    ...                     steps=314), 2)
    82.95
    """
    exact = aioli_inexact(
        n,
        n_features=n_features,
        radius=radius,
        feature_bound=feature_bound,
        regularization=regularization,
        error=0.0,
        curvature=curvature,
    )
    reach = feature_bound**2 / regularization
    error = 3 * n**2 * reach * (n * reach / 8 + 1)
    needed = math.ceil((4 + reach) * math.log(error)) if error > 1 else 0
    if steps is not None and not steps >= needed:
        raise NoBound(
            f"AIOLI's Theorem 4 needs at least {needed} steps of gradient descent per row; here steps={steps}."
        )
    return exact + 1


def aioli_excess_risk(n: int, *, n_features: int, radius: float, feature_bound: float) -> float:
    r"""The expected excess risk of AIOLI stopped at a random row (`aioli`, Corollary 6).

    .. math:: \frac1n \left[1 + d(1+BR) \ln\left(1 + \frac{n B^2 R^2}{8d(1+BR)}\right)\right]

    Online to batch: rows are drawn independently from one distribution, and the learner after the first tau - 1 rows,
    tau uniform in 1, ..., n, forecasts a new row. Its expected loss equals the expected mean loss of the n online
    forecasts, so its excess over the best weights of norm at most B is at most the regret divided by n.

    **Order.** O(d B log(n) / n) excess risk over weights of norm at most B.

    **Assumes.** independent rows of one distribution; n >= 1; lambda = 1/B^2; the paper's curvature, 1/(2(1+BR));
    virtual weight 1.

    >>> round(aioli_excess_risk(1000, n_features=5, radius=3.0, feature_bound=1.0), 4)
    0.0819
    """
    check_counts(n=n)
    check_positive(radius=radius)
    check_nonnegative(feature_bound=feature_bound)
    regret = aioli(
        n,
        n_features=n_features,
        radius=radius,
        feature_bound=feature_bound,
        regularization=1 / radius**2,
        curvature=1 / (2 * (1 + radius * feature_bound)),
    )
    return regret / n


def folklore(
    n: int,
    *,
    n_features: int,
    n_classes: int,
    radius: float,
    feature_bound: float,
    regularization: float,
    curvature: float,
) -> float:
    r"""FOLKLORE's regret (`folklore`, Theorem 3 corrected).

    .. math:: \lambda K B^2 + \frac{(K-1)d}{4\kappa} \ln\left(1 + \frac{2\kappa n R^2}{\lambda}\right)

    The paper drops the factor 1/4 of its Lemma 6 and counts K d directions instead of the (K-1) d that matter
    (docs/errata.md). The weights of each class have norm at most B.

    **Order.** O(d K B log n) regret against one weight vector of norm at most B per class.

    **Assumes.** kappa R^2 <= lambda/2; kappa is proved for logits up to BR.

    >>> round(folklore(1000, n_features=5, n_classes=3, radius=3.0, feature_bound=1.0,
    ...                regularization=2 / 3, curvature=1 / 8), 2)
    136.59
    """
    check_counts(n_features=n_features)
    check_classes(n_classes)
    check_positive(radius=radius, regularization=regularization, curvature=curvature)
    check_nonnegative(n=n, feature_bound=feature_bound)
    check_curvature(curvature, logits=radius * feature_bound, n_classes=n_classes)
    if curvature * feature_bound**2 > regularization / 2 * (1 + 1e-12):
        raise NoBound(
            f"FOLKLORE's theorem needs curvature * R^2 <= regularization / 2; here "
            f"{curvature:.4g} * {feature_bound:.4g}^2 > {regularization:.4g} / 2. Raise regularization to at "
            f"least {2 * curvature * feature_bound**2:.4g}, or scale the rows down."
        )
    growth = math.log1p(2 * curvature * n * feature_bound**2 / regularization)
    return regularization * n_classes * radius**2 + (n_classes - 1) * n_features / (4 * curvature) * growth


def gaf_general(
    n: int,
    *,
    size: int,
    n_scores: int,
    radius: float,
    regularization: float,
    alpha: float,
    beta: float,
    zeta: float,
    gamma: float,
) -> float:
    r"""GAF's regret, for any mixable loss of scores Wx (`gaf`, Theorem 1).

    .. math:: \lambda B^2 + \frac N\alpha\left(\frac12 + \frac{2\sqrt3}\beta\right)
        \ln\left(1 + \frac{n\beta\gamma}{2\lambda}\right)

    for N parameters, with the constants of (A1) to (A4) of the paper. Where (A2) holds in the m scores,
    :math:`\zeta|Wx - W'x|^2 \le \zeta R^2|W - W'|^2`, its Gaussian has m dimensions and not N, so that lambda needs
    max(4, m) and not max(4, N) (docs/errata.md). For (A2) in the parameters, pass m = N.

    **Order.** O(d m log n) regret against matrices of Frobenius norm at most B.

    **Assumes.** lambda >= max(4, m) zeta / alpha; (A1) to (A4) for all rows; exact forecasts.

    >>> round(gaf_general(1000, size=5, n_scores=1, radius=3.0, regularization=1.0, alpha=0.5, beta=1.0, zeta=0.0,
    ...                   gamma=2.0), 2)
    282.87
    """
    check_counts(size=size, n_scores=n_scores)
    check_positive(radius=radius, regularization=regularization, alpha=alpha, beta=beta)
    check_nonnegative(n=n, zeta=zeta, gamma=gamma)
    check_gaf_regularization(regularization, n_scores=n_scores, alpha=alpha, zeta=zeta)
    growth = math.log1p(n * beta * gamma / (2 * regularization))
    return regularization * radius**2 + size / alpha * (0.5 + 2 * math.sqrt(3) / beta) * growth


def gaf(
    n: int,
    *,
    n_features: int,
    n_classes: int,
    radius: float,
    feature_bound: float,
    regularization: float,
    curvature: float,
    smoothing: float = 0.0,
) -> float:
    r"""GAF's regret, for the log loss and exact expectations (`gaf`, Theorem 1).

    .. math:: \lambda B^2 + dK\left(\frac12 + \frac{\sqrt3}\kappa\right) \ln\left(1 + \frac{\kappa n R^2}\lambda\right)
        + 2\mu n

    The constants are alpha = 1, :math:`\zeta = R^2/(2\ln 2)` in K - 1 scores, gamma = R^2 and beta = 2 kappa. (The
    paper has :math:`\zeta = 4R^2` in dK parameters: docs/errata.md.) The last term is the cost of smoothing the
    forecasts by mu. W has Frobenius norm at most B.

    **Order.** O(d K (B² + B log n)) regret against matrices of Frobenius norm at most B.

    **Assumes.** lambda >= max(4, K-1) R^2 / (2 ln 2); mu <= 1/2; kappa is proved for logits up to BR.

    >>> round(gaf(1000, n_features=5, n_classes=3, radius=3.0, feature_bound=1.0,
    ...           regularization=3.0, curvature=1 / 8), 2)
    835.28
    """
    check_counts(n_features=n_features)
    check_classes(n_classes)
    check_positive(radius=radius, curvature=curvature)
    check_nonnegative(feature_bound=feature_bound, smoothing=smoothing)
    exact = gaf_general(
        n,
        size=n_features * n_classes,
        n_scores=n_classes - 1,
        radius=radius,
        regularization=regularization,
        alpha=1.0,
        beta=2 * curvature,
        zeta=SOFTMAX_ZETA * feature_bound**2,
        gamma=feature_bound**2,
    )
    check_smoothing(smoothing)
    check_curvature(curvature, logits=radius * feature_bound, n_classes=n_classes)
    return exact + 2 * smoothing * n


def gaf_logistic(n: int, *, n_features: int, n_classes: int, radius: float, feature_bound: float) -> float:
    r"""GAF's regret with the parameters of the theory (`gaf`, Corollary 2).

    .. math:: hB^2R^2 + dK\left(\frac12 + 2\sqrt3 b\right) \ln\left(1 + \frac n{2hb}\right), \quad
        h = \frac{\max(4, K-1)}{2\ln 2}, \ b = \frac{\ln K}2 + BR + 1

    This is Theorem 1 with the constants that the corollary leaves out, and the smallest lambda that it allows. The
    paper's is 32 d K R^2 (docs/errata.md).

    **Order.** O(d K (B² + B log n)) regret against matrices of Frobenius norm at most B.

    **Assumes.** exact expectations; R > 0; lambda = h R^2; beta = 2 kappa = 1/b.

    >>> round(gaf_logistic(1000, n_features=5, n_classes=3, radius=3.0, feature_bound=1.0), 2)
    920.04
    """
    check_counts(n_features=n_features)
    check_classes(n_classes)
    check_positive(radius=radius, feature_bound=feature_bound)
    return gaf(
        n,
        n_features=n_features,
        n_classes=n_classes,
        radius=radius,
        feature_bound=feature_bound,
        regularization=least_gaf_regularization(
            n_scores=n_classes - 1, alpha=1.0, zeta=SOFTMAX_ZETA * feature_bound**2
        ),
        curvature=1 / (math.log(n_classes) + 2 * (radius * feature_bound + 1)),
    )


def gaf_sampled(
    n: int,
    *,
    n_features: int,
    n_classes: int,
    radius: float,
    feature_bound: float,
    regularization: float,
    curvature: float,
    smoothing: float,
    n_samples: int,
    failure: float,
) -> float:
    r"""GAF's regret with sampled expectations (`gaf`, Proposition 3).

    .. math:: \mathcal R + n\varepsilon, \quad \varepsilon = \sqrt{\frac K{\mu m} \ln\frac n\delta}

    with :math:`\mathcal R` from Theorem 1 (`gaf`) with its cost of smoothing, 2 mu per row, and m independent samples
    per row. With probability :math:`1-\delta` sampling costs at most epsilon per row. At the paper's
    :math:`\mu = (K \ln(n/\delta) / m)^{1/3}` (printed without K) epsilon is mu. One step of its proof fails, but the
    conclusion holds (docs/errata.md).

    **Order.** O(d K (B² + B log n) + n (K log(n) / m)^⅓) regret against matrices of Frobenius norm at most B.

    **Assumes.** those of `gaf`; mu > 0; epsilon <= 1/2; labels that do not depend on the samples of their own row;
    0 < delta < 1.

    >>> round(gaf_sampled(1000, n_features=5, n_classes=3, radius=3.0, feature_bound=1.0, regularization=3.0,
    ...                   curvature=1 / 8, smoothing=0.003, n_samples=10**9, failure=0.01), 2)
    844.68
    """
    check_counts(n_samples=n_samples)
    check_failure(failure)
    check_positive(smoothing=smoothing)
    exact = gaf(
        n,
        n_features=n_features,
        n_classes=n_classes,
        radius=radius,
        feature_bound=feature_bound,
        regularization=regularization,
        curvature=curvature,
        smoothing=smoothing,
    )
    log = math.log(max(n, 1) / failure)
    cost = math.sqrt(n_classes * log / (smoothing * n_samples))
    if cost > 0.5:
        raise NoBound(
            f"GAF's Proposition 3 needs n_samples >= 4 K ln(n/delta) / mu = {4 * n_classes * log / smoothing:.4g}, so "
            f"that sampling costs at most 1/2 per row; here n_samples={n_samples}."
        )
    return exact + n * cost


def online_newton_step(
    n: int, *, size: int, radius: float, gradient_bound: float, gamma: float, epsilon: float
) -> float:
    r"""The regret of the Online Newton Step (`ons`, Theorem 2).

    .. math:: \frac{\gamma\varepsilon}2 B^2 + \frac N{2\gamma} \ln\left(1 + \frac{n G^2}{N\varepsilon}\right)

    for N parameters, started at 0. These are the constants of the proof, before the paper rounds them.

    **Order.** O(d K e^B log n) regret against weights of norm at most B, for the log loss.

    **Assumes.** gradients of norm at most G; losses above their quadratics of curvature gamma (by Lemma 3, true for
    gamma = min(1/(8GB), alpha)/2 if the losses are alpha-exp-concave).

    >>> round(online_newton_step(1000, size=5, radius=3.0, gradient_bound=1.0, gamma=0.02, epsilon=70.0), 2)
    175.04
    """
    check_counts(size=size)
    check_positive(radius=radius, gamma=gamma, epsilon=epsilon)
    check_nonnegative(n=n, gradient_bound=gradient_bound)
    growth = math.log1p(n * gradient_bound**2 / (size * epsilon))
    return gamma * epsilon / 2 * radius**2 + size / (2 * gamma) * growth


def vovk_azoury_warmuth(
    n: int,
    *,
    n_features: int,
    comparator_norm: float,
    feature_bound: float,
    label_bound: float,
    regularization: float,
) -> float:
    r"""The regret of the Vovk-Azoury-Warmuth forecaster (`vovk`, `azoury-warmuth`).

    .. math:: \lambda \lvert u\rvert^2 + Y^2 d \ln\left(1 + \frac{n R^2}{\lambda d}\right)

    for the square loss :math:`(y - \hat y)^2`, against any weights u.

    **Order.** O(d log n) regret against every linear predictor.

    **Assumes.** labels in [-Y, Y]; rows of norm at most R.

    >>> round(vovk_azoury_warmuth(1000, n_features=5, comparator_norm=3.0, feature_bound=1.0, label_bound=1.0,
    ...                           regularization=1.0), 2)
    35.52
    """
    check_counts(n_features=n_features)
    check_positive(regularization=regularization)
    check_nonnegative(n=n, comparator_norm=comparator_norm, feature_bound=feature_bound, label_bound=label_bound)
    growth = math.log1p(n * feature_bound**2 / (regularization * n_features))
    return regularization * comparator_norm**2 + label_bound**2 * n_features * growth
