"""One function per theorem, named after it: the regret it promises after n rows, with explicit constants.

Assumptions that are numbers are checked; a violated one is named in a `NoBound` error. docs/bounds.md is made from
these docstrings: what is bounded and by which theorem, the formula, what it **Assumes**, an example.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from regretless.core.errors import NoBound


def _positive(**sizes: float) -> None:
    """Refuse a size that is not a positive finite number."""
    for name, size in sizes.items():
        if not 0 < size < math.inf:
            raise NoBound(f"{name} must be a positive finite number for the theorem to hold; here {name}={size}.")


def _nonnegative(**sizes: float) -> None:
    """Refuse a size that is negative, infinite or no number."""
    for name, size in sizes.items():
        if not 0 <= size < math.inf:
            raise NoBound(f"{name} must be a finite number >= 0 for the theorem to hold; here {name}={size}.")


def _counts(**counts: int) -> None:
    """Refuse to count nothing."""
    for name, count in counts.items():
        if not 1 <= count < math.inf:
            raise NoBound(f"{name} must be at least 1 for the theorem to hold; here {name}={count}.")


def _classes(n_classes: int) -> None:
    if not 2 <= n_classes < math.inf:
        raise NoBound(f"the theorem is about two or more classes; here n_classes={n_classes}.")


def _probability(failure: float) -> None:
    if not 0 < failure < 1:
        raise NoBound(f"failure is the probability that the bound may fail, between 0 and 1; here failure={failure}.")


def _proved(curvature: float, *, logits: float, n_classes: int) -> None:
    r"""Refuse a curvature above the "sharp" and (for two classes) the "aioli" constant, for logits of that size.

    With :math:`L = 2C + \ln(K-1)`, :math:`\kappa \le 1/(2+w)`, :math:`w + \ln w = L - 1`, says that :math:`w = 1/\kappa
    - 2` is large enough: :math:`w + \ln w \ge L - 1`.
    """
    L = 2 * logits + math.log(n_classes - 1)
    w = 1 / curvature - 2
    if w > 0 and w + math.log(w) >= L - 1 - 1e-9 * (1 + L):
        return
    if n_classes == 2 and curvature <= (1 + 1e-9) / (2 * (1 + L)):
        return
    raise NoBound(
        f"curvature={curvature:.4g} is not proved to keep the quadratics below the log loss for logits up to "
        f"{logits:.4g} and {n_classes} classes: lower it, or the radius, or scale the rows down."
    )


def _hedge(mistakes: float, n_estimators: int, failure: float) -> float:
    r"""Hedge over N experts, the best of which makes at most M mistakes: :math:`4M + 2\ln(N/\delta)`.

    What has a proof is :math:`2.06 (M + \ln N) + 2\ln(1/\delta)` (docs/errata.md), which is no more if ln N <= 32 M.
    """
    _probability(failure)
    if math.log(n_estimators) > 32 * mistakes:
        raise NoBound(
            f"the lemma on Hedge is proved for ln N <= 32 M; here n_estimators={n_estimators}, and the best partial "
            f"sum may make M = {mistakes:.4g} mistakes."
        )
    return 4 * mistakes + 2 * math.log(n_estimators / failure)


def _entropy(n_functions: int, radius: float) -> tuple[float, float]:
    """The spread and the strong convexity of the entropy on the weights >= 0 that add up to the radius."""
    if not 2 <= n_functions < math.inf:
        raise NoBound(f"the theorem is about two or more base functions; here n_functions={n_functions}.")
    _positive(radius=radius)
    return radius * math.log(n_functions), 1 / radius


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

    With a = 1 and :math:`\kappa = 1/(2(1+BR))` this is the text's statement; a = 1/2 halves the second term. Below 1/2
    the virtual labels no longer cover a sure mistake and the proof breaks.

    **Assumes.** a >= 1/2; kappa is proved for margins up to BR.

    >>> round(aioli(1000, n_features=5, radius=3.0, feature_bound=1.0, regularization=1 / 9,
    ...             curvature=1 / 8), 2)
    81.95
    """
    _counts(n_features=n_features)
    _positive(radius=radius, regularization=regularization, curvature=curvature)
    _nonnegative(n=n, feature_bound=feature_bound)
    _proved(curvature, logits=radius * feature_bound / 2, n_classes=2)
    if not 0.5 <= virtual_weight < math.inf:
        raise NoBound(f"AIOLI's theorem needs virtual_weight >= 1/2; this learner has {virtual_weight}.")
    growth = math.log1p(curvature * n * feature_bound**2 / (4 * n_features * regularization))
    return regularization * radius**2 + virtual_weight * n_features / (2 * curvature) * growth


def aioli_descent(
    n: int, *, n_features: int, radius: float, feature_bound: float, regularization: float, steps: int
) -> float:
    r"""The regret of AIOLI with forecasts found by gradient descent (`aioli`, Theorem 4).

    .. math:: \lambda B^2 + d(1+BR) \ln\left(1 + \frac{n R^2}{8d(1+BR)\lambda}\right) + 1

    The last 1 pays for all the forecasts that stop after T steps of size :math:`\lambda/(4\lambda+R^2)` from 0. The
    text's T has B in the place of the last 1, which is not enough for B < 1 (docs/errata.md).

    **Assumes.** :math:`T \ge (4 + r)\ln(3n^2 r(nr/8 + 1))` steps, r = R^2/lambda; the text's curvature, 1/(2(1+BR));
    virtual weight 1.

    >>> round(aioli_descent(1000, n_features=5, radius=3.0, feature_bound=1.0, regularization=1 / 9,
    ...                     steps=314), 2)
    82.95
    """
    _positive(radius=radius, regularization=regularization)
    _nonnegative(feature_bound=feature_bound)
    exact = aioli(
        n,
        n_features=n_features,
        radius=radius,
        feature_bound=feature_bound,
        regularization=regularization,
        curvature=1 / (2 * (1 + radius * feature_bound)),
    )
    reach = feature_bound**2 / regularization
    error = 3 * n**2 * reach * (n * reach / 8 + 1)
    needed = math.ceil((4 + reach) * math.log(error)) if error > 1 else 0
    if not steps >= needed:
        raise NoBound(f"AIOLI's Theorem 4 needs at least {needed} steps of gradient descent a row; here steps={steps}.")
    return exact + 1


