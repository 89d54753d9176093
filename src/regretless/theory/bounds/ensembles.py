"""Ensembles: mixtures, Hedge and boosting."""

from __future__ import annotations

import math
from collections.abc import Sequence

from regretless.core.errors import NoBound
from regretless.theory.bounds.assumptions import check_classes, check_counts, check_failure, check_nonnegative
from regretless.theory.bounds.second_order import aioli, folklore


def _hedge(mistakes: float, n_estimators: int, failure: float) -> float:
    r"""Hedge over N experts, the best of which makes at most M mistakes: :math:`4M + 2\ln(N/\delta)`.

    The proved bound is :math:`2.06 (M + \ln N) + 2\ln(1/\delta)` (docs/errata.md), which is smaller if ln N <= 32 M.
    """
    check_failure(failure)
    if math.log(n_estimators) > 32 * mistakes:
        raise NoBound(
            f"the lemma on Hedge is proved for ln N <= 32 M; here n_estimators={n_estimators}, and the bound on the "
            f"mistakes of the best partial sum is M = {mistakes:.4g}."
        )
    return 4 * mistakes + 2 * math.log(n_estimators / failure)


def mixture(*, prior: float) -> float:
    r"""The log loss of a mixture of learners above that of one member (`aggregating`, for the log loss).

    .. math:: \ln\frac1\pi

    where :math:`\pi` is the member's weight before the first row, 1/N for N equal members. The loss of the mixture is
    :math:`-\ln\sum_i \pi_i e^{-L_i}` for hard labels, and at most that for soft labels.

    **Order.** ln N above the log loss of the best of N members.

    **Assumes.** the log loss of probabilities; rows of weight at most 1.

    >>> round(mixture(prior=1 / 8), 4)
    2.0794
    """
    if not 0 < prior <= 1:
        raise NoBound(f"prior is the weight of a member before the first row, in (0, 1]; here prior={prior}.")
    return -math.log(prior)


def fixed_share(n: int, *, switches: int, n_members: int, share: float) -> float:
    r"""The log loss of a mixture with fixed share above that of a sequence of members (`fixed-share`).

    .. math:: \ln N + k \ln\frac{N}{\alpha} + (n - 1 - k) \ln\frac1{1 - \alpha + \alpha/N}

    for N members of equal prior and every sequence, one member per row, that switches k times. The weight of a sequence
    is the product of 1/N for the start, :math:`\alpha/N` for each of the k switches, and :math:`1 - \alpha + \alpha/N`
    for each of the n - 1 - k other rows.

    **Order.** O(k log n) above the log loss of the best sequence of members with k switches.

    **Assumes.** the log loss of probabilities; rows of weight at most 1; 0 < alpha < 1; fewer switches than rows.

    >>> round(fixed_share(1000, switches=2, n_members=4, share=0.002), 2)
    18.08
    """
    check_counts(n_members=n_members)
    check_nonnegative(n=n, switches=switches)
    if not 0 < share < 1:
        raise NoBound(f"share must be between 0 and 1 for the theorem to hold; here share={share}.")
    if switches > max(n - 1, 0):
        raise NoBound(f"switches must be less than the number of rows; here switches={switches} and n={n}.")
    stay = 1 - share + share / n_members
    rest = max(n - 1 - switches, 0)
    return math.log(n_members) + switches * math.log(n_members / share) - rest * math.log(stay)


def hedge(n: int, *, n_experts: int) -> float:
    r"""Hedge's expected mistakes above those of the best expert, with its adaptive rate (`adahedge`).

    .. math:: 1 + \sqrt{1 + n \ln N}

    With :math:`\delta_t` the mixability gap of row t, :math:`\Delta_t` their running sum and
    :math:`\eta_t = \ln N/\Delta_{t-1}`, the regret is at most :math:`2\Delta_n`. For losses in [0, 1] a gap is at most
    1 and, by Hoeffding's lemma, :math:`\eta_t/8`, so
    :math:`\Delta_n^2 = \sum_t (\delta_t^2 + 2\Delta_{t-1}\delta_t) \le \Delta_n + \frac n4 \ln N`.

    **Order.** O(√(n log N)) expected mistakes above the best of N experts.

    **Assumes.** losses from 0 to 1; rows of weight 1.

    >>> round(hedge(1000, n_experts=4), 2)
    38.25
    """
    check_counts(n_experts=n_experts)
    check_nonnegative(n=n)
    return 1 + math.sqrt(1 + n * math.log(n_experts))


