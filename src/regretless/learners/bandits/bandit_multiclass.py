"""BanditMulticlass: bandit feedback by uniform exploration around a learner with log loss."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound
from regretless.core.learner import ONE, OnlineClassifier
from regretless.core.types import Array
from regretless.learners.bandits.learner import EXPLORING, BanditReduction, BanditState
from regretless.theory import bounds
from regretless.theory.domains import Competition

LOG_LOSS = ("logistic", "softmax")
SMALL = 1e-3  # the norm of a row that every learner accepts


class BanditConstants(NamedTuple):
    """The exploration."""

    number: float | None  # its probability, if it is the same in all rounds


class BanditMulticlass(BanditReduction):
    r"""Classification with bandit feedback: explore with probability gamma, and learn from correct explorations.

    **Choose it when** only right or wrong is revealed, and you want a bound on the mistakes around any learner with log
    loss.

    In each round, with probability :math:`\gamma` a label is drawn uniformly, and the base learner learns it if it is
    correct; otherwise a label is drawn from the base learner's probabilities, and nothing is learned (Algorithm 2 of
    [FOLKLORE]_). Feedback does not reveal whether a round explored.

    **Guarantee.** Let :math:`\mathcal R(n)` bound the base learner's regret in log loss. For every stream fixed in
    advance and every comparator with log loss L, the expected mistakes of n rounds are at most :math:`L + K\mathcal
    R(n)/\gamma + \gamma n`, which is :math:`L + 2\sqrt{K n \mathcal R(n)}` for the best :math:`\gamma = \min(1,
    \sqrt{K\mathcal R(n)/n})` (Theorem 9 with a missing factor 2 restored; `regretless.bounds.bandit`, `mistake_bound`).

    Parameters
    ----------
    estimator : a classifier with log loss. It is not changed: a clone learns.
    n_classes : K; the labels are 0, ..., K-1.
    classes : the labels, if they differ from 0, ..., K-1.
    exploration : gamma, a number above 0 and up to 1; or "theory", the best gamma for `horizon` rounds, with
        :math:`\mathcal R(n)` from `estimator.regret_bound(horizon)`. That bound must not depend on later rows, so the
        estimator has to declare how large they are (`feature_bound` or `gradient_bound`); or "anytime", which needs no
        horizon: rounds form epochs of 1, 2, 4, 8, ..., each with the best gamma for its length, and **each with a new
        clone of the estimator**. (The theorem holds for each epoch, so for every n the regret of n rounds is at most
        :math:`\frac{2\sqrt2}{\sqrt2-1} < 6.83` times :math:`\sqrt{K n \mathcal R(n)}`.)
    horizon : the number of rounds to come; used only by exploration="theory".
    random_state : seed of the draws, which depend on it and on the number of the round.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    estimator_ : the fitted base learner; `estimator_.predict_proba(X)` are its forecasts.
    exploration_ : the current gamma.
    rounds_, mistakes_ : the number of finished rounds, and of mistakes in them.
    state_ : `exploration`, `x` and `pending` (the open round), `tally` (rounds, mistakes, explorations, updates).

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import FOLKLORE, BanditMulticlass
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(3000, 2))
    >>> y = np.argmax(X @ [[3, -3, 0], [0, 0, 3]] + rng.gumbel(size=(3000, 3)), axis=1)
    >>> learner = BanditMulticlass(FOLKLORE(radius=5.0), n_classes=3, exploration=0.1)
    >>> for x, label in zip(X, y):
    ...     action, probability = learner.act(x)
    ...     learner.feedback(x, action, action == label)
    >>> print(f"{learner.mistakes_} mistakes in {learner.rounds_} rounds")
    1029 mistakes in 3000 rounds

    References
    ----------
    .. [FOLKLORE] Agarwal, Kale and Zimmert (2022), key `folklore` of REFERENCES.bib. Errata:
       docs/errata.md.
    """

    _constants: BanditConstants

    def __init__(
        self,
        estimator: OnlineClassifier,
        n_classes: int | None = None,
        classes: Any = None,
        exploration: str | float = "theory",
        horizon: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_classes = n_classes
        self.classes = classes
        self.exploration = exploration
        self.horizon = horizon
        self.random_state = random_state

    @classmethod
    def _example(cls) -> Self:
        from regretless.learners.second_order.folklore import FOLKLORE

        return cls(FOLKLORE(), n_classes=3, exploration=0.2)

    def _prepare(self, n_features: int, n_classes: int) -> BanditConstants:
        self.estimator_ = self._fresh(self.estimator, n_features)
        if (loss := self.estimator_.competes_with.loss) not in LOG_LOSS:
            raise ValueError(
                f"estimator={self.estimator!r} has the loss {loss!r}, which gives no probabilities to draw "
                f"from. Choose a learner with one of the losses {LOG_LOSS}."
            )
        return BanditConstants(self._number(n_classes))

    def _number(self, n_classes: int) -> float | None:
        gamma = self.exploration
        if isinstance(gamma, str):
            if gamma not in ("theory", "anytime"):
                raise ValueError(f'exploration={gamma!r} is unknown: give "theory", "anytime" or a number.')
            try:
                self._require_bound_in_advance()
                return None if gamma == "anytime" else self._best_for(self._checked_horizon(), n_classes)
            except NoBound as refusal:
                raise ValueError(
                    f"exploration={gamma!r} needs a regret bound of {type(self.estimator).__name__} before the first "
                    f"row, and it has none: {refusal} Or set exploration to a number."
                ) from refusal
        if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 0 < gamma <= 1:
            raise ValueError(
                f'exploration={gamma!r} must be "theory", "anytime" or a number above 0 and up to 1: without '
                "exploration nothing is learned."
            )
        return float(gamma)

    def _checked_horizon(self) -> int:
        n = self.horizon
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
            raise ValueError(
                f'horizon={n!r}: exploration="theory" needs the number of rounds to come, a whole number >= 1. '
                'exploration="anytime" needs none.'
            )
        return int(n)

    def _new_base(self) -> Any:
        """The base learner before its first row. (The parameter `estimator` may have changed since.)"""
        return self._fresh(self.estimator_, self.n_features_in_)

    def _require_bound_in_advance(self) -> None:
        """Refuse a base learner whose bound depends on the rows: learning a small row then changes it."""
        fresh, n_features = self._new_base(), self.n_features_in_
        if fresh.competes_with.regularization:
            raise NoBound("The bound includes a regularization in every row, not only the log loss.")
        before = fresh.regret_bound(1000)
        size = min(SMALL, fresh._largest[0] / 2)
        row = np.full((1, n_features), size / math.sqrt(n_features))
        fresh._run(row, fresh._labels.target(0), ONE, fresh._new_forecasts(1))
        if fresh.regret_bound(1000) != before:
            raise NoBound(
                "The bound depends on the largest row or gradient so far. Set feature_bound or gradient_bound of the "
                "estimator, if it has one."
            )

    def _best_for(self, n: int, n_classes: int) -> float:
        """The best gamma for n rounds with a fresh base learner."""
        return min(1.0, math.sqrt(n_classes * self.estimator_.regret_bound(n) / n))

    def _start(self, n_features: int, n_classes: int) -> BanditState:
        state = super()._start(n_features, n_classes)
        number = self._constants.number
        state.exploration[0] = self._best_for(1, n_classes) if number is None else number
        return state

    def _check(self, row: Array) -> None:
        self.estimator_._check_rows(row, ONE)

    def _policy(self, row: Array) -> tuple[float, Array]:
        return float(self.state_.exploration[0]), self.estimator_.predict_proba(row)[0]

    def _learn(self, row: Array, k: int, correct: bool, label: int | None) -> bool:
        learns = correct and bool(self.state_.pending[EXPLORING])
        if learns:
            self._teach(row, k)
        return learns

    def _next_round(self) -> None:
        """Epochs begin after 0, 1, 3, 7, ... rounds, with a new gamma and a new base learner."""
        length = self.rounds_ + 1
        if self._constants.number is None and length & (length - 1) == 0:
            self.estimator_ = self._new_base()
            self.state_.exploration[0] = self._best_for(length, self._n_classes)

    @property
    def exploration_(self) -> float:
        """The current probability of exploring."""
        self._require_begun()
        return float(self.state_.exploration[0])

    @property
    def competes_with(self) -> Competition:
        """What the base learner competes with."""
        return (self.estimator_ if "estimator_" in vars(self) else self.estimator).competes_with

    def mistake_bound(self, comparator_loss: float, n: int | None = None) -> float:
        """An upper bound on the expected mistakes of n rounds (default: those so far).

        `comparator_loss` is the total log loss of a comparator of `competes_with` on these rounds.
        """
        self._require_begun()
        n = self.rounds_ if n is None else n
        if not 0 <= comparator_loss < math.inf:
            raise NoBound(f"comparator_loss={comparator_loss} must be a finite number >= 0.")
        self._require_bound_in_advance()
        price = sum(self._price(length, gamma) for length, gamma in self._epochs(n))
        return min(float(n), comparator_loss + price)

    def _epochs(self, n: int) -> list[tuple[int, float]]:
        """The number of rounds of each epoch among n, and its gamma."""
        if self._constants.number is not None:
            return [(n, self._constants.number)]
        fresh, K, found, done, length = self._new_base(), self._n_classes, [], 0, 1
        while done < n:
            gamma = min(1.0, math.sqrt(K * fresh.regret_bound(length) / length))
            found.append((min(length, n - done), gamma))
            done, length = done + length, 2 * length
        return found

    def _price(self, n: int, gamma: float) -> float:
        """An upper bound on the expected mistakes of an epoch of n rounds minus the comparator's loss."""
        regret = self._new_base().regret_bound(n)
        return bounds.bandit(n, n_classes=self._n_classes, regret=regret, comparator_loss=0.0, exploration=gamma)
