r"""Boosting regression: how far to move the scores towards the label that a weak learner predicted.

`BoostingRegression` is the public class; `OnlineBoosting` plays one per stage with the kernels below. They are FOLKLORE
with two classes and two features in one coordinate: its two rows of weights are w/2 and -w/2, so that w.x is the margin
:math:`\zeta_1 - \zeta_2`, lambda |W|^2 = lambda |w|^2 / 2, and the equations of the forecast are that of AIOLI with
virtual weight 1/2 (docs/errata.md, F4). (Algorithm 3 of the paper has -1 for the second feature, its proof +1.)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from regretless.core.files import state_checks
from regretless.core.kernels.jit import kernel, shared_kernel
from regretless.core.numbers.links import softmax
from regretless.core.rows import validate
from regretless.core.rows.inputs import as_floats
from regretless.core.types import Array
from regretless.learners.second_order.aioli import forecast
from regretless.learners.second_order.curvature import SHARP, kappa
from regretless.theory import bounds

RADIUS = math.sqrt(2.0)  # of the rows of W_alpha, (1, alpha / 2) and its negative
REGULARIZATION = 0.25  # lambda without a horizon: lambda |W_alpha|^2 <= 1
VIRTUAL_WEIGHT = 0.5
P00, P01, P11, W0, W1, EXCESS = range(6)  # of a stage: the matrix, the weights, and the running part of the certificate
MEMORY = 6
LARGEST_SCORE = 1e300
# Clipping row t at ln(t + 2) costs at most ln(1 + e^2/(t + 2)^2), t = 0, 1, ...: in total less than
CLIPPING = math.e**2 * (math.pi**2 / 6.0 - 1.0)


class BoostingRegression:
    r"""Boosting regression: correct scores by a suggested label, almost as well as the best fixed step towards it.

    In each round, scores s of K classes and a label l are given. The new scores should have almost the log loss of
    :math:`s + \alpha e_l` for the best fixed :math:`\alpha \in [-2, 2]`. This is a problem with two classes, l or
    not l:

    .. math:: \tilde s = (s_l, \mathrm{lse}_{k \ne l} s_k), \qquad
              \tilde x = \bigl(\mathrm{clip}_{\pm\ln T}\tfrac12(\tilde s_1 - \tilde s_2),\; 1\bigr),

    and FOLKLORE with two features forecasts its logits :math:`\zeta`. Then :math:`\hat s_l = \zeta_1`, and the other
    scores are moved together, so that their lse is :math:`\zeta_2` (Algorithm 3 of [FOLKLORE]_). A round costs O(K).
    `OnlineBoosting` has one boosting regression per stage.

    **Guarantee.** For every :math:`\alpha \in [-2, 2]` and every sequence of n rounds, regret is :math:`O(\log^2 n)`
    (Theorem 13; `regretless.bounds.boosting_regression` with a horizon,
    `regretless.bounds.boosting_regression_anytime` without). `regret_certificate()` is the same guarantee, evaluated on
    the actual rounds.

    Parameters
    ----------
    n_classes : K; labels are 0, ..., K-1.
    horizon : T, the largest number of rounds, with the paper's :math:`\lambda = 2R/B` for :math:`B = \sqrt2`,
        :math:`R = \sqrt{1 + \ln^2 T}`. None means unknown: round t is clipped at ln(t + 1), and lambda is 1/4.

    Attributes
    ----------
    rounds_, total_loss_ : the number of rounds learned, and the log loss of the scores in them.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import BoostingRegression
    >>> rng = np.random.default_rng(0)
    >>> regression = BoostingRegression(n_classes=3)
    >>> for _ in range(1000):
    ...     scores, label = rng.normal(size=3), int(rng.integers(3))
    ...     y = label if rng.random() < 0.7 else int(rng.integers(3))
    ...     new_scores = regression.predict(scores, label)
    ...     regression.update(scores, label, y)
    >>> print(f"log loss per round {regression.total_loss_ / 1000:.3f}")
    log loss per round 0.713
    >>> print(f"regret <= {regression.regret_certificate():.1f} <= {regression.regret_bound():.1f}")
    regret <= 15.7 <= 76.8

    References
    ----------
    .. [FOLKLORE] Agarwal, Kale and Zimmert (2022), key `folklore` of REFERENCES.bib. Errata: docs/errata.md.
    """

    def __init__(self, n_classes: int, horizon: int | None = None) -> None:
        self.n_classes = validate.whole("n_classes", n_classes, 2)
        self.horizon = None if horizon is None else validate.whole("horizon", horizon, 1)
        self.rounds_ = 0
        self.total_loss_ = 0.0
        self.state_ = np.empty(MEMORY)
        begin(self.state_, self.regularization)

    @property
    def regularization(self) -> float:
        """lambda, the coefficient of :math:`|W|^2`."""
        return REGULARIZATION if self.horizon is None else 2.0 * math.hypot(1.0, math.log(self.horizon)) / RADIUS

    @property
    def _clip(self) -> float:
        return math.log(self.rounds_ + 2.0 if self.horizon is None else self.horizon)

    def predict(self, scores: Any, label: int) -> Array:
        """The new scores (K,), given scores and the suggested label."""
        s, k = self._checked(scores, label)
        out = np.empty(self.n_classes)
        move(self.state_, s, k, self._clip, out)
        return out

    def update(self, scores: Any, label: int, y: int) -> None:
        """Learn that y was the label of the round with these scores and this suggestion."""
        s, k = self._checked(scores, label)
        true = self._label("y", y)
        if self.rounds_ == self.horizon:
            raise ValueError(f"all {self.horizon} rounds of the horizon have been learned: give a longer horizon.")
        out = np.empty(self.n_classes)
        move(self.state_, s, k, self._clip, out)
        learn(self.state_, s, k, true, self._clip, 1.0)
        self.total_loss_ += softmax(out, np.empty(self.n_classes)) - float(out[true])
        self.rounds_ += 1

    def _checked(self, scores: Any, label: Any) -> tuple[Array, int]:
        s = np.ascontiguousarray(as_floats(scores, lambda at: f"scores, class {at[0]}" if at else "scores"))
        if s.shape != (self.n_classes,) or not np.all(np.abs(s) <= LARGEST_SCORE):
            raise ValueError(
                f"scores={scores!r} must be {self.n_classes} numbers between -{LARGEST_SCORE:g} and {LARGEST_SCORE:g}, "
                "one per class."
            )
        return s, self._label("label", label)

    def _label(self, name: str, label: Any) -> int:
        k = validate.whole(name, label, 0)
        if k >= self.n_classes:
            raise ValueError(f"{name}={k} must be at most {self.n_classes - 1}, because n_classes={self.n_classes}.")
        return k

    def regret_certificate(self) -> float:
        """An upper bound on the regret so far against every alpha in [-2, 2]."""
        T = self.horizon
        clipped = CLIPPING if T is None else self.rounds_ * math.log1p((math.e / T) ** 2)
        return 2.0 * self.regularization * RADIUS**2 + float(self.state_[EXCESS]) + clipped

    def regret_bound(self, n: int | None = None) -> float:
        """The bound of Theorem 13 after n rounds (default: those so far), for the parameters that are played."""
        rounds = self.rounds_ if n is None else n
        last = rounds + 1 if self.horizon is None else self.horizon
        curvature = float(kappa(SHARP, 0.0, RADIUS * math.hypot(1.0, math.log(last)), 2))
        if self.horizon is None:
            return bounds.boosting_regression_anytime(rounds, curvature=curvature)
        return bounds.boosting_regression(rounds, horizon=self.horizon, curvature=curvature)


@kernel
def begin(stage: Array, regularization: float) -> None:
    """The state before the first row: P = 2 I / lambda."""
    stage[:] = 0.0
    stage[P00] = 2.0 / regularization
    stage[P11] = 2.0 / regularization


def check(stages: Array) -> None:
    """Refuse stages without a horizon that no rows lead to: P lies between 0 and its first value."""
    P = stages[:, [P00, P01, P01, P11]].reshape(-1, 2, 2)
    state_checks.covariance("regression, P", P, 2.0 / REGULARIZATION)
    state_checks.sums("regression, the weights", stages[:, [W0, W1, EXCESS]])


def regret(stages: Array) -> Array:
    """An upper bound on the regret of each stage without a horizon, against alpha in [-2, 2]."""
    found: Array = 2.0 * REGULARIZATION * RADIUS**2 + stages[:, EXCESS] + CLIPPING
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


@shared_kernel
def learn(stage: Array, s: Array, label: int, y: int, clip: float, weight: float) -> None:
    """FOLKLORE's update, with the target whether the label was right."""
    x, m, q = look(stage, s, label, clip)
    _, T = forecast(m, q, VIRTUAL_WEIGHT)
    p = 0.5 + 0.5 * T
    right = 1.0 if label == y else 0.0
    size = math.sqrt(x * x + 1.0)
    c = weight * kappa(SHARP, 0.0, RADIUS * size, 2) * p * (1.0 - p)
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