def aioli_excess_risk(n: int, *, n_features: int, radius: float, feature_bound: float) -> float:
    r"""The expected excess risk of AIOLI stopped at a random row (`aioli`, Corollary 6).

    .. math:: \frac1n \left[1 + d(1+BR) \ln\left(1 + \frac{n B^2 R^2}{8d(1+BR)}\right)\right]

    Online to batch: rows are drawn independently from one distribution, and the learner of the first tau - 1 of them,
    tau uniform in 1, ..., n, forecasts a fresh row. On average it then loses what the n forecasts of the game lost, so
    the excess over the best weights of norm at most B is at most the regret divided by n.

    **Assumes.** independent rows of one distribution; n >= 1; lambda = 1/B^2; the text's curvature, 1/(2(1+BR));
    virtual weight 1.

    >>> round(aioli_excess_risk(1000, n_features=5, radius=3.0, feature_bound=1.0), 4)
    0.0819
    """
    _counts(n=n)
    _positive(radius=radius)
    _nonnegative(feature_bound=feature_bound)
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

    The text drops the 1/4 of its Lemma 6 and counts K d directions where (K-1) d can move (docs/errata.md). The weights
    of each class have norm at most B.

    **Assumes.** kappa R^2 <= lambda/2; kappa is proved for logits up to BR.

    >>> round(folklore(1000, n_features=5, n_classes=3, radius=3.0, feature_bound=1.0,
    ...                regularization=2 / 3, curvature=1 / 8), 2)
    136.59
    """
    _counts(n_features=n_features)
    _classes(n_classes)
    _positive(radius=radius, regularization=regularization, curvature=curvature)
    _nonnegative(n=n, feature_bound=feature_bound)
    _proved(curvature, logits=radius * feature_bound, n_classes=n_classes)
    if curvature * feature_bound**2 > regularization / 2 * (1 + 1e-12):
        raise NoBound(
            f"FOLKLORE's theorem needs curvature * R^2 <= regularization / 2, and here "
            f"{curvature:.4g} * {feature_bound:.4g}^2 > {regularization:.4g} / 2: raise regularization to at "
            f"least {2 * curvature * feature_bound**2:.4g}, or scale the rows down."
        )
    growth = math.log1p(2 * curvature * n * feature_bound**2 / regularization)
    return regularization * n_classes * radius**2 + (n_classes - 1) * n_features / (4 * curvature) * growth


def bandit(n: int, *, n_classes: int, regret: float, comparator_loss: float, exploration: float | None = None) -> float:
    r"""The expected mistakes of the bandit reduction (`folklore`, Theorem 9 corrected).

    .. math:: \min\left(n, L + 2\sqrt{K n \mathcal R}\right)

    Here :math:`\mathcal R` bounds the regret of the learner inside over n rows, and L is the log loss of the best
    comparator. With a chosen probability of exploring, gamma, the second term is :math:`K \mathcal R/\gamma + \gamma
    n`; the best is :math:`\gamma = \min(1, \sqrt{K\mathcal R/n})`, where the two halves are equal. The text prints one
    of them (docs/errata.md).

    **Assumes.** a stream fixed in advance; a regret bound above 0 that grows with n; 0 < gamma <= 1.

    >>> round(bandit(100_000, n_classes=3, regret=136.7, comparator_loss=20_000.0), 1)
    32807.8
    """
    _classes(n_classes)
    _positive(regret=regret)
    _nonnegative(n=n, comparator_loss=comparator_loss)
    if exploration is None:
        return min(float(n), comparator_loss + 2 * math.sqrt(n_classes * n * regret))
    if not 0 < exploration <= 1:
        raise NoBound(f"exploration must be a probability above 0: without it no label is seen; here {exploration}.")
    return min(float(n), comparator_loss + n_classes * regret / exploration + exploration * n)


def banditron(
    n: int, *, n_classes: int, comparator_norm: float, feature_bound: float, hinge_loss: float, exploration: float
) -> float:
    r"""Banditron's expected mistakes (`banditron`, its theorem).

    .. math:: \min\left(n, L + \gamma n + 3\max\left(\frac{KD}\gamma, \sqrt{D\gamma n}\right)
        + \sqrt{\frac{KDL}\gamma}\right), \qquad D = 2R^2\lvert u\rvert^2

    Here L is the multiclass hinge loss of u, one row of weights a class. With M the mistakes of its likeliest labels,
    what it adds to the weights has mean square at most :math:`2\gamma R^2` where the likeliest label is right and
    :math:`2KR^2/\gamma` where it is wrong, so :math:`E M - L \le \sqrt{D (\gamma n + K E M/\gamma)}`; and exploring
    costs at most :math:`\gamma n` more.

    **Assumes.** a stream fixed in advance; 0 < gamma <= 1/2.

    >>> round(banditron(100_000, n_classes=3, comparator_norm=5.0, feature_bound=1.0, hinge_loss=0.0,
    ...                 exploration=0.05), 1)
    14000.0
    """
    _classes(n_classes)
    _nonnegative(n=n, comparator_norm=comparator_norm, feature_bound=feature_bound, hinge_loss=hinge_loss)
    if not 0 < exploration <= 0.5:
        raise NoBound(f"exploration must be above 0 and up to 1/2 for the theorem to hold; here {exploration}.")
    D = 2 * (feature_bound * comparator_norm) ** 2
    price = 3 * max(n_classes * D / exploration, math.sqrt(D * exploration * n))
    found = hinge_loss + exploration * n + price + math.sqrt(n_classes * D * hinge_loss / exploration)
    return min(float(n), found)


def gaptron(*, n_classes: int, comparator_norm: float, feature_bound: float, comparator_loss: float) -> float:
    r"""Gaptron's expected mistakes, full information and log loss (`gaptron`, with its constants).

    .. math:: \frac{L}{\ln 2} + \frac{KR^2\lvert u\rvert^2}{\ln 2}

    Here L is the log loss of u, one row of weights a class, in nats. Write :math:`\ell` for the loss in bits of a row.
    Descent has regret at most :math:`|u|^2/(2\eta) + \frac\eta2\sum|g|^2`, and :math:`|g|^2 \le
    \frac{2R^2}{\ln 2}\ell`, so with :math:`\eta = \ln2/(2KR^2)` the second part is at most :math:`\ell/(2K)` a row.
    That and the chance of a mistake, :math:`1[\hat y \ne y](1-a) + a(1 - \frac1K)`, are together at most
    :math:`\ell`: if the likeliest label has q = 1 - a >= 1/2 and is right, a is at most :math:`\ell\ln2`; if it is
    wrong, :math:`\ell \ge \log_2(1/a)` and :math:`1 - a/K \le (1 - \frac1{2K})\log_2(1/a)`; and if q < 1/2, then
    :math:`\ell > 1`.

    **Assumes.** a stream fixed in advance; the step :math:`\ln 2/(2KR^2)`.

    >>> round(gaptron(n_classes=3, comparator_norm=5.0, feature_bound=1.0, comparator_loss=100.0), 2)
    252.47
    """
    _classes(n_classes)
    _nonnegative(comparator_norm=comparator_norm, feature_bound=feature_bound, comparator_loss=comparator_loss)
    return (comparator_loss + n_classes * (feature_bound * comparator_norm) ** 2) / math.log(2)


def gaptron_bandit(
    n: int, *, n_classes: int, comparator_norm: float, feature_bound: float, comparator_loss: float, exploration: float
) -> float:
    r"""Gaptron's expected mistakes, bandit feedback and log loss (`gaptron`, with constants of our own).

    .. math:: \min\left(n, \frac{L}{\ln 2} + \frac{KR^2\lvert u\rvert^2}{\min(\gamma, 1/(2K)) \ln 2}
        + \gamma n\right)

    The best gamma, if it is at most 1/(2K), is :math:`R|u|\sqrt{K/(n\ln2)}`: then the price is
    :math:`2R|u|\sqrt{Kn/\ln 2}`. The argument is that of `gaptron`, with gradients divided by the probability P of the
    label: their mean is the same, and their mean square at most :math:`\frac{2R^2}{P\ln2}\ell`. With
    :math:`\eta = f\ln2/(KR^2)`, :math:`f = \frac12\min(\gamma, \frac1{2K})`, half of that times eta is at most
    :math:`\ell f/(KP)`, and :math:`KP \ge \max(a, \gamma)`. Where the likeliest label is wrong it remains to see that
    :math:`1 - a/K \le \log_2(1/a)(1 - f/\max(a,\gamma))` for a <= 1/2: below 1/4 because :math:`f \le
    \max(a,\gamma)/2`, above because :math:`f \le 1/(4K)`. Exploring more than the gap costs at most gamma.

    **Assumes.** a stream fixed in advance; 0 < gamma <= 1; the step :math:`\frac{\ln2}{2KR^2}\min(\gamma, 1/(2K))`.

    >>> round(gaptron_bandit(100_000, n_classes=3, comparator_norm=5.0, feature_bound=1.0, comparator_loss=100.0,
    ...                      exploration=0.03), 1)
    6751.0
    """
    _classes(n_classes)
    _nonnegative(n=n, comparator_norm=comparator_norm, feature_bound=feature_bound, comparator_loss=comparator_loss)
    if not 0 < exploration <= 1:
        raise NoBound(f"exploration must be a probability above 0: without it no label is seen; here {exploration}.")
    price = n_classes * (feature_bound * comparator_norm) ** 2 / min(exploration, 1 / (2 * n_classes))
    return min(float(n), (comparator_loss + price) / math.log(2) + exploration * n)


def boosting(n: int, *, n_classes: int, edges: Sequence[float], regret: float, failure: float) -> float:
    r"""The mistakes of AdaBoost.OLM++ by the edges its weak learners had (`folklore`, Proposition 12).

    .. math:: 16\frac{n \ln K + N \mathcal R}{\sum_i \gamma_i^2} + 2\ln\frac N\delta

    The text's proof with its constants, where the statement has O(...): the best of the N partial sums makes at most
    :math:`M = 4(n \ln K + N\mathcal R)/\sum_i\gamma_i^2` mistakes, and Hedge over them, with probability
    :math:`1-\delta`, at most :math:`4M + 2\ln(N/\delta)`. That last step is proved for ln N <= 32 M, and is not true
    for every N (docs/errata.md).

    **Assumes.** regret at most :math:`\mathcal R` in each boosting regression; edges :math:`\gamma_i` in [-1, 1], not
    all 0; 0 < delta < 1; ln N at most 8 times the first term.

    >>> round(boosting(1_000_000, n_classes=3, edges=[0.5] * 400, regret=300.0, failure=0.01))
    194999
    """
    _counts(n_estimators=len(edges))
    _classes(n_classes)
    _nonnegative(n=n, regret=regret)
    squares = math.fsum(edge**2 for edge in edges)
    if not all(-1 <= edge <= 1 for edge in edges) or squares == 0:
        raise NoBound(f"edges must lie in [-1, 1] and not all be 0; here they reach from {min(edges)} to {max(edges)}.")
    return _hedge(4 * (n * math.log(n_classes) + len(edges) * regret) / squares, len(edges), failure)


def weak_learning(
    n: int,
    *,
    n_classes: int,
    n_estimators: int,
    edge: float,
    sample_complexity: float,
    regret: float,
    failure: float,
) -> float:
    r"""The mistakes of AdaBoost.OLM++ over weak learners of one edge (`folklore`, Proposition 12, second part).

    .. math:: 16\left(\frac{n \ln K}{N\gamma^2} + \frac{\mathcal R}{\gamma^2} + \frac{KS}\gamma\right)
        + 2\ln\frac N\delta

    As `boosting`, with edges that need not be seen: a weak learner of edge :math:`\gamma` and sample complexity S has
    :math:`\gamma_i^2 \ge \gamma^2 - 2\gamma KS/w_i`, :math:`w_i` the weight of its rows.

    **Assumes.** weak learners of edge gamma, 0 < gamma <= 1, and sample complexity S; else as above.

    >>> round(weak_learning(1_000_000, n_classes=3, n_estimators=400, edge=0.5, sample_complexity=50.0,
    ...                     regret=300.0, failure=0.01))
    199799
    """
    _counts(n_estimators=n_estimators)
    _classes(n_classes)
    _nonnegative(n=n, regret=regret, sample_complexity=sample_complexity)
    if not 0 < edge <= 1:
        raise NoBound(f"edge={edge} must lie in (0, 1]: at 0 a weak learner is no better than a uniform guess.")
    shared = n * math.log(n_classes) / (n_estimators * edge**2) + regret / edge**2
    return _hedge(4 * (shared + n_classes * sample_complexity / edge), n_estimators, failure)


def boosting_regression(n: int, *, curvature: float | None = None) -> float:
    r"""The regret of boosting regression by FOLKLORE (`folklore`, Theorem 13).

    .. math:: 4BR + \frac1{2\kappa} \ln(1 + \kappa n BR) + n\ln\left(1 + \frac{e^2}{n^2}\right), \quad B = \sqrt2,
        R = \sqrt{1 + \ln^2 n}

    This is the corrected Theorem 3 for two classes, two features and :math:`\lambda = 2R/B`, plus what clipping the
    logits to :math:`\pm\ln n` may cost: :math:`O(\ln^2 n)`. The text plays with B = 2 and R = 1 + ln n, which is more
    than its comparators and rows have (docs/errata.md). Without a curvature, :math:`\kappa = 1/(\ln 2 + 2(BR+1))`, the
    `"gaf"` constant.

    **Assumes.** n >= 1, known in advance; the comparator's alpha in [-2, 2]; kappa is proved for logits up to BR.

    >>> round(boosting_regression(1000), 2)
    107.79
    """
    _counts(n=n)
    B, R = math.sqrt(2), math.hypot(1, math.log(n))
    kappa = 1 / (math.log(2) + 2 * (B * R + 1)) if curvature is None else curvature
    regret = folklore(
        n, n_features=2, n_classes=2, radius=B, feature_bound=R, regularization=2 * R / B, curvature=kappa
    )
    return regret + n * math.log1p((math.e / n) ** 2)


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

    The text's constants are alpha = 1, zeta = 4R^2, gamma = R^2 and beta = 2 kappa. Smoothing the forecasts by mu costs
    the last term (docs/errata.md); W has Frobenius norm at most B.

    **Assumes.** lambda >= 4 max(4, dK) R^2; mu <= 1/2; kappa is proved for logits up to BR.

    >>> round(gaf(1000, n_features=5, n_classes=3, radius=3.0, feature_bound=1.0,
    ...           regularization=60.0, curvature=1 / 8), 2)
    782.48
    """
    size = n_features * n_classes
    least = max(4, size) * 4 * feature_bound**2
    _counts(n_features=n_features)
    _classes(n_classes)
    _positive(radius=radius, regularization=regularization, curvature=curvature)
    _nonnegative(n=n, feature_bound=feature_bound, smoothing=smoothing)
    if regularization < least * (1 - 1e-12):
        raise NoBound(
            f"GAF's theorem needs regularization >= max(4, d K) 4 R^2 = {least:.4g}; this learner has "
            f"{regularization:.4g}. (The certificate holds all the same.)"
        )
    if smoothing > 0.5:
        raise NoBound(f"smoothing costs at most 2 mu a row for mu <= 1/2; this learner has mu = {smoothing:.4g}.")
    _proved(curvature, logits=radius * feature_bound, n_classes=n_classes)
    beta = 2 * curvature
    growth = math.log1p(n * beta * feature_bound**2 / (2 * regularization))
    return regularization * radius**2 + size * (0.5 + 2 * math.sqrt(3) / beta) * growth + 2 * smoothing * n


