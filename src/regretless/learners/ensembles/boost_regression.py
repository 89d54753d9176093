r"""Boosting regression: how far to move the scores towards the label that a weak learner predicted.

Given scores s and a label l, the loss of the new scores should be almost that of :math:`s + \alpha e_l` for the best
fixed :math:`\alpha \in [-2, 2]`. This is a problem with two classes, l or not l:

.. math:: \tilde s = (s_l, \mathrm{lse}_{k \ne l} s_k), \qquad
          \tilde x = \bigl(\mathrm{clip}_{\pm\ln T}\tfrac12(\tilde s_1 - \tilde s_2),\; 1\bigr),

and AIOLI with two features forecasts its margin :math:`\zeta_1 - \zeta_2`; a fixed alpha corresponds to the weights
:math:`(2, \alpha)`, of norm at most :math:`2\sqrt2`. Then :math:`\hat s_l = \zeta_1`, and the other scores are moved
together, so that their lse is :math:`\zeta_2`. (The paper has -1 for the second feature, its proof +1:
docs/errata.md.)

T is unknown, so row t is clipped at ln(t + 2): the total cost of clipping is then bounded.
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
P00, P01, P11, W0, W1, EXCESS = range(6)  # of a stage: the matrix, the weights, and the running part of the certificate
MEMORY = 6
# Clipping row t at ln(t + 2) costs at most ln(1 + e^2/(t + 2)^2), t = 0, 1, ...: in total less than
CLIPPING = math.e**2 * (math.pi**2 / 6.0 - 1.0)


@kernel
def begin(stage: Array) -> None:
    """The state before the first row: P = I / lambda."""
    stage[:] = 0.0
    stage[P00] = 1.0 / REGULARIZATION
    stage[P11] = 1.0 / REGULARIZATION


def check(stages: Array) -> None:
    """Refuse stages that no rows lead to: P lies between 0 and its first value."""
    P = stages[:, [P00, P01, P01, P11]].reshape(-1, 2, 2)
    state_checks.covariance("regression, P", P, 1.0 / REGULARIZATION)
    state_checks.sums("regression, the weights", stages[:, [W0, W1, EXCESS]])


def regret(stages: Array) -> Array:
    """An upper bound on each stage's regret against alpha in [-2, 2]: AIOLI's certificate plus the cost of clipping."""
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
    """Write the scores after the stage."""
    _, m, q = look(stage, s, label, clip)
    margin, _ = forecast(m, q, VIRTUAL_WEIGHT)
    expand(s, label, margin, out)


@kernel
def expand(s: Array, label: int, margin: float, out: Array) -> None:
    """The label's score leads the lse of the others by the margin; differences among the others do not change."""
    shift = -0.5 * margin - rest(s, label)
    for k in range(s.size):
        out[k] = s[k] + shift
    out[label] = 0.5 * margin


@kernel
def learn(stage: Array, s: Array, label: int, y: int, clip: float, weight: float) -> None:
    """AIOLI's update in two dimensions, with the target whether the label was right."""
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
