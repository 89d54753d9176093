r"""The state of a learner for the rows of several: the sum of their quadratics.

Each part's sum of quadratics is its minimum plus :math:`(V - w_i)^T A_i (V - w_i)`, so the exact sum is a sum of
matrices (`sum_of`). It is the state of one pass only if the quadratics do not depend on the forecasts. A quadratic that
lies below a loss with :math:`1/(2\kappa)` times its curvature does, and the leaders of the parts converge faster than
their matrices say. Along a direction in which one part's A has grown from :math:`\lambda` to :math:`a \lambda`, a
leader follows

.. math:: \frac{dw}{d\ln A} = \gamma \left(\theta + \left(1 - \tfrac1\gamma\right) \delta - w\right), \quad
          \gamma = \frac{1}{2\kappa}, \quad w = \theta\,(1 - a^{-\gamma}) + \delta\,(1 - a^{1-\gamma}),

where :math:`\delta \propto 1/A` is the pull of the forecast towards equal probabilities, for which the leader makes up.
All k parts together would have reached :math:`a_k = 1 + k (a - 1)`. `balance` counts lambda :math:`\ell` times, between
once and once per part, so that the minimiser is that of one pass, and returns by how much the pull must be larger for
the forecast to be that of one pass. For :math:`\gamma = 1` both are 1, the exact sum; for converged parts both are k.

:math:`\gamma` is measured: a row adds about :math:`g^2 q/4` to the excess and :math:`\kappa g^2 q` to
:math:`\ln\det A`, so :math:`\gamma = 2\, excess / \ln\det(A/\lambda)`.

All this is for labels that are as random as the forecasts say, :math:`E g^2 = p(1-p)`. The leaders of the parts then
differ: the variance of a leader along a direction is v / A with

.. math:: \frac{dv}{d\ln A} = \frac\gamma2 - (2\gamma - 1)\,v, \quad
          v = \frac{\gamma}{2(2\gamma - 1)}\left(1 - a^{1 - 2\gamma}\right).

If the classes can almost be separated, the labels are less random, the leaders differ less and still grow: one pass is
then closer to the exact sum. `strength` is the spread of the leaders relative to this one, at most 1, and the balance
is applied in this proportion.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lapack

from regretless.core.numbers.tally import EXCESS, LOSS, ROWS, UNEVEN
from regretless.core.types import Array
from regretless.learners.second_order.rounding import (
    ENERGY,
    MASS,
    ROOT,
    SHIFT,
    SPREAD,
    begin_root,
    covariance,
    most_mass,
)

# The largest condition number at which A is computed from its inverse.
MOST_CONDITION = 1e12
LEAST_GROWTH = 1e-9  # of A along a direction, relative to lambda: below it the direction has no rows
STRENGTHS = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5)  # of the balance: those compared on rows


class Balance(NamedTuple):
    """How a sum of quadratics is brought to the state of one pass."""

    prior: Array  # added to A: lambda, ell - 1 times
    priors: float  # the largest ell - 1
    pull: float  # the factor of the forecast's pull
    strength: float  # 0 is the sum, 1 is for converged parts, more enlarges the pull further


def sum_of(states: Sequence[Any], common: Any, balance: Balance | None = None) -> Any:
    r"""The state for the quadratics of all parts, which continued from a common state (docs/architecture.md).

    The common past counts once: :math:`A = A_0 + \sum (A_i - A_0)`, and with :math:`d_i = w_i - w_0` the minimiser is
    :math:`w_0 + d`, :math:`A d = \sum A_i d_i`. The minimum lies :math:`\sum d_i^T A_i d_i - d^T A d` above the sum of
    the parts' increases of their minima. In this form the constants of the sums, which are large, do not occur. A
    `balance` adds to A; the common state must then be the empty one.
    """
    past = inverse(covariance(common.P, common.tally))
    A, size = past.copy(), len(past)
    pull, rise = np.zeros((size, common.w.size // size)), 0.0  # one column per row of w that shares P
    tally = common.tally.copy()
    added = [ROWS, UNEVEN, LOSS, EXCESS, MASS, SHIFT, ENERGY, SPREAD]
    for state in states:
        part, away = inverse(covariance(state.P, state.tally)), (state.w - common.w).reshape(-1, size).T
        A += part - past
        pull += part @ away
        rise += float(np.sum(away * (part @ away)))
        tally = np.maximum(tally, state.tally)  # sizes; the sums follow
    for i in added:
        tally[i] = common.tally[i] + sum(state.tally[i] - common.tally[i] for state in states)
    if balance is not None:
        A += balance.prior
        tally[MASS] += balance.priors
    P = inverse(A)
    move = P @ pull
    tally[EXCESS] -= rise - float(np.sum(move * pull))
    tally[ROOT] = 0.0  # the masses of the parts add up to that of P
    P = P.astype(common.P.dtype)
    if tally[MASS] > most_mass(P):
        begin_root(P, tally)
    return type(common)(P=P, w=common.w + move.T.reshape(common.w.shape), tally=tally)


def balance(states: Sequence[Any], regularization: float, by: float | None = None) -> Balance:
    """The prior and the pull of one pass over the rows of all parts, of a given strength or the measured one."""
    k = len(states)
    parts = [inverse(covariance(state.P, state.tally)) for state in states]
    values, directions = np.linalg.eigh(sum(parts) / k)
    gamma = haste(parts, sum(float(state.tally[EXCESS]) for state in states), regularization)
    growth = np.maximum(values / regularization - 1.0, LEAST_GROWTH)
    one, all_parts = np.log1p(growth), np.log1p(k * growth)  # ln a and ln a_k
    longer = np.expm1(-gamma * all_parts) / np.expm1(-gamma * one)  # the factor of the leader
    priors = np.clip(k - 1.0 + k * (1.0 + growth) * (1.0 / longer - 1.0), 0.0, k - 1.0)  # ell - 1
    pulls = -k * np.expm1((1.0 - gamma) * one) + k / longer * np.exp(one - gamma * all_parts)
    weight = growth / (k * growth + 1.0 + priors)  # how much a direction has in q = x' P x of a typical row
    pull = min(max(float(pulls @ weight / weight.sum()), 1.0), float(k))
    if by is None:
        by = strength(parts, [state.w for state in states], gamma, one)
    priors *= min(by, 1.0)
    prior = (directions * (regularization * priors)) @ directions.T
    return Balance(0.5 * (prior + prior.T), float(priors.max()), pull ** min(by, 1.0) * max(by, 1.0), by)


def strength(parts: Sequence[Array], leaders: Sequence[Array], gamma: float, growth: Array) -> float:
    """The spread of the leaders relative to that for labels as random as forecast, at most 1; growth is ln a.

    Both spreads have 1 added: those of few parts with few weights say little.
    """
    mean = inverse(np.sum(parts, axis=0)) @ sum(A @ w for A, w in zip(parts, leaders, strict=True))
    spread = sum(float((w - mean) @ A @ (w - mean)) for A, w in zip(parts, leaders, strict=True))
    v = -gamma / (2.0 * (2.0 * gamma - 1.0)) * np.expm1((1.0 - 2.0 * gamma) * growth)
    return min(1.0, (1.0 + spread) / (1.0 + (len(parts) - 1.0) * float(v.sum())))


def haste(parts: Sequence[Array], excess: float, regularization: float) -> float:
    """gamma: how many times faster than its matrix says the leader converges."""
    grown = sum(float(np.linalg.slogdet(A / regularization)[1]) for A in parts)
    return max(2.0 * excess / grown, 1.0) if grown > 0.0 else 1.0


def inverse(M: Array) -> Array:
    """The inverse of a positive definite matrix, symmetric to the bit."""
    factor, failed = lapack.dpotrf(M, lower=True)
    if not failed:
        lower, failed = lapack.dpotri(factor, lower=True)
    if failed or M.diagonal().max() * lower.diagonal().max() > MOST_CONDITION:
        raise ValueError(
            "these learners cannot be merged, because A is too ill-conditioned to be computed from its inverse. Scale "
            "the features, for example to unit variance, or raise regularization."
        )
    lower = np.tril(lower)
    found: Array = lower + np.tril(lower, -1).T
    return found
