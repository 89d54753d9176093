"""RememberingClassifier: the base class of classifiers that remember rows."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from regretless.core.files import state_checks
from regretless.core.interrupts import listen, uninterrupted
from regretless.core.learner import ONE, OnlineClassifier
from regretless.core.numbers.tally import ROWS, UNEVEN
from regretless.core.rows import validate
from regretless.core.types import Array


class RememberingClassifier(OnlineClassifier):
    """A classifier whose state holds the rows it learned from: `X` (n, d), `Y` (n, K) and `weight` (n,), which grow.

    The cost per row grows with the number of rows. Subclasses implement forecast and update for one row.
    """

    grows = ("X", "Y", "weight")

    def _check_state(self) -> None:
        """Check the sums, and that the rows are valid."""
        state = self.state_
        state_checks.tally(state.tally)
        rows = float(state.tally[ROWS])
        state_checks.require(
            len(state.X) <= rows and (len(state.X) or not rows),
            f"X has {len(state.X)} rows, and {rows:.0f} were learned",
        )
        if len(state.X):
            self._check_rows(validate.writable(state.X), ONE)
            self._check_labels(state.Y)
            most = rows * validate.HEAVIEST if state.tally[UNEVEN] else rows
            state_checks.require(
                np.all((state.weight > 0.0) & (state.weight <= most)), "weight is not that of rows learned"
            )

    def _check_labels(self, Y: Array) -> None:
        """Refuse stored labels that are no distributions over the classes."""
        validate.label_distributions(Y, self._n_classes)

    def _run(self, X: Array, Y: Array, weight: Array, out: Array) -> None:
        for t in range(X.shape[0]):
            self._forecast_row(X[t], out[t])
            if weight[t] != 0.0:
                with uninterrupted():
                    self._learn_row(X[t], Y[t], float(weight[t]), out[t])
            listen()

    def _forecast(self, X: Array, out: Array) -> None:
        for t in range(X.shape[0]):
            self._forecast_row(X[t], out[t])

    @abstractmethod
    def _forecast_row(self, x: Array, out: Array) -> None:
        """Write the logits of a row. Changes nothing else."""

    @abstractmethod
    def _learn_row(self, x: Array, y: Array, weight: float, forecast: Array) -> None:
        """Learn from a row, after its `forecast`."""

    def _remember(self, x: Array, y: Array, weight: float, **changes: Any) -> None:
        """Append a row to the state, and replace other fields."""
        state = self.state_
        self.state_ = state._replace(
            X=np.vstack([state.X, x[None]]),
            Y=np.vstack([state.Y, y[None]]),
            weight=np.append(state.weight, weight),
            **changes,
        )