def gaf_logistic(n: int, *, n_features: int, n_classes: int, radius: float, feature_bound: float) -> float:
    r"""GAF's regret with the parameters of the theory (`gaf`, Corollary 2).

    .. math:: 4hB^2R^2 + dK\left(\frac12 + 2\sqrt3 b\right) \ln\left(1 + \frac n{8hb}\right), \quad h = \max(4, dK),
        b = \frac{\ln K}2 + BR + 1

    This is Theorem 1 with the constants that the corollary leaves out. The text's lambda is eight times as large
    (docs/errata.md).

    **Assumes.** exact expectations; R > 0; lambda = 4h R^2; beta = 2 kappa = 1/b.

    >>> round(gaf_logistic(1000, n_features=5, n_classes=3, radius=3.0, feature_bound=1.0), 2)
    793.87
    """
    _counts(n_features=n_features)
    _classes(n_classes)
    _positive(radius=radius, feature_bound=feature_bound)
    return gaf(
        n,
        n_features=n_features,
        n_classes=n_classes,
        radius=radius,
        feature_bound=feature_bound,
        regularization=4 * max(4, n_features * n_classes) * feature_bound**2,
        curvature=1 / (math.log(n_classes) + 2 * (radius * feature_bound + 1)),
    )


def gaf_sampled(
    n: int,
    *,
    n_features: int,
    n_classes: int,
    radius: float,
    feature_bound: float,
    n_samples: int,
    failure: float,
) -> float:
    r"""GAF's regret with sampled expectations (`gaf`, Proposition 3).

    .. math:: \mathcal R + 3 n \mu, \quad \mu = \left(\frac Km \ln\frac n\delta\right)^{1/3}

    with :math:`\mathcal R` of Corollary 2 (`gaf_logistic`) and m independent samples a row, smoothed by mu. With
    probability :math:`1-\delta` sampling costs at most mu a row, and smoothing 2 mu. The text prints mu without K, and
    one step of its proof fails, though not its conclusion (docs/errata.md).

    **Assumes.** :math:`\mathcal R` and the parameters of Corollary 2; m >= 8 K ln(n/delta), so that mu <= 1/2; labels
    that do not depend on the samples of their own row; 0 < delta < 1.

    >>> round(gaf_sampled(1000, n_features=5, n_classes=3, radius=3.0, feature_bound=1.0,
    ...                   n_samples=10**9, failure=0.01), 2)
    803.64
    """
    _counts(n_samples=n_samples)
    _probability(failure)
    exact = gaf_logistic(n, n_features=n_features, n_classes=n_classes, radius=radius, feature_bound=feature_bound)
    log = math.log(max(n, 1) / failure)
    if n_samples < 8 * n_classes * log:
        raise NoBound(
            f"GAF's Proposition 3 needs n_samples >= 8 K ln(n/delta) = {8 * n_classes * log:.4g}, or it would smooth "
            f"by more than 1/2; here n_samples={n_samples}."
        )
    return exact + 3 * n * (n_classes * log / n_samples) ** (1 / 3)


