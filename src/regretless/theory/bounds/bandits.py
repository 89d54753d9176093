"""Bandit feedback: expected mistakes when only right or wrong is revealed."""

from __future__ import annotations

import math

from regretless.core.errors import NoBound
from regretless.theory.bounds.assumptions import check_classes, check_nonnegative, check_positive


def bandit(n: int, *, n_classes: int, regret: float, comparator_loss: float, exploration: float | None = None) -> float:
    r"""The expected mistakes of the bandit reduction (`folklore`, Theorem 9 corrected).

    .. math:: \min\left(n, L + 2\sqrt{K n \mathcal R}\right)

    Here :math:`\mathcal R` bounds the regret of the inner learner over n rows, and L is the log loss of the best
    comparator. With a given exploration probability gamma, the second term is :math:`K \mathcal R/\gamma + \gamma n`.
    The best is :math:`\gamma = \min(1, \sqrt{K\mathcal R/n})`, where the two halves are equal. The paper prints only
    one of them (docs/errata.md).

    **Order.** O(√(K n R)) expected mistakes above the log loss of any comparator of the inner learner.

    **Assumes.** a stream fixed in advance; a regret bound above 0 that grows with n; 0 < gamma <= 1.

    >>> round(bandit(100_000, n_classes=3, regret=136.7, comparator_loss=20_000.0), 1)
    32807.8
    """
    check_classes(n_classes)
    check_positive(regret=regret)
    check_nonnegative(n=n, comparator_loss=comparator_loss)
    if exploration is None:
        return min(float(n), comparator_loss + 2 * math.sqrt(n_classes * n * regret))
    if not 0 < exploration <= 1:
        raise NoBound(f"exploration must be in (0, 1], or no label is ever observed; here exploration={exploration}.")
    return min(float(n), comparator_loss + n_classes * regret / exploration + exploration * n)


def banditron(
    n: int, *, n_classes: int, comparator_norm: float, feature_bound: float, hinge_loss: float, exploration: float
) -> float:
    r"""Banditron's expected mistakes (`banditron`, its theorem).

    .. math:: \min\left(n, L + \gamma n + 3\max\left(\frac{KD}\gamma, \sqrt{D\gamma n}\right)
        + \sqrt{\frac{KDL}\gamma}\right), \qquad D = 2R^2\lvert u\rvert^2

    Here L is the multiclass hinge loss of u, a matrix with one row per class. Let M be the number of rows where the
    likeliest label is wrong. The update has mean square at most :math:`2\gamma R^2` where the likeliest label is right
    and :math:`2KR^2/\gamma` where it is wrong, so :math:`E M - L \le \sqrt{D (\gamma n + K E M/\gamma)}`. Exploration
    adds at most :math:`\gamma n` mistakes.

    **Order.** O(n^⅔) expected mistakes above the hinge loss of any linear predictor.

    **Assumes.** a stream fixed in advance; 0 < gamma <= 1/2.

    >>> round(banditron(100_000, n_classes=3, comparator_norm=5.0, feature_bound=1.0, hinge_loss=0.0,
    ...                 exploration=0.05), 1)
    14000.0
    """
    check_classes(n_classes)
    check_nonnegative(n=n, comparator_norm=comparator_norm, feature_bound=feature_bound, hinge_loss=hinge_loss)
    if not 0 < exploration <= 0.5:
        raise NoBound(f"exploration must be in (0, 1/2] for the theorem to hold; here exploration={exploration}.")
    D = 2 * (feature_bound * comparator_norm) ** 2
    price = 3 * max(n_classes * D / exploration, math.sqrt(D * exploration * n))
    found = hinge_loss + exploration * n + price + math.sqrt(n_classes * D * hinge_loss / exploration)
    return min(float(n), found)


