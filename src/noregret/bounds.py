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


def perceptron(*, comparator_norm: float, feature_bound: float, hinge_loss: float) -> float:
    r"""The Perceptron's mistakes (`ogd-notes`): :math:`L + (|u|X)^2 + |u|X\sqrt L`, L the total hinge loss of u.

    >>> perceptron(comparator_norm=2.0, feature_bound=1.0, hinge_loss=9.0)
    19.0
    """
    reach = comparator_norm * feature_bound
    return hinge_loss + reach**2 + reach * math.sqrt(hinge_loss)


def online_gradient_descent(n: int, *, radius: float, gradient_bound: float, step: float | None = None) -> float:
    r"""Projected online gradient descent with steps :math:`\eta/\sqrt t` (`ogd-notes`, eq. 9):
    :math:`(2U^2/\eta + \eta G^2)\sqrt n`, which is :math:`UG\sqrt{8n}` for the best step, :math:`\eta = \sqrt2 U/G`.

    >>> online_gradient_descent(100, radius=1.0, gradient_bound=1.0).__round__(4)
    28.2843
    """
    if step is None:
        return radius * gradient_bound * math.sqrt(8 * n)
    return (2 * radius**2 / step + step * gradient_bound**2) * math.sqrt(n)


def adagrad_norm(*, diameter: float, squares: float, step: float) -> float:
    r"""Projected descent with steps :math:`\eta/\sqrt{\sum|g|^2}`: :math:`(D^2/(2\eta) + \eta)\sqrt{\sum_t|g_t|^2}`."""
    return (diameter**2 / (2 * step) + step) * math.sqrt(squares)


def strongly_convex(n: int, *, sigma: float, gradient_bound: float) -> float:
    r"""Online gradient descent with steps :math:`1/(\sigma t)` (`ogd-notes`): :math:`G^2(1 + \ln n)/(2\sigma)`.

    >>> strongly_convex(100, sigma=1.0, gradient_bound=1.0).__round__(4)
    2.8026
    """
    return gradient_bound**2 * (1 + math.log(n)) / (2 * sigma) if n else 0.0


def ftrl_proximal(
    n: int,
    *,
    n_features: int,
    radius: float,
    gradient_bound: float,
    alpha: float,
    beta: float,
    l1: float,
    l2: float,
) -> float:
    r"""FTRL-Proximal on the box :math:`|w_i| \le R` (McMahan 2017, Theorem 2, with its rates), for
    :math:`|g_{t,i}| \le G`: :math:`d\,[(2R^2/\alpha + \alpha)\,G\sqrt n + R^2\beta/(2\alpha) + l_1 R + l_2 R^2/2]`.

    >>> ftrl_proximal(100, n_features=1, radius=1.0, gradient_bound=1.0, alpha=2**0.5, beta=0, l1=0, l2=0).__round__(4)
    28.2843
    """
    price = radius**2 * beta / (2 * alpha) + l1 * radius + l2 * radius**2 / 2
    return n_features * ((2 * radius**2 / alpha + alpha) * gradient_bound * math.sqrt(n) + price)


def mirror_descent(n: int, *, spread: float, strong_convexity: float, gradient_bound: float, step: float) -> float:
    r"""Mirror descent with a constant step, lazy or eager: :math:`V^*/\eta + \eta n L^2/(2\alpha)` for gradients of
    dual norm at most L, V* the largest minus the least value of the proxy."""
    return spread / step + step * n * gradient_bound**2 / (2 * strong_convexity)


def dual_averaging(
    n: int, *, spread: float, strong_convexity: float, gradient_bound: float, temperature: float | None = None
) -> float:
    r"""The lazy scheme with :math:`\beta_t = \beta_0\sqrt{t+1}` (`mda`, (26) and Theorem 2, of sums instead of means):
    :math:`(\beta_0 V^* + L^2/(\alpha\beta_0))\sqrt{n+1}`, which is :math:`2L\sqrt{V^*/\alpha}\sqrt{n+1}` for the best
    :math:`\beta_0`.

    >>> dual_averaging(99, spread=1.0, strong_convexity=1.0, gradient_bound=1.0)
    20.0
    """
    if temperature is None:
        return 2 * gradient_bound * math.sqrt(spread / strong_convexity) * math.sqrt(n + 1)
    return (temperature * spread + gradient_bound**2 / (strong_convexity * temperature)) * math.sqrt(n + 1)


def averaging_excess_risk(
    t: int,
    *,
    spread: float,
    strong_convexity: float,
    gradient_bound: float,
    temperature: float | None = None,
    known_horizon: bool = False,
) -> float:
    r"""Mirror descent with averaging (`mda`): the expected excess risk of the mean of t weights.

    Theorems 1 and 2: :math:`(\beta_0 V^* + L^2/(\alpha\beta_0))\sqrt{t+1}/t`, and for the best :math:`\beta_0`
    :math:`2L\sqrt{V^*/\alpha}\sqrt{t+1}/t`. With a constant temperature :math:`\beta`, chosen for a known horizon,
    (26): :math:`\beta V^*/t + L^2/(2\alpha\beta)`, and for the best :math:`\beta`, that of (37), it is (38),
    :math:`L\sqrt{2V^*/(\alpha t)}`. With the entropy on the simplex of size lam, V*/alpha is lam^2 ln M.

    >>> averaging_excess_risk(99, spread=1.0, strong_convexity=1.0, gradient_bound=1.0).__round__(4)
    0.202
    """
    if t < 1:
        raise NoBound(f"t={t}: the theorem speaks of the mean of at least one element.")
    if known_horizon:
        best = gradient_bound * math.sqrt(t / (2 * strong_convexity * spread)) if spread else 1.0
        beta = best if temperature is None else temperature
        return beta * spread / t + gradient_bound**2 / (2 * strong_convexity * beta)
    V = {"spread": spread, "strong_convexity": strong_convexity, "gradient_bound": gradient_bound}
    return dual_averaging(t, **V, temperature=temperature) / t
