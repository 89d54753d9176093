"""Stack: a grid of independent learners in one pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from regretless.core.blocks import BLOCK
from regretless.core.interrupts import stretches, uninterrupted
from regretless.core.learner import ONE, OnlineClassifier
from regretless.core.scikit_learn import NotFittedError, clone
from regretless.core.turns import TakesTurns
from regretless.core.types import Array
from regretless.learners.ensembles import side_by_side


class Stack(TakesTurns):
    """Several independent learners in one pass over the rows, on several threads.

    **Choose it when** you want to run several independent learners over the same rows, on several threads.

    Use it to compare a grid of parameters, such as the radius. `Mixture` instead combines the members' forecasts while
    the stream runs.

    **Guarantee.** Each member forecasts and learns as it would alone, to the bit, with its own certificate and bound.

    Parameters
    ----------
    estimators : a list of classifiers on numeric arrays. They are not changed: clones of them learn.

    Attributes
    ----------
    estimators_ : the fitted members.
    total_losses_ : the total loss of each member, in its own loss.
    best_ : the member with the least total loss.

    Examples
    --------
    >>> import numpy as np
    >>> from regretless import AIOLI, Stack
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 5)) / np.sqrt(5)
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X @ [3, -3, 2, 0, 1]))
    >>> grid = Stack([AIOLI(radius=radius) for radius in (0.1, 1.0, 10.0)])
    >>> p = grid.predict_then_learn(X, y)
    >>> p.shape, grid.total_losses_.round(1).tolist(), grid.best_
    ((3, 2000, 2), [1256.7, 920.8, 925.3], AIOLI(radius=1.0))

    References
    ----------
    See the learners passed as `estimators`.
    """

    estimators_: list[Any]

    def __init__(self, estimators: Sequence[OnlineClassifier]) -> None:
        if not isinstance(estimators, list | tuple) or not estimators:
            raise ValueError(f"estimators={estimators!r}: give a list of learners, at least one.")
        for i, learner in enumerate(estimators):
            if not isinstance(learner, OnlineClassifier) or learner.reads_tables:
                raise ValueError(f"estimators[{i}]={learner!r}: Stack takes classifiers on numeric arrays.")
        self.estimators = estimators

    @classmethod
    def _example(cls) -> Self:
        """A small one that can be played."""
        from regretless.learners.second_order.aioli import AIOLI

        return cls([AIOLI(radius=1.0), AIOLI()])

    def __repr__(self) -> str:
        return f"Stack(estimators={self.estimators!r})"

    def predict_then_learn(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Array:
        """Play the game: each member's forecast of each row before its label is used, (members, n, K)."""
        return self._play(X, y, classes, sample_weight)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from a block of rows, in order."""
        self._play(X, y, classes, sample_weight)
        return self

    def _play(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> Array:
        begun = hasattr(self, "estimators_")
        first = self.estimators_[0] if begun else clone(self.estimators[0])
        X, Y, weight = first._take_in(X, y, classes, sample_weight)
        members = self.estimators_ if begun else side_by_side.begin(self.estimators, first._labels, first)
        for member in members:
            member._check_rows(X, weight)
        self.estimators_ = members
        out = np.empty((len(members), *Y.shape))
        for i in range(0, len(Y), BLOCK):
            some = slice(i, i + BLOCK)
            self._run(X[some], Y[some], weight[some], out[:, some])
        return self._said(out)

    def _run(self, X: Any, Y: Array, weight: Array, out: Array) -> None:
        members = self.estimators_
        for some in stretches(len(Y), max(member.least_rows for member in members), slow=True):
            with uninterrupted():
                side_by_side.run(members, X[some], [Y[some]] * len(members), weight[some], out[:, some])

    def predict_proba(self, X: Any) -> Array:
        """Each member's forecasts, (members, n, K). Changes nothing."""
        first = self._members()[0]
        X = first._rows(X, reset=False)
        for member in self.estimators_:
            member._check_rows(X, ONE)
        out = np.empty((len(self.estimators_), X.shape[0], len(first.classes_)))
        side_by_side.forecast(self.estimators_, X, out)
        return self._said(out)

    def _said(self, out: Array) -> Array:
        for member, forecasts in zip(self.estimators_, out, strict=True):
            said = member._said(forecasts)
            if said.shape == forecasts.shape:  # for two classes, scores are margins: their logits are returned
                forecasts[:] = said
        return out

    def _members(self) -> list[Any]:
        if not hasattr(self, "estimators_"):
            raise NotFittedError("This Stack is not fitted: call partial_fit or predict_then_learn first.")
        return self.estimators_

    @property
    def total_losses_(self) -> Array:
        """The total loss of each member, in its own loss."""
        return np.array([member.total_loss_ for member in self._members()])

    @property
    def best_(self) -> Any:
        """The member with the least total loss."""
        return self._members()[int(self.total_losses_.argmin())]