def gaptron(*, n_classes: int, comparator_norm: float, feature_bound: float, comparator_loss: float) -> float:
    r"""Gaptron's expected mistakes, full information and log loss (`gaptron`, with its constants).

    .. math:: \frac{L}{\ln 2} + \frac{KR^2\lvert u\rvert^2}{\ln 2}

    Here L is the log loss in nats of u, a matrix with one row per class. Write :math:`\ell` for the loss of a row in
    bits. Descent has regret at most :math:`|u|^2/(2\eta) + \frac\eta2\sum|g|^2`, and :math:`|g|^2 \le
    \frac{2R^2}{\ln 2}\ell`, so with :math:`\eta = \ln2/(2KR^2)` the second part is at most :math:`\ell/(2K)` per row.
    The sum of this and of the probability of a mistake, :math:`1[\hat y \ne y](1-a) + a(1 - \frac1K)`, is at most
    :math:`\ell`: if the likeliest label has q = 1 - a >= 1/2 and is right, a is at most :math:`\ell\ln2`; if it is
    wrong, :math:`\ell \ge \log_2(1/a)` and :math:`1 - a/K \le (1 - \frac1{2K})\log_2(1/a)`; and if q < 1/2, then
    :math:`\ell > 1`.

    **Order.** O(1) expected mistakes above the log loss, in bits, of any linear predictor.

    **Assumes.** a stream fixed in advance; the step :math:`\ln 2/(2KR^2)`.

    >>> round(gaptron(n_classes=3, comparator_norm=5.0, feature_bound=1.0, comparator_loss=100.0), 2)
    252.47
    """
    check_classes(n_classes)
    check_nonnegative(comparator_norm=comparator_norm, feature_bound=feature_bound, comparator_loss=comparator_loss)
    return (comparator_loss + n_classes * (feature_bound * comparator_norm) ** 2) / math.log(2)


def gaptron_bandit(
    n: int, *, n_classes: int, comparator_norm: float, feature_bound: float, comparator_loss: float, exploration: float
) -> float:
    r"""Gaptron's expected mistakes, bandit feedback and log loss (`gaptron`, with our own constants).

    .. math:: \min\left(n, \frac{L}{\ln 2} + \frac{KR^2\lvert u\rvert^2}{\min(\gamma, 1/(2K)) \ln 2}
        + \gamma n\right)

    The best gamma, if it is at most 1/(2K), is :math:`R|u|\sqrt{K/(n\ln2)}`; the second and third term are then
    :math:`2R|u|\sqrt{Kn/\ln 2}` together. The argument is that of `gaptron`, with gradients divided by the probability
    P of the label: their mean is unchanged, and their mean square is at most :math:`\frac{2R^2}{P\ln2}\ell`. With
    :math:`\eta = f\ln2/(KR^2)`, :math:`f = \frac12\min(\gamma, \frac1{2K})`, half of that times eta is at most
    :math:`\ell f/(KP)`, and :math:`KP \ge \max(a, \gamma)`. Where the likeliest label is wrong it remains to show that
    :math:`1 - a/K \le \log_2(1/a)(1 - f/\max(a,\gamma))` for a <= 1/2: below 1/4 because :math:`f \le
    \max(a,\gamma)/2`, above because :math:`f \le 1/(4K)`. Exploring more than the gap costs at most gamma per row.

    **Order.** O(√n) expected mistakes above the log loss, in bits, of any linear predictor.

    **Assumes.** a stream fixed in advance; 0 < gamma <= 1; the step :math:`\frac{\ln2}{2KR^2}\min(\gamma, 1/(2K))`.

    >>> round(gaptron_bandit(100_000, n_classes=3, comparator_norm=5.0, feature_bound=1.0, comparator_loss=100.0,
    ...                      exploration=0.03), 1)
    6751.0
    """
    check_classes(n_classes)
    check_nonnegative(
        n=n, comparator_norm=comparator_norm, feature_bound=feature_bound, comparator_loss=comparator_loss
    )
    if not 0 < exploration <= 1:
        raise NoBound(f"exploration must be in (0, 1], or no label is ever observed; here exploration={exploration}.")
    price = n_classes * (feature_bound * comparator_norm) ** 2 / min(exploration, 1 / (2 * n_classes))
    return min(float(n), (comparator_loss + price) / math.log(2) + exploration * n)
