"""Banditron: the multiclass Perceptron with bandit feedback."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.files import state_checks
from regretless.core.learner import ONE
from regretless.core.rows import validate
from regretless.core.types import Array
from regretless.learners.bandits.learner import PROBABILITY, BanditLearner, LinearBanditState, certain
from regretless.theory import bounds

LARGEST_ROW = 1e70  # squares of such numbers, and of sums of them, do not overflow


class BanditronConstants(NamedTuple):
    """The validated numbers."""

    gamma: float


class Banditron(BanditLearner):
    r"""Banditron: the multiclass Perceptron with bandit feedback.

    **Choose it when** only right or wrong is revealed, rows are cheap to lose, and you need a baseline from the
    literature.

    With weights W, one row per class, :math:`\hat y = \arg\max_k (Wx)_k` is played with probability :math:`1 - \gamma`
    and any label with probability :math:`\gamma`. If the label played, of probability P, was y, then

    .. math:: W \leftarrow W + \Bigl(\frac{1[\tilde y = y]}{P(\tilde y)} e_{\tilde y} - e_{\hat y}\Bigr) x^T,

    whose expectation over the label played is the Perceptron's :math:`(e_y - e_{\hat y}) x^T`. The cost per row is O(K
    d). The first of equal scores wins.

    **Guarantee.** For rows of norm up to X, every stream fixed in advance and every U with total multiclass hinge loss
    L, with :math:`D = 2X^2|U|^2` and gamma <= 1/2, the expected mistakes of n rounds are at most :math:`L + \gamma n +
    3\max(KD/\gamma, \sqrt{D\gamma n}) + \sqrt{KDL/\gamma}` ([Banditron]_; `regretless.bounds.banditron`,
    `mistake_bound`). It is of order n^(2/3), and :math:`\sqrt n` where L = 0.

    Parameters
    ----------
    gamma : the probability of exploring, from 0 to 1.
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
    >>> from regretless import Banditron
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = np.argmax(X @ [[3, -3, 0], [0, 0, 3]] + rng.gumbel(size=(3000, 3)), axis=1)
    >>> learner = Banditron(gamma=0.1, n_classes=3)
    >>> for x, label in zip(X, y):
    ...     action, probability = learner.act(x)
    ...     learner.feedback(x, action, action == label)
    >>> print(f"{learner.mistakes_} mistakes in {learner.rounds_} rounds")
    829 mistakes in 3000 rounds

    References
    ----------
    .. [Banditron] Kakade, Shalev-Shwartz and Tewari (2008), key `banditron` of REFERENCES.bib.
    """

    state_: LinearBanditState
    _constants: BanditronConstants

    def __init__(
        self, gamma: float = 0.05, n_classes: int | None = None, classes: Any = None, random_state: int = 0
    ) -> None:
        self.gamma = gamma
        self.n_classes = n_classes
        self.classes = classes
        self.random_state = random_state

    @classmethod
    def _example(cls) -> Self:
        return cls(n_classes=3)

    def _prepare(self, n_features: int, n_classes: int) -> BanditronConstants:
        gamma = validate.positive("gamma", self.gamma, zero=True)
        if gamma > 1:
            raise ValueError(f"gamma={self.gamma!r} is a probability: give at most 1.")
        if 0 < gamma < n_classes / validate.HEAVIEST:
            raise ValueError(f"gamma={self.gamma!r} is so small that one correct guess would outweigh all rows: use 0.")
        return BanditronConstants(gamma)

    def _start(self, n_features: int, n_classes: int) -> LinearBanditState:
        return LinearBanditState(np.zeros((n_classes, n_features)), np.zeros(n_features), np.zeros(4), np.zeros(4))

    def _state_numbers(self, n_features: int, n_classes: int) -> int:
        return n_classes * n_features

    def _check_state(self) -> None:
        super()._check_state()
        state_checks.weights("W", self.state_.W, LARGEST_ROW)

    def _check(self, row: Array) -> None:
        validate.rows(row, ONE, math.inf, LARGEST_ROW, None)

    @property
    def coef_(self) -> Array:
        """The weights, one row per class."""
        self._require_begun()
        return self.state_.W.copy()

    def _policy(self, row: Array) -> tuple[float, Array]:
        return self._constants.gamma, certain(int(np.argmax(self.state_.W @ row[0])), self._n_classes)

    def _learn(self, row: Array, k: int, correct: bool, label: int | None) -> bool:
        W = self.state_.W
        best = int(np.argmax(W @ row[0]))
        move = np.zeros(self._n_classes)
        if correct:
            move[k] = 1.0 / self.state_.pending[PROBABILITY]
        move[best] -= 1.0
        W += np.outer(move, row[0])
        return bool(move.any())

    def mistake_bound(self, hinge_loss: float, comparator_norm: float, feature_bound: float, n: int) -> float:
        """An upper bound on the expected mistakes of n rounds with rows of norm up to `feature_bound`.

        `hinge_loss` is the total hinge loss of weights of Frobenius norm `comparator_norm`: per row the largest
        1 + (another class's score) - (the label's score), or 0.
        """
        self._require_begun()
        if self._constants.gamma == 0:
            raise NoBound("gamma=0: a learner that never explores has no bound. Use a positive gamma.")
        return bounds.banditron(
            n,
            n_classes=self._n_classes,
            comparator_norm=comparator_norm,
            feature_bound=feature_bound,
            hinge_loss=hinge_loss,
            exploration=self._constants.gamma,
        )