def online_newton_step(
    n: int, *, size: int, radius: float, gradient_bound: float, gamma: float, epsilon: float
) -> float:
    r"""The regret of the Online Newton Step (`ons`, Theorem 2).

    .. math:: \frac{\gamma\varepsilon}2 B^2 + \frac N{2\gamma} \ln\left(1 + \frac{n G^2}{N\varepsilon}\right)

    for N parameters, started at 0; this is the theorem before its constants are rounded.

    **Assumes.** gradients of norm at most G; losses above their quadratics of curvature gamma, which Lemma 3 grants for
    gamma = min(1/(8GB), alpha)/2 if they are alpha-exp-concave.

    >>> round(online_newton_step(1000, size=5, radius=3.0, gradient_bound=1.0, gamma=0.02, epsilon=70.0), 2)
    175.04
    """
    _counts(size=size)
    _positive(radius=radius, gamma=gamma, epsilon=epsilon)
    _nonnegative(n=n, gradient_bound=gradient_bound)
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
    r"""The regret of the forecaster of Vovk, Azoury and Warmuth (`vovk`, `azoury-warmuth`).

    .. math:: \lambda \lvert u\rvert^2 + Y^2 d \ln\left(1 + \frac{n R^2}{\lambda d}\right)

    for the square loss :math:`(y - \hat y)^2`, against any weights u.

    **Assumes.** labels in [-Y, Y]; rows of norm at most R.

    >>> round(vovk_azoury_warmuth(1000, n_features=5, comparator_norm=3.0, feature_bound=1.0, label_bound=1.0,
    ...                           regularization=1.0), 2)
    35.52
    """
    _counts(n_features=n_features)
    _positive(regularization=regularization)
    _nonnegative(n=n, comparator_norm=comparator_norm, feature_bound=feature_bound, label_bound=label_bound)
    growth = math.log1p(n * feature_bound**2 / (regularization * n_features))
    return regularization * comparator_norm**2 + label_bound**2 * n_features * growth


