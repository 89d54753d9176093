r"""Boosting regression: how far to move the scores towards a label that a weak learner has named.

Scores s and a label l are given; the scores played, with the true label y, should be almost as good as
:math:`s + \alpha e_l` for the best fixed :math:`\alpha \in [-2, 2]`. It is a problem with two classes, l or not:

.. math:: \tilde s = (s_l, \mathrm{lse}_{k \ne l} s_k), \qquad
          \tilde x = \bigl(\mathrm{clip}_{\pm\ln T}\tfrac12(\tilde s_1 - \tilde s_2),\; 1\bigr),

and AIOLI with two features gives its margin :math:`\zeta_1 - \zeta_2`; the fixed alpha is the weights
:math:`(2, \alpha)`, of norm at most :math:`2\sqrt2`. Then :math:`\hat s_l = \zeta_1` and the other scores are moved
together, so that their lse is :math:`\zeta_2`. (The text has -1 for the second feature, its proof +1:
docs/errata.md.)

Not knowing T, row t is clipped at ln(t + 2): what clipping costs then sums to a logarithm too.
"""

from __future__ import annotations

import math

from regretless.core import state_checks
from regretless.core.jit import kernel
from regretless.core.types import Array
from regretless.learners.second_order.aioli import forecast
from regretless.learners.second_order.curvature import SHARP, kappa

RADIUS = 2.0 * math.sqrt(2.0)
REGULARIZATION = 1.0 / RADIUS**2
VIRTUAL_WEIGHT = 0.5
P00, P01, P11, W0, W1, EXCESS = range(6)  # a stage's memory: the matrix, the weights, the certificate's running part
MEMORY = 6
# What clipping row t at ln(t + 2) may cost is ln(1 + e^2/(t + 2)^2), t = 0, 1, ...: in all less than
CLIPPING = math.e**2 * (math.pi**2 / 6.0 - 1.0)


@kernel
def begin(stage: Array) -> None:
    """Nothing learned: P = I / lambda."""
    stage[:] = 0.0
    stage[P00] = 1.0 / REGULARIZATION
    stage[P11] = 1.0 / REGULARIZATION


def check(stages: Array) -> None:
    """Refuse stages that no rows can have led to: P is between 0 and what it starts as."""
    P = stages[:, [P00, P01, P01, P11]].reshape(-1, 2, 2)
    state_checks.covariance("regression, P", P, 1.0 / REGULARIZATION)
    state_checks.sums("regression, the weights", stages[:, [W0, W1, EXCESS]])


def regret(stages: Array) -> Array:
    """An upper bound on each stage's regret against every alpha in [-2, 2]: AIOLI's certificate, and the clipping."""
    found: Array = REGULARIZATION * RADIUS**2 + stages[:, EXCESS] + CLIPPING
    return found


@kernel
def rest(s: Array, label: int) -> float:
    """lse of all scores but the label's."""
    top = -math.inf
    for k in range(s.size):
        if k != label:
            top = max(top, s[k])
    total = 0.0
    for k in range(s.size):
        if k != label:
            total += math.exp(s[k] - top)
    return top + math.log(total)


@kernel
def look(stage: Array, s: Array, label: int, clip: float) -> tuple[float, float, float]:
    """The first feature, the margin of the leader and its variance."""
    x = min(max(0.5 * (s[label] - rest(s, label)), -clip), clip)
    m = stage[W0] * x + stage[W1]
    q = stage[P00] * x * x + 2.0 * stage[P01] * x + stage[P11]
    return x, m, max(q, 0.0)


@kernel
def move(stage: Array, s: Array, label: int, clip: float, out: Array) -> None:
    """The scores played."""
    _, m, q = look(stage, s, label, clip)
    margin, _ = forecast(m, q, VIRTUAL_WEIGHT)
    expand(s, label, margin, out)


@kernel
def expand(s: Array, label: int, margin: float, out: Array) -> None:
    """The label's score leads the lse of the others by the margin; among themselves the others stay as they are."""
    shift = -0.5 * margin - rest(s, label)
    for k in range(s.size):
        out[k] = s[k] + shift
    out[label] = 0.5 * margin


@kernel
def learn(stage: Array, s: Array, label: int, y: int, clip: float, weight: float) -> None:
    """AIOLI's update, in two dimensions: whether the label was right."""
    x, m, q = look(stage, s, label, clip)
    _, T = forecast(m, q, VIRTUAL_WEIGHT)
    p = 0.5 + 0.5 * T
    right = 1.0 if label == y else 0.0
    size = math.sqrt(x * x + 1.0)
    c = weight * kappa(SHARP, 0.0, 0.5 * RADIUS * size, 2) * p * (1.0 - p)
    g = weight * (p - right)
    e = -VIRTUAL_WEIGHT * q * (p - 0.5)
    shrink = 1.0 / (1.0 + c * q)
    v0, v1 = stage[P00] * x + stage[P01], stage[P01] * x + stage[P11]
    step = (c * e - 0.5 * g) * shrink
    stage[W0] += step * v0
    stage[W1] += step * v1
    stage[EXCESS] += e * ((g - c * e) * shrink) + 0.25 * g * q * (g * shrink)
    stage[P00] -= c * shrink * v0 * v0
    stage[P01] -= c * shrink * v0 * v1
    stage[P11] -= c * shrink * v1 * v1
