"""EpsilonGreedy: play the most probable label, explore with probability epsilon, learn from correct guesses."""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.learner import OnlineClassifier
from regretless.core.rows.validate import HEAVIEST
from regretless.core.types import Array
from regretless.learners.bandits.learner import PROBABILITY, BanditReduction, BanditState, certain


class GreedyConstants(NamedTuple):
    """The probability of exploring, and the largest weight of a row for the base learner."""

    epsilon: float
    heaviest: Array


class EpsilonGreedy(BanditReduction):
    r"""Play the base learner's most probable label, with probability epsilon any label; learn from correct guesses.

    **Choose it when** only right or wrong is revealed, and you want what often works best in practice around a learner
    of your own.

    A correct guess reveals the label, whether it explored or not. If its probability was p, the base learner learns the
    row with weight 1/p: in expectation every row then counts once, however rarely its label is guessed.

    **Guarantee.** For a base learner with log loss, every stream fixed in advance and every comparator with log loss L,
    the expected mistakes of n rounds are at most :math:`(L + E\,C)/\ln 2 + \epsilon n`, with C the base's
    `regret_certificate()` after them. (With these weights the base learner's expected loss is at most L + E C, and
    where its most probable label is wrong, the true label has at most half the probability: a loss of at least ln 2.) C
    is not known in advance and can be large: weights reach :math:`K/\epsilon`. `BanditMulticlass` has a bound known in
    advance.

    Parameters
    ----------
    estimator : a classifier with any loss. It is not changed: a clone learns.
    epsilon : the probability of exploring, from 0 to 1.
    n_classes : K; the labels are 0, ..., K-1.
    classes : the labels, if they differ from 0, ..., K-1.
    random_state : seed of the draws, which depend on it and on the number of the round.

    Attributes
    ----------
    classes_ : the labels.
    estimator_ : the fitted base learner.
    rounds_, mistakes_ : the number of finished rounds, and of mistakes in them.
    state_ : `exploration`, `x` and `pending` (the open round), `tally` (rounds, mistakes, explorations, updates).

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import FOLKLORE, EpsilonGreedy
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = np.argmax(X @ [[3, -3, 0], [0, 0, 3]] + rng.gumbel(size=(3000, 3)), axis=1)
    >>> learner = EpsilonGreedy(FOLKLORE(radius=5.0), epsilon=0.1, n_classes=3)
    >>> for x, label in zip(X, y):
    ...     action, probability = learner.act(x)
    ...     learner.feedback(x, action, action == label)
    >>> print(f"{learner.mistakes_ / learner.rounds_:.1f} mistakes per round")  # chance: 0.67
    0.3 mistakes per round

    References
    ----------
    The proof is given above; the reduction is a variant of that of key `folklore` of REFERENCES.bib.
    """

    _constants: GreedyConstants

    def __init__(
        self,
        estimator: OnlineClassifier,
        epsilon: float = 0.1,
        n_classes: int | None = None,
        classes: Any = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.epsilon = epsilon
        self.n_classes = n_classes
        self.classes = classes
        self.random_state = random_state

    @classmethod
    def _example(cls) -> Self:
        from regretless.learners.second_order.folklore import FOLKLORE

        return cls(FOLKLORE(), n_classes=3)

    def _prepare(self, n_features: int, n_classes: int) -> GreedyConstants:
        epsilon = self.epsilon
        if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number) or not 0 <= epsilon <= 1:
            raise ValueError(f"epsilon={epsilon!r} must be a number from 0 to 1.")
        if 0 < epsilon < n_classes / HEAVIEST:
            raise ValueError(f"epsilon={epsilon!r} is so small that one correct guess would outweigh all rows: use 0.")
        self.estimator_ = self._fresh(self.estimator, n_features)
        return GreedyConstants(float(epsilon), np.array([n_classes / float(epsilon) if epsilon else 1.0]))

    def _start(self, n_features: int, n_classes: int) -> BanditState:
        state = super()._start(n_features, n_classes)
        state.exploration[0] = self._constants.epsilon
        return state

    def _check(self, row: Array) -> None:
        self.estimator_._check_rows(row, self._constants.heaviest)

    def _policy(self, row: Array) -> tuple[float, Array]:
        out = self.estimator_._new_forecasts(1)
        self.estimator_._forecast(row, out)
        return self._constants.epsilon, certain(int(np.argmax(out[0])), self._n_classes)

    def _learn(self, row: Array, k: int, correct: bool, label: int | None) -> bool:
        if correct:
            self._teach(row, k, 1.0 / float(self.state_.pending[PROBABILITY]))
        return correct
