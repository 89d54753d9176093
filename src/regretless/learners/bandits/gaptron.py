"""Gaptron: mistakes compared with log loss, at the cost of gradient descent."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.files import state_checks
from regretless.core.learner import ONE
from regretless.core.rows import validate
from regretless.core.types import Array
from regretless.learners.bandits.learner import PROBABILITY, BanditLearner, LinearBanditState, certain
from regretless.theory import bounds

LN2 = math.log(2.0)


class GaptronConstants(NamedTuple):
    """The validated numbers."""

    gamma: float
    step: float
    feature_bound: float
    full: bool


class Gaptron(BanditLearner):
    r"""Gradient descent on the log loss in bits that explores more when it is less sure.

    **Choose it when** only right or wrong is revealed, rows are wide, and exploration should stop where the learner is
    sure.

    With weights W, one row per class, :math:`\sigma = \mathrm{softmax}(Wx)` and :math:`\hat y` its largest entry, the
    gap is :math:`a = 1 - \sigma_{\hat y}` if that entry is at least 1/2, and a = 1 otherwise. With probability :math:`1
    - \max(a, \gamma)` the label played is :math:`\hat y`, otherwise a uniform one. Then

    .. math:: W \leftarrow W - \eta \frac{(\sigma - e_y) x^T}{\ln 2} \cdot
              \begin{cases} 1 & \text{full information} \\ 1[\tilde y = y]/P(\tilde y) & \text{bandit} \end{cases}

    with :math:`P(\tilde y)` the probability of the label played: a wrong guess teaches nothing, and the steps have the
    same expectation. The gap between log loss and mistakes pays for the mistakes of exploration, which is why it adds
    nothing to the bound with full information. The cost per row is O(K d).

    **Guarantee.** For rows of norm up to X, every stream fixed in advance and every U with total loss L in bits, the
    expected mistakes of n rounds are at most :math:`L + |U|^2/(2\eta) + \gamma n`. Full information: with gamma = 0 and
    :math:`\eta = \ln 2/(2KX^2)` it is :math:`L + KX^2|U|^2/\ln 2` for every n ([Gaptron]_;
    `regretless.bounds.gaptron`). Bandit: for :math:`\eta = \frac{\ln 2}{2KX^2}\min(\gamma, \frac1{2K})`; with
    :math:`\gamma = X|U|\sqrt{K/(n \ln 2)}`, if that is at most 1/(2K), it is :math:`L + 2X|U|\sqrt{Kn/\ln 2}`
    (`regretless.bounds.gaptron_bandit`). The algorithm is that of [Gaptron]_ for the log loss; this step size and
    its proof are ours.

    Parameters
    ----------
    information : "bandit", or "full": `feedback` then also needs the true label.
    gamma : the least probability of exploring, above 0 and up to 1; not used with full information.
    feature_bound : X; longer rows are refused.
    n_classes : K; the labels are 0, ..., K-1.
    classes : the labels, if they differ from 0, ..., K-1. No intercept is added: append a constant column.
    random_state : seed of the draws, which depend on it and on the number of the round.

    Attributes
    ----------
    classes_ : the labels.
    coef_ : the weights (K, d).
    rounds_, mistakes_ : the number of finished rounds, and of mistakes in them.
    state_ : `W`, `x` and `pending` (the open round), `tally` (rounds, mistakes, explorations, updates).

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import Gaptron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(3000, 2)) / np.sqrt(2)
    >>> y = np.argmax(X @ [[9, -9, 0], [0, 0, 9]] + rng.gumbel(size=(3000, 3)), axis=1)
    >>> learner = Gaptron("full", n_classes=3)
    >>> for x, label in zip(X, y):
    ...     action, probability = learner.act(x)
    ...     learner.feedback(x, action, action == label, label)
    >>> print(f"{learner.mistakes_} mistakes in {learner.rounds_} rounds")
    662 mistakes in 3000 rounds

    References
    ----------
    .. [Gaptron] van der Hoeven (2020), key `gaptron` of REFERENCES.bib.
    """

    state_: LinearBanditState
    _constants: GaptronConstants

    def __init__(
        self,
        information: str = "bandit",
        gamma: float = 0.05,
        feature_bound: float = 1.0,
        n_classes: int | None = None,
        classes: Any = None,
        random_state: int = 0,
    ) -> None:
        self.information = information
        self.gamma = gamma
        self.feature_bound = feature_bound
        self.n_classes = n_classes
        self.classes = classes
        self.random_state = random_state

    @classmethod
    def _example(cls) -> Self:
        return cls(n_classes=3)

    @property
    def needs_labels(self) -> bool:  # type: ignore[override]
        """Whether `feedback` needs the true label."""
        return self._constants.full if "_constants" in vars(self) else self.information == "full"

    def _prepare(self, n_features: int, n_classes: int) -> GaptronConstants:
        if self.information not in ("full", "bandit"):
            raise ValueError(f'information={self.information!r} is unknown: choose "full" or "bandit".')
        full = self.information == "full"
        gamma = 0.0 if full else validate.positive("gamma", self.gamma)
        if gamma > 1:
            raise ValueError(f"gamma={self.gamma!r} is a probability: give at most 1.")
        if not full and gamma < n_classes / validate.HEAVIEST:
            raise ValueError(f"gamma={self.gamma!r} is so small that nothing would be learned: use a larger gamma.")
        X = validate.positive("feature_bound", self.feature_bound)
        if not 1e-70 <= X <= 1e70:
            raise ValueError(f"feature_bound={X!r} is beyond floating point arithmetic: scale the rows.")
        step = LN2 / (2 * n_classes * X**2) * (1.0 if full else min(gamma, 1 / (2 * n_classes)))
        return GaptronConstants(gamma, step, X, full)

    def _start(self, n_features: int, n_classes: int) -> LinearBanditState:
        return LinearBanditState(np.zeros((n_classes, n_features)), np.zeros(n_features), np.zeros(4), np.zeros(4))

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return n_classes * n_features

    def _check_state(self) -> None:
        super()._check_state()
        state_checks.weights("W", self.state_.W, self._constants.feature_bound)

    def _check(self, row: Array) -> None:
        X = self._constants.feature_bound
        validate.rows(row, ONE, X, 2 * X, None)

    @property
    def coef_(self) -> Array:
        """The weights, one row per class."""
        self._require_begun()
        return self.state_.W.copy()

    def _softmax(self, row: Array) -> Array:
        z = self.state_.W @ row[0]
        e = np.exp(z - z.max())
        p: Array = e / e.sum()
        return p

    def _policy(self, row: Array) -> tuple[float, Array]:
        p = self._softmax(row)
        best = int(np.argmax(p))
        gap = 1.0 - float(p[best]) if p[best] >= 0.5 else 1.0
        return max(gap, self._constants.gamma), certain(best, p.size)

    def feedback(self, x: Any, action: Any, correct: bool, label: Any = None) -> None:
        """End the round: whether `action`, which `act` chose for x, was the label; with full information, the label."""
        if self.needs_labels == (label is None):
            given = (
                "needs the true label: pass label" if label is None else "never sees the true label: leave label out"
            )
            raise ValueError(f"information={self.information!r}: feedback {given}.")
        self._end(x, action, correct, label)

    def _learn(self, row: Array, k: int, correct: bool, label: int | None) -> bool:
        y = k if label is None else label
        if label is None and not correct:
            return False
        slope = self._softmax(row)
        slope[y] -= 1.0
        scale = 1.0 if label is not None else 1.0 / float(self.state_.pending[PROBABILITY])
        self.state_.W[:] -= np.outer(self._constants.step * scale / LN2 * slope, row[0])
        return True

    def mistake_bound(self, comparator_loss: float, comparator_norm: float, n: int | None = None) -> float:
        """An upper bound on the expected mistakes of n rounds (default: those so far).

        `comparator_loss` is the total log loss, in nats, of weights of the Frobenius norm `comparator_norm`.
        """
        self._require_begun()
        c = self._constants
        given: dict[str, Any] = {
            "n_classes": self._n_classes,
            "comparator_norm": comparator_norm,
            "feature_bound": c.feature_bound,
            "comparator_loss": comparator_loss,
        }
        if c.full:
            return bounds.gaptron(**given)
        return bounds.gaptron_bandit(self.rounds_ if n is None else n, **given, exploration=c.gamma)