def boosting(n: int, *, n_classes: int, edges: Sequence[float], regret: float, failure: float) -> float:
    r"""The mistakes of AdaBoost.OLM++, from the edges of its weak learners (`folklore`, Proposition 12).

    .. math:: 16\frac{n \ln K + N \mathcal R}{\sum_i \gamma_i^2} + 2\ln\frac N\delta

    These are the constants of the paper's proof; its statement has O(...). The best of the N partial sums makes at most
    :math:`M = 4(n \ln K + N\mathcal R)/\sum_i\gamma_i^2` mistakes, and Hedge over them, with probability
    :math:`1-\delta`, at most :math:`4M + 2\ln(N/\delta)`. This last step is proved for ln N <= 32 M, and is false for
    some N (docs/errata.md).

    **Order.** O((n log K + N log² n) / Σ γ²) mistakes.

    **Assumes.** regret at most :math:`\mathcal R` in each boosting regression; edges :math:`\gamma_i` in [-1, 1], not
    all 0; 0 < delta < 1; ln N at most 8 times the first term.

    >>> round(boosting(1_000_000, n_classes=3, edges=[0.5] * 400, regret=300.0, failure=0.01))
    194999
    """
    check_counts(n_estimators=len(edges))
    check_classes(n_classes)
    check_nonnegative(n=n, regret=regret)
    squares = math.fsum(edge**2 for edge in edges)
    if not all(-1 <= edge <= 1 for edge in edges) or squares == 0:
        raise NoBound(f"edges must lie in [-1, 1] and not all be 0; here they range from {min(edges)} to {max(edges)}.")
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
    r"""The mistakes of AdaBoost.OLM++, weak learners of a known edge (`folklore`, Proposition 12, second part).

    .. math:: 16\left(\frac{n \ln K}{N\gamma^2} + \frac{\mathcal R}{\gamma^2} + \frac{KS}\gamma\right)
        + 2\ln\frac N\delta

    As `boosting`, without measured edges: a weak learner of edge :math:`\gamma` and sample complexity S has
    :math:`\gamma_i^2 \ge \gamma^2 - 2\gamma KS/w_i`, where :math:`w_i` is the weight of its rows.

    **Order.** O(n log K / (N γ²) + log² n / γ² + K S / γ) mistakes.

    **Assumes.** weak learners of edge gamma, 0 < gamma <= 1, and sample complexity S; otherwise as `boosting`.

    >>> round(weak_learning(1_000_000, n_classes=3, n_estimators=400, edge=0.5, sample_complexity=50.0,
    ...                     regret=300.0, failure=0.01))
    199799
    """
    check_counts(n_estimators=n_estimators)
    check_classes(n_classes)
    check_nonnegative(n=n, regret=regret, sample_complexity=sample_complexity)
    if not 0 < edge <= 1:
        raise NoBound(f"edge must be in (0, 1]: a weak learner of edge 0 only guesses; here edge={edge}.")
    shared = n * math.log(n_classes) / (n_estimators * edge**2) + regret / edge**2
    return _hedge(4 * (shared + n_classes * sample_complexity / edge), n_estimators, failure)


def boosting_regression(n: int, *, horizon: int | None = None, curvature: float | None = None) -> float:
    r"""The regret of boosting regression by FOLKLORE (`folklore`, Theorem 13).

    .. math:: 4BR + \frac1{2\kappa} \ln(1 + \kappa n BR) + n\ln\left(1 + \frac{e^2}{T^2}\right), \quad B = \sqrt2,
        R = \sqrt{1 + \ln^2 T}

    This is the corrected Theorem 3 for two classes, two features and :math:`\lambda = 2R/B`, plus the cost of clipping
    the logits to :math:`\pm\ln T`: :math:`O(\ln^2 T)`. The paper uses B = 2 and R = 1 + ln T, larger than the norms of
    its comparators and rows (docs/errata.md). Without a horizon, T = n. Without a curvature,
    :math:`\kappa = 1/(\ln 2 + 2(BR+1))`, the `"gaf"` constant.

    **Order.** O(log² n) regret.

    **Assumes.** T known in advance, 1 <= n <= T; the comparator's alpha in [-2, 2]; kappa is proved for logits up to
    BR.

    >>> round(boosting_regression(1000), 2)
    107.79
    """
    T = n if horizon is None else horizon
    check_counts(n=n, horizon=T)
    if n > T:
        raise NoBound(f"the horizon must be at least the number of rounds; here n={n} and horizon={T}.")
    B, R = math.sqrt(2), math.hypot(1, math.log(T))
    kappa = 1 / (math.log(2) + 2 * (B * R + 1)) if curvature is None else curvature
    regret = folklore(
        n, n_features=2, n_classes=2, radius=B, feature_bound=R, regularization=2 * R / B, curvature=kappa
    )
    return regret + n * math.log1p((math.e / T) ** 2)


def boosting_regression_anytime(n: int, *, curvature: float | None = None) -> float:
    r"""The regret of boosting regression without a horizon (`folklore`, Theorem 13, with other constants).

    .. math:: 1 + \frac1{2\kappa} \ln(1 + \kappa n R^2) + e^2\left(\frac{\pi^2}6 - 1\right), \quad
        R = \sqrt{1 + \ln^2(n+1)}

    Round t is clipped at ln(t+1), and :math:`\lambda = 1/4`, too small for Theorem 3. For two classes FOLKLORE is AIOLI
    with virtual weight 1/2, radius :math:`2\sqrt2` and half of lambda, whose bound (`aioli`) holds for every lambda.
    Clipping round t costs at most :math:`e^2/(t+1)^2`. Without a curvature, kappa is the `"gaf"` constant for logits up
    to :math:`\sqrt2 R`.

    **Order.** O(log² n) regret.

    **Assumes.** the comparator's alpha in [-2, 2]; kappa is proved for logits up to :math:`\sqrt2 R`.

    >>> round(boosting_regression_anytime(1000), 2)
    91.97
    """
    check_nonnegative(n=n)
    B, R = math.sqrt(2), math.hypot(1, math.log(n + 1))
    kappa = 1 / (math.log(2) + 2 * (B * R + 1)) if curvature is None else curvature
    regret = aioli(
        n, n_features=2, radius=2 * B, feature_bound=R, regularization=1 / 8, curvature=kappa, virtual_weight=0.5
    )
    return regret + math.e**2 * (math.pi**2 / 6 - 1)
