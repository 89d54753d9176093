"""A checked block of rows, learned at once or in steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from regretless.core.interrupts import stretches
from regretless.core.types import Array

if TYPE_CHECKING:
    from regretless.core.learner import OnlineLearner

BLOCK = 16_384  # rows per call of a kernel: bounds the memory of labels and forecasts


class Block:
    """Checked rows, their targets and weights, and the number of rows learned.

    `at` is always correct, also after Ctrl-C: the first `at` rows are learned, and none of the others.
    """

    def __init__(self, learner: OnlineLearner, X: Any, targets: Array, weight: Array, keep: bool) -> None:
        self.learner, self.X, self.weight = learner, X, weight
        self.n: int = X.shape[0]
        self.at = 0
        self._targets = targets
        self._keep = keep
        self._out = learner._new_forecasts(self.n if keep else min(BLOCK, self.n))

    def learn_to(self, stop: int) -> None:
        """Learn the next rows, up to row `stop` of the block."""
        learner = self.learner
        try:
            for begin in range(self.at, stop, BLOCK):
                some = slice(begin, min(begin + BLOCK, stop))
                X, Y, weight = self.X[some], self._targets[some], self.weight[some]
                out = self._out[some] if self._keep else self._out[: some.stop - begin]
                for rows in stretches(some.stop - begin, learner.least_rows, bool(learner.holds)):
                    learner._run(X[rows], Y[rows], weight[rows], out[rows])
                    self.at = begin + rows.stop
        finally:
            learner._end_block()

    def results(self) -> tuple[Array, Array]:
        """The output of the kernels, and the targets, once all rows are learned."""
        return self._out, self._targets


class BlockPlay:
    """A block that is learned in steps: iterating over it pauses after each of the given rows.

    `forecasts` and `targets` are those of all rows, available after the last step.
    """

    def __init__(self, learner: OnlineLearner, block: Any, stops: Iterable[int]) -> None:
        self._learner, self._block = learner, block
        self._stops = sorted({*(int(stop) for stop in stops), block.n})
        if wrong := [stop for stop in self._stops if not 1 <= stop <= block.n]:
            raise ValueError(f"stops={wrong} must be row counts from 1 to {block.n}.")

    def __iter__(self) -> Iterator[int]:
        """Learn up to the next stop, and yield the number of rows learned."""
        for stop in self._stops:
            self._learner._learn_to(self._block, stop)
            yield stop

    @property
    def forecasts(self) -> Array:
        """The forecasts, each made before its row's label was used, as returned by `predict_then_learn`."""
        return self._learner._said(self._results()[0])

    @property
    def targets(self) -> Array:
        """The targets as numbers: (n,) for a regressor, probabilities (n, K) for a classifier."""
        return self._results()[1]

    def _results(self) -> tuple[Array, Array]:
        if self._block.at < self._block.n:
            raise ValueError(f"{self._block.at} of {self._block.n} rows have been learned: iterate to the end first.")
        found: tuple[Array, Array] = self._block.results()
        return found