def perceptron(*, comparator_norm: float, feature_bound: float, hinge_loss: float) -> float:
    r"""The Perceptron's mistakes (`ogd-notes`, mistake bound).

    .. math:: L + (\lvert u\rvert R)^2 + \lvert u\rvert R \sqrt L

    with L the total hinge loss of u, for any u and any number of rows.

    **Assumes.** rows of norm at most R.

    >>> perceptron(comparator_norm=2.0, feature_bound=1.0, hinge_loss=9.0)
    19.0
    """
    _nonnegative(comparator_norm=comparator_norm, feature_bound=feature_bound, hinge_loss=hinge_loss)
    reach = comparator_norm * feature_bound
    return hinge_loss + reach**2 + reach * math.sqrt(hinge_loss)


def online_gradient_descent(n: int, *, radius: float, gradient_bound: float, step: float | None = None) -> float:
    r"""The regret of projected online gradient descent (`ogd-notes`, eq. (9)).

    .. math:: \left(\frac{2B^2}\eta + \eta G^2\right)\sqrt n

    with steps :math:`\eta/\sqrt t`; it is :math:`BG\sqrt{8n}` for the best, :math:`\eta = \sqrt2 B/G`, which is
    meant where no step is given. (The text divides by n.)

    **Assumes.** convex losses with gradients of norm at most G; comparators of norm at most B.

    >>> round(online_gradient_descent(100, radius=1.0, gradient_bound=1.0), 4)
    28.2843
    """
    _positive(radius=radius)
    _nonnegative(n=n, gradient_bound=gradient_bound)
    if step is None:
        return radius * gradient_bound * math.sqrt(8 * n)
    _positive(step=step)
    return (2 * radius**2 / step + step * gradient_bound**2) * math.sqrt(n)


