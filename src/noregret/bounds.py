"""One function per theorem, named after it: the regret it promises after n rows, with explicit constants.

Assumptions are checked; a violated one is named in a `NoBound` error.
"""

from __future__ import annotations

import math

from noregret.errors import NoBound


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
    r"""AIOLI, Theorem 1: :math:`\lambda B^2 + a \frac{d}{2\kappa} \ln(1 + \kappa n R^2 / (4 d \lambda))`.

    With virtual weight a = 1 and kappa = 1/(2(1+BR)) this is the text's statement; a = 1/2 halves the second term.
    Below 1/2 the virtual labels no longer cover a sure mistake and the proof breaks.

    >>> round(aioli(1000, n_features=5, radius=3.0, feature_bound=1.0, regularization=1 / 9,
    ...             curvature=1 / 8), 2)
    81.95
    """
    if virtual_weight < 0.5:
        raise NoBound(f"AIOLI's theorem needs virtual_weight >= 1/2; this learner has {virtual_weight}.")
    growth = math.log1p(curvature * n * feature_bound**2 / (4 * n_features * regularization))
    return regularization * radius**2 + virtual_weight * n_features / (2 * curvature) * growth


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
    r"""FOLKLORE, Theorem 3 corrected: :math:`\lambda K B^2 + \frac{(K-1)d}{4\kappa} \ln(1 + 2\kappa n R^2/\lambda)`.

    The text drops the 1/4 of its Lemma 6 and counts K d directions where (K-1) d can move (docs/errata.md).
    """
    if curvature * feature_bound**2 > regularization / 2 * (1 + 1e-12):
        raise NoBound(
            f"FOLKLORE's theorem needs curvature * R^2 <= regularization / 2, and here "
            f"{curvature:.4g} * {feature_bound:.4g}^2 > {regularization:.4g} / 2: raise regularization to at "
            f"least {2 * curvature * feature_bound**2:.4g}, or scale the rows down."
        )
    growth = math.log1p(2 * curvature * n * feature_bound**2 / regularization)
    return regularization * n_classes * radius**2 + (n_classes - 1) * n_features / (4 * curvature) * growth


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
    r"""GAF, Theorem 1 for the log loss (alpha = 1, zeta = 4R^2, gamma = R^2, beta = 2 kappa), plus
    :math:`2\mu n` for smoothing:
    :math:`\lambda B^2 + dK\,(\tfrac12 + 2\sqrt3/\beta) \ln(1 + n\beta R^2/(2\lambda)) + 2\mu n`."""
    size = n_features * n_classes
    least = max(4, size) * 4 * feature_bound**2
    if regularization < least * (1 - 1e-12):
        raise NoBound(
            f"GAF's theorem needs regularization >= max(4, d K) 4 R^2 = {least:.4g}; this learner has "
            f"{regularization:.4g}. (The certificate holds all the same.)"
        )
    if smoothing > 0.5:
        raise NoBound(f"smoothing costs at most 2 mu a row for mu <= 1/2; this learner has mu = {smoothing:.4g}.")
    beta = 2 * curvature
    growth = math.log1p(n * beta * feature_bound**2 / (2 * regularization))
    return regularization * radius**2 + size * (0.5 + 2 * math.sqrt(3) / beta) * growth + 2 * smoothing * n


def online_newton_step(
    n: int, *, size: int, radius: float, gradient_bound: float, gamma: float, epsilon: float
) -> float:
    r"""Hazan, Agarwal and Kale (2007), Theorem 2, before its constants are rounded:
    :math:`\frac{\gamma\varepsilon}{2} B^2 + \frac{N}{2\gamma} \ln(1 + n G^2/(N\varepsilon))` for N parameters,
    started at 0."""
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
    r"""Vovk (2001), Azoury and Warmuth (2001): :math:`\lambda |\theta|^2 + Y^2 d \ln(1 + nR^2/(\lambda d))`."""
    growth = math.log1p(n * feature_bound**2 / (regularization * n_features))
    return regularization * comparator_norm**2 + label_bound**2 * n_features * growth
