"""OneVsRest: several classes by one binary classifier per class."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np

from regretless.core.errors import NoBound, NoCertificate
from regretless.core.files import state_checks
from regretless.core.interrupts import uninterrupted
from regretless.core.kernels.jit import kernel
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.tally import ROWS, TALLIES, record
from regretless.core.rows.labels import Labels
from regretless.core.scikit_learn import check_is_fitted
from regretless.core.types import Array
from regretless.learners.ensembles import side_by_side
from regretless.learners.ensembles.mixture import LOG_LOSS, cross_entropy, normalise
from regretless.theory.domains import Ball, Competition, RowBall

REST_OR_CLASS = Labels(np.array([False, True]))


class OneVsRestState(NamedTuple):
    """The state of one-vs-rest, apart from what the K members have learned."""

    losses: Array  # (K,): the total loss of each member
    tally: Array


class OneVsRest(OnlineClassifier):
    r"""One-vs-rest: K copies of a binary classifier, each of which separates one class from the rest.

    **Choose it when** you have a binary learner and more than two classes.

    Member k forecasts the probability :math:`q_k` that the label is k, and the forecast is

    .. math:: p_k = q_k \Big/ \sum_j q_j.

    For large K it is cheaper than `FOLKLORE`: K matrices of d by d instead of one of (K-1)d by (K-1)d.

    **Guarantee.** The log loss of p is at most the sum of the members' log losses: :math:`\prod_{j \ne y}(1 - q_j)^{-1}
    \ge 1 + \sum_{j \ne y} q_j \ge \sum_j q_j`. So it is at most the sum of the losses of any K weight vectors, one per
    class against the rest, plus `one_vs_rest_certificate()`, the sum of the members' certificates. One-vs-rest has no
    softmax regret guarantee: use `FOLKLORE` or `GAF` for one.

    Parameters
    ----------
    estimator : a binary classifier with log loss, such as `AIOLI()`. It is not changed: the members are clones.

    Attributes
    ----------
    classes_ : the labels, in the order of the columns of probabilities.
    estimators_ : the fitted members, one per class.
    state_ : `losses` (the total loss of each member) and `tally`.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from regretless import AIOLI, OneVsRest
    >>> X, y = load_digits(return_X_y=True)
    >>> learner = OneVsRest(AIOLI(radius=10.0))
    >>> p = learner.predict_then_learn(X / 64, y, classes=range(10))
    >>> print(f"{(p.argmax(axis=1) != y).mean():.3f}")
    0.057
    >>> print(f"{learner.total_loss_:.1f} <= {learner.state_.losses.sum():.1f}")
    821.1 <= 1417.3

    References
    ----------
    See the learner passed as `estimator`.
    """

    state_: OneVsRestState
    holds = {"estimator": "estimators_"}
    holds_copies = True
    held_classes = 2
    estimators_: list[Any]

    def __init__(self, estimator: OnlineClassifier) -> None:
        self.estimator = estimator

    @classmethod
    def _example(cls) -> Self:
        from regretless.learners.second_order.aioli import AIOLI

        return cls(AIOLI())

    # ------------------------------------------------------------------ the members

    @property
    def _member(self) -> Any:
        """A member that learns; before the first row, the parameter."""
        return self.estimators_[0] if "estimators_" in self.__dict__ else self.estimator

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        """Whether the estimator accepts sparse rows."""
        return bool(getattr(self._member, "takes_sparse", False))

    def _begin(self, n_features: int) -> None:
        if not isinstance(self.estimator, OnlineClassifier):
            raise ValueError(
                f"estimator={self.estimator!r}: OneVsRest takes a binary classifier of regretless, such as AIOLI()."
            )
        members = side_by_side.begin([self.estimator] * self._n_classes, REST_OR_CLASS, self)
        if (loss := members[0].competes_with.loss) not in LOG_LOSS:
            raise ValueError(
                f"estimator={self.estimator!r} has the loss {loss!r}, and only probabilities can be normalised. "
                f"Choose a learner with one of the losses {LOG_LOSS}."
            )
        self.estimators_ = members
        super()._begin(n_features)

    def _prepare(self, n_features: int, n_classes: int) -> None:
        """One-vs-rest has no constants of its own."""

    def _start(self, n_features: int, n_classes: int) -> OneVsRestState:
        return OneVsRestState(np.zeros(n_classes), np.zeros(TALLIES))

    @property
    def least_rows(self) -> int:
        """See `OnlineLearner`."""
        return int(self.estimators_[0].least_rows)

    def _limits(self) -> tuple[float, float]:
        return math.inf, math.inf  # `_check_rows` asks a member

    def _check_rows(self, X: Any, weight: Array) -> None:
        self.estimators_[0]._check_rows(X, weight)

    def _n_copies(self, n_classes: int) -> int:
        """The number of members."""
        return n_classes

    def _check_state(self) -> None:
        tally = self.state_.tally
        state_checks.tally(tally)
        for member in self.estimators_:
            state_checks.require(member.state_.tally[ROWS] == tally[ROWS], "tally: members have learned other rows")
        state_checks.within("losses", self.state_.losses, -state_checks.ROUNDING, math.inf)

    # ------------------------------------------------------------------ the game

    @uninterrupted()
    def _run(self, X: Any, Y: Array, weight: Array, out: Array) -> None:
        logits = np.empty((out.shape[1], out.shape[0], 2))
        targets = np.ascontiguousarray(np.stack([1.0 - Y, Y], axis=-1).swapaxes(0, 1))
        side_by_side.run(self.estimators_, X, targets, weight, logits)
        run(self.state_, logits, Y, weight, out)

    def _forecast(self, X: Any, out: Array) -> None:
        logits = np.empty((out.shape[1], out.shape[0], 2))
        side_by_side.forecast(self.estimators_, X, logits)
        forecast_block(logits, out)

    # ------------------------------------------------------------------ certificate and bound

    @property
    def competes_with(self) -> Competition:
        """The best softmax, one row of weights per class in the members' set; without a guarantee against it."""
        domain = self._member.competes_with.domain
        return Competition("softmax", RowBall(domain.radius) if isinstance(domain, Ball) else domain)

    def one_vs_rest_certificate(self, comparator_norm: float | None = None) -> float:
        """An upper bound on the loss so far minus the sum of K losses, one per class against the rest.

        It holds for the losses of any weights of the members' class (or of a given norm).
        """
        check_is_fitted(self, "state_")
        return float(sum(member.regret_certificate(comparator_norm) for member in self.estimators_))

    def regret_certificate(self, comparator_norm: float | None = None) -> float:
        """Raises `NoCertificate`: the members compete class by class. Use `one_vs_rest_certificate()`."""
        check_is_fitted(self, "state_")
        raise NoCertificate(
            "One-vs-rest has no softmax regret guarantee: regret against the best softmax is not proved. "
            "one_vs_rest_certificate() compares with K losses, one per class; FOLKLORE and GAF have a guarantee."
        )

    def regret_bound(self, n: int | None = None) -> float:
        """Raises `NoBound`."""
        check_is_fitted(self, "state_")
        raise NoBound("One-vs-rest has no softmax regret guarantee: use FOLKLORE or GAF.")


@kernel
def normalised(logits: Array, t: int, out: Array) -> None:
    """Write the K log probabilities of row t; the members' logits become log probabilities."""
    for k in range(out.size):
        normalise(logits[k, t])
        out[k] = logits[k, t, 1]
    normalise(out)


@kernel
def run(state: OneVsRestState, logits: Array, Y: Array, weight: Array, out: Array) -> None:
    """The game over a block, given the members' forecasts `logits` of shape (K, n, 2)."""
    losses, tally = state
    label = np.empty(2)
    for t in range(Y.shape[0]):
        normalised(logits, t, out[t])
        if weight[t] == 0.0:
            continue
        record(tally, weight[t], weight[t] * cross_entropy(out[t], Y[t]), 0.0, 0.0)
        for k in range(losses.size):
            label[0], label[1] = 1.0 - Y[t, k], Y[t, k]
            losses[k] += weight[t] * cross_entropy(logits[k, t], label)


@kernel
def forecast_block(logits: Array, out: Array) -> None:
    """The normalised forecasts of a block."""
    for t in range(out.shape[0]):
        normalised(logits, t, out[t])