def adagrad_norm(*, diameter: float, squares: float, step: float) -> float:
    r"""The regret of projected descent whose steps follow the gradients (`adagrad`, one step size for all weights).

    .. math:: \left(\frac{D^2}{2\eta} + \eta\right)\sqrt{\textstyle\sum_t \lvert g_t\rvert^2}

    with steps :math:`\eta/\sqrt{\sum_{s \le t}\lvert g_s\rvert^2}`.

    **Assumes.** convex losses; a set of diameter D.

    >>> round(adagrad_norm(diameter=2.0, squares=100.0, step=2**0.5), 4)
    28.2843
    """
    _positive(step=step)
    _nonnegative(diameter=diameter, squares=squares)
    return (diameter**2 / (2 * step) + step) * math.sqrt(squares)


def strongly_convex(n: int, *, sigma: float, gradient_bound: float) -> float:
    r"""The regret of online gradient descent on strongly convex losses (`ogd-notes`, strongly convex losses).

    .. math:: \frac{G^2}{2\sigma}(1 + \ln n)

    with steps :math:`1/(\sigma t)` and no projection. (The text divides by n.)

    **Assumes.** losses with all eigenvalues of the Hessian at least sigma; gradients of norm at most G where it walks.

    >>> round(strongly_convex(100, sigma=1.0, gradient_bound=1.0), 4)
    2.8026
    """
    _positive(sigma=sigma)
    _nonnegative(n=n, gradient_bound=gradient_bound)
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
    r"""FTRL-Proximal's regret on a box (`ftrl-survey`, Theorem 2 with its rates).

    .. math:: d\left[\left(\frac{2B^2}\alpha + \alpha\right) G\sqrt n + \frac{B^2\beta}{2\alpha} + l_1 B
        + \frac{l_2 B^2}2\right]

    **Assumes.** convex losses; each weight within [-B, B], each entry of a gradient within [-G, G].

    >>> round(ftrl_proximal(100, n_features=1, radius=1.0, gradient_bound=1.0,
    ...                     alpha=2**0.5, beta=0.0, l1=0.0, l2=0.0), 4)
    28.2843
    """
    _counts(n_features=n_features)
    _positive(radius=radius, alpha=alpha)
    _nonnegative(n=n, gradient_bound=gradient_bound, beta=beta, l1=l1, l2=l2)
    price = radius**2 * beta / (2 * alpha) + l1 * radius + l2 * radius**2 / 2
    return n_features * ((2 * radius**2 / alpha + alpha) * gradient_bound * math.sqrt(n) + price)


def mirror_descent(n: int, *, spread: float, strong_convexity: float, gradient_bound: float, step: float) -> float:
    r"""The regret of mirror descent with a constant step, lazy or eager (`mda`, Proposition 2).

    .. math:: \frac V\eta + \frac{\eta n G^2}{2\sigma}

    with V the largest minus the least value of the proxy. (Proposition 2 is of the lazy scheme.)

    **Assumes.** convex losses with gradients of dual norm at most G; a sigma-strongly convex proxy; the start at its
    minimum.

    >>> mirror_descent(100, spread=0.5, strong_convexity=1.0, gradient_bound=1.0, step=0.1)
    10.0
    """
    _positive(strong_convexity=strong_convexity, step=step)
    _nonnegative(n=n, spread=spread, gradient_bound=gradient_bound)
    return spread / step + step * n * gradient_bound**2 / (2 * strong_convexity)


def dual_averaging(
    n: int, *, spread: float, strong_convexity: float, gradient_bound: float, temperature: float | None = None
) -> float:
    r"""The regret of the lazy scheme with growing temperature (`mda`, (26), of sums instead of means).

    .. math:: \left(\beta_0 V + \frac{G^2}{\sigma\beta_0}\right)\sqrt{n+1}

    with :math:`\beta_t = \beta_0\sqrt{t+1}`; it is :math:`2G\sqrt{V/\sigma}\sqrt{n+1}` for the best :math:`\beta_0`,
    which is meant where no temperature is given.

    **Assumes.** convex losses with gradients of dual norm at most G; a sigma-strongly convex proxy; the start at its
    minimum.

    >>> dual_averaging(99, spread=1.0, strong_convexity=1.0, gradient_bound=1.0)
    20.0
    """
    _positive(strong_convexity=strong_convexity)
    _nonnegative(n=n, spread=spread, gradient_bound=gradient_bound)
    if temperature is None:
        return 2 * gradient_bound * math.sqrt(spread / strong_convexity) * math.sqrt(n + 1)
    _positive(temperature=temperature)
    return (temperature * spread + gradient_bound**2 / (strong_convexity * temperature)) * math.sqrt(n + 1)


