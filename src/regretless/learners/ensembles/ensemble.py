"""Ensemble: the base class of learners that hold a list of learners."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from regretless.core.files import state_checks
from regretless.core.learner import OnlineClassifier
from regretless.core.numbers.tally import ROWS
from regretless.core.types import Array


class Ensemble(OnlineClassifier):
    """A learner that holds a list of others, all of which learn every row. A row that one refuses, none learns."""

    holds = {"estimators": "estimators_"}
    estimators: Sequence[OnlineClassifier]
    estimators_: list[Any]

    @property
    def _members(self) -> list[Any]:
        """The learners that learn; before the first row, those of the parameter."""
        if "estimators_" in self.__dict__:
            return self.estimators_
        if not isinstance(self.estimators, list | tuple) or not self.estimators:
            raise ValueError(f"estimators={self.estimators!r}: give a list of learners, at least one.")
        for i, learner in enumerate(self.estimators):
            if not isinstance(learner, OnlineClassifier):
                raise ValueError(
                    f"estimators[{i}]={learner!r}: {type(self).__name__} takes classifiers, such as AIOLI()."
                )
        return list(self.estimators)

    @property
    def takes_sparse(self) -> bool:  # type: ignore[override]
        """Whether all members accept sparse rows."""
        return all(member.takes_sparse for member in self._members)

    @property
    def binary_only(self) -> bool:  # type: ignore[override]
        """Whether a member is a binary classifier."""
        return any(member.binary_only for member in self._members)

    @property
    def least_rows(self) -> int:
        """See `OnlineLearner`."""
        return max(member.least_rows for member in self._members)

    def _check_state(self) -> None:
        """Check the sums, and that the members have learned every row."""
        tally = self.state_.tally
        state_checks.tally(tally)
        for member in self._members:
            state_checks.require(member.state_.tally[ROWS] == tally[ROWS], "tally: members have learned other rows")
        state_checks.within("losses", self.state_.losses, -state_checks.ROUNDING, math.inf)

    def _limits(self) -> tuple[float, float]:
        return math.inf, math.inf  # `_check_rows` asks the members

    def _check_rows(self, X: Any, weight: Array) -> None:
        for member in self._members:
            member._check_rows(X, weight)