def aggregation_excess_risk(t: int, *, n_functions: int, radius: float, gradient_bound: float) -> float:
    r"""The expected excess risk of base functions mixed by mirror descent with averaging (`mda`, Theorem 1).

    .. math:: 2BG\sqrt{\ln M}\frac{\sqrt{t+1}}t

    for the entropy on the weights >= 0 that add up to B, and the mean of t of them: `averaging_excess_risk` with
    :math:`V/\sigma = B^2\ln M`. For functions within [-K, K] and a margin loss phi, G is the largest
    :math:`K\lvert\phi'\rvert` over margins within [-KB, KB].

    **Assumes.** independent rows of one distribution; a convex loss; M >= 2 functions; t >= 1; the temperature (18).

    >>> round(aggregation_excess_risk(1000, n_functions=50, radius=1.0, gradient_bound=1.0), 4)
    0.1252
    """
    V, sigma = _entropy(n_functions, radius)
    return averaging_excess_risk(t, spread=V, strong_convexity=sigma, gradient_bound=gradient_bound)


def aggregation_known_horizon(t: int, *, n_functions: int, radius: float, gradient_bound: float) -> float:
    r"""The same, where the number of rows is known when it starts (`mda`, (38)).

    .. math:: BG\sqrt{\frac{2\ln M}t}

    with the constant temperature (37).

    **Assumes.** independent rows of one distribution; a convex loss; M >= 2 functions; t >= 1; the temperature (37).

    >>> round(aggregation_known_horizon(1000, n_functions=50, radius=1.0, gradient_bound=1.0), 4)
    0.0885
    """
    V, sigma = _entropy(n_functions, radius)
    return averaging_excess_risk(t, spread=V, strong_convexity=sigma, gradient_bound=gradient_bound, known_horizon=True)


def averaging_excess_risk(
    t: int,
    *,
    spread: float,
    strong_convexity: float,
    gradient_bound: float,
    temperature: float | None = None,
    known_horizon: bool = False,
) -> float:
    r"""The expected excess risk of mirror descent with averaging (`mda`, Theorem 2, (26) and (38)).

    .. math:: \left(\beta_0 V + \frac{G^2}{\sigma\beta_0}\right)\frac{\sqrt{t+1}}t

    is that of the mean of t weights, and :math:`2G\sqrt{V/\sigma}\sqrt{t+1}/t` for the best :math:`\beta_0`. With a
    constant temperature :math:`\beta`, chosen for a known horizon, (26) is :math:`\beta V/t + G^2/(2\sigma\beta)`, and
    for the best :math:`\beta`, that of (37), it is (38): :math:`G\sqrt{2V/(\sigma t)}`.

    **Assumes.** independent rows of one distribution; a convex loss with gradients of dual norm at most G (its mean
    square suffices); a sigma-strongly convex proxy; the start at its minimum; t >= 1.

    >>> round(averaging_excess_risk(99, spread=1.0, strong_convexity=1.0, gradient_bound=1.0), 4)
    0.202
    """
    if not 1 <= t < math.inf:
        raise NoBound(f"t={t}: the theorem speaks of the mean of at least one element.")
    V = {"spread": spread, "strong_convexity": strong_convexity, "gradient_bound": gradient_bound}
    sums = dual_averaging(t, **V, temperature=temperature)
    if not known_horizon:
        return sums / t
    if temperature is None:
        return gradient_bound * math.sqrt(2 * spread / (strong_convexity * t))
    return temperature * spread / t + gradient_bound**2 / (2 * strong_convexity * temperature)


def ftrl(n: int, *, comparator_norm: float, gradient_bound: float, regularization: float) -> float:
    r"""The regret of following the regularized leader (`ftrl-survey`, with a fixed regularizer).

    .. math:: \lambda|u|^2 + \frac{nG^2}{4\lambda}

    with :math:`\lambda|w|^2` added to the losses, over all of space or a convex set. The leader of t rows gains on that
    of t - 1 no more than a :math:`2\lambda`-strongly convex function with gradient g can, :math:`|g|^2/(4\lambda)`,
    and the gains add up to the regret.

    **Assumes.** convex losses with gradients of norm at most G where the leader stands.

    >>> ftrl(100, comparator_norm=1.0, gradient_bound=1.0, regularization=5.0)
    10.0
    """
    _positive(regularization=regularization)
    _nonnegative(n=n, comparator_norm=comparator_norm, gradient_bound=gradient_bound)
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
    r"""The regret of AIOLI with a kernel (`aioli`, section 4.1, with its logarithm).

    .. math:: \lambda B^2 + \frac{a}{2\kappa} \ln\det\left(I + \frac{\kappa}{4\lambda} K\right)

    with K the kernel matrix of the rows. The text has the effective dimension in the place of the logarithm, which is
    at most :math:`d_{eff}(\mu)\,(1 + \ln(1 + nR^2/\mu))` for :math:`\mu = 4\lambda/\kappa` and
    :math:`d_{eff}(\mu) = \mathrm{tr}\,K(K + \mu I)^{-1} \le nR^2/\mu`: for an eigenvalue :math:`s\mu` of K that says
    :math:`\ln(1+s) \le \frac{s}{1+s}(1 + \ln(1+s))`, which is :math:`\ln(1+s) \le s`.

    **Assumes.** a >= 1/2; kappa is proved for margins up to BR, R the largest root of k(x, x); K is the kernel matrix.

    >>> given = {"radius": 3.0, "feature_bound": 1.0, "regularization": 1 / 9, "curvature": 1 / 8}
    >>> round(kernel_aioli(log_determinant=10.0, **given), 2)
    41.0
    """
    _positive(radius=radius, regularization=regularization, curvature=curvature)
    _nonnegative(log_determinant=log_determinant, feature_bound=feature_bound)
    _proved(curvature, logits=radius * feature_bound / 2, n_classes=2)
    if not 0.5 <= virtual_weight < math.inf:
        raise NoBound(f"AIOLI's theorem needs virtual_weight >= 1/2; this learner has {virtual_weight}.")
    return regularization * radius**2 + virtual_weight / (2 * curvature) * log_determinant


def aggregating(
    n: int, *, n_features: int, n_classes: int, radius: float, feature_bound: float, smoothing: float = 0.0
) -> float:
    r"""The regret of the aggregating forecaster with a uniform prior on a ball (`foster2018`, with its constants).

    .. math:: \min_{0 < a \le 1} \left[N \ln\frac1a + a n \ln K + n\min\left(as, \frac{(as)^2}{2}\right)\right]
        + n\ln\frac{1}{1-\mu}, \qquad N = (K-1)d

    with :math:`s = BR/(2\sqrt{N+2})` for two classes, :math:`s = BR\sqrt{K-1}/\sqrt{2(N+2)}` for more: about
    :math:`N \ln(n \ln K/N)` when n is large.

    A mixture of probabilities suffers :math:`-\ln E e^{-L}`, L the losses of all rows and E over the prior. Of the ball
    the part :math:`(1-a)w^* + av`, v in the ball, has mass :math:`a^N`, so by Jensen the mixture suffers at most
    :math:`N\ln(1/a) + E_v L`. L is convex and :math:`n \ln K` at 0: :math:`L((1-a)w^*) \le L(w^*) + an\ln K`. What av
    adds has mean 0: a row's loss rises by at most :math:`a E\max_k z_k \le as` and by at most
    :math:`\frac{a^2}{2} E \max_p \mathrm{Var}_p(z) \le (as)^2/2`, z the logits of v, whose coordinates have
    variance :math:`B^2/(N+2)`.

    **Assumes.** forecasts are the exact mixture, smoothed by mu < 1; rows of weight 1 and norm at most R.

    >>> round(aggregating(10_000, n_features=1, n_classes=2, radius=9.21, feature_bound=1.0), 2)
    9.84
    """
    _counts(n_features=n_features)
    _classes(n_classes)
    _positive(radius=radius)
    _nonnegative(n=n, feature_bound=feature_bound)
    if not 0 <= smoothing < 1:
        raise NoBound(f"the forecast must not be the uniform one alone: smoothing < 1; here smoothing={smoothing}.")
    if n == 0:
        return 0.0
    size = (n_classes - 1) * n_features
    s = radius * feature_bound * (0.5 if n_classes == 2 else math.sqrt((n_classes - 1) / 2)) / math.sqrt(size + 2)
    slope = n * math.log(n_classes)
    linear = min(1.0, size / (slope + n * s))
    square = min(1.0, 2 * size / (slope + math.sqrt(slope**2 + 4 * n * s**2 * size)))
    least = min(size * math.log(1 / a) + a * slope + n * min(a * s, (a * s) ** 2 / 2) for a in (linear, square))
    return least - n * math.log1p(-smoothing)


def mixture(*, prior: float) -> float:
    r"""How much more a mixture of learners suffers than one of them (`aggregating`, for the log loss).

    .. math:: \ln\frac1\pi

    with :math:`\pi` the member's weight before the first row, 1/N for N equal ones: the loss of the mixture is
    :math:`-\ln\sum_i \pi_i e^{-L_i}` for hard labels, and no more for soft ones.

    **Assumes.** the log loss of probabilities; rows of weight at most 1.

    >>> round(mixture(prior=1 / 8), 4)
    2.0794
    """
    if not 0 < prior <= 1:
        raise NoBound(f"prior is the weight of a member before the first row, above 0 and up to 1; here prior={prior}.")
    return -math.log(prior)


def hedge(n: int, *, n_experts: int) -> float:
    r"""How many more mistakes than the best expert's are to be expected of Hedge at its own rate (`adahedge`).

    .. math:: 1 + \sqrt{1 + n \ln N}

    With :math:`\delta_t` the mixability gap of row t, :math:`\Delta_t` their sum and
    :math:`\eta_t = \ln N/\Delta_{t-1}`, the regret is at most :math:`2\Delta_n`. For losses in [0, 1] a gap is at most
    1 and, by Hoeffding's lemma, :math:`\eta_t/8`, so
    :math:`\Delta_n^2 = \sum_t (\delta_t^2 + 2\Delta_{t-1}\delta_t) \le \Delta_n + \frac n4 \ln N`.

    **Assumes.** losses from 0 to 1; rows of weight 1.

    >>> round(hedge(1000, n_experts=4), 2)
    38.25
    """
    _counts(n_experts=n_experts)
    _nonnegative(n=n)
    return 1 + math.sqrt(1 + n * math.log(n_experts))


def fixed_share(n: int, *, switches: int, n_members: int, share: float) -> float:
    r"""How much more a mixture that shares its weights suffers than a sequence of members (`fixed-share`).

    .. math:: \ln N + k \ln\frac{N}{\alpha} + (n - 1 - k) \ln\frac1{1 - \alpha + \alpha/N}

    for N members of equal prior and every sequence of one member a row that changes k times: its weight is the product
    of those of the start, 1/N, of the k changes, :math:`\alpha/N`, and of the n - 1 - k rows without one.

    **Assumes.** the log loss of probabilities; rows of weight at most 1; 0 < alpha < 1; fewer changes than rows.

    >>> round(fixed_share(1000, switches=2, n_members=4, share=0.002), 2)
    18.08
    """
    _counts(n_members=n_members)
    _nonnegative(n=n, switches=switches)
    if not 0 < share < 1:
        raise NoBound(f"share must be between 0 and 1 for the theorem to hold; here share={share}.")
    if switches > max(n - 1, 0):
        raise NoBound(f"n={n} rows have no room for switches={switches}.")
    stay = 1 - share + share / n_members
    rest = max(n - 1 - switches, 0)
    return math.log(n_members) + switches * math.log(n_members / share) - rest * math.log(stay)
